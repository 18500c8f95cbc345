"""What the readings of one place say by themselves, where the model expected something else there.

A narrow peak on a quiet background is no draw of the model that the background has taught: the model takes
most of a high reading for noise, and states less than was measured, with a narrow interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.confidence import MIDDLE90, AnySurface

_UNEXPECTED = 3.0  # standard deviations of what the other readings let one expect; less is chance
_ROUNDING = 1e-9  # of a noise variance


class Unexpected(NamedTuple):
    """Readings of one place that the model did not expect from all others, in model units.

    Attributes
    ----------
    place : (d,) array
    value : float
        Mean of the readings there.
    sd : float
        Standard deviation of that mean, from their noise alone.
    deviations : float
        How many standard deviations the mean lies above what the other readings let one expect of it.
    """

    place: Array
    value: float
    sd: float
    deviations: float

    @property
    def low(self) -> float:
        """Lower end of the central 90% by these readings alone."""
        return self.value - MIDDLE90 * self.sd

    @property
    def high(self) -> float:
        """Upper end of the central 90% by these readings alone."""
        return self.value + MIDDLE90 * self.sd


def unexpected(surface: AnySurface, place: Array) -> Unexpected | None:
    """Return what was read at a place, if the model did not expect it; None if it did, or nothing was read.

    With the posterior mean ``m`` and variance ``s^2`` at the place, and readings there whose mean ``y`` has
    the noise variance ``v``, the others miss ``y`` by ``(y - m) / sqrt(v - s^2)`` standard deviations
    (Rasmussen and Williams 2006, eqs. 5.10 to 5.12). This is averaged over the hyperparameters.

    Parameters
    ----------
    surface : Surface or AveragedSurface
    place : (d,) array

    Examples
    --------
    >>> from fieldbo.belief.kernels import Matern52
    >>> from fieldbo.belief.posterior import Belief
    >>> belief = Belief(Matern52([1.0], variance=0.01))
    >>> belief = belief.condition_on([[0.0], [3.0], [9.0]], [0.0, 1.0, 0.0], 0.05**2)
    >>> from fieldbo.belief.surface import Surface
    >>> surface = Surface(belief, [[3.0]])
    >>> surface.mean.round(2), round(unexpected(surface, np.array([3.0])).deviations, 1)
    (array([0.8]), 8.9)
    >>> unexpected(surface, np.array([9.0])), unexpected(surface, np.array([5.0]))
    (None, None)
    """
    if isinstance(surface, AveragedSurface):
        weights, beliefs = surface.weights.tolist(), surface.belief.beliefs
    else:
        weights, beliefs = [1.0], (surface.belief,)
    value = variance = deviations = 0.0
    for weight, belief in zip(weights, beliefs, strict=True):
        there = (belief.sites == place).all(axis=1)
        if not there.any():
            return None
        precisions = 1.0 / belief.noise_variances[there]
        v = 1.0 / float(precisions.sum())
        y = v * float(precisions @ belief.values[there])
        unexplained = v - float(belief.variance(place[None])[0])
        value, variance = value + weight * y, variance + weight * v
        if unexplained > _ROUNDING * v:
            gap = y - float(belief.mean(place[None])[0])
            deviations += weight * gap / np.sqrt(unexplained)
    if abs(deviations) <= _UNEXPECTED:
        return None
    return Unexpected(place, float(value), float(np.sqrt(variance)), float(deviations))
