"""What waiting costs: few questions, however many wait, and a wake-up soon after the document is there (BAR-38)."""

from __future__ import annotations

import statistics
import threading
import time

import antipode
from antipode import Verdict
from antipode.settings import configure
from antipode.shim import stores
from mongodb_regions import DATABASE, STORE, Posts


def _asked(posts: Posts, server: str) -> int:
    [found] = [each for each in stores() if each.name == STORE]
    [one] = [each for each in found.servers() if f":{posts.lab.server(server).port}" in each.address]
    session = one.session
    return 0 if session is None else int(session.asked)


def test_many_barriers_ask_as_often_as_one(posts: Posts, name: str) -> None:
    """BAR-38: one poller a server."""
    with antipode.scope() as scope:
        posts.posts.insert_one({"_id": name})
    assert posts.verdict(scope.lineage) is Verdict.VISIBLE
    posts.lab.partition("b1")
    with antipode.scope() as scope:
        posts.posts.update_one({"_id": name}, {"$set": {"v": 2}})
    rates = {}
    for count in (1, 100):
        before, began = _asked(posts, "b1"), time.monotonic()
        threads = [threading.Thread(target=posts.verdict, args=(scope.lineage, 2.0)) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rates[count] = (_asked(posts, "b1") - before) / (time.monotonic() - began)
    print("questions a second:", rates)
    assert rates[100] < 2 * rates[1] + 40


def test_a_barrier_wakes_up_soon_after_the_document_is_there(posts: Posts, name: str) -> None:
    """BAR-38: within a few poll intervals on a loaded machine."""
    configure(timeout=20.0)
    late = []
    there = posts.plain["b2"][DATABASE]["posts"]
    posts.lab.lag("b2", "80ms")
    for number in range(20):
        document = {"_id": f"{name}-{number}"}
        seen: list[float] = []

        def watch(document: dict[str, str] = document, seen: list[float] = seen) -> None:
            while there.find_one(document) is None:
                time.sleep(0.0005)
            seen.append(time.monotonic())

        with antipode.scope() as scope:
            posts.posts.insert_one(dict(document))
            watcher = threading.Thread(target=watch)
            watcher.start()
            assert posts.verdict(scope.lineage) is Verdict.VISIBLE
            passed = time.monotonic()
            watcher.join()
            late.append(passed - seen[0])
    late.sort()
    print(f"wake-up: p50 {statistics.median(late) * 1000:.1f} ms, at most {late[-1] * 1000:.1f} ms")
    assert statistics.median(late) < 0.3
