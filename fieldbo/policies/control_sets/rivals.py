"""Rivals that choose a control set and its values: largest bound, posterior draw, groups by size.

==============  ==========================================================================================
``u``           ``mu + kappa s``
``i``, ``x``    a control set, and values for its variables
``c_i``         declared cost of set i
``g``           a function drawn from the posterior
==============  ==========================================================================================

Hayashi, Honda and Kashima (2022; "partially specified queries", PSQ) choose ``argmax_(i,x) E[u]``, or the
same of a posterior draw. As more control never lowers the best value, they end up with the full set
whatever it costs. Tay et al. (2023; "cost-varying variable subsets", CVS) play the cheapest of the sets
whose best comes close to the highest or, to explore then commit (ETC), play small sets first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Matern32, Matern52, SquaredExponential, Stationary
from fieldbo.belief.posterior import Belief
from fieldbo.domain.domain import Domain
from fieldbo.errors import PolicyError
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.control_sets.base import (
    ControlSetPolicy,
    PlayCounts,
    Proposal,
    by_set,
    ranked,
    remember,
)
from fieldbo.policies.control_sets.expectation import Expected, Precision, WithGradient
from fieldbo.policies.control_sets.search import ControlSetSearch
from fieldbo.validation import settings

_DEGREES = {SquaredExponential: np.inf, Matern32: 3.0, Matern52: 5.0}
"""Degrees of freedom of the kernels' spectral densities: Student's t, normal if infinite."""


class _BoundPolicy(ControlSetPolicy):
    """A policy that compares control sets by their largest E[u]."""

    def begun(self, state: State, memory: Memory) -> tuple[Memory, PlayCounts, int]:
        """Return the memory, the counts, and the number of plays that this policy has chosen so far."""
        counts = PlayCounts.of(state)
        memory = {"begun": counts.plain(), "upper": {}} if memory is None else memory
        return memory, counts, counts.since(memory["begun"]).total

    def bounds(self, state: State, sets: Sequence[int], memory: Memory) -> tuple[dict[int, Proposal], Memory]:
        """Return the best settings of some sets, and the memory with these settings."""
        search = ControlSetSearch(state, self.samples, self.candidates)
        proposals = search.upper(self.kappa, sets, by_set(memory["upper"]))
        return proposals, {**memory, "upper": remember(memory["upper"], proposals)}


@settings("policy")
class UCBPSQ(_BoundPolicy):
    """Play the largest upper confidence bound over all sets, regardless of cost (Hayashi et al. 2022)."""

    def decide(self, state: State, memory: Memory) -> Decision:
        """Return the settings of the largest E[u] over all control sets."""
        memory, counts, _ = self.begun(state, memory)
        proposals, memory = self.bounds(state, range(len(state.domain.control_sets)), memory)
        return self.play(state, counts, ranked(proposals.values()), memory)


@settings("policy")
class TSPSQ(ControlSetPolicy):
    """Play the control set and the values where a posterior draw is highest on average (Hayashi et al. 2022).

    The draw is a prior draw by random Fourier features, corrected by the readings (Matheron's rule).
    """

    features: PositiveInt = 512
    """Number of random Fourier features of a draw."""

    def decide(self, state: State, memory: Memory) -> Decision:
        """Return the settings where the draw's expectation is highest over all control sets."""
        search = ControlSetSearch(state, self.samples, self.candidates)
        draw = Draw.of(state.belief, self.features, state.rng)
        proposals = search.highest(draw.averaged, range(len(search.expected)), to_play=True)
        return self.play(state, PlayCounts.of(state), ranked(proposals.values()), memory)


@dataclass(frozen=True, eq=False)
class Draw:
    """A function drawn from a posterior: a prior draw by random Fourier features, corrected by the readings.

    ``g(x) = phi(x) . w + k(x, X) A (y - phi(X) w - e)``, ``phi_j(x) = sqrt(2 v / D) cos(omega_j . x + b_j)``,
    with w standard normal and e drawn from the readings' noise (Rahimi and Recht 2007; Wilson et al. 2020).

    Parameters
    ----------
    frequencies : (D, d) array
        omega.
    phases : (D,) array
        b.
    amplitudes : (D,) array
        ``sqrt(2 v / D) w``.
    weights : (n,) array
        ``A (y - phi(X) w - e)``.
    """

    frequencies: Array
    phases: Array
    amplitudes: Array
    weights: Array

    @classmethod
    def of(cls, belief: Belief, features: int, rng: np.random.Generator) -> Draw:
        """Draw a function from the posterior of a stationary kernel.

        Examples
        --------
        >>> belief = Belief(Matern52([0.3])).condition_on([[0.2], [0.7]], [1.0, -1.0], 1e-6)
        >>> Draw.of(belief, 512, np.random.default_rng(0))(belief, [[0.2], [0.7]]).round(2)
        array([ 1., -1.])
        """
        kernel = belief.kernel
        if not isinstance(kernel, Stationary) or type(kernel) not in _DEGREES:
            raise PolicyError(f"random Fourier features of the kernel {kernel} are not available")
        nu, d = _DEGREES[type(kernel)], len(kernel.length_scales)
        omega = rng.standard_normal((features, d)) / kernel.length_scales
        if np.isfinite(nu):
            omega *= np.sqrt(nu / rng.chisquare(nu, features))[:, None]
        phases = rng.uniform(0.0, 2.0 * np.pi, features)
        amplitudes = np.sqrt(2.0 * kernel.variance / features) * rng.standard_normal(features)
        weights = np.empty(0)
        if belief.size:
            prior = np.cos(belief.sites @ omega.T + phases) @ amplitudes
            noise = np.sqrt(belief.noise_variances) * rng.standard_normal(belief.size)
            weights = Precision(belief).times((belief.values - prior - noise)[None])[0]
        return cls(omega, phases, amplitudes, weights)

    def __call__(self, belief: Belief, points: Array) -> Array:
        """Return the values (P,) at points (P, d)."""
        x = np.atleast_2d(np.asarray(points, dtype=float))
        prior = np.cos(x @ self.frequencies.T + self.phases) @ self.amplitudes
        return np.asarray(prior + belief.kernel(x, belief.sites) @ self.weights if belief.size else prior)

    def averaged(self, over: Expected) -> _Average:
        """Return the draw's expectation over the free variables."""
        free = ~over.controls
        angles = over.samples[:, free] @ self.frequencies[:, free].T + self.phases
        # E[cos(a + b)] = Re exp(ia) E[exp(ib)]: the factor of the free variables is the same at all points.
        mean = np.exp(1j * angles).mean(axis=0)
        return _Average(self, over, self.amplitudes * np.abs(mean), np.angle(mean))


@dataclass(frozen=True, eq=False)
class _Average:
    """The expectation of a draw over the free variables, with its gradient."""

    draw: Draw
    over: Expected
    amplitudes: Array
    phases: Array

    def __call__(self, points: Array) -> WithGradient:
        x, mask = np.atleast_2d(points), self.over.controls
        omega = self.draw.frequencies[:, mask]
        angles = x[:, mask] @ omega.T + self.phases
        values, gradients = np.cos(angles) @ self.amplitudes, np.zeros_like(x)
        gradients[:, mask] = -(np.sin(angles) * self.amplitudes) @ omega
        if self.over.belief.size:
            correction, its_gradient = self.over.weighted(x, self.draw.weights)
            values, gradients = values + correction, gradients + its_gradient
        return values, gradients


@settings("policy")
class UCBCVS(_BoundPolicy):
    """Play the cheapest control set whose largest bound is within epsilon of the highest (Tay et al. 2023).

    The bound is E[u], the upper confidence bound averaged over the free variables. Among sets of equal
    price, choose the largest E[u]. Epsilon is ``epsilon decay^t`` at play t, counted from
    0, and 0 from play `plays` on.
    """

    costs: ClassVar[tuple[str, ...]] = ("declared",)

    epsilon: NonNegativeFloat = 1.0
    """Initial tolerance, in the user's unit."""
    decay: Annotated[float, Field(gt=0, le=1)] = 0.99
    """Factor of the tolerance from one play to the next."""
    plays: NonNegativeInt = 200
    """Number of plays after which the tolerance is 0."""

    def decide(self, state: State, memory: Memory) -> Decision:
        """Return the settings of the largest E[u] in the cheapest sets that come close to the highest."""
        memory, counts, chosen = self.begun(state, memory)
        proposals, memory = self.bounds(state, range(len(state.domain.control_sets)), memory)
        if not proposals:
            return self.play(state, counts, [], memory)
        epsilon = self.epsilon * self.decay**chosen if chosen < self.plays else 0.0
        prices = {i: self.price(state, counts, i, np.nan_to_num(p.site)) for i, p in proposals.items()}
        values = {i: p.value * abs(state.scale.scale) for i, p in proposals.items()}
        near = within(values, epsilon)
        least = min(prices[i] or 0.0 for i in near)
        good = [proposals[i] for i in near if (prices[i] or 0.0) <= least]
        return self.play(state, counts, ranked(good), memory, epsilon=epsilon, plausible=near)


def within(values: dict[int, float], epsilon: float) -> list[int]:
    """Return the sets whose value is within epsilon of the highest.

    Examples
    --------
    >>> within({0: 1.0, 1: 2.0, 2: 1.75}, 0.5)
    [1, 2]
    """
    highest = max(values.values())
    return [i for i, value in values.items() if value >= highest - epsilon]


def group_at(play: int, plays: Sequence[int]) -> int | None:
    """Return the group whose turn it is at a play, counted from 0; None once all groups have had theirs.

    Parameters
    ----------
    play : int
    plays : sequence of int
        Number of plays of each group, in order.

    Examples
    --------
    >>> [group_at(t, [50, 50]) for t in (0, 49, 50, 99, 100)]
    [0, 0, 1, 1, None]
    """
    for group, count in enumerate(plays):
        if play < count:
            return group
        play -= count
    return None


def groups_by_size(domain: Domain) -> list[list[int]]:
    """Return the control sets grouped by the number of variables that they set, smallest first."""
    sizes = [int(control_set.controls.sum()) for control_set in domain.control_sets]
    return [[i for i, size in enumerate(sizes) if size == common] for common in sorted(set(sizes))]


@settings("policy")
class ETC(_BoundPolicy):
    """Explore then commit: play groups of sets of one size, smallest first, then any set (Tay et al. 2023).

    Within a group, and later over all sets, it plays the largest E[u], the upper confidence bound averaged
    over the free variables.
    """

    plays: PositiveInt = 50
    """Number of plays of each group."""

    def decide(self, state: State, memory: Memory) -> Decision:
        """Return the settings of the largest E[u] in the group whose turn it is."""
        (memory, counts, chosen), groups = self.begun(state, memory), groups_by_size(state.domain)
        group = group_at(chosen + len(state.pending), [self.plays] * len(groups))
        sets = range(len(state.domain.control_sets)) if group is None else groups[group]
        proposals, memory = self.bounds(state, sets, memory)
        return self.play(state, counts, ranked(proposals.values()), memory, group=group)
