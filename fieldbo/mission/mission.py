"""The frozen description of a mission: a world, a question, vehicles, a policy and a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.belief.model import Model
from fieldbo.belief.question import Question
from fieldbo.costs.base import CostModel
from fieldbo.domain.axes import place_text
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError
from fieldbo.mission.checks import check_mission
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.prior import Prior
from fieldbo.mission.rules import Hold, StopRule
from fieldbo.policies.contract import Policy
from fieldbo.validation import settings
from fieldbo.world.world import World

Reserve = Annotated[
    NonNegativeFloat,
    Field(description="Part of the battery that is never spent on purpose, in the world's cost unit"),
]
Margin = Annotated[
    NonNegativeFloat,
    Field(description="Fraction by which a move may cost more than declared; 0.1 plans for 10% more"),
]
TimeLimit = Annotated[
    PositiveFloat | None, Field(description="Time limit in seconds; there is none by default")
]
FAILURE_LIMIT = 0.5
"""Probability of a failed reading above which a site is not proposed while others are left, by default."""

Place = Annotated[Array, BeforeValidator(frozen_array)]


@settings("agent.when_lost")
class WhenLost:
    """What to do when orders are lost: no sign of life, or not finished in time.

    After a lost order, a vehicle that sends telemetry gets no further one until it is heard from again.
    """

    orders: PositiveInt = 3
    """Number of orders lost in a row after which the vehicle counts as lost."""
    then: Literal["home", "wait"] = "home"
    """Send the vehicle home and end its part, or wait until it is heard from again."""
    patience_s: PositiveFloat = 600.0
    """Longest time to wait for a sign of life, in seconds; then it gets orders again, or its part ends."""


@settings("agent.recharge")
class Recharging:
    """How the battery is changed, or charged, when it affords no further query."""

    takes_s: NonNegativeFloat
    """Seconds that changing, or charging, the battery takes."""
    batteries: PositiveInt
    """Number of batteries in all: 3 are changed twice. Each has the capacity agent.battery."""
    at: Literal["home"] = "home"
    """Where it is changed."""


@settings("agent", eq=False)
class VehicleSpec:
    """One vehicle of a mission.

    Examples
    --------
    >>> VehicleSpec(battery=60, start=[0.0, 0.0], home=[0.0, 0.0], reserve=5).battery
    60.0
    """

    battery: PositiveFloat
    """Battery, in the world's cost unit."""
    start: Place
    """Start position, (d,) array."""
    home: Place | None = None
    """Position to which the vehicle must be able to return, (d,) array; None: it may end anywhere."""
    reserve: Reserve = 0.0
    margin: Margin = 0.0
    time_limit_s: TimeLimit = None
    when_lost: WhenLost = WhenLost()
    """What to do when orders are lost in a row."""
    recharge: Recharging | None = None
    """How the battery is changed at home; None: there is only one."""

    def __post_init__(self) -> None:
        if self.reserve >= self.battery:
            raise InputError(
                f"reserve = {self.reserve:g}",
                expected=f"less than the battery of {self.battery:g}",
                where="agent.reserve",
            )
        if self.recharge is not None and self.home is None:
            raise InputError(
                "recharge is set, but the vehicle has no home to change its battery at",
                expected="a home",
                where="agent.recharge",
                fix="set home in [agent], or delete recharge",
            )

    @property
    def batteries(self) -> int:
        """Number of batteries."""
        return 1 if self.recharge is None else self.recharge.batteries

    @property
    def capacity(self) -> float:
        """What all batteries hold together, in the world's cost unit."""
        return self.battery * self.batteries

    def changes_s(self, batteries: int) -> float:
        """Return the seconds that changing the battery takes if so many batteries are used."""
        return 0.0 if self.recharge is None else self.recharge.takes_s * (batteries - 1)


def within_reach(world: World, vehicles: Sequence[VehicleSpec]) -> World:
    """Return the world without the sites that no vehicle can reach from its start.

    Parameters
    ----------
    world : World
        An unreachable site has an infinite travel cost.
    vehicles : sequence of VehicleSpec

    Raises
    ------
    InputError
        A start or home lies outside the domain or in an obstacle, a home can't be reached from its start, or
        no site can be reached.
    """
    domain = world.domain
    reached = np.zeros(domain.size, dtype=bool)
    for spec in vehicles:
        _check_open(world, "start", spec.start)
        if spec.home is not None:
            _check_open(world, "home", spec.home)
            if not np.isfinite(world.cost.travel(spec.start, spec.home[None])[0]):
                raise InputError(
                    f"home {place_text(domain, spec.home)} can't be reached from the start "
                    f"{place_text(domain, spec.start)}: "
                    f"{_barrier(world)} between them",
                    expected="a home that can be reached from the start",
                    where="agent.home",
                    fix="move home or start to the same side, or open a passage",
                )
        reached |= np.isfinite(world.cost.travel(spec.start, domain.sites))
    if reached.all():
        return world
    if not reached.any():
        raise InputError(
            f"no site can be reached from the start {place_text(domain, vehicles[0].start)}: "
            f"{_barrier(world)} between",
            expected="a start from which at least one site can be reached",
            where="agent.start",
            fix="move the start, or open a passage",
        )
    return replace(world, domain=domain.restricted(reached))


def _check_open(world: World, name: str, place: Array) -> None:
    """Raise an `InputError` unless `place` (d,), a start or home, is in the domain and can be left."""
    world.domain.check_place(name, place, f"agent.{name}")
    if world.domain.obstacles and not np.isfinite(world.cost.travel(place, place[None])[0]):
        raise InputError(
            f"{name} {place_text(world.domain, place)} lies where obstacles touch each other or the edge of "
            "the domain",
            expected="a place that a vehicle can leave",
            where=f"agent.{name}",
            fix="move it away, or move the obstacles apart",
        )


def _barrier(world: World) -> str:
    if world.domain.obstacles:
        return "obstacles lie"
    return "the outline lies" if world.domain.region is not None else "there is no path"


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
        The parts do not fit together: see `fieldbo.mission.checks`.
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
