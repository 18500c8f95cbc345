"""Scores of an answer: edge cases, and agreement of what is expected with what is drawn."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score as reference_f1
from sklearn.metrics import precision_score, recall_score
from tiers import examples

from fieldbo.belief.confidence import (
    chance_of_none,
    confidence,
    drawn_scores,
    expected_f1,
    optimum_confidence,
    value_at,
)
from fieldbo.belief.kernels import Matern52, SquaredExponential
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.results.metrics import (
    F1,
    REGRET,
    cost_to_target,
    coverage,
    doubtful,
    f1_score,
    match,
    score_at_costs,
)

GRID = np.stack(np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 1, 12)), axis=-1).reshape(-1, 2)
property_test = settings(deadline=None, max_examples=examples(60), derandomize=True)


def surface(seed=0, n=12, candidates=GRID):
    rng = np.random.default_rng(seed)
    belief = Belief(Matern52([0.3, 0.3])).condition_on(rng.random((n, 2)), rng.normal(size=n), 0.01)
    return Surface(belief, candidates)


@property_test
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_f1_agrees_with_scikit_learn_and_is_symmetric(pairs):
    predicted, true = np.array(pairs).T
    expected = reference_f1(true, predicted, zero_division=1.0)
    assert f1_score(predicted, true) == pytest.approx(expected)
    assert f1_score(true, predicted) == f1_score(predicted, true)


@property_test
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_precision_and_recall_agree_with_scikit_learn_and_f1_is_their_harmonic_mean(pairs):
    predicted, true = np.array(pairs).T
    found = match(predicted, true)
    assert found.precision == pytest.approx(precision_score(true, predicted, zero_division=1.0))
    assert found.recall == pytest.approx(recall_score(true, predicted, zero_division=1.0))
    both = found.precision + found.recall
    assert found.f1 == pytest.approx(2 * found.precision * found.recall / both if both else 0.0)


@pytest.mark.parametrize(
    ("predicted", "true", "expected"),
    [
        ([0, 0], [0, 0], 1.0),
        ([1, 1], [1, 1], 1.0),
        ([1, 0], [0, 1], 0.0),
        ([0, 0], [1, 0], 0.0),
        ([1, 0], [0, 0], 0.0),
        ([1, 1, 0], [1, 0, 0], 2 / 3),
    ],
)
def test_f1_of_empty_equal_and_disjoint_sets(predicted, true, expected):
    assert f1_score(predicted, true) == pytest.approx(expected)


@property_test
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_expected_f1_of_a_certain_belief_is_its_f1(pairs):
    predicted, true = np.array(pairs).T
    assume(predicted.any())
    assert expected_f1(predicted, true.astype(float)) == pytest.approx(f1_score(predicted, true))


def test_expected_f1_is_the_ratio_of_expectations():
    p = np.array([0.9, 0.6, 0.3, 0.0])
    assert expected_f1(p >= 0.5, p) == pytest.approx(2 * 1.5 / (2 + 1.8))


@pytest.mark.parametrize("seed", range(4))
def test_the_chance_of_an_empty_set_is_that_of_the_whole_field(seed):
    s = surface(seed)
    threshold = float(s.mean.max() + s.sd.max())
    drawn = drawn_scores(s, threshold, np.random.default_rng(seed))
    chance = chance_of_none(s, threshold, np.random.default_rng(seed))
    assert chance == pytest.approx(np.mean(drawn.share == 0.0), abs=0.15)
    assert chance_of_none(s, float(s.mean.max() + 20.0), np.random.default_rng(seed)) == 1.0


@pytest.mark.parametrize("seed", range(12))
def test_confidence_intervals_contain_the_expected_value(seed):
    s = surface(seed)
    found = confidence(s, float(np.quantile(s.mean, 0.6)), np.random.default_rng(seed))
    for interval in (found.f1, found.share_above):
        assert 0.0 <= interval.low <= interval.value <= interval.high <= 1.0
        assert interval.low < interval.high


def test_expected_values_of_a_confidence_are_the_means_of_draws():
    s, h = surface(), 0.1
    found = confidence(s, h, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal(s.mean, s.covariance(), size=4000) >= h
    above = s.mean >= h
    assert found.share_above.value == pytest.approx(draws.mean(), abs=0.01)
    scores = [f1_score(above, truth) for truth in draws]
    assert found.f1.value == pytest.approx(np.mean(scores), abs=0.02)
    np.testing.assert_allclose([found.f1.low, found.f1.high], np.quantile(scores, [0.05, 0.95]), atol=0.04)


def test_a_confidence_narrows_with_readings_to_certainty():
    wide = surface(n=3)
    sure = wide.copy()
    sure.append(GRID, np.sin(6 * GRID[:, 0]), 1e-8)
    before, after = (confidence(s, 0.45, np.random.default_rng(0)).f1 for s in (wide, sure))
    assert after.high - after.low < 0.01 < before.high - before.low
    assert after.value > 0.99 > before.value


def test_a_confidence_on_many_sites_samples_some_and_depends_only_on_its_stream():
    many = surface(candidates=np.random.default_rng(0).random((2400, 2)))
    h = float(np.median(many.mean))
    one, two = (confidence(many, h, np.random.default_rng(7)) for _ in range(2))
    assert one == two
    assert one.f1.low <= one.f1.value <= one.f1.high
    assert one.share_above.value == pytest.approx(many.exceedance(h).mean())


def test_unclassified_counts_sites_whose_threshold_is_within_1_96_standard_deviations():
    s = surface()
    s.mean[:] = 0.0
    s.mean[: len(GRID) // 4] = 5.0
    s.variance[:] = 1.0
    assert np.mean(doubtful(s.exceedance(0.0))) == 0.75
    assert np.mean(doubtful(s.exceedance(1.959))) == 0.75
    assert np.mean(doubtful(s.exceedance(1.961))) == 0.0
    assert np.mean(doubtful(s.exceedance(-5.0))) == 0.0


@property_test
@given(
    steps=st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), max_size=12),
    at=st.lists(st.floats(-5, 120), min_size=1, max_size=8),
)
def test_the_score_at_a_cost_is_the_last_one_reached_by_then(steps, at):
    costs, scores = np.cumsum([c for c, _ in steps]), [s for _, s in steps]
    found = score_at_costs(costs, scores, at)
    for a, score in zip(at, found, strict=True):
        paid = [s for c, s in zip(costs, scores, strict=True) if c <= a]
        assert (score == paid[-1]) if paid else np.isnan(score)


def test_of_two_scores_at_the_same_cost_the_later_counts():
    assert score_at_costs([1, 2, 2], [0.1, 0.2, 0.3], [2]).tolist() == [0.3]
    assert np.isnan(score_at_costs([], [], [1.0, 2.0])).tolist() == [True, True]


def test_coverage_includes_the_ends_in_either_order():
    truth, low, high = np.array([0.0, 1.0, 2.0, 3.0, np.nan]), np.full(5, 1.0), np.full(5, 2.0)
    assert coverage(truth, low, high) == coverage(truth, high, low) == 0.4


def test_about_nine_tenths_of_a_well_calibrated_belief_s_intervals_hold_the_truth():
    rng = np.random.default_rng(0)
    shares = []
    for seed in range(20):
        s = surface(seed)
        truth = rng.multivariate_normal(s.mean, s.covariance(), method="svd")
        shares.append(coverage(truth, s.mean - 1.645 * s.sd, s.mean + 1.645 * s.sd))
    assert np.mean(shares) == pytest.approx(0.9, abs=0.03)


@property_test
@given(
    steps=st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), max_size=12),
    target=st.floats(0, 1),
)
def test_the_cost_to_a_target_is_that_of_the_first_score_that_reaches_it(steps, target):
    costs, scores = np.cumsum([c for c, _ in steps]), [s for _, s in steps]
    reached = [c for c, s in zip(costs, scores, strict=True) if s >= target]
    found = F1.cost_to(costs, scores, target)
    assert (found == reached[0]) if reached else np.isnan(found)
    fallen = [c for c, s in zip(costs, scores, strict=True) if s <= target]
    found = REGRET.cost_to(costs, scores, target)
    assert (found == fallen[0]) if fallen else np.isnan(found)


def test_unknown_scores_reach_no_target():
    assert np.isnan(cost_to_target([1, 2], [np.nan, np.nan], 0.0))
    assert np.isnan(cost_to_target([], [], 0.5))


@pytest.mark.parametrize(
    "scale", [ValueScale(), ValueScale(shift=3.0, scale=-2.0), ValueScale("log")], ids=str
)
def test_expected_values_of_an_optimum_s_confidence_are_the_means_of_draws_in_the_user_s_unit(scale):
    s = surface()
    best = int(np.argmax(s.mean))
    found = optimum_confidence(s, GRID[best], scale, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal(s.mean, s.covariance(), size=4000)
    top, there = scale.to_user(draws.max(axis=1)), scale.to_user(draws[:, best])
    spread = np.abs(top - there).std()
    assert found.regret.value == pytest.approx(np.abs(top - there).mean(), abs=0.2 * spread)
    assert found.optimum.value == pytest.approx(top.mean(), abs=0.2 * top.std())
    assert found.optimum.low == pytest.approx(np.quantile(top, 0.05), abs=0.3 * top.std())
    assert found.value.value == pytest.approx(float(scale.to_user(s.mean[best])))
    assert found.value.low == pytest.approx(np.quantile(there, 0.05), abs=0.1 * there.std())
    assert found.value.high == pytest.approx(np.quantile(there, 0.95), abs=0.15 * there.std())
    for interval in (found.regret, found.value, found.optimum):
        assert interval.low <= interval.value <= interval.high


def test_the_reported_optimum_may_lie_between_many_sites():
    s = surface(candidates=np.random.default_rng(0).random((2400, 2)))
    one, two = (
        optimum_confidence(s, np.array([0.51, 0.49]), ValueScale(), np.random.default_rng(7)) for _ in "ab"
    )
    assert one == two
    assert one.value.value == pytest.approx(float(s.belief.mean([[0.51, 0.49]])[0]))
    assert one.regret.low >= 0


def test_points_that_are_known_exactly_do_not_lift_the_expected_optimum():
    rng = np.random.default_rng(0)
    sites = np.concatenate([4 * rng.random((30, 2)) - 2, 0.1 * rng.standard_normal((30, 2)), [[0.0, 0.0]]])
    belief = Belief(Matern52([4.0, 4.0], 20.0)).condition_on(sites, -(sites**2).sum(axis=1), 0.0)
    near = 0.02 * rng.standard_normal((600, 2))
    found = optimum_confidence(Surface(belief, near), sites[-1], ValueScale(), rng)
    exact = belief.sample(np.concatenate([sites[-1:], near]), 256, rng)
    expected = np.quantile(exact.max(axis=1), [0.05, 0.95])
    spread = float(np.ptp(expected))
    np.testing.assert_allclose([found.optimum.low, found.optimum.high], expected, atol=0.3 * spread)
    assert found.regret.value == pytest.approx(np.mean(exact.max(axis=1) - exact[:, 0]), abs=0.2 * spread)


def test_of_many_sites_those_that_may_hold_the_optimum_are_drawn():
    rng = np.random.default_rng(0)
    read, unread = np.arange(10.0)[:, None], np.array([[50.0], [60.0], [70.0]])
    belief = Belief(Matern52([1.0])).condition_on(read, np.zeros(10), 1e-6)
    sites = np.concatenate([read[rng.integers(10, size=9000)] + 1e-3 * rng.random((9000, 1)), unread])
    found = optimum_confidence(Surface(belief, sites), read[0], ValueScale(), rng).optimum
    expected = np.quantile(rng.standard_normal((100_000, 3)).max(axis=1).clip(0.0), [0.05, 0.95])
    np.testing.assert_allclose([found.low, found.high], expected, atol=0.3)


@pytest.mark.parametrize(
    "kernel", [SquaredExponential([0.1, 0.1]), Matern52([0.2, 0.2])], ids=["se", "matern"]
)
def test_an_optimum_is_sought_wherever_it_may_be(kernel):
    rng = np.random.default_rng(0)
    sites = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, 50)]), axis=-1).reshape(-1, 2)
    read = rng.random((10, 2))
    belief = Belief(kernel).condition_on(read, rng.standard_normal(10), 1e-6)
    found = optimum_confidence(Surface(belief, sites), read[0], ValueScale(), rng).optimum
    expected = np.quantile(belief.sample(sites[::2], 1000, rng).max(axis=1), [0.05, 0.95])
    np.testing.assert_allclose([found.low, found.high], expected, atol=0.2)


def test_of_many_sites_the_reported_one_is_drawn_even_if_others_may_be_better():
    sites = np.random.default_rng(0).random((2400, 2))
    belief = Belief(Matern52([0.01, 0.01])).condition_on(sites[:1], [0.1], 1e-6)
    found = optimum_confidence(Surface(belief, sites), sites[0], ValueScale(), np.random.default_rng(0))
    assert found.value.value == pytest.approx(0.1, abs=1e-3)
    assert found.regret.value == pytest.approx(found.optimum.value - 0.1, abs=1e-3)


def test_a_value_whose_deviation_is_lost_in_rounding_is_certain():
    belief = Belief(Matern52([0.3, 0.3])).condition_on(np.zeros((1, 2)), [1e20], 0.01)
    there = value_at(Surface(belief, np.zeros((1, 2))), ValueScale())
    assert there.low == there.value == there.high


@pytest.mark.slow
def test_thousands_of_unlikely_sites_are_not_surely_outside():
    """Each site is in the set with a probability below 1e-4, but one draw in five has such a site."""
    sites = np.stack(np.meshgrid(*2 * [np.arange(50.0)]), axis=-1).reshape(-1, 2)
    belief = Belief(SquaredExponential([1.0, 1.0])).condition_on([[0.0, 0.0]], [0.0], 1e-6)
    surface = Surface(belief, sites)
    found = confidence(surface, 3.75, np.random.default_rng(0))
    high = belief.sample(sites, 1000, np.random.default_rng(1)).max(axis=1) >= 3.75
    assert surface.exceedance(3.75).max() < 1e-4
    assert found.f1.value == pytest.approx(1.0 - high.mean(), abs=0.1)
    assert found.f1.low == 0.0
    assert 1.0 - high.mean() - 0.05 < chance_of_none(surface, 3.75, np.random.default_rng(0)) < 1.0
    assert chance_of_none(surface, -9.0, np.random.default_rng(0)) == 0.0
