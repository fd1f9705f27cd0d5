"""When a server is asked next (spec BAR-38, BAR-66): by a prediction where its position grows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import ClassVar, Final

import antipode
import pytest
from antipode import Lineage, WriteId
from antipode._diagnostics.dryrun import following
from antipode._engine.pace import CAP_S, SAFETY_NET, Pace
from antipode._engine.poller import Poller
from antipode._model.verdict import VISIBLE, not_yet
from antipode._store.store import registry
from antipode.shim import Capabilities, Server, Visibility
from fakes import PushShim, Target, fake_store, until
from inner import poller
from parked_barriers import Waiting

DATA: Final = ("instance", "epoch")
POLL_S: Final = 0.005
STEP_S: Final = 0.0005
FAR: Final = 10**9


class Played:
    """A thread that asks, played on a clock of its own: what is there at a time, and when it was asked."""

    def __init__(self, position: Callable[[float], int], *, pushes: bool = False) -> None:
        self.pace = Pace()
        self.now = 100.0
        self.asked: list[float] = []
        self._position = position
        self._pushes = pushes
        self._pushed = position(0.0)

    def play(self, seconds: float, nearest: Callable[[float], int | None]) -> list[float]:
        """Play so long; return when it was asked, in seconds from the beginning of all."""
        before = len(self.asked)
        until = self.now + seconds
        while self.now < until:
            at = self.now - 100.0
            if self._pushes and self._position(at) > self._pushed:
                self._pushed = self._position(at)
                self.pace.has_news = True
                self.pace.growth.note_push()
            if self.now >= self.pace.due(self.now, POLL_S, DATA, nearest(at)):
                self.ask(is_paced=True)
            self.now += STEP_S
        return self.asked[before:]

    def ask(self, *, is_paced: bool) -> None:
        """Ask now."""
        at = self.now - 100.0
        moved = not self.asked or self._position(at) > self._position(self.asked[-1])
        self.asked.append(at)
        self._pushed = self._position(at)  # what was pushed before the answer, the answer knows
        self.pace.begin(self.now, is_paced=is_paced)
        self.pace.growth.note(DATA, self.now, self._position(at))
        self.pace.end(self.now, POLL_S, is_down=False, is_steady=moved, is_unhurried=False)


def test_the_pause_behind_silence_doubles_up_to_half_a_second() -> None:
    """BAR-38: 50 ms behind the first question that was not answered."""
    pace = Pace()
    pauses = []
    for is_down in (True, True, True, True, True, True, False, True, True):
        pace.end(100.0, POLL_S, is_down=is_down, is_steady=False, is_unhurried=False)
        pauses.append(round(1000 * pace.retry))
    assert pauses == [50, 100, 200, 400, 500, 500, 50, 50, 100]


@pytest.mark.parametrize("pushes", [False, True])
def test_a_server_that_grows_all_the_time_is_asked_no_more_than_the_cap_says(pushes: bool) -> None:
    """BAR-66: a push at each of 2,000 writes a second, and a position that is far."""
    played = Played(lambda at: int(at * 2000), pushes=pushes)
    played.play(0.5, lambda _: FAR)
    assert 15 <= len(played.play(1.0, lambda _: FAR)) <= 21


@pytest.mark.parametrize("pushes", [False, True])
def test_a_near_position_is_asked_for_when_it_should_be_there(pushes: bool) -> None:
    """BAR-66: it comes 30 ms after somebody new made the server be asked."""
    played = Played(lambda at: int(at * 1000), pushes=pushes)
    played.play(0.5, lambda _: FAR)
    played.ask(is_paced=False)
    wanted = int(played.asked[-1] * 1000) + 30
    first = played.play(0.05, lambda _: wanted)[0]
    assert 0.029 <= first - wanted / 1000 + 0.03 <= 0.036


def test_few_pushes_are_counted() -> None:
    """BAR-66: at 500 writes a second the third push brings the third write."""
    played = Played(lambda at: int(at * 500) * 100, pushes=True)
    played.play(0.5, lambda _: FAR)
    played.ask(is_paced=False)
    wanted = int(played.asked[-1] * 500) * 100 + 300
    first = played.play(0.05, lambda _: wanted)[0]
    assert 0 <= first - wanted / 50_000 <= 2 * STEP_S


def test_a_write_that_comes_late_is_asked_for_at_its_push() -> None:
    """BAR-66: at 500 writes a second the third write is four milliseconds late; who asks before it, has to wait."""

    def position(at: float) -> int:
        return int(max(min(at, 0.505), at - 0.004) * 500) * 100

    played = Played(position, pushes=True)
    played.play(0.5, lambda _: FAR)
    played.ask(is_paced=False)
    wanted = int(played.asked[-1] * 500) * 100 + 300
    first = played.play(0.05, lambda _: wanted)[0]
    assert 0.51 <= first <= 0.51 + 2 * STEP_S


def test_a_write_whose_push_is_lost_is_asked_for_soon() -> None:
    """BAR-66: three pushes are counted, and none of them comes: a poll interval behind the time it is asked for."""
    played = Played(lambda at: int(at * 500) * 100, pushes=True)
    played.play(0.5, lambda _: FAR)
    played.ask(is_paced=False)
    wanted = int(played.asked[-1] * 500) * 100 + 300
    played._pushes = False
    first = played.play(0.05, lambda _: wanted)[0]
    assert 0 <= first - wanted / 50_000 <= 1.1 * POLL_S + 2 * STEP_S


def test_pushes_that_come_seldom_are_asked_for_each() -> None:
    """BAR-66: a write every 60 ms, and then one that is larger than those before."""
    large = 8 * 0.06
    played = Played(lambda at: int(at / 0.06) + 1 + (1000 if at >= large else 0), pushes=True)
    asked = played.play(large + 0.05, lambda _: 1005)
    assert min(each for each in asked if each >= large) - large <= POLL_S + 2 * STEP_S


@pytest.mark.parametrize("pushes", [False, True])
def test_what_comes_before_its_prediction_is_found_within_the_cap(pushes: bool) -> None:
    """BAR-66: a server that grew by 100 a second leaps by 1,000."""
    played = Played(lambda at: int(at * 100) + (1000 if at >= 0.71 else 0), pushes=pushes)
    played.play(0.7, lambda _: 1000)
    assert min(each for each in played.play(0.2, lambda _: 1000) if each >= 0.71) <= 0.71 + CAP_S + STEP_S


def test_a_server_that_stands_still_is_asked_at_the_pace_of_a_poll() -> None:
    """BAR-38, BAR-66: with back-off, at the latest after ten intervals."""
    played = Played(lambda at: int(min(at, 0.5) * 1000))
    played.play(0.6, lambda _: FAR)
    asked = played.play(1.0, lambda _: FAR)
    apart = [after - before for before, after in pairwise(asked)]
    assert max(apart) <= 1.1 * SAFETY_NET * POLL_S + 2 * STEP_S
    assert len(asked) <= 25


@pytest.mark.parametrize("data", [("instance", "another"), ("another", "epoch")])
def test_nothing_is_predicted_for_other_data(data: tuple[str, str]) -> None:
    """BAR-66: an epoch that the server does not show yet, or a server that is another one."""
    played = Played(lambda at: int(at * 1000))
    played.play(0.5, lambda _: FAR)
    assert played.pace.growth.look_ahead(DATA, 600, played.now) is not None
    assert played.pace.growth.look_ahead(data, 600, played.now) is None
    assert played.pace.growth.look_ahead(DATA, None, played.now) is None
    played.pace.growth.note(DATA, played.now, 10)  # it went back
    assert played.pace.growth.look_ahead(DATA, 600, played.now) is None


class _Sleep(Poller):
    """A sleep that is only noted."""

    def __init__(self) -> None:
        self.seconds = -1.0

    def rest(self, seconds: float) -> None:
        self.seconds = seconds


def test_glances_begin_before_a_position_that_is_expected_just_behind_the_cap() -> None:
    """BAR-66: 48 ms ahead, by the growth: it is expected a little later, and to be glanced at from 5 ms before that."""
    pace, sleep, now = Pace(), _Sleep(), time.monotonic()
    for step in range(5):
        pace.growth.note(DATA, now - (4 - step) * 0.05, 1000 + step * 50)
    assert pace.rest(sleep, DATA, 1248, 0.005) == pytest.approx(0.01)
    assert sleep.seconds <= 0.048
    assert pace.rest(sleep, DATA, FAR, 0.005) == 0
    assert sleep.seconds <= CAP_S


class GrowingShim(PushShim):
    """Positions that grow with the time, pushed every two milliseconds."""

    kind: ClassVar[str] = "growing"
    capabilities: ClassVar[Capabilities] = Capabilities(versions="position", push=True)


RATE: Final = 1000


def _position() -> int:
    return int(time.monotonic() * RATE)


def _grown(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
    now = _position()
    server.applied("i1", "e1", {"e1": now})
    return [VISIBLE if each.version.counter <= now else not_yet(f"at {now}") for each in ids]  # type: ignore[union-attr]


@pytest.fixture
def growing() -> Iterator[Target]:
    target = Target("growing-1", _grown)
    fake_store("growing", target, shim=GrowingShim)
    yield target
    for channel in GrowingShim.channels:
        channel.close()


def _at(counter: int) -> Lineage:
    return Lineage([WriteId.position("growing", "e1", counter)])


def test_pushes_at_each_write_are_not_asked_for(growing: Target) -> None:
    """BAR-66: one question a cap, while a barrier waits for what is far; one that is near passes when it is there."""
    waiter = threading.Thread(
        target=lambda: antipode.barrier(_at(_position() + 10**9), timeout=50, on_timeout="proceed"), daemon=True
    )
    waiter.start()
    until(lambda: growing.asked >= 8)  # how it grows is known by then
    channel = GrowingShim.channels[-1]
    pushed, asked, begun = channel.pushed, growing.asked, time.monotonic()
    until(lambda: channel.pushed - pushed >= 300)
    assert growing.asked - asked <= (time.monotonic() - begun) / CAP_S + 5
    wanted = _position() + 100
    assert antipode.barrier(_at(wanted), timeout=50).satisfied
    assert _position() >= wanted


@pytest.mark.parametrize("poll", [0.005, 10.0])
def test_a_push_is_asked_for_soon_however_seldom_it_is_polled(poll: float) -> None:
    """BAR-66: who has a push may poll seldom."""
    pace = Pace()
    pace.begin(100.0, is_paced=True)
    assert pace.due(100.0, poll, "data", None) >= 100.0 + 0.9 * poll
    pace.has_news = True
    assert pace.due(100.0, poll, "data", None) == pytest.approx(100.0 + min(poll, 0.05))


@pytest.fixture
def followed(request: pytest.FixtureRequest) -> Target:
    """A server that is behind, is asked every so many seconds, and at which a write is followed for a record."""
    antipode.configure(poll=request.param)
    target = Target("p", lambda ids, server: [not_yet("later")] * len(ids))
    [server] = fake_store("posts", target).servers()
    following.follow([(poller(server), WriteId.position("posts", "e", 1))], lambda _: None)
    until(lambda: target.asked >= 2)  # its first look, and what is followed behind it
    return target


@pytest.mark.parametrize("followed", [30.0], indirect=True)
def test_a_barrier_behind_what_is_followed_is_asked_for_at_once(followed: Target) -> None:
    """REC-21, BAR-66: a record may take its time, a new barrier may not, though it waits for a later position."""
    asked = followed.asked
    waiting = Waiting(Lineage([WriteId.position("posts", "e", 2)]))
    until(lambda: followed.asked > asked, 20.0)
    assert waiting.result is None


@pytest.mark.parametrize("followed", [1.5], indirect=True)
def test_behind_a_barrier_a_server_is_asked_no_more_at_leisure(followed: Target) -> None:
    """REC-21, BAR-38: the interval begins anew, however long it had become."""
    [server] = registry().need("posts").servers()
    poller(server)._pace._interval = 15.0  # as after a dozen questions
    asked = followed.asked
    waiting = Waiting(Lineage([WriteId.position("posts", "e", 2)]))
    until(lambda: followed.asked >= asked + 2, 10.0)
    assert waiting.result is None


def test_a_push_that_came_with_an_answer_is_asked_for_soon() -> None:
    """BAR-66: no channel says it once more, and nobody is there to wake the thread that asks."""
    antipode.configure(poll=0.3, free_path_ttl=0)
    told: set[WriteId] = set()

    def answer(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        new = [write_id for write_id in ids if write_id not in told]
        told.update(new)
        if new:
            poller(server)._pace._interval = 20.0
            server.on_change()
        return [not_yet("later") if write_id in new else VISIBLE for write_id in ids]

    fake_store("posts", Target("p", answer))
    waited = [
        antipode.barrier(Lineage([WriteId.position("posts", "e", counter)]), timeout=60).waited
        for counter in range(1, 6)
    ]
    assert min(waited[1:]) < 0.9, "before the thread looks of itself"
