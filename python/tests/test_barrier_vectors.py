"""spec/vectors/barrier-*.json and epoch-judge.json, on the real engine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import antipode
import pytest
from antipode import Lineage, WriteId
from antipode._diagnostics.dryrun import following, records
from antipode._model.scope_values import Delivery
from antipode._model.verdict import NOT_YET, VISIBLE, UnprovenKind, Verdict, Visibility, unproven
from antipode._scope.scope import Scope, open_scope
from antipode._store.epochs import judge_position
from antipode._store.store import registry
from antipode._store.wait_on_read import wait_first, waited_in_vain
from fakes import Target, always, down, fake_store

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
ANSWERS = {"visible": always(VISIBLE), "not_yet": always(NOT_YET), "unproven": always(unproven("the test says so"))} | {
    f"unproven-{kind}": always(unproven("the test says so", kind)) for kind in antipode.UnprovenKind
}


def cases(kind: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in json.loads((VECTORS / f"{kind}.json").read_text())["cases"]]


def register(case: dict[str, Any]) -> None:
    antipode.configure(stores=case["expected"], on_replica_out=case["on_replica_out"], replica_out_after=0.05)
    if "max_waiters" in case:
        antipode.configure(max_waiters=case["max_waiters"])
    for name, answers in case["registered"].items():
        targets = [Target(f"{name}{n}", ANSWERS.get(word, down)) for n, word in enumerate(answers)]
        fake_store(name, *targets, mode="off" if name in case.get("off", ()) else None)


@contextmanager
def in_doubt(case: dict[str, Any]) -> Iterator[Lineage | None]:
    """What to give the barrier: the lineage, or none in a scope that holds it and these writes of its own (BAR-56)."""
    lineage = Lineage.deserialize(case["lineage"])
    if "pending" not in case:
        yield lineage
        return
    with antipode.scope(lineage):
        begin_writes(case)
        yield None


def begin_writes(case: dict[str, Any]) -> None:
    for name, state in case.get("pending", {}).items():
        write = registry().need(name).begin(b"k")
        if state == "unknown":
            write.outcome_unknown()


@pytest.mark.parametrize("case", cases("barrier-result"))
def test_barrier_result(case: dict[str, Any]) -> None:
    register(case)
    lineage = Lineage.deserialize(case["lineage"])
    has_down = any("down" in answers for answers in case["registered"].values())
    late = any("not_yet" in answers for answers in case["registered"].values())
    timeout = 0.0 if case["look"] else 0.5 if late else 10.0  # what is answered at once ends a barrier at once

    def barrier() -> antipode.BarrierResult:
        return antipode.barrier(given, stores=case["ask"], timeout=timeout, on_timeout="proceed", on_unproven="proceed")

    with in_doubt(case) as given:
        if "error" in case:
            with pytest.raises(getattr(antipode, case["error"])):
                barrier()
            return
        if has_down and case["look"]:
            antipode.barrier(lineage, stores=case["ask"], timeout=0.4, on_timeout="proceed", on_unproven="proceed")
        result = barrier()
    found = {name: store.kind for name, store in result.stores.items() if store.kind is not None}
    assert found == case.get("kinds", {})  # BAR-59
    assert {name: store.code for name, store in result.stores.items()} == case["codes"]  # OBS-15
    told = result.explain().splitlines()
    for name, code in case["codes"].items():
        [line] = [line for line in told if line.startswith(f"  {name}: ")]
        assert line.endswith(f") [{code}]" if code else ")")
    asked = set(case.get("pending", {})) & set(case["registered"] if case["ask"] is None else case["ask"])
    assert {gap.store for gap in result.gaps if gap.reason == "pending"} == asked  # BAR-56
    assert {name: store.verdict for name, store in result.stores.items()} == case["verdicts"]
    assert (result.satisfied, result.complete, result.vacuous) == (
        case["satisfied"],
        case["complete"],
        case["vacuous"],
    )


@pytest.mark.parametrize("case", [case for case in cases("barrier-result") if "error" not in case.values[0]])
def test_barrier_record(case: dict[str, Any], tmp_path: Path) -> None:
    """REC-5: in dry-run the record says what the barrier would have said without waiting."""
    register(case)
    antipode.configure(mode="dry-run", records=tmp_path)
    with in_doubt(case) as given:
        result = antipode.barrier(given, stores=case["ask"])
    assert (result.satisfied, result.complete, result.vacuous) == (True, False, case["vacuous"])
    deadline = time.monotonic() + 20
    while not following.all_looked_at():
        assert time.monotonic() < deadline
        time.sleep(0.002)
    records.end()
    lines = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    [record] = [line for line in lines if line["kind"] == "barrier"]
    assert {store["store"]: store["verdict"] for store in record["stores"]} == case["verdicts"] | case["recorded"]
    assert (record["satisfied"], record["complete"]) == (case["satisfied"], case["complete"])
    late = [store for store in record["stores"] if store["verdict"] == "not_yet"]
    assert [store for store in record["stores"] if "visible_after" in store] == late
    assert all(store["visible_after"] is None for store in late)


def read(case: dict[str, Any], scope: Scope) -> None:
    """What a shim does before a read of a client that waits on read (BAR-51)."""
    antipode.configure(on_timeout=case["on_timeout"], on_unproven=case["on_unproven"])
    [store] = [store for store in antipode.stores() if store.name == "s0"]
    if case["verdicts"] == ["past"]:
        waited_in_vain("s0", "s0: it is past", 0.0, NOT_YET, is_past=True)
    else:
        wait_first(store.servers()[0], 0.3 if case["verdicts"] == ["timed_out"] else 10.0, None, scope, waits=True)


@pytest.mark.parametrize("case", cases("barrier-policy"))
def test_barrier_policy(case: dict[str, Any]) -> None:
    verdicts: list[str] = case["verdicts"]
    fake_store("registered", Target("r", ANSWERS["visible"]))
    antipode.configure(stores=[f"s{number}" for number, word in enumerate(verdicts) if word == "expected"])
    ids = []
    for number, word in enumerate(verdicts):
        ids.append(WriteId.position(f"s{number}", "e", 1))
        if word not in {"elsewhere", "expected"}:
            answer = {"timed_out": "not_yet", "past": "visible"}.get(word, word)
            fake_store(f"s{number}", Target(f"s{number}", ANSWERS[answer]))

    def call(scope: Scope) -> None:
        if "read" in case:
            read(case, scope)
            return
        result = antipode.barrier(
            timeout=0.3 if "timed_out" in verdicts else 10.0,
            on_timeout=case["on_timeout"],
            on_unproven=case["on_unproven"],
            on_vacuous=case["on_vacuous"],
            require_complete=case["require_complete"],
        )
        assert isinstance(result, antipode.BarrierResult)

    with open_scope(Lineage(ids), kind="message", delivery=Delivery(can_redeliver=True)) as scope:
        begin_writes(case)
        if case["outcome"] == "result":
            call(scope)
        else:
            wanted = getattr(antipode, case["outcome"])
            with pytest.raises(wanted) as raised:
                call(scope)
            assert type(raised.value) is wanted
            assert isinstance(raised.value.result, antipode.BarrierResult)  # BAR-43
            assert raised.value.code == case.get("code", raised.value.code)  # OBS-15
            if "past" in verdicts:  # SHIM-48
                judged = raised.value.result.stores["s0"]
                assert (judged.verdict, judged.kind) == (Verdict.UNPROVEN, UnprovenKind.OTHER)


@pytest.mark.parametrize("case", cases("epoch-judge"))
def test_epoch_judge(case: dict[str, Any]) -> None:
    server = case["server"]
    answer: Visibility = judge_position(
        case["epoch"],
        int(case["counter"]),
        current=server["epoch"],
        applied=int(server["applied"]),
        marks={epoch: int(counter) for epoch, counter in server["marks"].items()},
        known={epoch: int(counter) for epoch, counter in server.get("known", {}).items()},
    )
    assert (answer.verdict, answer.unknown_epoch) == (case["answer"], case["unknown_epoch"])
    assert answer.reason or answer.verdict == "visible"
