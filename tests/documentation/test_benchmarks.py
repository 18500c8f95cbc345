"""Benchmarks run and write what they measured; speed itself is not tested here."""

import json
import runpy
import subprocess
import sys

import pytest
from checkout import ROOT

BENCHMARKS = ROOT / "benchmarks"


def run(*arguments):
    command = [sys.executable, BENCHMARKS / "run.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_benchmark_prints_and_writes_one_row(tmp_path):
    file = tmp_path / "rows.json"
    done = run("gp-append-500", "gp-fit", "--no-peers", "--runs", "1", "--threads", "1", "--json", file)
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())
    assert [row["name"] for row in rows] == ["gp-append-500", "gp-fit"]
    for row in rows:
        assert row["fieldbo_s"] > 0
        assert (row["peer"], row["peer_s"], row["ratio"]) == (None, None, None)
        assert (row["runs"], row["threads"]) == (1, 1)
        assert row["name"] in done.stdout


def test_an_unknown_benchmark_is_rejected_with_the_valid_names(monkeypatch, capsys):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr(sys, "argv", ["run.py", "gp-apend-500", "--no-peers"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(BENCHMARKS / "run.py"), run_name="__main__")
    told = capsys.readouterr().err
    assert end.value.code == 2
    assert "gp-apend-500" in told
    assert "gp-append-500, gp-append-2000" in told


@pytest.mark.slow
def test_a_rollout_is_timed_without_its_peers(tmp_path):
    file = tmp_path / "rows.json"
    done = run("rollout-scatter500", "--no-peers", "--runs", "1", "--threads", "1", "--json", file)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(file.read_text())
    assert row["name"] == "rollout-scatter500"
    assert row["fieldbo_s"] > 0
    assert row["peer"] is None


@pytest.mark.slow
def test_earlier_readings_make_a_mission_cheaper():
    command = [sys.executable, BENCHMARKS / "earlier_readings.py", "--fields", "1", "--changes", "0.1"]
    done = subprocess.run([*command, "--models", "known"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heading, row = done.stdout.splitlines()
    assert heading.split()[-1] == "worst"
    assert float(row.split()[-1]) < 0.7


@pytest.mark.slow
def test_rules_with_and_without_readings_on_the_way_are_compared():
    command = [sys.executable, BENCHMARKS / "on_the_way.py", "moves", "--draws", "1", "--starts", "1"]
    done = subprocess.run([*command, "--battery", "150"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one_step, tour = done.stdout.splitlines()
    assert one_step.startswith("OneStepRisk, 1 runs: mean F1 0.9 ")
    assert tour.startswith("Tour, 1 runs: mean F1 0.9 ")


@pytest.mark.slow
def test_advice_is_checked_in_fields_that_it_has_not_seen(tmp_path):
    command = [sys.executable, BENCHMARKS / "advise_coverage.py", "--only", "gp-square", "--repeats", "1"]
    command += ["--fields", "4", "--target", "0.3", "--jobs", "1", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("| gp-square | all |")
    assert "of 4: " in done.stdout
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.stdout == done.stdout


def test_times_of_commands_are_in_relation_to_imports(monkeypatch, capsys):
    program = runpy.run_path(str(BENCHMARKS / "start_up.py"))
    monkeypatch.setitem(program["timings"].__globals__, "processor_s", lambda command, _: len(command))
    monkeypatch.setattr(sys, "argv", ["start_up.py", "help", "--repeat", "1"])
    program["main"]()
    heading, _, imports, command_help = capsys.readouterr().out.splitlines()
    assert heading.split("|")[4].strip() == "ratio"
    assert float(imports.split("|")[4]) == 1
    assert float(command_help.split("|")[4]) == pytest.approx(4 / 3, abs=0.1)


@pytest.mark.slow
def test_commands_are_timed_in_relation_to_imports():
    command = [sys.executable, BENCHMARKS / "start_up.py", "help", "--repeat", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heading, _, imports, command_help = done.stdout.splitlines()
    assert heading.split("|")[4].strip() == "ratio"
    assert float(imports.split("|")[4]) == 1
    assert float(command_help.split("|")[3]) > 0
