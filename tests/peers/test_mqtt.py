"""A robot on an MQTT bus: a real mosquitto between it and fieldbo, each in a process of its own."""

from __future__ import annotations

import json
from itertools import count

import numpy as np
import pytest
from peers.faults import FaultTable, Peer
from peers.pond import SPEEDUP, pond, pond_mission
from peers.processes import Broker, fieldbo
from working_folder import write

from fieldbo.domain import Axis
from fieldbo.errors import InputError
from fieldbo.frame import Frame, Origin
from fieldbo.testing import VehicleContract
from fieldbo.vehicles.link import Alive, At, Charge, Done, Down, Errand, Refused
from fieldbo.vehicles.mqtt import Codec, Mqtt, read
from fieldbo.vehicles.settings import Told, vehicle_of

LAKE = [Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18, "down")]


# -- what stands in the messages -------------------------------------------------------------------------


def test_a_goal_names_each_axis_with_its_unit_and_leaves_free_what_is_null():
    cell = Codec([Axis("sugar", "g/l", 0, 9), Axis("pH", "", 0, 9)])

    body = json.loads(json.dumps(cell.goal(Errand("m/3#a", np.array([2.5, np.nan])))))

    assert body["site"] == {"sugar": 2.5, "pH": None}
    assert body["units"] == {"sugar": "g/l", "pH": ""}
    assert (body["id"], body["home"], body["seconds"]) == ("m/3#a", False, None)
    assert "place" not in body


def test_where_the_axes_lie_on_the_ground_a_goal_has_its_place_and_an_answer_may_have_one():
    ground = Frame(Origin(47.31, 8.58, 406.0), along="along", depth="depth").over(LAKE)
    codec = Codec(LAKE, ground)
    place = codec.goal(Errand("m/3#a", np.array([350.0, 4.5])))["place"]

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


@pytest.mark.parametrize("payload", [b"", b"\xff", b"[1]", b"3", b'{"id": '])
def test_what_is_no_json_object_is_refused(payload):
    with pytest.raises(InputError, match="on topic result"):
        read("result", payload)


@pytest.mark.parametrize(
    "body", [{}, {"id": 3}, {"id": "m/1", "readings": 3}, {"id": "m/1", "readings": [3]}]
)
def test_a_result_that_belongs_to_no_goal_or_has_no_readings_to_read_is_refused(body):
    with pytest.raises(InputError):
        Codec(LAKE).signals("result", body)


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


def boat(folder, broker, topic, *more):
    """Write a vehicle file, and return it."""
    link = [f'host = "127.0.0.1"\nport = {broker.port}\ntopic = "{topic}"', *more]
    write(folder / "boat.toml", "\n".join(['format = 1\n[link]\nkind = "mqtt"', *link, ""]))
    return folder / "boat.toml"


class TestContract(VehicleContract):
    """Each test meets a robot of its own, in another process."""

    patience_s = 20.0
    topics = count()

    @pytest.fixture(autouse=True)
    def _robot(self, tmp_path, broker):
        self.folder = tmp_path
        self.file = boat(tmp_path, broker, f"contract/{next(self.topics)}")
        world = pond(tmp_path).parent / "pond" / "world.toml"
        with fieldbo("robot", self.file, "--world", world, "--speedup", SPEEDUP) as robot:
            robot.wait_for("ready")
            yield

    def mission(self):
        return pond_mission(self.folder)

    def vehicle(self, mission):
        return vehicle_of(Told.read(str(self.file)).new_run(), mission)


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
