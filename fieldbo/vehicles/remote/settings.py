"""A vehicle file: how a robot is reached, where it is, how long it is waited for, and what is believed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Frame, Ground
from fieldbo.errors import InputError
from fieldbo.mission.schema import kinds_schema
from fieldbo.vehicles.kinds import LINKS
from fieldbo.vehicles.remote.arrival import Arrival


@dataclass(frozen=True)
class Watch:
    """How long a robot is waited for.

    Parameters
    ----------
    silence_s : float
        The watchdog: after so long without a sign of life the link counts as lost.
    connect_s : float
        So long the first sign of life is waited for.
    patience : float
        An order may take so many times what it is declared to take,
    least_s : float
        and at least so many seconds; then it is given up.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    silence_s: float = 5.0
    connect_s: float = 30.0
    patience: float = 3.0
    least_s: float = 60.0

    def __post_init__(self) -> None:
        for name in ("silence_s", "connect_s", "patience", "least_s"):
            _check("watch", name, getattr(self, name), above=True)


@dataclass(frozen=True)
class Battery:
    """What a robot's battery reports mean.

    Parameters
    ----------
    full : float, optional
        What a full battery holds, in the world's cost unit; by default the mission's battery.
    accuracy : float, optional
        By so much a report may be off, in the world's cost unit: books that agree with it that well stay as
        they are. By default 1% of a full battery.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    full: float | None = None
    accuracy: float | None = None

    def __post_init__(self) -> None:
        if self.full is not None:
            _check("battery", "full", self.full, above=True)
        if self.accuracy is not None:
            _check("battery", "accuracy", self.accuracy)


@dataclass(frozen=True)
class Reports:
    """What of a robot's reports is believed.

    Parameters
    ----------
    accuracy : float or list of float
        Of positions, on each axis in its unit: a report this near the site that was asked for stands for
        that site.
    low, high : float
        A reading beyond them is none: it is told as failed.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    accuracy: float | tuple[float, ...] = 0.0
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        for value in np.ravel(self.accuracy).tolist():
            _check("reports", "accuracy", value)
        if not self.low < self.high:
            raise InputError(
                f"low = {self.low}", expected=f"a number below high, {self.high}", where="reports.low"
            )


def _check(table: str, name: str, value: float, *, above: bool = False) -> None:
    if not (math.isfinite(value) and (value > 0 if above else value >= 0)):
        expected = "a finite number " + ("above 0" if above else "of at least 0")
        raise InputError(f"{name} = {value}", expected=expected, where=f"{table}.{name}")


class VehicleFile(BaseModel):
    """A vehicle.toml."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[1]
    title: str = ""
    link: dict[str, Any] = Field(description="How it is reached; kind is one of the installed kinds")
    frame: Frame | None = Field(default=None, description="Where the domain's axes lie on the ground")
    watch: Watch = Watch()
    battery: Battery = Battery()
    reports: Reports = Reports()
    arrival: Arrival = Field(
        default=Arrival(), description="Of a robot that streams where it is and what it reads"
    )

    def ground(self, axes: Sequence[Axis]) -> Ground | None:
        """Return where a domain of those axes lies: as the file says, else as such axes usually do.

        None where they are no place at all.
        """
        frame = self.frame or Frame.usual(axes)
        return None if frame is None else frame.over(axes)


def vehicle_schema() -> dict[str, Any]:
    """Return the JSON Schema of vehicle files, all installed kinds of link included."""
    schema, links = TypeAdapter(VehicleFile).json_schema(), kinds_schema(LINKS)
    schema["$defs"] = {**schema.get("$defs", {}), **links.pop("$defs", {})}
    schema["properties"]["link"] = links
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
