"""What the copies of one wrapped client share for one bucket: the store, the server, how it writes and reads."""

from __future__ import annotations

from antipode import Lineage, Ordered, Store
from antipode.shim import Server, StoreOptions, WrappedClient, logs

from antipode_s3.chains import Chains
from antipode_s3.probe import Facts, shortcomings
from antipode_s3.shim import S3Shim
from antipode_s3.targets import Target


class Binding(WrappedClient):
    """One wrapped client's tie to its store, for one bucket."""

    def __init__(self, store: Store, target: Target, server: Server, options: StoreOptions, facts: Facts) -> None:
        super().__init__(store, options)
        self.target = target
        self.server = server
        self.facts = facts
        self.rests = options.rest == "native"
        self.chains = Chains()

    @property
    def shim(self) -> S3Shim:
        """The store's shim."""
        shim = self.store.shim
        assert isinstance(shim, S3Shim)
        return shim

    @property
    def is_versioned(self) -> bool:
        """Return whether the bucket is known to keep what is overwritten or deleted."""
        facts = self.facts
        return facts.reached and not facts.unfit and "s3:GetBucketVersioning" not in facts.refused

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
