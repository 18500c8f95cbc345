"""``fieldbo run``, ``resume`` and ``console``: carry out a mission, and watch it in a browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldbo.cli.options import Format, Policy, Run, Set, Width, check_pictures, examples, overrides
from fieldbo.errors import InputError, counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from fieldbo.cli.session import Pictures
    from fieldbo.mission.mission import Mission
    from fieldbo.record.record import Record
    from fieldbo.vehicles.base import Vehicle


_NOT_SCORED = (
    "The field of this world is fitted to an earlier survey, and the place may have changed since: this run "
    "is not scored against it. For a rehearsal with scores, run the mission without a vehicle."
)


@examples(
    """
**Examples**

`fieldbo run lake-level-set` - the lake, simulated

`fieldbo run lake-level-set --battery 3000 --seed 1` - half the battery, a different seed

`fieldbo run lake-level-set --policy gchk,per_cost=true` - another policy

`fieldbo run lake-level-set --prior yesterday.csv` - begin with earlier readings, or those of a run

`fieldbo run lake-level-set --format pdf --width column` - with pictures for a paper

`fieldbo run my-survey.toml --by-hand` - you take the samples and type in the readings

`fieldbo run my-survey.toml --vehicle boat.toml` - a robot takes them; test it first with `fieldbo robot`

**Writes** `run.sqlite` and `run.count` (the record), `mission.toml` and the world (as run), `summary.json`,
`observations.csv`, `path.csv`, `curve.csv`, `ledger.csv`, `map.nc`, `path.png`, `map.png`, `curve.png` (or
.svg or .pdf).

**Exit codes** 0: done; 1: stopped by an error, all readings are kept; 2: invalid input, nothing was started;
130: stopped by Ctrl-C (143: SIGTERM, 129: SIGHUP), the run folder is complete up to the last observation.
*fieldbo resume* continues a run that did not finish.
"""
)
def run(
    mission: Annotated[
        str,
        typer.Argument(help="Name of a mission (see *fieldbo missions*), or a TOML file.", metavar="MISSION"),
    ],
    seed: Annotated[
        int | None, typer.Option(help="Seed of the random streams; the field stays the same.")
    ] = None,
    battery: Annotated[
        str | None,
        typer.Option(
            help='Battery: 3000 in the world\'s cost unit, a multiple ("2 h"), or a percentage of a full '
            'battery ("35 %").',
            metavar="AMOUNT",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Earlier readings to begin with: a table or a log, or a run folder or the name of a run in "
            "*runs/*. Name columns with *--set prior.value=COL*, *prior.lat*, *prior.missing* and so on.",
            metavar="FILE",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder to create; by default *runs/MISSION-n*, with the next free number n."),
    ] = None,
    policy: Policy = None,
    set_: Set = None,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="You are the vehicle: go to each site and type in the reading.")
    ] = False,
    vehicle: Annotated[
        list[str] | None,
        typer.Option(
            help="Have a robot carry out the orders. Give a vehicle file, or *ros2*, *mavlink* or *mqtt* for "
            "that link's defaults. Repeat the option for each vehicle in the mission.",
            metavar="FILE",
        ),
    ] = None,
    format: Format = None,
    width: Width = "screen",
) -> None:
    """Run a mission until its question is answered or its battery is spent.

    A live progress line shows the remaining battery, the number of stops and the score so far: F1 and the
    fraction still unclassified, or the estimated optimum and its regret. The run folder holds the record,
    tables, maps and pictures.
    """
    from fieldbo.agent.coverage import estimates
    from fieldbo.cli.session import carry_out, connect, console
    from fieldbo.mission.load import load_mission
    from fieldbo.mission.mission import check_simulated
    from fieldbo.runs.folder import begin
    from fieldbo.runs.runner import run as run_mission

    out_to, pictures = console(), check_pictures(format, width)
    recorded = _make_recorded(vehicle or [], by_hand=by_hand)
    settings = overrides(set_ or [], seed=seed, battery=battery, prior=prior, policy=policy)
    if recorded:
        loaded, vehicles = _prepare(mission, settings, recorded, out_to)
    else:
        loaded, vehicles = load_mission(mission, settings), []
        check_simulated(loaded)  # before making a folder
    for warning in estimates(loaded)[1]:
        out_to.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)
    with ExitStack() as links:
        connect(vehicles, links, out_to)
        folder, record = begin(loaded, out, recorded)
        links.enter_context(record)
        if any(settings.get("kind") == "by-form" for settings in recorded):
            out_to.print(f"enter the readings in a browser: fieldbo console {folder}", markup=False)
        carry_out(partial(run_mission, loaded, record=record), loaded, vehicles, folder, out_to, pictures)


def _prepare(
    name: str, overrides: Mapping[str, Any], recorded: Sequence[Mapping[str, Any]], out_to: Console
) -> tuple[Mission, list[Vehicle]]:
    """Return a mission as vehicles carry it out, and the vehicles; print what they make of it."""
    from fieldbo.mission.load import load_mission
    from fieldbo.runs.folder import as_carried_out
    from fieldbo.vehicles.load import check_new, full_battery, place_of, vehicle_of

    loaded = load_mission(name, overrides, full_battery(recorded))
    found = as_carried_out(loaded, recorded)
    if found.world.live and not loaded.world.live:
        out_to.print(_NOT_SCORED, style="dim", soft_wrap=True, highlight=False)
    for number, settings in enumerate(recorded):
        for warning in check_new(settings, found, number):
            out_to.print(f"warning: {warning}", style="yellow", markup=False)
        for line in place_of(settings, found, number):
            out_to.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
    return found, [vehicle_of(settings, found, number) for number, settings in enumerate(recorded)]


def _make_recorded(vehicles: Sequence[str], *, by_hand: bool) -> list[dict[str, Any]]:
    """Return the settings of the vehicles as the record keeps them; none for a simulation."""
    if not (vehicles or by_hand):
        return []
    from fieldbo.vehicles.load import recorded_settings

    if by_hand and vehicles:
        raise InputError(
            "both --by-hand and --vehicle were given",
            expected="at most one of them",
            fix="leave out --by-hand if a robot takes the samples",
        )
    return [recorded_settings(name) for name in (["by-hand"] if by_hand else vehicles)]


@examples(
    """
**Examples**

`fieldbo resume runs/lake-level-set-1` - or just *lake-level-set-1*, if it is in runs/

`fieldbo resume boat-3 --vehicle boat.toml` - with another boat, or a vehicle file that has changed

`fieldbo resume boat-3 --away "20 min"` - say how long the run stood still, because the clock was set since

Ctrl-C, a power cut and a killed process all leave a run that can be resumed: every order is on disk before it
is sent, and every reading before it is used. Outstanding orders are sent again under the same id, or closed
with what their vehicle reports; no reading is ever counted twice. A resumed simulation gives the
same result as an uninterrupted one.

A run that ended because its vehicle was lost continues with the vehicle once it answers again. One whose
question was answered continues if *fieldbo correct* has undone the answer.

A damaged record, or one whose mission or world has changed since, is rejected and left untouched.
"""
)
def resume(
    run: Run,
    vehicle: Annotated[
        list[str] | None,
        typer.Option(
            help="Vehicle file to use from now on; later resumes keep it. By default, the vehicles last "
            "used. Repeat the option for each vehicle. The run keeps a copy: if you edit the file, give it "
            "again.",
            metavar="FILE",
        ),
    ] = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Continue even if the last rows of the record are missing.")
    ] = False,
    away: Annotated[
        str | None,
        typer.Option(
            help='For how long the run stood still, such as *"20 min"* or *1200* (seconds), if this '
            "computer's clock was set since. It counts towards *time_limit_s*.",
            metavar="TIME",
        ),
    ] = None,
    format: Format = None,
    width: Width = "screen",
) -> None:
    """Continue a run that was interrupted, lost its vehicle, or was corrected; or write missing files."""
    from fieldbo.cli.session import carry_out, connect, console
    from fieldbo.mission.amounts import amount
    from fieldbo.record.record import Record
    from fieldbo.record.store import ORDERS, record_file
    from fieldbo.runs.replay import mission_of, notes
    from fieldbo.runs.runner import reopens
    from fieldbo.runs.runner import resume as resume_mission
    from fieldbo.vehicles.load import vehicle_of

    out_to, pictures = console(), check_pictures(format, width)
    away_s = None if away is None else amount(away, "s", "--away", zero=True, what="the unit of time")
    with Record(record_file(run)) as record:
        mission, folder = mission_of(record), record.file.parent
        if accept_loss:
            record.claim(accept_loss=True)  # so that a run that has ended can be corrected again, too
        if record.end_reason is not None and not reopens(mission, record):
            _complete(mission, record, out_to, pictures)
            return
        record.claim(accept_loss=accept_loss)
        orders = counted(sum(row.kind in ORDERS for row in record.rows()), "order")
        out_to.print(f"Resuming {record.name} after {orders}", markup=False)
        for note in notes(record):
            out_to.print(f"note: {note}", style="yellow", markup=False)
        recorded = continuing(mission, record.vehicles, vehicle or [])
        vehicles = [vehicle_of(settings, mission, number) for number, settings in enumerate(recorded)]
        with ExitStack() as links:
            connect(vehicles, links, out_to)
            if vehicle:  # from now on: the next resume must not return to the old fence
                record.continue_with(recorded)
            going_on = partial(resume_mission, mission, record, away_s=away_s)
            carry_out(going_on, mission, vehicles, folder, out_to, pictures)


def _complete(mission: Mission, record: Record, console: Console, pictures: Pictures) -> None:
    """Print how a run ended, and write its missing files."""
    from fieldbo.cli.session import saving
    from fieldbo.runs.folder import complete
    from fieldbo.runs.runner import resume as resume_mission

    folder = record.file.parent
    console.print(f"{record.name} has ended ({record.end_reason}); nothing to resume.", markup=False)
    result = resume_mission(mission, record)
    with saving(folder):
        written = complete(result, folder, *pictures)
    if written:
        console.print(f"  missing files written: {', '.join(written)}", soft_wrap=True, markup=False)


def continuing(
    mission: Mission, recorded: Sequence[Mapping[str, Any]], files: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the settings of the vehicles that continue a run: those of `files`, or the recorded ones."""
    from fieldbo.vehicles.load import check_new, recorded_settings

    if not files:
        return [dict(settings) for settings in recorded]
    if not recorded:
        raise InputError(
            f"--vehicle {files[0]} was given for a simulated run",
            expected="no vehicle: a run that starts in simulation ends in simulation",
            fix="start a new run: fieldbo run MISSION --vehicle FILE",
        )
    if len(files) != len(recorded):
        raise InputError(
            f"{counted(len(files), 'vehicle')} for a run with {len(recorded)}",
            expected="as many as the run began with",
            fix="give --vehicle once for each vehicle, in the order of the mission",
        )
    new = []
    for number, (name, before) in enumerate(zip(files, recorded, strict=True)):
        settings = recorded_settings(name)
        if "session" in settings and "session" in before:
            settings["session"] = before["session"]  # a robot may remember outstanding orders by it
        check_new(settings, mission, number)
        new.append(settings)
    return new


@examples(
    """
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
)
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
    set_: Set = None,
    policy: Policy = None,
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
    from fieldbo.cli.session import console as terminal

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
        *_repeat("--vehicle", chosen),
        *_repeat("--set", set_ or []),
        *_repeat("--policy", [] if policy is None else [policy]),
        *_repeat("--battery", [] if battery is None else [battery]),
        *_repeat("--prior", [] if prior is None else [prior]),
    ]
    file = _find_or_start(
        run or _find_under_way(), arguments, out, lambda text: out_to.print(text, markup=False)
    )

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


def _find_under_way() -> str:
    """Return the only run in ``runs/`` that a process carries out."""
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


def _repeat(option: str, values: Sequence[str]) -> list[str]:
    return [part for value in values for part in (option, value)]


def _find_or_start(
    run: str, arguments: Sequence[str], out: Path | None, say: Callable[[str], object]
) -> Path:
    """Return the record of a run, or of the mission that this starts with the arguments, and says so."""
    from fieldbo.console.server import NotStartedError, start
    from fieldbo.mission.files import names_mission
    from fieldbo.record.store import record_file
    from fieldbo.runs.folder import next_folder

    if not arguments and out is None and not run.endswith(".toml"):
        try:
            return record_file(run)
        except InputError:
            if not names_mission(run):
                raise
    folder = next_folder(Path(run).stem if run.endswith(".toml") else run) if out is None else out
    say(f"starting {run}; what it prints goes to {folder.with_name(f'{folder.name}.log')}")
    try:
        return start(run, folder, arguments)
    except NotStartedError as error:
        typer.echo(f"fieldbo: {error}", err=True)
        raise typer.Exit(2) from None
