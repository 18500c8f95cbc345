"""Scores of compared missions at equal costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.mission.load import load_mission
from fieldbo.results.cell_runs import judged_by
from fieldbo.results.metrics import F1, Score, score_at_costs


class Scores(NamedTuple):
    """A mission's score at k costs.

    Attributes
    ----------
    mean, error : (k,) arrays
        Mean and standard error.
    runs : int
    interval90 : (2, k) array
        Both ends of the central 90% of the runs.
    """

    mean: Array
    error: Array
    runs: int
    interval90: Array


class Target(NamedTuple):
    """When a mission reached a target score.

    Attributes
    ----------
    cost : float
        Cost at which the mean curve first reaches the target; NaN if it never does.
    reached : int
        Number of runs that reached it.
    """

    cost: float
    reached: int


def score_of(mission: str, overrides: Mapping[str, Any] | None = None) -> Score:
    """Return the score by which runs of a mission are compared: F1 for a level set, regret for an optimum.

    For a chain of modules the score is the regret of the best sample, for control sets the simple regret.
    """
    return judged_by(load_mission(mission, overrides))


def scores_at(
    rows: Sequence[Mapping[str, str]], costs: Sequence[float], score: Score = F1
) -> dict[str, Scores]:
    """Return the mean score of each mission at equal costs, in the order of the table.

    A run that ended earlier keeps its last score. Without a truth, the expected F1 is used.

    Parameters
    ----------
    rows : sequence of mappings
        From `compare`.
    costs : sequence of k floats
    score : Score
    """
    out = {}
    for mission, curves in _curves(rows, score).items():
        scores = np.array([score_at_costs(cost, values, costs) for cost, values in curves])
        error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0 * scores[0]
        out[mission] = Scores(
            scores.mean(axis=0), error, len(scores), np.quantile(scores, (0.05, 0.95), axis=0)
        )
    return out


def targets(rows: Sequence[Mapping[str, str]], target: float, score: Score = F1) -> dict[str, Target]:
    """Return the cost at which the mean score of each mission first reaches a target.

    Parameters
    ----------
    rows : sequence of mappings
        From `compare`.
    target : float
        F1 to reach, or regret to fall to.
    score : Score
    """
    out = {}
    for mission, curves in _curves(rows, score).items():
        costs = np.unique(np.concatenate([cost for cost, _ in curves]))  # where the mean can change
        mean = np.mean([score_at_costs(cost, values, costs) for cost, values in curves], axis=0)
        single = [score.cost_to(cost, values, target) for cost, values in curves]
        out[mission] = Target(score.cost_to(costs, mean, target), int(np.isfinite(single).sum()))
    return out


def calibration(rows: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Return the mean final `coverage90` of each mission; it is 0.9 if the belief is well calibrated."""
    coverages: dict[str, list[float]] = {}
    for row in rows:
        if row["row"] == "run" and row["coverage90"]:
            coverages.setdefault(row["mission"], []).append(float(row["coverage90"]))
    return {mission: float(np.mean(values)) for mission, values in coverages.items()}


def _curves(rows: Sequence[Mapping[str, str]], score: Score) -> dict[str, list[tuple[Array, Array]]]:
    """Return the costs and scores (n,) of each run by mission."""
    runs: dict[str, dict[tuple[str, str], list[tuple[float, float]]]] = {}
    for row in rows:
        if row["row"] == "step":
            value = float(row[score.column] or row["expected_f1"])
            by_run = runs.setdefault(row["mission"], {})
            by_run.setdefault((row["draw"], row["start"]), []).append((float(row["cost"]), value))
    return {
        mission: [(points[:, 0], points[:, 1]) for points in map(np.array, by_run.values())]
        for mission, by_run in runs.items()
    }
