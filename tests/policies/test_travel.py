"""Policies that weigh value against travel: their scores, choices and full runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples, swept

from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import Unit
from fieldbo.costs.travel import Euclidean, Flight
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, GoHome, Query, Rejected, Stop
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.acquisition import (
    dist_ucb,
    expected_improvement,
    log_expected_improvement,
    per_travel,
)
from fieldbo.policies.baselines import Random
from fieldbo.policies.choice import incumbent
from fieldbo.policies.contract import Policy
from fieldbo.policies.optimum.myopic import EI, GPUCB
from fieldbo.policies.travel.one_step import DUCB, UCB, DistUCB, EIPerCost, TravelScore, longest_travel
from fieldbo.policies.travel.rollout import Rollout
from fieldbo.runs.runner import run
from fieldbo.testing import drive, small_mission, small_world
from fieldbo.testing.small import Hills, carried_out, sites_of
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.base import Field

pytestmark = pytest.mark.each_choice
property_test = settings(deadline=None, max_examples=examples(60), derandomize=True)

CONVENTIONS = ["one_plus", "floor", "exclude", "literal"]
TRAVEL = {
    "dist-ucb": DistUCB(),
    "floor": DistUCB(convention="floor", d0=1.0),
    "exclude": DistUCB(convention="exclude"),
    "literal": DistUCB(convention="literal"),
    "ucb": UCB(),
    "ducb": DUCB(rho=0.1),
    "ei-per-cost": EIPerCost(),
    "rollout": Rollout(fantasies=8),
    "rollout of ucb": Rollout(base="ucb", fantasies=8, horizon=2),
    "rollout of ei": Rollout(base="ei", fantasies=8),
    "rollout of ei-per-cost": Rollout(base="ei-per-cost", fantasies=8, horizon=4),
    "rollout to the end": Rollout(horizon="budget", fantasies=4),
    "ei": EI(),
    "ei over cost": EI(per_cost=True),
    "gp-ucb": GPUCB(),
    "gp-ucb over cost": GPUCB(per_cost=True),
}
KINDS = (
    "dist-ucb",
    "exclude",
    "ducb",
    "ei-per-cost",
    "rollout of ucb",
    "rollout of ei",
    "ei over cost",
    "gp-ucb",
)
each_policy = pytest.mark.parametrize("name", swept(TRAVEL, KINDS))


def box_mission(policy, d=2, battery=12.0, world=None, **changes):
    """Return a mission in a box of sides of 5 m, where a metre and a sample cost 1 s each."""
    axes = [Axis(f"x{k}", "m", 0.0, 5.0) for k in range(d)]
    if world is None:
        world = replace(small_world(), domain=Domain.box(axes, 32), start=np.zeros(d))
    return small_mission(policy, world=world, battery=battery, **changes)


# -- scores ----------------------------------------------------------------------------------------------

scores_of = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        *(st.lists(st.floats(*ends), min_size=n, max_size=n) for ends in ((-5, 5), (0, 5), (0, 20)))
    )
)


@property_test
@given(given=scores_of, kappa=st.floats(0, 4), d0=st.floats(0.01, 50))
def test_dist_ucb_with_one_plus_lies_between_the_mean_and_ucb(given, kappa, d0):
    mu, s, d = map(np.array, given)
    score = dist_ucb(mu, s, d, kappa, d0)
    assert np.all(score <= mu + kappa * s + 1e-12)
    assert np.all(score >= mu)
    np.testing.assert_allclose(dist_ucb(mu, s, 0.0 * d, kappa, d0), mu + kappa * s)


@property_test
@given(given=scores_of, kappa=st.floats(0, 4), unit=st.sampled_from([1e-3, 60.0]))
def test_the_unit_of_travel_does_not_matter_if_d0_has_the_same_unit(given, kappa, unit):
    mu, s, d = map(np.array, given)
    for convention in ("one_plus", "floor"):
        plain = dist_ucb(mu, s, d, kappa * 0.7, 0.7, convention)
        factor = unit if convention == "floor" else 1.0
        other = dist_ucb(mu, s, unit * d, kappa * 0.7 * factor, 0.7 * unit, convention)
        np.testing.assert_allclose(plain, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_dist_ucb_is_the_mean_without_kappa_or_uncertainty(convention):
    mu, d = np.array([0.5, -1.0, 2.0]), np.array([0.0, 1.0, np.inf])
    expected = np.where((d > 0) | (convention != "exclude"), mu, -np.inf)
    np.testing.assert_array_equal(dist_ucb(mu, np.ones(3), d, 0.0, 1.0, convention), expected)
    np.testing.assert_array_equal(dist_ucb(mu, np.zeros(3), d, 2.0, 1.0, convention), expected)


def test_the_conventions_agree_for_long_travel_and_differ_for_short_travel():
    far, near = np.array([1e6]), np.array([0.0])
    weights = {c: per_travel(far, 1.0, c)[0] for c in CONVENTIONS}
    np.testing.assert_allclose(list(weights.values()), 1e-6, rtol=1e-5)
    assert per_travel(near, 2.0, "one_plus") == 1.0
    assert per_travel(near, 2.0, "floor") == 0.5
    assert per_travel(near, 2.0, "literal") == np.inf


def test_the_default_scale_of_travel_is_the_longest_side():
    axes = [Axis("x", "m", 0.0, 8.0), Axis("y", "m", 0.0, 3.0)]
    assert longest_travel(Euclidean(rate=2.0), Domain.grid(axes, (3, 3))) == 16.0
    assert longest_travel(Euclidean(rate=2.0, axis_rates=(0.1, 1.0)), Domain.grid(axes, (3, 3))) == 6.0
    assert longest_travel(Unit(sampling=1.0), Domain.grid(axes, (3, 3))) == 1.0
    assert longest_travel(Euclidean(rate=5e-324), Domain.grid(axes, (3, 3))) == 1.0  # free, but for rounding
    corner = Domain.grid(axes, (9, 4), obstacles=[Obstacle("rock", (-1, -1), (0.5, 0.5))])
    ways = Euclidean().within(corner).travel(corner.sites[0], corner.sites)
    assert longest_travel(Euclidean().within(corner), corner) == ways.max()


@pytest.mark.parametrize("sampling", [0.0, 0.5])
def test_ei_per_cost_divides_by_the_full_cost_if_sampling_has_one(sampling):
    domain = small_world().domain
    score = TravelScore("ei-per-cost", d0=2.0).on(Euclidean(sampling=sampling).within(domain), domain)
    d = np.array([0.0, 1.0, 4.0])
    plain = TravelScore("ei").scores(np.zeros(3), np.ones(3), d, d + sampling, 0.2)
    actual = score.scores(np.zeros(3), np.ones(3), d, d + sampling, 0.2)
    np.testing.assert_allclose(actual, plain / (d + sampling if sampling else [2.0, 2.0, 4.0]))


# -- what they choose ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dist-ucb", "ucb", "ducb", "ei-per-cost", "rollout"])
def test_each_policy_has_its_name_and_is_rejected_for_a_level_set(name):
    assert POLICIES.get(name) is type(TRAVEL[name])
    with pytest.raises(InputError, match="optimum"):
        replace(small_mission(), question=LevelSet(0.3), policy=TRAVEL[name])


@pytest.mark.parametrize(
    ("base", "one_step_policy"),
    [
        ("dist-ucb", DistUCB()),
        ("dist-ucb", DistUCB(convention="floor", d0=0.5, kappa=1.0)),
        ("dist-ucb", DistUCB(convention="exclude")),
        ("dist-ucb", DistUCB(convention="literal")),
        ("ucb", UCB(kappa=0.5)),
        ("ei-per-cost", EIPerCost()),
        ("ei", EI()),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value),
)
def test_a_horizon_of_one_step_is_the_policy_itself(base, one_step_policy):
    same = {k: v for k, v in vars(one_step_policy).items() if k in ("kappa", "convention", "d0")}
    ahead = Rollout(base=base, horizon=1, **same)
    (direct, _, end), (other, _, end_of_other) = (drive(small_mission(p)) for p in (one_step_policy, ahead))
    sites = [sites_of([issued.order for issued in agent.issued.values()]) for agent in (direct, other)]
    assert sites[0] == sites[1]
    assert end == end_of_other
    for first, second in zip(direct.issued.values(), other.issued.values(), strict=True):
        if first.why and "best" in first.why:
            assert second.why["best"] == first.why["best"]


def test_policies_that_differ_only_in_the_value_of_travel_take_different_paths():
    near, far = small_world((2, 1)), small_world((6, 1))
    assert near.domain.size == 2
    lengths = {}
    for name in ("ucb", "dist-ucb"):
        _, orders, _ = drive(small_mission(TRAVEL[name], world=far, battery=60.0, home=False))
        ways = np.abs(np.diff(np.array(sites_of(orders))[:, 0]))
        lengths[name] = ways.mean()
    assert lengths["dist-ucb"] < lengths["ucb"]


def test_rho_of_ducb_is_in_the_unit_of_the_values():
    mission = small_mission(DUCB(rho=0.0))
    (_, free, _), (_, plain, _) = drive(mission), drive(replace(mission, policy=UCB()))
    assert sites_of(free) == sites_of(plain)
    _, dear, _ = drive(replace(mission, policy=DUCB(rho=50.0)))
    assert len({tuple(site) for site in sites_of(dear)}) == 1  # it never moves


@dataclass(frozen=True)
class Scaled(Field):
    """The hills, scaled in height."""

    unit: float = 1.0

    def values(self, sites, time_s=0.0):
        return self.unit * Hills().values(sites)


def scaled_mission(policy, value_unit=1.0, cost_unit=1.0, goal="maximise", noise_sd=0.05):
    """The small mission, with values and costs in other units."""
    world = small_world(noise_sd=noise_sd * value_unit)
    world = replace(
        world, field=Scaled(value_unit), cost=Euclidean(rate=cost_unit, sampling=cost_unit), start=np.zeros(2)
    )
    mission = small_mission(policy, world=world, battery=30.0 * cost_unit, question=Optimum(goal))
    model = Model(learn=False, length_scales=(2.0, 2.0), mean=0.0, variance=value_unit**2)
    return replace(mission, model=model)


@each_policy
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_unit_of_the_values_changes_no_path(name, unit):
    policy = TRAVEL[name]
    other = replace(policy, rho=unit * policy.rho) if isinstance(policy, DUCB) else policy
    _, plain, _ = drive(scaled_mission(policy))
    _, scaled, _ = drive(scaled_mission(other, value_unit=unit))
    assert len(sites_of(plain)) > 3
    assert sites_of(plain) == sites_of(scaled)


@pytest.mark.parametrize("name", swept(sorted(set(TRAVEL) - {"exclude", "literal"}), KINDS))
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_unit_of_the_costs_changes_no_path(name, unit):
    policy = TRAVEL[name]
    other = replace(policy, rho=policy.rho / unit) if isinstance(policy, DUCB) else policy
    if getattr(policy, "d0", None) is not None:  # 1 / max(d, d0) has the unit of 1 / d, and kappa takes it up
        other = replace(policy, d0=unit * policy.d0, kappa=unit * policy.kappa)
    _, plain, _ = drive(scaled_mission(policy))
    _, scaled, _ = drive(scaled_mission(other, cost_unit=unit))
    assert sites_of(plain) == sites_of(scaled)


@each_policy
def test_minimising_equals_maximising_the_negative(name):
    _, up, _ = drive(scaled_mission(TRAVEL[name], noise_sd=0.0))  # noise has its own sign
    _, down, _ = drive(scaled_mission(TRAVEL[name], value_unit=-1.0, goal="minimise", noise_sd=0.0))
    assert sites_of(up) == sites_of(down)


# -- agents under limits ---------------------------------------------------------------------------------


@each_policy
@pytest.mark.parametrize("battery", [1.0, 4.5, 9.0])
def test_a_small_battery_is_used_and_suffices_for_the_trip_home(name, battery):
    agent, orders, stop = drive(small_mission(TRAVEL[name], battery=battery))
    assert sites_of(orders)
    assert agent.vehicles[0].ledger.spent <= battery * (1 + 1e-12)
    assert np.array_equal(agent.vehicles[0].position, agent.mission.vehicles[0].home)
    assert stop.reason is EndReason.BATTERY_SPENT


@each_policy
def test_a_time_limit_holds_if_time_is_not_proportional_to_energy(name):
    flight = Flight(speed=2.0, acceleration=1.0, power=100.0, hover_power=150.0, hover_s=2.0, climb=300.0)
    wall = Obstacle("wall", (1.5, 0.5), (2.5, 3.5))
    domain = Domain.grid([Axis("x", "m", 0.0, 5.0), Axis("z", "m", 0.0, 4.0)], (6, 5), obstacles=[wall])
    world = replace(small_world(), domain=domain, cost=flight, start=np.zeros(2))
    mission = small_mission(TRAVEL[name], world=world)
    home = np.zeros(2)
    for limit_s in (12.0, 40.0):
        agent, orders, _ = drive(
            replace(mission, vehicles=(VehicleSpec(5.0, home, home=home, time_limit_s=limit_s),))
        )
        assert sites_of(orders)
        assert agent.vehicles[0].time_ledger.spent <= limit_s * (1 + 1e-12)
        assert agent.vehicles[0].ledger.spent <= 5.0
        assert np.array_equal(agent.vehicles[0].position, home)


@pytest.mark.parametrize("name", ["dist-ucb", "ucb", "rollout"])
def test_first_unaffordable_stops_although_other_sites_are_affordable(name):
    mission = small_mission(replace(TRAVEL[name], stop="first_unaffordable", kappa=50.0), battery=4.0)
    agent, orders, stop = drive(mission)
    assert stop.reason is EndReason.BATTERY_SPENT
    assert agent.vehicles[0].affordable(agent.domain.sites, position=agent.vehicles[0].spec.start).any()
    _, on, _ = drive(replace(mission, policy=replace(mission.policy, stop="best_affordable")))
    assert len(sites_of(on)) > len(sites_of(orders))


@pytest.mark.parametrize("policy", [DistUCB(convention="exclude"), Rollout(convention="exclude")], ids=repr)
def test_the_battery_is_spent_if_only_staying_is_affordable_and_excluded(policy):
    mission = small_mission(policy, battery=2.5, home=False, initial=1)  # a sample, and no way to the next
    agent, orders, stop = drive(replace(mission, vehicles=(VehicleSpec(2.5, mission.vehicles[0].start),)))
    assert len(sites_of(orders)) == 1
    assert agent.vehicles[0].affordable(agent.domain.sites[:1])[0]
    assert stop.reason is EndReason.BATTERY_SPENT


@each_policy
def test_the_same_mission_gives_the_same_path(name):
    for mission in (small_mission(TRAVEL[name]), box_mission(TRAVEL[name], battery=8.0)):
        assert np.array_equal(run(mission).sites, run(mission).sites)


@dataclass(frozen=True)
class Seen(Policy):
    """Chooses at random and keeps the states that it sees."""

    states: list = field(default_factory=list, hash=False)

    def suggest(self, state, memory):
        self.states.append(replace(state, surface=state.surface.copy()))
        return Random().suggest(state, memory)


@pytest.mark.parametrize("base", ["dist-ucb", "ucb", "ei", "ei-per-cost"])
def test_simulated_paths_do_not_lead_to_rejected_sites(base):
    seen = Seen()
    drive(small_mission(seen, question=Optimum(), battery=60.0))
    policy = Rollout(base=base, d0=2.0, fantasies=8)
    state = replace(seen.states[3], affordable=lambda sites, **_: np.ones(len(sites), bool))
    rejected = np.zeros(state.domain.size, dtype=bool)
    rejected[[0, 3, *np.argsort(-state.surface.mean)[:4]]] = True
    rest = state.domain.restricted(~rejected)
    without = replace(
        state, domain=rest, surface=Surface(state.belief, rest.sites), rejected=np.zeros(0, bool)
    )
    with_them = replace(state, rejected=rejected)
    reported = [policy.suggest(replace(s), None) for s in (with_them, without)]
    assert reported[0].why["best"] == reported[1].why["best"]
    assert np.array_equal(state.domain.sites[reported[0].why["site"]], reported[0].choice.site)
    assert reported[0].why["best"] != policy.suggest(state, None).why["best"]


# -- without noise ---------------------------------------------------------------------------------------


@each_policy
def test_no_site_is_read_again_without_noise_and_the_question_is_answered_when_all_are(name):
    mission = small_mission(TRAVEL[name], world=small_world((3, 2), noise_sd=0.0), battery=1000.0)
    _, orders, stop = drive(mission)
    sites = [tuple(site) for site in sites_of(orders)]
    assert len(sites) == len(set(sites)) == 6
    assert stop.reason is EndReason.QUESTION_ANSWERED


@dataclass(frozen=True)
class Slope(Field):
    """Rises steeply towards a corner of the domain."""

    def values(self, sites, time_s=0.0):
        return 20.0 * sites.sum(axis=1)


@each_policy
def test_a_corner_of_a_box_is_not_read_again_without_noise(name):
    world = replace(box_mission(TRAVEL[name]).world, sensor=Sensor(0.0), field=Slope())
    policy = replace(TRAVEL[name], candidates=64)
    _, orders, _ = drive(replace(box_mission(policy, world=world, battery=500.0), max_steps=12))
    sites = np.array(sites_of(orders))
    assert len(np.unique(sites, axis=0)) == len(sites)


@pytest.mark.parametrize(
    "policy",
    [EIPerCost(), Rollout(base="ei", horizon=1), Rollout(base="ei-per-cost", fantasies=8)],
    ids=repr,
)
def test_improvements_that_underflow_are_compared_by_their_logarithms(policy):
    seen, rng = Seen(), np.random.default_rng(0)
    drive(small_mission(seen, question=Optimum(), battery=60.0))
    state = replace(seen.states[3], affordable=lambda sites, **_: np.ones(len(sites), bool))
    surface, best = state.surface, incumbent(state.surface)
    surface.mean, surface.variance = best - rng.uniform(1.0, 1.01, 30), rng.uniform(0.010, 0.0101, 30) ** 2
    assert not expected_improvement(surface.mean, surface.sd, best).any()
    logs = log_expected_improvement(surface.mean, surface.sd, best)
    if "per-cost" in repr(policy) or isinstance(policy, EIPerCost):
        logs -= np.log(state.costs())
    decision = policy.suggest(state, None)
    assert decision.why["site"] == np.argmax(logs)
    assert np.log(decision.why["score"]) + decision.why["log_unit"] == pytest.approx(logs.max())


# -- in a box --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", swept(sorted(set(TRAVEL) - {"literal"}), KINDS))
@pytest.mark.parametrize("d", [2, 6])
def test_choices_in_a_box_are_inside_affordable_and_the_best_reported(name, d):
    policy = replace(TRAVEL[name], candidates=100)
    mission = box_mission(policy, d, battery=14.0)
    agent, vehicle, reported = Agent(mission), Simulated(mission), 0
    while isinstance(order := agent.ask(), Query):
        assert agent.domain.contains(order.site[None])[0]
        assert agent.vehicles[0].ledger.available >= -1e-9
        if agent.why is not None:
            best = agent.why["best"]
            assert best[0]["site"] == order.site.tolist()
            assert best[0]["value"] == agent.why["score"]
            assert best[0]["cost"] == pytest.approx(order.expected_cost)
            values = [candidate["value"] for candidate in best]
            assert values == sorted(values, reverse=True)
            reported += 1
        agent.tell(carried_out(0, order, vehicle))
    assert reported >= 2
    if isinstance(order, GoHome):
        agent.tell(carried_out(0, order, vehicle))
    assert agent.vehicles[0].ledger.spent <= 14.0 * (1 + 1e-12)
    assert np.array_equal(agent.vehicles[0].position, mission.vehicles[0].start)


def states_in_a_box(readings=12):
    """Return the states before each decision in the box, with readings at random points."""
    seen = Seen()
    drive(box_mission(seen, question=Optimum(), battery=60.0))
    return [
        replace(s, affordable=lambda sites, **_: np.ones(len(sites), bool)) for s in seen.states[:readings]
    ]


@pytest.mark.parametrize(
    ("one_step_policy", "same"),
    [
        (EI(), Rollout(base="ei", horizon=1)),
        (EI(per_cost=True), EIPerCost()),
    ],
    ids=["ei", "ei over cost"],
)
def test_ei_in_a_box_equals_a_rollout_of_one_step(one_step_policy, same):
    for state in states_in_a_box():
        direct, other = (policy.suggest(replace(state), None) for policy in (one_step_policy, same))
        np.testing.assert_allclose(direct.choice.site, other.choice.site, atol=1e-4)
        assert direct.why["score"] == pytest.approx(other.why["score"])


@pytest.mark.parametrize("name", ["ei", "ei over cost", "gp-ucb", "gp-ucb over cost", "dist-ucb", "ucb"])
def test_a_policy_in_a_box_beats_the_representers(name):
    elsewhere, states = 0, states_in_a_box()
    for state in states:
        grid = replace(state, domain=replace(state.domain, continuous=False))
        score, of_points = (TRAVEL[name].suggest(s, None).why["score"] for s in (replace(state), grid))
        assert score > of_points - 1e-3 * abs(of_points)
        elsewhere += score > of_points
    assert elsewhere >= len(states) - 1


@pytest.mark.parametrize("name", ["dist-ucb", "rollout"])
def test_no_choice_in_a_box_lies_in_an_obstacle(name):
    hut = Obstacle("hut", (1.0, 1.0), (4.0, 3.0))
    domain = Domain.box([Axis(n, "m", 0.0, 5.0) for n in "xy"], 32, obstacles=[hut])
    world = replace(small_world(), domain=domain, start=np.zeros(2))
    _, orders, _ = drive(box_mission(replace(TRAVEL[name], candidates=200), world=world, battery=40.0))
    sites = np.array(sites_of(orders))
    assert len(sites) > 3
    assert domain.contains(sites).all()


@pytest.mark.parametrize("name", ["dist-ucb", "ei-per-cost", "rollout"])
def test_a_rejected_point_of_a_box_and_its_neighbours_are_avoided(name):
    mission = box_mission(replace(TRAVEL[name], candidates=200), battery=30.0)
    rejected_sites = []

    def every_second(n, order, vehicle):
        if n % 2 and isinstance(order, Query) and len(rejected_sites) < 6:
            rejected_sites.append(order.site)
            return Rejected(str(order.id), "shallow water")
        return carried_out(n, order, vehicle)

    _, orders, _ = drive(mission, every_second)
    assert len(rejected_sites) > 1
    already_rejected, rejected = set(), {site.tobytes() for site in rejected_sites}
    for order in orders:
        if isinstance(order, Query):
            assert order.site.tobytes() not in already_rejected
            if order.site.tobytes() in rejected:
                already_rejected.add(order.site.tobytes())


@pytest.mark.parametrize("name", ["ucb", "ei", "gp-ucb", "dist-ucb", "ei-per-cost", "rollout of ucb"])
def test_a_run_in_a_box_ends_if_half_of_it_is_rejected(name):
    mission = box_mission(replace(TRAVEL[name], candidates=200), battery=25.0, initial=2)

    def deep_water_only(n, order, vehicle):
        if isinstance(order, Query) and order.site[0] > 3.0:
            return Rejected(str(order.id), "shallow water")
        return carried_out(n, order, vehicle)

    agent, orders, stop = drive(mission, deep_water_only)
    assert stop.reason is EndReason.BATTERY_SPENT
    already_rejected = [o for o in orders if isinstance(o, Query) and o.site[0] > 3.0]
    assert len(already_rejected) <= np.count_nonzero(agent.domain.sites[:, 0] > 2.0)


@pytest.mark.parametrize("name", ["ucb", "dist-ucb", "rollout of ucb"])
def test_unreachable_sites_are_not_chosen_and_do_not_end_the_run(name):
    wall = Obstacle("wall", (2.0, -1.0, -1.0), (2.5, 6.0, 6.0))
    domain = Domain.box([Axis(n, "m", 0.0, 5.0) for n in "xyz"], 32, obstacles=[wall])
    world = replace(small_world(), domain=domain, start=np.ones(3))
    policy = replace(TRAVEL[name], candidates=200, stop="first_unaffordable")
    reported = box_mission(policy, d=3, world=world, battery=500.0)
    _, orders, stop = drive(replace(reported, max_steps=6))
    assert stop.reason is EndReason.STEP_LIMIT
    assert max(order.site[0] for order in orders) <= 2.0


# -- several at once -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dist-ucb", "ucb", "ducb", "rollout", "rollout of ei"])
@pytest.mark.parametrize("boxed", [False, True], ids=["sites", "box"])
def test_outstanding_queries_count_as_read_for_the_next_one(name, boxed):
    policy = replace(TRAVEL[name], kappa=5.0) if "kappa" in vars(TRAVEL[name]) else TRAVEL[name]
    mission = (box_mission if boxed else small_mission)(policy, battery=60.0)
    agent, vehicle = Agent(mission), Simulated(mission)
    agent.tell(carried_out(0, agent.ask(), vehicle))
    orders = agent.ask_batch(4)
    assert len(orders) == 4
    sites = np.array(sites_of(orders))
    gaps = np.linalg.norm(sites[:, None] - sites, axis=2)[np.triu_indices(4, 1)]
    assert gaps.min() > 0.2  # each lowers the doubt about what lies near it
    for n, order in enumerate(orders):
        agent.tell(carried_out(n, order, vehicle))
    assert agent.vehicles[0].ledger.spent <= 60.0


@pytest.mark.parametrize("name", ["dist-ucb", "rollout", "ei-per-cost"])
def test_two_vehicles_share_their_readings_and_both_return_home(name):
    world = small_world()
    starts = [world.domain.sites[0], world.domain.sites[-1]]
    crew = tuple(VehicleSpec(15.0, start, home=start) for start in starts)
    mission = replace(small_mission(TRAVEL[name], world=world), vehicles=crew)
    result = run(mission)
    assert {order.vehicle for order in result.queries} == {0, 1}
    agent = Agent(mission)
    first, second = agent.ask(0), agent.ask(1)
    assert isinstance(first, Query)
    assert isinstance(second, Query)
    assert not np.array_equal(first.site, second.site)


@pytest.mark.parametrize("policy", [DistUCB(), Rollout(fantasies=4)], ids=repr)
def test_a_policy_stops_once_every_site_was_rejected(policy):
    def refuse(n, order, vehicle):
        return Rejected(str(order.id), "no entry")

    _, orders, stop = drive(small_mission(policy, home=False, initial=0, world=small_world((3, 2))), refuse)
    assert len(orders) == 6
    assert stop == Stop(EndReason.STOPPED_BY_POLICY)
