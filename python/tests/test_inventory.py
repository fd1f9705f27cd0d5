"""The inventory that shims hold their clients' classes against (SHIM-51)."""

from __future__ import annotations

import pytest
from antipode.testing.inventory import check_inventory, public_ways


class Client:
    class Error(Exception): ...

    name = "x"

    @property
    def rows(self) -> int:
        raise AssertionError("a property of the class is not asked")

    def write(self) -> None: ...

    def _own(self) -> None: ...


def test_the_ways_of_classes() -> None:
    """SHIM-51"""
    assert public_ways([Client]) == {"name", "rows", "write"}


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"writes": ["write"], "neither": ["name"]}, "nobody has said what these do: rows"),
        ({"writes": ["write", "erase"], "neither": ["name", "rows"]}, "has them no more: erase"),
        ({"writes": ["write", "rows"], "neither": ["name", "rows"]}, "in two tables: rows"),
        ({"writes": ["write"], "neither": ["name", "rows"]}, None),
    ],
)
def test_a_way_is_in_one_table(tables: dict[str, list[str]], words: str | None) -> None:
    """SHIM-51"""
    if words is None:
        check_inventory(public_ways([Client]), tables)
        return
    with pytest.raises(AssertionError, match=words):
        check_inventory(public_ways([Client]), tables)
