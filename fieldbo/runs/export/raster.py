"""The final maps as rasters: GeoTIFF in the CRS of the world, and netCDF with CF names and units.

``map.tif`` has one band per map: mean, standard deviation and probability; ``class.tif`` has the classes of a
level set, with colours. Pixels are centred on the sites, and those outside the domain hold no data. The
names of the classes are in ``class.tif.aux.xml``, where GDAL looks for them, and in the style ``class.qml``
of QGIS: without it, a legend would list all 256 colours of the palette.

``map.nc`` is the one of the run folder. ``trajectory.nc`` holds the readings in the order of arrival, as a
CF discrete sampling geometry: variables along ``obs``, with time and place as coordinates, also in degrees if
the origin of the domain is known. GDAL makes points of it, of the last pair of coordinates, in the CRS of the
first variable. The last is for GDAL 3.6 that in the attribute ``coordinates``, for 3.10 that in the file.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import xarray
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.domain.domain import Domain
from fieldbo.results import maps
from fieldbo.results.cf_units import with_units
from fieldbo.results.maps import (
    DEGREES,
    GRID_MAPPING,
    NO_NUMBER,
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
from fieldbo.runs.export.vector import added, encoded
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
        classes = dict(zip(attributes["flag_meanings"].split(), colours.items(), strict=True))
        out["class.tif.aux.xml"], out["class.qml"] = _names_for_gdal(classes), _style_for_qgis(classes)
    return out


_Classes = dict[str, tuple[int, str]]
"""Value and colour, for example ``"#d55e00"``, of each class by name."""


def _names_for_gdal(classes: _Classes) -> bytes:
    """Return names as categories and as the table of attributes that ArcGIS shows, too."""
    root = ET.Element("PAMDataset")
    band = added(root, "PAMRasterBand", band="1")
    categories = added(band, "CategoryNames")
    table = added(band, "GDALRasterAttributeTable", tableType="thematic")
    # Types: 0 whole numbers, 2 text; uses: 5 value of the pixel, 2 name.
    for index, (name, kind, usage) in enumerate((("Value", "0", "5"), ("Class", "2", "2"))):
        column = added(table, "FieldDefn", index=str(index))
        added(column, "Name", name)
        added(column, "Type", kind)
        added(column, "Usage", usage)
    for index, (name, (value, _)) in enumerate(classes.items()):
        words = name.replace("_", " ")
        added(categories, "Category", words)
        row = added(table, "Row", index=str(index))
        added(row, "F", str(value))
        added(row, "F", words)
    return encoded(root).partition(b"\n")[2]  # GDAL ignores a file that begins with an XML declaration


def _style_for_qgis(classes: _Classes) -> bytes:
    """Return a style, which QGIS applies to the raster of the same name."""
    root = ET.Element("qgis", version="3.22", styleCategories="Symbology")
    drawn = added(
        added(root, "pipe"), "rasterrenderer", type="paletted", band="1", opacity="1", alphaBand="-1"
    )
    palette = added(drawn, "colorPalette")
    for name, (value, colour) in classes.items():
        label = name.replace("_", " ")
        added(palette, "paletteEntry", value=str(value), color=colour, alpha="255", label=label)
    return encoded(root)


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
    # GDAL has no field for a time that is a coordinate.
    elapsed = {"long_name": "time since the start of the run", "units": "s"}
    variables[names_of(["time_s"], [*variables, *taken_by(domain)])[0]] = "obs", variables["time"][1], elapsed
    variables["trajectory"] = (), run.name, {"cf_role": "trajectory_id", "long_name": "name of the run"}
    places = [names[axis] for axis in axes]
    crs = world.domain.crs
    if run.ground is not None and run.ground.origin is not None:
        degrees = run.ground.geodetic(run.result.sites)
        for j, (name, cf) in enumerate(_GEODETIC.items()):
            variables[name] = "obs", degrees[:, j], cf
        # Those in the CRS of the file come last, and heights after depths: see the top.
        mapped = () if domain.georeference is None else domain.georeference.axes
        beside = [name for j, name in enumerate(places) if j not in mapped]
        places = [*beside, *_GEODETIC, *(places[j] for j in mapped)]
        crs = crs or "EPSG:4326"
    others = [name for name in variables if name not in places]
    data = xarray.Dataset(
        {name: variables[name] for name in (*others, *places)},
        attrs={
            "Conventions": "CF-1.11",
            "featureType": "trajectory",
            "title": f"{world.title}: {run.name}",
            "source": "fieldbo",
        },
    ).set_coords(["trajectory", "time", *places])
    if crs is not None:
        data = data.assign_coords({GRID_MAPPING: ((), np.int32(0), grid_mapping(crs))})
    for variable in data.data_vars.values():
        variable.encoding["coordinates"] = " ".join(["trajectory", "time", *places])
        if crs is not None:
            variable.encoding["grid_mapping"] = GRID_MAPPING
        if variable.dtype.kind == "f":
            variable.encoding["_FillValue"] = NO_NUMBER
    for name in ("time", *places):
        data[name].encoding["_FillValue"] = None  # CF: coordinates have no gaps
    return data


def _without(columns: Container[int], row: Sequence[Any]) -> list[Any]:
    """Return a row without some columns."""
    return [cell for j, cell in enumerate(row) if j not in columns]


def _names(header: list[str], domain: Domain) -> dict[str, str]:
    """Return the variable of each column, with names that CF allows."""
    fixed = [*_FIXED.values(), "trajectory", GRID_MAPPING, *_GEODETIC]
    others = [name for name in header if name not in _FIXED]
    taken = [*fixed, *taken_by(domain)]
    return _FIXED | dict(zip(others, names_of(others, taken), strict=True))


def _attributes(run: Recorded, axes: list[str]) -> dict[str, dict[str, Any]]:
    """Return the CF attributes of the columns, among them `axes`."""
    world = run.mission.world
    quantity = world.quantity
    named, unit = quantity.standard_name, {"units": quantity.unit}
    began = run.began.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    return {name: attributes_of(world.domain, j) for j, name in enumerate(axes)} | {
        "order": {"long_name": "order that the reading belongs to"},
        "vehicle": {"long_name": "number of the vehicle that took the reading"},
        "value": with_units({"long_name": quantity.name, **unit, "ancillary_variables": "noise_sd"})
        | ({"standard_name": named} if named else {}),
        "noise_sd": with_units({"long_name": f"{quantity.name}, standard deviation of the noise", **unit})
        | ({"standard_name": f"{named} standard_error"} if named else {}),
        "time_s": {
            "standard_name": "time",
            "long_name": "time of the reading",
            "units": f"seconds since {began}",
            "calendar": "standard",
            "units_metadata": "leap_seconds: none",
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
