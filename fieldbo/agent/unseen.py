"""What may hide where nobody has looked, whatever the model says: how likely it is, and how much better.

A model that learns vouches for places between readings with a length scale that it learned elsewhere. This
asks the distances alone: could a patch of high values lie there, unnoticed by all readings? See
:mod:`fieldbo.belief.covering`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.confidence import AnySurface
from fieldbo.belief.covering import MOST_AXES, Covering, Price, Readings, one_each, scarcest_spacing
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
    best: float
    sd: float

    @property
    def is_told(self) -> bool:
        """Whether the readings tell by how much: where all are alike, they do not."""
        return self.excess > _STANDS_OUT * self.sd

    def chance_beyond(self, excess: float) -> float:
        """Return the probability that something exceeds the best reading by more than this (model units).

        Examples
        --------
        >>> there = Unseen(share=0.3, width=8.0, chance=0.4, excess=2.1, tail=1.0, best=3.0, sd=0.1)
        >>> round(there.chance_beyond(0.0), 3), round(there.chance_beyond(there.excess), 3)
        (0.4, 0.049)
        """
        return self.chance * float(np.exp(-excess / self.tail)) if self.chance else 0.0

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
    excess = covering.tail * float(np.log(chance / _MISSED)) if chance > _MISSED else 0.0
    # A patch of the spacing's width that begins beyond it leaves less than half of all patches noticed.
    share = float(covering.shares @ (covering.covered < 0.5))
    return Unseen(
        share,
        covering.spacing,
        min(1.0, chance),
        excess,
        covering.tail,
        covering.best,
        covering.readings.sd,
    )


def hidden_at_sites(mission: Mission, surface: AnySurface) -> Array | None:
    """Return the probability (N,) that something higher lies at each site, unseen; None as for `unseen`."""
    covering = _covering(mission, surface)
    return None if covering is None else covering.hidden


def _covering(mission: Mission, surface: AnySurface) -> Covering | None:
    """Return what the readings of a belief cover; None as for `unseen`."""
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
