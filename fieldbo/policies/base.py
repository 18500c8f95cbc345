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
from typing import Any, ClassVar

import numpy as np

from fieldbo.costs.base import CostModel
from fieldbo.domain import Array, Domain, Mask
from fieldbo.errors import InputError, PolicyError
from fieldbo.exchange import EndReason, Event, Query, Stop
from fieldbo.gp import Belief
from fieldbo.question import Question
from fieldbo.sensors import Sensor
from fieldbo.surface import Surface

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
        The question's, in model units.
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
        ``noise(level=0) -> (N,)``, the noise variance of a reading at each site, in model units.
    fixed_model : bool
        Whether hyperparameters stay as they are.
    provisional : bool
        Whether they are still to be fitted for the first time: until then the model's scale is a guess,
        and nothing can be concluded from how sure it is.
    rng : numpy.random.Generator
        The policy's stream for this ask.
    return_cost : Callable
        ``return_cost(sites) -> (N,)``, the cost of the way home (zeros without a home).
    affordable : Callable
        ``affordable(sites, controls=None, level=0, position=None, spent=0) -> (N,) bool``, the agent's
        guard: whether a query can be paid for, way home, reserve and margin included.
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
    fixed_model: bool
    provisional: bool
    rng: np.random.Generator
    return_cost: Callable[[Array], Array]
    affordable: Callable[..., Mask]
    rejected: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def belief(self) -> Belief:
        """The posterior at any point."""
        return self.surface.belief

    def costs(self, level: int = 0) -> Array:
        """Return the full declared cost (N,) of going to each site and sampling there.

        Raises
        ------
        PolicyError
            The costs are not declared.
        """
        if self.cost is None:
            raise PolicyError("this policy needs declared costs, and this mission has none")
        return self.cost.to(self.position, self.domain.sites, level=level, time_s=self.time_s)

    def choosable(self) -> Mask:
        """Return (N,) bool: the sites that can be paid for and were not rejected."""
        able = self.affordable(self.domain.sites)
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

    def start(self, state: State) -> Memory:
        """Return the memory before anything was read."""
        return None

    @abstractmethod
    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the next query, or a Stop; costs were not looked at by anyone else yet."""

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Return the memory after `event`, which the state already holds."""
        return memory

    def warnings(self, state: State) -> list[str]:
        """Return what a user should know before the mission starts."""
        return []

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if this policy can't work with these costs."""


def best_affordable(state: State, scores: Array, memory: Memory, **why: Any) -> Decision:
    """Return the decision for the affordable site of the highest score, ties to the lowest index.

    Parameters
    ----------
    state : State
    scores : (N,) array
        Minus infinity rules a site out.
    memory : plain data
    **why
        Added to the decision's `why`.

    Returns
    -------
    Decision
        A Stop where there is none: "battery spent" if a site with a score, not rejected, is only too dear,
        else "stopped by policy".
    """
    wanted = np.isfinite(scores) & ~state.rejected if len(state.rejected) else np.isfinite(scores)
    allowed = np.where(state.choosable(), scores, -np.inf)
    index = int(np.argmax(allowed))
    if not np.isfinite(allowed[index]):
        reason = EndReason.BATTERY_SPENT if wanted.any() else EndReason.STOPPED_BY_POLICY
        return Decision(Stop(reason), memory, why)
    site = state.domain.sites[index]
    return Decision(Query(site), memory, {"score": float(scores[index]), "site": index, **why})


def needs_positive_costs(policy: str, cost: CostModel | None, domain: Domain) -> None:
    """Raise an `InputError` unless even staying put and sampling costs something."""
    if cost is None:
        raise InputError(f"{policy} without declared costs", expected="a world that declares its costs")
    least = float(cost.sampling_cost(domain.sites).min())
    if least <= 0:
        raise InputError(
            f"sampling again at the same site costs {least:g}, and {policy} divides by the cost",
            expected="a sampling cost above 0",
            where="cost",
            mend="add one to the world's [cost], for example sampling = 1",
        )
