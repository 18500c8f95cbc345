"""Follow the record of a run that another process writes, row by row."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.errors import FieldboError
from fieldbo.record.record import Record, ReplacedError, Tail
from fieldbo.record.store import Row, is_being_written
from fieldbo.runs.load import mission_of
from fieldbo.runs.state import RunState

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
        """Accept no further commands, and tell viewers why."""
        self.alive = False
        self._tell(f"this console stopped following the run, start it again: {reason}")

    def _tell(self, problem: str | None) -> None:
        """Tell viewers of a problem, or that it is over."""
        if problem != self.problem:
            self.problem = problem
            if problem is not None:
                _log.warning("%s: %s", self.file, problem)
            self._on_problem()

    def _replay(self, rows: list[Row]) -> None:
        """Replay rows, and tell viewers if anything has changed."""
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
