"""What a barrier proved (spec BAR): a verdict a store, and two bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NoReturn

from antipode._model.display import escaped, listed, shown
from antipode._model.errors import AntipodeError, with_code
from antipode._model.scope_values import Gap
from antipode._model.verdict import UnprovenKind, Verdict

_UNPROVEN_CODES: Final[Mapping[UnprovenKind, str]] = {
    UnprovenKind.HISTORY: "AP202",
    UnprovenKind.RIGHT: "AP203",
    UnprovenKind.CONNECTION: "AP204",
    UnprovenKind.NOT_OPENED: "AP104",
    UnprovenKind.MISSPELT: "AP107",
    UnprovenKind.DISCOVERY: "AP207",
    UnprovenKind.UNFIT: "AP208",
    UnprovenKind.OWN_FAULT: "AP209",
    UnprovenKind.OTHER: "AP299",
}


@dataclass(frozen=True, slots=True)
class ServerResult:
    """What was found out about one server."""

    address: str
    verdict: Verdict
    reason: str = ""
    left_out: bool = False
    """It does not answer, or is not listed any more, and the pass does not speak of it."""
    kind: UnprovenKind | None = None
    """Where it is unproven: what kept it from being proved."""
    overloaded: bool = False
    """Where it is late: overload answered, before the deadline."""

    @property
    def told(self) -> str:
        """The reason in words that name the server."""
        return f"{self.address} {self.reason}" if self.left_out else self.reason


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What was found out about one store, how long that took in seconds, and why."""

    verdict: Verdict
    reason: str
    waited: float = 0.0
    servers: tuple[ServerResult, ...] = ()
    kind: UnprovenKind | None = None
    """Where it is unproven: what kept it from being proved (BAR-59)."""
    overloaded: bool = False
    """Where it is late: overload answered, before the deadline (BAR-39, BAR-40)."""
    has_open_branch: bool = False
    """Where it is late: what is late is an open branch (BRANCH-12)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", escaped(self.reason))  # it may tell what a lineage holds (OBS-12)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The servers that did not answer and of which a pass does not speak."""
        return tuple(server.address for server in self.servers if server.left_out)

    @property
    def code(self) -> str:
        """The message code of the verdict, as `AP201`; empty where all is visible (spec OBS-15)."""
        if self.verdict is Verdict.VISIBLE:
            return "AP206" if self.left_out else ""
        if self.verdict is Verdict.ELSEWHERE:
            return "AP103"
        if self.verdict is Verdict.UNPROVEN:
            return _UNPROVEN_CODES[self.kind or UnprovenKind.OTHER]
        if self.overloaded:
            return "AP205"
        return "AP210" if self.has_open_branch else "AP201"


@dataclass(frozen=True, init=False)
class BarrierResult:
    """The outcome of a barrier. It has no truth value: ask for `satisfied` or `complete`."""

    satisfied: bool
    """Nothing that was asked for is missing here."""
    waited: float
    """Seconds."""
    vacuous: bool
    """The lineage had writes, and none of their stores is registered here."""
    dry_run: bool
    _judge: Callable[[], Mapping[str, StoreResult]] = field(repr=False, compare=False)
    _left_unjudged: bool = field(repr=False)
    _off: tuple[str, ...] | None = field(repr=False)
    """Stores of the lineage whose mode is off; None where Antipode itself is."""
    gaps: tuple[Gap, ...]
    """Why it is not complete, as far as this process knows."""

    def __init__(
        self,
        *,
        satisfied: bool,
        waited: float,
        vacuous: bool = False,
        dry_run: bool = False,
        _judge: Callable[[], Mapping[str, StoreResult]] = dict,
        _left_unjudged: bool = False,
        _off: tuple[str, ...] | None = (),
        gaps: tuple[Gap, ...] = (),
    ) -> None:
        self.__dict__.update(  # at once: what is frozen is else set by a call a field
            satisfied=satisfied,
            waited=waited,
            vacuous=vacuous,
            dry_run=dry_run,
            _judge=_judge,
            _left_unjudged=_left_unjudged,
            _off=_off,
            gaps=gaps,
        )

    @cached_property
    def stores(self) -> Mapping[str, StoreResult]:
        """The verdict of each store of the lineage, by name."""
        return self._judge()

    @property
    def complete(self) -> bool:
        """Satisfied, and nothing was left unjudged: no store elsewhere, no server left out, nothing lost on the way."""
        return self.satisfied and not self._left_unjudged

    def explain(self) -> str:
        """The outcome in sentences, one line a store, each with its message code."""
        is_empty = self._off is not None and not (self.stores or self._off)
        lines = [with_code(str(self), "AP102" if is_empty else "")]
        for name, result in self.stores.items():
            kind = f", {result.kind}" if result.kind is not None else ""
            lines.append(with_code(f"  {shown(name)}: {result.verdict}{kind} ({result.reason})", result.code))
        for gap in self.gaps:
            lines.append(with_code(f"  incomplete: {gap.reason} {gap.store} {gap.detail}".rstrip(), gap.code))
        return "\n".join(lines)

    def __str__(self) -> str:
        if self._off is None:
            return "switched off (mode=off): nothing was looked at or waited for"
        word = "satisfied" if self.satisfied else "not satisfied"
        told = [_short(name, result) for name, result in self.stores.items() if result.verdict is not Verdict.ELSEWHERE]
        elsewhere = [name for name, result in self.stores.items() if result.verdict is Verdict.ELSEWHERE]
        if elsewhere:
            told.append(f"{listed(elsewhere)} elsewhere (not registered in this process)")
        told += [f"{name} switched off (its mode), not looked at" for name in self._off]
        how = "dry run, nothing was waited for" if self.dry_run else f"{word} in {self.waited * 1000:.0f} ms"
        return f"{how}: {'; '.join(told) or 'nothing to wait for'}"

    def __bool__(self) -> NoReturn:
        raise TypeError("a BarrierResult has no truth value: ask for .satisfied or .complete")


def _short(name: str, result: StoreResult) -> str:
    if result.verdict is Verdict.VISIBLE:
        left = f" ({', '.join(result.left_out)} left out)" if result.left_out else ""
        return f"{shown(name)} visible{left}"
    return f"{shown(name)} {result.verdict.replace('_', ' ')}: {result.reason}"


class BarrierError(AntipodeError):
    """A barrier ended without what was asked of it; `result` says what it proved, per store."""

    def __init__(self, message: str, result: BarrierResult | None = None, *, code: str = "") -> None:
        super().__init__(message, code=code)
        self._result = result

    @property
    def result(self) -> BarrierResult:
        """What the barrier proved until then (API section 3c)."""
        if self._result is None:
            raise AttributeError("this error was made without a barrier's result")
        return self._result

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle as cls(*args), which would lose the result on the way out of a process pool.
        return (type(self), (*self.args, self._result), {"code": self.code})


class BarrierTimeout(BarrierError, TimeoutError):
    """The deadline passed and a write was still not visible here (`on_timeout="raise"`)."""

    default_code = "AP201"


class BarrierUnproven(BarrierError):
    """No proof is possible that a write is visible here, however long one waits (`on_unproven="raise"`)."""

    default_code = "AP299"


class BarrierIncomplete(BarrierError):
    """`require_complete=True`, and something was left unjudged: a store elsewhere, a server, a loss."""

    default_code = "AP116"


class Redeliver(BarrierError):
    """For the consumer wrapper: this message goes back to the queue after `redeliver_delay`."""
