"""The settings in a vehicle file: link, frame, watchdog, battery, reports and arrival."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, NonNegativeFloat, PositiveFloat, TypeAdapter

from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Frame, Ground, ground_of
from fieldbo.errors import InputError
from fieldbo.mission.amounts import Amount, AmountOrNothing, amount, unit_in
from fieldbo.mission.schema import Table, kinds_schema
from fieldbo.validation import settings
from fieldbo.vehicles.base import LINKS

Limit = Annotated[float, Field(allow_inf_nan=True)]
"""A bound that may be infinite."""


@settings("watch")
class Watch:
    """How long to wait for the robot."""

    silence_s: PositiveFloat = 5.0
    """Watchdog: the link counts as lost after this many seconds without a sign of life. While fieldbo itself
    is held up, at most a quarter of it is counted."""
    connect_s: PositiveFloat = 30.0
    """How many seconds to wait for the first sign of life."""
    patience: PositiveFloat = 3.0
    """Give up an order after this many times its declared duration."""
    least_s: PositiveFloat = 60.0
    """Never give up an order earlier than this many seconds after it was sent."""
    when_planner_silent: Literal["hold", "home"] = "hold"
    """What the robot does on its own when it no longer hears from fieldbo: "hold" stays in place; "home"
    finishes the goal under way, which its battery covers together with the trip home, then goes home. Over
    MQTT and Visit, each goal carries this setting; with other links, the autopilot's own failsafe decides."""
    planner_silence_s: Annotated[float, Field(ge=3.0)] = 60.0
    """Seconds of silence from fieldbo after which the robot acts on its own; fieldbo sends a sign of life
    about once a second."""


@settings("battery")
class Battery:
    """How to interpret the robot's battery reports."""

    full: Amount | None = None
    """Capacity of a full battery, in the world's cost unit (6000) or a multiple of it ("2 h" if it is s); by
    default the mission's full_battery. Required over MAVLink and ROS 2, which report percentages; over MQTT,
    percentages otherwise refer to the mission's battery, and fieldbo warns."""
    accuracy: AmountOrNothing | None = None
    """Accuracy of the battery reports: an amount like full, or a percentage of it; by default "1 %"."""
    delay_s: NonNegativeFloat = 5.0
    """Greatest age of a battery report on arrival, in seconds. A report that may predate the latest result
    never raises what the mission may spend."""
    trust: Literal["costs", "gauge"] = "costs"
    """What decides how much is left if the battery reports more than the declared costs leave: "costs", since
    a gauge may be stuck, or "gauge". If it reports less, the gauge always decides."""
    at_least: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """With trust = "gauge": the least that orders take, as a fraction of their declared costs (0.6), whatever
    the gauge shows. State the lowest that you have measured, or less."""

    def __post_init__(self) -> None:
        for name, given, of in (("full", self.full, None), ("accuracy", self.accuracy, 1.0)):
            if given is not None:  # its unit must wait for a mission
                amount(given, unit_in(given), f"battery.{name}", full=of, zero=name == "accuracy")
        if (self.trust == "gauge") != (self.at_least is not None):
            missing = self.at_least is None
            raise InputError(
                'trust = "gauge" without at_least' if missing else 'at_least without trust = "gauge"',
                expected="both, or neither",
                where="battery.at_least" if missing else "battery.trust",
                fix="add at_least = 0.6, for example: orders take at least 60 % of their declared costs"
                if missing
                else 'add trust = "gauge", or remove at_least',
            )

    @property
    def share_charged(self) -> float:
        """The fraction of declared costs that stays charged, whatever the gauge shows."""
        return 1.0 if self.at_least is None else self.at_least

    def in_unit(self, unit: str, full: float | None = None) -> Battery:
        """Return these settings as numbers in the world's cost unit; `full` stands in for a missing full."""
        if self.full is not None:
            full = amount(self.full, unit, "battery.full")
        accuracy = self.accuracy
        if accuracy is not None:
            whole = "full in [battery]"
            accuracy = amount(accuracy, unit, "battery.accuracy", full=full, whole=whole, zero=True)
        return replace(self, full=full, accuracy=accuracy)


@settings("reports")
class Reports:
    """Which of the robot's reports to believe."""

    accuracy: NonNegativeFloat | tuple[NonNegativeFloat, ...] = 0.0
    """Accuracy of reported positions, one number or one per axis, in the axis' unit: a position within it of
    the requested site counts as that site."""
    low: Limit = -math.inf
    """Lowest plausible reading; a reading below it counts as failed."""
    high: Limit = math.inf
    """Highest plausible reading; a reading above it counts as failed."""
    off_route_m: PositiveFloat | None = None
    """How far from its route a robot may be when it reads on the way, in metres; a reading farther off counts
    as failed. Default: a tenth of the domain's longest side. Raise it for a sailing boat, for example."""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InputError(
                f"low = {self.low}", expected=f"a number below high, {self.high}", where="reports.low"
            )


@settings("arrival")
class Arrival:
    """When a robot that streams has arrived, and which of its readings count."""

    within: PositiveFloat = 1.0
    """Arrival tolerance per axis, in its unit."""
    settle_s: NonNegativeFloat = 0.0
    """How many seconds after arrival the sensor needs before its readings count."""
    dwell_s: NonNegativeFloat | None = None
    """How many seconds to average readings for, once settle_s has passed; by default the remainder of the
    world's sampling time. 0 takes the first reading."""
    reading_s: PositiveFloat = 10.0
    """How many seconds to wait for a reading after settle_s; without one, the reading counts as failed. The
    time begins when the robot is sent to its site, even if it is there already."""


class VehicleFile(Table):
    """A vehicle file, for example boat.toml."""

    model_config = ConfigDict(allow_inf_nan=True)

    format: Literal[1]
    title: str = ""
    """Name of the vehicle, for people."""
    link: dict[str, Any]
    """How to reach the robot; kind is one of the installed kinds of link."""
    frame: Frame | None = None
    """How the domain's axes lie on the ground."""
    watch: Watch = Watch()
    """How long to wait for the robot."""
    battery: Battery = Battery()
    """How to interpret the robot's battery reports."""
    reports: Reports = Reports()
    """Which of the robot's reports to believe."""
    arrival: Arrival = Arrival()
    """When a robot that streams has arrived, and which of its readings count."""

    def ground(self, domain: Domain) -> Ground | None:
        """Return where a domain lies: from its CRS, from ``[frame]``, or else from the names of its axes.

        None if the axes are not positions on the ground.
        """
        return ground_of(domain, self.frame)


def vehicle_schema() -> dict[str, Any]:
    """Return the JSON Schema of vehicle files, with all installed kinds of link."""
    schema, links = TypeAdapter(VehicleFile).json_schema(), kinds_schema(LINKS)
    schema["$defs"] = {**schema.get("$defs", {}), **links.pop("$defs", {})}
    schema["properties"]["link"] = links
    _drop_infinite_defaults(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _drop_infinite_defaults(schema: Any) -> None:
    """Remove defaults that JSON cannot express, such as that of ``reports.low``."""
    if isinstance(schema, dict):
        for key in [key for key, value in schema.items() if isinstance(value, float) and math.isinf(value)]:
            del schema[key]
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            _drop_infinite_defaults(part)
