"""Regions of modules: how they are cut and refined, and the boxes that arms search."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.policies.chains.bandit import arms_of
from fieldbo.policies.chains.boxes import (
    arm_at,
    best_in_box,
    boxes_of,
    first_changed,
    halves,
    pinned,
    refined,
    slice_box,
    within,
)

property_test = settings(deadline=None, max_examples=examples(60), derandomize=True)

shapes = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4)
"""Number of regions and depth of each module but the last."""


@property_test
@given(seed=st.integers(0, 10_000), d=st.integers(1, 4), parts=st.integers(1, 5))
def test_slices_cover_the_box_and_overlap_only_at_their_edges(seed, d, parts):
    rng = np.random.default_rng(seed)
    low, extent = rng.normal(size=d), rng.uniform(0.1, 9.0, d)
    regions = slice_box(low, low + extent, int(rng.integers(d)), parts)
    points = low + rng.random((50, d)) * extent
    assert (sum(within(points, *region).astype(int) for region in regions) == 1).all()
    volumes = np.prod(regions[:, 1] - regions[:, 0], axis=1)
    np.testing.assert_allclose(volumes, np.prod(extent) / parts)


def test_a_region_is_halved_across_its_longest_side_in_the_given_unit():
    region = np.array([[0.0, 0.0], [1.0, 8.0]])
    assert halves(region)[:, :, 1].tolist() == [[0.0, 4.0], [4.0, 8.0]]
    assert halves(region, [1.0, 10.0])[:, :, 0].tolist() == [[0.0, 0.5], [0.5, 1.0]]
    assert halves(np.array([[0.0, 0.0], [1.0, 1.0]]))[:, :, 0].tolist() == [[0.0, 0.5], [0.5, 1.0]]


def lines(*counts):
    return [slice_box(np.zeros(1), np.ones(1), 0, n) for n in counts]


@property_test
@given(shape=shapes, seed=st.integers(0, 10_000))
def test_refined_arms_cover_what_the_survivors_covered(shape, seed):
    arms = arms_of([n for n, _ in shape])
    rng = np.random.default_rng(seed)
    regions = lines(*(n for n, _ in shape))
    keep = np.flatnonzero(rng.random(len(arms)) < 0.5)
    keep = keep if len(keep) else np.array([0])
    finer = refined(regions, arms, keep)
    assert len(finer.arms) == len(keep) * 2 ** len(shape)
    assert finer.arms.tolist() == sorted(finer.arms.tolist())
    columns = [(m,) for m in range(len(shape) + 1)]
    for point in rng.random((20, len(shape) + 1)):
        old, new = (
            arm_at(arms[keep], regions, columns, point),
            arm_at(finer.arms, finer.regions, columns, point),
        )
        assert (old is None) == (new is None)
        if old is not None:
            assert finer.parents[new] == keep[old]


def test_regions_that_no_surviving_arm_uses_are_dropped():
    finer = refined(lines(4), arms_of([4]), np.array([1, 3]))
    assert finer.regions[0].ravel().tolist() == [0.25, 0.375, 0.375, 0.5, 0.75, 0.875, 0.875, 1.0]
    assert finer.arms.ravel().tolist() == [0, 1, 2, 3]
    assert finer.parents.tolist() == [1, 1, 3, 3]


# -- where a next point may lie --------------------------------------------------------------------------


def test_the_first_changed_module_decides_what_is_held():
    regions, columns = lines(2, 2), [(0,), (2,), (1, 3)]
    arms, position = arms_of([2, 2]), np.array([0.1, 0.2, 0.3, 0.4])
    changed = first_changed(arms, [0, 0])
    assert changed.tolist() == [2, 1, 0, 0]
    low, high = boxes_of(arms, regions, columns, changed, position, np.zeros(4), np.ones(4))
    assert (low[0].tolist(), high[0].tolist()) == ([0.1, 0.0, 0.3, 0.0], [0.1, 1.0, 0.3, 1.0])
    assert (low[1].tolist(), high[1].tolist()) == ([0.1, 0.0, 0.5, 0.0], [0.1, 1.0, 1.0, 1.0])
    assert (low[2].tolist(), high[2].tolist()) == ([0.5, 0.0, 0.0, 0.0], [1.0, 1.0, 0.5, 1.0])


def test_all_modules_move_without_a_previous_arm():
    assert first_changed(arms_of([2, 2]), None).tolist() == [0, 0, 0, 0]


@property_test
@given(seed=st.integers(0, 10_000), m=st.integers(0, 3))
def test_coordinates_of_earlier_modules_are_held(seed, m):
    rng = np.random.default_rng(seed)
    position, columns = rng.random(5), [(3,), (0, 4), (1,), (2,)]
    low, high = pinned(np.zeros(5), np.ones(5), columns, m, position)
    held = sorted(axis for own in columns[:m] for axis in own)
    assert np.flatnonzero(low == high).tolist() == held
    np.testing.assert_array_equal(low[held], position[held])


def test_the_best_point_in_a_box_has_the_least_loss_and_the_box_includes_its_edge():
    points = np.array([[0.5], [0.6], [2.0]])
    assert best_in_box(points, np.array([3.0, 3.0, 0.0]), np.array([0.5]), np.array([1.0])) == 0
    assert best_in_box(points, np.zeros(3), np.array([3.0]), np.array([4.0])) is None
