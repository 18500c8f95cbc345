"""Outlines and zones: polygons of GeoJSON files in a world's folder, and of any vector file that people give.

GeoJSON has longitudes and latitudes on WGS 84 (RFC 7946).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import WGS84, check_degrees, crs_of, reprojected
from fieldbo.domain.obstacles import Obstacle, Region
from fieldbo.errors import InputError
from fieldbo.mission.files import write_whole

_DIGITS = 9  # degrees, to a tenth of a millimetre


@dataclass(frozen=True, eq=False)
class Shape:
    """A named polygon, or several, in some CRS.

    Attributes
    ----------
    name : str
        Empty if it has none.
    area : shapely.Polygon or shapely.MultiPolygon
    """

    name: str
    area: Region


def read_shapes(path: Path, crs: str) -> list[Shape]:
    """Return the polygons of a GeoJSON file in a projected CRS.

    Raises
    ------
    InputError
        The file is missing, not GeoJSON, or holds something other than valid polygons.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"{path.name} can't be read: {error.strerror}", expected="a GeoJSON file", where=str(path)
        ) from None
    except (ValueError, RecursionError):
        raise _not_geojson(path) from None
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list) or not features:
        raise _not_geojson(path)
    return [_parse_shape(feature, number, path, crs) for number, feature in enumerate(features)]


def _parse_shape(feature: Any, number: int, path: Path, crs: str) -> Shape:
    where = f"{path}: features[{number}]"
    try:
        area = shapely.geometry.shape(feature["geometry"])
        name = str((feature.get("properties") or {}).get("name") or "")
    except (
        *(KeyError, TypeError, ValueError, AttributeError),
        *(OverflowError, RecursionError, shapely.errors.ShapelyError),
    ):
        raise InputError(
            "the feature has no geometry that can be read",
            expected="a Polygon or MultiPolygon in longitude and latitude",
            where=where,
        ) from None
    if not isinstance(area, Region):
        raise InputError(
            f"the feature is a {area.geom_type}", expected="a Polygon or MultiPolygon", where=where
        )
    if area.is_empty:
        raise InputError("the feature is empty", expected="a polygon", where=where)
    corners = shapely.get_coordinates(area)
    check_degrees(corners[:, 1], corners[:, 0], where)
    placed: Region = shapely.transform(shapely.force_2d(area), lambda xy: reprojected(xy, WGS84, crs))
    if not placed.is_valid or placed.area <= 0:
        raise InputError(
            f"the feature is not a valid polygon: {shapely.is_valid_reason(placed)}",
            expected="a polygon whose edges do not cross",
            where=where,
            fix="repair it in a GIS, for example with Fix geometries in QGIS",
        )
    return Shape(name, placed)


def _not_geojson(path: Path) -> InputError:
    return InputError(
        f"{path.name} is not a GeoJSON file with features",
        expected='{"type": "FeatureCollection", "features": [...]} of polygons in longitude and latitude',
        where=str(path),
    )


def as_outline(shapes: list[Shape]) -> Region:
    """Return the area that shapes cover together."""
    area = shapely.union_all([shape.area for shape in shapes])
    assert isinstance(area, Region)
    return area


def as_obstacles(shapes: list[Shape]) -> list[Obstacle]:
    """Return shapes as obstacles with distinct names; holes in them are filled."""
    obstacles: list[Obstacle] = []
    for shape in shapes:
        for part in shapely.get_parts(shape.area):
            stem = shape.name or "zone"
            taken = {o.name for o in obstacles}
            names = (f"{stem} {k}" if k else stem for k in range(0 if shape.name else 1, 100_000))
            name = next(n for n in names if n not in taken)
            corners = shapely.get_coordinates(part.exterior)[:-1]
            obstacles.append(Obstacle(name, corners=tuple(map(tuple, corners.tolist()))))
    return obstacles


def write_shapes(path: Path, shapes: list[Shape], crs: str) -> None:
    """Write polygons in a projected CRS as GeoJSON, in longitude and latitude."""
    features = []
    for shape in shapes:
        turned = shapely.orient_polygons(shape.area)  # RFC 7946: exteriors counterclockwise
        placed = shapely.transform(turned, lambda xy: np.round(reprojected(xy, crs, WGS84), _DIGITS))
        geometry = json.loads(shapely.to_geojson(placed))
        properties = {"name": shape.name} if shape.name else {}
        features.append(json.dumps({"type": "Feature", "properties": properties, "geometry": geometry}))
    lines = ",\n".join(features)
    write_whole(path, f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'.encode())


_GAP = 0.05  # of a line's length: the ends of a track around a lake are that close
_FURTHEST_DEGREES = 180.0 + 1e-6
_ARCHIVES = {".gz": "/vsigzip/", ".zip": "/vsizip/"}
_FORMATS = "a GeoJSON, KML, GPX, shapefile or GeoPackage, or a zipped one"
_SUFFIXES = {
    *(".geojson", ".json", ".topojson", ".kml", ".kmz", ".gpx", ".shp", ".gpkg", ".fgb", ".tab", ".mif"),
    ".zip",
}
_REFERENCES = (b"<OGR", b"<VRT", b"gdal_streamed_alg")  # GDAL would open other files or addresses
_BLANK, _XML = b"\xef\xbb\xbf \r\n\t", re.compile(rb"<(\w+:)?(kml|gpx)\b")
_HEAD = 1 << 16  # bytes, of which GDAL's drivers look at a few thousand


@dataclass(frozen=True, eq=False)
class Layer:
    """The polygons of a file.

    Attributes
    ----------
    shapes : list of Shape
        In longitude and latitude on WGS 84.
    crs : str
        The CRS that the file is in.
    notes : tuple of str
        What was decided.
    """

    shapes: list[Shape]
    crs: str
    notes: tuple[str, ...] = ()

    @property
    def corners(self) -> Any:
        """Longitude and latitude (k, 2) of all corners."""
        return shapely.get_coordinates([shape.area for shape in self.shapes])

    def within(self, crs: str) -> list[Shape]:
        """Return the shapes in a projected CRS."""
        return [
            Shape(s.name, shapely.transform(s.area, lambda xy: reprojected(xy, WGS84, crs)))
            for s in self.shapes
        ]


def read_layer(file: str, option: str, crs: str | None = None) -> Layer:
    """Read the polygons of a vector file.

    Parameters
    ----------
    file : str
        A path; ``FILE:LAYER`` names one layer of several.
    option : str
        The option that names the file, for errors.
    crs : str, optional
        CRS of files that do not state theirs.

    Raises
    ------
    InputError
        The file can't be read, has no CRS or a wrong one, or holds something other than polygons.
    """
    path, layer = _split_layer(file, option)
    _check_content(path, option)
    source = (
        f"{_ARCHIVES.get(path.suffix.lower(), '')}{path.absolute()}"  # not WFS:..., with a file of that name
    )
    read = _make_reader(option)
    names = [name for name, _ in read("layers", source)]
    if layer is not None and layer not in names:
        raise InputError(
            f"{path.name} has no layer {layer!r}", expected=f"one of {', '.join(names)}", where=option
        )
    layers: dict[str, Layer] = {}
    kinds: set[str] = set()
    for name in [layer] if layer is not None else names:
        meta, geometries, fields = read("features", source, name)
        kinds |= {geometry.geom_type for geometry in geometries if geometry is not None}
        areas, notes = _find_areas(geometries, f"{path.name}, layer {name}", option)
        if not areas:
            continue
        its_crs = _check_crs(meta, geometries, path, option, crs)
        labels = _find_labels(meta, fields, len(geometries))
        shapes = [Shape(labels[k], _in_degrees(area, its_crs)) for k, area in areas.items()]
        layers[name] = Layer(shapes, its_crs, tuple(notes))
        degrees = layers[name].corners
        check_degrees(degrees[:, 1], degrees[:, 0], f"{option} {path.name}")
    if not layers:
        raise InputError(
            f"{path.name} holds no areas" + (f", only {' and '.join(sorted(kinds))}" if kinds else ""),
            expected="polygons, or lines that end where they begin",
            where=option,
            fix="close the line in a GIS (QGIS: Lines to polygons), or draw a buffer around a point",
        )
    if len(layers) > 1:
        raise InputError(
            f"{path.name} has areas in {len(layers)} layers: {', '.join(layers)}",
            expected="one layer",
            where=option,
            fix=f"name it: {option} {path}:{next(iter(layers))}",
        )
    return next(iter(layers.values()))


def _split_layer(file: str, option: str) -> tuple[Path, str | None]:
    """Return the path and the layer of ``FILE`` or ``FILE:LAYER``."""
    whole, colon, layer = file.rpartition(":")
    path, name = (Path(file), None) if _is_file(Path(file)) or not colon else (Path(whole), layer)
    if not _is_file(path):
        raise InputError(f"there is no file {path}", expected=_FORMATS, where=option)
    return path, name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def _check_content(path: Path, option: str) -> None:
    """Raise an `InputError` for files that would make GDAL open others, run commands, or use the network."""
    name = Path(path.stem) if path.suffix.lower() == ".gz" else path
    problem = None
    try:
        heads = list(_read_heads(path))
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise InputError(f"{path.name} can't be read: {error}", expected=_FORMATS, where=option) from None
    if name.suffix.lower() not in _SUFFIXES:
        problem = f"{path.name} is of a kind that is not read"
    elif any(mark in head for head in heads for mark in _REFERENCES):
        problem = f"{path.name} only names other files"
    elif len(heads) == 1 and heads[0].lstrip(_BLANK).startswith(b"<") and not _XML.search(heads[0]):
        problem = f"{path.name} is neither KML nor GPX"
    if problem is not None:
        raise InputError(
            problem, expected=_FORMATS, where=option, fix="export the layer as GeoPackage in a GIS"
        )


def _read_heads(path: Path) -> Iterator[bytes]:
    """Yield the beginnings of a file, or of the files in a zipped one."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as file:
                    yield file.read(_HEAD)
    else:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield file.read(_HEAD)


def _make_reader(option: str) -> Callable[..., Any]:
    try:
        import pyogrio
    except ImportError:
        raise InputError(
            "reading vector files needs pyogrio, which is not installed",
            expected="the extra geo",
            where=option,
            fix="pip install 'fieldbo[geo]'",
        ) from None

    def read(what: str, source: str, layer: str | None = None) -> Any:
        try:
            if what == "layers":
                return [tuple(row) for row in pyogrio.list_layers(source).tolist()]
            meta, _, geometries, fields = pyogrio.raw.read(source, layer=layer, force_2d=True)
            return meta, shapely.from_wkb([] if geometries is None else geometries), fields
        except shapely.errors.ShapelyError as error:
            raise InputError(
                f"a geometry of {Path(source).name} is not valid: {error}",
                expected="polygons whose rings end where they begin",
                where=option,
                fix="repair it in a GIS (QGIS: Fix geometries)",
            ) from None
        except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
            reason = str(error).replace(source, os.path.basename(source)).split(";")[0]  # noqa: PTH119
            raise InputError(f"the file can't be read: {reason}", expected=_FORMATS, where=option) from None

    return read


def _check_crs(meta: Any, geometries: Sequence[Any], path: Path, option: str, crs: str | None) -> str:
    """Return the CRS of a layer, checked against its coordinates."""
    stated = meta["crs"] or crs
    if stated is None:
        raise InputError(
            f"{path.name} does not say its coordinate reference system",
            expected="a file with a CRS (a shapefile has it in a .prj file)",
            where=option,
            fix="give it with --crs, for example --crs EPSG:4326 for degrees",
        )
    given = crs_of(stated, option)
    if given.is_geographic and np.abs(shapely.get_coordinates(geometries)).max() > _FURTHEST_DEGREES:
        raise InputError(
            f"{path.name} is in degrees ({given.name}), but its coordinates reach "
            f"{np.abs(shapely.get_coordinates(geometries)).max():,.0f}",
            expected="coordinates that fit the CRS",
            where=option,
            fix="assign the right CRS in a GIS (QGIS: Assign projection) and export the layer again",
        )
    return str(stated)


def _find_labels(meta: Any, fields: Sequence[Any], n: int) -> list[str]:
    """Return the name of each feature, empty where it has none."""
    for label, column in zip(meta["fields"], fields, strict=True):
        if str(label).lower() == "name":
            return [value if isinstance(value, str) else "" for value in column]
    return [""] * n


def _find_areas(geometries: Sequence[Any], where: str, option: str) -> tuple[dict[int, Region], list[str]]:
    """Return the areas among features by their number, and notes."""
    areas: dict[int, Region] = {}
    notes: list[str] = []
    for number, geometry in enumerate(geometries):
        area = geometry if isinstance(geometry, Region) else _close(geometry)
        if area is None or area.is_empty:
            continue
        if area is not geometry:
            notes.append(f"{where}: the closed line {number + 1} is taken as an area")
        if not area.is_valid:
            raise InputError(
                f"{where}: area {number + 1} is not valid: {shapely.is_valid_reason(area)}",
                expected="areas whose edges do not cross or touch themselves",
                where=option,
                fix="repair it in a GIS (QGIS: Fix geometries), and look at the result",
            )
        areas[number] = area
    return areas, notes


def _close(geometry: Any) -> Region | None:
    """Return the polygon within a line that ends near where it begins; None for anything else."""
    if geometry is None or geometry.geom_type not in ("LineString", "MultiLineString"):
        return None
    line = shapely.line_merge(geometry)
    if line.geom_type != "LineString" or line.length == 0.0:
        return None
    ends = shapely.get_coordinates(line)[[0, -1]]
    if np.linalg.norm(ends[1] - ends[0]) > _GAP * line.length or len(line.coords) < 4:
        return None
    area: Region = shapely.Polygon(line.coords)
    return area


def _in_degrees(area: Region, crs: str) -> Region:
    placed: Region = shapely.transform(area, lambda xy: reprojected(xy, crs, WGS84))
    return placed


NAME = "closed area"
"""Name of an area that has none of its own."""


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
        shapes = read_layer(str(file), where).within(domain.crs)
    else:
        shapes = _read_unplaced(file, where)
    return as_obstacles([Shape(shape.name or NAME, shape.area) for shape in shapes])


def _read_unplaced(file: Path, where: str) -> list[Shape]:
    """Return the polygons of a GeoJSON file as they are."""
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
        features = content["features"] if content.get("type") == "FeatureCollection" else [content]
        named = [
            (
                str((feature.get("properties") or {}).get("name") or ""),
                shapely.geometry.shape(feature.get("geometry", feature)),
            )
            for feature in features
        ]
    except OSError as error:
        raise InputError(f"{file} can't be read: {error.strerror}", where=where) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, shapely.errors.ShapelyError):
        raise InputError(
            f"{file} is not GeoJSON", expected="polygons in the coordinates of the domain", where=where
        ) from None
    shapes = list[Shape]()
    for name, area in named:
        if not isinstance(area, Region) or not area.is_valid or area.is_empty:
            raise InputError(
                f"{file} holds something other than valid polygons",
                expected="polygons whose edges do not cross",
                where=where,
            )
        shapes.append(Shape(name, area))
    return shapes
