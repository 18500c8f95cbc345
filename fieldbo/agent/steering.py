"""What an operator's commands change while a run is under way, and why some can't be obeyed.

A command that changes the plan takes back the orders that are outstanding: the robot stops, reports what it
did and what that took, and the agent plans again from there. An order that was taken back says nothing about
its site, which may be proposed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.homewards import after_recharge
from fieldbo.agent.phase import Phase, Turn
from fieldbo.agent.state import AgentState, Origin
from fieldbo.agent.vehicle_state import SLACK, Pause, VehicleState
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.places import check_place, place_text
from fieldbo.errors import InputError, counted
from fieldbo.messages import Action, Command, EndReason, Order, Query, Recharge

_TAKES_BACK = (Action.PAUSE, Action.NO_GO, Action.HOME)
"""Commands that take back all outstanding orders of their vehicles; only `home` takes back a recharge."""


def completed(agent: AgentState, command: Command) -> Command:
    """Return a command with what it leaves open: its order, the very site, or distinct names of its areas.

    What belongs to other actions, such as the site of a ``pause``, is left out.

    Raises
    ------
    InputError
        It can't be obeyed at present.
    """
    if command.action in (Action.NO_GO, Action.STOP):
        command = replace(command, vehicle=None)  # they concern all vehicles
    command = replace(
        command,
        site=command.site if command.action is Action.NEXT else None,
        order=command.order if command.action is Action.SKIP else None,
        areas=command.areas if command.action is Action.NO_GO else (),
        left=command.left if command.action is Action.BATTERY else None,
        counted=None,
    )
    if command.vehicle is not None and command.vehicle >= len(agent.vehicles):
        raise InputError(
            f"there is no vehicle {command.vehicle}",
            expected=f"a vehicle of the mission, 0 to {len(agent.vehicles) - 1}",
        )
    match command.action:
        case Action.PAUSE | Action.CONTINUE:
            _check_pause(agent, command)
        case Action.SKIP:
            return _skipping(agent, command)
        case Action.NEXT:
            return _with_site(agent, command)
        case Action.BATTERY:
            return _with_level(agent, command)
        case Action.NO_GO:
            return replace(command, areas=_closable(agent, command.areas))
        case Action.HOME:
            if all(state.spec.home is None for state in concerned(agent, command)):
                raise InputError(
                    "the vehicle has no home", fix="set home in [agent] of the mission; or: stop"
                )
    return command


def obey(agent: AgentState, command: Command) -> None:
    """Change what an agent does next as a completed command says."""
    states = concerned(agent, command)
    if command.action in _TAKES_BACK:
        for state in states:
            # A vehicle that is sent home, and could not afford to stop under way, finishes its order first.
            goes_home = command.action is Action.HOME
            first = 1 if goes_home and not state.can_turn_back(state.cost) else 0
            taken = [o for o in state.queue[first:] if goes_home or not isinstance(o, Recharge)]
            _take_back(agent, state, taken, again=not goes_home)
    for state in states:
        match command.action:
            case Action.PAUSE:
                state.paused_by |= {command.hold}
                state.pauses.append(Pause(command.hold, command.after, state.battery_number))
            case Action.CONTINUE:
                state.paused_by -= {command.hold}
            case Action.HOME:
                state.paused_by = frozenset()
                if not state.phase.over:
                    state.turn(Turn.SENT_HOME, EndReason.STOPPED_BY_OPERATOR)
    if command.action is Action.SKIP:
        assert command.order is not None
        order = agent.issued[command.order].order
        if isinstance(order, Query) and not np.isnan(order.site).any():
            agent.pass_over(order.site)
        agent.withdrawn.add(command.order)
    elif command.action is Action.NEXT:
        assert command.site is not None
        states[0].wanted.append(command.site)
    elif command.action is Action.BATTERY:
        assert command.counted is not None
        states[0].state_left(command.counted)
    elif command.action is Action.NO_GO:
        _close(agent, command.areas)


def concerned(agent: AgentState, command: Command) -> list[VehicleState]:
    """Return the vehicles that a command concerns: one, or all."""
    return list(agent.vehicles) if command.vehicle is None else [agent.vehicles[command.vehicle]]


def _take_back(agent: AgentState, state: VehicleState, orders: Sequence[Order], *, again: bool) -> None:
    """Mark outstanding orders as taken back; initial and wanted readings are asked for `again`."""
    new = [order for order in orders if str(order.id) not in agent.withdrawn]
    agent.withdrawn |= {str(order.id) for order in new}
    queries = [order for order in new if isinstance(order, Query)] if again else []
    for query in queries:
        if agent.issued[str(query.id)].origin is Origin.INITIAL:
            agent.ask_initial_again(query)
    wanted = (query for query in queries if agent.issued[str(query.id)].origin is Origin.OPERATOR)
    state.wanted[:0] = [query.site for query in wanted]


# -- checks ------------------------------------------------------------------------------------------------


def _check_pause(agent: AgentState, command: Command) -> None:
    """Raise an `InputError` if there is nothing to pause, or to continue."""
    states = concerned(agent, command)
    if command.action is Action.PAUSE:
        if all(command.hold in state.paused_by for state in states):
            raise InputError("it is paused already")
        for state in states:
            _check_stop_under_way(state, SLACK)
        return
    if any(command.hold in state.paused_by for state in states):
        return
    holds = sorted({hold for state in states for hold in state.paused_by})
    if holds:
        raise InputError(f"it is held by {', '.join(holds)}", fix="wait until that is over; or: home")
    raise InputError("it is not paused")


def _skipping(agent: AgentState, command: Command) -> Command:
    """Return a command with the id of the order to skip: its own, or else the first outstanding one."""
    queries = [(s, o) for s in concerned(agent, command) for o in s.queue if isinstance(o, Query)]
    wanted = [(s, o) for s, o in queries if command.order in (None, o.id)]
    if not wanted and command.order is None:
        raise InputError("no query is outstanding, so there is nothing to skip")
    if not wanted:
        known = agent.issued.get(str(command.order))
        why = "is done" if known is not None and isinstance(known.order, Query) else "does not exist"
        raise InputError(f"query {command.order} {why}, so it can't be skipped")
    state, order = wanted[0]
    if order is state.queue[0]:
        _check_stop_under_way(state)
    return replace(command, order=order.id)


def _check_stop_under_way(state: VehicleState, slack: float = 0.0) -> None:
    """Raise an `InputError` if a vehicle could not get home after it broke off its order.

    `slack` is what has to be left over, as a fraction of the whole battery, and of the time limit.
    """
    if not state.can_turn_back(state.cost, slack):
        raise InputError(
            "after a stop under way, the battery, or the time, would not be enough for the trip home",
            fix="wait until the vehicle has arrived; or: home",
        )


def _with_site(agent: AgentState, command: Command) -> Command:
    """Return a command to sample next at a site, with its vehicle and the very site."""
    if command.site is None:
        raise InputError("there is no site", expected="the coordinates of a place in the domain")
    state, domain = _only(agent, command), agent.domain
    if state.phase.over:
        raise InputError("the vehicle gets no further sites: its part of the mission is over")
    check_place(domain, "the site", command.site, "site")
    site = command.site if domain.continuous else domain.sites[domain.nearest(command.site)]
    query = Query(site, level=agent.mission.levels[0])
    if domain.controls is not None and domain.controls.index_of(None) is None:
        raise InputError("no control set contains all variables, so a site can't be set as a whole")
    if not agent.mission.world.passable.contains(site)[0]:
        raise InputError(f"{place_text(domain, site)} lies in a no-go area")
    then = after_recharge(state) if state.phase.between_batteries else state
    before = [replace(query, site=wanted) for wanted in state.wanted]
    if not (then.affordable(site[None], query.controls, query.level)[0] and then.can_pay([*before, query])):
        raise InputError(
            f"the battery, or the time, is not enough for {place_text(domain, site)} and the trip home"
        )
    return replace(command, vehicle=command.vehicle or 0, site=site)


def _only(agent: AgentState, command: Command) -> VehicleState:
    """Return the vehicle that a command names, or the only one."""
    if command.vehicle is None and len(agent.vehicles) > 1:
        raise InputError(
            "the mission has several vehicles", expected=f"one of them, 0 to {len(agent.vehicles) - 1}"
        )
    return concerned(agent, command)[0]


def _with_level(agent: AgentState, command: Command) -> Command:
    """Return a command that states what is left, with its vehicle and what the run assumes."""
    if command.left is None:
        raise InputError("it is not said what is left", expected="an amount in the battery's unit")
    state, unit = _only(agent, command), agent.mission.world.cost_unit
    if state.phase is Phase.ENDED:
        raise InputError("the vehicle gets no further orders: its part of the mission is over")
    if state.changes_battery:
        raise InputError("the battery is being changed", fix="state it once the new one is in")
    if command.left > state.spec.battery:
        raise InputError(
            f"{command.left:,.6g} {unit} is more than the battery, {state.spec.battery:,.6g} {unit}",
            expected="at most what the vehicle started with",
        )
    return replace(command, vehicle=command.vehicle or 0, counted=min(command.left, state.ledger.at_most))


def _closable(agent: AgentState, areas: tuple[Obstacle, ...]) -> tuple[Obstacle, ...]:
    """Return areas under names that are not taken, once it is certain that vehicles can do without them."""
    if not areas:
        raise InputError("there is no area", expected="at least one polygon")
    world, named = agent.mission.world, list[Obstacle]()
    taken = {area.name for area in (*world.domain.solid, *world.no_go)}
    for area in areas:
        names = (area.name if not k else f"{area.name} {k + 1}" for k in range(len(taken) + 1))
        named.append(replace(area, name=next(name for name in names if name not in taken)))
        taken.add(named[-1].name)
    vehicles = [
        "the vehicle" if len(agent.vehicles) == 1 else f"vehicle {k}" for k in range(len(agent.vehicles))
    ]
    for vehicle, state in zip(vehicles, agent.vehicles, strict=True):
        for place in state.places if state.under_way is None else (state.under_way.position,):
            _check_outside(named, world.domain.clearance, place, vehicle)
        if state.spec.home is not None:
            _check_outside(named, world.domain.clearance, state.spec.home, "home")
    closed = agent.mission.with_no_go(named)
    for vehicle, state in zip(vehicles, agent.vehicles, strict=True):
        if (home := state.spec.home) is None:
            continue
        places = np.stack(state.places)
        if not np.isfinite(closed.world.cost.travel(places, home[None])).all():
            raise InputError(f"{vehicle} could not get home round {_names(named)}")
        if not state.can_turn_back(closed.declared_cost):
            raise InputError(
                f"the battery, or the time, is not enough for the trip home round {_names(named)}"
            )
    return tuple(named)


def _check_outside(areas: list[Obstacle], clearance: float, place: Array, what: str) -> None:
    """Raise an `InputError` if a place (d,) lies in one of some areas, or within its clearance."""
    inside = [area for area in areas if area.grown(clearance).holds(place)[0]]
    if inside:
        within = "" if inside[0].holds(place)[0] else " within the clearance of"
        raise InputError(
            f"{what} lies{within or ' in'} {_names(inside)}", fix="move it away first, or draw a smaller area"
        )


def _names(areas: list[Obstacle]) -> str:
    return ", ".join(area.name for area in areas[:3]) + (
        f" and {counted(len(areas) - 3, 'more area', 'more areas')}" if len(areas) > 3 else ""
    )


def _close(agent: AgentState, areas: tuple[Obstacle, ...]) -> None:
    """Close areas to all vehicles: routes lead round them, and their sites are not proposed again."""
    agent.mission = agent.mission.with_no_go(areas)
    for state in agent.vehicles:
        state.cost = agent.mission.declared_cost
    agent.passed_over = agent.passed_over | ~agent.mission.world.passable.contains(agent.domain.sites)
