"""A new world on the Earth: from a log in degrees, the outline of a lake, and zones to avoid."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shapely

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.free_space import Bottom
from fieldbo.domain.georeference import (
    WGS84,
    Georeference,
    crs_of,
    local_crs,
    reprojected,
)
from fieldbo.domain.lattice import Pattern, lattice
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError, counted
from fieldbo.mission.bathymetry import read_bottom
from fieldbo.mission.new.layers import Layer, read_layer
from fieldbo.mission.new.outlines import (
    reaching,
    simplified_outline,
    simplified_zones,
    without_islands,
)
from fieldbo.mission.new.start import start_in
from fieldbo.mission.new.survey import outline_of
from fieldbo.mission.shapes import Shape, as_obstacles, as_outline, write_shapes

_SITES = 1500  # of the default spacing
_NO_OUTLINE = (
    "warning: without --outline, the outline is drawn around the readings; land, islands and headlands "
    "within it count as water"
)
_FEWEST_SITES = 10
OPTIONS = {
    "domain.spacing": "--spacing",
    "domain.bathymetry": "--bathymetry",
    "domain.least_depth": "--least-depth",
    "domain.depths": "--depths",
    "domain.obstacles": "--avoid",
    "domain.clearance": "--clearance",
    "domain.crs": "--crs",
}


@dataclass(frozen=True)
class Extent:
    """Options of a place: its shape, its sites, and how a boat moves in it.

    Parameters
    ----------
    outline : str, optional
        Vector file of the area to survey; by default, an outline around the readings.
    avoid : tuple of str
        Vector files of zones to go around.
    start : (float, float), optional
        Latitude and longitude; by default, the first reading.
    spacing : float, optional
        Distance between sites, in metres; by default, one that gives about 1,500 sites.
    pattern : {"square", "hexagonal"}
    clearance : float
        Distance to keep from the outline and from zones to avoid, in metres.
    speed : float
        In m/s.
    stop_s : float
        Seconds that a sample takes.
    crs : str, optional
        CRS of files that don't state theirs; if it is in metres, also that of the world.
    bathymetry : Path, optional
        NetCDF or GeoTIFF file of the depth of the bottom.
    least_depth : float, optional
        Depth of water below which there are no sites, in metres.
    depths : tuple of float
        Depths of the sites, in metres; none for sites at the surface only.
    """

    outline: str | None = None
    avoid: tuple[str, ...] = ()
    start: tuple[float, float] | None = None
    spacing: float | None = None
    pattern: Pattern = "square"
    clearance: float = 2.0
    speed: float = 1.0
    stop_s: float = 60.0
    crs: str | None = None
    bathymetry: Path | None = None
    least_depth: float | None = None
    depths: tuple[float, ...] = ()

    def read_outline(self) -> Layer | None:
        """Return the outline's layer; None if there is none."""
        return None if self.outline is None else read_layer(self.outline, "--outline", self.crs)


@dataclass(frozen=True, eq=False)
class Place:
    """A place as fieldbo understands it, in metres.

    Attributes
    ----------
    crs : str
    outline : list of Shape
    avoid : list of Shape
    domain : Domain
    start : (d,) array
    notes : tuple of str
        What was decided.
    """

    crs: str
    outline: list[Shape]
    avoid: list[Shape]
    domain: Domain
    start: Array
    notes: tuple[str, ...]

    @property
    def georeference(self) -> Georeference:
        """The world's georeference."""
        georeference = self.domain.georeference
        assert georeference is not None
        return georeference

    def domain_toml(self, extent: Extent) -> dict[str, Any]:
        """Return the world's table ``[domain]``."""
        deep: dict[str, Any] = {}
        if extent.bathymetry is not None:
            deep["bathymetry"] = extent.bathymetry.name
        if extent.least_depth is not None:
            deep["least_depth"] = extent.least_depth
        if extent.depths:
            deep["depths"] = list(extent.depths)
        return {
            "kind": "lattice",
            "crs": self.crs,
            "outline": "outline.geojson",
            **({"avoid": "avoid.geojson"} if self.avoid else {}),
            "spacing": float(self.domain.spacing[0]),
            "pattern": extent.pattern,
            "clearance": extent.clearance,
            **deep,
        }

    def degrees_toml(self, point: Array) -> dict[str, float]:
        """Return a point (d,) at the surface as a world file holds it, to about a centimetre."""
        latitude, longitude = self.georeference.degrees(point)[0].tolist()
        return {"latitude": round(latitude, 7), "longitude": round(longitude, 7)}

    def write(self, folder: Path, extent: Extent) -> None:
        """Write outline, zones and bathymetry to a world's folder."""
        write_shapes(folder / "outline.geojson", self.outline, self.crs)
        if self.avoid:
            write_shapes(folder / "avoid.geojson", self.avoid, self.crs)
        if extent.bathymetry is not None:
            shutil.copyfile(extent.bathymetry, folder / extent.bathymetry.name)


def place_of(extent: Extent, given: Layer | None, degrees: Array) -> Place:
    """Return the place that options and readings describe.

    Parameters
    ----------
    extent : Extent
    given : Layer, optional
        The outline.
    degrees : (n, 2) array
        Latitude and longitude of the readings.

    Raises
    ------
    InputError
        A file or an option is wrong, or they do not fit each other.
    """
    crs = _crs(extent, given, degrees)
    readings = reprojected(degrees[:, ::-1], WGS84, crs)
    notes = [*given.notes] if given is not None else [_NO_OUTLINE]
    if given is None:
        shapes = [Shape("", shapely.Polygon(outline_of(readings)))]
    else:
        shapes = _valid(given.within(crs), "--outline")
        _check_together(shapes, readings, given, degrees)
        shapes, about = without_islands(shapes)
        notes += about
    area = as_outline(shapes)
    spacing = extent.spacing or _round(math.sqrt(area.area / _SITES))
    if area.area < spacing**2:
        raise _too_wide(f"a spacing of {spacing:g} m is too wide for {area.area:,.0f} m2", area)
    shapes, about = simplified_outline(shapes, spacing, extent.clearance)
    notes += about
    avoid, about = _zones(extent, crs, as_outline(shapes))
    notes += about
    avoid, about = simplified_zones(avoid, spacing, extent.clearance, as_outline(shapes))
    notes += about
    bottom = _bottom(extent, crs)
    notes += [] if bottom is None else [f"bathymetry {bottom.source}"]
    try:
        domain = lattice(
            as_outline(shapes),
            spacing,
            extent.pattern,
            as_obstacles(avoid),
            extent.clearance,
            crs=crs,
            depths=extent.depths,
            bottom=bottom,
            least_depth=extent.least_depth or 0.0,
        )
    except InputError as error:
        raise error.at(OPTIONS.get(error.where or "", "--outline")) from None
    if domain.size < _FEWEST_SITES:
        raise _too_wide(f"a spacing of {spacing:g} m leaves {counted(domain.size, 'site')}", area)
    start, about = start_in(domain, extent.start, readings)
    return Place(crs, shapes, avoid, domain, start, (*notes, *about))


def _too_wide(problem: str, area: Region) -> InputError:
    """Return the error for a spacing that leaves too few sites in an area."""
    return InputError(
        problem,
        expected=f"at least {_FEWEST_SITES} sites",
        where="--spacing",
        fix=f"use a spacing of {_round(math.sqrt(area.area / _SITES)):g} m",
    )


def _bottom(extent: Extent, crs: str) -> Bottom | None:
    """Return the bottom of the water, if its file was given."""
    if extent.bathymetry is None:
        if extent.least_depth is not None:
            raise InputError(
                "--least-depth was given without the depth of the bottom",
                expected="--bathymetry FILE",
                where="--least-depth",
            )
        return None
    try:
        return read_bottom(extent.bathymetry, crs)
    except InputError as error:
        where = f"--bathymetry {extent.bathymetry}"
        raise type(error)(error.problem, expected=error.expected, where=where, fix=error.fix) from None


def _valid(shapes: list[Shape], option: str) -> list[Shape]:
    """Return shapes in metres, or raise an `InputError` if one is not valid there."""
    for number, shape in enumerate(shapes, 1):
        if not shape.area.is_valid:
            raise InputError(
                f"area {number} is not valid: {shapely.is_valid_reason(shape.area)}",
                expected="areas whose edges do not cross or touch themselves",
                where=option,
                fix="repair it in a GIS (QGIS: Fix geometries), and look at the result",
            )
    return shapes


def _crs(extent: Extent, given: Layer | None, degrees: Array) -> str:
    """Return the world's CRS: that of the options if it is in metres, or the UTM zone."""
    if extent.crs is not None and crs_of(extent.crs, "--crs").is_projected:
        return extent.crs
    around = degrees if given is None else given.corners[:, ::-1]
    try:
        return local_crs(*around.T)
    except InputError as error:
        raise error.at("--csv" if given is None else "--outline") from None


def _check_together(shapes: list[Shape], readings: Array, given: Layer, degrees: Array) -> None:
    """Raise an `InputError` if no reading lies near the outline: a CRS or an order must be wrong."""
    area = as_outline(shapes)
    reach = 0.1 * math.sqrt(area.area)
    if shapely.dwithin(shapely.points(readings), area, reach).any():
        return
    far_km = float(shapely.distance(shapely.points(readings), area).min()) / 1000.0
    outline = shapely.union_all([shape.area for shape in given.shapes])
    swapped = shapely.transform(outline, lambda xy: xy[:, ::-1])
    points = shapely.points(degrees[:, ::-1])
    if shapely.intersects(points, outline.envelope.buffer(1e-3)).any():
        swap = None
    elif shapely.intersects(points, swapped.envelope.buffer(1e-3)).any():
        swap = (
            "latitude and longitude look swapped in one of the two: swap --lat and --lon, or correct the file"
        )
    else:
        swap = "check that both are of the same place, and the CRS of the outline"
    raise InputError(
        f"no reading lies near the outline: the nearest is {far_km:,.1f} km away",
        expected="a log and an outline of the same place",
        where="--outline",
        fix=swap,
    )


def _zones(extent: Extent, crs: str, area: Region) -> tuple[list[Shape], list[str]]:
    """Return the zones to avoid that reach into the area, and notes."""
    zones: list[Shape] = []
    notes: list[str] = []
    for file in extent.avoid:
        layer = read_layer(file, "--avoid", extent.crs)
        notes += layer.notes
        within = _valid(layer.within(crs), "--avoid")
        stem = Path(file).name.split(".")[0]
        named = [Shape(shape.name or stem, shape.area) for shape in within]
        inside = reaching(named, area)
        if len(inside) < len(named):
            notes.append(
                f"{counted(len(named) - len(inside), 'zone')} of {Path(file).name} outside the outline "
                "left out"
            )
        zones += inside
    return zones, notes


def _round(number: float) -> float:
    """Return a round number near a number.

    Examples
    --------
    >>> _round(12.0), _round(4.9), _round(71.0)
    (10.0, 5.0, 80.0)
    """
    power = 10.0 ** math.floor(math.log10(number))
    return power * min((1, 1.5, 2, 3, 4, 5, 6, 8, 10), key=lambda k: abs(math.log(k * power / number)))
