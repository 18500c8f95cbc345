"""Which sites a vehicle can reach from its start, and whether it can return home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.world.world import World


def within_reach(world: World, crew: Sequence[VehicleSpec]) -> World:
    """Return the world less the sites that no vehicle of a crew can reach from its start.

    Parameters
    ----------
    world : World
        A site beyond obstacles has an infinite travel cost.
    crew : sequence of VehicleSpec

    Raises
    ------
    InputError
        A start or home lies outside the domain or in an obstacle, or the one can't be reached from the other;
        or no site can be reached.
    """
    domain = world.domain
    reached = np.zeros(domain.size, dtype=bool)
    for one in crew:
        _check_open(world, "start", one.start)
        if one.home is not None:
            _check_open(world, "home", one.home)
            if not np.isfinite(world.cost.travel(one.start, one.home[None])[0]):
                raise InputError(
                    f"home {one.home.tolist()} can't be reached from the start {one.start.tolist()}: "
                    f"{_between(world)} between them",
                    expected="a home to which there is a way",
                    where="agent.home",
                    fix="move the one to the other's side, or open a way",
                )
        reached |= np.isfinite(world.cost.travel(one.start, domain.sites))
    if reached.all():
        return world
    if not reached.any():
        raise InputError(
            f"no site can be reached from the start {crew[0].start.tolist()}: {_between(world)} between",
            expected="a start from which there is a way to a site",
            where="agent.start",
            fix="start elsewhere, or open a way",
        )
    return replace(world, domain=domain.restricted(reached))


def _check_open(world: World, what: str, place: Array) -> None:
    """Raise an `InputError` unless a place is one of the domain, and not one where obstacles shut all ways.

    Parameters
    ----------
    world : World
    what : str
        Of the agent: ``"start"`` or ``"home"``.
    place : (d,) array
    """
    world.domain.check_place(what, place, f"agent.{what}")
    if world.domain.obstacles and not np.isfinite(world.cost.travel(place, place[None])[0]):
        raise InputError(
            f"{what} {place.tolist()} lies where an obstacle touches another, or the edge of the domain",
            expected="a place that can be passed: nothing gets between what touches",
            where=f"agent.{what}",
            fix="move it away from there, or the obstacles apart",
        )


def _between(world: World) -> str:
    """Return what may lie between two places without a way, in words."""
    obstacles, outlined = world.domain.obstacles, world.domain.region is not None
    return "obstacles lie" if obstacles else "the outline lies" if outlined else "no way leads"
