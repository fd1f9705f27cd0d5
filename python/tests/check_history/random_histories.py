"""Small random histories with messages and lineages: anything may read from anything."""

from __future__ import annotations

import random

from antipode.check.history.building import build
from antipode.check.history.operations import UNATTRIBUTED, History, Kind, Operation


def random_history(seed: int, most: int = 10) -> History:
    """One history, the same for the same seed."""
    chance = random.Random(seed)
    count = chance.randint(2, most)
    threads, keys = chance.randint(1, 4), chance.randint(1, 3)
    reading = chance.choice([0.4, 0.6, 0.75])
    made: list[Operation] = []
    for number in range(count):
        thread = str(chance.randrange(threads))
        if chance.random() < 0.15:
            kind = Kind.SEND
            made.append(Operation(str(number), kind, "p", thread, message=f"m{number}"))
            continue
        kind = Kind.READ if chance.random() < reading else Kind.WRITE
        made.append(Operation(str(number), kind, "p", thread, store="s", key=str(chance.randrange(keys))))
    sendings = [each for each in made if each.kind is Kind.SEND]
    for each in sendings:
        if chance.random() < 0.8:
            at = chance.randint(made.index(each) + 1, len(made)) if chance.random() < 0.95 else 0
            thread = str(chance.randrange(threads))
            made.insert(at, Operation(f"r{each.id}", Kind.RECEIVE, "p", thread, message=each.message))
    writes = [each for each in made if each.kind is Kind.WRITE]
    early = chance.random() < 0.8
    for place, each in enumerate(made):
        known = [write for write in writes if not early or made.index(write) < place]
        if each.kind is Kind.READ:
            fitting = [write.id for write in known if write.key == each.key]
            each.reads_from = chance.choice([*fitting, *fitting, None])
            if chance.random() < 0.03:
                each.reads_from = UNATTRIBUTED
        if known and chance.random() < (0.5 if each.kind is Kind.SEND else 0.1):
            each.lineage = tuple(chance.choice(known).id for _ in range(chance.randint(0, 2)))
    return build(made)


def random_reader(seed: int) -> History:
    """A reader of writes that little joins; single reads are seldom wrong, so what counts is whether all fit."""
    chance = random.Random(seed)
    keys = chance.randint(1, 3)
    writers = [[chance.randrange(keys) for _ in range(chance.randint(1, 3))] for _ in range(chance.randint(2, 3))]
    made = [
        Operation(f"{writer}.{place}", Kind.WRITE, "p", str(writer), store="s", key=str(key))
        for writer, part in enumerate(writers)
        for place, key in enumerate(part)
    ]
    newest: dict[str, int] = {}
    for number in range(chance.randint(3, 7)):
        writer = chance.randrange(len(writers))
        seen = newest.get(str(writer), -1)
        # Mostly what the reader knows of this writer, or the next of it.
        place = min(len(writers[writer]) - 1, max(0, seen + chance.choice([0, 0, 1])))
        newest[str(writer)] = max(seen, place)
        key = str(writers[writer][place])
        last = max(at for at, each in enumerate(writers[writer]) if str(each) == key and at <= newest[str(writer)])
        source = None if chance.random() < 0.1 else f"{writer}.{last}"
        made.append(Operation(f"r{number}", Kind.READ, "p", "reader", store="s", key=key, reads_from=source))
    return build(made)
