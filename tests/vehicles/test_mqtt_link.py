"""What an MQTT link says when the broker goes away or rejects it; no broker is needed."""

import json
import logging
from dataclasses import dataclass

import pytest

from fieldbo.errors import InputError, VehicleError
from fieldbo.testing import SteppedClock, small_mission
from fieldbo.vehicles.mqtt import link as mqtt_link
from fieldbo.vehicles.mqtt.client import MqttClient
from fieldbo.vehicles.mqtt.link import Mqtt
from fieldbo.vehicles.remote.link import Heartbeat, Unreachable
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import VehicleFile


class Paho:
    """Stands in for paho's client, which connects nowhere."""

    def connect_async(self, *arguments, **more):
        pass

    def loop_start(self):
        pass

    def will_set(self, *arguments, **more):
        pass

    def subscribe(self, topics):
        pass

    def disconnect(self):
        return 1


@dataclass
class Timer:
    """Stands in for a timer of `threading`, by a clock that the test moves."""

    clock: SteppedClock
    seconds: float
    act: object

    def start(self):
        self.clock.after(self.seconds, self.act)


@pytest.fixture
def clock(monkeypatch):
    clock = SteppedClock()
    monkeypatch.setattr("threading.Timer", lambda seconds, act: Timer(clock, seconds, act))
    return clock


@pytest.fixture
def opened(monkeypatch, clock):
    """Return a connection whose broker has let it in, its client, and the list of its reports."""
    monkeypatch.setattr(MqttClient, "_new_client", lambda client: Paho())
    reports = []
    connection = Mqtt().open(small_mission(), None, reports.append)
    client = connection._client
    client._on_subscribe(client._client)
    yield connection, client, reports
    connection.close()


def status(connection, *, online, retained=False):
    connection._receive("status", json.dumps({"online": online}).encode(), retained)


def told(reports, clock):
    """Return the reports after the time in which a robot's last will is doubted."""
    clock.sleep(2 * mqtt_link._WILL_S)
    return [type(report) for report in reports]


def test_that_the_broker_has_gone_and_is_back_is_said_once_each(opened, caplog):
    caplog.set_level(logging.WARNING, "fieldbo")
    connection, client, _ = opened
    client._lost(client._client, None)
    client._lost(client._client, None)  # attempts to connect fail
    client._on_subscribe(client._client)
    assert [record.getMessage() for record in caplog.records] == [
        "the broker at mqtt://localhost:1883 cannot be reached; fieldbo keeps trying",
        "the broker at mqtt://localhost:1883 is back",
    ]
    caplog.clear()
    connection.close()
    client._lost(client._client, None)
    assert not caplog.records


@pytest.fixture
def connecting(opened):
    """Return a connection whose broker has not answered yet, its client, and the list of its reports."""
    opened[1]._was_ready = False
    opened[1]._ready.clear()
    return opened


def test_a_broker_without_mqtt_5_is_asked_again_with_3_1_1_and_only_then_named(connecting):
    _, client, reports = connecting
    first = client._client
    client._on_connect(first, None, None, Reason(0x84), None)
    assert client._client is not first
    assert not reports
    client._on_connect(client._client, None, None, Reason(0x84), None)
    assert "rejected the connection" in reports[0].why


def test_a_broker_of_mqtt_5_alone_that_was_silent_once_is_asked_with_5_again(connecting):
    _, client, reports = connecting
    client._lost(client._client, None)
    assert client._is_3
    client._on_connect(client._client, None, None, Reason(0x84), None)
    assert not client._is_3
    assert not reports


def test_what_answers_to_no_version_is_named(connecting):
    _, client, reports = connecting
    client._lost(client._client, None)
    assert not reports
    client._lost(client._client, None)
    assert "closed the connection without an answer: perhaps it is no MQTT broker, or expects TLS" in (
        reports[0].why
    )


def test_a_broker_that_shuts_down_is_not_taken_for_a_robot_that_went_offline(opened, clock):
    connection, client, reports = opened
    status(connection, online=False)
    client._lost(client._client, None)
    assert told(reports, clock) == []


def test_a_robot_that_goes_offline_is_reported_while_the_broker_is_there(opened, clock):
    connection, _, reports = opened
    status(connection, online=False)
    assert told(reports, clock) == [Unreachable]


def test_a_robot_that_was_offline_before_is_reported_at_once_and_a_restart_in_order(opened, clock):
    connection, _, reports = opened
    status(connection, online=False, retained=True)
    assert [type(report) for report in reports] == [Unreachable]
    reports.clear()
    status(connection, online=False)
    status(connection, online=True)
    assert told(reports, clock) == [Unreachable, Heartbeat]


# -- access ----------------------------------------------------------------------------------------------


class Reason:
    """Stands in for paho's reason code."""

    is_failure = True

    def __init__(self, value):
        self.value = value

    def __str__(self):
        return "Bad user name or password" if self.value == 0x86 else "Server busy"


def connected(monkeypatch, link, reason):
    """Connect to a broker that answers with a reason; return the error, and how long it took."""
    monkeypatch.setattr(MqttClient, "_new_client", lambda client: Paho())

    def answer(client, *_, **__):
        client._on_connect(client._client, None, None, reason, None)

    begin = MqttClient.__init__

    def begin_and_answer(client, *arguments, **more):
        begin(client, *arguments, **more)
        answer(client)

    monkeypatch.setattr(MqttClient, "__init__", begin_and_answer)
    settings = VehicleFile(format=1, link={"kind": "mqtt"}, watch={"connect_s": 1.0})
    clock = SteppedClock()
    robot = Remote(small_mission(), 0, link, settings, "a", clock)
    with pytest.raises(VehicleError) as error:
        robot.connect()
    return " ".join(str(error.value).split()), clock.now_s()


def test_a_rejected_login_fails_at_once_and_names_user_and_password(monkeypatch):
    why, took_s = connected(monkeypatch, Mqtt(user_from="U", password_from="P"), Reason(0x86))
    assert "the broker at mqtt://localhost:1883 rejected the login: Bad user name or password" in why
    assert "fix: check the user and the password in [link]" in why
    assert took_s < 0.1

    why, _ = connected(monkeypatch, Mqtt(), Reason(0x87))
    assert "fix: name the user and the password in [link]" in why


def test_a_broker_that_is_busy_is_tried_again(monkeypatch):
    why, took_s = connected(monkeypatch, Mqtt(), Reason(0x89))
    assert "rejected the connection: Server busy" in why
    assert took_s >= 1.0


@pytest.mark.parametrize(
    ("host", "fix"),
    [
        ("mqtt://localhost", 'leave out the scheme mqtt://: write host = "localhost"'),
        ("mqtts://10.0.0.7:8883", 'write host = "10.0.0.7" and tls = true'),
    ],
)
def test_a_host_with_a_scheme_is_an_error(host, fix):
    with pytest.raises(InputError, match="the name or the address") as error:
        Mqtt(host=host)
    assert fix in error.value.fix
