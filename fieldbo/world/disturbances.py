"""What real moves differ by from declared ones, in simulation: noise on costs, and a steady wind.

=====  =====================================================================
p      declared price of a straight piece of the way
s      declared price of sampling at its end
u      (d,) direction of travel along the piece, of length 1
v      (d,) ``head_wind``: where the wind blows to; its length is a share
e      a draw from a standard normal distribution, cut off at -2 and 2
=====  =====================================================================

An order really takes ``(1 + cost_noise e) (sum over pieces of p (1 - v.u) + s)``, in cost and in seconds
alike: it meets the same wind and the same luck in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError

_CUT = 2.0  # standard deviations: without a bound on the noise no margin could be enough


@dataclass(frozen=True)
class Disturbances:
    """What real costs and times differ by from declared ones.

    Parameters
    ----------
    cost_noise : float
        Standard deviation of an order's relative error, cut off at two of them; at least 0, below 0.5.
    head_wind : sequence of float
        (d,) where a steady wind blows to, as a share: of ``[0.2, 0]`` a piece of the way against the first
        axis is 20% dearer, one along it 20% cheaper. None: calm.

    Examples
    --------
    >>> from fieldbo.costs.euclidean import Euclidean
    >>> breeze = Disturbances(head_wind=(0.2, 0.0))
    >>> breeze.way(Euclidean(), [5.0, 0.0], [0.0, 0.0]), breeze.way(Euclidean(), [5.0, 0.0], [5.0, 3.0])
    (1.2, 1.0)
    >>> Disturbances(cost_noise=0.05, head_wind=(0.2, 0.0)).worst
    0.32
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    cost_noise: float = 0.0
    head_wind: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.cost_noise < 1 / _CUT:
            raise InputError(
                f"cost_noise = {self.cost_noise}",
                expected=f"at least 0, below {1 / _CUT:g}: a standard deviation as a share of the declared "
                "cost, and no move pays back",
                where="conditions.cost_noise",
            )
        if not self._strength < 1:
            raise InputError(
                f"head_wind = {list(self.head_wind)}",
                expected="finite shares, of a length below 1: no way pays back",
                where="conditions.head_wind",
            )

    @property
    def _strength(self) -> float:
        return float(np.linalg.norm(self.head_wind))

    @property
    def worst(self) -> float:
        """The largest share by which an order can be dearer, or take longer, than declared.

        With a margin of at least this the way home can always be paid.
        """
        worst = (1.0 + self._strength) * (1.0 + _CUT * self.cost_noise) - 1.0
        told = round(worst, 12)
        return told if abs(told - worst) < 1e-15 else worst  # 0.32 is 0.32

    def way(self, cost: CostModel, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> float:
        """Return by which factor the wind makes the way from `a` (d,) to `b` (d,) dearer or cheaper.

        The pieces of the way count by what each of them is declared to cost.
        """
        if not any(self.head_wind):
            return 1.0
        way = cost.path(a, b, time_s)
        legs = np.diff(way, axis=0)
        lengths = np.linalg.norm(legs, axis=1)
        prices = np.array([float(cost.travel(p, q[None], time_s)[0]) for p, q in pairwise(way)])
        prices, legs, lengths = prices[lengths > 0], legs[lengths > 0], lengths[lengths > 0]
        whole = float(prices.sum())
        if not whole > 0:
            return 1.0
        return float(1.0 - prices @ (legs @ self.head_wind / lengths) / whole)

    def luck(self, rng: np.random.Generator) -> float:
        """Return the factor by which an order as a whole is dearer or cheaper, drawn anew for each."""
        if self.cost_noise == 0:
            return 1.0
        return 1.0 + self.cost_noise * float(np.clip(rng.standard_normal(), -_CUT, _CUT))

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` if the wind has not as many components as the domain has axes."""
        if self.head_wind and len(self.head_wind) != domain.dimension:
            raise InputError(
                f"a head wind of {len(self.head_wind)} components",
                expected=f"{domain.dimension}, for {', '.join(a.name for a in domain.axes)}",
                where="conditions.head_wind",
            )

    def told(self) -> str:
        """Return what is not as declared, for example ``"cost_noise 0.05, head_wind [0.2, 0]"``."""
        parts = [f"cost_noise {self.cost_noise:g}"] if self.cost_noise else []
        if any(self.head_wind):
            parts.append(f"head_wind [{', '.join(f'{share:g}' for share in self.head_wind)}]")
        return ", ".join(parts) or "as declared"
