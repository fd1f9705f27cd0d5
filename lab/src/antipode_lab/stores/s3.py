"""S3: a MinIO server in each region ("a", "b1", …), with versioned buckets that are replicated from A to B.

The source pushes what was written to it: the link of a replica is the way from its source to it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from antipode_lab.errors import LabError
from antipode_lab.store import verb
from antipode_lab.stores._s3_servers import MC, MINIO, S3Options, S3Servers

LOST_KEY = "antipode-lab/lost/{}"
"""Keys of the objects that ``promote(lose=N)`` writes at the old primary and that never arrive."""


class S3Store(S3Servers):
    """The lab's MinIO servers."""

    @verb
    def promote(self, server: str, lose: int | Callable[[Any], object] | None = None, *, wait: bool = True) -> None:
        """Moves the writes to ``server``: it replicates to the other replicas, and the old primary to nobody.

        Args:
            server: the replica.
            lose: writes to the old primary that never arrive. A number writes so many objects to the first
                bucket; a function writes itself, with a client of the old primary. 0: first waits until the
                replica has everything. None: whatever is on its way arrives or not.
            wait: returns when data flow again.

        S3 has no fail-over of its own: what the old primary did not send lies there still, and arrives if it
        is made a source again. It takes writes until ``repoint`` makes it a replica.
        """
        old = self.primary
        if server == old:
            raise LabError(f"s3 {server} is the primary already")
        if lose == 0 and not callable(lose):
            self.wait_caught_up(server)
        elif lose is not None:
            self.state.details["cuts"][old] = "cut"
            self._apply_all()
            with self.client(old) as client:
                if callable(lose):
                    lose(client)
                else:
                    for index in range(lose):
                        client.put_object(Bucket=self.buckets[0], Key=LOST_KEY.format(index), Body=b"lost")
        if self.running(old):
            self._end_replication(old)
        target = self.server(server)
        target.role, target.source = "primary", None
        self.server(old).role = "old primary"
        for other in [name for name, item in self.servers.items() if item.role == "replica"]:
            self._replicate(server, other)
        if wait:
            self.wait_links()

    @verb
    def send_back(self, server: str) -> None:
        """Has a replica send what is written to it to its source, too: both are written to (active-active).

        MinIO then answers reads of what it lacks by asking the other side.
        """
        source = self.server(server).source
        if source is None:
            raise LabError(f"s3 {server} is no replica")
        self._send(server, source)

    @verb
    def repoint(self, server: str, source: str, *, wait: bool = True) -> None:
        """Makes ``server`` a replica of ``source``: all versions of its buckets are sent to it."""
        if server == source or self.server(source).source == server:
            raise LabError(f"s3 {source} is replicated from {server}: that would be a circle")
        if self.running(server):
            self._end_replication(server)
        self._replicate(source, server)
        if wait:
            self.wait_links()

    @verb
    def restart(self, server: str, source: str | None = None, *, crash: bool = False, wait: bool = True) -> None:
        """Ends a server and starts it again on the same port, with the data on its disk.

        Args:
            server: which.
            source: ``disk`` only.
            crash: SIGKILL, in place of an orderly stop.
            wait: returns when data flow again.
        """
        self.server(server)
        if source not in (None, "disk"):
            raise LabError(f"s3 restarts from 'disk', not {source!r}")
        self.context.supervisor.stop(self.process(server), signal.SIGKILL if crash else signal.SIGTERM)
        self._spawn(server)
        self._wait_answers(server)
        if wait:
            self.wait_links()


STORE = S3Store

__all__ = ["LOST_KEY", "MC", "MINIO", "STORE", "S3Options", "S3Store"]
