"""How the lab starts PostgreSQL servers, reaches them, and waits for their links."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import psutil
import psycopg

from antipode_lab.cache import cache_folder, locked
from antipode_lab.errors import LabError
from antipode_lab.model import Server
from antipode_lab.processes import wait_until
from antipode_lab.store import Package, verb
from antipode_lab.stores._replicated import ReplicatedStore

VERSION = "15"
BIN = Path(f"/usr/lib/postgresql/{VERSION}/bin")
POOLER = "/usr/sbin/pgbouncer"
SUPERUSER = "postgres"
APP_USER = "app"
"""An ordinary role that owns the database `app`; applications in tests connect as it."""
DATABASE = "app"


@dataclass(frozen=True, slots=True)
class PostgresqlOptions:
    """PostgreSQL's options.

    Attributes:
        config: settings of postgresql.conf for every server, such as ``{"synchronous_commit": "off"}``.
        fsync: whether what is written is forced to the disk. Without, everything else is as with it, but for
            the time that it takes and a power cut, and Antipode refuses such servers (SHIM-45).
        fresh: initialises the database anew, with a system identifier of its own; else it may be that of
            another lab's.
        alone: the primary only.
    """

    config: Mapping[str, str] = field(default_factory=dict)
    fsync: bool = True
    fresh: bool = False
    alone: bool = False


class Place(NamedTuple):
    """Where a server is in its history, as replication sees it."""

    timeline: int
    position: int


def number_of(lsn: str) -> int:
    """``1/2A`` as a number."""
    high, _, low = lsn.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def unprivileged() -> str | None:
    """The user that servers run as, for PostgreSQL refuses root; None where we are no root ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise LabError("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")


class PostgresqlServers(ReplicatedStore[PostgresqlOptions]):
    """Starting the servers, reaching them, and waiting for their links; the verbs are `PostgresqlStore`'s."""

    kind: ClassVar[str] = "postgresql"
    packages: ClassVar[Sequence[Package]] = (
        Package(f"postgresql-{VERSION}", str(BIN / "postgres")),
        Package("pgbouncer", POOLER),
    )
    options_type: ClassVar[type[Any]] = PostgresqlOptions
    template: ClassVar[str] = f"postgresql-{VERSION}"
    """The name of a data directory in the cache."""
    locale: ClassVar[str] = "C"
    more_settings: ClassVar[Mapping[str, str]] = {}

    @staticmethod
    def bin() -> Path:
        """Where the programs are."""
        return BIN

    # -- start -------------------------------------------------------------------------------------

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the primary and one hot standby a lag."""
        lags_ms = [] if self.options.alone else lags_ms
        names = ["a", *(f"b{index}" for index in range(1, len(lags_ms) + 1))]
        self.set_base_lags(dict(zip(names, [0, *lags_ms], strict=True)))
        self._open_scratch()
        for name, port in zip(names, self.context.supervisor.ports(len(names)), strict=True):
            self.state.servers[name] = Server(
                name,
                "a" if name == "a" else "b",
                "primary" if name == "a" else "replica",
                "127.0.0.1",
                port,
                self.client_url(port),
                source=None if name == "a" else "a",
            )
        self._make_template()
        for name in names:
            # A standby begins as a copy of the primary before its first start: all that it needs is streamed.
            self._copy_template(name)
            if name != "a":
                (self.data(name) / "standby.signal").touch()
                self._own(self.data(name) / "standby.signal")
                self._write_source(name, "a")
        for name in names:
            self._spawn(name)
        for name in names:
            self._wait_answers(name)
        self._make_database()
        self.wait_links()

    def client_url(self, port: int) -> str:
        """The address of a server for applications."""
        return f"postgresql://{APP_USER}@127.0.0.1:{port}/{DATABASE}"

    def _make_database(self) -> None:
        """What the primary holds at first."""
        with self.connect("a") as connection:
            connection.execute(f"CREATE ROLE {APP_USER} LOGIN")
            connection.execute(f"CREATE DATABASE {DATABASE} OWNER {APP_USER}")

    def _open_scratch(self) -> None:
        """Lets the servers' user go through the scratch folder, which else is its owner's alone."""
        if unprivileged() is None:
            return
        for folder in (self.context.supervisor.scratch, self.context.folder):
            folder.chmod(folder.stat().st_mode | 0o011)

    def data(self, name: str) -> Path:
        """A server's data directory."""
        return self.context.folder / name

    def _own(self, path: Path) -> None:
        if (user := unprivileged()) is not None:
            shutil.chown(path, user)

    def run_program(self, *argv: str) -> None:
        """Runs one of PostgreSQL's programs, as the servers' user."""
        program = [str(self.bin() / argv[0]), *argv[1:]]
        done = subprocess.run(
            program,
            user=unprivileged(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise LabError(f"{argv[0]} failed (code {done.returncode}):\n{(done.stdout + done.stderr)[-2000:]}")

    def _make_template(self) -> None:
        """Initialises a database, or takes a copy of one that was initialised before."""
        template = self.context.folder / "template"
        kept = cache_folder() / f"{self.template}-template"
        if not self.options.fresh and (kept / "PG_VERSION").exists():
            shutil.copytree(kept, template)
            return
        place = self.context.folder / "initdb"
        place.mkdir()
        self._own(place)
        options = ["-A", "trust", "-U", SUPERUSER, "--no-sync", "-E", "UTF8", f"--locale={self.locale}"]
        self.run_program("initdb", "-D", str(place / "data"), *options)
        self._fill_template(place / "data")
        (place / "data").rename(template)
        place.rmdir()
        if self.options.fresh:
            return
        with suppress(OSError):  # the next lab makes one of its own then
            kept.parent.mkdir(parents=True, exist_ok=True)
            with locked(kept.parent / "postgresql.lock"):
                if not kept.exists():
                    partial = kept.with_name(f"{kept.name}.{os.getpid()}")
                    shutil.copytree(template, partial)
                    partial.rename(kept)

    def _fill_template(self, data: Path) -> None:
        """What a database has from its first start on, besides what PostgreSQL gives it."""

    def _copy_template(self, name: str) -> None:
        shutil.copytree(self.context.folder / "template", self.data(name))
        self._own_tree(self.data(name))

    def _own_tree(self, folder: Path) -> None:
        folder.chmod(0o700)
        if unprivileged() is None:
            return
        self._own(folder)
        for path in folder.rglob("*"):
            self._own(path)

    def _write_source(self, name: str, source: str) -> None:
        """Where a standby gets its data from: through their link. In force after a reload or a start."""
        link = self.link(name, source)
        target = f"host=127.0.0.1 port={link.port} user={SUPERUSER} application_name={name} connect_timeout=10"
        # Several lines of one setting: the last one counts.
        path = self.data(name) / "postgresql.auto.conf"
        path.write_text(f"primary_conninfo = '{target}'\n")
        self._own(path)

    def _spawn(self, name: str) -> None:
        server = self.server(name)
        settings: dict[str, str] = {
            "port": str(self.replication_port(name)),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "shared_buffers": "16MB",
            "max_connections": "100",
            "fsync": "on" if self.options.fsync else "off",
            "wal_level": "replica",
            "max_wal_senders": "10",
            "wal_keep_size": "512MB",
            "max_wal_size": "512MB",
            "wal_log_hints": "on",
            "wal_receiver_status_interval": "1",
            "wal_retrieve_retry_interval": "50ms",
            "cluster_name": f"antipode-{name}",
            **self.more_settings,
            **self.options.config,
        }
        argv = [str(self.bin() / "postgres"), "-D", str(self.data(name))]
        for setting, value in settings.items():
            argv += ["-c", f"{setting}={value}"]
        server.pid = self.context.supervisor.spawn(self.process(name), argv, user=unprivileged())

    def _wait_answers(self, name: str) -> None:
        def answers() -> bool:
            try:
                with self.connect(name, database="postgres", timeout=2) as connection:
                    connection.execute("SELECT 1")
            except psycopg.Error:
                time.sleep(0.02)
                return False
            return True

        self.context.supervisor.wait_ready(self.process(name), answers, 60)

    # -- clients and what they see -----------------------------------------------------------------

    def url(self, name: str, *, user: str = APP_USER, database: str = DATABASE) -> str:
        """The server's address as a URL, straight, not through a link."""
        server = self.server(name)
        return f"postgresql://{user}@{server.host}:{self.replication_port(name)}/{database}"

    def connect(
        self, name: str, *, user: str = SUPERUSER, database: str | None = None, timeout: int = 30, **arguments: Any
    ) -> psycopg.Connection[Any]:
        """A new psycopg connection to a server, in autocommit mode, as the superuser unless said otherwise."""
        chosen = database or (DATABASE if user == APP_USER else "postgres")
        arguments = {"autocommit": True, "connect_timeout": timeout, **arguments}
        return psycopg.connect(self.url(name, user=user, database=chosen), **arguments)

    def place(self, name: str) -> Place:
        """Where a server is: the timeline that it replays or writes, and up to where it has got it."""
        with self.connect(name, timeout=5, replication="database") as connection:
            row = connection.execute("IDENTIFY_SYSTEM").fetchone()
        assert row is not None
        return Place(int(row[1]), number_of(row[2]))

    def forks(self, name: str) -> dict[int, int]:
        """Where the timelines end that a server's own has come from."""
        timeline = self.place(name).timeline
        if timeline == 1:
            return {}
        with self.connect(name, timeout=5, replication="database") as connection:
            row = connection.execute(f"TIMELINE_HISTORY {timeline}").fetchone()
        assert row is not None
        text = row[1] if isinstance(row[1], str) else bytes(row[1]).decode()
        lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
        return {int(words[0]): number_of(words[1]) for words in lines}

    def detail(self, server: Server) -> str:
        """Its timeline and position, and whether it is in recovery."""
        try:
            with self.connect(server.name, timeout=5) as connection:
                row = connection.execute("SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn()::text").fetchone()
            place = self.place(server.name)
        except psycopg.Error as error:
            return f"{type(error).__name__}: {error}"
        assert row is not None
        where = f"timeline {place.timeline}, {place.position >> 32:X}/{place.position & 0xFFFFFFFF:X}"
        return f"{where}, replayed to {row[1]}" if row[0] else where

    def wait_caught_up(self, name: str, timeout: float = 60.0) -> None:
        """Waits until a probe, and so everything committed before it, has been applied at ``name``.

        The probe is an empty transaction: it is in the log, but it is no data. Positions alone would not do:
        a standby that is still on an old branch may be further than its new primary.

        Raises:
            LabError: after ``timeout`` seconds.
        """
        root = self.root_of(name)
        with self.connect(root) as connection:
            row = connection.execute("SELECT pg_logical_emit_message(true, 'antipode-lab', 'probe')::text").fetchone()
        assert row is not None
        probed = number_of(row[0])
        timeline = self.place(root).timeline

        def arrived() -> bool:
            with suppress(psycopg.OperationalError):
                if self.place(name).timeline != timeline:
                    return False
                with self.connect(name, timeout=5) as connection:
                    row = connection.execute("SELECT pg_last_wal_replay_lsn()::text").fetchone()
                    return row is not None and row[0] is not None and number_of(row[0]) >= probed
            return False

        wait_until(f"postgresql {name} to receive what {root} sends", arrived, timeout, 0.005)

    # -- processes: PostgreSQL's are many, each in a session of its own ------------------------------

    def _family(self, name: str) -> list[psutil.Process]:
        state = self.context.supervisor.state(self.process(name))
        if state.state == "stopped":
            return []
        try:
            parent = psutil.Process(state.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _send_all(self, name: str, number: signal.Signals) -> None:
        for process in self._family(name):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    @verb
    def freeze(self, server: str) -> None:
        """Stops all of a server's processes where they are (SIGSTOP)."""
        self._signal(server, signal.SIGSTOP, "frozen")  # the parent first: no more children from here on
        self._send_all(server, signal.SIGSTOP)

    @verb
    def thaw(self, server: str) -> None:
        """Lets a frozen server go on (SIGCONT)."""
        self._send_all(server, signal.SIGCONT)
        self._signal(server, signal.SIGCONT, "running")

    @verb
    def kill(self, server: str) -> None:
        """Ends all of a server's processes at once (SIGKILL), a crash; ``restart`` brings it back."""
        self.server(server)
        self._crash(server)

    def _crash(self, name: str) -> None:
        family = self._family(name)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that none does anything about it
            for process in family:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)
        self.context.supervisor.stop(self.process(name))
        # Until the last one is gone a new server finds the old one's shared memory in use.
        wait_until(f"the end of {self.process(name)}", lambda: not any(_alive(process) for process in family), 20)

    def _stop(self, name: str) -> None:
        """An orderly end: what is connected is cut off, what is open is rolled back."""
        self.context.supervisor.stop(self.process(name), signal.SIGINT)


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
