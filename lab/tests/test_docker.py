"""`--docker`: the lab's verbs on containers. A stand-in says what Compose would; Toxiproxy is real."""

from __future__ import annotations

import http.client
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from antipode_lab import LabError
from antipode_lab.cli import app
from antipode_lab.docker import DockerLab
from antipode_lab.errors import NotSupportedError
from antipode_lab.model import LabState
from antipode_lab.processes import Supervisor
from antipode_lab.toxiproxy import Toxiproxy
from compose_model import FILE, LOADER, proxies
from typer.testing import CliRunner

STAND_IN = """#!{python}
import json, os, subprocess, sys
arguments = sys.argv[1:]
folder = os.environ["STAND_IN"]
with open(folder + "/calls", "a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
assert arguments[0] == "compose", arguments
rest = arguments[1:]
while rest[0].startswith("--"):
    rest = rest[2:]
states = json.load(open(folder + "/states"))
if os.path.exists(folder + "/broken-" + rest[0]):
    sys.exit("stand-in: no such thing as " + rest[0])
if rest[0] == "config":
    file = arguments[arguments.index("--file") + 1]
    done = subprocess.run([os.environ["LOADER"], "-format", "json", os.path.basename(file)],
                          cwd=os.path.dirname(file), capture_output=True, text=True)
    print(done.stdout)
elif rest[0] == "port":
    print("127.0.0.1:" + (os.environ["TOXIPROXY"] if rest[1] == "toxiproxy" else str(40000 + int(rest[2]) % 10000)))
elif rest[0] == "ps":
    for service, state in states.items():
        print(json.dumps({{"Service": service, "State": state}}))
elif rest[0] in ("pause", "unpause", "kill", "stop"):
    states[rest[1]] = {{"pause": "paused", "unpause": "running", "kill": "exited", "stop": "exited"}}[rest[0]]
elif rest[0] == "up":
    for service in [word for word in rest[1:] if not word.startswith("--")] or ["redis-a", "redis-b1"]:
        states[service] = "running"
elif rest[0] == "down":
    states = {{}}
json.dump(states, open(folder + "/states", "w"))
"""


class Engine:
    """What the stand-in was told."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self._port = port

    @property
    def calls(self) -> list[list[str]]:
        """The commands behind `docker compose` and its options."""
        found = []
        for line in (self.folder / "calls").read_text().splitlines():
            words = json.loads(line)[1:]
            while words[0].startswith("--"):
                words = words[2:]
            found.append(words)
        return found

    def proxy(self, name: str) -> dict[str, Any]:
        """What Toxiproxy does now."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request("GET", f"/proxies/{name}")
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return found

    def lag(self, name: str) -> set[int]:
        """The lags of both directions."""
        return {toxic["attributes"]["latency"] for toxic in self.proxy(name)["toxics"]}

    def break_(self, command: str) -> None:
        """From now on this command of Compose fails."""
        (self.folder / f"broken-{command}").touch()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    supervisor = Supervisor.start()
    try:
        toxiproxy = Toxiproxy.start(supervisor)
        for name, proxy in proxies().items():  # as its container does, but on loopback
            toxiproxy._call(
                "POST", "/proxies", {**proxy, "listen": "127.0.0.1:0", "upstream": "127.0.0.1:1", "name": name}
            )
        docker = tmp_path / "bin" / "docker"
        docker.parent.mkdir()
        docker.write_text(STAND_IN.format(python=sys.executable))
        docker.chmod(docker.stat().st_mode | stat.S_IXUSR)
        (tmp_path / "states").write_text("{}")
        for name, value in {
            "PATH": f"{docker.parent}:{os.environ['PATH']}",
            "STAND_IN": str(tmp_path),
            "LOADER": str(LOADER.install()),
            "TOXIPROXY": str(toxiproxy.port),
            "ANTIPODE_COMPOSE": str(FILE),
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("ANTIPODE_LAB", raising=False)
        yield Engine(tmp_path, toxiproxy.port)
    finally:
        supervisor.shutdown()


def test_from_up_to_down_by_the_commands(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*arguments: str, code: int = 0) -> str:
        done = runner.invoke(app, arguments)
        assert done.exit_code == code, (done.output, done.exception)
        return done.output

    run("up", "redis", "--docker", "--lag", "70ms")
    state = LabState.from_json((tmp_path / "lab.json").read_text())
    assert state.docker is not None
    a, b1 = state.stores["redis"].servers["a"], state.stores["redis"].servers["b1"]
    assert (a.region, a.role, a.source, a.url) == ("a", "primary", None, "redis://127.0.0.1:46379")
    assert (b1.region, b1.role, b1.source, b1.lag_ms) == ("b", "replica", "a", 70)
    assert engine.lag("redis-b1-from-a") == {70}
    assert engine.lag("mysql-b1-from-a") == set(), "no other store's link is touched"
    first = json.loads((tmp_path / "calls").read_text().splitlines()[0])
    assert first[:5] == ["compose", "--file", str(FILE), "--project-name", state.docker["project"]]
    assert first[5:7] == ["--profile", "redis"]
    assert "describes a running lab" in run("up", "redis", "--docker", code=1)

    run("lag", "redis", "b1", "20ms")
    assert engine.lag("redis-b1-from-a") == {20}
    run("partition", "redis", "b1")
    assert not engine.proxy("redis-b1-from-a")["enabled"]
    run("lag", "redis", "b1", "30ms")
    assert {one["name"]: one["link"] for one in json.loads(run("status", "--json"))["redis"]} == {
        "a": None,
        "b1": "cut",
    }
    run("heal", "redis")
    assert engine.proxy("redis-b1-from-a")["enabled"]
    assert engine.lag("redis-b1-from-a") == {30}, "the lag that was set meanwhile"
    run("partition", "redis", "b1", "--silent")
    assert engine.proxy("redis-b1-from-a")["enabled"]
    assert min(engine.lag("redis-b1-from-a")) > 3_000_000
    run("heal")
    assert engine.lag("redis-b1-from-a") == {30}

    run("freeze", "redis", "b1")
    assert "frozen" in run("status")
    run("thaw", "redis", "b1")
    run("kill", "redis", "a")
    assert "stopped" in run("status")
    run("restart", "redis", "a", "--crash")
    assert "stopped" not in run("status")
    run("promote", "redis", "b1", code=1)
    run("restart", "redis", "a", "--from", "rdb", code=1)
    run("freeze", "redis", "b9", code=1)
    run("down")
    assert not (tmp_path / "lab.json").exists()
    verbs = [call for call in engine.calls if call[0] not in ("config", "port", "ps")]
    assert verbs == [
        ["up", "--detach", "--wait", "--build"],
        ["pause", "redis-b1"],
        ["unpause", "redis-b1"],
        ["kill", "redis-a"],
        ["kill", "redis-a"],
        ["up", "--detach", "--wait", "--no-deps", "--no-recreate", "redis-a"],
        ["down", "--volumes", "--remove-orphans", "--timeout", "5"],
    ]


def test_what_fails_at_the_start_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no store 'nosuch'"):
        DockerLab.start(["nosuch"], {}, tmp_path / "lab.json")
    engine.break_("up")
    with pytest.raises(LabError, match="no such thing as up"):
        DockerLab.start(["redis"], {"redis": "1ms"}, tmp_path / "lab.json")
    assert engine.calls[-1][0] == "down"
    assert not (tmp_path / "lab.json").exists()


def test_queues_and_links_both_ways(engine: Engine, tmp_path: Path) -> None:
    lab = DockerLab.start(["rabbitmq", "dynamodb"], {"rabbitmq": "10ms", "dynamodb": "40ms"}, tmp_path / "lab.json")
    assert engine.lag("rabbitmq-b-from-a") == {10}
    assert engine.lag("dynamodb-b1-from-a") == engine.lag("dynamodb-a-from-b1") == {40}
    lab["dynamodb"].lag("b1", "50ms", "a")
    assert engine.lag("dynamodb-b1-from-a") == {50}
    assert engine.lag("dynamodb-a-from-b1") == {40}
    lab["dynamodb"].partition("a", "b1")
    assert not engine.proxy("dynamodb-b1-from-a")["enabled"]
    assert not engine.proxy("dynamodb-a-from-b1")["enabled"]
    assert engine.proxy("rabbitmq-b-from-a")["enabled"]
    with pytest.raises(NotSupportedError):
        lab["rabbitmq"].repoint("b", "a")
    lab.down()


def test_options_that_containers_have_not(engine: Engine) -> None:
    for arguments in (["--replicas", "2"], ["--set", "redis.aof=true"], ["--lag", "1ms,2ms"]):
        assert CliRunner().invoke(app, ["up", "redis", "--docker", *arguments]).exit_code == 1


def test_without_docker_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ANTIPODE_COMPOSE", str(FILE))
    with pytest.raises(LabError, match="no `docker` on the PATH"):
        DockerLab.start(["redis"], {"redis": "1ms"}, tmp_path / "lab.json")
