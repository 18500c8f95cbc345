"""A new world on the Earth: from a log in degrees, the outline of a lake, and zones to avoid."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.free_space import Bottom
from fieldbo.domain.georeference import (
    TABLE_DIGITS,
    WGS84,
    Georeference,
    check_degrees,
    crs_of,
    is_true_to_scale,
    local_crs,
    reprojected,
)
from fieldbo.domain.lattice import Pattern, lattice
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError, at, counted
from fieldbo.mission.bathymetry import Positive, check_deepest, read_bottom
from fieldbo.mission.layers import Layer, read_layer
from fieldbo.mission.new.shores import (
    check_valid,
    read_zones,
    simplified_outline,
    simplified_zones,
    without_islands,
)
from fieldbo.mission.shapes import Shape, as_obstacles, as_outline, write_shapes
from fieldbo.world.grids import files_of

_NEAR_M = 1000.0


def start_in(domain: Domain, asked: tuple[float, float] | None, readings: Array) -> tuple[Array, list[str]]:
    """Return the start (d,) in a domain on the Earth, and a note if it is not the one that was asked for.

    Parameters
    ----------
    domain : Domain
    asked : (float, float) or None
        Latitude and longitude; by default, the first reading.
    readings : (n, 2) array
        In metres.

    Raises
    ------
    InputError
        The start is not in the water.
    """
    georeference = domain.georeference
    assert georeference is not None
    if asked is None:
        start = _put_at_surface(domain, readings[0])
        if domain.contains(start)[0]:
            return start, []
        start = _put_at_surface(domain, domain.sites[domain.nearest(start)])
        latitude, longitude = georeference.degrees(start)[0]
        return start, [
            f"no --start: it is at {latitude:.6f}, {longitude:.6f}, the site nearest to the first reading"
        ]
    check_degrees(np.array([asked[0]]), np.array([asked[1]]), "--start")
    start = _put_at_surface(domain, georeference.metres(asked)[0])
    if domain.contains(start[None])[0]:
        return start, []
    free = domain.region
    assert free is not None
    away = float(shapely.distance(shapely.Point(start[:2]), free))
    meant = _guess_meant(asked, georeference, free, min(away, _NEAR_M))
    if meant is not None:
        what = "south and west are negative" if abs(meant[0]) == abs(asked[0]) else "latitude comes first"
        fix = f"{what}: --start {meant[0]:.{TABLE_DIGITS}f},{meant[1]:.{TABLE_DIGITS}f}"
    else:
        latitude, longitude = georeference.degrees(domain.sites[domain.nearest(start)])[0]
        fix = f"the nearest site is --start {latitude:.{TABLE_DIGITS}f},{longitude:.{TABLE_DIGITS}f}"
        if away > _FAR_M:
            fix += "; or the columns of the log are exchanged: check --lat and --lon"
    zone = domain.obstacle_at(start)
    where = "on land, or within the clearance of the shore" if zone is None else f"inside {zone.name!r}"
    raise InputError(
        f"the start {asked[0]:g}, {asked[1]:g} lies {where}, "
        f"{away:,.0f} m from the water that a boat may use",
        expected="a start in the water",
        where="--start",
        fix=fix,
    )


def _guess_meant(
    start: tuple[float, float], georeference: Georeference, free: Region, near_m: float
) -> tuple[float, float] | None:
    """Return the start in another order or with other signs, if only so it is near the water."""
    a, b = start
    others = [(b, a), (-a, b), (a, -b), (-a, -b), (-b, a), (b, -a)]
    for latitude, longitude in others:
        if abs(latitude) > 90:
            continue
        place = georeference.metres((latitude, longitude))[0]
        if np.isfinite(place).all() and shapely.distance(shapely.Point(place), free) < near_m:
            return latitude, longitude
    return None


def _put_at_surface(domain: Domain, place: Array) -> Array:
    """Return a place (2,) or (d,) at the surface, as a point (d,) of a domain."""
    return np.append(place[:2], np.zeros(domain.dimension - 2))


_FAR_M = 100_000.0
"""A start that far away tells of a wrong log, rather than of a wrong start."""

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
    avoid_margin : float, optional
        Distance to keep from points and lines among them, in metres; by default, they are an error.
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
    bathymetry : str, optional
        NetCDF file, GeoTIFF or other grid of the depth of the bottom; ``FILE:VARIABLE`` names one of several.
    positive : {"down", "up"}, optional
        Direction in which its values grow, if the file does not say.
    deepest : float, optional
        Depth of the deepest water, in metres, if it is unusual.
    least_depth : float, optional
        Depth of water below which there are no sites, in metres.
    depths : tuple of float
        Depths of the sites, in metres; none for sites at the surface only.
    """

    outline: str | None = None
    avoid: tuple[str, ...] = ()
    avoid_margin: float | None = None
    start: tuple[float, float] | None = None
    spacing: float | None = None
    pattern: Pattern = "square"
    clearance: float = 2.0
    speed: float = 1.0
    stop_s: float = 60.0
    crs: str | None = None
    bathymetry: str | None = None
    positive: Positive | None = None
    deepest: float | None = None
    least_depth: float | None = None
    depths: tuple[float, ...] = ()

    def find_bathymetry(self) -> tuple[Path, str | None]:
        """Return the file of the bathymetry, and the variable or band."""
        assert self.bathymetry is not None
        whole, colon, value = self.bathymetry.rpartition(":")
        if not colon or Path(self.bathymetry).exists() or not Path(whole).exists():
            return Path(self.bathymetry), None
        return Path(whole), value

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
            file, value = extent.find_bathymetry()
            given = {"value": value, "positive": extent.positive, "crs": self._crs_of_bottom(extent)}
            said = {key: text for key, text in given.items() if text is not None}
            deep["bathymetry"] = {"file": file.name, **said} if said else file.name
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
            for file in files_of(extent.find_bathymetry()[0]):
                shutil.copyfile(file, folder / file.name)

    def _crs_of_bottom(self, extent: Extent) -> str | None:
        """Return the CRS that people stated for the bathymetry, if it differs from the world's."""
        bottom = self.domain.bottom
        if extent.crs is None or extent.crs == self.crs or bottom is None or bottom.crs != extent.crs:
            return None
        return extent.crs


def place_of(extent: Extent, given: Layer | None, degrees: Array, *, local: bool = False) -> Place:
    """Return the place that options and readings describe.

    Parameters
    ----------
    extent : Extent
    given : Layer, optional
        The outline.
    degrees : (n, 2) array
        Latitude and longitude of the readings.
    local : bool
        Whether the world gets a local CRS if that of the options is distorted here, as for web maps.

    Raises
    ------
    InputError
        A file or an option is wrong, or they do not fit each other.
    """
    crs, about_crs = _choose_crs(extent, given, degrees, local=local)
    readings = reprojected(degrees[:, ::-1], WGS84, crs)
    notes = [*about_crs, *(given.notes if given is not None else [_NO_OUTLINE])]
    if given is None:
        shapes = [Shape("", shapely.Polygon(outline_of(readings)))]
    else:
        shapes = check_valid(given.within(crs), "--outline")
        _check_together(shapes, readings, given, degrees)
        shapes, about = without_islands(shapes)
        notes += about
    area = as_outline(shapes)
    spacing = extent.spacing or _round(math.sqrt(area.area / _SITES))
    if area.area < spacing**2:
        raise _blame_spacing(f"a spacing of {spacing:g} m is too wide for {area.area:,.0f} m2", area)
    shapes, about = simplified_outline(shapes, spacing, extent.clearance)
    notes += about
    avoid, about = read_zones(
        extent.avoid, as_outline(shapes), crs, extent.crs, extent.avoid_margin, readings
    )
    notes += about
    avoid, about = simplified_zones(avoid, spacing, extent.clearance, as_outline(shapes))
    notes += about
    bottom = _read_bottom(extent, crs)
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
    if bottom is not None:
        check_deepest(bottom.depth_at(domain.sites[:, :2]), extent.deepest, bottom.source)
    if domain.size < _FEWEST_SITES:
        raise _blame_spacing(f"a spacing of {spacing:g} m leaves {counted(domain.size, 'site')}", area)
    start, about = start_in(domain, extent.start, readings)
    return Place(crs, shapes, avoid, domain, start, (*notes, *about))


def _blame_spacing(problem: str, area: Region) -> InputError:
    """Return the error for a spacing that leaves too few sites in an area."""
    return InputError(
        problem,
        expected=f"at least {_FEWEST_SITES} sites",
        where="--spacing",
        fix=f"use a spacing of {_round(math.sqrt(area.area / _SITES)):g} m",
    )


def _read_bottom(extent: Extent, crs: str) -> Bottom | None:
    """Return the bottom of the water, if its file was given."""
    if extent.bathymetry is None:
        needless = (
            ("--least-depth", extent.least_depth),
            ("--positive", extent.positive),
            ("--deepest", extent.deepest),
        )
        for option, given in needless:
            if given is not None:
                raise InputError(
                    f"{option} was given without the depth of the bottom",
                    expected="--bathymetry FILE",
                    where=option,
                )
        return None
    file, value = extent.find_bathymetry()
    try:
        return read_bottom(file, crs, value, extent.positive, extent.crs)
    except InputError as error:
        where = f"--bathymetry {extent.bathymetry}"
        fix = error.fix
        if fix is not None and fix.startswith("name it: {"):
            fix = f"name it: --bathymetry {file}:NAME"
        raise InputError(error.problem, expected=error.expected, where=where, fix=fix) from None


def _choose_crs(
    extent: Extent, given: Layer | None, degrees: Array, *, local: bool
) -> tuple[str, tuple[str, ...]]:
    """Return the world's CRS, that of the options if it is in metres, or the UTM zone; and notes."""
    notes: tuple[str, ...] = ()
    if extent.crs is not None and crs_of(extent.crs, "--crs").is_projected:
        if not local or is_true_to_scale(extent.crs, degrees):
            return extent.crs, ()
        notes = (f"{extent.crs} is distorted here: positions are converted to the local CRS",)
    around = degrees if given is None else given.corners[:, ::-1]
    with at("--csv" if given is None else "--outline"):
        return local_crs(*around.T), notes


def _check_together(shapes: list[Shape], readings: Array, given: Layer, degrees: Array) -> None:
    """Raise an `InputError` if no reading lies near the outline: a CRS or an order must be wrong."""
    area = as_outline(shapes)
    reach = 0.1 * math.sqrt(area.area)
    if shapely.dwithin(shapely.points(readings), area, reach).any():
        return
    far_km = float(shapely.distance(shapely.points(readings), area).min()) / 1000.0
    points = shapely.points(degrees[:, ::-1])

    def hit(areas: list[Region]) -> bool:
        return any(shapely.intersects(points, a.envelope.buffer(1e-3)).any() for a in areas)

    if hit([shape.area for shape in given.shapes]):
        swap = None
    elif hit(given.swapped()) or hit(
        [shapely.transform(s.area, lambda xy: xy[:, ::-1]) for s in given.shapes]
    ):
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


def _round(number: float) -> float:
    """Return a round number near a number.

    Examples
    --------
    >>> _round(12.0), _round(4.9), _round(71.0)
    (10.0, 5.0, 80.0)
    """
    power = 10.0 ** math.floor(math.log10(number))
    return power * min((1, 1.5, 2, 3, 4, 5, 6, 8, 10), key=lambda k: abs(math.log(k * power / number)))


_HULL_RATIO = 0.35  # between 0, the tightest outline, and 1, the convex hull


def outline_of(sites: Array) -> list[list[float]]:
    """Return the corners of a polygon around scattered sites (n, 2), slightly larger than their hull.

    Its corners are rounded to a hundred-thousandth of its extent, except those on the box around the sites.
    """
    points = shapely.MultiPoint(sites)
    hull = shapely.concave_hull(points, ratio=_HULL_RATIO)
    buffer = 0.02 * float(np.ptp(sites, axis=0).max())
    outline = hull.buffer(buffer).simplify(0.25 * buffer)
    box = shapely.box(*points.bounds)
    exact = np.array(_find_largest(outline.intersection(box)).exterior.coords)[:-1]
    decimals = 5 - math.floor(math.log10(np.ptp(sites, axis=0).max()))
    low, high = sites.min(axis=0), sites.max(axis=0)
    corners = np.where((exact <= low) | (exact >= high), exact, np.round(exact, decimals))
    return [[float(x), float(y)] for x, y in np.clip(corners, low, high)]


def _find_largest(shape: BaseGeometry) -> shapely.Polygon:
    parts = [p for p in getattr(shape, "geoms", [shape]) if isinstance(p, shapely.Polygon)]
    return max(parts, key=lambda p: float(p.area))
