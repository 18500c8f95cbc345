"""What commands that write pictures share: options for format and width, and writing the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Format = Annotated[
    str | None,
    typer.Option(
        "--format", help="Format of the pictures: *png*, *svg* or *pdf*; by default *png*.", metavar="FORMAT"
    ),
]
Width = Annotated[
    str,
    typer.Option(
        "--width",
        help="Width of the pictures: *screen*, or *column* (89 mm) or *page* (183 mm) for a paper.",
        metavar="WIDTH",
    ),
]


def checked(format: str | None, width: str) -> tuple[str | None, str]:
    """Return format and width; raise an `InputError` if there is no such format or width."""
    from fieldbo.results import plot

    plot.check(format, width, ("--format", "--width"))
    return format, width


def written(file: Path, content: bytes) -> None:
    """Write a picture or a film as a whole; raise an `InputError` if it can't be written."""
    from fieldbo.errors import InputError
    from fieldbo.mission.files import write_whole

    try:
        write_whole(file, content)
    except OSError as error:
        raise InputError(f"{file} can't be written: {error.strerror}", where="--out") from None
