"""What the copies of one wrapped client share: the store, the options, and how writes and reads are treated."""

from __future__ import annotations

import re

from antipode import Store
from antipode.shim import StoreOptions, WrappedClient, logs

from antipode_postgresql.statements import Kind, classify


class Binding(WrappedClient):
    """One wrapped client's tie to its store."""

    def __init__(self, store: Store, options: StoreOptions, *, async_commits: str) -> None:
        super().__init__(store, options)
        self.async_commits = async_commits
        """What becomes of a commit with synchronous_commit=off: `flush` (a small commit behind it) or `incomplete`."""
        self.unfit = ""
        """Why positions of this client prove nothing; empty where they do."""
        self.unsure: re.Pattern[bytes] | None = None
        """What makes a text unsure that looks like a read (SHIM-43); None where nothing does."""
        self.rests = options.rest == "native"

    def kind_of(self, text: bytes) -> Kind:
        """Return what a statement may do, by its text and by what its database has."""
        kind = classify(text)
        if kind is Kind.READ and self.unsure is not None and self.unsure.search(text):
            return Kind.MAYBE
        return kind

    def say(self, kind: str, words: str, *, code: str) -> None:
        """Log one line a minute, with its message code (OBS-14)."""
        logs.warn(f"{kind} {self.store.name}", words, code=code)
