"""Places as people read and type them: in the axes' coordinates, or in degrees, minutes and seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import TEXT_DIGITS, Georeference, degrees_text
from fieldbo.domain.places import is_swapped, place_text
from fieldbo.errors import InputError
from fieldbo.vehicles.dialogue import Dialogue, number_in, parts_of

_DEGREE, _MINUTE, _SECOND = "[°º]", "['′’]", "(?:[\"″”]|''|′′)"
_NUMBER = r"\d+(?:[.,]\d+)?"
_PARTS = (
    rf"(?P<d>{_NUMBER})(?:(?:\s*{_DEGREE}\s*|\s+)(?P<m>{_NUMBER})(?:(?:\s*{_MINUTE}\s*|\s+)(?P<s>{_NUMBER}))?)?"
    rf"\s*(?P<sign>{_DEGREE}|{_SECOND}|{_MINUTE})?"
)
_ANGLES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\s*{_PARTS}\s*(?P<side>[NSEW])",
        rf"\s*(?P<side>[NSEW])\s*{_PARTS}",
        rf"\s*(?P<minus>[+-]?)(?P<d>{_NUMBER})\s*{_DEGREE}"
        rf"(?:\s*(?P<m>{_NUMBER})\s*{_MINUTE}(?:\s*(?P<s>{_NUMBER})\s*{_SECOND})?)?",
    )
)
"""An angle with its side behind it, with its side before it, and with a sign instead."""

_EXAMPLE = "type, for example, 47.3079 8.5105 or 47°18.48'N 8°30.63'E"


def has_angles(text: str) -> bool:
    """Return whether a text holds more than plain numbers: signs of degrees, or N, S, E or W."""
    return re.search(f"{_DEGREE}|{_MINUTE}|{_SECOND}|[NSEW]", text, re.IGNORECASE) is not None


def angles_in(text: str) -> tuple[Array, str]:
    """Return latitude and longitude (2,) in degrees, and the rest of the text.

    Latitude comes first unless N, S, E or W say otherwise; these may stand before or behind the numbers. A
    comma between digits is a decimal one.

    Raises
    ------
    InputError
        The text does not begin with a latitude and a longitude.

    Examples
    --------
    >>> angles_in("47°18.48'N 8°30.63'E")
    (array([47.308 ,  8.5105]), '')
    >>> angles_in("W8 30 37.8, S47 18 28.8; 2.5")
    (array([-47.308 ,  -8.5105]), '2.5')
    """
    for pattern in _ANGLES:
        first = pattern.match(text)
        second = None if first is None else pattern.match(text, _behind(text, first))
        if first is not None and second is not None:
            return _pair(text, first, second), text[_behind(text, second) :].strip()
    raise _wrong(text)


def _behind(text: str, angle: re.Match[str]) -> int:
    """Return where the text goes on behind an angle and a comma or semicolon."""
    separator = re.compile(r"\s*[,;]?\s*").match(text, angle.end())
    assert separator is not None
    return separator.end()


def _pair(text: str, first: re.Match[str], second: re.Match[str]) -> Array:
    """Return latitude and longitude (2,)."""
    sides = [(found.groupdict().get("side") or "").upper() for found in (first, second)]
    values = [_value(text, found) for found in (first, second)]
    if sides[0] and (sides[0] in "NS") == (sides[1] in "NS"):
        raise _wrong(text)
    if sides[0] and sides[0] in "EW":
        values.reverse()
    if abs(values[0]) > 90.0 or abs(values[1]) > 180.0:
        raise _wrong(text)
    return np.array(values)


def _value(text: str, angle: re.Match[str]) -> float:
    """Return an angle in degrees; south and west are negative."""
    of = angle.groupdict()
    parts = [float(of[key].replace(",", ".")) for key in "dms" if of[key] is not None]
    sign = of.get("sign")
    if max(parts[1:], default=0.0) >= 60.0 or (
        sign and not re.match((_DEGREE, _MINUTE, _SECOND)[len(parts) - 1], sign)
    ):
        raise _wrong(text)
    value = sum(part / 60.0**k for k, part in enumerate(parts))
    return -value if (of.get("side") or "").upper() in ("S", "W") or of.get("minus") == "-" else value


def _wrong(text: str) -> InputError:
    return InputError(f"{text!r} is not a latitude and a longitude", fix=_EXAMPLE)


_FAR_SPACINGS = 3
"""A position farther than this many spacings from the site is questioned."""

_HERE_M = 0.05
"""Legs shorter than this are none: as short as degrees are printed."""

DEGREES_HELP = """\
    47.3079 8.5105   (as a position) latitude, longitude in degrees; so is 47°18.48'N 8°30.63'E
    463000 5239500   (as a position) easting, northing in metres"""


def typed_places(domain: Domain, talk: Dialogue | None = None) -> TypedPlaces:
    """Return places in degrees if a domain has a CRS, and in its coordinates otherwise.

    Without a dialogue, they can't be `read`.
    """
    talk = Dialogue(input, print) if talk is None else talk
    if domain.georeference is None:
        return TypedPlaces(domain, talk)
    return TypedDegrees(domain, talk, domain.georeference)


def place_in(text: str, domain: Domain, planned: Array | None = None) -> Array:
    """Return the place (d,) in a text: coordinates, or latitude and longitude in a domain with a CRS.

    Eastings and northings, in the domain's order of axes, are too large to be degrees.

    Parameters
    ----------
    text : str
    domain : Domain
    planned : (d,) array, optional
        A site; its printed digits stand for the site itself.

    Raises
    ------
    InputError
        The text holds no place.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> place_in("3, 0.5", Domain.grid([Axis("x", "m", 0, 4), Axis("y", "m", 0, 2)], (5, 3)))
    array([3. , 0.5])
    """
    earth = domain.georeference
    if earth is None:
        return np.array([number_in(part) for part in parts_of(text, [a.name for a in domain.axes])])
    others = [j for j in range(domain.dimension) if j not in earth.axes]
    names = ["latitude", "longitude", *(domain.axes[j].name for j in others)]
    if has_angles(text):
        degrees, rest = angles_in(text)
        beside = [number_in(part) for part in parts_of(rest, names[2:])] if rest or others else []
    else:
        numbers = np.array([number_in(part) for part in parts_of(text, names)])
        if np.abs(numbers[list(earth.axes)]).max() > 180.0:
            return numbers
        if abs(numbers[0]) > 90.0:
            raise InputError(f"{numbers[0]:g} is not a latitude", fix="type the latitude first")
        degrees, beside = numbers[:2], numbers[2:].tolist()
    site = earth.site(degrees, domain.middle if planned is None else planned)
    site[others] = beside
    if planned is not None:
        printed = np.round(earth.degrees(planned)[0], TEXT_DIGITS)
        if np.array_equal(np.round(degrees, TEXT_DIGITS), printed):
            site[list(earth.axes)] = planned[list(earth.axes)]
    return site


class TypedPlaces:
    """Places in the coordinates of a domain.

    Parameters
    ----------
    domain : Domain
    talk : Dialogue
        Asks about places that are unlikely.
    """

    def __init__(self, domain: Domain, talk: Dialogue) -> None:
        self.domain, self._talk = domain, talk

    def text(self, site: Array) -> str:
        """Return a site (d,) as an order names it."""
        coordinates = zip(self.domain.axes, site, strict=True)
        return ", ".join(f"{a.name} {x:g} {a.unit}".rstrip() for a, x in coordinates)

    def answer(self, site: Array) -> str:
        """Return a site (d,) as a person may type it."""
        return ", ".join(f"{x:g}" for x in site)

    def legs(self, points: Array) -> str:
        """Return how to go from each of the points (k, d) to the next, on a line of its own; or nothing."""
        return ""

    def read(self, planned: Array, text: str) -> Array:
        """Return the place (d,) in a text; ask again, or to confirm, if it is unlikely.

        Parameters
        ----------
        planned : (d,) array
            Where the vehicle was sent.
        text : str

        Raises
        ------
        InputError
            The text holds no place, or one that is doubted.
        """
        site = place_in(text, self.domain, planned)
        if outside := self.outside(site):
            self._talk.doubt(outside)
        elif unlikely := self.unlikely(site, planned):
            place = f"({self.answer(site)})"
            self._talk.agree(f"that is {unlikely}; really {place}?", place)
        return site

    def outside(self, site: Array) -> str:
        """Return in words that a place (d,) is outside the domain, or in an obstacle; empty if it is not."""
        domain = self.domain
        if domain.beyond(site).any():
            return self._beyond(site)
        if (solid := next((o for o in domain.solid if o.holds(site)[0]), None)) is not None:
            return f"{self._short(site)} is inside {solid.name}"
        if domain.outline is not None and not shapely.intersects_xy(domain.outline, *site[:2]):
            return f"{self._short(site)} is outside the outline, or in one of its holes"
        return ""

    def _short(self, site: Array) -> str:
        return place_text(self.domain, site)

    def _beyond(self, site: Array) -> str:
        """Return that a place (d,) is outside the domain."""
        names = ", ".join(axis.name for axis in self.domain.axes)
        return f"{self._short(site)} is outside the domain ({names})"

    def unlikely(self, site: Array, planned: Array) -> str:
        """Return what is unlikely about a position; nothing if it is near the site and keeps the clearance.

        A value that is typed where the position is asked for often reads as one: 24,7 is (24, 7).
        """
        domain = self.domain
        units = [axis.unit for axis in domain.axes]
        if domain.clearance > 0 and not domain.contains(site[None])[0]:
            near = domain.obstacle_at(site)
            what = "the outline" if near is None else near.name or "an obstacle"
            return f"within {_length(domain.clearance, units[0])} of {what}"
        gaps = np.abs(site - planned)
        if not (gaps > _FAR_SPACINGS * domain.spacing).any():
            return ""
        if len(set(units)) == 1:
            return f"{_length(float(np.linalg.norm(gaps)), units[0])} from the site"
        along = [f"{_length(gap, a.unit)} along {a.name}" for a, gap in zip(domain.axes, gaps, strict=True)]
        return f"{listed(along)} from the site"


class TypedDegrees(TypedPlaces):
    """Places as latitude and longitude, and the other axes' coordinates after them.

    A person may also type eastings and northings, in the domain's order of axes; they are too large to be
    degrees.

    Parameters
    ----------
    domain : Domain
    talk : Dialogue
    georeference : Georeference
        The domain's.
    """

    def __init__(self, domain: Domain, talk: Dialogue, georeference: Georeference) -> None:
        super().__init__(domain, talk)
        self._earth = georeference
        self._others = [j for j in range(domain.dimension) if j not in georeference.axes]

    def text(self, site: Array) -> str:
        return place_text(self.domain, site)

    def answer(self, site: Array) -> str:
        return ", ".join([self._earth.text(site), *(f"{site[j]:g}" for j in self._others)])

    def legs(self, points: Array) -> str:
        ways = [
            f"{_length(length, 'm')}, bearing {round(bearing) % 360}°"
            for length, bearing in zip(*(x.tolist() for x in self._earth.legs(points)), strict=True)
            if length >= _HERE_M
        ]
        metres = (f"{self.domain.axes[j].name} {points[-1, j]:.1f} m" for j in self._earth.axes)
        return f"\n    {'; then '.join(ways) or 'you are there'}  ({', '.join(metres)})"

    def _beyond(self, site: Array) -> str:
        degrees = self._earth.degrees(site)[0]
        if is_swapped(self.domain, degrees):
            meant = f"latitude comes first: did you mean {degrees_text(degrees[::-1])}?"
            return f"{self._short(site)} is far outside the domain; {meant}"
        return f"{self._short(site)} is outside the domain"


def _length(length: float, unit: str) -> str:
    return f"{length:,.0f} {unit}".rstrip() if length >= 100 else f"{length:.3g} {unit}".rstrip()


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
