"""One GeoPackage with all layers, in the CRS of the world: what `geojson` and `contours` write in degrees."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from fieldbo.runs.export import areas, features
from fieldbo.runs.export.features import Feature
from fieldbo.runs.export.missing import missing
from fieldbo.runs.export.placement import Placement
from fieldbo.runs.export.recorded import Recorded

_TYPES = {
    "path": "LineString",
    "routes": "LineString",
    "readings": "Point",
    "map": "Point",
    "contours": "MultiLineString",
    "classes": "MultiPolygon",
    "optimum": "Point",
}
_RESERVED = ("fid", "geom")


def files(run: Recorded) -> dict[str, bytes]:
    """Return the file by name.

    Raises
    ------
    InputError
        pyogrio is not installed, the domain does not have two horizontal axes, or its position on the ground
        is unknown.
    """
    try:
        import pyogrio  # noqa: F401
    except ModuleNotFoundError:
        raise missing("gpkg", "pyogrio", "geo") from None
    placement = Placement.of_plane(run, "a GeoPackage")
    layers = features.layers(run, placement.metres) | areas.layers(run, placement.metres)
    with tempfile.TemporaryDirectory() as folder, _dated(run.began):
        file = Path(folder) / "run.gpkg"
        for name, content in reversed(layers.items()):  # a GIS puts the last one on top
            _write(file, name, content, placement.crs)
        return {"run.gpkg": file.read_bytes()}


@contextmanager
def _dated(time: datetime) -> Iterator[None]:
    """Let GDAL date files with a given time, so that the same run gives the same bytes."""
    from pyogrio import get_gdal_config_option, set_gdal_config_options

    before = get_gdal_config_option("OGR_CURRENT_DATE")
    set_gdal_config_options({"OGR_CURRENT_DATE": time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")})
    try:
        yield
    finally:
        set_gdal_config_options({"OGR_CURRENT_DATE": before})


def _write(file: Path, name: str, content: Sequence[Feature], crs: str) -> None:
    """Add a layer to a file."""
    from pyogrio.raw import write

    points = _TYPES[name] == "Point"
    kept = [
        f for f in content if points or not isinstance(f.geometry, shapely.Point)
    ]  # a path may be a point
    keys = list(dict.fromkeys(key for feature in kept for key in feature.properties))
    columns = [_column(key, [feature.properties.get(key) for feature in kept]) for key in keys]
    write(
        file,
        geometry=np.array([shapely.to_wkb(feature.geometry) for feature in kept], dtype=object),
        field_data=columns,
        fields=np.array(_distinct(keys), dtype=object),
        layer=name,
        driver="GPKG",
        geometry_type=_TYPES[name],
        crs=crs,
        append=file.exists(),
    )


def _column(name: str, values: Sequence[Any]) -> NDArray[Any]:
    """Return a column of one type: times, text, numbers or booleans."""
    if name == "time":
        times = [datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None) for value in values]
        return np.array(times, dtype="datetime64[ms]")
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    if any(value is None for value in values):
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    return np.array(values)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return column names that differ in more than case, as SQLite needs them."""
    distinct: list[str] = []
    for name in names:
        taken = {other.casefold() for other in (*distinct, *_RESERVED)}
        number, candidate = 2, name
        while candidate.casefold() in taken:
            number, candidate = number + 1, f"{name}_{number}"
        distinct.append(candidate)
    return distinct
