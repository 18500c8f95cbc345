"""Plays of control sets: how often each was played, what that cost, and settings as plain data.

=============  ===========================================================================================
``i``          a control set, of m
``T_i``        number of its plays; rejected and lost queries do not count
``c_i``        mean cost of those plays
=============  ===========================================================================================

Settings are points (d,) whose free coordinates are NaN; in memory and in reasons they are None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.messages import Observation, Query
from fieldbo.policies.contract import State

PlainSettings = Sequence[float | None]


@dataclass(frozen=True, eq=False)
class PlayCounts:
    """Number and total cost of the plays of each control set.

    Parameters
    ----------
    plays : (m,) int array
        Number of plays, initial readings included.
    costs : (m,) array
        Total cost.
    """

    plays: NDArray[np.int64]
    costs: Array

    @classmethod
    def of(cls, state: State) -> PlayCounts:
        """Count the plays in a state's history."""
        sets = state.domain.control_sets
        numbers = {control_set.controls.tobytes(): i for i, control_set in enumerate(sets)}
        all_variables = np.ones(state.domain.dimension, dtype=bool).tobytes()
        plays, costs = np.zeros(len(sets), dtype=np.int64), np.zeros(len(sets))
        for event in state.history:
            order = state.orders.get(event.order) if isinstance(event, Observation) else None
            if isinstance(order, Query) and isinstance(event, Observation):
                i = numbers.get(all_variables if order.controls is None else order.controls.tobytes())
                if i is not None:
                    plays[i] += event.last
                    costs[i] += event.cost
        return cls(plays, costs)

    def mean_costs(self) -> Array:
        """Return c_i (m,); NaN for a set that was never played."""
        return np.where(self.plays > 0, self.costs / np.maximum(self.plays, 1), np.nan)

    def since(self, before: Mapping[str, Sequence[float]]) -> PlayCounts:
        """Return the plays since the counts that `plain` wrote."""
        return PlayCounts(self.plays - np.array(before["plays"]), self.costs - np.array(before["costs"]))

    def plain(self) -> dict[str, list[float]]:
        """Return the counts as plain data, for a policy's memory."""
        return {"plays": self.plays.tolist(), "costs": self.costs.tolist()}

    @property
    def total(self) -> int:
        """Number of plays of all sets."""
        return int(self.plays.sum())

    @property
    def spent(self) -> float:
        """Cost of the plays of all sets."""
        return float(self.costs.sum())


def declared_cost(state: State, i: int, site: Array | None = None) -> float | None:
    """Return the declared cost of playing set i at `site` (d,), by default where the agent is.

    None if costs are unknown.
    """
    if state.cost is None:
        return None
    controls = state.domain.control_sets[i].controls
    sites = (state.position if site is None else site)[None]
    return float(state.cost.to(state.position, sites, controls=controls, time_s=state.time_s)[0])


@dataclass(frozen=True, eq=False)
class Proposal:
    """The best settings of a control set.

    Parameters
    ----------
    number : int
        Number of the set.
    site : (d,) array
        NaN where a variable is left free.
    value : float
        What the settings promise, in model units.
    """

    number: int
    site: Array
    value: float


def ranked(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Return proposals, the most promising first; ties go to the lowest set."""
    return sorted(proposals, key=lambda proposal: (-proposal.value, proposal.number))


def settings_plain(site: Array) -> list[float | None]:
    """Return settings as plain data: None where a variable is left free.

    Examples
    --------
    >>> settings_plain(np.array([0.5, np.nan]))
    [0.5, None]
    """
    return [None if np.isnan(x) else float(x) for x in site]


def settings_array(plain: PlainSettings) -> Array:
    """Return the settings (d,) that `settings_plain` wrote.

    Examples
    --------
    >>> settings_array([0.5, None])
    array([0.5, nan])
    """
    return np.array([np.nan if x is None else x for x in plain], dtype=float)


def by_set(remembered: Mapping[str, PlainSettings]) -> dict[int, PlainSettings]:
    """Return remembered settings by the number of their set; JSON turns numbers into text."""
    return {int(i): site for i, site in remembered.items()}


def remember(remembered: Mapping[str, Any], proposals: Mapping[int, Proposal]) -> dict[str, Any]:
    """Return remembered settings, replaced by those of the proposals, as plain data."""
    return {
        **remembered,
        **{str(i): settings_plain(proposal.site) for i, proposal in proposals.items()},
    }
