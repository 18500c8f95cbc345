"""Inspect the domain for its largest value, and settle the best place with what is left of the battery.

===========  =======================================================================================
``W``        candidates for a stop, (site, level) pairs
``s``        standard deviation of a reading
``Q``        candidates that are read
``x*``       the site of the largest mean under a belief
===========  =======================================================================================

In most rules one site's upper bound under one fit decides. On a quiet background the fit then vouches for
places that nobody has seen, and the rule hovers over the best reading. Here each reading is worth two things
in one unit: what it *tells* of the place that would be reported, and what it *covers* of the places where
something higher could still hide. A tour of readings buys both. See `Tells`, `Covers` and
:mod:`fieldbo.belief.covering`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from pydantic import PositiveInt
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from fieldbo._numerics.arrays import Array
from fieldbo.belief.covering import Covering, Readings, one_each, scarcest_spacing, yardsticks
from fieldbo.belief.hyperparameters import WithTrend
from fieldbo.belief.kernels import Kernel, Matern52
from fieldbo.belief.lookahead import Whole
from fieldbo.belief.posterior import Belief
from fieldbo.belief.shore_kernel import ShoreMatern52
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import Supply
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason
from fieldbo.policies.choice import climbed, over_candidates, readable, reading_noise
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.tour_plan import (
    Planned,
    PlansTours,
    Stops,
    draw_by_lot,
    highest_of,
    plan_tour,
    step_price,
)
from fieldbo.validation import settings

_SEEN = 0.5  # of what hides would be found by a reading that covers it


def expected_excess(gap: Array, sd: Array) -> Array:
    """Return ``E max(N(-gap, sd^2), 0)``: by how much something is expected to exceed what is `gap` above it.

    Examples
    --------
    >>> expected_excess(np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0])).round(3)
    array([0.399, 0.083, 0.   ])
    """
    spread = np.maximum(sd, 1e-150)
    z = np.clip(-gap / spread, -1e150, 1e150)
    return np.maximum(spread * (z * ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)), 0.0)


class Mixture:
    """Two beliefs at once, each as likely as the other: what differs between them is not known, either.

    ===========  ==================================================
    ``mean``     ``(m + m') / 2``
    covariance   ``(K + K') / 2 + (m - m') (m - m')^T / 4``
    ===========  ==================================================

    Parameters
    ----------
    surfaces : pair of Surface
        Over the same candidates.
    level : float
        What is added to the means of the second one.
    """

    def __init__(self, surfaces: tuple[Surface, Surface], level: float) -> None:
        self.surfaces, self.level = surfaces, level
        first, second = surfaces
        self.apart: Array = first.mean - second.mean - level
        self.mean: Array = first.mean - 0.5 * self.apart
        self.variance: Array = 0.5 * (first.variance + second.variance) + 0.25 * self.apart**2

    def over(self, candidates: Array) -> Mixture:
        """Return the same beliefs over other candidates (M, d)."""
        first, second = self.surfaces
        return Mixture((Surface(first.belief, candidates), Surface(second.belief, candidates)), self.level)

    def covariance(self) -> Array:
        """Return the covariances between all candidates (N, N)."""
        first, second = self.surfaces
        within = 0.5 * (first.covariance() + second.covariance())
        return within + 0.25 * np.outer(self.apart, self.apart)


class Tells:
    """What readings are expected to add to the value of the reported place.

    A reading elsewhere may show that its place is better, and one at x* that another place is. The place x*
    is the one of the largest mean now, and the means stay as they are: a tour is not worth more by luck.

    Parameters
    ----------
    places : Mixture
        Over the W candidates for a reading, and x* as the last one.
    noise : (W,) array
        Noise variances of the readings, above 0.
    slack : float
        Differences between means below this are left for later.
    """

    def __init__(self, places: Mixture, noise: Array, slack: float) -> None:
        sites = places.surfaces[0].candidates
        self._noise, self._covariances = noise, places.covariance()
        self._variances = np.diag(self._covariances).copy()
        self._gaps = places.mean[-1] + slack - places.mean
        self._at_best = (sites == sites[-1]).all(axis=1)

    def after(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading at each candidate tells (W,), and what those at the stops tell."""
        at, K, W = np.array(stops, dtype=int), self._covariances, len(self._noise)
        left, beside, told = self._variances, K[-1], 0.0
        if len(at):
            L = np.linalg.cholesky(K[np.ix_(at, at)] + np.diag(self._noise[at]))
            B = solve_triangular(L, K[at], lower=True, check_finite=False)
            for n, stop in enumerate(stops):
                told += float(self._told(left, beside, np.array([stop]))[0])
                left, beside = left - B[n] ** 2, beside - B[n] * B[n, -1]
        return self._told(left, beside, np.arange(W)), told

    def _told(self, variances: Array, beside: Array, at: Whole) -> Array:
        """Return what a reading tells at some candidates, by variances and covariances with x* (W + 1,)."""
        variance = np.maximum(variances[at], 0.0)
        moved = np.abs(variance - beside[at]) / np.sqrt(variance + self._noise[at])
        told = expected_excess(self._gaps[at], moved)
        for n in np.flatnonzero(self._at_best[at]):
            moved = np.abs(variance[n] - beside) / math.sqrt(variance[n] + self._noise[at[n]])
            others = expected_excess(self._gaps, moved)[~self._at_best]
            told[n] = others.max(initial=0.0)
        return told


class Covers:
    """What readings take away from the places where something higher than the best reading could hide.

    Parameters
    ----------
    covering : Covering
    sites : (W, d) array
        Candidates for a reading.
    noise : (W,) array
        Noise variances of the readings.
    excess : float
        By how much something hidden is expected to exceed the best reading; what a reading with more noise
        than that may not notice.
    """

    def __init__(self, covering: Covering, sites: Array, noise: Array, excess: float) -> None:
        from fieldbo.policies.optimum._loops import patches_covered

        self._covering, self._excess = covering, excess
        self._starts, self._columns, self._shares = patches_covered(*covering.around(sites))
        noticed = excess**2 + covering.readings.sd**2
        self._shares *= np.repeat(np.minimum(1.0, noticed / (excess**2 + noise)), np.diff(self._starts))

    def after(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading at each candidate covers (W,), and what those at the stops cover."""
        from fieldbo.policies.optimum._loops import further_covered

        out, covering = np.empty(len(self._starts) - 1), self._covering
        together = further_covered(
            self._starts,
            self._columns,
            self._shares,
            covering.weights,
            covering.covered,
            np.array(stops, dtype=np.int64),
            out,
        )
        return _SEEN * self._excess * out, _SEEN * self._excess * float(together)


class Worth:
    """What readings at a few candidates are worth: what they tell, and what they cover.

    Parameters
    ----------
    covers : Covers
    tells : Tells, optional
        None before the first fit.
    """

    def __init__(self, covers: Covers, tells: Tells | None) -> None:
        self._covers, self._tells = covers, tells

    def gains(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading at each candidate would add, and what those at the stops add.

        See :meth:`fieldbo.policies.tour_plan.Outlook.gains`; each stop comes at most once, and gains 0.
        """
        gains, added = self._covers.after(stops)
        if self._tells is not None:
            told, before = self._tells.after(stops)
            gains, added = gains + told, added + before
        gains[stops] = 0.0
        return gains, added

    def covers(self, stops: list[int]) -> float:
        """Return the part of what the readings at the stops add that is covering."""
        return self._covers.after(stops)[1]


_STOPS = 10
_HIDDEN, _TOLD = 32, 16  # candidates drawn by what may hide there, and by what a reading there may tell
_LAST = 0.25  # of the battery, in which differences that noise hides are settled
_SLACK = 0.4  # standard deviations of a reading: smaller differences wait until then
_EXACT = 1e-3  # of the field's standard deviation: readings are not taken to be more precise
_FREE = 1e-3  # of the median cost of a move: no reading counts as cheaper


class _View(NamedTuple):
    """What is covered, and what is believed.

    Attributes
    ----------
    covering : Covering
    believed : Mixture or None
        Over the candidates: the fit, and the bounded belief. None before the first fit.
    best : (k, d) array
        x*, then the places of the largest mean of either belief.
    slack : float
    excess : float
    """

    covering: Covering
    believed: Mixture | None
    best: Array
    slack: float
    excess: float


@settings("policy")
class Scout(PlansTours):
    """Look for the largest value where it may hide and where it promises most, by tours that buy both.

    The tour is planned again after each reading, within what is left of the battery. The domain is inspected
    before the rule commits itself, and small differences are settled last. If the sensor has several
    settings, each (site, level) pair is a candidate for a stop.
    """

    candidates: PositiveInt = 1000
    """In a box: number of points drawn for each decision, from the best of which it climbs."""

    def _tour(self, state: State, memory: Memory, k: int) -> list[Decision] | EndReason:
        """Return the decisions for the first `k` stops of the tour, at least one; or the reason to stop."""
        surface = over_candidates(state, self.candidates)
        if isinstance(surface, EndReason):
            return surface
        view = _view_from(state, surface)
        stops = _Drawing(state, surface, view).stops()
        if not len(stops.sites):
            return EndReason.BATTERY_SPENT
        costs = stops.costs(state)
        covers = Covers(view.covering, stops.sites, stops.noise, view.excess)
        tells = None
        if view.believed is not None:
            places = view.believed.over(np.concatenate([stops.sites, view.best[:1]]))
            tells = Tells(places, stops.noise, view.slack)
        worth = Worth(covers, tells)
        tour = plan_tour(worth, costs, int(min(_STOPS, max(1, state.steps_left))))
        if not tour.stops:
            tour = _best_single(worth, costs.travel[0, 1:] + stops.sampling)
        why = {
            "covers": worth.covers(tour.stops),
            "hidden": float(view.covering.hidden.sum()),
            "spacing": view.covering.spacing,
        }
        return stops.decisions(state, memory, tour, k, why)


def _view_from(state: State, surface: Surface) -> _View:
    """Return what is covered, and what is believed over the candidates of a surface."""
    belief, domain = state.belief, state.domain
    s = float(np.sqrt(np.median(state.at_levels(state.noise).min(axis=1))))
    s = max(s, _EXACT * float(np.sqrt(np.median(state.surface.process_variance))))
    spacing, left = _spacing_and_share_left(state)
    readings = Readings.of(domain, belief.sites, belief.values, belief.noise_variances, s)
    covering = Covering(domain, readings, spacing, plain=state.provisional)
    if covering.plain:
        return _View(covering, None, np.empty((0, domain.dimension)), 0.0, 1.0)
    excess = max(covering.tail, 3.0 * s / float(np.log(readings.size + 2))) * min(1.0, left / _LAST) ** 2
    other = Surface(bound_belief(belief, domain, covering), surface.candidates)
    believed = Mixture((surface, other), covering.level)
    return _View(covering, believed, _best(believed), 0.0 if left < _LAST else _SLACK * s, excess)


def _best(believed: Mixture) -> Array:
    """Return x* and the best places of either belief (3, d), among the candidates and what was read."""
    first, second = believed.surfaces
    read = first.belief.sites
    a, b = first.belief.mean(read), second.belief.mean(read) + believed.level
    places = np.concatenate([first.candidates, read])
    means = [
        np.concatenate(pair)
        for pair in (
            (believed.mean, 0.5 * (a + b)),
            (first.mean, a),
            (second.mean + believed.level, b),
        )
    ]
    return places[[int(np.argmax(mean)) for mean in means]]


def _spacing_and_share_left(state: State) -> tuple[float, float]:
    """Return the spacing of a sweep that would take all that may be spent, and the share that is left.

    Whatever is scarcest decides: the battery, the time, or the number of readings. If the question names the
    width of the smallest patch that matters, that is the spacing.
    """
    limits = [(limit.going, supply) for limit, supply in zip(state.limits, state.supplies, strict=True)]
    if np.isfinite(state.steps_left):
        readings = Supply(state.steps_left, state.steps + len(state.pending) + state.steps_left)
        limits.append((one_each, readings))
    left = min(supply.share for _, supply in limits)
    in_all = ((going, supply.in_all) for going, supply in limits)
    return scarcest_spacing(state.domain, state.question, in_all), left


def bound_belief(belief: Belief, domain: Domain, covering: Covering) -> Belief:
    """Return a belief of the same readings that vouches for no place far from all of them.

    Its length scales are at most twice the spacing, and it varies enough for the best reading to be no
    surprise. Its values are those above the level of the readings.
    """
    b = float(np.sqrt(np.median(belief.noise_variances)))
    above = covering.best - covering.level
    least = (_EXACT * covering.readings.sd) ** 2
    variance = max(covering.spread - b**2, (max(above - 2.0 * b, b) / 2.5) ** 2, least)
    kernel: Kernel = belief.kernel
    about = kernel.residual if isinstance(kernel, WithTrend) else kernel
    if isinstance(about, ShoreMatern52):
        lengths = np.minimum(about.length_scales, 2.0 * covering.spacing)
        along_water = about.with_theta(np.log(np.append(lengths, variance)))
        return _of_the_same(belief, along_water, covering.level)
    most = 2.0 * covering.spacing * yardsticks(domain)
    lengths = np.minimum(getattr(about, "length_scales", most), most)
    return _of_the_same(belief, Matern52(lengths, variance), covering.level)


def _of_the_same(belief: Belief, kernel: Kernel, level: float) -> Belief:
    """Return the belief of a kernel after the readings of another belief, less a level."""
    noise = np.maximum(belief.noise_variances, 1e-9 * kernel.diagonal(belief.sites))
    return Belief(kernel).condition_on(belief.sites, belief.values - level, noise)


class _Drawing:
    """Draws candidates for a stop by what may hide there, and by what a reading there may tell.

    Parameters
    ----------
    state : State
    surface : Surface
        The fit over the points to draw from.
    view : _View
    """

    def __init__(self, state: State, surface: Surface, view: _View) -> None:
        self.state, self.points, self.view = state, surface.candidates, view
        self.step = step_price(state)
        prices = state.at_levels(lambda k: self._prices(self.points, k))
        self.least = max(_FREE * float(np.median(prices[np.isfinite(prices)])), 1e-300)
        self.log_prices = np.log(np.maximum(prices, self.least))
        self.able = state.at_levels(lambda k: state.affordable(self.points, level=k))
        believed = view.believed
        self.top = 0.0 if believed is None else float(believed.over(view.best[:1]).mean[0])

    def _prices(self, points: Array, level: int) -> Array:
        """Return the price (N,) of going to each point and reading there."""
        state = self.state
        assert state.cost is not None
        return state.cost.to(state.position, points, level=level, time_s=state.time_s) + self.step

    def _told(self, over: Mixture, level: int) -> Array:
        """Return the logarithm of what a reading at each candidate of the mixture may tell (N,)."""
        sd = over.variance / np.sqrt(over.variance + reading_noise(self.state, level, over.surfaces[0]))
        with np.errstate(divide="ignore"):
            return np.log(expected_excess(self.top + self.view.slack - over.mean, sd))

    def _hidden(self) -> Array:
        """Return the logarithm of what may hide at each point, the same for all levels (N, K)."""
        covering, everywhere = self.view.covering, self.points is self.state.domain.sites
        hidden = covering.hidden if everywhere else covering.hidden_at(self.points)
        with np.errstate(divide="ignore"):
            return np.log(np.where(self.able, hidden[:, None], 0.0))

    def stops(self) -> Stops:
        """Return the candidates: those drawn, the best places and, in a box, where climbs lead.

        Half of each draw is by the plain weights, half by those per unit of cost.
        """
        state, believed, K = self.state, self.view.believed, len(self.state.levels)
        hidden, drawn, more = self._hidden(), list[Whole](), list[tuple[Array, int]]()
        if believed is not None:
            told = state.at_levels(lambda k: self._told(believed, k))
            told = np.where(self.able, told, -np.inf)
        for priced in (False, True):
            less = self.log_prices if priced else 0.0
            drawn.append(draw_by_lot(hidden - less, _HIDDEN, state.rng))
            if believed is not None:
                drawn += [draw_by_lot(told - less, _TOLD, state.rng), highest_of(told - less, _TOLD)]
                if state.domain.continuous and self.able.any():
                    more += self._climb(believed, *divmod(int(np.argmax(told - less)), K), priced=priced)
        more += [(x, k) for x in self.view.best for k in state.levels if readable(state, x[None], k)[0]]
        rows, at = np.divmod(np.unique(np.concatenate(drawn)).astype(int), K)
        sites = np.concatenate([self.points[rows], *(point[None] for point, _ in more)])
        at = np.concatenate([at, np.array([level for _, level in more], dtype=int)])
        _, first = np.unique(np.column_stack([sites, at]), axis=0, return_index=True)
        return Stops.of(state, sites[np.sort(first)], at[np.sort(first)], self.least)

    def _climb(self, believed: Mixture, row: int, level: int, *, priced: bool) -> list[tuple[Array, int]]:
        """Return the point to which a climb from one of the points leads, with its level, if there is one."""

        def promise(x: Array) -> Array:
            told = self._told(believed.over(x), level)
            return told - np.log(np.maximum(self._prices(x, level), self.least)) if priced else told

        point, score = climbed(self.state, promise, self.points[row], level)
        return [(point, level)] if np.isfinite(score) else []


def _best_single(worth: Worth, costs: Array) -> Planned:
    """Return the tour of the single stop that is worth most per unit of cost."""
    gains, _ = worth.gains([])
    best = int(np.argmax(gains / costs))
    return Planned([best], float(gains[best]), float(costs[best]))
