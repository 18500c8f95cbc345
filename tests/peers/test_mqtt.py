"""A robot over MQTT, with a real mosquitto between it and fieldbo, each in its own process."""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
from collections import Counter
from contextlib import contextmanager

import numpy as np
import paho.mqtt.client as paho
import pytest
from peers.faults import FaultTable, Peer
from peers.old_broker import old_broker
from peers.pond import BATTERY_S, SPEEDUP, logged_pond, pond, pond_mission
from peers.processes import SLOW_S, Broker, fieldbo, free_port, until
from working_folder import write

from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Frame, Origin
from fieldbo.errors import InputError, VehicleError
from fieldbo.messages import Lost, Observation, Query, Rejected
from fieldbo.mission.load import load_mission
from fieldbo.record.record import Record
from fieldbo.runs.runner import run as simulate
from fieldbo.testing import LinkContract, VehicleContract
from fieldbo.vehicles.file import LoadedVehicleFile
from fieldbo.vehicles.load import load_vehicle, recorded_settings, vehicle_of
from fieldbo.vehicles.mqtt.client import MqttClient
from fieldbo.vehicles.mqtt.link import Mqtt
from fieldbo.vehicles.mqtt.protocol import Codec, json_object
from fieldbo.vehicles.remote.contact import GONE_S
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    Goal,
    GoalRejected,
    GoalResult,
    Heartbeat,
    PositionReport,
    Reconnected,
    Unreachable,
)
from fieldbo.vehicles.remote.settings import Watch
from fieldbo.vehicles.simulators.mqtt import goal_of

LAKE = [Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18, "down")]
ON_THE_GROUND = Frame(Origin(47.31, 8.58, 406.0), along="along", depth="depth").over(LAKE)

NO_OBJECTS = [
    b"",
    b"\xff",
    b"[1]",
    b"3",
    b'{"id": ',
    b"[" * 100_000,
    b'{"id": "\\ud800"}',
    b'{"id": ' + b"9" * 5000,
]

ODD = {
    "status": [{}, {"online": 3}, {"online": "yes"}],
    "result": [
        {},
        {"id": 3},
        {"id": "m/1" * 1000},
        *(
            {"id": "m/1", **more}
            for more in (
                {"readings": 3},
                {"readings": [3]},
                {"readings": [{"channels": 5}]},
                {"readings": [{"channels": "turbid"}]},
                {"readings": [{"channels": ["turbid"]}]},
                {"part": -1},
                {"part": 0.5},
                {"part": "0"},
                {"part": True},
                {"part": 10**6 + 1},
                {"part": 2**70},
                {"part": 10**400},
                {"last": 0},
                {"complete": "no"},
            )
        ),
    ],
    "refused": [{}, {"id": None}, {"id": ["m/1"]}],
}
"""Messages that nobody can understand, by topic."""

ODD_GOALS = [
    {},
    {"id": 3},
    {"id": "m/1"},
    {"id": "m/1", "site": 3},
    {"id": "m/1", "site": [10, 10]},
    *(
        {"id": "m/1", "site": {"x": 10, "y": 10}, **more}
        for more in ({"level": 0.5}, {"level": -1}, {"level": 2**70}, {"level": "high"}, {"home": "yes"})
    ),
    {"id": f"m/{'9' * 5000}#a", "site": {"x": 10, "y": 10}},
]


# -- the messages ----------------------------------------------------------------------------------------


def test_a_goal_names_every_axis_with_its_unit_and_null_for_free_variables():
    cell = Codec([Axis("sugar", "g/l", 0, 9), Axis("pH", "", 0, 9)])

    body = json.loads(json.dumps(cell.goal(Goal("m/3#a", np.array([2.5, np.nan])))))

    assert body["site"] == {"sugar": 2.5, "pH": None}
    assert body["units"] == {"sugar": "g/l", "pH": ""}
    assert (body["id"], body["home"], body["seconds"]) == ("m/3#a", False, None)
    assert "place" not in body


def test_with_a_frame_goals_have_a_place_in_degrees_and_results_may_have_one():
    codec = Codec(LAKE, ON_THE_GROUND)
    place = codec.goal(Goal("m/3#a", np.array([350.0, 4.5])))["place"]

    (done,) = codec.reports("result", {"id": "m/3#a", "position": place})

    assert place["altitude"] == 401.5
    assert done.position == pytest.approx([350.0, 4.5], abs=1e-6)


def test_optional_keys_that_are_missing_are_nan():
    (done,) = Codec(LAKE).reports("result", {"id": "m/3#a", "readings": [{"value": None}, {"value": "high"}]})

    assert isinstance(done, GoalResult)
    assert np.isnan([*done.position, *done.values, *done.seconds, done.cost, done.duration_s]).all()
    assert (done.part, done.last, done.complete, done.channels) == (0, True, True, None)
    assert done.sites.shape == (2, 2)


def test_a_result_has_the_site_of_each_value_and_its_channels():
    here = {"along": 350.5, "depth": 4.5}
    reading = {"site": here, "value": 1.5, "seconds": 3, "channels": {"temperature": 14}}
    body = {"id": "m/3#a", "position": here, "readings": [{"value": 1}, reading], "part": 1, "last": False}

    (done,) = Codec(LAKE).reports("result", {**body, "complete": False, "cost": 7, "duration_s": 8.0})

    assert done.sites[1].tolist() == [350.5, 4.5]
    assert done.values.tolist() == [1.0, 1.5]
    assert done.channels is not None
    assert np.array_equal(done.channels["temperature"], [np.nan, 14.0], equal_nan=True)
    assert (done.part, done.last, done.complete, done.cost, done.duration_s) == (1, False, False, 7.0, 8.0)


def test_telemetry_may_be_empty_or_have_position_and_battery():
    codec = Codec(LAKE)

    assert [type(one) for one in codec.reports("telemetry", {})] == [Heartbeat]
    alive, at, charge = codec.reports("telemetry", {"position": {"along": 3}, "battery_share": 0.5})

    assert isinstance(alive, Heartbeat)
    assert isinstance(at, PositionReport)
    assert np.array_equal(at.position, [3.0, np.nan], equal_nan=True)
    assert charge == BatteryReport(share=0.5, amount=None)


def test_status_is_a_heartbeat_or_unreachable():
    codec = Codec(LAKE)

    assert codec.reports("status", {"online": True}) == [Heartbeat()]
    assert isinstance(codec.reports("status", {"online": False})[0], Unreachable)
    assert codec.reports("refused", {"id": "m/3#a", "reason": "reeds"}) == [GoalRejected("m/3#a", "reeds")]


@pytest.mark.parametrize("payload", NO_OBJECTS, ids=lambda payload: repr(payload[:20]))
def test_a_payload_that_is_not_a_json_object_is_an_error(payload):
    with pytest.raises(InputError, match="on topic result"):
        json_object("result", payload)


@pytest.mark.parametrize(("name", "body"), [(name, body) for name, bodies in ODD.items() for body in bodies])
def test_a_key_with_an_invalid_value_is_an_error(name, body):
    with pytest.raises(InputError, match=" = "):
        Codec(LAKE).reports(name, json_object(name, json.dumps(body).encode()))


@pytest.mark.parametrize("body", ODD_GOALS, ids=range(len(ODD_GOALS)))
def test_a_goal_that_cannot_be_understood_is_an_error(body):
    with pytest.raises(InputError):
        goal_of(Codec(LAKE), json_object("goal", json.dumps(body).encode()))


@pytest.mark.parametrize("odd", [10**400, -(10**400), 1e999, math.nan, "3", True, [3], {"x": 3}, None])
def test_anything_but_a_finite_number_is_read_as_nan_and_as_an_infinite_cost(odd):
    reading = {
        "value": odd,
        "seconds": odd,
        "channels": {"turbid": odd},
        "site": {"along": odd, "depth": odd},
    }
    body = {"id": "m/1", "position": {"along": odd}, "cost": odd, "duration_s": odd, "readings": [reading]}

    (done,) = Codec(LAKE).reports("result", body)
    _, at, *_ = Codec(LAKE).reports("telemetry", {"position": {"depth": odd}, "battery": odd})

    assert done.channels is not None
    told = [done.position, done.sites[0], done.values, done.seconds, done.channels["turbid"], at.position]
    assert np.isnan([done.duration_s, *np.concatenate(told)]).all()
    assert math.isnan(done.cost) if odd is None else done.cost == math.inf


@pytest.mark.parametrize(("latitude", "longitude"), [(1e9, 8), (47, 1e300), (-90.1, 8), (47, None)])
def test_a_place_off_the_globe_is_nan(latitude, longitude):
    place = {"latitude": latitude, "longitude": longitude, "altitude": 0}

    _, at = Codec(LAKE, ON_THE_GROUND).reports("telemetry", {"position": place})

    assert np.isnan(at.position).all()


def test_whole_numbers_may_have_a_decimal_point_and_null_means_the_default():
    body = {"id": "m/1", "part": 2.0, "last": None, "readings": None}

    (done,) = Codec(LAKE).reports("result", body)

    assert (done.part, done.last, len(done.values)) == (2, True, 0)


@pytest.mark.parametrize("topic", ["", "/boat", "boat/", "a//b", "boat/#", "a/+/b", "$SYS/boat"])
def test_an_invalid_topic_is_an_error(topic):
    with pytest.raises(InputError, match="topic = "):
        Mqtt(topic=topic)


def test_the_password_comes_from_the_environment_and_is_not_kept(monkeypatch):
    monkeypatch.delenv("BOAT_PASSWORD", raising=False)
    monkeypatch.setenv("BOAT_USER", "ada")
    link = Mqtt(user_from="BOAT_USER", password_from="BOAT_PASSWORD")

    with pytest.raises(InputError, match="BOAT_PASSWORD is not set"):
        link.credentials()
    monkeypatch.setenv("BOAT_PASSWORD", "secret")
    assert link.credentials() == ("ada", "secret")
    assert "secret" not in repr(link)


# -- a robot in another process --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("broker")) as one:
        yield one


@pytest.fixture
def boat(tmp_path, broker):
    """Write a vehicle file for a robot of this test alone."""
    return vehicle_file(tmp_path, broker.port)


def vehicle_file(folder, port, *more):
    link = [f'kind = "mqtt"\nport = {port}\ntopic = "tests/{folder.name}"', *more]
    write(folder / "boat.toml", "\n".join(["format = 1\n[link]", *link, ""]))
    return folder / "boat.toml"


@contextmanager
def robot(file, world, *more, **settings):
    with fieldbo("robot", file, "--world", world, *more, **settings) as program:
        program.wait_for("ready")
        yield program


@contextmanager
def heard(file, mission):
    """Open the link alone; yield the connection and the list of its reports."""
    signals = []
    connection = LoadedVehicleFile.read(str(file)).link.open(mission, None, signals.append)
    try:
        yield connection, signals
    finally:
        connection.close()


def until_done(connection, signals, *goals):
    """Wait for the results of goals; send the last one again when the link asks for it, as `Remote` does."""
    answered = 0

    def results():
        nonlocal answered
        back = sum(isinstance(one, Reconnected) for one in signals)
        if back > answered:
            answered = back
            connection.go(goals[-1])
        found = {one.goal: one for one in signals if isinstance(one, GoalResult)}
        return found if found.keys() == {goal.id for goal in goals} else None

    return until(results)


@contextmanager
def anyone(file):
    """Join as a third party; yield a function that publishes below the robot's topic."""
    link = LoadedVehicleFile.read(str(file)).link
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect("localhost", link.port)
    client.loop_start()

    def publish(name, body, **how):
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        client.publish(f"{link.topic}/{name}", payload, qos=1, **how).wait_for_publish(5.0)

    try:
        yield publish
    finally:
        client.disconnect()
        client.loop_stop()


def pond_of(folder):
    """Write the pond; return its mission and its world's file."""
    return pond_mission(folder), folder / "pond" / "world.toml"


def test_a_weather_station_on_the_same_broker_is_heard_and_what_it_said_before_is_not(tmp_path, broker):
    sources = '{ wind = "tests/weather/wind", gusts = "tests/weather/station#gust_speed" }'
    boat = vehicle_file(tmp_path, broker.port, f"channels = {sources}")
    with anyone(boat) as publish:
        station = paho.Client(paho.CallbackAPIVersion.VERSION2)
        station.connect("localhost", broker.port)
        station.loop_start()
        station.publish("tests/weather/wind", b"99", qos=1, retain=True).wait_for_publish(5.0)
        with heard(boat, pond_mission(tmp_path)) as (connection, signals):
            until(lambda: connection._client.ready)
            time.sleep(0.3)  # what is retained would be here by now
            station.publish("tests/weather/wind", b"7.5", qos=1).wait_for_publish(5.0)
            station.publish("tests/weather/station", b'{"gust_speed": 9.5}', qos=1).wait_for_publish(5.0)
            publish("telemetry", {"channels": {"voltage": 12.5}})
            until(lambda: len(signals) >= 4)
        station.publish("tests/weather/wind", b"", qos=1, retain=True).wait_for_publish(5.0)
        station.disconnect()
        station.loop_stop()
    assert [one for one in signals if isinstance(one, ChannelReport)] == [
        ChannelReport("wind", 7.5),
        ChannelReport("gusts", 9.5),
        ChannelReport("voltage", 12.5),
    ]


class TestContract(VehicleContract):
    """Each test has its own robot, in another process."""

    patience_s = SLOW_S

    @pytest.fixture(autouse=True)
    def _robot(self, tmp_path, boat):
        self.file = boat
        self.pond, world = pond_of(tmp_path)
        with robot(boat, world, "--speedup", SPEEDUP):
            yield

    def mission(self):
        return self.pond

    def vehicle(self, mission):
        return load_vehicle(str(self.file), mission)


class TestLinkContract(LinkContract):
    """Each test has its own robot, in another process."""

    patience_s = SLOW_S

    @pytest.fixture(autouse=True)
    def _robot(self, tmp_path, boat):
        self.pond, world = pond_of(tmp_path)
        self.kept = LoadedVehicleFile.read(str(boat)).link
        with robot(boat, world, "--speedup", SPEEDUP):
            yield

    def mission(self):
        return self.pond

    def link(self, mission):
        return self.kept


@pytest.mark.parametrize(
    ("mission", "battery", "world", "settings"),
    [
        ("lake-level-set", 1000, "lake-transect", ["--speedup", 1000, "--battery", 1000, "--seed", 7]),
        ("cell-growth", 6, "cell-growth", ["--speedup", 1000]),
    ],
)
def test_a_mission_over_mqtt_visits_the_sites_of_a_simulation(
    tmp_path, boat, mission, battery, world, settings
):
    smaller = {"agent": {"battery": battery, "max_steps": 15}}
    replaced = [part for key, value in smaller["agent"].items() for part in ("--set", f"agent.{key}={value}")]
    with robot(boat, world, *settings):
        run = fieldbo("run", mission, "--vehicle", boat, "--out", tmp_path / "run", *replaced)
        with run:
            assert run.wait() == 0, run.output

    alone = simulate(load_mission(mission, smaller).as_found())
    with Record(tmp_path / "run" / "run.sqlite") as record:
        rows = record.rows()
        assert record.end_reason == alone.end_reason
    queries = [row.message for row in rows if row.kind == "query"]
    seen = [row.message for row in rows if row.kind == "observation" and len(row.message.values)]
    assert len(queries) > 10
    assert same([q.site for q in queries], [q.site for q in alone.queries])
    assert same([o.sites for o in seen], [o.sites for o in alone.observations if len(o.values)])
    assert same([o.values for o in seen], [o.values for o in alone.observations if len(o.values)])


def test_readings_on_the_way_arrive_over_mqtt_in_parts_and_equal_those_of_a_simulation(tmp_path, boat):
    mission = logged_pond(tmp_path, spacing_m=0.1)
    with robot(boat, tmp_path / "pond" / "world.toml", "--speedup", 20, "--battery", 400, "--seed", 3):
        run = fieldbo("run", mission, "--vehicle", boat, "--out", tmp_path / "run", cwd=tmp_path)
        with run:
            assert run.wait() == 0, run.output

    alone = simulate(load_mission(str(mission)).as_found())
    with Record(tmp_path / "run" / "run.sqlite") as record:
        parts = [row.message for row in record.rows() if row.kind == "observation"]
    assert sum(not part.last for part in parts) >= 5
    assert max(np.diff([part.part for part in parts]).tolist()) == 1
    for name in ("sites", "values"):
        read = np.concatenate([getattr(part, name) for part in parts])
        expected = np.concatenate([getattr(o, name) for o in alone.observations])
        assert len(read) > 500
        np.testing.assert_allclose(read, expected, atol=1e-9)
    assert not any(part.doubts for part in parts)


def same(some, others):
    return len(some) == len(others) and all(
        np.array_equal(one, other, equal_nan=True) for one, other in zip(some, others, strict=True)
    )


def test_the_last_will_reports_a_robot_that_dies_before_the_watchdog_does(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    with robot(boat, world) as program, heard(boat, mission) as (_, signals):
        until(lambda: any(isinstance(one, PositionReport) for one in signals))
        program.kill()
        died = time.monotonic()
        until(lambda: any(isinstance(one, Unreachable) for one in signals))
        assert time.monotonic() - died < Watch().silence_s


def test_a_goal_sent_before_the_robot_is_there_reaches_it(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    goal = Goal("pond/0#a", np.array([10.0, 0.0]))
    with heard(boat, mission) as (connection, signals):
        connection.go(goal)
        with robot(boat, world, "--speedup", SPEEDUP):
            (done,) = until_done(connection, signals, goal).values()
    assert done.complete
    assert done.position.tolist() == [10.0, 0.0]


def test_a_robot_repeats_the_result_of_a_goal_of_an_earlier_connection(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    goal = Goal("pond/0#a", np.array([10.0, 0.0]))
    with robot(boat, world, "--speedup", SPEEDUP):
        with heard(boat, mission) as (connection, signals):
            connection.go(goal)
            (first,) = until_done(connection, signals, goal).values()
        with heard(boat, mission) as (connection, signals):
            assert connection.ask("pond/0#a")
            again = until(lambda: [one for one in signals if isinstance(one, GoalResult)])[0]
    assert again.values == first.values
    assert again.cost == first.cost


def test_results_that_the_broker_missed_arrive_when_it_is_back(tmp_path):
    mission, world = pond_of(tmp_path)
    first, second = (Goal(f"pond/{k}#a", np.array([60.0, 10.0 * k])) for k in range(2))
    with Broker(tmp_path) as broker:
        file = vehicle_file(tmp_path, broker.port)
        with robot(file, world, "--speedup", SPEEDUP), heard(file, mission) as (connection, signals):
            until(lambda: any(isinstance(one, PositionReport) for one in signals))
            connection.go(first)
            until(lambda: any(isinstance(one, PositionReport) and one.position[0] > 0 for one in signals))
            broker.stop()
            time.sleep(1.0)
            connection.go(second)
            broker.start()
            done = until_done(connection, signals, first, second)
    assert done["pond/1#a"].complete
    assert done["pond/1#a"].position.tolist() == [60.0, 10.0]


class Recorder:
    """Stands in for the client, with a broker that is always there."""

    ready = True

    def __init__(self, *settings, **more):
        self.sent = []

    def publish(self, name, body, **how):
        self.sent.append((name, body.get("id")))

    def announce(self, body):
        self.sent.append(("planner", None))

    def close(self):
        pass


@pytest.fixture
def planner(tmp_path, monkeypatch):
    """Yield a connection that holds its claim and works on run/0, and the list of its reports."""
    monkeypatch.setattr("fieldbo.vehicles.mqtt.link.MqttClient", Recorder)
    signals = []
    connection = Mqtt().open(pond_mission(tmp_path), None, signals.append)
    connection.claim("a", "pond")
    connection._claim.listen(time.monotonic())
    until(lambda: connection.claimed)
    connection.go(Goal("run/0#a", np.array([10.0, 0.0])))
    yield connection, signals
    connection.close()


def receive(connection, name, body):
    connection._receive(name, json.dumps(body).encode(), False)


def test_nothing_of_our_robot_is_dropped_while_the_claim_is_made_again(planner):
    connection, signals = planner
    connection._claim.listen(time.monotonic())  # the broker is back

    receive(connection, "telemetry", {"battery_share": 0.5})
    receive(connection, "result", {"id": "run/0#a", "cost": 10.0, "last": False})
    receive(connection, "result", {"id": "run/0#a", "corrects": True, "readings": [{"value": 2.0}]})

    assert not connection.claimed
    assert [type(one) for one in signals] == [Heartbeat, BatteryReport, GoalResult, GoalResult]
    assert [one.corrects for one in signals[2:]] == [False, True]


def test_while_another_planner_has_the_robot_only_our_own_goals_count(planner):
    connection, signals = planner
    receive(connection, "planner", {"online": True, "session": "b", "since_s": 0.0})
    signals.clear()

    receive(connection, "telemetry", {"position": {"x": 1, "y": 1}})
    receive(connection, "refused", {"id": "run/0#b", "reason": "reeds"})
    receive(connection, "refused", {"id": "run/0#a", "reason": "reeds"})

    assert signals == [GoalRejected("run/0#a", "reeds")]


def test_after_a_break_the_robot_is_asked_about_all_goals_and_the_one_under_way_is_sent_again(planner):
    connection, signals = planner
    connection.ask("run/lost#a")
    connection._claim.listen(time.monotonic())
    connection._client.sent.clear()
    until(lambda: connection.claimed and signals)

    assert signals == [Reconnected()]
    asked = [goal for name, goal in connection._client.sent if name == "ask"]
    assert asked == ["run/0#a", "run/lost#a"]


def test_stale_retained_messages_are_neither_obeyed_nor_believed(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    old = Codec(mission.world.domain.axes).goal(Goal("pond/0#old", np.array([60.0, 50.0])))
    with anyone(boat) as publish:
        for name, body in (("goal", old), ("result", {"id": "pond/0#old"}), ("status", {"online": True})):
            publish(name, body, retain=True)
    with heard(boat, mission) as (_, signals):
        time.sleep(1.0)
        assert signals == []
        with robot(boat, world, "--speedup", SPEEDUP):
            until(lambda: len([one for one in signals if isinstance(one, PositionReport)]) > 10)
            assert all(
                one.position.tolist() == [0.0, 0.0] for one in signals if isinstance(one, PositionReport)
            )
            assert not any(isinstance(one, GoalResult) for one in signals)


def test_messages_that_cannot_be_understood_are_ignored_with_one_warning_each(tmp_path, boat, caplog):
    mission, _ = pond_of(tmp_path)
    with heard(boat, mission) as (_, signals), anyone(boat) as publish:
        until(lambda: (publish("telemetry", {}), time.sleep(0.1), signals)[-1])
        for _ in range(2):
            for name, bodies in ODD.items():
                for body in (*NO_OBJECTS, *bodies):
                    publish(name, body)
        publish("status", b"")
        publish("refused", {"id": "pond/0#a"})
        until(lambda: any(isinstance(one, GoalRejected) for one in signals))
    assert {type(one) for one in signals} == {Heartbeat, GoalRejected}
    assert_each_is_reported_once(caplog.messages)
    assert any("channels = 5; expected: an object" in said for said in caplog.messages)


def assert_each_is_reported_once(lines):
    """Check that each kind of problem is reported once per topic."""
    found = [re.search(r"ignored a message on (\S+): .*?(?:expected: (.*))?$", line) for line in lines]
    warned = Counter(match.groups() for match in found if match)
    assert len(warned) > len(ODD)
    assert set(warned.values()) == {1}, warned


def test_an_error_in_the_callback_does_not_stop_the_client(tmp_path, broker, caplog):
    heard = []

    def hear(name, payload, retained):
        heard.append(payload)
        raise KeyError(name)

    boat = vehicle_file(tmp_path, broker.port)
    link = LoadedVehicleFile.read(str(boat)).link
    client = MqttClient(
        link, link.topic, ["result"], hear, on_ready=lambda: heard.append("up"), on_failure=heard.append
    )
    with anyone(boat) as publish:
        until(lambda: heard == ["up"])
        publish("result", b"one")
        publish("result", b"two")
        until(lambda: heard == ["up", b"one", b"two"])
    client.close()
    assert caplog.messages == [f"ignored a message on {link.topic}/result: KeyError('result')"]


def test_a_message_that_could_not_leave_counts_as_unsent(tmp_path):
    """The connection breaks before the client hears of it."""
    with Broker(tmp_path) as broker:
        boat = vehicle_file(tmp_path, broker.port)
        link = LoadedVehicleFile.read(str(boat)).link
        connection = link.open(load_mission(str(pond(tmp_path))), None, lambda report: None)
        client = connection._client
        until(lambda: client.ready)
        connection.hold()
        until(lambda: not connection.unsent())
        broker.stop()
        until(lambda: not client.ready)
        client._ready.set()
        connection.hold()
        assert connection.unsent() == f"the broker at {link.url} has not confirmed it"
        client._ready.clear()
        broker.start()
        until(lambda: not connection.unsent())
        connection.close()


def test_a_mission_over_a_broker_without_mqtt_5_visits_the_same_sites(tmp_path, broker):
    mission = pond(tmp_path)
    with old_broker(broker.port) as (port, versions):
        boat = vehicle_file(tmp_path, port)
        with robot(boat, tmp_path / "pond" / "world.toml", "--speedup", SPEEDUP):
            run = fieldbo("run", mission, "--vehicle", boat, "--out", tmp_path / "run")
            with run:
                assert run.wait() == 0, run.output
    alone = simulate(load_mission(str(mission)).as_found())
    with Record(tmp_path / "run" / "run.sqlite") as record:
        queries = [row.message for row in record.rows() if row.kind == "query"]
    assert same([query.site for query in queries], [query.site for query in alone.queries])
    assert {4, 5} == set(versions)


def test_messages_that_cannot_be_understood_do_not_change_a_mission(tmp_path, broker):
    mission = pond(tmp_path)
    world = tmp_path / "pond" / "world.toml"
    frame = '[frame]\norigin = { latitude = 47.31, longitude = 8.58 }\nalong = "x"\nleft = "y"'
    boat = vehicle_file(tmp_path, broker.port, frame)
    goals = []
    with (
        robot(boat, world, "--speedup", SPEEDUP, "--battery", BATTERY_S, "--seed", 3) as program,
        hears_goals(boat, goals),
        anyone(boat) as publish,
        fieldbo("run", mission, "--vehicle", boat, "--out", tmp_path / "run") as run,
    ):
        while run.running:
            for name, body in odd_messages(goals[-1] if goals else "pond/0#a"):
                publish(name, body)
            time.sleep(0.05)
        assert run.wait() == 0, run.output
        assert "Traceback" not in run.output + program.output
        assert_each_is_reported_once(run.lines)
        assert len(set(goals)) > 8, goals

    alone = simulate(load_mission(str(mission)).as_found())
    with Record(tmp_path / "run" / "run.sqlite") as record:
        told = [row.message for row in record.rows() if row.kind not in ("stop", "end")]
    seen = [one for one in told if isinstance(one, Observation) and len(one.values)]
    assert not [one for one in told if isinstance(one, Lost | Rejected)]
    assert same([one.site for one in told if isinstance(one, Query)], [one.site for one in alone.queries])
    assert same([one.values for one in seen], [one.values for one in alone.observations if len(one.values)])


@contextmanager
def hears_goals(file, ids):
    """Collect the ids of the goals of a run in the pond."""
    link = LoadedVehicleFile.read(str(file)).link

    def hear(name, payload, retained):
        told = json_object(name, payload).get("id", "")
        if str(told).startswith("run/"):
            ids.append(told)

    client = MqttClient(link, link.topic, ["goal"], hear, on_ready=lambda: None, on_failure=lambda why: None)
    try:
        yield
    finally:
        client.close()


def odd_messages(out):
    """Yield messages that nobody can understand, by topic; where possible about the goal `out`."""
    bodies = {**ODD, "goal": ODD_GOALS, "cancel": [{}, {"id": 3}], "ask": [{}, {"id": [3]}], "hold": []}
    for name, odd in bodies.items():
        for body in (*NO_OBJECTS, *odd):
            aimed = isinstance(body, dict) and body.get("id") == "m/1" and name != "goal"
            yield name, {**body, "id": out} if aimed else body
    for odd in (10**400, "3", [3], {"latitude": 1e9, "longitude": 1e300, "altitude": 0}):
        yield "telemetry", {"position": odd, "battery": odd, "battery_share": odd}


def test_a_second_robot_on_the_same_topic_is_an_error(tmp_path, boat):
    _, world = pond_of(tmp_path)
    with robot(boat, world) as first, fieldbo("robot", boat, "--world", world) as second:
        assert second.wait() == 2
        assert "there is already a robot" in second.output
        assert first.running


def test_a_missing_broker_is_reported(tmp_path):
    mission, _ = pond_of(tmp_path)
    with heard(vehicle_file(tmp_path, free_port()), mission) as (_, signals):
        down = until(lambda: next(iter(signals), None))
    assert "refused" in down.why


def test_closing_is_prompt_even_if_the_broker_does_not_answer(tmp_path):
    mission, _ = pond_of(tmp_path)
    with Broker(tmp_path) as broker:
        file = vehicle_file(tmp_path, broker.port)
        with heard(file, mission) as (connection, _):
            time.sleep(0.5)
            broker.freeze()
            connection.hold()
            began = time.monotonic()
        assert time.monotonic() - began < Watch().silence_s
        broker.thaw()


# -- access ----------------------------------------------------------------------------------------------


def certificates(folder):
    """Make an authority, and its certificate for this machine."""
    write(folder / "names", "subjectAltName=DNS:localhost")
    for line in (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout broker.key -out broker.csr",
        "x509 -req -in broker.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names "
        "-out broker.pem",
    ):
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)


def test_a_broker_with_password_and_tls_admits_only_clients_with_both(tmp_path):
    mission, world = pond_of(tmp_path)
    certificates(tmp_path)
    write(tmp_path / "users", "ada:secret\n")
    subprocess.run(["mosquitto_passwd", "-U", tmp_path / "users"], check=True)
    files = [
        f"{key} {tmp_path / name}" for key, name in (("certfile", "broker.pem"), ("keyfile", "broker.key"))
    ]
    with Broker(tmp_path, *files, "allow_anonymous false", f"password_file {tmp_path / 'users'}") as broker:
        secure = f'tls = true\nca_file = "{tmp_path / "ca.pem"}"'
        named = 'user_from = "BOAT_USER"\npassword_from = "BOAT_PASSWORD"'
        access = {"BOAT_USER": "ada", "BOAT_PASSWORD": "secret"}
        file = vehicle_file(tmp_path, broker.port, secure, named)
        with robot(file, world, env=access):
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("BOAT_USER", "ada")
                patch.setenv("BOAT_PASSWORD", "secret")
                with heard(file, mission) as (_, signals):
                    until(lambda: any(isinstance(one, PositionReport) for one in signals))
                patch.setenv("BOAT_PASSWORD", "guessed")
                with heard(file, mission) as (_, signals):
                    assert "authorized" in until(lambda: next(iter(signals), None)).why
            for settings, why in (([secure], "authorized"), (["tls = true", named], "certificate")):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("BOAT_USER", "ada")
                    patch.setenv("BOAT_PASSWORD", "secret")
                    with heard(vehicle_file(tmp_path, broker.port, *settings), mission) as (_, signals):
                        assert why in until(lambda: next(iter(signals), None)).why


def test_a_broker_that_asks_for_certificates_admits_only_clients_with_one(tmp_path):
    mission, world = pond_of(tmp_path)
    certificates(tmp_path)
    for line in (
        "req -newkey rsa:2048 -nodes -subj /CN=boat -keyout boat.key -out boat.csr",
        "x509 -req -in boat.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out boat.pem",
        "pkey -in boat.key -aes256 -passout pass:secret -out locked.key",
    ):
        subprocess.run(["openssl", *line.split()], cwd=tmp_path, check=True, capture_output=True)
    names = {"certfile": "broker.pem", "keyfile": "broker.key", "cafile": "ca.pem"}
    files = [f"{key} {tmp_path / name}" for key, name in names.items()]
    with Broker(tmp_path, *files, "require_certificate true") as broker:
        secure = 'tls = true\nca_file = "ca.pem"'  # relative to the vehicle file
        file = vehicle_file(tmp_path, broker.port, secure, 'cert_file = "boat.pem"\nkey_file = "boat.key"')
        with robot(file, world), heard(file, mission) as (_, signals):
            until(lambda: any(isinstance(one, PositionReport) for one in signals))
        bare = vehicle_file(tmp_path, broker.port, secure)
        with heard(bare, mission) as (_, signals):
            time.sleep(2.0)
            assert not any(isinstance(one, PositionReport) for one in signals)
        for key, why in (("locked.key", "has a passphrase"), ("broker.key", "cannot be used")):
            named = f'cert_file = "boat.pem"\nkey_file = "{key}"'
            with pytest.raises(InputError, match=why):
                load_vehicle(str(vehicle_file(tmp_path, broker.port, secure, named)), mission).connect()


# -- one planner per robot -------------------------------------------------------------------------------


def claims(file, bodies):
    """Return a client that collects what planners say; close it."""
    link = LoadedVehicleFile.read(str(file)).link
    return MqttClient(
        link,
        link.topic,
        ["planner"],
        lambda name, payload, retained: bodies.append((json.loads(payload), retained)),
        on_ready=lambda: None,
        on_failure=lambda why: None,
    )


def test_a_planner_is_present_each_second_and_its_last_will_says_that_it_is_gone(tmp_path, boat):
    mission, world = pond(tmp_path), tmp_path / "pond" / "world.toml"
    bodies = []
    listener = claims(boat, bodies)
    with robot(boat, world, "--speedup", 1), fieldbo("run", mission, "--vehicle", boat, cwd=tmp_path) as run:
        until(lambda: any(body.get("run") for body, _ in bodies))
        before, began_s = len(bodies), time.monotonic()
        until(lambda: len(bodies) >= before + 5)
        assert 4 * 0.7 < time.monotonic() - began_s < 5 * 3.0  # no robot takes it for silent
        assert bodies[-1][0]["online"] is True
        run.kill()
        until(lambda: bodies[-1][0]["online"] is False)
    listener.close()
    assert bodies[-1][0]["session"] == bodies[-2][0]["session"]


def test_a_claim_of_a_planner_that_never_speaks_is_taken_over(tmp_path, boat):
    """It died with its machine, and the broker with it: nobody sent its last will."""
    mission, world = pond_of(tmp_path)
    with anyone(boat) as publish, robot(boat, world, "--speedup", SPEEDUP):
        publish("planner", {"online": True, "session": "dead"}, retain=True)
        with load_vehicle(str(boat), mission) as vehicle:
            vehicle.send(Query([10.0, 0.0], id="run/0"))
            seen = until(lambda: [one for one in vehicle.events(0.1) if isinstance(one, Observation)])

    assert [one.order for one in seen] == ["run/0"]


def test_a_claim_survives_what_anyone_publishes_over_it(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    settings = recorded_settings(str(boat))
    with anyone(boat) as publish, robot(boat, world), vehicle_of(settings, mission):
        publish("planner", {"online": False, "session": "dead"}, retain=True)
        publish("planner", {"online": True, "session": ["odd"]}, retain=True)
        publish("planner", {"online": True, "session": "late", "since_s": 1e12}, retain=True)
        bodies = []
        listener = claims(boat, bodies)
        until(lambda: bodies and bodies[-1][0]["session"] == settings["session"])
        listener.close()
        with pytest.raises(VehicleError, match=r"run \?|another planner"):
            load_vehicle(str(boat), mission).connect()


def test_a_planner_with_the_same_session_takes_its_own_claim_over(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    settings = recorded_settings(str(boat))
    with robot(boat, world, "--speedup", SPEEDUP), anyone(boat) as publish:
        publish("planner", {"online": True, "session": settings["session"]}, retain=True)
        began_s = time.monotonic()
        with vehicle_of(settings, mission):
            assert time.monotonic() - began_s < GONE_S


# -- faults ----------------------------------------------------------------------------------------------


class BehindBroker(Peer):
    """A robot over MQTT; the broker can go away and come back."""

    def start(self):
        self.broker = Broker(self.folder)
        self.link = f'kind = "mqtt"\nhost = "127.0.0.1"\nport = {self.broker.port}\ntopic = "fieldbo/boat"'

    def stop(self):
        self.broker.stop()

    def cut(self):
        self.broker.stop()

    def restore(self):
        self.broker.start()


class TestFaults(FaultTable):
    peer = BehindBroker
