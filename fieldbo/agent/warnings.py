"""Warnings about a mission: unreachable sites, batches, thin margins, and readings out of range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from shapely import MultiPolygon

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.affordability import Affordability
from fieldbo.clock import duration_text
from fieldbo.costs.base import Limit
from fieldbo.costs.cells import Modular
from fieldbo.domain.domain import Domain
from fieldbo.domain.places import compared
from fieldbo.messages import Event, Observation, Query
from fieldbo.mission.mission import Mission
from fieldbo.policies.contract import Policy
from fieldbo.world.world import World


def of_mission(mission: Mission) -> tuple[str, ...]:
    """Return the warnings that are known before a mission starts, except its policy's own."""
    warnings = (
        _undetectable(mission),
        _unreachable(mission),
        _earlier_outside(mission),
        _expensive_batches(mission),
        _thin_margin(mission),
    )
    return tuple(warning for warning in warnings if warning is not None)


def _undetectable(mission: Mission) -> str | None:
    """Return a warning if readings can't tell on which side of the threshold a low value lies."""
    below, threshold = mission.world.sensor.below, mission.question.centre
    if below is None or threshold is None or threshold >= below:
        return None
    limit, level = (mission.world.quantity.amount(value) for value in (below, threshold))
    return (
        f"the threshold, {level}, lies below the sensor's limit of detection, {limit}: a reading below the "
        "limit hardly says on which side of the threshold the value lies. Raise question.threshold, or check "
        "sensor.below"
    )


def of_readings(world: World, history: Sequence[Event]) -> tuple[str, ...]:
    """Return the warnings about readings."""
    return (*_beyond(world.domain, history), *_undetected(world, history))


def _undetected(world: World, history: Sequence[Event]) -> tuple[str, ...]:
    """Return a warning if no reading exceeds the sensor's limit of detection."""
    below = world.sensor.below
    if below is None:
        return ()
    values = np.concatenate([np.empty(0), *(e.values for e in history if isinstance(e, Observation))])
    values = values[np.isfinite(values)]
    if not len(values) or values.max() > below:
        return ()
    limit, largest = world.quantity.amount(below), world.quantity.amount(float(values.max()))
    return (
        f"no reading exceeds the limit of detection, {limit}; the largest of {len(values)} is {largest}: "
        "check sensor.below",
    )


def _beyond(domain: Domain, history: Sequence[Event]) -> tuple[str, ...]:
    """Return a warning if readings were taken beyond the ends of a domain's axes."""
    read = [event.sites for event in history if isinstance(event, Observation)]
    sites = np.concatenate([np.empty((0, domain.dimension)), *read])
    beyond = domain.beyond(sites)
    if not beyond.any():
        return ()
    names = ", ".join(domain.axes[j].name for j in np.flatnonzero(beyond.any(axis=0)))
    count = np.count_nonzero(beyond.any(axis=1))
    return (
        f"{count} of {len(sites)} readings lie beyond the ends of {names}; they are modelled where they were "
        "taken, and queries stay within the axes",
    )


def _unreachable(mission: Mission) -> str | None:
    left_out, start = mission.unreachable, "start" if len(mission.vehicles) == 1 else "starts"
    if not left_out:
        return None
    domain = mission.world.domain
    in_parts = isinstance(mission.world.domain.outline, MultiPolygon)
    cause = " because of obstacles" if domain.obstacles and not in_parts else ""
    return (
        f"{left_out} of {left_out + domain.size} sites can't be reached from the {start}{cause} and are "
        "left out"
    )


def _earlier_outside(mission: Mission) -> str | None:
    """Return a warning if earlier readings lie outside the domain."""
    inside = mission.prior.inside(mission.world.domain) if mission.prior is not None else np.ones(0, bool)
    if inside.all():
        return None
    outside = np.count_nonzero(~inside)
    verbs = ("lies", "is") if outside == 1 else ("lie", "are")
    return (
        f"{outside} of {len(inside)} earlier readings {verbs[0]} more than one spacing of the sites outside "
        f"the domain and {verbs[1]} left out"
    )


def _expensive_batches(mission: Mission) -> str | None:
    start, sites, cost = mission.vehicles[0].start, mission.world.domain.sites, mission.declared_cost
    chooses = type(mission.policy).suggest_batch is not Policy.suggest_batch
    if mission.batch == 1 or not chooses or cost is None or not np.any(cost.travel(start, sites)):
        return None
    return (
        f"batches of {mission.batch}, although the cost of a move depends on the one before: each query is "
        "chosen by its cost from where its batch begins, and the batch then follows the shortest route"
    )


def _thin_margin(mission: Mission) -> str | None:
    """Return a warning if simulated moves can overrun the margin."""
    world, vehicles = mission.world, mission.vehicles
    margin = min(spec.margin for spec in vehicles)
    if world.disturbances is None or world.live or margin >= world.disturbances.worst:
        return None
    worst, homes = world.disturbances.worst, any(spec.home is not None for spec in vehicles)
    enough = math.ceil(1000 * worst - 1e-9) / 1000
    more = compared(1 + worst, 1, "the declared cost")
    return (
        f"moves can cost {more} ({world.disturbances.describe()}), but the margin is {100 * margin:.6g}%: "
        f"the battery may be overdrawn{' on the trip home' if homes else ''}; to rule that out, set "
        f"agent.margin = {enough:g}"
    )


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
