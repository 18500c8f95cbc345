"""Weighted hyperparameters: what else, besides the fit, explains the readings, and how well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.hyperparameter_posterior import weighted_thetas
from fieldbo.belief.marginal_likelihood import Likelihood
from fieldbo.belief.model import Hyperparameters, Model, kernel_on
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor


@dataclass(frozen=True, eq=False)
class WeightedHyperparameters:
    """Hyperparameters of one scale, with weights.

    Parameters
    ----------
    members : tuple of Hyperparameters
    weights : (K,) array
        They sum to 1.
    """

    members: tuple[Hyperparameters, ...]
    weights: Array

    def to_plain(self) -> dict[str, Any]:
        """Return what differs between the members as lists of numbers, for a record."""
        noises = [h.noise_variance for h in self.members]
        return {
            "weights": self.weights.tolist(),
            "length_scales": [h.kernel.length_scales.tolist() for h in self.members],
            "variances": [float(h.kernel.variance) for h in self.members],
            "noise_variances": None if None in noises else noises,
        }

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], fitted: Hyperparameters, domain: Domain
    ) -> WeightedHyperparameters:
        """Return the set that `to_plain` wrote; `fitted` has what its members share."""
        noises = plain["noise_variances"] or [None] * len(plain["weights"])
        members = (
            replace(fitted, kernel=kernel_on(domain, fitted.kernel.name, *numbers), noise_variance=noise)
            for *numbers, noise in zip(plain["length_scales"], plain["variances"], noises, strict=True)
        )
        return cls(tuple(members), np.array(plain["weights"]))


def weighted_around(
    fitted: Hyperparameters,
    model: Model,
    domain: Domain,
    sites: Array,
    values: Array,
    noise_variances: Array,
    rng: np.random.Generator,
    *,
    means: Array | None = None,
    sensor: Sensor | None = None,
    at_peak: bool = True,
) -> WeightedHyperparameters:
    """Return hyperparameters that stand for their posterior, given readings; see `weighted_thetas`.

    Parameters
    ----------
    fitted : Hyperparameters
        The fit to these readings. Its scale holds for all members.
    model : Model
    domain : Domain
    sites : (n, d) array
    values, noise_variances : (n,) arrays
        In the user's units.
    rng : numpy.random.Generator
    means : (n,) array, optional
        The prior mean at the sites, in the user's units.
    sensor : Sensor, optional
        What was read with; as for `Model.fitted`.
    at_peak : bool
        Whether `fitted` maximises the posterior; otherwise only its scale and kind of kernel are used.
    """
    sensor = Sensor() if sensor is None else sensor
    y, declared, _ = model.linearised(fitted, sites, values, noise_variances, means, sensor)
    learns = model.noise == "learned"
    relative = declared / fitted.declared if learns and fitted.declared is not None else None
    if learns and relative is None and (censored := model.observation_model(sensor).censored(values)).any():
        relative = np.where(censored, declared / (fitted.noise_variance or 1.0), 1.0)
    likelihood = Likelihood(fitted.kernel, sites, y, None if learns else declared, relative)
    peak = fitted.kernel.theta
    if learns and fitted.noise_variance is not None:
        peak = np.append(peak, np.log(fitted.noise_variance))
    prior = model.prior(domain)
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
