"""The agent: ``ask()`` it for the next order, and ``tell()`` it what happened.

The agent, not the policy, guards the battery. It issues a query only if, from the end of the vehicle's queue,
the battery covers its full cost, the trip home, the reserve and the margin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.agent import warnings
from fieldbo.agent.checks import (
    affordable_route,
    belongs,
    check_decision,
    check_event,
    check_proposal,
    check_replayed,
    correction,
    expected_cost,
    with_own_reasons,
)
from fieldbo.agent.events import repeats, take
from fieldbo.agent.homewards import finish, finish_or_recharge, go_on_home, recharge
from fieldbo.agent.phase import Phase, Turn
from fieldbo.agent.state import WANTED, AgentState, Origin, origin_of, view_at_event, view_when_asked
from fieldbo.agent.steering import completed
from fieldbo.agent.stopping import awaits_fit, decided, goal_decides
from fieldbo.belief.model import LEAST_READINGS
from fieldbo.errors import InputError
from fieldbo.messages import (
    Command,
    Correction,
    EndReason,
    Event,
    Fitted,
    Order,
    Query,
    Recharge,
    Stop,
)
from fieldbo.mission.mission import Mission
from fieldbo.policies.contract import Decision, Memory, State

_AMID_INITIAL = (EndReason.STEP_LIMIT, EndReason.VEHICLE_LOST, EndReason.STOPPED_BY_OPERATOR)
"""Reasons that may end a vehicle's part before all initial readings were asked for."""


class Agent(AgentState):
    """Issue orders for a mission's vehicles, and learn from the events that come back.

    See `AgentState` for what it knows, as attributes.

    Parameters
    ----------
    mission : Mission
    run : str
        Name of the run; orders have the ids ``<run>/<n>``.

    Examples
    --------
    >>> import fieldbo
    >>> agent = fieldbo.Agent(fieldbo.load_mission("lake-level-set"))
    >>> agent.ask().site.tolist()
    [0.0, 0.0]
    """

    def __init__(self, mission: Mission, run: str = "run") -> None:
        super().__init__(mission, run)
        self.memory = mission.policy.start(self.seen())
        self._warnings = (*warnings.of_mission(mission), *mission.policy.warnings(self.seen()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the mission, and about its readings."""
        return (*self._warnings, *warnings.of_readings(self.mission.world, self.history))

    def seen(self, vehicle: int = 0) -> State:
        """Return what a policy sees when it learns of an event."""
        return view_at_event(self, vehicle)

    def _view(self, vehicle: int) -> State:
        """Return what a policy sees when it is asked."""
        return view_when_asked(self, vehicle)

    # -- ask -------------------------------------------------------------------------------------------

    @on_one_blas_thread
    def refit(self) -> Fitted | None:
        """Return a fit of the model if one is due. Pass it to `tell` to adopt it; then ask for another one.

        One is due after a number of readings, and before an answer counts.
        After a correction, the fits that had seen the wrong reading are due again, one after the other.
        """
        if self.online_model.to_repeat:
            asks = self.online_model.to_repeat[0].asks
            return self.online_model.fitted(stream(self.mission.seed, "model", asks))
        waiting = self.initial_left and self.mission.initial >= LEAST_READINGS
        if waiting and self.online_model.earlier >= LEAST_READINGS:
            waiting = False
        if waiting or not (self.online_model.fit_is_due or awaits_fit(self)):
            return None
        return self.online_model.fitted(stream(self.mission.seed, "model", self.asks))

    @on_one_blas_thread
    def ask(self, vehicle: int = 0) -> Order | Stop:
        """Return the next order for a vehicle, or a Stop.

        Raises
        ------
        PolicyError
            The policy returned something else than a decision, gave NaN as a score, or proposed a site
            outside the domain.
        InputError
            An order of unknown cost is outstanding, so that another one might not be affordable; or the
            vehicle is on its way home to another battery, or waits for it.
        """
        self._fit_if_due()
        state = self.vehicles[vehicle]
        self.why = None
        if state.phase.over:
            return go_on_home(self, vehicle)
        if state.out_of_touch:
            return finish(self, vehicle, EndReason.VEHICLE_LOST)
        if state.unpriced is not None:
            raise InputError(
                f"another order was asked for while {state.unpriced}, whose cost is unknown, is outstanding",
                expected=f"the outcome of {state.unpriced} first",
                where=f"vehicle {vehicle}",
                fix="pass its observation to tell(), then ask again",
            )
        if state.phase.between_batteries:
            return recharge(self, vehicle)
        choice, origin = self._choose(vehicle)
        if isinstance(choice, Stop):
            return finish_or_recharge(self, vehicle, choice.reason)
        if self.at_limit:  # the policy is asked first: it may have found its answer
            return finish(self, vehicle, EndReason.STEP_LIMIT)
        query = self.issue(choice, vehicle, origin)
        return finish_or_recharge(self, vehicle, EndReason.BATTERY_SPENT) if query is None else query

    @on_one_blas_thread
    def ask_batch(self, k: int, vehicle: int = 0) -> list[Order]:
        """Return up to `k` orders for a vehicle, each affordable from the end of those before it.

        A policy that chooses batches is asked once; its queries are then put in the order of the shortest
        route. Any other policy is asked query by query, with those before counted as read. Empty where `ask`
        returns a Stop.

        Raises
        ------
        InputError
            `k` is below 1.
        """
        if k < 1:
            raise InputError(f"k = {k}", expected="a batch of at least 1 order", where="ask_batch")
        initial = self.initial_left
        if self.vehicles[vehicle].wanted:
            k = 1  # what an operator wants next is not chosen with others
        if k > 1 and not initial and (batch := self._choose_together(k, vehicle)):
            return batch
        order: Order | Stop | None = self.ask(vehicle)
        orders: list[Order] = []
        while isinstance(order, Query):
            orders.append(order)
            more = len(orders) < k and (self.initial_left or not initial)  # the policy waits for initial ones
            order = self.ask_another(vehicle) if more else None
        return orders if order is None or isinstance(order, Stop) else [*orders, order]

    def _choose_together(self, k: int, vehicle: int) -> list[Order]:
        """Return the batch that the policy chooses; empty if it chooses one by one, or stops."""
        orders: list[Order] = []
        for decision in affordable_route(self.vehicles[vehicle], self.suggest_batch(k, vehicle), self.domain):
            self.why = decision.why
            assert isinstance(decision.choice, Query)
            query = self.issue(decision.choice, vehicle)
            if query is not None:
                orders.append(query)
        return orders

    def ask_another(self, vehicle: int = 0) -> Query | None:
        """Return one more query behind the outstanding ones; None, with nothing changed, if there is none."""
        state = self.vehicles[vehicle]
        if state.phase is not Phase.WORKING or self.at_limit or state.unpriced is not None:
            return None
        before = self.memory, self.why, self._initial, state.wanted
        self._initial, state.wanted = list(self._initial), list(state.wanted)
        choice, origin = self._choose(vehicle)
        query = None if isinstance(choice, Stop) else self.issue(choice, vehicle, origin)
        if query is None:
            self.memory, self.why, self._initial, state.wanted = before
        return query

    def suggest_batch(self, k: int, vehicle: int = 0) -> list[Decision]:
        """Return the policy's choice of up to `k` queries; empty if it chooses one by one, or stops.

        They are not issued yet: `issue` each.
        """
        self._fit_if_due()
        state = self.vehicles[vehicle]
        if state.phase is not Phase.WORKING or state.out_of_touch or self.at_limit or goal_decides(self):
            return []
        if self.mission.max_steps is not None:
            k = min(k, self.mission.max_steps - self.queries)
        decisions = self.mission.policy.suggest_batch(self._view(vehicle), self.memory, k) or []
        for decision in decisions:
            check_decision(decision, "suggest_batch", self.mission)
        queries = [with_own_reasons(d) for d in decisions if isinstance(d.choice, Query)]
        if queries:
            self.memory = queries[-1].memory
        return queries

    def issue(self, choice: Query, vehicle: int = 0, origin: Origin = Origin.POLICY) -> Query | None:
        """Issue a query if it is affordable from the end of the vehicle's queue; otherwise return None.

        Raises
        ------
        InputError
            The vehicle gets no queries: its part is over, or it is to have another battery.
        """
        self._check_working(vehicle)
        check_proposal(choice, self.mission)
        if not self._affordable(choice, vehicle):
            return None
        state = self.vehicles[vehicle]
        expected = state.price(choice) if state.cost is not None else expected_cost(choice, self)
        if origin is Origin.POLICY and (avoided := self.avoided) is not None:
            site = self.domain.nearest(self.domain.expected(choice.site))
            chance = float(self.failures.chances[site])
            self.why = {**(self.why or {}), "failures": {"here": chance, "avoided": int(avoided.sum())}}
        query = replace(
            choice,
            vehicle=vehicle,
            expected_cost=expected,
            expected_time_s=state.done_s(choice),
            id=self.next_id,
            route=self.route_to(choice.site, vehicle),
        )
        return self.add(query, origin)

    def _check_working(self, vehicle: int) -> None:
        phase = self.vehicles[vehicle].phase
        if phase is Phase.WORKING:
            return
        why = "its part is over" if phase.over else "it is to have another battery first"
        raise InputError(
            f"a query was issued to vehicle {vehicle}, but {why}",
            expected="a vehicle at work",
            fix="ask() says what it gets instead",
        )

    def waits(self, vehicle: int = 0) -> bool:
        """Return True if a vehicle must be heard from before it is asked for an order.

        A vehicle that sends telemetry is waited for after each lost order; one that does not, once as many
        were lost as the mission tolerates, if the mission says so (``agent.when_lost``). `ask` does not wait.
        """
        state = self.vehicles[vehicle]
        to_wait = state.out_of_touch and state.spec.when_lost.then == "wait"
        silent = state.reports and state.lost_in_a_row > 0
        return (to_wait or silent) and not state.abandoned and state.phase is not Phase.ENDED

    def abandon(self, vehicle: int = 0) -> None:
        """Stop waiting for a vehicle: unless it is heard from before the next `ask`, its part ends."""
        self.vehicles[vehicle].abandoned = True

    def at_risk(self, vehicle: int = 0) -> bool:
        """Return True if a vehicle's telemetry shows too little battery for its queue and the trip home."""
        return self.vehicles[vehicle].at_risk

    def _fit_if_due(self) -> None:
        while (fitted := self.refit()) is not None:
            self.tell(fitted)

    def _choose(self, vehicle: int) -> tuple[Query | Stop, Origin]:
        """Return what an operator wants next, or the next initial query, or the policy's choice."""
        if (wanted := self._take_wanted(vehicle)) is not None:
            return wanted, Origin.OPERATOR
        while self.initial_left:
            query = self.initial[self.asks]
            if self._affordable(query, vehicle):
                return query, Origin.INITIAL
            self.end_initial()  # not enough battery for the rest
        decision = decided(self, self._view(vehicle))
        self.why, self.memory = decision.why, decision.memory
        return decision.choice, Origin.POLICY

    def _take_wanted(self, vehicle: int) -> Query | None:
        """Return the next query that an operator wants and that is still affordable; None without any."""
        state = self.vehicles[vehicle]
        while state.wanted:
            query = Query(state.wanted.pop(0), level=self.mission.levels[0])
            if self._affordable(query, vehicle):
                self.why = WANTED
                self.put_before_initial(query)
                return query
        return None

    def _affordable(self, query: Query, vehicle: int) -> bool:
        """Return True if a query is affordable or, where costs are unknown, is expected to be."""
        state = self.vehicles[vehicle]
        if not state.affordable(query.site[None], query.controls, query.level)[0]:
            return False
        return state.cost is not None or (expected_cost(query, self) or 0.0) <= state.spendable

    @on_one_blas_thread
    def answered(self, vehicle: int = 0) -> bool:
        """Return True if the question counts as answered now."""
        choice = decided(self, self._view(vehicle)).choice
        return isinstance(choice, Stop) and choice.reason is EndReason.QUESTION_ANSWERED

    def reopen(self, vehicle: int) -> None:
        """Let a vehicle that has ended receive orders again."""
        self.vehicles[vehicle].reopen()
        self.endings.pop(vehicle, None)

    # -- replay ----------------------------------------------------------------------------------------

    def replay(
        self, order: Order, memory: Memory, why: Mapping[str, Any] | None, origin: Origin | None = None
    ) -> None:
        """Adopt an order from a record as if it had just been issued; pass its events to `tell` next.

        Parameters
        ----------
        order : Query, GoHome or Recharge
        memory : plain data
            The policy's memory, as recorded with the order.
        why : mapping or None
            As recorded with the order.
        origin : Origin, optional
            As recorded with the order; old records don't have it.

        Raises
        ------
        RecordError
            No agent gave this order at this point.
        """
        origin = origin_of(order, why) if origin is None else origin
        vehicle = self.vehicles[order.vehicle]
        check_replayed(order, why, origin, vehicle.phase)
        if origin is not Origin.OPERATOR and not vehicle.phase.between_batteries:
            vehicle.wanted.clear()  # what was wanted before it was not affordable
        match origin:
            case Origin.OPERATOR:
                assert isinstance(order, Query)
                while vehicle.wanted and not np.array_equal(vehicle.wanted.pop(0), order.site):
                    pass
                self.put_before_initial(order)
            case Origin.POLICY:
                self.end_initial()
            case Origin.BATTERY:
                self.end_initial()
                changes = isinstance(order, Recharge)
                vehicle.turn(Turn.SENT_TO_CHANGE if changes else Turn.SENT_TO_BATTERY)
            case Origin.END:
                reason = EndReason((why or {})["end_reason"])
                self._replay_end(order.vehicle, Turn.SENT_HOME, reason, why)
        self.memory, self.why = memory, why
        self.add(order, origin)

    def replay_stop(
        self, vehicle: int, reason: EndReason, memory: Memory, why: Mapping[str, Any] | None
    ) -> None:
        """Adopt a vehicle's stop from a record as if it had just been asked.

        Parameters
        ----------
        vehicle : int
        reason : EndReason
        memory : plain data
            The policy's memory, as recorded with the stop.
        why : mapping or None
            As recorded with the stop.
        """
        self._replay_end(vehicle, Turn.STOPPED, reason, why)
        self.memory = memory

    def _replay_end(self, vehicle: int, turn: Turn, reason: EndReason, why: Mapping[str, Any] | None) -> None:
        if reason not in _AMID_INITIAL:
            self.end_initial()
        self.vehicles[vehicle].turn(turn, reason)
        if why is not None:
            self.endings[vehicle] = why

    # -- tell ------------------------------------------------------------------------------------------

    @on_one_blas_thread
    def tell(self, event: Event) -> None:
        """Take in what happened.

        A part of an observation that was received before is ignored, except that it may settle its order; so
        is a correction that changes nothing. Another part that comes after its order was settled, or
        rejected, is late data: its cost is charged and its readings count, but it does not count as a step.

        Raises
        ------
        InputError
            The event belongs to no order of this agent, its position has the wrong number of
            coordinates, it corrects readings that were not reported, or its readings on the way can't come
            from the move of its order. Nothing was taken in.
        """
        self.check(event)
        self.take(event)

    @on_one_blas_thread
    def take(self, event: Event) -> None:
        """Take in what happened, as `tell` does, after `check` has passed it."""
        take(self, event)

    def check(self, event: Event) -> None:
        """Check that an event can be taken in; change nothing.

        Raises
        ------
        InputError
            As for `tell`.
        """
        world = self.mission.world
        path = None if world.sensor.along is None or repeats(self, event) else world.cost.path
        check_event(event, self.issued, self.history, self.domain, self.vehicles, path=path)

    def correct(self, order: str | int, value: float | None, reading: int | None = None) -> Correction:
        """Correct a wrong reading: the belief becomes the one that the right reading would have given.

        Costs, times and places stay, and so do orders that were chosen because of the wrong reading.

        Parameters
        ----------
        order : str or int
            Id or number of the order.
        value : float or None
            What the reading really was, in the user's unit; None or NaN if it failed or is withdrawn.
        reading : int, optional
            Which reading of the order, counted from 0. Required if it has several.

        Returns
        -------
        Correction
            The event, which was passed to `tell`. To record it first, build it with `correction`.

        Raises
        ------
        InputError
            There is no such order or reading, or the value is not a number.

        Examples
        --------
        >>> import fieldbo
        >>> agent = fieldbo.Agent(fieldbo.load_mission("lake-level-set"))
        >>> agent.tell(agent.ask().observed(247.0, noise_variance=0.01))
        >>> agent.correct(0, 24.7)
        Correction(order='run/0', part=0, values=array([24.7]))
        """
        event = self.correction(order, value, reading)
        self.tell(event)
        return event

    def correction(self, order: str | int, value: float | None, reading: int | None = None) -> Correction:
        """Return the event that `correct` passes to `tell`, without taking it in."""
        return correction(self.history, self.run, order, value, reading)

    def completed(self, command: Command) -> Command:
        """Return a command with what it leaves open, or with why it can't be obeyed; pass it to `tell`."""
        command = replace(command, after=self.asks)
        if command.refused:
            return command
        try:
            return completed(self, command)
        except InputError as error:
            fix = f"; {error.fix}" if error.fix else ""
            return replace(command, refused=f"{error.problem}{fix}")

    def knows(self, event: Event) -> bool:
        """Return True if an event belongs to an order that this agent issued, or to no order at all."""
        return belongs(event, self.issued)
