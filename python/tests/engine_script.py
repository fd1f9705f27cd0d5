"""Run a script of spec/vectors/engine-script.json: the engine is real, the servers answer when the script says so.

Nothing here depends on when the engine asks: a question is held until its answer comes, all waits are for conditions.
"""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import antipode
from antipode import BarrierResult, Lineage, Ordered, UnprovenKind, WriteId
from antipode._model.verdict import NOT_YET, VISIBLE, not_yet, unproven
from antipode.shim import Capabilities, Server, Shim, Store, StoreOptions, Visibility, Watch, join_store

DEADLINE_S: Final = 60.0
_SETTINGS: Final[dict[str, Any]] = {"free_path_ttl": 3600, "replica_out_after": 60, "reconnect": 3600, "poll": 0.005}
_POLICIES: Final[dict[str, Any]] = {"on_timeout": "proceed", "on_unproven": "proceed"}
_WORDS: Final = {
    "visible": VISIBLE,
    "not_yet": NOT_YET,
    "unknown_epoch": not_yet("it does not know the epoch", unknown_epoch=True),
    "unanswered": not_yet("it is loading", unanswered=True),
    "unproven": unproven("the script says so"),
} | {f"unproven-{kind}": unproven("the script says so", kind) for kind in UnprovenKind}


def until(condition: Callable[[], object], what: object) -> None:
    """Block until the condition holds; fail after a minute."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.002)


@dataclass(frozen=True)
class Reply:
    """What a server says in answer to a question."""

    says: Mapping[str, str] = field(default_factory=dict)
    applied: Mapping[str, str] | None = field(default_factory=dict)
    epoch: str = "e1"
    instance: str = "i1"
    fault: str = ""
    replaced: bool = False

    @classmethod
    def of(cls, step: dict[str, Any]) -> Reply:
        return cls(**{name: step[name] for name in cls.__dataclass_fields__ if name in step})

    def positions(self) -> dict[str, int]:
        found = {} if self.applied is None else {self.epoch: "0", **self.applied}
        return {epoch: int(counter) for epoch, counter in found.items()}

    def visibility(self, name: str, write_id: WriteId) -> Visibility:
        if name in self.says:
            return _WORDS[self.says[name]]
        if not write_id.is_position:
            return NOT_YET
        assert isinstance(write_id.version, Ordered)
        epoch, counter = write_id.version
        return VISIBLE if self.positions().get(epoch, -1) >= counter else NOT_YET

    def answers(self, ids: Sequence[WriteId], server: Server, names: Mapping[WriteId, str]) -> Sequence[Visibility]:
        """Answer as a shim does: the proofs of the reply first, then a word for each write."""
        if self.fault == "silent":
            raise ConnectionRefusedError("connection refused")
        if self.fault == "own":
            raise OSError(errno.EMFILE, "Too many open files")
        if self.fault == "refused":
            raise RuntimeError("the server refuses")
        if self.applied is not None and server.store.gives_positions:
            server.applied(self.instance, self.epoch, self.positions())
        if self.replaced:
            on_own_thread(server.reset)
        return [self.visibility(names.get(write_id, ""), write_id) for write_id in ids]


def on_own_thread(call: Callable[[], None]) -> None:
    """Call as a channel's thread does, and wait for it."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(DEADLINE_S)


class Question:
    """A question that is held."""

    def __init__(self, ids: Sequence[WriteId]) -> None:
        self.ids = ids
        self.reply: Reply | None = None
        self.goes = threading.Event()


class Scripted:
    """One server: what it shows, and whether the questions that ask for writes are held."""

    def __init__(self, name: str, names: Mapping[WriteId, str]) -> None:
        self.name = name
        self.names = names
        self.shows = Reply()
        self.holds = self.holds_all = False
        self.held: Question | None = None
        self.on_change: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def ask(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        with self._lock:
            question = Question(ids) if self.holds_all or (self.holds and ids) else None
            self.held = question
        if question is not None:
            question.goes.wait(10 * DEADLINE_S)
        reply = question.reply if question is not None and question.reply is not None else self.shows
        return reply.answers(ids, server, self.names)

    def is_asked_for(self, names: Sequence[str]) -> bool:
        """Return whether a question is held that asks for these writes; let go one that does not."""
        held = self.held
        is_there = held is not None and set(names) <= {self.names.get(each, "") for each in held.ids}
        if held is not None and not is_there:
            self.let_go()
        return is_there

    def let_go(self, reply: Reply | None = None) -> None:
        with self._lock:
            held, self.held = self.held, None
        if held is not None:
            held.reply = reply
            held.goes.set()

    def hold_all(self, value: bool) -> None:
        """Hold also what asks for nothing; behind that, let go what would not have been held."""
        with self._lock:
            self.holds_all = value
            goes = not value and not (self.holds and self.held is not None and self.held.ids)
        if goes:
            self.let_go()


class QuietChannel:
    def fileno(self) -> int | None:
        return None

    def pump(self) -> None:
        """The script calls back."""

    def close(self) -> None:
        """Nothing is open."""


class ScriptedShim(Shim):
    kind: ClassVar[str] = "scripted"

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        target: Scripted = server.target
        return target.ask(ids, server)

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        return self.visible(ids, server)

    def watch(self, server: Server, on_change: Callable[[], None]) -> Watch:
        server.target.on_change = on_change
        return QuietChannel()

    def address(self, target: object) -> str:
        assert isinstance(target, Scripted)
        return target.name


def shim_of(said: dict[str, Any]) -> type[ScriptedShim]:
    class Made(ScriptedShim):
        capabilities: ClassVar[Capabilities] = Capabilities(
            versions=said.get("versions", "position"),
            push=said.get("push", False),
            blocking_wait=said.get("waits", False),
        )
        own_pace: ClassVar[float] = 0.005 if said.get("in_turns") else 0.0

    return Made


class Call:
    """One call, in a thread of its own; as a task of its own event loop where the script cancels it."""

    def __init__(self, writes: Sequence[WriteId], step: dict[str, Any]) -> None:
        self.result: BarrierResult | None = None
        self.error = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[BarrierResult] | None = None
        self._call = {
            "timeout": step.get("timeout_ms", 60_000) / 1000,
            "reach": step.get("reach"),
            "require_complete": step.get("require_complete", False),
            **_POLICIES,
        }
        self._lineage = Lineage(writes)
        self.thread = threading.Thread(target=self._run, args=(step.get("task", False),), daemon=True)
        self.thread.start()

    def _run(self, is_task: bool) -> None:
        try:
            self.result = asyncio.run(self._await()) if is_task else antipode.barrier(self._lineage, **self._call)
        except asyncio.CancelledError:
            self.error = "cancelled"
        except Exception as error:
            self.error = type(error).__name__

    async def _await(self) -> BarrierResult:
        self._task = asyncio.create_task(antipode.barrier_async(self._lineage, **self._call))
        self._loop = asyncio.get_running_loop()
        return await self._task

    def cancel(self) -> None:
        until(lambda: self._loop, "the task")
        assert self._loop is not None
        assert self._task is not None
        self._loop.call_soon_threadsafe(self._task.cancel)


def write_id_of(entry: dict[str, str]) -> WriteId:
    version = Ordered(entry["epoch"], int(entry["counter"]))
    return WriteId(entry["store"], entry["key"].encode(), version)


def settings_of(said: dict[str, Any]) -> dict[str, Any]:
    """Return settings by their names in Python, durations in seconds."""
    return {name.removesuffix("_ms"): value / 1000 if name.endswith("_ms") else value for name, value in said.items()}


class Script:
    """One case: its stores and servers, and the steps."""

    def __init__(self, case: dict[str, Any]) -> None:
        self._writes = {name: write_id_of(entry) for name, entry in case["writes"].items()}
        self._names = {write_id: name for name, write_id in self._writes.items()}
        self._servers: dict[str, Scripted] = {}
        self._shims: dict[str, type[ScriptedShim]] = {}
        self._stores: dict[str, Store] = {}
        self._listed: dict[str, list[str] | None] = {}
        self._listings: dict[str, int] = {}
        self._calls: dict[str, Call] = {}
        self._steps = case["steps"]
        antipode.configure(**_SETTINGS | settings_of(case.get("settings", {})))
        for name, said in case["stores"].items():
            self._register(name, said)

    def _register(self, name: str, said: dict[str, Any]) -> None:
        shim = self._shims[name] = shim_of(said)
        replicas: Any = [self._server(each) for each in said["servers"]]
        if said.get("discovers"):
            self._listed[name], self._listings[name] = said["servers"], 0
            replicas = lambda: self._listing(name)  # noqa: E731
        self._stores[name] = join_store(name, shim, StoreOptions(replicas=replicas))
        for own in said.get("own", ()):
            self._stores[name].use_server(self._server(own), listed=True)

    def _listing(self, store: str) -> list[Scripted]:
        self._listings[store] += 1
        listed = self._listed[store]
        if listed is None:
            raise RuntimeError("the list cannot be had")
        return [self._server(each) for each in listed]

    def _server(self, name: str) -> Scripted:
        return self._servers.setdefault(name, Scripted(name, self._names))

    def _engine(self, name: str) -> Server | None:
        """Return the engine's own of this server, where it has joined."""
        return next((found for store in self._stores.values() if (found := store.server_at(name)) is not None), None)

    def run(self) -> None:
        try:
            with antipode.scope(Lineage(self._writes.values())):
                for number, step in enumerate(self._steps):
                    try:
                        self._do(step)
                    except AssertionError as error:
                        raise AssertionError(f"step {number}, {step}: {error}") from error
        finally:
            for server in self._servers.values():
                server.holds = server.holds_all = False
                server.let_go()

    def _do(self, step: dict[str, Any]) -> None:
        getattr(self, f"_do_{step['do']}")(step)

    def _at(self, step: dict[str, Any]) -> list[Scripted]:
        return [self._server(step["at"])] if "at" in step else list(self._servers.values())

    # The steps

    def _do_hold(self, step: dict[str, Any]) -> None:
        for server in self._at(step):
            server.holds = True

    def _do_open(self, step: dict[str, Any]) -> None:
        for server in self._at(step):
            server.holds = False
            server.let_go()

    def _do_show(self, step: dict[str, Any]) -> None:
        self._server(step["at"]).shows = Reply.of(step)

    def _do_asked(self, step: dict[str, Any]) -> None:
        until(lambda: self._server(step["at"]).is_asked_for(step.get("for", [])), "a question")

    def _do_answer(self, step: dict[str, Any]) -> None:
        self._do_asked({"at": step["at"]})
        server, reply = self._server(step["at"]), Reply.of(step)
        if not step.get("once"):
            server.shows = replace(reply, replaced=False)
        server.let_go(reply)

    def _do_replaced(self, step: dict[str, Any]) -> None:
        server = self._engine(step["at"])
        assert server is not None
        on_own_thread(server.reset)

    def _do_push(self, step: dict[str, Any]) -> None:
        server = self._server(step["at"])
        until(lambda: server.on_change, "a channel")
        assert server.on_change is not None
        on_own_thread(server.on_change)

    def _do_awaited(self, step: dict[str, Any]) -> None:
        def as_said() -> bool:
            server = self._engine(step["at"])
            return server is not None and bool(server.awaited) is step["is"]

        until(as_said, "who waits there")

    def _do_elapse(self, step: dict[str, Any]) -> None:
        end = time.monotonic() + step["ms"] / 1000
        until(lambda: time.monotonic() >= end, "time")

    def _do_wrap(self, step: dict[str, Any]) -> None:
        store = step["store"]
        join_store(store, self._shims[store], StoreOptions(replicas=[self._server(step["at"])]))

    def _do_discovery(self, step: dict[str, Any]) -> None:
        store = self._stores[step["store"]]
        before = self._listings[store.name]
        self._listed[store.name] = names = step["names"]
        until(lambda: store.replicas and self._listings[store.name] > before, "the servers to be listed again")
        if names:
            until(lambda: set(store.replicas) == set(names), "the servers that are listed")

    def _do_barrier(self, step: dict[str, Any]) -> None:
        writes = [self._writes[each] for each in step.get("writes", self._writes)]
        self._calls[step["call"]] = Call(writes, step)

    def _do_waits(self, step: dict[str, Any]) -> None:
        assert self._calls[step["call"]].thread.is_alive(), "it is over"

    def _do_cancel(self, step: dict[str, Any]) -> None:
        self._calls[step["call"]].cancel()

    def _do_free(self, step: dict[str, Any]) -> None:
        servers = list(self._servers.values())
        for server in servers:
            server.hold_all(True)
        passed = antipode.barrier(timeout=0.0, **_POLICIES).satisfied
        for server in servers:
            server.hold_all(False)
        assert passed is step["is"]

    def _do_outcome(self, step: dict[str, Any]) -> None:
        call = self._calls[step["call"]]
        call.thread.join(2 * DEADLINE_S)
        assert not call.thread.is_alive(), "it is not over"
        assert call.error == step.get("error", "")
        if call.result is not None:
            compare(call.result, step)


def compare(result: BarrierResult, step: dict[str, Any]) -> None:
    """Fail where a result is not what the step says."""
    stores = result.stores
    found = {
        "satisfied": result.satisfied,
        "complete": result.complete,
        "verdicts": {name: store.verdict for name, store in stores.items()},
        "kinds": {name: store.kind for name, store in stores.items() if store.kind is not None},
        "left_out": sorted(name for store in stores.values() for name in store.left_out),
        "servers": sorted(server.address for store in stores.values() for server in store.servers),
        "overloaded": any(store.overloaded for store in stores.values()),
    }
    wanted = {"kinds": {}, "left_out": [], **step}
    assert {name: found[name] for name in found if name in wanted} == {
        name: wanted[name] for name in found if name in wanted
    }, result.explain()
