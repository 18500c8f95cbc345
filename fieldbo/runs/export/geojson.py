"""Path, readings and map in degrees, as GeoJSON (RFC 7946): longitude, latitude, altitude on WGS 84.

``path.geojson`` has one line per vehicle, ``routes.geojson`` one line per order, ``readings.geojson`` one
point per reading, and ``map.geojson`` one point per site with the values of the final maps: mean, standard
deviation, probability and, for a level set, the class.
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
from fieldbo.messages import GoHome, Query
from fieldbo.results.result import Result
from fieldbo.runs.export.recorded import Recorded
from fieldbo.runs.record.rows import ORDERS

_DIGITS = (9, 9, 4)  # degrees and metres to a tenth of a millimetre


def files(run: Recorded) -> dict[str, bytes]:
    """Return the files by name.

    Raises
    ------
    InputError
        The domain is not a place, or its position on the ground is unknown.
    """
    ground = _known_ground(run)
    parts = {
        "path": _path(run, ground),
        "routes": _routes(run, ground),
        "readings": _readings(run, ground),
        "map": _map(run, ground),
    }
    return {f"{name}.geojson": _collection(features) for name, features in parts.items()}


def _known_ground(run: Recorded) -> Ground:
    """Return the position of the domain, or raise an `InputError` if it has no degrees."""
    domain = run.mission.world.domain
    if any(axis.unit != "m" for axis in domain.axes):
        others = ", ".join(axis.label for axis in domain.axes if axis.unit != "m")
        raise InputError(
            f"GeoJSON needs places, and {run.name} has the axes {others}",
            expected="a world with all axes in metres",
            fix="export the run to csv, netcdf or mcap",
        )
    if run.ground is None or run.ground.origin is None:
        raise InputError(
            f"the position of {run.name} on the ground is unknown",
            expected="a frame with an origin, from which degrees are computed",
            where="--frame",
            fix=f"pass --frame FILE with a table such as\n{example(domain.axes)}",
        )
    return run.ground


def _path(run: Recorded, ground: Ground) -> list[dict[str, Any]]:
    """Return the actual path of each vehicle as a line; a vehicle that has not moved is a point."""
    features = []
    for number, account in enumerate(run.result.accounts):
        path = _positions(ground, _path_of(run.result, number))
        kind, place = ("LineString", path) if len(path) > 1 else ("Point", path[0])
        properties = {"run": run.name, "mission": run.mission.name, "cost": account.spent}
        properties |= {"vehicle": number} if len(run.result.accounts) > 1 else {}
        features.append(_feature(kind, place, properties | {"cost_unit": run.mission.world.cost_unit}))
    return features


def _path_of(result: Result, vehicle: int) -> Array:
    """Return the actual path (k, d) of one vehicle."""
    orders = {order.id for order, _, _ in result.accounts[vehicle].lines}
    observations = tuple(event for event in result.observations if event.order in orders)
    mission = replace(result.mission, vehicles=(result.mission.vehicles[vehicle],))
    return replace(result, mission=mission, observations=observations).path


def _routes(run: Recorded, ground: Ground) -> list[dict[str, Any]]:
    """Return the route of each order as it was planned, from where its vehicle was expected to be."""
    ends, features = [spec.start for spec in run.mission.vehicles], []
    for row in run.rows:
        if row.kind not in ORDERS:
            continue
        order = row.message
        assert isinstance(order, Query | GoHome)
        assert order.site is not None
        route = order.route if len(order.route) else np.stack([ends[order.vehicle], order.site])
        ends[order.vehicle] = order.site
        properties = {
            "run": run.name,
            "order": order.id,
            "kind": row.kind,
            "vehicle": order.vehicle,
            "expected_cost": order.expected_cost,
            "cost_unit": run.mission.world.cost_unit,
        }
        features.append(_feature("LineString", _positions(ground, route), properties))
    return features


def _readings(run: Recorded, ground: Ground) -> list[dict[str, Any]]:
    """Return one point per reading, with the columns of the table of readings."""
    header, rows = run.result.readings()
    properties = [dict(zip(header, row, strict=True)) for row in rows]
    for reading in properties:
        time = run.began + timedelta(seconds=float(reading["time_s"]))
        reading["time"] = time.isoformat(timespec="milliseconds")
    return _points(_positions(ground, run.result.sites), properties)


def _map(run: Recorded, ground: Ground) -> list[dict[str, Any]]:
    """Return one point per site, with the values of the final maps."""
    domain, maps = run.mission.world.domain, run.result.maps()
    layers = {
        str(name): layer.values if domain.shape is None else layer.values.ravel()[domain.grid_index]
        for name, layer in maps.data_vars.items()
    }
    properties = [dict(zip(layers, row, strict=True)) for row in zip(*layers.values(), strict=True)]
    return _points(_positions(ground, domain.sites), properties)


def _positions(ground: Ground, sites: Array) -> list[list[float]]:
    """Return sites (k, d) as longitude, latitude and altitude."""
    degrees = ground.geodetic(sites)[:, [1, 0, 2]].tolist()
    return [[round(x, digits) for x, digits in zip(row, _DIGITS, strict=True)] for row in degrees]


def _points(
    positions: Sequence[Sequence[float]], properties: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    return [_feature("Point", place, values) for place, values in zip(positions, properties, strict=True)]


def _feature(kind: str, place: Sequence[Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": place}
    plain = {name: _plain(value) for name, value in properties.items()}
    return {"type": "Feature", "geometry": geometry, "properties": plain}


def _plain(value: Any) -> Any:
    """Return a value for JSON: NaN and infinity become null."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def _collection(features: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the content of a file, one feature per line."""
    lines = ",\n".join(json.dumps(feature, ensure_ascii=False, allow_nan=False) for feature in features)
    return f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'.encode()
