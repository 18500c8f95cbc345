"""Textbook test functions: their best values, and the worlds that use them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

import fieldbo
from fieldbo.belief.question import Optimum
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.results.truth import truth_of
from fieldbo.world.fields.function import (
    Function,
    ackley,
    ackley12,
    branin,
    griewank,
    hartmann6,
    hartmann12,
    rastrigin,
)

LEAST = {"branin-2": 10 / (8 * np.pi), "ackley-2": 0.0, "hartmann-6": -3.322368011415515}
coordinates = st.floats(-40, 40)


def cube(name, d, low=-1.0, high=1.0):
    domain = Domain.box([Axis(f"x{i}", "", low, high) for i in range(d)], 64)
    return Function(name).make(domain)


@pytest.mark.parametrize("world", LEAST)
def test_the_optimum_of_a_test_world_is_exact(world):
    best = truth_of(fieldbo.load_world(world), Optimum("minimise")).optimum
    assert best.value == pytest.approx(LEAST[world], abs=1e-12)
    assert best.site is None


@pytest.mark.parametrize("world", LEAST)
def test_no_value_in_a_test_world_lies_below_its_optimum(world):
    there = fieldbo.load_world(world)
    optimum = truth_of(there, Optimum("minimise")).optimum
    rng, domain = np.random.default_rng(0), there.domain
    near = optimum.point + domain.extent * rng.standard_normal((5000, domain.dimension)) * 0.01
    far = rng.uniform(domain.low, domain.high, (20_000, domain.dimension))
    for points in (near[domain.contains(near)], far, domain.sites):
        assert there.truth(points).min() >= optimum.value - 1e-12


@pytest.mark.parametrize("name", ["branin", "hartmann6"])
def test_the_gradient_of_a_smooth_test_function_vanishes_at_its_minima(name):
    d = 2 if name == "branin" else 6
    field = cube(name, d, -20, 20)
    assert len(field.best) == (3 if name == "branin" else 1)
    for point in field.best:
        slope = approx_fprime(point, lambda x: field.values(x[None])[0], 1e-6)
        assert np.abs(slope).max() < 1e-3


@given(st.lists(coordinates, min_size=1, max_size=8), st.randoms())
def test_ackley_ignores_the_signs_and_the_order_of_its_variables(point, random):
    shuffled = [random.choice((-1, 1)) * x for x in random.sample(point, len(point))]
    assert ackley([shuffled]) == pytest.approx(ackley([point]), abs=1e-12)
    assert -1e-12 <= ackley([point])[0] <= 20 + np.e


@given(st.lists(st.lists(coordinates, min_size=6, max_size=6), min_size=1, max_size=5))
def test_evaluating_many_points_equals_evaluating_each(points):
    for function, d in ((branin, 2), (ackley, 6), (hartmann6, 6), (rastrigin, 5), (griewank, 6)):
        some = np.array(points)[:, :d]
        together = function(some)
        assert together.shape == (len(some),)
        assert np.allclose(together, [function(p)[0] for p in some], rtol=1e-12, atol=1e-12)


@given(st.lists(coordinates, min_size=1, max_size=8), st.randoms())
def test_rastrigin_is_a_sum_over_variables_and_ignores_their_signs(point, random):
    shuffled = [random.choice((-1, 1)) * x for x in random.sample(point, len(point))]
    assert rastrigin([shuffled]) == pytest.approx(rastrigin([point]), abs=1e-9)
    assert rastrigin([point])[0] == pytest.approx(sum(rastrigin([[x]])[0] for x in point), abs=1e-9)
    assert rastrigin([np.round(point)]) == pytest.approx(np.sum(np.round(point) ** 2), abs=1e-9)


@given(st.lists(st.floats(-600, 600), min_size=1, max_size=8))
def test_griewank_differs_from_its_bowl_by_at_most_its_waves(point):
    bowl = np.sum(np.square(point)) / 4000
    assert bowl - 1e-9 <= griewank([point])[0] <= bowl + 2 + 1e-9
    assert griewank([np.negative(point)]) == pytest.approx(griewank([point]))


def test_waves_of_griewank_are_longer_in_later_variables():
    """If a single wave is at its lowest and all others are at their highest, the product is -1."""
    for k in range(4):
        point = np.zeros(4)
        point[k] = np.pi * np.sqrt(k + 1)
        assert griewank([point])[0] == pytest.approx(np.pi**2 * (k + 1) / 4000 + 2)


unit = st.lists(st.floats(0, 1), min_size=12, max_size=12)


@given(unit, unit)
def test_the_last_six_of_twelve_variables_have_no_effect_and_values_are_not_negative(point, other):
    for function in (hartmann12, ackley12):
        value = function([point])[0]
        assert value >= 0
        assert function([point[:6] + other[6:]])[0] == value


@given(unit)
def test_the_functions_of_twelve_variables_are_the_negated_ones_of_six(point):
    first = np.array([point[:6]])
    assert hartmann12([point]) == pytest.approx(-hartmann6(first))
    assert ackley12([point]) == pytest.approx(22.35 - ackley((first - 0.5) * 65.536))


@pytest.mark.parametrize(("name", "most"), [("hartmann12", 3.322368011415515), ("ackley12", 22.35)])
def test_the_functions_of_twelve_variables_know_their_maximum_and_not_their_minimum(name, most):
    field = cube(name, 12, 0.0, 1.0)
    best = field.optimum("maximise")
    assert field.values(best[None])[0] == pytest.approx(most, abs=1e-12)
    assert field.optimum("minimise") is None
    rng = np.random.default_rng(1)
    near = np.clip(best + 0.01 * rng.standard_normal((5000, 12)), 0, 1)
    assert field.values(np.concatenate([near, rng.random((20_000, 12))])).max() <= most + 1e-12


@pytest.mark.parametrize(("name", "end"), [("rastrigin", 5.12), ("griewank", 600.0), ("ackley", 32.768)])
def test_functions_of_any_number_of_variables_have_their_minimum_at_the_origin(name, end):
    rng = np.random.default_rng(2)
    for d in (1, 3, 8):
        field = cube(name, d, -end, end)
        assert field.optimum("minimise").tolist() == [0.0] * d
        assert field.values(np.zeros((1, d)))[0] == pytest.approx(0, abs=1e-12)
        assert field.values(end * rng.uniform(-1, 1, (5000, d))).min() > 0
        assert field.values(0.001 * end * rng.standard_normal((5000, d))).min() > 0


def test_the_minimum_is_unknown_if_it_lies_outside_the_domain():
    assert cube("hartmann6", 6).optimum("minimise") is not None
    assert cube("hartmann6", 6, -1, 0).optimum("minimise") is None
    assert cube("ackley", 3, 1, 2).optimum("minimise") is None
    assert cube("branin", 2, 0, 5).optimum("minimise") == pytest.approx([np.pi, 2.275])


def test_an_unknown_maximum_is_found_by_climbing():
    world = fieldbo.load_world("branin-2")
    assert world.field.optimum("maximise") is None
    highest = truth_of(world, Optimum("maximise")).optimum
    assert highest.value == pytest.approx(branin([[-5, 0]])[0])


def test_on_a_grid_the_optimum_is_the_best_site():
    coarse = Domain.grid([Axis("x", "", -5, 10), Axis("y", "", 0, 15)], (4, 4))
    world = fieldbo.load_world("branin-2")
    cost = type(world.cost)()
    gridded = fieldbo.World(
        "g", "g", coarse, cost, "m", world.sensor, world.quantity, Function("branin").make(coarse)
    )
    assert truth_of(gridded, Optimum("minimise")).optimum.value == branin(coarse.sites).min()


@pytest.mark.parametrize(("name", "axes"), [("branin", 3), ("hartmann6", 2), ("ackley12", 6)])
def test_a_domain_with_the_wrong_number_of_axes_is_rejected(name, axes):
    with pytest.raises(InputError, match=f"{name} over {axes} axes"):
        cube(name, axes)


def test_points_with_the_wrong_number_of_coordinates_are_rejected():
    for function in (branin, hartmann6, hartmann12, ackley12):
        with pytest.raises(InputError, match="got 3 variables"):
            function([[1, 2, 3]])


@pytest.mark.parametrize("name", LEAST)
def test_a_move_across_a_whole_axis_of_a_test_world_costs_one(name):
    world = fieldbo.load_world(name)
    low, high = world.domain.low, world.domain.high
    for axis in range(world.domain.dimension):
        end = low.copy()
        end[axis] = high[axis]
        assert world.cost.to(low, end[None]) == pytest.approx([1.0])
    assert world.cost.to(low, high[None]) == pytest.approx([np.sqrt(world.domain.dimension)])
