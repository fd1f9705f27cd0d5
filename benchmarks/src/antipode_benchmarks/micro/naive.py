"""The naive lineage: a JSON list of write identifiers, which grows with every write (what the prototype carries)."""

from __future__ import annotations

import json
from collections.abc import Sequence

WriteIds = list[list[str]]
"""Write identifiers as `[store, key, version]`, in the order in which they were made, none left out."""


def dump(ids: Sequence[Sequence[str]]) -> str:
    """The list as it travels; without blanks, which is the best that JSON can do."""
    return json.dumps(ids, separators=(",", ":"))


def load(text: str) -> WriteIds:
    """The list that a text holds."""
    ids: WriteIds = json.loads(text)
    return ids
