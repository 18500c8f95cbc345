"""Factory cells: the shipped chains of modules and priced control sets, plant and airfoil."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tiers import swept

import fieldbo
from fieldbo.belief.question import Optimum
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import halton
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import Query
from fieldbo.results.truth import expected_truth_of, truth_of
from fieldbo.world.fields.gallery.airfoil import AirfoilNoise
from fieldbo.world.fields.gallery.growth import Growth

CHAINS = {
    "cell-hartmann-6": ((3, 3), (10, 1), -3.322368011415515),
    "cell-rastrigin-6": ((3, 3), (10, 1), 0.0),
    "cell-griewank-6": ((3, 3), (10, 1), 0.0),
    "cell-ackley-8": ((2, 2, 4), (40, 10, 1), 0.0),
    "cell-ackley-8-two": ((4, 4), (10, 1), 0.0),
}
TWELVE = {
    "cell-hartmann-12-cheap": (0.01, 0.01, 0.01, 0.1, 0.1, 0.1, 1),
    "cell-hartmann-12-moderate": (0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 1),
    "cell-ackley-12-cheap": (0.01, 0.01, 0.01, 0.1, 0.1, 0.1, 1),
    "cell-ackley-12-moderate": (0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 1),
}
FIVE = {
    "cell-growth": (0.01, 0.01, 0.01, 0.1, 0.1, 0.1, 1),
    "cell-airfoil": (0.1, 0.1, 0.01, 0.1, 0.1, 0.01, 0.1, 1),
}
SUBSETS = {**TWELVE, **FIVE}
PLANT = fieldbo.load_world("cell-growth")
TUNNEL = fieldbo.load_world("cell-airfoil")
shares = st.lists(st.floats(0, 1), min_size=5, max_size=5)


def point(world, at):
    """The point (5,) at those shares of the axes' lengths."""
    return world.domain.low + np.array(at) * world.domain.extent


def best_mean(world, controls, n=64):
    """The largest mean value that setting some variables can reach over what the others come to."""
    domain = world.domain
    laws = zip(domain.distributions, halton(n, domain.dimension).T, strict=True)
    left = np.column_stack([law.quantile(u) for law, u in laws])

    def lost(at):
        points = left.copy()
        points[:, controls] = (domain.low + np.clip(at, 0, 1) * domain.extent)[controls]
        return -float(world.truth(points).mean())

    starts = np.random.default_rng(0).random((6, domain.dimension))
    ends = [minimize(lost, s, method="L-BFGS-B", bounds=[(0, 1)] * domain.dimension) for s in starts]
    return -min(end.fun for end in ends)


# -- chains ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_costs_what_its_modules_cost_from_the_first_that_changed(name):
    world = fieldbo.load_world(name)
    split, costs, _ = CHAINS[name]
    here = world.domain.middle + 0.1 * world.domain.extent
    first = 0
    for module, count in enumerate(split):
        there = here.copy()
        there[first + count - 1] += 0.01
        assert world.cost.to(here, there[None]) == pytest.approx([sum(costs[module:])])
        first += count
    assert first == world.domain.dimension
    assert world.cost.to(here, here[None]) == pytest.approx([costs[-1]])


@pytest.mark.parametrize("name", CHAINS)
def test_the_least_value_of_a_chain_is_known_and_not_where_it_starts(name):
    world = fieldbo.load_world(name)
    best = truth_of(world, Optimum("minimise")).optimum
    assert best.value == pytest.approx(CHAINS[name][2], abs=1e-12)
    assert world.truth(world.domain.sites).min() > best.value
    assert world.truth(world.start[None])[0] > best.value + 1


@pytest.mark.parametrize("name", CHAINS)
def test_readings_of_a_chain_scatter_by_a_hundredth_of_its_largest_absolute_value(name):
    world = fieldbo.load_world(name)
    # bowls are highest where all coordinates are alike, Hartmann's wells are deepest at the least value
    diagonal = world.domain.low + np.linspace(0, 1, 20_001)[:, None] * world.domain.extent
    largest = max(-CHAINS[name][2], world.truth(diagonal).max())
    noise_sd = np.sqrt(world.sensor.variance(world.domain.sites[:1], 0)[0])
    assert noise_sd == pytest.approx(0.01 * largest, rel=0.03)


# -- subsets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUBSETS)
def test_each_control_set_has_its_price_and_a_larger_one_is_never_cheaper(name):
    world = fieldbo.load_world(name)
    sets, here = world.domain.control_sets, world.start
    prices = [float(world.cost.to(here, here[None], one.controls)[0]) for one in sets]
    assert tuple(prices) == SUBSETS[name]
    assert sets[-1].controls.all()
    for one, price in zip(sets, prices, strict=True):
        for other, more in zip(sets, prices, strict=True):
            if (one.controls <= other.controls).all():
                assert price <= more


@pytest.mark.parametrize("name", SUBSETS)
def test_real_costs_scatter_only_where_they_are_a_tenth_or_more(name):
    world = fieldbo.load_world(name)
    luck = np.random.default_rng(3)
    for one, price in zip(world.domain.control_sets, SUBSETS[name], strict=True):
        real = np.array([world.cost.draw_cost(price, one.controls, luck) for _ in range(2000)])
        assert (real >= 0).all()
        assert real.std() == pytest.approx(0.02 if price >= 0.1 else 0.0, rel=0.1)
        assert real.mean() == pytest.approx(price, abs=0.003)


@pytest.mark.parametrize("name", SUBSETS)
def test_what_is_left_free_follows_the_same_law_on_each_axis(name):
    domain = fieldbo.load_world(name).domain
    for axis, law in zip(domain.axes, domain.distributions, strict=True):
        scaled = (law.mean - axis.low) / axis.extent, law.variance / axis.extent**2
        assert scaled == pytest.approx((0.5, 0.02), rel=1e-4)
        assert (law.low, law.high) == (axis.low, axis.high)


@pytest.mark.parametrize("name", SUBSETS)
def test_a_sample_of_a_subset_has_what_was_set_and_what_came_about(name):
    world = fieldbo.load_world(name)
    rng = np.random.default_rng(6)
    for one in world.domain.control_sets:
        asked = world.domain.sites[0]
        query = Query(asked, one.controls, id="run/0")
        told = world.evaluate(query, world.start, 0.0, rng, rng, rng)
        assert world.domain.contains(told.sites).all()
        assert np.array_equal(told.sites[0, one.controls], asked[one.controls])
        assert not np.any(told.sites[0, ~one.controls] == asked[~one.controls])


@pytest.mark.parametrize("name", SUBSETS)
def test_no_value_of_a_priced_cell_is_negative(name):
    world = fieldbo.load_world(name)
    assert world.truth(world.domain.sites).min() >= 0


@pytest.mark.parametrize(("name", "most"), [("hartmann", 3.322368011415515), ("ackley", 22.35)])
def test_two_of_seven_subsets_of_twelve_variables_hold_the_largest_value(name, most):
    cheap, moderate = (fieldbo.load_world(f"cell-{name}-12-{how}") for how in ("cheap", "moderate"))
    assert truth_of(cheap, Optimum("maximise")).optimum.value == pytest.approx(most, abs=1e-12)
    best = truth_of(cheap, Optimum("maximise")).optimum.point
    free = best.copy()
    free[6:] = np.random.default_rng(0).random(6)
    assert cheap.truth(np.array([best, free])) == pytest.approx([most, most])
    holding = [s.controls[:6].all() for s in cheap.domain.control_sets]
    assert holding == [False, False, False, False, True, False, True]
    assert np.array_equal(cheap.truth(cheap.domain.sites), moderate.truth(moderate.domain.sites))


WORTH = {  # as their READMEs say
    "cell-growth": (1.64, 2.80, 1.49, 3.25, 3.42, 2.95, 3.73),
    "cell-airfoil": (27.0, 20.5, 26.5, 19.2, 19.2, 20.9, 24.7, 37.5),
}


@pytest.mark.parametrize("name", swept(FIVE, ["cell-growth"]))
def test_control_sets_are_worth_what_the_readme_says(name):
    world = fieldbo.load_world(name)
    worth = [best_mean(world, s.controls) for s in world.domain.control_sets]
    assert worth == pytest.approx(WORTH[name], rel=0.05)
    stated = expected_truth_of(world, Optimum("maximise"))
    assert [stated.value(gain) for gain in stated.best_of_sets] == pytest.approx(WORTH[name], rel=0.005)
    assert worth[-1] == pytest.approx(truth_of(world, Optimum("maximise")).optimum.value, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CHAINS, *SUBSETS])
def test_a_mission_in_a_cell_runs_and_is_charged(name, tmp_path):
    file = tmp_path / "try.toml"
    goal = "minimise" if name in CHAINS else "maximise"
    file.write_text(
        f'format = 1\ntitle = "a try"\nworld = "{name}"\n[question]\nkind = "optimum"\ngoal = "{goal}"\n'
        '[agent]\nbattery = 60\nmax_steps = 4\n[policy]\nkind = "random"\n[model]\nkernel = "matern52"\n'
    )
    result = fieldbo.run(fieldbo.load_mission(file))
    assert 1 <= len(result.values) <= 4
    assert 0 < result.cost <= 60


# -- the plant -------------------------------------------------------------------------------------------


@given(shares)
def test_growth_stays_below_what_the_scarcest_nutrient_allows(at):
    here = point(PLANT, at)[None]
    limits = PLANT.field.limits(here)[0]
    assert ((limits >= 0) & (limits <= 1)).all()
    assert 0 <= PLANT.truth(here)[0] <= 10 * limits.min() + 1e-12


@pytest.mark.parametrize("nutrient", range(4))
def test_nothing_grows_without_a_nutrient_nor_with_far_too_much_of_it(nutrient):
    best = truth_of(PLANT, Optimum("maximise")).optimum
    without, much = best.point.copy(), best.point.copy()
    without[nutrient], much[nutrient] = 0.0, 100 * best.point[nutrient]
    values = PLANT.field.values(np.array([without, much]))
    assert values[0] == 0
    assert values[1] < 0.01 * best.value


def test_the_best_medium_lies_between_the_ends_of_all_axes():
    best = truth_of(PLANT, Optimum("maximise")).optimum.point
    at = (best - PLANT.domain.low) / PLANT.domain.extent
    assert ((at > 0.1) & (at < 0.9)).all()


@given(shares, st.floats(0.1, 5))
def test_ammonium_keeps_potassium_out_and_potassium_calcium(at, more):
    here = point(PLANT, at)
    for rival, kept_out in ((2, 3), (3, 0)):
        there = here.copy()
        there[rival] += more
        limits = PLANT.field.limits(np.array([here, there]))
        assert limits[1, kept_out] <= limits[0, kept_out]


@given(shares, st.floats(0.1, 2))
def test_ammonium_is_more_toxic_in_a_more_alkaline_medium(at, more):
    here = point(PLANT, at)
    there = here + np.array([0, 0, 0, 0, more])
    limits = PLANT.field.limits(np.array([here, there]))
    assert limits[1, 2] <= limits[0, 2]


def test_acidity_acts_as_a_bell_between_two_ends():
    medium = np.tile(PLANT.domain.middle, (7, 1))
    medium[:, 4] = [0.0, 3.5, 4.6, 5.8, 7.2, 9.0, 14.0]
    bell = PLANT.field.limits(medium)[:, 4]
    assert bell[[0, 1, 5, 6]].tolist() == [0, 0, 0, 0]
    assert bell[3] == 1
    assert ((bell[[2, 4]] > 0.3) & (bell[[2, 4]] < 0.95)).all()


# -- the airfoil -----------------------------------------------------------------------------------------


@given(shares, st.floats(1.01, 1.5))
def test_a_faster_stream_is_louder(at, times):
    here = point(TUNNEL, at)
    there = here * [1, 1, 1, times, 1]
    slow, fast = TUNNEL.field.values(np.array([here, there]))
    assert fast >= slow


@given(shares)
def test_the_level_is_above_the_background_and_that_of_the_loudest_source_counts_most(at):
    here = point(TUNNEL, at)[None]
    loudest = TUNNEL.field.sources(here).max()
    level = TUNNEL.truth(here)[0]
    assert level >= 0
    # all three together, as heard (at best 1.3 dB more), above 40 dB
    assert level <= 10 * np.log10(1 + 3 * 10 ** ((loudest + 1.3 - 40) / 10))


def test_far_above_their_peak_sources_fall_and_below_it_they_rise_with_frequency():
    sites = np.tile(point(TUNNEL, [0, 0.5, 0.5, 0.5, 0.5]), (200, 1))
    sites[:, 0] = np.linspace(0, 7, 200)
    levels = TUNNEL.field.sources(sites)
    per_decade = np.diff(levels, axis=0) / np.diff(sites[:, 0])[:, None]
    assert per_decade[0] == pytest.approx([30] * 3, abs=0.1)
    assert per_decade[-1] == pytest.approx([-35] * 3, abs=0.1)
    assert ((np.diff(np.sign(per_decade), axis=0) != 0).sum(axis=0) == 1).all()


def test_a_thicker_layer_has_its_peak_at_a_lower_frequency_and_is_louder_there():
    sites = np.tile(point(TUNNEL, [0, 0.5, 0.5, 0.5, 0]), (400, 1))
    sites[:, 0] = np.linspace(1, 6, 400)
    thin = TUNNEL.field.sources(sites)[:, 1]
    thick = TUNNEL.field.sources(sites + np.array([0, 0, 0, 0, 1]))[:, 1]
    assert thick.max() == pytest.approx(thin.max() + 10, abs=0.01)
    assert sites[thin.argmax(), 0] == pytest.approx(sites[thick.argmax(), 0] + 1, abs=0.02)


def test_separated_air_is_loudest_at_some_angle_of_attack():
    sites = np.tile(point(TUNNEL, [0.5, 0, 0.5, 0.5, 0.5]), (100, 1))
    sites[:, 1] = np.linspace(0, 22.2, 100)
    separation = TUNNEL.field.sources(sites)[:, 2]
    assert 5 < sites[separation.argmax(), 1] < 15
    assert separation.max() > separation[[0, -1]].max() + 5


def test_the_loudest_condition_lies_between_the_ends_of_all_axes_but_that_of_velocity():
    best = truth_of(TUNNEL, Optimum("maximise")).optimum.point
    at = (best - TUNNEL.domain.low) / TUNNEL.domain.extent
    others = np.delete(at, 3)
    assert at[3] == pytest.approx(1)
    assert ((others > 0.05) & (others < 0.95)).all()


@pytest.mark.parametrize("world", [PLANT, TUNNEL], ids=["plant", "airfoil"])
def test_a_formula_over_five_axes_is_smooth(world):
    """A second difference falls with the square of its step, everywhere."""
    domain = world.domain
    centre = domain.low + (0.01 + 0.98 * np.random.default_rng(7).random((300, 5))) * domain.extent
    spread = np.ptp(world.truth(domain.sites))
    for axis in np.eye(5):
        step = 1e-3 * axis * domain.extent
        bend = world.truth(centre + step) - 2 * world.truth(centre) + world.truth(centre - step)
        assert np.abs(bend).max() < 1e-3 * spread


@pytest.mark.parametrize("kind", [Growth(), AirfoilNoise()], ids=["growth", "airfoil"])
def test_a_domain_that_does_not_fit_a_formula_is_rejected(kind):
    with pytest.raises(InputError, match="over 2 axes"):
        kind.make(Domain.box([Axis("x", "", 1, 2), Axis("y", "", 1, 2)], 8))
    with pytest.raises(InputError, match="axis 'x2' starts at -1"):
        kind.make(Domain.box([Axis(f"x{i}", "", -1 if i == 2 else 1, 5) for i in range(5)], 8))
