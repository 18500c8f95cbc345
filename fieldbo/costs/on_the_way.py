"""Where a vehicle is when its sensor reads on the way."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Along
from fieldbo.errors import InputError

MOST_ON_ONE_LEG = 100_000
"""Largest number of readings on one leg; more are a mistaken unit."""

_AT_END = 1e-9
"""A reading this close to the end, relative to the spacing, is the one at the end."""


class OnTheWay(NamedTuple):
    """Readings on the way: `sites` (k, d) where, and `seconds` (k,) since setting out when they are taken."""

    sites: Array
    seconds: Array


def on_the_way(
    cost: CostModel, along: Along, points: ArrayLike, *, seconds: float | None = None, time_s: float = 0.0
) -> OnTheWay:
    """Return where and when a vehicle reads that travels in straight legs through some points.

    The first reading is one spacing after the start, and none is at the end, where the order's own reading
    is. On each straight leg, the vehicle keeps the speed that the leg takes on average.

    Parameters
    ----------
    cost : CostModel
        Says how long each leg takes.
    along : Along
    points : (p, d) array
        Both ends included.
    seconds : float, optional
        What the legs really take in all; by default, what is declared.
    time_s : float
        When the vehicle sets out.

    Raises
    ------
    InputError
        There would be more than 100,000 readings.

    Examples
    --------
    >>> from fieldbo.costs import Boat
    >>> readings = on_the_way(Boat(speed=2.0), Along(every_m=4.0), [[0.0, 0.0], [6.0, 0.0], [6.0, 3.0]])
    >>> readings.sites.tolist(), readings.seconds.tolist()
    ([[4.0, 0.0], [6.0, 2.0]], [2.0, 4.0])
    """
    route = np.asarray(points, dtype=float)
    lengths = np.linalg.norm(np.diff(route, axis=0), axis=1)
    declared = np.array([cost.along([a, b], time_s)[1] for a, b in pairwise(route)])
    whole_s = float(declared.sum())
    took_s = declared if seconds is None or not whole_s > 0 else declared * (seconds / whole_s)
    clock, odometer = (np.concatenate([[0.0], np.cumsum(passed)]) for passed in (took_s, lengths))
    spacing, by = (along.every_m, odometer) if along.every_s is None else (along.every_s, clock)
    assert spacing is not None
    number = max(0, int(np.ceil(by[-1] / spacing - _AT_END)) - 1)
    if number > MOST_ON_ONE_LEG:
        raise InputError(
            f"{number:,} readings on the way of one leg",
            expected=f"at most {MOST_ON_ONE_LEG:,}",
            where="sensor.along",
            fix=f"raise the spacing to {by[-1] / MOST_ON_ONE_LEG:.2g} or more",
        )
    marks = spacing * np.arange(1, number + 1)
    kept = np.concatenate([[True], np.diff(by) > 0])  # where the vehicle stands still, it reads no more
    by, clock, route = by[kept], clock[kept], route[kept]
    sites = np.column_stack([np.interp(marks, by, coordinates) for coordinates in route.T])
    return OnTheWay(sites.reshape(number, route.shape[1]), np.interp(marks, by, clock))


def spacing_m(cost: CostModel, along: Along, points: ArrayLike, time_s: float = 0.0) -> float:
    """Return how far apart the readings on the way through some points (p, d) are, in metres.

    For readings per time, it is the mean; infinity if the way takes no time.

    Examples
    --------
    >>> from fieldbo.costs import Boat
    >>> spacing_m(Boat(speed=2.0), Along(every_s=3.0), [[0.0, 0.0], [6.0, 0.0]])
    6.0
    """
    if along.every_m is not None:
        return along.every_m
    assert along.every_s is not None
    route = np.asarray(points, dtype=float)
    seconds = cost.along(route, time_s)[1]
    length = float(np.linalg.norm(np.diff(route, axis=0), axis=1).sum())
    return along.every_s * length / seconds if seconds > 0 else np.inf


def read_on_moves(
    cost: CostModel, along: Along, position: ArrayLike, sites: ArrayLike, time_s: float = 0.0
) -> list[Array]:
    """Return where the readings on the way lie of the move from a position to each of some sites.

    A policy that values a move by all that it reads counts these sites, and the one at its end, as read:
    see `Surface.believing`. Vehicles take the declared route, `CostModel.path`.

    Parameters
    ----------
    cost : CostModel
    along : Along
    position : (d,) array
    sites : (N, d) array
        A site without a route has no readings on the way.
    time_s : float
        When the vehicle sets out.

    Returns
    -------
    list of N (k, d) arrays

    Examples
    --------
    >>> from fieldbo.costs import Euclidean
    >>> [len(s) for s in read_on_moves(Euclidean(), Along(every_m=1.0), [0.0, 0.0], [[3.0, 4.0], [0.0, 0.5]])]
    [4, 0]
    """
    ends = np.atleast_2d(np.asarray(sites, dtype=float))
    reachable = np.isfinite(cost.travel(position, ends, time_s))
    nothing = np.empty((0, ends.shape[1]))
    return [
        on_the_way(cost, along, cost.path(position, end, time_s), time_s=time_s).sites if reached else nothing
        for end, reached in zip(ends, reachable, strict=True)
    ]


def check_along(along: Along, cost: CostModel, cost_unit: str, domain: Domain) -> None:
    """Raise an `InputError` unless vehicles travel in metres and, for readings per time, at a known speed."""
    where = "sensor.along"
    if domain.control_sets or any(axis.unit != "m" for axis in domain.axes):
        units = ", ".join(axis.label for axis in domain.axes)
        raise InputError(
            "this world has control sets" if domain.control_sets else f"the axes of this world are {units}",
            expected="a place to travel in: axes in m",
            where=where,
            fix="delete along: only vehicles that travel in metres read on the way",
        )
    if along.every_s is None:
        return
    ends = domain.sites[[0]], domain.sites[[-1]]
    seconds = cost.travel_s(ends[0][0], ends[1])[0] if cost.known else np.nan
    unset = "seconds_per_unit" in {f.name for f in fields(cost)} and cost.seconds_per_unit == 1.0
    if (domain.size > 1 and not seconds > 0) or (unset and cost_unit != "s"):
        raise InputError(
            f"every_s = {along.every_s:g}, but this world does not say how fast vehicles travel",
            expected="a cost from which the speed follows",
            where=where,
            fix=f'set seconds_per_unit in [cost], the seconds per {cost_unit}; or use kind = "boat" with its '
            "speed; or give the spacing as every_m",
        )
