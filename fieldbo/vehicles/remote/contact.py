"""Contact with a robot: whether it answers, is this planner's, and was told to hold."""

from __future__ import annotations

import logging
import math
import queue
from collections.abc import Callable, Iterator

from fieldbo.clock import Clock
from fieldbo.domain.frame import Ground
from fieldbo.errors import VehicleError
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.link import Connection, Link, Report, Taken, Unreachable
from fieldbo.vehicles.remote.settings import Watch
from fieldbo.vehicles.remote.watchdog import Watchdog

POLL_S = 0.05
"""Interval at which deadlines are checked."""

_log = logging.getLogger(__name__)


class Contact:
    """Opens and closes the link to a robot, and keeps track of when the robot was heard.

    All times are of the clock.

    Parameters
    ----------
    link : Link
    watch : Watch
    clock : Clock
    listen : Callable
        Processes the reports that have arrived; waits for the first for so many seconds.

    Attributes
    ----------
    connection : Connection or None
        None while the link is closed.
    connected_s : float
        When the link was opened.
    heard_s : float
        When the robot was heard last.
    watchdog : Watchdog
    unheld : str
        Why the robot could not be told to hold; empty if it was, or never had to be.
    """

    def __init__(self, link: Link, watch: Watch, clock: Clock, listen: Callable[[float], None]) -> None:
        self.link, self.watch, self.clock, self._listen = link, watch, clock, listen
        self.connection: Connection | None = None
        self.connected_s, self.heard_s = math.inf, -math.inf
        self.watchdog = Watchdog(watch.silence_s)
        self.unheld, self._hold_s = "", -math.inf
        self._reports: queue.SimpleQueue[tuple[float, Report]] = queue.SimpleQueue()
        self._unreachable = ""
        self._taken: Taken | None = None

    # -- reports -------------------------------------------------------------------------------------

    def reports(self, wait_s: float) -> Iterator[tuple[float, Report]]:
        """Yield the reports that have arrived, with their times; wait for the first."""
        try:
            yield self.clock.get(self._reports, wait_s)
            while True:
                yield self._reports.get_nowait()
        except queue.Empty:
            return

    def _hear(self, report: Report) -> None:
        """Keep a report until it is processed; called from the link's thread."""
        self._reports.put((self.clock.now_s(), report))

    def note(self, now_s: float) -> bool:
        """Note that the robot was heard; return True if it had been silent for too long before."""
        was_silent = math.isfinite(self.heard_s) and now_s > self.heard_s + self.watch.silence_s
        self.heard_s = now_s
        self.watchdog.reset(now_s)
        return was_silent

    def lose(self, report: Unreachable) -> None:
        """Note that the robot can't be reached."""
        self._unreachable = report.why
        self._taken = report if isinstance(report, Taken) else self._taken

    def is_in_touch(self, now_s: float) -> bool:
        """Return True if the robot was heard lately."""
        return now_s <= self.heard_s + self.watch.silence_s

    @property
    def unsent(self) -> str:
        """Why the last request has not left for the robot; empty if it has, or if that cannot be known."""
        return "" if self.connection is None else self.connection.unsent()

    @property
    def silence(self) -> str:
        """For how long the robot has been silent, in words, and why if the link knows."""
        why, silent_s = self.unsent, self.watchdog.silent_s
        return f"no sign of life from the robot for {silent_s:.1f} s" + (f": {why}" if why else "")

    # -- opening and closing -------------------------------------------------------------------------

    def open(
        self, mission: Mission, ground: Ground | None, session: str, is_ready: Callable[[], bool]
    ) -> None:
        """Open the link and claim the robot; wait until it answers and is ready, or is another planner's."""
        self._taken, self.connected_s = None, self.clock.now_s()
        self.connection = self.link.open(mission, ground, self._hear)
        try:
            self.connection.claim(session, mission.name)
            end = self.clock.now_s() + self.watch.connect_s
            while self._taken is None and not self._is_ready(is_ready) and self.clock.now_s() < end:
                self._listen(POLL_S)
        except BaseException:
            self.close()
            raise

    def _is_ready(self, is_ready: Callable[[], bool]) -> bool:
        assert self.connection is not None
        return self.heard_s >= 0 and self.connection.claimed and is_ready()

    def refusal(self) -> str:
        """Return why no order can leave, and what to do about it; empty if one can."""
        assert self.connection is not None
        address = self.link.address
        if self._taken is not None:
            return f"{self._taken.why}\n  fix:      {self._taken.fix}"
        if self.heard_s < 0:
            return (
                f"no robot answers at {address}: no sign of life in {self.watch.connect_s:g} s"
                + (f"; {self._unreachable}" if self._unreachable else "")
                + "\n  fix:      start the robot's program, or a simulated one: fieldbo robot --help"
            )
        if not self.connection.claimed:
            return (
                f"the robot at {address} is in use: {self._unreachable or 'another planner has it'}"
                "\n  fix:      wait until the other planner ends; if it has crashed, try again in a minute"
            )
        return ""

    def close(self) -> None:
        """Close the link; leave the robot as it is.

        If a hold has not been sent, wait for the robot first, for as long as when connecting. Ctrl-C ends
        the wait.
        """
        if self.connection is None:
            return
        address = self.link.address
        try:
            if self.unheld and not self._wait_for_hold(self.watch.connect_s):
                _log.warning("the robot at %s was told to hold after all", address)
        except KeyboardInterrupt:
            _log.warning("gave up telling the robot at %s to hold", address)
        finally:
            self.connection.close()
            self.connection = None

    # -- holding -------------------------------------------------------------------------------------

    def ask_to_hold(self) -> None:
        """Request that the robot stays in place."""
        if self.connection is not None:
            self.connection.hold()

    def hold(self) -> None:
        """Have the robot stay in place.

        Raises
        ------
        VehicleError
            The request has not left for the robot; `close` waits for that.
        """
        if self.connection is None:
            return
        self.ask_to_hold()
        self._listen(0.0)  # what came before is no sign that the hold has arrived
        self._hold_s = self.clock.now_s()
        if why := self._wait_for_hold(self.connection.delivery_s):
            raise VehicleError(
                f"the robot at {self.link.address} was NOT told to hold: {why}\n"
                f"  fix:      stop it by hand; fieldbo keeps trying for {self.watch.connect_s:g} s, "
                "or until Ctrl-C"
            )

    def _wait_for_hold(self, seconds: float) -> str:
        """Wait until a hold was sent and the robot was heard since; return what is missing, if anything."""
        assert self.connection is not None
        end = self.clock.now_s() + seconds
        while True:
            self.unheld = self.connection.unsent()
            if not self.unheld and self.heard_s <= self._hold_s:
                silent_s = self.clock.now_s() - self.heard_s
                self.unheld = f"no sign of life from it for {silent_s:.1f} s"
            if not self.unheld or self.clock.now_s() > end:
                return self.unheld
            self._listen(POLL_S)
