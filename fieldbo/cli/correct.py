"""``fieldbo correct``: correct a wrong reading of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
**Examples**

`fieldbo correct lake-1 12 24.7` - the reading of order 12 was 24.7

`fieldbo correct lake-1 12 failed` - the reading failed

`fieldbo correct boat-3 7 1,85 --reading 2` - the third reading of order 7, counted from 0

`fieldbo correct lake-1 12 247 --yes` - it was, although it is far from all others

The number of an order is the last part of its id, as *observations.csv* and the prompt show it: 12 of
*lake-1/12*. The record keeps the wrong reading and its correction side by side. The belief, the answer and
all files are those of the right reading; the route and the costs stay, and so does the reason why the run
ended, unless its question was answered and no longer is: then *fieldbo resume* continues the run.
While a run by hand is in progress, type the correction at its prompt instead.
"""

_DIGITS = 18
"""Most digits of an order's number; Python reads no more than some thousands."""


def correct(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, the *run.sqlite* in it, or the name of a run in *runs/*.", metavar="RUN"
        ),
    ],
    order: Annotated[str, typer.Argument(help="Number of the order, or its id.", metavar="ORDER")],
    value: Annotated[
        str,
        typer.Argument(
            help="What the reading really was, with a decimal point or comma; or *failed*.", metavar="VALUE"
        ),
    ],
    reading: Annotated[
        int | None, typer.Option(help="Which reading of the order, counted from 0, if it has several.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take a value that is far from all other readings without asking.")
    ] = False,
) -> None:
    """Correct a reading of a run, finished or not, and rewrite its files."""
    import math

    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.session import UNDONE, saving, show_result
    from fieldbo.cli.terminal import console, says_compiling
    from fieldbo.record.record import Record
    from fieldbo.record.store import RECORD, record_file
    from fieldbo.runs.folder import save
    from fieldbo.runs.runner import correct_run
    from fieldbo.runs.signals import unbroken
    from fieldbo.vehicles.dialogue import number_in

    number = math.nan if value.lower() == "failed" else number_in(value)
    is_number = order.isdecimal() and len(order) <= _DIGITS
    folder, out_to = record_file(run).parent, console()
    with when_compiling(says_compiling(lambda: out_to)), unbroken():
        agree = None if yes else _agree
        result = correct_run(run, int(order) if is_number else order, number, reading, agree)
        with saving(folder):
            formats = save(result, folder)
    out_to.print(f"{result.run}: order {order} corrected to {value}", markup=False)
    with Record(folder / RECORD) as record:
        ended = record.end_reason is not None
    show_result(result, folder, out_to, UNDONE if ended else "Not finished.", formats)


def _agree(question: str) -> None:
    """Ask to confirm an unlikely value; raise an `InputError` if it is not, or if nobody can be asked."""
    import sys

    from fieldbo.errors import InputError

    if not sys.stdin.isatty():
        raise InputError(
            question, expected="a value like the others", where="VALUE", fix="if it is right, add --yes"
        )
    if not typer.confirm(question):
        raise InputError("nothing was corrected", fix="type the right value")
