"""Counts and scores of a factory cell: runs of its modules, or plays of its control sets, and their cost.

A *cell* is a world whose cost model is a chain of modules, or whose domain has control sets. Any other world
has no counts and no further scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.question import Optimum
from fieldbo.costs.cells import Modular
from fieldbo.messages import Event, Observation, Order, Query, order_number
from fieldbo.mission.mission import Mission
from fieldbo.results.answers import ANSWERS
from fieldbo.results.metrics import (
    BEST_REGRET,
    SIMPLE_REGRET,
    Score,
    cost_regret,
    movement_regret,
    quality_regret,
    simple_regret,
)
from fieldbo.results.truth import ALPHA, ExpectedTruth, expected_truth_of, truth_of

LAMBDA = 0.1
"""Weight of movement cost against value in the movement regret."""

_NAN = float("nan")


@dataclass(frozen=True, eq=False)
class Play:
    """One sample of a cell.

    Attributes
    ----------
    order : str
        Id of its order.
    site : (d,) array
        Real values of all variables, in the axes' units.
    controls : (d,) bool array
        Variables that were set; the others were left to chance.
    kind : int
        Index of the first module that ran again, or of the control set.
    cost : float
        Real cost, in the world's cost unit.
    movement : float
        Declared cost of the change of settings, without the sampling.
    """

    order: str
    site: Array
    controls: Mask
    kind: int
    cost: float
    movement: float

    @property
    def number(self) -> int:
        """Number of its order, from 0; rejected orders leave gaps."""
        return order_number(self.order)


class CellRuns:
    """Counts and scores of a run's samples. This base class, for worlds that are not cells, counts nothing.

    Parameters
    ----------
    mission : Mission

    Attributes
    ----------
    plays : list of Play
        One per sample, in order.
    """

    names: tuple[str, ...] = ()
    """Names of the modules or control sets."""

    reading_columns: ClassVar[tuple[str, ...]] = ()
    """Further columns of ``observations.csv``."""

    step_columns: ClassVar[tuple[str, ...]] = ()
    """Attributes of a `Step` that apply to every question."""

    optimum_columns: ClassVar[tuple[str, ...]] = ()
    """Attributes of a `Step` that apply to an optimum only."""

    score: ClassVar[Score | None] = None
    """The score by which runs for an optimum are compared."""

    def __init__(self, mission: Mission) -> None:
        self.mission = mission
        self.plays: list[Play] = []

    @property
    def columns(self) -> tuple[str, ...]:
        """Attributes of a `Step` that a cell adds."""
        optimum = isinstance(self.mission.question, Optimum)
        return self.step_columns + (self.optimum_columns if optimum else ())

    def add(self, order: Order | None, event: Event) -> None:
        """Count an event of an order; pass each event once, in order."""

    def scores(self) -> dict[str, float]:
        """Return the scores of a `Step` for the plays so far."""
        return {}

    def summary(self) -> dict[str, Any]:
        """Return the counts, as in ``summary.json``."""
        return {}

    def reading_row(self, order: str) -> list[Any]:
        """Return the `reading_columns` of an order; NaN if it was not a play."""
        return []


class CountedRuns(CellRuns, ABC):
    """Counts and scores of a cell's samples, for modules and control sets alike."""

    def __init__(self, mission: Mission) -> None:
        super().__init__(mission)
        self._position = {k: vehicle.start for k, vehicle in enumerate(mission.vehicles)}
        self._cost: dict[str, float] = {}
        self._start: dict[str, Array] = {}
        self._site: dict[str, Array] = {}
        self._scored = 0

    def add(self, order: Order | None, event: Event) -> None:
        if order is None or not isinstance(event, Observation):
            return
        self._cost[event.order] = self._cost.get(event.order, 0.0) + event.cost
        self._start.setdefault(event.order, self._position[order.vehicle])
        if len(event.sites):
            self._site[event.order] = event.sites[-1]
        if isinstance(order, Query) and event.last and event.order in self._site:
            self.plays.append(self._play(order, event))
        self._position[order.vehicle] = event.position

    def _play(self, order: Query, event: Observation) -> Play:
        site, start, controls = self._site[event.order], self._start[event.order], order.controls
        everything = np.ones(len(site), dtype=bool)
        travel = self.mission.world.cost.travel(start, site[None])
        return Play(
            order=event.order,
            site=site,
            controls=everything if controls is None else controls,
            kind=self._kind(start, site, controls),
            cost=self._cost[event.order],
            movement=float(travel[0]),
        )

    @abstractmethod
    def _kind(self, position: Array, site: Array, controls: Mask | None) -> int:
        """Return the index of the first module that ran again, or of the control set."""

    @abstractmethod
    def costs_by_kind(self) -> Array:
        """Return the real cost of each play (T, kinds), split by module or control set."""

    @abstractmethod
    def _score(self, new: Sequence[Play]) -> dict[str, float]:
        """Return the scores including new plays; the truth of each play is computed once."""

    @abstractmethod
    def _row(self, play: Play) -> list[Any]:
        """Return the `reading_columns` of a play."""

    def scores(self) -> dict[str, float]:
        new, self._scored = self.plays[self._scored :], len(self.plays)
        return self._score(new)

    def reading_row(self, order: str) -> list[Any]:
        play = self._by_order.get(order)
        return [_NAN] * len(self.reading_columns) if play is None else self._row(play)

    @cached_property
    def _by_order(self) -> dict[str, Play]:
        return {play.order: play for play in self.plays}


class ModuleRuns(CountedRuns):
    """Runs of the modules of a chain, their cost, and the movement regret.

    The real cost is reported per sample; it is split among the modules that ran in proportion to their
    declared costs. Movement and its regret (Lin et al. 2021, eq. 7) use the declared costs.
    """

    reading_columns: ClassVar[tuple[str, ...]] = ("module", "movement")
    step_columns: ClassVar[tuple[str, ...]] = ("movement",)
    optimum_columns: ClassVar[tuple[str, ...]] = ("best_regret", "movement_regret")
    score: ClassVar[Score | None] = BEST_REGRET

    def __init__(self, mission: Mission) -> None:
        super().__init__(mission)
        assert isinstance(mission.world.cost, Modular)
        self.chain = mission.world.cost
        self.names = tuple(module.name for module in self.chain.modules)
        self._movement, self._regret, self._highest = 0.0, 0.0, -np.inf

    def _kind(self, position: Array, site: Array, controls: Mask | None) -> int:
        return int(self.chain.first_changed(position, site[None])[0])

    def costs_by_kind(self) -> Array:
        """Return the real cost of each play (T, N), split by declared cost; equally if that is 0."""
        ran = np.array([play.kind for play in self.plays])[:, None] <= np.arange(len(self.names))
        declared = np.array([module.cost for module in self.chain.modules])
        declared[-1] *= self.chain.charge_last
        charged = ran * declared
        shares = np.where(charged.any(axis=1, keepdims=True), charged, ran)
        costs = np.array([play.cost for play in self.plays])
        return np.asarray(shares * (costs / shares.sum(axis=1))[:, None])

    def _score(self, new: Sequence[Play]) -> dict[str, float]:
        self._movement += sum(play.movement for play in new)
        scores, question = {"movement": self._movement}, self.mission.question
        truth = truth_of(self.mission.world, question)
        if not isinstance(question, Optimum) or truth is None:
            return scores
        best = question.sign * truth.optimum.value
        for play in new:
            gain = question.sign * truth.at(play.site)
            self._highest = max(self._highest, gain)
            self._regret += movement_regret([-gain], -best, [play.movement], LAMBDA)
        if not self.plays:
            return scores
        return scores | {"best_regret": max(0.0, best - self._highest), "movement_regret": self._regret}

    def summary(self) -> dict[str, Any]:
        runs = [sum(play.kind <= number for play in self.plays) for number in range(len(self.names))]
        modules = zip(self.chain.modules, runs, self.costs_by_kind().sum(axis=0).tolist(), strict=True)
        return {
            "movement": float(sum(play.movement for play in self.plays)),
            "modules": [
                {"name": module.name, "cost": module.cost, "runs": count, "spent": spent}
                for module, count, spent in modules
            ],
        }

    def _row(self, play: Play) -> list[Any]:
        return [self.names[play.kind], play.movement]


class SetPlays(CountedRuns):
    """Plays of control sets and their regrets (Hoang et al. 2025), see `fieldbo.results.metrics`.

    All queries are plays, initial readings included. A play is scored by its true expected value, whatever
    values the free variables took.
    """

    reading_columns: ClassVar[tuple[str, ...]] = ("set",)
    optimum_columns: ClassVar[tuple[str, ...]] = (
        "last_play_value",
        "simple_regret",
        "quality_regret",
        "cost_regret",
    )
    score: ClassVar[Score | None] = SIMPLE_REGRET

    def __init__(self, mission: Mission) -> None:
        super().__init__(mission)
        self.names = tuple(control_set.name for control_set in mission.world.domain.control_sets)
        self._last, self._highest, self._quality_regret, self._cost_regret = _NAN, -np.inf, 0.0, 0.0

    def _kind(self, position: Array, site: Array, controls: Mask | None) -> int:
        assert self.mission.world.domain.controls is not None
        number = self.mission.world.domain.controls.index_of(controls)
        assert number is not None, "an agent issues no other query"
        return number

    def costs_by_kind(self) -> Array:
        played = np.array([play.kind for play in self.plays])[:, None] == np.arange(len(self.names))
        return np.asarray(played * np.array([play.cost for play in self.plays])[:, None])

    @property
    def expected(self) -> ExpectedTruth | None:
        """The truth of the sets; None in a live world, and for a level set."""
        world, question = self.mission.world, self.mission.question
        return expected_truth_of(world, question) if isinstance(question, Optimum) else None

    def _score(self, new: Sequence[Play]) -> dict[str, float]:
        expected = self.expected
        if expected is None or not self.plays:
            return {}
        cheapest_good = float(expected.costs[expected.good_enough[1]])
        for play in new:
            gain = float(expected.gains(play.site[None], play.controls)[0])
            self._last, self._highest = gain, max(self._highest, gain)
            self._quality_regret += quality_regret(expected.best, [gain], ALPHA)
            self._cost_regret += cost_regret([expected.costs[play.kind]], cheapest_good)
        return {
            "last_play_value": expected.value(self._last),
            "simple_regret": max(0.0, float(simple_regret(expected.best, [self._highest], [0.0], [0.0])[0])),
            "quality_regret": self._quality_regret,
            "cost_regret": self._cost_regret,
        }

    def summary(self) -> dict[str, Any]:
        expected, total = self.expected, sum(play.cost for play in self.plays)
        sets = []
        for number, name in enumerate(self.names):
            costs = [play.cost for play in self.plays if play.kind == number]
            spent = float(sum(costs))
            counts: dict[str, Any] = {
                "set": name,
                "plays": len(costs),
                "cost": spent,
                "mean_cost": spent / len(costs) if costs else None,
                "share_of_cost": spent / total if total > 0 else None,
            }
            if expected is not None:
                counts["best_value_true"] = expected.value(expected.best_of_sets[number])
                counts["good_enough_true"] = number in expected.good_enough[0]
            sets.append(counts)
        return {"control_sets": sets}

    def _row(self, play: Play) -> list[Any]:
        return [self.names[play.kind]]


def cell_runs_of(mission: Mission, events: Iterable[tuple[Order | None, Event]] = ()) -> CellRuns:
    """Return the counts and scores of a mission's samples.

    Parameters
    ----------
    mission : Mission
    events : iterable of (Order or None, Event)
        Events so far, each with its order.

    Examples
    --------
    >>> import fieldbo
    >>> cell_runs_of(fieldbo.load_mission("lake-level-set")).columns
    ()
    """
    world = mission.world
    kind = (
        SetPlays if world.domain.control_sets else ModuleRuns if isinstance(world.cost, Modular) else CellRuns
    )
    runs = kind(mission)
    for order, event in events:
        runs.add(order, event)
    return runs


def judged_by(mission: Mission) -> Score:
    """Return the score by which runs of a mission are compared: F1, the regret, or a cell's own regret."""
    cell_score = cell_runs_of(mission).score if isinstance(mission.question, Optimum) else None
    return cell_score or ANSWERS[type(mission.question)].score
