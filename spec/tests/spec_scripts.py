"""The scripts of `spec/`, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def script(name: str) -> Any:
    """Return a script of `spec/` as a module, without running it."""
    found = importlib.util.spec_from_file_location(name, Path(__file__).resolve().parents[1] / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module
