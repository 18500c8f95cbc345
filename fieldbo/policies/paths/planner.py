"""Search for the best chain of readings, from rough tours or from what is left of the last plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.policies.paths.chain import Chain

Objective = Callable[[Array], tuple[float, Array]]
"""From points (m, d) to the loss that their readings leave, and its gradient (m, d)."""


@on_one_blas_thread
def improved(objective: Objective, chain: Chain, plan: Array, iterations: int) -> tuple[Array, float]:
    """Return a feasible plan (m, d) at least as good as `plan`, and its loss.

    Parameters
    ----------
    objective : Callable
    chain : Chain
    plan : (m, d) array
        Pulled together first if its links are too long.
    iterations : int
        Most iterations of sequential quadratic programming (SLSQP, Kraft 1988).
    """
    from scipy.optimize import Bounds, minimize

    best = chain.pulled(plan)
    least = objective(best)[0]
    if iterations < 1 or not least > 0:
        return best, least
    # In links, and in today's loss: the first step, along the gradient, then has a fair length.
    shape, unit = best.shape, chain.spacing / chain.scale
    low, high, units = (np.tile(row, len(best)) for row in (chain.low / unit, chain.high / unit, unit))

    def loss(flat: Array) -> tuple[float, Array]:
        value, gradient = objective(flat.reshape(shape) * unit)
        return value / least, (gradient * unit / least).ravel()

    links: Any = {
        "type": "ineq",
        "fun": lambda flat: -chain.excess(flat.reshape(shape) * unit),
        "jac": lambda flat: -chain.jacobian(flat.reshape(shape) * unit) * units,
    }
    search: Any = minimize  # its stubs have no constraints with a jacobian
    found = search(
        loss,
        (best / unit).ravel(),
        jac=True,
        method="SLSQP",
        bounds=Bounds(low, high),
        constraints=links,
        options={"maxiter": iterations, "ftol": 1e-9},
    )
    if not np.isfinite(found.x).all():
        return best, least
    moved = chain.pulled(found.x.reshape(shape) * unit)
    value = objective(moved)[0]
    return (moved, value) if value < least else (best, least)


@on_one_blas_thread
def first_plan(
    objective: Objective, chain: Chain, starts: Iterable[Array], iterations: int
) -> tuple[Array, float]:
    """Return the best plan (m, d) found from any of the starts (m, d), and its loss."""
    plans = (improved(objective, chain, start, iterations) for start in starts)
    return min(plans, key=lambda found: found[1])
