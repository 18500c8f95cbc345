"""Rules for an optimum that weigh what a site promises by the way to it, one step ahead.

===========  ==================================================================
``mu, s``    posterior mean and standard deviation, (N,)
``d``        travel to each site, in the cost unit
``kappa``    a plain multiplier, ``kappa s``
===========  ==================================================================

What they choose among, in a box too, is told in `candidates`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from fieldbo.costs.base import CostModel
from fieldbo.domain import Array, Domain, Mask
from fieldbo.errors import InputError
from fieldbo.exchange import EndReason, Stop
from fieldbo.policies.acquisition import Convention, ducb
from fieldbo.policies.base import Decision, Memory, Policy, State, highest
from fieldbo.policies.bases import Base
from fieldbo.policies.candidates import best_candidate, needs_candidates, over_candidates
from fieldbo.policies.optimum import incumbent, reading_noise
from fieldbo.question import Optimum
from fieldbo.surface import Surface


@dataclass(frozen=True, eq=False)
class View:
    """Sites as a rule sees them from where the vehicle stands; those that were rejected it does not see.

    Attributes
    ----------
    surface : Surface
        The belief over what can be chosen.
    noise : (N,) array
        Noise variances of readings there.
    able : (N,) bool array
        Which of them can be paid for.
    """

    surface: Surface
    noise: Array
    able: Mask


Scores = Callable[[Array], Array]
"""Of points (m, d): their scores (m,), minus infinity where one can't be had."""


@dataclass(frozen=True)
class Traveller(Policy):
    """A rule for an optimum that goes by the way to a site.

    Parameters
    ----------
    level : int
        The sensor's setting to read with.
    stop : {"best_affordable", "first_unaffordable"}
        Whether to choose among what can be paid for, and stop when nothing can; or among everything, and stop
        when the choice can't be paid for (Liu et al. 2023).
    candidates : int
        In a box: among how many points, drawn anew for each decision, it chooses where to climb from.
    """

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    level: int = 0
    stop: Literal["best_affordable", "first_unaffordable"] = "best_affordable"
    candidates: int = 1000

    def __post_init__(self) -> None:
        needs_candidates(self.candidates)

    @abstractmethod
    def scores(self, state: State, view: View) -> tuple[Array, Scores, dict[str, Any]]:
        """Return scores (N,) of the sites in view, how other points are scored, and what explains them."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if the costs are not declared."""
        if cost is None:
            raise InputError(
                f"{type(self).__name__} without declared costs", expected="a world that declares its costs"
            )

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the best site by the rule; in a box, the best point that can be climbed to from it."""
        view = self._view(state)
        if view is None:
            return Decision(Stop(EndReason.STOPPED_BY_POLICY), memory)
        scores, elsewhere, why = self.scores(state, view)
        if self.stop == "first_unaffordable":
            first = highest(scores)
            if first is not None and not view.able[first]:
                return Decision(Stop(EndReason.BATTERY_SPENT), memory, why)
        return best_candidate(state, view.surface, scores, view.able, elsewhere, memory, self.level, **why)

    def _view(self, state: State) -> View | None:
        """Return what can be chosen; None if all of it was rejected."""
        surface = over_candidates(state, self.candidates)
        if surface is None:
            return None
        able = state.affordable(surface.candidates, level=self.level)
        return View(surface, reading_noise(state, self.level, surface), able)


@dataclass(frozen=True)
class OneStep(Traveller):
    """The best site by a base rule, from where the vehicle stands."""

    @property
    @abstractmethod
    def base(self) -> Base:
        """The rule."""

    def scores(self, state: State, view: View) -> tuple[Array, Scores, dict[str, Any]]:
        """Return the base rule's scores."""
        cost = state.cost
        assert cost is not None
        base = self.base.on(cost, state.domain)
        best = incumbent(state.surface) if base.improves else -np.inf

        def scores(points: Array, mean: Array, variance: Array) -> Array:
            travel = cost.travel(state.position, points, state.time_s)
            price = travel + cost.sampling_cost(points, self.level)
            return base.scores(mean, np.sqrt(variance), travel, price, best)

        def elsewhere(points: Array) -> Array:
            return scores(points, state.belief.mean(points), state.belief.variance(points))

        surface = view.surface
        why = {"incumbent": best} if base.improves else {}
        return scores(surface.candidates, surface.mean, surface.variance), elsewhere, why


@dataclass(frozen=True)
class DistUCB(OneStep):
    """Go where ``mu + kappa s / d`` is largest (Liu et al. 2023, eq. 10).

    Parameters
    ----------
    kappa : float
        How much what is not known counts.
    convention : {"one_plus", "floor", "exclude", "literal"}
        What stands for ``1 / d`` where travel is small: ``1 / (1 + d / d0)``, never above the plain UCB;
        ``1 / max(d, d0)``; or as printed, where staying is left out, or infinitely good.
    d0 : float, optional
        Small travel, in the cost unit; by default the travel along the domain's longest side.
    """

    kappa: float = 2.0
    convention: Convention = "one_plus"
    d0: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.base

    @property
    def base(self) -> Base:
        """The rule."""
        return Base("dist-ucb", self.kappa, self.convention, self.d0)


@dataclass(frozen=True)
class UCB(OneStep):
    """Go where ``mu + kappa s`` is largest, whatever the way.

    Parameters
    ----------
    kappa : float
        How much what is not known counts.
    """

    kappa: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.base

    @property
    def base(self) -> Base:
        """The rule."""
        return Base("ucb", self.kappa)


@dataclass(frozen=True)
class EIPerCost(OneStep):
    """Go where the expected improvement per unit of cost is largest (Lee et al. 2021).

    Per full price where sampling has one; otherwise per ``max(d, d0)`` of travel.

    Parameters
    ----------
    d0 : float, optional
        Small travel, in the cost unit; by default the travel along the domain's longest side.
    """

    d0: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.base

    @property
    def base(self) -> Base:
        """The rule."""
        return Base("ei-per-cost", d0=self.d0)


@dataclass(frozen=True)
class DUCB(Traveller):
    """Go where ``mu + kappa s - rho d`` is largest (Marchant and Ramos 2012).

    Parameters
    ----------
    rho : float
        What a unit of travel is worth, in the unit of the values (of their logarithms, under a log). There is
        no default.
    kappa : float
        How much what is not known counts.
    """

    rho: float = field(kw_only=True)
    kappa: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("rho", self.rho), ("kappa", self.kappa)):
            if not (np.isfinite(value) and value >= 0):
                raise InputError(
                    f"{name} = {value}", expected="a finite number of at least 0", where=f"policy.{name}"
                )

    def scores(self, state: State, view: View) -> tuple[Array, Scores, dict[str, Any]]:
        """Return the bounds, less what the way is worth."""
        cost, rho = state.cost, self.rho / abs(state.scale.scale)  # below 0 where the least is sought
        assert cost is not None

        def scores(points: Array, mean: Array, variance: Array) -> Array:
            travel = cost.travel(state.position, points, state.time_s)
            found = ducb(mean, np.sqrt(variance), np.where(np.isfinite(travel), travel, 0.0), self.kappa, rho)
            return np.where(np.isfinite(travel), found, -np.inf)

        def elsewhere(points: Array) -> Array:
            return scores(points, state.belief.mean(points), state.belief.variance(points))

        surface = view.surface
        return scores(surface.candidates, surface.mean, surface.variance), elsewhere, {}
