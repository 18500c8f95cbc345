"""One planner per robot: the claim that a planner makes on the retained topic ``.../planner``.

A planner listens first, since an existing claim arrives at once; then it makes its own and repeats it about
every second. Its last will withdraws the claim. A planner that hears an earlier claim sends nothing until
that claim is withdrawn or its planner has gone.

This module only keeps track of claims; it sends nothing itself.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any

from fieldbo.errors import InputError, printable
from fieldbo.vehicles.remote.link import Taken, Unreachable

BEAT_S = 1.0
"""Interval at which a planner repeats its claim."""

LISTEN_S = 0.5
"""An existing claim is heard within this time after subscribing."""

GONE_S = 20.0
"""A planner whose machine died counts as gone after this long; the broker has sent its last will by then."""

_LONGEST = 200


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
    run, mission, host = (str(body.get(key) or "?")[:_LONGEST] for key in ("run", "mission", "host"))
    named = "another planner" if run == "?" else f"the run {run}"
    return printable(f"{named} of mission {mission} on {host} (session {str(body['session'])[:_LONGEST]})")
