"""Fields from files: a table over a grid, a raster."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.belief.mean_functions import MeanFunction
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.tables.readings import Readings, read_readings
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind, inside
from fieldbo.world.raster import check_covers, read_mean

_ROUNDING = 1e-6
"""How far a row may lie from its site, as a fraction of the axes' lengths: text rounds numbers."""


@dataclass(frozen=True, eq=False)
class Tabulated(Field):
    """One value per site; between sites, the value of the nearest one.

    Nothing is smoothed: a table of settings says nothing about the settings between them.

    Attributes
    ----------
    extent : (d,) array
        Lengths of the domain's axes; distances are fractions of them.
    tree : scipy.spatial.KDTree
        The sites, in those fractions.
    at_sites : (N,) array
        The values.
    others : dict of str to (N,) array
        Other quantities at the sites.
    """

    extent: Array
    tree: KDTree = field(repr=False)
    at_sites: Array = field(repr=False)
    others: dict[str, Array] = field(repr=False)

    def _nearest(self, points: Array) -> NDArray[np.int64]:
        return np.asarray(self.tree.query(points / self.extent)[1], dtype=np.int64)

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the table's value (N,) at the site nearest to each of `sites` (N, d)."""
        return self.at_sites[self._nearest(sites)]

    def channels(self, sites: Array) -> dict[str, Array]:
        """Return the table's other quantities (N,) at the site nearest to each of `sites` (N, d)."""
        row = self._nearest(sites)
        return {name: values[row] for name, values in self.others.items()}


@settings("field")
class GridTable(FieldKind):
    """A CSV in the world's folder with one row per site, in any order.

    The names of its position columns are those of the axes.
    """

    file: str
    """Name of the file, in the world's folder."""
    value: str
    """Column that holds the value."""
    channels: tuple[str, ...] = ()
    """Columns of other quantities, returned with readings."""

    def make(self, domain: Domain, draw: int, folder: Path | None) -> Tabulated:
        """Return the field; it is the same for every draw.

        Raises
        ------
        InputError
            The file can't be read, has a row that matches no site, or has not exactly one row per site.
        """
        if folder is None:
            raise InputError("a table field needs a folder", expected="a world loaded from a file")
        path = inside(folder, self.file, where="field.file")
        table = read_readings(path, [a.name for a in domain.axes], self.value, channels=self.channels)
        tree = KDTree(domain.sites / domain.extent)
        row = _find_rows_by_site(table, domain, tree, path)
        others = {name: frozen_array(values[row]) for name, values in table.channels.items()}
        return Tabulated(frozen_array(domain.extent), tree, frozen_array(table.values[row]), others)


def _find_rows_by_site(table: Readings, domain: Domain, tree: KDTree, path: Path) -> NDArray[np.int64]:
    """Return the table's row (N,) for each site, after checking that there is exactly one."""
    gap, site = (np.asarray(result) for result in tree.query(table.sites / domain.extent))
    if (gap > _ROUNDING).any():
        row = int(np.argmax(gap > _ROUNDING))
        near = _place(domain, domain.sites[site[row]])
        raise InputError(
            f"{_place(domain, table.sites[row])} is not a site of the domain",
            expected=f"one of its {domain.size} sites; the nearest is {near}",
            where=f"{path}, line {table.lines[row]}",
            fix="correct the row, or the axes in world.toml",
        )
    row_of = np.full(domain.size, -1)
    for row, index in enumerate(site):
        if row_of[index] >= 0:
            raise InputError(
                f"{_place(domain, domain.sites[index])} already has a row, "
                f"in line {table.lines[row_of[index]]}",
                expected="one row per site",
                where=f"{path}, line {table.lines[row]}",
                fix="delete one of the two",
            )
        row_of[index] = row
    missing = np.flatnonzero(row_of < 0)
    if len(missing):
        first = _place(domain, domain.sites[missing[0]])
        raise InputError(
            f"{len(missing)} of {domain.size} sites have no row; the first is {first}",
            expected="one row per site",
            where=str(path),
            fix="add the rows, or correct the axes in world.toml",
        )
    return row_of


def _place(domain: Domain, site: Array) -> str:
    return ", ".join(f"{axis.name} = {x:.10g}" for axis, x in zip(domain.axes, site, strict=True))


@dataclass(frozen=True, eq=False)
class Interpolated(Field):
    """Values of a raster, linear between its cells."""

    function: MeanFunction

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the interpolated values (N,) at `sites` (N, d)."""
        return self.function.values(sites)


@settings("field")
class RasterField(FieldKind):
    """A GeoTIFF, a NetCDF file or a CSV in the world's folder, in the coordinates of the axes.

    Values are interpolated linearly. A CSV has a column per axis, over a grid or scattered points.
    """

    file: str
    """Name of the file, in the world's folder."""
    value: str | None = None
    """Band, variable or column; by default the only one, and of a CSV the column ``value``."""

    def make(self, domain: Domain, draw: int, folder: Path | None) -> Interpolated:
        """Return the field; it is the same for every draw.

        Raises
        ------
        InputError
            The file can't be read, or does not cover every site.
        """
        if folder is None:
            raise InputError("a raster needs a folder", expected="a world loaded from a file")
        path = inside(folder, self.file, where="field.file")
        function = read_mean(path, domain, self.value, "value")
        check_covers(function, domain, self.file, "field.file")
        return Interpolated(function)
