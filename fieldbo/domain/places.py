"""Places of a domain: in words, and whether they lie in it.

With a CRS, words give places as degrees. `compared` says in words how much larger or smaller a number is.
"""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import compass_name
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted

_COARSE = 4  # decimals of degrees: ten metres
_MANY_TIMES, _HUGE = 10.0, 1e6  # ratios that are clearer as "71 times", and those that need an exponent


def place_text(domain: Domain, place: ArrayLike) -> str:
    """Return a place (d,) as its coordinates or, with a CRS, as latitude, longitude and the other ones.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.domain import Domain
    >>> bay = [Axis("east", "m", 463_000, 463_100), Axis("north", "m", 5_239_500, 5_239_600)]
    >>> place_text(Domain.grid(bay, (3, 3)), [463_000, 5_239_500])
    '[463000.0, 5239500.0]'
    >>> place_text(Domain.grid(bay, (3, 3), crs="EPSG:32632"), [463_000, 5_239_500])
    '47.307927, 8.510502'
    """
    point = np.asarray(place, dtype=float)
    try:
        degrees = None if domain.georeference is None else domain.georeference.text(point)
    except InputError:  # a faulty position, for example
        degrees = None
    if domain.georeference is None or degrees is None:
        return str(point.tolist())
    others = [j for j in range(domain.dimension) if j not in domain.georeference.axes]
    along = (f"{domain.axes[j].name} {point[j]:g} {domain.axes[j].unit}".rstrip() for j in others)
    return ", ".join([degrees, *along])


def part_text(domain: Domain, points: Array) -> str:
    """Return where points (k, d) lie: the part of a map that faces north, else where they are along the axes.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.domain import Domain
    >>> lake = Domain.grid([Axis("east", "m", 0, 90), Axis("north", "m", 0, 60)], (4, 4))
    >>> part_text(lake, lake.sites[-2:]), part_text(lake, lake.sites)
    ('in the north-east', 'in the middle')
    >>> wall = Domain.grid([Axis("along", "m", 0, 90), Axis("up", "m", 0, 6)], (4, 4))
    >>> part_text(wall, wall.sites[-2:])
    'at along 90 m, up 4 to 6 m'
    """
    names = [compass_name(axis.name) for axis in domain.axes]
    flat = domain.georeference.axes if domain.georeference is not None else ()
    if not flat and {"east", "north"} <= set(names):
        flat = names.index("east"), names.index("north")
    if flat:
        share = (points[:, list(flat)].mean(axis=0) - domain.low[list(flat)]) / domain.extent[list(flat)]
        across, up = np.clip(3.0 * share, 0, 2).astype(int).tolist()
        words = [("south", "", "north")[up], ("west", "", "east")[across]]
        return f"in the {'-'.join(filter(None, words)) or 'middle'}"
    low, high = (end(points, axis=0).tolist() for end in (np.min, np.max))
    shown = ([f"{float(f'{end:.3g}'):,.10g}" for end in ends] for ends in zip(low, high, strict=True))
    ranges = (" to ".join(dict.fromkeys(pair)) for pair in shown)
    parts = (f"{a.name} {part} {a.unit}".rstrip() for a, part in zip(domain.axes, ranges, strict=True))
    return f"at {', '.join(parts)}"


def extent_text(domain: Domain) -> str:
    """Return the ends of the axes; with a CRS, those of latitude and longitude instead of two of them.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.domain import Domain
    >>> bay = [Axis("east", "m", 463_000, 463_100), Axis("north", "m", 5_239_500, 5_239_600)]
    >>> extent_text(Domain.grid(bay, (3, 3), crs="EPSG:32632"))
    'latitude 47.3079 to 47.3088, longitude 8.5105 to 8.5118'
    """
    flat = [] if domain.georeference is None else list(domain.georeference.axes)
    others = [axis for j, axis in enumerate(domain.axes) if j not in flat]
    ends = [f"{a.name} {a.low:g} to {a.high:g} {a.unit}".rstrip() for a in others]
    if domain.georeference is None:
        return ", ".join(ends)
    corners = np.tile(domain.low, (4, 1))
    corners[:, flat[0]] = domain.low[flat[0]] + domain.extent[flat[0]] * np.array([0, 0, 1, 1])
    corners[:, flat[1]] = domain.low[flat[1]] + domain.extent[flat[1]] * np.array([0, 1, 0, 1])
    latitude, longitude = domain.georeference.degrees(corners).T
    if np.ptp(longitude) > 180.0:  # across the antimeridian
        longitude = longitude % 360.0
    west, east = ((end + 180.0) % 360.0 - 180.0 for end in (longitude.min(), longitude.max()))
    return ", ".join(
        [
            f"latitude {latitude.min():.{_COARSE}f} to {latitude.max():.{_COARSE}f}",
            f"longitude {west:.{_COARSE}f} to {east:.{_COARSE}f}",
            *ends,
        ]
    )


def check_place(domain: Domain, what: str, place: Array, where: str) -> None:
    """Raise an `InputError` unless `place` (d,) is a point of the domain.

    Parameters
    ----------
    domain : Domain
    what : str
        What the place is, for example ``"start"``.
    place : (d,) array
    where : str
        The key that holds it.
    """
    if len(place) != domain.dimension:
        raise InputError(
            f"{what} has {counted(len(place), 'coordinate')}",
            expected=f"{domain.dimension}: {', '.join(a.name for a in domain.axes)}",
            where=where,
        )
    if domain.contains(place[None])[0]:
        return
    inside, shown = domain.obstacle_at(place), place_text(domain, place)
    if inside is None and _near_outline(domain, place):
        raise InputError(
            f"{what} {shown} lies within {domain.clearance:g} {domain.axes[0].unit}".rstrip()
            + " of the outline",
            expected="a place that keeps the clearance from the outline",
            where=where,
            fix=f"{_nearest_site(domain, place)}, or lower the clearance",
        )
    raise InputError(
        f"{what} {shown} lies "
        + ("outside the domain" if inside is None else f"inside the obstacle {inside.name!r}"),
        expected=extent_text(domain)
        + (" and within its outline" if domain.region is not None and inside is None else "")
        + (" and outside all obstacles and their clearance" if inside is not None else ""),
        where=where,
        fix=_nearest_site(domain, place),
    )


def _near_outline(domain: Domain, place: Array) -> bool:
    """Return whether a place (d,) lies inside the outline, but within the clearance of its edge."""
    within = domain.clearance > 0 and domain.outline is not None and not domain.beyond(place).any()
    return within and bool(shapely.intersects_xy(domain.outline, *place[:2]))


def _nearest_site(domain: Domain, place: Array) -> str:
    """Return in words which site is nearest to a place (d,)."""
    site = [round(x, 9) for x in domain.sites[domain.nearest(place)].tolist()]
    if domain.georeference is None:
        return f"the nearest site is {site}"
    return f"the nearest site is {place_text(domain, site)}, in coordinates {site}"


def is_swapped(domain: Domain, degrees: ArrayLike) -> bool:
    """Return whether a latitude and a longitude (2,) are far from a domain, but near it if swapped.

    The domain has a CRS.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.domain.domain import Domain
    >>> bay = [Axis("east", "m", 463_000, 463_100), Axis("north", "m", 5_239_500, 5_239_600)]
    >>> is_swapped(Domain.grid(bay, (3, 3), crs="EPSG:32632"), [8.511, 47.308])
    True
    """
    given = np.asarray(degrees, dtype=float)
    return not _is_near(domain, given) and abs(given[1]) <= 90.0 and _is_near(domain, given[::-1])


def _is_near(domain: Domain, degrees: Array) -> bool:
    """Return whether a latitude and a longitude (2,) lie at most as far from the domain as it is long."""
    georeference = domain.georeference
    assert georeference is not None
    try:
        return bool(domain.around(georeference.site(degrees, domain.low), 1.0)[0])
    except InputError:
        return False


def compared(number: float, reference: float, what: str) -> str:
    """Return how much larger or smaller a positive number is than a reference, which `what` names.

    Examples
    --------
    >>> compared(103.12, 100, "the 100 planned"), compared(88, 100, "planned")
    ('3.1% more than the 100 planned', '12% less than planned')
    >>> compared(7100, 100, "the 100 planned"), compared(5, 0, "the 0 planned")
    ('71 times the 100 planned', 'more than the 0 planned')
    """
    if reference <= 0:
        return f"{'more' if number > reference else 'less'} than {what}"
    ratio = number / reference
    if ratio >= _MANY_TIMES:
        return f"{ratio:,.0f} times {what}" if ratio < _HUGE else f"{ratio:.2g} times {what}"
    percent, side = 100 * abs(ratio - 1), "more" if ratio > 1 else "less"
    return f"{f'{percent:.0f}' if percent >= 10 else f'{percent:.2g}'}% {side} than {what}"
