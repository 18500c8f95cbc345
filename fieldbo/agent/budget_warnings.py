"""What a mission's battery and time limit cannot afford, as warnings before the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.affordability import Affordability
from fieldbo.clock import duration_text
from fieldbo.costs.base import Limit
from fieldbo.costs.cells import Modular
from fieldbo.messages import Query
from fieldbo.mission.mission import Mission


def unaffordable(mission: Mission, initial: Sequence[Query]) -> list[str]:
    """Return a warning for each limit that is too small for any reading, for an initial one, or for a choice.

    Parameters
    ----------
    mission : Mission
    initial : sequence of Query
        The queries before the policy takes over.
    """
    if not mission.world.cost.known:
        return []
    limits = Affordability(mission.vehicles[0], mission.world.cost).limits
    warnings = [_Start.of(mission, limit, initial).warning() for limit in limits]
    return [warning for warning in warnings if warning is not None]


@dataclass
class _Start:
    """A mission after its initial readings, as far as one limit affords them.

    Attributes
    ----------
    position : (d,) array
        The end of the last affordable initial reading.
    paid : int
        Number of affordable initial readings.
    left : float
        What is left of the limit after them.
    """

    mission: Mission
    limit: Limit
    initial: Sequence[Query]
    position: Array
    paid: int
    left: float

    @classmethod
    def of(cls, mission: Mission, limit: Limit, initial: Sequence[Query]) -> _Start:
        position, spent, paid = mission.vehicles[0].start, 0.0, 0
        for query in initial:
            site = query.site[None]
            going = float(limit.going(position, site, query.controls, query.level)[0])
            if spent + going + float(limit.back(site)[0]) > limit.left:
                break
            position, spent = np.where(np.isnan(query.site), position, query.site), spent + going
            paid += 1
        return cls(mission, limit, initial, position, paid, limit.left - spent)

    def warning(self) -> str | None:
        """Return what the limit is too small for; None if it affords every choice."""
        domain, count = self.mission.world.domain, len(self.initial)
        sites = np.vstack([domain.sites, self.position]) if domain.continuous else domain.sites
        sets, name = _control_sets(self.mission), self._name
        level = min(self.mission.levels, key=lambda k: self._needed(sites, k, sets))
        several = self.mission.world.sensor.settings > 1
        if self._needed(sites, level, sets) > self.left:
            after = f" after {'it' if self.paid == 1 else 'them'}" if self.paid else ""
            return (
                f"{name} is {self._enough()}: the cheapest reading{after}"
                f"{f', at level {level},' if several else ''} takes {self._price(sites, level, sets)}"
            )
        if count and not self.paid:
            first = self.initial[0]
            price = self._price(self.mission.vehicles[0].start[None], first.level, [first.controls])
            return (
                f"{name} is not enough for the {'initial' if count == 1 else 'first'} reading at the start, "
                f"which takes {price}{f' at level {first.level}' if several else ''}: the policy begins "
                "without it"
            )
        if self.paid < count:
            return (
                f"{name} is enough for only {self.paid} of the {count} initial readings; the policy then "
                "takes over"
            )
        expensive = [
            f"{choice}, which takes {self._price(where, level, [controls])}"
            for choice, where, controls in _choices(self.mission, sites, self.position)
            if self._needed(where, level, [controls]) > self.left
        ]
        if not expensive:
            return None
        begun = f"after the initial reading{'s' if count > 1 else ''}, " if count else ""
        return f"{begun}{name} is not enough for {', nor for '.join(expensive)}"

    @property
    def _name(self) -> str:
        spec = self.mission.vehicles[0]
        if self.limit.name == "time":
            return f"the time limit of {duration_text(spec.time_limit_s or 0.0)}"
        return f"the battery of {spec.battery:g} {self.mission.world.cost_unit}"

    def _enough(self) -> str:
        """Return in words how many initial readings are affordable, if no later one is."""
        count = len(self.initial)
        if not self.paid:
            return "not enough for any reading"
        if self.paid < count:
            return f"enough for only {self.paid} of the {count} initial readings, and none by the policy"
        return f"only enough for the {'initial reading' if count == 1 else f'{count} initial readings'}"

    def _needed(self, sites: Array, level: int, sets: Sequence[Mask | None]) -> float:
        """Return the price of the cheapest of `sites` (N, d) and control `sets`, including the trip home."""
        going = np.min([self.limit.going(self.position, sites, on, level) for on in sets], axis=0)
        return float((going + self.limit.back(sites)).min())

    def _price(self, sites: Array, level: int, sets: Sequence[Mask | None]) -> str:
        """Return the same in words, including margin and reserve."""
        spec = self.mission.vehicles[0]
        unit, reserve = self.mission.world.cost_unit, spec.reserve
        if self.limit.name == "time":
            reserve = 0.0
        parts = {"the trip home": spec.home is not None, "margin": spec.margin, "reserve": reserve}
        included = " and ".join(part for part, present in parts.items() if present)
        needed = self._needed(sites, level, sets) * (1.0 + spec.margin) + reserve
        price = duration_text(needed) if self.limit.name == "time" else f"{needed:.4g} {unit}"
        return f"{price} with {included}" if included else price


def _control_sets(mission: Mission) -> tuple[Mask | None, ...]:
    """Return the control sets that the policy can choose; None sets all variables."""
    return mission.world.domain.control_masks if mission.policy.leaves_free else (None,)


def _choices(mission: Mission, sites: Array, position: Array) -> list[tuple[str, Array, Mask | None]]:
    """Return the choices in a factory cell: a change of a module's settings, or a play of a control set.

    Each as words, sites (N, d) from `position` (d,), and controls.
    """
    domain, cost = mission.world.domain, mission.world.cost
    if isinstance(cost, Modular):
        elsewhere = np.where(position == domain.low, domain.high, domain.low)
        masks = [np.isin(np.arange(domain.dimension), columns) for columns in cost.columns[:-1]]
        return [
            (f"a change of {module.name}", np.where(mask, elsewhere, position)[None], None)
            for module, mask in zip(cost.modules[:-1], masks, strict=True)
        ]
    if not mission.policy.leaves_free:
        return []
    return [(f"a play of {s.name}", sites, s.controls) for s in domain.control_sets]
