"""What a person writes wrong: each is refused with exit code 2, a message that helps, and nothing written."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import tomllib
from datetime import date
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from working_folder import edit, everything, write

import fieldbo
from fieldbo.errors import FieldboError, InputError

TINY = """format = 1
version = "1"
title = "a field of 25 sites"
cost_unit = "s"
[domain]
kind = "grid"
axes = [{ name = "x", unit = "m", low = 0, high = 10, count = 5 },
        { name = "y", unit = "m", low = 0, high = 10, count = 5 }]
[field]
kind = "gp-draw"
length_scales = [3, 3]
[value]
name = "level"
[cost]
kind = "euclidean"
sampling = 1
[sensor]
noise_sd = 0.1
"""
FIELD = '[field]\nkind = "gp-draw"\nlength_scales = [3, 3]\n'
LIVE = TINY.replace(FIELD, "")
TABLE = TINY.replace(FIELD, '[field]\nkind = "table"\nfile = "r.csv"\nvalue = "v"\n')
ROWS = [f"{2 * (i % 5)},{3 * (i // 5)},{1 + 0.1 * i:.1f}" for i in range(12)]
READINGS = "\n".join(["x,y,v", *ROWS, ""])
MISSION = """format = 1
world = "tiny"
[question]
kind = "level-set"
threshold = 0.2
[agent]
battery = 30
[policy]
kind = "truvar"
[model]
learn = false
length_scales = [3, 3]
mean = 0
"""
TINY_FILE, TABLE_FILE, CSV_FILE = "worlds/tiny/world.toml", "worlds/table/world.toml", "worlds/table/r.csv"


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds three worlds, a mission and a survey."""
    monkeypatch.chdir(tmp_path)
    write(TINY_FILE, TINY)
    write("worlds/live/world.toml", LIVE)
    write(TABLE_FILE, TABLE)
    write(CSV_FILE, READINGS)
    write("m.toml", MISSION)
    write("s.csv", READINGS)


@pytest.fixture
def expect_refused(command):
    """Run the command line; it must end with 2, say all of `said`, and leave every file as it was."""

    def run(*args, said):
        before = everything()
        code, _, err = command(*args)
        assert code == 2, err
        assert "Traceback" not in err
        text = " ".join(err.split())
        for part in said:
            assert part in text
        assert everything() == before
        return text

    return run


def case(old, new, *said, file="m.toml"):
    return pytest.param(file, old, new, said, id=new.replace("\n", " ")[-50:] or "nothing")


def added(table, line, *said, file="m.toml"):
    return case(f"[{table}]", f"[{table}]\n{line}", *said, file=file)


NUMBER_ABOVE_0 = "expected: a finite number above 0"
AT_LEAST_0 = "expected: a finite number of at least 0"
NUMBER = "expected: a valid number"
WRONG_MISSIONS = [
    # names
    case('"tiny"', '"tyny"', "unknown world 'tyny'", "m.toml: world", "did you mean 'tiny'?"),
    case('"truvar"', '"truvr"', "unknown policy 'truvr'", "m.toml: policy.kind", "did you mean 'truvar'?"),
    case(
        'kind = "truvar"',
        "",
        "kind is missing",
        "dist-ucb, ducb, ei, ei-per-cost",
        "m.toml: policy.kind",
    ),
    case("learn = false", 'kernel = "matern5"', 'kernel = "matern5"', "'matern52'", "m.toml: model.kernel"),
    case("learn = false", 'transform = "lgo"', "'none' or 'log'", "m.toml: model.transform"),
    case('"level-set"', '"levelset"', "unknown kind 'levelset'", "'level-set'", "m.toml: question.kind"),
    *(
        case('"tiny"', f'"{name}"', "is no name of a world", "a name, not a path", "m.toml: world")
        for name in ("../x", "/etc", "a/b", "..", ".", "", "a\\\\b", "t\\u0000y")
    ),
    # keys
    case("format = 1", "format = 1\nsead = 3", "unknown key 'sead'", "m.toml: sead", "did you mean 'seed'?"),
    added("agent", "batery = 3", "unknown key 'batery'", "m.toml: agent.batery", "did you mean 'battery'?"),
    added("question", "treshold = 3", "unknown key", "m.toml: question.treshold", "'threshold'?"),
    added("policy", "per_cots = true", "unknown key", "m.toml: policy.per_cots", "did you mean 'per_cost'?"),
    added("model", "kernl = 'se'", "unknown key", "m.toml: model.kernl", "did you mean 'kernel'?"),
    case("[model]", "[initial]\ncuont = 3\n[model]", "m.toml: initial.cuont", "did you mean 'count'?"),
    case("0.2", "{ quantil = 0.7 }", "m.toml: question.threshold.quantil", "did you mean 'quantile'?"),
    case("learn = false", "learn = { evry = 3 }", "m.toml: model.learn.evry", "did you mean 'every'?"),
    # format
    *(
        case("format = 1", f"format = {value}", f"format = {value}", "expected: 1", "m.toml: format")
        for value in ("2", '"1"', "true", "1.0")
    ),
    case("format = 1", "", "format is missing", "expected: a value for format", "m.toml: format"),
    case("battery = 30", "", "battery is missing", "m.toml: agent.battery"),
    # battery
    *(
        case("= 30", f"= {value}", f"battery = {value}", NUMBER_ABOVE_0, "m.toml: agent.battery")
        for value in ("0", "-3", "nan", "inf", "-inf")
    ),
    case("= 30", '= "-3 s"', "battery = -3.0", NUMBER_ABOVE_0, "m.toml: agent.battery"),
    case("= 30", '= "30 Wh"', "battery in Wh", "expected: a battery in s", "convert it to s"),
    case("= 30", '= "lots"', "battery 'lots'", 'as in "6000 s"', "m.toml: agent.battery"),
    case("= 30", "= true", "battery = true", NUMBER, "m.toml: agent.battery"),
    case("= 30", "= [3]", "battery = [3]", NUMBER, "m.toml: agent.battery"),
    added("agent", "reserve = -1", "reserve = -1.0", "less than the battery", "m.toml: agent.reserve"),
    added("agent", "margin = nan", "margin = nan", AT_LEAST_0, "m.toml: agent.margin"),
    added("agent", "time_limit_s = 0", "time_limit_s = 0.0", "seconds above 0", "agent.time_limit_s"),
    added("agent", "max_steps = 1.5", "max_steps = 1.5", "a valid integer", "m.toml: agent.max_steps"),
    added("agent", "max_steps = 0", "max_steps = 0", "greater than or equal to 1", "agent.max_steps"),
    added("agent", "max_steps = true", "max_steps = true", "a valid integer", "agent.max_steps"),
    # threshold
    case("0.2", '"x"', 'threshold = "x"', "a valid number, or a table", "m.toml: question.threshold"),
    case("0.2", "true", "threshold = true", NUMBER, "m.toml: question.threshold"),
    case("0.2", "inf", "threshold inf", "expected: a finite number", "m.toml: question.threshold"),
    case("0.2", "nan", "threshold nan", "expected: a finite number", "m.toml: question.threshold"),
    case("0.2", "{ quantile = 0 }", "quantile = 0", "greater than 0", "question.threshold.quantile"),
    case("0.2", "{ quantile = 1.5 }", "quantile = 1.5", "less than 1", "question.threshold.quantile"),
    case("0.2", "{ quantile = nan }", "quantile = NaN", "less than 1", "question.threshold.quantile"),
    case("0.2", "{}", "quantile is missing", "m.toml: question.threshold.quantile"),
    # places
    *(
        added("agent", f"{name} = {value}", *said, f"m.toml: agent.{name}")
        for name in ("start", "home")
        for value, said in (
            ("[20, 0]", ("lies outside the domain", "x 0 to 10 m", "nearest site is [10.0, 0.0]")),
            ("[nan, 1]", ("lies outside the domain", "x 0 to 10 m, y 0 to 10 m")),
            ("[inf, 1]", ("lies outside the domain", "x 0 to 10 m, y 0 to 10 m")),
            ("[1]", ("has 1 coordinates", "expected: 2: x, y")),
            ("[1, 2, 3]", ("has 3 coordinates", "expected: 2: x, y")),
            ('["a", 1]', ("[0] = ", NUMBER)),
            ("[true, 1]", ("[0] = true", NUMBER)),
            ("3", (f"{name} = 3", "a valid array")),
        )
    ),
    # whole numbers
    *(
        case("format = 1", f"format = 1\n{name} = {value}", f"{name} = {value}", expected, f"m.toml: {name}")
        for name in ("draw", "seed")
        for value, expected in (
            ("-1", "greater than or equal to 0"),
            ("1.5", "a valid integer"),
            ("true", "a valid integer"),
            ('"a"', "a valid integer"),
        )
    ),
    case("[model]", "[initial]\ncount = -1\n[model]", "count = -1", "m.toml: initial.count"),
    case("[model]", "[initial]\ncount = true\n[model]", "count = true", "m.toml: initial.count"),
    case("[model]", "[initial]\ncount = 10000000000\n[model]", "at most 100000", "m.toml: initial.count"),
    # model
    case("[3, 3]", "[3]", "1 length scales", "expected: 2, for x, y", "m.toml: model.length_scales"),
    case("[3, 3]", "[3, 3, 3]", "3 length scales", "expected: 2, for x, y", "m.toml: model.length_scales"),
    *(
        case("[3, 3]", value, "length scales", "numbers above 0", "m.toml: model.length_scales")
        for value in ("[3, -3]", "[0, 3]", "[nan, 3]", "[3, inf]")
    ),
    case("[3, 3]", "[true, 3]", "length_scales[0] = true", NUMBER, "m.toml: model.length_scales[0]"),
    case("[3, 3]", '"a"', 'length_scales = "a"', "a valid array", "m.toml: model.length_scales"),
    case("learn = false", "learn = 1", "learn = 1", "boolean, or a table", "m.toml: model.learn"),
    case("learn = false", 'learn = "yes"', 'learn = "yes"', "boolean", "m.toml: model.learn"),
    case("learn = false", "learn = { every = 0 }", "'every': 0", "every = 1 or more", "m.toml: model"),
    case("learn = false", "learn = { every = 1.5 }", "every = 1.5", "integer", "m.toml: model.learn.every"),
    added("model", 'noise = "learned"', "a model that learns", "m.toml: model.noise", "set learn = true"),
    *(
        added(
            "model", f"variance = {value}", f"variance {value}", "a number above 0", "m.toml: model.variance"
        )
        for value in ("0", "-1", "nan", "inf")
    ),
    case("mean = 0", "mean = nan", "mean nan", "a finite number", "m.toml: model.mean"),
    case("mean = 0", 'mean = 0\ntransform = "log"', "the log of 0.0", "values above 0", "m.toml: model.mean"),
    # policies
    added("policy", "a = 0", "a = 0.0", "a number above 0", "m.toml: policy.a"),
    added("policy", "r = 1", "r = 1.0", "a number between 0 and 1", "m.toml: policy.r"),
    added("policy", "eta = nan", "eta = nan", "a number of at least 0", "m.toml: policy.eta"),
    added("policy", "per_cost = 1", "per_cost = 1", "a valid boolean", "m.toml: policy.per_cost"),
    case('"truvar"', '"straddle"\nkappa = 0', "kappa = 0", "m.toml: policy.kappa"),
    case('"truvar"', '"lawnmower"\nlines = 0', "lines = 0", "m.toml: policy"),
    # no TOML
    case("= 30", "=", "this is not TOML", "line 7, column 10", "key = value lines", "where: m.toml"),
    case("world =", "title = 1979-05-27\nworld =", "title = ", "a valid string", "m.toml: title"),
    case("[policy]", "[policy.x]", "kind is missing", "m.toml: policy.kind"),
    case('[policy]\nkind = "truvar"', "", "policy is missing", "m.toml: policy"),
]


@pytest.mark.parametrize(("file", "old", "new", "said"), WRONG_MISSIONS)
def test_a_wrong_mission_is_refused_by_the_commands_and_by_load_mission(expect_refused, file, old, new, said):
    edit(file, old, new)
    expect_refused("run", "m.toml", said=said)
    expect_refused("check", "m.toml", said=said)
    with pytest.raises(InputError) as caught:
        fieldbo.load_mission("m.toml")
    text = " ".join(str(caught.value).split())
    assert all(part in text for part in said)


def in_tiny(old, new, *said):
    return case(old, new, *said, file=TINY_FILE)


def in_table(line, *said):
    return case('value = "v"', f'value = "v"\n{line}', *said, file=TABLE_FILE)


WRONG_WORLDS = [
    in_tiny("gp-draw", "gp-drw", "unknown field kind", f"{TINY_FILE}: field.kind", "did you mean 'gp-draw'?"),
    in_tiny("euclidean", "euclidian", "unknown cost kind", "cost.kind", "did you mean 'euclidean'?"),
    in_tiny("length_scales", 'kernel = "m"\nlength_scales', "'matern52'", f"{TINY_FILE}: field.kernel"),
    in_tiny("[3, 3]", "[3]", "1 length scales", "expected: 2, one an axis", f"{TINY_FILE}: field.length_sc"),
    in_tiny("[3, 3]", "[3, -3]", "length scales [3.0, -3.0]", "finite numbers above 0", TINY_FILE),
    *(
        in_tiny(f"[{table}]", f"[{table}]\nsampeling = 3", "unknown key", f"{TINY_FILE}: {table}.sampeling")
        for table in ("value", "domain", "field", "cost", "sensor")
    ),
    in_tiny('name = "x"', 'name = "x", cout = 2', "domain.axes[0].cout", "did you mean 'count'?"),
    in_tiny("format = 1", "format = 2", "format = 2", "expected: 1", f"{TINY_FILE}: format"),
    in_tiny("low = 0", "low =", "this is not TOML", "line 7, column"),
    in_tiny("noise_sd = 0.1", "noise_sd = -1", "noise -1.0", "at least 0", f"{TINY_FILE}: sensor.noise_sd"),
    in_tiny("noise_sd = 0.1", "noise_sd = nan", "noise nan", "at least 0", f"{TINY_FILE}: sensor.noise_sd"),
    in_tiny("noise_sd = 0.1", "noise_sd = true", "noise_sd = true", NUMBER, f"{TINY_FILE}: sensor.noise_sd"),
    in_tiny("sampling = 1", "sampling = -1", "sampling = -1.0", AT_LEAST_0, f"{TINY_FILE}: cost.sampling"),
    in_tiny("sampling = 1", "rate = inf", "rate = inf", AT_LEAST_0, f"{TINY_FILE}: cost.rate"),
    in_tiny("[domain]", "start = [30, 1]\n[domain]", "lies outside the domain", f"{TINY_FILE}: start"),
    in_tiny("[domain]", "start = [1]\n[domain]", "start has 1 coordinates", "2: x, y", ": start"),
    in_tiny("high = 10", "high = nan", "axis 'x' goes from 0.0 to nan", "low below high", ": domain"),
    in_tiny("high = 10", "high = 0", "axis 'x' goes from 0.0 to 0.0", "low below high", ": domain"),
    in_tiny("count = 5", "count = 0", "count = 0", "equal to 1", "domain.axes[0].count"),
    in_tiny("count = 5", "count = true", "count = true", "a valid integer", "domain.axes[0].count"),
    in_tiny("count = 5", "count = 99999", "a grid of 499995 sites", "at most 100000", ": domain.axes"),
    in_tiny('"y"', '"x"', "axes x, x", "different names", ": domain.axes"),
    in_tiny('"y"', '"mean"', "an axis with the name 'mean'", "nor one of", f"{TINY_FILE}: domain.axes"),
    in_tiny('"y"', '""', "an axis with the name ''", "not empty", f"{TINY_FILE}: domain.axes"),
    *(
        in_tiny('"grid"', f'"grid"\noutline = {corners}', *said, "domain.outline")
        for corners, said in (
            ("[[0, 0], [10, 10], [10, 0], [0, 10]]", ("no simple polygon", "edges that do not cross")),
            ("[[0, 0], [5, 5], [10, 10]]", ("no simple polygon",)),
            ("[[0, 0], [1, 1]]", ("at least 3 items",)),
            ("[[0, 0], [nan, 1], [3, 3]]", ("a corner is not finite", "finite numbers")),
        )
    ),
    in_tiny('"grid"', '"grid"\noutline = [[90, 0], [99, 0], [99, 9]]', "has no sites", "widen the region"),
    in_table('axes = ["x"]', "1 columns of position", "expected: 2", f"{TABLE_FILE}: field.axes"),
    in_table('noise_sd = "s"', "unknown column 's'", "expected: one of v, x, y", "r.csv, line 1"),
    in_table('channels = ["vv"]', "unknown column 'vv'", "r.csv, line 1", "did you mean 'v'?"),
    *(
        case('"r.csv"', f'"{name}"', "leaves the folder table", "own folder", "field.file", file=TABLE_FILE)
        for name in ("../secret.csv", "/etc/passwd", "..")
    ),
    case(
        '"r.csv"', '"q.csv"', "there is no file q.csv", "a CSV file", f"{TABLE_FILE}: field", file=TABLE_FILE
    ),
    case('"r.csv"', '"."', "is a folder", "a CSV file", f"{TABLE_FILE}: field", file=TABLE_FILE),
    case('"r.csv"', '"\\u0000"', "is no name of a file", f"{TABLE_FILE}: field.file", file=TABLE_FILE),
]


@pytest.mark.parametrize(("file", "old", "new", "said"), WRONG_WORLDS)
def test_a_wrong_world_is_refused_by_the_commands_and_by_load_world(expect_refused, file, old, new, said):
    edit(file, old, new)
    name = Path(file).parent.name
    write("secret.csv", READINGS)
    expect_refused("check", f"worlds/{name}", said=said)
    expect_refused("run", "m.toml", "--set", f"world={name}", said=said)
    with pytest.raises(InputError) as caught:
        fieldbo.load_world(name)
    text = " ".join(str(caught.value).split())
    assert all(part in text for part in said)


def with_row(row, at=3):
    return "\n".join(["x,y,v", *ROWS[:at], row, *ROWS[at:], ""])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (with_row("1,nan,3"), ("'nan' is not a finite number", "line 5, column y", "correct the cell")),
        (with_row("inf,1,3"), ("'inf' is not a finite number", "line 5, column x")),
        (with_row("1,2,high"), ("'high' is not a finite number", "line 5, column v")),
        (with_row("1,,3"), ("an empty cell", "a finite number", "line 5, column y")),
        (with_row("1,2"), ("an empty cell", "a finite number", "line 5, column v")),
        (with_row("1,2,3,4"), ("4 cells", "expected: 3, one a column (x, y, v)", "line 5")),
        (with_row("1,2,1e300"), ("values up to 1e+300", "values below")),
        (READINGS.replace("x,y,v", "x,y,w"), ("unknown column 'v'", "one of w, x, y", "r.csv, line 1")),
        ("x,y,v,v\n" + "\n".join(f"{r},1" for r in ROWS), ("2 columns are called 'v'", "line 1")),
        ("\n".join(["x,y,v", *ROWS[:4]]), ("4 readings", "at least 5", "r.csv")),
        ("x,y,v\n", ("0 readings", "at least 5", "r.csv")),
        ("", ("the file is empty", "a line of column names", "r.csv")),
        ("\n\n  \n", ("the file is empty", "a line of column names", "r.csv")),
        (bytes(range(256)), ("the file is not text", "UTF-8", "r.csv")),
        (with_row('"' + "1" * 140_000 + '",1,2'), ("this is no CSV", "r.csv")),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_wrong_table_is_refused_with_its_line_and_column(expect_refused, content, said):
    write(CSV_FILE, content)
    expect_refused("check", "worlds/table", said=(f"{TABLE_FILE}: field", *said))
    with pytest.raises(InputError):
        fieldbo.load_world("table")


@pytest.mark.parametrize("cell", ["-0.1", "nan", "", "x"])
def test_a_wrong_noise_in_the_table_is_refused_with_its_line_and_column(expect_refused, cell):
    noisy = ["x,y,v,s", *(f"{r},{cell if i == 3 else 0.1}" for i, r in enumerate(ROWS)), ""]
    write(CSV_FILE, "\n".join(noisy))
    edit(TABLE_FILE, 'value = "v"', 'value = "v"\nnoise_sd = "s"')
    expect_refused("check", "worlds/table", said=("line 5, column s", "expected: a "))


def test_a_log_of_values_not_above_0_is_refused_with_its_line_and_column(expect_refused):
    write(CSV_FILE, with_row("1,1,-1.3"))
    edit(TABLE_FILE, 'value = "v"', 'value = "v"\ntransform = "log"')
    expect_refused("check", "table", said=("the log of -1.3", "values above 0", "line 5, column v", '"none"'))
    said = ("the log of -1.3", "values above 0", "line 5, column v")
    write("s.csv", with_row("1,1,-1.3"))
    survey = ("--csv", "s.csv", "--x", "x", "--y", "y", "--value", "v", "--transform", "log")
    expect_refused("new", "world", "w", *survey, said=said)


def test_a_threshold_without_a_log_is_refused_before_the_run(expect_refused):
    overrides = ("--set", "question.threshold=-1", "--set", "model.transform=log", "--set", "model.mean=2")
    expect_refused("run", "m.toml", *overrides, said=("the log of -1.0", "m.toml: question.threshold"))


def test_repeated_sites_in_a_table_are_pooled_and_said(command):
    write(CSV_FILE, READINGS + "0,0,1.2\n0,0,1.4\n")
    code, out, err = command("check", "worlds/table")
    assert (code, err) == (0, "")
    assert "2 of 14 readings repeat a site; they are pooled" in out


def test_a_link_that_leaves_the_world_s_folder_is_refused(expect_refused, tmp_path):
    write("secret.csv", READINGS)
    Path(CSV_FILE).unlink()
    Path(CSV_FILE).symlink_to(tmp_path / "secret.csv")
    said = ("'r.csv' leaves the folder table", "a file in the world's own folder", "field.file", "copy the")
    expect_refused("check", "worlds/table", said=said)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("run", "lake-levl-set"), ("unknown mission", "did you mean 'lake-level-set'?")),
        (("check", "lake-levl-set"), ("unknown mission", "did you mean 'lake-level-set'?")),
        (("show", "laek-transect"), ("unknown world", "did you mean 'lake-transect'?")),
        (("run", "nope.toml"), ("there is no such file", "a TOML file", "where: nope.toml")),
        (("check", "sub/nope.toml"), ("there is no such file", "a TOML file", "sub/nope.toml")),
        (("run", "./worlds"), ("this is a folder", "a TOML file", "where: worlds")),
        (("check", "worlds"), ("there is no such file", "worlds/world.toml")),
        (("run", ".."), ("'..' is no name of a mission", "a name, not a path")),
        (("show", "tiny", "--draw", "-1"), ("draw = -1", "at least 0")),
        (("show", "tiny", "--out", "m.toml/x.png"), ("m.toml/x.png can't be written", "--out")),
        (("show", "tiny", "--out", "worlds"), ("worlds can't be written", "--out")),
        (("run", "m.toml", "--seed", "-1"), ("seed = -1", "greater than or equal to 0", "m.toml: seed")),
        (("run", "m.toml", "--seed", "x"), ("--seed", "valid integer")),
        (("run", "m.toml", "--battery", "lots"), ("battery 'lots'", 'as in "6000 s"', "agent.battery")),
        (("run", "m.toml", "--battery", "30 Wh"), ("battery in Wh", "a battery in s", "convert it to s")),
        (("run", "m.toml", "--battery", "1e400"), ("battery = inf", NUMBER_ABOVE_0)),
        (("run", "m.toml", "--set", "policy=truvar"), ('policy = "truvar"', "a table", "m.toml: policy")),
        (("run", "m.toml", "--set", "agent.batery=3"), ("unknown key", "did you mean 'battery'?")),
        (
            ("run", "m.toml", "--set", "agent=3", "--set", "agent.battery=4"),
            ("--set agent.battery=4", "agent to be a table"),
        ),
        (("run", "m.toml", "--set", "world=live"), ("live, which has no [field]", "--by-hand")),
        (
            ("run", "m.toml", "--set", "world=live", "--set", "question.threshold={quantile=0.7}"),
            ("in a live world", "expected: a number", "m.toml: question.threshold"),
        ),
        (("run", "m.toml", "--out", "worlds"), ("worlds exists", "does not exist yet", "--out", "choose")),
        (("run", "m.toml", "--out", "s.csv"), ("s.csv exists", "does not exist yet", "--out", "choose")),
        (("run", "m.toml", "--out", "s.csv/x"), ("s.csv/x can't be made", "a writable folder", "--out")),
        (("run", "m.toml", "--out", "s.csv/x/y"), ("s.csv/x/y can't be made", "a writable folder", "--out")),
        (("run", "m.toml", "--oot", "x"), ("No such option", "--oot")),
    ],
    ids=lambda value: " ".join(value)[:60] if value[0] in ("run", "check", "show") else "",
)
def test_a_wrong_argument_is_refused(expect_refused, args, said):
    expect_refused(*args, said=said)


@pytest.mark.parametrize("pair", ["x", "", "=3", "agent.=3", ".battery=3", "agent..battery=3", "agent"])
def test_a_set_without_key_or_equals_sign_is_refused(expect_refused, pair):
    said = ("expected: table.key=value", "where: --set", "for example --set question.threshold=2")
    expect_refused("run", "m.toml", "--set", pair, said=said)


def test_runs_that_is_a_file_is_refused(expect_refused):
    write("runs", "mine")
    expect_refused("run", "m.toml", said=("runs/m-1 can't be made", "--out"))


@pytest.mark.parametrize("content", [bytes(range(256)), b"\xff\xfe"])
def test_a_binary_file_as_mission_is_refused(expect_refused, content):
    write("m.toml", content)
    expect_refused("run", "m.toml", said=("the file is not text", "a TOML file in UTF-8", "where: m.toml"))


@pytest.mark.parametrize(
    "rule",
    [("truvar",), ("gchk", "policy.per_cost=true"), ("maximum-variance", "policy.per_cost=true")],
    ids=lambda rule: rule[0],
)
def test_rules_that_divide_by_the_cost_refuse_free_samples(expect_refused, rule):
    edit(TINY_FILE, "sampling = 1", "sampling = 0")
    kind, *others = rule
    args = [a for o in others for a in ("--set", o)]
    said = ("costs 0", "divides by the cost", "a sampling cost above 0", "m.toml: cost", "sampling = 1")
    expect_refused(
        "run", "m.toml", "--set", f"policy.kind={kind}", "--set", "agent.max_steps=3", *args, said=said
    )


def test_free_samples_are_fine_for_a_rule_that_does_not_divide_by_the_cost(command):
    edit(TINY_FILE, "sampling = 1", "sampling = 0")
    overrides = ("--set", "policy.kind=gchk", "--set", "agent.max_steps=3")
    code, out, _ = command("check", "m.toml")
    assert code == 2
    code, out, err = command("run", "m.toml", *overrides, "--out", "r")
    assert (code, err) == (0, "")
    assert "Step limit. 3 sites visited." in out


COMPARE = ("compare", "m.toml", "--jobs", "1", "--starts", "1")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("lake-gchkk", "--out", "o.csv"), ("unknown mission", "did you mean 'lake-gchk'?")),
        (("m.toml", "--out", "o.csv"), ("missions m, m", "each mission once")),
        (("--out", "s.csv"), ("s.csv is no table of a comparison", "this command wrote", "--out")),
        (("--out", "m.toml"), ("m.toml is no table of a comparison", "this command wrote", "--out")),
        (("--out", "worlds"), ("worlds can't be read", "--out")),
        (("--out", "s.csv/o.csv"), ("s.csv/o.csv can't be written", "--out")),
        (("--out", "o.png"), ("the table o.png would be a picture", "a .csv file", "--out")),
        (("--out", "o.csv", "--at", "nan"), ("a cost of nan", "finite numbers above 0", "--at")),
        (("--out", "o.csv", "--set", "x"), ("table.key=value", "--set")),
        (("--out", "o.csv", "--set", "world=live"), ("live, which has no [field]", "--by-hand")),
        (("--out", "o.csv", "--draws", "0"), ("--draws", "greater than or equal to 1")),
        ((), ("--out",)),
    ],
    ids=lambda value: " ".join(value)[:40] if value and value[0][0] in "-lm" else "",
)
def test_a_wrong_comparison_is_refused(expect_refused, args, said):
    expect_refused(*COMPARE, *args, said=said)


@pytest.mark.parametrize(("file", "old", "new"), [("m.toml", "= 30", "= 20"), (TINY_FILE, "0.1", "0.2")])
def test_an_old_table_of_a_changed_mission_or_world_is_refused(command, expect_refused, file, old, new):
    assert command(*COMPARE, "--out", "o.csv", "--set", "agent.max_steps=2")[0] == 0
    edit(file, old, new)
    said = ("o.csv holds runs of m with other settings", "the same mission", "--out", "choose another file")
    expect_refused(*COMPARE, "--out", "o.csv", "--set", "agent.max_steps=2", said=said)


def test_a_table_with_a_damaged_line_is_refused_with_its_line(command, expect_refused):
    assert command(*COMPARE, "--out", "o.csv", "--set", "agent.max_steps=2")[0] == 0
    lines = Path("o.csv").read_text().splitlines()
    write("o.csv", "\n".join([*lines[:2], "step,m,zero", *lines[2:], ""]))
    said = ("a line that this command did not write", "cells", "o.csv, line 3")
    expect_refused(*COMPARE, "--out", "o.csv", "--set", "agent.max_steps=2", said=said)


SURVEY = ("--csv", "s.csv", "--x", "x", "--y", "y", "--value", "v")


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("../w", (), ("'../w' is no name of a world", "a name, not a path")),
        ("a/b", (), ("'a/b' is no name of a world", "a name, not a path")),
        ("a b", (), ("'a b' is no name of a world", "letters, digits")),
        ("..", (), ("'..' is no name of a world", "letters, digits")),
        ("", (), ("'' is no name of a world", "letters, digits")),
        ("tiny", (), ("worlds/tiny exists", "nothing is written over", "choose another name")),
        (
            "w",
            ("--y", "why"),
            ("unknown column 'why'", "one of v, x, y", "s.csv, line 1", "did you mean 'y'?"),
        ),
        ("w", ("--y", "x"), ("'x' for both positions", "two different columns", "--x and --y")),
        ("w", ("--csv", "q.csv"), ("there is no file q.csv", "a CSV file of readings")),
        ("w", ("--csv", "worlds"), ("worlds is a folder", "a CSV file of readings", "where: worlds")),
        ("w", ("--quantile", "2"), ("quantile 2.0", "between 0 and 1", "--quantile")),
        ("w", ("--quantile", "nan"), ("quantile nan", "between 0 and 1", "--quantile")),
        ("w", ("--threshold", "nan"), ("threshold nan", "a finite number", "--threshold")),
        ("w", ("--threshold", "-1", "--transform", "log"), ("threshold -1.0", "above 0", "--threshold")),
        ("w", ("--transform", "lgo"), ("--transform", "'none'", "'log'")),
        ("w", ("--channel", "temp"), ("unknown column 'temp'", "s.csv, line 1")),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value)[:30],
)
def test_a_wrong_new_world_is_refused(expect_refused, name, args, said):
    expect_refused("new", "world", name, *SURVEY, *args, said=said)


def test_a_new_world_with_the_name_of_a_mission_that_exists_is_refused(expect_refused):
    write("missions/w.toml", MISSION)
    said = ("missions/w.toml exists", "nothing is written over", "choose another name")
    expect_refused("new", "world", "w", *SURVEY, said=said)


@pytest.mark.parametrize("column", ["x", "y"])
def test_a_survey_without_extent_is_refused(expect_refused, column):
    rows = [f"3,{i},{i * i}" if column == "x" else f"{i},3,{i * i}" for i in range(9)]
    write("s.csv", "\n".join(["x,y,v", *rows]))
    said = (f"all readings have the same {column}", "positions that differ", "where: s.csv")
    expect_refused("new", "world", "w", *SURVEY, said=said)


@pytest.mark.parametrize("taken", ["worlds", "missions"])
def test_a_new_world_where_a_file_stands_in_the_way_is_refused(expect_refused, monkeypatch, taken):
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    write("s.csv", READINGS)
    write(taken, "mine")
    said = (f"{taken} is no folder", "expected: a folder, or nothing yet", "fix:")
    expect_refused("new", "world", "w", *SURVEY, said=said)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("run", "m.toml", "--set", "world=tyny"), "did you mean 'tiny'?"),
        (("check", "binary.toml"), "the file is not text"),
        (("run", "m.toml", "--set", "world=live"), "--by-hand"),
    ],
    ids=["unknown", "binary", "live"],
)
def test_a_process_of_its_own_ends_with_2_and_without_a_traceback(args, said):
    write("binary.toml", bytes(range(256)))
    before = everything()
    done = subprocess.run(
        [sys.executable, "-c", "from fieldbo.cli import main; main()", *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert everything() == before


def test_a_mission_of_a_run_folder_is_named_after_the_folder_and_never_after_its_title(command):
    write("elsewhere/mission.toml", "title = '../../evil / name'\n" + MISSION)
    edit("elsewhere/mission.toml", 'world = "tiny"', 'world = "tiny"\nseed = 1')
    assert command("run", "elsewhere/mission.toml", "--set", "agent.max_steps=1")[0] == 0
    assert [p.name for p in Path("runs").iterdir()] == ["elsewhere-1"]
    assert not (Path.cwd().parent / "evil").exists()


@pytest.mark.parametrize("count", [150, 100_000])
def test_a_grid_whose_pairs_fit_in_no_memory_is_refused_before_anything_is_made(expect_refused, count):
    edit(TINY_FILE, "count = 5", f"count = {count}")
    edit(TINY_FILE, "count = 5", f"count = {count}")
    said = expect_refused("run", "m.toml", said=("sites", "expected: at most", "domain.axes"))
    assert str(count**2) in said


def test_words_in_brackets_are_printed_as_they_are(command):
    write("missions/odd.toml", MISSION.replace("format = 1", 'format = 1\ntitle = "TP [/bold] [red]"'))
    code, out, _ = command("missions")
    assert code == 0
    assert "TP [/bold] [red]" in " ".join(out.split())


def test_a_run_folder_inside_its_world_s_folder_does_not_copy_itself(command):
    code, _, err = command("run", "m.toml", "--out", "worlds/tiny/r", "--set", "agent.max_steps=1")
    assert (code, err) == (0, "")
    assert Path("worlds/tiny/r/tiny/world.toml").is_file()
    assert not Path("worlds/tiny/r/tiny/r").exists()


# -- fuzz ------------------------------------------------------------------------------------------------

KINDS = ["truvar", "gchk", "straddle", "maximum-variance", "random", "lawnmower", "level-set", "log", "se"]
SCALARS = st.one_of(
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, 5, 10**6, 10**30, -(10**400)]),
    st.floats(),
    st.sampled_from([math.nan, math.inf, -0.0, 1e-320, 1e308]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.sampled_from([*KINDS, "tiny", "live", "table", "30 s", "../x"]),
    st.just(date(1979, 5, 27)),
)
KEYS = st.one_of(
    st.sampled_from(["kind", "battery", "quantile", "every", "seed", "x", ""]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(KEYS, SCALARS | st.lists(SCALARS), max_size=2)
)


def paths_in(content, at=()):
    """Yield the path of every key, tables and their keys alike."""
    for key, value in content.items():
        yield (*at, key)
        if isinstance(value, dict):
            yield from paths_in(value, (*at, key))


@st.composite
def mutated(draw, text):
    """A valid file with up to three wrong values, misspelt keys, missing or added ones."""
    content = tomllib.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(paths_in(content))))
        table = content
        for key in path[:-1]:
            table = table[key]
        what = draw(st.sampled_from(["replace", "replace", "misspell", "remove", "add"]))
        if what == "replace":
            table[path[-1]] = draw(VALUES)
        elif what == "add":
            table[draw(KEYS)] = draw(VALUES)
        else:
            value = table.pop(path[-1])
            if what == "misspell":
                at = draw(st.integers(0, len(path[-1])))
                table[path[-1][:at] + draw(st.sampled_from("axé.")) + path[-1][at:]] = value
        if not content:
            break
    return tomli_w.dumps(content)


def loaded(load, file):
    """Return what was loaded, and what was said where it was refused; any other error gets through."""
    try:
        return load(file), ""
    except FieldboError as error:
        return None, str(error)


@settings(max_examples=150, deadline=None)
@given(text=mutated(MISSION + "[initial]\ncount = 2\n"))
def test_any_mission_either_loads_or_is_refused_with_an_error_of_ours(text):
    with tempfile.TemporaryDirectory() as folder:
        for name, world in (("tiny", TINY), ("live", LIVE)):
            write(Path(folder) / name / "world.toml", world)
        file = Path(folder) / "m.toml"
        write(file, text)
        before = sorted(Path(folder).rglob("*"))
        mission, error = loaded(fieldbo.load_mission, file)
        assert mission is not None or str(file) in error
        assert mission is None or mission.crew[0].battery > 0
        assert sorted(Path(folder).rglob("*")) == before


@settings(max_examples=100, deadline=None)
@given(text=mutated(TINY))
def test_any_world_either_loads_or_is_refused_with_an_error_of_ours(text):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tiny" / "world.toml"
        write(file, text)
        world, error = loaded(fieldbo.load_world, file)
        assert world is not None or str(file) in error
        assert world is None or (world.domain.size >= 1 and world.sensor.noise_sd >= 0)
