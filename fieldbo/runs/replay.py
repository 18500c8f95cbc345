"""Find a run, check that its mission is unchanged, and replay it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Frame, Ground, example, ground_of
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.files import read_toml
from fieldbo.mission.kinds import COSTS, FIELDS, POLICIES, Registry
from fieldbo.mission.load import read_mission
from fieldbo.mission.mission import Mission
from fieldbo.record.record import Record
from fieldbo.record.store import MISSION, Row, changed_files, record_file
from fieldbo.results.result import Result
from fieldbo.runs.folder import as_carried_out, versions
from fieldbo.runs.state import RunState
from fieldbo.validation import validated
from fieldbo.vehicles.base import LINKS, VEHICLES

_CHANGED = "changed since the run began"


def load_run(run: Path | str) -> RunState:
    """Replay the record of a run and return its state.

    Reading never changes a record. You can load a run while another process is writing it.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.

    Raises
    ------
    InputError
        There is no such run, or its mission has changed since the run began.
    RecordError
        The record is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import fieldbo
    >>> from fieldbo.runs.folder import begin
    >>> mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 300}})
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder, record = begin(mission, Path(parent) / "lake-1")
    ...     with record:
    ...         result = fieldbo.run(mission, record=record)
    ...     load_run(folder).result().cost == result.cost
    True
    """
    with Record(record_file(run)) as record:
        state = replay(record)
        if record.loss:
            warnings.warn(record.loss, stacklevel=2)
    return state


def replay(record: Record, mission: Mission | None = None, *, scored: bool = True) -> RunState:
    """Return the state after all rows of a record; by default of the mission next to it."""
    state = RunState(mission_of(record) if mission is None else mission, record.name, scored=scored)
    state.replay(record.rows())
    return state


def mission_of(record: Record) -> Mission:
    """Load the mission of a record from the files next to it, and check that they are unchanged.

    Raises
    ------
    InputError
        A file is missing or has changed: a different mission or world would lead to a different path.
    """
    folder = record.file.parent
    file = folder / MISSION
    if not file.is_file():
        raise InputError(
            f"there is no {file}",
            expected=f"a complete run folder, with {MISSION} and the world next to the record",
            fix="to resume a mission made in Python, call fieldbo.resume(mission, record)",
        )
    description = record.description
    prior = [name for name, then in description.get("prior", {}).items() if _digest(folder / name) != then]
    if prior:
        gone = [name for name in prior if not (folder / name).exists()]
        raise _changed(gone or prior, folder, file, "missing" if gone else _CHANGED)
    mission = read_mission(file)
    assert mission.folder is not None
    changed = changed_files(mission.folder, description)
    if json.loads(json.dumps(dict(mission.settings))) != description.get("settings"):
        changed.insert(0, file.name)
    if changed:
        raise _changed(changed, folder, file, _CHANGED)
    mission = as_carried_out(mission, description.get("vehicles", ()))
    return replace(
        mission,
        name=description["mission"],
        model=_as_begun(mission.model, description),
        failure_limit=description.get("failure_limit", 1.0),  # once, failures told nothing about places
    )


def _as_begun(model: Model, description: Mapping[str, Any]) -> Model:
    """Return a model with the rules with which its run began, by the version of that time."""
    begun = description["model"]
    return replace(
        model,
        noise_at=begun.get("noise_at", "reading"),
        average=begun.get("average", False),
        outliers=begun.get("outliers"),
    )


def _digest(file: Path) -> str | None:
    return sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def _changed(names: list[str], folder: Path, file: Path, what: str) -> InputError:
    """Return the error for files of a run folder that are not those with which the run began."""
    return InputError(
        f"{what}: {', '.join(names)}",
        expected="the mission and the world with which the run began",
        where=str(folder),
        fix=f"undo the changes; to run the changed mission from the start: fieldbo run {file}",
    )


def notes(record: Record) -> list[str]:
    """Return notes if the run began with other versions of fieldbo or its libraries, or elsewhere."""
    copy = [
        f"{record.file.parent} is a copy of a run: it lacks whatever the original recorded "
        "later. It continues under its own session, so robots cannot confuse the two"
    ]
    lost = [record.loss] if record.loss else copy if record.copied else []
    return [*lost, *_other_versions(record)]


def _other_versions(record: Record) -> list[str]:
    """Return a note if the run began with other versions of fieldbo or its libraries, or elsewhere."""
    then, now = record.description.get("versions", {}), versions()
    other = [f"{name} {then[name]} (now {now[name]})" for name in then if then[name] != now.get(name)]
    other += _other_plugins(record)
    if not other:
        return []
    return [
        f"the run began with {', '.join(other)}. All readings are kept, but from here on its queries may "
        "differ from those of an uninterrupted run"
    ]


def _other_plugins(record: Record) -> list[str]:
    """Return the plug-ins with which a run began and that have changed since, with their present version."""
    registries = {registry.group: registry for registry in (POLICIES, COSTS, FIELDS, VEHICLES, LINKS)}
    other = []
    for then in record.description.get("plugins", []):
        if present := _present(registries[then["group"]], then):
            other.append(f"{then['distribution']} {then['version']} ({present})")
    return other


def _present(registry: Registry, then: Mapping[str, str]) -> str | None:
    """Return what has become of a plug-in since; None if it is unchanged."""
    try:
        now = registry.source(then["kind"])
    except UnknownNameError:
        return "no longer installed"
    except InputError:  # the run may not need it any more; whatever needs it says what is wrong
        return "now unusable"
    if now == then:
        return None
    same = now is not None and now["version"] == then["version"]
    return f"now {'other code of that version' if same else 'built in' if now is None else now['version']}"


@dataclass(frozen=True, eq=False)
class Recorded:
    """The run to export.

    Attributes
    ----------
    folder : Path
        The run folder.
    mission : Mission
    name : str
        Name of the run.
    began : datetime
        Start of its clock.
    rows : tuple of Row
        The log so far.
    frame : Frame, optional
        Position and orientation of the domain's axes on the ground.
    description : mapping
        The mission and the versions with which the run began, as its record has them.
    loss : str
        Which rows of the log are missing, in words; empty if none are.
    """

    folder: Path
    mission: Mission
    name: str
    began: datetime
    rows: tuple[Row, ...]
    frame: Frame | None = None
    description: Mapping[str, Any] = field(default_factory=dict)
    loss: str = ""

    @cached_property
    def ground(self) -> Ground | None:
        """The domain on the ground; None without a frame or a CRS."""
        domain = self.mission.world.domain
        return None if self.frame is None and domain.crs is None else ground_of(domain, self.frame)

    def steps(self) -> Iterator[tuple[Row, Agent]]:
        """Replay the log, and yield each row with the agent as it is after that row."""
        state = RunState(self.mission, self.name, scored=False)
        for row in self.rows:
            state.replay([row])
            yield row, state.agent

    @cached_property
    def result(self) -> Result:
        """The result so far."""
        return self._state.result()

    @property
    def agent(self) -> Agent:
        """The agent as it is now."""
        return self._state.agent

    @cached_property
    def _state(self) -> RunState:
        state = RunState(self.mission, self.name)
        state.replay(self.rows)
        return state

    def time(self, seconds: float) -> datetime:
        """Return the time at a number of seconds on the clock of the run."""
        return self.began + timedelta(seconds=seconds)


def read_run(run: Path | str, frame: Path | None = None) -> Recorded:
    """Read a run without changing its files; another process may be writing to them.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.
    frame : Path, optional
        A TOML file with a ``[frame]``; by default, the frame of the vehicle that carried out the run, if any.

    Raises
    ------
    InputError
        There is no such run or frame, or the record is empty.
    RecordError
        The record is damaged.
    """
    file = record_file(run)
    with Record(file) as record:
        rows = record.rows()
        if not rows:
            raise InputError(
                f"the record of {record.name} is empty",
                expected="a run that has issued an order",
                where=str(file),
            )
        mission = mission_of(record)
        domain = mission.world.domain
        return Recorded(
            folder=file.parent,
            mission=mission,
            name=record.name,
            began=datetime.fromisoformat(record.begun_utc),
            rows=tuple(rows),
            frame=_vehicle_frame(record.vehicles) if frame is None else _read_frame(frame, domain),
            description=record.description,
            loss=record.loss,
        )


def _read_frame(file: Path, domain: Domain) -> Frame:
    """Return the ``[frame]`` of a TOML file, such as a vehicle's."""
    content = read_toml(file)
    if "frame" not in content:
        raise InputError(
            "there is no [frame]",
            expected="a table with the position of the domain's axes on the ground",
            where=str(file),
            fix=f"add one, for example\n{example(domain.axes)}",
        )
    return validated(Frame, content["frame"], f"{file}: frame")


def _vehicle_frame(vehicles: Sequence[Mapping[str, Any]]) -> Frame | None:
    """Return the frame of the first vehicle that has one, given their settings."""
    for vehicle in vehicles:
        if "frame" in vehicle:
            return validated(Frame, vehicle["frame"], "vehicle: frame")
    return None
