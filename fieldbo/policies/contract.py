"""The contract between a policy and the agent that asks it.

A policy is a frozen value that holds only its settings. Anything it remembers between calls is a value, too,
its *memory*: small, plain data (numbers, strings, lists, dicts), which is recorded with each order. All calls
are pure, so that a run can be replayed from its record:

``start(state) -> memory``
    Called before the first reading.
``suggest(state, memory) -> Decision``
    The next query, or a Stop.
``observe(state, memory, event) -> memory``
    Called after each event; the state already includes it. After a `Correction`, ``state.rebuilt`` is True
    and the history has the right readings: forget what you concluded from the wrong ones.

Means, variances, thresholds and noise in a state are in *model units*, where larger is always better.
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
from fieldbo.costs.base import CostModel, Limit, Supply
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import PolicyError
from fieldbo.messages import Event, Order, Query, Stop

Memory = Any
"""Plain data that a policy remembers."""


THIS_POLICY = "this policy"
"""What errors of `Policy.check` call the policy; a mission puts the policy's name in its place."""


@dataclass(frozen=True, eq=False)
class State:
    """What a policy sees: a read-only view of the mission, valid during one call.

    Start with `surface` (the belief over the domain's sites), `threshold`, `costs` and `choosable`. Arrays
    have one row per site, in the order of ``domain.sites`` (N, d). The state's functions and methods are
    pure; only `rng` advances as you draw from it. Never change an array in place: work on a copy.

    *Model units* are standardised values in which larger is better, even if the mission minimises or maps a
    set below its threshold; `scale` converts to and from the user's unit. Costs are in the world's cost unit,
    times in seconds.

    Attributes
    ----------
    domain : Domain
        Sites, axes and obstacles. ``domain.continuous`` is True for a box, which `sites` only sample.
    question : Question
        A `LevelSet`, `ShareOfMaximum` or `Optimum`, in the user's unit.
    threshold : float
        The question's threshold, in model units, where a level set always lies above it. For a share of the
        maximum, that share of the highest posterior mean; NaN for an optimum.
    surface : Surface
        The belief over the sites, in model units: ``surface.mean``, ``surface.sd``, ``surface.variance``
        (N,). During `suggest` the variances count pending queries as read.
    history : tuple of Event
        All events so far, in order; an observation has its corrected readings.
    steps : int
        Number of orders that an observation has settled.
    pending : tuple of Query
        Queries that were issued and have not come back.
    position : (d,) array
        Where the vehicle will be when its queue is done.
    home : (d,) array or None
        Where it has to return to, if anywhere.
    remaining : float
        Battery that is left, minus what outstanding orders will take.
    spendable : float
        `remaining`, minus reserve and margin.
    time_s : float
        Seconds since the start of the mission.
    cost : CostModel or None
        The declared cost model; None if costs are unknown.
    sensor : Sensor
        With ``sensor.settings`` levels.
    noise : Callable
        ``noise(level=0, surface=None) -> (N,)``, the noise variance of a reading at each site, or at each
        candidate of another surface, in model units.
    threshold_if : Callable
        ``threshold_if(maximum) -> float``, the threshold if the field's maximum were `maximum`; both in model
        units.
    scale : ValueScale
        Converts between the user's values and model units.
    fixed_model : bool
        True if the hyperparameters are never fitted.
    rebuilt : bool
        True if this event replaced the belief (a fit, a correction, or a new verdict on an earlier reading):
        discard conclusions drawn from the previous one.
    provisional : bool
        True until the first fit, if there will be one: the model's scale is a guess, so do not conclude
        anything from small variances.
    draw : Callable
        ``draw() -> numpy.random.Generator``, this call's random stream from its beginning. Use `rng`.
    return_cost : Callable
        ``return_cost(sites) -> (N,)``, the cost of the trip home from each site; zeros without a home.
    affordable : Callable
        ``affordable(sites, controls=None, level=0, position=None, spent=0) -> (N,) bool``, the agent's guard:
        True if the battery (and the time) suffices for a query and the trip home, with reserve and margin.
        If costs are unknown, True while anything is left: compare your own estimates with `spendable`.
    limits : tuple of Limit
        The limits that the guard enforces, for policies that plan several steps; empty if costs are unknown.
    supplies : tuple of Supply
        For each of the `limits`, what all vehicles with all their batteries have left, and had at first.
    orders : mapping of str to Order
        All orders issued so far, by id. An event of the history names the order that it answers.
    rejected : (N,) bool array
        Sites that a vehicle rejected; empty if there are none. `choosable` leaves them out.
    steps_left : float
        Number of orders that the mission still allows; infinite without a limit.
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
    supplies: tuple[Supply, ...] = ()
    orders: Mapping[str, Order] = field(default_factory=dict)
    rejected: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    steps_left: float = np.inf

    @cached_property
    def rng(self) -> np.random.Generator:
        """The policy's random stream for this call; determined by the mission's seed."""
        return self.draw()

    @property
    def belief(self) -> Belief:
        """The posterior at any point, in model units."""
        return self.surface.belief

    def costs(self, level: int = 0, sites: Array | None = None) -> Array:
        """Return the full declared cost (N,) of going to each site and sampling there.

        Parameters
        ----------
        level : int
            The sensor's level.
        sites : (N, d) array, optional
            By default the domain's sites.

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
        """The sensor's levels."""
        return range(self.sensor.settings)

    def at_levels(self, quantity: Callable[[int], NDArray[Any]]) -> NDArray[Any]:
        """Return ``quantity(level)`` (N,) for every setting, side by side as (N, K)."""
        return np.stack([quantity(level) for level in self.levels], axis=1)

    def choosable(self, level: int = 0) -> Mask:
        """Return the sites (N,) that are affordable at `level` and were not rejected, as bool."""
        able = self.affordable(self.domain.sites, level=level)
        return able & ~self.rejected if len(self.rejected) else able


@dataclass(frozen=True, eq=False)
class Decision:
    """The outcome of `Policy.suggest`.

    Attributes
    ----------
    choice : Query or Stop
        Give a Stop its `EndReason`: ``QUESTION_ANSWERED``, ``BATTERY_SPENT`` or ``STOPPED_BY_POLICY``.
    memory : plain data
        Passed to the next call.
    why : mapping
        Scores, sets and bounds that explain the choice; small, plain data, shown by ``fieldbo ask``. A key
        that the agent sets itself, such as ``end_reason``, is recorded as ``end_reason of the policy``.
    """

    choice: Query | Stop
    memory: Memory = None
    why: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Policy(ABC):
    """Picks the next query.

    Write a policy as a frozen dataclass whose fields are its settings, and implement `suggest`. Decorate it
    with :func:`fieldbo.validation.settings` to have the settings checked. Override `start` and `observe` if
    it has a memory. Subclass :class:`fieldbo.testing.PolicyContract` to test it against this contract.

    Everything must follow from the arguments: draw random numbers from ``state.rng`` only, and keep nothing
    on the instance. `best_affordable` (one score per site), `best_pair` (one per site and sensor level) and
    `highest` turn scores into decisions, with rejected and unaffordable sites left out; derive from `PerCost`
    for an option to divide scores by the cost.

    Attributes
    ----------
    answers : tuple of type
        Class attribute: the kinds of question that it can answer.
    costs : tuple of {"declared", "unknown"}
        Class attribute: the kinds of mission that it works in. A policy that estimates costs must not see
        them.
    leaves_free : bool
        Class attribute: True if it may leave variables free, in a domain with control sets.

    Examples
    --------
    A policy that samples where the field may exceed the threshold most, until it is sure nowhere does:

    >>> from dataclasses import dataclass
    >>> from fieldbo.messages import EndReason, Stop
    >>> from fieldbo.policies import Decision, PerCost, best_affordable
    >>> @dataclass(frozen=True)
    ... class Alarm(PerCost):
    ...     answers = (LevelSet,)
    ...     kappa: float = 2.0
    ...
    ...     def suggest(self, state, memory):
    ...         upper = state.surface.mean + self.kappa * state.surface.sd
    ...         excess = upper - state.threshold
    ...         if state.steps and excess.max() <= 0:
    ...             return Decision(Stop(EndReason.QUESTION_ANSWERED), memory)
    ...         return best_affordable(state, excess, memory, level=self.level)
    >>> import fieldbo
    >>> from fieldbo.testing import small_mission
    >>> str(fieldbo.run(small_mission(Alarm(kappa=1.5))).end_reason)
    'battery spent'
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    answers: ClassVar[tuple[type, ...]] = (LevelSet, ShareOfMaximum, Optimum)
    costs: ClassVar[tuple[str, ...]] = ("declared", "unknown")
    leaves_free: ClassVar[bool] = False

    def start(self, state: State) -> Memory:
        """Return the memory before the first reading."""
        return None

    @property
    def observes(self) -> bool:
        """Whether its memory changes with events, so that it has to see each of them."""
        return type(self).observe is not Policy.observe

    @abstractmethod
    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the next query, or a Stop.

        Check that the query is affordable, as the helpers do; the agent rejects one that is not.
        """

    def suggest_batch(self, state: State, memory: Memory, k: int) -> list[Decision] | None:
        """Return up to `k` decisions that are carried out before any result comes back.

        By default None: the agent calls `suggest` k times, and counts the queries before as read.
        """
        return None

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Return the memory after `event`, which `state` already includes."""
        return memory

    def warnings(self, state: State) -> list[str]:
        """Return messages that a user should see before the mission starts."""
        return []

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if this policy can't work with these costs or in this domain."""
