"""Follow the record of a run that another process writes, row by row."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.errors import FieldboError
from fieldbo.messages import (
    Answer,
    Command,
    Correction,
    GoHome,
    Lost,
    Observation,
    Query,
    Recharge,
    Rejected,
    Telemetry,
    order_number,
)
from fieldbo.record.record import Record, ReplacedError, Tail
from fieldbo.record.store import WITHOUT_MESSAGE, Row, is_being_written
from fieldbo.results.words import place, short
from fieldbo.runs.replay import mission_of
from fieldbo.runs.state import RunState
from fieldbo.runs.steer import command_line

_POLL_S = 0.4
_ALIVE_S = 2.0
"""How often to look whether a process carries the run out."""

_log = logging.getLogger(__name__)


class Follower:
    """Replays a record as it grows, in a thread of its own.

    Parameters
    ----------
    file : Path
        The record.
    on_row : Callable
        Called with the state before each row, and the row; then the row is replayed.
    on_change : Callable
        Called after new rows were replayed, or when the process that writes them appears or ends.
    on_problem : Callable
        Called when `problem` changes.
    clock : Clock, optional
        By default this machine's.

    Attributes
    ----------
    state : RunState
    rows : int
        Number of rows replayed.
    alive : bool
        Whether a process carries the run out.
    problem : str or None
        Why the state is older than the record; None if it is not.
    """

    def __init__(
        self,
        file: Path,
        on_row: Callable[[RunState, Row], object],
        on_change: Callable[[], object],
        on_problem: Callable[[], object],
        clock: Clock = MACHINE_CLOCK,
    ) -> None:
        self.file, self._clock = file, clock
        self._on_row, self._on_change, self._on_problem = on_row, on_change, on_problem
        with Record(file) as record:
            self.state = RunState(mission_of(record), record.name, scored=False)
        self._tail = Tail(file)
        self.rows, self.alive = 0, False
        self.problem: str | None = None
        self._looked_s = -_ALIVE_S
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    @property
    def vehicles(self) -> list[dict[str, Any]]:
        """Settings of the vehicles with which the run is carried out."""
        return self._tail.vehicles

    def start(self) -> None:
        """Read what is there, and continue in the background."""
        self._replay(self._tail.new_rows())
        self._thread.start()

    def close(self) -> None:
        """Stop following."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._clock.wait(self._closing, _POLL_S):
            if not self.look():
                return

    def look(self) -> bool:
        """Replay what is new; return False if the run can't be followed any longer."""
        try:
            self._look()
        except ReplacedError:
            self._stop("another run is in its place")
            return False
        except Exception as error:  # a row may be half replayed, and what follows it would be wrong
            _log.exception("%s can't be followed any longer", self.file)
            self._stop(repr(error))
            return False
        return True

    def _look(self) -> None:
        try:
            rows = self._tail.new_rows()
        except ReplacedError:
            raise
        except FieldboError as error:  # a moment later it may be readable again
            self._tell(f"the record can't be read at present: {error}")
            return
        self._replay(rows)
        self._tell(None)

    def _stop(self, reason: str) -> None:
        self.alive = False
        self._tell(f"this console stopped following the run, start it again: {reason}")

    def _tell(self, problem: str | None) -> None:
        if problem != self.problem:
            self.problem = problem
            if problem is not None:
                _log.warning("%s: %s", self.file, problem)
            self._on_problem()

    def _replay(self, rows: list[Row]) -> None:
        for row in rows:
            self._on_row(self.state, row)
            self.state.replay([row])
            self.rows += 1
        if self._look_for_process() or rows:
            self._on_change()

    def _look_for_process(self) -> bool:
        """Look whether a process carries the run out; return whether that has changed."""
        now_s = self._clock.now_s()
        if now_s < self._looked_s + _ALIVE_S:
            return False
        self._looked_s, before = now_s, self.alive
        self.alive = is_being_written(self.file)
        return self.alive is not before


def line_of(row: Row, state: RunState) -> dict[str, str] | None:
    """Return a row as a kind and a text; None for one that says nothing new to people.

    Parameters
    ----------
    row : Row
    state : RunState
        As it was before the row.
    """
    text = _without_message(row) if row.kind in WITHOUT_MESSAGE else _of_message(row.message, state)
    return None if text is None else {"kind": row.kind, "text": text}


def _without_message(row: Row) -> str | None:
    if row.kind in ("end", "stop"):
        return None if row.kind == "stop" else f"the run ended: {row.body['reason']}"
    if row.kind == "reopened":
        return "the run continues"
    return str(row.body["text"]) if row.kind == "note" else None


def _of_message(message: Any, state: RunState) -> str | None:  # noqa: PLR0911 - one for each kind
    world = state.mission.world
    match message:
        case Query():
            cost = (
                ""
                if message.expected_cost is None
                else f" (about {short(message.expected_cost)} {world.cost_unit})"
            )
            return f"order {order_number(message.id)}: go to {place(world.domain, message.site)}{cost}"
        case GoHome():
            return f"order {order_number(message.id)}: go home"
        case Recharge():
            return f"order {order_number(message.id)}: change to battery {message.battery}"
        case Observation():
            return f"order {order_number(message.order)}: {_read(message, state)}"
        case Rejected() | Lost():
            what = "rejected" if isinstance(message, Rejected) else "lost"
            return f"order {order_number(message.order)} {what}: {message.reason}"
        case Correction():
            values = ", ".join(
                "failed" if math.isnan(x) else world.quantity.amount(x) for x in message.values
            )
            return f"order {order_number(message.order)} corrected: {values}"
        case Command():
            return command_line(state.mission, message)
        case Answer():
            return f"order {message.order}: entry refused: {message.refused}" if message.refused else None
        case Telemetry():
            return "; ".join(message.doubts) or None
    return None


def _read(message: Observation, state: RunState) -> str:
    quantity, unit = state.mission.world.quantity, state.mission.world.cost_unit
    values = [value for value in message.values.tolist() if math.isfinite(value)]
    if len(values) == 1:
        read = quantity.amount(values[0])
    elif values:
        read = f"{len(values)} readings, {min(values):.4g} to {quantity.amount(max(values))}"
    else:
        read = "reading failed" if len(message.values) else "done" if message.complete else "cut short"
    return f"{read}; took {short(message.cost)} {unit}"
