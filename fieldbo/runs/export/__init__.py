"""Export a run for other programs: tables, netCDF, layers for a GIS, and an MCAP log, all from its record."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.files import write_whole
from fieldbo.results import plot
from fieldbo.runs.replay import Recorded, read_run

FORMATS = {
    "csv": "tables of readings, path, scores and costs",
    "netcdf": "maps, and the readings as a trajectory, with CF names and units",
    "geotiff": "rasters of the maps and classes; needs fieldbo[geo]",
    "contours": "contour lines and areas of the classes in degrees, as GeoJSON (RFC 7946)",
    "gpkg": "a GeoPackage with all layers in metres; needs fieldbo[geo]",
    "geojson": "path, routes, readings and map in degrees (RFC 7946)",
    "gpx": "the path with times, the planned routes, and the readings as waypoints",
    "kml": "path, readings, contour lines and classes for Google Earth",
    "pictures": "path, map and curve in another format or width",
    "mcap": "a log for Foxglove: poses, orders, readings, battery and belief over time",
}
"""The formats and their content. Those for a GIS need a world with a CRS, or a frame with an origin."""

_MODULES = {
    **dict.fromkeys(("contours", "geojson", "gpkg", "gpx"), "vector"),
    "kml": "kml",
    **dict.fromkeys(("geotiff", "netcdf"), "raster"),
    "mcap": "log",
}
"""Where the formats are written that are not in the run folder."""

_NEEDED = {
    "geotiff": ("rasterio", "rasterio", "geo"),
    "gpkg": ("pyogrio", "pyogrio", "geo"),
    "mcap": ("foxglove", "foxglove-sdk", "mcap"),
}
"""What a format needs: its module, its library, and the extra that installs it."""

__all__ = ["FORMATS", "Recorded", "export", "read_run"]


def export(
    run: Path | str,
    formats: Sequence[str],
    out: Path | str | None = None,
    frame: Path | str | None = None,
    *,
    replace: bool = False,
    picture_format: str | None = None,
    width: str | None = None,
) -> list[Path]:
    """Export a run to formats that other programs read. The run may be in progress, or have crashed.

    The content of every file is computed before the first one is written, so an error leaves no files behind.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.
    formats : sequence of str
        Names from `FORMATS`.
    out : Path or str, optional
        Output folder; by default ``export`` in the run folder.
    frame : Path or str, optional
        A TOML file with a ``[frame]``; by default, the frame of the vehicle that carried out the run.
    replace : bool
        Overwrite the files of an earlier export.
    picture_format : {"png", "svg", "pdf"}, optional
        Of the pictures; by default PNG.
    width : {"screen", "column", "page"}, optional
        Of the pictures; by default for a screen.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        There is no such run or format, a file exists, or a format needs degrees and the domain has none.
    RecordError
        The record is damaged.
    """
    for name in formats:
        if name not in FORMATS:
            raise UnknownNameError.of("format", name, FORMATS)
    look = _look(formats, picture_format, width)
    recorded = read_run(run, None if frame is None else Path(frame))
    folder = recorded.folder / "export" if out is None else Path(out)
    content: dict[str, bytes] = {}
    for name in dict.fromkeys(formats):
        content |= _encode(recorded, name, look)
    there = [name for name in content if (folder / name).exists()]
    if there and not replace:
        raise InputError(
            f"{folder} already holds {', '.join(there)}",
            expected="a folder without these files",
            where="--out",
            fix="choose another folder with --out, or overwrite them with --replace",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, body in content.items():
            write_whole(folder / name, body)
    except OSError as error:
        raise InputError(f"{folder} can't be written: {error.strerror}", where="--out") from None
    return [folder / name for name in content]


def _encode(run: Recorded, name: str, look: dict[str, str]) -> dict[str, bytes]:
    """Return the files of a format by name."""
    if name in ("csv", "pictures"):
        return run.result.tables() if name == "csv" else run.result.pictures(**look)
    if name in _NEEDED:
        module, library, extra = _NEEDED[name]
        try:
            import_module(module)
        except ModuleNotFoundError:
            raise InputError(
                f"the format {name} needs {library}, which is not installed",
                expected=f"fieldbo with its extra {extra}",
                fix=f"python -m pip install 'fieldbo[{extra}]'",
            ) from None
    encode = getattr(import_module(f"fieldbo.runs.export.{_MODULES[name]}"), f"encode_{name}")
    files: dict[str, bytes] = encode(run)
    return files


def _look(formats: Sequence[str], picture_format: str | None, width: str | None) -> dict[str, str]:
    """Return format and width of the pictures; raise an `InputError` if they don't apply."""
    for option, value in (("--format", picture_format), ("--width", width)):
        if value is not None and "pictures" not in formats:
            raise InputError(
                f"{option} {value} was given, but no pictures are exported",
                expected=f"{option} together with the format pictures",
                where=option,
                fix="add pictures to the formats",
            )
    look = {"format": picture_format or "png", "width": width or "screen"}
    plot.check(look["format"], look["width"], ("--format", "--width"))
    return look
