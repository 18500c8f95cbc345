"""``fieldbo check``: show how fieldbo reads a file, or say what is wrong with it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fieldbo.mission.mission import Mission
    from fieldbo.vehicles.file import LoadedVehicleFile


def check(
    file: Annotated[
        str, typer.Argument(help="A mission, world or vehicle: a TOML file, a folder, or a name.")
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Override a key of the mission, as *run* does.", metavar="TABLE.KEY=VALUE"
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(help="Earlier readings to begin with, as for *run*.", metavar="FILE"),
    ] = None,
    vehicle: Annotated[
        list[str] | None,
        typer.Option(help="Check that this vehicle file fits the mission; repeatable.", metavar="FILE"),
    ] = None,
) -> None:
    """Show how fieldbo reads a mission, world or vehicle file, or say what is wrong and how to fix it."""
    from fieldbo.errors import InputError
    from fieldbo.mission.description import describe_world
    from fieldbo.mission.files import list_missions, list_worlds, read_toml
    from fieldbo.mission.load import load_world

    path = _path(file)
    content = read_toml(path) if path is not None and (path.exists() or path.suffix == ".toml") else {}
    kind = "mission"
    if "link" in content:
        kind = "vehicle"
    elif ("domain" in content and "policy" not in content) or (
        not content and file in list_worlds() and file not in list_missions()
    ):
        kind = "world"
    if set_ and kind != "mission":
        raise InputError(
            f"--set {set_[0]} does not apply to a {kind}",
            expected="--set with a mission",
            where="--set",
            fix=f"edit the {kind}'s file",
        )
    if vehicle and kind != "mission":
        raise InputError(
            f"--vehicle {vehicle[0]} does not apply to a {kind}",
            expected="--vehicle with a mission",
            where="--vehicle",
        )
    if prior is not None and kind != "mission":
        raise InputError(
            f"--prior {prior} does not apply to a {kind}", expected="--prior with a mission", where="--prior"
        )
    name = file if path is None or not path.exists() else path
    if kind == "vehicle":
        from fieldbo.vehicles.description import describe_vehicle
        from fieldbo.vehicles.file import LoadedVehicleFile

        lines = describe_vehicle(LoadedVehicleFile.read(file), file)
    elif kind == "world":
        lines = describe_world(load_world(name))
    else:
        lines = _mission(name, set_ or [], vehicle or [], prior)
    typer.echo("\n".join(lines))


def _path(given: str) -> Path | None:
    """Return the file that was given, or the one in a folder; None if only a name can be meant."""
    from fieldbo.mission.files import list_missions, list_worlds

    folder = Path(given)
    if not folder.is_dir():
        return folder
    held = [folder / name for name in ("world.toml", "mission.toml") if (folder / name).is_file()]
    if not held and (given in list_missions() or given in list_worlds()):
        return None
    return held[0] if held else folder / "world.toml"


def _mission(name: str | Path, pairs: list[str], vehicles: list[str], prior: str | None) -> list[str]:
    """Return lines that describe a mission, its world and its vehicles, with warnings."""
    from fieldbo.agent.agent import Agent
    from fieldbo.agent.budget_warnings import unaffordable
    from fieldbo.agent.coverage import estimates
    from fieldbo.cli.settings import overrides
    from fieldbo.mission.description import describe_mission, describe_world
    from fieldbo.mission.kinds import COSTS, FIELDS, POLICIES
    from fieldbo.mission.load import load_mission
    from fieldbo.results.answers import ANSWERS
    from fieldbo.results.words import question_text
    from fieldbo.vehicles.kinds import LINKS

    files, full = _files(vehicles) if vehicles else ([], None)
    mission = load_mission(name, overrides(pairs, prior=prior), full)
    fit, on_vehicles = _on_vehicles(files, vehicles, mission) if files else ([], [])
    agent = Agent(mission)
    score = ANSWERS[type(mission.question)].score.name
    question = f"{question_text(mission.question, mission.world.quantity)} (scored by {score})"
    taken, too_much = estimates(mission)
    warnings = [
        *unaffordable(mission, agent.initial),
        *too_much,
        *_beyond_truth(mission),
        *agent.warnings,
        *fit,
    ]
    warnings += [w for kinds in (POLICIES, FIELDS, COSTS, LINKS) for w in kinds.warnings().values()]
    lines = [*describe_mission(mission, question), *taken, *describe_world(mission.world), *on_vehicles]
    described = set(lines)
    return [*lines, *(f"warning: {w}" for w in warnings if f"warning: {w}" not in described)]


def _files(vehicles: list[str]) -> tuple[list[LoadedVehicleFile], float | str | None]:
    """Return vehicle files, and what the full battery in them holds."""
    from fieldbo.vehicles.file import LoadedVehicleFile
    from fieldbo.vehicles.load import full_battery

    files = [LoadedVehicleFile.for_record(vehicle) for vehicle in vehicles]
    return files, full_battery([file.content for file in files])


def _on_vehicles(
    files: list[LoadedVehicleFile], vehicles: list[str], mission: Mission
) -> tuple[list[str], list[str]]:
    """Return warnings on how vehicles fit a mission, and lines that describe them."""
    from fieldbo.errors import errors_of, raise_all
    from fieldbo.vehicles.checks import check_vehicle
    from fieldbo.vehicles.description import describe_vehicle
    from fieldbo.vehicles.place import describe_place

    warnings: list[str] = []
    lines: list[str] = []

    def fit(number: int) -> None:
        warnings.extend(check_vehicle(files[number], mission, number))

    raise_all(errors_of(*(partial(fit, number) for number in range(len(files)))))
    for number, (file, vehicle) in enumerate(zip(files, vehicles, strict=True)):
        place = describe_place(file, mission, number)
        link = file.link.describe(mission, file.settings.ground(mission.world.domain))
        lines += [*describe_vehicle(file, vehicle, mission.world.domain), *place, *link]
    return warnings, lines


def _beyond_truth(mission: Mission) -> list[str]:
    """Return a warning if all true values lie on the same side of the threshold."""
    from fieldbo.belief.question import Optimum
    from fieldbo.results.truth import truth_of

    truth = truth_of(mission.world, mission.question)
    question = mission.question
    if truth is None or isinstance(question, Optimum) or truth.inside.all() != truth.inside.any():
        return []
    lies = "below" if truth.above.all() else "above"
    number = "all" if truth.inside.all() else "none"
    return [
        f"the threshold {truth.threshold:.4g} lies {lies} all true values, {truth.values.min():.4g} to "
        f"{mission.world.quantity.amount(truth.values.max())}: {number} of the sites are at or "
        f"{question.side} it"
    ]
