"""Regrets of quality and of cost, and the simple one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.errors import InputError
from fieldbo.results.metrics import cost_regret, good_enough, quality_regret, simple_regret

property_test = settings(deadline=None, max_examples=examples(60), derandomize=True)

plays = st.lists(st.tuples(st.floats(0, 5), st.floats(0, 2)), min_size=1, max_size=20)


@property_test
@given(plays=plays, spent=st.lists(st.floats(0, 40), max_size=8))
def test_the_simple_regret_is_that_of_the_best_affordable_play(plays, spent):
    values, costs = (list(one) for one in zip(*plays, strict=True))
    found = simple_regret(5.0, values, costs, spent)
    paid = np.cumsum(costs)
    for at, regret in zip(spent, found, strict=True):
        fit = [v for v, p in zip(values, paid, strict=True) if p <= at]
        assert regret == 5.0 - max(fit) if fit else np.isnan(regret)


@property_test
@given(plays=plays)
def test_the_simple_regret_never_rises_with_cost(plays):
    values, costs = (list(one) for one in zip(*plays, strict=True))
    found = simple_regret(5.0, values, costs, np.linspace(max(costs) * len(costs), 0, 30)[::-1])
    assert not (np.diff(found) > 0).any()
    assert found[-1] == 5.0 - max(values)


@property_test
@given(values=st.lists(st.floats(0, 3), min_size=1, max_size=9), alpha=st.floats(0, 0.99))
def test_the_tolerance_reduces_the_quality_regret_of_every_play(values, alpha):
    strict, lenient = quality_regret(3.0, values), quality_regret(3.0, values, alpha)
    assert strict >= -1e-12
    assert lenient == pytest.approx(strict - alpha * 3.0 * len(values))


def test_only_plays_more_expensive_than_necessary_add_cost_regret():
    assert cost_regret([0.1, 0.2], 0.2) == 0.0
    assert cost_regret([0.1, 1.0, 0.5], 0.2) == pytest.approx(1.1)


def test_of_equally_cheap_good_enough_sets_the_first_is_chosen():
    assert good_enough([3.0, 2.9, 1.0], [1.0, 0.5, 0.1], 0.0) == ([0], 0)
    assert good_enough([3.0, 2.9, 2.8], [1.0, 0.5, 0.5], 0.1) == ([0, 1, 2], 1)


def test_plays_without_costs_are_rejected():
    with pytest.raises(InputError):
        simple_regret(1.0, [0.5, 0.2], [0.1], [1.0])
