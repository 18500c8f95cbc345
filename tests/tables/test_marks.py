"""Numbers that may stand for no value are found by what they are, and asked about."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldbo.tables.marks import sentinel_doubts
from fieldbo.tables.opening import open_table

MARKS = [-9.99e-29, 1e-34, -1e34, 1e35, -7999.0, -9999.0, -999.25, -999.9, 99999.0, 9.969209968386869e36,
         6999.0, 7999.0, -99.99, 32767.0, -32768.0, -8888.0, 2147483647.0,
         1.7976931348623157e308]  # fmt: skip
READINGS = 7.0 + np.sin(np.arange(40))


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_among_readings_is_asked_about_so_that_the_answer_finds_it(mark):
    values = np.where(np.arange(40) % 13 == 5, mark, READINGS)
    (doubt,) = sentinel_doubts(values, "chl")
    assert float(doubt.rpartition("--missing ")[2]) == mark
    assert "in 3 rows and else between 6 and 8" in doubt.replace("6.00001", "6").replace("7.99991", "8")
    assert sentinel_doubts(values, "chl", known=[mark]) == []


def test_several_marks_are_asked_about_one_by_one():
    values = np.concatenate([READINGS, [-9999.0, -7999.0, -9.99e-29, 1e34]])
    assert len(sentinel_doubts(values, "chl")) == 4


def test_the_only_negative_number_is_a_mark_if_it_repeats_and_lies_apart():
    values = np.where(np.arange(40) % 9 == 5, -5.0, READINGS)
    assert "chl is -5 in 4 rows" in sentinel_doubts(values, "chl")[0]
    assert sentinel_doubts(np.where(np.arange(40) == 5, -5.0, READINGS), "chl") == []
    temperatures = np.round(np.linspace(-0.1, 3, 40), 1)
    assert sentinel_doubts(temperatures, "temp") == []


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-9, 1e-3, 1.0, 1e4]), st.integers(0, 4))
def test_readings_of_any_scale_raise_no_question(seed, scale, digits):
    rng = np.random.default_rng(seed)
    for values in (rng.normal(size=60), rng.lognormal(size=60), np.maximum(rng.normal(size=60), 0)):
        assert sentinel_doubts(np.round(scale * values, digits + 9), "v") == []
    assert sentinel_doubts(scale * (rng.normal(size=60) * 1e-17 + 0.3 - 0.1 - 0.2), "residual") == []


def test_oxygen_near_99_percent_and_counts_that_are_mostly_zero_are_readings():
    assert sentinel_doubts(np.array([95.0, 97.0, 99.0, 99.9, 101.0]), "saturation") == []
    assert sentinel_doubts(np.array([0.0] * 30 + [3.0, 5.0, 9.0]), "count") == []


@pytest.mark.parametrize(("last", "rows"), [("-9999", 6), ("7.1", 5), ("7", 5), ("7.125", 6)])
def test_a_mark_in_the_last_cell_is_no_sign_that_the_file_is_cut(tmp_path, last, rows):
    file = tmp_path / "log.csv"
    file.write_text("x,v\n" + "".join(f"{i},{i}.125\n" for i in range(5)) + f"5,{last}")
    assert len(open_table(file)) == rows


def test_a_negative_mark_among_positive_values_is_asked_about_even_if_it_is_near_and_single():
    carbon = np.append(np.linspace(308.0, 512.0, 40), -99.9)
    assert "carbon is -99.9 in 1 row and else between 308 and 512" in sentinel_doubts(carbon, "carbon")[0]
    assert sentinel_doubts(np.append(np.linspace(-120.0, 20.0, 40), -99.9), "temp") == []
