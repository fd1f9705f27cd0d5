"""Messages through couriers that are killed (benchmarks/deliveries.md): PROP-17, PROP-18, SCOPE-6, BAR-45."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from antipode_benchmarks.deliveries.__main__ import KINDS, command
from antipode_benchmarks.deliveries.brokers import broker
from antipode_benchmarks.deliveries.driver import Outcome, is_whole, play

BROKEN = Path(__file__).parent / "broken_courier.py"


def played(client: str, messages: int, seed: int = 1) -> Outcome:
    with broker(KINDS[client]) as place:
        return play(place, command(client), messages, seed)


@pytest.mark.interop
@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", ["pika", "java", "cpp"])
def test_few_messages_are_lost_by_no_client(client: str) -> None:
    outcome = played(client, 200)
    assert outcome.is_good, str(outcome)
    assert outcome.kills


@pytest.mark.stores
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("client", [client for client in KINDS if client not in {"java", "cpp"}])
def test_many_messages_are_lost_by_no_client(client: str) -> None:
    outcome = played(client, 20_000)
    print(f"{client}: {outcome}")
    assert outcome.is_good, str(outcome)


@pytest.mark.interop
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", ["plain", "hasty"])
def test_a_courier_that_loses_is_found(fault: str) -> None:
    """One that carries no lineage, and one that acknowledges before it sends."""
    with broker("rabbitmq") as place:
        outcome = play(place, [sys.executable, str(BROKEN), fault], 600, 1, patience=20.0 if fault == "hasty" else 60.0)
    assert outcome.bare if fault == "plain" else outcome.lost


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("1~origin..e.7~relay..e.7", True),
        ("1~origin..e.7", False),
        ("1~origin..e.7~relay..e.8", False),
        ("1-relay~origin..e.7~relay..e.7", False),
        ("1", False),
        ("", False),
        ("?", False),
    ],
)
def test_what_a_whole_lineage_is(text: str, whole: bool) -> None:
    assert is_whole(7, text) is whole
