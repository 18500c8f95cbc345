"""Readings on the way that can't come from their move are rejected, with the reason."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldbo.agent.agent import Agent
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.sensor import Along, distances_from, in_order
from fieldbo.errors import InputError
from fieldbo.messages import Lost, Observation, Query, Rejected, Telemetry
from fieldbo.policies.baselines import Random
from fieldbo.testing import small_mission, small_world
from fieldbo.vehicles.base import Simulated
from fieldbo.vehicles.mqtt.protocol import Codec, json_object
from fieldbo.vehicles.remote.progress import OrderBook
from fieldbo.vehicles.remote.reports import ReportFilter
from fieldbo.vehicles.remote.settings import Reports, VehicleFile
from fieldbo.vehicles.remote.track import Track
from fieldbo.vehicles.remote.usable import usable

ORDER = Query([5.0, 0.0], expected_cost=6.0, id="run/0")
SECOND = Query([5.0, 4.0], expected_cost=5.0, id="run/1")


def logged_mission():
    world = small_world()
    return small_mission(world=replace(world, sensor=replace(world.sensor, along=Along(every_m=1.0))))


def spit_mission(seed):
    """Return a mission whose vehicle goes around a spit, in batches of three."""
    axes = [Axis("x", "m", 0.0, 10.0), Axis("y", "m", 0.0, 10.0)]
    domain = Domain.grid(axes, (11, 11), obstacles=[Obstacle("spit", (4.6, -1.0), (5.4, 7.5))])
    world = small_world((11, 11))
    world = replace(world, domain=domain, sensor=replace(world.sensor, along=Along(every_m=0.5)))
    return replace(small_mission(Random(), world=world, battery=200.0, seed=seed), batch=3)


# -- in Python -------------------------------------------------------------------------------------------


def moved(telemetry=None):
    """An agent after an order, and the event of its next one: three readings on the way, one at the site."""
    mission = logged_mission()
    agent, vehicle = Agent(mission), Simulated(mission)
    for order in (ORDER, SECOND):
        agent.replay(order, {}, None)
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        if order is ORDER:
            agent.tell(event)
    if telemetry is not None:
        agent.tell(telemetry)
    assert event.times_s.tolist() == [7.0, 8.0, 9.0, 11.0]
    return agent, event


def off_route(event, x):
    return replace(event, sites=event.sites + x * np.outer(np.arange(4) == 1, [1.0, 0.0]))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda e: replace(e, times_s=e.times_s[:2]),
            r"times_s has 2 entries(.|\n)*expected: 4, one for each reading",
        ),
        (lambda e: replace(e, times_s=np.full(4, np.nan)), r"times_s(.|\n)*finite"),
        (
            lambda e: replace(e, times_s=np.array([7.0, 9.5, 9.0, 11.0])),
            r"times_s is out of order at reading [12](.|\n)*fix: +sort sites, values and times_s by time",
        ),
        (
            lambda e: replace(e, times_s=e.times_s - 6.0),
            r"reading 0 was taken at 1 s, outside of its move(.|\n)*from 6 s(.|\n)*start of the run",
        ),
        (
            lambda e: replace(e, time_s=10.0),
            r"reading 3 was taken at 11 s, outside of its move(.|\n)*from 6 s to 10 s",
        ),
        (
            lambda e: off_route(e, -2.0),
            r"reading 1, at \[3.0, 2.0\], lies 2 m from the route(.|\n)*within 0.5 m(.|\n)*fix:",
        ),
    ],
)
def test_an_agent_rejects_readings_that_cannot_come_from_the_move_and_takes_in_nothing(spoil, message):
    agent, event = moved()
    with pytest.raises(InputError, match=message):
        agent.tell(spoil(event))
    assert (agent.readings, agent.vehicles[0].time_s) == (len(agent.history[0].values), 6.0)
    agent.tell(event)
    assert agent.steps == 2


def test_an_agent_believes_readings_that_drifted_a_little_and_failed_ones_anywhere():
    agent, event = moved()
    far = off_route(event, 0.4)
    failed = replace(off_route(event, -3.0), values=np.where(np.arange(4) == 1, np.nan, event.values))
    agent.check(far)
    agent.check(failed)


def test_a_vehicle_that_reports_its_position_may_be_on_another_route():
    agent, event = moved(Telemetry(0, np.array([4.0, 1.0]), None, 7.5))
    agent.check(off_route(event, -2.0))


@pytest.mark.parametrize("seed", range(6))
def test_after_a_rejected_order_of_a_batch_the_vehicle_may_go_around_an_obstacle_from_where_it_was(seed):
    mission = spit_mission(seed)
    agent, vehicle, number = Agent(mission), Simulated(mission), 0
    while number < 10:
        for order in agent.ask_batch(3):
            if number in (2, 4):
                event = Rejected(order.id, "no")  # the vehicle stays where it is
            else:
                vehicle.send(order)
                (event,) = vehicle.events(0.0)
            agent.tell(event)
            number += 1
    assert agent.readings > 10


def test_a_mission_without_readings_on_the_way_takes_several_readings_as_before():
    agent = Agent(small_mission())
    agent.replay(ORDER, {}, None)
    sites = np.array([[0.0, 4.0], [5.0, 0.0]])
    agent.tell(Observation("run/0", sites, np.ones(2), np.full(2, 0.01), np.array([9.0, 1.0]), sites[1], 6.0))
    assert agent.steps == 1


# -- over MQTT -------------------------------------------------------------------------------------------


def observed(readings, reports=Reports(), resumed=False, **result):  # noqa: B008 - frozen
    """The observation of a result's message, of a robot that was sent along one side of a small world."""
    mission = logged_mission()
    book = OrderBook()
    entry = book.add(ORDER)
    filter_ = ReportFilter(mission, 0, VehicleFile(format=1, link={}, reports=reports), book, Track(mission))
    if resumed:
        filter_.resume([])
        filter_.catch_up(200.0)
    filter_.begin(entry)
    entry.leg.routes.append(np.array([[0.0, 0.0], [5.0, 0.0]]))
    body = {"id": "run/0#s", "position": {"x": 5, "y": 0}, "duration_s": 6.0, "readings": readings, **result}
    codec = Codec(mission.world.domain.axes)
    (report,) = codec.reports("result", json_object("result", json.dumps(body).encode()))
    good, problem = usable(report, 2)
    assert problem == ""
    return filter_.observation(entry, good)


def reading(x, seconds, value=1.0, y=0.0):
    return {"site": {"x": x, "y": y}, "value": value, **({} if seconds is None else {"seconds": seconds})}


def test_readings_with_times_along_the_route_are_all_believed():
    event = observed([reading(k, k) for k in range(1, 5)] + [reading(5, 6)])
    assert np.isfinite(event.values).all()
    np.testing.assert_allclose(np.diff(event.times_s), [1, 1, 1, 2])
    assert event.doubts == ()


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (reading(3, None), "of 4 readings on the way, 1 has no time: send seconds"),
        (reading(3, 800.0), r"1 has a time outside of the move, such as 800 s: .* to its end, here 6 s"),
        (reading(3, -2.0), "1 has a time outside of the move, such as -2 s"),
        (reading(3, 0.5), "1 has a time out of order"),
        (reading(3, 3.0, y=4.0), r"1 lies up to 4 m from the route: off_route_m in \[reports\] allows 0.5 m"),
    ],
)
def test_a_reading_that_cannot_come_from_the_move_fails_alone_and_the_reason_is_reported(bad, problem):
    event = observed([reading(1, 1), reading(2, 2), bad, reading(4, 4), reading(5, 6)])
    assert np.isnan(event.values).tolist() == [False, False, True, False, False]
    (doubt,) = event.doubts
    assert doubt.startswith("run/0, part 0: ")
    assert re.search(problem, doubt)
    assert event.complete
    agent = Agent(logged_mission())
    agent.replay(ORDER, {}, None)
    agent.tell(event)
    assert agent.steps == 1


def test_the_reading_at_the_site_needs_no_time():
    event = observed([reading(1, 1), reading(5, None)])
    assert np.isfinite(event.values).all()
    assert event.times_s[1] == event.time_s


def test_a_part_that_ends_on_the_way_has_no_reading_at_the_site():
    event = observed([reading(1, 1), reading(2, None)], last=False, position={"x": 2, "y": 0})
    assert np.isnan(event.values).tolist() == [False, True]


def test_a_part_that_arrives_after_the_next_one_is_believed():
    mission = logged_mission()
    book = OrderBook()
    entry = book.add(ORDER)
    filter_ = ReportFilter(mission, 0, VehicleFile(format=1, link={}), book, Track(mission))
    filter_.begin(entry)
    codec, events = Codec(mission.world.domain.axes), []
    for part, first in ((1, 3), (0, 1)):
        readings = [reading(first, first), reading(first + 0.5, first + 0.5)]
        body = {"id": "run/0#s", "part": part, "last": False, "readings": readings, "duration_s": 2.0}
        (report,) = codec.reports("result", {"position": {"x": first + 0.5, "y": 0}, **body})
        report = replace(report, duration_s=4.0 if part else 2.0)
        events.append(filter_.observation(entry, report))
    assert all(np.isfinite(event.values).all() for event in events)
    assert events[1].times_s[-1] < events[0].times_s[0]


def test_a_wider_route_can_be_declared():
    tacking = [reading(2, 2, y=3.0), reading(5, 6)]
    assert np.isnan(observed(tacking).values[0])
    assert np.isfinite(observed(tacking, Reports(off_route_m=4.0)).values).all()


def test_after_a_restart_of_the_planner_readings_count_although_its_clock_for_the_goal_began_late():
    event = observed([reading(1, 101), reading(2, 102), reading(5, 106)], resumed=True)
    assert np.isfinite(event.values).all()
    assert event.doubts == ()


# -- the two measures ------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), max_size=12))
def test_the_times_that_are_kept_never_decrease_and_no_longer_choice_exists(times):
    kept = in_order(np.array(times, dtype=float))
    chosen = np.array(times)[kept]
    assert (np.diff(chosen) >= 0).all()
    longest = [1] * len(times)
    for k in range(len(times)):
        longest[k] += max((longest[j] for j in range(k) if times[j] <= times[k]), default=0)
    assert len(chosen) == max(longest, default=0)


def test_distances_from_a_route_are_those_to_its_nearest_leg():
    route = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [4.0, 3.0, 0.0]])
    sites = np.array([[1.0, 1.0, 0.0], [5.0, 2.0, 0.0], [4.0, 3.0, 2.0], [-3.0, -4.0, 0.0]])
    assert distances_from(route, sites).tolist() == [1.0, 1.0, 2.0, 5.0]
    assert distances_from(route[:1], sites).tolist()[3] == 5.0


def parts_of(event):
    """The first two readings of a move, and the rest, as two parts."""
    first, rest = (
        {name: getattr(event, name)[some] for name in ("sites", "values", "noise_variances", "times_s")}
        for some in (slice(2), slice(2, None))
    )
    half = replace(event, cost=event.cost / 2)
    return (
        replace(half, **first, part=0, last=False, position=event.sites[1], time_s=8.0),
        replace(half, **rest, part=1, last=False, position=event.sites[2]),
    )


def test_parts_count_once_in_whichever_order_they_come():
    agent, event = moved()
    before, (first, rest) = agent.readings, parts_of(event)
    for part in (rest, first, first, rest):
        agent.tell(part)
    assert agent.readings == before + 4


def test_the_move_after_a_lost_order_begins_where_its_parts_ended():
    agent, event = moved()
    first, _ = parts_of(event)
    agent.tell(first)  # the vehicle has come as far as (5, 2)
    agent.tell(Lost("run/1", "silent"))
    back = Query([0.0, 2.0], expected_cost=6.0, id="run/2")
    agent.replay(back, {}, None)
    sites = np.array([[4.0, 2.0], [2.0, 2.0], [0.0, 2.0]])
    before = agent.readings
    agent.tell(
        Observation("run/2", sites, np.zeros(3), np.full(3, 0.01), [9.0, 11.0, 14.0], sites[-1], 6.0, 14.0)
    )
    assert agent.readings == before + 3
