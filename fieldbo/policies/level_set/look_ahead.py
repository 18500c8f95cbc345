"""Policies for level sets that go by what one reading is expected to change.

Letham, Guan, Tymms, Bakshy and Shvartsman (2022), *Look-ahead acquisition functions for Bernoulli level set
estimation*, AISTATS. Their readings are of two kinds, and sums run over random points; here a reading is a
Gaussian number, and sums run over the sites that are not yet classified.

===========  ==============================================================================
``t``        ``(mu - h) / s`` of a site
``p``        ``Phi(t)``, the probability that it is above the threshold
``q``        share of the site's variance that a reading will explain
``p'``       ``p`` after the reading, ``Phi((t + sqrt(q) z) / sqrt(1 - q))``, z standard normal
===========  ==============================================================================

Kearns, Jedynak and Lipor (2023), *A finite-horizon approach to active level set estimation*
(arXiv:2310.11985), balance the error that is left after a fixed number of samples and the distance travelled,
in closed form for a threshold on a line. **`DistancePenalised` is a reconstruction from the paper's
abstract.** On the line, the optimal policy was derived again, as below. The abstract does not say how it
becomes a policy under a Gaussian process: here the equation for the line is solved with the drop of the error
that a reading is expected to bring in the field.

On a line of length 1 the threshold is uniform on an interval of length L, at one end of which the vehicle is,
so that the expected share of misclassified points is ``e = L / 4``. A noiseless sample at ``u L`` leaves an
interval of ``u L`` or of ``(1 - u) L``. If ``lambda`` is what a distance of 1 is worth, n samples at best
end at an expected ``error + lambda distance`` of ``c_n e``:

``c_0 = 1,  c_n = 4 lambda u + c_(n-1) (u^2 + (1 - u)^2)  at  u = max(1/2 - lambda / c_(n-1), 0)``

The vehicle halves the interval if ``lambda = 0``, and goes less far the more samples are left.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import NonNegativeFloat, PositiveInt
from scipy.special import log_ndtr, ndtr, owens_t

from fieldbo._numerics.arrays import Array
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Stop
from fieldbo.policies.choice import PerCost, best_affordable, needs_declared_costs
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.level_set.risk import ByRisk, Risk, drop_of, floored, rows_at
from fieldbo.validation import settings

_MOST_T = 5.0  # sites beyond it count as classified, see `Risk`
_MOST_MEMBERS = 4096
_DEGREE = 6
_PER_UNIT = 100  # rows of the tables for each unit of t
_HALF_ROW = 256  # steps of a row on either side of q = 1/2
_LEAST = 1e-12  # arithmetic with numbers below the smallest normal one is slow
_READINGS = np.arange(-4.0, 4.25, 0.5, dtype=np.float32)


def expected_error_drop(t: ArrayLike, q: ArrayLike) -> Array:
    """Return ``min(p, 1 - p) - E min(p', 1 - p')`` (R,), the drop of the probability of an error.

    After the reading, mean and value lie on opposite sides of the threshold with probability
    ``2 T(t, sqrt((1 - q) / q))``, T being Owen's function.

    Examples
    --------
    >>> expected_error_drop([0.0, 0.0, 2.0], [0.5, 1.0, 0.5]).round(4)
    array([0.25  , 0.5   , 0.0005])
    """
    away, q = np.abs(np.asarray(t, dtype=float)), np.asarray(q, dtype=float)
    with np.errstate(divide="ignore"):
        left = 2.0 * owens_t(away, np.sqrt((1.0 - q) / q))
    return np.asarray(np.maximum(ndtr(-away) - left, 0.0))


def expected_entropy_drop(t: ArrayLike, q: ArrayLike) -> Array:
    """Return ``H(p) - E H(p')`` (R,) in nats, H being the entropy of a binary variable, to within 2e-5.

    Examples
    --------
    >>> expected_entropy_drop([0.0, 0.0, 2.0], [0.5, 1.0, 0.5]).round(3)
    array([0.193, 0.693, 0.036])
    """
    t, q = np.broadcast_arrays(np.atleast_1d(np.asarray(t, dtype=float)), np.asarray(q, dtype=float))
    return drop_of(rows_at(_entropy_table(), np.abs(t) * _PER_UNIT), q)


def _entropy(x: Array) -> Array:
    """Return the entropy (R,) of whether a standard normal variable is below x, in nats."""
    return np.asarray(-ndtr(x) * log_ndtr(x) - ndtr(-x) * log_ndtr(-x))


@lru_cache(maxsize=1)
def _entropy_table() -> Array:
    """Return polynomials R_t (., 7) such that the drop of entropy is ``q R_t(sqrt(1 - q))``.

    Lowest power first. As a function of ``sqrt(1 - q)``, the drop divided by q is smooth up to q = 1.
    """
    from numpy.polynomial import chebyshev, polynomial

    t = np.arange(int(_MOST_T * _PER_UNIT) + 2) / _PER_UNIT
    w = 0.5 * (chebyshev.chebpts1(4 * _DEGREE) + 1.0)
    q, step = 1.0 - np.square(w), 0.04
    x = np.arange(-9.0, 9.0 + step, step)  # (t + sqrt(q) z) / sqrt(1 - q)
    z = (x[None, None] * w[:, None] - t[:, None, None]) / np.sqrt(q)[:, None]
    density = np.exp(-0.5 * np.square(z)) * (w / np.sqrt(2.0 * np.pi * q))[:, None] * step
    drop = _entropy(t)[:, None] - density @ _entropy(x)
    return np.array(polynomial.polyfit(w, (drop / q).T, _DEGREE).T, dtype=float, order="C")


@lru_cache(maxsize=1)
def _error_table() -> Array:
    """Return drops of the probability of an error (., 513): for each t in the form of `add_from_rows`."""
    half = np.square(np.arange(_HALF_ROW + 1) / _HALF_ROW) / 2.0
    q = np.concatenate([half, 1.0 - half[-2::-1]])
    t = np.arange(int(_MOST_T * _PER_UNIT) + 2) / _PER_UNIT
    drop = expected_error_drop(t[:, None], q[None])
    return np.where(drop > _LEAST, drop, 0.0)


def unclassified(surface: Surface, threshold: float) -> Risk:
    """Return the risk of all unclassified sites; of some of them, spread evenly, if they are very many."""
    return Risk.of(surface, threshold, counted=1.0, most=_MOST_MEMBERS)


class LookAhead(PerCost, ByRisk):
    """A policy that goes by what a single reading is expected to change."""

    @abstractmethod
    def gains(self, surface: Surface, risk: Risk, threshold: float, noise: Array) -> Array:
        """Return the score of a reading at each site, (N,).

        Parameters
        ----------
        surface : Surface
        risk : Risk
        threshold : float
        noise : (N,) array
            Noise variance of a reading at each site.
        """

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the site of the highest score (per unit of cost); Stop when all sites are classified.

        Where no reading is expected to change anything, variances stand in for the scores.
        """
        surface = state.surface
        risk = unclassified(surface, state.threshold)
        why = {"at_risk": risk.sites, "expected_errors": risk.errors}
        if state.steps and not state.provisional and not len(risk.members):
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, why)
        noise = floored(surface, state.noise(level=self.level)[:, None])[:, 0]
        scores = self.gains(surface, risk, state.threshold, noise)
        return self.decide(state, scores if scores.any() else surface.variance, memory, **why)

    def decide(self, state: State, scores: Array, memory: Memory, **why: Any) -> Decision:
        """Return the affordable site of the highest score (per unit of cost)."""
        return self.best(state, scores, memory, **why)


@settings("policy")
class GlobalSUR(LookAhead):
    """Sample where a reading is expected to lower the number of errors most: ``sum min(p, 1 - p)``.

    Stepwise uncertainty reduction, ``GlobalSUR`` in Letham et al. (2022).
    """

    def gains(self, surface: Surface, risk: Risk, threshold: float, noise: Array) -> Array:
        """Return the expected drop of the number of misclassified sites, (N,)."""
        from fieldbo.policies.level_set._look_ahead_loops import add_from_rows

        rows = rows_at(_error_table(), risk.t * _PER_UNIT).astype(np.float32)
        share, scale = _in_units(surface, risk, noise)
        sums = np.zeros(surface.size)
        for some, C, at in surface.lookahead.covariances(surface.solved, risk.members):
            add_from_rows(C, at, rows[some], _rounding(surface), share[some], scale, sums)
        return risk.weight * sums


@settings("policy")
class GlobalMI(LookAhead):
    """Sample where a reading is expected to tell most about the sites: the drop of their entropies.

    ``GlobalMI``, mutual information, in Letham et al. (2022).
    """

    def gains(self, surface: Surface, risk: Risk, threshold: float, noise: Array) -> Array:
        """Return the expected drop of the sum of the sites' entropies, (N,), in nats."""
        from fieldbo.policies.level_set._risk_loops import add_drops

        R = rows_at(_entropy_table(), risk.t * _PER_UNIT).astype(np.float32)
        share, scale = _in_units(surface, risk, noise)
        sums = np.zeros(surface.size)
        for some, C, at in surface.lookahead.covariances(surface.solved, risk.members):
            add_drops(C, at, R[some], _rounding(surface), share[some], scale, sums)
        return risk.weight * np.maximum(sums, 0.0)  # rounding


@settings("policy")
class EAVC(LookAhead):
    """Sample where a reading is expected to change the volume of the set most: ``E |sum (p' - p)|``.

    Expected absolute volume change (Letham et al. 2022).
    """

    def gains(self, surface: Surface, risk: Risk, threshold: float, noise: Array) -> Array:
        """Return the expected absolute change of the number of sites above the threshold, (N,)."""
        from fieldbo.policies.level_set._look_ahead_loops import add_changes

        members = risk.members
        t = ((surface.mean[members] - threshold) / surface.sd[members]).astype(np.float32)
        share, scale = _in_units(surface, risk, noise)
        changes = np.zeros((len(_READINGS), surface.size), np.float32)
        for some, C, at in surface.lookahead.covariances(surface.solved, members):
            known = _rounding(surface)
            add_changes(C, at, t[some], known, share[some], scale, _READINGS, changes)
        return risk.weight * expected_size(changes.astype(float))


def expected_size(changes: Array) -> Array:
    """Return ``E |f(z)|`` (N,), z standard normal, of functions given at ``z = -4, -3.5, ..., 4``, (17, N).

    By the trapezoidal rule, corrected for the kinks of ``|f|`` where f changes its sign: by the first term of
    the Euler-Maclaurin formula, with f linear there.

    Examples
    --------
    >>> z = np.arange(-4.0, 4.25, 0.5)[:, None]
    >>> expected_size(np.hstack([z, z - 0.2])).round(3)
    array([0.798, 0.814])
    """
    z = _READINGS.astype(float)
    step, size, above = z[1] - z[0], np.abs(changes), changes > 0
    before, both = size[:-1], size[:-1] + size[1:]
    at = np.divide(before, both, out=np.zeros_like(both), where=both > 0)  # place of the kink, 0 to 1
    kinks = (above[:-1] != above[1:]) * both * _density(z[:-1, None] + step * at)
    return np.asarray(step * (_density(z) @ size + np.sum(kinks * (1.0 / 6.0 - at * (1.0 - at)), axis=0)))


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * np.square(z)) / np.sqrt(2.0 * np.pi))


def _rounding(surface: Surface) -> np.float32:
    """Return the bound by which covariances count less, so that nothing is gained where all is known."""
    return np.float32(surface.lookahead.rounding)


def _in_units(surface: Surface, risk: Risk, noise: Array) -> tuple[Array, Array]:
    """Return ``1 / s^2`` of the members and ``1 / (noise + s^2)`` of a reading at each site, (R,) and (N,).

    In units of the prior's variance and single precision.
    """
    unit = surface.lookahead.unit
    share, scale = unit / surface.variance[risk.members], unit / (surface.variance + noise)
    return share.astype(np.float32), scale.astype(np.float32)


_WORTHWHILE = 1e-3  # share of the largest gain that a site must bring after its distance


def worth_of_error(samples: int, weight: float) -> float:
    """Return ``c_n``: the error that n samples leave and what their distance is worth, for each error now.

    Parameters
    ----------
    samples : int
        n, the samples that are left.
    weight : float
        ``lambda``, what a distance of 1 is worth.

    Examples
    --------
    >>> [worth_of_error(n, 0.0) for n in range(4)], round(worth_of_error(50, 0.1), 3)
    ([1.0, 0.5, 0.25, 0.125], 0.209)
    """
    c = 1.0
    for _ in range(samples):
        u = max(0.5 - weight / c, 0.0)
        c = 4.0 * weight * u + c * (u**2 + (1.0 - u) ** 2)
    return c


@settings("policy")
class DistancePenalised(GlobalSUR):
    """Weigh the error that a reading is expected to remove against the travel to it, over a finite horizon.

    ``max_x  c_(n-1) SUR(x) / N - lambda d(x) / D``, where SUR is the drop of the number of errors of
    `GlobalSUR`, and D the largest travel from the first site. If no site is worth its travel, the site that
    would be first if lambda fell: the largest gain per travel.

    A reconstruction from the abstract of Kearns, Jedynak and Lipor (2023).
    """

    costs: ClassVar[tuple[str, ...]] = ("declared",)

    samples: PositiveInt = 100
    """The horizon: number of samples to plan for. Each later one is planned as if it were the last."""
    weight: NonNegativeFloat = 0.01
    """The paper's lambda: the share of sites that one travels D to classify."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if the costs are not declared, or one can be 0 that is divided by."""
        needs_declared_costs(cost)
        super().check(cost, domain)

    def decide(self, state: State, scores: Array, memory: Memory, **why: Any) -> Decision:
        """Return the affordable site of the highest score after its travel (per unit of cost)."""
        cost, sites = state.cost, state.domain.sites
        assert cost is not None
        longest = cost.travel(sites[0], sites)
        D = max(float(longest[np.isfinite(longest)].max()), np.finfo(float).tiny)
        share = cost.travel(state.position, sites, state.time_s) / D
        left = self.samples - state.steps - len(state.pending)
        gain = worth_of_error(max(left - 1, 0), self.weight) * scores / len(sites)
        net = gain - self.weight * np.where(np.isfinite(share), share, 1e300)
        if net[state.choosable(self.level)].max(initial=-np.inf) > _WORTHWHILE * gain.max():
            return self.best(state, net, memory, **why)
        rate = np.divide(gain, share, out=np.zeros_like(gain), where=share > 0)
        return best_affordable(state, rate if rate.any() else gain, memory, self.level, **why)
