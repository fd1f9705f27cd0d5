"""The adversary through the clients of Java and C++ (SHIM-49): short in `make interop`, long in `make test-stores`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from antipode.testing import adversary
from antipode.testing.adversary import Stage
from antipode_benchmarks.postnotification.options import Language
from language_adversary import staged

LANGUAGES: list[Language] = ["java", "cpp"]
PAIRS = list(product(LANGUAGES, ["postgresql", "redis"]))
NAMES = ["-".join(pair) for pair in PAIRS]


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with staged(*request.param) as opened:
        yield opened


@pytest.mark.interop
@pytest.mark.timeout(600)
@pytest.mark.parametrize("stage", PAIRS, ids=NAMES, indirect=True)
def test_a_few_programs_lose_nothing(stage: Stage) -> None:
    tally = adversary.play(stage, 40, seed=1)
    assert not tally.findings, f"{tally}"
    assert tally.committed, f"{tally}"


@pytest.mark.stores
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pair", PAIRS, ids=NAMES)
def test_many_programs_lose_nothing(pair: tuple[Language, str]) -> None:
    with staged(*pair) as stage:
        tally = adversary.play(stage, 500, seed=10_000, say=print)
    print(tally)
    assert not tally.findings, f"{tally}"
    assert tally.programs == 500, f"too much was found: {tally}"
    assert tally.committed > tally.programs / 4, f"hardly anything was committed: {tally}"
