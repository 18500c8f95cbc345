"""Vehicle files: reading one, where it places a mission, what it says in words, and writing a new one."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from fieldbo._numerics.arrays import Array
from fieldbo.costs.travel import Boat, Flight
from fieldbo.domain.axes import compass_name
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Frame, Ground, example, ground_of, heading
from fieldbo.domain.georeference import Georeference, degrees_text
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.files import made, read_toml
from fieldbo.mission.mission import Mission
from fieldbo.validation import validated
from fieldbo.vehicles.base import LINKS, VEHICLES
from fieldbo.vehicles.remote.link import Link
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, VehicleFile, Watch
from fieldbo.world.world import World


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

    @classmethod
    def for_record(cls, name: str) -> LoadedVehicleFile:
        """Read a vehicle file that a record is to hold.

        Raises
        ------
        InputError
            As for `read`, or the file has values that JSON cannot express.
        """
        file = cls.read(name)
        try:
            json.dumps(file.content, allow_nan=False)
        except (ValueError, TypeError) as error:
            raise InputError(
                f"the file holds a number or a date that a record cannot hold: {error}",
                expected="finite numbers, text and tables",
                where=name,
                fix="omit bounds that are infinite, for example low and high in [reports]",
            ) from None
        return file


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


_SPEED_DIGITS = 2
"""Of what is rounded down to be written."""

_VEHICLES = {Boat: "boat", Flight: "copter"}
"""Types of vehicle by the model of their costs."""


def proposed(kind: str, world: World) -> dict[str, dict[str, Any]]:
    """Return the settings that a world determines, by table and key, for a kind of link.

    The tolerances are the usual ones, or narrower where sites are close or the clearance is small, so that
    the file fits the world. A world with a CRS knows no heights, so altitudes count from the home.

    Parameters
    ----------
    kind : str
        Kind of the link.
    world : World

    Raises
    ------
    UnknownNameError
        `kind` is not a valid kind of link.

    Examples
    --------
    >>> from fieldbo.mission.load import load_world
    >>> proposed("mavlink", load_world("crack-wall"))["arrival"]
    {'within': 0.15}
    """
    link, domain = LINKS.get(kind), world.domain
    known: dict[str, Any] = {
        "altitude": "relative" if domain.crs is not None else None,
        "speed": _round_down(implied_speed(ground_of(domain), world)),
        "vehicle": _VEHICLES.get(type(world.cost)),
    }
    settings = {"link": {key: value for key, value in known.items() if value and hasattr(link, key)}}
    if not link.reports:
        settings["arrival"] = {"within": _tolerance("within", world)}
        settings["reports"] = {"accuracy": _tolerance("accuracy", world)}  # it never stops exactly there
    return settings


def stands_upright(domain: Domain) -> bool:
    """Return True if a domain is a vertical plane that rises from its origin, such as a facade."""
    ground = ground_of(domain)
    return ground is not None and ground.towards.shape[1] == 2 and bool((ground.towards[2] > 0).any())


def widest(key: str, domain: Domain) -> list[tuple[float, str]]:
    """Return the widest tolerance along each axis, and what limits it: the spacing of sites, or clearance."""
    limits = list[tuple[float, str]]()
    for spacing, axis in zip(domain.spacing.tolist(), domain.axes, strict=True):
        along = [(spacing, f"the spacing of the sites along {axis.name}")]
        if not domain.clear and (domain.clearance > 0 or key == "within"):  # else a warning says so
            along.append((domain.clearance / 2.0, "half of the clearance from obstacles and outline"))
        limits.append(min(along))
    return limits


def _tolerance(key: str, world: World) -> float:
    """Return the usual tolerance, or the widest that the world allows; the usual one if it allows none."""
    limits = [limit for limit, _ in widest(key, world.domain) if limit > 0]
    return min([Arrival().within, *(_round_down(limit) or math.inf for limit in limits)])


def _round_down(number: float | None) -> float | None:
    """Return a positive number to a few digits, never more than it is; None for one that is not known.

    Examples
    --------
    >>> _round_down(0.15000000001), _round_down(1.5), _round_down(None), _round_down(math.inf)
    (0.15, 1.5, None, None)
    """
    if number is None or not math.isfinite(number):
        return None
    step = 10.0 ** (math.floor(math.log10(number)) + 1 - _SPEED_DIGITS)
    return round(math.floor(number / step * (1.0 + 1e-9)) * step, 12)


def implied_speed(ground: Ground | None, world: World) -> float | None:
    """Return the horizontal speed in m/s that a world's costs imply; None if they imply none.

    The time for the second half of a long leg excludes accelerating and slowing down.
    """
    domain, cost = world.domain, world.cost
    flat = [] if ground is None else [j for j in range(domain.dimension) if ground.towards[2, j] == 0]
    if not flat or not cost.known:
        return None
    longest = max(flat, key=lambda j: float(domain.extent[j]))
    starts, ends = domain.low.copy(), domain.low.copy()
    ends[longest] = domain.high[longest]
    _, whole_s = cost.along(np.stack([starts, ends]))
    _, half_s = cost.along(np.stack([starts, (starts + ends) / 2.0]))
    took_s = whole_s - half_s
    return float(domain.extent[longest]) / 2.0 / took_s if math.isfinite(took_s) and took_s > 0 else None


_WIDTH = 100


def template(
    kind: str, domain: Domain, title: str = "", known: Mapping[str, Mapping[str, Any]] | None = None
) -> str:
    """Return the text of a vehicle file for a domain.

    Parameters
    ----------
    kind : str
        Kind of the link.
    domain : Domain
    title : str
    known : mapping, optional
        Settings that are not to have their defaults, by table and key.

    Raises
    ------
    UnknownNameError
        `kind` is not a valid kind of link.
    """
    link, values = LINKS.get(kind), known or {}
    parts = [
        f"format = 1\ntitle = {json.dumps(title)}",
        _settings_table("link", "how to reach the robot", link, f'kind = "{kind}"', **values.get("link", {})),
        *_frame_table(domain),
        _settings_table("watch", "how long to wait for the robot", Watch),
        _settings_table("battery", "how to interpret its battery reports", Battery),
        _settings_table("reports", "which of its reports to believe", Reports, **values.get("reports", {})),
        *(
            []
            if link.reports
            else [_settings_table("arrival", "when it has arrived", Arrival, **values.get("arrival", {}))]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _settings_table(name: str, purpose: str, settings: type, *first: str, **instead: Any) -> str:
    """Return a table of settings, each below its description: at its default, or at a value of `instead`."""
    descriptions = _descriptions(settings)
    lines = [f"[{name}]   # {purpose}", *first]
    for field in fields(settings):
        default: Any = instead.get(field.name, None if field.default is MISSING else field.default)
        text = descriptions.get(field.name, "")
        lines += textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")
        writable = isinstance(default, str | bool | int) or (
            isinstance(default, float) and math.isfinite(default)
        )
        lines.append(f"{field.name} = {json.dumps(default)}" if writable else f"# {field.name} =")
    return "\n".join(lines)


def _descriptions(settings: type) -> dict[str, str]:
    """Return the description of each setting, as TOML's comments quote values."""
    properties = TypeAdapter(settings).json_schema()["properties"]
    return {
        name: " ".join(of.get("description", "").split()).replace("``", '"')
        for name, of in properties.items()
    }


def _frame_table(domain: Domain) -> list[str]:
    """Return the table for how the axes lie, as far as the world tells; none if they are not places."""
    ground = ground_of(domain)
    if ground is None:
        return []
    if ground.origin is not None:  # the world has a CRS
        latitude, longitude = round(ground.origin.latitude, 7), round(ground.origin.longitude, 7)
        lines = [
            "[frame]   # where the world lies on the ground: its CRS places its axes",
            "# Zero of the robot's own map: degrees on WGS 84, and metres. A robot that receives degrees",
            "# needs only its altitude: of the start, above where the robot is armed.",
            f"origin = {{ latitude = {latitude}, longitude = {longitude}, altitude = 0 }}",
        ]
        return ["\n".join(lines)]
    table, origin, *rest = example(domain.axes).splitlines()
    lines = [
        f"{table}   # how the world lies on the ground",
        "# Origin of the axes: degrees on WGS 84, and metres. A robot outdoors needs it.",
        f"# {origin}",
        '# Direction of the axis named under "along", in degrees clockwise from north.',
        *rest,
    ]
    return ["\n".join(lines)]
