"""Warnings about a mission: unreachable sites, batches, thin margins, and readings out of range."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from shapely import MultiPolygon

from fieldbo.domain.domain import Domain
from fieldbo.domain.places import compared
from fieldbo.messages import Event, Observation
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
