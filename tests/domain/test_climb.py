"""Quasi-Newton climbs that run together."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.domain.search import climb_together


def quadratics(centres, widths):
    """Return hills, one per climb, with tops at `centres` (B, d)."""

    def rising(x, which):
        gap = (x - centres[which]) / widths
        return -np.sum(gap**2, axis=1), -2 * gap / widths

    return rising


@settings(deadline=None, max_examples=examples(40), derandomize=True)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 8), count=st.integers(1, 9))
def test_climbs_reach_the_tops_of_skewed_hills_or_the_edge_below_them(seed, d, count):
    rng = np.random.default_rng(seed)
    low, extent = rng.normal(size=d), rng.uniform(0.5, 3, d)
    high = low + extent
    centres = low + extent * rng.uniform(-0.5, 1.5, (count, d))
    rising = quadratics(centres, extent * rng.uniform(0.2, 2, d))
    starts = low + extent * rng.random((count, d))
    points, values = climb_together(rising, starts, low, high, rounds=120)
    np.testing.assert_allclose(points, np.clip(centres, low, high), atol=1e-3 * extent.max())
    np.testing.assert_allclose(values, rising(points, np.arange(count))[0])


def test_a_climb_keeps_every_digit_of_fixed_coordinates():
    centres = np.full((2, 3), 0.5)
    pinned = np.array([0.1, 0.1 + 0.2, 1 / 3])
    low, high = np.zeros((2, 3)), np.ones((2, 3))
    low[0, :2] = high[0, :2] = pinned[:2]
    points, _ = climb_together(quadratics(centres, 1.0), np.full((2, 3), 0.9), low, high)
    assert points[0, :2].tolist() == pinned[:2].tolist()
    np.testing.assert_allclose(points[0, 2], 0.5, atol=1e-6)
    np.testing.assert_allclose(points[1], 0.5, atol=1e-6)


def test_climbs_never_end_below_their_starts_or_at_a_value_that_is_not_finite():
    def rising(x, which):
        value = np.where(x[:, 0] > 0.6, np.nan, np.sin(25 * x[:, 0]) + x[:, 0])
        return value, (25 * np.cos(25 * x) + 1)

    starts = np.linspace(0, 0.59, 12)[:, None]
    points, values = climb_together(rising, starts, [0.0], [1.0])
    assert np.isfinite(values).all()
    assert (values >= rising(starts, None)[0]).all()
    assert (points <= 0.6).all()


def test_each_round_evaluates_once_and_only_the_climbs_that_continue():
    sizes = []

    def rising(x, which):
        sizes.append(len(x))
        return quadratics(np.array([[0.5], [0.5]]), np.ones(1))(x, which)

    climb_together(rising, [[0.5], [0.9]], [0.0], [1.0], rounds=15)
    assert len(sizes) <= 15
    assert sizes[0] == 2
    assert set(sizes[1:]) == {1}
