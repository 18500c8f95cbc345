"""A clock that stands still until somebody waits by it."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Event

from fieldbo.clock import Clock, T


class SteppedClock(Clock):
    """A clock for tests: it moves only while somebody waits by it, so that no test waits in real time.

    A wait is a number of steps. In each, what goes on `meanwhile` is done, such as a turn of a simulated
    robot; then the clock moves on, and the wait ends if what it is for has happened. All of it takes place in
    the thread that waits.

    Parameters
    ----------
    step_s : float
        Length of a step in seconds.

    Attributes
    ----------
    meanwhile : list of Callable
        Called in each step, in order.

    Examples
    --------
    >>> clock, heard = SteppedClock(step_s=0.5), SimpleQueue()
    >>> clock.after(7200.0, lambda: heard.put("hello"))
    >>> clock.get(heard, timeout_s=9000.0), clock.now_s()
    ('hello', 7200.5)
    """

    def __init__(self, step_s: float = 0.005) -> None:
        self.step_s, self.meanwhile = step_s, list[Callable[[], object]]()
        self._now_s = self._suspended_s = 0.0
        self._due = list[tuple[float, Callable[[], object]]]()

    def now_s(self) -> float:
        return self._now_s

    def boot_s(self) -> float:
        return self._now_s + self._suspended_s

    def suspend(self, seconds: float) -> None:
        """Let time pass as if the computer were suspended: nothing goes on, and deadlines stand still."""
        self._suspended_s += seconds

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        """Do something once, in the first step that begins after so many seconds."""
        self._due.append((self._now_s + seconds, act))

    def sleep(self, seconds: float) -> None:
        self._step_until(lambda: False, seconds)

    def get(self, queue: SimpleQueue[T], timeout_s: float) -> T:
        self._step_until(lambda: not queue.empty(), timeout_s)
        return queue.get_nowait()

    def wait(self, event: Event, timeout_s: float) -> bool:
        self._step_until(event.is_set, timeout_s)
        return event.is_set()

    def _step_until(self, done: Callable[[], bool], seconds: float) -> None:
        """Step until something is done, or so many seconds have passed."""
        end_s = self._now_s + seconds
        while not done() and self._now_s < end_s:
            self._step(min(self.step_s, end_s - self._now_s))

    def _step(self, seconds: float) -> None:
        """Do what goes on, then move on: what happens in a step is over when its end is noticed."""
        due = [act for at_s, act in self._due if at_s <= self._now_s]
        self._due = [(at_s, act) for at_s, act in self._due if at_s > self._now_s]
        for act in (*due, *self.meanwhile):
            act()
        self._now_s += seconds
