"""``fieldbo ask``: what a run would query next, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
**Examples**

`fieldbo ask runs/lake-level-set-1` - the next query of a run; for a run that has ended, its last query

`fieldbo ask runs/lake-level-set-1 --order 12` - why the run issued order 12

**Columns**

**left after** - what remains for later queries, with the cost of the trip home set aside

A dash in place of a variable means that the query leaves it free.

Control sets with unknown costs have a table of their own. **mean cost** - the average cost of the set's
**plays** so far; **cost at least** - the lower confidence bound; **best case** - the confidence bound on the
average value; **plausible** - whether that bound is good enough for the set to be played.
"""


def ask(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, the *run.sqlite* in it, or the name of a run in *runs/*.", metavar="RUN"
        ),
    ],
    order: Annotated[
        int | None, typer.Option(help="Explain the order with this number, counted from 0.")
    ] = None,
) -> None:
    """Explain what a run would query next: up to three of the best candidates, their costs, and the reasons.

    For a run that has ended, explain its last query. Safe to use while the run is in
    progress; nothing is modified.
    """
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.terminal import console, says_compiling
    from fieldbo.runs.explain import explain

    with when_compiling(says_compiling(console)):
        typer.echo(explain(run, order).text)
