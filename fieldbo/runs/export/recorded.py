"""A run as its record has it: its mission, its log, what came of it, and where on the ground it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from fieldbo.agent.agent import Agent
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Frame, Ground, example
from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission
from fieldbo.mission.toml import read_toml
from fieldbo.results.result import Result
from fieldbo.runs.load import mission_of, record_file
from fieldbo.runs.record.record import Record, Row
from fieldbo.runs.state import RunState
from fieldbo.validation import validated


@dataclass(frozen=True, eq=False)
class Recorded:
    """What is exported.

    Attributes
    ----------
    folder : Path
        The run folder.
    mission : Mission
    name : str
        The run's.
    began : datetime
        When its clock stood at 0.
    rows : tuple of Row
        Its log so far.
    frame : Frame, optional
        How the domain's axes lie on the ground.
    """

    folder: Path
    mission: Mission
    name: str
    began: datetime
    rows: tuple[Row, ...]
    frame: Frame | None = None

    @cached_property
    def ground(self) -> Ground | None:
        """Where the domain lies; None where nothing says so."""
        return None if self.frame is None else self.frame.over(self.mission.world.domain.axes)

    def steps(self) -> Iterator[tuple[Row, Agent]]:
        """Take an agent through the log, and yield each row once the agent has taken it in."""
        course = self._course()
        for row in self.rows:
            course.replay([row])
            yield row, course.agent

    @cached_property
    def result(self) -> Result:
        """What has come of it so far."""
        course = self._course()
        course.replay(self.rows)
        return course.result()

    def _course(self) -> RunState:
        return RunState(self.mission, self.name)


def read_run(run: Path | str, frame: Path | None = None) -> Recorded:
    """Read a run; its files are not changed by a byte, and another process may be writing to them.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run below ``runs``.
    frame : Path, optional
        A TOML file with a ``[frame]``; by default it is that of the vehicle that the run was carried out
        with, if it had one.

    Raises
    ------
    InputError
        There is no such run or frame, or nothing is in the record yet.
    RecordError
        The record is damaged.
    """
    file = record_file(run)
    with Record(file) as record:
        rows, begun = record.rows(), record.description
        if not rows:
            raise InputError(
                f"nothing is in the record of {record.name} yet",
                expected="a run that has given an order",
                where=str(file),
            )
        mission = mission_of(record)
        return Recorded(
            folder=file.parent,
            mission=mission,
            name=record.name,
            began=datetime.fromisoformat(record.begun_utc),
            rows=tuple(rows),
            frame=_of_vehicle(begun) if frame is None else _read_frame(frame, mission.world.domain),
        )


def _read_frame(file: Path, domain: Domain) -> Frame:
    """Return the ``[frame]`` of a TOML file, such as a vehicle's."""
    content = read_toml(file)
    if "frame" not in content:
        raise InputError(
            "there is no [frame]",
            expected="a table that says where the domain's axes lie",
            where=str(file),
            fix=f"put one into it, for example\n{example(domain.axes)}",
        )
    return validated(Frame, content["frame"], f"{file}: frame")


def _of_vehicle(begun: Mapping[str, Any]) -> Frame | None:
    """Return the frame of the vehicle that a run was begun with; None where nothing is said of one."""
    for vehicle in begun.get("vehicles") or ():
        if "frame" in vehicle:
            return validated(Frame, vehicle["frame"], "vehicle: frame")
    return None
