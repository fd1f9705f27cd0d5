"""Reads that wait, or that say what they depend on: the question and the read in one atomic step on one connection.

Written once, as steps on a connection of the sync or of the asyncio client.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from antipode import EMPTY, AntipodeError, Lineage, Ordered, Verdict, WriteId
from antipode.shim import LOOK_S, Read, ReadValue, Visibility, lineage_at_rest, not_yet
from antipode.shim.both_ways import Steps
from redis.exceptions import NoPermissionError, ResponseError

from antipode_redis import field
from antipode_redis.binding import Binding
from antipode_redis.calls import WriteCall
from antipode_redis.commands import Kind, answers, blocks, classify, command_name
from antipode_redis.info import Replication, parse
from antipode_redis.judging import ServerState, judge
from antipode_redis.lines import Late, Line
from antipode_redis.marks import position_of
from antipode_redis.noting import values_of
from antipode_redis.repeating import AnsweringServer, Command, repetition

_BACKOFF_S: Final = (0.001, 0.05)
_INFO: Final = ("INFO", "replication")


class ReadCall(Read):
    """One read, or the reads of one pipeline: what it has to wait for, and who wants to know what it returns."""

    __slots__ = (
        *("_commands", "_is_past", "_native", "binding", "covers", "epoch", "ids", "is_late", "noticed", "refusal"),
        "trouble",
    )

    def __init__(self, binding: Binding, client: Any, commands: Sequence[Command], *, is_told: bool) -> None:
        super().__init__(binding, binding.server, is_told=is_told)
        self.binding = binding
        self.ids: list[WriteId] = []
        self.epoch = ""
        """The server's own epoch, as last seen: whether it is marked decides whether older ones have ended."""
        self.covers: WriteId | None = None
        """The position that says what the value depends on, once it has been read."""
        self.trouble: Visibility | None = None
        """Why the read's writes are not visible, once it has given up."""
        self.refusal: AntipodeError | None = None
        self.is_late = False
        """Whether it waited in vain for an answer, and nothing was read."""
        self._is_past = False
        self._native = client
        self._commands: Sequence[Command] = ()
        self.noticed: AnsweringServer | None = None
        """What meets the connection of a read that is only followed, of a client with several servers."""
        if self.is_noted:
            self._commands = [(tuple(args), dict(options)) for args, options in commands]
            self.noticed = AnsweringServer(binding) if binding.server is None and binding.follows else None

    @property
    def is_plain(self) -> bool:
        """Whether it is sent as redis-py sends it: it waits for nothing, and nobody asks what covers its value."""
        return not self.ids and not self.collects

    def came(self, replies: Sequence[Any]) -> None:
        """Tell what the client returns to the application, a reply a command."""
        binding, server = self.binding, self.binding.server
        if not self.is_noted:
            return
        if server is None and self.noticed is not None:
            server = self.noticed.server
        self.server = None if binding.open else server  # inside a MULTI sent by hand, the value comes with EXEC
        again = None
        if self.server is not None and binding.follows:
            again = repetition(self._native, binding, self._commands, self.server)
        covers = () if self.covers is None else (self.covers,)
        self.returned(lambda: self._values(replies), covers=covers, shown=lambda: replies, repeat=again)

    def _values(self, replies: Sequence[Any]) -> Iterable[ReadValue]:
        return values_of(self._native, self.binding, self._commands, replies) if self.binding.notes else ()

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    @property
    def until(self) -> float | None:
        """When what it waits for has to be there (SHIM-47); None where it waits for nothing."""
        return max(self.deadline, time.monotonic() + LOOK_S) if self.ids else None

    def late(self) -> None:
        """A question of ours was not answered in time (SHIM-47)."""
        self.is_late = True
        self.trouble = not_yet("the server did not answer on this connection, which is closed")

    def saw_position(self, now: Replication | None, beside: Lineage = EMPTY) -> None:
        """Add what a value depends on that was read at this place in replication, with this lineage beside it."""
        position = None if now is None else now.position
        if position is None:
            self.saw(lineage=beside)
            self.mark()
            return
        covers = WriteId(self.binding.store.name, b"", position)
        if self.collects:
            self.covers = covers
        self.saw(covers, lineage=beside)

    def alone(self) -> None:
        """It was executed by itself, on a connection that was made anew since the application's MULTI."""
        if self.ids:
            reason = "the connection was made anew behind MULTI, and nothing waited for the read on the next one"
            self.trouble = Visibility(Verdict.UNPROVEN, reason)

    def is_past(self, proved: Lineage) -> bool:
        """Return whether EXEC would answer with data of which only less was proved, and the policies refuse that."""
        if Lineage(self.ids) <= proved:
            return False
        reason = "nothing was proved of it before the MULTI, and nothing can be asked in it: DISCARD, and begin again"
        self.trouble = Visibility(Verdict.UNPROVEN, reason)
        self._is_past = True
        return self.refuses()

    def judge(self, seen: ServerState) -> Visibility | None:
        """What is missing at the connection's server; None where nothing is."""
        worst: Visibility | None = None
        for write_id in self.ids:
            answer = judge(write_id, seen)
            if answer.verdict is Verdict.UNPROVEN:
                return answer
            if answer.verdict is not Verdict.VISIBLE:
                worst = answer
        return worst

    def foreign(self) -> list[str]:
        """The epochs whose marks are asked for, the server's own first."""
        epochs = sorted({w.version.epoch for w in self.ids if isinstance(w.version, Ordered)})
        others = [epoch for epoch in epochs if epoch != self.epoch]
        return [self.epoch or "-", *others] if others else []

    def refuses(self) -> bool:
        """Return whether a wait in vain keeps what is to be read from being sent: `check` raises then.

        Nothing is raised here, within redis-py's own attempts: it would take a time-out of ours for the server's.
        """
        try:
            self.check()
        except AntipodeError as error:
            self.refusal = error
        return self.refusal is not None

    def check(self) -> None:
        """Raise, once, what the policies say of a wait in vain."""
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            self.refuse(trouble, self.binding.target.address, is_past=self._is_past)


def read_call(binding: Binding, client: Any = None, commands: Sequence[Command] = ()) -> ReadCall | None:
    """Return what a read has to do besides reading; None where it is a plain one.

    commands: what is sent, of which some read; none where only its wait matters.
    """
    if binding.reads_plainly():
        return None
    call = ReadCall(binding, client, commands, is_told=any(classify(args) is Kind.READ for args, _ in commands))
    try:
        call.ids = call.required()
    except BaseException:
        call.end()
        raise
    return call if call.ids or call.collects or call.is_noted else None


def wait_of(call: WriteCall, args: Sequence[Any]) -> ReadCall | None:
    """Return what a command that may write has to wait for, because its reply may hold data; None where it has not."""
    if not (call.binding.waits or call.read) or not answers(args):
        return None
    try:
        found = read_call(call.binding)
    except AntipodeError:
        call.abandon()
        raise
    return found if found is not None and found.ids else None


def wait_steps(line: Line, call: ReadCall, *, multi: bool = True) -> Steps[None]:
    """Waits on this connection, with nothing but questions: before a pipeline, or a read that blocks."""
    yield from line.closing(_wait(line, call, multi))


def _wait(line: Line, call: ReadCall, multi: bool) -> Steps[None]:
    backoff = _BACKOFF_S[0]
    while call.ids:
        try:
            seen = yield from _look(line, call, multi)
        except Late:
            call.late()
            return
        if seen is None:
            return
        backoff, again = yield from _between(line, call, call.judge(seen), backoff)
        if not again:
            return


def _look(line: Line, call: ReadCall, multi: bool) -> Steps[ServerState | None]:
    """Where the connection's server is, with its marks; None (and `trouble`) where it refuses to say.

    `multi` is false on a connection that watches keys: a MULTI of ours would end the application's WATCH.
    """
    for _ in range(3):
        fields = call.foreign()
        asked: list[Sequence[Any]] = [_INFO, ("HMGET", call.binding.key, *fields)] if fields else [_INFO]
        if fields and multi:
            asked = [("MULTI",), *asked, ("EXEC",)]
        yield line.send(*asked)
        replies = []
        for _ in asked:
            replies.append((yield line.receive(raw=True, until=call.until)))
        values = replies[-1] if fields and multi else replies
        found = _answer(values, fields) if isinstance(values, list) else None
        if found is None:
            _refused(call, replies)
            return None
        changed, call.epoch = found.replication.epoch != call.epoch, found.replication.epoch
        if not changed or not call.foreign():
            break
    return found


def read_steps(line: Line, call: ReadCall, args: Sequence[Any], *, raw: bool, multi: bool) -> Steps[Any]:
    """Reads, waits and reads again; returns the reply as it came (an error reply as a value).

    `multi`: the read may stand in a MULTI, where nothing comes between it and the question. Where it may not, the
    question follows it in the same packet. Where an answer does not come in time it was not read (`call.is_late`).
    """
    return (yield from line.closing(_read(line, call, args, raw, multi)))


def _read(line: Line, call: ReadCall, args: Sequence[Any], raw: bool, multi: bool) -> Steps[Any]:
    backoff = _BACKOFF_S[0]
    beside = call.collects and call.binding.rests and command_name(args) in field.READS
    wire = field.wire_read(args) if call.binding.rests else args
    if blocks(args) or not multi:
        yield from _wait(line, call, multi)
        if call.is_late:
            return None
        yield line.send(wire, _INFO)
        value = yield line.receive(raw=raw)
        answer = yield line.receive(raw=True)
        call.saw_position(parsed(answer))
        if beside:
            call.mark()  # another client may have replaced the hash before the field could be asked for
        return value
    while True:
        fields = call.foreign()
        asked: list[Sequence[Any]] = [("MULTI",), _INFO]
        if fields:
            asked.append(("HMGET", call.binding.key, *fields))
        if beside:
            asked.append(("HGET", args[1], field.FIELD))
        asked += [wire, ("EXEC",)]
        yield line.send(*asked)
        replies = []
        try:
            for place in range(len(asked)):
                replies.append((yield line.receive(raw=raw and place == len(asked) - 1, until=call.until)))
        except Late:
            call.late()
            return None
        whole = replies[-1]
        if not isinstance(whole, list):
            return (yield from _aborted(line, call, replies, wire, raw))
        found = _answer(whole, fields)
        if found is None:
            _refused(call, whole)
            call.saw_position(None)
            return whole[-1]
        changed, call.epoch = found.replication.epoch != call.epoch, found.replication.epoch
        if changed and call.foreign():
            continue  # its own epoch is known only now: whether that is marked decides about the others
        trouble = call.judge(found) if call.ids else None
        backoff, again = yield from _between(line, call, trouble, backoff)
        if again:
            continue
        if call.collects:
            rest = whole[-2] if beside else None
            store, options = call.binding.store.name, call.binding.options
            rest = None if isinstance(rest, Exception) else rest
            call.saw_position(found.replication, lineage_at_rest(rest, store, options.lineage_in))
        return whole[-1]


def _between(line: Line, call: ReadCall, trouble: Visibility | None, backoff: float) -> Steps[tuple[float, bool]]:
    """After a look: waits for the next one, if there is to be one."""
    if trouble is None:
        call.trouble = None
        return backoff, False
    call.trouble = trouble
    if trouble.verdict is Verdict.UNPROVEN:
        return backoff, False
    left = call.left
    if left <= 0:
        return backoff, False
    told = yield line.wait_for(Lineage(call.ids), left)
    if told is not Verdict.VISIBLE and call.left <= 0:
        return backoff, True  # one last look
    if told is Verdict.VISIBLE and backoff == _BACKOFF_S[0]:
        return backoff * 2, True
    # The engine may speak of another server than this connection's, or be overloaded: never in a hurry.
    yield line.pause(min(backoff, max(call.left, 0.0)))
    return min(backoff * 2, _BACKOFF_S[1]), True


def _answer(values: list[Any], fields: list[str]) -> ServerState | None:
    """What the replies say; None where the server refuses to say where it is."""
    info = values[0]
    if isinstance(info, Exception):
        return None
    replication = parsed(info)
    if replication is None:
        return None
    if not fields:
        return ServerState(replication, {})
    marks = values[1] if len(values) > 1 else None
    if not isinstance(marks, list):
        if isinstance(marks, Exception) and not _unreadable(marks):
            return None
        return ServerState(replication, {}, marks_known=False, why_no_marks=f"its marks cannot be read ({marks})")
    found = {name: position_of(value) for name, value in zip(fields, marks, strict=True)}
    return ServerState(replication, {name: at for name, at in found.items() if at is not None})


def _unreadable(error: Exception) -> bool:
    """An error that says of the marks that they cannot be read, and nothing against the rest of the answer."""
    return isinstance(error, NoPermissionError) or str(error).startswith("WRONGTYPE")


def _aborted(line: Line, call: ReadCall, replies: list[Any], wire: Sequence[Any], raw: bool) -> Steps[Any]:
    """The MULTI was refused: by the read itself, whose error the application gets, or by what we asked beside it."""
    errors = [reply for reply in replies if isinstance(reply, ResponseError)]
    if isinstance(replies[-2], ResponseError):
        return replies[-2]
    _refused(call, errors)
    call.saw_position(None)
    yield line.send(wire)
    return (yield line.receive(raw=raw))


def _refused(call: ReadCall, replies: Sequence[Any]) -> None:
    error = next((reply for reply in replies if isinstance(reply, Exception)), None)
    if call.ids:
        call.trouble = Visibility(Verdict.UNPROVEN, f"its user may not ask where it is ({error})")
    call.binding.denied(str(error))


def parsed(reply: Any) -> Replication | None:
    """The answer to the question; None where it is an error or none came."""
    if isinstance(reply, Exception) or reply is None:
        return None
    try:
        return parse(reply)
    except ValueError:
        return None
