"""The codes of messages (OBS-14): one meaning each, known wherever one is written, and what is made of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = json.loads((ROOT / "spec/data/messages.json").read_text())["codes"]
SOURCES = [
    path
    for folder in ("python/src", "java", "cpp/src", "cpp/include", "shims")
    for ending in ("py", "java", "cpp", "h")
    for path in (ROOT / folder).rglob(f"*.{ending}")
    if not {"tests", "test", "target", "build"} & set(path.relative_to(ROOT).parts)
]
CODE = re.compile(r"\bAP[1-9][0-9]{2}\b")


def test_codes_are_unique_and_in_order() -> None:
    codes = [entry["code"] for entry in ENTRIES]
    assert codes == sorted(set(codes))
    assert all(CODE.fullmatch(code) for code in codes)
    names = [entry["name"] for entry in ENTRIES]
    assert len(names) == len(set(names))


def test_entries_have_all_their_parts() -> None:
    for entry in ENTRIES:
        assert entry.keys() - {"check", "raises"} == {"code", "name", "form", "words", "meaning", "cure"}, entry["code"]
        assert entry["form"] in {"error", "result", "reason", "log", "finding"}
        assert entry["words"]
        assert entry["meaning"].endswith(".")
        assert entry["cure"]


def test_each_code_that_a_source_writes_is_known() -> None:
    """OBS-14: in no language a code of its own."""
    known = {entry["code"] for entry in ENTRIES}
    unknown = {
        f"{path.relative_to(ROOT)}: {code}"
        for path in SOURCES
        for code in CODE.findall(path.read_text(encoding="utf-8"))
        if code not in known
    }
    assert len(SOURCES) > 500
    assert not unknown


def test_what_is_made_of_the_codes_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "spec/messages.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
