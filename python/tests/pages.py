"""The code of the documentation's pages, as modules that a test imports and runs."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "frameworks"
_BLOCK = re.compile(r"^```python\n# (?P<name>\w+)\.py[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
STORES = """
import antipode.memory

store = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=0.1)
posts, posts_b = store.client("a"), store.client("b")
"""
"""The two clients of the pages, on the embedded store: region B is 100 ms behind."""


def code_of(page: str) -> dict[str, str]:
    """The modules of a page, by name."""
    found = {each["name"]: each["code"] for each in _BLOCK.finditer((FOLDER / page).read_text())}
    assert found, f"{page} has no module"
    return found


@contextmanager
def imported(page: str, folder: Path, **more: str) -> Iterator[Callable[[str], ModuleType]]:
    """Imports modules of a page by name, with `stores` and what else the test gives beside them."""
    modules = {"stores": STORES, **code_of(page), **more}
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(folder))
        for name in modules:
            sys.modules.pop(name, None)
