"""An earlier answer, against which only what is new counts (CHECK-14)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from antipode.check.records.as_json import FORM
from antipode.check.records.findings import Finding

_MAX_OCTETS: Final = 64 * 2**20
_LINE: Final = re.compile(r":[1-9][0-9]*$")


class BaselineError(Exception):
    """It cannot be read; a sentence."""


class _Origin(msgspec.Struct):
    scope: str = ""
    opened_by: str = ""
    store: str = ""


class _Old(msgspec.Struct):
    kind: str
    service: str
    site: str
    store: str
    origin: _Origin
    region: str = ""
    target: str = ""
    reason: str = ""


class _Answer(msgspec.Struct):
    check: int
    findings: list[_Old]


_Key: TypeAlias = tuple[str, ...]


def compare(findings: Sequence[Finding], path: Path) -> None:
    """Sets `new` to false for what the baseline has, too.

    Raises:
        BaselineError: the file is no answer of `antipode check --json`.
    """
    old = _read(path)
    exact = Counter(_key(each, each.origin.opened_by, each.origin.store, exact=True) for each in old)
    left = Counter(_key(each, each.origin.opened_by, each.origin.store, exact=False) for each in old)
    moved = []
    for finding in findings:
        key = _key(finding, finding.opened_by, finding.queue, exact=True)
        if exact[key]:
            exact[key] -= 1
            left[_key(finding, finding.opened_by, finding.queue, exact=False)] -= 1
            finding.new = False
        else:
            moved.append(finding)
    for finding in moved:
        key = _key(finding, finding.opened_by, finding.queue, exact=False)
        finding.new = not left[key]
        left[key] -= not finding.new


def _key(found: Finding | _Old, opened_by: str, queue: str, *, exact: bool) -> _Key:
    names = (found.site, opened_by)
    if not exact:  # code above a site moves it
        names = (_LINE.sub("", found.site), _LINE.sub("", opened_by))
    scope = found.origin.scope if isinstance(found, _Old) else found.scope
    head = (str(found.kind), found.service, found.region, found.store)
    return (*head, scope, queue, found.target, found.reason, *names)


def _read(path: Path) -> list[_Old]:
    try:
        with path.open("rb") as stream:
            octets = stream.read(_MAX_OCTETS + 1)
        if len(octets) > _MAX_OCTETS:
            raise BaselineError(f"{path}: a baseline of more than {_MAX_OCTETS >> 20} MiB")
        answer = msgspec.json.decode(octets, type=_Answer)
    except OSError as error:
        raise BaselineError(f"{path}: {error.strerror or error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BaselineError(f"{path}: not what antipode check --json prints") from None
    if answer.check != FORM:
        raise BaselineError(f"{path}: a baseline of form {answer.check}; this version reads form {FORM}")
    return answer.findings
