"""New worlds from the CSV of a survey."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import shapely
from pyproj import Transformer

import fieldbo
from fieldbo.belief.marginal_likelihood import fit_kernel
from fieldbo.belief.model import Model
from fieldbo.errors import InputError
from fieldbo.mission.new import writer
from fieldbo.mission.new.mission import LevelSetMission, make_mission
from fieldbo.mission.new.place import Extent, outline_of
from fieldbo.mission.new.survey import Survey, make_world
from fieldbo.world.fields import table


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows_of(file):
    with Path(file).open(newline="") as lines:
        return list(csv.DictReader(lines))


def transect(delimiter=",", bom=False, extra=(), noise=True):
    """Write a survey of a transect: along, depth, chl, its noise, temperature and oxygen (with a gap)."""
    rng = np.random.default_rng(4)
    header = ["along", "depth", "chl", *(["sd"] if noise else []), "temperature", "oxygen"]
    rows = []
    for along in range(0, 601, 100):
        for depth in range(1, 12, 2):
            chl = 2 + np.sin(along / 150) - 0.1 * depth + 0.05 * rng.standard_normal()
            oxygen = "" if (along, depth) == (100, 3) and delimiter != " " else f"{9 - 0.2 * depth:.2f}"
            if (along, depth) == (100, 3) and delimiter == " ":
                oxygen = "NA"
            sd = ["0.05"] if noise else []
            rows.append([str(along), str(depth), f"{chl:.3f}", *sd, f"{20 - 0.5 * depth:.2f}", oxygen])
    lines = [delimiter.join(r) for r in [header, *rows, *extra]]
    Path("s.csv").write_text("\n".join(lines) + "\n", encoding="utf-8-sig" if bom else "utf-8")
    return len(rows) + len(extra)


CHL = ("--csv", "s.csv", "--x", "along", "--y", "depth", "--value", "chl", "--unit", "mg m-3")


@pytest.mark.parametrize(("battery", "seconds"), [("4000", 4000.0), ("1.5 h", 5400.0)])
def test_a_battery_is_that_of_the_mission_of_a_world_in_metres(said, battery, seconds):
    transect()
    text = said("new", "world", "lake", *CHL, "--threshold", "2", "--battery", battery)
    assert f"tour, battery {seconds:g} s" in text
    assert ("--battery 4000 is in s" in text) == (battery == "4000")
    assert fieldbo.load_mission("lake").vehicles[0].battery == seconds


def test_an_impossible_battery_of_a_world_in_metres_is_an_error(command):
    transect()
    code, _, error = command("new", "world", "lake", *CHL, "--battery", "5 Wh")
    assert code == 2
    assert "where:    --battery" in error
    assert not Path("worlds").exists()


def meuse_file():
    """Return a survey that a package brings along, without importing that package, which takes seconds."""
    return Path(find_spec("skgstat").origin).parent / "data" / "samples" / "meuse.txt"


def test_the_meuse_survey_becomes_a_world_whose_mission_runs(said):
    meuse = meuse_file()
    columns = ("--x", "x", "--y", "y", "--value", "zinc", "--unit", "mg/kg")
    text = said("new", "world", "meuse", "--csv", meuse, *columns, "--transform", "log")
    assert "world in worlds/meuse, mission in missions/meuse.toml" in text
    assert "readings  155" in text
    assert "next: fieldbo run meuse" in text
    length_scales = [float(v) for v in re.findall(r"[xy] ([\d.]+) m", text)]
    assert all(200 < v < 2000 for v in length_scales)
    assert 0.15 < float(re.search(r"noise sd ([\d.]+) of the log", text)[1]) < 0.5
    error, share = re.search(r"error ([\d.]+) mg/kg, .*; 90% intervals hold (\d+)%", text).groups()
    zinc = np.loadtxt(meuse, delimiter=",", skiprows=1, usecols=5)
    assert float(error) < 0.75 * zinc.std()
    assert 80 <= int(share) <= 98
    assert {p.name for p in Path("worlds/meuse").iterdir()} == {"world.toml", "README.md", "readings.csv"}
    kept = np.loadtxt("worlds/meuse/readings.csv", delimiter=",", skiprows=1)
    assert np.array_equal(kept, np.loadtxt(meuse, delimiter=",", skiprows=1, usecols=(0, 1, 5)))
    assert "155 readings" in Path("worlds/meuse/README.md").read_text()

    world = fieldbo.load_world("meuse")
    truth = world.truth(world.domain.sites)
    assert zinc.min() / 2 < truth.min() < truth.max() < 2 * zinc.max()
    assert world.domain.region is not None
    assert "world meuse: valid" in said("check", "worlds/meuse")

    out = said("run", "meuse", "--battery", "1500", "--out", "r")
    assert "against the truth" in out
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["value_unit"] == "mg/kg"
    assert 0 < summary["cost"] <= 1500
    assert np.quantile(zinc, 0.7) == pytest.approx(summary["threshold"], rel=1e-3)
    assert Path("r/meuse/readings.csv").is_file()


@pytest.mark.slow
def test_the_meuse_survey_with_its_crs_lies_on_the_meuse(said):
    # The survey is not shipped: its licence, the GPL, is not that of fieldbo.
    meuse = meuse_file()
    said(
        "new",
        "world",
        "meuse",
        "--csv",
        meuse,
        "--x",
        "x",
        "--y",
        "y",
        "--value",
        "zinc",
        "--transform",
        "log",
    )
    plain, file = fieldbo.load_world("meuse"), Path("worlds/meuse/world.toml")
    file.write_text(file.read_text().replace('kind = "grid"', 'kind = "grid"\ncrs = "EPSG:28992"', 1))
    world = fieldbo.load_world("meuse")

    assert world.domain.georeference.name == "Amersfoort / RD New (EPSG:28992)"
    degrees = world.domain.georeference.degrees(world.domain.sites)
    assert (degrees.min(axis=0) > [50.95, 5.71]).all()  # between Stein and Maasmechelen
    assert (degrees.max(axis=0) < [51.00, 5.77]).all()
    np.testing.assert_array_equal(world.domain.sites, plain.domain.sites)
    np.testing.assert_array_equal(world.truth(world.domain.sites), plain.truth(plain.domain.sites))
    assert "F1" in said("run", "meuse", "--battery", "1500")


def test_a_transect_has_a_noise_column_and_channels_that_come_back_with_readings(said):
    n = transect()
    channels = ("--noise", "sd", "--channel", "temperature", "--channel", "oxygen")
    text = said("new", "world", "lake", *CHL, *channels, "--threshold", "1.5")
    assert f"readings  {n}" in text
    assert "on 2500 sites" in text
    assert "where is chl at or above 1.5 mg m-3? tour, battery" in text
    world = fieldbo.load_world("lake")
    assert [a.positive for a in world.domain.axes] == ["up", "down"]
    assert world.start.tolist() == [0.0, 0.0]
    assert 'kind = "transect"' in Path("worlds/lake/world.toml").read_text()
    at = world.field.readings
    assert np.abs(world.truth(at.sites) - at.values).max() < 0.3
    assert np.allclose(at.noise_variances, 0.05**2)
    assert np.isnan(at.channels["oxygen"]).sum() == 1

    said("run", "lake", "--set", "agent.max_steps=4", "--out", "r")
    rows = rows_of("r/observations.csv")
    assert len(rows) == 4
    for row in rows:
        place = np.array([float(row["along"]), float(row["depth"])])
        near = np.argmin((((at.sites - place) / world.domain.extent) ** 2).sum(axis=1))
        assert float(row["temperature"]) == at.channels["temperature"][near]
        assert float(row["oxygen"] or "nan") == pytest.approx(at.channels["oxygen"][near], nan_ok=True)


@pytest.mark.parametrize("bom", [False, True], ids=["plain", "bom"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "], ids=["comma", "semicolon", "tab", "blank"])
def test_delimiters_and_a_byte_order_mark_make_no_difference(delimiter, bom):
    transect()
    plain = make_world("plain", Survey(Path("s.csv"), ("along", "depth"), "chl", channels=("oxygen",)))
    transect(delimiter, bom)
    made = make_world("other", Survey(Path("s.csv"), ("along", "depth"), "chl", channels=("oxygen",)))
    for name in ("sites", "values"):
        assert np.array_equal(getattr(made.field.readings, name), getattr(plain.field.readings, name))
    gaps = [np.isnan(w.field.readings.channels["oxygen"]) for w in (plain, made)]
    assert np.array_equal(*gaps)
    assert made.field.loo_rmse == plain.field.loo_rmse
    sites = fieldbo.load_world("other").domain.sites[::97]
    assert np.array_equal(fieldbo.load_world("other").truth(sites), fieldbo.load_world("plain").truth(sites))


def test_repeated_sites_are_pooled_and_reported(said):
    twice = ["200", "5", "3.1", "20", "9"]
    n = transect(noise=False, extra=[twice, twice])
    text = said("new", "world", "lake", *CHL)
    assert f"note      {n} readings are pooled to {n - 1}: at most one per 1.5 m along the track" in text
    assert "note      1 station within 0.75 m of another one pooled with it" in text
    assert f"readings  {n - 2}," in text
    assert "repeat a site" not in said("check", "lake")
    with Path("worlds/lake/readings.csv").open("a") as readings:
        readings.write("200.0,5.0,3.1\n200.0,5.0,3.1\n")
    assert f"2 of {n} readings repeat a site" in said("check", "lake")
    said("run", "lake", "--set", "agent.max_steps=1", "--out", "r")
    notes = json.loads(Path("r/summary.json").read_text())["notes"]
    assert any("readings repeat a site" in note for note in notes)


def bursts():
    """Write a boat's log, in degrees and in metres: stations of five rows each, which are not in order."""
    to_metres = Transformer.from_crs("EPSG:4326", "EPSG:32632", always_xy=True)
    rng, rows = np.random.default_rng(5), []
    for i in range(24):
        lat, lon = 47.3 + 0.002 * (i // 6), 8.5 + 0.003 * (i % 6)
        for k in range(5):
            at = (lat + 1e-7 * k, lon)
            value = "-999" if k == 4 else f"{10 + np.sin(i) + 0.1 * rng.standard_normal():.3f}"
            value = {(3, 1): "", (4, 2): "fault"}.get((i, k), value)
            place = (*at, *map(repr, to_metres.transform(at[1], at[0])))
            rows.append((f"2024-05-01T12:{i:02}:{k:02}Z", *map(str, place), value, f"{k}.5"))
    rows = [rows[i] for i in rng.permutation(len(rows))]
    names = ["time", "lat", "lon", "east (m)", "north (m)", "chl (ug/l)", "temp"]
    Path("log.csv").write_text("\n".join(map(",".join, [names, *rows])))


def test_a_log_in_metres_is_pooled_sorted_and_cleaned_like_one_in_degrees():
    bursts()
    options = {"time": "time", "missing": (-999.0,), "channels": ("temp",)}
    degrees = Survey(Path("log.csv"), ("lat", "lon"), "chl", "degrees", Extent(), **options).read()
    for extent in (None, Extent(crs="EPSG:32632")):
        metres = Survey(Path("log.csv"), ("east", "north"), "chl", "metres", extent, **options).read()
        assert metres.readings.values.tolist() == degrees.readings.values.tolist()
        assert metres.readings.lines == degrees.readings.lines
        assert metres.readings.channels["temp"].tolist() == degrees.readings.channels["temp"].tolist()
        assert (metres.pooled, metres.unit, metres.axes) == (4.0, "ug/l", ["east", "north"])
        assert "rows are sorted by time" in metres.notes
        assert any("26 rows without a number for chl (ug/l) left out" in note for note in metres.notes)
        assert len(metres.notes) == len(degrees.notes)


def test_a_log_in_metres_has_its_doubtful_numbers_asked_about():
    bursts()
    with pytest.raises(InputError, match=r"-999 in 24 rows .* Then add --missing -999"):
        Survey(Path("log.csv"), ("east", "north"), "chl").read()


def test_a_new_world_is_fitted_once(monkeypatch):
    fits = []
    monkeypatch.setattr(table, "fit_kernel", lambda *given: fits.append(given) or fit_kernel(*given))
    transect(noise=False)
    made = make_world("lake", Survey(Path("s.csv"), ("along", "depth"), "temperature"))
    assert made.loaded.world.field.belief is made.field.belief
    assert len(fits) == 1


def test_readings_of_a_new_world_are_kept_to_the_last_digit(said):
    x = np.arange(30) / 7.0
    values = 1900.0 + np.sin(x) / 30
    rows = [f"{a!r},{b!r}" for a, b in np.column_stack([x, values]).tolist()]
    Path("s.csv").write_text("\n".join(["s (m),v (hPa)", *rows]))
    said("new", "world", "line", "--csv", "s.csv", "--x", "s", "--value", "v")
    world = fieldbo.load_world("line")
    assert world.field.readings.values.tolist() == values.tolist()
    assert world.field.readings.sites[:, 0].tolist() == x.tolist()
    assert (world.domain.axes[0].name, world.quantity.label) == ("s", "v (hPa)")


def test_what_a_world_was_fitted_to_is_said_of_the_world_and_not_of_a_run(said, monkeypatch):
    monkeypatch.setattr("fieldbo.world.fields.table.FIT_READINGS", 20)
    n = transect()
    note = f"the world's hyperparameters are fitted to 20 of its {n} readings"
    assert said("new", "world", "lake", *CHL).count(note) == 1
    assert said("check", "lake").count(note) == 1
    assert "fitted to 20" not in said("run", "lake", "--set", "agent.max_steps=1", "--out", "r")


def test_a_survey_along_a_line_becomes_a_world_of_one_axis(said):
    x = np.linspace(0, 500, 26)
    rows = [f"{a:g},{5 + 2 * np.sin(a / 60):.4f}" for a in x]
    Path("s.csv").write_text("\n".join(["s,ph", *rows]))
    text = said("new", "world", "line", "--csv", "s.csv", "--x", "s", "--value", "ph", "--quantile", "0.5")
    assert "on 201 sites" in text
    world = fieldbo.load_world("line")
    assert world.domain.dimension == 1
    assert np.abs(world.truth(x[:, None]) - (5 + 2 * np.sin(x / 60))).max() < 0.2
    text = said("run", "line", "--battery", "1500", "--out", "r")
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["area_unit"] == "m"
    assert summary["f1"] > 0.5
    assert {p.name for p in Path("r").iterdir()} >= {"map.nc", "path.png", "map.png", "curve.png"}


def test_the_mission_of_a_new_world_starts_inside_it(monkeypatch):
    transect()
    made = make_world("lake", Survey(Path("s.csv"), ("along", "depth"), "chl"), Path("below/here"))
    assert made.world == Path("below/here/worlds/lake")
    monkeypatch.chdir("below/here")
    mission = fieldbo.load_mission("lake")
    assert mission.world.domain.contains(mission.vehicles[0].start[None])[0]
    assert mission.question.threshold == made.loaded.question.threshold
    assert mission.vehicles[0].battery == made.loaded.vehicles[0].battery


def test_a_rehearsal_knows_nothing_of_the_fit_that_is_its_truth_unless_asked_to(said):
    transect()
    said("new", "world", "plain", *CHL)
    said("new", "world", "told", *CHL, "--fitted-model")
    said("new", "mission", "further", "--world", "plain")
    said("new", "mission", "live", "--world", "plain", "--fitted-model")
    for name in ("plain", "further"):
        mission = fieldbo.load_mission(name)
        assert mission.model == Model()
        assert mission.initial == 5
    field = fieldbo.load_world("plain").field
    for name in ("told", "live"):
        model = fieldbo.load_mission(name).model
        assert not model.learn
        assert np.allclose(model.length_scales, field.length_scales, rtol=0.05)
        assert model.mean == pytest.approx(field.scale.to_user([0.0])[0], rel=0.01)
    uncommented = re.sub(r"^# (\w+ = )", r"\1", Path("missions/plain.toml").read_text(), flags=re.MULTILINE)
    Path("missions/plain.toml").write_text(uncommented)
    assert fieldbo.load_mission("plain").model == fieldbo.load_mission("told").model


def test_only_a_world_fitted_to_a_table_has_a_fitted_model(said):
    with pytest.raises(InputError, match="not fitted to a table"):
        make_mission("x", "lake-transect", LevelSetMission(1.5), fitted_model=True)
    assert not Path("missions").exists()


@pytest.mark.parametrize("noise", [None, "sd"])
def test_the_noise_of_a_log_world_is_that_of_a_median_reading(noise):
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 900.0, 120)
    true = 10.0 * np.exp(1.5 * np.sin(x / 80))
    sd = 0.1 * true
    rows = zip(x, true + sd * rng.standard_normal(120), sd, strict=True)
    Path("s.csv").write_text("\n".join(["s,v,sd", *(f"{a},{b:.5f},{c:.5f}" for a, b, c in rows)]))
    made = make_world("log", Survey(Path("s.csv"), ("s",), "v", noise_sd=noise, transform="log"))
    expected = np.sqrt(np.mean(sd**2)) if noise else 0.1 * np.median(true)
    assert made.loaded.world.sensor.noise_sd == pytest.approx(expected, rel=0.25)


def test_nothing_is_half_written_when_the_new_world_can_t_be_loaded(monkeypatch):
    transect()

    def broken(file):
        assert file.parent.joinpath("lake", "world.toml").is_file(), "it is written aside by then"
        raise InputError("the mission is wrong", expected="a right one", where=str(file))

    monkeypatch.setattr(writer, "load_mission", broken)
    with pytest.raises(InputError, match="the mission is wrong") as caught:
        make_world("lake", Survey(Path("s.csv"), ("along", "depth"), "chl"))
    assert ".new-" not in str(caught.value), "no place that is gone by then"
    assert "s.csv" in str(caught.value)
    assert [p.name for p in Path().iterdir()] == ["s.csv"]


def test_nothing_is_half_written_when_the_disk_is_full(monkeypatch):
    transect()

    def full(file, content):
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr(writer, "write_whole", full)
    with pytest.raises(InputError, match="No space left on device"):
        make_world("lake", Survey(Path("s.csv"), ("along", "depth"), "chl"))
    assert [p.name for p in Path().iterdir()] == ["s.csv"]


def test_negative_depths_are_rejected_and_leave_no_trace():
    Path("s.csv").write_text("\n".join(["along,depth,v", *(f"{i},{-1 - i % 3},{i % 4}" for i in range(9))]))
    with pytest.raises(InputError, match="depths are negative in column depth") as caught:
        make_world("lake", Survey(Path("s.csv"), ("along", "depth"), "v"))
    assert "s.csv" in str(caught.value)
    assert [p.name for p in Path().iterdir()] == ["s.csv"]


@pytest.mark.parametrize(
    ("header", "row", "said"),
    [
        ("lon,lat,v", lambda i: f"{8 + i / 100},{47 + i % 3 / 100},{i}", "are in degrees"),
        ("x,y,v", lambda i: f"{i},{i % 3},2.5", "all readings are 2.5"),
    ],
)
def test_a_survey_unfit_for_a_world_is_rejected_and_leaves_no_trace(header, row, said):
    Path("s.csv").write_text("\n".join([header, *(row(i) for i in range(12))]))
    x, y, v = header.split(",")
    with pytest.raises(InputError, match=said):
        make_world("odd", Survey(Path("s.csv"), (x, y), v))
    assert [p.name for p in Path().iterdir()] == ["s.csv"]


@pytest.mark.parametrize("column", ["Depth", "depth_m"])
def test_a_depth_by_any_name_makes_a_transect_that_points_down(column):
    rows = (f"{10 * (i % 6)},{i // 6},{1 + i % 5}" for i in range(24))
    Path("s.csv").write_text("\n".join([f"along,{column},v", *rows]))
    axis = make_world("deep", Survey(Path("s.csv"), ("along", column), "v")).loaded.world.domain.axes[1]
    assert (axis.name, axis.positive, axis.low) == (column, "down", 0.0)


def test_a_large_survey_is_fitted_to_some_readings_and_reports_it():
    rng = np.random.default_rng(0)
    x, y = 100 * rng.random((2, 600))
    values = np.sin(x / 20) + np.cos(y / 30) + 0.05 * rng.standard_normal(600)
    rows = (",".join(f"{v:.4f}" for v in row) for row in zip(x, y, values, strict=True))
    Path("s.csv").write_text("\n".join(["x,y,v", *rows]))
    made = make_world("large", Survey(Path("s.csv"), ("x", "y"), "v"))
    (note,) = made.field.details
    n = len(made.field.readings.values)  # some of those that follow each other are close, and pooled
    assert 570 < n <= 600
    assert f"fitted to 400 of its {n} readings" in note
    assert made.field.loo_rmse < 0.07


def test_a_survey_along_lines_is_judged_by_lines_left_out(said):
    rng, rows = np.random.default_rng(0), []
    for i, y in enumerate(range(0, 401, 80)):
        rows += [(x, y) for x in range(0, 401, 10)][:: -1 if i % 2 else 1]
    sites = np.array(rows) + 0.5 * rng.standard_normal((len(rows), 2))
    values = 12 + np.sin(sites[:, 0] / 60) * np.cos(sites[:, 1] / 50) + 0.01 * rng.standard_normal(len(rows))
    lines = (",".join(f"{v:.4f}" for v in row) for row in np.column_stack([sites, values]))
    Path("s.csv").write_text("\n".join(["x,y,t", *lines]))
    columns = ("--csv", "s.csv", "--x", "x", "--y", "y", "--value", "t", "--unit", "degC")
    text = said("new", "world", "lines", *columns)
    single = float(re.search(r"leave-one-out error ([\d.]+) degC", text)[1])
    by_line = float(re.search(r"lines     6 lines, each left out whole: error ([\d.]+) degC", text)[1])
    assert by_line > 3 * single
    advice = re.search(r"trust     (.*)", text)[1]
    readme = Path("worlds/lines/README.md").read_text()
    assert f"Leave-one-out error {single:.4g} degC" in readme
    assert f"With 6 lines, each left out whole: error {by_line:.4g} degC" in readme
    assert f"{advice[0].upper()}{advice[1:]}." in readme


def test_without_a_value_the_columns_are_listed_to_choose_from(command):
    transect()
    code, out, err = command("new", "world", "lake", "--csv", "s.csv", "--x", "along", "--y", "depth")
    assert code == 2
    assert re.search(r"chl +value +42 +0 +\d\.\d+ +\d\.\d+", out)
    assert re.search(r"oxygen +value +41 +1 ", out)
    assert "choose one with --value COL" in err
    assert [p.name for p in Path().iterdir()] == ["s.csv"]


def everything():
    return {str(p): p.read_bytes() for p in sorted(Path().rglob("*")) if p.is_file()}


def test_a_world_is_replaced_on_purpose_only_and_what_else_is_there_stays(command):
    transect()
    command("new", "world", "lake", *CHL, "--battery", "40 min")
    Path("worlds/lake/notes.txt").write_text("mine")
    Path("worlds/other").mkdir()
    Path("worlds/other/world.toml").write_text("another one")
    before = everything()
    code, _, error = command("new", "world", "lake", *CHL, "--battery", "20 min")
    assert code != 0
    assert "--replace" in error
    assert everything() == before
    code, _, error = command("new", "world", "lake", *CHL, "--battery", "20 min", "--replace")
    assert code == 0, error
    after = everything()
    assert {k for k in before if before[k] != after.get(k)} == {"missions/lake.toml"}
    assert fieldbo.load_mission("lake").vehicles[0].battery == 1200.0


def test_a_replacement_that_fails_leaves_the_old_world(command, monkeypatch):
    transect()
    command("new", "world", "lake", *CHL)
    before, rename, failed = everything(), Path.replace, []

    def failing(self, target):
        if Path(target) == Path("worlds/lake") and not failed:
            failed.append(self)
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    code, _, _ = command("new", "world", "lake", *CHL, "--battery", "20 min", "--replace")
    assert code != 0
    assert failed
    assert everything() == before


def test_a_folder_that_is_no_world_is_not_replaced(command):
    transect()
    Path("worlds/lake").mkdir(parents=True)
    Path("worlds/lake/photo.jpg").write_text("mine")
    code, _, error = command("new", "world", "lake", *CHL, "--replace")
    assert code != 0
    assert "worlds/lake is no world" in error


def scattered(values, columns="x,y,v"):
    """Write a survey of 400 m by 300 m with these values."""
    places = np.random.default_rng(1).uniform([0, 0], [400, 300], (len(values), 2))
    rows = [f"{x!r},{y!r},{v!r}" for (x, y), v in zip(places.tolist(), values.tolist(), strict=True)]
    Path("s.csv").write_text("\n".join([columns, *rows]))
    return places


METRES = ("--csv", "s.csv", "--x", "x", "--y", "y", "--value", "v")


def test_a_small_range_on_a_large_offset_keeps_its_digits(said):
    places = np.random.default_rng(1).uniform([0, 0], [400, 300], (60, 2))
    values = 1897.25 + 0.04 * np.sin(places[:, 0] / 80)
    scattered(values)
    text = said("new", "world", "level", *METRES, "--fitted-model")
    mission = fieldbo.load_mission("level")
    assert mission.question.threshold == np.quantile(values, 0.7)
    assert 0.1 < np.mean(mission.world.truth(mission.world.domain.sites) >= mission.question.threshold) < 0.6
    assert abs(mission.model.mean - 1897.25) < 0.04
    shown = f"{mission.question.threshold:.8g}"
    assert f"where is v at or above {shown}?" in text
    assert f'title = "Where is v at or above {shown}?"' in Path("missions/level.toml").read_text()
    assert f"readings  60, {values.min():.8g} to {values.max():.8g}" in text


@pytest.mark.parametrize(("side", "threshold"), [("above", 0.5), ("below", 0.5)])
def test_the_threshold_of_counts_that_are_mostly_zero_is_one_of_the_others(said, side, threshold):
    scattered(np.array([0.0] * 30 + [0.3, 0.5, 0.5, 0.6, 1.0]))
    text = said("new", "world", "stars", *METRES, "--side", side)
    assert "note      86% of the readings are 0: the threshold is the median of the others, 0.5;" in text
    assert fieldbo.load_mission("stars").question.threshold == threshold


def test_counts_of_zero_in_a_row_are_no_stuck_sensor():
    counts = np.zeros(60)
    counts[[4, 11, 12, 30]] = [0.6, 1.0, 0.5, 0.9]
    scattered(counts)
    assert len(Survey(Path("s.csv"), ("x", "y"), "v").read().readings.values) > 50


def test_a_quantile_that_every_reading_reaches_is_refused(command):
    scattered(np.array([0.0] * 30 + [0.3, 0.5, 0.5, 0.6, 1.0]))
    code, _, error = command("new", "world", "stars", *METRES, "--quantile", "0.7")
    assert code == 2
    assert "the quantile 0.7 is the least reading, 0: every reading is at or above it" in error
    assert "86% of the readings are 0" in error
    assert not Path("worlds").exists()


def test_a_threshold_that_is_the_detection_limit_of_most_readings_is_another_one():
    values = np.array([2.0] * 30 + [3.0, 4.0, 5.0])
    threshold, note = LevelSetMission().threshold_of(values)
    assert threshold == 4.0
    assert "91% of the readings are 2, the least" in note
    assert LevelSetMission(side="below").threshold_of(-values).value == -4.0
    assert LevelSetMission(threshold=2.0).threshold_of(values) == (2.0, "")


def test_heavy_tailed_values_are_modelled_on_a_log_scale_unless_told_otherwise(said):
    values = np.exp(np.linspace(-4, 4, 60) ** 3 / 20)
    scattered(values)
    text = said("new", "world", "tail", *METRES)
    assert "logarithms are less skewed" in text
    assert "of the log" in text
    assert fieldbo.load_mission("tail").model.transform == "log"
    text = said("new", "world", "plain", *METRES, "--transform", "none")
    assert "less skewed" not in text
    assert fieldbo.load_mission("plain").model.transform == "none"


@pytest.mark.parametrize("scale", [1.0, 1e-3, 2e-5, 1e-6])
@pytest.mark.parametrize("offset", [0.0, 5e5])
def test_the_outline_of_a_survey_of_any_size_holds_every_station(scale, offset):
    sites = offset + scale * np.random.default_rng(3).uniform(0, 400, (70, 2))
    outline = shapely.Polygon(outline_of(sites))
    assert outline.is_valid
    assert shapely.covers(outline, shapely.points(sites)).all()
    assert np.allclose(outline.bounds, shapely.MultiPoint(sites).bounds, rtol=0, atol=1e-9 * scale)


def test_the_outline_of_a_survey_in_metres_has_few_decimals():
    corners = np.array(outline_of(np.random.default_rng(3).uniform(0, 400, (70, 2))))
    inner = (corners > corners.min(axis=0)) & (corners < corners.max(axis=0))
    assert (np.round(corners, 3) == corners)[inner].all()


# -- logs that need more than their columns ----------------------------------------------------------------


def boat(spiked=False):
    """Write a sonde's log of a zigzag without positions, and the boat's track, whose clock is 5 s ahead."""
    t = np.arange(80)
    lat, lon = 47.3 + 1e-4 * (t % 20), 8.5 + 3e-4 * (t // 20)
    chl = 5 + np.sin(t % 20 / 6) + 0.1 * (t // 20) + 0.02 * np.random.default_rng(0).standard_normal(80)
    chl[40] = 500.0 if spiked else chl[40]
    stamps = [f"2024-05-01T12:{i // 6:02}:{10 * (i % 6):02}Z" for i in t]
    ahead = [stamp[:-3] + f"{int(stamp[-3:-1]) + 5:02}Z" for stamp in stamps]
    rows = [f"{at},{y!r},{x!r}" for at, y, x in zip(ahead, lat.tolist(), lon.tolist(), strict=True)]
    Path("boat.csv").write_text("\n".join(["time,lat,lon", *rows]))
    rows = [f"{at},{v:.4f}" for at, v in zip(stamps, chl, strict=True)]
    Path("sonde.csv").write_text("\n".join(["time,chl", *rows]))
    rows = [f"{y!r},{x!r},{v:.4f}" for y, x, v in zip(lat.tolist(), lon.tolist(), chl, strict=True)]
    Path("log.csv").write_text("\n".join(["lat,lon,chl", *rows]))
    return lat, lon


def test_a_log_without_positions_is_joined_with_a_track(said):
    lat, lon = boat()
    track = ("--track", "boat.csv", "--track-offset", "5 s", "--spacing", "5 m")
    text = said("new", "world", "lake", "--csv", "sonde.csv", "--value", "chl", *track)
    assert "positions are those of boat.csv" in text
    assert "+5 s are added to time" in text
    readings = np.loadtxt("worlds/lake/readings.csv", delimiter=",", skiprows=1)
    assert np.allclose(readings[:, 2:4], np.column_stack([lat, lon]), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--track", "nowhere.gpx"), "there is no file nowhere.gpx"),
        (("--track-offset", "-2 h"), "--track-offset was given without a track"),
        (("--quantity", "chl"), "--quantity"),
        (("--layer", "chl"), "has no layer"),
        (("--cell", "--low", "3"), "--low does not apply with --cell"),
    ],
)
def test_options_that_do_not_fit_the_file_are_refused(command, options, problem):
    boat()
    code, _, error = command("new", "world", "lake", "--csv", "sonde.csv", "--value", "chl", *options)
    assert (code, Path("worlds").exists()) == (2, False)
    assert problem in error


def test_readings_that_look_wrong_are_asked_about_left_out_or_taken(command, said):
    boat(spiked=True)
    log = Survey(Path("log.csv"), ("lat", "lon"), "chl", "degrees", Extent())
    code, _, error = command(
        "new", "world", "a", "--csv", "log.csv", "--lat", "lat", "--lon", "lon", "--value", "chl"
    )
    assert (code, Path("worlds").exists()) == (2, False)
    assert "line 42: chl 500" in error
    assert "--clean" in error
    largest = [
        replace(log, **how).read().readings.values.max()
        for how in ({"cleaning": "clean"}, {"cleaning": "keep"}, {"high": 20.0})
    ]
    assert largest[0] < 7 < largest[1]
    assert largest[2] < 7
    columns = ("--csv", "log.csv", "--lat", "lat", "--lon", "lon", "--value", "chl")
    assert "left out" in said("new", "world", "b", *columns, "--clean")


def test_one_of_several_quantities_in_a_column_is_chosen(said, command):
    boat()
    rows = [row.split(",") for row in Path("log.csv").read_text().splitlines()[1:]]
    names = "CharacteristicName,ResultMeasureValue,ResultMeasure/MeasureUnitCode,lat,lon"
    long = [f"Chlorophyll,{v},ug/l,{y},{x}\nTurbidity,{float(v) * 2},NTU,{y},{x}" for y, x, v in rows]
    Path("long.csv").write_text("\n".join([names, *long]))
    columns = ("--csv", "long.csv", "--lat", "lat", "--lon", "lon")
    code, _, error = command("new", "world", "a", *columns, "--value", "ResultMeasureValue")
    assert code == 2
    assert "Chlorophyll" in error
    assert "--quantity" in error
    text = said("new", "world", "b", *columns, "--quantity", "Turbidity")
    assert "readings  80," in text
    assert fieldbo.load_world("b").quantity.unit == "NTU"
