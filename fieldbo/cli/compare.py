"""``fieldbo compare``: paired runs of several missions, and their mean score at equal cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from fieldbo.campaign import Scores

EXAMPLES = """
**Examples**

`fieldbo compare lake-level-set lake-gchk --starts 12 --out rules.csv`

`fieldbo compare gp-lake-truvar gp-lake-gchk --starts 12 --draws 3 --at 1000 --at 4000 --at 8000 --out gp.csv`

Stopped half-way, the same command goes on where it was. FILE is one tidy table: a row for each step
(*row = step*) and one for each run (*row = run*). A picture of the means lies beside it.
"""


def compare(
    missions: Annotated[list[str], typer.Argument(help="Names or TOML files.", metavar="MISSION...")],
    out: Annotated[
        Path, typer.Option(help="The table (CSV); it is taken up where it stopped.", metavar="FILE")
    ],
    starts: Annotated[int, typer.Option(min=1, help="Random starts, the same for every mission.")] = 12,
    draws: Annotated[int, typer.Option(min=1, help="Fields, where the world is random.")] = 1,
    at: Annotated[
        list[float] | None,
        typer.Option(help="Costs at which to compare; may be given often. Default: quarters of the battery."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Replace a key of every mission; may be given often.", metavar="TABLE.KEY=VALUE"
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = os.cpu_count() or 1,
) -> None:
    """Run missions side by side, from the same starts in the same fields, and compare them at equal cost."""
    import numpy as np
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fieldbo import campaign, plot
    from fieldbo.cli.console import console
    from fieldbo.cli.settings import overrides
    from fieldbo.errors import InputError

    picture = out.with_suffix(".png")
    if picture == out:
        raise InputError(f"the table {out} would be a picture", expected="a .csv file", where="--out")
    for cost in at or []:
        if not 0 < cost < float("inf"):
            raise InputError(f"a cost of {cost}", expected="finite numbers above 0", where="--at")
    out_to = console()
    columns = (TextColumn("runs"), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out_to) as progress:
        line = progress.add_task("runs", total=None)
        rows = campaign.compare(
            missions,
            starts,
            draws,
            out,
            overrides(set_ or []),
            jobs,
            on_run=lambda done, total: progress.update(line, completed=done, total=total),
        )
    runs = [r for r in rows if r["row"] == "run"]
    smallest, unit = min(float(r["battery"]) for r in runs), runs[0]["cost_unit"]
    costs = at or [smallest * q for q in (0.25, 0.5, 0.75, 1.0)]
    out_to.print("mean F1 at equal cost, ± one standard error")
    out_to.print(_table(campaign.scores_at(rows, costs), costs, unit))
    grid = np.linspace(smallest / 60, smallest, 60)
    curves = {m: (grid, s.mean, s.error) for m, s in campaign.scores_at(rows, grid.tolist()).items()}
    plot.save(plot.comparison_picture(curves, unit), picture)
    out_to.print(f"table in {out}, picture in {picture}", soft_wrap=True, markup=False)


def _table(scores: Mapping[str, Scores], costs: Sequence[float], unit: str) -> Table:
    """Return a line a mission, a column a cost."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("mission", no_wrap=True)
    for head in (*(f"{c:g} {unit}" for c in costs), "runs"):
        table.add_column(head)
    for mission, score in scores.items():
        cells = [f"{m:.3f} ±{e:.3f}" for m, e in zip(score.mean, score.error, strict=True)]
        table.add_row(escape(mission), *cells, str(score.runs))
    return table
