"""How readings follow from the field: noise in the values' unit, limits of detection, and the transform.

A belief takes normal readings in model units. Three kinds of readings are not normal given the field: those
under a log whose noise is in the unit of the values, those with noise in proportion to the value, and those
at or below the limit of detection. `ObservationModel` finds the normal readings that stand for them, by
expectation propagation:

=============  ====================================================================================
``m``, ``K``   prior mean (n,) and covariance (n, n) of the field where it was read
``y``, ``v``   the normal readings that stand for the real ones: values and variances, (n,)
``P``          ``(K + diag(v))^-1``
cavity         what the other readings predict of one: mean and variance, (n,)
tilted         the distribution of the cavity times the reading's real likelihood
=============  ====================================================================================

A normal reading has the value and variance that turn its cavity into a normal distribution with the mean and
variance of the tilted one (Minka 2001; Rasmussen and Williams 2006, section 3.6). All are revised at once, by
a part of the way, until the posterior mean stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.special import erfcx

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.belief.hyperparameters import Hyperparameters
from fieldbo.belief.value_scale import ValueScale

Moments = tuple[Array, Array]
"""Means and variances (n,)."""

Revise = Callable[[Moments, Array], Moments]
"""From cavities and the posterior mean (n,) to normal readings: values and variances (n,)."""

_SWEEPS = 60
_STEP = 0.8
_SETTLED = 1e-5  # of the prior's standard deviation
_LEAST_PRECISION = 1e-3  # of a reading, relative to its cavity's: one that tells next to nothing
_LEAST_CAVITY = 1e-6  # variance, relative to the prior's
_LEAST_TILTED = 1e-12  # variance, relative to the cavity's
_LEAST_VARIANCE = 1e-8  # of a normal reading, relative to the prior's: two at one place remain compatible
_NODES = np.linspace(-1.0, 1.0, 81)
_FAR = 1e4  # standard deviations above a limit; farther ones count as this far
_REACH = 8.0  # standard deviations that an integral covers on either side
_HALVINGS = 40


@on_one_blas_thread
def propagate(prior: Moments, start: Moments, revise: Revise) -> tuple[Array, Array, Array, Array]:
    """Find the normal readings that stand for the real ones; O(n^3) per sweep.

    Parameters
    ----------
    prior : (n,) array and (n, n) array
        Mean and covariance of the field where it was read.
    start : (n,) arrays
        First values and variances; variances above 0.
    revise : callable
        ``revise((cavity means, cavity variances), posterior means) -> (values, variances)``. Returns those
        of a reading that is normal unchanged.

    Returns
    -------
    values, variances : (n,) arrays
        Of the normal readings.
    mean, variance : (n,) arrays
        Of the field where it was read, given them.

    Examples
    --------
    >>> likelihood = lambda cavity, posterior: (np.array([2.0]), np.array([1.0]))
    >>> propagate((np.zeros(1), np.eye(1)), (np.ones(1), np.ones(1)), likelihood)[0].round(4)
    array([2.])
    """
    (means, K), (y, v) = prior, start
    scale = np.sqrt(np.diag(K))
    before = np.full(len(y), np.inf)
    for _ in range(_SWEEPS):
        C = K.copy()
        C[np.diag_indices_from(C)] += v
        P = cho_solve(cho_factor(C, lower=True, overwrite_a=True), np.eye(len(y)))
        pulls, precisions = P @ (y - means), np.diag(P)
        now = y - v * pulls
        if np.all(np.abs(now - before) <= _SETTLED * scale):
            break
        before = now
        # Leaving one out: Rasmussen and Williams 2006, eq. 5.12.
        cavity = y - pulls / precisions, np.maximum(1.0 / precisions - v, _LEAST_CAVITY * scale**2)
        new_y, new_v = revise(cavity, now)
        same = (new_y == y) & (new_v == v)
        weight = 1.0 / v + _STEP * (1.0 / new_v - 1.0 / v)
        shift = y / v + _STEP * (new_y / new_v - y / v)
        moved, settled = shift / weight, np.maximum(1.0 / weight, _LEAST_VARIANCE * scale**2)
        y, v = np.where(same, y, moved), np.where(same, v, settled)
    return y, v, now, np.maximum(v - np.square(v) * precisions, 0.0)


def normal_between(cavity: Moments, tilted: Moments) -> Moments:
    """Return the normal readings that turn cavities into distributions with the tilted moments."""
    (m, s2), (mean, variance) = cavity, (tilted[0], np.maximum(tilted[1], _LEAST_TILTED * cavity[1]))
    # A tilted variance above the cavity's would need a negative precision; the mean counts in any case.
    precision = np.maximum(1.0 / variance - 1.0 / s2, _LEAST_PRECISION / s2)
    return mean + (mean - m) / (s2 * precision), 1.0 / precision


def tilted_by_limit(cavity: Moments, limits: Array, variances: Array) -> Moments:
    """Return the moments given that noisy readings were at or below their limits.

    Rasmussen and Williams 2006, eqs. 3.82 to 3.86.

    Parameters
    ----------
    cavity : (n,) arrays
    limits, variances : (n,) arrays
        The limits, and the variances of the readings' noise.

    Examples
    --------
    >>> mean, variance = tilted_by_limit((np.zeros(1), np.ones(1)), np.zeros(1), np.zeros(1))
    >>> mean.round(4), variance.round(4)  # of a half-normal distribution
    (array([-0.7979]), array([0.3634]))
    """
    m, s2 = cavity
    sd = np.sqrt(s2 + variances)
    m = np.minimum(m, limits + _FAR * sd)
    z = (limits - m) / sd
    slope = np.sqrt(2.0 / np.pi) / erfcx(-z / np.sqrt(2.0))
    return m - s2 * slope / sd, s2 - s2**2 * slope * (z + slope) / (s2 + variances)


def tilted_by_exponential(cavity: Moments, values: Array, variances: Array) -> Moments:
    """Return the moments of ``g`` given values of ``exp(g)`` with normal noise; values may be negative.

    The integrals are sums over nodes that lie densest at the mode, which lies between that of the cavity and
    that of the likelihood.

    Parameters
    ----------
    cavity : (n,) arrays
    values, variances : (n,) arrays

    Examples
    --------
    >>> mean, _ = tilted_by_exponential((np.zeros(1), np.ones(1)), np.array([2.0]), np.array([1e-6]))
    >>> np.exp(mean).round(3)
    array([2.])
    """
    m, s2 = cavity
    positive = values > 0
    logs = np.log(np.where(positive, values, 1.0))
    # Below `balance` a value of 0 or less pulls the mode down by less than 1.
    size, c = np.abs(values), variances / s2
    balance = np.log(2.0 * c / (size + np.sqrt(values**2 + 4.0 * c)))
    low = np.where(positive, np.minimum(m, logs), np.minimum(m, balance) - 1.0)
    high = np.where(positive, np.maximum(m, logs), m)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        e = _exp(middle)
        rises = (m - middle) / s2 + e * (values - e) / variances > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    mode = 0.5 * (low + high)
    e = _exp(mode)
    width = 1.0 / np.sqrt(1.0 / s2 + np.maximum(e * (2.0 * e - values) / variances, 0.0))
    ends = np.arcsinh((_REACH * np.sqrt(s2) + np.abs(mode - m)) / width)
    t = ends[:, None] * _NODES
    g = mode[:, None] + width[:, None] * np.sinh(t)
    error = values[:, None] - _exp(g)
    log_density = -0.5 * ((g - m[:, None]) ** 2 / s2[:, None] + error**2 / variances[:, None])
    weights = np.exp(log_density - log_density.max(axis=1, keepdims=True)) * np.cosh(t)
    weights /= weights.sum(axis=1, keepdims=True)
    mean = np.sum(weights * g, axis=1)
    return mean, np.sum(weights * (g - mean[:, None]) ** 2, axis=1)


def _exp(g: Array) -> Array:
    """Return the exponentials of numbers, capped so that their squares are finite."""
    return np.asarray(np.exp(np.minimum(g, 300.0)))


NoiseAt = Literal["prediction", "reading"]

_PRECISE = 1e-4
"""Noise variance, relative to the reading's square, below which the log of a reading is as good as normal."""

_FLOOR = 1e-8
"""Least variance of a normal reading, relative to the prior's, while others are sought."""

_LEAST_SLOPE = 1e-3
"""Least value, relative to the noise, at which a log is linearised."""


class Linearised(NamedTuple):
    """Normal readings to fit hyperparameters to, in model units.

    Attributes
    ----------
    values, variances : (n,) arrays
    expected, uncertainty : (n,) arrays
        What to standardise: the value of a normal reading, or mean and variance of the field there.
    """

    values: Array
    variances: Array
    expected: Array
    uncertainty: Array


@dataclass(frozen=True)
class ObservationModel:
    """How readings follow from the field.

    Parameters
    ----------
    noise_at : {"prediction", "reading"}
        Where noise is converted to a log scale: at the reading, the logs of low readings weigh too little.
    share : float
        Standard deviation of noise in proportion to the value, as a fraction of it.
    below : float, optional
        Limit of detection: a reading at or below it says only that.
    """

    noise_at: NoiseAt = "prediction"
    share: float = 0.0
    below: float | None = None

    def censored(self, values: ArrayLike) -> Mask:
        """Return which values (n,) are at or below the limit of detection."""
        y = np.asarray(values, dtype=float)
        return np.zeros(y.shape, dtype=bool) if self.below is None else np.asarray(y <= self.below)

    def usable(self, scale: ValueScale, values: ArrayLike, noise_variances: ArrayLike) -> Mask:
        """Return which readings (n,) can be modelled.

        Under a log, a value that is not above 0 needs noise, or a limit of detection, to explain it.
        """
        y = np.asarray(values, dtype=float)
        explained = self.censored(y)
        if self.noise_at == "prediction":
            explained = explained | (np.asarray(noise_variances) > 0)
        good: Mask = scale.usable(y) | (np.isfinite(y) & explained)
        return good

    def variances(self, noise_variances: Array, values: Array) -> Array:
        """Return noise variances (n,), with the part that is in proportion to `values` (n,)."""
        return noise_variances + np.square(self.share * values) if self.share else noise_variances

    def normal(self, h: Hyperparameters, values: Array, noise_variances: Array) -> Mask:
        """Return which readings (n,) are normal in model units; arguments as for `in_model_units`."""
        return _Readings(self, h, values, noise_variances).normal

    def in_model_units(
        self,
        h: Hyperparameters,
        values: Array,
        noise_variances: Array,
        prior: Callable[[Array], Moments],
    ) -> Moments:
        """Return the normal readings that stand for readings: values and variances (n,), in model units.

        Parameters
        ----------
        h : Hyperparameters
        values, noise_variances : (n,) arrays
            Usable readings, in the user's units; the noise without the part in proportion to the value.
        prior : callable
            From first guesses of the values (n,) to mean (n,) and covariance (n, n) of the field where it was
            read, all in model units. Called only if a reading is not normal.
        """
        readings = _Readings(self, h, values, noise_variances)
        y, v, normal = readings.y, readings.v, readings.normal
        if normal.all():
            return y, v
        new_y, new_v, _, _ = propagate(prior(y), readings.start, readings.revised)
        return np.where(normal, y, new_y), np.where(normal, v, new_v)

    def linearised(
        self,
        h: Hyperparameters,
        values: Array,
        noise_variances: Array,
        prior: Callable[[Array], Moments],
    ) -> Linearised:
        """Return normal readings to fit other hyperparameters to; arguments as for `in_model_units`.

        Those of `in_model_units` hold near the field that the present hyperparameters expect. If one is all
        slope, because the reading hardly bounds the value from below, a fit would explain it by a field of
        boundless variance. Under a log, readings are therefore linearised at the expected value.
        """
        readings = _Readings(self, h, values, noise_variances)
        y, v, normal = readings.y, readings.v, readings.normal
        if normal.all():
            return Linearised(y, v, y, np.zeros(len(y)))
        new_y, new_v, expected, uncertainty = propagate(prior(y), readings.start, readings.revised)
        some = readings.additive
        if some.any():
            at, declared = h.scale.to_user(expected)[some], noise_variances[some]
            at = np.maximum(at, _LEAST_SLOPE * np.sqrt(declared))  # far below the noise, a log is a cliff
            new_y[some] = h.scale.to_model(at) + (values[some] / at - 1.0) / h.scale.scale
            new_v[some] = h.noise_to_model(self.variances(declared, at), at)
        return Linearised(
            np.where(normal, y, new_y),
            np.where(normal, v, new_v),
            np.where(normal, y, expected),
            np.where(normal, 0.0, uncertainty),
        )


class _Readings:
    """Readings, and the normal ones that stand for them if their values are taken as they are.

    Attributes
    ----------
    y, v : (n,) arrays
        Values and noise variances in model units, at the reading; at the limit of detection for readings
        that do not exceed it.
    censored, additive, proportional : (n,) bool arrays
        At or below the limit; on a log scale with noise in the unit of the values; any others with noise in
        proportion to the value.
    """

    def __init__(
        self, observed: ObservationModel, h: Hyperparameters, values: Array, noise_variances: Array
    ) -> None:
        self.observed, self.h, self.values, self.noise_variances = observed, h, values, noise_variances
        self.censored = observed.censored(values)
        at = values if observed.below is None else np.where(self.censored, observed.below, values)
        self.additive: Mask = np.zeros(len(values), dtype=bool)
        predicted, factor = observed.noise_at == "prediction", h.noise_factor
        if predicted and h.scale.transform == "log":
            noise = (1.0 if factor is None else factor) * observed.variances(noise_variances, at)
            wide = (factor is not None) & (noise > _PRECISE * np.square(at))
            self.additive = ~self.censored & ((at <= 0) | wide)
            at = np.where(self.additive, np.maximum(at, np.sqrt(noise)), at)
        in_proportion = predicted and factor is not None and observed.share > 0
        self.proportional: Mask = ~(self.censored | self.additive) & in_proportion
        self.y = h.scale.to_model(at)
        self.v = h.noise_to_model(observed.variances(noise_variances, at), at)

    @property
    def normal(self) -> Mask:
        """Which readings (n,) are normal in model units."""
        return ~(self.censored | self.additive | self.proportional)

    @property
    def start(self) -> Moments:
        """First normal readings."""
        prior = self.h.kernel.variance
        return self.y, np.where(self.censored, prior, np.maximum(self.v, _FLOOR * prior))

    def revised(self, cavity: Moments, posterior: Array) -> Moments:
        """Return normal readings given what the others predict of each, and the posterior mean (n,)."""
        y, v = (a.copy() for a in self.start)
        noise = self.noise_variances
        if self.observed.share:
            expected, some = self.h.scale.to_user(posterior), self.proportional
            noise = self.observed.variances(noise, expected)
            floor = _FLOOR * self.h.kernel.variance
            v[some] = np.maximum(self.h.noise_to_model(noise[some], expected[some]), floor)
        for some, tilted in ((self.additive, self._by_value), (self.censored, self._by_limit)):
            if some.any():
                others = cavity[0][some], cavity[1][some]
                y[some], v[some] = normal_between(others, tilted(others, some, noise))
        return y, v

    def _by_value(self, cavity: Moments, some: Mask, noise: Array) -> Moments:
        shift, scale = self.h.scale.shift, self.h.scale.scale
        logs = cavity[0] * scale + shift, cavity[1] * scale**2
        factor = 1.0 if self.h.noise_factor is None else self.h.noise_factor
        mean, variance = tilted_by_exponential(logs, self.values[some], factor * noise[some])
        return (mean - shift) / scale, variance / scale**2

    def _by_limit(self, cavity: Moments, some: Mask, noise: Array) -> Moments:
        # The noise is that at the limit, where alone it matters. Where the minimum is sought, low is high.
        sign = np.sign(self.h.scale.scale)
        mean, variance = tilted_by_limit((sign * cavity[0], cavity[1]), sign * self.y[some], self.v[some])
        return sign * mean, variance
