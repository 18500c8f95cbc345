"""Plan all readings that the battery pays for at once, and plan the rest again as values come.

The memory holds the points still to be read (`plan`), the cost of the longest link (`spacing`), and by how
much the route costs more than its straight links (`detour`). Plans are made over blocks of sites, and within
the budget of a straight chain, whatever kind the cost model is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, WithJsonSchema
from scipy.spatial.distance import cdist

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import LevelSet, ShareOfMaximum
from fieldbo.costs.base import CostModel
from fieldbo.costs.cells import Modular
from fieldbo.costs.on_the_way import spacing_m
from fieldbo.domain.domain import Domain
from fieldbo.domain.places import check_place
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Event, Observation, Query, Recharge, Stop
from fieldbo.policies.choice import needs_declared_costs
from fieldbo.policies.contract import THIS_POLICY, Decision, Memory, Policy, State
from fieldbo.policies.paths.chain import Chain, Objective, first_plan, improved, resize, tours
from fieldbo.policies.paths.loss import (
    Everywhere,
    Importance,
    MayExceed,
    Misclassified,
    RemainingLoss,
    WayLoss,
    amplitude,
)
from fieldbo.validation import settings


def blocks(domain: Domain, most: int) -> tuple[Array, Array]:
    """Return at most about `most` points (B, d) that stand for the domain's sites, and their weights (B,).

    A block's weight is the length, area or volume of its sites, in mean cells. A mean that is not free moves
    to the nearest site.

    Parameters
    ----------
    domain : Domain
    most : int

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> points, weights = blocks(Domain.grid([Axis("x", "m", 0, 3), Axis("y", "m", 0, 3)], (4, 4)), 4)
    >>> points.tolist(), weights.sum()
    ([[0.5, 0.5], [0.5, 2.5], [2.5, 0.5], [2.5, 2.5]], np.float64(16.0))
    """
    weights: Array = domain.cells / domain.cells.mean()
    if domain.size <= most:
        return domain.sites, weights
    along = max(1, int(most ** (1 / domain.dimension) + 1e-9))
    bins = np.minimum((along * (domain.sites - domain.low) / domain.extent).astype(int), along - 1)
    _, block = np.unique(bins, axis=0, return_inverse=True)
    counts = np.bincount(block)
    means = np.stack([np.bincount(block, x) / counts for x in domain.sites.T], axis=1)
    for n in np.flatnonzero(~domain.contains(means)):
        means[n] = domain.sites[domain.nearest(means[n])]
    return means, np.bincount(block, weights).astype(float)


_PROBES = 24  # sites at which travel along each axis is priced
_STEP = 0.05  # of an axis, the move that is priced
_LEAST_RATE = 0.05  # of the dearest axis, each priced over its length: links along a free axis are finite
_ROUNDING = 1e-12
_UNLIMITED = 10**9  # readings, where they are free, too


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of a chain's links and readings.

    Attributes
    ----------
    rates : (d,) array
        Travel along each axis, in cost units per unit of the axis; where all travel is free, in lengths of
        the domain, which cost nothing.
    sample : float
        A reading, once there; the mean over the sites.
    free : bool
        Whether all travel is free.
    """

    rates: Array
    sample: float
    free: bool = False

    @classmethod
    def of(cls, cost: CostModel, domain: Domain, level: int) -> Prices:
        """Return the prices in a domain, with the sensor at `level`.

        Rates that a cost model does not state are medians of short moves, in the more expensive direction.
        """
        sample = float(cost.sampling_cost(domain.sites, level).mean())
        rates = cost.straight_rates
        rates = _probe_rates(cost, domain) if rates is None else np.array(rates, dtype=float)
        longest = float((rates * domain.extent).max())
        if longest == 0:
            return cls(1.0 / domain.extent, sample, free=True)
        return cls(np.maximum(rates, _LEAST_RATE * longest / domain.extent), sample)

    def length(self, points: Array) -> float:
        """Return the travel cost of a straight chain through points (k, d)."""
        return float(np.linalg.norm(np.diff(points, axis=0) * self.rates, axis=1).sum())


@dataclass(frozen=True, eq=False)
class Budget:
    """What is left to spend on a chain, its prices, and where it has to end.

    Attributes
    ----------
    left : float
        In cost units.
    prices : Prices
    start : (d,) array
    end : (d,) array or None
    """

    left: float
    prices: Prices
    start: Array
    end: Array | None

    @property
    def distance(self) -> float:
        """Travel cost straight to the end; 0 if there is none."""
        return 0.0 if self.end is None else self.prices.length(np.stack([self.start, self.end]))

    def count(self, spacing: float) -> int:
        """Return how many readings are affordable with links that cost at most `spacing`."""
        if self.prices.free:
            most = self.left / self.prices.sample if self.prices.sample > 0 else _UNLIMITED
            return int(most * (1 + _ROUNDING))
        if self.left < self.distance:
            return 0
        whole = self.left / (spacing + self.prices.sample)
        if self.prices.sample > 0:
            whole = min(whole, (self.left - self.distance) / self.prices.sample)
        return int(whole * (1 + _ROUNDING))

    def spacing(self, count: int) -> float:
        """Return the longest link of `count` readings that spend all; below 0 if there is none."""
        if self.prices.free:
            return self._across if count <= self.count(0.0) else -1.0
        return (self.left - count * self.prices.sample) / (count + (self.end is not None))

    def chain(self, domain: Domain, count: int, spacing: float) -> Chain:
        """Return the limits of a chain of `count` readings; what is left over lengthens the last link."""
        spare = self._across if self.prices.free else self.left - count * (spacing + self.prices.sample)
        last = max(spare, (self.distance - count * spacing) * (1 + _ROUNDING), 0.0)
        return Chain(
            self.start, count, spacing, domain.low, domain.high, self.end, last, rates=self.prices.rates
        )

    def single(self, domain: Domain) -> list[Chain]:
        """Return the limits of a single reading, wherever it is affordable; none if it is nowhere."""
        spacing = self.spacing(1)
        return [self.chain(domain, 1, spacing)] if spacing > 0 and self.count(spacing) else []

    @property
    def _across(self) -> float:
        """Length across the whole domain where travel is free: no link is longer."""
        return float(np.sqrt(len(self.prices.rates)))


def _probe_rates(cost: CostModel, domain: Domain) -> Array:
    """Return the rates (d,) of short moves along each axis."""
    starts = domain.sites[np.linspace(0, domain.size - 1, min(_PROBES, domain.size)).astype(int)]
    rates = np.zeros(domain.dimension)
    for axis, step in enumerate(_STEP * domain.extent):
        dearest = np.full(len(starts), -np.inf)
        for move in (-step, step):
            ends = starts.copy()
            ends[:, axis] += move
            for n in np.flatnonzero(domain.contains(ends)):
                dearest[n] = max(dearest[n], float(cost.travel(starts[n], ends[n : n + 1])[0]) / step)
        priced = dearest[np.isfinite(dearest)]
        rates[axis] = np.median(priced) if len(priced) else 0.0
    return rates


COUNTS = (3, 5, 8, 12, 18, 27, 40, 60)
"""Numbers of readings that are tried if no spacing is set; the last is the most that are planned."""
_TRIED, _TRIAL_ITERATIONS = 3, 12
_ANSWERED = 1e-9  # loss of each site at which nothing is left to learn
_PLACE = {
    "anyOf": [
        {"type": "array", "items": {"type": "number"}},
        {
            "type": "object",
            "properties": {"latitude": {"type": "number"}, "longitude": {"type": "number"}},
            "required": ["latitude", "longitude"],
            "additionalProperties": False,
        },
        {"type": "null"},
    ]
}
"""As in a mission file, where degrees become coordinates before the policy is made."""


@settings("policy")
class InformativePath(Policy):
    """Read along the path that leaves the least where it matters, planned again after each reading.

    The variance that readings leave depends on where they are, not on their values, so the rest of a path can
    be optimised exactly. What values decide is which sites will matter; the belief gives the probability.

    Examples
    --------
    >>> import fieldbo
    >>> from fieldbo.testing import small_mission
    >>> result = fieldbo.run(small_mission(InformativePath(starts=2, first_iterations=10), home=True))
    >>> str(result.end_reason)
    'battery spent'
    """

    answers = (LevelSet, ShareOfMaximum)
    costs = ("declared",)

    weight: Literal["misclassified", "may-exceed", "map"] = "misclassified"
    """What is to be small in the end: the risk of misclassifying a site, the variance where mean + sd may
    reach the threshold, or the variance everywhere."""
    spacing: PositiveFloat | None = None
    """Longest distance between two readings, in units of the axis along which travel is cheapest. Default:
    the best of several, for the whole battery."""
    destination: Annotated[tuple[float, ...] | None, WithJsonSchema(_PLACE)] = None
    """Where the last reading is taken, for a vehicle without a home: one coordinate per axis or, in a mission
    file, { latitude = 47.3, longitude = 8.5 }. Default: anywhere."""
    starts: PositiveInt = 16
    """Number of rough tours from which the first plan is searched."""
    first_iterations: PositiveInt = 80
    """Iterations of the search from each of them."""
    iterations: NonNegativeInt = 16
    """Iterations after each reading, from the rest of the last plan."""
    blocks: PositiveInt = 400
    """Most blocks of sites to plan with."""
    level: NonNegativeInt = 0
    """The sensor's level to read with."""

    def check(self, cost: CostModel | None, domain: Domain) -> None:
        """Raise an `InputError` if costs are not declared, or the destination is no place of the domain."""
        needs_declared_costs(cost)
        if domain.control_sets or isinstance(cost, Modular):
            kind = "this domain has control sets" if domain.control_sets else "modules have no place"
            raise InputError(
                f"{THIS_POLICY} plans a path, and {kind}",
                expected="a domain that a vehicle moves in",
                where="policy.kind",
            )
        if self.destination is not None:
            check_place(domain, "destination", np.array(self.destination), "policy.destination")

    def start(self, state: State) -> Memory:
        """Begin without a plan.

        Raises
        ------
        InputError
            The kernel has no gradients, or the destination can't be reached.
        """
        # Raises if there are no gradients: before the first order, rather than when it plans the second.
        state.belief.kernel.with_slopes(state.position[None], state.position[None])
        end = self._end(state)
        if self.destination is None or end is None:
            return None
        shown = list(self.destination)
        if state.home is not None and not np.allclose(state.home, self.destination):
            raise InputError(
                f"destination = {shown}, and the vehicle has to return home to {state.home.tolist()}",
                expected="a destination or a home",
                where="policy.destination",
                fix="remove the destination, or the vehicle's home",
            )
        needed = float(_price(state, end[None], self.level)[0])
        if not needed <= state.spendable:
            raise InputError(
                f"the trip to the destination {shown} and a reading there cost {needed:g}, and "
                f"{state.spendable:g} can be spent",
                expected="a destination within reach",
                where="policy.destination",
                fix="choose a nearer destination, or raise the battery",
            )
        return None

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the first point of the best path found; Stop if nothing can be learnt or afforded."""
        budget = self._budget(state, 0.0 if memory is None else memory["detour"])
        sites, counts = blocks(state.domain, self.blocks)
        noise = float(state.noise(self.level).mean())
        loss = RemainingLoss(state.belief, sites, self._importance(state), noise, counts)
        unit = 1.0 if self.weight == "misclassified" else float(state.surface.process_variance.max())
        if loss.now <= _ANSWERED * unit * counts.sum():
            return self._go_to_end(state, memory, EndReason.QUESTION_ANSWERED)
        planned = (
            self._plan_first(state, budget, loss)
            if memory is None
            else self._plan_again(state, memory, budget, loss)
        )
        site = None
        if planned is not None:
            plan = _free(state.domain, planned[0])
            site = self._site(state, plan[0])
        if planned is None or site is None:
            return self._go_to_end(state, memory)
        chain = planned[1]
        detour = _detour(state, plan, budget)
        memory = {"plan": plan[1:].tolist(), "spacing": chain.spacing, "detour": detour}
        left = self._objective(state, loss, chain)(plan)[0]
        why = {"readings": len(plan), "loss_now": loss.now, "loss_planned": left}
        return Decision(Query(site, level=self.level), memory, why)

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        """Plan anew with another battery."""
        recharged = isinstance(event, Observation) and isinstance(state.orders.get(event.order), Recharge)
        return None if recharged else memory

    # -- the plan ----------------------------------------------------------------------------------------

    def _importance(self, state: State) -> Importance:
        if self.weight == "map":
            return Everywhere()
        if self.weight == "misclassified":
            return Misclassified(state.threshold)
        # A fitted model has the amplitude of its readings already.
        return MayExceed(state.threshold, amplitude(state.belief) if state.fixed_model else 1.0)

    def _budget(self, state: State, detour: float) -> Budget:
        """Return what can be spent on a chain, with its detours and the reading at its end set aside."""
        assert state.cost is not None
        left, end = state.spendable - detour, self._end(state)
        if len(state.limits) > 1:  # time, too: in cost units of typical moves
            prices = _price(state, state.domain.sites, self.level)
            for limit in state.limits:
                going = limit.going(state.position, state.domain.sites, None, self.level)
                moves = np.isfinite(prices) & (prices > 0) & (going > 0)
                if moves.any():
                    left = min(left, limit.left * float(np.median(prices[moves] / going[moves])) - detour)
        if end is not None and state.home is None:
            left -= float(state.cost.sampling_cost(end[None], self.level)[0])
        return Budget(max(left, 0.0), Prices.of(state.cost, state.domain, self.level), state.position, end)

    def _plan_first(self, state: State, budget: Budget, loss: RemainingLoss) -> tuple[Array, Chain] | None:
        """Return the first plan (m, d), and the limits of its chain; None if no reading is affordable."""
        domain, rng = state.domain, state.rng
        among = None if domain.clear else domain.sites
        most = _most_readings(state)
        if self.spacing is not None:
            links = [self.spacing * float(budget.prices.rates.min())]
        else:
            tried = sorted({min(count, most) for count in COUNTS})
            links = [link for count in tried if (link := budget.spacing(count)) > 0]
        counts = [min(budget.count(link), most) for link in links]
        chains = [budget.chain(domain, n, link) for n, link in zip(counts, links, strict=True) if n]
        chains = chains or budget.single(domain)
        if not chains:
            return None
        best = chains[0]
        if len(chains) > 1:
            plans = [
                first_plan(
                    self._objective(state, loss, c), c, tours(c, rng, _TRIED, among), _TRIAL_ITERATIONS
                )
                for c in chains
            ]
            best = chains[int(np.argmin([left for _, left in plans]))]
        objective = self._objective(state, loss, best)
        plan, _ = first_plan(objective, best, tours(best, rng, self.starts, among), self.first_iterations)
        return plan, best

    def _plan_again(
        self, state: State, memory: Memory, budget: Budget, loss: RemainingLoss
    ) -> tuple[Array, Chain] | None:
        """Return the rest of the last plan, improved, and its chain; None if no reading is affordable."""
        plan = np.array(memory["plan"]).reshape(-1, state.domain.dimension)
        spacing = memory["spacing"]
        count = min(budget.count(spacing), _most_readings(state))
        chains = [budget.chain(state.domain, count, spacing)] if count else budget.single(state.domain)
        if not chains:
            return None
        chain = chains[0]
        plan = resize(chain, plan if len(plan) else state.position[None], chain.count)
        return improved(self._objective(state, loss, chain), chain, plan, self.iterations)[0], chain

    def _objective(self, state: State, loss: RemainingLoss, chain: Chain) -> Objective:
        """Return the loss after all that is read on a chain: at its points and, if so set, on the way."""
        along, cost = state.sensor.along, state.cost
        if along is None or cost is None:
            return loss
        cheapest, domain = int(np.argmin(chain.scale)), state.domain
        side = np.stack(
            [domain.low, np.where(np.arange(domain.dimension) == cheapest, domain.high, domain.low)]
        )
        apart = float(chain.scale[cheapest]) * spacing_m(cost, along, side, state.time_s)
        return WayLoss(loss, chain, float(state.noise(self.level).mean()), apart)

    # -- from plan to query ------------------------------------------------------------------------------

    def _end(self, state: State) -> Array | None:
        """Return where the vehicle has to be in the end, if anywhere."""
        if state.home is not None or self.destination is None:
            return state.home
        place, domain = np.array(self.destination), state.domain
        return place if domain.continuous else domain.sites[domain.nearest(place)]

    def _reaches_end(self, state: State, sites: Array) -> Mask:
        """Return whether a reading at the destination is affordable after one at each site (N,)."""
        end = self._end(state)
        if end is None or state.home is not None:  # the agent sees to the trip home
            return np.ones(len(sites), dtype=bool)
        assert state.cost is not None
        onward = state.cost.to(sites, end[None], level=self.level, time_s=state.time_s)[:, 0]
        return np.asarray(_price(state, sites, self.level) + onward <= state.spendable)

    def _site(self, state: State, point: Array) -> Array | None:
        """Return where to read for a point (d,) of the plan: there, or at the nearest possible site.

        That is one not read before, as long as there are any.
        """
        domain = state.domain
        if domain.continuous and self._possible(state, point):
            return point
        able, read = state.choosable(self.level), state.belief.sites
        if len(read):
            unread = (cdist(domain.sites, read) > 0).all(axis=1)
            if len(state.rejected):
                unread &= ~state.rejected
            able &= unread if unread.any() else True
        able[able] = self._reaches_end(state, domain.sites[able])
        if not able.any():
            return None
        sites = domain.sites[able]
        return np.asarray(sites[np.argmin(cdist(point[None] / domain.extent, sites / domain.extent))])

    def _possible(self, state: State, point: Array) -> bool:
        """Return whether a point (d,) is free, affordable, and not one that was rejected."""
        rejected = len(state.rejected) and state.rejected[state.domain.nearest(point)]
        return bool(
            not rejected
            and state.domain.contains(point[None])[0]
            and state.affordable(point[None], level=self.level)[0]
            and self._reaches_end(state, point[None])[0]
        )

    def _go_to_end(self, state: State, memory: Memory, why: EndReason = EndReason.BATTERY_SPENT) -> Decision:
        """Return the query at the destination if it is still to come; otherwise a Stop, and `why`."""
        end = self._end(state)
        if end is not None and state.home is None and not np.array_equal(state.position, end):
            rejected = len(state.rejected) and state.rejected[state.domain.nearest(end)]
            if not rejected and state.affordable(end[None], level=self.level)[0]:
                return Decision(Query(end, level=self.level), memory, {"readings": 1})
        gone = len(state.rejected) and state.rejected.all()
        return Decision(Stop(EndReason.STOPPED_BY_POLICY if gone else why), memory)


def _most_readings(state: State) -> int:
    return int(max(1, min(state.steps_left, COUNTS[-1])))


def _price(state: State, sites: Array, level: int) -> Array:
    """Return the full cost (N,) of a query at each site."""
    assert state.cost is not None
    return state.cost.to(state.position, sites, level=level, time_s=state.time_s)


def _free(domain: Domain, plan: Array) -> Array:
    """Return the plan (m, d) with points inside obstacles moved to the nearest site."""
    if domain.clear or not len(plan):
        return plan
    free = domain.contains(plan)
    return np.array([p if ok else domain.sites[domain.nearest(p)] for p, ok in zip(plan, free, strict=True)])


def _detour(state: State, plan: Array, budget: Budget) -> float:
    """Return by how much the route through a plan (m, d) costs more than its straight links."""
    assert state.cost is not None
    if state.domain.clear:
        return 0.0
    points = plan if budget.end is None else np.vstack([plan, budget.end])
    route = sum(float(state.cost.travel(a, b[None])[0]) for a, b in pairwise(points))
    extra = route - budget.prices.length(points)
    return max(extra, 0.0) if np.isfinite(extra) else 0.0
