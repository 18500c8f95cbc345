"""Plan a tour of readings after which the recommended place is expected to be best, and go to its first stop.

===========  ===========================================================================
``mu, s``    posterior mean and standard deviation of a candidate
``n``        noise variance of a reading there
``W, K``     candidates for a stop; levels of the sensor
===========  ===========================================================================

The variance that readings leave does not depend on their values, so that what a tour is expected to add is
known before it begins: see `Outlook`.

===========  ==========================================================================
``P``        places: the candidates, then those that can be recommended already
``S``        joint draws of the places' values, each with a reading
``mu``       posterior mean of the places, (P,)
``Q``        candidates that are read
``m_Q``      posterior mean after those readings, (P, S)
===========  ==========================================================================
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt
from scipy.linalg import solve_triangular

from fieldbo._numerics.arrays import Array
from fieldbo.belief.lookahead import Single, Whole
from fieldbo.belief.surface import Surface
from fieldbo.messages import EndReason
from fieldbo.policies.acquisition import log_expected_improvement
from fieldbo.policies.choice import climbed, over_candidates, reading_noise
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.tour_plan import Planned, PlansTours, Stops, draw_by_lot, plan_tour, step_price
from fieldbo.validation import settings


class Outlook:
    """What readings at a few candidates are expected to add to the value of the recommended place.

    The place of the largest mean is recommended in the end, among those that can be recommended already and
    those that were read. Readings at Q add ``E max m_Q - max mu``, averaged over draws that come in pairs,
    mirrored at the mean: so readings that cannot change the recommendation add nothing.

    Parameters
    ----------
    surface : Surface
        The belief over the places.
    noise : (W,) array
        Noise variance of a reading at each candidate, above 0. The candidates are the first W places.
    draws : int
        Rounded down to an even number.
    rng : numpy.random.Generator

    Examples
    --------
    Two sites may be better than the one that is known; a second reading at the same one adds nothing:

    >>> from fieldbo.belief.kernels import Matern52
    >>> from fieldbo.belief.posterior import Belief
    >>> belief = Belief(Matern52([1.0])).condition_on([[0.0]], [0.5], 1e-6)
    >>> surface = Surface(belief, [[50.0], [100.0], [0.0]])
    >>> outlook = Outlook(surface, np.full(2, 1e-6), 10_000, np.random.default_rng(0))
    >>> outlook.gains([])[0].round(1)
    array([0.2, 0.2])
    >>> outlook.gains([0])[0].round(1)
    array([0. , 0.2])
    """

    def __init__(self, surface: Surface, noise: Array, draws: int, rng: np.random.Generator) -> None:
        W = len(noise)
        self._noise, self._good = noise, np.arange(W, surface.size)
        self._covariances = surface.covariance()
        half = surface.draws(draws // 2, rng)[:W] - surface.mean[:W, None]
        half += np.sqrt(noise)[:, None] * rng.standard_normal(half.shape)
        self._surprises = np.concatenate([half, -half], axis=1)
        self._mean = surface.mean - surface.mean[W:].max()
        # Single precision has no digits for tiny variances.
        self._unit = float(np.sqrt(np.diag(self._covariances).max(initial=0.0))) or 1.0
        self._readings = self._in_unit(self._mean[:W, None] + self._surprises)

    def _in_unit(self, values: Array, power: int = 1) -> Single:
        return np.asarray(values / self._unit**power, np.float32)

    def gains(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading at each candidate would add after those at some stops.

        Parameters
        ----------
        stops : list of int
            Candidates, each at most once.

        Returns
        -------
        gains : (W,) array
            0 at the stops.
        added : float
            What the readings at the stops add together.
        """
        from fieldbo.policies.optimum._loops import growth_after

        at, K, W = np.array(stops, dtype=int), self._covariances, len(self._noise)
        # The readings explain B'B of the covariances, and move the means by B'e.
        L = np.linalg.cholesky(K[np.ix_(at, at)] + np.diag(self._noise[at]))
        both = np.concatenate([K[at], self._surprises[at]], axis=1)
        solved = solve_triangular(L, both, lower=True, check_finite=False) if len(at) else both
        B, e = solved[:, : len(K)], solved[:, len(K) :]
        means = self._in_unit(self._mean[:, None] + B.T @ e)
        known = np.concatenate([self._good, at])
        left = np.maximum(np.diag(K)[:W] - np.square(B[:, :W]).sum(axis=0), 0.0)
        top, gains = means[known].max(axis=0), np.empty(W)
        growth_after(
            means,
            known,
            self._in_unit(K[:W, known] - B[:, :W].T @ B[:, known], 2),
            self._in_unit(left, 2),
            self._in_unit(1.0 / (left + self._noise), -2),
            self._readings,
            top,
            gains,
        )
        gains[at] = 0.0
        return self._unit * np.maximum(gains, 0.0), self._unit * float(top.mean(dtype=float))


_PLACES = 80  # candidates for a stop drawn by what they promise, and as many by what they promise per cost
_GOOD = 8  # sites, and readings, of the largest mean: what can be recommended without another reading


@settings("policy")
class SearchTour(PlansTours):
    """Plan a tour that is expected to improve the recommended place most per unit of cost, and begin it.

    The tour is planned again after each reading, within what is left of the battery. If the sensor has
    several settings, each (site, level) pair is a candidate for a stop. If the mission limits the steps, each
    of them has a price: the battery that is left, divided by the steps that are left.
    """

    kappa: PositiveFloat = 2.0
    """Only potential maximisers are candidates for a stop: ``mu + kappa s`` is at least the best mean. The
    larger, the more it explores, and the more it relies on the tails of the model."""
    stops: Annotated[int, Field(ge=1, le=64)] = 16
    """Largest number of stops of a tour."""
    draws: Annotated[int, Field(ge=16)] = 512
    """Number of joint posterior draws that an expectation is averaged over."""
    candidates: PositiveInt = 1000
    """In a box: number of points drawn for each decision, from the best of which it climbs."""

    def _tour(self, state: State, memory: Memory, k: int) -> list[Decision] | EndReason:
        """Return the decisions for the first `k` stops of the tour, at least one; or the reason to stop."""
        surface = over_candidates(state, self.candidates)
        if isinstance(surface, EndReason):
            return surface
        good = _good(state)
        stops = self._draw_stops(state, surface, float(state.belief.mean(good).max()))
        if not len(stops.sites):
            return EndReason.BATTERY_SPENT
        costs = stops.costs(state)
        over = Surface(state.belief, np.concatenate([stops.sites, good]))
        outlook = Outlook(over, stops.noise, self.draws, state.rng)
        tour = plan_tour(outlook, costs, int(min(self.stops, max(1, state.steps_left))))
        if not tour.stops:
            tour = _best_single(over, stops, costs.travel[0, 1:] + stops.sampling)
        return stops.decisions(state, memory, tour, k, {})

    def _draw_stops(self, state: State, surface: Surface, best: float) -> Stops:
        """Return candidates for a stop, drawn by the improvement on `best` that a reading of each promises.

        Only potential maximisers, if there are any. Half of them are drawn by the improvement, half by that
        per unit of cost: where a tour may lead, and what is at hand. In a box, they are joined by the points
        to which climbs from the best of them lead.
        """
        cost, levels = state.cost, state.levels
        assert cost is not None
        step = step_price(state)

        def promise(over: Surface, level: int, priced: bool) -> Array:
            """Return the logarithm of the expected improvement (N,) by the mean after a reading."""
            variance = over.variance + reading_noise(state, level, over)
            logs = log_expected_improvement(over.mean, over.variance / np.sqrt(variance), best)
            if not priced:
                return logs
            there = over.candidates
            return logs - np.log(cost.to(state.position, there, level=level, time_s=state.time_s) + step)

        able = state.at_levels(lambda level: state.affordable(surface.candidates, level=level))
        maximisers = able & (surface.mean + self.kappa * surface.sd >= best)[:, None]
        able = maximisers if maximisers.any() else able
        drawn, tops = list[Whole](), list[tuple[Array, int]]()
        for priced in (False, True):
            logs = np.stack([promise(surface, level, priced) for level in levels], axis=1)
            logs = np.where(able, logs, -np.inf)
            drawn.append(draw_by_lot(logs, _PLACES, state.rng))
            if state.domain.continuous and able.any():
                row, level = divmod(int(np.argmax(logs)), len(levels))

                def scores(x: Array, level: int = level, priced: bool = priced) -> Array:
                    return promise(Surface(state.belief, x), level, priced)

                point, score = climbed(state, scores, surface.candidates[row], level)
                if np.isfinite(score):
                    tops.append((point, level))
        rows, at = np.divmod(np.union1d(*drawn), len(levels))
        sites = np.concatenate([surface.candidates[rows], *(point[None] for point, _ in tops)])
        at = np.concatenate([at, np.array([level for _, level in tops], dtype=int)])
        return Stops.of(state, sites, at)


def _good(state: State) -> Array:
    """Return the points (G, d) that can be recommended already: the best sites, and the best readings."""
    belief, domain = state.belief, state.domain
    good = domain.sites[np.argsort(-state.surface.mean, kind="stable")[:_GOOD]]
    if not belief.size:
        return np.unique(good, axis=0)
    read = belief.sites[np.argsort(-belief.mean_at_sites(), kind="stable")[:_GOOD]]
    if not domain.continuous:
        read = domain.sites[[domain.nearest(site) for site in read]]
    return np.unique(np.concatenate([good, read]), axis=0)


def _best_single(over: Surface, stops: Stops, costs: Array) -> Planned:
    """Return the tour of a single stop that gains most per unit of cost, if gains are too rare for draws.

    Its gain is the knowledge gradient, which is exact (Frazier, Powell and Dayanik 2009).
    """
    from fieldbo.policies.optimum._loops import growth_of_the_best_mean

    W = len(stops.noise)
    covariances = over.covariance(slice(W))
    sd = np.sqrt(np.diag(covariances) + stops.noise)
    growth = growth_of_the_best_mean(over.mean, covariances / sd[:, None])
    best = int(np.argmax(growth / costs))
    return Planned([best], float(growth[best]), float(costs[best]))
