"""Checks that a vehicle file fits a mission, before anything is sent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.settings import Battery

if TYPE_CHECKING:
    from fieldbo.vehicles.load import LoadedVehicleFile


def check_vehicle(file: LoadedVehicleFile, mission: Mission, number: int = 0) -> list[str]:
    """Check that a vehicle file fits a mission, and return warnings.

    Parameters
    ----------
    file : LoadedVehicleFile
    mission : Mission
    number : int
        Index of the vehicle in the mission.

    Raises
    ------
    InputError
        What the robot's battery reports mean is unknown, the mission's battery is larger than the vehicle's,
        or the robot would count as arrived at the wrong site or inside an obstacle's clearance.
    """
    warnings = _check_battery(file, mission, number)
    if not file.link.reports:
        _check_arrival(file.settings.arrival.within, mission)
    domain = mission.world.domain
    if not domain.clear and domain.clearance == 0:
        warnings.append(
            "routes touch obstacles and outline, and no robot drives without error: set clearance in "
            "[domain] of the world"
        )
    return warnings


def battery_of(file: LoadedVehicleFile, mission: Mission) -> Battery:
    """Return a vehicle file's ``[battery]`` as numbers in the world's cost unit.

    Raises
    ------
    InputError
        It is in a unit of something else.
    """
    full = mission.settings.get("agent", {}).get("full_battery")
    unit = mission.world.cost_unit
    return file.settings.battery.in_unit(unit, Battery(full=full).in_unit(unit).full)  # type: ignore[arg-type]


def _check_battery(file: LoadedVehicleFile, mission: Mission, number: int) -> list[str]:
    """Check ``[battery]``: a percentage means nothing without the full battery."""
    full, unit = battery_of(file, mission).full, mission.world.cost_unit
    battery = mission.vehicles[number].battery
    if full is not None and float(full) < battery:
        raise InputError(
            f"full = {float(full):g} {unit}, less than the mission's battery of {battery:g} {unit}",
            expected="at least the mission's battery",
            where="battery.full",
            fix="lower the mission's battery: fieldbo run MISSION --battery AMOUNT",
        )
    if full is not None:
        return []
    needed = f"full in [battery] of the vehicle file: what 100 % is, in {unit}"
    if file.link.battery_in == "percent":
        raise InputError(
            f"a robot on a link of kind {file.kind} reports its battery in percent, but nothing says of what",
            expected=needed,
            where="battery.full",
            fix="write a vehicle file with that key: fieldbo new vehicle NAME --link " + file.kind,
        )
    return [
        f"if the robot reports its battery in percent, 100 % counts as the mission's battery of {battery:g} "
        f"{unit}: state {needed}"
    ]


def _check_arrival(within: float, mission: Mission) -> None:
    """Check the arrival tolerance: the robot must reach the site that was asked for, and stay clear."""
    domain = mission.world.domain
    spacing, axis = min(zip(domain.spacing, domain.axes, strict=True), key=lambda pair: pair[0])
    limits = [(float(spacing), f"the spacing of the sites along {axis.name}")]
    if not domain.clear:
        limits.append((domain.clearance / 2.0, "half of the clearance from obstacles and outline"))
    limit, what = min(limits)
    if math.isfinite(limit) and within > limit and not np.isclose(within, limit):
        raise InputError(
            f"within = {within:g}, wider than {what}, {limit:g} {axis.unit}".rstrip(),
            expected=f"an arrival tolerance of at most {limit:g}",
            where="arrival.within",
            fix="lower within in [arrival] of the vehicle file"
            + ("" if domain.clear else ", or raise clearance in [domain] of the world"),
        )
