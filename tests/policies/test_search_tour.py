"""Search tours: what readings add to the recommended place, and tours within the battery."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest

import fieldbo
from fieldbo import load_mission
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.belief.surface import Surface
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Query
from fieldbo.mission.kinds import POLICIES
from fieldbo.policies.contract import State
from fieldbo.policies.optimum._loops import growth_of_the_best_mean
from fieldbo.policies.optimum.search_tour import Outlook, SearchTour
from fieldbo.policies.tour_plan import TourCosts, plan_tour
from fieldbo.testing import PolicyContract, drive, small_mission, small_world, state


class TestContract(PolicyContract):
    def policy(self):
        return SearchTour(draws=64)


def belief_of(seed=0, readings=5):
    rng = np.random.default_rng(seed)
    at = rng.uniform(0, 1, (readings, 2))
    return Belief(Matern52([0.3, 0.2])).condition_on(at, rng.normal(size=readings), 1e-3)


def outlook_of(seed=0, W=10, noise=0.05, draws=20_000):
    """Return an outlook of W candidates and three good places, with its surface."""
    rng = np.random.default_rng(seed + 1000)
    belief = belief_of(seed)
    surface = Surface(belief, np.concatenate([rng.uniform(0, 1, (W, 2)), belief.sites[:3]]))
    return Outlook(surface, np.full(W, noise), draws, rng), surface


def value_after(surface, W, noise, read, rng, draws=200_000):
    """Return E max of the means of the good places and those read, less the best mean now, and its error."""
    covariance = surface.covariance(read, read) + noise * np.eye(len(read))
    among = [*range(W, surface.size), *read]
    moves = np.linalg.solve(np.linalg.cholesky(covariance), surface.covariance(read, among))
    means = surface.mean[among] + rng.standard_normal((draws, len(read))) @ moves
    growth = means.max(axis=1) - surface.mean[W:].max()
    return growth.mean(), growth.std() / np.sqrt(draws)


# -- what readings add -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [[2], [2, 7], [7, 2, 5, 0]])
@pytest.mark.parametrize("noise", [1e-6, 0.05, 2.0])
def test_what_readings_add_is_what_they_add_on_average(stops, noise):
    outlook, surface = outlook_of(noise=noise)
    gains, _ = outlook.gains(stops[:-1])
    before = outlook.gains(stops[:-1])[1]
    _, added = outlook.gains(stops)
    expected, error = value_after(surface, 10, noise, stops, np.random.default_rng(5))
    assert added == pytest.approx(expected, abs=5 * error + 0.02 * expected + 2e-3)
    assert before + gains[stops[-1]] == pytest.approx(added, rel=1e-3)  # the same draws


def test_what_readings_add_does_not_depend_on_their_order():
    outlook, _ = outlook_of()
    assert outlook.gains([1, 4, 8])[1] == pytest.approx(outlook.gains([8, 1, 4])[1], rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_gain_of_a_single_reading_is_the_knowledge_gradient(seed):
    outlook, surface = outlook_of(seed, W=1)
    slopes = surface.covariance([0]) / np.sqrt(surface.variance[0] + 0.05)
    now = surface.mean.max() - surface.mean[1:].max()  # the candidate may have the largest mean unread
    exact = growth_of_the_best_mean(surface.mean, slopes) + now
    assert outlook.gains([])[0] == pytest.approx(exact, rel=0.05, abs=1e-3)


def test_another_reading_of_the_only_good_place_adds_nothing():
    belief = Belief(Matern52([0.3])).condition_on([[0.5]], [3.0], 0.1)
    surface = Surface(belief, [[0.5], [0.5]])
    outlook = Outlook(surface, np.array([0.1]), 1000, np.random.default_rng(0))
    assert outlook.gains([])[0] == pytest.approx(0.0, abs=1e-6)


def test_tiny_variances_keep_their_digits():
    outlook, surface = outlook_of()
    small = Surface(
        Belief(Matern52([0.3, 0.2], 1e-20)).condition_on(
            surface.belief.sites, 1e-10 * surface.belief.values, 1e-23
        ),
        surface.candidates,
    )
    tiny = Outlook(small, np.full(10, 0.05e-20), 20_000, np.random.default_rng(1))
    assert tiny.gains([3])[0] == pytest.approx(1e-10 * outlook.gains([3])[0], rel=0.1, abs=3e-13)


# -- the plan --------------------------------------------------------------------------------------------


def costs_of(seed, W, left):
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 1, (W + 1, 2))
    travel = np.linalg.norm(places[:, None] - places[None], axis=2)
    home = np.linalg.norm(places - places[0], axis=1)
    return TourCosts(travel, home, np.full(W, 0.1), left)


def best_rate(outlook, costs, most):
    """Return the largest gain per cost of all tours of up to `most` stops within the battery."""
    rates = [0.0]
    for k in range(1, most + 1):
        for stops in combinations(range(len(costs.sampling)), k):
            gain = outlook.gains(list(stops))[1]
            for order in permutations(stops):
                route = [0, *(w + 1 for w in order)]
                if costs.of(route) + costs.home[route[-1]] <= costs.left:
                    rates.append(gain / costs.of(route))
    return max(rates)


@pytest.mark.parametrize("seed", range(4))
def test_no_tour_of_a_few_stops_is_much_better(seed):
    outlook, _ = outlook_of(seed, W=5, draws=2000)
    costs = costs_of(seed, 5, left=2.0)
    tour = plan_tour(outlook, costs, 3)
    # A tour goes on as long as a stop reaches 0.7 of the first one's gain per cost.
    assert tour.gain / tour.cost >= 0.7 * best_rate(outlook, costs, 3) - 1e-9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("left", [0.3, 0.9, 2.5])
def test_a_search_tour_and_the_way_home_are_within_the_battery(seed, left):
    outlook, _ = outlook_of(seed, draws=500)
    costs = costs_of(seed, 10, left)
    tour = plan_tour(outlook, costs, 8)
    route = [0, *(w + 1 for w in tour.stops)]
    assert len(set(route)) == len(route) <= 9
    assert costs.of(route) + costs.home[route[-1]] <= left + 1e-9


# -- the policy ------------------------------------------------------------------------------------------


def seen(**changes) -> State:
    return state(SearchTour(), question=Optimum(), **changes)


def test_it_has_its_name_and_answers_an_optimum_only():
    assert POLICIES.get("search-tour") is SearchTour
    with pytest.raises(InputError, match=r"level set|question"):
        small_mission(SearchTour(), question=LevelSet(0.3))


def test_costs_that_are_not_declared_are_rejected():
    with pytest.raises(InputError, match="declared costs"):
        SearchTour().check(None, small_world().domain)


def test_a_plan_is_paid_for_with_the_way_home():
    for battery in (6.0, 12.0, 30.0):
        view = seen(battery=battery)
        decision = SearchTour().suggest(view, None)
        if not isinstance(decision.choice, Query):
            continue
        stops = np.array([view.position, *(row["stop"] for row in decision.why["tour"])])
        cost = sum(float(view.cost.to(a, b[None])[0]) for a, b in pairwise(stops))
        assert cost + float(view.return_cost(stops[-1:])[0]) <= view.spendable + 1e-9


def test_a_batch_is_the_beginning_of_the_search_tour():
    first, batch = SearchTour().suggest(seen(), None), SearchTour().suggest_batch(seen(), None, 3)
    assert batch[0].choice.site.tolist() == first.choice.site.tolist()
    assert [d.choice.site.tolist() for d in batch] == [row["stop"] for row in first.why["tour"][:3]]


@pytest.mark.parametrize("battery", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_a_run_comes_home_with_its_reserve(battery):
    mission = load_mission(
        "wall-worst-crack", {"policy": {"kind": "search-tour"}, "agent": {"battery": battery}}
    )
    result = fieldbo.run(mission)
    assert result.end_reason is EndReason.BATTERY_SPENT
    vehicle = mission.vehicles[0]
    assert result.cost <= vehicle.battery - vehicle.reserve + 1e-9


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 12), *(pytest.param(seed, 46, marks=pytest.mark.slow) for seed in (0, 1))]
)
def test_the_same_seed_takes_the_same_path_in_a_box(seed, steps):
    settings = {"seed": seed, "agent": {"battery": 9, "max_steps": steps}}
    first, again = (fieldbo.run(load_mission("branin-search-tour", settings)) for _ in range(2))
    np.testing.assert_array_equal(first.sites, again.sites)
    assert len(first.sites) > 0.85 * steps


def test_a_step_costs_its_part_of_the_battery_when_steps_are_limited():
    last, free = (SearchTour().suggest(seen(steps_left=n), None) for n in (1, np.inf))
    assert len(last.why["tour"]) == 1
    cost = [decision.why["gain"] / decision.why["score"] for decision in (last, free)]
    assert cost[0] >= seen().spendable  # all that is left
    assert cost[1] <= seen().spendable


def test_without_noise_no_site_is_read_again_and_the_question_is_answered_when_all_are():
    mission = small_mission(SearchTour(), world=small_world((3, 3), noise_sd=0.0), battery=1000.0)
    _, orders, stop = drive(mission)
    sites = [tuple(order.site) for order in orders if isinstance(order, Query)]
    assert len(sites) == len(set(sites)) == 9
    assert stop.reason is EndReason.QUESTION_ANSWERED


def test_minimising_mirrors_maximising():
    world = small_world()
    up, down = (
        SearchTour().suggest(
            state(
                SearchTour(),
                question=Optimum(goal),
                world=world,
                sites=[[0.0, 0.0], [2.0, 3.0], [4.0, 1.0]],
                values=[sign * v for v in (0.3, 1.0, -0.4)],
            ),
            None,
        )
        for goal, sign in (("maximise", 1), ("minimise", -1))
    )
    assert up.choice.site.tolist() == down.choice.site.tolist()


def test_it_chooses_the_level_of_the_sensor():
    mission = load_mission(
        "gp-level-noise",
        {"policy": {"kind": "search-tour"}, "question": {"kind": "optimum"}, "agent": {"battery": 60}},
    )
    levels = {order.level for order in drive(mission)[1] if isinstance(order, Query)}
    assert levels
    assert levels <= set(range(3))


def test_a_box_without_readings_has_a_first_stop():
    mission = fieldbo.load_mission("branin-search-tour", {"initial": {"count": 0}, "agent": {"max_steps": 2}})
    assert len(fieldbo.run(mission).sites) == 2
