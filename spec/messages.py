#!/usr/bin/env python3
"""Write what is made of spec/data/messages.json: docs/troubleshooting.md, and the copy that `antipode explain` reads.

`--check` writes nothing, and ends with 1 where one of them differs. Needs nothing but Python's standard library.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "spec/data/messages.json"
COPY = ROOT / "python/src/antipode/cli/messages.json"
PAGE = ROOT / "docs/troubleshooting.md"

HEAD = """# Troubleshooting

Find the code of your message below: every message ends its first line with one, such as `[AP104]`.
`antipode explain AP104` prints the same text in the terminal. Before you change anything, print two
lines next to the barrier. They answer most questions:

```python
print(antipode.serialize())  # what the barrier would wait for; "1" alone: nothing
print(antipode.barrier(on_timeout="proceed", on_unproven="proceed").explain())
```

This page is made from [spec/data/messages.json](../spec/data/messages.json) by `spec/messages.py`.
"""
CHAPTERS = {
    "1": "The call",
    "2": "What a barrier found out",
    "3": "Settings",
    "4": "Lost on the way",
    "5": "Stores and their clients",
    "6": "Dry-run and records",
    "7": "`antipode init` and `antipode doctor`",
    "8": "Throttles",
}
FORMS = {
    "error": "An error.",
    "result": "Words of a result.",
    "reason": "A reason in a result or an error.",
    "log": "A line in the log.",
    "finding": "A finding of `antipode doctor`.",
}


def page(entries: list[dict[str, Any]]) -> str:
    """Return the text of docs/troubleshooting.md."""
    parts = [HEAD]
    chapter = ""
    for entry in entries:
        if entry["code"][2] != chapter:
            chapter = entry["code"][2]
            parts.append(f"## {CHAPTERS[chapter]}\n")
        parts.append(f"### {entry['code']} · `{entry['words'].replace('`', '')}`\n")
        form = f"An error, `{entry['raises']}`." if "raises" in entry else FORMS[entry["form"]]
        parts.append(f"*{form}* {entry['meaning']}\n")
        parts.append("\n".join(f"- {cure}" for cure in entry["cure"]) + "\n")
        if "check" in entry:
            parts.append(f"**Check:** {entry['check']}\n")
    return "\n".join(parts)


def main(check: bool) -> int:
    """Return 0, or with `check` 1 where a file differs from what would be written."""
    text = SOURCE.read_text()
    differ = 0
    for file, wanted in ((COPY, text), (PAGE, page(json.loads(text)["codes"]))):
        if file.exists() and file.read_text() == wanted:
            continue
        if check:
            print(f"{file.relative_to(ROOT)} differs: run spec/messages.py")
            differ = 1
        else:
            file.write_text(wanted)
    return differ


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
