"""Writes to a replica set: the position of one that a majority acknowledged is the session's operationTime.

What a majority has acknowledged no election loses; anything else may be rolled back under its time, so it gets no
position (spec EPOCH-3, EPOCH-6). A transaction's writes are pending until its commit has returned (SHIM-11).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from antipode import Ordered, UnfitStoreError, current_scope
from antipode.shim import Write
from antipode.shim.both_ways import BlockingCall, Steps
from pymongo.errors import ConfigurationError, OperationFailure
from pymongo.write_concern import WriteConcern

from antipode_mongodb import noting
from antipode_mongodb.binding import Binding
from antipode_mongodb.flavour import counter_of, is_durable_majority
from antipode_mongodb.outcome import ONE, Parts, incomplete, not_committed, settle

ADVICE = (
    "they are not acknowledged by a majority, and may be rolled back at a failover under their position. Use "
    'w="majority" without journal=False (in the URL, the client or the collection; a command has to say it itself)'
)

NO_TIME = (
    "no operationTime came with the reply. A connection from before the server was a member of its replica set sees "
    "none: start the process anew"
)
MOVED = "it went over a new connection, which may lead to another replica set than the one that was asked before"


def is_majority(binding: Binding, concern: Mapping[str, Any]) -> bool:
    """Whether a majority acknowledges for good what is sent with this write concern; an empty one is the cluster's."""
    return is_durable_majority(concern) if concern else binding.flavour.majority


def positioned(
    binding: Binding,
    client: Any,
    concern: Mapping[str, Any],
    session: Any,
    call: Callable[[Any], Any],
    failure: Callable[[Any], BaseException | None] = lambda _: None,
    parts: Parts = ONE,
    note: Callable[[Write, Any], object] | None = None,
) -> Steps[Any]:
    """Makes a write by `call(session)`, and records its position.

    concern: as the server gets it. failure: the error in a result that the client did not raise. parts: the errors
    after which some of it may have happened. note: tells a recorded history what the operation changes, before it is
    sent and with its result.
    """
    write = binding.store.begin()
    if write.noted is None:
        note = None
    if note is not None:
        note(write, noting.UNSENT)
    if session is not None and session.in_transaction:
        enlist(session, write)
        result = yield call(session)
        if note is not None:
            note(write, result)
        return result
    if concern.get("w") == 0:
        try:
            result = yield call(session)
        except BaseException as error:
            settle([write], error, parts)
            raise
        if note is not None:
            note(write, result)
        incomplete([write], binding.store.name, "concern", ADVICE)
        return result
    own = session is None
    # A session of ours is one that the server has in any case; it sees the reply's time.
    used = client.start_session(causal_consistency=False) if own else session
    epoch = binding.flavour.epoch
    try:
        try:
            result = yield call(used)
        except ConfigurationError as error:
            if not own or used.operation_time is not None or "Sessions are not supported" not in str(error):
                raise
            # A connection from before the server was a member of its set: nothing has been sent, and without a session
            # the client can send it, and does not see the time of the reply.
            result = yield call(None)
        time = used.operation_time
    except BaseException as error:
        settle([write], error, parts)
        raise
    finally:
        if own:
            yield used.end_session()
    if note is not None:
        note(write, result)
    failed = failure(result)
    if failed is not None:
        settle([write], failed, parts)
    else:
        yield from recorded(binding, client, epoch, [write], time, concern)
    return result


def recorded(
    binding: Binding, client: Any, epoch: str, writes: list[Write], time: Any, concern: Mapping[str, Any]
) -> Steps[None]:
    """The writes lie at this time of the replica set, or before it. epoch: the set's id before they were sent."""
    same = True
    if not binding.known(client):
        try:
            same = yield BlockingCall(lambda: binding.learn(client))
        except UnfitStoreError:  # the application's own operation was done
            same = False
        except BaseException:
            incomplete(writes, binding.store.name, "position", MOVED)
            raise
    if not is_majority(binding, concern):
        incomplete(writes, binding.store.name, "concern", ADVICE)
    elif not same or binding.flavour.epoch != epoch:
        incomplete(writes, binding.store.name, "position", MOVED)
    elif time is None:
        incomplete(writes, binding.store.name, "position", NO_TIME)
    else:
        for write in writes:
            write.record(Ordered(epoch, counter_of(time)))


# Transactions: the session keeps their writes


def bound_session(client: Any) -> Any:
    """Return the session that `ClientSession.bind()` gives to calls that name none; None where there is none."""
    find = getattr(client, "_get_bound_session", None)  # of later releases of PyMongo
    return None if find is None else find()


def enlist(session: Any, write: Write) -> None:
    """A write inside a transaction is pending until that ends."""
    session.__dict__.setdefault("_antipode_writes", []).append(write)


def taken(session: Any) -> list[Write]:
    """The writes of the transaction that ends now."""
    writes: list[Write] = session.__dict__.pop("_antipode_writes", [])
    return writes


def committed(binding: Binding, session: Any, call: Callable[[], Any]) -> Steps[Any]:
    """`commit_transaction`."""
    options = session._transaction.opts
    concern = (options.write_concern if options is not None else None) or WriteConcern()
    writes: list[Write] = list(session.__dict__.get("_antipode_writes", []))
    scope = current_scope()
    if writes and scope is not None and not any(write in scope.pending for write in writes):
        writes[0].join_committer()  # before it is sent (SCOPE-24)
    epoch = binding.flavour.epoch
    try:
        result = yield call()
    except OperationFailure as error:
        if not_committed(error):
            for write in taken(session):
                write.abandon()
        raise
    # After any other failure it may have happened, or be tried again: the writes stay pending, and the session's.
    taken(session)
    if writes:
        yield from recorded(binding, session.client, epoch, writes, session.operation_time, concern.document)
    return result


def aborted(session: Any, call: Callable[[], Any]) -> Steps[Any]:
    """`abort_transaction`: what was written is not there, whatever becomes of the call (SHIM-11).

    Outside a transaction the client refuses it, and sends nothing: a commit before it may have happened (SCOPE-17).
    """
    runs = session.in_transaction
    try:
        return (yield call())
    finally:
        for write in taken(session) if runs else ():
            write.abandon()
