"""`antipode init`: what a store needs, printed or run (API section 5, spec SHIM-3, SHIM-4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from antipode.cli import asking
from antipode.shim.administration import StorePreparer, administration_of
from commands import Ran, Run, install_package, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_package(tmp_path, monkeypatch)


def _state(path: Path) -> dict[str, object]:
    state: dict[str, object] = json.loads(path.read_text())
    return state


def test_it_prints_a_script_and_changes_nothing(run: Run, package: Path) -> None:
    before = package.read_text()
    assert run("init", "blog-posts", "--at", f"adoptkv://db{package}") == Ran(
        0,
        "-- psql: marks have no place\n"
        "CREATE TABLE IF NOT EXISTS objects (\n"
        "  epoch text);\n"
        "-- psql: it may not mark\n"
        "GRANT INSERT ON objects TO USER;\n"
        f"-- blog-posts at adoptkv://db{package}: 2 steps; --run does 1 of them\n",
        "",
    )
    assert package.read_text() == before
    package.unlink()  # printing asks no server
    ran = run("init", "blog-posts", "--at", f"adoptkv://db{package}", "--user", "ann", "--set", "table=posts")
    assert ran.code == 0
    assert "GRANT INSERT ON posts TO ann;\n# db.conf: positions would lie\nsync = on\n" in ran.out


def test_run_asks_first_and_may_be_done_again(run: Run, package: Path) -> None:
    package.write_text(json.dumps({"users": ["bob"]}))
    words = ("init", "blog-posts", "--at", f"adoptkv://db{package}", "--user", "bob", "--run")
    for answer in (b"n\n", b""):
        ran = run(*words, stdin=answer)
        assert (ran.code, "nothing was changed" in ran.err) == (1, True)
        assert "GRANT INSERT ON objects TO bob;" in ran.out
        assert "tables" not in _state(package)
    done = run(*words, stdin=b"y\n")
    assert done.code == 0
    assert "created: CREATE TABLE IF NOT EXISTS objects ( epoch text);\ngranted: GRANT" in done.out
    assert _state(package) == {"users": ["bob"], "tables": ["objects"], "granted": "bob"}
    again = run(*words, "--yes")
    assert (again.code, "there already: CREATE TABLE" in again.out) == (0, True)


def test_what_only_a_person_can_do_is_left_and_said(run: Run, package: Path) -> None:
    package.write_text(json.dumps({"users": ["ann"]}))
    ran = run("init", "blog-posts", "--at", f"adoptkv://db{package}", "--user", "ann", "--run", "--yes")
    assert ran.code == 1
    assert "left for you:\n# db.conf: positions would lie\nsync = on\n" in ran.out
    assert _state(package)["granted"] == "ann"
    nameless = run("init", "blog-posts", "--at", f"adoptkv://db{package}", "--run", "--yes")
    assert (nameless.code, "GRANT INSERT ON objects TO USER;" in nameless.out) == (1, True)


def test_a_step_that_fails_ends_it_without_credentials(run: Run, package: Path) -> None:
    package.write_text(json.dumps({}))
    url = f"adoptkv://ann:s3cret@db{package}?password=0ther-pw"
    ran = run("init", "blog-posts", "--at", url, "--user", "eve", "--run", "--yes")
    assert ran.code == 2
    assert "no user eve at" in ran.err
    assert "each may be done again" in ran.err
    refused = run("init", "blog-posts", "--at", url, "--set", "table=a b")
    assert (refused.code, "is no table of" in refused.err) == (2, True)
    assert not any(word in ran.out + ran.err + refused.err for word in ("s3cret", "0ther-pw"))


def test_a_step_that_hangs_is_not_said_to_be_undone(run: Run, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking.ask, "__defaults__", (0.2,))
    package.write_text(json.dumps({"hang": True}))
    ran = run("init", "blog-posts", "--at", f"adoptkv://db{package}", "--run", "--yes")
    assert ran.code == 2
    assert "no answer within 0.2 s; nobody knows whether it was done" in ran.err


def test_words_that_the_kind_of_store_does_not_know_are_refused(run: Run, package: Path) -> None:
    for word in ("tables=x", "table"):
        ran = run("init", "blog-posts", "--at", f"adoptkv://db{package}", "--set", word)
        assert ran.code == 2
        assert "table=the table of the objects" in ran.err


def test_a_store_that_needs_nothing_says_so(run: Run, package: Path) -> None:
    url = f"filekv://db{package}"
    assert not isinstance(administration_of(url), StorePreparer)
    assert run("init", "blog-posts", "--at", url) == Ran(0, f"blog-posts at {url}: nothing to prepare\n", "")
    empty = run("init", "blog-posts", "--at", f"adoptkv://db{package}", "--set", "table=none")
    assert (empty.code, "nothing to prepare" in empty.out) == (0, True)
    unknown = run("init", "blog-posts")
    assert (unknown.code, "--at URL" in unknown.err) == (2, True)
