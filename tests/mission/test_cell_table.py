"""New factory cells from a table of trials."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
import xarray

import fieldbo
from fieldbo.costs.cells import Modular, Module
from fieldbo.domain.controls import TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.mission.new.cell import fitted_law, make_cell
from fieldbo.mission.new.trials import CellTable
from fieldbo.results import maps

N = 48
COLUMNS = ("heat", "pressure", "minutes")
RUN = ("--cell", "--csv", "t.csv", "--value", "strength")


def outcome(x):
    """The strength (N,) at settings (N, 3), which hardly depends on the pressure."""
    heat, pressure, minutes = x.T
    return 30 * np.exp(-(((heat - 210) / 40) ** 2) - ((minutes - 30) / 25) ** 2) + 0.05 * pressure


def settings():
    rng = np.random.default_rng(3)
    heat = np.clip(rng.normal(205, 15, N), 160, 250)
    return np.column_stack([heat, rng.uniform(1, 9, N), rng.uniform(5, 60, N)])


def write(noise=0.2, header=("heat", "pressure", "minutes", "strength"), extra=None):
    rng = np.random.default_rng(4)
    x = settings()
    y = outcome(x) + noise * rng.standard_normal(N)
    rows = np.column_stack([x, y, *([] if extra is None else [extra])])
    lines = [",".join(header), *(",".join(f"{v:.5g}" for v in row) for row in rows)]
    Path("t.csv").write_text("\n".join(lines) + "\n")
    return rows


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def world_file(name="oven"):
    return tomllib.loads(Path(f"worlds/{name}/world.toml").read_text())


def mission_file(name="oven"):
    return tomllib.loads(Path(f"missions/{name}.toml").read_text())


# -- what becomes of a table -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_table_becomes_a_cell_whose_mission_runs(said):
    rows = write()

    out = said("new", "world", "oven", *RUN, "--goal", "maximise", "--unit", "MPa")

    assert "world in worlds/oven, mission in missions/oven.toml" in out
    assert f"rows      {N}, {rows[:, 3].min():.5g} to {rows[:, 3].max():.5g} MPa" in out
    assert int(out.split("which explains ")[1].split("%")[0]) >= 80
    assert "worthless" not in out
    assert "90% intervals hold" in out
    assert "where is strength largest? ei, battery 60 EUR" in out
    assert "next: fieldbo run oven" in out
    assert {p.name for p in Path("worlds/oven").iterdir()} == {"world.toml", "README.md", "readings.csv"}
    kept, given = (np.loadtxt(f, delimiter=",", skiprows=1) for f in ("worlds/oven/readings.csv", "t.csv"))
    assert np.array_equal(kept, given)

    out = said("run", "oven", "--set", "agent.max_steps=12", "--out", "r")
    summary = json.loads(Path("r/summary.json").read_text())
    assert "against the truth" in out
    assert (summary["goal"], summary["value_unit"], summary["cost"]) == ("maximise", "MPa", 12.0)
    assert "world oven: valid" in said("check", "worlds/oven")


def test_the_truth_is_the_process_fitted_to_the_table_over_the_box_of_its_settings():
    rows = write()

    made = make_cell("oven", CellTable(Path("t.csv"), "strength"))

    world = fieldbo.load_world("oven")
    assert [a.name for a in world.domain.axes] == list(COLUMNS)
    assert np.allclose(world.domain.low, rows[:, :3].min(axis=0), rtol=1e-4)
    assert np.allclose(world.domain.high, rows[:, :3].max(axis=0), rtol=1e-4)
    assert world.domain.continuous
    sites = world.domain.sites[::37]
    assert np.allclose(world.truth(sites), made.field.values(sites))
    assert np.abs(world.truth(sites) - outcome(sites)).mean() < 1.0
    assert np.abs(world.truth(made.field.readings.sites) - rows[:, 3]).max() < 1.0
    assert world.sensor.noise_sd == pytest.approx(0.2, rel=0.8)


def test_an_irrelevant_setting_has_a_long_length_scale():
    write()

    made = make_cell("oven", CellTable(Path("t.csv"), "strength"))

    heat, pressure, minutes = made.field.length_scales / made.field.extent
    assert pressure > 2 * max(heat, minutes)
    values = made.field.readings.values
    assert made.field.explained == pytest.approx(1 - made.field.loo_rmse**2 / values.var())
    assert 0.8 < made.field.explained < 1
    assert 0 <= made.little_known < 0.5


def test_random_outcomes_are_reported_as_such(said):
    rng = np.random.default_rng(3)
    rows = [
        f"{a:.3f},{b:.3f},{v:.3f}" for a, b, v in zip(*rng.random((2, 40)), rng.normal(0, 1, 40), strict=True)
    ]
    Path("t.csv").write_text("\n".join(["a,b,strength", *rows]))

    out = said("new", "world", "oven", *RUN)

    explained = fieldbo.load_world("oven").field.explained
    assert explained < 0.1
    assert f"note      the fitted truth is worthless (cross-validated R2 {explained:.2f})" in out
    assert f"which explains {max(0, explained):.0%} of the variance" in out
    assert "the fitted truth is worthless" in said("check", "oven")
    assert f"R2 {explained:.2f}" in Path("worlds/oven/README.md").read_text()


def test_named_columns_become_settings_with_units(said):
    write(header=("heat", "pressure", "minutes", "strength", "operator"), extra=np.arange(N))

    out = said("new", "world", "oven", *RUN, "--axis", "minutes:min", "--axis", "heat:C")

    axes = world_file()["domain"]["axes"]
    assert [(a["name"], a["unit"]) for a in axes] == [("minutes", "min"), ("heat", "C")]
    assert "pressure" not in out


def test_a_column_with_a_colon_in_its_name_can_be_named(said):
    write(header=("heat: C", "pressure", "minutes", "strength"))

    said("new", "world", "oven", *RUN, "--axis", "heat: C", "--axis", "minutes:min")

    assert [a["name"] for a in world_file()["domain"]["axes"]] == ["heat: C", "minutes"]


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_column_names_with_blanks_become_valid_names_in_the_map(said):
    write(header=("oven heat (C)", "class!", "1st minutes", "strength"))
    said("new", "world", "oven", *RUN)

    out = said("run", "oven", "--set", "agent.max_steps=3", "--out", "r")

    assert "oven heat" in out
    assert Path("r/observations.csv").read_text().startswith("order,oven heat,class!,1st minutes,value")
    with xarray.open_dataset("r/map.nc", engine="scipy") as data:
        names = {name: data[name].attrs["long_name"] for name in data.coords}
    fit = {"oven_heat": "oven heat (C)", "class_2": "class!", "axis_1st_minutes": "1st minutes"}
    assert names == fit


@pytest.mark.parametrize(
    ("names", "fit"),
    [
        (["Wärme_C", "Zufuhr_µm"], ["W_rme_C", "Zufuhr__m"]),
        (["ß", "θ"], ["axis", "axis_2"]),
        (["Ärmel"], ["rmel"]),
        (["température", "temp_rature"], ["temp_rature", "temp_rature_2"]),
    ],
)
def test_names_of_the_map_are_ascii(names, fit):
    assert maps.names_of(names) == fit


def test_a_noise_column_is_not_a_setting(said):
    write(header=("heat", "pressure", "minutes", "strength", "sd"), extra=np.full(N, 0.3))

    said("new", "world", "oven", *RUN, "--noise", "sd")

    assert [a["name"] for a in world_file()["domain"]["axes"]] == list(COLUMNS)
    assert fieldbo.load_world("oven").sensor.noise_sd == pytest.approx(0.3)


def test_a_positive_skewed_outcome_can_be_modelled_by_its_log(said):
    x = settings()
    rows = [",".join(f"{v:.5g}" for v in (*a, np.exp(outcome(a[None])[0] / 10))) for a in x]
    Path("t.csv").write_text("\n".join([",".join([*COLUMNS, "strength"]), *rows]))

    out = said("new", "world", "oven", *RUN, "--transform", "log")

    assert "of the log" in out
    assert mission_file()["model"]["transform"] == "log"
    world = fieldbo.load_world("oven")
    assert world.truth(world.domain.sites).min() > 0


# -- modules, control sets, a cost per sample ------------------------------------------------------------


@pytest.mark.slow
def test_modules_become_a_chain_with_a_lambo_mission(said):
    write()

    modules = ("--module", "bake=heat,minutes:40", "--module", "press = pressure : 10")
    out = said("new", "world", "oven", *RUN, *modules, "--cost-unit", "s")

    world = fieldbo.load_world("oven")
    assert isinstance(world.cost, Modular)
    assert world.cost.modules == (
        Module("bake", ("heat", "minutes"), 40.0),
        Module("press", ("pressure",), 10.0),
    )
    assert "modules   bake (heat, minutes) 40 s; press (pressure) 10 s, charged with every sample" in out
    mission = fieldbo.load_mission("oven")
    assert (mission.policy_kind, mission.costs, mission.vehicles[0].battery) == ("lambo", "declared", 1250.0)
    said("run", "oven", "--set", "agent.max_steps=7", "--out", "r")
    assert "press 10" in said("ask", "r")


def test_control_sets_get_distributions_from_the_table_and_unknown_costs(said):
    rows = write()

    sets = (
        "--control-set",
        "heat,minutes,pressure:1",
        "--control-set",
        "minutes:0.1",
        "--control-set",
        "heat,minutes:.2",
    )
    out = said("new", "world", "oven", *RUN, *sets, "--goal", "maximise")

    domain = fieldbo.load_world("oven").domain
    assert [s.name for s in domain.control_sets] == ["all", "minutes", "heat, minutes"]
    heat, pressure, minutes = domain.distributions
    assert isinstance(heat, TruncatedNormal)
    assert heat.mean == pytest.approx(rows[:, 0].mean(), rel=1e-4)
    assert heat.variance == pytest.approx(rows[:, 0].var(), rel=1e-3)
    assert isinstance(pressure, Uniform)
    assert minutes is None, "it is always set"
    assert "pressure spread too wide for a normal distribution: uniform where left free" in out
    assert "always    minutes is set" in out
    assert "costs to be learned" in out
    mission = fieldbo.load_mission("oven")
    assert (mission.policy_kind, mission.costs, mission.max_steps) == ("subset-front", "unknown", 200)
    assert mission.vehicles[0].battery == 10 * 1.3 + 5


@pytest.mark.parametrize(("goal", "side"), [("maximise", -1), ("minimise", 1)])
def test_the_worst_value_lies_beyond_the_table_and_the_fit(goal, side):
    write()
    sets = (((*COLUMNS,), 1.0), (("heat",), 0.1))

    made = make_cell("oven", CellTable(Path("t.csv"), "strength", control_sets=sets, goal=goal))

    worst = made.loaded.policy.worst
    truth = made.field.values(made.loaded.world.domain.sites)
    assert (side * worst > side * made.field.readings.values).all()
    assert (side * worst > side * truth).all()


@pytest.mark.slow
def test_a_mission_of_control_sets_runs(said):
    write()
    sets = ("--control-set", "heat,minutes,pressure:1", "--control-set", "heat,minutes:.2")
    said("new", "world", "oven", *RUN, *sets, "--goal", "maximise")

    quick = ("--set", "agent.max_steps=8", "--set", "policy.samples=16", "--set", "policy.candidates=8")
    said("run", "oven", *quick, "--out", "r")

    assert "this control set was used" in said("ask", "r")
    assert json.loads(Path("r/summary.json").read_text())["steps"] == 8


def test_a_sample_has_a_cost_without_modules_and_control_sets(said):
    write()

    assert "2.5 h per sample" in said(
        "new", "world", "oven", *RUN, "--sample-cost", "2.5", "--cost-unit", "h"
    )
    assert fieldbo.load_mission("oven").vehicles[0].battery == 150.0


def test_a_cell_of_many_settings_is_made():
    rng = np.random.default_rng(6)
    x = rng.random((60, 12))
    y = np.sin(3 * x[:, 0]) + x[:, 1] ** 2 - x[:, 2]
    names = [f"x{k + 1}" for k in range(12)]
    lines = [",".join([*names, "y"]), *(",".join(f"{v:.4f}" for v in row) for row in np.column_stack([x, y]))]
    Path("t.csv").write_text("\n".join(lines))

    made = make_cell("many", CellTable(Path("t.csv"), "y"))

    assert made.loaded.world.domain.dimension == 12
    assert made.field.explained > 0.5


# -- laws ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_fitted_law_has_the_mean_and_the_variance_of_the_column(seed):
    rng = np.random.default_rng(seed)
    values = np.clip(rng.normal(rng.uniform(0.3, 0.7), 0.12, 200), 0, 1)

    law = fitted_law(values, 0.0, 1.0)

    drawn = law.quantile((np.arange(20_000) + 0.5) / 20_000)
    assert drawn.mean() == pytest.approx(values.mean(), abs=1e-4)
    assert drawn.var() == pytest.approx(values.var(), rel=1e-3)


@pytest.mark.parametrize("values", [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], np.linspace(0, 1, 9)])
def test_a_column_that_spreads_too_wide_for_a_normal_distribution_is_uniform(values):
    assert isinstance(fitted_law(np.array(values), 0.0, 1.0), Uniform)


# -- what makes no cell ----------------------------------------------------------------------------------


CHAIN = ("--module", "bake=heat,minutes:40", "--module", "press=pressure:10")


def bad(*args, said=()):
    return pytest.param(args, said, id=" ".join(args)[:60])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        bad("--axis", "heet", said=("unknown column 'heet'", "t.csv, line 1", "did you mean 'heat'?")),
        bad("--axis", "strength", said=("the column strength is not a setting", "--axis")),
        bad("--axis", "heat", "--axis", "heat:C", said=("the column heat is a setting twice", "--axis")),
        bad("--value", "stregth", said=("unknown column 'stregth'", "did you mean 'strength'?")),
        bad("--csv", "none.csv", said=("there is no file none.csv",)),
        bad(
            "--module", "bake=heat,minutes,pressure:40", said=("a single module", "at least two", "--module")
        ),
        bad(
            *CHAIN[:2],
            "--module",
            "press=heat,pressure:1",
            said=("'heat' is in module 'bake' and in", "--module"),
        ),
        bad(*CHAIN[:2], "--module", "press=presure:1", said=("unknown axis 'presure'", "--module")),
        bad(*CHAIN[2:], "--module", "bake=heat:4", said=("no module has 'minutes'", "each axis", "--module")),
        bad(
            *CHAIN[:2],
            "--module",
            "bake=pressure:10",
            said=("two modules have the same name: bake, bake", "different names"),
        ),
        bad(*CHAIN[:2], "--module", "press=pressure:0", said=("the last module, press, is free", "above 0")),
        bad(*CHAIN[:2], "--module", "press=pressure", said=("'press=pressure'", "name=setting,setting:cost")),
        bad(*CHAIN[:2], "--module", "press=pressure:-1", said=("at least 0", "--module")),
        bad(*CHAIN[:2], "--module", "press=pressure:nan", said=("at least 0", "--module")),
        bad(*CHAIN[:2], "--module", "pressure:4", said=("'pressure:4'", "name=setting,setting:cost")),
        bad("--control-set", "heat", said=("'heat'", "setting,setting:cost", "--control-set")),
        bad("--control-set", ":1", said=("':1'", "setting,setting:cost")),
        bad(
            "--control-set",
            "heet:1",
            said=("unknown variable 'heet'", "--control-set", "did you mean 'heat'?"),
        ),
        bad("--control-set", "heat,heat:1", said=("each variable once", "--control-set")),
        bad("--control-set", "heat:1", "--control-set", "heat:2", said=("twice", "--control-set")),
        bad("--control-set", "heat:0", said=("a control set is free", "above 0", "--control-set")),
        bad("--control-set", "heat:1", "--transform", "log", said=("log", "--transform none")),
        bad(
            *CHAIN,
            "--control-set",
            "heat:1",
            said=("--module and --control-set were both given", "one of the two"),
        ),
        bad("--cost-unit", "", said=("the cost unit is empty", "--cost-unit", "costs are then in EUR")),
        bad("--sample-cost", "0", said=("a sample costs 0", "above 0", "--sample-cost")),
        bad("--sample-cost", "2", *CHAIN, said=("--sample-cost does not apply to modules", "--sample-cost")),
        bad("--x", "heat", said=("--x does not apply with --cell", "options of a cell", "leave out --cell")),
        bad("--threshold", "3", said=("--threshold does not apply with --cell",)),
        bad("--goal", "largest", said=("--goal", "'minimise'")),
        bad("--transform", "log", "--value", "low", said=("unknown column 'low'",)),
    ],
)
def test_a_wrong_cell_is_rejected_and_leaves_no_trace(command, args, said):
    write()

    code, _, err = command("new", "world", "oven", *RUN, *args)

    assert code == 2
    assert "Traceback" not in err
    text = " ".join(err.split())
    assert [part for part in said if part not in text] == []
    assert [p.name for p in Path().iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("option", "value"),
    [("--axis", "heat"), ("--module", "a=heat:1"), ("--goal", "maximise"), ("--cost-unit", "s")],
)
def test_options_of_a_cell_are_rejected_for_a_survey(command, option, value):
    write()

    code, _, err = command(
        "new", "world", "w", "--csv", "t.csv", "--x", "heat", "--value", "strength", option, value
    )

    assert code == 2
    assert f"{option} does not apply without --cell" in err
    assert "add --cell" in err


def test_a_survey_needs_a_position(command):
    write()

    code, _, err = command("new", "world", "w", "--csv", "t.csv", "--value", "strength")

    assert code == 2
    assert "the columns of the positions are missing" in err
    assert "--cell" in err


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (np.full(N, 3.0), "pressure is 3 in all rows"),
        (np.array(["A", "B"] * (N // 2)), "'A' is not a finite number"),
    ],
)
def test_an_unusable_column_is_rejected_with_a_fix(command, column, said):
    rows = settings()
    lines = [f"{a:.4g},{p},{m:.4g},{a + m:.4g}" for (a, _, m), p in zip(rows, column, strict=True)]
    Path("t.csv").write_text("\n".join(["heat,pressure,minutes,strength", *lines]))

    code, _, err = command("new", "world", "oven", *RUN)

    assert code == 2
    assert said in err
    assert "column pressure" in err
    assert "--axis" in err


def test_equal_outcomes_are_rejected(command):
    lines = [f"{a:.4g},{m:.4g},7" for a, _, m in settings()]
    Path("t.csv").write_text("\n".join(["heat,minutes,strength", *lines]))

    code, _, err = command("new", "world", "oven", *RUN)

    assert code == 2
    assert "all outcomes are 7" in err


def test_a_setting_with_a_reserved_name_is_rejected(command):
    write(header=("heat", "cost", "minutes", "strength"))

    code, _, err = command("new", "world", "oven", *RUN)

    assert code == 2
    assert "'cost'" in err
    assert "t.csv" in err
    assert "rename the axis" in err
    assert [p.name for p in Path().iterdir()] == ["t.csv"]


@pytest.mark.parametrize("args", [("--control-set", "heat,top:1"), ("--module", "a=heat,top:1", *CHAIN[2:])])
def test_a_column_with_a_comma_in_its_name_is_rejected(command, args):
    write(header=('"heat,top"', "pressure", "minutes", "strength"))

    code, _, err = command("new", "world", "oven", *RUN, *args)

    assert code == 2
    assert "'heat,top' can't be named because it contains a comma" in err
    assert "rename the column" in err
    assert args[0] in err


def test_the_box_has_representers():
    write()

    domain = make_cell("oven", CellTable(Path("t.csv"), "strength")).loaded.world.domain

    assert isinstance(domain, Domain)
    assert domain.size == 2048


# -- tables of programs for designed experiments ---------------------------------------------------------


def design(before="Std,Run,", behind="", failed=()):
    """Write a design as such a program exports it; the last of `failed` trials hold no number."""
    rng, rows = np.random.default_rng(2), []
    for i in range(40):
        temperature, pressure, feed = rng.choice([180, 200, 220, 240]), rng.choice([4, 5, 6, 7]), rng.random()
        strength = 60 - ((temperature - 215) / 12) ** 2 + pressure / 4 + feed + 0.3 * rng.standard_normal()
        outcome = dict(failed).get(i, f"{strength:.2f}")
        more = [f"{strength / 7 + 0.02 * rng.standard_normal():.3f}"] if behind else []
        order = [str(i + 1), str((i * 17) % 40 + 1), "1", "-1"][: before.count(",")]
        rows.append(",".join([*order, str(temperature), str(pressure), f"{feed:.3f}", outcome, *more]))
    names = f'{before}A:Temperature [°C],B:Pressure [bar],"C:Feed, kg/h",Strength [MPa]{behind}'
    Path("t.csv").write_text("\n".join([names, *rows]), encoding="utf-8")


@pytest.mark.parametrize(
    ("before", "left_out"),
    [
        ("Std,Run,", "Std, Run are"),
        ("StdOrder,RunOrder,Blocks,PtType,", "StdOrder, RunOrder, Blocks, PtType are"),
        ("Run #,", "Run # is"),
    ],
    ids=["Design-Expert", "Minitab", "a number"],
)
def test_columns_that_number_or_order_the_trials_are_no_settings(before, left_out):
    design(before)
    source, _, axes, notes = CellTable(Path("t.csv"), "Strength").read()
    assert [(axis.name, axis.unit) for axis in axes] == [
        ("A:Temperature", "°C"),
        ("B:Pressure", "bar"),
        ("C:Feed", "kg/h"),
    ]
    assert (source.value, source.value_unit) == ("Strength", "MPa")
    assert any(note.startswith(f"{left_out} no setting") for note in notes)


def test_a_column_that_orders_the_trials_is_a_setting_if_it_is_named():
    design()
    _, _, axes, notes = CellTable(Path("t.csv"), "Strength", ("Run", "A:Temperature")).read()
    assert [axis.name for axis in axes] == ["Run", "A:Temperature"]
    assert notes == ()


@pytest.mark.parametrize(
    ("value", "other"), [("Strength", "Elongation"), ("Elongation", "Strength")], ids=["behind", "before"]
)
def test_another_outcome_is_asked_about(value, other):
    design(behind=",Elongation")
    with pytest.raises(InputError, match="another outcome, or a setting") as caught:
        CellTable(Path("t.csv"), value).read()
    assert caught.value.problem.startswith(other)
    assert '--axis "A:Temperature [°C]" --axis "B:Pressure [bar]" --axis "C:Feed, kg/h"' in caught.value.fix
    named = ("A:Temperature", "B:Pressure", "C:Feed, kg/h")
    assert len(CellTable(Path("t.csv"), value, named).read().axes) == 3


def test_failed_trials_are_kept_out_and_listed():
    design()
    whole = CellTable(Path("t.csv"), "Strength").read().readings
    design(failed=[(3, ""), (7, "NaN"), (11, "scrap"), (12, "-999")])
    with pytest.raises(InputError, match="-999"):
        CellTable(Path("t.csv"), "Strength").read()
    _, readings, _, notes = CellTable(Path("t.csv"), "Strength", missing=(-999.0,)).read()
    kept = [i for i in range(40) if i not in (3, 7, 11, 12)]
    assert readings.values.tolist() == whole.values[kept].tolist()
    assert readings.lines == tuple(np.array(whole.lines)[kept].tolist())
    assert "4 trials without an outcome ('-999', 'NaN', 'scrap') left out: lines 5, 9, 13, 14" in notes


def test_outcomes_below_a_limit_of_detection_are_no_failures():
    design(failed=[(3, "<0.5")])
    with pytest.raises(InputError, match="limit of detection") as caught:
        CellTable(Path("t.csv"), "Strength").read()
    assert "line 5" in caught.value.where


def test_a_column_of_text_is_no_column_of_outcomes():
    design(failed=[(i, "ok") for i in range(38)])
    with pytest.raises(InputError, match="as in 38 of 40 trials"):
        CellTable(Path("t.csv"), "Strength").read()


def test_modules_and_control_sets_may_name_settings_with_or_without_their_unit():
    design()
    modules = (
        Module("mix", ("A:Temperature [°C]",), 3.0),
        Module("bake", ("B:Pressure", "C:Feed, kg/h"), 4.0),
    )
    source, _, axes, _ = CellTable(Path("t.csv"), "Strength", modules=modules).read()
    assert [name for module in source.modules for name in module.axes] == [axis.name for axis in axes]
