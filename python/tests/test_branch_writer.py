"""Where branches are closed: servers that do not answer now (spec BRANCH-24)."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from antipode._model.errors import UnfitStoreError
from antipode._store.store import Store
from antipode.shim import Server
from antipode.shim.branch_writer import RowWriter
from antipode.testing import isolated


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        yield


def test_a_server_that_goes_while_it_is_asked_is_no_error() -> None:
    """BRANCH-24: the others are asked all the same, and every connection is ended."""
    servers = [SimpleNamespace(address=name) for name in ("a", "b", "c")]
    store = cast("Store", SimpleNamespace(name="s", wrapped_servers=lambda: servers))
    asked: list[Any] = []
    ended: list[Any] = []

    def connect(server: Server) -> Any:
        if server.address == "a":
            raise OSError("not there")
        return server.address

    def ask(connection: Any, server: Server) -> None:
        asked.append(connection)
        if connection == "b":
            raise ConnectionResetError("gone")

    writer = RowWriter(store, connect, ended.append, (OSError,))
    writer.each(ask)
    assert asked == ended == ["b", "c"]


def test_what_a_server_refuses_is_told() -> None:
    """BRANCH-24"""
    store = cast("Store", SimpleNamespace(name="s", wrapped_servers=lambda: [SimpleNamespace(address="a")]))
    ended: list[Any] = []

    def ask(connection: Any, server: Server) -> None:
        raise UnfitStoreError("no table")

    with pytest.raises(UnfitStoreError):
        RowWriter(store, lambda _: "connection", ended.append, (OSError,)).each(ask)
    assert ended == ["connection"]
