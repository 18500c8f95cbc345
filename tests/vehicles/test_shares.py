"""Battery levels on a scale of 0 to 1 or 0 to 100, whichever the robot uses."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from remote_vehicles import again, remote

from fieldbo.errors import VehicleError
from fieldbo.messages import Telemetry
from fieldbo.testing import small_mission
from fieldbo.vehicles.mqtt.client import MqttClient
from fieldbo.vehicles.mqtt.link import Mqtt
from fieldbo.vehicles.remote.gauge import ShareReader
from fieldbo.vehicles.remote.link import BatteryReport, Doubt, Heartbeat
from fieldbo.vehicles.remote.settings import Battery, Watch


def reader(scale=None):
    """Return a reader, and the list of its doubts."""
    doubts = []
    return ShareReader("gauge", scale, doubts.append), doubts


def test_shares_are_shares_until_a_level_is_above_one():
    read, doubts = reader()
    assert [read.read(level) for level in (1.0, 0.8, 0.0)] == [1.0, 0.8, 0.0]
    assert not doubts


def test_once_a_level_was_above_one_all_are_percent_and_that_is_said_once():
    read, doubts = reader()
    assert [read.read(level) for level in (62.0, 2.5, 1.0, 0.7)] == pytest.approx([0.62, 0.025, 0.01, 0.007])
    (doubt,) = doubts
    assert "a level of 62, so its scale is taken to be 0 to 100: 62 %" in doubt.why
    assert "battery_scale = 100" in doubt.fix


def test_a_gauge_that_was_impossible_is_not_believed_again():
    for impossible in (160.0, -3.0):
        read, doubts = reader()
        assert read.read(0.9) == 0.9
        assert all(math.isnan(read.read(level)) for level in (impossible, 0.7, 50.0, impossible))
        (doubt,) = doubts
        assert f"a level of {impossible:g}, which is impossible on a scale of 0 to 1 or 0 to 100" in doubt.why


def test_a_stated_scale_holds():
    read, doubts = reader(100)
    assert [read.read(level) for level in (0.7, 100.0)] == pytest.approx([0.007, 1.0])
    assert not doubts
    read, doubts = reader(1)
    assert read.read(0.7) == 0.7
    assert math.isnan(read.read(70.0))
    assert "impossible on a scale of 0 to 1:" in doubts[0].why


def test_a_little_more_than_full_is_full():
    assert [reader(1)[0].read(1.02), reader(100)[0].read(101.0)] == [1.0, 1.0]


@pytest.mark.parametrize("unknown", [math.nan, None, -1, -0.01])
def test_unknown_levels_say_nothing(unknown):
    read, doubts = reader()
    assert math.isnan(read.read(unknown))
    assert read.read(0.5) == 0.5
    assert not doubts


@pytest.mark.parametrize("odd", [math.inf, "70", True])
def test_what_is_no_number_stays_one(odd):
    assert reader()[0].read(odd) == math.inf


@given(st.lists(st.floats(0.0, 100.0), min_size=1), st.floats(1.001, 100.0))
def test_of_levels_in_percent_none_is_read_as_more_than_it_is_once_one_was_above_one(levels, first):
    read, _ = reader()
    assert read.read(first) == pytest.approx(first / 100)
    assert [read.read(level) for level in levels] == pytest.approx([level / 100 for level in levels])


def test_after_a_resume_a_level_below_one_percent_does_not_fill_the_battery():
    mission = small_mission(battery=40.0)
    vehicle = remote(mission=mission, battery=Battery(full=40.0, accuracy=0.1))
    before, after = reader()[0], reader()[0]
    with vehicle:
        vehicle.link.wires[0].hear(BatteryReport(before.read(1.2)))
        vehicle.clock.sleep(1.0)
        told = [event for event in vehicle.events(0.1) if isinstance(event, Telemetry)]
        vehicle.catch_up(vehicle._filter.now_s)
        told += [event for event in vehicle.events(0.1) if isinstance(event, Telemetry)]
    assert told[-1].remaining == pytest.approx(0.012 * 40)
    with again(vehicle) as resumed:
        resumed.resume([], told)
        for _ in range(3):  # a confirmed rise is where counting begins anew
            resumed.link.wires[-1].hear(BatteryReport(after.read(0.9)))
        resumed.events(0.05)
        resumed.catch_up(resumed._filter.now_s)
        left = [event.remaining for event in resumed.events(0.05) if isinstance(event, Telemetry)]
    assert left
    assert all(one is None or one <= 0.012 * 40 + 0.1 for one in left)


def test_over_mqtt_a_battery_share_in_percent_is_recognised(monkeypatch):
    monkeypatch.setattr(MqttClient, "_new_client", lambda client: _Paho())
    reports = []
    connection = Mqtt().open(small_mission(), None, reports.append)
    for share in (70, 0.7):
        connection._receive("telemetry", json.dumps({"battery_share": share}).encode(), False)
    connection.close()
    assert [one.share for one in reports if isinstance(one, BatteryReport)] == [0.7, 0.7 / 100]
    assert ["scale is taken to be 0 to 100" in one.why for one in reports if isinstance(one, Doubt)] == [True]


class _Paho:
    """Stands in for paho's client, which connects nowhere."""

    def __getattr__(self, name):
        return lambda *arguments, **more: None


def test_a_position_that_came_in_another_form_is_named_with_the_fix():
    vehicle = remote(watch=Watch(silence_s=0.3, connect_s=0.5, when_planner_silent="home"))
    vehicle.link.robot.tick = lambda: [
        Heartbeat(),
        Doubt("position", "poses in 'odom' are ignored", "use map"),
    ]
    with pytest.raises(VehicleError) as error:
        vehicle.connect()
    assert "has not reported its position within 0.5 s: poses in 'odom' are ignored" in str(error.value)
    assert "fix:      use map" in str(error.value)


def test_a_doubt_of_the_link_is_said_once_in_a_run():
    with remote() as vehicle:
        for _ in range(3):
            vehicle.link.wires[0].hear(Doubt("position", "poses in 'odom' are ignored", "use map"))
        vehicle.events(0.05)
        vehicle.catch_up(vehicle._filter.now_s)
        doubts = [doubt for event in vehicle.events(0.05) for doubt in event.doubts]
        vehicle.catch_up(vehicle._filter.now_s)
        doubts += [doubt for event in vehicle.events(0.05) for doubt in event.doubts]
    assert doubts == ["poses in 'odom' are ignored; use map"]
