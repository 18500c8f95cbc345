"""Queries before they are issued: the initial ones, the checks of a policy's, and their expected cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from fieldbo._numerics.streams import stream
from fieldbo.agent.ledger import Ledger
from fieldbo.domain.controls import ControlSet
from fieldbo.errors import PolicyError
from fieldbo.messages import Order, Query, Stop
from fieldbo.mission.checks import policy_name
from fieldbo.mission.mission import Mission
from fieldbo.policies.contract import THIS_POLICY, Decision, Memory, State


@dataclass(frozen=True)
class Issued:
    """An order that was issued, and the policy's state at that moment.

    Parameters
    ----------
    order : Query or GoHome
    memory : plain data
        The policy's memory after it chose the order.
    why : mapping or None
        Why the order was chosen; None for an initial reading.
    """

    order: Order
    memory: Memory
    why: Mapping[str, Any] | None


def initial_queries(mission: Mission) -> list[Query]:
    """Return the queries before the policy takes over: the start, then random sites, the cheapest move first.

    They set all variables if a control set allows it; otherwise the control sets take turns.
    """
    cost, domain = mission.declared_cost, mission.world.domain
    controls = domain.controls
    rest = list(domain.draw(max(0, mission.initial - 1), stream(mission.seed, "initial")))
    route = [mission.vehicles[0].start][: mission.initial]
    while rest:
        costs = None if cost is None or controls is not None else cost.to(route[-1], np.array(rest))
        route.append(rest.pop(0 if costs is None else int(np.argmin(costs))))
    sets_all = controls is None or controls.index_of(None) is not None
    turns: tuple[ControlSet | None, ...] = (None,) if sets_all else domain.control_sets
    return [
        Query(site, None if turn is None else turn.controls, level=mission.initial_level)
        for site, turn in zip(route, cycle(turns), strict=False)
    ]


def suggested(mission: Mission, state: State, memory: Memory) -> Decision:
    """Return the decision of a mission's policy, and name the policy in its errors.

    Raises
    ------
    PolicyError
        The policy violated its contract, or returned something else than a decision.
    """
    try:
        decision = mission.policy.suggest(state, memory)
    except PolicyError as error:
        raise PolicyError(str(error).replace(THIS_POLICY, f"policy {policy_name(mission)}")) from error
    check_decision(decision, "suggest", mission)
    return decision


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


def expected_cost(query: Query, issued: Mapping[str, Issued], ledgers: Sequence[Ledger]) -> float | None:
    """Return the cost to expect of a query where costs are unknown; None if nothing is known.

    The policy's own estimate if it has one, otherwise the mean cost of settled queries that set the same
    variables.
    """
    if query.expected_cost is not None:
        return query.expected_cost
    alike = {k for k, i in issued.items() if isinstance(i.order, Query) and _sets_the_same(i.order, query)}
    entries = [e for ledger in ledgers for k, e in ledger.entries.items() if k in alike and not e.outstanding]
    paid = [e.spent for e in entries if not math.isnan(e.spent)]
    return math.fsum(paid) / len(paid) if paid else None


def _sets_the_same(first: Query, second: Query) -> bool:
    """Return True if two queries set the same variables."""
    masks = (np.ones(len(q.site), dtype=bool) if q.controls is None else q.controls for q in (first, second))
    return bool(np.equal(*masks).all())
