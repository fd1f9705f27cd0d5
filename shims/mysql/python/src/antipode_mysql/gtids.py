"""MariaDB's global transaction ids: `domain-server_id-sequence`, and what a server says of those that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from antipode import Ordered

_MOST: Final = 2**32 - 1
"""The greatest domain, and server id: the server's own wait refuses what is greater."""


class Gtid(NamedTuple):
    """One transaction: its domain, the server that wrote it, its number in the domain."""

    domain: int
    server: int
    sequence: int

    @property
    def epoch(self) -> str:
        """The history with one writer that it belongs to: `domain-server_id`."""
        return f"{self.domain}-{self.server}"

    @property
    def position(self) -> Ordered:
        """The position that covers it."""
        return Ordered(self.epoch, self.sequence)


def parse(text: str) -> Iterator[Gtid]:
    """The ids in a list such as `0-1-57,1-3-9`; raises ValueError for what is none."""
    for one in text.split(","):
        if one.strip():
            domain, server, sequence = one.strip().split("-")
            yield Gtid(int(domain), int(server), int(sequence))


def parse_epoch(epoch: str) -> tuple[int, int] | None:
    """The domain and server of an epoch; None for what is no epoch of ours."""
    domain, dash, server = epoch.partition("-")
    if not (dash and domain.isascii() and domain.isdigit() and server.isascii() and server.isdigit()):
        return None
    if f"{int(domain)}-{int(server)}" != epoch or int(domain) > _MOST or int(server) > _MOST:
        return None
    return int(domain), int(server)


class State(Mapping[tuple[int, int], int]):
    """`@@gtid_binlog_state`: by domain and server, the greatest sequence that is in the binary log."""

    def __init__(self, text: str) -> None:
        self._reached: dict[tuple[int, int], int] = {}
        self._last: dict[int, Gtid] = {}
        for gtid in parse(text):
            self._reached[gtid[:2]] = gtid.sequence
            if gtid.domain not in self._last or gtid.sequence > self._last[gtid.domain].sequence:
                self._last[gtid.domain] = gtid

    def __getitem__(self, key: tuple[int, int]) -> int:
        return self._reached[key]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._reached)

    def __len__(self) -> int:
        return len(self._reached)

    def last(self, domain: int) -> Gtid | None:
        """The domain's newest transaction: numbers only grow in a domain, in strict mode, whoever writes."""
        return self._last.get(domain)

    @property
    def newest(self) -> Gtid | None:
        """The newest transaction of the first domain, which names the history that the server follows now."""
        return self._last[min(self._last)] if self._last else None


def places(text: str) -> dict[int, int]:
    """`@@gtid_slave_pos`: by domain, the sequence that the applier has committed."""
    return {gtid.domain: gtid.sequence for gtid in parse(text)}
