"""What names a branch: its entry in a lineage, and the extensions of the texts that go to a task (spec BRANCH)."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from antipode._model.lineage import EMPTY, Lineage
from antipode._model.wire import spell_name, unspell_name
from antipode._model.write_id import Ordered, WriteId

BRANCHES: Final = "antipode-branches"
"""The store whose entries are open branches; no application's."""
TASK: Final = "task"
"""The extension of a text for the task itself, which closes the branch."""
WITHIN: Final = "within"
"""The extension of a text for whom the task calls and waits for."""
LONGEST_LEASE_S: Final = 24 * 3600.0
GRACE_S: Final = 1.0
"""So long after its lease a branch is waited for: for clocks that differ, and a close on its way."""
ROW_LIFE_S: Final = 24 * 3600.0
"""So long after the lease a row is kept at least."""
_SKEW_S: Final = 60.0
_ID: Final = re.compile(r"[0-9a-f]{32}")


class BranchId(NamedTuple):
    """One branch: the store that has its row, its id, and when its lease ends, in milliseconds since 1970."""

    store: str
    id: str
    lease_ms: int

    @classmethod
    def new(cls, store: str, within: float) -> BranchId:
        """A branch that nobody else has, with a lease of so many seconds from now."""
        return cls(store, secrets.token_hex(16), int((time.time() + within) * 1000))

    @classmethod
    def of(cls, write_id: WriteId) -> BranchId | None:
        """The branch that an entry of `antipode-branches` stands for; None where it stands for none."""
        version = write_id.version
        store, slash, name = write_id.key.decode("utf-8", "surrogateescape").rpartition("/")
        if not slash or not store or not _ID.fullmatch(name) or not isinstance(version, Ordered) or version.epoch:
            return None
        return cls(store, name, version.counter)

    @property
    def key(self) -> bytes:
        """The key of its entry."""
        return f"{self.store}/{self.id}".encode("utf-8", "surrogateescape")

    @property
    def write_id(self) -> WriteId:
        """Its entry in a lineage (BRANCH-1)."""
        return WriteId(BRANCHES, self.key, Ordered("", self.lease_ms))

    def extension(self, tag: str) -> str:
        """The extension that names it as the branch of whoever takes the text in (BRANCH-4, BRANCH-6)."""
        return f"_.{tag}.{spell_name(self.store)}.{self.id}.{self.lease_ms}"

    # Leases are judged by this machine's clock: a difference costs time, never a false pass (BRANCH-15).

    def left(self, now: float) -> float:
        """Seconds for which it is to be waited for; not more than 0 where it counts as abandoned."""
        left = self.lease_ms / 1000 + GRACE_S - now
        return left if left <= LONGEST_LEASE_S + _SKEW_S else 0.0

    def is_expired(self, now: float) -> bool:
        """Whether its row may be gone by now, so that nothing is known of it any more (BRANCH-16)."""
        return now > self.lease_ms / 1000 + ROW_LIFE_S

    def __str__(self) -> str:
        return f"branch {self.id[:8]}… of {self.store}"


def taken_out(lineage: Lineage) -> tuple[Lineage, list[BranchId], list[BranchId]]:
    """A lineage that came in without its two extensions, and the branches that they named: of a task, and within one.

    One that names no branch names none (BRANCH-8).
    """
    tasks: list[BranchId] = []
    within: list[BranchId] = []
    rest: list[str] = []
    for extension in lineage.extensions:
        fields = extension.split(".")
        if fields[1] not in (TASK, WITHIN):
            rest.append(extension)
            continue
        if len(fields) == 5 and _ID.fullmatch(fields[3]) and fields[4].isdecimal() and len(fields[4]) < 20:
            found = BranchId(unspell_name(fields[2]), fields[3], int(fields[4]))
            (tasks if fields[1] == TASK else within).append(found)
    return (lineage if len(rest) == len(lineage.extensions) else lineage.with_extensions(rest)), tasks, within


def without_branches(lineage: Lineage, keys: Iterable[bytes]) -> Lineage:
    """A lineage without the branches with these keys, whatever lease it knows of them."""
    if lineage.section_text(BRANCHES) is None:
        return lineage
    gone = set(keys)
    ids = [write_id for write_id in lineage.of_store(BRANCHES) if write_id.key in gone]
    return lineage.without(Lineage(ids)) if ids else lineage


def branches_of(lineage: Lineage) -> list[WriteId]:
    """The entries of open branches in a lineage; cheap where there are none."""
    return [] if lineage is EMPTY or lineage.section_text(BRANCHES) is None else lineage.of_store(BRANCHES)
