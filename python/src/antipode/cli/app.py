"""The command and its subcommands."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import typer

from antipode.cli.doctor import doctor
from antipode.cli.epoch import epoch
from antipode.cli.explain import explain
from antipode.cli.init import init
from antipode.cli.inspect import inspect
from antipode.cli.output import Exit, complain, fail, printable
from antipode.cli.version import version
from antipode.shim.administration import without_credentials

app = typer.Typer(
    help="Cross-service causal consistency: look at lineages, servers and settings.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _check_is_absent() -> None:
    """Install antipode-check to have this command."""
    fail("check is a package of its own: pip install antipode-check.")


app.command()(inspect)
app.add_typer(epoch, name="epoch")
if find_spec("antipode.cli.check"):
    from antipode.cli.check import check

    app.command()(check)
else:
    _ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command("check", add_help_option=False, context_settings=_ANYTHING)(_check_is_absent)
app.command()(doctor)
app.command()(explain)
app.command()(init)
app.command()(version)


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    sys.exit(_run())


def _run() -> int:
    try:
        code = app(prog_name="antipode", standalone_mode=False)
    except typer.Abort:
        complain("stopped.")
        return Exit.FOUND
    except Exception as error:
        show = getattr(error, "show", None)
        message = getattr(error, "message", None)
        if callable(show) and isinstance(message, str):  # how the command was called; the parser quotes its words
            for word in filter(lambda word: "://" in word, sys.argv[1:]):
                message = message.replace(word, without_credentials(word))
            error.message = message  # type: ignore[attr-defined]
            show()
            return Exit.CANNOT_TELL
        # Our own mistake: still a sentence, and an exit code that says "cannot tell".
        complain(f"failed: {type(error).__name__}: {printable(str(error))}")
        return Exit.CANNOT_TELL
    return code if isinstance(code, int) else Exit.FINE
