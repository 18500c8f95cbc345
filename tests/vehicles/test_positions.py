"""Where a robot is: one wrong, old or repeated report never becomes the beginning of a route."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import shapely
from remote_vehicles import QUICK, SETTINGS

from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import VehicleError
from fieldbo.messages import Correction, GoHome, Lost, Observation, Query, Rejected, Telemetry
from fieldbo.policies.baselines import Random
from fieldbo.record.record import Record
from fieldbo.runs.runner import resume, run
from fieldbo.testing import SteppedClock, small_mission, small_world
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    Connection,
    GoalRejected,
    GoalResult,
    Heartbeat,
    Link,
    PositionReport,
    Reading,
    Reconnected,
)
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival
from fieldbo.vehicles.remote.track import Track

WALL = Obstacle("wall", (9.0, 0.0), (11.0, 16.0))
WATCH = replace(QUICK, silence_s=0.4, connect_s=1.0, least_s=60.0)


@pytest.fixture(scope="module")
def mission():
    axes = [Axis("x", "m", 0.0, 20.0), Axis("y", "m", 0.0, 20.0)]
    domain = Domain.grid(axes, (11, 11), obstacles=[WALL], clearance=0.5)
    world = replace(small_world(), domain=domain, start=np.zeros(2), cost=Euclidean(rate=1.0, sampling=1.0))
    made = small_mission(world=world, battery=500.0)
    home = replace(made.vehicles[0], start=np.zeros(2), home=np.zeros(2))
    return replace(made, vehicles=(home,), policy=Random(), policy_kind="random", initial=0)


class Scripted(Connection):
    """A connection that keeps what it is sent, and hears what it is told."""

    def __init__(self, link, hear):
        self.hear, self.sent, self.asked, self.answers, self.clock = hear, [], [], link.answers, link.clock

    def go(self, goal):
        self.sent.append(goal)

    def cancel(self, goal):
        pass

    def hold(self):
        pass

    def close(self):
        pass

    def ask(self, goal):
        self.asked.append(goal)
        for answer in self.answers:
            self.hear(answer)
        return True

    def at(self, *place, times=1):
        for _ in range(times):
            self.hear(PositionReport(np.array(place, dtype=float)))
            self.clock.sleep(0.11 if times > 1 else 0.0)


@dataclass(frozen=True)
class Reports(Link):
    """A robot that reports, and at first is at the start."""

    first: tuple = (0.0, 0.0)
    answers: tuple = ()
    clock: SteppedClock = field(default_factory=SteppedClock)
    address = "here"

    def open(self, mission, ground, hear):
        self.__dict__["wire"] = Scripted(self, hear)
        hear(Heartbeat())
        if self.first:
            hear(PositionReport(np.array(self.first)))
        return self.wire


class Streams(Reports):
    reports = False


class Guided(Streams):
    follows_routes = False


def vehicle_of(mission, link, **watch):
    settings = SETTINGS.model_copy(
        update={"watch": replace(WATCH, **watch), "arrival": Arrival(0.25, dwell_s=0.0)}
    )
    return Remote(mission, 0, link, settings, "s", link.clock)


def until(vehicle, done, seconds=2.0, meanwhile=lambda: None):
    """Collect events until something is true, or for some seconds."""
    events, end_s = [], vehicle.clock.now_s() + seconds
    while vehicle.clock.now_s() < end_s and not done(events):
        meanwhile()
        events += vehicle.events(0.02)
    return events


def listen(vehicle, seconds=0.1):
    return until(vehicle, lambda events: False, seconds)


def answer(order, place, **changes):
    place = np.array(place, dtype=float)
    result = GoalResult(f"{order}#s", place, place[None], np.array([0.5]), np.array([1.0]), 1.0, 1.0)
    return replace(result, **changes)


def through_the_wall(goal, here):
    """Return how many metres of the wall lie on the way of a robot that drives straight to each point."""
    return shapely.LineString([here, *goal.route]).intersection(WALL.polygon).length


def query(number, place):
    return Query(np.array(place, dtype=float), id=f"run/{number}", expected_cost=10.0)


EVERY_KIND = pytest.mark.parametrize("kind", [Reports, Streams, Guided])
STREAMING = pytest.mark.parametrize("kind", [Streams, Guided])


# -- the filter ------------------------------------------------------------------------------------------


def test_a_burst_of_wrong_positions_is_not_believed_until_they_agree_for_some_time(mission):
    track = Track(mission)
    assert track.take(np.array([0.1, 0.0]), 0.0)
    assert [track.take(np.array([15.0, 5.0]), t) for t in (0.02, 0.04, 0.06)] == [False] * 3
    assert track.take(np.array([15.0, 5.0]), 0.3)


def test_a_robot_that_is_lost_is_where_several_reports_agree(mission):
    track = Track(mission)
    track.take(np.zeros(2), 0.0)
    track.lose()
    assert not track.known
    places = [[0.0, 0.0], [15.0, 5.0], [15.0, 5.1], [15.1, 5.1]]
    assert [track.take(np.array(p), 0.2 * t) for t, p in enumerate(places)] == [False, False, False, True]


def test_a_robot_is_believed_wherever_it_can_have_come(mission):
    track = Track(mission)
    assert all(track.take(np.array([1.5 * t, 0.0]), float(t)) for t in range(6))
    assert track.take(np.array([12.5, 0.0]), 10.0)  # after a gap of five seconds
    assert not track.take(
        np.array([0.0, 0.0]), 20.0
    )  # it may be there, but one report after a gap may be wrong
    assert [track.take(np.array([0.0, 0.0]), t) for t in (20.5, 21.0)] == [False, True]


@pytest.mark.parametrize("hertz", [1, 5, 50, 500])
def test_a_receiver_that_glitches_now_and_then_is_never_believed_to_be_there(mission, hertz):
    track, wrong = Track(mission), np.array([15.0, 5.0])
    track.lose()
    believed = []
    for k in range(4 * hertz + 20):
        here = np.array([4.0, 4.0]) if k < 2 * hertz + 10 else np.array([12.0, 16.0])  # faster than declared
        if track.take(here if k % 4 else wrong, k / hertz):
            believed.append((wrong if k % 4 == 0 else here).tolist())
    assert wrong.tolist() not in believed
    assert {tuple(place) for place in believed} == {(4.0, 4.0), (12.0, 16.0)}


# -- one bad fix -----------------------------------------------------------------------------------------


@EVERY_KIND
def test_one_bad_fix_before_a_rejection_does_not_move_the_robot(mission, kind):
    with vehicle_of(mission, kind()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [4, 4]))
        vehicle.send(query(1, [16, 0]))
        listen(vehicle)
        wire.at(15, 5)
        wire.hear(GoalRejected("run/0#s", "no"))
        events = until(vehicle, lambda events: len(wire.sent) == 2)
    assert isinstance(events[0], Rejected)
    assert through_the_wall(wire.sent[-1], [0, 0]) == 0.0


@STREAMING
def test_one_bad_fix_does_not_end_an_order_that_is_given_up(mission, kind):
    with vehicle_of(mission, kind()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [4, 4]))
        listen(vehicle)
        wire.at(1, 1, times=3)
        vehicle.cancel("run/0")
        wire.at(15, 5)
        wire.at(1, 1)
        (cut_short,) = (e for e in until(vehicle, any) if isinstance(e, Observation))
    assert cut_short.position.tolist() == [1.0, 1.0]


@STREAMING
def test_one_bad_fix_moves_neither_a_reading_nor_the_next_route(mission, kind):
    with vehicle_of(mission, kind()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [4, 4]))
        vehicle.send(query(1, [16, 0]))
        listen(vehicle)
        wire.at(4, 4, times=6)
        wire.at(15, 5)
        wire.hear(Reading(0.1))
        assert not [e for e in listen(vehicle) if isinstance(e, Observation)], "where was it taken?"
        wire.at(4, 4)
        wire.hear(Reading(0.5))
        events = until(vehicle, lambda events: len(wire.sent) == 2)
    (seen,) = (e for e in events if isinstance(e, Observation))
    assert (seen.sites.tolist(), seen.values.tolist()) == ([[4.0, 4.0]], [0.5])
    assert through_the_wall(wire.sent[-1], [4, 4]) == 0.0


@STREAMING
def test_a_reading_counts_where_the_robot_has_drifted_once_its_positions_agree(mission, kind):
    with vehicle_of(mission, kind()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [4, 4]))
        listen(vehicle)
        wire.at(4, 4, times=6)
        for _ in range(2):
            wire.at(7, 5)
            wire.hear(Reading(0.1))
            listen(vehicle, 0.12)
        wire.at(7, 5)
        wire.hear(Reading(0.5))
        (seen,) = (e for e in until(vehicle, any) if isinstance(e, Observation))
    assert (seen.sites.tolist(), seen.values.tolist()) == ([[7.0, 5.0]], [0.5])


@STREAMING
def test_one_bad_fix_at_home_does_not_end_the_trip_home(mission, kind):
    away = replace(mission, vehicles=(replace(mission.vehicles[0], start=np.array([14.0, 0.0])),))
    with vehicle_of(away, kind((14.0, 0.0))) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(GoHome(0, "run/0"))
        until(vehicle, lambda events: bool(wire.sent))
        wire.at(14, 0.2, times=2)
        wire.at(0, 0)
        wire.at(14, 0.4, times=2)
        events = listen(vehicle)
    assert not [e for e in events if isinstance(e, Observation)]


# -- old reports -----------------------------------------------------------------------------------------


@EVERY_KIND
def test_after_a_break_one_position_near_the_beginning_is_not_believed(mission, kind):
    with vehicle_of(mission, kind()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [16, 0]))
        listen(vehicle)
        wire.at(13, 8, times=4)
        listen(vehicle)
        wire.hear(Reconnected())
        before = len(wire.sent)
        wire.at(0.1, 0)
        listen(vehicle)
        assert len(wire.sent) == before
        wire.at(13, 8, times=4)
        until(vehicle, lambda events: len(wire.sent) > before)
    assert through_the_wall(wire.sent[-1], [13, 8]) == 0.0


def test_the_late_answer_of_an_older_order_does_not_tell_where_the_robot_is(mission):
    with vehicle_of(mission, Reports()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [8, 10]))
        assert until(vehicle, lambda events: any(isinstance(e, Lost) for e in events))
        vehicle.send(query(1, [16, 0]))
        until(vehicle, lambda events: len(wire.sent) == 2, meanwhile=lambda: wire.at(8, 10))
        vehicle.send(query(2, [4, 4]))
        assert until(vehicle, lambda events: any(isinstance(e, Lost) for e in events))
        wire.at(13, 8)
        wire.hear(answer("run/0", [8, 10]))
        events = listen(vehicle, 0.2)
        assert any(isinstance(e, Observation) for e in events)
        assert len(wire.sent) == 2
        until(vehicle, lambda events: len(wire.sent) == 3, meanwhile=lambda: wire.at(13, 8))
    assert through_the_wall(wire.sent[-1], [13, 8]) == 0.0


def test_an_answer_repeated_after_a_resume_does_not_tell_where_the_robot_is(mission):
    """It went home by itself while the planner was dead."""
    link = Reports(first=(), answers=(answer("run/0", [16, 0]),))
    with vehicle_of(mission, link) as vehicle:
        wire = vehicle.link.wire
        vehicle.resume([query(0, [16, 0])], [])
        vehicle.send(query(1, [14, 16]))
        events = listen(vehicle, 0.1)
        assert not wire.sent
        events += until(vehicle, lambda events: bool(wire.sent), meanwhile=lambda: wire.at(0, 0))
    (seen,) = (e for e in events if isinstance(e, Observation))
    assert seen.sites.tolist() == [[16.0, 0.0]]
    assert seen.position.tolist() == [0.0, 0.0]
    assert through_the_wall(wire.sent[-1], [0, 0]) == 0.0


# -- robots that report no positions -----------------------------------------------------------------------


def test_after_a_resume_a_robot_without_positions_is_where_its_last_order_ended(mission):
    done = Observation("run/0", [[16.0, 0.0]], [0.5], [0.01], [1.0], [16.0, 0.0], 5.0, time_s=5.0)
    link = Reports(first=(), answers=(answer("run/0", [16, 0]),))
    with vehicle_of(mission, link) as vehicle:
        wire = vehicle.link.wire
        vehicle.resume([query(0, [16, 0])], [done])
        vehicle.send(query(1, [4, 4]))
        until(vehicle, lambda events: bool(wire.sent), meanwhile=lambda: wire.hear(Heartbeat()))
    assert wire.asked == ["run/0#s"]
    assert through_the_wall(wire.sent[-1], [16, 0]) == 0.0


def test_after_a_resume_a_robot_without_positions_is_not_taken_to_be_at_the_start(mission):
    with vehicle_of(mission, Reports(first=()), least_s=1.0) as vehicle:
        wire = vehicle.link.wire
        vehicle.resume([query(0, [16, 0])], [])
        vehicle.send(query(0, [16, 0]))
        events = until(
            vehicle,
            lambda events: any(isinstance(e, Lost) for e in events),
            meanwhile=lambda: wire.hear(Heartbeat()),
        )
    assert not wire.sent
    assert any(isinstance(e, Lost) and "no safe route is known" in e.reason for e in events)


@pytest.mark.parametrize("order", [query(1, [4, 4]), GoHome(0, "run/1", np.zeros(2))])
def test_a_robot_without_positions_that_never_received_its_order_is_found_again(mission, order):
    """The planner was killed before the order left, so the robot has no outcome of it."""
    done = Observation("run/0", [[16.0, 0.0]], [0.5], [0.01], [1.0], [16.0, 0.0], 5.0, time_s=5.0)
    with vehicle_of(mission, Reports(first=()), least_s=1.0) as vehicle:
        wire = vehicle.link.wire
        none = {"sites": np.empty((0, 2)), "values": np.empty(0), "seconds": np.empty(0), "cost": 0.0}
        wire.cancel = lambda goal: wire.hear(answer(goal.removesuffix("#s"), [16, 0], complete=False, **none))
        vehicle.resume([query(0, [16, 0]), order], [done])
        vehicle.send(order)
        again = GoHome(0, "run/2", np.zeros(2))
        events = until(
            vehicle, lambda e: any(isinstance(x, Lost) for x in e), 5.0, lambda: wire.hear(Heartbeat())
        )
        vehicle.send(again)
        events += until(vehicle, lambda e: bool(wire.sent), 5.0, lambda: wire.hear(Heartbeat()))
    assert [type(e) for e in events if not isinstance(e, Telemetry)] == [Lost, Observation]
    assert [goal.id for goal in wire.sent] == ["run/2#s"]
    assert through_the_wall(wire.sent[-1], [16, 0]) == 0.0


def test_a_part_of_a_lost_order_does_not_tell_where_a_robot_without_positions_is(mission):
    """It may still be carrying it out."""
    none = {"sites": np.empty((0, 2)), "values": np.empty(0), "seconds": np.empty(0)}
    with vehicle_of(mission, Reports(first=())) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [16, 0]))
        until(vehicle, lambda e: any(isinstance(x, Lost) for x in e), 5.0)
        assert [goal.id for goal in wire.sent] == ["run/0#s"]
        vehicle.send(query(1, [16, 4]))
        wire.hear(answer("run/0", [2, 2], last=False, **none))
        events = until(vehicle, lambda e: False, 1.0, lambda: wire.hear(Heartbeat()))
        assert [e.part for e in events if isinstance(e, Observation)] == [0]
        assert len(wire.sent) == 1
        wire.hear(answer("run/0", [16, 0], part=1))
        until(vehicle, lambda e: len(wire.sent) > 1, 1.0, lambda: wire.hear(Heartbeat()))
    assert through_the_wall(wire.sent[-1], [16, 0]) == 0.0


def test_after_a_restart_a_robot_without_a_fix_is_where_its_order_has_ended(mission):
    """Its last position came before the order was known; the place where the order before ended is older."""
    with vehicle_of(mission, Reports()) as vehicle:
        wire = vehicle.link.wire
        vehicle.resume([query(0, [16, 0])], [])
        wire.hear(answer("run/0", [16, 0]))
        events = until(vehicle, lambda e: any(isinstance(x, Observation) for x in e), 2.0)
    assert [e.position.tolist() for e in events if isinstance(e, Observation)] == [[16.0, 0.0]]


def test_a_robot_that_goes_home_by_itself_has_to_report_position_and_battery(mission):
    acts = {"when_planner_silent": "home", "planner_silence_s": 5.0, "connect_s": 0.3}
    with pytest.raises(VehicleError, match=r"has not reported its position .* goes home by itself"):
        vehicle_of(mission, Reports(first=()), **acts).connect()
    with pytest.raises(VehicleError, match=r"has not reported its battery .* goes home by itself"):
        vehicle_of(mission, Reports(), **acts).connect()

    class WithBattery(Reports):
        def open(self, mission, ground, hear):
            hear(BatteryReport(amount=500.0))
            return super().open(mission, ground, hear)

    with vehicle_of(mission, WithBattery(), **acts) as vehicle:
        assert vehicle.events(0.0) is not None


# -- readings and orders -----------------------------------------------------------------------------------


class Prompt(Reports):
    """A robot that is done at once, and looks into the record when it gets a goal."""

    def open(self, mission, ground, hear):
        wire = super().open(mission, ground, hear)
        wire.go = lambda goal: (
            self.seen.append([row.order for row in self.record.rows() if row.kind == "observation"]),
            wire.sent.append(goal),
            hear(answer(goal.id.removesuffix("#s"), goal.site, cost=2.0)),
        )
        return wire

    @property
    def seen(self):
        return self.__dict__.setdefault("_seen", [])


@pytest.mark.parametrize("batch", [1, 3])
def test_each_reading_is_on_disk_before_the_next_order_leaves(tmp_path, mission, batch):
    short = replace(mission, batch=batch, max_steps=7)
    link = Prompt()
    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        link.__dict__["record"] = record
        run(short, [vehicle_of(short, link)], record)
    assert len(link.seen) > 7
    assert [len(orders) for orders in link.seen] == list(range(len(link.seen)))


ODD = {
    "text": {"values": ["n/a"]},
    "a huge number": {"values": [10**400]},
    "complex numbers": {"values": np.array([1j])},
    "ragged sites": {"sites": [[1.0, 2.0], [3.0]]},
    "sites as text": {"sites": "here"},
    "seconds as text": {"seconds": ["soon"]},
    "noise as text": {"noise_variances": ["low"]},
    "odd channels": {"channels": {3: [1.0], "depth": ["deep"]}},
    "a part of another type": {"part": np.int64(0)},
    "an impossible part": {"part": 2**70},
    "a position of another shape": {"position": np.zeros(3)},
    "a position as text": {"position": ["there", "here"]},
    "a correction as text": {"values": ["n/a"], "corrects": True},
    "no goal": {"goal": None},
}


class Odd(Reports):
    """A robot whose first answer is odd; it repeats it when asked."""

    def open(self, mission, ground, hear):
        wire = super().open(mission, ground, hear)

        def go(goal):
            wire.sent.append(goal)
            order = goal.id.removesuffix("#s")
            hear(answer(order, goal.site, cost=2.0, **(self.odd if order.endswith("/0") else {})))
            hear(answer(order, goal.site, cost=2.0))

        def report():
            hear(PositionReport(wire.sent[-1].site if wire.sent else np.zeros(2)))
            if not closed:
                self.clock.after(0.05, report)

        closed, wire.go = [], go
        wire.close = lambda: closed.append(True)
        report()
        return wire


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_values_end_no_run_and_none_that_is_resumed(tmp_path, mission, odd):
    short, path = replace(mission, max_steps=3), tmp_path / "run.sqlite"
    link = Odd()
    link.__dict__["odd"] = odd
    with Record.create(path, "run", {"vehicles": [{}]}) as record:
        result = run(short, [vehicle_of(short, link)], record)
    assert len(result.observations) >= 3
    with Record(path) as record:
        again = resume(short, record, [vehicle_of(short, link)])
    assert again.path.tolist() == result.path.tolist()


@pytest.mark.parametrize(
    "report",
    [Reading(None), Reading("x"), PositionReport([[1.0], [2.0, 3.0]]), PositionReport(["a", "b"]),
     PositionReport(np.zeros(3)), GoalRejected("run/0#s", None), GoalRejected(None, "no")],
    ids=repr,
)  # fmt: skip
def test_an_odd_report_is_survived(mission, report):
    with vehicle_of(mission, Streams()) as vehicle:
        vehicle.send(query(0, [4, 4]))
        listen(vehicle)
        vehicle.link.wire.hear(report)
        events = listen(vehicle)
    assert not [e for e in events if isinstance(e, Observation | Correction)]


# -- what the positions show beside what the robot says ----------------------------------------------------


def test_one_wrong_position_in_a_result_does_not_bend_the_next_route_through_an_obstacle(mission):
    with vehicle_of(mission, Reports()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [4, 4]))
        vehicle.send(query(1, [16, 0]))
        listen(vehicle)
        wire.at(4, 4, times=6)
        wire.hear(answer("run/0", [4, 4], position=np.array([15.0, 5.0])))
        events = until(vehicle, lambda events: len(wire.sent) == 2, meanwhile=lambda: wire.at(4, 4))
    (seen,) = [event for event in events if isinstance(event, Observation)]
    assert seen.position.tolist() == [4.0, 4.0]
    assert through_the_wall(wire.sent[-1], [4, 4]) == 0.0


def driven(vehicle, wire, *places, seconds=0.5):
    """Have a robot report places one after the other, as fast as it may be."""
    events = []
    for place in places:
        wire.at(*place)
        events += listen(vehicle, seconds)
    return events


@pytest.mark.parametrize(("lost", "complete"), [(True, False), (False, False)], ids=["lost", "cancelled"])
def test_a_robot_that_forgot_a_goal_does_not_get_back_what_its_positions_show_it_drove(
    mission, lost, complete
):
    with vehicle_of(mission, Reports()) as vehicle:
        wire, none = vehicle.link.wire, np.empty(0)
        vehicle.send(query(0, [0, 16]))
        listen(vehicle)
        driven(vehicle, wire, *[(0, y / 2) for y in range(1, 9)], seconds=0.3)
        if lost:
            until(vehicle, lambda events: any(isinstance(event, Lost) for event in events))
            wire.at(0, 4, times=4)
        else:
            vehicle.cancel("run/0")
        forgotten = GoalResult("run/0#s", np.array([0.0, 4.0]), np.empty((0, 2)), none, none, cost=0.0)
        wire.hear(replace(forgotten, complete=complete))
        events = until(vehicle, lambda events: any(isinstance(event, Observation) for event in events))
    (seen,) = [event for event in events if isinstance(event, Observation)]
    assert (seen.cost, seen.estimated) == (pytest.approx(4.0), True)


def test_a_robot_that_refuses_a_goal_on_its_way_pays_for_the_way(mission):
    with vehicle_of(mission, Reports()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [0, 16]))
        listen(vehicle)
        driven(vehicle, wire, *[(0, y / 2) for y in range(1, 9)], seconds=0.3)
        wire.hear(GoalRejected("run/0#s", "shallow water"))
        events = until(vehicle, lambda events: any(isinstance(event, Lost | Rejected) for event in events))
    assert not any(isinstance(event, Rejected) for event in events)


def test_a_vehicle_that_was_moved_behind_a_wall_is_not_driven_through_it(mission):
    with vehicle_of(mission, Guided()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [4, 14]))
        listen(vehicle)
        around = [(0, y) for y in range(19)] + [(x, 18.5) for x in range(17)]
        driven(vehicle, wire, *around, *[(16, y) for y in range(18, 3, -1)], seconds=0.3)
        sent = len(wire.sent)
        driven(vehicle, wire, *[(16, 4)] * 6)
    assert through_the_wall(wire.sent[-1], [16, 4]) == 0.0
    assert len(wire.sent) <= sent + 1  # once is enough


@pytest.mark.parametrize("kind", [Reports, Guided])
def test_a_trip_home_from_where_a_lost_order_led_gets_the_time_that_it_takes(mission, kind):
    with vehicle_of(mission, kind(), least_s=1.0) as vehicle:
        wire, cancelled = vehicle.link.wire, []
        wire.cancel = cancelled.append
        vehicle.send(query(0, [4, 18]))
        assert until(vehicle, lambda events: any(isinstance(event, Lost) for event in events), 3.0)
        driven(vehicle, wire, *[(4, 18)] * 8, seconds=0.1)
        cancelled.clear()
        vehicle.send(GoHome(0, "run/1"))
        until(vehicle, lambda events: False, 0.2, lambda: wire.at(4, 18))
        assert wire.sent[-1].id == "run/1#s"
        assert wire.sent[-1].seconds == pytest.approx(np.hypot(4, 18), rel=0.1)
        for part in np.linspace(1.0, 0.0, 120):  # at a metre a second, as declared
            wire.at(4 * part, 18 * part)
            listen(vehicle, 0.15)
    assert cancelled == []


def test_a_trip_home_that_is_lost_is_not_cancelled(mission):
    with vehicle_of(mission, Reports()) as vehicle:
        wire, cancelled = vehicle.link.wire, []
        wire.cancel = cancelled.append
        vehicle.send(GoHome(0, "run/0"))
        assert until(vehicle, lambda events: any(isinstance(event, Lost) for event in events), 3.0)
    assert cancelled == []


def test_a_robot_beside_a_corner_within_its_tolerance_is_not_sent_anew_again_and_again(mission):
    """Positions on the wire are rounded, and so lie a little inside the clearance of the corner."""
    with vehicle_of(mission, Guided()) as vehicle:
        wire = vehicle.link.wire
        vehicle.send(query(0, [16, 4]))
        listen(vehicle)
        beside = wire.sent[0].route[0] + np.array([0.02, -0.02])
        driven(vehicle, wire, *(beside * part for part in np.linspace(0.0, 1.0, 25)), seconds=0.3)
        driven(vehicle, wire, *[beside] * 100, seconds=0.2)
    assert len(wire.sent) == 2
    assert wire.sent[-1].site.tolist() == [11.5, 16.5]


def test_what_a_robot_was_seen_to_drive_is_charged_though_it_answers_after_a_later_order(mission):
    with vehicle_of(mission, Reports()) as vehicle:
        wire, none = vehicle.link.wire, np.empty(0)
        vehicle.send(query(0, [0, 16]))
        listen(vehicle)
        driven(vehicle, wire, *[(0, y / 2) for y in range(1, 9)], seconds=0.3)
        until(vehicle, lambda events: any(isinstance(event, Lost) for event in events))
        wire.at(0, 4, times=4)
        vehicle.send(query(1, [0, 4]))
        until(vehicle, lambda events: len(wire.sent) == 2, meanwhile=lambda: wire.at(0, 4))
        wire.hear(answer("run/1", [0, 4]))
        until(vehicle, lambda events: any(isinstance(event, Observation) for event in events))
        late = GoalResult("run/0#s", np.array([0.0, 4.0]), np.empty((0, 2)), none, none, cost=0.0)
        wire.hear(replace(late, complete=False))
        events = until(vehicle, lambda events: any(isinstance(event, Observation) for event in events))
    (seen,) = [event for event in events if isinstance(event, Observation)]
    assert (seen.order, seen.estimated) == ("run/0", True)
    assert seen.cost == pytest.approx(4.0)
