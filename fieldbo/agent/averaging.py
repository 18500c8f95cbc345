"""The belief from which results are stated: averaged over what else explains the readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.streams import stream
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.data import Data
from fieldbo.belief.mean_functions import PriorMean
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.belief.weighted import WeightedHyperparameters, weighted_around

if TYPE_CHECKING:
    from fieldbo.agent.online_model import OnlineModel


class Stated(NamedTuple):
    """The belief from which results are stated: a surface over the sites, and the scale of its units."""

    surface: Surface | AveragedSurface
    scale: ValueScale


@dataclass
class _Average:
    """An averaged belief, the set that it averages over, and which of its readings it believes."""

    weighted: WeightedHyperparameters
    believed: Mask
    surface: AveragedSurface

    def lacks_only_new(self, weighted: WeightedHyperparameters, believed: Mask) -> bool:
        """Return True if it averages over the same set, and only lacks new readings."""
        n = len(self.believed)
        return self.weighted is weighted and np.array_equal(believed[:n], self.believed)


class Averaging:
    """Averages the belief of an online model over the weighted hyperparameters of its latest fit.

    Each reading is added when the average is next asked for, and changes the weights.

    Parameters
    ----------
    model : OnlineModel
    """

    def __init__(self, model: OnlineModel) -> None:
        self._model = model
        self._average: _Average | None = None

    def stated(self) -> Stated:
        """Return the belief from which results are stated.

        Known hyperparameters are not averaged; nor are those of runs whose fits were recorded without
        weights. Before the first fit, they are drawn from their prior and weighted by the readings.
        """
        model = self._model
        fits = [fit for fit in model.fits if fit.weighted is not None]
        if fits:
            weighted, n = fits[-1].weighted, model.readings_of(fits[-1].after)
        elif model.provisional and model.believed.any():
            weighted, n = self._from_the_prior(), model.readings
        else:
            weighted, n = None, 0
        if weighted is None:
            return Stated(model.surface, model.hyperparameters.scale)
        average = self._average
        if average is None or not average.lacks_only_new(weighted, model.believed):
            average = self._average = self._begun(weighted, n)
        self._catch_up(average)
        return Stated(average.surface, weighted.members[0].scale)

    def _from_the_prior(self) -> WeightedHyperparameters:
        """Return hyperparameters drawn from their prior, weighted by all readings."""
        model, mission = self._model, self._model.mission
        if self._average is not None and np.array_equal(self._average.believed, model.believed):
            return self._average.weighted
        data = model.data(model.believed)
        expected = mission.model.transformed(model.hyperparameters, mission.question, data).expected
        has_prior_mean = data.means is not None
        scale = mission.model.standardised(expected, mission.question, has_prior_mean=has_prior_mean)
        start = replace(model.hyperparameters, scale=scale)
        rng = stream(mission.seed, "score", model.readings)
        return weighted_around(start, mission.model, mission.world.domain, data, rng, at_peak=False)

    def _begun(self, weighted: WeightedHyperparameters, n: int) -> _Average:
        """Return the average after the first n readings, to which the set's weights refer."""
        model, mission = self._model, self._model.mission
        believed = model.believed[:n].copy()
        data = model.data(np.flatnonzero(believed))
        beliefs = [
            Belief(kernel, prior_mean=None if model.mean is None else PriorMean(model.mean, h.scale))
            for kernel, h in zip(weighted.kernels(), weighted.members, strict=True)
        ]
        if believed.any():
            y, by_member = self._taken(weighted, beliefs, data)
            pairs = zip(beliefs, by_member, strict=True)
            beliefs = [belief.condition_on(data.sites, y, v) for belief, v in pairs]
        surfaces = [Surface(b, mission.world.domain.sites, mission.model.memory_bytes) for b in beliefs]
        averaged = AveragedSurface(surfaces, weighted.weights)
        return _Average(weighted, believed, averaged)

    def _catch_up(self, average: _Average) -> None:
        """Add the readings that an average lacks."""
        model = self._model
        new = np.flatnonzero(model.believed[len(average.believed) :]) + len(average.believed)
        if len(new):
            data = model.data(new)
            beliefs = [surface.belief for surface in average.surface.surfaces]
            y, by_member = self._taken(average.weighted, beliefs, data)
            average.surface.append(data.sites, y, by_member)
        average.believed = model.believed.copy()

    def _taken(
        self, weighted: WeightedHyperparameters, beliefs: Sequence[Belief], data: Data
    ) -> tuple[Array, list[Array]]:
        """Return readings in model units: values (k,), and noise variances (k,) as each member takes them.

        Readings that are not normal are taken as they are given the heaviest member's belief: likelihoods can
        only be compared if all members have the same readings.
        """
        sites, values, noises = data.sites, data.values, data.noise_variances
        observed = self._model.mission.model.observation_model(data.sensor)
        heaviest = int(np.argmax(weighted.weights))
        h, belief = weighted.members[heaviest], beliefs[heaviest]
        y, v = observed.in_model_units(
            h, values, noises, lambda _: (belief.mean(sites), belief.covariance(sites, sites))
        )
        normal = observed.normal(h, values, noises)
        normal_noise, normal_values = observed.variances(noises, values)[normal], values[normal]
        by_member = [v.copy() for _ in weighted.members]
        for other, variances in zip(weighted.members, by_member, strict=True):
            variances[normal] = other.noise_to_model(normal_noise, normal_values)
        return y, by_member
