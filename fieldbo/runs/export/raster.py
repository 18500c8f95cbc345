"""The final maps as rasters: GeoTIFF in the CRS of the world, and netCDF with CF names and units.

``map.tif`` has one band per map: mean, standard deviation and probability; ``class.tif`` has the classes of a
level set, with colours. Pixels are centred on the sites, and those outside the domain hold no data.

``map.nc`` is the one of the run folder. ``trajectory.nc`` holds the readings in the order of arrival, as a
CF discrete sampling geometry: variables along ``obs``, with time and place as coordinates, also in degrees if
the origin of the domain is known.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.domain.domain import Domain
from fieldbo.results import maps
from fieldbo.results.maps import (
    DEGREES,
    GRID_MAPPING,
    Layers,
    attributes_of,
    grid_mapping,
    names_of,
    taken_by,
)
from fieldbo.results.maps import layers as map_layers
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.style import CLASS_OR_NONE
from fieldbo.results.tables import degree_columns
from fieldbo.runs.export.layers import steps
from fieldbo.runs.export.placement import Placement
from fieldbo.runs.replay import Recorded

if TYPE_CHECKING:
    from affine import Affine


_NO_CLASS = 255


def encode_geotiff(run: Recorded) -> dict[str, bytes]:
    """Return the files by name.

    Raises
    ------
    InputError
        The domain does not have two horizontal axes, or its position on the ground is unknown.
    """
    placement, raster = Placement.of_plane(run, "GeoTIFF"), MapRaster.of(run.result)
    layout = _Layout(placement, raster)
    tags = {
        name: value for name, value in maps.labelled(run.result).attributes.items() if name != "reported_site"
    }
    tags |= {"run": run.name, "mission": run.mission.name}
    tags = {name: str(value) for name, value in tags.items()}
    bands = {name: layer for name, layer in raster.layers.items() if name != "class"}
    stacked = np.stack([layout.north_up(values, np.nan) for values, _ in bands.values()])
    described = {name: attributes for name, (_, attributes) in bands.items()}
    out = {"map.tif": layout.encoded(stacked, np.nan, described, tags)}
    if "class" in raster.layers:
        values, attributes = raster.layers["class"]
        image = layout.north_up(values.astype(np.uint8), _NO_CLASS)[None]
        cold, *_, warm, none = CLASS_OR_NONE["cmap"].colors
        below, above = (warm, cold) if tags["side"] == "below" else (cold, warm)
        colours = {0: below, 1: above, 2: none}
        out["class.tif"] = layout.encoded(image, _NO_CLASS, {"class": attributes}, tags, colours)
    return out


class _Layout:
    """Rows from north to south and columns from west to east, as far as the axes point there.

    Parameters
    ----------
    placement : Placement
    raster : MapRaster
    """

    def __init__(self, placement: Placement, raster: MapRaster) -> None:
        self.placement, self.raster = placement, raster
        towards = placement.directions
        self.column = int(np.argmax(np.abs(towards[0])))  # the axis that leads more to the east
        self.row = 1 - self.column
        self.flipped = {
            self.column: towards[0, self.column] < 0,
            self.row: towards[1, self.row] > 0,
        }

    def north_up(self, values: NDArray[Any], nodata: float) -> NDArray[Any]:
        """Return values (k,) of the raster as an image."""
        grid = self.raster.on_grid(values, nodata)
        grid = np.flip(grid, tuple(axis for axis, flipped in self.flipped.items() if flipped))
        return np.ascontiguousarray(grid.T if self.column == 0 else grid)

    def transform(self) -> Affine:
        """Return the transform from columns and rows to metres."""
        from affine import Affine

        raster, towards = self.raster, self.placement.directions
        turned = np.array([-1.0 if self.flipped[axis] else 1.0 for axis in (0, 1)])
        across, down = (
            towards[:, axis] * raster.step[axis] * turned[axis] for axis in (self.column, self.row)
        )
        first = np.array(raster.low)
        for axis in (0, 1):
            if self.flipped[axis]:
                first[axis] += (raster.shape[axis] - 1) * raster.step[axis]
        corner: Array = self.placement.metres(first)[0] - across / 2.0 - down / 2.0
        return Affine(across[0], down[0], corner[0], across[1], down[1], corner[1])

    def encoded(
        self,
        bands: NDArray[Any],
        nodata: float,
        described: dict[str, dict[str, Any]],
        tags: dict[str, str],
        colours: dict[int, str] | None = None,
    ) -> bytes:
        """Return the content of a file.

        Parameters
        ----------
        bands : (b, rows, columns) array
        nodata : float
        described : dict
            CF attributes of each band by its name, in order.
        tags : dict
            Of the whole file.
        colours : dict, optional
            Colours of the values, for example ``"#d55e00"``.
        """
        from matplotlib.colors import to_rgba
        from rasterio.crs import CRS
        from rasterio.io import MemoryFile

        profile = {
            "driver": "GTiff",
            "count": len(bands),
            "height": bands.shape[1],
            "width": bands.shape[2],
            "dtype": bands.dtype,
            "nodata": nodata,
            "crs": CRS.from_wkt(self.placement.crs),
            "transform": self.transform(),
            "compress": "deflate",
        }
        with MemoryFile() as memory:
            with memory.open(**profile) as out:
                out.write(bands)
                out.update_tags(**tags)
                for number, (name, attributes) in enumerate(described.items(), start=1):
                    out.set_band_description(number, name)
                    out.set_band_unit(number, attributes["units"])
                    words = {key: _words(value) for key, value in attributes.items() if key != "units"}
                    out.update_tags(number, **words)
                if colours is not None:
                    table = {
                        value: tuple(round(255 * part) for part in to_rgba(colour))
                        for value, colour in colours.items()
                    }
                    out.write_colormap(1, table | {int(nodata): (0, 0, 0, 0)})
            return bytes(memory.read())


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, np.ndarray) else str(value)


@dataclass(frozen=True, eq=False)
class MapRaster:
    """The maps at the nodes of a grid over two axes.

    Attributes
    ----------
    low : (2,) array
        The first node.
    step : (2,) array
        Distances between nodes along each axis.
    shape : (int, int)
        Number of nodes along each axis.
    index : (k,) int array
        Flat indices of the nodes inside the domain.
    layers : dict
        Values (k,) and attributes of each map.
    """

    low: Array
    step: Array
    shape: tuple[int, int]
    index: NDArray[np.int64]
    layers: Layers

    @classmethod
    def of(cls, outcome: Outcome) -> MapRaster:
        """Return the maps of an outcome whose domain has two axes.

        The nodes are the sites of a grid, with their values. Elsewhere the belief is evaluated: at the
        spacing of a lattice, and in a box at about as many nodes as a picture has.
        """
        domain = outcome.mission.world.domain
        if domain.shape is not None:
            assert domain.grid_index is not None
            shape = (domain.shape[0], domain.shape[1])
            values = map_layers(outcome.answer, outcome.failures)
            return cls(domain.low, steps(domain), shape, domain.grid_index, values)
        step = np.full(2, domain.pitch) if domain.pitch is not None else steps(domain)
        counts = np.floor(domain.extent / step + 1e-9).astype(int) + 1
        ticks = [low + np.arange(n) * d for low, n, d in zip(domain.low, counts, step, strict=True)]
        nodes = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 2)
        index = np.flatnonzero(domain.contains(nodes))
        with one_blas_thread():
            surface = outcome.surface.over(nodes[index].reshape(-1, 2))
            values = map_layers(outcome.answer, outcome.failures, surface)
        return cls(domain.low, step, (int(counts[0]), int(counts[1])), index, values)

    def on_grid(self, values: NDArray[np.generic], nodata: float) -> NDArray[np.generic]:
        """Return values (k,) of the nodes inside the domain as an array of `shape`."""
        grid = np.full(math.prod(self.shape), nodata, dtype=values.dtype)
        grid[self.index] = values
        return grid.reshape(self.shape)


_FIXED = {"order": "order", "value": "value", "noise_sd": "noise_sd", "time_s": "time", "cost": "cost"}
"""Columns of the table of readings, and the variables that hold them."""

_GEODETIC: dict[str, dict[str, Any]] = DEGREES | {
    "altitude": {"standard_name": "altitude", "units": "m", "positive": "up"}
}


def encode_netcdf(run: Recorded) -> dict[str, bytes]:
    """Return the files by name."""
    readings = bytes(trajectory(run).to_netcdf(engine="scipy"))
    return {"map.nc": maps.labelled(run.result).file(), "trajectory.nc": readings}


def trajectory(run: Recorded) -> xarray.Dataset:
    """Return the readings along the path, with CF names and units."""
    world = run.mission.world
    header, rows = run.result.readings()
    domain = world.domain
    behind = header.index("value") - len(degree_columns(domain))
    axes = header[behind - domain.dimension : behind]
    given = set(range(behind, header.index("value")))  # again below, with all their digits
    header, rows = _without(given, header), [_without(given, row) for row in rows]
    names, attributes = _names(header, domain), _attributes(run, axes)
    variables: dict[str, Any] = {
        names[name]: ("obs", _column([row[j] for row in rows]), attributes.get(name, {"long_name": name}))
        for j, name in enumerate(header)
    }
    variables["trajectory"] = (), run.name, {"cf_role": "trajectory_id", "long_name": "name of the run"}
    places = [names[axis] for axis in axes]
    if run.ground is not None and run.ground.origin is not None:
        degrees = run.ground.geodetic(run.result.sites)
        for j, (name, cf) in enumerate(_GEODETIC.items()):
            variables[name] = "obs", degrees[:, j], cf
            places.append(name)
    data = xarray.Dataset(
        variables,
        attrs={
            "Conventions": "CF-1.11",
            "featureType": "trajectory",
            "title": f"{world.title}: {run.name}",
            "source": "fieldbo",
        },
    ).set_coords(["time", *places])
    if world.domain.crs is not None:
        data = data.assign_coords({GRID_MAPPING: ((), np.int32(0), grid_mapping(world.domain.crs))})
        for name in ("value", "noise_sd"):
            data[name].encoding["grid_mapping"] = GRID_MAPPING
    for name in ("time", *places):
        data[name].encoding["_FillValue"] = None  # CF: coordinates have no gaps
    return data


def _without(columns: Container[int], row: Sequence[Any]) -> list[Any]:
    """Return a row without some columns."""
    return [cell for j, cell in enumerate(row) if j not in columns]


def _names(header: list[str], domain: Domain) -> dict[str, str]:
    """Return the variable of each column, with names that CF allows."""
    fixed = [*_FIXED.values(), "trajectory", *_GEODETIC]
    others = [name for name in header if name not in _FIXED]
    taken = [*fixed, *taken_by(domain)]
    return _FIXED | dict(zip(others, names_of(others, taken), strict=True))


def _attributes(run: Recorded, axes: list[str]) -> dict[str, dict[str, Any]]:
    """Return the CF attributes of the columns, among them `axes`."""
    world = run.mission.world
    quantity, unit = world.quantity, {"units": world.quantity.unit}
    named = quantity.standard_name
    began = run.began.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    return {name: attributes_of(world.domain, j) for j, name in enumerate(axes)} | {
        "order": {"long_name": "order that the reading belongs to"},
        "vehicle": {"long_name": "number of the vehicle that took the reading"},
        "value": {"long_name": quantity.name, **unit, "ancillary_variables": "noise_sd"}
        | ({"standard_name": named} if named else {}),
        "noise_sd": {"long_name": f"{quantity.name}, standard deviation of the noise", **unit}
        | ({"standard_name": f"{named} standard_error"} if named else {}),
        "time_s": {
            "standard_name": "time",
            "long_name": "time of the reading",
            "units": f"seconds since {began}",
            "calendar": "standard",
            "axis": "T",
        },
        # No units attribute: CF has none for costs such as EUR.
        "cost": {"long_name": f"cost of the order in {world.cost_unit}, given with its last reading"},
    }


def _column(cells: list[Any]) -> NDArray[Any]:
    """Return a column as numbers or, if it holds text, as text."""
    if any(isinstance(cell, str) for cell in cells):
        return np.array([cell if isinstance(cell, str) else "" for cell in cells])
    return np.array(cells, dtype=float)
