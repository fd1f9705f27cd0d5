"""The examples print what every language's print and their heads show, and the SDK's page names what there is."""

from __future__ import annotations

import ast
import operator
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from antipode._base.setting_fields import WORDS
from antipode._base.settings import Settings

REPOSITORY = Path(__file__).parents[2]
SAMPLES = sorted((REPOSITORY / "spec" / "samples").glob("*.txt"))
"""What a sample prints, whatever its language."""

each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)


def spellings(name: str) -> list[Path]:
    """A sample in each language."""
    class_name = "".join(map(str.capitalize, name.split("_")))
    return [
        REPOSITORY / "python" / "examples" / f"{name}.py",
        REPOSITORY / "java/antipode-examples/src/main/java/dev/antipode/examples" / f"{class_name}.java",
        REPOSITORY / "cpp" / "examples" / f"{name}.cpp",
    ]


def documented(example: Path, lines: int) -> list[str]:
    """The first so many lines of text that an example's head shows behind `prints`."""
    head = [line.removeprefix("//").removeprefix(" *").strip() for line in example.read_text("utf-8").splitlines()]
    start = next(at for at, line in enumerate(head) if line.endswith("prints")) + 1
    return [line for line in head[start:] if line and line != "<pre>"][:lines]


EXAMPLES = REPOSITORY / "python" / "examples"
HERE_ALONE = {"block_then_post", "cancel_order", "delegated_wait", "throttle"}
"""What other languages do not have yet."""


def printed_by(name: str) -> bytes:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPODE_")}
    example = [sys.executable, str(EXAMPLES / f"{name}.py")]
    ran = subprocess.run(example, env=environment, capture_output=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    return ran.stdout


def test_there_are_examples() -> None:
    assert {path.stem for path in SAMPLES} == {"basic", "post_notification"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {path.stem for path in SAMPLES} | HERE_ALONE


@each_sample
def test_an_example_prints_what_every_language_prints(sample: Path) -> None:
    assert printed_by(sample.stem) == sample.read_bytes()


@pytest.mark.parametrize("name", sorted(HERE_ALONE))
def test_an_example_of_this_language_prints_what_its_head_shows(name: str) -> None:
    printed = printed_by(name).decode().splitlines()
    assert printed
    assert documented(EXAMPLES / f"{name}.py", len(printed)) == printed


@each_sample
def test_the_first_lines_show_what_is_printed(sample: Path) -> None:
    printed = sample.read_text("utf-8").splitlines()
    for example in spellings(sample.stem):
        assert documented(example, len(printed)) == printed, example


# The pages

README = Path(__file__).parents[1] / "README.md"


def blocks() -> list[str]:
    """The Python code of the SDK's page."""
    return re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def test_the_page_shows_code_that_is_python_and_names_what_there_is() -> None:
    import antipode.delegated
    import antipode.grpc
    import antipode.httpx
    import antipode.requests
    import antipode.session
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
