"""Lineage operations in one process: hops, joins, carriers, sizes. Processor time; no server, no socket."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from urllib.parse import quote_plus, unquote_plus

from antipode._model.lineage import EMPTY, Lineage
from antipode._model.write_id import Opaque, WriteId
from antipode._propagation.carriers import read, with_member
from antipode.propagation import Inbound

from antipode_benchmarks.micro import naive
from antipode_benchmarks.micro.figures import Figure, Pair, paired, spread_of

WRITES = 20
"""Writes that a lineage has seen before the hop that is measured."""
CALLS = 200
EPOCH = "8371ab90c2d4e6f1"
APPLICATION = "tenant=acme,session=5f2c9d0e"
"""The application's own baggage beside ours."""

_loads, _dumps = json.loads, json.dumps
_deserialize, _position = Lineage.deserialize, WriteId.position


class Positional:
    """A lineage of WRITES writes to so many stores that give positions, and the writes of the next hops."""

    def __init__(self, stores: int) -> None:
        names = [f"blog-store-{n}" for n in range(stores)]
        epochs = [f"{EPOCH[:-2]}{n:02d}" for n in range(stores)]
        self.text = Lineage(
            WriteId.position(names[n % stores], epochs[n % stores], 1042 + n) for n in range(WRITES)
        ).serialize()
        self.naive = naive.dump(
            [[names[n % stores], f"post:{n}", f"{epochs[n % stores]}.{1042 + n}"] for n in range(WRITES)]
        )
        self.writes = [(names[n % stores], epochs[n % stores], 2042 + n) for n in range(CALLS)]
        self.naive_writes = [[store, f"post:{n}", f"{epoch}.{c}"] for n, (store, epoch, c) in enumerate(self.writes)]

    def hop(self) -> None:
        """Reads, appends one write and writes, CALLS times."""
        text = self.text
        for store, epoch, counter in self.writes:
            _deserialize(text).including(_position(store, epoch, counter)).serialize()

    def naive_hop(self) -> None:
        """The same with a JSON list."""
        text = self.naive
        for write in self.naive_writes:
            ids = _loads(text)
            ids.append(write)
            _dumps(ids)


class Marks:
    """A lineage of WRITES objects with opaque versions, as an object store without positions gives them."""

    def __init__(self) -> None:
        self.text = Lineage(
            WriteId("img", f"cat-{n}.jpg".encode(), Opaque(f"3sL4kqtJlcpXro{n:02d}")) for n in range(WRITES)
        ).serialize()
        self.naive = naive.dump([["img", f"cat-{n}.jpg", f"3sL4kqtJlcpXro{n:02d}"] for n in range(WRITES)])
        self.writes = [(f"cat-{n % 20}-{n}.jpg".encode(), f"9eVtJlcpXroD{n:04d}") for n in range(CALLS)]
        self.naive_writes = [["img", key.decode(), mark] for key, mark in self.writes]

    def hop(self) -> None:
        """Reads, appends one write and writes, CALLS times."""
        text = self.text
        for key, mark in self.writes:
            _deserialize(text).including(WriteId("img", key, Opaque(mark))).serialize()

    def naive_hop(self) -> None:
        """The same with a JSON list."""
        text = self.naive
        for write in self.naive_writes:
            ids = _loads(text)
            ids.append(write)
            _dumps(ids)


def figures(rounds: int) -> Iterator[Figure]:
    """All figures of this group."""
    for stores, least in ((1, 5.0), (3, 5.0), (5, None), (20, None)):
        case = Positional(stores)
        yield _faster(
            f"hop_{stores}_positional",
            f"hop (deserialize, append, serialize) after {WRITES} writes to {stores} store{'s'[: stores > 1]}"
            " with positions, against JSON",
            paired(case.hop, case.naive_hop, calls=CALLS, rounds=rounds),
            least,
        )
    marks = Marks()
    yield _faster(
        "hop_20_opaque",
        f"hop after {WRITES} writes of objects with opaque versions, against JSON",
        paired(marks.hop, marks.naive_hop, calls=CALLS, rounds=rounds),
        1.0,
    )
    yield _join(rounds)
    yield from _carriers(rounds)
    yield from _sizes()
    yield from _hostile(rounds)


def _faster(name: str, what: str, pair: Pair, at_least: float | None) -> Figure:
    ratios = pair.ratios
    return Figure(
        name,
        what,
        "times faster",
        spread_of(ratios, 50)["p50"],
        spread_of(ratios, 10, 50, 90),
        at_least=at_least,
        beside={"ours_us": spread_of(pair.ours, 50)["p50"], "json_us": spread_of(pair.other, 50)["p50"]},
    )


def _join(rounds: int) -> Figure:
    """A response brings a newer position of a store that the scope holds already."""
    held = Lineage.deserialize(Positional(3).text)
    arriving = [
        Lineage([WriteId.position("blog-store-1", f"{EPOCH[:-2]}01", 2042 + n)]).serialize() for n in range(CALLS)
    ]
    naive_held = naive.load(Positional(3).naive)
    naive_arriving = [naive.dump([["blog-store-1", f"post:{n}", f"{EPOCH}.{2042 + n}"]]) for n in range(CALLS)]

    def ours() -> None:
        for text in arriving:
            held | _deserialize(text)

    def other() -> None:
        for text in naive_arriving:
            naive_held + _loads(text)

    return _faster(
        "join_response",
        "a response is read and joined into a lineage of 3 stores that holds its store, against JSON and no merging",
        paired(ours, other, calls=CALLS, rounds=rounds),
        None,
    )


def _carriers(rounds: int) -> Iterator[Figure]:
    """A hop with the carrier round it: found in the headers, put into the headers."""
    case = Positional(1)
    own = [("content-type", "application/json"), ("antipode-lineage", case.text)]
    baggage = [("content-type", "application/json"), ("baggage", f"{APPLICATION},antipode={case.text}")]
    naive_own = [("content-type", "application/json"), ("antipode-lineage", case.naive)]
    naive_baggage = [
        ("content-type", "application/json"),
        ("baggage", f"{APPLICATION},antipode={quote_plus(case.naive)}"),
    ]

    def through_header() -> None:
        for store, epoch, counter in case.writes:
            (text,) = read(own).texts
            dict(own)["antipode-lineage"] = _deserialize(text).including(_position(store, epoch, counter)).serialize()

    def json_through_header() -> None:
        for write in case.naive_writes:
            headers = {name.lower(): value for name, value in naive_own}
            ids = _loads(headers["antipode-lineage"])
            ids.append(write)
            headers["antipode-lineage"] = _dumps(ids)

    def through_baggage() -> None:
        for store, epoch, counter in case.writes:
            (text,) = read(baggage).texts
            with_member(APPLICATION, _deserialize(text).including(_position(store, epoch, counter)).serialize())

    def json_through_baggage() -> None:
        for write in case.naive_writes:
            headers = {name.lower(): value for name, value in naive_baggage}
            members = dict(member.split("=", 1) for member in headers["baggage"].split(","))
            ids = _loads(unquote_plus(members["antipode"]))
            ids.append(write)
            members["antipode"] = quote_plus(_dumps(ids))
            ",".join(f"{name}={value}" for name, value in members.items())

    for name, where, ours, other in (
        ("hop_in_header", "in a header of its own", through_header, json_through_header),
        ("hop_in_baggage", "in W3C baggage beside two members", through_baggage, json_through_baggage),
    ):
        what = f"hop after {WRITES} writes to 1 store with positions, {where}, against JSON there"
        yield _faster(name, what, paired(ours, other, calls=CALLS, rounds=rounds), None)


def _sizes() -> Iterator[Figure]:
    """How long the text is after so many writes to one Redis; each write moves the offset by some 90 bytes."""
    lineage, ids, length, at = EMPTY, [], {}, 5_000_000_000
    for n in range(10_000):
        at += 87 + n % 7
        lineage = lineage.including(WriteId.position("blog-posts", EPOCH, at))
        ids.append(["blog-posts", f"post:{n}", f"{EPOCH}.{at}"])
        if n + 1 in (1, 10, 100, 1000, 10_000):
            length[n + 1] = (len(lineage.serialize()), len(naive.dump(ids)))
    for writes, (ours, other) in length.items():
        yield Figure(
            f"bytes_after_{writes}_writes",
            f"length of a lineage after {writes:,} writes to one Redis",
            "bytes",
            ours,
            at_most=79,
            beside={"json_bytes": other},
        )


def _hostile(rounds: int) -> Iterator[Figure]:
    """Yield the worst of requests that are made to cost much, of 32 and of 64 KiB (WIRE-42)."""
    made: dict[str, Callable[[int], list[tuple[str, str]]]] = {
        "distinct texts and hops": lambda size: [
            ("antipode-lineage", ",".join(f"{number:04x}" for number in range(size // 10))),
            ("x-forwarded-for", "10.0.0.1," * (size // 18) + "203.0.113.9"),
        ],
        "encoded members": lambda size: [("baggage", "%61ntipode=%31," * (size // 15))],
        "encoded texts": lambda size: [("antipode-lineage", "%31%7e," * (size // 7))],
        "empty members": lambda size: [("baggage", "%=," * (size // 3))],
    }
    cost: dict[int, float] = {}
    for size in (32_768, 65_536):
        for headers in (make(size) for make in made.values()):
            seen = []
            for _ in range(max(rounds // 10, 3)):
                began = time.process_time_ns()
                Inbound(read(headers), "10.0.0.7")
                seen.append((time.process_time_ns() - began) / 1e6)
            cost[size] = max(cost.get(size, 0.0), spread_of(seen, 50)["p50"])
    yield Figure("hostile_request", "the worst hostile request of 64 KiB, judged", "ms", cost[65_536], at_most=20)
    ratio = cost[65_536] / cost[32_768]
    yield Figure("hostile_growth", "that request against one of half its length", "times", ratio, at_most=2.3)
