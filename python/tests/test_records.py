"""Dry-run records fit the schema of all languages, name no key, rotate, and are each process's own (spec REC)."""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import antipode
import antipode.asgi
import antipode.memory
import antipode.wsgi
import jsonschema
import pytest
from antipode import Lineage, WriteId
from antipode._diagnostics.dryrun import following, records
from antipode._diagnostics.dryrun.record_writer import FILES_KEPT, RecordWriter
from antipode._model.verdict import NOT_YET, VISIBLE
from antipode._propagation.carriers import read
from antipode._scope.context import activate
from antipode.propagation import Inbound
from antipode.testing import isolated
from fakes import Target, always, fake_store
from flask import Flask
from opentelemetry.sdk.trace import TracerProvider
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from werkzeug.test import Client

SCHEMA = json.loads((Path(__file__).parents[2] / "spec" / "schemas" / "record.schema.json").read_text())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    antipode.configure(mode="dry-run", records=tmp_path / "records", region="b")
    return tmp_path / "records"


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Every record so far, each held against the schema."""
    assert records.flush()
    found = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    for line in found:
        jsonschema.validate(line, SCHEMA)
    return found


def wait_for(folder: Path, kind: str) -> dict[str, Any]:
    deadline = time.monotonic() + 10
    while True:
        found = [line for line in lines_of(folder) if line["kind"] == kind]
        if found:
            assert len(found) == 1
            return found[0]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_every_kind_that_is_written_fits_the_schema(folder: Path) -> None:
    """REC-1, REC-3, REC-4, REC-11."""
    store = fake_store("posts", Target("p", always(VISIBLE)))
    with store.writing("private-key") as write:  # outside any scope
        write.record(antipode.Ordered("", 1))
    with antipode.scope():
        write = store.begin("private-key")
        antipode.serialize()
        write.record(antipode.Ordered("", 2))
        antipode.barrier()
    with antipode.scope(Lineage([WriteId("elsewhere", "private-key", antipode.Ordered("", 1))])):
        antipode.barrier()
    wait_for(folder, "orphan")
    found = lines_of(folder)
    assert {line["kind"] for line in found} == {"orphan", "published_before_commit", "vacuous", "barrier"}
    assert "private-key" not in json.dumps(found)
    for line in found:
        assert line["region"] == "b"
        assert line["site"].startswith("tests/test_records.py:")
        assert abs(line["time"] - time.time()) < 60


def test_the_record_says_where_the_lineage_came_from_and_in_which_trace(folder: Path) -> None:
    fake_store("posts", Target("p", always(VISIBLE)))
    lineage = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])
    tracers = TracerProvider(shutdown_on_exit=False)
    with tracers.get_tracer("app").start_as_current_span("request") as span:
        with antipode.message_scope(lineage.serialize()):
            antipode.barrier()
        record = wait_for(folder, "barrier")
        context = span.get_span_context()
    assert record["origin"]["scope"] == "message"
    assert record["origin"]["opened_by"].startswith("tests/test_records.py:")
    assert record["trace_id"] == f"{context.trace_id:032x}"
    assert record["span_id"] == f"{context.span_id:016x}"
    tracers.shutdown()


@pytest.mark.parametrize("kind", ["request", "root", "detached"])
def test_each_kind_of_scope_is_an_origin_of_the_schema(folder: Path, kind: str) -> None:
    fake_store("posts", Target("p", always(VISIBLE)))
    lineage = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])
    if kind == "request":
        inbound = Inbound()
        inbound.scope.transfer(lineage)
        with activate(inbound.scope):
            antipode.barrier()
    else:
        with antipode.scope(lineage):
            if kind == "detached":
                with antipode.detached_scope():
                    antipode.barrier()
            else:
                antipode.barrier()
    assert wait_for(folder, "barrier")["origin"]["scope"] == kind


LINEAGE = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])


def test_a_request_of_asgi_is_named_by_its_route_and_never_by_its_path(folder: Path) -> None:
    """REC-7, REC-8: the path may hold keys."""
    fake_store("posts", Target("p", always(VISIBLE)))

    async def read(request: Request) -> Response:
        antipode.transfer(LINEAGE)
        await antipode.barrier_async()
        return Response()

    app = Starlette(routes=[Mount("/blog", routes=[Route("/posts/{post}", read)])])
    with TestClient(antipode.asgi.Middleware(app)) as client:
        assert client.get("/blog/posts/private-key").status_code == 200
    record = wait_for(folder, "barrier")
    assert record["origin"] == {"scope": "request", "opened_by": "GET /posts/{post}"}
    assert "private-key" not in json.dumps(record)


def test_what_one_test_left_is_no_record_of_the_next(folder: Path) -> None:
    with isolated():
        antipode.configure(mode="dry-run", records=folder, region="b")
        fake_store("posts", Target("p", always(NOT_YET)))
        with antipode.scope(LINEAGE):
            antipode.barrier()
    antipode.configure(mode="dry-run", records=folder, region="b")
    records.end()
    assert [line for line in lines_of(folder) if line["kind"] == "barrier"] == []


def test_an_asgi_application_without_routes_is_named_by_what_is_known(folder: Path) -> None:
    fake_store("posts", Target("p", always(VISIBLE)))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        antipode.transfer(LINEAGE)
        await antipode.barrier_async()
        await Response()(scope, receive, send)

    client = TestClient(antipode.asgi.Middleware(app))
    assert client.put("/posts/private-key").status_code == 200
    assert wait_for(folder, "barrier")["origin"]["opened_by"] == "PUT request"


@pytest.mark.parametrize("framework", ["flask", "none"])
def test_a_request_of_wsgi_is_named_by_its_route(folder: Path, framework: str) -> None:
    """REC-7: Flask says its rule; others name the method alone."""
    fake_store("posts", Target("p", always(VISIBLE)))

    def wait() -> None:
        antipode.transfer(LINEAGE)
        antipode.barrier()

    def plain(environ: Any, start_response: Any) -> list[bytes]:
        wait()
        start_response("200 OK", [])
        return [b""]

    flask = Flask("posts")

    @flask.post("/posts/<post>")
    def write(post: str) -> str:
        wait()
        return post

    app = antipode.wsgi.Middleware(plain if framework == "none" else flask.wsgi_app)
    assert Client(app).post("/posts/private-key").status_code == 200
    record = wait_for(folder, "barrier")
    assert record["origin"]["opened_by"] == ("POST request" if framework == "none" else "POST /posts/<post>")
    assert "private-key" not in json.dumps(record)


def test_the_store_of_a_message_is_named_where_a_shim_consumed_it(folder: Path) -> None:
    fake_store("posts", Target("p", always(VISIBLE)))
    with antipode.message_scope(LINEAGE.serialize()) as scope:
        scope.queue = "notifications"  # what a queue's shim does
        antipode.barrier()
    assert wait_for(folder, "barrier")["origin"]["store"] == "notifications"


def test_a_write_that_never_comes_is_followed_to_an_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "FOLLOW_S", 0.1)
    fake_store("posts", Target("p", always(NOT_YET)))
    antipode.barrier(Lineage([WriteId("posts", "k", antipode.Ordered("", 1))]))
    record = wait_for(folder, "barrier")
    assert record["satisfied"] is record["complete"] is False
    [store] = record["stores"]
    assert (store["verdict"], store["visible_after"], store["servers"]) == ("not_yet", None, ["p"])


def test_files_rotate_and_few_are_kept(folder: Path) -> None:
    antipode.configure(records_max_mib=1)
    writer = RecordWriter()
    filler = {"record": 1, "text": "x" * 2**15}
    for _ in range(FILES_KEPT + 2):
        for _ in range(33):  # a little more than 1 MiB
            writer.put(filler)
        assert writer.flush(10)
    files = sorted(folder.glob("*.jsonl"), key=lambda path: len(path.name))
    assert len(files) == FILES_KEPT
    assert all(path.stat().st_size < 2 * 2**20 for path in files)
    for path in files:
        for line in path.read_text().splitlines():
            assert json.loads(line) == filler
    assert writer.dropped == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_writes_a_file_of_its_own(folder: Path) -> None:
    store = fake_store("posts", Target("p", always(VISIBLE)))

    def orphan() -> None:
        with store.writing("k") as write:
            write.record(antipode.Ordered("", 1))
        assert records.flush()

    orphan()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            orphan()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    by_process = {line["process"].split(":")[1] for line in lines_of(folder)}
    assert by_process == {str(os.getpid()), str(child)}
    assert len(list(folder.glob(f"*-{child}-*.jsonl"))) == 1


SERVED = """
import sys
import antipode, antipode.asgi, antipode.memory, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

store = antipode.memory.Store("blog-posts", lag=300)
writer, reader = store.client("a"), store.client("b")

async def wait(request):
    writer.set("k", "v")
    await antipode.barrier_async()
    return Response()

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)

app = antipode.asgi.Middleware(Starlette(routes=[Route("/", wait)]))
Server(uvicorn.Config(app, port=0, log_level="error")).run()
"""


@pytest.mark.parametrize("signals", [1, 2])
def test_a_server_that_is_told_to_end_leaves_its_records(tmp_path: Path, signals: int) -> None:
    """REC-2, REC-5: uvicorn ends itself by the SIGTERM that it got, so that no exit hook runs."""
    environment = os.environ | {"ANTIPODE_MODE": "dry-run", "ANTIPODE_RECORDS": str(tmp_path)}
    server = subprocess.Popen([sys.executable, "-c", SERVED], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
            assert answer.status == 200
        for _ in range(signals):
            server.send_signal(signal.SIGTERM)
        server.wait(30)
    finally:
        server.kill()
        server.communicate()
    found = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    [record] = [line for line in found if line["kind"] == "barrier"]
    assert record["stores"][0]["visible_after"] is None
    [summary] = [line for line in found if line["kind"] == "summary"]
    assert {count["what"]: count["count"] for count in summary["counts"]} == {"requests": 1, "barriers": 1, "writes": 1}


@pytest.mark.skipif(os.name != "posix", reason="needs modes")
def test_files_are_private_and_never_made_over_another(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """REC-25: neither a link at the name nor a file there is written, and a full folder gets no new file."""
    folder, theirs = tmp_path / "records", tmp_path / "theirs"
    theirs.write_text("mine\n")
    antipode.configure(records=folder, records_folder_mib=1)
    writer = RecordWriter()
    folder.mkdir(0o755)
    (folder / writer._file.path.name).symlink_to(theirs)
    writer.put({"record": 1})
    assert writer.flush(10)
    assert theirs.read_text() == "mine\n"
    [made] = [path for path in folder.iterdir() if not path.is_symlink()]
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    writer.put({"record": 1})
    assert writer.flush(10)
    assert len(made.read_text().splitlines()) == 2
    (folder / "other.jsonl").write_text("x" * 2**20)
    another = RecordWriter()
    another.put({"record": 1})
    assert another.flush(10)
    assert another.dropped == 1
    assert "ANTIPODE_RECORDS_FOLDER_MIB" in caplog.text
    antipode.configure(records=tmp_path / "new")
    another.put({"record": 1})
    assert another.flush(10)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="needs modes")
def test_a_keys_file_that_all_may_read_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """TRUST-22."""
    keys = tmp_path / "keys"
    keys.write_text(f"one {base64.b64encode(b'k' * 16).decode()}\n")
    keys.chmod(0o600)
    antipode.configure(keys_file=keys)
    assert not caplog.text
    keys.chmod(0o644)
    antipode.configure(keys_file=str(keys), region="b")
    assert "chmod o-r" in caplog.text


@pytest.mark.parametrize("kind", ["request", "message"])
def test_what_cannot_be_read_is_of_the_scope_that_it_came_to(folder: Path, kind: str) -> None:
    """REC-17: no task's, though the scope is opened after it was read."""
    if kind == "request":
        Inbound(read({"antipode-lineage": "1~"}), "127.0.0.1").close()
    else:
        with antipode.message_scope("1~"):
            pass
    record = wait_for(folder, "incomplete")
    assert (record["reason"], record["origin"]["scope"]) == ("malformed", kind)


def test_a_service_that_enforces_counts_its_barriers_where_records_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-26: those that judged a store and passed; no records where nobody asked for any."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(records, "_writer", RecordWriter(records._due, records.end))
    antipode.configure(mode=None, records=None)
    late = Target("late", always(NOT_YET))
    fake_store("posts", Target("p", always(VISIBLE)))
    fake_store("late", late)

    def judge_some() -> None:
        for store in ("posts", "posts", "late"):
            with antipode.scope(Lineage([WriteId(store, "k", antipode.Ordered("", 1))])):
                antipode.barrier(timeout=0, on_timeout="proceed", on_vacuous="proceed")
        with antipode.scope():
            antipode.barrier()  # nothing to wait for proves nothing

    judge_some()
    records.end()
    assert not list(tmp_path.iterdir())
    records.forget()
    antipode.configure(records=tmp_path / "records")
    judge_some()
    records.end()
    summary = wait_for(tmp_path / "records", "summary")
    assert summary["counts"] == [{"what": "enforced_barriers", "count": 2}]
