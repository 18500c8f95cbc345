"""Contract suites: what every policy, world and vehicle has to keep to, as tests to inherit.

Subclass one in a test file, say what is to be tested, and let pytest collect it:

    from fieldbo.testing import PolicyContract

    class TestMyPolicy(PolicyContract):
        def policy(self):
            return MyPolicy(kappa=2.0)

The suites are plain classes and need nothing but the standard ``assert``. :func:`small_mission` is the
mission that they run, in a world small enough to think through.

Examples
--------
>>> from fieldbo.policies.coverage import Random
>>> class ContractOfRandom(PolicyContract):
...     def policy(self):
...         return Random()
>>> ContractOfRandom().test_the_same_seed_gives_the_same_path()
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from fieldbo.agent import Agent
from fieldbo.costs import Euclidean
from fieldbo.domain import Array, Axis, Domain
from fieldbo.errors import FieldboError
from fieldbo.exchange import (
    EndReason,
    Event,
    GoHome,
    Lost,
    Observation,
    Order,
    Query,
    Rejected,
    Stop,
    from_plain,
    to_plain,
)
from fieldbo.fields import Field
from fieldbo.mission import Crew, Mission
from fieldbo.model import Model
from fieldbo.policies import Decision, Policy, State
from fieldbo.policies.base import Memory
from fieldbo.policies.levelset import Straddle
from fieldbo.question import LevelSet
from fieldbo.sensors import Sensor
from fieldbo.streams import stream
from fieldbo.vehicles import Vehicle
from fieldbo.vehicles.simulated import Simulated
from fieldbo.world import Quantity, World

ORDERS_AT_MOST = 300
"""A small mission that gives more orders than this is taken to go on for ever."""

Answer = Callable[[int, Order, Simulated], Event]
"""What becomes of order number n: an event, made up or carried out by the simulated vehicle."""


# -- a small mission -------------------------------------------------------------------------------------


class Hills(Field):
    """``sin(x / 2) + cos(y)``, or ``sin(x / 2)`` on one axis: smooth, and on both sides of 0.3."""

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        return np.asarray(np.sin(sites[:, 0] / 2.0) + np.cos(sites[:, 1:]).sum(axis=1))


def small_world(shape: tuple[int, ...] = (6, 5), noise_sd: float = 0.05) -> World:
    """Return a world of a few sites, 1 m apart, where a metre costs 1 s and a sample 1 s more.

    Parameters
    ----------
    shape : tuple of int
        Sites along each axis.
    noise_sd : float
        Of a reading.

    Examples
    --------
    >>> small_world().domain.size
    30
    """
    axes = [Axis(name, "m", 0.0, max(1.0, n - 1.0)) for name, n in zip("xyz", shape, strict=False)]
    return World(
        name="small",
        title="Hills on a few sites",
        domain=Domain.grid(axes, shape),
        cost=Euclidean(rate=1.0, sampling=1.0),
        cost_unit="s",
        sensor=Sensor(noise_sd),
        quantity=Quantity("height", "m"),
        field=Hills(),
    )


def small_mission(
    policy: Policy | None = None,
    *,
    world: World | None = None,
    battery: float = 30.0,
    home: bool = True,
    initial: int = 1,
    seed: int = 0,
) -> Mission:
    """Return a mission that starts (and, with `home`, ends) at the small world's first site.

    Parameters
    ----------
    policy : Policy, optional
        By default straddle.
    world : World, optional
        By default `small_world`.
    battery : float
        In the world's cost unit.
    home : bool
        Whether the vehicle must return to its start.
    initial : int
        Readings before the policy takes over.
    seed : int

    Examples
    --------
    >>> import fieldbo
    >>> fieldbo.run(small_mission(battery=12.0)).cost <= 12.0
    True
    """
    world = small_world() if world is None else world
    assert world.start is not None
    return Mission(
        name="small",
        world=world,
        question=LevelSet(0.3),
        policy=Straddle() if policy is None else policy,
        model=Model(learn=False, length_scales=(2.0,) * world.domain.dimension, mean=0.0),
        crew=(Crew(battery, world.start, home=world.start if home else None),),
        initial=initial,
        seed=seed,
    )


def carried_out(number: int, order: Order, vehicle: Simulated) -> Event:
    """Let the simulated vehicle carry the order out; the usual `Answer`."""
    vehicle.send(order)
    (event,) = vehicle.events(0.0)
    return event


def drive(mission: Mission, answer: Answer = carried_out) -> tuple[Agent, list[Order], Stop]:
    """Ask and tell until the agent stops.

    Parameters
    ----------
    mission : Mission
    answer : Callable
        ``answer(n, order, vehicle) -> Event``: what becomes of order number n.

    Returns
    -------
    agent : Agent
    orders : list of Order
    stop : Stop

    Raises
    ------
    AssertionError
        It does not stop.
    """
    agent, vehicle, orders = Agent(mission), Simulated(mission), list[Order]()
    while len(orders) <= ORDERS_AT_MOST:
        order = agent.ask()
        if isinstance(order, Stop):
            return agent, orders, order
        orders.append(order)
        agent.tell(answer(len(orders) - 1, order, vehicle))
    raise AssertionError(f"no Stop after {ORDERS_AT_MOST} orders")


def _sites(orders: list[Order]) -> list[list[float]]:
    return [o.site.tolist() for o in orders if isinstance(o, Query)]


# -- policies --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Watched(Policy):
    """A policy whose every call goes through `watch(call, state, *rest)`."""

    inner: Policy
    watch: Callable[..., Any]

    def start(self, state: State) -> Memory:
        return self.watch(self.inner.start, state)

    def suggest(self, state: State, memory: Memory) -> Decision:
        decision: Decision = self.watch(self.inner.suggest, state, memory)
        return decision

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        return self.watch(self.inner.observe, state, memory, event)


def _plain(answer: Any) -> Any:
    """Return a decision or a memory as nested lists and dicts."""
    if not isinstance(answer, Decision):
        return answer
    choice = answer.choice
    told = choice.reason.value if isinstance(choice, Stop) else to_plain(choice)
    return [told, answer.memory, dict(answer.why)]


def _text(answer: Any) -> str:
    return json.dumps(_plain(answer), sort_keys=True, default=repr)


def _snapshot(state: State) -> tuple[Any, ...]:
    """Return copies of everything in a state that a policy could spoil."""
    s = state.surface
    arrays = (s.mean, s.variance, s.covariance(), s.belief.weights, state.position, state.rejected)
    return (
        *(a.tobytes() for a in (*arrays, state.domain.sites)),
        s.belief.size,
        tuple(id(event) for event in state.history),
        tuple(id(query) for query in state.pending),
        (state.steps, state.remaining, state.spendable, state.threshold, state.time_s),
    )


class PolicyContract(ABC):
    """What every policy keeps to. Override `policy`; `mission` where it needs another one."""

    @abstractmethod
    def policy(self) -> Policy:
        """Return the policy to be tested; each call an equal one."""

    def mission(self, policy: Policy, **changes: Any) -> Mission:
        """Return the mission it is tested on; `changes` are those of `small_mission`."""
        return small_mission(policy, **changes)

    def _watched(self, watch: Callable[..., Any], answer: Answer = carried_out, **changes: Any) -> int:
        """Run a mission with all calls watched; return how many there were."""
        calls = 0

        def counted(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            nonlocal calls
            calls += 1
            return watch(call, state, *rest)

        drive(self.mission(_Watched(self.policy(), counted), **changes), answer)
        return calls

    def _decisions(self, answer: Answer = carried_out, **changes: Any) -> list[tuple[State, Decision]]:
        found: list[tuple[State, Decision]] = []

        def watch(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            given = call(state, *rest)
            if isinstance(given, Decision):
                found.append((state, given))
                if isinstance(given.choice, Query):
                    site = given.choice.site
                    assert state.domain.contains(site[None])[0], f"{site.tolist()} is outside the domain"
                    able = state.affordable(site[None], given.choice.controls, given.choice.level)[0]
                    assert able, f"{site.tolist()} can't be paid for"
            return given

        self._watched(watch, answer, **changes)
        return found

    def test_it_is_a_frozen_value(self) -> None:
        """Settings can't be changed, and equal settings are equal policies."""
        policy = self.policy()
        assert is_dataclass(policy), "a policy is a frozen dataclass"
        assert policy == self.policy()
        assert hash(policy) == hash(self.policy())
        for name in [f.name for f in fields(policy)] or ["anything"]:
            try:
                setattr(policy, name, None)
            except (AttributeError, TypeError):
                continue
            raise AssertionError(f"{name} can be set: make it @dataclass(frozen=True)")

    def test_the_same_state_and_memory_give_the_same_answer(self) -> None:
        """Nothing but the arguments decides; draws come from the state's own stream."""

        def twice(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            first = call(replace(state, rng=deepcopy(state.rng)), *deepcopy(rest))
            again = call(replace(state, rng=deepcopy(state.rng)), *deepcopy(rest))
            assert _text(first) == _text(again), f"{call.__name__} answered twice, differently"
            return first

        assert self._watched(twice) >= 3

    def test_it_leaves_the_state_and_the_memory_as_they_were(self) -> None:
        """A working buffer of the agent is not the policy's to write to."""

        def guarded(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            before, memory = _snapshot(state), _text(rest[0]) if rest else ""
            answer = call(state, *rest)
            assert _snapshot(state) == before, f"{call.__name__} changed the state"
            assert not rest or _text(rest[0]) == memory, f"{call.__name__} changed the memory it was given"
            return answer

        assert self._watched(guarded) >= 3

    def test_memory_and_reasons_are_plain_data(self) -> None:
        """What is recorded reads back equal: no arrays, no tuples, no NaN."""

        def plain(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            answer = call(state, *rest)
            told = [answer.memory, dict(answer.why)] if isinstance(answer, Decision) else answer
            assert json.loads(json.dumps(told, allow_nan=False)) == told, f"{call.__name__}: {told}"
            return answer

        assert self._watched(plain) >= 3

    def test_a_memory_read_back_from_the_record_gives_the_same_path(self) -> None:
        """A resumed run goes on as an unbroken one would."""

        def restored(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            read_back = [json.loads(json.dumps(rest[0])), *rest[1:]] if rest else []
            return call(state, *read_back)

        _, orders, _ = drive(self.mission(self.policy()))
        _, again, _ = drive(self.mission(_Watched(self.policy(), restored)))
        assert _sites(orders) == _sites(again)

    def test_it_proposes_only_sites_of_the_domain_that_can_be_paid_for(self) -> None:
        """The agent refuses the first and ends the run at the second."""
        decisions = self._decisions()
        assert any(isinstance(d.choice, Query) for _, d in decisions)

    def test_it_never_overdraws_and_comes_home(self) -> None:
        """Whatever the battery, with and without a home."""
        for battery in (1.0, 2.5, 7.0, 19.75):
            for home in (True, False):
                mission = self.mission(self.policy(), battery=battery, home=home)
                agent, _, _ = drive(mission)
                craft = agent.crafts[0]
                assert craft.ledger.spent <= battery * (1 + 1e-12)
                assert not home or np.array_equal(craft.position, mission.crew[0].start)

    def test_it_stops_when_nothing_can_be_paid_for(self) -> None:
        """And does not call that an answer."""
        ((_, decision),) = self._decisions(battery=0.5, initial=0)
        assert isinstance(decision.choice, Stop)
        assert decision.choice.reason is not EndReason.QUESTION_ANSWERED

    def test_it_ends_for_a_reason_of_the_closed_list(self) -> None:
        """Every mission ends, and says why."""
        _, orders, stop = drive(self.mission(self.policy()))
        assert isinstance(stop.reason, EndReason)
        assert orders

    def test_a_rejected_site_is_not_proposed_again_and_the_mission_goes_on(self) -> None:
        """Nothing moved and nothing was paid: the same site would be refused for ever."""
        refused: list[list[float]] = []

        def every_second(n: int, order: Order, vehicle: Simulated) -> Event:
            if n % 2 and isinstance(order, Query):
                refused.append(order.site.tolist())
                return Rejected(str(order.id), "shallow water")
            return carried_out(n, order, vehicle)

        _, orders, _ = drive(self.mission(self.policy()), every_second)
        assert refused
        for n, order in enumerate(orders):
            if isinstance(order, Query):
                before = _sites([o for k, o in enumerate(orders[:n]) if k % 2])
                assert order.site.tolist() not in before, "a rejected site was proposed again"
        assert len(_sites(orders)) > 2, "the mission ended with the first rejection"

    def test_it_stops_when_every_site_was_rejected(self) -> None:
        """And does not call that an answer."""

        def refuse(n: int, order: Order, vehicle: Simulated) -> Event:
            return Rejected(str(order.id), "no entry") if isinstance(order, Query) else Lost("", "")

        agent, orders, stop = drive(self.mission(self.policy()), refuse)
        assert len(_sites(orders)) <= agent.domain.size + 1
        assert stop.reason is not EndReason.QUESTION_ANSWERED
        assert agent.crafts[0].ledger.spent == 0.0

    def test_it_goes_on_after_an_order_was_lost(self) -> None:
        """Its cost stays reserved, and the rest of the battery is still there to be used."""

        def third(n: int, order: Order, vehicle: Simulated) -> Event:
            return Lost(str(order.id), "no link") if n == 2 else carried_out(n, order, vehicle)

        agent, orders, _ = drive(self.mission(self.policy()), third)
        assert len(_sites(orders)) > 3
        assert agent.crafts[0].ledger.available >= -1e-9

    def test_it_copes_with_readings_that_are_no_numbers(self) -> None:
        """A broken sensor costs readings, not the mission."""

        def blind(n: int, order: Order, vehicle: Simulated) -> Event:
            event = carried_out(n, order, vehicle)
            if isinstance(event, Observation) and n % 3 != 0:
                return replace(event, values=np.full(len(event.values), np.nan))
            return event

        agent, orders, _ = drive(self.mission(self.policy()), blind)
        assert agent.left_out > 0
        assert len(_sites(orders)) > agent.readings
        assert np.isfinite(agent.surface.mean).all()

    def test_the_same_seed_gives_the_same_path(self) -> None:
        """To the last digit."""
        _, orders, stop = drive(self.mission(self.policy(), seed=3))
        _, again, stop_again = drive(self.mission(self.policy(), seed=3))
        assert _sites(orders) == _sites(again)
        assert stop == stop_again

    def test_a_batch_can_be_paid_for_as_a_whole(self) -> None:
        """Orders that are out count in the ledger, and the way home is from the last of them."""
        mission = self.mission(self.policy(), battery=14.0)
        agent = Agent(mission)
        orders = agent.ask_batch(6)
        assert orders
        assert agent.crafts[0].ledger.available >= -1e-9
        vehicle = Simulated(mission)
        for n, order in enumerate(orders):
            agent.tell(carried_out(n, order, vehicle))
        assert agent.crafts[0].ledger.spent <= 14.0 + 1e-9

    def test_it_works_on_a_domain_of_a_single_site(self) -> None:
        """Scores and bounds have to exist there, too."""
        world = small_world((1, 1))
        for initial in (0, 1):
            _, orders, _ = drive(self.mission(self.policy(), world=world, battery=5.0, initial=initial))
            assert _sites(orders)


# -- worlds ----------------------------------------------------------------------------------------------


class WorldContract(ABC):
    """What every world keeps to. Override `world`; a live one (without a truth) is a world, too."""

    sites_at_most = 40
    """So many sites, evenly spread, are tried."""

    @abstractmethod
    def world(self, draw: int) -> World:
        """Return the world with that draw of its field; a world that is not random ignores it."""

    def _some(self, world: World) -> Array:
        n = world.domain.size
        index = np.unique(np.linspace(0, n - 1, self.sites_at_most).astype(int))
        return np.asarray(world.domain.sites[index])

    def _evaluated(self, world: World, site: Array, position: Array, ask: int = 0) -> Observation:
        return world.evaluate(Query(site, id=f"run/{ask}"), position, 5.0, stream(11, "sensor", ask))

    def test_it_is_a_frozen_value(self) -> None:
        """Nothing can put another field under a mission."""
        world = self.world(0)
        try:
            world.field = None  # type: ignore[misc]
        except AttributeError:
            return
        raise AssertionError("the field can be set")

    def test_its_sites_and_its_start_lie_inside_the_domain(self) -> None:
        """Every one of them."""
        world = self.world(0)
        assert world.domain.contains(world.domain.sites).all()
        assert np.isfinite(world.domain.sites).all()
        assert world.start is not None
        assert world.domain.contains(world.start[None])[0]

    def test_the_same_draw_has_the_same_truth_and_a_live_world_none(self) -> None:
        """Asked again, and of another copy; alone, or among others."""
        for draw in (0, 1):
            world, other = self.world(draw), self.world(draw)
            sites = self._some(world)
            if world.live:
                try:
                    world.truth(sites)
                except FieldboError:
                    continue
                raise AssertionError("a live world gave a truth")
            truth = world.truth(sites)
            assert truth.shape == (len(sites),)
            assert np.isfinite(truth).all()
            assert np.array_equal(truth, world.truth(sites))
            assert np.array_equal(truth, other.truth(sites))
            alone = np.concatenate([world.truth(s[None]) for s in sites[:5]])
            assert np.allclose(alone, truth[:5], rtol=1e-9, atol=1e-12)

    def test_noise_is_never_negative(self) -> None:
        """At no site, and no level of the sensor."""
        world = self.world(0)
        for level in range(len(world.sensor.levels)):
            variance = world.sensor.variance(world.domain.sites, level)
            assert variance.shape == (world.domain.size,)
            assert (variance >= 0).all()
            assert np.isfinite(variance).all()

    def test_an_evaluation_depends_on_its_stream_alone(self) -> None:
        """The same stream gives the same reading, another one another, if there is noise."""
        world = self.world(0)
        site, position = world.domain.sites[-1], world.domain.sites[0]
        if world.live:
            try:
                self._evaluated(world, site, position)
            except FieldboError:
                return
            raise AssertionError("a live world gave a reading")
        first = self._evaluated(world, site, position)
        assert to_plain(first) == to_plain(self._evaluated(world, site, position))
        assert to_plain(first) == to_plain(self._evaluated(self.world(0), site, position))
        if first.noise_variances[0] > 0:
            query = Query(site, id="run/0")
            other = world.evaluate(query, position, 5.0, stream(12, "sensor", 0))
            assert other.values[0] != first.values[0]

    def test_an_evaluation_says_where_when_and_for_how_much(self) -> None:
        """The vehicle ends at the site, later than it set out, for the declared cost."""
        world = self.world(0)
        position = world.domain.sites[0]
        for n, site in enumerate([] if world.live else self._some(world)[:10]):
            seen = self._evaluated(world, site, position, n)
            assert seen.order == f"run/{n}"
            assert np.array_equal(seen.position, site)
            assert seen.cost == world.cost.to(position, site[None])[0]
            assert len(seen.values) == 1
            assert seen.times_s[0] == 5.0 + world.cost.duration_s(position, site[None])[0]

    def test_a_site_outside_the_domain_is_refused(self) -> None:
        """By an error of fieldbo's own family."""
        world = self.world(0)
        outside = world.domain.high + world.domain.extent
        try:
            self._evaluated(world, outside, world.domain.sites[0])
        except FieldboError:
            return
        raise AssertionError(f"a reading at {outside.tolist()}, outside the domain")

    def test_a_full_move_costs_at_least_its_travel(self) -> None:
        """And both are finite and never negative, in cost and in seconds."""
        world = self.world(0)
        sites = self._some(world)
        travel, full = world.cost.travel(sites, sites), world.cost.to(sites, sites)
        assert (travel >= 0).all()
        assert (full >= travel).all()
        assert np.isfinite(full).all()
        seconds = world.cost.duration_s(sites, sites)
        assert (seconds >= 0).all()
        assert np.isfinite(seconds).all()

    def test_costs_have_the_shapes_of_their_arguments_and_agree(self) -> None:
        """From one position (N,), from many (P, N); the matrix is the same numbers."""
        world = self.world(0)
        cost, sites = world.cost, self._some(world)
        positions = sites[: max(1, len(sites) // 3)]
        for price in (cost.to, cost.travel, cost.duration_s):
            table = price(positions, sites)
            assert table.shape == (len(positions), len(sites))
            for row, position in zip(table, positions, strict=True):
                assert np.allclose(price(position, sites), row, rtol=1e-12, atol=1e-12)
        matrix = cost.matrix(sites)
        assert matrix.shape == (len(sites), len(sites))
        assert np.allclose(matrix, cost.to(sites, sites), rtol=1e-12, atol=1e-12)

    def test_a_path_leads_from_the_one_site_to_the_other(self) -> None:
        """Both ends included."""
        world = self.world(0)
        sites = self._some(world)
        for a, b in zip(sites, sites[::-1], strict=True):
            path = world.cost.path(a, b)
            assert path.ndim == 2
            assert path.shape[1] == world.domain.dimension
            assert np.array_equal(path[0], a)
            assert np.array_equal(path[-1], b)
            assert np.isfinite(path).all()


# -- vehicles --------------------------------------------------------------------------------------------


class VehicleContract(ABC):
    """What every vehicle keeps to. Override `vehicle`; `mission` where it needs another one."""

    patience_s = 10.0
    """How long an order may take to be settled."""

    @abstractmethod
    def vehicle(self, mission: Mission) -> Vehicle:
        """Return a new vehicle at the mission's start."""

    def mission(self) -> Mission:
        """Return the mission it serves: one with a home."""
        return small_mission()

    def _queries(self, mission: Mission, n: int) -> list[Query]:
        sites = mission.world.domain.sites
        chosen = sites[np.linspace(0, len(sites) - 1, n).astype(int)]
        return [Query(site, expected_cost=3.0, id=f"run/{k}") for k, site in enumerate(chosen)]

    def _until_settled(self, vehicle: Vehicle, *orders: Order) -> list[Event]:
        """Read events until each of the orders is settled."""
        found: list[Event] = []
        end = time.monotonic() + self.patience_s
        waiting = {str(o.id) for o in orders}
        while waiting:
            assert time.monotonic() < end, f"{sorted(waiting)} not settled in {self.patience_s} s"
            news = vehicle.events(0.05)
            found += news
            waiting -= set(_settled(news))
        return found

    def test_an_order_is_settled_exactly_once(self) -> None:
        """By a last part, a Rejected or a Lost, and by nothing after that."""
        mission = self.mission()
        with self.vehicle(mission) as vehicle:
            for query in self._queries(mission, 4):
                vehicle.send(query)
                events = self._until_settled(vehicle, query) + vehicle.events(0.0)
                assert _settled(events) == [query.id]

    def test_an_order_that_is_sent_again_is_not_carried_out_again(self) -> None:
        """Neither while it is out nor when it is done."""
        mission = self.mission()
        query, other = self._queries(mission, 2)
        with self.vehicle(mission) as vehicle:
            vehicle.send(query)
            vehicle.send(query)
            events = self._until_settled(vehicle, query)
            vehicle.send(query)
            vehicle.send(other)
            events += self._until_settled(vehicle, other) + vehicle.events(0.0)
            assert _settled(events) == [query.id, other.id]

    def test_orders_sent_in_a_row_are_all_settled(self) -> None:
        """A batch is sent at once."""
        mission = self.mission()
        queries = self._queries(mission, 3)
        with self.vehicle(mission) as vehicle:
            for query in queries:
                vehicle.send(query)
            events = self._until_settled(vehicle, *queries) + vehicle.events(0.0)
            assert sorted(_settled(events)) == [q.id for q in queries]

    def test_events_name_only_orders_that_were_sent(self) -> None:
        """And each part of an observation is told once."""
        mission = self.mission()
        queries = self._queries(mission, 3)
        with self.vehicle(mission) as vehicle:
            parts: list[tuple[str, int]] = []
            for query in queries:
                vehicle.send(query)
                for event in self._until_settled(vehicle, query):
                    assert getattr(event, "order", query.id) == query.id
                    if isinstance(event, Observation):
                        parts.append((event.order, event.part))
            assert len(set(parts)) == len(parts)

    def test_without_an_order_nothing_is_settled(self) -> None:
        """And the vehicle does not wait for ever."""
        with self.vehicle(self.mission()) as vehicle:
            assert _settled(vehicle.events(0.0)) == []

    def test_positions_costs_and_sites_are_finite(self) -> None:
        """In the domain's dimensions, with times that do not run backwards; and they can be recorded."""
        mission = self.mission()
        dimension, before = mission.world.domain.dimension, -np.inf
        with self.vehicle(mission) as vehicle:
            for query in self._queries(mission, 4):
                vehicle.send(query)
                for event in self._until_settled(vehicle, query):
                    plain = json.loads(json.dumps(to_plain(event), allow_nan=False))
                    assert to_plain(from_plain(plain)) == to_plain(event)
                    if not isinstance(event, Observation):
                        continue
                    assert event.position.shape == (dimension,)
                    assert np.isfinite(event.position).all()
                    assert np.isfinite(event.cost)
                    assert event.sites.shape[1] == dimension
                    assert np.isfinite(event.sites).all()
                    for time_s in event.times_s:
                        assert time_s >= before
                        before = time_s

    def test_an_outcome_is_remembered_whole_or_not_at_all(self) -> None:
        """What is asked on a resume: all events of the order, or None; an unknown order has none."""
        mission = self.mission()
        (query,) = self._queries(mission, 1)
        with self.vehicle(mission) as vehicle:
            assert vehicle.outcome("run/999") is None
            vehicle.send(query)
            events = [e for e in self._until_settled(vehicle, query) if hasattr(e, "order")]
            told = vehicle.outcome(str(query.id))
            assert told is None or [to_plain(e) for e in told] == [to_plain(e) for e in events]

    def test_a_cancelled_order_is_still_settled(self) -> None:
        """Cancelling what is unknown, or done, does no harm."""
        mission = self.mission()
        (query,) = self._queries(mission, 1)
        with self.vehicle(mission) as vehicle:
            vehicle.cancel("run/999")
            vehicle.send(query)
            vehicle.cancel(str(query.id))
            events = self._until_settled(vehicle, query)
            vehicle.cancel(str(query.id))
            assert _settled(events + vehicle.events(0.0)) == [query.id]

    def test_going_home_ends_at_home(self) -> None:
        """Unless the vehicle says that it did not get there."""
        mission = self.mission()
        home = mission.crew[0].home
        assert home is not None, "the contract's mission needs a home"
        query, order = self._queries(mission, 2)[1], GoHome(0, "run/7")
        with self.vehicle(mission) as vehicle:
            vehicle.send(query)
            self._until_settled(vehicle, query)
            vehicle.send(order)
            event = self._until_settled(vehicle, order)[-1]
            assert isinstance(event, Observation)
            if event.complete:
                gap = np.abs(event.position - home) / mission.world.domain.extent
                assert gap.max() <= 0.01

    def test_it_holds_and_closes_without_harm(self) -> None:
        """More than once, and after its context was left."""
        with self.vehicle(self.mission()) as vehicle:
            vehicle.hold()
            vehicle.hold()
        vehicle.close()
        vehicle.close()


def _settled(events: list[Event]) -> list[str]:
    """Return the ids that these events settle, in order."""
    found = []
    for event in events:
        if (isinstance(event, Observation) and event.last) or isinstance(event, Rejected | Lost):
            found.append(event.order)
    return found


__all__ = [
    "PolicyContract",
    "VehicleContract",
    "WorldContract",
    "carried_out",
    "drive",
    "small_mission",
    "small_world",
]
