"""A field from a raster: GeoTIFF, NetCDF, or a CSV."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fieldbo._numerics.arrays import Array
from fieldbo.belief.mean_functions import MeanFunction
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind
from fieldbo.world.mean_file import check_covers, read_mean
from fieldbo.world.readings import inside


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
