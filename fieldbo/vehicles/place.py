"""Where a vehicle file places a mission on the ground: in words, and what is unlikely to be meant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import compass_name
from fieldbo.domain.frame import Frame, Ground, heading
from fieldbo.domain.georeference import degrees_text
from fieldbo.mission.mission import Mission

if TYPE_CHECKING:
    from fieldbo.vehicles.file import LoadedVehicleFile

_TOWARDS = {
    "east": np.array([1.0, 0.0, 0.0]),
    "north": np.array([0.0, 1.0, 0.0]),
    "west": np.array([-1.0, 0.0, 0.0]),
    "south": np.array([0.0, -1.0, 0.0]),
}
_ASTRAY = math.cos(math.radians(45.0)) - 1e-9
_RADIANS_STEP, _RADIANS_ROUNDING = math.pi / 12, 0.005
_FAR_M = 10_000.0


def axes_lead(frame: Frame) -> str:
    """Return where each axis leads, in words.

    Examples
    --------
    >>> axes_lead(Frame(bearing=90.0, along="x", left="y"))
    'x leads 90° (east), y leads 0° (north)'
    """
    return ", ".join(f"{name} leads {heading(towards)}" for name, towards in frame.directions.items())


def describe_place(file: LoadedVehicleFile, mission: Mission, number: int = 0) -> list[str]:
    """Return a line on where start and home are; none if the file does not say.

    Parameters
    ----------
    file : LoadedVehicleFile
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    """
    spec, ground = mission.vehicles[number], _ground(file, mission)
    if ground is None or ground.origin is None:
        return []
    start = f"start at {_degrees(ground, spec.start)}"
    home = "no home" if spec.home is None else f"home at {_degrees(ground, spec.home)}"
    return [f"  place     {start}; {home} (latitude, longitude)"]


def _ground(file: LoadedVehicleFile, mission: Mission) -> Ground | None:
    """Return where the vehicle's sites lie, at the distance that it keeps from a vertical world."""
    domain = mission.world.domain
    return file.link.placed(file.settings.ground(domain), domain)


def _degrees(ground: Ground, site: Array) -> str:
    return degrees_text(ground.geodetic(site)[0, :2])


# -- what is unlikely to be meant --------------------------------------------------------------------------


def place_doubts(file: LoadedVehicleFile, mission: Mission) -> list[str]:
    """Return warnings of a frame that contradicts the names of its axes, or is far from its origin."""
    domain = mission.world.domain
    ground = file.settings.ground(domain)
    frame = file.settings.frame or Frame.usual(domain.axes)
    if ground is None or frame is None:
        return []
    warnings = frame_doubts(frame) if domain.crs is None else []
    far_m = float(np.linalg.norm(np.clip(ground.zero, domain.low, domain.high) - ground.zero))
    if ground.origin is not None and far_m > _FAR_M:
        warnings.append(
            f"the domain's nearest point is {far_m / 1000:,.0f} km from its origin: check "
            + (
                "zero in [frame], the coordinates of the site at the origin"
                if domain.crs is None
                else "origin in [frame]"
            )
        )
    return warnings


def frame_doubts(frame: Frame) -> list[str]:
    """Return warnings of a bearing that looks like radians, and of axes that lead elsewhere than named."""
    warnings = []
    bearing = float(frame.bearing)
    steps = bearing / _RADIANS_STEP
    off = abs(steps - round(steps)) * _RADIANS_STEP
    if 0 < abs(round(steps)) <= 24 and off < _RADIANS_ROUNDING and not bearing.is_integer():
        warnings.append(
            f"bearing = {bearing:g} in [frame] looks like radians, but it is in degrees: "
            f"write bearing = {15 * round(steps)} if that is meant"
        )
    for name, towards in frame.directions.items():
        meant = compass_name(name)
        if meant is not None and towards @ _TOWARDS[meant] < _ASTRAY:
            warnings.append(
                f"the axis {name} leads {heading(towards)}, not {meant}: check bearing and the directions of "
                "the axes in [frame]"
            )
    return warnings
