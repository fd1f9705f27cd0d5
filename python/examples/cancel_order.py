"""The paper's asynchronous task (section 7, TrainTicket): a cancelled order, and the refund that comes later.

    python python/examples/cancel_order.py

prints

    without a branch: 5 of 5 customers saw a cancelled order and no refund
    with a branch:    0 of 5 customers saw a cancelled order and no refund

Cancelling an order marks it and hands the refund to a task. The answer may overtake the refund, a write that no lineage
holds yet. `branch()` announces it, the task's `close()` says what it wrote, and a barrier before the answer waits.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import antipode
import antipode.memory

REQUESTS = 5

orders = antipode.memory.Store("orders", regions=["a", "b"], lag=0.005)
payments = antipode.memory.Store("payments", regions=["a", "b"], lag=0.005)
orders_a, orders_b = orders.client("a"), orders.client("b")
payments_a, payments_b = payments.client("a"), payments.client("b")
jobs: queue.Queue[tuple[str, str] | None] = queue.Queue()
worker_is_free = threading.Event()


# The service of orders


def cancel(order: str, *, announce: bool) -> None:
    """Returns when the customer may be answered."""
    with antipode.scope():
        orders_a.set(order, "cancelled")
        with antipode.branch(within=30) if announce else nullcontext():
            jobs.put((order, antipode.serialize()))  # as a queue's shim does, in a header
        if announce:
            antipode.barrier(timeout=10)


# The task


def refund() -> None:
    """One message at a time."""
    while (job := jobs.get()) is not None:
        order, lineage = job
        worker_is_free.wait(10)
        with antipode.message_scope(lineage):
            payments_a.set(order, "refunded")
            antipode.close()
        jobs.task_done()


@contextmanager
def worker() -> Iterator[None]:
    thread = threading.Thread(target=refund)
    thread.start()
    try:
        yield
    finally:
        jobs.put(None)
        thread.join(10)


# The customer, in region b


def saw_no_refund(*, announce: bool) -> int:
    """Runs the requests; how many customers see a cancelled order and no refund."""
    missing = 0
    for number in range(REQUESTS):
        order = f"{'with' if announce else 'without'}-{number}"
        worker_is_free.clear()  # busy with the orders of others just now
        later = threading.Timer(0.05 if announce else 10, worker_is_free.set)
        later.start()
        cancel(order, announce=announce)
        missing += payments_b.get(order) is None
        later.cancel()
        worker_is_free.set()
        jobs.join()
    return missing


def main() -> None:
    antipode.configure(branches=orders_a)
    with worker():
        for words, announce in (("without a branch:", False), ("with a branch:   ", True)):
            missing = saw_no_refund(announce=announce)
            print(words, missing, "of", REQUESTS, "customers saw a cancelled order and no refund")


if __name__ == "__main__":
    main()
