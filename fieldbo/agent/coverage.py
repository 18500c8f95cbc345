"""Readings so that no place is farther from one than the mission allows, whatever its policy would choose.

The policy decides as long as what is left of the battery also pays for the stops that are still missing.
Those that a vehicle passes on its way come first, and once the rest takes all that is left, it begins.
If it takes more than that, the nearest distance that can be met takes the place of the mission's, at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.affordability import Affordability
from fieldbo.agent.state import AgentState
from fieldbo.belief.covering import distance_text, sweep_cost, to_nearest, yardsticks
from fieldbo.belief.kernels import Indices
from fieldbo.costs.base import CostModel, Limit
from fieldbo.costs.travel import shortest_order
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.mission.mission import Mission
from fieldbo.policies.contract import Decision, State

_MARGIN = 1.15  # by which the stops that are missing may turn out to take more
_CANDIDATES = 400  # for a stop
_MOST_STOPS = 200  # that are planned at once
_MANY_STOPS = 60  # whose order takes longer to find than what they take at least
_WIDER = 1.1  # times as far, until the battery suffices
_TRIES = 3  # distances that are tried in one decision, if the mission's can't be met


class Covered(NamedTuple):
    """How far the farthest place is from a reading, and how far it may be, in the unit of the axes."""

    farthest: float
    within: float


def read_places(agent: AgentState, *, planned: bool = False) -> Array:
    """Return the places (k, d) of readings that the model believes, and the sites for which they were taken.

    With `planned`, those of pending queries, too.
    """
    model, domain = agent.online_model, agent.domain
    orders = [agent.issued[order].order for order in model.orders_read]
    orders += agent.pending if planned else ()
    ordered = [domain.expected(order.site) for order in orders if isinstance(order, Query)]
    read = np.reshape(model.data(model.believed).sites, (-1, domain.dimension))
    return np.concatenate([read, np.reshape(ordered, (-1, domain.dimension))])


def covered(agent: AgentState) -> Covered | None:
    """Return how far the farthest place that vehicles can reach is from a reading; None without a limit."""
    within = agent.mission.stop.within(agent.domain)
    if within is None:
        return None
    distances = to_nearest(agent.domain, read_places(agent))[~agent.rejected]
    return Covered(float(distances.max(initial=0.0)), within)


def covering(agent: AgentState, state: State, decision: Decision, *, now: bool) -> Decision:
    """Return a query that covers places too far from all readings, if it is time for it; else the decision.

    Parameters
    ----------
    agent : AgentState
    state : State
    decision : Decision
        What the policy, or the belief, would do.
    now : bool
        Whether nothing else keeps the answer from counting.
    """
    within, choice = agent.mission.stop.within(agent.domain), decision.choice
    if within is None:
        return decision
    distances = to_nearest(agent.domain, read_places(agent, planned=True))
    far = (distances > within) & ~agent.rejected
    if not far.any():
        return decision
    route = _route(agent, state, far, within)
    if route is not None and route.share > 1.0:
        route, now = _nearest(agent, state, distances, route), True
    if route is None:
        early = isinstance(choice, Stop) and choice.reason is EndReason.QUESTION_ANSWERED
        return replace(decision, choice=Stop(EndReason.BATTERY_SPENT)) if early else decision
    stop: int | None = int(route.stops[0])
    if isinstance(choice, Query) and not now and route.fits_after(state, choice):
        stop = route.on_the_way(state, choice.site)
    return decision if stop is None else _stop(agent, decision, route, stop)


class _Route(NamedTuple):
    """Sites (k,) whose readings leave no place farther than `within`, in an order that needs little travel.

    With its cost, and the largest share that it takes of what is left of a limit.
    """

    stops: Indices
    sites: Array
    within: float
    cost: float
    share: float

    def fits_after(self, state: State, query: Query) -> bool:
        """Return whether a query leaves enough for the stops, each limit with a margin."""
        return all(
            _takes(limit, query.site, self.sites) * _MARGIN
            <= limit.left
            - float(limit.going(state.position, query.site[None], query.controls, query.level)[0])
            for limit in state.limits
        )

    def on_the_way(self, state: State, to: Array) -> int | None:
        """Return the stop whose detour now saves most of what it takes later; None if none saves anything."""
        assert state.cost is not None
        places = np.concatenate([state.position[None], to[None], self.sites])
        travel = state.cost.travel(places, places, state.time_s)
        k = np.arange(2, len(places))
        before, after = np.append(1, k[:-1]), np.append(k[1:], -1)
        direct = np.where(after < 0, 0.0, travel[before, after])
        onwards = np.where(after < 0, 0.0, travel[k, after])
        saved = travel[before, k] + onwards - direct
        worth = saved - (travel[0, k] + travel[k, 1] - travel[0, 1])
        best = int(np.argmax(worth))
        return int(self.stops[best]) if worth[best] > 1e-9 * travel.max() else None


def _route(agent: AgentState, state: State, far: Mask, within: float) -> _Route | None:
    """Return the stops that are missing, even if they take more than what is left; None if costs are unknown.

    Another battery or vehicle may still come: the stops then wait for the last one.
    """
    if state.cost is None or any(
        supply.left > limit.left * (1.0 + 1e-9)
        for limit, supply in zip(state.limits, state.supplies, strict=True)
    ):
        return None
    able = state.choosable(agent.mission.levels[0])
    able[
        [agent.domain.nearest(i.order.site) for i in agent.issued.values() if isinstance(i.order, Query)]
    ] = False
    found = (cover(agent.domain, far, able, within), _still_planned(agent, far, able, within))
    routes = [_through(agent, state, stops, within) for stops in found if len(stops)]
    return min(routes, key=lambda route: (route.share > 1.0, route.cost), default=None)


def _through(agent: AgentState, state: State, stops: Indices, within: float) -> _Route:
    """Return the route over stops (k,); in no good order if they take more than what is left in any."""
    assert state.cost is not None
    left = [max(limit.left, float(np.finfo(float).tiny)) for limit in state.limits]
    if len(stops) > _MANY_STOPS:
        sites = agent.domain.sites[stops]
        least = [_least(limit, sites) for limit in state.limits]
        if (share := max(taken / of for taken, of in zip(least, left, strict=True))) > 1.0:
            return _Route(stops, sites, within, least[0], share)
    order = shortest_order(state.cost, state.position, agent.domain.sites[stops])
    sites = agent.domain.sites[stops[order]]
    takes = [_takes(limit, state.position, sites) for limit in state.limits]
    share = max(taken / of for taken, of in zip(takes, left, strict=True))
    return _Route(stops[order], sites, within, takes[0], share)


def _nearest(agent: AgentState, state: State, distances: Array, route: _Route) -> _Route | None:
    """Return a route for the nearest distance that can be met, as far as some tries find it; else None.

    Parameters
    ----------
    agent : AgentState
    state : State
    distances : (N,) array
        Of the places from the nearest reading.
    route : _Route
        That for the mission's distance, which takes more than what is left.
    """
    best, met, unmet = None, np.inf, route.within
    planned = _planned(agent).get("within", unmet)
    tried = planned if planned > unmet else unmet * max(_WIDER, route.share)
    for _ in range(_TRIES):
        far, found = (distances > tried) & ~agent.rejected, None
        if far.any() and (found := _route(agent, state, far, tried)) is not None and found.share > 1.0:
            unmet, tried = tried, min(tried * max(_WIDER, found.share), float(np.sqrt(tried * met)))
        else:
            best, met, tried = found or best, tried, float(np.sqrt(unmet * tried))
        if met < unmet * _WIDER:
            break
    return best


def _still_planned(agent: AgentState, far: Mask, able: Mask, within: float) -> Indices:
    """Return the stops (k,) of the plan that the latest order is part of, without those that were read.

    Empty if they no longer cover what is far. A new plan may take more than the rest of the old one.
    """
    stops = np.array([k for k in _planned(agent).get("sites", ()) if able[k]], dtype=np.intp)
    if not len(stops):
        return stops
    reached = to_nearest(agent.domain, agent.domain.sites[stops])[far] <= within
    return stops if reached.all() else stops[:0]


def _least(limit: Limit, sites: Array) -> float:
    """Return what readings at sites (k, d) take of a limit at least: each is reached from another one."""
    legs = np.stack([limit.going(site, sites, None, 0) for site in sites])
    np.fill_diagonal(legs, np.inf)
    return float(np.sort(legs.min(axis=0))[:-1].sum())


def _planned(agent: AgentState) -> Mapping[str, Any]:
    """Return the plan that the latest order is part of; empty if it is part of none."""
    latest = next(reversed(agent.issued.values()), None)
    return {} if latest is None else (latest.why or {}).get("cover") or {}


def _takes(limit: Limit, start: Array, sites: Array) -> float:
    """Return what readings at sites (k, d), one after the other, and the trip home take of a limit."""
    starts = np.concatenate([start[None], sites[:-1]])
    legs = [float(limit.going(a, b[None], None, 0)[0]) for a, b in zip(starts, sites, strict=True)]
    return sum(legs) + float(limit.back(sites[-1:])[0])


def cover(domain: Domain, far: Mask, able: Mask, within: float) -> Indices:
    """Return sites (k,) among those that are `able` (N,), which cover those that are `far` (N,), as possible.

    Again and again, the one within whose reach most of them lie.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> wall = Domain.grid([Axis("x", "m", 0, 40)], (41,))
    >>> cover(wall, np.ones(41, dtype=bool), np.ones(41, dtype=bool), 7.0).tolist()
    [7, 22, 33]
    """
    from scipy.spatial.distance import cdist

    units = yardsticks(domain)
    places, left = domain.sites / units, np.flatnonzero(far)
    among = np.flatnonzero(able)
    among = among[:: max(1, len(among) // _CANDIDATES)]
    near = cdist(places[left], places[among]) <= within
    open_, counts = np.ones(len(left), dtype=bool), near.sum(axis=0)
    stops = list[int]()
    while open_.any() and len(among) and len(stops) < _MOST_STOPS:
        best = int(np.argmax(counts))
        if not counts[best]:
            # Between the candidates: a site that is far itself.
            own = left[open_ & able[left]]
            if not len(own):
                break
            stops.append(int(own[0]))
            done = open_ & (np.linalg.norm(places[left] - places[own[0]], axis=1) <= within)
        else:
            stops.append(int(among[best]))
            done = open_ & near[:, best]
        open_ &= ~done
        counts -= near[done].sum(axis=0)
    return np.array(stops, dtype=np.intp)


def estimates(mission: Mission) -> tuple[list[str], list[str]]:
    """Return lines on what it takes that no place is too far from a reading, and warnings if too much."""
    domain, cost = mission.world.domain, mission.declared_cost
    within = mission.stop.within(domain)
    if within is None or cost is None:
        return [], []
    supplies = [Affordability(spec, cost).limits for spec in mission.vehicles]
    goal, lines, warnings = "no place farther than {} from a reading", list[str](), list[str]()
    for k, limit in enumerate(supplies[0]):
        times = [spec.batteries if limit.name == "battery" else 1 for spec in mission.vehicles]
        left = sum(each[k].left * n for each, n in zip(supplies, times, strict=True) if k < len(each))
        takes = _whole(domain, cost, limit, mission.vehicles[0].start, within)
        unit = "s" if limit.name == "time" else mission.world.cost_unit
        amounts = f"takes about {_estimate(takes)} of {_estimate(left)} {unit}"
        said = f"{goal.format(distance_text(domain, within))} {amounts}"
        lines.append(f"  coverage  {said}, if nothing else is read")
        if takes > left:
            most, amount_needed = within, f"{_estimate(takes)} {unit}"
            while most < np.linalg.norm(domain.extent) and takes > left:
                most *= _WIDER
                takes = _whole(domain, cost, limit, mission.vehicles[0].start, most)
            warnings.append(
                f"{said}: within reach is a distance of about {distance_text(domain, most)}, or it takes "
                f"a {limit.name} that leaves {amount_needed} to spend"
            )
    return lines, warnings


def _whole(domain: Domain, cost: CostModel, limit: Limit, start: Array, within: float) -> float:
    """Return what it takes of a limit that no place is too far from a reading, with the way home."""
    everywhere = np.ones(domain.size, dtype=bool)
    stops = cover(domain, everywhere, everywhere, within)
    if len(stops) < _MOST_STOPS:
        sites = domain.sites[stops]
        return _takes(limit, start, sites[shortest_order(cost, start, sites)])
    # Too many for a route: square cells whose corners are as far from their middle as places may be.
    spacing = 2.0 * within / np.sqrt(domain.dimension)
    return sweep_cost(domain, limit.going, spacing) + float(limit.back(domain.sites).mean())


def _estimate(value: float) -> str:
    """Return an estimate with two digits.

    Examples
    --------
    >>> _estimate(3427.0), _estimate(0.123)
    ('3,400', '0.12')
    """
    return f"{float(f'{value:.2g}'):,.10g}"


def _stop(agent: AgentState, decision: Decision, route: _Route, site: int) -> Decision:
    """Return a decision to read a site that covers, instead of what was decided."""
    query = Query(agent.domain.sites[site], level=agent.mission.levels[0])
    why = {key: reason for key, reason in decision.why.items() if key == "stop"}
    plan = {"sites": route.stops.tolist(), "cost": route.cost, "within": route.within}
    # The policy will decide again, as if it had not been asked.
    return Decision(query, agent.memory, {**why, "cover": plan, "site": site})
