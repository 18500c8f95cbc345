"""The contract of a policy, and what it may see.

A policy is a frozen value: its settings. What it must remember between calls is a value too, its
*memory*: small, plain data (numbers, strings, lists, dicts) that is recorded with each order. All three
calls are pure, so that a run can be replayed from its record:

``start(state) -> memory``
    Before anything was read.
``suggest(state, memory) -> Decision``
    The next query, or a Stop.
``observe(state, memory, event) -> memory``
    After an event; the state already holds it.

Everything in a state is in *model units* where it has to do with values (mean, variance, threshold,
noise), and larger is always better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldbo.costs.base import CostModel
from fieldbo.domain import Array, Domain, Mask
from fieldbo.errors import InputError, PolicyError
from fieldbo.exchange import EndReason, Event, Order, Query, Stop
from fieldbo.gp import Belief, ValueScale
from fieldbo.ledger import Limit
from fieldbo.question import LevelSet, Optimum, Question, ShareOfMaximum
from fieldbo.sensors import Sensor
from fieldbo.surface import Surface

Memory = Any
"""Plain data that a policy remembers."""

TIE = 1e-9
"""Scores that differ by less than this share of the best are equal: rounding does not choose a site."""

LEADING = 3
"""So many of the best are told with a decision."""

LEFT = {"battery": "left", "time": "left_s"}
"""How each limit is told there."""


@dataclass(frozen=True, eq=False)
class State:
    """What a policy sees: a read-only view, valid during one call.

    Attributes
    ----------
    domain : Domain
    question : Question
        In the user's units.
    threshold : float
        The question's, in model units; where it is a share of the maximum, of that of the posterior mean.
        NaN for an optimum.
    surface : Surface
        The belief over the domain's sites; pending queries are counted in its variances.
    history : tuple of Event
        All that came back so far, in order.
    steps : int
        How many orders have been settled by an observation.
    pending : tuple of Query
    position : (d,) array
        Where the vehicle will be when its queue is done.
    home : (d,) array or None
    remaining : float
        What is left in the battery, in the cost unit, less what pending orders will take.
    spendable : float
        What of it is left after reserve and margin.
    time_s : float
        Seconds since the start.
    cost : CostModel or None
        The declared one; None where costs are unknown.
    sensor : Sensor
    noise : Callable
        ``noise(level=0, surface=None) -> (N,)``, the noise variance of a reading at each site, or at each
        candidate of another surface, in model units.
    threshold_if : Callable
        ``threshold_if(maximum) -> float``, what the threshold would be if the field's maximum were that;
        both in model units.
    scale : ValueScale
        The way from the user's values to model units.
    fixed_model : bool
        Whether hyperparameters stay as they are.
    rebuilt : bool
        Whether the belief was built anew at this event, by a fit or because an older reading is judged
        otherwise: what was concluded from the one before no longer holds.
    provisional : bool
        Whether they are still to be fitted for the first time: until then the model's scale is a guess,
        and nothing can be concluded from how sure it is.
    draw : Callable
        ``draw() -> numpy.random.Generator``, the policy's stream for this ask from its beginning; see `rng`.
    return_cost : Callable
        ``return_cost(sites) -> (N,)``, the cost of the way home (zeros without a home).
    affordable : Callable
        ``affordable(sites, controls=None, level=0, position=None, spent=0) -> (N,) bool``, the agent's
        guard: whether a query can be paid for, way home, reserve and margin included. Where costs are unknown
        it says whether anything is left: a rule holds its own estimate against `spendable`.
    limits : tuple of Limit
        What that guard goes by, for rules that look further ahead; empty where costs are unknown.
    orders : mapping of str to Order
        All that left so far, by id: what an event of the history answers.
    """

    domain: Domain
    question: Question
    threshold: float
    surface: Surface
    history: tuple[Event, ...]
    steps: int
    pending: tuple[Query, ...]
    position: Array
    home: Array | None
    remaining: float
    spendable: float
    time_s: float
    cost: CostModel | None
    sensor: Sensor
    noise: Callable[..., Array]
    threshold_if: Callable[[float], float]
    scale: ValueScale
    fixed_model: bool
    rebuilt: bool
    provisional: bool
    draw: Callable[[], np.random.Generator]
    return_cost: Callable[[Array], Array]
    affordable: Callable[..., Mask]
    limits: tuple[Limit, ...]
    orders: Mapping[str, Order] = field(default_factory=dict)
    rejected: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @cached_property
    def rng(self) -> np.random.Generator:
        """The policy's random stream for this ask."""
        return self.draw()

    @property
    def belief(self) -> Belief:
        """The posterior at any point."""
        return self.surface.belief

    def costs(self, level: int = 0, sites: Array | None = None) -> Array:
        """Return the full declared cost (N,) of going to each site and sampling there.

        By default of the domain's sites.

        Raises
        ------
        PolicyError
            The costs are not declared.
        """
        if self.cost is None:
            raise PolicyError("this policy needs declared costs, and this mission has none")
        sites = self.domain.sites if sites is None else sites
        return self.cost.to(self.position, sites, level=level, time_s=self.time_s)

    @property
    def levels(self) -> range:
        """The sensor's settings."""
        return range(self.sensor.settings)

    def at_levels(self, quantity: Callable[[int], NDArray[Any]]) -> NDArray[Any]:
        """Return ``quantity(level)`` (N,) of every setting side by side, (N, K)."""
        return np.stack([quantity(level) for level in self.levels], axis=1)

    def choosable(self, level: int = 0) -> Mask:
        """Return (N,) bool: the sites that can be read at that level, and were not rejected."""
        able = self.affordable(self.domain.sites, level=level)
        return able & ~self.rejected if len(self.rejected) else able


@dataclass(frozen=True, eq=False)
class Decision:
    """What a policy decided.

    Attributes
    ----------
    choice : Query or Stop
    memory : plain data
    why : mapping
        Scores, sets and bounds that explain the choice; small, plain data.
    """

    choice: Query | Stop
    memory: Memory = None
    why: Mapping[str, Any] = field(default_factory=dict)


class Policy(ABC):
    """Picks the next query. A new policy is a frozen dataclass in a file of its own."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    answers: ClassVar[tuple[type, ...]] = (LevelSet, ShareOfMaximum, Optimum)
    """The questions that it works for."""

    costs: ClassVar[tuple[str, ...]] = ("declared", "unknown")
    """What it may be told of costs: a rule that is to find them out must not know them."""

    leaves_free: ClassVar[bool] = False
    """Whether it may leave variables free, where the domain has control sets."""

    def start(self, state: State) -> Memory:
        """Return the memory before anything was read."""
        return None

    @abstractmethod
    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the next query, or a Stop; costs were not looked at by anyone else yet."""

    def suggest_batch(self, state: State, memory: Memory, k: int) -> list[Decision] | None:
        """Return up to `k` decisions that are carried out before anything comes back.

        By default None: the policy is asked one by one, the queries before counted as read.
        """
        return None

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Return the memory after `event`, which the state already holds."""
        return memory

    def warnings(self, state: State) -> list[str]:
        """Return what a user should know before the mission starts."""
        return []

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if this policy can't work with these costs."""


@dataclass(frozen=True)
class PerCost(Policy):
    """A rule whose score can be divided by the cost of the move.

    Parameters
    ----------
    per_cost : bool
        Whether the score is divided by the cost of the move.
    level : int
        The sensor's setting to read with.
    """

    per_cost: bool = False
    level: int = 0

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if a cost is to be divided by, and is missing or can be 0."""
        if self.per_cost:
            needs_positive_costs(f"{type(self).__name__} with per_cost", cost, domain)

    def best(self, state: State, scores: Array, memory: Memory, **why: Any) -> Decision:
        """Return the decision for the affordable site of the highest score (per unit of cost)."""
        if self.per_cost and self.divides(scores[state.choosable(self.level)]):
            scores = self.divided(state, scores)
        return best_affordable(state, scores, memory, self.level, **why)

    def divides(self, scores: Array) -> bool:
        """Return whether to divide by the cost, given the scores of what can be had.

        Not where none of them is positive: the plain scores decide then.
        """
        return self.per_cost and bool((scores > 0).any())

    def divided(self, state: State, scores: Array, sites: Array | None = None) -> Array:
        """Divide scores (N,) by the cost where they are positive, so that a negative one is not made better.

        By default they are those of the domain's sites.
        """
        return np.where(scores > 0, scores / state.costs(self.level, sites), -np.inf)


def best_affordable(state: State, scores: Array, memory: Memory, level: int = 0, **why: Any) -> Decision:
    """Return the decision for the affordable site of the highest score, ties to the lowest index.

    Parameters
    ----------
    state : State
    scores : (N,) array
        Minus infinity rules a site out.
    memory : plain data
    level : int
        The sensor's setting to read with.
    **why
        Added to the decision's `why`.

    Returns
    -------
    Decision
        A Stop where there is none: "battery spent" if a site with a score, not rejected, is only too dear,
        else "stopped by policy".
    """
    able = state.choosable(level)[:, None]
    return best_pair(state, scores[:, None], able, memory, levels=(level,), **why)


def best_pair(
    state: State,
    scores: Array,
    able: Mask,
    memory: Memory,
    levels: Sequence[int] | None = None,
    **why: Any,
) -> Decision:
    """Return the decision for the (site, level) pair of the highest score among those that can be had.

    Ties go to the lowest site, then to the lowest level.

    Parameters
    ----------
    state : State
    scores : (N, K) array
        One column a level; minus infinity rules a pair out.
    able : (N, K) bool array
        Which pairs can be paid for, and were not rejected.
    memory : plain data
    levels : sequence of K int, optional
        The sensor's settings that the columns stand for; by default all of them.
    **why
        Added to the decision's `why`.

    Returns
    -------
    Decision
        A Stop as for `best_affordable`.
    """
    pairs = _highest_pairs(scores, able)
    if not pairs:
        wanted = (scores > -np.inf).any(axis=1)
        if len(state.rejected):
            wanted &= ~state.rejected
        reason = EndReason.BATTERY_SPENT if wanted.any() else EndReason.STOPPED_BY_POLICY
        return Decision(Stop(reason), memory, why)
    index, column = pairs[0]
    level = (state.levels if levels is None else levels)[column]
    said: dict[str, Any] = {"score": _plain(scores[index, column]), "site": index}
    if len(state.levels) > 1:
        said["level"] = level
    said["best"] = _told(state, scores, pairs, levels)
    return Decision(Query(state.domain.sites[index], level=level), memory, {**said, **why})


def leading(
    state: State,
    scores: Array,
    able: Mask,
    levels: Sequence[int] | None = None,
    sites: Array | None = None,
) -> list[dict[str, Any]]:
    """Return the best (site, level) pairs that can be had, up to three, as ``why["best"]`` tells them.

    Parameters
    ----------
    state : State
    scores : (N,) or (N, K) array
        One column a level; minus infinity rules a pair out.
    able : (N,) or (N, K) bool array
        Which pairs can be paid for, and were not rejected.
    levels : sequence of K int, optional
        The sensor's settings that the columns stand for; by default the first K.
    sites : (N, d) array, optional
        Where they would be read; by default the domain's sites.

    Returns
    -------
    list of dict
        The best first, ties to the lowest site; plain data:

        - ``site``: its coordinates,
        - ``value``: its score,
        - ``cost``: the full declared price of going there and sampling; None where costs are unknown,
        - ``left``: what of `State.spendable` could still be spent on queries after it, the way home from
          there set aside; 0 means that all that remains is to go home. None where costs are unknown,
        - ``left_s``: the same of a time limit, in seconds, where there is one,
        - ``level``: the sensor's setting, where it has several.
    """
    scores, able = scores.reshape(len(scores), -1), able.reshape(len(scores), -1)
    return _told(state, scores, _highest_pairs(scores, able), levels, sites)


def _highest_pairs(scores: Array, able: Mask) -> list[tuple[int, int]]:
    """Return (site, column) of up to three best scores (N, K) that can be had, the best first."""
    rest, pairs = np.where(able, scores, -np.inf).ravel(), list[tuple[int, int]]()
    while len(pairs) < LEADING and (flat := highest(rest)) is not None:
        pairs.append(divmod(flat, scores.shape[1]))
        rest[flat] = -np.inf
    return pairs


def _told(
    state: State,
    scores: Array,
    pairs: list[tuple[int, int]],
    levels: Sequence[int] | None,
    sites: Array | None = None,
) -> list[dict[str, Any]]:
    """Return what there is to say of (site, column) pairs; see `leading`."""
    if not pairs:
        return []
    numbers = state.levels if levels is None else levels
    at = [numbers[column] for _, column in pairs]
    sites = (state.domain.sites if sites is None else sites)[[index for index, _ in pairs]]
    told: list[dict[str, Any]] = [
        {"site": site, "value": _plain(scores[pair]), "cost": None, "left": None}
        for site, pair in zip(sites.tolist(), pairs, strict=True)
    ]
    if state.cost is not None:
        prices = {k: state.cost.to(state.position, sites, level=k, time_s=state.time_s) for k in set(at)}
        for n, one in enumerate(told):
            one["cost"] = _plain(prices[at[n]][n])
            for limit in state.limits:
                one[LEFT[limit.name]] = limit.after(state.position, sites[n], at[n])
    if len(state.levels) > 1:
        for one, level in zip(told, at, strict=True):
            one["level"] = level
    return told


def _plain(score: float) -> float | str:
    """Return a score as JSON can hold it: an infinite one as a word."""
    return float(score) if np.isfinite(score) else str(float(score))


def highest(scores: Array) -> int | None:
    """Return the index of the highest score (N,), the lowest of equal ones; None if all are minus infinity.

    Examples
    --------
    >>> highest(np.array([1.0, 3.0, 3.0 + 1e-12])), highest(np.array([1.0, np.inf, np.inf]))
    (1, 1)
    """
    best = float(scores.max())
    if best == -np.inf:
        return None
    tie = TIE * abs(best) if best < np.inf else 0.0
    return int(np.argmax(scores >= best - tie))


def needs_positive_costs(policy: str, cost: CostModel | None, domain: Domain) -> None:
    """Raise an `InputError` unless even staying put and sampling costs something."""
    if cost is None:
        raise InputError(
            f"{policy} without declared costs",
            expected="costs that the agent is told",
            where="agent.costs",
            mend='set costs = "declared", where the world has them, or take another rule: fieldbo policies',
        )
    least = cost.least_sampling_cost(domain.sites)
    if least <= 0:
        raise InputError(
            f"sampling again at the same site costs {least:g}, and {policy} divides by the cost",
            expected="a sampling cost above 0",
            where="cost",
            mend=cost.to_price_samples,
        )
