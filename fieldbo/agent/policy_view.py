"""What a policy sees of an agent: a read-only `State`, when it is asked and at each event."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from fieldbo._numerics.streams import stream
from fieldbo.agent.state import AgentState
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import Supply
from fieldbo.policies.contract import State


def view_at_event(agent: AgentState, vehicle: int) -> State:
    """Return what a policy sees when it learns of an event: the belief as it is."""
    key = len(agent.history)
    return _view(agent, vehicle, agent.surface, lambda: stream(agent.mission.seed, "observe", key))


def view_when_asked(agent: AgentState, vehicle: int) -> State:
    """Return what a policy sees when it is asked: pending queries already reduce the variances."""
    surface, pending = agent.surface, agent.pending
    if pending:
        sites = np.stack([agent.domain.expected(q.site) for q in pending])
        noise = [
            agent.online_model.noise(q.level)[agent.domain.nearest(site)]
            for q, site in zip(pending, sites, strict=True)
        ]
        surface = surface.believing(sites, noise)
    asks = agent.asks
    return _view(agent, vehicle, surface, lambda: stream(agent.mission.seed, "policy", asks))


def _view(
    agent: AgentState, vehicle: int, surface: Surface, draw: Callable[[], np.random.Generator]
) -> State:
    mission, state, model = agent.mission, agent.vehicles[vehicle], agent.online_model
    return State(
        domain=agent.domain,
        question=mission.question,
        threshold=agent.threshold,
        surface=surface,
        history=tuple(agent.history),
        steps=agent.steps,
        pending=agent.pending,
        position=state.end,
        home=state.spec.home,
        remaining=state.ledger.available,
        spendable=state.spendable,
        time_s=state.time_s,
        cost=mission.declared_cost,
        sensor=mission.world.sensor,
        noise=model.noise,
        threshold_if=agent.threshold_if,
        scale=model.hyperparameters.scale,
        fixed_model=mission.model.every is None,
        provisional=model.provisional,
        rebuilt=model.rebuilt,
        draw=draw,
        return_cost=state.return_cost,
        affordable=state.affordable,
        limits=state.limits,
        supplies=_supplies(agent, state),
        orders=MappingProxyType({key: issued.order for key, issued in agent.issued.items()}),
        rejected=agent.rejected,
        steps_left=np.inf if mission.max_steps is None else max(0, mission.max_steps - agent.queries),
    )


def _supplies(agent: AgentState, asked: VehicleState) -> tuple[Supply, ...]:
    """Return what all vehicles have together of each limit of the one that is asked for."""
    total = list(asked.supplies)
    for other in agent.vehicles:
        if other is asked:
            continue
        for n, more in enumerate(other.supplies[: len(total)]):
            left = 0.0 if other.phase.over else more.left
            total[n] = Supply(total[n].left + left, total[n].in_all + more.in_all - more.left + left)
    return tuple(total)
