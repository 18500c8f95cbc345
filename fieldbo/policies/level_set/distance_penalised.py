"""A distance-penalised search with a finite horizon, after Kearns, Jedynak and Lipor (2023).

Their paper, *A finite-horizon approach to active level set estimation* (arXiv:2310.11985), balances the error
that is left after a fixed number of samples and the distance travelled, in closed form for a threshold on a
line. **This is a reconstruction from the paper's abstract.** On the line, the optimal policy was derived
again, as below. The abstract does not say how it becomes a policy under a Gaussian process: here the equation
for the line is solved with the drop of the error that a reading is expected to bring in the field.

On a line of length 1 the threshold is uniform on an interval of length L, at one end of which the vehicle is,
so that the expected share of misclassified points is ``e = L / 4``. A noiseless sample at ``u L`` leaves an
interval of ``u L`` or of ``(1 - u) L``. If ``lambda`` is what a distance of 1 is worth, n samples at best
end at an expected ``error + lambda distance`` of ``c_n e``:

``c_0 = 1,  c_n = 4 lambda u + c_(n-1) (u^2 + (1 - u)^2)  at  u = max(1/2 - lambda / c_(n-1), 0)``

The vehicle halves the interval if ``lambda = 0``, and goes less far the more samples are left.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import NonNegativeFloat, PositiveInt

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.policies.choice import best_affordable, needs_declared_costs
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.level_set.look_ahead import GlobalSUR
from fieldbo.validation import settings

_WORTHWHILE = 1e-3  # share of the largest gain that a site must bring after its distance


def worth_of_error(samples: int, weight: float) -> float:
    """Return ``c_n``: the error that n samples leave and what their distance is worth, for each error now.

    Parameters
    ----------
    samples : int
        n, the samples that are left.
    weight : float
        ``lambda``, what a distance of 1 is worth.

    Examples
    --------
    >>> [worth_of_error(n, 0.0) for n in range(4)], round(worth_of_error(50, 0.1), 3)
    ([1.0, 0.5, 0.25, 0.125], 0.209)
    """
    c = 1.0
    for _ in range(samples):
        u = max(0.5 - weight / c, 0.0)
        c = 4.0 * weight * u + c * (u**2 + (1.0 - u) ** 2)
    return c


@settings("policy")
class DistancePenalised(GlobalSUR):
    """Weigh the error that a reading is expected to remove against the travel to it, over a finite horizon.

    ``max_x  c_(n-1) SUR(x) / N - lambda d(x) / D``, where SUR is the drop of the number of errors of
    `GlobalSUR`, and D the largest travel from the first site. If no site is worth its travel, the site that
    would be first if lambda fell: the largest gain per travel.

    A reconstruction, see :mod:`fieldbo.policies.level_set.distance_penalised`.
    """

    costs: ClassVar[tuple[str, ...]] = ("declared",)

    samples: PositiveInt = 100
    """The horizon: number of samples to plan for. Each later one is planned as if it were the last."""
    weight: NonNegativeFloat = 0.01
    """The paper's lambda: the share of sites that one travels D to classify."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if the costs are not declared, or one can be 0 that is divided by."""
        needs_declared_costs(cost)
        super().check(cost, domain)

    def decide(self, state: State, scores: Array, memory: Memory, **why: Any) -> Decision:
        """Return the affordable site of the highest score after its travel (per unit of cost)."""
        cost, sites = state.cost, state.domain.sites
        assert cost is not None
        longest = cost.travel(sites[0], sites)
        D = max(float(longest[np.isfinite(longest)].max()), np.finfo(float).tiny)
        share = cost.travel(state.position, sites, state.time_s) / D
        left = self.samples - state.steps - len(state.pending)
        gain = worth_of_error(max(left - 1, 0), self.weight) * scores / len(sites)
        net = gain - self.weight * np.where(np.isfinite(share), share, 1e300)
        if net[state.choosable(self.level)].max(initial=-np.inf) > _WORTHWHILE * gain.max():
            return self.best(state, net, memory, **why)
        rate = np.divide(gain, share, out=np.zeros_like(gain), where=share > 0)
        return best_affordable(state, rate if rate.any() else gain, memory, self.level, **why)
