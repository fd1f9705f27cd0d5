"""What the copies of one wrapped client share for one bucket: the store, the server, how it writes and reads."""

from __future__ import annotations

from antipode import logs
from antipode.lineage import Lineage
from antipode.settings import Mode, settings, settings_generation, timeout_of
from antipode.shim import Server
from antipode.store import Store, StoreOptions
from antipode.writeid import Ordered

from antipode_s3.chains import Chains
from antipode_s3.probe import Facts, shortcomings
from antipode_s3.shim import S3Shim
from antipode_s3.targets import Target


class Binding:
    """One wrapped client's tie to its store, for one bucket."""

    def __init__(self, store: Store, target: Target, server: Server, options: StoreOptions, facts: Facts) -> None:
        self.store = store
        self.target = target
        self.server = server
        self.options = options
        """What this client was wrapped with; other clients of the store may differ."""
        self.facts = facts
        self.rests = options.rest == "native"
        self.chains = Chains()
        self._generation = -1
        self._records = self._merges = self._waits = self._follows = False

    @property
    def shim(self) -> S3Shim:
        """The store's shim."""
        shim = self.store.shim
        assert isinstance(shim, S3Shim)
        return shim

    def _refresh(self) -> None:
        if settings_generation() != self._generation:
            mode = self.store.mode
            self._records = mode is not Mode.OFF
            self._merges = settings().auto_merge and self._records
            self._waits = self.options.wait_on_read and self._records
            self._follows = mode is Mode.DRY_RUN
            self._generation = settings_generation()

    @property
    def records(self) -> bool:
        """Whether writes are recorded at all."""
        self._refresh()
        return self._records

    @property
    def merges(self) -> bool:
        """Whether each read makes the scope depend on what was read."""
        self._refresh()
        return self._merges

    @property
    def waits(self) -> bool:
        """Whether each read first waits for the scope's writes."""
        self._refresh()
        return self._waits

    @property
    def follows(self) -> bool:
        """Whether it is a dry run."""
        self._refresh()
        return self._follows

    @property
    def timeout(self) -> float:
        """How long a read of this client waits, in seconds."""
        return timeout_of(self.store.name, self.options.timeout)

    def next_counter(self, key: bytes, lineage: Lineage) -> tuple[int, bool]:
        """The version of the next write of a key (SHIM-26)."""
        return self.shim.next_counter(key, lineage)

    def observe(self, version: Ordered | None) -> None:
        """A version was seen: the ones that this process gives are greater."""
        if version is not None:
            self.shim.clock.observe(version.counter)

    def warn_before_writing(self) -> None:
        """Says, at most once a minute, what keeps the writes of this client from readers elsewhere."""
        for what, cure in shortcomings(self.facts, self.target.bucket):
            logs.warn(
                f"replication {self.store.name}",
                f"{self.store.name}: {self.target.address}: {what}. {cure}",
                code="AP516",
            )
