"""A field from a CSV of scattered readings: the mean of the Gaussian process fitted to them.

Bogunovic et al. (2016, section 4) treat their survey of a lake in this way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.belief.kernels import kernel
from fieldbo.belief.marginal_likelihood import LogNormalPrior, fit_kernel
from fieldbo.belief.posterior import Belief
from fieldbo.belief.value_scale import Transform, ValueScale
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind
from fieldbo.world.readings import Readings, inside, read_readings
from fieldbo.world.survey_validation import Score, Validation

FIT_READINGS = 400
"""Hyperparameters are fitted to at most this many readings, drawn at random; the mean uses all of them."""

_WORTHLESS = 0.1
"""Cross-validated R2 below which a fit is worthless; for pure noise it is about 0."""


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
    details: tuple[str, ...] = ()

    @property
    def fitted_to(self) -> Array:
        """The readings (n,), in the user's unit."""
        return self.readings.values

    @property
    def explained(self) -> float:
        """Leave-one-out R2, the fraction of the variance that predictions explain; may be negative."""
        variance = float(np.var(self.readings.values))
        return 1.0 - self.loo_rmse**2 / variance if variance > 0 else 0.0

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the fitted values (N,) at `sites` (N, d), in the user's unit."""
        return self.scale.to_user(self.belief.mean(sites))

    def validation(self, places: Array) -> Validation | None:
        """Return how well the field predicts what was left out; None if there are too few readings to tell.

        Readings along a track are left out in whole lines, scattered ones in blocks as wide as the gaps
        between the readings. The hyperparameters stay those fitted to all readings.

        Parameters
        ----------
        places : (N, d) array
            Where the map is wanted.
        """
        single, spread = Score(self.loo_rmse, self.loo_coverage), float(np.std(self.readings.values))
        return Validation.of(self.belief, self.scale, places, single, spread)

    @property
    def length_scales(self) -> Array:
        """The fitted length scales (d,), in the axes' units."""
        return np.exp(self.belief.kernel.theta[:-1])

    def channels(self, sites: Array) -> dict[str, Array]:
        """Return the channels (N,) of the reading nearest to each of `sites` (N, d)."""
        if not self.readings.channels:
            return {}
        from scipy.spatial.distance import cdist

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
    loo = Score.of(belief, scale, *belief.leave_one_out())
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    if readings.repeated:
        notes += (f"{readings.repeated} of {len(values)} readings repeat a site; they are pooled",)
    if len(subset) < len(values):
        details += (f"the world's hyperparameters are fitted to {len(subset)} of its {len(values)} readings",)
    field = TableField(
        readings,
        extent,
        belief,
        scale,
        noise_sd=float(np.sqrt(np.mean(variances))) * scale.scale,
        loo_rmse=loo.rmse,
        loo_coverage=loo.coverage,
        notes=notes,
        details=details,
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
