"""The phases of a vehicle: every pair of phase and turn, and trips home that fail."""

from dataclasses import replace

import many_worlds
import numpy as np
import pytest
from random_commands import commands_for
from tiers import seed_blocks
from underway import steered

from fieldbo.agent.agent import Agent
from fieldbo.agent.phase import Phase, Turn, after
from fieldbo.messages import EndReason, GoHome, Lost, Query, Recharge, Stop, Telemetry
from fieldbo.mission.vehicle_spec import WhenLost
from fieldbo.runs.state import RunState
from fieldbo.testing import small_mission

W, T, C, H, E = Phase.WORKING, Phase.TO_BATTERY, Phase.CHANGING, Phase.HOMING, Phase.ENDED
TABLE = {
    #                     WORKING  TO_BATTERY  CHANGING  HOMING  ENDED
    Turn.SENT_TO_BATTERY: (T, T, T, None, None),
    Turn.SENT_TO_CHANGE: (C, C, C, None, None),
    Turn.CHANGED: (W, W, W, H, E),
    Turn.SENT_HOME: (H, H, H, H, H),
    Turn.CAME_HOME: (W, T, C, E, E),
    Turn.STOPPED: (E, E, E, E, E),
    Turn.REOPENED: (W, T, C, W, W),
}


@pytest.mark.parametrize("turn", Turn)
@pytest.mark.parametrize("phase", Phase)
def test_every_pair_of_phase_and_turn_leads_where_the_table_says(phase, turn):
    expected = TABLE[turn][list(Phase).index(phase)]
    if expected is None:
        with pytest.raises(AssertionError, match=phase.value):
            after(phase, turn)
    else:
        assert after(phase, turn) is expected


@pytest.mark.parametrize("seeds", seed_blocks(100, 50, today=5), indirect=True)
def test_a_vehicle_is_always_in_the_phase_that_its_orders_say(tmp_path, seeds):
    for seed in seeds:
        mission, rng = many_worlds.mission_of(seed), np.random.default_rng(seed)
        (folder := tmp_path / str(seed)).mkdir()
        *_, rows = steered(mission, folder, commands_for(mission, rng), polls=2, seed=seed)
        state = RunState(mission, "run", scored=False)
        for row in rows:
            state.replay([row])
            vehicle = state.agent.vehicles[0]
            assert (vehicle.reason is not None) == vehicle.phase.over
            if row.kind in ("query", "go-home", "recharge"):
                expected = {Query: {W}, Recharge: {C}, GoHome: {T, H}}[type(row.message)]
                assert vehicle.phase in expected
            elif row.kind == "stop":
                assert vehicle.phase is E


# -- trips home that fail ----------------------------------------------------------------------------------


def agent_out(battery=60.0, orders=3, then="home"):
    """Return an agent whose vehicle is out, and whose mission is over; the trip home is its latest order."""
    mission = small_mission(battery=battery)
    spec = replace(mission.vehicles[0], when_lost=WhenLost(orders=orders, then=then))
    agent = Agent(replace(mission, vehicles=(spec,), max_steps=2))
    while isinstance(order := agent.ask(), Query):
        agent.tell(order.observed(0.5, noise_variance=0.01))
    assert isinstance(order, GoHome)
    return agent, order


def hear(agent, remaining=None):
    vehicle = agent.vehicles[0]
    agent.tell(Telemetry(0, vehicle.position, remaining, vehicle.time_s + 1.0))


def test_a_trip_home_that_was_lost_is_asked_for_until_it_is_done():
    agent, trip = agent_out(orders=3)
    first = trip
    hear(agent)
    for _ in range(5):
        agent.tell(Lost(trip.id, "silence"))
        assert agent.waits()
        hear(agent)
        assert not agent.waits()
        trip = agent.ask()
        assert isinstance(trip, GoHome)
        assert agent.endings[0] is agent.issued[trip.id].why is agent.issued[first.id].why
    agent.tell(trip.observed())
    assert agent.ask() == Stop(EndReason.STEP_LIMIT)


def test_a_vehicle_that_is_not_heard_on_its_way_home_ends_as_lost_and_can_be_sent_home_later():
    agent, trip = agent_out(orders=2)
    hear(agent)
    for _ in range(2):
        agent.tell(Lost(trip.id, "silence"))
        agent.abandon()
        trip = agent.ask()
    assert trip == Stop(EndReason.VEHICLE_LOST)
    assert agent.vehicles[0].stranded
    assert agent.endings[0]["end_reason"] == "vehicle lost"


def test_a_vehicle_that_cannot_pay_for_the_trip_is_not_sent_once_more():
    agent, trip = agent_out()
    agent.tell(Lost(trip.id, "silence"))
    hear(agent, remaining=0.5)
    assert agent.ask() == Stop(EndReason.STEP_LIMIT)
    assert agent.vehicles[0].stranded


def test_a_vehicle_for_whose_sake_a_run_is_resumed_is_sent_home_once_whatever_its_battery_shows():
    agent, trip = agent_out()
    agent.tell(Lost(trip.id, "silence"))
    hear(agent, remaining=0.5)
    for _ in range(2):
        assert agent.ask() == Stop(EndReason.STEP_LIMIT)
        agent.vehicles[0].try_home_again()
        trip = agent.ask()
        assert isinstance(trip, GoHome)
        here = agent.vehicles[0].position
        agent.tell(replace(trip.observed(), complete=False, position=here, cost=0.0))


def test_a_trip_home_that_is_broken_off_is_asked_for_once_more():
    agent, trip = agent_out()
    half = 0.5 * agent.vehicles[0].position
    agent.tell(replace(trip.observed(), complete=False, position=half, cost=1.0))
    assert isinstance(agent.ask(), GoHome)


def test_an_old_trip_that_is_reported_late_brings_nobody_home():
    agent, first = agent_out()
    agent.tell(Lost(first.id, "silence"))
    second = agent.ask()
    agent.tell(first.observed())
    assert agent.vehicles[0].phase is Phase.HOMING
    agent.tell(second.observed())
    assert agent.vehicles[0].phase is Phase.ENDED


def test_the_phase_of_a_vehicle_is_restored_with_its_record():
    agent, trip = agent_out()
    again = Agent(agent.mission)
    for issued in agent.issued.values():
        again.replay(issued.order, issued.memory, issued.why, issued.origin)
        if issued.order is not trip:
            again.tell(next(e for e in agent.history if e.order == issued.order.id))
    assert again.vehicles[0].phase is agent.vehicles[0].phase is Phase.HOMING
    assert again.vehicles[0].reason is EndReason.STEP_LIMIT
