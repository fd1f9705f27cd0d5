"""The adversary: random programs of an application, through a store's wrapped client, on real servers (spec SHIM-49).

A seed draws what a program does: it enters scopes, begins, writes in one of the store's ways, commits in one of them,
rolls back, chains, kills its connection; what leaves a scope in between is kept. Each write has a row of its own, so
that the rows at the primary tell, without Antipode, what was committed. Nothing reaches the replicas meanwhile, but
once, in the middle: what a scope has recorded before that does not hide that it loses what comes behind. Of what is at
the primary, and at none of the replicas, four things have to hold:

1. *Recorded*: a barrier on what left a scope that wrote or committed it does not pass as complete; nor did its own.
2. *Waiting*: a read that waits, in a scope that came with that, gives no answer, in any way in which the store is read.
3. *Serving*: the wrapped client raises nothing but what the plain one raises.
4. *Visible*: while the links carry again, each replica has the rows behind a barrier that passes; and each passes:
   what was rolled back is not waited for.
5. *Plain*: the same program on the plain client gives the same results and exceptions, and leaves the same rows.

A store gives a `Stage`; `play(stage, runs, seed)` plays programs and makes smaller what it finds, `check(tally)`
asserts that nothing was found and that enough was looked at. Where a rule is taken out of a shim, `search` has to find
something.
"""

from __future__ import annotations

import random
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypeAlias

from antipode._model.errors import AntipodeError
from antipode._model.lineage import Lineage
from antipode.testing.application import Application, HereApplication

__all__ = ["Finding", "Program", "Stage", "Step", "Tally", "check", "draw", "play", "search"]

_AT_ONCE: Final = 16
BATCH: Final = 20
"""So many programs are played between a cut of the links and their healing."""
PATIENCE_S: Final = 30.0
"""Within which what is at the primary comes to the replicas, on a busy machine."""
_READ_S: Final = 0.05
"""How long a read waits that has to wait in vain, in seconds."""
_MOST_FOUND: Final = 5
Patch: TypeAlias = AbstractContextManager[object]
_VALUES: Final = (type(None), bool, int, float, str, bytes, list, tuple, dict, set)


class Stage(ABC):
    """A store with a primary and replicas whose links can be cut, in the words of the adversary.

    `open` and `reader` wrap clients under `name`, with `replicas=` all `replicas`.
    """

    name: ClassVar[str] = "adversary"
    """The store's logical name."""
    errors: ClassVar[tuple[type[Exception], ...]]
    """What the plain client raises."""
    writes: ClassVar[Mapping[str, Callable[[Any, str], object]]]
    """Ways to write a row that nobody wrote before, by its name; each may fail."""
    acts: ClassVar[Mapping[str, Callable[[Any], object]]]
    """What else an application does with a client: begin, commit, roll back, save, chain, prepare, be killed."""
    reads: ClassVar[Mapping[str, Callable[[Any, str], Any]]]
    """Ways to look by a `reader` whether a row is there."""
    replicas: Sequence[str]
    """The servers that readers use."""
    commits_at_once: ClassVar[bool] = False
    """Whether the primary has a row when the call that commits it returns: then its scope wrote it, too (SCOPE-24)."""
    application: Application = HereApplication()
    """Where clients and scopes live."""

    @abstractmethod
    def open(self, kind: int, *, plain: bool = False) -> Any:
        """Return a new wrapped client of the primary, in whatever form `writes` and `acts` take it.

        kind: a number that chooses which of the store's clients it is, and how it begins.
        plain: the same, but without Antipode.
        """

    @abstractmethod
    def close(self, client: Any) -> None:
        """Close a client, whatever state it is in."""

    @abstractmethod
    def reader(self) -> Any:
        """Return a wrapped client of a replica whose reads wait (`wait_on_read=True`)."""

    @abstractmethod
    def rows(self, server: str | None = None) -> set[str]:
        """Return the rows at a server, the primary where none is named, asked without Antipode (by any thread)."""

    def contents(self) -> Mapping[str, object]:
        """Return what an application sees of each row at the primary, however often it is played."""
        return dict.fromkeys(self.rows())

    def tell(self, result: Any) -> str:
        """Return what a call's result or exception says, however often it is played; of an object that it is one."""
        if isinstance(result, Exception):
            return re.sub(r" at 0x[0-9a-f]+", "", f"{type(result).__name__}: {result}")
        return repr(result) if isinstance(result, _VALUES) else "an object"

    @abstractmethod
    def clear(self) -> None:
        """Delete all rows, and have everything as before the first program."""

    @abstractmethod
    def cut(self) -> None:
        """Have nothing reach the replicas from now on; they answer. What is at the primary now has reached them."""

    @abstractmethod
    def heal(self) -> None:
        """Have the links carry again."""


@dataclass(frozen=True)
class Step:
    """What a program does next, in a scope and by a client, both by their numbers."""

    kind: str
    """`write`, `act`, `leave`: something leaves the scope; or `end`: the scope ends, and its number names a new one."""
    scope: int
    client: int
    way: str = ""
    number: int = 0
    """Of the row that it writes, within the program."""


@dataclass(frozen=True)
class Program:
    """What is played: a seed, the kind of each client, and the steps."""

    seed: int
    kinds: tuple[int, ...]
    pause: int
    """Before this step what is at the primary reaches the replicas."""
    steps: tuple[Step, ...]

    @property
    def prefix(self) -> str:
        """What the names of its rows begin with; those of a smaller program are others."""
        return f"adv-{self.seed}-{zlib.crc32(repr(self.steps).encode()):x}-"

    def row(self, step: Step) -> str:
        """Return the name of the row that a step writes."""
        return f"{self.prefix}{step.number}"

    def lines(self) -> Iterator[str]:
        """Return what happens, for people."""
        for number, step in enumerate(self.steps):
            if number == self.pause:
                yield "  the replicas catch up"
            client = f"client {step.client} (kind {self.kinds[step.client]}): " if step.way else ""
            yield f"  scope {step.scope}: {client}{step.kind} {step.way} {step.number or ''}".rstrip()


@dataclass(frozen=True)
class Finding:
    """What must not be."""

    program: Program
    rule: str
    words: str

    def __str__(self) -> str:
        return "\n".join([f"seed {self.program.seed}, {self.rule}: {self.words}", *self.program.lines()])


@dataclass
class Tally:
    """What was played, and what was found."""

    programs: int = 0
    writes: int = 0
    committed: int = 0
    texts: int = 0
    """What left scopes that had written what was committed."""
    whole: int = 0
    """Those of them that were complete."""
    reads: int = 0
    refused: int = 0
    """Reads in which the client raised, and not the wait; they are tried again when all has arrived."""
    unproven: int = 0
    """Texts that no barrier passes, though all has arrived: the servers cannot tell."""
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{value} {name}" for name, value in vars(self).items() if name != "findings")
        return "\n".join([counts, *map(str, self.findings)])


@dataclass
class _Run:
    """One program as it was played."""

    program: Program
    wrote: dict[int, set[str]] = field(default_factory=dict)
    """The rows that each scope tried to write, by its number."""
    texts: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    """What left, with the rows that its scope had tried to write by then."""
    passes: list[frozenset[str]] = field(default_factory=list)
    """The rows of scopes whose own barrier passed as complete."""
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    """Ways to read, with the text and the row of which the client raised something."""
    told: list[tuple[str, str, str]] = field(default_factory=list)
    """What each call was, what it gave or raised, and before both which rule it breaks where the plain one differs."""
    findings: list[Finding] = field(default_factory=list)

    def find(self, rule: str, words: str) -> None:
        self.findings.append(Finding(self.program, rule, words))


def draw(seed: int, stage: Stage) -> Program:
    """Return the program of a seed: few of the store's ways a program, so that rare ones meet."""
    chance = random.Random(seed)
    writes = chance.sample(sorted(stage.writes), min(len(stage.writes), chance.randint(1, 4)))
    acts = chance.sample(sorted(stage.acts), min(len(stage.acts), chance.randint(1, 6)))
    scopes, kinds = chance.randint(1, 3), tuple(chance.randrange(1000) for _ in range(chance.randint(1, 2)))
    steps: list[Step] = []
    for number in range(1, chance.randint(4, 14)):
        [kind] = chance.choices(["write", "act", "leave", "end"], [8, 7, 3, 1])
        way = chance.choice({"write": writes, "act": acts}.get(kind, [""]))
        of_row = number if kind == "write" else 0
        steps.append(Step(kind, chance.randrange(scopes), chance.randrange(len(kinds)), way, of_row))
    return Program(seed, kinds, chance.randint(0, len(steps)), tuple(steps))


class _Player:
    """Plays one program: its scopes live side by side."""

    def __init__(self, stage: Stage, program: Program, *, plain: bool = False) -> None:
        self._stage = stage
        self._run = _Run(program)
        self._plain = plain
        self._application = stage.application
        self._scopes: dict[int, Any] = {}
        self._clients: dict[int, Any] = {}
        self._tried: set[str] = set()

    def begin(self) -> None:
        """Play what comes before the pause."""
        for step in self._run.program.steps[: self._run.program.pause]:
            self._do(step)

    def end(self) -> _Run:
        """Play the rest; every scope's lineage leaves once more before its clients are closed, and behind that."""
        for step in self._run.program.steps[self._run.program.pause :]:
            self._do(step)
        for number in list(self._scopes):
            self._leave(number)
        for client in self._clients.values():
            with suppress(*self._stage.errors):
                self._stage.close(client)
        for number in list(self._scopes):
            self._end(number)
        return self._run

    def _do(self, step: Step) -> None:
        entered = self._scope(step.scope)
        if step.kind == "end":
            self._end(step.scope)
        elif step.kind == "leave":
            self._leave(step.scope)
        else:
            rows = [self._run.program.row(step)] if step.kind == "write" else []
            way: Any = (self._stage.writes if rows else self._stage.acts)[step.way]
            wrote, client = self._run.wrote.setdefault(step.scope, set()), self._client(step.client)
            wrote.update(rows)
            self._tried.update(rows)
            self._guard(step, lambda: self._application.run(entered, way, client, *rows))
            if self._tried and self._stage.commits_at_once and not self._plain:
                there = self._tried & self._stage.rows()
                wrote.update(there)
                self._tried -= there

    def _guard(self, step: Step, call: Callable[[], object]) -> None:
        rule = "plain"
        try:
            said = self._stage.tell(call())
        except Exception as error:
            said = self._stage.tell(error)
            rule = "plain" if isinstance(error, self._stage.errors) else "serving"
        self._run.told.append((rule, step.way, said))

    def _scope(self, number: int) -> Any:
        if number not in self._scopes:
            self._scopes[number] = self._application.enter()
        return self._scopes[number]

    def _client(self, number: int) -> Any:
        if number not in self._clients:
            self._clients[number] = self._stage.open(self._run.program.kinds[number], plain=self._plain)
        return self._clients[number]

    def _leave(self, number: int) -> None:
        entered = self._scope(number)
        rows = frozenset(self._run.wrote.get(number, ()))
        self._run.texts.append((self._application.leave(entered), rows))
        if self._application.look(entered).passes:
            self._run.passes.append(rows)

    def _end(self, number: int) -> None:
        self._leave(number)
        self._application.end(self._scopes.pop(number))
        self._run.wrote.pop(number, None)


def play(stage: Stage, runs: int, seed: int, say: Callable[[str], object] | None = None) -> Tally:
    """Play the programs of so many seeds; make what is found smaller. The caller has a registry of its own."""
    tally = Tally()
    for programs in _batches(stage, runs, seed):
        for finding in _play(stage, programs, tally):
            smaller = _shrink(stage, finding)
            tally.findings.append(smaller)
            if say is not None:
                say(str(smaller))
        if len(tally.findings) >= _MOST_FOUND:
            break
    return tally


def search(stage: Stage, runs: int, seed: int, patches: Iterable[Patch]) -> Finding | None:
    """Return the first thing that programs find while these patches break the shim; None where they find nothing."""
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        for programs in _batches(stage, runs, seed):
            for finding in _play(stage, programs, Tally()):
                return finding
    return None


def _batches(stage: Stage, runs: int, seed: int) -> Iterator[list[Program]]:
    for first in range(seed, seed + runs, BATCH):
        yield [draw(each, stage) for each in range(first, min(first + BATCH, seed + runs))]


def _play(stage: Stage, programs: Sequence[Program], tally: Tally) -> list[Finding]:
    """Play programs side by side in one cut of the links; return the first finding of each."""
    stage.application.configure(_READ_S)
    stage.clear()
    players = [_Player(stage, program) for program in programs]
    with _cut(stage):
        reader = stage.reader()
        for player in players:
            player.begin()
    with _cut(stage):
        arrived = set[str]().union(*map(stage.rows, stage.replicas))
        runs = [player.end() for player in players]
        there, held = stage.rows(), stage.contents()
        for run in runs:
            _judge_record(stage, run, there - arrived, tally)
            _judge_reads(stage, reader, run, there - arrived, tally)
        stage.close(reader)
        with ThreadPoolExecutor(_AT_ONCE) as threads:  # barriers wait before anything arrives
            judging = [threads.submit(_judge_passes, stage, run, there, tally) for run in runs]
            stage.heal()
            for each in judging:
                each.result()
    stage.application.configure(PATIENCE_S)
    for run in runs:
        _judge_refused(stage, run)
    _judge_plain(stage, runs, held)
    return [run.findings[0] for run in runs if run.findings]


@contextmanager
def _cut(stage: Stage) -> Iterator[None]:
    stage.cut()
    try:
        yield
    finally:
        stage.heal()


def _judge_record(stage: Stage, run: _Run, there: set[str], tally: Tally) -> None:
    tally.programs += 1
    tally.writes += sum(step.kind == "write" for step in run.program.steps)
    tally.committed += len({run.program.row(step) for step in run.program.steps} & there)
    for rows in run.passes:
        if rows & there:
            run.find("recorded", f"the scope's own barrier passed without {_one(rows & there)}")
    for text, rows in run.texts:
        missing = rows & there
        if not missing:
            continue
        lineage = Lineage.deserialize(text)
        tally.texts += 1
        tally.whole += not lineage.incomplete
        if stage.application.judge(text).passes:
            run.find("recorded", f"a barrier on {text!r} passed without {_one(missing)}")


def _judge_reads(stage: Stage, reader: Any, run: _Run, there: set[str], tally: Tally) -> None:
    texts = [(text, rows & there) for text, rows in run.texts if rows & there]
    for text, missing in texts[-1:]:
        lineage = Lineage.deserialize(text)
        if lineage.incomplete:
            continue  # it says so itself
        chance = random.Random(run.program.seed)
        for way in chance.sample(sorted(stage.reads), min(2, len(stage.reads))):
            tally.reads += 1
            try:
                found = _read(stage, way, reader, text, _one(missing))
            except AntipodeError:
                continue
            except Exception as error:
                if not isinstance(error, stage.errors):
                    run.find("serving", f"{way}: {type(error).__name__}: {error}")
                tally.refused += 1
                run.refused.append((way, text, _one(missing)))
                continue
            if not found:
                run.find("waiting", f"{way} did not wait for {text!r}, and did not show {_one(missing)}")


def _read(stage: Stage, way: str, reader: Any, text: str, row: str) -> Any:
    """Read in a scope that came with a text."""
    entered = stage.application.enter(text)
    try:
        return stage.application.run(entered, stage.reads[way], reader, row)
    finally:
        stage.application.end(entered)


def _judge_refused(stage: Stage, run: _Run) -> None:
    """What raised while the row was not there has to show it now: else it never waited, and raises always."""
    for way, text, row in run.refused:
        reader = stage.reader()  # a question that was late has closed the first one's connection (SHIM-47)
        try:
            found = _read(stage, way, reader, text, row)
        except Exception as error:
            run.find("waiting", f"{way} reads nothing: {type(error).__name__}: {error}")
            continue
        finally:
            stage.close(reader)
        if not found:
            run.find("waiting", f"{way} did not show {row}, which is there")


def _judge_passes(stage: Stage, run: _Run, there: set[str], tally: Tally) -> None:
    for text, rows in run.texts:
        lineage = Lineage.deserialize(text)
        result = stage.application.judge(text, PATIENCE_S)
        if result.satisfied and not lineage.incomplete:
            for server in stage.replicas:
                if missing := (rows & there) - stage.rows(server):
                    run.find("visible", f"a barrier on {text!r} passed without {_one(missing)} at {server}")
        elif not lineage.incomplete and not result.satisfied:
            if result.unproven:
                tally.unproven += 1
            else:
                run.find("visible", f"a barrier on {text!r} does not pass though all has arrived: {result.words}")


def _judge_plain(stage: Stage, runs: Sequence[_Run], held: Mapping[str, object]) -> None:
    """Play the programs once more, in the same order, by plain clients and on nothing."""
    stage.clear()
    players = [_Player(stage, run.program, plain=True) for run in runs]
    for player in players:
        player.begin()
    plains = [player.end() for player in players]
    left = stage.contents()
    for run, plain in zip(runs, plains, strict=True):
        for (rule, way, said), (*_, plainly) in zip(run.told, plain.told, strict=True):
            if said != plainly:
                run.find(rule, f"{way} gave {said}, and {plainly} by the plain client")
        for row in sorted(row for row in held.keys() | left.keys() if row.startswith(run.program.prefix)):
            if (row in held, held.get(row)) != (row in left, left.get(row)):
                run.find(
                    "plain",
                    f"{row} is {held.get(row, 'not there')}, and {left.get(row, 'not there')} by the plain client",
                )


def _one(rows: Iterable[str]) -> str:
    return min(rows)


def _shrink(stage: Stage, finding: Finding) -> Finding:
    """Return the same fault of a program without the steps that it does not take."""
    best, place = finding, 0
    while place < len(best.program.steps):
        steps = best.program.steps
        smaller = replace(best.program, steps=steps[:place] + steps[place + 1 :])
        same = [each for each in _play(stage, [smaller], Tally()) if each.rule == finding.rule]
        if same:
            best, place = same[0], 0
        else:
            place += 1
    return best


def check(tally: Tally, *, most_unproven: float = 0.02) -> None:
    """Assert that nothing was found, and that it was looked for: rows were committed, and lineages were complete."""
    assert not tally.findings, f"{tally}"
    assert tally.committed > tally.programs / 3, f"hardly anything was committed: {tally}"
    assert tally.whole > tally.texts / 4, f"hardly a lineage was complete: {tally}"
    assert tally.unproven <= most_unproven * max(tally.texts, 50), f"too much could not be proved: {tally}"
