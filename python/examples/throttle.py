"""A lagging replica sheds nobody: a request that a barrier holds up gives its permit back.

    python python/examples/throttle.py

prints

    a throttle that knows barriers: 20 of 20 requests answered
    one that does not:              4 of 20 requests answered

Twenty requests at once may run four at a time, and queue for a tenth of a second at most. Each waits for a replica.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import antipode
import antipode.memory
from antipode.throttle import FixedLimit, Throttle, Throttled

REQUESTS = 20
PATIENCE_S = 60.0
POSTS = antipode.memory.Store("posts", regions=["a", "b"])


def answered(limits: Throttle) -> int:
    """Return how many of the requests are answered, when the replica has caught up."""
    reader = POSTS.client("b")
    POSTS.freeze("b")
    with antipode.scope() as writer:
        POSTS.client("a").set("post", "hello")
        lineage = writer.lineage
    ended = threading.Semaphore(0)
    arrived = threading.Barrier(REQUESTS)

    def request() -> bool:
        arrived.wait(PATIENCE_S)
        try:
            with limits.permit():
                ended.release()
                antipode.barrier(lineage, timeout=PATIENCE_S)
                return reader.get("post") == b"hello"
        except Throttled:
            ended.release()
            return False

    with ThreadPoolExecutor(REQUESTS) as pool:
        requests = [pool.submit(request) for _ in range(REQUESTS)]
        for _ in range(REQUESTS):
            ended.acquire(timeout=PATIENCE_S)  # each has a permit, or was refused
        POSTS.heal("b")
        return sum(each.result(PATIENCE_S) for each in requests)


def main() -> None:
    """Run both."""
    knows = answered(Throttle("orders", limit=FixedLimit(4), max_wait=PATIENCE_S))
    print(f"a throttle that knows barriers: {knows} of {REQUESTS} requests answered")
    does_not = answered(Throttle("orders", limit=FixedLimit(4), max_wait=0.1, max_parked=0))
    print(f"one that does not:              {does_not} of {REQUESTS} requests answered")


if __name__ == "__main__":
    main()
