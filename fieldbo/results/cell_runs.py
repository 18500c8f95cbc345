"""What a run leaves behind in a cell: which modules ran, or which control sets were played, and the price.

A *cell* is a world whose costs are those of a chain of modules, or whose domain has control sets. In any
other world nothing is counted, and nothing is told.
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
from fieldbo.costs.chain import Modular
from fieldbo.messages import Event, Observation, Order, Query
from fieldbo.mission.mission import Mission
from fieldbo.policies.chains.arm_tree import movement_regret
from fieldbo.results.answers import ANSWERS
from fieldbo.results.expected_truth import ALPHA, ExpectedTruth, expected_truth_of
from fieldbo.results.metrics import BEST_REGRET, SIMPLE_REGRET, Score
from fieldbo.results.regrets import cost_regret, quality_regret
from fieldbo.results.truth import Truth, truth_of

LAMBDA = 0.1
"""What a unit of movement cost weighs against a unit of value, in the movement regret."""

_NAN = float("nan")


@dataclass(frozen=True, eq=False)
class Play:
    """One sample of a cell.

    Attributes
    ----------
    order : str
        Its id.
    site : (d,) array
        Where it came about, in the axes' units.
    controls : (d,) bool array
        Which variables were set; the others came about by chance.
    kind : int
        Which module was the first to run anew, or which control set was played.
    cost : float
        What it really cost, in the world's cost unit.
    movement : float
        What its change of settings costs by the world's costs: all but the sampling.
    """

    order: str
    site: Array
    controls: Mask
    kind: int
    cost: float
    movement: float

    @property
    def number(self) -> int:
        """That of its order, the first of a run being 0: orders that were turned down leave gaps."""
        return int(self.order.rpartition("/")[2])


class CellRuns:
    """What is counted of a run's samples; of a world that is no cell, nothing.

    Parameters
    ----------
    mission : Mission

    Attributes
    ----------
    plays : list of Play
        One a sample, in order; only in a cell.
    """

    names: tuple[str, ...] = ()
    """Of the kinds of plays: modules, or control sets."""

    described: ClassVar[tuple[str, ...]] = ()
    """Columns of ``observations.csv``."""

    counted: ClassVar[tuple[str, ...]] = ()
    """Of a `Step`: the columns that every question has."""

    judged: ClassVar[tuple[str, ...]] = ()
    """Of a `Step`: those of a question for an optimum besides."""

    better: ClassVar[Score | None] = None
    """What runs are compared by where the question is for an optimum."""

    def __init__(self, mission: Mission) -> None:
        self.mission = mission
        self.plays: list[Play] = []

    @property
    def columns(self) -> tuple[str, ...]:
        """Of a `Step`: those that a cell adds."""
        return self.counted + (self.judged if isinstance(self.mission.question, Optimum) else ())

    def take(self, order: Order | None, event: Event) -> None:
        """Count an event, and the order that it is told of; each once, in order."""

    def scores(self) -> dict[str, float]:
        """Return the scores of a `Step`, by the plays so far."""
        return {}

    def summary(self) -> dict[str, Any]:
        """Return what was counted, as in ``summary.json``."""
        return {}

    def described_by(self, order: str) -> list[Any]:
        """Return what the columns `described` say of an order; NaN, which is empty, if it was no play."""
        return []


class Counted(CellRuns, ABC):
    """What is counted of a cell's samples, whatever its kind."""

    def __init__(self, mission: Mission) -> None:
        super().__init__(mission)
        self._at = {k: one.start for k, one in enumerate(mission.vehicles)}
        self._paid: dict[str, float] = {}
        self._from: dict[str, Array] = {}
        self._read: dict[str, Array] = {}
        self._scored = 0

    def take(self, order: Order | None, event: Event) -> None:
        if order is None or not isinstance(event, Observation):
            return
        self._paid[event.order] = self._paid.get(event.order, 0.0) + event.cost
        self._from.setdefault(event.order, self._at[order.vehicle])
        if len(event.sites):
            self._read[event.order] = event.sites[-1]
        if isinstance(order, Query) and event.last and event.order in self._read:
            self.plays.append(self._play(order, event))
        self._at[order.vehicle] = event.position

    def _play(self, order: Query, event: Observation) -> Play:
        site, start, controls = self._read[event.order], self._from[event.order], order.controls
        everything = np.ones(len(site), dtype=bool)
        travel = self.mission.world.cost.travel(start, site[None])
        return Play(
            order=event.order,
            site=site,
            controls=everything if controls is None else controls,
            kind=self._kind(start, site, controls),
            cost=self._paid[event.order],
            movement=float(travel[0]),
        )

    @abstractmethod
    def _kind(self, position: Array, site: Array, controls: Mask | None) -> int:
        """Return which module was the first to run anew, or which control set was played."""

    @abstractmethod
    def costs_by_kind(self) -> Array:
        """Return what each play really cost (T, kinds), by the module or control set that it was paid for."""

    @abstractmethod
    def _score(self, new: Sequence[Play]) -> dict[str, float]:
        """Return the scores with new plays taken in; each is looked up in the truth once."""

    @abstractmethod
    def _described(self, play: Play) -> list[Any]:
        """Return what the columns `described` say of a play."""

    def scores(self) -> dict[str, float]:
        new, self._scored = self.plays[self._scored :], len(self.plays)
        return self._score(new)

    def described_by(self, order: str) -> list[Any]:
        play = self._by_order.get(order)
        return [_NAN] * len(self.described) if play is None else self._described(play)

    @cached_property
    def _by_order(self) -> dict[str, Play]:
        return {play.order: play for play in self.plays}


class ModuleRuns(Counted):
    """Which modules of a chain ran, what was paid for them, and the regret of moving.

    What was really paid is told of a sample as a whole; it is shared among the modules that ran as they are
    priced. Movement, and its regret (Lin et al. 2021, eq. 7), go by the prices.
    """

    described: ClassVar[tuple[str, ...]] = ("module", "movement")
    counted: ClassVar[tuple[str, ...]] = ("movement",)
    judged: ClassVar[tuple[str, ...]] = ("best_regret", "movement_regret")
    better: ClassVar[Score | None] = BEST_REGRET

    def __init__(self, mission: Mission) -> None:
        super().__init__(mission)
        assert isinstance(mission.world.cost, Modular)
        self.chain = mission.world.cost
        self.names = tuple(one.name for one in self.chain.modules)
        self._movement, self._regret, self._highest = 0.0, 0.0, -np.inf

    def _kind(self, position: Array, site: Array, controls: Mask | None) -> int:
        return int(self.chain.first_changed(position, site[None])[0])

    def costs_by_kind(self) -> Array:
        """Return what each play really cost (T, N), shared as priced, equally where all that ran is free."""
        ran = np.array([play.kind for play in self.plays])[:, None] <= np.arange(len(self.names))
        charged = np.array([one.cost for one in self.chain.modules])
        charged[-1] *= self.chain.charge_last
        priced = ran * charged
        shares = np.where(priced.any(axis=1, keepdims=True), priced, ran)
        paid = np.array([play.cost for play in self.plays])
        return np.asarray(shares * (paid / shares.sum(axis=1))[:, None])

    @property
    def _truth(self) -> Truth | None:
        return truth_of(self.mission.world, self.mission.question)

    def _score(self, new: Sequence[Play]) -> dict[str, float]:
        self._movement += sum(play.movement for play in new)
        told, question = {"movement": self._movement}, self.mission.question
        truth = self._truth
        if not isinstance(question, Optimum) or truth is None:
            return told
        best = question.sign * truth.optimum.value
        for play in new:
            gain = question.sign * truth.at(play.site)
            self._highest = max(self._highest, gain)
            self._regret += movement_regret([-gain], -best, [play.movement], LAMBDA)
        if not self.plays:
            return told
        return told | {"best_regret": max(0.0, best - self._highest), "movement_regret": self._regret}

    def summary(self) -> dict[str, Any]:
        runs = [sum(play.kind <= number for play in self.plays) for number in range(len(self.names))]
        told = zip(self.chain.modules, runs, self.costs_by_kind().sum(axis=0).tolist(), strict=True)
        return {
            "movement": float(sum(play.movement for play in self.plays)),
            "modules": [
                {"name": one.name, "cost": one.cost, "runs": count, "spent": spent}
                for one, count, spent in told
            ],
        }

    def _described(self, play: Play) -> list[Any]:
        return [self.names[play.kind], play.movement]


class SetPlays(Counted):
    """Which control sets were played, and the regrets of that (Hoang et al. 2025); `fieldbo.results.regrets`.

    All orders are plays, the initial readings too. Of each the true expected value counts, whatever values
    the free variables took.
    """

    described: ClassVar[tuple[str, ...]] = ("set",)
    judged: ClassVar[tuple[str, ...]] = ("last_play_value", "simple_regret", "quality_regret", "cost_regret")
    better: ClassVar[Score | None] = SIMPLE_REGRET

    def __init__(self, mission: Mission) -> None:
        super().__init__(mission)
        self.names = tuple(one.name for one in mission.world.domain.control_sets)
        self._last, self._highest, self._quality, self._cost = _NAN, -np.inf, 0.0, 0.0

    def _kind(self, position: Array, site: Array, controls: Mask | None) -> int:
        assert self.mission.world.domain.controls is not None
        number = self.mission.world.domain.controls.index_of(controls)
        assert number is not None, "an agent lets out nothing else"
        return number

    def costs_by_kind(self) -> Array:
        played = np.array([play.kind for play in self.plays])[:, None] == np.arange(len(self.names))
        return np.asarray(played * np.array([play.cost for play in self.plays])[:, None])

    @property
    def expected(self) -> ExpectedTruth | None:
        """What is true of the sets; None in a live world, and where no optimum is sought."""
        world, question = self.mission.world, self.mission.question
        return expected_truth_of(world, question) if isinstance(question, Optimum) else None

    def _score(self, new: Sequence[Play]) -> dict[str, float]:
        expected = self.expected
        if expected is None or not self.plays:
            return {}
        good = float(expected.costs[expected.good[1]])
        for play in new:
            gain = float(expected.gains(play.site[None], play.controls)[0])
            self._last, self._highest = gain, max(self._highest, gain)
            self._quality += quality_regret(expected.best, [gain], ALPHA)
            self._cost += cost_regret([expected.costs[play.kind]], good)
        return {
            "last_play_value": expected.value(self._last),
            "simple_regret": max(0.0, expected.best - self._highest),
            "quality_regret": self._quality,
            "cost_regret": self._cost,
        }

    def summary(self) -> dict[str, Any]:
        expected, whole = self.expected, sum(play.cost for play in self.plays)
        sets = []
        for number, name in enumerate(self.names):
            costs = [play.cost for play in self.plays if play.kind == number]
            spent = float(sum(costs))
            one: dict[str, Any] = {
                "set": name,
                "plays": len(costs),
                "cost": spent,
                "mean_cost": spent / len(costs) if costs else None,
                "share_of_cost": spent / whole if whole > 0 else None,
            }
            if expected is not None:
                one["best_value_true"] = expected.value(expected.best_of_sets[number])
                one["good_enough_true"] = number in expected.good[0]
            sets.append(one)
        return {"control_sets": sets}

    def _described(self, play: Play) -> list[Any]:
        return [self.names[play.kind]]


def cell_of(mission: Mission, told: Iterable[tuple[Order | None, Event]] = ()) -> CellRuns:
    """Return what is counted of a mission's samples.

    Parameters
    ----------
    mission : Mission
    told : iterable of (Order or None, Event)
        Events so far, each with the order that it is told of.

    Examples
    --------
    >>> import fieldbo
    >>> cell_of(fieldbo.load_mission("lake-level-set")).columns
    ()
    """
    world = mission.world
    kind = (
        SetPlays if world.domain.control_sets else ModuleRuns if isinstance(world.cost, Modular) else CellRuns
    )
    cell = kind(mission)
    for order, event in told:
        cell.take(order, event)
    return cell


def judged_by(mission: Mission) -> Score:
    """Return what runs of a mission are compared by: F1, the regret, or in a cell a regret of its own."""
    score = ANSWERS[type(mission.question)].score
    own = cell_of(mission).better
    return own if own is not None and isinstance(mission.question, Optimum) else score
