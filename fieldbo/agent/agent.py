"""The agent: ``ask()`` it for the next order, and ``tell()`` it what happened.

The agent, not the policy, guards the battery. It issues a query only if, from the end of the vehicle's queue,
the battery covers its full cost, the trip home, the reserve and the margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.agent import recharging, warnings
from fieldbo.agent.averaging import Stated
from fieldbo.agent.batches import next_batch
from fieldbo.agent.corrections import corrected, correction, same_readings
from fieldbo.agent.intake import belongs, check_event, vehicle_of
from fieldbo.agent.online_model import OnlineModel
from fieldbo.agent.policy_view import view_at_event, view_when_asked
from fieldbo.agent.proposals import (
    Issued,
    check_decision,
    check_proposal,
    expected_cost,
    initial_queries,
)
from fieldbo.agent.steering import WANTED, completed, obey
from fieldbo.agent.stopping import Verdict, awaits_fit, decided, goal_decides
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.belief.model import LEAST_READINGS, Hyperparameters
from fieldbo.belief.surface import Surface
from fieldbo.errors import InputError
from fieldbo.messages import (
    Answer,
    Command,
    Correction,
    EndReason,
    Event,
    Fitted,
    GoHome,
    Lost,
    Observation,
    Order,
    Query,
    Recharge,
    Rejected,
    Stop,
    Telemetry,
    order_number,
)
from fieldbo.mission.mission import Mission
from fieldbo.policies.contract import Decision, Memory, State

AnyOrder = TypeVar("AnyOrder", bound=Order)

_AMID_INITIAL = (EndReason.STEP_LIMIT, EndReason.VEHICLE_LOST, EndReason.STOPPED_BY_OPERATOR)
"""Reasons that may end a vehicle's part before all initial readings were asked for."""


class Agent:
    """Issue orders for a mission's vehicles, and learn from the events that come back.

    Parameters
    ----------
    mission : Mission
    run : str
        Name of the run; orders have the ids ``<run>/<n>``.

    Attributes
    ----------
    vehicles : list of VehicleState
        Position, clock, queue and ledgers of each vehicle.
    online_model : OnlineModel
        The readings, the model, and the belief over the sites.
    issued : dict of str to Issued
        Every issued order by id, in order, with the policy's memory and `why` at that moment.
    why : mapping or None
        Why the latest order was chosen: the policy's scores, sets and bounds. At the end, the ``end_reason``,
        and the ``limit`` that was short, battery or time. None for initial readings.
    memory : plain data
        The policy's memory.
    endings : dict of int to mapping
        The `why` with which each vehicle was sent home or stopped.
    judged : (tuple of int, Verdict) or None
        The latest verdict on the answer, with the orders and events that it had seen.
    history : list of Event
        All events so far, in order; an observation has its corrected readings.
    asks, queries, steps : int
        Orders issued, queries among them, and queries settled by an observation.
    rejected : (N,) bool array
        Sites that are not to be proposed again.
    commands : list of Command
        An operator's commands in order, refused ones included.
    withdrawn : set of str
        Ids of orders that a command took back before they were done.

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
        self.vehicles = [VehicleState(spec, mission.declared_cost) for spec in mission.vehicles]
        self.asks = self.queries = self.steps = 0
        self.history: list[Event] = []
        self.online_model = OnlineModel(mission)
        self.why: Mapping[str, Any] | None = None
        self.issued: dict[str, Issued] = {}
        self.endings: dict[int, Mapping[str, Any]] = {}
        self.judged: tuple[tuple[int, int], Verdict] | None = None
        self.rejected: Mask = np.zeros(self.domain.size, dtype=bool)
        self.commands: list[Command] = []
        self.withdrawn: set[str] = set()
        self._parts_seen: set[tuple[str, int]] = set()
        self._settled: dict[str, type[Observation | Rejected]] = {}
        self._in_vain: set[int] = set()
        self._initial = initial_queries(mission)
        self.memory: Memory = mission.policy.start(self.seen())
        self._warnings = (*warnings.of_mission(mission), *mission.policy.warnings(self.seen()))

    # -- what it knows ---------------------------------------------------------------------------------

    @property
    def threshold(self) -> float:
        """The question's threshold in model units; NaN for an optimum."""
        return self.threshold_if(float(self.surface.mean.max()))

    def threshold_if(self, maximum: float) -> float:
        """Return the threshold if the field's maximum were `maximum`, both in model units."""
        return self.mission.question.level(maximum, self.hyperparameters.scale)

    @property
    def surface(self) -> Surface:
        """The belief over the domain's sites, in model units."""
        return self.online_model.surface

    @property
    def stated(self) -> Stated:
        """The belief from which results are stated, averaged over hyperparameters, and its scale."""
        return self.online_model.stated

    @property
    def blinded(self) -> bool:
        """Whether some readings dwarf all others: the belief is then sure of other sites for no reason."""
        return bool(len(self.online_model.dwarfing))

    @property
    def hyperparameters(self) -> Hyperparameters:
        """The model's present hyperparameters."""
        return self.online_model.hyperparameters

    @property
    def readings(self) -> int:
        """Number of readings in the model, n, earlier ones included."""
        return self.online_model.readings

    @property
    def believed(self) -> Mask:
        """Which of the readings the model believes at present, (n,) bool."""
        return self.online_model.believed.copy()

    @property
    def disbelieved(self) -> int:
        """Number of readings that the model takes for outliers at present."""
        return int((~self.online_model.believed).sum())

    @property
    def left_out(self) -> int:
        """Number of readings that the model could not use; they are recorded, and their sites passed over."""
        return self.online_model.left_out

    @property
    def spent(self) -> float:
        """Cost of all vehicles so far, in the cost unit."""
        return math.fsum(state.spent for state in self.vehicles)

    @property
    def pending(self) -> tuple[Query, ...]:
        """Outstanding queries of all vehicles."""
        return tuple(order for state in self.vehicles for order in state.queue if isinstance(order, Query))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the mission, and about its readings."""
        return (*self._warnings, *warnings.of_readings(self.mission.world, self.history))

    @property
    def initial(self) -> tuple[Query, ...]:
        """The queries before the policy takes over, as many as are affordable."""
        return tuple(self._initial)

    @property
    def initial_left(self) -> bool:
        """True while initial readings are still to be asked for."""
        return len(self._initial) > self.asks

    def seen(self, vehicle: int = 0) -> State:
        """Return what a policy sees when it learns of an event."""
        return view_at_event(self, vehicle)

    def _asked(self, vehicle: int) -> State:
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
        if state.ended is not None:
            again = state.retry_home and state.affordable_home
            return self._finish(vehicle, state.ended) if again else Stop(state.ended)
        if state.sent_home or state.out_of_touch:
            lost = not state.sent_home
            return self._finish(vehicle, EndReason.VEHICLE_LOST if lost else EndReason.STOPPED_BY_OPERATOR)
        if state.unpriced is not None:
            raise InputError(
                f"another order was asked for while {state.unpriced}, whose cost is unknown, is outstanding",
                expected=f"the outcome of {state.unpriced} first",
                where=f"vehicle {vehicle}",
                fix="pass its observation to tell(), then ask again",
            )
        if state.recharge_due:
            return self._recharge(vehicle)
        choice = self._choose(vehicle)
        if isinstance(choice, Stop):
            return self._finish_or_recharge(vehicle, choice.reason)
        if self.at_limit:  # the policy is asked first: it may have found its answer
            return self._finish(vehicle, EndReason.STEP_LIMIT)
        query = self.issue(choice, vehicle)
        return self._finish_or_recharge(vehicle, EndReason.BATTERY_SPENT) if query is None else query

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
        return next_batch(self, k, vehicle)

    def ask_another(self, vehicle: int = 0) -> Query | None:
        """Return one more query behind the outstanding ones; None if there is none at present."""
        if self.at_limit or self.vehicles[vehicle].unpriced is not None:
            return None
        before = self.memory, self.why
        choice = self._choose(vehicle)
        query = None if isinstance(choice, Stop) else self.issue(choice, vehicle)
        if query is None:
            self.memory, self.why = before
        return query

    def suggest_batch(self, k: int, vehicle: int = 0) -> list[Decision]:
        """Return the policy's choice of up to `k` queries; empty if it chooses one by one, or stops.

        They are not issued yet: `issue` each.
        """
        self._fit_if_due()
        state = self.vehicles[vehicle]
        if state.ended is not None or state.out_of_touch or self.at_limit or goal_decides(self):
            return []
        if state.sent_home or state.recharge_due:
            return []
        if self.mission.max_steps is not None:
            k = min(k, self.mission.max_steps - self.queries)
        decisions = self.mission.policy.suggest_batch(self._asked(vehicle), self.memory, k) or []
        for decision in decisions:
            check_decision(decision, "suggest_batch", self.mission)
        queries = [d for d in decisions if isinstance(d.choice, Query)]
        if queries:
            self.memory = queries[-1].memory
        return queries

    def issue(self, choice: Query, vehicle: int = 0) -> Query | None:
        """Issue a query if it is affordable from the end of the vehicle's queue; otherwise return None."""
        check_proposal(choice, self.mission)
        if not self._affordable(choice, vehicle):
            return None
        state = self.vehicles[vehicle]
        expected = state.price(choice) if state.cost is not None else self._expected_cost(choice)
        query = replace(
            choice,
            vehicle=vehicle,
            expected_cost=expected,
            expected_time_s=state.done_s(choice),
            id=self._next_id(),
            route=self._route(state, choice.site),
        )
        return self._issue(query)

    def _route(self, state: VehicleState, site: Array) -> Array:
        """Return the points (k, d) of the route from the end of a queue to a site; none if it is straight."""
        none = np.empty((0, len(site)))
        if np.isnan(site).any():
            return none
        points = self.mission.world.cost.path(state.end, site, state.time_s)
        return points if len(points) > 2 else none

    def waits(self, vehicle: int = 0) -> bool:
        """Return True if a vehicle must be heard from before it is asked for an order.

        A vehicle that sends telemetry is waited for after each lost order; one that does not, once as many
        were lost as the mission tolerates, if the mission says so (``agent.when_lost``). `ask` does not wait.
        """
        state = self.vehicles[vehicle]
        to_wait = state.out_of_touch and state.spec.when_lost.then == "wait"
        silent = state.reports and state.lost_in_a_row > 0
        return (to_wait or silent) and not state.abandoned and state.ended is None

    def abandon(self, vehicle: int = 0) -> None:
        """Stop waiting for a vehicle: unless it is heard from before the next `ask`, its part ends."""
        self.vehicles[vehicle].abandoned = True

    def at_risk(self, vehicle: int = 0) -> bool:
        """Return True if a vehicle's telemetry shows too little battery for its queue and the trip home."""
        return self.vehicles[vehicle].at_risk

    def _fit_if_due(self) -> None:
        while (fitted := self.refit()) is not None:
            self.tell(fitted)

    @property
    def at_limit(self) -> bool:
        """Whether as many queries were issued as the mission allows."""
        return self.mission.max_steps is not None and self.queries >= self.mission.max_steps

    def _choose(self, vehicle: int) -> Query | Stop:
        """Return what an operator wants next, or the next initial query, or the policy's choice."""
        if (wanted := self._wanted(vehicle)) is not None:
            return wanted
        while self.initial_left:
            query = self._initial[self.asks]
            if self._affordable(query, vehicle):
                return query
            self._initial = self._initial[: self.asks]  # not enough battery for the rest
        decision = decided(self, self._asked(vehicle))
        self.why, self.memory = decision.why, decision.memory
        return decision.choice

    def _wanted(self, vehicle: int) -> Query | None:
        """Return the next query that an operator wants and that is still affordable; None without any."""
        state = self.vehicles[vehicle]
        while state.wanted:
            query = Query(state.wanted.pop(0), level=self.mission.levels[0])
            if self._affordable(query, vehicle):
                self.why = WANTED
                if self.initial_left:  # it comes before the rest of the initial readings
                    self._initial.insert(self.asks, query)
                return query
        return None

    def ask_initial_again(self, query: Query) -> None:
        """Ask for an initial reading once more, after all others."""
        self._initial.append(Query(query.site, query.controls, query.level))

    def _affordable(self, query: Query, vehicle: int) -> bool:
        """Return True if a query is affordable or, where costs are unknown, is expected to be."""
        state = self.vehicles[vehicle]
        if not state.affordable(query.site[None], query.controls, query.level)[0]:
            return False
        return state.cost is not None or (self._expected_cost(query) or 0.0) <= state.spendable

    def _expected_cost(self, query: Query) -> float | None:
        return expected_cost(query, self.issued, [state.ledger for state in self.vehicles])

    def _finish_or_recharge(self, vehicle: int, reason: EndReason) -> GoHome | Recharge | Stop:
        """End a vehicle's part, unless its battery is spent, and another one would afford a query."""
        if reason is EndReason.BATTERY_SPENT and recharging.is_worthwhile(self, vehicle):
            return self._recharge(vehicle)
        return self._finish(vehicle, reason)

    def _recharge(self, vehicle: int) -> GoHome | Recharge | Stop:
        """Send a vehicle home for another battery; if it is there, have it wait for the battery."""
        state = self.vehicles[vehicle]
        home = state.spec.home
        assert home is not None
        if state.recharge_due and state.queue:
            raise InputError(
                f"another order was asked for while {state.queue[-1].id}, on the way to another battery, is "
                "outstanding",
                expected=f"the outcome of {state.queue[-1].id} first",
                where=f"vehicle {vehicle}",
                fix="pass its observation to tell(), then ask again",
            )
        number = state.battery_number + 1
        order: GoHome | Recharge
        if state.at_home and recharging.is_worthwhile(self, vehicle):
            order = Recharge(vehicle, self._next_id(), number, home)
        elif not state.at_home and recharging.can_go_home(self, state):
            order = self._homewards(vehicle, home)
        else:
            return self._finish(vehicle, EndReason.BATTERY_SPENT)
        state.recharge_due = True
        self.why = {**(self.why or {}), recharging.WHY: number}
        return self._issue(replace(order, expected_time_s=state.done_s(order)))

    def _homewards(self, vehicle: int, home: Array) -> GoHome:
        """Return the order to go home from the end of a vehicle's queue."""
        state = self.vehicles[vehicle]
        order = GoHome(vehicle, self._next_id(), home)
        when, route = state.done_s(order), self._route(state, home)
        return replace(order, expected_cost=state.price(order), expected_time_s=when, route=route)

    def _finish(self, vehicle: int, reason: EndReason) -> GoHome | Stop:
        """Send a vehicle home if it has a home and is not there; otherwise stop it."""
        state = self.vehicles[vehicle]
        home = state.spec.home
        state.ended, state.recharge_due = reason, False
        self.why = {**(self.why or {}), "end_reason": reason.value}
        if reason is EndReason.BATTERY_SPENT and (limit := recharging.short_of(self, state)) is not None:
            self.why = {**self.why, "limit": limit}
        self.endings[vehicle] = self.why
        # An outstanding order may still be rejected, so a vehicle due to end at home may end elsewhere.
        left = any(not isinstance(order, Recharge) for order in state.adrift.values())
        adrift = left and reason is not EndReason.VEHICLE_LOST  # it may have left home
        if home is not None and (state.queue or adrift or not np.array_equal(state.position, home)):
            return self._issue(self._homewards(vehicle, home))
        return Stop(reason)

    def _next_id(self) -> str:
        return f"{self.run}/{self.asks}"

    def _issue(self, order: AnyOrder) -> AnyOrder:
        """Append an order to its vehicle's queue and ledger, and count it."""
        assert order.id is not None
        self.vehicles[order.vehicle].send(order)
        self.issued[order.id] = Issued(order, self.memory, self.why)
        self.asks += 1
        self.queries += isinstance(order, Query)
        return order

    @on_one_blas_thread
    def answered(self, vehicle: int = 0) -> bool:
        """Return True if the question counts as answered now."""
        choice = decided(self, self._asked(vehicle)).choice
        return isinstance(choice, Stop) and choice.reason is EndReason.QUESTION_ANSWERED

    def reopen(self, vehicle: int) -> None:
        """Let a vehicle that has ended receive orders again."""
        self.vehicles[vehicle].reopen()
        self.endings.pop(vehicle, None)

    # -- replay ----------------------------------------------------------------------------------------

    def replay(self, order: Order, memory: Memory, why: Mapping[str, Any] | None) -> None:
        """Adopt an order from a record as if it had just been issued; pass its events to `tell` next.

        Parameters
        ----------
        order : Query, GoHome or Recharge
        memory : plain data
            The policy's memory, as recorded with the order.
        why : mapping or None
            As recorded with the order.
        """
        if why != WANTED:  # what was wanted before it was not affordable
            self.vehicles[order.vehicle].wanted.clear()
        if why is not None and "end_reason" in why:
            self.replay_stop(order.vehicle, EndReason(why["end_reason"]), memory, why)
        elif why == WANTED and isinstance(order, Query):
            self._replay_wanted(order)
        elif why is not None:  # the policy has taken over from the initial readings
            self._initial = self._initial[: self.asks]
            if recharging.WHY in why and not isinstance(order, Query):
                self.vehicles[order.vehicle].recharge_due = True
        self.memory, self.why = memory, why
        self._issue(order)

    def _replay_wanted(self, order: Query) -> None:
        """Adopt an order that an operator wanted; those wanted before it were not affordable."""
        wanted = self.vehicles[order.vehicle].wanted
        while wanted and not np.array_equal(wanted.pop(0), order.site):
            pass
        if self.initial_left:
            self._initial.insert(self.asks, order)

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
        if reason not in _AMID_INITIAL:
            self._initial = self._initial[: self.asks]
        self.vehicles[vehicle].ended, self.vehicles[vehicle].recharge_due = reason, False
        if why is not None:
            self.endings[vehicle] = why
        self.memory = memory

    # -- tell ------------------------------------------------------------------------------------------

    @on_one_blas_thread
    def tell(self, event: Event) -> None:
        """Take in what happened.

        A part of an observation that was received before is ignored, and so is a correction that changes
        nothing. Another part that comes after its order was settled, or rejected, is late data: its cost is
        charged and its readings count, but it does not count as a step.

        Raises
        ------
        InputError
            The event belongs to no order of this agent, its position has the wrong number of
            coordinates, it corrects readings that were not reported, or its readings on the way can't come
            from the move of its order. Nothing was taken in.
        """
        self.check(event)
        vehicle = vehicle_of(event, self.issued)
        self.online_model.rebuilt = False
        if isinstance(event, Observation):
            if self._repeats(event):
                return
            if self._settled.get(event.order) is Observation:  # late data settles nothing again
                event = replace(event, last=False)
            self._observed(event)
        elif isinstance(event, Rejected | Lost):
            if event.order not in self.vehicles[vehicle].ledger_of(event.order).reserved:
                return
            self._not_done(event)
        elif isinstance(event, Telemetry):
            self.vehicles[event.vehicle].heard(event)
        elif isinstance(event, Command):
            self.commands.append(event)
            if not event.refused:
                obey(self, event)
            return  # policies see what follows from it
        elif isinstance(event, Answer):
            return  # what it amounts to comes from its vehicle
        elif isinstance(event, Correction):
            place, observation = corrected(self.history, event)
            if same_readings(self.history[place], observation):
                return
            self.history[place] = observation
            self.online_model.correct(observation)
        else:
            self.online_model.refit(event, self.asks)
        self.history.append(event)
        self.memory = self.mission.policy.observe(self.seen(vehicle), self.memory, event)

    def check(self, event: Event) -> None:
        """Check that an event can be taken in; change nothing.

        Raises
        ------
        InputError
            As for `tell`.
        """
        world = self.mission.world
        path = None if world.sensor.along is None or self._repeats(event) else world.cost.path
        check_event(event, self.issued, self.history, self.domain, self.vehicles, path=path)

    def _repeats(self, event: Event) -> bool:
        """Return whether an event is a part of an observation that was received before."""
        return isinstance(event, Observation) and (event.order, event.part) in self._parts_seen

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

    def _not_done(self, event: Rejected | Lost) -> None:
        order = self.issued[event.order].order
        state = self.vehicles[order.vehicle]
        state.recharge_denied |= isinstance(order, Recharge) and event.order not in self.withdrawn
        if isinstance(event, Lost):
            state.lose(event.order)
            return
        state.settle(event.order)
        self._settled[event.order] = Rejected
        if event.order in self.withdrawn:
            state.retry_home = isinstance(order, GoHome)
            return
        state.retry_home = isinstance(order, GoHome) and not state.home_rejected
        state.home_rejected |= isinstance(order, GoHome)
        if isinstance(order, Query) and not np.isnan(order.site).any():
            self.pass_over(order.site)

    def pass_over(self, site: Array) -> None:
        """Never propose the site nearest to `site` again."""
        rejected = self.rejected.copy()
        rejected[self.domain.nearest(site)] = True
        self.rejected = rejected

    def _observed(self, event: Observation) -> None:
        order = self.issued[event.order].order
        state = self.vehicles[order.vehicle]
        lost = event.order in state.ledger_of(event.order).lost
        state.observed(event, order_number(event.order))
        if event.last and isinstance(order, Recharge):
            if event.complete:
                state.renew(order.battery)
            state.recharge_denied |= not event.complete and event.order not in self.withdrawn
        elif event.last and isinstance(order, GoHome) and event.complete:
            state.came_home, state.home_rejected = not state.queue, False
        self._parts_seen.add((event.order, event.part))
        if event.last:
            self.steps += isinstance(order, Query) and event.order not in self._settled
            self._settled[event.order] = Observation
            if event.order in self.withdrawn and isinstance(order, GoHome):
                assert order.site is not None
                state.retry_home = not np.array_equal(event.position, order.site)
        if not self.online_model.learn(event):
            self._nothing_learnt(event, order, lost=lost)

    def _nothing_learnt(self, event: Observation, order: Order, *, lost: bool) -> None:
        """Pass over the place of unusable readings, and a site that gave none on two visits."""
        if event.order in self.withdrawn:
            return
        on_the_way = self.mission.world.sensor.along is not None and not event.last
        if len(event.sites) and not on_the_way:
            self.pass_over(event.sites[-1])
        if lost or not event.last or not isinstance(order, Query) or np.isnan(order.site).any():
            return
        site = int(self.domain.nearest(order.site))
        if site in self._in_vain:
            self.pass_over(order.site)
        self._in_vain.add(site)
