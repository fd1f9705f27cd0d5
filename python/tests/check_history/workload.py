"""A random workload of several services on two stores, recorded; and what in it was stale, by the driver's own books.

Requests run at once, in threads. Each goes through several services in three regions: by messages, by calls with their
responses, or in tasks of its own beside one another. Each service writes at the primary and reads at its own region.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import antipode
from antipode import memory
from antipode._diagnostics.history import recorder
from antipode._model.errors import AntipodeError
from antipode.memory.node import Versions
from antipode.messages import HEADER, message_scope, outgoing_message
from antipode.propagation import extract_request, extract_response, inject_request, inject_response
from antipode.testing.books import Oracle

REGIONS = ("a", "b", "c")
KEYS = ("1", "2", "3", "4")
LAG_S = 0.02


class Workload:
    """One run."""

    def __init__(self, folder: Path, seed: int, *, barriers: bool, versions: Versions) -> None:
        self.books = Oracle()
        self._barriers = barriers
        self._random = random.Random(seed)
        antipode.configure(history=folder, auto_merge=True)
        self.stores = {
            name: memory.Store(name, regions=regions, lag=LAG_S, versions=versions)
            for name, regions in (("posts", REGIONS), ("follows", ("b", "c", "a")))
        }
        self._clients = {(name, at): store.client(at) for name, store in self.stores.items() for at in REGIONS}
        self._primary = {"posts": "a", "follows": "b"}

    def run(self, requests: int = 12) -> Oracle:
        """All requests, four at a time, while a link is cut for a while and a primary moves."""
        seeds = [self._random.random() for _ in range(requests)]
        with ThreadPoolExecutor(4) as pool, self._faults():
            for done in [pool.submit(self._request, random.Random(seed)) for seed in seeds]:
                done.result()
        recorder.forget()
        return self.books

    @contextmanager
    def _faults(self) -> Iterator[None]:
        cut = self._random.choice(REGIONS[1:])
        moves = self._random.random() < 0.5
        over = threading.Event()

        def fail() -> None:
            self.stores["posts"].freeze(cut)
            over.wait(0.1)
            self.stores["posts"].heal(cut)
            if moves:
                time.sleep(2 * LAG_S)
                self._primary["follows"] = "c"
                self.stores["follows"].promote("c")

        failing = threading.Thread(target=fail)
        failing.start()
        try:
            yield
        finally:
            over.set()
            failing.join()

    def _request(self, own: random.Random) -> None:
        with antipode.scope():
            self._serve(own, own.choice(REGIONS), set(), depth=0)

    def _serve(self, own: random.Random, region: str, past: set[int], depth: int) -> None:
        for _ in range(own.randint(1, 3)):
            self._operate(own, region, past)
        if depth == 3:
            return
        there = own.choice(REGIONS)
        if own.random() < 0.5:
            text = outgoing_message()
            with message_scope({HEADER: text} if text else {}):
                self._serve(own, there, set(past), depth + 1)
        else:
            asked: dict[str, str] = {}
            answered: dict[str, str] = {}
            inject_request(asked, "localhost")
            with extract_request(asked, "127.0.0.1"):
                theirs = set(past)
                self._serve(own, there, theirs, depth + 1)
                inject_response(answered)
            extract_response(answered, "localhost")
            past |= theirs
        self._operate(own, region, past)

    def _operate(self, own: random.Random, region: str, past: set[int]) -> None:
        name, key = own.choice(sorted(self.stores)), own.choice(KEYS)
        if own.random() < 0.5:
            number = self.books.write((name, key), past)
            try:
                self._clients[name, self._primary[name]].set(key, str(number))
            except PermissionError:  # the primary has moved at this very moment
                past.discard(number)
            return
        try:
            if self._barriers:
                antipode.barrier(timeout=5)
        except AntipodeError:
            return
        found = self._clients[name, region].get(key)
        self.books.read((name, key), None if found is None else int(found), past)
