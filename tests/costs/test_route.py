"""The order in which a batch visits its sites."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.costs.base import Unit
from fieldbo.costs.travel import Euclidean, Transect, shortest_order


def length(cost, start, sites, order):
    points = np.vstack([start, sites[list(order)]])
    return sum(cost.travel(a, b[None])[0] for a, b in pairwise(points))


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 6), transect=st.booleans())
@example(seed=790, k=6, transect=True)
def test_the_order_of_a_few_sites_is_the_shortest(seed, k, transect):
    rng = np.random.default_rng(seed)
    start, sites = rng.random(2), rng.random((k, 2))
    cost = Transect() if transect else Euclidean()
    order = shortest_order(cost, start, sites)
    best = min(length(cost, start, sites, p) for p in permutations(range(k)))

    assert sorted(order) == list(range(k))
    assert length(cost, start, sites, order) == pytest.approx(best, abs=1e-9)


@settings(max_examples=examples(20), deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(9, 14))
def test_the_order_of_many_sites_is_no_longer_than_always_going_to_the_nearest(seed, k):
    rng = np.random.default_rng(seed)
    start, sites = rng.random(2), rng.random((k, 2))
    order = shortest_order(Euclidean(), start, sites)
    at, left, nearest = start, list(range(k)), []
    while left:
        nearest.append(left.pop(int(np.argmin(Euclidean().travel(at, sites[left])))))
        at = sites[nearest[-1]]

    assert sorted(order) == list(range(k))
    assert length(Euclidean(), start, sites, order) <= length(Euclidean(), start, sites, nearest) + 1e-9


def test_on_a_line_the_shortest_order_may_turn_back():
    sites = np.array([[5.0], [-1.0], [3.0], [9.0]])

    assert shortest_order(Euclidean(), np.array([0.0]), sites) == [1, 2, 0, 3]


@pytest.mark.parametrize("k", [1, 4, 10])
def test_if_travel_is_free_the_order_does_not_change(k):
    assert shortest_order(Unit(), np.zeros(2), np.random.default_rng(0).random((k, 2))) == list(range(k))
