"""The benchmark of `antipode check`: its result and its plot (benchmarks/check.md)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from antipode_benchmarks.check import measuring
from antipode_benchmarks.check.__main__ import app
from typer.testing import CliRunner


@pytest.mark.stores
@pytest.mark.timeout(300)
def test_a_quick_run_has_a_point_for_each_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind in measuring.KINDS.items():
        monkeypatch.setitem(measuring.KINDS, name, replace(kind, sizes=[20_000]))
    path = tmp_path / "result.json"
    ran = CliRunner().invoke(app, ["--quick", "--json", str(path)])
    assert ran.exit_code == 0, ran.output
    found = json.loads(path.read_text())
    assert [(point["kind"], point["size"]) for point in found["points"]] == [("records", 200), ("history", 200)]
    for point in found["points"]:
        assert point["code"] == 1
        assert point["octets"] > 0
        assert 0 < point["cpu"] < 60
        assert 10 < point["mib"] < 2048
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["--kind", "nothing", "--json", str(tmp_path / "result.json")])
    assert ran.exit_code == 2
    assert not list(tmp_path.iterdir())
