"""A process that writes to a Redis at an even rate, through the shim, and notes each write's position and times."""

from __future__ import annotations

import time
from multiprocessing import get_context, shared_memory
from types import TracebackType
from typing import Self

import antipode
import antipode_redis
import redis
from antipode._model.write_id import Ordered

from antipode_benchmarks.micro.process import fresh

STORE = "blog-posts"
_FIELDS = 3  # position, sent, acknowledged: the latter by the monotonic clock, which all processes share
_HEAD = 2  # how many writes there are; whether to stop


class Writer:
    """The process, and what it has written so far. `epoch` is there once the first write is."""

    def __init__(self, url: str, rate: float, most: int) -> None:
        self._memory = shared_memory.SharedMemory(create=True, size=8 * (_HEAD + _FIELDS * most) + 64)
        self._words = _octets(self._memory)[: 8 * (_HEAD + _FIELDS * most)].cast("Q")
        self._words[0] = self._words[1] = 0
        context = get_context("spawn")
        self._process = context.Process(target=_write, args=(self._memory.name, url, rate, most), daemon=True)
        self._process.start()

    @property
    def count(self) -> int:
        """How many writes were acknowledged."""
        return int(self._words[0])

    @property
    def alive(self) -> bool:
        """Whether it still writes."""
        return self._process.is_alive()

    def write(self, number: int) -> tuple[int, int, int]:
        """A write's position, and when it was sent and acknowledged (nanoseconds, `time.monotonic_ns`)."""
        at = _HEAD + _FIELDS * number
        return int(self._words[at]), int(self._words[at + 1]), int(self._words[at + 2])

    @property
    def epoch(self) -> str:
        """The epoch of every write."""
        tail = _octets(self._memory)[self._words.nbytes : self._words.nbytes + 64]
        return bytes(tail).rstrip(b"\0").decode()

    def close(self) -> None:
        """Ends the process."""
        self._words[1] = 1
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._words.release()
        self._memory.close()
        self._memory.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _octets(memory: shared_memory.SharedMemory) -> memoryview:
    assert memory.buf is not None  # it is open
    return memory.buf


def _write(memory_name: str, url: str, rate: float, most: int) -> None:
    memory = shared_memory.SharedMemory(memory_name)
    size = 8 * (_HEAD + _FIELDS * most)
    octets = _octets(memory)
    words = octets[:size].cast("Q")
    with fresh(), redis.Redis.from_url(url) as client:
        posts = antipode_redis.wrap(client, store=STORE)
        due = time.monotonic()
        for number in range(most):
            if words[1]:
                break
            with antipode.scope() as scope:
                sent = time.monotonic_ns()
                posts.set(f"post:{number % 1000}", b"x" * 100)
                acknowledged = time.monotonic_ns()
                (write_id,) = scope.lineage.of_store(STORE)
            version = write_id.version
            assert isinstance(version, Ordered)
            if not number:
                name = version.epoch.encode()
                octets[size : size + len(name)] = name
            at = _HEAD + _FIELDS * number
            words[at], words[at + 1], words[at + 2] = version.counter, sent, acknowledged
            words[0] = number + 1
            due += 1 / rate
            time.sleep(max(due - time.monotonic(), 0))
    words.release()
    memory.close()
