"""What a bucket proves of a write, and how often it is asked (SHIM-15, SHIM-30)."""

from __future__ import annotations

import threading
import time
from typing import Any

import antipode
import antipode_s3
import pytest
from antipode import Lineage, Opaque, Ordered, Verdict, WriteId
from antipode._store.hybrid_clock import HybridClock
from antipode._store.store import registry
from antipode_lab.stores.s3 import S3Store
from antipode_s3.judging import Bucket, Look
from antipode_s3.session import Session
from botocore.exceptions import ReadTimeoutError
from s3_regions import BUCKET, STORE, Images, new_key, until


def session(images: Images) -> Session:
    """The engine's session with region B's bucket, once somebody has waited there."""
    [server] = registry().need(STORE).servers()
    found = server.session
    assert isinstance(found, Session)
    return found


def behind(seconds: float) -> HybridClock:
    """The clock of a writer whose machine's time is wrong."""
    return HybridClock(time_ns=lambda: time.time_ns() - round(seconds * 1e9))


def test_a_loser_with_the_greater_counter_is_superseded(images: Images) -> None:
    """The store's order is its own: a writer whose clock is behind overwrites with a lesser counter."""
    key = new_key()
    images.lab.partition("b1", mode="silent")
    first = images.put(key, b"1")
    images.shim.clock = behind(20)
    second = images.put(key, b"2")
    assert not second >= first
    assert not images.judge(first, 0.3).satisfied
    images.lab.heal(wait=False)
    assert images.judge(first).satisfied
    assert images.judge(first | second).satisfied
    until(lambda: images.body(key) == b"2")
    assert images.judge(first).satisfied, "superseded: it is not what readers get, and never will be"
    assert images.judge(second).satisfied


def test_a_greater_version_that_came_before_proves_nothing(images: Images) -> None:
    """SHIM-52: the first writer's clock is ahead, and the store's order is its own. A client of its own: one process's
    counters grow, so what one client writes is a chain."""
    key = new_key()
    images.shim.clock = behind(-20)
    assert images.judge(images.put(key, b"1")).satisfied
    images.shim.clock = HybridClock()
    images.a = antipode_s3.wrap(images.plain_a, STORE, bucket=BUCKET, replicas=[images.lab.replica_url("b1")])
    images.lab.partition("b1", mode="silent")
    second = images.put(key, b"2")
    assert (images.body(key, "a"), images.body(key)) == (b"2", b"1")
    assert images.verdict(second, 0.7) is Verdict.TIMED_OUT
    images.lab.heal(wait=False)
    assert images.judge(second).satisfied
    assert images.body(key) == b"2"


def test_an_upload_that_another_scope_overtook_is_not_proved_by_it(images: Images) -> None:
    """SHIM-52: its counter is that of its creation, and the store puts it behind what came meanwhile."""
    key = new_key()
    with antipode.scope() as opened:
        upload = images.a.create_multipart_upload(Bucket=BUCKET, Key=key)
        place = {"Bucket": BUCKET, "Key": key, "UploadId": upload["UploadId"]}
        part = images.a.upload_part(**place, PartNumber=1, Body=b"of parts")
        assert images.judge(images.put(key, b"meanwhile")).satisfied
        images.lab.partition("b1", mode="silent")
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        images.a.complete_multipart_upload(**place, MultipartUpload=parts)
        lineage = opened.lineage
    assert images.body(key) == b"meanwhile"
    assert images.verdict(lineage, 0.7) is Verdict.TIMED_OUT
    images.lab.heal(wait=False)
    assert images.judge(lineage).satisfied
    assert images.body(key) == b"of parts"


def test_a_version_that_is_greater_by_more_than_any_upload_takes_supersedes(images: Images) -> None:
    """SHIM-52: whatever the bucket keeps of what was there before."""
    key = new_key()
    gone = Lineage([WriteId(STORE, key, Ordered("", images.shim.clock.next()))])
    images.shim.clock = behind(-8 * 86400)
    assert images.judge(images.put(key)).satisfied
    assert images.judge(gone).satisfied


def test_an_upload_of_many_days_is_waited_for_by_its_version_id(images: Images) -> None:
    """SHIM-52: a greater version of seven days later may have come before its completion."""
    key = new_key()
    images.shim.clock = behind(6.5 * 86400)
    with antipode.scope() as opened:
        upload = images.a.create_multipart_upload(Bucket=BUCKET, Key=key)
        place = {"Bucket": BUCKET, "Key": key, "UploadId": upload["UploadId"]}
        part = images.a.upload_part(**place, PartNumber=1, Body=b"of parts")
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        answer = images.a.complete_multipart_upload(**place, MultipartUpload=parts)
        lineage = opened.lineage
    assert [each.version for each in lineage.of_store(STORE)] == [Opaque(answer["VersionId"])]
    assert images.judge(lineage).satisfied


def test_a_new_current_version_is_soon_looked_behind_again() -> None:
    """SHIM-30: what is waited for may come right behind it."""
    look = Look()
    for _ in range(9):
        look.done("first")
    look.done("second")
    assert look.due - time.monotonic() <= 0.2


def test_a_lesser_version_proves_nothing(images: Images) -> None:
    """The same, where the greater one never arrived: an older version is no proof, however often it is looked at."""
    key = new_key()
    old = images.put(key, b"1")
    assert images.judge(old).satisfied
    counter = images.shim.clock.next()
    never = Lineage([WriteId(STORE, key, Ordered("", counter))])
    assert images.verdict(never, 0.7) is Verdict.TIMED_OUT
    images.a.delete_object(Bucket=BUCKET, Key=key)
    until(lambda: images.body(key) is None)
    assert images.verdict(never, 0.7) is Verdict.TIMED_OUT
    assert images.judge(old).satisfied, "it was deleted after it was there"


def test_a_plain_deletion_supersedes(images: Images) -> None:
    key = new_key()
    written = images.put(key)
    images.plain_a.delete_object(Bucket=BUCKET, Key=key)
    assert images.judge(written).satisfied
    until(lambda: images.body(key) is None)
    assert images.judge(written).satisfied


def test_keys_that_begin_alike_are_told_apart(images: Images) -> None:
    key = new_key()
    longer = images.put(key + "/more")
    assert images.judge(longer).satisfied
    counter = next(w.version.counter for w in longer.of_store(STORE) if isinstance(w.version, Ordered))
    images.plain_a.put_object(Bucket=BUCKET, Key=key, Body=b"plain")
    until(lambda: images.body(key) == b"plain")
    assert not images.judge(Lineage([WriteId(STORE, key, Ordered("", counter))]), 0.3).satisfied


def test_keys_of_every_kind(images: Images) -> None:
    for key in ("a b+c&d=e?f#g%41", "été/ünï", "~._-!*'()", "x/" * 40 + "x", "k" * 200):
        with antipode.scope() as opened:
            images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
            images.a.put_object(Bucket=BUCKET, Key=key, Body=b"w")
            assert images.judge(Lineage.deserialize(opened.lineage.serialize())).satisfied, key
            images.a.delete_object(Bucket=BUCKET, Key=key)
            assert images.judge(Lineage.deserialize(opened.lineage.serialize())).satisfied, key


@pytest.mark.parametrize(
    ("write_id", "words"),
    [
        (WriteId.position(STORE, "e", 1), "no positions"),
        (WriteId(STORE, "k", Ordered("E-1", 1)), "no epochs"),
        (WriteId(STORE, "é" * 400, Ordered("", 1)), "hash"),
        (WriteId(STORE, b"\0h-" + b"0" * 32, Ordered("", 1)), "hash"),
    ],
)
def test_what_cannot_be_asked_for_is_unproven(images: Images, write_id: WriteId, words: str) -> None:
    lineage = Lineage.deserialize(Lineage([write_id]).serialize())
    result = images.judge(lineage, 20).stores[STORE]
    assert result.verdict is Verdict.UNPROVEN
    assert words in result.reason


def test_a_version_id_of_another_kind_of_store_never_passes(images: Images) -> None:
    key = new_key()
    assert images.judge(images.put(key)).satisfied
    for mark in ("3sL4kqtJlcpXroDTDmJ", "null", "00000000-0000-4000-8000-000000000000"):
        assert not images.judge(Lineage([WriteId(STORE, key, Opaque(mark))]), 0.3).satisfied


def test_a_bucket_that_asks_the_other_side_answers_for_itself(lab_of_two: S3Store) -> None:
    """MinIO with rules in both directions serves what it lacks from the other region: that is not its own."""
    lab_of_two.send_back("b1")
    images = Images(lab_of_two)
    lab_of_two.partition("b1", mode="silent")  # what A sends is held; what B asks goes by another link
    lab_of_two.lag("a", "0ms")
    key = new_key()
    lineage = images.put(key)
    assert not images.judge(lineage, 1.0).satisfied
    lab_of_two.heal(wait=False)
    assert images.judge(lineage).satisfied
    with antipode.scope() as opened:
        images.b.put_object(Bucket=BUCKET, Key=key, Body=b"of B")
        images.b.delete_object(Bucket=BUCKET, Key=key)
        back = opened.lineage
    until(lambda: images.body(key, "a") is None)
    antipode_s3.register("of-a", replicas=[lab_of_two.replica_url("a")])
    renamed = Lineage(WriteId("of-a", w.key, w.version) for w in back.of_store(STORE))
    assert antipode.barrier(renamed, timeout=30, stores=["of-a"]).satisfied


@pytest.fixture
def lab_of_two(lab_factory: Any) -> S3Store:
    """A lab for this test alone."""
    return lab_factory("s3", lag="5ms").get(S3Store)  # type: ignore[no-any-return]


# Unknown outcomes, through a proxy before region A


class Proxied:
    """A wrapped client of region A behind a Toxiproxy of its own."""

    def __init__(self, images: Images, *, attempts: int, name: str) -> None:
        self.toxiproxy = images.lab.context.toxiproxy
        self.name = name
        port = self.toxiproxy.create(name, images.lab.server("a").port)
        plain = images.lab.new_client("a", port=port, timeout=1.0, attempts=attempts)
        self.client: Any = antipode_s3.wrap(plain, STORE, bucket=BUCKET)
        self.sent = 0

    def hold_answers(self, attempts: int = 1) -> None:
        """Requests arrive, and their answers do not, until the client has tried so often."""
        self.toxiproxy.hold_answers(self.name)

        def count(**_: Any) -> None:
            self.sent += 1
            if self.sent == attempts + 1:
                self.toxiproxy.set_lag(self.name, 0)

        self.client.meta.events.register("before-send.s3", count)


def test_an_answer_that_never_comes_leaves_the_write_pending(images: Images) -> None:
    proxied = Proxied(images, attempts=1, name=f"unanswered-{time.time_ns()}")
    key = new_key()
    proxied.hold_answers()
    with antipode.scope() as opened:
        with pytest.raises(ReadTimeoutError):
            proxied.client.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        [pending] = opened.pending
        assert pending.unknown
        assert Lineage.deserialize(antipode.serialize()).incomplete == {STORE}
    until(lambda: images.body(key) == b"v")  # it happened all the same


def test_a_write_that_botocore_sends_again_has_one_version(images: Images) -> None:
    """The first answer is lost, the second comes: two versions with one counter, and either proves it."""
    proxied = Proxied(images, attempts=6, name=f"again-{time.time_ns()}")
    key = new_key()
    proxied.hold_answers()
    with antipode.scope() as opened:
        proxied.client.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        assert not opened.pending
        lineage = opened.lineage
    assert proxied.sent >= 2
    assert len(lineage) == 1
    assert images.judge(lineage).satisfied
    assert images.body(key) == b"v"


def test_a_refusal_after_a_lost_answer_is_no_refusal(images: Images) -> None:
    """If-None-Match is refused the second time, because the first time succeeded."""
    proxied = Proxied(images, attempts=6, name=f"refused-{time.time_ns()}")
    key = new_key()
    proxied.hold_answers()
    with antipode.scope() as opened:
        with pytest.raises(Exception, match="PreconditionFailed"):
            proxied.client.put_object(Bucket=BUCKET, Key=key, Body=b"v", IfNoneMatch="*")
        assert [write.unknown for write in opened.pending] == [True]


# How often it is asked


def test_a_crowd_on_one_object_asks_as_one_does(images: Images) -> None:
    """Requests are bounded a process, not a waiter (BAR-38)."""
    key = new_key()
    assert images.judge(images.put(new_key())).satisfied
    bucket: Bucket = session(images).bucket
    images.lab.partition("b1", mode="silent")
    lineage = images.put(key)
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(images.judge(lineage).satisfied)) for _ in range(100)]
    for thread in threads:
        thread.start()
    until(lambda: registry().need(STORE).parked_threads == 100)
    before, began = bucket.requests, time.monotonic()
    until(lambda: bucket.requests > before + 20)
    assert (bucket.requests - before) / (time.monotonic() - began) < 150, "questions a second"
    images.lab.heal(wait=False)
    for thread in threads:
        thread.join(60)
    assert results == [True] * 100


def test_many_objects_share_a_bounded_rate(images: Images) -> None:
    assert images.judge(images.put(new_key())).satisfied
    bucket: Bucket = session(images).bucket
    ids = [WriteId(STORE, new_key("never"), Ordered("", images.shim.clock.next())) for _ in range(300)]
    before, began = bucket.requests, time.monotonic()
    assert not images.judge(Lineage(ids), 2.0).satisfied
    assert (bucket.requests - before) / (time.monotonic() - began) < 500
    written = images.put(new_key())
    assert images.judge(written).satisfied
