"""A policy's decisions before they become orders: the checks, the affordable route, the expected cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.affordability import Affordability
from fieldbo.agent.state import AGENT_KEYS, AgentState
from fieldbo.costs.travel import shortest_order
from fieldbo.domain.domain import Domain
from fieldbo.errors import PolicyError
from fieldbo.messages import Query, Stop
from fieldbo.mission.mission import Mission, policy_name
from fieldbo.policies.contract import THIS_POLICY, Decision, Memory, State


def suggested(mission: Mission, state: State, memory: Memory) -> Decision:
    """Return the decision of a mission's policy, and name the policy in its errors.

    Raises
    ------
    PolicyError
        The policy violated its contract, returned something else than a decision or, before the first order
        is settled, wrote to arrays that it was shown.
    """
    shown = {} if state.steps else {name: (array, array.copy()) for name, array in _arrays(state).items()}
    try:
        decision = mission.policy.suggest(state, memory)
    except PolicyError as error:
        raise PolicyError(str(error).replace(THIS_POLICY, f"policy {policy_name(mission)}")) from error
    check_decision(decision, "suggest", mission)
    changed = [
        name for name, (array, copy) in shown.items() if not np.array_equal(array, copy, equal_nan=True)
    ]
    if changed:
        raise PolicyError(
            f"policy {policy_name(mission)} wrote to {', '.join(changed)}, which the agent goes by\n"
            f"  fix:      change a copy: {changed[0]}.copy()"
        )
    return with_own_reasons(decision)


def _arrays(state: State) -> dict[str, Array | Mask]:
    """Return the arrays in a state to which a policy might write, by name."""
    surface = state.surface
    arrays: dict[str, Array | Mask] = {
        "state.surface.mean": surface.mean,
        "state.surface.variance": surface.variance,
        "state.surface.candidates": surface.candidates,
        "state.domain.sites": state.domain.sites,
        "state.position": state.position,
        "state.rejected": state.rejected,
    }
    return {name: array for name, array in arrays.items() if len(array)}


def with_own_reasons(decision: Decision) -> Decision:
    """Return a decision whose reasons leave the agent's own keys free."""
    if not AGENT_KEYS & decision.why.keys():
        return decision
    why = {f"{key} of the policy" if key in AGENT_KEYS else key: x for key, x in decision.why.items()}
    return replace(decision, why=why)


def check_decision(decision: object, method: str, mission: Mission) -> None:
    """Raise a `PolicyError` if what a method of a policy returned is not a decision for a query or a stop."""
    got = repr(decision)
    if isinstance(decision, Decision):
        if isinstance(decision.choice, Query | Stop):
            return
        got = f"a Decision for {decision.choice!r}"
    raise PolicyError(
        f"{method} of policy {policy_name(mission)} returned {got[:200]}\n"
        "  expected: a fieldbo.policies.Decision for a Query or a Stop"
    )


def check_proposal(query: Query, mission: Mission) -> None:
    """Raise a `PolicyError` if the mission's world cannot carry out a policy's query."""
    name, domain = f"policy {policy_name(mission)}", mission.world.domain
    if query.site.shape != (domain.dimension,):
        raise PolicyError(
            f"{name} proposed {query.site.tolist()}, in a domain with the axes "
            f"{', '.join(axis.name for axis in domain.axes)}"
        )
    free = np.zeros(len(query.site), dtype=bool) if query.controls is None else ~query.controls
    if domain.controls is not None and domain.controls.index_of(query.controls) is None:
        raise PolicyError(f"{name} proposed controls {query.controls}, which is not a control set")
    if domain.controls is None and free.any():
        raise PolicyError(f"{name} left variables free in a domain without control sets")
    if not domain.contains(np.where(free, domain.middle, query.site)[None])[0]:
        raise PolicyError(f"{name} proposed {query.site.tolist()}, outside the domain")
    if query.level not in range(settings := mission.world.sensor.settings):
        raise PolicyError(f"{name} proposed level {query.level}; the sensor's levels are 0 to {settings - 1}")


def affordable_route(
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


def expected_cost(query: Query, agent: AgentState) -> float | None:
    """Return the cost to expect of a query where costs are unknown; None if nothing is known.

    The policy's own estimate if it has one, otherwise the mean cost of settled queries that set the same
    variables.
    """
    if query.expected_cost is not None:
        return query.expected_cost
    orders = {key: issued.order for key, issued in agent.issued.items()}
    alike = {key for key, o in orders.items() if isinstance(o, Query) and _sets_the_same(o, query)}
    ledgers = [vehicle.ledger for vehicle in agent.vehicles]
    entries = [e for ledger in ledgers for k, e in ledger.entries.items() if k in alike and not e.outstanding]
    paid = [e.spent for e in entries if not math.isnan(e.spent)]
    return math.fsum(paid) / len(paid) if paid else None


def _sets_the_same(first: Query, second: Query) -> bool:
    """Return True if two queries set the same variables."""
    masks = (np.ones(len(q.site), dtype=bool) if q.controls is None else q.controls for q in (first, second))
    return bool(np.equal(*masks).all())
