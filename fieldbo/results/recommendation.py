"""The play to go on with: which control set, and what to set its variables to, by the final belief.

=========  ==================================================================================================
``F_i``    the expected value of set i at its best settings, over what it leaves free: Gaussians, jointly
``m_i``    mean of F_i; ``s_i`` its standard deviation
``c_i``    mean cost of the plays of set i so far; of a set never played the declared cost, if there is one
``b``      the set of the highest m
=========  ==================================================================================================

A set is *as good* as b where the model cannot tell it from that: where ``m_b - m_i`` is at most 1.645
standard deviations of ``F_b - F_i``, and at most 1.645 s_b. So a set that may be good only because little is
known of it gains nothing by that. The play to go on with is the cheapest that is as good; of prices within a
quarter of the least, which a few plays can't tell apart, the one of the highest m.

Settings are sought by some samples of what is left free and judged by others: those that they were fitted to
flatter them. Intervals take the model's hyperparameters for right, and leave out that of many settings those
were taken that look best: they are too narrow where little was read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.question import Optimum
from fieldbo.policies.contract import State
from fieldbo.policies.control_sets.expectation import Expected, WithGradient
from fieldbo.policies.control_sets.front import ALIKE
from fieldbo.policies.control_sets.plays import PlayCounts, Proposal, declared_cost, settings_plain
from fieldbo.policies.control_sets.search import ControlSetSearch, free_samples
from fieldbo.results.answers import amount, ends
from fieldbo.results.expected_truth import ExpectedTruth
from fieldbo.results.metrics import MIDDLE90, Interval
from fieldbo.world.world import World

_SEEKING, _JUDGING = 128, 512  # samples of what is left free
_CANDIDATES = 256  # among which climbs begin


@dataclass(frozen=True, eq=False)
class BestPlay:
    """A control set, and its best settings by a belief.

    Attributes
    ----------
    number : int
        Of the set.
    site : (d,) array
        What its variables are set to, in the axes' units; NaN where one is left free.
    expected : Interval
        The expected value over the free variables, with the central 90% of it, in the values' unit.
    cost : float or None
        What such a play costs, in the cost unit: the mean so far, else as declared; None if nobody knows.
    as_good : bool
        Whether the model cannot tell it from the best one.
    """

    number: int
    site: Array
    expected: Interval
    cost: float | None
    as_good: bool

    def in_words(self, world: World) -> str:
        """Return what to set and what to leave, what to expect of it, and what it costs.

        Examples
        --------
        >>> import fieldbo
        >>> world = fieldbo.load_world("cell-growth")
        >>> site = np.array([np.nan, np.nan, 1.5, 6.25, np.nan])
        >>> print(BestPlay(1, site, Interval(2.77, 2.74, 2.8), 0.01, True).in_words(world))
        set ammonium 1.5 mmol/L, potassium 6.25 mmol/L; leave the other 3 as they come: 2.77 cm2 expected \
(2.74 to 2.8), at 0.01 EUR a play
        """
        axes, one, quantity = world.domain.axes, world.domain.control_sets[self.number], world.quantity
        left = [a.name for a, on in zip(axes, one.controls, strict=True) if not on]
        others = f"{left[0]} as it comes" if len(left) == 1 else f"the other {len(left)} as they come"
        low, high = ends(self.expected)
        price = "a price not known yet" if self.cost is None else f"{self.cost:.3g} {world.cost_unit} a play"
        return (
            f"set {one.settings(axes, self.site)}{f'; leave {others}' if left else ''}: "
            f"{amount(self.expected.value, quantity)} expected ({low:.4g} to {high:.4g}), at {price}"
        )

    def plain(self, world: World, truth: ExpectedTruth | None) -> dict[str, Any]:
        """Return the play in numbers, as in ``summary.json``, with what is true of it where that is known."""
        one = world.domain.control_sets[self.number]
        told = {
            "set": one.name,
            "number": self.number,
            "names": [a.name for a, on in zip(world.domain.axes, one.controls, strict=True) if on],
            "site": settings_plain(self.site),
            "expected": self.expected.value,
            "expected_interval90": ends(self.expected),
            "cost": self.cost,
            "as_good": self.as_good,
        }
        if truth is None:
            return told
        gain = float(truth.gains(self.site[None], one.controls)[0])
        return told | {"expected_true": truth.value(gain), "regret": max(0.0, truth.best - gain)}


def best_plays(state: State, near: Array) -> tuple[BestPlay, ...]:
    """Return the best settings of each control set, in the order of the sets.

    There are none where no optimum is sought, in a domain without control sets, before anything was read, and
    where the model is of the values' log: expectations are of the values. A set is left out where all its
    settings that a search sees were turned down.

    Parameters
    ----------
    state : State
    near : (d,) array
        Where a climb of each set begins besides, for example the highest mean with everything set.
    """
    domain = state.domain
    plain = state.scale.transform == "none"
    if not (domain.control_sets and isinstance(state.question, Optimum) and state.belief.size and plain):
        return ()
    sets, costs = ControlSetSearch(state, _SEEKING, _CANDIDATES), _costs(state)
    numbers = range(len(domain.control_sets))
    found = sets.highest(_means, numbers, dict.fromkeys(numbers, near.tolist()))
    if not found:
        return ()
    means, variances, apart = _judged(sets, list(found.values()))
    tolerated = MIDDLE90 * np.sqrt(np.minimum(apart, variances[np.argmax(means)]))
    as_good = means.max() - means <= tolerated
    plays = []
    for k, (i, best) in enumerate(found.items()):
        half = MIDDLE90 * np.sqrt(variances[k])
        low, value, high = sorted(state.scale.to_user(means[k] + np.array([-half, 0.0, half])).tolist())
        cost = None if np.isnan(costs[i]) else float(costs[i])
        plays.append(BestPlay(i, best.site, Interval(value, low, high), cost, bool(as_good[k])))
    return tuple(plays)


def recommended(plays: Sequence[BestPlay], sign: float) -> BestPlay | None:
    """Return the play to go on with: the cheapest that is as good as the best.

    Parameters
    ----------
    plays : sequence of BestPlay
    sign : float
        1 where larger values are better, -1 where smaller ones are.

    Examples
    --------
    >>> told = [(2.9, 0.11, True), (2.95, 0.12, True), (3.0, 1.0, True), (2.5, 0.01, False)]
    >>> plays = [BestPlay(i, np.zeros(1), Interval(m, m, m), c, good) for i, (m, c, good) in enumerate(told)]
    >>> recommended(plays, 1.0).number
    1
    """
    good = [one for one in plays if one.as_good]
    prices = [one.cost for one in good if one.cost is not None]
    if prices:
        good = [one for one in good if one.cost is not None and one.cost <= ALIKE * min(prices)]
    return max(good, key=lambda one: sign * one.expected.value, default=None)


def _means(over: Expected) -> Callable[[Array], WithGradient]:
    """Return E[mu] of points (P, d), with its gradient."""
    return lambda x: over.bound_with_gradient(x, 0.0)


def _judged(sets: ControlSetSearch, settings: Sequence[Proposal]) -> tuple[Array, Array, Array]:
    """Return mean and variance (k,) of F at settings, and the variance (k,) of the best F less each."""
    others = free_samples(sets.domain, _SEEKING + _JUDGING)[_SEEKING:]
    over = [replace(sets.expected[one.number], samples=others) for one in settings]
    points = [one.at(best.site)[0] for one, best in zip(over, settings, strict=True)]
    belief, precision = over[0].belief, over[0].precision
    assert precision is not None, "something was read"
    towards = np.array([belief.kernel(x, belief.sites).mean(axis=0) for x in points])
    means, known = towards @ precision.alpha, precision.times(towards) @ towards.T
    b = int(np.argmax(means))
    variances = np.array([belief.kernel(x, x).mean() for x in points]) - np.diag(known)
    shared = np.array([belief.kernel(x, points[b]).mean() for x in points]) - known[:, b]
    apart = variances + variances[b] - 2.0 * shared
    return means, np.maximum(variances, 0.0), np.maximum(apart, 0.0)


def _costs(state: State) -> Array:
    """Return c (m,), NaN where nobody knows it."""
    paid = PlayCounts.of(state).mean_costs()
    declared = [declared_cost(state, i) for i in range(len(paid))]
    return np.where(np.isnan(paid), np.array(declared, dtype=float), paid)
