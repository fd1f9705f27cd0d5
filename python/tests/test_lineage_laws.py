"""The laws of the algebra, and every operation against a slow model of sets of tuples (LIN-6 to LIN-27)."""

from __future__ import annotations

import random
from collections.abc import Set
from typing import NamedTuple, TypeAlias

from antipode._model import wire
from antipode._model.lineage import EMPTY, Lineage, Order
from antipode._model.section import Section, join_texts, subtract_texts
from antipode._model.write_id import Opaque, Ordered, WriteId
from hypothesis import given, settings
from hypothesis import strategies as st

# The model: an entry is (store, key, epoch or None, counter or mark), a lineage three sets.
Entry: TypeAlias = tuple[str, bytes, str | None, int | str]


class Model(NamedTuple):
    entries: frozenset[Entry]
    incomplete: frozenset[str]
    extensions: frozenset[str]


def covers(a: Entry, b: Entry) -> bool:
    """Whether whoever has a has b (LIN-7, LIN-8)."""
    if a == b:
        return True
    if a[0] != b[0] or a[2] is None or a[2] != b[2] or not isinstance(a[3], int) or not isinstance(b[3], int):
        return False
    return a[1] in (b"", b[1]) and b[3] <= a[3]


def model(entries: Set[Entry], incomplete: Set[str] = frozenset(), extensions: Set[str] = frozenset()) -> Model:
    minimal = {e for e in entries if not any(other != e and covers(other, e) for other in entries)}
    return Model(frozenset(minimal), frozenset({""} if "" in incomplete else incomplete), frozenset(extensions))


def join(a: Model, b: Model) -> Model:
    return model(a.entries | b.entries, a.incomplete | b.incomplete, a.extensions | b.extensions)


def beyond(a: Model, b: Model) -> frozenset[Entry]:
    return frozenset(e for e in a.entries if not any(covers(other, e) for other in b.entries))


def seen(lineage: Lineage) -> Model:
    """A lineage as a model, through its public face."""
    entries = [_entry(write_id) for write_id in lineage]
    assert len(entries) == len(set(entries)) == len(lineage)
    return Model(frozenset(entries), lineage.incomplete, frozenset(lineage._extensions))


def _entry(write_id: WriteId) -> Entry:
    version = write_id.version
    if isinstance(version, Ordered):
        return (write_id.store, write_id.key, version.epoch, version.counter)
    return (write_id.store, write_id.key, None, version.mark)


def write_id_of(entry: Entry) -> WriteId:
    store, key, epoch, last = entry
    return WriteId(store, key, Opaque(str(last)) if epoch is None else Ordered(epoch, int(last)))


def spell(octets: bytes) -> str:
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"
    return "".join(chr(o) if o in plain else f"_{o:02X}" for o in octets)


def spelled(entry: Entry) -> str:
    _, key, epoch, last = entry
    if epoch is None:
        return f"{spell(key)}._.{spell(str(last).encode())}"
    return f"{spell(key)}.{spell(epoch.encode())}.{last}"


def text_of(m: Model) -> str:
    """The canonical text, step by step (WIRE-19 to WIRE-22)."""
    stores = {e[0] for e in m.entries}
    sections = sorted(
        ".".join([spell(s.encode()), *sorted(spelled(e) for e in m.entries if e[0] == s)]) for s in stores
    )
    extensions = set(m.extensions)
    if m.incomplete:
        extensions.add(".".join(["_.i", *sorted(spell(s.encode()) for s in m.incomplete if s)]))
    return "~".join(["1", *sections, *sorted(extensions)])


unhurried = settings(deadline=None)  # other processes may have the cores

# What to try: few names, so that they meet, and names that are hard to spell or to sort.
STORES = st.sampled_from(["s", "t", "a", "a-b", "a.b", "Z", "blog-posts", "é", "_", "~"])
KEYS = st.sampled_from([b"", b"", b"k", b"j", b"k-1", b"a.b~c", b"\xff\x00", b"_"])
EPOCHS = st.sampled_from(["e", "E", "e1", "8371ab90c2d4e6f1", "0-1", "e.f", "_"])
COUNTERS = st.sampled_from([0, 1, 2, 3, 9, 10, 11, 99, 100, 2**63 - 1, 2**63, 2**64 - 1])
MARKS = st.sampled_from(["m", "n", "1", "5", "_", "3sL4kqtJlcpXroDT"])
EXTENSIONS = st.sampled_from(["_.x", "_.x.a", "_.branch.x7.30", "_.b..1", "_.i2"])


@st.composite
def entries_(draw: st.DrawFn) -> Entry:
    store, key = draw(STORES), draw(KEYS)
    if key and draw(st.booleans()):
        return (store, key, None, draw(MARKS))
    epoch = draw(st.one_of(EPOCHS, st.just("")) if key else EPOCHS)
    return (store, key, epoch, draw(COUNTERS))


@st.composite
def pairs(draw: st.DrawFn, *, positions: bool = False) -> tuple[Lineage, Model]:
    """A lineage and its model; the lineage is made from identifiers, or from a text that need not be canonical."""
    entries = draw(st.lists(entries_(), max_size=8))
    if positions or draw(st.integers(0, 3)) == 0:
        entries = [(s, b"", e, c) for s, _, e, c in entries if e and isinstance(c, int)]
    incomplete = draw(st.sets(st.one_of(STORES, STORES, st.just("")), max_size=2)) if draw(st.booleans()) else set()
    extensions = draw(st.sets(EXTENSIONS, max_size=2)) if draw(st.booleans()) else set()
    expected = model(set(entries), incomplete, extensions)
    if draw(st.booleans()):
        made = Lineage(map(write_id_of, entries))
        if "" in incomplete:
            made = made.marked_incomplete()
        if incomplete - {""}:
            made = made.marked_incomplete(*(incomplete - {""}))
        if extensions:
            made |= Lineage.deserialize("~".join(["1", *sorted(extensions)]))
        return made, expected
    return Lineage.deserialize(draw(texts(entries, incomplete, extensions))), expected


@st.composite
def texts(draw: st.DrawFn, entries: list[Entry], incomplete: set[str], extensions: set[str]) -> str:
    """A text of these entries in any order, with what is repeated and absorbed (WIRE-23)."""
    again = [*entries, *draw(st.lists(st.sampled_from(entries), max_size=3))] if entries else []
    by_store: dict[str, list[str]] = {}
    for entry in draw(st.permutations(again)):
        by_store.setdefault(entry[0], []).append(spelled(entry))
    flags = ["_.i" if store == "" else f"_.i.{spell(store.encode())}" for store in incomplete]
    tail = draw(st.permutations([*flags, *extensions, *(list(extensions)[:1])]))
    return "~".join(["1", *(".".join([spell(s.encode()), *es]) for s, es in by_store.items()), *tail])


def closed_canonical(lineage: Lineage) -> str:
    parsed = lineage._split()
    return wire.join(parsed._replace(sections={s: Section.open(t).text for s, t in parsed.sections.items()}))


@unhurried
@given(pairs())
def test_reading_and_writing(pair: tuple[Lineage, Model]) -> None:
    """WIRE-23, WIRE-24, LIN-7 to LIN-9: spelling never changes the meaning, and one meaning has one canonical text."""
    lineage, expected = pair
    assert seen(lineage) == expected
    assert closed_canonical(lineage) == text_of(expected)
    assert seen(Lineage.deserialize(lineage.serialize())) == expected
    assert Lineage.deserialize(text_of(expected)).serialize() == text_of(expected)
    assert Lineage(lineage) == lineage
    assert Lineage(lineage).serialize() == text_of(model(set(expected.entries)))
    assert bool(lineage) is (expected != Model(frozenset(), frozenset(), frozenset()))
    assert set(lineage.stores) == {e[0] for e in expected.entries}
    for store in lineage.stores:
        assert {_entry(w) for w in lineage.of_store(store)} == {e for e in expected.entries if e[0] == store}


@unhurried
@given(pairs(), pairs(), pairs())
def test_join(one: tuple[Lineage, Model], two: tuple[Lineage, Model], three: tuple[Lineage, Model]) -> None:
    """LIN-12, LIN-16, LIN-20: commutative, associative, idempotent, with the empty lineage as its unit."""
    (a, ma), (b, mb), (c, mc) = one, two, three
    assert seen(a | b) == seen(b | a) == join(ma, mb)
    assert seen((a | b) | c) == seen(a | (b | c)) == seen((c | a) | b) == join(join(ma, mb), mc)
    assert seen(a | a) == ma
    assert seen((a | b) | b) == seen(b | (a | b)) == join(ma, mb)
    assert seen(a | EMPTY) == seen(EMPTY | a) == ma
    assert closed_canonical(a | b) == text_of(join(ma, mb))


@unhurried
@given(pairs(), pairs())
def test_order(one: tuple[Lineage, Model], two: tuple[Lineage, Model]) -> None:
    """LIN-13, LIN-14: `a <= b` exactly where the join is b, whatever the flag, extensions and spelling."""
    (a, ma), (b, mb) = one, two
    below, above = not beyond(ma, mb), not beyond(mb, ma)
    assert (a <= b) is below is ((a | b) == b)
    assert (b >= a) is below
    assert (a < b) is (below and not above) is (b > a)
    assert (a == b) is (ma.entries == mb.entries) is (below and above)
    assert a <= a | b
    expected = {(True, True): Order.EQUAL, (True, False): Order.BEFORE, (False, True): Order.AFTER}
    assert a.compare(b) is expected.get((below, above), Order.CONCURRENT)
    if a == b:
        assert hash(a) == hash(b)
    assert a == Lineage.deserialize(text_of(ma))
    assert hash(a) == hash(Lineage.deserialize(text_of(ma)))


@unhurried
@given(pairs(), st.lists(entries_(), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_append(pair: tuple[Lineage, Model], added: list[Entry], rng: random.Random) -> None:
    """LIN-7, LIN-8, WIRE-24: what is appended, in whatever order and grouping, joins."""
    lineage, before = pair
    expected = join(before, model(set(added)))
    ids = [write_id_of(entry) for entry in added]
    assert seen(lineage.including(*ids)) == expected
    rng.shuffle(ids)
    result = lineage
    for write_id in ids:
        result = result.including(write_id)
        assert write_id in result
    assert seen(result) == expected
    assert seen(Lineage.deserialize(result.serialize())) == expected
    assert seen(lineage) == before


@unhurried
@given(pairs(positions=True), st.lists(st.tuples(STORES, EPOCHS, COUNTERS), min_size=1, max_size=6))
def test_hops(pair: tuple[Lineage, Model], positions: list[tuple[str, str, int]]) -> None:
    """A chain of services, each of which reads, appends one position and writes."""
    lineage, expected = pair
    text = lineage.serialize()
    for store, epoch, counter in positions:
        text = Lineage.deserialize(text).including(WriteId.position(store, epoch, counter)).serialize()
        expected = join(expected, model({(store, b"", epoch, counter)}))
        assert seen(Lineage.deserialize(text)) == expected


@unhurried
@given(pairs(), pairs())
def test_difference(one: tuple[Lineage, Model], two: tuple[Lineage, Model]) -> None:
    """LIN-21, LIN-23, LIN-27."""
    (a, ma), (b, mb) = one, two
    rest = beyond(ma, mb)
    assert seen(a.without(b)) == Model(rest, ma.incomplete, ma.extensions)
    assert seen(a.beyond(b)) == Model(rest, frozenset(), frozenset())
    flag = frozenset() if "" in mb.incomplete else ma.incomplete - mb.incomplete
    assert seen(a.added_to(b)) == Model(rest, flag, ma.extensions - mb.extensions)
    assert seen(b | a.added_to(b)) == seen(b | a)
    assert seen((a | b).added_to(b)) == seen(a.added_to(b))


@unhurried
@given(pairs(), entries_(), STORES)
def test_taking_out(pair: tuple[Lineage, Model], entry: Entry, store: str) -> None:
    """LIN-21, LIN-22, LIN-23."""
    lineage, m = pair
    assert seen(lineage.without(write_id_of(entry))) == m._replace(entries=beyond(m, model({entry})))
    assert (write_id_of(entry) in lineage) is any(covers(other, entry) for other in m.entries)
    assert seen(lineage.without(store)) == m._replace(
        entries=frozenset(e for e in m.entries if e[0] != store), incomplete=m.incomplete - {store}
    )
    for write_id in lineage:
        left = lineage.without(write_id)
        assert write_id not in left
        assert seen(left.including(write_id)) == m


@unhurried
@given(pairs(), st.sets(STORES, max_size=3))
def test_incomplete(pair: tuple[Lineage, Model], stores: set[str]) -> None:
    """LIN-15, LIN-16, LIN-18, LIN-23."""
    lineage, m = pair
    assert lineage.is_complete(stores) is (not ("" in m.incomplete or bool(stores & m.incomplete)))
    assert lineage.is_complete() is (not m.incomplete)
    assert seen(lineage.marked_incomplete()) == m._replace(incomplete=frozenset({""}))
    if stores:
        marked = m.incomplete if "" in m.incomplete else m.incomplete | stores
        assert seen(lineage.marked_incomplete(*stores)) == m._replace(incomplete=marked)
    assert seen(lineage.vouched()) == m._replace(incomplete=frozenset())


@unhurried
@given(pairs(), st.integers(0, 400))
def test_budget(pair: tuple[Lineage, Model], budget: int) -> None:
    """WIRE-32 to WIRE-36: within the budget, whole sections only, and nothing is lost without its mark."""
    lineage, m = pair
    lineage = Lineage.deserialize(text_of(m))  # canonical, so that the lengths are those of the model
    fitted = seen(lineage.fit(budget))
    assert len(lineage.fit(budget).serialize()) <= max(budget, len("1~_.i"))
    assert fitted == naive_fit(m, budget)
    lost = {e[0] for e in m.entries - fitted.entries}
    assert "" in fitted.incomplete or lost | m.incomplete <= fitted.incomplete
    assert not lost & {e[0] for e in fitted.entries}
    assert seen(lineage) == m


def naive_fit(m: Model, budget: int) -> Model:
    """WIRE-33 to WIRE-35 word by word: after each section left out, the text is made again."""
    sections = {s: text_of(model({e for e in m.entries if e[0] == s}))[2:] for s in {e[0] for e in m.entries}}
    order = sorted(sections, key=lambda s: (len(sections[s]), sections[s]))
    result = m
    while len(text_of(result)) > budget and order:
        store = order.pop()
        result = model(
            {e for e in result.entries if e[0] != store}, {*result.incomplete, store}, set(result.extensions)
        )
        if len(text_of(result._replace(entries=frozenset(), extensions=frozenset()))) - 1 > min(budget, 4087) // 8:
            result = result._replace(incomplete=frozenset({""}))
    if len(text_of(result)) > budget:
        result = model(set(), {""}, set(m.extensions))
    if len(text_of(result)) > budget and len(text_of(result)) > len("1~_.i"):
        result = model(set(), {""})
    return m if len(text_of(m)) <= budget else result


LONG = st.lists(st.tuples(STORES, st.integers(0, 400)), min_size=1, max_size=12)


@unhurried
@given(LONG, st.sampled_from([b"k", b"\xff"]), st.booleans())
def test_serialize_is_bounded(sizes: list[tuple[str, int]], key: bytes, opaque: bool) -> None:
    """WIRE-37: what is written can be read, and what was too much is marked."""
    lineage = EMPTY
    for store, count in sizes:
        ids = [
            WriteId(store, key + str(n).encode(), Opaque("m" * 12) if opaque else Ordered("", n)) for n in range(count)
        ]
        if ids:
            lineage = lineage.including(*ids)
    text = lineage.serialize()
    assert len(text) <= wire.MAX_BYTES
    back = Lineage.deserialize(text)
    assert len(back) <= wire.MAX_ENTRIES
    assert back <= lineage
    lost = set(lineage.beyond(back).stores)
    assert "" in back.incomplete or back.incomplete == lost


SAME_STORE = st.lists(entries_(), min_size=1, max_size=8).map(lambda es: [("s", k, e, last) for _, k, e, last in es])


@unhurried
@given(SAME_STORE, SAME_STORE)
def test_fast_paths_of_sections(one: list[Entry], two: list[Entry]) -> None:
    """The paths over text give what opening both sections gives; only the spelling may stay as it was (WIRE-24)."""
    a, b = (".".join(["s", *map(spelled, entries)]) for entries in (one, two))
    expected = text_of(model({*one, *two}))[2:]
    joined = join_texts(a, b)
    assert Section.open(joined).text == expected
    if a != b:
        assert joined in {expected, a, b}
    rest = text_of(model(set(beyond(model(set(one)), model(set(two))))))[2:]
    assert (subtract_texts(a, b) or "") == rest


@unhurried
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_counters_compare_unsigned(a: int, b: int) -> None:
    """WIRE-9: lengths and digits decide as the numbers do, above 2^63 too."""
    one, two = Lineage([WriteId.position("s", "e", a)]), Lineage([WriteId.position("s", "e", b)])
    assert (one <= two) is (a <= b)
    assert (one | two).serialize() == f"1~s..e.{max(a, b)}"
    hop = Lineage.deserialize(f"1~s..e.{a}").including(WriteId.position("s", "e", b))
    assert hop.serialize() == f"1~s..e.{max(a, b)}"


def test_size_does_not_grow_with_writes() -> None:
    """LIN-11: 10,000 writes to one store with positions are one entry, under 80 bytes."""
    lineage = EMPTY
    for counter in range(100_000, 110_000):
        lineage = lineage.including(WriteId.position("blog-posts", "8371ab90c2d4e6f1", counter))
    assert len(lineage) == 1
    assert len(lineage.serialize()) == len("1~blog-posts..8371ab90c2d4e6f1.109999") < 80
