"""``fieldbo new``: create your own world, mission or vehicle file."""

from __future__ import annotations

import typer

from fieldbo.cli import new_mission, new_vehicle, new_world

HELP = "Create your own world, mission or vehicle file."

app = typer.Typer(help=HELP, no_args_is_help=True)
app.command("world", epilog=new_world.EXAMPLES)(new_world.world)
app.command("mission", epilog=new_mission.EXAMPLES)(new_mission.mission)
app.command("vehicle", epilog=new_vehicle.EXAMPLES)(new_vehicle.vehicle)


@app.callback(help=HELP)
def new() -> None:
    """Make ``new`` a group of commands."""
