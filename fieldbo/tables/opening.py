"""Any file of readings as a table: the one way in for new worlds, earlier readings and cells."""

from __future__ import annotations

from pathlib import Path

from fieldbo.tables.containers import container_of
from fieldbo.tables.table import Table, read_text_table


def open_table(path: Path) -> Table:
    """Return the table in a file of any known format: text, or a container such as a database or a track.

    Raises
    ------
    InputError
        The file can't be read, its format is not known, or it has no rows.
    """
    container = container_of(path)
    return read_text_table(path) if container is None else container.read(path)
