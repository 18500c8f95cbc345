"""Orders that lead home: for another battery, which is changed there, or because a vehicle's part is over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.affordability import Affordability
from fieldbo.agent.ledger import Ledger
from fieldbo.agent.phase import Phase, Turn
from fieldbo.agent.state import AgentState, Origin
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, GoHome, Recharge, Stop

WHY = "recharge"
"""Key of an order's `why` that holds the number of the battery with which the vehicle is to go on."""

_BATTERY_TRIPS = 3
"""How often a vehicle is sent home for one battery before fieldbo gives that up."""

_HOME_TRIES = 2
"""How often a vehicle may fail to come home at the end before fieldbo gives that up."""

_LOST_TRIPS = 5
"""How often a vehicle that can't be seen is sent home although its battery does not seem to suffice, and how
often a trip home may fail to leave."""

_TRIPS_IN_VAIN = 10
"""How many trips home of a vehicle may be lost that is seen where it was, before fieldbo gives that up."""


# -- at the end --------------------------------------------------------------------------------------------


def finish_or_recharge(agent: AgentState, vehicle: int, reason: EndReason) -> GoHome | Recharge | Stop:
    """End a vehicle's part, unless its battery is spent, and another one would afford a query."""
    if reason is EndReason.BATTERY_SPENT and is_worthwhile(agent, vehicle):
        return recharge(agent, vehicle)
    return finish(agent, vehicle, reason)


def finish(agent: AgentState, vehicle: int, reason: EndReason) -> GoHome | Stop:
    """Send a vehicle home if it has a home and is not there; otherwise stop it."""
    limit = short_of(agent, agent.vehicles[vehicle]) if reason is EndReason.BATTERY_SPENT else None
    reason = EndReason.TIME_LIMIT if limit == "time" else reason
    why = {**(agent.why or {}), "end_reason": reason.value}
    if limit is not None:
        why["limit"] = limit
    agent.endings[vehicle] = why
    return _home_or_stop(agent, vehicle, reason)


def _home_or_stop(agent: AgentState, vehicle: int, reason: EndReason) -> GoHome | Stop:
    """Send a vehicle home unless it has none or is there, for the reasons with which its part ended."""
    state = agent.vehicles[vehicle]
    home, agent.why = state.spec.home, agent.endings[vehicle]
    # An outstanding order may still be rejected, so a vehicle due to end at home may end elsewhere.
    left = any(not isinstance(order, Recharge) for order in state.adrift.values())
    adrift = left and reason is not EndReason.VEHICLE_LOST  # it may have left home
    if home is not None and (state.queue or adrift or not np.array_equal(state.position, home)):
        state.turn(Turn.SENT_HOME, reason)
        return agent.add(_trip(agent, vehicle, home), Origin.END)
    state.turn(Turn.STOPPED, reason)
    return Stop(reason)


def go_on_home(agent: AgentState, vehicle: int) -> GoHome | Stop:
    """Send a vehicle home whose part is over if it was not sent yet, or the trip has failed, or was lost."""
    state = agent.vehicles[vehicle]
    assert state.reason is not None
    if state.phase is Phase.ENDED or any(isinstance(order, GoHome) for order in state.queue):
        return Stop(state.reason)
    if vehicle not in agent.endings:
        return finish(agent, vehicle, state.reason)
    if state.out_of_touch:
        return _give_up(agent, vehicle, EndReason.VEHICLE_LOST)
    # Many trips were lost, and the vehicle is seen to be no nearer.
    stuck = state.trips_in_vain >= _TRIPS_IN_VAIN and state.heard_s > state.lost_s
    if stuck or state.home_tries >= _HOME_TRIES or _is_hopeless(state):
        return _give_up(agent, vehicle, state.reason)
    if state.unsent_trips >= _LOST_TRIPS:
        return _give_up(agent, vehicle, EndReason.VEHICLE_LOST)
    return _home_or_stop(agent, vehicle, state.reason)


def _is_hopeless(state: VehicleState) -> bool:
    """Return True if the battery is not enough for the trip home, and there is no reason to try it.

    A vehicle that was lost on its way there may be nearer than is known: it has nothing better to do than to
    go on. Nor has one for whose sake somebody has resumed the run.
    """
    if state.sent_again or state.affordable_home:
        return False
    return not 0 < state.trips_lost <= _LOST_TRIPS or state.heard_s > state.lost_s


def _give_up(agent: AgentState, vehicle: int, reason: EndReason) -> Stop:
    """Stop a vehicle that does not come home."""
    if reason is not agent.vehicles[vehicle].reason:
        agent.endings[vehicle] = {"end_reason": reason.value}
    agent.why = agent.endings[vehicle]
    agent.vehicles[vehicle].turn(Turn.STOPPED, reason)
    return Stop(reason)


def _trip(agent: AgentState, vehicle: int, home: Array) -> GoHome:
    """Return the order to go home from the end of a vehicle's queue."""
    state = agent.vehicles[vehicle]
    order = GoHome(vehicle, agent.next_id, home)
    when, route = state.done_s(order), agent.route_to(home, vehicle)
    return replace(order, expected_cost=state.price(order), expected_time_s=when, route=route)


# -- another battery ---------------------------------------------------------------------------------------


def recharge(agent: AgentState, vehicle: int) -> GoHome | Recharge | Stop:
    """Send a vehicle home for another battery; if it is there, have it wait for the battery."""
    state = agent.vehicles[vehicle]
    home = state.spec.home
    assert home is not None
    if state.phase.between_batteries and state.queue:
        raise InputError(
            f"another order was asked for while {state.queue[-1].id}, on the way to another battery, is "
            "outstanding",
            expected=f"the outcome of {state.queue[-1].id} first",
            where=f"vehicle {vehicle}",
            fix="pass its observation to tell(), then ask again",
        )
    number = state.battery_number + 1
    order: GoHome | Recharge
    if state.at_home and is_worthwhile(agent, vehicle):
        order = Recharge(vehicle, agent.next_id, number, home)
        state.turn(Turn.SENT_TO_CHANGE)
    elif not state.at_home and _can_go_home(agent, state):
        order = _trip(agent, vehicle, home)
        state.turn(Turn.SENT_TO_BATTERY)
    else:
        return finish(agent, vehicle, EndReason.BATTERY_SPENT)
    agent.why = {**(agent.why or {}), WHY: number}
    return agent.add(replace(order, expected_time_s=state.done_s(order)), Origin.BATTERY)


def is_worthwhile(agent: AgentState, vehicle: int) -> bool:
    """Return True if another battery is left, and would afford a query in the time that is left.

    An unused battery is not exchanged: its policy does not want what it affords.
    """
    state = agent.vehicles[vehicle]
    home = state.spec.home
    if not state.batteries_left or home is None or state.swap_refused or agent.at_limit:
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


def short_of(agent: AgentState, state: VehicleState) -> str | None:
    """Return the limit that rules out most sites, with another battery if one is left; None without any."""
    sites, sets = agent.domain.sites[~agent.rejected], agent.domain.control_masks
    if not len(sites):
        return None
    if state.batteries_left and not state.swap_refused:
        limit = after_recharge(state).short_of(sites, sets)
        if limit is not None:
            return limit
    return state.short_of(sites, sets)


def _can_go_home(agent: AgentState, state: VehicleState) -> bool:
    """Return True if a vehicle can be sent home for a battery, and has not failed to come several times."""
    trips = [
        key
        for key in state.ledger.entries
        if isinstance(agent.issued[key].order, GoHome) and key not in agent.withdrawn
    ]
    return len(trips) < _BATTERY_TRIPS and state.affordable_home


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


def _sites(agent: AgentState, home: Array) -> Array:
    """Return the sites (N, d) that may be proposed, and home in a box, where any place may be."""
    sites = agent.domain.sites[~agent.rejected]
    return np.vstack([sites, home]) if agent.domain.continuous else sites
