"""The pictures of a comparison, from the rows of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.results import plot
from fieldbo.results.metrics import Score
from fieldbo.runs.comparison_scores import Scores, scores_at
from fieldbo.runs.performance_profiles import performance_profiles

_POINTS = 60


def comparison_figure(
    rows: Sequence[Mapping[str, str]],
    score: Score,
    width: str = "screen",
    band: str = "standard-error",
) -> Figure:
    """Draw the mean score of each mission up to the smallest battery; see `plot.comparison_picture`.

    Parameters
    ----------
    rows : sequence of mappings
        From `compare` or `read_table`.
    score : Score
    width : {"screen", "column", "page"}
    band : {"standard-error", "interval"}

    Raises
    ------
    UnknownNameError
        There is no such band.
    """
    check_band(band)
    runs = [row for row in rows if row["row"] == "run"]
    smallest = min(float(row["battery"]) for row in runs)
    grid = np.linspace(smallest / _POINTS, smallest, _POINTS)
    curves = {m: (grid, s.mean, _ends(s, band)) for m, s in scores_at(rows, grid.tolist(), score).items()}
    shown = plot.BANDS[band] + (f" {errors_over(rows)}" if band == "standard-error" else "")
    return plot.comparison_picture(curves, runs[0]["cost_unit"], score, width, shown)


def profile_figure(
    rows: Sequence[Mapping[str, str]], targets: Sequence[float], score: Score, width: str = "screen"
) -> Figure:
    """Draw the performance profiles for each target; see `performance_profiles`.

    Parameters
    ----------
    rows : sequence of mappings
        From `compare` or `read_table`.
    targets : sequence of float
    score : Score
    width : {"screen", "column", "page"}

    Raises
    ------
    InputError
        No run was started by all missions from the same start in the same field.
    """
    drawn = {}
    for target in targets:
        profiles = performance_profiles(rows, target, score)
        if not profiles:
            raise InputError(
                "the missions have no run in common",
                expected="a table in which all missions ran from the same start in the same field",
                fix="repeat the fieldbo compare that wrote it",
            )
        drawn[f"{score.name} {target:g}"] = {m: p[:3] for m, p in profiles.items()}
    return plot.performance_picture(drawn, width, f"90% bootstrap interval {errors_over(rows)}")


def check_band(band: str) -> None:
    """Raise an `UnknownNameError` if there is no such band."""
    if band not in plot.BANDS:
        raise UnknownNameError.of("band", band, plot.BANDS, where="--band")


def errors_over(rows: Sequence[Mapping[str, str]]) -> str:
    """Say what the errors of a table's runs cover: its fields or, with one field, the starts in it."""
    draws, starts = ({row[key] for row in rows} for key in ("draw", "start"))
    return (
        f"over {len(draws)} fields"
        if len(draws) > 1
        else f"over {counted(len(starts), 'start')} in one field"
    )


def _ends(scores: Scores, band: str) -> Array:
    """Return the standard error (k,), or distances (2, k) from the mean to the ends of the central 90%."""
    return np.abs(scores.interval90 - scores.mean) if band == "interval" else scores.error
