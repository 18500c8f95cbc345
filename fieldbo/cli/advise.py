"""``fieldbo advise``: say which battery a mission needs, or what to expect of a battery."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldbo.cli.pictures import Format, Width

if TYPE_CHECKING:
    from fieldbo.results.plot.comparisons import Expected
    from fieldbo.runs.advice.advice import Advice

EXAMPLES = """
**Examples**

`fieldbo advise gp-lake-tour --target 0.9 --probability 0.8` - the battery for F1 0.9

`fieldbo advise lake-level-set --battery "1 h"` - what to expect of an hour

`fieldbo advise my-lake.toml --target 0.9` - how many batteries, where the mission has *agent.recharge*

`fieldbo advise gp-lake-tour --target 0.9 --policy tour --policy truvar` - the same for two policies

The mission is simulated in fields drawn from its belief: from the posterior given its earlier readings and
the survey of its world, or else from the prior that *[model]* states. The world needs no field of its own.

**Writes** into FOLDER *runs.csv*, one line per simulated run, *advice.json* and a picture.

If the command is interrupted, repeat it to run only what is missing.
"""

_POINTS = 60


def advise(
    mission: Annotated[str, typer.Argument(help="Name or TOML file of a mission.")],
    target: Annotated[
        float | None,
        typer.Option(help="F1 to reach at the end; without *--battery*, find the battery that it needs."),
    ] = None,
    probability: Annotated[
        float | None,
        typer.Option(help="Probability with which to reach the target.", show_default="0.8"),
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
            help="Kind of policy to advise on; repeatable. By default, the mission's own.", metavar="KIND"
        ),
    ] = None,
    fields: Annotated[
        int, typer.Option(min=1, help="Number of drawn fields; a search uses as many again to check.")
    ] = 40,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key of the mission; repeatable.", metavar="TABLE.KEY=VALUE"),
    ] = None,
    prior: Annotated[
        str | None, typer.Option(help="Earlier readings to begin with, as for *run*.", metavar="FILE")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results, by default *runs/MISSION-advice*.", metavar="FOLDER"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel runs.")] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the drawn fields.")] = 0,
    yes: Annotated[
        bool, typer.Option("--yes", help="Begin even if it takes more than half an hour.")
    ] = False,
    format: Format = None,
    width: Width = "screen",
) -> None:
    """Say which battery a mission needs for a target, or what to expect of a battery."""
    from rich.progress import MofNCompleteColumn, Progress, TextColumn

    from fieldbo.cli.pictures import checked
    from fieldbo.cli.settings import overrides
    from fieldbo.cli.terminal import console, continued_if_repeated
    from fieldbo.clock import duration_text
    from fieldbo.results import plot
    from fieldbo.runs.advice.advise import advise as advise_on
    from fieldbo.runs.advice.advise import folder_of

    checked(format, width)
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
    drawn = plot.advice_picture(_expected(advice), advice.cost_unit, advice.score, target, width, title)
    plot.save(drawn, picture)
    out_to.print(f"table: {folder / 'runs.csv'}, picture: {picture}", soft_wrap=True, markup=False)


def _expected(advice: Advice) -> dict[str, Expected]:
    """Return the bands to draw."""
    import numpy as np

    from fieldbo.results.plot.comparisons import Expected

    grids = {p.policy: np.linspace(0.0, p.battery, _POINTS + 1)[1:] for p in advice.policies}
    return {
        p.policy: Expected(grids[p.policy], p.scores(grids[p.policy]), p.battery, p.each)
        for p in advice.policies
    }
