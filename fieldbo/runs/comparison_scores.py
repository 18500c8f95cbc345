"""Scores of compared missions at equal costs.

Starts in the same field give similar scores. Errors therefore treat each draw of a field as a cluster:

``x_gi``   score of start i in draw g, or a difference between two missions there
``e_g``    ``sum_i (x_gi - mean)``, of G draws with n runs in all
``error``  ``sqrt(G / (G - 1) sum_g e_g^2) / n``

This is the cluster-robust standard error of a mean (Liang and Zeger 1986). With equally many starts per draw,
it is the standard error of the means per draw. With one draw, each start is a cluster of its own, and the
error says nothing about other fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.special import stdtrit

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.streams import stream
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.mission.load import load_mission
from fieldbo.results import plot
from fieldbo.results.cell_runs import judged_by
from fieldbo.results.metrics import BEST_REGRET, F1, REGRET, SIMPLE_REGRET, Score, score_at_costs
from fieldbo.runs.comparison import contender

_SCORES = (F1, SIMPLE_REGRET, BEST_REGRET, REGRET)
"""A cell has the regrets before the last one as well, and is compared by its own."""

_Key = tuple[str, str]
"""Draw and start of a run."""


class Scores(NamedTuple):
    """A mission's score at k costs.

    Attributes
    ----------
    mean, error : (k,) arrays
        Mean and its standard error, clustered by draw.
    runs, draws : int
        Number of runs, and of the fields that they share.
    interval90 : (2, k) array
        Both ends of the central 90% of the runs.
    """

    mean: Array
    error: Array
    runs: int
    draws: int
    interval90: Array


class Difference(NamedTuple):
    """How much a mission's score differs from another's at k costs, in runs of the same draw and start.

    Attributes
    ----------
    mean, error : (k,) arrays
        Mean of the differences and its standard error, clustered by draw.
    pairs, draws : int
        Number of pairs of runs, and of the fields that they share.
    clear : (k,) bool array
        Whether 0 is outside the 95% interval of the mean, by Student's t with one degree of freedom less than
        there are draws; for one draw, than there are starts.
    """

    mean: Array
    error: Array
    pairs: int
    draws: int
    clear: Mask


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
    name, settings = contender(mission, overrides or {})
    return judged_by(load_mission(name, settings))


def check_target(target: float, score: Score) -> None:
    """Raise an `InputError` if a score can't reach a target."""
    most, valid = (1.0, "an F1 above 0 and at most 1") if score is F1 else (1e300, "a regret above 0")
    if not 0 < target <= most:
        raise InputError(f"the target is {target}", expected=valid, where="--target")


def score_in(rows: Sequence[Mapping[str, str]]) -> Score:
    """Return the score by which a table compares its runs, from the columns that it fills."""
    filled = {score.column for row in rows for score in _SCORES if row["row"] == "step" and row[score.column]}
    return next((score for score in _SCORES if score.column in filled), F1)


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
    for mission, runs in curves_of(rows, score).items():
        scores = np.array([score_at_costs(*run, costs) for run in runs.values()])
        mean, error, _ = _clustered(scores, runs)
        interval90 = np.quantile(scores, (0.05, 0.95), axis=0)
        out[mission] = Scores(mean, error, len(scores), _draws(runs), interval90)
    return out


def differences_at(
    rows: Sequence[Mapping[str, str]], costs: Sequence[float], reference: str, score: Score = F1
) -> dict[str, Difference]:
    """Return how much each other mission's score differs from that of `reference` at equal costs.

    Runs are paired by draw and start, which removes what a field or a start does to both alike.

    Parameters
    ----------
    rows : sequence of mappings
        From `compare`.
    costs : sequence of k floats
    reference : str
        A mission of the table.
    score : Score
    """
    curves = curves_of(rows, score)
    first = curves.pop(reference, {})
    out = {}
    for mission, runs in curves.items():
        pairs = [key for key in runs if key in first]
        if pairs:
            gaps = [score_at_costs(*runs[k], costs) - score_at_costs(*first[k], costs) for k in pairs]
            mean, error, clusters = _clustered(np.array(gaps), pairs)
            reach = stdtrit(clusters - 1, 0.975) * error if clusters > 1 else np.full(len(costs), np.inf)
            out[mission] = Difference(mean, error, len(pairs), _draws(pairs), np.abs(mean) > reach)
    return out


def _draws(runs: Iterable[_Key]) -> int:
    return len({draw for draw, _ in runs})


def _clustered(values: Array, runs: Iterable[_Key]) -> tuple[Array, Array, int]:
    """Return mean and standard error (k,) of the values (n, k) of runs, and the number of clusters."""
    labels, members = np.unique([draw for draw, _ in runs], return_inverse=True)
    if len(labels) == 1:
        members = np.arange(len(values))
    clusters = int(members.max()) + 1
    mean = values.mean(axis=0)
    if clusters == 1:
        return mean, 0.0 * mean, clusters
    sums = np.zeros((clusters, values.shape[1]))
    np.add.at(sums, members, values - mean)
    error = np.sqrt(clusters / (clusters - 1) * np.square(sums).sum(axis=0)) / len(values)
    return mean, error, clusters


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
    for mission, runs in curves_of(rows, score).items():
        curves = runs.values()
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


def curves_of(rows: Sequence[Mapping[str, str]], score: Score) -> dict[str, dict[_Key, tuple[Array, Array]]]:
    """Return the costs and scores (n,) of each run by mission, draw and start."""
    points: dict[str, dict[_Key, list[tuple[float, float]]]] = {}
    for row in rows:
        if row["row"] == "step":
            value = float(row[score.column] or row["expected_f1"])
            by_run = points.setdefault(row["mission"], {})
            by_run.setdefault((row["draw"], row["start"]), []).append((float(row["cost"]), value))

    def columns(pairs: list[tuple[float, float]]) -> tuple[Array, Array]:
        cost, value = np.transpose(pairs)
        return cost, value

    return {
        mission: {key: columns(pairs) for key, pairs in by_run.items()} for mission, by_run in points.items()
    }


_DRAWN = 2000


class Profile(NamedTuple):
    """The performance profile of a mission.

    Attributes
    ----------
    factors : (k,) array
        Factors at which the profile of some mission rises, from 1.
    fraction : (k,) array
        Fraction of problems that the mission solves at a cost within each factor of the best mission's.
    interval90 : (2, k) array
        Both ends of the 90% bootstrap interval of the fraction.
    reached, problems : int
        Number of problems on which it reached the target, and of all.
    draws : int
        Number of fields.
    """

    factors: Array
    fraction: Array
    interval90: Array
    reached: int
    problems: int
    draws: int


def performance_profiles(
    rows: Sequence[Mapping[str, str]], target: float, score: Score = F1
) -> dict[str, Profile]:
    """Return the performance profile of each mission, in the order of the table.

    Parameters
    ----------
    rows : sequence of mappings
        From `compare`, or `read_table`. Only problems that all missions have tried count.
    target : float
        F1 to reach, or regret to fall to.
    score : Score

    Returns
    -------
    dict of str to Profile
        Empty if there is no problem that all missions have tried.
    """
    curves = curves_of(rows, score)
    problems = [
        key for key in next(iter(curves.values()), {}) if all(key in runs for runs in curves.values())
    ]
    if not problems:
        return {}
    costs = np.array([[score.cost_to(*runs[key], target) for key in problems] for runs in curves.values()])
    ratios = ratios_to_best(costs)
    finite = ratios[np.isfinite(ratios)]
    factors = np.unique(np.append(1.0, finite))
    solved = (ratios[:, :, None] <= factors).astype(float)  # (missions, problems, k)
    weights = _weights([draw for draw, _ in problems])
    drawn = np.einsum("bp,spk->sbk", weights, solved)
    ends = np.quantile(drawn, (0.05, 0.95), axis=1).transpose(1, 0, 2)
    draws = len({draw for draw, _ in problems})
    return {
        mission: Profile(
            factors,
            solved[s].mean(axis=0),
            ends[s],
            int(np.isfinite(ratios[s]).sum()),
            len(problems),
            draws,
        )
        for s, mission in enumerate(curves)
    }


def ratios_to_best(costs: Array) -> Array:
    """Return the ratio of each mission's cost to that of the best mission on the same problem.

    Parameters
    ----------
    costs : (missions, problems) array
        NaN where the target was never reached.

    Returns
    -------
    (missions, problems) array
        Infinite where the target was never reached.

    Examples
    --------
    >>> ratios_to_best(np.array([[10.0, 30.0, np.nan], [20.0, np.nan, np.nan]])).tolist()
    [[1.0, 1.0, inf], [2.0, inf, inf]]
    """
    known = np.where(np.isnan(costs), np.inf, costs)
    best = known.min(axis=0)
    with np.errstate(invalid="ignore"):
        ratios = np.where(known == best, 1.0, known / best)
    return np.where(np.isinf(known), np.inf, ratios)


def _weights(draws: Sequence[str]) -> Array:
    """Return the weights (b, p) of problems in bootstrap samples: of whole fields, or of starts in one."""
    labels, members = np.unique(draws, return_inverse=True)
    if len(labels) == 1:
        members = np.arange(len(draws))
    clusters = int(members.max()) + 1
    times = stream(0, "bootstrap").multinomial(clusters, np.full(clusters, 1.0 / clusters), _DRAWN)
    weights: Array = times[:, members].astype(float)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


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
