"""What a policy sees of an agent: a read-only `State`, when it is asked and at each event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fieldbo._numerics.streams import stream
from fieldbo.belief.surface import Surface
from fieldbo.messages import Query
from fieldbo.policies.contract import State

if TYPE_CHECKING:
    from fieldbo.agent.agent import Agent


def view_at_event(agent: Agent, vehicle: int) -> State:
    """Return what a policy sees when it learns of an event: the belief as it is."""
    key = len(agent.history)
    return _view(agent, vehicle, (), lambda: stream(agent.mission.seed, "observe", key))


def view_when_asked(agent: Agent, vehicle: int) -> State:
    """Return what a policy sees when it is asked: pending queries already reduce the variances."""
    asks = agent.asks
    return _view(agent, vehicle, agent.pending, lambda: stream(agent.mission.seed, "policy", asks))


def _surface(agent: Agent, pending: Sequence[Query]) -> Surface:
    """Return the belief on which decisions are based; pending queries count as read."""
    surface = agent.surface
    sites = np.array([agent.domain.expected(q.site) for q in pending])
    at = [agent.domain.nearest(site) for site in sites]
    noises = np.array([agent.online_model.noise(q.level)[i] for q, i in zip(pending, at, strict=True)])
    if pending:
        surface = surface.believing(sites, noises)
    if agent.mission.model.hyperparameters == "fitted":
        return surface
    averaged, scale = agent.stated
    if isinstance(averaged, Surface):  # there is no reading yet
        return surface
    present = agent.hyperparameters.scale
    ratio = scale.scale / present.scale
    if pending:
        averaged = averaged.believing(sites, noises / ratio**2)
    return surface.with_moments(present.converted(averaged.mean, scale), averaged.variance * ratio**2)


def _view(
    agent: Agent, vehicle: int, pending: Sequence[Query], draw: Callable[[], np.random.Generator]
) -> State:
    mission, state, model = agent.mission, agent.vehicles[vehicle], agent.online_model
    surface = _surface(agent, pending)
    return State(
        domain=agent.domain,
        question=mission.question,
        threshold=agent.threshold_if(float(surface.mean.max())),
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
        orders=MappingProxyType({key: issued.order for key, issued in agent.issued.items()}),
        rejected=agent.rejected,
    )
