"""Whether a server can hold branches, where it goes while it is asked (spec BRANCH-24)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pymysql
import pytest
from antipode._model.errors import UnfitStoreError
from antipode.shim import Server
from antipode_mysql import branch_rows

SERVER = cast("Server", SimpleNamespace(address="a"))


class Failing:
    """A connection on which every statement fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def cursor(self) -> Failing:
        return self

    def __enter__(self) -> Failing:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, *_: Any) -> None:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query"),
        pymysql.err.OperationalError(2006, "MySQL server has gone away"),
        pymysql.err.OperationalError(1053, "Server shutdown in progress"),
        pymysql.err.InterfaceError(0, ""),
    ],
)
def test_a_server_that_goes_is_not_unfit(error: Exception) -> None:
    """BRANCH-24"""
    with pytest.raises(branch_rows.BROKEN) as caught:
        branch_rows.check(Failing(error), SERVER, "blog-posts")
    assert caught.value is error


def test_one_without_the_table_is() -> None:
    """BRANCH-24"""
    missing = pymysql.err.ProgrammingError(1146, "Table 'antipode.branches' doesn't exist")
    with pytest.raises(UnfitStoreError, match="antipode init blog-posts"):
        branch_rows.check(Failing(missing), SERVER, "blog-posts")
