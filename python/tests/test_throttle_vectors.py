"""The pure parts of a throttle, by the vectors of every language (spec THR)."""

from __future__ import annotations

from typing import Any

import pytest
from antipode.throttle import ExploringLimit, ExploringOptions, FixedLimit, Pie, PieOptions
from antipode.throttle._permits import Permits, Ticket
from test_vectors import cases


@pytest.mark.parametrize("case", cases("throttle-pie"))
def test_pie(case: dict[str, Any]) -> None:
    """THR-5, THR-6."""
    pie = Pie(PieOptions(**case["options"]))
    for tick in case["ticks"]:
        pie.tick(tick["queue"], tick["admitted"], tick["seconds"], tick["now"])
        assert (pie.probability, pie.delay) == pytest.approx((tick["p"], tick["delay"]), rel=0, abs=1e-9)
        assert pie.state == tick["state"]


@pytest.mark.parametrize("case", cases("throttle-limit"))
def test_limit(case: dict[str, Any]) -> None:
    """THR-7, THR-8."""
    draws = iter([draw for tick in case["ticks"] for draw in tick["draws"]])
    limit = ExploringLimit(lambda: next(draws), ExploringOptions(**case["options"]))
    for tick in case["ticks"]:
        limit.tick(tick["queued"], tick["done"], tick["mean"], tick["seconds"], tick["now"])
        assert limit.limit == tick["limit"]
    assert next(draws, None) is None


class ToldLimit(FixedLimit):
    """A limit that notes what it is told."""

    told: tuple[object, ...] = ()

    def tick(self, queued: bool, done: int, mean: float, seconds: float, now: float) -> None:
        self.told = (queued, done, mean)


@pytest.mark.parametrize("case", cases("throttle-permit"))
def test_permits(case: dict[str, Any]) -> None:
    """THR-1 to THR-4, THR-9."""
    options = dict(case["options"])
    limit = ToldLimit(options.pop("limit"))
    permits = Permits(limit, Pie(), **options, now=0.0)
    tickets: dict[str, Ticket] = {}

    def runs(granted: list[Ticket]) -> list[str]:
        return [name for ticket in granted for name, each in tickets.items() if each is ticket]

    for number, event in enumerate(case["events"]):
        match event["do"]:
            case "arrive":
                ticket = tickets[event["id"]] = Ticket()
                found: object = permits.arrive(
                    ticket, event["at"], event.get("draw", 0.5), is_protected=event.get("protected", False)
                )
                assert found == event["outcome"], number
            case "look":
                found = (permits.running, permits.queued, permits.parked)
                assert found == (event["running"], event["queued"], event["parked"]), number
            case "tick":
                assert runs(permits.tick(event["at"])) == event["runs"], number
                assert limit.told == pytest.approx(event.get("told", limit.told), rel=0, abs=1e-9), number
            case "finish" | "park":
                call = permits.finish if event["do"] == "finish" else permits.park
                assert runs(call(tickets[event["id"]], event["at"])) == event["runs"], number
            case _:
                permits.resume(tickets[event["id"]], event["at"])
