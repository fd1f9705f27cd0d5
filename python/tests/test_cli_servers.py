"""`antipode epoch` and `antipode doctor`: what is asked of servers by URL (API section 5)."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from antipode.cli import asking
from antipode.shim.administration import scrubbed, without_credentials
from commands import Ran, Run, install_package, runner
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_package(tmp_path, monkeypatch)


def _url(path: Path, scheme: str = "filekv") -> str:
    return f"{scheme}://ann:s3cret@db{path}?password=0ther-pw"


def _marks(path: Path) -> dict[str, int]:
    marks: dict[str, int] = json.loads(path.read_text())["marks"]
    return marks


def test_epoch_list_says_what_is_proved(run: Run, package: Path) -> None:
    ran = run("epoch", "list", "blog-posts", "--at", f"filekv://db{package}")
    assert ran == Ran(
        0, f"blog-posts at filekv://db{package}: 2 epochs\n  e1  up to 1042\n  e2  up to 7     current\n", ""
    )


def test_epoch_takes_the_primary_from_the_environment(run: Run, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPODE_STORE_BLOG_POSTS_PRIMARY", _url(package, "filekvs"))
    assert "e1  up to 1042" in run("epoch", "list", "blog-posts").out
    without = run("epoch", "list", "user-acl")
    assert without.code == 2
    assert "--at URL, or set ANTIPODE_STORE_<NAME>_PRIMARY" in without.err


def test_epoch_settle_asks_first(run: Run, package: Path) -> None:
    at = ("--at", f"filekv://db{package}")
    before = package.read_text()
    for answer in (b"n\n", b"\n", b""):
        ran = run("epoch", "settle", "--fenced", "blog-posts", "e1", *at, stdin=answer)
        assert ran.code == 1
        assert "proves it up to 1042" in ran.out
        assert "nothing was changed" in ran.err
        assert package.read_text() == before
    ran = run("epoch", "settle", "--fenced", "blog-posts", "e1", *at, stdin=b"y\n")
    assert ran.code == 0
    assert f"settled e1 at blog-posts at filekv://db{package}" in ran.out
    assert _marks(package) == {"e1": 2**64 - 1, "e2": 7}
    assert "e1  settled by hand" in run("epoch", "list", "blog-posts", *at).out
    again = run("epoch", "settle", "--fenced", "blog-posts", "e1", *at)
    assert (again.code, "settled already" in again.out) == (0, True)


def test_epoch_settle_up_to_a_position(run: Run, package: Path) -> None:
    """EPOCH-24."""
    at = ("--at", f"filekv://db{package}")
    ran = run("epoch", "settle", "blog-posts", "e1", "--position", "1050", *at, stdin=b"y\n")
    assert ran.code == 0
    assert "every write of it up to 1050 is there" in ran.out
    assert f"settled e1 up to 1050 at blog-posts at filekv://db{package}" in ran.out
    assert _marks(package)["e1"] == 1050
    again = run("epoch", "settle", "blog-posts", "e1", "--position", "1049", *at)
    assert (again.code, "proves e1 up to 1050 already" in again.out) == (0, True)
    assert run("epoch", "settle", "blog-posts", "e1", "--position", "0", *at).code == 2


@pytest.mark.parametrize("words", [[], ["--position", "5", "--fenced"]])
def test_epoch_settle_wants_an_end_or_a_statement(run: Run, package: Path, words: list[str]) -> None:
    """EPOCH-24: an old primary that is cut off may go on writing."""
    ran = run("epoch", "settle", "blog-posts", "e1", *words, "--at", f"filekv://db{package}", "--yes")
    assert ran.code == 2
    assert "--position N" in ran.err
    assert "--fenced" in ran.err


def test_epoch_settle_of_an_unknown_epoch_says_so_and_goes_on_with_yes(run: Run, package: Path) -> None:
    ran = run("epoch", "settle", "--fenced", "blog-posts", "e0", "--at", f"filekv://db{package}", stdin=b"n\n")
    assert "knows no such epoch" in ran.out
    assert run("epoch", "settle", "--fenced", "blog-posts", "e0", "--at", f"filekv://db{package}", "--yes").code == 0
    assert _marks(package)["e0"] == 2**64 - 1


def test_the_epoch_that_is_written_now_cannot_be_settled(run: Run, package: Path) -> None:
    ran = run("epoch", "settle", "--fenced", "blog-posts", "e2", "--at", f"filekv://db{package}", "--yes")
    assert ran.code == 2
    assert "Only an epoch that has ended can be settled" in ran.err
    assert _marks(package)["e2"] == 7


def test_epoch_settle_repeats_what_the_server_said(run: Run, package: Path) -> None:
    package.write_text(json.dumps({"current": "e2", "marks": {"e1": 1}, "read_only": True}))
    ran = run("epoch", "settle", "--fenced", "blog-posts", "e1", "--at", _url(package), "--yes")
    assert ran.code == 2
    assert "e1 was not settled" in ran.err
    assert "is a replica" in ran.err


@pytest.mark.parametrize("name", ["", "x" * 33])
def test_what_cannot_be_an_epoch_is_refused(run: Run, package: Path, name: str) -> None:
    ran = run("epoch", "settle", "--fenced", "blog-posts", name, "--at", f"filekv://db{package}", "--yes")
    assert ran.code == 2
    assert "cannot be an epoch" in ran.err


def test_epoch_adopt_where_marks_name_their_system(run: Run, package: Path) -> None:
    refused = run("epoch", "adopt", "blog-posts", "f1", "--at", f"filekv://db{package}", "--yes")
    assert refused.code == 2
    assert "nothing to adopt" in refused.err
    at = ("--at", f"adoptkv://db{package}")
    assert run("epoch", "adopt", "blog-posts", "f1", *at, stdin=b"n\n").code == 1
    assert "f1" not in _marks(package)
    assert run("epoch", "adopt", "blog-posts", "f1", *at, "--yes").code == 0
    assert _marks(package)["f1"] == 5


def _findings(package: Path, *findings: tuple[str, ...]) -> None:
    package.write_text(json.dumps({"findings": findings}))


def test_doctor_says_what_would_be_unproven_why_and_what_cures_it(run: Run, package: Path) -> None:
    _findings(
        package,
        ("OK", "role: replica of a:6379", "", "", "AP203"),
        (
            "UNPROVEN",
            "the user may not INFO",
            "no position can be read,\nso writes stay incomplete",
            "ACL SETUSER ann +info",
            "AP203",
        ),
    )
    ran = run("doctor", f"filekv://db{package}")
    assert ran == Ran(
        1,
        f"filekv://db{package}\n"
        "  ok        role: replica of a:6379\n"
        "  unproven  the user may not INFO [AP203]\n"  # OBS-14
        "            no position can be read, so writes stay incomplete\n"
        "            -> ACL SETUSER ann +info\n"
        "1 server: 1 thing would be unproven\n",
        "",
    )


def test_doctor_exit_codes(run: Run, package: Path, tmp_path: Path) -> None:
    well, bad, mute = tmp_path / "well.json", tmp_path / "bad.json", tmp_path / "mute.json"
    _findings(well, ("OK", "fine", "", ""), ("WARNING", "dear", "", ""))
    _findings(bad, ("UNPROVEN", "x", "", ""))
    urls = {name: f"filekv://db{path}" for name, path in [("well", well), ("bad", bad), ("mute", mute)]}
    fine = run("doctor", urls["well"])
    assert (fine.code, fine.out.splitlines()[-1]) == (
        0,
        "1 server: everything that is written and waited for here can be proved, 1 warning",
    )
    assert run("doctor", urls["well"], urls["bad"]).code == 1
    gone = run("doctor", urls["well"], urls["mute"])  # no such file: the server is not there
    assert gone.code == 2
    assert "not examined: [Errno 2]" in gone.out
    assert run("doctor", urls["mute"], urls["bad"]).code == 1
    for url in ("nosuch://x", "db", "ann:s3cret@db"):
        ran = run("doctor", url)
        assert ran.code == 2
        assert "known here:" in ran.err
        assert "filekv://" in ran.err
        assert "s3cret" not in ran.err


def test_doctor_ends_though_a_server_hangs(run: Run, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking.ask_all, "__defaults__", (0.2,))
    package.write_text(json.dumps({"hang": True}))
    ran = run("doctor", f"filekv://db{package}")
    assert ran.code == 2
    assert "no answer within 0.2 s" in ran.out


def test_credentials_are_never_printed(run: Run, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = f"filekv://ann:s3cret%2Fx@db{package}?password=0ther-pw"
    monkeypatch.setenv("ANTIPODE_STORE_BLOG_POSTS_PRIMARY", secret)
    monkeypatch.setenv("ANTIPODE_STORE_BLOG_POSTS_REPLICAS", f"{secret} {secret}")
    package.write_text(json.dumps({"fail": True, "current": "e2", "marks": {"e1": 3}, "read_only": True}))
    outcomes = [
        run("doctor", secret),
        run("doctor", "nosuch" + secret),
        run("epoch", "list", "blog-posts"),
        run("epoch", "settle", "--fenced", "blog-posts", "e1", "--yes"),
        run("epoch", "list", "blog-posts", "e1", "e2", secret),  # a mistake that the parser quotes
        run("epoch", "list", "blog-posts", "--at", secret.replace(".json", ".nowhere")),
        run("version"),
    ]
    for ran in outcomes:
        assert not any(word in ran.out + ran.err for word in ("s3cret", "0ther-pw"))
    assert [ran.code for ran in outcomes] == [2, 2, 0, 2, 2, 2, 0]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://b1:6379/0", "redis://b1:6379/0"),
        ("redis://ann:pw@b1:6379", "redis://b1:6379"),
        ("redis://b1/0?password=pw", "redis://b1/0"),
        ("unix://:pw@/run/redis.sock?db=1", "unix:///run/redis.sock"),
        ("redis://ann:p/w@b1", "redis://…"),
        ("redis://ann:p#w@b1", "redis://…"),
        ("redis://b1?password=p@w", "redis://…"),
        ("ann:pw@b1", "…"),
        ("b1", "b1"),
    ],
)
def test_a_url_is_shown_without_credentials(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


@given(password=st.text(st.characters(codec="utf-8"), min_size=4, max_size=12), host=st.sampled_from(["h", "h:1/0"]))
def test_no_password_passes_into_what_is_shown(password: str, host: str) -> None:
    url = f"zq://u:{password}@{host}"
    if password not in "zq://…h:1/0":
        assert password not in without_credentials(url)
        assert password not in scrubbed(f"cannot reach {url}: {password}", url).replace("cannot reach", "")


def test_no_thread_is_left_where_servers_answer(run: Run, package: Path) -> None:
    before = threading.active_count()
    assert run("epoch", "list", "blog-posts", "--at", f"filekv://db{package}").code == 0
    assert threading.active_count() == before
