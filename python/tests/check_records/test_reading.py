"""What `antipode check` can be given: files, folders, exports, and what is none of it (CHECK-1, CHECK-2)."""

from __future__ import annotations

import io
import json
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from antipode.check.records import inputs, reading, spark
from antipode.check.records.exports import UNTOLD
from antipode.check.records.line import Line, Stale
from antipode.check.records.reading import ReadLines, read_stream
from antipode.check.records.rows import Rows
from check_records.samples import HEAD, OTHERS, barrier, followed, other, read, written
from commands import Run, runner
from hypothesis import given, settings
from hypothesis import strategies as st

GOOD = (json.dumps(barrier()) + "\n").encode()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def taken_from(octets: bytes) -> tuple[list[Line], ReadLines]:
    taken = ReadLines()
    found = list(read_stream(io.BytesIO(octets), "f", taken))
    rows = Rows()
    for line in found:  # what was read also fits the tables
        rows.add(line)
    rows.take_facts()
    rows.contexts()
    return found, taken


HOSTILE = {
    "not-json": (b"hello\n", "not JSON"),
    "breaks-off": (GOOD[:-20], "breaks off"),
    "another-form": (b'{"record": 2, "kind": "barrier"}\n', "a record of form 2"),
    "no-form": (b'{"record": true, "kind": "barrier"}\n', "a record of form True"),
    "no-record": (b'{"history": 1}\n', "no record"),
    "a-number": (b"7\n", "no record"),
    "a-list": (b"[7]\n", "no record"),
    "wrong-type": (json.dumps(barrier() | {"time": "x"}).encode() + b"\n", "Expected `float`"),
    "missing": (json.dumps(HEAD | {"kind": "orphan", "time": 1.0}).encode() + b"\n", "missing required field"),
    "site": (json.dumps(barrier(site="app.py")).encode() + b"\n", "site"),
    "verdict": (json.dumps(barrier()).replace('"visible"', '"perhaps"').encode() + b"\n", "perhaps"),
    "not-utf-8": (GOOD.replace(b"blog", b"\xff\xfe"), "not UTF-8"),
    "surrogate": (GOOD.replace(b"blog", b"\\ud800"), "not JSON"),
    "nan": (GOOD.replace(b"1.0", b"NaN"), "not JSON"),
    "infinite": (GOOD.replace(b"1.0", b"1e999"), "out of range"),
    "negative": (GOOD.replace(b"1.0", b"-1.0"), ">= 0"),
    "huge": (GOOD.replace(b"1.0", b"1e300"), "<="),
    "many-digits": (GOOD.replace(b"1.0", b"9" * 100_000), "out of range"),
    "deep": (b'{"record": 1, "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n", "nested too deep"),
    "deep-open": (b"[" * 200_000, ""),
    "negative-count": (json.dumps(followed(-1, 1)).encode() + b"\n", ">= 0"),
    "huge-count": (json.dumps(followed(2**70, 1)).encode() + b"\n", ""),
    "long-name": (json.dumps(barrier(service="x" * 5000)).encode() + b"\n", "length <= 4096"),
}


@pytest.mark.parametrize("case", sorted(HOSTILE))
def test_a_bad_line_is_counted_with_its_place_and_the_others_are_read(case: str) -> None:
    """CHECK-2."""
    octets, why = HOSTILE[case]
    found, taken = taken_from(GOOD + octets)
    assert (len(found), taken.records, taken.unread) == (1, 1, 1)
    [(place, told)] = taken.unread_named
    assert place == "f:2"
    assert why in told
    assert len(told) < 300
    if octets.endswith(b"\n"):
        found, taken = taken_from(octets + GOOD)
        assert (len(found), taken.unread) == (1, 1)


def test_a_line_of_any_length_is_passed_over_without_being_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_LINE", 10_000)
    found, taken = taken_from(GOOD + b'{"record": 1, "x": "' + b"x" * 5_000_000 + b'"}\n' + GOOD)
    assert len(found) == 2
    assert taken.unread_named == [("f:2", "a line of more than 0 MiB")]
    found, taken = taken_from(GOOD + b"x" * 5_000_000)
    assert (len(found), taken.unread) == (1, 1)


def test_later_kinds_and_fields_are_passed_over_and_told(run: Run) -> None:
    """CHECK-2, REC-1."""
    written(Path("r.jsonl"), [barrier(later={"x": 1}), HEAD | {"kind": "later", "time": 1.0}])
    ran = run("check", "r.jsonl")
    assert (ran.code, "passed over: kind later (1)" in ran.out) == (0, True)


def test_every_kind_is_read_as_it_was_written() -> None:
    records = [barrier(), read("stale"), read("behind", None), followed(1, 1), *(other(kind) for kind in OTHERS)]
    found, taken = taken_from("".join(json.dumps(each) + "\n" for each in records).encode())
    assert taken.unread_named == []
    assert [line.__struct_config__.tag for line in found] == [each["kind"] for each in records]


def test_folders_stdin_and_names_twice(run: Run, tmp_path: Path) -> None:
    """CHECK-1: folders in folders, no loop, no pipe, each file once."""
    inner = tmp_path / "records" / "inner"
    inner.mkdir(parents=True)
    written(inner / "a.jsonl", [barrier()])
    written(tmp_path / "records" / "b.1.jsonl", [barrier()])
    written(tmp_path / "records" / "c.txt", [barrier()])
    (inner / "loop").symlink_to(tmp_path / "records")
    (inner / "again.jsonl").symlink_to(inner / "a.jsonl")
    ran = run("check", "--json", "records", "records/inner/a.jsonl", "-", stdin=GOOD)
    answer = json.loads(ran.out)
    assert (ran.code, answer["read"]["records"], answer["read"]["files"]) == (0, 3, 3)
    os.mkfifo(inner / "pipe.jsonl")
    (inner / "gone.jsonl").symlink_to(inner / "nowhere")
    ran = run("check", "records")
    assert ran.code == 2
    assert "pipe.jsonl" in ran.out
    assert "gone.jsonl" in ran.out


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.1", "a.jsonl-20260101", "a.json.zst"])
def test_what_others_have_rotated_or_compressed_in_a_folder_is_told(run: Run, tmp_path: Path, name: str) -> None:
    """CHECK-2: a violation may be in it."""
    (tmp_path / "records").mkdir()
    written(tmp_path / "records" / "b.jsonl", [barrier()])
    written(tmp_path / "records" / name, [read("stale")])
    ran = run("check", "records")
    assert (ran.code, f"records/{name}" in ran.out) == (2, True)


def test_a_link_to_a_folder_elsewhere_is_told_unless_that_was_given_too(run: Run, tmp_path: Path) -> None:
    """CHECK-1, CHECK-2."""
    for name in ("records", "others"):
        (tmp_path / name).mkdir()
        written(tmp_path / name / f"{name}.jsonl", [barrier()])
    (tmp_path / "records" / "link").symlink_to(tmp_path / "others")
    ran = run("check", "records")
    assert (ran.code, "records/link" in ran.out) == (2, True)
    assert run("check", "records", "others").code == 0


def test_a_file_whose_name_is_no_utf_8_is_named_in_every_form(run: Run, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.jsonl")
    Path(name).write_bytes(b"broken\n")
    outputs = ("--html", "o.html", "--junit", "o.xml", "--sarif", "o.sarif")
    ran = run("check", "--json", ".", *outputs)
    assert (ran.code, ran.err) == (2, "")
    assert json.loads(ran.out)["read"]["unread_named"][0]["place"] == "\\xff.jsonl:1"
    for file in outputs[1::2]:
        Path(file).read_bytes().decode("utf-8")


def test_a_part_of_a_file_begins_anywhere() -> None:
    """CHECK-16: what a worker of Spark gets first is no document over many lines, and may be no UTF-8."""
    lines = [b"[7", GOOD.rstrip(), b"\xff", None, GOOD.rstrip()]
    batch = pa.RecordBatch.from_arrays([pa.array(lines, pa.binary())], names=["value"])
    rows = [row for made in spark._parsed(iter([batch])) for row in made.to_pylist()]
    assert [row["kind"] for row in rows if row["kind"] in {"barrier", "unread"}] == [
        "barrier",
        "barrier",
        "unread",
        "unread",
    ]


def test_of_very_many_unknown_kinds_the_later_ones_stand_together() -> None:
    """CHECK-2: what is told of them is bounded."""
    lines = [json.dumps(HEAD | {"kind": f"later{number}", "time": 1.0}) for number in range(1000)]
    _, taken = taken_from("\n".join(lines).encode())
    assert len(taken.passed_over) < 30
    assert sum(taken.passed_over.values()) == 1000


@pytest.mark.parametrize("name", ["nowhere.jsonl", "/dev/zero", "nul\0name"])
def test_a_name_that_is_no_file_is_an_error(run: Run, name: str) -> None:
    ran = run("check", name)
    assert ran.code == 2
    assert ran.err.startswith("antipode: ")


def test_a_pipe_is_read_and_one_that_nobody_writes_into_is_not_waited_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(GOOD))
    writer.start()
    assert run("check", "pipe").code == 0
    writer.join()
    monkeypatch.setattr(inputs, "_PIPE_S", 0.01)
    ran = run("check", "pipe")
    assert (ran.code, "nobody wrote" in ran.out) == (2, True)


def test_an_empty_file_has_no_records(run: Run) -> None:
    Path("r.jsonl").write_bytes(b"\n \n")
    ran = run("check", "r.jsonl")
    assert (ran.code, "there are no records" in ran.out) == (2, True)


# Exports of traces

ATTRIBUTES: dict[str, Any] = {
    "antipode.kind": "stale",
    "antipode.site": "followers/app.py:31",
    "antipode.region": "b",
    "antipode.store": "blog-posts",
    "antipode.store.kind": "redis",
    "antipode.server": "redis://b1",
    "antipode.confirmed": "version",
    "antipode.visible_after": 0.08,
    "antipode.origin.scope": "message",
    "antipode.origin.opened_by": "followers/app.py:28",
    "antipode.origin.store": "notifications",
}
BARRIER: dict[str, Any] = {
    "antipode.kind": "barrier",
    "antipode.site": "followers/app.py:31",
    "antipode.origin.scope": "task",
    "antipode.satisfied": False,
    "antipode.visible": ["acl"],
    "antipode.not_visible": ["blog-posts"],
}
BARE = {"antipode.kind": "barrier"}
TRACE = "ab" * 16


def otlp(*events: dict[str, Any]) -> Any:
    def value(of: Any) -> Any:
        if isinstance(of, list):
            return {"arrayValue": {"values": [value(each) for each in of]}}
        return {{str: "stringValue", float: "doubleValue", bool: "boolValue"}[type(of)]: of}

    made = [
        {
            "name": "antipode.finding",
            "timeUnixNano": "1700000000000000000",
            "attributes": [{"key": key, "value": value(of)} for key, of in event.items()],
        }
        for event in events
    ]
    spans = [{"traceId": TRACE, "events": [*made, {"name": "exception"}]}, {"traceId": TRACE}]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "follower-notify"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}


def jaeger(*events: dict[str, Any]) -> Any:
    logs = [
        {
            "timestamp": 1_700_000_000_000_000,
            "fields": [{"key": "event", "value": "antipode.finding"}]
            + [{"key": key, "value": json.dumps(of) if isinstance(of, list) else of} for key, of in event.items()],
        }
        for event in events
    ]
    span = {"traceID": TRACE, "processID": "p1", "logs": logs}
    return {"data": [{"processes": {"p1": {"serviceName": "follower-notify"}}, "spans": [span]}]}


def zipkin(*events: dict[str, Any]) -> Any:
    annotations = [
        {"timestamp": 1_700_000_000_000_000, "value": json.dumps({"antipode.finding": event})} for event in events
    ]
    span = {"traceId": TRACE, "localEndpoint": {"serviceName": "follower-notify"}, "annotations": annotations}
    return [span | {"annotations": [*annotations, {"timestamp": 1, "value": "exception"}]}]


@pytest.mark.parametrize("pretty", [False, True], ids=["one-line", "pretty"])
@pytest.mark.parametrize("form", [otlp, jaeger, zipkin])
def test_exports_of_traces_are_records(form: Any, pretty: bool) -> None:
    """CHECK-1, OBS-11."""
    octets = json.dumps(form(ATTRIBUTES, BARRIER, BARE), indent=2 if pretty else None).encode() + b"\n"
    [stale, looked], taken = taken_from(octets)
    assert isinstance(stale, Stale)
    assert (stale.service, stale.region, stale.time) == ("follower-notify", "b", 1.7e9)
    assert (stale.site, stale.store, stale.visible_after) == ("followers/app.py:31", "blog-posts", 0.08)
    assert (stale.origin.store, stale.trace_id) == ("notifications", TRACE)
    assert [(look.store, look.verdict) for look in getattr(looked, "stores", [])] == [
        ("blog-posts", "not_yet"),
        ("acl", "visible"),
    ]
    assert taken.unread == 0
    assert taken.passed_over == Counter({"spans' events without what they found": 1})


def test_an_event_needs_no_empty_attributes() -> None:
    """OBS-11: where a message went is not always known."""
    early = {"antipode.kind": "published_before_commit", "antipode.site": "a.py:1", "antipode.store": "orders"}
    [line], taken = taken_from(json.dumps(otlp(early)).encode())
    assert line.__struct_config__.tag == "published_before_commit"
    assert taken.unread == 0


@pytest.mark.parametrize("form", [otlp, jaeger, zipkin])
def test_an_export_is_checked_as_records_are(run: Run, form: Any) -> None:
    Path("traces.json").write_text(json.dumps(form(ATTRIBUTES)))
    ran = run("check", "traces.json")
    assert (ran.code, "reads blog-posts after notifications" in ran.out) == (1, True)


def test_a_barriers_event_that_does_not_say_what_it_saw_hides_nothing_else() -> None:
    """OBS-11: Python's is made when the barrier begins, with its place alone."""
    begun = {name: BARRIER[name] for name in ("antipode.kind", "antipode.site", "antipode.origin.scope")}
    looked = {name: value for name, value in BARRIER.items() if name != "antipode.satisfied"}
    found, taken = taken_from(json.dumps(otlp(begun | {"antipode.reach": "region"}, ATTRIBUTES, looked)).encode())
    assert [line.__struct_config__.tag for line in found] == ["stale", "barrier"]
    assert (taken.unread, taken.passed_over[UNTOLD]) == (0, 1)


@pytest.mark.parametrize(
    "form",
    [
        '{{"antipode.finding": {}}}',
        '"antipode.finding":{}',
        "antipode.finding: {}",
        "antipode.finding|{}|0",
    ],
    ids=["object", "member", "go", "collector"],
)
def test_zipkins_annotations_come_in_the_forms_of_their_exporters(form: str) -> None:
    export = zipkin(ATTRIBUTES)
    for annotation in export[0]["annotations"][:1]:
        annotation["value"] = form.format(json.dumps(ATTRIBUTES))
    [stale], taken = taken_from(json.dumps(export).encode())
    assert (getattr(stale, "store", ""), taken.unread) == ("blog-posts", 0)


@pytest.mark.parametrize(
    "value",
    [
        json.dumps({"antipode.finding": ATTRIBUTES})[:-20],
        'antipode.finding: {"antipode.kind": "st',
        json.dumps({"antipode.finding": ATTRIBUTES | {"antipode.site": "\ud800.py:1"}}),
        json.dumps({"antipode.finding": ATTRIBUTES | {"antipode.visible_after": float("nan")}}),
    ],
    ids=["cut", "cut-go", "surrogate", "nan"],
)
def test_an_annotation_that_cannot_be_read_is_counted(value: str) -> None:
    """CHECK-2: a finding is in it, and nobody knows which."""
    export = zipkin(ATTRIBUTES)
    export[0]["annotations"][0]["value"] = value
    found, taken = taken_from(GOOD + json.dumps(export).encode() + b"\n")
    assert (len(found), taken.unread) == (1, 1)


# Fuzzing

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_RECORDS = [barrier(), read("stale"), followed(1, 1), *(other(kind) for kind in OTHERS)]
_EXPORTS = [form(ATTRIBUTES, BARRIER) for form in (otlp, jaeger, zipkin)]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A record or an export, parts of which became something else, and perhaps cut."""
    whole = json.loads(json.dumps(draw(st.sampled_from(_RECORDS + _EXPORTS))))
    for _ in range(draw(st.integers(0, 3))):
        place = whole
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], (dict, list)) and draw(st.booleans()):
                place = place[key]
                continue
            place[key] = draw(_VALUES)
            break
    octets = json.dumps(whole, indent=draw(st.sampled_from([None, 1]))).encode()
    return octets[: draw(st.integers(0, len(octets)))] if draw(st.booleans()) else octets + b"\n"


@settings(max_examples=400, deadline=None)
@given(st.lists(mutated() | st.binary(max_size=60), max_size=4))
def test_nothing_that_is_read_raises(lines: list[bytes]) -> None:
    """CHECK-2."""
    found, taken = taken_from(b"\n".join(lines))
    assert len(found) == taken.records
    assert taken.unread >= len(taken.unread_named)
