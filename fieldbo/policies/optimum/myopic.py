"""Policies for an optimum that look one reading ahead.

EI, GP-UCB and max-value entropy search score each site separately:

===========  =========================================================================
``mu``       posterior mean, (N,)
``s``        posterior standard deviation, (N,)
``y*``       the field's maximum, unknown
``beta``     squared multiplier of the standard deviation, ``sqrt(beta) s``
``D``        the domain's sites
===========  =========================================================================

Each can divide its score by the cost of the move (``per_cost``). In a box EI and GP-UCB choose any point (see
:mod:`fieldbo.policies.choice`); max-value entropy search keeps to the box's representers.

Entropy search (Hennig and Schuler 2012) seeks the location of the maximum; minimum regret search (Metzen
2016) seeks a recommendation of little regret. Both average over joint posterior draws at a few
*representers*, sites that are likely to be the maximum, and over the outcomes of a reading at each candidate:

==============  ==========================================================================
``mu``          posterior mean at the representers, (R,)
``F``           joint draws there, (R, S)
``x``, ``y``    a candidate, and a reading there
``z``           ``(y - E y) / sd(y)``, standard normal
``b``           ``cov(f, y) / sd(y)``, (R,): after z the means are ``mu + b z``
``p``           probability that each representer is the maximiser, (R,)
==============  ==========================================================================

A draw F with its reading z, conditioned on another outcome z' of the reading, becomes ``F + b (z' - z)``
(Matheron's rule). This is exact, and all candidates share the same draws. All in model units, where larger is
better.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from scipy.special import entr, log_ndtr, ndtri

from fieldbo._numerics.arrays import Array
from fieldbo.messages import EndReason, Stop
from fieldbo.policies.acquisition import (
    gp_ucb_beta,
    in_unit,
    log_expected_improvement,
    log_unit,
    max_value_entropy,
)
from fieldbo.policies.choice import (
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


_SINGULAR = 1e-12
"""Variances of combinations of representers below this fraction of the largest count as 0."""


def representers(mu: Array, s: Array, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the indices of up to `n` distinct sites that are likely to be the maximum, in ascending order.

    The site of the largest mean, and others drawn without replacement, weighted by the expected improvement
    on that mean (as in Hennig and Schuler 2012).

    Parameters
    ----------
    mu, s : (N,) arrays
    n : int
        At least 1; for N or more, all sites are returned.
    rng : numpy.random.Generator

    Examples
    --------
    >>> representers(np.array([0.0, 1.0, 0.9, -9.0]), np.full(4, 0.1), 2, np.random.default_rng(0))
    array([1, 2])
    """
    best = int(np.argmax(mu))
    # The largest log weights after adding Gumbel noise are a weighted draw without replacement.
    keys = log_expected_improvement(mu, s, mu[best]) + rng.gumbel(size=len(mu))
    keys[best] = np.inf
    return np.sort(np.argsort(-keys, kind="stable")[:n])


def outcomes(n: int) -> tuple[Array, Array]:
    """Return `n` equally probable outcomes (n,) of a standard normal, and their probabilities (n,).

    The medians of n strata, stretched to unit variance. Gauss-Hermite quadrature is exact for polynomials,
    but puts half of the weight on one outcome, and the maximiser jumps between sites.

    Examples
    --------
    >>> outcomes(4)
    (array([-1.36..., -0.37...,  0.37...,  1.36...]), array([0.25, 0.25, 0.25, 0.25]))
    """
    nodes = ndtri((np.arange(n) + 0.5) / n)
    spread = np.sqrt(np.mean(np.square(nodes)))
    return nodes / (spread if n > 1 else 1.0), np.full(n, 1.0 / n)


@dataclass(frozen=True, eq=False)
class Prospect:
    """The belief at the representers, and how a reading at each candidate would change it.

    Attributes
    ----------
    mean : (R,) array
        Posterior mean of the representers, ``mu``.
    draws : (R, S) array
        Joint draws of the representers, ``F``.
    slopes : (N, R) array
        ``b`` of each candidate; 0 if a reading there teaches nothing.
    readings : (N, S) array
        ``z`` of each candidate, one per draw.

    Examples
    --------
    Of two independent sites, reading the uncertain one shows which is higher:

    >>> variance, rng = np.array([0.01, 4.0]), np.random.default_rng(0)
    >>> known = np.diag(variance)
    >>> prospect = Prospect.drawn(
    ...     np.zeros(2), known, known, variance, np.full(2, 0.1), rng.standard_normal((3, 1000))
    ... )
    >>> prospect.information_gain().round(2)
    array([0.  , 0.59])
    >>> prospect.point_regret_reduction().round(2)
    array([0.01, 0.79])
    """

    mean: Array
    draws: Array
    slopes: Array
    readings: Array

    @classmethod
    def drawn(
        cls,
        mean: Array,
        covariance: Array,
        cross: Array,
        variance: Array,
        noise: Array,
        normals: Array,
    ) -> Prospect:
        """Return the prospect for given standard normals.

        Parameters
        ----------
        mean : (R,) array
            Posterior mean of the representers.
        covariance : (R, R) array
            Of the representers; may be singular.
        cross : (R, N) array
            Covariances between representers and candidates.
        variance, noise : (N,) arrays
            Variances of the function and of a reading's noise (above 0) at the candidates.
        normals : (R + 1, S) array
            Independent standard normals.
        """
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, 0.0)
        roots = np.sqrt(values)
        inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=values > _SINGULAR * values.max())
        # What of a candidate the representers explain, in the coordinates of the draws; and the rest.
        explained = (vectors.T @ cross) * inverse[:, None]
        rest = np.maximum(variance - np.einsum("rn,rn->n", explained, explained), 0.0) + noise
        sd = np.sqrt(variance + noise)
        errors = explained.T @ normals[:-1] + np.sqrt(rest)[:, None] * normals[-1]
        return cls(
            mean,
            mean[:, None] + vectors @ (roots[:, None] * normals[:-1]),
            np.ascontiguousarray((cross / sd).T),
            errors / sd[:, None],
        )

    @property
    def maximiser(self) -> Array:
        """Probability that each representer is the maximiser, ``p`` (R,)."""
        n, draws = self.draws.shape
        p: Array = np.bincount(np.argmax(self.draws, axis=0), minlength=n) / draws
        return p

    @property
    def entropy(self) -> float:
        """Entropy of the maximiser, in nats, at most ``log R``."""
        return float(entr(self.maximiser).sum())

    def regret(self, recommended: Array) -> float:
        """Return the expected regret ``E max f - E f`` of recommending representers with probability (R,)."""
        return float(self.draws.max(axis=0).mean() - recommended @ self.mean)

    def information_gain(self, n_outcomes: int = 7) -> Array:
        """Return the expected reduction (N,) of the maximiser's entropy by a reading at each candidate.

        ``H(p) - E_y H(p | y)``, in nats (Hennig and Schuler 2012); negative only by the randomness of draws.
        """
        left, _ = self._after(n_outcomes)
        return self.entropy - left

    def regret_reduction(self, n_outcomes: int = 7) -> Array:
        """Return the expected reduction (N,) of the regret of recommending a site drawn from ``p``.

        MRS (Metzen 2016). A reading does not change ``E max f`` on average, so this term, and its sampling
        error, drop out: the score is ``E_y[(p | y) . (mu | y)] - p . mu``.
        """
        _, value = self._after(n_outcomes)
        return value - self.maximiser @ self.mean

    def point_regret_reduction(self) -> Array:
        """Return the expected reduction (N,) of the regret of recommending the site of the largest mean.

        MRS point (Metzen 2016). As ``E max f`` is the same before and after, the score is
        ``E_y max(mu | y) - max mu``: exact, without draws.
        """
        from fieldbo.policies.optimum._loops import growth_of_the_best_mean

        return growth_of_the_best_mean(self.mean, self.slopes)

    def _after(self, n_outcomes: int) -> tuple[Array, Array]:
        from fieldbo.policies.optimum._loops import after_a_reading

        return after_a_reading(self.mean, self.draws, self.slopes, self.readings, *outcomes(n_outcomes))


@settings("policy")
class _Lookahead(ForOptimum):
    """A policy that scores each site by its prospect."""

    representers: PositiveInt = 60
    """Number of sites that may be the maximiser."""
    draws: PositiveInt = 256
    """Number of joint posterior draws."""
    outcomes: PositiveInt = 7
    """Number of outcomes of a reading to average over."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the highest score (per unit of cost)."""
        surface = state.surface
        chosen = representers(surface.mean, surface.sd, self.representers, state.rng)
        cross = surface.covariance(chosen)
        prospect = Prospect.drawn(
            surface.mean[chosen],
            cross[:, chosen],
            cross,
            surface.variance,
            reading_noise(state, self.level),
            state.rng.standard_normal((len(chosen) + 1, self.draws)),
        )
        return self.best(state, self._scores(prospect), memory, **self._why(prospect))

    @abstractmethod
    def _scores(self, prospect: Prospect) -> Array:
        """Return the score (N,) of each candidate."""

    @abstractmethod
    def _why(self, prospect: Prospect) -> Mapping[str, float]:
        """Return the figures that explain the scores."""


@settings("policy")
class EntropySearch(_Lookahead):
    """Sample where a reading is most informative about the maximum's location (Hennig and Schuler 2012)."""

    def _scores(self, prospect: Prospect) -> Array:
        return prospect.information_gain(self.outcomes)

    def _why(self, prospect: Prospect) -> Mapping[str, float]:
        return {"entropy": prospect.entropy}


@settings("policy")
class MinimumRegretSearch(_Lookahead):
    """Sample where a reading reduces the regret of the recommendation most (Metzen 2016)."""

    point: bool = False
    """Whether to recommend the site of the largest mean (MRS point, whose score needs no draws) instead of a
    site drawn from the distribution of the maximiser."""

    def _scores(self, prospect: Prospect) -> Array:
        return prospect.point_regret_reduction() if self.point else prospect.regret_reduction(self.outcomes)

    def _why(self, prospect: Prospect) -> Mapping[str, float]:
        best = (np.arange(len(prospect.mean)) == np.argmax(prospect.mean)).astype(float)
        return {"expected_regret": prospect.regret(best if self.point else prospect.maximiser)}
