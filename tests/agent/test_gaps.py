"""Gaps between readings, which keep an answer from counting until the mission has closed them."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import fieldbo
from fieldbo.agent.stopping import verdict
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, ShareOfMaximum
from fieldbo.messages import EndReason, Stop
from fieldbo.mission.rules import StopRule
from fieldbo.policies.baselines import Lawnmower, MaximumVariance, Straddle
from fieldbo.policies.contract import Decision, Policy
from fieldbo.testing import small_mission, small_world

WORLD = small_world((12, 12), noise_sd=0.01)
EMPTY = LevelSet(50.0)
GOAL = StopRule(expected_f1=0.9)


def mission(policy, question=EMPTY, battery=5000.0, world=WORLD, stop=GOAL):
    """Return a mission that learns, and whose map is empty unless the question says otherwise."""
    made = small_mission(policy, world=world, battery=battery, home=False, initial=5, question=question)
    return replace(made, model=Model(), stop=stop)


def tell(agent, order, value=1.0, position=None):
    """Tell an agent of a reading in a field that is as good as flat."""
    agent.tell(order.observed([value + 1e-3 * agent.readings], noise_variance=1e-4, position=position))


def read_until_unseen(agent):
    """Let an agent read on until only gaps keep its answer from counting."""
    while not (agent.readings >= 10 and verdict(agent).unseen):
        tell(agent, agent.ask())


def into_gaps(agent):
    """Return the agent's orders that gaps alone led to."""
    return [i for i in agent.issued.values() if (i.why or {}).get("stop", {}).get("unseen")]


@pytest.mark.slow
def test_of_a_share_of_the_maximum_the_maximum_is_sought_in_gaps():
    """The low hill near the start is soon mapped; the high one, far away, decides what half of it is."""

    def truth(site):
        low, high = (np.sum((site - top) ** 2) for top in ([4.0, 4.0], [16.0, 15.0]))
        return 0.3 + np.exp(-low / 18.0) + 4.0 * np.exp(-high / 4.0)

    world = small_world((20, 20), noise_sd=0.01)
    agent = fieldbo.Agent(mission(Straddle(per_cost=True), ShareOfMaximum(0.5), world=world))
    while agent.readings < 30:
        order = agent.ask()
        agent.tell(order.observed([truth(order.site)], noise_variance=1e-4))
    assert into_gaps(agent)


def test_the_note_on_gaps_says_what_may_be_missed():
    agent = fieldbo.Agent(mission(Straddle(), ShareOfMaximum(0.5)))
    for _ in range(6):
        tell(agent, agent.ask())
    notes = list(fieldbo.Result.of(agent).notes)
    assert any("a larger value may have been missed, even if the stated F1 is high" in n for n in notes)


def test_after_a_gap_a_policy_goes_on_where_it_was():
    agent = fieldbo.Agent(mission(Lawnmower(lines=5, samples=5), stop=StopRule(expected_f1=0.95)))
    read_until_unseen(agent)
    before = agent.memory
    agent.ask()
    assert into_gaps(agent)
    assert agent.memory == before


def test_an_order_into_a_gap_has_no_score_of_another_site():
    agent = fieldbo.Agent(mission(Straddle(per_cost=True)))
    read_until_unseen(agent)
    order = agent.ask()
    assert agent.why["stop"]["unseen"]
    assert not {"best", "score"} & set(agent.why)
    assert agent.why["site"] == agent.domain.nearest(order.site)


def test_a_gap_that_the_vehicle_gets_no_closer_to_is_ordered_once():
    agent, ordered = fieldbo.Agent(mission(Straddle(), battery=600.0)), Counter()
    while not isinstance(order := agent.ask(), Stop):
        ordered[tuple(order.site)] += 1
        tell(agent, order, position=np.minimum(order.site, [9.5, np.inf]))
    assert order.reason is EndReason.QUESTION_ANSWERED
    assert max(ordered.values()) == 1


def test_while_gaps_are_open_the_model_is_fitted_only_when_due():
    agent = fieldbo.Agent(mission(MaximumVariance(), world=small_world((24, 24), noise_sd=0.01)))
    while not isinstance(order := agent.ask(), Stop):
        tell(agent, order)
    assert order.reason is EndReason.QUESTION_ANSWERED
    assert agent.readings > 20
    assert len(agent.online_model.fits) <= agent.readings // 10 + 2


@pytest.mark.parametrize("policy", [Straddle(), MaximumVariance()], ids=["one by one", "together"])
def test_orders_of_a_batch_go_to_different_gaps(policy):
    agent = fieldbo.Agent(mission(policy, world=small_world((24, 24), noise_sd=0.01)))
    read_until_unseen(agent)
    sites = np.array([order.site for order in agent.ask_batch(4)])
    assert len(into_gaps(agent)) == 4
    apart = np.linalg.norm(sites[:, None] - sites, axis=2)[np.triu_indices(4, 1)]
    assert apart.min() > 2.0


def test_a_policy_that_is_done_leaves_gaps_for_want_of_battery():
    world = small_world((20, 20), noise_sd=0.01)
    agent = fieldbo.Agent(mission(Lawnmower(lines=3, samples=3), battery=260.0, world=world))
    while not isinstance(order := agent.ask(), Stop):
        tell(agent, order)
    assert verdict(agent).unseen
    assert order.reason is EndReason.BATTERY_SPENT


class Eager(Policy):
    """A policy that claims to have the answer whenever it is asked."""

    def suggest(self, state, memory):
        return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, {})


def test_a_vehicle_with_nothing_left_to_read_does_not_lack_battery():
    world = small_world((3, 2), noise_sd=0.0)
    made = mission(Eager(), world=world, stop=StopRule())
    boat = replace(made.vehicles[0], start=world.domain.sites[0])
    agent = fieldbo.Agent(replace(made, vehicles=(boat, boat), initial=1))
    for _ in range(5):
        order = agent.ask(0)
        agent.tell(order.observed(world.truth(order.site[None]), noise_variance=0.0))
    agent.ask(0)  # the last site
    assert agent.ask(1) == Stop(EndReason.STOPPED_BY_POLICY)
