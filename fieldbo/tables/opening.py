"""Any file of readings as a table: the one way in for new worlds, earlier readings and cells."""

from __future__ import annotations

from pathlib import Path

from fieldbo.errors import InputError
from fieldbo.tables.containers import container_of
from fieldbo.tables.table import Table, read_text_table


def open_table(path: Path, quantity: str | None = None) -> Table:
    """Return the table in a file of any known format: text, or a container such as a database or a track.

    Parameters
    ----------
    path : Path
    quantity : str, optional
        Which quantity to read, from a table of text that has several in one column.

    Raises
    ------
    InputError
        The file can't be read, its format is not known, it has no rows, or it holds several quantities in one
        column of values and `quantity` names none of them.
    """
    container = container_of(path)
    if container is None:
        return read_text_table(path, quantity)
    if quantity is not None:
        raise InputError(
            f"quantity is {quantity!r}, but {path.name} is no table of text",
            expected="a table with several quantities in one column",
            where="--quantity",
            fix="leave --quantity out, and name a column with --value",
        )
    return container.read(path)
