"""The agent: its ledger, its guard, the orders it issues, and what it learns from events."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.agent.ledger import Ledger
from fieldbo.agent.state import Origin
from fieldbo.belief.model import LEAST_READINGS, Model
from fieldbo.belief.question import LevelSet
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError, PolicyError, RecordError
from fieldbo.messages import EndReason, Fitted, GoHome, Lost, Observation, Query, Rejected, Stop, Telemetry
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.baselines import MaximumVariance
from fieldbo.policies.choice import best_affordable
from fieldbo.policies.contract import Decision, Policy
from fieldbo.testing import small_mission
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World


class Slope(Field):
    def values(self, sites, time_s=0.0):
        return 0.5 * sites[:, 0]


@dataclass(frozen=True)
class Planned(Policy):
    """Goes through a list of places on a line, then stops; its memory is the next one's number."""

    places: tuple[float, ...] = ()
    reason: EndReason = EndReason.STOPPED_BY_POLICY

    def start(self, state):
        return 0

    def suggest(self, state, memory):
        if memory >= len(self.places):
            return Decision(Stop(self.reason), memory)
        return Decision(Query([self.places[memory]]), memory + 1, {"of": len(self.places)})


LINE = World(
    name="line",
    title="A metre costs 1 s, a sample 1 s more",
    domain=Domain.grid([Axis("x", "m", 0, 10)], [11]),
    cost=Euclidean(rate=1.0, sampling=1.0),
    cost_unit="s",
    sensor=Sensor(0.1),
    quantity=Quantity(),
    field=Slope(),
)


def mission(*places, battery=100.0, start=0.0, initial=0, policy=None, learn=False, world=LINE, **changes):
    crew = {k: changes.pop(k) for k in ("home", "reserve", "margin", "time_limit_s") if k in changes}
    if "home" in crew:
        crew["home"] = [crew["home"]]
    return Mission(
        name="line",
        world=world,
        question=LevelSet(2.0),
        policy=Planned(places) if policy is None else policy,
        model=Model(learn=learn, length_scales=(3.0,)),
        vehicles=(VehicleSpec(battery, [start], **crew),),
        initial=initial,
        **changes,
    )


def seen(order, cost=None, value=1.0, site=None, **changes):
    """What comes back of a query at its site, for the declared cost."""
    site = order.site if site is None else np.array(site, dtype=float)
    cost = order.expected_cost if cost is None else cost
    told = {"order": order.id, "sites": [site], "values": [value], "noise_variances": [0.01]}
    return Observation(**{**told, "times_s": [0.0], "position": site, "cost": cost, **changes})


def home_again(order, cost, at=(0.0,)):
    return Observation(order.id, np.empty((0, len(at))), [], [], [], at, cost)


def ledger(agent):
    return agent.vehicles[0].ledger


# -- the ledger ------------------------------------------------------------------------------------------


def test_outstanding_orders_are_reserved_and_settled_ones_are_charged_at_their_real_cost():
    agent = Agent(mission(3.0, 5.0, battery=20.0))

    first = agent.ask()
    assert first.expected_cost == 4.0
    assert (ledger(agent).spent, ledger(agent).available) == (0.0, 16.0)
    agent.tell(seen(first, cost=4.5))
    assert (ledger(agent).spent, ledger(agent).available) == (4.5, 15.5)
    second = agent.ask()
    assert second.expected_cost == 3.0
    assert (ledger(agent).spent, ledger(agent).available) == (4.5, 12.5)


def test_a_leg_that_reports_in_parts_is_charged_part_by_part_and_settled_by_the_last():
    agent = Agent(mission(3.0, 5.0, battery=20.0))
    order = agent.ask()

    agent.tell(seen(order, cost=1.0, site=[1.0], part=0, last=False))
    assert (ledger(agent).spent, ledger(agent).available) == (1.0, 16.0)
    assert agent.pending == (order,)
    assert agent.steps == 0
    agent.tell(seen(order, cost=2.5, part=1))
    assert (ledger(agent).spent, ledger(agent).available) == (3.5, 16.5)
    assert agent.pending == ()
    assert agent.steps == 1
    assert agent.readings == 2


def test_a_part_that_costs_more_than_declared_leaves_nothing_reserved():
    book = Ledger(10.0)
    book.reserve("run/0", 2.0)

    book.charge("run/0", 3.0, settles=False)

    assert book.spent == 3.0
    assert book.available == 7.0
    assert book.held == 0.0


def test_many_small_charges_add_up_exactly():
    book = Ledger(1.0)
    for n in range(10):
        book.reserve(f"run/{n}", 0.1)
        book.charge(f"run/{n}", 0.1, settles=True)

    assert book.spent == math.fsum([0.1] * 10) == 1.0
    assert book.available == 0.0


# -- the guard -------------------------------------------------------------------------------------------


def leaves(**settings):
    return isinstance(Agent(mission(6.0, **settings)).ask(), Query)


def test_a_query_that_takes_all_of_the_battery_is_issued():
    assert leaves(battery=7.0)
    assert not leaves(battery=np.nextafter(7.0, 0.0))


def test_the_trip_home_must_be_affordable_as_well():
    assert leaves(battery=13.0, home=0.0)
    assert not leaves(battery=12.99, home=0.0)
    assert leaves(battery=9.0, home=8.0)
    assert not leaves(battery=8.99, home=8.0)


def test_the_reserve_is_not_spent():
    assert leaves(battery=10.0, reserve=3.0)
    assert not leaves(battery=9.99, reserve=3.0)
    assert not leaves(battery=15.99, reserve=3.0, home=0.0)


def test_the_margin_applies_to_the_move_and_the_trip_home():
    assert leaves(battery=7.0 * 1.25, margin=0.25)
    assert not leaves(battery=7.0 * 1.25 - 0.01, margin=0.25)
    assert leaves(battery=13.0 * 1.25, margin=0.25, home=0.0)
    assert not leaves(battery=13.0 * 1.25 - 0.01, margin=0.25, home=0.0)


def test_the_time_limit_applies_to_the_move_and_the_trip_home():
    assert leaves(time_limit_s=7.0)
    assert not leaves(time_limit_s=6.99)
    assert leaves(time_limit_s=13.0, home=0.0)
    assert not leaves(time_limit_s=12.99, home=0.0)
    slow = replace(LINE, cost=Euclidean(rate=1.0, sampling=1.0, seconds_per_unit=2.0))
    assert leaves(time_limit_s=14.0, world=slow)
    assert not leaves(time_limit_s=13.99, world=slow)


def test_seconds_that_have_passed_count_towards_the_time_limit():
    agent = Agent(mission(1.0, 2.0, time_limit_s=10.0))
    agent.tell(seen(agent.ask(), times_s=[8.5]))

    assert agent.ask() == Stop(EndReason.TIME_LIMIT)


def test_the_seconds_of_outstanding_orders_count_towards_the_time_limit():
    assert len(Agent(mission(3.0, 6.0, 9.0, time_limit_s=12.0)).ask_batch(3)) == 3
    assert len(Agent(mission(3.0, 6.0, 9.0, time_limit_s=11.9)).ask_batch(3)) == 2


def test_the_margin_covers_outstanding_orders():
    assert len(Agent(mission(3.0, 6.0, battery=10.0, margin=0.25)).ask_batch(2)) == 2
    assert len(Agent(mission(3.0, 6.0, battery=9.9, margin=0.25)).ask_batch(2)) == 1


def test_the_policy_sees_the_guard_even_from_simulated_positions():
    class Asked(Planned):
        def suggest(self, state, memory):
            sites = state.domain.sites
            found.append(np.flatnonzero(state.affordable(sites)).max())
            found.append(np.flatnonzero(state.affordable(sites, position=np.array([5.0]), spent=6.0)).max())
            found.append(state.spendable)
            return super().suggest(state, memory)

    found = []
    Agent(mission(policy=Asked(), battery=10.0, reserve=1.0)).ask()

    assert found == [8, 7, 9.0]


def test_a_site_outside_the_domain_is_a_policy_error():
    with pytest.raises(PolicyError, match="outside the domain"):
        Agent(mission(11.0)).ask()


# -- going home and stopping -----------------------------------------------------------------------------


def test_the_vehicle_is_sent_home_before_it_is_stopped_and_can_always_afford_it():
    agent = Agent(mission(4.0, 9.0, battery=9.0, home=0.0))

    agent.tell(seen(agent.ask()))
    order = agent.ask()
    assert order == GoHome(0, "run/1")
    assert ledger(agent).available == 0.0
    agent.tell(home_again(order, 4.0))

    assert agent.ask() == Stop(EndReason.BATTERY_SPENT)
    assert ledger(agent).spent == 9.0


def test_a_vehicle_that_ends_at_home_is_not_sent_there():
    agent = Agent(mission(4.0, 0.0, home=0.0))

    for _ in range(2):
        agent.tell(seen(agent.ask()))

    assert agent.ask() == Stop(EndReason.STOPPED_BY_POLICY)


def test_the_reason_of_the_policy_is_kept_on_the_trip_home_and_repeated():
    agent = Agent(mission(policy=Planned((4.0,), EndReason.QUESTION_ANSWERED), home=0.0))

    agent.tell(seen(agent.ask()))
    agent.tell(home_again(agent.ask(), 4.0))

    assert [agent.ask() for _ in range(3)] == [Stop(EndReason.QUESTION_ANSWERED)] * 3


def test_the_step_limit_ends_a_run_unless_the_question_was_answered_in_time():
    agent = Agent(mission(1.0, 2.0, 3.0, max_steps=2))
    answered = Agent(mission(policy=Planned((1.0, 2.0), EndReason.QUESTION_ANSWERED), max_steps=2))

    for one in (agent, answered):
        for _ in range(2):
            one.tell(seen(one.ask()))

    assert agent.ask() == Stop(EndReason.STEP_LIMIT)
    assert answered.ask() == Stop(EndReason.QUESTION_ANSWERED)


# -- initial readings ------------------------------------------------------------------------------------


def test_the_first_initial_reading_is_at_the_start_and_the_policy_follows_the_last():
    agent = Agent(mission(9.0, start=2.5, initial=3))
    sites = []

    for _ in range(3):
        order = agent.ask()
        assert agent.why is None
        sites.append(float(order.site[0]))
        agent.tell(seen(order))

    assert sites[0] == 2.5
    assert len(set(sites)) == 3
    assert agent.ask().site.tolist() == [9.0]
    assert agent.why == {"of": 1}


def test_initial_readings_differ_by_seed_and_stay_within_the_battery():
    def route(seed, battery=1000.0):
        agent = Agent(mission(initial=6, seed=seed, battery=battery))
        return [float(order.site[0]) for order in agent.ask_batch(6)]

    assert route(1) == route(1)
    assert len({tuple(route(seed)) for seed in range(5)}) > 1
    assert len(route(1, battery=6.0)) < 6


def test_no_initial_readings_leave_the_first_choice_to_the_policy():
    assert Agent(mission(7.0, initial=0)).ask().site.tolist() == [7.0]


def test_a_rejected_initial_reading_is_not_asked_for_again():
    agent = Agent(mission(9.0, initial=1))

    agent.tell(Rejected(agent.ask().id, "a buoy"))

    assert agent.ask().site.tolist() == [9.0]


# -- pending queries and batches -------------------------------------------------------------------------


def test_pending_queries_lower_the_variance_that_the_policy_sees_and_leave_the_mean():
    views = []

    class Asked(Planned):
        def suggest(self, state, memory):
            views.append((state.surface.mean.copy(), state.surface.variance.copy(), state.pending))
            return super().suggest(state, memory)

    agent = Agent(mission(policy=Asked((5.0, 5.0))))
    first, _ = agent.ask_batch(2)

    (mean, variance, none), (mean_after, variance_after, pending) = views
    assert none == ()
    assert pending == (first,)
    assert np.array_equal(mean, mean_after)
    assert (variance_after < variance).all()
    assert np.array_equal(variance_after, agent.surface.believing([[5.0]], 0.01).variance)
    assert agent.surface.variance[5] == 1.0


def test_a_batch_of_maximum_variance_spreads_out():
    orders = Agent(mission(policy=MaximumVariance())).ask_batch(4)

    assert len({float(order.site[0]) for order in orders}) == 4


def test_a_batch_is_priced_and_guarded_from_the_end_of_the_queue():
    agent = Agent(mission(8.0, 2.0, 8.0, battery=23.0))

    orders = agent.ask_batch(3)

    assert [order.expected_cost for order in orders] == [9.0, 7.0, 7.0]
    assert ledger(agent).available == 0.0
    assert [len(Agent(mission(8.0, 2.0, 8.0, battery=b)).ask_batch(3)) for b in (22.9, 15.9, 8.9)] == [
        2,
        1,
        0,
    ]


def test_a_batch_reserves_the_trip_home_from_its_last_site_and_the_next_batch_is_that_trip():
    agent = Agent(mission(8.0, 2.0, 8.0, battery=18.0, home=0.0))

    orders = [*agent.ask_batch(5), *agent.ask_batch(5)]

    assert [type(order) for order in orders] == [Query, Query, GoHome]
    assert ledger(agent).reserved == {"run/0": 9.0, "run/1": 7.0, "run/2": 2.0}
    assert agent.ask_batch(2) == []


def test_an_empty_batch_is_rejected():
    with pytest.raises(InputError, match="at least 1"):
        Agent(mission(8.0)).ask_batch(0)


def test_orders_are_numbered_by_ask_under_the_name_of_the_run():
    agent = Agent(mission(1.0, 2.0, home=0.0), "lake-3")
    orders = [*agent.ask_batch(5), *agent.ask_batch(5)]

    assert [order.id for order in orders] == ["lake-3/0", "lake-3/1", "lake-3/2"]


# -- events ------------------------------------------------------------------------------------


def test_a_part_that_was_received_before_is_ignored():
    agent = Agent(mission(3.0, 5.0, battery=20.0))
    event = seen(agent.ask())
    agent.tell(event)
    before = (agent.memory, agent.steps, agent.readings, ledger(agent).spent, len(agent.history))

    agent.tell(event)
    agent.tell(replace(event, cost=9.0, values=[7.0]))

    assert (agent.memory, agent.steps, agent.readings, ledger(agent).spent, len(agent.history)) == before


def test_an_event_for_an_unknown_order_is_rejected():
    agent = Agent(mission(3.0))

    for event in (Lost("run/9", ""), Rejected("run/9", ""), home_again(GoHome(0, "run/9"), 1.0)):
        with pytest.raises(InputError, match="run/9"):
            agent.tell(event)


def test_a_drifted_vehicle_is_where_it_reports_and_its_readings_are_where_they_were_taken():
    agent = Agent(mission(3.0, 5.0))

    agent.tell(seen(agent.ask(), site=[2.25], value=4.0))

    assert agent.vehicles[0].position.tolist() == [2.25]
    assert agent.surface.belief.sites.tolist() == [[2.25]]
    assert agent.ask().expected_cost == 3.75


def test_a_rejected_order_moves_nothing_costs_nothing_and_closes_its_site():
    rejected = []

    class Asked(Planned):
        def suggest(self, state, memory):
            rejected.append(np.flatnonzero(state.rejected).tolist())
            return super().suggest(state, memory)

    agent = Agent(mission(policy=Asked((3.0, 5.0)), battery=20.0))
    agent.tell(Rejected(agent.ask().id, "shallow water"))

    assert agent.vehicles[0].position.tolist() == [0.0]
    assert ledger(agent).available == 20.0
    assert agent.steps == agent.readings == 0
    assert agent.ask().site.tolist() == [5.0]
    assert rejected == [[], [3]]


def test_a_lost_order_stays_reserved_is_no_longer_pending_and_teaches_nothing():
    agent = Agent(mission(3.0, 5.0, battery=20.0))

    agent.tell(Lost(agent.ask().id, "no link"))

    assert ledger(agent).available == 16.0
    assert ledger(agent).spent == 0.0
    assert agent.pending == ()
    assert agent.readings == agent.steps == 0
    assert agent.ask().site.tolist() == [5.0]


def test_a_late_observation_of_a_lost_order_is_charged_once():
    agent = Agent(mission(3.0, 5.0, battery=20.0))
    order = agent.ask()
    agent.tell(Lost(order.id, "no link"))

    agent.tell(seen(order, cost=4.5))
    agent.tell(seen(order, cost=4.5))

    assert ledger(agent).spent == 4.5
    assert ledger(agent).available == 15.5
    assert agent.readings == agent.steps == 1


def test_telemetry_settles_a_lost_order_and_its_late_observation_costs_nothing_more():
    agent = Agent(mission(3.0, 5.0, battery=20.0))
    order = agent.ask()
    agent.tell(Lost(order.id, "no link"))

    agent.tell(Telemetry(0, [3.0], 14.5, 9.0))
    assert ledger(agent).spent == 5.5
    assert ledger(agent).available == 14.5
    assert agent.vehicles[0].position.tolist() == [3.0]
    assert agent.vehicles[0].time_s == 9.0
    agent.tell(seen(order, cost=4.0, value=2.5))

    assert ledger(agent).spent == 5.5
    assert agent.readings == 1


def test_telemetry_moves_an_idle_vehicle_and_overrules_its_ledger_but_not_under_way():
    agent = Agent(mission(3.0, battery=20.0))

    agent.tell(Telemetry(0, [1.5], 12.0, 4.0))
    assert agent.vehicles[0].position.tolist() == [1.5]
    order = agent.ask()
    agent.tell(Telemetry(0, [2.0], 11.0, 5.0))

    assert agent.vehicles[0].position.tolist() == [1.5]
    assert ledger(agent).spent == 8.0
    assert order.expected_cost == 2.5


def test_a_late_observation_does_not_move_a_vehicle_back_to_where_it_once_was():
    agent = Agent(mission(3.0, 9.0, 8.0))
    late = agent.ask()
    agent.tell(Lost(late.id, "no link"))
    agent.tell(seen(agent.ask()))

    agent.tell(seen(late))

    assert agent.vehicles[0].position.tolist() == [9.0]
    assert agent.ask().expected_cost == 2.0


def test_a_link_that_breaks_after_the_observation_loses_nothing():
    agent = Agent(mission(3.0, 5.0, battery=20.0))
    order = agent.ask()
    agent.tell(seen(order))

    agent.tell(Lost(order.id, "no link"))
    agent.tell(Telemetry(0, [3.0], 16.0, 5.0))

    assert ledger(agent).spent == 4.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_readings_that_are_not_finite_are_left_out_of_the_model_and_kept_in_the_history(bad):
    agent = Agent(mission(3.0, 5.0, battery=20.0))
    order = agent.ask()
    event = seen(order, sites=[[1.0], [3.0]], values=[bad, 2.5], noise_variances=[0.1, 0.1], times_s=[0, 1])

    agent.tell(event)

    assert agent.left_out == 1
    assert agent.readings == 1
    assert agent.history == [event]
    assert agent.surface.belief.sites.tolist() == [[3.0]]
    assert ledger(agent).spent == 4.0


@pytest.mark.parametrize(("noise", "counts"), [(0.0, (1, 0)), (0.01, (0, 1))])
def test_readings_not_above_zero_need_noise_to_count_in_a_model_of_logs(noise, counts):
    one = mission(3.0)
    agent = Agent(replace(one, model=replace(one.model, transform="log")))

    agent.tell(agent.ask().observed(0.0, noise_variance=noise))

    assert (agent.left_out, agent.readings) == counts


def test_the_belief_is_that_of_all_readings_whatever_their_order():
    events = [(3.0, 1.0), (5.0, 2.5), (8.0, -1.0)]

    def mean(order):
        agent = Agent(mission(*[events[k][0] for k in order]))
        for k in order:
            agent.tell(seen(agent.ask(), value=events[k][1]))
        return agent.surface.mean

    assert np.allclose(mean([0, 1, 2]), mean([2, 0, 1]), rtol=0, atol=1e-12)


# -- learning --------------------------------------------------------------------------------------------


def learned(every, n, initial=0, values=None):
    """Return after how many readings a model was fitted."""
    places = tuple(float(k % 11) for k in range(n))
    agent = Agent(mission(*places, learn=every, battery=1e4, initial=initial))
    for k in range(n):
        order = agent.ask()
        agent.tell(seen(order, value=math.sin(k) if values is None else values))
    fits, readings = [], 0
    for event in agent.history:
        readings += isinstance(event, Observation)
        if isinstance(event, Fitted):
            fits.append(readings)
    return fits, agent


def test_the_model_is_fitted_once_there_are_enough_readings_and_then_at_intervals():
    assert learned({"every": 4}, 13)[0] == [LEAST_READINGS, LEAST_READINGS + 4]
    assert learned(True, 17)[0] == [LEAST_READINGS, LEAST_READINGS + 10]
    assert learned(False, 12)[0] == []


def test_the_first_fit_waits_for_all_initial_readings():
    assert learned({"every": 4}, 13, initial=8)[0] == [8, 12]


def test_readings_that_were_left_out_do_not_count_towards_a_fit():
    fits, agent = learned({"every": 4}, 8, values=np.nan)

    assert fits == []
    assert agent.left_out == 8


def test_a_fit_changes_the_belief_only_when_it_is_adopted():
    _, agent = learned({"every": 4}, LEAST_READINGS)
    before = agent.hyperparameters
    mean = agent.surface.mean.copy()

    fitted = agent.refit()
    assert agent.hyperparameters is before
    agent.tell(fitted)

    assert agent.hyperparameters.to_plain() == fitted.hyperparameters
    assert not np.array_equal(agent.surface.mean, mean)
    assert agent.refit() is None


def test_a_replayed_fit_gives_the_same_belief():
    """A replay applies what was recorded, and fits nothing."""
    _, agent = learned({"every": 4}, 12)
    replayed = Agent(agent.mission)
    orders = iter(range(12))

    for event in agent.history:
        if isinstance(event, Fitted):
            assert replayed.refit() is not None
        else:
            assert replayed.ask().id == f"run/{next(orders)}"
        replayed.tell(event)

    assert np.array_equal(agent.surface.mean, replayed.surface.mean)
    assert np.array_equal(agent.surface.variance, replayed.surface.variance)


def test_without_learning_values_are_never_rescaled():
    agent = Agent(mission(3.0))

    agent.tell(seen(agent.ask(), value=50.0, noise_variances=[1e-12]))

    assert agent.hyperparameters.scale.scale == 1.0
    assert agent.surface.mean[3] == pytest.approx(48.0)
    assert agent.hyperparameters.scale.to_user(agent.surface.mean[3:4])[0] == pytest.approx(50.0)


# -- what a policy may not propose -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["random", "lawnmower", "gchk"])
def test_a_level_that_the_sensor_does_not_have_is_rejected(policy):
    for level in (-1, 3):
        with pytest.raises(InputError, match=f"level = {level}") as caught:
            fieldbo.load_mission("gp-level-noise", {"policy": {"kind": policy, "level": level}})
        assert "policy.level" in caught.value.where


def test_a_policy_that_proposes_an_unknown_level_is_stopped():
    @dataclass(frozen=True)
    class Wrong(MaximumVariance):
        def suggest(self, state, memory):
            return Decision(Query(state.domain.sites[0], level=-1), memory)

    with pytest.raises(PolicyError, match="level -1"):
        Agent(mission(policy=Wrong())).ask()


def test_a_rejected_site_in_a_box_is_not_proposed_again():
    agent = Agent(fieldbo.load_mission("se-optimum", {"policy": {"kind": "truvar"}}))
    agent.tell(agent.ask().observed(0.5, noise_variance=1e-6))
    places = []
    for _ in range(6):
        query = agent.ask()
        places.append(tuple(query.site))
        agent.tell(Rejected(query.id, "no"))

    assert len(set(places)) == 6


# -- policies that break their contract --------------------------------------------------------------------


@dataclass(frozen=True)
class Careless(Policy):
    """A policy of somebody else's, with a mistake."""

    mistake: str = ""

    def suggest(self, state, memory):
        scores = state.surface.variance
        if self.mistake == "a score that is not a number":
            scores = scores.copy()
            scores[3] = np.nan
        elif self.mistake == "an array that is written to":
            scores[0] = -1.0
        elif self.mistake == "a site that is not a number":
            return Decision(Query(np.full(2, np.nan)), memory)
        elif self.mistake == "a site outside the domain":
            return Decision(Query(state.domain.high + 1.0), memory)
        return best_affordable(state, scores, memory)


@pytest.mark.parametrize(
    ("mistake", "error"),
    [
        ("a score that is not a number", "policy Careless gave NaN as the score of 1 of"),
        (
            "an array that is written to",
            r"policy Careless wrote to state.surface.variance(.|\n)*variance.copy",
        ),
        ("a site that is not a number", "policy Careless proposed .*nan, nan.*, outside the domain"),
        ("a site outside the domain", "policy Careless proposed .*, outside the domain"),
    ],
)
def test_a_mistake_of_a_policy_is_named_at_its_first_call(mistake, error):
    agent = Agent(small_mission(Careless(mistake), initial=0))
    with pytest.raises(PolicyError, match=error):
        agent.ask()
    assert agent.issued == {}
    assert Agent(small_mission(Careless(), initial=0)).ask() is not None


def test_a_part_that_is_repeated_as_the_last_one_settles_its_order_and_counts_once():
    agent = fieldbo.Agent(small_mission(initial=0))
    order = agent.ask()
    part = replace(order.observed(0.5, noise_variance=0.01, time_s=5.0), last=False)
    agent.tell(part)
    left, mean = agent.vehicles[0].ledger.left, agent.surface.mean.copy()
    assert agent.vehicles[0].queue == [order]
    for _ in range(2):
        agent.tell(replace(part, last=True))
    state = agent.vehicles[0]
    assert (state.queue, state.ledger.reserved, state.ledger.left) == ([], {}, left)
    assert (agent.steps, len(agent.history)) == (1, 2)
    assert np.array_equal(agent.surface.mean, mean)
    assert not agent.rejected.any()
    assert fieldbo.Result.of(agent).values.tolist() == [0.5]


def test_a_vehicle_that_gets_no_queries_is_issued_none():
    agent = Agent(small_mission(initial=0, home=True))
    agent.tell(agent.ask().observed(0.5, noise_variance=0.01, time_s=5.0))
    agent.replay_stop(0, EndReason.STOPPED_BY_POLICY, None, None)
    with pytest.raises(InputError, match="vehicle 0, but its part is over"):
        agent.issue(Query([1.0, 1.0]))
    assert agent.ask_another() is None


@pytest.mark.parametrize(
    ("order", "why", "origin", "problem"),
    [
        (GoHome(0, "run/0", [0.0, 0.0]), None, Origin.OPERATOR, "is a go-home, but its origin is 'operator'"),
        (GoHome(0, "run/0", [0.0, 0.0]), {}, Origin.END, "does not say why"),
        (GoHome(0, "run/0", [0.0, 0.0]), None, None, "after the vehicle's part was over"),
    ],
)
def test_an_order_that_no_agent_gave_is_refused_when_it_is_replayed(order, why, origin, problem):
    agent = Agent(small_mission(home=True))
    agent.replay_stop(0, EndReason.STOPPED_BY_POLICY, None, None)
    with pytest.raises(RecordError, match=problem):
        agent.replay(order, None, why, origin)
    assert agent.issued == {}
