"""The loss that is left after all readings of a path, and its gradient by where they are taken.

The variance that readings leave depends on where they are, not on their values. Whether a site matters
depends on values, and the belief gives their distribution: after the readings, the mean is normal about
today's mean, and its variance is what they explain, the variance before less that after. An `Importance` says
what the variance that is left at a site costs.

=========  =======================================================================================
``Q``      readings to come, (m, d)
``X``      readings so far, (n, d); ``L`` is the factor of their covariance, noise included
``S``      sites, (N, d), with `before` and `after` the variances there now and after Q
``a``      ``cov(Q, Q | X)^-1 cov(Q, S | X)``, (m, N), with the readings' noise in the first
``g``      derivative of the loss by `after`, (N,)
=========  =======================================================================================

``after = before - sum_Q cov(Q, S | X) a``. With ``b = (k(X, X) + noise)^-1 (k(X, S) - k(X, Q) a)``, the
derivatives of the loss by the prior's covariances are ``-2 a g`` for ``k(Q, S)``, ``a g a'`` for ``k(Q, Q)``
and ``2 a g b'`` for ``k(Q, X)``. An evaluation costs O((n + m)^2 N).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Slopes
from fieldbo.belief.posterior import Belief
from fieldbo.belief.readings import LEAST_NOISE
from fieldbo.errors import ModelError
from fieldbo.policies.acquisition import misclassification_drop
from fieldbo.policies.paths.chain import Chain


class Importance(ABC):
    """The loss of leaving a variance at sites."""

    @abstractmethod
    def loss(self, mean: Array, before: Array, after: Array) -> tuple[Array, Array]:
        """Return the expected loss (N,) at each site, and its derivative by `after`.

        Parameters
        ----------
        mean, before : (N,) arrays
            Posterior mean and variance now.
        after : (N,) array
            Variance after the readings to come, above 0 and at most `before`.
        """


class Everywhere(Importance):
    """The variance itself, for a map: every site matters alike."""

    def loss(self, mean: Array, before: Array, after: Array) -> tuple[Array, Array]:
        return after, np.ones_like(after)


@dataclass(frozen=True)
class MayExceed(Importance):
    """The variance where ``mean + sd`` may reach a threshold in the end.

    Parameters
    ----------
    threshold : float
    amplitude : float
        By how much the belief's variances are too large, as a standard deviation's factor; see `amplitude`.
    softness : float
        Standard deviation below which the answer is not taken as known.

    Examples
    --------
    A site that lies far below the threshold hardly matters; one that lies above counts in full:

    >>> loss, _ = MayExceed(1.0).loss(np.array([-3.0, 2.0]), np.full(2, 1.0), np.full(2, 0.5))
    >>> loss.round(3)
    array([0.   , 0.496])
    """

    threshold: float
    amplitude: float = 1.0
    softness: float = 0.02

    def loss(self, mean: Array, before: Array, after: Array) -> tuple[Array, Array]:
        from scipy.special import ndtr

        factor = self.amplitude**2
        sd = np.sqrt(after)
        spread = np.sqrt(factor * np.maximum(before - after, 0.0) + self.softness**2)
        over = mean + sd - self.threshold
        z = over / spread
        matters = ndtr(z)
        density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
        slope = 0.5 / (sd * spread) + factor * over / (2.0 * spread**3)
        return after * matters, matters + after * density * slope


@dataclass(frozen=True)
class Misclassified(Importance):
    """The expected ``p (1 - p)`` of being above a threshold, p as the readings will leave it.

    How much ``p (1 - p)`` is expected to drop follows from the share of the variance that they explain: see
    `misclassification_drop`.

    Parameters
    ----------
    threshold : float

    Examples
    --------
    >>> loss, _ = Misclassified(0.0).loss(np.array([0.0, 3.0]), np.ones(2), np.array([1.0, 1.0]))
    >>> loss.round(4)
    array([0.25  , 0.0013])
    >>> Misclassified(0.0).loss(np.zeros(1), np.ones(1), np.full(1, 0.25))[0].round(4)
    array([0.115])
    """

    threshold: float

    def loss(self, mean: Array, before: Array, after: Array) -> tuple[Array, Array]:
        from scipy.special import ndtr

        sd = np.sqrt(np.maximum(before, 1e-300))
        square = np.minimum(((mean - self.threshold) / sd) ** 2, 1e3)
        share = np.clip(1.0 - after / np.maximum(before, 1e-300), 0.0, 1.0 - 1e-9)
        t = np.sqrt(square)
        slope = np.exp(-square / (1.0 + share)) / (2 * np.pi * np.sqrt(1.0 - share**2))
        p = ndtr(-t)
        return p * (1.0 - p) - misclassification_drop(t, share), slope / np.maximum(before, 1e-300)


def amplitude(belief: Belief, guess: float = 1.0, trust: float = 10.0) -> float:
    """Return the factor by which the values vary more than a belief of fixed hyperparameters expects.

    The root of ``(trust guess^2 + y' K^-1 y) / (trust + n)``: the readings' own estimate, shrunk to a guess.

    Parameters
    ----------
    belief : Belief
    guess : float
        The factor before any reading.
    trust : float
        Number of readings that the guess is worth.
    """
    own = float(belief.weights @ belief.weights)
    return float(np.sqrt((trust * guess**2 + own) / (trust + belief.size)))


_LEAST = 1e-12  # of the variance before: what rounding leaves
_JITTERS = (0.0, 1e-9, 1e-7, 1e-5)  # of the variance: a search may try readings that nearly coincide


class RemainingLoss:
    """The loss that readings would leave over sites, as a function of where they are taken.

    Parameters
    ----------
    belief : Belief
    sites : (N, d) array
    importance : Importance
    noise_variance : float
        Of each reading to come, in model units.
    counts : (N,) array, optional
        How many sites each stands for; by default one.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern32
    >>> from fieldbo.policies.paths.loss import Everywhere
    >>> line = np.linspace(0, 1, 11)[:, None]
    >>> left = RemainingLoss(Belief(Matern32([0.3])), line, Everywhere(), 1e-6)
    >>> at_the_end, slope = left(np.array([[0.1]]))
    >>> bool(at_the_end > left(np.array([[0.5]]))[0]), bool(slope[0, 0] < 0)  # the middle is better
    (True, True)
    """

    def __init__(
        self,
        belief: Belief,
        sites: Array,
        importance: Importance,
        noise_variance: float,
        counts: Array | None = None,
    ) -> None:
        self._belief, self._sites, self._importance = belief, sites, importance
        self._counts = np.ones(len(sites)) if counts is None else counts
        kernel = belief.kernel
        self._jitter = 1e-10 * float(kernel.diagonal(sites[:1])[0])
        self._noise = noise_variance + self._jitter
        self.mean = belief.mean(sites)
        prior = kernel.diagonal(sites)
        self._everything = sites  # what readings to come covary with: sites, then readings so far
        self._half: Array = np.empty((0, len(sites)))  # L^-1 k(X, S)
        self._factor = np.asfortranarray(belief.factor)
        if belief.size:
            self._everything = np.vstack([sites, belief.sites])
            self._half = dtrtrs(self._factor, kernel(belief.sites, sites), lower=1)[0]
        explained = np.einsum("ns,ns->s", self._half, self._half)
        self.before: Array = np.maximum(prior - explained, _LEAST * prior)

    @property
    def now(self) -> float:
        """The loss without any further reading."""
        return float(self._importance.loss(self.mean, self.before, self.before)[0] @ self._counts)

    def after(self, points: Array) -> Array:
        """Return the variance (N,) at the sites after readings at `points` (m, d)."""
        return self._evaluate(points)[0]

    def __call__(self, points: Array, noise_variances: Array | None = None) -> tuple[float, Array]:
        """Return the loss after readings at `points` (m, d), and its gradient (m, d).

        `noise_variances` (m,) may differ from that of one reading, if some stand for several.
        """
        after, a, half, slopes = self._evaluate(points, noise_variances)
        losses, g = self._importance.loss(self.mean, self.before, after)
        weighted = a * (g * self._counts)
        columns = [-2.0 * weighted]
        if self._belief.size:
            rest = self._half - half @ a  # L^-1 (k(X, S) - k(X, Q) a)
            columns.append(2.0 * dtrtrs(self._factor, rest @ weighted.T, lower=1, trans=1)[0].T)
        columns.append(2.0 * weighted @ a.T)  # k(Q, Q) changes by rows and by columns
        return float(losses @ self._counts), slopes(np.hstack(columns))

    def _evaluate(
        self, points: Array, noise_variances: Array | None = None
    ) -> tuple[Array, Array, Array, Slopes]:
        """Return `after` (N,), a (m, N), L^-1 k(X, Q) (n, m), and the slopes of the prior's covariances."""
        m, N = len(points), len(self._sites)
        covariances, slopes = self._belief.kernel.with_slopes(points, np.vstack([self._everything, points]))
        across, between = covariances[:, :N], covariances[:, -m:].copy()
        noise = self._noise if noise_variances is None else noise_variances + self._jitter
        between[np.diag_indices(m)] += noise
        half: Array = np.empty((0, m))
        if self._belief.size:
            half = dtrtrs(self._factor, covariances[:, N:-m].T, lower=1)[0]
            between -= half.T @ half
            across = across - half.T @ self._half
        a = dpotrs(_factor_of(between), across, lower=1)[0]
        explained = np.einsum("ms,ms->s", across, a)
        return np.maximum(self.before - explained, _LEAST * self.before), a, half, slopes


def _factor_of(covariance: Array) -> Array:
    """Return the lower Cholesky factor of a covariance matrix (m, m), with as little jitter as it takes."""
    largest = float(covariance.diagonal().max())
    for jitter in _JITTERS:
        factor, failed = dpotrf(covariance + jitter * largest * np.eye(len(covariance)), lower=1)
        if not failed:
            return np.asarray(factor)
    raise ModelError(f"the covariance matrix of {len(covariance)} readings to come is not positive definite")


_MOST = 12
"""Most readings that represent those on one link."""

_MOST_IN_ALL = 100
"""Most of them on a chain: an evaluation takes time with their square."""


class WayLoss:
    """The loss after all that is read on a chain, as a function of its points.

    Parameters
    ----------
    loss : RemainingLoss
    chain : Chain
    noise_variance : float
        Of one reading, in model units.
    spacing : float
        How far apart readings on the way are, as the chain measures lengths.

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern32
    >>> from fieldbo.belief.posterior import Belief
    >>> from fieldbo.policies.paths.loss import Everywhere
    >>> line = np.linspace(0, 1, 11)[:, None]
    >>> loss = RemainingLoss(Belief(Matern32([0.3])), line, Everywhere(), 0.01)
    >>> chain = Chain(np.zeros(1), 1, 1.0, np.zeros(1), np.ones(1))
    >>> way = WayLoss(loss, chain, noise_variance=0.01, spacing=0.05)
    >>> bool(way(np.ones((1, 1)))[0] < loss(np.array([[0.5]]))[0])  # the end reads all of the line
    True
    """

    def __init__(self, loss: RemainingLoss, chain: Chain, noise_variance: float, spacing: float) -> None:
        self._loss, self._chain, self._noise, self._spacing = loss, chain, noise_variance, spacing
        ends = [chain.spacing] * chain.count + ([] if chain.destination is None else [chain.end])
        most = min(_MOST, max(1, _MOST_IN_ALL // len(ends)))
        self._counts = [min(most, int(length / spacing)) for length in ends]
        self._noises = np.concatenate(
            [self._link_noises(k, length) for k, length in zip(self._counts, ends, strict=True)]
            + [np.full(chain.count, noise_variance)]
        )
        self._weights = self._interpolation()

    def _link_noises(self, count: int, length: float) -> Array:
        """Return the noise variances of the readings that represent those on a link."""
        if not count:
            return np.empty(0)
        share = count * self._spacing / length
        return np.full(count, self._noise * min(1.0, max(LEAST_NOISE, share)))

    def _interpolation(self) -> Array:
        """Return the weights (r, m + 2) that give all readings from the start, the points and the end."""
        m, rows = self._chain.count, list[Array]()
        for link, count in enumerate(self._counts):
            for share in (np.arange(count) + 0.5) / max(1, count):
                row = np.zeros(m + 2)
                row[link], row[link + 1] = 1.0 - share, share
                rows.append(row)
        return np.vstack([*rows, np.eye(m + 2)[1 : m + 1]])

    def __call__(self, points: Array) -> tuple[float, Array]:
        """Return the loss after reading on the way through `points` (m, d), and its gradient (m, d)."""
        chain = self._chain
        end = chain.start if chain.destination is None else chain.destination
        readings = self._weights @ np.vstack([chain.start, points, end])
        value, gradient = self._loss(readings, self._noises)
        return value, (self._weights.T @ gradient)[1:-1]
