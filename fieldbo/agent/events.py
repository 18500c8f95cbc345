"""What an event changes: ledgers, vehicles, the belief, the policy's memory, and the places to pass over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fieldbo.agent.checks import corrected, same_readings, vehicle_of
from fieldbo.agent.state import AgentState, view_at_event
from fieldbo.agent.steering import obey
from fieldbo.messages import (
    Answer,
    Command,
    Correction,
    Event,
    GoHome,
    Lost,
    Observation,
    Order,
    Query,
    Recharge,
    Rejected,
    Telemetry,
    order_number,
)

_NEARER = 0.9
"""A trip home that was cut short has not failed if less than this fraction of the way is left."""


def take(agent: AgentState, event: Event) -> None:
    """Take in a checked event: charge it, move its vehicle, learn from it, and show it to the policy."""
    vehicle = vehicle_of(event, agent.issued)
    agent.online_model.rebuilt = False
    if isinstance(event, Observation):
        if (news := _find_news(agent, event)) is None:
            return
        event = news
        _take_observation(agent, event)
    elif isinstance(event, Rejected | Lost):
        if event.order not in agent.vehicles[vehicle].ledger_of(event.order).reserved:
            return
        _take_failure(agent, event)
    elif isinstance(event, Telemetry):
        agent.vehicles[event.vehicle].heard(event)
    elif isinstance(event, Command):
        agent.commands.append(event)
        if not event.refused:
            obey(agent, event)
        return  # policies see what follows from it
    elif isinstance(event, Answer):
        return  # what it amounts to comes from its vehicle
    elif isinstance(event, Correction):
        place, observation = corrected(agent.history, event)
        if same_readings(agent.history[place], observation):
            return
        agent.history[place] = observation
        agent.online_model.correct(observation)
        agent.failures.correct(observation)
    else:
        agent.online_model.refit(event, agent.asks)
    agent.history.append(event)
    _show(agent, event, vehicle)


def _show(agent: AgentState, event: Event, vehicle: int) -> None:
    """Let the policy learn of an event; what it would see is not computed for one that does not look."""
    if agent.mission.policy.observes:
        agent.memory = agent.mission.policy.observe(view_at_event(agent, vehicle), agent.memory, event)


def repeats(agent: AgentState, event: Event) -> bool:
    """Return whether an event is a part of an observation that was received before."""
    return isinstance(event, Observation) and (event.order, event.part) in agent.parts_seen


def _take_failure(agent: AgentState, event: Rejected | Lost) -> None:
    order = agent.issued[event.order].order
    state, withdrawn = agent.vehicles[order.vehicle], event.order in agent.withdrawn
    state.swap_refused |= isinstance(order, Recharge) and not withdrawn
    if isinstance(event, Lost):
        state.lose(event.order, sent=event.sent, at_s=event.time_s)
        state.unsent_trips += isinstance(order, GoHome) and not event.sent
        return
    state.reject(event.order)
    agent.settled[event.order] = Rejected
    if withdrawn:
        return
    state.home_tries += isinstance(order, GoHome)
    if isinstance(order, Query) and not np.isnan(order.site).any():
        agent.pass_over(order.site)


def _find_news(agent: AgentState, event: Observation) -> Observation | None:
    """Return what is new in an observation; None if nothing is."""
    again = repeats(agent, event)
    if again and (not event.last or event.order in agent.settled):
        return None
    if again:  # only now it says that it was the last part
        return _without_readings(event)
    late = agent.settled.get(event.order) is Observation  # it settles nothing again
    return replace(event, last=False) if late else event


def _take_observation(agent: AgentState, event: Observation) -> None:
    order, number = agent.issued[event.order].order, order_number(event.order)
    state, withdrawn = agent.vehicles[order.vehicle], event.order in agent.withdrawn
    lost = event.order in state.ledger_of(event.order).lost
    before = state.position
    state.observed(event, number)
    if event.last:
        state.still.done(order, event, state.ledger_of(event.order).entries[event.order].planned)
    if event.last and isinstance(order, Recharge):
        if event.complete:
            state.renew(order.battery)
        state.swap_refused |= not event.complete and not withdrawn
    elif event.last and isinstance(order, GoHome):
        if event.complete:
            state.came_back(number)
        far, left = state.return_cost(np.stack([before, state.position]))
        state.home_tries += not (event.complete or withdrawn or left < _NEARER * far)
    again = repeats(agent, event)
    agent.parts_seen.add((event.order, event.part))
    if event.last:
        agent.steps += isinstance(order, Query) and event.order not in agent.settled
        agent.settled[event.order] = Observation
    if event.order not in agent.withdrawn and not again:
        agent.failures.take(event, in_vain=not lost and _is_in_vain(agent, event, order))
    if not agent.online_model.learn(event) and not again:
        _learn_nothing(agent, event, order, lost=lost)


def _is_in_vain(agent: AgentState, event: Observation, order: Order) -> bool:
    """Return whether a query was carried out, and none of its parts brought a reading."""
    if not (event.last and event.complete and isinstance(order, Query)) or len(event.values):
        return False
    before = (e for e in agent.history if isinstance(e, Observation) and e.order == event.order)
    return not any(len(part.values) for part in before)


def _learn_nothing(agent: AgentState, event: Observation, order: Order, *, lost: bool) -> None:
    """Pass over the place of unusable readings, and a site that gave none on two visits."""
    if event.order in agent.withdrawn:
        return
    on_the_way = agent.mission.world.sensor.along is not None and not event.last
    if len(event.sites) and not on_the_way:
        agent.pass_over(event.sites[-1])
    if lost or not event.last or not isinstance(order, Query) or np.isnan(order.site).any():
        return
    site = int(agent.domain.nearest(order.site))
    if site in agent.seen_in_vain:
        agent.pass_over(order.site)
    agent.seen_in_vain.add(site)


def _without_readings(event: Observation) -> Observation:
    """Return an observation that says only where its order ended, and when."""
    nothing = event.values[:0]
    return replace(
        event,
        sites=event.sites[:0],
        values=nothing,
        noise_variances=nothing,
        times_s=nothing,
        cost=0.0,
        channels=None,
    )
