"""Every small history, once up to the names of threads and keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from antipode.check.history.building import build
from antipode.check.history.operations import History, Kind, Operation

Step = tuple[bool, int]
"""Whether it writes, and the key."""


def every_history(operations: int, threads: int = 3, keys: int = 3) -> Iterator[History]:
    """All histories with exactly so many operations, in at most so many threads and of at most so many keys."""
    for lengths in _partitions(operations, threads):
        for steps in product(
            [(False, key) for key in range(keys)] + [(True, key) for key in range(keys)], repeat=operations
        ):
            parts, at = [], 0
            for length in lengths:
                parts.append(steps[at : at + length])
                at += length
            if _canonical(parts, keys):
                yield from _read_from(parts)


def _partitions(total: int, most: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    if not total:
        yield ()
        return
    if not most:
        return
    for first in range(min(total, largest or total), 0, -1):
        for rest in _partitions(total - first, most - 1, first):
            yield (first, *rest)


def _canonical(parts: Sequence[tuple[Step, ...]], keys: int) -> bool:
    """Whether no other order of threads of one length, with keys named as they come up, is smaller."""
    named = _named(parts)
    if named != [list(part) for part in parts]:
        return False
    return all(named <= _named(other) for other in _reordered(parts))


def _named(parts: Sequence[Sequence[Step]]) -> list[list[Step]]:
    names: dict[int, int] = {}
    return [[(writes, names.setdefault(key, len(names))) for writes, key in part] for part in parts]


def _reordered(parts: Sequence[tuple[Step, ...]]) -> Iterator[list[tuple[Step, ...]]]:
    from itertools import permutations

    lengths = [len(part) for part in parts]
    for order in permutations(range(len(parts))):
        if [lengths[place] for place in order] == lengths:
            yield [parts[place] for place in order]


def _read_from(parts: Sequence[tuple[Step, ...]]) -> Iterator[History]:
    writes: dict[int, list[str]] = {}
    reads: list[int] = []
    for thread, part in enumerate(parts):
        for place, (is_write, key) in enumerate(part):
            if is_write:
                writes.setdefault(key, []).append(f"{thread}.{place}")
            else:
                reads.append(key)
    for sources in product(*[[None, *writes.get(key, [])] for key in reads]):
        left = iter(sources)
        yield build(
            Operation(
                f"{thread}.{place}",
                Kind.WRITE if is_write else Kind.READ,
                "p",
                str(thread),
                store="s",
                key=str(key),
                reads_from=None if is_write else next(left),
            )
            for thread, part in enumerate(parts)
            for place, (is_write, key) in enumerate(part)
        )
