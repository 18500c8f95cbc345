"""Outlines and zones from vector files of other programs, in any format that GDAL reads, and in archives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import WGS84, check_degrees, crs_of, reprojected
from fieldbo.domain.obstacles import Obstacle, Region
from fieldbo.errors import InputError, counted, errors_of, raise_all
from fieldbo.mission.areas import Pieces, Use, around, find_pieces, joined, named, union_of, unrolled
from fieldbo.mission.shapes import NAME, Shape, as_obstacles, features_of
from fieldbo.mission.vector_content import FORMATS
from fieldbo.mission.vector_files import SEVERAL, Features, read_features

_FURTHEST_DEGREES = 360.0 + 1e-6  # some programs count longitudes from 0 to 360
_TWICE = ("route_points", "track_points")  # layers of a GPX file with the corners of others


@dataclass(frozen=True, eq=False)
class Layer:
    """The polygons of a file.

    Attributes
    ----------
    shapes : list of Shape
        In longitude and latitude on WGS 84; longitudes of areas across 180 degrees reach past it.
    crs : str
        The CRS that the file is in.
    notes : tuple of str
        What was decided.
    """

    shapes: list[Shape]
    crs: str
    notes: tuple[str, ...] = ()

    @property
    def corners(self) -> Array:
        """Longitude and latitude (k, 2) of all corners, within 180 degrees."""
        corners = np.array(shapely.get_coordinates([shape.area for shape in self.shapes]))
        corners[:, 0] -= np.where(np.abs(corners[:, 0]) > 180.0, 360.0 * np.sign(corners[:, 0]), 0.0)
        return frozen_array(corners)

    def swapped(self) -> list[Region]:
        """Return the areas in degrees as they would lie with the other order of coordinates in the file."""
        from pyproj.exceptions import ProjError

        def turn(xy: Array) -> Array:
            return reprojected(reprojected(xy, WGS84, self.crs)[:, ::-1], self.crs, WGS84)

        try:
            return [shapely.transform(shape.area, turn) for shape in self.shapes]
        except ProjError:
            return []

    def within(self, crs: str) -> list[Shape]:
        """Return the shapes in a projected CRS."""
        return [
            Shape(s.name, shapely.transform(s.area, lambda xy: reprojected(xy, WGS84, crs)))
            for s in self.shapes
        ]


def read_layer(
    file: str,
    option: str,
    crs: str | None = None,
    use: Use = "outline",
    margin: float | None = None,
    margin_option: str | None = None,
) -> Layer:
    """Read the areas of a vector file.

    Parameters
    ----------
    file : str
        A path; ``FILE:LAYER`` names one layer of several.
    option : str
        The option that names the file, for errors.
    crs : str, optional
        CRS of files that do not state theirs.
    use : {"outline", "zone"}
        In an outline, points beside areas are labels; in a file of zones, everything counts.
    margin : float, optional
        Distance in metres to keep from points and lines among zones.
    margin_option : str, optional
        The option that sets it, for errors.

    Raises
    ------
    InputError
        The file can't be read as a whole, has no CRS or a wrong one, or holds what is no area.
    """
    path, chosen = _split_layer(file, option)
    features = read_features(path, chosen, option)
    pieces = [
        find_pieces(*(f.geometries, f.names, use, f.where, option), degrees=_is_in_degrees(f, crs, option))
        for f in features
    ]
    used = [
        k
        for k, p in enumerate(pieces)
        if p.areas or p.errors or (use == "zone" and p.marks and features[k].layer not in _TWICE)
    ]
    if not used:
        raise _no_areas(path, option, features, pieces)
    if len(used) > 1 and not (use == "zone" and path.suffix.lower() in SEVERAL):
        names = [features[k].layer for k in used]
        raise InputError(
            f"{path.name} has areas in {len(used)} layers: {', '.join(names)}",
            expected="one layer",
            where=option,
            fix=f"name it: {option} {path}:{names[0]}"
            + (f", and add {option} {path}:{names[1]} if both count" if use == "zone" else ""),
        )
    shapes, notes, crses = list[Shape](), list[str](), list[str]()

    def take(k: int) -> None:
        its_crs = _check_crs(features[k], path, option, crs)
        raise_all(pieces[k].errors)
        found, about = _as_shapes(features[k], pieces[k], its_crs, option, use, margin, margin_option)
        shapes.extend(found)
        notes.extend([*features[k].notes, *pieces[k].notes, *about])
        crses.append(its_crs)

    raise_all(errors_of(*(partial(take, k) for k in used)))
    if chosen is None and (others := _describe_others(features, pieces, used)):
        notes.append(f"{path.name}: not used: {others}")
    return Layer(shapes, crses[0], tuple(notes))


def _as_shapes(
    features: Features,
    pieces: Pieces,
    crs: str,
    option: str,
    use: Use,
    margin: float | None,
    margin_option: str | None,
) -> tuple[list[Shape], list[str]]:
    """Return the areas of a layer in degrees, one zone per feature, and notes."""
    where, names, notes = features.where, features.names, list[str]()
    areas: list[tuple[int, Region]] = [(n, _in_degrees(area, crs)) for n, area in pieces.areas]
    marks = [m for m in pieces.marks if use == "outline" or not _is_label(m, pieces)]
    if len(marks) < len(pieces.marks):
        notes.append(f"{where}: points inside the area of their own feature are taken as its labels")
    of_marks = sorted({number for number, _ in marks})
    if use == "outline":
        notes += _ignore_labels(features, marks, option)
    elif marks and margin is None:
        raise _no_margin(features, marks, option, margin_option)
    elif (marks or pieces.edges) and margin is not None:
        of_marks = sorted({number for number, _ in (*marks, *pieces.edges)})
        areas += [(number, around(mark, margin, crs)) for number, mark in (*marks, *pieces.edges)]
        notes.append(f"{where}: {margin:g} m kept from points and lines: {named(of_marks, names)}")
    if marks or crs_of(crs, option).is_geographic:
        areas = [(number, unrolled(area, where, option)) for number, area in areas]
    if use == "zone":
        areas = _per_feature(areas)
    whole, cuts = joined([area for _, area in areas], where, option)
    if cuts:
        notes.append(f"{where}: areas joined that were cut at 180 degrees")
    return [Shape(names[areas[k][0]], area) for k, area in whole], notes


def _is_label(mark: tuple[int, Any], pieces: Pieces) -> bool:
    """Return whether a mark is a point in the area of its own feature."""
    number, point = mark
    return isinstance(point, shapely.Point) and any(
        n == number and area.covers(point) for n, area in pieces.areas
    )


def _ignore_labels(features: Features, marks: Sequence[tuple[int, Any]], option: str) -> list[str]:
    """Return a note about points beside the areas of an outline; lines are an error."""
    lines = sorted({number for number, mark in marks if isinstance(mark, shapely.LineString)})
    if lines:
        raise InputError(
            f"{features.where}: open lines beside the areas of the outline: {named(lines, features.names)}",
            expected="areas only, and points as labels",
            where=option,
            fix="close the lines in a GIS (QGIS: Lines to polygons), or delete them from the layer",
        )
    labels = sorted({number for number, _ in marks})
    if not labels:
        return []
    return [f"{features.where}: points beside areas are taken as labels: {named(labels, features.names)}"]


def _no_margin(
    features: Features, marks: Sequence[tuple[int, Any]], option: str, margin_option: str | None
) -> InputError:
    kinds = sorted({_WORDS[mark.geom_type] for _, mark in marks})
    numbers = sorted({number for number, _ in marks})
    draw = "draw an area around each in a GIS"
    return InputError(
        f"{features.where}: zones that are no areas, but {' and '.join(kinds)}: "
        f"{named(numbers, features.names)}",
        expected="areas"
        + ("" if margin_option is None else ", or the distance to keep from points and lines"),
        where=option,
        fix=draw if margin_option is None else f'add {margin_option} "10 m", or {draw}',
    )


_WORDS = {"Point": "points", "LineString": "lines"}


def _per_feature(areas: Sequence[tuple[int, Region]]) -> list[tuple[int, Region]]:
    """Return one area per feature: a label in a zone is part of it."""
    of: dict[int, list[Region]] = {}
    for number, area in areas:
        of.setdefault(number, []).append(area)
    return [(n, a[0] if len(a) == 1 else union_of(a)) for n, a in sorted(of.items())]


def _no_areas(path: Path, option: str, features: Sequence[Features], pieces: Sequence[Pieces]) -> InputError:
    kinds = {g.geom_type for f in features for g in f.geometries if g is not None and f.layer not in _TWICE}
    said = [
        note.removeprefix("warning: ")
        for k, f in enumerate(features)
        for note in (*f.notes, *pieces[k].notes)
    ]
    return InputError(
        f"{path.name} holds no areas"
        + (f", only {' and '.join(sorted(kinds))}" if kinds else "")
        + (f" ({'; '.join(said)})" if said else ""),
        expected="polygons, or lines that end where they begin",
        where=option,
        fix="close the line in a GIS (QGIS: Lines to polygons), or draw a buffer around a point",
    )


def _describe_others(features: Sequence[Features], pieces: Sequence[Pieces], used: Sequence[int]) -> str:
    """Return what layers hold that are not used."""
    said = []
    for k, (f, p) in enumerate(zip(features, pieces, strict=True)):
        if k not in used and p.marks and f.layer not in _TWICE:
            points = sum(isinstance(mark, shapely.Point) for _, mark in p.marks)
            what = [(points, "point"), (len(p.marks) - points, "line")]
            said.append(f"layer {f.layer} ({' and '.join(counted(n, noun) for n, noun in what if n)})")
    return ", ".join(said)


def _check_crs(features: Features, path: Path, option: str, crs: str | None) -> str:
    """Return the CRS of a layer, checked against its coordinates."""
    stated = features.crs or crs
    if stated is None:
        missing = f" ({path.stem}.prj is missing)" if path.suffix.lower() == ".shp" else ""
        raise InputError(
            f"{path.name} does not say its coordinate reference system{missing}",
            expected="a file with a CRS (a shapefile has it in a .prj file)",
            where=option,
            fix="give it with --crs, for example --crs EPSG:4326 for degrees",
        )
    given = crs_of(stated, option)
    corners = shapely.get_coordinates([g for g in features.geometries if g is not None])
    x, y = corners[np.isfinite(corners).all(axis=1)].T  # what is no number is named by its feature
    furthest = float(max(np.abs(x).max(), np.abs(y).max()))
    wrong = None
    if given.is_geographic and furthest > _FURTHEST_DEGREES:
        wrong = f"is in degrees ({given.name}), but its coordinates reach {furthest:,.0f}"
    elif given.is_geographic:
        check_degrees(
            y, np.where(np.abs(y).max() > 90.0, x, np.clip(x, -180.0, 180.0)), f"{option} {path.name}"
        )
    elif np.abs(x).max() <= 180.0 and np.abs(y).max() <= 90.0:
        wrong = f"is in metres ({given.name}), but its coordinates look like degrees: {x[0]:g}, {y[0]:g}"
    if wrong is not None:
        raise InputError(
            f"{path.name} {wrong}",
            expected="coordinates that fit the CRS",
            where=option,
            fix="assign the right CRS in a GIS (QGIS: Assign projection) and export the layer again",
        )
    return str(stated)


def _is_in_degrees(features: Features, crs: str | None, option: str) -> bool:
    """Return whether coordinates are degrees, by their CRS and their size."""
    stated = features.crs or crs
    if stated is None or not crs_of(stated, option).is_geographic:
        return False
    x, y = np.abs(shapely.get_coordinates([g for g in features.geometries if g is not None])).T
    return len(x) > 0 and bool(np.nanmax(x) <= _FURTHEST_DEGREES and np.nanmax(y) <= 90.0)


def _in_degrees(area: Region, crs: str) -> Region:
    placed: Region = shapely.transform(area, lambda xy: reprojected(xy, crs, WGS84))
    return placed


def _split_layer(file: str, option: str) -> tuple[Path, str | None]:
    """Return the path and the layer of ``FILE`` or ``FILE:LAYER``."""
    whole, colon, layer = file.rpartition(":")
    path, name = (Path(file), None) if _is_file(Path(file)) or not colon else (Path(whole), layer)
    if not _is_file(path):
        what = f"{path} is a folder" if path.is_dir() else f"there is no file {path}"
        raise InputError(what, expected=FORMATS, where=option)
    return path, name


def _is_file(path: Path) -> bool:
    """Return whether a path is a file, or a geodatabase, which is a folder."""
    try:
        return path.is_file() or (path.suffix.lower() == ".gdb" and path.is_dir())
    except OSError:  # a name that is too long
        return False


def areas_in(file: Path, domain: Domain, where: str) -> list[Obstacle]:
    """Return the polygons of a file in the coordinates of a domain.

    Parameters
    ----------
    file : Path
        GeoJSON or, with the extra ``geo``, any vector file. In a domain without a CRS, GeoJSON in the
        domain's own coordinates.
    domain : Domain
    where : str
        The option that names the file, for errors.

    Raises
    ------
    InputError
        The file can't be read, or holds something other than polygons.
    """
    if domain.crs is not None:
        shapes = read_layer(str(file), where, use="zone").within(domain.crs)
    else:
        shapes = _read_unplaced(file, where)
    return as_obstacles([Shape(shape.name or NAME, shape.area) for shape in shapes])


def _read_unplaced(file: Path, where: str) -> list[Shape]:
    """Return the polygons of a GeoJSON file as they are."""
    try:
        features = features_of(json.loads(file.read_text(encoding="utf-8-sig")))
        geometries = [shapely.geometry.shape(feature["geometry"]) for feature in features]
        names = [str((feature.get("properties") or {}).get("name") or "") for feature in features]
    except OSError as error:
        raise InputError(f"{file} can't be read: {error.strerror}", where=where) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, shapely.errors.ShapelyError):
        features = []
    if not features:
        raise InputError(
            f"{file} is not GeoJSON", expected="polygons in the coordinates of the domain", where=where
        )
    pieces = find_pieces(geometries, names, "zone", file.name, where)
    raise_all(pieces.errors)
    if pieces.marks or not pieces.areas or any(note.startswith("warning") for note in pieces.notes):
        raise InputError(
            f"{file} holds something other than valid polygons",
            expected="polygons whose edges do not cross",
            where=where,
        )
    return [Shape(names[number], area) for number, area in pieces.areas]
