"""Policies that remove the expected risk of misclassification: one reading, or a whole tour, at a time.

The variance that readings leave does not depend on their values, so that what a tour is expected to remove is
known before it begins; see :mod:`fieldbo.policies.level_set.risk`. If the vehicle also reads on the way, the
many readings of a move are represented by a few, spread evenly over the way and taken at the nearest sites,
which together weigh as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field
from scipy.linalg import solve_triangular

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.lookahead import Whole
from fieldbo.belief.readings import LEAST_NOISE
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.costs.on_the_way import read_on_moves
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.choice import best_pair, leading, needs_positive_costs
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.level_set.risk import ByRisk, Risk, coefficients_at, drop_of, floored
from fieldbo.policies.tour_plan import LEAST_SHARE, TourCosts, plan_tour
from fieldbo.validation import settings

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


class Outlook:
    """What readings at a few candidates are expected to remove of the risk.

    Parameters
    ----------
    surface : Surface
    risk : Risk
    sites : (W,) int array
        The candidates: sites of the surface. One may come several times, with another noise.
    noise : (W,) array
        Noise variance of a reading at each, above 0.
    """

    def __init__(self, surface: Surface, risk: Risk, sites: Whole, noise: Array) -> None:
        unit = surface.lookahead.unit
        self._weight = risk.weight
        self._with_members = risk.covariances(surface, sites)
        self._covariances = surface.covariance(sites, sites) / unit
        self._noise = noise / unit
        self._rounding = np.float32(surface.lookahead.rounding)
        self._shares = (unit / surface.variance[risk.members]).astype(np.float32)
        self._drops = coefficients_at(risk.t).astype(np.float32)

    def gains(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading would remove after those at some stops, and what these remove.

        Parameters
        ----------
        stops : list of int
            Candidates.

        Returns
        -------
        gains : (W,) array
        removed : float
        """
        from fieldbo.policies.level_set._risk_loops import add_further_drops

        gains, removed = np.zeros(len(self._noise)), np.zeros(len(self._shares), np.float32)
        add_further_drops(
            self._with_members,
            self._covariances,
            self._noise,
            np.array(stops, dtype=int),
            self._drops,
            self._rounding,
            self._shares,
            gains,
            removed,
        )
        return self._weight * np.maximum(gains, 0.0), self._weight * float(removed.sum(dtype=float))


_BY_SAMPLE, _BY_MOVE = 150, 100  # candidates for a stop, by gain per sampling cost and per cost of the move


@dataclass(frozen=True, eq=False)
class Drops:
    """What a reading at each site and level is expected to remove of the risk, (N, K).

    If the sensor reads on the way, so do the readings on the way there.

    Parameters
    ----------
    risk : Risk
    noise, value : (N, K) arrays
        Noise variance, and drop.
    able : (N, K) bool array
        The pairs that can be chosen.
    """

    risk: Risk
    noise: Array
    value: Array
    able: Mask

    @classmethod
    def of(cls, state: State) -> Drops:
        """Return the drops in a state.

        If all are 0, but nothing was read yet or the model is provisional, variances stand in for them.
        """
        surface = state.surface
        risk, noise = Risk.of(surface, state.threshold), floored(surface, state.at_levels(state.noise))
        value = risk.drops(surface, noise)
        able = state.at_levels(state.choosable)
        if (state.provisional or not state.steps) and not value.any():
            value = np.repeat(surface.variance[:, None], noise.shape[1], axis=1)
        elif state.sensor.along is not None:  # which has a single level
            value = with_way(state, risk, noise[:, 0], value[:, 0], able[:, 0])[:, None]
        return cls(risk, noise, value, able)

    @property
    def why(self) -> dict[str, Any]:
        """What goes into the reasons of a choice."""
        return {"at_risk": self.risk.sites, "expected_errors": self.risk.errors}

    def best_per_cost(self, state: State, memory: Memory) -> Decision:
        """Return the decision for the pair of the largest gain per unit of cost."""
        scores = np.where(self.value > 0, self.value / state.at_levels(state.costs), -np.inf)
        return best_pair(state, scores, self.able, memory, **self.why)

    def best_rate(self, state: State) -> float:
        """Return the largest gain per unit of cost among the pairs that can be chosen."""
        return float(np.where(self.able, self.value / state.at_levels(state.costs), 0.0).max())

    @property
    def answered(self) -> bool:
        """Whether no reading anywhere is expected to correct a site."""
        return not self.value.any()


@settings("policy")
class OneStepRisk(ByRisk):
    """Sample where a reading is expected to remove the most risk of misclassification, per unit of cost.

    If the sensor has several settings, each (site, level) pair is a candidate. If it reads on the way, a move
    counts with all that it reads.
    """

    per_cost: bool = True
    """Whether to divide by the cost of the move."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if a cost is missing or can be 0."""
        if self.per_cost:
            needs_positive_costs(cost, domain)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the pair of the largest gain (per unit of cost); Stop if nothing can be gained."""
        drops = Drops.of(state)
        if drops.answered:
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, drops.why)
        if self.per_cost:
            return drops.best_per_cost(state, memory)
        return best_pair(
            state, np.where(drops.value > 0, drops.value, -np.inf), drops.able, memory, **drops.why
        )


@settings("policy")
class Tour(ByRisk):
    """Plan a tour that removes much risk of misclassification per unit of cost, and go to its first stop.

    The tour is planned again after each reading. Where travel is free, a tour saves nothing, and the reading
    that removes most per unit of cost comes first. If the sensor has several settings, each (site, level)
    pair is a candidate for a stop. If it reads on the way, a single move that removes more per unit of cost,
    with all that it reads, comes before the tour.
    """

    stops: Annotated[int, Field(ge=1, le=64)] = 16
    """Largest number of stops of a tour."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if a cost is missing or can be 0."""
        needs_positive_costs(cost, domain)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the first stop of the tour; Stop if nothing can be gained."""
        drops = Drops.of(state)
        if drops.answered:
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, drops.why)
        if not _travel_costs(state):
            return drops.best_per_cost(state, memory)
        first = self._stops(state, drops, memory, 1)
        if first and state.sensor.along is not None and drops.best_rate(state) > first[0].why["score"]:
            first = []  # a single move reads more on its way
        return first[0] if first else drops.best_per_cost(state, memory)

    def suggest_batch(self, state: State, memory: Memory, k: int) -> list[Decision] | None:
        """Return the first `k` stops of the tour."""
        return self._stops(state, Drops.of(state), memory, k) or None

    def _stops(self, state: State, drops: Drops, memory: Memory, k: int) -> list[Decision]:
        """Return the decisions for the first `k` stops of the tour; none if it has no stops."""
        cost, sites = state.cost, state.domain.sites
        assert cost is not None
        sampling = np.stack([cost.sampling_cost(sites, level) for level in state.levels], axis=1)
        rows, levels = _choose_stops(drops, sampling, state.at_levels(state.costs))
        if not len(rows) or not len(drops.risk.members):
            return []
        places = np.concatenate([state.position[None], sites[rows]])
        travel = cost.travel(places, places, state.time_s)
        costs = TourCosts(travel, state.return_cost(places), sampling[rows, levels], state.spendable)
        tour = plan_tour(
            Outlook(state.surface, drops.risk, rows, drops.noise[rows, levels]), costs, self.stops
        )
        gain, decisions = tour.gain, list[Decision]()
        if tour.stops and state.sensor.along is not None:
            gain = on_a_tour(state, drops.risk, drops.noise[:, 0], rows[tour.stops])
        rate = gain / tour.cost if tour.stops else 0.0
        why = {**drops.why, "tour": [{"stop": sites[rows[n]].tolist()} for n in tour.stops]}
        for n in tour.stops[:k]:
            row, level = int(rows[n]), int(levels[n])
            best = leading(state, np.array([rate]), np.array([True]), (level,), sites[[row]])
            reasons = {"score": rate, "site": row, "best": best, **why}
            decisions.append(Decision(Query(sites[row], level=level), memory, reasons))
        return decisions


def _travel_costs(state: State) -> bool:
    assert state.cost is not None
    return bool(state.cost.travel(state.position, state.domain.sites, state.time_s).any())


def _choose_stops(drops: Drops, sampling: Array, costs: Array) -> tuple[Whole, Whole]:
    """Return the sites and levels (W,) of the candidates for a stop.

    The best by gain per cost of the move, and the best of those worth a stop if they needed no detour.
    """
    able = np.flatnonzero(drops.able & (drops.value > 0))
    if not len(able):
        return able, able
    value = drops.value.ravel()[able]
    at_best, now = (value / cost.ravel()[able] for cost in (sampling, costs))
    at_best[at_best < LEAST_SHARE * now.max()] = 0.0
    chosen = [
        np.argsort(-rate, kind="stable")[: min(most, np.count_nonzero(rate))]
        for rate, most in ((at_best, _BY_SAMPLE), (now, _BY_MOVE))
    ]
    rows, levels = np.divmod(able[np.union1d(*chosen)], drops.value.shape[1])
    return rows, levels
