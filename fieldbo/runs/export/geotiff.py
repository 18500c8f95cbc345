"""The final maps as GeoTIFF rasters in the CRS of the world.

``map.tif`` has one band per map: mean, standard deviation and probability; ``class.tif`` has the classes of a
level set, with colours. Pixels are centred on the sites, and those outside the domain hold no data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.results import maps
from fieldbo.results.plot.style import CLASS_OR_NONE
from fieldbo.runs.export.missing import missing
from fieldbo.runs.export.placement import Placement
from fieldbo.runs.export.raster import MapRaster
from fieldbo.runs.export.recorded import Recorded

if TYPE_CHECKING:
    from affine import Affine

_NO_CLASS = 255


def files(run: Recorded) -> dict[str, bytes]:
    """Return the files by name.

    Raises
    ------
    InputError
        rasterio is not installed, the domain does not have two horizontal axes, or its position on the
        ground is unknown.
    """
    try:
        import rasterio  # noqa: F401
    except ModuleNotFoundError:
        raise missing("geotiff", "rasterio", "geo") from None
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
