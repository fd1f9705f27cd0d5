"""What `antipode check` answers to records of each kind (CHECK-3 to CHECK-12)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ibis
import jsonschema
import pytest
from antipode.check.records.engine import Engine
from antipode.check.records.findings import report
from antipode.check.records.line import convert
from antipode.check.records.reading import ReadLines
from antipode.check.records.rows import flat_rows
from check_records.generating import Shape, generate
from check_records.samples import (
    AFTER_MESSAGE,
    HEAD,
    OTHERS,
    SITE,
    Record,
    barrier,
    count,
    followed,
    look,
    other,
    read,
    summary,
    written,
)
from commands import Ran, Run, runner

SCHEMA = json.loads((Path(__file__).parents[3] / "spec" / "schemas" / "check.schema.json").read_text())


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def checked(run: Run, *records: Record) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON."""
    written(Path("r.jsonl"), records)
    ran = run("check", "--json", "r.jsonl")
    assert not ran.err
    answer = json.loads(ran.out)
    jsonschema.validate(answer, SCHEMA)
    return ran.code, answer


def test_the_story_is_told_in_a_few_lines(run: Run) -> None:
    """CHECK-6, CHECK-9 to CHECK-11: the line that API.md promises."""
    stale = [read("stale", 0.08, time=number / 10) for number in range(81)]
    written(Path("r.jsonl"), [*stale, followed(1000, 1000)])
    assert run("check", "r.jsonl") == Ran(
        1,
        "VIOLATED: 81 violations at 1 site, in 1,000 barriers and reads of 1,000 requests\n"
        "  followers/app.py:31  reads blog-posts after notifications  stale 8.1 % (6.6–10.0)  "
        "lag p50 80 ms, p99 80 ms\n"
        "\n"
        "  -> antipode.barrier() at followers/app.py:28, after the message of notifications, "
        "before followers/app.py:31, would have prevented all 81, "
        "at a median wait of 80 ms (8.1 % would wait; 6.48 ms more on average)\n"
        "read: 82 records of 1 process in 1 file, over 60 s\n",
        "",
    )


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ([barrier()], 0),
        ([barrier(look("acl", "elsewhere"), look())], 0),
        ([followed(10, 1000)], 0),
        ([barrier(), other("concurrent_write")], 0),
        ([barrier(look(verdict="not_yet", visible_after=0.1))], 1),
        ([barrier(look(verdict="not_yet", visible_after=None))], 1),
        ([barrier(look(verdict="timed_out", visible_after=None))], 1),
        ([read("stale")], 1),
        ([other("published_before_commit")], 1),
        ([], 2),
        ([summary(count("reads", 10, site=SITE, store="blog-posts"))], 2),
        ([read("behind"), followed(10, 1000)], 2),
        ([barrier(look(verdict="not_yet", servers=[], visible_after=None))], 2),
        ([barrier(), barrier(look(verdict="not_yet", servers=[], visible_after=None))], 2),
        ([barrier(look(verdict="unproven"))], 2),
        ([barrier(look("acl", "elsewhere"))], 2),
        *(([barrier(), other(kind)], 2) for kind in ("vacuous", "orphan", "late_write", "incomplete")),
        ([barrier(), {"record": 2}], 2),
        ([barrier(satisfied=False)], 2),
        ([barrier(), barrier(satisfied=False) | {"stores": []}], 2),
        ([barrier(), barrier(look("acl", "elsewhere"), satisfied=False)], 2),
    ],
    ids=lambda value: "+".join(each.get("kind", "?") for each in value) if isinstance(value, list) else str(value),
)
def test_exit_codes(run: Run, records: list[Record], code: int) -> None:
    """CHECK-3 to CHECK-8."""
    found, answer = checked(run, *records)
    assert found == code
    assert answer["verdict"] == {0: "clean", 1: "violated", 2: "unknown"}[code]
    assert bool(answer["doubts"]) or code != 2


def test_reads_that_could_not_be_judged_are_a_doubt(run: Run) -> None:
    """CHECK-7, REC-20: a store that can prove nothing is not a clean one."""
    where = {"site": SITE, "store": "blog-posts"}
    code, answer = checked(run, summary(count("followed_reads", 10, **where), count("unjudged_reads", 4, **where)))
    assert (code, answer["judged"]) == (2, 6)
    [found] = answer["findings"]
    assert (found["kind"], found["count"], found["of"]) == ("unjudged_read", 4, 10)
    assert answer["doubts"] == ["4 followed reads could not be judged"]


COUNTED = [
    ([count("stale", 3, site=SITE, store="blog-posts")], 3),
    ([count("behind", 1, site=SITE, store="blog-posts")], 1),
    ([count("barriers", 5, site=SITE)], 4),
    ([count("barriers", 1, site="other")], 0),
]


@pytest.mark.parametrize(("counts", "lost"), COUNTED, ids=["stale", "behind", "barriers", "all-there"])
def test_what_the_summaries_count_and_no_record_tells_is_a_doubt(run: Run, counts: list[Record], lost: int) -> None:
    """CHECK-7: a full queue drops records, rotation takes files away, and one file of several may have been given."""
    followed_ones = count("followed_reads", 10, site=SITE, store="blog-posts")
    code, answer = checked(run, barrier(), summary(followed_ones, *counts))
    assert code == (2 if lost else 0)
    assert bool(answer["doubts"]) is bool(lost)
    if lost:
        assert f"of {lost} barrier" in answer["doubts"][0]


def test_what_one_service_has_too_many_of_is_not_what_another_lost(run: Run) -> None:
    """CHECK-7."""
    code, _ = checked(
        run, *[barrier()] * 9, barrier(service="b"), summary(count("barriers", 2, site=SITE), service="b")
    )
    assert code == 2


def test_a_store_of_which_no_read_was_followed_is_told(run: Run) -> None:
    """CHECK-9: its reads may all have come too early."""
    reads = [count("reads", 1000, store="orders"), count("reads", 50, store="blog-posts")]
    followed_one = count("followed_reads", 1, site=SITE, store="blog-posts")
    code, answer = checked(run, summary(*reads, followed_one))
    assert code == 0
    assert answer["notes"] == ["none of 1,000 reads of orders by follower-notify in b was followed"]


@pytest.mark.parametrize("kind", sorted(OTHERS))
def test_other_kinds_are_told_with_their_site(run: Run, kind: str) -> None:
    _, answer = checked(run, barrier(), other(kind), other(kind, count=4))
    [found] = [finding for finding in answer["findings"] if finding["kind"] == kind]
    assert found["count"] == 5
    assert found["site"] == OTHERS[kind].get("site", "")
    assert found["confirmed"] is (kind == "published_before_commit")
    assert len(answer["suggestions"]) == found["confirmed"]
    ran = run("check", "r.jsonl")
    assert (OTHERS[kind].get("site") or "GET /posts/{post}") in ran.out


def test_a_sample_is_an_estimate(run: Run) -> None:
    """CHECK-9: 3 of 100 followed reads, of 10,000."""
    _, answer = checked(run, *[read("stale")] * 3, followed(100, 10_000))
    [found] = answer["findings"]
    assert (found["count"], found["of"], found["estimated"]) == (3, 100, 300)
    assert found["rate"]["value"] == 0.03
    assert found["rate"]["low"] == pytest.approx(0.0103, abs=1e-4)
    assert found["rate"]["high"] == pytest.approx(0.0845, abs=1e-4)
    [suggested] = answer["suggestions"]
    assert "about 300" in suggested["sentence"]
    assert suggested["per_second"] == pytest.approx(300 / 59)


def test_a_sample_of_nobody_knows_how_many_is_called_one(run: Run) -> None:
    """CHECK-9: reads are counted a store, followed ones a site."""
    counts = [count("reads", 900, store="blog-posts"), count("followed_reads", 9, site=SITE, store="blog-posts")]
    _, answer = checked(run, read("stale"), read("stale"), summary(*counts))
    [found] = answer["findings"]
    assert (found["estimated"], found["sampled"], found["of"]) == (2, True, 9)
    assert "would have prevented the 2 in the sample" in answer["suggestions"][0]["sentence"]


def test_the_share_of_the_sample_makes_it_an_estimate(run: Run) -> None:
    """CHECK-9, REC-19: each summary by the share that was in force."""
    read_of = count("reads", 2000, store="blog-posts")
    shares = [(9, 0.01), (20, 0.2)]  # of about 900 and 100
    summaries = [
        summary(read_of, count("followed_reads", number, site=SITE, store="blog-posts"), sample=share)
        for number, share in shares
    ]
    _, answer = checked(run, *[read("stale")] * 2, *summaries)
    [found] = answer["findings"]
    assert (found["count"], found["of"], found["sampled"]) == (2, 29, False)
    assert found["estimated"] == pytest.approx(2 * 1000 / 29)
    assert "about 69" in answer["suggestions"][0]["sentence"]


@pytest.mark.parametrize("share", [0, 1.0, None, -1, 2, "much"])
def test_a_share_that_says_nothing_estimates_nothing(run: Run, share: Any) -> None:
    """REC-19: none, or of all; what is no share is no summary."""
    counts = [count("reads", 9, store="blog-posts"), count("followed_reads", 9, site=SITE, store="blog-posts")]
    _, answer = checked(run, *[read("stale")] * 2, summary(*counts, sample=share))
    assert [(found["count"], found["estimated"]) for found in answer["findings"]] == [(2, 2)]


def test_rates_of_the_same_site_add_up_over_summaries_and_stay_apart_by_origin(run: Run) -> None:
    """CHECK-9."""
    route = {"scope": "request", "opened_by": "GET /posts/{post}"}
    _, answer = checked(run, read("stale"), read("stale", origin=route), followed(10, 10), followed(30, 30))
    assert [(found["origin"]["opened_by"], found["count"], found["of"]) for found in answer["findings"]] == [
        ("followers/app.py:28", 1, 40),
        ("GET /posts/{post}", 1, 40),
    ]
    assert [each["at"] for each in answer["suggestions"]] == ["GET /posts/{post}", "followers/app.py:28"]
    assert "in GET /posts/{post}, before followers/app.py:31" in answer["suggestions"][0]["sentence"]


@pytest.mark.parametrize("summaries", [[], [followed(1, 1)]], ids=["none", "too-few"])
def test_without_its_summaries_there_is_no_rate(run: Run, summaries: list[Record]) -> None:
    """CHECK-9."""
    _, answer = checked(run, read("stale"), read("stale"), *summaries)
    [found] = answer["findings"]
    assert found["rate"] is found["of"] is None
    assert found["count"] == found["estimated"] == 2
    assert bool(answer["notes"]) is bool(summaries)
    assert "rate not known" in run("check", "r.jsonl").out


def test_percentiles_say_what_they_do_not_know(run: Run) -> None:
    """CHECK-10."""
    lates = [0.1, 0.2, 0.3, None, None]
    _, answer = checked(run, *[barrier(look(verdict="not_yet", visible_after=late)) for late in lates])
    [found] = answer["findings"]
    assert found["lag"] == pytest.approx(
        {"seen": 3, "unseen": 2, "p50": 0.2, "p90": 0.28, "p99": 0.298, "mean": 0.2, "longest": 0.3}
    )
    assert "(2 not followed to the end)" in run("check", "r.jsonl").out
    _, answer = checked(run, barrier(look(verdict="not_yet", visible_after=None)))
    assert answer["findings"][0]["lag"]["p50"] is None
    assert "lag not known" in run("check", "r.jsonl").out
    assert "how long it would wait is not known" in answer["suggestions"][0]["sentence"]


def test_one_place_is_one_suggestion_and_the_most_useful_comes_first(run: Run) -> None:
    """CHECK-11, CHECK-12."""
    dear = [read("stale", 2.0, site="b.py:1", store="a", origin={"scope": "task"})] * 3
    cheap = [read("stale", 0.1, site="c.py:1", store="a", origin={"scope": "task"})] * 3
    most = [read("stale"), read("stale", store="user-acl"), read("stale", site="followers/app.py:33")] * 2
    counts = [count("followed_reads", 10, site=site, store="a") for site in ("b.py:1", "c.py:1")]
    code, answer = checked(run, *dear, *cheap, *most, summary(*counts))
    assert code == 1
    assert [(each["at"], each["prevents"]) for each in answer["suggestions"]] == [
        ("followers/app.py:28", 6),
        ("c.py:1", 3),
        ("b.py:1", 3),
    ]
    first, second, _ = answer["suggestions"]
    assert first["stores"] == ["blog-posts", "user-acl"]
    assert first["before"] == ["followers/app.py:31", "followers/app.py:33"]
    assert (first["after"], first["added"]) == ("notifications", None)
    assert second["share"] == pytest.approx(0.3)
    assert second["added"] == pytest.approx(0.03)
    suggested = sorted(number for each in answer["suggestions"] for number in each["findings"])
    assert suggested == list(range(len(answer["findings"])))


def test_regions_and_services_stay_apart(run: Run) -> None:
    late = look(verdict="not_yet", visible_after=0.1)
    _, answer = checked(run, barrier(late), barrier(late, region="c"), barrier(late, service="other"), barrier())
    assert [(found["service"], found["region"], found["of"]) for found in answer["findings"]] == [
        ("follower-notify", "b", 2),
        ("follower-notify", "c", 1),
        ("other", "b", 1),
    ]
    assert "followers/app.py:31 in c" in run("check", "r.jsonl").out


@pytest.mark.parametrize("sample", [5e-324, 1e-300, 1e-9])
def test_no_share_and_no_count_is_too_great_to_be_summed_up(run: Run, sample: float) -> None:
    """CHECK-2."""
    great = count("followed_reads", 2**32, site=SITE, store="blog-posts")
    code, answer = checked(run, *[summary(great, great, sample=sample)] * 3, read("stale"))
    assert (code, answer["judged"]) == (1, 6 * 2**32)


def test_what_is_summed_up_on_the_way_changes_no_answer() -> None:
    """CHECK-16: a row each, as Spark's workers make them, and sums of those that need none, come to the same."""
    looks = [
        barrier(look(verdict=verdict, servers=servers), time=time)
        for verdict in ("visible", "elsewhere", "unproven")
        for servers in ([], ["b1"])
        for time in (3.0, 1.0, 2.0)
    ]
    late = [barrier(look(verdict="not_yet", visible_after=after), look(), time=9.0) for after in (0.1, None)]
    records = [*generate(3, Shape(2000)), *looks, *late, barrier(satisfied=False), followed(5, 10), read("stale", None)]
    lines = [convert(record) for record in records]
    engine, taken = Engine(), ReadLines()
    summed = report(engine.load(lines), taken, pictures=True)
    other_engine = ibis.duckdb.connect()
    other_engine.con.register("spelled_out", flat_rows(lines))
    assert report(other_engine.table("spelled_out"), taken, pictures=True) == summed
    engine.close()
    assert (summed.kinds["barrier"], summed.first) == (1960 + len(looks) + 3, 1.0)


def test_one_trace_of_each_finding_is_named(run: Run) -> None:
    _, answer = checked(run, read("stale"), read("stale", trace_id="ab" * 16))
    assert answer["findings"][0]["trace_id"] == "ab" * 16
    assert AFTER_MESSAGE["store"] == answer["findings"][0]["origin"]["store"]


@pytest.mark.parametrize("kind", ["stale", "behind"])
@pytest.mark.parametrize("service", ["post-storage", "follower-notify"], ids=["another-service", "one-process"])
def test_a_read_in_a_called_service_is_followed_back_to_the_message(run: Run, service: str, kind: str) -> None:
    """CHECK-11: the paper's place is follower-notify, after the message, though post-storage does the read."""
    called: Record = {"service": service, "origin": {"scope": "request", "opened_by": "GET /posts/{post}"}}
    passed = HEAD | {"kind": "passed_on", "time": 1.0, "site": "followers/app.py:30", "target": "http://post-storage"}
    records = []
    for number in range(4):
        trace: Record = {"trace_id": f"{number:032x}"}
        records += [read(kind, site="posts/app.py:9", **called, **trace), passed | {"origin": AFTER_MESSAGE} | trace]
    other_way = passed | {"origin": AFTER_MESSAGE | {"opened_by": "elsewhere.py:1"}, "trace_id": f"{0:032x}"}
    _, answer = checked(run, *records, other_way)
    [suggested] = answer["suggestions"]
    assert (suggested["service"], suggested["at"], suggested["after"]) == (
        "follower-notify",
        "followers/app.py:28",
        "notifications",
    )
    assert suggested["before"] == ["followers/app.py:30"]
    assert suggested["prevents" if kind == "stale" else "behind"] == 4
    assert "reads blog-posts after notifications" in run("check", "r.jsonl").out


def test_a_service_whose_barriers_wait_was_looked_at(run: Run) -> None:
    """CHECK-7, CHECK-8, REC-26."""
    assert checked(run, summary(count("writes", 3, store="blog-posts")))[0] == 2
    code, answer = checked(run, summary(count("messages", 3), count("enforced_barriers", 3)))
    assert code == 0
    assert answer["judged"] == 3
    code, answer = checked(run, summary(count("messages", 3), count("requests", 1), count("enforced_barriers", 3)))
    assert code == 0
    assert any("1 request or message of" in note and "met no barrier" in note for note in answer["notes"])


def test_reads_behind_place_the_barrier(run: Run) -> None:
    """CHECK-5, CHECK-11, CHECK-12: nothing says that a read of SQL was stale; the barrier belongs there."""
    behind = [read("behind", 0.2, store="orders", store_kind="postgresql")] * 3
    where = {"site": SITE, "store": "orders"}
    summed = summary(count("reads", 10, **where), count("followed_reads", 10, **where))
    code, answer = checked(run, *behind, summed)
    assert (code, answer["verdict"]) == (2, "unknown")
    [suggested] = answer["suggestions"]
    assert (suggested["move"], suggested["at"], suggested["after"]) == (
        "place_barrier",
        "followers/app.py:28",
        "notifications",
    )
    assert (suggested["prevents"], suggested["found"], suggested["behind"]) == (0, 0, 3)
    assert (suggested["share"], suggested["median"]) == (pytest.approx(0.3), 0.2)
    assert (
        "would have let wait 3 reads of servers that were behind, at a median wait of 200 ms" in suggested["sentence"]
    )
    assert suggested["sentence"] in run("check", "r.jsonl").out


def test_violations_rank_before_reads_behind_and_both_share_a_place(run: Run) -> None:
    """CHECK-11, CHECK-12."""
    elsewhere = [read("behind", site="b.py:1", origin={"scope": "task"})] * 9
    _, answer = checked(run, *elsewhere, read("stale"), *[read("behind", store="orders")] * 2)
    first, second = answer["suggestions"]
    assert (first["prevents"], first["behind"], first["stores"]) == (1, 2, ["blog-posts", "orders"])
    assert "prevented the only one, and let wait 2 reads of servers that were behind" in first["sentence"]
    assert (second["at"], second["prevents"], second["behind"]) == ("b.py:1", 0, 9)


def test_reads_behind_a_barrier_ask_for_no_second_one(run: Run) -> None:
    """CHECK-3, CHECK-11: where that barrier was late, it stands for them."""
    late = barrier(look(verdict="not_yet", visible_after=0.1), site=HERE)
    _, answer = checked(run, late, *[read("behind", barrier=HERE)] * 2)
    [suggested] = answer["suggestions"]
    assert (suggested["move"], suggested["at"], suggested["behind"]) == ("enforce_barrier", HERE, 0)
    _, answer = checked(run, *[read("behind", barrier=HERE)] * 2)
    [suggested] = answer["suggestions"]
    assert (suggested["move"], suggested["at"], suggested["behind"]) == ("enforce_barrier", HERE, 2)


HERE = "followers/app.py:29"
"""Of a barrier before the read at `SITE`."""


def behind_a_barrier(late: int, reads: int) -> list[Record]:
    """So many messages whose barrier was late, and so many stale reads behind it."""
    looked = look(verdict="not_yet", visible_after=0.1)
    return [*[barrier(looked, site=HERE)] * late, *[read("stale", barrier=HERE)] * reads]


def test_a_barrier_and_the_read_behind_it_are_one_violation(run: Run) -> None:
    """CHECK-3, CHECK-11, REC-27."""
    code, answer = checked(run, *behind_a_barrier(40, 40), followed(40, 40))
    assert code == 1
    assert "40 violations at 1 site" in run("check", "r.jsonl").out
    (suggested,) = answer["suggestions"]
    assert (suggested["move"], suggested["at"], suggested["prevents"]) == ("enforce_barrier", HERE, 40)
    told = {each["kind"]: each for each in answer["findings"]}
    assert [told[kind]["confirmed"] for kind in ("late", "stale")] == [True, False]
    assert told["stale"]["barrier"] == HERE
    assert f"behind the barrier at {HERE} and counted there" in told["stale"]["sentence"]


def test_a_read_before_a_barrier_or_of_what_it_did_not_ask_for_is_a_violation_of_its_own(run: Run) -> None:
    """CHECK-3, REC-27."""
    _, answer = checked(run, *behind_a_barrier(40, 30), *[read("stale")] * 10, followed(40, 40))
    assert "50 violations at 2 sites" in run("check", "r.jsonl").out
    assert {each["move"]: each["found"] for each in answer["suggestions"]} == {
        "enforce_barrier": 40,
        "place_barrier": 10,
    }


@pytest.mark.parametrize("other", [{"store": "user-acl"}, {"region": "c"}, {"origin": {"scope": "task"}}])
def test_a_read_whose_barrier_has_no_such_finding_counts_and_asks_for_no_second_barrier(
    run: Run, other: dict[str, Any]
) -> None:
    """CHECK-3, CHECK-11: its record may be lost."""
    _, answer = checked(run, *behind_a_barrier(1, 0), read("stale", barrier=HERE, **other))
    assert "2 violations at 2 sites" in run("check", "r.jsonl").out
    assert {(each["move"], each["at"]) for each in answer["suggestions"]} == {("enforce_barrier", HERE)}


def test_a_read_counts_where_its_barrier_is_in_the_baseline_alone(run: Run, tmp_path: Path) -> None:
    """CHECK-3, CHECK-14."""
    written(tmp_path / "old.jsonl", behind_a_barrier(3, 0))
    (tmp_path / "old.json").write_text(run("check", "old.jsonl", "--json").out)
    written(tmp_path / "r.jsonl", behind_a_barrier(3, 2))
    answer = run("check", "r.jsonl", "--baseline", "old.json")
    assert (answer.code, "2 violations at 1 site" in answer.out) == (1, True)
    (tmp_path / "both.json").write_text(run("check", "r.jsonl", "--json").out)
    assert run("check", "r.jsonl", "--baseline", "both.json").code == 0
