"""Rivals of LaMBO on a chain of modules, and the search in boxes that they share with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.belief.kernels import SquaredExponential
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.belief.surface import Surface
from fieldbo.costs.cells import Modular, Module
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Query
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.acquisition import expected_improvement
from fieldbo.policies.chains.boxes import (
    Boxes,
    best_of_boxes,
    candidates_in,
    lazy_boxes,
    log_improvement,
    upper_bound,
)
from fieldbo.policies.chains.lambo import LaMBO
from fieldbo.policies.chains.rivals import CAMOBO, CArBO, LazyEIPerCost, chebyshev
from fieldbo.policies.contract import Policy
from fieldbo.policies.optimum.myopic import incumbent
from fieldbo.testing import PolicyContract, drive, small_chain, small_mission, small_world
from fieldbo.testing.small import carried_out
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

property_test = settings(deadline=None, max_examples=examples(40), derandomize=True)

AXES = [Axis("a", "m", 0.0, 4.0), Axis("b", "", -1.0, 1.0), Axis("c", "", 0.0, 1.0)]
RULES = [LazyEIPerCost(candidates=200), CArBO(candidates=200), CAMOBO(candidates=200)]


class Valley(Field):
    """Two valleys, the deeper one at a = 3."""

    def values(self, sites, time_s=0.0):
        a, b, c = np.atleast_2d(sites).T
        return np.cos(1.5 * a) - 0.3 * np.exp(-((a - 3.0) ** 2)) + b**2 + (c - 0.3) ** 2


def valley_world(prices=(10.0, 3.0, 1.0), charge_last=True, representers=64):
    domain = Domain.box(AXES, representers)
    modules = tuple(Module(f"m{k}", ("bac"[k],), price) for k, price in enumerate(prices))
    return World(
        name="valley",
        title="A chain of three modules",
        domain=domain,
        cost=Modular(modules=modules, charge_last=charge_last).within(domain),
        cost_unit="EUR",
        sensor=Sensor(0.01),
        quantity=Quantity("depth", "m"),
        field=Valley(),
    )


def valley_mission(policy, *, world=None, battery=150.0, home=False, initial=5, seed=0):
    world = valley_world() if world is None else world
    start = world.domain.sites[0]
    return Mission(
        name="valley",
        world=world,
        question=Optimum("minimise"),
        policy=policy,
        model=Model(kernel="se", learn=False, mean=0.0),
        vehicles=(VehicleSpec(battery, start, home=start if home else None),),
        initial=initial,
        seed=seed,
    )


@dataclass(frozen=True)
class Watched(Policy):
    """Another rule, with each state, memory and decision kept."""

    inner: Policy
    kept: list = field(default_factory=list, hash=False)

    answers = (Optimum,)

    def suggest(self, state, memory):
        spendable = state.spendable

        def affordable(sites, controls=None, level=0, position=None, spent=0.0):
            """Say so as of now, whatever is spent later."""
            return state.cost.to(state.position, sites) <= spendable

        kept = replace(state, surface=state.surface.copy(), affordable=affordable)
        decision = self.inner.suggest(state, memory)
        self.kept.append((kept, memory, decision))
        return decision


@cache
def watched_run(rule, prices=(10.0, 3.0, 1.0), steps=None, **changes):
    policy = Watched(rule)
    mission = valley_mission(policy, world=valley_world(prices), **changes)
    agent, orders, stop = drive(replace(mission, max_steps=steps))
    return agent, orders, stop, tuple(policy.kept)


def queries(kept):
    return [(state, decision) for state, _, decision in kept if isinstance(decision.choice, Query)]


@pytest.mark.sweep  # one setting of each is among those of test_contracts
class TestRivalsKeepTheContract(PolicyContract):
    @pytest.fixture(
        autouse=True,
        params=[
            LazyEIPerCost(candidates=96),
            LazyEIPerCost(candidates=96, lazy=False, climbs=1),
            CArBO(candidates=96),
            CAMOBO(candidates=96),
        ],
        ids=["lazy", "eager", "carbo", "ca-mobo"],
    )
    def settings(self, request):
        self.chosen = request.param

    def policy(self):
        return type(self.chosen)(**vars(self.chosen))

    def mission(self, policy, **changes):
        single = changes.pop("world", None) is not None
        world = valley_world((0.6, 0.3, 0.6), representers=1 if single else 24)
        return valley_mission(policy, world=world, **{"battery": 8.0, "home": True, "initial": 1, **changes})


# -- all of them -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rule"), [("lazy-ei-per-cost", LazyEIPerCost), ("ca-mobo", CAMOBO), ("carbo", CArBO)]
)
def test_each_policy_is_registered(name, rule):
    assert POLICIES.get(name) is rule


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_each_policy_needs_modules_with_costs_over_a_box(rule):
    box = valley_world().domain
    for cost, domain, told in (
        (None, box, "unknown costs"),
        (Euclidean(rate=1.0, sampling=1.0).within(box), box, "kind euclidean"),
        (small_world().cost, small_world().domain, "kind euclidean"),
        (valley_world(charge_last=False).cost, box, "costs 0"),
    ):
        with pytest.raises(InputError, match=told):
            rule.check(cost, domain)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_unchanged_modules_keep_their_values_exactly(rule):
    _, _, stop, kept = watched_run(rule)
    assert stop.reason is EndReason.BATTERY_SPENT
    prices = set()
    for state, decision in queries(kept):
        price = float(state.cost.to(state.position, decision.choice.site[None])[0])
        assert price == decision.why["best"][0]["cost"]
        prices.add(price)
    assert prices <= {1.0, 4.0, 14.0}
    assert 1.0 in prices


@pytest.mark.parametrize("rule", RULES, ids=repr)
@on_one_blas_thread  # as agents ask: sums over several threads may differ in rounding
def test_the_same_state_and_memory_give_the_same_decision(rule):
    _, _, _, kept = watched_run(rule)
    for state, memory, decision in kept[2:20:8]:
        again = rule.suggest(replace(state), memory)
        np.testing.assert_array_equal(again.choice.site, decision.choice.site)
        assert (again.why, again.memory) == (decision.why, decision.memory)


@pytest.mark.parametrize(
    ("rule", "battery"),
    [
        *((rule, 150.0) for rule in RULES),
        *(pytest.param(rule, 250.0, marks=pytest.mark.slow) for rule in RULES),
    ],
)
def test_each_policy_finds_the_deeper_valley(rule, battery):
    agent, orders, _, _ = watched_run(rule, battery=battery)
    truth = agent.mission.world.truth(np.stack([o.site for o in orders if isinstance(o, Query)]))
    assert truth.min() < -1.0  # of -1.2 at best


@pytest.mark.parametrize("wrong", [{"climbs": 0}, {"candidates": 0}], ids=str)
def test_settings_out_of_range_are_rejected(wrong):
    with pytest.raises(InputError):
        LazyEIPerCost(**wrong)


class Corner(Field):
    """Rises steeply towards a corner of the domain."""

    def values(self, sites, time_s=0.0):
        return 20.0 * np.atleast_2d(sites).sum(axis=1)


@pytest.mark.parametrize("rule", [*RULES, LaMBO(candidates=200)], ids=repr)
def test_no_point_is_read_again_without_noise(rule):
    world = replace(small_chain(), sensor=Sensor(0.0), field=Corner())
    mission = small_mission(rule, world=world, battery=500.0)
    _, orders, _ = drive(replace(mission, max_steps=20))
    sites = [tuple(order.site) for order in orders if isinstance(order, Query)]
    assert len(set(sites)) == len(sites)


def test_improvements_that_underflow_are_compared_by_their_logarithms():
    state = a_state()
    above = replace(state.belief, values=state.belief.values.copy())
    above.values[0] += 1e3  # a reading that the mean does not follow: EI of any point is 0
    state = replace(state, surface=Surface(above, state.domain.sites))
    best = incumbent(state.surface)
    rule = LazyEIPerCost(candidates=64)
    decision = rule.suggest(replace(state), None)
    optima = best_of_boxes(
        replace(state), log_improvement(best), rule.boxes(state), rule.candidates, rule.climbs
    )
    assert optima.scores.max() < -1000.0
    scores = optima.scores - np.log(state.costs(0, optima.points))
    np.testing.assert_allclose(decision.choice.site, optima.points[np.argmax(scores)], atol=1e-6)
    assert decision.why["log_unit"] == pytest.approx(scores.max())


# -- EI per cost -----------------------------------------------------------------------------------------


def test_the_chosen_point_has_the_largest_improvement_per_cost_of_those_considered():
    _, _, _, kept = watched_run(LazyEIPerCost(candidates=200))
    for state, decision in queries(kept):
        best = incumbent(state.surface)
        for told in decision.why["best"]:
            site, belief = np.array([told["site"]]), state.belief
            gain = expected_improvement(belief.mean(site), np.sqrt(belief.variance(site)), best)
            assert told["value"] == pytest.approx(gain[0] / told["cost"], rel=1e-9)


def test_lazy_is_never_worse_than_eager_by_its_own_score():
    _, _, _, kept = watched_run(LazyEIPerCost(candidates=200))
    better = 0
    affordable = [(s, d) for s, d in queries(kept) if s.spendable >= 14.0]
    for state, decision in affordable:
        eager = LazyEIPerCost(candidates=200, lazy=False).suggest(replace(state), None)
        assert eager.why["changes"] == "m0, m1, m2"
        better += decision.why["score"] >= eager.why["score"] * (1 - 0.1)
    assert better >= 0.9 * len(affordable)


def test_laziness_has_no_effect_if_only_the_last_module_costs_something():
    _, _, _, kept = watched_run(LazyEIPerCost(candidates=200), prices=(0.0, 0.0, 1.0), battery=12.0)
    best = max(one["value"] for one in kept[0][2].why["best"])
    assert kept[0][2].why["score"] == best
    assert kept[0][2].why["changes"] == "m0, m1, m2"  # the largest box holds the others


def test_carbo_weighs_cost_less_as_the_battery_runs_down():
    _, _, _, kept = watched_run(CArBO(candidates=200))
    powers = [decision.why["power"] for _, decision in queries(kept)]
    assert powers[0] == 1.0
    assert powers == sorted(powers, reverse=True)
    assert powers[-1] < 0.05
    first = kept[0][0]
    for state, decision in queries(kept):
        assert decision.why["power"] == pytest.approx(state.spendable / first.spendable)
    state, decision = queries(kept)[0]
    lazy = LazyEIPerCost(candidates=200).suggest(replace(state), None)
    np.testing.assert_array_equal(decision.choice.site, lazy.choice.site)


# -- CA-MOBO ---------------------------------------------------------------------------------------------


def test_the_scalarisation_is_the_larger_shortfall():
    value, thrift = np.array([1.0, 0.5, 0.0]), np.array([0.0, 0.5, 1.0])
    assert np.argmax(chebyshev(value, thrift, 0.9)) == 0
    assert np.argmax(chebyshev(value, thrift, 0.5)) == 1
    assert np.argmax(chebyshev(value, thrift, 0.1)) == 2


@property_test
@given(seed=st.integers(0, 10_000), weight=st.floats(0.01, 0.99))
def test_a_dominating_point_is_preferred(seed, weight):
    value, thrift = np.random.default_rng(seed).random((2, 6))
    score = chebyshev(value, thrift, weight)
    worse = (value[:, None] < value) & (thrift[:, None] < thrift)
    assert np.all(~worse | (score[:, None] < score))


def test_camobo_draws_a_new_weight_each_step_and_maximises_its_scalarisation():
    _, _, _, kept = watched_run(CAMOBO(candidates=200))
    weights = [decision.why["weight"] for _, decision in queries(kept)]
    assert len(set(weights)) == len(weights)
    dear = [
        decision.why["weight"] for _, decision in queries(kept) if decision.why["changes"] == "m0, m1, m2"
    ]
    cheap = [decision.why["weight"] for _, decision in queries(kept) if decision.why["changes"] == "m2"]
    assert np.mean(dear) > np.mean(cheap)  # a weight near 1 asks for value


# -- scores, candidates, boxes ---------------------------------------------------------------------------


@property_test
@given(mu=st.floats(-8, 8), s=st.floats(0.05, 3.0), best=st.floats(-2, 2))
def test_the_log_improvement_matches_the_improvement_and_its_slopes_match_differences(mu, s, best):
    scoring = log_improvement(best)

    def at(m, d):
        return scoring(np.array([m]), np.array([d]))

    plain = expected_improvement(np.array([mu]), np.array([s]), best)[0]
    if plain > 1e-12:
        assert np.exp(at(mu, s).score[0]) == pytest.approx(plain, rel=1e-6)
    h = 1e-5 * s
    by_mean = (at(mu + h, s).score - at(mu - h, s).score)[0] / (2 * h)
    by_sd = (at(mu, s + h).score - at(mu, s - h).score)[0] / (2 * h)
    assert at(mu, s).by_mean[0] == pytest.approx(by_mean, rel=1e-4, abs=1e-6)
    assert at(mu, s).by_sd[0] == pytest.approx(by_sd, rel=1e-4, abs=1e-6)


def test_the_log_improvement_is_finite_and_increasing_far_below_the_best():
    mu = np.array([-1e7, -1e5, -9999.0, -10_001.0, -100.0, -1.0, 0.0, 5.0, 40.0, 1e4])
    told = log_improvement(0.0)(np.sort(mu), np.ones(len(mu)))
    assert np.isfinite(told.score).all()
    assert (np.diff(told.score) > 0).all()
    assert (told.by_mean > 0).all()
    assert np.isfinite(told.by_sd).all()
    known = log_improvement(0.0)(np.array([-1.0, 1.0]), np.zeros(2))
    assert not np.isnan(known.score).any()


@property_test
@given(seed=st.integers(0, 10_000), far=st.integers(1, 20), near=st.integers(1, 20))
def test_candidates_lie_in_their_box_and_keep_held_coordinates(seed, far, near):
    rng = np.random.default_rng(seed)
    domain = Domain.box(AXES, 8)
    ends = np.sort(domain.low + rng.random((4, 2, 3)) * domain.extent, axis=1)
    ends[0, 1, 1] = ends[0, 0, 1]
    boxes = Boxes(ends[:, 0], ends[:, 1])
    places = domain.low + rng.random((3, 3)) * domain.extent
    points = candidates_in(domain, rng, boxes, far, near, places)
    assert points.shape == (4, far + near, 3)
    assert np.all((points >= boxes.low[:, None]) & (points <= boxes.high[:, None]))
    np.testing.assert_array_equal(points[0, :, 1], ends[0, 0, 1])


def test_each_lazy_box_holds_one_more_module():
    domain, position = Domain.box(AXES, 8), np.array([1.0, 0.5, 0.3])
    boxes = lazy_boxes(domain, [(1,), (0,), (2,)], position)
    held = boxes.low == boxes.high
    assert held.tolist() == [[False, False, False], [False, True, False], [True, True, False]]


def a_state(readings=25, seed=0):
    """What a rule sees after so many readings of the valley."""
    rule = LazyEIPerCost(candidates=64)
    return watched_run(rule, steps=readings + 1, initial=readings, battery=1000.0, seed=seed)[3][0][0]


@pytest.mark.parametrize("scoring", [upper_bound(2.0), log_improvement(0.4)], ids=["ucb", "ei"])
def test_the_best_point_of_each_box_is_as_good_as_that_of_many_random_ones(scoring):
    state = a_state()
    domain = state.domain
    boxes = lazy_boxes(domain, state.cost.columns, state.position)
    found = best_of_boxes(replace(state), scoring, boxes, candidates=400, climbs=4)
    rng = np.random.default_rng(1)
    for k in range(3):
        points = boxes.low[k] + rng.random((5_000, 3)) * (boxes.high[k] - boxes.low[k])
        surface = Surface(state.belief, points)
        brute = scoring(surface.mean, surface.sd).score.max()
        assert found.scores[k] >= brute - 1e-3 * abs(brute)
        held = boxes.low[k] == boxes.high[k]
        np.testing.assert_array_equal(found.points[k][held], state.position[held])
        there = Surface(state.belief, found.points[[k]])
        assert scoring(there.mean, there.sd).score[0] == pytest.approx(found.scores[k], rel=1e-6)


def test_a_completely_rejected_box_has_no_point():
    state = a_state()
    low, high = np.array([0.0, -1.0, 0.0]), np.array([4.0, 1.0, 1.0])
    boxes = Boxes(np.array([low, low]), np.array([high, [1.0, 1.0, 1.0]]))
    sites = state.domain.sites
    rejected = sites[:, 0] < 2.0
    found = best_of_boxes(replace(state, rejected=rejected), upper_bound(1.0), boxes, 400, 2)
    assert np.isfinite(found.scores[0])
    assert not rejected[state.domain.nearest(found.points[0])]
    if np.isfinite(found.scores[1]):
        assert not rejected[state.domain.nearest(found.points[1])]
    none = best_of_boxes(replace(state, rejected=np.ones(len(sites), dtype=bool)), upper_bound(1.0), boxes)
    assert (none.scores == -np.inf).all()


def test_before_any_reading_all_points_score_equally():
    state = replace(a_state(), surface=Surface(Belief(SquaredExponential([1.0, 1.0, 1.0])), np.zeros((1, 3))))
    boxes = lazy_boxes(state.domain, state.cost.columns, state.position)
    found = best_of_boxes(state, upper_bound(2.0), boxes)
    np.testing.assert_allclose(found.scores, 2.0)


def test_a_run_is_reproducible():
    first = drive(valley_mission(CAMOBO(candidates=96), battery=120.0), carried_out)[1]
    again = drive(valley_mission(CAMOBO(candidates=96), battery=120.0), carried_out)[1]
    assert [o.site.tolist() for o in first if isinstance(o, Query)] == [
        o.site.tolist() for o in again if isinstance(o, Query)
    ]
