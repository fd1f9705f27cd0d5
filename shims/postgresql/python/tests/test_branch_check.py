"""Whether a server can hold branches, where it cannot answer while it is asked (spec BRANCH-24)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from antipode._model.errors import UnfitStoreError
from antipode.shim import Server
from antipode_postgresql import branch_rows
from antipode_postgresql.session import RefusedError, Session

SERVER = cast("Server", SimpleNamespace(address="a"))


def refusing(code: str) -> Session:
    """A session on which every statement is refused."""

    def run(_: str) -> Any:
        raise RefusedError("scripted", code)

    return cast("Session", SimpleNamespace(run=run))


@pytest.mark.parametrize("code", ["57P01", "57P03", "40001", "57014"])
def test_a_server_that_cannot_answer_now_is_not_unfit(code: str) -> None:
    """BRANCH-24: it ends, it starts, or a standby's recovery was in the way."""
    with pytest.raises(OSError, match="scripted"):
        branch_rows.check(refusing(code), SERVER, "blog-posts")


def test_one_without_the_table_is() -> None:
    """BRANCH-24"""
    with pytest.raises(UnfitStoreError, match="antipode init blog-posts"):
        branch_rows.check(refusing("42P01"), SERVER, "blog-posts")
