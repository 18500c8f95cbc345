"""``fieldbo plot``: one picture of a run, or of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldbo.cli.pictures import Format, Width

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = """
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

RUN_KINDS = ("path", "map", "curve", "ledger", "readings")
TABLE_KINDS = ("comparison", "profile")


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
    style: Annotated[
        str | None,
        typer.Option(help="Style sheet of matplotlib: a name, or a file.", metavar="STYLE"),
    ] = None,
) -> None:
    """Draw one picture of a run, or of a comparison."""
    import io

    from fieldbo.cli.pictures import checked
    from fieldbo.errors import UnknownNameError
    from fieldbo.mission.files import write_output
    from fieldbo.results import plot as pictures
    from fieldbo.results.plot.figures import in_style

    checked(format, width)
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
            _of_table(source, kind, target or [], band, width)
            if table
            else _of_run(source, kind, layer, width)
        )
        pictures.save(figure, content, extension)
    write_output(file, content.getvalue())
    typer.echo(f"picture in {file}")


def _check_options(kind: str, given: dict[str, object]) -> None:
    """Raise an `InputError` for an option that the kind of picture does not have."""
    from fieldbo.errors import InputError

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


def _of_run(run: Path, kind: str, layer: str | None, width: str) -> Figure:
    from fieldbo.results import plot as pictures
    from fieldbo.runs.replay import load_run

    result = load_run(run).result()
    if layer is not None:
        return pictures.layer_picture(result, layer, width)
    drawn: Figure = getattr(pictures, f"{kind}_picture")(result, width)
    return drawn


def _of_table(table: Path, kind: str, targets: list[float], band: str | None, width: str) -> Figure:
    from fieldbo.errors import InputError
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
