"""Readings of a log that look wrong are found; fronts, plumes, coarse columns and counts are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fieldbo.errors import InputError
from fieldbo.tables.cleaning import SuspectReadingsError, find_suspects
from fieldbo.tables.survey import survey_points
from fieldbo.tables.suspects import Track
from fieldbo.tables.table import Table

N = 400
ALONG = np.arange(float(N))
LINES = np.column_stack([np.abs(ALONG % 80 - 40), 4 * (ALONG // 40)])
"""A boat at 1 m/s on lines 4 m apart."""


def rng():
    return np.random.default_rng(7)


def field(noise=0.05):
    return 15 + np.sin(LINES[:, 0] / 12) + np.cos(LINES[:, 1] / 9) + rng().normal(0, noise, N)


def suspects(values, *, metres=LINES, times=ALONG, depths=None, column="x", **options):
    lines = np.arange(2, 2 + len(values))
    return find_suspects(Track(metres, np.asarray(values), lines, times, depths), column, **options)


def lines_of(found, kind):
    assert {each.kind for each in found} <= {kind}
    return [each.line for each in found]


# -- spikes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [ALONG, None], ids=["times", "no times"])
@pytest.mark.parametrize("off", [6.0, -6.0])
def test_spikes_are_found_one_by_one_and_side_by_side_with_good_readings(times, off):
    values = field()
    values[[0, 50, 52, 200, N - 1]] += off
    assert lines_of(suspects(values, times=times), "spike") == [2, 52, 54, 202, N + 1]


def test_a_spike_says_what_is_around_it():
    values = np.round(field(0.01), 2)
    values[100] = 41.7
    (found,) = suspects(values, column="temp")
    around = np.delete(values[97:104], 3)
    assert str(found) == f"line 102: temp 41.7, a spike: {around.min():g} to {around.max():g} around it"


FRONTS = {
    "a step": 5.0 * (LINES[:, 0] > 20),
    "a steep front": 5 / (1 + np.exp(-3 * (LINES[:, 0] - 20.3))),
    "a plume of three readings": 8 * np.exp(-0.5 * ((ALONG - 133.2) / 1.0) ** 2),
    "a sharp edge with a tail": np.where(ALONG >= 150, 8 * 0.5 ** (ALONG - 150), 0.0),
    "a patch of four readings": np.where((ALONG >= 150) & (ALONG < 154), 8.0, 0.0),
    "many narrow plumes": sum(6 * np.exp(-0.5 * ((ALONG - at) / 1.2) ** 2) for at in range(9, N, 23)),
    "a thermocline at changing depth": np.tanh(9 * np.sin(ALONG / 9) - 4 * np.sin(ALONG / 70)),
}  # fmt: skip


@pytest.mark.parametrize("noise", [0.005, 0.05, 0.3])
@pytest.mark.parametrize("name", FRONTS)
def test_true_structure_is_not_suspect(name, noise):
    values = FRONTS[name] + rng().normal(0, noise, N)
    assert not suspects(values)
    assert not suspects(np.round(values, 1))
    assert not suspects(values, times=None)


def test_a_plume_does_not_hide_a_spike_elsewhere():
    values = FRONTS["a plume of three readings"] + rng().normal(0, 0.05, N)
    values[300] += 5
    assert lines_of(suspects(values), "spike") == [302]


@pytest.mark.parametrize("kind", ["counts", "log-normal", "heavy-tailed", "coarse", "Poisson"])
def test_columns_that_vary_a_lot_are_not_suspect(kind):
    draw = rng()
    values = {
        "counts": np.where(draw.random(N) < 0.9, 0.0, draw.geometric(0.05, N)),
        "log-normal": np.exp(field(0.4) + 1.5 * np.sin(ALONG / 40)),
        "heavy-tailed": field(0) + 0.2 * draw.standard_t(3, N),
        "coarse": np.round(field()),
        "Poisson": draw.poisson(0.7, N).astype(float),
    }[kind]
    assert not suspects(values)
    assert not suspects(values, times=None)


def test_stations_in_any_order_are_compared_with_those_around_them():
    order = rng().permutation(N)
    values = field(0.02)
    values[200] += 40
    found = suspects(values[order], metres=LINES[order], times=None)
    assert lines_of(found, "spike") == [2 + int(np.flatnonzero(order == 200)[0])]


@pytest.mark.parametrize("size", [6.0, 36.0])
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("per_line", [10, 40])
def test_readings_far_outside_the_field_are_found_though_neighbours_differ_at_turns(size, width, per_line):
    along = np.arange(150.0)
    metres = np.column_stack([40 / per_line * (along % per_line), 4 * (along // per_line)])
    values = 7 + 4 * np.sin(metres[:, 0] / 12) * np.cos(metres[:, 1] / 9) + rng().normal(0, 0.05, 150)
    values[70 : 70 + width] = size * values.max()
    found = suspects(values, metres=metres, times=along)
    assert lines_of(found, "spike") == list(range(72, 72 + width))


def test_a_few_readings_say_too_little():
    assert not suspects([1.0, 1, 1, 99, 1], metres=LINES[:5], times=None)


# -- stuck sensors --------------------------------------------------------------------------------------


def test_a_stuck_sensor_is_found_but_for_the_first_reading():
    values = field()
    values[100:130] = values[100]
    values[300:312] = values[300]
    found = lines_of(suspects(values), "stuck value")
    assert found == [*range(103, 132), *range(303, 314)]


def test_a_dead_sensor_that_says_0_is_found():
    values = field()
    values[100:130] = 0.0
    assert set(range(103, 132)) <= {each.line for each in suspects(values)}


def test_zeros_alone_are_not_stuck():
    assert not suspects(np.zeros(N))


@pytest.mark.parametrize("hold", [1, 10], ids=["coarse", "slow sensor"])
def test_values_that_often_repeat_are_not_stuck(hold):
    values = np.repeat(np.round(field(0.02)[: N // hold], 1 if hold == 1 else 3), hold)
    assert not suspects(values)


def test_a_boat_that_waits_in_one_place_has_no_stuck_sensor():
    metres = LINES.copy()
    metres[200:260] = metres[200]
    values = 15 + np.sin(metres[:, 0] / 12) + rng().normal(0, 0.02, N)
    assert not suspects(np.round(values, 2), metres=metres)


# -- jumps of the position ------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [ALONG, None], ids=["times", "no times"])
@pytest.mark.parametrize("width", [1, 3])
def test_a_position_that_jumps_and_is_back_is_found(times, width):
    metres = LINES + rng().normal(0, 0.1, LINES.shape)
    metres[120 : 120 + width] += [900.0, 300.0]
    found = suspects(field(), metres=metres, times=times)
    assert lines_of(found, "jump of the position") == list(range(122, 122 + width))
    assert "a jump of 949 m" in found[0].reason


@pytest.mark.parametrize(("n", "at"), [(60, [30]), (150, [70]), (400, [50, 90, 91, 200, 300, 398])])
@pytest.mark.parametrize("times", [18 * ALONG, None], ids=["times", "no times"])
def test_jumps_do_not_hide_themselves_in_short_logs_nor_each_other(n, at, times):
    metres = 10 * LINES[:n] + rng().normal(0, 0.5, (n, 2))
    metres[at] += [2000.0, 900.0]
    found = suspects(field()[:n], metres=metres, times=times if times is None else times[:n])
    assert lines_of(found, "jump of the position") == [2 + each for each in at]


@pytest.mark.parametrize("times", [ALONG, None], ids=["times", "no times"])
def test_stations_of_a_few_readings_each_are_no_jumps(times):
    draw = rng()
    of_station = np.repeat(draw.uniform(0, 900, (N, 2)), draw.integers(1, 5, N), axis=0)[:N]
    assert not suspects(field(), metres=of_station + draw.normal(0, 1.0, (N, 2)), times=times)


def test_a_first_fix_elsewhere_is_found():
    metres = LINES.copy()
    metres[:2] += 5000.0
    assert lines_of(suspects(field(), metres=metres), "jump of the position") == [2, 3]


def test_one_far_station_is_found():
    metres = rng().permutation(LINES)
    metres[7] = [0.0, 5.6e6]
    assert lines_of(suspects(np.ones(N), metres=metres, times=None), "jump of the position") == [9]


CLOCKS = {
    "in whole minutes": np.floor(ALONG / 60) * 60,
    "with pauses": ALONG + 3600 * (ALONG // 90),
    "that stands still": np.zeros(N),
    "with gaps": np.where(ALONG % 7 == 0, np.nan, ALONG),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_repeated_and_missing_times_are_no_jumps(name):
    metres = LINES + rng().normal(0, 0.1, LINES.shape)
    assert not suspects(field(), metres=metres, times=CLOCKS[name])


def test_the_ends_of_lines_and_ways_between_casts_are_no_jumps():
    raster = np.column_stack([ALONG % 40, ALONG // 40])
    assert not suspects(field(), metres=raster, times=None)
    casts = np.repeat(rng().uniform(0, 900, (N // 20, 2)), 20, axis=0)
    depths = np.tile(np.arange(20.0), N // 20)
    assert not suspects(20 - depths + rng().normal(0, 0.1, N), metres=casts, times=None, depths=depths)
    assert not suspects(20 - depths + rng().normal(0, 0.1, N), metres=casts, times=900 * ALONG, depths=depths)


# -- impossible values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "unit", "usual", "wrong"),
    [
        ("pH", "", 7.9, 15.0),
        ("Temp (°C)", "", 14.0, 85.0),
        ("Temperature", "degF", 60.0, 14.0),
        ("Salinity", "psu", 35.0, -3.0),
        ("ODO", "mg/L", 9.0, 44.0),
        ("ODO", "% sat", 98.0, 640.0),
    ],
)
def test_values_that_a_quantity_cannot_have_are_found(column, unit, usual, wrong):
    values = usual + rng().normal(0, 0.1, N)
    values[10:20] = wrong + rng().normal(0, 0.1, 10)
    found = suspects(values, column=column, unit=unit)
    assert lines_of(found, "impossible value") == list(range(12, 22))


def test_a_sensor_that_is_a_little_off_is_possible():
    values = np.abs(rng().normal(0, 0.1, N)) - 0.08
    assert not suspects(values, column="DO", unit="mg/L")


def test_limits_that_are_given_count_instead():
    values = 70 + rng().normal(0, 0.1, N)
    assert len(suspects(values, column="temp", unit="degC")) == N
    assert not suspects(values, column="temp", unit="degC", high=90.0)


def test_a_zero_that_repeats_far_below_all_others_is_asked_about():
    values = field()
    values[::80] = 0.0
    found = suspects(values)
    assert lines_of(found, "zero apart") == list(range(2, N + 2, 80))
    assert found[0].reason.endswith("does it stand for no value?")
    # A field that comes near 0, and a species that is often absent, have true zeros.
    assert not suspects(np.maximum(field() - 14, 0))
    assert not suspects(np.where(rng().random(N) < 0.4, 0.0, np.round(field())))


def test_depths_above_the_surface_are_found_unless_depths_are_heights():
    depths = 5 + np.sin(ALONG / 9)
    depths[7] = -3.0
    (found,) = suspects(field(), depths=depths, depth="Depth (m)")
    assert str(found) == "line 9: Depth (m) -3, impossible: above the surface"
    assert not suspects(field(), depths=-5 - np.sin(ALONG / 9))


# -- in a survey ----------------------------------------------------------------------------------------


def log_of(values):
    columns = {"t": ALONG, "x": LINES[:, 0], "y": LINES[:, 1], "temp": values}
    cells = {name: tuple(map(repr, numbers.tolist())) for name, numbers in columns.items()}
    return Table(Path("log.csv"), tuple(cells), {}, cells, np.arange(2, 2 + N))


def points_of(values, **options):
    return survey_points(log_of(values), x="x", y="y", value="temp", time="t", spacing_m=0.1, **options)


def test_a_survey_asks_about_readings_that_look_wrong():
    values = field()
    values[20:380:30] += 9
    with pytest.raises(SuspectReadingsError) as caught:
        points_of(values)
    text = str(caught.value)
    assert text.startswith("12 of 400 readings look wrong: 12 spikes\n  - line 22: temp 2")
    assert text.count("a spike") == 10
    assert "  - and 2 more\n" in text
    assert "--clean" in text
    assert "--keep" in text
    assert len(caught.value.suspects) == 12
    assert "dive.csv: log.csv" in str(caught.value.at("dive.csv"))


def test_a_stretch_of_the_same_is_a_range_of_lines():
    values = field()
    values[20], values[100:130] = 60.0, values[100]
    with pytest.raises(
        SuspectReadingsError, match="30 of 400 readings look wrong: 1 spike, 29 stuck"
    ) as caught:
        points_of(values)
    told = [line for line in str(caught.value).splitlines() if line.startswith("  - ")]
    assert told[0].startswith("  - line 22: temp 60, a spike: ")
    assert told[1:] == [f"  - lines 103 to 131: temp {values[100]:.6g}, stuck: the same in 30 readings"]


def test_a_survey_leaves_them_out_or_keeps_them_as_told():
    values = field()
    values[100] += 9
    cleaned, kept = (points_of(values, cleaning=cleaning) for cleaning in ("clean", "keep"))
    assert (len(cleaned), len(kept)) == (N - 1, N)
    assert 102 not in cleaned.lines
    assert cleaned.notes[-1] == "1 reading that looks wrong: 1 spike (line 102); left out"
    assert kept.notes[-1] == "1 reading that looks wrong: 1 spike (line 102); kept"


def test_values_beyond_the_limits_given_are_left_out_without_asking():
    values = field()
    values[100:103] = [99.0, 98.0, -7.0]
    points = points_of(values, low=0.0, high=50.0)
    assert len(points) == N - 3
    assert "2 rows with temp above 50 left out (lines 102, 103)" in points.notes
    assert "1 row with temp below 0 left out (line 104)" in points.notes


def test_too_few_readings_may_be_left():
    with pytest.raises(InputError, match="0 readings of 400 are left") as caught:
        points_of(field() + 100, cleaning="clean")
    assert "--keep" in str(caught.value)


def test_marks_of_missing_values_are_asked_about_before_anything_else():
    values = field()
    values[::50] = -9999.0
    assert points_of(values).doubts
