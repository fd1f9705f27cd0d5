"""An application in another language, which the adversary plays (benchmarks/adversary.md, spec SHIM-49)."""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, TypeVar

from antipode._model.errors import AntipodeError
from antipode.testing.application import Application, Judgement

from antipode_benchmarks.postnotification.hosts import command
from antipode_benchmarks.postnotification.options import Language

T = TypeVar("T")

PATIENCE_S: Final = 120.0
"""What takes longer hangs."""


class ClientError(Exception):
    """What the plain client of the other language raises, too."""


class WorkerFailed(Exception):
    """The worker raised what no client raises, or did not answer."""


class Client:
    """A client that lives in a worker."""

    def __init__(self, worker: Worker, verb: str, **options: Any) -> None:
        self._worker = worker
        self.number = next(worker.numbers)
        worker.ask(verb, client=self.number, **options)

    def go(self, kind: str, way: str, row: str = "") -> Any:
        """Use it in one of its ways, in the current scope."""
        return self._worker.called(kind, client=self.number, scope=self._worker.current, way=way, row=row)

    def close(self) -> None:
        """Close it, whatever state it is in."""
        self._worker.called("close", client=self.number)


class Worker(Application):
    """A process that has scopes and clients, told line by line; a context manager that ends it.

    kind: the store's, of the lab; `primary` and `replica` are URLs.
    """

    def __init__(self, language: Language, kind: str, store: str, primary: str, replica: str) -> None:
        self.numbers = itertools.count(1)
        self.current = 0
        """The scope in which a client is used."""
        self._asked: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        words = [*command(language), "adversary"]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        threading.Thread(target=self._listen, daemon=True).start()
        self.ways: Mapping[str, list[str]] = self.ask("begin", kind=kind, store=store, primary=primary, replica=replica)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            self._asked.pop(answer["id"]).set_result(answer)
        for each in list(self._asked.values()):
            each.set_exception(WorkerFailed(f"the worker has ended with {self._process.wait()}"))

    def ask(self, verb: str, **words: Any) -> dict[str, Any]:
        """Tell the worker to do something; return what it answers. By any thread."""
        assert self._process.stdin is not None
        asked: Future[dict[str, Any]] = Future()
        with self._lock:
            number = next(self.numbers)
            self._asked[number] = asked
            try:
                self._process.stdin.write(json.dumps({"do": verb, "id": number, **words}) + "\n")
            except BrokenPipeError:
                raise WorkerFailed(f"the worker has ended with {self._process.wait()}") from None
        try:
            answer = asked.result(PATIENCE_S)
        except TimeoutError:
            raise WorkerFailed(f"no answer to {verb} {words}") from None
        if "failed" in answer:
            raise WorkerFailed(answer["failed"])
        return answer

    def called(self, verb: str, **words: Any) -> Any:
        """Have a client called; return what it gave, and raise what it raised."""
        answer = self.ask(verb, **words)
        if "raised" not in answer:
            return answer["gave"]
        raised = {"client": ClientError, "antipode": AntipodeError}.get(answer["whose"], WorkerFailed)
        raise raised(answer["raised"])

    def configure(self, timeout: float) -> None:
        self.ask("configure", timeout_ms=round(timeout * 1000))

    def enter(self, text: str = "") -> int:
        number = next(self.numbers)
        self.ask("enter", scope=number, text=text or "1")
        return number

    def run(self, entered: int, call: Callable[..., T], *values: Any) -> T:
        self.current = entered
        try:
            return call(*values)
        finally:
            self.current = 0

    def leave(self, entered: int) -> str:
        return str(self.ask("leave", scope=entered)["text"])

    def end(self, entered: int) -> None:
        self.ask("end", scope=entered)

    def look(self, entered: int) -> Judgement:
        return _judgement(self.ask("look", scope=entered))

    def judge(self, text: str, timeout: float = 0.0) -> Judgement:
        return _judgement(self.ask("judge", text=text, timeout_ms=round(timeout * 1000)))


def _judgement(answer: Mapping[str, Any]) -> Judgement:
    return Judgement(answer["satisfied"], answer["complete"], answer["unproven"], answer["words"])
