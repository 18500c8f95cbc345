"""Control sets: the variables set together, those left to chance, and the costs of both; and chains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo._numerics.streams import stream
from fieldbo.costs.base import Unit
from fieldbo.costs.cells import Modular, Module, Subset
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import ALL, Controls, ControlSet, TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import Query
from fieldbo.world.fields.function import Function
from fieldbo.world.world import Quantity, World

AXES = [Axis("heat", "K", 0, 10), Axis("speed", "m/s", 0, 1), Axis("dose", "g", -1, 1)]
FREE = (Uniform(0, 10), TruncatedNormal(0.4, 0.02), None)
NAMES = (["dose"], ["heat", "dose"], ["dose", "speed", "heat"])
property_test = settings(deadline=None, max_examples=examples(50), derandomize=True)


def controls(names=NAMES, free=FREE):
    sets = tuple(ControlSet.of(n, AXES, f"domain.control_sets[{k}]") for k, n in enumerate(names))
    return Controls(sets, free)


def cell(cost=None, names=NAMES):
    domain = Domain.box(AXES, 32, controls=controls(names))
    field = Function("rastrigin").make(domain)
    cost = Subset(costs=(0.1, 0.2, 1.0), noise_sds=(0.0, 0.05, 0.3)) if cost is None else cost
    return World("cell", "a cell", domain, cost, "EUR", Sensor(0.0), Quantity(), field)


def test_a_set_is_named_after_its_variables_in_axis_order_or_all():
    assert [s.name for s in controls().sets] == ["dose", "heat, dose", ALL]


def test_settings_are_formatted_with_their_units():
    assert controls().sets[1].settings(AXES, np.array([2.5, np.nan, 0.125])) == "heat 2.5 K, dose 0.125 g"


@property_test
@given(seed=st.integers(0, 10**6), which=st.integers(0, 2))
def test_controlled_variables_keep_every_digit_and_free_ones_are_drawn_within_their_axis(seed, which):
    domain, controlled = cell().domain, controls().sets[which].controls
    site = Domain.box(AXES, 32).draw(1, np.random.default_rng(seed))[0]
    asked = np.where(controlled, site, np.nan)
    point = domain.controls.completed(asked, controlled, np.random.default_rng(seed))
    assert point[controlled].tolist() == site[controlled].tolist()
    assert domain.contains(point[None])[0]


def test_the_draw_of_a_free_variable_does_not_depend_on_what_else_is_controlled():
    domain = cell().domain
    first, second = (
        domain.controls.completed(np.where(s.controls, 0.5, np.nan), s.controls, np.random.default_rng(3))
        for s in domain.control_sets[:2]
    )
    assert first[1] == second[1], "speed is free in both"


def test_free_variables_follow_their_distribution():
    there, only_dose = cell(), controls().sets[0].controls
    drawn = [
        there.evaluate(Query([np.nan, np.nan, 0.0], only_dose, id="r/0"), there.start, 0.0, *streams(n))
        for n in range(600)
    ]
    speeds = np.array([event.sites[0, 1] for event in drawn])
    assert speeds.mean() == pytest.approx(0.4, abs=0.02)
    assert speeds.var() == pytest.approx(0.02, rel=0.2)


def streams(n):
    return stream(1, "sensor", n), stream(1, "cost", n), stream(1, "chance", n)


def test_an_observation_holds_the_completed_point_and_a_real_cost_around_the_mean():
    there, controlled = cell(), controls().sets[1].controls
    query = Query([2.0, np.nan, 0.5], controlled, id="r/0")
    events = [there.evaluate(query, there.start, 0.0, *streams(n)) for n in range(400)]
    costs = np.array([event.cost for event in events])
    assert costs.mean() == pytest.approx(0.2, abs=0.01)
    assert costs.std() == pytest.approx(0.05, rel=0.15)
    assert all(event.sites[0, [0, 2]].tolist() == [2.0, 0.5] for event in events)
    assert np.isfinite([event.values[0] for event in events]).all()


def test_a_real_cost_is_never_negative():
    cost = cell(Subset(costs=(0.1, 0.2, 1.0), noise_sds=(9.0, 0.0, 0.0))).cost
    drawn = [cost.draw_cost(0.1, controls().sets[0].controls, np.random.default_rng(n)) for n in range(50)]
    assert min(drawn) == 0.0
    assert max(drawn) > 1.0


def test_the_cost_depends_on_the_controlled_variables_and_not_on_the_move():
    cost = cell().cost
    for s, price in zip(controls().sets, (0.1, 0.2, 1.0), strict=True):
        site = np.where(s.controls, 0.5, np.nan)
        np.testing.assert_array_equal(cost.to([0, 0, 0], [site, site], s.controls), [price, price])
        assert cost.duration_s([0, 0, 0], [site], s.controls)[0] == price
    assert cost.to([0, 0, 0], [[1, 1, 1]])[0] == 1.0, "None means all variables"
    assert cost.least_sampling_cost(np.zeros((1, 3))) == 0.1
    np.testing.assert_array_equal(cost.travel([0, 0, 0], [[1, 1, 1], [0, 0, 0]]), 0.0)


def test_variables_that_are_not_a_control_set_have_no_cost_and_cannot_be_left_free():
    there, wrong = cell(), np.array([True, True, False])
    with pytest.raises(InputError, match="dose; heat, dose; all"):
        there.cost.to(there.start, [there.start], wrong)
    with pytest.raises(InputError, match="leaves dose free"):
        there.evaluate(Query(there.start, wrong, id="r/0"), there.start, 0.0, *streams(0))


def test_a_domain_without_control_sets_sets_all_variables():
    there = replace(cell(), domain=Domain.box(AXES, 8), cost=Unit())
    assert there.domain.control_sets == ()
    assert there.domain.distributions == (None, None, None)
    with pytest.raises(InputError, match="has no control sets"):
        there.evaluate(Query(there.start, [True, False, True], id="r/0"), there.start, 0.0, *streams(0))


@pytest.mark.parametrize(
    ("names", "free", "message"),
    [
        ((["heat"],), FREE, "leaves dose free"),
        ((["dose"], ["dose"]), FREE, "'dose' occurs twice"),
        ((["dose", "heat"],), (Uniform(0, 10), Uniform(0, 2), None), "domain.axes\\[1\\].free"),
    ],
    ids=["no distribution", "same set", "beyond its axis"],
)
def test_sets_that_do_not_fit_their_axes_are_rejected(names, free, message):
    with pytest.raises(InputError, match=message):
        Domain.box(AXES, 8, controls=controls(names, free))


@pytest.mark.parametrize("names", [[], ["heat", "heat"], ["heat", "pressure"]])
def test_an_empty_set_a_repeated_variable_and_an_unknown_variable_are_rejected(names):
    with pytest.raises(InputError, match="control_sets"):
        ControlSet.of(names, AXES, "domain.control_sets[0]")


@pytest.mark.parametrize(
    "cost", [Subset(costs=(1.0,)), Subset(costs=(1, 2, 3), noise_sds=(0.1,)), Euclidean()], ids=str
)
def test_costs_that_do_not_fit_the_control_sets_are_rejected(cost):
    with pytest.raises(InputError):
        cell(cost)


def test_costs_of_control_sets_need_control_sets():
    with pytest.raises(InputError, match="domain has none"):
        World("x", "x", Domain.box(AXES, 8), Subset(costs=(1.0,)), "EUR", Sensor(0.1), Quantity())


def test_a_simulated_world_without_costs_is_rejected():
    with pytest.raises(InputError, match="costs is missing"):
        cell(Subset())
    assert not replace(cell(), field=None, cost=Subset()).cost.known


# -- chains of modules -----------------------------------------------------------------------------------

CHAIN = (Module("mill", ("dose",), 40.0), Module("bake", ("heat",), 10.0), Module("cut", ("speed",), 1.0))


def chain(**settings):
    return Modular(modules=CHAIN, **settings).within(Domain.box(AXES, 8))


@property_test
@given(moved=st.lists(st.booleans(), min_size=3, max_size=3), charge_last=st.booleans())
def test_a_change_reruns_all_later_modules(moved, charge_last):
    cost, start = chain(charge_last=charge_last), np.array([5.0, 0.5, 0.0])
    end = start + 0.25 * np.array(moved)
    heat, _, dose = moved
    early = 50.0 if dose else 10.0 if heat else 0.0
    assert cost.travel(start, [end])[0] == early
    assert cost.to(start, [end])[0] == early + (1.0 if charge_last else 0.0)
    assert cost.first_changed(start, [end])[0] == (0 if dose else 1 if heat else 2)


def test_a_difference_in_the_last_digit_counts_as_a_change():
    start = np.array([0.1 + 0.2, 0.5, 0.0])
    assert chain().to(start, [[0.3, 0.5, 0.0]])[0] == 11.0


def test_the_matrix_of_a_chain_is_symmetric_and_agrees_with_its_moves():
    sites = Domain.box(AXES, 8).sites.copy()
    sites[:4, 2] = sites[0, 2]
    sites[:2, 0] = sites[0, 0]
    whole = chain().matrix(sites)
    np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_array_equal(whole[1], chain().to(sites[1], sites))
    assert set(np.unique(whole)) == {1.0, 11.0, 51.0}


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (CHAIN[:2], "no module has 'speed'"),
        ((*CHAIN, Module("twice", ("heat",), 1.0)), "'heat' is in module 'bake' and in module 'twice'"),
        ((*CHAIN[:2], Module("cut", ("sped",), 1.0)), "did you mean 'speed'"),
        ((*CHAIN, Module("none", (7,), 1.0)), "axis 7"),
    ],
    ids=["missing", "overlap", "unknown", "number"],
)
def test_modules_that_do_not_partition_the_axes_are_rejected(modules, message):
    with pytest.raises(InputError, match=message):
        replace(cell(Unit()), domain=Domain.box(AXES, 8), cost=Modular(modules=modules))


@pytest.mark.parametrize("wrong", [(), (Module("empty", (), 1.0),)], ids=["none", "empty"])
def test_a_chain_without_modules_or_a_module_without_settings_is_rejected(wrong):
    with pytest.raises(InputError, match="modules"):
        Modular(modules=wrong)


@pytest.mark.parametrize("cost", [-1.0, np.nan, np.inf])
def test_a_module_cost_that_is_negative_or_not_finite_is_rejected(cost):
    with pytest.raises(InputError, match="modules"):
        Module("mill", ("dose",), cost)
