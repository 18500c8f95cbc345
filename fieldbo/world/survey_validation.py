"""How far to trust the map of a survey: its error next to readings, between them, and in wide gaps.

Neighbours in space are alike. A reading left out alone is therefore predicted from those right beside it, and
the error says little about places where nobody measured. Groups that are left out whole, such as the lines of
a survey, leave the gaps that a map has to bridge (Roberts et al. 2017, Ecography 40).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve
from scipy.special import ndtri

from fieldbo._numerics.arrays import Array
from fieldbo.belief.posterior import Belief
from fieldbo.belief.value_scale import ValueScale
from fieldbo.errors import InputError
from fieldbo.world.survey_groups import groups_of


def predict_left_out(belief: Belief, groups: ArrayLike) -> tuple[Array, Array]:
    """Return mean and variance (n,) of each reading, predicted from the readings of all other groups.

    Exact, from one inverse: with ``K = k(X, X) + diag(v)`` and ``Q = K^-1``, the readings of group g have
    mean ``y_g - Q_gg^-1 (Q y)_g`` and covariance ``Q_gg^-1`` given all others (Rasmussen and Williams 2006,
    section 5.4.2, for blocks). The hyperparameters stay those of the belief. The variance includes a
    reading's noise.

    Parameters
    ----------
    belief : Belief
    groups : (n,) array
        Label of each of ``belief.sites``; readings with the same label are left out together.

    Raises
    ------
    InputError
        There is not one label per site.

    Examples
    --------
    Two readings side by side predict each other well; the third place does not predict them at all:

    >>> from fieldbo.belief.kernels import Matern52
    >>> belief = Belief(Matern52([1.0])).condition_on([[0.0], [0.1], [9.0]], [2.0, 2.0, 0.0], 0.01)
    >>> predict_left_out(belief, [0, 1, 2])[0].round(1) + 0.0
    array([2., 2., 0.])
    >>> predict_left_out(belief, [0, 0, 1])[0].round(1) + 0.0
    array([0., 0., 0.])
    """
    labels = np.asarray(groups)
    if labels.shape != (belief.size,):
        raise InputError(
            f"labels of shape {labels.shape} for {belief.size} sites",
            expected="one label per site of the belief",
        )
    inverse = cho_solve((belief.factor, True), np.eye(belief.size), check_finite=False)
    weighted = inverse @ belief.values
    mean, variance = np.empty(belief.size), np.empty(belief.size)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        covariance = np.linalg.inv(inverse[np.ix_(rows, rows)])
        mean[rows] = belief.values[rows] - covariance @ weighted[rows]
        variance[rows] = np.diag(covariance)
    return mean, np.maximum(variance, belief.noise_variances)


_NARROW = 0.8
"""Coverage of 90% intervals below which a map claims more than it knows."""

_WELL_CALIBRATED = 1.2
"""Inflation below which the fitted model agrees with the groups left out; coverage is then above 83%."""

_ALIKE = 1.5
"""Ratio of two errors below which they say the same."""

_WORTHLESS = 0.9
"""Fraction of the readings' variance that a useful map's squared error stays below."""


class Score(NamedTuple):
    """How well readings are predicted that were left out."""

    rmse: float
    """Root mean square error, in the user's unit."""
    coverage: float
    """Fraction of the readings inside the 90% intervals of the predictions."""

    @classmethod
    def of(cls, belief: Belief, scale: ValueScale, mean: Array, variance: Array) -> Score:
        """Return the score of predictions (n,) of a belief's readings, in model units."""
        z = np.abs(belief.values - mean) / np.sqrt(variance)
        missed = scale.to_user(belief.values) - scale.to_user(mean)
        inside_90 = z <= ndtri(0.95)  # the central 90%
        return cls(float(np.sqrt(np.mean(missed**2))), float(np.mean(inside_90)))


@dataclass(frozen=True)
class Validation:
    """How well a field predicts readings left out one by one, and in whole lines or blocks.

    Attributes
    ----------
    single : Score
        Each site predicted from all others. Its neighbours remain, so the error is too small for places
        between lines.
    grouped : Score
        Each line or block predicted from all others. A missing line leaves a gap twice as wide as the map
        has, so the error is too large for most places.
    kind : {"line", "block"}
    groups : str
        What was left out: "12 lines".
    expected : float
        Root mean square error over the map, in the user's unit, as the field estimates it: its standard
        deviation times `inflation`.
    inflation : float
        Factor, at least 1, by which the standard deviation is too small for the groups left out.
    spread : float
        Standard deviation of the readings.
    """

    single: Score
    grouped: Score
    kind: str
    groups: str
    expected: float
    inflation: float
    spread: float

    @classmethod
    def of(
        cls, belief: Belief, scale: ValueScale, places: Array, single: Score, spread: float
    ) -> Validation | None:
        """Return how well a fitted belief predicts what is left out; None for too few readings to tell.

        Parameters
        ----------
        belief : Belief
            In the order of the survey.
        scale : ValueScale
        places : (N, d) array
            Where the map is wanted.
        single : Score
            The score of readings left out one by one.
        spread : float
            Standard deviation of the readings, in the user's unit.
        """
        groups = groups_of(belief.sites, np.exp(belief.kernel.theta[:-1]), places)
        if groups is None:
            return None
        mean, variance = predict_left_out(belief, groups.labels)
        inflation = max(1.0, float(np.sqrt(np.mean((belief.values - mean) ** 2 / variance))))
        _, sd = scale.moments(belief.mean(places), inflation**2 * belief.variance(places))
        return cls(
            single,
            Score.of(belief, scale, mean, variance),
            groups.kind,
            groups.name,
            expected=float(np.sqrt(np.mean(sd**2))),
            inflation=inflation,
            spread=spread,
        )

    def result(self, unit: str) -> str:
        """Return the error of the groups left out, with its `unit`, in words."""
        return (
            f"{self.groups}, each left out whole: error {self.grouped.rmse:.4g}{unit}; 90% intervals hold "
            f"{self.grouped.coverage:.0%} of the readings"
        )

    def advice(self, unit: str) -> str:
        """Return in words which error to trust, with its `unit`."""
        worst, gaps = f"{_two_digits(self.grouped.rmse)}{unit}", f"between {self.kind}s"
        if self.grouped.rmse > np.sqrt(_WORTHLESS) * self.spread:
            worst += " (no better than the readings' mean)"
        if self.inflation > _WELL_CALIBRATED:
            return (
                f"the second error counts: {self.kind}s differ by more than the fitted model allows, so "
                f"{gaps} the map may be off by {worst}"
            )
        expected = f"expect an error of about {_two_digits(self.expected)}{unit} over the map"
        if self.expected > self.grouped.rmse:
            return f"{expected}, more than {gaps}, because parts of the area are far from any reading"
        if self.grouped.rmse < _ALIKE * self.single.rmse:
            return f"both errors agree; {expected}"
        return f"{expected}: smaller near readings, and up to {worst} in the widest gaps"

    @property
    def warning(self) -> str | None:
        """A warning if the intervals are too narrow."""
        if self.grouped.coverage >= _NARROW:
            return None
        return (
            f"with {self.kind}s left out, 90% intervals hold only {self.grouped.coverage:.0%} of the "
            f"readings; take the map's standard deviations times {self.inflation:.2g}"
        )


def _two_digits(number: float) -> str:
    """Return a number to two significant digits, without an exponent where it can be avoided."""
    return f"{float(f'{number:.2g}'):g}"
