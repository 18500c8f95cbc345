"""A run for other programs: tables, labelled maps, GeoJSON and a log, all derived from its record."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.files import write_whole
from fieldbo.runs.export.recorded import Recorded, read_run

FORMATS = {
    "csv": "tables of readings, path, scores and costs",
    "netcdf": "maps, and the readings as a trajectory, with CF names and units",
    "geojson": "path, readings and map in degrees (RFC 7946); needs a frame with an origin",
    "mcap": "a log for Foxglove: poses, orders, readings, battery and belief as they came about",
}
"""The formats, and what each of them holds."""

__all__ = ["FORMATS", "Recorded", "export", "read_run"]


def export(
    run: Path | str,
    formats: Sequence[str],
    out: Path | str | None = None,
    frame: Path | str | None = None,
    *,
    replace: bool = False,
) -> list[Path]:
    """Write a run in other programs' formats; the run may still be going on, or have crashed.

    Nothing is written unless all of it can be: every file's content is there before the first one is made.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run below ``runs``.
    formats : sequence of str
        Of `FORMATS`.
    out : Path or str, optional
        The folder to write into; by default ``export`` in the run folder.
    frame : Path or str, optional
        A TOML file with a ``[frame]``; by default that of the vehicle that the run was carried out with.
    replace : bool
        Whether files of an earlier export are written over.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        There is no such run or format, a file exists, or the domain can't be told in degrees and a format
        needs that.
    RecordError
        The record is damaged.
    """
    for name in formats:
        if name not in FORMATS:
            raise UnknownNameError.of("format", name, FORMATS)
    recorded = read_run(run, None if frame is None else Path(frame))
    folder = recorded.folder / "export" if out is None else Path(out)
    content: dict[str, bytes] = {}
    for name in dict.fromkeys(formats):
        content |= import_module(f"fieldbo.runs.export.{name}").files(recorded)
    there = [name for name in content if (folder / name).exists()]
    if there and not replace:
        raise InputError(
            f"{folder} already holds {', '.join(there)}",
            expected="a folder without them: nothing is written over by accident",
            where="--out",
            fix="choose another folder with --out, or say --replace",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, whole in content.items():
            write_whole(folder / name, whole)
    except OSError as error:
        raise InputError(f"{folder} can't be written: {error.strerror}", where="--out") from None
    return [folder / name for name in content]
