"""Rules that ask no model: random sites, and the lawnmower's sweep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.policies.choice import PerCost
from fieldbo.policies.contract import Decision, Memory, Policy, State


@dataclass(frozen=True)
class Random(PerCost):
    """Sample a site drawn at random from those that can be paid for; per cost, the cheap ones more often."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return a random affordable site."""
        return self.best(state, state.rng.random(state.domain.size), memory)


def sweep(domain: Domain, lines: int, along: int = 0) -> Array:
    """Return the sites of a boustrophedon sweep, in order, as (k, d).

    Columns of sites at even spacing along one axis, each run through in the direction opposite to the one
    before.

    Parameters
    ----------
    domain : Domain
    lines : int
        Columns; no more than there are distinct positions.
    along : int
        The axis along which the columns are spaced.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> lawn = Domain.grid([Axis("x", "m", 0, 2), Axis("y", "m", 0, 1)], (3, 2))
    >>> sweep(lawn, 2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [2.0, 1.0], [2.0, 0.0]]
    """
    places = np.unique(domain.sites[:, along])
    chosen = places[np.unique(np.linspace(0, len(places) - 1, min(lines, len(places))).round().astype(int))]
    others = [j for j in range(domain.dimension) if j != along]
    rows = []
    for number, place in enumerate(chosen):
        column = domain.sites[domain.sites[:, along] == place]
        column = column[np.lexsort(column[:, others[::-1]].T)] if others else column
        rows.append(column[:: 1 if number % 2 == 0 else -1])
    return np.concatenate(rows)


@dataclass(frozen=True)
class Lawnmower(Policy):
    """Sweep up and down in parallel lines, as surveys are flown and sailed; stop when it is done.

    Parameters
    ----------
    lines : int
        How many lines.
    samples : int
        At most so many samples on a line, evenly spread.
    along : int
        The axis along which the lines are spaced.
    level : int
        The sensor's setting to read with.
    """

    lines: int = 10
    samples: int = 10
    along: int = 0
    level: int = 0

    def __post_init__(self) -> None:
        for name in ("lines", "samples"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"{name} = {getattr(self, name)}", expected="at least 1", where=f"policy.{name}"
                )

    def _route(self, domain: Domain) -> Array:
        if not 0 <= self.along < domain.dimension:
            raise InputError(
                f"along = {self.along}",
                expected=f"the number of an axis, 0 to {domain.dimension - 1}",
                where="policy.along",
            )
        whole = sweep(domain, self.lines, self.along)
        cuts = np.flatnonzero(np.diff(whole[:, self.along])) + 1
        thin = [
            line[np.unique(np.linspace(0, len(line) - 1, min(self.samples, len(line))).round().astype(int))]
            for line in np.split(whole, cuts)
        ]
        return np.concatenate(thin)

    def check(self, cost: object, domain: Domain) -> None:
        """Raise an `InputError` if the axis does not exist, or the domain has no lines of sites."""
        if domain.continuous:
            raise InputError(
                "a lawnmower in a continuous domain",
                expected="a grid, whose lines of sites it follows",
                where="policy.kind",
            )
        self._route(domain)

    def start(self, state: State) -> Memory:
        """Begin with the sweep's first site."""
        return 0

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the next site of the sweep that was not rejected; Stop when it can't be paid for."""
        route = self._route(state.domain)
        rejected = (
            state.domain.sites[state.rejected] if len(state.rejected) else np.empty((0, route.shape[1]))
        )
        at = memory
        while at < len(route) and (rejected == route[at]).all(axis=1).any():
            at += 1
        if at >= len(route):
            return Decision(Stop(EndReason.STOPPED_BY_POLICY), memory)
        why = {"next": at, "of": len(route)}
        if not state.affordable(route[at : at + 1], level=self.level)[0]:
            return Decision(Stop(EndReason.BATTERY_SPENT), memory, why)
        return Decision(Query(route[at], level=self.level), at + 1, why)
