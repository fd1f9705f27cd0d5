"""The analysis gives the same answer on Spark as on DuckDB (CHECK-16). Spark: requirements/spark.txt."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from antipode.check.records.as_json import document
from antipode.check.records.engine import Engine
from antipode.check.records.findings import Report, report
from antipode.check.records.reading import ReadLines, read
from antipode.check.records.suggesting import suggest
from check_records.generating import Shape, generate
from check_records.samples import AFTER_MESSAGE, HEAD, OTHERS, Record, other
from check_records.samples import read as read_record

pytestmark = [pytest.mark.stores, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="requirements/spark.txt is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = sql.SparkSession.builder.master("local[2]").appName("antipode-check")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()


def on_duckdb(path: Path) -> Report:
    taken, engine = ReadLines(), Engine()
    found = report(engine.load(read([str(path)], taken)), taken, pictures=True)
    engine.close()
    return found


def test_spark_answers_as_duckdb_does(session: Any, tmp_path: Path) -> None:
    from antipode.check.records.spark import report_on

    passed = HEAD | {"kind": "passed_on", "time": 1.7e9, "site": "f.py:30", "target": "posts", "origin": AFTER_MESSAGE}
    called: Record = {
        "service": "posts",
        "origin": {"scope": "request", "opened_by": "GET /posts/{post}"},
        "time": 1.7e9,
    }
    traced: Record = {"trace_id": "ab" * 16}
    records = [
        *generate(7, Shape(20_000)),
        *(other(kind, time=1.7e9) for kind in OTHERS),
        read_record("stale", site="posts.py:9", **called | traced),
        passed | traced,
        read_record("behind", time=1.7e9),
        {"record": 2},
        {"record": 2},
        HEAD | {"kind": "later", "time": 1.0},
    ]
    path = tmp_path / "r.jsonl"
    text = "".join(json.dumps(record) + "\n" for record in records) + "broken\n\n"
    path.write_bytes(text.encode() + text.partition("\n")[0].encode().replace(b"service", b"\xff") + b"\n")
    here, there = on_duckdb(path), report_on(session, [str(path)], pictures=True)
    answers = []
    for found in (here, there):
        answer = document(found, suggest(found.findings, found.seconds))
        for name in ("files", "processes", "unread_named"):
            del answer["read"][name]
        answers.append(answer)
    assert json.loads(json.dumps(answers[1])) == json.loads(json.dumps(answers[0]))
    assert answers[0]["read"]["unread"] == 4
    assert len(answers[0]["findings"]) > 60
    assert there.timeline == here.timeline
    assert there.histogram == here.histogram
