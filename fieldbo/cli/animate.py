"""``fieldbo animate``: a run as a film."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
**Examples**

`fieldbo animate lake-level-set-1` - to *lake-level-set-1.mp4*

`fieldbo animate lake-level-set-1 --format gif --every 2 --fps 5 --out talk.gif`

The map shows the posterior mean with the path so far, its readings and the vehicle, and the estimated edge
of a level set or the reported optimum; below, the scores against cost. A run may be in progress, or have
crashed; nothing in its folder is modified.

MP4 needs *fieldbo\\[film]*; without it, the film is a GIF.
"""


def animate(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, the *run.sqlite* in it, or the name of a run in *runs/*.", metavar="RUN"
        ),
    ],
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
    style: Annotated[
        str | None,
        typer.Option(help="Style sheet of matplotlib: a name, or a file.", metavar="STYLE"),
    ] = None,
) -> None:
    """Show a run as a film: belief, path and scores, step by step."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from fieldbo.cli.terminal import console
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
