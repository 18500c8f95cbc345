"""The belief from which results are stated: averaged over what else explains the readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.streams import stream
from fieldbo.belief.averaged import MANY, AveragedSurface, WeightedHyperparameters, weighted_around
from fieldbo.belief.hyperparameters import Hyperparameters
from fieldbo.belief.kernels import Indices
from fieldbo.belief.mean_functions import MeanFunction, PriorMean
from fieldbo.belief.posterior import Belief
from fieldbo.belief.readings import NOISE_FLOOR, Data
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.mission.mission import Mission

_WORN = 0.4  # share of the effective number of sets, as drawn, below which new ones are drawn
_ALONE = 1.5  # effective number below which a single set has the say, if there were more at first
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit of the model.

    Attributes
    ----------
    after : int
        Number of observations before it.
    asks : int
        Number of orders issued before it; determines its random stream.
    hyperparameters : Hyperparameters
    weighted : WeightedHyperparameters or None
        What results average over from then on; None to keep the set of an earlier fit.
    """

    after: int
    asks: int
    hyperparameters: Hyperparameters
    weighted: WeightedHyperparameters | None = None


class Learning(Protocol):
    """What an average takes of the model as it learns, an `OnlineModel`."""

    mission: Mission
    mean: MeanFunction | None
    fits: list[Fit]
    hyperparameters: Hyperparameters
    believed: Mask

    @property
    def averages(self) -> bool: ...

    @property
    def surface(self) -> Surface: ...

    def data(self, which: Indices) -> Data: ...

    def to_fit(self, n: int) -> Indices: ...

    def fitted_to(self, data: Data, start: Hyperparameters, rng: np.random.Generator) -> Hyperparameters: ...

    def readings_of(self, observations: int) -> int: ...

    def ends_after(self, n: int) -> list[int]: ...


class Stated(NamedTuple):
    """The belief from which results are stated: a surface over the sites, and the scale of its units."""

    surface: Surface | AveragedSurface
    scale: ValueScale


def drawn_at(first: int, n: int) -> int:
    """Return after how many of n readings hyperparameters were last drawn, if they were after the `first`.

    They are drawn anew when the readings have grown by a quarter, later by a half: weights of a few sets that
    are multiplied by many densities gather on one of them. A surprise makes them do so at once; see
    `_Average.is_worn`.

    Examples
    --------
    >>> drawn_at(5, 7), drawn_at(40, 59), drawn_at(40, 60)
    (7, 40, 60)
    """
    while (later := first + max(1, first // (4 if first < MANY else 2))) <= n:
        first = later
    return first


@dataclass
class _Average:
    """An averaged belief.

    Attributes
    ----------
    recorded : Fit or None
        The fit with whose recorded hyperparameters it began.
    fit : Fit or None
        The fit around which its hyperparameters were drawn.
    drawn_at : int
        Number of readings at which they were.
    weighted : WeightedHyperparameters
    believed : (n,) bool array
        Which of its readings it believes.
    surface : AveragedSurface
    """

    recorded: Fit | None
    fit: Fit | None
    drawn_at: int
    weighted: WeightedHyperparameters
    believed: Mask
    surface: AveragedSurface

    def lacks_only_new(self, model: Learning, recorded: Fit | None) -> bool:
        """Return True if it only lacks readings that the model took since."""
        same = self.recorded is recorded and self.fit is _fit_before(model, self.drawn_at)
        return same and np.array_equal(model.believed[: len(self.believed)], self.believed)

    @property
    def is_worn(self) -> bool:
        """Whether readings have made its weights gather on few of its hyperparameters."""
        drawn = _effective_number(self.weighted.weights)
        return _effective_number(self.surface.weights) < max(_WORN * drawn, min(_ALONE, drawn) - _ROUNDING)


def _effective_number(weights: Array) -> float:
    """Return the effective number of sets of hyperparameters with weights (K,) that sum to 1 (Kish 1965)."""
    return float(1.0 / np.sum(weights**2))


class Averaging:
    """Averages the belief of an online model over weighted hyperparameters.

    Readings are added when the average is next asked for, and change the weights. Hyperparameters are
    recorded with fits; those that are drawn between fits follow from the readings and the seed.
    """

    def __init__(self) -> None:
        self._average: _Average | None = None

    def stated(self, model: Learning) -> Stated:
        """Return the belief from which a model's results are stated.

        Known hyperparameters are not averaged. Before the first fit, they are drawn from their prior.
        """
        if not model.averages or not model.believed.any():
            return Stated(model.surface, model.hyperparameters.scale)
        recorded = next((fit for fit in reversed(model.fits) if fit.weighted is not None), None)
        average = self._average
        if average is None or not average.lacks_only_new(model, recorded):
            n = 0 if recorded is None else model.readings_of(recorded.after)
            average = _begin(model, recorded, max(n, int(np.argmax(model.believed)) + 1))
        # Observation by observation: how often the average is asked for must not matter.
        for n in model.ends_after(len(average.believed)):
            _add(model, average, n)
            if average.is_worn or drawn_at(average.drawn_at, n) > average.drawn_at:
                average = _begin(model, recorded, n, anew=average.is_worn)
        self._average = average
        return Stated(average.surface, average.weighted.members[0].scale)

    def drawn_at(self, model: Learning) -> int:
        """Return after how many readings the present hyperparameters were drawn."""
        self.stated(model)
        return 0 if self._average is None else self._average.drawn_at


def _fit_before(model: Learning, n: int) -> Fit | None:
    """Return the latest fit to at most n readings."""
    return next((fit for fit in reversed(model.fits) if model.readings_of(fit.after) <= n), None)


def _draw(model: Learning, fit: Fit | None, n: int, anew: bool) -> WeightedHyperparameters:
    """Return the hyperparameters recorded with a fit to n readings, or draw some around the fit or the prior.

    With `anew`, fit again first, and draw around that: what surprised the average surprised the fit, too.
    """
    mission = model.mission
    if fit is not None and fit.weighted is not None and model.readings_of(fit.after) == n:
        return fit.weighted
    among = model.to_fit(n)
    data, present = model.data(among[model.believed[among]]), model.hyperparameters
    rng, domain = stream(mission.seed, "score", n), mission.world.domain
    if fit is None:
        _, _, expected, uncertainty = mission.model.transformed(present, mission.question, data)
        scale = mission.model.standardised(
            expected, mission.question, uncertainty=uncertainty, has_prior_mean=data.means is not None
        )
        present = replace(present, scale=scale)
    elif anew:
        present = model.fitted_to(data, fit.hyperparameters, rng)
    else:
        present = fit.hyperparameters
    return weighted_around(present, mission.model, domain, data, rng, at_peak=fit is not None)


def _begin(model: Learning, recorded: Fit | None, n: int, anew: bool = False) -> _Average:
    """Return the average after the first n readings, at which its hyperparameters are drawn."""
    mission, fit = model.mission, _fit_before(model, n)
    weighted = _draw(model, fit, n, anew)
    believed = model.believed[:n].copy()
    data = model.data(np.flatnonzero(believed))
    beliefs = [
        Belief(kernel, prior_mean=None if model.mean is None else PriorMean(model.mean, h.scale))
        for kernel, h in zip(weighted.kernels(), weighted.members, strict=True)
    ]
    y, by_member = _take_readings(model, weighted, beliefs, data)
    pairs = zip(beliefs, by_member, strict=True)
    beliefs = [belief.condition_on(data.sites, y, v) for belief, v in pairs]
    surfaces = [Surface(b, mission.world.domain.sites, mission.model.memory_bytes) for b in beliefs]
    averaged = AveragedSurface(surfaces, weighted.weights)
    return _Average(recorded, fit, n, weighted, believed, averaged)


def _add(model: Learning, average: _Average, n: int) -> None:
    """Add readings to an average that has those before them, up to the n-th."""
    new = len(average.believed) + np.flatnonzero(model.believed[len(average.believed) : n])
    if len(new):
        data = model.data(new)
        beliefs = [surface.belief for surface in average.surface.surfaces]
        y, by_member = _take_readings(model, average.weighted, beliefs, data)
        average.surface.append(data.sites, y, by_member)
    average.believed = model.believed[:n].copy()


def _take_readings(
    model: Learning, weighted: WeightedHyperparameters, beliefs: Sequence[Belief], data: Data
) -> tuple[Array, list[Array]]:
    """Return readings in model units: values (k,), and noise variances (k,) as each member takes them.

    Readings that are not normal are taken as they are given the heaviest member's belief: likelihoods can
    only be compared if all members have the same readings.
    """
    sites, values, noises = data.sites, data.values, data.noise_variances
    observed = model.mission.model.observation_model(data.sensor)
    heaviest = int(np.argmax(weighted.weights))
    h, belief = weighted.members[heaviest], beliefs[heaviest]
    y, v = observed.in_model_units(
        h, values, noises, lambda _: (belief.mean(sites), belief.covariance(sites, sites))
    )
    normal = observed.normal(h, values, noises)
    normal_noise, normal_values = observed.variances(noises, values)[normal], values[normal]
    by_member = [v.copy() for _ in weighted.members]
    # Repeated exact readings are taken to differ by the least noise: it must not depend on the member.
    least = NOISE_FLOOR * max(float(b.kernel.diagonal(sites).max()) for b in beliefs)
    for other, variances in zip(weighted.members, by_member, strict=True):
        variances[normal] = np.maximum(other.noise_to_model(normal_noise, normal_values), least)
    return y, by_member
