"""Quasi-random points are those of scipy.stats, to the last digit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import qmc

from fieldbo._numerics.streams import sobol
from fieldbo.domain.controls import halton


@pytest.mark.parametrize("d", range(1, 19))
def test_sobol_points_are_those_of_scipy(d):
    ours, theirs = np.random.default_rng([7, d]), np.random.default_rng([7, d])

    assert_array_equal(sobol(d, ours).random(128), qmc.Sobol(d, rng=theirs).random(128))
    assert ours.integers(2**60) == theirs.integers(2**60)


def test_sobol_points_continue_where_they_stopped():
    whole, parts = sobol(3, np.random.default_rng(1)), sobol(3, np.random.default_rng(1))

    assert_array_equal(whole.random(16), np.concatenate([parts.random(n) for n in (1, 0, 2, 13)]))


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5000, 1), (64, 40)])
def test_halton_points_are_those_of_scipy(n, d):
    theirs = qmc.Halton(d, scramble=False)
    theirs.fast_forward(1)

    assert_array_equal(halton(n, d), theirs.random(n))
