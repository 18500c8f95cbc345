"""``fieldbo missions``, ``worlds``, ``policies``, ``show``, ``schema``, ``check``: what there is."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldbo.cli.options import Draw, Format, Policy, Prior, Width, check_pictures, examples, overrides
from fieldbo.errors import InputError, errors_of, raise_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fieldbo.mission.mission import Mission
    from fieldbo.vehicles.file import LoadedVehicleFile


_FIRST = {
    "A lake: map a level set": {
        "lake-level-set": "map where chlorophyll reaches 1.5 mg m-3, with travel time as cost",
        "lake-level-set-outliers": "the same, with a model that recognises faulty readings",
        "lake-places-level-set": "a lake on the map, around an island, a spit and a beach",
    },
    "A wall: inspect a facade": {
        "wall-worst-crack": "find the worst crack with a drone that returns to its dock (rollout of distUCB)",
        "wall-damage-map": "map where the damage reaches 0.3 (straddle per unit of cost)",
    },
    "A factory cell: tune a process": {
        "cell-pipeline": "tune three image-processing stages, where a change reruns every later stage",
        "cell-growth": "choose which of five growth conditions to control, at unknown costs",
    },
    "An optimum: find the best point": {
        "se-optimum": "maximise a smooth function of two variables (expected improvement)",
        "gp-lake-optimum": "find the highest value of a random field, with travel time as cost",
        "svm": "tune a support vector machine (expected improvement)",
    },
}
"""Starter missions, grouped by purpose."""

_GROUPS = {
    "Lake": ("lake-",),
    "Wall": ("wall-",),
    "Factory cells": ("cell-pipeline", "cell-growth", "cell-airfoil"),
    "Papers: random fields and tuning problems": ("gp-", "se-", "svm", "mlp"),
    "Test functions": ("",),
}
"""Prefixes of the shipped missions of each group; the first match counts."""


@examples(
    """
**Examples**

`fieldbo missions` - starter missions

`fieldbo missions --all` - every mission

`fieldbo check lake-level-set` - the settings of a mission
"""
)
def missions(
    all_: Annotated[
        bool, typer.Option("--all", help="List every mission, not only the starter ones.")
    ] = False,
) -> None:
    """List starter missions, grouped by purpose, and your own missions in *./missions*."""
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.session import console
    from fieldbo.mission.files import list_missions, shipped

    files = list_missions()
    theirs = shipped("missions").resolve()
    yours = {name: file for name, file in files.items() if file.parent.resolve() != theirs}
    groups = {"Yours: in ./missions": _read_titles(yours)} if yours else {}
    groups |= _group({k: v for k, v in files.items() if k not in yours}) if all_ else _FIRST
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for title, lines in groups.items():
        if table.row_count:
            table.add_row()
        table.add_row(f"[bold]{escape(title)}[/]")
        for name, line in lines.items():
            table.add_row(f"  {escape(name)}", escape(line))
    out = console()
    out.print(table)
    if not all_:
        out.print(f"\nList all {len(files)} missions with: fieldbo missions --all")


def _group(files: Mapping[str, Path]) -> dict[str, dict[str, str]]:
    groups: dict[str, dict[str, str]] = {title: {} for title in _GROUPS}
    for name, line in _read_titles(files).items():
        group = next(title for title, prefixes in _GROUPS.items() if name.startswith(prefixes))
        groups[group][name] = line
    return groups


def _read_titles(files: Mapping[str, Path]) -> dict[str, str]:
    from fieldbo.mission.files import read_toml

    return {name: str(read_toml(file).get("title", "")) for name, file in sorted(files.items())}


def worlds() -> None:
    """List your own worlds in *./worlds* and the shipped ones, with their CRS if any of them has one."""
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.session import console
    from fieldbo.mission.files import list_worlds, read_toml

    table = Table(box=None, pad_edge=False)
    table.add_column("world", no_wrap=True)
    table.add_column("description")
    table.add_column("cost unit", no_wrap=True)
    worlds = {name: read_toml(file) for name, file in sorted(list_worlds().items())}
    systems = {name: _crs(world) for name, world in worlds.items()}
    if any(systems.values()):
        table.add_column("CRS", no_wrap=True)
    for name, world in worlds.items():
        row = [name, world.get("title", ""), world.get("cost_unit", "")]
        row += [systems[name]] if any(systems.values()) else []
        table.add_row(*(escape(str(x)) for x in row))
    console().print(table)


def _crs(world: dict[str, Any]) -> str:
    """Return the CRS of a world's file, as it is written there; empty without one."""
    domain = world.get("domain")
    return str(domain.get("crs") or "") if isinstance(domain, dict) else ""


_QUESTIONS = {
    "LevelSet": "level-set",
    "ShareOfMaximum": "level-set (fraction of maximum)",
    "Optimum": "optimum",
}


@examples(
    """
**Examples**

`fieldbo policies` - every policy

`fieldbo policies truvar` - one policy and its settings

`fieldbo policies --for lake-level-set` - the default policy for a mission, and why
"""
)
def policies(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this policy.")] = None,
    mission: Annotated[
        str | None, typer.Option("--for", metavar="MISSION", help="Say which policy suits a mission.")
    ] = None,
) -> None:
    """List the policies, show one with its settings, or say which one suits a mission, and why."""
    from fieldbo.cli.session import console
    from fieldbo.mission.kinds import POLICIES

    if mission is not None:
        if name is not None:
            raise InputError("a policy and --for", expected="one of the two", where="--for")
        console().print(_explain_default(mission), markup=False)
        return
    if name is None:
        console().print(_list_policies())
        return
    kind = POLICIES.get(name)
    if warning := POLICIES.warnings().get(name):
        typer.echo(f"warning: {warning}", err=True)
    text, _, _ = inspect.cleandoc(kind.__doc__ or "").partition(_SETTINGS)
    lines = [f'[policy]\nkind = "{name}"']
    for field in fields(kind):
        lines += [f"# {line}" for line in wrap(_plain(_find_text(kind, field.name)), 98)]
        lines.append(_write_setting(field))
    console().print(f"{name}: for {_list_answered(kind)}\n\n{_plain(text.strip())}\n", markup=False)
    console().print("\n".join(lines), markup=False)


def _explain_default(name: str) -> str:
    """Return which policy is the default for a mission, why, and how the mission can name it."""
    from fieldbo.mission.default_policy import default_policy
    from fieldbo.mission.files import toml_text
    from fieldbo.mission.load import load_mission, own_settings

    mission = load_mission(name)
    default = default_policy(mission.question, mission.world, mission.costs)
    table = toml_text({"policy": default.settings})
    used = own_settings(mission.settings["policy"])
    note = "" if used == default.settings else f"\n{mission.name} uses {used['kind']}.\n"
    return f"{default.settings['kind']}: {default.why}\n\n{table}{note}"


def _plain(text: str) -> str:
    """Return a docstring's text without the backticks around code."""
    return text.replace("`", "")


_SETTINGS = "Parameters\n----------\n"


def _find_text(kind: Any, setting: str) -> str:
    """Return the string below a setting or, without one, its text in a Parameters section."""
    from fieldbo.field_texts import field_texts

    if text := field_texts(kind).get(setting):
        return " ".join(text.split())
    for cls in kind.__mro__:
        section = inspect.cleandoc(cls.__dict__.get("__doc__") or "").partition(_SETTINGS)[2]
        if match := re.search(rf"^(?:\w+, )*{setting}(?:, \w+)* : .*\n((?:    .*(?:\n|$))+)", section, re.M):
            return " ".join(match[1].split())
    return ""


def _list_policies() -> Any:
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.mission.kinds import POLICIES

    table = Table(box=None, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    table.add_column("description")
    table.add_column("answers")
    warnings = POLICIES.warnings()
    for name in POLICIES.names():
        try:
            kind = POLICIES.get(name)
        except InputError as error:  # a broken package must not hide the other policies
            table.add_row(escape(name), escape(error.problem), "")
            continue
        summary = (kind.__doc__ or "").strip().split("\n")[0]
        table.add_row(escape(name), escape(_plain(summary)), _list_answered(kind))
        if name in warnings:
            table.add_row("", escape(f"({warnings[name]})"), "")
    return table


def _list_answered(kind: Any) -> str:
    return ", ".join(_QUESTIONS.get(question.__name__, question.__name__) for question in kind.answers)


def _write_setting(field: Any) -> str:
    """Return a setting as in a mission file: its default, or a comment if it has none."""
    if field.default is MISSING:
        return f"{field.name} = ...  # required"
    if field.default is None:
        return f"# {field.name} = ..."
    return f"{field.name} = {json.dumps(field.default)}"  # valid TOML, too


def show(
    world: Annotated[str, typer.Argument(help="Name of a world (see *fieldbo worlds*), or its folder.")],
    draw: Draw = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Picture to write, in the format of its extension; by default *WORLD.png* in the current "
            "folder."
        ),
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Draw this level as a line.")] = None,
    format: Format = None,
    width: Width = "screen",
) -> None:
    """Describe a world and draw its field; for a live world, draw its sites."""
    import io

    from fieldbo.mission.description import describe_world
    from fieldbo.mission.files import write_output
    from fieldbo.mission.load import load_world
    from fieldbo.results import plot

    check_pictures(format, width)
    kind = plot.format_of(out or "", format, "--out")
    loaded = load_world(world, draw)
    typer.echo("\n".join(describe_world(loaded)))
    file = out or Path(f"{loaded.name}.{kind}")
    content = io.BytesIO()
    plot.save(plot.world_picture(loaded, threshold, width), content, kind)
    write_output(file, content.getvalue())
    what = "picture of the sites" if loaded.live else "picture"
    typer.echo(f"{what} in {file}")


class Kind(StrEnum):
    """Kinds of files."""

    mission = "mission"
    world = "world"
    vehicle = "vehicle"


def schema(kind: Annotated[Kind, typer.Argument(help="Kind of file.")] = Kind.mission) -> None:
    """Print the JSON Schema of mission, world or vehicle files. Editors use it to complete and check TOML."""
    from fieldbo.mission.schema import json_schema
    from fieldbo.vehicles.remote.settings import vehicle_schema

    schemas = {
        Kind.mission: lambda: json_schema("mission"),
        Kind.world: lambda: json_schema("world"),
        Kind.vehicle: vehicle_schema,
    }
    typer.echo(json.dumps(schemas[kind](), indent=2))


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
    policy: Policy = None,
    prior: Prior = None,
    vehicle: Annotated[
        list[str] | None,
        typer.Option(help="Check that this vehicle file fits the mission; repeatable.", metavar="FILE"),
    ] = None,
) -> None:
    """Show how fieldbo reads a mission, world or vehicle file, or say what is wrong and how to fix it."""
    from fieldbo.mission.description import describe_world
    from fieldbo.mission.files import list_missions, list_worlds, read_toml
    from fieldbo.mission.load import load_world

    path = _find_file(file)
    content = read_toml(path) if path is not None and (path.exists() or path.suffix == ".toml") else {}
    kind = "mission"
    if "link" in content:
        kind = "vehicle"
    elif ("domain" in content and "policy" not in content) or (
        not content and file in list_worlds() and file not in list_missions()
    ):
        kind = "world"
    first = {"--set": next(iter(set_ or []), None), "--vehicle": next(iter(vehicle or []), None)}
    for option, given in (first | {"--policy": policy, "--prior": prior}).items():
        if kind != "mission" and given is not None:
            raise InputError(
                f"{option} {given} does not apply to a {kind}",
                expected=f"{option} with a mission",
                where=option,
                fix=f"edit the {kind}'s file" if option == "--set" else None,
            )
    name = file if path is None or not path.exists() else path
    if kind == "vehicle":
        from fieldbo.vehicles.file import LoadedVehicleFile, describe_vehicle

        lines = describe_vehicle(LoadedVehicleFile.read(file), file)
    elif kind == "world":
        lines = describe_world(load_world(name))
    else:
        lines = _describe_mission(name, overrides(set_ or [], prior=prior, policy=policy), vehicle or [])
    typer.echo("\n".join(lines))


def _find_file(given: str) -> Path | None:
    """Return the file that was given, or the one in a folder; None if only a name can be meant."""
    from fieldbo.mission.files import list_missions, list_worlds

    folder = Path(given)
    if not folder.is_dir():
        return folder
    held = [folder / name for name in ("world.toml", "mission.toml") if (folder / name).is_file()]
    if not held and (given in list_missions() or given in list_worlds()):
        return None
    return held[0] if held else folder / "world.toml"


def _describe_mission(name: str | Path, settings: Mapping[str, Any], vehicles: list[str]) -> list[str]:
    """Return lines that describe a mission, its world and its vehicles, with warnings."""
    from fieldbo.agent.agent import Agent
    from fieldbo.agent.coverage import estimates
    from fieldbo.agent.warnings import unaffordable
    from fieldbo.mission.description import describe_mission, describe_world
    from fieldbo.mission.kinds import COSTS, FIELDS, POLICIES
    from fieldbo.mission.load import load_mission
    from fieldbo.results.answers import ANSWERS
    from fieldbo.results.words import question_text
    from fieldbo.vehicles.base import LINKS

    files, full = _read_vehicles(vehicles) if vehicles else ([], None)
    mission = load_mission(name, settings, full)
    fit, on_vehicles = _check_vehicles(files, vehicles, mission) if files else ([], [])
    agent = Agent(mission)
    score = ANSWERS[type(mission.question)].score.name
    question = f"{question_text(mission.question, mission.world.quantity)} (scored by {score})"
    taken, too_much = estimates(mission)
    warnings = [
        *unaffordable(mission, agent.initial),
        *too_much,
        *_warn_beyond_truth(mission),
        *agent.warnings,
        *fit,
    ]
    warnings += [w for kinds in (POLICIES, FIELDS, COSTS, LINKS) for w in kinds.warnings().values()]
    lines = [*describe_mission(mission, question), *taken, *describe_world(mission.world), *on_vehicles]
    described = set(lines)
    return [*lines, *(f"warning: {w}" for w in warnings if f"warning: {w}" not in described)]


def _read_vehicles(vehicles: list[str]) -> tuple[list[LoadedVehicleFile], float | str | None]:
    """Return vehicle files, and what the full battery in them holds."""
    from fieldbo.vehicles.file import LoadedVehicleFile
    from fieldbo.vehicles.load import full_battery

    files = [LoadedVehicleFile.for_record(vehicle) for vehicle in vehicles]
    return files, full_battery([file.content for file in files])


def _check_vehicles(
    files: list[LoadedVehicleFile], vehicles: list[str], mission: Mission
) -> tuple[list[str], list[str]]:
    """Return warnings on how vehicles fit a mission, and lines that describe them."""
    from fieldbo.vehicles.file import describe_place, describe_vehicle
    from fieldbo.vehicles.load import check_vehicle

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


def _warn_beyond_truth(mission: Mission) -> list[str]:
    """Return a warning if all true values lie on the same side of the threshold."""
    from fieldbo.belief.question import Optimum
    from fieldbo.results.truth import truth_of

    truth = truth_of(mission.world, mission.question)
    question = mission.question
    if truth is None or isinstance(question, Optimum) or truth.inside.all() != truth.inside.any():
        return []
    lies = "below" if truth.above.all() else "above"
    number = "all" if truth.inside.all() else "none"
    quantity = mission.world.quantity
    return [
        f"the threshold {quantity.number(truth.threshold)} lies {lies} all true values, "
        f"{quantity.number(truth.values.min())} to {quantity.amount(truth.values.max())}: {number} of the "
        f"sites are at or {question.side} it"
    ]
