"""Pooling the rows of a log to as many as a fit can take, in degrees and in metres."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fieldbo.errors import InputError
from fieldbo.tables.pooling import MOST_READINGS, local_metres
from fieldbo.tables.survey import survey_points
from fieldbo.tables.table import Table


def table_of(**columns):
    cells = {name: tuple(map(repr, np.asarray(numbers).tolist())) for name, numbers in columns.items()}
    n = len(next(iter(cells.values())))
    return Table(Path("log.csv"), tuple(cells), {}, cells, np.arange(2, 2 + n))


def test_a_log_in_metres_is_pooled_as_the_same_log_in_degrees():
    along = np.linspace(0, 40, 3000)
    lat, lon = 47.3 + 1e-4 * along, 8.5 + 1e-3 * np.sin(along)
    east, north = local_metres(lat, lon).T
    values = np.sin(along) + 0.1 * np.cos(90 * along)
    log = table_of(lat=lat, lon=lon, east=east, north=north, v=values)
    degrees = survey_points(log, lat="lat", lon="lon", value="v")
    metres = survey_points(log, x="east", y="north", value="v")
    assert metres.positions.shape == (len(degrees), 2)
    assert len(degrees) < 1000
    assert metres.notes == degrees.notes
    assert np.array_equal(metres.values, degrees.values)
    assert np.array_equal(metres.counts, degrees.counts)


def test_a_line_of_positions_needs_no_second_column():
    log = table_of(km=np.arange(9.0), v=np.arange(9.0) ** 2)
    points = survey_points(log, x="km", value="v")
    assert points.positions.tolist() == [[float(i)] for i in range(9)]


def test_the_corner_of_a_grid_in_metres_is_a_position():
    log = table_of(x=[0.0, 50, 100, 0, 50, 100], y=[0.0, 0, 0, 80, 80, 80], v=np.arange(6.0))
    assert len(survey_points(log, x="x", y="y", value="v")) == 6


def test_positions_must_be_named():
    log = table_of(lat=np.arange(5.0), v=np.arange(5.0))
    with pytest.raises(InputError, match="positions are missing"):
        survey_points(log, lat="lat", value="v")


@pytest.mark.parametrize("kind", ["grid", "stations in any order", "casts", "lines"])
def test_no_log_leaves_more_readings_than_a_fit_can_take(kind):
    rng = np.random.default_rng(0)
    n = 5 * MOST_READINGS
    options = {}
    if kind == "grid":
        x, y = (each.ravel() for each in np.meshgrid(np.arange(100.0), np.arange(100.0)))
    elif kind == "stations in any order":
        x, y = rng.uniform(0, 100, (2, n))
    elif kind == "casts":
        x, y = np.repeat(rng.uniform(0, 100, (2, 50)), n // 50, axis=1)
        options = {"depth": "depth"}
    else:
        x, y = np.tile(np.r_[np.arange(50.0), np.arange(50.0, 0, -1)], n // 100), np.arange(n) / 100
    values = x + y + rng.normal(0, 0.01, n)
    log = table_of(x=x, y=y, v=values, depth=np.tile(np.arange(200.0), n // 200))
    points = survey_points(log, x="x", y="y", value="v", **options)
    assert 0.4 * MOST_READINGS < len(points) <= MOST_READINGS
    assert points.counts.sum() == n
    assert np.allclose(points.positions.sum(axis=1), points.values, atol=0.02)
