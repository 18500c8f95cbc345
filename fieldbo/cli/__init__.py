"""The command line: its commands, and the errors with which they end."""

from __future__ import annotations

import errno
import io
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from fieldbo import __version__
from fieldbo.cli import look, new, plan, robot, run, runs, share, study
from fieldbo.cli.options import DOCUMENTATION, add
from fieldbo.errors import FieldboError, InputError

app = typer.Typer(
    name="fieldbo",
    help="Plan and run sampling missions, by robot or by hand, on a limited battery.",
    epilog=f"Start with: fieldbo run lake-level-set\n\n{DOCUMENTATION}",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
add(
    app,
    *(run.run, run.resume, run.console),
    *(runs.steer, runs.correct, runs.runs, runs.ask),
    *(share.export, share.report, share.plot, share.animate),
    *(robot.robot, study.advise, plan.plan),
    *(look.check, look.worlds, look.missions, look.policies, look.show, look.schema),
    study.compare,
)
app.add_typer(new.app, name="new", epilog=DOCUMENTATION)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"fieldbo {__version__}")
        raise typer.Exit


@app.callback()
def fieldbo(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Plan and run sampling missions, by robot or by hand, on a limited battery."""


def _with_paths_that_exist() -> None:
    """Run the command line; raise an `InputError` for a path that is too long to exist."""
    try:
        app()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise InputError(
            f"there is no {error.filename}: the name is too long",
            expected="the name or path of a file or folder",
        ) from None


def _show_notes(others: Callable[..., None]) -> Callable[..., None]:
    """Return what prints each note on what will change once, as words; `others` shows all other warnings."""
    said = set[str]()

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if not issubclass(category, FutureWarning):
            others(message, category, *rest, **more)
        elif (text := str(message)) not in said:
            said.add(text)
            sys.stderr.write(f"note: {text}\n")

    return show


def main() -> None:
    """Run the command line; errors that a user can fix end it with exit code 2 and no traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # print "?" where the terminal's encoding has no "±"
    warnings.showwarning = _show_notes(warnings.showwarning)
    try:
        _with_paths_that_exist()
    except FieldboError as error:
        sys.stderr.write(f"fieldbo: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("\nfieldbo: interrupted\n")
        sys.exit(130)
