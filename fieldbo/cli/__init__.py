"""The command line, with one module per command."""

from __future__ import annotations

import errno
import io
import sys
from typing import Annotated

import typer

from fieldbo import __version__
from fieldbo.cli import (
    advise,
    animate,
    ask,
    check,
    compare,
    console,
    correct,
    export,
    missions,
    new,
    plan,
    plot,
    policies,
    report,
    resume,
    robot,
    run,
    runs,
    schema,
    show,
    steer,
    worlds,
)
from fieldbo.errors import FieldboError, InputError

DOCUMENTATION = "Documentation: *docs/* in the source tree, or `make docs`"

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
for command, function, examples in (
    ("run", run.run, run.EXAMPLES),
    ("resume", resume.resume, resume.EXAMPLES),
    ("console", console.console, console.EXAMPLES),
    ("steer", steer.steer, steer.EXAMPLES),
    ("correct", correct.correct, correct.EXAMPLES),
    ("runs", runs.runs, ""),
    ("ask", ask.ask, ask.EXAMPLES),
    ("export", export.export, export.EXAMPLES),
    ("report", report.report, report.EXAMPLES),
    ("plot", plot.plot, plot.EXAMPLES),
    ("animate", animate.animate, animate.EXAMPLES),
    ("robot", robot.robot, robot.EXAMPLES),
    ("advise", advise.advise, advise.EXAMPLES),
    ("plan", plan.plan, plan.EXAMPLES),
    ("check", check.check, ""),
    ("worlds", worlds.worlds, ""),
    ("missions", missions.missions, missions.EXAMPLES),
    ("policies", policies.policies, policies.EXAMPLES),
    ("show", show.show, ""),
    ("schema", schema.schema, ""),
    ("compare", compare.compare, compare.EXAMPLES),
):
    negative = {"ignore_unknown_options": command == "correct"}  # -3.5 is a value, not an option
    app.command(command, epilog=f"{examples}\n\n{DOCUMENTATION}", context_settings=negative)(function)
app.add_typer(new.app, name="new", epilog=DOCUMENTATION)
for made in new.app.registered_commands:
    made.epilog = f"{made.epilog or ''}\n\n{DOCUMENTATION}"


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


def main() -> None:
    """Run the command line; errors that a user can fix end it with exit code 2 and no traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # print "?" where the terminal's encoding has no "±"
    try:
        _with_paths_that_exist()
    except FieldboError as error:
        sys.stderr.write(f"fieldbo: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("\nfieldbo: interrupted\n")
        sys.exit(130)
