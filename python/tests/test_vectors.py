"""The vectors of the wire form and of the algebra that every language runs (spec/vectors/wire-*, lineage-*)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from antipode._base.observers import events
from antipode._engine.store_servers import RegionStore
from antipode._model import wire
from antipode._model.errors import MalformedLineageError
from antipode._model.lineage import Lineage, Order
from antipode._model.section import Section
from antipode._model.write_id import Opaque, Ordered, WriteId
from antipode._propagation.gate import take
from antipode._scope.context import activate
from antipode._scope.scope import Scope
from antipode._store.store import StoreOptions
from antipode._trust.trust import Decision, Direction
from antipode.shim import Capabilities, Shim

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
MIRROR = {Order.BEFORE: Order.AFTER, Order.AFTER: Order.BEFORE}


def cases(kind: str) -> list[Any]:
    found = json.loads((VECTORS / f"{kind}.json").read_text("utf-8"))
    assert found["kind"] == kind
    assert found["cases"]
    return [pytest.param(case, id=f"{case['id']}-{'+'.join(case['req'])}") for case in found["cases"]]


def name_of(shape: dict[str, Any], field: str) -> str:
    if f"{field}_hex" in shape:
        return bytes.fromhex(shape[f"{field}_hex"]).decode("utf-8", "surrogateescape")
    return str(shape[field])


def entry_of(shape: dict[str, Any]) -> WriteId:
    key = bytes.fromhex(shape["key_hex"]) if "key_hex" in shape else shape["key"].encode()
    version: Ordered | Opaque
    if "counter" in shape:
        version = Ordered(name_of(shape, "epoch"), int(shape["counter"]))
    else:
        version = Opaque(name_of(shape, "mark"))
    return WriteId(name_of(shape, "store"), key, version)


def lineage_of(shape: dict[str, Any]) -> Lineage:
    lineage = Lineage([entry_of(entry) for entry in shape["entries"]])
    if shape["incomplete"]:
        lineage = lineage.marked_incomplete(*shape["incomplete"])
    if shape["anywhere"]:
        lineage = lineage.marked_incomplete()
    for extension in shape["extensions"]:  # one by one: together they may be longer than a text may be
        lineage |= Lineage.deserialize(f"1~{extension}")
    return lineage


def canonical(lineage: Lineage) -> str:
    """The text with every section opened: what texts of the vectors are compared as."""
    parsed = lineage._split()
    return wire.join(parsed._replace(sections={s: Section.open(t).text for s, t in parsed.sections.items()}))


def reads(text: str) -> Lineage | None:
    try:
        return Lineage.deserialize(text)
    except MalformedLineageError:
        return None


def accepts(text: str) -> bool:
    """The strict reader: lexical, white space not stripped."""
    try:
        wire.split(text)
    except MalformedLineageError:
        return False
    return True


@pytest.mark.parametrize("case", cases("wire-decode"))
def test_decode(case: dict[str, Any]) -> None:
    assert accepts(case["text"])
    lineage = Lineage.deserialize(case["text"])
    expected = case["lineage"]
    entries = list(lineage)
    assert len(set(entries)) == len(entries) == len(lineage)
    assert set(entries) == {entry_of(entry) for entry in expected["entries"]}
    assert lineage.incomplete == ({""} if expected["anywhere"] else set(expected["incomplete"]))
    assert lineage == lineage_of(expected)
    assert canonical(lineage) == case["canonical"] == lineage_of(expected).serialize()
    if case["is_canonical"]:
        assert lineage.serialize() == case["text"]
    # WIRE-24: a section that was not opened may go out as it came, but means the same.
    assert Lineage.deserialize(lineage.serialize()) == lineage


@pytest.mark.parametrize("case", cases("wire-refuse"))
def test_refuse(case: dict[str, Any]) -> None:
    assert not accepts(case["text"])
    lineage = reads(case["text"])
    assert (None if lineage is None else canonical(lineage)) == case["reader"]


@pytest.mark.parametrize("case", cases("wire-encode"))
def test_encode(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(ValueError):
            lineage_of(case["lineage"])
    else:
        assert lineage_of(case["lineage"]).serialize() == case["text"]


@pytest.mark.parametrize("case", cases("wire-escape"))
def test_escape(case: dict[str, Any]) -> None:
    octets = bytes.fromhex(case["octets_hex"])
    assert wire.spell(octets) == case["spelled"]
    assert wire.unspell(case["spelled"]) == octets
    assert wire.is_spelled(case["spelled"])


@pytest.mark.parametrize("case", cases("wire-limits"))
def test_limits(case: dict[str, Any]) -> None:
    assert len(case["text"].encode()) == case["bytes"]
    assert accepts(case["text"]) is case["accept"]
    lineage = reads(case["text"])
    if case["accept"]:
        assert lineage is not None
        assert len(lineage) == case["entries"]
    else:
        assert lineage is None


class _HashingShim(Shim):
    kind = "vectors"
    capabilities = Capabilities(versions="object")

    def visible(self, ids: Any, server: Any) -> Any:
        raise NotImplementedError

    def address(self, target: Any) -> str:
        return str(target)


@pytest.mark.parametrize("case", cases("wire-hashed-key"))
def test_hashed_key(case: dict[str, Any]) -> None:
    key = bytes.fromhex(case["key_hex"])
    store = RegionStore("s", _HashingShim, StoreOptions(hash_keys=case["hash_keys"]))
    write_id = store.write_id(key, Ordered("e", 1))
    assert Lineage([write_id]).serialize() == f"1~s.{case['spelled']}.e.1"


@pytest.mark.parametrize("case", cases("wire-hop"))
def test_hop(case: dict[str, Any]) -> None:
    ids = [entry_of(entry) for entry in case["append"]]
    lineage = Lineage.deserialize(case["text"])
    if ids:
        assert lineage.including(*ids).serialize() == case["result"]
    one_by_one = lineage
    for write_id in ids:
        one_by_one = one_by_one.including(write_id)
    assert one_by_one.serialize() == case["result"]
    assert (lineage | Lineage(ids)).serialize() == case["result"]


@pytest.mark.parametrize("case", cases("wire-budget"))
def test_budget(case: dict[str, Any]) -> None:
    lineage = Lineage.deserialize(case["text"])
    fitted = lineage.fit(case["budget"], lambda: case.get("changed", ()))
    assert fitted.serialize() == case["result"]
    # The case names stores; an injector counts each (WIRE-36).
    assert set(lineage.stores) - set(fitted.stores) == set(case["left_out"])
    assert lineage.serialize() == case["text"]


@pytest.mark.parametrize("case", cases("wire-serialize-limits"))
def test_serialize_limits(case: dict[str, Any]) -> None:
    text = lineage_of(case["lineage"]).serialize()
    assert text == case["text"]
    assert accepts(text)


@pytest.mark.parametrize("case", cases("wire-header"))
def test_header(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    monkeypatch.setattr(events, "on_lineage_dropped", lambda reason, direction: counted.append(reason))
    texts = wire.unwrap_header(case["values"])
    taken = take(texts, lambda text: Decision(True, text), Direction.REQUEST_IN, "")
    assert counted.count("malformed") == case["malformed"]
    names = [f"_.msg.{name}" for name in taken.messages]
    assert (canonical(taken.lineage.with_extensions([*taken.lineage.extensions, *names])) if texts else None) == case[
        "text"
    ]


@pytest.mark.parametrize("case", cases("lineage-join"))
def test_join(case: dict[str, Any]) -> None:
    a, b = Lineage.deserialize(case["a"]), Lineage.deserialize(case["b"])
    joined = a | b
    for each in (joined, b | a, joined | a, joined | b, a | joined, b | joined):
        assert canonical(each) == case["join"]


@pytest.mark.parametrize("case", cases("lineage-associate"))
def test_associate(case: dict[str, Any]) -> None:
    for order in itertools.permutations(map(Lineage.deserialize, case["texts"])):
        a, b, c = order
        assert canonical((a | b) | c) == case["join"]
        assert canonical(a | (b | c)) == case["join"]


@pytest.mark.parametrize("case", cases("lineage-compare"))
def test_compare(case: dict[str, Any]) -> None:
    a, b = Lineage.deserialize(case["a"]), Lineage.deserialize(case["b"])
    order = Order(case["order"])
    assert a.compare(b) is order
    assert b.compare(a) is MIRROR.get(order, order)
    assert (a == b) is (order is Order.EQUAL)
    if order is Order.EQUAL:
        assert hash(a) == hash(b)
    assert (a <= b) is (order in {Order.BEFORE, Order.EQUAL})
    assert (a < b) is (order is Order.BEFORE)
    assert (a > b) is (order is Order.AFTER)
    assert (a >= b) is (order in {Order.AFTER, Order.EQUAL})


@pytest.mark.parametrize("case", cases("lineage-additions"))
def test_additions(case: dict[str, Any]) -> None:
    before, after = Lineage.deserialize(case["before"]), Lineage.deserialize(case["after"])
    added = after.added_to(before)
    assert canonical(added) == case["additions"]
    assert (not added) is case["nothing"]
    assert canonical(before | added) == canonical(before | after)


@pytest.mark.parametrize("case", cases("lineage-complete"))
def test_complete(case: dict[str, Any]) -> None:
    assert Lineage.deserialize(case["text"]).is_complete(case["stores"]) is case["complete"]


@pytest.mark.parametrize("case", cases("lineage-remove"))
def test_remove(case: dict[str, Any]) -> None:
    scope = Scope(Lineage.deserialize(case["start"]))
    for step in case["steps"]:
        match step["do"]:
            case "remove-entry":
                write_id = entry_of(step["entry"])
                removed = scope.remove(write_id)
                assert set(removed.lineage) == set(Lineage.deserialize(step["took"]))
                assert (write_id in removed.still_covered) is step["still_covered"]
            case "remove-store":
                removed = scope.remove(step["store"])
                assert set(removed.lineage) == set(Lineage.deserialize(step["took"]))
            case "vouch":
                scope.remove(incomplete=True)
            case "join":
                scope.merge(Lineage.deserialize(step["text"]))
            case "append":
                scope.append(entry_of(step["entry"]))
            case other:
                pytest.fail(f"a step that this runner does not know: {other}")
        assert canonical(scope.lineage) == step["then"]


class _PositionsShim(_HashingShim):
    capabilities = Capabilities(versions="position")


@pytest.mark.parametrize("case", cases("lineage-implausible"))
def test_implausible(case: dict[str, Any]) -> None:
    received = entry_of(case["received"])
    assert isinstance(received.version, Ordered)
    shim = _PositionsShim if received.is_position else _HashingShim
    store = RegionStore(received.store, shim, StoreOptions())
    scope = Scope(Lineage.deserialize(case["at_sending"]))
    with activate(scope):
        with store.writing(received.key) as write:
            scope.transfer(Lineage.deserialize(case["at_reply"]))
            write.record(received.version)
    assert canonical(scope.lineage) == case["result"]
    assert any(gap.reason == "implausible" for gap in scope.gaps) is case["dropped"]
