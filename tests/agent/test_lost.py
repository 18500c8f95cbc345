"""Orders lost in a row, and batteries that differ from the ledger."""

from dataclasses import replace

import numpy as np
import pytest

from fieldbo.agent.agent import Agent
from fieldbo.agent.homewards import finish
from fieldbo.errors import InputError
from fieldbo.messages import (
    EndReason,
    GoHome,
    Lost,
    Observation,
    Query,
    Recharge,
    Rejected,
    Stop,
    Telemetry,
    from_plain,
    to_plain,
)
from fieldbo.mission.vehicle_spec import Recharging, WhenLost
from fieldbo.testing import small_mission


def agent_with(battery=60.0, home=True, **when_lost):
    mission = small_mission(battery=battery, home=home)
    crew = replace(mission.vehicles[0], when_lost=WhenLost(**when_lost))
    return Agent(replace(mission, vehicles=(crew,)))


def lose(agent, times):
    for _ in range(times):
        order = agent.ask()
        assert isinstance(order, Query)
        agent.tell(Lost(order.id, "silence"))


def heard(agent, remaining=None, time_s=None, position=None, accuracy=0.0):
    vehicle_state = agent.vehicles[0]
    at = vehicle_state.position if position is None else np.array(position, dtype=float)
    agent.tell(
        Telemetry(0, at, remaining, vehicle_state.time_s + 1.0 if time_s is None else time_s, accuracy)
    )


def answer(agent, order, value=0.5, **what):
    agent.tell(order.observed(value, noise_variance=0.01, **what))


def test_a_vehicle_that_loses_several_orders_in_a_row_is_sent_home_and_ends_as_lost():
    agent = agent_with(orders=2)
    answer(agent, agent.ask())
    answer(agent, agent.ask())
    lose(agent, 2)
    order = agent.ask()
    assert isinstance(order, GoHome)
    agent.tell(order.observed())
    assert agent.ask() == Stop(EndReason.VEHICLE_LOST)


def test_a_vehicle_ends_even_if_its_trip_home_is_lost():
    agent = agent_with(orders=1)
    answer(agent, agent.ask())
    answer(agent, agent.ask())
    lose(agent, 1)
    agent.tell(Lost(agent.ask().id, "silence"))
    assert agent.ask() == Stop(EndReason.VEHICLE_LOST)


def test_a_lost_vehicle_without_a_home_ends_where_it_is():
    agent = agent_with(orders=3, home=False)
    lose(agent, 3)
    assert agent.ask() == Stop(EndReason.VEHICLE_LOST)


@pytest.mark.parametrize("between", ["done", "rejected", "telemetry", "late"])
def test_any_sign_of_life_resets_the_count_of_lost_orders(between):
    agent = agent_with(orders=2)
    first = agent.ask()
    agent.tell(Lost(first.id, "silence"))
    if between == "done":
        answer(agent, agent.ask())
    elif between == "rejected":
        agent.tell(Rejected(agent.ask().id, "shallow"))
    elif between == "telemetry":
        heard(agent)
    else:
        answer(agent, first)
    lose(agent, 1)
    assert isinstance(agent.ask(), Query)


def test_a_lost_vehicle_gets_no_batch():
    agent = agent_with(orders=1, home=False)
    lose(agent, 1)
    assert agent.ask_batch(3) == []
    assert agent.ask() == Stop(EndReason.VEHICLE_LOST)


def test_a_mission_can_wait_until_a_lost_vehicle_is_heard_from():
    agent = agent_with(orders=1, then="wait")
    lose(agent, 1)
    assert agent.waits()
    heard(agent)
    assert not agent.waits()
    assert isinstance(agent.ask(), Query)


def test_a_vehicle_that_is_sent_home_is_not_waited_for():
    agent = agent_with(orders=1)
    lose(agent, 1)
    assert not agent.waits()


@pytest.mark.parametrize("wrong", [{"orders": 0}, {"patience_s": 0.0}, {"patience_s": np.inf}])
def test_wrong_settings_of_when_lost_are_rejected(wrong):
    with pytest.raises(InputError, match=r"agent\.when_lost"):
        WhenLost(**wrong)


def test_telemetry_overrules_the_ledger_if_they_differ_by_more_than_its_accuracy():
    agent = agent_with()
    answer(agent, agent.ask())
    left = agent.vehicles[0].ledger.left
    heard(agent, left - 3.0, accuracy=5.0)
    assert agent.vehicles[0].ledger.left == left
    heard(agent, left - 3.0, accuracy=2.0)
    assert agent.vehicles[0].ledger.left == pytest.approx(left - 3.0, rel=1e-12)
    heard(agent, left + 1.0)
    assert agent.vehicles[0].ledger.left == pytest.approx(left, rel=1e-12)  # what orders took stays charged


def test_a_low_battery_sends_the_vehicle_home_early():
    agent, orders = agent_with(battery=60.0), 0
    drained = agent_with(battery=60.0)
    for one in (agent, drained):
        while isinstance(order := one.ask(), Query):
            orders += one is agent
            answer(one, order)
            if one is drained:
                heard(one, one.vehicles[0].ledger.left - 4.0)
    assert isinstance(order, GoHome)
    assert len(drained.issued) < orders
    assert drained.vehicles[0].ledger.left >= order.expected_cost


def test_a_vehicle_is_at_risk_if_its_battery_under_way_is_not_enough():
    agent = agent_with()
    answer(agent, agent.ask())
    order = agent.ask()
    home, vehicle_state = agent.vehicles[0].spec.home, agent.vehicles[0]
    way = vehicle_state.cost.travel(vehicle_state.position, order.site[None])[0]
    back = vehicle_state.cost.travel(order.site, home[None])[0]
    heard(agent, way + back + 0.1)
    assert not agent.at_risk()
    heard(agent, way + back - 0.1, accuracy=0.2)
    assert not agent.at_risk()
    heard(agent, way + back - 0.1)
    assert agent.at_risk()
    assert vehicle_state.ledger.left == pytest.approx(59.0)  # what it used so far comes with its observation
    agent.tell(
        Observation(order.id, np.empty((0, 2)), [], [], [], vehicle_state.position, 0.0, complete=False)
    )
    assert not agent.at_risk()


def test_the_trip_home_is_never_broken_off():
    agent = agent_with(orders=1)
    answer(agent, agent.ask())
    answer(agent, agent.ask())
    lose(agent, 1)
    assert isinstance(agent.ask(), GoHome)
    heard(agent, 0.0)
    assert not agent.at_risk()


def cut_short(agent, order):
    none = np.empty(0)
    agent.tell(Observation(order.id, np.empty((0, 2)), none, none, none, [0.0, 0.0], 0.5, complete=False))


@pytest.mark.parametrize("lost", [False, True])
def test_a_site_visited_twice_in_vain_is_passed_over_unless_the_orders_were_lost(lost):
    agent = agent_with()
    answer(agent, agent.ask())
    sites = []
    for _ in range(2):
        order = agent.ask()
        if lost:
            agent.tell(Lost(order.id, "silence"))
        cut_short(agent, order)
        sites.append(order.site.tolist())
    assert sites[0] == sites[1]
    assert agent.seen().rejected[agent.domain.nearest(order.site)] == (not lost)


def test_a_robot_without_readings_is_not_sent_to_the_same_site_forever():
    agent, asked = agent_with(), []
    answer(agent, agent.ask())
    for _ in range(12):
        order = agent.ask()
        none = np.empty(0)
        agent.tell(Observation(order.id, np.empty((0, 2)), none, none, none, order.site, 0.0))
        asked.append(tuple(order.site))
    assert len(set(asked)) == 6


def test_a_battery_that_starts_low_does_not_raise_the_price_of_orders():
    agent, whole = agent_with(battery=60.0), agent_with(battery=25.0)
    heard(agent, 25.0)
    for one in (agent, whole):
        while isinstance(order := one.ask(), Query):
            answer(one, order)
            heard(one, one.vehicles[0].ledger.left)
    assert len(agent.issued) == len(whole.issued)


def test_telemetry_never_returns_what_an_order_took():
    agent = agent_with()
    heard(agent, 600.0)
    assert agent.vehicles[0].ledger.spent == 0.0
    answer(agent, agent.ask())
    agent.tell(Lost(agent.ask().id, "silence"))
    heard(agent, 70.0)
    assert agent.vehicles[0].ledger.spent == 1.0
    assert all(not e.spent < 0 for e in agent.vehicles[0].ledger.entries.values())


@pytest.mark.parametrize("wrong", [{"time_s": np.nan}, {"accuracy": np.nan}, {"accuracy": -1.0}])
def test_invalid_telemetry_is_rejected(wrong):
    with pytest.raises(InputError):
        Telemetry(0, [0.0, 0.0], 1.0, **{"time_s": 0.0, "accuracy": 0.0, **wrong})
    with pytest.raises(InputError):
        Telemetry(0, [0.0, np.nan], 1.0, 0.0)


def test_telemetry_without_a_battery_survives_a_record():
    told = Telemetry(0, [0.0, 0.0], None, 3.0)
    assert from_plain(to_plain(told)).remaining is None
    assert Telemetry(0, [0.0, 0.0], np.nan, 3.0).remaining is None


def test_telemetry_of_an_unknown_vehicle_is_rejected():
    for number in (-1, 1):
        with pytest.raises(InputError, match="telemetry of vehicle"):
            agent_with().tell(Telemetry(number, [0.0, 0.0], None, 0.0))


def test_a_rejected_trip_home_is_asked_for_once_more():
    agent = agent_with(orders=1)
    answer(agent, agent.ask())
    answer(agent, agent.ask())
    lose(agent, 1)
    for _ in range(2):
        order = agent.ask()
        assert isinstance(order, GoHome)
        agent.tell(Rejected(order.id, "a swan"))
    assert agent.ask() == Stop(EndReason.VEHICLE_LOST)


def test_a_vehicle_that_was_waited_for_in_vain_ends_as_lost():
    agent = agent_with(orders=1, then="wait")
    lose(agent, 1)
    agent.abandon()
    assert not agent.waits()
    assert agent.ask() == Stop(EndReason.VEHICLE_LOST)


def test_a_vehicle_that_is_heard_from_after_all_is_waited_for_the_next_time():
    agent = agent_with(orders=1, then="wait")
    lose(agent, 1)
    agent.abandon()
    heard(agent)
    lose(agent, 1)
    assert agent.waits()


def test_a_vehicle_that_lost_orders_may_have_led_away_goes_home_before_its_battery_is_changed():
    made = small_mission(battery=16.0, initial=0)
    spec = replace(made.vehicles[0], recharge=Recharging(takes_s=10.0, batteries=3))
    agent = Agent(replace(made, vehicles=(spec,)))
    order = agent.issue(Query([0.0, 0.0]))
    agent.tell(order.observed(0.5, noise_variance=0.01))
    agent.tell(Lost(agent.issue(Query([4.0, 3.0])).id, "silence"))
    while isinstance(order := agent.ask(), Query):
        agent.tell(Lost(order.id, "silence"))
    assert not isinstance(order, Recharge)


def test_a_vehicle_whose_gauge_shows_enough_is_sent_home_again_although_the_account_does_not():
    made = replace(small_mission(battery=16.0, initial=0), max_steps=3)
    agent = Agent(made)
    for site in ([0.0, 0.0], [1.0, 3.0], [2.0, 0.0]):
        order = agent.issue(Query(site))
        seen = order.observed(0.5, noise_variance=0.01, cost=1.8 * order.expected_cost)
        agent.tell(replace(seen, estimated=True, time_s=agent.vehicles[0].time_s + 5.0))
        agent.tell(Telemetry(0, site, 16.0, agent.vehicles[0].time_s + 1.0))
    for _ in range(2):
        home = agent.ask()
        assert isinstance(home, GoHome)
        cut = replace(home.observed(cost=0.0), position=[2.0, 0.0], complete=False)
        agent.tell(replace(cut, time_s=agent.vehicles[0].time_s + 5.0))
        agent.tell(Telemetry(0, [2.0, 0.0], 16.0, agent.vehicles[0].time_s + 1.0))
    assert isinstance(agent.ask(), Stop)


def test_a_vehicle_that_was_silent_on_its_way_home_is_not_given_up_by_its_old_position():
    agent = Agent(small_mission(battery=11.0, initial=0))
    agent.tell(agent.issue(Query([5.0, 0.0])).observed(0.5, noise_variance=0.01, time_s=6.0, cost=6.0))
    finish(agent, 0, EndReason.BATTERY_SPENT)
    trip = agent.vehicles[0].queue[-1]
    agent.tell(Lost(str(trip.id), "silent for 5 s"))
    # It has driven four of five metres, so a metre is left to go; its position is that of before.
    agent.tell(Telemetry(0, [5.0, 0.0], 1.0, 10.0, 0.1, located_s=6.0))
    assert not agent.vehicles[0].affordable_home
    again = agent.ask()
    assert isinstance(again, GoHome)
    assert again.id != trip.id
    agent.tell(Lost(str(again.id), "silent for 5 s"))
    agent.tell(Telemetry(0, [3.0, 0.0], 1.0, 12.0, 0.1))  # so it can't come home
    assert agent.ask() == Stop(EndReason.BATTERY_SPENT)


@pytest.mark.parametrize(("by_costs", "comes"), [(20.0, True), (11.0, False)])
def test_a_vehicle_whose_costs_leave_enough_is_sent_on_whatever_the_gauge_shows(by_costs, comes):
    agent = Agent(small_mission(battery=by_costs, initial=0))
    agent.tell(agent.issue(Query([5.0, 0.0])).observed(0.5, noise_variance=0.01, time_s=6.0, cost=6.0))
    agent.tell(Telemetry(0, [5.0, 0.0], 0.5, 7.0, 0.1))
    trip = finish(agent, 0, EndReason.BATTERY_SPENT)
    cut = replace(trip.observed(cost=3.0), position=[2.0, 0.0], complete=False)
    agent.tell(replace(cut, time_s=10.0))
    agent.tell(Telemetry(0, [2.0, 0.0], 0.5, 11.0, 0.1))
    agent.vehicles[0].ledger.charge(str(trip.id), 0.5, settles=False)
    assert isinstance(agent.ask(), GoHome if comes else Stop)


@pytest.mark.parametrize(("step", "trips"), [(0.0, 11), (0.2, 24)])
def test_a_vehicle_that_loses_its_trips_home_is_sent_on_as_long_as_it_is_seen_to_come_nearer(step, trips):
    """Its radio may work while its motors do not."""
    agent = Agent(small_mission(battery=40.0, initial=0))
    agent.tell(agent.issue(Query([5.0, 0.0])).observed(0.5, noise_variance=0.01, time_s=6.0, cost=6.0))
    order, lost, x = finish(agent, 0, EndReason.BATTERY_SPENT), 0, 5.0
    while isinstance(order, GoHome) and lost < 40 and x > 0.3:
        lost, x = lost + 1, x - step
        agent.tell(Lost(order.id, "silence", time_s=10.0 * lost))
        agent.tell(Telemetry(0, [x, 0.0], 30.0 - lost * step, 10.0 * lost + 1.0, 0.1))
        order = agent.ask()
    assert lost == trips
    assert isinstance(order, Stop if not step else GoHome)


def test_an_order_that_never_left_takes_nothing():
    agent = Agent(small_mission(initial=0))
    order = agent.ask()
    agent.tell(Lost(str(order.id), "its position is unknown", sent=False))
    state = agent.vehicles[0]
    assert (state.ledger.left, state.ledger.reserved, state.ledger.lost) == (30.0, {}, set())
    assert (state.lost_in_a_row, state.adrift) == (1, {})
    assert from_plain(to_plain(agent.history[-1])) == agent.history[-1]


def test_a_position_of_before_the_loss_says_nothing_of_where_the_vehicle_is():
    agent = Agent(small_mission(battery=11.0, initial=0))
    agent.tell(agent.issue(Query([5.0, 0.0])).observed(0.5, noise_variance=0.01, time_s=6.0, cost=6.0))
    finish(agent, 0, EndReason.BATTERY_SPENT)
    trip = agent.vehicles[0].queue[-1]
    agent.tell(Lost(str(trip.id), "silent for 5 s", time_s=9.0))
    agent.tell(Telemetry(0, [5.0, 0.0], 1.0, 10.0, 0.1, located_s=8.0))
    assert isinstance(agent.ask(), GoHome)
    with pytest.raises(InputError, match="time_s"):
        Lost("run/7", "silence", time_s=np.inf)


def test_a_trip_home_that_never_leaves_is_given_up_after_some_times():
    agent = Agent(small_mission(initial=0))
    agent.tell(agent.issue(Query([5.0, 0.0])).observed(0.5, noise_variance=0.01, time_s=6.0))
    finish(agent, 0, EndReason.STEP_LIMIT)
    trips = 0
    while agent.vehicles[0].queue:
        agent.tell(Lost(str(agent.vehicles[0].queue[-1].id), "its position is unknown", sent=False))
        heard(agent)
        agent.ask()
        trips += 1
    assert trips == 5
    assert agent.ask() == Stop(EndReason.VEHICLE_LOST)


def test_a_trip_home_that_is_cut_short_has_not_failed_while_it_comes_nearer():
    agent = Agent(small_mission(initial=0))
    agent.tell(agent.issue(Query([5.0, 0.0])).observed(0.5, noise_variance=0.01, time_s=6.0))
    finish(agent, 0, EndReason.STEP_LIMIT)
    for x in (4.0, 3.0, 2.0, 1.0):
        trip = agent.vehicles[0].queue[-1]
        agent.tell(replace(trip.observed(cost=1.0), position=[x, 0.0], complete=False))
        assert isinstance(agent.ask(), GoHome)
