"""The recorder of histories: its files, its order, what it says it does not know (HIST-23 to HIST-32)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import antipode
import antipode.session
import jsonschema
import pytest
from antipode import memory
from antipode._diagnostics.history import recorder
from antipode._diagnostics.history.recorder import GONE, note_read
from antipode._model.lineage import Lineage
from antipode._propagation.gate import messages_of, take
from antipode._scope.context import activate
from antipode._scope.scope import current_scope
from antipode._store.read import ReadValue
from antipode._store.store import registry
from antipode._trust.trust import Direction, judge_message_in, trust_settings
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.operations import History
from antipode.check.history.reading import read_history
from antipode.cli.app import app
from antipode.messages import HEADER, message_scope, outgoing_message
from antipode.shim import join_store
from fakes import FakeShim
from typer.testing import CliRunner

SPEC = Path(__file__).parents[2] / "spec"
SCHEMA = jsonschema.Draft202012Validator(json.loads((SPEC / "schemas" / "history.schema.json").read_text("utf-8")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    antipode.configure(history=tmp_path / "history")
    return tmp_path / "history"


@pytest.fixture
def posts() -> memory.Store:
    return memory.Store("posts", lag=60.0, versions="object")


def lines(folder: Path) -> list[dict[str, Any]]:
    """What was recorded; the recording has ended."""
    recorder.forget()
    found = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    for line in found:
        SCHEMA.validate(line)
    return found


def judged(folder: Path) -> tuple[Verdict, History]:
    recorder.forget()
    history = read_history(folder)
    return decide(history).verdict, history


def reasons(history: History) -> list[str]:
    return [gap.reason for gap in history.gaps]


def test_the_file_and_its_lines(folder: Path, posts: memory.Store) -> None:
    """HIST-23, HIST-25, HIST-28: begin, operations, end; keys and digests, no values."""
    writer, reader = posts.client("a"), posts.client("b")
    with antipode.scope():
        writer.set("1", "a secret")
        text = outgoing_message()
    with message_scope({HEADER: text}):
        assert reader.get("1") is None
    found = lines(folder)
    [path] = folder.glob("*.jsonl")
    assert path.name.split("-")[-3] == str(os.getpid())
    assert [line["kind"] for line in found] == ["begin", "write", "send", "receive", "read", "end"]
    write, sent, came, read = found[1:5]
    assert sent["message"] == came["message"]
    assert sent["lineage"] == read["lineage"] == write["identifier"]
    assert (write["store"], write["key"], read["key"], read["value"]) == ("posts", "1", "1", None)
    assert "secret" not in path.read_text()
    assert len({line["id"] for line in found}) == len(found)


def test_the_story_is_told(folder: Path, posts: memory.Store) -> None:
    """HIST-19, HIST-29, HIST-32: the command names the read, of the folder and of several files."""
    writer, reader = posts.client("a"), posts.client("b")
    with antipode.scope():
        writer.set("1", "hello")
        text = outgoing_message()
    recorder.forget()  # another process
    with message_scope({HEADER: text}):
        reader.get("1")
    recorder.forget()
    told = CliRunner().invoke(app, ["check", "--history", str(folder)])
    assert told.exit_code == 1
    assert "read 1 of posts and got nothing" in told.output
    one, other = sorted(folder.glob("*.jsonl"))
    assert CliRunner().invoke(app, ["check", "--history", str(one), "--history", str(other)]).exit_code == 1
    assert CliRunner().invoke(app, ["check", "--history", str(one / "no")]).exit_code == 2
    empty = folder / "empty"
    empty.mkdir()
    assert CliRunner().invoke(app, ["check", "--history", str(empty)]).exit_code == 2


def test_off_nothing_is_written_and_nothing_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HIST-23."""
    monkeypatch.chdir(tmp_path)
    client = memory.Store("posts").client("a")
    with antipode.scope():
        client.set("1", "x")
        assert "msg" not in (outgoing_message() or "")
        assert client.get("1") == b"x"
    assert list(tmp_path.iterdir()) == []
    assert recorder.recorder() is None


# HIST-26: operations that overlap


def test_a_read_that_was_begun_before_a_write_is_not_after_it(folder: Path, posts: memory.Store) -> None:
    client = posts.client("a")
    store = registry().need("posts")
    with antipode.scope():
        early = note_read(store, current_scope())
        client.set("1", "x")
        assert early is not None
        early.over([ReadValue(b"1", GONE)])
    verdict, history = judged(folder)
    assert not history.gaps
    assert verdict is Verdict.CONSISTENT


def test_what_overlapped_comes_before_what_is_begun_after_its_end(folder: Path, posts: memory.Store) -> None:
    client = posts.client("a")
    store = registry().need("posts")
    with antipode.scope():
        early = note_read(store, current_scope())
        client.set("1", "x")
        later = note_read(store, current_scope())
        assert early is not None
        assert later is not None
        later.over([ReadValue(b"1", GONE)])
        early.over([ReadValue(b"1", GONE)])
        after = note_read(store, current_scope())
        assert after is not None
        after.over([ReadValue(b"1", GONE)])
    verdict, history = judged(folder)
    assert verdict is Verdict.VIOLATED
    wrong = {history.operations[found.operation].scope for found in decide(history).found}
    assert wrong == {"root 1+2", "root 1"}  # those that were begun after the write, and not the first one


def test_a_read_that_failed_is_none(folder: Path, posts: memory.Store) -> None:
    client = posts.client("b")
    posts.stop("b")
    with antipode.scope(), pytest.raises(ConnectionError):
        client.get("1")
    assert [line["kind"] for line in lines(folder)] == ["begin", "end"]


def test_a_detached_scope_depends_on_the_one_that_it_is_a_copy_of(folder: Path, posts: memory.Store) -> None:
    """And on nothing that this one does later."""
    writer, reader = posts.client("a"), posts.client("b")
    with antipode.scope():
        writer.set("1", "x")
        with antipode.detached_scope() as copy:
            pass
        writer.set("2", "x")
    with activate(copy):
        reader.get("2")
        reader.get("1")
    verdict, history = judged(folder)
    assert verdict is Verdict.VIOLATED
    assert [history.operations[found.operation].key for found in decide(history).found] == ["1"]


# HIST-27: outcomes


def test_a_write_of_unknown_outcome_counts_where_somebody_has_read_it(folder: Path, posts: memory.Store) -> None:
    client = posts.client("a")
    posts.lose_next_answer()
    with antipode.scope():
        with pytest.raises(ConnectionError):
            client.set("1", "x")
        client.set("2", "y")
    with antipode.scope():
        assert client.get("1") == b"x"
    _, history = judged(folder)
    [unknown] = [each for each in history.operations if each.recorded and not each.recorded.certain]
    [read] = [each for each in history.operations if each.kind == "read"]
    assert read.reads_from == unknown.id
    assert unknown.scope == "root 1+1"
    assert not [each for each in history.operations if each.kind == "send" and each.scope == unknown.scope]


def test_a_write_of_unknown_outcome_that_nobody_read_is_left_out(folder: Path, posts: memory.Store) -> None:
    client, reader = posts.client("a"), posts.client("b")
    posts.lose_next_answer()
    with antipode.scope():
        with pytest.raises(ConnectionError):
            client.set("1", "x")
        reader.get("1")
    verdict, history = judged(folder)
    assert not [each for each in history.operations if each.kind == "write"]
    assert verdict is Verdict.CONSISTENT


def test_a_write_that_was_refused_is_none(folder: Path, posts: memory.Store) -> None:
    with antipode.scope(), pytest.raises(PermissionError):
        posts.client("b").set("1", "x")
    assert [line["kind"] for line in lines(folder)] == ["begin", "end"]


def test_a_lineage_that_left_with_a_write_in_flight_is_incomplete(folder: Path, posts: memory.Store) -> None:
    client = posts.client("a")
    store = registry().need("posts")
    with antipode.scope():
        client.set("1", "x")
        with store.writing(b"2") as write:
            text = outgoing_message()
            write.abandon()
    with message_scope({HEADER: text}):
        client.get("1")
    verdict, history = judged(folder)
    assert verdict is Verdict.UNKNOWN
    assert "incomplete" in reasons(history)[0]


def test_a_write_outside_any_scope_can_be_read(folder: Path, posts: memory.Store) -> None:
    client = posts.client("a")
    client.set("1", "x")
    with antipode.scope():
        client.get("1")
    verdict, _ = judged(folder)
    assert verdict is Verdict.CONSISTENT


# HIST-24, HIST-25, HIST-31: what is missing is said


def test_a_disk_that_fails_is_none_of_the_applications_business(tmp_path: Path, posts: memory.Store) -> None:
    (tmp_path / "file").touch()
    antipode.configure(history=tmp_path / "file" / "below")
    with antipode.scope():
        posts.client("a").set("1", "x")
    recorder.flush()
    antipode.configure(history=tmp_path / "history")


def test_lines_that_were_not_written_are_a_gap(folder: Path, posts: memory.Store) -> None:
    client = posts.client("a")
    found = recorder.recorder()
    assert found is not None
    with antipode.scope():
        client.set("1", "x")
        found.flush()
        folder.rename(folder.with_name("kept"))
        folder.touch()  # a file in the folder's place: nothing can be written
        client.set("2", "x")
        found.flush()
        folder.unlink()
        client.set("3", "x")
    told = lines(folder)
    [gap] = [line for line in told if line["kind"] == "gap"]
    assert (gap["reason"], gap["count"]) == ("not written", 1)
    assert [line["key"] for line in told if line["kind"] == "write"] == ["3"]
    verdict, history = judged(folder)
    assert verdict is Verdict.UNKNOWN
    assert "not written" in "".join(reasons(history))


def test_a_store_that_is_off_for_a_while_is_a_gap(folder: Path, posts: memory.Store) -> None:
    """HIST-31: its reads would be missing, and nothing would say so."""
    client = posts.client("a")
    with antipode.scope():
        client.set("1", "x")
        antipode.configure(mode="off")
        client.get("1")
        antipode.configure(mode="enforce")
        client.get("1")
    gaps = [line["reason"] for line in lines(folder) if line["kind"] == "gap"]
    assert gaps == ["reads of posts are not recorded (its mode is off)"]


def test_a_store_that_was_off_before_is_a_gap_too(tmp_path: Path, posts: memory.Store) -> None:
    """HIST-31: also where the recording begins later, and nobody writes."""
    antipode.configure(mode="off")
    client = posts.client("a")
    antipode.configure(history=tmp_path / "later")
    with antipode.scope():
        client.get("1")
    gaps = [line["reason"] for line in lines(tmp_path / "later") if line["kind"] == "gap"]
    assert gaps == ["reads of posts are not recorded (its mode is off)"]


def test_a_full_file_says_so(folder: Path, posts: memory.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    client = posts.client("a")
    with antipode.scope():
        client.set("1", "x")
        recorder.flush()
        monkeypatch.setattr("antipode._diagnostics.history.writer.FILES_KEPT", 0)
        client.set("2", "x")
        recorder.flush()
        client.set("3", "x")
    told = lines(folder)
    assert told[-1]["kind"] == "gap"
    assert told[-1]["reason"].startswith("full")
    verdict, _ = judged(folder)
    assert verdict is Verdict.UNKNOWN


def test_an_error_of_the_recorder_is_a_gap(folder: Path, posts: memory.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    client = posts.client("a")
    with antipode.scope(), monkeypatch.context() as broken:
        broken.setattr("antipode._diagnostics.history.order.Order.begin", lambda *_: 1 / 0)
        client.set("1", "x")
        assert client.get("1") == b"x"
        assert outgoing_message()
    gaps = [line["reason"] for line in lines(folder) if line["kind"] == "gap"]
    assert gaps == ["an operation could not be recorded"] * 3


def test_a_process_that_was_killed_has_no_end(folder: Path) -> None:
    code = (
        "import antipode, os; from antipode import memory, recorder\n"
        "with antipode.scope(): memory.Store('posts').client('a').set('1', 'x')\n"
        "recorder.flush(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"ANTIPODE_HISTORY": str(folder)}, check=True)
    verdict, history = judged(folder)
    assert verdict is Verdict.UNKNOWN
    assert "no end" in reasons(history)[0]


def test_a_process_that_ends_says_so(folder: Path) -> None:
    code = (
        "import antipode; from antipode import memory\n"
        "with antipode.scope(): memory.Store('posts').client('a').set('1', 'x')"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"ANTIPODE_HISTORY": str(folder)}, check=True)
    assert [line["kind"] for line in lines(folder)] == ["begin", "write", "end"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_the_child_of_a_fork_has_a_file_of_its_own(folder: Path, posts: memory.Store) -> None:
    client = posts.client("a")
    with antipode.scope():
        client.set("1", "x")
    child = os.fork()
    if not child:
        try:
            with antipode.scope():
                client.set("2", "x")
            recorder.end()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    told = lines(folder)
    assert len(list(folder.glob("*.jsonl"))) == 2
    assert sorted(line["key"] for line in told if line["kind"] == "write") == ["1", "2"]
    assert judged(folder)[0] is Verdict.CONSISTENT


def test_a_store_whose_reads_are_not_recorded_is_a_gap(folder: Path) -> None:
    store = join_store("rows", FakeShim)
    with antipode.scope(), store.writing(b"1") as write:
        write.abandon()
    gaps = [line["reason"] for line in lines(folder) if line["kind"] == "gap"]
    assert [reason.split(" (")[0] for reason in gaps] == ["reads of rows are not recorded"]


# HIST-30: messages


def test_who_records_nothing_takes_the_messages_name_out(folder: Path, posts: memory.Store) -> None:
    client = posts.client("a")
    with antipode.scope():
        client.set("1", "x")
        text = outgoing_message()
    antipode.configure(history=None)
    with message_scope({HEADER: text}) as scope:
        assert not scope.lineage.extensions
        assert outgoing_message() == scope.lineage.serialize()


def test_a_name_that_is_none_is_dropped() -> None:
    lineage = Lineage.deserialize("1~posts.1._.x~_.msg.a_2Fb~_.msg~_.msg.a.b~_.msg.ok~_.other.1")
    rest, found = messages_of(lineage)
    assert (found, rest.extensions) == (["ok"], ("_.other.1",))


def test_a_lineage_of_somebody_who_records_nothing_is_a_receipt_of_an_unknown_message(
    folder: Path, posts: memory.Store
) -> None:
    posts.client("a")
    with message_scope({HEADER: "1~posts..e.5"}):
        pass
    [receipt] = [line for line in lines(folder) if line["kind"] == "receive"]
    assert receipt["lineage"] == "1~posts..e.5"
    assert judged(folder)[0] is Verdict.UNKNOWN


def by_scope(lineage: Lineage) -> None:
    with antipode.scope(lineage):
        pass


def by_hand(lineage: Lineage) -> None:
    with antipode.scope():
        antipode.transfer(lineage)


def by_scopes_method(lineage: Lineage) -> None:
    with antipode.scope() as scope:
        scope.transfer(lineage)


def by_session(lineage: Lineage) -> None:
    kept: dict[str, Any] = {}
    with antipode.scope(lineage):
        antipode.session.keep_in(kept)
    with antipode.scope():
        antipode.session.join_from(kept)


@pytest.mark.parametrize("way", [by_scope, by_hand, by_scopes_method, by_session])
def test_a_position_that_comes_without_a_message_is_no_consistent_history(
    folder: Path, posts: memory.Store, way: Callable[[Lineage], None]
) -> None:
    """HIST-33: it stands for writes that no line names, and what comes after them is not judged by them."""
    with antipode.scope():
        posts.client("a").set("1", "x")
    with antipode.scope() as scope:
        posts.client("a").set("2", "y")  # its position covers the write before
        lineage = scope.lineage
    assert judged(folder)[0] is Verdict.CONSISTENT
    way(lineage)
    assert judged(folder)[0] is Verdict.UNKNOWN


def test_a_value_has_no_messages_name(folder: Path) -> None:
    store = memory.Store("posts")
    client = store.client("a")
    with antipode.scope():
        client.set("1", "x")
        client.set("2", "y")
    cell, _ = store.read(store._node("a"), b"2")
    assert cell is not None
    assert cell.lineage
    assert "msg" not in cell.lineage


def test_the_name_is_within_the_budget(folder: Path, posts: memory.Store) -> None:
    client = posts.client("a")
    antipode.configure(budget_bytes=120)
    with antipode.scope():
        for number in range(10):
            client.set(str(number), "x")
        text = outgoing_message()
    assert text is not None
    assert len(text) <= 120
    trust = trust_settings()
    taken = take([text], lambda each: judge_message_in(each, trust, None), Direction.MESSAGE_IN, "")
    assert len(taken.messages) == 1
    assert "posts" in taken.lineage.incomplete
    assert [line["lineage"] for line in lines(folder) if line["kind"] == "send"] == [taken.lineage.serialize()]


def test_keys_are_hashed_where_the_setting_says_so(folder: Path, posts: memory.Store) -> None:
    """HIST-34."""
    antipode.configure(hash_keys=True)
    with antipode.scope():
        posts.client("a").set("user:alice@example.com", b"x")
    keys = [line["key"] for line in lines(folder) if line.get("kind") == "write"]
    assert keys
    assert not any("alice" in key for key in keys)
