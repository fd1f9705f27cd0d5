"""The answer as one page, which needs nothing from elsewhere and runs no script (CHECK-15)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from antipode.check.records import plots, words
from antipode.check.records.findings import Report, counted
from antipode.check.records.suggesting import Suggestion
from antipode.cli.output import printable

_MOST: Final = 200
"""Findings on the page; --json has all."""


def _shown(value: Any) -> Any:
    """No control character, and none that turns the direction of what stands behind it."""
    return printable(value) if type(value) is str and not value.isprintable() else value  # a macro's markup stays


def as_page(found: Report, suggestions: Sequence[Suggestion]) -> str:
    """The page's HTML; everything that comes from records is escaped."""
    environment = Environment(
        loader=PackageLoader("antipode.check.records", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = list(zip(found.findings, plots.lags(found), plots.intervals(found), strict=True))
    return environment.get_template("page.html.j2").render(
        report=found,
        suggestions=suggestions[:_MOST],
        findings=shown[:_MOST],
        left_out=max(len(shown) - _MOST, 0),
        timeline=plots.timeline(found),
        highest_rate=plots.highest_rate(found),
        kinds=list(dict.fromkeys(finding.kind for finding in found.findings)),
        words=words,
        counted=counted,
        version=version("antipode-sdk"),
    )
