"""Load what is known before a mission from the files in its ``[prior]``, and write it into a run folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.mean_functions import MeanFunction
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.mission.mission import Mission
from fieldbo.mission.prior import Prior, aged
from fieldbo.mission.schema import MeanFile, PriorFile
from fieldbo.world.logs.columns import describe_columns
from fieldbo.world.logs.log import read_log
from fieldbo.world.logs.survey import survey_from_log
from fieldbo.world.logs.times import IN_UTC, column_of_time, has_offset
from fieldbo.world.raster import read_mean, value_column
from fieldbo.world.readings import column_cells, column_names, inside, read_readings
from fieldbo.world.world import World

READINGS, MEAN = "prior.csv", "prior-mean"
"""Names of the files in a run folder, the second without its suffix."""

_DAY_S = 86_400.0
_DEGREES = ("latitude", "longitude")
_NO_VALUE = ("", "na", "nan")


class EarlierReadings(NamedTuple):
    """Readings and when they were taken, in seconds since 1970; NaN where that is not known."""

    sites: Array
    values: Array
    noise_sds: Array
    times_s: Array
    ages_days: Array | None = None
    lines: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


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
        path = _found(given.file, folder, "prior.mean", anywhere="mean" in typed)
        function = read_mean(path, world.domain, given.value, world.quantity.name)
        mean = FromFile(function, path, given.value)
    if content.readings is None:
        if mean is None:
            raise InputError("[prior] is empty", expected="readings, mean, or both", where="prior")
        return Prior(mean=mean)
    path = _run_or_file(content.readings, folder, anywhere="readings" in typed)
    taken = _from_run(path, world) if _is_run(path) else _from_csv(path, content, world)
    ages = _ages(taken, content, path)
    unknown = np.isnan(ages)
    if content.per_day and unknown.any():
        raise InputError(
            f"per_day = {content.per_day:g}, but the age of {counted(int(unknown.sum()), 'reading')} is not "
            "known",
            expected="the age of each reading",
            where="prior.per_day",
            fix="set age_days, or add a column time to the readings",
        )
    noise = aged(taken.noise_sds, content.per_day, np.where(unknown, 0.0, ages)) if content.per_day else None
    noise_sds = taken.noise_sds if noise is None else noise
    return Prior(taken.sites, taken.values, noise_sds, ages, mean, notes=taken.notes)


def _found(name: str, folder: Path, where: str, *, anywhere: bool) -> Path:
    return Path(name).resolve() if anywhere else inside(folder, name, where=where, owner="mission")


def _run_or_file(name: str, folder: Path, *, anywhere: bool) -> Path:
    """Return the path of a CSV or a run folder; the name of a run in ``runs/`` will do."""
    run = Path("runs") / name
    if len(Path(name).parts) == 1 and _is_run(run) and not (folder / name).exists():
        return run
    return _found(name, folder, "prior.readings", anywhere=anywhere)


def _is_run(path: Path) -> bool:
    return path.is_dir() or path.name == "run.sqlite"


def _from_run(path: Path, world: World) -> EarlierReadings:
    # Records belong to the layer above, which is looked up by name as an extension would be.
    taken: EarlierReadings = import_module("fieldbo.runs.earlier").readings_of_run(path, world)
    return taken


def _from_log(path: Path, content: PriorFile, world: World) -> EarlierReadings:
    """Return the readings of a log in degrees, at most one per half a spacing along its track."""
    georeference = world.domain.georeference
    assert georeference is not None
    log = read_log(path)
    kinds = {kind: [c.name for c in describe_columns(log) if c.kind == kind] for kind in (*_DEGREES, "time")}
    columns = [kinds[kind][0] for kind in _DEGREES if len(kinds[kind]) == 1]
    if len(columns) < len(_DEGREES):
        raise InputError(
            f"there are no columns {' and '.join(axis.name for axis in world.domain.axes)}, nor one of "
            "latitudes and one of longitudes",
            expected="a table with the world's axes, or a log in degrees",
            where=f"{path}, line 1",
        )
    points = survey_from_log(
        log,
        lat=columns[0],
        lon=columns[1],
        value=value_column(path, world.domain, world.quantity.name),
        time=column_of_time(log, kinds["time"]),
        missing=content.missing,
        least=1,
        spacing_m=float(world.domain.spacing[georeference.axes[0]]),
    )
    if points.doubts:
        raise InputError(
            "; ".join(points.doubts).replace("--missing ", "missing = "),
            expected="a log without doubtful values",
            where=str(path),
            fix="name numbers that stand for no value in [prior], or with --set prior.missing=[-9999]",
        )
    if points.undecided and content.age_days is None:
        raise InputError(
            points.undecided,
            expected="dates that can be read in one way, such as 2026-08-05",
            where=str(path),
            fix="write the dates so, or give the age of all readings with --set prior.age_days=1",
        )
    sites = np.tile(world.domain.clipped(np.zeros(world.domain.dimension)), (len(points), 1))
    sites[:, list(georeference.axes)] = georeference.metres(np.column_stack([points.lat, points.lon]))
    if content.noise_sd is not None:
        sds = np.full(len(sites), content.noise_sd)
    else:
        sds = np.sqrt(world.sensor.variance(world.domain.clipped(sites)))
    times = points.times if points.times is not None and points.dated else np.full(len(sites), np.nan)
    return EarlierReadings(sites, points.values, sds, times, lines=points.lines, notes=points.notes)


def _from_csv(path: Path, content: PriorFile, world: World) -> EarlierReadings:
    columns, axes = column_names(path), [axis.name for axis in world.domain.axes]
    if world.domain.crs is not None and not set(axes) <= set(columns):
        return _from_log(path, content, world)
    value = value_column(path, world.domain, world.quantity.name)
    noise = "noise_sd" if "noise_sd" in columns else None
    table = read_readings(path, axes, value, noise, least=1, gaps=True)
    cells = column_cells(path, value)
    wrong = [(ln, c) for (ln, c), y in zip(cells, table.values, strict=True) if not _usable(c, float(y))]
    if wrong:
        raise InputError(
            f"{wrong[0][1]!r} is not a finite number",
            expected="a finite number, or an empty cell where the reading failed",
            where=f"{path}, line {wrong[0][0]}, column {value}",
        )
    kept = np.isfinite(table.values)
    if not kept.any():
        raise InputError("every reading failed", expected="at least one value", where=str(path))
    sites, lines = table.sites[kept], tuple(np.array(table.lines)[kept].tolist())
    if table.noise_variances is not None:
        sds = np.array([float(cell) for _, cell in column_cells(path, "noise_sd")])[kept]
    elif content.noise_sd is not None:
        sds = np.full(len(sites), content.noise_sd)
    else:
        sds = np.sqrt(world.sensor.variance(world.domain.clipped(sites)))
    times, ages = np.full(len(sites), np.nan), None
    notes: tuple[str, ...] = ()
    if "time" in columns:
        cells = column_cells(path, "time")
        times = np.array([_seconds(c, f"{path}, line {ln}, column time") for ln, c in cells])[kept]
        notes = () if all(has_offset(c) for _, c in cells) else (IN_UTC,)
    elif "age_days" in columns:
        numbers = read_readings(path, axes, value, channels=["age_days"], least=1, gaps=True)
        ages = numbers.channels["age_days"][kept]
    return EarlierReadings(sites, table.values[kept], sds, times, ages, lines, notes)


def _usable(cell: str, value: float) -> bool:
    return bool(np.isfinite(value)) or cell.lower() in _NO_VALUE


def _seconds(text: str, where: str) -> float:
    """Return a time in seconds since 1970; one without an offset is UTC."""
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(
            f"{text!r} is not a time",
            expected="a time like 2026-07-02T08:00:00+02:00; without an offset it is UTC",
            where=where,
        ) from None


def _ages(taken: EarlierReadings, content: PriorFile, path: Path) -> Array:
    """Return the ages (n,) in days when the mission begins; NaN where they are not known."""
    now = datetime.now(UTC).timestamp() if content.at is None else _seconds(content.at, "prior.at")
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
        files[READINGS] = _csv(prior, mission.world.domain)
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


def _csv(prior: Prior, domain: Domain) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(axis.name for axis in domain.axes), "value", "noise_sd", "age_days"])
    assert prior.ages_days is not None
    for row in zip(prior.sites, prior.values, prior.noise_sds, prior.ages_days, strict=True):
        site, *numbers = row
        writer.writerow(["" if np.isnan(x) else repr(float(x)) for x in [*site, *numbers]])
    return out.getvalue().encode()
