"""The command line: one file a command."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from fieldbo import __version__
from fieldbo.cli import (
    ask,
    check,
    compare,
    export,
    missions,
    new,
    plan,
    policies,
    resume,
    robot,
    run,
    runs,
    schema,
    show,
    worlds,
)
from fieldbo.errors import FieldboError

app = typer.Typer(
    name="fieldbo",
    help="Plan and run robotic and field sampling under a battery.",
    epilog="Start with: fieldbo run lake-level-set",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("resume", epilog=resume.EXAMPLES)(resume.resume)
app.command("runs")(runs.runs)
app.command("ask", epilog=ask.EXAMPLES)(ask.ask)
app.command("export", epilog=export.EXAMPLES)(export.export)
app.command("robot", epilog=robot.EXAMPLES)(robot.robot)
app.command("plan", epilog=plan.EXAMPLES)(plan.plan)
app.command("check")(check.check)
app.command("worlds")(worlds.worlds)
app.command("missions")(missions.missions)
app.command("policies")(policies.policies)
app.command("show")(show.show)
app.command("schema")(schema.schema)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.add_typer(new.app, name="new")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"fieldbo {__version__}")
        raise typer.Exit


@app.callback()
def fieldbo(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Plan and run robotic and field sampling under a battery."""


def main() -> None:
    """Run the command line; an error that a user can mend ends it with exit code 2, and no traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no "±" shows "?"
    try:
        app()
    except FieldboError as error:
        sys.stderr.write(f"fieldbo: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("\nfieldbo: interrupted\n")
        sys.exit(130)
