"""Arms as products of regions: their tree, how they are drawn, and what they learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples
from work import bytes_taken, lines_run

from fieldbo.errors import InputError
from fieldbo.policies.chains.bandit import (
    arms_of,
    bandit_losses,
    depth_recipe,
    drawn,
    families,
    first_down,
    heights,
    log_conditional,
    log_total,
    normalised,
    smoothed,
    steps_below,
    surviving,
    updated,
)
from fieldbo.results.metrics import movement_regret

property_test = settings(deadline=None, max_examples=examples(60), derandomize=True)

shapes = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4)
"""Number of regions and depth of each module but the last."""

small_shapes = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3)


def a_tree(shape):
    return arms_of([n for n, _ in shape]), [d for _, d in shape]


def some_log_p(rng, K, spread=3.0):
    return normalised(rng.normal(0.0, spread, K))


def coins_of(rng, depths):
    return rng.choice([-1, 1], int(heights(depths)[0]))


def by_the_book(log_p, losses, sigma, arms, depths, eta):
    """Eqs. 4 and 5 as they are printed, arm by arm."""
    s, K, p = heights(depths), len(arms), np.exp(log_p)
    before, total = losses, losses + sigma[0] * losses
    for h in range(1, len(sigma)):
        level = np.empty(K)
        for i in range(K):
            A = [j for j in range(K) if all(arms[i][m] == arms[j][m] for m in range(len(s)) if s[m] > h)]
            level[i] = (
                -np.log(
                    sum(p[j] * np.exp(-eta * (1 + sigma[h - 1]) * before[j]) for j in A)
                    / sum(p[j] for j in A)
                )
                / eta
            )
        before, total = level, total + sigma[h] * level
    return total


# -- the tree --------------------------------------------------------------------------------------------


@property_test
@given(shape=shapes)
def test_arms_are_all_products_in_lexicographic_order(shape):
    arms, _ = a_tree(shape)
    assert len(arms) == np.prod([n for n, _ in shape])
    assert arms.tolist() == sorted(arms.tolist())
    assert len(np.unique(arms, axis=0)) == len(arms)


@property_test
@given(shape=shapes)
def test_families_begin_with_single_arms_grow_together_and_end_as_one(shape):
    arms, depths = a_tree(shape)
    H = int(heights(depths)[0])
    assert sum(depths) == H
    assert len(set(families(arms, depths, 0))) == len(arms)
    assert set(families(arms, depths, H)) == {0}
    for h in range(H):
        low, high = families(arms, depths, h), families(arms, depths, h + 1)
        assert len(set(zip(low, high, strict=True))) == len(set(low))  # nobody leaves its family


@property_test
@given(shape=shapes, seed=st.integers(0, 10_000))
def test_a_family_agrees_on_every_module_that_branches_above_it(shape, seed):
    arms, depths = a_tree(shape)
    rng, s = np.random.default_rng(seed), heights(depths)
    h = int(rng.integers(s[0] + 1))
    family = families(arms, depths, h)
    i, j = rng.integers(len(arms), size=2)
    assert (family[i] == family[j]) == bool(np.all(arms[i][s > h] == arms[j][s > h]))


def test_the_deeper_the_first_module_the_more_rarely_it_may_change():
    rng = np.random.default_rng(0)
    for depth, share in ((1, 0.5), (3, 0.125)):
        coins = rng.choice([-1, 1], (20_000, depth + 1))
        free = [first_down(row) > depth for row in coins]  # only then all arms are one family
        assert np.mean(free) == pytest.approx(share / 2, abs=0.01)


# -- drawing ---------------------------------------------------------------------------------------------


@property_test
@given(shape=shapes, seed=st.integers(0, 10_000))
def test_the_conditional_is_the_distribution_within_the_family(shape, seed):
    arms, depths = a_tree(shape)
    rng = np.random.default_rng(seed)
    log_p = some_log_p(rng, len(arms))
    family = families(arms, depths, int(rng.integers(sum(depths) + 1)))
    i = int(rng.integers(len(arms)))
    q, p = np.exp(log_conditional(log_p, family, i)), np.exp(log_p)
    mine = family == family[i]
    np.testing.assert_allclose(q, np.where(mine, p, 0.0) / p[mine].sum(), rtol=1e-10)


@property_test
@given(shape=shapes, seed=st.integers(0, 10_000))
def test_drawing_near_an_arm_that_was_drawn_from_p_is_drawing_from_p(shape, seed):
    """Lin et al. (2021), lemma 7, at every height."""
    arms, depths = a_tree(shape)
    log_p = some_log_p(np.random.default_rng(seed), len(arms))
    p = np.exp(log_p)
    for h in range(sum(depths) + 1):
        family = families(arms, depths, h)
        marginal = sum(p[i] * np.exp(log_conditional(log_p, family, i)) for i in range(len(arms)))
        np.testing.assert_allclose(marginal, p, rtol=1e-9)


def test_arms_are_drawn_in_proportion_and_impossible_ones_never():
    rng = np.random.default_rng(0)
    log_q = np.log(np.array([0.2, 0.0, 0.5, 0.3]), where=[True, False, True, True], out=np.full(4, -np.inf))
    counts = np.bincount([drawn(log_q, u) for u in rng.random(20_000)], minlength=4) / 20_000
    np.testing.assert_allclose(counts, [0.2, 0.0, 0.5, 0.3], atol=0.015)
    assert counts[1] == 0.0
    assert drawn(np.array([-np.inf, 0.0, -np.inf]), np.nextafter(1.0, 0.0)) == 1


@property_test
@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), shift=st.floats(-1e6, 1e6))
def test_totals_of_families_hold_however_small_probabilities_are(seed, n, shift):
    rng = np.random.default_rng(seed)
    log_p, family = rng.normal(size=n), np.sort(rng.integers(4, size=n))
    family = np.unique(family, return_inverse=True)[1]
    found = log_total(log_p + shift, family)
    literal = [np.log(np.exp(log_p[family == k]).sum()) + shift for k in range(family.max() + 1)]
    np.testing.assert_allclose(found, literal, rtol=1e-9, atol=1e-9)


# -- learning --------------------------------------------------------------------------------------------


@property_test
@given(shape=small_shapes, seed=st.integers(0, 10_000), eta=st.sampled_from([0.1, 1.0, 3.0]))
def test_smoothed_losses_are_those_of_the_equations(shape, seed, eta):
    arms, depths = a_tree(shape)
    rng = np.random.default_rng(seed)
    log_p, losses, sigma = some_log_p(rng, len(arms)), rng.random(len(arms)), coins_of(rng, depths)
    found = smoothed(log_p, losses, sigma, arms, depths, eta).total
    np.testing.assert_allclose(found, by_the_book(log_p, losses, sigma, arms, depths, eta), atol=1e-9)


@property_test
@given(shape=shapes, seed=st.integers(0, 10_000), shift=st.floats(-50.0, 50.0))
def test_adding_a_constant_to_all_losses_does_not_change_the_update(shape, seed, shift):
    arms, depths = a_tree(shape)
    rng = np.random.default_rng(seed)
    log_p, losses, sigma = some_log_p(rng, len(arms)), rng.random(len(arms)), coins_of(rng, depths)

    def after(lost):
        return updated(log_p, smoothed(log_p, lost, sigma, arms, depths, 1.0).total, 1.0)

    np.testing.assert_allclose(after(losses), after(losses + shift), atol=1e-8)


@property_test
@given(shape=shapes, seed=st.integers(0, 10_000))
def test_with_the_first_coin_down_nothing_is_learned(shape, seed):
    arms, depths = a_tree(shape)
    rng = np.random.default_rng(seed)
    log_p, losses = some_log_p(rng, len(arms)), rng.random(len(arms))
    sigma = coins_of(rng, depths)
    sigma[0] = -1
    total = smoothed(log_p, losses, sigma, arms, depths, 1.0).total
    np.testing.assert_array_equal(total, 0.0)


@property_test
@given(shape=shapes, seed=st.integers(0, 10_000))
def test_over_all_coins_the_smoothed_loss_is_the_loss(shape, seed):
    """Its expectation is l_0, which the regret bound of Lin et al. (2021) is built on."""
    arms, depths = a_tree([(n, 1) for n, _ in shape])
    rng = np.random.default_rng(seed)
    log_p, losses = some_log_p(rng, len(arms)), rng.random(len(arms))
    all_coins = 2 * arms_of([2] * len(depths)) - 1
    mean = np.mean([smoothed(log_p, losses, c, arms, depths, 1.0).total for c in all_coins], axis=0)
    np.testing.assert_allclose(mean, losses, atol=1e-9)


def test_equal_losses_leave_the_probabilities_as_they_are():
    arms = arms_of([2, 3])
    log_p = some_log_p(np.random.default_rng(1), 6)
    total = smoothed(log_p, np.full(6, 0.7), [1, 1, 1], arms, [2, 1], 1.0).total
    np.testing.assert_allclose(updated(log_p, total, 1.0), log_p, atol=1e-12)


@pytest.mark.slow  # the next test guards it
def test_probabilities_do_not_underflow_in_ten_thousand_steps():
    arms, depths, rng = arms_of([3, 4, 2]), [2, 1, 1], np.random.default_rng(0)
    log_p, at = np.full(len(arms), -np.log(len(arms))), 0
    losses, h = rng.random(len(arms)), 4
    for _ in range(10_000):
        log_q = log_conditional(log_p, families(arms, depths, h), at)
        at = drawn(log_q, rng.random())
        assert np.exp(log_q).sum() == pytest.approx(1.0, abs=1e-9)
        sigma = coins_of(rng, depths)
        log_p = updated(log_p, smoothed(log_p, losses, sigma, arms, depths, 1.0).total, 1.0)
        h = first_down(sigma)
    assert np.isfinite(log_p).all()
    assert log_p.min() < -1000  # far below what a float could hold as a probability
    assert np.argmax(log_p) == np.argmin(losses)
    order = np.argsort(losses)
    assert (np.diff(log_p[order]) < 0).all()


def test_probabilities_that_no_float_can_hold_still_count_within_their_family():
    arms, depths = arms_of([2, 2]), [1, 1]
    log_p = normalised(np.array([0.0, -1.0, -5000.0, -5001.0]))
    q = np.exp(log_conditional(log_p, families(arms, depths, 1), 2))
    np.testing.assert_allclose(q, [0.0, 0.0, 1 / (1 + np.exp(-1.0)), 1 / (1 + np.e)], rtol=1e-9)
    losses = np.array([0.5, 0.5, 0.2, 0.9])
    total = smoothed(log_p, losses, [1, 1], arms, depths, 1.0).total
    same = smoothed(np.log([0.25, 0.25 / np.e, 0.25, 0.25 / np.e]), losses, [1, 1], arms, depths, 1.0).total
    np.testing.assert_allclose(total, same, atol=1e-9)  # a family's level is no matter of its total


def test_a_step_with_a_thousand_arms_loops_over_no_arm_and_holds_no_pairs_of_arms():
    def step(regions):
        arms, depths, K = arms_of([regions] * 3), [5, 3, 2], regions**3
        log_p = np.full(K, -np.log(K))
        total = smoothed(log_p, np.random.default_rng(0).random(K), np.ones(10), arms, depths, 1.0).total
        assert np.isfinite(updated(log_p, total, 1.0)).all()

    step(2)  # whatever is done once
    assert lines_run(lambda: step(10)) < 1.1 * lines_run(lambda: step(2))
    assert bytes_taken(lambda: step(10)) < 1000 * 1000


@property_test
@given(seed=st.integers(0, 10_000), K=st.integers(1, 20), loss=st.floats(0.0, 5.0))
def test_bandit_estimates_are_unbiased(seed, K, loss):
    log_p = some_log_p(np.random.default_rng(seed), K, spread=1.0)
    mean = sum(np.exp(log_p[i]) * bandit_losses(log_p, i, loss) for i in range(K))
    np.testing.assert_allclose(mean, loss, atol=1e-9)


# -- dropping, and depths --------------------------------------------------------------------------------


def test_an_arm_is_dropped_after_enough_consecutive_improbable_steps():
    low, high = np.log([0.99, 0.01]), np.log([0.9, 0.1])
    below = np.zeros(2, dtype=int)
    for log_p in [low] * 9 + [high] + [low] * 9:
        below = steps_below(below, log_p, 0.1)
        assert surviving(below, 10).all()
    below = steps_below(below, low, 0.1)
    assert surviving(below, 10).tolist() == [True, False]


def test_a_probability_equal_to_the_limit_does_not_count_as_below():
    assert steps_below([4, 4], np.log([0.95, 0.05]), 0.1).tolist() == [0, 0]


def test_the_recipe_puts_expensive_early_modules_deeper():
    depths = depth_recipe([40, 10, 5], lam=0.1, steps=200, arms=8, recipe="eq20").depths
    even = depth_recipe([10, 10, 10], lam=0.1, steps=200, arms=8, recipe="eq20").depths
    assert depths[0] > even[0]
    assert depth_recipe([1.0], 0.1, 1000, 1).depths == (1,)  # a single arm has nowhere to go
    assert depth_recipe([10.0], 0.1, 10**6, 2).depths == (8,)  # log2(100 / log 2) = 7.17


@pytest.mark.parametrize(("costs", "lam"), [([10, 0], 0.1), ([10, -1], 0.1), ([10, 1], 0.0)])
def test_a_recipe_needs_costs_and_a_weight_above_0(costs, lam):
    with pytest.raises(InputError, match="depths by eq17"):
        depth_recipe(costs, lam, 100, 4, "eq17")


def test_movement_regret_without_movement_equals_plain_regret():
    assert movement_regret([3.0, 1.0], 1.0, [0.0, 0.0], 0.5) == 2.0
    assert movement_regret([3.0, 1.0], 1.0, [10.0, 4.0], 0.5) == 9.0
