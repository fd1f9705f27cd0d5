"""What the copies of one wrapped client share: the store, the options, and how writes and reads are treated."""

from __future__ import annotations

import re

from antipode import logs
from antipode.otel_context import current_context
from antipode.reading import reading_in
from antipode.settings import Mode, settings, settings_generation, timeout_of
from antipode.store import Store, StoreOptions

from antipode_postgresql.statements import Kind, classify


class Binding:
    """One wrapped client's tie to its store."""

    def __init__(self, store: Store, options: StoreOptions, *, async_commits: str) -> None:
        self.store = store
        self.options = options
        self.async_commits = async_commits
        """What becomes of a commit with synchronous_commit=off: `flush` (a small commit behind it) or `incomplete`."""
        self.unfit = ""
        """Why positions of this client prove nothing; empty where they do."""
        self.unsure: re.Pattern[bytes] | None = None
        """What makes a text unsure that looks like a read (SHIM-43); None where nothing does."""
        self._generation = -1
        self.records = True
        self.merges = False
        self.waits = False
        self.follows = False
        self.notes = False
        self._plainly = True
        self.rests = options.rest == "native"

    def refresh(self) -> None:
        """Takes the settings in force, if they have changed; called before every statement."""
        generation = settings_generation()
        if generation != self._generation:
            mode = self.store.mode
            self.records = mode is not Mode.OFF
            self.merges = settings().auto_merge and self.records
            self.waits = self.options.wait_on_read and mode is Mode.ENFORCE
            self.follows = mode is Mode.DRY_RUN
            self.notes = bool(settings().history) and self.records
            self._plainly = not (self.merges or self.waits or self.follows or self.notes)
            self._generation = generation

    def reads_plainly(self) -> bool:
        """Whether a read has nothing to do but to read: neither waits nor says to anybody what it depends on."""
        if settings_generation() != self._generation:
            self.refresh()
        return self._plainly and reading_in(current_context()) is None

    @property
    def timeout(self) -> float:
        """How long a read of this client waits, in seconds."""
        return timeout_of(self.store.name, self.options.timeout)

    def kind_of(self, text: bytes) -> Kind:
        """Return what a statement may do, by its text and by what its database has."""
        kind = classify(text)
        if kind is Kind.READ and self.unsure is not None and self.unsure.search(text):
            return Kind.MAYBE
        return kind

    def say(self, kind: str, words: str, *, code: str) -> None:
        """Log one line a minute, with its message code (OBS-14)."""
        logs.warn(f"{kind} {self.store.name}", words, code=code)
