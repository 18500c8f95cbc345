"""Weighted hyperparameters: what else, besides the fit, explains the readings, and how well.

The prior of hyperparameters, for standardised values:

======================  ==================================================  =============
hyperparameter          median                                              sd of the log
======================  ==================================================  =============
length scales           0.2 of the axis, at least the spacing of its sites  1
variance                2                                                   1.5
noise variance, if any  as declared; 0.01 if the declared noise is 0        1
level                   0, normal with the variance of the process
======================  ==================================================  =============

It is wider than the one that fits maximise: few readings in one corner of a field say little about its spread
elsewhere. Values are standardised by the readings' own spread, and readings near each other differ less than
the whole field does: the median of the variance is above 1. The level is the mean of the process, which
readings in one corner do not tell, either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.data import Data
from fieldbo.belief.hyperparameter_posterior import weighted_thetas
from fieldbo.belief.kernels import Kernel
from fieldbo.belief.marginal_likelihood import Likelihood, LogNormalPrior
from fieldbo.belief.model import Hyperparameters, Model, kernel_on, relative_noise
from fieldbo.belief.trend import WithTrend
from fieldbo.belief.unknown_level import WithUnknownLevel
from fieldbo.domain.domain import Domain

LEVEL = 1.0
"""Prior variance of the level, as a share of that of the process."""

_LENGTH, _LENGTH_SD = 0.2, 1.0
_VARIANCE, _VARIANCE_SD = 2.0, 1.5
_NOISE_SD = 1.0


@dataclass(frozen=True, eq=False)
class WeightedHyperparameters:
    """Hyperparameters of one scale, with weights.

    Parameters
    ----------
    members : tuple of Hyperparameters
    weights : (K,) array
        They sum to 1.
    level : float
        Prior variance of the process's unknown level, as a share of that of the process.
    """

    members: tuple[Hyperparameters, ...]
    weights: Array
    level: float = LEVEL

    def kernels(self) -> Iterator[Kernel]:
        """Yield the kernel of each member, with the unknown level."""
        return (WithUnknownLevel(h.kernel, self.level) for h in self.members)

    def to_plain(self) -> dict[str, Any]:
        """Return what differs between the members as lists of numbers, for a record."""
        noises = [h.noise_variance for h in self.members]
        return {
            "weights": self.weights.tolist(),
            "level": self.level,
            "length_scales": [h.kernel.length_scales.tolist() for h in self.members],
            "variances": [float(h.kernel.variance) for h in self.members],
            "noise_variances": None if None in noises else noises,
        }

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], fitted: Hyperparameters, domain: Domain
    ) -> WeightedHyperparameters:
        """Return the set that `to_plain` wrote; `fitted` has what its members share."""
        trend = isinstance(fitted.kernel, WithTrend)
        noises = plain["noise_variances"] or [None] * len(plain["weights"])
        members = (
            replace(
                fitted,
                kernel=kernel_on(domain, fitted.kernel.name, *numbers, trend=trend),
                noise_variance=noise,
            )
            for *numbers, noise in zip(plain["length_scales"], plain["variances"], noises, strict=True)
        )
        return cls(tuple(members), np.array(plain["weights"]), plain["level"])


def typical_lengths(model: Model, domain: Domain) -> Array:
    """Return the prior medians of the length scales, in the units of the axes: one for each length scale."""
    reach = model.reach(domain)
    spacing = np.where(np.isfinite(domain.spacing), domain.spacing, 0.0)
    shortest = spacing if len(spacing) == len(reach) else spacing.min()
    return np.asarray(np.maximum(_LENGTH * reach, shortest))


def _prior(model: Model, domain: Domain, declared: Array) -> LogNormalPrior:
    """Return the prior, given the declared noise variances (n,) of the readings in model units."""
    learns = model.noise == "learned"
    narrow = model.prior(domain).with_noise(declared) if learns else model.prior(domain)
    axes = len(narrow.medians) - (2 if learns else 1)
    medians, sds = narrow.medians.copy(), narrow.sds.copy()
    medians[:axes], sds[:axes] = typical_lengths(model, domain), _LENGTH_SD
    medians[axes], sds[axes] = _VARIANCE, _VARIANCE_SD
    if learns:
        sds[-1] = _NOISE_SD
    return LogNormalPrior(medians, sds)


def weighted_around(
    fitted: Hyperparameters,
    model: Model,
    domain: Domain,
    data: Data,
    rng: np.random.Generator,
    *,
    at_peak: bool = True,
) -> WeightedHyperparameters:
    """Return hyperparameters that stand for their posterior, given readings; see `weighted_thetas`.

    Parameters
    ----------
    fitted : Hyperparameters
        The fit to these readings. Its scale holds for all members.
    model : Model
    domain : Domain
    data : Data
    rng : numpy.random.Generator
    at_peak : bool
        Whether `fitted` maximises the posterior; otherwise only its scale and kind of kernel are used.
    """
    y, declared, _, _ = model.linearised(fitted, data)
    learns = model.noise == "learned"
    censored = model.observation_model(data.sensor).censored(data.values)
    level_unknown = WithUnknownLevel(fitted.kernel, LEVEL)
    if learns:
        relative, fixed = relative_noise(declared, censored, fitted.declared)
        likelihood = Likelihood(level_unknown, data.sites, y, relative=relative, fixed=fixed)
    else:
        likelihood = Likelihood(level_unknown, data.sites, y, declared)
    peak = fitted.kernel.theta
    if learns and fitted.noise_variance is not None:
        peak = np.append(peak, np.log(fitted.noise_variance))
    prior = _prior(model, domain, declared[~censored])
    thetas, weights = weighted_thetas(likelihood, prior, peak if at_peak else None, rng)
    split = len(fitted.kernel.theta)
    members = (
        replace(
            fitted,
            kernel=fitted.kernel.with_theta(theta[:split]),
            noise_variance=float(np.exp(theta[-1])) if learns else None,
        )
        for theta in thetas
    )
    return WeightedHyperparameters(tuple(members), weights)
