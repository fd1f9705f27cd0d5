"""SNS and SQS as the conformance kit drives them: tracked messages from region A, and a tap in each of two others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import antipode_sns_sqs
import boto3
from antipode.shim import Shim
from antipode_lab.stores.sns import ACCESS_KEY, SnsStore
from antipode_lab.under_test import LabLinks
from botocore.config import Config
from sns_regions import LAGS, Link, Regions

NO_FAILOVER = "a queue belongs to its region: none takes another's place"
NO_TRANSACTIONS = "SNS and SQS have no transactions"
FORGETS = "moto keeps queues in memory, and has lost them when it starts again; test_taps.py asks what is said then"


class SnsUnderTest(LabLinks):
    """Servers: the topic's region A, and two regions with a queue and a tap each."""

    shim: ClassVar[type[Shim]] = antipode_sns_sqs.SnsSqsShim
    exceptions: ClassVar[Mapping[str, str]] = {
        "promotion": NO_FAILOVER,
        "promotion_with_lost_writes": NO_FAILOVER,
        "second_promotion": NO_FAILOVER,
        "parked_across_a_promotion": NO_FAILOVER,
        "repointed_replica": NO_FAILOVER,
        "restarted_replica": FORGETS,
        "restarted_primary": FORGETS,
        "open_transaction": NO_TRANSACTIONS,
        "transaction_over_two_scopes": NO_TRANSACTIONS,
        "transaction_only_read_so_far": NO_TRANSACTIONS,
        "rolled_back_transaction": NO_TRANSACTIONS,
        "barrier_in_a_transaction": NO_TRANSACTIONS,
        "commit_inside_a_transaction": NO_TRANSACTIONS,
    }
    lags: ClassVar[Mapping[str, int]] = LAGS
    patience = 40.0
    rights_cure = "sqs:ReceiveMessage"
    unfit_cure = "is no tap"

    def __init__(self, lab: SnsStore) -> None:
        self.lab = lab
        self._prepare()

    def _prepare(self) -> None:
        self.regions = Regions(self.lab)
        self._consumed = self.regions.queue("b")
        self._taps = {name: self.regions.tap(name) for name in self.lags}
        self._names = {name: text.rpartition("/")[2].partition("?")[0] for name, text in self._taps.items()}

    def close(self) -> None:
        """Deletes the topic and the queues."""
        self.regions.close()

    def begin(self) -> None:
        antipode_sns_sqs.register(self.name, tap=list(self._taps.values()))
        self._topics = antipode_sns_sqs.wrap(self.regions.sns(), store=self.name, track=True)

    def recover(self, *, spoiled: bool) -> None:
        for name, lag in self.lags.items():
            self.lab.lag(name, f"{lag}ms")
        self.lab.heal()
        if spoiled:  # a server was restarted, and has forgotten all
            self._prepare()

    @property
    def primary(self) -> str:
        return "a"

    @property
    def replicas(self) -> Sequence[str]:
        return list(self.lags)

    # Messages

    def write(self, key: str, value: str) -> None:
        self._topics.publish(TopicArn=self.regions.topic, Message=f"{key}={value}")

    def look(self, key: str, at: str) -> str | None:
        """What the region's server says of the tap. (Other queues get the same message for themselves, a little earlier
        or later.)"""
        found = [body for body in self.lab.arrived(at, self._names[at]) if body.startswith(f"{key}=")]
        return found[-1].partition("=")[2] if found else None

    # Troubles

    def _client(self, service: str, region: str, port: int, **more: Any) -> Any:
        return boto3.session.Session().client(
            service,
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name=self.lab.region(region),
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=ACCESS_KEY,
            config=Config(retries={"total_max_attempts": 1}, **more),
        )

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        link = Link(self.lab, "a")
        client = antipode_sns_sqs.wrap(
            self._client("sns", "a", link.port, read_timeout=0.5), store=self.name, track=True
        )
        link.silence()
        try:
            client.publish(TopicArn=self.regions.topic, Message=f"{key}={value}")
        finally:
            link.cut()

    def write_refused(self, key: str) -> None:
        self._topics.publish(TopicArn=f"{self.regions.topic}-none", Message=key)

    def write_without_rights(self, key: str, value: str) -> None:
        with self.regions.denied("b") as text:
            antipode_sns_sqs.register(self.name, tap=text(self._taps["b"]))

    def wrap_unfit(self) -> None:
        queue = self.regions.text(self._consumed)
        antipode_sns_sqs.register(self.name, tap=queue)
