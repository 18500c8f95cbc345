"""Control sets of unknown cost: parts of the policies, and their behaviour in a small cell."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import Matern32, Matern52, SquaredExponential
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError, PolicyError
from fieldbo.messages import EndReason, Lost, Query, Rejected
from fieldbo.mission.kinds import POLICIES
from fieldbo.policies.contract import Policy
from fieldbo.policies.control_sets.base import PlayCounts, gain
from fieldbo.policies.control_sets.expectation import Expected
from fieldbo.policies.control_sets.front import SubsetFront, dues, front, make_sceptical
from fieldbo.policies.control_sets.rivals import (
    ETC,
    TSPSQ,
    UCBCVS,
    UCBPSQ,
    Draw,
    group_at,
    groups_by_size,
    within,
)
from fieldbo.policies.control_sets.search import ControlSetSearch, free_samples
from fieldbo.policies.control_sets.subsets import (
    Subsets,
    another_round,
    cheapest,
    cost_bounds,
    most_promising,
    tolerance,
    update_bounds,
)
from fieldbo.testing import carried_out, drive, small_cell, small_mission, small_world
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.base import Field

property_test = settings(deadline=None, max_examples=examples(50), derandomize=True)

FEW = {"samples": 8, "candidates": 16}
RULES = [
    Subsets(**FEW),
    SubsetFront(**FEW),
    ETC(**FEW, plays=3),
    UCBPSQ(**FEW),
    TSPSQ(**FEW, features=64),
    UCBCVS(**FEW),
]
NAMES = {
    "subsets": Subsets,
    "subset-front": SubsetFront,
    "etc": ETC,
    "ucb-psq": UCBPSQ,
    "ts-psq": TSPSQ,
    "ucb-cvs": UCBCVS,
}
values = st.floats(-5, 5)


def mission(policy, **changes):
    given = {"battery": 8.0, "initial": 2, "home": False, **changes}
    found = small_mission(policy, **given)
    return replace(found, model=Model(kernel="se", learn=False, length_scales=(2.0,) * 3, mean=0.0))


def state_after(policy, orders=6, **changes):
    """The state that a policy is shown after so many orders were carried out."""
    agent = Agent(mission(policy, **changes))
    vehicle = Simulated(agent.mission)
    for n in range(orders):
        agent.tell(carried_out(n, agent.ask(), vehicle))
    return agent._view(0)


def played(agent, orders):
    """The control set of each order that its policy chose."""
    controls = agent.domain.controls
    return [controls.index_of(o.controls) for o in orders if agent.issued[o.id].why is not None]


class Corner(Field):
    """Rises towards a corner of the cell, where a policy that sets all variables stays."""

    def values(self, sites, time_s=0.0):
        return np.atleast_2d(sites).sum(axis=1)


@pytest.mark.parametrize(
    "policy", [ETC(**FEW, plays=1), UCBPSQ(**FEW), TSPSQ(**FEW), UCBCVS(**FEW)], ids=repr
)
def test_all_variables_are_not_set_again_to_values_of_a_known_outcome(policy):
    world = replace(small_cell(), sensor=Sensor(0.0), field=Corner())
    _, orders, _ = drive(replace(mission(policy, world=world, battery=500.0), max_steps=30))
    everything = [o.site for o in orders if isinstance(o, Query) and (o.controls is None or o.controls.all())]
    assert len(everything) > 10
    assert len(np.unique(everything, axis=0)) == len(everything)


def test_the_best_settings_may_be_known_ones_if_they_are_not_to_be_played_again():
    world = replace(small_cell(), sensor=Sensor(0.0), field=Corner())
    belief = Belief(SquaredExponential([5.0] * 3)).condition_on([[5.0] * 3], [3.0], 0.0)
    state = state_after(UCBPSQ(**FEW), world=world)
    search = ControlSetSearch(replace(state, surface=Surface(belief, state.domain.sites)), 8, 16)

    def mean(over):
        return lambda x: over.bound_with_gradient(x, 0.0)

    np.testing.assert_allclose(search.highest(mean, [2])[2].site, 5.0)
    played = search.highest(mean, [2], to_play=True)[2].site
    assert belief.variance(played) > 1e-9


# -- Algorithm 1, part by part ---------------------------------------------------------------------------


@property_test
@given(
    lcb=values,
    now=values,
    ucb=st.lists(values, min_size=4, max_size=4),
    ucb_now=st.lists(values, min_size=4, max_size=4),
    alpha=st.floats(0, 0.9),
)
def test_bounds_are_intersected_or_reset(lcb, now, ucb, ucb_now, alpha):
    found = update_bounds(lcb, ucb, now, ucb_now, alpha)
    if found.reset:
        assert not (np.minimum(ucb, ucb_now) > (1 - alpha) * max(lcb, now)).any()
        assert found.lcb == now
        assert found.ucb.tolist() == ucb_now
    else:
        assert found.plausible
        assert found.lcb == max(lcb, now)
        assert found.ucb.tolist() == np.minimum(ucb, ucb_now).tolist()
    assert found.plausible == [i for i in range(4) if found.ucb[i] > (1 - alpha) * found.lcb]


def test_a_set_equal_to_the_limit_is_not_plausible():
    assert update_bounds(1.0, [0.75, 1.2], 0.5, [2.0, 2.0], 0.25).plausible == [1]


@property_test
@given(
    costs=st.lists(st.floats(0, 2), min_size=3, max_size=3), counts=st.lists(st.integers(1, 50), min_size=3)
)
def test_cost_bounds_lie_between_0_and_the_means(costs, counts):
    counts = counts[:3]
    found = cost_bounds(np.array(costs) * counts, counts, sum(counts) + 1)
    assert found.mean == pytest.approx(costs)
    assert np.all(found.lower >= 0)
    assert np.all(found.lower <= found.mean + 1e-12)
    all_three = cheapest(found.lower, [0, 1, 2])
    assert {found.lower[i] for i in all_three} == {found.lower.min()}


def test_a_set_that_was_never_played_may_cost_nothing():
    found = cost_bounds([0.0, 90.0], [0, 90], 91)
    assert np.isnan(found.mean[0])
    assert found.lower[0] == 0.0
    assert cheapest(found.lower, [0, 1]) == [0]


def test_ties_of_the_most_promising_set_go_to_the_first():
    assert most_promising([3.0, 1.0, 2.0, 2.0], [1, 2, 3]) == 2


@property_test
@given(k=st.integers(0, 200), d=st.integers(1, 20))
def test_the_tolerance_is_halved_after_as_many_evaluations_as_there_are_variables(k, d):
    assert tolerance(k + d, d) == pytest.approx(tolerance(k, d) / 2)
    assert tolerance(k - k % d, d) == tolerance(k, d)


@property_test
@given(cost=st.floats(0.1, 30), budget=st.floats(1, 100))
def test_exploration_takes_whole_rounds_up_to_six_tenths_of_the_budget(cost, budget):
    rounds = 0
    while another_round(rounds, rounds * cost, budget):
        rounds += 1
    assert rounds >= 1
    assert rounds == 1 or rounds * cost <= 0.6 * budget * (1 + 1e-9)
    assert (rounds + 1) * cost > 0.6 * budget * (1 - 1e-9)


# -- rivals' and the front's parts -----------------------------------------------------------------------


@property_test
@given(plays=st.lists(st.integers(0, 6), min_size=1, max_size=4), t=st.integers(0, 30))
def test_every_group_has_its_plays_and_then_all_sets_are_open(plays, t):
    turns = [g for g, count in enumerate(plays) for _ in range(count)]
    assert group_at(t, plays) == (turns[t] if t < len(turns) else None)


def test_groups_have_sets_of_equal_size_smallest_first():
    assert groups_by_size(small_cell().domain) == [[0], [1], [2]]


def test_sets_within_epsilon_of_the_highest_are_near():
    assert within({0: 1.0, 2: 1.5, 5: 1.6}, 0.0) == [5]
    assert within({0: 1.0, 2: 1.5, 5: 1.6}, 0.1) == [2, 5]


@property_test
@given(
    promises=st.dictionaries(st.integers(0, 5), st.floats(0.1, 9), min_size=1),
    costs=st.lists(st.floats(0.01, 2), min_size=6, max_size=6),
)
def test_no_cheaper_set_outdoes_a_set_of_the_front(promises, costs):
    found = front(promises, costs)
    assert max(promises, key=lambda i: (promises[i], -costs[i], -i)) in found or any(
        promises[i] == max(promises.values()) for i in found
    )
    for j, i in pairwise(found):
        assert costs[j] < costs[i]
        assert promises[j] < promises[i]
    shares = dues(found, promises, 0.1)
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= 0
    assert shares[0] == max(shares)


def test_a_sceptical_belief_has_the_same_readings_and_is_less_sure_between_them():
    belief = Belief(SquaredExponential([0.4], 0.5)).condition_on([[0.2], [0.6]], [1.0, 0.0], 1e-4)
    other = make_sceptical(belief)
    between = [[0.4], [1.0]]
    assert np.all(other.variance(between) > belief.variance(between))
    np.testing.assert_allclose(other.mean(belief.sites), belief.values, atol=1e-3)


# -- samples, books, the search --------------------------------------------------------------------------


def test_samples_are_the_same_halton_points_through_each_variables_quantiles():
    domain = small_cell().domain
    samples = free_samples(domain, 4)
    assert samples[:, 0].tolist() == [2.5] * 4  # x is never free
    np.testing.assert_allclose(samples[:, 1], 5 * np.array([1 / 3, 2 / 3, 1 / 9, 4 / 9]))
    np.testing.assert_allclose(samples[:, 2], domain.distributions[2].quantile([0.2, 0.4, 0.6, 0.8]))


def test_play_counts_include_initial_readings_as_plays_of_the_full_set():
    state = state_after(ETC(**FEW, plays=3), orders=6)
    counts = PlayCounts.of(state)
    assert counts.plays.tolist() == [3, 1, 2]
    np.testing.assert_allclose(counts.mean_costs(), [0.25, 0.5, 1.0])
    assert counts.since(PlayCounts.of(state).plain()).total == 0


@pytest.mark.parametrize("turned_down", [Rejected, Lost])
def test_rejected_and_lost_queries_are_not_plays_and_rejected_ones_are_not_repeated(turned_down):
    refused = []

    def every_second(n, order, vehicle):
        if n % 2 and n > 2 and isinstance(order, Query):
            refused.append(order)
            return turned_down(order.id, "no")
        return carried_out(n, order, vehicle)

    policy = Subsets(**FEW)
    agent, orders, _ = drive(mission(policy), every_second)
    counts = PlayCounts.of(agent._view(0))
    assert refused
    assert counts.total == len(orders) - len(refused)
    if turned_down is Rejected:
        for order in refused:
            later = orders[orders.index(order) + 1 :]
            assert str(order.site) not in [str(other.site) for other in later]


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_the_search_reaches_the_highest_bound_on_a_grid(kernel):
    state = state_after(ETC(**FEW, plays=3), orders=6)
    belief = state.belief if kernel == "se" else replace(state.belief, kernel=Matern52([2.0] * 3))
    if kernel != "se":
        belief = Belief(belief.kernel).condition_on(belief.sites, belief.values, belief.noise_variances)
    surface = SimpleNamespace(belief=belief)
    search = ControlSetSearch(replace(state, surface=surface), 8, 64)
    ticks = np.linspace(0, 5, 60)
    lowest = -np.inf
    for i, mask in enumerate(search.masks[:2]):
        grids = np.meshgrid(*[ticks if on else [np.nan] for on in mask], indexing="ij")
        grid = np.stack(grids, axis=-1).reshape(-1, 3)
        over = Expected(belief, free_samples(state.domain, 8), mask)
        found = search.upper(2.0, [i])[i]
        assert found.value >= over.bound(grid, 2.0).max() - 1e-3
        assert found.value == pytest.approx(over.bound(found.site, 2.0)[0], abs=1e-9)
        assert np.isnan(found.site[~mask]).all()
        lowest = max(lowest, over.bound(grid, -2.0).max())
    assert search.lower(2.0)[0].value >= lowest - 1e-3


def test_gains_are_positive_for_both_directions_of_the_question():
    most = SimpleNamespace(scale=ValueScale(shift=2.0, scale=3.0))
    least = SimpleNamespace(scale=ValueScale(shift=2.0, scale=-3.0))
    assert gain(most, 1.0, worst=1.0) == pytest.approx(4.0)  # 5 is 4 above the least
    assert gain(least, 1.0, worst=4.0) == pytest.approx(5.0)  # -1 is 5 below the most


# -- a posterior draw ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [SquaredExponential, Matern32, Matern52])
def test_draws_have_the_posterior_mean_and_deviation(kernel):
    belief = Belief(kernel([0.4, 0.6], 1.5)).condition_on([[0.2, 0.3], [0.7, 0.8]], [1.0, -1.0], 0.01)
    points = np.array([[0.2, 0.3], [0.5, 0.5], [0.95, 0.1]])
    rng = np.random.default_rng(0)
    drawn = np.array([Draw.of(belief, 512, rng)(belief, points) for _ in range(600)])
    np.testing.assert_allclose(drawn.mean(axis=0), belief.mean(points), atol=0.15)
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(belief.variance(points)), atol=0.12)


@pytest.mark.parametrize("mask", [[True, False], [True, True]])
def test_the_expectation_of_a_draw_is_its_mean_over_samples_with_its_gradient(mask):
    belief = Belief(Matern52([0.4, 0.6])).condition_on([[0.2, 0.3], [0.7, 0.8]], [1.0, -1.0], 0.01)
    over = Expected(belief, np.random.default_rng(1).random((9, 2)), np.array(mask))
    drawn = Draw.of(belief, 64, np.random.default_rng(2))
    average, x = drawn.averaged(over), np.array([[0.3, 0.6], [0.9, 0.2]])
    seen, slopes = average(x)
    wanted = [drawn(belief, some).mean() for some in over.at(x)]
    np.testing.assert_allclose(seen, wanted, atol=1e-10)
    for j in np.flatnonzero(mask):
        step = np.where(np.arange(2) == j, 1e-6, 0.0)
        np.testing.assert_allclose(
            slopes[:, j], (average(x + step)[0] - average(x - step)[0]) / 2e-6, atol=1e-6
        )
    assert not slopes[:, ~np.array(mask)].any()


# -- the rules in a cell ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_each_policy_is_registered_and_leaves_variables_free(name):
    assert POLICIES.get(name) is NAMES[name]
    assert NAMES[name].leaves_free
    assert issubclass(NAMES[name], Policy)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_domain_without_control_sets_is_rejected(rule):
    with pytest.raises(InputError, match="control set"):
        rule.check(None, small_world().domain)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Subsets(kappa=0.0),
        lambda: Subsets(alpha=1.0),
        lambda: Subsets(tau=0),
        lambda: Subsets(worst=float("nan")),
        lambda: Subsets(samples=0),
        lambda: SubsetFront(alpha=0.0),
        lambda: ETC(plays=0),
        lambda: TSPSQ(features=0),
        lambda: UCBCVS(epsilon=-1.0),
        lambda: UCBCVS(decay=0.0),
    ],
)
def test_settings_out_of_range_are_rejected(wrong):
    with pytest.raises(InputError):
        wrong()


def test_a_model_of_logs_is_rejected():
    state = state_after(ETC(**FEW, plays=3), orders=6)
    with pytest.raises(PolicyError, match="log"):
        Subsets(**FEW).suggest(replace(state, scale=ValueScale("log")), None)


@pytest.mark.parametrize("tau", [1, 2])
def test_exploration_plays_the_sets_in_turn(tau):
    agent, orders, _ = drive(mission(Subsets(**FEW, tau=tau)))
    sets = played(agent, orders)
    assert sets[: 3 * tau] == [0, 1, 2] * tau
    phases = [agent.issued[o.id].why["phase"] for o in orders if agent.issued[o.id].why is not None]
    assert phases == ["exploration"] * 3 * tau + ["exploitation"] * (len(phases) - 3 * tau)


def test_exploration_spends_at_most_six_tenths_of_what_is_left_at_its_beginning():
    agent, orders, _ = drive(mission(Subsets(**FEW), battery=22.0))
    cost = [0.25, 0.5, 1.0]
    phases = [agent.issued[o.id].why["phase"] for o in orders if agent.issued[o.id].why is not None]
    explored = [
        cost[i] for i, phase in zip(played(agent, orders), phases, strict=True) if phase == "exploration"
    ]
    assert sum(explored) <= 0.6 * 20.0 < sum(explored) + sum(cost)


def test_exploitation_plays_the_most_promising_of_the_cheapest_plausible_sets():
    agent, orders, _ = drive(mission(Subsets(**FEW, tau=1)))
    said = [agent.issued[o.id].why for o in orders if agent.issued[o.id].why is not None]
    for why in said[3:]:
        plausible = {one["set"]: one for one in why["sets"] if one["plausible"]}
        least = min(one["cost_low"] for one in plausible.values())
        assert plausible[why["set"]]["cost_low"] == least
        values_of_best = [one["value"] for one in why["best"]]
        assert values_of_best == sorted(values_of_best, reverse=True)
        assert why["best"][0]["set"] == why["set"]
        assert all(one["ucb"] > (1 - why["alpha"]) * why["lcb"] for one in plausible.values())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_policy_stops_when_the_expected_cost_of_its_choice_does_not_fit(rule):
    agent, orders, stop = drive(mission(rule))
    assert stop.reason is EndReason.BATTERY_SPENT
    estimates = [o.expected_cost for o in orders]
    assert agent.endings[0]["best"][0]["cost"] > agent.vehicles[0].spendable
    assert all(cost is None or cost <= 8.0 for cost in estimates)


def test_a_set_has_no_expected_cost_before_its_first_play_and_its_mean_cost_afterwards():
    _, orders, _ = drive(mission(Subsets(**FEW, tau=2)))
    told = [o.expected_cost for o in orders]
    assert told[2:8] == [None, None, 1.0, 0.25, 0.5, 1.0]


def test_ucb_psq_ends_up_with_the_full_set_and_etc_goes_through_the_sizes():
    agent, orders, _ = drive(mission(UCBPSQ(**FEW), battery=12.0))
    assert played(agent, orders)[-4:] == [2] * 4
    agent, orders, _ = drive(mission(ETC(**FEW, plays=2), battery=12.0))
    assert played(agent, orders)[:6] == [0, 0, 1, 1, 2, 2]


def test_with_a_wide_epsilon_ucb_cvs_plays_the_cheapest_set_and_with_none_the_highest_bound():
    agent, orders, _ = drive(mission(UCBCVS(**FEW, epsilon=1e6, decay=1.0)))
    assert set(played(agent, orders)) == {0}
    wide, orders, _ = drive(mission(UCBCVS(**FEW, epsilon=0.0)))
    psq, others, _ = drive(mission(UCBPSQ(**FEW)))
    assert played(wide, orders) == played(psq, others)


def test_the_front_plays_each_set_once_and_then_only_sets_of_the_front():
    agent, orders, _ = drive(mission(SubsetFront(**FEW, alpha=0.05), battery=20.0))
    sets = played(agent, orders)
    assert sets[:2] == [0, 1]  # of the full set the initial readings told
    said = [agent.issued[o.id].why for o in orders if agent.issued[o.id].why is not None]
    shared = [why for why in said if why["phase"] == "shared"]
    assert shared
    for why in shared:
        assert why["set"] in why["front"]
        assert sum(why["shares"]) == pytest.approx(1.0)


def test_a_question_that_minimises_is_the_mirror_image_of_one_that_maximises():
    up, orders, _ = drive(mission(Subsets(**FEW, worst=-2.0), question=Optimum("maximise")))

    class Upside(type(up.mission.world.field)):
        def values(self, sites, time_s=0.0):
            return -super().values(sites, time_s)

    world = replace(small_cell(), field=Upside())
    world = replace(world, sensor=replace(world.sensor, noise_sd=1e-9))
    straight = replace(small_cell(), sensor=world.sensor)
    up, orders, _ = drive(mission(Subsets(**FEW, worst=-2.0), world=straight, question=Optimum("maximise")))
    down, others, _ = drive(mission(Subsets(**FEW, worst=2.0), world=world, question=Optimum("minimise")))
    assert played(up, orders) == played(down, others)
    np.testing.assert_allclose([o.site for o in orders], [o.site for o in others], atol=1e-4)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_policy_stops_after_many_consecutive_rejections(rule):
    _, orders, stop = drive(mission(rule), lambda n, order, vehicle: Rejected(order.id, "no"))
    assert stop.reason is EndReason.STOPPED_BY_POLICY
    assert len(orders) <= 24
