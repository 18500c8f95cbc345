"""An agent that does not know the costs: what it expects, issues and records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.agent.agent import Agent
from fieldbo.agent.ledger import Ledger
from fieldbo.belief.model import Model
from fieldbo.belief.question import Optimum
from fieldbo.costs.base import Unit
from fieldbo.costs.cells import Subset
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError, PolicyError
from fieldbo.messages import EndReason, Lost, Query, Rejected, Stop
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.baselines import Random
from fieldbo.policies.contract import Decision, Policy
from fieldbo.policies.optimum.myopic import EI
from fieldbo.results.result import Result
from fieldbo.runs.runner import run
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.function import Function
from fieldbo.world.world import Quantity, World

AXES = [Axis("x", "", -1, 1), Axis("y", "", -1, 1)]
SETS = (["x"], ["x", "y"])
property_test = settings(deadline=None, max_examples=examples(25), derandomize=True)


@dataclass(frozen=True)
class Turns(Policy):
    """Plays the control sets by turns, at random settings; says what it expects if it is told to."""

    answers: ClassVar[tuple[type, ...]] = (Optimum,)
    leaves_free: ClassVar[bool] = True

    says: float | None = None

    def suggest(self, state, memory):
        sets = state.domain.control_sets
        one = sets[len(state.orders) % len(sets)]
        site = state.domain.draw(1, state.rng)[0]
        return Decision(Query(site, one.controls, expected_cost=self.says))


def world(costs=(0.1, 1.0), noise_sds=(0.02, 0.2), names=SETS, **kwargs):
    sets = tuple(ControlSet.of(n, AXES, "control_sets") for n in names)
    domain = Domain.box(AXES, 32, controls=Controls(sets, (Uniform(-1, 1), Uniform(-1, 1))))
    cost = Subset(costs=costs, noise_sds=noise_sds)
    field = Function("rastrigin").make(domain)
    return World("cell", "a cell", domain, cost, "EUR", Sensor(0.1), Quantity(), field, **kwargs)


def mission(policy=None, battery=10.0, costs="unknown", there=None, vehicles=None, **kwargs):
    there = world() if there is None else there
    vehicles = (VehicleSpec(battery, there.start),) if vehicles is None else vehicles
    model = Model(learn=False)
    policy = Turns() if policy is None else policy
    return Mission("m", there, Optimum("minimise"), policy, model, vehicles, costs=costs, **kwargs)


def told(agent, query, cost, **kwargs):
    agent.tell(query.observed(1.0, noise_variance=0.01, cost=cost, position=[0.5, 0.5], **kwargs))


def test_a_policy_sees_neither_costs_nor_limits():
    state = Agent(mission()).seen()
    assert state.cost is None
    assert state.limits == ()
    assert state.spendable == 10.0
    assert state.affordable(state.domain.sites).all()


def test_a_query_is_expected_to_cost_the_mean_of_earlier_ones_with_the_same_controls():
    agent = Agent(mission(initial=0))
    expected = []
    for cost in (0.3, 2.0, 0.1, 4.0, 0.2, 1.0):
        query = agent.ask()
        expected.append(query.expected_cost)
        told(agent, query, cost)
    assert expected == [None, None, 0.3, 2.0, pytest.approx(0.2), 3.0]


def test_the_cost_that_a_policy_expects_takes_precedence():
    agent = Agent(mission(Turns(says=0.75), initial=0))
    assert agent.ask().expected_cost == 0.75


def test_a_query_expected_to_cost_more_than_is_left_is_not_issued():
    agent = Agent(mission(Turns(says=3.0), battery=5.0, initial=0))
    told(agent, agent.ask(), 2.5)
    assert isinstance(agent.ask(), Stop)
    assert agent.endings[0]["end_reason"] == EndReason.BATTERY_SPENT
    assert agent.spent == 2.5


def test_outstanding_orders_count_at_their_expected_cost():
    agent = Agent(mission(Turns(says=2.0), battery=5.0, initial=0))
    first, second = agent.ask(), agent.ask()
    assert isinstance(first, Query)
    assert isinstance(second, Query)
    assert agent.vehicles[0].spendable == 1.0
    assert isinstance(agent.ask(), Stop)


@property_test
@given(
    seed=st.integers(0, 1000),
    battery=st.floats(0.5, 8),
    first=st.floats(0.01, 1),
    second=st.floats(0.05, 2),
    noise=st.floats(0, 1),
)
def test_only_the_last_query_may_overdraw(seed, battery, first, second, noise):
    there = world((first, second), (noise, noise))
    told = mission(battery=battery, there=there, seed=seed, initial=1, max_steps=60)
    agent, vehicle = Agent(told), Simulated(told)
    left = [battery]
    while isinstance(order := agent.ask(), Query):
        vehicle.send(order)
        for event in vehicle.events(0):
            agent.tell(event)
        left.append(agent.vehicles[0].ledger.left)
    assert min(left[:-1]) > 0, "somebody went on with nothing left"
    assert agent.endings[0]["end_reason"] in (EndReason.BATTERY_SPENT, EndReason.STEP_LIMIT)


def test_an_overdraft_is_noted_with_its_reason():
    agent = Agent(mission(battery=1.0, initial=0))
    told(agent, agent.ask(), 1.75)
    stop = agent.ask()
    assert isinstance(stop, Stop)
    notes = Result.of(agent, reason=stop.reason).notes
    assert (
        "battery overdrawn by 0.75 EUR: the last order cost more than expected (costs were unknown)" in notes
    )


def test_the_ledger_has_no_plan_for_an_order_of_unknown_cost():
    agent = Agent(mission(initial=0))
    for cost in (0.3, 2.0, 0.5):
        told(agent, agent.ask(), cost)
    entries = list(agent.vehicles[0].ledger.entries.values())
    assert np.isnan(entries[0].planned)
    assert np.isnan(entries[1].planned)
    assert entries[2].planned == 0.3
    book = Result.of(agent).accounts[0]
    assert book.planned == 0.3
    assert book.spent == pytest.approx(2.8)


def test_lost_orders_without_a_plan_share_their_cost_evenly():
    book = Ledger(10.0)
    for order in ("r/0", "r/1"):
        book.reserve(order, float("nan"), 0.0)
        book.lose(order)
    book.reconcile(7.0)
    assert [e.spent for e in book.entries.values()] == [1.5, 1.5]


@pytest.mark.parametrize("event", [Rejected, Lost])
def test_rejected_and_lost_orders_teach_nothing_about_costs(event):
    agent = Agent(mission(initial=0))
    agent.tell(event(agent.ask().id, "no"))
    told(agent, agent.ask(), 2.0)
    assert agent.ask().expected_cost is None


def test_a_run_with_unknown_costs_is_reproducible_and_reports_them_as_unknown():
    first, second = (run(mission(seed=3, battery=4.0, initial=2)) for _ in range(2))
    np.testing.assert_array_equal(first.sites, second.sites)
    assert first.summary()["costs"] == "unknown"
    assert first.cost == second.cost
    assert first.end_reason is EndReason.BATTERY_SPENT


def test_the_same_seed_draws_the_same_costs_whatever_the_agent_knows():
    one, other = (run(mission(costs=c, battery=3.0, initial=2, max_steps=2)) for c in ("unknown", "declared"))
    assert one.cost == other.cost
    np.testing.assert_array_equal(one.sites, other.sites)


def test_initial_readings_set_all_variables_or_else_the_sets_take_turns():
    whole = Agent(mission(initial=4))._initial
    assert all(q.controls is None for q in whole)
    partial = Agent(mission(there=world((1.0, 1.0), names=(["x"], ["y"])), initial=4))._initial
    assert [q.controls.tolist() for q in partial] == [[True, False], [False, True]] * 2


def test_a_policy_that_sets_all_variables_needs_a_set_of_all():
    with pytest.raises(InputError, match="a control set of all variables"):
        mission(EI(), there=world((1.0, 1.0), names=(["x"], ["y"])))


@dataclass(frozen=True)
class Wrong(Policy):
    """Asks for what the cell can't do."""

    answers: ClassVar[tuple[type, ...]] = (Optimum,)
    leaves_free: ClassVar[bool] = True

    site: tuple[float, ...] = (0.0, 0.0)
    controls: tuple[bool, ...] = (False, True)

    def suggest(self, state, memory):
        return Decision(Query(self.site, self.controls))


@pytest.mark.parametrize(
    ("policy", "message"),
    [(Wrong(), "not a control set"), (Wrong((3.0, 0.0), (True, False)), "outside the domain")],
    ids=["set", "site"],
)
def test_an_invalid_proposal_of_a_policy_is_named(policy, message):
    with pytest.raises(PolicyError, match=message):
        Agent(mission(policy, initial=0)).ask()


def test_free_variables_in_a_domain_without_control_sets_are_a_policy_error():
    plain = replace(world(), domain=Domain.box(AXES, 8), cost=Unit())
    with pytest.raises(PolicyError, match="without control sets"):
        Agent(mission(Wrong(), there=plain, costs="declared", initial=0)).ask()


@dataclass(frozen=True)
class FindsOut(Turns):
    """Must not know."""

    costs: ClassVar[tuple[str, ...]] = ("unknown",)


@dataclass(frozen=True)
class GoesBy(Turns):
    """Must know."""

    costs: ClassVar[tuple[str, ...]] = ("declared",)


@pytest.mark.parametrize(
    ("policy", "costs", "message"),
    [
        (FindsOut(), "declared", "needs unknown costs"),
        (GoesBy(), "unknown", "needs declared costs"),
    ],
    ids=["declared", "unknown"],
)
def test_a_policy_must_fit_what_the_agent_knows_of_costs(policy, costs, message):
    with pytest.raises(InputError, match=message):
        mission(policy, costs=costs)


@pytest.mark.parametrize("what", [{"home": [0, 0]}, {"time_limit_s": 60.0}], ids=["home", "time"])
def test_a_home_or_time_limit_needs_declared_costs(what):
    there = world()
    with pytest.raises(InputError, match="while costs are unknown"):
        mission(there=there, vehicles=(VehicleSpec(5.0, there.start, **what),))


def test_unknown_costs_can_not_be_declared():
    live = replace(world(), field=None, cost=Subset())
    assert mission(there=live).declared_cost is None
    with pytest.raises(InputError, match="are not known"):
        mission(there=live, costs="declared")


def test_a_policy_that_divides_by_costs_needs_them_declared():
    with pytest.raises(InputError, match="declare"):
        mission(Random(per_cost=True))
