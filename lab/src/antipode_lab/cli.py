"""``antipode-lab``: the lab as commands. ``up`` returns when all is ready, and leaves the lab running until
``down``.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from antipode_lab import packages, stores
from antipode_lab.docker import DockerLab
from antipode_lab.errors import LabError
from antipode_lab.lab import ENVIRONMENT, Lab, lab_path
from antipode_lab.model import LabState

app = typer.Typer(
    help="Two regions of real datastores on this machine, with lag, partition and failover as commands.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
out = Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 200)
err = Console(stderr=True, soft_wrap=True, highlight=False)

LabFile = Annotated[
    Path | None,
    typer.Option("--lab", envvar=ENVIRONMENT, help="the lab's file of endpoints (lab.json in this folder)"),
]
StoreName = Annotated[str, typer.Argument(metavar="STORE", help="such as redis")]
ServerName = Annotated[str, typer.Argument(metavar="SERVER", help="such as a, b1, b2")]


@contextmanager
def _plain_errors() -> Iterator[None]:
    """An error is one line on standard error, and exit code 1."""
    try:
        yield
    except LabError as error:
        err.print(f"antipode-lab: {error}", markup=False)
        raise typer.Exit(1) from error


def _attach(path: Path | None) -> Lab | DockerLab:
    """The lab that a file of endpoints describes, of processes or of containers."""
    with suppress(OSError, ValueError, KeyError, TypeError):  # Lab.attach says what is wrong with the file
        state = LabState.from_json(lab_path(path).read_text())
        if state.docker is not None:
            return DockerLab.attach(state)
    return Lab.attach(path)


def _lags(values: list[str], wanted: list[str]) -> tuple[list[str] | None, dict[str, Any]]:
    """Splits ``80ms,120ms`` and ``redis=80ms,120ms``: the lag of all stores, and those of single ones."""
    general: list[str] | None = None
    single: dict[str, Any] = {}
    for item in (part for value in values for part in value.split()):
        name, found, text = item.rpartition("=")
        lags = [lag for lag in text.split(",") if lag]
        if not lags:
            raise LabError(f"--lag {item!r} gives no lag")
        if not found:
            general = lags
        elif name in wanted:
            single[name] = lags
        else:
            raise LabError(f"--lag {item!r}: {name} is not among the stores {', '.join(wanted)}")
    return general, single


def _options(settings: list[str], sentinels: bool, one_broker: bool) -> dict[str, dict[str, Any]]:
    """``--set redis.sentinels=true`` as a store's options; values are JSON, or text."""
    found: dict[str, dict[str, Any]] = {}
    for setting in settings:
        match = re.fullmatch(r"(\w+)\.(\w+)=(.*)", setting)
        if match is None:
            raise LabError(f"--set {setting!r}: write STORE.OPTION=VALUE, such as redis.aof=true")
        try:
            value: Any = json.loads(match[3])
        except ValueError:
            value = match[3]
        found.setdefault(match[1], {})[match[2]] = value
    if sentinels:
        found.setdefault("redis", {})["sentinels"] = True
    if one_broker:
        found.setdefault("rabbitmq", {})["one_broker"] = True
    return found


@app.command()
def up(
    names: Annotated[list[str], typer.Argument(metavar="STORES…", help=", ".join(stores.names()))],
    *,
    replicas: Annotated[int, typer.Option(help="replicas in region B, for stores that have replicas")] = 1,
    lag: Annotated[
        list[str] | None,
        typer.Option(help="one-way lag, or one a replica: 80ms,120ms; for one store: redis=80ms,120ms [80ms]"),
    ] = None,
    queue_lag: Annotated[str, typer.Option(help="one-way lag of queues' links")] = "10ms",
    json_file: Annotated[Path | None, typer.Option("--json", help="where to write the endpoints [lab.json]")] = None,
    sentinels: Annotated[bool, typer.Option("--sentinels", help="three Redis Sentinels")] = False,
    one_broker: Annotated[
        bool, typer.Option("--one-broker", help="both RabbitMQ regions in one broker: half the memory")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="a store's option, such as redis.aof=true")
    ] = None,
    install: Annotated[bool, typer.Option(help="install what is missing first")] = True,
    docker: Annotated[
        bool, typer.Option("--docker", help="as containers of the vendors' images (docker/compose.yaml)")
    ] = False,
) -> None:
    """Start a lab, and leave it running."""
    with _plain_errors():
        path = lab_path(json_file)
        if path.exists():
            try:
                running = _attach(path)
            except LabError:
                pass  # what it described has ended
            else:
                raise LabError(
                    f"{path} describes a running lab ({', '.join(running.status())}); end it with: "
                    f"antipode-lab down{'' if path == Path('lab.json') else f' --lab {path}'}"
                )
        general, single = _lags(lag or [], names)
        if docker:
            if replicas != 1 or settings or sentinels or one_broker:
                raise LabError("with --docker there is one replica, and options are in docker/compose.yaml")
            _up_docker(names, general, single, queue_lag, path)
            return
        lab = Lab(
            *names,
            replicas=replicas,
            lag=general or "80ms",
            queue_lag=queue_lag,
            lags=single,
            options=_options(settings or [], sentinels, one_broker),
            json_path=path,
        )
        if install:
            packages.install([stores.find(name) for name in names], lambda text: err.print(text, markup=False))
        if err.is_terminal:
            with err.status(f"starting {', '.join(names)}"):
                lab.start()
        else:
            lab.start()
        try:
            lab.detach()
        except BaseException:
            lab.close()
            raise
        # As a person counts it: from the command's start, with Python's own and with what was installed.
        out.print(f"ready in {_running_for():.1f} s: {_summary(lab)}; endpoints: {path}; stop: antipode-lab down")


def _up_docker(names: list[str], general: list[str] | None, single: dict[str, Any], queue_lag: str, path: Path) -> None:
    lags = {}
    for name in names:
        wanted = single.get(name) or (([queue_lag] if stores.find(name).is_queue else general) or ["80ms"])
        if len(wanted) != 1:
            raise LabError(f"{len(wanted)} lags given for 1 link of {name}: with --docker there is one replica")
        lags[name] = wanted[0]
    with err.status(f"starting {', '.join(names)}"):
        lab = DockerLab.start(names, lags, path.absolute())
    out.print(f"ready in {_running_for():.1f} s: {_summary(lab)}; endpoints: {path}; stop: antipode-lab down")


def _running_for() -> float:
    """Seconds since this process was started."""
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def _summary(lab: Lab | DockerLab) -> str:
    """``redis a:41873 b1:41875 (80 ms), rabbitmq a:41880 b:41881 (10 ms)``."""
    found = []
    for name, state in lab.endpoints.stores.items():
        servers = (
            f"{server.name}:{server.port}" + (f" ({server.lag_ms} ms)" if server.source else "")
            for server in state.servers.values()
        )
        found.append(f"{name} {' '.join(servers)}")
        if sentinels := state.details.get("sentinels"):
            found[-1] += " sentinels " + " ".join(str(item["port"]) for item in sentinels)
    return ", ".join(found)


@app.command()
def status(
    lab_file: LabFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """Show every server: its role, process, link and how far it is."""
    with _plain_errors():
        found = _attach(lab_file).status()
    if as_json:
        print(json.dumps({name: [asdict(server) for server in servers] for name, servers in found.items()}))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("store", "server", "role", "port", "pid", "process", "link", "lag", "position"):
        table.add_column(column, justify="right" if column in ("port", "pid", "lag") else "left")
    for name, servers in found.items():
        for server in servers:
            link = f"{server.link or '-'} from {server.source}" if server.source else ""
            lag = f"{server.lag_ms} ms" if server.source else ""
            table.add_row(
                name,
                server.name,
                server.role,
                str(server.port),
                str(server.pid),
                server.state,
                link,
                lag,
                server.detail,
            )
    out.print(table)


@app.command()
def lag(
    store: StoreName,
    server: ServerName,
    value: Annotated[str, typer.Argument(metavar="LAG", help="one way, such as 200ms")],
    source: Annotated[str | None, typer.Option("--from", help="only the link from this server")] = None,
    lab_file: LabFile = None,
) -> None:
    """Change the one-way lag of a server's links; acts at once."""
    with _plain_errors():
        _attach(lab_file)[store].lag(server, value, source)


@app.command()
def partition(
    store: StoreName,
    server: ServerName,
    peer: Annotated[str | None, typer.Argument(help="only from this server")] = None,
    silent: Annotated[
        bool, typer.Option("--silent", help="hold what is on its way, and leave connections open")
    ] = False,
    lab_file: LabFile = None,
) -> None:
    """Part a server from the others. Clients reach it still."""
    with _plain_errors():
        _attach(lab_file)[store].partition(server, peer, "silent" if silent else "cut")


@app.command()
def heal(
    store: Annotated[str | None, typer.Argument()] = None,
    server: Annotated[str | None, typer.Argument()] = None,
    peer: Annotated[str | None, typer.Argument()] = None,
    lab_file: LabFile = None,
) -> None:
    """End all partitions, or those of one store or server; returns when data flow again."""
    with _plain_errors():
        lab = _attach(lab_file)
        for name in [store] if store is not None else list(lab.status()):
            lab[name].heal(server, peer)


@app.command()
def freeze(store: StoreName, server: ServerName, lab_file: LabFile = None) -> None:
    """Stop a server's process where it is (SIGSTOP)."""
    with _plain_errors():
        _attach(lab_file)[store].freeze(server)


@app.command()
def thaw(store: StoreName, server: ServerName, lab_file: LabFile = None) -> None:
    """Let a frozen server go on (SIGCONT)."""
    with _plain_errors():
        _attach(lab_file)[store].thaw(server)


@app.command()
def kill(store: StoreName, server: ServerName, lab_file: LabFile = None) -> None:
    """Crash a server (SIGKILL); restart brings it back."""
    with _plain_errors():
        _attach(lab_file)[store].kill(server)


@app.command()
def promote(
    store: StoreName,
    server: ServerName,
    lose: Annotated[int | None, typer.Option(help="writes of the old primary that never arrive")] = None,
    lab_file: LabFile = None,
) -> None:
    """Make a replica the primary, and re-point the other replicas to it."""
    with _plain_errors():
        _attach(lab_file)[store].promote(server, lose)


@app.command()
def restart(
    store: StoreName,
    server: ServerName,
    source: Annotated[
        str | None, typer.Option("--from", help="redis: rdb, aof or nothing; rabbitmq: disk or nothing")
    ] = None,
    crash: Annotated[bool, typer.Option("--crash", help="without saving first")] = False,
    lab_file: LabFile = None,
) -> None:
    """End a server and start it again on its port."""
    with _plain_errors():
        _attach(lab_file)[store].restart(server, source, crash=crash)


@app.command()
def repoint(
    store: StoreName,
    server: ServerName,
    source: Annotated[str, typer.Argument(help="the server to take data from")],
    lab_file: LabFile = None,
) -> None:
    """Make a server a replica of another: an old primary rejoins this way."""
    with _plain_errors():
        _attach(lab_file)[store].repoint(server, source)


@app.command()
def down(lab_file: LabFile = None) -> None:
    """End the lab: every process, its scratch folder and its file of endpoints."""
    with _plain_errors():
        path = lab_path(lab_file)
        try:
            lab = _attach(path)
        except LabError:
            if not path.exists():
                raise
            path.unlink()  # a lab that ended without its supervisor
            err.print(f"the lab of {path} had ended already", markup=False)
            return
        lab.down()
        path.unlink(missing_ok=True)


@app.command()
def install(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[STORES…]", help=", ".join(stores.names()) + "; all if none")
    ] = None,
) -> None:
    """Install what the stores need (by apt, as root or with sudo), and build Toxiproxy. What is here
    stays.
    """
    with _plain_errors():
        chosen = [stores.find(name) for name in names or stores.names()]
        packages.install(chosen, lambda text: err.print(text, markup=False))


def main() -> None:
    """The command ``antipode-lab``."""
    sys.exit(app())


if __name__ == "__main__":
    main()
