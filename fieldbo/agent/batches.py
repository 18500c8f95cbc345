"""Several orders at once: chosen together by a policy that can, otherwise one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fieldbo.agent.affordability import Affordability
from fieldbo.costs.route import shortest_order
from fieldbo.domain.domain import Domain
from fieldbo.messages import Order, Query, Stop
from fieldbo.policies.contract import Decision

if TYPE_CHECKING:
    from fieldbo.agent.agent import Agent


def next_batch(agent: Agent, k: int, vehicle: int) -> list[Order]:
    """Return up to `k` orders for a vehicle; see `Agent.ask_batch`."""
    orders: list[Order] = []
    if agent.vehicles[vehicle].wanted:
        k = 1  # what an operator wants next is not chosen with others
    while agent.initial_left and len(orders) < k and agent.vehicles[vehicle].unpriced is None:
        if not isinstance(first := agent.ask(vehicle), Query):
            return orders if isinstance(first, Stop) else [*orders, first]
        orders.append(first)
    if orders:
        return orders  # the policy waits for the initial readings
    if k > 1 and (batch := _chosen_together(agent, k, vehicle)):
        return batch
    order = agent.ask(vehicle)
    while isinstance(order, Query):
        orders.append(order)
        if len(orders) == k or (another := agent.ask_another(vehicle)) is None:
            return orders
        order = another
    return orders if isinstance(order, Stop) else [*orders, order]


def _chosen_together(agent: Agent, k: int, vehicle: int) -> list[Order]:
    """Return the batch that the policy chooses; empty if it chooses one by one, or stops."""
    decisions = agent.suggest_batch(k, vehicle)
    orders: list[Order] = []
    for decision in _affordable_route(agent.vehicles[vehicle], decisions, agent.domain):
        agent.why = decision.why
        assert isinstance(decision.choice, Query)
        query = agent.issue(decision.choice, vehicle)
        if query is not None:
            orders.append(query)
    return orders


def _affordable_route(
    state: Affordability, decisions: Sequence[Decision], domain: Domain
) -> Sequence[Decision]:
    """Return decisions along the shortest route, dropping those chosen last until it is affordable."""
    for k in range(len(decisions), 0, -1):
        choices = [d.choice for d in decisions[:k] if isinstance(d.choice, Query)]
        stops = np.stack([domain.expected(c.site) for c in choices])
        order = range(k) if state.cost is None else shortest_order(state.cost, state.end, stops)
        if state.can_pay([choices[n] for n in order]):
            return [decisions[n] for n in order]
    return []
