"""Waiting for tracked messages: taps, and what is said where nothing can be proved (spec SHIM-17)."""

from __future__ import annotations

import time
from typing import Any

import antipode
import antipode_sns_sqs
import pytest
from antipode import ConfigurationError, Lineage, UnfitStoreError
from antipode._model.verdict import Verdict
from antipode.shim.administration import InitRequest, Level
from antipode.testing import isolated
from antipode_lab import Lab
from antipode_lab.stores.sns import SnsStore
from antipode_sns_sqs import SnsSqsShim, scope_of
from sns_regions import Link, Regions

STORE = "notifications"


def published(regions: Regions, message: str = "42", **options: Any) -> Lineage:
    """A tracked message to the test's topic."""
    client = antipode_sns_sqs.wrap(regions.sns(), store=STORE, track=True, **options)
    with antipode.scope() as scope:
        client.publish(TopicArn=regions.topic, Message=message)
        return scope.lineage


def judge(lineage: Lineage, timeout: float = 30.0) -> Any:
    result = antipode.barrier(lineage, timeout=timeout, stores=[STORE], on_timeout="proceed", on_unproven="proceed")
    return result.stores[STORE]


def test_a_barrier_waits_until_the_message_has_arrived(regions: Regions) -> None:
    """SHIM-17."""
    tap = regions.tap()
    antipode_sns_sqs.register(STORE, tap=tap)
    regions.lab.partition("b")
    lineage = published(regions)
    assert judge(lineage, 0.5).verdict is Verdict.TIMED_OUT
    regions.lab.heal(wait=False)
    assert judge(lineage).verdict is Verdict.VISIBLE
    assert judge(lineage, 0.5).verdict is Verdict.VISIBLE, "arrival does not end"


def test_taps_in_two_regions_are_all_waited_for(regions: Regions) -> None:
    antipode_sns_sqs.register(STORE, tap=[regions.tap("b"), regions.tap("c")])
    regions.lab.partition("c")
    lineage = published(regions)
    result = judge(lineage, 1.0)
    assert result.verdict is Verdict.TIMED_OUT
    regions.lab.heal(wait=False)
    assert judge(lineage).verdict is Verdict.VISIBLE


def test_without_a_tap_nothing_is_proved(regions: Regions) -> None:
    """SHIM-17: at once, with the line of code that would help."""
    lineage = published(regions)
    began = time.monotonic()
    result = judge(lineage)
    assert result.verdict is Verdict.UNPROVEN
    assert time.monotonic() - began < 10
    assert "antipode_sns_sqs.register('notifications', tap=…)" in str(result.reason)


def test_what_this_process_received_or_sent_to_a_queue_itself_has_arrived(regions: Regions) -> None:
    queue = regions.queue()
    lineage = published(regions)
    with isolated():  # another process, in B
        client = antipode_sns_sqs.wrap(regions.sqs(), store=STORE)
        with scope_of(regions.receive(client, queue)) as scope:
            assert scope.lineage == lineage
            assert judge(lineage).verdict is Verdict.VISIBLE
    with isolated():
        client = antipode_sns_sqs.wrap(regions.sqs(), store=STORE, track=True)
        with antipode.scope() as scope:
            client.send_message(QueueUrl=queue, MessageBody="42")
            assert judge(scope.lineage).verdict is Verdict.VISIBLE


def test_a_message_proves_itself_alone(regions: Regions) -> None:
    """PROP-29: a later message, whose lineage speaks of an earlier one, says nothing of the earlier one's arrival."""
    tap = regions.tap()
    antipode_sns_sqs.register(STORE, tap=tap)
    other = regions.new_topic()
    client = antipode_sns_sqs.wrap(regions.sns(), store=STORE, track=True)
    with antipode.scope() as scope:
        client.publish(TopicArn=other, Message="does not come to the tap")
        first = scope.lineage
        client.publish(TopicArn=regions.topic, Message="comes")
        (second,) = [each for each in scope.lineage.of_store(STORE) if each not in list(first.of_store(STORE))]
    assert judge(Lineage([second])).verdict is Verdict.VISIBLE
    assert judge(first, 0.5).verdict is Verdict.TIMED_OUT


def test_a_queue_with_consumers_is_never_read_as_a_tap(regions: Regions) -> None:
    """SHIM-3."""
    queue = regions.queue()
    regions.sns().publish(TopicArn=regions.topic, Message="42")
    with pytest.raises(UnfitStoreError, match="is no tap"):
        antipode_sns_sqs.register(STORE, tap=regions.text(queue))
    antipode_sns_sqs.register(STORE, tap=regions.text(queue), on_unfit="unproven")
    assert judge(published(regions)).verdict is Verdict.UNPROVEN
    assert {message["Body"] for message in regions.take(queue, count=2)} == {"42"}
    with pytest.raises(ConfigurationError, match="is no tap"):
        antipode_sns_sqs.declare_tap(regions.sns(), regions.sqs(), regions.topic, queue.rpartition("/")[2])


def test_a_tap_that_is_gone_and_comes_back(regions: Regions) -> None:
    """Unproven with SQS's words, until it is declared anew."""
    tap = regions.tap()
    antipode_sns_sqs.register(STORE, tap=tap)
    assert judge(published(regions)).verdict is Verdict.VISIBLE
    url = tap.partition("@")[2].partition("?")[0]
    regions.sqs().delete_queue(QueueUrl=f"http://{url}")
    deadline = time.monotonic() + 40
    while (found := judge(published(regions), 0.5)).verdict is not Verdict.UNPROVEN:
        assert time.monotonic() < deadline
    assert "there is no queue" in str(found.reason)
    antipode_sns_sqs.declare_tap(regions.sns(), regions.sqs(), regions.topic, url.rpartition("/")[2])
    while judge(published(regions), 2.0).verdict is not Verdict.VISIBLE:
        assert time.monotonic() < deadline


def test_a_region_that_falls_silent_is_named(regions: Regions) -> None:
    """BAR-23: it is left out, and the result is not complete."""
    antipode.configure(replica_out_after=1.0)
    link = Link(regions.lab, "b")
    url = regions.tap().partition("@")[2].partition("?")[0]
    antipode_sns_sqs.register(STORE, tap=regions.text(f"http://{url}", port=link.port))
    assert judge(published(regions)).verdict is Verdict.VISIBLE
    link.silence()
    deadline = time.monotonic() + 40
    while (found := judge(published(regions), 3.0)).verdict is Verdict.TIMED_OUT:
        assert time.monotonic() < deadline
    assert found.verdict is Verdict.UNPROVEN
    link.cut()


def test_messages_of_the_time_before_are_found(regions: Regions) -> None:
    """A tap keeps what came before anybody waited."""
    tap = regions.tap()
    lineages = [published(regions, str(number)) for number in range(12)]
    regions.lab.wait_arrived()
    antipode_sns_sqs.register(STORE, tap=tap)
    for lineage in lineages:
        assert judge(lineage).verdict is Verdict.VISIBLE


# For operators


def test_init_makes_what_doctor_misses(regions: Regions) -> None:
    """SHIM-3."""
    text = regions.text(regions.lab.queue_url("b", f"tap-{regions.word}"))
    (missing,) = SnsSqsShim.diagnose(text)
    assert missing.level is Level.UNPROVEN
    assert "declare_tap" in missing.cure
    wanted = InitRequest(STORE, "app", {"topic": regions.topic, "sns_endpoint": regions.lab.url("a")})
    declare, grant = SnsSqsShim.preparations(text, wanted)
    assert declare.run is not None
    assert grant.run is None
    assert "--user-name app" in grant.text
    assert "sqs:ReceiveMessage" in grant.text
    for _ in range(2):  # it may be done again
        assert declare.run() == "declared"
    assert {finding.level for finding in SnsSqsShim.diagnose(text)} == {Level.OK}
    antipode_sns_sqs.register(STORE, tap=text)
    assert judge(published(regions)).verdict is Verdict.VISIBLE


def test_doctor_says_what_is_wrong_with_a_tap(regions: Regions) -> None:
    queue = regions.queue()
    assert "is no tap" in SnsSqsShim.diagnose(regions.text(queue))[0].what
    tap = regions.tap()
    with regions.denied("b") as text:
        (found,) = SnsSqsShim.diagnose(text(tap))
    assert "may not read" in found.what
    assert "sqs:ReceiveMessage" in found.cure
    url = tap.partition("@")[2].partition("?")[0]
    regions.sqs().set_queue_attributes(QueueUrl=f"http://{url}", Attributes={"Policy": ""})
    assert "lets no topic send" in SnsSqsShim.diagnose(tap)[-1].what
    with pytest.raises(ValueError, match="no epochs"):
        SnsSqsShim.settle(tap, "e")


def test_a_region_that_starts_again_with_nothing() -> None:
    """moto forgets its queues: what had arrived stays so where it was seen, and nothing else passes."""
    with Lab("sns", options={"sns": {"queues": {}}}) as whole, isolated():
        lab = whole.get(SnsStore)
        regions = Regions(lab)
        tap = regions.tap()
        antipode_sns_sqs.register(STORE, tap=tap)
        seen = published(regions)
        assert judge(seen).verdict is Verdict.VISIBLE
        lab.restart("b", crash=True)
        deadline = time.monotonic() + 60
        while "there is no queue" not in str((found := judge(published(regions), 0.5)).reason):
            assert found.verdict is not Verdict.VISIBLE
            assert time.monotonic() < deadline
        assert found.verdict is Verdict.UNPROVEN
