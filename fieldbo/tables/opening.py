"""Any file of readings as a table: the one way in for new worlds, earlier readings and cells."""

from __future__ import annotations

from pathlib import Path

from fieldbo.errors import InputError
from fieldbo.tables.companions import apply_companions
from fieldbo.tables.containers import container_of
from fieldbo.tables.table import Table, read_text_table


def open_table(path: Path, *, quantity: str | None = None, layer: str | None = None) -> Table:
    """Return the table in a file of any known format: text, or a container such as a database or a track.

    Parameters
    ----------
    path : Path
    quantity : str, optional
        Which quantity to read, from a table of text or a workbook that has several in one column.
    layer : str, optional
        Which of several tables in a container: a layer, a sheet, a track or a kind of message.

    Raises
    ------
    InputError
        The file can't be read, its format is not known, or it has no rows. It holds several quantities in one
        column of values, or several tables, and none is named.
    """
    container = container_of(path)
    if container is not None:
        return apply_companions(container.read(path, layer, quantity))
    _check_without_layers(path, layer)
    return apply_companions(read_text_table(path, quantity))


def open_track(path: Path, layer: str | None = None) -> Table:
    """Return the positions in a file of any known format, with their times.

    Of the log of an autopilot or a receiver these are the fixes alone.

    Parameters
    ----------
    path : Path
        A file; ``FILE:LAYER`` names one of several tracks in it.
    layer : str, optional
        One of several tracks, where `path` names none.

    Raises
    ------
    InputError
        As `open_table` does.
    """
    if not path.is_file() and ":" in path.name:
        name, _, layer = path.name.partition(":")
        path = path.with_name(name)
    container = container_of(path)
    return open_table(path, layer=layer) if container is None else container.read_track(path, layer)


def _check_without_layers(path: Path, layer: str | None) -> None:
    if layer is not None:
        raise InputError(
            f"{path.name} is text, and has no layer {layer!r}",
            expected="a file with layers, sheets or tracks",
            where="--layer",
            fix="leave --layer out",
        )
