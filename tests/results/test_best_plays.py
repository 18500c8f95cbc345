"""The recommended play: its control set, settings, expected value and cost."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import sketch
from tiers import swept

import fieldbo
from fieldbo.belief.confidence import MIDDLE90, Interval
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.costs.cells import Subset
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet, TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.messages import Query, Rejected
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.contract import Decision, Policy
from fieldbo.policies.control_sets.search import free_samples
from fieldbo.results import plot
from fieldbo.results.recommendation import BestPlay, recommended
from fieldbo.results.result import Result
from fieldbo.results.truth import expected_truth_of
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

AXES = Axis("heat", "C", 0, 10), Axis("time", "", 0, 1), Axis("salt", "g", -1, 1)
FREE = Uniform(), TruncatedNormal(0.5, 0.02, 0, 1), Uniform()
SETS = tuple(
    ControlSet.of(names, AXES, "sets") for names in (["heat"], ["heat", "salt"], [a.name for a in AXES])
)


@dataclass(frozen=True, eq=False)
class Known(Field):
    function: object

    def values(self, sites, time_s=0.0):
        return self.function(sites)


@dataclass(frozen=True)
class InTurn(Policy):
    """Plays control sets in turn, anywhere."""

    leaves_free = True
    turns: tuple = (0, 1, 2)

    def suggest(self, state, memory):
        number = self.turns[len(state.orders) % len(self.turns)]
        at = state.domain.low + state.rng.random(3) * state.domain.extent
        return Decision(Query(at, state.domain.control_sets[number].controls))


def mission(function, question=None, turns=(0, 1, 2), model=None, **settings):
    domain = Domain.box(AXES, 64, controls=Controls(SETS, FREE))
    cost = Subset(costs=(0.1, 0.2, 1.0), noise_sds=(0.0, 0.05, 0.1))
    world = World(
        "cell", "A cell", domain, cost, "EUR", Sensor(noise_sd=0.01), Quantity("yield", "kg"), Known(function)
    )
    model = model or Model(kernel="se", length_scales=(4.0, 0.5, 1.0), mean=0.0, learn=False)
    settings = {"initial": 0, "max_steps": 60, "costs": "unknown"} | settings
    policy, crew = InTurn(turns=turns), (VehicleSpec(500.0, world.start),)
    return Mission("cell", world, question or Optimum(), policy, model, crew, **settings)


def all_matter(x):
    return np.exp(-(((x[:, 0] - 3) / 4) ** 2) - (x[:, 2] - 0.4) ** 2 - 4 * (x[:, 1] - 0.9) ** 2)


def heat_matters(x):
    return np.exp(-(((x[:, 0] - 3) / 4) ** 2))


@pytest.fixture(scope="module")
def ran():
    return fieldbo.run(mission(all_matter))


@cache
def heated_for(steps=60):
    """Return a run in which heat matters, made once."""
    return fieldbo.run(mission(heat_matters, max_steps=steps))


# -- the recommendation --------------------------------------------------------------------------------


def play(number, value, cost, as_good=True):
    return BestPlay(number, np.zeros(1), Interval(value, value, value), cost, as_good)


PLAYS = st.lists(
    st.tuples(
        st.floats(-5, 5),
        st.one_of(st.none(), st.sampled_from([0.0, 0.01, 0.1, 0.12, 1.0])),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
).map(lambda told: [play(i, *one) for i, one in enumerate(told)])


@given(PLAYS, st.sampled_from([1.0, -1.0]))
def test_the_recommended_play_is_the_best_of_the_cheapest_that_are_as_good(plays, sign):
    chosen, good = recommended(plays, sign), [one for one in plays if one.as_good]
    if not good:
        assert chosen is None
        return
    assert chosen.as_good
    prices = [one.cost for one in good if one.cost is not None]
    if prices:
        assert chosen.cost <= 1.25 * min(prices)
    for one in good:
        alike = not prices or (one.cost is not None and one.cost <= 1.25 * min(prices))
        assert not alike or sign * one.expected.value <= sign * chosen.expected.value


@given(PLAYS)
def test_minimising_mirrors_maximising(plays):
    mirrored = [replace(one, expected=Interval(*[-one.expected.value] * 3)) for one in plays]
    one, other = recommended(plays, 1.0), recommended(mirrored, -1.0)
    assert (one and one.number) == (other and other.number)


def test_a_play_of_unknown_cost_is_recommended_only_if_no_cost_is_known():
    assert recommended([play(0, 2.95, None), play(1, 3.0, 1.0)], 1.0).number == 1
    assert recommended([play(0, 2.95, None), play(1, 3.0, 1.0, as_good=False)], 1.0).number == 0
    assert recommended([], 1.0) is None


# -- the best settings of each set ---------------------------------------------------------------------


def sampled(result, one):
    """All samples on which a play is evaluated (S, d)."""
    judging = free_samples(result.mission.world.domain, 128 + 512)[128:]
    return np.where(SETS[one.number].controls, np.nan_to_num(one.site), judging)


def by_hand(result, *plays):
    """Mean and covariance of E[f] at plays, in model units, from the joint belief of all samples."""
    belief, whole = result.surface.belief, np.concatenate([sampled(result, one) for one in plays])
    cross = belief.kernel(whole, belief.sites)
    noisy = belief.kernel(belief.sites, belief.sites) + np.diag(belief.noise_variances)
    covariance = belief.kernel(whole, whole) - cross @ np.linalg.solve(noisy, cross.T)
    k = len(plays)
    return belief.mean(whole).reshape(k, -1).mean(1), covariance.reshape(k, 512, k, 512).mean((1, 3))


def test_the_expected_value_is_the_mean_over_free_variables_with_its_own_interval(ran):
    user = ran.hyperparameters.scale
    assert [one.number for one in ran.best_plays] == [0, 1, 2]
    for one in ran.best_plays:
        assert np.isnan(one.site).tolist() == (~SETS[one.number].controls).tolist()
        mean, covariance = by_hand(ran, one)
        assert one.expected.value == pytest.approx(float(user.to_user(mean)[0]), abs=1e-9)
        half = MIDDLE90 * np.sqrt(covariance[0, 0]) * user.scale
        assert one.expected.high - one.expected.low == pytest.approx(2 * half, rel=1e-3)


@pytest.mark.parametrize("steps", swept([4, 6, 8, 12, 20, 60], [4, 12, 60]))
def test_a_set_is_as_good_if_its_difference_to_the_best_is_within_the_uncertainty(steps):
    result = heated_for(steps)
    plays = result.best_plays
    mean, covariance = by_hand(result, *plays)
    b = int(np.argmax(mean))
    for i, one in enumerate(plays):
        apart = covariance[b, b] + covariance[i, i] - 2 * covariance[b, i]
        within = MIDDLE90 * np.sqrt(np.maximum(min(apart, covariance[b, b]), 0))
        if abs(mean[b] - mean[i] - within) > 1e-4 * within + 1e-9:
            assert one.as_good == (mean[b] - mean[i] <= within)


def test_no_other_settings_of_a_set_have_a_much_higher_mean(ran):
    rng, domain = np.random.default_rng(0), ran.mission.world.domain
    at = domain.low + rng.random((100, 3)) * domain.extent
    samples, belief = free_samples(domain, 128 + 512)[128:], ran.surface.belief
    for one in ran.best_plays:
        whole = np.where(SETS[one.number].controls, at[:, None], samples).reshape(-1, 3)
        means = belief.mean(whole).reshape(len(at), -1).mean(axis=1)
        highest = float(ran.hyperparameters.scale.to_user(means.max()))
        assert highest <= one.expected.value + 1e-3


def test_results_can_be_pickled(ran):
    again = pickle.loads(pickle.dumps(ran))
    assert again.play.in_words(ran.mission.world) == ran.play.in_words(ran.mission.world)


def test_the_best_play_of_the_full_set_is_no_worse_than_the_reported_optimum(ran):
    assert ran.best_plays[2].expected.value >= ran.answer.reported_value - 1e-9


def test_the_cost_of_a_play_is_the_mean_real_cost_of_its_set(ran):
    told = {one["set"]: one["mean_cost"] for one in ran.summary()["control_sets"]}
    assert [one.cost for one in ran.best_plays] == pytest.approx(list(told.values()))
    assert ran.best_plays[2].cost != 1.0, "real costs differ from declared ones"


def test_a_set_never_played_has_its_declared_cost_or_none():
    for costs, expected in (("unknown", None), ("declared", 0.2)):
        result = fieldbo.run(mission(all_matter, turns=(0, 2), costs=costs, max_steps=8))
        assert result.best_plays[1].cost == (None if expected is None else pytest.approx(expected))
        assert result.best_plays[0].cost == pytest.approx(0.1)


@dataclass(frozen=True)
class Script(Policy):
    """Sets heat to given values."""

    leaves_free = True
    heats: tuple = ()

    def suggest(self, state, memory):
        return Decision(Query([self.heats[len(state.orders)], 0.0, 0.0], SETS[0].controls))


def heated(*heats):
    """The result of an agent that asked for these settings, of which the first four were carried out."""
    agent = fieldbo.Agent(replace(mission(heat_matters), policy=Script(heats)))
    for heat in heats:
        order, at = agent.ask(), np.array([heat, 0.5, 0.0])
        if len(agent.issued) <= 4:
            value = float(heat_matters(at[None])[0])
            agent.tell(order.observed(value, noise_variance=1e-4, position=at, cost=0.1))
        else:
            agent.tell(Rejected(order.id, "too hot"))
    return Result.of(agent)


def test_rejected_settings_are_not_recommended():
    best = float(heated(0.0, 4.0, 7.0, 10.0).best_plays[0].site[0])
    assert 2.0 < best < 5.0
    other = float(heated(0.0, 4.0, 7.0, 10.0, best).best_plays[0].site[0])
    assert abs(other - best) >= 0.02 * AXES[0].extent


# -- what is recommended -------------------------------------------------------------------------------


def test_if_every_variable_matters_all_are_set(ran):
    assert ran.play.number == 2
    np.testing.assert_allclose(ran.play.site, [3.0, 0.9, 0.4], atol=0.25)


def test_if_one_variable_matters_only_that_is_set():
    result = heated_for()
    assert result.play.number == 0
    assert result.play.site[0] == pytest.approx(3.0, abs=0.2)
    assert result.play.cost == pytest.approx(0.1)


def test_a_minimum_is_played_like_the_maximum_of_the_negated_function(ran):
    turned = fieldbo.run(mission(lambda x: -all_matter(x), Optimum("minimise")))
    assert turned.play.number == ran.play.number
    np.testing.assert_allclose(turned.play.site, [3.0, 0.9, 0.4], atol=0.25)
    interval = turned.play.expected
    assert interval.low < interval.value < interval.high < 0
    truth = expected_truth_of(turned.mission.world, turned.mission.question)
    told = turned.summary()["play"]
    gain = float(truth.gains(turned.play.site[None], SETS[2].controls)[0])
    assert told["expected_true"] == pytest.approx(float(-all_matter(turned.play.site[None])[0]))
    assert told["regret"] == pytest.approx(truth.best - gain)


def test_the_same_run_recommends_the_same_play(ran):
    again = fieldbo.run(ran.mission)
    assert again.summary()["play"] == ran.summary()["play"]


# -- summary and report --------------------------------------------------------------------------------


def test_the_summary_has_the_set_settings_expected_value_cost_and_truth_of_a_play():
    result = heated_for()
    told = json.loads(json.dumps(result.summary(), allow_nan=False))
    one = told["play"]
    assert (one["set"], one["number"], one["names"]) == ("heat", 0, ["heat"])
    assert one["site"] == [result.play.site[0], None, None]
    assert one["expected"] == result.play.expected.value
    assert one["expected_interval90"] == [result.play.expected.low, result.play.expected.high]
    assert one["expected_true"] == pytest.approx(float(heat_matters(result.play.site[None])[0]))
    assert one["regret"] == pytest.approx(1 - one["expected_true"], abs=1e-6)
    assert one in told["best_plays"]
    assert [other["set"] for other in told["best_plays"]] == [s.name for s in SETS]
    assert len(told["reported_site"]) == 3, "with everything set"


def test_the_summary_of_a_live_cell_has_no_truth(ran):
    world = replace(ran.mission.world, field=None)
    told = replace(ran, mission=replace(ran.mission, world=world)).summary()
    assert told["play"]["expected"] == ran.play.expected.value
    assert not {"expected_true", "regret"} & set(told["play"])


@dataclass(frozen=True)
class Anywhere(Policy):
    """Samples anywhere, everything set."""

    def suggest(self, state, memory):
        return Decision(Query(state.domain.low + state.rng.random(3) * state.domain.extent))


def test_no_play_is_recommended_before_a_reading_for_a_level_set_or_under_a_log():
    nothing = Result.of(fieldbo.Agent(mission(all_matter)))
    assert nothing.play is None
    assert nothing.summary()["play"] is None
    level = fieldbo.run(mission(all_matter, LevelSet(0.5), max_steps=4))
    assert level.best_plays == ()
    assert "play" not in level.summary()
    log = replace(
        mission(all_matter, max_steps=4), policy=Anywhere(), model=Model(transform="log", learn=False)
    )
    told = fieldbo.run(log).summary()
    assert told["play"] is None
    assert any("no play is recommended" in note for note in told["notes"])


@pytest.mark.parametrize(
    ("number", "cost", "settings", "price"),
    [
        (0, 0.1, "set heat 2.5 C; leave the other 2 as they come", "0.1 EUR per play"),
        (1, None, "set heat 2.5 C, salt -0.5 g; leave time as it comes", "cost not known yet"),
        (2, 1.0, "set heat 2.5 C, time 0.5, salt -0.5 g", "1 EUR per play"),
    ],
)
def test_a_play_in_words(number, cost, settings, price):
    site = np.where(SETS[number].controls, [2.5, 0.5, -0.5], np.nan)
    one = BestPlay(number, site, Interval(1.5, 1.25, 1.75), cost, True)
    told = one.in_words(mission(all_matter).world)
    assert told == f"{settings}: 1.5 kg expected (1.25 to 1.75), {price}"


@pytest.mark.slow
def test_the_command_line_prints_the_recommended_play(said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = " ".join(said("run", "cell-growth", "--battery", 8, "--out", "r").split())
    told = json.loads(Path("r/summary.json").read_text())
    one = told["play"]
    world = fieldbo.load_world("cell-growth")
    first = world.domain.axes[[a.name for a in world.domain.axes].index(one["names"][0])]
    set_to = one["site"][[a.name for a in world.domain.axes].index(first.name)]
    assert f"recommended play: set {first.name} {set_to:.4g} {first.unit}" in text
    assert f"{one['expected']:.4g} cm2 expected" in text
    assert f"{one['cost']:.3g} EUR per play" in text
    assert "with everything set" not in text
    assert f"{one['regret']:.3g} for the recommended one" in text


def test_the_report_names_equally_good_sets_of_unknown_cost(ran):
    first, second, third = ran.best_plays
    plays = (
        replace(first, cost=None, as_good=True),
        replace(second, as_good=True),
        replace(third, cost=None),
    )
    rows = dict(replace(ran, best_plays=plays).report().rows)
    assert rows["recommended play"].startswith("set heat")
    assert "salt" in rows["recommended play"]
    assert rows["equally good"].startswith("heat, all, as far as is known")


# -- pictures ------------------------------------------------------------------------------------------


def rings(figure):
    return [line for ax in figure.axes for line in ax.lines if line.get_label() == "recommended play"]


def test_the_path_marks_the_recommended_play_only_on_variables_that_it_sets():
    result = heated_for(20)
    assert result.play.number == 0
    drawn = rings(sketch(plot.path_picture, result))
    np.testing.assert_array_equal([float(ring.get_ydata()[0]) for ring in drawn], result.play.site)
    assert all(ring.get_xdata()[0] > 19 for ring in drawn)


def test_rejected_orders_leave_a_gap_in_the_path():
    agent = fieldbo.Agent(mission(all_matter))
    for number in range(6):
        order = agent.ask()
        if number == 2:
            agent.tell(Rejected(order.id, "door open"))
            continue
        at = np.where(np.isnan(order.site), [5, 0.5, 0], order.site)
        agent.tell(order.observed(1.0, noise_variance=0.01, position=at, cost=0.1))
    figure = sketch(plot.path_picture, Result.of(agent))
    (costs,) = [ax for ax in figure.axes if ax.get_ylabel().startswith("cost per")]
    bars = sorted(round(bar.get_x() + bar.get_width() / 2) for bar in costs.patches)
    assert bars == [0, 1, 3, 4, 5]


def test_values_beyond_their_axis_are_shown_in_the_path():
    agent = fieldbo.Agent(mission(all_matter, turns=(0,)))
    for _ in range(3):
        order = agent.ask()
        agent.tell(order.observed(1.0, noise_variance=0.01, position=[order.site[0], 1.7, -3.0], cost=0.1))
    figure = sketch(plot.path_picture, Result.of(agent))
    for ax, (low, high) in zip(figure.axes[1:3], [(0, 1.7), (-3.0, 1)], strict=True):
        assert ax.get_ylim()[0] < low < high < ax.get_ylim()[1]


def test_an_optimum_that_no_control_set_can_reach_is_not_marked():
    made = mission(all_matter, turns=(0, 1), max_steps=6)
    domain = replace(made.world.domain, controls=Controls(SETS[:2], FREE))
    cost = Subset(costs=(0.1, 0.2), noise_sds=(0.0, 0.05))
    partly = replace(made, world=replace(made.world, domain=domain, cost=cost))
    for one, marked in ((partly, False), (mission(all_matter, max_steps=6), True)):
        figure = sketch(plot.path_picture, fieldbo.run(one))
        stars = [line for ax in figure.axes for line in ax.lines if line.get_label() == "true optimum"]
        assert bool(stars) == marked
