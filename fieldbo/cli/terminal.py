"""Where commands print: a terminal at its own width, a file at a width that keeps tables whole."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console


def console() -> Console:
    """Return the console of this process' standard output."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140)


def says_compiling(out: Console) -> Callable[[], None]:
    """Return what says, the first time it is called, that loops are being compiled."""
    said: list[bool] = []

    def say() -> None:
        if not said:
            said.append(True)
            out.print("compiling the fast loops, once on this machine (about half a minute)", style="dim")

    return say
