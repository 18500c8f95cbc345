"""A log for Foxglove: orders, readings, battery and belief, on the clock of the run.

The time of a message is the start of the run plus the vehicle's clock, so that an hour of a simulated mission
takes an hour in the log. Places are in metres in the local coordinate frame ``map`` (x east, y north, z up),
oriented by the run's frame or, without one, by `Frame.usual`. For a domain that is not a place, the log holds
settings instead of poses, and no belief.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from foxglove import Channel, Context, channels, messages, open_mcap
from scipy.spatial.transform import Rotation

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.belief.confidence import moments
from fieldbo.belief.question import Optimum
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground, ground_of
from fieldbo.messages import Observation, Order, Telemetry
from fieldbo.record.store import ORDERS, WITHOUT_MESSAGE, Row
from fieldbo.results.answers import PROBABILITY
from fieldbo.runs.replay import Recorded

_MOST_BELIEFS = 50  # per log; 50 beliefs over 2,500 sites take 1.5 MB
_NS = 1_000_000_000

Message = tuple[int, str, Any]
"""Time in nanoseconds since 1970, topic, and content."""


def encode_mcap(run: Recorded) -> dict[str, bytes]:
    """Return the log by file name."""
    story = _Story(run)
    return {"run.mcap": _encode(run, sorted(story.messages(), key=lambda message: message[0]))}


def _encode(run: Recorded, timeline: Iterable[Message]) -> bytes:
    """Return messages, sorted by time, as an MCAP file."""
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
    return messages.Timestamp(*divmod(when, _NS))


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Drop None and NaN, which JSON numbers can't express."""
    return {k: v for k, v in fields.items() if v is not None and not (isinstance(v, float) and math.isnan(v))}


_TEXT, _NUMBER, _COUNT = ({"type": kind} for kind in ("string", "number", "integer"))


def schemas(axes: Sequence[Axis], channels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the schemas by topic.

    Parameters
    ----------
    axes : sequence of Axis
        Axes of the domain.
    channels : sequence of str
        Names of further measured quantities.
    """
    coordinates = {axis.name: _NUMBER | {"description": axis.label} for axis in axes}
    site = _table("Coordinates by axis", **coordinates)
    read = _table("Further quantities measured at the same site", **dict.fromkeys(channels, _NUMBER))
    return {
        "/goal": _schema(
            "Order",
            "An order as it was issued",
            order=_TEXT,
            kind=_TEXT,
            vehicle=_COUNT,
            site=site,
            level=_COUNT,
            expected_cost=_NUMBER,
            expected_time_s=_NUMBER,
            route={"type": "array", "description": "Points to pass; empty if straight", "items": site},
        ),
        "/reading": _schema(
            "Reading",
            "A reading at its actual site",
            order=_TEXT,
            site=site,
            value=_NUMBER,
            unit=_TEXT,
            noise_sd=_NUMBER,
            time_s=_NUMBER,
            channels=read,
        ),
        "/setting": _schema("Setting", "Values of the variables, set or observed", setting=site),
        "/battery": _schema(
            "Battery",
            "Battery left and spent by the agent's ledger, and the level reported by the vehicle",
            vehicle=_COUNT,
            battery=_COUNT,
            remaining=_NUMBER,
            spent=_NUMBER,
            reported=_NUMBER,
            unit=_TEXT,
        ),
        "/event": _schema(
            "Event",
            "A row of the record other than an order",
            seq=_COUNT,
            time_utc=_TEXT,
            kind=_TEXT,
            order=_TEXT,
            body=_table("Content of the row"),
        ),
    }


def _table(description: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": fields}


def _schema(name: str, description: str, **fields: Any) -> dict[str, Any]:
    return {"title": f"fieldbo.{name}", **_table(description, **fields)}


_MAP = "map"
_REAL = np.dtype("<f4")
_PLACED = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class Places:
    """Converts the sites of a domain on the ground to messages.

    Parameters
    ----------
    domain : Domain
    ground : Ground
    """

    domain: Domain
    ground: Ground

    def pose(self, site: Array, at: messages.Timestamp) -> messages.PoseInFrame:
        """Return the pose at a site (d,). The heading is unknown and given as east."""
        return messages.PoseInFrame(timestamp=at, frame_id=_MAP, pose=_pose(self.ground.local(site)[0]))

    def poses(self, sites: Array, at: messages.Timestamp) -> messages.PosesInFrame:
        """Return the poses at sites (k, d), headings as in `pose`."""
        poses = [_pose(place) for place in self.ground.local(sites)]
        return messages.PosesInFrame(timestamp=at, frame_id=_MAP, poses=poses)

    def fix(self, site: Array, at: messages.Timestamp) -> messages.LocationFix:
        """Return a site (d,) in degrees; this requires a known origin."""
        latitude, longitude, altitude = self.ground.geodetic(site)[0].tolist()
        return messages.LocationFix(
            timestamp=at, frame_id=_MAP, latitude=latitude, longitude=longitude, altitude=altitude
        )

    def belief(
        self, layers: Mapping[str, Array], at: messages.Timestamp
    ) -> messages.Grid | messages.PointCloud:
        """Return values (N,) at the sites as a grid if the domain is a 2-D grid, else as points."""
        on_grid = self.domain.shape is not None and self.domain.dimension == 2
        return self._grid(layers, at) if on_grid else self._cloud(layers, at)

    def _grid(self, layers: Mapping[str, Array], at: messages.Timestamp) -> messages.Grid:
        """Return a grid with columns along the first axis and rows along the second.

        Each grid cell is centred on its site, so the grid begins half a grid cell before the first site. The
        grid is rotated so that its x and y point along the two axes.
        """
        domain, ground = self.domain, self.ground
        assert domain.shape is not None
        columns, _ = domain.shape
        cell = domain.extent / np.maximum(np.array(domain.shape) - 1, 1)
        along, across = ground.towards.T
        turned = Rotation.from_matrix(np.stack([along, across, np.cross(along, across)], axis=1))
        cells = np.stack([domain.on_grid(layer).T for layer in layers.values()], axis=-1)
        stride = len(layers) * _REAL.itemsize
        return messages.Grid(
            timestamp=at,
            frame_id=_MAP,
            pose=_pose(ground.local(domain.low - cell / 2)[0], turned),
            column_count=columns,
            cell_size=messages.Vector2(x=float(cell[0]), y=float(cell[1])),
            row_stride=columns * stride,
            cell_stride=stride,
            fields=_fields(layers),
            data=cells.astype(_REAL).tobytes(),
        )

    def _cloud(self, layers: Mapping[str, Array], at: messages.Timestamp) -> messages.PointCloud:
        """Return one point per site, relative to the lower corner to keep single precision accurate."""
        corner = self.ground.local(self.domain.low)[0]
        points = self.ground.local(self.domain.sites) - corner
        rows = np.column_stack([points, *layers.values()]).astype(_REAL)
        return messages.PointCloud(
            timestamp=at,
            frame_id=_MAP,
            pose=_pose(corner),
            point_stride=rows.shape[1] * _REAL.itemsize,
            fields=_fields([*_PLACED, *layers]),
            data=rows.tobytes(),
        )


def _pose(place: Array, turned: Rotation | None = None) -> messages.Pose:
    x, y, z = place.tolist()
    a, b, c, w = (0.0, 0.0, 0.0, 1.0) if turned is None else turned.as_quat().tolist()
    return messages.Pose(
        position=messages.Vector3(x=x, y=y, z=z), orientation=messages.Quaternion(x=a, y=b, z=c, w=w)
    )


def _fields(names: Iterable[str]) -> list[messages.PackedElementField]:
    """Return the layout of one element: consecutive single-precision numbers."""
    return [
        messages.PackedElementField(
            name=name, offset=j * _REAL.itemsize, type=messages.PackedElementFieldNumericType.Float32
        )
        for j, name in enumerate(names)
    ]
