"""The map between your values and the standardised values of the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError

Transform = Literal["none", "log"]


@dataclass(frozen=True)
class ValueScale:
    """The map between your values and the model's standardised ones.

    ``model = (transform(value) - shift) / scale``

    Parameters
    ----------
    transform : {"none", "log"}
    shift, scale : float
        Constants between fits; the scale is negative where the minimum is sought.

    Examples
    --------
    >>> s = ValueScale("log", shift=1.0, scale=2.0)
    >>> float(s.to_user(s.to_model([5.0]))[0].round(12))
    5.0
    """

    transform: Transform = "none"
    shift: float = 0.0
    scale: float = 1.0

    def usable(self, values: ArrayLike) -> Mask:
        """Return which values (n,) the model can use: finite ones, and for a log those above 0."""
        y = np.asarray(values, dtype=float)
        good: Mask = np.isfinite(y)
        return good & (y > 0) if self.transform == "log" else good

    def to_model(self, values: ArrayLike) -> Array:
        """Return values (n,) in model units.

        Raises
        ------
        InputError
            The transform is a log, and a value is not above 0.
        """
        y = np.asarray(values, dtype=float)
        if self.transform == "log":
            if np.any(y <= 0):
                raise InputError(
                    f"cannot take the logarithm of {float(np.min(y))}",
                    expected="values above 0",
                    fix='set transform = "none", or drop or shift the values',
                )
            y = np.log(y)
        return np.asarray((y - self.shift) / self.scale)

    def unshifted(self, values: ArrayLike) -> Array:
        """Return the model units (n,) of a part of the values, such as a prior mean: without the shift.

        Raises
        ------
        InputError
            As for `to_model`.
        """
        return replace(self, shift=0.0).to_model(values)

    def residuals(self, values: ArrayLike, means: ArrayLike | None) -> Array:
        """Return values (n,) less their prior means (n,), if any, in model units.

        Examples
        --------
        >>> ValueScale(shift=1.0, scale=2.0).residuals([9.0], [6.0])
        array([1.])
        """
        model = self.to_model(values)
        return model if means is None else model - self.unshifted(means)

    def noise_to_model(self, noise_variances: ArrayLike, values: ArrayLike) -> Array:
        """Return noise variances (n,) in model units; for a log, to first order at `values` (n,)."""
        v = np.asarray(noise_variances, dtype=float) / self.scale**2
        return np.asarray(v / np.square(values) if self.transform == "log" else v)

    def to_user(self, model_values: ArrayLike) -> Array:
        """Return model values in the user's units; for a log, the median. What is too large is infinite."""
        y = np.asarray(model_values, dtype=float) * self.scale + self.shift
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(y) if self.transform == "log" else y)

    def moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation, in the user's units, of a normal in model units."""
        mu, var = mean * self.scale + self.shift, variance * self.scale**2
        if self.transform == "log":
            with np.errstate(over="ignore"):
                expected = np.exp(mu + 0.5 * var)
                return expected, expected * np.sqrt(np.expm1(var))
        return mu, np.sqrt(var)
