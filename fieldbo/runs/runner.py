"""Run a mission, or resume a run from its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.errors import InputError
from fieldbo.messages import Correction, EndReason, Event, Observation
from fieldbo.mission.load import load_mission
from fieldbo.mission.mission import Mission
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS, Row, record_file
from fieldbo.results.curve import Step
from fieldbo.results.result import Result
from fieldbo.runs.loop import Loop
from fieldbo.runs.replay import mission_of, replay
from fieldbo.runs.state import Away, RunState
from fieldbo.vehicles.base import Simulated, Vehicle
from fieldbo.vehicles.person import doubt_about_reading, earlier_values


def run(
    mission: Mission | Path | str,
    vehicles: Sequence[Vehicle] | None = None,
    record: Record | None = None,
    on_step: Callable[[Step], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> Result:
    """Run a mission until its question is answered or its battery is spent.

    Parameters
    ----------
    mission : Mission, Path or str
        A mission, or the name or TOML file of one.
    vehicles : sequence of Vehicle, optional
        One per vehicle of the mission. By default, the world is simulated.
    record : Record, optional
        An empty record. Each order is written before it is sent, each event before the agent gets it.
    on_step : Callable, optional
        Called with a `Step` after each settled order.
    on_event : Callable, optional
        Called with each event once it is recorded.

    Returns
    -------
    Result

    Raises
    ------
    Interrupted
        On Ctrl-C; its `result` is complete up to the last observation.
    BrokenOffError
        On an error of the model, a policy, a vehicle or the record, with the `result` up to there.
    InputError
        Vehicles come without a record, or their number differs from the mission's.

    Examples
    --------
    >>> import fieldbo
    >>> mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 300}})
    >>> fieldbo.run(mission).cost <= 300
    True
    """
    mission = _mission(mission)
    if record is not None and not record.empty:
        raise InputError(
            f"{record.file} already holds a run",
            expected="a new record: a run never overwrites another one",
            fix=f"resume that run: fieldbo resume {record.file.parent}",
        )
    if record is None and vehicles is not None:
        raise InputError(
            "vehicles without a record",
            expected="a record, so that no reading of a real vehicle can be lost",
            fix="make one with fieldbo.Record.create(file, name, {}) and pass it as record",
        )
    state = RunState(mission, mission.name if record is None else record.name)
    return _finish(state, vehicles, record, on_step, on_event)


def resume(
    mission: Mission | Path | str,
    record: Record | None = None,
    vehicles: Sequence[Vehicle] | None = None,
    on_step: Callable[[Step], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
    away_s: float | None = None,
) -> Result:
    """Resume a run from its record, as if it had never been interrupted.

    The record is replayed: no query is repeated and no reading or cost is counted twice. Outstanding orders
    are sent again, unless their vehicle reports how they ended.

    Parameters
    ----------
    mission : Mission, Path or str
        The mission that the record began with, or the name or TOML file of it. Without `record`, the name or
        path of a run folder, which holds both.
    record : Record, optional
    vehicles : sequence of Vehicle, optional
        New vehicles, one per vehicle of the mission. By default, the world is simulated.
    on_step : Callable, optional
        Called with a `Step` once for the replayed part, and after each order that is settled from then on.
    on_event : Callable, optional
        Called with each new event once it is recorded.
    away_s : float, optional
        For how many seconds the run stood still. By default, this computer's clock tells. It counts towards
        `time_limit_s`, but not in a simulation, whose time stands still.

    Returns
    -------
    Result
        The result of the whole run. If the run has ended already, nothing is run, unless it `reopens` and, if
        it began with vehicles, you pass vehicles: then it continues.

    Raises
    ------
    Interrupted, BrokenOffError
        As for `run`.
    InputError
        The run began with vehicles and none are given, or their number differs from the mission's. Or, by
        this computer's clock, more than half of what was left of a time limit has passed since the run was
        stopped, or less than nothing: pass `away_s`.
    RecordError
        Another process is writing to the record.
    """
    if record is None:
        if not isinstance(mission, str | Path):
            raise InputError(
                f"a {type(mission).__name__} without a record",
                expected="a mission and its record, or the name or path of a run folder",
                fix="pass the record as well, or only the folder: fieldbo.resume('runs/lake-level-set-1')",
            )
        with Record(record_file(mission)) as opened:
            return resume(mission_of(opened), opened, vehicles, on_step, on_event, away_s)
    mission = _mission(mission)
    simulated = not record.description.get("vehicles") and record.end_reason is not EndReason.VEHICLE_LOST
    ended = record.end_reason is not None
    if ended and (vehicles is not None or simulated):
        ended = not reopens(mission, record)
    if not ended and vehicles is None and record.description.get("vehicles"):
        raise InputError(
            f"{record.name} began with vehicles, and none are given",
            expected="vehicles: simulated readings must not follow real ones",
            fix="pass vehicles, or resume it from the command line: fieldbo resume",
        )
    if away_s is not None:
        _check_away(away_s, vehicles)
    if not ended:
        record.claim()
    state = replay(record, mission)
    if not ended:
        away = None if vehicles is None else Away.of(record, state.agent, vehicles[0].clock, away_s)
        if away is not None:
            away.check(state.agent.vehicles)
        return _finish(state, vehicles, record, on_step, on_event, away)
    if repeated := state.repeat_fits():  # the process that corrected a reading died before them
        record.events(repeated)
    return state.result()


def reopens(mission: Mission, record: Record) -> bool:
    """Return True if a run that has ended can continue.

    It can if it ended because its vehicles were lost or an operator sent them home, if a vehicle did not come
    home, or if its question was answered and a correction has undone the answer since.
    """
    if record.end_reason in (EndReason.VEHICLE_LOST, EndReason.STOPPED_BY_OPERATOR):
        return True
    rows = record.rows()
    if _all_came_home(mission, rows) and not any(row.kind == "correction" for row in rows):
        return False  # without a replay, which may take long
    state = replay(record, mission, scored=False)
    state.repeat_fits()
    return state.unanswered or any(vehicle.stranded for vehicle in state.agent.vehicles)


def _all_came_home(mission: Mission, rows: Sequence[Row]) -> bool:
    """Return True if the rows of a run show that the last order of each vehicle brought it home."""
    done = {
        row.order for row in rows if row.kind == "observation" and row.body["message"].get("complete", True)
    }
    last = {row.body["message"]["vehicle"]: row for row in rows if row.kind in ORDERS}
    away = [number for number, spec in enumerate(mission.vehicles) if spec.home is not None]
    return all(n in last and last[n].kind == "go-home" and last[n].order in done for n in away)


def _check_away(away_s: float, vehicles: Sequence[Vehicle] | None) -> None:
    """Raise an error unless a stated time away is a number of seconds, and counts."""
    if vehicles is None:
        raise InputError(
            f"away_s = {away_s:g} for a simulated run",
            expected="no time away: a simulation's time stands still while nothing is simulated",
        )
    if not (math.isfinite(away_s) and away_s >= 0):
        raise InputError(f"away_s = {away_s:g}", expected="a number of seconds, 0 or more")


def _mission(mission: object) -> Mission:
    if isinstance(mission, str | Path):
        return load_mission(mission)
    if isinstance(mission, Mission):
        return mission
    raise InputError(
        f"mission = {mission!r}",
        expected="a fieldbo.Mission, or the name or TOML file of one",
        fix="pass a name from fieldbo.list_missions(), or load a file with fieldbo.load_mission(file)",
    )


def _finish(
    state: RunState,
    vehicles: Sequence[Vehicle] | None,
    record: Record | None,
    on_step: Callable[[Step], object] | None,
    on_event: Callable[[Event], object] | None,
    away: Away | None = None,
) -> Result:
    count = len(state.mission.vehicles)
    if vehicles is None:
        vehicles = [Simulated(state.mission, number) for number in range(count)]
    if len(vehicles) != count:
        raise InputError(f"{len(vehicles)} vehicles", expected=f"{count}, as in the mission")
    with ExitStack() as stack:
        for vehicle in vehicles:
            stack.enter_context(vehicle)
        with one_blas_thread():
            return Loop(state, vehicles, record, on_step, on_event, away).run()


def correct_run(
    run: Path | str,
    order: str | int,
    value: float | None,
    reading: int | None = None,
    agree: Callable[[str], None] | None = None,
) -> Result:
    """Append a correction to the record of a run that no other process is writing, ended or not.

    The fits of the model that had seen the wrong reading are repeated, and recorded with the correction in
    one transaction.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.
    order : str or int
        Id or number of the order.
    value : float or None
        What the reading really was, in the user's unit; None or NaN if it failed.
    reading : int, optional
        Which reading of the order, counted from 0. Required if it has several.
    agree : callable, optional
        Called with a question if the value is far from all other readings; raises an error to discard it. By
        default, such a value is taken.

    Returns
    -------
    Result
        The result of the run so far. Its files are not written.

    Raises
    ------
    InputError
        There is no such run, order or reading, the value can't be used, or the mission has changed since the
        run began. Nothing is recorded.
    RecordError
        The record is damaged, or another process is writing to it.
    """
    with Record(record_file(run)) as record, one_blas_thread():
        record.claim()
        state = replay(record)
        event = state.agent.correction(order, value, reading)
        state.tell(event)
        if agree is not None and (question := _doubt(state.agent, event, value)):
            agree(question)
        record.events([event, *state.repeat_fits()])
        return state.result()


def _doubt(agent: Agent, correction: Correction, value: float | None) -> str:
    """Return a question about a value that is far from all other readings of a run; empty if it is likely.

    One that failed, or lies below the limit of detection, is not.
    """
    world = agent.mission.world
    if value is None or math.isnan(value) or (world.sensor.below is not None and value <= world.sensor.below):
        return ""
    others = [
        other
        for event in agent.history
        if isinstance(event, Observation) and event.order != correction.order
        for other in event.values.tolist()
    ]
    return doubt_about_reading(value, world, others, earlier_values(agent.mission))
