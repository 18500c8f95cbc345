"""The console on which commands print, and the signals that stop them."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console


_SOON_S = 0.05


def console() -> Console:
    """Return the console of standard output; in a file, lines are wide enough to keep tables whole."""
    from rich.console import Console

    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140)


def says_compiling(out: Callable[[], Console]) -> Callable[[], None]:
    """Return a function that prints, on its first call only, that loops are being compiled.

    The console is made, as `out` makes it, if there is something to print.
    """
    printed: list[bool] = []

    def say() -> None:
        if not printed:
            printed.append(True)
            out().print("compiling the fast loops, once on this machine (about half a minute)", style="dim")

    return say


@contextmanager
def stopped_by_signals() -> Iterator[list[signal.Signals]]:
    """Let SIGTERM and SIGHUP raise `KeyboardInterrupt` in the block, as Ctrl-C does.

    They do so even in a command that a script runs in the background, to which the shell leaves Ctrl-C
    ignored. Only a SIGHUP that ``nohup`` has the command ignore stays ignored. If Python drops the exception,
    because the signal came in the callback of a weak reference or in a ``__del__``, it is raised once more.

    Yields
    ------
    list of Signals
        Grows by each signal received; Ctrl-C is not among them.
    """
    received: list[signal.Signals] = []

    def stop(number: int, _: object) -> None:
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    def on_dropped(dropped: sys.UnraisableHookArgs) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            _signal_soon(received[-1] if received else signal.SIGINT)
        else:
            hook_before(dropped)

    before = {}
    hook_before, sys.unraisablehook = sys.unraisablehook, on_dropped
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number and (name == "SIGTERM" or signal.getsignal(number) is not signal.SIG_IGN):
            before[number] = signal.signal(number, stop)
    try:
        yield received
    finally:
        sys.unraisablehook = hook_before
        for number, handler in before.items():
            signal.signal(number, handler)


def _signal_soon(number: signal.Signals) -> None:
    """Send this process a signal in a moment, from another thread: its exceptions are dropped just now."""
    main = threading.main_thread().ident
    assert main is not None
    send = getattr(signal, "pthread_kill", lambda _, number: signal.raise_signal(number))  # not on Windows
    timer = threading.Timer(_SOON_S, send, (main, number))
    timer.daemon = True
    timer.start()


@contextmanager
def continued_if_repeated(out_to: Console, remedy: str) -> Iterator[None]:
    """End the command when it is stopped in the block, and say how to continue.

    Parameters
    ----------
    out_to : Console
    remedy : str
        What repeating the command does, for example ``"continue in runs/lake-advice"``.
    """
    with stopped_by_signals() as signals:
        try:
            yield
        except KeyboardInterrupt:
            by = signals[0].name if signals else "you"
            out_to.print(f"Stopped by {by}. Repeat the command to {remedy}.", soft_wrap=True, markup=False)
            raise typer.Exit(128 + signals[0] if signals else 130) from None
