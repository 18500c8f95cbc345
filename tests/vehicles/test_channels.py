"""Telemetry channels: what robots and weather stations report, and what of it reaches a run."""

import json
import math
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from fieldbo.errors import InputError
from fieldbo.messages import Telemetry, from_plain, to_plain
from fieldbo.mission.rules import Hold
from fieldbo.testing import SteppedClock, small_mission
from fieldbo.vehicles.mqtt.client import MqttClient
from fieldbo.vehicles.mqtt.link import Mqtt
from fieldbo.vehicles.mqtt.protocol import Codec
from fieldbo.vehicles.remote.link import ChannelReport, Connection, Heartbeat, Link, PositionReport
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, VehicleFile, Watch
from fieldbo.vehicles.remote.usable import MOST_CHANNELS
from fieldbo.vehicles.simulators import Schedule

WIND = Hold("wind", above=8)
VOLTAGE = Hold("voltage", below=11.2, release_above=11.8)


# -- messages --------------------------------------------------------------------------------------------


def test_channels_survive_the_plain_form_and_old_telemetry_has_none():
    heard = Telemetry(0, [1.0, 2.0], 5.0, 1.0, channels={"wind": 7.25})
    assert from_plain(json.loads(json.dumps(to_plain(heard)))).channels == {"wind": 7.25}
    old = to_plain(heard)
    del old["channels"]
    assert from_plain(old).channels is None
    assert Telemetry(0, [1.0, 2.0], 5.0, 1.0, channels={}).channels is None
    for rubbish in (math.nan, math.inf, "strong"):
        with pytest.raises(InputError, match="channels"):
            Telemetry(0, [1.0, 2.0], 5.0, 1.0, channels={"wind": rubbish})


# -- a robot's reports -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quiet(Link):
    """A link on which a test speaks."""

    opened: list = field(default_factory=list)
    address = "here"

    def open(self, mission, ground, on_report):
        self.opened.append(on_report)
        return Deaf()


class Deaf(Connection):
    def go(self, goal): ...
    def cancel(self, goal): ...
    def hold(self): ...
    def close(self): ...


SETTINGS = VehicleFile.model_construct(
    format=1,
    title="",
    link={},
    frame=None,
    watch=Watch(silence_s=0.3, connect_s=2.0),
    battery=Battery(),
    reports=Reports(),
    arrival=Arrival(),
)


@pytest.fixture
def on_air():
    """A vehicle over a link, and what the test may say on it."""
    link = Quiet()
    mission = replace(small_mission(), holds=(WIND, VOLTAGE))
    vehicle = Remote(mission, 0, link, SETTINGS, "s", SteppedClock())
    vehicle.link.opened.clear()
    opened = link.open

    def open_and_say(mission, ground, on_report):
        connection = opened(mission, ground, on_report)
        on_report(Heartbeat())
        return connection

    object.__setattr__(link, "open", open_and_say)
    with vehicle:
        vehicle.events(0.0)
        yield vehicle, link.opened[0]


def channels_in(events):
    return [event.channels for event in events if isinstance(event, Telemetry)]


def test_a_value_beyond_a_limit_is_told_at_once_and_others_with_the_next_telemetry(on_air):
    vehicle, say = on_air
    say(ChannelReport("wind", 5.0))
    say(ChannelReport("pressure", 1013.0))
    assert channels_in(vehicle.events(0.0)) == []
    say(ChannelReport("wind", 8.5))
    assert channels_in(vehicle.events(0.0)) == [{"pressure": 1013.0, "wind": 8.5}]
    say(ChannelReport("wind", 9.5))
    assert channels_in(vehicle.events(0.0)) == []


def test_a_gust_between_two_calm_values_is_told(on_air):
    vehicle, say = on_air
    for value in (5.0, 9.0, 5.0):
        say(ChannelReport("wind", value))
    assert channels_in(vehicle.events(0.0)) == [{"wind": 9.0}]


def test_a_value_that_flaps_makes_no_flood_of_telemetry(on_air):
    vehicle, say = on_air
    for k in range(500):
        say(ChannelReport("wind", 9.0 if k % 2 else 5.0))
    assert len(channels_in(vehicle.events(0.0))) <= 2
    vehicle.clock.sleep(0.2)
    say(Heartbeat())
    assert len(channels_in(vehicle.events(0.0))) <= 1


def test_a_weather_station_is_no_sign_of_life_of_a_robot(on_air):
    vehicle, say = on_air
    vehicle.clock.sleep(0.5)
    say(ChannelReport("wind", 9.0))
    assert vehicle.events(0.0) == []
    say(Heartbeat())
    assert channels_in(vehicle.events(0.0)) == [{"wind": 9.0}]


@pytest.mark.parametrize(
    "report",
    [
        ChannelReport("wind", "strong"),
        ChannelReport("wind", math.inf),
        ChannelReport("wind", 1e300),
        ChannelReport("wind", [1.0]),
        ChannelReport("", 1.0),
        ChannelReport("w" * 101, 1.0),
        ChannelReport("\x1b[2J", 1.0),
        ChannelReport(None, 1.0),
        ChannelReport(3, 1.0),
    ],
)
def test_rubbish_on_a_channel_is_a_doubt_and_the_value_before_stays(on_air, report):
    vehicle, say = on_air
    for _ in range(3):
        say(report)
    say(ChannelReport("wind", math.nan))  # unknown is no rubbish
    say(ChannelReport("wind", 9.0))
    (heard,) = (event for event in vehicle.events(0.0) if isinstance(event, Telemetry))
    assert heard.channels == {"wind": 9.0}
    assert len(heard.doubts) == 1


def test_a_robot_with_very_many_channels_can_not_crowd_out_those_that_holds_watch(on_air):
    vehicle, say = on_air
    for k in range(1000):
        say(ChannelReport(f"channel {k}", float(k)))
    say(ChannelReport("wind", 9.0))
    (heard,) = (event for event in vehicle.events(0.0) if isinstance(event, Telemetry))
    assert len(heard.channels) == MOST_CHANNELS + 1
    assert heard.channels["wind"] == 9.0
    assert heard.doubts == (f"more than {MOST_CHANNELS} channels: others are ignored",)


def test_rubbish_on_very_many_channels_is_doubted_a_bounded_number_of_times(on_air):
    vehicle, say = on_air
    for k in range(1000):
        say(ChannelReport(f"channel {k}", math.inf))
    say(ChannelReport("wind", 9.0))
    (heard,) = (event for event in vehicle.events(0.0) if isinstance(event, Telemetry))
    assert heard.channels == {"wind": 9.0}
    assert len(heard.doubts) == MOST_CHANNELS + 1


def test_a_watched_channel_that_falls_silent_is_a_doubt(on_air):
    vehicle, say = on_air
    say(ChannelReport("voltage", 12.0))
    vehicle.clock.sleep(200.0)
    say(ChannelReport("wind", 5.0))
    say(Heartbeat())
    (heard,) = (event for event in vehicle.events(0.0) if isinstance(event, Telemetry))
    assert len(heard.doubts) == 1
    assert "nothing was heard from the channel voltage" in heard.doubts[0]


def test_values_heard_before_a_run_is_resumed_are_told_again(on_air):
    vehicle, say = on_air
    say(ChannelReport("wind", 9.0))
    vehicle._listen(0.0)
    vehicle.resume([], [])
    vehicle.catch_up(10.0)
    assert channels_in(vehicle.events(0.0)) == [{"wind": 9.0}]


# -- MQTT ------------------------------------------------------------------------------------------------


def test_telemetry_over_mqtt_may_have_channels():
    codec = Codec(small_mission().world.domain.axes)
    body = {"position": {"x": 1, "y": 2}, "channels": {"wind": 7.2, "gust": None, "sky": "grey"}}
    alive, position, *channels = codec.reports("telemetry", body)
    assert alive == Heartbeat()
    assert isinstance(position, PositionReport)
    assert channels[0] == ChannelReport("wind", 7.2)
    assert math.isnan(channels[1].value)
    assert channels[2] == ChannelReport("sky", math.inf)


@pytest.mark.parametrize("rubbish", [3, "wind", [1], True])
def test_channels_that_are_no_object_leave_the_rest_of_the_telemetry(rubbish):
    codec = Codec(small_mission().world.domain.axes)
    _, position, odd = codec.reports("telemetry", {"position": {"x": 1, "y": 2}, "channels": rubbish})
    assert position.position.tolist() == [1.0, 2.0]
    assert odd == ChannelReport("", odd.value)


class Paho:
    """Stands in for paho's client; keeps the topics."""

    def __init__(self):
        self.topics = []

    def connect_async(self, *arguments, **more): ...
    def loop_start(self): ...
    def disconnect(self):
        return 1

    def subscribe(self, topics):
        self.topics += [topic for topic, _ in topics]


def test_a_topic_of_a_weather_station_is_a_channel_and_not_the_robots(monkeypatch):
    paho, heard = Paho(), []
    monkeypatch.setattr(MqttClient, "_new_client", lambda client: paho)
    sources = {
        "wind": "weather/wind",
        "gusts": "weather/station#gust_speed",
        "rain": "weather/station#rain",
        "level": "telemetry",
        "load": "fieldbo/robot/telemetry#load",
    }
    connection = Mqtt(channels=sources).open(small_mission(), None, heard.append)
    client = connection._client

    def publish(topic, payload, retain=False):
        heard.clear()
        client._received(paho, None, SimpleNamespace(topic=topic, payload=payload, retain=retain))
        return heard

    client._on_connect(paho, None, None, SimpleNamespace(is_failure=False), None)
    assert {"weather/wind", "weather/station", "telemetry", "fieldbo/robot/telemetry"} <= set(paho.topics)
    assert len(set(paho.topics)) == len(paho.topics)
    assert publish("weather/wind", b"7.2") == [ChannelReport("wind", 7.2)]
    assert publish("weather/wind", b"7.2", retain=True) == []
    assert publish("weather/wind", b"\xff") == [ChannelReport("wind", math.inf)]
    assert publish("weather/wind", b'{"wind": 3}') == [ChannelReport("wind", math.inf)]
    gusts, rain = publish("weather/station", b'{"gust_speed": 9.5}')
    assert (gusts, math.isnan(rain.value)) == (ChannelReport("gusts", 9.5), True)
    assert publish("telemetry", b"3") == [ChannelReport("level", 3.0)]
    assert publish("fieldbo/robot/telemetry", b'{"load": 0.5}') == [Heartbeat(), ChannelReport("load", 0.5)]
    connection.close()


@pytest.mark.parametrize("source", ["", "weather/+", "weather//wind", "#", "weather#", "a#b#c", "/wind"])
def test_an_invalid_topic_of_a_channel_is_an_error(source):
    with pytest.raises(InputError, match=r"link\.channels\.wind"):
        Mqtt(channels={"wind": source})


@pytest.mark.parametrize("name", ["", "w" * 101, "wi\nnd"])
def test_an_invalid_name_of_a_channel_is_an_error(name):
    with pytest.raises(InputError, match="a channel named"):
        Mqtt(channels={name: "wind"})


# -- simulated robots ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "wind", "=3", "wind=", "wind=a", "wind=3,4", "wind=3,5:nan", "wind=3,9:1,5:2"]
)
def test_an_invalid_schedule_of_a_channel_is_an_error(text):
    with pytest.raises(InputError, match="--channel"):
        Schedule.parse(text)
