"""Readings on the way from a robot, in parts: once each, on disk before the next order, as in simulation."""

import time
from dataclasses import replace

import numpy as np
import pytest
from direct_link import Near

import fieldbo
from fieldbo.domain.sensor import Along
from fieldbo.errors import InputError
from fieldbo.messages import Observation
from fieldbo.runs.record.record import Record
from fieldbo.runs.runner import run
from fieldbo.testing import small_mission, small_world
from fieldbo.vehicles.checks import check_readings_on_the_way
from fieldbo.vehicles.file import LoadedVehicleFile
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import VehicleFile, Watch
from fieldbo.vehicles.simulators import Robot
from fieldbo.vehicles.simulators.faults import Fault

SETTINGS = VehicleFile(format=1, link={"kind": "direct"}, watch=Watch(silence_s=5.0))


def logged_mission(battery=20.0):
    world = small_world()
    world = replace(world, sensor=replace(world.sensor, along=Along(every_m=0.1)))
    return small_mission(world=world, battery=battery)


def carried_out(mission, folder, faults=(), part_readings=10):
    settings = {"faults": [*faults], "part_readings": part_readings}
    robot = Robot(
        mission.world, seed=mission.seed, speedup=20.0, battery=mission.vehicles[0].battery, **settings
    )
    with (
        Record.create(folder / "run.sqlite", "run", {}) as record,
        Remote(mission, 0, Near(robot), SETTINGS, "session") as vehicle,
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
    result = carried_out(logged_mission(), tmp_path)
    with Record(tmp_path / "run.sqlite") as record:
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
    robot = Robot(mission.world, seed=0, speedup=1.0, part_readings=10)
    with Remote(mission, 0, Near(robot), SETTINGS, "session") as vehicle:
        order = replace(fieldbo.Agent(mission).ask(), site=np.array([5.0, 4.0]), expected_cost=7.4)
        vehicle.send(order)
        time.sleep(2.0)
        vehicle.cancel(order.id)
        events, until = [], time.monotonic() + 5.0
        while not any(isinstance(e, Observation) and e.last for e in events) and time.monotonic() < until:
            events += vehicle.events(0.1)
    parts = [e for e in events if isinstance(e, Observation)]
    assert [part.part for part in parts] == list(range(len(parts)))
    assert parts[-1].last
    assert not parts[-1].complete
    read = np.concatenate([part.sites for part in parts])
    assert 10 <= len(read) < 60
    assert np.linalg.norm(read, axis=1) == pytest.approx(0.1 * np.arange(1, len(read) + 1))


def test_a_robot_that_streams_is_rejected_because_it_cannot_deliver_them():
    mission = logged_mission()
    file = LoadedVehicleFile.read("ros2-topics")
    with pytest.raises(InputError, match=r"every 0.1 m on the way(.|\n)*ros2-topics(.|\n)*delete along"):
        check_readings_on_the_way(file, mission)
    check_readings_on_the_way(LoadedVehicleFile.read("mqtt"), mission)
