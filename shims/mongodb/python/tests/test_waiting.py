"""What waiting costs: few questions, however many wait, and a wake-up soon after the document is there (BAR-38)."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import antipode
from antipode import Verdict
from antipode._facade.configuration import configure
from antipode.shim import stores
from mongodb_regions import DATABASE, STORE, Posts

COUNT: Final = int(os.environ.get("ANTIPODE_TEST_COUNT", "40"))
"""Of each operation that is timed; more of them by hand, for figures."""


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


def test_what_a_write_costs_beside_a_plain_one(posts: Posts, name: str) -> None:
    """SHIM-7: by turns, so that whatever else the machine does falls on both. The figures are printed."""
    plain, wrapped = posts.plain["a"][DATABASE]["costs"], posts.wrapped["a"][DATABASE]["costs"]
    body = "x" * 200
    operations: dict[str, Callable[[Any, str], Any]] = {
        "insert_one, a name of the client's": lambda c, _: c.insert_one({"body": body}),
        "insert_one, a name of the application's": lambda c, n: c.insert_one({"_id": n, "body": body}),
        "update_one": lambda c, n: c.update_one({"_id": n}, {"$set": {"body": body + n}}),
        "replace_one": lambda c, n: c.replace_one({"_id": n}, {"body": n + body}),
        "update_many": lambda c, n: c.update_many({"_id": n}, {"$set": {"more": n}}),
        "find_one": lambda c, n: c.find_one({"_id": n}),
        "delete_one": lambda c, n: c.delete_one({"_id": n}),
    }
    ratios = {}
    for what, operation in operations.items():
        took: dict[str, list[float]] = {"plain": [], "wrapped": []}
        for number in range(COUNT):
            for kind, collection in (("plain", plain), ("wrapped", wrapped)):
                with antipode.scope():
                    began = time.perf_counter()
                    operation(collection, f"{name}-{kind}-{number}")
                    took[kind].append(time.perf_counter() - began)
        one, other = (statistics.median(took[kind]) * 1000 for kind in ("plain", "wrapped"))
        ratios[what] = other / one
        print(f"{what}: plain {one:.2f} ms, wrapped {other:.2f} ms, {other / one:.2f} times")
    assert ratios["insert_one, a name of the client's"] < 3
    assert ratios["find_one"] < 3
