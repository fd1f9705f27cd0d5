"""The answer as SARIF 2.1.0, for what shows findings beside the code (CHECK-13)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import quote

from antipode.check.records import words
from antipode.check.records.findings import CONFIRMED, Finding, Kind, Report, Verdict
from antipode.check.records.suggesting import Suggestion

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SITE: Final = re.compile(r"(.+):([1-9][0-9]{0,8})")


def as_sarif(found: Report, suggestions: Sequence[Suggestion]) -> str:
    """One run, with a result for each finding: errors for confirmed ones, warnings for doubts."""
    advice = {number: words.suggestion(each) for each in suggestions for number in each.findings}
    run = {
        "tool": {
            "driver": {
                "name": "antipode check",
                "semanticVersion": version("antipode-sdk"),
                "rules": [_rule(kind) for kind in Kind],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": f"{place}: {why}"}}
                    for place, why in found.taken.unread_named
                ]
                + [{"level": "error", "message": {"text": f"cannot tell: {why}"}} for why in _unknown(found)],
            }
        ],
        "results": [_result(finding, advice.get(number, "")) for number, finding in enumerate(found.findings)],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, allow_nan=False)


def _unknown(found: Report) -> list[str]:
    """Why nobody can tell: without it a log that has no results would look like a clean one."""
    return found.doubts if found.verdict is Verdict.UNKNOWN else []


def _level(finding_kind: Kind, confirmed: bool) -> str:
    if finding_kind is Kind.CONCURRENT_WRITE:
        return "note"
    return "error" if confirmed else "warning"


def _rule(kind: Kind) -> dict[str, Any]:
    return {
        "id": f"antipode/{kind.value}",
        "name": "".join(part.capitalize() for part in kind.value.split("_")),
        "shortDescription": {"text": words.TITLES[kind]},
        "fullDescription": {"text": words.EXPLAINED[kind]},
        "defaultConfiguration": {"level": _level(kind, kind in CONFIRMED)},
    }


def _result(finding: Finding, advice: str) -> dict[str, Any]:
    sentence = ", ".join(
        filter(None, (f"{words.what(finding)}: {words.how_much(finding)}", words.more(finding), advice))
    )
    names = (finding.kind, *finding.place, finding.target, finding.written_at, finding.reason)
    names += (finding.barrier,) * bool(finding.barrier)
    shown: dict[str, Any] = {
        "ruleId": f"antipode/{finding.kind.value}",
        "ruleIndex": list(Kind).index(finding.kind),
        "level": _level(finding.kind, finding.confirmed),
        "message": {"text": sentence.replace("](", "\\](")},  # a name is no link
        "baselineState": "new" if finding.new else "unchanged",
        "partialFingerprints": {"antipode/v1": hashlib.sha256("\0".join(names).encode()).hexdigest()[:32]},
        "properties": {"service": finding.service, "region": finding.region, "count": finding.count},
    }
    match = _SITE.fullmatch(finding.site)
    if match is not None:
        place: dict[str, Any] = {
            "artifactLocation": {"uri": quote(match[1].replace("\\", "/"), safe="/-._~"), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": int(match[2])},
        }
        shown["locations"] = [{"physicalLocation": place}]
    return shown
