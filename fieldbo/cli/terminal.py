"""The console on which commands print."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console


def console() -> Console:
    """Return the console of standard output; in a file, lines are wide enough to keep tables whole."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140)


def says_compiling(out: Console) -> Callable[[], None]:
    """Return a function that prints, on its first call only, that loops are being compiled."""
    printed: list[bool] = []

    def say() -> None:
        if not printed:
            printed.append(True)
            out.print("compiling the fast loops, once on this machine (about half a minute)", style="dim")

    return say
