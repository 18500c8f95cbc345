"""A run read from its record: mission, log, result, and position on the ground."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from fieldbo.agent.agent import Agent
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Frame, Ground, example, ground_of
from fieldbo.errors import InputError
from fieldbo.mission.files import read_toml
from fieldbo.mission.mission import Mission
from fieldbo.record.record import Record
from fieldbo.record.store import Row, record_file
from fieldbo.results.result import Result
from fieldbo.runs.replay import mission_of
from fieldbo.runs.state import RunState
from fieldbo.validation import validated


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
