"""What a model may not know: what hides where nobody has looked, and readings that it did not expect.

A model that learns vouches for places between readings with a length scale that it learned elsewhere. Three
questions therefore go by distances, too, whatever the model says:

- `unseen`: could a patch of high values lie between the readings, unnoticed, and how much higher could it be?
  See :mod:`fieldbo.belief.covering`.
- `inspection`: at which places have readings not narrowed what the model expects, or is none near enough?
- Which places are farther from a reading than the mission allows? See :mod:`fieldbo.agent.coverage`.

And `unexpected`: where do the readings of one place say something else than the model expected there?
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.confidence import MIDDLE90, AnySurface
from fieldbo.belief.covering import (
    MOST_AXES,
    SIZES,
    Covering,
    Price,
    Readings,
    nearest,
    one_each,
    reach_of,
    scarcest_spacing,
    yardsticks,
)
from fieldbo.belief.hyperparameters import ModelKernel, WithUnknownLevel
from fieldbo.belief.surface import Surface
from fieldbo.mission.mission import Mission

_STANDS_OUT = 3.0  # standard deviations of a reading: less is noise
_MISSED = 0.05  # probability that the stated excess is exceeded


class Unseen(NamedTuple):
    """What may hide where nobody has looked.

    Attributes
    ----------
    share : float
        Share of the domain that is farther from all readings than a patch is wide.
    width : float
        That width, in the unit of the axes, or as a share of them if they differ.
    chance : float
        Probability that the best place lies there.
    excess : float
        By how much something there may exceed the best reading, in model units; with a probability of 95%,
        it does not by more.
    tail : float
        Mean of that excess where there is one, in model units.
    met : int
        Patches that the readings have met, at least 1: the mean is known no better than from so many.
    best : float
        The best reading, in model units.
    sd : float
        Standard deviation of a reading, in model units.
    """

    share: float
    width: float
    chance: float
    excess: float
    tail: float
    met: int
    best: float
    sd: float

    @property
    def is_told(self) -> bool:
        """Whether the readings tell by how much: where all are alike, they do not."""
        expected = self.tail * np.log(max(self.chance / _MISSED, 1.0))
        return bool(expected > _STANDS_OUT * self.sd)

    def chance_beyond(self, excess: float) -> float:
        """Return the probability that something exceeds the best reading by more than this (model units).

        Examples
        --------
        >>> there = Unseen(share=0.3, width=8.0, chance=0.4, excess=3.7, tail=1.0, met=2, best=3.0, sd=0.1)
        >>> round(there.chance_beyond(0.0), 3), round(there.chance_beyond(there.excess), 3)
        (0.4, 0.049)
        """
        # Exponential, with a rate whose posterior after so many patches is a gamma distribution.
        return self.chance * (1.0 + max(0.0, excess) / (self.met * self.tail)) ** -self.met

    def to_plain(self) -> dict[str, float]:
        """Return what a summary says of it."""
        return {"unseen": self.share, "unseen_width": self.width, "chance_unseen": self.chance}


def unseen(mission: Mission, surface: AnySurface) -> Unseen | None:
    """Return what may hide where nobody has looked, given the belief from which results are stated.

    None if the model is known, which vouches for all places; without readings; where queries leave variables
    free; and with more than three axes.
    """
    covering = _covering(mission, surface)
    if covering is None:
        return None
    hidden = covering.shares + covering.leads(with_best=True)
    chance = float(hidden @ (1.0 - covering.covered))
    met = max(1, int(np.count_nonzero(covering.noticed)))
    excess = covering.tail * met * ((chance / _MISSED) ** (1.0 / met) - 1.0) if chance > _MISSED else 0.0
    # A patch of the spacing's width that begins beyond it leaves less than half of all patches noticed.
    share = float(covering.shares @ (covering.covered < 0.5))
    return Unseen(
        share,
        covering.spacing,
        min(1.0, chance),
        excess,
        covering.tail,
        met,
        covering.best,
        covering.readings.sd,
    )


def hidden_at_sites(mission: Mission, surface: AnySurface) -> Array | None:
    """Return the probability (N,) that something higher lies at each site, unseen; None as for `unseen`."""
    covering = _covering(mission, surface)
    return None if covering is None else covering.hidden


def unnoticed(mission: Mission, surface: AnySurface, rng: np.random.Generator, draws: int) -> Mask | None:
    """Return patches (N, draws) of sites that no reading would have noticed, one in each draw or none.

    Each is a disc around a random site, with a radius between half and twice the spacing of a sweep. If a
    reading lies in it, it would have been noticed, and the draw has none. None as for `unseen`.
    """
    from scipy.spatial import cKDTree

    domain, belief = mission.world.domain, surface.belief
    if vouches(mission) or not belief.size:
        return None
    unit = yardsticks(domain)
    radii = 0.5 * spacing_of(mission, belief.size) * SIZES ** rng.random(draws)
    middles = domain.sites[rng.integers(domain.size, size=draws)] / unit
    hidden = np.flatnonzero(nearest(belief.sites / unit, middles) > radii)
    sites = cKDTree(domain.sites / unit)
    patches = np.zeros((domain.size, draws), dtype=bool)
    for k in hidden:
        patches[sites.query_ball_point(middles[k], radii[k]), k] = True
    return patches


def vouches(mission: Mission) -> bool:
    """Return whether the model alone speaks for all places: it is known, or distances say nothing of them."""
    domain = mission.world.domain
    return mission.model.every is None or bool(domain.control_sets) or domain.dimension > MOST_AXES


def _covering(mission: Mission, surface: AnySurface) -> Covering | None:
    """Return what the readings of a belief cover; None as for `unseen`."""
    domain, heaviest = mission.world.domain, surface
    if isinstance(surface, AveragedSurface):
        heaviest = surface.surfaces[int(np.argmax(surface.weights))]
    assert isinstance(heaviest, Surface)
    belief = heaviest.belief
    if vouches(mission) or not belief.size:
        return None
    sd = float(np.sqrt(np.median(belief.noise_variances)))
    readings = Readings.of(domain, belief.sites, belief.values, belief.noise_variances, sd)
    return Covering(domain, readings, spacing_of(mission, readings.size))


def spacing_of(mission: Mission, readings: int) -> float:
    """Return the spacing of a sweep that would take all that the vehicles may spend, in `yardsticks`.

    Where costs are unknown, that of a sweep with as many readings. The least size stands for it, if the
    question names one.
    """
    domain, cost = mission.world.domain, mission.declared_cost
    if cost is None:
        return scarcest_spacing(domain, mission.question, [(one_each, float(readings))])
    budget = sum((spec.battery - spec.reserve) * spec.batteries for spec in mission.vehicles)
    supplies: list[tuple[Price, float]] = [(cost.to, budget)]
    if mission.max_steps is not None:
        supplies.append((one_each, float(mission.max_steps)))
    limits = [spec.time_limit_s for spec in mission.vehicles]
    if None not in limits:
        supplies.append((cost.duration_s, float(sum(limit for limit in limits if limit is not None))))
    return scarcest_spacing(domain, mission.question, supplies)


SPREAD = 0.7
"""Share of the standard deviation without readings from which on a place is not inspected."""

_MET = 3  # readings on each side of the threshold from which on the model has met what is asked for


class Inspection(NamedTuple):
    """How far each of some places is from having been inspected.

    Attributes
    ----------
    spread : (N,) array
        Standard deviation, relative to `SPREAD` of that without readings.
    distance : (N,) array
        From the nearest reading, relative to how far the readings vouch for; 0 if the model is known.
    """

    spread: Array
    distance: Array

    @property
    def open(self) -> Array:
        """At least 1 where a place is not inspected, (N,)."""
        return np.maximum(self.spread, self.distance)

    @property
    def lacking(self) -> Mask:
        """The places that are not inspected, (N,) bool."""
        return np.asarray(self.open >= 1.0)

    @property
    def far(self) -> Mask:
        """The places that are too far from all readings, however sure the model is of them, (N,) bool."""
        return np.asarray(self.distance >= 1.0)


def inspection(mission: Mission, surface: AnySurface, threshold: float) -> Inspection:
    """Return how far the candidates of a belief are from having been inspected.

    Parameters
    ----------
    mission : Mission
    surface : Surface or AveragedSurface
    threshold : float
        Of the level set, in model units.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(surface.variance / surface.process_variance)
    return Inspection(np.nan_to_num(ratio) / SPREAD, _distance(mission, surface, threshold))


def _distance(mission: Mission, surface: AnySurface, threshold: float) -> Array:
    """Return the distances (N,) from the nearest reading, relative to how far the readings vouch for.

    They vouch for places as far away as those that a sweep in square cells leaves, if it takes the whole
    battery; within half of a length scale that the model expects before any reading; and, once some lie on
    each side of the threshold, within one length scale that the model has learned.
    """
    domain, belief, places = mission.world.domain, surface.belief, surface.candidates
    if vouches(mission):
        return np.zeros(len(places))
    if not belief.size:
        return np.full(len(places), np.inf)
    swept = int(np.count_nonzero(domain.extent > 0))  # axes of a cell, whose corners are farthest
    reaches = [
        0.5 * np.sqrt(max(1, swept)) * spacing_of(mission, belief.size) * yardsticks(domain),
        reach_of(mission.model, domain, mission.question),
    ]
    if _met(belief.values, threshold):
        reaches.append(_find_learned_lengths(surface))
    gaps = [nearest(belief.sites / reach, places / reach) for reach in reaches]
    return np.asarray(np.min(gaps, axis=0))


def _met(values: Array, threshold: float) -> bool:
    """Return whether readings (n,) have met what is asked for: some lie on each side of the threshold."""
    above = int(np.count_nonzero(values >= threshold))
    return min(above, len(values) - above) >= _MET


def missable(mission: Mission, surface: AnySurface, threshold: float, far: Mask) -> Mask:
    """Return the largest patch (N,) that could be missed in inspected water: a circle without readings.

    There is none once the readings have met what is asked for, because the model has then learned how large
    patches are, and none if the model is known. Until then, the set may be as large as that circle, although
    each place in it is near enough to a reading to count as inspected.

    Parameters
    ----------
    mission : Mission
    surface : Surface or AveragedSurface
    threshold : float
        Of the level set, in model units.
    far : (N,) bool array
        The places that are too far from all readings; the circle's centre is none of them.
    """
    domain, belief, places = mission.world.domain, surface.belief, surface.candidates
    if vouches(mission) or far.all() or not belief.size or _met(belief.values, threshold):
        return np.zeros(len(places), dtype=bool)
    units = yardsticks(domain)
    away = np.where(far, -1.0, nearest(belief.sites / units, places / units))
    centre = int(np.argmax(away))
    return np.asarray(np.linalg.norm((places - places[centre]) / units, axis=1) < away[centre])


def _find_learned_lengths(surface: AnySurface) -> Array:
    """Return the learned length scales, the mean of their logarithms where several sets are averaged."""
    if isinstance(surface, Surface):
        return _lengths(surface)
    weights = surface.weights / surface.weights.sum()
    return np.asarray(np.exp(weights @ np.log([_lengths(each) for each in surface.surfaces])))


def _lengths(surface: Surface) -> Array:
    """Return the length scales of a belief's kernel."""
    kernel = surface.belief.kernel
    base = kernel.base if isinstance(kernel, WithUnknownLevel) else kernel
    assert isinstance(base, ModelKernel)
    return base.length_scales


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
