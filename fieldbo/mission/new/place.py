"""A new world on the Earth: from a log in degrees, the outline of a lake, and zones to avoid."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
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
    local_crs,
    reprojected,
)
from fieldbo.domain.lattice import Pattern, lattice
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError, at, counted
from fieldbo.mission.layers import Layer, read_layer
from fieldbo.mission.shapes import Shape, as_obstacles, as_outline, write_shapes
from fieldbo.mission.world_file import read_bottom

_MOST_CORNERS = 200  # of an outline and its holes, beyond which it is simplified
_FINEST, _COARSEST = 0.02, 0.25  # tolerance of the simplification, in spacings
_FURTHEST = 0.5  # no edge moves by more, in spacings
_WORTHWHILE = 0.9  # fraction of the corners that is left, at most
_MORE = 1.01  # an area moves by a little more than its simplification moves its edge
_SAME = 0.9  # of a hole's area: an area in it that large is the island, a smaller one is a pond on it


def without_islands(shapes: Sequence[Shape]) -> tuple[list[Shape], list[str]]:
    """Return areas of water from which the areas that lie inside others are cut out, and notes.

    An area inside another one is an island, and one inside that is water again. An area that fills a hole is
    the island of that hole.
    """
    order = sorted(shapes, key=lambda shape: -shape.area.area)
    kept: list[Shape] = []
    depths: list[int] = []  # 0 is water, 1 an island in it, 2 water on the island, ...
    islands = repeated = 0
    for shape in order:
        if any(shapely.equals(shape.area, o.area) or _fills_a_hole(shape.area, o.area) for o in kept):
            repeated += 1
            continue
        around = [depth for other, depth in zip(kept, depths, strict=True) if other.area.covers(shape.area)]
        kept.append(shape)
        depths.append(max(around, default=-1) + 1)
    water: list[Shape] = []
    for shape, depth in zip(kept, depths, strict=True):
        if depth % 2:
            islands += 1
            continue
        inner = [
            s.area for s, d in zip(kept, depths, strict=True) if d == depth + 1 and shape.area.covers(s.area)
        ]
        area = shapely.difference(shape.area, shapely.union_all(inner)) if inner else shape.area
        assert isinstance(area, Region)
        water.append(Shape(shape.name, area))
    notes = []
    if islands:
        lie = "lies inside another and is" if islands == 1 else "lie inside others and are"
        notes.append(
            f"warning: {counted(islands, 'area')} of the outline {lie} taken as land; "
            "delete what is water from the file"
        )
    if repeated:
        notes.append(
            f"{counted(repeated, 'area')} of the outline repeated or filling an island's hole: left out"
        )
    return water, notes


def _fills_a_hole(area: Region, other: Region) -> bool:
    """Return whether an area is what a hole of another one leaves out."""
    holes = [shapely.Polygon(ring) for part in shapely.get_parts(other) for ring in part.interiors]
    return any(shapely.intersection(hole, area).area > _SAME * max(hole.area, area.area) for hole in holes)


def reaching(zones: Sequence[Shape], area: Region) -> list[Shape]:
    """Return the zones that reach into an area, each without its parts that do not."""
    reach: list[Shape] = []
    for zone in zones:
        parts = [p for p in shapely.get_parts(zone.area) if shapely.intersection(p, area).area > 0]
        if parts:
            reach.append(Shape(zone.name, parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)))
    return reach


def simplified_outline(
    shapes: list[Shape], spacing: float, clearance: float
) -> tuple[list[Shape], list[str]]:
    """Return an outline with fewer corners if it has many, and a note; it only shrinks.

    No water is cut off: a boat that keeps its clearance reaches what it reached before.
    """
    return _simplify(
        shapes,
        spacing,
        "the outline",
        inwards=True,
        water=lambda s: shapely.buffer(as_outline(s), -clearance),
    )


def simplified_zones(
    zones: list[Shape], spacing: float, clearance: float, area: Region
) -> tuple[list[Shape], list[str]]:
    """Return zones to avoid with fewer corners if they have many, and a note; they only grow."""

    def water(others: list[Shape]) -> Region:
        free = shapely.difference(area, shapely.union_all([zone.area for zone in others]))
        return shapely.buffer(free, -clearance)

    return _simplify(zones, spacing, "the zones to avoid", inwards=False, water=water)


def _simplify(
    shapes: list[Shape], spacing: float, what: str, *, inwards: bool, water: Callable[[list[Shape]], Region]
) -> tuple[list[Shape], list[str]]:
    before = _count_corners(shapes)
    if before <= _MOST_CORNERS:
        return shapes, []
    sign = -1.0 if inwards else 1.0
    pieces = len(shapely.get_parts(water(shapes)))
    best, tolerance = shapes, _FINEST * spacing
    while tolerance <= _COARSEST * spacing and _count_corners(best) > _MOST_CORNERS:
        simpler = [
            Shape(s.name, _measure_move(s.area, sign * tolerance, tolerance, _FURTHEST * spacing))
            for s in shapes
        ]
        if (
            _count_corners(simpler) < _WORTHWHILE * _count_corners(best)
            and len(shapely.get_parts(water(simpler))) <= pieces
        ):
            best = simpler
        tolerance *= 1.5
    if best is shapes:
        return shapes, []
    moved = max(_distance(old.area, new.area) for old, new in zip(shapes, best, strict=True))
    side = "inside" if inwards else "outside"
    return best, [
        f"{what} simplified from {before:,} corners to {_count_corners(best):,}, at most {moved:.1f} m {side}"
    ]


def _count_corners(shapes: Sequence[Shape]) -> int:
    return sum(int(shapely.get_num_coordinates(shape.area)) for shape in shapes)


def _measure_move(area: Region, by: float, tolerance: float, furthest: float) -> Region:
    """Return an area moved inwards or outwards by the tolerance of its simplification.

    An area that would then reach to the wrong side, or whose edge would move too far, stays as it is.
    """
    moved = shapely.simplify(shapely.buffer(area, _MORE * by, join_style="mitre"), tolerance)
    parts = [p for p in shapely.get_parts(moved) if isinstance(p, shapely.Polygon) and p.area > 0]
    if not parts:
        return area
    simpler: Region = parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
    safe = simpler.covers(area) if by > 0 else area.covers(simpler)
    return simpler if safe and _distance(area, simpler) <= furthest else area


def _distance(area: Region, other: Region) -> float:
    """Return how far corners of either edge lie from the other edge, at most."""

    def furthest(one: Region, two: Region) -> float:
        edge = two.boundary
        shapely.prepare(edge)
        return float(np.max(shapely.distance(shapely.points(shapely.get_coordinates(one)), edge)))

    return max(furthest(area, other), furthest(other, area))


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
    crs = _choose_crs(extent, given, degrees)
    readings = reprojected(degrees[:, ::-1], WGS84, crs)
    notes = [*given.notes] if given is not None else [_NO_OUTLINE]
    if given is None:
        shapes = [Shape("", shapely.Polygon(outline_of(readings)))]
    else:
        shapes = _check_valid(given.within(crs), "--outline")
        _check_together(shapes, readings, given, degrees)
        shapes, about = without_islands(shapes)
        notes += about
    area = as_outline(shapes)
    spacing = extent.spacing or _round(math.sqrt(area.area / _SITES))
    if area.area < spacing**2:
        raise _blame_spacing(f"a spacing of {spacing:g} m is too wide for {area.area:,.0f} m2", area)
    shapes, about = simplified_outline(shapes, spacing, extent.clearance)
    notes += about
    avoid, about = _read_zones(extent, crs, as_outline(shapes))
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


def _check_valid(shapes: list[Shape], option: str) -> list[Shape]:
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


def _choose_crs(extent: Extent, given: Layer | None, degrees: Array) -> str:
    """Return the world's CRS: that of the options if it is in metres, or the UTM zone."""
    if extent.crs is not None and crs_of(extent.crs, "--crs").is_projected:
        return extent.crs
    around = degrees if given is None else given.corners[:, ::-1]
    with at("--csv" if given is None else "--outline"):
        return local_crs(*around.T)


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


def _read_zones(extent: Extent, crs: str, area: Region) -> tuple[list[Shape], list[str]]:
    """Return the zones to avoid that reach into the area, and notes."""
    zones: list[Shape] = []
    notes: list[str] = []
    for file in extent.avoid:
        layer = read_layer(file, "--avoid", extent.crs)
        notes += layer.notes
        within = _check_valid(layer.within(crs), "--avoid")
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
