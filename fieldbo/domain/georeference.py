"""Where a domain lies on the Earth: the coordinate reference system (CRS) of its horizontal axes.

A domain with a CRS has eastings and northings in metres as the coordinates of two of its axes. Latitude and
longitude, in degrees on WGS 84, appear only at the edges of fieldbo: in files, prompts, pictures and exports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.axes import Axis, compass_name, is_depth, is_height
from fieldbo.errors import InputError

if TYPE_CHECKING:
    from pyproj import CRS, Transformer

WGS84 = "EPSG:4326"

TEXT_DIGITS, TABLE_DIGITS = 6, 7
"""Decimals of degrees: a tenth of a metre for people, and a centimetre in tables."""

_POLAR = {True: "EPSG:5041", False: "EPSG:5042"}  # universal polar stereographic, easting first
_UTM_NORTH, _UTM_SOUTH = 84.0, -80.0  # degrees: beyond them there are no UTM zones
_DISTORTED = 0.02  # of a length
_WIDEST = 6.0  # degrees of longitude; wider than a UTM zone is not one place


@dataclass(frozen=True)
class Georeference:
    """Converts between two horizontal axes and degrees.

    Parameters
    ----------
    crs : str
        A projected CRS in metres, as PROJ understands it, for example ``"EPSG:32632"``.
    axes : (int, int)
        Indices of the axes of easting and northing in the domain's coordinates.

    Raises
    ------
    InputError
        PROJ does not know the CRS, or its axes are not in metres.

    Examples
    --------
    >>> utm = Georeference("EPSG:32632")
    >>> utm.degrees([[463_000.0, 5_239_500.0]]).round(4).tolist()
    [[47.3079, 8.5105]]
    >>> utm.metres([[47.3079, 8.5105]]).round().tolist()
    [[463000.0, 5239497.0]]
    """

    crs: str
    axes: tuple[int, int] = (0, 1)

    def __post_init__(self) -> None:
        check_metric(self.crs, "domain.crs")

    @classmethod
    def over(cls, axes: Sequence[Axis], crs: str) -> Georeference:
        """Return the georeference of a domain whose first two horizontal axes are easting and northing.

        Raises
        ------
        InputError
            There are not exactly two horizontal axes in metres, easting first, or the CRS is not valid.
        """
        flat = [j for j, a in enumerate(axes) if not (is_depth(a.name) or is_height(a.name))]
        if len(flat) != 2 or any(a.unit != "m" for a in axes):
            raise InputError(
                f"crs = {crs!r}, but the axes are {', '.join(a.label for a in axes)}",
                expected="an axis of eastings and one of northings in m, and at most a depth or a height",
                where="domain.crs",
            )
        east, north = (axes[j].name for j in flat)
        if compass_name(east) in ("north", "south") or compass_name(north) in ("east", "west"):
            raise InputError(
                f"crs = {crs!r}, but the axis {east} comes before {north}",
                expected="the axis of eastings before that of northings",
                where="domain.crs",
                fix="swap the two axes, and all coordinates",
            )
        middle = [(axes[j].low + axes[j].high) / 2.0 for j in flat]
        _check_scale(crs, middle[0], middle[1])
        return cls(crs, (flat[0], flat[1]))

    @cached_property
    def name(self) -> str:
        """Name and code of the CRS, for example ``WGS 84 / UTM zone 32N (EPSG:32632)``."""
        return crs_name(self.crs)

    def degrees(self, points: ArrayLike) -> Array:
        """Return points (k, d) of the domain as latitude and longitude, (k, 2).

        Raises
        ------
        InputError
            A point is so far away that the CRS has no place for it.
        """
        x, y = np.atleast_2d(np.asarray(points, dtype=float))[:, list(self.axes)].T
        longitude, latitude = self._to_degrees.transform(x, y)
        longitude = np.where(np.abs(longitude) > 180.0, longitude - np.copysign(360.0, longitude), longitude)
        return self._checked(np.stack([latitude, longitude], axis=1), x, y)

    def metres(self, degrees: ArrayLike) -> Array:
        """Return latitude and longitude (k, 2) as easting and northing, (k, 2).

        Raises
        ------
        InputError
            A place is so far away that the CRS has no coordinates for it.
        """
        latitude, longitude = np.atleast_2d(np.asarray(degrees, dtype=float)).T
        return self._checked(self.metres_if_any(degrees), latitude, longitude)

    def metres_if_any(self, degrees: ArrayLike) -> Array:
        """Return what `metres` does, with NaN instead of an error: a robot's position may be faulty."""
        latitude, longitude = np.atleast_2d(np.asarray(degrees, dtype=float)).T
        metres = np.stack(self._to_metres.transform(longitude, latitude), axis=1)
        return np.where(np.isfinite(metres).all(axis=1, keepdims=True), metres, np.nan)

    def site(self, degrees: ArrayLike, others: ArrayLike) -> Array:
        """Return the point (d,) at a latitude and longitude (2,), its other coordinates from `others`."""
        point = np.array(others, dtype=float)
        point[list(self.axes)] = self.metres(degrees)[0]
        return point

    def text(self, point: ArrayLike) -> str:
        """Return a point (d,) as latitude and longitude in words, to a tenth of a metre.

        Examples
        --------
        >>> Georeference("EPSG:32632").text([463_000, 5_239_500])
        '47.307927, 8.510502'
        """
        return degrees_text(self.degrees(point)[0])

    def legs(self, points: ArrayLike) -> tuple[Array, Array]:
        """Return lengths (k - 1,) in metres and bearings (k - 1,) of the legs between points (k, d).

        Both hold on the ground: they are those of geodesics on WGS 84. A bearing is that at the start of its
        leg, in degrees clockwise from true north.

        Examples
        --------
        >>> Georeference("EPSG:32632").legs([[463_000, 5_239_500], [463_100, 5_239_500]])
        (array([100.03833683]), array([89.64021064]))
        """
        from pyproj import Geod

        latitude, longitude = self.degrees(points).T
        bearings, _, lengths = Geod(ellps="WGS84").inv(
            longitude[:-1], latitude[:-1], longitude[1:], latitude[1:]
        )
        return np.asarray(lengths), np.asarray(bearings) % 360.0

    def _checked(self, moved: Array, first: Array, second: Array) -> Array:
        """Return converted points (k, 2), or raise an `InputError` about the first that has no place."""
        lost = ~np.isfinite(moved).all(axis=1)
        if lost.any():
            k = int(np.argmax(lost))
            raise InputError(
                f"{first[k]:g}, {second[k]:g} is too far away for {self.name}",
                expected="places near the domain",
                fix="check the order of the numbers: latitude comes before longitude",
            )
        return moved

    @cached_property
    def _to_degrees(self) -> Transformer:
        return _transformer(self.crs, WGS84)

    @cached_property
    def _to_metres(self) -> Transformer:
        return _transformer(WGS84, self.crs)


def degrees_text(degrees: ArrayLike) -> str:
    """Return a latitude and a longitude (2,) in words, to a tenth of a metre.

    Examples
    --------
    >>> degrees_text([47.3079264, -0.00000001])
    '47.307926, 0.000000'
    """
    latitude, longitude = (np.round(np.asarray(degrees, dtype=float), TEXT_DIGITS) + 0.0).tolist()
    return f"{latitude:.{TEXT_DIGITS}f}, {longitude:.{TEXT_DIGITS}f}"


def local_crs(latitude: ArrayLike, longitude: ArrayLike) -> str:
    """Return the metric CRS for places near each other: their UTM zone, or polar stereographic.

    Parameters
    ----------
    latitude, longitude : (n,) arrays
        In degrees on WGS 84.

    Raises
    ------
    InputError
        They are not latitudes and longitudes, span more than one UTM zone is wide, or lie on both sides of
        the antimeridian.

    Examples
    --------
    >>> local_crs([47.3], [8.5]), local_crs([-33.9], [18.4]), local_crs([86.0], [10.0])
    ('EPSG:32632', 'EPSG:32734', 'EPSG:5041')
    """
    from pyproj.aoi import AreaOfInterest
    from pyproj.database import query_utm_crs_info

    north, east = np.asarray(latitude, dtype=float), np.asarray(longitude, dtype=float)
    check_degrees(north, east)
    around = east % 360.0
    if np.ptp(east) > 180.0 and np.ptp(around) <= _WIDEST:
        raise InputError(
            "the place crosses the antimeridian: its longitudes run from "
            f"{around.min():.6f} to {around.max() - 360.0:.6f}",
            expected="a place on one side of it, or the CRS to use",
            fix=f"add --crs EPSG:32{'6' if north.mean() >= 0 else '7'}60, which reaches across",
        )
    if np.ptp(east) > _WIDEST:
        raise InputError(
            f"the longitudes run from {east.min():g} to {east.max():g}",
            expected=f"one place, at most {_WIDEST:g} degrees wide",
            fix="check for positions that are wrong, or split the survey",
        )
    at_north, at_east = float((north.min() + north.max()) / 2), float((east.min() + east.max()) / 2)
    if not _UTM_SOUTH <= at_north <= _UTM_NORTH:
        return _POLAR[at_north > 0]
    here = AreaOfInterest(at_east, at_north, at_east, at_north)
    zones = query_utm_crs_info(datum_name="WGS 84", area_of_interest=here)
    side = f"EPSG:32{'6' if at_north >= 0 else '7'}"  # on the equator both hemispheres match
    codes = sorted(f"{zone.auth_name}:{zone.code}" for zone in zones)
    return next((code for code in codes if code.startswith(side)), codes[0])


def check_degrees(latitude: Array, longitude: Array, where: str | None = None) -> None:
    """Raise an `InputError` unless latitudes and longitudes are in range; name swapped ones."""
    if (np.abs(latitude) <= 90.0).all() and (np.abs(longitude) <= 180.0).all():
        return
    swapped = (np.abs(longitude) <= 90.0).all() and (np.abs(latitude) <= 180.0).all()
    raise InputError(
        f"latitudes from {latitude.min():g} to {latitude.max():g}, "
        f"longitudes from {longitude.min():g} to {longitude.max():g}",
        expected="latitudes from -90 to 90 and longitudes from -180 to 180 degrees",
        where=where,
        fix="they look swapped: name the other column or number first" if swapped else "check the units",
    )


def crs_of(text: str, where: str) -> CRS:
    """Return a CRS by its code, name, PROJ string or WKT, or raise an `InputError`."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        return CRS.from_user_input(text)
    except CRSError:
        raise InputError(
            f"{text!r} is not a coordinate reference system",
            expected="a code such as EPSG:32632 or EPSG:4326",
            where=where,
            fix="look it up at epsg.io, or in the properties of the layer in QGIS",
        ) from None


def check_metric(crs: str, where: str) -> None:
    """Raise an `InputError` unless a CRS is projected and in metres."""
    given = crs_of(crs, where)
    units = {axis.unit_name for axis in given.axis_info[:2]}
    if not given.is_projected or not units <= {"metre", "meter"}:
        kind = "in degrees" if given.is_geographic else f"in {given.axis_info[0].unit_name}"
        raise InputError(
            f"{crs} ({given.name}) is {kind}",
            expected="a projected CRS in metres, such as the local UTM zone",
            where=where,
        )


@lru_cache(maxsize=256)
def _check_scale(crs: str, x: float, y: float) -> None:
    """Raise an `InputError` if a metre of a CRS is not one on the ground at an easting and northing."""
    from pyproj import Proj

    check_metric(crs, "domain.crs")
    longitude, latitude = Proj(crs)(x, y, inverse=True)
    scales = (np.inf, np.inf)
    if np.isfinite([longitude, latitude]).all():
        factors = Proj(crs).get_factors(longitude, latitude)
        scales = (factors.meridional_scale, factors.parallel_scale)
    worst = max(scales, key=lambda k: abs(k - 1.0))
    if not abs(worst - 1.0) <= _DISTORTED:
        distorted = f"is distorted here: 1 m of it is {1 / worst:.3g} m on the ground"
        here = "does not reach this place" if np.isinf(worst) else distorted
        raise InputError(
            f"{crs_name(crs)} {here}",
            expected=f"a CRS whose metres are those on the ground, to {_DISTORTED:.0%}",
            where="domain.crs",
            fix="use the local UTM zone, or the national grid",
        )


def is_true_to_scale(crs: str, degrees: ArrayLike) -> bool:
    """Return whether a metre of a projected CRS is about one on the ground, around latitudes and longitudes.

    Raises
    ------
    InputError
        The CRS is not projected, or not in metres.

    Examples
    --------
    >>> is_true_to_scale("EPSG:32632", [[47.3, 8.5]]), is_true_to_scale("EPSG:3857", [[47.3, 8.5]])
    (True, False)
    """
    check_metric(crs, "--crs")
    middle = np.median(np.atleast_2d(np.asarray(degrees, dtype=float)), axis=0)[::-1]
    try:
        _check_scale(crs, *reprojected(middle, WGS84, crs)[0].tolist())
    except InputError:
        return False
    return True


def crs_name(crs: str) -> str:
    """Return the name of a CRS with its code, if it has one.

    Examples
    --------
    >>> crs_name("EPSG:28992")
    'Amersfoort / RD New (EPSG:28992)'
    """
    given = crs_of(crs, "crs")
    code = given.to_authority()
    return given.name if code is None else f"{given.name} ({':'.join(code)})"


def same_crs(first: str, second: str) -> bool:
    """Return True if two texts describe the same CRS."""
    return crs_of(first, "crs").equals(crs_of(second, "crs"), ignore_axis_order=True)


@lru_cache(maxsize=64)
def is_geographic(crs: str) -> bool:
    """Return whether a CRS is in degrees."""
    return bool(crs_of(crs, "crs").is_geographic)


def turned_to(degrees: Array, middle: float) -> Array:
    """Return longitude and latitude (k, 2) with longitudes within 180 degrees of a middle.

    Examples
    --------
    >>> turned_to(np.array([[-10.0, 50.0], [170.0, 50.0]]), 180.0).tolist()
    [[350.0, 50.0], [170.0, 50.0]]
    """
    turned = np.array(degrees)
    turned[:, 0] += 360.0 * np.round((middle - turned[:, 0]) / 360.0)
    return frozen_array(turned)


def reprojected(points: ArrayLike, source: str, target: str) -> Array:
    """Return points (k, 2) in one CRS in another; longitude or easting comes first in both."""
    x, y = np.atleast_2d(np.asarray(points, dtype=float)).T
    moved = _transformer(source, target).transform(x, y, errcheck=True)
    return frozen_array(np.stack(moved, axis=1))


@lru_cache(maxsize=64)
def _transformer(source: str, target: str) -> Transformer:
    """Return what moves points from one CRS to another, which takes some 50 ms to find out."""
    from pyproj import Transformer

    return Transformer.from_crs(source, target, always_xy=True)
