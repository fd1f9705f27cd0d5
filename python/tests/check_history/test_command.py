"""`antipode check --history`: words, exit codes, other forms (HIST-8, HIST-16, HIST-18 to HIST-20, HIST-22)."""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from antipode import cli
from antipode.check.history.building import build
from antipode.check.history.deciding import decide
from antipode.check.history.foreign import from_dbcop, from_plume, to_dbcop, to_plume
from antipode.check.history.operations import HistoryError, Kind, Operation
from antipode.check.history.patterns import Pattern
from antipode.check.history.reading import read_history, read_operations
from antipode.check.history.writing import write_operations
from check_history.generating import Shape, generate
from commands import Ran, Run, runner
from hypothesis import given, settings
from hypothesis import strategies as st

FOLDER = Path(__file__).parents[3] / "spec" / "histories"
STORY = FOLDER / "violated" / "WriteCOInitRead" / "post-notification.jsonl"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(FOLDER.parent)
    return runner(monkeypatch, capsys)


def test_a_violation_is_told_in_sentences(run: Run) -> None:
    assert run("check", "--history", str(STORY.relative_to(FOLDER.parent))) == Ran(
        1,
        "VIOLATED: 1 violation of XCY as propagated, in 2 reads\n"
        "\n"
        "1. WriteCOInitRead: follower-notify read 42 of posts and got nothing, as if it had never been written, "
        "though a write came before\n"
        + "".join(
            f"  histories/violated/WriteCOInitRead/post-notification.jsonl:{line}\n"
            for line in (
                "1  post    post-storage (alice) wrote 42 of posts",
                "2  notice  then, in the same scope, post-storage (alice) wrote 7 of notifications",
                "3  heard   follower-notify (bob) read 7 of notifications and got what notice wrote",
                "4  lost    then, in the same scope, follower-notify (bob) read 42 of posts and found nothing",
            )
        )
        + "  So lost should have returned what post wrote, or something newer. A barrier before lost waits until it is "
        "visible there.\n"
        "\n"
        "strict XCY (no barrier can reach it): 0 more reads\n",
        "",
    )


@pytest.mark.parametrize(("folder", "code"), [("consistent", 0), ("violated", 1), ("unknown", 2), ("refused", 2)])
def test_exit_codes(run: Run, folder: str, code: int) -> None:
    for path in sorted((FOLDER / folder).rglob("*.jsonl")):
        ran = run("check", "--history", str(path))
        assert ran.code == code, path
        if folder == "refused":
            assert ran.out == ""
            assert ran.err.startswith(f"antipode: {path}")
            assert ran.err.count("\n") == 1
        else:
            assert ran.err == ""
        assert not ran.out or ran.out.split()[0].strip(":") in {"consistent", "VIOLATED", "CANNOT"}


@pytest.mark.parametrize("path", sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("[cuv]*/**/*.jsonl")))
def test_json_and_picture_say_the_same(run: Run, path: str, tmp_path: Path) -> None:
    out, page = tmp_path / "picture.dot", tmp_path / "page.html"
    ran = run("check", "--history", str(FOLDER / path), "--json", "--dot", str(out), "--html", str(page))
    told = json.loads(ran.out)
    case = json.loads((FOLDER / "index.json").read_text("utf-8"))["cases"][path]
    verdict, *pattern = path.split("/")[:-1]
    assert told["verdict"] == verdict
    assert [each["pattern"] for each in told["violations"]] == pattern
    picture = out.read_text("utf-8")
    assert picture.count("{") == picture.count("}")
    drawn = drawings(page)
    assert len(drawn) == len(told["violations"])
    for violation, (titles, arrows) in zip(told["violations"], drawn, strict=True):
        assert len(titles) == len(violation["witness"])
        assert all(any(f": {name} " in title for title in titles) for name in violation["witness"])
        assert arrows >= len(violation["witness"]) - 1
    for violation in told["violations"]:
        assert sorted(violation["witness"]) == sorted(case["witness"])
        assert {step["operation"] for step in violation["steps"]} == set(violation["witness"])
        assert violation["conclusion"]
        assert all(f'label="{name}\\n' in picture for name in violation["witness"])
    assert sorted({gap["operation"] for gap in told["gaps"]}) == case.get("gaps", [])
    if path == "unknown/unattributed.jsonl":
        assert told["unattributed"] == ["what"]


def drawings(page: Path) -> list[tuple[list[str], int]]:
    """Of each drawing of a page the titles of its boxes, and how many arrows it has."""
    found = []
    for text in re.findall(r"<svg .*?</svg>", page.read_text("utf-8"), re.DOTALL):
        drawing = ElementTree.fromstring(text)
        titles = [title.text or "" for title in drawing.iter("title")]
        assert len(titles) == len(list(drawing.iter("rect")))
        found.append((titles, len([path for path in drawing.iter("path") if path.get("marker-end")])))
    return found


def test_what_is_not_known_is_named(run: Run) -> None:
    ran = run("check", "--history", str(FOLDER / "unknown" / "unattributed.jsonl"))
    assert ran.code == 2
    assert "CANNOT TELL: no violation was found, but not everything is known (1 reads judged)" in ran.out
    assert "reads without a known write: 1" in ran.out
    assert "what  nobody knows which write this read returned" in ran.out


def test_standard_input_and_deadline(run: Run) -> None:
    story = STORY.read_bytes()
    assert run("check", "--history", "-", stdin=story).code == 1
    assert run("check", "--history", "-", "--deadline", "30s", stdin=story).code == 1
    refused = run("check", "--history", "-", "--deadline", "soon", stdin=story)
    assert (refused.code, "is no time" in refused.err) == (2, True)
    late = run("check", "--history", "-", "--deadline", "0s", stdin=long_one())
    assert (late.code, late.out.startswith("CANNOT TELL")) == (2, True)
    small = run("check", "--history", "-", "--json", "--deadline", "0s", stdin=long_one())
    assert json.loads(small.out)["verdict"] == "unknown"


def test_no_file_and_no_history(run: Run, tmp_path: Path) -> None:
    for words in (["check"], ["check", "--history", str(tmp_path / "none")], ["check", "--history", str(tmp_path)]):
        ran = run(*words)
        assert ran.code == 2
        assert ran.err
    for option in ("--dot", "--html"):
        ran = run("check", "--history", str(STORY), option, str(tmp_path / "no" / "folder"))
        assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_a_page_says_what_the_terminal_says(run: Run, tmp_path: Path) -> None:
    """HIST-16: a page runs nothing, and asks for nothing from elsewhere."""
    page = tmp_path / "page.html"
    for path in [
        STORY,
        *sorted((FOLDER / "unknown").glob("*.jsonl")),
        *sorted((FOLDER / "consistent").glob("*.jsonl")),
    ]:
        ran = run("check", "--history", str(path), "--html", str(page))
        shown = html.unescape(page.read_text("utf-8"))
        assert f"<h1>{ran.out.splitlines()[0]}</h1>" in shown
        assert not re.search(r"<script|<link|<img|@import|https?://", shown)
    late = run("check", "--history", "-", "--deadline", "0s", "--html", str(page), stdin=long_one())
    assert (late.code, "CANNOT TELL" in page.read_text("utf-8")) == (2, True)


def long_one() -> bytes:
    lines = io.StringIO()
    write_operations(generate(1, Shape(operations=2000)), lines)
    return lines.getvalue().encode()


def test_a_terminal_obeys_nothing_of_a_history(run: Run, tmp_path: Path) -> None:
    text = STORY.read_text("utf-8").replace("follower-notify", "\\u001b[2Jfollower\\ud800").replace("42", "4\\u202e2")
    text = text.replace('"bob"', '"</text><script>alert(1)</script>"')
    picture, page = tmp_path / "x.dot", tmp_path / "x.html"
    ran = run("check", "--history", "-", "--dot", str(picture), "--html", str(page), stdin=text.encode())
    assert ran.code == 1
    assert not {"\x1b", "\u202e"} & set(ran.out + picture.read_text("utf-8") + page.read_text("utf-8"))
    assert "<script" not in page.read_text("utf-8")
    assert len(drawings(page)) == 1
    assert json.loads(run("check", "--history", "-", "--json", stdin=text.encode()).out)["verdict"] == "violated"


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300)
    | st.sampled_from(sorted(FOLDER.rglob("*.jsonl"))).flatmap(
        lambda path: st.tuples(
            st.just(path.read_bytes()), st.integers(0, 400), st.integers(0, 12), st.binary(max_size=6)
        ).map(lambda cut: cut[0][: cut[1]] + cut[3] + cut[0][cut[1] + cut[2] :])
    ),
    st.sampled_from(["antipode", "dbcop", "plume"]),
)
def test_no_octets_end_in_a_traceback(data: bytes, form: str) -> None:
    out = io.StringIO()
    before = sys.argv, sys.stdin
    sys.argv = ["antipode", "check", "--history", "-", "--from", form]
    sys.stdin = io.TextIOWrapper(io.BytesIO(data))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        sys.argv, sys.stdin = before
    assert ended.value.code in {0, 1, 2}
    assert "failed:" not in out.getvalue()
    assert "Traceback" not in out.getvalue()


def test_lines_are_bounded() -> None:
    with pytest.raises(HistoryError, match="longer than"):
        list(read_operations(io.BytesIO(b" " * (2**20 + 10)), "x"))


@pytest.mark.timeout(20)
def test_a_field_that_stands_twice_behind_many_is_found_in_one_pass() -> None:
    """A line has room for more than a hundred thousand fields: to look for each among all takes minutes."""
    fields = [f'"{number}":1' for number in range(100_000)]
    line = "{" + ",".join([*fields, fields[-1]]) + "}\n"
    with pytest.raises(HistoryError, match="h:1: the field '99999' stands twice"):
        list(read_operations(io.BytesIO(line.encode()), "h"))


# Other checkers' forms

DBCOP = """[[{"events":[{"Write":{"variable":0,"version":1}},{"Write":{"variable":1,"version":2}}],"committed":true}],
 [{"events":[{"Read":{"variable":1,"version":2}}],"committed":true},
  {"events":[{"Read":{"variable":0,"version":null}}],"committed":true},
  {"events":[{"Write":{"variable":0,"version":9}}],"committed":false}]]"""
DBCOP_TEXT = "// one\n[x:=1 y:=2]\n---\n[y==2] [x==?]\n[x:=9]!\n"
PLUME = "w(0,1,1,1)\nw(1,2,1,1)\nr(1,2,2,2)\nr(0,0,2,3)\nw(0,9,2,-1)\n"


@pytest.mark.parametrize(
    ("form", "text"),
    [("dbcop", DBCOP), ("dbcop", f'{{"params": {{}}, "data": {DBCOP}}}'), ("dbcop", DBCOP_TEXT), ("plume", PLUME)],
)
def test_read_from_other_checkers(run: Run, form: str, text: str) -> None:
    ran = run("check", "--history", "-", "--from", form, "--json", stdin=text.encode())
    told = json.loads(ran.out)
    assert ran.code == 1
    assert [(each["pattern"], len(each["witness"])) for each in told["violations"]] == [("WriteCOInitRead", 4)]


@pytest.mark.parametrize("form", ["dbcop", "plume"])
@pytest.mark.parametrize("seed", range(5))
def test_there_and_back(form: str, seed: int) -> None:
    plant = [Pattern.WRITE_CO_READ, Pattern.CYCLIC_HB, Pattern.THIN_AIR_READ, Pattern.WRITE_CO_INIT_READ]
    made = [each for each in generate(seed, Shape(operations=80), plant) if each.kind in (Kind.WRITE, Kind.READ)]
    for each in made:
        each.lineage = None
    history = build(made)
    written = to_dbcop(history) if form == "dbcop" else to_plume(history)
    assert written.lost == 0
    back = build(from_dbcop(written.text, "x") if form == "dbcop" else from_plume(written.text, "x"))
    assert sorted(found.pattern for found in decide(back).found) == sorted(
        found.pattern for found in decide(history).found
    )
    assert len(back) == len(history)


@pytest.mark.parametrize("form", ["dbcop", "plume"])
def test_what_a_form_has_no_place_for_is_counted(run: Run, form: str) -> None:
    ran = run("check", "--history", str(FOLDER / "violated/WriteCOInitRead/message.jsonl"), "--to", form)
    assert ran.code == 0
    assert "3 of them were left out" in ran.err
    back = build(from_dbcop(ran.out, "x") if form == "dbcop" else from_plume(ran.out, "x"))
    assert len(back) == 4


def test_to_its_own_form(run: Run, tmp_path: Path) -> None:
    ran = run("check", "--history", "-", "--from", "plume", "--to", "antipode", stdin=PLUME.encode())
    (tmp_path / "x.jsonl").write_text(ran.out)
    assert len(read_history(tmp_path / "x.jsonl")) == 4


@pytest.mark.parametrize(
    ("form", "text", "word"),
    [
        ("plume", "w(1,2,3)\n", "x:1: not in Plume's form"),
        ("plume", "w(1,2,1,1)\nw(1,2,1,2)\n", "x:2: the value 2 of 1 is written twice"),
        ("dbcop", "[[{", "not JSON"),
        ("dbcop", '[[{"events":[{"Lock":{"variable":1,"version":1}}],"committed":true}]]', "neither Read nor Write"),
        ("dbcop", '[[{"events":[{"Write":{"variable":1,"version":null}}],"committed":true}]]', "without a version"),
        ("dbcop", '{"data": 3}', "not in dbcop's form"),
        ("dbcop", "[x:=1] rest\n", "x:1: not in dbcop's form"),
        ("dbcop", "[x<1]\n", "x:1: not in dbcop's form"),
        ("dbcop", "", "no"),
    ],
)
def test_other_forms_refused(form: str, text: str, word: str) -> None:
    with pytest.raises(HistoryError) as refused:
        build(from_dbcop(text, "x") if form == "dbcop" else from_plume(text, "x"))
    assert word in str(refused.value)


def test_operations_survive_their_lines() -> None:
    operations = [
        Operation(
            "w", Kind.WRITE, "p", "s", "q", "st", "k\ud800", identifier="1~st..e.1", lineage="1~st..e.1", time=1.5
        ),
        Operation("r", Kind.READ, "p", "s", store="st", key="k\ud800", reads_from="w", lineage=("w",)),
        Operation("s", Kind.SEND, "p", "s", message="m", lineage=()),
    ]
    lines = io.StringIO()
    write_operations(operations, lines)
    read = list(read_operations(io.BytesIO(lines.getvalue().encode()), "x"))
    for each in read:
        each.place = ""
    assert read == operations
