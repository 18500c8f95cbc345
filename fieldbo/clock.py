"""Time, and waiting: by this machine's clock, or by one that a test moves.

Whatever has a deadline, or waits, takes a `Clock`. Tests pass a `fieldbo.testing.SteppedClock`, which moves
only while somebody waits by it: they neither wait in real time nor depend on how busy the machine is. What
really takes place elsewhere, in another process or at the other end of a socket, is waited for in real time.
"""

from __future__ import annotations

import math
import sys
import time
from queue import SimpleQueue
from threading import Event
from typing import TypeVar

T = TypeVar("T")


class Clock:
    """The clock of this machine, which never goes back.

    Examples
    --------
    >>> clock = Clock()
    >>> before_s = clock.now_s()
    >>> clock.sleep(0.01)
    >>> clock.now_s() >= before_s + 0.01
    True
    """

    def now_s(self) -> float:
        """Return the time in seconds; it may stand still while the computer is suspended."""
        return time.monotonic()

    def boot_s(self) -> float:
        """Return the time in seconds; it runs on while the computer is suspended, if the system can tell."""
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; return at once if there is nothing to wait for."""
        time.sleep(max(0.0, seconds))

    def get(self, queue: SimpleQueue[T], timeout_s: float) -> T:
        """Return the next item of a queue; wait for it for `timeout_s` at most.

        Raises
        ------
        queue.Empty
            There is none.
        """
        return queue.get(timeout=timeout_s) if timeout_s > 0.0 else queue.get_nowait()

    def wait(self, event: Event, timeout_s: float) -> bool:
        """Wait for an event for `timeout_s` at most; return whether it has happened."""
        return event.wait(timeout_s)


MACHINE_CLOCK = Clock()

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def duration_text(seconds: float, *, about: bool = False) -> str:
    """Return a duration as people say it, in its two largest units.

    Parameters
    ----------
    seconds : float
        0 or more.
    about : bool
        Whether one unit says enough, as for an estimate.

    Examples
    --------
    >>> duration_text(404), duration_text(38.4), duration_text(0.25), duration_text(7200)
    ('6 min 44 s', '38.4 s', '0.25 s', '2 h')
    >>> duration_text(90_061), duration_text(404, about=True), duration_text(5000, about=True)
    ('1 d 1 h', '7 min', '83 min')
    """
    if not math.isfinite(seconds):
        return f"{seconds} s"
    if about:
        short = f"{max(1.0, float(f'{seconds:.1g}')):g} s"
        long = f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
        return short if seconds < 90 else long
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    first = next(k for k, (_, size) in enumerate(_UNITS) if seconds >= size - 0.5)
    # Rounded to the smaller of the two units that are shown, so that 3,599.7 s are an hour.
    finest = _UNITS[min(first + 1, len(_UNITS) - 1)][1]
    left = round(seconds / finest) * finest
    parts = []
    for name, size in _UNITS:
        count, left = divmod(left, size)
        parts += [f"{count:.0f} {name}"] if count else []
    return " ".join(parts)


"""By which everything waits unless it is given another clock."""
