"""spec/vectors/engine-script.json, on the real engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_script import Script

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
CASES = json.loads((VECTORS / "engine-script.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_engine_script(case: dict[str, Any]) -> None:
    Script(case).run()
