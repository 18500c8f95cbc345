"""What commands that write pictures share: options for format and width, and writing the file."""

from __future__ import annotations

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
