"""Files that hold tables but are not plain text: each format has a module with ``read(path) -> Table``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from fieldbo.tables.table import Table

_HEAD = 4096


@dataclass(frozen=True)
class Container:
    """A format, recognised by the first bytes of a file and its suffix.

    Attributes
    ----------
    name : str
        What the format is called in messages.
    fits : callable
        Whether a file has this format, from its first bytes and its suffix in lower case.
    module : str
        Module in this package with ``read(path) -> Table``; imported when it is needed.
    """

    name: str
    fits: Callable[[bytes, str], bool]
    module: str

    def read(self, path: Path) -> Table:
        """Return the table in a file of this format.

        Raises
        ------
        InputError
            The file is damaged, or it holds no readings.
        """
        table: Table = import_module(f"{__name__}.{self.module}").read(path)
        return table


CONTAINERS: tuple[Container, ...] = ()


def container_of(path: Path) -> Container | None:
    """Return the format of a file; None if it is text, or can't be read."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    return next((each for each in CONTAINERS if each.fits(head, path.suffix.lower())), None)
