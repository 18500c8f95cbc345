"""The link to a robot over MQTT; `fieldbo.vehicles.mqtt.protocol` describes the messages."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field, PositiveFloat

from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission
from fieldbo.validation import settings
from fieldbo.vehicles.mqtt.client import Broker, MqttClient, Presence
from fieldbo.vehicles.mqtt.protocol import FROM_ROBOT, Codec, channel_value, json_object
from fieldbo.vehicles.remote.channels import ChannelSources
from fieldbo.vehicles.remote.contact import BEAT_S, Claim
from fieldbo.vehicles.remote.gauge import Scale, ShareReader
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    Capacity,
    ChannelReport,
    Connection,
    Goal,
    GoalRejected,
    GoalResult,
    Heartbeat,
    Link,
    OnReport,
    Reconnected,
    Report,
    Taken,
    Unreachable,
)

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessageInfo

_WILL_S = 0.5
"""How long to wait before a robot counts as offline: a broker that shuts down says so of each client in turn,
and then leaves itself."""

_TURN_S = 0.1
"""Interval at which a planner checks its claim."""


@settings("link")
class Mqtt(Broker, Link):
    """A link to a robot over MQTT."""

    topic: str = "fieldbo/robot"
    """Prefix of the robot's topics, different for each robot."""
    bytes_per_s: PositiveFloat | None = None
    """What the network carries from the robot, in bytes per second, such as 250 for a satellite modem of 2000
    bit/s: a sensor that reads on the way more often is rejected. Default: not limited."""
    battery_scale: Scale | None = None
    """What battery_share of a full battery is: 1, as the protocol has it, or 100. By default, 1 until a value
    above 1 is reported, and 100 from then on."""
    channels: ChannelSources = Field(default_factory=dict)
    """Topics of this broker that hold other quantities, by the channel's name, for example { wind =
    "weather/wind", gusts = "weather/station#gust_speed" }: a plain number, or, with # and a key, a JSON
    object. The robot's own telemetry may have channels, too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, source in self.channels.items():
            topic, key = _parts_of(source)
            if not all(topic.split("/")) or set("+\0") & set(topic) or "#" in key or source.endswith("#"):
                raise InputError(
                    f"{name} = {source!r}",
                    expected="a topic without +, or a topic, # and a key, for example weather/station#wind",
                    where=f"link.channels.{name}",
                )
        if not all(self.topic.split("/")) or set("+#\0") & set(self.topic) or self.topic.startswith("$"):
            raise InputError(
                f"topic = {self.topic!r}",
                expected="names separated by /, without + and #, for example fieldbo/boat",
                where="link.topic",
            )

    @property
    def address(self) -> str:
        """The broker's URL and the topic."""
        return f"{self.url}/{self.topic}"

    def capacity(self, domain: Domain) -> Capacity | None:
        if self.bytes_per_s is None:
            return None
        return Capacity(self.bytes_per_s, Codec(domain.axes).reading_bytes)

    def open(self, mission: Mission, ground: Ground | None, on_report: OnReport) -> Connection:
        return _Connection(self, Codec(mission.world.domain.axes, ground), on_report)


def _parts_of(source: str) -> tuple[str, str]:
    """Return the topic of a channel and the key in its messages, empty for a plain number."""
    topic, _, key = source.partition("#")
    return topic, key


class _Connection(Connection):
    """When the robot or the broker is back, reports it, asks about goals, and repeats a cancel or a hold.

    Without a claim it only listens and sends. With one, it sends nothing until the claim is held, and while
    the robot may obey another planner it reports only what concerns goals of its own session.
    """

    def __init__(self, link: Mqtt, codec: Codec, on_report: OnReport) -> None:
        self._link, self._codec, self._on_report = link, codec, on_report
        self._last_message: tuple[str, dict[str, Any]] | None = None
        self._last_sent: MQTTMessageInfo | None = None
        self._unanswered: list[str] = []
        self._robot_away = False
        self._offline: deque[Unreachable] = deque(maxlen=1)
        self._claim: Claim | None = None
        self._closing = threading.Event()
        self._shares = ShareReader(
            f"the robot's battery_share on {link.topic}", link.battery_scale, on_report
        )
        self._client = self._open(FROM_ROBOT, self._repeat)

    def _open(
        self, topics: Sequence[str], on_ready: Callable[[], object], presence: Presence | None = None
    ) -> MqttClient:
        return MqttClient(
            self._link,
            self._link.topic,
            subscribe=topics,
            on_message=self._receive,
            on_ready=on_ready,
            on_failure=lambda why: self._on_report(Unreachable(why)),
            presence=presence,
            on_rejected=lambda why: self._on_report(Taken(why, self._login)),
            others=[_parts_of(source)[0] for source in self._link.channels.values()],
            on_other=self._take_channels,
        )

    @property
    def _login(self) -> str:
        """How to log in after the broker has rejected it."""
        if self._link.user_from is None and self._link.cert_file is None:
            return "name the user and the password in [link]: user_from and password_from"
        return "check the user and the password in [link]: user_from and password_from"

    # -- the claim -------------------------------------------------------------------------------------

    def claim(self, session: str, mission: str) -> None:
        """Connect again, as the planner: a last will belongs to its connection."""
        self._client.close()
        claim = self._claim = Claim(session, mission)
        client = f"{self._link.topic}/planner/{session}"
        presence = Presence("planner", client, offline=claim.withdrawn, at_once=False)
        topics = (*FROM_ROBOT, "planner")
        self._client = self._open(topics, lambda: claim.listen(time.monotonic()), presence)
        threading.Thread(target=self._beat, args=(claim,), name=f"mqtt {client}", daemon=True).start()

    @property
    def claimed(self) -> bool:
        return self._claim is None or self._claim.held

    def _beat(self, claim: Claim) -> None:
        """Make the claim when it is due, and repeat it."""
        beat_s = 0.0
        while not self._closing.wait(_TURN_S):
            held, now_s = claim.held, time.monotonic()
            if self._client.ready and claim.due(now_s):
                self._client.announce(claim.body)
                if not held:
                    self._repeat()
            elif claim.held and now_s >= beat_s:
                beat_s = now_s + BEAT_S
                self._client.publish("planner", claim.body, qos=0)

    def _take_claim(self, body: Mapping[str, Any], *, retained: bool) -> None:
        if self._claim is None:
            return
        report = self._claim.take(body, retained=retained, now_s=time.monotonic())
        if report is not None:
            self._on_report(report)

    # -- requests --------------------------------------------------------------------------------------

    def go(self, goal: Goal) -> None:
        if goal.id not in self._unanswered:
            self._unanswered.append(goal.id)
        if self._claim is not None:
            self._claim.name(goal.id.rpartition("/")[0])
        self._send("goal", self._codec.goal(goal))

    def cancel(self, goal: str) -> None:
        self._send("cancel", {"id": goal})

    def hold(self) -> None:
        self._unanswered.clear()
        self._send("hold", {})

    def ask(self, goal: str) -> bool:
        """Ask now and after each break; the goal under way stays the last message, to be sent again."""
        if goal not in self._unanswered:
            self._unanswered.append(goal)
        self._publish("ask", {"id": goal})
        return True

    def unsent(self) -> str:
        if not self._client.ready:
            return f"the broker at {self._link.url} cannot be reached"
        if not self.claimed:
            assert self._claim is not None
            return f"{self._claim.rival or 'another planner'} may have claimed it"
        if self._robot_away:
            return "the robot's program is offline"
        confirmed = self._last_sent is not None and self._last_sent.is_published()
        return "" if confirmed else f"the broker at {self._link.url} has not confirmed it"

    def close(self) -> None:
        self._closing.set()
        self._client.close()

    def _send(self, name: str, body: dict[str, Any]) -> None:
        self._last_message, self._last_sent = (name, body), None
        self._publish(name, body)

    def _publish(self, name: str, body: dict[str, Any]) -> None:
        if self.claimed:
            self._last_sent = self._client.publish(name, body)

    def _repeat(self) -> None:
        """Ask about all goals: before the one under way is sent again, its new route has to be known."""
        if not self.claimed:
            return  # it follows when the claim is held
        last = self._last_message
        for goal in list(self._unanswered):
            self._publish("ask", {"id": goal})
        if last is not None and last[0] == "goal":
            self._on_report(Reconnected())
        elif last is not None:
            self._publish(*last)

    # -- messages --------------------------------------------------------------------------------------

    def _receive(self, name: str, payload: bytes, retained: bool) -> None:
        """Pass on the reports in a message; a retained one is old, and no sign of life."""
        body = json_object(name, payload)
        if name == "planner":
            self._take_claim(body, retained=retained)
            return
        for report in self._codec.reports(name, body):
            if name == "status":
                self._tell_offline()
                self._robot_away = isinstance(report, Unreachable)
                if isinstance(report, Unreachable) and not retained:
                    self._offline.append(report)
                    timer = threading.Timer(_WILL_S, self._tell_offline)
                    timer.daemon = True
                    timer.start()
                    continue
            if not isinstance(report, Unreachable) and (retained or self._is_doubtful(report)):
                continue
            if isinstance(report, GoalRejected):
                self._forget(report.goal)
            if isinstance(report, GoalResult) and report.last and not report.corrects:
                self._forget(report.goal)
            if isinstance(report, Heartbeat) and name == "status":
                self._repeat()
            if isinstance(report, BatteryReport):
                self._on_report(replace(report, share=self._shares.read(report.share)))
            else:
                self._on_report(report)

    def _take_channels(self, topic: str, payload: bytes, retained: bool) -> None:
        """Report the channels that a message holds; a retained one is old."""
        for name, source in self._link.channels.items():
            of, key = _parts_of(source)
            if of == topic and not retained:
                self._on_report(ChannelReport(name, channel_value(payload, key)))

    def _tell_offline(self) -> None:
        """Report that the robot is offline, unless it was the broker that left."""
        try:
            offline = self._offline.pop()
        except IndexError:
            return  # told already
        if self._client.ready and not self._closing.is_set():
            self._on_report(offline)

    def _is_doubtful(self, report: Report) -> bool:
        """Return True if a report may be about what the robot does for another planner."""
        if self._claim is None or not self._claim.doubtful:
            return False
        ours = f"#{self._claim.session}"
        return not (isinstance(report, GoalResult | GoalRejected) and report.goal.endswith(ours))

    def _forget(self, goal: str) -> None:
        """Stop repeating messages about a goal that is settled."""
        if goal in self._unanswered:
            self._unanswered.remove(goal)
        if self._last_message is not None and self._last_message[1].get("id") == goal:
            self._last_message = None
