"""What an order costs at least: by where a robot was seen, and by what an earlier program had sent."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from direct_link import Streaming
from remote_vehicles import again, remote

from fieldbo.domain.obstacles import Obstacle
from fieldbo.messages import Lost, Observation, Query, Recharge, Telemetry
from fieldbo.testing import small_mission
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    GoalResult,
    Heartbeat,
    PositionReport,
    Reading,
    Reconnected,
    Unreachable,
)
from fieldbo.vehicles.remote.settings import Battery, Watch

WATCH = Watch(silence_s=2.0, connect_s=5.0, patience=3.0, least_s=30.0)
HOME = np.zeros(2)


def query(number, site):
    return Query(site, expected_cost=3.0, id=f"run/{number}")


def observed(number, position, cost, time_s):
    return Observation(f"run/{number}", [position], [1.0], [0.01], [time_s], position, cost, time_s=time_s)


def told(**more):
    """Return a vehicle whose robot reports only what the test tells."""
    vehicle = remote(watch=WATCH, **more)
    vehicle.link.robot.tick = lambda: [Heartbeat()]
    return vehicle


def seen_at(vehicle, *places):
    for place in places:
        for _ in range(6):
            vehicle.link.wires[-1].hear(PositionReport(np.array(place, dtype=float)))
            vehicle.events(0.1)


def answered(vehicle, number, place, cost, *, part=0, last=True):
    """Tell the robot's result of an order; return the observation."""
    at, values = np.array(place, dtype=float), np.ones(1 if last else 0)
    sites = np.tile(at, (len(values), 1))
    vehicle.link.wires[-1].hear(
        GoalResult(
            f"run/{number}#s", at, sites, values, np.nan * values, cost, complete=last, part=part, last=last
        )
    )
    events = [event for _ in range(30) for event in vehicle.events(0.1)]
    (found,) = [event for event in events if isinstance(event, Observation)]
    return found


def levels(vehicle, *amounts):
    """Take battery levels; return what is left then."""
    for amount in amounts:
        vehicle.clock.sleep(0.1)
        vehicle._filter.take_battery(BatteryReport(amount=amount))
    return vehicle._filter.telemetry().remaining


# -- where the robot was seen ------------------------------------------------------------------------------


def test_a_part_costs_the_way_from_the_part_before_it_at_least():
    with told() as vehicle:
        seen_at(vehicle, [0, 0])
        vehicle.send(query(0, [5.0, 4.0]))
        seen_at(vehicle, [1, 0.8], [2, 1.6], [3, 2.4])
        first = answered(vehicle, 0, [3, 2.4], 3.9, last=False)
        vehicle.link.wires[-1].hear(Reconnected())
        seen_at(vehicle, [4, 3.2], [5, 4])
        rest = answered(vehicle, 0, [5, 4], 0.0, part=1)

    assert (first.cost, first.estimated) == (3.9, False)
    assert (rest.cost, rest.estimated) == (pytest.approx(np.hypot(2.0, 1.6) + 1.0), True)


def test_a_position_in_a_result_that_others_contradict_charges_nothing():
    with told() as vehicle:
        seen_at(vehicle, [0, 0])
        vehicle.send(query(0, [2.0, 1.0]))
        vehicle.events(0.05)
        vehicle.link.wires[-1].hear(Reconnected())
        seen_at(vehicle, [0.5, 0.25], [1, 0.5], [1.5, 0.75], [2, 1])
        seen = answered(vehicle, 0, [5, 4], 3.3)

    assert (seen.cost, seen.estimated) == (3.3, False)


def test_a_late_result_from_beside_an_obstacle_costs_what_the_robot_reports():
    rock = Obstacle("rock", corners=((1.4, 1.6), (3.6, 1.6), (3.6, 2.4), (1.4, 2.4)))
    with told(mission=small_mission(battery=40.0).with_no_go([rock])) as vehicle:
        seen_at(vehicle, [0, 0])
        vehicle.send(query(0, [2.0, 1.0]))
        seen_at(vehicle, [1, 0.5], [2, 1])
        vehicle.link.wires[-1].hear(Unreachable("the radio is off"))
        seen_at(vehicle, [2, 1])
        vehicle.send(query(1, [4.0, 1.0]))
        vehicle.events(0.05)
        seen = answered(vehicle, 0, [2, 1.65], 4.0)

    assert (seen.cost, seen.estimated) == (4.0, False)


# -- what an earlier program had sent ------------------------------------------------------------------------


def test_an_order_that_no_earlier_program_sent_costs_what_the_robot_reports():
    orders = [query(0, [2.0, 1.0]), query(1, [5.0, 4.0]), query(2, [2.0, 2.0])]
    with again(told()) as vehicle:
        vehicle.resume(orders, [observed(0, [2.0, 1.0], 3.2, 5.0)])
        for order in orders[1:]:
            vehicle.send(order)
        seen_at(vehicle, [2, 1])
        vehicle.link.wires[-1].hear(Unreachable("the radio is off"))
        events = vehicle.events(0.1)
        seen_at(vehicle, [2, 1])  # where it still is
        seen = answered(vehicle, 2, [2, 2], 2.0)

    assert [event.order for event in events if isinstance(event, Lost)] == ["run/1"]
    assert (seen.cost, seen.estimated) == (2.0, False)


def test_of_the_orders_of_an_earlier_program_only_those_that_it_sent_are_written_off():
    orders = [query(0, [2.0, 1.0]), query(1, [5.0, 4.0])]
    vehicle = again(told(mission=small_mission(battery=100.0), battery=Battery(accuracy=1.0)))
    vehicle.resume(orders, [Telemetry(0, HOME, 60.0, 5.0, pack=60.0, measured_s=5.0)])

    assert levels(vehicle, 80.0, 80.0) == pytest.approx(60.0 - np.hypot(2.0, 1.0) - 1.0)


def test_an_order_that_no_earlier_program_sent_samples_once_at_the_place_of_the_one_before():
    orders, events = [query(0, [2.0, 1.0]), query(1, [2.0, 1.0])], []
    first = remote(watch=WATCH, link=Streaming)
    first.link.robot.tick = lambda: [Heartbeat(), PositionReport(np.array([2.0, 1.0]))]
    with again(first) as vehicle:
        vehicle.resume(orders, [])
        assert [vehicle.may_repeat(order.id) for order in orders] == [True, False]
        for order in orders:
            vehicle.send(order)
        for k in range(40):
            vehicle.link.wires[-1].hear(Reading(float(k)))
            events += vehicle.events(0.05)
    costs = {event.order: event.cost for event in events if isinstance(event, Observation)}

    assert costs["run/1"] == pytest.approx(1.0)


# -- what lost orders may have taken -------------------------------------------------------------------------


def test_what_was_lost_with_the_battery_before_is_not_written_off_from_the_new_one_after_a_resume():
    orders = [query(0, [5.0, 4.0]), Recharge(0, "run/1", 2, HOME)]
    events = [Lost("run/0", "silence"), replace(orders[1].observed(), time_s=9.0)]
    vehicle = again(told(mission=small_mission(battery=100.0), battery=Battery(full=200.0, accuracy=1.0)))
    vehicle.resume(orders, events)

    assert levels(vehicle, 150.0) == 100.0


def test_a_lost_order_whose_parts_arrive_late_is_charged_once():
    vehicle = told(mission=small_mission(battery=100.0), battery=Battery(accuracy=1.0))
    with vehicle:
        seen_at(vehicle, [0, 0])
        vehicle.send(query(0, [5.0, 4.0]))
        levels(vehicle, 60.0)
        vehicle.link.wires[-1].hear(Unreachable("the radio is off"))
        vehicle.events(0.1)
        written_off = levels(vehicle, 80.0, 80.0)
        for part, (place, cost) in enumerate([([2, 1.6], 2.57), ([5, 4], 4.85)]):
            seen_at(vehicle, place)
            answered(vehicle, 0, place, cost, part=part, last=part == 1)
        left = levels(vehicle, 99.0, 99.0)

    assert 50.0 < written_off < 60.0 - 7.4
    assert left == pytest.approx(written_off, abs=0.05)


@contextmanager
def at_its_site_after_a_restart():
    """Yield a vehicle whose robot went on, and told nothing, while no planner heard it."""
    with told() as before:
        before.send(query(0, [3.0, 4.0]))
        before.events(0.1)
    with again(before) as vehicle:
        vehicle.resume([query(0, [3.0, 4.0])], [])
        seen_at(vehicle, [3.0, 4.0])
        yield vehicle


def test_parts_that_were_told_late_are_priced_from_where_the_one_before_ended():
    with at_its_site_after_a_restart() as vehicle:
        first = answered(vehicle, 0, [1.5, 2.0], np.nan, part=0, last=False)
        rest = answered(vehicle, 0, [3.0, 4.0], np.nan, part=1)
    assert first.position.tolist() == [3.0, 4.0]
    assert (first.cost, rest.cost) == (2.5, 2.5 + 1.0)


def test_parts_that_are_told_out_of_order_after_a_restart_are_charged_once():
    with at_its_site_after_a_restart() as vehicle:
        parts = [
            answered(vehicle, 0, [1.8, 2.4], 1.0, part=1, last=False),
            answered(vehicle, 0, [1.2, 1.6], 2.0, part=0, last=False),
            answered(vehicle, 0, [3.0, 4.0], 3.0, part=2),
        ]
    assert sum(part.cost for part in parts) == pytest.approx(5.0 + 1.0, abs=1.1)
    assert vehicle._filter.prices.position.tolist() == [3.0, 4.0]
