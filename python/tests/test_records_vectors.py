"""The vectors of dry-run records that every language runs (spec/vectors/records*.json), on the embedded store."""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import antipode
import antipode.memory
import jsonschema
import pytest
from antipode._base.settings import Mode, settings
from antipode._diagnostics.dryrun import following, records, repeats
from antipode._propagation.carriers import read
from antipode._scope.context import activate
from antipode._scope.scope import Scope
from antipode._store.store import registry
from antipode.messages import message_scope
from antipode.propagation import Inbound, inject_request
from antipode.testing import isolated
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from test_vectors import cases

SCHEMA: Final = json.loads((Path(__file__).parents[2] / "spec" / "schemas" / "record.schema.json").read_text())
SITE: Final = re.compile(r".+:[1-9][0-9]*|other")
SPAN: Final = 0xB7AD6B7169203331
HERE: Final = "here"

Record = dict[str, Any]


@pytest.mark.parametrize("case", cases("records-sample"))
def test_sample(case: Any) -> None:
    """REC-12."""
    antipode.configure(sample=case["sample"])
    assert records.is_sampled(context_of(case["trace_id"])) is case["sampled"]


@pytest.mark.parametrize("case", cases("records"))
def test_records(case: Any, tmp_path: Path) -> None:
    """REC-1, REC-3 to REC-8, REC-11 to REC-20, REC-26."""
    with isolated():
        records.forget()
        ours = {"mode": "dry-run", "region": "b", "records": tmp_path, "sample": 1.0}
        antipode.configure(**ours | case.get("settings", {}))
        with ExitStack() as stack:
            if "trace_id" in case:
                stack.enter_context(trace.use_span(NonRecordingSpan(context_of(case["trace_id"]))))
            run = Run(case)
            for step in case["steps"]:
                run.do(step)
        assert records.flush()
        lines = [line for path in tmp_path.glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    assert "private" not in "".join(lines)  # REC-8
    assert in_order([plain(json.loads(line)) for line in lines]) == in_order(case["lines"])


def context_of(trace_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), SPAN, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class Run:
    """The stores and scopes of one case."""

    def __init__(self, case: Any) -> None:
        self._stores = {
            name: antipode.memory.Store(name, versions=versions) for name, versions in case["stores"].items()
        }
        self._clients = {(name, at): store.client(at) for name, store in self._stores.items() for at in "ab"}
        self._open: dict[str, ExitStack] = {}
        self._scopes: dict[str, Scope] = {}
        self._requests: dict[str, Inbound] = {}
        self._texts: dict[str, str] = {}
        self._writes: dict[str, Any] = {}

    def do(self, step: Any) -> None:
        if "in" in step:
            with activate(self._scopes[step["in"]]):
                self._do(step)
        else:
            self._do(step)

    def _do(self, step: Any) -> None:
        match step:
            case {"scope": name, "as": kind}:
                self._begin(name, kind, step)
            case {"end": name}:
                self._open.pop(name).close()
            case {"answered": name}:
                self._requests[name].response_text()
            case {"set": key, "value": value, "store": store}:
                self._clients[store, "a"].set(key, value)
            case {"get": key, "value": value, "store": store, "at": at}:
                client = self._clients[store, at]
                with ExitStack() as stack:
                    if "after" in step:
                        lineage = antipode.Lineage.deserialize(self._texts[step["after"]])
                        stack.enter_context(antipode.reading(after=lineage))
                    assert client.get(key) == (None if value is None else value.encode())
            case {"barrier": True}:
                self._barrier(step)
            case {"freeze": store}:
                self._stores[store].freeze("b")
            case {"heal": store}:
                self._stores[store].heal("b")
            case {"stop": store}:
                self._stores[store].stop("b")
            case {"lose": store}:
                self._stores[store].promote("b", lose=1)
            case {"begin": name, "store": store}:
                self._begin_write(name, store, beside=step.get("beside", False))
            case {"abandon": name}:
                self._writes.pop(name).abandon()
            case {"serialize": name}:
                self._texts[name] = antipode.serialize()
            case {"incomplete": store, "reason": reason}:
                scope = antipode.current_scope()
                assert scope is not None
                scope.mark_incomplete(reason, store)
            case {"call": host}:
                inject_request({}, host)
            case {"wait": "looked"}:
                until(following.all_looked_at)
            case {"wait": "followed"}:
                until(following.nothing_is_followed)
                until(repeats.nothing_waits)
            case {"exit": True}:
                records.end()
            case _:
                raise AssertionError(f"no such step: {step}")

    @staticmethod
    def _barrier(step: Any) -> None:
        if settings().mode is Mode.DRY_RUN:
            assert antipode.barrier(stores=step.get("stores"), reach=step.get("reach")).dry_run
        elif step.get("passes", True):
            assert antipode.barrier(timeout=10.0).satisfied
        else:
            with pytest.raises(antipode.BarrierTimeout):
                antipode.barrier(timeout=0.2)

    def _begin(self, name: str, kind: str, step: Any) -> None:
        stack = self._open[name] = ExitStack()
        if kind == "root":
            scope = stack.enter_context(antipode.scope())
        elif kind == "detached":
            scope = stack.enter_context(antipode.detached_scope())
        elif kind == "request":
            came = read({"antipode-lineage": step["text"]} if "text" in step else {})
            inbound = self._requests[name] = Inbound(came, "127.0.0.1")
            stack.callback(inbound.close)
            scope = stack.enter_context(inbound.active())
        else:
            assert kind == "message"
            text = self._texts[step["carries"]] if "carries" in step else step["text"]
            scope = stack.enter_context(message_scope(text))
            scope.queue = step.get("queue", "")
        self._scopes[name] = scope

    def _begin_write(self, name: str, store: str, *, beside: bool) -> None:
        registered = registry().need(store)
        if not beside:
            self._writes[name] = registered.begin("private-key")
            return
        begin = antipode.carry(lambda: self._writes.__setitem__(name, registered.begin("private-key")))
        other = threading.Thread(target=begin)
        other.start()
        other.join()


def until(holds: Any) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def in_order(lines: list[Record]) -> list[str]:
    return sorted(json.dumps(line, sort_keys=True) for line in lines)


def plain(record: Record) -> Record:
    """A record as the vectors have it: without what differs from run to run, of which it only says that it is there."""
    jsonschema.validate(record, SCHEMA)
    assert set(record) <= set(SCHEMA["properties"])
    assert record.pop("record") == 1
    assert abs(record.pop("time") - time.time()) < 600
    assert isinstance(record.pop("service"), str)
    assert record.pop("region") == "b"
    assert re.fullmatch(r".+:[0-9]+:[0-9]+", record.pop("process"))
    if "trace_id" in record:
        assert record.pop("span_id") == f"{SPAN:016x}"
    for name in {"site", "barrier", "written_at"} & record.keys():
        assert SITE.fullmatch(record[name])
        record[name] = HERE
    if "origin" in record:
        opened = record["origin"].pop("opened_by", "")
        assert bool(opened) is (record["origin"]["scope"] != "task")
    for timed in (record, *record.get("stores", ())):
        if timed.get("visible_after") is not None:
            assert 0 <= timed["visible_after"] < 60
            timed["visible_after"] = "seconds"
    if "wanted" in record:
        wanted, seen = record["wanted"], record.get("seen")
        record["wanted"] = "position"
        if seen is not None and seen["epoch"] == wanted["epoch"] and int(seen["counter"]) < int(wanted["counter"]):
            record["seen"] = "before"
    if "stores" in record:
        record["stores"] = sorted(record["stores"], key=lambda store: str(store["store"]))
    if record["kind"] == "summary":
        assert 0 < record.pop("since") < time.time()
        record["sample"] = int(record["sample"]) if record["sample"] == int(record["sample"]) else record["sample"]
        record["counts"] = counts_of(record["counts"])
    return record


def counts_of(counts: list[Record]) -> list[Record]:
    """By what, store, and whether there is a site: several sites of one test are one."""
    sums: dict[tuple[str, str, bool], int] = {}
    for count in counts:
        key = (count["what"], count.get("store", ""), "site" in count)
        sums[key] = sums.get(key, 0) + count["count"]
    return [
        {"what": what} | ({"site": HERE} if sited else {}) | ({"store": store} if store else {}) | {"count": number}
        for (what, store, sited), number in sorted(sums.items())
    ]
