"""Path, readings and map in degrees, as GeoJSON (RFC 7946): longitude, latitude, altitude on WGS 84.

``path.geojson`` is a line for each vehicle, ``readings.geojson`` a point for each reading, and
``map.geojson`` a point for each site with what the final maps say of it: mean, standard deviation,
probability and, for a level set, the class.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.frame import Ground, example
from fieldbo.errors import InputError
from fieldbo.results.result import Result
from fieldbo.runs.export.recorded import Recorded

_DIGITS = (9, 9, 4)  # degrees and metres to a tenth of a millimetre


def files(run: Recorded) -> dict[str, bytes]:
    """Return the files by their names.

    Raises
    ------
    InputError
        Nothing says where on the ground the domain lies, or it does not lie there at all.
    """
    ground = _known_ground(run)
    found = {"path": _path(run, ground), "readings": _readings(run, ground), "map": _map(run, ground)}
    return {f"{name}.geojson": _collection(features) for name, features in found.items()}


def _known_ground(run: Recorded) -> Ground:
    """Return where the domain lies, if that can be told in degrees."""
    domain = run.mission.world.domain
    if any(axis.unit != "m" for axis in domain.axes):
        others = ", ".join(axis.label for axis in domain.axes if axis.unit != "m")
        raise InputError(
            f"{run.name} ran over {others}, and GeoJSON is of places",
            expected="a world whose axes are all in metres",
            fix="export it to csv, netcdf or mcap",
        )
    if run.ground is None or run.ground.origin is None:
        raise InputError(
            f"nothing says where on the ground {run.name} was",
            expected="a frame with an origin, which GeoJSON's degrees are told from",
            where="--frame",
            fix=f"pass --frame FILE with a table in it, for example\n{example(domain.axes)}",
        )
    return run.ground


def _path(run: Recorded, ground: Ground) -> list[dict[str, Any]]:
    """Return the way really taken, of each vehicle its own; a point while nothing has moved."""
    features = []
    for number, book in enumerate(run.result.accounts):
        way = _positions(ground, _way(run.result, number))
        kind, place = ("LineString", way) if len(way) > 1 else ("Point", way[0])
        told = {"run": run.name, "mission": run.mission.name, "cost": book.spent}
        told |= {"vehicle": number} if len(run.result.accounts) > 1 else {}
        features.append(_feature(kind, place, told | {"cost_unit": run.mission.world.cost_unit}))
    return features


def _way(result: Result, vehicle: int) -> Array:
    """Return the way (k, d) that one of the vehicles really took."""
    orders = {order.id for order, _, _ in result.accounts[vehicle].lines}
    own = tuple(event for event in result.observations if event.order in orders)
    alone = replace(result.mission, vehicles=(result.mission.vehicles[vehicle],))
    return replace(result, mission=alone, observations=own).path


def _readings(run: Recorded, ground: Ground) -> list[dict[str, Any]]:
    """Return a point for each reading, with all that the table of readings says of it."""
    header, rows = run.result.readings()
    told = [dict(zip(header, row, strict=True)) for row in rows]
    for one in told:
        one["time"] = (run.began + timedelta(seconds=float(one["time_s"]))).isoformat(timespec="milliseconds")
    return _points(_positions(ground, run.result.sites), told)


def _map(run: Recorded, ground: Ground) -> list[dict[str, Any]]:
    """Return a point for each site, with what the final maps say of it."""
    domain, maps = run.mission.world.domain, run.result.maps()
    layers = {
        str(name): one.values if domain.shape is None else one.values.ravel()[domain.grid_index]
        for name, one in maps.data_vars.items()
    }
    told = [dict(zip(layers, row, strict=True)) for row in zip(*layers.values(), strict=True)]
    return _points(_positions(ground, domain.sites), told)


def _positions(ground: Ground, sites: Array) -> list[list[float]]:
    """Return sites (k, d) as longitude, latitude and altitude."""
    degrees = ground.geodetic(sites)[:, [1, 0, 2]].tolist()
    return [[round(x, digits) for x, digits in zip(one, _DIGITS, strict=True)] for one in degrees]


def _points(positions: Sequence[Sequence[float]], told: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [_feature("Point", place, one) for place, one in zip(positions, told, strict=True)]


def _feature(kind: str, place: Sequence[Any], told: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: _plain(value) for name, value in told.items()}
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": place}, "properties": properties}


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it: what is no number is null."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def _collection(features: Sequence[Mapping[str, Any]]) -> bytes:
    """Return a file's content, a feature a line."""
    lines = ",\n".join(json.dumps(one, ensure_ascii=False, allow_nan=False) for one in features)
    return f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'.encode()
