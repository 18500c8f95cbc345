"""What pictures share: styles, titles, legends, files; and marks of readings, ends of a path, and optima."""

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
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patheffects import AbstractPathEffect, withStroke

from fieldbo._numerics.arrays import Array
from fieldbo.belief import confidence
from fieldbo.belief.confidence import AnySurface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import UnknownNameError
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.metrics import SURE
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.choices import checked_width, format_of
from fieldbo.results.plot.layout import NUMBER, PlainNumbers, settled, ticks_kept
from fieldbo.results.plot.style import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    YELLOW,
    Look,
    Sheet,
    cased,
    font_size,
    hue,
    letter_size,
    line_width,
    mark_size,
    paper_of,
    shade,
    shrink,
    width_of,
)
from fieldbo.results.truth import Place
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


_HALO: list[AbstractPathEffect] = [withStroke(linewidth=2.0, foreground="white")]
_SHAPES = "oDv^sP"
_MOST_VECTORS = 1000  # dots; more would make large files and slow viewers
_MOST_NUMBERS = {"column": 6}
_MARKS: dict[str, Look] = {
    # larger than any reading and drawn below it, so that a reading taken there stays visible
    "start": {"marker": "^", "color": SKY, "markersize": 9, "zorder": 3.6},
    "end": {"marker": "s", "color": ORANGE, "markersize": 12, "zorder": 3.5},  # may enclose the start
    "vehicle": {"marker": "D", "color": ORANGE, "markersize": 10, "zorder": 6.5},
    "home": {  # a frame, because the vehicle mostly starts and ends there
        "marker": "s",
        "color": GREEN,
        "markerfacecolor": "none",
        "markersize": 16,
        "markeredgewidth": 2.0,
        "markeredgecolor": GREEN,
        "path_effects": [cased("black", 1.8)],
        "zorder": 3.4,
    },
    "true optimum": {"marker": "*", "color": YELLOW, "markersize": 15},
    "reported optimum": {  # a ring that may enclose the star
        "marker": "o",
        "color": PINK,
        "markerfacecolor": "none",
        "markersize": 14,
        "markeredgewidth": 2.0,
        "markeredgecolor": PINK,
        "path_effects": [cased("black", 1.8)],
    },
    "best measured": {  # a larger ring than a reading's dot, and dotted where the reported one is whole
        "marker": "D",
        "color": SKY,
        "markerfacecolor": "none",
        "markersize": 11,
        "markeredgewidth": 2.0,
        "markeredgecolor": SKY,
        "path_effects": [cased("black", 1.8)],
    },
}
_MARKS["recommended play"] = _MARKS["reported optimum"]


def earlier(ax: Axes, outcome: Outcome, size: float = 3.5) -> dict[str, Artist]:
    """Draw the readings with which the mission began; over one axis, at their values."""
    known = outcome.mission.earlier
    if not len(known.values):
        return {}
    y = known.values if known.sites.shape[1] == 1 else known.sites[:, 1]
    look: Look = {
        "color": shade(0.55),
        "markersize": mark_size(size),
        "markerfacecolor": "none",
        "zorder": 3.3,
    }
    (drawn,) = ax.plot(known.sites[:, 0], y, "D", label="earlier reading", **look)
    return {"earlier readings": drawn}


def readings(ax: Axes, x: Array, y: Array, outcome: Outcome, *, numbered: bool = True) -> dict[str, Artist]:
    """Draw the readings at coordinates (n,), at most twelve of them numbered if wished.

    Each sensor level has its own shape, larger for less noise. Readings on the way are small dots without a
    number. Readings that the model left out are crossed.
    Of several numbers at one place only the first is written; the layout of the figure moves or removes those
    that would cover another one.
    """
    levels, sensor, passing = outcome.levels, outcome.mission.world.sensor, outcome.on_the_way
    drawn: dict[str, Artist] = {}
    if passing.any():
        drawn["readings on the way"] = _dots(ax, x[passing], y[passing])
    at_sites = np.flatnonzero(~passing)
    crowd = float(np.clip(np.sqrt(100 / (len(at_sites) + 1)), 0.55, 1.0)) if sensor.settings == 1 else 1.0
    dots: Look = {"color": "white", "markeredgecolor": "black", "markeredgewidth": 0.8, "zorder": 4}
    for level, (label, size) in enumerate(_settings(sensor, numbered=numbered)):
        here = (levels == level) & ~passing
        name = "readings" if sensor.settings == 1 else f"readings at level {level}"
        look = dots | {"marker": _SHAPES[level % len(_SHAPES)], "markersize": mark_size(crowd * size)}
        (drawn[name],) = ax.plot(x[here], y[here], linestyle="none", label=label, **look)
    if not (believed := outcome.believed).all():
        cross: Look = {
            "color": RED,
            "markersize": mark_size(9),
            "markeredgewidth": 2.0,
            "path_effects": _HALO,
        }
        cross |= {"label": "reading left out by the model", "zorder": 5.5}
        (drawn["left out"],) = ax.plot(x[~believed], y[~believed], "x", **cross)
    if not numbered:
        return drawn
    most = _MOST_NUMBERS.get(width_of(ax), 12)
    step = next(k * 10**e for e in range(9) for k in (1, 2, 5) if len(at_sites) <= most * k * 10**e)
    numbers: dict[tuple[float, float], int] = {}
    for n in range(step, len(at_sites) + 1, step):
        numbers.setdefault((float(x[at_sites[n - 1]]), float(y[at_sites[n - 1]])), n)
    for at, n in numbers.items():
        _number(ax, n, at)
    return drawn


def _dots(ax: Axes, x: Array, y: Array) -> Artist:
    look: Look = {"color": "black", "markersize": mark_size(0.9), "markeredgewidth": 0.0, "zorder": 3.2}
    (dots,) = ax.plot(x, y, "o", label="reading on the way", rasterized=len(x) > _MOST_VECTORS, **look)
    return dots


def _number(ax: Axes, n: int, at: tuple[float, float]) -> None:
    look: Look = {"fontsize": letter_size(8), "color": "black", "path_effects": _HALO, "zorder": 6}
    look["gid"] = NUMBER
    ax.annotate(str(n), at, (4, 4), textcoords="offset points", va="bottom", annotation_clip=False, **look)


def _settings(sensor: Sensor, *, numbered: bool) -> list[tuple[str, float]]:
    if sensor.settings == 1:
        return [("reading (numbered in order)" if numbered else "reading", 4.5)]
    variances = [level.variance for level in sensor.levels]
    rank = np.argsort(np.argsort(np.negative(variances), kind="stable"), kind="stable")  # 0: the coarsest
    sizes = 6.0 + 2.5 * rank / (len(rank) - 1)
    return [
        (f"reading at level {k} (noise sd {np.sqrt(v):.2g})", float(size))
        for k, (v, size) in enumerate(zip(variances, sizes, strict=True))
    ]


def mark(ax: Axes, at: Array, label: str) -> Line2D:
    """Mark a place (2,), with one of the looks above by its name, such as "start" or "true optimum"."""
    look: Look = {"linestyle": "none", "markeredgecolor": "black", "clip_on": False, "zorder": 5}
    look |= _MARKS[label]
    (drawn,) = ax.plot([at[0]], [at[1]], label=label, **look)
    drawn.set_markersize(mark_size(drawn.get_markersize()))
    return drawn


def optimum_marks(ax: Axes, answer: OptimumAnswer, measured: Place | None = None) -> dict[str, Line2D]:
    """Mark the reported optimum on a map, the true one if known, and where more was measured, if anywhere.

    Return the marks by name.
    """
    drawn = {}
    if answer.optimum is not None:
        drawn["true optimum"] = mark(ax, answer.optimum.point, "true optimum")
    if measured is not None:
        drawn["best measured"] = mark(ax, measured.point, "best measured")
    return drawn | {"reported optimum": mark(ax, answer.reported.point, "reported optimum")}


def moments(outcome: Outcome) -> tuple[Array, Array]:
    """Return posterior mean and standard deviation (N,), in the quantity's unit."""
    return confidence.moments(outcome.surface, outcome.scale)


def interval95(surface: AnySurface, scale: ValueScale) -> tuple[Array, Array]:
    """Return both ends (N,) of the belief's central 95%, in the quantity's unit; quantiles under a log."""
    user = scale.to_user
    ends = user(surface.mean - SURE * surface.sd), user(surface.mean + SURE * surface.sd)
    return np.minimum(*ends), np.maximum(*ends)  # the model of a minimum has the opposite sign


def line(ax: Axes, x: Array, y: Array, **look: Any) -> Artist:
    """Draw y (N,) against x (N,) in order of x."""
    order = np.argsort(x, kind="stable")
    (drawn,) = ax.plot(x[order], y[order], **look)
    return drawn


def level(ax: Axes, threshold: float) -> Artist:
    """Draw a threshold as a horizontal line."""
    return ax.axhline(
        threshold,
        color=hue(RED),
        linewidth=line_width(1.2),
        linestyle="--",
        label=f"threshold {threshold:.4g}",
    )


def profile(ax: Axes, outcome: Outcome, x: Array, **look: Any) -> dict[str, Artist]:
    """Draw posterior mean, 95% band, threshold and truth against x (N,)."""
    drawn = dict[str, Artist]()
    order = np.argsort(x, kind="stable")
    low, high = (end[order] for end in interval95(outcome.surface, outcome.scale))
    band: Look = {"color": hue(BLUE), "alpha": 0.2, "linewidth": 0, "label": "95% interval"}
    drawn["interval"] = ax.fill_between(x[order], low, high, **band)
    mean: Look = {"color": hue(BLUE), "linewidth": line_width(1.8), "label": "posterior mean"}
    drawn["mean"] = line(ax, x, moments(outcome)[0], **mean)
    if outcome.truth is not None:
        true: Look = {"color": shade(1.0), "linewidth": line_width(1.2), "label": "true field"}
        drawn["truth"] = line(ax, x, outcome.truth, **true, **look)
    if isinstance(outcome.answer, LevelSetAnswer):
        drawn["threshold"] = level(ax, outcome.answer.user_threshold)
    ax.set_ylabel(outcome.mission.world.quantity.label)
    opened(ax)
    return drawn


def optima(ax: Axes, answer: OptimumAnswer, measured: Place | None = None) -> dict[str, Artist]:
    """Mark on a profile along one axis what `optimum_marks` does on a map."""
    drawn = dict[str, Artist]()
    if answer.optimum is not None:
        place = np.array([answer.optimum.point[0], answer.optimum.value])
        drawn["true optimum"] = mark(ax, place, "true optimum")
    if measured is not None:
        drawn["best measured"] = mark(ax, np.array([measured.point[0], measured.value]), "best measured")
    place = np.array([answer.reported.point[0], answer.reported_value])
    return drawn | {"reported optimum": mark(ax, place, "reported optimum")}
