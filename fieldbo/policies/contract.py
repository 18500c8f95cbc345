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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum, Question, ShareOfMaximum
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.costs.base import CostModel
from fieldbo.costs.limits import Limit
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import PolicyError
from fieldbo.messages import Event, Order, Query, Stop

Memory = Any
"""Plain data that a policy remembers."""


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
