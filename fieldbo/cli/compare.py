"""``fieldbo compare``: compare missions by paired runs at equal cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldbo.cli.pictures import Format, Width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from fieldbo.results.metrics import Score
    from fieldbo.runs.comparison_scores import Difference, Scores, Target

EXAMPLES = """
**Examples**

`fieldbo compare lake-level-set lake-gchk --starts 12 --out lake.csv`

`fieldbo compare gp-lake-truvar gp-lake-gchk --starts 12 --draws 3 --at 1000 --at 4000 --at 8000 --out gp.csv`

`fieldbo compare lake-level-set lake-gchk --target 0.9 --target 0.95 --out lake.csv`

**Scores** - For level sets, F1 (larger is better); for optima, regret in the unit of the values (smaller is
better). All missions in a comparison must have the same kind of score. For a chain of modules, the score is
the regret of the best sample; for control sets, it is the regret of the best expected value over all plays.

**Writes** FILE, a tidy table with one row per step and one per run (the *row* column says which), and a
picture of the means next to it. With --target, also *FILE-profile*, a picture of the performance profiles:
the fraction of runs that reach the target within a factor of the lowest cost from the same start in the same
field (Dolan and Moré 2002). `fieldbo plot FILE comparison` or `profile` draws them again.

If a comparison is interrupted, repeat the command to run only what is missing.
"""


def compare(
    missions: Annotated[
        list[str], typer.Argument(help="Names or TOML files of missions.", metavar="MISSION...")
    ],
    out: Annotated[
        Path, typer.Option(help="CSV file for the results; runs already in it are skipped.", metavar="FILE")
    ],
    starts: Annotated[
        int, typer.Option(min=1, help="Number of random starts, which all missions share.")
    ] = 12,
    draws: Annotated[int, typer.Option(min=1, help="Number of fields to draw from a random world.")] = 1,
    at: Annotated[
        list[float] | None,
        typer.Option(
            help="Cost at which to compare; repeatable. By default, each quarter of the smallest battery."
        ),
    ] = None,
    target: Annotated[
        list[float] | None,
        typer.Option(
            help="Target score; the table shows the cost at which the mean score reaches it, and a second "
            "picture the performance profiles. Repeatable."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key of every mission; repeatable.", metavar="TABLE.KEY=VALUE"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel runs.")] = os.cpu_count() or 1,
    band: Annotated[
        str,
        typer.Option(
            help="Band around each mean: *standard-error*, or *interval* for the central 90% of the runs.",
            metavar="BAND",
        ),
    ] = "standard-error",
    format: Format = None,
    width: Width = "screen",
) -> None:
    """Run missions from the same starts in the same fields, and compare them at equal cost."""
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fieldbo.cli.pictures import checked
    from fieldbo.cli.settings import overrides
    from fieldbo.cli.terminal import console, continued_if_repeated
    from fieldbo.results import plot
    from fieldbo.runs.comparison import compare as compare_missions
    from fieldbo.runs.comparison import label
    from fieldbo.runs.comparison_scores import (
        calibration,
        check_band,
        comparison_figure,
        differences_at,
        errors_over,
        profile_figure,
        score_of,
        scores_at,
        targets,
    )

    checked(format, width)
    picture, replaced = out.with_suffix(f".{format or 'png'}"), overrides(set_ or [])
    score = score_of(missions[0], replaced)
    _check(out, at or [], target or [], score)
    check_band(band)
    out_to = console()
    columns = (TextColumn("runs"), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        continued_if_repeated(out_to, f"finish the comparison in {out}"),
        Progress(*columns, console=out_to) as progress,
    ):
        line = progress.add_task("runs", total=None)
        rows = compare_missions(
            missions,
            starts,
            draws,
            out,
            replaced,
            jobs,
            on_run=lambda done, total: progress.update(line, completed=done, total=total),
        )
    runs = [r for r in rows if r["row"] == "run"]
    smallest, unit = min(float(r["battery"]) for r in runs), runs[0]["cost_unit"]
    costs = at or [smallest * q for q in (0.25, 0.5, 0.75, 1.0)]
    if max(costs) > smallest:
        out_to.print(f"Beyond {smallest:g} {unit}, the smallest battery, missions keep their last score.")
    better = "" if score.better == "larger" else " (smaller is better)"
    by_target = {t: targets(rows, t, score) for t in target or []}
    scores = scores_at(rows, costs, score)
    over = errors_over(rows)
    only = "" if draws > 1 else "; it says nothing about other fields"
    out_to.print(
        f"mean {score.name} at equal cost{better}, ± one standard error {over}{only}", soft_wrap=True
    )
    out_to.print(_table(scores, costs, unit, by_target, calibration(rows)))
    first = label(missions[0])
    if differences := differences_at(rows, costs, first, score):
        out_to.print(f"\ndifference from {first}, same field and start", soft_wrap=True, markup=False)
        out_to.print(_differences(differences, costs, unit))
        if any(gap.clear.any() for gap in differences.values()):
            out_to.print("* 0 is outside the 95% interval (Student's t)", soft_wrap=True)
    drawn = {picture: comparison_figure(rows, score, width, band)}
    if target:
        drawn[out.with_name(f"{out.stem}-profile{picture.suffix}")] = profile_figure(
            rows, target, score, width
        )
    for file, figure in drawn.items():
        plot.save(figure, file)
    pictures = f"picture{'s' if target else ''}: {', '.join(map(str, drawn))}"
    out_to.print(f"table: {out}, {pictures}", soft_wrap=True, markup=False)


def _check(out: Path, costs: Sequence[float], targets: Sequence[float], score: Score) -> None:
    """Raise an `InputError` if an option is out of range."""
    from fieldbo.errors import InputError
    from fieldbo.results.plot import FORMATS
    from fieldbo.runs.comparison_scores import check_target

    if out.suffix.lower().removeprefix(".") in FORMATS:
        raise InputError(f"{out} is a picture", expected="a .csv file", where="--out")
    for cost in costs:
        if not 0 < cost < float("inf"):
            raise InputError(f"the cost is {cost}", expected="a finite number above 0", where="--at")
    for target in targets:
        check_target(target, score)


def _table(
    scores: Mapping[str, Scores],
    costs: Sequence[float],
    unit: str,
    targets: Mapping[float, Mapping[str, Target]],
    coverage: Mapping[str, float],
) -> Table:
    """Return a table with one row per mission, and one column per cost and target."""
    from rich.markup import escape

    table = _headed(
        *(f"{c:g} {unit}" for c in costs),
        *(f"to {t:g} ({unit})" for t in targets),
        "coverage90",
        "runs",
    )
    for mission, score in scores.items():
        cells = [
            f"{m:.3f} ±{e:.3f}" if score.runs > 1 else f"{m:.3f}"
            for m, e in zip(score.mean, score.error, strict=True)
        ]
        cells += [_reached(by_mission[mission], score.runs) for by_mission in targets.values()]
        covered = f"{coverage[mission]:.0%}" if mission in coverage else ""
        table.add_row(escape(mission), *cells, covered, str(score.runs))
    return table


def _differences(differences: Mapping[str, Difference], costs: Sequence[float], unit: str) -> Table:
    """Return a table with one row per mission and one column per cost; an asterisk marks a clear one."""
    from rich.markup import escape

    table = _headed(*(f"{c:g} {unit}" for c in costs), "pairs")
    for mission, gap in differences.items():
        cells = [
            f"{m:+.3f} ±{e:.3f}{' *' if clear else ''}" if gap.pairs > 1 else f"{m:+.3f}"
            for m, e, clear in zip(gap.mean, gap.error, gap.clear, strict=True)
        ]
        table.add_row(escape(mission), *cells, str(gap.pairs))
    return table


def _headed(*heads: str) -> Table:
    """Return an empty table of missions with these further columns."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("mission", no_wrap=True)
    for head in heads:
        table.add_column(head)
    return table


def _reached(target: Target, runs: int) -> str:
    """Return the cost of a target, and the number of runs that reached it if not all did."""
    from math import isnan

    cost = "never" if isnan(target.cost) else f"{target.cost:,.0f}"
    return cost if target.reached == runs else f"{cost}; {target.reached} of {runs} runs"
