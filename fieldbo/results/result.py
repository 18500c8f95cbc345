"""What came of a run: path, maps, curve, answer and summary; and the files of a run folder."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.agent.agent import Agent
from fieldbo.agent.ledger import rounded
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.belief.model import Hyperparameters
from fieldbo.belief.question import Optimum
from fieldbo.belief.surface import Surface
from fieldbo.messages import EndReason, Lost, Observation, Query, Rejected
from fieldbo.mission.files import write_whole
from fieldbo.mission.mission import Mission
from fieldbo.results.accounts import Account, ledger_table
from fieldbo.results.answers import Answer, LevelSetAnswer, OptimumAnswer, answer_of
from fieldbo.results.cell_runs import CellRuns, SetPlays, cell_of
from fieldbo.results.curve import Step
from fieldbo.results.metrics import Confidence, OptimumConfidence
from fieldbo.results.recommendation import BestPlay, best_plays, recommended
from fieldbo.results.tables import table

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class Result:
    """What came of a run.

    Attributes
    ----------
    mission : Mission
    run : str
        Name of the run.
    end_reason : EndReason or None
        None where the run was interrupted and can go on.
    curve : tuple of Step
        One an order, in order.
    queries : tuple of Query
    observations : tuple of Observation
    rejections : tuple of Rejected
    surface : Surface
        The final belief over the sites, in model units.
    hyperparameters : Hyperparameters
    cost : float
        What was spent, in the world's cost unit.
    notes : tuple of str
        What a user should know: warnings, readings left out.
    books : tuple of Account
        One a vehicle: what each of its orders was planned to take, and what it took.
    best_plays : tuple of BestPlay
        The best settings of each control set by the final belief, see `plays.best_plays`.
    """

    mission: Mission
    run: str
    end_reason: EndReason | None
    curve: tuple[Step, ...]
    queries: tuple[Query, ...]
    observations: tuple[Observation, ...]
    rejections: tuple[Rejected, ...]
    surface: Surface
    hyperparameters: Hyperparameters
    cost: float
    notes: tuple[str, ...] = ()
    books: tuple[Account, ...] = ()
    best_plays: tuple[BestPlay, ...] = ()

    @classmethod
    def of(cls, agent: Agent, curve: Sequence[Step] = (), reason: EndReason | None = None) -> Result:
        """Return what came of an agent's run so far, for example at the end of a loop of your own.

        Parameters
        ----------
        agent : Agent
        curve : sequence of Step
            How things stood after each order, as `Scorer.step` gives it.
        reason : EndReason, optional
            Why it ended.
        """
        found = cls(
            mission=agent.mission,
            run=agent.run,
            end_reason=reason,
            curve=tuple(curve),
            queries=tuple(i.order for i in agent.issued.values() if isinstance(i.order, Query)),
            observations=tuple(e for e in agent.history if isinstance(e, Observation)),
            rejections=tuple(e for e in agent.history if isinstance(e, Rejected)),
            surface=agent.surface,
            hyperparameters=agent.hyperparameters,
            cost=agent.spent,
            notes=tuple(_notes(agent, reason)),
            books=tuple(Account.of(agent, k) for k in range(len(agent.vehicles))),
        )
        if not agent.domain.control_sets or not isinstance(found.answer, OptimumAnswer):
            return found
        seen = replace(agent.seen(), draw=partial(stream, agent.mission.seed, "score"))
        with one_blas_thread():
            return replace(found, best_plays=best_plays(seen, found.answer.reported.point))

    # -- what it answers -------------------------------------------------------------------------------

    @cached_property
    def answer(self) -> Answer:
        """What the final belief answers to the question: the classified sites, or the optimum."""
        answer = answer_of(self.mission, self.surface, self.hyperparameters.scale)
        return answer.polished(self.sites) if isinstance(answer, OptimumAnswer) else answer

    @property
    def truth(self) -> Array | None:
        """The true values at the sites (N,), in the user's unit; None in a live world."""
        return None if self.answer.truth is None else self.answer.truth.values

    @property
    def f1(self) -> float | None:
        """F1 of the final classification against the truth; None without one, and for an optimum."""
        return self.answer.scores().get("f1") if isinstance(self.answer, LevelSetAnswer) else None

    @property
    def regret(self) -> float | None:
        """Regret of the reported optimum, in the user's unit; None without a truth, and for a level set."""
        return self.answer.regret if isinstance(self.answer, OptimumAnswer) else None

    @property
    def confidence(self) -> Confidence | OptimumConfidence:
        """What the belief expects of its answer, with 90% intervals."""
        return self.answer.confidence

    @property
    def play(self) -> BestPlay | None:
        """The play to go on with, see `plays.recommended`; None where there are no `best_plays`."""
        return recommended(self.best_plays, self.mission.question.sign)

    # -- what happened ---------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """How many queries were settled by an observation."""
        asked = {q.id for q in self.queries}
        return sum(o.last and o.order in asked for o in self.observations)

    @property
    def sites(self) -> Array:
        """Where readings were taken, (n, d), in order."""
        d = self.mission.world.domain.dimension
        return np.concatenate([np.empty((0, d)), *(o.sites for o in self.observations)])

    @property
    def values(self) -> Array:
        """The readings (n,), in the user's unit."""
        return np.concatenate([np.empty(0), *(o.values for o in self.observations)])

    @property
    def levels(self) -> NDArray[np.int64]:
        """The sensor's setting of each reading, (n,)."""
        level = self._level_of_order
        return np.array([level.get(o.order, 0) for o in self.observations for _ in o.values], dtype=np.int64)

    @cached_property
    def usable(self) -> Mask:
        """Which readings the model could take, (n,) bool: finite, and above 0 under a log."""
        return self.hyperparameters.scale.usable(self.values)

    @cached_property
    def believed(self) -> Mask:
        """Which readings the final model goes by, (n,) bool: usable, and not taken for outliers."""
        noises = np.concatenate([np.empty(0), *(o.noise_variances for o in self.observations)])
        believed, good = self.usable.copy(), self.usable
        with one_blas_thread():
            believed[good] = self.mission.model.believed(
                self.hyperparameters, self.sites[good], self.values[good], noises[good]
            )
        return believed

    @cached_property
    def cell(self) -> CellRuns:
        """What is counted of a cell's samples; in any other world nothing."""
        orders = {str(q.id): q for q in self.queries}
        return cell_of(self.mission, ((orders.get(o.order), o) for o in self.observations))

    @cached_property
    def _level_of_order(self) -> dict[str, int]:
        return {str(q.id): q.level for q in self.queries}

    @cached_property
    def path(self) -> Array:
        """The way really taken, (k, d) points from the start to where the vehicle is.

        Straight to where no way is known to lead: a vehicle may drift into the clearance of an obstacle.
        """
        at, cost, time_s = self.mission.vehicles[0].start, self.mission.world.cost, 0.0
        way = [at[None]]
        for event in self.observations:
            for stop in [*event.sites, event.position]:
                if not np.array_equal(stop, at):
                    there = bool(np.isfinite(cost.travel(at, stop[None], time_s)[0]))
                    way.append(cost.path(at, stop, time_s)[1:] if there else stop[None])
                    at = stop
        return np.concatenate(way)

    # -- files -----------------------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """Return the run in numbers, as in ``summary.json``; only what applies to its question is there."""
        mission, answer = self.mission, self.answer
        world, column = mission.world, answer.score.column
        costs, scores = [s.cost for s in self.curve], [getattr(s, column) for s in self.curve]
        return {
            "run": self.run,
            "mission": mission.name,
            "world": world.name,
            "policy": mission.policy_kind,
            "draw": world.draw,
            "seed": mission.seed,
            "question": answer.kind,
            "value_unit": world.quantity.unit,
            "end_reason": None if self.end_reason is None else self.end_reason.value,
            "complete": self.end_reason is not None,
            **answer.summary(costs, scores),
            **self._plays(),
            **self.cell.summary(),
            **self._cell_scores(),
            **self._measured(),
            "cost": self.cost,
            "planned_cost": math.fsum(b.planned for b in self.books),
            "cost_unit": world.cost_unit,
            "costs": mission.costs,
            "battery": sum(c.battery for c in mission.vehicles),
            "left": math.fsum(b.left for b in self.books),
            "time_s": max((b.time_s for b in self.books), default=0.0),
            "planned_time_s": max((b.planned_s for b in self.books), default=0.0),
            **self._limits(),
            "batch": mission.batch,
            "steps": self.steps,
            "readings": len(self.values),
            **({"outliers": int(np.count_nonzero(self.usable & ~self.believed))} if self._tested else {}),
            **({"levels": self._by_level()} if world.sensor.settings > 1 else {}),
            "start": mission.vehicles[0].start.tolist(),
            "hyperparameters": self.hyperparameters.to_plain(),
            "notes": list(self.notes),
        }

    def _plays(self) -> dict[str, Any]:
        """Return the play to go on with, and the best of each control set; nothing where no set is played."""
        cell = self.cell
        if not isinstance(cell, SetPlays) or not isinstance(self.answer, OptimumAnswer):
            return {}
        plain = partial(BestPlay.plain, world=self.mission.world, truth=cell.expected)
        play = self.play
        return {
            "play": None if play is None else plain(play),
            "best_plays": [plain(one) for one in self.best_plays],
        }

    def _cell_scores(self) -> dict[str, float | None]:
        """Return the scores that a cell adds, as of the last step; None where they are not known."""
        last = {name: getattr(self.curve[-1], name) for name in self.cell.columns} if self.curve else {}
        return {name: None if math.isnan(score) else score for name, score in last.items()}

    def _measured(self) -> dict[str, Any]:
        """Return the sums of what was measured on the spot, as seconds are; nothing where nothing was."""
        names = () if (field := self.mission.world.field) is None else field.measured
        totals = {
            name: math.fsum(x for o in self.observations for x in (o.channels or {}).get(name, ()))
            for name in names
        }
        return {"measured": totals} if totals else {}

    def _limits(self) -> dict[str, Any]:
        """Return what applies of: time limit, home, and the limit that ended the run."""
        told: dict[str, Any] = {}
        limits = [c.time_limit_s for c in self.mission.vehicles if c.time_limit_s is not None]
        if limits:
            told |= {"time_limit_s": min(limits), "left_s": min(b.left_s for b in self.books)}
        home = [b.home for b in self.books if b.home is not None]
        told["home"] = all(home) if home else None
        told["limit"] = next((b.limit for b in self.books if b.limit is not None), None)
        return told

    @property
    def _tested(self) -> bool:
        return self.mission.model.outliers == "tested"

    def _by_level(self) -> list[dict[str, Any]]:
        """Return readings, and the cost of their orders, for each of the sensor's settings."""
        level, read = self._level_of_order, self.levels
        return [
            {
                "level": k,
                "noise_variance": one.variance,
                "readings": int(np.count_nonzero(read == k)),
                "cost": math.fsum(o.cost for o in self.observations if level.get(o.order) == k),
            }
            for k, one in enumerate(self.mission.world.sensor.levels)
        ]

    def maps(self) -> xarray.Dataset:
        """Return the final maps as a labelled data set, with CF names and units; see `results.maps`."""
        from fieldbo.results import maps

        return maps.of(self)

    def save(self, folder: Path | str) -> None:
        """Write summary, tables, maps and pictures into a folder; each file appears whole or not at all.

        Writes ``summary.json``, ``observations.csv``, ``path.csv``, ``curve.csv``, ``ledger.csv``,
        ``map.nc``, ``path.png``, ``map.png`` and ``curve.png``.
        """
        from fieldbo.results import plot

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "summary.json", json.dumps(self.summary(), indent=2).encode() + b"\n")
        for name, content in self.tables().items():
            write_whole(folder / name, content)
        write_whole(folder / "map.nc", bytes(self.maps().to_netcdf(engine="scipy")))
        for name, draw in (
            ("path.png", plot.path_picture),
            ("map.png", plot.map_picture),
            ("curve.png", plot.curve_picture),
        ):
            picture = io.BytesIO()
            plot.save(draw(self), picture)
            write_whole(folder / name, picture.getvalue())

    def readings(self) -> tuple[list[str], list[list[Any]]]:
        """Return header and rows of ``observations.csv``: the readings, in order.

        No two columns are called the same: an axis or a channel that is called as another column is said to
        be one, as in ``value channel``.
        """
        channels = sorted({c for o in self.observations for c in (o.channels or {})})
        several = self.mission.world.sensor.settings > 1
        vehicle_of = {str(q.id): q.vehicle for q in self.queries} if len(self.books) > 1 else None
        before = ["order", *([] if vehicle_of is None else ["vehicle"])]
        behind = ["value", "noise_sd", *(["level"] if several else []), "time_s", "cost"]
        behind += [*self.cell.described, *(["believed"] if self._tested else [])]
        axes: list[str] = []
        for axis in self.mission.world.domain.axes:
            axes.append(_free(axis.name, "axis", [*before, *axes, *behind]))
        header = [*before, *axes, *behind]
        believed = iter(self.believed)
        rows = []
        for o in self.observations:
            level = [self._level_of_order.get(o.order)] if several else []
            order = [o.order, *([] if vehicle_of is None else [vehicle_of.get(o.order)])]
            for k in range(len(o.values)):
                extra = [
                    float((o.channels or {}).get(c, np.full(len(o.values), np.nan))[k]) for c in channels
                ]
                noise = float(np.sqrt(o.noise_variances[k]))
                paid = o.cost if k == len(o.values) - 1 else 0.0
                row = [*order, *o.sites[k], o.values[k], noise, *level, o.times_s[k], paid]
                row += self.cell.described_by(o.order)
                rows.append([*row, *([int(next(believed))] if self._tested else []), *extra])
        for name in channels:
            header.append(_free(name, "channel", [*header, "time"]))  # which exports add
        return header, rows

    def tables(self) -> dict[str, bytes]:
        """Return the CSV files of a run folder, by name: observations, path, curve and ledger."""
        axes = [a.name for a in self.mission.world.domain.axes]
        columns = Step.columns(self.mission.question, self.cell.columns)
        steps = [[getattr(s, name) for name in columns] for s in self.curve]
        return {
            "observations.csv": table(*self.readings()),
            "path.csv": table(axes, self.path.tolist()),
            "curve.csv": table(columns, steps),
            "ledger.csv": ledger_table(self.books),
        }


def _free(name: str, what: str, taken: Sequence[str]) -> str:
    """Return what a column is called among others: its name and, if another has that, `what` it is."""
    while name in taken:
        name = f"{name} {what}"
    return name


_LIMITS = {"battery": "the battery", "time": "the time limit"}
_ROUNDING = 1e-9  # share of what there was
_FEWEST = 5  # readings by which another is judged


def _overdrawn(craft: VehicleState, unit: str) -> list[str]:
    """Return how much more than there was a vehicle took, of the battery and of the time."""
    why = (
        "the last order took more than expected: costs were unknown"
        if craft.cost is None
        else "orders took more than declared, and than the margin allows for"
    )
    return [
        f"{rounded(-book.left, book.battery)} {what} more than {_LIMITS[limit]} had: {why}"
        for limit, book, what in (("battery", craft.ledger, unit), ("time", craft.time_ledger, "s"))
        if book.left < -_ROUNDING * book.battery
    ]


def _unexplained(craft: VehicleState, unit: str) -> Iterator[str]:
    """Yield how far the battery's own reports were from what orders cost."""
    book = craft.ledger
    gap = math.fsum(book.unexplained)
    if abs(gap) > _ROUNDING * book.battery:
        amount, side = rounded(abs(gap), book.battery), "less" if gap > 0 else "more"
        yield f"the battery held {amount} {unit} {side} than its orders explain: its own reports count"


_FAR = 1000.0
"""A reading this many times as far from the others as they are from each other is hardly one."""


def _far_off(agent: Agent) -> Iterator[str]:
    """Yield that a reading is nothing like all the others, where the model believes it."""
    read = [(v, e.order) for e in agent.history if isinstance(e, Observation) for v in e.values.tolist()]
    read = sorted(one for one in read if math.isfinite(one[0]))
    if len(read) < _FEWEST or agent.disbelieved:
        return
    for (value, order), rest in ((read[-1], read[:-1]), (read[0], read[1:])):
        low, high = rest[0][0], rest[-1][0]
        if max(value - high, low - value) > _FAR * (high - low) > 0:
            yield (
                f"the reading of {order} is {value:.4g}, all others {low:.4g} to {high:.4g}: if it can't be, "
                'set low and high under [reports] in the vehicle file, or outliers = "tested" in [model]'
            )


def _ending(craft: VehicleState, limit: str, unit: str) -> str:
    """Return how a vehicle ended whose battery or time paid for nothing more."""
    crew, home = craft.spec, craft.spec.home
    rest = max(0.0, craft.ledger.left)
    left = f"{rounded(rest, crew.battery)} {unit}"
    if rest < crew.reserve - _ROUNDING * crew.battery:
        reserve = rounded(crew.reserve, crew.battery)
        left += f" (of a reserve of {reserve}: orders took more than the margin allows for)"
    elif crew.reserve:
        left += f" ({rounded(min(rest, crew.reserve), crew.battery)} of it the reserve)"
    if crew.time_limit_s is not None:
        left += f" and {rounded(max(0.0, craft.time_ledger.left), crew.time_limit_s)} s"
    came = "stopped" if home is None else "went home" if np.array_equal(craft.position, home) else "not home"
    return f"{came} with {left} left: {_LIMITS[limit]} pays for no further site"


def _notes(agent: Agent, reason: EndReason | None) -> Iterator[str]:
    """Yield what a user should know of a run."""
    mission = agent.mission
    yield from getattr(mission.world.field, "notes", ())
    yield from agent.warnings
    for kind, what in ((Rejected, "rejected"), (Lost, "lost")):
        if number := sum(isinstance(e, kind) for e in agent.history):
            yield f"orders {what}: {number}"
    read = [e.values for e in agent.history if isinstance(e, Observation)]
    values = np.concatenate([np.empty(0), *read])
    yield from answer_of(mission, agent.surface, agent.hyperparameters.scale).notes(values, reason)
    scale = agent.hyperparameters.scale
    if agent.domain.control_sets and isinstance(mission.question, Optimum) and scale.transform != "none":
        yield (
            "no play is recommended: expectations over what is left free are of the values, and the model is "
            'of their log (transform = "log" in [model])'
        )
    left = any(isinstance(i.order, Query) for i in agent.issued.values())
    for number, craft in enumerate(agent.vehicles):
        limit = agent.endings.get(number, {}).get("limit")
        who = f"vehicle {number}: " if len(agent.vehicles) > 1 else ""
        if limit is not None and not left:
            yield f"{who}{_LIMITS[limit]} pays for no reading at all"
        elif reason is not None and (limit == "time" or (limit and craft.spec.home is not None)):
            yield who + _ending(craft, limit, mission.world.cost_unit)
        yield from (who + told for told in _overdrawn(craft, mission.world.cost_unit))
        yield from (who + told for told in _unexplained(craft, mission.world.cost_unit))
    if reason is EndReason.VEHICLE_LOST:
        yield (
            "orders were lost one after the other: when_lost in [agent] says after how many a mission ends, "
            'or that it waits: then = "wait"'
        )
    yield from _far_off(agent)
    if agent.disbelieved:
        yield f"{agent.disbelieved} of {agent.readings} readings are taken for outliers, and left out"
    if agent.left_out:
        yield f"{agent.left_out} readings could not be modelled (not finite, or not above 0 under a log)"
