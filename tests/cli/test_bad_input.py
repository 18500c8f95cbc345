"""Wrong input is rejected with exit code 2 and a helpful message, and no file is written.

The whole messages are in tests/snapshots/test_bad_input.txt. After changing one, run
``pytest tests/cli/test_bad_input.py --update-snapshots`` and read the difference.
"""

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
from small_files import mission_text
from tiers import examples
from waiting import SLOW_S
from working_folder import edit, everything, write
from wrong_files import holder, loaded, paths_in

import fieldbo
from fieldbo.errors import InputError
from fieldbo.mission.load import read_mission
from fieldbo.runs.folder import begin

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
MISSION = mission_text(threshold=0.2, battery=30, model={"learn": False, "length_scales": [3, 3], "mean": 0})
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
def expect_rejected(command, snapshot):
    """Run the command line; it must end with 2, leave every file as it was, and name all `parts`.

    The whole message is compared with its snapshot, unless the option parser wrote it.
    """

    def run(*args, parts=(), compare=True):
        before = everything()
        code, _, err = command(*args)
        assert code == 2, err
        assert "Traceback" not in err
        text = " ".join(err.split())
        for part in parts:
            assert part in text
        assert everything() == before
        if compare and not text.startswith("Usage:"):
            snapshot(err)
        return text

    return run


def case(old, new, where, name=None, file="m.toml"):
    """A file in which `old` is replaced: the error names the key `where` and the nearest valid `name`."""
    parts = [f"where: {file}: {where}" if where else f"where: {file}"]
    if name is not None:
        parts.append(f"did you mean '{name}'?")
    return pytest.param(file, old, new, parts, id=new.replace("\n", " ")[-50:] or f"without {old}")


def added(table, line, where=None, name=None, file="m.toml"):
    """A file with another line in a table; by default the error names that line's key."""
    where = where or f"{table}.{line.split(' = ')[0]}"
    return case(f"[{table}]", f"[{table}]\n{line}", where, name, file)


def held(lines, where, name=None):
    """A mission with a hold of these lines."""
    return case("[model]", f"[[hold]]\n{lines}\n[model]", where, name)


WRONG_MISSIONS = [
    # names
    case('"tiny"', '"tyny"', "world", "tiny"),
    case('"truvar"', '"truvr"', "policy.kind", "truvar"),
    case('kind = "truvar"', 'kind = "auto"\neta = 1', "policy"),
    case("learn = false", 'kernel = "matern5"', "model.kernel"),
    case("learn = false", 'transform = "lgo"', "model.transform"),
    case('"level-set"', '"levelset"', "question.kind", "level-set"),
    *(
        case('"tiny"', f'"{name}"', "world")
        for name in ("../x", "/etc", "a/b", "..", ".", "", "a\\\\b", "t\\u0000y")
    ),
    # keys
    case("format = 1", "format = 1\nsead = 3", "sead", "seed"),
    added("agent", "batery = 3", name="battery"),
    added("question", "treshold = 3", name="threshold"),
    added("policy", "per_cots = true", name="per_cost"),
    added("model", "kernl = 'se'", name="kernel"),
    case("[model]", "[initial]\ncuont = 3\n[model]", "initial.cuont", "count"),
    case("0.2", "{ quantil = 0.7 }", "question.threshold.quantil", "quantile"),
    case("learn = false", "learn = { evry = 3 }", "model.learn.evry", "every"),
    # format
    *(case("format = 1", f"format = {value}", "format") for value in ("2", '"1"', "true", "1.0")),
    case("format = 1", "", "format"),
    case("battery = 30", "", "agent.battery"),
    # battery
    *(
        case("= 30", f"= {value}", "agent.battery")
        for value in ("0", "-3", "nan", "inf", "-inf", '"-3 s"', '"30 Wh"', '"lots"', "true", "[3]")
    ),
    *(
        case("= 30", f'= "{value}"', "agent.battery")
        for value in ("0 min", "1e999 h", "2 kWh", "30 min 2 h", "35 %", "0 %", "-5 %", "135 %", "nan s")
    ),
    case("= 30", '= "35 %"\nfull_battery = "100 Wh"', "agent.full_battery"),
    case("= 30", '= "35 %"\nfull_battery = "50 %"', "agent.full_battery"),
    case("= 30", "= 30\nfull_battery = 20", "agent.battery"),
    added("agent", 'reserve = "10 %"'),
    added("agent", 'reserve = "1 min"'),
    # hostile files
    case("= 30", "= 1e308", "agent.battery"),
    case("= 30", f"= {'9' * 400}", "agent.battery"),
    case("= 30", f"= {'9' * 5000}", None),
    case("= 30", '= "' + "9" * 900 + ' s"', "agent.battery"),
    case("= 30", "= " + "[" * 90 + "]" * 90, "agent.battery[0]"),
    case("= 30", "= " + "[" * 20_000 + "]" * 20_000, None),
    case('"tiny"', f'"{"w" * 100_000}"', "world"),
    case("battery", "b" * 100_000, "agent"),
    case("0.2", "-1e200", "question.threshold"),
    *(
        added("agent", line)
        for line in (
            "reserve = -1",
            "reserve = 30",
            "margin = nan",
            "time_limit_s = 0",
            "max_steps = 1.5",
            "max_steps = 0",
            "max_steps = true",
        )
    ),
    # threshold
    *(case("0.2", value, "question.threshold") for value in ('"x"', "true", "inf", "nan")),
    *(
        case("0.2", f"{{ quantile = {value} }}", "question.threshold.quantile")
        for value in ("0", "1.5", "nan")
    ),
    case("0.2", "{}", "question.threshold"),
    *(case("0.2", value, "question.threshold") for value in ("[2, 4]", "[]", "[{ quantile = 0.7 }]")),
    # side
    added("question", 'side = "belwo"', name="below"),
    *(added("question", f"side = {value}") for value in ('"under"', "1", "true", '["above", "below"]')),
    case("0.2", '{ of_maximum = 0.5 }\nside = "below"', "question.side"),
    # places
    *(
        added("agent", f"{name} = {value}", f"agent.{name}")
        for name in ("start", "home")
        for value in ("[20, 0]", "[nan, 1]", "[inf, 1]", "[1]", "[1, 2, 3]", '["a", 1]', "[true, 1]", "3")
    ),
    # whole numbers
    *(
        case("format = 1", f"format = 1\n{name} = {value}", name)
        for name in ("draw", "seed")
        for value in ("-1", "1.5", "true", '"a"')
    ),
    *(
        case("[model]", f"[initial]\ncount = {value}\n[model]", "initial.count")
        for value in ("-1", "true", "10000000000")
    ),
    # model
    *(
        case("[3, 3]", value, "model.length_scales")
        for value in ("[3]", "[3, 3, 3]", "[3, -3]", "[0, 3]", "[nan, 3]", "[3, inf]", "[true, 3]", '"a"')
    ),
    case("learn = false", "learn = 1", "model.learn"),
    case("learn = false", 'learn = "yes"', "model.learn"),
    case("learn = false", "learn = { every = 0 }", "model"),
    case("learn = false", "learn = { every = 1.5 }", "model.learn.every"),
    added("model", 'noise = "learned"'),
    *(added("model", f"variance = {value}") for value in ("0", "-1", "nan", "inf")),
    case("mean = 0", "mean = nan", "model.mean"),
    case("mean = 0", 'mean = 0\ntransform = "log"', "model.mean"),
    # policies
    *(added("policy", line) for line in ("a = 0", "r = 1", "eta = nan", "per_cost = 1")),
    case('"truvar"', '"straddle"\nkappa = 0', "policy.kappa"),
    case('"truvar"', '"lawnmower"\nlines = 0', "policy"),
    # TOML
    case("= 30", "=", None),
    case("world =", "title = 1979-05-27\nworld =", "title"),
    case("[policy]", "[policy.x]", "policy.kind"),
    case('kind = "level-set"\nthreshold = 0.2\n[agent]\nbattery = 30\n', "[agent]\n", "question.kind"),
    # holds
    held("above = 8", "hold[0].channel"),
    held('channel = "wind"', "hold[0]"),
    held('channel = "wind"\nabove = 8\nbelow = 3', "hold[0]"),
    held('channel = "wind"\nabove = 8\nrelease_below = 9', "hold[0].release_below"),
    held('channel = "wind"\nabove = 8\nrelease_above = 9', "hold[0].release_above"),
    held('channel = "wind"\nabove = inf', "hold[0].above"),
    held('channel = "wind"\nabove = 8\ndelay = 60', "hold[0].delay", "delay_s"),
    held('channel = "wind"\nabove = 8\n[[hold]]\nchannel = "wind"\nabove = 9', "hold[1].name"),
]


@pytest.mark.parametrize(("file", "old", "new", "parts"), WRONG_MISSIONS)
def test_a_wrong_mission_is_rejected_by_the_commands_and_by_load_mission(
    expect_rejected, file, old, new, parts
):
    edit(file, old, new)
    checked = expect_rejected("check", "m.toml", parts=parts)
    assert expect_rejected("run", "m.toml", compare=False) == checked
    with pytest.raises(InputError) as caught:
        fieldbo.load_mission("m.toml")
    assert checked == " ".join(f"fieldbo: {caught.value}".split())


def in_tiny(old, new, where, name=None):
    return case(old, new, where, name, file=TINY_FILE)


def in_table(old, new, where, name=None):
    return case(old, new, where, name, file=TABLE_FILE)


WRONG_WORLDS = [
    in_tiny("gp-draw", "gp-drw", "field.kind", "gp-draw"),
    in_tiny("euclidean", "euclidian", "cost.kind", "euclidean"),
    in_tiny("length_scales", 'kernel = "m"\nlength_scales', "field.kernel"),
    in_tiny("[3, 3]", "[3]", "field.length_scales"),
    in_tiny("[3, 3]", "[3, -3]", "field"),
    *(
        added(table, "sampeling = 3", file=TINY_FILE)
        for table in ("value", "domain", "field", "cost", "sensor")
    ),
    in_tiny('name = "x"', 'name = "x", cout = 2', "domain.axes[0].cout", "count"),
    in_tiny("format = 1", "format = 2", "format"),
    in_tiny("low = 0", "low =", None),
    *(in_tiny("noise_sd = 0.1", f"noise_sd = {value}", "sensor.noise_sd") for value in ("-1", "nan", "true")),
    in_tiny("sampling = 1", "sampling = -1", "cost.sampling"),
    in_tiny("sampling = 1", "rate = inf", "cost.rate"),
    in_tiny("[domain]", "start = [30, 1]\n[domain]", "start"),
    in_tiny("[domain]", "start = [1]\n[domain]", "start"),
    in_tiny("high = 10", "high = nan", "domain"),
    in_tiny("high = 10", "high = 0", "domain"),
    in_tiny("count = 5", "count = 0", "domain.axes[0].count"),
    in_tiny("count = 5", "count = true", "domain.axes[0].count"),
    in_tiny("count = 5", "count = 99999", "domain.axes"),
    *(in_tiny('"y"', value, "domain.axes") for value in ('"x"', '"mean"', '""')),
    *(
        in_tiny('"grid"', f'"grid"\noutline = {corners}', "domain.outline")
        for corners in (
            "[[0, 0], [10, 10], [10, 0], [0, 10]]",
            "[[0, 0], [5, 5], [10, 10]]",
            "[[0, 0], [1, 1]]",
            "[[0, 0], [nan, 1], [3, 3]]",
        )
    ),
    in_tiny('"grid"', '"grid"\noutline = [[90, 0], [99, 0], [99, 9]]', "domain"),
    in_table('value = "v"', 'value = "v"\naxes = ["x"]', "field.axes"),
    in_table('value = "v"', 'value = "v"\nnoise_sd = "s"', "field"),
    in_table('value = "v"', 'value = "v"\nchannels = ["vv"]', "field", "v"),
    *(in_table('"r.csv"', f'"{name}"', "field.file") for name in ("../secret.csv", "/etc/passwd", "..")),
    *(in_table('"r.csv"', f'"{name}"', "field") for name in ("q.csv", ".", "\\u0000")),
]


@pytest.mark.parametrize(("file", "old", "new", "parts"), WRONG_WORLDS)
def test_a_wrong_world_is_rejected_by_the_commands_and_by_load_world(expect_rejected, file, old, new, parts):
    edit(file, old, new)
    name = Path(file).parent.name
    write("secret.csv", READINGS)
    checked = expect_rejected("check", f"worlds/{name}", parts=parts)
    assert expect_rejected("run", "m.toml", "--set", f"world={name}", compare=False) == checked
    with pytest.raises(InputError) as caught:
        fieldbo.load_world(name)
    assert checked == " ".join(f"fieldbo: {caught.value}".split())


def with_row(row, at=3):
    return "\n".join(["x,y,v", *ROWS[:at], row, *ROWS[at:], ""])


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (with_row("1,nan,3"), "r.csv, line 5, column y"),
        (with_row("inf,1,3"), "r.csv, line 5, column x"),
        (with_row("1,2,high"), "r.csv, line 5, column v"),
        (with_row("1,,3"), "r.csv, line 5, column y"),
        (with_row("1,2"), "r.csv, line 5, column v"),
        (with_row("1,2,3,4"), "r.csv, line 5"),
        (with_row("1,2,1e300"), "field"),
        (READINGS.replace("x,y,v", "x,y,w"), "r.csv, line 1"),
        ("x,y,v,v\n" + "\n".join(f"{r},1" for r in ROWS), "r.csv, line 1"),
        ("\n".join(["x,y,v", *ROWS[:4]]), "r.csv"),
        ("x,y,v\n", "r.csv"),
        ("", "r.csv"),
        ("\n\n  \n", "r.csv"),
        (bytes(range(256)), "r.csv"),
        (with_row('"' + "1" * 140_000 + '",1,2'), "r.csv"),
    ],
    ids=[
        "nan",
        "inf",
        "text",
        "empty cell",
        "a cell too few",
        "a cell too many",
        "a huge value",
        "no such column",
        "a column twice",
        "too few readings",
        "no readings",
        "empty",
        "blank",
        "binary",
        "a huge cell",
    ],
)
def test_a_wrong_table_is_rejected_with_its_line_and_column(expect_rejected, content, place):
    write(CSV_FILE, content)
    expect_rejected("check", "worlds/table", parts=(f"{TABLE_FILE}: field", place))
    with pytest.raises(InputError):
        fieldbo.load_world("table")


@pytest.mark.parametrize("cell", ["-0.1", "nan", "", "x"])
def test_a_wrong_noise_in_the_table_is_rejected_with_its_line_and_column(expect_rejected, cell):
    noisy = ["x,y,v,s", *(f"{r},{cell if i == 3 else 0.1}" for i, r in enumerate(ROWS)), ""]
    write(CSV_FILE, "\n".join(noisy))
    edit(TABLE_FILE, 'value = "v"', 'value = "v"\nnoise_sd = "s"')
    expect_rejected("check", "worlds/table", parts=["line 5, column s"])


def test_a_log_of_values_not_above_0_is_rejected_with_its_line_and_column(expect_rejected):
    write(CSV_FILE, with_row("1,1,-1.3"))
    edit(TABLE_FILE, 'value = "v"', 'value = "v"\ntransform = "log"')
    expect_rejected("check", "table", parts=["line 5, column v"])
    write("s.csv", with_row("1,1,-1.3"))
    survey = ("--csv", "s.csv", "--x", "x", "--y", "y", "--value", "v", "--transform", "log")
    expect_rejected("new", "world", "w", *survey, parts=["line 5: v -1.3, a spike"])
    expect_rejected("new", "world", "w", *survey, "--keep", parts=["line 5, column v"])


def test_a_threshold_without_a_log_is_rejected_before_the_run(expect_rejected):
    overrides = ("--set", "question.threshold=-1", "--set", "model.transform=log", "--set", "model.mean=2")
    expect_rejected("run", "m.toml", *overrides, parts=["m.toml: question.threshold"])


def test_repeated_sites_in_a_table_are_pooled_and_noted(command):
    write(CSV_FILE, READINGS + "0,0,1.2\n0,0,1.4\n")
    code, out, err = command("check", "worlds/table")
    assert (code, err) == (0, "")
    assert "2 of 14 readings repeat a site; they are pooled" in out


def test_a_link_that_leaves_the_world_s_folder_is_rejected(expect_rejected, tmp_path):
    write("secret.csv", READINGS)
    Path(CSV_FILE).unlink()
    Path(CSV_FILE).symlink_to(tmp_path / "secret.csv")
    expect_rejected("check", "worlds/table", parts=["field.file"])


def words(values):
    return " ".join(values)[:60] or "nothing"


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (("run", "lake-levl-set"), "did you mean 'lake-level-set'?"),
        (("check", "lake-levl-set"), "did you mean 'lake-level-set'?"),
        (("show", "laek-transect"), "did you mean 'lake-transect'?"),
        (("run", "nope.toml"), "where: nope.toml"),
        (("check", "sub/nope.toml"), "where: sub/nope.toml"),
        (("run", "./worlds"), "where: worlds"),
        (("check", "worlds"), "where: worlds/world.toml"),
        (("run", ".."), "'..'"),
        (("show", "tiny", "--draw", "-1"), "where: draw"),
        (("show", "tiny", "--out", "m.toml/x.png"), "where: --out"),
        (("show", "tiny", "--out", "worlds"), "where: --out"),
        (("run", "m.toml", "--seed", "-1"), "where: m.toml: seed"),
        (("run", "m.toml", "--seed", "x"), "--seed"),
        (("run", "m.toml", "--battery", "lots"), "where: m.toml: agent.battery"),
        (("run", "m.toml", "--battery", "30 Wh"), "where: m.toml: agent.battery"),
        (("run", "m.toml", "--battery", "1e400"), "where: m.toml: agent.battery"),
        (("run", "m.toml", "--set", "policy=truvar"), "where: m.toml: policy"),
        (("run", "m.toml", "--set", "agent.batery=3"), "did you mean 'battery'?"),
        (("run", "m.toml", "--set", "agent=3", "--set", "agent.battery=4"), "where: --set"),
        (("run", "m.toml", "--set", "world=live"), "--by-hand"),
        (
            ("run", "m.toml", "--set", "world=live", "--set", "question.threshold={quantile=0.7}"),
            "where: m.toml: question.threshold",
        ),
        (("check", "worlds/tiny", "--set", "seed=1"), "where: --set"),
        (("run", "m.toml", "--out", "worlds"), "where: --out"),
        (("run", "m.toml", "--out", "s.csv"), "where: --out"),
        (("run", "m.toml", "--out", "s.csv/x"), "where: --out"),
        (("run", "m.toml", "--out", "s.csv/x/y"), "where: --out"),
        (("run", "m.toml", "--oot", "x"), "--oot"),
    ],
    ids=lambda value: words(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_argument_is_rejected(expect_rejected, args, part):
    expect_rejected(*args, parts=[part])


@pytest.mark.parametrize("pair", ["x", "", "=3", "agent.=3", ".battery=3", "agent..battery=3", "agent"])
def test_a_set_without_key_or_equals_sign_is_rejected(expect_rejected, pair):
    expect_rejected("run", "m.toml", "--set", pair, parts=["where: --set", "--set question.threshold=2"])


def test_runs_that_is_a_file_is_rejected(expect_rejected):
    write("runs", "mine")
    expect_rejected("run", "m.toml", parts=["runs/m-1", "--out"])


@pytest.mark.parametrize("content", [bytes(range(256)), b"\xff\xfe"])
def test_a_binary_file_as_mission_is_rejected(expect_rejected, content):
    write("m.toml", content)
    expect_rejected("run", "m.toml", parts=["where: m.toml"])


@pytest.mark.parametrize(
    "policy",
    [("truvar",), ("gchk", "policy.per_cost=true"), ("maximum-variance", "policy.per_cost=true")],
    ids=lambda policy: policy[0],
)
def test_policies_that_divide_by_the_cost_reject_free_samples(expect_rejected, policy):
    edit(TINY_FILE, "sampling = 1", "sampling = 0")
    kind, *others = policy
    args = [a for o in others for a in ("--set", o)]
    limited = ("--set", f"policy.kind={kind}", "--set", "agent.max_steps=3")
    expect_rejected("run", "m.toml", *limited, *args, parts=["m.toml: cost", "sampling = 1"])


def test_free_samples_are_fine_for_a_policy_that_does_not_divide_by_the_cost(command):
    edit(TINY_FILE, "sampling = 1", "sampling = 0")
    overrides = ("--set", "policy.kind=gchk", "--set", "agent.max_steps=3")
    code, out, _ = command("check", "m.toml")
    assert code == 2
    code, out, err = command("run", "m.toml", *overrides, "--out", "r")
    assert (code, err) == (0, "")
    assert "Step limit reached after 3 sites." in out


COMPARE = ("compare", "m.toml", "--jobs", "1", "--starts", "1")


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (("lake-levl-set", "--out", "o.csv"), "did you mean 'lake-level-set'?"),
        (("m.toml", "--out", "o.csv"), "m, m"),
        (("--out", "s.csv"), "where: --out"),
        (("--out", "m.toml"), "where: --out"),
        (("--out", "worlds"), "where: --out"),
        (("--out", "s.csv/o.csv"), "where: --out"),
        (("--out", "o.png"), "where: --out"),
        (("--out", "o.csv", "--at", "nan"), "where: --at"),
        (("--out", "o.csv", "--set", "x"), "where: --set"),
        (("--out", "o.csv", "--set", "world=live"), "--by-hand"),
        (("--out", "o.csv", "--draws", "0"), "--draws"),
        ((), "--out"),
    ],
    ids=lambda value: words(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_comparison_is_rejected(expect_rejected, args, part):
    expect_rejected(*COMPARE, *args, parts=[part])


@pytest.fixture
def compared(_place, command):
    """Leave the table of a comparison in the folder; it is made once."""
    if not COMPARED:
        assert command(*COMPARE, "--out", "o.csv", "--set", "agent.max_steps=2")[0] == 0
        COMPARED.append(Path("o.csv").read_bytes())
    write("o.csv", COMPARED[0])


COMPARED = []


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize(("file", "old", "new"), [("m.toml", "= 30", "= 20"), (TINY_FILE, "0.1", "0.2")])
def test_an_old_table_of_a_changed_mission_or_world_is_rejected(expect_rejected, file, old, new):
    edit(file, old, new)
    expect_rejected(*COMPARE, "--out", "o.csv", "--set", "agent.max_steps=2", parts=["o.csv", "--out"])


@pytest.mark.usefixtures("compared")
def test_a_table_with_a_damaged_line_is_rejected_with_its_line(expect_rejected):
    lines = Path("o.csv").read_text().splitlines()
    write("o.csv", "\n".join([*lines[:2], "step,m,zero", *lines[2:], ""]))
    expect_rejected(*COMPARE, "--out", "o.csv", "--set", "agent.max_steps=2", parts=["o.csv, line 3"])


SURVEY = ("--csv", "s.csv", "--x", "x", "--y", "y", "--value", "v")


@pytest.mark.parametrize(
    ("name", "args", "part"),
    [
        ("../w", (), "'../w'"),
        ("a/b", (), "'a/b'"),
        ("a b", (), "'a b'"),
        ("..", (), "'..'"),
        ("", (), "''"),
        ("tiny", (), "worlds/tiny"),
        ("w", ("--y", "why"), "did you mean 'y'?"),
        ("w", ("--y", "x"), "--x and --y both name the column"),
        ("w", ("--csv", "q.csv"), "q.csv"),
        ("w", ("--csv", "worlds"), "where: worlds"),
        ("w", ("--quantile", "2"), "where: --quantile"),
        ("w", ("--quantile", "nan"), "where: --quantile"),
        ("w", ("--threshold", "nan"), "where: --threshold"),
        ("w", ("--threshold", "-1", "--transform", "log"), "where: --threshold"),
        ("w", ("--transform", "lgo"), "--transform"),
        ("w", ("--channel", "temp"), "where: s.csv, line 1"),
        ("w", ("--channel", "v"), "--value and --channel both name the column 'v'"),
        ("w", ("--noise", "v"), "--value and --noise both name the column 'v'"),
        ("w", ("--threshold", "1.5", "--quantile", "0.4"), "--threshold and --quantile were both given"),
        ("w", ("--unit", "a\tb"), "where: --unit"),
    ],
    ids=lambda value: words(value) if isinstance(value, tuple) else None,
)
def test_a_wrong_new_world_is_rejected(expect_rejected, name, args, part):
    expect_rejected("new", "world", name, *SURVEY, *args, parts=[part])


LONG = 300 * "a"


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (("new", "world", LONG, *SURVEY), f"the world name '{LONG}' has 300 letters"),
        (("new", "mission", LONG, "--world", "tiny"), f"the mission name '{LONG}' has 300 letters"),
        (("new", "vehicle", LONG, "--link", "mqtt", "--world", "tiny"), "has 300 letters"),
        (("check", LONG), f"there is no {LONG}: the name is too long"),
        (("check", f"{LONG}.toml"), f"there is no {LONG}.toml: the name is too long"),
        (("run", f"{LONG}.toml"), "File name too long"),
        (("resume", LONG), f"there is no {LONG}: the name is too long"),
        (("ask", LONG), f"there is no {LONG}: the name is too long"),
        (("export", LONG, "csv"), f"there is no {LONG}: the name is too long"),
        (("run", "m.toml", "--prior", f"{LONG}.csv"), f"{LONG}.csv: the name is too long"),
        (("run", "m.toml", "--set", 'prior.readings="a\\u0000b"'), "expected: the name of a file"),
        (("run", "m.toml", "--set", 'prior.mean="a\\u0000b"'), "expected: the name of a file"),
    ],
    ids=lambda value: " ".join(value).replace(LONG, "LONG") if isinstance(value, tuple) else None,
)
def test_a_name_that_no_file_can_have_is_rejected(expect_rejected, args, part):
    expect_rejected(*args, parts=[part], compare=False)


def test_an_export_to_an_empty_folder_name_is_rejected(expect_rejected, command):
    assert command("run", "m.toml", "--out", "a")[0] == 0
    expect_rejected("export", "a", "csv", "--out", "", parts=["the output folder is empty", "where: --out"])


def test_a_new_world_with_the_name_of_a_mission_that_exists_is_rejected(expect_rejected):
    write("missions/w.toml", MISSION)
    expect_rejected("new", "world", "w", *SURVEY, parts=["missions/w.toml"])


@pytest.mark.parametrize("column", ["x", "y"])
def test_a_survey_without_extent_is_rejected(expect_rejected, column):
    rows = [f"3,{i},{i * i}" if column == "x" else f"{i},3,{i * i}" for i in range(9)]
    write("s.csv", "\n".join(["x,y,v", *rows]))
    expect_rejected("new", "world", "w", *SURVEY, parts=["where: s.csv"])


@pytest.mark.parametrize("taken", ["worlds", "missions"])
def test_a_new_world_is_rejected_where_a_file_has_the_name_of_its_folder(expect_rejected, monkeypatch, taken):
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    write("s.csv", READINGS)
    write(taken, "mine")
    expect_rejected("new", "world", "w", *SURVEY, parts=[taken])


@pytest.mark.parametrize(
    ("args", "part"),
    [
        pytest.param(("run", "m.toml", "--set", "world=tyny"), "did you mean 'tiny'?", id="unknown"),
        pytest.param(("check", "binary.toml"), "where:    binary.toml", id="binary", marks=pytest.mark.sweep),
        pytest.param(
            ("run", "m.toml", "--set", "world=live"), "--by-hand", id="live", marks=pytest.mark.sweep
        ),
    ],
)
def test_a_separate_process_ends_with_2_and_without_a_traceback(args, part):
    write("binary.toml", bytes(range(256)))
    before = everything()
    done = subprocess.run(
        [sys.executable, "-c", "from fieldbo.cli import main; main()", *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=SLOW_S,
    )
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert everything() == before


def test_a_mission_is_asked_for_its_noise(command, expect_rejected):
    edit(TINY_FILE, "noise_sd = 0.1", "")
    parts = ["where: tiny/world.toml: sensor", "add [sensor] with noise_sd", 'noise = "learned"']
    checked = expect_rejected("check", "m.toml", parts=parts)
    assert expect_rejected("run", "m.toml", compare=False) == checked
    assert fieldbo.load_world("tiny").domain.size > 1
    learning = ("--set", "model.learn=true", "--set", "model.noise=learned")
    assert command("run", "m.toml", *learning)[0] == 0
    edit(TINY_FILE, "[sensor]", "[sensor]\nnoise_sd = 0")
    assert command("run", "m.toml")[0] == 0


def test_an_old_run_without_a_declared_noise_can_be_continued(command):
    edit(TINY_FILE, "noise_sd = 0.1", "")
    mission = read_mission("m.toml", {"agent": {"max_steps": 3}})
    folder, record = begin(mission, Path("runs") / "old")
    with record:
        fieldbo.run(mission, record=record)
    assert fieldbo.load_run(folder).result().cost > 0
    assert command("resume", "old")[0] == 0


def test_a_mission_of_a_run_folder_is_named_after_the_folder_and_never_after_its_title(command):
    write("elsewhere/mission.toml", "title = '../../evil / name'\n" + MISSION)
    edit("elsewhere/mission.toml", 'world = "tiny"', 'world = "tiny"\nseed = 1')
    assert command("run", "elsewhere/mission.toml", "--set", "agent.max_steps=1")[0] == 0
    assert [p.name for p in Path("runs").iterdir()] == ["elsewhere-1"]
    assert not (Path.cwd().parent / "evil").exists()


def test_a_byte_order_mark_is_accepted():
    for file in ("m.toml", TABLE_FILE, CSV_FILE):
        Path(file).write_bytes(Path(file).read_text().encode("utf-8-sig"))
    assert fieldbo.load_mission("m.toml").vehicles[0].battery == 30
    assert fieldbo.load_world("table").domain.size > 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-be", "latin-1"])
def test_a_file_in_another_encoding_is_rejected(expect_rejected, encoding):
    Path("m.toml").write_bytes(("# é\n" + MISSION).encode(encoding))
    expect_rejected("run", "m.toml", parts=["where: m.toml"])


def test_a_file_of_many_megabytes_is_rejected_unread(expect_rejected):
    Path("m.toml").write_bytes(b"#" * 11_000_000)
    expect_rejected("run", "m.toml", parts=["11 MB"])


def test_too_many_axes_are_rejected(expect_rejected):
    axis = '{{ name = "a{}", unit = "m", low = 0, high = 10, count = 1 }}'
    axes = ",".join(axis.format(k) for k in range(40))
    write(TINY_FILE, TINY.replace("axes = [", f"axes = [{axes},"))
    expect_rejected("run", "m.toml", parts=["domain.axes", "at most 32"])


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000 + "]" * 5000], ids=["digits", "nested"])
def test_a_hostile_override_is_rejected(expect_rejected, value):
    expect_rejected("run", "m.toml", "--set", f"agent.battery={value}", parts=["agent.battery"])


@pytest.mark.parametrize("count", [150, 100_000, 1_000_000_000])
def test_a_grid_with_too_many_sites_is_rejected_before_it_is_made(expect_rejected, count):
    edit(TINY_FILE, "count = 5", f"count = {count}")
    edit(TINY_FILE, "count = 5", f"count = {count}")
    expect_rejected("run", "m.toml", parts=["where: worlds/tiny/world.toml: domain.axes", "needs"])


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


@st.composite
def mutated(draw, text):
    """A valid file with up to three wrong values, misspelt keys, missing or added ones."""
    content = tomllib.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(paths_in(content))))
        table = holder(content, path)
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


@settings(max_examples=examples(150), deadline=None)
@given(text=mutated(MISSION + "[initial]\ncount = 2\n"))
def test_any_mission_either_loads_or_raises_a_fieldbo_error(text):
    with tempfile.TemporaryDirectory() as folder:
        for name, world in (("tiny", TINY), ("live", LIVE)):
            write(Path(folder) / name / "world.toml", world)
        file = Path(folder) / "m.toml"
        write(file, text)
        before = sorted(Path(folder).rglob("*"))
        mission, error = loaded(fieldbo.load_mission, file)
        assert mission is not None or str(file) in error
        assert mission is None or mission.vehicles[0].battery > 0
        assert sorted(Path(folder).rglob("*")) == before


@settings(max_examples=examples(100), deadline=None)
@given(text=mutated(TINY))
def test_any_world_either_loads_or_raises_a_fieldbo_error(text):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tiny" / "world.toml"
        write(file, text)
        world, error = loaded(fieldbo.load_world, file)
        assert world is not None or str(file) in error
        assert world is None or (world.domain.size >= 1 and (world.sensor.noise_sd or 0.0) >= 0)


@pytest.mark.parametrize("name", ["lake-level-set", "lake-transect"])
def test_a_folder_with_the_name_of_a_mission_or_world_does_not_hide_it(name, said):
    Path(name).mkdir()
    assert f"{name}: valid" in said("check", name)
