"""``fieldbo run``: run a mission, and write its run folder."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from fieldbo.messages import Event
    from fieldbo.mission.mission import Mission
    from fieldbo.results.curve import Step
    from fieldbo.results.recommendation import BestPlay
    from fieldbo.results.result import Result
    from fieldbo.vehicles.base import Vehicle

EXAMPLES = """
**Examples**

`fieldbo run lake-level-set` - the lake, simulated

`fieldbo run lake-level-set --battery 3000 --seed 1` - half the battery, another seed

`fieldbo run lake-level-set --set policy.kind=gchk --set policy.per_cost=true` - another rule

`fieldbo run my-survey.toml --by-hand` - you go, and type in what you read

`fieldbo run my-survey.toml --vehicle boat.toml` - a robot goes; try it first with `fieldbo robot`

**Writes** `run.sqlite` (the record), `mission.toml` and the world (as run), `summary.json`,
`observations.csv`, `path.csv`, `curve.csv`, `ledger.csv`, `map.nc`, `path.png`, `map.png`, `curve.png`.

**Exit codes** 0: done; 1: broken off by an error, everything read is kept; 2: something has to be mended
first, nothing was started; 130: stopped by Ctrl-C, the run folder is complete up to the last observation.
*fieldbo resume* goes on with a run that did not end.
"""


def run(
    mission: Annotated[
        str,
        typer.Argument(help="Name of a mission (see *fieldbo missions*), or a TOML file.", metavar="MISSION"),
    ],
    seed: Annotated[
        int | None, typer.Option(help="Seed of the random streams; the field stays the same.")
    ] = None,
    battery: Annotated[
        str | None,
        typer.Option(help='Battery in the world\'s cost unit: 3000, or "3000 s".', metavar="AMOUNT"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder to make; by default *runs/MISSION-n*, n the next free number."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Replace a key of the mission; may be given often.", metavar="TABLE.KEY=VALUE"
        ),
    ] = None,
    by_hand: Annotated[
        bool,
        typer.Option("--by-hand", help="You are the vehicle: go where it says, type in what you read."),
    ] = False,
    vehicle: Annotated[
        list[str] | None,
        typer.Option(
            help="A robot carries the orders out: a vehicle file, or *ros2*, *mavlink* or *mqtt* as they are "
            "by default; one for each vehicle of the mission.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Run a mission until its question is answered or its battery is spent.

    A live line shows the battery left, the sites visited and the score so far: F1 and the share still
    unclassified, or the optimum so far and its regret. The run folder holds the record, tables, maps and
    pictures.
    """
    from fieldbo.cli.settings import overrides
    from fieldbo.cli.terminal import console
    from fieldbo.mission.checks import check_simulated
    from fieldbo.mission.load import load_mission
    from fieldbo.runs.folder import begin
    from fieldbo.runs.runner import run as run_mission
    from fieldbo.vehicles.load import vehicle_of

    out_to = console()
    told = load_mission(mission, overrides(set_ or [], seed=seed, battery=battery))
    crew = _crew(vehicle or [], by_hand=by_hand)
    if not crew:
        check_simulated(told)  # before a folder is made
    vehicles = [vehicle_of(one, told, number) for number, one in enumerate(crew)]
    with ExitStack() as links:
        connect(vehicles, links, out_to)
        folder, record = begin(told, out, crew)
        links.enter_context(record)
        go = partial(run_mission, told, record=record)
        if vehicles:
            carry_out(folder, out_to, lambda: with_vehicles(vehicles, told, out_to, go))
        else:
            carry_out(folder, out_to, lambda: simulated(told, out_to, go))


def _crew(vehicles: Sequence[str], *, by_hand: bool) -> list[dict[str, Any]]:
    """Return what a record keeps of the vehicles of a new run; nothing of a simulated one."""
    from fieldbo.errors import InputError
    from fieldbo.vehicles.load import for_new_run

    if by_hand and vehicles:
        raise InputError("both --by-hand and --vehicle", expected="one of them: who carries the orders out?")
    return [for_new_run(name) for name in (["by-hand"] if by_hand else vehicles)]


def carry_out(folder: Path, console: Console, go: Callable[[], Result]) -> None:
    """Run, or go on with a run; write its files, say what came of it, and end with its exit code."""
    from fieldbo.runs.runner import BrokenOffError, Interrupted, unbroken

    code, short = 0, "Stopped by you."
    _stop_as_ctrl_c_does()
    try:
        result = go()
    except Interrupted as stop:
        code, result = 130, stop.result
    except BrokenOffError as stop:
        code, short, result = 1, "Broken off.", stop.result
        typer.echo(f"fieldbo: the run broke off: {stop}\nIts record is in {folder}.", err=True)
    with unbroken():  # a Ctrl-C waits until every file is there
        with saving(folder):
            result.save(folder)
        _report(result, folder, console, short)
    raise typer.Exit(code)


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """End with exit code 1 where a run's files can't be written: all that they say is in its record."""
    try:
        yield
    except OSError as error:
        what = error.filename or f"a file in {folder}"
        typer.echo(
            f"fieldbo: {what} can't be written: {error.strerror or error}\n"
            "Tables and pictures may be missing, or those of an earlier stop (delete these). Nothing is "
            f"lost: the record is whole.\nTo write them when that is mended: fieldbo resume {folder}\n"
            f"To write tables and maps elsewhere: fieldbo export {folder} csv netcdf --out FOLDER",
            err=True,
        )
        raise typer.Exit(1) from None


def _stop_as_ctrl_c_does() -> None:
    """Let a closed terminal, and whoever shuts the machine down, stop a run as Ctrl-C does."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores it
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))


def simulated(mission: Mission, console: Console, go: Callable[..., Result]) -> Result:
    """Run in simulation with a live line; `go` runs, or goes on with a run."""
    from rich.progress import BarColumn, Progress, TextColumn

    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.agent.ledger import rounded
    from fieldbo.cli.terminal import says_compiling

    battery, unit = mission.vehicles[0].battery, mission.world.cost_unit
    columns = (TextColumn("battery"), BarColumn(24), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        line = progress.add_task(f"{rounded(battery, battery)} {unit}", total=battery)
        progress.update(line, completed=battery)

        def show(step: Step) -> None:
            progress.update(line, completed=max(0.0, step.remaining), description=_line(step, mission))

        with when_compiling(says_compiling(progress.console)):
            return go(on_step=show)


def with_vehicles(
    vehicles: Sequence[Vehicle], mission: Mission, console: Console, go: Callable[..., Result]
) -> Result:
    """Run with real vehicles, or with a person as one; a line after each order."""
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.terminal import says_compiling

    with when_compiling(says_compiling(console)):
        return go(
            vehicles=vehicles,
            on_step=lambda step: console.print(f"  {_line(step, mission)}", style="dim"),
            on_event=partial(_trouble, console),
        )


def _trouble(console: Console, event: Event) -> None:
    """Say what went wrong with an order, when it does."""
    from fieldbo.messages import Lost, Observation, Rejected

    if isinstance(event, Lost | Rejected):
        what = "lost" if isinstance(event, Lost) else "refused"
        console.print(f"  {event.order} {what}: {event.reason}", style="yellow", markup=False)
    elif isinstance(event, Observation) and not event.complete:
        console.print(f"  {event.order} was cut short", style="yellow", markup=False)


def connect(vehicles: Sequence[Vehicle], links: ExitStack, console: Console) -> None:
    """Wait until all vehicles answer; before a run folder is made, or a record gone on with."""
    for one in vehicles:
        if (address := getattr(one, "address", None)) is not None:
            console.print(f"waiting for the robot at {address}", style="dim", markup=False)
        links.enter_context(one)


def _line(step: Step, mission: Mission) -> str:
    """Return how things stand, in one line."""
    from fieldbo.agent.ledger import rounded
    from fieldbo.belief.question import Optimum
    from fieldbo.results.answers import amount

    question, world = mission.question, mission.world
    left = rounded(step.remaining, sum(c.battery for c in mission.vehicles))
    head = f"{left} {world.cost_unit} left, {_visited(step.step)}, "
    if isinstance(question, Optimum):
        regret = "" if isnan(step.regret) else f", regret {step.regret:.3g}"
        side = "largest" if question.sign > 0 else "smallest"
        return f"{head}{side} by the model {amount(step.reported_value, world.quantity)}{regret}"
    f1 = f"expected F1 {step.expected_f1:.2f}" if isnan(step.f1) else f"F1 {step.f1:.2f}"
    return f"{head}{step.unclassified:.0%} unclassified, {f1}"


def _visited(sites: int) -> str:
    return f"{sites} site visited" if sites == 1 else f"{sites} sites visited"


def _report(result: Result, folder: Path, console: Console, short: str) -> None:
    """Print what came of the run, and where it is; `short` says why it did not come to its end."""
    from fieldbo.agent.ledger import rounded

    told = result.summary()
    unit, battery = told["cost_unit"], told["battery"]
    if result.end_reason is None:
        console.print(
            f"[bold]{short}[/] The run folder is complete up to the last observation "
            f"({told['readings']} readings)."
        )
    else:
        reason = "time is up" if told["limit"] == "time" else result.end_reason
        console.print(f"[bold]{reason.capitalize()}.[/] {_visited(told['steps'])}.")
    for line in _level_set(told, result) if told["question"] == "level-set" else _optimum(told, result):
        console.print(f"  {line}", markup=False)
    console.print(f"  cost     {_against_plan(told)}", markup=False)
    if "time_limit_s" in told:
        limit = told["time_limit_s"]
        console.print(f"  time     {rounded(told['time_s'], limit)} of {limit:,g} s")
    for one in told.get("levels", []):
        paid = f"{rounded(one['cost'], battery)} {unit}"
        console.print(f"  level {one['level']}: {one['readings']} readings for {paid}")
    for line in _cell(told):
        console.print(f"  {line}", markup=False)
    for note in told["notes"]:
        console.print(f"  note: {note}", style="yellow", markup=False)
    console.print(
        f"  in {folder}: path.png, map.png, curve.png, summary.json and more", soft_wrap=True, markup=False
    )
    if result.end_reason is None:
        console.print(f"  go on with it: fieldbo resume {folder}", soft_wrap=True, markup=False)


def _cell(told: dict[str, Any]) -> list[str]:
    """Return what ran in a chain of modules, or which control sets were played."""
    unit, lines = told["cost_unit"], []
    if "modules" in told:
        runs = ", ".join(f"{one['name']} {one['runs']}" for one in told["modules"])
        lines.append(f"runs     {runs}")
    if measured := told.get("measured"):
        each = ", ".join(f"{name} {total:.4g}" for name, total in measured.items())
        lines.append(f"measured {each}")
    if played := [one for one in told.get("control_sets", ()) if one["plays"]]:
        sets = (f"{one['set']}: {one['plays']} for {one['cost']:.3g} {unit}" for one in played)
        lines.append(f"plays    {'; '.join(sets)}")
    if told.get("simple_regret") is not None:
        lacks = f"lacks {told['simple_regret']:.3g} to the best expected value"
        if (play := told["play"]) is not None:
            lacks = f"made {lacks}, the play to go on with {play['regret']:.3g}"
        lines.append(f"best play {lacks}")
    elif told.get("best_regret") is not None:
        lines.append(f"best sample lacks {told['best_regret']:.3g} to the true optimum")
    return lines


def _against_plan(told: dict[str, Any]) -> str:
    """Return what was spent of the battery and, where it differs, what was planned."""
    from fieldbo.agent.ledger import rounded

    cost, planned, battery = told["cost"], told["planned_cost"], told["battery"]
    whole = f"{battery:,.10g}"
    spent = f"{rounded(cost, battery)} of {whole} {told['cost_unit']}"
    if told["costs"] == "unknown":
        return f"{spent}, found out on the way"
    if abs(cost - planned) <= 1e-9 * planned:
        return spent
    share = (
        f"{100 * abs(cost / planned - 1):.2g}% {'more' if cost > planned else 'less'}" if planned else "more"
    )
    return f"{spent}, {share} than the {rounded(planned, battery)} planned"


def _level_set(told: dict[str, Any], result: Result) -> list[str]:
    """Return the answer's lines: F1, and how much lies above the threshold."""
    from fieldbo.results.answers import amount

    f1_low, f1_high = told["expected_f1_interval90"]
    low, high = told["area_above_interval90"]
    scored = "" if told["f1"] is None else f"{told['f1']:.3f} against the truth; "
    share = told.get("threshold_of_maximum")
    of = "" if share is None else f" ({100 * share:g}% of the maximum)"
    return [
        f"F1       {scored}{told['expected_f1']:.3f} expected by the model ({f1_low:.3f} to {f1_high:.3f})",
        f"above {amount(told['threshold'], result.mission.world.quantity)}{of}: "
        f"{_rounded(told['area_above'])} {told['area_unit']}".rstrip()
        + f" ({_rounded(low)} to {_rounded(high)})",
    ]


def _rounded(area: float) -> str:
    """Return an area to a whole number, a small one to three digits."""
    return f"{area:,.0f}" if area >= 100 else f"{area:.3g}"


def _optimum(told: dict[str, Any], result: Result) -> list[str]:
    """Return the answer's lines: the optimum by the model and its regret; of control sets what to play."""
    from fieldbo.results.answers import amount

    if result.play is not None:
        return _play(result.play, result)
    world, side = result.mission.world, "largest" if told["goal"] == "maximise" else "smallest"
    axes = zip(world.domain.axes, told["reported_site"], strict=True)
    place = ", ".join(f"{a.name} {x:.4g} {a.unit}".rstrip() for a, x in axes)
    low, high = told["reported_value_interval90"]
    r_low, r_high = told["expected_regret_interval90"]
    scored = "" if told["regret"] is None else f"{told['regret']:.3g} against the truth; "
    at = "with everything set, at" if world.domain.control_sets else "at"
    return [
        f"{side:<8} {amount(told['reported_value'], world.quantity)} ({low:.4g} to {high:.4g}) {at} {place}",
        f"regret   {scored}{told['expected_regret']:.3g} expected by the model ({r_low:.3g} to {r_high:.3g})",
    ]


def _play(play: BestPlay, result: Result) -> list[str]:
    """Return what to play, and which sets are as good for all that is known, at a price that nobody knows."""
    sets = result.mission.world.domain.control_sets
    others = [one for one in result.best_plays if one.as_good and one.cost is None and one is not play]
    unpriced = ", ".join(sets[one.number].name for one in others)
    told = [f"as good  {unpriced}, for all that is known, at a price not known yet"] if others else []
    return [f"play     {play.in_words(result.mission.world)}", *told]
