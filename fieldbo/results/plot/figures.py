"""Figures: common styles, colours, titles and legends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from string import ascii_lowercase
from textwrap import fill
from threading import Lock
from typing import IO, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from fieldbo._numerics.arrays import Array
from fieldbo.errors import UnknownNameError
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.choices import checked_width, format_of
from fieldbo.results.plot.layout import PlainNumbers, settled, ticks_kept
from fieldbo.results.plot.style import (
    Sheet,
    font_size,
    letter_size,
    line_width,
    paper_of,
    shade,
    shrink,
    width_of,
)
from fieldbo.results.words import question_text


def new_figure(
    width: float, height: float, on: str = "screen", *, tall: float | None = None, ratio: float | None = None
) -> Sheet:
    """Return an empty figure of a size in inches.

    Parameters
    ----------
    width, height : float
        Size on the screen.
    on : {"screen", "column", "page"}
        For a paper, the figure is as wide as a column or the page.
    tall : float, optional
        Height on paper; by default in proportion, with space for letters that are larger relative to it.
    ratio : float, optional
        Height of maps over their width: on paper, the figure becomes as high as they need it.
    """
    sheet = Sheet(figsize=(width, height), dpi=DPI, layout="constrained")
    sheet.width, sheet.ratio = checked_width(on), ratio
    if (paper := paper_of(sheet)) is not None:
        missing = 0.3 if on == "column" else 0.0
        sheet.set_size_inches(paper.inches, tall or paper.inches * height / width + missing)
        sheet.set_layout_engine("constrained", w_pad=0.03, h_pad=0.03)
    return sheet


def finish(
    figure: Figure, title: str, panels: Sequence[Axes] = (), over: Axes | None = None, *, legend: bool = True
) -> Figure:
    """Add title and legend, reduce sizes to the width of the figure, and fix its layout.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    title : str
        Left out in a column; only its first line is written on a page, because papers have captions.
    panels : sequence of Axes
        Get the letters (a), (b), ... on paper.
    over : Axes, optional
        The axes that carry the title on a screen, instead of the figure.
    legend : bool
        Add a legend below the axes.
    """
    if width_of(figure) == "screen" and over is not None:
        over.set_title(title)
    elif title and width_of(figure) != "column":
        figure.suptitle(title if paper_of(figure) is None else title.split("\n", maxsplit=1)[0])
    if paper_of(figure) is not None:
        for letter, ax in zip(ascii_lowercase, panels if len(panels) > 1 else (), strict=False):
            ax.title.set(text=f"({letter}) {ax.get_title()}".rstrip(), x=0.0, horizontalalignment="left")
    shrink(figure)
    if legend and (below := legend_below(figure)) is not None and paper_of(figure) is not None:
        figure.set_figheight(figure.get_figheight() + below.get_window_extent().height / figure.dpi)
    settled(figure)
    return figure


def opened(ax: Axes) -> None:
    """Remove the upper and right spines, and draw a faint grid unless the style has one of its own."""
    ax.spines[["top", "right"]].set_visible(False)
    if not mpl.rcParams["axes.grid"]:
        ax.grid(color=shade(0.1), linewidth=line_width(0.6))
    ax.set_axisbelow(True)


def folded(ax: Axes, text: str, letters: int) -> str:
    """Return a text in lines of at most so many letters, unless it is drawn for a screen."""
    return text if paper_of(ax) is None else fill(text, letters, break_long_words=False)


def floor_of(regrets: Array) -> float:
    """Return the lower end of a log axis of regrets.

    Half of the least positive regret, or a millionth of the largest, whichever is larger.

    Examples
    --------
    >>> floor_of(np.array([1.0, 0.25, 0.0]))
    0.125
    >>> floor_of(np.zeros(3))
    0.5
    """
    positive = regrets[np.isfinite(regrets) & (regrets > 0)]
    return float(max(0.5 * positive.min(), 1e-6 * positive.max())) if len(positive) else 0.5


def plain_log(ax: Axes) -> None:
    """Set a log scale on the y axis, with plain numbers as tick labels."""
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(PlainNumbers())
    ax.yaxis.set_minor_formatter(PlainNumbers(minor_thresholds=(2, 0.4)))


def cost_label(outcome: Outcome) -> str:
    """Return the label of a cost axis."""
    mission, unit = outcome.mission, outcome.mission.world.cost_unit
    each, number = sum(c.battery for c in mission.vehicles), mission.vehicles[0].batteries
    batteries = "battery" if number == 1 else f"{number} batteries of"
    return f"cost ({unit}); {batteries}{':' if number == 1 else ''} {each:g} {unit}"


def headline(outcome: Outcome) -> str:
    """Return the title of the mission and its question."""
    mission = outcome.mission
    question = question_text(mission.question, mission.world.quantity)
    return f"{mission.title}: {question}" if mission.title == mission.name else f"{mission.title}\n{question}"


def legend_below(figure: Figure) -> Legend | None:
    """Add a legend below the axes that names each label once."""
    named: dict[str, Any] = {}
    legend: Legend | None = None
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    on_paper = paper_of(figure) is not None
    for columns in range(len(named) if len(named) < 5 else (len(named) + 1) // 2, 0, -1):
        legend = figure.legend(
            list(named.values()),
            list(named),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            labelspacing=0.4 if on_paper else 0.8,
            fontsize=font_size(figure, letter_size(9.0 if on_paper else 10.0)),
            columnspacing=1.2 if on_paper else 2.0,
            handlelength=1.6 if on_paper else 2.0,
        )
        box = legend.get_tightbbox()
        if columns == 1 or box is None or box.width <= figure.bbox.width:
            break
        legend.remove()  # too wide: try fewer columns
    return legend


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
