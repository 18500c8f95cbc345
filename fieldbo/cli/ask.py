"""``fieldbo ask``: where the agent would go next, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
**Examples**

`fieldbo ask runs/lake-level-set-1` - the next query of a run that was stopped; the last one of one that ended

`fieldbo ask runs/lake-level-set-1 --order 12` - why was order 12 what it was?

**left** is what could still be spent on queries after that one, the way home set aside.

In a cell, a dash among the settings is a variable that is left to chance. Of control sets whose costs are to
be found out, **mean cost** is that of their **plays** so far, **cost at least** its lower confidence bound,
**at best** the value that they may come to on average, and **good enough** says whether that may be enough to
play them; while the rule is still exploring, it does not ask that yet.
"""


def ask(
    run: Annotated[
        Path, typer.Argument(help="A run folder, or the *run.sqlite* in it; it is only read.", metavar="RUN")
    ],
    order: Annotated[
        int | None, typer.Option(help="Explain the order of that number, the first one being 0.")
    ] = None,
) -> None:
    """Say what a run's agent would ask for next, and why: the three best sites, and what they cost.

    Of a run that ended, how it ended, and why its last query was where it was.
    """
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.terminal import console, says_compiling
    from fieldbo.runs.explanation.explain import explain

    with when_compiling(says_compiling(console())):
        typer.echo(explain(run, order).text)
