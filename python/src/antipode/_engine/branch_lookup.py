"""Asking a server for the rows of branches, and what a barrier waits for before it waits for writes (spec BRANCH)."""

from __future__ import annotations

from collections.abc import Sequence

from antipode._model.branch_ids import BranchId
from antipode._model.verdict import Verdict, Visibility, not_yet, unproven
from antipode._model.write_id import WriteId
from antipode._store.branch_table import CLOSED, table_of
from antipode._store.contract import Server


def look_for(branches: Sequence[WriteId], server: Server) -> list[Visibility]:
    """One answer a branch, of one question: `visible` with its row's text where the server shows that (BRANCH-13).

    What the server refuses makes branches unproven, and writes not; where it is out of reach, raises as the shim does.
    """
    table = table_of(server.store)
    named = [BranchId.of(write_id) for write_id in branches]
    if table is None:
        return [unproven(f"a store of the kind {server.store.kind} has no table of branches")] * len(branches)
    try:
        rows = table.find_branches([branch.id for branch in named if branch is not None], server)
    except server.store.shim.unreachable:
        raise
    except Exception as error:
        return [unproven(f"its table of branches cannot be read there: {error}")] * len(branches)
    answers = []
    for branch in named:
        text = None if branch is None else rows.get(branch.id)
        if branch is None or text is None:
            answers.append(not_yet("still open there"))
        else:
            CLOSED.put(branch.key, text)
            answers.append(Visibility(Verdict.VISIBLE, told=text))
    return answers
