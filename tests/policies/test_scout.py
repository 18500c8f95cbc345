"""Scout: what readings tell and cover, and tours that inspect before they commit."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fieldbo
from fieldbo import load_mission
from fieldbo.belief.covering import Covering, Readings
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.belief.surface import Surface
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, GoHome, Query, Stop
from fieldbo.mission.kinds import POLICIES
from fieldbo.policies.contract import State
from fieldbo.policies.optimum._loops import growth_of_the_best_mean
from fieldbo.policies.optimum.scout import Covers, Mixture, Scout, Tells, Worth, bound_belief
from fieldbo.runs.explain import details
from fieldbo.runs.reasons import best_of
from fieldbo.testing import PolicyContract, drive, small_mission, small_world, state

WALL = Domain.grid([Axis("x", "m", 0, 40), Axis("y", "m", 0, 20)], (41, 21))
NOISE = 0.04


class TestContract(PolicyContract):
    def policy(self):
        return Scout()


def readings_of(seed=0, n=12):
    rng = np.random.default_rng(seed)
    return WALL.sites[rng.choice(WALL.size, n, replace=False)], rng.normal(size=n)


def parts_of(seed=0, W=15, slack=0.1):
    """Return a covering, a mixture over W candidates on a wall and the best place, and a slack."""
    sites, values = readings_of(seed)
    noise = np.full(len(values), NOISE)
    belief = Belief(Matern52([6.0, 6.0])).condition_on(sites, values, noise)
    covering = Covering(WALL, Readings.of(WALL, sites, values, noise, 0.2), 8.0)
    surfaces = tuple(Surface(b, WALL.sites) for b in (belief, bound_belief(belief, WALL, covering)))
    whole = Mixture(surfaces, covering.level)
    best = int(np.argmax(whole.mean))
    rows = np.random.default_rng(seed + 100).choice(WALL.size, W, replace=False)
    return covering, whole.over(WALL.sites[[*rows, best, best]]), slack


def sites_of(places):
    return places.surfaces[0].candidates[:-1]


def told_exactly(K, gaps, read):
    """Return by how much a reading at `read` is expected to raise the better of two means, slack included."""
    slopes = K[read] / np.sqrt(K[read, read] + NOISE)
    best = len(K) - 1
    others = range(best - 1) if read == best - 1 else [read]
    return max(
        float(growth_of_the_best_mean(np.array([-gaps[k], 0.0]), slopes[None, [k, best]])[0]) for k in others
    )


@pytest.mark.parametrize("stops", [[], [3], [3, 7, 1], [15, 2]])
def test_a_reading_tells_what_it_is_expected_to_add_to_the_better_of_two_places(stops):
    _, places, slack = parts_of()
    told, _ = Tells(places, np.full(len(places.mean) - 1, NOISE), slack).after(stops)
    K = places.covariance()
    K -= K[:, stops] @ np.linalg.solve(K[np.ix_(stops, stops)] + NOISE * np.eye(len(stops)), K[stops])
    gaps = places.mean[-1] + slack - places.mean
    expected = [told_exactly(K, gaps, k) for k in range(len(told))]
    assert told == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_what_several_readings_tell_is_the_sum_of_one_after_the_other():
    _, places, slack = parts_of(1)
    tells = Tells(places, np.full(len(places.mean) - 1, NOISE), slack)
    stops = [15, 4, 9]
    one_by_one = sum(tells.after(stops[:k])[0][stop] for k, stop in enumerate(stops))
    assert tells.after(stops)[1] == pytest.approx(one_by_one, rel=1e-9)


def test_slack_leaves_small_differences_for_later():
    _, places, _ = parts_of()
    noise = np.full(len(places.mean) - 1, NOISE)
    now, later = (Tells(places, noise, slack).after([])[0] for slack in (0.0, 0.5))
    assert (later < now).all()


def test_what_two_beliefs_disagree_about_is_uncertain():
    sites, values = readings_of()
    both = [Belief(Matern52([scale] * 2)).condition_on(sites, values, NOISE) for scale in (2.0, 20.0)]
    first, second = (Surface(b, WALL.sites) for b in both)
    mixed, alone = Mixture((first, second), 0.3), Mixture((first, first), 0.0)
    half = 0.5 * (first.mean + second.mean + 0.3)
    square = 0.5 * (first.variance + first.mean**2 + second.variance + (second.mean + 0.3) ** 2)
    assert mixed.mean == pytest.approx(half)
    assert mixed.variance == pytest.approx(square - half**2)
    assert np.diag(mixed.covariance()) == pytest.approx(mixed.variance)
    assert alone.covariance() == pytest.approx(first.covariance())


# -- what readings cover ---------------------------------------------------------------------------------


def covered_in_words(covering, sites, stops):
    """Return what each candidate covers beyond the readings and the stops, and what these cover together."""
    at, reaches, all_sites, radius, sizes, covered, weights = covering.around(sites)
    distance = np.linalg.norm(at[:, None] - all_sites, axis=2) / reaches[:, None]
    with np.errstate(divide="ignore"):
        seen = np.clip(np.log(sizes * radius / distance) / np.log(sizes), 0.0, 1.0)
    base = np.maximum(covered, seen[stops].max(axis=0, initial=0.0))
    return np.maximum(seen - base, 0.0) @ weights, (base - covered) @ weights


@pytest.mark.parametrize("stops", [[], [3], [3, 7, 1]])
@pytest.mark.parametrize("seed", range(3))
def test_what_readings_cover_is_the_sum_over_all_sites(stops, seed):
    covering, places, _ = parts_of(seed)
    sites = sites_of(places)
    covers = Covers(covering, sites, np.full(len(sites), NOISE), excess=2.0)
    further, together = covers.after(stops)
    expected, before = covered_in_words(covering, sites, stops)
    assert further == pytest.approx(expected, abs=1e-12)  # half of an excess of 2
    assert together == pytest.approx(before, abs=1e-12)


def test_reading_a_site_again_covers_nothing():
    covering, _, _ = parts_of()
    sites, _ = readings_of()
    further, _ = Covers(covering, sites, np.full(len(sites), NOISE), 1.0).after([])
    assert further == pytest.approx(0.0, abs=1e-12)


def test_a_noisy_reading_does_not_notice_a_small_excess():
    covering, places, _ = parts_of()
    sites = sites_of(places)
    precise, noisy = (
        Covers(covering, sites, np.full(len(sites), noise), 0.1).after([])[0].sum() for noise in (NOISE, 4.0)
    )
    assert noisy < 0.1 * precise


def test_a_stop_is_worth_nothing_twice():
    covering, places, slack = parts_of()
    noise = np.full(len(places.mean) - 1, NOISE)
    worth = Worth(Covers(covering, sites_of(places), noise, 1.0), Tells(places, noise, slack))
    gains, added = worth.gains([2, 5])
    assert gains[[2, 5]].tolist() == [0.0, 0.0]
    assert added >= worth.covers([2, 5]) > 0


# -- the bounded belief ----------------------------------------------------------------------------------


def test_the_bounded_belief_vouches_for_no_place_far_from_all_readings():
    sites, values = readings_of()
    noise = np.full(len(values), NOISE)
    belief = Belief(Matern52([90.0, 3.0])).condition_on(sites, values, noise)
    covering = Covering(WALL, Readings.of(WALL, sites, values, noise, 0.2), 8.0)
    kernel = bound_belief(belief, WALL, covering).kernel
    assert kernel.length_scales.tolist() == [16.0, 3.0]
    assert np.sqrt(kernel.variance) >= (covering.best - covering.level - 0.4) / 2.5 - 1e-9


# -- the policy ------------------------------------------------------------------------------------------


def seen(**changes) -> State:
    return state(Scout(), question=Optimum(), **changes)


def test_it_has_its_name_and_answers_an_optimum_only():
    assert POLICIES.get("scout") is Scout
    with pytest.raises(InputError, match=r"level set|question"):
        small_mission(Scout(), question=LevelSet(0.3))


def test_costs_that_are_not_declared_are_rejected():
    with pytest.raises(InputError, match="declared costs"):
        Scout().check(None, small_world().domain)


def test_a_plan_is_paid_for_with_the_way_home():
    for battery in (6.0, 12.0, 30.0):
        view = seen(battery=battery)
        decision = Scout().suggest(view, None)
        if not isinstance(decision.choice, Query):
            continue
        stops = np.array([view.position, *(row["stop"] for row in decision.why["tour"])])
        cost = sum(float(view.cost.to(a, b[None])[0]) for a, b in pairwise(stops))
        assert cost + float(view.return_cost(stops[-1:])[0]) <= view.spendable + 1e-9


def test_a_batch_is_the_beginning_of_the_tour():
    first, batch = Scout().suggest(seen(), None), Scout().suggest_batch(seen(), None, 3)
    assert batch[0].choice.site.tolist() == first.choice.site.tolist()
    assert [d.choice.site.tolist() for d in batch] == [row["stop"] for row in first.why["tour"][:3]]


@pytest.mark.parametrize("battery", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_a_run_comes_home_with_its_reserve(battery):
    settings = {"agent": {"battery": battery}, "policy": {"kind": "scout"}}
    mission = load_mission("wall-worst-crack", settings)
    result = fieldbo.run(mission)
    assert result.end_reason is EndReason.BATTERY_SPENT
    vehicle = mission.vehicles[0]
    assert result.cost <= vehicle.battery - vehicle.reserve + 1e-9


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_takes_the_same_path_in_a_box(seed):
    settings = {"seed": seed, "policy": {"kind": "scout"}, "agent": {"battery": 9, "max_steps": 12}}
    first, again = (fieldbo.run(load_mission("branin-search-tour", settings)) for _ in range(2))
    np.testing.assert_array_equal(first.sites, again.sites)
    assert len(first.sites) == 12


def test_without_noise_no_site_is_read_again_and_the_question_is_answered_when_all_are():
    mission = small_mission(Scout(), world=small_world((3, 3), noise_sd=0.0), battery=1000.0)
    _, orders, stop = drive(mission)
    sites = [tuple(order.site) for order in orders if isinstance(order, Query)]
    assert len(sites) == len(set(sites)) == 9
    assert stop.reason is EndReason.QUESTION_ANSWERED


def test_minimising_mirrors_maximising():
    world = small_world()
    up, down = (
        Scout().suggest(
            state(
                Scout(),
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
        {"policy": {"kind": "scout"}, "question": {"kind": "optimum"}, "agent": {"battery": 60}},
    )
    levels = {order.level for order in drive(mission)[1] if isinstance(order, Query)}
    assert levels
    assert levels <= set(range(3))


def test_a_box_without_readings_has_a_first_stop():
    settings = {"policy": {"kind": "scout"}, "initial": {"count": 0}, "agent": {"max_steps": 2}}
    assert len(fieldbo.run(load_mission("branin-search-tour", settings)).sites) == 2


def test_a_rejected_place_is_no_stop_even_if_it_would_be_reported():
    view = seen()
    best = int(np.argmax(view.surface.mean))
    rejected = np.zeros(view.domain.size, dtype=bool)
    rejected[best] = True
    decision = Scout().suggest(seen(rejected=rejected), None)
    assert view.domain.sites[best].tolist() not in [row["stop"] for row in decision.why["tour"]]


def test_equal_readings_make_no_trouble():
    decision = Scout().suggest(seen(sites=[[0.0, 0.0], [2.0, 3.0], [4.0, 1.0]], values=[1.0, 1.0, 1.0]), None)
    assert isinstance(decision.choice, Query)


def test_it_does_not_hover():
    settings = {"policy": {"kind": "scout"}, "agent": {"battery": 25}}
    result = fieldbo.run(load_mission("wall-worst-crack", settings))
    assert max(Counter(site.tobytes() for site in result.sites).values()) <= 10


def test_several_batteries_have_one_spacing():
    one = seen(battery=30.0)
    many = {"battery": 30.0, "supplies": (one.supplies[0]._replace(left=90.0, in_all=90.0),)}
    assert Scout().suggest(seen(**many), None).why["spacing"] < Scout().suggest(one, None).why["spacing"]


@pytest.mark.parametrize(("goal", "words"), [("maximise", "larger"), ("minimise", "smaller")])
def test_an_order_says_what_its_tour_is_for(goal, words):
    mission = small_mission(Scout(), question=Optimum(goal), battery=60.0)
    mission = replace(mission, settings={"policy": {"kind": "scout"}})
    agent, told = fieldbo.Agent(mission), list[str]()
    for _ in range(5):
        before, query = copy.deepcopy(agent), agent.ask()
        why = agent.issued[query.id].why
        told.append(details(before, query, why, best_of(before, query, why), {}))
        agent.tell(query.observed([0.1 * query.site[0]], noise_variance=0.01, cost=1.0))
    assert "purpose" in told[1]
    assert all(f"something {words} could hide" in text or "the best place" in text for text in told[1:])
    assert f"the {words[:-1]}st value lies unseen" in " ".join(told[1].split())


@pytest.mark.parametrize(("size", "width"), [("2 m", 2.0), (6, 6.0), ("1500 mm", 1.5)])
def test_the_least_size_decides_what_is_looked_for_and_what_is_unseen(size, width):
    changes = {"question": {"least_size": size}, "agent": {"max_steps": 9}, "model": {"learn": True}}
    agent, kept = fieldbo.Agent(load_mission("wall-worst-crack-scout", changes)), list[dict]()
    while not isinstance(order := agent.ask(), Stop | GoHome):
        kept.append(agent.why or {})
        agent.tell(order.observed([0.1], noise_variance=0.01))
    assert {why["spacing"] for why in kept if "spacing" in why} == {width}
    assert fieldbo.Result.of(agent).summary()["unseen_width"] == width


@pytest.mark.parametrize(
    ("mission", "size", "says"),
    [
        ("wall-worst-crack-scout", 0.001, "neighbouring sites"),
        ("wall-worst-crack-scout", "90 m", "at most 30 m"),
        ("wall-worst-crack-scout", "3 s", "unit of the axes"),
        ("gp-lake-optimum", 3, "depth"),
    ],
)
def test_a_least_size_must_fit_between_the_sites_and_the_domain(mission, size, says):
    with pytest.raises(InputError, match=says) as error:
        load_mission(mission, {"question": {"least_size": size}})
    assert error.value.where.endswith("question.least_size")
