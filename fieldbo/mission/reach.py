"""Which sites the vehicles can reach from their starts, and whether they can return home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import place_text
from fieldbo.errors import InputError
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.world.world import World


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
    """Return in words what lies between two places."""
    if world.domain.obstacles:
        return "obstacles lie"
    return "the outline lies" if world.domain.region is not None else "there is no path"
