"""Asking servers by URL: each in a thread of its own under one deadline, errors as sentences without credentials."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from antipode.cli.output import printable
from antipode.shim.administration import scrubbed

_T = TypeVar("_T")
PATIENCE_S: Final = 15.0
"""How long a command waits for its servers, in seconds; shims bound their own questions more tightly."""


@dataclass
class Answer(Generic[_T]):
    """What came back from one server: a value, or a sentence that says why there is none."""

    url: str
    value: _T | None = None
    error: str = ""
    in_time: bool = True
    """False where nobody knows how it ended."""


def ask(url: str, question: Callable[[], _T], patience: float = PATIENCE_S) -> Answer[_T]:
    """One question to one server."""
    return ask_all([(url, question)], patience)[0]


def ask_all(questions: Sequence[tuple[str, Callable[[], _T]]], patience: float = PATIENCE_S) -> list[Answer[_T]]:
    """All questions at once; the answers in their order. Ends after `patience` seconds whatever the servers do."""
    answers = [Answer[_T](url, error=f"no answer within {patience:g} s", in_time=False) for url, _ in questions]

    def run(place: int, url: str, question: Callable[[], _T]) -> None:
        try:
            answers[place] = Answer(url, question())
        except Exception as error:
            words = " ".join(str(error).split()) or type(error).__name__
            answers[place] = Answer(url, error=printable(scrubbed(words, url)))

    # Daemons: a client that hangs must not keep the command from ending.
    threads = [
        threading.Thread(target=run, args=(place, url, question), name=f"antipode-ask-{place}", daemon=True)
        for place, (url, question) in enumerate(questions)
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + patience
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0.0))
    return list(answers)
