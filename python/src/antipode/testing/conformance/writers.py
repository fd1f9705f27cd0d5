"""Cases about writers: at once, in transactions, of unknown outcome, without rights (spec SCOPE-14 to SCOPE-18)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from antipode._facade.configuration import configure
from antipode._model.errors import PendingWriteError, UnfitStoreError
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.wire import MAX_COUNTER
from antipode._model.write_id import Opaque, Ordered, WriteId
from antipode._scope.carry import carry
from antipode._scope.operations import deserialize, scope, serialize
from antipode.messages import message_scope
from antipode.testing.conformance.cases import Cases, only
from antipode.testing.under_test import StoreUnderTest

_WRITERS = 4
_EACH = 25


def _in_threads(work: Callable[[int], None], patience: float) -> None:
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(_WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience)
        assert not thread.is_alive(), "a writer hangs"


class Writers(Cases):
    """Writing by several, and what is not yet, or never, known to be written."""

    def test_concurrent_writers(self, store: StoreUnderTest) -> None:
        """Requests that write the same objects at once: each one's writes, or later ones, are waited for."""
        shared = store.new_key("shared")
        lineages: list[Lineage] = [EMPTY] * _WRITERS
        keys = [[store.new_key() for _ in range(_EACH)] for _ in range(_WRITERS)]

        def write(number: int) -> None:
            with scope() as opened:
                for key in keys[number]:
                    store.write(key, "v")
                    if not store.capabilities.tap:
                        store.write(shared, f"{number}")
                lineages[number] = opened.lineage

        _in_threads(write, store.patience)
        assert all(lineage.of_store(store.name) and lineage.is_complete() for lineage in lineages)
        whole = EMPTY
        for lineage in lineages:
            whole |= lineage
        if store.capabilities.versions == "opaque" and not store.capabilities.tap:  # of `shared` only the last is there
            whole = whole.without(Lineage(one for one in whole.of_store(store.name) if one.key == shared.encode()))
        assert store.judge(whole).satisfied
        for mine in keys:
            for key in mine:
                assert store.shows(key, "v")
        if store.capabilities.tap:
            return
        if store.capabilities.versions == "position":
            assert store.shows(shared, store.look(shared, store.primary))
        else:  # which of writes that met is the last one, replicas may come to agree on a moment later
            store.until(lambda: store.shows(shared, store.look(shared, store.primary)), "the replicas agree")

    def test_parallel_connections_of_one_scope(self, store: StoreUnderTest) -> None:
        """Threads of one request write at once, and nothing is lost of its lineage (SCOPE-2, LIN-29)."""
        keys = [[store.new_key() for _ in range(_EACH)] for _ in range(_WRITERS)]
        with scope() as opened:

            @carry
            def write(number: int) -> None:
                for key in keys[number]:
                    store.write(key, "v")

            _in_threads(write, store.patience)
            assert not opened.pending
            assert not opened.gaps
            lineage = opened.lineage
        assert lineage.is_complete()
        assert store.judge(lineage).satisfied
        for mine in keys:
            for key in mine:
                assert store.shows(key, "v")

    def test_open_transaction(self, store: StoreUnderTest) -> None:
        """What leaves before the commit is marked; the position is taken after it (SCOPE-14, SCOPE-18, SHIM-11)."""
        key = store.new_key()
        with scope() as opened:
            with store.transaction() as transaction:
                transaction.write(key, "v")
                assert deserialize(serialize()).incomplete == {store.name}
                configure(on_pending="raise")
                with pytest.raises(PendingWriteError):
                    serialize()
                configure(on_pending="mark")
            assert not opened.pending
            assert deserialize(serialize()).is_complete()
            lineage = opened.lineage
        assert lineage.of_store(store.name)
        assert store.judge(lineage).satisfied
        assert store.shows(key, "v")

    @pytest.mark.parametrize("begun", ["in a scope", "outside"])
    def test_transaction_over_two_scopes(self, store: StoreUnderTest, begun: str) -> None:
        """Each scope that wrote in a shared transaction waits for its commit, and so does who commits it (SCOPE-24)."""
        keys = [store.new_key() for _ in range(3)]
        shared = store.transaction()
        with ExitStack() as scopes:
            if begun == "outside":
                transaction = shared.__enter__()
                transaction.write(keys[0], "v")
                first = scopes.enter_context(scope())
            else:
                first = scopes.enter_context(scope())
                transaction = shared.__enter__()
            transaction.write(keys[1], "v")
            second = scopes.enter_context(scope())
            transaction.write(keys[2], "v")
            for opened in (first, second):
                assert opened.lineage.incomplete == {store.name}
            third = scopes.enter_context(scope())
            assert third.lineage.is_complete()
            store.partition(store.near)
            shared.__exit__(None, None, None)
            for opened in (first, second, third):
                assert not opened.pending
                assert opened.lineage.is_complete()
            lineages = [first.lineage, second.lineage, third.lineage]
        for lineage in lineages:
            assert lineage.of_store(store.name)
            assert not store.judge(lineage, store.brief).satisfied
        store.heal(store.near)
        for key, lineage in zip([*keys[1:], keys[2]], lineages, strict=True):
            assert store.judge(lineage).satisfied
            assert store.shows(key, "v")

    def test_transaction_only_read_so_far(self, store: StoreUnderTest) -> None:
        """A transaction that only read is not pending, and leaves nothing, whoever ends it (SCOPE-15)."""
        key = store.new_key()
        store.written(key, "v")
        shared = store.transaction()
        with scope() as opened:
            configure(on_pending="raise")
            transaction = shared.__enter__()
            transaction.read(key)
            assert deserialize(serialize()).is_complete()
            with scope() as other:
                shared.__exit__(None, None, None)
                assert deserialize(serialize()).is_complete()
                assert not other.lineage.of_store(store.name)
            assert deserialize(serialize()).is_complete()
            assert not opened.lineage.of_store(store.name)

    def test_rolled_back_transaction(self, store: StoreUnderTest) -> None:
        """An aborted transaction leaves nothing (SCOPE-17, SHIM-11)."""
        key = store.new_key()

        class Abort(Exception):
            pass

        def abort() -> None:
            with store.transaction() as transaction:
                transaction.write(key, "v")
                raise Abort

        with scope() as opened:
            with pytest.raises(Abort):
                abort()
            assert not opened.pending
            assert not opened.lineage
            assert opened.lineage.is_complete()
        assert store.look(key, store.primary) is None

    def test_unknown_outcome(self, store: StoreUnderTest) -> None:
        """A write whose answer never came stays pending: what leaves is marked for the scope's life (SCOPE-17)."""
        with scope() as opened:
            with pytest.raises(Exception):  # noqa: B017  # the client's own
                store.write_with_unknown_outcome(store.new_key(), "v")
            assert [write.unknown for write in opened.pending] == [True]
            assert opened.lineage.incomplete == {store.name}
            assert deserialize(serialize()).incomplete == {store.name}
            store.until(lambda: self._writes(store), "the store is usable again")
            assert opened.lineage.incomplete == {store.name}

    @staticmethod
    def _writes(store: StoreUnderTest) -> bool:
        try:
            store.write(store.new_key(), "v")
        except Exception:
            return False
        return True

    def test_refused_write(self, store: StoreUnderTest) -> None:
        """A write that the server refused did not happen, and is not pending (SCOPE-14)."""
        with scope() as opened:
            with pytest.raises(Exception):  # noqa: B017  # the client's own
                store.write_refused(store.new_key())
            assert not opened.pending
            assert opened.lineage.is_complete()

    @only("position")
    def test_implausible_position(self, store: StoreUnderTest) -> None:
        """A position that the store has not reached never passes, and the next write drops it (LIN-28)."""
        [mine] = store.written(store.new_key()).of_store(store.name)
        assert isinstance(mine.version, Ordered)
        forged = WriteId.position(store.name, mine.version.epoch, MAX_COUNTER)
        assert not store.judge(Lineage([forged]), store.brief).satisfied
        with message_scope(Lineage([forged]).serialize()) as opened:
            key = store.new_key()
            store.write(key, "v")
            assert forged not in opened.lineage
            assert opened.lineage.incomplete == {store.name}
            assert [gap.reason for gap in opened.gaps] == ["implausible"]
            assert store.judge(opened.lineage).satisfied
        assert store.shows(key, "v")

    def test_implausible_version(self, store: StoreUnderTest) -> None:
        """A version that no writer gave never passes, at an object that is there or one that is not."""
        key = store.new_key()
        mine = store.written(key)
        assert store.judge(mine).satisfied
        for write_id in mine.of_store(store.name):
            version = write_id.version
            if write_id.key and isinstance(version, Ordered):
                forged = write_id._replace(version=Ordered(version.epoch, MAX_COUNTER))
                assert not store.judge(Lineage([forged]), store.brief).satisfied
            elif isinstance(version, Opaque):
                forged = write_id._replace(version=Opaque("kit-unheard-of"))
                assert not store.judge(Lineage([forged]), store.brief).satisfied
            if write_id.key and not store.capabilities.tap:  # a message is known by its mark alone
                absent = write_id._replace(key=store.new_key().encode())
                assert not store.judge(Lineage([absent]), store.brief).satisfied
        unheard = WriteId.position(store.name, "kit-unheard-of", 1)
        assert not store.judge(Lineage([unheard]), store.brief).satisfied

    def test_malformed_lineage(self, store: StoreUnderTest) -> None:
        """Who comes with what cannot be read writes all the same, and stays incomplete (LIN-17)."""
        for text in (f"1~{store.name}", "2~some.thing.new.1", "1~" + "x" * 5000):
            with message_scope(text) as opened:
                store.write(store.new_key(), "v")
                assert not opened.lineage.is_complete()
                result = store.judge(opened.lineage)
                assert result.satisfied
                assert not result.complete

    def test_missing_rights(self, store: StoreUnderTest, caplog: pytest.LogCaptureFixture) -> None:
        """Without a right that Antipode needs: an error at wrapping, or an incomplete lineage and a log line, with the
        grant (SHIM-3, EPOCH-5, EPOCH-26)."""
        key = store.new_key()
        with scope() as opened:
            try:
                store.write_without_rights(key, "v")
            except UnfitStoreError as error:
                told = str(error)
            else:
                assert store.look(key, store.primary) == "v", "the write itself is allowed"
                store.until(lambda: store.rights_cure in caplog.text, "a log line holds the grant")
                told = caplog.text
                lineage = opened.lineage
                assert lineage.of_store(store.name) or lineage.incomplete == {store.name}
        assert store.rights_cure
        assert store.rights_cure in told

    def test_unfit_topology(self, store: StoreUnderTest) -> None:
        """Where versions lie the shim refuses to wrap, and says what to change (SHIM-3, EPOCH-7)."""
        with pytest.raises(UnfitStoreError) as refused:
            store.wrap_unfit()
        assert store.unfit_cure
        assert store.unfit_cure in str(refused.value)
