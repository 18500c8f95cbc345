"""Rivals that choose a control set and its values: largest bound, posterior draw, groups by size.

==============  ==========================================================================================
``u``           ``mu + kappa s``
``i``, ``x``    a control set, and values for its variables
``c_i``         declared cost of set i
``g``           a function drawn from the posterior
==============  ==========================================================================================

Hayashi, Honda and Kashima 2022 ("partially specified queries", PSQ) choose ``argmax_(i,x) E[u]``, or the same
of a posterior draw. As more control never lowers the best, they end up with the full set whatever it costs.
Tay et al. 2023 ("cost-varying variable subsets", CVS) take the cheapest of the sets whose best comes near the
highest, or, to explore then commit (ETC), play small sets first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Matern32, Matern52, SquaredExponential, Stationary
from fieldbo.belief.posterior import Belief
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, PolicyError
from fieldbo.policies.contract import Decision, Memory, State
from fieldbo.policies.control_sets.base import OverSets
from fieldbo.policies.control_sets.expectation import Expected, Precision, Rises
from fieldbo.policies.control_sets.search import ControlSetSearch, PlayCounts, Proposal, kept, ranked, warm

_DEGREES = {SquaredExponential: np.inf, Matern32: 3.0, Matern52: 5.0}
"""Degrees of freedom of the kernels' spectral densities: normal, or Student's t."""


class _Bounds(OverSets):
    """A rule that goes by the largest E[u] of each control set."""

    def begun(self, state: State, memory: Memory) -> tuple[Memory, PlayCounts, int]:
        """Return the memory from the first decision on, the books, and how many plays were chosen so far."""
        books = PlayCounts.of(state)
        memory = {"begun": books.plain(), "upper": {}} if memory is None else memory
        return memory, books, books.since(memory["begun"]).total

    def bounds(self, state: State, sets: Sequence[int], memory: Memory) -> tuple[dict[int, Proposal], Memory]:
        """Return the best settings of some sets, and the memory of where they were."""
        cell = ControlSetSearch(state, self.samples, self.candidates)
        found = cell.upper(self.kappa, sets, warm(memory["upper"]))
        return found, {**memory, "upper": kept(memory["upper"], found)}


@dataclass(frozen=True)
class UCBPSQ(_Bounds):
    """Play the control set and the values of the largest E[u], whatever they cost (Hayashi et al. 2022)."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the settings of the largest E[u] over all control sets."""
        if stop := self.nothing_left(state, memory):
            return stop
        memory, books, _ = self.begun(state, memory)
        found, memory = self.bounds(state, range(len(state.domain.control_sets)), memory)
        return self.play(state, books, ranked(found.values()), memory)


@dataclass(frozen=True)
class TSPSQ(OverSets):
    """Play the control set and the values where a posterior draw is highest on average (Hayashi et al. 2022).

    The draw is one of the prior, by random Fourier features, moved by the readings (Matheron's rule).

    Parameters
    ----------
    features : int
        Random Fourier features of a draw.
    """

    features: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features < 1:
            raise InputError(f"features = {self.features}", expected="at least 1", where="policy.features")

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the settings where the draw's expectation is highest over all control sets."""
        if stop := self.nothing_left(state, memory):
            return stop
        cell = ControlSetSearch(state, self.samples, self.candidates)
        drawn = Draw.of(state.belief, self.features, state.rng)
        found = cell.highest(drawn.averaged, range(len(cell.expected)))
        return self.play(state, PlayCounts.of(state), ranked(found.values()), memory)


@dataclass(frozen=True, eq=False)
class Draw:
    """A function drawn from a posterior: a prior draw by random Fourier features, moved by the readings.

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
        """Draw one from the posterior of a stationary kernel.

        Examples
        --------
        >>> belief = Belief(Matern52([0.3])).condition_on([[0.2], [0.7]], [1.0, -1.0], 1e-6)
        >>> Draw.of(belief, 512, np.random.default_rng(0))(belief, [[0.2], [0.7]]).round(2)
        array([ 1., -1.])
        """
        kernel = belief.kernel
        if not isinstance(kernel, Stationary) or type(kernel) not in _DEGREES:
            raise PolicyError(f"no random features are known of the kernel {kernel}")
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
        """Return its expectation over free variables."""
        free = ~over.controls
        angles = over.samples[:, free] @ self.frequencies[:, free].T + self.phases
        # E[cos(a + b)] = Re exp(ia) E[exp(ib)]: the free variables' part does not depend on the point.
        mean = np.exp(1j * angles).mean(axis=0)
        return _Average(self, over, self.amplitudes * np.abs(mean), np.angle(mean))


@dataclass(frozen=True, eq=False)
class _Average:
    """The expectation of a draw over free variables, with its gradient."""

    drawn: Draw
    over: Expected
    amplitudes: Array
    phases: Array

    def __call__(self, points: Array) -> Rises:
        x, mask = np.atleast_2d(points), self.over.controls
        omega = self.drawn.frequencies[:, mask]
        angles = x[:, mask] @ omega.T + self.phases
        values, slopes = np.cos(angles) @ self.amplitudes, np.zeros_like(x)
        slopes[:, mask] = -(np.sin(angles) * self.amplitudes) @ omega
        if self.over.belief.size:
            moved, rises = self.over.weighted(x, self.drawn.weights)
            values, slopes = values + moved, slopes + rises
        return values, slopes


@dataclass(frozen=True)
class UCBCVS(_Bounds):
    """Play the cheapest control set whose largest E[u] comes within epsilon of the highest (Tay et al. 2023).

    Of sets of one price the one of the largest E[u]. Epsilon is ``epsilon decay^t`` at play t, counted from
    0, and 0 from play `plays` on.

    Parameters
    ----------
    epsilon : float
        At the beginning, in the user's unit.
    decay : float
        From one play to the next; above 0, at most 1.
    plays : int
        After so many it is 0.
    """

    costs: ClassVar[tuple[str, ...]] = ("declared",)

    epsilon: float = 1.0
    decay: float = 0.99
    plays: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise InputError(f"epsilon = {self.epsilon}", expected="at least 0", where="policy.epsilon")
        if not 0 < self.decay <= 1:
            raise InputError(f"decay = {self.decay}", expected="above 0 and at most 1", where="policy.decay")
        if self.plays < 0:
            raise InputError(f"plays = {self.plays}", expected="at least 0", where="policy.plays")

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the settings of the largest E[u] in the cheapest sets that come near the highest."""
        if stop := self.nothing_left(state, memory):
            return stop
        memory, books, chosen = self.begun(state, memory)
        found, memory = self.bounds(state, range(len(state.domain.control_sets)), memory)
        if not found:
            return self.play(state, books, [], memory)
        epsilon = self.epsilon * self.decay**chosen if chosen < self.plays else 0.0
        prices = {i: self.price(state, books, i, np.nan_to_num(one.site)) for i, one in found.items()}
        values = {i: one.value * abs(state.scale.scale) for i, one in found.items()}
        near = within(values, epsilon)
        least = min(prices[i] or 0.0 for i in near)
        good = [found[i] for i in near if (prices[i] or 0.0) <= least]
        return self.play(state, books, ranked(good), memory, epsilon=epsilon, plausible=near)


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
    """Return which group's turn it is at a play, counted from 0; None once all groups had theirs.

    Parameters
    ----------
    play : int
    plays : sequence of int
        How many each group has, in order.

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
    """Return the control sets by how many variables they set, the smallest first."""
    sizes = [int(one.controls.sum()) for one in domain.control_sets]
    return [[i for i, size in enumerate(sizes) if size == one] for one in sorted(set(sizes))]


@dataclass(frozen=True)
class ETC(_Bounds):
    """Explore then commit: some plays for each group of sets of one size, then any (Tay et al. 2023).

    The smallest sets first. Within a group, and afterwards over all sets, the largest E[u].

    Parameters
    ----------
    plays : int
        For each group.
    """

    plays: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.plays < 1:
            raise InputError(f"plays = {self.plays}", expected="at least 1", where="policy.plays")

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the settings of the largest E[u] in the group whose turn it is."""
        if stop := self.nothing_left(state, memory):
            return stop
        (memory, books, chosen), groups = self.begun(state, memory), groups_by_size(state.domain)
        group = group_at(chosen + len(state.pending), [self.plays] * len(groups))
        sets = range(len(state.domain.control_sets)) if group is None else groups[group]
        found, memory = self.bounds(state, sets, memory)
        return self.play(state, books, ranked(found.values()), memory, group=group)
