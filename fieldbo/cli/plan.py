"""``fieldbo plan``: a route that an autopilot follows by itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldbo.cli.options import Policy, Set, examples, overrides
from fieldbo.errors import InputError, counted, errors_of, raise_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fieldbo._numerics.arrays import Array
    from fieldbo.mission.mission import Mission
    from fieldbo.runs.flights import Flight
    from fieldbo.vehicles.file import LoadedVehicleFile
    from fieldbo.vehicles.mavlink.flight_plan import Waypoint
    from fieldbo.vehicles.mavlink.geofence import GeoFence
    from fieldbo.vehicles.mavlink.link import Mavlink
    from fieldbo.vehicles.mavlink.settings import MavlinkSettings


_PLAN, _TEXT = ".plan", ".waypoints"


@dataclass(frozen=True)
class PlanFiles:
    """The files of plans.

    Attributes
    ----------
    missions : tuple of Path
        One per battery; their names sort in the order of the batteries.
    fence : Path or None
        None if the files of the missions hold the fence.
    """

    missions: tuple[Path, ...]
    fence: Path | None

    @classmethod
    def of(cls, name: str, text: bool, out: Path | None, batteries: Sequence[int]) -> PlanFiles:
        """Return the files of plans for batteries.

        Parameters
        ----------
        name : str
            Of the mission or run.
        text : bool
            Whether the format is text, with the fence in a file of its own.
        out : Path or None
            The file that was asked for.
        batteries : sequence of int

        Raises
        ------
        InputError
            The format does not fit the file's name, or a file exists that fieldbo did not write.
        """
        file = out or Path(f"{name}{_TEXT if text else _PLAN}")
        if text and file.suffix == _PLAN:
            raise InputError(
                f"{file} is the name of a plan for QGroundControl, but the format is wpl",
                expected=f"a name such as {file.with_suffix(_TEXT)}",
                where="--out",
            )
        missions: tuple[Path, ...] = (file,)
        if len(batteries) > 1:
            digits = len(str(batteries[-1]))
            missions = tuple(_add_part(file, f"battery-{number:0{digits}d}") for number in batteries)
        files = cls(missions, _add_part(file, "fence") if text else None)
        for path in (*missions, *([] if files.fence is None else [files.fence])):
            _check_free(path)
        return files

    def write(
        self, routes: Sequence[Sequence[Waypoint]], fence: GeoFence, link: MavlinkSettings, home: Array
    ) -> None:
        """Write a route into each mission's file, and the fence.

        Raises
        ------
        InputError
            A file cannot be written.
        """
        from fieldbo.vehicles.mavlink.flight_plan import fence_file, plan_file, waypoint_file

        text = plan_file if self.fence is None else waypoint_file
        for file, route in zip(self.missions, routes, strict=True):
            _write(file, text(route, fence, link, home))
        if self.fence is not None and fence.zones:
            _write(self.fence, fence_file(fence))

    def beside(self, fence: GeoFence) -> list[str]:
        """Return a line on the fence's own file, if it has one."""
        if self.fence is None:
            return []
        if not fence.zones:
            return ["there is no fence to write"]
        return [f"wrote the fence, with {counted(len(fence.zones), 'zone')}, to {self.fence}"]

    def doubts(self, link: MavlinkSettings) -> list[str]:
        """Return warnings about files of an earlier plan, and a format that misleads an autopilot."""
        kept = {*self.missions, self.fence}
        first = self.missions[0]
        others = first.parent.glob(f"{first.stem.rpartition('-')[0]}-*{first.suffix}")
        left = sorted(file for file in others if len(self.missions) > 1 and file not in kept)
        warnings = [f"{file} is left over from an earlier plan" for file in left]
        if self.fence is not None and link.firmware == "px4":
            warnings.append(
                "row 0 of the mission is the home, as ArduPilot expects; PX4 would go there first: use "
                "--format plan with QGroundControl, or --upload"
            )
        return warnings


def _add_part(file: Path, part: str) -> Path:
    return file.with_name(f"{file.stem}-{part}{file.suffix}")


def _check_free(file: Path) -> None:
    """Raise an `InputError` if a file exists that fieldbo did not write."""
    from fieldbo.vehicles.mavlink.flight_plan import is_ours

    if not file.is_file():
        return
    try:
        ours = is_ours(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise InputError(
            f"{file} exists, and is not a plan that fieldbo wrote",
            expected="a new file, or a plan of fieldbo to replace",
            where="--out",
            fix="choose another name with --out, or move the file away",
        )


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}", where="--out") from None


class Format(StrEnum):
    """Formats of plans."""

    plan = "plan"
    wpl = "wpl"


@examples(
    """
**Examples**

`fieldbo plan lake-lawnmower --vehicle boat.toml` - write the sweep to *lake-lawnmower.plan*

`fieldbo plan lake-level-set-1 --vehicle boat.toml --out again.plan` - revisit the sites of that run

`fieldbo plan lake-lawnmower --vehicle boat.toml --upload` - write the sweep, and upload it to the vehicle

`fieldbo plan lake-lawnmower --vehicle boat.toml --format wpl` - write the sweep for MAVProxy or Mission
Planner: *lake-lawnmower.waypoints* and *lake-lawnmower-fence.waypoints*

`fieldbo plan three-batteries-1 --vehicle boat.toml --upload-battery 2` - write a plan for each battery, and
upload that of the second one

The vehicle file states where the domain lies (*[frame]*) and how to reach the vehicle (*[link]* of kind
"mavlink"). The plan follows the routes around obstacles from the mission's start to each site, and home;
a mission with several batteries has one plan for each. A plan is checked against the battery and the fence,
and includes the fence, which is built from the world's outline and obstacles and the limits in *[link]*.
Taking off, landing and starting the plan are up to the pilot.
"""
)
def plan(
    source: Annotated[
        str,
        typer.Argument(
            help="A mission whose policy ignores readings (lawnmower or random), or a run: its folder or its "
            "name in *runs*.",
            metavar="MISSION|RUN",
        ),
    ],
    vehicle: Annotated[Path, typer.Option(help="The vehicle file.", metavar="FILE")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write; by default *NAME.plan* or *NAME.waypoints* in this folder. With several "
            "batteries, *NAME-battery-1.plan* and so on.",
            metavar="FILE",
        ),
    ] = None,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            help="*plan* is for QGroundControl; *wpl*, for MAVProxy and Mission Planner, is the text QGC WPL "
            "110, with the fence in a file of its own.",
        ),
    ] = Format.plan,
    stay: Annotated[
        float | None,
        typer.Option(
            help="Seconds to stay at a site; visits in succession add up.  [default: the world's sampling "
            "time, or 5 if it is unknown]"
        ),
    ] = None,
    upload: Annotated[
        bool, typer.Option("--upload", help="Upload the plan to the vehicle, replacing its mission.")
    ] = False,
    upload_battery: Annotated[
        int | None, typer.Option(help="Upload the plan of this battery, counted from 1.", metavar="N")
    ] = None,
    policy: Policy = None,
    set_: Set = None,
) -> None:
    """Write a survey as a plan for each battery, and optionally upload one to the vehicle.

    Use this when the autopilot is to follow the whole route by itself, without fieldbo.
    """
    from fieldbo.runs.flights import through_closed
    from fieldbo.vehicles.load import check_tolerances, doubts
    from fieldbo.vehicles.mavlink import flight_plan
    from fieldbo.vehicles.mavlink.fence_check import check_geofence, routed, simplified, storable, too_many
    from fieldbo.vehicles.mavlink.link import from_waypoints
    from fieldbo.vehicles.mavlink.settings import describe_stance, faced

    loaded, link = _load_vehicle(vehicle)
    if (run := _run_of_the_same_name(source)) is not None:
        typer.echo(f"{source} is a mission and a run; this plans the mission. The run: fieldbo plan {run}")
    mission, flights = _load_flights(source, set_ or [], policy, loaded.settings.battery.full, stay)
    batteries = [flight.battery for flight in flights]
    files = PlanFiles.of(Path(source).stem, format_ is Format.wpl, out, batteries)
    chosen = _choose(flights, upload, upload_battery)
    ground = loaded.settings.ground(mission.world.domain)
    raise_all(
        errors_of(
            lambda: check_tolerances(loaded, mission),
            lambda: check_geofence(link.geofence(mission, ground), mission),
        )
    )
    whole = link.geofence(mission, ground)
    link = faced(link, whole.ground)
    needed = routed([flight.way.points for flight in flights], mission, whole)
    fence = storable(whole, link, needed, "plan a shorter route")
    within = loaded.settings.arrival.within
    routes = [flight_plan.waypoints(flight.way, fence, flight.stay_s, within) for flight in flights]
    home = mission.vehicles[0].start if mission.vehicles[0].home is None else mission.vehicles[0].home
    totals, beyond, too_long = _price(mission, flights, [len(route) for route in routes])
    if chosen is not None and (why := beyond[chosen] or too_long):
        raise InputError(
            f"the plan is not uploaded, since the mission does not allow it: {why}",
            expected="a plan within the mission's battery and time limit",
            where="--upload" if upload_battery is None else "--upload-battery",
            fix="shorten the stays with --stay, or plan a mission that samples less; without an upload, the "
            "plan is written all the same",
        )
    warnings = [*check_geofence(whole, mission), *doubts(loaded, mission), *files.doubts(link)]
    warnings += filter(None, [too_many(fence, link), *beyond, too_long])
    warnings += through_closed(mission, flights)
    for flight, route in zip(flights, routes, strict=True):
        warnings += from_waypoints(
            mission, fence, route, flight.way.points[0], _name_battery(flight, flights)
        )
    files.write(routes, fence, link, home)
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    for line in [*_describe_place(loaded, mission), *describe_stance(link, fence.ground, mission)]:
        typer.echo(line.strip())
    for line in simplified(whole, fence, link):
        typer.echo(f"fence     {line}")
    for flight, file, route, total in zip(flights, files.missions, routes, totals, strict=True):
        which = _name_battery(flight, flights)
        sites = sum(waypoint.is_site for waypoint in route)
        typer.echo(f"{which}wrote {len(route)} waypoints, {sites} of them at sites, to {file}")
        if total:
            typer.echo(f"{which}travel and stays take about {total}")
    for line in files.beside(fence):
        typer.echo(line)
    if chosen is not None:
        route = routes[chosen]
        for note in flight_plan.upload(route, fence, link, home):
            typer.echo(note)
        which = _name_battery(flights[chosen], flights)
        typer.echo(f"{which}uploaded {len(route)} waypoints to the vehicle at {link.address}")


def _load_vehicle(file: Path) -> tuple[LoadedVehicleFile, Mavlink]:
    """Return a vehicle file and its link.

    Raises
    ------
    InputError
        It is no MAVLink vehicle.
    """
    from fieldbo.vehicles.file import LoadedVehicleFile
    from fieldbo.vehicles.mavlink.link import Mavlink

    loaded = LoadedVehicleFile.read(str(file))
    if not isinstance(loaded.link, Mavlink):
        raise InputError(
            f"kind = {loaded.kind!r}", expected='a link of kind "mavlink"', where=f"{file}: link.kind"
        )
    return loaded, loaded.link


def _describe_place(loaded: LoadedVehicleFile, mission: Mission) -> list[str]:
    """Return lines on where the vehicle file places the mission on the ground."""
    from fieldbo.vehicles.file import axes_lead, describe_place

    frame = loaded.settings.frame
    axes = [f"axes      {axes_lead(frame)}"] if frame is not None and frame.axes else []
    return [*axes, *describe_place(loaded, mission)]


def _name_battery(flight: Flight, flights: Sequence[Flight]) -> str:
    """Return which of several batteries a line is about; nothing if there is only one."""
    return f"battery {flight.battery}: " if len(flights) > 1 else ""


def _choose(flights: Sequence[Flight], upload: bool, battery: int | None) -> int | None:
    """Return the index of the flight to upload; None for none.

    Raises
    ------
    InputError
        There are several, and none is chosen, or there is none for this battery.
    """
    numbers = [flight.battery for flight in flights]
    if battery is not None and battery not in numbers:
        raise InputError(
            f"there is no plan for battery {battery}",
            expected=", ".join(map(str, numbers)),
            where="--upload-battery",
        )
    if battery is not None:
        return numbers.index(battery)
    if upload and len(flights) > 1:
        raise InputError(
            f"there are {len(flights)} plans, one for each battery, and the vehicle holds only one",
            expected=f"one of the batteries {', '.join(map(str, numbers))}",
            where="--upload",
            fix=f"upload each before its flight, the first one with --upload-battery {numbers[0]}",
        )
    return 0 if upload else None


def _price(
    mission: Mission, flights: Sequence[Flight], waypoints: Sequence[int]
) -> tuple[list[str], list[str], str]:
    """Return what each flight takes, by how much it exceeds the battery, and all the time limit, in words."""
    from fieldbo.runs.flights import beyond_battery, beyond_time_limit, declared, in_words

    totals, beyond, whole_s = [], [], mission.vehicles[0].changes_s(len(flights))
    for flight, number in zip(flights, waypoints, strict=True):
        cost, seconds = declared(mission, flight.way, flight.stay_s)
        totals.append(in_words(mission, cost, seconds))
        why = beyond_battery(mission, cost, seconds)
        beyond.append(f"{_name_battery(flight, flights)}{number} waypoints {why}" if why else "")
        whole_s += seconds
    too_long = beyond_time_limit(mission, whole_s)
    return totals, beyond, f"{sum(waypoints)} waypoints {too_long}" if too_long else ""


def _load_flights(
    source: str, pairs: list[str], policy: str | None, full: float | str | None, stay: float | None
) -> tuple[Mission, list[Flight]]:
    """Return a mission, and its flights or those of its run, with stays of so many seconds, if given."""
    from fieldbo.mission.load import load_mission
    from fieldbo.runs.flights import flights_of_mission, flights_of_run

    if stay is not None and not 0 <= stay < float("inf"):
        raise InputError(f"stay = {stay}", expected="a number of seconds, at least 0", where="--stay")
    if _is_mission(source):
        mission = load_mission(source, overrides(pairs, policy=policy), full)
        flights = flights_of_mission(mission)
    elif pairs or policy is not None:
        option = "--set" if pairs else "--policy"
        raise InputError(
            f"{option} does not apply to a run", expected="a mission; a run cannot be changed", where=option
        )
    else:
        mission, flights = flights_of_run(source)
    return mission, flights if stay is None else [flight.staying(stay) for flight in flights]


def _is_mission(source: str) -> bool:
    from fieldbo.mission.files import names_mission

    return source.endswith(".toml") or names_mission(source)


def _run_of_the_same_name(source: str) -> str | None:
    """Return the folder of a run with the name of a mission, as it can be typed; None if there is none."""
    from fieldbo.record.store import record_file

    if not _is_mission(source) or source.endswith(".toml"):
        return None
    try:
        folder = record_file(source).parent
    except InputError:
        return None
    return str(folder) if len(folder.parts) > 1 else f"./{folder}"
