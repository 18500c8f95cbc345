r"""Performance profiles of compared missions (Dolan and Moré 2002).

A *problem* is a field and a start, which all missions share. Let ``t_ps`` be the cost at which mission s
first reaches a target score on problem p, infinite if it never does. With ``r_ps = t_ps / min_s t_ps``, the
profile of a mission is the fraction of problems that it solves at a cost within a factor of the best:

    rho_s(tau) = #{p : r_ps <= tau} / #problems

``rho_s(1)`` is the fraction of problems on which the mission was the cheapest, and ``rho_s`` at the
right-hand end the fraction on which it reached the target at all.

Problems in the same field are alike. The bootstrap therefore draws whole fields again, with all their starts;
with a single field it draws starts, and says nothing about other fields.

E. D. Dolan and J. J. Moré, Benchmarking optimization software with performance profiles, Math. Program. 91
(2002), 201-213.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.results.metrics import F1, Score
from fieldbo.runs.comparison_scores import curves_of

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
