"""Load a run from its record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from fieldbo.errors import InputError, nearest
from fieldbo.mission.load import load_mission
from fieldbo.mission.mission import Mission
from fieldbo.runs.folder import MISSION, RECORD, digests, versions
from fieldbo.runs.record.record import Record
from fieldbo.runs.state import RunState


def load_run(run: Path | str) -> RunState:
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
    >>> from fieldbo.runs.folder import begin
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
        course = RunState(mission_of(record), record.name)
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
            fix=f"start it with: fieldbo run {mission}",
        )
    near = nearest(str(run), (one.parent.name for one in Path("runs").glob(f"*/{RECORD}")))
    lacks = f"{run} is no run folder: there is no {RECORD} in it"
    raise InputError(
        lacks if found.exists() else f"there is no run {run}",
        expected=f"a run folder, as fieldbo run makes it, or the {RECORD} in it",
        fix=f"did you mean {near!r}?" if near else "fieldbo runs lists the runs below runs/",
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
            fix="a run of a mission made in Python goes on there: fieldbo.resume(mission, record)",
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
            fix=f"undo the changes; to run the mission as it is now, from its start: fieldbo run {file}",
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
