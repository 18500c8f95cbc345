"""Which places nobody has inspected: those farther from any reading than the readings can speak for.

A model says how sure it is of each place, but a model that learns vouches for places it has never been near
with a length scale that it learned elsewhere. A place counts as inspected if the readings have narrowed what
the model expects there and, where the model learns, if one of them is near enough by distance alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.unseen import spacing_of
from fieldbo.belief.confidence import AnySurface
from fieldbo.belief.covering import MOST_AXES, nearest, reach_of, yardsticks
from fieldbo.belief.model import ModelKernel
from fieldbo.belief.surface import Surface
from fieldbo.belief.trend import WithUnknownLevel
from fieldbo.mission.mission import Mission

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
    if mission.model.every is None or domain.control_sets or domain.dimension > MOST_AXES:
        return np.zeros(len(places))
    if not belief.size:
        return np.full(len(places), np.inf)
    swept = int(np.count_nonzero(domain.extent > 0))  # axes of a cell, whose corners are farthest
    reaches = [
        0.5 * np.sqrt(max(1, swept)) * spacing_of(mission, belief.size) * yardsticks(domain),
        reach_of(mission.model, domain, mission.question),
    ]
    if _met(belief.values, threshold):
        reaches.append(_learned(surface))
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
    known = mission.model.every is None or domain.control_sets or domain.dimension > MOST_AXES
    if known or far.all() or not belief.size or _met(belief.values, threshold):
        return np.zeros(len(places), dtype=bool)
    units = yardsticks(domain)
    away = np.where(far, -1.0, nearest(belief.sites / units, places / units))
    centre = int(np.argmax(away))
    return np.asarray(np.linalg.norm((places - places[centre]) / units, axis=1) < away[centre])


def _learned(surface: AnySurface) -> Array:
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
