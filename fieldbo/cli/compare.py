"""``fieldbo compare``: paired runs of several missions, and their mean score or regret at equal cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from fieldbo.results.metrics import Score
    from fieldbo.runs.comparison import Scores, Target

EXAMPLES = """
**Examples**

`fieldbo compare lake-level-set lake-gchk --starts 12 --out rules.csv`

`fieldbo compare gp-lake-truvar gp-lake-gchk --starts 12 --draws 3 --at 1000 --at 4000 --at 8000 --out gp.csv`

`fieldbo compare lake-level-set lake-gchk --target 0.9 --target 0.95 --out rules.csv`

Level sets are compared by F1 (the larger the better), optima by the regret in the unit of the values (the
smaller the better); a comparison holds one kind. In a cell that is a chain of modules the regret is that of
the best sample, among control sets that of the best expected value of all plays.

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
    target: Annotated[
        list[float] | None,
        typer.Option(help="Scores whose cost is told: that at which the mean first reaches them."),
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

    from fieldbo.cli.settings import overrides
    from fieldbo.cli.terminal import console
    from fieldbo.results import plot
    from fieldbo.runs import comparison as campaign

    picture, told = out.with_suffix(".png"), overrides(set_ or [])
    score = campaign.score_of(missions[0], told)
    _check(out, at or [], target or [], score)
    out_to = console()
    columns = (TextColumn("runs"), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out_to) as progress:
        line = progress.add_task("runs", total=None)
        rows = campaign.compare(
            missions,
            starts,
            draws,
            out,
            told,
            jobs,
            on_run=lambda done, total: progress.update(line, completed=done, total=total),
        )
    runs = [r for r in rows if r["row"] == "run"]
    smallest, unit = min(float(r["battery"]) for r in runs), runs[0]["cost_unit"]
    costs = at or [smallest * q for q in (0.25, 0.5, 0.75, 1.0)]
    better = "" if score.better == "larger" else " (smaller is better)"
    out_to.print(f"mean {score.name} at equal cost, ± one standard error{better}")
    by_target = {t: campaign.targets(rows, t, score) for t in target or []}
    scores = campaign.scores_at(rows, costs, score)
    out_to.print(_table(scores, costs, unit, by_target, campaign.calibration(rows)))
    grid = np.linspace(smallest / 60, smallest, 60)
    curves = {m: (grid, s.mean, s.error) for m, s in campaign.scores_at(rows, grid.tolist(), score).items()}
    plot.save(plot.comparison_picture(curves, unit, score), picture)
    out_to.print(f"table in {out}, picture in {picture}", soft_wrap=True, markup=False)


def _check(out: Path, costs: Sequence[float], targets: Sequence[float], score: Score) -> None:
    """Raise an `InputError` if an option makes no sense."""
    from fieldbo.errors import InputError
    from fieldbo.results.metrics import F1

    if out.with_suffix(".png") == out:
        raise InputError(f"the table {out} would be a picture", expected="a .csv file", where="--out")
    for cost in costs:
        if not 0 < cost < float("inf"):
            raise InputError(f"a cost of {cost}", expected="finite numbers above 0", where="--at")
    most, said = (1.0, "a score above 0, of at most 1") if score is F1 else (1e300, "a regret above 0")
    for target in targets:
        if not 0 < target <= most:
            raise InputError(f"a target of {target}", expected=said, where="--target")


def _table(
    scores: Mapping[str, Scores],
    costs: Sequence[float],
    unit: str,
    targets: Mapping[float, Mapping[str, Target]],
    coverage: Mapping[str, float],
) -> Table:
    """Return a line a mission, a column a cost and a target."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("mission", no_wrap=True)
    heads = (
        *(f"{c:g} {unit}" for c in costs),
        *(f"to {t:g} ({unit})" for t in targets),
        "coverage90",
        "runs",
    )
    for head in heads:
        table.add_column(head)
    for mission, score in scores.items():
        cells = [
            f"{m:.3f} ±{e:.3f}" if score.runs > 1 else f"{m:.3f}"
            for m, e in zip(score.mean, score.error, strict=True)
        ]
        cells += [_reached(by_mission[mission], score.runs) for by_mission in targets.values()]
        held = f"{coverage[mission]:.0%}" if mission in coverage else ""
        table.add_row(escape(mission), *cells, held, str(score.runs))
    return table


def _reached(target: Target, runs: int) -> str:
    """Return the cost of a target, and how many runs reached it."""
    from math import isnan

    cost = "never" if isnan(target.cost) else f"{target.cost:,.0f}"
    return cost if target.reached == runs else f"{cost}; {target.reached} of {runs} runs"
