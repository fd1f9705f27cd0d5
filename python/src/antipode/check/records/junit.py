"""The answer as JUnit's XML, for what shows tests (CHECK-13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree

from antipode.check.records import words
from antipode.check.records.findings import Finding, Report, Verdict
from antipode.check.records.suggesting import Suggestion

_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(found: Report, suggestions: Sequence[Suggestion]) -> str:
    """One test a finding: confirmed ones fail, doubts are skipped. And one for the answer, an error if unknown."""
    advice = {number: words.suggestion(each) for each in suggestions for number in each.findings}
    failures = len(found.violations)
    skipped = sum(not (finding.confirmed and finding.new) for finding in found.findings)
    unknown = found.verdict is Verdict.UNKNOWN
    totals = {
        "tests": str(len(found.findings) + 1),
        "failures": str(failures),
        "errors": str(int(unknown)),
        "skipped": str(skipped),
    }
    root = ElementTree.Element("testsuites", {"name": "antipode check"} | totals)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "antipode check"} | totals)
    answer = ElementTree.SubElement(suite, "testcase", {"classname": "antipode", "name": "the records can be judged"})
    if unknown:
        ElementTree.SubElement(answer, "error", {"message": _clean(words.headline(found)), "type": "unknown"})
    for number, finding in enumerate(found.findings):
        _add(suite, finding, advice.get(number, ""))
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"


def _add(suite: ElementTree.Element, finding: Finding, advice: str) -> None:
    place = words.where(finding)
    name = f"{words.what(finding)} at {place}" + f" in {finding.region}" * bool(finding.region)
    case = ElementTree.SubElement(
        suite, "testcase", {"classname": _clean(f"antipode.{finding.kind.value}"), "name": _clean(name)}
    )
    message = ", ".join(filter(None, (words.how_much(finding), words.more(finding))))
    if finding.confirmed and finding.new:
        case.set("file", _clean(finding.site.rpartition(":")[0]))
        failure = ElementTree.SubElement(case, "failure", {"message": _clean(message), "type": finding.kind.value})
        failure.text = _clean("\n".join(filter(None, (words.EXPLAINED[finding.kind], advice))))
    else:
        why = message if finding.new else f"in the baseline: {message}"
        ElementTree.SubElement(case, "skipped", {"message": _clean(why)})


def _clean(text: str) -> str:
    """XML has no place for most control characters, escaped or not."""
    return _NO_XML.sub("�", text)
