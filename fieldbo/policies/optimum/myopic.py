"""Policies for an optimum that score each site separately: EI, GP-UCB and max-value entropy search.

===========  =========================================================================
``mu``       posterior mean, (N,)
``s``        posterior standard deviation, (N,)
``y*``       the field's maximum, unknown
``beta``     squared multiplier of the standard deviation, ``sqrt(beta) s``
``D``        the domain's sites
===========  =========================================================================

All in model units, where larger is better. Each can divide its score by the cost of the move (``per_cost``).
In a box EI and GP-UCB choose any point (see :mod:`fieldbo.policies.candidates`); max-value entropy search
keeps to the box's representers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from pydantic import Field, PositiveInt
from scipy.special import log_ndtr, ndtri

from fieldbo._numerics.arrays import Array
from fieldbo.messages import EndReason, Stop
from fieldbo.policies.acquisition import (
    gp_ucb_beta,
    in_unit,
    log_expected_improvement,
    log_unit,
    max_value_entropy,
)
from fieldbo.policies.candidates import (
    ForOptimum,
    best_candidate,
    incumbent,
    over_candidates,
    reading_noise,
    worth_reading,
)
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.validation import settings

Scores = Callable[[Array, Array], Array]
"""Maps means and standard deviations (m,) of points to their scores (m,)."""

_HALVINGS = 50
"""Bisections of the interval that contains a quantile of the maximum: down to rounding."""

_CLEAR = 5.0
"""Least excess of the maximum over the largest mean, in standard deviations of a reading's noise."""


def maximum_quantiles(mu: Array, s: Array, shares: Array) -> Array:
    """Return quantiles of the maximum of independent normals (Wang and Jegelka 2017).

    ``y`` with ``sum over D of log Phi((y - mu) / s) = log share``, by bisection.

    Parameters
    ----------
    mu, s : (N,) arrays
        Means and standard deviations; a site with ``s = 0`` only bounds the maximum from below.
    shares : (Q,) array
        Between 0 and 1.

    Returns
    -------
    (Q,) array

    Examples
    --------
    >>> maximum_quantiles(np.zeros(4), np.ones(4), np.array([0.5])).round(4)
    array([0.9981])
    >>> float(ndtri(0.5 ** (1 / 4)).round(4))
    0.9981
    """
    # At the lower end a single factor equals the share, at the upper end each is at least its N-th root.
    low = np.max(mu + s * ndtri(shares)[:, None], axis=1)
    high = np.max(mu + s * ndtri(shares ** (1.0 / len(mu)))[:, None], axis=1)
    open_sites = s > 0
    centre, width, target = mu[open_sites], s[open_sites], np.log(shares)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = log_ndtr((middle[:, None] - centre) / width).sum(axis=1) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def draw_maxima(mu: Array, s: Array, n: int, rng: np.random.Generator, least: float) -> Array:
    """Return `n` draws (n,) of the field's maximum (Wang and Jegelka 2017).

    From the Gumbel distribution whose quartiles are those of the maximum of independent sites.

    Parameters
    ----------
    mu, s : (N,) arrays
    n : int
    rng : numpy.random.Generator
    least : float
        Lower draws are raised to this value.

    Examples
    --------
    >>> draw_maxima(np.zeros(50), np.full(50, 0.1), 3, np.random.default_rng(0), least=0.0).round(2)
    array([0.21, 0.25, 0.33])
    """
    first, median, third = maximum_quantiles(mu, s, np.array([0.25, 0.5, 0.75]))
    # The quantile p of a Gumbel distribution is  location - scale log(-log p).
    scale = (third - first) / (np.log(np.log(4.0)) - np.log(np.log(4.0 / 3.0)))
    location = median + scale * np.log(np.log(2.0))
    drawn: Array = location - scale * np.log(-np.log(1.0 - rng.random(n)))
    return np.maximum(drawn, least)


@settings("policy")
class Anywhere(ForOptimum):
    """A policy for an optimum that scores mean and standard deviation, and in a box chooses any point."""

    candidates: PositiveInt = 1000
    """In a box: number of points drawn for each decision, from the best of which it climbs."""

    def best_by(
        self, scores: Scores, state: State, memory: Memory, *, logs: bool = False, **why: Any
    ) -> Decision:
        """Return the decision for the highest score of mean and deviation (N,) (per unit of cost).

        With `logs` the scores are logarithms. They are recorded as what they are the logarithms of: as
        multiples of ``exp(why["log_unit"])`` if that underflows.
        """
        boxed = state.domain.continuous
        surface = over_candidates(state, self.candidates) if boxed else state.surface
        if isinstance(surface, EndReason):
            return Decision(Stop(surface), memory, why)
        plain = scores(surface.mean, surface.sd)
        able = (
            state.affordable(surface.candidates, level=self.level) if boxed else state.choosable(self.level)
        )
        if logs:
            unit = log_unit(plain[able & worth_reading(state, surface)])
            scores, plain = _in_unit(scores, unit), in_unit(plain, unit)
            why |= {"log_unit": unit} if unit else {}
        if not boxed:
            return self.best(state, plain, memory, **why)
        divides = self.divides(plain[able])

        def at(points: Array, plain: Array) -> Array:
            return self.divided(state, plain, points) if divides else plain

        def elsewhere(points: Array) -> Array:
            belief = state.belief
            return at(points, scores(belief.mean(points), np.sqrt(belief.variance(points))))

        final = at(surface.candidates, plain)
        return best_candidate(state, surface, final, able, elsewhere, memory, self.level, **why)


def _in_unit(logs: Scores, unit: float) -> Scores:
    """Return scores as multiples of a unit, from a function that returns their logarithms."""
    return lambda mu, s: in_unit(logs(mu, s), unit)


@settings("policy")
class EI(Anywhere):
    """Sample where the expected improvement on the best mean so far is largest (Mockus 1975)."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest expected improvement (per unit of cost)."""
        best = incumbent(state.surface)

        def logs(mu: Array, s: Array) -> Array:
            return log_expected_improvement(mu, s, best)

        return self.best_by(logs, state, memory, logs=True, incumbent=best)


@settings("policy")
class GPUCB(Anywhere):
    """Sample where the upper confidence bound ``mu + sqrt(beta_t) s`` is largest (Srinivas et al. 2010).

    The score is the bound's excess over the largest mean, ``mu + sqrt(beta_t) s - max mu``. The choice is the
    same, and ``per_cost`` has a meaningful zero to divide from.
    """

    delta: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Probability with which the bound may fail."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the highest bound (of the largest excess per unit of cost)."""
        most = state.surface.mean.max()
        beta = gp_ucb_beta(state.domain.size, state.steps + 1, self.delta)
        return self.best_by(lambda mu, s: mu - most + np.sqrt(beta) * s, state, memory, beta=beta)


@settings("policy")
class MaxValueEntropySearch(ForOptimum):
    """Sample where a reading is most informative about the field's maximum (Wang and Jegelka 2017).

    The maximum is assumed to lie at least five standard deviations of a reading's noise above the largest
    mean. The score ignores noise: without this bound the site of the largest mean, once known well, would be
    read again and again (measured on 400 sites: in half of all steps).
    """

    samples: PositiveInt = 10
    """Number of draws of the maximum."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest information gain (per unit of cost)."""
        mu, s = state.surface.mean, state.surface.sd
        best = int(np.argmax(mu))
        least = float(mu[best] + _CLEAR * np.sqrt(reading_noise(state, self.level)[best]))
        maxima = draw_maxima(mu, s, self.samples, state.rng, least)
        scores = max_value_entropy(mu, s, maxima)
        return self.best(state, scores, memory, expected_maximum=float(maxima.mean()))
