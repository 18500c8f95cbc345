"""What is true in a world, and what that answers; looked up once for all runs in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from fieldbo.domain import Array, Domain, Mask, frozen_array
from fieldbo.question import Question
from fieldbo.threads import one_blas_thread
from fieldbo.world import World

_STARTS = 32
"""From so many of the best sites the optimum of a box is climbed to."""

_STEP = 1e-5  # share of an axis: of a central difference


@dataclass(frozen=True, eq=False)
class Place:
    """A point of a domain and the value there.

    Attributes
    ----------
    point : (d,) array
    value : float
    site : int or None
        Which of the domain's sites it is; None where it lies between them.
    """

    point: Array
    value: float
    site: int | None = None


@dataclass(frozen=True, eq=False)
class Truth:
    """The true values, in the user's unit, and the true answer to a question.

    Attributes
    ----------
    world : World
    question : Question
    values : (N,) array
        At the domain's sites.
    """

    world: World
    question: Question
    values: Array

    @cached_property
    def threshold(self) -> float:
        """The threshold; NaN for an optimum."""
        return self.question.level(float(self.values.max()))

    @cached_property
    def above(self) -> Mask:
        """The sites at or above the threshold, (N,) bool."""
        return np.asarray(self.values >= self.threshold)

    @cached_property
    def optimum(self) -> Place:
        """The best of the sites; in a continuous domain, what is climbed to from the best few dozen."""
        sign, domain = self.question.sign, self.world.domain
        order = np.argsort(-sign * self.values, kind="stable")
        first = int(order[0])
        best = Place(domain.sites[first], float(self.values[first]), first)
        if not domain.continuous:
            return best
        spread = float(np.ptp(self.values)) or 1.0

        def rising(point: Array) -> tuple[float, Array]:
            steps = _STEP * np.diag(domain.extent)
            around = np.clip(np.concatenate([point + steps, point - steps, [point]]), domain.low, domain.high)
            values = sign * self.world.truth(around) / spread
            d = len(point)
            width = np.diag(around[:d] - around[d : 2 * d])
            return float(values[-1]), (values[:d] - values[d : 2 * d]) / width

        top = climbed(rising, domain.sites[order[:_STARTS]], domain)
        value = self.at(top)
        return Place(top, value) if sign * value > sign * best.value else best

    def at(self, point: Array) -> float:
        """Return the true value at a point (d,)."""
        return float(self.world.truth(point[None])[0])


@lru_cache(maxsize=4)  # a campaign runs many missions in one world
def truth_of(world: World, question: Question) -> Truth | None:
    """Return what is true in a world; None in a live one."""
    if world.live:
        return None
    return Truth(world, question, frozen_array(world.truth(world.domain.sites)))


def climbed(function: Callable[[Array], tuple[float, Array]], starts: Array, domain: Domain) -> Array:
    """Return the best point (d,) that can be climbed to in a box.

    Parameters
    ----------
    function : Callable
        Of a point (d,); returns the value, of about unit spread, and its gradient (d,).
    starts : (k, d) array
    domain : Domain
        A continuous one.

    Examples
    --------
    >>> from fieldbo.domain import Axis
    >>> hill = lambda x: (-float((x - 3) @ (x - 3)), -2 * (x - 3))
    >>> climbed(hill, np.array([[0.0]]), Domain.box([Axis("x", "m", 0, 10)], 8)).round(4)
    array([3.])
    """
    from scipy.optimize import minimize

    def falling(share: Array) -> tuple[float, Array]:
        value, gradient = function(domain.low + share * domain.extent)
        return -value, -gradient * domain.extent

    box = [(0.0, 1.0)] * domain.dimension
    with one_blas_thread():  # its matrices are tiny
        found = [
            minimize(falling, (s - domain.low) / domain.extent, jac=True, method="L-BFGS-B", bounds=box)
            for s in starts
        ]
    best = min(found, key=lambda f: float(f.fun))
    return np.asarray(np.clip(domain.low + best.x * domain.extent, domain.low, domain.high))
