"""Many missions: paired runs over starts and draws, in one tidy table that can be taken up again.

The table is a CSV file. Each run adds its steps (``row = step``) and then one line of its own
(``row = run``), in one write; a run without that line never finished, and is run again.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.errors import InputError
from fieldbo.mission.checks import check_simulated
from fieldbo.mission.files import write_whole
from fieldbo.mission.load import load_mission, merged
from fieldbo.mission.mission import Mission
from fieldbo.results.answers import ANSWERS
from fieldbo.results.cell_runs import judged_by
from fieldbo.results.curve import Step
from fieldbo.results.metrics import F1, Score, score_at_costs
from fieldbo.results.result import Result
from fieldbo.results.tables import table
from fieldbo.runs.folder import describe

_KEY = ("mission", "draw", "start")
_FIRST = ("row", *_KEY)
_STEP = tuple(Step.__dataclass_fields__)
COLUMNS = (*_FIRST, "policy", "world", "digest", *_STEP, "battery", "cost_unit", "end_reason", "place")


@dataclass(frozen=True)
class Case:
    """One run of a comparison.

    Attributes
    ----------
    mission : str
        Name or path.
    draw : int
        Which field.
    start : int
        Which start, and the seed: runs of the same draw and start are paired across missions.
    """

    mission: str
    draw: int
    start: int


class Scores(NamedTuple):
    """Mean score of one mission at given costs: mean and standard error, each (k,), and number of runs."""

    mean: Array
    error: Array
    runs: int


class Target(NamedTuple):
    """How one mission came to a target.

    Attributes
    ----------
    cost : float
        At which the mean curve first reaches it; NaN if it never does.
    reached : int
        Runs that reached it.
    """

    cost: float
    reached: int


def start_of(mission: Mission, start: int) -> list[float]:
    """Return start number `start` of a comparison: a random site, the same for all rules."""
    domain = mission.world.domain
    site: list[float] = domain.sites[int(stream(0, "start", start).integers(domain.size))].tolist()
    return site


def prepared(case: Case, overrides: Mapping[str, Any]) -> Mission:
    """Return the mission of a case, with its draw, seed and start."""
    told = merged(overrides, {"draw": case.draw, "seed": case.start})
    first = load_mission(case.mission, told)
    return load_mission(case.mission, merged(told, {"agent": {"start": start_of(first, case.start)}}))


def digest(case: Case, overrides: Mapping[str, Any]) -> str:
    """Return a short digest of what decides a mission's runs, apart from draw and start."""
    told = describe(prepared(Case(case.mission, 0, 0), overrides))
    told["versions"] = told["versions"]["fieldbo"]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _run_case(case: Case, overrides: Mapping[str, Any], mark: str) -> bytes:
    """Run one case and return its lines of the table; called in a process of its own."""
    from fieldbo.runs.runner import run

    return _lines(case, run(prepared(case, overrides)), mark)


def _lines(case: Case, result: Result, mark: str) -> bytes:
    mission = result.mission
    base = {
        "mission": _label(case.mission),
        "draw": case.draw,
        "start": case.start,
        "policy": mission.policy_kind,
        "world": mission.world.name,
        "digest": mark,
        "battery": mission.vehicles[0].battery,
        "cost_unit": mission.world.cost_unit,
    }
    rows: list[dict[str, Any]] = [{"row": "step", **base, **asdict(s)} for s in result.curve]
    place = " ".join(f"{x:g}" for x in mission.vehicles[0].start)
    last = asdict(result.curve[-1]) if result.curve else {"step": 0, "cost": 0.0}
    rows.append({"row": "run", **base, **last, "end_reason": result.end_reason, "place": place})
    body = table(COLUMNS, [[r.get(c, "") for c in COLUMNS] for r in rows])
    return body.split(b"\n", 1)[1]  # the header stands in the file already


def _label(mission: str) -> str:
    return Path(mission).stem if mission.endswith(".toml") else mission


def compare(
    missions: Sequence[str],
    starts: int,
    draws: int,
    out: Path,
    overrides: Mapping[str, Any] | None = None,
    jobs: int = 1,
    on_run: Callable[[int, int], object] | None = None,
) -> list[dict[str, str]]:
    """Run every mission from the same starts in the same fields; take up what `out` already holds.

    Parameters
    ----------
    missions : sequence of str
        Names or paths.
    starts, draws : int
        How many of each; at least 1.
    out : Path
        The table; it grows by a run at a time.
    overrides : mapping, optional
        Laid over every mission, as in `load_mission`.
    jobs : int
        Processes at the same time.
    on_run : Callable, optional
        Called with (finished, all) after each run.

    Returns
    -------
    list of dict
        The whole table, as text.

    Raises
    ------
    InputError
        A mission is wrong, the missions can't be compared (paid in different units, or some ask for level
        sets and some for optima), or `out` is another table, or holds runs of a mission that has changed.
    """
    told = dict(overrides or {})
    if starts < 1 or draws < 1 or jobs < 1:
        raise InputError(f"{starts} starts, {draws} draws, {jobs} jobs", expected="at least 1 of each")
    _check_comparable(missions, told)
    marks = {m: digest(Case(m, 0, 0), told) for m in missions}
    for name in missions:
        check_simulated(prepared(Case(name, 0, 0), told))  # before a table is made
    done = _taken_up(out, {_label(m): d for m, d in marks.items()})
    cases = [Case(m, k, s) for k in range(draws) for s in range(starts) for m in missions]
    todo = [c for c in cases if (_label(c.mission), c.draw, c.start) not in done]
    finished = len(cases) - len(todo)
    with out.open("ab") as file:
        for lines in _run_all(todo, told, marks, jobs):
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
            finished += 1
            if on_run is not None:
                on_run(finished, len(cases))
    wanted = {(_label(c.mission), str(c.draw), str(c.start)) for c in cases}
    return [r for r in read_table(out) if tuple(r[k] for k in _KEY) in wanted]


def _check_comparable(missions: Sequence[str], told: Mapping[str, Any]) -> None:
    """Raise an `InputError` unless each mission stands once, and one score and one cost unit fit all."""
    agent = told.get("agent")
    for key, given in (("draw", told), ("seed", told), ("start", agent)):
        if isinstance(given, Mapping) and key in given:
            raise InputError(
                f"--set of {key}", expected="no such key: a comparison sets it for each run", where="--set"
            )
    labels = [_label(m) for m in missions]
    if len(set(labels)) < len(labels):
        raise InputError(f"missions {', '.join(labels)}", expected="each mission once", where="MISSION")
    loaded = {m: prepared(Case(m, 0, 0), told) for m in missions}
    units = {m: one.world.cost_unit for m, one in loaded.items()}
    if len(set(units.values())) > 1:
        raise InputError(
            "missions paid in different units: " + ", ".join(f"{m} in {u}" for m, u in units.items()),
            expected="one unit, to compare them at equal cost",
        )
    kinds = {m: ANSWERS[type(one.question)].kind for m, one in loaded.items()}
    if len(set(kinds.values())) > 1:
        raise InputError(
            "questions of different kinds: " + ", ".join(f"{m}: {k}" for m, k in kinds.items()),
            expected="level sets, which F1 compares, or optima, which the regret compares",
            where="MISSION",
        )
    scores = {m: judged_by(one).name for m, one in loaded.items()}
    if len(set(scores.values())) > 1:
        raise InputError(
            "missions judged by different regrets: " + ", ".join(f"{m}: {s}" for m, s in scores.items()),
            expected="missions in cells of one kind, or in none",
            where="MISSION",
        )


def _run_all(
    todo: Sequence[Case], told: Mapping[str, Any], marks: Mapping[str, str], jobs: int
) -> Iterator[bytes]:
    """Yield the lines of each case as it is done."""
    if jobs == 1:
        for case in todo:
            yield _run_case(case, told, marks[case.mission])
        return
    workers = min(jobs, max(1, len(todo)))
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_one_numba_thread) as pool:
        out = [pool.submit(_run_case, c, told, marks[c.mission]) for c in todo]
        try:
            for future in out:  # in the order of one process, so that the table is the same
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _one_numba_thread() -> None:
    """Keep compiled loops to one thread, as BLAS is, in a process that has not loaded numba yet.

    The jobs share the cores already.
    """
    os.environ["NUMBA_NUM_THREADS"] = "1"


def read_table(file: Path) -> list[dict[str, str]]:
    """Return the rows of a comparison's table; a last line that was cut short is left out.

    Raises
    ------
    InputError
        The file is no such table, or has the columns of another version.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        raise InputError(
            f"{file} can't be read: {error.strerror}", expected="a table that can be read", where="--out"
        ) from None
    whole = text[: text.rfind("\n") + 1]
    reader = csv.DictReader(io.StringIO(whole))
    columns = tuple(reader.fieldnames or ())
    if columns != COLUMNS and columns[: len(_FIRST)] == _FIRST:
        raise _of_another_version(file, columns)
    if columns != COLUMNS:
        raise InputError(
            f"{file} is no table of a comparison",
            expected="a file that does not exist yet, or one that this command wrote",
            where="--out",
        )
    rows = list(reader)
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values() or not (row["draw"].isdigit() and row["start"].isdigit()):
            raise InputError(
                "a line that this command did not write",
                expected=f"{len(COLUMNS)} cells, numbers in draw and start",
                where=f"{file}, line {line}",
                fix="delete the line",
            )
    return rows


def _of_another_version(file: Path, columns: Sequence[str]) -> InputError:
    """Return the error of a table whose columns are not this version's."""
    theirs = [c for c in columns if c not in COLUMNS]
    ours = [c for c in COLUMNS if c not in columns]
    told = [f"{', '.join(c)} only {where}" for c, where in ((theirs, "there"), (ours, "here")) if c]
    return InputError(
        f"{file} was written by another version of fieldbo, with other columns: "
        f"{'; '.join(told) or 'the same in another order'}",
        expected="a file that does not exist yet, or one that this version wrote",
        where="--out",
        fix="choose another file with --out; this one stays as it is",
    )


def _taken_up(out: Path, marks: Mapping[str, str]) -> set[tuple[str, int, int]]:
    """Return the keys of finished runs in `out`, after leaving out unfinished ones; make it if needed."""
    if not out.exists():
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_whole(out, table(COLUMNS, []))
        except OSError as error:
            raise InputError(
                f"{out} can't be written: {error.strerror}", expected="a place for a new file", where="--out"
            ) from None
        return set()
    rows = read_table(out)
    done = {tuple(r[k] for k in _KEY) for r in rows if r["row"] == "run"}
    for row in rows:
        mark = marks.get(row["mission"])
        if mark is not None and row["digest"] != mark:
            raise InputError(
                f"{out} holds runs of {row['mission']} with other settings",
                expected="the same mission, world and overrides as before",
                where="--out",
                fix="choose another file, or delete this one",
            )
    kept = [[r[c] for c in COLUMNS] for r in rows if tuple(r[k] for k in _KEY) in done]
    write_whole(out, table(COLUMNS, kept))
    return {(mission, int(draw), int(start)) for mission, draw, start in done}


def score_of(mission: str, overrides: Mapping[str, Any] | None = None) -> Score:
    """Return what runs of a mission are compared by: F1 for a level set, the regret for an optimum.

    In a chain of modules the regret of the best sample, among control sets the simple regret.
    """
    return judged_by(load_mission(mission, overrides))


def scores_at(
    rows: Sequence[Mapping[str, str]], costs: Sequence[float], score: Score = F1
) -> dict[str, Scores]:
    """Return each mission's mean score at equal costs, in the order of the table.

    A run that ended earlier keeps its last score. Where there is no truth, the expected F1 is taken.

    Parameters
    ----------
    rows : sequence of mappings
        As `compare` returns them.
    costs : sequence of k floats
    score : Score
    """
    out = {}
    for mission, curves in _curves(rows, score).items():
        scores = np.array([score_at_costs(cost, values, costs) for cost, values in curves])
        error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0 * scores[0]
        out[mission] = Scores(scores.mean(axis=0), error, len(scores))
    return out


def targets(rows: Sequence[Mapping[str, str]], target: float, score: Score = F1) -> dict[str, Target]:
    """Return for each mission the cost at which its mean score first reaches a target.

    Parameters
    ----------
    rows : sequence of mappings
        As `compare` returns them.
    target : float
        A score; of a regret, at or below which it has come.
    score : Score
    """
    out = {}
    for mission, curves in _curves(rows, score).items():
        costs = np.unique(np.concatenate([cost for cost, _ in curves]))  # the mean changes nowhere else
        mean = np.mean([score_at_costs(cost, values, costs) for cost, values in curves], axis=0)
        single = [score.cost_to(cost, values, target) for cost, values in curves]
        out[mission] = Target(score.cost_to(costs, mean, target), int(np.isfinite(single).sum()))
    return out


def calibration(rows: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Return each mission's mean final `coverage90`: 0.9 where its belief is well calibrated."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["row"] == "run" and row["coverage90"]:
            found.setdefault(row["mission"], []).append(float(row["coverage90"]))
    return {mission: float(np.mean(shares)) for mission, shares in found.items()}


def _curves(rows: Sequence[Mapping[str, str]], score: Score) -> dict[str, list[tuple[Array, Array]]]:
    """Return costs and scores (n,) of each run, by mission."""
    runs: dict[str, dict[tuple[str, str], list[tuple[float, float]]]] = {}
    for row in rows:
        if row["row"] == "step":
            value = float(row[score.column] or row["expected_f1"])
            by_run = runs.setdefault(row["mission"], {})
            by_run.setdefault((row["draw"], row["start"]), []).append((float(row["cost"]), value))
    return {
        mission: [(points[:, 0], points[:, 1]) for points in map(np.array, by_run.values())]
        for mission, by_run in runs.items()
    }
