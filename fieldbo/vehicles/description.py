"""Vehicle files in words, one line per topic, as ``fieldbo check`` prints them."""

from __future__ import annotations

import math

import numpy as np

from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import Georeference
from fieldbo.vehicles.file import LoadedVehicleFile
from fieldbo.vehicles.place import axes_lead, frame_doubts


def describe_vehicle(file: LoadedVehicleFile, name: str, domain: Domain | None = None) -> list[str]:
    """Return lines that describe a vehicle file, or the defaults of a kind of link, read by `name`.

    Parameters
    ----------
    file : LoadedVehicleFile
    name : str
    domain : Domain, optional
        That of a mission which the file fits.
    """
    georeference = None if domain is None else domain.georeference
    watch, reports = file.settings.watch, file.settings.reports
    origin = None if file.settings.frame is None else file.settings.frame.origin
    kind = "reports the outcome of each order" if file.link.reports else "streams its position and readings"
    valid = f"readings from {reports.low:g} to {reports.high:g} are valid"
    if not any(map(math.isfinite, (reports.low, reports.high))):
        valid = "all readings are valid: set low and high in [reports] to reject impossible ones"
    lines = [
        f"vehicle {file.settings.title or name}",
        f"  link      {file.kind}, at {file.link.address}; the robot {kind}",
        f"  domain    {_frame(file, georeference)}",
        f"  lost      after {watch.silence_s:g} s of silence",
        f"  given up  an order after {watch.patience:g} times its declared duration, and at least "
        f"{watch.least_s:g} s",
        f"  battery   {_battery(file)}",
        *_arrival(file),
        f"  reports   {_positions(reports.accuracy)}; {valid}",
    ]
    if file.link.battery_in == "percent" and file.settings.battery.full is None and domain is None:
        lines.append(
            "warning: the robot reports its battery in percent, but its capacity is not given: set full in "
            "[battery] before you use this vehicle"
        )
    if file.link.needs_origin and origin is None and georeference is None:
        lines.append("warning: the domain has no origin: set origin in [frame] before you use this vehicle")
    doubts = [] if file.settings.frame is None else frame_doubts(file.settings.frame)
    return [*lines, *(f"warning: {warning}" for warning in (*file.link.warnings, *doubts))]


def _battery(file: LoadedVehicleFile) -> str:
    """Return what a full battery holds, and how accurate its reports are."""
    full, accuracy = file.settings.battery.full, file.settings.battery.accuracy
    holds = (
        "unknown"
        if full is None
        else f"{full:g} in the world's cost unit"
        if isinstance(full, float | int)
        else full
    )
    return f"full: {holds}; reports accurate to {'1 %' if accuracy is None else accuracy}"


def _positions(accuracy: float | tuple[float, ...]) -> str:
    """Return how reported positions are taken."""
    if not np.any(accuracy):
        return "positions are taken as reported"
    return f"a position within {accuracy} of the site counts as the site"


def _arrival(file: LoadedVehicleFile) -> list[str]:
    """Return lines on when a robot that streams has arrived, and on the speed of plans."""
    lines, speed = [], getattr(file.link, "speed", None)
    if not file.link.reports:
        arrival = file.settings.arrival
        dwell = "the world's sampling time" if arrival.dwell_s is None else f"{arrival.dwell_s:g} s"
        lines.append(f"  arrival   within {arrival.within:g} of the site on each axis; stays for {dwell}")
    if speed is not None:
        lines.append(f"  speed     {speed:g} m/s in plans")
    return lines


def _frame(file: LoadedVehicleFile, georeference: Georeference | None) -> str:
    """Return how the domain's axes lie, and where its origin is."""
    frame = file.settings.frame
    if georeference is not None:
        text = f"placed by the world's CRS, {georeference.name}"
    elif frame is None:
        text = "without [frame]: the robot receives the axes' values, and degrees if the world has a CRS"
    elif not frame.axes:
        text = "placed by the world's CRS"
    else:
        text = axes_lead(frame)
    if frame is not None and frame.origin is not None:
        text += f"; origin at {frame.origin.latitude:g}, {frame.origin.longitude:g}"
    return text
