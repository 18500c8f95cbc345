"""A map on the Earth: eastings and northings in full, degrees along the edges, a scale bar and north."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import shapely
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.offsetbox import (
    AnchoredOffsetbox,
    AuxTransformBox,
    DrawingArea,
    HPacker,
    TextArea,
    VPacker,
)
from matplotlib.patches import Polygon
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import Formatter, Locator, MaxNLocator, ScalarFormatter

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import Georeference
from fieldbo.results.plot.style import Look, font_size, letter_size, shade, width_of

_TICKS, _NARROW_TICKS = 5, 1
_LETTER = 7.5  # font size of degrees, scale and north, in points
_INK = "0.15"
_ARROW = 15.0  # points
_BAR = 0.22  # longest scale bar, as a fraction of the map's width
_BESIDE, _BESIDE_DEGREES = 1.03, 1.08  # where a colour bar begins, in widths of the map
_ALONG = np.linspace(0.0, 1.0, 101)

_HALO = [withStroke(linewidth=3.0, foreground="white")]

Side = Literal["top", "right"]

_CORNERS = {"lower left": (0, 0), "lower right": (1, 0), "upper left": (0, 1), "upper right": (1, 1)}


def beside(domain: Domain) -> float:
    """Return where a colour bar begins, in widths of the map: behind the latitudes, if there are any."""
    return _BESIDE if _flat(domain) is None else _BESIDE_DEGREES


def on_earth(ax: Axes, domain: Domain, *, to_scale: bool) -> None:
    """Label a map of the first two axes as one on the Earth; without a CRS, change nothing.

    In a sheet of maps with common axes, the outer ones have the degrees, and the first one scale and north. A
    sheet as wide as a column has no room for degrees.

    Parameters
    ----------
    ax : Axes
    domain : Domain
    to_scale : bool
        Whether both axes are drawn to the same scale; otherwise there is no arrow to the north.
    """
    earth = _flat(domain)
    if earth is None:
        return
    place = ax.get_subplotspec()
    alone = place is None or place.get_gridspec().get_geometry() == (1, 1)
    narrow = width_of(ax) == "column" and not alone
    for axis, most in ((ax.xaxis, _NARROW_TICKS if narrow else _TICKS), (ax.yaxis, _TICKS)):
        axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=1))
        full = ScalarFormatter(useOffset=False)
        full.set_scientific(False)
        axis.set_major_formatter(full)
    if alone:
        ax.set_xlabel(f"{domain.axes[0].label}, {earth.name}")
    if not narrow and (place is None or place.is_first_row()):  # narrow maps have a colour bar there
        _degrees(ax, earth, "top")
    if not narrow and (place is None or place.is_last_col()):
        _degrees(ax, earth, "right")
    if place is None or (place.is_first_row() and place.is_first_col()):
        _legend(ax, domain, earth, to_scale and not narrow)


def _flat(domain: Domain) -> Georeference | None:
    """Return the georeference of a domain if its first two axes are easting and northing, in this order."""
    earth = domain.georeference
    return earth if earth is not None and earth.axes == (0, 1) else None


# -- degrees along an edge -----------------------------------------------------------------------------------


def _degrees(ax: Axes, earth: Georeference, side: Side) -> None:
    """Label an edge of a map with the latitudes or longitudes of its own points."""
    edge = _Edge(ax, earth, side)
    twin = ax.secondary_xaxis("top") if side == "top" else ax.secondary_yaxis("right")
    axis = twin.xaxis if side == "top" else twin.yaxis
    axis.set_major_locator(_DegreeLocator(edge))
    axis.set_major_formatter(_DegreeFormatter(edge))
    twin.tick_params(labelsize=letter_size(_LETTER), colors=shade(0.6), length=2.5, pad=1.5)
    if side == "right":
        twin.tick_params(axis="y", rotation=90)
        for label in twin.get_yticklabels():
            label.set_verticalalignment("center")


class _Edge:
    """The degrees along an edge of a map, as it is drawn at the moment.

    An edge is labelled with the coordinate that changes more along it: elsewhere than near the poles, the
    upper one with longitudes and the right one with latitudes.
    """

    def __init__(self, ax: Axes, earth: Georeference, side: Side) -> None:
        self._ax, self._earth, self._side = ax, earth, side

    def points(self) -> tuple[Array, Array, int]:
        """Return positions (n,) along the edge, their degrees (n,), and 0 for latitudes, 1 for longitudes."""
        (left, right), (bottom, top) = self._ax.get_xlim(), self._ax.get_ylim()
        if self._side == "top":
            at = left + (right - left) * _ALONG
            places = np.column_stack([at, np.full(len(at), top)])
        else:
            at = bottom + (top - bottom) * _ALONG
            places = np.column_stack([np.full(len(at), right), at])
        latitude, longitude = self._earth.degrees(places).T
        longitude = np.unwrap(longitude, period=360.0)
        east = np.ptp(longitude) * math.cos(math.radians(float(latitude.mean())))
        return (at, longitude, 1) if east >= np.ptp(latitude) else (at, latitude, 0)

    def ticks(self) -> tuple[Array, list[str]]:
        """Return the positions (k,) of round degrees, and their labels: as many as have room."""
        at, degrees, which = self.points()
        per_unit = self._length() / abs(float(at[-1] - at[0]))  # points on paper
        found: list[tuple[float, str]] = []
        low, high = sorted((float(at[0]), float(at[-1])))
        for bins in range(_TICKS, 0, -1):
            fewer = _crossings(at, degrees, which, bins)
            width = 0.65 * _LETTER * max((len(text) for _, text in fewer), default=0) / per_unit
            inside = [(x, text) for x, text in fewer if low + width / 2 <= x <= high - width / 2]
            found = inside or found[:1] or fewer[:1]
            gaps = np.diff(np.sort([x for x, _ in found]))
            if len(found) < 2 or gaps.min() > width + _LETTER / per_unit:
                break
        return np.array([x for x, _ in found]), [text for _, text in found]

    def _length(self) -> float:
        """Return the length of the edge on paper, in points."""
        figure, box = self._ax.get_figure(root=True), self._ax.get_window_extent()
        assert figure is not None
        return 72.0 / figure.dpi * float(box.width if self._side == "top" else box.height)


def _crossings(at: Array, degrees: Array, which: int, bins: int) -> list[tuple[float, str]]:
    """Return where an edge crosses round degrees, at most about `bins` of them, with their labels."""
    round_ones = MaxNLocator(bins, steps=[1, 2, 5, 10]).tick_values(degrees.min(), degrees.max())
    decimals = max(0, -math.floor(math.log10(float(np.diff(round_ones).min())) + 1e-9))
    found: list[tuple[float, str]] = []
    for value in round_ones:
        gaps = degrees - value
        for k in np.flatnonzero((gaps[:-1] <= 0) != (gaps[1:] <= 0)):
            share = gaps[k] / (gaps[k] - gaps[k + 1])
            found.append((at[k] + share * (at[k + 1] - at[k]), _label(float(value), which, decimals)))
    return found


def _label(degrees: float, which: int, decimals: int) -> str:
    """Return a latitude (which = 0) or longitude (1) with its side.

    Examples
    --------
    >>> _label(-33.9, 0, 2), _label(180.25, 1, 2), _label(0.0, 1, 0)
    ('33.90°S', '179.75°W', '0°')
    """
    turned = (degrees + 180.0) % 360.0 - 180.0 if which else degrees
    if round(abs(turned), decimals) in (0.0, 180.0):
        return f"{abs(turned):.{decimals}f}°"
    return f"{abs(turned):.{decimals}f}°{('SN', 'WE')[which][turned > 0]}"


class _DegreeLocator(Locator):
    def __init__(self, edge: _Edge) -> None:
        self._edge = edge

    def __call__(self) -> Sequence[float]:
        at: list[float] = self._edge.ticks()[0].tolist()
        return at

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        return self()


class _DegreeFormatter(Formatter):
    def __init__(self, edge: _Edge) -> None:
        self._edge = edge

    def __call__(self, x: float, pos: int | None = None) -> str:
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        at, labels = self._edge.ticks()
        return [labels[int(np.argmin(np.abs(at - x)))] if len(at) else "" for x in values]


# -- scale and north -----------------------------------------------------------------------------------------


def _legend(ax: Axes, domain: Domain, earth: Georeference, to_scale: bool) -> None:
    """Draw a scale bar and an arrow to the north in the corner that covers the least of the domain."""
    corner = _emptiest(domain)
    length, text = _round_length(_BAR * float(domain.extent[0]))
    middle = (domain.low + domain.high) / 2.0
    ahead = middle.copy()
    ahead[0] += length
    on_ground = float(earth.legs([middle, ahead])[0][0])
    bar = AuxTransformBox(ax.transData)
    across = length * length / on_ground  # the map's metres differ a little from those on the ground
    bar.add_artist(Line2D([0.0, across], [0.0, 0.0], color=_INK, linewidth=2.0, path_effects=_HALO))
    style: Look = {"fontsize": letter_size(_LETTER), "color": _INK, "path_effects": _HALO}
    scale = VPacker(children=[TextArea(text, textprops=style), bar], align="center", pad=0, sep=2)
    parts: list[Artist] = [scale]
    if to_scale:
        parts.insert(0, _arrow(earth, middle, _ARROW * font_size(ax, 10.0) / 10.0))
    box = AnchoredOffsetbox(
        loc=corner,
        child=HPacker(children=parts, align="center", pad=0, sep=6),
        pad=0.2,
        borderpad=0.2,
        frameon=False,
        prop=FontProperties(size=_LETTER),
    )
    box.set_zorder(6)
    ax.add_artist(box)


def _round_length(most: float) -> tuple[float, str]:
    """Return the largest round length of at most so many metres, and its text.

    Examples
    --------
    >>> _round_length(75.0), _round_length(2400.0)
    ((50.0, '50 m'), (2000.0, '2 km'))
    """
    power = 10.0 ** math.floor(math.log10(most))
    length = max(step * power for step in (1.0, 2.0, 5.0) if step * power <= most)
    return length, f"{length / 1000.0:g} km" if length >= 1000.0 else f"{length:g} m"


def _arrow(earth: Georeference, point: Array, length: float) -> DrawingArea:
    """Return an arrow to true north at a point (d,), in points: on a map, north of the grid is up."""
    turned = math.radians(convergence(earth, point))
    size = 2.0 * length
    area = DrawingArea(size, size)
    middle, towards = size / 2.0, np.array([-math.sin(turned), math.cos(turned)])
    across = np.array([towards[1], -towards[0]])
    tip, tail = middle + 0.35 * length * towards, middle - 0.65 * length * towards
    notch = tail + 0.25 * length * towards
    left, right = tail - 0.3 * length * across, tail + 0.3 * length * across
    area.add_artist(Polygon([tip, left, notch], facecolor=_INK, edgecolor=_INK, linewidth=0.6))
    area.add_artist(Polygon([tip, right, notch], facecolor="white", edgecolor=_INK, linewidth=0.6))
    x, y = tip + 0.33 * length * towards
    look: Look = {"fontsize": letter_size(_LETTER), "color": _INK, "path_effects": _HALO}
    area.add_artist(Text(float(x), float(y), "N", ha="center", va="center", **look))
    return area


def convergence(earth: Georeference, point: Array) -> float:
    """Return the angle in degrees at a point (d,) by which grid north lies clockwise of true north.

    Examples
    --------
    >>> float(round(convergence(Georeference("EPSG:32632"), np.array([430_000.0, 8_870_000.0])), 2))
    -3.51
    """
    ahead = np.array(point, dtype=float)
    ahead[earth.axes[1]] += 1.0
    _, (bearing,) = earth.legs([point, ahead])
    return float((bearing + 180.0) % 360.0 - 180.0)


def _emptiest(domain: Domain) -> str:
    """Return the corner of the map whose surroundings hold the least of the domain."""
    whole = shapely.box(*domain.low[:2], *domain.high[:2])
    area = whole if domain.outline is None else domain.outline
    size = domain.extent[:2] * np.array([0.4, 0.2])

    def covered(corner: tuple[int, int]) -> float:
        x, y = domain.low[:2] + np.array(corner) * (domain.extent[:2] - size)
        return float(shapely.intersection(area, shapely.box(x, y, x + size[0], y + size[1])).area)

    return min(_CORNERS, key=lambda name: covered(_CORNERS[name]))
