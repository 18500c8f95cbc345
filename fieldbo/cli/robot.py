"""``fieldbo robot``: a simulated robot at the other end of a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fieldbo._numerics.arrays import Array

EXAMPLES = """
**Examples**, each beside a second terminal in which `fieldbo run lake-level-set --vehicle ...` runs

`fieldbo robot mqtt --world lake-transect --speedup 100` - a boat on the broker of this machine

`fieldbo robot boat.toml --world lake-transect` - where the vehicle file says that the robot is

`fieldbo robot mqtt --world lake-transect --fault refuse:3 --fault drain:5:1.5` - errand 3 (the first is 0)
is refused; from errand 5 on, all takes half as much again of the battery

**Faults**; errands are counted from 0

`refuse:N` - errand N is refused

`stuck:N` - errand N is begun and never finished

`nan:N` - the reading of errand N is no number

`absurd:N` - the reading of errand N is 1e30

`astray:N:X` - errand N ends X units off its site, on the first axis

`drain:N:X` - from errand N on everything costs X times as much of the battery

`twice:N` - the result of errand N is sent two times

`late:N:X` - the result of errand N comes X seconds late

`clock:N:X` - at errand N the robot's clock jumps by X seconds

`silent:N:X` - from errand N on nothing is said for X seconds, though the robot goes on
"""


def _site(text: str, dimension: int) -> Array:
    """Return the coordinates that a user wrote with commas between them."""
    import numpy as np

    from fieldbo.errors import InputError

    try:
        found = np.array([float(part) for part in text.split(",")])
    except ValueError:
        found = np.empty(0)
    if len(found) != dimension or not np.isfinite(found).all():
        raise InputError(f"start {text!r}", expected=f"{dimension} numbers, commas between", where="--start")
    return found


def robot(
    link: Annotated[
        str,
        typer.Argument(
            help="How it is reached: *ros2*, *mavlink* or *mqtt* as they are by default, or a vehicle file.",
            metavar="LINK",
        ),
    ],
    world: Annotated[str, typer.Option(help="The world that it is in: a name, or a TOML file.")],
    draw: Annotated[int, typer.Option(help="Which field, where the world is random.")] = 0,
    seed: Annotated[
        int, typer.Option(help="Of the readings' noise: a mission's seed gives those of its own simulation.")
    ] = 0,
    start: Annotated[
        str | None, typer.Option(help="Where it is: a coordinate an axis, for example 0,0.", metavar="SITE")
    ] = None,
    battery: Annotated[
        float | None,
        typer.Option(help="What its full battery holds, in the world's cost unit; by default it tells none."),
    ] = None,
    speedup: Annotated[float, typer.Option(help="Its clock runs so many times faster.")] = 1.0,
    fault: Annotated[
        list[str] | None, typer.Option(help="Misbehave; may be given often.", metavar="KIND:N[:X]")
    ] = None,
) -> None:
    """Be a robot: take orders over a link, drive and read in a simulated world, until Ctrl-C."""
    import math

    from fieldbo.errors import InputError
    from fieldbo.mission.load import load_world
    from fieldbo.vehicles.load import LoadedVehicleFile
    from fieldbo.vehicles.simulators import ROBOTS, Fault, Robot

    told = LoadedVehicleFile.read(link)
    place = load_world(world, draw)
    if place.live:
        raise InputError(
            f"a robot in {world}, which has no [field]", expected="a world with one", where="--world"
        )
    if not (math.isfinite(speedup) and speedup > 0):
        raise InputError(f"speedup {speedup}", expected="a finite number above 0", where="--speedup")
    body = Robot(
        place,
        seed=seed,
        start=None if start is None else _site(start, place.domain.dimension),
        battery=math.inf if battery is None else battery,
        speedup=speedup,
        faults=[Fault.parse(text) for text in fault or []],
    )
    ground = told.settings.ground(place.domain.axes)
    typer.echo(f"a {told.kind} robot in {place.name}, at {told.link.address}; Ctrl-C ends it")
    try:
        ROBOTS.get(told.kind)(body, told.link, ground, typer.echo)
    except KeyboardInterrupt:
        typer.echo("the robot is switched off")
