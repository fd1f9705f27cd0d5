"""The answer for programs, and as the next run's baseline (CHECK-11; spec/schemas/check.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from antipode.check.records import words
from antipode.check.records.findings import Finding, Report
from antipode.check.records.suggesting import Suggestion

FORM: Final = 1


def as_json(found: Report, suggestions: Sequence[Suggestion]) -> str:
    """All of it, indented; the same records give the same text."""
    return json.dumps(document(found, suggestions), indent=2, ensure_ascii=True, allow_nan=False)


def document(found: Report, suggestions: Sequence[Suggestion]) -> dict[str, Any]:
    """All of it, as the schema has it."""
    taken = found.taken
    return {
        "check": FORM,
        "verdict": found.verdict.value,
        "doubts": found.doubts,
        "read": {
            "files": taken.files,
            "records": taken.records,
            "processes": len(taken.processes),
            "kinds": found.kinds,
            "first": found.first,
            "last": found.last,
            "unread": taken.unread,
            "unread_named": [{"place": place, "why": why} for place, why in taken.unread_named],
            "passed_over": dict(sorted(taken.passed_over.items())),
        },
        "judged": found.judged,
        "requests": found.requests,
        "findings": [_finding(finding) for finding in found.findings],
        "suggestions": [_suggestion(each) for each in suggestions],
        "notes": found.notes,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    rate = finding.rate
    shown: dict[str, Any] = {
        "kind": finding.kind.value,
        "confirmed": finding.confirmed,
        "new": finding.new,
        "service": finding.service,
        "region": finding.region,
        "site": finding.site,
        "store": finding.store,
        "store_kind": finding.store_kind,
        "origin": {"scope": finding.scope, "opened_by": finding.opened_by, "store": finding.queue},
        "barrier": finding.barrier,
        "entry": None if finding.entry is None else asdict(finding.entry),
        "count": finding.count,
        "of": finding.of,
        "rate": None if rate is None else rate._asdict(),
        "estimated": finding.estimated,
        "sampled": finding.sampled,
        "lag": None if finding.lag is None else asdict(finding.lag),
        "trace_id": finding.trace,
        "written_at": finding.written_at,
        "target": finding.target,
        "reason": finding.reason,
        "lineage_stores": finding.lineage_stores,
        "registered": finding.registered,
        "sentence": ", ".join(filter(None, (words.what(finding), words.how_much(finding), words.more(finding)))),
    }
    return shown


def _suggestion(each: Suggestion) -> dict[str, Any]:
    return asdict(each) | {"sentence": words.suggestion(each)}
