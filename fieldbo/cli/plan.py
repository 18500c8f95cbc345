"""``fieldbo plan``: a route that an autopilot follows by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fieldbo._numerics.arrays import Array
    from fieldbo.mission.mission import Mission

EXAMPLES = """
**Examples**

`fieldbo plan lake-lawnmower --vehicle boat.toml` - write the sweep to *lake-lawnmower.plan*

`fieldbo plan lake-level-set-1 --vehicle boat.toml --out again.plan` - revisit the sites of that run

`fieldbo plan lake-lawnmower --vehicle boat.toml --upload` - write the sweep, and upload it to the vehicle

The vehicle file states where the domain lies (*[frame]*) and how to reach the vehicle (*[link]* of kind
"mavlink"). The plan is checked against the link's fence and includes it. Taking off, landing and starting
the plan are up to the pilot.
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
    stay: Annotated[float, typer.Option(help="Seconds to stay at each waypoint.")] = 5.0,
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
    mission, sites = _sites(source, set_ or [], loaded.settings.battery.full)
    axes, frame = mission.world.domain.axes, loaded.settings.frame
    ground = located(None if frame is None else frame.over(axes), axes)
    route = flight_plan.waypoints(sites, ground, link, stay)
    file = out or Path(f"{Path(source).stem}.plan")
    try:
        file.write_text(flight_plan.plan_file(route, ground, link), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}", where="--out") from None
    typer.echo(f"wrote {len(route)} waypoints to {file}")
    if upload:
        flight_plan.upload(route, ground, link)
        typer.echo(f"uploaded {len(route)} waypoints to the vehicle at {link.address}")


def _sites(source: str, pairs: list[str], full: float | str | None) -> tuple[Mission, Array]:
    """Return a mission and the sites (k, d) of its route or run, in order, with home at the end."""
    import numpy as np

    from fieldbo.errors import InputError
    from fieldbo.messages import Observation
    from fieldbo.mission.catalogue import list_missions
    from fieldbo.runs.load import load_run

    if source.endswith(".toml") or source in list_missions():
        return _planned(source, pairs, full)
    if pairs:
        raise InputError(
            "--set does not apply to a run", expected="a mission; a run cannot be changed", where="--set"
        )
    agent = load_run(source).agent
    home = agent.mission.vehicles[0].home
    sites = [site for event in agent.history if isinstance(event, Observation) for site in event.sites]
    return agent.mission, np.array([*sites, *([] if home is None else [home])])


def _planned(source: str, pairs: list[str], full: float | str | None) -> tuple[Mission, Array]:
    """Return a mission and its route, asked for in advance with readings of 0: its policy ignores them."""
    import numpy as np

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
    agent, sites = Agent(mission), []
    while not isinstance(order := agent.ask(), Stop):
        assert order.site is not None
        sites.append(order.site)
        if isinstance(order, Query):
            agent.tell(order.observed(0.0, noise_variance=1.0))
        else:
            agent.tell(order.observed())
    return mission, np.array(sites)
