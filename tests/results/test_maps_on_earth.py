"""Maps of worlds with a CRS: degrees along the edges, eastings in full, a scale bar, and true north."""

import io
import math
from contextlib import chdir
from functools import cache
from itertools import combinations
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import shapely
from earth import SPOTS, world_on_earth
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnchoredOffsetbox
from matplotlib.patches import Polygon
from matplotlib.text import Text
from pyproj import Geod, Transformer
from small_runs import png, sketch

from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.mission.load import load_mission, load_world
from fieldbo.results import plot
from fieldbo.results.plot.figures import new_figure
from fieldbo.results.plot.geography import convergence
from fieldbo.results.plot.surfaces import frame
from fieldbo.runs.runner import run

EVERYWHERE = sorted(SPOTS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """Return the domain and the map of a world on the Earth, made once for each size."""

    @cache
    def domain_of(name):
        with chdir(tmp_path_factory.mktemp("earth")):
            world_on_earth(Path.cwd(), name)
            return load_world(name).domain

    @cache
    def made(name, size=(9.0, 6.0)):
        return domain_of(name), drawn(domain_of(name), *size)

    return made


def drawn(domain, width=9.0, height=6.0):
    """Return the axes of a map, laid out."""
    figure = new_figure(width, height)
    ax = figure.subplots()
    frame(ax, domain)
    ax.plot(*domain.sites.T, "o")
    figure.draw_without_rendering()
    return ax


def overlapping(ax):
    """Return whether two labels of degrees along the same edge overlap."""
    for twin in ax.child_axes:
        axis = twin.xaxis if twin._orientation == "x" else twin.yaxis
        low, high = sorted(axis.get_view_interval())
        shown = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
        boxes = [tick.label2.get_window_extent() for tick in shown]
        if any(a.overlaps(b) for a, b in combinations(boxes, 2)):
            return True
    return False


def degrees_of(label):
    value = float(label.rstrip("°NESW").rstrip("°"))
    return -value if label[-1] in "SW" else value


def edges(ax):
    """Return position, label and place in the CRS of each tick of degrees."""
    for twin in ax.child_axes:
        if not hasattr(twin, "_functions"):
            continue
        upper = twin._orientation == "x"
        axis = twin.xaxis if upper else twin.yaxis
        at = axis.get_majorticklocs()
        labels = axis.get_major_formatter().format_ticks(at)
        low, high = ax.get_xlim() if upper else ax.get_ylim()
        for x, label in zip(at, labels, strict=True):
            if low <= x <= high:
                yield (
                    ("top" if upper else "right"),
                    label,
                    ([x, ax.get_ylim()[1]] if upper else [ax.get_xlim()[1], x]),
                )


@pytest.mark.each_choice
@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("size", [(9.0, 6.0), (4.0, 3.0)])
def test_degrees_are_those_of_the_very_points_of_the_edge(mapped, name, size):
    domain, ax = mapped(name, size)
    ticks = list(edges(ax))
    to_degrees = Transformer.from_crs(domain.crs, "EPSG:4326", always_xy=True)
    for _, label, place in ticks:
        longitude, latitude = to_degrees.transform(*place)
        true = latitude if label[-1] in "NS" else longitude
        off = (degrees_of(label) - true + 180.0) % 360.0 - 180.0
        assert abs(off) < 1e-7
    fewest = 2 if size[0] > 5 else 1  # and they do not overlap
    for side in ("top", "right"):
        assert len({label for where, label, _ in ticks if where == side}) >= fewest
    latitudes = {where for where, label, _ in ticks if label[-1] in "NS"}
    longitudes = {where for where, label, _ in ticks if label[-1] in "EW" or label.startswith("180.")}
    assert not overlapping(ax)
    quarter = abs(math.cos(math.radians(convergence(domain.georeference, domain.middle)))) < 0.7
    assert (latitudes, longitudes) == (({"top"}, {"right"}) if quarter else ({"right"}, {"top"}))


@pytest.mark.parametrize("name", EVERYWHERE)
def test_eastings_and_northings_are_given_in_full(mapped, name):
    domain, ax = mapped(name)
    for axis in (ax.xaxis, ax.yaxis):
        shown = [label.get_text() for label in axis.get_majorticklabels()]
        assert [float(text) for text in shown] == axis.get_majorticklocs().tolist()
        assert axis.get_offset_text().get_text() == ""
        assert not any("e" in text for text in shown)
    assert ax.get_xlabel() == f"east (m), {domain.georeference.name}"


def legend(ax):
    (box,) = (artist for artist in ax.artists if isinstance(artist, AnchoredOffsetbox))
    return box


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_scale_bar_is_as_long_on_the_ground_as_it_says(mapped, name):
    domain, ax = mapped(name)
    box = legend(ax)
    (bar,) = box.findobj(Line2D)
    (label,) = {text.get_text() for text in box.findobj(Text)} - {"N"}
    ends = np.column_stack([domain.middle[0] + np.array(bar.get_xdata()), np.full(2, domain.middle[1])])
    longitude, latitude = Transformer.from_crs(domain.crs, "EPSG:4326", always_xy=True).transform(*ends.T)
    (length,) = Geod(ellps="WGS84").line_lengths(longitude, latitude)[:1]
    assert length == pytest.approx(float(label.removesuffix(" m")), rel=1e-3)
    assert label == "50 m"


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_arrow_leads_to_true_north(mapped, name):
    domain, ax = mapped(name)
    left, right = legend(ax).findobj(Polygon)
    tip, tail = left.get_xy()[0], (left.get_xy()[1] + right.get_xy()[1]) / 2.0
    towards = (tip - tail) / np.linalg.norm(tip - tail)
    start = domain.middle
    earth = domain.georeference
    latitude, longitude = earth.degrees(start)[0]
    north = earth.metres([[latitude + 1e-5, longitude]])[0] - start
    assert towards @ (north / np.linalg.norm(north)) > 1.0 - 1e-6


@pytest.mark.parametrize(
    ("cut", "corner"),
    [((0, 0), "lower left"), ((1, 0), "lower right"), ((0, 1), "upper left"), ((1, 1), "upper right")],
)
def test_scale_and_north_stand_in_the_emptiest_corner(cut, corner):
    axes = [Axis("east", "m", 463_000, 463_300), Axis("north", "m", 5_239_000, 5_239_200)]
    low, size = np.array([463_000.0, 5_239_000.0]), np.array([300.0, 200.0])
    hole = low + np.array(cut) * size / 2.0
    outline = shapely.difference(shapely.box(*low, *(low + size)), shapely.box(*hole, *(hole + size / 2.0)))
    domain = Domain.grid(axes, (31, 21), outline, crs="EPSG:32632")
    assert legend(drawn(domain)).loc == AnchoredOffsetbox.codes[corner]


def test_a_map_without_a_crs_is_as_before():
    axes = [Axis("east", "m", 0, 300), Axis("north", "m", 0, 200)]
    ax = drawn(Domain.grid(axes, (31, 21)))
    assert not [twin for twin in ax.child_axes if hasattr(twin, "_functions")]
    assert not [artist for artist in ax.artists if isinstance(artist, AnchoredOffsetbox)]
    assert ax.get_xlabel() == "east (m)"


def test_a_sheet_of_maps_has_degrees_outside_and_one_scale_bar(folder):
    result = run(load_mission(world_on_earth(folder, spacing=40)))
    figure = sketch(plot.map_picture, result)
    figure.draw_without_rendering()
    maps = [ax for ax in figure.axes if hasattr(ax, "child_axes") and ax.get_subplotspec() is not None]
    sides = [sorted(t._orientation for t in ax.child_axes if hasattr(t, "_functions")) for ax in maps]
    assert sides == [["x"], ["x", "y"], [], ["y"]]
    assert [sum(isinstance(a, AnchoredOffsetbox) for a in ax.artists) for ax in maps] == [1, 0, 0, 0]


@pytest.mark.parametrize(
    "picture", [plot.path_picture, pytest.param(plot.map_picture, marks=pytest.mark.slow)]
)
def test_pictures_of_a_run_on_earth_are_saved_alike_twice(folder, picture):
    result = run(load_mission(world_on_earth(folder, "arctic", spacing=40)))
    first, second = png(picture(result)), png(picture(result))
    assert first == second
    assert matplotlib.image.imread(io.BytesIO(first)).std() > 0.05
