"""What a vector file holds, seen beside GDAL: what GDAL would open elsewhere, and what it leaves out."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fieldbo.errors import InputError
from fieldbo.mission.areas import leaves

FORMATS = "a GeoJSON, KML, GPX, shapefile or GeoPackage, or a zipped one"
KML, GEOJSON = (".kml", ".kmz"), (".geojson", ".json")
SUFFIXES = frozenset(
    (
        *KML,
        *GEOJSON,
        ".topojson",
        ".geojsonl",
        ".gpx",
        ".shp",
        ".gpkg",
        ".fgb",
        ".tab",
        ".mif",
        ".dxf",
        ".gdb",
    )
)
"""Suffixes of the files that are read, in archives, too."""

_BESIDE = {".shx": ".shp", ".dbf": ".shp", ".prj": ".shp", ".cpg": ".shp", ".mid": ".mif", ".dat": ".tab"}
_REFERENCES = (b"<OGR", b"<VRT", b"gdal_streamed_alg")  # GDAL would open other files or addresses
_BLANK, _XML = b"\xef\xbb\xbf \r\n\t", re.compile(rb"<(\w+:)?(kml|gpx)\b")
_HEAD = 1 << 16  # bytes, of which GDAL's drivers look at a few thousand
_ELSEWHERE = {
    "NetworkLink": "a link to another file",
    "GroundOverlay": "a picture on the ground, which would count as an area",
}
_MOST_SHOWN = 5


def check_content(path: Path, option: str) -> None:
    """Raise an `InputError` for files that would make GDAL open others, run commands, or use the network."""
    name = Path(path.stem) if path.suffix.lower() == ".gz" else path
    suffix, problem, fix = name.suffix.lower(), None, "export the layer as GeoPackage in a GIS"
    try:
        heads = list(_read_heads(path))
    except RuntimeError:  # zipfile has no other class for it
        raise InputError(
            f"{path.name} is encrypted", expected=FORMATS, where=option, fix="unpack it first"
        ) from None
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError) as error:
        raise InputError(f"{path.name} can't be read: {error}", expected=FORMATS, where=option) from None
    if suffix in _BESIDE and suffix not in SUFFIXES:
        whole = name.with_suffix(_BESIDE[suffix]).name
        problem, fix = f"{path.name} only belongs to {whole}", f"name {whole}, and keep both in one folder"
    elif not any(heads):
        problem, fix = f"{path.name} is empty", "copy or export it again"
    elif suffix not in SUFFIXES and suffix not in (".zip", ".shz"):
        problem = f"{path.name} is of a kind that is not read"
    elif any(mark in head for head in heads for mark in _REFERENCES):
        problem = f"{path.name} only names other files"
    elif len(heads) == 1 and heads[0].lstrip(_BLANK).startswith(b"<") and not _XML.search(heads[0]):
        problem = f"{path.name} is neither KML nor GPX"
    if problem is not None:
        raise InputError(problem, expected=FORMATS, where=option, fix=fix)


def _read_heads(path: Path) -> Iterator[bytes]:
    """Yield the beginnings of a file, or of the files in a folder or a zipped one."""
    if path.is_dir():
        for file in sorted(path.iterdir()):
            with file.open("rb") as stream:
                yield stream.read(_HEAD)
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as inner:
                    yield inner.read(_HEAD)
    elif path.suffix.lower() == ".gz":
        with gzip.open(path) as packed:
            yield packed.read(_HEAD)
    else:
        with path.open("rb") as stream:
            yield stream.read(_HEAD)


def check_complete(
    stream: IO[bytes], suffix: str, geometries: Sequence[Any], where: str, option: str
) -> None:
    """Raise an `InputError` unless GDAL read every geometry of a KML, a GeoJSON file or a shapefile.

    GDAL leaves out what it does not understand, or what was cut off, without a word.

    Parameters
    ----------
    stream : binary file
    suffix : str
        Of the file.
    geometries : sequence of shapely geometry
        All that GDAL read of it.
    where, option : str
        The file, and the option that names it.
    """
    if suffix == ".shp":
        _check_shapefile(stream, where, option)
    elif suffix in KML:
        _check_kml(stream, geometries, where, option)
    elif suffix in GEOJSON:
        _check_geojson(stream, geometries, where, option)


def _check_shapefile(stream: IO[bytes], where: str, option: str) -> None:
    """Raise an `InputError` for a shapefile that is not as long as it says."""
    head = stream.read(28)
    stated, real = 2 * int.from_bytes(head[24:28], "big"), stream.seek(0, 2)
    if stated != real:
        raise InputError(
            f"{where} has {real:,} bytes, and says that it has {stated:,}",
            expected="a shapefile that is complete",
            where=option,
            fix="copy or export it again",
        )


def _count(geometries: Sequence[Any]) -> Counter[str]:
    """Return how many polygons, holes, lines and points geometries consist of."""
    counts = Counter[str]()
    for part in (part for geometry in geometries for part in leaves(geometry)):
        counts["line" if part.geom_type == "LinearRing" else _KINDS[part.geom_type]] += 1
        if isinstance(part, shapely.Polygon):
            counts["hole"] += len(part.interiors)
    return counts


_KINDS = {"Polygon": "polygon", "LineString": "line", "Point": "point"}


def _check_kml(stream: IO[bytes], geometries: Sequence[Any], where: str, option: str) -> None:
    stated, errors, above = Counter[str](), list[str](), list[str]()
    name = ""
    try:
        for event, element in ElementTree.iterparse(stream, ("start", "end")):
            tag = str(element.tag).rpartition("}")[2]
            if event == "start":
                above.append(tag)
                if tag == "Placemark":
                    name = ""
                continue
            above.pop()
            parent = above[-1] if above else ""
            if tag == "name" and parent in ("Placemark", *_ELSEWHERE):
                name = (element.text or "").strip()
            elif tag in _ELSEWHERE:
                errors.append(f"{name or tag!r} is {_ELSEWHERE[tag]}")
            elif tag == "LinearRing" and parent not in ("outerBoundaryIs", "innerBoundaryIs"):
                errors.append(f"{name or 'a placemark'!r} is a ring without a polygon")
            elif tag == "LinearRing" and parent == "innerBoundaryIs":
                stated["hole"] += 1
            elif tag in ("Polygon", "LineString", "Point", "Track"):
                stated[{"Track": "line"}.get(tag) or _KINDS[tag]] += 1
            if tag == "Placemark":
                element.clear()
    except ElementTree.ParseError as error:
        raise InputError(f"{where} is not complete: {error}", expected="KML", where=option) from None
    if errors:
        raise InputError(
            f"{where}: {_shown(errors)}",
            expected="placemarks with polygons, lines or points",
            where=option,
            fix="draw it as a polygon (in Google Earth: Add polygon), or delete it from the file",
        )
    _compare(stated, _count(geometries), where, option)


def _check_geojson(stream: IO[bytes], geometries: Sequence[Any], where: str, option: str) -> None:
    try:
        content = json.loads(stream.read().decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return  # GDAL has read it; it is another kind of JSON
    kind = content.get("type") if isinstance(content, dict) else None
    if kind == "FeatureCollection":
        features = content.get("features") or []
    elif kind == "Feature" or kind in _GEOMETRIES:
        features = [content]
    else:
        return
    wrong, stated = list[str](), list[BaseGeometry]()
    for number, feature in enumerate(features, 1):
        try:
            geometry = feature["geometry"] if feature["type"] == "Feature" else feature
            if feature["type"] != "Feature" and kind == "FeatureCollection":
                wrong.append(f"feature {number} is not a Feature, but a {feature['type']}")
            elif geometry is not None:
                stated.append(_shape(geometry))
        except (*(KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError),
                shapely.errors.ShapelyError) as error:  # fmt: skip
            wrong.append(
                f"feature {number} has no geometry that can be read ({error or type(error).__name__})"
            )
    if wrong:
        raise InputError(
            f"{where}: {_shown(wrong)}",
            expected="features with GeoJSON geometries",
            where=option,
            fix="correct or delete them",
        )
    _compare(_count(stated), _count(geometries), where, option)


_GEOMETRIES = frozenset(
    ("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon", "GeometryCollection")
)


def _shape(geometry: Any) -> BaseGeometry:
    """Return a GeoJSON geometry, or raise an error for what GDAL leaves out."""
    if geometry["type"] == "GeometryCollection":
        return shapely.GeometryCollection([_shape(part) for part in geometry["geometries"]])
    if geometry["type"] not in _GEOMETRIES:
        raise ValueError(f"type {geometry['type']}")
    with np.errstate(invalid="ignore"):  # NaN is named later
        made: BaseGeometry = shapely.geometry.shape(geometry)
    return made


def _compare(stated: Counter[str], read: Counter[str], where: str, option: str) -> None:
    """Raise an `InputError` if GDAL read other geometries than a file states."""
    lost = [f"{read[kind]} of {stated[kind]} {kind}s" for kind in stated if read[kind] != stated[kind]]
    if lost:
        raise InputError(
            f"{where}: GDAL reads only {' and '.join(lost)}",
            expected="a file that is read as a whole",
            where=option,
            fix="open the file in a GIS, compare, and export it as GeoPackage",
        )


def _shown(problems: Sequence[str]) -> str:
    more = len(problems) - _MOST_SHOWN
    return "; ".join(problems[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")
