"""Running the command `antipode` in tests, and a package with shims that is found as every other is."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from antipode import cli


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process, as its script does."""

    def run(*words: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["antipode", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err
        code = ended.value.code
        assert isinstance(code, int)
        return Ran(int(code), printed.out, printed.err)

    return run


SHIM = '''
import json
from pathlib import Path
from urllib.parse import urlsplit

from antipode.shim.administration import SETTLED, EpochRecord, Finding, Level, Step


def _path(url):
    return Path(urlsplit(url).path)


class FileShim:
    """A store that is a file of marks."""

    schemes = ("filekv", "filekvs")

    @classmethod
    def diagnose(cls, url):
        state = json.loads(_path(url).read_text())
        if "hang" in state:
            import threading

            threading.Event().wait()
        if "fail" in state:
            raise ConnectionError(f"cannot connect to {url}: user ann, password s3cret/x")
        return [Finding(Level[level], *words) for level, *words in state["findings"]]

    @classmethod
    def epochs(cls, url):
        state = json.loads(_path(url).read_text())
        return [EpochRecord(name, end, name == state["current"]) for name, end in state["marks"].items()]

    @classmethod
    def settle(cls, url, epoch, position=None):
        state = json.loads(_path(url).read_text())
        if state.get("read_only"):
            raise PermissionError(f"{url} is a replica")
        state["marks"][epoch] = SETTLED if position is None else position
        _path(url).write_text(json.dumps(state))


class AdoptingShim(FileShim):
    schemes = ("adoptkv",)
    preparation_options = {"table": "the table of the objects"}

    @classmethod
    def preparations(cls, url, wanted):
        table = wanted.options.get("table", "objects")
        if table == "none":
            return []
        if not table.isidentifier():
            raise ValueError(f"{table} is no table of {url}")

        def create():
            state = json.loads(_path(url).read_text())
            if "hang" in state:
                import threading

                threading.Event().wait()
            there = table in state.setdefault("tables", [])
            state["tables"] = sorted({*state["tables"], table})
            _path(url).write_text(json.dumps(state))
            return "there already" if there else "created"

        def grant():
            state = json.loads(_path(url).read_text())
            if wanted.user not in state.get("users", []):
                raise ValueError(f"no user {wanted.user} at {url}")
            state["granted"] = wanted.user
            _path(url).write_text(json.dumps(state))
            return "granted"

        user = wanted.user or "USER"
        steps = [
            Step("psql", f"CREATE TABLE IF NOT EXISTS {table} (\\n  epoch text);", "marks have no place", create),
            Step("psql", f"GRANT INSERT ON {table} TO {user};", "it may not mark", wanted.user and grant),
        ]
        if wanted.user == "ann":
            steps.append(Step("db.conf", "sync = on", "positions would lie"))
        return steps

    @classmethod
    def adopt(cls, url, epoch):
        state = json.loads(_path(url).read_text())
        state["marks"][epoch] = state["foreign"].pop(epoch)
        _path(url).write_text(json.dumps(state))
'''


def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs a package with three shims, one of them broken; the path of the store's file."""
    site = tmp_path / "site"
    info = site / "filekv-3.1.dist-info"
    info.mkdir(parents=True)
    (site / "filekv_shim.py").write_text(SHIM)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: filekv\nVersion: 3.1\n")
    (info / "entry_points.txt").write_text(
        "[antipode.shims]\nfilekv = filekv_shim:FileShim\n"
        "adopting = filekv_shim:AdoptingShim\nbroken = filekv_missing:X\n"
    )
    monkeypatch.syspath_prepend(str(site))
    store = tmp_path / "store.json"
    store.write_text(
        json.dumps({"current": "e2", "marks": {"e1": 1042, "e2": 7}, "foreign": {"f1": 5}, "findings": []})
    )
    return store
