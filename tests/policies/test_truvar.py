"""TruVaR's sets and epochs, and its full runs, through the agent and the runner."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from checkout import TESTS

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet
from fieldbo.costs.base import Unit
from fieldbo.costs.travel import Euclidean, Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Fitted, Observation
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.level_set.truvar import Epoch, Sets, TruVaR, advance_epoch, beta_at, update_sets
from fieldbo.testing import small_mission
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

CASES = {c["id"]: c for c in json.loads((TESTS / "golden/cases.json").read_text())["cases"]}


class Known(Field):
    """Values at the sites of a domain, by nearest site."""

    def __init__(self, domain, values):
        self.domain, self.at_sites = domain, np.asarray(values, dtype=float)

    def values(self, sites, time_s=0.0):
        return self.at_sites[[self.domain.nearest(s) for s in sites]]


class Exact(World):
    """The sensor declares its noise, and reads the truth."""

    def evaluate(self, query, position, time_s, rng):
        return replace(super().evaluate(query, position, time_s, rng), values=self.truth(query.site))


def mission_of(case, cost, axes, policy):
    given = case["inputs"]
    domain = Domain(axes, given["D"])
    start = domain.sites[given["start"]]
    sensor = Sensor(noise_sd=float(np.sqrt(given["levels"][0])))
    world = Exact(
        case["id"], "", domain, cost, "s", sensor, Quantity(), Known(domain, given["f"]), start=start
    )
    kernel = given["kernel"]
    return Mission(
        name=case["id"],
        world=world,
        question=LevelSet(given["h"]),
        policy=policy,
        model=Model(kernel["kind"], learn=False, length_scales=tuple(kernel["ls"]), mean=0.0),
        vehicles=(VehicleSpec(1e6, start),),
        max_steps=given["T"],
    )


def policy_of(case):
    given = case["inputs"]
    return TruVaR(a=given["a"], eta=given["eta1"], r=given["r"], monotone=True)


UNIT = (Axis("x", "", 0, 1), Axis("y", "", 0, 1))
LAKE = (Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18, "down"))


@pytest.mark.parametrize(
    ("name", "cost", "axes"),
    [("truvar_run_lse_unit", Unit(), UNIT), ("truvar_run_travel", Transect(), LAKE)],
    ids=["unit cost", "travel cost"],
)
def test_a_full_run_visits_the_sites_of_the_golden_case_at_the_same_cost(name, cost, axes):
    case = CASES[name]
    expected, tolerance = case["expected"], case["tol"]

    result = fieldbo.run(mission_of(case, cost, axes, policy_of(case)))

    domain = result.mission.world.domain
    assert [domain.nearest(q.site) for q in result.queries] == expected["idx"]
    assert np.array_equal(domain.sites[expected["idx"]], result.sites)
    assert np.allclose([s.cost for s in result.curve], expected["cost"], rtol=0, atol=tolerance)
    assert np.allclose([s.f1 for s in result.curve], expected["score"], rtol=0, atol=tolerance)
    assert result.end_reason is EndReason.QUESTION_ANSWERED


@pytest.mark.parametrize(
    ("name", "cost", "axes"),
    [("truvar_run_lse_unit", Unit(), UNIT), ("truvar_run_travel", Transect(), LAKE)],
    ids=["unit cost", "travel cost"],
)
def test_the_sets_and_the_epoch_after_each_reading_are_those_of_the_golden_case(name, cost, axes):
    case = CASES[name]
    mission = mission_of(case, cost, axes, policy_of(case))
    agent, epochs, unclassified = Agent(mission), [], []

    for site in mission.world.domain.sites[case["expected"]["idx"]]:
        order = agent.ask()
        assert np.array_equal(order.site, site)
        agent.tell(mission.world.evaluate(order, agent.vehicles[0].position, 0.0, np.random.default_rng(0)))
        epochs.append(agent.memory["i"])
        unclassified.append(sum(not b for b in classified(agent)))

    assert epochs == case["expected"]["epoch"]
    assert unclassified == case["expected"]["sizeM"]


def classified(agent):
    sets, _ = agent.mission.policy._recall(agent.memory, agent.domain.size)
    return (sets.H | sets.L).tolist()


def test_an_empty_m_answers_the_question_with_battery_left():
    case = CASES["truvar_run_lse_unit"]

    result = fieldbo.run(mission_of(case, Unit(), UNIT, policy_of(case)))

    assert result.end_reason is EndReason.QUESTION_ANSWERED
    assert result.curve[-1].remaining > 0


@pytest.mark.parametrize("beyond", [1.01, 5.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_threshold_that_the_prior_rules_out_everywhere_causes_a_warning(beyond, side):
    mission = small_mission(TruVaR(a=0.5))
    threshold = side * beyond * np.sqrt(beta_at(0.5, mission.world.domain.size, 1))

    result = fieldbo.run(replace(mission, question=LevelSet(threshold)))

    assert any("before the first reading" in note for note in result.notes)
    if beyond > 2:  # so far that the one reading changes nothing
        assert result.end_reason is EndReason.QUESTION_ANSWERED
        assert len(result.queries) == 1


def test_a_threshold_within_reach_of_the_prior_causes_no_warning():
    mission = small_mission(TruVaR(a=0.5))
    threshold = 0.99 * np.sqrt(beta_at(0.5, mission.world.domain.size, 1))

    assert Agent(replace(mission, question=LevelSet(threshold))).warnings == ()


@dataclass(frozen=True)
class Case:
    noise_sd: float
    learn: bool
    monotone: bool | None
    grows: bool


@pytest.mark.parametrize(
    "case",
    [
        Case(noise_sd=0.009, learn=False, monotone=None, grows=False),
        Case(noise_sd=0.011, learn=False, monotone=None, grows=True),
        Case(noise_sd=0.0, learn=True, monotone=None, grows=True),
        Case(noise_sd=0.5, learn=True, monotone=True, grows=False),
        Case(noise_sd=0.0, learn=False, monotone=False, grows=True),
    ],
    ids=str,
)
def test_a_contradicted_site_is_unclassified_again_unless_sets_are_monotone(case):
    domain = Domain((Axis("x", "m", 0, 100),), [[0.0], [50.0], [100.0]])
    world = World("", "", domain, Unit(), "s", Sensor(case.noise_sd), Quantity(), Known(domain, [0, 0, 0]))
    mission = Mission(
        name="three far sites",
        world=world,
        question=LevelSet(0.0),
        policy=TruVaR(monotone=case.monotone),
        model=Model(learn=case.learn, length_scales=(1.0,)),
        vehicles=(VehicleSpec(100.0, domain.sites[0]),),
    )
    agent = Agent(mission)
    agent.tell(Fitted(agent.hyperparameters.to_plain()))  # a provisional model classifies nothing

    def read_first_site(value):
        order = agent.ask()
        agent.tell(Observation(order.id, [0.0], [value], [1e-6], [0.0], order.site, 1.0))

    read_first_site(3.0)
    assert classified(agent) == [True, False, False]
    read_first_site(-3.0)

    assert classified(agent) == [not case.grows, False, False]


def test_a_classified_site_stays_classified_only_in_monotone_sets():
    mu, s = np.array([2.0, -2.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0])
    high = np.array([False, False, True, False])
    before = Sets(~high, high, np.zeros(4, dtype=bool))

    kept = update_sets(mu, s, 0.0, 1.0, before, monotone=True)
    afresh = update_sets(mu, s, 0.0, 1.0, before, monotone=False)

    assert kept.H.tolist() == [True, False, True, False]
    assert kept.L.tolist() == [False, True, False, False]
    assert kept.M.tolist() == [False, False, False, True]
    assert afresh.H.tolist() == [True, False, False, False]
    assert afresh.M.tolist() == [False, False, True, True]


def test_every_site_is_in_exactly_one_set():
    rng = np.random.default_rng(5)
    mu, s = rng.standard_normal(50), rng.random(50)
    none = np.zeros(50, dtype=bool)
    before = Sets(~none, none, none)

    for monotone in (True, False):
        sets = update_sets(mu, s, 0.2, 2.0, before, monotone=monotone)
        assert (sum(np.stack(sets).astype(int)) == 1).all()


def test_epochs_advance_while_the_worst_of_m_is_certain_enough():
    s, M = np.array([0.07, 9.0]), np.array([True, False])

    epoch = advance_epoch(s, M, Epoch(1, 4.0, 1.0), 3, a=1.0, n_candidates=2)

    beta = beta_at(1.0, 2, 4)
    assert epoch.i == 2
    assert epoch.beta == beta
    assert epoch.eta == pytest.approx(0.1)
    assert np.sqrt(beta) * 0.07 > epoch.eta


def test_an_empty_m_or_an_eta_of_zero_leaves_the_epoch_as_it_is():
    s, M = np.array([0.05]), np.array([True])

    assert advance_epoch(s, ~M, Epoch(1, 4.0, 1.0), 3, a=1.0, n_candidates=2) == Epoch(1, 4.0, 1.0)
    assert advance_epoch(s, M, Epoch(1, 4.0, 0.0), 3, a=1.0, n_candidates=2) == Epoch(1, 4.0, 0.0)


@pytest.mark.parametrize(("name", "value"), [("a", 0.0), ("eta", -1.0), ("r", 1.0), ("delta", np.nan)])
def test_a_setting_out_of_range_is_rejected_by_name(name, value):
    with pytest.raises(InputError, match=f"policy.{name}"):
        TruVaR(**{name: value})


def test_a_world_where_staying_is_free_is_rejected_unless_costs_are_ignored():
    free = replace(small_mission().world, cost=Euclidean(sampling=0.0))

    with pytest.raises(InputError, match="sampling"):
        small_mission(TruVaR(), world=free)
    limited = replace(small_mission(), policy=TruVaR(per_cost=False), max_steps=5)
    assert replace(limited, world=free).policy == TruVaR(per_cost=False)
