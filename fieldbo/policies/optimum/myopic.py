"""Rules for an optimum that look at each site on its own: EI, GP-UCB and max-value entropy search.

===========  =========================================================================
``mu``       posterior mean, (N,)
``s``        posterior standard deviation, (N,)
``y*``       the field's maximum, unknown
``beta``     stands under the root of a confidence width, ``sqrt(beta) s``
``D``        the domain's sites
===========  =========================================================================

All in model units, where larger is better. Each has the option ``per_cost``: its score divided by the cost
of the move. In a box EI and GP-UCB choose any point of it, as told in `candidates`; entropy search keeps to
the points that stand for the box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri

from fieldbo._numerics.arrays import Array
from fieldbo.belief.posterior import NOISE_FLOOR
from fieldbo.belief.question import Optimum
from fieldbo.belief.surface import Surface
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Stop
from fieldbo.policies.acquisition import expected_improvement, gp_ucb_beta, max_value_entropy
from fieldbo.policies.choice import PerCost
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.candidates import best_candidate, needs_candidates, over_candidates

_HALVINGS = 50
"""Of the interval in which a quantile of the maximum is sought: to the last digits of its width."""

_CLEAR = 5.0
"""Standard deviations of a reading's noise by which the maximum exceeds the largest mean."""


def incumbent(surface: Surface) -> float:
    """Return the best posterior mean over the sites that were read; the largest prior mean if none was.

    Examples
    --------
    >>> from fieldbo.belief.posterior import Belief
    >>> from fieldbo.belief.kernels import Matern52
    >>> read = Surface(Belief(Matern52([1.0])).condition_on([[0.0], [5.0]], [2.0, 1.0], 0.25), [[0.0], [9.0]])
    >>> round(incumbent(read), 3)
    1.6
    """
    belief = surface.belief
    if not belief.size:
        return float(surface.mean.max())
    return float(np.max(belief.mean_at_sites()))


def maximum_quantiles(mu: Array, s: Array, shares: Array) -> Array:
    """Return quantiles of the maximum of independent normals (Wang and Jegelka 2017).

    ``y`` with ``sum over D of log Phi((y - mu) / s) = log share``, by bisection.

    Parameters
    ----------
    mu, s : (N,) arrays
        Means and standard deviations; a site whose s is 0 only bounds the maximum from below.
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
    # At the lower end one factor alone is the share, at the upper end each is at least its N-th root.
    low = np.max(mu + s * ndtri(shares)[:, None], axis=1)
    high = np.max(mu + s * ndtri(shares ** (1.0 / len(mu)))[:, None], axis=1)
    open_sites = s > 0
    centre, width, target = mu[open_sites], s[open_sites], np.log(shares)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = log_ndtr((middle[:, None] - centre) / width).sum(axis=1) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def drawn_maxima(mu: Array, s: Array, n: int, rng: np.random.Generator, least: float) -> Array:
    """Return `n` draws (n,) of the field's maximum (Wang and Jegelka 2017).

    From the Gumbel distribution with the quartiles that the maximum would have if the sites were
    independent.

    Parameters
    ----------
    mu, s : (N,) arrays
    n : int
    rng : numpy.random.Generator
    least : float
        Draws below it are raised to it.

    Examples
    --------
    >>> drawn_maxima(np.zeros(50), np.full(50, 0.1), 3, np.random.default_rng(0), least=0.0).round(2)
    array([0.21, 0.25, 0.33])
    """
    first, median, third = maximum_quantiles(mu, s, np.array([0.25, 0.5, 0.75]))
    # Of a Gumbel: the quantile of share p is  location - scale log(-log p).
    scale = (third - first) / (np.log(np.log(4.0)) - np.log(np.log(4.0 / 3.0)))
    location = median + scale * np.log(np.log(2.0))
    drawn: Array = location - scale * np.log(-np.log(1.0 - rng.random(n)))
    return np.maximum(drawn, least)


def reading_noise(state: State, level: int, surface: Surface | None = None) -> Array:
    """Return the noise variances (N,) of readings as the belief takes them: never quite 0.

    At the candidates of a surface; by default at the domain's sites.
    """
    over = state.surface if surface is None else surface
    return np.maximum(state.noise(level, over), NOISE_FLOOR * over.belief.kernel.diagonal(over.candidates))


@dataclass(frozen=True)
class Anywhere(PerCost):
    """A rule for an optimum that goes by mean and standard deviation, and in a box chooses any point.

    Parameters
    ----------
    candidates : int
        In a box: among how many points, drawn anew for each decision, it chooses where to climb from.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    candidates: int = 1000

    def __post_init__(self) -> None:
        needs_candidates(self.candidates)

    def best_by(
        self, scores: Callable[[Array, Array], Array], state: State, memory: Memory, **why: Any
    ) -> Decision:
        """Return the decision where a score of mean and deviation (N,) is highest (per unit of cost)."""
        if not state.domain.continuous:
            return self.best(state, scores(state.surface.mean, state.surface.sd), memory, **why)
        surface = over_candidates(state, self.candidates)
        if surface is None:
            return Decision(Stop(EndReason.STOPPED_BY_POLICY), memory, why)
        plain = scores(surface.mean, surface.sd)
        able = state.affordable(surface.candidates, level=self.level)
        divides = self.divides(plain[able])

        def at(points: Array, plain: Array) -> Array:
            return self.divided(state, plain, points) if divides else plain

        def elsewhere(points: Array) -> Array:
            belief = state.belief
            return at(points, scores(belief.mean(points), np.sqrt(belief.variance(points))))

        found = at(surface.candidates, plain)
        return best_candidate(state, surface, found, able, elsewhere, memory, self.level, **why)


@dataclass(frozen=True)
class EI(Anywhere):
    """Sample where the expected improvement on the best mean so far is largest (Mockus 1975)."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest expected improvement (per unit of cost)."""
        best = incumbent(state.surface)
        return self.best_by(lambda mu, s: expected_improvement(mu, s, best), state, memory, incumbent=best)


@dataclass(frozen=True)
class GPUCB(Anywhere):
    """Sample where the upper confidence bound ``mu + sqrt(beta_t) s`` is largest (Srinivas et al. 2010).

    The score is what the bound promises beyond the largest mean, ``mu + sqrt(beta_t) s - max mu``: the same
    choice, but with ``per_cost`` it is this promise that is divided by the cost. A bound itself has no zero
    to be divided from.

    Parameters
    ----------
    delta : float
        Probability with which the bound may fail, between 0 and 1.
    """

    delta: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.delta < 1:
            raise InputError(
                f"delta = {self.delta}", expected="a number between 0 and 1", where="policy.delta"
            )

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the highest bound (of the largest promise per unit of cost)."""
        most = state.surface.mean.max()
        beta = gp_ucb_beta(state.domain.size, state.steps + 1, self.delta)
        return self.best_by(lambda mu, s: mu - most + np.sqrt(beta) * s, state, memory, beta=beta)


@dataclass(frozen=True)
class MaxValueEntropySearch(PerCost):
    """Sample where a reading tells most of the field's maximum (Wang and Jegelka 2017).

    The maximum is taken to lie at least five standard deviations of a reading's noise above the largest mean.
    The score knows no noise: without this the site of the largest mean, once it is known well, would be read
    again and again (measured on 400 sites: in half of all steps).

    Parameters
    ----------
    samples : int
        Draws of the maximum.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    samples: int = 10

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise InputError(f"samples = {self.samples}", expected="at least 1", where="policy.samples")

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest information gain (per unit of cost)."""
        mu, s = state.surface.mean, state.surface.sd
        best = int(np.argmax(mu))
        least = float(mu[best] + _CLEAR * np.sqrt(reading_noise(state, self.level)[best]))
        maxima = drawn_maxima(mu, s, self.samples, state.rng, least)
        scores = max_value_entropy(mu, s, maxima)
        return self.best(state, scores, memory, expected_maximum=float(maxima.mean()))
