"""What came of a run: path, maps, curve and summary; and the files of a run folder."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldbo.agent import Agent
from fieldbo.domain import Array, Mask
from fieldbo.exchange import EndReason, Lost, Observation, Query, Rejected
from fieldbo.metrics import Confidence, confidence, expected_f1, f1_score, unclassified
from fieldbo.mission import Mission
from fieldbo.model import Hyperparameters
from fieldbo.streams import stream
from fieldbo.surface import Surface
from fieldbo.threads import one_blas_thread

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Step:
    """How things stood after an order was settled.

    Attributes
    ----------
    step : int
        Number of settled orders.
    cost : float
        Spent so far, in the world's cost unit.
    remaining : float
        Left in the battery.
    time_s : float
    readings : int
    f1 : float
        Against the truth; NaN without one.
    expected_f1 : float
        By the belief.
    unclassified : float
        Share of sites whose threshold lies within 1.96 standard deviations of their mean.
    """

    step: int
    cost: float
    remaining: float
    time_s: float
    readings: int
    f1: float
    expected_f1: float
    unclassified: float


class Scorer:
    """Scores an agent's belief after each order; the truth is looked up once.

    Parameters
    ----------
    mission : Mission
    """

    def __init__(self, mission: Mission) -> None:
        world = mission.world
        self.truth: Array | None = None if world.live else world.truth(world.domain.sites)
        self.true_above: Mask | None = (
            None if self.truth is None else self.truth >= mission.question.threshold
        )

    def step(self, agent: Agent) -> Step:
        """Return how things stand now."""
        surface, threshold = agent.surface, agent.threshold
        above = surface.mean >= threshold
        return Step(
            step=agent.steps,
            cost=agent.spent,
            remaining=sum(c.ledger.available for c in agent.crafts),
            time_s=max(c.time_s for c in agent.crafts),
            readings=agent.readings,
            f1=float("nan") if self.true_above is None else f1_score(above, self.true_above),
            expected_f1=expected_f1(above, surface.exceedance(threshold)),
            unclassified=unclassified(surface, threshold),
        )


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
    truth : (N,) array or None
        The true values at the sites.
    cost : float
        What was spent, in the world's cost unit.
    notes : tuple of str
        What a user should know: warnings, readings left out.
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
    truth: Array | None
    cost: float
    notes: tuple[str, ...] = ()

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
        mission = agent.mission
        notes = [*getattr(mission.world.field, "notes", ()), *agent.warnings]
        for kind, what in ((Rejected, "rejected"), (Lost, "lost")):
            if number := sum(isinstance(e, kind) for e in agent.history):
                notes.append(f"orders {what}: {number}")
        above = agent.surface.mean >= agent.threshold
        if reason is EndReason.QUESTION_ANSWERED and above.all() == above.any():
            side = "above" if above.all() else "below"
            notes.append(
                f"every site is classified as {side}: the model is sure of it, yet no reading lies beyond "
                "the threshold; see the interval of the expected F1"
            )
        if reason is EndReason.BATTERY_SPENT and not agent.readings:
            notes.append("the battery pays for no reading at all")
        if agent.left_out:
            notes.append(
                f"{agent.left_out} readings could not be modelled (not finite, or not above 0 under a log)"
            )
        return cls(
            mission=mission,
            run=agent.run,
            end_reason=reason,
            curve=tuple(curve),
            queries=tuple(o for o in agent.orders.values() if isinstance(o, Query)),
            observations=tuple(e for e in agent.history if isinstance(e, Observation)),
            rejections=tuple(e for e in agent.history if isinstance(e, Rejected)),
            surface=agent.surface,
            hyperparameters=agent.hyperparameters,
            truth=None if mission.world.live else mission.world.truth(mission.world.domain.sites),
            cost=agent.spent,
            notes=tuple(notes),
        )

    @property
    def threshold(self) -> float:
        """The question's threshold, in model units."""
        return float(self.hyperparameters.scale.to_model([self.mission.question.threshold])[0])

    @property
    def f1(self) -> float | None:
        """F1 of the final classification against the truth; None without one."""
        if self.truth is None:
            return None
        return f1_score(self.above, self.truth >= self.mission.question.threshold)

    @property
    def above(self) -> Mask:
        """Sites classified as at or above the threshold, (N,) bool."""
        return np.asarray(self.surface.mean >= self.threshold)

    @cached_property
    def confidence(self) -> Confidence:
        """Expected F1 and share above the threshold, with 90% intervals."""
        with one_blas_thread():
            return confidence(self.surface, self.threshold, stream(self.mission.seed, "score"))

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

    @cached_property
    def path(self) -> Array:
        """The way really taken, (k, d) points from the start to where the vehicle is."""
        at, cost, time_s = self.mission.crew[0].start, self.mission.world.cost, 0.0
        way = [at[None]]
        for event in self.observations:
            for stop in [*event.sites, event.position]:
                if not np.array_equal(stop, at):
                    way.append(cost.path(at, stop, time_s)[1:])
                    at = stop
        return np.concatenate(way)

    def summary(self) -> dict[str, Any]:
        """Return the run in numbers, as in ``summary.json``."""
        mission, sure = self.mission, self.confidence
        world, n = mission.world, mission.world.domain.size
        whole = n * world.domain.cell_size
        area = sure.share_above
        return {
            "run": self.run,
            "mission": mission.name,
            "world": world.name,
            "policy": mission.policy_kind,
            "draw": world.draw,
            "seed": mission.seed,
            "threshold": mission.question.threshold,
            "value_unit": world.quantity.unit,
            "end_reason": None if self.end_reason is None else self.end_reason.value,
            "complete": self.end_reason is not None,
            "f1": self.f1,
            "expected_f1": sure.f1.value,
            "expected_f1_interval90": [sure.f1.low, sure.f1.high],
            "cost": self.cost,
            "cost_unit": world.cost_unit,
            "battery": sum(c.battery for c in mission.crew),
            "steps": self.steps,
            "readings": len(self.values),
            "unclassified": unclassified(self.surface, self.threshold),
            "area_above": whole * area.value,
            "area_above_interval90": [whole * area.low, whole * area.high],
            "area_above_true": None
            if self.truth is None
            else whole * float(np.mean(self.truth >= mission.question.threshold)),
            "area_unit": world.domain.cell_unit,
            "start": mission.crew[0].start.tolist(),
            "hyperparameters": self.hyperparameters.to_plain(),
            "notes": list(self.notes),
        }

    def maps(self) -> xarray.Dataset:
        """Return the final maps as a labelled data set, with CF names and units: see `fieldbo.maps`."""
        from fieldbo import maps

        return maps.of(self)

    def save(self, folder: Path | str) -> None:
        """Write summary, tables, maps and pictures into a folder; each file appears whole or not at all.

        Writes ``summary.json``, ``observations.csv``, ``path.csv``, ``curve.csv``, ``map.nc``,
        ``path.png``, ``map.png`` and ``curve.png``.
        """
        from fieldbo import plot

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "summary.json", json.dumps(self.summary(), indent=2).encode() + b"\n")
        write_whole(folder / "observations.csv", self._observation_table())
        axes = [a.name for a in self.mission.world.domain.axes]
        write_whole(folder / "path.csv", table(axes, self.path.tolist()))
        write_whole(
            folder / "curve.csv",
            table(
                [f.name for f in fields(Step)],
                [[getattr(s, f.name) for f in fields(Step)] for s in self.curve],
            ),
        )
        write_whole(folder / "map.nc", bytes(self.maps().to_netcdf(engine="scipy")))
        for name, draw in (
            ("path.png", plot.path_picture),
            ("map.png", plot.map_picture),
            ("curve.png", plot.curve_picture),
        ):
            picture = io.BytesIO()
            plot.save(draw(self), picture)
            write_whole(folder / name, picture.getvalue())

    def _observation_table(self) -> bytes:
        axes = [a.name for a in self.mission.world.domain.axes]
        channels = sorted({c for o in self.observations for c in (o.channels or {})})
        header = ["order", *axes, "value", "noise_sd", "time_s", "cost", *channels]
        rows = []
        for o in self.observations:
            for k in range(len(o.values)):
                extra = [
                    float((o.channels or {}).get(c, np.full(len(o.values), np.nan))[k]) for c in channels
                ]
                noise = float(np.sqrt(o.noise_variances[k]))
                paid = o.cost if k == len(o.values) - 1 else 0.0
                rows.append([o.order, *o.sites[k], o.values[k], noise, o.times_s[k], paid, *extra])
        return table(header, rows)


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """Return a CSV file's content; numbers keep all their digits, NaN is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        cells = [float(x) if isinstance(x, np.floating) else x for x in row]
        writer.writerow(["" if isinstance(x, float) and math.isnan(x) else x for x in cells])
    return out.getvalue().encode()


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(content)
    part.replace(file)
