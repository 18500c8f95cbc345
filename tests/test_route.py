"""The order in which a batch is carried out."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldbo.costs import Euclidean, Transect, Unit, shortest_order


def length(cost, start, sites, order):
    way = np.vstack([start, sites[list(order)]])
    return sum(cost.travel(a, b[None])[0] for a, b in pairwise(way))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 6), transect=st.booleans())
def test_an_order_is_close_to_the_shortest(seed, k, transect):
    rng = np.random.default_rng(seed)
    start, sites = rng.random(2), rng.random((k, 2))
    cost = Transect() if transect else Euclidean()
    order = shortest_order(cost, start, sites)
    best = min(length(cost, start, sites, p) for p in permutations(range(k)))

    assert sorted(order) == list(range(k))
    assert length(cost, start, sites, order) <= 1.25 * best + 1e-6


def test_on_a_line_the_way_there_and_back_is_found():
    sites = np.array([[5.0], [-1.0], [3.0], [9.0]])

    assert shortest_order(Euclidean(), np.array([0.0]), sites) == [1, 2, 0, 3]


@pytest.mark.parametrize("k", [1, 4])
def test_where_travel_is_free_the_order_stays(k):
    assert shortest_order(Unit(), np.zeros(2), np.random.default_rng(0).random((k, 2))) == list(range(k))
