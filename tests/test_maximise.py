"""The best point of a box: candidates lie in it and are the same again, and a climb never makes it worse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import Polygon, box

from fieldbo._numerics.climb import climbed_together
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.search import around, climbed, differenced, polished


def cube(d, low=0.0, high=1.0):
    return Domain.box([Axis(f"x{k}", "m", low, high) for k in range(d)], 64)


def with_a_hole(share=0.5):
    """Return the square of side 10, continuous, less a square of that share of its side in the middle."""
    half = 5 * share
    axes = (Axis("x", "m", 0, 10), Axis("y", "m", 0, 10))
    region = box(0, 0, 10, 10).difference(box(5 - half, 5 - half, 5 + half, 5 + half))
    sites = Domain.box(axes, 512).sites
    free = Domain(axes, [[0, 0]], region=region).contains(sites)
    return Domain(axes, sites[free], region=region, continuous=True)


def rng(seed=0):
    return np.random.default_rng(seed)


# -- candidates ------------------------------------------------------------------------------------------


@given(st.integers(1, 8), st.integers(1, 300), st.integers(0, 5), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_as_many_candidates_as_asked_for_lie_in_the_box(d, n, places, seed):
    domain = cube(d, -2.0, 3.0)

    found = around(domain, rng(seed), n, domain.draw(places, rng(seed)))

    assert found.shape == (n, d)
    assert np.all((found >= domain.low) & (found <= domain.high))


def test_the_same_generator_gives_the_same_candidates_and_another_others():
    domain, places = cube(6), rng().random((3, 6))

    first, again, other = (around(domain, rng(seed), 200, places) for seed in (1, 1, 2))

    assert np.array_equal(first, again)
    assert not np.array_equal(first[3:], other[3:])


def test_a_generator_that_goes_on_gives_new_candidates():
    domain, one = cube(2), rng()

    assert not np.array_equal(around(domain, one, 64), around(domain, one, 64))


def test_the_places_come_first():
    places = rng().random((3, 4))

    assert np.array_equal(around(cube(4), rng(), 100, places)[:3], places)
    assert np.array_equal(around(cube(4), rng(), 2, places), places[:2])


def test_half_of_the_candidates_are_spread_evenly():
    found = around(cube(2), rng(), 512, [[0.1, 0.1]])[1:257]

    counts = np.histogram2d(*found.T, bins=4, range=[[0, 1], [0, 1]])[0]
    assert np.all(counts == 16)


def test_the_others_lie_about_the_places_near_and_far():
    places = np.array([[0.3, 0.3], [0.7, 0.7]])

    found = around(cube(2), rng(), 800, places)[402:]

    gap = np.linalg.norm(found[:, None] - places, axis=2)
    own = gap[np.arange(len(found)), np.arange(len(found)) % 2]
    assert len(found) == 398
    assert np.quantile(own, 0.1) < 0.01
    assert np.quantile(own, 0.9) > 0.2


def test_in_many_dimensions_only_some_coordinates_of_a_place_are_changed():
    place = np.full(12, 0.5)

    found = around(cube(12), rng(), 1000, [place])[501:]

    changed = (found != place).sum(axis=1)
    assert changed.min() == 1
    assert 2 < changed.mean() < 5


def test_a_place_in_a_corner_keeps_candidates_on_its_edges():
    found = around(cube(3), rng(), 200, [[0.0, 1.0, 0.0]])[101:]

    assert np.any(found[:, 0] == 0.0)
    assert np.any(found[:, 1] == 1.0)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_no_candidate_lies_in_an_obstacle_however_large(share):
    domain = with_a_hole(share)

    found = around(domain, rng(), 100, [[0.0, 0.0], [5.0, 5.0]])

    assert found.shape == (100, 2)
    assert domain.contains(found).all()
    assert not np.any(np.all(found == 5.0, axis=1)), "a place within the obstacle is none"


# -- the climb -------------------------------------------------------------------------------------------


def hill(top, steep=1.0):
    return lambda x: -steep * np.square(x - top).sum(axis=1)


def waves(x):
    return np.cos(9 * x).sum(axis=1) - np.square(x - 0.4).sum(axis=1)


@pytest.mark.parametrize("d", [1, 2, 6, 12])
@pytest.mark.parametrize("steep", [1e-8, 1.0, 1e8])
def test_the_top_of_a_hill_is_found_whatever_its_scale(d, steep):
    top = np.linspace(0.3, 0.6, d)

    point, score = polished(hill(top, steep), np.full(d, 0.45), cube(d))

    assert point == pytest.approx(top, abs=1e-4)
    assert score == pytest.approx(0.0, abs=1e-6 * steep)


def test_axes_of_different_lengths_are_climbed_alike():
    domain = Domain.box([Axis("x", "m", 0, 1e-3), Axis("y", "m", -1e4, 1e4)], 64)

    point, _ = polished(
        lambda p: -np.square((p - [4e-4, 1e3]) / domain.extent).sum(axis=1), [9e-4, 0.0], domain
    )

    assert point == pytest.approx([4e-4, 1e3], rel=1e-3)


def test_a_top_beyond_the_box_is_met_at_its_corner():
    point, _ = polished(hill(np.array([2.0, -1.0, 0.5])), [0.5, 0.5, 0.2], cube(3))

    assert point == pytest.approx([1.0, 0.0, 0.5], abs=1e-5)


@given(st.integers(1, 5), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_climb_is_never_worse_than_its_start_and_stays_in_the_box(d, seed):
    domain, start = cube(d), rng(seed).random(d)
    steps = rng(seed).normal(size=(d, 3))

    def scores(x):  # with cliffs, on which gradients lead astray
        return waves(x) + np.sign(np.sin(20 * x @ steps)).sum(axis=1)

    point, score = polished(scores, start, domain)

    assert score >= scores(start[None])[0]
    assert score == pytest.approx(scores(point[None])[0])
    assert domain.contains(point[None])[0]


def test_a_climb_asks_a_few_dozen_times_each_time_for_all_it_needs():
    asked = []

    def scores(x):
        asked.append(len(x))
        return waves(x)

    polished(scores, np.full(6, 0.8), cube(6))

    assert set(asked) == {13}
    assert len(asked) <= 45


def test_the_same_start_gives_the_same_point():
    found = [polished(waves, np.full(4, 0.8), cube(4)) for _ in range(2)]

    assert np.array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_climb_ends_outside_obstacles(seed):
    domain = with_a_hole()
    start = domain.draw(1, rng(seed))[0]
    asked = []

    def scores(x):
        asked.append(x)
        return hill(np.array([5.0, 5.0]))(x)

    point, score = polished(scores, start, domain)

    assert domain.contains(point[None])[0]
    assert domain.contains(np.concatenate(asked)).all(), "a point in the obstacle was asked for"
    assert score >= scores(start[None])[0]


def test_a_climb_gets_near_the_edge_of_an_obstacle():
    point, _ = polished(hill(np.array([5.0, 5.0])), [0.5, 5.0], with_a_hole())

    assert point == pytest.approx([2.5, 5.0], abs=0.3)


@pytest.mark.parametrize("outside", [-np.inf, np.nan])
def test_no_step_is_taken_to_where_the_score_is_not_finite(outside):
    def scores(x):
        return np.where(x[:, 0] <= 0.6, hill(np.array([0.9, 0.5]))(x), outside)

    point, score = polished(scores, [0.5, 0.2], cube(2))

    assert point[0] <= 0.6
    assert score > scores(np.array([[0.5, 0.2]]))[0]


@pytest.mark.parametrize("scores", [lambda x: np.ones(len(x)), lambda x: np.full(len(x), -np.inf)])
def test_where_there_is_nothing_to_climb_the_start_stays(scores):
    point, score = polished(scores, [0.5, 0.2], cube(2))

    assert point.tolist() == [0.5, 0.2]
    assert score == scores(np.zeros((1, 2)))[0]


def test_the_highest_of_several_hills_is_climbed_to_if_a_start_lies_on_it():
    domain = cube(2)
    rising = differenced(waves, domain)
    starts = np.array([[0.02, 0.02], [0.65, 0.65], [0.02, 0.9]])

    point = climbed(rising, starts, domain)

    each = [waves(climbed(rising, one[None], domain)[None])[0] for one in starts]
    assert waves(point[None])[0] == max(each)
    assert np.ptp(each) > 0.1


def test_a_climb_with_a_gradient_ends_outside_obstacles_too():
    domain = with_a_hole()

    def rising(x):
        return -float((x - 5) @ (x - 5)) / 50, -2 * (x - 5) / 50

    point = climbed(rising, np.array([[0.5, 4.0], [9.0, 9.0]]), domain)

    assert domain.contains(point[None])[0]
    assert rising(point)[0] >= rising(np.array([0.5, 4.0]))[0]


def test_a_start_within_an_obstacle_is_passed_over():
    domain = with_a_hole()
    rising = differenced(hill(np.array([5.0, 5.0])), domain)

    assert domain.contains(climbed(rising, np.array([[5.0, 5.0], [1.0, 1.0]]), domain)[None])[0]


def test_differences_agree_with_the_gradient_and_are_one_sided_at_edges():
    domain = Domain.box([Axis("x", "m", 0, 4), Axis("y", "m", 0, 9)], 8)
    rising = differenced(lambda p: p[:, 0] ** 2 + 3 * p[:, 1], domain)

    assert rising(np.array([2.0, 5.0]))[1] == pytest.approx([4.0, 3.0], rel=1e-6)
    assert rising(np.array([4.0, 0.0]))[1] == pytest.approx([8.0, 3.0], rel=1e-4)


def test_an_outline_that_is_no_box_holds_candidates_and_climbs():
    axes = (Axis("x", "m", 0, 10), Axis("y", "m", 0, 10))
    lake = Polygon([(0, 0), (10, 0), (0, 10)])
    sites = Domain.box(axes, 256).sites
    domain = Domain(axes, sites[sites.sum(axis=1) <= 10], region=lake, continuous=True)

    assert domain.contains(around(domain, rng(), 200, [[1.0, 1.0]])).all()
    point, score = polished(hill(np.array([9.0, 9.0])), [1.0, 1.0], domain)
    assert domain.contains(point[None])[0]
    assert score > -100


def quadratics(centres, widths):
    """Return hills (one a climb) with tops at `centres` (B, d)."""

    def rising(x, which):
        gap = (x - centres[which]) / widths
        return -np.sum(gap**2, axis=1), -2 * gap / widths

    return rising


@settings(deadline=None, max_examples=40, derandomize=True)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 8), count=st.integers(1, 9))
def test_climbs_taken_together_reach_the_tops_of_skewed_hills_or_the_edge_below_them(seed, d, count):
    rng = np.random.default_rng(seed)
    low, extent = rng.normal(size=d), rng.uniform(0.5, 3, d)
    high = low + extent
    centres = low + extent * rng.uniform(-0.5, 1.5, (count, d))
    rising = quadratics(centres, extent * rng.uniform(0.2, 2, d))
    starts = low + extent * rng.random((count, d))
    points, values = climbed_together(rising, starts, low, high, rounds=120)
    np.testing.assert_allclose(points, np.clip(centres, low, high), atol=1e-3 * extent.max())
    np.testing.assert_allclose(values, rising(points, np.arange(count))[0])


def test_a_climb_keeps_pinned_coordinates_to_the_last_digit():
    centres = np.full((2, 3), 0.5)
    pinned = np.array([0.1, 0.1 + 0.2, 1 / 3])
    low, high = np.zeros((2, 3)), np.ones((2, 3))
    low[0, :2] = high[0, :2] = pinned[:2]
    points, _ = climbed_together(quadratics(centres, 1.0), np.full((2, 3), 0.9), low, high)
    assert points[0, :2].tolist() == pinned[:2].tolist()
    np.testing.assert_allclose(points[0, 2], 0.5, atol=1e-6)
    np.testing.assert_allclose(points[1], 0.5, atol=1e-6)


def test_climbs_never_end_below_their_starts_nor_where_a_value_is_not_finite():
    def rising(x, which):
        value = np.where(x[:, 0] > 0.6, np.nan, np.sin(25 * x[:, 0]) + x[:, 0])
        return value, (25 * np.cos(25 * x) + 1)

    starts = np.linspace(0, 0.59, 12)[:, None]
    points, values = climbed_together(rising, starts, [0.0], [1.0])
    assert np.isfinite(values).all()
    assert (values >= rising(starts, None)[0]).all()
    assert (points <= 0.6).all()


def test_each_round_asks_once_and_only_for_climbs_that_go_on():
    asked = []

    def rising(x, which):
        asked.append(len(x))
        return quadratics(np.array([[0.5], [0.5]]), np.ones(1))(x, which)

    climbed_together(rising, [[0.5], [0.9]], [0.0], [1.0], rounds=15)
    assert len(asked) <= 15
    assert asked[0] == 2
    assert set(asked[1:]) == {1}
