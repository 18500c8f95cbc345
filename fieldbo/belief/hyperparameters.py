"""A kernel with its hyperparameters, the scale of the values, and the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Stationary, kernel
from fieldbo.belief.shore_kernel import ShoreMatern52
from fieldbo.belief.trend import WithTrend
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.domain import Domain

ModelKernel = Stationary | ShoreMatern52 | WithTrend


def kernel_on(
    domain: Domain, name: str, length_scales: ArrayLike, variance: float = 1.0, *, trend: bool = False
) -> ModelKernel:
    """Return the kernel called `name` for a domain.

    Parameters
    ----------
    domain : Domain
    name : {"se", "matern32", "matern52", "shore-matern52"}
    length_scales : (d,) array
        One per axis; a single one for ``"shore-matern52"``.
    variance : float
    trend : bool
        Whether to add a linear trend.

    Raises
    ------
    InputError
        There is no such kernel, or the domain does not support it.
    """
    if trend:
        about = kernel_on(domain, name, length_scales, variance)
        assert not isinstance(about, WithTrend)
        return WithTrend(about, domain.low + 0.5 * domain.extent, 0.5 * domain.extent)
    if name == ShoreMatern52.name:
        return ShoreMatern52(domain, np.asarray(length_scales, dtype=float), variance)
    return kernel(name, length_scales, variance)


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """A kernel in model units, the scale that leads to those units, and the noise if it is learned.

    Parameters
    ----------
    kernel : Stationary, ShoreMatern52 or WithTrend
    scale : ValueScale
    noise_variance : float, optional
        Learned noise variance, in model units; None to use what the sensor declares.
    declared : float, optional
        The declared noise variance, in model units, to which the learned one corresponds; readings with
        another declared variance are scaled in proportion. None: all readings have the learned variance.
    """

    kernel: ModelKernel
    scale: ValueScale
    noise_variance: float | None = None
    declared: float | None = None

    @property
    def noise_factor(self) -> float | None:
        """Learned noise variance relative to the declared one; None if one variance holds in model units."""
        if self.noise_variance is None:
            return 1.0
        return None if self.declared is None else self.noise_variance / self.declared

    def noise_to_model(self, noise_variances: Array, values: Array) -> Array:
        """Return the noise variances (n,) of readings in model units: as declared, or as learned."""
        declared = self.scale.noise_to_model(noise_variances, values)
        if self.noise_variance is None:
            return declared
        if self.declared is None:
            return np.full(len(values), self.noise_variance)
        return declared * (self.noise_variance / self.declared)

    def to_plain(self) -> dict[str, Any]:
        """Return a dict of strings, numbers and lists."""
        return {
            "kernel": self.kernel.name,
            "length_scales": self.kernel.length_scales.tolist(),
            "variance": float(self.kernel.variance),
            "transform": self.scale.transform,
            "shift": self.scale.shift,
            "scale": self.scale.scale,
            "noise_variance": self.noise_variance,
            "declared": self.declared,
            **({"trend": True} if isinstance(self.kernel, WithTrend) else {}),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], domain: Domain) -> Hyperparameters:
        """Return the hyperparameters that `to_plain` wrote, for a mission's domain."""
        return cls(
            kernel_on(
                domain,
                plain["kernel"],
                plain["length_scales"],
                plain["variance"],
                trend=plain.get("trend", False),
            ),
            ValueScale(plain["transform"], plain["shift"], plain["scale"]),
            plain["noise_variance"],
            plain["declared"],
        )
