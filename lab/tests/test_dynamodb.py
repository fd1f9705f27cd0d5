"""The lab's DynamoDB: real servers, our replication between them."""

from __future__ import annotations

import threading
import time
from typing import Any

import psutil
import pytest
from antipode_lab import Lab
from antipode_lab.processes import wait_until
from antipode_lab.stores.dynamodb import DynamoDbStore


@pytest.fixture(scope="module")
def lab(module_lab_factory: Any) -> DynamoDbStore:
    whole: Lab = module_lab_factory("dynamodb", replicas=1, lag="50ms")
    return whole.get(DynamoDbStore)


def put(lab: DynamoDbStore, server: str, name: str, value: str) -> None:
    lab.client(server).put_item(TableName="posts", Item={"id": {"S": name}, "value": {"S": value}})


def shows(lab: DynamoDbStore, server: str, name: str) -> str | None:
    found = lab.client(server).get_item(TableName="posts", Key={"id": {"S": name}}, ConsistentRead=True).get("Item")
    return None if found is None else str(found["value"]["S"])


def arrives(lab: DynamoDbStore, server: str, name: str, value: str | None) -> None:
    wait_until(f"{name}={value} at {server}", lambda: shows(lab, server, name) == value, 30)


def test_both_regions_take_writes(lab: DynamoDbStore) -> None:
    """Not before the lag is over, and never back to who wrote."""
    for source, target in (("a", "b1"), ("b1", "a")):
        begun = time.monotonic()
        put(lab, source, f"from {source}", "1")
        arrives(lab, target, f"from {source}", "1")
        assert time.monotonic() - begun >= 0.05
        lab.client(target).delete_item(TableName="posts", Key={"id": {"S": f"from {source}"}})
        arrives(lab, source, f"from {source}", None)


def test_the_last_writer_wins_in_every_region(lab: DynamoDbStore) -> None:
    lab.partition("b1")
    put(lab, "a", "both", "first")
    put(lab, "a", "clock", "first")
    lab.clock("b1", -60_000)
    put(lab, "b1", "clock", "second, by a clock that is late")
    wait_until("the stream of b1 is read", lambda: lab._ask("b1", {"mark": 1}) > 0)
    lab.clock("b1", 0)
    put(lab, "b1", "both", "second")
    lab.heal()
    for server in ("a", "b1"):
        arrives(lab, server, "both", "second")
        arrives(lab, server, "clock", "first")


def test_servers_that_end_freeze_and_are_parted_catch_up(lab: DynamoDbStore) -> None:
    lab.kill("b1")
    put(lab, "a", "killed", "1")
    lab.restart("b1")
    arrives(lab, "b1", "killed", "1")
    lab.freeze("b1")
    put(lab, "a", "frozen", "1")
    lab.thaw("b1")
    arrives(lab, "b1", "frozen", "1")
    lab.partition("b1", mode="silent")
    put(lab, "a", "silent", "1")
    assert shows(lab, "b1", "silent") is None
    lab.heal()
    assert shows(lab, "b1", "silent") == "1"
    lab.restart("a")
    put(lab, "a", "restarted", "1")
    lab.wait_caught_up("b1")
    assert shows(lab, "b1", "restarted") == "1"


def test_writers_in_both_regions_end_with_the_same(lab: DynamoDbStore) -> None:
    def write(server: str) -> None:
        for number in range(60):
            put(lab, server, f"storm-{number % 7}", f"{server} {number}")

    threads = [threading.Thread(target=write, args=(server,)) for server in ("a", "b1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lab.wait_caught_up("b1", "a")
    lab.wait_caught_up("a", "b1")
    for number in range(7):
        wait_until(
            f"storm-{number} is the same",
            lambda number=number: shows(lab, "a", f"storm-{number}") == shows(lab, "b1", f"storm-{number}"),  # type: ignore[misc]
            30,
        )


def test_servers_listen_on_loopback_alone(lab: DynamoDbStore) -> None:
    ports = {server.port for server in lab.servers.values()} | set(lab.state.details["replicators"].values())
    found: list[Any] = [one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    listening = {one.laddr.port: one.laddr.ip for one in found if one.laddr.port in ports}
    assert listening.keys() == ports
    assert {address.removeprefix("::ffff:") for address in listening.values()} == {"127.0.0.1"}
