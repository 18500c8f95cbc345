"""Path, readings and map in degrees, as GeoJSON (RFC 7946): longitude, latitude, altitude on WGS 84.

``path.geojson`` has one line per vehicle, ``routes.geojson`` one line per order, ``readings.geojson`` one
point per reading, and ``map.geojson`` one point per site with the values of the final maps: mean, standard
deviation, probability and, for a level set, the class.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely

from fieldbo.runs.export.features import Feature, layers
from fieldbo.runs.export.placement import Placement
from fieldbo.runs.export.recorded import Recorded


def files(run: Recorded) -> dict[str, bytes]:
    """Return the files by name.

    Raises
    ------
    InputError
        The domain is not a place, or its position on the ground is unknown.
    """
    placement = Placement.of(run, "GeoJSON")
    parts = layers(run, placement.degrees)
    return {f"{name}.geojson": collection(features) for name, features in parts.items()}


def collection(features: Sequence[Feature]) -> bytes:
    """Return the content of a file, one feature per line."""
    lines = ",\n".join(
        json.dumps(_feature(feature), ensure_ascii=False, allow_nan=False) for feature in features
    )
    return f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'.encode()


def _feature(feature: Feature) -> dict[str, Any]:
    plain = {name: _plain(value) for name, value in feature.properties.items()}
    return {"type": "Feature", "geometry": shapely.geometry.mapping(feature.geometry), "properties": plain}


def _plain(value: Any) -> Any:
    """Return a value for JSON: NaN and infinity become null."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
