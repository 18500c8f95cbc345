"""Where commands print: a terminal at its own width, a file at a width that keeps tables whole."""

from __future__ import annotations

from rich.console import Console


def console() -> Console:
    """Return the console of this process' standard output."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140)
