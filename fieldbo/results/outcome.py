"""The outcome of a run as a value: orders, observations, the final belief, and arrays derived from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.agent.failures import Failures
from fieldbo.agent.ledger import Entry
from fieldbo.agent.state import Verdict
from fieldbo.agent.vehicle_state import Pause, Statement
from fieldbo.belief.confidence import AnySurface, Confidence, OptimumConfidence
from fieldbo.belief.hyperparameters import Hyperparameters
from fieldbo.belief.readings import PIECE, Data, thinned
from fieldbo.belief.value_scale import ValueScale
from fieldbo.costs.base import CostModel
from fieldbo.messages import Command, EndReason, Observation, Order, Query, Rejected, order_number
from fieldbo.mission.mission import Mission
from fieldbo.results.answers import Answer, LevelSetAnswer, OptimumAnswer, answer_of, best_measured
from fieldbo.results.cell_runs import CellRuns, cell_runs_of
from fieldbo.results.curve import Step
from fieldbo.results.recommendation import BestPlay, recommended
from fieldbo.results.truth import Place
from fieldbo.results.words import coordinates


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a run.

    Attributes
    ----------
    mission : Mission
    run : str
        Name of the run.
    end_reason : EndReason or None
        None if the run was interrupted and can be resumed.
    curve : tuple of Step
        One per settled order, in order.
    queries : tuple of Query
    observations : tuple of Observation
    rejections : tuple of Rejected
    surface : Surface or AveragedSurface
        The final belief over the sites, in model units, averaged over hyperparameters unless they are known.
    scale : ValueScale
        Converts those units to the user's.
    hyperparameters : Hyperparameters
        Those of the latest fit, on which decisions are based.
    cost : float
        Total cost, in the world's cost unit.
    blinded : bool
        Whether some readings dwarf all others: the belief is then sure of the other sites for no reason.
    notes : tuple of str
        Warnings, and readings that were left out.
    accounts : tuple of Account
        One per vehicle: planned and real cost of each order.
    best_plays : tuple of BestPlay
        The best settings of each control set by the final belief; see `recommendation.best_plays`.
    verdict : Verdict or None
        Whether the answer reaches the mission's goal, and with which probability; None without a goal.
    commands : tuple of Command
        An operator's commands, refused ones included.
    failures : Failures or None
        Where readings fail.
    """

    mission: Mission
    run: str
    end_reason: EndReason | None
    curve: tuple[Step, ...]
    queries: tuple[Query, ...]
    observations: tuple[Observation, ...]
    rejections: tuple[Rejected, ...]
    surface: AnySurface
    scale: ValueScale
    hyperparameters: Hyperparameters
    cost: float
    blinded: bool = False
    notes: tuple[str, ...] = ()
    accounts: tuple[Account, ...] = ()
    best_plays: tuple[BestPlay, ...] = ()
    verdict: Verdict | None = None
    commands: tuple[Command, ...] = ()
    failures: Failures | None = None

    # -- the answer ------------------------------------------------------------------------------------

    @cached_property
    def answer(self) -> Answer:
        """The final belief's answer to the question: the classified sites, or the optimum."""
        answer = answer_of(self.mission, self.surface, self.scale, blinded=self.blinded)
        return answer.polished(self.sites) if isinstance(answer, OptimumAnswer) else answer

    @property
    def truth(self) -> Array | None:
        """The true values at the sites (N,), in the user's unit; None in a live world."""
        return None if self.answer.truth is None else self.answer.truth.values

    @property
    def f1(self) -> float | None:
        """F1 of the final classification against the truth; None in a live world, and for an optimum."""
        return self.answer.scores().get("f1") if isinstance(self.answer, LevelSetAnswer) else None

    @property
    def regret(self) -> float | None:
        """Regret of the reported optimum, in the user's unit; None in a live world, and for a level set."""
        return self.answer.regret if isinstance(self.answer, OptimumAnswer) else None

    @cached_property
    def best_measured(self) -> Place | None:
        """The best measured place of an optimum and the value there; None as for `answers.best_measured`."""
        noises = np.concatenate([np.empty(0), *(o.noise_variances for o in self.observations)])
        good = self.believed
        return best_measured(self.mission, self.sites[good], self.values[good], noises[good])

    @cached_property
    def measured_elsewhere(self) -> Place | None:
        """The best measured place, if it is another one than the reported one, to the digits of a report.

        None, too, where all that was measured is at or below the limit of detection: no place is better then.
        """
        best, answer, world = self.best_measured, self.answer, self.mission.world
        if best is None or not isinstance(answer, OptimumAnswer):
            return None
        if not world.sensor.detects(best.value):
            return None
        domain = world.domain
        same = coordinates(domain, best.point) == coordinates(domain, answer.reported.point)
        return None if same else best

    @property
    def confidence(self) -> Confidence | OptimumConfidence:
        """The scores that the belief expects of its answer, with 90% intervals."""
        return self.answer.confidence

    @property
    def play(self) -> BestPlay | None:
        """The recommended play, see `recommendation.recommended`; None if there are no `best_plays`."""
        return recommended(self.best_plays, self.mission.question.sign)

    # -- the course of the run -------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Number of queries settled by an observation."""
        asked = {q.id for q in self.queries}
        return sum(o.last and o.order in asked for o in self.observations)

    @property
    def visited(self) -> int:
        """Number of different sites of the queries that were read; a rejected order is not a visit."""
        read = {o.order for o in self.observations if len(o.values)}
        return len({q.site.tobytes() for q in self.queries if q.id in read})

    @property
    def sites(self) -> Array:
        """Sites of the readings, (n, d), in order."""
        d = self.mission.world.domain.dimension
        return np.concatenate([np.empty((0, d)), *(o.sites for o in self.observations)])

    @property
    def values(self) -> Array:
        """The readings (n,), in the user's unit."""
        return np.concatenate([np.empty(0), *(o.values for o in self.observations)])

    @cached_property
    def on_the_way(self) -> Mask:
        """Readings that the sensor took on the way, (n,) bool: all but those at the sites of queries."""
        along, queries = self.mission.world.sensor.along is not None, self.level_of_order
        ends = [o.last and o.order in queries for o in self.observations]
        marks = [
            np.arange(len(o.values)) < len(o.values) - end
            for o, end in zip(self.observations, ends, strict=True)
        ]
        return np.concatenate([np.empty(0, dtype=bool), *marks]) & along

    @property
    def levels(self) -> NDArray[np.int64]:
        """The sensor level of each reading, (n,)."""
        level = self.level_of_order
        return np.array([level.get(o.order, 0) for o in self.observations for _ in o.values], dtype=np.int64)

    @cached_property
    def level_of_order(self) -> dict[str, int]:
        """The sensor level of each query, by its id."""
        return {str(q.id): q.level for q in self.queries}

    @cached_property
    def battery_of_order(self) -> dict[str, int]:
        """Number of the battery with which each order was issued, counted from 1, by its id."""
        return {order: number for account in self.accounts for order, number in account.battery_of.items()}

    @property
    def several_batteries(self) -> bool:
        """Whether a vehicle has more than one battery."""
        return any(spec.batteries > 1 for spec in self.mission.vehicles)

    @cached_property
    def usable(self) -> Mask:
        """Readings that can be modelled, (n,) bool: see `fieldbo.belief.observation_model`."""
        good = [self._usable(o.values, o.noise_variances) for o in self.observations]
        return np.concatenate([np.empty(0, dtype=bool), *good])

    def _usable(self, values: Array, noise_variances: Array) -> Mask:
        observed = self.mission.model.observation_model(self.mission.world.sensor)
        return observed.usable(self.hyperparameters.scale, values, noise_variances)

    @cached_property
    def believed(self) -> Mask:
        """Readings that the final model uses, (n,) bool: usable, and neither outliers nor spikes."""
        believed, taken = self.usable.copy(), []
        piece, below = PIECE * self.hyperparameters.kernel.length_scales, self.mission.world.sensor.below
        for event in self.observations:
            good = self._usable(event.values, event.noise_variances)
            readings = event.sites[good], event.values[good], event.noise_variances[good]
            taken.append(thinned(*readings, piece, below))
        if not believed.any():
            return believed
        earlier = self.mission.earlier
        known = self._usable(earlier.values, earlier.noise_variances)
        before = earlier.sites[known], earlier.values[known], earlier.noise_variances[known]
        sites, values, noises = (
            np.concatenate([first, *(t[k] for t in taken)]) for k, first in enumerate(before)
        )
        means = None if earlier.mean is None else earlier.mean.values(sites)
        with one_blas_thread():
            data = Data(sites, values, noises, means, self.mission.world.sensor)
            used = self.mission.model.believed(self.hyperparameters, data)
        used = used[np.count_nonzero(known) :]
        ends = np.cumsum([len(t.values) for t in taken])[:-1]
        parts = zip(np.split(used, ends), taken, strict=True)
        believed[believed] = np.concatenate([part[t.which] & (t.which >= 0) for part, t in parts])
        return believed

    @property
    def outliers_tested(self) -> bool:
        """True if the model tests readings for outliers."""
        return self.mission.model.outliers == "tested"

    @cached_property
    def cell_runs(self) -> CellRuns:
        """Module runs or plays of control sets; empty outside a factory cell."""
        orders = {str(q.id): q for q in self.queries}
        return cell_runs_of(self.mission, ((orders.get(o.order), o) for o in self.observations))

    @property
    def path(self) -> Array:
        """The path travelled, (k, d) points from the start to the vehicle's position.

        Each order's route, as it was sent. A vehicle that was not where its route begins, or read on the way,
        takes the cheapest route; a leg is straight if there is none, for example from within the clearance of
        an obstacle. Readings that lie on the route add no points.
        """
        return self._travelled[0]

    @property
    def path_ends(self) -> NDArray[np.int64]:
        """Number of points of the `path` after each observation, (m,)."""
        return self._travelled[1]

    @cached_property
    def _travelled(self) -> tuple[Array, NDArray[np.int64]]:
        at, routes = self.mission.vehicles[0].start, {q.id: q.route for q in self.queries}
        points, ends = [at[None]], list[int]()
        reach = 1e-6 * self.mission.world.domain.extent.max()
        for event in self.observations:
            route = routes.get(event.order, np.empty((0, 0)))
            stops = [*event.sites, event.position]
            if len(event.sites) > 1 and not np.array_equal(at, event.position):
                whole = np.vstack([at, self.leg(at, event.position, route, event.order)])
                stops = [event.position] if _lie_on(whole, event.sites, reach) else stops
            for stop in stops:
                if not np.array_equal(stop, at):
                    points.append(self.leg(at, stop, route, event.order))
                    at = stop
            ends.append(len(points))
        counts = np.cumsum([len(p) for p in points])
        return np.concatenate(points), counts[np.array(ends, dtype=int) - 1]

    def leg(self, at: Array, stop: Array, route: Array, order: str) -> Array:
        """Return the points (k, d) from `at` (d,), not included, to `stop` (d,), as for `path`.

        Parameters
        ----------
        at, stop : (d,) array
        route : (r, d) array
            The route of the order, as it was sent; empty if it was straight.
        order : str
            Id of the order.
        """
        cost = self._cost_then(order)
        if len(route) and np.array_equal(route[[0, -1]], [at, stop]):
            return route[1:]
        reachable = bool(np.isfinite(cost.travel(at, stop[None])[0]))
        return cost.path(at, stop)[1:] if reachable else stop[None]

    @cached_property
    def _costs(self) -> list[tuple[int, CostModel]]:
        """Number of the first order with each cost model: routes change when an operator closes an area."""
        world = self.mission.world
        closing = [c for c in self.commands if c.areas and not c.refused]
        if not closing:
            return [(0, world.cost)]
        areas = [area for command in closing for area in command.areas]
        costs, count = [(0, replace(world, no_go=()).cost)], 0
        for command in closing:
            count += len(command.areas)
            costs.append((command.after, replace(world, no_go=tuple(areas[:count])).cost))
        return costs

    def _cost_then(self, order: str) -> CostModel:
        """Return the cost model by which the route of an order was planned."""
        number = order_number(order)
        return next(cost for first, cost in reversed(self._costs) if number >= first)


def _lie_on(route: Array, sites: Array, reach: float) -> bool:
    """Return whether all sites (k, d) lie within `reach` of a route through points (p, d)."""
    starts, legs = route[:-1], np.diff(route, axis=0)
    lengths = np.maximum(np.sum(legs**2, axis=1), np.finfo(float).tiny)
    gaps = sites[:, None] - starts
    part = np.clip(np.einsum("kpd,pd->kp", gaps, legs) / lengths, 0.0, 1.0)
    off = np.linalg.norm(gaps - part[:, :, None] * legs, axis=2)
    return bool((off.min(axis=1) <= reach).all())


@dataclass(frozen=True, eq=False)
class Account:
    """The account of one vehicle.

    Attributes
    ----------
    lines : tuple of (Order, Entry, Entry)
        Each order in turn with its entry in the battery's ledger (cost unit) and in the time ledger (s).
    spent, left : float
        What all batteries spent, and what is left in the present one, in the cost unit.
    time_s : float
        When the last order was done.
    left_s : float
        What remains of the time limit; infinite without one.
    home : bool or None
        True if the vehicle is at home; None if it has no home.
    limit : str or None
        The limit that did not allow another site, ``"battery"`` or ``"time"``; None if the vehicle stopped
        for another reason.
    pauses : tuple of Pause
        What the vehicle's pauses took, in order.
    statements : tuple of Statement
        What people said is left in the battery, in order.
    battery_of : mapping of str to int
        Number of the battery with which each order was issued, counted from 1, by its id.
    batteries_used : int
    unexplained : mapping of int to (float, float)
        What reports took from each battery beyond its orders and pauses, if anything, and what was left.
    taken_back : set of str
        Ids of the orders that a command or a hold took back before they were done.
    """

    lines: tuple[tuple[Order, Entry, Entry], ...]
    spent: float
    left: float
    time_s: float
    left_s: float
    home: bool | None
    limit: str | None
    pauses: tuple[Pause, ...] = ()
    statements: tuple[Statement, ...] = ()
    battery_of: Mapping[str, int] = field(default_factory=dict)
    batteries_used: int = 1
    unexplained: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    taken_back: Set[str] = frozenset()

    @classmethod
    def of(cls, agent: Agent, vehicle: int) -> Account:
        """Return the present account of an agent's vehicle."""
        state = agent.vehicles[vehicle]
        time, home = state.time_ledger.entries, state.spec.home
        done = {e.order for e in agent.history if isinstance(e, Observation) and e.last and e.complete}
        batteries = [(n, k, e) for n, b in enumerate(state.ledgers, start=1) for k, e in b.entries.items()]
        return cls(
            lines=tuple((agent.issued[k].order, entry, time[k]) for _, k, entry in batteries),
            spent=state.spent,
            left=state.ledger.left,
            time_s=state.time_s,
            left_s=state.time_ledger.left,
            home=None if home is None else np.array_equal(state.position, home),
            limit=agent.endings.get(vehicle, {}).get("limit"),
            pauses=tuple(replace(pause) for pause in state.pauses),
            statements=tuple(state.statements),
            battery_of={k: number for number, k, _ in batteries},
            batteries_used=state.battery_number,
            unexplained={
                n: (math.fsum(b.unexplained), b.left) for n, b in enumerate(state.ledgers, 1) if b.unexplained
            },
            taken_back=agent.withdrawn - done,
        )

    @property
    def planned(self) -> float:
        """Declared cost of the orders whose real cost is known, in the cost unit.

        Orders without a declared cost count as 0, and those in `taken_back` as what they cost.
        """
        return math.fsum(
            self._expected(o, e) for o, e, _ in self.lines if not math.isnan(e.spent + e.planned)
        )

    @property
    def planned_s(self) -> float:
        """Declared duration of the orders whose real duration is known, in seconds; see `planned`."""
        return math.fsum(self._expected(o, e) for o, _, e in self.lines if not math.isnan(e.spent))

    def _expected(self, order: Order, entry: Entry) -> float:
        return entry.spent if str(order.id) in self.taken_back else entry.planned
