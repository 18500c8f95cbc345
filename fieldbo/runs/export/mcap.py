"""A log that Foxglove opens: what was ordered, read, paid and believed, on the run's own clock.

A message's time is the start of the run and what the vehicle's clock said, so that hours of a simulated
mission take hours in the log, too. Places are in local metres in the coordinate frame ``map``, x east, y
north, z up: as the run's frame says or, without one, as `Frame.usual` takes the axes to lie. A domain that is
no place has settings instead of poses, and no belief.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.domain.frame import Frame
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Observation, Query, Telemetry
from fieldbo.runs.export.recorded import Recorded
from fieldbo.runs.export.schemas import schemas
from fieldbo.runs.record.record import ORDERS, Row

if TYPE_CHECKING:
    from foxglove import messages

    from fieldbo.runs.export.places import Places

_MOST_BELIEFS = 50  # in one log: of 2,500 sites they take 1.5 MB
_NS = 1_000_000_000

Message = tuple[int, str, Any]
"""When, in nanoseconds since 1970; on which topic; and what."""


def files(run: Recorded) -> dict[str, bytes]:
    """Return the log by the name of its file.

    Raises
    ------
    InputError
        The library that writes such logs is not installed.
    """
    try:
        import foxglove  # noqa: F401
    except ModuleNotFoundError:
        raise InputError(
            "a log for Foxglove is written by foxglove-sdk, which is not installed",
            expected="fieldbo with its extra mcap",
            fix="python -m pip install 'fieldbo[mcap]'",
        ) from None
    story = _Story(run)
    return {"run.mcap": _written(run, sorted(story.told(), key=lambda message: message[0]))}


def _written(run: Recorded, told: Iterable[Message]) -> bytes:
    """Return messages, in the order of their times, as an MCAP file."""
    from foxglove import Channel, Context, channels, messages, open_mcap

    kinds = {
        messages.PoseInFrame: channels.PoseInFrameChannel,
        messages.LocationFix: channels.LocationFixChannel,
        messages.Grid: channels.GridChannel,
        messages.PointCloud: channels.PointCloudChannel,
    }
    seen = (row.message for row in run.rows if row.kind == "observation")
    names = {name for event in seen if isinstance(event, Observation) for name in event.channels or {}}
    plain = schemas(run.mission.world.domain.axes, sorted(names))
    context, out, open_channels = Context(), io.BytesIO(), dict[str, Any]()
    with open_mcap(out, context=context) as log:
        log.write_metadata("fieldbo", {"run": run.name, "mission": run.mission.name})
        for when, topic, message in told:
            if topic not in open_channels:
                open_channels[topic] = (
                    Channel(topic, schema=plain[topic], context=context)
                    if topic in plain
                    else kinds[type(message)](topic, context=context)
                )
            open_channels[topic].log(message, log_time=when)
    return out.getvalue()


class _Story:
    """The messages of a run.

    What has no time of its own is told at the latest time that anything was told of before.
    """

    def __init__(self, run: Recorded) -> None:
        self.run, self.world = run, run.mission.world
        self.began = round(run.began.timestamp() * 1000) * (_NS // 1000)
        queries = sum(row.kind == "query" for row in run.rows)
        self.every = max(1, math.ceil(queries / _MOST_BELIEFS))
        self.places = self._places()
        self.clock_s = 0.0

    def _places(self) -> Places | None:
        """Return how sites are told as places; None where they are none."""
        from fieldbo.runs.export.places import Places

        axes = self.world.domain.axes
        usual = Frame.usual(axes)
        ground = self.run.ground or (None if usual is None else usual.over(axes))
        return None if ground is None else Places(self.world.domain, ground)

    def told(self) -> Iterator[Message]:
        """Go through the log, and yield what there is to tell of it."""
        heard = done = shown = 0
        agent: Agent | None = None
        for row, agent in self.run.steps():
            if row.kind in ORDERS:
                yield from self._order(row)
                continue
            message = None if row.kind in ("stop", "end") else row.message
            times = [craft.time_s for craft in agent.vehicles]
            self.clock_s = max(self.clock_s, *times, getattr(message, "time_s", None) or 0.0)
            yield self._event(row)
            if len(agent.history) == heard:
                continue  # told before, or of no order of this run
            heard, event = len(agent.history), agent.history[-1]
            if isinstance(event, Observation | Telemetry):
                yield from self._heard(event, agent)
            if isinstance(event, Observation) and event.last and len(event.values):
                done += 1
                if done % self.every == 0:
                    shown = heard
                    yield from self._belief(agent)
        if agent is not None and heard > shown:
            yield from self._belief(agent)

    def _order(self, row: Row) -> Iterator[Message]:
        """Yield an order, as it left."""
        order = row.message
        assert isinstance(order, Query | GoHome)
        when = self._ns(self.clock_s)
        told = {
            "order": order.id,
            "kind": row.kind,
            "vehicle": order.vehicle,
            "site": None if order.site is None else self._by_axis(order.site),
            "level": getattr(order, "level", None),
            "expected_cost": order.expected_cost,
            "expected_time_s": order.expected_time_s,
        }
        yield when, "/goal", _known(told)
        if self.places is not None and order.site is not None:
            yield when, "/goal/pose", self.places.pose(order.site, _stamp(when))

    def _event(self, row: Row) -> Message:
        """Return a row that is no order, as it stands in the record."""
        said = row.body.get("message") or {k: row.body[k] for k in ("vehicle", "reason") if k in row.body}
        told = {"seq": row.seq, "time_utc": row.time_utc, "kind": row.kind, "order": row.order, "body": said}
        return self._ns(self.clock_s), "/event", _known(told)

    def _heard(self, event: Observation | Telemetry, agent: Agent) -> Iterator[Message]:
        """Yield readings, where the vehicle was, and how its books stand then."""
        vehicle = agent.issued[event.order].order.vehicle if isinstance(event, Observation) else event.vehicle
        craft = agent.vehicles[vehicle]
        at = None
        if isinstance(event, Observation):
            for k, (at, seconds) in enumerate(zip(event.sites, event.times_s.tolist(), strict=True)):
                yield self._reading(event, k)
                yield from self._where(at, seconds)
        if at is None or not np.array_equal(at, event.position):
            yield from self._where(event.position, self.clock_s if event.time_s is None else event.time_s)
        told = {
            "vehicle": vehicle,
            "remaining": craft.ledger.left,
            "spent": craft.ledger.spent,
            "reported": getattr(event, "remaining", None),
            "unit": self.world.cost_unit,
        }
        yield self._ns(self.clock_s), "/battery", _known(told)

    def _reading(self, event: Observation, k: int) -> Message:
        seconds, quantity = float(event.times_s[k]), self.world.quantity
        told = {
            "order": event.order,
            "site": self._by_axis(event.sites[k]),
            "value": float(event.values[k]),
            "unit": quantity.unit,
            "noise_sd": math.sqrt(event.noise_variances[k]),
            "time_s": seconds,
            "channels": _known({name: float(read[k]) for name, read in (event.channels or {}).items()}),
        }
        return self._ns(seconds), "/reading", _known(told)

    def _where(self, site: Array, seconds: float) -> Iterator[Message]:
        """Yield where a vehicle was: a pose, in degrees where that is known; or the settings of a cell."""
        when = self._ns(seconds)
        if self.places is None:
            yield when, "/setting", {"setting": self._by_axis(site)}
            return
        yield when, "/pose", self.places.pose(site, _stamp(when))
        if self.places.ground.origin is not None:
            yield when, "/fix", self.places.fix(site, _stamp(when))

    def _belief(self, agent: Agent) -> Iterator[Message]:
        """Yield what is believed of the sites, in the user's unit; of a cell nothing."""
        if self.places is None:
            return
        surface = agent.surface
        mean, sd = agent.hyperparameters.scale.moments(surface.mean, surface.variance)
        layers = {"mean": mean, "sd": sd}
        if not math.isnan(agent.threshold):
            layers["exceedance"] = surface.exceedance(agent.threshold)
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


def _known(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a message: JSON has no number for what is not."""
    return {k: v for k, v in told.items() if v is not None and not (isinstance(v, float) and math.isnan(v))}
