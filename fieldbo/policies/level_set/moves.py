"""What whole moves are expected to remove of the risk, if the vehicle also reads on the way.

The many readings on the way are represented by a few, spread evenly over the way and taken at the nearest
sites, which together weigh as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.lookahead import Whole
from fieldbo.belief.readings import LEAST_NOISE
from fieldbo.belief.surface import Surface
from fieldbo.costs.on_the_way import read_on_moves
from fieldbo.policies.contract import State
from fieldbo.policies.level_set.risk import Risk, coefficients_at, drop_of

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

_POINTS = 6
"""Readings that represent those of one move."""

_BEST, _SPREAD = 100, 100
"""Moves that are looked at: those with the best reading at their end per cost, and some everywhere."""


class Readings(NamedTuple):
    """Readings at some sites: `rows` (m,), their indices, and `noise` (m,), their noise variances."""

    rows: Whole
    noise: Array


def with_way(state: State, risk: Risk, noise: Array, value: Array, able: Mask) -> Array:
    """Return what moves are expected to remove of the risk (N,), with all that is read on the way.

    Parameters
    ----------
    state : State
        Of a mission whose sensor reads on the way.
    risk : Risk
    noise : (N,) array
        Noise variance of a reading at each site.
    value : (N,) array
        What the reading at the end of each move removes: a bound that stands for moves not looked at.
    able : (N,) bool array
        The moves that can be chosen.
    """
    rows = np.flatnonzero(able)
    if state.sensor.along is None or state.cost is None or not len(rows) or not len(risk.members):
        return value
    rate = value[rows] / state.costs()[rows]
    best = np.argsort(-rate, kind="stable")[:_BEST]
    spread = np.linspace(0, len(rows) - 1, min(_SPREAD, len(rows))).round().astype(int)
    rows = rows[np.union1d(best, spread)]
    ways = read_on_moves(
        state.cost, state.sensor.along, state.position, state.domain.sites[rows], state.time_s
    )
    from scipy.spatial import cKDTree

    tree, extent = cKDTree(state.domain.sites / state.domain.extent), state.domain.extent
    sets = [_readings(tree, way / extent, int(row), noise) for way, row in zip(ways, rows, strict=True)]
    value = value.copy()
    value[rows] = np.maximum(value[rows], removed(state.surface, risk, sets))
    return value


def on_a_tour(state: State, risk: Risk, noise: Array, stops: Whole) -> float:
    """Return what a tour is expected to remove of the risk, with all that is read on the way.

    Parameters
    ----------
    state, risk, noise
        As for `with_way`.
    stops : (k,) int array
        Indices of the sites where it stops, in order.
    """
    from scipy.spatial import cKDTree

    assert state.sensor.along is not None
    assert state.cost is not None
    sites, extent = state.domain.sites, state.domain.extent
    tree, here, sets = cKDTree(sites / extent), state.position, list[Readings]()
    for row in stops.tolist():
        (way,) = read_on_moves(state.cost, state.sensor.along, here, sites[[row]], state.time_s)
        sets.append(_readings(tree, way / extent, row, noise))
        here = sites[row]
    rows, noises = (np.concatenate(part) for part in zip(*sets, strict=True))
    return float(removed(state.surface, risk, [Readings(rows, noises)])[0])


def removed(surface: Surface, risk: Risk, sets: list[Readings]) -> Array:
    """Return what each of some sets of readings is expected to remove of the risk, (M,)."""
    rows, at = np.unique(np.concatenate([readings.rows for readings in sets]), return_inverse=True)
    unit, R = surface.lookahead.unit, coefficients_at(risk.t)
    with_members = risk.covariances(surface, rows).astype(float)
    between, shares = surface.covariance(rows, rows) / unit, unit / surface.variance[risk.members]
    gains, first = np.empty(len(sets)), 0
    for k, readings in enumerate(sets):
        columns = at[first : first + len(readings.rows)]
        first += len(columns)
        covariance = between[np.ix_(columns, columns)] + np.diag(readings.noise / unit)
        factor = np.linalg.cholesky(covariance)
        half = solve_triangular(factor, with_members[:, columns].T, lower=True, check_finite=False)
        explained = np.minimum(1.0, np.einsum("ms,ms->s", half, half) * shares)
        gains[k] = drop_of(R, explained).sum()
    return risk.weight * np.maximum(gains, 0.0)


def _readings(sites: cKDTree, way: Array, row: int, noise: Array) -> Readings:
    """Return the readings that represent those on a way (k, d), and the one at its end."""
    points = min(_POINTS, len(way))
    if not points:
        return Readings(np.array([row]), noise[[row]])
    chosen = way[((np.arange(points) + 0.5) * len(way) / points).astype(int)]
    near = sites.query(chosen)[1]
    rows, counts = np.unique(near, return_counts=True)
    share = np.clip(points / (len(way) * counts), LEAST_NOISE, 1.0)
    return Readings(np.append(rows, row), np.append(share * noise[rows], noise[row]))
