"""The forms of the answer: JSON, JUnit, SARIF, the page, a baseline (CHECK-13 to CHECK-15)."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from antipode.check.records import plots
from antipode.check.records.engine import Engine
from antipode.check.records.findings import report
from antipode.check.records.line import convert
from antipode.check.records.reading import ReadLines
from check_records.samples import AFTER_MESSAGE, OTHERS, barrier, followed, look, other, read, written
from commands import Run, runner

LATE = look(verdict="not_yet", visible_after=0.2)
HOSTILE = "<script>alert(1)</script>&\"'\x1b[31m\u202e\x00é"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.fixture
def records(run: Run, tmp_path: Path) -> Path:
    """One of everything, with names that nobody should take at their word."""
    del run
    named = {"opened_by": f"{HOSTILE}.py:1", "store": HOSTILE, "scope": "message"}
    return written(
        tmp_path / "r.jsonl",
        [
            read("stale", 0.05),
            read("stale", 0.5, time=30.0, site=f"{HOSTILE}.py:3", store=HOSTILE, origin=named, service=HOSTILE),
            barrier(LATE, time=12.0),
            barrier(),
            followed(10, 1000),
            *(other(kind) for kind in OTHERS),
            {"record": 2},
        ],
    )


def test_the_same_records_give_the_same_json_whatever_the_order_of_files(run: Run, tmp_path: Path) -> None:
    """CHECK-13."""
    for name in ("a", "b"):
        looks = [barrier(look(verdict="not_yet", visible_after=1 / n), time=n) for n in range(1, 40)]
        written(tmp_path / f"{name}.jsonl", [*looks, read("stale", trace_id=name * 32), {"record": 2}])
    one, two = run("check", "--json", "a.jsonl", "b.jsonl"), run("check", "--json", "b.jsonl", "a.jsonl")
    assert one == two
    assert json.loads(one.out)["findings"][0]["trace_id"] == "a" * 32


def test_junit(run: Run, records: Path) -> None:
    """CHECK-13: violations fail, doubts are skipped."""
    assert run("check", records.name, "--junit", "out.xml").code == 1
    root = ElementTree.fromstring(Path("out.xml").read_bytes())
    [suite] = root
    assert (suite.tag, suite.get("failures"), suite.get("errors")) == ("testsuite", "4", "0")
    assert int(suite.get("tests", "0")) == len(suite)
    failed = [case for case in suite if case.find("failure") is not None]
    assert {case.get("classname") for case in failed} == {
        "antipode.stale",
        "antipode.late",
        "antipode.published_before_commit",
    }
    skipped = [case for case in suite if case.find("skipped") is not None]
    assert len(skipped) == int(suite.get("skipped", "0")) == len(OTHERS) - 1
    assert any("antipode.barrier() at followers/app.py:28" in (case[0].text or "") for case in failed)


def test_an_unknown_answer_is_an_error_of_junit(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "r.jsonl", [read("behind")])
    assert run("check", "r.jsonl", "--junit", "out.xml").code == 2
    [suite] = ElementTree.fromstring(Path("out.xml").read_bytes())
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "1", "1")


def test_sarif(run: Run, records: Path) -> None:
    """CHECK-13: the parts that SARIF 2.1.0 asks for, and what its readers show."""
    assert run("check", records.name, "--sarif", "out.sarif").code == 1
    log = json.loads(Path("out.sarif").read_text())
    assert (log["version"], log["$schema"].endswith("sarif-schema-2.1.0.json")) == ("2.1.0", True)
    [made] = log["runs"]
    driver = made["tool"]["driver"]
    assert driver["name"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", driver["semanticVersion"])
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    levels = {}
    for result in made["results"]:
        assert result["message"]["text"]
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["baselineState"] == "new"
        levels[result["ruleId"]] = result["level"]
        for location in result.get("locations", []):
            place = location["physicalLocation"]
            assert re.fullmatch(r"[A-Za-z0-9/._~%-]+", place["artifactLocation"]["uri"])
            assert place["region"]["startLine"] > 0
    assert levels == {
        "antipode/stale": "error",
        "antipode/late": "error",
        "antipode/published_before_commit": "error",
        "antipode/vacuous": "warning",
        "antipode/orphan": "warning",
        "antipode/late_write": "warning",
        "antipode/incomplete": "warning",
        "antipode/concurrent_write": "note",
    }
    prints = [result["partialFingerprints"]["antipode/v1"] for result in made["results"]]
    assert len(set(prints)) == len(prints)
    [notice] = made["invocations"][0]["toolExecutionNotifications"]
    assert "form 2" in notice["message"]["text"]


def test_sarif_of_an_unknown_answer_does_not_look_like_a_clean_one(run: Run, tmp_path: Path) -> None:
    """CHECK-13."""
    written(tmp_path / "r.jsonl", [])
    assert run("check", "r.jsonl", "--sarif", "out.sarif").code == 2
    [made] = json.loads(Path("out.sarif").read_text())["runs"]
    told = made["invocations"][0]["toolExecutionNotifications"]
    assert [(each["level"], each["message"]["text"]) for each in told] == [
        ("error", "cannot tell: there are no records")
    ]


def test_findings_of_one_site_have_fingerprints_of_their_own(run: Run, tmp_path: Path) -> None:
    """CHECK-13: what has the same one is shown once."""
    routes = [{"scope": "request", "opened_by": f"GET /{name}"} for name in "ab"]
    records = [read("stale", origin=route, region=region) for route in routes for region in "bc"]
    written(tmp_path / "r.jsonl", records)
    run("check", "r.jsonl", "--sarif", "out.sarif")
    [made] = json.loads(Path("out.sarif").read_text())["runs"]
    assert len({result["partialFingerprints"]["antipode/v1"] for result in made["results"]}) == 4


def test_a_name_is_no_link_of_sarif(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "r.jsonl", [read("stale", store="[posts](https://example.org)")])
    run("check", "r.jsonl", "--sarif", "out.sarif")
    [made] = json.loads(Path("out.sarif").read_text())["runs"]
    assert "[posts](" not in made["results"][0]["message"]["text"]


def test_records_of_no_time_have_no_rate_a_second(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "r.jsonl", [read("stale", time=0.0), read("stale", time=5e-324)])
    ran = run("check", "--json", "r.jsonl")
    assert (ran.code, json.loads(ran.out)["suggestions"][0]["per_second"]) == (1, None)


def test_names_with_commas_and_strokes_stay_whole(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "r.jsonl", [barrier(), other("vacuous", lineage_stores=["a / b, c"], registered=[])])
    [found] = json.loads(run("check", "--json", "r.jsonl").out)["findings"]
    assert (found["lineage_stores"], found["registered"]) == (["a / b, c"], [])


# A baseline


def moved(line: int, **more: Any) -> dict[str, Any]:
    return read("stale", site=f"followers/app.py:{line}", **more)


@pytest.mark.parametrize(
    ("then", "now", "new"),
    [
        ([moved(31)], [moved(31)], []),
        ([moved(31)], [moved(31), moved(31)], []),
        ([moved(31)], [moved(40)], []),
        ([moved(31)], [moved(31, origin=AFTER_MESSAGE | {"opened_by": "followers/app.py:9"})], []),
        ([moved(31)], [moved(31), moved(40)], [40]),
        ([moved(31), moved(33)], [moved(32), moved(33)], []),
        ([moved(31)], [moved(31, store="user-acl")], [31]),
        ([moved(31)], [moved(31, service="other")], [31]),
        ([moved(31)], [moved(31, origin=AFTER_MESSAGE | {"store": "others"})], [31]),
        ([moved(31)], [read("stale", site="followers/apps.py:31")], [31]),
        ([barrier(LATE)], [moved(31)], [31]),
        ([moved(31, origin={"scope": "task"})], [moved(31, origin={"scope": "detached"})], [31]),
    ],
)
def test_only_what_is_new_counts(run: Run, tmp_path: Path, then: Any, now: Any, new: list[int]) -> None:
    """CHECK-14."""
    written(tmp_path / "then.jsonl", then)
    written(tmp_path / "now.jsonl", [*now, followed(100, 100)])
    Path("old.json").write_text(run("check", "--json", "then.jsonl").out)
    ran = run("check", "--json", "now.jsonl", "--baseline", "old.json")
    found = json.loads(ran.out)["findings"]
    assert [int(finding["site"].rpartition(":")[2]) for finding in found if finding["new"]] == new
    assert ran.code == bool(new)


def test_doubts_can_be_in_the_baseline_too(run: Run, tmp_path: Path) -> None:
    """CHECK-7, CHECK-14."""
    written(tmp_path / "r.jsonl", [barrier(), other("orphan"), other("vacuous")])
    Path("old.json").write_text(run("check", "--json", "r.jsonl").out)
    assert run("check", "r.jsonl").code == 2
    ran = run("check", "r.jsonl", "--baseline", "old.json")
    assert (ran.code, "in the baseline" in ran.out) == (0, True)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"check": 2, "findings": []}', "[" * 100_000, '{"check": 1, "findings": [{}]}', "\udcff"],
)
def test_a_baseline_that_is_none(run: Run, tmp_path: Path, text: str) -> None:
    written(tmp_path / "r.jsonl", [barrier()])
    Path("old.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    ran = run("check", "r.jsonl", "--baseline", "old.json")
    assert ran.code == 2
    assert ran.err.startswith("antipode: old.json: ")


# The page


class Tags(HTMLParser):
    """What a browser would see: tags with attributes, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "rect", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_needs_nothing_and_takes_nothing_for_markup(run: Run, records: Path) -> None:
    """CHECK-15."""
    assert run("check", records.name, "--html", "page.html").code == 1
    page = Path("page.html").read_text("utf-8")
    seen = Tags()
    seen.feed(page)
    assert seen.open == []
    assert {tag for tag, _ in seen.tags} & {"script", "link", "img", "iframe", "object"} == set()
    named = {name for _, attributes in seen.tags for name in attributes}
    assert not {name for name in named if name.startswith("on")} | named & {"src", "href"}
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "prefers-color-scheme: dark" in style
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in seen.tags
    text = " ".join(" ".join(seen.text).split())
    assert "<script>alert(1)</script>" in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", page)
    assert "stale 10.0 % (1.8–40.4)" in text
    assert "antipode.barrier() at followers/app.py:28" in text
    assert len([tag for tag, _ in seen.tags if tag == "svg"]) == 4  # over time, and the lags of two reads and a barrier
    for tag, attributes in seen.tags:
        if tag == "rect":
            left, width = float(attributes["x"] or ""), float(attributes["width"] or "")
            assert 0 <= left <= left + width <= 100.001


@pytest.mark.parametrize("lines", [[], [barrier()], [read("stale", None)], [read("stale", 0.0)], [read("stale", 1e6)]])
def test_a_page_of_little(run: Run, tmp_path: Path, lines: list[Any]) -> None:
    written(tmp_path / "r.jsonl", lines)
    run("check", "r.jsonl", "--html", "page.html")
    seen = Tags()
    seen.feed(Path("page.html").read_text("utf-8"))
    assert seen.open == []


def pictures(*records: Any) -> list[plots.Plot]:
    """What the page draws: over time, and the lags of each finding."""
    engine = Engine()
    found = report(engine.load(map(convert, records)), ReadLines(), pictures=True)
    engine.close()
    over_time = plots.timeline(found)
    return [*([over_time.plot] if over_time else []), *filter(None, plots.lags(found))]


def test_pictures_end_where_what_they_show_does_and_have_numbers(run: Run) -> None:
    """CHECK-15."""
    del run
    late = [barrier(look(verdict="not_yet", visible_after=0.28 + n / 1000), time=100.0 + n) for n in range(40)]
    over_time, lags = pictures(barrier(time=1.0), *late, barrier(time=500.0))
    assert "00:01:40" in over_time.across[0][1]
    assert over_time.across[-1] == (100.0, "+39 s")
    assert (over_time.bars[0].x, over_time.bars[-1].x + over_time.bars[-1].width > 99) == (0.0, True)
    assert sum(bar.width for bar in lags.bars) > 30  # they are not lost in an empty picture
    for plot in (over_time, lags):
        assert plot.upward[0] == (0.0, "0")
        assert plot.upward[-1][0] == 100.0
        assert len(plot.across) >= 2
    assert [words for _, words in lags.lines] == ["p50 300 ms", "p99 319 ms"]


def test_a_barrier_and_the_read_behind_it_are_one_bar(run: Run) -> None:
    """CHECK-3, CHECK-15, REC-27."""
    del run
    at = "followers/app.py:29"
    late = [barrier(LATE, time=float(n), site=at) for n in range(1, 5)]
    over_time, *_ = pictures(*late, *(read("stale", time=float(n), barrier=at) for n in range(1, 5)))
    assert {bar.name for bar in over_time.bars} == {"late"}
    assert over_time.upward[-1] == (100.0, "1")


def test_what_the_page_explains_is_there(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "r.jsonl", [read("stale")])
    run("check", "r.jsonl", "--html", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert ("<dt>rates</dt>" in page, "<dt>rate not known</dt>" in page) == (False, True)
    written(tmp_path / "r.jsonl", [read("stale"), followed(2, 2)])
    run("check", "r.jsonl", "--html", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert ("<dt>rates</dt>" in page, "<dt>rate not known</dt>" in page) == (True, False)


# The command


def test_no_name_in_a_record_reaches_the_terminal_as_it_is(run: Run, records: Path) -> None:
    """CHECK-15."""
    out = run("check", records.name).out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", out)
    assert "é" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to check"),
        (["r.jsonl", "--history", "h.jsonl"], "without RECORDS"),
        (["--history", "h.jsonl", "--junit", "x"], "without --junit"),
        (["r.jsonl", "--dot", "x"], "--dot goes with --history"),
        (["r.jsonl", "--deadline", "3s"], "--deadline goes with --history"),
        (["r.jsonl", "--sarif", "nowhere/x"], "nowhere/x: No such file or directory"),
        (["r.jsonl", "--baseline", "nowhere"], "nowhere: No such file or directory"),
    ],
    ids=" ".join,
)
def test_what_does_not_go_together(run: Run, tmp_path: Path, words: list[str], said: str) -> None:
    written(tmp_path / "r.jsonl", [barrier()])
    ran = run("check", *words)
    assert ran.code == 2
    assert said in ran.err
