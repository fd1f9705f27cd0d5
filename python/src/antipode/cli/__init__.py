"""The command `antipode`: look at lineages, servers and settings from a shell (API section 5).

Exit codes: 0 as asked; 1 something was found (`doctor`) or nothing was done (`epoch`); 2 cannot tell: what was given
cannot be read, or a server does not answer. Never a traceback.
"""

from antipode.cli.app import app, main

__all__ = ["app", "main"]
