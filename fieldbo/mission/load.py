"""Worlds and missions as files: strict TOML in, frozen values out.

A mission's name is looked up in ``./missions``, then among the shipped ones; a world's name beside the
mission's file, then in ``./worlds``, then among the shipped ones. Anything that ends in ``.toml`` or holds
a slash is a path.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum, Question, ShareOfMaximum
from fieldbo.domain.axes import Axis, is_depth
from fieldbo.domain.controls import Controls, ControlSet
from fieldbo.domain.distributions import Distribution, TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle, simple_polygon
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.mission.catalogue import _is_path, _named, list_missions, list_worlds
from fieldbo.mission.kinds import COSTS, FIELDS, POLICIES
from fieldbo.mission.mission import Mission
from fieldbo.mission.reach import within_reach
from fieldbo.mission.schema import (
    AgentFile,
    BoxFile,
    GridFile,
    LevelSetFile,
    MissionFile,
    ObstacleFile,
    OptimumFile,
    QuantileFile,
    ShareFile,
    UniformFile,
    WorldFile,
)
from fieldbo.mission.toml import made, read_toml
from fieldbo.mission.vehicle_spec import VehicleSpec, WhenLost
from fieldbo.validation import placed, validated
from fieldbo.world.disturbances import Disturbances
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

_BATTERY = re.compile(r"\s*(\S+?)\s+(\S+)\s*")
_MOST = 100_000  # sites of a world, and readings before a policy takes over

_VALUES = ("threshold", "learn")  # tables of which one key decides what the value means

_AXES_TAKEN = frozenset(
    (
        "order",
        "value",
        "noise_sd",
        "level",
        "believed",
        "time_s",
        "cost",
        "mean",
        "sd",
        "exceedance",
        "class",
        "site",
    )
)
"""Columns and variables of a run's tables and maps, next to its axes."""


# -- finding files ---------------------------------------------------------------------------------------


# -- worlds ----------------------------------------------------------------------------------------------


def load_world(name_or_path: str | Path, draw: int = 0) -> World:
    """Load a world.

    Parameters
    ----------
    name_or_path : str or Path
        A name, a world's folder, or its ``world.toml``.
    draw : int
        Which field, where the world is random.

    Raises
    ------
    InputError
        There is no such world, or something in its file is wrong.

    Examples
    --------
    >>> load_world("lake-transect").domain.size
    2500
    """
    if _is_path(name_or_path):
        file = Path(name_or_path)
        file = file / "world.toml" if file.is_dir() else file
    else:
        file = _named("world", str(name_or_path), list_worlds(), None)
    return _world(file, draw)


def _world(file: Path, draw: int) -> World:
    try:
        stamp = tuple(sorted((p.name, p.stat().st_mtime_ns) for p in file.parent.iterdir()))
    except OSError:
        stamp = ()
    return _world_as_of(file.resolve(), draw, stamp)


@lru_cache(maxsize=4)  # a campaign runs many missions in one field
def _world_as_of(file: Path, draw: int, stamp: tuple[tuple[str, int], ...]) -> World:
    where = _shown(file)
    content = read_toml(file)
    _check_grid(content, where)
    told = validated(WorldFile, content, where)
    _check_format(content, where)
    if draw < 0:
        raise InputError(f"draw = {draw}", expected="a whole number of at least 0", where="draw")
    try:
        domain = _domain(told.domain)
    except InputError as error:
        raise placed(error, f"{where}: domain") from None
    start = None if told.start is None else np.array(told.start)
    if start is not None:
        domain.check_place("start", start, f"{where}: start")
    field = None if told.field is None else _field(told.field, domain, draw, file.parent, where)
    try:
        return World(
            name=file.parent.name,
            title=told.title,
            domain=domain,
            cost=made(COSTS, told.cost, f"{where}: cost"),
            cost_unit=told.cost_unit,
            sensor=validated(Sensor, told.sensor, f"{where}: sensor"),
            quantity=Quantity(told.value.name, told.value.unit, told.value.standard_name),
            field=field,
            start=start,
            draw=draw,
            conditions=None
            if told.conditions is None
            else validated(Disturbances, told.conditions, f"{where}: conditions"),
        )
    except InputError as error:
        raise error if error.where and where in error.where else error.at(where) from None


def _check_format(content: Mapping[str, Any], where: str) -> None:
    """Raise an `InputError` for ``format = true`` and ``1.0``, which equal 1."""
    if type(content["format"]) is not int:
        raise InputError(
            f"format = {str(content['format']).lower()}",
            expected="1, a whole number",
            where=f"{where}: format",
        )


def _check_grid(content: Mapping[str, Any], where: str) -> None:
    """Raise an `InputError` for a grid with what only a box has: control sets, and variables left free."""
    domain = content.get("domain")
    if not isinstance(domain, Mapping) or domain.get("kind") != "grid":
        return
    axes = domain.get("axes")
    left_free = isinstance(axes, list) and any(isinstance(one, Mapping) and "free" in one for one in axes)
    if "control_sets" in domain or left_free:
        what = "control_sets" if "control_sets" in domain else "an axis that is left free"
        raise InputError(
            f"{what} in a domain of kind grid",
            expected='kind = "box": what is left free takes any value between the ends of its axis',
            where=f"{where}: domain.kind",
            fix='set kind = "box", and leave the counts of the axes out',
        )


def _field(told: Mapping[str, Any], domain: Domain, draw: int, folder: Path, where: str) -> Field:
    """Return the truth over the domain."""
    kind = made(FIELDS, told, f"{where}: field")
    try:
        with one_blas_thread():  # factors of these sizes are fastest with one BLAS thread
            field: Field = kind.realise(domain, draw, folder)
    except InputError as error:
        raise placed(error, f"{where}: field") from None
    except MemoryError:
        raise InputError(
            f"a field over {domain.size} sites needs more memory than there is",
            expected="fewer sites",
            where=f"{where}: domain.axes",
        ) from None
    return field


def _domain(told: GridFile | BoxFile) -> Domain:
    axes = [
        Axis(a.name, a.unit, a.low, a.high, a.positive or ("down" if is_depth(a.name) else "up"))
        for a in told.axes
    ]
    names = [a.name for a in axes]
    if len(set(names)) < len(names):
        raise InputError(f"axes {', '.join(names)}", expected="different names", where="domain.axes")
    for name in names:
        if not name.strip() or name in _AXES_TAKEN:
            raise InputError(
                f"an axis with the name {name!r}",
                expected=f"a name that is not empty, nor one of {', '.join(sorted(_AXES_TAKEN))}",
                where="domain.axes",
                fix="rename the axis; where it is a column of a table, rename the column",
            )
    obstacles = [_obstacle(one, k) for k, one in enumerate(told.obstacles)]
    if isinstance(told, BoxFile):
        return Domain.box(axes, told.representers, obstacles, told.clearance, _controls(told, axes))
    sites = math.prod(a.count for a in told.axes)
    if sites > _MOST:
        raise InputError(f"a grid of {sites} sites", expected=f"at most {_MOST}", where="domain.axes")
    outline = None
    if told.outline is not None:
        outline = simple_polygon(told.outline, "the outline", "domain.outline")
    return Domain.grid(axes, [a.count for a in told.axes], outline, obstacles, told.clearance)


def _controls(told: BoxFile, axes: Sequence[Axis]) -> Controls | None:
    """Return which variables can be set together, and what becomes of the others."""
    free = [(number, one.free) for number, one in enumerate(told.axes) if one.free is not None]
    if told.control_sets is None:
        if free:
            raise InputError(
                f"axis {axes[free[0][0]].name!r} has a distribution for when it is left free, and never is",
                expected="control_sets in the domain, or no distribution",
                where=f"domain.axes[{free[0][0]}].free",
            )
        return None
    if not told.control_sets:
        raise InputError(
            "control_sets = []",
            expected="at least one set of axes, as in " + json.dumps([[a.name for a in axes]]),
            where="domain.control_sets",
            fix="name the sets, or leave the key out: all axes are then always set",
        )
    sets = [
        ControlSet.of(names, axes, f"domain.control_sets[{k}]") for k, names in enumerate(told.control_sets)
    ]
    laws: list[Distribution | None] = [None] * len(axes)
    for number, one in free:
        low, high = axes[number].low, axes[number].high
        try:
            laws[number] = (
                Uniform(low, high)
                if isinstance(one, UniformFile)
                else TruncatedNormal(one.mean, one.variance, low, high)
            )
        except InputError as error:
            raise error.at(f"domain.axes[{number}].free") from None
    return Controls(tuple(sets), tuple(laws))


def _obstacle(told: ObstacleFile, number: int) -> Obstacle:
    corners = tuple(tuple(c) for c in told.corners)
    try:
        return Obstacle(told.name, tuple(told.low), tuple(told.high), corners)
    except InputError as error:
        place = f"domain.obstacles[{number}].{error.where}"
        raise InputError(error.problem, expected=error.expected, where=place, fix=error.fix) from None


# -- missions --------------------------------------------------------------------------------------------


def load_mission(name_or_path: str | Path, overrides: Mapping[str, Any] | None = None) -> Mission:
    """Load a mission.

    Parameters
    ----------
    name_or_path : str or Path
        A name, or a TOML file.
    overrides : mapping, optional
        Tables and keys that replace those of the file, nested as they are there, for example
        ``{"agent": {"battery": 3000}, "draw": 2}``.

    Raises
    ------
    InputError
        There is no such mission, or something in its file, or in its world's, is wrong.

    Examples
    --------
    >>> load_mission("lake-level-set", {"question": {"threshold": 2.0}}).question
    LevelSet(threshold=2.0)
    """
    if _is_path(name_or_path):
        file = Path(name_or_path)
    else:
        file = _named("mission", str(name_or_path), list_missions(), None)
    where = _shown(file)
    content = merged(read_toml(file), overrides or {})
    told = validated(MissionFile, content, where)
    _check_format(content, where)
    if told.initial.count > _MOST:
        raise InputError(
            f"count = {told.initial.count}", expected=f"at most {_MOST}", where=f"{where}: initial.count"
        )
    beside = list_worlds(file.parent)
    world_file = _named("world", told.world, beside, f"{where}: world")
    world = _world(world_file, told.draw)
    if "costs" in told.policy:
        raise InputError(
            "costs in [policy]",
            expected="costs in [agent]: whether it knows them is no matter of the rule",
            where=f"{where}: policy.costs",
            fix="move the line to [agent]",
        )
    policy = made(POLICIES, told.policy, f"{where}: policy")
    model = validated(Model, told.model, f"{where}: model")
    try:
        vehicles = (_vehicle(told.agent, world),)
        world = within_reach(world, vehicles)
        return Mission(
            name=_name_of(file),
            world=world,
            question=_question(told.question, world),
            policy=policy,
            model=model,
            vehicles=vehicles,
            initial=told.initial.count,
            initial_level=told.initial.level,
            batch=told.agent.batch,
            max_steps=told.agent.max_steps,
            seed=told.seed,
            policy_kind=told.policy["kind"],
            settings=content,
            folder=world_file.parent,
            costs=told.agent.costs,
        )
    except InputError as error:
        raise error.at(where) from None


def _vehicle(told: AgentFile, world: World) -> VehicleSpec:
    return VehicleSpec(
        battery=_battery(told.battery, world.cost_unit),
        start=world.start if told.start is None else told.start,  # type: ignore[arg-type]
        home=told.home,  # type: ignore[arg-type]
        reserve=told.reserve,
        margin=told.margin,
        time_limit_s=told.time_limit_s,
        when_lost=WhenLost(**told.when_lost.model_dump()),
    )


def _name_of(file: Path) -> str:
    """Return the mission's name: the file's, or the folder's where it lies in a run folder."""
    return file.stem if file.stem != "mission" else file.resolve().parent.name


def merged(content: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return `content` with `overrides` laid over it, table by table.

    A table that names another ``kind`` replaces the old one whole, whose other keys were the old kind's; so
    does one that stands for a single value.
    """
    out = dict(content)
    for key, value in overrides.items():
        old = out.get(key)
        other_kind = (
            isinstance(value, Mapping)
            and "kind" in value
            and value["kind"] != (old.get("kind") if isinstance(old, Mapping) else None)
        )
        if isinstance(value, Mapping) and isinstance(old, Mapping) and key not in _VALUES and not other_kind:
            out[key] = merged(old, value)
        else:
            out[key] = value
    return out


def _question(told: LevelSetFile | OptimumFile, world: World) -> Question:
    if isinstance(told, OptimumFile):
        return Optimum(told.goal)
    threshold = told.threshold
    if isinstance(threshold, ShareFile):
        return ShareOfMaximum(threshold.of_maximum)
    if not isinstance(threshold, QuantileFile):
        return LevelSet(threshold)
    if world.live:
        raise InputError(
            "a threshold at a quantile of the true values, in a live world",
            expected="a number, in the unit of the values",
            where="question.threshold",
        )
    return LevelSet(float(np.quantile(world.truth(world.domain.sites), threshold.quantile)))


def _battery(told: float | str, unit: str) -> float:
    if not isinstance(told, str):
        return told
    parts = _BATTERY.fullmatch(told)
    try:
        amount = float(parts.group(1) if parts else told)
    except ValueError:
        raise InputError(
            f"battery {told!r}",
            expected=f'a number, or a number with its unit, as in "6000 {unit}"',
            where="agent.battery",
        ) from None
    if parts and parts.group(2) != unit:
        raise InputError(
            f"battery in {parts.group(2)}",
            expected=f"a battery in {unit}, the unit in which this world's moves are paid",
            where="agent.battery",
            fix=f"convert it to {unit}",
        )
    return amount


def _shown(file: Path) -> str:
    """Return a file's path, short where it lies below the working folder."""
    try:
        return str(file.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(file)
