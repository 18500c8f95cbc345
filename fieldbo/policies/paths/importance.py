"""What the variance that is left at a site costs: how much the site will matter, as far as is known now.

The variance that readings leave depends on where they are, not on their values. Whether a site matters
depends on values, and the belief gives their distribution: after the readings, the mean is normal about
today's mean, and its variance is what they explain, the variance before less that after.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.posterior import Belief
from fieldbo.policies.acquisition import misclassification_drop


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
