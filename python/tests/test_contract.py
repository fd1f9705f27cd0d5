"""Requirements of the contract that no other test covers; `make spec-coverage` finds those that none does."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode import ConfigurationError, Lineage, WriteId
from antipode._base import observers
from antipode._base.seal_keys import Keys
from antipode._base.settings import settings
from antipode._model.verdict import NOT_YET, VISIBLE
from antipode._store.store import registry
from antipode.propagation import extract_request, inject_request
from antipode.shim import Server, Visibility, refuse_making
from fakes import PushShim, Target, fake_store

ROOT = Path(__file__).parents[2]
FIRST, SECOND = WriteId.position("posts", "e", 1), WriteId.position("posts", "f", 1)


def until(condition: Callable[[], object], timeout: float = 20.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def test_what_joins_the_scope_while_a_barrier_waits_is_not_waited_for() -> None:
    """BAR-1: the second write is never visible here."""
    there = threading.Event()

    def answer(ids: Any, server: Server) -> list[Visibility]:
        return [VISIBLE if write_id == FIRST and there.is_set() else NOT_YET for write_id in ids]

    fake_store("posts", Target("p", answer))
    passed: list[bool] = []

    def wait() -> None:
        passed.append(antipode.barrier(timeout=20).satisfied)

    with antipode.scope(Lineage([FIRST])) as scope:
        waiting = threading.Thread(target=antipode.carry(wait), daemon=True)
        waiting.start()
        until(lambda: registry().need("posts").parked_threads == 1)
        scope.append(SECOND)
        there.set()
        waiting.join(20)
        assert passed == [True]
        assert SECOND in scope.lineage
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(timeout=0.05)
        assert antipode.barrier(Lineage([FIRST]), timeout=5).satisfied, "the one that was given, not the scope's"


def test_a_setting_is_read_without_looking_at_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """CONF-12."""

    class Untouchable(dict[str, str]):
        def __getitem__(self, name: str) -> str:
            raise AssertionError(f"looked at {name}")

        def __iter__(self) -> Iterator[str]:
            raise AssertionError("looked at the environment")

        def get(self, name: str, default: Any = None) -> Any:
            raise AssertionError(f"looked at {name}")

    before = settings()
    monkeypatch.setattr(os, "environ", Untouchable())
    assert settings() is before
    monkeypatch.undo()


def test_the_operations_of_the_paper_have_its_names() -> None:
    """LIN-30."""
    for name in ("root", "stop", "append", "remove", "transfer", "serialize", "deserialize", "barrier"):
        assert callable(getattr(antipode, name)), name
    assert callable(Lineage.compare)


def test_nothing_needs_the_sdk_of_opentelemetry() -> None:
    """OBS-10: a barrier that waits, one that fails, and a write outside of any scope, with plain counters."""
    script = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("opentelemetry.sdk"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import antipode, antipode.memory
from antipode import observers
store = antipode.memory.Store("posts", lag=0.02)
writer, reader = store.client("a"), store.client("b")
writer.set("k", "outside")
with antipode.scope():
    writer.set("k", "v")
    assert antipode.barrier(timeout=20).satisfied
    assert reader.get("k") == b"v"
    store.freeze("b")
    writer.set("k", "w")
    try:
        antipode.barrier(timeout=0.05)
    except antipode.BarrierTimeout:
        pass
print(observers.barriers["satisfied"], observers.barriers["timed_out"])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (0, "1 1\n"), ran.stderr


def test_a_lineage_from_outside_is_not_even_parsed() -> None:
    """TRUST-1: malformed, it would have left the scope incomplete."""
    with extract_request({"antipode-lineage": "no lineage"}, "203.0.113.7") as scope:
        assert scope.lineage.is_complete()
    assert not observers.barriers["malformed"]
    with extract_request({"antipode-lineage": "no lineage"}, "10.0.0.7") as scope:
        assert not scope.lineage.is_complete()


def test_each_of_several_texts_is_judged_by_its_own_seal() -> None:
    """TRUST-24: one that bears none is dropped, and does not take the other with it nor come in by it."""
    antipode.configure(keys=Keys({"k1": b"0" * 32}))
    with antipode.scope(Lineage([FIRST])):
        sent: dict[str, str] = {}
        inject_request(sent, "localhost")
    forged = Lineage([WriteId.position("acl", "e", 7)]).serialize()
    headers = [("antipode-lineage", forged), ("baggage", sent["baggage"])]
    for lines in (headers, headers[::-1]):
        with extract_request(lines, "10.0.0.7") as scope:
            assert list(scope.lineage) == [FIRST]
            assert not scope.lineage.is_complete()


def test_an_entry_without_an_epoch_is_judged_by_its_own_version() -> None:
    """EPOCH-25: not by the position that a server has reached, and not by another object's version."""
    log = antipode.memory.Store("posts")
    writer = log.client("a")
    objects = antipode.memory.Store("images", versions="object")
    images = objects.client("a")
    log.register("b")
    objects.register("b")
    with antipode.scope():
        for number in range(20):
            writer.set(f"k{number}", "v")
        assert antipode.barrier(timeout=20).satisfied
        forged = Lineage([WriteId("posts", b"k1", antipode.Ordered("", 1))])
        assert not antipode.barrier(forged, timeout=0.2, on_timeout="proceed", on_unproven="proceed").satisfied
    with antipode.scope() as scope:
        images.set("mine", "v")
        assert antipode.barrier(timeout=20).satisfied
        [entry] = scope.lineage
        other = WriteId("images", b"other", entry.version)
        assert not antipode.barrier(Lineage([other]), timeout=0.2, on_timeout="proceed").satisfied


def test_a_push_is_only_a_hint() -> None:
    """SHIM-19: told again and again that something has changed, a barrier still asks, and believes the answer."""
    answers = [NOT_YET]
    target = Target("p", lambda ids, server: [answers[0]] * len(ids))
    PushShim.channels.clear()
    fake_store("posts", target, shim=PushShim)
    passed: list[bool] = []

    def wait() -> None:
        passed.append(antipode.barrier(Lineage([FIRST]), timeout=20).satisfied)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    until(lambda: PushShim.channels and PushShim.channels[-1].pushed > 20)
    asked = target.asked
    until(lambda: target.asked > asked)
    assert not passed
    answers[0] = VISIBLE
    waiting.join(20)
    assert passed == [True]
    for channel in PushShim.channels:
        channel.close()


# The rules between the parts


def _imported(path: Path) -> set[str]:
    """The top-level packages that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


SHIMS = sorted(ROOT.glob("shims/*/python/src/antipode_*"))


def test_the_core_knows_no_shim() -> None:
    """SHIM-23."""
    for path in (ROOT / "python" / "src").rglob("*.py"):
        ours = {name for name in _imported(path) if name.startswith("antipode_")}
        assert not ours, path


@pytest.mark.parametrize("folder", SHIMS, ids=lambda folder: folder.name)
def test_a_shim_imports_no_other_shim_and_no_tool(folder: Path) -> None:
    """SHIM-23."""
    files = list(folder.rglob("*.py"))
    assert files
    for path in files:
        ours = {name for name in _imported(path) if name.startswith("antipode_")}
        assert ours <= {folder.name}, path


PAGE = (
    "What a version is",
    "What visible means",
    "What it costs",
    "What it needs",
    "Failover",
    "What it cannot do",
)
"""How the headings of a store's page begin."""


@pytest.mark.parametrize("folder", SHIMS, ids=lambda folder: folder.parents[2].name)
def test_each_store_has_its_page(folder: Path) -> None:
    """SHIM-22: under the same headings; what it says there is for readers to judge."""
    page = (folder.parents[2] / "README.md").read_text("utf-8")
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    missing = [each for each in PAGE if not any(heading.startswith(each) for heading in headings)]
    assert not missing
    assert "restore" in page.lower()


def test_a_class_of_wrapped_objects_names_the_one_that_makes_them() -> None:
    """SHIM-50: also a class of the application's own, which is of the wrapped one's."""

    class Plain:
        pass

    class Recording(Plain):
        __module__ = "antipode_kv.client"
        __init__ = refuse_making

    class Own(Recording):
        pass

    for made in (Recording, Own):
        with pytest.raises(ConfigurationError, match=rf"make it by {Plain.__module__}\.\S+Plain itself"):
            made()
