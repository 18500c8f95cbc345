"""Missions that begin with earlier readings: what the agent knows, and what the run folder holds."""

from __future__ import annotations

import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_files import mission_text, world_text
from small_runs import sketch
from tiers import swept
from working_folder import edit, everything, write

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.errors import InputError
from fieldbo.messages import Fitted, Query, Stop
from fieldbo.mission.prior import MOST_EARLIER, Prior, aged
from fieldbo.policies.baselines import Random
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.record.record import Record
from fieldbo.results.plot import map_picture, path_picture
from fieldbo.runs.folder import begin
from fieldbo.runs.replay import load_run, mission_of
from fieldbo.runs.runner import resume, run
from fieldbo.testing import small_mission, small_world

WORLD = world_text(("x", 0, 10, 5), ("y", 0, 10, 5), title="a field of 25 sites", value={"name": "level"})
MISSION = mission_text(
    threshold=0.2,
    battery=40,
    model={"learn": {"every": 4}},
    prior={"readings": "yesterday.csv", "per_day": 0.2, "age_days": 1.0},
)
ROWS = ["x,y,level", *(f"{2.5 * (k % 4)},{3 * (k // 4)},{0.1 * k - 0.4:.1f}" for k in range(8))]


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds a world, a mission and the readings of the day before."""
    monkeypatch.chdir(tmp_path)
    write("worlds/tiny/world.toml", WORLD)
    write("m.toml", MISSION)
    write("yesterday.csv", "\n".join(ROWS))


def prior_of(n, seed=0, **changes):
    """Return n earlier readings over the small world."""
    rng = np.random.default_rng(seed)
    sites = rng.uniform([0, 0], [5, 4], (n, 2))
    return Prior(sites, rng.standard_normal(n), rng.uniform(0.05, 0.5, n), **changes)


# -- the belief --------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 12), seed=st.integers(0, 99), learns=st.booleans(), tested=st.booleans())
def test_the_belief_is_that_of_an_agent_that_was_told_the_earlier_readings(n, seed, learns, tested):
    model = Model(
        learn={"every": 3} if learns else False,
        length_scales=(2.0, 2.0),
        outliers="tested" if tested else "kept",
    )
    plain = replace(small_mission(Random(), battery=1e6, home=False), model=model)
    known = prior_of(n, seed)

    told = Agent(plain)
    for site, value, noise in zip(known.sites, known.values, known.noise_variances, strict=True):
        told.tell(told.ask().observed(value, noise_variance=noise, position=site))
    begun = Agent(replace(plain, prior=known))
    for agent in (told, begun):
        agent.online_model.fits.clear()  # the one that was told has fitted on the way
        agent.online_model._learn_again()

    np.testing.assert_allclose(begun.surface.mean, told.surface.mean, atol=1e-9)
    np.testing.assert_allclose(begun.surface.variance, told.surface.variance, atol=1e-9)
    assert np.array_equal(begun.believed, told.believed)
    assert begun.readings == told.readings == n


def test_earlier_readings_cost_nothing_and_are_no_steps():
    plain = small_mission(battery=30)
    agent = Agent(replace(plain, prior=prior_of(9)))
    assert (agent.readings, agent.steps, agent.asks, agent.spent) == (9, 0, 0, 0.0)
    assert agent.history == []
    result = fieldbo.run(replace(plain, prior=prior_of(9)))
    assert len(result.values) == result.steps
    assert result.curve[0].readings == 10
    assert "began with 9 earlier readings" in result.notes


def test_the_first_fit_comes_before_the_first_order_if_there_are_enough_earlier_readings():
    plain = replace(small_mission(battery=30, initial=6), model=Model())
    fitted = Agent(replace(plain, prior=prior_of(8))).refit()
    assert isinstance(fitted, Fitted)
    assert Agent(replace(plain, prior=prior_of(4))).refit() is None
    same_place = Prior(np.zeros((8, 2)), np.arange(8.0), np.ones(8))
    assert Agent(replace(plain, prior=same_place)).refit() is None


def test_older_readings_weigh_less_even_if_the_noise_is_learned():
    plain = replace(small_mission(Random(), battery=1e6), model=Model(noise="learned"))
    ages = np.repeat([0.0, 9.0], 6)
    noise = aged(np.full(12, 0.1), 0.3, ages)
    agent = Agent(replace(plain, prior=replace(prior_of(12), noise_sds=noise, ages_days=ages)))
    agent.tell(agent.refit())
    variances = agent.surface.belief.noise_variances
    np.testing.assert_allclose(variances[6:] / variances[:6], (0.01 + 0.09 * 9) / 0.01)


def test_a_wrong_earlier_reading_is_left_out_and_the_table_marks_only_new_readings():
    known = prior_of(14)
    values = np.where(np.arange(14) == 3, 80.0, 0.1)
    model = Model(learn=False, length_scales=(2.0, 2.0), mean=0.0, outliers="tested")
    mission = replace(small_mission(), model=model, prior=replace(known, values=values))
    assert Agent(mission).disbelieved == 1
    result = fieldbo.run(mission)
    assert len(result.believed) == len(result.values)
    assert result.believed.all()


def test_a_correction_keeps_the_earlier_readings():
    mission = replace(
        small_mission(Random(), battery=1e6), model=Model(learn={"every": 3}), prior=prior_of(7)
    )

    def told(first):
        agent = Agent(mission)
        for number in range(5):
            query = agent.ask()
            agent.tell(query.observed(first if number == 1 else 0.3, noise_variance=0.01))
        return agent

    wrong, right = told(9.0), told(0.5)
    wrong.correct(1, 0.5)
    while (fitted := wrong.refit()) is not None:
        wrong.tell(fitted)
    assert np.array_equal(wrong.surface.mean, right.surface.mean)


def test_what_a_log_can_t_take_of_the_earlier_readings_is_left_out():
    model = Model(transform="log", learn=False, length_scales=(2.0, 2.0))
    prior = replace(prior_of(3), values=[1.0, -1.0, 2.0], noise_sds=[0.1, 0.0, 0.1])
    agent = Agent(replace(small_mission(), model=model, prior=prior))
    assert (agent.readings, agent.left_out) == (2, 1)


def test_readings_far_outside_are_left_out_with_a_warning():
    sites = [[0, 0], [5.9, 4], [6.5, 1], [np.pi, -90]]
    mission = replace(small_mission(), prior=Prior(sites, np.ones(4), np.ones(4)))
    agent = Agent(mission)
    assert agent.readings == 2
    assert any("2 of 4 earlier readings" in warning for warning in agent.warnings)
    with pytest.raises(InputError, match="all 2 earlier readings lie outside the domain: x 850000 to 860000"):
        replace(small_mission(), prior=Prior([[8.5e5, 0], [8.6e5, 1]], [1, 1], [1, 1]))


@pytest.mark.parametrize(
    "arrays",
    [
        ([[0, 0]], [1, 2], [1, 1]),
        ([[0, 0], [1, 1]], [1, 2], [1]),
        ([[0, 0]], [np.nan], [1]),
        ([[0, 0]], [1], [-1]),
        ([[0, np.inf]], [1], [1]),
        ([[0, 0, 0]], [1], [1]),
    ],
)
def test_a_prior_of_mismatched_or_infinite_arrays_is_rejected(arrays):
    with pytest.raises(InputError):
        replace(small_mission(), prior=Prior(*arrays))


def test_there_is_a_limit_to_the_number_of_earlier_readings():
    n = MOST_EARLIER + 1
    with pytest.raises(InputError, match="2,001 earlier readings"):
        Prior(np.zeros((n, 2)), np.zeros(n), np.ones(n))


def test_truvar_does_not_blame_the_prior_if_earlier_readings_answer_the_question():
    world = small_world()
    sites = world.domain.sites
    known = Prior(sites, world.truth(sites) + 9.0, np.full(len(sites), 1e-3))
    agent = Agent(replace(small_mission(TruVaR(), world=world), prior=known))
    assert agent.warnings == ()


# -- files -------------------------------------------------------------------------------------------------


def prior_in(text="", readings=None):
    """Return the prior of the mission whose [prior] has these lines."""
    head, _, _ = MISSION.partition("[prior]")
    write("m.toml", f'{head}[prior]\nreadings = "yesterday.csv"\n{text}')
    if readings is not None:
        write("yesterday.csv", readings)
    return fieldbo.load_mission("m.toml").prior


def test_noise_grows_by_the_change_per_day_like_a_random_walk():
    prior = prior_in("per_day = 0.2\nage_days = 4\nnoise_sd = 0.3")
    np.testing.assert_allclose(prior.noise_sds, 0.5)
    np.testing.assert_allclose(prior_in("per_day = 0.2\nage_days = 4").noise_sds, np.hypot(0.1, 0.4))
    np.testing.assert_allclose(prior_in("age_days = 4").noise_sds, 0.1)


def test_earlier_readings_are_tested_against_each_other():
    rows = [f"{x},{y},{x + y + 0.01 * (x * y % 3):.2f}" for y in range(0, 11, 2) for x in range(0, 11, 2)]
    rows[16] = "8,4,99"
    text = "\n".join(["x,y,level", *rows])
    with pytest.raises(InputError, match="1 of 36 readings look wrong") as caught:
        prior_in("age_days = 1", text)
    assert "line 18: level 99, a spike" in str(caught.value)
    assert 'cleaning = "clean" in [prior]' in str(caught.value)
    cleaned = prior_in('age_days = 1\ncleaning = "clean"', text)
    kept = prior_in('age_days = 1\ncleaning = "keep"', text)
    assert (len(cleaned.values), len(kept.values)) == (35, 36)


def test_what_a_run_keeps_of_its_earlier_readings_is_not_asked_about_again():
    rows = [f"{x},{y},{99 if (x, y) == (8, 4) else x + y},0.1,1" for y in range(11) for x in range(11)]
    assert len(prior_in("", "\n".join(["x,y,value,noise_sd,age_days", *rows])).values) == 121


def test_a_noise_column_takes_precedence():
    rows = "x,y,value,noise_sd\n0,0,1,0.5\n5,5,2,0\n"
    assert prior_in("noise_sd = 3", rows).noise_sds.tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("times", "at", "days"),
    [
        (["2026-07-01T08:00:00Z", "2026-06-30T08:00:00Z"], "2026-07-02T08:00:00Z", [1, 2]),
        (["2026-07-01T08:00:00", "2026-07-01 20:00"], "2026-07-02T08:00:00", [1, 0.5]),  # naive: UTC
        (["2026-07-01T10:00:00+02:00", "2026-07-01T08:00:00Z"], "2026-07-02T08:00:00", [1, 1]),
        # as GDAL, QGIS and spreadsheets write them
        (["2026/07/01 08:00:00+00", "2026/06/30 08:00:00.000+00"], "2026-07-02T08:00:00Z", [1, 2]),
        (["01.07.2026 10:00:00+02:00", "30.06.2026 10:00:00+02:00"], "2026-07-02T08:00:00Z", [1, 2]),
        (["01.07.2026 08:00:00", "30.06.2026 08:00:00"], "2026-07-02T08:00:00Z", [1, 2]),
        (["1782892800", "1782806400"], "2026-07-02T08:00:00Z", [1, 2]),
        # the hour that clocks in Zurich show twice, and the one that they skip
        (
            ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"],
            "2026-10-25T12:30:00Z",
            [12 / 24, 11 / 24],
        ),
        (["2026-03-28T14:00:00+01:00", "2026-03-29T14:00:00+02:00"], "2026-03-29T12:00:00Z", [23 / 24, 0]),
    ],
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_ages_follow_from_times_with_their_offsets(times, at, days, quote):
    rows = "x,y,value,time\n" + "".join(f"{k},{k},1,{time}\n" for k, time in enumerate(times))
    prior = prior_in(f"per_day = 1\nat = {quote}{at}{quote}", rows)
    np.testing.assert_allclose(prior.ages_days, days)
    np.testing.assert_allclose(prior.noise_sds, np.sqrt(0.01 + np.array(days)))


def test_a_date_that_can_be_read_in_two_ways_is_asked_about_unless_the_age_is_given():
    rows = "x,y,value,time\n0,0,1,04/07/2026 10:00\n5,5,2,04/07/2026 11:00\n"
    with pytest.raises(InputError, match="may be 7 April 2026"):
        prior_in("at = 2026-07-30T00:00:00Z", rows)
    assert prior_in("age_days = 3", rows).ages_days.tolist() == [3.0, 3.0]


def test_positions_in_feet_below_the_axes_names_are_converted():
    rows = "x,y,value\nft,ft,mg/l\n0,10,1\n3.28,5,2\n1,1,3\n"
    assert prior_in("age_days = 3", rows).sites[1].tolist() == [0.999744, 1.524]


def test_without_at_a_mission_begins_now():
    prior = prior_in("per_day = 0.1", "x,y,value,time\n0,0,1,2020-01-01\n")
    assert prior.ages_days[0] > 2000


def test_an_age_for_all_replaces_their_times():
    prior = prior_in("age_days = 3", "x,y,value,time\n0,0,1,2020-01-01\n")
    assert prior.ages_days.tolist() == [3.0]


def test_observations_of_a_run_are_readings_and_failed_ones_are_skipped():
    rows = "order,x,y,value,noise_sd,time_s,cost\nr/0,0,0,,0.1,0,1\nr/1,5,5,2.5,0.1,1,1\n"
    prior = prior_in("age_days = 1", rows)
    assert (prior.sites.tolist(), prior.values.tolist()) == ([[5.0, 5.0]], [2.5])


def test_one_reading_is_enough():
    assert prior_in("", "x;y;level\n5;5;2.5\n").values.tolist() == [2.5]


WRONG = {
    "no file": ('readings = "nowhere.csv"', None),
    "outside": ('readings = "../yesterday.csv"', None),
    "empty": ("", None),
    "key": ('readings = "yesterday.csv"\nperday = 1', None),
    "negative change": ('readings = "yesterday.csv"\nper_day = -1', None),
    "no age": ('readings = "yesterday.csv"\nper_day = 0.2', None),
    "not a time": ('readings = "yesterday.csv"\nat = "noon"', None),
    "a date": ('readings = "yesterday.csv"\nat = 2026-07-02', None),
    "cell": ('readings = "yesterday.csv"', "x,y,level\n0,0,1\n5,5,1.O\n"),
    "infinite": ('readings = "yesterday.csv"', "x,y,level\n0,0,1\n5,5,inf\n"),
    "place": ('readings = "yesterday.csv"', "x,y,level\n0,0,1\n5,,2\n"),
    "no value": ('readings = "yesterday.csv"', "x,y,levl\n0,0,1\n"),
    "no axis": ('readings = "yesterday.csv"', "x,z,level\n0,0,1\n"),
    "noise": ('readings = "yesterday.csv"', "x,y,level,noise_sd\n0,0,1,-0.1\n"),
    "time cell": ('readings = "yesterday.csv"', "x,y,level,time\n0,0,1,2026-07-01\n5,5,2,yesterday\n"),
    "future": (
        'readings = "yesterday.csv"\nat = 2026-07-02T08:00:00Z',
        "x,y,level,time\n0,0,1,2026-07-02T09:00:00+02:00\n0,5,1,2026-07-02T09:00:00\n",
    ),
    "all failed": ('readings = "yesterday.csv"', "x,y,level\n0,0,\n"),
    "no rows": ('readings = "yesterday.csv"', "x,y,level\n"),
    "other coordinates": ('readings = "yesterday.csv"', "x,y,level\n600000,5200000,1\n600010,5200010,2\n"),
    "no mean": ('mean = "model.csv"', None),
    "mean does not cover": ('mean = "yesterday.csv"', None),
    "mean of another kind": ('mean = { file = "m.toml", valeu = "x" }', None),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_prior_is_explained(what, command, snapshot):
    lines, rows = WRONG[what]
    write("m.toml", f"{MISSION.partition('[prior]')[0]}[prior]\n{lines}\n")
    if rows is not None:
        write("yesterday.csv", rows)
    before = everything()
    code, _, error = command("run", "m.toml")
    assert code == 2
    assert everything() == before
    snapshot(error)


# -- runs --------------------------------------------------------------------------------------------------


class Died(BaseException):
    """The death of a process: nothing catches it."""


def killed_after(record, writes):
    """Let the writer of a record die after a number of writes."""
    append, done = record._append, [0]

    def write_rows(rows):
        append(rows)
        done[0] += 1
        if done[0] >= writes:
            raise Died

    record._append = write_rows


def log_of(folder):
    with Record(folder / "run.sqlite") as record:
        return [(row.kind, row.body) for row in record.rows()]


@pytest.mark.parametrize("writes", swept([1, 4, 9], [4]))
def test_a_run_resumes_anywhere_without_the_original_file(tmp_path, writes):
    write(
        "yesterday.csv",
        "x,y,level,time\n" + "".join(f"{r},2026-07-01T0{k}:00:00Z\n" for k, r in enumerate(ROWS[1:])),
    )
    edit("m.toml", "age_days = 1.0\n", "")  # ages up to now
    mission = fieldbo.load_mission("m.toml")
    whole, record = begin(mission, Path("whole"))
    with record:
        run(mission, record=record)
    folder, record = begin(mission, Path(f"killed-{writes}"))
    killed_after(record, writes)
    with record, pytest.raises(Died):
        run(mission, record=record)
    moved = tmp_path / f"elsewhere-{writes}" / folder.name
    shutil.copytree(folder, moved)
    Path("yesterday.csv").rename("gone.csv")
    result = resume(moved)
    Path("gone.csv").rename("yesterday.csv")
    names = json.dumps(log_of(whole)), json.dumps(log_of(moved))
    assert names[0].replace("whole/", "") == names[1].replace(f"{folder.name}/", "")
    assert np.array_equal(result.surface.mean, load_run(whole).agent.stated.surface.mean)
    assert any("8 earlier readings" in note for note in result.notes)


@pytest.mark.slow
def test_a_run_folder_runs_again_with_the_same_readings(said):
    said("run", "m.toml", "--out", "first")
    said("run", "first/mission.toml", "--out", "again")
    assert Path("first/prior.csv").read_bytes() == Path("again/prior.csv").read_bytes()
    assert tomllib.loads(Path("first/mission.toml").read_text())["prior"] == {"readings": "prior.csv"}
    first, again = (json.dumps(log_of(Path(f))).replace(f"{f}/", "") for f in ("first", "again"))
    assert first == again


def test_a_missing_or_changed_prior_is_an_error(said, command):
    said("run", "m.toml", "--out", "a")
    file = Path("a/prior.csv")
    content = file.read_text()
    file.write_text(content.replace("0.2", "0.3"))
    code, _, error = command("ask", "a")
    assert code == 2
    assert "changed since the run began: prior.csv" in " ".join(error.split())
    file.unlink()
    code, _, error = command("resume", "a")
    assert code == 2
    assert "missing: prior.csv" in error
    file.write_text(content)
    said("export", "a", "csv")


@pytest.mark.slow
def test_a_mission_may_begin_with_a_run_by_name_folder_or_table(said):
    write("m.toml", MISSION.partition("[prior]")[0])
    said("run", "m.toml", "--out", "runs/day-1")
    said("correct", "day-1", "2", "0.75")
    seen = load_run("day-1").agent
    values = np.concatenate([e.values for e in seen.history if hasattr(e, "values") and hasattr(e, "sites")])
    named, folder, table = (
        fieldbo.load_mission("m.toml", {"prior": {"readings": given, "per_day": 0.3} | more}).prior
        for given, more in (
            ("day-1", {}),
            (str(Path("runs/day-1").resolve()), {}),
            ("runs/day-1/observations.csv", {"age_days": 1.0}),
        )
    )
    assert 0.75 in values
    for prior in (named, folder, table):
        assert prior.values.tolist() == values.tolist()
    assert 0 <= named.ages_days.min() <= named.ages_days.max() < 0.01
    np.testing.assert_allclose(named.noise_sds**2, 0.01 + 0.09 * named.ages_days)
    np.testing.assert_allclose(table.noise_sds, np.hypot(0.1, 0.3))


def test_a_run_in_another_world_is_rejected(said, command):
    write("worlds/other/world.toml", WORLD.replace('name = "level"', 'name = "height"'))
    write("other.toml", MISSION.partition("[prior]")[0].replace('"tiny"', '"other"'))
    said("run", "other.toml", "--out", "runs/other-1")
    code, _, error = command("run", "m.toml", "--prior", "other-1")
    assert code == 2
    assert "the quantity of the run: height" in error
    edit("runs/other-1/other/world.toml", '"height"', '"level"')
    code, _, error = command("run", "m.toml", "--prior", "other-1")
    assert code == 2
    assert "changed since the run began: other/world.toml" in error


@pytest.mark.slow
def test_check_and_run_say_what_is_known(said):
    out = said("check", "m.toml")
    assert "prior     8 earlier readings, 1.0 days old, noise sd with age 0.2236" in out
    out = said("check", "m.toml", "--prior", "yesterday.csv", "--set", "prior.per_day=0")
    assert "noise sd with age 0.1\n" in out
    out = said("run", "m.toml", "--out", "a")
    assert "began with 8 earlier readings, 1.0 days old" in out
    assert len(Path("a/observations.csv").read_text().splitlines()) < 30
    assert "earlier reading" in [*_labels(sketch(path_picture, load_run("a").result()))]


def test_a_file_given_on_the_command_line_may_lie_anywhere(said, tmp_path_factory):
    file = tmp_path_factory.mktemp("elsewhere") / "there.csv"
    shutil.copy("yesterday.csv", file)
    out = said("run", "m.toml", "--prior", file, "--out", "a")
    assert "began with 8 earlier readings" in out


def test_a_mission_made_in_python_can_be_recorded_with_its_prior():
    mission = fieldbo.load_mission("m.toml", {"prior": {"age_days": 2.0}})
    mine = replace(mission, prior=Prior([[0, 0], [5, 5]], [0.1, 1 / 3], [0.1, np.sqrt(0.07)]))
    folder, record = begin(mine, Path("mine"))
    with record:
        run(mine, record=record)
        again = mission_of(record)
    assert np.array_equal(again.prior.noise_variances, mine.prior.noise_variances)
    assert np.array_equal(load_run(folder).agent.stated.surface.mean, resume(folder).surface.mean)
    without, record = begin(replace(mission, prior=None), Path("without"))
    record.close()
    assert not (without / "prior.csv").exists()
    assert mission_of(Record(without / "run.sqlite")).prior is None


def _labels(figure):
    return (label for ax in figure.axes for label in ax.get_legend_handles_labels()[1])


@pytest.mark.parametrize("shape", [(12,), (6, 5)])
def test_pictures_draw_earlier_readings_apart(shape):
    d = len(shape)
    known = Prior(np.ones((3, d)) * np.arange(3)[:, None], np.ones(3), np.ones(3))
    plain = small_mission(world=small_world(shape))
    drawn, without = (fieldbo.run(m) for m in (replace(plain, prior=known), plain))
    assert "earlier reading" in [*_labels(sketch(path_picture, drawn))]
    assert "earlier reading" not in [*_labels(sketch(path_picture, without))]
    if d == 2:
        assert "earlier reading" in [*_labels(sketch(map_picture, drawn))]


def test_an_agent_asks_on_after_earlier_readings_until_it_stops():
    agent = Agent(replace(small_mission(battery=20), prior=prior_of(5)))
    while isinstance(order := agent.ask(), Query):
        agent.tell(order.observed(0.1, noise_variance=0.01))
    assert not isinstance(order, Query)
    assert agent.steps > 0
    assert isinstance(agent.ask(), Stop) or agent.pending == ()
