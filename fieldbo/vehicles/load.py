"""Vehicles by name: from a vehicle file, a link's defaults, or a record."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.mission import Mission
from fieldbo.mission.toml import made, read_toml
from fieldbo.validation import validated
from fieldbo.vehicles.base import Vehicle
from fieldbo.vehicles.checks import battery_of, check_vehicle
from fieldbo.vehicles.kinds import LINKS, VEHICLES
from fieldbo.vehicles.place import describe_place
from fieldbo.vehicles.remote.link import Link
from fieldbo.vehicles.remote.settings import VehicleFile


@dataclass(frozen=True)
class LoadedVehicleFile:
    """A vehicle file and the link that it describes.

    Attributes
    ----------
    content : mapping
        The file's content as written, except that relative files in ``[link]`` have become absolute.
    settings : VehicleFile
        The content after checking.
    kind : str
        Kind of the link.
    link : Link
    """

    content: Mapping[str, Any]
    settings: VehicleFile
    kind: str
    link: Link

    @classmethod
    def of(cls, content: Mapping[str, Any], where: str) -> LoadedVehicleFile:
        """Check the content of a vehicle file; errors name `where`."""
        settings = validated(VehicleFile, content, where)
        link = made(LINKS, settings.link, f"{where}: link")
        return cls(content, settings, str(settings.link["kind"]), link)

    @property
    def bare(self) -> bool:
        """Whether only the kind of link is given, as by ``--vehicle mqtt``."""
        return dict(self.content) == {"format": 1, "link": {"kind": self.kind}}

    @classmethod
    def read(cls, name: str) -> LoadedVehicleFile:
        """Read a vehicle file; the name of a kind of link stands for that link with its defaults.

        Raises
        ------
        InputError
            The file cannot be read, or its content is not valid.
        """
        if name in LINKS.names():
            return cls.of({"format": 1, "link": {"kind": name}}, f"--vehicle {name}")
        if not name.endswith(".toml") and not Path(name).exists():
            names = [*LINKS.names(), *VEHICLES.names()]
            raise UnknownNameError.of("vehicle", name, names, where="or a vehicle file: NAME.toml")
        return cls.of(_with_absolute_files(read_toml(Path(name)), Path(name).resolve().parent), name)


def _with_absolute_files(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a vehicle file's content with the ``*_file`` keys of ``[link]`` relative to its folder."""
    link = content.get("link")
    if not isinstance(link, dict):
        return dict(content)
    files = {
        key: str(folder / Path(value).expanduser())
        for key, value in link.items()
        if key.endswith("_file") and isinstance(value, str)
    }
    return {**content, "link": {**link, **files}}


def for_new_run(name: str) -> dict[str, Any]:
    """Return the description of a vehicle to keep in a record, so that a resumed run gets the same one.

    Parameters
    ----------
    name : str
        A vehicle file, or a kind of vehicle or of link.

    Raises
    ------
    InputError
        As for `LoadedVehicleFile.read`.
    """
    if name in VEHICLES.names():
        return {"kind": name}
    content = LoadedVehicleFile.read(name).content
    try:
        json.dumps(content, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"the file holds a number or a date that no record can hold: {error}",
            expected="finite numbers, text and tables",
            where=name,
            fix="omit bounds that are infinite, for example low and high in [reports]",
        ) from None
    return {**content, "session": uuid.uuid4().hex[:8]}


def vehicle_of(plain: Mapping[str, Any], mission: Mission, number: int = 0) -> Vehicle:
    """Return the vehicle that `for_new_run` described. Call `check_new` first for a new run.

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
    """Check that a vehicle as `for_new_run` described it fits a mission, and return warnings.

    Raises
    ------
    InputError
        As for `check_vehicle`.
    """
    if "kind" in plain:
        return []
    try:
        return check_vehicle(_file_of(plain), mission, number)
    except InputError as error:
        raise error.at("vehicle") from None


def place_of(plain: Mapping[str, Any], mission: Mission, number: int = 0) -> list[str]:
    """Return lines on where a vehicle, as `for_new_run` described it, places a mission on the ground."""
    return [] if "kind" in plain else describe_place(_file_of(plain), mission, number)


def full_battery(vehicles: Sequence[Mapping[str, Any]]) -> float | str | None:
    """Return what a full battery of the first vehicle holds, as its file states it; None if it does not."""
    full: float | str | None = vehicles[0].get("battery", {}).get("full") if vehicles else None
    return full


def _file_of(plain: Mapping[str, Any]) -> LoadedVehicleFile:
    """Return the vehicle file behind the description of a vehicle."""
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
    plain = for_new_run(name)
    check_new(plain, mission, number)
    return vehicle_of(plain, mission, number)
