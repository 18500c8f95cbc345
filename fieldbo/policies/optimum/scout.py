"""Inspect the domain for its largest value, and settle the best place with what is left of the battery.

===========  =======================================================================================
``W``        candidates for a stop, (site, level) pairs
``s``        standard deviation of a reading
``x*``       the site of the largest mean under a belief
===========  =======================================================================================

In most rules one site's upper bound under one fit decides. On a quiet background the fit then vouches for
places that nobody has seen, and the rule hovers over the best reading. Here each reading is worth two things
in one unit: what it *tells* of the place that would be reported, and what it *covers* of the places where
something higher could still hide. A tour of readings buys both. See :mod:`fieldbo.policies.optimum.worth` and
:mod:`fieldbo.belief.covering`.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import PositiveInt

from fieldbo._numerics.arrays import Array
from fieldbo.belief.covering import Covering, Readings, sweep_spacing, yardsticks
from fieldbo.belief.kernels import Kernel, Matern52
from fieldbo.belief.lookahead import Whole
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.belief.shore_kernel import ShoreMatern52
from fieldbo.belief.surface import Surface
from fieldbo.belief.trend import WithTrend
from fieldbo.costs.base import CostModel
from fieldbo.costs.limits import Supply
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.candidates import climbed, over_candidates, readable, reading_noise
from fieldbo.policies.choice import leading, needs_declared_costs
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.policies.optimum.worth import Covers, Mixture, Tells, Worth, expected_excess
from fieldbo.policies.tour_plan import Planned, TourCosts, planned
from fieldbo.validation import settings

_STOPS = 10
_HIDDEN, _TOLD = 32, 16  # candidates drawn by what may hide there, and by what a reading there may tell
_LAST = 0.25  # of the battery, in which differences that noise hides are settled
_SLACK = 0.4  # standard deviations of a reading: smaller differences wait until then
_EXACT = 1e-3  # of the field's standard deviation: readings are not taken to be more precise
_FREE = 1e-3  # of the median cost of a move: no reading counts as cheaper


class Stops(NamedTuple):
    """Candidates for a stop: their sites (W, d), levels (W,), noise variances (W,), and prices (W,) there."""

    sites: Array
    levels: Whole
    noise: Array
    sampling: Array


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
class Scout(Policy):
    """Look for the largest value where it may hide and where it promises most, by tours that buy both.

    The tour is planned again after each reading, within what is left of the battery. The domain is inspected
    before the rule commits itself, and small differences are settled last. If the sensor has several
    settings, each (site, level) pair is a candidate for a stop.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    candidates: PositiveInt = 1000
    """In a box: number of points drawn for each decision, from the best of which it climbs."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if the costs are not declared."""
        needs_declared_costs(cost)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the first stop of the tour."""
        chosen = self._tour(state, memory, 1)
        return Decision(Stop(chosen), memory) if isinstance(chosen, EndReason) else chosen[0]

    def suggest_batch(self, state: State, memory: Memory, k: int) -> list[Decision] | None:
        """Return the first `k` stops of the tour."""
        chosen = self._tour(state, memory, k)
        return None if isinstance(chosen, EndReason) else chosen

    def _tour(self, state: State, memory: Memory, k: int) -> list[Decision] | EndReason:
        """Return the decisions for the first `k` stops of the tour, at least one; or the reason to stop."""
        surface = over_candidates(state, self.candidates)
        if isinstance(surface, EndReason):
            return surface
        view = _seen_from(state, surface)
        stops = _candidates(state, surface, view)
        if not len(stops.sites):
            return EndReason.BATTERY_SPENT
        cost = state.cost
        assert cost is not None
        where = np.concatenate([state.position[None], stops.sites])
        travel = cost.travel(where, where, state.time_s)
        costs = TourCosts(travel, state.return_cost(where), stops.sampling, state.spendable)
        covers = Covers(view.covering, stops.sites, stops.noise, view.excess)
        tells = None
        if view.believed is not None:
            places = view.believed.over(np.concatenate([stops.sites, view.best[:1]]))
            tells = Tells(places, stops.noise, view.slack)
        worth = Worth(covers, tells)
        tour = planned(worth, costs, int(min(_STOPS, max(1, state.steps_left))))
        if not tour.stops:
            tour = _best_single(worth, travel[0, 1:] + stops.sampling)
        rate = tour.gain / tour.cost
        why: dict[str, Any] = {
            "gain": tour.gain,
            "covers": worth.covers(tour.stops),
            "hidden": float(view.covering.hidden.sum()),
            "spacing": view.covering.spacing,
            "tour": [{"stop": stops.sites[w].tolist()} for w in tour.stops],
        }
        decisions = list[Decision]()
        for w in tour.stops[:k]:
            level = int(stops.levels[w])
            best = leading(state, np.array([rate]), np.array([True]), (level,), stops.sites[[w]])
            site = {} if state.domain.continuous else {"site": state.domain.nearest(stops.sites[w])}
            query = Query(stops.sites[w], level=level)
            decisions.append(Decision(query, memory, {"score": rate, **site, "best": best, **why}))
        return decisions


def _seen_from(state: State, surface: Surface) -> _View:
    """Return what is covered, and what is believed over the candidates of a surface."""
    belief, domain = state.belief, state.domain
    s = float(np.sqrt(np.median(state.at_levels(state.noise).min(axis=1))))
    s = max(s, _EXACT * float(np.sqrt(np.median(state.surface.process_variance))))
    spacing, left = _supplied(state)
    readings = Readings.of(domain, belief.sites, belief.values, belief.noise_variances, s)
    covering = Covering(domain, readings, spacing, plain=state.provisional)
    if covering.plain:
        return _View(covering, None, np.empty((0, domain.dimension)), 0.0, 1.0)
    excess = max(covering.tail, 3.0 * s / float(np.log(readings.size + 2))) * min(1.0, left / _LAST) ** 2
    other = Surface(bounded(belief, domain, covering), surface.candidates)
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


def _supplied(state: State) -> tuple[float, float]:
    """Return the spacing of a sweep that would take all that may be spent, and the share that is left.

    Whatever is scarcest decides: the battery, the time, or the number of readings.
    """
    limits = [(limit.going, supply) for limit, supply in zip(state.limits, state.supplies, strict=True)]
    if np.isfinite(state.steps_left):
        readings = Supply(state.steps_left, state.steps + len(state.pending) + state.steps_left)
        limits.append((lambda start, sites: np.ones(len(sites)), readings))
    spacing = max(sweep_spacing(state.domain, going, supply.in_all) for going, supply in limits)
    return spacing, min(supply.share for _, supply in limits)


def bounded(belief: Belief, domain: Domain, covering: Covering) -> Belief:
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


def _candidates(state: State, surface: Surface, view: _View) -> Stops:
    """Return candidates for a stop: drawn by what may hide there, and by what a reading there may tell.

    Half of each draw is by that per unit of cost. In a box, they are joined by the points to which climbs
    from the best of them lead.
    """
    cost, levels, points = state.cost, state.levels, surface.candidates
    assert cost is not None
    step = (state.spendable or 1.0) / max(1.0, state.steps_left)  # a step's part of the battery, if limited
    prices = state.at_levels(lambda k: cost.to(state.position, points, level=k, time_s=state.time_s)) + step
    least = max(_FREE * float(np.median(prices[np.isfinite(prices)])), 1e-300)
    logs_price = np.log(np.maximum(prices, least))
    able = state.at_levels(lambda k: state.affordable(points, level=k))

    def told(level: int, over: Mixture) -> Array:
        """Return what a reading at each candidate of the mixture may tell (N,)."""
        sd = over.variance / np.sqrt(over.variance + reading_noise(state, level, over.surfaces[0]))
        return expected_excess(top + view.slack - over.mean, sd)

    believed = view.believed
    top = 0.0 if believed is None else float(believed.over(view.best[:1]).mean[0])
    everywhere = points is state.domain.sites
    hidden = view.covering.hidden if everywhere else view.covering.hidden_at(points)
    drawn = list[Whole]()
    climbs = list[tuple[Array, int]]()
    with np.errstate(divide="ignore"):
        by_hidden = np.log(np.where(able, hidden[:, None], 0.0))
        by_told = by_hidden
        if believed is not None:
            by_told = np.log(np.where(able, state.at_levels(lambda k: told(k, believed)), 0.0))
    for less in (np.zeros_like(logs_price), logs_price):
        drawn.append(_by_lot(by_hidden - less, _HIDDEN, state.rng))
        if believed is None:
            continue
        logs = by_told - less
        drawn.append(_by_lot(logs, _TOLD, state.rng))
        drawn.append(_highest(logs, _TOLD))
        if state.domain.continuous and able.any():
            row, level = divmod(int(np.argmax(logs)), len(levels))

            def promise(x: Array, level: int = level, priced: bool = bool(less.any())) -> Array:
                value = told(level, believed.over(x))
                with np.errstate(divide="ignore"):
                    logs = np.log(value)
                if not priced:
                    return logs
                to = cost.to(state.position, x, level=level, time_s=state.time_s) + step
                return np.asarray(logs - np.log(np.maximum(to, least)))

            point, score = climbed(state, promise, points[row], level)
            if np.isfinite(score):
                climbs.append((point, level))
    rows, at = np.divmod(np.unique(np.concatenate(drawn)).astype(int), len(levels))
    best = [(place, k) for place in view.best for k in levels if readable(state, place[None], k)[0]]
    sites = np.concatenate([points[rows], *(point[None] for point, _ in [*climbs, *best])])
    at = np.concatenate([at, np.array([level for _, level in [*climbs, *best]], dtype=int)])
    _, first = np.unique(np.column_stack([sites, at]), axis=0, return_index=True)
    sites, at = sites[np.sort(first)], at[np.sort(first)]
    over, each = Surface(state.belief, sites), np.arange(len(sites))
    noise = state.at_levels(lambda level: reading_noise(state, level, over))[each, at]
    sampling = state.at_levels(lambda level: cost.sampling_cost(sites, level))[each, at]
    return Stops(sites, at, noise, np.maximum(sampling + step, least))


def _by_lot(logs: Array, most: int, rng: np.random.Generator) -> Whole:
    """Return up to `most` indices drawn without replacement, by the logarithms of their weights.

    The largest logarithms after adding Gumbel noise are such a draw.
    """
    return _highest(logs + rng.gumbel(size=logs.shape), most)


def _highest(logs: Array, most: int) -> Whole:
    """Return the indices of up to `most` of the largest finite numbers, the first of ties."""
    flat = logs.ravel()
    first = np.argsort(-flat, kind="stable")[:most]
    return first[flat[first] > -np.inf]


def _best_single(worth: Worth, costs: Array) -> Planned:
    """Return the tour of the single stop that is worth most per unit of cost."""
    gains, _ = worth.gains([])
    best = int(np.argmax(gains / costs))
    return Planned([best], float(gains[best]), float(costs[best]))
