"""A trial: a simulated run of a mission in one drawn field, with a given battery."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.belief.question import LevelSet, Optimum, Question
from fieldbo.errors import FieldboError, InputError
from fieldbo.messages import Event, Observation
from fieldbo.mission.files import write_whole
from fieldbo.mission.load import load_mission
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.results.answers import ANSWERS
from fieldbo.results.curve import Scorer, Step
from fieldbo.results.metrics import score_at_costs
from fieldbo.results.tables import table
from fieldbo.results.truth import truth_of
from fieldbo.runs.advice.fields import Draw
from fieldbo.runs.trials import hold_table, lines_of, read_rows, run_and_append

HELD = 1.3
"""A trial for the cost of a target ends once the score has held it up to this multiple of that cost."""

BROKEN_OFF = "target held"
"""End reason of such a trial."""

_UNDECLARED = 0.1  # noise of a sensor that declares none, relative to the spread of the field


@dataclass(frozen=True, eq=False)
class Task:
    """What to run.

    Attributes
    ----------
    mission : str
        Name or path.
    overrides : mapping
        Keys that replace those of the mission, the policy included.
    policy : str
        By which the table calls it.
    draw : Draw
    battery : float
        In the world's cost unit; what all batteries hold together, if the vehicle changes them.
    until : float or None
        F1 after which the trial may end, once it has held it for a while; None to run the mission as it is.
    """

    mission: str
    overrides: Mapping[str, Any]
    policy: str
    draw: Draw
    battery: float
    until: float | None = None


@dataclass(frozen=True, eq=False)
class Trial:
    """What came of a task.

    Attributes
    ----------
    policy : str
    field : int
        Number of the drawn field.
    battery, until
        As in the `Task`.
    end_reason : str
    seconds : float
        That it took.
    share : float
        Fraction of the sites in the level set; NaN for an optimum.
    costs, needs, scores : (k + 1,) arrays
        Before the first order, and after each: the cost so far, the battery with which the mission comes that
        far, with the trip home, reserve and margin, and F1 or the regret.
    """

    policy: str
    field: int
    battery: float
    until: float | None
    end_reason: str
    seconds: float
    share: float
    costs: Array
    needs: Array
    scores: Array

    @property
    def final(self) -> float:
        """The score at the end."""
        return float(self.scores[-1])

    def need(self, target: float) -> float:
        """Return the battery with which F1 reaches a target and holds it; infinite if it does not.

        Read off this run: with that battery, the policy may decide otherwise.
        """
        missed = np.flatnonzero(~(self.scores >= target))
        first = max(1, int(missed[-1]) + 1 if len(missed) else 0)  # a battery pays for one order at least
        if first < len(self.needs):
            return float(self.needs[first])
        return self.battery if self.final >= target else np.inf  # earlier readings alone may reach it

    def at(self, costs: Array) -> Array:
        """Return the score (k,) at given costs (k,)."""
        return score_at_costs(self.costs, self.scores, costs)


def try_task(task: Task) -> Trial:
    """Run a task, possibly in a worker process."""
    from fieldbo.runs.loop import BrokenOffError
    from fieldbo.runs.runner import run

    begun = perf_counter()
    mission = in_field(load_mission(task.mission, task.overrides), task.draw, task.battery)
    watch = _Watch(mission, task.until)
    try:
        result = run(mission, on_step=watch.step, on_event=watch.event)
        end_reason = "" if result.end_reason is None else result.end_reason.value
    except _TargetHeld:
        end_reason = BROKEN_OFF
    except BrokenOffError as error:  # it holds a result, which must not travel between processes
        raise FieldboError(f"{task.policy}, drawn field {task.draw.number}: {error}") from None
    truth = None if isinstance(mission.question, Optimum) else truth_of(mission.world, mission.question)
    return Trial(
        task.policy,
        task.draw.number,
        task.battery,
        task.until,
        end_reason,
        perf_counter() - begun,
        float("nan") if truth is None else float(truth.inside.mean()),
        np.array(watch.costs),
        np.array(watch.needs),
        np.array(watch.scores),
    )


def in_field(mission: Mission, draw: Draw, battery: float) -> Mission:
    """Return a mission in a drawn field, with a battery, or with several that hold as much together.

    The field's number changes the seed, too.

    A threshold at a quantile of the true values becomes that of the drawn field.
    """
    number = draw.number if draw.of_world is None else draw.of_world
    world = replace(mission.world, field=draw.field(mission), draw=number)
    if not world.sensor.declares_noise:
        noise_sd = _UNDECLARED * float(np.std(draw.values))
        world = replace(world, sensor=replace(world.sensor, noise_sd=noise_sd))
    return replace(
        mission,
        world=world,
        question=question_in(mission, draw.values),
        vehicles=tuple(with_capacity(vehicle, battery) for vehicle in mission.vehicles),
        seed=mission.seed + draw.number,
    )


def with_capacity(vehicle: VehicleSpec, capacity: float) -> VehicleSpec:
    """Return a vehicle with a battery of this capacity; with several, their number changes.

    Examples
    --------
    >>> from fieldbo.mission.vehicle_spec import Recharging
    >>> one = VehicleSpec(battery=60, start=[0.0], home=[0.0])
    >>> several = replace(one, recharge=Recharging(takes_s=9, batteries=2))
    >>> with_capacity(one, 180.0).battery, with_capacity(several, 180.0).batteries
    (180.0, 3)
    """
    if vehicle.recharge is None:
        return replace(vehicle, battery=capacity)
    return replace(
        vehicle, recharge=replace(vehicle.recharge, batteries=max(1, round(capacity / vehicle.battery)))
    )


def question_in(mission: Mission, values: Array) -> Question:
    """Return the mission's question where the true values at the sites are `values` (N,)."""
    threshold = mission.settings.get("question", {}).get("threshold")
    if isinstance(mission.question, LevelSet) and isinstance(threshold, Mapping):
        return replace(mission.question, threshold=float(np.quantile(values, threshold["quantile"])))
    return mission.question


class _TargetHeld(Exception):  # noqa: N818 - no error
    """Ends a run that has held its target for long enough."""


class _Watch:
    """Notes the course of a run."""

    def __init__(self, mission: Mission, until: float | None) -> None:
        self._mission, self._until = mission, until
        self._column = ANSWERS[type(mission.question)].score.column
        self._position = mission.vehicles[0].start
        self._rose = np.inf
        before = Scorer(mission).step(Agent(mission))
        self.costs = [0.0]
        self.needs = [0.0]
        self.scores = [float(getattr(before, self._column))]

    def event(self, event: Event) -> None:
        """Note where the vehicle is."""
        if isinstance(event, Observation):
            self._position = event.position

    def step(self, step: Step) -> None:
        """Note cost and score; raise `_TargetHeld` if the target has been held."""
        spec, cost = self._mission.vehicles[0], self._mission.world.cost
        before, back = self.costs[-1], 0.0
        if spec.home is not None:
            back = float(cost.travel(self._position[None], spec.home[None], step.time_s)[0, 0])
        need = before + (step.cost - before + back) * (1.0 + spec.margin) + spec.reserve
        if spec.recharge is not None:  # the ledger keeps what each battery needs to get home
            need = step.battery * spec.battery
        self.costs.append(step.cost)
        self.needs.append(max(need, self.needs[-1]))
        self.scores.append(float(getattr(step, self._column)))
        if self._until is None:
            return
        if not self.scores[-1] >= self._until:
            self._rose = np.inf
        elif self._rose == np.inf:
            self._rose = step.cost
        if step.cost >= HELD * self._rose:
            raise _TargetHeld


RUNS = "runs.csv"
"""Name of the table in the folder."""

COLUMNS = (
    *("policy", "field", "battery", "until", "digest", "end_reason", "seconds", "share"),
    *("cost", "need", "score"),
)

_WORTH_WORKERS_S = 10.0
"""Duration of trials, one after the other, from which on further processes are started for them."""

_Key = tuple[str, int, float, float | None]


class Trials:
    """Runs trials, and keeps them; those that the table already holds are not repeated.

    Use `opened`, which holds the right to write to the table.

    Attributes
    ----------
    file : Path
    marks : mapping of str to str
        By policy: digests of what all trials share and of the policy's settings, joined by a hyphen.
    jobs : int
    on_trial : Callable
        Called with (finished, total) of the present batch after each trial.
    """

    def __init__(
        self,
        file: Path,
        marks: Mapping[str, str],
        jobs: int,
        on_trial: Callable[[int, int], object] = lambda finished, total: None,
    ) -> None:
        self.file, self.marks, self.jobs, self.on_trial = file, marks, jobs, on_trial
        self._done = {_key(trial): trial for trial in _begun(file, marks)}

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, marks: Mapping[str, str], jobs: int) -> Iterator[Trials]:
        """Open the table of a folder, which is made if needed.

        Raises
        ------
        InputError
            The folder holds other trials, is not writable, or another process is writing to it.
        """
        with hold_table(folder / RUNS):
            yield cls(folder / RUNS, marks, jobs)

    def of(self, policy: str) -> list[Trial]:
        """Return the trials of a policy that are done."""
        return [trial for trial in self._done.values() if trial.policy == policy]

    def missing(self, tasks: Sequence[Task]) -> list[Task]:
        """Return those tasks that have not been run."""
        return [task for task in tasks if _key(task) not in self._done]

    def run(self, tasks: Sequence[Task]) -> list[Trial]:
        """Return the trials of these tasks, in order; run those that are missing."""
        todo = self.missing(tasks)
        finished = len(tasks) - len(todo)
        self.on_trial(finished, len(tasks))
        run_and_append(
            self.file, try_task, todo, self._workers(len(todo)), self._keep, finished, self.on_trial
        )
        return [self._done[_key(task)] for task in tasks]

    def _workers(self, todo: int) -> int:
        """Return the number of processes for some trials: one if others would hardly have begun by then."""
        typical = [trial.seconds for trial in self._done.values()]
        short = todo < 2 or (bool(typical) and todo * float(np.median(typical)) < _WORTH_WORKERS_S)
        return 1 if short else self.jobs

    def _keep(self, trial: Trial) -> bytes:
        row = _row(trial, self.marks[trial.policy])
        # As the file has it: continued advice must not differ from that without interruption.
        self._done[_key(trial)] = _trial(row)
        return lines_of(COLUMNS, [row])


def _key(of: Task | Trial) -> _Key:
    number = of.draw.number if isinstance(of, Task) else of.field
    return of.policy, number, of.battery, of.until


def _row(trial: Trial, mark: str) -> dict[str, str]:
    return {
        "policy": trial.policy,
        "field": str(trial.field),
        "battery": repr(trial.battery),
        "until": "" if trial.until is None else repr(trial.until),
        "digest": mark,
        "end_reason": trial.end_reason,
        "seconds": f"{trial.seconds:.2f}",
        "share": "" if math.isnan(trial.share) else f"{trial.share:.4g}",
        "cost": _text(trial.costs),
        "need": _text(trial.needs),
        "score": _text(trial.scores),
    }


def _text(numbers: Array) -> str:
    return " ".join(f"{x:.7g}" for x in numbers)


def _trial(row: Mapping[str, str]) -> Trial:
    """Return the trial of a line; raise a `ValueError` if there is none in it."""
    costs, needs, scores = (np.array(row[name].split(), dtype=float) for name in ("cost", "need", "score"))
    if not 0 < len(costs) == len(needs) == len(scores):
        raise ValueError
    return Trial(
        row["policy"],
        int(row["field"]),
        float(row["battery"]),
        float(row["until"]) if row["until"] else None,
        row["end_reason"],
        float(row["seconds"]),
        float(row["share"]) if row["share"] else float("nan"),
        costs,
        needs,
        scores,
    )


def _begun(file: Path, marks: Mapping[str, str]) -> list[Trial]:
    """Return the trials in a table, and remove a last line that was cut short; make the file if needed."""
    if not file.exists():
        write_whole(file, table(COLUMNS, []))
        return []
    if file.is_dir():
        raise _no_table(file)
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        columns, rows = read_rows(text)
    except csv.Error:
        raise _no_table(file) from None
    if columns != COLUMNS:
        raise _no_table(file)
    trials, shared = [], next(iter(marks.values())).partition("-")[0]
    for line, row in enumerate(rows, 2):
        mark = row["digest"] or ""
        if marks.get(row["policy"], mark) != mark or mark.partition("-")[0] != shared:
            raise InputError(
                f"{file.parent} holds runs of {row['policy']} made for another mission or with different "
                "settings, or with a different version of fieldbo or of a plug-in",
                expected="the same mission, world, overrides, seed, version and plug-ins as in those runs, "
                "and the same day if earlier readings have dates",
                where="--out",
                fix="choose another folder with --out; this one stays as it is",
            )
        try:
            trials.append(_trial(row))
        except (TypeError, ValueError, AttributeError):
            raise InputError(
                "the line was not written by this command",
                expected=f"{len(COLUMNS)} values",
                where=f"{file}, line {line}",
                fix="delete the line",
            ) from None
    if not text.endswith("\n"):
        write_whole(file, text[: text.rfind("\n") + 1].encode())
    return trials


def _no_table(file: Path) -> InputError:
    return InputError(
        f"{file} is not a table of this command, or of another version of fieldbo",
        expected="a new folder, or one that this command wrote",
        where="--out",
        fix="choose another folder with --out; this one stays as it is",
    )
