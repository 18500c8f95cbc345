"""Logs without positions joined with tracks by time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldbo.errors import InputError
from fieldbo.tables.joining import join_track, positions_at
from fieldbo.tables.opening import open_table
from fieldbo.tables.times import times_in

TRACK = [(f"2024-05-01T12:{m:02d}:{s:02d}Z", 47 + (60 * m + s) / 1e5, 8 + (60 * m + s) / 5e4)
         for m in range(10) for s in range(0, 60, 10)]  # fmt: skip


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table_of(name, header, rows):
    Path(name).write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return open_table(Path(name))


def track_of(rows=TRACK, header="time,lat,lon"):
    return table_of("track.csv", header, rows)


def sonde_of(times, header="time,chl", name="sonde.csv"):
    return table_of(name, header, [(time, 3 + i) for i, time in enumerate(times)])


def test_rows_at_the_times_of_fixes_get_these_fixes_to_the_last_digit():
    joined = join_track(sonde_of([time for time, *_ in TRACK]), track_of())
    assert [float(cell) for cell in joined.cells["latitude"]] == [y for _, y, _ in TRACK]
    assert [float(cell) for cell in joined.cells["longitude"]] == [x for *_, x in TRACK]
    assert joined.cells["chl"] == tuple(str(3 + i) for i in range(60))
    assert joined.roles["latitude"] == "latitude"


def test_rows_between_fixes_are_interpolated_and_others_left_out_and_counted():
    sonde = sonde_of(["2024-05-01T11:59:59Z", "2024-05-01T12:00:05Z", "2024-05-01T12:10:00Z"])
    joined = join_track(sonde, track_of())
    assert float(joined.cells["latitude"][0]) == pytest.approx(47.00005, abs=1e-12)
    assert joined.lines.tolist() == [3]
    assert joined.notes[-1] == "2 rows without a fix left out (lines 2, 4): 2 beyond the ends of the track"


def test_a_gap_of_the_track_has_no_positions_unless_a_longer_one_is_allowed():
    sonde = sonde_of(["2024-05-01T12:00:00Z", "2024-05-01T12:00:35Z"])
    track = track_of([TRACK[0], *TRACK[7:]])
    assert len(join_track(sonde, track)) == 1
    assert "1 in gaps of the track" in join_track(sonde, track).notes[-1]
    assert float(join_track(sonde, track, gap_s=70).cells["latitude"][1]) == pytest.approx(
        47 + 35 / 1e5, abs=1e-12
    )


def test_times_without_an_offset_are_asked_about():
    sonde = sonde_of(["2024-05-01 14:00:00", "2024-05-01 14:00:10"])
    with pytest.raises(InputError, match=r"time of sonde\.csv states no offset from UTC") as error:
        join_track(sonde, track_of())
    assert "--track-offset" in str(error.value)
    joined = join_track(sonde, track_of(), offset_s=-7200.0)
    assert joined.cells["time"] == ("2024-05-01T12:00:00Z", "2024-05-01T12:00:10Z")
    assert [float(cell) for cell in joined.cells["latitude"]] == [TRACK[0][1], TRACK[1][1]]
    assert "-7200 s are added to time, so that it is the track's time" in joined.notes


def test_an_offset_in_the_columns_name_counts():
    joined = join_track(sonde_of(["2024-05-01 12:00:10"], "time (UTC),chl"), track_of())
    assert float(joined.cells["latitude"][0]) == TRACK[1][1]
    assert joined.cells["time (UTC)"] == ("2024-05-01 12:00:10",)


@pytest.mark.parametrize("name", ['"Date Time, GMT+02:00"', "Time (UTC+2)", "Zeit (MESZ)"])
@pytest.mark.parametrize("wrong_by", [0.0, 20.0])
def test_an_offset_of_the_header_is_not_added_twice(name, wrong_by):
    """Where the clock is wrong as well, the times are written anew, and mean the same when they are read."""
    sonde = sonde_of([f"2024-05-01 14:0{i}:{10 + wrong_by:.0f}" for i in range(3)], f"{name},chl")
    joined = join_track(sonde, track_of(), offset_s=-wrong_by or None)
    assert [float(cell) for cell in joined.cells["latitude"]] == [TRACK[6 * i + 1][1] for i in range(3)]
    assert times_in(joined, joined.names[0]).seconds.tolist() == [1714564810.0 + 60 * i for i in range(3)]


def test_without_common_times_both_ranges_are_named_and_the_hours_between_them():
    sonde = sonde_of(["2024-05-01T14:00:00Z", "2024-05-01T14:05:00Z"])
    with pytest.raises(InputError) as error:
        join_track(sonde, track_of())
    message = str(error.value)
    assert "sonde.csv from 2024-05-01 14:00:00 to 2024-05-01 14:05:00" in message
    assert "track.csv from 2024-05-01 12:00:00 to 2024-05-01 12:09:50" in message
    assert "--track-offset=-2h would make them overlap" in message


def test_a_track_with_fixes_too_far_apart_is_an_error_of_its_own():
    with pytest.raises(InputError, match="mostly 540 s apart"):
        join_track(sonde_of(["2024-05-01T12:05:00Z"]), track_of([TRACK[0], TRACK[54]]))


def test_a_log_with_positions_is_refused():
    log = table_of("log.csv", "time,lat,lon,chl", [(t, y, x, 1) for t, y, x in TRACK])
    with pytest.raises(InputError, match="has positions already: lat and lon"):
        join_track(log, track_of())


def test_dates_in_only_one_of_both_are_refused():
    with pytest.raises(InputError, match=r"sonde\.csv has times without dates"):
        join_track(sonde_of(["12:00:00", "12:00:10"]), track_of())


def test_dates_and_times_of_day_in_two_columns_are_joined():
    sonde = table_of(
        "s.csv", "date,clock,chl", [("2024-05-01", "14:00:00", 1), ("2024-05-01", "14:00:10", 2)]
    )
    joined = join_track(sonde, track_of(), offset_s=-7200.0)
    assert [float(cell) for cell in joined.cells["latitude"]] == [TRACK[0][1], TRACK[1][1]]


def test_a_track_without_positions_or_times_says_what_is_missing():
    with pytest.raises(InputError, match="0 columns of latitude"):
        join_track(sonde_of([TRACK[0][0]]), track_of([(t, 1) for t, *_ in TRACK], "time,v"))
    with pytest.raises(InputError, match="0 columns of time"):
        join_track(sonde_of([TRACK[0][0]]), track_of([(y, x) for _, y, x in TRACK], "lat,lon"))


FIX = st.tuples(st.integers(0, 500), st.floats(-80, 80), st.floats(-180, 180))


@given(st.lists(FIX, min_size=1, max_size=20), st.lists(st.integers(-10, 510), min_size=1, max_size=20))
def test_positions_lie_between_their_fixes(fixes, seconds):
    times, lat, lon = (np.array(column, dtype=float) for column in zip(*fixes, strict=True))
    at = np.array(seconds, dtype=float)
    y, x = positions_at(at, times, lat, lon, gap_s=50.0)
    assert ((np.abs(y) <= 80) | np.isnan(y)).all()
    assert ((np.abs(x) <= 180) | np.isnan(x)).all()
    exact = np.isin(at, times)
    assert np.isfinite(y[exact]).all()
    first = {t: (a, b) for t, a, b in reversed(list(zip(times, lat, lon, strict=True)))}
    for t, a in zip(at[exact], y[exact], strict=True):
        assert a == first[t][0]
    assert np.isnan(y[(at < times.min()) | (at > times.max())]).all()


@pytest.mark.parametrize("step", [10, 40])
def test_a_log_that_lost_its_seconds_is_asked_about(step):
    stamps = [f"2024-05-01T12:{second // 60:02d}" for second in range(0, 600, step)]
    with pytest.raises(InputError, match=r"rows in 10 whole minutes.*seconds of its times are lost"):
        join_track(sonde_of([f"{stamp}:00Z" for stamp in stamps]), track_of())
    with pytest.raises(InputError, match=r"track.csv has 60 rows in 10 whole minutes"):
        join_track(
            sonde_of(["2024-05-01T12:00:05Z"]), track_of([(f"{t[:17]}00Z", y, x) for t, y, x in TRACK])
        )


def test_a_reading_per_minute_and_casts_at_stations_have_not_lost_their_seconds():
    minutely = sonde_of([f"2024-05-01T12:{minute:02d}:00Z" for minute in range(9)])
    assert len(join_track(minutely, track_of())) == 9
    casts = sonde_of([f"2024-05-01T12:{minute:02d}:00Z" for minute in (0, 0, 0, 4, 4, 4, 9, 9, 9)])
    assert len(join_track(casts, track_of())) == 9
