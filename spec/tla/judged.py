#!/usr/bin/env python3
"""Make the vectors of the judge from what the model Marks judged: each question once, with what the model says.

    spec/tla/check.py Marks_judged && spec/tla/judged.py    write them into spec/vectors/epoch-judge.json
    spec/tla/judged.py --check                              fail where the file has others

They stand behind those that were written by hand. They are minimal: epochs have names by their part in the question,
and counters are their places in the order of all that stand in it, from 1. A server that is nowhere, emptied by a full
copy that failed, has applied 0.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

SPEC: Final = Path(__file__).resolve().parents[1]
TOLD: Final = SPEC.parent / "build" / "tla" / "Marks_judged.out"
"""What TLC said, as check.py leaves it."""
FILE: Final = SPEC / "vectors" / "epoch-judge.json"
MODEL: Final = "model-"
"""Ids of cases that come from here begin so."""
NAMES: Final = ("here", "there", "third")
_JUDGED: Final = re.compile(r'^<<"judged", (.*), \((.*)\), (\d+), (\d+), "(.*)">>$', re.MULTILINE)
_MARK: Final = re.compile(r"(\d+) :> (-?\d+)")


class Question(NamedTuple):
    """One position at one server, and the answer."""

    current: str
    applied: int
    known: Mapping[str, int]
    marks: Mapping[str, int]
    epoch: str
    counter: int
    answer: str

    def as_case(self) -> dict[str, Any]:
        """Return the vector."""
        parts = [f"{self.epoch}{self.counter}", f"at{self.applied}"]
        for word, ends in (("marks", self.marks), ("known", self.known)):
            if ends:
                parts += [word, *(f"{epoch}{ends[epoch]}" for epoch in sorted(ends))]
        server = {"epoch": self.current, "applied": str(self.applied), "marks": _spelled(self.marks)}
        return {
            "id": MODEL + "-".join(parts),
            "req": [self._requirement],
            "server": server | ({"known": _spelled(self.known)} if self.known else {}),
            "epoch": self.epoch,
            "counter": str(self.counter),
            "answer": self.answer,
            "unknown_epoch": self._is_unknown,
        }

    @property
    def _is_unknown(self) -> bool:
        return self.epoch not in {self.current, *self.known, *self.marks}

    @property
    def _requirement(self) -> str:
        if self.epoch == self.current:
            return "EPOCH-9"
        return {"visible": "EPOCH-10", "unproven": "EPOCH-11", "not_yet": "EPOCH-12"}[self.answer]


def _spelled(ends: Mapping[str, int]) -> dict[str, str]:
    return {epoch: str(ends[epoch]) for epoch in sorted(ends)}


def question_of(judged: re.Match[str]) -> Question:
    """Return a question by its line in TLC's output, made minimal."""
    current, applied, before, end = judged[1].split(", ")
    known = {before: int(end)} if int(before) >= 0 else {}
    marks = {epoch: int(counter) for epoch, counter in _MARK.findall(judged[2]) if int(counter) >= 0}
    epoch, counter = judged[3], int(judged[4])
    stand = {max(int(applied), 0), counter, *known.values(), *marks.values()} - {0}
    place = {0: 0, **{value: number for number, value in enumerate(sorted(stand), 1)}}

    def named(names: Mapping[str, str]) -> Question:
        return Question(
            names[current],
            place[max(int(applied), 0)],
            {names[each]: place[value] for each, value in known.items()},
            {names[each]: place[value] for each, value in marks.items()},
            names[epoch],
            place[counter],
            judged[5].replace(" ", "_"),
        )

    # The server's epoch is here, the position's there; which of the others is which means nothing.
    first = list(dict.fromkeys([current, epoch]))
    others = sorted({*known, *marks} - {*first})
    alike = [named(dict(zip([*first, *order], NAMES, strict=False))) for order in itertools.permutations(others)]
    return min(alike, key=lambda each: str(each.as_case()["id"]))


def made() -> list[dict[str, Any]]:
    """Return the cases, by what TLC told last.

    Raises:
        SystemExit: where it has told nothing yet, or two answers to one question.
    """
    if not TOLD.exists():
        sys.exit(f"no {TOLD}: run spec/tla/check.py Marks_judged first")
    cases: dict[str, dict[str, Any]] = {}
    for judged in _JUDGED.finditer(TOLD.read_text("utf-8")):
        case = question_of(judged).as_case()
        if cases.setdefault(case["id"], case) != case:
            sys.exit(f"two answers to one question, {case['id']}")
    if not cases:
        sys.exit(f"{TOLD} tells nothing that was judged")
    return [cases[each] for each in sorted(cases)]


def main() -> None:
    """Write the cases, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the file has others")
    only_checks = parser.parse_args().check
    document = json.loads(FILE.read_text("utf-8"))
    own = [case for case in document["cases"] if not case["id"].startswith(MODEL)]
    cases = made()
    if only_checks:
        if document["cases"] != own + cases:
            sys.exit(f"{FILE} does not have what the model says: run spec/tla/judged.py")
    else:
        lines = ",\n".join(f"    {json.dumps(case)}" for case in own + cases)
        head = "".join(
            f"  {json.dumps(name)}: {json.dumps(document[name])},\n" for name in ("vectors", "kind", "about")
        )
        FILE.write_text(f'{{\n{head}  "cases": [\n{lines}\n  ]\n}}\n', "utf-8")
    print(f"{len(cases)} questions to the judge, as the model answers them")


if __name__ == "__main__":
    main()
