"""The page of FastStream, on RabbitMQ, and its adapter: python/docs/frameworks/faststream.md."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import antipode
import antipode.faststream
import antipode.memory
import pytest
from antipode import Lineage, WriteId
from antipode_lab.stores.rabbitmq import RabbitStore
from faststream import AckPolicy
from faststream.rabbit import RabbitBroker, RabbitMessage, RabbitQueue, TestRabbitBroker
from pages import imported

DEADLINE = 60.0


def write(name: str) -> WriteId:
    return WriteId.position(f"store-{name}", "e", 1)


async def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.01)


@pytest.fixture
def url(rabbitmq_lab: RabbitStore) -> str:
    return rabbitmq_lab.url("a")


async def test_the_page(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message waits for what it speaks of; one in vain goes back to the queue, and comes again."""
    monkeypatch.setenv("BROKER", url)
    antipode.configure(redeliver_delay=0.05)
    with imported("faststream.md", tmp_path) as get:
        page, stores = get("app"), get("stores")
        async with page.broker:
            await page.broker.start()
            await page.post(1, "hello")
            await until(lambda: stores.posts.get("indexed:1") == b"hello", "the second message is handled")
            stores.store.freeze("b")
            await page.post(2, "later")
            await asyncio.sleep(2.3)  # the first delivery's whole deadline
            assert stores.posts.get("notified:2") is None
            stores.store.heal("b")
            await until(lambda: stores.posts.get("indexed:2") == b"later", "it came again")


async def test_the_page_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER", "amqp://guest:guest@127.0.0.1:1/")
    with imported("faststream.md", tmp_path) as get:
        page, stores = get("app"), get("stores")
        async with TestRabbitBroker(page.broker):
            await page.post(1, "hello")
            assert stores.posts.get("indexed:1") == b"hello"


class Seen:
    def __init__(self) -> None:
        self.scopes: list[antipode.Scope] = []
        self.lineages: list[Lineage] = []

    def note(self) -> None:
        scope = antipode.current_scope()
        assert scope is not None
        self.scopes.append(scope)
        self.lineages.append(scope.lineage)


@pytest.mark.parametrize("real", [True, False], ids=["rabbitmq", "in memory"])
async def test_a_scope_a_message(real: bool, request: pytest.FixtureRequest) -> None:
    """SCOPE-3, SCOPE-6, PROP-17: nothing of one message in another, errors and side by side included."""
    url = request.getfixturevalue("url") if real else "amqp://127.0.0.1:1/"
    broker = RabbitBroker(url, middlewares=[antipode.faststream.Middleware])
    seen, answers = Seen(), Seen()

    @broker.subscriber(RabbitQueue("antipode-one", auto_delete=True))
    @broker.publisher(RabbitQueue("antipode-answers", auto_delete=True))
    async def one(name: str) -> str:
        seen.note()
        await asyncio.sleep(0)
        antipode.append(write(f"in-{name}"))
        if name == "broken":
            raise ValueError(name)
        return name

    @broker.subscriber(RabbitQueue("antipode-answers", auto_delete=True))
    async def answer(name: str) -> None:
        answers.note()

    async def send(name: str) -> None:
        with antipode.scope(Lineage([write(name)])) as scope:
            own: dict[str, Any] = {"own": "1"}
            await broker.publish(name, "antipode-one", headers=own)
            assert own == {"own": "1"}
            assert scope.lineage == Lineage([write(name)])

    async with TestRabbitBroker(broker) if not real else broker:
        if real:
            await broker.start()
        for name in ("a", "b"):
            await send(name)
        if real:
            await send("broken")
        else:
            with pytest.raises(ValueError, match="broken"):
                await send("broken")
        await broker.publish("c", "antipode-one")  # outside any scope
        await until(lambda: len(answers.scopes) == 3 and len(seen.scopes) == 4, "all are handled")
        await until(lambda: all(each.closed for each in seen.scopes + answers.scopes), "all scopes have ended")
    assert set(seen.lineages) == {Lineage([write(name)]) for name in ("a", "b", "broken")} | {Lineage()}
    assert set(answers.lineages) == {
        Lineage([write("a"), write("in-a")]),
        Lineage([write("b"), write("in-b")]),
        Lineage([write("in-c")]),
    }
    assert len(set(seen.scopes + answers.scopes)) == 7


async def test_redeliver_is_refused_where_it_is_acknowledged_first(url: str) -> None:
    """BAR-45."""
    broker = RabbitBroker(url, middlewares=[antipode.faststream.Middleware])
    antipode.memory.Store("s", regions=["a"]).client("a")
    errors: list[Exception] = []

    @broker.subscriber(RabbitQueue("antipode-first", auto_delete=True), ack_policy=AckPolicy.ACK_FIRST)
    async def one(_: str) -> None:
        try:
            await antipode.barrier_async(on_timeout="redeliver")
        except Exception as error:
            errors.append(error)

    async with broker:
        await broker.start()
        await broker.publish("a", "antipode-first")
        await until(lambda: errors, "the barrier has answered")
    assert "acknowledged already" in str(errors[0])


async def test_redeliver_out_of_a_task_group(url: str) -> None:
    """PROP-36: a group of exceptions holds it."""
    antipode.configure(redeliver_delay=0.01)
    broker = RabbitBroker(url, middlewares=[antipode.faststream.Middleware])
    store = antipode.memory.Store("s", regions=["a", "b"])
    writer, _ = store.client("a"), store.client("b")
    store.freeze("b")
    came: list[str] = []

    @broker.subscriber(RabbitQueue("antipode-group", auto_delete=True))
    async def one(_: str) -> None:
        came.append("came")
        if len(came) == 3:
            store.heal("b")
        async with asyncio.TaskGroup() as tasks:
            timeout = 0.05 if len(came) < 3 else 10
            tasks.create_task(antipode.barrier_async(timeout=timeout, on_timeout="redeliver"))
        came.append("passed")

    async with broker:
        await broker.start()
        with antipode.scope():
            writer.set("k", "v")
            await broker.publish("a", "antipode-group")
        await until(lambda: "passed" in came, "it has come again, and passed")
    assert came == ["came", "came", "came", "passed"]


@pytest.mark.parametrize("policy", [AckPolicy.MANUAL, AckPolicy.REJECT_ON_ERROR, AckPolicy.ACK])
async def test_redeliver_goes_back_whatever_the_policy(url: str, policy: AckPolicy) -> None:
    """BAR-45: with the lineage that the message had."""
    antipode.configure(redeliver_delay=0.01)
    broker = RabbitBroker(url, middlewares=[antipode.faststream.Middleware])
    store = antipode.memory.Store("s", regions=["a", "b"])
    writer, _ = store.client("a"), store.client("b")
    store.freeze("b")
    came: list[str] = []

    @broker.subscriber(RabbitQueue(f"antipode-{policy.value}", auto_delete=True), ack_policy=policy)
    async def one(_: str, msg: RabbitMessage) -> None:
        came.append(antipode.serialize())
        if len(came) == 3:
            store.heal("b")
        await antipode.barrier_async(timeout=0.05 if len(came) < 3 else 10, on_timeout="redeliver")
        came.append("passed")
        await msg.ack()

    async with broker:
        await broker.start()
        with antipode.scope():
            writer.set("k", "v")
            text = antipode.serialize()
            await broker.publish("a", f"antipode-{policy.value}")
        await until(lambda: "passed" in came, "the barrier has passed")
    assert came == [text, text, text, "passed"]


async def test_what_cannot_be_read_is_incomplete(url: str) -> None:
    broker = RabbitBroker(url, middlewares=[antipode.faststream.Middleware])
    seen = Seen()

    @broker.subscriber(RabbitQueue("antipode-odd", auto_delete=True))
    async def one(_: Any) -> None:
        seen.note()

    async with broker:
        await broker.start()
        await broker.publish("a", "antipode-odd", headers={"antipode-lineage": "nonsense"})
        await until(lambda: seen.lineages, "it has come")
    assert seen.lineages[0].incomplete == {""}


@pytest.mark.parametrize("way", ["get_one", "iterator"])
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a handler"])
async def test_a_message_that_is_pulled_joins_the_scope(url: str, way: str, inside: bool) -> None:
    """SCOPE-29: of whoever pulls it; outside any scope it is nobody's."""
    broker = RabbitBroker(url, middlewares=[antipode.faststream.Middleware])
    name = f"q-{time.monotonic_ns()}"
    pulled = broker.subscriber(RabbitQueue(name, auto_delete=True))
    seen: list[str] = []

    async def pull() -> None:
        if way == "get_one":
            message = await pulled.get_one(timeout=DEADLINE, no_ack=True)
        else:
            message = await asyncio.wait_for(anext(aiter(pulled)), DEADLINE)
        assert message is not None
        assert message.body == b"a"
        seen.append(antipode.serialize())

    @broker.subscriber(RabbitQueue(f"{name}-handled", auto_delete=True))
    async def handle(_: str) -> None:
        await pull()

    async with broker:
        await broker.start()
        with antipode.scope(Lineage([write("sent")])):
            await broker.publish("a", name)
        with antipode.scope(Lineage([write("own")])) as scope:
            if inside:
                await broker.publish("b", f"{name}-handled")
                await until(lambda: seen, "the handler has pulled")
            else:
                await pull()
                assert scope.lineage == Lineage([write("own"), write("sent")])
    assert seen == [Lineage([write("own"), write("sent")]).serialize()]


async def test_the_answer_to_a_request_joins_the_scope_that_asked(url: str) -> None:
    """SCOPE-29: and until it comes, or for ever where it does not, the scope is incomplete."""
    broker = RabbitBroker(url, middlewares=[antipode.faststream.Middleware])
    queue, silent = f"q-{time.monotonic_ns()}", asyncio.Event()
    during: list[Lineage] = []

    @broker.subscriber(RabbitQueue(queue, auto_delete=True))
    async def handle(body: str) -> str:
        antipode.append(write(body))
        during.append(asked.lineage)
        if body == "silent":
            await silent.wait()
        return "done"

    async with broker:
        await broker.start()
        with antipode.scope(Lineage([write("before")])) as asked:
            await broker.request("b", queue, timeout=DEADLINE)
            assert asked.lineage == Lineage([write("before"), write("b")])
        assert during == [Lineage([write("before")]).marked_incomplete()]
        with antipode.scope() as asked:
            with pytest.raises(TimeoutError):
                await broker.request("silent", queue, timeout=0.5)
            assert [gap.reason for gap in asked.gaps] == ["unanswered"]
            assert not asked.lineage.is_complete()
        silent.set()


async def test_a_task_is_handed_to_no_exchange() -> None:
    """BRANCH-28: nothing is announced, and nothing is sent; a queue has one taker."""
    antipode.configure(branches=antipode.memory.Store("orders", regions=["a"]).client("a"))
    broker = RabbitBroker("amqp://guest:guest@127.0.0.1:1/", middlewares=[antipode.faststream.Middleware])
    seen = Seen()

    @broker.subscriber(RabbitQueue("tasks"))
    async def handle(_: str) -> None:
        seen.note()

    async with TestRabbitBroker(broker):
        with antipode.scope() as scope:
            with antipode.branch(within=60):
                with pytest.raises(antipode.ConfigurationError, match="AP119"):
                    await broker.publish("task", "tasks", exchange="posts")
                assert not scope.lineage
                await broker.publish("task", "tasks")
            assert len(scope.lineage) == 1
    assert len(seen.scopes) == 1
