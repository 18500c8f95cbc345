"""Control sets: what can be set together, what is left to chance, and what either costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldbo._numerics.streams import stream
from fieldbo.costs.chain import Modular, Module
from fieldbo.costs.control_sets import Subset
from fieldbo.costs.euclidean import Euclidean
from fieldbo.costs.unit import Unit
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import ALL, Controls, ControlSet
from fieldbo.domain.distributions import TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import Query
from fieldbo.world.fields.function import Function
from fieldbo.world.world import Quantity, World

AXES = [Axis("heat", "K", 0, 10), Axis("speed", "m/s", 0, 1), Axis("dose", "g", -1, 1)]
LAWS = (Uniform(0, 10), TruncatedNormal(0.4, 0.02), None)
NAMES = (["dose"], ["heat", "dose"], ["dose", "speed", "heat"])
property_test = settings(deadline=None, max_examples=50, derandomize=True)


def controls(names=NAMES, laws=LAWS):
    sets = tuple(ControlSet.of(n, AXES, f"domain.control_sets[{k}]") for k, n in enumerate(names))
    return Controls(sets, laws)


def cell(cost=None, names=NAMES):
    domain = Domain.box(AXES, 32, controls=controls(names))
    field = Function("rastrigin").make(domain)
    cost = Subset(costs=(0.1, 0.2, 1.0), noise_sds=(0.0, 0.05, 0.3)) if cost is None else cost
    return World("cell", "a cell", domain, cost, "EUR", Sensor(0.0), Quantity(), field)


def test_a_set_is_called_by_its_variables_in_the_order_of_the_axes_or_all():
    assert [s.name for s in controls().sets] == ["dose", "heat, dose", ALL]


def test_what_is_to_be_set_is_told_with_units():
    assert controls().sets[1].settings(AXES, np.array([2.5, np.nan, 0.125])) == "heat 2.5 K, dose 0.125 g"


@property_test
@given(seed=st.integers(0, 10**6), which=st.integers(0, 2))
def test_what_is_set_stays_to_the_last_digit_and_the_rest_comes_about_within_its_axis(seed, which):
    domain, one = cell().domain, controls().sets[which]
    site = Domain.box(AXES, 32).draw(1, np.random.default_rng(seed))[0]
    asked = np.where(one.controls, site, np.nan)
    point = domain.controls.completed(asked, one.controls, np.random.default_rng(seed))
    assert point[one.controls].tolist() == site[one.controls].tolist()
    assert domain.contains(point[None])[0]


def test_the_luck_of_a_variable_does_not_depend_on_what_else_is_set():
    domain = cell().domain
    first, second = (
        domain.controls.completed(np.where(s.controls, 0.5, np.nan), s.controls, np.random.default_rng(3))
        for s in domain.control_sets[:2]
    )
    assert first[1] == second[1], "speed is free in both"


def test_free_variables_follow_their_distribution():
    there, one = cell(), controls().sets[0]
    drawn = [
        there.evaluate(Query([np.nan, np.nan, 0.0], one.controls, id="r/0"), there.start, 0.0, *streams(n))
        for n in range(600)
    ]
    speeds = np.array([event.sites[0, 1] for event in drawn])
    assert speeds.mean() == pytest.approx(0.4, abs=0.02)
    assert speeds.var() == pytest.approx(0.02, rel=0.2)


def streams(n):
    return stream(1, "sensor", n), stream(1, "cost", n), stream(1, "chance", n)


def test_an_observation_tells_the_whole_point_and_a_real_cost_about_the_mean_one():
    there, one = cell(), controls().sets[1]
    query = Query([2.0, np.nan, 0.5], one.controls, id="r/0")
    told = [there.evaluate(query, there.start, 0.0, *streams(n)) for n in range(400)]
    costs = np.array([event.cost for event in told])
    assert costs.mean() == pytest.approx(0.2, abs=0.01)
    assert costs.std() == pytest.approx(0.05, rel=0.15)
    assert all(event.sites[0, [0, 2]].tolist() == [2.0, 0.5] for event in told)
    assert np.isfinite([event.values[0] for event in told]).all()


def test_a_real_cost_is_never_negative():
    cost = cell(Subset(costs=(0.1, 0.2, 1.0), noise_sds=(9.0, 0.0, 0.0))).cost
    drawn = [cost.draw_cost(0.1, controls().sets[0].controls, np.random.default_rng(n)) for n in range(50)]
    assert min(drawn) == 0.0
    assert max(drawn) > 1.0


def test_the_price_goes_by_what_is_controlled_and_not_by_the_way():
    cost = cell().cost
    for one, price in zip(controls().sets, (0.1, 0.2, 1.0), strict=True):
        site = np.where(one.controls, 0.5, np.nan)
        np.testing.assert_array_equal(cost.to([0, 0, 0], [site, site], one.controls), [price, price])
        assert cost.duration_s([0, 0, 0], [site], one.controls)[0] == price
    assert cost.to([0, 0, 0], [[1, 1, 1]])[0] == 1.0, "nothing said is all set"
    assert cost.least_sampling_cost(np.zeros((1, 3))) == 0.1
    np.testing.assert_array_equal(cost.travel([0, 0, 0], [[1, 1, 1], [0, 0, 0]]), 0.0)


def test_variables_that_are_no_control_set_have_no_price_and_can_not_be_left_free():
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
    ("names", "laws", "message"),
    [
        ((["heat"],), LAWS, "leaves dose free"),
        ((["dose"], ["dose"]), LAWS, "'dose' twice"),
        ((["dose", "heat"],), (Uniform(0, 10), Uniform(0, 2), None), "domain.axes\\[1\\].free"),
    ],
    ids=["no law", "same set", "beyond its axis"],
)
def test_sets_that_do_not_fit_their_axes_are_refused(names, laws, message):
    with pytest.raises(InputError, match=message):
        Domain.box(AXES, 8, controls=controls(names, laws))


@pytest.mark.parametrize("names", [[], ["heat", "heat"], ["heat", "pressure"]])
def test_a_set_of_nothing_of_one_twice_or_of_something_unknown_is_refused(names):
    with pytest.raises(InputError, match="control_sets"):
        ControlSet.of(names, AXES, "domain.control_sets[0]")


@pytest.mark.parametrize(
    "cost", [Subset(costs=(1.0,)), Subset(costs=(1, 2, 3), noise_sds=(0.1,)), Euclidean()], ids=str
)
def test_costs_that_do_not_fit_the_control_sets_are_refused(cost):
    with pytest.raises(InputError):
        cell(cost)


def test_costs_of_control_sets_need_control_sets():
    with pytest.raises(InputError, match="without any"):
        World("x", "x", Domain.box(AXES, 8), Subset(costs=(1.0,)), "EUR", Sensor(0.1), Quantity())


def test_a_field_without_costs_can_not_be_simulated():
    with pytest.raises(InputError, match="no costs"):
        cell(Subset())
    assert not replace(cell(), field=None, cost=Subset()).cost.known


# -- chains of modules -----------------------------------------------------------------------------------

CHAIN = (Module("mill", ("dose",), 40.0), Module("bake", ("heat",), 10.0), Module("cut", ("speed",), 1.0))


def chain(**settings):
    return Modular(modules=CHAIN, **settings).within(Domain.box(AXES, 8))


@property_test
@given(moved=st.lists(st.booleans(), min_size=3, max_size=3), charge_last=st.booleans())
def test_a_change_reruns_all_modules_behind_it(moved, charge_last):
    cost, start = chain(charge_last=charge_last), np.array([5.0, 0.5, 0.0])
    end = start + 0.25 * np.array(moved)
    heat, _, dose = moved
    early = 50.0 if dose else 10.0 if heat else 0.0
    assert cost.travel(start, [end])[0] == early
    assert cost.to(start, [end])[0] == early + (1.0 if charge_last else 0.0)
    assert cost.first_changed(start, [end])[0] == (0 if dose else 1 if heat else 2)


def test_a_single_digit_is_a_change():
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
def test_modules_that_do_not_share_the_axes_out_are_refused(modules, message):
    with pytest.raises(InputError, match=message):
        replace(cell(Unit()), domain=Domain.box(AXES, 8), cost=Modular(modules=modules))


@pytest.mark.parametrize("wrong", [(), (Module("empty", (), 1.0),)], ids=["none", "empty"])
def test_a_chain_needs_modules_and_a_module_settings(wrong):
    with pytest.raises(InputError, match="modules"):
        Modular(modules=wrong)


@pytest.mark.parametrize("cost", [-1.0, np.nan, np.inf])
def test_a_module_costs_a_finite_number_of_at_least_0(cost):
    with pytest.raises(InputError, match="modules"):
        Module("mill", ("dose",), cost)
