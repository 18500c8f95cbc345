"""The frozen description of a mission: a world, a question, vehicles, a policy and a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.covering import yardsticks
from fieldbo.belief.mean_functions import MeanFunction
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum, Question, ShareOfMaximum
from fieldbo.belief.value_scale import ValueScale
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, at, counted
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.prior import Prior
from fieldbo.mission.rules import Hold, StopRule, check_holds
from fieldbo.mission.vehicle_spec import VehicleSpec, within_reach
from fieldbo.policies.contract import THIS_POLICY, Policy
from fieldbo.world.raster import check_covers
from fieldbo.world.world import World

FAILURE_LIMIT = 0.5
"""Probability of a failed reading above which a site is not proposed while others are left, by default."""


MOST_READINGS = "most_readings_per_site"
"""The key that every policy's table may have."""

LARGEST_BATCH = 100
"""Largest batch: each query is chosen after those before it."""

_KINDS: dict[type, str] = {LevelSet: "level-set", ShareOfMaximum: "level-set", Optimum: "optimum"}


@dataclass(frozen=True, eq=False)
class Mission:
    """Everything that determines a run.

    Parameters
    ----------
    name : str
    world : World
        Sites that no vehicle can reach are removed from it.
    question : Question
    policy : Policy
    model : Model
    vehicles : tuple of VehicleSpec
    initial : int
        Number of readings before the policy takes over; the first is at the start.
    initial_level : int
        Sensor level of these readings.
    batch : int
        Number of queries issued at once.
    max_steps : int, optional
        Maximum number of orders.
    seed : int
        Seed of the random streams; it never changes the field.
    policy_kind : str
        The policy's name in files.
    settings : mapping
        Content of the mission's file, including overrides; empty for a mission made in Python.
    folder : Path, optional
        The world's folder.
    costs : {"declared", "unknown"}
        Whether the agent knows the world's costs, or learns what each order has cost.
    prior : Prior, optional
        Earlier readings and a prior mean with which the mission begins.
    stop : StopRule
        When the question counts as answered.
    holds : tuple of Hold
        When vehicles wait.
    failure_limit : float
        Probability of a failed reading above which a site is not proposed while others are left; 1 proposes
        all sites.
    most_readings_per_site : int, optional
        Number of orders to one site after which it is not proposed again; only where sites are a list.

    Raises
    ------
    InputError
        The parts do not fit together.
    """

    name: str
    world: World
    question: Question
    policy: Policy
    model: Model
    vehicles: tuple[VehicleSpec, ...]
    initial: int = 1
    initial_level: int = 0
    batch: int = 1
    max_steps: int | None = None
    seed: int = 0
    policy_kind: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    folder: Path | None = None
    costs: Literal["declared", "unknown"] = "declared"
    prior: Prior | None = None
    stop: StopRule = field(default_factory=StopRule)
    holds: tuple[Hold, ...] = ()
    failure_limit: float = FAILURE_LIMIT
    most_readings_per_site: int | None = None

    def __post_init__(self) -> None:
        if not self.vehicles:
            raise InputError("the mission has no vehicle", expected="at least one VehicleSpec", where="agent")
        object.__setattr__(self, "world", within_reach(self.world, self.vehicles))
        if (loaded := self.settings.get("policy")) is not None:  # `replace` may have changed the policy
            as_loaded = type(self.policy) is POLICIES.get(loaded["kind"])
            name = loaded["kind"] if as_loaded else type(self.policy).__name__
            object.__setattr__(self, "policy_kind", name)
        check_mission(self)

    def as_found(self) -> Mission:
        """Return the mission as a real vehicle meets it.

        Without a field that is fitted to earlier readings: the place may have changed since, so they are no
        truth to score against. With a test for outliers, unless the mission says otherwise, or the sensor
        reads on the way: spikes among neighbouring readings are then left out anyway.
        """
        world, model = self.world, self.model
        if world.field is not None and world.field.fitted_to is not None:
            world = replace(world, field=None)
        if model.outliers is None and world.sensor.along is None:
            model = replace(model, outliers="tested")
        return replace(self, world=world, model=model)

    def with_no_go(self, areas: Sequence[Obstacle]) -> Mission:
        """Return the mission with areas that were closed to vehicles under way, besides those closed before.

        Its sites stay, and it is not checked again: vehicles have left their starts.

        Raises
        ------
        InputError
            An area does not fit the domain, no site is left, or the kind of cost can't route around areas.
        """
        other = copy(self)
        world = replace(self.world, no_go=(*self.world.no_go, *areas))
        object.__setattr__(other, "world", world)
        return other

    @property
    def title(self) -> str:
        """The title in the mission's file; without one, the mission's name."""
        return str(self.settings.get("title") or self.name)

    @property
    def levels(self) -> Sequence[int]:
        """The levels of the sensor at which the policy reads: its own, or all of them if it chooses."""
        level = getattr(self.policy, "level", None)
        return range(self.world.sensor.settings) if level is None else [int(level)]

    @property
    def declared_cost(self) -> CostModel | None:
        """The world's cost model, or None if the agent does not know it."""
        return self.world.cost if self.costs == "declared" else None

    @property
    def earlier(self) -> Prior:
        """The prior with the earlier readings that lie in the domain; empty if there is none."""
        return (Prior() if self.prior is None else self.prior).over(self.world.domain)

    @property
    def unreachable(self) -> int:
        """Number of the world's sites that no vehicle can reach, and that were removed."""
        return self.world.domain.dropped


def check_mission(mission: Mission) -> None:
    """Raise an `InputError` if the parts of a mission do not fit together."""
    check_counts(mission)
    check_levels(mission)
    check_limit(mission)
    for spec in mission.vehicles:
        if spec.home is not None:
            check_trip_home(mission, spec, spec.home)
    check_question(mission)
    check_costs(mission)
    check_controls(mission)
    check_policy(mission)
    check_end(mission)
    mission.model.initial(mission.world.domain, mission.question)
    mission.stop.check(mission.question, mission.world.domain)
    check_holds(mission.holds)
    if mission.prior is not None:
        check_earlier(mission, mission.prior)
        if mission.prior.mean is not None:
            check_prior_mean(mission, mission.prior.mean)


def check_noise(mission: Mission) -> None:
    """Check that the sensor declares its noise, if the model takes it from there."""
    world = mission.world
    if mission.model.noise == "declared" and not world.sensor.declares_noise:
        raise InputError(
            f"world {world.name} does not say how noisy its readings are",
            expected="the standard deviation of repeated readings at one site, or a model that learns it",
            where=f"{world.name}/world.toml: sensor",
            fix="add [sensor] with noise_sd, in the unit of the values (0 if readings are exact); "
            'or add noise = "learned" to [model] of the mission',
        )


def check_limit(mission: Mission) -> None:
    """Check that a model of the logarithm can use the sensor's limit of detection."""
    below = mission.world.sensor.below
    if mission.model.transform == "log" and below is not None and below <= 0:
        raise InputError(
            f"the sensor's limit of detection is {below:g}, but the model uses the logarithm of the values",
            expected="a limit above 0, or none",
            where="sensor.below",
            fix="leave it out: if the sensor has noise, readings at or below 0 count as low anyway; "
            'or set transform = "none"',
        )


def check_policy(mission: Mission) -> None:
    """Check that the policy can work with the costs and the domain; name it in the error."""
    try:
        mission.policy.check(mission.declared_cost, mission.world.domain)
    except InputError as error:
        problem = error.problem.replace(THIS_POLICY, f"policy {policy_name(mission)}")
        raise type(error)(problem, expected=error.expected, where=error.where, fix=error.fix) from None


def check_simulated(mission: Mission) -> None:
    """Raise an `InputError` if a mission's world is live, so that it cannot be simulated."""
    if mission.world.live:
        raise InputError(
            f"world {mission.world.name} has no [field], so it can't be simulated",
            expected="a world with a [field], or a vehicle to take the readings on site",
            fix="carry out the orders yourself: fieldbo run MISSION --by-hand",
        )


def check_counts(mission: Mission) -> None:
    """Check the numbers of initial readings, queries in a batch and steps, the seed and the failure limit."""
    size = mission.world.domain.size
    ranges = (
        ("count", mission.initial, 0, size, f"0 to {size}, the number of sites", "initial.count"),
        ("batch", mission.batch, 1, LARGEST_BATCH, f"1 to {LARGEST_BATCH}", "agent.batch"),
        ("max_steps", mission.max_steps, 1, None, "at least 1", "agent.max_steps"),
        (MOST_READINGS, mission.most_readings_per_site, 1, None, "at least 1", f"policy.{MOST_READINGS}"),
        ("seed", mission.seed, 0, None, "a whole number of at least 0", "seed"),
    )
    for name, number, low, high, expected, where in ranges:
        if number is not None and (number < low or (high is not None and number > high)):
            raise InputError(f"{name} = {number}", expected=expected, where=where)
    most = mission.most_readings_per_site
    if most is not None and (mission.world.domain.continuous or mission.world.domain.control_sets):
        raise InputError(
            f"{MOST_READINGS} = {most}, but the domain is a box",
            expected="a list of sites, such as a grid: in a box no point need be read twice",
            where=f"policy.{MOST_READINGS}",
            fix="remove the line",
        )
    if not 0.0 < mission.failure_limit <= 1.0:
        raise InputError(
            f"failure_limit = {mission.failure_limit}",
            expected="a probability above 0; 1 proposes all sites, wherever readings fail",
            where="agent.failure_limit",
        )


def check_levels(mission: Mission) -> None:
    """Check that the sensor has the levels of the initial readings and of the policy."""
    last = mission.world.sensor.settings - 1
    levels = {"initial.level": mission.initial_level, "policy.level": getattr(mission.policy, "level", 0)}
    for where, level in levels.items():
        if not 0 <= level <= last:
            raise InputError(
                f"level = {level}",
                expected=f"0 to {last}, a level of the sensor" if last else "0, the sensor's only level",
                where=where,
            )


def check_trip_home(mission: Mission, spec: VehicleSpec, home: Array) -> None:
    """Check that battery and time limit are enough for the trip from start to home."""
    world = mission.world
    needed = float(world.cost.travel(spec.start, home[None])[0]) * (1.0 + spec.margin) + spec.reserve
    if needed > spec.battery:
        raise InputError(
            f"battery = {spec.battery:g} {world.cost_unit}, not enough for the trip from start to home",
            expected=f"at least {needed:g} {world.cost_unit}, including margin and reserve",
            where="agent.battery",
            fix="raise the battery, or start closer to home",
        )
    seconds = float(world.cost.travel_s(spec.start, home[None])[0]) * (1.0 + spec.margin)
    if spec.time_limit_s is not None and seconds > spec.time_limit_s:
        raise InputError(
            f"time_limit_s = {spec.time_limit_s:g}, not enough for the trip from start to home",
            expected=f"at least {seconds:g} s, including the margin",
            where="agent.time_limit_s",
            fix="raise the time limit, or start closer to home",
        )


def check_question(mission: Mission) -> None:
    """Check that the policy answers the question, and that the threshold exists."""
    question, answers = mission.question, mission.policy.answers
    if not isinstance(question, answers):
        raise InputError(
            f"policy {policy_name(mission)} does not answer questions of kind {_KINDS[type(question)]}",
            expected="a question of kind " + " or ".join(sorted({_KINDS[a] for a in answers})),
            where="policy.kind",
            fix="choose another policy: fieldbo policies lists what each of them answers",
        )
    if isinstance(question, ShareOfMaximum) and not mission.world.live:
        highest = float(mission.world.truth(mission.world.domain.sites).max())
        if highest <= 0:
            raise InputError(
                f"a fraction of the maximum, which is {highest:g}, lies at or above all values",
                expected="a field whose maximum is above 0",
                where="question.threshold.of_maximum",
                fix="set a threshold in the unit of the values instead",
            )
    if isinstance(question, Optimum) and question.least_size is not None:
        check_least_size(mission.world.domain, question.least_size)
    if isinstance(question, LevelSet):
        with at("question.threshold"):
            ValueScale(mission.model.transform).to_model([question.threshold])


def check_costs(mission: Mission) -> None:
    """Check that the agent knows of costs what its policy needs."""
    if mission.costs not in mission.policy.costs:
        needed = "unknown" if mission.costs == "declared" else "declared"
        raise InputError(
            f"policy {policy_name(mission)} needs {needed} costs, but they are {mission.costs}",
            expected=f'costs = "{needed}"',
            where="agent.costs",
            fix=f"set it, or choose a policy for {mission.costs} costs: fieldbo policies",
        )
    if mission.costs == "declared":
        if not mission.world.cost.known:
            raise InputError(
                f"the costs of world {mission.world.name} are not known",
                expected='costs = "unknown", or a world that declares its costs in [cost]',
                where="agent.costs",
                fix='set costs = "unknown", and choose a policy that learns them: fieldbo policies',
            )
        return
    for spec in mission.vehicles:
        guarded = {"recharge": spec.recharge, "home": spec.home, "time_limit_s": spec.time_limit_s}
        for name, value in guarded.items():
            if value is not None:
                raise InputError(
                    f"{name} is set, but it can't be guaranteed while costs are unknown",
                    expected='costs = "declared"',
                    where=f"agent.{name}",
                    fix=f'remove {name}, or set costs = "declared"',
                )


def check_least_size(domain: Domain, size: float) -> None:
    """Check that a patch of some width lies within the domain, and does not fit between its sites."""
    if (yardsticks(domain) != 1.0).any():
        raise InputError(
            "least_size is set, but the axes have different units, or one of them is a depth",
            expected="axes of one unit, along which a patch has one width",
            where="question.least_size",
            fix="leave it out",
        )
    spacing = domain.spacing[np.isfinite(domain.spacing)]
    low, high = float(spacing.max(initial=0.0)), float(domain.extent.max())
    if not low <= size <= high:
        unit = domain.axes[0].unit
        raise InputError(
            f"least_size = {size:g}",
            expected=f"at least {low:.3g} {unit}, the distance between neighbouring sites, and at most "
            f"{high:.3g} {unit}, the length of the domain",
            where="question.least_size",
            fix="leave it out, or describe a world with closer sites" if size < low else "leave it out",
        )


def check_controls(mission: Mission) -> None:
    """Check that a control set has what the policy sets, and that the model can average over the rest."""
    controls, transform = mission.world.domain.controls, mission.model.transform
    if controls is None:
        return
    if mission.model.mean == "linear":
        raise InputError(
            'model.mean = "linear" does not work with control sets: the model averages over free variables',
            expected="a number, or no mean",
            where="model.mean",
            fix="leave it out",
        )
    if mission.policy.leaves_free:
        if transform != "none":
            raise InputError(
                f"policy {policy_name(mission)} averages values over free variables, but the model is "
                f"fitted to the {transform} of the values",
                expected='transform = "none"',
                where="model.transform",
            )
        return
    if controls.index_of(None) is None:
        raise InputError(
            f"policy {policy_name(mission)} sets all variables, but no control set contains all of them",
            expected="a control set of all variables, or a policy that leaves some free",
            where="policy.kind",
            fix="add a set of all axes to the world's control_sets, with its cost, or choose another policy: "
            "fieldbo policies",
        )


def check_end(mission: Mission) -> None:
    """Check that the battery is spent some day: samples cost something, or the steps are limited."""
    cost = mission.world.cost
    if not cost.known or mission.max_steps is not None:
        return
    if cost.least_sampling_cost(mission.world.domain.sites) <= 0:
        raise InputError(
            "sampling again at the same site costs nothing, so the battery might never be spent",
            expected="a sampling cost above 0, or a limit on steps",
            where="cost",
            fix=f"{cost.to_price_samples}, or set max_steps in [agent]",
        )


def check_earlier(mission: Mission, prior: Prior) -> None:
    """Check that earlier readings have a coordinate per axis, and that some lie in the domain."""
    domain = mission.world.domain
    if not len(prior.values):
        return
    if prior.sites.shape[1] != domain.dimension:
        raise InputError(
            f"each earlier reading has {counted(prior.sites.shape[1], 'coordinate')}",
            expected=f"{domain.dimension}, one per axis",
            where="prior.readings",
        )
    if prior.inside(domain).any():
        return
    ends = zip(domain.axes, prior.sites.min(axis=0), prior.sites.max(axis=0), strict=True)
    n = len(prior.values)
    where = [f"{a.name} {low:.10g}" + (f" to {high:.10g}" if high > low else "") for a, low, high in ends]
    raise InputError(
        ("the only earlier reading lies" if n == 1 else f"all {n} earlier readings lie")
        + f" outside the domain: {', '.join(where)}",
        expected=", ".join(f"{a.name} {a.low:.10g} to {a.high:.10g} {a.unit}".rstrip() for a in domain.axes),
        where="prior.readings",
        fix="convert their coordinates to the world's; they may be in another coordinate reference system",
    )


def check_prior_mean(mission: Mission, mean: MeanFunction) -> None:
    """Check that a prior mean covers the domain and fits the model."""
    domain, transform = mission.world.domain, mission.model.transform
    if domain.control_sets:
        raise InputError(
            f"policy {policy_name(mission)} works with control sets, which a prior mean does not support yet",
            expected="no prior mean in a domain with control sets",
            where="prior.mean",
            fix="remove it; set mean in [model] for a mean that is the same everywhere",
        )
    if mission.model.mean not in (None, "linear"):
        raise InputError(
            f"model.mean = {mission.model.mean:g}, and there is a prior mean",
            expected="one of the two",
            where="model.mean",
            fix="remove it",
        )
    check_covers(mean, domain, "the prior mean", "prior.mean")
    values = mean.values(domain.sites)
    if not np.isfinite(values).all() or (transform == "log" and (values <= 0).any()):
        above = "above 0, as the model is of the logarithm of the values" if transform == "log" else "finite"
        raise InputError(
            f"the prior mean reaches {values.min():.4g}", expected=f"numbers {above}", where="prior.mean"
        )


def policy_name(mission: Mission) -> str:
    """Return the name of a mission's policy."""
    return mission.policy_kind or type(mission.policy).__name__
