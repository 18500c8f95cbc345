"""Formats and widths of pictures: which there are, without the libraries that draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO

from fieldbo.errors import InputError, UnknownNameError

FORMATS = ("png", "svg", "pdf")
"""File formats of pictures."""


@dataclass(frozen=True)
class Paper:
    """Width of a picture on paper, and its sizes relative to those of the screen.

    Attributes
    ----------
    inches : float
    font, line, mark : float
        Factors for the sizes of letters, lines and marks.
    """

    inches: float
    font: float
    line: float
    mark: float


WIDTHS: dict[str, Paper | None] = {
    "screen": None,
    "column": Paper(3.5, 0.8, 0.65, 0.6),
    "page": Paper(7.2, 0.8, 0.75, 0.75),
}
"""Widths of pictures: as drawn for a screen, one column (89 mm), and two columns (183 mm)."""


def checked_width(name: str, where: str | None = None) -> str:
    """Return the name of a width; raise an `UnknownNameError` if there is none of that name."""
    if name not in WIDTHS:
        raise UnknownNameError.of("picture width", name, WIDTHS, where=where)
    return name


def check(format: str | None, width: str, where: tuple[str | None, str | None] = (None, None)) -> None:
    """Raise an `UnknownNameError` if there is no such format or width.

    Parameters
    ----------
    format : str, optional
    width : str
    where : tuple of str
        The options that hold them.
    """
    if format is not None and format not in FORMATS:
        raise UnknownNameError.of("picture format", format, FORMATS, where=where[0])
    checked_width(width, where[1])


def format_of(
    target: Path | str | IO[bytes],
    format: str | None = None,
    where: str | None = None,
    formats: Sequence[str] = FORMATS,
) -> str:
    """Return the format in which a file is written: `format`, or that of its extension.

    By default it is the first of the `formats`, which are those of pictures.

    Raises
    ------
    InputError
        There is no such format, or it contradicts the extension.

    Examples
    --------
    >>> format_of("lake.pdf"), format_of("lake", "svg"), format_of("lake")
    ('pdf', 'svg', 'png')
    """
    if format is not None and format not in formats:
        raise UnknownNameError.of("format", format, formats, where=where)
    suffix = PurePath(target).suffix if isinstance(target, str | Path) else ""
    extension = suffix.removeprefix(".").lower()
    if extension and extension not in formats:
        raise InputError(
            f"{target} has the extension {suffix}",
            expected=f"one of {', '.join('.' + name for name in formats)}",
            where=where,
        )
    if extension and format and extension != format:
        raise InputError(
            f"{target} has the extension {suffix}, but the format is {format}",
            expected="an extension and a format that agree",
            where=where,
            fix=f"name it {PurePath(str(target)).with_suffix('.' + format)}, or leave out the format",
        )
    return format or extension or formats[0]
