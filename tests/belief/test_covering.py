"""What readings cover: sizes of patches, reaches, leads, and the spacing of a sweep."""

from itertools import pairwise

import numpy as np
import pytest

from fieldbo.belief.covering import Covering, Readings, sweep_spacing, yardsticks
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain


def wall(width=40.0, height=20.0, counts=(41, 21)):
    return Domain.grid([Axis("x", "m", 0, width), Axis("y", "m", 0, height)], counts)


def covering_of(sites, values, spacing=8.0, sd=0.1, domain=None, **options):
    sites = np.array(sites, dtype=float).reshape(-1, 2)
    domain = wall() if domain is None else domain
    noise = np.full(len(sites), sd**2)
    readings = Readings.of(domain, sites, np.array(values, dtype=float), noise, sd)
    return Covering(domain, readings, spacing, **options)


def row_of(covering, x, y):
    return int(np.argmin(np.abs(wall().sites - [x, y]).sum(axis=1)))


# -- how far a quiet reading covers ----------------------------------------------------------------------


def test_a_quiet_reading_covers_up_to_the_largest_patch_and_in_full_up_to_the_smallest():
    covering = covering_of([[10, 10], [30, 10]], [0.0, 0.0], plain=True)
    for distance, share in ((0, 1.0), (4, 1.0), (8, 0.5), (16, 0.0)):
        alone = covering.seen(np.array([float(distance**2)]))
        assert alone == pytest.approx([share])
    assert covering.covered[row_of(covering, 18, 10)] == pytest.approx(0.5)
    assert covering.covered[row_of(covering, 14, 10)] == 1.0


def test_a_reading_that_stands_out_covers_less():
    covering = covering_of([[10, 10], [30, 10]], [0.0, 5.0])
    quiet, high = (covering.covered[row_of(covering, x, 10)] for x in (14, 34))
    assert quiet == 1.0
    assert high < 0.5


def test_without_readings_nothing_is_covered_and_every_share_of_the_domain_weighs_alike():
    covering = covering_of([], [])
    assert not covering.covered.any()
    assert covering.hidden.sum() == pytest.approx(1.0)
    assert covering.plain


def test_before_the_model_knows_the_scale_only_distances_count():
    plain = covering_of([[10, 10], [30, 10]], [0.0, 5.0], plain=True)
    other = covering_of([[10, 10], [30, 10]], [1.0, 1.0], plain=True)
    assert (plain.covered == other.covered).all()
    assert plain.weights.sum() == pytest.approx(1.0)


def test_readings_of_one_site_count_as_one():
    twice = covering_of([[10, 10], [10, 10], [30, 10]], [0.0, 1.0, 0.0])
    once = covering_of([[10, 10], [30, 10]], [0.5, 0.0])
    assert twice.readings.size == 2
    assert twice.hidden == pytest.approx(once.hidden)


# -- what hides ------------------------------------------------------------------------------------------


def test_the_level_is_that_of_the_domain_not_that_of_the_readings():
    crowded = [[x, 10] for x in np.linspace(0, 4, 9)]
    covering = covering_of([*crowded, [30, 10]], [1.0] * 9 + [0.0])
    assert covering.level < 0.5
    assert covering.spread == pytest.approx(covering.level * (1 - covering.level), rel=0.01)


def test_a_lead_attracts_and_the_best_reading_does_only_if_asked_for():
    sites, values = [[5, 10], [20, 10], [35, 10]], [3.0, 0.0, 2.0]
    covering = covering_of(sites, values)
    leads = covering.leads()
    assert leads.sum() == pytest.approx(np.exp((2.0 - 3.0) / covering.tail))
    assert wall().sites[np.argmax(leads)].tolist() == [35, 10]
    assert covering.leads(with_best=True).sum() == pytest.approx(1.0 + leads.sum())


def test_values_that_noise_explains_are_no_leads():
    assert not covering_of([[5, 10], [20, 10], [35, 10]], [0.1, 0.0, 0.05]).leads().any()


def test_what_hides_gets_less_with_every_reading():
    rng = np.random.default_rng(0)
    sites = rng.uniform(0, 1, (40, 2)) * [40, 20]
    hidden = [covering_of(sites[:n], np.zeros(n)).hidden.sum() for n in range(0, 41, 5)]
    assert all(b < a for a, b in pairwise(hidden))


def test_equal_readings_without_spread_are_no_trouble():
    covering = covering_of([[10, 10], [30, 10]], [1.0, 1.0], sd=0.0)
    assert np.isfinite(covering.hidden).all()
    assert covering.tail > 0


def test_thousands_of_readings_on_the_way_cover_what_a_few_in_their_place_do():
    rng = np.random.default_rng(0)
    along = np.column_stack([np.linspace(0, 40, 30_000), np.full(30_000, 10.0)])
    many = covering_of(along, 0.05 * rng.standard_normal(30_000), plain=True)
    few = covering_of(along[::1000], np.zeros(30), plain=True)
    assert many.readings.size < 50
    assert many.covered == pytest.approx(few.covered, abs=0.1)


# -- the spacing of a sweep ------------------------------------------------------------------------------


def walking(start, sites):
    return 0.5 * np.linalg.norm(sites - start, axis=1) + 6.0


@pytest.mark.parametrize("budget", [300.0, 1000.0, 4000.0])
def test_a_sweep_with_the_spacing_takes_the_budget(budget):
    domain = wall(counts=(81, 41))
    h = sweep_spacing(domain, walking, budget)
    assert 800.0 / h**2 * (0.5 * h + 6.0) == pytest.approx(budget, rel=0.03)


def test_a_narrow_strip_is_swept_in_a_line():
    strip = wall(1000.0, 2.0, (501, 3))
    h = sweep_spacing(strip, walking, 1000.0)
    assert 1000.0 / h * (0.5 * h + 6.0) == pytest.approx(1000.0, rel=0.03)


def test_the_spacing_lies_between_that_of_the_sites_and_the_whole_domain():
    assert sweep_spacing(wall(), walking, 1e9) == pytest.approx(1.0)
    assert sweep_spacing(wall(), walking, 1e-9) == pytest.approx(np.hypot(40, 20))
    alone = Domain.grid([Axis("x", "m", 0, 4)], (1,))
    assert sweep_spacing(alone, walking, 10.0) == 1.0


def test_obstacles_leave_less_to_sweep():
    from fieldbo.domain.obstacles import Obstacle

    half = Domain.grid(wall().axes, (41, 21), obstacles=[Obstacle("dock", (0, 0), (20, 20))])
    assert sweep_spacing(half, walking, 500.0) < sweep_spacing(wall(), walking, 500.0)


def test_axes_of_different_kinds_are_measured_by_their_length():
    pair = Domain.grid([Axis("T", "K", 300, 400), Axis("p", "bar", 1, 3)], (3, 3))
    assert yardsticks(pair).tolist() == [100.0, 2.0]
    lake = Domain.grid([Axis("along", "m", 0, 900), Axis("depth", "m", 0, 20, "down")], (3, 3))
    assert yardsticks(lake).tolist() == [900.0, 20.0]
