"""Load worlds and missions from strict TOML files.

A mission's name is looked up in ``./missions``, then among the shipped ones; a world's name next to the
mission's file, then in ``./worlds``, then among the shipped ones. Anything that ends in ``.toml`` or contains
a slash is a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.question import LevelSet, Optimum, Question, ShareOfMaximum
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.amounts import amount, is_share
from fieldbo.mission.default_policy import AUTO, DEFAULTS, default_policy
from fieldbo.mission.files import (
    find,
    is_path,
    list_worlds,
    made,
    mission_named,
    read_toml,
    short_path,
    toml_value,
)
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.mission import Mission, check_noise
from fieldbo.mission.prior import Prior
from fieldbo.mission.prior_file import load_prior, plain_prior
from fieldbo.mission.schema import (
    AgentFile,
    AnyPolicyFile,
    DegreesFile,
    LevelSetFile,
    MissionFile,
    OptimumFile,
    QuantileFile,
    ShareFile,
)
from fieldbo.mission.vehicle_spec import VehicleSpec, within_reach
from fieldbo.mission.world_file import load_world, place_in, world_from
from fieldbo.policies.contract import Policy
from fieldbo.validation import validated
from fieldbo.world.world import World

__all__ = ["load_mission", "load_world", "merged"]

_VALUES = ("threshold", "learn")
"""Keys whose table stands for a single value."""


def load_mission(
    name_or_path: str | Path,
    overrides: Mapping[str, Any] | None = None,
    full_battery: float | str | None = None,
) -> Mission:
    """Load a mission.

    Parameters
    ----------
    name_or_path : str or Path
        A name, or a TOML file.
    overrides : mapping, optional
        Tables and keys that replace those of the file, nested in the same way, for example
        ``{"agent": {"battery": 3000}, "draw": 2}``.
    full_battery : float or str, optional
        What the vehicle's full battery holds, in place of ``agent.full_battery``, if the mission has amounts
        in percent: a number in the world's cost unit, or text with a unit.

    Raises
    ------
    InputError
        There is no such mission, or its file, or its world's file, is invalid.

    Examples
    --------
    >>> load_mission("lake-level-set", {"question": {"threshold": 2.0}}).question
    LevelSet(threshold=2.0, side='above')
    """
    mission = read_mission(name_or_path, overrides, full_battery)
    check_noise(mission)
    return mission


def read_mission(
    name_or_path: str | Path,
    overrides: Mapping[str, Any] | None = None,
    full_battery: float | str | None = None,
) -> Mission:
    """Load a mission as `load_mission` does, even if nothing says how noisy readings are, as in old runs."""
    if is_path(name_or_path):
        file, instead = Path(name_or_path), dict[str, Any]()
    else:
        file, instead = mission_named(str(name_or_path))
    where = short_path(file)
    own = {**read_toml(file), **instead}
    settings = plain_prior(_keep_shared(own, merged(own, overrides or {})))
    content = validated(MissionFile, settings, where)
    world_file = find("world", content.world, list_worlds(file.parent), f"{where}: world")
    world = world_from(world_file, content.draw)
    if "costs" in content.policy:
        raise InputError(
            "costs is set in [policy], but it belongs in [agent]",
            expected="costs in [agent], because it describes what the agent knows",
            where=f"{where}: policy.costs",
            fix="move the line to [agent]",
        )
    if full_battery is not None and any(map(is_share, (content.agent.battery, content.agent.reserve))):
        full = amount(full_battery, world.cost_unit, "battery.full")
        settings = merged(settings, {"agent": {"full_battery": full}})  # so that a record repeats the run
        content = validated(MissionFile, settings, where)
    try:
        vehicles = (_build_vehicle(content.agent, world),)
        prior = None
        if content.prior is not None:
            typed = (overrides or {}).get("prior", {})
            prior = load_prior(content.prior, world, file.parent, typed if isinstance(typed, Mapping) else {})
            world = _condition(world, prior.over(world.domain))
        question = _build_question(content.question, world, vehicles)
        table = _to_coordinates(content.policy, world)
        shared = {key: table[key] for key in AnyPolicyFile.model_fields if key in table}
        policy = _build_policy(own_settings(table), question)
        if policy is None:
            chosen = default_policy(question, world, content.agent.costs).settings
            settings = {**settings, "policy": {**chosen, **shared}}  # so that a record repeats the run
            policy = made(POLICIES, chosen, "policy")
        return Mission(
            name=_name_of(file),
            world=world,
            question=question,
            policy=policy,
            model=content.model,
            vehicles=vehicles,
            initial=content.initial.count,
            initial_level=content.initial.level,
            batch=content.agent.batch,
            max_steps=content.agent.max_steps,
            seed=content.seed,
            policy_kind=settings["policy"]["kind"],
            settings=settings,
            folder=world_file.parent,
            costs=content.agent.costs,
            prior=prior,
            stop=content.stop,
            holds=tuple(content.hold),
            failure_limit=content.agent.failure_limit,
            most_readings_per_site=validated(AnyPolicyFile, shared, "policy").most_readings_per_site,
        )
    except InputError as error:
        if error.where is not None:
            error.where = error.where.replace(f"{Path.cwd()}/", "").replace(str(Path.cwd()), ".")
        raise error.at(where) from None


def _keep_shared(own: Mapping[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with what a mission asks of every policy, also if another one takes its place."""
    before, after = own.get("policy"), settings.get("policy")
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return settings
    shared = {key: before[key] for key in AnyPolicyFile.model_fields if key in before}
    return {**settings, "policy": {**shared, **after}} if shared else settings


def _condition(world: World, earlier: Prior) -> World:
    """Return a world whose field, if it is drawn around a survey, agrees with earlier readings, too."""
    if world.field is None or not len(earlier.values):
        return world
    return replace(world, field=world.field.knowing(earlier.sites, earlier.values, earlier.noise_sds))


def _to_coordinates(policy: Mapping[str, Any], world: World) -> dict[str, Any]:
    """Return a policy's table with coordinates in place of places in degrees."""
    return {
        key: place_in(world.domain, validated(DegreesFile, value, f"policy.{key}"), f"policy.{key}").tolist()
        if isinstance(value, Mapping) and value.keys() == DegreesFile.model_fields.keys()
        else value
        for key, value in policy.items()
    }


def own_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kind and the own settings of a policy, without what every policy's table may have."""
    return {key: value for key, value in table.items() if key not in AnyPolicyFile.model_fields}


def _build_policy(content: Mapping[str, Any], question: Question) -> Policy | None:
    """Return the policy of a table; None if the table leaves the choice to `default_policy`."""
    kind, keys = content.get("kind"), [key for key in content if key != "kind"]
    more = f"{', '.join(keys)} {'is' if len(keys) == 1 else 'are'} set"
    if kind is None and keys and (kinds := _find_kinds_with(content, question)):
        raise InputError(
            f"{more}, but not the kind of policy",
            expected=f"one of {', '.join(kinds)}" if len(kinds) > 1 else kinds[0],
            where="policy.kind",
            fix=f'add kind = "{kinds[0]}", for example; on the command line, --set policy.kind={kinds[0]}',
        )
    if kind == AUTO and keys:
        raise InputError(
            f'{more}, with kind = "{AUTO}"',
            expected=f'no settings: "{AUTO}" chooses them with the policy',
            where="policy",
            fix="name the policy, or remove the settings; fieldbo policies --for MISSION then names it",
        )
    if kind == AUTO or not content:
        return None
    valid = [AUTO, *POLICIES.names()]
    if isinstance(kind, str) and kind not in valid:
        raise UnknownNameError.of("policy", kind, valid, where="policy.kind")
    policy: Policy = made(POLICIES, content, "policy")
    return policy


def _find_kinds_with(content: Mapping[str, Any], question: Question) -> list[str]:
    """Return the kinds of policy that answer a question and have the settings of a table; defaults first.

    Settings that no kind has are left for the next check.
    """
    known: dict[str, set[str]] = {}
    for kind in POLICIES.names():
        with suppress(InputError):  # a package that can't be loaded need not be the one that is meant
            policy: Any = POLICIES.get(kind)
            if isinstance(question, policy.answers) and is_dataclass(policy):
                known[kind] = {field.name for field in fields(policy)}
    wanted = content.keys() & set[str]().union(*known.values())
    kinds = [kind for kind, names in known.items() if wanted and names >= wanted]
    return sorted(kinds, key=lambda kind: kind not in DEFAULTS)


_WHOLE = "full in [battery] of the vehicle file, or full_battery in [agent] for a simulation"


def _build_vehicle(content: AgentFile, world: World) -> VehicleSpec:
    unit, full = world.cost_unit, None
    if content.full_battery is not None:
        full = amount(content.full_battery, unit, "agent.full_battery")
    battery = amount(content.battery, unit, "agent.battery", full=full, whole=_WHOLE)
    if full is not None and battery > full:
        raise InputError(
            f"battery = {battery:g} {unit}, more than the full battery of {full:g} {unit}",
            expected="at most a full battery",
            where="agent.battery",
        )

    def place(name: str, given: list[float] | DegreesFile) -> Array:
        return place_in(world.domain, given, f"agent.{name}")

    return VehicleSpec(
        battery=battery,
        start=world.start if content.start is None else place("start", content.start),  # type: ignore[arg-type]
        home=None if content.home is None else place("home", content.home),
        reserve=amount(content.reserve, unit, "agent.reserve", full=full, whole=_WHOLE, zero=True),
        margin=content.margin,
        time_limit_s=content.time_limit_s,
        when_lost=content.when_lost,
        recharge=content.recharge,
    )


def _name_of(file: Path) -> str:
    """Return the mission's name: the file's, or the folder's for the ``mission.toml`` of a run folder."""
    return file.stem if file.stem != "mission" else file.resolve().parent.name


def with_policy(policy: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides that also put a policy in place of the mission's own.

    Parameters
    ----------
    policy : str
        Its kind, and settings after commas.
    overrides : mapping
        May have further settings of the policy.

    Raises
    ------
    InputError
        The text is no policy, or the overrides set the same key, or something else than a table.

    Examples
    --------
    >>> with_policy("gchk,per_cost=true", {"draw": 2})
    {'draw': 2, 'policy': {'kind': 'gchk', 'per_cost': True}}
    """
    kind, *pairs = (part.strip() for part in policy.split(","))
    table: dict[str, Any] = {"kind": kind}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (equals and key.strip()):
            raise InputError(
                f"--policy {policy}: {pair!r} is not a setting",
                expected="a kind, and key=value after commas",
                where="--policy",
                fix="write it as in --policy gchk,per_cost=true",
            )
        table[key.strip()] = toml_value(value.strip())
    own = overrides.get("policy", {})
    if not isinstance(own, Mapping):
        raise InputError(
            f"--policy conflicts with --set policy={own}", expected="policy as a table", where="--set"
        )
    if twice := own.keys() & table.keys():
        key = min(twice)
        raise InputError(
            f"both --policy {policy} and --set policy.{key}={own[key]} were given",
            expected="one of the two",
            where="--policy",
        )
    return {**overrides, "policy": {**table, **own}}


def merged(content: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return `content` with `overrides` laid over it, table by table.

    A table replaces the old one as a whole if it names another ``kind``, whose keys are other ones, or if it
    stands for a single value.
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


def _least_size(content: OptimumFile, world: World) -> float | None:
    """Return the width of the smallest patch that matters, in the unit of the axes; None if not given."""
    if content.least_size is None:
        return None
    unit = world.domain.axes[0].unit
    return amount(content.least_size, unit, "question.least_size", what="the unit of the axes")


def _build_question(
    content: LevelSetFile | OptimumFile, world: World, vehicles: tuple[VehicleSpec, ...]
) -> Question:
    if isinstance(content, OptimumFile):
        return Optimum(content.goal, _least_size(content, world))
    threshold = content.threshold
    if isinstance(threshold, ShareFile):
        if content.side == "below":
            raise InputError(
                'side = "below", with a threshold at a fraction of the maximum',
                expected='side = "above", or a threshold in the unit of the values',
                where="question.side",
                fix="leave out side: what is not in the set above lies below",
            )
        return ShareOfMaximum(threshold.of_maximum)
    if not isinstance(threshold, QuantileFile):
        return LevelSet(threshold, content.side)
    if world.live:
        raise InputError(
            "the threshold is a quantile of the true values, which a live world does not have",
            expected="a number, in the unit of the values",
            where="question.threshold",
        )
    sites = within_reach(world, vehicles).domain.sites
    return LevelSet(float(np.quantile(world.truth(sites), threshold.quantile)), content.side)
