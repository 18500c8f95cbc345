"""Vehicles by name, from a vehicle file, a link's defaults or a record; and whether they fit a mission."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted, errors_of, raise_all
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.base import VEHICLES, Vehicle
from fieldbo.vehicles.file import LoadedVehicleFile, axes_lead, describe_place, place_doubts, widest
from fieldbo.vehicles.remote.settings import Battery
from fieldbo.vehicles.remote.track import top_speed


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
        It names all that does not fit: what the robot's battery reports mean is unknown, the mission's
        battery is larger than the vehicle's, a tolerance is too wide (see `check_tolerances`), the sensor
        reads too often, or the fence contradicts the mission.
    """
    warnings = _unheard(file, mission)
    errors = errors_of(
        lambda: warnings.extend(_check_battery(file, mission, number)),
        lambda: check_tolerances(file, mission),
        lambda: check_readings_on_the_way(file, mission),
    )
    fit = errors_of(lambda: warnings.extend(doubts(file, mission)))
    raise_all([error.at("vehicle") for error in errors] + fit)
    domain = mission.world.domain
    if not domain.clear and domain.clearance == 0:
        warnings.append(
            "routes run right along obstacles and outline, and no robot steers that precisely: set clearance "
            "in [domain] of the world"
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
    if file.link.battery_in == "percent":
        raise InputError(
            f"a robot on a link of kind {file.kind} reports its battery in percent, but its capacity is not "
            "given",
            expected=f"full in [battery] of the vehicle file: the capacity of a full battery, in {unit}",
            where="battery.full",
            fix="write a vehicle file with that key: fieldbo new vehicle NAME --link " + file.kind
            if file.bare
            else f"set full in [battery] of the vehicle file, for example full = {battery:g}; fieldbo plan "
            "does not need it",
        )
    return [
        "battery percentages, if the robot reports them, refer to the mission's battery of "
        f"{battery:g} {unit}; if a full battery holds more, set full in [battery] of the vehicle file"
    ]


def _unheard(file: LoadedVehicleFile, mission: Mission) -> list[str]:
    """Return a warning for each hold on a channel that the link can't report."""
    known = file.link.known_channels
    return [
        f"the hold {hold.name} can do nothing: a link of kind {file.kind} reports no channel {hold.channel} "
        f"unless you name its source under channels in [link] of the vehicle file"
        for hold in mission.holds
        if known is not None and hold.channel not in known
    ]


def check_tolerances(file: LoadedVehicleFile, mission: Mission) -> None:
    """Check how far from a site a vehicle may be to count as there.

    Raises
    ------
    InputError
        The robot would count as at the wrong site, or inside an obstacle's clearance.
    """
    within, accuracy, domain = (
        file.settings.arrival.within,
        file.settings.reports.accuracy,
        mission.world.domain,
    )
    errors = (
        [] if file.link.reports else _too_wide("arrival", "within", "an arrival tolerance", within, domain)
    )
    raise_all(errors + _too_wide("reports", "accuracy", "an accuracy of positions", accuracy, domain))


def _too_wide(
    table: str, key: str, what: str, given: float | tuple[float, ...], domain: Domain
) -> list[InputError]:
    """Return an error if a tolerance, one number or one per axis, is too wide; of several axes, the worst."""
    where = f"{table}.{key}"
    if np.ndim(given) and len(np.atleast_1d(given)) != domain.dimension:
        return [
            InputError(
                f"{key} has {counted(len(np.atleast_1d(given)), 'number')}",
                expected=f"one number, or one for each of {', '.join(axis.name for axis in domain.axes)}",
                where=where,
            )
        ]
    wide = [
        (limit / value if value else math.inf, value, limit, name, axis.unit)
        for value, (limit, name), axis in zip(
            np.broadcast_to(given, domain.dimension).tolist(), widest(key, domain), domain.axes, strict=True
        )
        if math.isfinite(limit) and value > limit and not np.isclose(value, limit)
    ]
    if not wide:
        return []
    _, value, limit, name, unit = min(wide, key=lambda one: one[0])
    return [
        InputError(
            f"{key} = {value:g}, wider than {name}, {limit:g} {unit}".rstrip(),
            expected=f"{what} of at most {limit:g}",
            where=where,
            fix=f"lower {key} in [{table}] of the vehicle file"
            + ("" if domain.clear else ", or raise clearance in [domain] of the world"),
        )
    ]


def check_readings_on_the_way(file: LoadedVehicleFile, mission: Mission) -> None:
    """Raise an `InputError` if the sensor reads on the way more often than the link carries."""
    along, domain = mission.world.sensor.along, mission.world.domain
    capacity = None if along is None else file.link.capacity(domain)
    if along is None or capacity is None:
        return
    if along.every_m is None:
        per_s, at, unit = 1.0, "", "s"
    else:
        cost = mission.declared_cost
        per_s = 0.0 if cost is None else top_speed(mission, np.ones(domain.dimension))
        at, unit = f" at {per_s:.3g} m/s", "m"
    wanted, carried = per_s / (along.every_m or along.every_s or 1.0), capacity.readings_per_s
    if wanted <= carried:
        return
    less = f"read every {_round_up(per_s / carried):g} {unit} or less often" if carried else "delete along"
    raise InputError(
        f"the sensor reads {along.in_words} on the way{at}, {wanted:.3g} per second, but a link of kind "
        f"{file.kind} carries {carried:.3g} per second: {capacity.reading_bytes} bytes each, and "
        f"{max(0.0, capacity.bytes_per_s):.4g} bytes per second are left for them",
        expected=f"at most {carried:.3g} readings per second",
        where="sensor.along",
        fix=f"{less}, in [sensor] of the world; or, if the link carries more, raise {capacity.key} in [link] "
        "of the vehicle file",
    )


def _round_up(number: float) -> float:
    """Return a positive number, rounded up to two digits."""
    digit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / digit) * digit


# -- what is unlikely to be meant --------------------------------------------------------------------------


def doubts(file: LoadedVehicleFile, mission: Mission) -> list[str]:
    """Return warnings of a frame that is unlikely to be meant, and of a link that contradicts the mission.

    Raises
    ------
    InputError
        The link does not fit the mission at all.
    """
    ground = file.settings.ground(mission.world.domain)
    return [*place_doubts(file, mission), *file.link.check(mission, ground)]


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
