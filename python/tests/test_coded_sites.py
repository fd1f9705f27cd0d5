"""Each error, log line and finding of our packages has a message code, and each code is of use (OBS-14).

What is looked at is the source itself, as a tree: a site that nobody runs in a test has a code, too.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import antipode
import pytest
from antipode._model import errors

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path
    for folder in (ROOT / "python/src", *ROOT.glob("shims/*/python/src"))
    for path in folder.rglob("*.py")
    if "check" not in path.relative_to(folder).parts  # its findings are those of dry-run, and no messages
)
KNOWN = {entry["code"] for entry in json.loads((ROOT / "spec/data/messages.json").read_text())["codes"]}
ERRORS = {
    name: kind.default_code
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, antipode.AntipodeError)
}
CODE = re.compile(r"\bAP[1-9][0-9]{2}\b")
LOGGERS = {"logger", "_log"}
OURS = ("antipode", "antipode._model.errors", "antipode.shim", "antipode.shim.administration")
SAID = {"info", "warning", "error", "exception", "critical", "log"}
WITHOUT_CODE = {
    "announcement.py: logger.info": "OBS-8: what is in force; nothing is wrong",
    "logs.py: logger.log": "it writes the lines of all others",
}
UNUSED = {
    "AP605": "telemetry, dry-run and histories are in the SDK: none of them can be missing",
    "AP704": "a replica that follows its primary is a finding of level ok, however far behind it is",
    "AP211": "a delegated wait that is refused has the code of its kind (OBS-15)",
    "AP212": "a version of another kind of store has the code of its kind (OBS-15)",
}
"""Codes that no site of Python has, with the reason."""


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, str]]:
    """Each call, what it is of (empty: a plain function), and its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node, "", node.func.id
            elif isinstance(node.func, ast.Attribute):
                of = node.func.value
                name = of.id if isinstance(of, ast.Name) else of.attr if isinstance(of, ast.Attribute) else "?"
                yield node, name, node.func.attr


def imported(tree: ast.AST, module: str) -> set[str]:
    """The names that a source takes from a module of ours."""
    return {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in (module, "antipode")
        for name in node.names
    }


def texts(tree: ast.AST) -> Iterator[str]:
    """The constant texts of a source, without its docstrings."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def lacks_code(call: ast.Call, of: str, name: str, ours: set[str]) -> bool:
    """Whether a call is a message, and has no code."""
    if any(keyword.arg == "code" for keyword in call.keywords):
        return False
    if name in ERRORS and name in ours:
        return not ERRORS[name]
    if name == "Finding" and name in ours:
        return ast.unparse(call.args[0]) != "Level.OK"
    if of == "logs" and name in ("warn", "info"):
        return True
    if of in LOGGERS and name in SAID:
        return CODE.search(ast.unparse(call)) is None
    return False


def sites_without_code(text: str, file: str) -> list[str]:
    tree = ast.parse(text)
    ours = set().union(*(imported(tree, module) for module in OURS))
    found = [
        f"{file}:{call.lineno}: {ast.unparse(call)[:120]}"
        for call, of, name in calls(tree)
        if lacks_code(call, of, name, ours) and f"{Path(file).name}: {of}.{name}" not in WITHOUT_CODE
    ]
    if Path(file).name == "preparing.py":
        # `antipode init` shows what it raises: plain errors have no code there.
        found += [f"{file}:{call.lineno}: a ValueError" for call, of, name in calls(tree) if name == "ValueError"]
    return found


@pytest.mark.parametrize("folder", sorted({path.relative_to(ROOT).parts[:2] for path in SOURCES}), ids="/".join)
def test_each_site_has_a_code(folder: tuple[str, str]) -> None:
    """OBS-14."""
    here = [path for path in SOURCES if path.relative_to(ROOT).parts[:2] == folder]
    assert not [site for path in here for site in sites_without_code(path.read_text(), str(path.relative_to(ROOT)))]


def test_each_code_is_known_and_used() -> None:
    """OBS-14: no site has a code of its own, and no entry of the page is of nothing."""
    used = {code for path in SOURCES for text in texts(ast.parse(path.read_text())) for code in CODE.findall(text)}
    assert used <= KNOWN
    assert KNOWN - used == UNUSED.keys()


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ('raise ConfigurationError("no")', True),
        ('raise ConfigurationError("no", code="AP501")', False),
        ('raise UnfitStoreError("no")', False),
        ('logs.warn("kind", "words")', True),
        ('logs.logger.exception("words")', True),
        ('_log.warning("words [AP518]")', False),
        ('Finding(Level.WARNING, "words")', True),
        ('Finding(Level.OK, "words")', False),
    ],
)
def test_a_site_without_a_code_is_found(line: str, is_found: bool) -> None:
    head = (
        "from antipode._model.errors import ConfigurationError, UnfitStoreError\n"
        "from antipode.shim.administration import Finding\n"
    )
    assert bool(sites_without_code(head + line, "x.py")) is is_found
