"""Rules that ask what a reading would leave of the question where the optimum is: ES and MRS.

Entropy search (Hennig and Schuler 2012) wants to know the place of the maximum; minimum regret search
(Metzen 2016) wants to recommend a place of little regret. Both are averages over joint posterior draws at a
few *representers*, sites that may well be the maximum, and over the outcomes of a reading at each candidate.

==============  ==========================================================================
``mu``          posterior mean at the representers, (R,)
``F``           joint draws there, (R, S)
``x``, ``y``    a candidate, and what would be read there
``z``           ``(y - E y) / sd(y)``, standard normal
``b``           ``cov(f, y) / sd(y)``, (R,): after z the means are ``mu + b z``
``p``           probability of each representer to be the maximiser, (R,)
==============  ==========================================================================

A draw F and the reading z that belongs to it, conditioned on another outcome z' of the reading, are
``F + b (z' - z)`` (Matheron's rule): exact, with the same draws for all candidates. All in model units,
where larger is better.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtri

from fieldbo._numerics.arrays import Array
from fieldbo.belief.question import Optimum
from fieldbo.errors import InputError
from fieldbo.policies.acquisition import expected_improvement
from fieldbo.policies.choice import PerCost
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.optimum.myopic import reading_noise

_SINGULAR = 1e-12
"""Share of the largest variance of any combination of representers below which another one is taken as 0."""


def representers(mu: Array, s: Array, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the indices of up to `n` different sites that may well be the maximum, in ascending order.

    The site of the largest mean, and others drawn without replacement with the expected improvement on that
    mean as weights (as in Hennig and Schuler 2012).

    Parameters
    ----------
    mu, s : (N,) arrays
    n : int
        At least 1; where it is N or more, all sites are returned.
    rng : numpy.random.Generator

    Examples
    --------
    >>> representers(np.array([0.0, 1.0, 0.9, -9.0]), np.full(4, 0.1), 2, np.random.default_rng(0))
    array([1, 2])
    """
    best = int(np.argmax(mu))
    weights = np.maximum(expected_improvement(mu, s, mu[best]), np.finfo(float).tiny)
    # The largest of log weights with Gumbel noise are a weighted draw without replacement.
    keys = np.log(weights) + rng.gumbel(size=len(mu))
    keys[best] = np.inf
    return np.sort(np.argsort(-keys, kind="stable")[:n])


def outcomes(n: int) -> tuple[Array, Array]:
    """Return `n` equally probable outcomes (n,) of a standard normal, and their probabilities (n,).

    The medians of n strata, stretched to unit variance. Gauss and Hermite's outcomes, exact for polynomials,
    put half of the weight on one outcome, and which site is the maximum changes by jumps.

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
    """What is known at the representers, and what a reading at each candidate would change of it.

    Attributes
    ----------
    mean : (R,) array
        Of the representers, ``mu``.
    draws : (R, S) array
        Of the representers, jointly, ``F``.
    slopes : (N, R) array
        ``b`` of each candidate; 0 where nothing can be learnt.
    readings : (N, S) array
        ``z`` of each candidate, as it belongs to the draws.

    Examples
    --------
    Two sites that know nothing of each other: it is the uncertain one that tells which is the higher.

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
        """Return the prospect of given draws.

        Parameters
        ----------
        mean : (R,) array
            Posterior mean of the representers.
        covariance : (R, R) array
            Of the representers; may be singular.
        cross : (R, N) array
            Covariances between representers and candidates.
        variance, noise : (N,) arrays
            Of the function and of a reading's noise at the candidates; noise above 0.
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
        """How probable each representer is to be the maximiser, ``p`` (R,)."""
        n, draws = self.draws.shape
        p: Array = np.bincount(np.argmax(self.draws, axis=0), minlength=n) / draws
        return p

    @property
    def entropy(self) -> float:
        """Entropy of the maximiser, in nats; at most ``log R``."""
        return float(entr(self.maximiser).sum())

    def regret(self, recommended: Array) -> float:
        """Return the expected regret ``E max f - E f`` of recommending representers with probability (R,)."""
        return float(self.draws.max(axis=0).mean() - recommended @ self.mean)

    def information_gain(self, n_outcomes: int = 7) -> Array:
        """Return the expected drop (N,) of the maximiser's entropy by a reading at each candidate, in nats.

        ``H(p) - E_y H(p | y)`` (Hennig and Schuler 2012), negative only by the noise of the draws.
        """
        left, _ = self._after(n_outcomes)
        return self.entropy - left

    def regret_reduction(self, n_outcomes: int = 7) -> Array:
        """Return the expected drop (N,) of the regret of recommending the maximiser, drawn by its p.

        MRS (Metzen 2016). On average a reading leaves ``E max f`` as it is, so that it is left out, and its
        noise with it: the score is ``E_y[(p | y) . (mu | y)] - p . mu``.
        """
        _, value = self._after(n_outcomes)
        return value - self.maximiser @ self.mean

    def point_regret_reduction(self) -> Array:
        """Return the expected drop (N,) of the regret of recommending the representer of the largest mean.

        MRS point (Metzen 2016). As ``E max f`` is the same before and after, the score is
        ``E_y max(mu | y) - max mu``: exact, without draws.
        """
        from fieldbo.policies.optimum._loops import growth_of_the_best_mean

        return growth_of_the_best_mean(self.mean, self.slopes)

    def _after(self, n_outcomes: int) -> tuple[Array, Array]:
        from fieldbo.policies.optimum._loops import after_a_reading

        return after_a_reading(self.mean, self.draws, self.slopes, self.readings, *outcomes(n_outcomes))


@dataclass(frozen=True)
class _Lookahead(PerCost):
    """A rule that scores each site by its prospect.

    Parameters
    ----------
    representers : int
        Sites among which the maximiser is sought.
    draws : int
        Joint posterior draws.
    outcomes : int
        Of a reading.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    representers: int = 60
    draws: int = 256
    outcomes: int = 7

    def __post_init__(self) -> None:
        for name in ("representers", "draws", "outcomes"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"{name} = {getattr(self, name)}", expected="at least 1", where=f"policy.{name}"
                )

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
        """Return what explains the scores."""


@dataclass(frozen=True)
class EntropySearch(_Lookahead):
    """Sample where a reading tells most of where the maximum is (Hennig and Schuler 2012)."""

    def _scores(self, prospect: Prospect) -> Array:
        return prospect.information_gain(self.outcomes)

    def _why(self, prospect: Prospect) -> Mapping[str, float]:
        return {"entropy": prospect.entropy}


@dataclass(frozen=True)
class MinimumRegretSearch(_Lookahead):
    """Sample where a reading lowers the regret of the recommendation most (Metzen 2016).

    Parameters
    ----------
    point : bool
        Whether the site of the largest mean is recommended (MRS point, whose score needs no draws), and not,
        as by default, a site drawn from the maximiser's distribution.
    """

    point: bool = False

    def _scores(self, prospect: Prospect) -> Array:
        return prospect.point_regret_reduction() if self.point else prospect.regret_reduction(self.outcomes)

    def _why(self, prospect: Prospect) -> Mapping[str, float]:
        best = (np.arange(len(prospect.mean)) == np.argmax(prospect.mean)).astype(float)
        return {"expected_regret": prospect.regret(best if self.point else prospect.maximiser)}
