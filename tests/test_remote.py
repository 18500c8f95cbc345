"""A remote vehicle at a link within this process: what is watched, given up, believed and told once."""

import math
import threading
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

from fieldbo.errors import InputError, VehicleError
from fieldbo.messages import GoHome, Lost, Observation, Query, Rejected, Telemetry
from fieldbo.testing import VehicleContract, small_cell, small_mission, small_world
from fieldbo.vehicles.remote.arrival import Arrival
from fieldbo.vehicles.remote.link import (
    Alive,
    At,
    Charge,
    Connection,
    Done,
    Down,
    Goal,
    Link,
    Read,
    Refused,
)
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Battery, Reports, VehicleFile, Watch
from fieldbo.vehicles.simulators import Fault, Robot

QUICK = Watch(silence_s=0.3, connect_s=0.5, patience=3.0, least_s=0.6)


class Wire(Connection):
    """A robot on a thread of its own; the signals go straight to and fro."""

    def __init__(self, robot, hear, streams=False):
        self.robot, self.hear, self.streams = robot, hear, streams
        self.cut = False
        self._lock = threading.Lock()
        self._open = True
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def _tick(self):
        while self._open:
            with self._lock:
                for signal in self.robot.tick():
                    if not self.cut and not (self.streams and isinstance(signal, Done)):
                        self.hear(signal)
                if self.streams and not self.cut and not math.isnan(self.robot.reading):
                    self.hear(Read(self.robot.reading))
            time.sleep(0.005)

    def _ordered(self, act, *args):
        if not self.cut:
            with self._lock:
                act(*args)

    def go(self, errand):
        self._ordered(self.robot.go, errand)

    def cancel(self, errand):
        self._ordered(self.robot.cancel, errand)

    def hold(self):
        self._ordered(self.robot.hold)

    def ask(self, errand):
        self._ordered(self.robot.ask, errand)
        return True

    def close(self):
        self._open = False
        self._thread.join()


@dataclass(frozen=True)
class Near(Link):
    """A robot in this process."""

    robot: Robot
    address = "here"

    def open(self, mission, ground, hear):
        self.wires.append(Wire(self.robot, hear, not self.reports))
        return self.wires[-1]

    @property
    def wires(self):
        return self.__dict__.setdefault("_wires", [])


class Streaming(Near):
    reports = False


SETTINGS = VehicleFile.model_construct(
    format=1,
    title="",
    link={},
    frame=None,
    watch=QUICK,
    battery=Battery(),
    reports=Reports(),
    arrival=Arrival(1e-6),
)


def remote(*faults, mission=None, link=Near, speedup=1000.0, session="s", **settings):
    mission = mission or small_mission()
    robot = Robot(
        mission.world,
        seed=mission.seed,
        start=mission.vehicles[0].start,
        battery=mission.vehicles[0].battery,
        speedup=speedup,
        faults=[Fault.parse(f) for f in faults],
    )
    return Remote(mission, 0, link(robot), SETTINGS.model_copy(update=settings), session)


def until_settled(vehicle, order, patience_s=5.0):
    """All events up to the one that settles an order, and what came with it."""
    found, end = [], time.monotonic() + patience_s
    while time.monotonic() < end:
        found += vehicle.events(0.05)
        if any(e.order == order for e in found if isinstance(e, Observation | Rejected | Lost)):
            return found
    raise AssertionError(f"{order} was not settled: {found}")


def settled(vehicle, order):
    return next(e for e in until_settled(vehicle, order) if getattr(e, "order", None) == order)


class TestReporting(VehicleContract):
    def vehicle(self, mission):
        return remote(mission=mission)


class TestStreaming(VehicleContract):
    def vehicle(self, mission):
        return remote(mission=mission, link=Streaming)


QUERY = Query([2.0, 1.0], expected_cost=3.0, id="run/0")


def test_a_reading_is_told_where_when_and_for_how_much_as_in_simulation():
    mission = small_mission()
    with remote(mission=mission) as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    cost, seconds = mission.world.takes(QUERY, mission.vehicles[0].start, 0.0)
    assert seen.cost == pytest.approx(cost, rel=1e-12)
    assert seen.time_s == pytest.approx(seconds, abs=1.0)
    assert np.array_equal(seen.sites, [[2.0, 1.0]])


def test_where_it_is_and_what_it_has_left_comes_right_behind_what_was_done():
    with remote() as vehicle:
        vehicle.send(QUERY)
        events = until_settled(vehicle, "run/0")
    k = next(k for k, e in enumerate(events) if isinstance(e, Observation))
    assert isinstance(events[k + 1], Telemetry)
    assert np.array_equal(events[k + 1].position, events[k].position)
    assert events[k + 1].remaining == pytest.approx(30.0 - events[k].cost)
    assert events[k + 1].time_s >= events[k].time_s


def test_a_refusal_is_told_as_such():
    with remote("refuse:0") as vehicle:
        vehicle.send(QUERY)
        assert settled(vehicle, "run/0") == Rejected("run/0", "refused on demand")


def test_what_is_never_finished_is_cancelled_in_time_and_told_as_cut_short():
    with remote("stuck:0", watch=replace(QUICK, patience=0.1)) as vehicle:
        before = time.monotonic()
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
        assert QUICK.least_s <= time.monotonic() - before < QUICK.least_s + 2.0
    assert isinstance(seen, Observation)
    assert not seen.complete
    assert len(seen.values) == 0


def test_silence_is_noticed_within_the_watchdog_time_and_what_comes_late_is_still_told():
    with remote("silent:0:1.0") as vehicle:
        before = time.monotonic()
        vehicle.send(QUERY)
        lost = settled(vehicle, "run/0")
        assert isinstance(lost, Lost)
        assert time.monotonic() - before < QUICK.silence_s + 0.5
        time.sleep(1.0)
        late = [e for e in vehicle.events(0.5) if isinstance(e, Observation)]
    assert [e.order for e in late] == ["run/0"]


def test_a_result_that_comes_twice_is_told_once():
    with remote("twice:0") as vehicle:
        vehicle.send(QUERY)
        events = until_settled(vehicle, "run/0") + vehicle.events(0.3)
    assert sum(isinstance(e, Observation) for e in events) == 1


@pytest.mark.parametrize(
    ("fault", "reports"), [("nan:0", Reports()), ("absurd:0", Reports(low=-100.0, high=100.0))]
)
def test_a_reading_that_is_none_is_told_as_failed(fault, reports):
    with remote(fault, reports=reports) as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert np.isnan(seen.values).all()
    assert np.array_equal(seen.sites, [[2.0, 1.0]])


@pytest.mark.parametrize(("accuracy", "told"), [(0.0, 2.4), (0.5, 2.0), ((0.5, 0.1), 2.0), ((0.3, 9.0), 2.4)])
def test_a_reading_is_told_where_it_was_reported_unless_that_is_as_near_as_reports_are(accuracy, told):
    with remote("astray:0:0.4", reports=Reports(accuracy=accuracy)) as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert seen.sites[0].tolist() == [told, 1.0]
    assert seen.position.tolist() == [told, 1.0]


def test_a_place_that_is_none_leaves_the_vehicle_where_it_was_and_the_reading_failed():
    with remote("astray:0:1e6") as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert np.isnan(seen.values).all()
    assert np.isfinite(seen.position).all()
    assert not seen.complete


@pytest.mark.parametrize("jump", ["-1e9", "1e9"])
def test_a_clock_that_jumps_moves_no_time(jump):
    with remote(f"clock:0:{jump}") as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert 0.0 <= seen.times_s[0] <= seen.time_s < 60.0


def test_an_errand_of_another_run_is_none_of_this_one():
    vehicle = remote(session="mine")
    with vehicle:
        vehicle.send(replace(QUERY, id="run/1"))
        until_settled(vehicle, "run/1")
        wire = vehicle.link.wires[0]
        at, none = np.zeros(2), np.empty(0)
        for errand in ("run/0#theirs", "run/0", "else/0#mine", "#", ""):
            wire.hear(Done(errand, at, np.empty((0, 2)), none, none))
            wire.hear(Refused(errand, "not here"))
        assert [e for e in vehicle.events(0.1) if hasattr(e, "order")] == []


def test_no_robot_is_said_before_anything_is_sent():
    vehicle = remote("silent:0:9")
    vehicle.link.robot.tick = list
    with pytest.raises(VehicleError, match="no robot answers at here"), vehicle:
        pass


def test_a_will_loses_the_order_at_once():
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        before = time.monotonic()
        vehicle.link.wires[0].hear(Down("its will says offline"))
        assert settled(vehicle, "run/0") == Lost("run/0", "its will says offline")
        assert time.monotonic() - before < 0.2


def test_after_a_silence_the_first_sign_of_life_is_told():
    with remote() as vehicle:
        wire = vehicle.link.wires[0]
        wire.cut = True
        vehicle.send(QUERY)
        assert isinstance(settled(vehicle, "run/0"), Lost)
        assert vehicle.events(0.3) == []
        wire.cut = False
        assert any(isinstance(e, Telemetry) for e in vehicle.events(1.0))


def test_an_order_behind_another_leaves_when_that_is_settled():
    second = Query([0.0, 3.0], expected_cost=3.0, id="run/1")
    with remote("refuse:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.send(second)
        events = until_settled(vehicle, "run/1")
    assert [e.order for e in events if hasattr(e, "order")] == ["run/0", "run/1"]


def test_an_order_that_has_not_left_is_cancelled_without_the_robot():
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.send(Query([0.0, 3.0], id="run/1"))
        vehicle.cancel("run/1")
        assert settled(vehicle, "run/1") == Rejected("run/1", "cancelled before it left")


def test_a_new_vehicle_learns_from_the_robot_what_came_of_an_order():
    first = remote()
    with first:
        first.send(QUERY)
        seen = settled(first, "run/0")
    again = Remote(first.mission, 0, first.link, SETTINGS, "s")
    with again:
        again.resume([QUERY], [])
        (told,) = again.outcome("run/0")
        assert told.values.tolist() == seen.values.tolist()
        assert [e for e in again.events(0.1) if isinstance(e, Observation)] == []
        assert again.outcome("run/7") is None


def test_an_order_that_the_robot_is_at_goes_on_when_it_is_sent_again():
    first = remote(speedup=5.0)
    with first:
        first.send(QUERY)
        first.events(0.1)
    again = Remote(first.mission, 0, first.link, SETTINGS, "s")
    with again:
        again.resume([QUERY], [])
        assert again.outcome("run/0") is None
        again.send(QUERY)
        assert isinstance(settled(again, "run/0"), Observation)
    assert first.link.robot._count == 1


def test_a_streaming_sensor_that_says_nothing_has_failed():
    arrival = Arrival(1e-6, reading_s=0.2)
    vehicle = remote(link=Streaming, arrival=arrival)
    with vehicle:
        wire = vehicle.link.wires[0]
        hear, wire.hear = wire.hear, lambda s: None if isinstance(s, Read) else hear(s)
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert np.isnan(seen.values).all()
    assert seen.complete


def test_readings_under_way_are_none_of_the_site():
    vehicle = remote(link=Streaming, speedup=10.0)
    with vehicle:
        wire = vehicle.link.wires[0]
        vehicle.send(QUERY)
        for _ in range(5):
            wire.hear(Read(77.0))
        seen = settled(vehicle, "run/0")
    assert seen.values[0] < 70.0


def test_in_a_cell_what_is_left_free_is_told_as_it_came_about():
    mission = small_mission(world=small_cell(), home=False)
    query = Query([2.0, 3.0, 0.0], controls=[True, True, False], expected_cost=0.5, id="run/0")
    with remote(mission=mission) as vehicle:
        vehicle.send(query)
        seen = settled(vehicle, "run/0")
    assert seen.position[:2].tolist() == [2.0, 3.0]
    assert np.isfinite(seen.position).all()
    assert seen.cost == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("charge", "remaining"),
    [
        (Charge(share=0.5), 15.0),
        (Charge(amount=4.0), 4.0),
        (Charge(share=math.nan), None),
        (Charge(share=-0.1), None),
        (Charge(share=57.0), None),
        (Charge(amount=math.inf), None),
        (Charge(), None),
    ],
)
def test_a_charge_is_believed_if_it_can_be(charge, remaining):
    vehicle = remote()
    vehicle._account.charge(charge)
    assert vehicle._account.telemetry().remaining == remaining


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        (Watch, "silence_s", 0.0),
        (Watch, "patience", math.inf),
        (Battery, "full", -1.0),
        (Battery, "accuracy", -1.0),
        (Reports, "accuracy", math.nan),
        (Reports, "accuracy", (0.1, -1.0)),
        (Reports, "low", math.nan),
        (Arrival, "within", 0.0),
        (Arrival, "settle_s", -1.0),
        (Arrival, "reading_s", math.nan),
    ],
)
def test_settings_that_make_no_sense_are_refused(table, key, value):
    with pytest.raises(InputError, match=key):
        table(**{key: value})


def test_going_home_needs_no_reading():
    with remote() as vehicle:
        vehicle.send(QUERY)
        until_settled(vehicle, "run/0")
        vehicle.send(GoHome(0, "run/1"))
        seen = settled(vehicle, "run/1")
    assert len(seen.values) == 0
    assert seen.complete
    assert np.array_equal(seen.position, small_mission().vehicles[0].home)


def test_signs_of_life_alone_keep_an_order_waiting():
    with remote("stuck:0", watch=replace(QUICK, least_s=30.0)) as vehicle:
        vehicle.send(QUERY)
        end = time.monotonic() + 3 * QUICK.silence_s
        while time.monotonic() < end:
            vehicle.link.wires[0].hear(Alive())
            assert [e for e in vehicle.events(0.05) if hasattr(e, "order")] == []


def test_a_robot_that_reports_no_place_is_where_its_orders_end():
    vehicle = remote()
    vehicle._account.at(np.array([math.nan, 0.0]))
    assert np.array_equal(vehicle._account.telemetry().position, small_mission().vehicles[0].start)
    vehicle._account.at(np.array([1.0]))
    vehicle._account.at(np.array([1e9, 0.0]))
    assert np.array_equal(vehicle._account.telemetry().position, small_mission().vehicles[0].start)
    vehicle._account.at(np.array([1.0, 2.0]))
    assert np.array_equal(vehicle._account.telemetry().position, [1.0, 2.0])


def test_a_missions_simulation_and_a_robot_with_its_seed_read_the_same():
    mission = small_mission(world=small_world(noise_sd=0.3), seed=5)
    from fieldbo.vehicles.simulated import Simulated

    simulated = Simulated(mission)
    simulated.send(QUERY)
    with remote(mission=mission) as vehicle:
        vehicle.send(QUERY)
        assert settled(vehicle, "run/0").values.tolist() == simulated.events(0.0)[0].values.tolist()


def test_why_no_robot_is_there_is_said_where_the_middleware_knows():
    vehicle = remote()
    vehicle.link.robot.tick = lambda: [Down("its will says offline")]
    with pytest.raises(VehicleError, match="its will says offline"), vehicle:
        pass


def part(vehicle, number, position, *, last, value=1.0, **told):
    at = np.array(position, dtype=float)
    done = Done(f"run/{number}#s", at, at[None], np.array([value]), np.array([math.nan]), last=last, **told)
    vehicle.link.wires[-1].hear(done)


def test_parts_of_an_order_are_paid_and_timed_each_on_its_own():
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        part(vehicle, 0, [1.0, 0.0], part=0, last=False, duration_s=0.1)
        part(vehicle, 0, [2.0, 1.0], part=1, last=True, duration_s=0.1)
        seen = [e for e in until_settled_whole(vehicle) if isinstance(e, Observation)]
    cost = vehicle.mission.world.cost
    assert seen[0].cost == pytest.approx(cost.to([0.0, 0.0], [[1.0, 0.0]])[0])
    assert seen[1].cost == pytest.approx(cost.to([1.0, 0.0], [[2.0, 1.0]])[0])
    assert seen[1].time_s == pytest.approx(seen[0].time_s + 0.1)


def until_settled_whole(vehicle):
    found, end = [], time.monotonic() + 5.0
    while not any(isinstance(e, Observation) and e.last for e in found):
        assert time.monotonic() < end
        found += vehicle.events(0.05)
    return found


def nonsense():
    at = np.zeros(2)
    yield Done("run/0#s", at, np.zeros((3, 2)), np.array([1.0]), np.array([1.0]))
    yield Done("run/0#s", at, at[None], np.array([1.0]), np.array([1.0, 2.0]), cost=None)
    yield Done(
        "run/0#s", at, at[None], np.array([1.0]), np.array([]), channels={"depth": np.array([1.0, 2.0])}
    )
    yield Done("run/0#s", np.array([0.0]), at[None], np.array([1.0]), np.array([1.0]), duration_s=None)
    yield Done("run/0#s", at, np.array([]), np.array([1.0]), np.array([1.0]), cost=1e30)
    yield Done("run/0#s", at, at[None], np.array([1e308]), np.array([-1e308]), cost=-1e308, duration_s=1e308)


@pytest.mark.parametrize("done", list(nonsense()), ids=range(6))
def test_a_result_that_makes_no_sense_settles_its_order_all_the_same(done):
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.link.wires[0].hear(done)
        seen = settled(vehicle, "run/0")
    assert isinstance(seen, Observation)
    assert 0.0 <= seen.cost <= 30.0
    assert len(seen.values) in (0, 1)


def test_what_is_told_of_an_order_that_has_not_left_is_passed_over():
    second = Query([0.0, 3.0], id="run/1")
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.send(second)
        part(vehicle, 1, [0.0, 3.0], last=True)
        vehicle.link.wires[0].hear(Refused("run/1#s", "not yet"))
        assert [e for e in vehicle.events(0.2) if hasattr(e, "order")] == []


def test_a_place_that_is_none_does_not_stop_a_robot_that_streams():
    with remote(link=Streaming, speedup=10.0) as vehicle:
        vehicle.send(QUERY)
        for place in ([1e9, 0.0], [math.nan, 0.0], [1.0], "here"):
            vehicle.link.wires[0].hear(At(place))
        assert settled(vehicle, "run/0").sites[0] == pytest.approx([2.0, 1.0])


def test_orders_of_a_batch_that_is_taken_up_cost_the_ways_between_them():
    sites = [[2.0, 1.0], [3.0, 1.0], [4.0, 1.0]]
    batch = [Query(site, expected_cost=2.0, id=f"run/{k}") for k, site in enumerate(sites)]
    first = remote("stuck:0")
    again = Remote(first.mission, 0, first.link, SETTINGS, "s")
    with again:
        again.resume(batch, [])
        for k, order in enumerate(batch):
            again.send(order)
            part(again, k, sites[k], last=True)
            assert settled(again, order.id).cost == pytest.approx(
                first.mission.world.cost.to([0.0, 0.0] if k == 0 else sites[k - 1], [sites[k]])[0]
            )


def test_clock_and_place_are_taken_up_from_all_that_was_told():
    vehicle = remote()
    orders = [replace(QUERY, id=f"run/{k}") for k in range(2)]
    none = np.empty(0)
    late = Observation("run/0", np.empty((0, 2)), none, none, none, [2.0, 1.0], 1.0, time_s=10.0)
    newest = replace(late, order="run/1", position=[4.0, 0.0])
    vehicle.resume(orders, [newest, late, Telemetry(0, [4.0, 0.0], 20.0, 700.0)])
    where = vehicle._account.telemetry()
    assert where.time_s >= 700.0
    assert where.position.tolist() == [4.0, 0.0]


def test_a_lost_order_whose_robot_knows_more_is_told_after_a_resume():
    first = remote()
    with first:
        first.send(QUERY)
        settled(first, "run/0")
    again = Remote(first.mission, 0, first.link, SETTINGS, "s")
    with again:
        again.resume([QUERY], [Lost("run/0", "silence")])
        assert [e.order for e in again.events(1.0) if isinstance(e, Observation)] == ["run/0"]


def test_a_battery_that_holds_more_than_the_mission_may_use_is_told_by_what_was_used():
    vehicle = remote(battery=Battery(full=600.0))
    for amount, told in ((540.0, 30.0), (530.0, 20.0), (601.0, 20.0), (1e30, 20.0), (5.0, 0.0)):
        vehicle._account.charge(Charge(amount=amount))
        assert vehicle._account.telemetry().remaining == pytest.approx(told)


@pytest.mark.parametrize(
    ("errand", "why"),
    [
        (Goal("a", np.array([1.0, math.nan])), "nothing is said of y: this robot is in small, with x, y"),
        (Goal("a", np.array([1.0])), "a site of 1 numbers"),
        (Goal("a", np.array([1.0, 1.0]), level=3), "no setting 3"),
        (Goal("a", np.array([99.0, 1.0])), "outside of where it can go"),
    ],
)
def test_a_robot_refuses_what_can_not_be_done_where_it_is(errand, why):
    robot = Robot(small_world())
    robot.go(errand)
    (refused,) = (s for s in robot.tick() if isinstance(s, Refused))
    assert why in refused.reason
