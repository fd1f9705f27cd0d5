"""What a store of the lab is (the protocol), and what all stores share: servers, links, and their verbs.

A new store is one module in ``antipode_lab/stores/`` with a class that follows `Store` (best: by inheriting
`BaseStore`) and a line ``STORE = ThatClass``. It is found by listing the folder; nothing else changes.
"""

from __future__ import annotations

import functools
import signal
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    runtime_checkable,
)

from antipode_lab.built import Tool
from antipode_lab.durations import Duration, lag_ms
from antipode_lab.errors import LabError, NotSupportedError
from antipode_lab.model import Link, LinkState, Server, StoreState
from antipode_lab.processes import Supervisor
from antipode_lab.toxiproxy import Toxiproxy

PartitionMode = Literal["cut", "silent"]
SILENT_MS = 3_500_000
"""A held link: nothing passes, nothing is dropped, and connections stay open. Shorter than Toxiproxy's and
our own hour.
"""


@dataclass(slots=True)
class Context:
    """What the lab gives each of its stores."""

    supervisor: Supervisor
    toxiproxy: Toxiproxy
    folder: Path
    state: Callable[[], StoreState]
    transaction: Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Package:
    """A system package, and a program that is there once it is installed (a name on the PATH, or a path)."""

    name: str
    program: str


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server as ``status`` shows it. ``detail`` is the store's own word on how far it is."""

    name: str
    role: str
    port: int
    pid: int
    state: str
    source: str | None
    lag_ms: int
    link: LinkState | None
    detail: str


@runtime_checkable
class Store(Protocol):
    """The protocol of a store module's class."""

    kind: ClassVar[str]
    is_queue: ClassVar[bool]
    packages: ClassVar[Sequence[Package]]
    tools: ClassVar[Sequence[Tool]]
    options_type: ClassVar[type[Any]]

    def __init__(self, context: Context) -> None: ...
    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the servers with links of 0 ms, one replica a lag, and returns when replication really
        flows.

        The lab then sets the lags. A store without replicas takes the first lag."""

    def arm(self) -> None:
        """Sets the links' lags."""

    def status(self) -> list[ServerStatus]: ...
    def refresh(self) -> None:
        """Brings pids and states in the model up to date."""

    def lag(self, server: str, value: Duration, source: str | None = None) -> None: ...
    def partition(self, server: str, peer: str | None = None, mode: PartitionMode = "cut") -> None: ...
    def heal(self, server: str | None = None, peer: str | None = None, *, wait: bool = True) -> None: ...
    def freeze(self, server: str) -> None: ...
    def thaw(self, server: str) -> None: ...
    def kill(self, server: str) -> None: ...
    def restart(self, server: str, source: str | None = None, *, crash: bool = False) -> None: ...
    def promote(self, server: str, lose: int | None = None) -> None: ...
    def repoint(self, server: str, source: str) -> None: ...


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="BaseStore[Any]")
O = TypeVar("O")  # noqa: E741


def verb(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Runs a verb alone: it sees what other processes and threads changed, and they see what it changed."""

    @functools.wraps(method)
    def alone(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.context.transaction():
            return method(self, *args, **kwargs)

    return alone


class BaseStore(Generic[O]):
    """What every store does alike. A subclass starts its servers, and says how links are waited for."""

    kind: ClassVar[str]
    is_queue: ClassVar[bool] = False
    packages: ClassVar[Sequence[Package]] = ()
    tools: ClassVar[Sequence[Tool]] = ()
    """What no system package has: built or fetched into the cache by `antipode-lab install`."""
    options_type: ClassVar[type[Any]]

    def __init__(self, context: Context) -> None:
        self.context = context
        self._armed = True

    # -- what a subclass says ----------------------------------------------------------------------

    @abstractmethod
    def start(self, lags_ms: Sequence[int]) -> None: ...

    @abstractmethod
    def wait_links(self, timeout: float = 60.0) -> None:
        """Returns when every link that can carry data does carry a probe.

        Raises:
            LabError: after ``timeout`` seconds.
        """

    def detail(self, server: Server) -> str:
        """How far a running server is, for ``status``."""
        return ""

    def restart(self, server: str, source: str | None = None, *, crash: bool = False) -> None:
        """Ends and starts a server; what ``source`` may be is the store's."""
        raise NotSupportedError(f"{self.kind} cannot restart")

    def promote(self, server: str, lose: int | None = None) -> None:
        """Makes ``server`` the primary."""
        raise NotSupportedError(f"{self.kind} has nothing to promote")

    def repoint(self, server: str, source: str) -> None:
        """Makes ``server`` take its data from ``source``."""
        raise NotSupportedError(f"{self.kind} has no replicas to re-point")

    # -- the model ---------------------------------------------------------------------------------

    @property
    def state(self) -> StoreState:
        """The store's part of lab.json."""
        return self.context.state()

    @property
    def options(self) -> O:
        """The options that the store was started with."""
        options: O = self.options_type(**self.state.options)
        return options

    @property
    def servers(self) -> Mapping[str, Server]:
        """The servers by name."""
        return self.state.servers

    def server(self, name: str) -> Server:
        """One server.

        Raises:
            LabError: if there is none of that name.
        """
        try:
            return self.state.servers[name]
        except KeyError:
            known = ", ".join(self.state.servers)
            raise LabError(f"{self.kind} has no server {name!r}; it has {known}") from None

    def process(self, server: str) -> str:
        """The name of a server's process at the supervisor."""
        return f"{self.kind}:{server}"

    def running(self, server: str) -> bool:
        """Whether the server's process runs and is not frozen."""
        return self.context.supervisor.state(self.process(server)).state == "running"

    def refresh(self) -> None:
        """Brings pids, states, sources' lags and links in the model up to date."""
        processes = self.context.supervisor.processes()
        for name, server in self.state.servers.items():
            if process := processes.get(self.process(name)):
                server.pid, server.state = process.pid, process.state
            server.lag_ms = self.pair_lag(name, server.source) if server.source else 0

    def status(self) -> list[ServerStatus]:
        """Every server, as it is now."""
        with self.context.transaction():
            self.refresh()
            found = []
            for server in self.state.servers.values():
                link = self.state.links.get(self._key(server.name, server.source or ""))
                found.append(
                    ServerStatus(
                        server.name,
                        server.role,
                        server.port,
                        server.pid,
                        server.state,
                        server.source,
                        server.lag_ms,
                        link.state if link else None,
                        self.detail(server) if server.state == "running" else "",
                    )
                )
            return found

    # -- links -------------------------------------------------------------------------------------

    @staticmethod
    def _key(target: str, source: str) -> str:
        return f"{target}<-{source}"

    def set_base_lags(self, lags: Mapping[str, int]) -> None:
        """How far each server is from region A, one way, in ms; before any link is made."""
        self.state.details.update(lag_ms=dict(lags), pair_lag_ms={}, cuts={})
        self._armed = False

    def pair_lag(self, target: str, source: str) -> int:
        """The one-way lag between two servers: as set for the pair, else the target's own, else the
        source's.
        """
        details = self.state.details
        own: dict[str, int] = details["lag_ms"]
        return int(details["pair_lag_ms"].get(self._key(target, source), own.get(target) or own.get(source, 0)))

    def replication_port(self, name: str) -> int:
        """Where others fetch a server's data: the clients' port, unless the store has another for it."""
        return self.server(name).port

    def link(self, target: str, source: str) -> Link:
        """The link over which ``target`` reaches ``source``: made when first asked for."""
        key = self._key(target, source)
        if key not in self.state.links:
            proxy = f"{self.kind}-{target}-from-{source}"
            port = self.context.toxiproxy.create(proxy, self.replication_port(source))
            self.state.links[key] = Link(target, source, proxy, port, self.pair_lag(target, source))
            self._apply(self.state.links[key], anew=True)
        return self.state.links[key]

    def _wanted(self, link: Link) -> LinkState:
        """A link's state, after the partitions in force. A cut is stronger than silence."""
        cuts: dict[str, PartitionMode] = self.state.details["cuts"]
        pair = "|".join(sorted((link.target, link.source)))
        modes = [cuts[key] for key in (link.target, link.source, pair) if key in cuts]
        return "cut" if "cut" in modes else "silent" if modes else "up"

    def _apply(self, link: Link, *, anew: bool = False) -> None:
        """Makes the proxy do what the model says; ``anew`` where nothing is known of what it does.

        Toxiproxy may hang for good on the toxics of connections that are being closed, so it is asked for
        what changes and nothing else, and never for the lag of a link that is cut.
        """
        before = SILENT_MS if link.state == "silent" else link.lag_ms
        link.lag_ms = self.pair_lag(link.target, link.source)
        wanted = self._wanted(link)
        lag = SILENT_MS if wanted == "silent" else link.lag_ms if self._armed else 0
        toxiproxy = self.context.toxiproxy
        if wanted == "cut" and (anew or link.state != "cut"):
            toxiproxy.set_enabled(link.proxy, False)
        if wanted != "cut" and (anew or link.state == "cut" or lag != before):
            toxiproxy.set_lag(link.proxy, lag)
        if wanted != "cut" and link.state == "cut":
            toxiproxy.set_enabled(link.proxy, True)
        link.state = wanted

    def _apply_all(self, *, anew: bool = False) -> None:
        for link in self.state.links.values():
            self._apply(link, anew=anew)

    def arm(self) -> None:
        """Sets the lags: links are made with 0 ms, for set-up over slow links takes many round trips."""
        self._armed = True
        with self.context.transaction():
            self._apply_all(anew=True)

    # -- verbs -------------------------------------------------------------------------------------

    @verb
    def lag(self, server: str, value: Duration, source: str | None = None) -> None:
        """Sets the one-way lag of the server's links, or only of the one from ``source``; acts at once."""
        self.server(server)
        details, lag = self.state.details, lag_ms(value)
        if source is not None:
            self.server(source)
            details["pair_lag_ms"][self._key(server, source)] = lag
        else:
            details["lag_ms"][server] = lag
            for key in [key for key in details["pair_lag_ms"] if key.startswith(f"{server}<-")]:
                del details["pair_lag_ms"][key]
        self._apply_all()

    @verb
    def partition(self, server: str, peer: str | None = None, mode: PartitionMode = "cut") -> None:
        """Parts a server from all others, or from ``peer``.

        ``cut`` closes the links' connections and refuses new ones. ``silent`` keeps them open and holds
        what is on its way, as a network does that drops packets: nothing is lost on healing, and both ends
        think for a while that all is well. Clients reach every server still: only replication is parted.
        """
        self.server(server)
        if mode not in ("cut", "silent"):
            raise LabError(f"a partition is 'cut' or 'silent', not {mode!r}")
        if peer is not None:
            self.server(peer)
        self.state.details["cuts"][server if peer is None else "|".join(sorted((server, peer)))] = mode
        self._apply_all()

    @verb
    def heal(self, server: str | None = None, peer: str | None = None, *, wait: bool = True) -> None:
        """Ends every partition, or those that name ``server`` (and ``peer``); with ``wait`` returns when
        data flow.
        """
        cuts: dict[str, str] = self.state.details["cuts"]
        named = {name for name in (server, peer) if name is not None}
        for name in named:
            self.server(name)
        for key in [key for key in cuts if named <= set(key.split("|"))]:
            del cuts[key]
        self._apply_all()
        if wait:
            self.wait_links()

    @verb
    def freeze(self, server: str) -> None:
        """Stops a server's process where it is (SIGSTOP): it neither answers nor closes its connections."""
        self._signal(server, signal.SIGSTOP, "frozen")

    @verb
    def thaw(self, server: str) -> None:
        """Lets a frozen server go on (SIGCONT)."""
        self._signal(server, signal.SIGCONT, "running")

    def _signal(self, server: str, number: signal.Signals, state: str) -> None:
        from antipode_lab.processes import wait_until

        self.server(server)
        name, supervisor = self.process(server), self.context.supervisor
        if not supervisor.send(name, number):
            raise LabError(
                f"{self.kind} {server} does not run; start it with: antipode-lab restart {self.kind} {server}"
            )
        wait_until(f"{name} to be {state}", lambda: supervisor.state(name).state == state, 10, 0.002)

    @verb
    def kill(self, server: str) -> None:
        """Ends a server's process with SIGKILL, a crash; ``restart`` brings it back."""
        self.server(server)
        self.context.supervisor.stop(self.process(server))
