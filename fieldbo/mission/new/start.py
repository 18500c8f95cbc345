"""The start of a new world on the Earth: in the water, or an error that says what was meant."""

from __future__ import annotations

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import TABLE_DIGITS, Georeference, check_degrees
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError

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
        start = _at_surface(domain, readings[0])
        if domain.contains(start)[0]:
            return start, []
        start = _at_surface(domain, domain.sites[domain.nearest(start)])
        latitude, longitude = georeference.degrees(start)[0]
        return start, [
            f"no --start: it is at {latitude:.6f}, {longitude:.6f}, the site nearest to the first reading"
        ]
    check_degrees(np.array([asked[0]]), np.array([asked[1]]), "--start")
    start = _at_surface(domain, georeference.metres(asked)[0])
    if domain.contains(start[None])[0]:
        return start, []
    free = domain.region
    assert free is not None
    away = float(shapely.distance(shapely.Point(start[:2]), free))
    meant = _meant(asked, georeference, free, min(away, _NEAR_M))
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


def _meant(
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


def _at_surface(domain: Domain, place: Array) -> Array:
    """Return a place (2,) or (d,) at the surface, as a point (d,) of a domain."""
    return np.append(place[:2], np.zeros(domain.dimension - 2))
