"""``fieldbo plan``: a route that an autopilot follows by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fieldbo.mission.mission import Mission
    from fieldbo.vehicles.mavlink.flight_plan import Track

EXAMPLES = """
**Examples**

`fieldbo plan lake-lawnmower --vehicle boat.toml` - write the sweep to *lake-lawnmower.plan*

`fieldbo plan lake-level-set-1 --vehicle boat.toml --out again.plan` - revisit the sites of that run

`fieldbo plan lake-lawnmower --vehicle boat.toml --upload` - write the sweep, and upload it to the vehicle

The vehicle file states where the domain lies (*[frame]*) and how to reach the vehicle (*[link]* of kind
"mavlink"). The plan follows the routes around obstacles from the mission's start to each site, and home. It
is checked against the fence, which the world's outline and obstacles and the link's own limits form, and
includes it. Taking off, landing and starting the plan are up to the pilot.
"""

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
    stay: Annotated[float, typer.Option(help="Seconds to stay at each site.")] = 5.0,
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
    from fieldbo.errors import InputError
    from fieldbo.vehicles.load import LoadedVehicleFile
    from fieldbo.vehicles.mavlink import flight_plan
    from fieldbo.vehicles.mavlink.geofence import check_geofence, geofence
    from fieldbo.vehicles.mavlink.link import Mavlink
    from fieldbo.vehicles.mavlink.settings import located

    if not 0 <= stay < float("inf"):
        raise InputError(f"stay = {stay}", expected="a number of seconds, at least 0", where="--stay")
    loaded = LoadedVehicleFile.read(str(vehicle))
    link = loaded.link
    if not isinstance(link, Mavlink):
        raise InputError(
            f"kind = {loaded.kind!r}", expected='a link of kind "mavlink"', where=f"{vehicle}: link.kind"
        )
    mission, way = _track(source, set_ or [], loaded.settings.battery.full)
    axes, frame = mission.world.domain.axes, loaded.settings.frame
    ground = located(None if frame is None else frame.over(axes), axes, link.stand_off)
    fence = geofence(mission, ground, link.fence)
    warnings = check_geofence(fence, mission)
    route = flight_plan.waypoints(way, fence, stay)
    file = out or Path(f"{Path(source).stem}.plan")
    try:
        file.write_text(flight_plan.plan_file(route, fence, link), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}", where="--out") from None
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    sites = sum(waypoint.is_site for waypoint in route)
    typer.echo(f"wrote {len(route)} waypoints, {sites} of them at sites, to {file}")
    if upload:
        for note in flight_plan.upload(route, fence, link):
            typer.echo(note)
        typer.echo(f"uploaded {len(route)} waypoints to the vehicle at {link.address}")


def _track(source: str, pairs: list[str], full: float | str | None) -> tuple[Mission, Track]:
    """Return a mission, and the track of its route or run, with home at the end."""
    from fieldbo.errors import InputError
    from fieldbo.messages import Observation
    from fieldbo.mission.catalogue import list_missions
    from fieldbo.runs.load import load_run
    from fieldbo.vehicles.mavlink.flight_plan import track

    if source.endswith(".toml") or source in list_missions():
        return _planned(source, pairs, full)
    if pairs:
        raise InputError(
            "--set does not apply to a run", expected="a mission; a run cannot be changed", where="--set"
        )
    agent = load_run(source).agent
    observed = [event for event in agent.history if isinstance(event, Observation)]
    orders = {number: issued.order for number, issued in agent.issued.items()}
    stops = [(site, orders[event.order].route) for event in observed for site in event.sites]
    return agent.mission, track(agent.mission, stops)


def _planned(source: str, pairs: list[str], full: float | str | None) -> tuple[Mission, Track]:
    """Return a mission and its track, asked for in advance with readings of 0: its policy ignores them."""
    from fieldbo.agent.agent import Agent
    from fieldbo.cli.settings import overrides
    from fieldbo.errors import InputError
    from fieldbo.messages import Query, Stop
    from fieldbo.mission.load import load_mission
    from fieldbo.vehicles.mavlink.flight_plan import track

    mission = load_mission(source, overrides(pairs), full)
    if mission.policy_kind not in _NEEDS_NO_READINGS:
        raise InputError(
            f"the route of the policy {mission.policy_kind!r} depends on its readings",
            expected=f"a policy that ignores readings: {' or '.join(_NEEDS_NO_READINGS)}",
            where="policy.kind",
            fix="add --set policy.kind=lawnmower, or run the mission and plan the run",
        )
    agent, stops = Agent(mission), []
    while not isinstance(order := agent.ask(), Stop):
        if isinstance(order, Query):
            stops.append((order.site, order.route))
            agent.tell(order.observed(0.0, noise_variance=1.0))
        else:
            agent.tell(order.observed())
    return mission, track(mission, stops)
