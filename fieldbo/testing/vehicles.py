"""The contracts of every vehicle and of every link to a robot, as tests to inherit."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from queue import SimpleQueue
from typing import TypeVar, get_args

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.clock import MACHINE_CLOCK, Clock, T
from fieldbo.domain.frame import Ground, ground_of
from fieldbo.messages import Event, GoHome, Observation, Order, Query, from_plain, settles, to_plain
from fieldbo.mission.mission import Mission
from fieldbo.testing.small import small_mission
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.remote.link import Connection, Goal, GoalResult, Link, PositionReport, Report


class VehicleContract(ABC):
    """The contract of every vehicle. Override `vehicle`, and `mission` if it needs another one."""

    patience_s = 10.0
    """Time limit for settling an order."""

    clock: Clock = MACHINE_CLOCK
    """The vehicle's clock, which the time limit is counted by."""

    @abstractmethod
    def vehicle(self, mission: Mission) -> Vehicle:
        """Return a new vehicle at the start of the mission."""

    def mission(self) -> Mission:
        """Return the mission that it serves; it must have a home."""
        return small_mission()

    def _queries(self, mission: Mission, n: int) -> list[Query]:
        sites = mission.world.domain.sites
        chosen = sites[np.linspace(0, len(sites) - 1, n).astype(int)]
        return [Query(site, expected_cost=3.0, id=f"run/{k}") for k, site in enumerate(chosen)]

    def _until_settled(self, vehicle: Vehicle, *orders: Order) -> list[Event]:
        """Receive events until each of the orders is settled."""
        events: list[Event] = []
        end = self.clock.now_s() + self.patience_s
        waiting = {str(o.id) for o in orders}
        while waiting:
            assert self.clock.now_s() < end, f"{sorted(waiting)} not settled in {self.patience_s} s"
            new = vehicle.events(0.05)
            events += new
            waiting -= set(_settled(new))
        return events

    def test_an_order_is_settled_exactly_once(self) -> None:
        """By the last part of an observation, a rejection or a loss."""
        mission = self.mission()
        with self.vehicle(mission) as vehicle:
            for query in self._queries(mission, 4):
                vehicle.send(query)
                events = self._until_settled(vehicle, query) + vehicle.events(0.0)
                assert _settled(events) == [query.id]

    def test_an_order_that_is_sent_again_is_not_carried_out_again(self) -> None:
        """Neither while it is outstanding nor when it is done."""
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

    def test_all_orders_of_a_batch_are_settled(self) -> None:
        """The orders of a batch are sent without waiting."""
        mission = self.mission()
        queries = self._queries(mission, 3)
        with self.vehicle(mission) as vehicle:
            for query in queries:
                vehicle.send(query)
            events = self._until_settled(vehicle, *queries) + vehicle.events(0.0)
            assert sorted(_settled(events)) == [q.id for q in queries]

    def test_events_name_only_orders_that_were_sent(self) -> None:
        """And each part of an observation arrives once."""
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
        """And the call returns."""
        with self.vehicle(self.mission()) as vehicle:
            assert _settled(vehicle.events(0.0)) == []

    def test_positions_costs_and_sites_are_finite(self) -> None:
        """With the domain's dimension, in order of time; and the record can hold them."""
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

    def test_the_outcome_of_an_order_is_complete_or_unknown(self) -> None:
        """All events of the order, or None; an unknown order has none."""
        mission = self.mission()
        (query,) = self._queries(mission, 1)
        with self.vehicle(mission) as vehicle:
            assert vehicle.outcome("run/999") is None
            vehicle.send(query)
            events = [e for e in self._until_settled(vehicle, query) if hasattr(e, "order")]
            outcome = vehicle.outcome(str(query.id))
            assert outcome is None or [to_plain(e) for e in outcome] == [to_plain(e) for e in events]

    def test_a_new_vehicle_resumes_the_run_of_another_one(self) -> None:
        """Settled orders are not carried out again, and the next one starts where the last one ended."""
        mission = self.mission()
        first, second = self._queries(mission, 2)
        with self.vehicle(mission) as vehicle:
            vehicle.send(first)
            before = self._until_settled(vehicle, first)
        with self.vehicle(mission) as vehicle:
            vehicle.resume([first], before)
            vehicle.send(first)
            vehicle.send(second)
            after = self._until_settled(vehicle, second)
            assert _settled(after + vehicle.events(0.0)) == [second.id]
        times = [e.time_s or 0.0 for e in before + after if isinstance(e, Observation)]
        assert times == sorted(times)

    def test_a_cancelled_order_is_still_settled(self) -> None:
        """Cancelling an unknown or settled order has no effect."""
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
        """Unless the vehicle reports that it did not get there."""
        mission = self.mission()
        home = mission.vehicles[0].home
        assert home is not None, "the mission of this suite needs a home"
        query, order = self._queries(mission, 2)[1], GoHome(0, "run/7")
        with self.vehicle(mission) as vehicle:
            vehicle.send(query)
            self._until_settled(vehicle, query)
            vehicle.send(order)
            (event,) = (e for e in self._until_settled(vehicle, order) if isinstance(e, Observation))
            if event.complete:
                gap = np.abs(event.position - home) / mission.world.domain.extent
                assert gap.max() <= 0.01

    def test_it_can_be_held_and_closed_repeatedly(self) -> None:
        """Even after its context has ended."""
        with self.vehicle(self.mission()) as vehicle:
            vehicle.hold()
            vehicle.hold()
        vehicle.close()
        vehicle.close()


def _settled(events: list[Event]) -> list[str]:
    """Return the ids that these events settle, in order."""
    return [event.order for event in events if settles(event)]


class SteppedClock(Clock):
    """A clock for tests: it moves only while somebody waits by it, so that no test waits in real time.

    A wait is a number of steps. In each, what goes on `meanwhile` is done, such as a turn of a simulated
    robot; then the clock moves on, and the wait ends if what it is for has happened. All of it takes place in
    the thread that waits.

    Parameters
    ----------
    step_s : float
        Length of a step in seconds.

    Attributes
    ----------
    meanwhile : list of Callable
        Called in each step, in order.

    Examples
    --------
    >>> clock, heard = SteppedClock(step_s=0.5), SimpleQueue()
    >>> clock.after(7200.0, lambda: heard.put("hello"))
    >>> clock.get(heard, timeout_s=9000.0), clock.now_s()
    ('hello', 7200.5)
    """

    def __init__(self, step_s: float = 0.005) -> None:
        self.step_s, self.meanwhile = step_s, list[Callable[[], object]]()
        self._now_s = self._suspended_s = 0.0
        self._due = list[tuple[float, Callable[[], object]]]()

    def now_s(self) -> float:
        return self._now_s

    def boot_s(self) -> float:
        return self._now_s + self._suspended_s

    def suspend(self, seconds: float) -> None:
        """Let time pass as if the computer were suspended: nothing goes on, and deadlines stand still."""
        self._suspended_s += seconds

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        """Do something once, in the first step that begins after so many seconds."""
        self._due.append((self._now_s + seconds, act))

    def sleep(self, seconds: float) -> None:
        self._step_until(lambda: False, seconds)

    def get(self, queue: SimpleQueue[T], timeout_s: float) -> T:
        self._step_until(lambda: not queue.empty(), timeout_s)
        return queue.get_nowait()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        self._step_until(event.is_set, timeout_s)
        return event.is_set()

    def _step_until(self, done: Callable[[], bool], seconds: float) -> None:
        end_s = self._now_s + seconds
        while not done() and self._now_s < end_s:
            self._step(min(self.step_s, end_s - self._now_s))

    def _step(self, seconds: float) -> None:
        """Do what goes on, then move on: what happens in a step is over when its end is noticed."""
        due = [act for at_s, act in self._due if at_s <= self._now_s]
        self._due = [(at_s, act) for at_s, act in self._due if at_s > self._now_s]
        for act in (*due, *self.meanwhile):
            act()
        self._now_s += seconds


_POLL_S = 0.05

Found = TypeVar("Found")


class LinkContract(ABC):
    """The contract of every link. Override `link`, and `mission` or `ground` if it needs others.

    A robot must be there, at the start of the mission, whenever a test opens the link.
    """

    patience_s = 10.0
    """Time limit for everything that a robot does."""

    within = 0.05
    """How near to a site the robot comes, in the domain's units."""

    clock: Clock = MACHINE_CLOCK
    """By which the time limit is counted, and the robot moves."""

    @abstractmethod
    def link(self, mission: Mission) -> Link:
        """Return a link to a robot."""

    def mission(self) -> Mission:
        """Return the mission that the robot serves; its sensor has one level."""
        return small_mission()

    def ground(self, mission: Mission) -> Ground | None:
        """Return where the mission's axes lie, if the link needs that."""
        return None if mission.world.domain.crs is None else ground_of(mission.world.domain)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Link, Connection, list[Report]]]:
        """Open a link, claim the robot, and wait for its first sign of life."""
        mission, heard = self.mission(), list[Report]()
        link = self.link(mission)
        connection = link.open(mission, self.ground(mission), heard.append)
        try:
            connection.claim("contract", mission.name)
            self._until(lambda: heard and connection.claimed)
            yield link, connection, heard
        finally:
            connection.close()

    def _until(self, condition: Callable[[], Found]) -> Found:
        """Wait until a condition holds, and return what it returns."""
        end_s = self.clock.now_s() + self.patience_s
        while not (found := condition()):
            assert self.clock.now_s() < end_s, f"waited {self.patience_s} s in vain"
            self.clock.sleep(_POLL_S)
        return found

    def _goal(self, number: int) -> Goal:
        mission = self.mission()
        sites = mission.world.domain.sites
        apart = np.linalg.norm(sites - mission.vehicles[0].start, axis=1)
        site = sites[np.argsort(apart)[-1 - number]]
        return Goal(f"run/{number}#contract", site, route=site[None])

    def _arrived(self, link: Link, goal: Goal, heard: list[Report]) -> Callable[[], bool]:
        """Return whether a robot has reported that it has reached a goal."""

        def is_there() -> bool:
            if link.reports:
                return any(result.last for result in _results(goal, heard))
            return any(np.abs(place - goal.site).max() <= self.within for place in _places(heard))

        return is_there

    # -- tests -----------------------------------------------------------------------------------------

    def test_its_settings_are_data_and_it_says_where_the_robot_is(self) -> None:
        """They are written into records; people read the address."""
        link = self.link(self.mission())
        assert is_dataclass(link)
        assert link.address

    def test_a_robot_is_heard_without_being_asked(self) -> None:
        """And the link passes nothing on but reports, with positions in the domain's axes."""
        with self._opened() as (_, _, heard):
            assert all(isinstance(report, get_args(Report)) for report in heard)
            d = self.mission().world.domain.dimension
            assert all(place.shape == (d,) for place in _places(heard))

    def test_a_robot_goes_where_it_is_sent(self) -> None:
        """It answers, with as many sites as values, or its positions come near the site."""
        with self._opened() as (link, connection, heard):
            for goal in (self._goal(0), self._goal(1)):
                connection.go(goal)
                self._until(self._arrived(link, goal, heard))
                for result in _results(goal, heard):
                    assert np.shape(result.sites) == (len(result.values), len(goal.site))
                    assert np.abs(result.position - goal.site).max() <= self.within

    def test_a_goal_that_is_sent_again_is_carried_out_once(self) -> None:
        """A robot that has finished it repeats its answer, if it answers."""
        with self._opened() as (link, connection, heard):
            goal = self._goal(0)
            connection.go(goal)
            self._until(self._arrived(link, goal, heard))
            if not link.reports:
                return
            first = list(_results(goal, heard))
            connection.go(goal)
            self._until(lambda: len(_results(goal, heard)) > len(first))
            for again in _results(goal, heard):
                assert any(_same(again, before) for before in first)

    def test_a_goal_is_answered_though_it_was_abandoned_before_it_came(self) -> None:
        """With a result that is not complete; a robot that streams answers nothing."""
        with self._opened() as (link, connection, heard):
            goal = self._goal(0)
            connection.cancel(goal.id)
            if link.reports:
                assert not self._until(lambda: _results(goal, heard))[0].complete

    def test_a_robot_stays_where_it_is_told_to_hold(self) -> None:
        """It is heard from, and goes on with nothing that it was sent before."""
        with self._opened() as (link, connection, heard):
            goal = self._goal(0)
            connection.go(goal)
            connection.hold()
            self._until(lambda: not connection.unsent())
            count = len(heard)
            self._until(lambda: len(heard) > count)
            reached = self._arrived(link, goal, heard)
            end_s = self.clock.now_s() + 1.0
            while self.clock.now_s() < end_s:
                assert not reached() or not all(r.complete for r in _results(goal, heard))
                self.clock.sleep(_POLL_S)

    def test_what_a_robot_remembers_can_be_asked_for(self) -> None:
        """If this kind of link supports the question."""
        with self._opened() as (link, connection, heard):
            goal = self._goal(0)
            connection.go(goal)
            self._until(self._arrived(link, goal, heard))
            count = len(_results(goal, heard))
            if connection.ask(goal.id) and link.reports:
                self._until(lambda: len(_results(goal, heard)) > count)

    def test_nothing_is_heard_after_it_was_closed(self) -> None:
        """Threads and sockets are gone."""
        with self._opened() as (_, _, heard):
            pass
        count = len(heard)
        self.clock.sleep(1.0)
        assert len(heard) == count


def _results(goal: Goal, heard: list[Report]) -> list[GoalResult]:
    return [report for report in heard if isinstance(report, GoalResult) and report.goal == goal.id]


def _places(heard: list[Report]) -> list[Array]:
    return [report.position for report in heard if isinstance(report, PositionReport)]


def _same(one: GoalResult, other: GoalResult) -> bool:
    """Return True if two results of a goal are the same part with the same readings."""
    return one.part == other.part and np.array_equal(one.values, other.values, equal_nan=True)
