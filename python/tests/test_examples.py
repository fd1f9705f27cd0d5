"""The examples print what their first lines say that they print, and the SDK's page names what there is."""

from __future__ import annotations

import ast
import operator
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from antipode.setting_words import WORDS
from antipode.settings import Settings

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def documented(example: Path) -> str:
    """The lines that an example's docstring shows behind `prints`."""
    text = ast.get_docstring(ast.parse(example.read_text("utf-8"))) or ""
    shown = text.split("\nprints\n", 1)[1].strip("\n").split("\n\n", 1)[0]
    return textwrap.dedent(shown) + "\n"


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {"basic.py", "post_notification.py"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_prints_what_it_says(example: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPODE_")}
    ran = subprocess.run(
        [sys.executable, str(example)], env=environment, text=True, capture_output=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == documented(example)


# The pages

README = Path(__file__).parents[1] / "README.md"


def blocks() -> list[str]:
    """The Python code of the SDK's page."""
    return re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def test_the_page_shows_code_that_is_python_and_names_what_there_is() -> None:
    import antipode.grpc
    import antipode.httpx
    import antipode.requests
    import antipode.testing
    import antipode.wsgi

    named = set()
    for block in blocks():
        tree = compile(block, str(README), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("antipode."):
                named.add(ast.unparse(node))
    assert {"antipode.barrier", "antipode.scope", "antipode.asgi.Middleware"} <= named
    for path in named:
        operator.attrgetter(path.removeprefix("antipode."))(antipode)


def test_the_page_has_every_setting_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(ANTIPODE_[A-Z_]+)` \|.*\| (.*?) \|$", README.read_text("utf-8"), re.MULTILINE))
    assert list(rows) == [word.variable for word in WORDS.values() if word.variable]
    defaults = Settings()
    for name, word in WORDS.items():
        shown = rows.get(word.variable, "").strip("`")
        if not shown or shown in {"empty", "none", "private and cluster names"}:
            continue
        assert word.check(word.read(shown)) == getattr(defaults, name), word.variable
