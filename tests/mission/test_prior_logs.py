"""Earlier readings from a log in degrees: depths, noise, ages and times as loggers write them."""

from pathlib import Path

import numpy as np
import pytest
from small_files import mission_text, world_text
from working_folder import write

import fieldbo
from fieldbo.cli.options import overrides
from fieldbo.domain.georeference import Georeference, reprojected
from fieldbo.errors import InputError
from fieldbo.mission.earlier_readings import _OPTION, _name_by_key

WORLD = world_text(
    ("east", 463000, 463100, 6),
    ("north", 5239500, 5239600, 6),
    title="a lake",
    domain={"crs": "EPSG:32632"},
    field={"kind": "gp-draw", "length_scales": [30, 30]},
    value={"name": "chl", "unit": "ug/l"},
)
DEPTH = """        { name = "north", unit = "m", low = 5239500, high = 5239600, count = 6 },
        { name = "depth", unit = "m", low = 0, high = 10, count = 6 }]
"""
MISSION = mission_text("lake", threshold=0.2, battery=2000)
UTM = Georeference("EPSG:32632")
METRES = np.column_stack([463_010 + 30.0 * np.arange(3), np.full(3, 5_239_550.0)])
LAT, LON = UTM.degrees(METRES).T
AT = "2026-07-02T08:00:00Z"


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds a world in degrees, flat and with depths, and a mission in each."""
    monkeypatch.chdir(tmp_path)
    flat, north = WORLD.splitlines(), next(k for k, x in enumerate(WORLD.splitlines()) if "north" in x)
    deep = "\n".join([*flat[:north], DEPTH.rstrip(), *flat[north + 1 :]]).replace("[30, 30]", "[30, 30, 3]")
    write("worlds/lake/world.toml", WORLD)
    write("worlds/deep/world.toml", deep)
    write("lake.toml", MISSION)
    write("deep.toml", MISSION.replace('"lake"', '"deep"'))


def log(**columns):
    """Write log.csv with three readings in degrees and these columns."""
    table = {"lat": LAT, "lon": LON, "chl": [0.1, 0.2, 0.3]} | columns
    rows = zip(*(map(str, cells) for cells in table.values()), strict=True)
    write("log.csv", "\n".join([",".join(table), *map(",".join, rows)]))


def metres(**columns):
    """Write log.csv with three readings in metres and these columns."""
    table = {"east": METRES[:, 0], "north": METRES[:, 1], "chl": [0.1, 0.2, 0.3]} | columns
    rows = zip(*(map(str, cells) for cells in table.values()), strict=True)
    write("log.csv", "\n".join([",".join(table), *map(",".join, rows)]))


def prior_of(mission="lake", **settings):
    return fieldbo.load_mission(f"{mission}.toml", {"prior": {"readings": "log.csv", **settings}}).prior


FORMS = pytest.mark.parametrize("form", [log, metres])

# -- depths ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["depth", "Depth", "Depth (m)", "depth_m", "DepthSensor", "depth [m]"])
def test_readings_of_a_log_lie_at_their_depths(name):
    log(**{name: [1.0, 4.5, 9.0]})
    prior = prior_of("deep")
    np.testing.assert_allclose(prior.sites, np.column_stack([METRES, [1.0, 4.5, 9.0]]), atol=0.01)


@pytest.mark.parametrize(
    ("name", "cells"),
    [("Depth (ft)", [3.28, 13.12, 26.24]), ("depth_cm", ["99.9744", "399.8976", "799.7952"])],
)
def test_depths_in_other_units_are_converted(name, cells):
    log(**{name: cells})
    prior = prior_of("deep")
    assert prior.sites[:, 2].tolist() == [0.999744, 3.998976, 7.997952]
    assert f"log.csv: {name} is converted from {name[-3:].strip('_()')} to m" in prior.notes


def test_a_cast_at_one_place_keeps_its_depths():
    log(lat=[LAT[0]] * 3, lon=[LON[0]] * 3, depth=[0.0, 3.0, 6.0])
    assert prior_of("deep").sites[:, 2].tolist() == [0.0, 3.0, 6.0]


def test_of_two_columns_of_depths_the_one_named_like_the_axis_counts():
    log(**{"depth_of_bottom": [12, 12, 12], "depth": [1, 2, 3]})
    assert prior_of("deep").sites[:, 2].tolist() == [1.0, 2.0, 3.0]


def test_a_log_without_depths_does_not_fit_a_world_with_depths(command):
    log()
    with pytest.raises(InputError, match=r"there is no column of the axis depth \(m\)") as raised:
        prior_of("deep")
    assert "a column depth" in raised.value.expected
    code, _, error = command("check", "deep.toml", "--prior", "log.csv")
    assert code == 2
    assert "a column depth, besides latitude and longitude" in error


def test_depths_that_can_t_be_told_apart_are_named():
    log(depth_1=[1, 2, 3], depth_2=[4, 5, 6])
    with pytest.raises(InputError, match="depth_1 and depth_2") as raised:
        prior_of("deep")
    assert "rename one of them to depth" in raised.value.fix


def test_a_column_of_depths_in_a_world_without_them_is_no_matter():
    log(depth=[1, 2, 3])
    assert prior_of().sites.shape == (3, 2)


def test_readings_without_a_depth_are_left_out_and_said_to_be():
    log(depth=[1, "", 3])
    prior = prior_of("deep")
    assert prior.sites[:, 2].tolist() == [1.0, 3.0]
    assert prior.notes == ("log.csv: 1 row without a depth left out (line 3)",)


@pytest.mark.parametrize("form", [log, metres])
def test_values_in_another_unit_are_converted_or_refused_by_name(form):
    form(chl=[1, 2, 3])
    write("log.csv", Path("log.csv").read_text().replace("chl", "chl (mg/L)"))
    converted = prior_of()
    assert converted.values.tolist() == [1000.0, 2000.0, 3000.0]
    assert "log.csv: chl (mg/L) is converted from mg/L to ug/l" in converted.notes
    write("log.csv", Path("log.csv").read_text().replace("chl (mg/L)", "chl (RFU)"))
    with pytest.raises(InputError, match="the unit of column chl \\(RFU\\) is 'RFU'"):
        prior_of()


def test_the_column_of_the_value_may_have_a_unit_and_capitals():
    log()
    write("log.csv", Path("log.csv").read_text().replace("lat,lon,chl", "Lat,Lon,Chl (ug/l)"))
    assert prior_of().values.tolist() == [0.1, 0.2, 0.3]
    write("log.csv", Path("log.csv").read_text().replace("Chl (ug/l)", "turbidity"))
    with pytest.raises(InputError, match="no column is called 'chl' or value"):
        prior_of()


# -- noise and ages in columns -----------------------------------------------------------------------------


@FORMS
def test_a_column_of_noise_counts_in_degrees_and_in_metres(form):
    form(noise_sd=[0.5, 0.0, 2.0])
    assert prior_of().noise_sds.tolist() == [0.5, 0.0, 2.0]
    assert prior_of(noise_sd=3.0).noise_sds.tolist() == [0.5, 0.0, 2.0]


@FORMS
def test_a_column_of_ages_counts_in_degrees_and_in_metres(form):
    form(age_days=[1.0, 4.0, 9.0])
    prior = prior_of(per_day=0.2)
    assert prior.ages_days.tolist() == [1.0, 4.0, 9.0]
    np.testing.assert_allclose(prior.noise_sds, np.sqrt(0.01 + 0.04 * prior.ages_days))


@FORMS
def test_an_age_for_all_replaces_a_column_of_ages(form):
    form(age_days=[1.0, 4.0, 9.0])
    assert prior_of(age_days=2.0).ages_days.tolist() == [2.0, 2.0, 2.0]


@FORMS
def test_times_with_dates_come_before_a_column_of_ages(form):
    form(time=["2026-07-01T08:00:00Z"] * 3, age_days=[7, 7, 7])
    assert prior_of(at=AT).ages_days.tolist() == [1.0, 1.0, 1.0]


def pooled(**columns):
    """Write log.csv with two readings next to each other, which pool into one, and two further ones."""
    near = UTM.degrees([METRES[0], METRES[0] + [0.5, 0.0], *METRES[1:]])
    table = {"lat": near[:, 0], "lon": near[:, 1], "chl": [0.1, 0.3, 0.2, 0.3]} | columns
    rows = zip(*(map(str, cells) for cells in table.values()), strict=True)
    write("log.csv", "\n".join([",".join(table), *map(",".join, rows)]))


def test_pooled_readings_have_the_noise_of_the_mean_of_independent_ones():
    pooled(noise_sd=[0.3, 0.4, 0.5, 0.6], age_days=[1.0, 3.0, 5.0, 7.0])
    prior = prior_of()
    assert prior.values == pytest.approx([0.2, 0.2, 0.3])
    assert prior.noise_sds == pytest.approx([0.25, 0.5, 0.6])
    assert prior.ages_days.tolist() == [2.0, 5.0, 7.0]


@pytest.mark.parametrize(("settings", "noise"), [({}, 0.1), ({"noise_sd": 0.7}, 0.7)])
def test_pooled_readings_without_a_column_of_noise_count_as_one(settings, noise):
    pooled()
    prior = prior_of(**settings)
    assert prior.noise_sds == pytest.approx([noise] * 3)
    assert any("4 readings are pooled to 3" in note for note in prior.notes)


def test_a_row_without_a_valid_noise_is_left_out_and_said_to_be():
    log(noise_sd=[0.5, -0.1, 0.4])
    prior = prior_of()
    assert prior.noise_sds.tolist() == [0.5, 0.4]
    assert prior.notes == ("log.csv: 1 row without a noise of at least 0 left out (line 3)",)


# -- times -------------------------------------------------------------------------------------------------

CLOCKS = pytest.mark.parametrize(
    "times",
    [["12:00:02", "12:00:04", "12:00:07"], [3605.2, 3606.2, 3607.2], ["23:59:58", "0:00:01", "0:00:03"]],
)


@CLOCKS
@FORMS
def test_times_without_a_date_are_unknown_ages(form, times, said):
    form(time=times)
    prior = prior_of()
    assert np.isnan(prior.ages_days).all()
    assert prior.notes == ("log.csv: column time holds times without dates, so ages are not known",)
    assert "prior     3 earlier readings, noise sd with age 0.1 ug/l" in said(
        "check", "lake.toml", "--prior", "log.csv"
    )
    with pytest.raises(InputError, match="the age of 3 readings is not known: column time holds") as raised:
        prior_of(per_day=0.2)
    assert "set age_days" in raised.value.fix


@CLOCKS
@FORMS
def test_an_age_takes_the_place_of_times_without_a_date(form, times):
    form(time=times)
    prior = prior_of(per_day=0.2, age_days=1.0)
    assert prior.ages_days.tolist() == [1.0, 1.0, 1.0]
    assert prior.notes == ()
    form(time=times, age_days=[1, 2, 3])
    prior = prior_of(per_day=0.2)
    assert prior.ages_days.tolist() == [1.0, 2.0, 3.0]
    assert prior.notes == ()


@pytest.mark.parametrize("times", [["2026-07-01T08:00:00Z"] * 3, [1782892800] * 3, ["1.7.2026 08:00"] * 3])
def test_times_with_a_date_are_ages(times):
    log(Timestamp=times)
    assert prior_of(at=AT, per_day=0.2).ages_days == pytest.approx([1.0] * 3)


def test_a_column_called_time_is_the_time():
    dates = ["2026-07-01T08:00:00Z"] * 3
    log(time=dates, date_of_calibration=["2020-01-01"] * 3)
    assert prior_of(at=AT, per_day=0.2).ages_days.tolist() == [1.0] * 3


@pytest.mark.parametrize("clock", ["time", "Clock_UTC"])
def test_a_date_and_a_time_of_day_in_two_columns_are_an_age(clock):
    log(Date=["01.07.2026"] * 3, **{clock: ["08:00:00"] * 3})
    prior = prior_of(at=AT, per_day=0.2)
    assert prior.ages_days == pytest.approx([1.0] * 3)
    assert prior.notes[0] == f"log.csv: time is Date and {clock} together"


@FORMS
def test_times_without_an_offset_are_said_to_be_utc(form):
    form(time=["2026-07-01T08:00:00"] * 3)
    assert prior_of(at=AT, per_day=0.2).notes == ("log.csv: times without an offset are taken as UTC",)
    form(time=["2026-07-01T08:00:00+02:00"] * 3)
    assert prior_of(at=AT, per_day=0.2).notes == ()


def test_of_two_columns_of_times_without_that_name_both_are_named():
    log(Started=["2026-07-01T08:00:00Z"] * 3, Ended=["2026-07-01T09:00:00Z"] * 3)
    with pytest.raises(InputError, match="columns Started and Ended look like times, and none") as raised:
        prior_of(per_day=0.2)
    assert "call a column with dates time" in raised.value.fix
    prior = prior_of()
    assert np.isnan(prior.ages_days).all()
    assert "columns Started and Ended" in prior.notes[0]
    assert prior_of(per_day=0.2, age_days=1.0).ages_days.tolist() == [1.0] * 3


def test_a_column_called_time_without_times_is_an_error():
    log(time=["early", "late", "later"])
    with pytest.raises(InputError, match="'early' is not a time"):
        prior_of()


# -- what is said ------------------------------------------------------------------------------------------


@pytest.mark.slow
@FORMS
def test_old_readings_that_are_trusted_as_new_are_noted_once(form, said):
    form(time=["2026-06-22T08:00:00Z", "2026-06-29T08:00:00Z", "2026-06-30T08:00:00Z"])
    note = "the earlier readings are 2.0 to 10.0 days old and trusted as if read today; set prior.per_day"
    given = ("lake.toml", "--prior", "log.csv", "--set", f'prior.at="{AT}"')
    for command in (("check", *given), ("run", *given, "--out", "a")):
        assert " ".join(said(*command).split()).count(note) == 1
    for change in ("0.2", "0"):
        assert note not in " ".join(said("check", *given, "--set", f"prior.per_day={change}").split())


@pytest.mark.slow
def test_readings_with_their_ages_applied_are_not_noted_again(said):
    log(age_days=[1, 2, 3])
    said("run", "lake.toml", "--prior", "log.csv", "--set", "prior.per_day=0.2", "--out", "a")
    out = said("check", "a/mission.toml")
    assert "3 earlier readings, 1.0 to 3.0 days old" in out
    assert "trusted as if read today" not in out


def test_readings_of_today_or_of_unknown_age_are_not_noted():
    log(age_days=[0.0, 0.04, ""])
    assert prior_of().notes == ()


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_of_readings_is_an_error(name, command):
    code, _, error = command("check", "lake.toml", "--prior", name)
    assert code == 2
    assert "--prior is empty" in error
    code, _, error = command("check", "lake.toml", "--set", f'prior.readings="{name}"')
    assert code == 2
    assert "prior.readings is empty" in error
    Path("lake.toml").write_text(f'{MISSION}[prior]\nreadings = "{name}"\n')
    code, _, error = command("run", "lake.toml")
    assert code == 2
    assert "prior.readings is empty" in error


def test_readings_are_named_once(command):
    log()
    code, _, error = command("run", "lake.toml", "--prior", "log.csv", "--set", "prior.readings=other.csv")
    assert code == 2
    assert "both --prior log.csv and --set prior.readings=other.csv were given" in error


def test_readings_outside_are_counted_in_words():
    log(lat=LAT + 1.0)
    with pytest.raises(InputError, match="all 3 earlier readings lie outside the domain"):
        prior_of()
    Path("log.csv").write_text("east,north,chl\n0,7,1\n")
    with pytest.raises(InputError, match="the only earlier reading lies outside") as raised:
        prior_of()
    assert raised.value.problem.endswith("outside the domain: east 0, north 7")
    assert raised.value.expected == "east 463000 to 463100 m, north 5239500 to 5239600 m"
    Path("log.csv").write_text("east,north,chl\n0,7,1\n463010,5239550,1\n")
    mission = fieldbo.load_mission("lake.toml", {"prior": {"readings": "log.csv"}})
    warning = next(w for w in fieldbo.Agent(mission).warnings if "earlier" in w)
    assert warning.startswith("1 of 2 earlier readings lies ")
    assert warning.endswith("is left out")


# -- the options of a new world ----------------------------------------------------------------------------


def test_columns_are_named_as_for_a_new_world():
    log(
        **{
            "Lat 2": LAT,
            "Lon 2": LON + 1,
            "CHL B": [4, 5, 6],
            "err": [1, 2, 3],
            "When": ["1.7.2026 08:00"] * 3,
        }
    )
    with pytest.raises(InputError, match="nor one of latitudes and one of longitudes"):
        prior_of()
    prior = prior_of(lat="lat", lon="lon", value="CHL B", noise="err", time="when", at=AT)
    np.testing.assert_allclose(prior.sites, METRES, atol=0.01)
    assert prior.values.tolist() == [4, 5, 6]
    assert prior.noise_sds.tolist() == [1, 2, 3]
    assert prior.ages_days.tolist() == [1, 1, 1]


def test_columns_are_named_on_the_command_line(said):
    log(other=[4, 5, 6])
    text = said("check", "lake.toml", "--prior", "log.csv", "--set", "prior.value=other")
    assert "3 earlier readings" in text


def test_a_column_that_is_not_there_is_named_with_its_key():
    log()
    with pytest.raises(InputError, match="unknown column 'CHLA'") as raised:
        prior_of(value="CHLA")
    assert "(prior.value)" in raised.value.where


@pytest.mark.parametrize("crs", [None, "EPSG:32632", "EPSG:2056"])
def test_positions_in_metres_are_read_in_the_crs_that_is_named(crs):
    there = METRES if crs is None else reprojected(METRES, "EPSG:32632", crs)
    log(E=there[:, 0], N=there[:, 1])
    prior = prior_of(x="E", y="N", **({} if crs is None else {"crs": crs}))
    np.testing.assert_allclose(prior.sites, METRES, atol=0.01)


def test_a_log_in_metres_is_pooled_like_one_in_degrees():
    rows = np.repeat(METRES, 4, axis=0) + np.tile([[0.0], [0.1], [0.2], [0.3]], (3, 1))
    lat, lon = UTM.degrees(rows).T
    columns = {"chl": range(12), "lat": lat, "lon": lon, "E": rows[:, 0], "N": rows[:, 1]}
    log(**columns)
    degrees, in_metres = prior_of(), prior_of(x="E", y="N")
    assert in_metres.values.tolist() == degrees.values.tolist() == [1.5, 5.5, 9.5]
    np.testing.assert_allclose(in_metres.sites, degrees.sites, atol=1e-3)
    pooled = "log.csv: 12 readings are pooled to 3: at most one per 3.0"
    assert all(prior.notes[0].startswith(pooled) for prior in (degrees, in_metres))


def test_a_table_with_more_rows_than_a_mission_takes_is_pooled():
    x, y = (each.ravel() for each in np.meshgrid(np.linspace(0, 99, 60), np.linspace(0, 99, 50)))
    metres(east=463_000 + x, north=5_239_500 + y, chl=np.full(3000, 0.2))
    prior = prior_of()
    assert 500 < len(prior.values) <= 2000
    assert any("3000 readings are pooled" in note for note in prior.notes)


@pytest.mark.parametrize(
    "time",
    ["2026/07/01 08:00:00+00", "2026-07-01T08:00:00Z", "2026/07/01 10:00:00+02", "01.07.2026 08:00:00"],
)
@FORMS
def test_times_as_gdal_qgis_and_fieldbo_write_them_tell_ages(form, time):
    form(time=[time] * 3)
    assert prior_of(at=AT).ages_days.tolist() == [1.0] * 3


@FORMS
def test_a_mark_of_missing_values_is_asked_about_and_then_left_out(form):
    form(chl=[0.1, -9999, 0.3])
    with pytest.raises(InputError, match=r"-9999 in 1 row .* Then add missing = -9999"):
        prior_of()
    assert prior_of(missing=[-9999]).values.tolist() == [0.1, 0.3]


def test_axes_in_feet_are_converted():
    metres()
    feet = Path("log.csv").read_text().replace("east,north", "east (ft),north (ft)")
    for number in (*map(str, METRES[:, 0]), str(METRES[0, 1])):
        feet = feet.replace(number, repr(float(number) / 0.3048))
    write("log.csv", feet)
    np.testing.assert_allclose(prior_of().sites, METRES, atol=1e-6)


def test_a_log_without_positions_takes_those_of_a_track():
    write("log.csv", "time,chl\n" + "".join(f"2026-07-01T08:00:{10 * i:02}Z,0.{i + 1}\n" for i in range(3)))
    fixes = (f"2026-07-01T08:00:{10 * i:02}Z,{LAT[i]},{LON[i]}\n" for i in range(3))
    write("boat.csv", "time,lat,lon\n" + "".join(fixes))
    prior = prior_of(track="boat.csv", at=AT)
    np.testing.assert_allclose(prior.sites, METRES, atol=0.01)
    assert prior.ages_days[0] == 1.0
    shifted = prior_of(track="boat.csv", track_offset_s=10.0, at=AT)
    np.testing.assert_allclose(shifted.sites, METRES[1:], atol=0.01)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"x": "east"}, "x and y do not fit"),
        ({"track_offset_s": 3.0}, "without a track"),
        ({"quantity": "chl"}, "a column for each quantity"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys, problem):
    metres()
    with pytest.raises(InputError, match=problem) as raised:
        prior_of(**keys)
    assert "--" not in str(raised.value), "a mission's file has keys, not options"


def spike():
    """Write a log along a line, with one reading that is a hundred times too large."""
    along = np.linspace(0, 95, 60)
    sites = np.column_stack([463_000 + along, np.full(60, 5_239_550.0)])
    lat, lon = UTM.degrees(sites).T
    chl = 0.2 + 0.05 * np.sin(along / 20) + 0.003 * np.random.default_rng(1).standard_normal(60)
    chl[30] = 20.0
    log(lat=lat, lon=lon, chl=chl.round(4))


@pytest.mark.parametrize("wrong", [[40], [40, 90], [40, 41, 42]])
def test_readings_far_outside_a_field_surveyed_in_lines_are_asked_about(wrong):
    along, line = np.arange(120) % 12, np.arange(120) // 12
    sites = np.column_stack([463_000 + 8.0 * along, 5_239_550.0 + 9 * line])
    lat, lon = UTM.degrees(sites).T
    chl = 6 + 3 * np.sin(along / 2) * np.cos(line / 2) + 0.05 * np.random.default_rng(1).standard_normal(120)
    chl[wrong] = [55.5, 88.0, 60.0][: len(wrong)]
    log(lat=lat, lon=lon, chl=chl.round(3))
    with pytest.raises(InputError, match=f"^{len(wrong)} of 120 reading.* wrong: {len(wrong)} spike"):
        prior_of()
    assert len(prior_of(cleaning="clean").notes) == 1


def test_readings_that_look_wrong_are_asked_about_by_line(command):
    spike()
    code, _, error = command("check", "lake.toml", "--prior", "log.csv")
    assert code == 2
    assert "line 32: chl 20" in error
    assert 'cleaning = "clean" in [prior]' in error
    assert "--clean" not in error
    cleaned, kept = prior_of(cleaning="clean"), prior_of(cleaning="keep")
    assert cleaned.values.max() < 0.3 < kept.values.max()
    assert any("look" in note and "32" in note for note in cleaned.notes)
    assert prior_of(high=1.0).values.max() < 0.3


@pytest.mark.parametrize(
    ("unit", "factor", "noted"),
    [
        ("ug/l", 1, False),
        ("µg/L", 1, False),
        ("mg m-3", 1, False),
        ("mg/l", 1000, True),
        ("birds", 1, False),
    ],
)
@FORMS
def test_values_are_converted_to_the_unit_of_the_world(form, unit, factor, noted):
    form(noise_sd=[0.01] * 3)
    write("log.csv", Path("log.csv").read_text().replace("chl", f"chl ({unit})"))
    prior = prior_of()
    assert prior.values == pytest.approx(np.array([0.1, 0.2, 0.3]) * factor, rel=1e-12)
    assert prior.noise_sds == pytest.approx([0.01 * factor] * 3, rel=1e-12)
    assert any("is converted from mg/l to ug/l" in note for note in prior.notes) == noted


@FORMS
def test_values_in_another_kind_of_unit_are_refused(form):
    form()
    write("log.csv", Path("log.csv").read_text().replace("chl", "chl (degC)"))
    with pytest.raises(InputError, match="the unit of column chl") as raised:
        prior_of()
    assert "ug/l, or a unit that can be converted to it" in raised.value.expected


def rows_of(header, cells):
    """Write log.csv with three readings in degrees and further cells in each row."""
    rows = [f"{lat},{lon},{text}" for (lat, lon), text in zip(zip(LAT, LON, strict=True), cells, strict=True)]
    write("log.csv", "\n".join([f"lat,lon,{header}", *rows]))


def test_of_columns_named_like_the_quantity_the_one_with_its_unit_is_read():
    rows_of("chl RFU,chl mg/L", ["8,0.1", "9,0.2", "7,0.3"])
    assert prior_of(age_days=1).values == pytest.approx([100, 200, 300])


def test_columns_named_like_the_quantity_in_other_units_are_never_advised():
    rows_of("chl RFU,chl mV", ["8,1", "9,2", "7,3"])
    with pytest.raises(InputError, match=r"columns chl RFU, chl mV .* 0 of them have a unit") as raised:
        prior_of()
    assert raised.value.fix == "name it in [prior]: value"


def test_a_quantity_alone_is_the_value_of_a_table_in_long_form():
    both = [f"{kind},{number},{unit}" for kind, number, unit in
            [("Alkalinity", 8, "mg/l"), ("Pigment", 0.1, "mg/l"), ("Pigment", 0.2, "mg/l")]]  # fmt: skip
    rows_of("Parameter,Result,Unit", both)
    assert prior_of(quantity="Pigment", age_days=1).values == pytest.approx([100, 200])
    assert prior_of(quantity="Pigment", value="Pigment", age_days=1).values == pytest.approx([100, 200])


def test_a_unit_that_the_world_does_not_state_is_said():
    write("worlds/lake/world.toml", WORLD.replace('unit = "ug/l"', 'unit = "1"'))
    rows_of("chl mg/L", ["0.1", "0.2", "0.3"])
    assert "chl mg/L is in mg/L, and the world's chl states no unit" in " ".join(prior_of(age_days=1).notes)


def test_a_date_and_a_time_of_day_need_no_column_called_time():
    rows_of("Date,Time,chl", [f"2026-07-01,09:00:0{k},0.{k + 1}" for k in range(3)])
    assert prior_of(at=AT).ages_days == pytest.approx([23 / 24] * 3, abs=1e-3)


def test_a_log_without_positions_is_told_of_the_track():
    write("log.csv", "Date,chl\n2026-07-01,0.1\n2026-07-01,0.2")
    with pytest.raises(InputError, match="there are no columns east and north") as raised:
        prior_of()
    assert "the file of the boat's track: track" in raised.value.fix


def test_amounts_in_errors_become_those_of_their_keys():
    assert _OPTION.sub(_name_by_key, "--track-offset=-2h") == "prior.track_offset_s=-7200"
    assert _OPTION.sub(_name_by_key, "--track-offset 0s") == "prior.track_offset_s=0"
    assert _OPTION.sub(_name_by_key, "--missing -9999") == "missing = -9999"


def test_a_key_that_takes_text_keeps_what_looks_like_a_number():
    given = overrides(["prior.value=259873_62361", 'prior.time="2026"', "agent.battery=20"])
    assert given == {"prior": {"value": "259873_62361", "time": "2026"}, "agent": {"battery": 20}}
