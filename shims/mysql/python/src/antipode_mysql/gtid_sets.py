"""MySQL's global transaction ids: sets of numbers by server uuid and tag, such as `3e11fa47-…:1-57:99:tag:1-3`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_OWNED: Final = re.compile(rf"(?::({_TAG.pattern}))?((?::[0-9]+(?:#[0-9]+)+)+)")
_NUMBER: Final = re.compile(r":([0-9]+)")
_UUID_APART: Final = re.compile(rf"({_UUID.pattern})")
_EPOCH: Final = re.compile(r"[0-9a-f]{16}(-[A-Za-z0-9_]{1,15})?")
_SHORT: Final = 15
"""The longest tag that fits into an epoch; of a longer one it has a digest."""
GREATEST: Final = 2**63 - 2
"""The greatest number that a transaction can have."""
Intervals = tuple[tuple[int, int], ...]


def epoch_of(uuid: str, tag: str = "") -> str:
    """The epoch: 16 digits of the server's uuid, and the tag. Each tag of a server counts for itself."""
    digits = uuid.replace("-", "")[:16]
    if not tag:
        return digits
    return f"{digits}-{tag if len(tag) <= _SHORT else sha256(tag.encode()).hexdigest()[:_SHORT].upper()}"


def is_epoch(epoch: str) -> bool:
    """Whether it can be an epoch of MySQL's."""
    return _EPOCH.fullmatch(epoch) is not None


def server_of(epoch: str) -> str:
    """The part of an epoch that names the server: all of its tags are written by one."""
    return epoch[:16]


class GtidSet(Mapping[str, Intervals]):
    """By epoch, the numbers that are in the set: intervals in ascending order, both ends included.

    Raises ValueError for what is no GTID set.
    """

    def __init__(self, text: str) -> None:
        self.text = "".join(text.split())
        self._intervals: dict[str, Intervals] = {}
        self._streams: dict[str, str] = {}
        self.ambiguous: set[str] = set()
        """Epochs that are two servers' here."""
        for uuid, tag, intervals in _parsed(self.text):
            epoch = epoch_of(uuid, tag)
            stream = f"{uuid}:{tag}" if tag else uuid
            if self._streams.setdefault(epoch, stream) != stream:
                self.ambiguous.add(epoch)
            self._intervals[epoch] = tuple(sorted((*self._intervals.get(epoch, ()), *intervals)))

    def __getitem__(self, epoch: str) -> Intervals:
        return self._intervals[epoch]

    def __iter__(self) -> Iterator[str]:
        return iter(self._intervals)

    def __len__(self) -> int:
        return len(self._intervals)

    def stream(self, epoch: str) -> str:
        """The server's uuid, with the tag, as the server spells it."""
        return self._streams[epoch]

    def whole(self, epoch: str, after: int = 0) -> int:
        """Up to where every number is there, from the first one, or from the one `after`; 0 for none."""
        reached = after
        for first, last in self.get(epoch, ()):
            if first > reached + 1:
                break
            reached = max(reached, last)
        return reached

    def greatest(self, epoch: str) -> int:
        """The greatest number that is there; 0 for none."""
        return max((last for _, last in self.get(epoch, ())), default=0)

    def of_server(self, uuid: str) -> list[str]:
        """The epochs of one server."""
        return [epoch for epoch, stream in self._streams.items() if stream.partition(":")[0] == uuid]


def owned(text: str) -> dict[str, int]:
    """By epoch, the greatest number that `@@gtid_owned` names: those of transactions that are being committed.

    It is the list `uuid:5#31:6#32uuid:tag:7#33` of numbers with the threads that own them, without anything between
    two servers: a thread's digits and the next uuid run into each other. Raises ValueError for what is no such list.
    """
    first, *rest = _UUID_APART.split("".join(text.lower().split()))
    if first:
        raise ValueError(f"no owned GTIDs: {text!r}")
    found: dict[str, int] = {}
    for uuid, numbers in zip(rest[::2], rest[1::2], strict=True):
        matched = _OWNED.fullmatch(numbers.rstrip(","))
        if matched is None:
            raise ValueError(f"no owned GTIDs: {text!r}")
        epoch = epoch_of(uuid, matched[1] or "")
        greatest = max(int(number) for number in _NUMBER.findall(matched[2]))
        found[epoch] = max(found.get(epoch, 0), greatest)
    return found


def _parsed(text: str) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
    for member in filter(None, text.lower().split(",")):
        uuid, _, rest = member.partition(":")
        if not _UUID.fullmatch(uuid) or not rest:
            raise ValueError(f"no GTID: {member!r}")
        tag, found = "", list[tuple[int, int]]()
        for part in rest.split(":"):
            if part[:1].isdigit():
                first, _, last = part.partition("-")
                found.append((int(first), int(last or first)))
            elif _TAG.fullmatch(part):
                if found:
                    yield uuid, tag, found
                tag, found = part, []
            else:
                raise ValueError(f"no GTID: {member!r}")
        yield uuid, tag, found
