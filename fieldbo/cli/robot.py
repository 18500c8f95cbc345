"""``fieldbo robot``: a simulated robot at the other end of a link."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldbo.cli.options import Draw, examples
from fieldbo.errors import InputError

if TYPE_CHECKING:
    from fieldbo._numerics.arrays import Array
    from fieldbo.domain.domain import Domain


def _parse_site(text: str, domain: Domain, option: str) -> Array:
    """Return the site (d,) in a comma-separated list of its coordinates or, with a CRS, of degrees."""
    import numpy as np

    dimension = domain.dimension

    try:
        site = np.array([float(part) for part in text.split(",")])
    except ValueError:
        site = np.empty(0)
    if len(site) != dimension or not np.isfinite(site).all():
        raise InputError(
            f"{option} {text}", expected=f"a place: {dimension} numbers, comma-separated", where=option
        )
    if domain.georeference is not None and np.abs(site[:2]).max() <= 180.0:  # too small to be metres
        others = [j for j in range(dimension) if j not in domain.georeference.axes]
        degrees, site[others] = site[:2].copy(), site[2:].copy()
        return domain.georeference.site(degrees, site)
    return site


@examples(
    """
**Examples**. Run the mission in a second terminal: `fieldbo run lake-level-set --vehicle ...`

`fieldbo robot mqtt --world lake-transect --speedup 100` - a boat on this machine's MQTT broker

`fieldbo robot boat.toml --world lake-transect` - the robot that this vehicle file describes; over MAVLink it
announces itself as the firmware and the vehicle in it

`fieldbo robot mqtt --world lake-transect --fault refuse:3 --fault drain:5:1.5` - reject goal 3, and
drain the battery 1.5 times as fast from goal 5 on

`fieldbo robot boat.toml --world lake-transect --channel wind=5,30:9,60:5` - report a wind of 5, from 30 s
after the first goal on one of 9, and from 60 s on one of 5 again

**Faults**. Goals are counted from 0.

`refuse:N` - reject goal N

`stuck:N` - start goal N and never finish it

`nan:N` - report NaN as the reading of goal N

`absurd:N` - report 1e30 as the reading of goal N

`astray:N:X` - finish goal N X units away from its site along the first axis

`glitch:N:X` - from goal N to the next, report every fourth position X units away along the first axis

`drain:N:X` - from goal N on, drain the battery X times as fast

`uncharged:N` - from goal N on, report no battery

`gauge:N` - from goal N on, report the battery level of that moment

`fix:N` - from goal N on, report the position of that moment

`sensor:N` - from goal N on, report the reading of goal N

`twice:N` - send the result of goal N twice

`late:N:X` - send the result of goal N X seconds late

`clock:N:X` - at goal N, make the robot's clock jump by X seconds

`silent:N:X` - from goal N on, send nothing for X seconds while the robot keeps working
"""
)
def robot(
    link: Annotated[
        str,
        typer.Argument(
            help="A vehicle file, or a kind of link with its defaults: *ros2*, *mavlink* or *mqtt*.",
            metavar="LINK",
        ),
    ],
    world: Annotated[str, typer.Option(help="World to simulate: a name, or a TOML file.")],
    draw: Draw = 0,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed for the measurement noise; use the mission's seed to get the same readings as in its "
            "simulation."
        ),
    ] = 0,
    start: Annotated[
        str | None,
        typer.Option(
            help="Where the robot starts: one coordinate per axis, for example 0,0, or, with a CRS, latitude "
            "and longitude.",
            metavar="SITE",
        ),
    ] = None,
    battery: Annotated[
        float | None,
        typer.Option(
            help="Capacity of the battery, in the world's cost unit; without it, the battery is not reported."
        ),
    ] = None,
    recharge: Annotated[
        float | None,
        typer.Option(
            help="Seconds at home without a goal after which the battery is full again, as if it had been "
            "changed; without it, nobody changes it.",
            metavar="SECONDS",
        ),
    ] = None,
    home: Annotated[
        str | None,
        typer.Option(
            help="Where the battery is changed, written like --start; by default, where the robot starts and "
            "where a goal over MQTT or Visit says that it is home.",
            metavar="SITE",
        ),
    ] = None,
    speedup: Annotated[
        float,
        typer.Option(
            help="How many times faster than real time the robot runs. While it waits for its next goal, "
            "time passes as usual."
        ),
    ] = 1.0,
    track: Annotated[
        Path | None,
        typer.Option(
            help="CSV file for the robot's own track, written when it is switched off: points with straight "
            "legs in between, and when it was there, in seconds since it was switched on.",
            metavar="FILE",
        ),
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option(help="Fault to inject; repeatable.", metavar="KIND:N[:X]")
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            help="Channel to report: a value, and others from T seconds after the first goal; repeatable.",
            metavar="NAME=X[,T:X]...",
        ),
    ] = None,
) -> None:
    """Simulate a robot: take goals over a link, travel and sample in a simulated world, until Ctrl-C.

    SIGTERM and SIGHUP switch the robot off like Ctrl-C; either way, its track is written.
    """
    import math

    from fieldbo.cli.session import stopped_by_signals
    from fieldbo.mission.load import load_world
    from fieldbo.runs.signals import unbroken
    from fieldbo.vehicles.file import LoadedVehicleFile
    from fieldbo.vehicles.simulators import ROBOTS, Fault, Robot, Schedule

    loaded = LoadedVehicleFile.read(link)
    place = load_world(world, draw)
    if place.live:
        raise InputError(
            f"the world {world} has no [field] to simulate", expected="a world with a field", where="--world"
        )
    if not (math.isfinite(speedup) and speedup > 0):
        raise InputError(f"speedup = {speedup}", expected="a finite number above 0", where="--speedup")
    if recharge is not None and not (math.isfinite(recharge) and recharge >= 0):
        raise InputError(f"recharge = {recharge}", expected="a finite number from 0", where="--recharge")
    simulated = Robot(
        place,
        seed=seed,
        start=None if start is None else _parse_site(start, place.domain, "--start"),
        battery=math.inf if battery is None else battery,
        speedup=speedup,
        recharge_s=math.inf if recharge is None else recharge,
        home=None if home is None else _parse_site(home, place.domain, "--home"),
        faults=[Fault.parse(text) for text in fault or []],
        channels=[Schedule.parse(text) for text in channel or []],
    )
    ground = loaded.settings.ground(place.domain)
    typer.echo(f"{loaded.kind} robot in {place.name} at {loaded.link.address}; stop it with Ctrl-C")
    with stopped_by_signals():
        try:
            ROBOTS.get(loaded.kind)(simulated, loaded.link, ground, typer.echo)
        except KeyboardInterrupt:
            typer.echo("the robot is switched off")
        finally:
            if track is not None:
                with unbroken():
                    _write_track(track, place.domain, simulated.track, simulated.track_s)


def _write_track(file: Path, domain: Domain, track: Array, times_s: Array) -> None:
    """Write a track (k, d) and its times (k,) as a CSV file like ``path.csv``, one point per row."""
    import csv

    from fieldbo.results.tables import place_table

    places, points = place_table(domain, track)
    header = [*places, "time_s"]
    rows = [[*point, at_s] for point, at_s in zip(points, times_s.round(3).tolist(), strict=True)]
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([header, *rows])
