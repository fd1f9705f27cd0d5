"""One region's SNS and SQS, and the part of SNS that gives messages to other regions; run in moto's own environment.

moto plays every region in one process. Here each region is a process, so that links between them can be slow and be
cut: what a topic of this region sends to a queue of another goes through that region's link, and is sent again until
it has arrived, as SNS does. A message may so arrive twice.

Two limits of AWS that moto does not keep are kept here: SQS refuses a message with more than ten attributes, and SNS
drops one that raw delivery would give more than ten.

``_sns_server.py CONFIG``: a JSON file with `region`, `port`, and `links` (the name of a region to the port of its
link). Besides AWS's API it answers at ``/antipode-lab/status`` (what waits for each region), and
``/antipode-lab/probe/REGION`` (whether the link there carries), and ``/antipode-lab/arrived/QUEUE`` (how the bodies
begin that a queue has got, also of those that were deleted since: the truth that tests hold a tap to).
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
import urllib.request
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import moto.sns.models as sns
import moto.sqs.models as sqs
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from moto.server import DomainDispatcherApplication, create_backend_app
from moto.sqs.exceptions import InvalidParameterValue
from werkzeug.serving import WSGIRequestHandler, make_server

SENDERS = 48
"""Messages that are on their way to one region at once."""
RETRY_S = 0.05
MOST_ATTRIBUTES = 10
OURS = "/antipode-lab/"
ARRIVED: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=20_000))
"""By queue; of each body as much as tells messages apart."""


class Courier:
    """Gives this region's messages to the queues of another one, through the link; those of a FIFO group in order."""

    def __init__(self, region: str, port: int) -> None:
        self.region = region
        self._url = f"http://127.0.0.1:{port}"
        self._client = self._connect()
        self._jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._groups: dict[str, queue.SimpleQueue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self.waiting = 0
        for _ in range(SENDERS):
            threading.Thread(target=self._work, args=(self._jobs,), daemon=True).start()

    def _connect(self) -> Any:
        return boto3.session.Session().client(
            "sqs",
            region_name=self.region,
            endpoint_url=self._url,
            aws_access_key_id="antipode",
            aws_secret_access_key="antipode",
            config=Config(
                connect_timeout=5,
                read_timeout=3600,  # what a silent link holds arrives when it is healed
                retries={"total_max_attempts": 1},
                max_pool_connections=SENDERS,
            ),
        )

    # What moto's SNS calls, as if it were SQS's own backend

    def get_queue(self, queue_name: str) -> Any:
        """What a subscription asks of a queue: whether it is one of FIFO."""
        return SimpleNamespace(fifo_queue=queue_name.endswith(".fifo"))

    def send_message(
        self,
        queue_name: str,
        message_body: str,
        message_attributes: dict[str, Any] | None = None,
        deduplication_id: str | None = None,
        group_id: str | None = None,
        **_: Any,
    ) -> None:
        """Takes a message for a queue of the other region."""
        if len(message_attributes or {}) > MOST_ATTRIBUTES:
            return
        job: dict[str, Any] = {"QueueUrl": f"{self._url}/123456789012/{queue_name}", "MessageBody": message_body}
        if message_attributes:
            job["MessageAttributes"] = message_attributes
        with self._lock:
            self.waiting += 1
        if not queue_name.endswith(".fifo"):
            self._jobs.put(job)
            return
        job["MessageGroupId"] = group_id
        if deduplication_id:
            job["MessageDeduplicationId"] = deduplication_id
        key = f"{queue_name} {group_id}"
        with self._lock:
            ordered = self._groups.get(key)
            if ordered is None:
                ordered = self._groups[key] = queue.SimpleQueue()
                threading.Thread(target=self._work, args=(ordered,), daemon=True).start()
        ordered.put(job)

    def _work(self, jobs: queue.SimpleQueue[dict[str, Any]]) -> None:
        while True:
            job = jobs.get()
            while True:
                try:
                    self._client.send_message(**job)
                    break
                except ClientError as error:
                    if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                        print(f"dropped for {job['QueueUrl']}: {error}", flush=True)
                        break
                except BotoCoreError:
                    pass  # cut, or the server is down
                time.sleep(RETRY_S)
            with self._lock:
                self.waiting -= 1

    def probe(self) -> bool:
        """Whether the link carries now."""
        try:
            with urllib.request.urlopen(f"{self._url}{OURS}status", timeout=5):
                return True
        except OSError:
            return False


class Regions:
    """SQS as SNS sees it: this region's own backend, and couriers to the others."""

    def __init__(self, region: str, couriers: dict[str, Courier]) -> None:
        self._region = region
        self._couriers = couriers

    def __getitem__(self, account: str) -> Any:
        found = dict(self._couriers)
        return _Account(self._region, sqs.sqs_backends[account], found)


class _Account:
    def __init__(self, region: str, backends: Any, couriers: dict[str, Courier]) -> None:
        self._region, self._backends, self._couriers = region, backends, couriers

    def __getitem__(self, region: str) -> Any:
        return self._couriers.get(region) or _Own(self._backends[region])


class _Own:
    """This region's queues: what has too many attributes is dropped, as SNS does."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def get_queue(self, queue_name: str) -> Any:
        return self._backend.get_queue(queue_name)

    def send_message(self, queue_name: str, body: str, **more: Any) -> None:
        if len(more.get("message_attributes") or {}) <= MOST_ATTRIBUTES:
            self._backend.send_message(queue_name, body, **more)


def keep_limits() -> None:
    """Has SQS refuse what AWS's refuses, and lose nothing."""
    send = sqs.SQSBackend.send_message
    batch = sqs.SQSBackend.send_message_batch

    def check(attributes: Any) -> None:
        if len(attributes or {}) > MOST_ATTRIBUTES:
            raise InvalidParameterValue(
                f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{MOST_ATTRIBUTES}]."
            )

    def send_checked(self: Any, queue_name: str, message_body: str, *args: Any, **more: Any) -> Any:
        check(more.get("message_attributes") or (args[0] if args else None))
        made = send(self, queue_name, message_body, *args, **more)
        ARRIVED[queue_name].append(message_body[:100])
        return made

    def batch_checked(self: Any, queue_name: str, entries: Any) -> Any:
        for entry in entries.values():
            check(entry.get("MessageAttributes"))
        return batch(self, queue_name, entries)

    # moto's queues lose what comes while something is deleted, and give one message twice to receivers side by side.
    delete, receive = sqs.Queue.delete_message, sqs.SQSBackend.receive_message

    def delete_alone(self: Any, receipt_handle: str) -> None:
        with self._messages_lock:
            delete(self, receipt_handle)

    def receive_alone(self: Any, queue_name: str, *args: Any, **more: Any) -> Any:
        found = self.get_queue(queue_name)
        if found.fifo_queue:  # waits there without giving the lock back
            return receive(self, queue_name, *args, **more)
        with found._messages_lock:
            return receive(self, queue_name, *args, **more)

    sqs.Queue.delete_message = delete_alone
    sqs.SQSBackend.receive_message = receive_alone
    sqs.SQSBackend.send_message = send_checked
    sqs.SQSBackend.send_message_batch = batch_checked


def application(couriers: dict[str, Courier]) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """moto's WSGI application, with the lab's questions before it."""
    moto = DomainDispatcherApplication(create_backend_app)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if not path.startswith(OURS):
            answered: Iterable[bytes] = moto(environ, start)
            return answered
        what, _, region = path.removeprefix(OURS).partition("/")
        if what == "probe":
            found: Any = couriers[region].probe()
        elif what == "arrived":
            found = list(ARRIVED[region])
        else:
            found = {name: courier.waiting for name, courier in couriers.items()}
        body = json.dumps(found).encode()
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    return answer


class Quiet(WSGIRequestHandler):
    """Keeps connections open, and writes no line a request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing."""


def main(path: str) -> None:
    """Runs until it is killed."""
    config = json.loads(Path(path).read_text())
    couriers = {region: Courier(region, port) for region, port in config["links"].items()}
    sns.sqs_backends = Regions(config["region"], couriers)
    keep_limits()
    make_server(
        "127.0.0.1", config["port"], application(couriers), threaded=True, request_handler=Quiet
    ).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
