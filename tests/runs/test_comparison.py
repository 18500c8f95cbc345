"""Comparisons: paired runs, a tidy table, and resuming it."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import sem, ttest_rel
from small_files import mission_text, world_text
from waiting import SLOW_S, until

from fieldbo.errors import InputError
from fieldbo.results.metrics import BEST_REGRET, F1, REGRET
from fieldbo.runs import comparison, trials
from fieldbo.runs.comparison import COLUMNS, Case, compare, contender, label, prepared, write_rows
from fieldbo.runs.comparison_scores import (
    calibration,
    differences_at,
    performance_profiles,
    profile_figure,
    score_in,
    score_of,
    scores_at,
    targets,
)
from fieldbo.runs.runner import run

WORLD = world_text(("x", 0, 10, 6), ("y", 0, 10, 6), title="a field of 36 sites")
MISSION = mission_text(
    threshold={"quantile": 0.6}, battery=25, model={"learn": False, "length_scales": [3, 3], "mean": 0}
)
MISSIONS = ["truvar.toml", "random.toml"]
FINISHED = ("mission", "draw", "start")
OPTIMUM = {"question": {"kind": "optimum"}}


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds a world, and two missions in it."""
    monkeypatch.chdir(tmp_path)
    Path("worlds/tiny").mkdir(parents=True)
    Path("worlds/tiny/world.toml").write_text(WORLD)
    for name in MISSIONS:
        Path(name).write_text(MISSION.replace('"truvar"', f'"{Path(name).stem}"'))


def rows_of(file):
    with Path(file).open(newline="") as lines:
        return list(csv.DictReader(lines))


def in_order(rows):
    return sorted(tuple(r[c] for c in COLUMNS) for r in rows)


def test_missions_are_paired_by_draw_start_and_seed():
    for draw in range(2):
        for start in range(3):
            first, other = (prepared(Case(m, draw, start), {}) for m in MISSIONS)
            assert first.world.draw == other.world.draw == draw
            assert first.seed == other.seed == start
            assert np.array_equal(first.vehicles[0].start, other.vehicles[0].start)
            sites = first.world.domain.sites
            assert np.array_equal(first.world.truth(sites), other.world.truth(sites))
            assert first.question == other.question
    starts = {tuple(prepared(Case("truvar.toml", 0, s), {}).vehicles[0].start) for s in range(6)}
    assert len(starts) > 3
    fields = [prepared(Case("truvar.toml", d, 0), {}).world.truth(sites) for d in range(2)]
    assert not np.allclose(*fields)


def test_the_first_reading_is_the_same_for_every_policy():
    values = [run(prepared(Case(m, 1, 2), {})).values[0] for m in MISSIONS]
    assert values[0] == values[1]


def test_the_table_is_tidy():
    rows = compare(MISSIONS, 2, 2, Path("t.csv"))
    assert rows == rows_of("t.csv")
    assert Path("t.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    runs = [r for r in rows if r["row"] == "run"]
    assert sorted(tuple(r[k] for k in FINISHED) for r in runs) == [
        (m, str(d), str(s)) for m in ("random", "truvar") for d in range(2) for s in range(2)
    ]
    assert {r["row"] for r in rows} == {"run", "step"}
    for last in runs:
        steps = [r for r in rows if r["row"] == "step" and all(r[k] == last[k] for k in FINISHED)]
        assert [int(r["step"]) for r in steps] == list(range(1, len(steps) + 1))
        costs = [float(r["cost"]) for r in steps]
        assert costs == sorted(costs)
        assert costs[-1] == float(last["cost"]) <= float(last["battery"]) == 25
        assert steps[-1]["f1"] == last["f1"]
        assert last["end_reason"] in ("battery spent", "question answered")
        assert last["cost_unit"] == "s"
        assert last["policy"] == last["mission"]
        assert last["world"] == "tiny"
        assert len(last["place"].split()) == 2
        again = run(prepared(Case(f"{last['mission']}.toml", int(last["draw"]), int(last["start"])), {}))
        assert again.f1 == float(last["f1"])
        assert again.cost == float(last["cost"])


def middle_of_a_line(whole):
    return whole[: int(0.55 * len(whole))]


def after_some_steps(whole):
    lines = whole.splitlines(keepends=True)
    steps = [k for k, line in enumerate(lines) if line.startswith("step,") and lines[k - 1][:5] == "step,"]
    return "".join(lines[: steps[len(steps) // 2]])


def before_the_last_line_end(whole):
    return whole[:-1]


@pytest.mark.parametrize("cut", [middle_of_a_line, after_some_steps, before_the_last_line_end])
def test_an_interrupted_comparison_ends_with_the_same_table(cut):
    compare(MISSIONS, 2, 1, Path("whole.csv"))
    whole = Path("whole.csv").read_text()
    Path("cut.csv").write_text(cut(whole))
    progress = []
    rows = compare(MISSIONS, 2, 1, Path("cut.csv"), on_run=lambda done, all_: progress.append((done, all_)))
    assert in_order(rows_of("cut.csv")) == in_order(rows) == in_order(rows_of("whole.csv"))
    assert progress, "the unfinished run is repeated"
    assert progress[-1] == (4, 4)
    assert len(progress) < 4, "finished runs are not"


def test_a_finished_comparison_repeats_nothing_and_can_be_extended(monkeypatch):
    compare(["truvar.toml"], 2, 1, Path("t.csv"))
    before = Path("t.csv").read_text()
    with monkeypatch.context() as patched:
        patched.setattr(comparison, "_run_case", None)
        assert compare(["truvar.toml"], 2, 1, Path("t.csv")) == rows_of("t.csv")
    assert Path("t.csv").read_text() == before
    rows = compare(MISSIONS, 3, 1, Path("t.csv"))
    assert Path("t.csv").read_text().startswith(before)
    assert len([r for r in rows if r["row"] == "run"]) == 6
    assert {r["start"] for r in compare(["random.toml"], 1, 1, Path("t.csv"))} == {"0"}


@pytest.mark.parametrize(
    ("instead", "differs"),
    [
        (",shortfall,", "columns: unknown shortfall; missing regret"),
        (",", "columns: missing regret"),
        (",regret,shortfall,", "columns: unknown shortfall"),
    ],
)
def test_a_table_of_another_version_is_an_error_and_unchanged(instead, differs):
    compare(["truvar.toml"], 1, 1, Path("t.csv"))
    before = Path("t.csv").read_text().replace(",regret,", instead, 1)
    Path("t.csv").write_text(before)

    with pytest.raises(InputError, match="written by another version") as caught:
        compare(["truvar.toml"], 1, 1, Path("t.csv"))

    assert caught.value.problem.endswith(differs)
    assert "choose another file with --out" in str(caught.value)
    assert Path("t.csv").read_text() == before


def test_a_table_with_reordered_columns_is_an_error():
    first, *others = COLUMNS
    Path("t.csv").write_text(",".join([first, *others[:3], *reversed(others[3:])]) + "\n")

    with pytest.raises(InputError, match="other order"):
        compare(["truvar.toml"], 1, 1, Path("t.csv"))


@pytest.mark.slow
def test_two_jobs_give_the_same_rows_as_one():
    single = compare(MISSIONS, 2, 1, Path("one.csv"))
    two = compare(MISSIONS, 2, 1, Path("two.csv"), jobs=2)
    assert single == two
    assert rows_of("two.csv") == single


def test_overrides_apply_to_every_mission_and_to_the_digest():
    rows = compare(MISSIONS, 1, 1, Path("t.csv"), {"agent": {"max_steps": 3}})
    assert [r["step"] for r in rows if r["row"] == "run"] == ["3", "3"]
    with pytest.raises(InputError, match="with different settings"):
        compare(MISSIONS, 1, 1, Path("t.csv"), {"agent": {"max_steps": 4}})


def test_a_mission_that_fails_leaves_the_finished_runs_in_the_table(monkeypatch):
    real = comparison._run_case

    def failing(task):
        if task[0].mission == "random.toml":
            raise KeyboardInterrupt
        return real(task)

    monkeypatch.setattr(comparison, "_run_case", failing)
    with pytest.raises(KeyboardInterrupt):
        compare(MISSIONS, 1, 1, Path("t.csv"))
    assert [r["mission"] for r in rows_of("t.csv") if r["row"] == "run"] == ["truvar"]


ENDLESS = MISSION.replace('"truvar"', '"random"').replace("battery = 25", "battery = 1e9")


@pytest.fixture
def comparing():
    """Start `fieldbo compare` in a process of its own, and wait until the table holds a run."""
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code += "; from fieldbo.cli import main; main()"
    with ExitStack() as ends:

        def start(*missions, jobs):
            arguments = ["compare", *missions, "--starts", "1", "--jobs", str(jobs), "--out", "t.csv"]
            running = subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            ends.callback(running.kill)
            until(lambda: running.poll() is not None or (Path("t.csv").exists() and finished("t.csv")))
            assert running.poll() is None, running.stderr.read()
            return running

        yield start


def finished(file):
    return [row["mission"] for row in rows_of(file) if row["row"] == "run"]


def is_running(process):
    """Return True unless a process has ended, or only waits for its parent to notice that."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_second_process_on_the_same_table_loses_no_rows(comparing):
    Path("endless.toml").write_text(ENDLESS)
    first = comparing("random.toml", "endless.toml", jobs=1)
    with pytest.raises(InputError, match=r"t\.csv is being written by another process") as caught:
        compare(["truvar.toml"], 1, 1, Path("t.csv"))
    assert "repeat the command" in caught.value.fix
    assert finished("t.csv") == ["random"]
    first.terminate()
    first.communicate()
    compare(["truvar.toml"], 1, 1, Path("t.csv"))
    assert finished("t.csv") == ["random", "truvar"]
    assert not list(Path().glob(".*lock"))


def test_tables_of_one_stem_have_their_own_locks_and_leave_other_lock_files_alone():
    Path("poetry.lock").write_text("of Poetry")
    Path(".b.csv.lock").write_text("of another program")
    with (
        trials.hold_table(Path("poetry.csv")),
        trials.hold_table(Path("poetry.txt")),
        trials.hold_table(Path("b.csv")),
    ):
        assert Path(".poetry.csv.lock").exists()
        with pytest.raises(InputError, match="another process"), trials.hold_table(Path("poetry.csv")):
            pass
    locks = {file.name: file.read_text() for file in Path().glob("*lock")}
    assert locks == {"poetry.lock": "of Poetry", ".b.csv.lock": "of another program"}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds workers in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_comparison_ends_its_workers_and_keeps_finished_runs(comparing, number):
    Path("endless.toml").write_text(ENDLESS)
    running = comparing("endless.toml", "random.toml", jobs=2)
    workers = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    assert len(workers) >= 2
    running.send_signal(number)
    out, err = running.communicate(timeout=SLOW_S)
    until(lambda: not any(is_running(worker) for worker in workers))
    assert "Traceback" not in err
    if number != signal.SIGKILL:
        assert running.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
        who = "you" if number == signal.SIGINT else "SIGTERM"
        assert f"Stopped by {who}. Repeat the command to finish the comparison in t.csv." in out
    assert finished("t.csv") == ["random"], "although the run before it was not finished"


def step(mission, start, cost, f1, expected="0.5", draw="0"):
    return {
        "row": "step",
        "mission": mission,
        "draw": draw,
        "start": start,
        "cost": cost,
        "f1": f1,
        "expected_f1": expected,
    }


def test_scores_at_equal_cost_are_means_of_the_last_score_at_or_below_it():
    rows = [
        step("a", "0", "10", "0.2"),
        step("a", "0", "20", "0.6"),
        {**step("a", "0", "20", "0.6"), "row": "run"},
        step("a", "1", "10", "0.4"),
        step("a", "1", "15", "0.8"),
        step("b", "0", "10", "", "0.3"),
        step("b", "0", "30", "", "0.9"),
    ]
    scores = scores_at(rows, [10, 19.9, 20, 100])
    assert list(scores) == ["a", "b"]
    assert scores["a"].mean == pytest.approx([0.3, 0.5, 0.7, 0.7])
    assert scores["a"].error == pytest.approx([0.1, 0.3, 0.1, 0.1])
    assert scores["a"].runs == 2
    assert scores["b"].mean == pytest.approx([0.3, 0.3, 0.3, 0.9]), "the expected F1 where there is no truth"
    assert scores["b"].error == pytest.approx([0, 0, 0, 0])
    assert np.isnan(scores_at(rows, [5])["a"].mean[0]), "nothing was read yet"


FIELDS, STARTS = 6, 12


def runs_in_fields(shift=0.0, seed=0):
    """Return final scores (FIELDS, STARTS) of a mission in fields that differ more than their starts do."""
    rng = np.random.default_rng(seed)
    fields = np.random.default_rng(9).normal(0, 0.05, (FIELDS, 1))
    return 0.7 + shift + fields + rng.normal(0, 0.01, (FIELDS, STARTS))


def rows_with(**missions):
    return [
        step(name, str(k), "10", repr(float(score)), draw=str(g))
        for name, table in missions.items()
        for (g, k), score in np.ndenumerate(table)
    ]


def test_errors_count_fields_and_not_the_starts_within_them():
    table = runs_in_fields()
    scores = scores_at(rows_with(a=table), [10])["a"]
    assert scores.error[0] == pytest.approx(sem(table.mean(axis=1)))
    assert scores.error[0] > 2 * sem(table.ravel()), "as if every start were another field"
    assert (scores.runs, scores.draws) == (72, 6)
    alone = scores_at(rows_with(a=table[:1]), [10])["a"]
    assert alone.error[0] == pytest.approx(sem(table[0])), "one field: its starts"


def test_the_error_of_unequally_many_starts_is_cluster_robust():
    rows = rows_with(a=runs_in_fields())[:20]  # 12 starts in one field, 8 in the next
    values = np.array([float(row["f1"]) for row in rows])
    residuals = values - values.mean()
    expected = np.sqrt(2 * (residuals[:12].sum() ** 2 + residuals[12:].sum() ** 2)) / 20
    assert scores_at(rows, [10])["a"].error[0] == pytest.approx(expected)


def test_differences_are_paired_and_their_errors_count_fields():
    first, other = runs_in_fields(), runs_in_fields(shift=0.01, seed=1)
    rows = rows_with(a=first, b=other)
    (gap,) = differences_at(rows, [10], "a").values()
    by_field = (other - first).mean(axis=1)
    assert gap.mean[0] == pytest.approx(by_field.mean())
    assert gap.error[0] == pytest.approx(sem(by_field))
    assert gap.error[0] < scores_at(rows, [10])["b"].error[0] / 5, "what a field does to both cancels"
    assert (gap.pairs, gap.draws) == (72, 6)
    assert bool(gap.clear[0]) == (ttest_rel(other.mean(axis=1), first.mean(axis=1)).pvalue < 0.05)
    assert gap.clear[0]
    few = differences_at(rows_with(a=first[:2], b=other[:2]), [10], "a")["b"]
    p = ttest_rel(other[:2].mean(axis=1), first[:2].mean(axis=1)).pvalue
    assert bool(few.clear[0]) == (p < 0.05)


def test_runs_without_a_partner_do_not_count_in_differences():
    rows = [*rows_with(a=runs_in_fields()), step("b", "3", "10", "0.5"), step("b", "99", "10", "0.9")]
    gap = differences_at(rows, [10], "a")["b"]
    assert gap.pairs == 1
    assert gap.mean[0] == pytest.approx(0.5 - runs_in_fields()[0, 3])
    assert not gap.clear[0], "one pair has no interval"
    assert differences_at(rows, [10], "c") == {}


def test_several_draws_of_a_world_with_one_field_are_an_error():
    Path("worlds/tiny/world.toml").write_text(
        WORLD.replace('kind = "gp-draw"\nlength_scales = [3, 3]', 'kind = "function"\nname = "branin"')
    )
    assert compare(["random.toml"], 1, 1, Path("t.csv"))
    with pytest.raises(InputError, match="--draws 2, but the world tiny has only one field"):
        compare(["random.toml"], 1, 2, Path("t.csv"))


def test_optima_are_compared_by_their_regret():
    missions = ["maximum-variance.toml", "random.toml"]
    Path(missions[0]).write_text(MISSION.replace('"truvar"', '"maximum-variance"'))
    rows = compare(missions, 2, 1, Path("t.csv"), OPTIMUM)
    assert score_of(missions[0], OPTIMUM) is REGRET
    for row in rows:
        assert row["f1"] == row["unclassified"] == ""
        assert float(row["regret"]) >= 0
        assert 0 <= float(row["coverage90"]) <= 1
    scores = scores_at(rows, [25], REGRET)
    for name in ("maximum-variance", "random"):
        last = [float(r["regret"]) for r in rows if r["row"] == "run" and r["mission"] == name]
        assert scores[name].mean[0] == pytest.approx(np.mean(last))


def test_missions_with_different_kinds_of_questions_are_not_compared():
    Path("optimum.toml").write_text(
        Path("random.toml")
        .read_text()
        .replace('kind = "level-set"\nthreshold = { quantile = 0.6 }', 'kind = "optimum"')
    )
    with pytest.raises(InputError, match=r"random\.toml: level-set, optimum\.toml: optimum"):
        compare(["random.toml", "optimum.toml"], 1, 1, Path("t.csv"))
    assert not Path("t.csv").exists()


def test_the_cost_to_a_target_is_that_of_the_mean_curve():
    rows = [
        step("a", "0", "10", "0.2"),
        step("a", "0", "20", "1.0"),
        step("a", "1", "12", "0.4"),
        step("a", "1", "15", "0.8"),
        step("b", "0", "10", "0.3"),
    ]
    found = targets(rows, 0.85, F1)
    assert found["a"] == (20.0, 1), "the mean of 1.0 and 0.8; one of the two runs reached it"
    assert found["b"].reached == 0
    assert np.isnan(found["b"].cost)
    assert targets(rows, 0.8)["a"] == (20.0, 2)
    assert targets(rows, 0.6)["a"] == (20.0, 2)
    assert targets(rows, 0.5)["a"] == (15.0, 2)


def test_a_regret_reaches_a_target_from_above():
    rows = [{**step("a", "0", cost, ""), "regret": regret} for cost, regret in (("5", "2"), ("9", "0.1"))]
    assert targets(rows, 0.1, REGRET)["a"] == (9.0, 1)
    assert targets(rows, 2.5, REGRET)["a"] == (5.0, 1)


def test_the_calibration_is_a_mean_over_finished_runs():
    rows = [
        {"row": kind, "mission": name, "coverage90": share}
        for kind, name, share in (
            ("step", "a", "0.1"),
            ("run", "a", "0.8"),
            ("run", "a", "1.0"),
            ("run", "b", ""),
        )
    ]
    assert calibration(rows) == {"a": pytest.approx(0.9)}


@pytest.mark.slow
def test_compiled_loops_of_a_job_use_one_thread():
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=trials._one_numba_thread) as pool:
        assert pool.submit(numba_threads).result() == 1


def numba_threads():
    import numba

    return numba.config.NUMBA_NUM_THREADS


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "level-set",
            [
                "mean F1 at equal cost, ± one standard error over 2 starts in one field; it says",
                "to 0.5 (s)",
                "coverage90",
            ],
        ),
        ("optimum", ["mean regret at equal cost (smaller is better), ±", "to 0.5 (s)", "coverage90"]),
    ],
)
def test_the_command_prints_the_cost_to_targets_and_the_calibration(said, question, parts):
    asked = MISSION.replace('"truvar"', '"random"')
    if question == "optimum":
        asked = asked.replace('kind = "level-set"\nthreshold = { quantile = 0.6 }', 'kind = "optimum"')
    Path("asked.toml").write_text(asked)
    args = ("asked.toml", "--starts", "2", "--jobs", "1", "--out", "t.csv", "--at", "20")
    text = said("compare", *args, "--target", "0.5", "--target", "1e-9" if question == "optimum" else "1")
    for part in parts:
        assert part in text
    line = next(x for x in text.splitlines() if x.startswith("asked"))
    assert "never; " in line
    assert " of 2 runs" in line
    assert "%" in line
    assert line.rstrip().endswith(" 2")


def test_the_command_says_beyond_which_cost_scores_stay_the_same(command):
    _, out, _ = command(
        "compare", MISSIONS[0], "--starts", 1, "--jobs", 1, "--out", "t.csv", "--at", 5, "--at", 1e6
    )
    assert "the smallest battery, missions keep their last score" in " ".join(out.split())


@pytest.mark.parametrize("target", ["0", "-1", "1.5", "nan"])
def test_a_target_outside_the_range_of_f1_is_an_error(command, target):
    code, _, err = command("compare", "random.toml", "--out", "t.csv", "--target", target)
    assert code == 2
    assert "expected: an F1 above 0 and at most 1" in err
    assert not Path("t.csv").exists()


def test_the_command_prints_and_draws_scores_at_the_given_costs(command):
    code, out, err = command(
        "compare", *MISSIONS, "--starts", 2, "--jobs", 1, "--out", "t.csv", "--at", 5, "--at", 20
    )
    assert (code, err) == (0, "")
    scores = scores_at(rows_of("t.csv"), [5, 20])
    for mission in ("truvar", "random"):
        line = next(x for x in out.splitlines() if x.startswith(mission)).split()
        printed = [float(x) for x in line if x[0] in "01"][:2]
        assert printed == pytest.approx(scores[mission].mean, abs=5e-4)
        assert line[-1] == "2"
    assert "5 s" in out
    assert "keep their last score" not in out
    assert "table: t.csv, picture: t.png" in out
    assert Path("t.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_command_prints_paired_differences_from_the_first_mission(said):
    text = said("compare", *reversed(MISSIONS), "--starts", 2, "--draws", 2, "--out", "t.csv", "--at", 20)
    assert "± one standard error over 2 fields\n" in text
    below = text[text.index("difference from random, same field and start") :].splitlines()
    gap = differences_at(rows_of("t.csv"), [20], "random")["truvar"]
    assert below[2].split()[:3] == ["truvar", f"{gap.mean[0]:+.3f}", f"±{gap.error[0]:.3f}"]
    assert below[2].split()[-1] == "4"
    assert ("*" in below[2]) == gap.clear[0]


def test_missions_with_different_cost_units_are_not_compared(tmp_path):
    with pytest.raises(InputError, match="different cost units"):
        compare(["lake-level-set", "lake-level-set-unit-cost"], 1, 1, tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize("override", [{"draw": 1}, {"seed": 1}, {"agent": {"start": [0, 0]}}], ids=str)
def test_draw_seed_and_start_can_not_be_overridden(tmp_path, override):
    with pytest.raises(InputError, match="a comparison sets"):
        compare(["lake-level-set"], 1, 1, tmp_path / "t.csv", override)


# -- performance profiles ----------------------------------------------------------------------------------


def table_of(costs):
    """Return rows in which missions reach F1 0.9 at a cost by (draw, start); None if they never do."""
    rows = []
    for mission, runs in costs.items():
        for (draw, start), cost in runs.items():
            base = dict.fromkeys(COLUMNS, "") | {"mission": mission, "draw": str(draw), "start": str(start)}
            base |= {"battery": "100", "cost_unit": "s"}
            rows.append(base | {"row": "step", "cost": "1", "f1": "0.2"})
            rows += [] if cost is None else [base | {"row": "step", "cost": str(cost), "f1": "0.95"}]
            rows.append(base | {"row": "run", "cost": "90"})
    return rows


PROBLEMS = {
    "a": {(0, 0): 10, (0, 1): 40, (1, 0): 30, (1, 1): None},
    "b": {(0, 0): 20, (0, 1): 20, (1, 0): None, (1, 1): None},
}


def test_a_profile_is_the_fraction_of_problems_within_a_factor_of_the_lowest_cost():
    profiles = performance_profiles(table_of(PROBLEMS), 0.9)
    for mission, fraction, reached in (("a", [0.5, 0.75], 3), ("b", [0.25, 0.5], 2)):
        profile = profiles[mission]
        assert profile.factors.tolist() == [1.0, 2.0]
        assert profile.fraction.tolist() == fraction
        assert (profile.reached, profile.problems, profile.draws) == (reached, 4, 2)


def test_a_profile_never_falls_and_lies_in_its_interval():
    rng = np.random.default_rng(0)
    costs = {m: {(k, s): rng.uniform(5, 50) for k in range(3) for s in range(4)} for m in "abc"}
    profiles = performance_profiles(table_of(costs), 0.9)
    assert sum(p.fraction[0] for p in profiles.values()) == pytest.approx(1)
    for profile in profiles.values():
        low, high = profile.interval90
        assert (np.diff(profile.fraction) >= 0).all()
        assert profile.fraction[-1] == 1
        assert ((low <= profile.fraction) & (profile.fraction <= high)).all()


def test_the_bootstrap_draws_whole_fields_again():
    alike = {"a": {(0, s): 10 for s in range(8)} | {(1, s): 20 for s in range(8)}, "b": {}}
    alike["b"] = {key: 30 - cost for key, cost in alike["a"].items()}
    low, high = performance_profiles(table_of(alike), 0.9)["a"].interval90
    assert (low[0], high[0]) == (0, 1)  # two fields: both draws may be the same one
    one = {m: {(0, s): cost for s, cost in enumerate(runs.values())} for m, runs in alike.items()}
    low, high = performance_profiles(table_of(one), 0.9)["a"].interval90
    assert 0.2 < low[0] < 0.5 < high[0] < 0.8


def test_only_problems_that_all_missions_have_tried_count():
    costs = {"a": {(0, 0): 10, (0, 1): 10}, "b": {(0, 1): 20}}
    assert performance_profiles(table_of(costs), 0.9)["a"].problems == 1
    assert performance_profiles(table_of({"a": {(0, 0): 1}, "b": {(0, 1): 1}}), 0.9) == {}


def test_a_target_that_no_mission_reaches_gives_profiles_of_zero():
    profiles = performance_profiles(table_of(PROBLEMS), 0.99)
    assert [p.fraction.tolist() for p in profiles.values()] == [[0.0], [0.0]]
    assert profile_figure(table_of(PROBLEMS), [0.99], F1).axes


def test_the_profile_picture_says_what_its_bands_are_and_names_each_target():
    first, last = profile_figure(table_of(PROBLEMS), [0.5, 0.9], F1).axes
    assert first.get_xlabel() == "factor of the lowest cost to F1 0.5"
    assert last.get_xlabel() == (
        "factor of the lowest cost to F1 0.9\nband: 90% bootstrap interval over 2 fields"
    )
    lines = {line.get_label(): line for line in last.lines}
    np.testing.assert_allclose(lines["a"].get_ydata(), [0.5, 0.75, 0.75])
    assert {t.get_text() for t in last.figure.legends[0].get_texts()} == {"a", "b"}


def test_the_score_of_a_table_is_the_one_that_its_columns_hold():
    rows = table_of(PROBLEMS)
    assert score_in(rows) is F1
    assert score_in([row | {"f1": "", "regret": "0.3"} for row in rows]) is REGRET
    assert score_in([row | {"f1": "", "regret": "0.3", "best_regret": "0.2"} for row in rows]) is BEST_REGRET


def test_plot_draws_a_comparison_again_from_its_table(said, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(Path("lake.csv"), table_of(PROBLEMS))
    said("plot", "lake.csv", "comparison", "--band", "interval")
    said("plot", "lake.csv", "profile", "--target", "0.9", "--format", "svg")
    assert Path("lake-comparison.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in Path("lake-profile.svg").read_bytes()
    for args, message in (
        (["profile"], "no target was given"),
        (["profile", "--target", "2"], "the target is 2.0"),
        (["curve"], "unknown picture of a comparison 'curve'"),
        (["comparison", "--band", "se"], "unknown band 'se'"),
    ):
        code, _, error = command("plot", "lake.csv", *args)
        assert code == 2
        assert message in error


@pytest.mark.parametrize(
    ("given", "name", "policy", "called"),
    [
        ("gp-lake", "gp-lake", None, "gp-lake"),
        ("gp-lake with tour", "gp-lake", {"kind": "tour"}, "gp-lake with tour"),
        ("my/lake with noise.toml", "my/lake with noise.toml", None, "lake with noise"),
        (
            "lake with noise.toml with tour",
            "lake with noise.toml",
            {"kind": "tour"},
            "lake with noise with tour",
        ),
    ],
)
def test_a_mission_may_be_compared_with_another_policy(given, name, policy, called):
    found, overrides = contender(given, {"draw": 1})
    assert (found, overrides.get("policy"), overrides["draw"]) == (name, policy, 1)
    assert label(given) == called


def test_a_policy_does_not_replace_something_else_that_is_set():
    with pytest.raises(InputError, match="conflicts with --set policy=3"):
        contender("gp-lake with tour", {"policy": 3})
    with pytest.raises(InputError, match=r"--set policy\.kind=gchk"):
        contender("gp-lake with tour", {"policy": {"kind": "gchk"}})
