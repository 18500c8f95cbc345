"""The papers' tables: a study that can be broken off, and what it makes of its runs."""

import dataclasses
import importlib.util
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from checkout import ROOT
from tiers import swept

from fieldbo.errors import InputError
from fieldbo.runs.comparison import Case, prepared

FOLDER = ROOT / "benchmarks" / "papers"
SCRIPT = FOLDER / "switching_cost.py"


@contextmanager
def loaded(name):
    """A study's script as a module, as where it is run."""
    sys.path.insert(0, str(FOLDER))
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look themselves up there
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def papers():
    with loaded("switching_cost") as module:
        yield module


def study(out, *arguments):
    command = [sys.executable, SCRIPT, "--only", "ackley", "--rules", "distUCB", "EI", "--jobs", "1"]
    return subprocess.run(
        [*command, "--repeats", "1", "--out", out, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_an_interrupted_study_continues_where_it_stopped(tmp_path):
    out = tmp_path / "study.csv"
    first = study(out, "--steps", "1")
    assert first.returncode == 0, first.stderr
    whole = out.read_bytes()
    header, _, last = whole.splitlines(keepends=True)
    out.write_bytes(whole[: -len(last) // 2])
    again = study(out, "--steps", "1")
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("to come") == 1
    assert again.stdout == first.stdout
    assert out.read_bytes().startswith(header)

    told = study(out, "--table-only", "--picture", tmp_path / "study.png")
    assert told.stdout == first.stdout
    assert (tmp_path / "study.png").stat().st_size > 10_000

    other = study(out, "--steps", "2")
    assert other.returncode == 1
    assert "with other settings" in other.stderr


@pytest.mark.parametrize("name", ["switching_cost", "modular_systems", "control_sets"])
def test_the_files_of_the_studies_can_be_continued(name):
    with loaded(name) as study:
        lines = study.Outcome.all_of(FOLDER / f"{name}.csv")
        digests = {(line.world, line.rule): line.digest for line in lines}
        assert len({(line.world, line.rule, line.digest) for line in lines}) == len(digests)
        now = {(world, rule): study.marked(study.Cell(world, rule, 0), None) for world, rule in digests}
    assert digests == now


def test_a_study_is_not_continued_with_other_settings_but_with_other_titles_and_versions(papers, monkeypatch):
    cell = papers.Cell("branin", "EI", 0)
    mark = papers.marked(cell, None)
    monkeypatch.setattr("fieldbo.__version__", "99.0")
    name, overrides = papers.settings(cell, None)
    assert papers.digest(name, overrides | {"title": "Another"}) == mark
    assert papers.digest(name, overrides | {"initial": {"count": 3}}) != mark
    assert papers.digest(name, overrides, budget=7.0) != mark
    assert papers.marked(cell, 5) != mark


def test_all_policies_of_a_repeat_start_from_the_same_readings(papers):
    missions = []
    for rule in papers.RULES:
        name, told = papers.settings(papers.Cell("branin", rule, 3), None)
        missions.append(prepared(Case(name, 0, 3), told))
    first = missions[0]
    assert {m.policy_kind for m in missions} == {"dist-ucb", "rollout"}
    for mission in missions:
        assert (mission.seed, mission.initial, mission.max_steps) == (3, 40, 140)
        assert mission.model == first.model
        np.testing.assert_array_equal(mission.vehicles[0].start, first.vehicles[0].start)


def outcome(papers, rule, repeat, *figures):
    return papers.Outcome("branin", rule, repeat, 100, *figures, seconds=1.0, digest="")


def test_the_table_has_means_with_their_errors_and_differences_within_repeats(papers):
    ours = [outcome(papers, papers.OURS, k, 10.0 + k, 0.5, 2.0) for k in range(3)]
    rival = [outcome(papers, "EI", k, 9.0 + 3 * k, 0.25, 8.0) for k in range(2)]
    lines = papers.markdown([*rival, *ours]).splitlines()
    # 10, 11, 12: a standard deviation of 1; 9, 12: one of 3 / sqrt(2)
    assert lines[2] == (
        "| branin, 100 steps | distUCB rollout | 11.00 ± 0.58 | 0.500 ± 0.000 | **2.000 ± 0.000** | 3 |"
    )
    assert lines[3] == "| branin, 100 steps | EI | **10.5 ± 1.5** | **0.250 ± 0.000** | 8.000 ± 0.000 | 2 |"
    # 10 - 9 and 11 - 12; nothing stands beside the third repeat
    assert lines[-1] == "| branin | EI | +0.0 ± 1.0 | +0.250 ± 0.000 | -6.000 ± 0.000 |"


def test_a_file_of_another_kind_is_rejected(papers, tmp_path):
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no table of this study"):
        papers.Outcome.all_of(file)


def test_regret_and_travel_are_those_of_the_steps_after_the_design(papers, monkeypatch):
    cell, runs = papers.Cell("branin", "distUCB", 0), []

    def run(mission):
        runs.append(run_(mission))
        return runs[-1]

    run_ = papers.run
    monkeypatch.setattr(papers, "run", run)
    found = papers.measured(cell, 2)
    (result,) = runs
    values = result.mission.world.truth(result.sites)
    # the least value of the Branin function is 0.397887; its box is 15 wide and 15 high
    a, b, c = result.sites[39:42]
    travel = (np.linalg.norm(b - a) + np.linalg.norm(c - b)) / 15
    assert found.steps == 2
    assert found.switching_cost == pytest.approx(travel)
    assert found.cumulative_regret == pytest.approx(values[40:].sum() - 2 * 0.397887, abs=1e-5)
    assert found.simple_regret == pytest.approx(values.min() - 0.397887, abs=1e-5)


# -- the studies of cells --------------------------------------------------------------------------------


@pytest.mark.parametrize("which", swept(["first", "others"], ["first"]))
@pytest.mark.parametrize(("name", "worlds"), [("modular_systems", "CHAINS"), ("control_sets", "WORLDS")])
def test_every_policy_of_a_study_of_cells_runs_in_each_of_its_worlds(name, worlds, which):
    with loaded(name) as made:
        all_worlds = list(getattr(made, worlds))
        for world in all_worlds[:1] if which == "first" else all_worlds[1:]:
            for rule in made.RULES:
                mission = made.mission(made.Cell(world, rule, 0), 1)
                mission.policy.check(mission.declared_cost, mission.world.domain)
                assert mission.max_steps == mission.initial + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "world", "ours", "rival"),
    [
        ("modular_systems", "Griewank-6, 10/1", "LaMBO", "CArBO"),
        ("control_sets", "ackley-12 cheap, variance 0.02", "subset front", "ETC-50"),
    ],
)
def test_a_study_of_cells_makes_its_table_and_draws_it(name, world, ours, rival, tmp_path):
    out = tmp_path / "study.csv"
    command = [sys.executable, FOLDER / f"{name}.py", "--only", world, "--rules", ours, rival, "--jobs", "1"]
    command += ["--repeats", "1", "--steps", "2", "--out", out]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    table, differences = ran.stdout.split("\n\n")[0], ran.stdout.split("\n\n")[-1]
    assert [line.split(" | ")[1] for line in table.splitlines()[2:]].count(ours) == 1
    assert f"| {world} | {rival} |" in differences
    picture = tmp_path / "study.png"
    told = subprocess.run(
        [*command, "--table-only", "--picture", picture], capture_output=True, text=True, check=True
    )
    assert told.stdout == ran.stdout
    assert picture.stat().st_size > 10_000


# -- whole paths -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paths():
    with loaded("informative_paths") as module:
        yield module


def test_the_fields_of_the_path_benchmark_are_the_published_bumps_with_a_maximum_of_one(paths):
    for instance in (0, 29, 30):
        random = np.random.RandomState(101 + 100 * instance)
        height = np.zeros(900)
        for _ in range(random.randint(8, 13)):
            x, y = random.rand(2)
            a, b = np.sqrt(random.uniform(0.00005, 0.0002, 2))
            height += np.exp(-(((paths.GRID - [x, y]) ** 2) @ [0.5 / a, 0.5 / b])) / (2 * np.pi * a * b)
        np.testing.assert_allclose(paths.field(instance)(paths.GRID), height / height.max(), atol=1e-12)


def test_a_lawnmower_reads_after_each_full_fifth_but_neither_at_its_start_nor_at_its_end(paths):
    at, length = paths.readings_along(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    assert length == 2.0
    np.testing.assert_allclose(at, [[0, k / 5] for k in range(1, 6)] + [[k / 5, 1] for k in range(1, 5)])
    assert len(paths.best_lawnmower(6)) <= 29


def test_the_file_of_the_path_benchmark_can_be_continued_and_beats_what_is_published(paths):
    lines = paths.Outcome.all_of(FOLDER / "informative_paths.csv")
    assert {line.digest == paths.marked(line.cell) for line in lines} == {True}
    every = paths.by_rule(lines, paths.WORLDS, paths.RULES)
    published = {6: 17.4, 8: 7.8, 10: 4.02, 12: 2.65}  # the best of the planners in the paper
    for world, budget in paths.WORLDS.items():
        means = {rule: np.mean([f[0] for f in every[world, rule].values()]) for rule in paths.RULES}
        assert means[paths.OURS] < means[paths.ONCE] < means[paths.LAWN]
        ours = [figures[0] for k, figures in every[world, paths.OURS].items() if k < paths.PUBLISHED]
        assert len(ours) == paths.PUBLISHED
        assert np.mean(ours) < published[budget] / 2


@pytest.mark.slow
def test_the_path_benchmark_makes_its_table_and_draws_it(tmp_path):
    out, picture = tmp_path / "paths.csv", tmp_path / "paths.png"
    command = [sys.executable, FOLDER / "informative_paths.py", "--only", "budget 6", "--jobs", "1"]
    command += ["--repeats", "2", "--out", out]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    rules = [line.split(" | ")[1] for line in ran.stdout.splitlines()[2:]]
    assert rules == ["planned again", "planned once", "best lawnmower"]
    told = subprocess.run(
        [*command, "--table-only", "--picture", picture], capture_output=True, text=True, check=True
    )
    assert told.stdout == ran.stdout
    assert picture.stat().st_size > 10_000


# -- level sets ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def level_sets():
    with loaded("level_sets") as module:
        yield module


@pytest.mark.slow
def test_the_study_of_level_sets_makes_its_table_and_draws_it(tmp_path):
    out = tmp_path / "study.csv"
    command = [
        sys.executable,
        FOLDER / "level_sets.py",
        "--only",
        "lake-transect-unit-cost",
        "--repeats",
        "2",
    ]
    rules = ["--rules", "tour", "straddle per cost", "--out", out, "--picture", tmp_path / "study.png"]
    done = subprocess.run([*command, *rules, "--jobs", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(out.read_text().splitlines()) == 5
    assert "| lake-transect-unit-cost | straddle per cost |" in done.stdout
    assert done.stdout.count("| lake-transect-unit-cost | 0.9 |") == 1
    assert (tmp_path / "study.png").stat().st_size > 10_000


def test_the_cost_to_a_target_is_where_the_mean_curve_first_reaches_it(level_sets):
    mean = np.concatenate([np.linspace(0, 0.8, 81), np.linspace(0.81, 1.0, 20)])
    assert level_sets.reached(mean, 0.5, 1000) == pytest.approx(500)
    assert level_sets.reached(0.5 * mean, 0.9, 1000) == np.inf
    late = np.repeat(np.array([[0.0] * 60 + [1.0] * 41]), 20, axis=0)
    early = np.repeat(np.array([[0.0] * 30 + [1.0] * 71]), 20, axis=0)
    share, low, high = level_sets.shares(early, late, 0.9)
    assert share == pytest.approx(0.5, abs=0.01)
    assert low == pytest.approx(share)
    assert high == pytest.approx(share)
    assert np.isnan(level_sets.shares(early, 0.5 * late, 0.9)).all()  # no share of what a rival never reaches


@pytest.mark.slow
def test_rules_of_one_level_run_at_each_level_of_the_sensor(level_sets):
    rules = level_sets.rules_of("gp-level-noise", ["tour", "straddle per cost"])
    assert rules == ["tour", *(f"straddle per cost, level {k}" for k in range(3))]
    assert level_sets.rules_of("gp-lake", ["GCHK per cost"]) == ["GCHK per cost"]
    for world in level_sets.GROUNDS:
        for rule in level_sets.rules_of(world, level_sets.RULES):
            assert len(level_sets.marked(level_sets.Cell(world, rule, 0))) == 12


# -- an optimum before the battery ends ------------------------------------------------------------------


@pytest.fixture(scope="module")
def before_battery():
    with loaded("optimum_before_battery") as module:
        yield module


@pytest.mark.slow
def test_the_study_of_optima_before_the_battery_ends_makes_its_tables_and_draws_them(tmp_path):
    out, drawn = tmp_path / "study.csv", tmp_path / "study.png"
    command = [sys.executable, FOLDER / "optimum_before_battery.py", "--only", "crack-wall", "--repeats", "2"]
    done = subprocess.run(
        [*command, "--jobs", "1", "--out", out, "--picture", drawn],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(out.read_text().splitlines()) == 7
    assert done.stdout.count("| crack-wall | search tour |") == 2
    assert drawn.stat().st_size > 10_000


def test_the_file_of_that_study_can_be_continued(before_battery):
    lines = before_battery.Outcome.all_of(FOLDER / "optimum_before_battery.csv")
    assert len({line.cell for line in lines}) == len(lines)
    digests = {(line.world, line.rule, line.digest) for line in lines}
    cells = {(world, rule): before_battery.Cell(world, rule, 0) for world, rule, _ in digests}
    assert digests == {(*pair, before_battery.marked(cell)) for pair, cell in cells.items()}


def test_readings_cost_something_in_every_world_of_that_study(before_battery):
    for world in before_battery.GROUNDS:
        mission = before_battery.mission_of(before_battery.Cell(world, "search tour", 1))
        assert mission.world.cost.least_sampling_cost(mission.world.domain.sites) > 0


def test_the_error_of_a_ratio_is_that_of_resampled_runs(before_battery):
    rng = np.random.default_rng(0)
    rival = rng.gamma(2.0, 1.0, (60, 1))
    ours = 0.5 * rival + rng.gamma(1.0, 0.3, (60, 1))
    share, error = before_battery.ratio(ours, rival)
    again = [
        ours[runs].mean() / rival[runs].mean() for runs in (rng.integers(0, 60, 60) for _ in range(4000))
    ]
    assert share[0] == pytest.approx(np.mean(again), rel=0.02)
    assert error[0] == pytest.approx(np.std(again), rel=0.1)


# -- default policies ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def defaults():
    with loaded("defaults") as module:
        yield module


def test_a_default_is_compared_with_the_best_of_the_others_over_the_runs_of_both(defaults):
    runs = {
        "LaMBO": {0: np.array([1.0, 2.0]), 1: np.array([3.0, 4.0]), 2: np.array([100.0, 100.0])},
        "EI": {0: np.array([4.0, 6.0]), 1: np.array([4.0, 6.0])},
        "GP-UCB": {1: np.array([5.0, 2.0]), 3: np.array([0.0, 0.0])},
    }
    chains = dataclasses.replace(defaults.STUDIES[2], runs=lambda lines: {"Hartmann-6, 10/1": runs})
    half, end = defaults.rows(chains, FOLDER)
    assert (half.default, half.other, half.figure, half.share, half.runs) == ("LaMBO", "GP-UCB", 3.0, 0.6, 1)
    assert (end.default, end.other, end.figure, end.share, end.runs) == ("LaMBO", "GP-UCB", 4.0, 2.0, 1)


@pytest.mark.slow
def test_every_world_of_the_studies_has_a_default_among_their_rules(defaults):
    worlds = (
        defaults.level_sets.GROUNDS,
        defaults.optimum_before_battery.GROUNDS,
        defaults.modular_systems.CHAINS,
        defaults.control_sets.WORLDS,
    )
    for study_, names in zip(defaults.STUDIES, worlds, strict=True):
        for world in names:
            assert study_.default(world) in study_.rules


@pytest.mark.slow
def test_the_table_of_defaults_has_the_figures_of_the_shipped_files(defaults):
    lines = defaults.markdown(FOLDER).splitlines()
    published = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert [line for line in lines if line not in published] == []
    assert len(lines) > 30
