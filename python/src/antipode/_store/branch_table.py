"""Where branches are closed: the small table that a store's shim keeps, and the text of its rows (spec BRANCH)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

from antipode._base.bounded import BoundedMap
from antipode._base.seal_keys import Keys
from antipode._model.branch_ids import ROW_LIFE_S, BranchId
from antipode._model.errors import ConfigurationError, MalformedLineageError
from antipode._model.lineage import Lineage
from antipode._model.wire import MAX_BYTES
from antipode._store.contract import Server, Store
from antipode._store.store import registry
from antipode._trust.seal import SealState, open_seal, seal
from antipode._trust.trust import TrustSettings, judge_message_in, judge_message_out, trust_settings


class BranchTable(ABC):
    """What a shim is besides, where its store can hold branches: one table, `id -> text`, whose rows never change."""

    @abstractmethod
    def check_branches(self) -> None:
        """Asks whether the table is there and may be written and read; UnfitStoreError says the cure (BRANCH-24).

        A server that does not answer now is no error.
        """

    @abstractmethod
    def find_branches(self, ids: Sequence[str], server: Server) -> Mapping[str, str]:
        """The rows of these branches that a server shows, in one question: `id -> text`.

        Called by the engine's thread for that server, on `server.session`, like `visible`, and raises as that does.
        """

    @abstractmethod
    def close_branch(self, branch: str, text: str, life: float) -> bool:
        """Writes a row at the primary, to be kept for `life` seconds at least; False where there is one already.

        Called by any thread, on a connection of its own. One atomic step, so that it may be sent twice; with it some
        rows go whose time is over, where the store forgets nothing by itself. Raises ConfigurationError where no server
        that this process has wrapped takes writes, and what the client raises.
        """


class Row:
    """The row of a closed branch as it was found, and what it says, as far as it is believed (BRANCH-23)."""

    __slots__ = ("lineage", "reason")

    def __init__(self, branch: BranchId, text: str, lineage_in: bool) -> None:
        self.lineage: Lineage | None = None
        self.reason = ""
        trust = trust_settings()
        if not lineage_in:
            self.reason = "its close is not believed: lineage_in=False"
            return
        body = text
        if trust.keys:
            body, state = open_seal(text, _keys(trust, branch), time.time())
            if state is not SealState.VALID:
                self.reason = f"its close is not believed: the seal of its row is {state}"
                return
        else:
            decision = judge_message_in(text, trust, None)
            if not decision.accepted:
                self.reason = f"its close is not believed: {decision.reason}"
                return
        try:
            self.lineage = Lineage.deserialize(body)
        except MalformedLineageError as error:
            self.reason = f"its row cannot be read: {error}"


def row_text(branch: BranchId, lineage: Lineage, lineage_out: bool, life: float) -> str:
    """The text of a row; raises ConfigurationError where lineages may not rest in the store."""
    trust = trust_settings()
    decision = judge_message_out(trust, None if lineage_out else False)
    if not decision.accepted:
        raise ConfigurationError(
            f"{branch} cannot be closed: its lineage may not rest there ({decision.reason})", code="AP404"
        )
    if not trust.keys:
        return lineage.serialize()
    keys = _keys(trust, branch)
    return seal(lineage.fit(MAX_BYTES - keys.seal_length).serialize(), keys, time.time(), life)


def row_life(branch: BranchId) -> float:
    """Seconds for which a row that is written now has to be kept (BRANCH-22)."""
    return max(branch.lease_ms / 1000 - time.time(), 0.0) + ROW_LIFE_S


def _keys(trust: TrustSettings, branch: BranchId) -> Keys:
    """The process's keys, made others for each branch: a row is worth nothing under another's id."""
    return trust.keys.for_purpose(b"antipode branch " + branch.key)


def table_of(store: Store | None) -> BranchTable | None:
    """The table of branches of a registered store; None where its kind has none."""
    shim = None if store is None else store.shim
    return shim if isinstance(shim, BranchTable) else None


def checked_store(value: Any) -> str:
    """What `configure(branches=…)` means: the name of a registered store, which can hold the table (BRANCH-24).

    `value` is a wrapped client, a Store, or a name.
    """
    store = registry().need(value) if isinstance(value, str) else value if isinstance(value, Store) else _behind(value)
    if not isinstance(store, Store):
        raise ConfigurationError(
            f"configure(branches={type(value).__name__}): want a wrapped client, or the name of its store",
            code="AP301",
        )
    table = table_of(store)
    if table is None:
        raise ConfigurationError(
            f"configure(branches={store.name!r}): a store of the kind {store.kind} has no table of branches",
            code="AP511",
        )
    table.check_branches()
    return store.name


def _behind(client: Any) -> Any:
    """The store that a client was wrapped for; None where it is no wrapped client."""
    for name in ("_antipode", "_antipode_flow", "_joined", "_store"):
        found = getattr(client, name, None)
        binding = getattr(found, "binding", found)
        for candidate in (found, getattr(binding, "store", None)):
            if isinstance(candidate, Store):
                return candidate
    return None


CLOSED: Final = BoundedMap[bytes, str](1024)
"""Rows that this process has seen: they never change, so nobody asks twice."""
