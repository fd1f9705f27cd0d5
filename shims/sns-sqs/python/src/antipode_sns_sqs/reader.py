"""Reading a tap: one thread takes what arrives, notes the marks, and deletes it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from antipode.shim import logs
from antipode.shim.tap import TapMemory
from botocore.exceptions import BotoCoreError, ClientError

from antipode_sns_sqs.attributes import ATTRIBUTE, carried
from antipode_sns_sqs.errors import TapRefusedError, UnavailableError
from antipode_sns_sqs.probing import check_tap, grant, raise_refused, words_of
from antipode_sns_sqs.tap import Tap

_log: Final = logging.getLogger("antipode")
_POLL_S: Final = 5
"""Seconds that one question waits at SQS for a message."""
_HIDDEN_S: Final = 10
"""What was read and not deleted, because the process ended, comes again so much later."""
_SILENT_S: Final = 0.5
"""After so long without a word SQS is asked for a sign of life."""
_PAUSE_S: Final = (0.05, 1.0)


class TapReader:
    """Reads a tap until it is closed; what goes wrong is kept in `error`, and tried again."""

    def __init__(self, tap: Tap, memory: TapMemory, timeout: float) -> None:
        self._tap = tap
        self._memory = memory
        self._timeout = timeout
        self._closing = threading.Event()
        self._ready = threading.Event()
        self._heard_at = -1e9
        self._asker: Any = None
        self.error: Exception | None = None
        self.on_arrival: Callable[[], None] | None = None
        """Told when a message comes that somebody waits for, and when reading fails."""
        self._thread = threading.Thread(target=self._run, name=f"antipode-tap-{tap.queue}", daemon=True)
        self._thread.start()

    # For the engine's thread

    def check(self, timeout: float) -> None:
        """Returns if SQS is there and lets the tap be read. Raises TapRefusedError, OSError, or botocore's own."""
        if not self._ready.wait(timeout):
            raise TimeoutError(f"{self._tap.endpoint} did not answer within {timeout:g} s")
        if self.error is not None:
            raise self.error
        if time.monotonic() - self._heard_at > _SILENT_S:
            self._ask(timeout)
            self._heard_at = time.monotonic()

    def close(self) -> None:
        """Ends it; the question that waits at SQS is not waited for."""
        self._closing.set()
        self.on_arrival = None
        asker, self._asker = self._asker, None
        if asker is not None:
            asker.close()

    def join(self, timeout: float) -> bool:
        """Waits for the thread's end; whether it came."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _ask(self, timeout: float) -> None:
        """A sign of life: what waits at SQS for a message says nothing of it."""
        if self._asker is None:
            self._asker = self._tap.connect(timeout)
        try:
            self._asker.get_queue_attributes(QueueUrl=self._tap.queue_url, AttributeNames=["QueueArn"])
        except ClientError as error:
            raise_refused(self._tap, error)

    # In the reader's own thread

    def _run(self) -> None:
        pause, client = _PAUSE_S[0], None
        while not self._closing.is_set():
            try:
                if client is None:
                    client = self._tap.connect(self._timeout, _POLL_S)
                    check_tap(self._tap, client)  # else it might be a queue with consumers
                    self._well()
                self._take(client)
                pause = _PAUSE_S[0]
            except Exception as error:
                self._failed(error)
                if client is not None:
                    client.close()
                    client = None
                self._closing.wait(pause)
                pause = min(2 * pause, _PAUSE_S[1])
        if client is not None:
            client.close()

    def _well(self) -> None:
        self.error = None
        self._heard_at = time.monotonic()
        self._ready.set()

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, OSError | TapRefusedError):
            expected = isinstance(error, BotoCoreError)
            _log.debug("reading %r failed", self._tap, exc_info=not expected)
            error = ConnectionError(words_of(error))
        first = self.error is None
        self.error = error
        self._ready.set()
        if first and not self._closing.is_set():
            self._tell()  # whoever waits asks again, and so learns of it

    def _take(self, client: Any) -> None:
        """One question, and the deletion of what it brought."""
        try:
            answer = client.receive_message(
                QueueUrl=self._tap.queue_url,
                MaxNumberOfMessages=10,
                WaitTimeSeconds=_POLL_S,
                VisibilityTimeout=_HIDDEN_S,
                MessageAttributeNames=[ATTRIBUTE],
            )
        except ClientError as error:
            raise_refused(self._tap, error)
        self._heard_at = time.monotonic()
        messages = answer.get("Messages") or ()
        if messages and self._closing.is_set():  # whoever reads on is to have them
            self._entries(client.change_message_visibility_batch, messages, VisibilityTimeout=0)
            return
        wanted = False
        for message in messages:
            mark = carried(message).mark
            if mark is not None and self._memory.note(mark):
                wanted = True
        if wanted:
            self._tell()
        if messages:
            self._delete(client, messages)

    def _entries(self, call: Callable[..., Any], messages: Any, **more: Any) -> None:
        entries = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"], **more}
            for number, message in enumerate(messages)
        ]
        call(QueueUrl=self._tap.queue_url, Entries=entries)

    def _delete(self, client: Any, messages: Any) -> None:
        try:
            self._entries(client.delete_message_batch, messages)
        except ClientError as error:  # they come again, and are the same
            try:
                raise_refused(self._tap, error)
            except (TapRefusedError, UnavailableError) as refused:
                logs.warn(
                    f"delete {self._tap.address}",
                    f"what was read from the tap {self._tap.address} cannot be deleted, and is read again: {refused} "
                    f"It needs {grant(self._tap)['Action']}.",
                    code="AP203",
                )

    def _tell(self) -> None:
        tell = self.on_arrival
        if tell is not None:
            tell()
