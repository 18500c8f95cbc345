"""No place farther from a reading than the mission allows: `[stop] farthest`."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import fieldbo
from fieldbo.agent import coverage
from fieldbo.agent.coverage import cover, estimates, read_places
from fieldbo.belief.covering import to_nearest
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.mission.rules import StopRule
from fieldbo.policies import EI, Scout, Straddle, Tour, TruVaR
from fieldbo.policies.contract import Decision, Policy
from fieldbo.testing import small_mission, small_world

WORLD = small_world((12, 12), noise_sd=0.01)
KNOWN = Model(kernel="se", learn=False, length_scales=(2.0, 1.5), variance=1.0, mean=0.5)


def mission(policy, within=3.0, battery=110.0, question=None, model=KNOWN, **stop):
    made = small_mission(policy, world=WORLD, battery=battery, question=question)
    return replace(made, model=model, stop=StopRule(farthest=within, **stop))


def farthest_of(result):
    return to_nearest(result.mission.world.domain, result.sites).max()


class Homebody(Policy):
    """A policy that reads the first site over and over, or claims to have the answer."""

    def __init__(self, *, claims=False):
        self.claims = claims

    def suggest(self, state, memory):
        if self.claims:
            return Decision(Stop(EndReason.QUESTION_ANSWERED), memory)
        return Decision(Query(state.domain.sites[0]), memory)


@pytest.mark.parametrize(
    "policy", [Straddle(), TruVaR(), Tour(), Homebody(), Homebody(claims=True)], ids=repr
)
def test_whatever_the_policy_no_place_is_farther_and_the_vehicle_comes_home(policy):
    result = fieldbo.run(mission(policy))
    assert farthest_of(result) <= 3.0
    assert result.cost <= 110.0
    np.testing.assert_array_equal(result.observations[-1].position, WORLD.start)


@pytest.mark.parametrize("policy", [EI(), pytest.param(Scout(), marks=pytest.mark.slow)], ids=repr)
def test_the_search_for_an_optimum_covers_too(policy):
    result = fieldbo.run(mission(policy, question=Optimum()))
    assert farthest_of(result) <= 3.0


def test_a_goal_is_not_reached_before_no_place_is_farther():
    near, plain = mission(Tour(), expected_f1=0.5), mission(Tour(), None, expected_f1=0.5)
    result, early = fieldbo.run(near), fieldbo.run(plain)
    assert early.end_reason is EndReason.QUESTION_ANSWERED
    assert farthest_of(early) > 3.0
    assert result.end_reason is EndReason.QUESTION_ANSWERED
    assert farthest_of(result) <= 3.0
    stop = result.summary()["stop"]
    assert (stop["within"], stop["reached"]) == (3.0, True)
    assert stop["farthest"] == pytest.approx(farthest_of(result))
    assert "and no place farther than 3 m from a reading: reached" in str(result)


def test_the_orders_say_what_the_covering_takes():
    agent = fieldbo.Agent(mission(Homebody()))
    plans = []
    while isinstance(order := agent.ask(), Query):
        plans.append((agent.why or {}).get("cover"))
        agent.tell(order.observed(WORLD.truth(order.site[None]), noise_variance=1e-4))
    kept = [plan for plan in plans if plan is not None]
    assert len(kept[-1]["sites"]) == 1
    assert kept[0]["cost"] <= 110.0
    assert all(plan["within"] == 3.0 for plan in kept)
    assert plans.index(kept[0]) > 5, "the policy has its way while the battery lasts"


@pytest.mark.parametrize("battery", [20.0, 25.0, 30.0])
def test_without_enough_battery_the_nearest_distance_that_can_be_met_is_covered(battery):
    result = fieldbo.run(mission(Straddle(), battery=battery))
    plain = fieldbo.run(replace(result.mission, stop=StopRule()))
    assert farthest_of(result) < farthest_of(plain)
    assert result.cost <= battery
    np.testing.assert_array_equal(result.observations[-1].position, WORLD.start)
    assert not result.summary()["stop"]["reached"]
    assert f"not reached, because one is {farthest_of(result):.2g} m away" in str(result)


def test_how_many_distances_are_tried_for_one_order_is_limited(monkeypatch):
    planned, one = [], coverage._route
    monkeypatch.setattr(coverage, "_route", lambda *given: planned.append(given[3]) or one(*given))
    agent, asked = fieldbo.Agent(mission(Homebody(), battery=45.0)), []
    while isinstance(order := agent.ask(), Query):
        asked.append(len(planned))
        agent.tell(order.observed(WORLD.truth(order.site[None]), noise_variance=1e-4))
    assert len(asked) > 5
    assert max(np.diff([0, *asked])) <= 1 + coverage._TRIES
    assert max(planned) > 3.0, "the trial: 3 m can't be met"


def test_a_site_whose_reading_fails_is_not_ordered_for_ever():
    agent = fieldbo.Agent(mission(Homebody(), battery=200.0))
    corner, tried = WORLD.domain.sites[-1], 0
    while isinstance(order := agent.ask(), Query):
        far = np.abs(order.site - corner).max() <= 4.0
        tried += far and not np.array_equal(order.site, WORLD.start)
        values = [np.nan] if far else WORLD.truth(order.site[None])
        agent.tell(order.observed(values, noise_variance=1e-4))
        assert len(agent.history) < 400
    assert 0 < tried < 40


def test_a_pending_query_counts_as_read():
    agent = fieldbo.Agent(mission(Homebody()))
    before = to_nearest(WORLD.domain, read_places(agent, planned=True))
    order = agent.ask()
    after = to_nearest(WORLD.domain, read_places(agent, planned=True))
    assert not np.isfinite(before).any()
    assert after[WORLD.domain.nearest(order.site)] == 0.0


@pytest.mark.parametrize("within", [1.0, 2.5, 6.0])
def test_the_stops_cover_all_places(within):
    everywhere = np.ones(WORLD.domain.size, dtype=bool)
    stops = cover(WORLD.domain, everywhere, everywhere, within)
    assert to_nearest(WORLD.domain, WORLD.domain.sites[stops]).max() <= within


def test_before_the_start_it_is_clear_what_it_takes_and_what_is_within_reach():
    lines, warnings = estimates(mission(Straddle()))
    assert len(lines) == 1
    assert lines[0].startswith("  coverage  no place farther than 3 m from a reading takes about")
    assert not warnings
    poor = mission(Straddle(), battery=30.0)
    _, (warning,) = estimates(poor)
    assert "of 30 s: within reach is a distance of about" in warning
    assert estimates(replace(poor, stop=StopRule())) == ([], [])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0.5, r"(?s)closer than the sites are.*from 1 to 15.56 m.*stop.farthest"),
        ("1 km", r"(?s)larger than the domain.*from 1 to 15.56 m.*stop.farthest"),
        ("3 s", r"(?s)is in s.*an amount in m.*stop.farthest"),
        ("far", r"(?s)farthest = \"far\".*stop.farthest"),
    ],
)
def test_a_distance_that_makes_no_sense_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        mission(Straddle(), given)


def test_axes_of_different_units_have_no_distance():
    axes = [Axis("along", "m", 0, 900), Axis("depth", "m", 0, 20)]
    rule = StopRule(farthest=100.0)
    with pytest.raises(InputError, match="needs axes of one unit"):
        rule.check(LevelSet(1.0), Domain.grid(axes, (10, 5)))


def test_a_file_gives_it_with_its_unit():
    loaded = fieldbo.load_mission("lake-places-level-set", {"stop": {"farthest": "0.4 km"}})
    assert loaded.stop.within(loaded.world.domain) == 400.0


def test_a_run_begins_with_the_warning_that_a_check_gives(command, monkeypatch):
    monkeypatch.setattr("fieldbo.runs.folder.begin", lambda *_: sys.exit(0))
    _, out, _ = command("run", "spit-lake-map", "--battery", "10 min", "--set", "stop.farthest=50 m")
    assert "warning: no place farther than 50 m from a reading takes about" in out
