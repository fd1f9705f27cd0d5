"""What operators ask of a kind of store, by URL: `antipode doctor`, `init`, `epoch` (spec EPOCH-24, EPOCH-26, SHIM-3).

A shim class, found through the entry points `antipode.shims`, may offer this; it then names its URL schemes. Nothing
here needs a registered store, an engine or a scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, NamedTuple, Protocol, cast, runtime_checkable
from urllib.parse import unquote, urlsplit

from antipode._model.errors import ConfigurationError
from antipode._model.wire import MAX_COUNTER

GROUP: Final = "antipode.shims"
"""The entry point group in which packages name their shim classes."""
SETTLED: Final = MAX_COUNTER
"""The counter of a mark that an operator made: the whole epoch is there."""


class Level(StrEnum):
    """How much a finding weighs."""

    OK = "ok"
    """As it should be."""
    WARNING = "warning"
    """Proofs are possible, and something puts them at risk or makes them dear."""
    UNPROVEN = "unproven"
    """Something written or waited for at this server would be unproven, or recorded as incomplete."""
    UNKNOWN = "unknown"
    """Could not be found out: the server does not answer, a right is missing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is so at a server. No credentials in any of the texts."""

    level: Level
    what: str
    """The fact, in a few words: `role: replica of 10.0.0.1:6379`."""
    why: str = ""
    """What follows from it, in a sentence."""
    cure: str = ""
    """The command, setting or grant that changes it."""
    code: str = ""
    """Its message code (OBS-14); empty where all is as it should be."""


def no_answer(what: object, login: str = "the user and the server's state") -> Finding:
    """Return the finding for a server that does not answer, or cannot say yet what it is."""
    cure = f"see that the address, {login} are right, and ask again"
    return Finding(Level.UNKNOWN, str(what), "barriers leave it out and are not complete", cure, code="AP706")


def not_at_primary(server: object, role: str = "replica") -> ConfigurationError:
    """Return the error for who settles an epoch at another server than the primary."""
    return ConfigurationError(f"{server} is a {role}: settle an epoch at the primary", code="AP512")


def not_ended(server: object) -> ConfigurationError:
    """Return the error for who settles the epoch that is written: later writes would pass unseen."""
    words = f"{server} is written in this epoch now: only one that has ended can be settled"
    return ConfigurationError(words, code="AP513")


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """What a server knows of one epoch: all of it up to `counter` lies there (spec EPOCH-16)."""

    epoch: str
    counter: int
    current: bool = False
    """The history that the server follows now."""
    detail: str = ""
    """Such as when the mark was made, or whose it is."""

    @property
    def settled(self) -> bool:
        """Whether an operator has vouched for the whole epoch."""
        return self.counter >= SETTLED


@runtime_checkable
class Administration(Protocol):
    """What a shim class offers to operators: a class variable and class methods, each bounded to a few seconds.

    They raise the client's own exceptions where a server does not answer or refuses, and ValueError for what cannot
    be right (no such epoch, a server that is no primary).
    """

    @property
    def schemes(self) -> tuple[str, ...]:
        """URL schemes, in lower case: `("redis", "rediss", "unix")`."""

    def diagnose(self, url: str, /) -> Sequence[Finding]:
        """Role, rights, settings, marks: what would be unproven at this server, why, and what cures it."""

    def epochs(self, url: str, /) -> Sequence[EpochRecord]:
        """The epochs that this server's marks and own state speak of."""

    def settle(self, url: str, epoch: str, position: int | None = None, /) -> None:
        """Marks an epoch as there up to a position, or wholly, on the operator's word (EPOCH-24).

        At a primary only, and in one step with the check that the epoch has ended: settled, the one that is written
        now would let later writes pass unseen.
        """


@runtime_checkable
class MarkAdopter(Protocol):
    """Of shims whose marks name the system that made them: a copy's marks count after they were adopted (EPOCH-22)."""

    def adopt(self, url: str, epoch: str, /) -> None:
        """Takes over the marks of an epoch that another system wrote."""


@dataclass(frozen=True, slots=True)
class InitRequest:
    """What `antipode init STORE --at URL [--user NAME] [--set WORD=VALUE]…` was asked to prepare."""

    store: str
    """The store's logical name."""
    user: str | None = None
    """The login of the services whose clients are wrapped, for grants; None: not said, print `USER`, run no grant."""
    options: Mapping[str, str] = field(default_factory=dict)
    """By words of the shim's `preparation_options`; those not given are absent."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a store needs before its clients are wrapped: a table of marks, a right, a setting, an index."""

    tool: str
    """Where an administrator types it: `psql`, `mysql`, `redis-cli`, `rabbitmqctl`, `aws`, `my.cnf`."""
    text: str
    """The statement, command or line of a file itself, complete, as it is typed there. It may have several lines."""
    why: str
    """What is unproven or incomplete without it, in a sentence."""
    run: Callable[[], str] | None = None
    """Does it by the shim's own client, and returns in a few words what became of it (`created`, `there already`).

    None: a person has to (a restart, a file on the server, a right that this URL's user cannot give). It must do no
    harm when it is done again, must never take a right or a setting away that something else may need, and must refuse
    by ValueError where it would not hold (a replica, no such user). It raises the client's own exceptions.
    """


@runtime_checkable
class StorePreparer(Protocol):
    """Of shims whose stores need anything first: what `antipode init` prints, and runs with `--run`."""

    @property
    def preparation_options(self) -> Mapping[str, str]:
        """The words that `--set WORD=VALUE` may give, each with what it means: `{"table": "add a column for …"}`."""

    def preparations(self, url: str, wanted: InitRequest, /) -> Sequence[Step]:
        """The steps, in the order in which they are done; empty where nothing is needed.

        Asks no server: the list is also for administrators who run it by hand, on servers that nobody here can reach.
        Raises ValueError for a URL or an option's value that cannot be. No credentials in any text.
        """


class FoundShim(NamedTuple):
    """A shim that is installed; `error` says why it cannot be used."""

    name: str
    package: str
    shim: type | None
    error: str = ""

    @property
    def administration(self) -> Administration | None:
        """What it offers to operators; None where it offers nothing."""
        if self.shim is None or not isinstance(self.shim, Administration):
            return None
        return cast("Administration", self.shim)


def found_shims() -> list[FoundShim]:
    """Every installed shim, by name; one that cannot be imported is in the list with its error."""
    return [_load(entry) for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)]


@cache
def _load(entry: EntryPoint) -> FoundShim:
    package = "" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
    try:
        shim = entry.load()
    except Exception as error:  # a broken package of somebody else's must not end the command
        return FoundShim(entry.name, package, None, f"{type(error).__name__}: {error}")
    if not isinstance(shim, type):
        return FoundShim(entry.name, package, None, f"{entry.value} is no class")
    return FoundShim(entry.name, package, shim)


def administration_of(url: str) -> Administration:
    """What answers for this URL, by its scheme. Raises ConfigurationError, which names the schemes that are there."""
    scheme, separator, _ = url.partition("://")
    scheme = scheme.lower() if separator else ""
    known: list[str] = []
    for found in found_shims():
        offered = found.administration
        if offered is not None:
            known += offered.schemes
            if scheme in offered.schemes:
                return offered
    there = ", ".join(f"{name}://" for name in known) or "none; install a shim, such as antipode-redis"
    if not scheme:
        raise ConfigurationError(f"want a URL with a scheme; known here: {there}", code="AP502")
    raise ConfigurationError(f"no installed shim knows {scheme}:// addresses; known here: {there}", code="AP502")


def without_credentials(url: str) -> str:
    """A URL as it may be printed: without user, password and query (which may hold either).

    What cannot be taken apart for sure is shown by its scheme alone.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return "…" if "@" in url else url
    before, at, host = rest.rpartition("@")
    if at and any(mark in before for mark in "/?#"):
        return f"{scheme}://…"  # a password with such a character in it, or an @ behind them: nobody knows
    plain = host.partition("?")[0].partition("#")[0]
    try:
        urlsplit(f"{scheme}://{plain}")
    except ValueError:
        return f"{scheme}://…"
    return f"{scheme}://{plain}"


def scrubbed(text: str, url: str) -> str:
    """An error's text without the URL's credentials, should the client have repeated them."""
    shown = without_credentials(url)
    text = text.replace(url, shown)
    _, separator, rest = url.partition("://")
    secrets: set[str] = set()
    if separator:
        login = rest.rpartition("@")[0]
        secrets |= {login, login.partition(":")[2]}
        secrets |= {pair.partition("=")[2] for pair in rest.partition("?")[2].split("&")}
        secrets |= {unquote(secret) for secret in secrets}
    for secret in sorted(secrets - {""}, key=len, reverse=True):
        # As a word only where it is short: a password `a` must not eat the sentence.
        pattern = re.escape(secret) if len(secret) > 3 else rf"(?<!\w){re.escape(secret)}(?!\w)"
        text = re.sub(pattern, "…", text)
    return text
