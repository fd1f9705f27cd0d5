"""Pipelines and transactions of the wrapped asyncio client: as `pipeline`, with `await`."""

from __future__ import annotations

from typing import Any

from antipode.errors import AntipodeError
from antipode.lineage import EMPTY
from antipode.read import PLAIN
from redis.asyncio.client import Pipeline
from redis.exceptions import RedisError, ResponseError, WatchError

from antipode_redis.aio import AsyncRecording, ask_apart, drive, hear
from antipode_redis.binding import Binding
from antipode_redis.calls import WriteCall
from antipode_redis.client import recording_class
from antipode_redis.commands import Kind, classify, command_name
from antipode_redis.noting import answered, sent
from antipode_redis.pipeline import Facade, _partly, _told
from antipode_redis.reads import ReadCall, read_call, wait_of, wait_steps
from antipode_redis.serving import (
    CALL,
    PASSED,
    Batch,
    ByHand,
    all_failed,
    certain,
    ends_unseen,
    hidden,
    may_answer,
    may_write,
    without_lineage,
)


class AsyncFacade(Facade):
    """A connection during one batch: it packs our question behind the batch, and passes all else on."""

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # type: ignore[override]
        """Sends the batch with the question behind it, in one packet."""
        await self._connection.send_packed_command(self._with_question(command), check_health)

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """One reply."""
        decode = self._reading(options)
        try:
            value = await self._connection.read_response(*args, **options)
        except ResponseError:
            self._batch.passed(None, self._transaction)
            raise
        return self._batch.passed(value, self._transaction, decode=decode)


class AsyncRecordingPipeline(AsyncRecording, Pipeline):  # type: ignore[misc]
    """A redis-py pipeline whose writes are recorded. Made by the wrapped client."""

    _antipode_multi = False
    _antipode_call: WriteCall | None = None
    """Pending from the first queued command that may write."""
    _antipode_sending: tuple[WriteCall | None, ReadCall | None] | None = None

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
        return super().pipeline_execute_command(*args, **options)  # type: ignore[no-untyped-call]

    async def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """A command between WATCH and MULTI is executed at once."""
        binding = self._antipode
        kind = classify(args)
        if binding is None or kind is Kind.OTHER:
            return await super().immediate_execute_command(*args, **options)  # type: ignore[no-untyped-call]
        binding.refresh()
        binding.check(args)
        if not binding.records:
            args = tuple(without_lineage(binding, args, options))
            return await super().immediate_execute_command(*args, **options)  # type: ignore[no-untyped-call]
        if kind is Kind.TRANSACTION:
            options[CALL] = by_hand = ByHand(binding, command_name(args))
            response = await super().immediate_execute_command(*args, **options)  # type: ignore[no-untyped-call]
            by_hand.check()
            return response
        if kind is Kind.READ:
            read = read_call(binding, self, [(args, options)])
            if read is None:
                options[CALL] = hidden(binding, args) or PASSED
                return await super().immediate_execute_command(*args, **options)  # type: ignore[no-untyped-call]
            with read:
                options[CALL] = read if not read.is_plain else read.noticed or hidden(binding, args) or PASSED
                response = await super().immediate_execute_command(*args, **options)  # type: ignore[no-untyped-call]
                read.check()
                read.came([response])
            return response
        call = WriteCall(binding, kind is Kind.WRITE)
        call.wait = wait_of(call, args)
        options[CALL] = call
        if call.noted is not None:
            sent(self, call, [args])
        try:
            response = await super().immediate_execute_command(*args, **options)  # type: ignore[no-untyped-call]
            if call.wait is not None:
                call.wait.check()
        except BaseException as error:
            call.failed(error)
            raise
        if call.noted is not None:
            answered(self, call, [(args, response)])
        call.done(response)
        return response

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """As redis-py's; the batch's position joins the scope."""
        binding = self._antipode
        if binding is None:
            return await super().execute(raise_on_error)
        binding.refresh()
        read = None
        if binding.records and may_answer(self.command_stack):
            try:
                read = read_call(binding, self, self.command_stack)
            except AntipodeError:  # as behind any other error, what was queued is gone
                await self.reset()
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
                responses = await super().execute(raise_on_error)
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

    async def _execute_transaction(self, connection: Any, commands: Any, raise_on_error: Any) -> Any:
        return await self._antipode_batch(super()._execute_transaction, connection, commands, raise_on_error, True)

    async def _execute_pipeline(self, connection: Any, commands: Any, raise_on_error: Any) -> Any:
        return await self._antipode_batch(super()._execute_pipeline, connection, commands, raise_on_error, False)

    async def _antipode_batch(
        self, execute: Any, connection: Any, commands: Any, raise_on_error: Any, transaction: bool
    ) -> Any:
        if self._antipode is None:
            return await execute(connection, commands, raise_on_error)
        queued = [args for args, _ in commands] if self._antipode.by_hand else ()
        if self._antipode_sending is None:
            self._antipode.note_queued(connection, *queued)
            return await execute(connection, commands, raise_on_error)
        call, read = self._antipode_sending
        if read is not None and read.ids and (self._antipode.queues(connection) or ends_unseen(commands)):
            if read.is_past(EMPTY):  # nothing can be asked in a MULTI that was sent by hand
                return []
        elif read is not None and read.ids:
            await drive(wait_steps(read, multi=not self.watching), connection, self._antipode)
            if read.refuses():
                return []
        self._antipode.note_queued(connection, *queued)
        batch = Batch(self._antipode, call, read, commands)
        if read is not None and (batch.apart or not batch.asks):
            read.mark()  # nothing tells where the values were read
        if batch.plain:
            return await execute(connection, commands, raise_on_error)
        if call is not None:
            call.reply = None
        if batch.apart:
            return await self._antipode_batch_apart(execute, batch, connection, commands, raise_on_error)
        facade = AsyncFacade(connection, batch, transaction)
        try:
            responses = await execute(facade, commands, raise_on_error)
        except (ResponseError, WatchError):  # every reply has been read but ours
            if batch.asks and connection.is_connected:
                await hear(batch, connection)
                _told(batch)
            raise
        except BaseException as error:
            if call is not None:
                call.broke(error)
            if batch.asks:
                await connection.disconnect()
            raise
        if batch.asks:
            await hear(batch, connection)
            _told(batch)
        return responses

    async def _antipode_batch_apart(
        self, execute: Any, batch: Batch, connection: Any, commands: Any, raise_: Any
    ) -> Any:
        call = batch.call
        if call is None:
            return await execute(connection, commands, raise_)
        call.reached = True
        try:
            return await execute(connection, commands, raise_)
        except (RedisError, OSError) as error:
            call.broke(error)
            raise
        finally:
            await ask_apart(call, connection)

    def __del__(self, *args: Any, **options: Any) -> None:
        if self._antipode_call is not None:
            self._antipode_call.abandon()  # queued, and never sent
        super().__del__(*args, **options)

    async def reset(self) -> None:  # type: ignore[override]
        """As redis-py's; what was queued and never sent did not happen."""
        call, self._antipode_call = self._antipode_call, None
        if call is not None:
            call.abandon()
        await super().reset()  # type: ignore[no-untyped-call]


def recording_pipeline(pipeline: Any, binding: Binding | None) -> Any:
    """Makes a pipeline record its writes."""
    if binding is not None and isinstance(pipeline, Pipeline):
        pipeline.__class__ = recording_class(type(pipeline), AsyncRecordingPipeline)
        pipeline._antipode = binding  # type: ignore[attr-defined]
    return pipeline
