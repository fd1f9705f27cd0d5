"""The canonical octets of an item's key: `table/Tvalue`, or `table/Tvalue/Tvalue` with a sort key (spec SHIM-21).

T is the type, `S`, `N` or `B`. A string is its UTF-8 octets, a number its shortest decimal form without exponent, a
binary its octets; `/` and `%` in a value are `%2F` and `%25`. The same in every language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from antipode.shim import is_hashed


def key_octets(table: str, names: Sequence[str], attributes: Mapping[str, Any]) -> bytes:
    """The octets of the key that is among these attributes.

    Raises KeyError where it is not, ValueError where it is no key.
    """
    return b"/".join([table.encode(), *(_spell(attributes[name]) for name in names)])


def _spell(value: Any) -> bytes:
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(f"no key: {value!r}")
    kind: str
    inner: Any
    ((kind, inner),) = value.items()
    if kind == "N":
        octets = canonical_number(str(inner)).encode()
    elif kind == "S":
        octets = str(inner).encode("utf-8", "surrogatepass")
    elif kind == "B":
        octets = inner.encode() if isinstance(inner, str) else bytes(getattr(inner, "value", inner))
    else:
        raise ValueError(f"no key: a value of type {kind}")
    return kind.encode() + octets.replace(b"%", b"%25").replace(b"/", b"%2F")


def canonical_number(text: str) -> str:
    """A number's shortest decimal form without exponent; raises ValueError for what is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"no number: {text!r}") from None
    if not number.is_finite():
        raise ValueError(f"no number: {text!r}")
    plain = f"{number:f}"
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return "0" if plain in {"-0", ""} else plain


def parse_key(octets: bytes) -> tuple[str, list[dict[str, Any]]] | None:
    """The table and the values of a key, in the order of its schema; None for what is no key in our form."""
    if is_hashed(octets):
        return None
    table, *parts = octets.split(b"/")
    values: list[dict[str, Any]] = []
    for part in parts:
        kind, value = part[:1], part[1:].replace(b"%2F", b"/").replace(b"%25", b"%")
        try:
            if kind == b"B":
                values.append({"B": value})
            elif kind in (b"S", b"N"):
                values.append({kind.decode(): value.decode("utf-8", "surrogatepass")})
            else:
                return None
        except UnicodeDecodeError:
            return None
    if not table or not 1 <= len(values) <= 2:
        return None
    return table.decode("ascii", "replace"), values
