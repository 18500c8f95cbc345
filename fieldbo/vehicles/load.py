"""Vehicles by name: from a vehicle file, a link's defaults, or a record."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from fieldbo.mission.mission import Mission
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.checks import battery_of, check_vehicle
from fieldbo.vehicles.file import LoadedVehicleFile
from fieldbo.vehicles.kinds import VEHICLES
from fieldbo.vehicles.place import axes_lead, describe_place

_WITHOUT_CHANNELS = ("simulated", "by-hand")


def recorded_settings(name: str) -> dict[str, Any]:
    """Return the settings of a vehicle as a record keeps them, so that a resumed run gets the same vehicle.

    Parameters
    ----------
    name : str
        A vehicle file, or a kind of vehicle or of link.

    Raises
    ------
    InputError
        As for `LoadedVehicleFile.for_record`.
    """
    if name in VEHICLES.names():
        return {"kind": name}
    return {**LoadedVehicleFile.for_record(name).content, "session": uuid.uuid4().hex[:8]}


def vehicle_of(plain: Mapping[str, Any], mission: Mission, number: int = 0) -> Vehicle:
    """Return the vehicle with settings from `recorded_settings`. Call `check_new` first for a new run.

    Raises
    ------
    InputError
        The vehicle does not fit the mission.
    """
    from fieldbo.vehicles.remote.remote import Remote

    if "kind" in plain:
        vehicle: Vehicle = VEHICLES.get(plain["kind"])(mission, number)
        return vehicle
    loaded = _file_of(plain)
    settings = loaded.settings.model_copy(update={"battery": battery_of(loaded, mission)})
    return Remote(mission, number, loaded.link, settings, session=str(plain["session"]))


def check_new(plain: Mapping[str, Any], mission: Mission, number: int = 0) -> list[str]:
    """Check that a vehicle with settings from `recorded_settings` fits a mission, and return warnings.

    Raises
    ------
    InputError
        As for `check_vehicle`.
    """
    if "kind" not in plain:
        return check_vehicle(_file_of(plain), mission, number)
    if plain["kind"] not in _WITHOUT_CHANNELS:
        return []
    return [
        f"the hold {hold.name} can do nothing: a vehicle of kind {plain['kind']} reports no channels"
        for hold in mission.holds
    ]


def place_of(plain: Mapping[str, Any], mission: Mission, number: int = 0) -> list[str]:
    """Return lines on where a vehicle's settings, as a record keeps them, place a mission on the ground."""
    if "kind" in plain:
        return []
    file = _file_of(plain)
    frame = file.settings.frame
    axes = [f"  axes      {axes_lead(frame)}"] if frame is not None and frame.axes else []
    return [*axes, *describe_place(file, mission, number)]


def full_battery(vehicles: Sequence[Mapping[str, Any]]) -> float | str | None:
    """Return what a full battery of the first vehicle holds, as its file states it; None if it does not."""
    full: float | str | None = vehicles[0].get("battery", {}).get("full") if vehicles else None
    return full


def _file_of(plain: Mapping[str, Any]) -> LoadedVehicleFile:
    """Return the vehicle file behind the recorded settings of a vehicle."""
    content = {name: value for name, value in plain.items() if name != "session"}
    return LoadedVehicleFile.of(content, "vehicle")


def load_vehicle(name: str, mission: Mission, number: int = 0) -> Vehicle:
    """Return a vehicle for a new run.

    Parameters
    ----------
    name : str
        A vehicle file, or a kind of vehicle or of link.
    mission : Mission
    number : int
        Index of the vehicle in the mission.

    Raises
    ------
    InputError
        The file cannot be read, its content is not valid, or the vehicle does not fit the mission.

    Examples
    --------
    >>> import fieldbo
    >>> mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 300}})
    >>> with fieldbo.load_vehicle("simulated", mission) as boat:
    ...     boat.send(fieldbo.Query([0, 3], id="run/0"))
    ...     boat.events(timeout_s=1.0)[0].cost
    16.0
    """
    plain = recorded_settings(name)
    check_new(plain, mission, number)
    return vehicle_of(plain, mission, number)
