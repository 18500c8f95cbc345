"""Load what is known before a mission from the files in its ``[prior]``, and write it into a run folder."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.mean_functions import MeanFunction
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.mission.earlier_readings import EarlierReadings, readings_of_file, seconds_of
from fieldbo.mission.mission import Mission
from fieldbo.mission.prior import Prior, aged
from fieldbo.mission.schema import MeanFile, PriorFile
from fieldbo.mission.world_file import load_world
from fieldbo.record.record import Record
from fieldbo.record.store import changed_files, readings_in, record_file
from fieldbo.world.fields.base import inside
from fieldbo.world.grids import copies_of
from fieldbo.world.raster import read_mean
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
    if _is_run(path):
        taken = _take_from_run(path, world)
    else:
        track = None
        if content.track is not None:
            track = _resolve(content.track, folder, "prior.track", anywhere="track" in typed)
        taken = readings_of_file(path, content, world, track)
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
        files |= copies_of(prior.mean.file, MEAN)
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
