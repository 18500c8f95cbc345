"""The ledgers of battery and time: what is set aside, the guarantee to get home, planned and real costs."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.agent.ledger import Ledger
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet
from fieldbo.costs.travel import Euclidean, Flight
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, GoHome, Lost, Observation, Query, Rejected, Stop, Telemetry
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.baselines import MaximumVariance, Random
from fieldbo.results.notes import _unexplained
from fieldbo.results.report import _against_plan
from fieldbo.results.result import Result
from fieldbo.runs.runner import run
from fieldbo.testing.small import drive, small_world
from fieldbo.world.world import Disturbances


def world(shape=(11,), seconds=1.0, sampling=1.0, **changes):
    there = small_world(shape)
    return replace(there, cost=Euclidean(seconds, rate=1.0, sampling=sampling), **changes)


def mission(there=None, policy=None, battery=100.0, home=(0.0,), batch=1, max_steps=None, initial=0, **crew):
    there = world() if there is None else there
    return Mission(
        name="books",
        world=there,
        question=LevelSet(0.3),
        policy=Random() if policy is None else policy,
        model=Model(learn=False, length_scales=(2.0,) * there.domain.dimension, mean=0.0),
        vehicles=(VehicleSpec(battery, there.start, home=home, **crew),),
        initial=initial,
        batch=batch,
        max_steps=max_steps,
    )


def at(order, cost, time_s=None, position=None, part=0, last=True):
    """An observation without readings: where the vehicle is, when, and for how much."""
    none, place = np.empty(0), order.site if position is None else np.array(position)
    sites = np.empty((0, len(place)))
    return Observation(order.id, sites, none, none, none, place, cost, part, last, time_s=time_s)


def sent(agent, *places):
    """Issue queries to places on a line, if they are affordable."""
    orders = [agent.issue(Query([float(x)])) for x in places]
    return [order for order in orders if order is not None]


# -- one ledger ------------------------------------------------------------------------------------------


def test_an_entry_keeps_its_planned_and_real_cost_and_what_was_left():
    book = Ledger(60.0)
    book.reserve("run/0", 5.0)
    book.reserve("run/1", 7.0)
    book.charge("run/0", 2.0, settles=False)
    assert (book.entries["run/0"].spent, book.entries["run/0"].outstanding) == (2.0, True)
    assert math.isnan(book.entries["run/0"].left)
    assert (book.left, book.available, book.held) == (58.0, 48.0, 10.0)

    book.charge("run/0", 3.5, settles=True)
    book.release("run/1")

    first, second = book.entries.values()
    assert (first.planned, first.spent, first.left, first.outstanding) == (5.0, 5.5, 54.5, False)
    assert (second.planned, second.left, second.outstanding) == (7.0, 54.5, False)
    assert math.isnan(second.spent)
    assert book.left == book.available == 54.5


def test_a_leg_that_overruns_so_far_keeps_its_whole_margin():
    book = Ledger(20.0)
    book.reserve("run/0", 10.0)
    assert book.free(0.5) == 5.0

    book.charge("run/0", 7.5, settles=False)  # half of the way, at half as much again

    assert book.free(0.5) == 5.0
    assert book.available == 10.0


def test_lost_orders_share_their_cost_in_proportion_to_their_plans():
    book = Ledger(50.0)
    for n, planned in enumerate((6.0, 2.0)):
        book.reserve(f"run/{n}", planned)
        book.lose(f"run/{n}")

    book.reconcile(38.0)

    assert [entry.spent for entry in book.entries.values()] == [9.0, 3.0]
    assert (book.left, book.held, book.lost) == (38.0, 0.0, set())


# -- two limits ------------------------------------------------------------------------------------------


def test_battery_and_time_are_both_guarded_with_queue_margin_and_trip_home():
    """To 4 and back is 4 + 1 + 4 as declared, twice as many seconds, a quarter more of both at worst."""
    for battery, seconds, pays in ((11.25, 22.5, True), (11.24, 99, False), (99, 22.49, False)):
        agent = Agent(mission(world(seconds=2.0), battery=battery, time_limit_s=seconds, margin=0.25))
        assert bool(sent(agent, 4.0)) == pays

    # behind it: on to 6 and back, 5 + 3 + 6
    for battery, seconds, number in ((17.5, 35, 2), (17.49, 99, 1), (99, 34.99, 1)):
        agent = Agent(mission(world(seconds=2.0), battery=battery, time_limit_s=seconds, margin=0.25))
        assert len(sent(agent, 4.0, 6.0)) == number


def test_the_reserve_applies_to_the_battery_but_not_to_the_time():
    assert sent(Agent(mission(battery=12.0, reserve=3.0, time_limit_s=9.0)), 4.0)
    assert not sent(Agent(mission(battery=11.9, reserve=3.0, time_limit_s=99.0)), 4.0)


def test_a_lost_order_keeps_its_seconds_until_the_clock_advances():
    agent = Agent(mission(time_limit_s=30.0, home=None))
    vehicle_state = agent.vehicles[0]
    first, second = sent(agent, 4.0, 6.0)

    agent.tell(Lost(first.id, "no link"))
    assert vehicle_state.time_ledger.available == 30.0 - 5.0 - 7.0  # the second now begins at 0
    agent.tell(at(second, 3.0, time_s=9.0))

    assert vehicle_state.time_ledger.available == vehicle_state.time_ledger.left == 21.0
    assert vehicle_state.time_s == 9.0


def test_telemetry_settles_the_seconds_of_a_lost_order_and_of_waiting():
    agent = Agent(mission(time_limit_s=30.0))
    vehicle_state = agent.vehicles[0]
    (first,) = sent(agent, 4.0)
    agent.tell(Lost(first.id, "no link"))

    agent.tell(Telemetry(0, [4.0], 92.0, 12.0))
    assert vehicle_state.time_ledger.entries[first.id].spent == 12.0
    assert vehicle_state.time_ledger.available == 18.0
    agent.tell(Telemetry(0, [4.0], 92.0, 15.0))

    assert vehicle_state.time_ledger.left == 15.0
    assert vehicle_state.ledger.left == 92.0


def test_an_order_behind_a_rejected_one_is_priced_from_where_it_now_begins():
    agent = Agent(mission(battery=40.0, margin=0.5, time_limit_s=60.0))
    vehicle_state = agent.vehicles[0]
    orders = sent(agent, 4.0, 2.0, 8.0)
    assert list(vehicle_state.ledger.reserved.values()) == [5.0, 3.0, 7.0]

    agent.tell(Rejected(orders[1].id, "a buoy"))

    assert list(vehicle_state.ledger.reserved.values()) == [5.0, 5.0]
    assert list(vehicle_state.time_ledger.reserved.values()) == [5.0, 5.0]
    assert vehicle_state.ledger.entries[orders[2].id].planned == 7.0
    agent.tell(at(orders[0], 5.0, time_s=5.0, position=[1.0]))  # and it drifted
    assert list(vehicle_state.ledger.reserved.values()) == [8.0]


def wall_vehicle_state(battery):
    """A drone before the shipped wall, hovering for nothing: a stop between can make a way cheaper there."""
    told = fieldbo.load_mission("wall-worst-crack").world
    cost = replace(told.cost, hover_s=0.0).within(told.domain)
    return VehicleState(VehicleSpec(battery, np.array([8.8, 0.4]), home=np.array([2.0, 0.0])), cost)


def test_the_saving_of_a_stop_in_between_is_set_aside():
    between, far = np.array([[17.2, 6.8]]), np.array([[16.8, 15.2]])
    vehicle_state = wall_vehicle_state(10.0)
    legs = (
        float(vehicle_state.cost.travel(vehicle_state.position, between)[0]),
        float(vehicle_state.cost.travel(between[0], far)[0]),
    )
    saved = float(vehicle_state.cost.travel(vehicle_state.position, far)[0]) - sum(legs)
    needed = sum(legs) + float(vehicle_state.return_cost(far)[0])
    assert saved > 0.1

    for battery, enough in ((needed + 0.5 * saved, False), (needed + 1.01 * saved, True)):
        vehicle_state = wall_vehicle_state(battery)
        vehicle_state.send(Query(between[0], id="books/0"))
        assert bool(vehicle_state.affordable(far)[0]) is enough
    vehicle_state.send(Query(far[0], id="books/1"))
    assert vehicle_state.ledger.entries["books/1"].planned == pytest.approx(legs[1])
    assert vehicle_state.ledger.entries["books/1"].declared == pytest.approx(legs[1] + saved)

    vehicle_state.settle("books/0")
    assert vehicle_state.free >= float(vehicle_state.return_cost(far)[0])


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 100_000))
def test_whichever_queued_orders_are_rejected_the_others_and_the_trip_home_stay_affordable(seed):
    rng = np.random.default_rng(seed)
    vehicle_state = wall_vehicle_state(rng.uniform(1.0, 6.0))
    sites = fieldbo.load_mission("wall-worst-crack").world.domain.sites
    for n, site in enumerate(rng.choice(sites, 5, replace=False)):
        if vehicle_state.affordable(site[None])[0]:
            vehicle_state.send(Query(site, id=f"books/{n}"))
    while vehicle_state.queue:
        first = (
            vehicle_state.queue[int(rng.integers(len(vehicle_state.queue)))]
            if rng.random() < 0.6
            else vehicle_state.queue[0]
        )
        if first is vehicle_state.queue[0] and rng.random() < 0.5:
            vehicle_state.observed(
                at(first, vehicle_state.price(first, vehicle_state.position)), int(first.id[-1])
            )
        else:
            vehicle_state.settle(first.id)
        assert vehicle_state.free >= float(vehicle_state.return_cost(vehicle_state.end[None])[0]) - 1e-9


def test_orders_that_cost_what_they_cost_from_where_they_really_began_are_no_overrun():
    """The second of four stops is rejected, and the way to the third is longer than planned."""
    vehicle_state = wall_vehicle_state(4.077761186039532)
    for n, site in enumerate([[6.8, 16.8], [0.0, 13.2], [1.2, 0.8], [10.0, 7.2]]):
        vehicle_state.send(Query(np.array(site), id=f"books/{n}"))

    def reach_next():
        first = vehicle_state.queue[0]
        cost = vehicle_state.price(first, vehicle_state.position)
        vehicle_state.observed(at(first, cost), int(first.id[-1]))

    reach_next()
    vehicle_state.settle("books/1")
    reach_next()
    reach_next()
    assert vehicle_state.ledger.overrun == 0.0


def test_a_time_limit_below_the_trip_home_is_rejected_at_once():
    with pytest.raises(InputError, match="time_limit_s = 8, not enough") as error:
        mission(world(start=[8.0]), margin=0.25, time_limit_s=8.0)
    assert error.value.where == "agent.time_limit_s"
    assert "at least 10 s" in str(error.value)
    assert mission(world(start=[8.0]), margin=0.25, time_limit_s=10.0)


def test_the_cost_of_a_simulated_path_counts_in_seconds_too():
    drone = Flight(speed=5.0, acceleration=2.5, power=180.0, hover_power=180.0, hover_s=1.0)
    for cost in (Euclidean(2.0, rate=1.0, sampling=1.0), drone, Flight(power=0.0, hover_power=0.0)):
        there = replace(world((11, 2)), cost=cost)
        vehicle_state = Agent(mission(there, home=None, time_limit_s=30.0, max_steps=3)).vehicles[0]
        assert vehicle_state.affordable(np.array([[5.0, 0.0]]))[0]
        assert not vehicle_state.affordable(np.array([[5.0, 0.0]]), spent=99.0)[0]


# -- the guarantee ---------------------------------------------------------------------------------------


class Rough:
    """Carries orders out one by one, up to the margin dearer than declared, in parts or whole, or not."""

    def __init__(self, agent, data, margin):
        self.agent, self.draw, self.margin = agent, data.draw, margin
        self.position, self.time_s = agent.vehicles[0].position, 0.0

    def factor(self):
        return 1.0 + self.draw(st.sampled_from([self.margin, self.margin, 0.0, -0.5]))

    def carry_out(self, order):
        """Tell what becomes of an order."""
        cost, home = self.agent.mission.world.cost, isinstance(order, GoHome)
        if not home and self.draw(st.integers(0, 4)) == 0:
            self.agent.tell(Rejected(order.id, "not now"))
            return
        legs, place = [], self.position
        if self.draw(st.booleans()):  # in two parts: to somewhere on the straight way, then on
            between = self.position + self.draw(st.floats(0.1, 0.9)) * (order.site - self.position)
            legs.append(
                (between, cost.travel(place, between[None])[0], cost.travel_s(place, between[None])[0])
            )
            place = between
        price, time = (cost.travel, cost.travel_s) if home else (cost.to, cost.duration_s)
        legs.append((order.site, price(place, order.site[None])[0], time(place, order.site[None])[0]))
        for part, (end, declared, declared_s) in enumerate(legs):
            self.time_s += float(declared_s) * self.factor()
            last = part == len(legs) - 1
            self.agent.tell(at(order, float(declared) * self.factor(), self.time_s, end, part, last))
        self.position = order.site


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    data=st.data(),
    battery=st.floats(4.0, 60.0),
    margin=st.sampled_from([0.0, 0.1, 0.6, 1.5]),
    reserve=st.sampled_from([0.0, 2.0]),
    limit=st.none() | st.floats(10.0, 150.0),
    seed=st.integers(0, 99),
)
def test_with_a_sufficient_margin_every_vehicle_gets_home_whatever_happens_under_way(
    data, battery, margin, reserve, limit, seed
):
    there = world((6, 5), seconds=2.0)
    told = mission(
        there, home=[2.0, 1.0], battery=2.3 * (1 + margin) + reserve + battery,
        margin=margin, reserve=reserve, time_limit_s=None if limit is None else limit + 4.6 * (1 + margin),
        max_steps=12,
    )  # fmt: skip
    agent = Agent(replace(told, seed=seed))
    vehicle_state, crew = agent.vehicles[0], told.vehicles[0]
    rough, out, ended = Rough(agent, data, margin), [], False
    while out or not ended:
        while not ended and (not out or data.draw(st.booleans())):
            asked = agent.ask_batch(data.draw(st.integers(1, 3)))
            out += asked
            ended = not asked or isinstance(asked[-1], GoHome)
        if out:
            rough.carry_out(out.pop(0))
        assert vehicle_state.ledger.free(margin) >= reserve - 1e-9

    assert isinstance(agent.ask(), Stop)
    assert vehicle_state.ledger.spent <= battery + 2.3 * (1 + margin) + 1e-9
    assert crew.time_limit_s is None or vehicle_state.time_s <= crew.time_limit_s * (1 + 1e-12)
    assert np.array_equal(vehicle_state.position, crew.home)


@settings(max_examples=examples(60), deadline=None)
@given(
    places=st.lists(st.integers(0, 10), min_size=1, max_size=5),
    margin=st.sampled_from([0.0, 0.25, 1.0]),
    reserve=st.sampled_from([0.0, 3.0]),
    ahead=st.integers(1, 5),
)
def test_the_guard_is_tight_with_a_little_less_the_last_query_is_withheld(places, margin, reserve, ahead):
    """What is just enough if all is dearer by the margin is enough, and is spent to the reserve."""
    declared = sum(abs(b - a) + 1 for a, b in zip([0, *places], places, strict=False)) + places[-1]
    battery = declared * (1 + margin) + reserve
    for amount, number in ((battery, len(places)), (battery - 1e-6, len(places) - 1)):
        agent = Agent(mission(battery=amount, margin=margin, reserve=reserve))
        waiting, done = list(places), 0
        while waiting:
            orders = sent(agent, *waiting[:ahead])
            if not orders:
                break
            del waiting[: len(orders)]
            for order in orders:
                agent.tell(at(order, order.expected_cost * (1 + margin)))
            done += len(orders)
        assert done <= number or amount == battery
        if amount == battery:
            assert done == number
            vehicle_state = agent.vehicles[0]
            home = float(vehicle_state.return_cost(vehicle_state.position[None])[0]) * (1 + margin)
            assert vehicle_state.ledger.left - home == pytest.approx(reserve, abs=1e-9)


@settings(max_examples=examples(40), deadline=None)
@given(
    noise=st.sampled_from([0.0, 0.1, 0.3]),
    wind=st.sampled_from([0.0, 0.4]),
    battery=st.floats(3.0, 40.0),
    limit=st.none() | st.floats(6.0, 80.0),
    batch=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_in_simulation_a_margin_of_the_worst_disturbance_guarantees_the_reserve(
    noise, wind, battery, limit, batch, seed
):
    conditions = Disturbances(noise, (wind, 0.0))
    there = world((6, 5), seconds=2.0, disturbances=conditions)
    told = mission(
        there, home=(0.0, 0.0), battery=battery, margin=conditions.worst, time_limit_s=limit, batch=batch
    )
    result = run(replace(told, seed=seed, max_steps=15))

    assert result.cost <= battery + 1e-9
    assert limit is None or result.accounts[0].time_s <= limit + 1e-9
    assert result.accounts[0].home


def test_without_the_margin_the_same_wind_overdraws_the_battery_on_the_trip_home():
    against = Disturbances(head_wind=(0.5,))  # all the way home
    there = world(start=[10.0], sampling=5.5, disturbances=against)
    told = mission(there, policy=MaximumVariance(), battery=16.0)

    careless, careful = run(told), run(replace(told, vehicles=(replace(told.vehicles[0], margin=0.5),)))

    assert careless.cost == 20.5
    assert any("battery overdrawn by 4.5 s" in note for note in careless.notes)
    assert any("returned home with 0.0 s left" in note for note in careless.notes)
    assert careful.cost == 15.0
    assert not any("more than" in note for note in careful.notes)


def test_notes_of_several_vehicles_name_the_one_that_went_home():
    one = mission(battery=20.0)

    notes = run(replace(one, vehicles=(one.vehicles[0], replace(one.vehicles[0], battery=30.0)))).notes

    assert [note.split(":")[0] for note in notes if "returned home" in note] == ["vehicle 0", "vehicle 1"]


def test_the_note_of_a_landing_on_the_reserve_gives_what_is_left_of_it():
    there = world(start=[10.0], sampling=5.5, disturbances=Disturbances(head_wind=(0.3,)))

    result = run(mission(there, policy=MaximumVariance(), battery=19.0, reserve=3.0))

    assert result.accounts[0].left == pytest.approx(0.5)
    assert any("0.5 s (of a reserve of 3.0: orders cost more" in note for note in result.notes)
    assert not any("than the battery had" in note for note in result.notes)


# -- why it went home ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("battery", "seconds", "limit"), [(20.0, 99.0, "battery"), (99.0, 20.0, "time"), (20.0, None, "battery")]
)
def test_the_trip_home_records_the_limit_that_was_short(battery, seconds, limit):
    agent, orders, stop = drive(mission(world(sampling=5.0), battery=battery, time_limit_s=seconds))

    assert stop == Stop(EndReason.TIME_LIMIT if limit == "time" else EndReason.BATTERY_SPENT)
    assert isinstance(orders[-1], GoHome)
    assert agent.issued[orders[-1].id].why["limit"] == agent.endings[0]["limit"] == limit
    result = Result.of(agent, (), stop.reason)
    (note,) = result.notes
    kept = f"{agent.vehicles[0].ledger.left:.1f} s" + ("" if seconds is None else " and ")
    assert note.startswith(f"returned home with {kept}")
    assert note.endswith(f"not enough {limit} for another site")
    assert (result.summary()["limit"], result.summary()["home"]) == (limit, True)


def test_the_trip_home_remains_if_a_query_at_home_is_rejected():
    agent = Agent(mission(world(start=[3.0]), battery=4.5))
    (query,) = sent(agent, 0.0)
    order = agent.ask()  # nothing more can be paid for behind it
    assert isinstance(order, GoHome)
    assert order.expected_cost == 0.0

    agent.tell(Rejected(query.id, "a buoy"))

    assert agent.vehicles[0].ledger.reserved == {order.id: 3.0}


def test_a_mission_that_ends_for_another_reason_names_no_limit():
    for told in (mission(max_steps=2), mission(max_steps=2, home=None)):
        agent, _, stop = drive(told)
        assert stop == Stop(EndReason.STEP_LIMIT)
        assert "limit" not in agent.endings[0]
        result = Result.of(agent, (), stop.reason)
        assert result.notes == ()
        assert result.summary()["limit"] is None


def test_an_unreachable_site_does_not_count_as_short_of_a_limit():
    agent = Agent(mission(battery=20.0))
    vehicle_state = agent.vehicles[0]
    vehicle_state.cost = replace(vehicle_state.cost, rate=0.0)
    object.__setattr__(vehicle_state.cost, "travel_between", lambda a, b: np.full((len(a), len(b)), np.inf))

    assert vehicle_state.short_of(agent.domain.sites) is None


def test_a_resumed_agent_knows_its_limit():
    agent, orders, _ = drive(mission(world(sampling=5.0), battery=20.0))
    again = Agent(agent.mission)

    for order in orders:
        again.replay(order, agent.issued[order.id].memory, agent.issued[order.id].why)
        for event in agent.history:
            if event.order == order.id:
                again.tell(event)

    assert again.endings == agent.endings
    assert again.vehicles[0].ledger.entries == agent.vehicles[0].ledger.entries
    assert again.vehicles[0].time_ledger.entries == agent.vehicles[0].time_ledger.entries


# -- what a run says -------------------------------------------------------------------------------------


def rows_of(file):
    with Path(file).open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_the_ledger_of_a_run_adds_up(tmp_path):
    there = world(disturbances=Disturbances(cost_noise=0.1), seconds=2.0, sampling=5.0)
    result = run(mission(there, battery=40.0, margin=0.2, time_limit_s=200.0, batch=2))
    result.save(tmp_path)
    rows, told = rows_of(tmp_path / "ledger.csv"), json.loads((tmp_path / "summary.json").read_text())

    assert [row["order"] for row in rows] == [f"books/{n}" for n in range(len(rows))]
    assert {row["kind"] for row in rows[:-1]} == {"query"}
    assert rows[-1]["kind"] == "go-home"
    for name, whole, key in (("", 40.0, "cost"), ("_s", 200.0, "time_s")):
        spent = np.cumsum([float(row[f"spent{name}"]) for row in rows])
        assert np.allclose([float(row[f"left{name}"]) for row in rows], whole - spent)
        assert told[key] == pytest.approx(spent[-1])
        assert told[f"planned_{key}"] == pytest.approx(sum(float(row[f"planned{name}"]) for row in rows))
        for row in rows:
            assert float(row[f"spent{name}"]) == pytest.approx(float(row[f"planned{name}"]), rel=0.201)
    assert told["left"] == pytest.approx(40.0 - told["cost"])
    assert told["left_s"] == pytest.approx(200.0 - told["time_s"])
    assert told["home"] is True
    assert told["cost"] != told["planned_cost"]


def test_a_rejected_order_has_neither_plan_nor_cost_and_unknown_numbers_are_empty(tmp_path):
    agent = Agent(mission(home=None))
    first, second = sent(agent, 4.0, 6.0)
    agent.tell(Rejected(first.id, "a buoy"))
    result = Result.of(agent)
    result.save(tmp_path)
    one, two = rows_of(tmp_path / "ledger.csv")

    assert (one["planned"], one["spent"], one["left"]) == ("5.0", "", "100.0")
    assert (two["planned"], two["spent"], two["left"], two["left_s"]) == ("3.0", "", "", "")
    assert (result.summary()["planned_cost"], result.summary()["home"]) == (0, None)
    agent.tell(at(second, 7.5, time_s=7.5))
    assert Result.of(agent).summary()["planned_cost"] == 3.0


SMALL = """format = 1
version = "1"
title = "a field of 25 sites"
cost_unit = "Wh"
[domain]
kind = "grid"
axes = [{ name = "x", unit = "m", low = 0, high = 10, count = 5 },
        { name = "y", unit = "m", low = 0, high = 4, count = 5 }]
[field]
kind = "gp-draw"
length_scales = [3, 1]
[cost]
kind = "euclidean"
sampling = 1.25
[sensor]
noise_sd = 0.1
[conditions]
cost_noise = 0.05
"""
RUN = """format = 1
world = "small"
[question]
kind = "level-set"
threshold = 0.2
[agent]
battery = 60
home = [0, 0]
margin = 0.1
[policy]
kind = "random"
[model]
learn = false
length_scales = [3, 1]
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Work in a folder with a mission of a small battery."""
    monkeypatch.chdir(tmp_path)
    Path("worlds/small").mkdir(parents=True)
    Path("worlds/small/world.toml").write_text(SMALL)
    Path("m.toml").write_text(RUN)


@pytest.mark.usefixtures("small")
def test_a_run_with_a_small_battery_reports_what_is_left_to_a_tenth(said):
    text = " ".join(said("run", "m.toml", "--out", "r").split())
    told = json.loads(Path("r/summary.json").read_text())
    share = 100 * abs(told["cost"] / told["planned_cost"] - 1)
    side = "more" if told["planned_cost"] < told["cost"] else "less"

    planned = f"{share:.2g}% {side} than the {told['planned_cost']:.1f} planned"
    assert f"cost: {told['cost']:.1f} of 60 Wh, {planned}" in text
    assert f"note: returned home with {told['left']:.1f} Wh left: not enough battery for another site" in text
    assert "Battery spent after" in text


@pytest.mark.parametrize(("gap", "side"), [(271.0, "less"), (-271.0, "more")])
def test_a_gap_between_battery_and_orders_is_noted(gap, side):
    ledger = Ledger(6000.0, unexplained=[gap])
    vehicle = SimpleNamespace(ledgers=(ledger,), spec=SimpleNamespace(batteries=1))
    [note] = _unexplained(vehicle, "s")
    assert note == f"the battery held 271 s {side} than the orders account for; its reports were believed"


@pytest.mark.parametrize("estimated", [False, True])
def test_what_the_battery_shows_beyond_the_account_is_noted(estimated):
    ledger = Ledger(6000.0)
    ledger.reserve("run/0", 1000.0)
    ledger.charge("run/0", 1000.0, settles=True, uncertain=0.0 if estimated else None)
    ledger.reconcile(5200.0, 60.0)
    vehicle = SimpleNamespace(ledgers=(ledger,), spec=SimpleNamespace(batteries=1))
    assert list(_unexplained(vehicle, "s")) == []
    ledger.reconcile(5500.0, 60.0)
    [note] = _unexplained(vehicle, "s")
    assert note.startswith("the battery last showed 500 s more than the orders leave; its gauge may be wrong")
    assert ('trust = "gauge"' in note) is estimated
    assert ledger.left == 5000.0


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (5388.0, "5,388 of 6,000 s (1 h 30 min)"),
        (5391.0, "5,391 of 6,000 s (1 h 30 min)"),
        (5500.0, "5,500 of 6,000 s (1 h 32 min), 2% more than the 5,391 planned"),
        (5391.0 * 71.2, "383,839 of 6,000 s (4 d 11 h), 71 times the 5,391 planned"),
    ],
)
def test_a_cost_is_compared_with_the_plan_if_it_differs_by_a_percent(cost, text):
    numbers = {"cost": cost, "planned_cost": 5391.0, "battery": 6000.0, "cost_unit": "s", "costs": "declared"}
    assert _against_plan(numbers) == text


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_time_limit_that_ends_a_run_is_reported_as_the_reason(said):
    text = " ".join(said("run", "m.toml", "--out", "r", "--set", "agent.time_limit_s=30").split())
    told = json.loads(Path("r/summary.json").read_text())

    assert "Time limit reached after" in text
    assert f"time: {told['time_s']:.3g} s of 30 s" in text
    assert "not enough time for another site" in text
    assert told["limit"] == "time"
    assert told["end_reason"] == "time limit"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        (["battery=1"], "battery of 1 Wh is not enough for any reading: the cheapest reading takes 1.375 Wh"),
        (
            ["time_limit_s=1"],
            "time limit of 1 s is not enough for any reading: the cheapest reading takes 1.38 s",
        ),
        (["battery=60"], None),
    ],
)
def test_a_limit_that_is_not_enough_for_any_reading_is_reported_by_check_and_by_the_run(
    said, settings, warned
):
    few = [part for s in [*settings, "max_steps=5"] for part in ("--set", f"agent.{s}")]
    checked = " ".join(said("check", "m.toml", *few).split())
    agent = dict(s.split("=") for s in [*settings, "max_steps=5"])
    ran = run(fieldbo.load_mission("m.toml", {"agent": {k: int(v) for k, v in agent.items()}}))

    assert ("not enough for any reading" in checked) == (warned is not None)
    assert (warned or "") in checked
    noted = [note for note in ran.notes if "not enough for any reading" in note]
    assert len(noted) == (warned is not None)
    assert all(warned in note for note in noted)


def test_a_vehicle_that_can_only_afford_the_trip_home_goes_home():
    far = mission(world(start=[5.0]), battery=5.5)

    result = run(far)

    assert [type(o) for o in result.queries] == []
    assert (result.cost, result.accounts[0].home) == (5.0, True)
    assert "not enough for any reading: the cheapest reading takes 6 s with the trip home" in result.notes[0]


def test_a_vehicle_that_drifts_into_the_clearance_of_an_obstacle_still_has_a_path_and_its_files(tmp_path):
    told = fieldbo.load_mission("wall-worst-crack", {"agent": {"max_steps": 3}, "policy": {"kind": "random"}})
    agent, drifted = Agent(told), None
    while not isinstance(order := agent.ask(), Stop):
        if isinstance(order, Query) and drifted is None:
            drifted = np.array(told.world.domain.obstacles[0].polygon.exterior.coords[0])
            drifted += 0.05 * np.sign(told.world.domain.obstacles[0].polygon.centroid.coords[0] - drifted)
            assert not told.world.domain.contains(drifted[None])[0]
            agent.tell(at(order, 0.1, position=drifted))
        else:
            agent.tell(at(order, 0.1, position=None if isinstance(order, Query) else order.site))
    result = Result.of(agent, reason=order.reason)
    assert np.any(np.all(result.path == drifted, axis=1))
    result.save(tmp_path / "run")
    assert (tmp_path / "run" / "path.png").exists()


def test_a_reserve_that_was_used_is_reported():
    agent = Agent(mission(battery=12.0, reserve=3.0))
    agent.tell(at(agent.ask(), 9.5, position=[0.0]))
    while not isinstance(order := agent.ask(), Stop):
        agent.tell(at(order, 1.0, position=[0.0]))
    notes = " ".join(Result.of(agent, reason=order.reason).summary()["notes"])
    assert "of a reserve of 3.0: orders cost more than the margin allows for" in notes


def test_a_part_that_comes_after_the_last_one_counts_as_part_of_what_orders_really_take():
    ledger = Ledger(100.0)
    for number in range(3):
        ledger.reserve(f"run/{number}", 10.0)
        ledger.charge(f"run/{number}", 5.0, settles=True)
        ledger.charge(f"run/{number}", 10.0, settles=False)
    assert ledger.left == 55.0
    assert ledger.held == 0.0
    assert ledger.overrun == pytest.approx(0.5)
