"""A log for Foxglove: orders, readings, battery and belief, on the clock of the run.

The time of a message is the start of the run plus the vehicle's clock, so that an hour of a simulated mission
takes an hour in the log. Places are in metres in the local coordinate frame ``map`` (x east, y north, z up),
oriented by the run's frame or, without one, by `Frame.usual`. For a domain that is not a place, the log holds
settings instead of poses, and no belief.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.belief.confidence import moments
from fieldbo.belief.question import Optimum
from fieldbo.domain.frame import ground_of
from fieldbo.messages import Observation, Order, Telemetry
from fieldbo.record.store import ORDERS, WITHOUT_MESSAGE, Row
from fieldbo.results.answers import PROBABILITY
from fieldbo.runs.export.missing import missing
from fieldbo.runs.export.recorded import Recorded
from fieldbo.runs.export.schemas import schemas

if TYPE_CHECKING:
    from foxglove import messages

    from fieldbo.runs.export.places import Places

_MOST_BELIEFS = 50  # per log; 50 beliefs over 2,500 sites take 1.5 MB
_NS = 1_000_000_000

Message = tuple[int, str, Any]
"""Time in nanoseconds since 1970, topic, and content."""


def files(run: Recorded) -> dict[str, bytes]:
    """Return the log by file name.

    Raises
    ------
    InputError
        foxglove-sdk is not installed.
    """
    try:
        import foxglove  # noqa: F401
    except ModuleNotFoundError:
        raise missing("mcap", "foxglove-sdk", "mcap") from None
    story = _Story(run)
    return {"run.mcap": _encode(run, sorted(story.messages(), key=lambda message: message[0]))}


def _encode(run: Recorded, timeline: Iterable[Message]) -> bytes:
    """Return messages, sorted by time, as an MCAP file."""
    from foxglove import Channel, Context, channels, messages, open_mcap

    kinds = {
        messages.PoseInFrame: channels.PoseInFrameChannel,
        messages.PosesInFrame: channels.PosesInFrameChannel,
        messages.LocationFix: channels.LocationFixChannel,
        messages.Grid: channels.GridChannel,
        messages.PointCloud: channels.PointCloudChannel,
    }
    events = (row.message for row in run.rows if row.kind == "observation")
    names = {name for event in events if isinstance(event, Observation) for name in event.channels or {}}
    plain = schemas(run.mission.world.domain.axes, sorted(names))
    context, out, open_channels = Context(), io.BytesIO(), dict[str, Any]()
    with open_mcap(out, context=context) as log:
        log.write_metadata("fieldbo", {"run": run.name, "mission": run.mission.name})
        for when, topic, message in timeline:
            if topic not in open_channels:
                open_channels[topic] = (
                    Channel(topic, schema=plain[topic], context=context)
                    if topic in plain
                    else kinds[type(message)](topic, context=context)
                )
            open_channels[topic].log(message, log_time=when)
    return out.getvalue()


class _Story:
    """The messages of a run. A message without a time gets the latest time so far."""

    def __init__(self, run: Recorded) -> None:
        self.run, self.world = run, run.mission.world
        self.began = round(run.began.timestamp() * 1000) * (_NS // 1000)
        queries = sum(row.kind == "query" for row in run.rows)
        self.every = max(1, math.ceil(queries / _MOST_BELIEFS))
        self.places = self._places()
        self.clock_s = 0.0

    def _places(self) -> Places | None:
        """Return the converter from sites to places; None if the domain is not a place."""
        from fieldbo.runs.export.places import Places

        ground = self.run.ground or ground_of(self.world.domain)
        return None if ground is None else Places(self.world.domain, ground)

    def messages(self) -> Iterator[Message]:
        """Yield the messages of the whole log."""
        events = done = shown = 0
        agent: Agent | None = None
        for row, agent in self.run.steps():
            if row.kind in ORDERS:
                yield from self._order(row)
                continue
            message = None if row.kind in WITHOUT_MESSAGE else row.message
            times = [vehicle.time_s for vehicle in agent.vehicles]
            self.clock_s = max(self.clock_s, *times, getattr(message, "time_s", None) or 0.0)
            yield self._event(row)
            if len(agent.history) == events:
                continue  # the agent ignored the event: a repetition, or of an order from elsewhere
            events, event = len(agent.history), agent.history[-1]
            if isinstance(event, Observation | Telemetry):
                yield from self._report(event, agent)
            if isinstance(event, Observation) and event.last and len(event.values):
                done += 1
                if done % self.every == 0:
                    shown = events
                    yield from self._belief(agent)
        if agent is not None and events > shown:
            yield from self._belief(agent)

    def _order(self, row: Row) -> Iterator[Message]:
        """Yield an order as it was issued."""
        order = row.message
        assert isinstance(order, Order)
        when = self._ns(self.clock_s)
        fields = {
            "order": order.id,
            "kind": row.kind,
            "vehicle": order.vehicle,
            "site": None if order.site is None else self._by_axis(order.site),
            "level": getattr(order, "level", None),
            "expected_cost": order.expected_cost,
            "expected_time_s": order.expected_time_s,
            "route": [self._by_axis(point) for point in order.route],
        }
        yield when, "/goal", _known(fields)
        if self.places is not None and order.site is not None:
            yield when, "/goal/pose", self.places.pose(order.site, _stamp(when))
            if len(order.route):
                yield when, "/goal/route", self.places.poses(order.route, _stamp(when))

    def _event(self, row: Row) -> Message:
        """Return a row other than an order as it is in the record."""
        body = row.body.get("message") or {
            k: row.body[k] for k in ("vehicle", "reason", "text", "session") if k in row.body
        }
        fields = {
            "seq": row.seq,
            "time_utc": row.time_utc,
            "kind": row.kind,
            "order": row.order,
            "body": body,
        }
        return self._ns(self.clock_s), "/event", _known(fields)

    def _report(self, event: Observation | Telemetry, agent: Agent) -> Iterator[Message]:
        """Yield readings, positions, and the vehicle's ledger after an event."""
        number = agent.issued[event.order].order.vehicle if isinstance(event, Observation) else event.vehicle
        vehicle = agent.vehicles[number]
        ledger, several = vehicle.ledger, vehicle.spec.batteries > 1
        at = None
        if isinstance(event, Observation):
            for k, (at, seconds) in enumerate(zip(event.sites, event.times_s.tolist(), strict=True)):
                yield self._reading(event, k)
                yield from self._position(at, seconds)
        if at is None or not np.array_equal(at, event.position):
            yield from self._position(event.position, self.clock_s if event.time_s is None else event.time_s)
        fields = {
            "vehicle": number,
            "battery": vehicle.battery_number if several else None,
            "remaining": ledger.left,
            "spent": ledger.spent,
            "reported": getattr(event, "remaining", None),
            "unit": self.world.cost_unit,
        }
        yield self._ns(self.clock_s), "/battery", _known(fields)

    def _reading(self, event: Observation, k: int) -> Message:
        seconds, quantity = float(event.times_s[k]), self.world.quantity
        fields = {
            "order": event.order,
            "site": self._by_axis(event.sites[k]),
            "value": float(event.values[k]),
            "unit": quantity.unit,
            "noise_sd": math.sqrt(event.noise_variances[k]),
            "time_s": seconds,
            "channels": _known({name: float(x[k]) for name, x in (event.channels or {}).items()}),
        }
        return self._ns(seconds), "/reading", _known(fields)

    def _position(self, site: Array, seconds: float) -> Iterator[Message]:
        """Yield a pose, also in degrees if the origin is known; or the settings of a factory cell."""
        when = self._ns(seconds)
        if self.places is None:
            yield when, "/setting", {"setting": self._by_axis(site)}
            return
        yield when, "/pose", self.places.pose(site, _stamp(when))
        if self.places.ground.origin is not None:
            yield when, "/fix", self.places.fix(site, _stamp(when))

    def _belief(self, agent: Agent) -> Iterator[Message]:
        """Yield the belief over the sites, in the user's unit; nothing for a factory cell."""
        if self.places is None:
            return
        surface, scale = agent.stated
        mean, sd = moments(surface, scale)
        layers = {"mean": mean, "sd": sd}
        question = agent.mission.question
        if not isinstance(question, Optimum):
            threshold = question.level(float(surface.mean.max()), scale)
            layers[PROBABILITY[question.side]] = surface.exceedance(threshold)
        when = self._ns(self.clock_s)
        yield when, "/belief", self.places.belief(layers, _stamp(when))

    def _by_axis(self, site: Array) -> dict[str, float]:
        names = [axis.name for axis in self.world.domain.axes]
        return _known(dict(zip(names, site.tolist(), strict=True)))

    def _ns(self, seconds: float) -> int:
        return self.began + round(seconds * _NS)


def _stamp(when: int) -> messages.Timestamp:
    from foxglove import messages

    return messages.Timestamp(*divmod(when, _NS))


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Drop None and NaN, which JSON numbers can't express."""
    return {k: v for k, v in fields.items() if v is not None and not (isinstance(v, float) and math.isnan(v))}
