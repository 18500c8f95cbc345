"""Compare missions by paired runs over starts and draws, in one tidy table that grows run by run.

The table is a CSV file, which one process at a time may write. Each run appends its steps (``row = step``)
and one final line (``row = run``) in a single write. A run without a final line did not finish, and is
repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo._numerics.streams import stream
from fieldbo.domain.places import place_text
from fieldbo.errors import FieldboError, InputError
from fieldbo.mission.files import write_whole
from fieldbo.mission.load import load_mission, merged, with_policy
from fieldbo.mission.mission import Mission, check_simulated
from fieldbo.results.answers import ANSWERS
from fieldbo.results.cell_runs import judged_by
from fieldbo.results.curve import Step
from fieldbo.results.result import Result
from fieldbo.results.tables import table
from fieldbo.runs.folder import describe
from fieldbo.runs.trials import digest_of, hold_table, lines_of, read_rows, run_and_append, unwritable

_WITH = " with "


@dataclass(frozen=True)
class Case:
    """One run of a comparison.

    Attributes
    ----------
    mission : str
        Name or path; ``NAME with POLICY`` for another policy than its own, as `with_policy` takes it.
    draw : int
        Which random field to use, counted from 0.
    start : int
        Number of the start, and the seed. Runs of the same draw and start are paired across missions.
    """

    mission: str
    draw: int
    start: int


def start_of(mission: Mission, start: int) -> list[float]:
    """Return start number `start` of a comparison: a random site, the same for every policy."""
    domain = mission.world.domain
    site: list[float] = domain.sites[int(stream(0, "start", start).integers(domain.size))].tolist()
    return site


def contender(mission: str, overrides: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name or path of a mission, and overrides with the policy that is named ``with`` it.

    Examples
    --------
    >>> contender("gp-lake with straddle", {})
    ('gp-lake', {'policy': {'kind': 'straddle'}})
    """
    name, policy = _split(mission)
    return name, dict(overrides) if policy is None else with_policy(policy, overrides)


def _split(mission: str) -> tuple[str, str | None]:
    """Return the name or path of a mission, and the policy named with it; a path may hold the same word."""
    name, named, policy = mission.rpartition(_WITH)
    return (name, policy) if named and not mission.endswith(".toml") else (mission, None)


def prepared(case: Case, overrides: Mapping[str, Any]) -> Mission:
    """Load the mission of a case, with its draw, seed and start."""
    name, overrides = contender(case.mission, merged(overrides, {"draw": case.draw, "seed": case.start}))
    first = load_mission(name, overrides)
    return load_mission(name, merged(overrides, {"agent": {"start": start_of(first, case.start)}}))


def digest(case: Case, overrides: Mapping[str, Any]) -> str:
    """Return a short digest of everything that determines a mission's runs, except draw and start."""
    description = describe(prepared(Case(case.mission, 0, 0), overrides))
    description["versions"] = description["versions"]["fieldbo"]
    return digest_of(description)


def _run_case(task: tuple[Case, Mapping[str, Any], str]) -> bytes:
    """Run one case, possibly in a worker process, and return its lines of the table."""
    from fieldbo.runs.loop import BrokenOffError
    from fieldbo.runs.runner import run

    case, overrides, mark = task
    try:
        return _lines(case, run(prepared(case, overrides)), mark)
    except BrokenOffError as error:  # it holds a result, which must not travel between processes
        raise FieldboError(f"{label(case.mission)}, draw {case.draw}, start {case.start}: {error}") from None


def _lines(case: Case, result: Result, mark: str) -> bytes:
    mission = result.mission
    base = {
        "mission": label(case.mission),
        "draw": case.draw,
        "start": case.start,
        "policy": mission.policy_kind,
        "world": mission.world.name,
        "digest": mark,
        "battery": mission.vehicles[0].capacity,
        "cost_unit": mission.world.cost_unit,
    }
    rows: list[dict[str, Any]] = [{"row": "step", **asdict(s), **base} for s in result.curve]
    domain, start = mission.world.domain, mission.vehicles[0].start
    place = " ".join(f"{x:g}" for x in start) if domain.crs is None else place_text(domain, start)
    last = asdict(result.curve[-1]) if result.curve else {"step": 0, "cost": 0.0}
    rows.append({"row": "run", **last, **base, "end_reason": result.end_reason, "place": place})
    return lines_of(COLUMNS, rows)


def _key(case: Case) -> tuple[str, ...]:
    """Return the cells of a case's rows that name it."""
    return label(case.mission), str(case.draw), str(case.start)


def label(mission: str) -> str:
    """Return the name by which the table calls a mission."""
    name, policy = _split(mission)
    stem = Path(name).stem if name.endswith(".toml") else name
    return stem if policy is None else f"{stem}{_WITH}{policy}"


def compare(
    missions: Sequence[str],
    starts: int,
    draws: int,
    out: Path,
    overrides: Mapping[str, Any] | None = None,
    jobs: int = 1,
    on_run: Callable[[int, int], object] | None = None,
) -> list[dict[str, str]]:
    """Run every mission from the same starts in the same fields; skip the runs that `out` already holds.

    Parameters
    ----------
    missions : sequence of str
        Names or paths; ``NAME with POLICY`` for another policy than the mission's own, for example
        ``"gp-lake with gchk,per_cost=true"``.
    starts, draws : int
        Number of each, at least 1.
    out : Path
        The table, to which each finished run is appended.
    overrides : mapping, optional
        Keys to replace in every mission, as in `load_mission`.
    jobs : int
        Number of parallel processes.
    on_run : Callable, optional
        Called with (finished, total) after each run.

    Returns
    -------
    list of dict
        The rows of these runs, cells as text.

    Raises
    ------
    InputError
        A mission is invalid, the missions can't be compared (different cost units, or both level sets and
        optima), several draws of a world with one field are asked for, or `out` is a different table, holds
        runs of a mission that has changed, or is being written by another process.
    """
    overrides = dict(overrides or {})
    if starts < 1 or draws < 1 or jobs < 1:
        raise InputError(
            f"starts = {starts}, draws = {draws} or jobs = {jobs} is below 1", expected="at least 1 of each"
        )
    _check_comparable(missions, overrides)
    marks = {m: digest(Case(m, 0, 0), overrides) for m in missions}
    for name in missions:
        check_simulated(prepared(Case(name, 0, 0), overrides))  # before making a table
        if draws > 1:
            _check_draws(name, draws, overrides)
    cases = [Case(m, k, s) for k in range(draws) for s in range(starts) for m in missions]
    with hold_table(out):
        done = finished_runs(out, {label(m): d for m, d in marks.items()})
        todo = [c for c in cases if (label(c.mission), c.draw, c.start) not in done]
        tasks = [(case, overrides, marks[case.mission]) for case in todo]
        run_and_append(out, _run_case, tasks, jobs, bytes, len(cases) - len(tasks), on_run)
        rows = read_table(out)
        if jobs > 1:  # the table must not depend on the number of jobs
            place = {_key(case): number for number, case in enumerate(todo)}
            rows.sort(key=lambda row: place.get(tuple(row[k] for k in KEY), -1))
            write_rows(out, rows)
    wanted = {_key(case) for case in cases}
    return [r for r in rows if tuple(r[k] for k in KEY) in wanted]


def _check_draws(mission: str, draws: int, overrides: Mapping[str, Any]) -> None:
    """Raise an `InputError` if a mission's world has one field only, whose draws would repeat each run."""
    first, other = (prepared(Case(mission, draw, 0), overrides).world for draw in (0, 1))
    if np.array_equal(first.truth(first.domain.sites), other.truth(other.domain.sites)):
        raise InputError(
            f"--draws {draws}, but the world {first.name} has only one field",
            expected="a world with random fields, or one draw",
            where=f"{label(mission)}: --draws",
            fix="leave out --draws, and vary the starts",
        )


def _check_comparable(missions: Sequence[str], overrides: Mapping[str, Any]) -> None:
    """Raise an `InputError` unless the missions differ, and share a score and a cost unit."""
    agent = overrides.get("agent")
    for key, settings in (("draw", overrides), ("seed", overrides), ("start", agent)):
        if isinstance(settings, Mapping) and key in settings:
            raise InputError(
                f"--set replaces {key}",
                expected=f"other keys: a comparison sets {key} for each run",
                where="--set",
            )
    labels = [label(m) for m in missions]
    if len(set(labels)) < len(labels):
        raise InputError(
            f"a mission is given twice: {', '.join(labels)}", expected="each mission once", where="MISSION"
        )
    loaded = {name: prepared(Case(name, 0, 0), overrides) for name in missions}
    _check_equal(
        "the missions have different cost units",
        {name: mission.world.cost_unit for name, mission in loaded.items()},
        "one cost unit: missions are compared at equal cost",
    )
    _check_equal(
        "the missions ask different kinds of questions",
        {name: ANSWERS[type(mission.question)].kind for name, mission in loaded.items()},
        "only level sets, compared by F1, or only optima, compared by regret",
    )
    _check_equal(
        "the missions are scored by different regrets",
        {name: judged_by(mission).name for name, mission in loaded.items()},
        "only chains of modules, only control sets, or neither",
    )


def _check_equal(problem: str, values: Mapping[str, str], expected: str) -> None:
    """Raise an `InputError` if the missions differ in a value."""
    if len(set(values.values())) > 1:
        listed = ", ".join(f"{mission}: {value}" for mission, value in values.items())
        raise InputError(f"{problem}: {listed}", expected=expected, where="MISSION")


KEY = ("mission", "draw", "start")
"""What names a run of a comparison."""

_FIRST = ("row", *KEY)
_OTHER = {
    "battery",
    "standing_still",
    "contradicted",
}  # here a battery is what it holds; the others are words
_STEP = tuple(name for name in Step.__dataclass_fields__ if name not in _OTHER)
COLUMNS = (*_FIRST, "policy", "world", "digest", *_STEP, "battery", "cost_unit", "end_reason", "place")


def read_table(file: Path) -> list[dict[str, str]]:
    """Return the rows of a comparison's table, without an incomplete last line.

    Raises
    ------
    InputError
        The file is not such a table, or has the columns of another version.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        raise InputError(
            f"{file} can't be read: {error.strerror}", expected="a readable table", where="--out"
        ) from None
    columns, rows = read_rows(text)
    if columns != COLUMNS and columns[: len(_FIRST)] == _FIRST:
        raise _of_another_version(file, columns)
    if columns != COLUMNS:
        raise InputError(
            f"{file} is not the table of a comparison",
            expected="a new file, or one that this command wrote",
            where="--out",
        )
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values() or not (row["draw"].isdigit() and row["start"].isdigit()):
            raise InputError(
                "the line was not written by this command",
                expected=f"{len(COLUMNS)} values, with integers in draw and start",
                where=f"{file}, line {line}",
                fix="delete the line",
            )
    return rows


def write_rows(out: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write a table anew with these rows."""
    write_whole(out, table(COLUMNS, [[row[c] for c in COLUMNS] for row in rows]))


def _of_another_version(file: Path, columns: Sequence[str]) -> InputError:
    """Return the error for a table with the columns of another version."""
    theirs = [c for c in columns if c not in COLUMNS]
    ours = [c for c in COLUMNS if c not in columns]
    parts = [f"{label} {', '.join(c)}" for label, c in (("unknown", theirs), ("missing", ours)) if c]
    return InputError(
        f"{file} was written by another version of fieldbo; columns: {'; '.join(parts) or 'other order'}",
        expected="a new file, or one that this version wrote",
        where="--out",
        fix="choose another file with --out; this one will not be changed",
    )


def finished_runs(out: Path, marks: Mapping[str, str]) -> set[tuple[str, int, int]]:
    """Return the keys of the finished runs in `out`, and remove unfinished ones; make the file if needed."""
    if not out.exists():
        try:
            write_whole(out, table(COLUMNS, []))
        except OSError as error:
            raise unwritable(out, error) from None
        return set()
    rows = read_table(out)
    done = {tuple(r[k] for k in KEY) for r in rows if r["row"] == "run"}
    for row in rows:
        mark = marks.get(row["mission"])
        if mark is not None and row["digest"] != mark:
            raise InputError(
                f"{out} holds runs of {row['mission']} made with different settings, or with a "
                "different version of fieldbo or of a plug-in",
                expected="the same mission, world, overrides, version and plug-ins as in those runs, and the "
                "same day if earlier readings have dates",
                where="--out",
                fix="choose another file with --out; this one stays as it is",
            )
    write_rows(out, [r for r in rows if tuple(r[k] for k in KEY) in done])
    return {(mission, int(draw), int(start)) for mission, draw, start in done}
