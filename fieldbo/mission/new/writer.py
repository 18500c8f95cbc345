"""Write a new world and its first mission from a table of readings: ``worlds/NAME``, ``missions/NAME.toml``.

The truth of the world comes from a Gaussian process fitted to the table: a draw for a survey, the mean for a
cell. `survey` and `cell` derive the domain, the costs and the mission from their kind of table.
"""

from __future__ import annotations

import csv
import io
import math
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.belief.model import LEAST_READINGS
from fieldbo.belief.value_scale import Transform
from fieldbo.errors import InputError, printable
from fieldbo.mission.files import name_of, toml_text, write_whole
from fieldbo.mission.load import load_mission
from fieldbo.mission.mission import Mission
from fieldbo.mission.new.aside import REPLACED, folder_aside
from fieldbo.tables.readings import Readings
from fieldbo.tables.units import bare
from fieldbo.world.fields.table import TableField, fit_table
from fieldbo.world.survey_validation import Validation
from fieldbo.world.world import World, digits_of

_FIT_COMMENT = """
# Hyperparameters fitted to the table. To begin a live mission with them, remove the # below.
# Do not use them in a simulation: its truth comes from this fit, so its scores would be too good.
"""


class Source:
    """A table to make a world from: its file, columns of value and noise, transform, unit, and the model."""

    csv: Path
    value: str
    noise_sd: str | None
    transform: Transform | None
    value_unit: str
    channels: tuple[str, ...] = ()
    fitted_model: bool = False


def new_places(name: str, folder: Path | None = None, *, overwrite: bool = False) -> tuple[Path, Path]:
    """Return the places of a new world's folder and of its mission; raise an `InputError` if one is taken.

    With `overwrite`, a world and a mission of that name may be there.
    """
    name_of("world", name)
    base = Path() if folder is None else folder
    world, mission = base / "worlds" / name, base / "missions" / f"{name}.toml"
    for path in (world, mission):
        if path.parent.exists() and not path.parent.is_dir():
            raise InputError(
                f"{path.parent} is not a folder", expected="a folder, or nothing yet", fix="rename that file"
            )
        if path.exists() and not overwrite:
            raise InputError(
                f"{path} exists",
                expected="a new name: nothing is overwritten",
                fix="choose another name, or overwrite it with --replace",
            )
    if world.exists() and not (world / "world.toml").exists():
        raise InputError(
            f"{world} is no world",
            expected="the folder of a world, with a world.toml, or nothing yet",
            where="--replace",
            fix="choose another name",
        )
    return world, mission


@dataclass(frozen=True, eq=False)
class NewWorld:
    """A world and its first mission, as written.

    Attributes
    ----------
    world, mission : Path
        The world's folder and the mission's file.
    field : TableField
        The fit, with its quality.
    loaded : Mission
        The mission as it loads.
    notes : tuple of str
        What was decided from the table.
    validation : Validation, optional
        For a survey: how well the fit predicts lines or blocks that are left out.
    pooled : float
        How many rows of the log a reading usually pools.
    """

    world: Path
    mission: Path
    field: TableField
    loaded: Mission
    notes: tuple[str, ...]
    validation: Validation | None = None
    pooled: float = 1.0

    @property
    def little_known(self) -> float:
        """Fraction of the sites where the fit's standard deviation is above half the prior's."""
        belief, sites = self.field.belief, self.loaded.world.domain.sites
        prior = belief.kernel.diagonal(sites)
        return float(np.mean(belief.variance(sites) > 0.25 * prior))


@dataclass(frozen=True, eq=False)
class Draft(ABC):
    """A new world and its first mission before they are written.

    Parameters
    ----------
    source : Source
    columns : sequence of str
        Columns of the sites.
    readings : Readings
    field : TableField
        The Gaussian process fitted to them.
    about_table : tuple of str
        What was recognised in the table, left out of it or pooled.
    pooled : float
        How many rows of the table a reading usually pools.
    """

    source: Source
    columns: Sequence[str]
    readings: Readings
    field: TableField
    about_table: tuple[str, ...] = dataclass_field(kw_only=True, default=())
    pooled: float = dataclass_field(kw_only=True, default=1.0)

    comment: ClassVar[str]
    """Comment at the top of the world's file."""
    rows: ClassVar[str]
    """What a row of the table is called."""
    truth: ClassVar[Literal["mean", "draw"]] = "draw"
    """What simulations take for the truth."""

    @classmethod
    def fitted(
        cls,
        source: Source,
        columns: Sequence[str],
        readings: Readings,
        extent: Array | None = None,
        **others: Any,
    ) -> Self:
        """Return a draft with a Gaussian process fitted to the readings.

        The lengths of the axes (d,) are those of the domain, by default those that the readings span.
        """
        extent = np.ptp(readings.sites, axis=0) if extent is None else extent
        with one_blas_thread():  # factors of these sizes are fastest with one BLAS thread
            field = fit_table(readings, extent, "matern52", source.transform or "none", str(source.csv))
        return cls(source, columns, readings, field, **others)

    # -- what depends on the kind of table ---------------------------------------------------------------

    @property
    @abstractmethod
    def heading(self) -> dict[str, Any]:
        """Title, cost unit and start of the world."""

    @abstractmethod
    def domain(self) -> dict[str, Any]:
        """Return the world's table ``[domain]``."""

    @abstractmethod
    def cost(self) -> dict[str, Any]:
        """Return the world's table ``[cost]``."""

    @abstractmethod
    def first_mission(self) -> dict[str, Any]:
        """Return the title, question, agent, initial readings and policy of the first mission."""

    @property
    def channels(self) -> tuple[str, ...]:
        """Columns of other quantities."""
        return self.source.channels

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the table and the world."""
        return self.about_table

    def validation(self, world: World) -> Validation | None:
        """Return how well the fit predicts what is left out in whole groups; None if there are no groups."""
        return self.field.validation(world.domain.sites)

    # -- the files ---------------------------------------------------------------------------------------

    @property
    def noise_sd(self) -> float:
        """Noise of one row in the user's unit, which is larger than that of pooled ones.

        Fitted under a log transform, it is that at the median reading.
        """
        known = self.readings.noise_variances
        at = float(np.median(self.readings.values)) if self.field.scale.transform == "log" else 1.0
        noise = self.field.noise_sd * at if known is None else float(np.sqrt(np.mean(known)))
        return four_digits(noise * math.sqrt(self.pooled))

    def world_toml(self) -> bytes:
        """Return the content of ``world.toml``."""
        source = self.source
        field: dict[str, Any] = {
            "kind": "table",
            "file": "readings.csv",
            "axes": list(self.columns),
            "value": source.value,
            "transform": self.field.scale.transform,
            "truth": self.truth,
        }
        if source.noise_sd:
            field["noise_sd"] = source.noise_sd
        if self.channels:
            field["channels"] = list(self.channels)
        content = {
            "format": 1,
            "version": "1",
            **self.heading,
            "value": {"name": source.value, "unit": source.value_unit},
            "domain": self.domain(),
            "field": field,
            "cost": self.cost(),
            "sensor": {"noise_sd": self.noise_sd},
        }
        return f"{self.comment}\n{toml_text(content)}".encode()

    def mission_toml(self, name: str) -> bytes:
        """Return the content of ``missions/NAME.toml``."""
        first = self.first_mission()
        content = {"format": 1, "title": first.pop("title"), "world": name, "seed": 0, **first}
        return mission_text(content, self.field, self.source.fitted_model).encode()

    def readme(self, name: str, validation: Validation | None) -> bytes:
        """Return the content of ``README.md``."""
        field, source = self.field, self.source
        on_log = " on a log scale" if field.scale.transform == "log" else ""
        unit = "" if source.value_unit in ("", "1") else f" {source.value_unit}"
        truth = "another draw for each *draw* of the mission" if self.truth == "draw" else "the mean"
        return (
            f"# {name}\n\n"
            f"{source.value} from {len(self.readings.values)} {self.rows} in `readings.csv` "
            f"(columns {', '.join(self.columns)}).\n"
            f"The truth is that of a Gaussian process (Matern-5/2) fitted to them{on_log}: {truth}.\n\n"
            f"Leave-one-out error {field.loo_rmse:.4g}{unit}; its 90% intervals hold "
            f"{field.loo_coverage:.0%} of the {self.rows}. Cross-validated R2 {field.explained:.2f}.\n"
            f"{'' if validation is None else _write_prose(validation, unit)}"
        ).encode()

    def blamed(self, error: InputError) -> str:
        """Return what the user gave that is wrong, if the new files do not load."""
        return str(self.source.csv)

    def write_data(self, folder: Path) -> None:
        """Write the files that ``world.toml`` names to the world's folder."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = self.table()
        writer.writerow(columns)
        for row in zip(*(column.tolist() for column in columns.values()), strict=True):
            writer.writerow(["" if math.isnan(number) else f"{number!r}" for number in row])
        write_whole(folder / "readings.csv", text.getvalue().encode())

    def table(self) -> dict[str, Array]:
        """Return the columns (n,) of ``readings.csv``, to the last digit."""
        readings, source = self.readings, self.source
        columns = dict(zip(self.columns, readings.sites.T, strict=True)) | {source.value: readings.values}
        if source.noise_sd is not None and readings.noise_variances is not None:
            columns[source.noise_sd] = np.sqrt(readings.noise_variances)
        return columns | readings.channels

    def write(self, world: Path, mission: Path) -> NewWorld:
        """Write both to a temporary folder, and move them into place once they load.

        Raises
        ------
        InputError
            If they don't load or can't be written. Nothing is left half-written.
        """
        self._check_texts()
        try:
            loaded, validation = self._write_files(world, mission)
        except OSError as error:
            raise InputError(
                f"{world} and {mission} can't be written: {error.strerror} ({error.filename})",
                expected="folders worlds and missions that can be written to",
            ) from None
        return NewWorld(world, mission, self.field, loaded, self.notes, validation, self.pooled)

    def _check_texts(self) -> None:
        """Raise an `InputError` if a name or a unit would not stay on its line."""
        source = self.source
        names = [*self.columns, source.value, *([source.noise_sd] if source.noise_sd else []), *self.channels]
        units = {"--unit": source.value_unit, "--cost-unit": str(self.heading["cost_unit"])}
        given = [("column", name, str(source.csv)) for name in names]
        given += [("unit", unit, option) for option, unit in units.items()]
        for what, text, where in given:
            if printable(text) != text:
                raise InputError(
                    f"the {what} '{printable(text)}' has a line break or another control character",
                    expected="text on one line",
                    where=where,
                    fix=f"rename the {what}",
                )

    def _write_files(self, world: Path, mission: Path) -> tuple[Mission, Validation | None]:
        base = world.parent.parent
        base.mkdir(parents=True, exist_ok=True)
        with folder_aside(base) as aside:
            new_world, new_mission = aside / world.name, aside / mission.name
            new_world.mkdir()
            self.write_data(new_world)
            write_whole(new_world / "world.toml", self.world_toml())
            write_whole(new_mission, self.mission_toml(world.name))
            try:
                loaded = load_mission(new_mission)
            except InputError as error:  # its own place would be a file that is deleted by then
                where = self.blamed(error)
                raise InputError(error.problem, expected=error.expected, where=where, fix=error.fix) from None
            with one_blas_thread():
                validation = self.validation(loaded.world)
            write_whole(new_world / "README.md", self.readme(world.name, validation))
            for path in (world, mission):
                path.parent.mkdir(parents=True, exist_ok=True)
            _put(new_world, world, aside / REPLACED)
            new_mission.replace(mission)
        return loaded, validation


def _put(new: Path, place: Path, aside: Path) -> None:
    """Move a new folder into its place, with the files of an old one there that it does not have itself.

    If that fails, the old one is back in its place.
    """
    if not place.exists():
        new.replace(place)
        return
    for old in place.iterdir():
        if (new / old.name).exists():
            continue
        copy = shutil.copytree if old.is_dir() else shutil.copy2
        copy(old, new / old.name)
    place.replace(aside)
    try:
        new.replace(place)
    except BaseException:
        aside.replace(place)
        raise


def _write_prose(validation: Validation, unit: str) -> str:
    advice = validation.advice(unit)
    sentences = [f"With {validation.result(unit)}.", f"{advice[0].upper()}{advice[1:]}."]
    if validation.warning:
        sentences.append(f"Caution: {validation.warning}.")
    return "\n" + "\n".join(sentences) + "\n"


def mission_text(tables: dict[str, Any], field: TableField, fitted_model: bool = False) -> str:
    """Return the content of a mission file for a world that is fitted to a table.

    In a simulation, the truth comes from that fit. Unless asked to, the model therefore does not begin with
    it: it learns from its own readings, as it would on the day. The first of them are spread over the domain.

    Parameters
    ----------
    tables : dict
        The mission without its model, and perhaps without its initial readings.
    field : TableField
    fitted_model : bool
        Whether the model begins with the fit. Otherwise the fit is in comments.
    """
    theta = np.exp(field.belief.kernel.theta)
    fit = {
        "length_scales": [four_digits(v) for v in theta[:-1]],
        "variance": four_digits(theta[-1] * field.scale.scale**2),
        "mean": to_spread(field.scale.to_user([0.0])[0], field.readings.values),
        "learn": False,  # a few readings around the start say less than the whole table
    }
    model = {"kernel": "matern52", "transform": field.scale.transform}
    if fitted_model:
        return toml_text({**tables, "model": {**model, **fit}})
    tables = dict(tables)
    initial, policy = tables.pop("initial", {"count": LEAST_READINGS}), tables.pop("policy")
    text = toml_text({**tables, "initial": initial, "policy": policy, "model": model})
    return text + _FIT_COMMENT + "".join(f"# {line}\n" for line in toml_text(fit).splitlines())


def to_spread(number: float, values: Array) -> float:
    """Return a number among values (n,) to four digits, or more if these vary little around it.

    Examples
    --------
    >>> to_spread(1897.246812, np.array([1897.2, 1897.3])), to_spread(1234.5, np.array([100.0, 1900.0]))
    (1897.2468, 1234.0)
    """
    return float(f"{float(number):.{digits_of(float(number), float(np.ptp(values)))}g}")


def four_digits(number: float) -> float:
    """Return a number to four significant digits, for a file that people read."""
    return float(f"{float(number):.4g}")


def shorten_names(columns: Sequence[str]) -> list[str]:
    """Return the names of columns without their units, where they then still differ.

    Examples
    --------
    >>> shorten_names(["depth (m)", "chl (ug/l)", "chl (V)"])
    ['depth', 'chl (ug/l)', 'chl (V)']
    """
    short = [bare(column) for column in columns]
    return [a if short.count(a) == 1 else b for a, b in zip(short, columns, strict=True)]


def check_columns_differ(columns: Sequence[tuple[str, str | None]]) -> None:
    """Raise an `InputError` if two options name the same column.

    Parameters
    ----------
    columns : sequence of (str, str or None)
        Options and their columns; None for those that were not given.
    """
    taken: dict[str, str] = {}
    for option, column in columns:
        if column is None:
            continue
        if column in taken:
            raise InputError(
                f"{taken[column]} and {option} both name the column {column!r}",
                expected="a column of its own for each",
                where=option,
            )
        taken[column] = option


def check_values_differ(readings: Readings, what: str, source: Source) -> None:
    """Raise an `InputError` if all readings have the same value."""
    if np.ptp(readings.values) <= 0:
        raise InputError(
            f"all {what} are {readings.values[0]:g}",
            expected="values that differ",
            where=f"{source.csv}, column {source.value}",
        )
