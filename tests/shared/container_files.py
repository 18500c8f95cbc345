"""Files of instruments and programs, made by the tests, and the plain CSV of the same readings."""

from __future__ import annotations

from pathlib import Path

from fieldbo.tables.containers.nmea_sentences import sum_of
from fieldbo.tables.opening import open_table
from fieldbo.tables.survey import survey_points
from fieldbo.tables.times import times_in

START = 1_714_564_800  # 2024-05-01T12:00:00Z
READINGS = [(START + 10 * i, 47.3 + 0.0011 * i, 8.5 - 0.0007 * i, 12.5 + 0.1 * i**1.5) for i in range(12)]
"""Second since 1970, latitude, longitude and temperature."""


def csv_of(readings=READINGS, name="plain.csv"):
    lines = ["time,latitude,longitude,temperature", *(",".join(map(repr, row)) for row in readings)]
    Path(name).write_text("\n".join(lines) + "\n")
    return open_table(Path(name))


def same_points(table, value, readings=READINGS, **columns):
    """Raise an AssertionError unless a table gives the survey that the plain CSV gives, to the last digit."""
    names = {"lat": "latitude", "lon": "longitude", "time": "time", **columns}
    got = survey_points(table, value=value, cleaning="keep", **names)
    plain = {"lat": "latitude", "lon": "longitude", "time": "time", "value": "temperature"}
    want = survey_points(csv_of(readings), cleaning="keep", **plain)
    assert got.values.tolist() == want.values.tolist()
    assert got.lat.tolist() == want.lat.tolist()
    assert got.lon.tolist() == want.lon.tolist()
    assert got.times.tolist() == want.times.tolist()


def seconds_of(table, name="time"):
    return times_in(table, name).seconds.tolist()


def numbers_of(table, name):
    return table.numbers(name).tolist()


def sentence(body):
    return f"${body}*{sum_of(body):02X}"


def minutes(degrees, letters, width):
    """Return a coordinate as NMEA's ddmm.mmmmmm and a letter."""
    whole, rest = divmod(abs(degrees), 1)
    return f"{int(whole):0{width}d}{rest * 60:010.7f},{letters[degrees < 0]}"
