"""How deep each module lies in the tree of arms, derived from the modules' costs.

Lin, Miano and Dyer (2021), appendix D. The two published recipes differ: eq. 17 rounds up, eq. 20 down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from fieldbo.errors import InputError

Recipe = Literal["eq17", "eq20"]


class Depths(NamedTuple):
    """Depths (N - 1,) by a recipe: the ``raw`` values, whole but for the last, and the ``depths`` to use."""

    raw: tuple[float, ...]
    depths: tuple[int, ...]


def depth_recipe(
    costs: Sequence[float], lam: float, steps: int, arms: int, recipe: Recipe = "eq17"
) -> Depths:
    """Return the depths that bound the cost of moving (Lin et al. 2021, eqs. 17 and 20).

    ``d_m = b_m - d_1 - ... - d_{m-1}`` for m up to N - 2, where b_m is
    ``-log2( (c_{m+1} + ... + c_{N-1}) / (c_1 + ... + c_{N-1}) ) - log2(lam)/2``, rounded down (eq. 20). In
    eq. 17 the last term is ``+ log2(lam)/2``, and b_m is rounded up. The last depth is
    ``log2(T^(1/3) / log K)`` minus the others, with a natural logarithm. The depths to use are rounded up and
    at least 1.

    Parameters
    ----------
    costs : sequence of N - 1 floats
        Costs of all modules but the last, above 0.
    lam : float
        Weight of a unit of cost relative to a unit of value, above 0.
    steps : int
        Number of steps, T.
    arms : int
        Number of arms, K. With a single arm the last depth is 1.
    recipe : {"eq17", "eq20"}

    Raises
    ------
    InputError
        If a cost or `lam` is not above 0.

    Examples
    --------
    >>> depth_recipe([40, 10, 5], lam=0.1, steps=200, arms=8, recipe="eq20").depths
    (3, 2, 1)
    """
    c = np.asarray(costs, dtype=float)
    if not (np.all(c > 0) and lam > 0):
        raise InputError(
            f"depths by {recipe} for costs {c.tolist()} and lam = {lam:g}",
            expected="costs above 0 of all modules but the last, and lam above 0",
            where="policy.depths",
            fix="give the depths themselves, for example depths = [1]",
        )
    sign, rounded = (0.5, np.ceil) if recipe == "eq17" else (-0.5, np.floor)
    raw: list[float] = []
    for m in range(1, len(c)):
        raw.append(float(rounded(-np.log2(c[m:].sum() / c.sum()) + sign * np.log2(lam))) - sum(raw))
    last = np.log2(steps ** (1 / 3) / np.log(arms)) - sum(raw) if arms > 1 else 1.0
    raw.append(float(last))
    return Depths(tuple(raw), tuple(max(1, int(np.ceil(d))) for d in raw))
