"""``fieldbo export``: export a run to formats that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldbo.cli.pictures import Format

EXAMPLES = """
**Examples**

`fieldbo export bay-1 geotiff contours gpx` - for a GIS, to *runs/bay-1/export*

`fieldbo export lake-level-set-1 csv netcdf` - tables and maps

`fieldbo export runs/lake-level-set-1 geojson --frame boat.toml` - in degrees, for a world without a CRS

`fieldbo export lake-level-set-1 pictures --format pdf --width column` - for a paper

`fieldbo export lake-level-set-1 mcap --out logs --replace` - for Foxglove; can be run again as the run
progresses

**Formats**

`csv` - observations.csv, path.csv, curve.csv, ledger.csv, as in the run folder

`netcdf` - map.nc, and trajectory.nc with the readings along the path; CF names and units

`geotiff` - map.tif with mean, sd and probability, and class.tif, in the CRS of the world; needs
*fieldbo\\[geo]*

`contours` - contours.geojson, and classes.geojson with the area of each class, or optimum.geojson

`gpkg` - run.gpkg: everything in *contours* and *geojson*, in the CRS of the world; needs *fieldbo\\[geo]*

`geojson` - path.geojson, routes.geojson, readings.geojson, map.geojson: longitude, latitude, altitude

`gpx` - path.gpx: the track with times, the planned routes, and the readings as waypoints

`kml` - run.kml, for Google Earth: path, readings, contours and classes

`pictures` - path.png, map.png, curve.png, or in the --format *svg* or *pdf*; with --width *column* or
*page* for a paper

`mcap` - run.mcap: poses, orders, readings, battery and belief over time; needs *fieldbo\\[mcap]*

Formats for a GIS need a world with a CRS, or a frame.

**Frame** - the position of the domain on the ground, in the vehicle file or a file of its own

    [frame]
    origin = { latitude = 47.31, longitude = 8.58, altitude = 406 }
    bearing = 90         # direction of "along", degrees clockwise from north
    along = "along"      # a direction and the axis that points there; also: right, left, height
    depth = "depth"

Safe to use while the run is in progress, or after a crash; nothing is modified.
"""


def export(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, the *run.sqlite* in it, or the name of a run in *runs/*.", metavar="RUN"
        ),
    ],
    formats: Annotated[
        list[str],
        typer.Argument(
            help="One or more of geotiff, contours, gpkg, geojson, gpx, kml, netcdf, csv, pictures and mcap.",
            metavar="FORMAT",
        ),
    ],
    out: Annotated[
        str | None,  # not Path, which would take "" for the working directory
        typer.Option(
            help="Output folder; by default, the folder *export/* inside the run folder.", metavar="FOLDER"
        ),
    ] = None,
    frame: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file with a *[frame]*; by default, the frame of the run's vehicle.", metavar="FILE"
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite the files of an earlier export.")
    ] = False,
    format: Format = None,
    width: Annotated[
        str | None,
        typer.Option(help="Width of the pictures: *screen*, *column* or *page*.", metavar="WIDTH"),
    ] = None,
) -> None:
    """Export a run to formats that other programs read."""
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.terminal import console, says_compiling
    from fieldbo.errors import InputError
    from fieldbo.runs.export import export as export_run

    if out is not None and not out.strip():
        raise InputError(
            "the output folder is empty",
            expected="a folder; . is the working directory",
            where="--out",
            fix="name it, or leave the option out",
        )
    to = None if out is None else Path(out)
    with when_compiling(says_compiling(console)):
        for file in export_run(run, formats, to, frame, replace=replace, picture_format=format, width=width):
            typer.echo(file)
