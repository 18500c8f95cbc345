"""What may hide where nobody has looked, whatever the model says: how likely it is, and how much better.

A model that learns vouches for places between readings with a length scale that it learned elsewhere. This
asks the distances alone: could a patch of high values lie there, unnoticed by all readings? See
:mod:`fieldbo.belief.covering`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.confidence import AnySurface
from fieldbo.belief.covering import MOST_AXES, Covering, Readings, one_each, sweep_spacing
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
    best : float
        The best reading, in model units.
    sd : float
        Standard deviation of a reading, in model units.
    """

    share: float
    width: float
    chance: float
    excess: float
    best: float
    sd: float

    @property
    def is_told(self) -> bool:
        """Whether the readings tell by how much: where all are alike, they do not."""
        return self.excess > _STANDS_OUT * self.sd

    def to_plain(self) -> dict[str, float]:
        """Return what a summary says of it."""
        return {"unseen": self.share, "unseen_width": self.width, "chance_unseen": self.chance}


def unseen(mission: Mission, surface: AnySurface) -> Unseen | None:
    """Return what may hide where nobody has looked, given the belief from which results are stated.

    None if the model is known, which vouches for all places; without readings; where queries leave variables
    free; and with more than three axes.
    """
    domain, heaviest = mission.world.domain, surface
    if isinstance(surface, AveragedSurface):
        heaviest = surface.surfaces[int(np.argmax(surface.weights))]
    assert isinstance(heaviest, Surface)
    belief = heaviest.belief
    known = mission.model.every is None
    if known or not belief.size or domain.control_sets or domain.dimension > MOST_AXES:
        return None
    sd = float(np.sqrt(np.median(belief.noise_variances)))
    readings = Readings.of(domain, belief.sites, belief.values, belief.noise_variances, sd)
    covering = Covering(domain, readings, spacing_of(mission, readings.size))
    hidden = covering.shares + covering.leads(with_best=True)
    chance = float(hidden @ (1.0 - covering.covered))
    excess = covering.tail * float(np.log(chance / _MISSED)) if chance > _MISSED else 0.0
    # A patch of the spacing's width that begins beyond it leaves less than half of all patches noticed.
    share = float(covering.shares @ (covering.covered < 0.5))
    return Unseen(share, covering.spacing, min(1.0, chance), excess, covering.best, sd)


def spacing_of(mission: Mission, readings: int) -> float:
    """Return the spacing of a sweep that would take all that the vehicles may spend, in `yardsticks`.

    Where costs are unknown, that of a sweep with as many readings.
    """
    domain, cost = mission.world.domain, mission.declared_cost
    if cost is None:
        return sweep_spacing(domain, one_each, float(readings))
    budget = sum((spec.battery - spec.reserve) * spec.batteries for spec in mission.vehicles)
    spacing = sweep_spacing(domain, cost.to, budget)
    if mission.max_steps is not None:
        most = float(mission.max_steps)
        spacing = max(spacing, sweep_spacing(domain, one_each, most))
    limits = [spec.time_limit_s for spec in mission.vehicles]
    if None not in limits:
        seconds = float(sum(limit for limit in limits if limit is not None))
        spacing = max(spacing, sweep_spacing(domain, cost.duration_s, seconds))
    return spacing
