"""Load what is known before a mission from the files in its ``[prior]``, and write it into a run folder."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.mean_functions import MeanFunction
from fieldbo.domain.axes import Axis, is_depth, is_height
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.mission.mission import Mission
from fieldbo.mission.prior import Prior, aged
from fieldbo.mission.schema import MeanFile, PriorFile
from fieldbo.mission.world_file import load_world
from fieldbo.record.record import Record
from fieldbo.record.store import changed_files, readings_in, record_file
from fieldbo.tables.columns import describe_columns
from fieldbo.tables.measures import along, spreads_in, values_in
from fieldbo.tables.opening import open_table
from fieldbo.tables.readings import read_readings
from fieldbo.tables.survey import survey_points
from fieldbo.tables.table import Table
from fieldbo.tables.times import IN_UTC, Times, column_of_time, times_in, times_of
from fieldbo.tables.units import bare
from fieldbo.world.fields.base import inside
from fieldbo.world.raster import read_mean, value_column
from fieldbo.world.world import World

READINGS, MEAN = "prior.csv", "prior-mean"
"""Names of the files in a run folder, the second without its suffix."""

_DAY_S = 86_400.0
_OLD_DAYS = 0.05
"""Age from which readings are not of today; younger ones are 0.0 days old in words."""


@dataclass(frozen=True, eq=False)
class FromFile(MeanFunction):
    """A mean function, and the file that it was read from."""

    function: MeanFunction
    file: Path
    value: str | None

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        return self.function.with_gradient(points)

    def values(self, points: Array) -> Array:
        return self.function.values(points)

    def covers(self, points: Array) -> Mask:
        return self.function.covers(points)


def plain_prior(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mission's settings with the date in its ``[prior]``, if any, as text."""
    prior = settings.get("prior")
    if isinstance(prior, Mapping) and isinstance(prior.get("at"), datetime):
        return {**settings, "prior": {**prior, "at": prior["at"].isoformat()}}
    return dict(settings)


def load_prior(content: PriorFile, world: World, folder: Path, typed: Mapping[str, Any]) -> Prior:
    """Return what a ``[prior]`` table describes.

    Parameters
    ----------
    content : PriorFile
    world : World
    folder : Path
        The mission's folder, in which its files lie.
    typed : mapping
        Keys of the table that did not come from the file but from the user, who may name any file.

    Raises
    ------
    InputError
        A file is missing, lies outside the folder or can't be read, or an age is missing or negative.
    """
    mean = None
    if content.mean is not None:
        given = content.mean if isinstance(content.mean, MeanFile) else MeanFile(file=content.mean)
        path = _resolve(given.file, folder, "prior.mean", anywhere="mean" in typed)
        function = read_mean(path, world.domain, given.value, world.quantity.name)
        mean = FromFile(function, path, given.value)
    if content.readings is None:
        if mean is None:
            raise InputError("[prior] is empty", expected="readings, mean, or both", where="prior")
        return Prior(mean=mean)
    path = _find_run_or_file(content.readings, folder, anywhere="readings" in typed)
    taken = _take_from_run(path, world) if _is_run(path) else readings_of_file(path, content, world)
    ages = _compute_ages(taken, content, path)
    unknown = np.isnan(ages)
    if content.per_day and unknown.any():
        raise InputError(
            f"per_day = {content.per_day:g}, but the age of {counted(int(unknown.sum()), 'reading')} is not "
            f"known{f': {taken.undated}' if taken.undated else ''}",
            expected="the age of each reading",
            where="prior.per_day",
            fix="set age_days, add a column age_days, or call a column with dates time",
        )
    noise = aged(taken.noise_sds, content.per_day, np.where(unknown, 0.0, ages)) if content.per_day else None
    prior = Prior(taken.sites, taken.values, taken.noise_sds if noise is None else noise, ages, mean)
    notes = [f"{path.name}: {note}" for note in taken.notes]
    if taken.undated and unknown.any():
        notes.append(f"{path.name}: {taken.undated}, so ages are not known")
    if "per_day" not in content.model_fields_set and prior.oldest_days >= _OLD_DAYS and not _is_pinned(path):
        notes.append(
            f"the earlier readings are {prior.ages_in_words()} and trusted as if read today; set "
            "prior.per_day to the standard deviation of the change in a day, or to 0 if nothing changes"
        )
    return replace(prior, notes=tuple(notes))


def _resolve(name: str, folder: Path, where: str, *, anywhere: bool) -> Path:
    if not name.strip():
        raise InputError(f"{where} is empty", expected="the name of a file", where=where)
    return Path(name).resolve() if anywhere else inside(folder, name, where=where, owner="mission")


def _find_run_or_file(name: str, folder: Path, *, anywhere: bool) -> Path:
    """Return the path of a CSV or a run folder; the name of a run in ``runs/`` will do."""
    run = Path("runs") / name
    if len(Path(name).parts) == 1 and _is_run(run) and not (folder / name).exists():
        return run
    return _resolve(name, folder, "prior.readings", anywhere=anywhere)


def _is_pinned(path: Path) -> bool:
    """Return whether readings are those in a run folder, to which their ages are applied."""
    return path.name == READINGS and (path.parent / "run.sqlite").exists()


def _is_run(path: Path) -> bool:
    return path.is_dir() or path.name == "run.sqlite"


def _take_from_run(path: Path, world: World) -> EarlierReadings:
    """Return what a run in a world with the same axes and the same quantity has read itself."""
    with Record(record_file(path)) as record:
        readings = readings_in(record.rows(), record.begun_utc)
        description, folder = record.description, record.file.parent
        if record.loss:
            warnings.warn(record.loss, stacklevel=2)
    if changed := changed_files(folder / description["world"], description):
        raise InputError(
            f"changed since the run began: {', '.join(changed)}",
            expected="the world with which the run began",
            where=str(path),
            fix="undo the changes",
        )
    before = load_world(folder / description["world"])
    for what, then, now in (
        ("axes", [a.name for a in before.domain.axes], [a.name for a in world.domain.axes]),
        ("axes' units", [a.unit for a in before.domain.axes], [a.unit for a in world.domain.axes]),
        ("quantity", [before.quantity.label], [world.quantity.label]),
    ):
        if then != now:
            raise InputError(
                f"the {what} of the run: {', '.join(then)}",
                expected=", ".join(now),
                where=str(path),
                fix="choose a run in the same world",
            )
    if readings is None:
        raise InputError("the run has no readings", expected="a run that read something", where=str(path))
    return EarlierReadings(*readings)


def _compute_ages(taken: EarlierReadings, content: PriorFile, path: Path) -> Array:
    """Return the ages (n,) in days when the mission begins; NaN where they are not known."""
    now = datetime.now(UTC).timestamp() if content.at is None else seconds_of(content.at, "prior.at")
    if content.age_days is not None:
        return np.full(len(taken.values), content.age_days)
    ages = (now - taken.times_s) / _DAY_S if taken.ages_days is None else taken.ages_days
    if not taken.lines:  # a run: the clock of a simulated one may be ahead of the wall's
        ages = np.maximum(ages, 0.0)
    if (ages < 0).any():
        first = int(np.argmax(ages < 0))
        line = f", line {taken.lines[first]}" if taken.lines else ""
        raise InputError(
            f"a reading was taken {-ages[first]:.3g} days after the mission begins",
            expected="earlier readings",
            where=f"{path}{line}",
            fix="set prior.at to when the mission begins; check the offsets: times without one are UTC",
        )
    return np.asarray(ages)


# -- in a run folder -----------------------------------------------------------------------------------------


def pinned(mission: Mission) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a mission's settings with the prior in files of the run folder, and those files by name.

    Nothing in them depends on the time or on other files: ages are applied.

    Raises
    ------
    InputError
        The prior mean was made in Python.
    """
    settings = {key: value for key, value in mission.settings.items() if key != "prior"}
    prior = mission.prior
    if prior is None:
        return settings, {}
    table: dict[str, Any] = {}
    files: dict[str, bytes] = {}
    if len(prior.values):
        table["readings"] = READINGS
        files[READINGS] = _write_csv(prior, mission.world.domain)
    if prior.mean is not None:
        if not isinstance(prior.mean, FromFile):
            raise InputError(
                "a prior mean made in Python can't be written to a run folder",
                expected="a prior mean from a file",
                where="prior.mean",
                fix="run it without a folder: fieldbo.run(mission)",
            )
        name = MEAN + prior.mean.file.suffix.lower()
        files[name] = prior.mean.file.read_bytes()
        table["mean"] = {"file": name} | ({"value": prior.mean.value} if prior.mean.value else {})
    return {**settings, "prior": table}, files


def _write_csv(prior: Prior, domain: Domain) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(axis.name for axis in domain.axes), "value", "noise_sd", "age_days"])
    assert prior.ages_days is not None
    for row in zip(prior.sites, prior.values, prior.noise_sds, prior.ages_days, strict=True):
        site, *numbers = row
        writer.writerow(["" if np.isnan(x) else repr(float(x)) for x in [*site, *numbers]])
    return out.getvalue().encode()


_DEGREES = ("latitude", "longitude")


class EarlierReadings(NamedTuple):
    """Readings, and when they were taken in seconds since 1970 or their ages; NaN where that is not known."""

    sites: Array
    values: Array
    noise_sds: Array
    times_s: Array
    ages_days: Array | None = None
    lines: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out or pooled."""
    undated: str = ""
    """Why the columns of times tell no ages, if they do not."""


def readings_of_file(path: Path, content: PriorFile, world: World) -> EarlierReadings:
    """Return the readings of a table with the world's axes, or else of a log in degrees.

    Parameters
    ----------
    path : Path
    content : PriorFile
        Says what the file does not: noise, age, and numbers that stand for no value.
    world : World

    Raises
    ------
    InputError
        The file can't be read, a column is missing or can't be told from another, or a cell is not valid.
    """
    log, axes = open_table(path), {axis.name for axis in world.domain.axes}
    if world.domain.georeference is not None and not axes <= set(log.names):
        return _take_from_log(log, content, world)
    return _take_from_table(log, content, world)


def _take_from_table(log: Table, content: PriorFile, world: World) -> EarlierReadings:
    path, columns, axes = log.path, log.names, [axis.name for axis in world.domain.axes]
    value = _find_value(log, world)
    noise = "noise_sd" if "noise_sd" in columns else None
    table = read_readings(log, axes, value, noise, least=1, gaps=True)
    values, about_values = values_in(log, value, world.quantity.unit)
    wrong = np.flatnonzero(~np.isfinite(values) & ~log.is_missing(value))
    if len(wrong):
        raise InputError(
            f"{log.cells[value][wrong[0]]!r} is not a finite number",
            expected="a finite number, or an empty cell where the reading failed",
            where=log.place(int(wrong[0]), value),
        )
    kept = np.isfinite(values)
    if not kept.any():
        raise InputError("every reading failed", expected="at least one value", where=str(path))
    measured = [along(log, axis.name, axis) for axis in world.domain.axes]
    sites = np.column_stack([each.numbers for each in measured])[kept]
    lines = tuple(np.array(table.lines)[kept].tolist())
    sds = None
    if noise is not None:
        sds = spreads_in(log, noise, world.quantity.unit).numbers[kept]
    times, ages, undated = np.full(len(sites), np.nan), None, ""
    notes = (*about_values, *(note for each in measured for note in each.notes))
    dated = _parse_dates(log) if "time" in columns else None
    if dated is not None:
        question = dated.undecided or dated.unzoned
        if question and content.age_days is None:
            raise _undecided(log, question)
        times = dated.seconds[kept]
        notes += (*dated.notes, *(() if dated.offsets else (IN_UTC,)))
    elif "age_days" in columns:
        ages = log.numbers("age_days")[kept]
    elif "time" in columns:
        undated = _without_dates("time")
    sds = _choose_noise(sites, sds, content, world)
    return EarlierReadings(sites, values[kept], sds, times, ages, lines, notes, undated)


def _take_from_log(log: Table, content: PriorFile, world: World) -> EarlierReadings:
    """Return the readings of a log in degrees, at most one per half a spacing along its track."""
    domain = world.domain
    georeference = domain.georeference
    assert georeference is not None
    kinds = _find_kinds(log)
    columns = [kinds[kind][0] for kind in _DEGREES if len(kinds[kind]) == 1]
    upright = [j for j in range(domain.dimension) if j not in georeference.axes]
    if len(columns) < len(_DEGREES) or len(upright) > 1:
        raise InputError(
            f"there are no columns {' and '.join(axis.name for axis in domain.axes)}, nor one of "
            "latitudes and one of longitudes",
            expected="a table with the world's axes, or a log in degrees",
            where=log.place_of_names,
        )
    noise, age = _find_named(log, "noise_sd"), _find_named(log, "age_days")
    time, undated = _find_time(log, kinds["time"])
    points = survey_points(
        log,
        lat=columns[0],
        lon=columns[1],
        value=_find_value(log, world),
        value_unit=world.quantity.unit,
        time=time,
        depth=_find_upright(log, domain.axes[upright[0]]) if upright else None,
        upright=domain.axes[upright[0]] if upright else None,
        noise_sd=noise,
        channels=() if age is None else (age,),
        missing=content.missing,
        least=1,
        spacing_m=float(domain.spacing[georeference.axes[0]]),
    )
    if points.doubts:
        raise InputError(
            "; ".join(points.doubts).replace("--missing ", "missing = "),
            expected="a log without doubtful values",
            where=str(log.path),
            fix="name numbers that stand for no value in [prior], or with --set prior.missing=[-9999]",
        )
    if points.undecided and content.age_days is None:
        raise _undecided(log, points.undecided)
    sites = np.zeros((len(points), domain.dimension))
    sites[:, list(georeference.axes)] = georeference.metres(np.column_stack([points.lat, points.lon]))
    if upright and points.depths is not None:
        sites[:, upright[0]] = points.depths
    times, ages = np.full(len(sites), np.nan), None
    if time is not None and points.times is not None and points.dated:
        times = points.times
    elif age is not None:
        ages = points.channels[age]
    # Without a column of noise, the mean of pooled readings counts as one reading: its noise may be shared.
    sds = _choose_noise(sites, None if noise is None else points.noise_sd, content, world)
    return EarlierReadings(sites, points.values, sds, times, ages, points.lines, points.notes, undated)


def _choose_noise(sites: Array, given: Array | None, content: PriorFile, world: World) -> Array:
    """Return the noise (n,) of readings: that of their column, of the mission's file, or of the sensor."""
    if given is not None:
        return given
    if content.noise_sd is not None:
        return np.full(len(sites), content.noise_sd)
    return np.asarray(np.sqrt(world.sensor.variance(world.domain.clipped(sites))))


# -- columns -------------------------------------------------------------------------------------------------


def _find_kinds(log: Table) -> Mapping[str, list[str]]:
    """Return the columns of a log that hold latitudes, longitudes and times."""
    described = describe_columns(log)
    return {kind: [c.name for c in described if c.kind == kind] for kind in (*_DEGREES, "time")}


def _find_named(log: Table, name: str) -> str | None:
    """Return the column with a name, perhaps with a unit behind it and in any case; None without one."""
    like = [full for full in log.names if name.lower() in (full.lower(), bare(full).lower())]
    return log.column(name) if like else None


def _find_value(log: Table, world: World) -> str:
    """Return the column called value, or else the one named like the quantity."""
    if "value" in log.names:
        return "value"
    quantity = world.quantity.name
    return _find_named(log, quantity) or value_column(log, world.domain, quantity)


def _find_upright(log: Table, axis: Axis) -> str:
    """Return the column of an axis of depths or heights: named like it, or the only one of its kind."""
    named = _find_named(log, axis.name)
    if named is not None:
        return named
    of_kind = is_depth if is_depth(axis.name) else is_height
    like = [name for name in log.names if of_kind(name)]
    if len(like) == 1:
        return like[0]
    raise InputError(
        f"columns {' and '.join(like)} may both be the axis {axis.label}"
        if like
        else f"there is no column of the axis {axis.label}",
        expected=f"a column {axis.name}, besides latitude and longitude",
        where=log.place_of_names,
        fix=f"rename one of them to {axis.name}" if like else "add it, in the world's unit and direction",
    )


def _find_time(log: Table, candidates: Sequence[str]) -> tuple[str | None, str]:
    """Return the column of times, None without one, and why it tells no ages, if it does not."""
    if "time" in log.names and not log.is_missing("time").all():
        candidates = ["time"]
    column = column_of_time(log, candidates)
    if column is not None:
        times = times_in(log, column)
        return column, "" if times is None or times.absolute else _without_dates(column)
    if not candidates:
        return None, ""
    named = f"{', '.join(candidates[:-1])} and {candidates[-1]}"
    return None, f"columns {named} look like times, and none is called time"


# -- times ---------------------------------------------------------------------------------------------------


def seconds_of(text: str, where: str) -> float:
    """Return a time in seconds since 1970; one without an offset is UTC.

    Raises
    ------
    InputError
        It is not a date, perhaps with a time, in ISO 8601.
    """
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(
            f"{text!r} is not a time",
            expected="a time like 2026-07-02T08:00:00+02:00; without an offset it is UTC",
            where=where,
        ) from None


def _parse_dates(log: Table) -> Times | None:
    """Return the times in a table's column time; None if they have no dates.

    Raises
    ------
    InputError
        A cell is no time.
    """
    times, cells = times_in(log, "time"), log.cells["time"]
    if times is not None and not times.absolute:
        return None
    wrong = [row for row, cell in enumerate(cells) if times is None and times_of([cell]) is None] or [0]
    wrong = wrong if times is None else np.flatnonzero(~np.isfinite(times.seconds)).tolist()
    if times is None or wrong:
        raise InputError(
            f"{cells[wrong[0]]!r} is not a time",
            expected="a time like 2026-07-02T08:00:00+02:00; without an offset it is UTC",
            where=log.place(wrong[0], "time"),
        )
    return times


def _undecided(log: Table, question: str) -> InputError:
    return InputError(
        question,
        expected="times that can be read in one way, such as 2026-08-05T10:00:00+02:00",
        where=str(log.path),
        fix="write them so, or give the age of all readings with --set prior.age_days=1",
    )


def _without_dates(column: str) -> str:
    return f"column {column} holds times without dates"
