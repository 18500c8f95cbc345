"""Writing pictures as PNG, SVG or PDF."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import IO, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from fieldbo.errors import UnknownNameError
from fieldbo.results.plot.choices import format_of
from fieldbo.results.plot.layout import settled, ticks_kept
from fieldbo.results.plot.widths import width_of

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
    with _WRITING, ticks_kept(figure), mpl.rc_context(_TEXT_STAYS_TEXT):
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
