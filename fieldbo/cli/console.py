"""``fieldbo console``: watch and steer a run in a browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
**Examples**

`fieldbo console` - watch and steer the run that is under way

`fieldbo console lake-3` - the same by its name; or look at one that has ended

`fieldbo console my-survey.toml --by-hand` - start a mission whose readings you enter in the browser

`fieldbo console my-survey.toml --vehicle boat.toml --prior lake-2` - start a mission with a robot, from the
readings of a run

`fieldbo console boat-1 --network 192.168.1.20 --cert boat.pem --key boat-key.pem` - for tablets on the same
network, encrypted

`fieldbo console boat-1 --host-name localhost:9000` - to be opened on another computer by a tunnel: *ssh -L
9000:localhost:8642 boat*

Open the printed address; it holds a token, without which nothing is served. The mission runs in a process of
its own: Ctrl-C ends the console only. Needs the extra *console*: pip install 'fieldbo[console]'.
"""


def console(
    run: Annotated[
        str | None,
        typer.Argument(
            help="A run folder, or its name in *runs/*; or a mission to start: its name, or a TOML file. By "
            "default, the run in *runs/* that is under way.",
            metavar="[RUN|MISSION]",
        ),
    ] = None,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Start the mission, and enter the readings in the browser.")
    ] = False,
    vehicle: Annotated[
        list[str] | None,
        typer.Option(help="Start the mission with this vehicle file; repeatable.", metavar="FILE"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key of the mission; repeatable.", metavar="TABLE.KEY=VALUE"),
    ] = None,
    battery: Annotated[
        str | None,
        typer.Option(help="Start the mission with this battery, as *run* takes it.", metavar="AMOUNT"),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Start the mission with earlier readings: a CSV, or a run folder or the name of a run.",
            metavar="FILE",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder to create for the mission.")] = None,
    port: Annotated[int, typer.Option(help="Port; 0 takes any that is free.")] = 8642,
    network: Annotated[
        str | None,
        typer.Option(
            help="Serve other devices, too, at this address or name of this machine. Whoever has the printed "
            "address can then watch and steer the vehicle from there; without --cert, anyone on that "
            "network can read the address, too.",
            metavar="ADDRESS",
        ),
    ] = None,
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            help="Another name under which your browser reaches the console, by a tunnel or a proxy, as in "
            "its address: *localhost:9000*, or *https://lab.example.org* if a proxy adds TLS. Repeatable.",
            metavar="NAME[:PORT]",
        ),
    ] = None,
    cert: Annotated[Path | None, typer.Option(help="Certificate (PEM), for TLS.", metavar="FILE")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key (PEM).", metavar="FILE")] = None,
) -> None:
    """Watch a run in a browser, steer it, and enter readings by hand.

    Shows the map with the vehicle and the route ahead, the next order with its reason, the battery with the
    way home, and what happened. Pause, continue, skip a site, choose the next one, close an area, send it
    home, or stop: each is confirmed and recorded. Several people can watch at once.
    """
    from fieldbo.cli.terminal import console as terminal
    from fieldbo.errors import InputError

    try:
        from fieldbo.console.server import Place, serve
    except ModuleNotFoundError as error:
        raise InputError(
            f"the console needs {error.name}, which is not installed",
            expected="the extra console",
            fix="pip install 'fieldbo[console]'",
        ) from None
    place = Place(port, network, cert, key, host_name or [])
    place.check_certificate()
    place.bound().close()  # before a mission is started
    out_to = terminal()
    chosen = ["by-form"] if by_hand else vehicle or []
    if by_hand and vehicle:
        raise InputError("both --by-hand and --vehicle were given", expected="at most one of them")
    arguments = [
        *_repeated("--vehicle", chosen),
        *_repeated("--set", set_ or []),
        *_repeated("--battery", [] if battery is None else [battery]),
        *_repeated("--prior", [] if prior is None else [prior]),
    ]
    file = _record(run or _under_way(), arguments, out, lambda text: out_to.print(text, markup=False))

    def ready(addresses: list[str]) -> None:
        if network is not None and cert is None:
            out_to.print(
                f"warning: everybody on the network of {network} can read this address along, and steer; "
                "use --cert and --key",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        opened = " or ".join(addresses)
        out_to.print(f"{file.parent}: open {opened}", soft_wrap=True, markup=False, highlight=False)
        out_to.print("Ctrl-C ends the console, not the run.", style="dim")

    serve(file, place, ready)
    out_to.print(f"The console has ended. To return: fieldbo console {file.parent}", markup=False)


def _under_way() -> str:
    """Return the only run in ``runs/`` that a process carries out."""
    from fieldbo.errors import InputError
    from fieldbo.record.store import RECORD, is_being_written

    live = sorted(str(f.parent) for f in Path("runs").glob(f"*/{RECORD}") if is_being_written(f))
    if len(live) == 1:
        return live[0]
    raise InputError(
        f"{len(live)} runs are under way: {', '.join(live)}" if live else "no run is under way in runs/",
        expected="the name of a run, or of a mission to start",
        where="fieldbo console",
        fix=f"name one: fieldbo console {live[0]}" if live else "list your runs with: fieldbo runs",
    )


def _repeated(option: str, values: Sequence[str]) -> list[str]:
    """Return an option of the command line with each of the values."""
    return [part for value in values for part in (option, value)]


def _record(run: str, arguments: Sequence[str], out: Path | None, say: Callable[[str], object]) -> Path:
    """Return the record of a run, or of the mission that this starts with the arguments, and says so."""
    from fieldbo.console.server import NotStartedError, start
    from fieldbo.errors import InputError
    from fieldbo.mission.files import list_missions
    from fieldbo.record.store import record_file
    from fieldbo.runs.folder import next_folder

    if not arguments and out is None and not run.endswith(".toml"):
        try:
            return record_file(run)
        except InputError:
            if run not in list_missions():
                raise
    folder = next_folder(Path(run).stem if run.endswith(".toml") else run) if out is None else out
    say(f"starting {run}; what it prints goes to {folder.with_name(f'{folder.name}.log')}")
    try:
        return start(run, folder, arguments)
    except NotStartedError as error:
        typer.echo(f"fieldbo: {error}", err=True)
        raise typer.Exit(2) from None
