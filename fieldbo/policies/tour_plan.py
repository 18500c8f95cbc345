"""A short tour of readings, and policies that begin one: each stop adds most to the others, per unit of cost.

===========  ========================================================================
``W``        candidates for a stop
``places``   where the tour starts, place 0, and the candidates
``travel``   cost of travelling from each place to each other
===========  ========================================================================
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.lookahead import Whole
from fieldbo.belief.question import Optimum
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.choice import leading, needs_declared_costs, reading_noise
from fieldbo.policies.contract import Decision, Memory, Policy, State

LEAST_SHARE = 0.7  # of the first stop's gain per cost, which each stop must bring
_SWEEPS = 2
_LEAST_GAIN = 1e-6  # less is rounding


class Outlook(Protocol):
    """What readings at a few candidates are expected to gain, none of them taken yet."""

    def gains(self, stops: list[int]) -> tuple[Array, float]:
        """Return what one more reading at each candidate would gain after those at some stops.

        Parameters
        ----------
        stops : list of int
            Candidates.

        Returns
        -------
        gains : (W,) array
        gained : float
            By the readings at the stops together.
        """


class Planned(NamedTuple):
    """A tour: the candidates where it stops, in order; what it is expected to gain; its cost."""

    stops: list[int]
    gain: float
    cost: float


@dataclass(frozen=True, eq=False)
class TourCosts:
    """What a tour costs.

    Parameters
    ----------
    travel : (W + 1, W + 1) array
    home : (W + 1,) array
        Cost of the trip home from each place; zeros without a home.
    sampling : (W,) array
        Cost of a reading at each candidate, once there; above 0.
    left : float
        What the tour and the trip home may cost together.
    """

    travel: Array
    home: Array
    sampling: Array
    left: float

    def of(self, route: list[int]) -> float:
        """Return the cost of a route, its readings included."""
        travel = self.travel[route[:-1], route[1:]].sum()
        return float(travel + self.sampling[np.array(route[1:], dtype=int) - 1].sum())

    def detours(self, route: list[int]) -> tuple[Array, Whole]:
        """Return the extra cost of each candidate as one more stop, and where in the route it would come.

        The cheapest place in the route, the latest of ties. The cost is infinite if the battery is too low.

        Parameters
        ----------
        route : list of int
            Places, the first of them 0.
        """
        from fieldbo.policies._tour_loops import cheapest_detours

        detours, places = np.empty(len(self.sampling)), np.empty(len(self.sampling), dtype=int)
        cheapest_detours(self.travel, self.home, self.sampling, self.left, np.array(route), detours, places)
        return detours, places

    def shortened(self, route: list[int]) -> list[int]:
        """Return the places of a route in an order that needs little travel."""
        from fieldbo.costs._route_loops import shorten

        order = np.array(route)
        shorten(self.travel, order)
        return order.tolist() if self.of(order.tolist()) + self.home[order[-1]] <= self.left else route


def plan_tour(outlook: Outlook, costs: TourCosts, most: int) -> Planned:
    """Return a tour of up to `most` stops.

    Insert the stop that gains most per unit of cost, again and again, as long as it reaches a share of what
    the first one gains: the least rate. A stop is worth what it gains beyond the cost of its detour at that
    rate. Take out each stop in turn, and put in the one that is worth most.
    """
    route, rate, gain = _grow([0], 0.0, outlook, costs, most)
    route = costs.shortened(route)
    for _ in range(_SWEEPS):
        before = route
        for place in before[1:]:
            route = _replace(route, place, rate, outlook, costs)
        if route == before:
            break
        route, _, gain = _grow(route, rate, outlook, costs, most)
        route = costs.shortened(route)
    return Planned([place - 1 for place in route[1:]], gain, costs.of(route))


def _grow(
    route: list[int], rate: float, outlook: Outlook, costs: TourCosts, most: int
) -> tuple[list[int], float, float]:
    """Return a route with more stops, the rate that each reaches, and what all stops together gain.

    If the rate is 0, the first stop sets it.
    """
    route = [*route]
    while True:
        gains, gained = outlook.gains([place - 1 for place in route[1:]])
        detours, places = costs.detours(route)
        rates = gains / detours
        best = int(np.argmax(rates))
        if len(route) > most or rates[best] <= rate:
            return route, rate, gained
        rate = rate or LEAST_SHARE * float(rates[best])
        route.insert(int(places[best]), best + 1)


def _replace(route: list[int], place: int, rate: float, outlook: Outlook, costs: TourCosts) -> list[int]:
    """Return a route with the best stop in place of one of its stops, or without it."""
    without = [*route]
    without.remove(place)
    gains, _ = outlook.gains([p - 1 for p in without[1:]])
    detours, places = costs.detours(without)
    worth = gains - rate * detours
    best = int(np.argmax(worth))
    if worth[best] <= max(worth[place - 1], 0.0) + _LEAST_GAIN * gains[best]:
        return route if worth[place - 1] > 0 or not without[1:] else without
    without.insert(int(places[best]), best + 1)
    return without


class Stops(NamedTuple):
    """Candidates for a stop: their sites (W, d), levels (W,), noise variances (W,), and prices (W,) there."""

    sites: Array
    levels: Whole
    noise: Array
    sampling: Array

    @classmethod
    def of(cls, state: State, sites: Array, levels: Whole, least: float = 0.0) -> Stops:
        """Return stops at sites (W, d) and levels (W,), each at its price, and at least the least."""
        assert state.cost is not None
        cost, over, each = state.cost, Surface(state.belief, sites), np.arange(len(sites))
        noise = state.at_levels(lambda level: reading_noise(state, level, over))[each, levels]
        sampling = state.at_levels(lambda level: cost.sampling_cost(sites, level))[each, levels]
        return cls(sites, levels, noise, np.maximum(sampling + step_price(state), least))

    def costs(self, state: State) -> TourCosts:
        """Return what tours of these stops cost."""
        assert state.cost is not None
        places = np.concatenate([state.position[None], self.sites])
        travel = state.cost.travel(places, places, state.time_s)
        return TourCosts(travel, state.return_cost(places), self.sampling, state.spendable)

    def decisions(
        self, state: State, memory: Memory, tour: Planned, k: int, why: Mapping[str, Any]
    ) -> list[Decision]:
        """Return the decisions for the first `k` stops of a tour, each with the reasons for all of it."""
        rate, made = tour.gain / tour.cost, list[Decision]()
        stops = [{"stop": self.sites[w].tolist()} for w in tour.stops]
        for w in tour.stops[:k]:
            level = int(self.levels[w])
            best = leading(state, np.array([rate]), np.array([True]), (level,), self.sites[[w]])
            site = {} if state.domain.continuous else {"site": state.domain.nearest(self.sites[w])}
            reasons = {"score": rate, **site, "best": best, "gain": tour.gain, **why, "tour": stops}
            made.append(Decision(Query(self.sites[w], level=level), memory, reasons))
        return made


class PlansTours(Policy):
    """A policy for an optimum that plans a tour and begins it; batches are its first stops."""

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if the costs are not declared."""
        needs_declared_costs(cost)

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the first stop of the tour."""
        chosen = self._tour(state, memory, 1)
        return Decision(Stop(chosen), memory) if isinstance(chosen, EndReason) else chosen[0]

    def suggest_batch(self, state: State, memory: Memory, k: int) -> list[Decision] | None:
        """Return the first `k` stops of the tour."""
        chosen = self._tour(state, memory, k)
        return None if isinstance(chosen, EndReason) else chosen

    @abstractmethod
    def _tour(self, state: State, memory: Memory, k: int) -> list[Decision] | EndReason:
        """Return the decisions for the first `k` stops of the tour, at least one; or the reason to stop."""


def step_price(state: State) -> float:
    """Return the price of a step beyond its cost: its part of the battery, if steps are limited."""
    return (state.spendable or 1.0) / max(1.0, state.steps_left)


def draw_by_lot(logs: Array, most: int, rng: np.random.Generator) -> Whole:
    """Return up to `most` indices drawn without replacement, by the logarithms of their weights.

    The largest logarithms after adding Gumbel noise are such a draw.
    """
    return highest_of(logs + rng.gumbel(size=logs.shape), most)


def highest_of(logs: Array, most: int) -> Whole:
    """Return the indices of up to `most` of the largest finite numbers, the first of ties."""
    flat = logs.ravel()
    first = np.argsort(-flat, kind="stable")[:most]
    return first[flat[first] > -np.inf]
