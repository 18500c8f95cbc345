"""A field from a CSV of scattered readings: a draw of the Gaussian process fitted to them, or its mean.

Bogunovic et al. (2016, section 4) use the mean of such a fit to their survey of a lake. The mean is smoother
than the lake: missions score better in it than on the water. A draw varies around it as the place may.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.belief.kernels import Stationary, kernel
from fieldbo.belief.marginal_likelihood import LogNormalPrior, fit_kernel
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import Transform, ValueScale
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.tables.readings import Readings, read_readings
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind, inside
from fieldbo.world.fields.gp_draw import DrawnFromBelief, joint
from fieldbo.world.survey_validation import Score, Validation

FIT_READINGS = 400
"""Hyperparameters are fitted to at most this many readings, drawn at random; the mean uses all of them."""

_WORTHLESS = 0.1
"""Cross-validated R2 below which a fit is worthless; for pure noise it is about 0."""


@dataclass(frozen=True, eq=False)
class TableField(Field):
    """The process fitted to a table, of which the truth is the mean or a draw, and how well it predicts.

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
    domain : Domain, optional
        Over whose sites the truth is drawn.
    draw : int, optional
        Which draw the truth is; None for the mean.
    known : Belief, optional
        From which it is drawn, if more is known than the table; by default `belief`.
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
    domain: Domain | None = None
    draw: int | None = None
    known: Belief | None = None

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
        """Return the true values (N,) at `sites` (N, d), in the user's unit."""
        if self.draw is None:
            return self.scale.to_user(self.belief.mean(sites))
        return self._drawn.values(sites)

    @cached_property
    @on_one_blas_thread
    def _drawn(self) -> DrawnFromBelief:
        assert self.domain is not None
        assert self.draw is not None
        known = self.belief if self.known is None else self.known
        (y,) = joint(Surface(known, self.domain.sites), [stream(self.draw, "field")])
        at_sites = frozen_array(self.scale.to_user(y))
        return DrawnFromBelief(self.domain, at_sites, self.kernel, self.scale, known.mean)

    @property
    def kernel(self) -> Stationary:
        """The fitted kernel, in model units."""
        assert isinstance(self.belief.kernel, Stationary)
        return self.belief.kernel

    def knowing(self, sites: Array, values: Array, noise_sds: Array) -> TableField:
        """Return the field whose draws also pass through further readings, as far as their noise allows.

        Readings that repeat a row of the table are left out, and so are values that have no logarithm if the
        fit needs one.

        Parameters
        ----------
        sites : (n, d) array
        values : (n,) array
            In the user's unit.
        noise_sds : (n,) array
        """
        rows = zip(self.readings.sites.tolist(), self.readings.values.tolist(), strict=True)
        table = {(*site, value) for site, value in rows}
        pairs = zip(sites.tolist(), values.tolist(), strict=True)
        new = np.array([(*site, value) not in table for site, value in pairs], dtype=bool)
        new &= self.scale.usable(values)
        if not new.any():
            return self
        noise = self.scale.noise_to_model(np.square(noise_sds[new]), values[new])
        return replace(
            self, known=self.belief.condition_on(sites[new], self.scale.to_model(values[new]), noise)
        )

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
    scale = _standardise(readings, transform, where)
    asked = _Asked(_digest(readings, extent), readings, scale, extent, kernel_name, FIT_READINGS)
    return replace(_fitted(asked), readings=readings)


@dataclass(frozen=True)
class _Asked:
    """What a field is fitted to; alike if all digits are: `new world` then loads what it has fitted."""

    digest: bytes
    readings: Readings = dataclass_field(compare=False)
    scale: ValueScale
    extent: Array = dataclass_field(compare=False)
    kernel_name: str
    most: int


def _digest(readings: Readings, extent: Array) -> bytes:
    numbers = [readings.sites, readings.values, extent]
    numbers += [] if readings.noise_variances is None else [readings.noise_variances]
    shapes = repr([each.shape for each in numbers]).encode()
    return sha256(shapes + b"".join(np.ascontiguousarray(each).tobytes() for each in numbers)).digest()


@lru_cache(maxsize=2)
@on_one_blas_thread
def _fitted(asked: _Asked) -> TableField:
    readings, scale, extent = asked.readings, asked.scale, asked.extent
    known = readings.noise_variances
    noise = None if known is None else scale.noise_to_model(known, readings.values)
    prior = LogNormalPrior.standard(extent, with_noise=noise is None)
    start = kernel(asked.kernel_name, 0.3 * extent)
    values = scale.to_model(readings.values)
    subset = _choose(len(values), asked.most)
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


def _standardise(readings: Readings, transform: Transform, where: str) -> ValueScale:
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


def _choose(n: int, most: int) -> NDArray[np.int64]:
    """Return the readings that hyperparameters are fitted to; the time of a fit is cubic in their number."""
    if n <= most:
        return np.arange(n)
    return np.sort(stream(1, "model").choice(n, most, replace=False))


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
    truth: Literal["mean", "draw"] = "mean"
    """What simulations take for the truth: ``"draw"``, a field that could be, another one for each *draw* of
    the mission; or the mean of the fit, which is smoother than the place."""

    def make(self, domain: Domain, draw: int, folder: Path | None) -> TableField:
        """Return the fitted field; unless the truth is drawn, it is the same for every draw."""
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
        if self.truth == "draw" and (domain.continuous or domain.control_sets):
            raise InputError(
                'truth = "draw" in a domain without sites',
                expected='truth = "mean", or a domain of kind grid or lattice',
                where="field.truth",
            )
        changed = path.stat().st_mtime_ns if path.exists() else 0
        table = _Table(path, changed, columns, self.value, self.noise_sd, self.channels)
        field = _fit(table, tuple(domain.extent.tolist()), self.kernel, self.transform)
        return replace(field, domain=domain, draw=draw if self.truth == "draw" else None)


class _Table(NamedTuple):
    """A file as it was at a time, and what is read from it."""

    path: Path
    changed_ns: int
    axes: tuple[str, ...]
    value: str
    noise_sd: str | None
    channels: tuple[str, ...]


@lru_cache(maxsize=4)  # advice and comparisons run missions in many draws of one fit
def _fit(table: _Table, extent: tuple[float, ...], kernel_name: str, transform: Transform) -> TableField:
    readings = read_readings(table.path, table.axes, table.value, table.noise_sd, table.channels)
    return fit_table(readings, np.array(extent), kernel_name, transform, str(table.path))
