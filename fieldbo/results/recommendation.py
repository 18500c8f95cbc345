"""The recommended play: a control set and the settings of its variables, by the final belief.

=========  ==================================================================================================
``F_i``    expected value of set i at its best settings, over its free variables; jointly Gaussian
``m_i``    mean of F_i; ``s_i`` its standard deviation
``c_i``    mean cost of the plays of set i so far, else its declared cost, if there is one
``b``      the set with the highest m
=========  ==================================================================================================

A set is *as good* as b if the model cannot distinguish the two: if ``m_b - m_i`` is at most 1.645 standard
deviations of ``F_b - F_i``, and at most 1.645 s_b. The second bound keeps a set from qualifying just because
little is known about it. The recommended play is the cheapest one that is as good. Costs within a quarter of
the least, which a few plays cannot distinguish, count as equal; among them the highest m wins.

Settings are optimised on some samples of the free variables and evaluated on others, because a fit flatters
its own samples. The intervals average over hyperparameters that are learned. They ignore that the
best-looking settings were selected: with few readings they are too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.averaging import Stated
from fieldbo.belief.averaged import AveragedBelief
from fieldbo.belief.confidence import MIDDLE90, Interval
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.policies.contract import State
from fieldbo.policies.control_sets.base import PlayCounts, Proposal, declared_cost, settings_plain
from fieldbo.policies.control_sets.expectation import Expected, Precision, WithGradient
from fieldbo.policies.control_sets.front import ALIKE
from fieldbo.policies.control_sets.search import ControlSetSearch, free_samples
from fieldbo.results.answers import ends
from fieldbo.results.truth import ExpectedTruth
from fieldbo.results.words import interval
from fieldbo.world.world import World

_FITTING, _EVALUATING = 128, 512  # samples of the free variables
_CANDIDATES = 256  # from the best of which climbs start


@dataclass(frozen=True, eq=False)
class BestPlay:
    """A control set, and its best settings by a belief.

    Attributes
    ----------
    number : int
        Index of the control set.
    site : (d,) array
        Settings of its variables, in the axes' units; NaN for free variables.
    expected : Interval
        Expected value over the free variables with its 90% interval, in the values' unit.
    cost : float or None
        Mean cost of such a play so far, else its declared cost, in the cost unit; None if unknown.
    as_good : bool
        True if the model cannot distinguish it from the best play.
    """

    number: int
    site: Array
    expected: Interval
    cost: float | None
    as_good: bool

    def in_words(self, world: World) -> str:
        """Return the settings, the free variables, the expected value and the cost in one sentence.

        Examples
        --------
        >>> import fieldbo
        >>> world = fieldbo.load_world("cell-growth")
        >>> site = np.array([np.nan, np.nan, 1.5, 6.25, np.nan])
        >>> print(BestPlay(1, site, Interval(2.77, 2.74, 2.8), 0.01, True).in_words(world))
        set ammonium 1.5 mmol/L, potassium 6.25 mmol/L; leave the other 3 as they come: 2.77 cm2 expected \
(2.74 to 2.8), 0.01 EUR per play
        """
        axes, control_set = world.domain.axes, world.domain.control_sets[self.number]
        free = [a.name for a, on in zip(axes, control_set.controls, strict=True) if not on]
        others = f"{free[0]} as it comes" if len(free) == 1 else f"the other {len(free)} as they come"
        value = f"{world.quantity.amount(self.expected.value)} expected {interval(ends(self.expected))}"
        cost = "cost not known yet" if self.cost is None else f"{self.cost:.3g} {world.cost_unit} per play"
        leave = f"; leave {others}" if free else ""
        return f"set {control_set.settings(axes, self.site)}{leave}: {value}, {cost}"

    def plain(self, world: World, truth: ExpectedTruth | None) -> dict[str, Any]:
        """Return the play in numbers, as in ``summary.json``, with its true value and regret if known."""
        control_set = world.domain.control_sets[self.number]
        numbers = {
            "set": control_set.name,
            "number": self.number,
            "names": [a.name for a, on in zip(world.domain.axes, control_set.controls, strict=True) if on],
            "site": settings_plain(self.site),
            "expected": self.expected.value,
            "expected_interval90": ends(self.expected),
            "cost": self.cost,
            "as_good": self.as_good,
        }
        if truth is None:
            return numbers
        gain = float(truth.gains(self.site[None], control_set.controls)[0])
        return numbers | {"expected_true": truth.value(gain), "regret": max(0.0, truth.best - gain)}


def best_plays(state: State, near: Array, stated: Stated) -> tuple[BestPlay, ...]:
    """Return the best settings of each control set, in the order of the sets.

    There are none for a level set, in a domain without control sets, before the first reading, and if the
    model is of the log of the values, because expectations are of the values. A set is left out if all its
    candidate settings were rejected.

    Parameters
    ----------
    state : State
    near : (d,) array
        A further start of each set's climb, for example the highest mean with everything set.
    stated : Stated
        The belief by which the settings are evaluated.
    """
    domain = state.domain
    of_values = state.scale.transform == "none"
    if not (domain.control_sets and isinstance(state.question, Optimum) and state.belief.size and of_values):
        return ()
    sets, costs = ControlSetSearch(state, _FITTING, _CANDIDATES), _costs(state)
    numbers = range(len(domain.control_sets))
    proposals = sets.highest(_means, numbers, dict.fromkeys(numbers, near.tolist()))
    if not proposals:
        return ()
    means, variances, differences = _evaluate(sets, list(proposals.values()), stated)
    tolerated = MIDDLE90 * np.sqrt(np.minimum(differences, variances[np.argmax(means)]))
    as_good = means.max() - means <= tolerated
    plays = []
    for k, (i, best) in enumerate(proposals.items()):
        half = MIDDLE90 * np.sqrt(variances[k])
        low, value, high = sorted(stated.scale.to_user(means[k] + np.array([-half, 0.0, half])).tolist())
        cost = None if np.isnan(costs[i]) else float(costs[i])
        plays.append(BestPlay(i, best.site, Interval(value, low, high), cost, bool(as_good[k])))
    return tuple(plays)


def recommended(plays: Sequence[BestPlay], sign: float) -> BestPlay | None:
    """Return the recommended play: the cheapest one that is as good as the best.

    Parameters
    ----------
    plays : sequence of BestPlay
    sign : float
        1 if larger values are better, -1 if smaller ones are.

    Examples
    --------
    >>> table = [(2.9, 0.11, True), (2.95, 0.12, True), (3.0, 1.0, True), (2.5, 0.01, False)]
    >>> plays = [BestPlay(i, np.zeros(1), Interval(m, m, m), c, good) for i, (m, c, good) in enumerate(table)]
    >>> recommended(plays, 1.0).number
    1
    """
    good = [play for play in plays if play.as_good]
    costs = [play.cost for play in good if play.cost is not None]
    if costs:
        good = [play for play in good if play.cost is not None and play.cost <= ALIKE * min(costs)]
    return max(good, key=lambda play: sign * play.expected.value, default=None)


def _means(over: Expected) -> Callable[[Array], WithGradient]:
    """Return E[mu] of points (P, d), with its gradient."""
    return lambda x: over.bound_with_gradient(x, 0.0)


def _evaluate(
    sets: ControlSetSearch, settings: Sequence[Proposal], stated: Stated
) -> tuple[Array, Array, Array]:
    """Return mean and variance (k,) of F at settings, and the variance (k,) of the best F less each F.

    In the units of the stated belief; averaged over hyperparameters, as it is.
    """
    samples = free_samples(sets.domain, _FITTING + _EVALUATING)[_FITTING:]
    expected = [replace(sets.expected[setting.number], samples=samples) for setting in settings]
    points = [over.at(setting.site)[0] for over, setting in zip(expected, settings, strict=True)]
    belief = stated.surface.belief
    averaged = belief if isinstance(belief, AveragedBelief) else AveragedBelief([belief], np.ones(1))
    w = averaged.weights
    posteriors = [_Averages(belief, points) for belief in averaged.beliefs]
    every = np.array([posterior.means for posterior in posteriors])
    means = w @ every
    b = int(np.argmax(means))
    variances = w @ (np.array([p.variances for p in posteriors]) + (every - means) ** 2)
    gaps = every - every[:, [b]]
    differences = w @ (np.array([p.differences(b) for p in posteriors]) + (gaps - w @ gaps) ** 2)
    return means, variances, differences


class _Averages:
    """Averages of a belief over k sets of points (S_i, d): their means and variances (k,)."""

    def __init__(self, belief: Belief, points: Sequence[Array]) -> None:
        self.kernel, self.points = belief.kernel, points
        precision = Precision(belief)
        towards = np.array([self.kernel(x, belief.sites).mean(axis=0) for x in points])
        self.means: Array = towards @ precision.alpha
        self._known: Array = precision.times(towards) @ towards.T
        prior = np.array([self.kernel(x, x).mean() for x in points])
        self.variances: Array = np.maximum(prior - np.diag(self._known), 0.0)

    def differences(self, b: int) -> Array:
        """Return the variance (k,) of average b less each average."""
        shared = np.array([self.kernel(x, self.points[b]).mean() for x in self.points]) - self._known[:, b]
        return np.asarray(np.maximum(self.variances + self.variances[b] - 2.0 * shared, 0.0))


def _costs(state: State) -> Array:
    """Return c (m,), NaN if unknown."""
    paid = PlayCounts.of(state).mean_costs()
    declared = [declared_cost(state, i) for i in range(len(paid))]
    return np.where(np.isnan(paid), np.array(declared, dtype=float), paid)
