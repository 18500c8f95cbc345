"""``fieldbo plan``: a route that an autopilot follows by itself."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fieldbo.messages import Query
    from fieldbo.mission.mission import Mission
    from fieldbo.vehicles.mavlink.flight_plan import Track

EXAMPLES = """
**Examples**

`fieldbo plan lake-lawnmower --vehicle boat.toml` - write the sweep to *lake-lawnmower.plan*

`fieldbo plan lake-level-set-1 --vehicle boat.toml --out again.plan` - revisit the sites of that run

`fieldbo plan lake-lawnmower --vehicle boat.toml --upload` - write the sweep, and upload it to the vehicle

The vehicle file states where the domain lies (*[frame]*) and how to reach the vehicle (*[link]* of kind
"mavlink"). The plan follows the routes around obstacles from the mission's start to each site, and home. It
is checked against the fence, and includes it; the fence is built from the world's outline and obstacles and
the limits in *[link]*. Taking off, landing and starting the plan are up to the pilot.
"""

_USUAL_STAY_S = 5.0

_NEEDS_NO_READINGS = ("lawnmower", "random")
"""Policies whose route does not depend on the readings."""


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
        typer.Option(help="File to write; by default *NAME.plan* in this folder.", metavar="FILE"),
    ] = None,
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
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key of the mission; repeatable.", metavar="TABLE.KEY=VALUE"),
    ] = None,
) -> None:
    """Write a survey as a QGroundControl plan, and optionally upload it to a MAVLink vehicle.

    Use this when the autopilot is to follow the whole route by itself, without fieldbo.
    """
    import numpy as np

    from fieldbo.errors import InputError, errors_of, raise_all
    from fieldbo.vehicles.checks import check_tolerances, doubts
    from fieldbo.vehicles.file import LoadedVehicleFile
    from fieldbo.vehicles.mavlink import flight_plan
    from fieldbo.vehicles.mavlink.fence_check import check_geofence
    from fieldbo.vehicles.mavlink.link import Mavlink
    from fieldbo.vehicles.place import axes_lead, describe_place

    if stay is not None and not 0 <= stay < float("inf"):
        raise InputError(f"stay = {stay}", expected="a number of seconds, at least 0", where="--stay")
    loaded = LoadedVehicleFile.read(str(vehicle))
    link = loaded.link
    if not isinstance(link, Mavlink):
        raise InputError(
            f"kind = {loaded.kind!r}", expected='a link of kind "mavlink"', where=f"{vehicle}: link.kind"
        )
    file = out or Path(f"{Path(source).stem}.plan")
    _check_free(file)
    if (run := _run_of_the_same_name(source)) is not None:
        typer.echo(f"{source} is a mission and a run; this plans the mission. The run: fieldbo plan {run}")
    mission, way, sampling_s = _track(source, set_ or [], loaded.settings.battery.full)
    ground = loaded.settings.ground(mission.world.domain)
    raise_all(
        errors_of(
            lambda: check_tolerances(loaded, mission),
            lambda: check_geofence(link.geofence(mission, ground), mission),
        )
    )
    fence = link.geofence(mission, ground)
    stays = np.zeros(len(way.points))
    stays[way.is_site] = sampling_s if stay is None else stay
    route = flight_plan.waypoints(way, fence, stays, loaded.settings.arrival.within)
    home = mission.vehicles[0].start if mission.vehicles[0].home is None else mission.vehicles[0].home
    total, over = _total(mission, flight_plan.declared(mission, way, stays), len(route))
    warnings = [*check_geofence(fence, mission), *doubts(loaded, mission), *over]
    try:
        file.write_text(flight_plan.plan_file(route, fence, link, home), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}", where="--out") from None
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    frame = loaded.settings.frame
    if frame is not None and frame.axes:
        typer.echo(f"axes      {axes_lead(frame)}")
    for line in describe_place(loaded, mission):
        typer.echo(line.strip())
    sites = sum(waypoint.is_site for waypoint in route)
    typer.echo(f"wrote {len(route)} waypoints, {sites} of them at sites, to {file}")
    if total:
        typer.echo(f"travel and stays take about {total}")
    if upload:
        for note in flight_plan.upload(route, fence, link, home):
            typer.echo(note)
        typer.echo(f"uploaded {len(route)} waypoints to the vehicle at {link.address}")


def _check_free(file: Path) -> None:
    """Raise an `InputError` if a file exists that fieldbo did not write."""
    import json

    from fieldbo.errors import InputError

    if not file.is_file():
        return
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("groundStation") != "fieldbo":
        raise InputError(
            f"{file} exists, and is not a plan that fieldbo wrote",
            expected="a new file, or a plan of fieldbo to replace",
            where="--out",
            fix="choose another name with --out, or move the file away",
        )


def _total(mission: Mission, declared: tuple[float, float], waypoints: int) -> tuple[str, list[str]]:
    """Return a plan's duration and cost in words, empty if unknown, and warnings if it exceeds a limit."""
    spec, unit, (cost, seconds) = mission.vehicles[0], mission.world.cost_unit, declared
    if not math.isfinite(cost) or not math.isfinite(seconds):
        return "", []
    needs = f"{_about(seconds)} s"
    if in_seconds := unit == "s" and math.isclose(cost, seconds):
        total = needs
    else:
        total = f"{needs} and {_about(cost)} {unit}"
    limits = []
    if cost > spec.battery - spec.reserve:
        verb, amount = ("take", needs) if in_seconds else ("cost", f"{_about(cost)} {unit}")
        reserve = f" less the reserve of {_about(spec.reserve)} {unit}" if cost <= spec.battery else ""
        battery = f"the battery of {_about(spec.battery)} {unit}{reserve}"
        limits.append(f"{waypoints} waypoints {verb} about {amount}, more than {battery}")
    if spec.time_limit_s is not None and seconds > spec.time_limit_s:
        limit = f"the time limit of {_about(spec.time_limit_s)} s"
        limits.append(f"{waypoints} waypoints take about {needs}, more than {limit}")
    return total, limits


def _about(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _track(source: str, pairs: list[str], full: float | str | None) -> tuple[Mission, Track, list[float]]:
    """Return a mission, the track of its route or run with home at the end, and the sampling times."""
    import numpy as np

    from fieldbo.errors import InputError
    from fieldbo.messages import Observation, Query
    from fieldbo.runs.load import load_run
    from fieldbo.vehicles.mavlink.flight_plan import track

    if _is_mission(source):
        mission, queries = _planned(source, pairs, full)
        stops = [(query.site, query.route) for query in queries]
        return mission, track(mission, stops), _sampling_s(mission, queries)
    if pairs:
        raise InputError(
            "--set does not apply to a run", expected="a mission; a run cannot be changed", where="--set"
        )
    agent = load_run(source).agent
    orders = {number: issued.order for number, issued in agent.issued.items()}
    stops, queries = [], []
    for event in agent.history:
        if isinstance(event, Observation) and isinstance(query := orders[event.order], Query):
            for site in event.sites:
                if queries and query is queries[-1] and np.array_equal(site, stops[-1][0]):
                    continue  # a further reading of the same stay
                stops.append((site, query.route))
                queries.append(query)
    return agent.mission, track(agent.mission, stops), _sampling_s(agent.mission, queries)


def _is_mission(source: str) -> bool:
    from fieldbo.mission.catalogue import list_missions

    return source.endswith(".toml") or source in list_missions()


def _run_of_the_same_name(source: str) -> str | None:
    """Return the folder of a run with the name of a mission, as it can be typed; None if there is none."""
    from fieldbo.errors import InputError
    from fieldbo.runs.load import record_file

    if not _is_mission(source) or source.endswith(".toml"):
        return None
    try:
        folder = record_file(source).parent
    except InputError:
        return None
    return str(folder) if len(folder.parts) > 1 else f"./{folder}"


def _sampling_s(mission: Mission, queries: Sequence[Query]) -> list[float]:
    """Return how long the world's sampling takes at the site of each query, in seconds."""
    cost = mission.world.cost
    times = [float(cost.sampling_s(query.site[None], query.level)[0]) for query in queries]
    return [time if math.isfinite(time) else _USUAL_STAY_S for time in times]


def _planned(source: str, pairs: list[str], full: float | str | None) -> tuple[Mission, list[Query]]:
    """Return a mission and its queries, asked for in advance with readings of 0: its policy ignores them."""
    from fieldbo.agent.agent import Agent
    from fieldbo.cli.settings import overrides
    from fieldbo.errors import InputError
    from fieldbo.messages import Query, Stop
    from fieldbo.mission.load import load_mission

    mission = load_mission(source, overrides(pairs), full)
    if mission.policy_kind not in _NEEDS_NO_READINGS:
        raise InputError(
            f"the route of the policy {mission.policy_kind!r} depends on its readings",
            expected=f"a policy that ignores readings: {' or '.join(_NEEDS_NO_READINGS)}",
            where="policy.kind",
            fix="add --set policy.kind=lawnmower, or run the mission and plan the run",
        )
    agent, queries = Agent(mission), []
    while not isinstance(order := agent.ask(), Stop):
        if isinstance(order, Query):
            queries.append(order)
            agent.tell(order.observed(0.0, noise_variance=1.0))
        else:
            agent.tell(order.observed())
    return mission, queries
