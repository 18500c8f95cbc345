"""What an agent knows and has ordered: its state, on which its parts act, and what a policy sees of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import cycle
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.streams import stream
from fieldbo.agent.averaging import Stated
from fieldbo.agent.failures import Failures, Standstill
from fieldbo.agent.online_model import OnlineModel
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.belief.hyperparameters import Hyperparameters
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import Supply
from fieldbo.domain.controls import ControlSet
from fieldbo.messages import Command, Event, GoHome, Observation, Order, Query, Recharge, Rejected
from fieldbo.mission.mission import Mission
from fieldbo.policies.contract import Memory, State

AnyOrder = TypeVar("AnyOrder", bound=Order)


class Origin(Enum):
    """Where an order came from."""

    INITIAL = "initial"
    """It is a reading before the policy takes over."""

    POLICY = "policy"
    OPERATOR = "operator"
    BATTERY = "battery"
    """The vehicle needs another battery: it goes home, or waits there."""

    END = "end"
    """The vehicle's part is over, and it goes home."""


@dataclass(frozen=True)
class Issued:
    """An order that was issued, and the policy's state at that moment.

    Parameters
    ----------
    order : Query, GoHome or Recharge
    memory : plain data
        The policy's memory after it chose the order.
    why : mapping or None
        Why the order was chosen; None for an initial reading.
    origin : Origin
    """

    order: Order
    memory: Memory
    why: Mapping[str, Any] | None
    origin: Origin


@dataclass(frozen=True)
class Verdict:
    """How sure the belief is of its answer.

    Attributes
    ----------
    goal : float
        F1 to reach, or regret not to exceed as a share of the range of the readings.
    probability : float
        That the answer reaches the goal; 0 if it is far from it.
    wanted : float
        The probability at which the question counts as answered.
    unseen, unfitted : bool
        Why an answer of which the model is sure enough does not count: the readings leave room in which an
        optimum, or a patch of the other side of the threshold, could hide; or, if there is none, the latest
        fit has not seen all readings.
    farthest, within : float or None
        How far the farthest place is from a reading, and how far it may be; None without such a limit.
    """

    goal: float
    probability: float
    wanted: float
    unseen: bool = False
    unfitted: bool = False
    farthest: float | None = None
    within: float | None = None

    @property
    def too_far(self) -> bool:
        """Whether a place is farther from all readings than the mission allows."""
        return self.farthest is not None and self.within is not None and self.farthest > self.within

    @property
    def answered(self) -> bool:
        """Whether the question counts as answered."""
        return self.probability >= self.wanted and not (self.unseen or self.unfitted or self.too_far)

    @property
    def why(self) -> dict[str, Any]:
        """The verdict, for a record."""
        stop: dict[str, Any] = {"goal": self.goal, "probability": self.probability, "wanted": self.wanted}
        if self.within is not None:  # before the first reading, every place is infinitely far
            far = self.farthest if self.farthest is not None and np.isfinite(self.farthest) else None
            stop |= {"farthest": far, "within": self.within}
        return {"stop": stop | {k: True for k in ("unseen", "unfitted") if getattr(self, k)}}


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


AGENT_KEYS = {"cover", "end_reason", "failures", "limit", "operator", "recharge", "stop"}
"""Keys of a `why` that the agent itself sets."""

WANTED = {"operator": "next"}
"""Why an order was issued that an operator wanted."""


def origin_of(order: Order, why: Mapping[str, Any] | None) -> Origin:
    """Return where an order came from if its record does not say it, by its `why`."""
    if isinstance(order, Recharge):
        return Origin.BATTERY
    if isinstance(order, GoHome):
        return Origin.END if "end_reason" in (why or {}) else Origin.BATTERY
    if why is None:
        return Origin.INITIAL
    return Origin.OPERATOR if why == WANTED else Origin.POLICY


class AgentState:
    """What an agent knows of a mission's field and vehicles, and what it has ordered.

    Parameters
    ----------
    mission : Mission
    run : str
        Name of the run; orders have the ids ``<run>/<n>``.

    Attributes
    ----------
    vehicles : list of VehicleState
        Phase, position, clock, queue and ledgers of each vehicle.
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
    failures : Failures
        Where readings fail.
    passed_over : (N,) bool array
        Sites that are never to be proposed again.
    commands : list of Command
        An operator's commands in order, refused ones included.
    withdrawn : set of str
        Ids of orders that a command took back before they were done.
    parts_seen : set of (str, int)
        Orders and numbers of the parts of observations that were received.
    settled : dict of str to type
        How each order was settled: `Observation` or `Rejected`.
    seen_in_vain : set of int
        Sites that were visited without a usable reading.
    """

    def __init__(self, mission: Mission, run: str = "run") -> None:
        self.mission, self.run = mission, run
        self.domain = mission.world.domain
        unit, limit = mission.world.cost_unit, mission.world.sensor.below
        self.vehicles = [
            VehicleState(spec, mission.declared_cost, still=Standstill(spec.battery, unit, limit))
            for spec in mission.vehicles
        ]
        self.asks = self.queries = self.steps = 0
        self.history: list[Event] = []
        self.online_model = OnlineModel(mission)
        self.why: Mapping[str, Any] | None = None
        self.memory: Memory = {}
        self.issued: dict[str, Issued] = {}
        self.endings: dict[int, Mapping[str, Any]] = {}
        self.judged: tuple[tuple[int, int], Verdict] | None = None
        self.failures = Failures(self.domain, mission.model, mission.failure_limit)
        self.passed_over: Mask = np.zeros(self.domain.size, dtype=bool)
        self.commands: list[Command] = []
        self.withdrawn: set[str] = set()
        self.parts_seen: set[tuple[str, int]] = set()
        self.settled: dict[str, type[Observation | Rejected]] = {}
        self.seen_in_vain: set[int] = set()
        self._initial = initial_queries(mission)

    # -- the belief ------------------------------------------------------------------------------------

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

    # -- the orders ------------------------------------------------------------------------------------

    @property
    def spent(self) -> float:
        """Cost of all vehicles so far, in the cost unit."""
        return math.fsum(state.spent for state in self.vehicles)

    @property
    def pending(self) -> tuple[Query, ...]:
        """Outstanding queries of all vehicles."""
        return tuple(order for state in self.vehicles for order in state.queue if isinstance(order, Query))

    @property
    def at_limit(self) -> bool:
        """Whether as many queries were issued as the mission allows."""
        return self.mission.max_steps is not None and self.queries >= self.mission.max_steps

    @property
    def next_id(self) -> str:
        """The id of the next order."""
        return f"{self.run}/{self.asks}"

    def add(self, order: AnyOrder, origin: Origin) -> AnyOrder:
        """Append an order to its vehicle's queue and ledger, and count it."""
        assert order.id is not None
        self.vehicles[order.vehicle].send(order)
        self.issued[order.id] = Issued(order, self.memory, self.why, origin)
        self.asks += 1
        self.queries += isinstance(order, Query)
        return order

    def route_to(self, site: Array, vehicle: int) -> Array:
        """Return the points (k, d) of the route from the end of a queue to a site; none if it is straight."""
        state, none = self.vehicles[vehicle], np.empty((0, len(site)))
        if np.isnan(site).any():
            return none
        points = self.mission.world.cost.path(state.end, site, state.time_s)
        return points if len(points) > 2 else none

    def pass_over(self, site: Array) -> None:
        """Never propose the site nearest to `site` again."""
        passed_over = self.passed_over.copy()
        passed_over[self.domain.nearest(site)] = True
        self.passed_over = passed_over

    @property
    def avoided(self) -> Mask | None:
        """Sites (N,) where readings are likely to fail, while others are left; None without any."""
        avoided = self.failures.avoided
        return None if avoided is None or (avoided | self.passed_over).all() else avoided

    @property
    def rejected(self) -> Mask:
        """Sites (N,) that are not to be proposed now.

        Those passed over, those where readings fail, and those that were read as often as the mission allows.
        """
        avoided, read_out = self.avoided, self.read_out
        rejected = self.passed_over if avoided is None else self.passed_over | avoided
        return rejected if read_out is None else rejected | read_out

    @property
    def read_out(self) -> Mask | None:
        """Sites (N,) that were read as often as the mission allows; None if it sets no limit."""
        most = self.mission.most_readings_per_site
        if most is None:
            return None
        times = np.zeros(self.domain.size, dtype=int)
        for key, issued in self.issued.items():
            if isinstance(issued.order, Query) and self.settled.get(key) is not Rejected:
                times[self.domain.nearest(issued.order.site)] += 1
        return times >= most

    # -- the initial readings --------------------------------------------------------------------------

    @property
    def initial(self) -> tuple[Query, ...]:
        """The queries before the policy takes over, as many as are affordable."""
        return tuple(self._initial)

    @property
    def initial_left(self) -> bool:
        """True while initial readings are still to be asked for."""
        return len(self._initial) > self.asks

    def end_initial(self) -> None:
        """Have the policy take over now."""
        self._initial = self._initial[: self.asks]

    def put_before_initial(self, query: Query) -> None:
        """Count a query among the initial ones, before those that are left; nothing if none is."""
        if self.initial_left:
            self._initial.insert(self.asks, query)

    def ask_initial_again(self, query: Query) -> None:
        """Ask for an initial reading once more, after all others."""
        self._initial.append(Query(query.site, query.controls, query.level))


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
