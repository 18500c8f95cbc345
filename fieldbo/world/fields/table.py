"""A field from a CSV of scattered readings: the mean of the Gaussian process fitted to them.

Bogunovic et al. (2016, section 4) treat their survey of a lake in this way.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.belief.kernels import kernel
from fieldbo.belief.marginal_likelihood import LogNormalPrior, fit_kernel
from fieldbo.belief.posterior import Belief
from fieldbo.belief.value_scale import Transform, ValueScale
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind

LEAST_READINGS = 5
FIT_READINGS = 400
"""Hyperparameters are fitted to at most this many readings, drawn at random; the mean uses all of them."""

_WORTHLESS = 0.1
"""Cross-validated R2 below which a fit is worthless; for pure noise it is about 0."""


@dataclass(frozen=True, eq=False)
class Readings:
    """Scattered readings, as in a file.

    Attributes
    ----------
    sites : (n, d) array
    values : (n,) array
    noise_variances : (n,) array or None
        None where the file has no noise column.
    channels : dict of str to (n,) array
    column : str
        The column of the value.
    lines : tuple of int
        Line number of each reading in the file.
    """

    sites: Array
    values: Array
    noise_variances: Array | None
    channels: dict[str, Array]
    column: str = ""
    lines: tuple[int, ...] = ()

    @property
    def repeated(self) -> int:
        """Number of readings that share their site with an earlier one; a fit pools them."""
        return len(self.sites) - len(np.unique(self.sites, axis=0))


def read_readings(
    path: Path,
    axes: Sequence[str],
    value: str,
    noise_sd: str | None = None,
    channels: Sequence[str] = (),
) -> Readings:
    """Read the named columns of a CSV file, separated by comma, semicolon, tab or blanks.

    Parameters
    ----------
    path : Path
    axes : sequence of d column names
    value : str
        Column that holds the value.
    noise_sd : str, optional
        Column of the readings' noise standard deviations.
    channels : sequence of str
        Columns of other quantities; a missing or empty entry becomes NaN.

    Raises
    ------
    InputError
        The file is missing or not text, a column is missing, an entry is not a finite number, a noise is
        negative, or there are fewer than five readings. The message names line and column.
    """
    rows = _rows(path)
    wanted = [*axes, value, *([noise_sd] if noise_sd else []), *channels]
    header = _checked_header(path, rows, wanted)
    position = {name: header.index(name) for name in wanted}

    def column(name: str, *, gaps: bool = False) -> Array:
        return np.array([_number(path, line, cells, name, position[name], gaps) for line, cells in rows[1:]])

    if len(rows) - 1 < LEAST_READINGS:
        raise InputError(
            f"the file has {counted(len(rows) - 1, 'reading')}",
            expected=f"at least {LEAST_READINGS}",
            where=str(path),
        )
    noise = column(noise_sd) if noise_sd else None
    if noise is not None and (noise < 0).any():
        line = rows[1 + int(np.argmax(noise < 0))][0]
        raise InputError(
            f"noise = {noise.min()}",
            expected="a standard deviation of at least 0",
            where=f"{path}, line {line}, column {noise_sd}",
        )
    return Readings(
        np.column_stack([column(a) for a in axes]),
        column(value),
        None if noise is None else noise**2,
        {c: column(c, gaps=True) for c in channels},
        value,
        tuple(line for line, _ in rows[1:]),
    )


def column_names(path: Path) -> list[str]:
    """Return the column names of a CSV file, in order.

    Raises
    ------
    InputError
        The file is missing, empty or not text.
    """
    return [name.strip() for name in _rows(path)[0][1]]


def _checked_header(path: Path, rows: list[tuple[int, list[str]]], wanted: Sequence[str]) -> list[str]:
    """Return the column names, after checking that all `wanted` exist and that no row is too long."""
    first, names = rows[0]
    header = [name.strip() for name in names]
    for name in wanted:
        if name not in header:
            raise UnknownNameError.of("column", name, header, where=f"{path}, line {first}")
        if header.count(name) > 1:
            raise InputError(
                f"{header.count(name)} columns are named {name!r}",
                expected="one column with that name",
                where=f"{path}, line {first}",
            )
    for line, cells in rows[1:]:
        if any(c.strip() for c in cells[len(header) :]):
            raise InputError(
                f"the line has {counted(len(cells), 'cell')}",
                expected=f"{len(header)}, one per column ({', '.join(header)})",
                where=f"{path}, line {line}",
                fix="write decimals with a point, not a comma, and put text with commas in quotes",
            )
    return header


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the non-empty rows of a file as (line number, cells), the column names first."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"there is no file {path.name}", expected="a CSV file of readings", where=str(path.parent)
        ) from None
    except IsADirectoryError:
        raise InputError(
            f"{path.name} is a folder", expected="a CSV file of readings", where=str(path)
        ) from None
    except OSError as error:
        raise InputError(
            f"the file can't be read: {error.strerror}", expected="a CSV file of readings", where=str(path)
        ) from None
    except UnicodeDecodeError:
        raise InputError(
            "the file is not text",
            expected="a CSV file in UTF-8",
            where=str(path),
            fix="export it from the spreadsheet as CSV (UTF-8)",
        ) from None
    try:
        rows = _split(text)
    except csv.Error as error:
        raise InputError(
            f"this is not a CSV file: {error}", expected="cells without line breaks", where=str(path)
        ) from None
    if not rows:
        raise InputError("the file is empty", expected="a line of column names", where=str(path))
    return rows


def _split(text: str) -> list[tuple[int, list[str]]]:
    """Return the non-empty rows as (line number, cells)."""
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    if first.count(delimiter) == 0:
        lines = enumerate(text.splitlines(), 1)
        return [(i, line.replace('"', "").split()) for i, line in lines if line.strip()]
    reader = csv.reader(text.splitlines(), delimiter=delimiter)
    return [(reader.line_num, row) for row in reader if any(c.strip() for c in row)]


def _number(path: Path, line: int, cells: list[str], name: str, index: int, gaps: bool) -> float:
    cell = cells[index].strip() if index < len(cells) else ""
    if gaps and cell.lower() in ("", "na", "nan"):
        return float("nan")
    try:
        number = float(cell)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number) and not gaps:
        raise InputError(
            f"{cell!r} is not a finite number" if cell else "the cell is empty",
            expected="a finite number",
            where=f"{path}, line {line}, column {name}",
            fix="correct the cell, or delete the line",
        )
    return number


@dataclass(frozen=True, eq=False)
class TableField(Field):
    """The mean of the process fitted to a table, and how well it predicts.

    Attributes
    ----------
    readings : Readings
    extent : (d,) array
        Lengths of the domain's axes.
    belief : Belief
        In model units (standardised values).
    scale : ValueScale
    noise_sd : float
        Of a reading, in (transformed) units of the value; fitted if the file has no noise column.
    loo_rmse : float
        Root mean square error of predicting each site from all others, in the user's unit.
    loo_coverage : float
        Fraction of readings inside the 90% interval of that prediction.
    """

    readings: Readings
    extent: Array
    belief: Belief
    scale: ValueScale
    noise_sd: float
    loo_rmse: float
    loo_coverage: float
    notes: tuple[str, ...] = ()

    @property
    def explained(self) -> float:
        """Leave-one-out R2, the fraction of the variance that predictions explain; may be negative."""
        variance = float(np.var(self.readings.values))
        return 1.0 - self.loo_rmse**2 / variance if variance > 0 else 0.0

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the fitted values (N,) at `sites` (N, d), in the user's unit."""
        return self.scale.to_user(self.belief.mean(sites))

    @property
    def length_scales(self) -> Array:
        """The fitted length scales (d,), in the axes' units."""
        return np.exp(self.belief.kernel.theta[:-1])

    def channels(self, sites: Array) -> dict[str, Array]:
        """Return the channels (N,) of the reading nearest to each of `sites` (N, d)."""
        if not self.readings.channels:
            return {}
        row = np.argmin(cdist(sites / self.extent, self.readings.sites / self.extent), axis=1)
        return {name: values[row] for name, values in self.readings.channels.items()}


def fit_table(
    readings: Readings, extent: Array, kernel_name: str, transform: Transform, where: str
) -> TableField:
    """Fit a Gaussian process to readings by maximum penalised likelihood.

    Parameters
    ----------
    readings : Readings
    extent : (d,) array
        Lengths of the axes, which set the priors on the length scales.
    kernel_name : str
    transform : {"none", "log"}
    where : str
        The file; errors name it.

    Raises
    ------
    InputError
        The transform is ``"log"`` and a value is not above 0.
    """
    scale = _standardised(readings, transform, where)
    known = readings.noise_variances
    noise = None if known is None else scale.noise_to_model(known, readings.values)
    prior = LogNormalPrior.standard(extent, with_noise=noise is None)
    start = kernel(kernel_name, 0.3 * extent)
    values = scale.to_model(readings.values)
    subset = _chosen(len(values))
    known_noise = None if noise is None else noise[subset]
    fitted = fit_kernel(start, readings.sites[subset], values[subset], known_noise, prior, stream(0, "model"))
    variances = np.full(len(values), fitted.noise_variance) if noise is None else noise
    belief = Belief(fitted.kernel).condition_on(readings.sites, values, variances)
    mean, variance = belief.leave_one_out()
    z = np.abs(belief.values - mean) / np.sqrt(variance)
    missed = scale.to_user(belief.values) - scale.to_user(mean)
    notes: tuple[str, ...] = ()
    if readings.repeated:
        notes += (f"{readings.repeated} of {len(values)} readings repeat a site; they are pooled",)
    if len(subset) < len(values):
        notes += (f"hyperparameters are fitted to {len(subset)} of {len(values)} readings",)
    field = TableField(
        readings,
        extent,
        belief,
        scale,
        noise_sd=float(np.sqrt(np.mean(variances))) * scale.scale,
        loo_rmse=float(np.sqrt(np.mean(missed**2))),
        loo_coverage=float(np.mean(z <= ndtri(0.95))),  # inside the central 90%
        notes=notes,
    )
    if field.explained > _WORTHLESS:
        return field
    worthless = (
        f"the fitted truth is worthless (cross-validated R2 {field.explained:.2f}): the other rows predict a "
        "row hardly better than their mean does, so results in this world are due to chance"
    )
    return replace(field, notes=(worthless, *notes))


def _standardised(readings: Readings, transform: Transform, where: str) -> ValueScale:
    """Return the scale that gives the transformed readings mean 0 and standard deviation 1."""
    try:
        y = ValueScale(transform).to_model(readings.values)
    except InputError as error:
        line = f", line {readings.lines[int(np.argmin(readings.values))]}" if readings.lines else ""
        column = f", column {readings.column}" if readings.column else ""
        raise error.at(f"{where}{line}{column}") from None
    with np.errstate(over="ignore"):
        spread = float(np.std(y))
    if not np.isfinite(spread):
        raise InputError(
            f"values reach {np.abs(readings.values).max():g}", expected="values below 1e150", where=where
        )
    return ValueScale(transform, float(np.mean(y)), spread if spread > 0 else 1.0)


def _chosen(n: int) -> NDArray[np.int64]:
    """Return the readings that hyperparameters are fitted to; the time of a fit is cubic in their number."""
    if n <= FIT_READINGS:
        return np.arange(n)
    return np.sort(stream(1, "model").choice(n, FIT_READINGS, replace=False))


@settings("field")
class Table(FieldKind):
    """A CSV of scattered readings in the world's folder; the field is the process fitted to them."""

    file: str
    """Name of the file, in the world's folder."""
    value: str
    """Column that holds the value."""
    axes: tuple[str, ...] | None = None
    """Columns of the position, in the domain's order; by default, the names of the axes."""
    noise_sd: str | None = None
    """Column of the readings' noise standard deviations; without it, one value is fitted."""
    channels: tuple[str, ...] = ()
    """Columns of other quantities; a reading returns those of the nearest row."""
    kernel: Literal["se", "matern32", "matern52"] = "matern52"
    """Name of the kernel."""
    transform: Transform = "none"
    """Use ``"log"`` for skewed, positive values."""

    def make(self, domain: Domain, draw: int, folder: Path | None) -> TableField:
        """Return the fitted field; it is the same for every draw."""
        if folder is None:
            raise InputError("a table field needs a folder", expected="a world loaded from a file")
        path = inside(folder, self.file, where="field.file")
        columns = self.axes or tuple(a.name for a in domain.axes)
        if len(columns) != domain.dimension:
            raise InputError(
                f"axes names {counted(len(columns), 'column')} of positions",
                expected=f"{domain.dimension}, one per axis",
                where="field.axes",
            )
        readings = read_readings(path, columns, self.value, self.noise_sd, self.channels)
        return fit_table(readings, domain.extent, self.kernel, self.transform, str(path))


def inside(folder: Path, name: str, *, where: str) -> Path:
    """Return ``folder / name``, or raise an `InputError` if that lies outside the folder."""
    try:
        path = (folder / name).resolve()
    except (OSError, ValueError):
        raise InputError(
            f"{name!r} is not a valid file name", expected="the name of a file", where=where
        ) from None
    if not path.is_relative_to(folder.resolve()):
        raise InputError(
            f"{name!r} lies outside the folder {folder.name}",
            expected="a file in the world's own folder",
            where=where,
            fix="copy the file there",
        )
    return path


__all__ = [
    "LEAST_READINGS",
    "Readings",
    "Table",
    "TableField",
    "column_names",
    "fit_table",
    "inside",
    "read_readings",
]
