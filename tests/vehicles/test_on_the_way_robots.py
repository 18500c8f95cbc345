"""Readings on the way from a robot, in parts: once each, on disk before the next order, as in simulation."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from direct_link import Guided, Near, Streaming

import fieldbo
from fieldbo.domain.sensor import Along
from fieldbo.errors import InputError
from fieldbo.messages import Lost, Observation, Telemetry
from fieldbo.record.record import Record
from fieldbo.runs.runner import run
from fieldbo.testing import SteppedClock, small_mission, small_world
from fieldbo.vehicles.file import LoadedVehicleFile
from fieldbo.vehicles.load import check_readings_on_the_way
from fieldbo.vehicles.mqtt.protocol import Codec
from fieldbo.vehicles.remote.link import GoalResult
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival, Reports, VehicleFile, Watch
from fieldbo.vehicles.simulators import Robot
from fieldbo.vehicles.simulators.mqtt import result_body
from fieldbo.vehicles.simulators.trips import Fault

SETTINGS = VehicleFile(format=1, link={"kind": "direct"}, watch=Watch(silence_s=5.0))


def logged_mission(battery=20.0, along=Along(every_m=0.1)):  # noqa: B008 - frozen
    world = small_world()
    world = replace(world, sensor=replace(world.sensor, along=along))
    return small_mission(world=world, battery=battery)


def robot_of(mission, **settings):
    return Robot(mission.world, seed=mission.seed, clock=SteppedClock(), **settings)


def connected(mission, link, settings=SETTINGS):
    """Return a vehicle over a link, on the clock of its robot."""
    return Remote(mission, 0, link, settings, "session", link.robot.clock)


def until(vehicle, done, seconds):
    """Collect events until one of them satisfies a condition, or for some seconds."""
    events, end_s = [], vehicle.clock.now_s() + seconds
    while not any(map(done, events)) and vehicle.clock.now_s() < end_s:
        events += vehicle.events(0.1)
    return events


def is_last(event):
    return isinstance(event, Observation) and event.last


def carried_out(mission, folder, faults=(), part_readings=10):
    settings = {"faults": [*faults], "part_readings": part_readings}
    robot = robot_of(mission, speedup=20.0, battery=mission.vehicles[0].battery, **settings)
    with (
        Record.create(folder / "run.sqlite", "run", {}) as record,
        connected(mission, Near(robot)) as vehicle,
    ):
        return run(mission, [vehicle], record=record)


@pytest.mark.parametrize("faults", [(), ("twice",), ("late",)])
def test_parts_bring_each_reading_once_and_as_in_simulation(tmp_path, faults):
    mission = logged_mission()
    kinds = [Fault(kind, goal, 0.2) for kind in faults for goal in range(20)]
    result, simulated = carried_out(mission, tmp_path, kinds), run(mission)
    parts = [o for o in result.observations if not o.last]
    assert len(parts) > 5
    assert all(len(o.values) >= 10 for o in parts)
    assert len(result.values) == len(simulated.values)
    np.testing.assert_allclose(result.sites, simulated.sites, atol=1e-9)
    np.testing.assert_allclose(result.values, simulated.values, atol=1e-9)
    assert result.cost == pytest.approx(simulated.cost)
    assert result.steps == simulated.steps


def test_a_robot_may_also_deliver_all_readings_at_once(tmp_path):
    result = carried_out(logged_mission(), tmp_path, part_readings=None)
    assert all(o.last for o in result.observations)
    assert result.on_the_way.sum() > 50


def test_every_part_is_on_disk_before_the_next_order_leaves(tmp_path):
    check_on_disk(tmp_path, carried_out(logged_mission(), tmp_path))


def check_on_disk(folder, result):
    """Check that all parts of an order are recorded before the next one."""
    with Record(folder / "run.sqlite") as record:
        rows = [row for row in record.rows() if row.kind in ("query", "go-home", "observation")]
    open_order, readings = None, 0
    for row in rows:
        if row.kind != "observation":
            assert open_order is None
            open_order = row.message.id
            continue
        assert row.message.order == open_order
        readings += len(row.message.values)
        open_order = None if row.message.last else open_order
    assert readings == len(result.values)


def test_a_cancelled_order_still_reports_what_was_read():
    mission = logged_mission()
    robot = robot_of(mission, part_readings=10)
    with connected(mission, Near(robot)) as vehicle:
        order = replace(fieldbo.Agent(mission).ask(), site=np.array([5.0, 4.0]), expected_cost=7.4)
        vehicle.send(order)
        vehicle.clock.sleep(2.0)
        vehicle.cancel(order.id)
        events = until(vehicle, is_last, 5.0)
    parts = [e for e in events if isinstance(e, Observation)]
    assert [part.part for part in parts] == list(range(len(parts)))
    assert parts[-1].last
    assert not parts[-1].complete
    read = np.concatenate([part.sites for part in parts])
    assert 10 <= len(read) < 60
    assert np.linalg.norm(read, axis=1) == pytest.approx(0.1 * np.arange(1, len(read) + 1))


# -- robots that stream ----------------------------------------------------------------------------------


def streamed(mission, folder, speedup=2.0, link=Streaming):
    """The result of a mission of a robot that streams."""
    reports, arrival = Reports(accuracy=0.1), Arrival(within=0.1, dwell_s=0.0)
    settings = SETTINGS.model_copy(update={"arrival": arrival, "reports": reports})
    robot = robot_of(mission, speedup=speedup)
    with (
        Record.create(folder / "run.sqlite", "run", {}) as record,
        connected(mission, link(robot), settings) as vehicle,
    ):
        return run(mission, [vehicle], record=record)


@pytest.mark.parametrize("link", [Streaming, Guided])
def test_readings_of_a_robot_that_streams_lie_where_they_were_taken(tmp_path, link):
    mission = logged_mission()
    result = streamed(mission, tmp_path, link=link)
    simulated = run(mission)
    assert result.steps == simulated.steps
    on_the_way = result.on_the_way
    assert 0.4 * simulated.on_the_way.sum() < on_the_way.sum() <= simulated.on_the_way.sum()
    gaps = np.abs(result.values - mission.world.truth(result.sites))
    assert np.median(gaps[on_the_way]) < 0.1  # noise of 0.05, and up to 0.1 m between two reports
    assert result.cost == pytest.approx(simulated.cost, rel=0.05)
    assert result.path[-1] == pytest.approx([0.0, 0.0], abs=0.1)


class Stammering(Streaming):
    """A link that delivers each message twice."""

    def open(self, mission, ground, hear):
        def twice(report):
            hear(report)
            hear(report)

        return super().open(mission, ground, twice)


class Lossy(Streaming):
    """A link that loses a third of all messages."""

    def open(self, mission, ground, hear):
        rng = np.random.default_rng(0)
        return super().open(mission, ground, lambda report: hear(report) if rng.random() > 0.33 else None)


@pytest.mark.parametrize("link", [Stammering, Lossy])
def test_readings_that_arrive_twice_count_once_and_lost_ones_leave_gaps(tmp_path, link):
    mission = logged_mission()
    result = streamed(mission, tmp_path, link=link)
    assert result.path[-1] == pytest.approx([0.0, 0.0], abs=0.1)
    assert 0.2 * run(mission).on_the_way.sum() < result.on_the_way.sum() <= run(mission).on_the_way.sum()
    for event in result.observations:
        moves = np.linalg.norm(np.diff(event.sites[: -1 if event.last else None], axis=0), axis=1)
        assert (moves > 0.04).all()


def under_way(mission, robot, seconds):
    """A vehicle on the way to the far corner, after some seconds; and its order."""
    vehicle = connected(mission, Streaming(robot))
    vehicle.connect()
    order = replace(fieldbo.Agent(mission).ask(), site=np.array([5.0, 4.0]), expected_cost=7.4)
    vehicle.send(order)
    events = until(vehicle, lambda event: False, seconds)
    return vehicle, order, [event for event in events if isinstance(event, Observation)]


def test_what_was_read_before_the_robot_fell_silent_is_delivered_before_its_order_is_lost():
    mission = logged_mission()
    settings = SETTINGS.model_copy(update={"watch": Watch(silence_s=1.0)})
    link = Streaming(robot_of(mission))
    with connected(mission, link, settings) as vehicle:
        order = replace(fieldbo.Agent(mission).ask(), site=np.array([5.0, 4.0]), expected_cost=7.4)
        vehicle.send(order)
        vehicle.clock.sleep(2.0)
        link.wires[-1].cut = True
        events = until(vehicle, lambda event: isinstance(event, Lost), 6.0)
    kinds = [type(e) for e in events if not isinstance(e, Telemetry)]
    assert kinds == [Observation, Lost]
    part = next(e for e in events if isinstance(e, Observation))
    assert not part.last
    assert len(part.values) > 5


def test_an_order_that_is_sent_again_by_a_new_program_continues_with_the_next_part(monkeypatch):
    monkeypatch.setattr("fieldbo.vehicles.remote.arrival._PART", 8)
    mission = logged_mission()
    robot = robot_of(mission)
    vehicle, order, before = under_way(mission, robot, 3.0)
    vehicle.close()
    assert [event.part for event in before] == list(range(len(before)))
    assert len(before) >= 2
    with connected(mission, Streaming(robot)) as again:
        again.resume([order], before)
        assert again.outcome(order.id) is None
        again.send(order)
        events = until(again, is_last, 12.0)
    after = [event for event in events if isinstance(event, Observation)]
    assert [event.part for event in after] == list(range(len(before), len(before) + len(after)))
    assert after[-1].last
    agent = fieldbo.Agent(mission)
    agent.replay(order, {}, None)
    for event in [*before, *after]:
        agent.tell(event)
    assert agent.steps == 1


def test_every_part_of_a_robot_that_streams_is_on_disk_before_the_next_order_leaves(tmp_path, monkeypatch):
    monkeypatch.setattr("fieldbo.vehicles.remote.arrival._PART", 10)
    result = streamed(logged_mission(), tmp_path, speedup=6.0)
    check_on_disk(tmp_path, result)
    assert any(not event.last for event in result.observations)


# -- what the link carries -------------------------------------------------------------------------------


def vehicle_file(folder, link):
    file = folder / "robot.toml"
    file.write_text(f"format = 1\n[link]\n{link}\n")
    return LoadedVehicleFile.read(str(file))


@pytest.mark.parametrize(
    ("along", "link", "message"),
    [
        (
            Along(every_m=0.1),
            'kind = "mqtt"\nbytes_per_s = 250',
            r"every 0.1 m on the way at 1 m/s, 10 per second, but a link of kind mqtt carries 2.05 per "
            r"second: 122 bytes each, and 250 bytes per second(.|\n)*"
            r"read every 0.49 m or less often(.|\n)*raise bytes_per_s in \[link\]",
        ),
        (
            Along(every_s=0.01),
            'kind = "mavlink"\nconnection = "/dev/ttyUSB0"\nbaud = 9600',
            r"every 0.01 s on the way, 100 per second, but a link of kind mavlink carries 22.4 per second: "
            r"30 bytes each(.|\n)*read every 0.045 s or less often(.|\n)*raise baud in",
        ),
        (
            Along(every_m=5.0),
            'kind = "mavlink"\nbytes_per_s = 100',
            r"carries 0 per second(.|\n)*delete along",
        ),
    ],
)
def test_a_rate_that_the_link_cannot_carry_is_rejected_with_both_rates(tmp_path, along, link, message):
    with pytest.raises(InputError, match=message):
        check_readings_on_the_way(vehicle_file(tmp_path, link), logged_mission(along=along))


@pytest.mark.parametrize(
    "link", ['kind = "mqtt"\nbytes_per_s = 2000', 'kind = "mqtt"', 'kind = "ros2-topics"']
)
def test_a_rate_that_the_link_carries_is_accepted(tmp_path, link):
    check_readings_on_the_way(vehicle_file(tmp_path, link), logged_mission())


def test_the_fix_that_is_proposed_for_a_rate_that_is_too_high_is_accepted(tmp_path):
    file = vehicle_file(tmp_path, 'kind = "mqtt"\nbytes_per_s = 250')
    with pytest.raises(InputError) as error:
        check_readings_on_the_way(file, logged_mission())
    spacing = float(re.search(r"read every ([\d.]+) m", str(error.value))[1])
    check_readings_on_the_way(file, logged_mission(along=Along(every_m=spacing)))


def test_a_reading_over_mqtt_takes_as_many_bytes_as_is_assumed():
    axes = logged_mission().world.domain.axes
    codec, rng = Codec(axes), np.random.default_rng(0)
    sites = rng.uniform(size=(100, 2))
    result = GoalResult("run/0", sites[0], sites, rng.uniform(size=100), rng.uniform(size=100))
    body = result_body(codec, result)
    for reading in body["readings"]:
        del reading["channels"]
    size = len(json.dumps(body["readings"])) / 100
    assert codec.reading_bytes == pytest.approx(size, rel=0.05)
