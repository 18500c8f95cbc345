"""What rules share that set some variables and leave others to chance: books, and the best settings.

=============  ===========================================================================================
``i``          a control set, of m
``T_i``        how often it was played; rejected and lost queries are no plays
``c_i``        its mean cost over those plays
``E[.]``       the mean over the free variables, see `expectation`
=============  ===========================================================================================

Proposal are points (d,) whose free coordinates are NaN; in memory and in reasons they are None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.climb import climbed_together
from fieldbo.domain.distributions import halton
from fieldbo.domain.domain import Domain
from fieldbo.domain.search import around
from fieldbo.messages import Observation, Query, Rejected
from fieldbo.policies.contract import State
from fieldbo.policies.control_sets.expectation import Expected, Precision, Rises

Rising = Callable[[int, Array], Rises]
"""Of a control set and points (P, d): values and gradients."""

_CLIMBS = 3
"""So many candidates of a control set are climbed from, besides the settings of the step before."""

_BEST_PLACES = 3
"""So many of the points that were read have candidates about them."""

_ROUNDS, _LAST_ROUNDS = 15, 8
"""Of the climb by the cheap form, and of the last one by the exact form."""

_STARTS_APART = 0.2
"""Share of the extent that lies between climbs' beginnings, in some controlled variable."""

_ENDS_APART = 0.02
"""Share of the extent within which climbs ended at the same place."""

_APART = 0.02
"""Share of the extent within which settings are as bad as those that were turned down."""


@lru_cache(maxsize=16)
def free_samples(domain: Domain, count: int) -> Array:
    """Return fixed quasi-random samples (count, d) of all variables, as they are where they are left free.

    Halton points through each variable's quantiles; the middle of an axis that is never free.
    """
    points = halton(count, domain.dimension)
    columns = [
        np.full(count, middle) if law is None else law.quantile(points[:, j])
        for j, (law, middle) in enumerate(zip(domain.distributions, domain.middle, strict=True))
    ]
    samples = np.stack(columns, axis=1)
    samples.setflags(write=False)
    return samples


@dataclass(frozen=True, eq=False)
class PlayCounts:
    """What playing each control set has come to.

    Parameters
    ----------
    plays : (m,) int array
        How often each was played, initial readings included.
    costs : (m,) array
        What that cost in all.
    """

    plays: NDArray[np.int64]
    costs: Array

    @classmethod
    def of(cls, state: State) -> PlayCounts:
        """Return them as the events of a state tell."""
        sets = state.domain.control_sets
        number = {one.controls.tobytes(): i for i, one in enumerate(sets)}
        everything = np.ones(state.domain.dimension, dtype=bool).tobytes()
        plays, costs = np.zeros(len(sets), dtype=np.int64), np.zeros(len(sets))
        for event in state.history:
            order = state.orders.get(event.order) if isinstance(event, Observation) else None
            if isinstance(order, Query) and isinstance(event, Observation):
                i = number.get(everything if order.controls is None else order.controls.tobytes())
                if i is not None:
                    plays[i] += event.last
                    costs[i] += event.cost
        return cls(plays, costs)

    def mean_costs(self) -> Array:
        """Return c_i (m,); NaN for a set that was never played."""
        return np.where(self.plays > 0, self.costs / np.maximum(self.plays, 1), np.nan)

    def since(self, before: Mapping[str, Sequence[float]]) -> PlayCounts:
        """Return what was added to books that are remembered as `plain` told them."""
        return PlayCounts(self.plays - np.array(before["plays"]), self.costs - np.array(before["costs"]))

    def plain(self) -> dict[str, list[float]]:
        """Return them as memory holds them."""
        return {"plays": self.plays.tolist(), "costs": self.costs.tolist()}

    @property
    def total(self) -> int:
        """How many plays there were in all."""
        return int(self.plays.sum())

    @property
    def spent(self) -> float:
        """What they cost in all."""
        return float(self.costs.sum())


@dataclass(frozen=True, eq=False)
class Proposal:
    """The best settings of a control set.

    Parameters
    ----------
    number : int
        Of the set.
    site : (d,) array
        NaN where a variable is left free.
    value : float
        What they promise, in model units.
    """

    number: int
    site: Array
    value: float


class ControlSetSearch:
    """The control sets of a domain under the belief of a state, and where their expectations are highest.

    Parameters
    ----------
    state : State
    samples : int
        How many stand for what is left to chance.
    candidates : int
        Among how many points, drawn anew for each decision, climbs begin.
    """

    def __init__(self, state: State, samples: int, candidates: int) -> None:
        self.domain, belief = state.domain, state.belief
        self.masks = [one.controls for one in self.domain.control_sets]
        precision = Precision(belief) if belief.size else None
        drawn = free_samples(self.domain, samples)
        self.expected = [Expected(belief, drawn, mask, precision) for mask in self.masks]
        read = belief.sites[np.argsort(-belief.mean_at_sites(), kind="stable")[:_BEST_PLACES]]
        places = np.unique(read.reshape(-1, self.domain.dimension), axis=0)
        self.candidates = around(self.domain, state.rng, candidates, places)
        self.refused = _refused(state)

    def best(
        self,
        rising: Rising,
        sets: Iterable[int],
        warm: Mapping[int, Sequence[float | None]] | None = None,
        last: Rising | None = None,
    ) -> dict[int, Proposal]:
        """Return the best settings of control sets that a search sees, by number.

        Parameters
        ----------
        rising : Callable
            What is to be maximised, or a cheap form that comes near it.
        sets : iterable of int
        warm : mapping of int to settings, optional
            Where a climb of each set begins besides.
        last : Callable, optional
            The exact form: by it the best of where climbs ended is found, and climbed from once more.
        """
        rising = self._allowed(rising)
        numbers, starts = list[int](), list[Array]()
        for i in sets:
            begun = self._starts(rising, i, (warm or {}).get(i))
            numbers += [i] * len(begun)
            starts.append(begun)
        if not numbers:
            return {}
        which = np.array(numbers)
        points, values = self._climbed(rising, which, np.concatenate(starts), _ROUNDS)
        if last is not None:
            last = self._allowed(last)
            kept = self._apart(which, points, values)
            which, points, values = which[kept], points[kept], values[kept]
            for i in dict.fromkeys(numbers):
                values[which == i], _ = last(i, points[which == i])
        first = [max(np.flatnonzero(which == i), key=values.__getitem__) for i in dict.fromkeys(numbers)]
        which, points, values = which[first], points[first], values[first]
        if last is not None:
            points, values = self._climbed(last, which, points, _LAST_ROUNDS)
        return {
            int(i): Proposal(int(i), np.where(self.masks[i], point, np.nan), float(value))
            for i, point, value in zip(which, points, values, strict=True)
            if np.isfinite(value)
        }

    def highest(
        self,
        form: Callable[[Expected], Callable[[Array], Rises]],
        sets: Iterable[int],
        warm: Mapping[int, Sequence[float | None]] | None = None,
    ) -> dict[int, Proposal]:
        """Return where a form of expectations is highest in each of some control sets.

        Parameters
        ----------
        form : Callable
            From the expectations of a control set to a function of points (P, d): values and gradients.
        sets : iterable of int
        warm : mapping of int to settings, optional
        """
        numbers = list(sets)
        quick = {i: form(self.expected[i].quick) for i in numbers}
        if all(self.expected[i].quick is self.expected[i] for i in numbers):
            return self.best(lambda i, x: quick[i](x), numbers, warm)
        exact = {i: form(self.expected[i]) for i in numbers}
        return self.best(lambda i, x: quick[i](x), numbers, warm, lambda i, x: exact[i](x))

    def upper(
        self, kappa: float, sets: Iterable[int], warm: Mapping[int, Sequence[float | None]] | None = None
    ) -> dict[int, Proposal]:
        """Return where ``E[mu + kappa s]`` is highest in each of some control sets."""
        return self.best(
            lambda i, x: self.expected[i].near_bound_rises(x, kappa),
            sets,
            warm,
            lambda i, x: self.expected[i].bound_rises(x, kappa),
        )

    def lower(
        self, kappa: float, warm: Mapping[int, Sequence[float | None]] | None = None
    ) -> tuple[Proposal, dict[int, Proposal]]:
        """Return where ``E[mu - kappa s]`` is highest over all control sets, and what was seen in some.

        Only sets whose highest mean leaves room for it are searched, and the exact form ends the best climb.
        """

        def below(i: int, x: Array) -> Rises:
            return self.expected[i].near_bound_rises(x, -kappa)

        means = self.best(
            lambda i, x: self.expected[i].quick.bound_rises(x, 0.0), range(len(self.masks)), warm
        )
        first, *others = ranked(means.values())
        seen = self.best(below, [first.number], warm)
        least = float(self.expected[first.number].bound(seen[first.number].site, -kappa)[0])
        seen |= self.best(below, [one.number for one in others if one.value > least], warm)
        exact = [(float(self.expected[i].bound(one.site, -kappa)[0]), -i) for i, one in seen.items()]
        top = seen[-max(exact)[1]]
        point, value = self._climbed(
            self._allowed(lambda i, x: self.expected[i].bound_rises(x, -kappa)),
            np.array([top.number]),
            np.nan_to_num(top.site)[None],
            _LAST_ROUNDS,
        )
        site = np.where(self.masks[top.number], point[0], np.nan)
        return Proposal(top.number, site, float(value[0])), seen

    # -- how ---------------------------------------------------------------------------------------------

    def _starts(self, rising: Rising, i: int, warm: Sequence[float | None] | None) -> Array:
        values, _ = rising(i, self.candidates)
        shares = self.candidates[:, self.masks[i]] / self.domain.extent[self.masks[i]]
        left, chosen = np.where(np.isfinite(values), values, -1e300), list[int]()
        for _ in range(min(_CLIMBS, len(values))):
            chosen.append(int(np.argmax(left)))
            near = np.abs(shares - shares[chosen[-1]]).max(axis=1) < _STARTS_APART
            left = np.where(near, -np.inf, left)
        starts = self.candidates[list(dict.fromkeys(chosen))]
        if warm is not None:
            site = np.array([np.nan if x is None else x for x in warm], dtype=float)
            starts = np.concatenate([starts, np.where(self.masks[i], site, starts[0])[None]])
        return np.where(self.masks[i], starts, self.domain.low)

    def _climbed(
        self, rising: Rising, which: NDArray[np.int64], starts: Array, rounds: int
    ) -> tuple[Array, Array]:
        """Climb from all starts together, each in its own control set."""
        masks = np.array(self.masks)[which]
        low, high = (np.where(masks, end, starts) for end in (self.domain.low, self.domain.high))

        def together(points: Array, rows: NDArray[np.int64]) -> Rises:
            values, slopes = np.empty(len(points)), np.empty_like(points)
            for i in np.unique(which[rows]):
                here = which[rows] == i
                values[here], slopes[here] = rising(int(i), points[here])
            return values, slopes

        return climbed_together(together, starts, low, high, rounds)

    def _apart(self, which: NDArray[np.int64], points: Array, values: Array) -> list[int]:
        """Return climbs that ended apart from every better one of the same set."""
        shares = points / self.domain.extent
        found = list[int]()
        for k in np.argsort(-values, kind="stable").tolist():
            same = [j for j in found if which[j] == which[k]]
            if not same or np.abs(shares[same] - shares[k]).max(axis=1).min() > _ENDS_APART:
                found.append(k)
        return found

    def _allowed(self, rising: Rising) -> Rising:
        """Return the same function, minus infinity at settings that were turned down."""
        if not self.refused:
            return rising

        def seen(i: int, x: Array) -> Rises:
            values, slopes = rising(i, x)
            mask = self.masks[i]
            for site in self.refused.get(i, ()):
                off = np.abs(x[:, mask] - site[mask]) / self.domain.extent[mask]
                values = np.where(off.max(axis=1) < _APART, -np.inf, values)
            return values, slopes

        return seen


def _refused(state: State) -> dict[int, list[Array]]:
    """Return the settings that were turned down, by control set."""
    found: dict[int, list[Array]] = {}
    for event in state.history:
        order = state.orders.get(event.order) if isinstance(event, Rejected) else None
        if isinstance(order, Query) and state.domain.controls is not None:
            i = state.domain.controls.index_of(order.controls)
            if i is not None:
                found.setdefault(i, []).append(order.site)
    return found


def settings_plain(site: Array) -> list[float | None]:
    """Return settings as memory and reasons hold them: None where a variable is left free.

    Examples
    --------
    >>> settings_plain(np.array([0.5, np.nan]))
    [0.5, None]
    """
    return [None if np.isnan(x) else float(x) for x in site]


def worst_read(state: State) -> float:
    """Return the worst value that was read so far, in the user's unit; 0 before any."""
    read = [e.values[np.isfinite(e.values)] for e in state.history if isinstance(e, Observation)]
    values = np.concatenate([np.empty(0), *read])
    sign = 1.0 if state.scale.scale > 0 else -1.0
    return float(sign * np.min(sign * values)) if len(values) else 0.0


def gain(state: State, value: float, worst: float) -> float:
    """Return by how much a value in model units is better than the worst, in the user's unit."""
    sign = 1.0 if state.scale.scale > 0 else -1.0
    return float(sign * (state.scale.to_user([value])[0] - worst))


def warm(remembered: Mapping[str, Sequence[float | None]]) -> dict[int, Sequence[float | None]]:
    """Return remembered settings by the number of their set."""
    return {int(i): site for i, site in remembered.items()}


def kept(remembered: Mapping[str, Any], found: Mapping[int, Proposal]) -> dict[str, Any]:
    """Return remembered settings with those just found, as plain data."""
    return {**remembered, **{str(i): settings_plain(one.site) for i, one in found.items()}}


def ranked(found: Iterable[Proposal]) -> list[Proposal]:
    """Return settings, the most promising first; ties to the lowest set."""
    return sorted(found, key=lambda one: (-one.value, one.number))
