"""The terminal session of a command: console, signals, live progress, the report of a run, and exit codes."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from fieldbo.errors import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack
    from signal import Signals

    from rich.console import Console

    from fieldbo.messages import Event
    from fieldbo.mission.mission import Mission
    from fieldbo.results.contradictions import Contradictions
    from fieldbo.results.curve import Step
    from fieldbo.results.result import Result
    from fieldbo.vehicles.base import Vehicle


_SOON_S = 0.05


def console() -> Console:
    """Return the console of standard output; in a file, lines are wide enough to keep tables whole."""
    from rich.console import Console

    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140)


def says_compiling(out: Callable[[], Console]) -> Callable[[], None]:
    """Return a function that prints, on its first call only, that loops are being compiled.

    The console is made, as `out` makes it, if there is something to print.
    """
    printed: list[bool] = []

    def say() -> None:
        if not printed:
            printed.append(True)
            out().print("compiling the fast loops, once on this machine (about half a minute)", style="dim")

    return say


@contextmanager
def stopped_by_signals() -> Iterator[list[signal.Signals]]:
    """Let SIGTERM and SIGHUP raise `KeyboardInterrupt` in the block, as Ctrl-C does.

    They do so even in a command that a script runs in the background, to which the shell leaves Ctrl-C
    ignored. Only a SIGHUP that ``nohup`` has the command ignore stays ignored. If Python drops the exception,
    because the signal came in the callback of a weak reference or in a ``__del__``, it is raised once more.

    Yields
    ------
    list of Signals
        Grows by each signal received; Ctrl-C is not among them.
    """
    received: list[signal.Signals] = []

    def stop(number: int, _: object) -> None:
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    def on_dropped(dropped: sys.UnraisableHookArgs) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            _signal_soon(received[-1] if received else signal.SIGINT)
        else:
            hook_before(dropped)

    before = {}
    hook_before, sys.unraisablehook = sys.unraisablehook, on_dropped
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number and (name == "SIGTERM" or signal.getsignal(number) is not signal.SIG_IGN):
            before[number] = signal.signal(number, stop)
    try:
        yield received
    finally:
        sys.unraisablehook = hook_before
        for number, handler in before.items():
            signal.signal(number, handler)


def _signal_soon(number: signal.Signals) -> None:
    """Send this process a signal in a moment, from another thread: its exceptions are dropped just now."""
    main = threading.main_thread().ident
    assert main is not None
    send = getattr(signal, "pthread_kill", lambda _, number: signal.raise_signal(number))  # not on Windows
    timer = threading.Timer(_SOON_S, send, (main, number))
    timer.daemon = True
    timer.start()


@contextmanager
def continued_if_repeated(out_to: Console, remedy: str) -> Iterator[None]:
    """End the command when it is stopped in the block, and say how to continue.

    Parameters
    ----------
    out_to : Console
    remedy : str
        What repeating the command does, for example ``"continue in runs/lake-advice"``.
    """
    with stopped_by_signals() as signals:
        try:
            yield
        except KeyboardInterrupt:
            by = signals[0].name if signals else "you"
            out_to.print(f"Stopped by {by}. Repeat the command to {remedy}.", soft_wrap=True, markup=False)
            raise typer.Exit(128 + signals[0] if signals else 130) from None


Pictures = tuple[str | None, str]
"""Format and width of pictures; no format stands for that of the pictures already there, or else PNG."""

UNDONE = "Not finished: a correction has undone the answer."
"""Said of a run whose question was answered, and no longer is."""


def connect(vehicles: Sequence[Vehicle], links: ExitStack, console: Console) -> None:
    """Wait until all vehicles answer, before a run folder is made or a record is resumed."""
    for vehicle in vehicles:
        if (address := getattr(vehicle, "address", None)) is not None:
            console.print(f"waiting for the robot at {address}", style="dim", markup=False)
        links.enter_context(vehicle)


def carry_out(
    go: Callable[..., Result],
    mission: Mission,
    vehicles: Sequence[Vehicle],
    folder: Path,
    console: Console,
    pictures: Pictures = (None, "screen"),
) -> NoReturn:
    """Run a mission, write its files, print its report, and exit.

    Parameters
    ----------
    go : Callable
        Runs or resumes the mission; takes ``vehicles``, ``on_step`` and ``on_event``.
    mission : Mission
    vehicles : sequence of Vehicle
        Empty for a simulation.
    folder : Path
        The run folder.
    console : Console
    pictures : tuple of str
        Format and width of the pictures.

    Raises
    ------
    typer.Exit
        Always: 0 if the run ended, 1 after an error, 128 + n after signal n: 130 after Ctrl-C.
    """
    with stopped_by_signals() as signals:
        code = _carry_out(go, mission, vehicles, folder, console, signals, pictures)
    raise typer.Exit(code)


def _carry_out(
    go: Callable[..., Result],
    mission: Mission,
    vehicles: Sequence[Vehicle],
    folder: Path,
    console: Console,
    signals: Sequence[Signals],
    pictures: Pictures,
) -> int:
    """Run a mission, write its files, print its report, and return the exit code."""
    from fieldbo.runs.folder import save
    from fieldbo.runs.loop import BrokenOffError, Interrupted, Stopped
    from fieldbo.runs.signals import unbroken

    code, stopped = 0, UNDONE
    try:
        result = (
            _run_with_vehicles(go, mission, vehicles, console)
            if vehicles
            else _simulate(go, mission, console)
        )
    except Stopped as stop:
        code, stopped, result = 130, "Stopped by the operator.", stop.result
    except Interrupted as stop:
        code, stopped, result = 130, "Stopped by you.", stop.result
        if signals:
            code, stopped = 128 + signals[0], f"Stopped by {signals[0].name}."
    except BrokenOffError as stop:
        code, stopped, result = 1, "Stopped by an error.", stop.result
        typer.echo(f"fieldbo: the run stopped: {stop}\nIts record is in {folder}.", err=True)
    with unbroken():  # Ctrl-C waits until every file is written
        with saving(folder):
            formats = save(result, folder, *pictures)
        show_result(result, folder, console, stopped, formats)
        for vehicle in vehicles:
            if why := getattr(vehicle, "unheld", ""):
                at = getattr(vehicle, "address", "an unknown address")
                typer.secho(
                    f"fieldbo: the robot at {at} was NOT told to hold: {why}", fg="red", bold=True, err=True
                )
    return code


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """Exit with code 1 if the files of a run can't be written; its record holds everything they say."""
    try:
        yield
    except OSError as error:
        file = error.filename or f"a file in {folder}"
        typer.echo(
            f"fieldbo: {file} can't be written: {error.strerror or error}\n"
            "Tables and pictures may be missing or out of date; delete the outdated ones. Nothing "
            f"is lost: the record is complete.\nTo write them once this is fixed: fieldbo resume {folder}\n"
            f"To write tables and maps elsewhere: fieldbo export {folder} csv netcdf --out FOLDER",
            err=True,
        )
        raise typer.Exit(1) from None


def _simulate(go: Callable[..., Result], mission: Mission, console: Console) -> Result:
    from rich.progress import BarColumn, Progress, TextColumn

    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.results.words import rounded

    battery, unit = mission.vehicles[0].battery, mission.world.cost_unit
    columns = (TextColumn("battery"), BarColumn(24), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        line = progress.add_task(f"{rounded(battery, battery)} {unit}", total=battery)
        progress.update(line, completed=battery)

        def show(step: Step) -> None:
            progress.update(line, completed=max(0.0, step.remaining), description=_progress(step, mission))

        with when_compiling(says_compiling(lambda: progress.console)):
            return go(on_step=show, on_event=partial(_show_trouble, progress.console, mission, None))


def _run_with_vehicles(
    go: Callable[..., Result], mission: Mission, vehicles: Sequence[Vehicle], console: Console
) -> Result:
    """Run with real vehicles, or with a person as the vehicle, with one line after each order."""
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.results.contradictions import Contradictions

    trusts = mission.model.noise == "declared"
    read = Contradictions(mission.world.domain, mission.world.sensor) if trusts else None
    with when_compiling(says_compiling(lambda: console)):
        return go(
            vehicles=vehicles,
            on_step=lambda step: console.print(f"  {_progress(step, mission)}", style="dim"),
            on_event=partial(_show_trouble, console, mission, read),
        )


def _show_trouble(console: Console, mission: Mission, read: Contradictions | None, event: Event) -> None:
    """Print rejected, lost and incomplete orders, corrections, and reports that are not believed.

    Also print readings that contradict those that this process has `read`, to which the event is added.
    """
    from fieldbo.messages import Command, Correction, Lost, Observation, Rejected
    from fieldbo.runs.steer import command_line

    if isinstance(event, Command):
        console.print(f"  {command_line(mission, event)}", style="bold", markup=False)
    if read is not None and isinstance(event, Observation | Correction):
        for found in read.add(event):
            console.print(f"  {found}", style="yellow", markup=False)

    if isinstance(event, Lost | Rejected):
        problem = "lost" if isinstance(event, Lost) else "rejected"
        console.print(f"  {event.order} {problem}: {event.reason}", style="yellow", markup=False)
    elif isinstance(event, Observation) and not event.complete:
        console.print(f"  {event.order} was cut short", style="yellow", markup=False)
    elif isinstance(event, Correction):
        values = ", ".join("failed" if isnan(x) else f"{x:g}" for x in event.values.tolist())
        console.print(f"  {event.order} corrected: {values}", style="yellow", markup=False)
    for doubt in getattr(event, "doubts", ()):
        console.print(f"  {doubt}", style="yellow", markup=False)


def _progress(step: Step, mission: Mission) -> str:
    """Return the battery left, the number of stops, the score and what is wrong in one line."""
    still = "".join(f"; its {what} stands still" for what in step.standing_still)
    return _reached(step, mission) + still + "".join(f"; {sentence}" for sentence in step.contradicted)


def _reached(step: Step, mission: Mission) -> str:
    """Return the battery left, the number of stops and the score."""
    from fieldbo.belief.question import Optimum
    from fieldbo.clock import duration_text
    from fieldbo.results.words import detected, extreme, rounded

    question, world = mission.question, mission.world
    if world.cost_unit == "s":
        left = duration_text(max(0.0, step.remaining))
    else:
        whole = sum(vehicle.battery for vehicle in mission.vehicles)
        left = f"{rounded(step.remaining, whole)} {world.cost_unit}"
    several = mission.vehicles[0].batteries
    battery = f" in battery {step.battery} of {several}" if several > 1 else ""
    head = f"{left} left{battery}, {counted(step.step, 'stop')}, "
    if isinstance(question, Optimum):
        regret = "" if isnan(step.regret) else f", regret {step.regret:.3g}"
        value = detected(step.reported_value, world.sensor.below, world.quantity)
        return f"{head}{extreme(question)} estimate {value}{regret}"
    expected = "unknown" if isnan(step.expected_f1) else f"{step.expected_f1:.2f}"
    f1 = f"expected F1 {expected}" if isnan(step.f1) else f"F1 {step.f1:.2f}"
    return f"{head}{step.unclassified:.0%} unclassified, {f1}"


def show_result(
    result: Result, folder: Path, console: Console, stopped: str, formats: Sequence[str] = ("png",)
) -> None:
    """Print the report of a run and the place of its files; `stopped` says why it did not end."""
    from fieldbo.messages import EndReason

    report = result.report()
    if result.end_reason is None:
        readings = counted(len(result.values), "reading")
        console.print(
            f"[bold]{stopped}[/] The run folder is complete up to the last observation ({readings})."
        )
    else:
        console.print(report.heading, style="bold", markup=False)
    for line in report.lines:
        console.print(f"  {line}", markup=False)
    for note in report.notes:
        console.print(f"  note: {note}", style="yellow", markup=False)
    pictures = ", ".join(f"{name}.{formats[0]}" for name in ("path", "map", "curve"))
    console.print(f"  in {folder}: {pictures}, summary.json and more", soft_wrap=True, markup=False)
    if result.end_reason in (None, EndReason.VEHICLE_LOST, EndReason.STOPPED_BY_OPERATOR):
        console.print(f"  to continue: fieldbo resume {folder}", soft_wrap=True, markup=False)
