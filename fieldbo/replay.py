"""How a run stands, and a record replayed: the agent is taken through what it asked and what it was told.

A replay chooses, fits and reads nothing: orders are taken over with what the policy remembered, fits with
their hyperparameters, readings with their values. What is kept in no row is worked out again by the same
steps in the same order, so that the agent is the one that it was, to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fieldbo.agent import Agent
from fieldbo.catalogue import load_mission
from fieldbo.errors import InputError, nearest
from fieldbo.exchange import EndReason, Event, Fitted, GoHome, Observation, Order, Query
from fieldbo.folder import MISSION, RECORD, digests, versions
from fieldbo.mission import Mission
from fieldbo.record import Record, Row
from fieldbo.result import Result, Scorer, Step
from fieldbo.threads import on_one_blas_thread


class Course:
    """How a run stands: what its agent knows, the scores after each order, and who has something out.

    Parameters
    ----------
    mission : Mission
    name : str
        The run's, which its orders' ids begin with.

    Attributes
    ----------
    agent : Agent
    curve : list of Step
        How things stood after each settled order.
    waiting : dict of str to int
        Orders that are out, in the order in which they were given, and their vehicles.
    stops : dict of int to EndReason
        Vehicles that get no further orders, in the order in which they were told so.
    listening : bool
        Whether the latest that happened was news of a vehicle, and not an order, a stop or a fit.
    end_reason : EndReason or None
        Why the run ended; None before.
    """

    def __init__(self, mission: Mission, name: str) -> None:
        self.mission = mission
        self.agent = Agent(mission, name)
        self.curve: list[Step] = []
        self.waiting: dict[str, int] = {}
        self.stops: dict[int, EndReason] = {}
        self.listening = False
        self.end_reason: EndReason | None = None
        self._scorer = Scorer(mission)

    @property
    def idle(self) -> list[int]:
        """Vehicles that have nothing out and may get orders, by number."""
        busy = {*self.expected, *self.stops}
        return [number for number in range(len(self.mission.crew)) if number not in busy]

    @property
    def expected(self) -> list[int]:
        """Vehicles that are to be heard of, by number: they have something out, or were lost on the way."""
        lost = (number for number in range(len(self.mission.crew)) if self.agent.waits(number))
        return sorted({*self.waiting.values(), *lost})

    def ordered(self, orders: Iterable[Order]) -> None:
        """Note orders that the agent let out."""
        self.waiting |= {str(order.id): order.vehicle for order in orders}
        self.listening = False

    def stopped(self, vehicle: int, reason: EndReason) -> None:
        """Note that a vehicle gets no further orders."""
        self.stops[vehicle] = reason
        self.listening = False

    def told(self, event: Event) -> bool:
        """Tell the agent an event, but not of an order that it never gave; say whether it settles one."""
        if self.agent.knows(event):
            self.agent.tell(event)
        self.listening = not isinstance(event, Fitted)
        order = getattr(event, "order", None)
        if order not in self.waiting or (isinstance(event, Observation) and not event.last):
            return False
        del self.waiting[order]
        self.curve.append(self._scorer.step(self.agent))
        return True

    @on_one_blas_thread
    def replay(self, rows: Iterable[Row]) -> None:
        """Go on by what a record says came next."""
        for row in rows:
            if row.kind == "end":
                self.end_reason = EndReason(row.body["reason"])
            elif row.kind == "stop":
                vehicle, reason = row.body["vehicle"], EndReason(row.body["reason"])
                self.agent.replay_stop(vehicle, reason, row.body["memory"], row.body["why"])
                self.stopped(vehicle, reason)
            else:
                self._replay_message(row)

    def _replay_message(self, row: Row) -> None:
        message = row.message
        if isinstance(message, Query | GoHome):
            self.agent.replay(message, row.body["memory"], row.body["why"])
            self.ordered([message])
            return
        try:
            self.told(message)
        except InputError:
            self.listening = True  # the agent refused it when it came, too, and took nothing in

    def result(self) -> Result:
        """Return what has come of the run so far."""
        return Result.of(self.agent, self.curve, self.end_reason)


def load_run(run: Path | str) -> Course:
    """Return how a run stands, or ended, as its record tells it.

    The record is only read; another process may be writing to it.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a folder below ``runs``.

    Raises
    ------
    InputError
        There is no such run, or its mission was changed since it began.
    RecordError
        The record is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import fieldbo
    >>> from fieldbo.folder import begin
    >>> mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 300}})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder, record = begin(mission, Path(place) / "lake-1")
    ...     with record:
    ...         result = fieldbo.run(mission, record=record)
    ...     load_run(folder).result().cost == result.cost
    True
    """
    file = record_file(run)
    with Record(file) as record:
        course = Course(mission_of(record), record.name)
        course.replay(record.rows())
    return course


def record_file(run: Path | str) -> Path:
    """Return the record of a run that was named by its folder, by the record itself, or below ``runs``.

    Raises
    ------
    InputError
        There is no such run, or nothing was begun in that folder yet.
    """
    named, below = Path(run), Path("runs") / run
    found = named if named.exists() or not below.exists() else below
    file = found / RECORD if found.is_dir() else found
    if file.is_file() and file.name == RECORD:
        return file
    if (mission := found / MISSION).is_file():
        raise InputError(
            f"nothing was begun in {found} yet: it holds a mission, and no {RECORD}",
            expected="a folder in which a run has begun",
            mend=f"start it with: fieldbo run {mission}",
        )
    near = nearest(str(run), (one.parent.name for one in Path("runs").glob(f"*/{RECORD}")))
    lacks = f"{run} is no run folder: there is no {RECORD} in it"
    raise InputError(
        lacks if found.exists() else f"there is no run {run}",
        expected=f"a run folder, as fieldbo run makes it, or the {RECORD} in it",
        mend=f"did you mean {near!r}?" if near else "fieldbo runs lists the runs below runs/",
    )


def mission_of(record: Record) -> Mission:
    """Return the mission of a record from the files beside it, if they still say what it began with.

    Raises
    ------
    InputError
        A file is missing or was changed: another mission, or world, would take another path.
    """
    folder = record.file.parent
    file = folder / MISSION
    if not file.is_file():
        raise InputError(
            f"there is no {file}",
            expected=f"the run folder as fieldbo run made it: {MISSION} and the world beside the record",
            mend="a run of a mission made in Python goes on there: fieldbo.resume(mission, record)",
        )
    begun = record.description
    mission = load_mission(file)
    assert mission.folder is not None
    then, now = begun.get("files", {}), digests(mission.folder)
    changed = [f"{mission.world.name}/{name}" for name in then if now.get(name) != then[name]]
    if json.loads(json.dumps(dict(mission.settings))) != begun.get("settings"):
        changed.insert(0, file.name)
    if changed:
        raise InputError(
            f"changed since the run began: {', '.join(changed)}",
            expected="the mission and the world as they were run",
            where=str(folder),
            mend=f"undo the changes; to run the mission as it is now, from its start: fieldbo run {file}",
        )
    return replace(mission, name=begun["mission"])


def notes(record: Record) -> list[str]:
    """Return what a user should know before a run goes on: what it was begun with, where that has changed."""
    then, now = record.description.get("versions", {}), versions()
    other = [f"{name} {then[name]} (now {now[name]})" for name in then if then[name] != now.get(name)]
    if not other:
        return []
    return [
        f"the run was begun with {', '.join(other)}: all that was read is kept, but what it asks for from "
        "here on may differ from what it would have asked for then"
    ]
