"""``fieldbo steer``: give a command to a run that is under way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldbo.messages.names import Action

if TYPE_CHECKING:
    from fieldbo.domain.domain import Domain
    from fieldbo.domain.obstacles import Obstacle

EXAMPLES = """
**Examples**

`fieldbo steer lake-3 pause` - the vehicle stops and holds; `continue` lets it go on

`fieldbo steer lake-3 skip` - leave out the site that it is going to

`fieldbo steer lake-3 next 300,4` - sample there after the outstanding orders

`fieldbo steer boat-1 next "47.3079 8.5105"` - the same in degrees

`fieldbo steer boat-1 no-go regatta.geojson` - keep out of these areas from now on

`fieldbo steer boat-1 no-go "47.307 8.510; 47.309 8.510; 47.308 8.514"` - the same with corners

`fieldbo steer boat-1 battery "31 Wh"` - this much is left in the battery now

`fieldbo steer boat-1 home` - go home; the run ends there

`fieldbo steer boat-1 stop` - hold, and end the process; *fieldbo resume* continues

The run confirms each command, or says why it refuses. Both are recorded. **Exit codes** 0: confirmed;
1: refused, or not confirmed in time; 2: invalid input.
"""


def steer(
    run: Annotated[Path, typer.Argument(help="The run folder, or its name in *runs/*.", metavar="RUN")],
    action: Annotated[Action, typer.Argument(help="What the run is to do.", metavar="ACTION")],
    what: Annotated[
        str | None,
        typer.Argument(
            help="For *next*: a place, as coordinates or degrees. For *no-go*: a file of polygons, or "
            "corners with semicolons between them. For *battery*: an amount, or a percentage. "
            "For *skip*: the id of a query, if it is not the first.",
            metavar="[PLACE|AREA|AMOUNT|ORDER]",
        ),
    ] = None,
    vehicle: Annotated[
        int | None, typer.Option(help="Number of the vehicle, from 0; by default all of them.")
    ] = None,
    wait: Annotated[float, typer.Option(help="How long to wait for the confirmation, in seconds.")] = 10.0,
) -> None:
    """Pause, redirect or end a run that another process is carrying out."""
    import getpass

    from fieldbo.domain.words import place_text
    from fieldbo.errors import InputError, RefusedError, UnconfirmedError
    from fieldbo.record.record import Record
    from fieldbo.record.store import record_file
    from fieldbo.runs.replay import mission_of
    from fieldbo.runs.steer import level_in, level_text
    from fieldbo.runs.steer import steer as give

    needs = {Action.NEXT: "a place", Action.NO_GO: "an area", Action.BATTERY: "what is left"}
    if action in needs and what is None:
        raise InputError(
            f"{action.value} without {needs[action]}", expected=needs[action], where="fieldbo steer"
        )
    if what is not None and action not in (*needs, Action.SKIP):
        raise InputError(f"{what!r} behind {action.value}", expected="nothing", where="fieldbo steer")
    with Record(record_file(run)) as record:
        mission = mission_of(record)
    domain = mission.world.domain
    details: dict[str, Any] = {"order": what} if action is Action.SKIP else {}
    if what is not None and action is Action.NEXT:
        details = {"site": _place(what, domain)}
    elif what is not None and action is Action.NO_GO:
        details = {"areas": _areas(what, domain)}
    elif what is not None and action is Action.BATTERY:
        details = {"left": level_in(what, mission, "fieldbo steer RUN battery AMOUNT")}
    try:
        given = give(run, action.value, vehicle=vehicle, by=getpass.getuser(), wait_s=wait, **details)
    except (RefusedError, UnconfirmedError) as error:
        typer.echo(f"fieldbo: {error}", err=True)
        raise typer.Exit(1) from None
    at = "" if given.site is None else f" at {place_text(domain, given.site)}"
    closed = f": {', '.join(area.name for area in given.areas)}" if given.areas else ""
    level = "" if given.left is None else f": {level_text(mission, given)}"
    typer.echo(f"confirmed: {action.value}{at}{closed}{level}")


def _place(text: str, domain: Domain) -> Any:
    """Return the place (d,) in a text."""
    from fieldbo.errors import InputError
    from fieldbo.vehicles.typed_places import place_in

    try:
        return place_in(text, domain)
    except InputError as error:
        raise error.at("fieldbo steer RUN next PLACE") from None


def _areas(text: str, domain: Domain) -> list[Obstacle]:
    """Return the areas in a file, or the one whose corners a text holds."""
    from fieldbo.domain.obstacles import Obstacle, simple_polygon
    from fieldbo.errors import InputError
    from fieldbo.mission.shapes import NAME, areas_in

    where = "fieldbo steer RUN no-go AREA"
    if ";" not in text:
        if not Path(text.rpartition(":")[0] if ":" in text else text).exists():
            raise InputError(
                f"there is no file {text}",
                expected="a file of polygons, or at least three corners with semicolons between them",
                where=where,
            )
        return areas_in(Path(text), domain, where)
    corners = [tuple(_place(part, domain)[:2].tolist()) for part in text.split(";") if part.strip()]
    simple_polygon(corners, "the area", where)
    return [Obstacle(NAME, corners=tuple(corners))]
