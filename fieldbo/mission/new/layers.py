"""Polygons from vector files that GDAL reads: GeoJSON, KML, GPX, shapefile, GeoPackage, zipped or not."""

from __future__ import annotations

import gzip
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

from fieldbo.domain.georeference import WGS84, check_degrees, crs_of, reprojected
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError
from fieldbo.mission.shapes import Shape

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
    path, layer = _path_and_layer(file, option)
    _check_content(path, option)
    source = (
        f"{_ARCHIVES.get(path.suffix.lower(), '')}{path.absolute()}"  # not WFS:..., with a file of that name
    )
    read = _reader(option)
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
        areas, notes = _areas(geometries, f"{path.name}, layer {name}", option)
        if not areas:
            continue
        its_crs = _crs(meta, geometries, path, option, crs)
        labels = _labels(meta, fields, len(geometries))
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


def _path_and_layer(file: str, option: str) -> tuple[Path, str | None]:
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
        heads = list(_heads(path))
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


def _heads(path: Path) -> Iterator[bytes]:
    """Yield the beginnings of a file, or of the files in a zipped one."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as file:
                    yield file.read(_HEAD)
    else:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield file.read(_HEAD)


def _reader(option: str) -> Callable[..., Any]:
    """Return a function that reads layers or features through pyogrio."""
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


def _crs(meta: Any, geometries: Sequence[Any], path: Path, option: str, crs: str | None) -> str:
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


def _labels(meta: Any, fields: Sequence[Any], n: int) -> list[str]:
    """Return the name of each feature, empty where it has none."""
    for label, column in zip(meta["fields"], fields, strict=True):
        if str(label).lower() == "name":
            return [value if isinstance(value, str) else "" for value in column]
    return [""] * n


def _areas(geometries: Sequence[Any], where: str, option: str) -> tuple[dict[int, Region], list[str]]:
    """Return the areas among features by their number, and notes."""
    areas: dict[int, Region] = {}
    notes: list[str] = []
    for number, geometry in enumerate(geometries):
        area = geometry if isinstance(geometry, Region) else _closed(geometry)
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


def _closed(geometry: Any) -> Region | None:
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
