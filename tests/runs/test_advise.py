"""Advice on a battery: fields drawn from the belief, the search, its check, and continuing it."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm
from small_files import mission_text, world_text
from waiting import SLOW_S, until

import fieldbo
from fieldbo.errors import InputError, counted
from fieldbo.mission.load import load_mission
from fieldbo.runs.advice import advise as module
from fieldbo.runs.advice.fields import FieldSource
from fieldbo.runs.advice.search import needed, quantile, share_interval, successes
from fieldbo.runs.advice.trial import in_field
from fieldbo.runs.runner import run

WORLD = world_text(
    ("x", 0, 10, 8), ("y", 0, 10, 8), title="a field of 64 sites", field=None, sensor={"noise_sd": 0.05}
)
SURVEYED = """[field]
kind = "table"
file = "survey.csv"
value = "value"
"""
DRAWN = SURVEYED + 'truth = "draw"\n'
MISSION = mission_text(
    threshold=0.2,
    battery=60,
    agent={"home": [0, 0], "reserve": 3, "margin": 0.1},
    policy={"kind": "straddle", "per_cost": True},
    model={"learn": False, "length_scales": [3, 3], "variance": 1, "mean": 0},
)
LEARNED = {"model": {"learn": True}}


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds a world without a field, a surveyed one, and a mission."""
    monkeypatch.chdir(tmp_path)
    for name in ("tiny", "surveyed"):
        Path("worlds", name).mkdir(parents=True)
    Path("worlds/tiny/world.toml").write_text(WORLD)
    Path("worlds/surveyed/world.toml").write_text(WORLD + SURVEYED)
    x, y = np.random.default_rng(3).uniform(0, 10, (2, 40)).round(2)
    values = (np.sin(x / 2) + np.cos(y / 3)).round(4)
    rows = "\n".join(f"{a},{b},{v}" for a, b, v in zip(x, y, values, strict=True))
    Path("worlds/surveyed/survey.csv").write_text("x,y,value\n" + rows + "\n")
    Path("m.toml").write_text(MISSION)


def advised(*arguments, **options):
    return fieldbo.advise("m.toml", *arguments, **{"out": "out", "fields": 10, **options})


# -- the fields ------------------------------------------------------------------------------------------


def test_fields_of_a_stated_model_have_its_mean_and_covariance():
    mission = load_mission("m.toml", {"model": {"mean": 2, "variance": 4}})
    drawn = np.array([draw.values for draw in FieldSource(mission, 0).draw(range(2000))])
    sites = mission.world.domain.sites
    kernel = mission.model.initial(mission.world.domain, mission.question).kernel
    assert np.abs(drawn.mean(axis=0) - 2).max() < 4 * 2 / np.sqrt(2000)
    assert np.abs(np.cov(drawn.T) - kernel(sites, sites)).max() < 0.6


def test_a_field_depends_on_its_number_and_the_seed_only():
    mission = load_mission("m.toml", LEARNED)
    source = FieldSource(mission, 0)
    assert np.array_equal(source.draw([3, 1])[1].values, FieldSource(mission, 0).draw([1])[0].values)
    assert not np.allclose(source.draw([1])[0].values, FieldSource(mission, 1).draw([1])[0].values)


@pytest.mark.parametrize("learn", [False, True])
def test_fields_pass_through_earlier_readings_and_differ_elsewhere(learn):
    x, y = np.meshgrid(np.linspace(0, 10, 8)[:4], np.linspace(0, 10, 8))
    values = np.sin(x / 2) + np.cos(y / 3)
    rows = zip(x.ravel(), y.ravel(), values.ravel(), strict=True)
    Path("earlier.csv").write_text(
        "x,y,value,noise_sd\n" + "".join(f"{a},{b},{v},0.01\n" for a, b, v in rows)
    )
    mission = load_mission("m.toml", {"prior": {"readings": "earlier.csv"}, "model": {"learn": learn}})
    source = FieldSource(mission, 0)
    drawn = np.array([draw.values for draw in source.draw(range(50))])
    domain = mission.world.domain
    at = [domain.nearest(np.array(site)) for site in zip(x.ravel(), y.ravel(), strict=True)]
    assert np.abs(drawn[:, at] - values.ravel()).max() < 0.06
    assert drawn[:, domain.nearest(np.array([10.0, 5.0]))].std() > 0.2
    assert "the posterior given 32 readings" in source.words
    lengths = {tuple(draw.hyperparameters["length_scales"]) for draw in source.draw(range(50))}
    assert (len(lengths) > 1) == learn


def test_fields_agree_with_the_survey_of_the_world_but_are_not_its_mean():
    mission = load_mission("m.toml", {"world": "surveyed", **LEARNED})
    source = FieldSource(mission, 0)
    fields = [draw.field(mission) for draw in source.draw(range(20))]
    survey = mission.world.field.readings
    read = np.array([field.values(survey.sites) for field in fields])
    assert np.sqrt(np.mean((read - survey.values) ** 2)) < 0.15
    mean = mission.world.truth(mission.world.domain.sites)
    spread = np.array([field.values(mission.world.domain.sites) for field in fields]).std(axis=0)
    assert spread.max() > 0.03
    assert all(np.abs(f.values(mission.world.domain.sites) - mean).max() > 0.01 for f in fields)
    assert any("survey" in note for note in source.notes)
    assert any('truth = "draw"' in note for note in source.notes)


def test_the_fields_of_a_surveyed_world_vary_around_the_fit_as_much_as_it_states():
    Path("worlds/surveyed/world.toml").write_text(WORLD + DRAWN)
    mission = load_mission("m.toml", {"world": "surveyed"})
    field, sites = mission.world.field, mission.world.domain.sites
    drawn = np.array([draw.values for draw in FieldSource(mission, 0).draw(range(400))])
    sd = np.sqrt(field.belief.variance(sites)) * field.scale.scale
    mean = field.scale.to_user(field.belief.mean(sites))
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * sd / np.sqrt(400)).all()
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.2)


EARLIER = "x,y,value,noise_sd\n0,10,3.0,0.05\n10,0,-2.0,0.05\n"


def _seven(number):
    """Return a number with the seven digits that the table of runs keeps."""
    return float(f"{number:.7g}")


@pytest.mark.parametrize("prior", [False, True])
def test_advise_and_run_state_the_same_for_the_same_draw_of_a_surveyed_world(prior):
    Path("worlds/surveyed/world.toml").write_text(WORLD + DRAWN)
    Path("earlier.csv").write_text(EARLIER)
    overrides = {"world": "surveyed", "seed": 5} | ({"prior": {"readings": "earlier.csv"}} if prior else {})
    trials = advised(battery=60, fields=3, overrides=overrides)["straddle"].trials
    for k, trial in enumerate(trials):
        alone = run(load_mission("m.toml", {**overrides, "draw": k, "seed": 5 + k}))
        assert (_seven(alone.f1), _seven(alone.cost)) == (trial.final, trial.costs[-1])
    assert len({trial.final for trial in trials}) > 1


def test_earlier_readings_move_the_fields_of_a_surveyed_world_but_its_own_survey_does_not():
    Path("worlds/surveyed/world.toml").write_text(WORLD + DRAWN)
    plain = load_mission("m.toml", {"world": "surveyed"}).world
    field, corners = plain.field, np.array([[0.0, 10.0], [10.0, 0.0]])
    sd = np.sqrt(field.belief.variance(corners)) * field.scale.scale
    read = field.scale.to_user(field.belief.mean(corners)) + np.array([3.0, -3.0]) * sd
    rows = zip(corners.tolist(), read, 0.05 * sd, strict=True)
    Path("earlier.csv").write_text(
        "x,y,value,noise_sd\n" + "".join(f"{x},{y},{value},{noise}\n" for (x, y), value, noise in rows)
    )
    moved = load_mission("m.toml", {"world": "surveyed", "prior": {"readings": "earlier.csv"}})
    assert (np.abs(moved.world.truth(corners) - read) < 0.3 * sd).all()
    assert (np.abs(plain.truth(corners) - read) > 0.5 * sd).all()
    assert "and 2 earlier readings" in FieldSource(moved, 0).words
    survey = {"readings": "worlds/surveyed/survey.csv", "noise_sd": 0.1, "age_days": 0}
    same = load_mission("m.toml", {"world": "surveyed", "prior": survey}).world
    sites = plain.domain.sites
    assert np.array_equal(same.truth(sites), plain.truth(sites))


def test_a_truth_that_is_drawn_needs_sites():
    box = 'kind = "box"\naxes = [{ name = "x", unit = "m", low = 0, high = 10 }]\n'
    text = (WORLD + DRAWN).replace(
        WORLD[WORLD.index("[domain]") :].partition("\n[cost]")[0], "[domain]\n" + box
    )
    Path("worlds/surveyed/world.toml").write_text(text)
    with pytest.raises(InputError, match="without sites"):
        load_mission("m.toml", {"world": "surveyed"})


def test_hyperparameters_to_learn_are_drawn_around_what_the_model_states():
    source = FieldSource(load_mission("m.toml", LEARNED), 0)
    lengths = np.array([draw.hyperparameters["length_scales"] for draw in source.draw(range(300))])
    assert np.median(lengths) == pytest.approx(3.0, rel=0.15)
    assert np.log(lengths).std() == pytest.approx(0.75, rel=0.15)
    assert "drawn for each field" in source.words


def test_defaults_of_the_model_are_pointed_out():
    mission = load_mission("m.toml", {"model": {"learn": True}})
    assert FieldSource(mission, 0).notes == ()
    Path("m.toml").write_text(MISSION.partition("[model]")[0])
    assert "length_scales or variance or mean" in FieldSource(load_mission("m.toml"), 0).notes[0]


def test_a_drawn_field_is_smooth_between_its_sites():
    mission = load_mission("m.toml")
    field = FieldSource(mission, 0).draw([0])[0].field(mission)
    line = np.column_stack([np.linspace(0, 10, 400), np.full(400, 5.0)])
    values = field.values(line)
    assert np.abs(np.diff(values)).max() < 0.1
    assert values[7] == field.values(line[7:8])[0]


def test_between_very_many_sites_the_nearest_ones_suffice(monkeypatch):
    mission = load_mission("m.toml")
    line = np.column_stack([np.linspace(0, 10, 100), np.full(100, 4.6)])
    (draw,) = FieldSource(mission, 0).draw([0])
    whole = draw.field(mission).values(line)
    for name, number in {"_WHOLE": 50, "_NEAR": 32}.items():
        monkeypatch.setattr(f"fieldbo.world.fields.gp_draw.{name}", number)
    field = draw.field(mission)
    np.testing.assert_allclose(field.values(line), whole, atol=0.02)
    assert field.values(line)[7] == field.values(line[7:8])[0]


def test_a_quantile_is_that_of_each_drawn_field():
    Path("worlds/tiny/world.toml").write_text(WORLD + '[field]\nkind = "gp-draw"\nlength_scales = [3, 3]\n')
    mission = load_mission("m.toml", {"question": {"threshold": {"quantile": 0.75}}})
    for draw in FieldSource(mission, 0).draw(range(3)):
        there = in_field(mission, draw, 60.0)
        assert np.mean(draw.values >= there.question.threshold) == 0.25


# -- the search ------------------------------------------------------------------------------------------


def scripted(seed, factor, log_sd=0.3):
    """Return a run function over log-normal needs; run as it is, a mission needs `factor` times more."""
    needs = np.random.default_rng(seed).lognormal(8.0, log_sd, 1000)

    def run(numbers, battery, until):
        times = 1.0 if until is not None else factor
        return [
            SimpleNamespace(
                final=float(needs[k] * times <= battery),
                need=lambda _, need=needs[k]: need if need <= battery else np.inf,
            )
            for k in numbers
        ]

    return run


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.4])
@pytest.mark.parametrize("probability", [0.5, 0.8, 0.9])
def test_the_battery_covers_new_fields_even_if_the_policy_needs_another_one_than_read_off(
    factor, probability
):
    answers = [needed(scripted(s, factor), 40, 0.9, probability, 8000.0) for s in range(60)]
    covered = np.array([norm.cdf(np.log(a.battery / factor), 8.0, 0.3) for a in answers])
    assert probability - 0.01 < covered.mean() < probability + 0.08
    assert all(successes(a.trials, 0.9) >= probability * 40 for a in answers)


def test_a_target_out_of_reach_is_reported_with_the_largest_battery():
    answer = needed(scripted(0, 1.0), 20, 0.9, 0.8, 200.0)
    assert answer.battery is None
    assert answer.largest == 8 * 200.0


def test_a_search_begins_again_with_twice_the_battery_where_the_first_is_too_small():
    answer = needed(scripted(0, 1.0), 20, 0.9, 0.5, 1000.0)
    assert 2000 < answer.battery < 4500


def test_the_interval_of_a_median_covers_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = [
        low <= 0.0 <= high for _, low, high in (quantile(rng.normal(size=40), 0.5) for _ in range(2000))
    ]
    assert 0.88 < np.mean(inside) < 0.96


def test_the_interval_of_a_share_covers_it_as_often_as_it_says():
    reached = np.random.default_rng(0).binomial(40, 0.8, 2000)
    inside = [low <= 0.8 <= high for low, high in (share_interval(int(k), 40) for k in reached)]
    assert np.mean(inside) > 0.9


# -- the advice ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_mission_run_as_it_is_reaches_the_target_with_the_battery_as_often_as_stated():
    advice = advised(0.85)
    policy = advice["straddle"]
    assert policy.enough
    assert policy.reached >= 0.8 * 10
    mission, source = load_mission("m.toml"), FieldSource(load_mission("m.toml"), 0)
    draws = source.draw(range(10, 20))
    results = [run(in_field(mission, draw, policy.battery)) for draw in draws]
    assert [r.f1 for r in results] == pytest.approx([t.final for t in policy.trials], rel=1e-6)
    assert all(r.cost <= policy.battery - 3 for r in results)


def test_a_need_includes_the_trip_home_the_margin_and_the_reserve():
    trials = advised(battery=60, fields=4)["straddle"].trials
    for trial in trials:
        assert (trial.needs[1:] >= trial.costs[1:] + 3 - 1e-6).all()
        assert trial.needs[-1] <= 60
        assert trial.needs[1] == pytest.approx(1.0 * 1.1 + 3)  # one reading at home


def test_advice_on_a_battery_states_quantiles_at_its_fractions_and_runs_every_policy_in_the_same_fields():
    advice = advised(battery=40, fields=6, policies=["straddle", "random"])
    first, second = advice.policies
    assert [t.share for t in first.trials] == [t.share for t in second.trials]
    scores = first.scores(40 * np.array([0.25, 0.5, 0.75, 1.0]))
    assert (np.diff(scores, axis=0) >= 0).all()
    assert scores[2, 0] < scores[2, -1]
    finals = np.quantile([t.final for t in first.trials], 0.5)
    assert scores[2, -1] == pytest.approx(finals)
    plain = json.loads(Path("out/advice.json").read_text())
    assert plain["policies"]["random"]["battery"] == 40


def test_settings_of_policies_can_be_overridden_for_all_of_them():
    near = advised(
        battery=30, fields=4, policies=["gchk"], overrides={"policy": {"per_cost": True}}, out="near"
    )
    far = advised(battery=30, fields=4, policies=["gchk"], out="far")
    assert [len(t.costs) for t in near["gchk"].trials] > [len(t.costs) for t in far["gchk"].trials]


def test_a_target_with_a_battery_gives_its_probability_without_a_search():
    policy = advised(0.85, battery=60)["straddle"]
    assert policy.needed is None
    assert policy.battery == 60
    assert policy.reached == sum(t.final >= 0.85 for t in policy.trials)


def test_the_regret_of_an_optimum_is_in_the_unit_of_the_values():
    advice = advised(
        battery=60, overrides={"question": {"kind": "optimum"}, "policy": {"kind": "ei"}, "seed": 2}
    )
    regrets = advice.policies[0].scores(np.array([15.0, 60.0]))
    assert advice.score.name == "regret"
    assert (regrets >= 0).all()
    assert regrets[2, 1] < regrets[2, 0]
    assert "regret" in str(advice)


def test_a_battery_may_have_a_unit():
    assert advised(battery="1 min", fields=2)["straddle"].battery == 60


def test_a_target_that_needs_no_map_is_pointed_out():
    easy = advised(battery=20, fields=4, target=0.6, overrides={"question": {"threshold": -0.5}})
    assert "without any reading" in str(easy)
    assert "without any reading" not in str(advised(battery=20, fields=4, target=0.95, out="other"))


def test_earlier_readings_may_reach_the_target_alone():
    rows = "\n".join(f"{x},{y},{x / 5 - 1}" for x in range(11) for y in range(11))
    Path("earlier.csv").write_text(f"x,y,value\n{rows}\n")
    known = {"prior": {"readings": "earlier.csv", "age_days": 0}, "stop": {"expected_f1": 0.05}}
    advice = advised(battery=20, fields=5, target=0.5, overrides={**known, "initial": {"count": 0}})
    assert advice.policies[0].reached == 5
    assert advice.policies[0].scores(np.array([1.0]))[2, 0] > 0.8
    searched = advised(
        target=0.5, probability=0.5, fields=5, overrides={**known, "initial": {"count": 0}}, out="b"
    )
    assert searched.policies[0].enough
    # The score is that of the earlier readings until the first new one.
    begun = advised(battery=20, overrides={"prior": known["prior"]}, out="c", fields=3)
    assert begun.policies[0].scores(np.array([0.5]))[2, 0] > 0.8


def test_auto_stands_for_the_default_policy():
    assert [p.policy for p in advised(battery=60, fields=2, policies=["auto", "random"]).policies] == [
        "tour",
        "random",
    ]
    with pytest.raises(InputError, match="tour is given twice"):
        advised(battery=60, policies=["tour", "auto"], out="other")


def test_fields_in_which_the_question_is_trivial_are_pointed_out():
    assert "trivial" in str(advised(battery=20, fields=4, overrides={"question": {"threshold": 9.0}}))
    assert "trivial" not in str(advised(battery=20, fields=4, out="other"))


@pytest.mark.slow
def test_a_target_that_no_battery_reaches_is_reported_as_more_than_the_largest():
    advice = advised(1.0, overrides={"policy": {"kind": "random"}, "agent": {"max_steps": 6}})
    assert not advice["random"].enough
    assert "more than 480" in str(advice)
    assert "max_steps = 6" in str(advice)


@pytest.mark.slow
def test_several_jobs_give_the_same_advice(monkeypatch):
    monkeypatch.setattr("fieldbo.runs.advice.trial._WORTH_WORKERS_S", 0.0)
    assert str(advised(0.8, fields=5, jobs=2, out="two")) == str(advised(0.8, fields=5, out="one"))


def test_a_share_of_the_maximum_is_asked_of_fields_above_zero_only():
    Path("m.toml").write_text(MISSION.replace("threshold = 0.2", "threshold = { of_maximum = 0.8 }"))
    advice = advised(battery=30, overrides={"model": {"mean": -2}})
    assert "were drawn again" in str(advice)
    assert all(0 < t.share < 1 for t in advice.policies[0].trials)


def test_readings_on_the_way_are_taken_between_the_sites():
    text = WORLD.replace("noise_sd = 0.05", "noise_sd = 0.05\nalong = { every_m = 1 }")
    text = text.replace("sampling = 1", "sampling = 1\nrate = 1")
    Path("worlds/tiny/world.toml").write_text(text)
    more = advised(battery=30, fields=3, out="along")["straddle"]
    assert all(t.final > 0 for t in more.trials)


# -- continuing ------------------------------------------------------------------------------------------


def rows_of(folder):
    with Path(folder, "runs.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


@pytest.mark.slow
def test_finished_advice_repeats_no_run_and_can_be_extended(monkeypatch):
    first = str(advised(0.8))
    with monkeypatch.context() as patched:
        patched.setattr("fieldbo.runs.advice.trial.try_task", None)
        assert str(advised(0.8)) == first
    before = rows_of("out")
    advised(0.8, probability=0.5)
    assert rows_of("out")[: len(before)] == before


@pytest.mark.slow
def test_killed_advice_continues_to_the_answer_of_that_without_interruption():
    whole = str(advised(0.8, out="whole"))
    command = [sys.executable, "-m", "fieldbo", "advise", "m.toml", "--target", "0.8", "--fields", "10"]
    process = subprocess.Popen([*command, "--jobs", "2", "--out", "cut"], stdout=subprocess.DEVNULL)
    file = Path("cut/runs.csv")
    until(lambda: file.exists() and file.read_bytes().count(b"\n") > 3)
    process.kill()
    process.wait()
    with file.open("ab") as table:
        table.write(b"straddle,7,60.0,0.8,abc")  # a line that was being written
    done = len(rows_of("cut")) - 1
    assert str(advised(0.8, out="cut")) == whole
    assert len(rows_of("cut")) == len(rows_of("whole")) >= done
    key = ("policy", "field", "battery", "until")
    in_order = [sorted(tuple(r.values()) for r in rows_of(folder)) for folder in ("cut", "whole")]
    assert in_order[0] == in_order[1]
    assert len({tuple(r[k] for k in key) for r in rows_of("cut")}) == len(rows_of("cut"))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_says_how_to_continue():
    command = [sys.executable, "-m", "fieldbo", "advise", "m.toml", "--fields", "500", "--out", "cut"]
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code += "; from fieldbo.cli import main; main()"
    command = [sys.executable, "-c", code, *command[3:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        file = Path("cut/runs.csv")
        until(lambda: file.exists() and file.read_bytes().count(b"\n") > 3)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=SLOW_S)
    assert process.returncode == 130
    assert "Repeat the command to continue in cut" in text


def test_a_folder_of_other_settings_is_rejected_and_stays_as_it_is():
    advised(battery=30, fields=2)
    before = Path("out/runs.csv").read_bytes()
    for options in (
        {"seed": 1},
        {"overrides": {"model": {"variance": 2}}},
        {"policies": ["random"], "seed": 3},
    ):
        with pytest.raises(InputError, match="different settings"):
            advised(battery=30, fields=2, **options)
    Path("runs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a table of this command"):
        advised(battery=30, fields=2, out=".")
    assert Path("out/runs.csv").read_bytes() == before


def test_advice_that_takes_long_says_so_before_most_runs(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 1e-6)
    estimates = []
    with pytest.raises(InputError, match="this would take about") as error:
        advised(battery=20, fields=5, on_estimate=estimates.append)
    assert "--yes" in error.value.fix
    assert not estimates
    assert len(rows_of("out")) == 3
    assert advised(battery=20, fields=5, patient=True, on_estimate=estimates.append).policies[0].trials
    assert len(estimates) == 1
    estimates.clear()
    advised(battery=20, fields=5, on_estimate=estimates.append)
    assert not estimates  # nothing is left to do
    with pytest.raises(InputError, match="this would take about"):
        advised(battery=15, fields=5)  # runs with another battery do not count


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"target": 1.2}, "the target is 1.2"),
        ({"target": 0.0}, "the target is 0"),
        ({"target": 0.9, "probability": 1.0}, "the probability is 1"),
        ({"target": 0.9, "probability": 0.95}, "10 fields are too few"),
        ({"target": 0.9, "overrides": {"question": {"kind": "optimum"}, "policy": {"kind": "ei"}}}, "regret"),
        ({"policies": ["tuor"]}, "tuor"),
        ({"policies": ["random", "random"]}, "given twice"),
        ({"battery": 4.05}, "pays for no reading"),
        ({"battery": 5.2, "overrides": {"agent": {"start": [1.5, 0]}}}, "pays for no reading"),
        ({"overrides": {"agent": {"start": [99, 0]}}}, "start"),
        ({"fields": 0}, "fields = 0"),
        ({"jobs": 0}, "jobs = 0"),
    ],
)
def test_bad_input_is_rejected_before_any_run(arguments, problem):
    with pytest.raises(InputError) as error:
        advised(**arguments)
    assert problem in str(error.value)
    assert not Path("out/runs.csv").exists()


@pytest.mark.parametrize("mission", ["cell-pipeline", "cell-airfoil", "cell-growth"])
def test_factory_cells_are_not_supported(mission):
    with pytest.raises(InputError, match="advice is not supported"):
        fieldbo.advise(mission, out="out")


# -- several batteries -------------------------------------------------------------------------------------

SEVERAL = {"agent": {"battery": 16, "recharge": {"takes_s": 2, "batteries": 2}}}


def test_the_number_of_batteries_is_searched_for_in_whole_ones():
    tried = []
    scripted_run = scripted(0, 1.0)

    def run_in(numbers, battery, until):
        tried.append(battery)
        return scripted_run(numbers, battery, until)

    answer = needed(run_in, 40, 0.9, 0.8, 2000.0, each=1000.0)
    assert all(battery % 1000.0 == 0 for battery in tried)
    assert answer.battery % 1000.0 == 0
    assert successes(answer.trials, 0.9) >= 32
    fewer = scripted_run(range(40, 80), answer.battery - 1000.0, None)
    assert successes(fewer, 0.9) < 32


def test_advice_on_several_batteries_counts_them_and_their_changes():
    larger = {"agent": {**SEVERAL["agent"], "battery": 32}}
    advice = advised(0.6, 0.5, fields=4, overrides=larger)
    policy = advice["straddle"]
    assert policy.enough
    assert policy.battery == 32 * policy.batteries
    plain = json.loads(Path("out/advice.json").read_text())["policies"]["straddle"]
    assert (plain["batteries"], plain["changes"]) == (policy.batteries, policy.batteries - 1)
    assert plain["each"] == 32
    assert "batteries (of 32.0 " in str(advice)
    assert f"{policy.batteries}, {counted(policy.batteries - 1, 'change')}" in str(advice)
    for trial in policy.trials:
        assert set(trial.needs[1:] % 32) == {0.0}


def test_what_to_expect_of_the_batteries_that_a_mission_has():
    advice = advised(fields=2, overrides=SEVERAL)
    assert advice["straddle"].batteries == 2
    assert "2 x 16.0 " in str(advice)
    more = {"agent": {**SEVERAL["agent"], "recharge": {"takes_s": 2, "batteries": 3}}}
    again = advised(fields=2, overrides=more)  # in the same folder
    assert again["straddle"].batteries == 3
    assert max(t.costs[-1] for t in again["straddle"].trials) > 32 - 6
    with pytest.raises(InputError, match="different"):
        advised(fields=2, overrides={"agent": {**SEVERAL["agent"], "battery": 17}})


# -- the command -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_prints_the_advice_and_draws_its_picture():
    command = [sys.executable, "-m", "fieldbo", "advise", "m.toml", "--target", "0.8", "--fields", "5"]
    done = subprocess.run([*command, "--format", "svg"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "this takes about" in done.stdout
    assert "battery to reach F1 0.8 with probability 0.8" in done.stdout
    folder = Path("runs/m-advice")
    assert {f.name for f in folder.iterdir()} >= {"runs.csv", "advice.json", "advice.svg"}


# -- a table that is not whole ---------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["cost", "need", "score"])
@pytest.mark.parametrize("kept", [0, 1])
def test_a_line_with_too_few_numbers_is_named(column, kept):
    advised(battery=30, fields=2)
    with Path("out/runs.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    rows[0][column] = " ".join(rows[0][column].split()[:kept])
    with Path("out/runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(InputError, match="was not written by this command") as error:
        advised(battery=30, fields=2)
    assert "line 2" in str(error.value.where)


def test_settings_are_for_the_policies_that_are_asked_about():
    overrides = {"policy": {"per_cost": True}}
    advice = advised(battery=30, fields=2, policies=["straddle", "truvar"], overrides=overrides)
    assert {p.policy for p in advice.policies} == {"straddle", "truvar"}


def test_no_fewer_fields_are_suggested_than_a_search_needs(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 1e-6)
    with pytest.raises(InputError, match="this would take about") as error:
        advised(0.9)
    assert "--fields" not in str(error.value.fix)
