"""How the real costs of simulated moves differ from the declared ones: random noise, and a steady wind.

=====  =====================================================================
p      declared cost of a straight piece of the route
s      declared cost of sampling at its end
u      (d,) direction of travel along the piece, of length 1
v      (d,) ``head_wind``: the direction the wind blows to; its length is a fraction
e      a draw from a standard normal distribution, cut off at -2 and 2
=====  =====================================================================

An order really costs ``(1 + cost_noise e) (sum over pieces of p (1 - v.u) + s)``. The same formula, with the
same wind and the same draw, gives the seconds that it takes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.validation import settings

_CUT = 2.0  # standard deviations; no margin could cover unbounded noise


@settings("conditions")
class Disturbances:
    """How real costs and times differ from the declared ones.

    Examples
    --------
    >>> from fieldbo.costs import Euclidean
    >>> breeze = Disturbances(head_wind=(0.2, 0.0))
    >>> breeze.wind_factor(Euclidean(), [[5.0, 0.0], [0.0, 0.0]])
    1.2
    >>> breeze.wind_factor(Euclidean(), [[5.0, 0.0], [5.0, 3.0]])
    1.0
    >>> Disturbances(cost_noise=0.05, head_wind=(0.2, 0.0)).worst
    0.32
    """

    cost_noise: Annotated[float, Field(ge=0, lt=1 / _CUT)] = 0.0
    """Standard deviation of an order's relative cost error, which is cut off at two standard deviations."""
    head_wind: tuple[float, ...] = ()
    """The direction a steady wind blows to, one fraction per axis. With ``[0.2, 0]``, a piece of the route
    against the first axis costs 20% more, and one along it 20% less. Default: calm."""

    def __post_init__(self) -> None:
        if not self._wind_strength < 1:
            raise InputError(
                f"head_wind = {list(self.head_wind)}",
                expected="a vector of length below 1, so that no move has a negative cost",
                where="conditions.head_wind",
            )

    @property
    def _wind_strength(self) -> float:
        return float(np.linalg.norm(self.head_wind))

    @property
    def worst(self) -> float:
        """The largest fraction by which an order can cost more, or take longer, than declared.

        With a margin of at least this much, the trip home is always affordable.
        """
        worst = (1.0 + self._wind_strength) * (1.0 + _CUT * self.cost_noise) - 1.0
        rounded = round(worst, 12)
        return rounded if abs(rounded - worst) < 1e-15 else worst  # 0.32 is 0.32

    def wind_factor(self, cost: CostModel, points: ArrayLike, time_s: float = 0.0) -> float:
        """Return the factor by which the wind changes the cost of a route through points (k, d).

        Each piece of the route is weighted by its declared cost.
        """
        if not any(self.head_wind):
            return 1.0
        route = np.asarray(points, dtype=float)
        legs = np.diff(route, axis=0)
        lengths = np.linalg.norm(legs, axis=1)
        prices = np.array([cost.along([p, q], time_s)[0] for p, q in pairwise(route)])
        prices, legs, lengths = prices[lengths > 0], legs[lengths > 0], lengths[lengths > 0]
        total = float(prices.sum())
        if not total > 0:
            return 1.0
        return float(1.0 - prices @ (legs @ self.head_wind / lengths) / total)

    def noise_factor(self, rng: np.random.Generator) -> float:
        """Draw the random factor on the cost of one order."""
        if self.cost_noise == 0:
            return 1.0
        return 1.0 + self.cost_noise * float(np.clip(rng.standard_normal(), -_CUT, _CUT))

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless the wind has one component per axis of the domain."""
        if self.head_wind and len(self.head_wind) != domain.dimension:
            raise InputError(
                f"a head wind of {len(self.head_wind)} components",
                expected=f"{domain.dimension}, for {', '.join(a.name for a in domain.axes)}",
                where="conditions.head_wind",
            )

    def describe(self) -> str:
        """Return the disturbances in words, for example ``"cost_noise 0.05, head_wind [0.2, 0]"``."""
        parts = [f"cost_noise {self.cost_noise:g}"] if self.cost_noise else []
        if any(self.head_wind):
            parts.append(f"head_wind [{', '.join(f'{share:g}' for share in self.head_wind)}]")
        return ", ".join(parts) or "as declared"
