"""The command line: output, files, and reproducible runs."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import tomllib
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray
from jsonschema import Draft202012Validator
from small_files import mission_text, world_text
from waiting import SLOW_S, until

import fieldbo
from fieldbo._numerics import compiled as loops
from fieldbo.cli import _show_notes, app
from fieldbo.mission.files import shipped
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.schema import json_schema
from fieldbo.record.record import Record
from fieldbo.runs import runner

WORLD = world_text(
    ("along", 0, 10, 5),
    ("depth", 0, 4, 5),
    title="a field of 25 sites",
    field={"kind": "gp-draw", "length_scales": [3, 1]},
    value={
        "name": "chlorophyll",
        "unit": "mg m-3",
        "standard_name": "mass_concentration_of_chlorophyll_in_sea_water",
    },
    cost={"kind": "transect"},
)
LIVE = WORLD.replace('[field]\nkind = "gp-draw"\nlength_scales = [3, 1]\n', "")
MISSION = mission_text(
    seed=3,
    threshold=0.2,
    battery=60,
    agent={"start": [2.5, 1]},
    model={"learn": False, "length_scales": [3, 1], "mean": 0},
)
FILES = {
    "run.sqlite",
    "run.count",
    "mission.toml",
    "summary.json",
    "observations.csv",
    "path.csv",
    "curve.csv",
    "ledger.csv",
    "map.nc",
    "path.png",
    "map.png",
    "curve.png",
}
PNG = b"\x89PNG\r\n\x1a\n"
MAIN = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from fieldbo.cli import main; main()"
)


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds two worlds and a mission."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("tiny", WORLD), ("live", LIVE)):
        Path("worlds", name).mkdir(parents=True)
        Path("worlds", name, "world.toml").write_text(text)
    Path("m.toml").write_text(MISSION)


@pytest.fixture
def said(said):
    """Return the output of the command line on a single line."""

    def run(*args):
        return " ".join(said(*args).replace("│", " ").split())

    return run


def process(*args, **options):
    """Start the command line in a new process."""
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def rows_of(file):
    with Path(file).open(newline="") as lines:
        return list(csv.DictReader(lines))


def observed(folder):
    """Return sites and values of the observations in a run's record."""
    with Record(Path(folder) / "run.sqlite") as record:
        messages = [r.message for r in record.rows() if r.kind == "observation"]
    sites = [[float(x) for x in s] for o in messages for s in o.sites]
    return sites, [float(v) for o in messages for v in o.values]


# -- help ------------------------------------------------------------------------------------------------


def test_the_help_lists_every_command_and_how_to_start(said):
    text = said("--help")
    for name in (
        "run",
        "check",
        "worlds",
        "missions",
        "schema",
        "show",
        "plot",
        "animate",
        "compare",
        "advise",
        "new",
    ):
        assert f" {name} " in text
    assert "Start with: fieldbo run lake-level-set" in text
    assert said("-h") == text


def test_the_help_of_run_has_examples_exit_codes_and_every_file(said):
    text = said("run", "--help")
    for example in ("fieldbo run lake-level-set", "--battery 3000 --seed 1", "--policy gchk"):
        assert example in text
    for option in ("--seed", "--battery", "--out", "--set", "--by-hand"):
        assert option in text
    for code in ("0: done", "2: invalid input, nothing was started", "130: stopped by Ctrl-C"):
        assert code in text
    for name in FILES:
        assert name in text


@pytest.mark.parametrize(
    "args",
    [
        ("check",),
        ("worlds",),
        ("missions",),
        ("policies",),
        ("show",),
        ("plot",),
        ("animate",),
        ("schema",),
        ("compare",),
        ("advise",),
        ("new",),
        ("new", "world"),
    ],
    ids=" ".join,
)
def test_every_command_has_a_help(said, args):
    assert "Usage:" in said(*args, "--help")


def test_the_help_of_compare_has_examples_and_describes_the_table(said):
    text = said("compare", "--help")
    assert "fieldbo compare lake-level-set --policy tour --policy gchk --starts 12 --out lake.csv" in text
    assert "one row per step" in text


def test_version_prints_the_version_of_the_package(said):
    assert said("--version") == f"fieldbo {fieldbo.__version__}"


def test_worlds_lists_shipped_worlds_and_your_own(said):
    text = said("worlds")
    for name in ("lake-transect", "gp-lake", "tiny", "live", "a field of 25 sites"):
        assert name in text


def test_missions_all_lists_every_shipped_mission_in_groups(said):
    Path("missions").mkdir()
    Path("missions/mine.toml").write_text('title = "my own question"\n' + MISSION)
    text = said("missions", "--all")
    for name in [*fieldbo.list_missions(), "mine", "my own question"]:
        assert f" {name} " in text
    for group in ("Yours", "Lake", "Wall", "Factory cells", "Papers", "Test functions"):
        assert group in text


def test_missions_lists_ten_to_begin_with_and_your_own(command):
    Path("missions").mkdir()
    Path("missions/mine.toml").write_text('title = "my own question"\n' + MISSION)
    _, text, _ = command("missions")
    names = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line.strip()]
    assert names[0] == "mine"
    assert len(names) == 11
    assert set(names) <= set(fieldbo.list_missions())
    assert "fieldbo missions --all" in text


def test_the_help_of_every_command_ends_with_the_documentation(said):
    for args in ([], *([command.name] for command in app.registered_commands), ["new"], ["new", "world"]):
        assert said(*args, "--help").endswith("Documentation: docs/ in the source tree, or make docs")


def test_policies_lists_descriptions_and_questions(said):
    text = said("policies")
    for name in POLICIES.names():
        kind = POLICIES.get(name)
        assert f" {name} " in f" {text}"
        assert " ".join(kind.__doc__.replace("`", "").split()[:4]) in text
    assert "truvar Reduce the truncated variance" in text
    assert "level-set" in text
    assert "optimum" in text


@pytest.mark.parametrize("name", POLICIES.names())
def test_policies_describes_every_setting_of_one(command, name):
    _, text, _ = command("policies", name)
    lines = text[text.index("[policy]") :].splitlines()
    names = [line.removeprefix("# ").partition(" = ")[0] for line in lines]
    for setting in fields(POLICIES.get(name)):
        assert setting.name in names
        before = lines[names.index(setting.name) - 1]
        assert before.startswith("# ") or setting.name == "drop_after", f"{setting.name} is undescribed"


def test_the_settings_that_policies_shows_can_be_copied_into_a_mission(command, said):
    _, shown, _ = command("policies", "rollout")
    table = shown[shown.index("[policy]") :]
    text = MISSION.replace('[policy]\nkind = "truvar"\n', table)
    Path("m.toml").write_text(text.replace('"level-set"\nthreshold = 0.2', '"optimum"'))
    assert "valid" in said("check", "m.toml")


def test_show_describes_and_draws_a_world(said):
    text = said("show", "tiny", "--threshold", "0.2")
    assert "world tiny: valid" in text
    assert "picture in tiny.png" in text
    assert Path("tiny.png").read_bytes().startswith(PNG)
    said("show", "worlds/tiny", "--draw", "1", "--out", "other.png")
    assert Path("other.png").read_bytes() != Path("tiny.png").read_bytes()


def test_show_of_a_live_world_draws_its_sites(said):
    text = said("show", "live", "--out", "sites.png")
    assert "none: a live world" in text
    assert "picture of the sites in sites.png" in text
    assert Path("sites.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("name", ["m.toml", "./m.toml", "lake-level-set", "mine"])
def test_check_understands_a_mission_by_name_and_by_path(said, name):
    Path("missions").mkdir()
    Path("missions/mine.toml").write_text(MISSION)
    text = said("check", name)
    assert "valid" in text
    for part in ("question", "policy", "battery", "model", "seed", "sites", "cost", "sensor", "field"):
        assert f" {part} " in text
    assert "warning" not in text


@pytest.mark.parametrize("name", ["tiny", "worlds/tiny", "worlds/tiny/world.toml"])
def test_check_understands_a_world_by_name_and_by_path(said, name):
    text = said("check", name)
    assert "world tiny: valid" in text
    assert "sites 25: along 0 to 10 m, depth 0 to 4 m" in text


def test_check_warns_if_the_prior_classifies_every_site(said):
    Path("m.toml").write_text(MISSION.replace("threshold = 0.2", "threshold = 40"))
    text = said("check", "m.toml")
    assert "warning: the prior classifies every site" in text
    assert "set model.mean" in text


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        (
            'kind = "level-set"\nthreshold = 0.2',
            "where is chlorophyll at or above 0.2 mg m-3? (scored by F1)",
        ),
        (
            'kind = "level-set"\nthreshold = { of_maximum = 0.5 }',
            "where is chlorophyll at or above 50% of its maximum? (scored by F1)",
        ),
        ('kind = "optimum"', "where is chlorophyll largest? (scored by regret)"),
        ('kind = "optimum"\ngoal = "minimise"', "where is chlorophyll smallest? (scored by regret)"),
    ],
    ids=["level set", "share", "maximum", "minimum"],
)
def test_check_prints_the_question_and_its_score(said, question, asked):
    text = MISSION.replace('kind = "level-set"\nthreshold = 0.2', question)
    Path("m.toml").write_text(text.replace('"truvar"', '"random"'))
    assert asked in said("check", "m.toml")


@pytest.mark.parametrize(
    ("threshold", "side", "number"), [("9", "above", "none"), ("-9", "below", "all")], ids=["high", "low"]
)
def test_check_warns_if_the_threshold_is_outside_the_true_values(said, threshold, side, number):
    Path("m.toml").write_text(MISSION.replace("threshold = 0.2", f"threshold = {threshold}"))
    text = said("check", "m.toml")
    assert f"warning: the threshold {threshold} lies {side} all true values," in text
    assert f"mg m-3: {number} of the sites are at or above it" in text
    said("run", "m.toml", "--out", "r", "--set", "policy.kind=random")
    (note,) = json.loads(Path("r/summary.json").read_text())["notes"]
    assert f"threshold {threshold} lies {side} all readings" in note


@pytest.mark.parametrize("world", [WORLD, LIVE], ids=["simulated", "live"])
def test_check_warns_if_the_threshold_is_below_the_limit_of_detection(said, world):
    Path("worlds/tiny/world.toml").write_text(world.replace("noise_sd = 0.1", "noise_sd = 0.1\nbelow = 20"))
    Path("m.toml").write_text(MISSION.replace("threshold = 0.2", "threshold = 5"))
    printed = said("check", "m.toml", "--set", "policy.kind=random")
    assert "warning: the threshold, 5 mg m-3, lies below the sensor's limit of detection, 20" in printed


def test_check_prints_noise_in_proportion_to_the_value_in_percent(said):
    Path("worlds/tiny/world.toml").write_text(WORLD.replace("noise_sd = 0.1", "noise_share = 0.1"))
    assert "noise sd 0 mg m-3, plus 10% of the value" in said("check", "worlds/tiny")


def test_a_share_of_noise_in_percent_is_an_error_with_a_fix(command):
    Path("worlds/tiny/world.toml").write_text(WORLD.replace("noise_sd = 0.1", "noise_share = 10"))
    code, _, error = command("check", "worlds/tiny")
    assert code == 2
    assert "where:    worlds/tiny/world.toml: sensor.noise_share" in error
    assert "write 0.1 for 10%" in error


def test_check_prints_sensor_levels_and_a_box(said):
    levels = "[sensor]\nlevels = [{ variance = 0.0001, cost = 5 }, { variance = 0.04, cost = 1 }]"
    world = WORLD.replace("[sensor]\nnoise_sd = 0.1", levels).replace('kind = "grid"', 'kind = "box"')
    Path("worlds/tiny/world.toml").write_text(
        world.replace(", count = 5", "").replace("]\n[field]", "]\nrepresenters = 32\n[field]")
    )
    text = said("check", "worlds/tiny")
    assert "noise sd by level: 0.01 mg m-3 for 5 s, 0.2 mg m-3 for 1 s" in text
    assert "sites 32, representing a box: along 0 to 10 m" in text


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        (["battery=1"], "not enough for any reading: the cheapest reading, at level 2, takes 2 units"),
        (
            ["battery=14"],
            "14 units is not enough for the initial reading at the start, which takes 15 units at level 0",
        ),
        (
            ["battery=4", "reserve=2", "margin=0.5", "home=[0, 0]"],
            "takes 5 units with the trip home and margin and reserve",
        ),
        (
            ["battery=16"],
            "only enough for the initial reading: the cheapest reading after it, at level 2, takes 2 units",
        ),
        (["battery=17"], None),
    ],
)
def test_check_warns_if_the_battery_is_not_enough_for_the_first_readings(said, settings, warned):
    text = said("check", "gp-level-noise", *(part for s in settings for part in ("--set", f"agent.{s}")))
    assert "start to site: 2 to 15 units, over all levels" in text
    assert ("warning: the battery of" in text) == (warned is not None)
    assert (warned or "") in text


def test_check_prints_limits_and_how_often_the_model_learns(said):
    text = said("check", "wall-worst-crack", "--set", "agent.time_limit_s=900")
    assert "limits reserve 4 Wh, margin 10%, at most 15 min model" in text
    text = said("check", "branin")
    assert "limits at most 140 steps model" in text
    assert "refitted every reading seed" in text


def test_check_prints_a_trend_a_learned_noise_and_a_goal(said):
    sets = ("--set", "model.mean=linear", "--set", "model.noise=learned", "--set", "stop.expected_f1=0.8")
    text = said("check", "lake-level-set", *sets)
    assert "matern52, no transform, linear trend, noise learned, refitted" in text
    assert "stop once F1 is at least 0.8, with a probability of 0.9" in text
    text = said("check", "branin", "--set", "stop.regret=0.02")
    assert "stop once the regret is at most 2% of the range of the readings" in text


def test_check_of_a_world_rejects_settings(command):
    code, _, err = command("check", "tiny", "--set", "agent.battery=1")
    assert code != 0
    assert "does not apply to a world" in err


# -- the schema ------------------------------------------------------------------------------------------


def faults(value, schema):
    """Return where `value` violates a JSON Schema, and which keyword."""
    found = Draft202012Validator(schema).iter_errors(value)
    return {f"{error.json_path} breaks {error.validator}" for error in found}


schema_of = cache(json_schema)
SHIPPED = [
    *(("mission", f) for f in sorted(shipped("missions").glob("*.toml"))),
    *(("world", f) for f in sorted(shipped("worlds").glob("*/world.toml"))),
]


@pytest.mark.parametrize("kind", ["mission", "world"])
def test_schema_prints_the_json_schema_of_all_installed_kinds(command, kind):
    code, out, err = command("schema", kind)
    assert (code, err) == (0, "")
    schema = json.loads(out)
    assert schema == json_schema(kind)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    for table in ("policy",) if kind == "mission" else ("field", "cost"):
        for option in schema["properties"][table]["oneOf"]:
            assert "kind" in option["required"]
            assert option["additionalProperties"] is False


@pytest.mark.parametrize(("kind", "file"), SHIPPED, ids=lambda v: v if isinstance(v, str) else v.stem)
def test_every_shipped_file_matches_the_schema(kind, file):
    assert faults(tomllib.loads(file.read_text()), schema_of(kind)) == set()


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("battery = 60", "batery = 60", "$.agent breaks additionalProperties"),
        ("battery = 60", "battery = true", "$.agent.battery breaks anyOf"),
        ("threshold = 0.2", "threshold = { quantile = 2 }", "$.question breaks oneOf"),
        ('"truvar"', '"truvr"', "$.policy breaks oneOf"),
        ('"truvar"', '"truvar"\nper_cots = true', "$.policy breaks oneOf"),
        ("learn = false", "lern = false", "$.model breaks additionalProperties"),
        ("seed = 3", "seed = -3", "$.seed breaks minimum"),
    ],
)
def test_the_schema_finds_errors_in_a_mission(old, new, fault):
    schema = schema_of("mission")
    assert faults(tomllib.loads(MISSION), schema) == set()
    assert old in MISSION
    assert fault in faults(tomllib.loads(MISSION.replace(old, new)), schema)


# -- runs ------------------------------------------------------------------------------------------------


def test_run_writes_every_documented_file_and_they_agree(said):
    text = said("run", "m.toml", "--out", "r")
    assert "in r: path.png, map.png, curve.png, summary.json and more" in text
    assert {p.name for p in Path("r").iterdir()} == {*FILES, "tiny"}
    summary = json.loads(Path("r/summary.json").read_text())
    for key in ("f1", "expected_f1", "cost", "steps", "end_reason", "area_above", "threshold", "seed"):
        assert key in summary
    for key in ("expected_f1", "area_above"):
        low, high = summary[f"{key}_interval90"]
        assert low <= summary[key] <= high
    assert summary["complete"] is True
    assert summary["end_reason"] == "battery spent"
    assert 0 < summary["cost"] <= summary["battery"] == 60
    assert 0 <= summary["f1"] <= 1

    rows = rows_of("r/observations.csv")
    assert len(rows) == summary["readings"] == summary["steps"]
    assert sum(float(r["cost"]) for r in rows) == pytest.approx(summary["cost"])
    assert [[float(r["along"]), float(r["depth"])] for r in rows] == observed("r")[0]
    assert [float(r["value"]) for r in rows] == observed("r")[1]
    way = rows_of("r/path.csv")
    assert (float(way[0]["along"]), float(way[0]["depth"])) == (2.5, 1.0)
    assert len(rows_of("r/curve.csv")) == summary["steps"]
    for name in ("path.png", "map.png", "curve.png"):
        assert Path("r", name).read_bytes().startswith(PNG)
    with Record(Path("r/run.sqlite")) as record:
        assert record.end_reason == "battery spent"
    assert Path("r/tiny/world.toml").read_text() == WORLD


def test_the_map_has_cf_names_and_units(said):
    said("run", "m.toml", "--out", "r", "--set", "agent.max_steps=3")
    with xarray.open_dataset("r/map.nc", engine="scipy") as data:
        assert data.attrs["Conventions"].startswith("CF-")
        assert dict(data.sizes) == {"along": 5, "depth": 5}
        assert data["mean"].attrs["standard_name"] == "mass_concentration_of_chlorophyll_in_sea_water"
        assert data["sd"].attrs["standard_name"].endswith("standard_error")
        for name in ("mean", "sd"):
            assert data[name].attrs["units"] == "mg m-3"
            assert np.isfinite(data[name]).all()
        assert data["exceedance"].attrs["units"] == "1"
        assert ((data["exceedance"] >= 0) & (data["exceedance"] <= 1)).all()
        assert data["class"].attrs["flag_meanings"] == "below above not_inspected"
        assert set(np.unique(data["class"])) <= {0, 1, 2}
        assert data["depth"].attrs == {
            "long_name": "depth",
            "units": "m",
            "positive": "down",
            "axis": "Z",
            "standard_name": "depth",
        }


def test_readings_depend_on_the_seed(said):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        said("run", "m.toml", "--seed", seed, "--battery", "30 s", "--out", name)
    a, b, c = (Path(n, "observations.csv").read_bytes() for n in "abc")
    assert a.replace(b"a/", b"r/") == b.replace(b"b/", b"r/")
    assert a.replace(b"a/", b"r/") != c.replace(b"c/", b"r/")
    assert [float(r["value"]) for r in rows_of("a/observations.csv")] != [
        float(r["value"]) for r in rows_of("c/observations.csv")
    ]


def test_the_mission_in_a_run_folder_repeats_the_run_anywhere(said, tmp_path, monkeypatch):
    said("run", "m.toml", "--seed", "5", "--set", "policy.per_cost=false", "--out", "r")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "r").rename(elsewhere / "kept")
    (tmp_path / "worlds").rename(tmp_path / "gone")
    monkeypatch.chdir(elsewhere)
    said("run", "kept/mission.toml", "--out", "again")
    assert Path("again/path.csv").read_bytes() == Path("kept/path.csv").read_bytes()
    assert observed("again") == observed("kept")


@pytest.mark.parametrize(("goal", "side"), [("maximise", "largest"), ("minimise", "smallest")])
def test_a_run_for_an_optimum_writes_every_file_and_prints_its_regret(said, goal, side):
    question = f"question={{kind='optimum',goal='{goal}'}}"
    text = said("run", "m.toml", "--set", question, "--set", "policy.kind=random", "--out", "r")
    assert {p.name for p in Path("r").iterdir()} == {*FILES, "tiny"}
    summary = json.loads(Path("r/summary.json").read_text())
    assert f"{side} estimate {rows_of('r/curve.csv')[-1]['reported_value'][:4]}" in text
    assert f"{summary['regret']:.3g} against the truth" in text
    assert f"{summary['reported_value']:.4g} mg m-3 (" in text
    assert f"at along {summary['reported_site'][0]:.4g} m, depth {summary['reported_site'][1]:.4g} m" in text
    with xarray.open_dataset("r/map.nc", engine="scipy") as data:
        assert set(data.data_vars) == {"mean", "sd", "exceedance"}
        assert data.attrs["reported_value"] == pytest.approx(summary["reported_value"])
        assert (">=" if goal == "maximise" else "<=") in data["exceedance"].attrs["long_name"]
    with Record(Path("r/run.sqlite")) as record:
        assert record.end_reason == "battery spent"


def test_a_run_for_a_share_of_the_maximum_prints_the_threshold(said):
    question = "question={kind='level-set',threshold={of_maximum=0.5}}"
    Path("m.toml").write_text(MISSION.replace("threshold = 0.2", "threshold = { of_maximum = 0.4 }"))
    text = said("run", "m.toml", "--set", "policy.kind=random", "--set", question, "--out", "r")
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["threshold_of_maximum"] == 0.5
    assert f"above {summary['threshold']:.4g} mg m-3:" in text
    assert "50% of the maximum" in text


def test_the_map_of_a_box_is_indexed_by_site(said):
    world = WORLD.replace('kind = "grid"', 'kind = "box"').replace(", count = 5", "")
    Path("worlds/tiny/world.toml").write_text(world.replace("]\n[field]", "]\nrepresenters = 32\n[field]"))
    said("run", "m.toml", "--set", "policy.kind=random", "--out", "r")
    with xarray.open_dataset("r/map.nc", engine="scipy") as data:
        assert dict(data.sizes) == {"site": 32}
        assert data["along"].dims == data["depth"].dims == data["mean"].dims == ("site",)


def test_compiling_the_loops_is_reported_once(said, monkeypatch):
    real = runner.run

    def compiling(*args, **options):
        for _ in range(3):
            for listener in loops._listeners:
                listener()
        return real(*args, **options)

    monkeypatch.setattr(runner, "run", compiling)
    before = list(loops._listeners)
    text = said("run", "m.toml", "--out", "r")
    assert text.count("compiling the fast loops, once on this machine") == 1
    assert loops._listeners == before


def test_run_folders_count_up(said):
    short = ("--set", "agent.max_steps=1")
    assert "in runs/m-1:" in said("run", "m.toml", *short)
    assert "in runs/m-2:" in said("run", "m.toml", *short)
    Path("runs/m-7").mkdir()
    assert "in runs/m-8:" in said("run", "m.toml", *short)
    assert sorted(p.name for p in Path("runs").iterdir()) == ["m-1", "m-2", "m-7", "m-8"]


def test_set_replaces_keys_also_in_the_run_folder(said):
    said("run", "m.toml", "--set", "question.threshold=0.5", "--set", "policy.kind=gchk", "--out", "r")
    summary = json.loads(Path("r/summary.json").read_text())
    assert (summary["threshold"], summary["policy"]) == (0.5, "gchk")
    settings = tomllib.loads(Path("r/mission.toml").read_text())
    assert settings["question"]["threshold"] == 0.5
    assert settings["policy"] == {"kind": "gchk"}
    assert said("check", "r/mission.toml")


# -- by hand, and Ctrl-C ---------------------------------------------------------------------------------

TYPED = [
    *("", "abc", "1,25", ""),  # where it was sent; a wrong value, then one; the declared cost
    "skip",
    *("99 99", "1", "5 2", "nan", "0.5", "-1", "7"),  # two wrong positions, then another place
]


@pytest.mark.slow
@pytest.mark.parametrize("world", ["tiny", "live"])
def test_by_hand_keeps_typed_values_when_the_input_ends(world):
    hand = process("run", "m.toml", "--by-hand", "--set", f"world={world}", "--out", "r")
    out, err = hand.communicate("\n".join(TYPED) + "\n", timeout=SLOW_S)
    assert hand.returncode == 130
    assert "Traceback" not in err
    text = " ".join(out.split())
    assert "r/0: go via (2.5, 0) to along 2.5 m, depth 1 m (about 8 s)" in text
    assert text.count("try again") == 4
    assert "[99.0, 99.0] is outside the domain (along, depth); type it again to confirm" in text
    assert "'abc' is not a number" in text
    assert "enter 2 coordinates (along, depth), not 1" in text
    assert "the cost must be between 0 and the battery" in text
    assert "Stopped by you. The run folder is complete up to the last observation (2 readings)." in text
    assert {p.name for p in Path("r").iterdir()} == {*FILES, world}
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["end_reason"] is None
    assert summary["complete"] is False
    assert summary["cost"] == 15
    assert (summary["f1"] is None) == (world == "live")
    assert observed("r") == ([[2.5, 1.0], [5.0, 2.0]], [1.25, 0.5])
    with Record(Path("r/run.sqlite")) as record:
        kinds = [row.kind for row in record.rows()]
    assert kinds == ["query", "observation", "query", "rejected", "query", "observation", "query"]
    assert [float(r["value"]) for r in rows_of("r/observations.csv")] == [1.25, 0.5]


@pytest.mark.slow
def test_ctrl_c_keeps_every_observation():
    running = process("run", "gp-lake", "--policy", "maximum-variance", "--battery", "10000000", "--out", "r")
    try:
        until(lambda: running.poll() is not None or enough("r", 15))
        assert running.poll() is None, "the run is long enough"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=SLOW_S)
    finally:
        running.kill()
    assert running.returncode == 130
    assert "Traceback" not in err
    assert "Stopped by you. The run folder is complete up to the last observation" in " ".join(out.split())
    assert {p.name for p in Path("r").iterdir()} == {*FILES, "gp-lake"}
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["complete"] is False
    assert summary["end_reason"] is None
    sites, values = observed("r")
    rows = rows_of("r/observations.csv")
    assert len(values) == summary["readings"] >= 15
    assert [float(r["value"]) for r in rows] == values
    assert [[float(r["along"]), float(r["depth"])] for r in rows] == sites
    with Record(Path("r/run.sqlite")) as record:
        assert record.end_reason is None


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGHUP, and a terminated process just ends")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("mission", ["gp-lake", "m.toml"])
def test_a_signal_stops_a_run_in_the_background_whose_ctrl_c_is_ignored(mission, number):
    arguments = (
        ["--by-hand"] if mission == "m.toml" else ["--policy", "maximum-variance", "--battery", "10000000"]
    )
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]  # as a script does for `... &`
    running = subprocess.Popen(
        [*ignoring, sys.executable, "-m", "fieldbo", "run", mission, *arguments, "--out", "r"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if mission == "m.toml":
            running.stdin.write("\n0.5\n\n")
            running.stdin.flush()
        until(lambda: enough("r", 1))
        running.send_signal(signal.SIGINT)
        more = len(observed("r")[1]) + 1
        if mission == "m.toml":
            running.stdin.write("\n0.5\n\n")
            running.stdin.flush()
        until(lambda: running.poll() is not None or enough("r", more))
        assert running.poll() is None, "Ctrl-C stays ignored"
        running.send_signal(number)
        out, err = running.communicate(timeout=SLOW_S)
    finally:
        running.kill()
    assert running.returncode == 128 + number
    assert "Traceback" not in err
    assert f"Stopped by {number.name}. The run folder is complete up to the" in " ".join(out.split())
    assert json.loads(Path("r/summary.json").read_text())["end_reason"] is None
    with Record(Path("r/run.sqlite")) as record:
        assert record.end_reason is None


def enough(folder, least):
    """Return True once a run in progress has recorded a number of observations."""
    try:
        return len(observed(folder)[1]) >= least
    except fieldbo.FieldboError:
        return False


@pytest.mark.slow
def test_a_value_without_a_typed_cost_is_kept_at_the_planned_cost():
    hand = process("run", "m.toml", "--by-hand", "--out", "r")
    out, _ = hand.communicate("\n0.5\n\n\n0.75\n", timeout=SLOW_S)
    assert hand.returncode == 130
    assert "Stopped by you" in out
    assert [float(row["value"]) for row in rows_of("r/observations.csv")] == [0.5, 0.75]


# -- policies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["gchk", "gchk,per_cost=true", "gchk, per_cost = true"])
def test_a_mission_takes_another_policy(command, text):
    code, out, _ = command("check", "lake-level-set", "--policy", text)
    assert code == 0
    assert f"GCHK(per_cost={'true' in text}," in out


def test_set_changes_the_settings_of_the_policy(command):
    _, out, _ = command("check", "gp-lake", "--policy", "gchk", "--set", "policy.kappa=2")
    assert "kappa=2.0" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--policy", "gchk,per_cost"), "'per_cost' is not a setting"),
        (("--policy", "gchk,=1"), "'=1' is not a setting"),
        (("--policy", ""), "policy.kind"),
        (("--policy", "gchkk"), "did you mean 'gchk'?"),
        (("--policy", "gchk", "--set", "policy.kind=tour"), "both --policy gchk and --set policy.kind=tour"),
        (("--policy", "gchk,kappa=1", "--set", "policy.kappa=2"), "--set policy.kappa=2"),
        (("--policy", "gchk", "--set", "policy=3"), "--policy conflicts with --set policy=3"),
    ],
)
def test_a_wrong_policy_is_rejected(command, arguments, says):
    code, _, err = command("check", "gp-lake", *arguments)
    assert code == 2
    assert says in err


def test_a_world_takes_no_policy(command):
    code, _, err = command("check", "crack-wall", "--policy", "tour")
    assert code == 2
    assert "--policy tour does not apply to a world" in err


def test_a_note_is_printed_once_without_the_line_of_code(capsys):
    others = []
    show = _show_notes(lambda *warning: others.append(warning))
    for _ in range(2):
        show(FutureWarning("old is now new"), FutureWarning, "file.py", 3)
    show("overflow", RuntimeWarning, "file.py", 4)
    assert capsys.readouterr().err == "note: old is now new\n"
    assert others == [("overflow", RuntimeWarning, "file.py", 4)]
