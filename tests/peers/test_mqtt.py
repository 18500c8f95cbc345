"""A robot on an MQTT bus: a real mosquitto between it and fieldbo, each in a process of its own."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections import Counter
from contextlib import contextmanager

import numpy as np
import paho.mqtt.client as paho
import pytest
from peers.faults import FaultTable, Peer
from peers.pond import BATTERY_S, SPEEDUP, pond, pond_mission
from peers.processes import Broker, fieldbo, free_port, until
from working_folder import write

from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Frame, Origin
from fieldbo.errors import InputError
from fieldbo.messages import Lost, Observation, Query, Rejected
from fieldbo.mission.load import load_mission
from fieldbo.runs.record.record import Record
from fieldbo.runs.runner import run as simulate
from fieldbo.testing import VehicleContract
from fieldbo.vehicles.load import LoadedVehicleFile, load_vehicle
from fieldbo.vehicles.mqtt.client import MqttClient
from fieldbo.vehicles.mqtt.link import Codec, Mqtt, read
from fieldbo.vehicles.remote.link import Alive, At, Charge, Done, Down, Goal, Refused
from fieldbo.vehicles.simulators.mqtt import errand

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
"""What a robot can't mean, by topic."""

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


# -- what stands in the messages -------------------------------------------------------------------------


def test_a_goal_names_each_axis_with_its_unit_and_leaves_free_what_is_null():
    cell = Codec([Axis("sugar", "g/l", 0, 9), Axis("pH", "", 0, 9)])

    body = json.loads(json.dumps(cell.goal(Goal("m/3#a", np.array([2.5, np.nan])))))

    assert body["site"] == {"sugar": 2.5, "pH": None}
    assert body["units"] == {"sugar": "g/l", "pH": ""}
    assert (body["id"], body["home"], body["seconds"]) == ("m/3#a", False, None)
    assert "place" not in body


def test_where_the_axes_lie_on_the_ground_a_goal_has_its_place_and_an_answer_may_have_one():
    codec = Codec(LAKE, ON_THE_GROUND)
    place = codec.goal(Goal("m/3#a", np.array([350.0, 4.5])))["place"]

    (done,) = codec.signals("result", {"id": "m/3#a", "position": place})

    assert place["altitude"] == 401.5
    assert done.position == pytest.approx([350.0, 4.5], abs=1e-6)


def test_what_a_robot_leaves_out_is_not_a_number():
    (done,) = Codec(LAKE).signals("result", {"id": "m/3#a", "readings": [{"value": None}, {"value": "high"}]})

    assert isinstance(done, Done)
    assert np.isnan([*done.position, *done.values, *done.seconds, done.cost, done.duration_s]).all()
    assert (done.part, done.last, done.complete, done.channels) == (0, True, True, None)
    assert done.sites.shape == (2, 2)


def test_a_result_says_where_each_value_was_read_and_what_else_was():
    here = {"along": 350.5, "depth": 4.5}
    reading = {"site": here, "value": 1.5, "seconds": 3, "channels": {"temperature": 14}}
    body = {"id": "m/3#a", "position": here, "readings": [{"value": 1}, reading], "part": 1, "last": False}

    (done,) = Codec(LAKE).signals("result", {**body, "complete": False, "cost": 7, "duration_s": 8.0})

    assert done.sites[1].tolist() == [350.5, 4.5]
    assert done.values.tolist() == [1.0, 1.5]
    assert done.channels is not None
    assert np.array_equal(done.channels["temperature"], [np.nan, 14.0], equal_nan=True)
    assert (done.part, done.last, done.complete, done.cost, done.duration_s) == (1, False, False, 7.0, 8.0)


def test_the_heartbeat_may_be_empty_or_tell_place_and_charge():
    codec = Codec(LAKE)

    assert [type(one) for one in codec.signals("telemetry", {})] == [Alive]
    alive, at, charge = codec.signals("telemetry", {"position": {"along": 3}, "battery_share": 0.5})

    assert isinstance(alive, Alive)
    assert isinstance(at, At)
    assert np.array_equal(at.position, [3.0, np.nan], equal_nan=True)
    assert charge == Charge(share=0.5, amount=None)


def test_a_status_is_a_sign_of_life_or_says_that_there_is_none():
    codec = Codec(LAKE)

    assert codec.signals("status", {"online": True}) == [Alive()]
    assert isinstance(codec.signals("status", {"online": False})[0], Down)
    assert codec.signals("refused", {"id": "m/3#a", "reason": "reeds"}) == [Refused("m/3#a", "reeds")]


@pytest.mark.parametrize("payload", NO_OBJECTS, ids=lambda payload: repr(payload[:20]))
def test_what_is_no_json_object_is_refused(payload):
    with pytest.raises(InputError, match="on topic result"):
        read("result", payload)


@pytest.mark.parametrize(("name", "body"), [(name, body) for name, bodies in ODD.items() for body in bodies])
def test_what_a_robot_can_not_mean_is_refused(name, body):
    with pytest.raises(InputError, match=" = "):
        Codec(LAKE).signals(name, read(name, json.dumps(body).encode()))


@pytest.mark.parametrize("body", ODD_GOALS, ids=range(len(ODD_GOALS)))
def test_a_goal_that_can_not_be_understood_is_passed_over(body):
    with pytest.raises(InputError):
        errand(Codec(LAKE), read("goal", json.dumps(body).encode()))


@pytest.mark.parametrize("odd", [10**400, -(10**400), 1e999, math.nan, "3", True, [3], {"x": 3}, None])
def test_what_is_no_number_is_none_wherever_it_stands(odd):
    reading = {
        "value": odd,
        "seconds": odd,
        "channels": {"turbid": odd},
        "site": {"along": odd, "depth": odd},
    }
    body = {"id": "m/1", "position": {"along": odd}, "cost": odd, "duration_s": odd, "readings": [reading]}

    (done,) = Codec(LAKE).signals("result", body)
    _, at, *_ = Codec(LAKE).signals("telemetry", {"position": {"depth": odd}, "battery": odd})

    assert done.channels is not None
    told = [done.position, done.sites[0], done.values, done.seconds, done.channels["turbid"], at.position]
    assert np.isnan([done.cost, done.duration_s, *np.concatenate(told)]).all()


@pytest.mark.parametrize(("latitude", "longitude"), [(1e9, 8), (47, 1e300), (-90.1, 8), (47, None)])
def test_a_place_that_is_not_on_the_globe_is_nowhere(latitude, longitude):
    place = {"latitude": latitude, "longitude": longitude, "altitude": 0}

    _, at = Codec(LAKE, ON_THE_GROUND).signals("telemetry", {"position": place})

    assert np.isnan(at.position).all()


def test_a_whole_number_may_be_written_with_a_point_and_what_is_null_is_left_out():
    body = {"id": "m/1", "part": 2.0, "last": None, "readings": None}

    (done,) = Codec(LAKE).signals("result", body)

    assert (done.part, done.last, len(done.values)) == (2, True, 0)


@pytest.mark.parametrize("topic", ["", "/boat", "boat/", "a//b", "boat/#", "a/+/b", "$SYS/boat"])
def test_a_topic_that_can_not_be_published_below_is_refused(topic):
    with pytest.raises(InputError, match="topic = "):
        Mqtt(topic=topic)


def test_a_password_stands_in_the_environment_and_nowhere_else(monkeypatch):
    monkeypatch.delenv("BOAT_PASSWORD", raising=False)
    monkeypatch.setenv("BOAT_USER", "ada")
    link = Mqtt(user_from="BOAT_USER", password_from="BOAT_PASSWORD")

    with pytest.raises(InputError, match="BOAT_PASSWORD is not set"):
        link.access()
    monkeypatch.setenv("BOAT_PASSWORD", "secret")
    assert link.access() == {"username": "ada", "password": "secret"}


# -- a robot in another process --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("broker")) as one:
        yield one


@pytest.fixture
def boat(tmp_path, broker):
    """Write a vehicle file, of a robot of this test alone."""
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
    """Open the link alone; give the connection, and all that is heard."""
    signals = []
    connection = LoadedVehicleFile.read(str(file)).link.open(mission, None, signals.append)
    try:
        yield connection, signals
    finally:
        connection.close()


@contextmanager
def anyone(file):
    """Be somebody on the bus; give what publishes a body, or bytes, on a topic below the robot's."""
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


class TestContract(VehicleContract):
    """Each test meets a robot of its own, in another process."""

    patience_s = 20.0

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


@pytest.mark.parametrize(
    ("mission", "world", "settings"),
    [
        ("lake-level-set", "lake-transect", ["--speedup", 1000, "--battery", 6000, "--seed", 7]),
        ("cell-growth", "cell-growth", ["--speedup", 1000]),
    ],
)
def test_a_mission_over_the_bus_goes_as_in_simulation(tmp_path, boat, mission, world, settings):
    smaller = ["agent.battery=6"] if mission == "cell-growth" else []
    replaced = [part for one in smaller for part in ("--set", one)]
    with robot(boat, world, *settings):
        run = fieldbo("run", mission, "--vehicle", boat, "--out", tmp_path / "run", *replaced)
        with run:
            assert run.wait(200) == 0, run.output

    alone = simulate(load_mission(mission, {"agent": {"battery": 6}} if smaller else None))
    with Record(tmp_path / "run" / "run.sqlite") as record:
        rows = record.rows()
        assert record.end_reason == alone.end_reason
    queries = [row.message for row in rows if row.kind == "query"]
    seen = [row.message for row in rows if row.kind == "observation" and len(row.message.values)]
    assert len(queries) > 10
    assert same([q.site for q in queries], [q.site for q in alone.queries])
    assert same([o.sites for o in seen], [o.sites for o in alone.observations if len(o.values)])
    assert same([o.values for o in seen], [o.values for o in alone.observations if len(o.values)])


def same(some, others):
    return len(some) == len(others) and all(
        np.array_equal(one, other, equal_nan=True) for one, other in zip(some, others, strict=True)
    )


def test_a_robot_that_dies_is_told_of_by_its_last_will_before_the_watchdog(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    with robot(boat, world) as program, heard(boat, mission) as (_, signals):
        until(lambda: any(isinstance(one, At) for one in signals))
        program.kill()
        died = time.monotonic()
        until(lambda: any(isinstance(one, Down) for one in signals))
        assert time.monotonic() - died < 1.0


def test_an_errand_that_is_sent_before_the_robot_is_there_reaches_it(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    with heard(boat, mission) as (connection, signals):
        connection.go(Goal("pond/0#a", np.array([10.0, 0.0])))
        with robot(boat, world, "--speedup", SPEEDUP):
            done = until(lambda: [one for one in signals if isinstance(one, Done)])
    assert [(one.errand, one.complete) for one in done] == [("pond/0#a", True)]
    assert done[0].position.tolist() == [10.0, 0.0]


def test_a_robot_tells_again_what_came_of_an_errand_of_an_earlier_connection(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    with robot(boat, world, "--speedup", SPEEDUP):
        told = []
        for ask in (False, True):
            with heard(boat, mission) as (connection, signals):
                if ask:
                    assert connection.ask("pond/0#a")
                else:
                    connection.go(Goal("pond/0#a", np.array([10.0, 0.0])))
                told.append(until(lambda: [one for one in signals if isinstance(one, Done)])[0])
    assert told[0].values == told[1].values
    assert told[0].cost == told[1].cost


def test_what_a_robot_did_while_the_broker_was_away_is_told_when_it_is_back(tmp_path):
    mission, world = pond_of(tmp_path)
    with Broker(tmp_path) as broker:
        file = vehicle_file(tmp_path, broker.port)
        with robot(file, world, "--speedup", SPEEDUP), heard(file, mission) as (connection, signals):
            until(lambda: any(isinstance(one, At) for one in signals))
            connection.go(Goal("pond/0#a", np.array([60.0, 0.0])))
            until(lambda: any(isinstance(one, At) and one.position[0] > 0 for one in signals))
            broker.stop()
            time.sleep(2.0)
            connection.go(Goal("pond/1#a", np.array([60.0, 10.0])))
            broker.start()
            both = {"pond/0#a", "pond/1#a"}
            until(lambda: {one.errand for one in signals if isinstance(one, Done)} == both)
    told = {one.errand: one for one in signals if isinstance(one, Done)}
    assert told["pond/1#a"].complete
    assert told["pond/1#a"].position.tolist() == [60.0, 10.0]


def test_what_was_kept_from_another_day_is_neither_obeyed_nor_believed(tmp_path, boat):
    mission, world = pond_of(tmp_path)
    old = Codec(mission.world.domain.axes).goal(Goal("pond/0#old", np.array([60.0, 50.0])))
    with anyone(boat) as publish:
        for name, body in (("goal", old), ("result", {"id": "pond/0#old"}), ("status", {"online": True})):
            publish(name, body, retain=True)
    with heard(boat, mission) as (_, signals):
        time.sleep(1.0)
        assert signals == []
        with robot(boat, world, "--speedup", SPEEDUP):
            time.sleep(1.0)
            assert all(one.position.tolist() == [0.0, 0.0] for one in signals if isinstance(one, At))
            assert not any(isinstance(one, Done) for one in signals)


def test_what_can_not_be_understood_is_warned_of_once_and_passed_over(tmp_path, boat, caplog):
    mission, _ = pond_of(tmp_path)
    with heard(boat, mission) as (_, signals), anyone(boat) as publish:
        until(lambda: (publish("telemetry", {}), time.sleep(0.1), signals)[-1])
        for _ in range(2):
            for name, bodies in ODD.items():
                for body in (*NO_OBJECTS, *bodies):
                    publish(name, body)
        publish("status", b"")
        publish("refused", {"id": "pond/0#a"})
        until(lambda: any(isinstance(one, Refused) for one in signals))
    assert {type(one) for one in signals} == {Alive, Refused}
    assert_each_is_said_once(caplog.messages)
    assert any("channels = 5; expected: an object" in said for said in caplog.messages)


def assert_each_is_said_once(lines):
    """Of each topic, and of each kind of what is wrong."""
    parts = [line.partition(" is passed over: ") for line in lines]
    warned = Counter((topic, why.rpartition("expected:")[2]) for topic, _, why in parts if why)
    assert len(warned) > len(ODD)
    assert set(warned.values()) == {1}, warned


def test_whatever_goes_wrong_while_a_message_is_read_the_next_is_heard(tmp_path, broker, caplog):
    heard = []

    def hear(name, payload, retained):
        heard.append(payload)
        raise KeyError(name)

    boat = vehicle_file(tmp_path, broker.port)
    link = LoadedVehicleFile.read(str(boat)).link
    bus = MqttClient(link, link.topic, ["result"], hear, up=lambda: heard.append("up"), down=heard.append)
    with anyone(boat) as publish:
        until(lambda: heard == ["up"])
        publish("result", b"one")
        publish("result", b"two")
        until(lambda: heard == ["up", b"one", b"two"])
    bus.close()
    assert caplog.messages == [f"a message on {link.topic}/result is passed over: KeyError('result')"]


def test_a_mission_goes_as_if_nobody_published_what_can_not_be_understood(tmp_path, broker):
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
        assert_each_is_said_once(run.lines)
        assert len(set(goals)) > 8, goals

    alone = simulate(load_mission(str(mission)))
    with Record(tmp_path / "run" / "run.sqlite") as record:
        told = [row.message for row in record.rows() if row.kind not in ("stop", "end")]
    seen = [one for one in told if isinstance(one, Observation) and len(one.values)]
    assert not [one for one in told if isinstance(one, Lost | Rejected)]
    assert same([one.site for one in told if isinstance(one, Query)], [one.site for one in alone.queries])
    assert same([one.values for one in seen], [one.values for one in alone.observations if len(one.values)])


@contextmanager
def hears_goals(file, ids):
    """Keep the ids of the goals of a run in the pond."""
    link = LoadedVehicleFile.read(str(file)).link

    def hear(name, payload, retained):
        told = read(name, payload).get("id", "")
        if str(told).startswith("run/"):
            ids.append(told)

    bus = MqttClient(link, link.topic, ["goal"], hear, up=lambda: None, down=lambda why: None)
    try:
        yield
    finally:
        bus.close()


def odd_messages(out):
    """Return what nobody can understand, by topic; where it can, of the errand that is out."""
    bodies = {**ODD, "goal": ODD_GOALS, "cancel": [{}, {"id": 3}], "ask": [{}, {"id": [3]}], "hold": []}
    for name, odd in bodies.items():
        for body in (*NO_OBJECTS, *odd):
            aimed = isinstance(body, dict) and body.get("id") == "m/1" and name != "goal"
            yield name, {**body, "id": out} if aimed else body
    for odd in (10**400, "3", [3], {"latitude": 1e9, "longitude": 1e300, "altitude": 0}):
        yield "telemetry", {"position": odd, "battery": odd, "battery_share": odd}


def test_a_second_robot_at_the_same_topic_is_refused(tmp_path, boat):
    _, world = pond_of(tmp_path)
    with robot(boat, world) as first, fieldbo("robot", boat, "--world", world) as second:
        assert second.wait() == 2
        assert "there is a robot" in second.output
        assert first.running


def test_a_broker_that_is_not_there_is_told_of(tmp_path):
    mission, _ = pond_of(tmp_path)
    with heard(vehicle_file(tmp_path, free_port()), mission) as (_, signals):
        down = until(lambda: next(iter(signals), None))
    assert "refused" in down.why


def test_closing_takes_no_longer_where_the_broker_does_not_answer(tmp_path):
    mission, _ = pond_of(tmp_path)
    with Broker(tmp_path) as broker:
        file = vehicle_file(tmp_path, broker.port)
        with heard(file, mission) as (connection, _):
            time.sleep(0.5)
            broker.freeze()
            connection.hold()
            began = time.monotonic()
        assert time.monotonic() - began < 2.5
        broker.thaw()


# -- who may be there ------------------------------------------------------------------------------------


def certificates(folder):
    """Make an authority, and a certificate of it for this machine."""
    write(folder / "names", "subjectAltName=DNS:localhost")
    for line in (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout broker.key -out broker.csr",
        "x509 -req -in broker.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names "
        "-out broker.pem",
    ):
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)


def test_a_broker_with_a_password_and_tls_lets_in_who_has_both(tmp_path):
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
                    until(lambda: any(isinstance(one, At) for one in signals))
                patch.setenv("BOAT_PASSWORD", "guessed")
                with heard(file, mission) as (_, signals):
                    assert "authorized" in until(lambda: next(iter(signals), None)).why
            for settings, why in (([secure], "authorized"), (["tls = true", named], "certificate")):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("BOAT_USER", "ada")
                    patch.setenv("BOAT_PASSWORD", "secret")
                    with heard(vehicle_file(tmp_path, broker.port, *settings), mission) as (_, signals):
                        assert why in until(lambda: next(iter(signals), None)).why


# -- what goes wrong -------------------------------------------------------------------------------------


class BehindBroker(Peer):
    """A robot on the bus; the broker can go and come back."""

    def start(self):
        self.broker = Broker(self.folder)
        self.link = f'kind = "mqtt"\nhost = "127.0.0.1"\nport = {self.broker.port}\ntopic = "fieldbo/boat"'

    def stop(self):
        self.broker.stop()

    def cut(self):
        self.broker.stop()

    def mend(self):
        self.broker.start()


class TestFaults(FaultTable):
    peer = BehindBroker
