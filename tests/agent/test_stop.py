"""When the question counts as answered: the mission's own goal, and a policy's claim."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree

import fieldbo
from fieldbo.agent.state import Verdict
from fieldbo.agent.stopping import final_verdict, gaps_of, verdict
from fieldbo.agent.unseen import hidden_at_sites, unseen
from fieldbo.belief.confidence import best_by_mean, drawn_regrets, rivals_of
from fieldbo.belief.covering import gaps
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Query, Rejected, Stop
from fieldbo.mission.rules import StopRule
from fieldbo.policies.baselines import GCHK, MaximumVariance, Straddle
from fieldbo.policies.contract import Decision, Policy
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.policies.optimum.myopic import EI
from fieldbo.testing import small_mission, small_world

WORLD = small_world((12, 12), noise_sd=0.01)
KNOWN = Model(kernel="se", learn=False, length_scales=(2.0, 1.5), variance=1.0, mean=0.5)


def mission(policy=None, model=None, stop=None, question=None, **changes):
    made = small_mission(Straddle() if policy is None else policy, world=WORLD, battery=5000.0, home=False)
    made = replace(made, model=Model() if model is None else model, **changes)
    question = made.question if question is None else question
    return replace(made, question=question, stop=StopRule() if stop is None else stop)


class Eager(Policy):
    """A policy that claims to have the answer whenever it is asked."""

    def suggest(self, state, memory):
        return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, {"eager": True})


def run_of(mission):
    """Return the agent of a mission after its end, and how it ended."""
    agent = fieldbo.Agent(mission)
    world = agent.mission.world
    while not isinstance(order := agent.ask(), Stop):
        agent.tell(order.observed(world.truth(order.site[None]), noise_variance=1e-4))
    return agent, order


@pytest.mark.parametrize("model", [None, KNOWN], ids=["learned", "known"])
def test_a_mission_stops_once_f1_is_high_enough_with_the_probability(model):
    agent, end = run_of(mission(model=model, stop=StopRule(expected_f1=0.9, probability=0.8)))
    assert end.reason is EndReason.QUESTION_ANSWERED
    assert agent.why["stop"]["goal"] == 0.9
    assert agent.why["stop"]["probability"] >= 0.8
    result = fieldbo.Result.of(agent)
    assert result.f1 > 0.85
    assert len(result.values) < 60


def test_a_higher_goal_takes_more_readings():
    taken = [run_of(mission(stop=StopRule(expected_f1=goal)))[0].readings for goal in (0.8, 0.95)]
    assert taken[0] < taken[1]


@pytest.mark.parametrize("model", [None, KNOWN], ids=["learned", "known"])
def test_a_mission_stops_once_the_regret_is_small_enough(model):
    goal = StopRule(regret=0.05)
    agent, end = run_of(mission(EI(), model, goal, Optimum()))
    assert end.reason is EndReason.QUESTION_ANSWERED
    assert fieldbo.Result.of(agent).regret <= 0.05 * np.ptp(fieldbo.Result.of(agent).values)


def test_a_field_far_from_the_threshold_still_takes_the_least_number_of_readings():
    far = LevelSet(-50.0)
    policy = MaximumVariance()  # it leaves no gaps for long
    agent, end = run_of(mission(policy, stop=StopRule(expected_f1=0.6, least_readings=14), question=far))
    assert end.reason is EndReason.QUESTION_ANSWERED
    assert agent.readings >= 14
    known, _ = run_of(mission(model=KNOWN, stop=StopRule(expected_f1=0.6, least_readings=14), question=far))
    assert known.readings < 14


def test_a_claim_of_a_policy_that_knows_its_model_counts():
    agent, end = run_of(mission(Eager(), KNOWN))
    assert end.reason is EndReason.QUESTION_ANSWERED
    assert agent.readings == 1


def test_a_claim_of_a_policy_that_learns_counts_once_the_belief_agrees():
    agent, end = run_of(mission(Eager(), initial=5))
    assert end.reason is EndReason.QUESTION_ANSWERED
    assert agent.readings >= 10
    assert agent.why["eager"]
    assert agent.why["stop"]["probability"] >= 0.9
    doubted = [i for i in agent.issued.values() if i.why is not None and "site" in i.why]
    assert doubted
    assert agent.online_model.fitted_at == agent.readings
    stops = [i.why["stop"] for i in doubted]
    assert all(stop["probability"] < 0.9 or stop.get("unfitted") for stop in stops)
    assert fieldbo.Result.of(agent).f1 > 0.9


def test_a_mission_that_doubts_an_answer_ends_with_its_battery():
    made = mission(Eager(), initial=5)
    made = replace(made, vehicles=(replace(made.vehicles[0], battery=40.0),))
    agent, end = run_of(made)
    assert end.reason is EndReason.BATTERY_SPENT
    assert agent.spent <= 40.0


def test_a_claim_before_the_first_fit_does_not_count():
    agent, _ = run_of(mission(Eager(), initial=3))
    assert agent.readings >= 10


@pytest.mark.each_choice
@pytest.mark.parametrize("stop", [None, StopRule(expected_f1=0.95)], ids=["claim", "goal"])
@pytest.mark.parametrize("policy", [TruVaR(), GCHK()], ids=["truvar", "gchk"])
def test_a_set_that_is_surely_empty_is_an_answer_once_readings_leave_no_gaps(policy, stop):
    made = mission(policy, question=LevelSet(50.0), stop=stop, initial=5)
    agent, end = run_of(made)
    assert end.reason is EndReason.QUESTION_ANSWERED
    assert 10 < agent.readings < 100
    assert fieldbo.Result.of(agent).summary()["expected_f1"] == pytest.approx(1.0, abs=0.05)
    extent = agent.domain.extent
    distance, _ = cKDTree(agent.online_model.data().sites / extent).query(agent.domain.sites / extent)
    assert distance.max() <= 0.1 + 1e-9


def test_a_patch_between_the_readings_is_found_before_the_set_counts_as_empty():
    made = mission(TruVaR(), question=LevelSet(50.0), initial=8)
    agent = fieldbo.Agent(made)
    patch = agent.domain.sites[agent.domain.nearest(agent.domain.low + 0.77 * agent.domain.extent)]
    reach = 0.15 * agent.domain.extent
    while not isinstance(order := agent.ask(), Stop):
        near = np.linalg.norm((order.site - patch) / reach) < 1.0
        agent.tell(order.observed(80.0 if near else 1.0 + 0.01 * order.site[0], noise_variance=1e-4))
    assert fieldbo.Result.of(agent).answer.inside.any()


def test_a_small_regret_under_a_log_counts_where_the_minimum_is_sought():
    made = mission(EI(), Model(transform="log"), StopRule(regret=0.01), Optimum("minimise"), initial=8)
    agent = fieldbo.Agent(made)
    while not isinstance(order := agent.ask(), Stop):
        x, y = order.site
        value = 0.02 + np.exp(1.5 + 4.0 * np.sin(x / 3.0) * np.cos(y / 4.0))
        agent.tell(order.observed([value], noise_variance=0.01))
    assert order.reason is EndReason.QUESTION_ANSWERED
    assert agent.readings < 40


def test_the_regret_in_a_box_is_judged_between_its_sites_too():
    agent = fieldbo.Agent(fieldbo.load_mission("hartmann", {"stop": {"regret": 0.05}}))
    while agent.readings < 30:
        order = agent.ask()
        if isinstance(order, Stop):
            break
        agent.tell(order.observed(agent.mission.world.truth(order.site[None]), noise_variance=0.0))
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
    surface, domain = agent.stated.surface, agent.domain
    point, _, _ = best_by_mean(surface, domain)
    rng = np.random.default_rng
    allowed = 0.05 * np.ptp(agent.online_model.believed_values)
    of_sites, of_both = (
        np.mean(drawn_regrets(s, point, agent.stated.scale, rng(1)).regret <= allowed)
        for s in (surface, rivals_of(surface, domain, point, rng(0)))
    )
    assert of_both < of_sites
    assert verdict(agent).probability <= of_both + 0.1


@pytest.mark.parametrize(("policy", "question"), [(EI(), Optimum()), (TruVaR(), None), (GCHK(), None)])
def test_a_claim_counts_once_every_site_is_known(policy, question):
    made = mission(policy, question=question)
    made = replace(made, world=small_world((3, 2), noise_sd=0.0))
    made = replace(made, vehicles=(replace(made.vehicles[0], start=made.world.domain.sites[0]),))
    agent = fieldbo.Agent(made)
    while not isinstance(order := agent.ask(), Stop):
        agent.tell(order.observed(made.world.truth(order.site[None]), noise_variance=0.0))
    assert order.reason is EndReason.QUESTION_ANSWERED
    assert agent.readings <= 6


def test_a_mission_whose_open_sites_are_all_rejected_is_not_said_to_lack_battery():
    made = replace(mission(Eager()), world=small_world((4, 3), noise_sd=0.0))
    made = replace(made, vehicles=(replace(made.vehicles[0], start=made.world.domain.sites[0]),))
    agent, readings = fieldbo.Agent(made), 0
    while not isinstance(order := agent.ask(), Stop):
        if readings < 5:
            readings += 1
            agent.tell(order.observed(made.world.truth(order.site[None]), noise_variance=0.0))
        else:
            agent.tell(Rejected(order.id, "a swimmer"))
    assert order.reason is EndReason.STOPPED_BY_POLICY


def test_doubtful_sites_of_a_batch_differ():
    agent = fieldbo.Agent(mission(Eager(), initial=5))
    for _ in range(8):
        order = agent.ask()
        value = agent.mission.world.truth(order.site[None])
        agent.tell(order.observed(value, noise_variance=1e-4))
    orders = agent.ask_batch(4)
    assert len({order.site.tobytes() for order in orders if isinstance(order, Query)}) == 4


@pytest.mark.parametrize(
    ("stop", "question", "found"),
    [
        (StopRule(regret=0.01), None, "regret is set, but the question is a level set"),
        (StopRule(expected_f1=0.9), Optimum(), "expected_f1 is set, but the question is an optimum"),
    ],
)
def test_a_goal_of_another_question_is_rejected(stop, question, found):
    policy = EI() if isinstance(question, Optimum) else None
    with pytest.raises(InputError, match=found):
        mission(policy, stop=stop, question=question)


@pytest.mark.parametrize(
    ("key", "value"), [("expected_f1", 1.0), ("probability", 0), ("least_readings", 0), ("regret", -1)]
)
def test_a_goal_out_of_range_is_rejected_with_its_place(key, value):
    with pytest.raises(InputError, match=f"stop.{key}"):
        fieldbo.load_mission("lake-level-set", {"stop": {key: value}})


def test_a_goal_in_percent_is_explained():
    with pytest.raises(InputError, match=r"write 0\.9 for 90%"):
        fieldbo.load_mission("lake-level-set", {"stop": {"expected_f1": 0.9, "probability": 90}})
    with pytest.raises(InputError) as wrong:
        fieldbo.load_mission("lake-level-set", {"stop": {"expected_f1": 0.9, "probability": 1}})
    assert wrong.value.fix is None


@pytest.mark.parametrize(
    ("goal", "battery", "how"), [(0.8, 5000.0, "reached (probability"), (0.999, 60.0, "not reached")]
)
def test_the_report_says_whether_the_goal_was_reached(goal, battery, how):
    made = mission(stop=StopRule(expected_f1=goal))
    made = replace(made, vehicles=(replace(made.vehicles[0], battery=battery),))
    agent, end = run_of(made)
    result = fieldbo.Result.of(agent, reason=end.reason)
    line = next(line for line in result.report().lines if line.startswith("goal"))
    assert f"F1 of at least {goal} with a probability of 0.9: {how}" in line
    assert result.summary()["stop"]["reached"] == (end.reason is EndReason.QUESTION_ANSWERED)


@pytest.mark.parametrize(
    ("gate", "why"),
    [({"unseen": True}, "the readings leave gaps"), ({"unfitted": True}, "the model has not been fitted")],
)
def test_the_report_says_what_keeps_a_likely_answer_from_counting(gate, why):
    result = fieldbo.Result.of(run_of(mission(stop=StopRule(expected_f1=0.8)))[0])
    gated = replace(result, verdict=Verdict(0.8, 0.95, 0.9, **gate))
    line = next(line for line in gated.report().lines if line.startswith("goal"))
    assert f"not reached, because {why}" in line
    assert not gated.summary()["stop"]["reached"]


def test_the_report_says_that_something_better_may_lie_unseen_if_that_lowers_the_probability():
    result = fieldbo.Result.of(run_of(mission(stop=StopRule(expected_f1=0.8)))[0])
    gated = replace(result, verdict=Verdict(0.05, 0.72, 0.9, unseen=True, farthest=2.0, within=3.0))
    line = next(line for line in gated.report().lines if line.startswith("goal"))
    assert line.endswith("not reached (probability 0.72), because something better may lie unseen")


def test_an_ending_recorded_without_the_wanted_probability_still_has_a_verdict():
    agent, _ = run_of(mission(stop=StopRule(expected_f1=0.8)))
    stop = {key: number for key, number in agent.endings[0]["stop"].items() if key != "wanted"}
    agent.endings[0] = {**agent.endings[0], "stop": stop}
    assert final_verdict(agent) == Verdict(0.8, stop["probability"], 0.9)


def test_control_sets_take_no_goal():
    with pytest.raises(InputError, match="control sets"):
        fieldbo.load_mission("cell-growth", {"stop": {"regret": 0.1}})


# -- gaps, and fits that have not seen all readings --------------------------------------------------------


def test_a_goal_is_reached_in_an_empty_map_by_a_policy_that_never_claims():
    far = LevelSet(-50.0)
    agent, end = run_of(mission(Straddle(), stop=StopRule(expected_f1=0.9), question=far))
    assert end.reason is EndReason.QUESTION_ANSWERED
    into_gaps = [i for i in agent.issued.values() if i.why is not None and "stop" in i.why]
    assert into_gaps
    assert all(i.why["stop"]["unseen"] for i in into_gaps)


@pytest.mark.parametrize("transform", ["none", "log"])
def test_an_optimum_counts_only_once_readings_leave_no_gaps(transform):
    """All readings lie in a flat corner, where there is nothing to learn of the hill elsewhere."""
    agent = fieldbo.Agent(mission(EI(), Model(transform=transform), StopRule(regret=0.05), Optimum()))
    corner = [site for site in WORLD.domain.sites if (site < 3).all()]
    rng = np.random.default_rng(0)
    for k in range(30):
        order = agent.issue(Query(corner[k % len(corner)]))
        agent.tell(order.observed(0.7 + 0.01 * rng.standard_normal(1), noise_variance=1e-4))
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
    assert not verdict(agent).answered
    assert any("may have been missed" in note for note in fieldbo.Result.of(agent).notes)


def searching(regret, battery=300.0, model=None):
    made = mission(EI(), model=model, stop=StopRule(regret=regret), question=Optimum())
    return replace(made, vehicles=tuple(replace(spec, battery=battery) for spec in made.vehicles))


def test_what_nobody_has_seen_keeps_a_small_regret_from_counting(monkeypatch):
    agent, end = run_of(searching(0.05))
    judged = verdict(agent)
    assert end.reason is EndReason.BATTERY_SPENT
    assert judged.unseen
    (surface, scale), values = agent.stated, agent.online_model.believed_values
    allowed = 0.05 * float(np.ptp(values)) / scale.scale
    assert judged.probability <= 1.0 - unseen(agent.mission, surface).chance_beyond(allowed) + 1e-9
    monkeypatch.setattr("fieldbo.agent.stopping._chance_unseen", lambda *_: 0.0)
    trusting, end = run_of(searching(0.05))
    assert end.reason is EndReason.QUESTION_ANSWERED  # on the model's own word
    assert trusting.readings < agent.readings


def test_a_loose_goal_for_the_regret_counts_before_every_site_is_covered():
    agent, end = run_of(searching(0.4))
    assert end.reason is EndReason.QUESTION_ANSWERED
    assert verdict(agent).probability >= 0.9
    assert agent.readings < 40


def test_where_a_better_value_may_lie_unseen_the_mission_looks_next():
    agent = fieldbo.Agent(searching(0.05))
    world, sent = agent.mission.world, 0
    while not isinstance(order := agent.ask(), Stop):
        doubt = (agent.issued[order.id].why or {}).get("stop", {})
        if doubt.get("unseen") and (gaps_of(agent) <= 1.0).all():
            hidden = hidden_at_sites(agent.mission, agent.stated[0])
            assert hidden[world.domain.nearest(order.site)] > np.median(hidden)
            sent += 1
        agent.tell(order.observed(world.truth(order.site[None]), noise_variance=1e-4))
    assert sent > 3


def test_a_known_model_vouches_for_what_nobody_has_seen():
    agent, end = run_of(searching(0.05, model=KNOWN))
    assert end.reason is EndReason.QUESTION_ANSWERED
    assert not verdict(agent).unseen


def test_many_axes_take_ten_places_each():
    axes = [Axis(name, "", 0.0, 1.0) for name in "abcd"]
    domain = Domain.box(axes, 50)
    read = np.random.default_rng(0).random((40, 4))
    assert not (gaps(read, Model(), domain, Optimum()) > 1).any()
    assert (gaps(np.repeat(read[:20], 2, axis=0), Model(), domain, Optimum()) > 1).all()


def test_an_answer_counts_only_if_the_latest_fit_has_seen_all_readings():
    agent, end = run_of(mission(EI(), stop=StopRule(regret=0.05), question=Optimum()))
    assert end.reason is EndReason.QUESTION_ANSWERED
    assert agent.online_model.fitted_at == agent.readings
    agent.online_model.fitted_at -= 1
    agent.judged = None
    assert verdict(agent).unfitted
    assert not verdict(agent).answered


def test_a_reading_that_refutes_the_model_ends_no_mission():
    """The range of the readings grows at once, and with it the regret that counts as small."""
    agent = fieldbo.Agent(mission(EI(), stop=StopRule(regret=0.05), question=Optimum()))
    spread = WORLD.domain.sites[::4]
    values = 1.0 + 0.02 * np.random.default_rng(1).standard_normal(len(spread))
    values[-1] = 3.0
    for site, value in zip(spread, values, strict=True):
        order = agent.issue(Query(site))
        agent.tell(order.observed(np.array([value]), noise_variance=1e-4))
        if value < 2.0:
            while (fitted := agent.refit()) is not None:
                agent.tell(fitted)
    assert agent.online_model.fit_is_stale
    assert not verdict(agent).answered


def test_what_a_sensor_reports_below_its_limit_changes_no_verdict():
    """Some report the limit, some zero, some a mark such as -99."""
    below, ends = 0.5, []
    for reported in (below, -99.0):
        made = mission(EI(), Model(), StopRule(regret=0.05), Optimum())
        made = replace(made, world=replace(WORLD, sensor=Sensor(0.01, below=below)))
        agent = fieldbo.Agent(made)
        while not isinstance(order := agent.ask(), Stop) and agent.readings < 16:
            value = made.world.truth(order.site[None])
            agent.tell(order.observed(np.where(value <= below, reported, value), noise_variance=1e-4))
        ends.append((agent.readings, verdict(agent).probability, agent.blinded))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_noise_in_proportion_to_the_value_means_the_same_in_any_unit(factor):
    found = []
    for unit in (1.0, factor):
        made = mission(EI(), Model(), StopRule(regret=0.05), Optimum())
        made = replace(made, world=replace(WORLD, sensor=Sensor(0.01 * unit, noise_share=0.1)))
        agent, rng = fieldbo.Agent(made), np.random.default_rng(3)
        for site in rng.permutation(WORLD.domain.sites)[:14]:
            value = 2.0 + WORLD.truth(site[None])
            reading = unit * value * (1.0 + 0.1 * rng.standard_normal(1))
            agent.tell(agent.issue(Query(site)).observed(reading, noise_variance=1e-4 * unit**2))
            while (fitted := agent.refit()) is not None:
                agent.tell(fitted)
        surface, scale = agent.stated
        found.append((scale.to_user(surface.mean) / unit, verdict(agent).probability))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-3)
    assert found[1][1] == pytest.approx(found[0][1], abs=0.02)


def test_a_wild_reading_that_is_left_out_does_not_widen_the_noise_of_its_neighbours():
    made = mission(EI(), Model(outliers="tested"), question=Optimum())
    made = replace(made, world=replace(WORLD, sensor=Sensor(0.05, noise_share=0.08)))
    means = []
    for wild in (None, 1e7):
        agent, rng = fieldbo.Agent(made), np.random.default_rng(5)
        for k, site in enumerate(rng.permutation(WORLD.domain.sites)[:16]):
            readings = [1.3 + 0.05 * rng.standard_normal()]
            for reading in readings if k != 4 or wild is None else [wild, *readings]:
                order = agent.issue(Query(site))
                agent.tell(order.observed(np.array([reading]), noise_variance=0.0025))
                while (fitted := agent.refit()) is not None:
                    agent.tell(fitted)
        surface, scale = agent.stated
        means.append((scale.to_user(surface.mean), abs(scale.scale) * surface.sd))
    np.testing.assert_allclose(means[1], means[0], atol=0.1)
