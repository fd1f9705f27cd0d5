"""The answer about a history as one page, which needs nothing from elsewhere and runs no script (HIST-16)."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from antipode.check.history.deciding import Decision
from antipode.check.history.drawing import HEIGHT, WIDTH, draw
from antipode.check.history.operations import History
from antipode.check.history.words import tell
from antipode.cli.output import printable
from jinja2 import Environment, PackageLoader, StrictUndefined


def _shown(value: Any) -> Any:
    """No control character, and none that turns the direction of what stands behind it."""
    return printable(value) if type(value) is str and not value.isprintable() else value  # a macro's markup stays


def as_page(history: History | None, decision: Decision, headline: str) -> str:
    """The page's HTML; everything that comes from the history is escaped. None: it was not read."""
    environment = Environment(
        loader=PackageLoader("antipode.check.history", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    operations = [] if history is None else history.operations
    return environment.get_template("page.html.j2").render(
        decision=decision,
        headline=headline,
        operations=len(operations),
        processes=len({each.process for each in operations}),
        violations=[(tell(history, each), each.pattern, draw(history, each)) for each in decision.witnesses]
        if history is not None
        else [],
        rest=[(operations[each.operation].id, each.pattern) for each in decision.found[len(decision.witnesses) :]],
        gaps=[(operations[gap.operation].id, gap.reason, operations[gap.operation].place) for gap in history.gaps]
        if history is not None
        else [],
        strict=decision.strict,
        places=[each.place for each in operations],
        box_width=WIDTH,
        box_height=HEIGHT,
        version=version("antipode-sdk"),
    )
