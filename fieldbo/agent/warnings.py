"""What a user should know of a mission besides what it finds: of its sites, its orders and its readings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fieldbo.domain.domain import Domain
from fieldbo.messages import Event, Observation
from fieldbo.mission.mission import Mission
from fieldbo.policies.contract import Policy


def of_mission(mission: Mission) -> tuple[str, ...]:
    """Return what can be said before a mission starts, apart from what its policy says of itself."""
    said = (_unreachable(mission), _dear_batches(mission), _thin_margin(mission))
    return tuple(one for one in said if one is not None)


def of_readings(domain: Domain, history: Sequence[Event]) -> tuple[str, ...]:
    """Return what is to be said of readings beyond the ends of a domain's axes."""
    read = [event.sites for event in history if isinstance(event, Observation)]
    sites = np.concatenate([np.empty((0, domain.dimension)), *read])
    beyond = domain.beyond(sites)
    if not beyond.any():
        return ()
    names = ", ".join(domain.axes[j].name for j in np.flatnonzero(beyond.any(axis=0)))
    count = np.count_nonzero(beyond.any(axis=1))
    return (
        f"readings beyond the ends of {names}: {count} of {len(sites)}; they are taken as told, and what "
        "is asked for stays within",
    )


def _unreachable(mission: Mission) -> str | None:
    left_out, start = mission.unreachable, "start" if len(mission.crew) == 1 else "starts"
    if not left_out:
        return None
    domain = mission.world.domain
    behind = ", beyond obstacles," if domain.obstacles else ""
    return (
        f"{left_out} of {left_out + domain.size} sites can't be reached from the {start}{behind} and are "
        "left out"
    )


def _dear_batches(mission: Mission) -> str | None:
    start, sites, cost = mission.crew[0].start, mission.world.domain.sites, mission.declared_cost
    chooses = type(mission.policy).suggest_batch is not Policy.suggest_batch
    if mission.batch == 1 or not chooses or cost is None or not np.any(cost.travel(start, sites)):
        return None
    return (
        f"batches of {mission.batch} where a move's price depends on the one before: each query is "
        "chosen at its cost from where its batch begins, and the batch is carried out in the order of "
        "the shortest way"
    )


def _thin_margin(mission: Mission) -> str | None:
    """Warn of moves that can be dearer than the margin allows for; no live vehicle meets conditions."""
    world, crew = mission.world, mission.crew
    margin = min(one.margin for one in crew)
    if world.disturbances is None or world.live or margin >= world.disturbances.worst:
        return None
    worst, homes = world.disturbances.worst, any(one.home is not None for one in crew)
    enough = math.ceil(1000 * worst - 1e-9) / 1000
    return (
        f"moves can be {100 * worst:.3g}% dearer than declared ({world.disturbances.describe()}), and the "
        f"margin is {100 * margin:.3g}%: the battery may be overdrawn"
        f"{' on the way home' if homes else ''}; to rule that out, set agent.margin = {enough:g}"
    )
