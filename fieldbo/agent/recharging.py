"""When a vehicle goes home for another battery, and what it could afford with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.affordability import Affordability
from fieldbo.agent.ledger import Ledger
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.messages import GoHome

if TYPE_CHECKING:
    from fieldbo.agent.agent import Agent

WHY = "recharge"
"""Key of an order's `why` that holds the number of the battery with which the vehicle is to go on."""

_TRIES = 3
"""How often a vehicle is sent home for a battery before that is given up."""


def is_worthwhile(agent: Agent, vehicle: int) -> bool:
    """Return True if another battery is left, and would afford a query in the time that is left.

    An unused battery is not exchanged: its policy does not want what it affords.
    """
    state = agent.vehicles[vehicle]
    home = state.spec.home
    if not state.batteries_left or home is None or state.recharge_denied or agent.at_limit:
        return False
    orders = state.ledger.entries.values()
    used = state.ledger.spent > 0 or any(entry.outstanding or entry.paid > 0 for entry in orders)
    if not used and np.array_equal(state.end, home):
        return False
    after, sites = after_recharge(state), _sites(agent, home)
    return any(
        after.affordable(sites, controls, level).any()
        for controls in agent.domain.control_masks
        for level in agent.mission.levels
    )


def short_of(agent: Agent, state: VehicleState) -> str | None:
    """Return the limit that rules out most sites, with another battery if one is left; None without any."""
    sites, sets = agent.domain.sites[~agent.rejected], agent.domain.control_masks
    if not len(sites):
        return None
    if state.batteries_left and not state.recharge_denied:
        limit = after_recharge(state).short_of(sites, sets)
        if limit is not None:
            return limit
    return state.short_of(sites, sets)


def can_go_home(agent: Agent, state: VehicleState) -> bool:
    """Return True if a vehicle can be sent home for a battery, and was not yet in vain several times."""
    trips = [
        key
        for key in state.ledger.entries
        if isinstance(agent.issued[key].order, GoHome) and key not in agent.withdrawn
    ]
    return len(trips) < _TRIES and state.affordable_home


def after_recharge(state: Affordability) -> Affordability:
    """Return what a vehicle could afford if it did its queue, went home, and changed its battery."""
    spec, limits = state.spec, {limit.name: limit for limit in state.limits}
    assert spec.home is not None
    assert spec.recharge is not None
    after = Affordability(spec, state.cost, time_s=state.time_s)
    after.position = spec.home
    after.ledger = Ledger(spec.battery, latest=state.ledger.latest)
    if (time := limits.get("time")) is not None:
        left = time.left - float(time.back(state.end[None])[0]) - spec.recharge.takes_s
        after.time_ledger = Ledger(left * (1.0 + state.margin_s), latest=state.time_ledger.latest)
    return after


def _sites(agent: Agent, home: Array) -> Array:
    """Return the sites (N, d) that may be proposed, and home in a box, where any place may be."""
    sites = agent.domain.sites[~agent.rejected]
    return np.vstack([sites, home]) if agent.domain.continuous else sites
