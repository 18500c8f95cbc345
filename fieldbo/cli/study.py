"""``fieldbo advise`` and ``compare``: many simulated runs, to choose a battery or a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldbo.cli.options import CPUS, Format, Jobs, Prior, Set, Width, check_pictures, examples, overrides
from fieldbo.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from fieldbo.results.metrics import Score
    from fieldbo.results.plot.comparisons import Expected
    from fieldbo.runs.advice.advice import Advice
    from fieldbo.runs.comparison_scores import Difference, Scores, Target


_POINTS = 60


@examples(
    """
**Examples**

`fieldbo advise gp-lake --target 0.9 --probability 0.8` - the battery for F1 0.9

`fieldbo advise lake-level-set --battery "1 h"` - what to expect of an hour

`fieldbo advise my-lake.toml --target 0.9` - how many batteries, where the mission has *agent.recharge*

`fieldbo advise gp-lake --target 0.9 --policy tour --policy truvar` - the same for two policies

The mission is simulated in fields drawn from its belief: from the posterior given its earlier readings and
the survey of its world, or else from the prior that *[model]* states. The world needs no field of its own.

**Writes** into FOLDER *runs.csv*, one line per simulated run, *advice.json* and a picture.

If the command is interrupted, repeat it to run only what is missing.
"""
)
def advise(
    mission: Annotated[str, typer.Argument(help="Name or TOML file of a mission.")],
    target: Annotated[
        float | None,
        typer.Option(help="F1 to reach at the end; without *--battery*, find the battery that it needs."),
    ] = None,
    probability: Annotated[
        float | None, typer.Option(help="Probability with which to reach the target.", show_default="0.8")
    ] = None,
    battery: Annotated[
        str | None,
        typer.Option(
            help="Battery to judge, as a number in the world's cost unit or with a unit; by default the "
            "mission's own."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Policy to advise on: its kind, and settings after commas, as in *gchk,per_cost=true*. "
            "Repeatable. By default, the mission's own.",
            metavar="KIND",
        ),
    ] = None,
    fields: Annotated[
        int, typer.Option(min=1, help="Number of drawn fields; a search uses as many again to check.")
    ] = 40,
    set_: Set = None,
    prior: Prior = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results, by default *runs/MISSION-advice*.", metavar="FOLDER"),
    ] = None,
    jobs: Jobs = CPUS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the drawn fields.")] = 0,
    yes: Annotated[
        bool, typer.Option("--yes", help="Begin even if it takes more than half an hour.")
    ] = False,
    format: Format = None,
    width: Width = "screen",
) -> None:
    """Say which battery a mission needs for a target, or what to expect of a battery."""
    from rich.progress import MofNCompleteColumn, Progress, TextColumn

    from fieldbo.cli.session import console, continued_if_repeated
    from fieldbo.clock import duration_text
    from fieldbo.results import plot
    from fieldbo.runs.advice.advise import advise as advise_on
    from fieldbo.runs.advice.advise import folder_of

    check_pictures(format, width)
    out_to, folder = console(), folder_of(mission, out)
    given = None if battery is None else overrides(battery=battery)["agent"]["battery"]
    columns = (TextColumn("{task.description}", markup=False), MofNCompleteColumn())
    with (
        continued_if_repeated(out_to, f"continue in {folder}"),
        Progress(*columns, console=out_to) as progress,
    ):

        def show(doing: str, done: int, total: int) -> None:
            line = progress.task_ids[0] if progress.task_ids else progress.add_task(doing)
            progress.update(line, description=doing, completed=done, total=total)

        advice = advise_on(
            mission,
            target,
            probability,
            given,
            fields=fields,
            policies=policy or [],
            overrides=overrides(set_ or [], prior=prior),
            out=folder,
            jobs=jobs,
            seed=seed,
            patient=yes,
            on_estimate=lambda s: progress.print(f"this takes about {duration_text(s, about=True)}"),
            on_progress=show,
        )
    out_to.print(str(advice), soft_wrap=True, markup=False)
    picture = folder / f"advice.{format or 'png'}"
    title = f"{advice.mission}\n{advice.question}"
    drawn = plot.advice_picture(_make_expected(advice), advice.cost_unit, advice.score, target, width, title)
    plot.save(drawn, picture)
    out_to.print(f"table: {folder / 'runs.csv'}, picture: {picture}", soft_wrap=True, markup=False)


def _make_expected(advice: Advice) -> dict[str, Expected]:
    import numpy as np

    from fieldbo.results.plot.comparisons import Expected

    grids = {p.policy: np.linspace(0.0, p.battery, _POINTS + 1)[1:] for p in advice.policies}
    return {
        p.policy: Expected(grids[p.policy], p.scores(grids[p.policy]), p.battery, p.each)
        for p in advice.policies
    }


@examples(
    """
**Examples**

`fieldbo compare lake-level-set --policy tour --policy gchk --starts 12 --out lake.csv`

`fieldbo compare gp-lake --policy truvar --policy gchk,per_cost=true --starts 12 --draws 3 --out gp.csv`

`fieldbo compare lake-level-set lake-lawnmower --target 0.9 --target 0.95 --out lake.csv`

**Scores** - For level sets, F1 (larger is better); for optima, regret in the unit of the values (smaller is
better). All missions in a comparison must have the same kind of score. For a chain of modules, the score is
the regret of the best sample; for control sets, it is the regret of the best expected value over all plays.

**Writes** FILE, a tidy table with one row per step and one per run (the *row* column says which), and a
picture of the means next to it. With --target, also *FILE-profile*, a picture of the performance profiles:
the fraction of runs that reach the target within a factor of the lowest cost from the same start in the same
field (Dolan and Moré 2002). `fieldbo plot FILE comparison` or `profile` draws them again.

If a comparison is interrupted, repeat the command to run only what is missing.
"""
)
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
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            help="Policy in place of each mission's own: its kind, and settings after commas, as in "
            "*gchk,per_cost=true*. Repeatable, to compare policies in one mission.",
            metavar="KIND",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key of every mission; repeatable.", metavar="TABLE.KEY=VALUE"),
    ] = None,
    jobs: Jobs = CPUS,
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

    from fieldbo.cli.session import console, continued_if_repeated
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

    check_pictures(format, width)
    picture, replaced = out.with_suffix(f".{format or 'png'}"), overrides(set_ or [])
    if policy:
        missions = [f"{name} with {each}" for name in missions for each in policy]
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
    out_to.print(_tabulate(scores, costs, unit, by_target, calibration(rows)))
    first = label(missions[0])
    if differences := differences_at(rows, costs, first, score):
        out_to.print(f"\ndifference from {first}, same field and start", soft_wrap=True, markup=False)
        out_to.print(_tabulate_differences(differences, costs, unit))
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
    from fieldbo.results.plot import FORMATS
    from fieldbo.runs.comparison_scores import check_target

    if out.suffix.lower().removeprefix(".") in FORMATS:
        raise InputError(f"{out} is a picture", expected="a .csv file", where="--out")
    for cost in costs:
        if not 0 < cost < float("inf"):
            raise InputError(f"the cost is {cost}", expected="a finite number above 0", where="--at")
    for target in targets:
        check_target(target, score)


def _tabulate(
    scores: Mapping[str, Scores],
    costs: Sequence[float],
    unit: str,
    targets: Mapping[float, Mapping[str, Target]],
    coverage: Mapping[str, float],
) -> Table:
    """Return a table with one row per mission, and one column per cost and target."""
    from rich.markup import escape

    table = _start_table(
        *(f"{c:g} {unit}" for c in costs), *(f"to {t:g} ({unit})" for t in targets), "coverage90", "runs"
    )
    for mission, score in scores.items():
        cells = [
            f"{m:.3f} ±{e:.3f}" if score.runs > 1 else f"{m:.3f}"
            for m, e in zip(score.mean, score.error, strict=True)
        ]
        cells += [_format_reached(by_mission[mission], score.runs) for by_mission in targets.values()]
        covered = f"{coverage[mission]:.0%}" if mission in coverage else ""
        table.add_row(escape(mission), *cells, covered, str(score.runs))
    return table


def _tabulate_differences(differences: Mapping[str, Difference], costs: Sequence[float], unit: str) -> Table:
    """Return a table with one row per mission and one column per cost; an asterisk marks a clear one."""
    from rich.markup import escape

    table = _start_table(*(f"{c:g} {unit}" for c in costs), "pairs")
    for mission, gap in differences.items():
        cells = [
            f"{m:+.3f} ±{e:.3f}{' *' if clear else ''}" if gap.pairs > 1 else f"{m:+.3f}"
            for m, e, clear in zip(gap.mean, gap.error, gap.clear, strict=True)
        ]
        table.add_row(escape(mission), *cells, str(gap.pairs))
    return table


def _start_table(*heads: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("mission", no_wrap=True)
    for head in heads:
        table.add_column(head)
    return table


def _format_reached(target: Target, runs: int) -> str:
    """Return the cost of a target, and the number of runs that reached it if not all did."""
    from math import isnan

    cost = "never" if isnan(target.cost) else f"{target.cost:,.0f}"
    return cost if target.reached == runs else f"{cost}; {target.reached} of {runs} runs"
