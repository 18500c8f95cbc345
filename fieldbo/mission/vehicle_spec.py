"""A vehicle of a mission: its battery, where it starts and ends, and which sites it can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.places import check_place, place_text
from fieldbo.errors import InputError
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
    check_place(world.domain, name, place, f"agent.{name}")
    if world.domain.obstacles and not np.isfinite(world.cost.travel(place, place[None])[0]):
        raise InputError(
            f"{name} {place_text(world.domain, place)} lies where obstacles touch each other or the edge of "
            "the domain",
            expected="a place that a vehicle can leave",
            where=f"agent.{name}",
            fix="move it away, or move the obstacles apart",
        )


def _barrier(world: World) -> str:
    """Return in words what lies between two places."""
    if world.domain.obstacles:
        return "obstacles lie"
    return "the outline lies" if world.domain.region is not None else "there is no path"
