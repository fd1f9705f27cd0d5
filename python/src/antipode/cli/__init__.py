"""The command `antipode`: look at lineages, servers and settings from a shell (API section 5).

Exit codes: 0 as asked; 1 something was found (`doctor`) or nothing was done (`epoch`); 2 cannot tell: what was given
cannot be read, or a server does not answer. Never a traceback.
"""

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line; the entry point of the script `antipode`."""
    absent = [name for name in ("typer", "rich") if find_spec(name) is None]
    if absent:
        print(f"antipode: the command needs {' and '.join(absent)}: pip install 'antipode-sdk[cli]'.", file=sys.stderr)
        sys.exit(2)
    from antipode.cli.app import main as run  # what it needs may not be installed

    run()
