"""Position, battery ledger, belief and policy: ``ask()`` for the next order, ``tell()`` what came of it.

The agent, not the policy, guards the battery: a query leaves only if its full cost, the way home, the
reserve and the margin can be paid from the end of what the vehicle already has in its queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import cycle
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.agent import warnings as cautions
from fieldbo.agent.online_model import OnlineModel
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.belief.model import LEAST_READINGS, Hyperparameters
from fieldbo.belief.surface import Surface
from fieldbo.costs.route import shortest_order
from fieldbo.domain.controls import ControlSet
from fieldbo.errors import InputError, PolicyError
from fieldbo.messages import (
    EndReason,
    Event,
    Fitted,
    GoHome,
    Lost,
    Observation,
    Order,
    Query,
    Rejected,
    Stop,
    Telemetry,
)
from fieldbo.mission.mission import Mission
from fieldbo.policies.contract import Decision, Memory, State

Out = TypeVar("Out", bound=Order)

_AMID_INITIAL = (EndReason.STEP_LIMIT, EndReason.VEHICLE_LOST)
"""Reasons that may end one vehicle's part before the last of the initial readings is asked for."""


class Agent:
    """Asks for the next query, and learns from what it is told.

    Parameters
    ----------
    mission : Mission
    run : str
        Goes into the ids of orders: ``<run>/<n>``.

    Attributes
    ----------
    knowledge : OnlineModel
        The readings, the model, and the belief over the sites.
    why : mapping or None
        Why the last order is what it is: the policy's scores, sets and bounds; at the end the ``end_reason``
        and, where nothing more could be paid for, which ``limit`` it was: battery or time. None for initial
        readings.
    memory : plain data
        The policy's.
    whys, memories : dict of str to mapping or None, to plain data
        Both as they were when each order left, by its id.
    endings : dict of int to mapping
        The `why` with which each vehicle was told to go home or to stop.
    orders : dict of str to Order
        All that left, by id, in order.
    history : list of Event

    Examples
    --------
    >>> import fieldbo
    >>> agent = fieldbo.Agent(fieldbo.load_mission("lake-level-set"))
    >>> agent.ask().site.tolist()
    [0.0, 0.0]
    """

    def __init__(self, mission: Mission, run: str = "run") -> None:
        self.mission, self.run = mission, run
        self.domain = mission.world.domain
        self.crafts = [VehicleState(c, mission.declared_cost) for c in mission.crew]
        self.asks = 0
        self.steps = 0
        self.history: list[Event] = []
        self.knowledge = OnlineModel(mission)
        self.why: Mapping[str, Any] | None = None
        self.whys: dict[str, Mapping[str, Any] | None] = {}
        self.memories: dict[str, Memory] = {}
        self.endings: dict[int, Mapping[str, Any]] = {}
        self._told: set[tuple[str, int]] = set()
        self.orders: dict[str, Order] = {}
        self._rejected = np.zeros(self.domain.size, dtype=bool)
        self._in_vain: set[int] = set()
        self._initial = self._initial_queries()
        self.memory: Memory = mission.policy.start(self.seen())
        self._warnings = (*cautions.of_mission(mission), *mission.policy.warnings(self.seen()))

    # -- what it knows ---------------------------------------------------------------------------------

    @property
    def threshold(self) -> float:
        """The question's threshold in model units; NaN for an optimum."""
        return self.threshold_if(float(self.surface.mean.max()))

    def threshold_if(self, maximum: float) -> float:
        """Return what the threshold would be if the field's maximum were `maximum`; in model units."""
        return self.mission.question.level(maximum, self.hyperparameters.scale)

    @property
    def surface(self) -> Surface:
        """The belief over the domain's sites, in model units."""
        return self.knowledge.surface

    @property
    def hyperparameters(self) -> Hyperparameters:
        """The model's, as they are."""
        return self.knowledge.hyperparameters

    @property
    def readings(self) -> int:
        """How many readings the model has been given."""
        return self.knowledge.readings

    @property
    def believed(self) -> Mask:
        """Which of them the model believes at present, (n,) bool."""
        return self.knowledge.believed.copy()

    @property
    def disbelieved(self) -> int:
        """How many of them it takes for outliers at present."""
        return int((~self.knowledge.believed).sum())

    @property
    def left_out(self) -> int:
        """How many readings the model could not take; they are recorded, and their sites passed over."""
        return self.knowledge.left_out

    @property
    def spent(self) -> float:
        """What all vehicles have spent, in the cost unit."""
        return math.fsum(craft.ledger.spent for craft in self.crafts)

    @property
    def pending(self) -> tuple[Query, ...]:
        """Queries that are out, of all vehicles."""
        return tuple(o for craft in self.crafts for o in craft.queue if isinstance(o, Query))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know: of the mission, and of readings beyond the ends of the domain's axes."""
        return (*self._warnings, *cautions.of_readings(self.domain, self.history))

    @property
    def initial(self) -> tuple[Query, ...]:
        """The queries with which it begins, before the policy takes over: as many as can be paid for."""
        return tuple(self._initial)

    def _initial_queries(self) -> list[Query]:
        """Return queries of the start, then of random sites, each time the cheapest to go to.

        All variables are set where they can be; else each control set has its turn.
        """
        mission, cost, controls = self.mission, self.mission.declared_cost, self.domain.controls
        rest = list(self.domain.draw(max(0, mission.initial - 1), stream(mission.seed, "initial")))
        route = [self.crafts[0].crew.start][: mission.initial]
        while rest:
            costs = None if cost is None or controls is not None else cost.to(route[-1], np.array(rest))
            route.append(rest.pop(0 if costs is None else int(np.argmin(costs))))
        whole = controls is None or controls.index_of(None) is not None
        turns: tuple[ControlSet | None, ...] = (None,) if whole else self.domain.control_sets
        return [
            Query(site, None if one is None else one.controls, level=mission.initial_level)
            for site, one in zip(route, cycle(turns), strict=False)
        ]

    def seen(self, vehicle: int = 0) -> State:
        """Return what a policy sees when it learns of an event: the belief as it is."""
        key = len(self.history)
        return self._state(vehicle, self.surface, lambda: stream(self.mission.seed, "observe", key))

    def _asked(self, vehicle: int) -> State:
        """Return what a policy sees when it is asked: the variances count pending queries as read."""
        surface, pending = self.surface, self.pending
        if pending:
            sites = np.stack([self.domain.expected(q.site) for q in pending])
            noise = [
                self.knowledge.noise(q.level)[self.domain.nearest(site)]
                for q, site in zip(pending, sites, strict=True)
            ]
            surface = surface.believing(sites, noise)
        ask = self.asks
        return self._state(vehicle, surface, lambda: stream(self.mission.seed, "policy", ask))

    def _state(self, vehicle: int, surface: Surface, draw: Callable[[], np.random.Generator]) -> State:
        craft = self.crafts[vehicle]
        return State(
            domain=self.domain,
            question=self.mission.question,
            threshold=self.threshold,
            surface=surface,
            history=tuple(self.history),
            steps=self.steps,
            pending=self.pending,
            position=craft.end,
            home=craft.crew.home,
            remaining=craft.ledger.available,
            spendable=craft.spendable,
            time_s=craft.time_s,
            cost=self.mission.declared_cost,
            sensor=self.mission.world.sensor,
            noise=self.knowledge.noise,
            threshold_if=self.threshold_if,
            scale=self.hyperparameters.scale,
            fixed_model=self.mission.model.every is None,
            provisional=self.knowledge.provisional,
            rebuilt=self.knowledge.rebuilt,
            draw=draw,
            return_cost=craft.return_cost,
            affordable=craft.affordable,
            limits=craft.limits,
            orders=MappingProxyType(self.orders),
            rejected=self._rejected,
        )

    # -- ask -------------------------------------------------------------------------------------------

    @on_one_blas_thread
    def refit(self) -> Fitted | None:
        """Return a fit of the model if one is due, without taking it over: tell it to do so."""
        waiting = self.initial_left and self.mission.initial >= LEAST_READINGS
        if waiting or not self.knowledge.fit_is_due:
            return None
        return self.knowledge.fitted(stream(self.mission.seed, "model", self.asks))

    @on_one_blas_thread
    def ask(self, vehicle: int = 0) -> Order | Stop:
        """Return the next order for a vehicle, or a Stop.

        Raises
        ------
        PolicyError
            The policy proposed a site outside the domain.
        InputError
            An order is out of which nobody knows what it will cost: another one might not be paid for.
        """
        self._fit_if_due()
        craft = self.crafts[vehicle]
        self.why = None
        if craft.ended is not None:
            again = craft.turned_back and craft.affordable_home
            return self._finish(craft, vehicle, craft.ended) if again else Stop(craft.ended)
        if craft.out_of_touch:
            return self._finish(craft, vehicle, EndReason.VEHICLE_LOST)
        if craft.unpriced is not None:
            raise InputError(
                f"what {craft.unpriced} costs is not known yet, and another order is asked for",
                expected="to be told what came of it first: nothing like it was paid for before",
                where=f"vehicle {vehicle}",
            )
        choice = self._choose(craft, vehicle)
        if isinstance(choice, Stop):
            return self._finish(craft, vehicle, choice.reason)
        if self._at_limit:
            return self._finish(craft, vehicle, EndReason.STEP_LIMIT)  # and no answer came before it
        query = self._paid_for(choice, craft, vehicle)
        return self._finish(craft, vehicle, EndReason.BATTERY_SPENT) if query is None else query

    def waits(self, vehicle: int = 0) -> bool:
        """Say whether a vehicle is to be heard of before it is asked for an order, as the mission says.

        `ask` does not wait: it takes such a vehicle for lost.
        """
        craft = self.crafts[vehicle]
        to_wait = craft.crew.when_lost.then == "wait" and not craft.abandoned
        return craft.out_of_touch and to_wait and craft.ended is None

    def abandon(self, vehicle: int = 0) -> None:
        """Wait no longer for a vehicle: unless it is heard of before it is asked, its part ends."""
        self.crafts[vehicle].abandoned = True

    def at_risk(self, vehicle: int = 0) -> bool:
        """Say whether a vehicle, by its telemetry, can no longer pay for what is out and for the way home."""
        return self.crafts[vehicle].at_risk

    def _fit_if_due(self) -> None:
        fitted = self.refit()
        if fitted is not None:
            self.tell(fitted)

    @property
    def _at_limit(self) -> bool:
        return self.mission.max_steps is not None and self.asks >= self.mission.max_steps

    def _paid_for(self, choice: Query, craft: VehicleState, vehicle: int) -> Query | None:
        """Let a query out if it can be paid for from the end of the queue; None if it can't."""
        self._check_choice(choice)
        if not self._affordable(choice, craft):
            return None
        expected = craft.price(choice) if craft.cost is not None else self._expected_cost(choice)
        query = replace(
            choice,
            vehicle=vehicle,
            expected_cost=expected,
            expected_time_s=craft.done_s(choice),
            id=self._next_id(),
        )
        return self._let_out(query)

    def _affordable(self, query: Query, craft: VehicleState) -> bool:
        """Say whether a query can be paid for or, where costs are unknown, is expected to be."""
        if not craft.affordable(query.site[None], query.controls, query.level)[0]:
            return False
        return craft.cost is not None or (self._expected_cost(query) or 0.0) <= craft.spendable

    def _expected_cost(self, choice: Query) -> float | None:
        """Return what a query of unknown cost is expected to take: as its policy says, or as those before it.

        None where nothing was controlled in that way before.
        """
        if choice.expected_cost is not None:
            return choice.expected_cost
        alike = {k for k, o in self.orders.items() if isinstance(o, Query) and _controls_alike(o, choice)}
        paid = [e.spent for c in self.crafts for k, e in c.ledger.entries.items() if k in alike and not e.out]
        paid = [cost for cost in paid if not math.isnan(cost)]
        return math.fsum(paid) / len(paid) if paid else None

    def _check_choice(self, choice: Query) -> None:
        """Raise a `PolicyError` if a policy's query can't be carried out in this domain."""
        name, controls = type(self.mission.policy).__name__, self.domain.controls
        free = np.zeros(len(choice.site), dtype=bool) if choice.controls is None else ~choice.controls
        if controls is not None and controls.index_of(choice.controls) is None:
            raise PolicyError(f"{name} proposed controls {choice.controls}, which are no control set")
        if controls is None and free.any():
            raise PolicyError(f"{name} left variables free in a domain without control sets")
        if not self.domain.contains(np.where(free, self.domain.middle, choice.site)[None])[0]:
            raise PolicyError(f"{name} proposed {choice.site.tolist()}, outside the domain")
        if choice.level not in range(settings := self.mission.world.sensor.settings):
            raise PolicyError(f"{name} proposed level {choice.level} of a sensor with {settings}")

    def _choose(self, craft: VehicleState, vehicle: int) -> Query | Stop:
        while self.initial_left:
            query = self._initial[self.asks]
            if self._affordable(query, craft):
                return query
            self._initial = self._initial[: self.asks]  # the battery is too small for the rest
        decision = self.mission.policy.suggest(self._asked(vehicle), self.memory)
        self.why, self.memory = decision.why, decision.memory
        return decision.choice

    @property
    def initial_left(self) -> bool:
        """Whether readings are still to be taken before the policy takes over."""
        return len(self._initial) > self.asks

    def _finish(self, craft: VehicleState, vehicle: int, reason: EndReason) -> GoHome | Stop:
        """Go home first where there is a home and it was not reached yet, then stop."""
        home = craft.crew.home
        craft.ended = reason
        self.why = {**(self.why or {}), "end_reason": reason.value}
        if reason is EndReason.BATTERY_SPENT and (limit := self._short_of(craft)) is not None:
            self.why = {**self.why, "limit": limit}
        self.endings[vehicle] = self.why
        # What is out may yet be turned down, and a vehicle that was to end at home be elsewhere.
        if home is not None and (craft.queue or not np.array_equal(craft.position, home)):
            way = GoHome(vehicle, self._next_id(), home)
            when = craft.done_s(way)
            return self._let_out(replace(way, expected_cost=craft.price(way), expected_time_s=when))
        return Stop(reason)

    def _short_of(self, craft: VehicleState) -> str | None:
        """Return which limit pays for no further site, or for the fewest; None if it is no matter of them."""
        sites = self.domain.sites[~self._rejected]
        sets = [one.controls for one in self.domain.control_sets]
        return craft.short_of(sites, sets or (None,)) if len(sites) else None

    def _next_id(self) -> str:
        return f"{self.run}/{self.asks}"

    def replay(self, order: Order, memory: Memory, why: Mapping[str, Any] | None) -> None:
        """Take over an order of a record, as if it had just been asked for; tell its events next.

        Parameters
        ----------
        order : Query or GoHome
        memory : plain data
            The policy's, as recorded with the order.
        why : mapping or None
            As recorded with the order.
        """
        if why is not None and "end_reason" in why:
            self.replay_stop(order.vehicle, EndReason(why["end_reason"]), memory, why)
        elif why is not None:  # the policy has taken over from the initial readings
            self._initial = self._initial[: self.asks]
        self.memory, self.why = memory, why
        self._let_out(order)

    def replay_stop(
        self, vehicle: int, reason: EndReason, memory: Memory, why: Mapping[str, Any] | None
    ) -> None:
        """Take over from a record that a vehicle was told to stop, as if it had just been asked.

        Parameters
        ----------
        vehicle : int
        reason : EndReason
        memory : plain data
            The policy's, as recorded with the stop.
        why : mapping or None
            As recorded with the stop.
        """
        if reason not in _AMID_INITIAL:
            self._initial = self._initial[: self.asks]
        self.crafts[vehicle].ended = reason
        if why is not None:
            self.endings[vehicle] = why
        self.memory = memory

    def _let_out(self, order: Out) -> Out:
        """Count an order that leaves: in the vehicle's queue and ledger, and in the number of asks."""
        assert order.id is not None
        self.crafts[order.vehicle].send(order)
        self.orders[order.id] = order
        self.whys[order.id], self.memories[order.id] = self.why, self.memory
        self.asks += 1
        return order

    @on_one_blas_thread
    def ask_batch(self, k: int, vehicle: int = 0) -> list[Order]:
        """Return up to `k` orders for a vehicle, each paid for from the end of those before it.

        A policy that chooses batches does so once; its queries are then put in the order of the shortest
        way. Any other is asked query by query, those before counted as read. Empty where `ask` has a Stop.

        Raises
        ------
        InputError
            `k` is below 1.
        """
        if k < 1:
            raise InputError(f"a batch of {k}", expected="at least 1")
        orders: list[Order] = []
        while self.initial_left and len(orders) < k and self.crafts[vehicle].unpriced is None:
            if not isinstance(first := self.ask(vehicle), Query):
                return orders if isinstance(first, Stop) else [*orders, first]
            orders.append(first)
        if orders:
            return orders  # the policy waits for what they say
        if k > 1 and (chosen := self._batch(k, vehicle)):
            return chosen
        order = self.ask(vehicle)
        while isinstance(order, Query):
            orders.append(order)
            if len(orders) == k or (another := self._another(vehicle)) is None:
                return orders
            order = another
        return orders if isinstance(order, Stop) else [*orders, order]

    def _another(self, vehicle: int) -> Query | None:
        """Return one more query behind those that are out; None if there is none, which may yet change."""
        if self._at_limit or self.crafts[vehicle].unpriced is not None:
            return None
        craft, before = self.crafts[vehicle], (self.memory, self.why)
        choice = self._choose(craft, vehicle)
        query = None if isinstance(choice, Stop) else self._paid_for(choice, craft, vehicle)
        if query is None:
            self.memory, self.why = before
        return query

    def _batch(self, k: int, vehicle: int) -> list[Order]:
        """Return the batch that the policy chooses; empty if it chooses one by one, or stops."""
        self._fit_if_due()
        craft = self.crafts[vehicle]
        if craft.ended is not None or craft.out_of_touch or self._at_limit:
            return []
        if self.mission.max_steps is not None:
            k = min(k, self.mission.max_steps - self.asks)
        decisions = self.mission.policy.suggest_batch(self._asked(vehicle), self.memory, k)
        queries = [d for d in decisions or [] if isinstance(d.choice, Query)]
        if not queries:
            return []
        self.memory = queries[-1].memory
        orders: list[Order] = []
        for decision in self._payable_route(craft, queries):
            self.why = decision.why
            assert isinstance(decision.choice, Query)
            query = self._paid_for(decision.choice, craft, vehicle)
            if query is not None:
                orders.append(query)
        return orders

    def _payable_route(self, craft: VehicleState, decisions: list[Decision]) -> list[Decision]:
        """Return decisions in the order of the shortest way, less those chosen last if it can't be paid."""
        for k in range(len(decisions), 0, -1):
            choices = [d.choice for d in decisions[:k] if isinstance(d.choice, Query)]
            cost = self.mission.declared_cost
            stops = np.stack([self.domain.expected(c.site) for c in choices])
            order = range(k) if cost is None else shortest_order(cost, craft.end, stops)
            if craft.can_pay([choices[n] for n in order]):
                return [decisions[n] for n in order]
        return []

    # -- tell ------------------------------------------------------------------------------------------

    @on_one_blas_thread
    def tell(self, event: Event) -> None:
        """Take in what happened. A part of an observation that was told before is ignored.

        So is what comes after an order was settled, but for a late observation of a lost one.

        Raises
        ------
        InputError
            The event belongs to no order of this agent, or has not the domain's number of axes; nothing
            was taken in.
        """
        vehicle = self._vehicle_of(event)
        self.knowledge.rebuilt = False
        if isinstance(event, Observation):
            if (event.order, event.part) in self._told:
                return
            self._observed(event)
        elif isinstance(event, Rejected | Lost):
            if event.order not in self.crafts[vehicle].ledger.reserved:
                return
            self._not_done(event, self.crafts[vehicle])
        elif isinstance(event, Telemetry):
            self.crafts[event.vehicle].heard(event)
        else:
            self.knowledge.refit(event)
        self.history.append(event)
        self.memory = self.mission.policy.observe(self.seen(vehicle), self.memory, event)

    def knows(self, event: Event) -> bool:
        """Say whether an event belongs to an order that this agent gave, or to no order at all."""
        order = getattr(event, "order", None)
        return order is None or order in self.orders

    def _vehicle_of(self, event: Event) -> int:
        """Return whose event it is, after checking that it can be taken in."""
        if not self.knows(event):
            raise InputError(
                f"an event for order {getattr(event, 'order', None)!r}",
                expected="the id of an order that this agent gave",
                fix="pass the query's own id on: Observation(order=query.id, ...)",
            )
        if isinstance(event, Observation | Telemetry) and len(event.position) != self.domain.dimension:
            raise InputError(
                f"a position of {len(event.position)} coordinates",
                expected=f"{self.domain.dimension}: {', '.join(a.name for a in self.domain.axes)}",
            )
        if isinstance(event, Observation | Rejected | Lost):
            return self.orders[event.order].vehicle
        if not isinstance(event, Telemetry):
            return 0
        if event.vehicle not in range(len(self.crafts)):
            raise InputError(
                f"telemetry of vehicle {event.vehicle}",
                expected=f"0 to {len(self.crafts) - 1}, as the mission has",
            )
        return event.vehicle

    def _not_done(self, event: Rejected | Lost, craft: VehicleState) -> None:
        order = self.orders[event.order]
        if isinstance(event, Lost):
            craft.lose(event.order)
            return
        craft.settle(event.order)
        craft.turned_back = isinstance(order, GoHome) and not craft.went_back
        craft.went_back |= isinstance(order, GoHome)
        if isinstance(order, Query) and not np.isnan(order.site).any():
            self._pass_over(order.site)

    def _pass_over(self, site: Array) -> None:
        """Propose the site nearest to `site` no more."""
        rejected = self._rejected.copy()
        rejected[self.domain.nearest(site)] = True
        self._rejected = rejected

    def _observed(self, event: Observation) -> None:
        order = self.orders[event.order]
        craft = self.crafts[order.vehicle]
        lost = event.order in craft.ledger.lost
        craft.observed(event, int(event.order.rsplit("/", 1)[1]))
        self._told.add((event.order, event.part))
        if event.last and isinstance(order, Query):
            self.steps += 1
        if not self.knowledge.learn(event):
            self._nothing_learnt(event, order, lost=lost)

    def _nothing_learnt(self, event: Observation, order: Order, *, lost: bool) -> None:
        """Pass over where nothing can be read; and what was asked for in vain twice, on whatever way."""
        if len(event.sites):
            self._pass_over(event.sites[-1])  # nothing can be read there, or not with this model
        if lost or not event.last or isinstance(order, GoHome) or np.isnan(order.site).any():
            return
        site = int(self.domain.nearest(order.site))
        if site in self._in_vain:
            self._pass_over(order.site)
        self._in_vain.add(site)


def _controls_alike(one: Query, other: Query) -> bool:
    """Say whether two queries set the same variables."""
    masks = (np.ones(len(q.site), dtype=bool) if q.controls is None else q.controls for q in (one, other))
    return bool(np.equal(*masks).all())
