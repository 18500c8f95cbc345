"""Layout of a figure: space for its labels, a height that fits, and labels that do not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, Tick
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.offsetbox import AnchoredOffsetbox
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator, LogFormatter, NullFormatter
from matplotlib.transforms import Bbox

from fieldbo._numerics.arrays import Array
from fieldbo.results.plot.style import Sheet, all_axes, paper_of

NUMBER, NAME = "number", "name"
"""Group ids of the numbers of readings and the names of obstacles, around which numbers are moved."""

_PASSES = 8
_SETTLED = 1e-3  # fraction of the figure
_TALLEST = 9.3  # inches: a page of a paper
_NEAR = 0.02  # inches
_RATIOS = (0.2, 1.2)  # a map that is higher or lower does not take all its space
_SHARE = 0.75  # of a figure's width, taken by its axes
_CORNERS = ((1, 1), (-1, 1), (1, -1), (-1, -1))
_CORNER_NAMES = ("upper left", "lower left", "lower right", "upper right")
_CLEAR = 8.0  # pixels around a scale


def settled(figure: Figure) -> None:
    """Fix the layout of a figure; nothing moves from now on."""
    if isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine | None):
        return
    if paper_of(figure) is None:
        _passes(figure)
        if _wrap(figure, {}):
            _passes(figure)
    else:
        _fit_height(figure)
    # "none" leaves a placeholder, with which saving draws twice; None obeys settings of the whole process.
    figure._layout_engine = None  # type: ignore[attr-defined]
    for ax in figure.axes:
        _thin_log_labels(ax)
    for ax in figure.axes:
        _place_scale(ax)
        _place_numbers(ax)


@contextmanager
def ticks_kept(figure: Figure) -> Iterator[None]:
    """Work out the ticks of an axis when its length or its limits change, not each time that one looks.

    Nothing else may change in the block; this saves a third of the time of a picture. The method belongs to
    matplotlib alone: should it go, pictures take longer again.
    """
    axes = (axis for ax in all_axes(figure) for axis in (ax.xaxis, ax.yaxis))
    every: list[Any] = [axis for axis in axes if hasattr(axis, "_update_ticks")]
    for axis in every:
        axis._update_ticks = _Ticks(axis)
    try:
        yield
    finally:
        for axis in every:
            del axis._update_ticks


class _Ticks:
    """The latest ticks of an axis."""

    def __init__(self, axis: Any) -> None:
        self._axis, self._make = axis, axis._update_ticks
        self._made_for: tuple[float, ...] = ()
        self._ticks: list[Tick] = []

    def __call__(self) -> list[Tick]:
        wanted = (*self._axis.get_view_interval(), *self._axis.axes.bbox.bounds)
        if wanted != self._made_for:
            self._ticks, self._made_for = self._make(), wanted
        return self._ticks


@contextmanager
def _fill(figure: Figure) -> Iterator[None]:
    """Let axes that keep their aspect fill their space for now, to measure labels where it is tight."""
    aspects = {ax: ax.get_aspect() for ax in figure.axes}
    for ax in aspects:
        ax.set_aspect("auto")
    yield
    for ax, aspect in aspects.items():
        ax.set_aspect(aspect)


def _passes(figure: Figure) -> None:
    """Lay out a figure without drawing it.

    On paper, repeat until nothing moves. On a screen, one pass is exact to a pixel or two.
    """
    engine, placed = figure.get_layout_engine(), np.empty(0)
    assert engine is not None
    with _fill(figure), ticks_kept(figure):
        for _ in range(1 if paper_of(figure) is None else _PASSES):
            engine.execute(figure)
            before, placed = placed, np.array([ax.get_position(original=True).bounds for ax in figure.axes])
            if before.shape == placed.shape and np.allclose(before, placed, rtol=0, atol=_SETTLED):
                break
    for ax in all_axes(figure):  # as drawing would
        locate = ax.get_axes_locator()
        ax.apply_aspect(locate(ax, None) if locate is not None else None)  # type: ignore[arg-type]


def _fit_height(figure: Figure) -> None:
    """Lay out a figure whose width is given, as high as the axes that keep their aspect need it."""
    keeping = [ax for ax in figure.axes if ax.get_aspect() != "auto"]
    ratio = figure.ratio if isinstance(figure, Sheet) else None
    if ratio is not None:
        figure.set_figheight(_TALLEST)
    whole: dict[Text, str] = {}
    with _fill(figure):
        _wrap(figure, whole, estimated=True)
        for _ in range(6):
            _passes(figure)
            broken, missing = _wrap(figure, whole), 0.0
            if ratio is not None:
                missing = _missing(figure, _ratio(keeping[0]) if keeping else ratio)
            if not broken and abs(missing) < _NEAR:
                break
            figure.set_figheight(float(np.clip(figure.get_figheight() + missing, 1.0, _TALLEST)))
        for ax in keeping:
            for axis in (ax.xaxis, ax.yaxis):  # other ticks would have labels for which there is no space
                axis.set_major_locator(FixedLocator(axis.get_majorticklocs().tolist()))
    for ax in keeping:
        ax.apply_aspect()


def _ratio(ax: Axes) -> float:
    """Return height over width of a map with the same scale on both sides."""
    (down, up), (left, right) = ax.get_ylim(), ax.get_xlim()
    return float(np.clip(abs((up - down) / (right - left)), *_RATIOS))


def _missing(figure: Figure, ratio: float) -> float:
    """Return by how many inches a figure is too low for maps of a height over width."""
    width, height = figure.get_size_inches()
    ax = figure.axes[0]
    place, grid = ax.get_position(original=True), ax.get_subplotspec()
    rows = 1 if grid is None else grid.get_gridspec().nrows
    return float(rows * (ratio * place.width * width - place.height * height))


# -- labels that are too long ------------------------------------------------------------------------------


def _wrap(figure: Figure, whole: dict[Text, str], *, estimated: bool = False) -> bool:
    """Break titles and labels that are longer than their axes; return True if that changed any.

    `whole` keeps what they were. Before there is a layout, which very long ones would squeeze, the lengths of
    axes are `estimated`.
    """
    broken = False
    for ax in all_axes(figure):
        box = Axes.get_window_extent(ax)
        beside = max((Axes.get_window_extent(c).x1 for c in ax.child_axes), default=box.x1)
        across, along = max(beside, box.x1) - box.x0, box.width
        if estimated:
            grid = ax.get_subplotspec()
            columns = 1 if grid is None else grid.get_topmost_subplotspec().get_gridspec().ncols
            across = along = _SHARE * figure.bbox.width / columns
        broken |= _break(ax.title, whole, across)
        broken |= _break(ax.xaxis.label, whole, along)
        if ax.yaxis.label.get_rotation() == 90 and not estimated:
            broken |= _break(ax.yaxis.label, whole, box.height, upright=True)
    suptitle = figure._suptitle  # type: ignore[attr-defined]
    if suptitle is not None:
        broken |= _break(suptitle, whole, 0.98 * figure.bbox.width)
    return broken


def _break(text: Text, whole: dict[Text, str], room: float, *, upright: bool = False) -> bool:
    """Break a text into lines that fit into a length in pixels; return True if that changed it."""

    def length(words: str) -> float:
        text.set_text(words)
        box = text.get_window_extent()
        return box.height if upright else box.width

    before, lines = text.get_text(), list[str]()
    for paragraph in whole.setdefault(text, before).split("\n"):
        line, *words = paragraph.split(" ")
        for word in words:
            if length(f"{line} {word}") <= room:
                line = f"{line} {word}"
            else:
                lines.append(line)
                line = word
        lines.append(line)
    text.set_text("\n".join(lines))
    return text.get_text() != before


# -- labels that would overlap ------------------------------------------------------------------------------


class PlainNumbers(LogFormatter):
    """Tick labels such as 0.2 in place of 2e-01, of the decades and some of the numbers between them."""

    kept: tuple[int, ...] = tuple(range(1, 10))

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a tick."""
        if x <= 0 or round(x / 10 ** np.floor(np.log10(x) + 1e-9)) not in self.kept:
            return ""
        return f"{x:g}" if super().__call__(x, pos) else ""


def _thin_log_labels(ax: Axes) -> None:
    """Write fewer labels on a log axis where they overlap."""
    minor = ax.yaxis.get_minor_formatter()
    if not isinstance(minor, PlainNumbers):
        return
    for kept in ((1, 2, 5), (1, 3), (1,)):
        if not overlapping(tick_labels(ax.yaxis), room=1.0):
            return
        minor.kept = kept
    ax.yaxis.set_minor_formatter(NullFormatter())


def tick_labels(axis: Axis) -> list[Bbox]:
    """Return the boxes of an axis's visible tick labels, in pixels."""
    axis._update_ticks()  # type: ignore[attr-defined]
    low, high = sorted(axis.get_view_interval())
    near = 1e-9 * (high - low)
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    labels = [
        t for tick in ticks for t in (tick.label1, tick.label2) if low - near <= tick.get_loc() <= high + near
    ]
    return [Text.get_window_extent(t) for t in labels if t.get_visible() and t.get_text()]


def overlapping(boxes: Iterable[Bbox], room: float = 0.0) -> bool:
    """Return True if any two boxes are less than `room` pixels apart."""
    grown = [box.padded(0.5 * room) for box in boxes]
    return any(a.overlaps(b) for k, a in enumerate(grown) for b in grown[:k])


def _place_scale(ax: Axes) -> None:
    """Move a map's scale to the corner in which it covers the fewest marks, if possible to none."""
    marks = _marks(ax)

    def covered(scale: AnchoredOffsetbox, corner: int) -> int:
        scale.loc = corner
        box = scale.get_window_extent().padded(_CLEAR)
        return int(np.all((marks >= box.min) & (marks <= box.max), axis=1).sum())

    for scale in _scales(ax):
        corners = [scale.loc, *(AnchoredOffsetbox.codes[name] for name in _CORNER_NAMES)]
        scale.loc = min(corners, key=partial(covered, scale))


def _scales(ax: Axes) -> list[AnchoredOffsetbox]:
    return [box for box in ax.artists if isinstance(box, AnchoredOffsetbox)]


def _marks(ax: Axes) -> Array:
    """Return where the marks of a map are (n, 2), in pixels, except for sites, which are everywhere."""
    lines = [line for line in ax.lines if line.get_marker() not in ("None", "", None)]
    places = [ax.transData.transform(line.get_xydata()) for line in lines if line.get_label() != "site"]
    return np.concatenate([np.empty((0, 2)), *places])


def _place_numbers(ax: Axes) -> None:
    """Move numbers of readings to where nothing else is written, or remove them."""
    frame = Axes.get_window_extent(ax)
    labels = [t for t in ax.texts if t.get_visible()]
    taken = [Text.get_window_extent(t) for t in labels if t.get_gid() != NUMBER]
    taken += [scale.get_window_extent() for scale in _scales(ax)]
    for label in labels:
        if label.get_gid() != NUMBER or not isinstance(label, Annotation):
            continue
        right, up = np.abs(label.xyann)
        for sides in _CORNERS:
            label.set_horizontalalignment("left" if sides[0] > 0 else "right")
            label.set_verticalalignment("bottom" if sides[1] > 0 else "top")
            label.xyann = (right * sides[0], up * sides[1])
            box = Text.get_window_extent(label)
            if _within(box, frame) and not any(box.padded(3.0).overlaps(other) for other in taken):
                taken.append(box)
                break
        else:
            label.remove()


def _within(box: Bbox, frame: Bbox) -> bool:
    return bool(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)
