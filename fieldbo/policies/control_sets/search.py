"""The search for the best settings of each control set, under the belief of a state.

``E[.]`` is the mean over the free variables, see `expectation`; ``i`` is a control set, of m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.controls import halton
from fieldbo.domain.domain import Domain
from fieldbo.domain.search import around, climb_together
from fieldbo.messages import Query, Rejected
from fieldbo.policies.choice import known_exactly
from fieldbo.policies.contract import State
from fieldbo.policies.control_sets.base import PlainSettings, Proposal, ranked, settings_array
from fieldbo.policies.control_sets.expectation import Expected, Precision, WithGradient

SetFunction = Callable[[int, Array], WithGradient]
"""A function of a control set and points (P, d): values and gradients."""

_CLIMBS = 3
"""Number of candidates to climb from in each control set, besides the previous step's settings."""

_BEST_SITES = 3
"""Number of observed sites, those of the largest mean, to place candidates around."""

_ROUNDS, _LAST_ROUNDS = 15, 8
"""Rounds of the climb by the cheap form, and of the last climb by the exact form."""

_STARTS_APART = 0.2
"""Least distance between starts of climbs in some controlled variable, as a fraction of its extent."""

_ENDS_APART = 0.02
"""Distance below which climbs ended at the same point, as a fraction of the extent."""

_REJECTED_WITHIN = 0.02
"""Distance from rejected settings within which others are avoided, too, as a fraction of the extent."""


@lru_cache(maxsize=16)
def free_samples(domain: Domain, count: int) -> Array:
    """Return fixed quasi-random samples (count, d) of all variables, distributed as where they are left free.

    These are Halton points mapped through each variable's quantiles.
    """
    return at_quantiles(domain, halton(count, domain.dimension))


def at_quantiles(domain: Domain, probabilities: Array) -> Array:
    """Return the quantiles (n, d) of all variables at `probabilities` (n, d), read-only.

    A variable that no set leaves free takes the middle of its axis.
    """
    columns = [
        np.full(len(probabilities), middle) if law is None else law.quantile(probabilities[:, j])
        for j, (law, middle) in enumerate(zip(domain.distributions, domain.middle, strict=True))
    ]
    return frozen_array(np.stack(columns, axis=1))


class ControlSetSearch:
    """Find where expectations are highest in each control set of a domain.

    Parameters
    ----------
    state : State
    samples : int
        Number of samples of the variables left to chance.
    candidates : int
        Number of candidates, drawn again for each decision, from which climbs start.
    """

    def __init__(self, state: State, samples: int, candidates: int) -> None:
        self.domain, belief = state.domain, state.belief
        self.masks = [control_set.controls for control_set in self.domain.control_sets]
        precision = Precision(belief) if belief.size else None
        free = free_samples(self.domain, samples)
        self.expected = [Expected(belief, free, mask, precision) for mask in self.masks]
        best = belief.sites[np.argsort(-belief.mean_at_sites(), kind="stable")[:_BEST_SITES]]
        places = np.unique(best.reshape(-1, self.domain.dimension), axis=0)
        self.candidates = around(self.domain, state.rng, candidates, places)
        self.rejected = _rejected_settings(state)
        self.belief = belief
        self.some_known = bool(known_exactly(belief, belief.sites, belief.noise_variances).any())

    def best(
        self,
        function: SetFunction,
        sets: Iterable[int],
        warm: Mapping[int, PlainSettings] | None = None,
        exact: SetFunction | None = None,
        to_play: bool = False,
    ) -> dict[int, Proposal]:
        """Return the best settings found in each control set, by number.

        Parameters
        ----------
        function : Callable
            Function to maximise, or a cheap form close to it.
        sets : iterable of int
        warm : mapping of int to settings, optional
            Settings to start one more climb of each set from.
        exact : Callable, optional
            Exact form of `function`: it selects among the ends of the climbs, and ends the best climb.
        to_play : bool
            Whether the settings are for another play: leaves out those whose value is known exactly.
        """
        function = self._avoiding(function, to_play)
        numbers, starts = list[int](), list[Array]()
        for i in sets:
            points = self._starts(function, i, (warm or {}).get(i))
            numbers += [i] * len(points)
            starts.append(points)
        if not numbers:
            return {}
        which = np.array(numbers)
        points, values = self._climb(function, which, np.concatenate(starts), _ROUNDS)
        if exact is not None:
            exact = self._avoiding(exact, to_play)
            distinct = self._distinct(which, points, values)
            which, points, values = which[distinct], points[distinct], values[distinct]
            for i in dict.fromkeys(numbers):
                values[which == i], _ = exact(i, points[which == i])
        first = [max(np.flatnonzero(which == i), key=values.__getitem__) for i in dict.fromkeys(numbers)]
        which, points, values = which[first], points[first], values[first]
        if exact is not None:
            points, values = self._climb(exact, which, points, _LAST_ROUNDS)
        return {
            int(i): Proposal(int(i), np.where(self.masks[i], point, np.nan), float(value))
            for i, point, value in zip(which, points, values, strict=True)
            if np.isfinite(value)
        }

    def highest(
        self,
        form: Callable[[Expected], Callable[[Array], WithGradient]],
        sets: Iterable[int],
        warm: Mapping[int, PlainSettings] | None = None,
        to_play: bool = False,
    ) -> dict[int, Proposal]:
        """Return where a form of expectations is highest in each of some control sets.

        Parameters
        ----------
        form : Callable
            Turns the expectations of a control set into a function of points (P, d): values and gradients.
        sets : iterable of int
        warm : mapping of int to settings, optional
        to_play : bool
            As for `best`.
        """
        numbers = list(sets)
        quick = {i: form(self.expected[i].quick) for i in numbers}
        if all(self.expected[i].quick is self.expected[i] for i in numbers):
            return self.best(lambda i, x: quick[i](x), numbers, warm, to_play=to_play)
        exact = {i: form(self.expected[i]) for i in numbers}
        return self.best(lambda i, x: quick[i](x), numbers, warm, lambda i, x: exact[i](x), to_play)

    def upper(
        self, kappa: float, sets: Iterable[int], warm: Mapping[int, PlainSettings] | None = None
    ) -> dict[int, Proposal]:
        """Return where ``E[mu + kappa s]`` is highest in each of some control sets, to play there next."""
        return self.best(
            lambda i, x: self.expected[i].cheap_bound_with_gradient(x, kappa),
            sets,
            warm,
            lambda i, x: self.expected[i].bound_with_gradient(x, kappa),
            to_play=True,
        )

    def lower(
        self, kappa: float, warm: Mapping[int, PlainSettings] | None = None
    ) -> tuple[Proposal, dict[int, Proposal]]:
        """Return where ``E[mu - kappa s]`` is highest over all control sets, and the best of some sets.

        Only sets whose highest mean exceeds the bound so far are searched; the exact form ends the best
        climb.
        """

        def cheap(i: int, x: Array) -> WithGradient:
            return self.expected[i].cheap_bound_with_gradient(x, -kappa)

        means = self.best(
            lambda i, x: self.expected[i].quick.bound_with_gradient(x, 0.0), range(len(self.masks)), warm
        )
        first, *others = ranked(means.values())
        seen = self.best(cheap, [first.number], warm)
        least = float(self.expected[first.number].bound(seen[first.number].site, -kappa)[0])
        seen |= self.best(cheap, [mean.number for mean in others if mean.value > least], warm)
        exact = [(float(self.expected[i].bound(best.site, -kappa)[0]), -i) for i, best in seen.items()]
        top = seen[-max(exact)[1]]
        point, value = self._climb(
            self._avoiding(lambda i, x: self.expected[i].bound_with_gradient(x, -kappa)),
            np.array([top.number]),
            np.nan_to_num(top.site)[None],
            _LAST_ROUNDS,
        )
        site = np.where(self.masks[top.number], point[0], np.nan)
        return Proposal(top.number, site, float(value[0])), seen

    # -- climbs ------------------------------------------------------------------------------------------

    def _starts(self, function: SetFunction, i: int, warm: PlainSettings | None) -> Array:
        """Return the starts of climbs in set i: the best candidates that are apart, and `warm`."""
        values, _ = function(i, self.candidates)
        scaled = self.candidates[:, self.masks[i]] / self.domain.extent[self.masks[i]]
        left, chosen = np.where(np.isfinite(values), values, -1e300), list[int]()
        for _ in range(min(_CLIMBS, len(values))):
            chosen.append(int(np.argmax(left)))
            near = np.abs(scaled - scaled[chosen[-1]]).max(axis=1) < _STARTS_APART
            left = np.where(near, -np.inf, left)
        starts = self.candidates[list(dict.fromkeys(chosen))]
        if warm is not None:
            starts = np.concatenate([starts, np.where(self.masks[i], settings_array(warm), starts[0])[None]])
        return np.where(self.masks[i], starts, self.domain.low)

    def _climb(
        self, function: SetFunction, which: NDArray[np.int64], starts: Array, rounds: int
    ) -> tuple[Array, Array]:
        """Climb from all starts together, each in its own control set."""
        masks = np.array(self.masks)[which]
        low, high = (np.where(masks, end, starts) for end in (self.domain.low, self.domain.high))

        def together(points: Array, rows: NDArray[np.int64]) -> WithGradient:
            values, gradients = np.empty(len(points)), np.empty_like(points)
            for i in np.unique(which[rows]):
                in_set = which[rows] == i
                values[in_set], gradients[in_set] = function(int(i), points[in_set])
            return values, gradients

        return climb_together(together, starts, low, high, rounds)

    def _distinct(self, which: NDArray[np.int64], points: Array, values: Array) -> list[int]:
        """Return the climbs that ended away from every better one of the same set."""
        scaled = points / self.domain.extent
        distinct = list[int]()
        for k in np.argsort(-values, kind="stable").tolist():
            same = [j for j in distinct if which[j] == which[k]]
            if not same or np.abs(scaled[same] - scaled[k]).max(axis=1).min() > _ENDS_APART:
                distinct.append(k)
        return distinct

    def _avoiding(self, function: SetFunction, to_play: bool = False) -> SetFunction:
        """Return the function, with minus infinity close to rejected settings and, to play, at known ones."""
        unknown = to_play and self.some_known  # readings with noise never make a value known
        if not (self.rejected or unknown):
            return function

        def avoiding(i: int, x: Array) -> WithGradient:
            values, gradients = function(i, x)
            mask = self.masks[i]
            for site in self.rejected.get(i, ()):
                off = np.abs(x[:, mask] - site[mask]) / self.domain.extent[mask]
                values = np.where(off.max(axis=1) < _REJECTED_WITHIN, -np.inf, values)
            if unknown and mask.all():
                known = known_exactly(self.belief, x, self.belief.variance(x))
                values = np.where(known, -np.inf, values)
            return values, gradients

        return avoiding


def _rejected_settings(state: State) -> dict[int, list[Array]]:
    rejected: dict[int, list[Array]] = {}
    for event in state.history:
        order = state.orders.get(event.order) if isinstance(event, Rejected) else None
        if isinstance(order, Query) and state.domain.controls is not None:
            i = state.domain.controls.index_of(order.controls)
            if i is not None:
                rejected.setdefault(i, []).append(order.site)
    return rejected
