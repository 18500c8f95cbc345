"""The belief from which results are stated: averaged over what else explains the readings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Mask
from fieldbo._numerics.streams import stream
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.mean_functions import PriorMean
from fieldbo.belief.model import Hyperparameters
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
        sites, values, noises = (array[model.believed] for array in model.arrays())
        means = model.means_at(sites)
        transformed = ValueScale(mission.model.transform).residuals(values, means)
        scale = mission.model.standardised(transformed, mission.question, has_prior_mean=means is not None)
        start = replace(model.hyperparameters, scale=scale)
        rng = stream(mission.seed, "score", model.readings)
        readings = mission.world.domain, sites, values, noises
        return weighted_around(start, mission.model, *readings, rng, means=means, at_peak=False)

    def _begun(self, weighted: WeightedHyperparameters, n: int) -> _Average:
        """Return the average after the first n readings, to which the set's weights refer."""
        model, mission = self._model, self._model.mission
        believed = model.believed[:n].copy()
        sites, values, noises = (array[:n][believed] for array in model.arrays())

        def surface(h: Hyperparameters) -> Surface:
            mean = None if model.mean is None else PriorMean(model.mean, h.scale)
            belief = Belief(h.kernel, prior_mean=mean)
            if len(values):
                noise = h.noise_to_model(noises, values)
                belief = belief.condition_on(sites, h.scale.to_model(values), noise)
            return Surface(belief, mission.world.domain.sites, mission.model.memory_bytes)

        averaged = AveragedSurface([surface(h) for h in weighted.members], weighted.weights)
        return _Average(weighted, believed, averaged)

    def _catch_up(self, average: _Average) -> None:
        """Add the readings that an average lacks."""
        model, members = self._model, average.weighted.members
        new = np.flatnonzero(model.believed[len(average.believed) :]) + len(average.believed)
        if len(new):
            sites, values, noises = (array[new] for array in model.arrays())
            by_member = [h.noise_to_model(noises, values) for h in members]
            average.surface.append(sites, members[0].scale.to_model(values), by_member)
        average.believed = model.believed.copy()
