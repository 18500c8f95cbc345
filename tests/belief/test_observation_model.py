"""Readings that are not normal in model units: noise under a log, in proportion to the value, and limits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, truncnorm
from tiers import swept

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.marginal_likelihood import Likelihood
from fieldbo.belief.model import Model
from fieldbo.belief.observation_model import tilted_by_exponential, tilted_by_limit
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.belief.readings import Data
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.messages import Query
from fieldbo.policies.baselines import Random
from fieldbo.results.contradictions import contradictions
from fieldbo.testing import small_mission, small_world
from fieldbo.vehicles.base import Simulated
from fieldbo.vehicles.by_hand import ByHand

LINE = Domain.grid([Axis("x", "m", 0.0, 1.0)], (41,))
LOG = Model(transform="log", learn=False, length_scales=(0.3,), variance=1.0, mean=1.0)


# -- moments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "s2", "value", "variance"),
    [(0.0, 1.0, 1.0, 0.16), (0.5, 0.3, -0.4, 0.04), (-1.0, 4.0, 0.01, 1e-8), (2.0, 0.01, 3.0, 9.0)],
)
def test_moments_given_a_noisy_exponential_are_those_of_a_fine_sum(m, s2, value, variance):
    g = np.linspace(m - 12 * np.sqrt(s2), m + 12 * np.sqrt(s2), 2_000_001)
    log_density = -0.5 * ((g - m) ** 2 / s2 + (value - np.exp(g)) ** 2 / variance)
    weights = np.exp(log_density - log_density.max())
    mean = np.average(g, weights=weights)
    spread = np.average((g - mean) ** 2, weights=weights)

    moments = tilted_by_exponential(
        *[(np.array([m]), np.array([s2]))], np.array([value]), np.array([variance])
    )

    assert moments[0][0] == pytest.approx(mean, abs=1e-4 * np.sqrt(spread))
    assert moments[1][0] == pytest.approx(spread, rel=1e-3)


def test_moments_of_a_value_far_below_its_prediction_are_those_of_a_fine_sum():
    m, variance = np.log(1e5), 1e-6
    g = np.linspace(m - 40.0, m + 5.0, 2_000_001)
    log_density = -0.5 * ((g - m) ** 2 + np.exp(2 * g) / variance)
    weights = np.exp(log_density - log_density.max())
    mean = np.average(g, weights=weights)

    found, spread = tilted_by_exponential((np.array([m]), np.ones(1)), np.zeros(1), np.array([variance]))

    assert found[0] == pytest.approx(mean, abs=1e-3)
    assert spread[0] == pytest.approx(np.average((g - mean) ** 2, weights=weights), rel=1e-2)


def test_moments_below_a_limit_are_those_of_a_truncated_normal():
    limits = np.array([-3.0, 0.0, 1.5, 40.0])
    exact = truncnorm(-np.inf, (limits - 1.0) / 2.0, loc=1.0, scale=2.0)

    mean, variance = tilted_by_limit((np.full(4, 1.0), np.full(4, 4.0)), limits, np.zeros(4))

    np.testing.assert_allclose(mean, exact.mean(), rtol=1e-8)
    np.testing.assert_allclose(variance, exact.var(), rtol=1e-6)


# -- a log, with noise in the unit of the values ---------------------------------------------------------


def test_two_noisy_readings_under_a_log_give_nearly_the_exact_posterior():
    sites, values, noise = np.array([[0.0], [0.2]]), np.array([0.9, 0.1]), np.full(2, 0.3**2)
    h = LOG.initial(LINE, Optimum())
    K = h.kernel(sites, sites)
    g = np.stack(np.meshgrid(*[np.linspace(-7, 4, 801)] * 2, indexing="ij"), axis=-1)
    exponent = np.einsum("...i,ij,...j", g, np.linalg.inv(K), g) + np.sum(
        (values - np.exp(g)) ** 2 / noise, -1
    )
    weights = np.exp(-0.5 * exponent)
    exact = np.array([np.average(g[..., k], weights=weights) for k in range(2)])

    y, v = LOG.normal_readings(h, Data(sites, values, noise))

    belief = Belief(h.kernel).condition_on(sites, y, v)
    np.testing.assert_allclose(belief.mean(sites), exact, atol=0.02)


def errors_of_the_log(noise_at, sd=0.4, fields=10, n=30):
    """Return the mean error of the log over a line in each of some random fields of median 1."""
    model, errors = replace(LOG, noise_at=noise_at), []
    h = model.initial(LINE, Optimum())
    for seed in range(fields):
        rng = np.random.default_rng(seed)
        sites = rng.uniform(size=(n, 1))
        both = np.concatenate([LINE.sites, sites])
        covariance = Matern52([0.3])(both, both) + 1e-8 * np.eye(len(both))
        field = np.linalg.cholesky(covariance) @ rng.standard_normal(len(both))
        values = np.exp(field[41:]) + sd * rng.standard_normal(n)
        good = model.observation_model(Sensor()).usable(h.scale, values, np.full(n, sd**2))
        y, v = model.normal_readings(h, Data(sites, values, np.full(n, sd**2)).only(good))
        errors.append(np.mean(Belief(h.kernel).condition_on(sites[good], y, v).mean(LINE.sites) - field[:41]))
    return np.array(errors)


def test_noise_under_a_log_does_not_bias_the_map():
    assert abs(errors_of_the_log("prediction").mean()) < 0.06
    assert errors_of_the_log("reading").mean() > 0.15


def log_mission(**model):
    """Return a mission on a line of values near 1, read with a noise of 0.4."""
    world = small_world((11,), noise_sd=0.4)
    model = Model(transform="log", mean=1.0, **model)
    return replace(small_mission(Random(), world=world, battery=1e6), model=model)


def test_a_reading_below_zero_counts_as_a_low_one():
    the_mission, expected = log_mission(learn=False, length_scales=(3.0,)), []
    for value in (0.5, -0.3):
        agent = Agent(the_mission)
        agent.tell(agent.ask().observed(value, noise_variance=0.16, position=[5.0]))
        assert (agent.left_out, agent.readings) == (0, 1)
        expected.append(agent.surface.mean[5])

    assert expected[1] < expected[0] < 0.0


def test_without_noise_a_reading_below_zero_has_no_logarithm():
    agent = Agent(log_mission(learn=False, length_scales=(3.0,)))
    agent.tell(agent.ask().observed(-0.3, noise_variance=0.0, position=[5.0]))
    assert (agent.left_out, agent.readings) == (1, 0)


@pytest.mark.parametrize("learn", [False, {"every": 5}])
def test_a_belief_learnt_reading_by_reading_is_nearly_that_of_all_readings_at_once(learn):
    the_mission = log_mission(learn=learn, length_scales=(3.0,))
    agent, vehicle = Agent(the_mission), Simulated(the_mission)
    for _ in range(23):
        vehicle.send(agent.ask())
        (event,) = vehicle.events(0.0)
        agent.tell(replace(event, values=np.exp(event.values)))
    step_by_step = agent.surface.mean.copy()
    agent.online_model._build(agent.hyperparameters)

    np.testing.assert_allclose(step_by_step, agent.surface.mean, atol=0.1)


def test_results_are_stated_from_readings_below_zero_and_the_average_agrees_with_the_fit():
    agent = Agent(log_mission(length_scales=(3.0,)))
    values = [0.2, 1.0, -0.1, 2.5, 0.4, 1.3, 0.9, 0.1, 0.7, 1.1, -0.2, 0.6]
    for k, value in enumerate(values):
        agent.tell(agent.ask().observed(value, noise_variance=0.16, position=[float(k % 11)]))
        surface, scale = agent.stated
        median = scale.to_user(surface.mean)
        assert np.isfinite(median).all()
    by_fit = agent.hyperparameters.scale.to_user(agent.surface.mean)

    assert agent.online_model.averages
    assert np.abs(np.log(median / by_fit)).max() < 0.5


def test_a_corrected_reading_under_a_log_leads_to_the_belief_of_the_right_one():
    values, beliefs = [0.2, 1.0, -0.1, 2.5, 0.4, 1.3, 0.9, 0.1, 0.7, 1.1, -0.2, 0.6, 1.4, 0.8], []
    for wrong in (False, True):
        agent = Agent(log_mission(length_scales=(3.0,)))
        for k, value in enumerate(values):
            told = 9.0 if wrong and k == 6 else value
            agent.tell(agent.ask().observed(told, noise_variance=0.16, position=[float(k % 11)]))
        if wrong:
            agent.correct(6, values[6])
        while (fit := agent.refit()) is not None:
            agent.tell(fit)
        beliefs.append(agent.surface.mean.tobytes())

    assert beliefs[0] == beliefs[1]


def test_a_fit_to_noisy_readings_under_a_log_does_not_inflate_the_field():
    rng = np.random.default_rng(1)
    sites = rng.uniform(size=(60, 1))
    values = 0.8 + 0.3 * np.sin(6 * sites[:, 0]) + 0.4 * rng.standard_normal(60)
    model = Model(transform="log")

    h = model.fitted(
        model.initial(LINE, Optimum()),
        LINE,
        Optimum(),
        Data(sites, values, np.full(60, 0.16)),
        np.random.default_rng(0),
    )

    assert (values < 0).any()
    assert h.kernel.variance * h.scale.scale**2 < 1.0
    assert -0.5 < h.scale.shift < 0.0


def test_learned_noise_under_a_log_is_a_factor_on_the_declared_noise():
    rng = np.random.default_rng(2)
    sites = rng.uniform(size=(80, 1))
    values = np.exp(np.sin(6 * sites[:, 0])) + 0.2 * rng.standard_normal(80)
    model = Model(transform="log", noise="learned")

    h = model.fitted(
        model.initial(LINE, Optimum()),
        LINE,
        Optimum(),
        Data(sites, values, np.full(80, 0.1**2)),
        np.random.default_rng(0),
    )

    assert 2.0 < h.noise_factor < 8.0  # the noise variance is four times the declared one


def test_a_run_begun_by_an_earlier_version_keeps_its_rule(tmp_path):
    from fieldbo.runs.folder import begin
    from fieldbo.runs.replay import mission_of

    _, record = begin(fieldbo.load_mission("lake-level-set"), tmp_path / "run")
    with record:
        assert mission_of(record).model.noise_at == "prediction"
        del record.description["model"]["noise_at"]
        assert mission_of(record).model.noise_at == "reading"


# -- limits of detection ---------------------------------------------------------------------------------


def test_a_reading_below_the_limit_gives_the_belief_of_a_truncated_normal():
    model = Model(learn=False, length_scales=(0.3,), variance=4.0, mean=1.0)
    for goal, question in (("maximise", Optimum()), ("minimise", Optimum("minimise"))):
        h = model.initial(LINE, question)
        sensor = Sensor(below=0.2)
        y, v = model.normal_readings(
            h, Data(np.array([[0.5]]), np.array([0.2]), np.array([0.0]), sensor=sensor)
        )
        belief = Belief(h.kernel).condition_on([[0.5]], y, v)
        mean, sd = h.scale.moments(belief.mean([[0.5]]), belief.variance([[0.5]]))
        exact = truncnorm(-np.inf, (0.2 - 1.0) / 2.0, loc=1.0, scale=2.0)

        assert (mean[0], sd[0]) == pytest.approx((exact.mean(), exact.std()), rel=1e-3), goal


def limited_mission(below=0.5, **model):
    """Return a mission over hills that a sensor sees only above its limit."""
    world = small_world((11,), noise_sd=0.05)
    world = replace(world, sensor=replace(world.sensor, below=below))
    the_model = Model(learn=False, length_scales=(3.0,), mean=0.5, **model)
    return replace(small_mission(Random(), world=world, battery=1e6), model=the_model)


def seen(the_mission, readings=25):
    """Return the agent after simulated readings."""
    agent, vehicle = Agent(the_mission), Simulated(the_mission)
    for _ in range(readings):
        vehicle.send(agent.ask())
        agent.tell(vehicle.events(0.0)[0])
    return agent


def test_readings_at_the_limit_do_not_pull_the_map_to_the_limit():
    censored = seen(limited_mission())
    values = np.concatenate([event.values for event in censored.history])
    truth = censored.mission.world.truth(censored.domain.sites)
    low = truth < 0.0

    assert (values == 0.5).any()
    assert values.min() == 0.5
    assert (censored.surface.mean[low] + 0.5).max() < 0.5
    assert censored.left_out == 0


@pytest.mark.each_choice
@pytest.mark.parametrize("outliers", ["kept", "tested"])
@pytest.mark.parametrize("typo", [1e8, 1e16, 1e30])
def test_an_absurd_reading_beside_censored_ones_can_be_modelled_and_corrected(typo, outliers):
    agent = Agent(replace(limited_mission(), model=Model(outliers=outliers)))
    for value in (0.9, 0.3, 0.5, typo, 1.1, 0.2, 0.7):
        agent.tell(agent.ask().observed(value, noise_variance=0.0025))
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
        assert np.isfinite(agent.stated.surface.mean).all()
    agent.tell(agent.correction(3, 0.8))
    assert np.abs(agent.surface.mean).max() < 5.0


@pytest.mark.parametrize("noise", [0.0, 1e-6])
@pytest.mark.parametrize("model", [Model(), Model(learn=False, length_scales=(2.0, 2.0), mean=0.0)])
def test_exact_readings_at_a_limit_may_repeat_and_contradict_others(model, noise):
    world = small_world((6, 5), noise_sd=noise)
    world = replace(world, sensor=Sensor(noise, below=0.1))
    agent = Agent(replace(small_mission(Random(), world=world, battery=1e6), model=model))
    rng, sites = np.random.default_rng(0), world.domain.sites
    read = [(k, 0.2 + abs(rng.standard_normal())) for k in rng.permutation(len(sites))[:10]]
    again = [(read[0][0], 0.1), (read[1][0], 0.1), (read[0][0], 0.1), read[0], *3 * [(read[2][0], 0.1)]]
    for k, value in read + again:
        query = agent.issue(Query(sites[k]))
        agent.tell(query.observed(value, noise_variance=noise**2))
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
        assert np.isfinite(agent.stated.surface.mean).all()


def hidden(below, unit=1.0, question=None, **model):
    """Return an agent with 35 readings of a field of which only what exceeds a limit can be seen."""
    made = small_mission(Random(), world=small_world((12, 10)), battery=1e4, home=False)
    sensor = Sensor(noise_sd=0.05 * unit, below=below * unit)
    world = replace(made.world, sensor=sensor)
    asked = LevelSet(unit) if question is None else question
    agent = Agent(replace(made, world=world, question=asked, model=Model(**model)))
    rng, sites = np.random.default_rng(0), world.domain.sites
    for k in rng.permutation(len(sites))[:35]:
        value = 1.2 + np.sin(sites[k, 0] / 2) + 0.05 * rng.standard_normal()
        query = agent.issue(Query(sites[k]))
        agent.tell(query.observed(unit * max(value, below), noise_variance=(0.05 * unit) ** 2))
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
    return agent


@pytest.mark.parametrize("unit", swept([1e-3, 1e3], [1e3]))
def test_a_belief_from_censored_readings_does_not_depend_on_their_unit(unit):
    (one, one_scale), (other, other_scale) = hidden(0.9).stated, hidden(0.9, unit).stated
    np.testing.assert_allclose(
        other_scale.to_user(other.mean) / unit, one_scale.to_user(one.mean), rtol=0, atol=2e-3
    )


@pytest.mark.parametrize("transform", ["none", "log"])
@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_readings_that_are_all_below_the_limit_do_not_make_the_belief_sure(transform, goal):
    agent = hidden(4.0, question=Optimum(goal), transform=transform)
    value = fieldbo.Result.of(agent).confidence.value
    assert value.high - value.low > 1.0


@pytest.mark.parametrize("transform", ["none", "log"])
def test_the_side_of_a_threshold_below_the_limit_stays_open(transform):
    agent = hidden(4.0, transform=transform)
    share = fieldbo.Result.of(agent).confidence.share
    assert share.high - share.low > 0.4
    assert any("lies below the sensor's limit of detection" in warning for warning in agent.warnings)


def test_censored_readings_do_not_pull_a_learned_noise():
    agent = hidden(1.0, noise="learned")
    h = agent.hyperparameters
    assert 0.2 < h.noise_variance * h.scale.scale**2 / 0.05**2 < 5.0


def test_the_gradient_with_fixed_variances_is_that_of_differences():
    rng = np.random.default_rng(0)
    sites, values = rng.random((9, 1)), rng.standard_normal(9)
    relative, fixed = np.where(np.arange(9) < 4, 0.0, 1.5), np.where(np.arange(9) < 4, 0.7, 0.0)
    likelihood = Likelihood(Matern52([0.3]), sites, values, relative=relative, fixed=fixed)
    theta = np.log([0.2, 1.3, 0.1])
    value, gradient = likelihood(theta)
    C = Matern52([0.2], 1.3)(sites, sites) + np.diag(0.1 * relative + fixed)
    assert value == pytest.approx(multivariate_normal(np.zeros(9), C).logpdf(values))
    steps = 1e-5 * np.eye(3)
    differences = [(likelihood.value(theta + s) - likelihood.value(theta - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)


def test_a_learned_noise_under_a_log_survives_an_exact_reading_before_one_below_zero():
    made = small_mission(Random(), world=small_world((12, 10)), battery=1e4, home=False)
    model = Model(transform="log", noise="learned")
    agent = Agent(replace(made, model=model, question=LevelSet(0.3)))
    values, variances = [0.2, 0.25, 0.1, 0.3, 0.15, 0.22, -0.05], [0.0] + [0.01] * 6
    for k, (value, variance) in enumerate(zip(values, variances, strict=True)):
        query = agent.issue(Query(agent.domain.sites[7 * k]))
        agent.tell(query.observed(value, noise_variance=variance))
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
    assert agent.readings == 7
    assert np.isfinite(agent.stated.surface.mean).all()


def test_the_table_says_which_readings_are_censored():
    result = fieldbo.Result.of(seen(limited_mission(), 8))
    lines = result.tables()["observations.csv"].decode().splitlines()
    header, *rows = [line.split(",") for line in lines]
    at = header.index("censored")

    assert header[at - 2] == "value"
    assert [row[at] == "1" for row in rows] == [float(row[at - 2]) <= 0.5 for row in rows]
    assert {row[at] for row in rows} == {"0", "1"}


def test_a_limit_above_all_readings_is_said():
    warnings = seen(limited_mission(below=9.0), 4).warnings
    assert any("no reading exceeds the limit of detection, 9 m" in text for text in warnings)
    assert not any("no reading exceeds" in text for text in seen(limited_mission(), 8).warnings)


@pytest.mark.parametrize(
    ("threshold", "below", "values", "note"),
    [
        (5.0, 20.0, [20.0, 3.0], None),
        (5.0, 20.0, [20.0, 30.0], None),
        (5.0, 0.1, [0.1, 2.3, 0.0], "the threshold 5 lies above all readings, at most 0.1 to 2.3 m"),
        (5.0, 0.1, [0.1, 0.1], "the threshold 5 lies above all readings, at most 0.1 m"),
        (0.05, 0.1, [0.1, 0.02], None),
        (0.05, None, [0.1, 2.3], "the threshold 0.05 lies below all readings, 0.1 to 2.3 m"),
    ],
)
def test_a_reading_at_the_limit_never_lies_above_a_threshold(threshold, below, values, note):
    the_mission = replace(limited_mission(below=below), question=LevelSet(threshold))
    agent = Agent(the_mission)
    for value in values:
        agent.tell(agent.ask().observed(value, noise_variance=1e-4))
    notes = [n for n in fieldbo.Result.of(agent).notes if "all readings" in n]
    assert notes == ([] if note is None else [note])


def test_the_range_of_the_other_readings_says_that_some_are_below_the_limit():
    agent = Agent(limited_mission())
    for value in (0.5, 0.4, 0.9, 1e4, 0.7, 0.8):
        agent.tell(agent.ask().observed(value, noise_variance=1e-4))
    (note,) = [n for n in fieldbo.Result.of(agent).notes if "so far away" in n]
    assert "is 1e+04; all others are at most 0.5 to 0.9 m." in note


def test_a_limit_without_a_logarithm_is_rejected():
    with pytest.raises(fieldbo.InputError, match=r"limit of detection is 0, .* logarithm"):
        limited_mission(below=0.0, transform="log")


def typed(the_mission, *answers):
    """Return the event of an order by hand, and what was printed."""
    lines, printed = iter(answers), []
    vehicle = ByHand(the_mission, read=lambda prompt: next(lines), write=printed.append)
    vehicle.send(Agent(the_mission).ask())
    return vehicle.events(1.0)[0], printed


def test_by_hand_a_reading_below_the_limit_is_typed_as_such():
    event, _ = typed(limited_mission(), "", "<0.5", "")
    assert event.values.tolist() == [0.5]

    event, printed = typed(limited_mission(), "", "<0.7", "help", "< 0,5", "")
    assert event.values.tolist() == [0.5]
    assert any("the limit of detection is 0.5" in line for line in printed)
    assert any("<0.5" in line and "limit of detection" in line for line in printed)


def test_by_hand_a_reading_below_a_limit_needs_one():
    event, printed = typed(small_mission(), "", "<0.5", "0.4", "")
    assert event.values.tolist() == [0.4]
    assert any("no limit of detection" in line and "set sensor.below" in line for line in printed)


# -- noise in proportion to the value --------------------------------------------------------------------


def test_a_simulated_sensor_draws_noise_in_proportion_to_the_value():
    sensor, rng = Sensor(0.3, noise_share=0.1), np.random.default_rng(0)
    readings = [sensor.read(np.array([4.0]), np.array([0.09]), rng)[0] for _ in range(4000)]

    assert np.std(readings) == pytest.approx(0.5, rel=0.05)
    assert sensor.varies


@pytest.mark.parametrize("transform", ["none", "log"])
def test_noise_in_proportion_is_that_of_the_predicted_value(transform):
    sensor = Sensor(noise_share=0.2)
    model = Model(transform=transform, learn=False, length_scales=(0.01,), variance=4.0, mean=10.0)
    h = model.initial(LINE, Optimum())
    # Nine readings at one place predict the tenth; they, too, are read with noise of 20% of about 10.
    sites = np.full((10, 1), 0.5)
    values = np.array([10.0, 10.4, 9.7, 10.2, 9.9, 10.1, 9.8, 10.3, 9.6, 6.0])

    _, v = model.normal_readings(h, Data(sites, values, np.zeros(10), sensor=sensor))

    sd = np.sqrt(v[-1]) * (1.0 if transform == "none" else 10.0)
    assert sd == pytest.approx(0.2 * np.mean(values), rel=0.12)  # not 0.2 * 6


def test_policies_see_more_noise_where_higher_values_are_expected():
    world = small_world((11,), noise_sd=0.05)
    world = replace(world, sensor=replace(world.sensor, noise_share=0.1))
    model = Model(learn=False, length_scales=(3.0,), mean=0.0)
    agent = seen(replace(small_mission(Random(), world=world, battery=1e6), model=model), 12)

    expected = agent.surface.mean
    np.testing.assert_allclose(agent.online_model.noise(), 0.05**2 + (0.1 * expected) ** 2)


@pytest.mark.parametrize(
    ("sensor", "values", "contradict"),
    [
        (Sensor(0.1), (20.0, 22.0), True),
        (Sensor(0.1, noise_share=0.05), (20.0, 22.0), False),
        (Sensor(0.1, noise_share=0.05), (2.0, 4.0), True),
        (Sensor(0.0, below=0.5), (0.2, 0.4), False),
    ],
)
def test_readings_of_one_place_contradict_each_other_beyond_the_noise_of_their_values(
    sensor, values, contradict
):
    read = [
        Query([5.0], id=f"m/{k}", expected_cost=1.0).observed(value, noise_variance=sensor.noise_sd**2)
        for k, value in enumerate(values)
    ]
    assert bool(contradictions(read, LINE, sensor)) == contradict
