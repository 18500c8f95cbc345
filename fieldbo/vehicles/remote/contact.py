"""Contact with a robot: whether it answers, is this planner's, and was told to hold.

A robot obeys one planner, by the claim that a planner makes on the retained topic ``.../planner``. A planner
listens first, since an existing claim arrives at once; then it makes its own and repeats it about every
second. Its last will withdraws the claim. A planner that hears an earlier claim sends nothing until that
claim is withdrawn or its planner has gone. `Claim` only keeps track of claims; it sends nothing itself.
"""

from __future__ import annotations

import logging
import math
import queue
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any

from fieldbo.clock import Clock
from fieldbo.domain.frame import Ground
from fieldbo.errors import InputError, VehicleError, printable
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.link import Connection, Link, Report, Taken, Unreachable
from fieldbo.vehicles.remote.settings import Watch

_LONGEST_CHECK = 0.25
"""The longest interval between two checks that counts in full, as a fraction of the allowed silence."""


class Watchdog:
    """Measures a robot's silence while fieldbo listens.

    When fieldbo itself is held up, as on a busy machine, it hears nothing either. Such an interval counts as
    a quarter of the allowed silence at most, so that messages that have arrived meanwhile are read first.

    All times are in seconds on one clock, the caller's.

    Parameters
    ----------
    allowed_s : float
        How long a robot may be silent.

    Attributes
    ----------
    silent_s : float
        For how long the robot has been silent.

    Examples
    --------
    >>> watchdog = Watchdog(4.0)
    >>> watchdog.reset(10.0)
    >>> watchdog.check(30.0)
    >>> watchdog.silent_s, watchdog.expired
    (1.0, False)
    """

    def __init__(self, allowed_s: float) -> None:
        self.allowed_s, self.silent_s = allowed_s, 0.0
        self._checked_s = math.inf

    def reset(self, now_s: float) -> None:
        """Start again: the robot was heard, or is to answer from now on."""
        self.silent_s, self._checked_s = 0.0, now_s

    def check(self, now_s: float) -> None:
        """Count the time since the last check."""
        passed_s = max(0.0, now_s - self._checked_s)
        self.silent_s += min(passed_s, _LONGEST_CHECK * self.allowed_s)
        self._checked_s = now_s

    @property
    def expired(self) -> bool:
        """Whether the robot has been silent for longer than allowed."""
        return self.silent_s > self.allowed_s


BEAT_S = 1.0
"""Interval at which a planner repeats its claim."""

LISTEN_S = 0.5
"""An existing claim is heard within this time after subscribing."""

GONE_S = 20.0
"""A planner whose machine died counts as gone after this long; the broker has sent its last will by then."""

_LONGEST_NAME = 200


class Claim:
    """What one planner knows of its own claim and of another's.

    The methods may be called from any thread; `now_s` is on the monotonic clock.

    Parameters
    ----------
    session : str
        Identifies the run. A claim of the same session is this planner's own, from before a restart.
    mission : str
        Name of the mission, for people.

    Examples
    --------
    >>> ours, theirs = Claim("a", "lake"), Claim("b", "lake")
    >>> ours.listen(0.0), ours.due(0.4), ours.due(0.6)
    (None, False, True)
    >>> theirs.listen(1.0)
    >>> type(theirs.take(ours.body, retained=False, now_s=1.1)).__name__
    'Taken'
    >>> theirs.due(2.0), ours.held, theirs.held
    (False, True, False)
    """

    def __init__(self, session: str, mission: str) -> None:
        self.session, self.held, self.rival = session, False, ""
        self._since_s = time.time()
        about = {"mission": mission, "host": socket.gethostname(), "since_s": self._since_s}
        self._body = {"online": True, "session": session, **about}
        self._rivals_session, self._due_s, self._again = "", float("inf"), False
        self._was_held = False
        self._lock = Lock()

    @property
    def body(self) -> dict[str, Any]:
        """The message that makes the claim."""
        return dict(self._body)

    @property
    def withdrawn(self) -> dict[str, Any]:
        """The message that withdraws it."""
        return {"online": False, "session": self.session}

    @property
    def doubtful(self) -> bool:
        """Whether the robot may obey another planner: one has claimed it, or ours was never held yet.

        While our own claim is only made again, after a break, it stays ours.
        """
        return not self._was_held or bool(self.rival)

    def name(self, run: str) -> None:
        """Add the name of the run, once it is known."""
        self._body["run"] = run

    def listen(self, now_s: float) -> None:
        """Start to listen for other claims, after each connection."""
        with self._lock:
            self.held, self.rival, self._rivals_session = False, "", ""
            self._due_s = now_s + LISTEN_S

    def due(self, now_s: float) -> bool:
        """Return True if the claim is to be made now; from then on it is held."""
        with self._lock:
            again, self._again = self._again and self.held, False
            if self.held or now_s < self._due_s:
                return again
            self.held, self.rival, self._rivals_session = True, "", ""
            self._was_held = True
            return True

    def take(self, body: Mapping[str, Any], *, retained: bool, now_s: float) -> Unreachable | None:
        """Process a message of any planner; return what another's claim means for us.

        Raises
        ------
        InputError
            The message has no session.
        """
        session, online = body.get("session"), body.get("online") is True
        if not isinstance(session, str) or not session:
            raise InputError(f"session = {str(session)[:80]!r}", expected="the session of a planner")
        with self._lock:
            if session == self.session:
                self._again |= not online  # the last will of an earlier connection
                return None
            if self.held and not (online and self._is_older(body)):
                self._again = True  # it took the place of ours
                return None
            if not online:
                if session == self._rivals_session:
                    self._due_s = now_s
                return None
            self.held, self._rivals_session, self._due_s = False, session, now_s + GONE_S
            self.rival = _who(body)
        if retained:  # unless it died with its machine, it is heard within a second
            return Unreachable(f"{self.rival} has claimed the robot")
        return Taken(
            f"{self.rival} has claimed this robot and is running",
            "wait until it ends, or stop it (Ctrl-C): a robot obeys only one planner",
        )

    def _is_older(self, body: Mapping[str, Any]) -> bool:
        """Return True if another claim came before ours; both planners agree on that."""
        since_s = body.get("since_s")
        other_s = float(since_s) if isinstance(since_s, int | float) else float("inf")
        return (other_s, str(body["session"])) < (self._since_s, self.session)


def _who(body: Mapping[str, Any]) -> str:
    """Return the name of another planner, as it gives it: by its run, mission and machine."""
    run, mission, host = (str(body.get(key) or "?")[:_LONGEST_NAME] for key in ("run", "mission", "host"))
    named = "another planner" if run == "?" else f"the run {run}"
    return printable(
        f"{named} of mission {mission} on {host} (session {str(body['session'])[:_LONGEST_NAME]})"
    )


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
