"""``fieldbo plan``: a way that an autopilot follows by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fieldbo._numerics.arrays import Array
    from fieldbo.mission.mission import Mission

EXAMPLES = """
**Examples**

`fieldbo plan lake-lawnmower --vehicle boat.toml` - the sweep, into *lake-lawnmower.plan*

`fieldbo plan lake-level-set-1 --vehicle boat.toml --out again.plan` - where that run read, once more

`fieldbo plan lake-lawnmower --vehicle boat.toml --upload` - the sweep, and into the vehicle with it

The vehicle file says where the domain lies (*[frame]*), and how the vehicle is reached (*[link]* of kind
"mavlink"). Its fence is checked, and stands in the plan. Taking off, landing and starting the plan are left
to the pilot.
"""

_ASK_NO_MODEL = ("lawnmower", "random")


def plan(
    source: Annotated[
        str,
        typer.Argument(
            help="A mission whose rule asks no model, or a run: its folder, or its name below *runs*.",
            metavar="MISSION|RUN",
        ),
    ],
    vehicle: Annotated[Path, typer.Option(help="The vehicle file.", metavar="FILE")],
    out: Annotated[
        Path | None, typer.Option(help="The plan; by default *NAME.plan* here.", metavar="FILE")
    ] = None,
    stay: Annotated[float, typer.Option(help="Seconds to stay at each waypoint.")] = 5.0,
    upload: Annotated[
        bool, typer.Option("--upload", help="Put it into the vehicle, too, in place of its mission.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Replace a key of the mission; may be given often.", metavar="TABLE.KEY=VALUE"
        ),
    ] = None,
) -> None:
    """Write a survey as a QGroundControl plan, and put it into a MAVLink vehicle.

    For a pilot who has the autopilot go the whole way by itself, without fieldbo.
    """
    from fieldbo.errors import InputError
    from fieldbo.vehicles.load import LoadedVehicleFile
    from fieldbo.vehicles.mavlink import flight_plan
    from fieldbo.vehicles.mavlink.link import Mavlink, located

    if not 0 <= stay < float("inf"):
        raise InputError(f"stay {stay}", expected="seconds, at least 0", where="--stay")
    told = LoadedVehicleFile.read(str(vehicle))
    if not isinstance(told.link, Mavlink):
        raise InputError(
            f"a vehicle on {told.kind}", expected='a link of kind "mavlink"', where=f"{vehicle}: link.kind"
        )
    mission, sites = _way(source, set_ or [])
    axes, frame = mission.world.domain.axes, told.settings.frame
    ground = located(None if frame is None else frame.over(axes), axes)
    way = flight_plan.waypoints(sites, ground, told.link, stay)
    file = out or Path(f"{Path(source).stem}.plan")
    try:
        file.write_text(flight_plan.plan_file(way, ground, told.link), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} can't be written: {error.strerror}", where="--out") from None
    typer.echo(f"{len(way)} waypoints in {file}")
    if upload:
        flight_plan.upload(way, ground, told.link)
        typer.echo(f"{len(way)} waypoints in the vehicle at {told.link.address}")


def _way(source: str, pairs: list[str]) -> tuple[Mission, Array]:
    """Return a mission and the sites (k, d) that it goes to, or went to, in order; home at the end."""
    import numpy as np

    from fieldbo.errors import InputError
    from fieldbo.messages import Observation
    from fieldbo.mission.catalogue import list_missions
    from fieldbo.runs.load import load_run

    if source.endswith(".toml") or source in list_missions():
        return _planned(source, pairs)
    if pairs:
        raise InputError(
            "--set with a run", expected="a mission: what a run did can't be changed", where="--set"
        )
    agent = load_run(source).agent
    home = agent.mission.vehicles[0].home
    sites = [site for event in agent.history if isinstance(event, Observation) for site in event.sites]
    return agent.mission, np.array([*sites, *([] if home is None else [home])])


def _planned(source: str, pairs: list[str]) -> tuple[Mission, Array]:
    """Return a mission and its way, asked for beforehand: its rule heeds no reading, any will do."""
    import numpy as np

    from fieldbo.agent.agent import Agent
    from fieldbo.cli.settings import overrides
    from fieldbo.errors import InputError
    from fieldbo.messages import Query, Stop
    from fieldbo.mission.load import load_mission

    mission = load_mission(source, overrides(pairs))
    if mission.policy_kind not in _ASK_NO_MODEL:
        raise InputError(
            f"the rule {mission.policy_kind!r} goes by what it reads: its way is not known beforehand",
            expected=f"a rule that asks no model: {' or '.join(_ASK_NO_MODEL)}",
            where="policy.kind",
            fix="--set policy.kind=lawnmower; or plan a run's way, once there is one",
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
