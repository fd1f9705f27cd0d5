"""What replicates DynamoDB Local among regions: one such process a region, run by the lab as a file.

It tails the streams of its own region's tables, and gives what was written there to the others; from each of the
others it takes, through the pair's link, what was written there, and writes it here. As with DynamoDB's global tables
the last writer wins, by the time of the write as its region's clock had it (seen here: when the stream showed it,
plus the error of that clock that the lab was asked for), then by the region's name. An overwriting write is always
later than what it overwrote.

``_dynamodb_replicator.py CONFIG``: a JSON file with `name`, `endpoint`, `region`, `key`, `listen` (our port), `sources`
(name to the port of the link) and `clock_ms`. Others connect to `listen` and say in a line of JSON what they want:
``{"after": n}`` the changes from number n on, ``{"status": 1}``, or ``{"mark": 1}``, which puts a mark behind all that
has been written until now and answers with its number; ``{"clock_ms": n}`` makes this region's clock so wrong from
now on.
"""

from __future__ import annotations

import hashlib
import json
import socket
import socketserver
import sys
import threading
import time
import traceback
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

POLL_S = (0.01, 0.1)
TABLES_EVERY_S = 0.25
RETRY_S = 0.05
SILENCE_S = 10.0
"""Others say twice a second that there is nothing new: a connection that is silent for longer is made anew."""
Change = dict[str, Any]


class Known(NamedTuple):
    """What a key holds here: by whose write and of what time, and the item (empty: none)."""

    time: float
    region: str
    item: dict[str, Any]


def to_json(value: Any) -> Any:
    """An item as JSON: octets as hexadecimal."""
    if isinstance(value, bytes):
        return {"__octets__": value.hex()}
    if isinstance(value, dict):
        return {name: to_json(inner) for name, inner in value.items()}
    return [to_json(inner) for inner in value] if isinstance(value, list) else value


def from_json(value: Any) -> Any:
    """What `to_json` made."""
    if isinstance(value, dict):
        if value.keys() == {"__octets__"}:
            return bytes.fromhex(value["__octets__"])
        return {name: from_json(inner) for name, inner in value.items()}
    return [from_json(inner) for inner in value] if isinstance(value, list) else value


def digest(item: Any) -> str:
    """Tells items apart; sets have no order."""
    if not item:
        return ""
    plain = json.dumps(_sorted(to_json(item)), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def _sorted(value: Any) -> Any:
    """Sets in one order, and numbers in one form: DynamoDB Local gives 1.50 or 1.5 for the same key."""
    if isinstance(value, dict):
        return {name: _canonical(name, inner) for name, inner in value.items()}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value


def _canonical(kind: str, inner: Any) -> Any:
    if kind == "N" and isinstance(inner, str):
        return str(Decimal(inner).normalize())
    if kind == "NS" and isinstance(inner, list):
        return sorted(str(Decimal(each).normalize()) for each in inner)
    return sorted(inner, key=str) if kind in {"SS", "BS"} and isinstance(inner, list) else _sorted(inner)


class Replicator:
    """One region's part."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.name: str = config["name"]
        make = {
            "region_name": config["region"],
            "endpoint_url": config["endpoint"],
            "aws_access_key_id": config["key"],
            "aws_secret_access_key": config["key"],
            # A frozen server answers when it goes on: a request that was given up might be done then.
            "config": Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=3600),
        }
        session = boto3.session.Session()
        self.streams: Any = session.client("dynamodbstreams", **make)
        self.clients = {name: session.client("dynamodb", **make) for name in ["", *config["sources"]]}
        self.tables: set[str] = set()
        self.lock = threading.Condition()
        self.log: list[Change] = []
        self.known: dict[str, Known] = {}
        self.echoes: dict[str, deque[Known]] = defaultdict(deque)
        self.keys = [threading.Lock() for _ in range(64)]
        self.received = dict.fromkeys(config["sources"], 0)
        self.rounds = 0

    # -- our own streams ---------------------------------------------------------------------------

    def tail(self) -> None:
        """Reads our tables' streams for ever."""
        places: dict[str, tuple[str, str, str | None, str | None]] = {}  # shard: stream, table, iterator, last seen
        listed_at, pause = -1e9, POLL_S[0]
        while True:
            found = False
            try:
                if time.monotonic() - listed_at > TABLES_EVERY_S:
                    for stream, table, shard in self._shards():
                        places.setdefault(shard, (stream, table, None, None))
                    listed_at = time.monotonic()
                for shard in list(places):
                    stream, table, iterator, last = places[shard]
                    if iterator is None:
                        iterator = self._iterator(stream, shard, last)
                    answer = self.streams.get_records(ShardIterator=iterator, Limit=1000)
                    for record in answer["Records"]:
                        self._take(table, record)
                        last = record["dynamodb"]["SequenceNumber"]
                        found = True
                    places[shard] = (stream, table, answer.get("NextShardIterator"), last)
            except (BotoCoreError, ClientError):  # the server is down, or was started anew and knows no iterators
                places = {shard: (stream, table, None, last) for shard, (stream, table, _, last) in places.items()}
                time.sleep(RETRY_S)
                continue
            with self.lock:
                self.rounds += 1
                self.lock.notify_all()
            pause = POLL_S[0] if found else min(pause * 1.2, POLL_S[1])
            time.sleep(pause)

    def _shards(self) -> Iterator[tuple[str, str, str]]:
        names = self.clients[""].list_tables()["TableNames"]
        for table in names:
            stream = self.clients[""].describe_table(TableName=table)["Table"].get("LatestStreamArn")
            if stream is None:
                continue
            for shard in self.streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"]:
                yield stream, table, shard["ShardId"]
        self.tables = set(names)

    def _iterator(self, stream: str, shard: str, last: str | None) -> str:
        where: dict[str, str] = {"ShardIteratorType": "TRIM_HORIZON"}
        if last is not None:
            where = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last}
        found = self.streams.get_shard_iterator(StreamArn=stream, ShardId=shard, **where)
        return cast(str, found["ShardIterator"])

    def _take(self, table: str, record: Any) -> None:
        """A change in our region: by a client, or the echo of what we wrote ourselves."""
        keys, image = record["dynamodb"]["Keys"], record["dynamodb"].get("NewImage")
        key, made = self._key(table, keys), digest(image)
        with self._one(key):
            waiting = self.echoes[key]
            echo = next((each for each in waiting if digest(each.item) == made), None)
            if echo is not None:
                while waiting.popleft() is not echo:
                    pass
                self.known[key] = max(echo, self.known.get(key, echo), key=lambda each: each[:2])
                return
            now = time.time() + self.config["clock_ms"] / 1000
            before = self.known.get(key)
            if before is not None:
                now = max(now, before.time + 1e-6)
            self.known[key] = Known(now, self.name, image or {})
        change = {"table": table, "keys": to_json(keys), "image": to_json(image), "time": now}
        with self.lock:
            self.log.append(change)
            self.lock.notify_all()

    def _one(self, key: str) -> threading.Lock:
        """Held by who looks at a key and changes it: our stream, or another region's changes."""
        return self.keys[hash(key) % len(self.keys)]

    @staticmethod
    def _key(table: str, keys: Any) -> str:
        return json.dumps([table, _sorted(to_json(keys))], sort_keys=True)

    def changes(self, after: int) -> Iterator[tuple[int, Change | None]]:
        """Our changes from a number on, for ever; None while there is nothing new."""
        while True:
            with self.lock:
                if len(self.log) <= after:
                    self.lock.wait(0.5)
                fresh = self.log[after:]
            if not fresh:
                yield after, None
            for change in fresh:
                after += 1
                yield after, change

    def mark(self) -> int:
        """Puts a mark behind everything that was written until now; its number."""
        with self.lock:
            wanted = self.rounds + 2  # the round that goes on may have begun before
            while self.rounds < wanted:
                self.lock.wait(1.0)
            self.log.append({})
            self.lock.notify_all()
            return len(self.log)

    # -- the other regions -------------------------------------------------------------------------

    def follow(self, source: str) -> None:
        """Takes a region's changes for ever, through the link, beginning where the last connection ended."""
        while True:
            try:
                port = self.config["sources"][source]
                with socket.create_connection(("127.0.0.1", port), timeout=SILENCE_S) as connection:
                    connection.sendall(json.dumps({"after": self.received[source]}).encode() + b"\n")
                    with connection.makefile("rb") as lines:
                        for line in lines:
                            number, change = json.loads(line)
                            if change:
                                self._apply(source, change)
                            self.received[source] = number
            except (OSError, ValueError):
                pass  # cut, silent, or half of a line
            except Exception:
                traceback.print_exc()
            time.sleep(RETRY_S)

    def _apply(self, source: str, change: Change) -> None:
        """Writes another region's change here, unless something later is here."""
        table, keys = change["table"], from_json(change["keys"])
        key = self._key(table, keys)
        wanted = Known(change["time"], source, from_json(change["image"]) or {})
        while True:
            try:
                with self._one(key):
                    known = self.known.get(key, Known(-1e9, "", {}))
                    if known[:2] >= wanted[:2]:
                        return
                    if digest(known.item) != digest(wanted.item):
                        self._write(self.clients[source], table, keys, known.item, wanted, key)
                    self.known[key] = wanted
                    return
            except ClientError as error:
                if error.response["Error"]["Code"] == "ResourceNotFoundException" and table not in self.tables:
                    time.sleep(TABLES_EVERY_S)  # the table is made here a little later
                time.sleep(0.002)  # or a client wrote here just now: our stream shows it soon
            except (
                BotoCoreError
            ):  # the server is down; whether it wrote is seen when it is asked again, or in our stream
                time.sleep(RETRY_S)

    def _write(self, client: Any, table: str, keys: Any, there: Any, wanted: Known, key: str) -> None:
        """Writes if the item still is what it was: else a client was quicker."""
        names = {f"#{index}": name for index, name in enumerate(there or list(keys)[:1])}
        values: dict[str, Any] = {}
        condition = "attribute_not_exists(#0)"
        if there:
            condition = " AND ".join(f"{short} = :{short[1:]}" for short in names)
            values = {"ExpressionAttributeValues": {f":{short[1:]}": there[name] for short, name in names.items()}}
        guarded = {"ConditionExpression": condition, "ExpressionAttributeNames": names, **values}
        again = wanted in self.echoes[key]
        if not again:
            self.echoes[key].append(wanted)
        try:
            if wanted.item:
                client.put_item(TableName=table, Item=wanted.item, **guarded)
            else:
                client.delete_item(TableName=table, Key=keys, **guarded)
        except ClientError as error:
            if not again and error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                self.echoes[key].pop()
            raise


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        """One connection: of another region, or of the lab."""
        replicator = self.server.replicator
        with suppress(OSError, ValueError):
            wanted = json.loads(self.rfile.readline())
            if "after" in wanted:
                for number, change in replicator.changes(wanted["after"]):
                    self._say([number, change])
            elif "mark" in wanted:
                self._say(replicator.mark())
            elif "clock_ms" in wanted:
                replicator.config["clock_ms"] = wanted["clock_ms"]
                self._say(True)
            else:
                self._say({"received": replicator.received, "log": len(replicator.log)})

    def _say(self, what: Any) -> None:
        self.wfile.write(json.dumps(what).encode() + b"\n")


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    replicator: Replicator


def main(path: str) -> None:
    """Runs until it is killed."""
    config = json.loads(Path(path).read_text())
    replicator = Replicator(config)
    for source in config["sources"]:
        threading.Thread(target=replicator.follow, args=(source,), daemon=True).start()
    threading.Thread(target=replicator.tail, daemon=True).start()
    with _Server(("127.0.0.1", config["listen"]), _Handler) as server:
        server.replicator = replicator
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
