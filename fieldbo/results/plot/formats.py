"""Writing pictures as PNG, SVG or PDF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from threading import Lock
from typing import IO, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.results.plot.layout import settled
from fieldbo.results.plot.widths import checked_width, width_of

FORMATS = ("png", "svg", "pdf")
"""File formats of pictures."""

DPI, PAPER_DPI = 150, 300

_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "fieldbo"},
    "svg": {"Creator": "fieldbo", "Date": None},
    "pdf": {"Creator": "fieldbo", "CreationDate": None},
}
_TEXT_STAYS_TEXT: dict[Any, Any] = {
    "pdf.fonttype": 42,  # TrueType, which publishers accept and editors can edit
    "svg.fonttype": "none",
    "svg.hashsalt": "fieldbo",  # the same names in every file
}
_WRITING = Lock()  # the settings above belong to the process


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


def save(figure: Figure, target: Path | str | IO[bytes], format: str | None = None) -> None:
    """Write a figure as PNG, SVG or PDF; the same figure gives the same bytes.

    PNG has 150 dots per inch at screen size and 300 at the widths of a paper. PDF embeds its fonts as
    TrueType. Text in SVG stays text, in DejaVu Sans or, where that is missing, another sans serif font.
    The first save fixes the layout, so that later ones do not move anything.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    target : path or binary file object
    format : {"png", "svg", "pdf"}, optional
        By default that of the target's extension, or else PNG.

    Raises
    ------
    InputError
        There is no such format, or it contradicts the target's extension.
    """
    kind = format_of(target, format)
    settled(figure)
    dpi = DPI if kind == "png" and width_of(figure) == "screen" else PAPER_DPI
    with _WRITING, mpl.rc_context(_TEXT_STAYS_TEXT):
        figure.savefig(target, format=kind, dpi=dpi, metadata=_METADATA[kind])


@contextmanager
def in_style(style: str | None, where: str | None = None) -> Iterator[None]:
    """Draw in a style sheet of matplotlib, a name or a file; None is the style in force.

    Raises
    ------
    UnknownNameError
        There is no such style.
    """
    from matplotlib import style as styles

    if style is None:
        yield
        return
    if style != "default" and style not in styles.library and not Path(style).is_file():
        raise UnknownNameError.of("style", style, ["default", *styles.available], where=where)
    with styles.context(style):
        yield
