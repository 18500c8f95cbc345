"""Labelled arrays and netCDF files, without xarray, whose import takes longer than a short run.

The file is the one that xarray writes: netCDF-3 with 64-bit offsets. As there, floats mark gaps with NaN,
coordinates have no gaps, and variables name the coordinates that are not axes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray


class Variable(NamedTuple):
    """An array with named dimensions.

    Attributes
    ----------
    dimensions : tuple of str
    values : array
    attributes : mapping of str to text, number or array
    fill : number, optional
        What marks a gap in a variable of whole numbers.
    """

    dimensions: tuple[str, ...]
    values: NDArray[Any]
    attributes: Mapping[str, Any]
    fill: Any = None


@dataclass(frozen=True)
class Labelled:
    """Variables over shared coordinates.

    Attributes
    ----------
    variables, coordinates : dict of str to Variable
        By name.
    attributes : dict
        Those of the whole.
    grid_mapping : str, optional
        The coordinate that describes the CRS of all variables.
    """

    variables: dict[str, Variable]
    coordinates: dict[str, Variable]
    attributes: dict[str, Any] = field(default_factory=dict)
    grid_mapping: str | None = None

    def dataset(self) -> xarray.Dataset:
        """Return a data set of xarray."""
        import xarray

        out = xarray.Dataset(
            {name: variable[:3] for name, variable in self.variables.items()},
            {name: coordinate[:3] for name, coordinate in self.coordinates.items()},
            self.attributes,
        )
        for name, variable in self.variables.items():
            if variable.fill is not None:
                out[name].encoding["_FillValue"] = variable.fill
            if self.grid_mapping is not None:
                out[name].encoding["grid_mapping"] = self.grid_mapping
        for name in self.coordinates:
            out[name].encoding["_FillValue"] = None  # CF allows no missing coordinates
        return out

    def file(self) -> bytes:
        """Return the netCDF file.

        Examples
        --------
        >>> import xarray
        >>> x = Variable(("x",), np.array([0.0, 1.0]), {"units": "m"})
        >>> depth = Variable(("x",), np.array([3.0, np.nan]), {"long_name": "depth"})
        >>> labelled = Labelled({"depth": depth}, {"x": x})
        >>> labelled.file() == bytes(labelled.dataset().to_netcdf(engine="scipy"))
        True
        """
        from scipy.io import netcdf_file

        content = io.BytesIO()
        out = netcdf_file(content, "w", version=2)
        for key, value in self.attributes.items():
            setattr(out, key, _stored(value))
        for of in (self.variables, self.coordinates):
            for variable in of.values():
                for dimension, length in zip(variable.dimensions, variable.values.shape, strict=True):
                    if dimension not in out.dimensions:
                        out.createDimension(dimension, length)
        described = {name: self._described(variable) for name, variable in self.variables.items()}
        described |= {name: dict(coordinate.attributes) for name, coordinate in self.coordinates.items()}
        for name, attributes in described.items():
            variable = (self.variables | self.coordinates)[name]
            stored = out.createVariable(name, variable.values.dtype, variable.dimensions)
            for key, value in attributes.items():
                setattr(stored, key, _stored(value))
            stored.data[...] = variable.values
        out.flush()
        return content.getvalue()

    def _described(self, variable: Variable) -> dict[str, Any]:
        """Return the attributes of a variable with those that say how to read it."""
        beside = " ".join(
            sorted(
                name
                for name, coordinate in self.coordinates.items()
                if name not in (*coordinate.dimensions, self.grid_mapping)
                and set(coordinate.dimensions) <= set(variable.dimensions)
            )
        )
        fill = variable.values.dtype.type(np.nan) if variable.values.dtype.kind == "f" else variable.fill
        said = {"coordinates": beside or None, "_FillValue": fill, "grid_mapping": self.grid_mapping}
        return {**variable.attributes, **{key: value for key, value in said.items() if value is not None}}


def _stored(value: Any) -> Any:
    """Return the value of an attribute as the file holds it."""
    if isinstance(value, str):
        return value.encode()
    stored = np.atleast_1d(value)
    return stored.astype(np.int32) if stored.dtype == np.int64 else stored  # netCDF-3 has no longer ones
