"""The loss that is left after all readings of a path, and its gradient by where they are taken.

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

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Slopes
from fieldbo.belief.posterior import Belief
from fieldbo.errors import ModelError
from fieldbo.policies.paths.importance import Importance

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
    >>> from fieldbo.policies.paths.importance import Everywhere
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
        return self._evaluated(points)[0]

    def __call__(self, points: Array, noise_variances: Array | None = None) -> tuple[float, Array]:
        """Return the loss after readings at `points` (m, d), and its gradient (m, d).

        `noise_variances` (m,) may differ from that of one reading, if some stand for several.
        """
        after, a, half, slopes = self._evaluated(points, noise_variances)
        losses, g = self._importance.loss(self.mean, self.before, after)
        weighted = a * (g * self._counts)
        columns = [-2.0 * weighted]
        if self._belief.size:
            rest = self._half - half @ a  # L^-1 (k(X, S) - k(X, Q) a)
            columns.append(2.0 * dtrtrs(self._factor, rest @ weighted.T, lower=1, trans=1)[0].T)
        columns.append(2.0 * weighted @ a.T)  # k(Q, Q) changes by rows and by columns
        return float(losses @ self._counts), slopes(np.hstack(columns))

    def _evaluated(
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
        a = dpotrs(_factored(between), across, lower=1)[0]
        explained = np.einsum("ms,ms->s", across, a)
        return np.maximum(self.before - explained, _LEAST * self.before), a, half, slopes


def _factored(covariance: Array) -> Array:
    """Return the lower Cholesky factor of a covariance matrix (m, m), with as little jitter as it takes."""
    largest = float(covariance.diagonal().max())
    for jitter in _JITTERS:
        factor, failed = dpotrf(covariance + jitter * largest * np.eye(len(covariance)), lower=1)
        if not failed:
            return np.asarray(factor)
    raise ModelError(f"the covariance matrix of {len(covariance)} readings to come is not positive definite")
