"""Cases about reads that wait for what their scope depends on (spec BAR-50, BAR-51, SHIM-44, SHIM-47, SHIM-48)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import pytest

from antipode._base.observers import ReadNote, events
from antipode._facade.configuration import configure
from antipode._model.errors import ConfigurationError
from antipode._model.lineage import Lineage
from antipode._model.result import BarrierError, BarrierTimeout, BarrierUnproven
from antipode._model.write_id import WriteId
from antipode._scope.operations import scope
from antipode._scope.reading import reading
from antipode.testing.conformance.cases import Cases, only
from antipode.testing.under_test import NotPossible, StoreUnderTest

_IN_VAIN = (BarrierTimeout, BarrierUnproven)
_DEADLINE_S = 0.5
_ASKED = pytest.mark.parametrize("asked", ["wait_on_read", "after"])


@contextmanager
def _behind(lineage: Lineage, asked: str) -> Iterator[None]:
    """Reads in the block are to be no older than this lineage, as a wrap's option or `reading(after=)` says."""
    if asked == "after":
        with reading(after=lineage):
            yield
    else:
        with scope(lineage):
            yield


class _ReadCounter:
    """An observer that counts the reads that begin, and what each says when it ends."""

    def __init__(self) -> None:
        self.begun = self.ended = self.writes = 0

    def begin(self, *_: object) -> Sequence[ReadNote]:
        self.begun += 1
        return (self,)

    def begin_write(self, store: str) -> None:
        self.writes += 1  # what may also write is a write

    def returned(self, *_: object) -> None:
        self.ended += 1

    def fail(self, words: str = "") -> None:
        pytest.fail(f"a read that returned was told to have failed {words}")


class OwnReads(Cases):
    """Reads under `wait_on_read` and `reading(after=…)`."""

    @staticmethod
    def _ways(store: StoreUnderTest, client: object) -> Mapping[str, Callable[[str], object]]:
        """Return all ways to read of which a store knows: a count is one, too (SHIM-44)."""
        try:
            return {**store.reads(client), **store.counts(client)}
        except NotPossible:
            return store.reads(client)

    @only(queues=False)
    @_ASKED
    def test_unsure_reads(self, store: StoreUnderTest, asked: str) -> None:
        """Whatever may return data waits first, or is refused: no value is older than the scope (SHIM-44, BAR-50)."""
        key = store.new_key()
        assert store.judge(store.written(key, "0")).satisfied
        values = store.reads(store.wrap_client(store.near)).keys()
        for number, way in enumerate(self._ways(store, store.wrap_client(store.near)), 1):
            store.partition(store.near)
            lineage = store.written(key, f"{number}")
            configure(timeout=store.brief)
            with _behind(lineage, asked):
                refused = self._refuses(way, self._way(store, store.near, asked, way), key)
            store.heal(store.near)
            configure(timeout=store.patience)
            again = self._way(store, store.near, asked, way)  # the other connection may be closed (SHIM-47)
            with _behind(lineage, asked):
                if refused:
                    with pytest.raises(ConfigurationError):
                        again(key)
                elif way in values:
                    assert again(key) == f"{number}", way
                else:
                    assert again(key), way

    @only(queues=False)
    def test_count_marks(self, store: StoreUnderTest) -> None:
        """Who learns only whether something is there, or how much, depends on it as on its value (SHIM-13, SHIM-44)."""
        for way in store.counts(store.wrap_client(store.near)):
            key = store.new_key()
            count = store.counts(store.wrap_client(store.near))[way]
            store.partition(store.far)
            store.written(key, "1")
            store.until(lambda: store.shows(key, "1", store.near), "the write reaches the near replica")  # noqa: B023
            with reading() as seen:
                try:
                    assert count(key), way
                except ConfigurationError:
                    store.heal(store.far)
                    continue
            if seen.lineage.is_complete():
                assert not store.judge(seen.lineage, store.brief).satisfied, f"{way}: nothing is collected"
            store.heal(store.far)
            store.until(lambda: store.shows(key, "1"), "the write arrives")  # noqa: B023
            assert store.judge(seen.lineage).satisfied, way

    @staticmethod
    def _way(store: StoreUnderTest, server: str, asked: str, way: str) -> Callable[[str], object]:
        """A way to read by a client of its own."""
        return OwnReads._ways(store, store.wrap_client(server, wait_on_read=asked == "wait_on_read"))[way]

    @staticmethod
    def _refuses(way: str, read: Callable[[str], object], key: str) -> bool:
        """Whether a read is refused altogether; fails where it returns though it cannot have waited."""
        try:
            found = read(key)
        except ConfigurationError:
            return True
        except _IN_VAIN:
            return False
        pytest.fail(f"{way}: returned {found!r}, and the server has nothing newer")

    @only(queues=False)
    @_ASKED
    def test_read_at_a_frozen_server(self, store: StoreUnderTest, asked: str) -> None:
        """A wait before a read ends by its deadline also where the server answers nothing (SHIM-47)."""
        key = store.new_key()
        known = store.written(key, "0")
        assert store.judge(known).satisfied
        for number, way in enumerate(store.reads(store.wrap_client(store.far)), 1):
            configure(timeout=store.patience)
            read = self._way(store, store.far, asked, way)
            with _behind(known, asked):
                try:
                    assert read(key) is not None
                except ConfigurationError:
                    continue
            configure(timeout=_DEADLINE_S)
            store.freeze(store.far)
            try:
                lineage = store.written(key, f"{number}")
                began = time.monotonic()
                with _behind(lineage, asked), pytest.raises(_IN_VAIN):
                    read(key)
                took = time.monotonic() - began
            finally:
                store.thaw(store.far)
            assert took < _DEADLINE_S + store.slack, f"{way}: {took:.2f} s with a deadline of {_DEADLINE_S} s"
            configure(timeout=store.patience)
            again = self._way(store, store.far, asked, way)
            with _behind(lineage, asked):
                store.until(lambda: self._read(again, key) == f"{number}", f"{way}: it answers again")  # noqa: B023

    @staticmethod
    def _read(read: Callable[[str], object], key: str) -> object:
        """The value, or None where the read has waited in vain: the server may count as out for a moment."""
        try:
            return read(key)
        except _IN_VAIN:
            return None

    @only(queues=False)
    @_ASKED
    def test_misspelt_store(self, store: StoreUnderTest, asked: str) -> None:
        """A read whose lineage spells its store otherwise is unproven, whatever the server has (BAR-51)."""
        key = store.new_key()
        known = store.written(key, "1")
        assert store.judge(known).satisfied
        other = store.name.swapcase()
        lineage = Lineage([WriteId(other, each.key, each.version) for each in known.of_store(store.name)])
        values = store.reads(store.wrap_client(store.near)).keys()
        for way in self._ways(store, store.wrap_client(store.near)):
            read = self._way(store, store.near, asked, way)
            with _behind(lineage, asked), pytest.raises((BarrierUnproven, ConfigurationError)) as raised:
                read(key)
            if isinstance(raised.value, BarrierUnproven):
                assert raised.value.code == "AP107", way
                assert other in str(raised.value)
            with _behind(known, asked), suppress(ConfigurationError):
                assert read(key) == "1" or way not in values, way

    @only(queues=False)
    def test_read_is_told(self, store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each way to read tells whoever observes it, and the block that collects, once (SHIM-54)."""
        key = store.new_key()
        assert store.judge(store.written(key, "1")).satisfied
        configure(mode="dry-run")
        for way in self._ways(store, store.wrap_client(store.near)):
            read = self._ways(store, store.wrap_client(store.near))[way]
            told = _ReadCounter()
            monkeypatch.setattr(events, "on_read_sent", told.begin)
            monkeypatch.setattr(events, "on_write_begun", told.begin_write)
            with scope(), reading() as seen:
                try:
                    read(key)
                except ConfigurationError:
                    continue
            assert seen.lineage.of_store(store.name) or not seen.lineage.is_complete(), f"{way}: nothing is collected"
            assert told.begun or told.writes, f"{way}: nobody is told"
            assert told.begun == told.ended, f"{way}: begun {told.begun} times, told {told.ended} times"

    @only(queues=False)
    @_ASKED
    def test_past_moment(self, store: StoreUnderTest, asked: str) -> None:
        """What shows a moment from before a write is refused behind it, or shows the write, too (SHIM-48)."""
        key = store.new_key()
        assert store.judge(store.written(key, "1")).satisfied
        client = store.wrap_client(store.near, wait_on_read=asked == "wait_on_read")
        with store.past_moment(client, key) as fetch:
            lineage = store.written(key, "2")
            assert store.judge(lineage).satisfied
            refusal: BarrierError | None = None
            with _behind(lineage, asked), suppress(ConfigurationError):
                try:
                    assert fetch() == "2", "data from before the write"
                except BarrierError as error:
                    refusal = error
            assert refusal is None or (type(refusal), refusal.code) == (BarrierUnproven, "AP514")
