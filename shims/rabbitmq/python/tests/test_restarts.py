"""Brokers that crash, come back, or come back empty: longer, on two brokers of their own (`make test-stores`)."""

from __future__ import annotations

import threading
import time
import uuid
from functools import partial

import antipode
import antipode_rabbitmq
import pytest
from antipode import Verdict
from antipode_lab import Lab
from antipode_rabbitmq import Tap, declare_tap
from rabbit_regions import Region, properties, wait_for

pytestmark = pytest.mark.stores
EXCHANGE = "notifications"
QUEUE = "test.arrived"


def judge(lineage: antipode.Lineage, timeout: float) -> tuple[Verdict, float]:
    begun = time.monotonic()
    result = antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    return result.stores["notifications"].verdict, time.monotonic() - begun


def is_visible(lineage: antipode.Lineage) -> bool:
    return judge(lineage, 2)[0] is Verdict.VISIBLE


@pytest.mark.timeout(240)
def test_no_restart_makes_a_barrier_pass_falsely_or_hang() -> None:
    with Lab("rabbitmq", queue_lag="10ms") as lab:
        store = lab.rabbitmq
        b = Region(store, "b")
        tap = Tap(b.url, declare_tap(b.own, EXCHANGE))
        antipode_rabbitmq.register("notifications", tap=tap)
        arrived: set[str] = set()
        sent: dict[str, antipode.Lineage] = {}
        seen_by_us = threading.Event()

        def publish(count: int) -> list[str]:
            """Persistent and confirmed; the truth about arrival is kept by a consumer that knows no lineage."""
            channel = antipode_rabbitmq.wrap(store.connection("a").channel(), store="notifications", track=True)
            channel.confirm_delivery()
            bodies = []
            for _ in range(count):
                body = uuid.uuid4().hex
                with antipode.scope() as scope:
                    channel.basic_publish(EXCHANGE, "", body.encode(), properties(delivery_mode=2))
                    sent[body] = antipode.Lineage(item for item in scope.lineage if item.store == "notifications")
                bodies.append(body)
            channel.connection.close()
            return bodies

        def watch() -> None:
            """Notes what the queue in B gives, through its restarts."""
            while not seen_by_us.is_set():
                try:
                    connection = store.connection("b", connection_attempts=1)
                    channel = connection.channel()
                    channel.queue_declare(QUEUE, durable=True)
                    channel.queue_bind(QUEUE, EXCHANGE)
                    while not seen_by_us.is_set():
                        method, _, body = channel.basic_get(QUEUE, auto_ack=True)
                        if method is None:
                            connection.sleep(0.01)
                        else:
                            arrived.add(body.decode())
                except Exception:
                    time.sleep(0.05)

        b.own.queue_declare(QUEUE, durable=True)
        b.own.queue_bind(QUEUE, EXCHANGE)
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()

        def check(bodies: list[str], *, all_arrive: bool) -> None:
            for body in bodies:
                verdict, took = judge(sent[body], 0.2)
                assert took < 1.5, f"the deadline was 0.2 s, it took {took:.2f} s"
                if verdict is Verdict.VISIBLE:
                    wait_for(f"{body}, which the barrier let pass", partial(arrived.__contains__, body), 20)
            for body in bodies if all_arrive else ():
                wait_for(body, partial(is_visible, sent[body]), 60)

        first = publish(50)
        check(first, all_arrive=True)
        store.restart("b")  # in order first: 3.10 loses a stream that was declared seconds before a crash
        check(publish(50), all_arrive=True)
        store.restart("b", crash=True)
        check(publish(50), all_arrive=True)
        store.partition("b")
        held = publish(20)
        assert {judge(sent[body], 0.05)[0] for body in held} == {Verdict.TIMED_OUT}
        store.restart("a", crash=True, wait=False)
        store.heal()
        check(held, all_arrive=True)
        store.restart("b", "nothing")
        lost = publish(20)
        check(lost, all_arrive=False)
        assert judge(sent[first[0]], 0.5)[0] is not Verdict.TIMED_OUT, "arrived stays arrived, or nobody can tell"
        declare_tap(b.channel(), EXCHANGE)
        store.wait_probe(EXCHANGE)
        check(publish(20), all_arrive=True)
        seen_by_us.set()
        watcher.join(10)
        assert not watcher.is_alive()
