"""Where the adversary's programs run: in this process, or in one of another language (spec SHIM-49)."""

from __future__ import annotations

import contextvars
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from antipode._engine.barrier import barrier
from antipode._facade.configuration import configure
from antipode._model.lineage import Lineage
from antipode._scope.operations import scope
from antipode._scope.scope import Scope

__all__ = ["Application", "HereApplication", "Judgement"]

T = TypeVar("T")


@dataclass(frozen=True)
class Judgement:
    """What a barrier says that goes on whatever it finds."""

    satisfied: bool
    complete: bool
    unproven: bool
    """Whether no proof can be had of a store."""
    words: str

    @property
    def passes(self) -> bool:
        """Whether all of the lineage is visible."""
        return self.satisfied and self.complete


class Application(ABC):
    """A process with scopes that live side by side, and the clients that are used in them."""

    @abstractmethod
    def configure(self, timeout: float) -> None:
        """Have reads wait so long, in seconds."""

    @abstractmethod
    def enter(self, text: str = "") -> Any:
        """Return a new scope, empty or starting from what left another one; it is current in what `run` calls."""

    @abstractmethod
    def run(self, entered: Any, call: Callable[..., T], *values: Any) -> T:
        """Call something in a scope."""

    @abstractmethod
    def leave(self, entered: Any) -> str:
        """Return what leaves a scope now."""

    @abstractmethod
    def end(self, entered: Any) -> None:
        """End a scope."""

    @abstractmethod
    def look(self, entered: Any) -> Judgement:
        """Ask a scope's own barrier, without waiting."""

    @abstractmethod
    def judge(self, text: str, timeout: float = 0.0) -> Judgement:
        """Ask a barrier on what left a scope; by any thread."""


class HereApplication(Application):
    """This process: each scope lives in a context of its own."""

    def configure(self, timeout: float) -> None:
        configure(timeout=timeout)

    def enter(self, text: str = "") -> _EnteredScope:
        return _EnteredScope(Lineage.deserialize(text) if text else Lineage())

    def run(self, entered: _EnteredScope, call: Callable[..., T], *values: Any) -> T:
        return entered.context.run(call, *values)

    def leave(self, entered: _EnteredScope) -> str:
        return entered.context.run(entered.opened.outgoing).serialize()

    def end(self, entered: _EnteredScope) -> None:
        entered.context.run(entered.block.__exit__, None, None, None)

    def look(self, entered: _EnteredScope) -> Judgement:
        return entered.context.run(_judge, None, 0.0)

    def judge(self, text: str, timeout: float = 0.0) -> Judgement:
        return _judge(Lineage.deserialize(text), timeout)


class _EnteredScope:
    """A scope, and the context in which it is current."""

    def __init__(self, lineage: Lineage) -> None:
        self.context = contextvars.copy_context()
        self.block: AbstractContextManager[Scope] = scope(lineage)
        self.opened = self.context.run(self.block.__enter__)


def _judge(lineage: Lineage | None, timeout: float) -> Judgement:
    result = barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    unproven = any(store.verdict.name == "UNPROVEN" for store in result.stores.values())
    return Judgement(result.satisfied, result.complete, unproven, str(result))
