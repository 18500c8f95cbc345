"""Domains: grids, outlines, sites and their index."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo._numerics.arrays import frozen_array
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.places import check_place
from fieldbo.errors import InputError

BOX = (Axis("along", "m", -10, 30), Axis("depth", "m", 0, 5, "down"))
LAKE = shapely.Polygon([(-10, 0), (30, 0), (10, 5)])
property_test = settings(deadline=None, max_examples=examples(40), derandomize=True)


@property_test
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_a_grid_has_a_site_at_every_node_and_the_last_axis_varies_fastest(shape):
    axes = [Axis(f"x{i}", "m", -i - 1, 2 * i + 1) for i in range(len(shape))]
    domain = Domain.grid(axes, shape)
    assert domain.size == len(np.unique(domain.sites, axis=0)) == np.prod(shape)
    assert domain.dimension == len(shape)
    assert domain.contains(domain.sites).all()
    assert domain.grid_index.tolist() == list(range(domain.size))
    by_axis = domain.sites.reshape(*shape, len(shape))
    for i, (axis, n) in enumerate(zip(axes, shape, strict=True)):
        ticks = np.moveaxis(by_axis[..., i], i, -1)
        np.testing.assert_array_equal(
            ticks, np.broadcast_to(np.linspace(axis.low, axis.high, n), ticks.shape)
        )


def test_an_outline_cuts_the_grid_and_the_index_keeps_the_position_of_each_site():
    whole, cut = Domain.grid(BOX, (9, 6)), Domain.grid(BOX, (9, 6), LAKE)
    assert 0 < cut.size < whole.size
    np.testing.assert_array_equal(cut.sites, whole.sites[cut.grid_index])
    expected = [LAKE.covers(shapely.Point(s)) for s in whole.sites]
    np.testing.assert_array_equal(np.isin(whole.grid_index, cut.grid_index), expected)
    assert cut.contains(cut.sites).all()


@property_test
@given(x=st.floats(-50, 50), y=st.floats(-10, 10))
def test_a_point_is_contained_if_it_lies_in_the_box_and_in_the_outline(x, y):
    box, lake = Domain.grid(BOX, (9, 6)), Domain.grid(BOX, (9, 6), LAKE)
    in_box = -10 <= x <= 30 and 0 <= y <= 5
    margin = 1e-6
    if min(abs(x + 10), abs(x - 30), abs(y), abs(y - 5)) > margin:
        assert box.contains([x, y]).tolist() == [in_box]
    if LAKE.boundary.distance(shapely.Point(x, y)) > margin:
        assert lake.contains([x, y]).tolist() == [LAKE.contains(shapely.Point(x, y))]


def test_the_edge_belongs_to_the_domain_and_nan_and_infinity_do_not():
    lake = Domain.grid(BOX, (9, 6), LAKE)
    on_edge = np.array(LAKE.exterior.coords) + 1e-10
    assert lake.contains(on_edge).all()
    assert Domain.grid(BOX, (9, 6)).contains([[np.nan, 1.0], [0.0, np.inf]]).tolist() == [False, False]


@property_test
@given(st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_the_nearest_site_is_nearest_with_axes_scaled_by_their_lengths(point):
    domain = Domain.grid(BOX, (9, 6))
    at = domain.low + np.array(point) * domain.extent
    gaps = np.linalg.norm((domain.sites - at) / domain.extent, axis=1)
    assert gaps[domain.nearest(at)] == pytest.approx(gaps.min(), abs=1e-12)


def test_every_site_is_nearest_to_itself():
    domain = Domain.grid(BOX, (9, 6), LAKE)
    assert [domain.nearest(s) for s in domain.sites] == list(range(domain.size))


@property_test
@given(n=st.integers(0, 80), seed=st.integers(0, 1000))
def test_drawn_sites_do_not_repeat_if_there_are_enough(n, seed):
    domain = Domain.grid(BOX, (9, 6))
    drawn = domain.draw(n, np.random.default_rng(seed))
    assert drawn.shape == (n, 2)
    known = {tuple(s) for s in domain.sites}
    assert {tuple(s) for s in drawn} <= known
    if n <= domain.size:
        assert len({tuple(s) for s in drawn}) == n
    np.testing.assert_array_equal(drawn, domain.draw(n, np.random.default_rng(seed)))


def test_the_measure_per_site_times_the_number_of_sites_is_the_measure_of_the_domain():
    box, lake = Domain.grid(BOX, (9, 6)), Domain.grid(BOX, (9, 6), LAKE)
    assert box.cell_size * box.size == pytest.approx(40 * 5)
    assert lake.cell_size * lake.size == pytest.approx(LAKE.area)
    assert box.cell_unit == "m2"
    assert Domain.grid([Axis("x", "m", 0, 1)], (2,)).cell_unit == "m"
    assert Domain.grid([Axis("x", "m", 0, 1), Axis("T", "K", 0, 1)], (2, 2)).cell_unit == "m K"


def test_a_domain_is_immutable():
    given_sites = np.array([[0.0, 1.0], [2.0, 3.0]])
    domain = Domain(BOX, given_sites)
    given_sites[:] = 7.0
    assert domain.sites.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    with pytest.raises(ValueError, match="read-only"):
        domain.sites[0, 0] = 1.0
    with pytest.raises(AttributeError):
        domain.shape = (1, 2)
    array = frozen_array([1, 2], bool)
    assert array.dtype == bool
    assert not array.flags.writeable


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (np.nan, 1), (0, np.inf), (-np.inf, 0)])
def test_an_axis_whose_low_end_is_not_below_its_high_end_is_rejected(low, high):
    with pytest.raises(InputError, match="low below high"):
        Axis("x", "m", low, high)


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        (np.empty((0, 2)), "at least one candidate site"),
        ([[1.0, 2.0, 3.0]], "2, one per axis"),
        (
            [[0.0, 1.0], [0.0, 5.1], [31.0, 0.0]],
            r"2 of 3 sites lie outside the domain; the first is \[0\.0, 5\.1\]",
        ),
        ([[np.nan, 1.0]], "outside the domain"),
    ],
    ids=["none", "dimension", "outside", "no number"],
)
def test_missing_or_invalid_sites_are_rejected(sites, message):
    with pytest.raises(InputError, match=message):
        Domain(BOX, sites)


@pytest.mark.parametrize("shape", [(3,), (3, 0), (3, 3, 3)])
def test_grid_counts_that_do_not_fit_the_axes_are_rejected(shape):
    with pytest.raises(InputError, match="2 counts of at least 1"):
        Domain.grid(BOX, shape)


def test_an_outline_without_a_site_or_over_one_axis_is_rejected():
    with pytest.raises(InputError, match="enlarge the region or refine the grid"):
        Domain.grid(BOX, (3, 3), shapely.box(1, 1, 2, 2))
    with pytest.raises(InputError, match="an outline needs two axes, not 1"):
        Domain.grid(BOX[:1], (3,), LAKE)


def test_the_clearance_is_kept_from_the_outline_and_its_holes_but_not_from_the_ends_of_the_axes():
    axes = (Axis("x", "m", 0, 20), Axis("y", "m", 0, 10))
    shore = shapely.difference(shapely.box(0, 0, 20, 10), shapely.box(8, 4.5, 12, 5.5))
    lake = Domain.grid(axes, (21, 11), shore, clearance=2.0)
    assert shapely.distance(shore.boundary, shapely.points(lake.sites)).min() == pytest.approx(2.0)
    assert lake.contains([[2, 2], [1.9, 5], [6, 5], [6.1, 5]]).tolist() == [True, False, True, False]
    assert lake.outline is shore
    assert lake.clearance == 2.0
    assert Domain.grid(axes, (21, 11), clearance=2.0).size == 21 * 11
    way = Euclidean().within(lake).path([2, 5], [18, 5])
    assert shore.boundary.distance(shapely.LineString(way)) == pytest.approx(2.0, abs=1e-6)


def test_a_domain_keeps_its_obstacles_without_the_clearance():
    hut = Obstacle("hut", (10, 2), (12, 4))
    whole = Domain.grid(BOX, (31, 6), obstacles=[hut], clearance=0.5)
    for domain in (whole, whole.restricted(whole.sites[:, 0] < 5)):
        assert (domain.solid, domain.obstacles) == ((hut,), (hut.grown(0.5),))
    assert Domain(BOX, [[0, 0]], obstacles=[hut]).solid == (hut,)


def test_a_place_too_near_to_the_outline_is_rejected_with_the_distance_to_keep():
    axes = (Axis("x", "m", 0, 20), Axis("y", "m", 0, 10))
    lake = Domain.grid(axes, (21, 11), shapely.box(0, 0, 20, 10), clearance=2.0)
    with pytest.raises(InputError, match=r"start \[1\.0, 5\.0\] lies within 2 m of the outline"):
        check_place(lake, "start", np.array([1.0, 5.0]), "agent.start")


def test_a_clearance_that_leaves_nothing_of_the_outline_is_rejected():
    with pytest.raises(InputError, match="a clearance of 3 leaves nothing of the outline"):
        Domain.grid(BOX, (31, 6), shapely.box(0, 0, 30, 5), clearance=3.0)


def test_an_axis_is_labelled_by_its_name_and_unit():
    assert BOX[0].label == "along (m)"
    assert Axis("ratio", "", 0, 1).label == "ratio"


def test_the_area_of_a_set_is_the_sum_of_its_cells():
    axes = [Axis("x", "m", 0.0, 100.0), Axis("y", "m", 0.0, 60.0)]
    grid = Domain.grid(axes, (11, 7))
    assert grid.cells.sum() == pytest.approx(6000.0)
    inside = ((grid.sites > 5) & (grid.sites < [95, 55])).all(axis=1)  # the cells of nodes 10 to 90, 10 to 50
    assert grid.cells @ inside == pytest.approx(90 * 50)
    assert grid.restricted(inside).cells.sum() == pytest.approx(90 * 50)
    assert Domain.box(axes, 8).cells.tolist() == [750.0] * 8
    # Nodes on the wall of an obstacle are sites, with half of their cells behind it.
    half = Domain.grid(axes, (11, 7), obstacles=[Obstacle("hall", (-1.0, -1.0), (50.0, 61.0))])
    assert half.cells.sum() == pytest.approx(50 * 60)
    right = half.sites[:, 0] > 75
    assert half.restricted(right).cells.sum() == pytest.approx(half.cells[right].sum())


def test_the_area_of_a_disc_is_unbiased_on_a_coarse_grid():
    grid = Domain.grid([Axis(name, "m", 0.0, 100.0) for name in "xy"], (11, 11))
    centres = np.random.default_rng(0).uniform(40, 60, size=(400, 2))
    areas = [grid.cells @ (np.hypot(*(grid.sites - c).T) <= 30) for c in centres]
    assert np.mean(areas) == pytest.approx(np.pi * 30**2, rel=0.01)
