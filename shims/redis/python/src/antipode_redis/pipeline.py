"""Pipelines and transactions of the wrapped clients: one question a batch, behind the last command or EXEC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis.asyncio.client
import redis.client
from antipode import EMPTY, AntipodeError
from antipode.shim import PLAIN
from antipode.shim.both_ways import Steps, run, run_async
from redis.exceptions import RedisError, ResponseError, WatchError

from antipode_redis.binding import Binding
from antipode_redis.calls import WriteCall
from antipode_redis.client import Recording, ask_apart, hear, recording_class
from antipode_redis.info import QUESTION
from antipode_redis.lines import AsyncLine
from antipode_redis.noting import answered, sent
from antipode_redis.reads import ReadCall, parsed, read_call, wait_steps
from antipode_redis.serving import Batch, all_failed, certain, ends_unseen, may_answer, may_write


class Facade:
    """A connection during one batch: it packs our question behind the batch, and passes all else on."""

    def __init__(self, connection: Any, batch: Batch, transaction: bool) -> None:
        self.__dict__.update(_connection=connection, _batch=batch, _transaction=transaction)

    def pack_commands(self, commands: Sequence[Any]) -> list[Any]:
        """The commands' bytes, with lineages beside hash writes."""
        packed: list[Any] = self._connection.pack_commands(self._batch.wire(list(commands)))
        return packed

    def send_packed_command(self, command: Any, check_health: bool = True) -> Any:
        """Sends the batch with the question behind it, in one packet."""
        return self._connection.send_packed_command(self._with_question(command), check_health)

    def _with_question(self, command: Any) -> list[Any]:
        chunks = list(command)
        if self._batch.asks and chunks:
            chunks[-1] = bytes(chunks[-1]) + QUESTION
        if self._batch.call is not None:
            self._batch.call.reached = True
        return chunks

    def read_response(self, *args: Any, **options: Any) -> Any:
        """One reply."""
        decode = self._reading(options)
        try:
            value = self._connection.read_response(*args, **options)
        except ResponseError:
            self._batch.passed(None, self._transaction)
            raise
        return self._batch.passed(value, self._transaction, decode=decode)

    def _reading(self, options: dict[str, Any]) -> bool:
        """Has a reply that is to be opened read without decoding; whether it is to be decoded then."""
        decode = not options.get("disable_decoding", False)
        if self._batch.raw(self._transaction):
            options["disable_decoding"] = True
        return decode

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._connection, name, value)


class AsyncFacade(Facade):
    """The same, for asyncio."""

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """One reply."""
        decode = self._reading(options)
        try:
            value = await self._connection.read_response(*args, **options)
        except ResponseError:
            self._batch.passed(None, self._transaction)
            raise
        return self._batch.passed(value, self._transaction, decode=decode)


class RecordingBatch(Recording):
    """The common part of the two pipelines."""

    _antipode_multi = False
    _antipode_call: WriteCall | None = None
    """Pending from the first queued command that may write."""
    _antipode_sending: tuple[WriteCall | None, ReadCall | None] | None = None
    _antipode_facade: type[Facade] = Facade
    command_stack: Any
    reset: Any
    watching: bool

    def pipeline_execute_command(self, *args: Any, **options: Any) -> Any:
        """Queues a command: from the first one that may write, the scope has a write in flight."""
        binding = self._antipode
        if binding is not None:
            binding.check(args)
        if binding is not None and may_write(args):
            if self._antipode_call is not None:
                self._antipode_call.join_scope()
            else:
                binding.refresh()
                if binding.records:
                    self._antipode_call = WriteCall(binding, True)
        return super().pipeline_execute_command(*args, **options)  # type: ignore[misc]

    def _antipode_execute(self, plain: Any, raise_on_error: bool) -> Steps[list[Any]]:
        """All that is queued; the batch's position joins the scope."""
        binding = self._antipode
        responses: list[Any]
        if binding is None:
            responses = yield plain(raise_on_error)
            return responses
        binding.refresh()
        read = None
        if binding.records and may_answer(self.command_stack):
            try:
                read = read_call(binding, self, self.command_stack)
            except AntipodeError:  # as behind any other error, what was queued is gone
                yield self.reset()
                raise
        call, self._antipode_call = self._antipode_call, None
        if call is not None:
            call.join_committer()
        noted = None if call is None else call.noted
        commands = [] if noted is None else [args for args, _ in self.command_stack]
        if call is not None and noted is not None:
            sent(self, call, commands)
        if call is not None:
            call.certain = certain(self.command_stack)
        # A pipeline whose reads are only observed is sent as it is.
        self._antipode_sending = (call, None if read is None or read.is_plain else read)
        with read or PLAIN:
            try:
                responses = yield plain(raise_on_error)
                if read is not None:
                    read.check()
            except BaseException as error:
                if call is not None:
                    if isinstance(error, WatchError) and not call.doubtful:
                        call.abandon()  # EXEC did nothing, or was never sent
                    else:
                        _partly(call, error)
                raise
            finally:
                self._antipode_sending = None
            if read is not None:
                read.came(responses)
            if call is not None:
                if call.noted is not None:
                    answered(self, call, list(zip(commands, responses, strict=True)))
                if all_failed(responses) and call.certain:
                    call.abandon()
                else:
                    call.done(responses)
        return responses

    def _execute_transaction(self, connection: Any, commands: Any, raise_on_error: Any) -> Any:
        plain = super()._execute_transaction  # type: ignore[misc]
        return self._antipode_run(self._antipode_batch(plain, connection, commands, raise_on_error, True))

    def _execute_pipeline(self, connection: Any, commands: Any, raise_on_error: Any) -> Any:
        plain = super()._execute_pipeline  # type: ignore[misc]
        return self._antipode_run(self._antipode_batch(plain, connection, commands, raise_on_error, False))

    def _antipode_batch(
        self, execute: Any, connection: Any, commands: Any, raise_on_error: Any, transaction: bool
    ) -> Steps[Any]:
        binding = self._antipode
        if binding is None:
            return (yield execute(connection, commands, raise_on_error))
        queued = [args for args, _ in commands] if binding.by_hand else ()
        if self._antipode_sending is None:
            binding.note_queued(connection, *queued)
            return (yield execute(connection, commands, raise_on_error))
        call, read = self._antipode_sending
        if read is not None and read.ids and (binding.queues(connection) or ends_unseen(commands)):
            if read.is_past(EMPTY):  # nothing can be asked in a MULTI that was sent by hand
                return []
        elif read is not None and read.ids:
            yield from wait_steps(self._antipode_line(connection, binding), read, multi=not self.watching)
            if read.refuses():
                return []
        binding.note_queued(connection, *queued)
        batch = Batch(binding, call, read, commands)
        if read is not None and (batch.apart or not batch.asks):
            read.mark()  # nothing tells where the values were read
        if batch.plain:
            return (yield execute(connection, commands, raise_on_error))
        if call is not None:
            call.reply = None
        if batch.apart:
            return (yield from self._antipode_batch_apart(execute, batch, connection, commands, raise_on_error))
        facade = self._antipode_facade(connection, batch, transaction)
        try:
            responses = yield execute(facade, commands, raise_on_error)
        except (ResponseError, WatchError):  # every reply has been read but ours
            if batch.asks and connection.is_connected:
                yield from hear(batch, connection)
                _told(batch)
            raise
        except BaseException as error:
            if call is not None:
                call.broke(error)
            if batch.asks:
                yield connection.disconnect()
            raise
        if batch.asks:
            yield from hear(batch, connection)
            _told(batch)
        return responses

    def _antipode_batch_apart(
        self, execute: Any, batch: Batch, connection: Any, commands: Any, raise_: Any
    ) -> Steps[Any]:
        call = batch.call
        if call is None:
            return (yield execute(connection, commands, raise_))
        call.reached = True
        try:
            return (yield execute(connection, commands, raise_))
        except (RedisError, OSError) as error:
            call.broke(error)
            raise
        finally:
            yield from ask_apart(call, connection)

    def _antipode_drop(self) -> None:
        """What was queued and never sent did not happen."""
        call, self._antipode_call = self._antipode_call, None
        if call is not None:
            call.abandon()


class RecordingPipeline(RecordingBatch, redis.client.Pipeline):
    """A redis-py pipeline whose writes are recorded. Made by the wrapped client."""

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """A command between WATCH and MULTI is executed at once."""
        return run(self._antipode_command(super().immediate_execute_command, args, options))

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """As redis-py's; the batch's position joins the scope."""
        return run(self._antipode_execute(super().execute, raise_on_error))

    def reset(self) -> None:  # type: ignore[override]
        """As redis-py's; what was queued and never sent did not happen."""
        self._antipode_drop()
        super().reset()


class AsyncRecordingPipeline(RecordingBatch, redis.asyncio.client.Pipeline):  # type: ignore[misc]
    """An asyncio pipeline of redis-py whose writes are recorded. Made by the wrapped client."""

    _antipode_run = staticmethod(run_async)
    _antipode_line = AsyncLine
    _antipode_facade = AsyncFacade

    async def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """A command between WATCH and MULTI is executed at once."""
        return await run_async(self._antipode_command(super().immediate_execute_command, args, options))

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """As redis-py's; the batch's position joins the scope."""
        return await run_async(self._antipode_execute(super().execute, raise_on_error))

    def __del__(self, *args: Any, **options: Any) -> None:
        self._antipode_drop()  # queued, and never sent
        super().__del__(*args, **options)

    async def reset(self) -> None:  # type: ignore[override]
        """As redis-py's; what was queued and never sent did not happen."""
        self._antipode_drop()
        await super().reset()


def _told(batch: Batch) -> None:
    """The answer behind a batch serves its writes and its reads."""
    if batch.call is not None:
        batch.call.reply = batch.reply
    if batch.reading is not None:
        batch.reading.saw_position(parsed(batch.reply))


def _partly(call: WriteCall, error: BaseException) -> None:
    """An error of one command of a batch says nothing of the others."""
    if isinstance(error, ResponseError) and call.reached and not call.doubtful:
        if getattr(error, "status_code", None) == "EXECABORT":
            call.abandon()
        else:
            if call.noted is not None:
                call.noted.changes(None)  # which of its commands were refused is not known here
            call.done(None)
    else:
        call.failed(error)


def recording_pipeline(pipeline: Any, binding: Binding | None) -> Any:
    """Makes a pipeline record its writes."""
    if binding is not None and isinstance(pipeline, redis.client.Pipeline | redis.asyncio.client.Pipeline):
        is_async = isinstance(pipeline, redis.asyncio.client.Pipeline)
        own: Any = AsyncRecordingPipeline if is_async else RecordingPipeline
        made: Any = pipeline
        made.__class__ = recording_class(type(pipeline), own)
        made._antipode = binding
    return pipeline
