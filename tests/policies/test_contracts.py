"""Every built-in policy, with each of its options, against the contract of policies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tiers import in_make_test, swept

from fieldbo.belief.question import Optimum, ShareOfMaximum
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.mission.kinds import POLICIES
from fieldbo.policies.baselines import GCHK, Lawnmower, MaximumVariance, Random, Straddle
from fieldbo.policies.chains.lambo import LaMBO
from fieldbo.policies.chains.rivals import CAMOBO, CArBO, LazyEIPerCost
from fieldbo.policies.contract import Decision, Policy
from fieldbo.policies.control_sets.front import SubsetFront
from fieldbo.policies.control_sets.rivals import ETC, TSPSQ, UCBCVS, UCBPSQ
from fieldbo.policies.control_sets.subsets import Subsets
from fieldbo.policies.level_set.look_ahead import EAVC, DistancePenalised, GlobalMI, GlobalSUR
from fieldbo.policies.level_set.tour import OneStepRisk, Tour
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.policies.optimum.myopic import (
    EI,
    GPUCB,
    EntropySearch,
    MaxValueEntropySearch,
    MinimumRegretSearch,
)
from fieldbo.policies.optimum.scout import Scout
from fieldbo.policies.optimum.search_tour import SearchTour
from fieldbo.policies.paths.informative import InformativePath
from fieldbo.policies.travel.one_step import DUCB, UCB, DistUCB, EIPerCost
from fieldbo.policies.travel.rollout import Rollout
from fieldbo.testing import (
    PolicyContract,
    UnknownCostContract,
    drive,
    small_cell,
    small_chain,
    small_mission,
    small_world,
)

SETTINGS: list[Policy] = [
    TruVaR(),
    TruVaR(per_cost=False),
    TruVaR(eta=0.0),
    TruVaR(monotone=True),
    TruVaR(monotone=False),
    TruVaR(a=0.5, r=0.5, delta=0.2),
    TruVaR(within=True),
    TruVaR(anticipate=True),
    GCHK(),
    GCHK(per_cost=True),
    GCHK(intersect=True),
    GCHK(kappa=1.5, intersect=True, per_cost=True),
    Straddle(),
    Straddle(kappa=3.0, per_cost=True),
    Tour(),
    Tour(stops=3),
    OneStepRisk(),
    OneStepRisk(per_cost=False),
    GlobalSUR(),
    GlobalSUR(per_cost=True),
    GlobalMI(),
    GlobalMI(per_cost=True),
    EAVC(),
    EAVC(per_cost=True),
    DistancePenalised(),
    DistancePenalised(samples=5, weight=1.0, per_cost=True),
    MaximumVariance(),
    MaximumVariance(per_cost=True),
    Random(),
    Lawnmower(),
    Lawnmower(lines=3, samples=2, along=1),
    EI(),
    EI(per_cost=True),
    GPUCB(),
    GPUCB(per_cost=True),
    GPUCB(delta=0.01),
    MaxValueEntropySearch(),
    MaxValueEntropySearch(per_cost=True),
    EntropySearch(representers=12, draws=32),
    EntropySearch(representers=12, draws=32, per_cost=True),
    MinimumRegretSearch(representers=12, draws=32),
    EntropySearch(representers=8, draws=64, outcomes=3),
    MinimumRegretSearch(representers=12, draws=32, per_cost=True),
    MinimumRegretSearch(representers=12, draws=64, point=True),
    SearchTour(),
    SearchTour(stops=3, draws=64),
    Scout(),
    DistUCB(),
    DistUCB(kappa=0.5, convention="floor", d0=1.0),
    DistUCB(stop="first_unaffordable"),
    UCB(),
    UCB(kappa=0.0),
    DUCB(rho=0.1),
    EIPerCost(),
    Rollout(),
    Rollout(horizon=1, fantasies=1),
    Rollout(base="ucb", fantasies=5),
    Rollout(base="ei", horizon=4, fantasies=4, fantasy_noise=False),
    Rollout(base="ei-per-cost", fantasies=8),
    Rollout(horizon=2, fantasies=8, stop="first_unaffordable"),
    Rollout(convention="floor", d0=1.0, horizon="budget", fantasies=4),
    InformativePath(starts=2, first_iterations=10, iterations=3),
    InformativePath(weight="may-exceed", starts=2, first_iterations=10, blocks=9),
    InformativePath(weight="map", spacing=1.5, starts=1, first_iterations=5, iterations=0),
]

CHAINED: list[Policy] = [
    LaMBO(),
    LaMBO(depths="eq20", cells=3, restart=3, drop=0.9, drop_after=2, deepen=4),
    LazyEIPerCost(),
    CAMOBO(),
    CArBO(),
    EIPerCost(),
]
FREE: list[Policy] = [
    Subsets(samples=8, candidates=16),
    Subsets(samples=8, candidates=16, tau=1, worst=-2.0),
    SubsetFront(samples=8, candidates=16, worst=-2.0),
    ETC(samples=8, candidates=16, plays=3),
    UCBPSQ(samples=8, candidates=16),
    TSPSQ(samples=8, candidates=16, features=64),
    UCBCVS(samples=8, candidates=16),
]

NEVER_STAY = [DistUCB(convention="exclude"), Rollout(convention="exclude", horizon=2, fantasies=8)]

GUARDS = {
    Rollout: Rollout(horizon=2, fantasies=8, stop="first_unaffordable"),
    InformativePath: InformativePath(weight="map", spacing=1.5, starts=1, first_iterations=5, iterations=0),
}
"""The setting of a policy that is tested each time, where it is not the first one."""

OTHER_QUESTIONS = [
    (policy, question)
    for question in (ShareOfMaximum(0.5), Optimum(), Optimum("minimise"))
    for policy in (TruVaR(), TruVaR(monotone=False), TruVaR(anticipate=True), GCHK(), GCHK(intersect=True))
    if type(question) in policy.answers
]


def guarded(policies):
    """Return the policies; all but one setting of each are marked as a sweep."""
    first = {type(policy): policy for policy in reversed(policies)}
    kept = {type(policy): policy for policy in GUARDS.values() if policy in policies}
    return swept(policies, (first | kept).values())


class TestBuiltInPolicies(PolicyContract):
    @pytest.fixture(autouse=True, params=guarded(SETTINGS), ids=repr)
    def settings(self, request):
        self.chosen = request.param

    def policy(self):
        return type(self.chosen)(**vars(self.chosen))


class TestPoliciesInAChainOfModules(PolicyContract):
    @pytest.fixture(autouse=True, params=guarded(CHAINED), ids=repr)
    def settings(self, request):
        self.chosen = request.param

    def policy(self):
        return type(self.chosen)(**vars(self.chosen))

    def mission(self, policy, **changes):
        battery = 20.0 if in_make_test() else 30.0
        chained = {"world": small_chain(), "question": Optimum(), "battery": battery}
        return small_mission(policy, **(chained | changes))

    def test_it_works_on_a_domain_of_a_single_site(self):
        """A single point stands for the box."""
        chain = small_chain()
        world = replace(chain, domain=Domain.box(chain.domain.axes, 1))
        for initial in (0, 1):
            _, orders, _ = drive(self.mission(self.policy(), world=world, battery=25.0, initial=initial))
            assert orders


class _InACell:
    def policy(self):
        return type(self.chosen)(**vars(self.chosen))

    def mission(self, policy, **changes):
        battery = 4.0 if in_make_test() else 6.0
        return small_mission(policy, **{"battery": battery, **changes})

    def test_it_works_on_a_domain_of_a_single_site(self):
        """A single point stands for the box."""
        cell = small_cell()
        world = replace(cell, domain=Domain.box(cell.domain.axes, 1, controls=cell.domain.controls))
        for initial in (0, 1):
            _, orders, _ = drive(self.mission(self.policy(), world=world, battery=5.0, initial=initial))
            assert orders


class TestPoliciesForUnknownCosts(_InACell, UnknownCostContract):
    @pytest.fixture(autouse=True, params=guarded([p for p in FREE if "declared" not in p.costs]), ids=repr)
    def settings(self, request):
        self.chosen = request.param


class TestPoliciesForControlSetsWithDeclaredCosts(_InACell, PolicyContract):
    @pytest.fixture(autouse=True, params=guarded([p for p in FREE if "declared" in p.costs]), ids=repr)
    def settings(self, request):
        self.chosen = request.param

    def test_it_stops_when_no_site_is_affordable(self):
        """The cheapest set costs 0.25."""
        ((_, decision),) = self._collect_decisions(battery=0.2, initial=0)
        assert isinstance(decision.choice, Stop)
        assert decision.choice.reason is EndReason.BATTERY_SPENT


class TestPoliciesThatNeverSampleTheSameSiteAgain(PolicyContract):
    @pytest.fixture(autouse=True, params=guarded(NEVER_STAY), ids=repr)
    def settings(self, request):
        self.chosen = request.param

    def policy(self):
        return type(self.chosen)(**vars(self.chosen))

    def test_it_works_on_a_domain_of_a_single_site(self):
        """The only site excludes itself: the policy stops, with battery left."""
        _, orders, stop = drive(self.mission(self.policy(), world=small_world((1, 1)), battery=5.0))
        assert len(orders) == 1  # the initial reading
        assert stop.reason is EndReason.STOPPED_BY_POLICY


class TestPoliciesOnOtherQuestions(PolicyContract):
    @pytest.fixture(autouse=True, params=swept(OTHER_QUESTIONS, OTHER_QUESTIONS[::4]), ids=repr)
    def settings(self, request):
        self.chosen, self.question = request.param

    def policy(self):
        return type(self.chosen)(**vars(self.chosen))

    def mission(self, policy, **changes):
        return small_mission(policy, question=self.question, **changes)


def test_every_registered_policy_is_tested():
    classes = {POLICIES.get(name) for name in POLICIES.names()}

    assert classes <= {type(policy) for policy in [*SETTINGS, *CHAINED, *FREE]}


# -- the suite rejects broken policies ------------------------------------------------------------------


class Mutable(Policy):
    def suggest(self, state, memory):
        return Decision(Query(state.domain.sites[0]), memory)


@dataclass(frozen=True)
class Forgetful(Policy):
    """Counts its calls outside its memory."""

    calls: list = field(default_factory=list, hash=False)

    def suggest(self, state, memory):
        self.calls.append(1)
        return Decision(Query(state.domain.sites[len(self.calls) % state.domain.size]), memory)


@dataclass(frozen=True)
class Scribbler(Policy):
    """Writes to an array of the agent."""

    def suggest(self, state, memory):
        state.surface.mean[0] += 1.0
        return Random().suggest(state, memory)


@dataclass(frozen=True)
class Rememberer(Policy):
    """Keeps an array as its memory."""

    def start(self, state):
        return np.zeros(3)

    def suggest(self, state, memory):
        return Random().suggest(state, memory)


@dataclass(frozen=True)
class Spendthrift(Policy):
    """Ignores costs, and proposes sites that are not affordable."""

    def suggest(self, state, memory):
        return Decision(Query(state.domain.sites[state.rng.integers(state.domain.size)]), memory)


@dataclass(frozen=True)
class Stubborn(Policy):
    """Proposes rejected sites again."""

    def suggest(self, state, memory):
        able = np.flatnonzero(state.affordable(state.domain.sites))
        if not len(able):
            return Decision(Stop(EndReason.BATTERY_SPENT), memory)
        return Decision(Query(state.domain.sites[able[-1]]), memory)


@dataclass(frozen=True)
class Boaster(Policy):
    """Claims that the question is answered when the battery is spent."""

    def suggest(self, state, memory):
        return Decision(Stop(EndReason.QUESTION_ANSWERED), memory)


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (Mutable, "test_it_is_a_frozen_value"),
        (Forgetful, "test_the_same_state_and_memory_give_the_same_answer"),
        (Scribbler, "test_it_does_not_change_the_state_or_the_memory"),
        (Rememberer, "test_memory_and_reasons_are_plain_data"),
        (Spendthrift, "test_it_proposes_only_affordable_sites_inside_the_domain"),
        (Stubborn, "test_a_rejected_site_is_not_proposed_again_and_the_mission_continues"),
        (Boaster, "test_it_stops_when_no_site_is_affordable"),
    ],
)
def test_the_suite_rejects_a_policy_that_breaks_the_contract(wrong, test):
    class Contract(PolicyContract):
        def policy(self):
            return wrong()

    with pytest.raises((AssertionError, TypeError)):
        getattr(Contract(), test)()
