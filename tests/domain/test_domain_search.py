"""The search for the best point of a domain: candidates and climbs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import Polygon, box
from tiers import examples

from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.search import around, climbed, differenced, polished


def cube(d, low=0.0, high=1.0):
    return Domain.box([Axis(f"x{k}", "m", low, high) for k in range(d)], 64)


def with_a_hole(fraction=0.5):
    """Return a continuous square of side 10 with a square hole, whose side is a fraction of it."""
    half = 5 * fraction
    axes = (Axis("x", "m", 0, 10), Axis("y", "m", 0, 10))
    region = box(0, 0, 10, 10).difference(box(5 - half, 5 - half, 5 + half, 5 + half))
    sites = Domain.box(axes, 512).sites
    free = Domain(axes, [[0, 0]], region=region).contains(sites)
    return Domain(axes, sites[free], region=region, continuous=True)


def rng(seed=0):
    return np.random.default_rng(seed)


# -- candidates ------------------------------------------------------------------------------------------


@given(st.integers(1, 8), st.integers(1, 300), st.integers(0, 5), st.integers(0, 1000))
@settings(max_examples=examples(40), deadline=None)
def test_the_requested_number_of_candidates_lies_in_the_box(d, n, places, seed):
    domain = cube(d, -2.0, 3.0)

    candidates = around(domain, rng(seed), n, domain.draw(places, rng(seed)))

    assert candidates.shape == (n, d)
    assert np.all((candidates >= domain.low) & (candidates <= domain.high))


def test_equal_seeds_give_equal_candidates_and_other_seeds_others():
    domain, places = cube(6), rng().random((3, 6))

    first, again, other = (around(domain, rng(seed), 200, places) for seed in (1, 1, 2))

    assert np.array_equal(first, again)
    assert not np.array_equal(first[3:], other[3:])


def test_using_a_generator_again_gives_new_candidates():
    domain, generator = cube(2), rng()

    assert not np.array_equal(around(domain, generator, 64), around(domain, generator, 64))


def test_the_places_come_first():
    places = rng().random((3, 4))

    assert np.array_equal(around(cube(4), rng(), 100, places)[:3], places)
    assert np.array_equal(around(cube(4), rng(), 2, places), places[:2])


def test_half_of_the_candidates_are_spread_evenly():
    candidates = around(cube(2), rng(), 512, [[0.1, 0.1]])[1:257]

    counts = np.histogram2d(*candidates.T, bins=4, range=[[0, 1], [0, 1]])[0]
    assert np.all(counts == 16)


def test_the_other_half_lies_around_the_places_near_and_far():
    places = np.array([[0.3, 0.3], [0.7, 0.7]])

    candidates = around(cube(2), rng(), 800, places)[402:]

    gap = np.linalg.norm(candidates[:, None] - places, axis=2)
    to_place = gap[np.arange(len(candidates)), np.arange(len(candidates)) % 2]
    assert len(candidates) == 398
    assert np.quantile(to_place, 0.1) < 0.01
    assert np.quantile(to_place, 0.9) > 0.2


def test_in_many_dimensions_only_some_coordinates_of_a_place_are_changed():
    place = np.full(12, 0.5)

    candidates = around(cube(12), rng(), 1000, [place])[501:]

    changed = (candidates != place).sum(axis=1)
    assert changed.min() == 1
    assert 2 < changed.mean() < 5


def test_candidates_around_a_corner_are_clipped_to_its_edges():
    candidates = around(cube(3), rng(), 200, [[0.0, 1.0, 0.0]])[101:]

    assert np.any(candidates[:, 0] == 0.0)
    assert np.any(candidates[:, 1] == 1.0)


@pytest.mark.parametrize("fraction", [0.3, 0.9, 0.999])
def test_no_candidate_lies_in_an_obstacle_of_any_size(fraction):
    domain = with_a_hole(fraction)

    candidates = around(domain, rng(), 100, [[0.0, 0.0], [5.0, 5.0]])

    assert candidates.shape == (100, 2)
    assert domain.contains(candidates).all()
    assert not np.any(np.all(candidates == 5.0, axis=1)), "a place inside the obstacle is dropped"


# -- the climb -------------------------------------------------------------------------------------------


def hill(top, steep=1.0):
    return lambda x: -steep * np.square(x - top).sum(axis=1)


def waves(x):
    return np.cos(9 * x).sum(axis=1) - np.square(x - 0.4).sum(axis=1)


@pytest.mark.parametrize("d", [1, 2, 6, 12])
@pytest.mark.parametrize("steep", [1e-8, 1.0, 1e8])
def test_a_climb_reaches_the_top_of_a_hill_at_any_scale(d, steep):
    top = np.linspace(0.3, 0.6, d)

    point, score = polished(hill(top, steep), np.full(d, 0.45), cube(d))

    assert point == pytest.approx(top, abs=1e-4)
    assert score == pytest.approx(0.0, abs=1e-6 * steep)


def test_a_climb_scales_axes_of_different_lengths():
    domain = Domain.box([Axis("x", "m", 0, 1e-3), Axis("y", "m", -1e4, 1e4)], 64)

    point, _ = polished(
        lambda p: -np.square((p - [4e-4, 1e3]) / domain.extent).sum(axis=1), [9e-4, 0.0], domain
    )

    assert point == pytest.approx([4e-4, 1e3], rel=1e-3)


def test_a_climb_to_a_top_outside_the_box_ends_at_the_nearest_corner():
    point, _ = polished(hill(np.array([2.0, -1.0, 0.5])), [0.5, 0.5, 0.2], cube(3))

    assert point == pytest.approx([1.0, 0.0, 0.5], abs=1e-5)


@given(st.integers(1, 5), st.integers(0, 10_000))
@settings(max_examples=examples(40), deadline=None)
def test_a_climb_is_never_worse_than_its_start_and_stays_in_the_box(d, seed):
    domain, start = cube(d), rng(seed).random(d)
    steps = rng(seed).normal(size=(d, 3))

    def scores(x):  # with cliffs, where gradients mislead
        return waves(x) + np.sign(np.sin(20 * x @ steps)).sum(axis=1)

    point, score = polished(scores, start, domain)

    assert score >= scores(start[None])[0]
    assert score == pytest.approx(scores(point[None])[0])
    assert domain.contains(point[None])[0]


def test_a_climb_makes_a_few_dozen_calls_with_2_d_plus_1_points_each():
    evaluated = []

    def scores(x):
        evaluated.append(len(x))
        return waves(x)

    polished(scores, np.full(6, 0.8), cube(6))

    assert set(evaluated) == {13}
    assert len(evaluated) <= 45


def test_the_same_start_gives_the_same_point():
    climbs = [polished(waves, np.full(4, 0.8), cube(4)) for _ in range(2)]

    assert np.array_equal(climbs[0][0], climbs[1][0])
    assert climbs[0][1] == climbs[1][1]


@given(st.integers(0, 10_000))
@settings(max_examples=examples(40), deadline=None)
def test_a_climb_ends_outside_obstacles(seed):
    domain = with_a_hole()
    start = domain.draw(1, rng(seed))[0]
    evaluated = []

    def scores(x):
        evaluated.append(x)
        return hill(np.array([5.0, 5.0]))(x)

    point, score = polished(scores, start, domain)

    assert domain.contains(point[None])[0]
    assert domain.contains(np.concatenate(evaluated)).all(), "a point inside the obstacle was evaluated"
    assert score >= scores(start[None])[0]


def test_a_climb_approaches_the_edge_of_an_obstacle():
    point, _ = polished(hill(np.array([5.0, 5.0])), [0.5, 5.0], with_a_hole())

    assert point == pytest.approx([2.5, 5.0], abs=0.3)


@pytest.mark.parametrize("outside", [-np.inf, np.nan])
def test_a_climb_avoids_scores_that_are_not_finite(outside):
    def scores(x):
        return np.where(x[:, 0] <= 0.6, hill(np.array([0.9, 0.5]))(x), outside)

    point, score = polished(scores, [0.5, 0.2], cube(2))

    assert point[0] <= 0.6
    assert score > scores(np.array([[0.5, 0.2]]))[0]


@pytest.mark.parametrize("scores", [lambda x: np.ones(len(x)), lambda x: np.full(len(x), -np.inf)])
def test_a_climb_on_flat_or_infinite_scores_returns_its_start(scores):
    point, score = polished(scores, [0.5, 0.2], cube(2))

    assert point.tolist() == [0.5, 0.2]
    assert score == scores(np.zeros((1, 2)))[0]


def test_climbs_from_several_starts_return_the_highest_top():
    domain = cube(2)
    rising = differenced(waves, domain)
    starts = np.array([[0.02, 0.02], [0.65, 0.65], [0.02, 0.9]])

    point = climbed(rising, starts, domain)

    each = [waves(climbed(rising, start[None], domain)[None])[0] for start in starts]
    assert waves(point[None])[0] == max(each)
    assert np.ptp(each) > 0.1


def test_a_climb_with_a_gradient_ends_outside_obstacles():
    domain = with_a_hole()

    def rising(x):
        return -float((x - 5) @ (x - 5)) / 50, -2 * (x - 5) / 50

    point = climbed(rising, np.array([[0.5, 4.0], [9.0, 9.0]]), domain)

    assert domain.contains(point[None])[0]
    assert rising(point)[0] >= rising(np.array([0.5, 4.0]))[0]


def test_a_start_inside_an_obstacle_is_ignored():
    domain = with_a_hole()
    rising = differenced(hill(np.array([5.0, 5.0])), domain)

    assert domain.contains(climbed(rising, np.array([[5.0, 5.0], [1.0, 1.0]]), domain)[None])[0]


def test_differences_agree_with_the_gradient_and_are_one_sided_at_edges():
    domain = Domain.box([Axis("x", "m", 0, 4), Axis("y", "m", 0, 9)], 8)
    rising = differenced(lambda p: p[:, 0] ** 2 + 3 * p[:, 1], domain)

    assert rising(np.array([2.0, 5.0]))[1] == pytest.approx([4.0, 3.0], rel=1e-6)
    assert rising(np.array([4.0, 0.0]))[1] == pytest.approx([8.0, 3.0], rel=1e-4)


def test_candidates_and_climbs_stay_inside_an_outline():
    axes = (Axis("x", "m", 0, 10), Axis("y", "m", 0, 10))
    lake = Polygon([(0, 0), (10, 0), (0, 10)])
    sites = Domain.box(axes, 256).sites
    domain = Domain(axes, sites[sites.sum(axis=1) <= 10], region=lake, continuous=True)

    assert domain.contains(around(domain, rng(), 200, [[1.0, 1.0]])).all()
    point, score = polished(hill(np.array([9.0, 9.0])), [1.0, 1.0], domain)
    assert domain.contains(point[None])[0]
    assert score > -100
