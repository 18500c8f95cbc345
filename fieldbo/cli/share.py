"""``fieldbo export``, ``report``, ``plot`` and ``animate``: a run for others and for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldbo.cli.options import Format, Run, Style, Width, check_pictures, examples
from fieldbo.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@examples(
    """
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
)
def export(
    run: Run,
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
        str | None, typer.Option(help="Width of the pictures: *screen*, *column* or *page*.", metavar="WIDTH")
    ] = None,
) -> None:
    """Export a run to formats that other programs read."""
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.session import console, says_compiling
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


@examples(
    """
**Examples**

`fieldbo report lake-level-set-1` - writes *runs/lake-level-set-1/report.html*

`fieldbo report runs/lake-level-set-1 --out lake.html` - somewhere else

The file holds everything that it shows: it opens in any browser, offline. Safe to use while the run is in
progress, or after a crash: the record is only read, and an earlier page is replaced.
"""
)
def report(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write; by default *report.html* in the run folder.", metavar="FILE"),
    ] = None,
) -> None:
    """Write a web page of a run: answer, map over time, costs, readings, and why each order was chosen."""
    from fieldbo._numerics.compiled import when_compiling
    from fieldbo.cli.session import console, says_compiling
    from fieldbo.pages.report import write_report

    with when_compiling(says_compiling(console)):
        typer.echo(write_report(run, out))


RUN_KINDS = ("path", "map", "curve", "ledger", "readings")
TABLE_KINDS = ("comparison", "profile")


@examples(
    """
**Examples**

`fieldbo plot lake-level-set-1 ledger` - to *lake-level-set-1-ledger.png*

`fieldbo plot lake-level-set-1 map --layer sd --format pdf --width column` - for a paper

`fieldbo plot lake-level-set-1 path --style dark_background --out slide.png` - for a slide

`fieldbo plot lake.csv profile --target 0.9 --target 0.95` - performance profiles of a comparison

**Pictures of a run**

`path`, `map`, `curve` - those of the run folder; with --layer, one layer of the map: *mean*, *sd*,
*probability*, *classes* (of a level set), *bound* (of an optimum), *failure* (where readings fail in some
places), *truth* or *error*

`ledger` - planned and real cost of each order, and in total

`readings` - the readings in order, with their noise

**Pictures of a comparison** - of the table that *fieldbo compare* wrote

`comparison` - mean scores against cost

`profile` - the fraction of runs that reach a --target within a factor of the lowest cost

A run may be in progress, or have crashed; nothing in its folder is modified.
"""
)
def plot(
    source: Annotated[
        Path,
        typer.Argument(
            help="A run folder, or the name of a run in *runs/*; or the *.csv* of a comparison.",
            metavar="RUN",
        ),
    ],
    kind: Annotated[
        str,
        typer.Argument(
            help="*path*, *map*, *curve*, *ledger* or *readings*; of a comparison *comparison* or *profile*.",
            metavar="KIND",
        ),
    ],
    layer: Annotated[
        str | None, typer.Option(help="Draw this layer of the map alone.", metavar="LAYER")
    ] = None,
    target: Annotated[list[float] | None, typer.Option(help="Target score of a profile; repeatable.")] = None,
    band: Annotated[
        str | None,
        typer.Option(
            help="Band of a comparison: *standard-error*, or *interval* for the central 90% of the runs.",
            metavar="BAND",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Picture to write, in the format of its extension; by default *RUN-KIND.png* in the current "
            "folder.",
            metavar="FILE",
        ),
    ] = None,
    format: Format = None,
    width: Width = "screen",
    style: Style = None,
) -> None:
    """Draw one picture of a run, or of a comparison."""
    import io

    from fieldbo.mission.files import write_output
    from fieldbo.results import plot as pictures
    from fieldbo.results.plot.figures import in_style

    check_pictures(format, width)
    extension = pictures.format_of(out or "", format, "--out")
    table = source.suffix.lower() == ".csv"
    kinds = TABLE_KINDS if table else RUN_KINDS
    if kind not in kinds:
        raise UnknownNameError.of(
            "picture of a comparison" if table else "picture of a run", kind, kinds, where="KIND"
        )
    _check_options(kind, {"--layer": layer, "--target": target, "--band": band})
    stem = source.stem if table else source.resolve().name if source.is_dir() else source.name
    if not table and source.is_file():
        stem = source.resolve().parent.name
    file, content = out or Path(f"{stem}-{layer or kind}.{extension}"), io.BytesIO()
    with in_style(style, "--style"):
        figure = (
            _draw_table(source, kind, target or [], band, width)
            if table
            else _draw_run(source, kind, layer, width)
        )
        pictures.save(figure, content, extension)
    write_output(file, content.getvalue())
    typer.echo(f"picture in {file}")


def _check_options(kind: str, given: dict[str, object]) -> None:
    belongs = {"--layer": "map", "--target": "profile", "--band": "comparison"}
    for option, value in given.items():
        if value and kind != belongs[option]:
            raise InputError(
                f"{option} was given for the picture {kind}",
                expected=f"{option} with the picture {belongs[option]}",
                where=option,
            )
    if kind == "profile" and not given["--target"]:
        raise InputError(
            "no target was given",
            expected="the score that the missions are to reach: an F1, or a regret",
            where="--target",
            fix="add for example --target 0.9",
        )


def _draw_run(run: Path, kind: str, layer: str | None, width: str) -> Figure:
    from fieldbo.results import plot as pictures
    from fieldbo.runs.replay import load_run

    result = load_run(run).result()
    if layer is not None:
        return pictures.layer_picture(result, layer, width)
    drawn: Figure = getattr(pictures, f"{kind}_picture")(result, width)
    return drawn


def _draw_table(table: Path, kind: str, targets: list[float], band: str | None, width: str) -> Figure:
    from fieldbo.runs.comparison import read_table
    from fieldbo.runs.comparison_scores import check_target, comparison_figure, profile_figure, score_in

    rows = read_table(table)
    if not any(row["row"] == "run" for row in rows):
        raise InputError(
            f"{table} holds no finished run", expected="a table that fieldbo compare wrote", where="RUN"
        )
    score = score_in(rows)
    for target in targets:
        check_target(target, score)
    if kind == "profile":
        return profile_figure(rows, targets, score, width)
    return comparison_figure(rows, score, width, band or "standard-error")


@examples(
    """
**Examples**

`fieldbo animate lake-level-set-1` - to *lake-level-set-1.mp4*

`fieldbo animate lake-level-set-1 --format gif --every 2 --fps 5 --out talk.gif`

The map shows the posterior mean with the path so far, its readings and the vehicle, and the estimated edge
of a level set or the reported optimum; below, the scores against cost. A run may be in progress, or have
crashed; nothing in its folder is modified.

MP4 needs *fieldbo\\[film]*; without it, the film is a GIF.
"""
)
def animate(
    run: Run,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="*mp4* or *gif*; by default that of the extension of --out, or else *mp4* if it can be "
            "written.",
            metavar="FORMAT",
        ),
    ] = None,
    fps: Annotated[float, typer.Option(help="Moments per second.")] = 8.0,
    every: Annotated[int, typer.Option(help="Show every so many steps.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Film to write; by default *RUN.mp4* in the current folder.", metavar="FILE"),
    ] = None,
    style: Style = None,
) -> None:
    """Show a run as a film: belief, path and scores, step by step."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from fieldbo.cli.session import console
    from fieldbo.results.plot.figures import in_style
    from fieldbo.runs.film import animate as write_film
    from fieldbo.runs.film import checked_format

    out_to, columns = console(), (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    if checked_format(out or "", format) == "gif" and format is None and (out is None or not out.suffix):
        out_to.print(
            "imageio-ffmpeg is not installed, so the film is a GIF: pip install 'fieldbo[film]'", markup=False
        )
    with in_style(style, "--style"), Progress(*columns, console=out_to, transient=True) as progress:
        line = progress.add_task("replaying", total=None)
        file = write_film(
            run,
            out,
            format=format,
            fps=fps,
            every=every,
            on_progress=lambda doing, done, total: progress.update(
                line, description=doing, completed=done, total=total
            ),
        )
    typer.echo(f"film in {file}")
