"""``fieldbo report``: the page of a run, to send to somebody."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
**Examples**

`fieldbo report lake-level-set-1` - writes *runs/lake-level-set-1/report.html*

`fieldbo report runs/lake-level-set-1 --out lake.html` - somewhere else

The file holds everything that it shows: it opens in any browser, offline. Safe to use while the run is in
progress, or after a crash: the record is only read, and an earlier page is replaced.
"""


def report(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, the *run.sqlite* in it, or the name of a run in *runs/*.", metavar="RUN"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write; by default *report.html* in the run folder.", metavar="FILE"),
    ] = None,
) -> None:
    """Write a web page of a run: answer, map over time, costs, readings, and why each order was chosen."""
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.terminal import console, says_compiling
    from fieldbo.pages.report import write_report

    with when_compiling(says_compiling(console)):
        typer.echo(write_report(run, out))
