"""Batches are chosen together, follow the shortest route, and are affordable as a whole."""

from itertools import pairwise

import numpy as np
import pytest

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.messages import EndReason


def lake(**agent):
    return fieldbo.load_mission("gp-lake-batch", {"agent": agent})


def test_the_policys_batch_follows_the_shortest_route_and_keeps_each_why():
    agent = Agent(lake(battery=8000))
    agent.tell(agent.ask_batch(4)[0].observed(0.5, noise_variance=1e-6))
    batch = agent.ask_batch(4)
    chosen = [agent.issued[q.id].why["batch"] for q in batch]
    cost, start = agent.mission.world.cost, agent.vehicles[0].position

    assert sorted(chosen) == [0, 1, 2, 3]
    in_order = [start, *(q.site for q in batch)]
    as_chosen = [start, *(q.site for _, q in sorted(zip(chosen, batch, strict=True)))]
    way, other = (sum(cost.travel(a, b[None])[0] for a, b in pairwise(p)) for p in (in_order, as_chosen))
    assert way <= other
    reserved = agent.vehicles[0].ledger.reserved
    assert sum(q.expected_cost for q in batch) == pytest.approx(sum(reserved.values()))


@pytest.mark.parametrize("home", [None, [0, 0]])
def test_a_run_in_batches_never_overdraws_and_comes_home(home):
    mission_ = lake(battery=700, home=home, reserve=50.0, margin=0.1)
    result = fieldbo.run(mission_)

    assert result.cost <= 650
    assert result.end_reason is EndReason.BATTERY_SPENT
    if home is not None:
        assert np.array_equal(result.observations[-1].position, home)


def test_a_batch_respects_the_step_limit():
    result = fieldbo.run(lake(max_steps=7))

    assert len(result.queries) == 7
    assert result.end_reason is EndReason.STEP_LIMIT


def test_a_policy_without_batches_is_asked_query_by_query():
    agent = Agent(fieldbo.load_mission("gp-lake", {"policy": {"kind": "straddle"}, "agent": {"batch": 3}}))
    agent.tell(agent.ask_batch(3)[0].observed(0.5, noise_variance=1e-6))
    batch = agent.ask_batch(3)

    assert len({q.site.tobytes() for q in batch}) == 3
    assert len(agent.pending) == 3


def test_a_batch_whose_moves_depend_on_each_other_draws_a_warning():
    assert any("batches of 4" in w for w in Agent(lake()).warnings)
    unit = fieldbo.load_mission("gp-lake-batch", {"world": "gp-lake-unit-cost"})
    assert not any("batches" in w for w in Agent(unit).warnings)


def test_an_unaffordable_batch_drops_the_queries_chosen_last():
    for battery in (520, 640, 760, 880):
        agent = Agent(lake(battery=battery, batch=6))
        agent.tell(agent.ask_batch(6)[0].observed(0.5, noise_variance=1e-6))
        chosen = sorted(agent.issued[q.id].why["batch"] for q in agent.ask_batch(6))
        assert chosen == list(range(len(chosen)))
