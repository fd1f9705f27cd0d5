"""Durations, the list of stores, and a store of one's own."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from antipode_lab import BaseStore, Lab, LabError, Store, packages, stores, toxiproxy
from antipode_lab.cache import made_once
from antipode_lab.durations import lag_ms, seconds, spread
from antipode_lab.errors import InstallError
from antipode_lab.model import SCHEMA, LabState, Link, Server, StoreState


def test_durations_are_seconds_timedeltas_or_text_with_its_unit() -> None:
    assert [lag_ms(value) for value in (0.08, timedelta(milliseconds=80), "80ms", "0.08s", 0, "0")] == [80] * 4 + [0, 0]
    assert seconds("1.5s") == 1.5
    for refused in ("80", "80 hours", "", "-1ms", "ms", -1.0, 1e9, float("nan")):
        with pytest.raises(LabError):
            seconds(refused)
    with pytest.raises(LabError, match="whole milliseconds"):
        lag_ms("150us")


def test_lags_are_spread_over_the_replicas() -> None:
    assert spread("80ms", 3) == [80, 80, 80]
    assert spread(["80ms", 0.12], 3) == [80, 120, 120]
    with pytest.raises(LabError, match="2 lags given for 1"):
        spread(["80ms", "120ms"], 1)


def test_every_module_of_the_folder_is_a_store() -> None:
    folder = Path(stores.__file__).parent
    expected = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert set(stores.names()) == expected
    assert {"redis", "rabbitmq"} <= expected
    for name in stores.names():
        found = stores.find(name)
        assert issubclass(found, BaseStore)
        assert found.kind == name
        verbs = {verb for verb in vars(Store) if not verb.startswith("_")}
        assert verbs <= set(dir(found)), f"{name} lacks {verbs - set(dir(found))}"


def test_the_file_of_endpoints_reads_back() -> None:
    server = Server("b1", "b", "replica", "127.0.0.1", 1234, "redis://127.0.0.1:1234", source="a")
    link = Link("b1", "a", "redis-b1-from-a", 1235, 80)
    store = StoreState("redis", {"aof": False}, {"b1": server}, {"b1<-a": link}, {"cuts": {}})
    state = LabState("/scratch", 1, 2, None, {"redis": store})
    assert LabState.from_json(state.to_json()) == state
    with pytest.raises(ValueError, match="schema"):
        LabState.from_json(state.to_json().replace(f'"schema": {SCHEMA}', '"schema": 99'))


def test_a_lab_refuses_what_it_does_not_know() -> None:
    for arguments, words in (
        ({"options": {"redis": {"no_such": 1}}}, "no_such"),
        ({"options": {"rabbitmq": {}}}, "not among"),
        ({"replicas": 0}, "at least one replica"),
    ):
        with pytest.raises(LabError, match=words):
            Lab("redis", **arguments)
    with pytest.raises(LabError, match="at least one store"):
        Lab()


def test_missing_servers_name_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InstallError, match="antipode-lab install redis"):
        packages.require([stores.find("redis")])


def test_toxiproxy_without_go_and_without_cache_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTIPODE_CACHE", str(tmp_path))
    monkeypatch.setattr("antipode_lab.built.shutil.which", lambda *_, **__: None)
    with pytest.raises(InstallError, match="Install Go"):
        toxiproxy.install()
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_cache_is_whole(tmp_path: Path) -> None:
    target, made = tmp_path / "cache" / "tool", list[Path]()

    def make(build: Path) -> Path:
        made.append(build)
        (build / "tool").mkdir()
        (build / "tool" / "half").touch()
        if len(made) == 1:
            raise InstallError("no net")
        (build / "tool" / f"whole-{len(made)}").touch()
        return build / "tool"

    with pytest.raises(InstallError, match="no net"):
        made_once(target, make)
    assert not target.exists()
    assert made_once(target, make) == made_once(target, make) == target
    assert len(made) == 2
    made_once(target, make, (target / "whole-3").exists)  # an older one
    assert sorted(each.name for each in target.iterdir()) == ["half", "whole-3"]
    assert not any(build.exists() for build in made)


def test_a_cache_that_cannot_be_written_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InstallError, match="ANTIPODE_CACHE"):
        made_once(tmp_path / "file" / "tool", lambda build: build)
