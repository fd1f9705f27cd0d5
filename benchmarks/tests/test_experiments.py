"""The paper's experiments, by their command, on real servers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from antipode_benchmarks.postnotification.experiments.bench import Bench
from antipode_benchmarks.postnotification.experiments.overhead import WAYS, estimate
from antipode_benchmarks.postnotification.experiments.paper import TABLE_1
from antipode_benchmarks.postnotification.experiments.report import Report, wrong
from antipode_benchmarks.postnotification.experiments.scale import MOST_OCTETS, NOTIFIERS, STORES, Scale
from antipode_lab.processes import wait_until
from rich.console import Console

COMMAND = [sys.executable, "-m", "antipode_benchmarks.postnotification.experiments"]
pytestmark = pytest.mark.timeout(240)
SMALL = ("--requests", "20", "--rate", "20")
PNG = b"\x89PNG\r\n\x1a\n"


def run(folder: Path, *words: str, timeout: float = 220) -> tuple[int, str, dict[str, Any]]:
    """Runs an experiment; its exit code, its output, and the result that the last line names. Its plot is there."""
    done = subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)
    named = re.search(r"^plot: (\S+)\nresult: (\S+)$", done.stdout, re.MULTILINE)
    assert named is not None, done.stdout + done.stderr
    assert (folder / named[1]).read_bytes().startswith(PNG)
    result: dict[str, Any] = json.loads((folder / named[2]).read_text())
    assert result["benchmark"] == f"postnotification-{words[0]}"
    assert result["failures"] == {}
    assert result["complete"] is True
    return done.returncode, done.stdout, result


@pytest.mark.stores
def test_the_matrix(tmp_path: Path) -> None:
    """Violations without Antipode and none with it, for each pair."""
    words = ("--stores", "redis,postgresql", "--notifiers", "rabbitmq", "--lag", "1500ms", *SMALL)
    code, said, result = run(tmp_path, "matrix", *words)
    assert code == 0, said
    pairs = [(row["post_storage"], row["notifier"]) for row in result["rows"]]
    assert pairs == [("redis", "rabbitmq"), ("postgresql", "rabbitmq")]
    for row in result["rows"]:
        assert row["baseline"]["violations"] > 0
        assert row["antipode"]["violations"] == row["antipode"]["early_passes"] == 0


@pytest.mark.stores
@pytest.mark.timeout(1800)
def test_the_whole_matrix(tmp_path: Path) -> None:
    """Each store with each notifier; the paper's figures stand beside ours."""
    code, said, result = run(tmp_path, "matrix", "--lag", "1500ms", *SMALL, timeout=1700)
    assert code == 0, said
    pairs = {(row["post_storage"], row["notifier"]) for row in result["rows"]}
    assert pairs == set(product(STORES, NOTIFIERS))
    assert set(TABLE_1) <= pairs
    assert said.count(" %)") >= len(TABLE_1)


def has_a_run(file: Path) -> bool:
    return file.exists() and bool(json.loads(file.read_text())["rows"])


def test_an_interrupted_one_keeps_the_runs_that_had_ended(tmp_path: Path) -> None:
    file = tmp_path / "matrix.json"
    words = ("matrix", "--stores", "redis,postgresql", "--notifiers", "rabbitmq", *SMALL, "--json", str(file))
    with subprocess.Popen([*COMMAND, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until("the first pair", lambda: has_a_run(file) or process.poll() is not None, 200, 0.05)
            process.terminate()
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, said
    result = json.loads(file.read_text())
    assert [row["post_storage"] for row in result["rows"]] == ["redis"]
    assert result["complete"] is False


def test_one_without_a_run_leaves_no_older_result(tmp_path: Path) -> None:
    """Nobody takes yesterday's for that of the run that was interrupted."""
    file = tmp_path / "matrix.json"
    file.write_text('{"complete": true, "rows": [{"antipode": null}], "exit_code": 0}')
    with Bench(Console(quiet=True), Scale(1, 1.0, 1, (80,), 10)) as bench:
        Report("matrix", bench, file)
    found = json.loads(file.read_text())
    assert (found["complete"], found["rows"], found["exit_code"]) == (False, [], 4)


@pytest.mark.stores
def test_a_pair_without_lag_shows_nothing(tmp_path: Path) -> None:
    """Exit code 3: such a matrix is no evidence."""
    words = ("--stores", "redis", "--notifiers", "rabbitmq", "--lag", "0ms", "--queue-lag", "300ms", *SMALL)
    code, said, _ = run(tmp_path, "matrix", *words)
    assert code == 3
    assert "no violation without Antipode: redis + rabbitmq" in said


@pytest.mark.stores
def test_a_delay_hides_violations(tmp_path: Path) -> None:
    """Figure 6: all at no delay, none when the notification comes later than the post."""
    words = ("--stores", "redis", "--notifier", "rabbitmq", "--delays", "0ms,2s", "--lag", "1s", *SMALL)
    code, _, result = run(tmp_path, "delay", *words)
    assert code == 0
    at_once, late = result["rows"]
    assert (at_once["notification_delay_ms"], late["notification_delay_ms"]) == (0, 2000)
    assert at_once["baseline"]["violations"] > 0
    assert late["baseline"]["violations"] == 0
    assert at_once["antipode"] is None


@pytest.mark.stores
def test_the_window(tmp_path: Path) -> None:
    """Figure 7: with Antipode no shorter than the slowest replica's lag."""
    words = ("--stores", "redis", "--notifier", "rabbitmq", "--lag", "900ms,1s", *SMALL)
    code, said, result = run(tmp_path, "window", *words)
    assert code == 0, said
    [row] = result["rows"]
    assert row["baseline"]["consistency_window_ms"]["p50"] < row["antipode"]["consistency_window_ms"]["p50"]
    assert row["antipode"]["window_over_lag_ms"]["min"] >= -row["antipode"]["store_write_ms"]["max"]


@pytest.mark.stores
def test_the_sizes(tmp_path: Path) -> None:
    """Table 3: a position rests nowhere; a message carries the lineage, and its mark where it is tracked."""
    words = ("--stores", "redis,postgresql", "--notifiers", "rabbitmq", "--requests", "10")
    code, said, result = run(tmp_path, "size", *words)
    assert code == 0, said
    growth = {row["name"]: row["growth"] for row in result["rows"]}
    assert growth["redis, a post"] == growth["postgresql, a post"] == 0
    assert 0 < growth["rabbitmq, a message"] <= 64 < growth["rabbitmq, a message, tracked"]
    assert re.search(r"rabbitmq, a message +│.*\+87", said), "the paper's figure stands beside ours"


@pytest.mark.parametrize(
    "words",
    [
        ("matrix", "--stores", "tape"),
        ("delay", "--notifier", "rabbitmq", "--delays", "soon"),
        ("window", "--notifier", "http"),
    ],
)
def test_no_such_option(words: tuple[str, ...]) -> None:
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert words[-1] in done.stderr


@pytest.mark.stores
def test_latencies(tmp_path: Path) -> None:
    """A store whose client blocks, one whose does not, and a queue with and without `track`."""
    words = ("--stores", "redis,postgresql", "--notifiers", "rabbitmq", "--requests", "6")
    code, said, result = run(tmp_path, "latency", *words)
    assert code == 0, said
    assert [row["name"] for row in result["rows"]] == ["redis", "postgresql", "rabbitmq", "rabbitmq, tracked"]
    for row in result["rows"]:
        assert min(row["without_ms"], row["with_ms"], row["ratio"]["from"]) > 0
        assert ("wake_up_ms" in row) == ("rabbitmq" not in row["name"])


@pytest.mark.stores
@pytest.mark.parametrize("notifier", ["http", "rabbitmq"])
def test_the_cost_of_dry_run(tmp_path: Path, notifier: str) -> None:
    """Every way is loaded in each round; what is compared to itself is not told."""
    words = ("--notifier", notifier, "--rounds", "2", "--requests", "20", "--sample", "1")
    code, said, result = run(tmp_path, "overhead", *words)
    assert code == 0, said
    assert [row["way"] for row in result["rows"]] == list(WAYS)
    for row in result["rows"]:
        assert (row["rounds"], row["sample"]) == (2, 1.0)
        assert row["uploads_per_s"] > 0
        assert row["processor_ms"] > 0
        assert ("throughput_lost_percent_to_off" in row) == (row["way"] != "off")
        assert ("processor_more_percent_than_without" in row) == (row["way"] != "without Antipode")


@pytest.mark.parametrize(
    ("count", "middle", "least", "most"), [(1, 0, 0, 0), (5, 2, 0, 4), (6, 2.5, 0, 5), (20, 9.5, 5, 14)]
)
def test_an_estimate_has_its_median_and_where_that_may_lie(count: int, middle: float, least: int, most: int) -> None:
    """Of 20 values the 6th and the 15th enclose the median with 95 % of confidence; of 6 all of them do."""
    found = estimate([float(value) for value in reversed(range(count))])
    assert found == {"median": middle, "from": least, "to": most}


def test_a_post_fits_its_store() -> None:
    """The paper's scale: 1 MB, and what DynamoDB takes at most."""
    scale = Scale(1000, 10.0, 1_000_000, (80, 120), 10)
    assert scale.options("redis", "sns").size == 1_000_000
    assert scale.options("dynamodb", "sns").size == MOST_OCTETS["dynamodb"] < 400 * 1024


@pytest.mark.parametrize("name", ["violations", "early_passes", "incomplete_barriers", "warmup"])
def test_what_is_wrong(name: str) -> None:
    right: dict[str, Any] = {
        "violations": 0,
        "early_passes": 0,
        "incomplete_barriers": 0,
        "warmup": {"violations": 0},
    }
    assert not wrong({"antipode": right})
    assert not wrong({"antipode": None})
    assert wrong({"antipode": {**right, name: {"violations": 1} if name == "warmup" else 1}})
