"""Damage along branching cracks in a wall with openings.

Cracks grow as follows; the same draw is always the same wall:

1. A crack starts where stresses concentrate: at a corner of an opening or at the wall's edge. Corners are
   where the wall's outline turns by more than 30 degrees around a cutout; each starts at most one crack. The
   crack sets out along the corner's bisector, or at a right angle to the edge, with a deviation of about 15
   degrees.
2. It grows in steps of 0.1. Its heading ``a`` returns to its main direction ``m`` and turns at random,
   ``a += PULL (m - a) STEP + turn sqrt(STEP) z`` with ``z`` standard normal. This Ornstein-Uhlenbeck process
   wanders like a crack through mortar, which neither runs straight nor curls.
3. Its opening tapers with the distance ``s`` along its length ``L``, as ``w(s) = w0 sqrt(1 - s/L)``. One
   crack is the worst, with ``w0`` in 0.9 to 1; the others have 0.3 to 0.7. The wider a crack, the longer it
   is.
4. It branches at random, by default once in four metres. A branch leaves at 25 to 60 degrees to either
   side, has 0.5 to 0.8 of the crack's opening there and 0.4 to 0.8 of the remaining length, and may branch
   once more.
5. It ends at its length, or where its next step would leave the wall or enter an opening. If not even half of
   its length fits, another start is tried.

The damage at a point is that of the most visible crack there, ``max_p w_p g(d_p)`` over all points ``p`` of
cracks, at distances ``d_p``. ``g(d) = (1 - h) exp(-(d/l)^2 / 2) + h exp(-(d/4l)^2 / 2)`` has a core as wide
as a camera's footprint, and a halo of fine cracks and damp around it. 0 is sound, 1 is wide open.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pydantic
import shapely
from pydantic import NonNegativeFloat, PositiveFloat
from scipy.spatial.distance import cdist
from shapely.geometry.polygon import orient

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.streams import stream
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Region
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind, check_axes

STEP = 0.1
PULL = 0.5
_CORNER = np.radians(30)  # an outline that turns by more than this has a corner
_ROUNDING = 0.15  # tolerance of straightening an outline before its corners are detected
_GENERATIONS = 2  # of branches
_TRIES = 40  # starts of a crack


@dataclass(frozen=True, eq=False)
class Crack:
    """One crack, or one branch of it.

    Attributes
    ----------
    points : (k, 2) array
        Its course, `STEP` apart, in the axes' unit.
    openings : (k,) array
        Its opening at each point, 0 to 1.
    """

    points: Array
    openings: Array


@dataclass(frozen=True, eq=False)
class CrackedWall(Field):
    """The damage index over a wall.

    Attributes
    ----------
    cracks : tuple of Crack
    footprint : float
        Standard deviation of the core, in the axes' unit.
    halo : float
        Fraction of the damage in the halo.
    """

    cracks: tuple[Crack, ...]
    footprint: float
    halo: float

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the damage (N,) at `sites` (N, 2), 0 to 1."""
        worst = np.zeros(len(sites))
        for crack in self.cracks:
            gap = 0.5 * (cdist(sites, crack.points) / self.footprint) ** 2
            shown = (1.0 - self.halo) * np.exp(-gap) + self.halo * np.exp(-gap / 16.0)
            np.maximum(worst, np.max(shown * crack.openings, axis=1), out=worst)
        return worst


@settings("field")
class Cracks(FieldKind):
    """A seeded wall with cracks, another one for every draw. Its axes run along the wall and up.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> wall = Domain.grid([Axis("along", "m", 0, 10), Axis("height", "m", 0, 6)], (41, 25))
    >>> damage = Cracks(cracks=2).make(wall, draw=0).values(wall.sites)
    >>> bool(damage.min() >= 0), bool(0.5 < damage.max() <= 1)
    (True, True)
    """

    cracks: Annotated[int, pydantic.Field(ge=1, le=1000)] = 6
    """Number of cracks, without branches."""
    length: Annotated[float, pydantic.Field(ge=STEP)] = 6.0
    """Length of a crack of medium opening, in the axes' unit."""
    turn: NonNegativeFloat = 0.6
    """Strength of the random turns, in radians per square root of the axes' unit."""
    branching: Annotated[float, pydantic.Field(ge=0, le=1 / STEP)] = 0.25
    """Branches per unit of length."""
    footprint: PositiveFloat = 0.4
    """Distance to either side at which the damage shows, in the axes' unit."""
    halo: Annotated[float, pydantic.Field(ge=0, le=1)] = 0.3
    """Fraction of the damage that shows four times as far."""

    def make(self, domain: Domain, draw: int, folder: Path | None = None) -> CrackedWall:
        """Return wall number `draw`. The domain's region is the wall; its sites have no influence."""
        check_axes("cracks", domain, {"distance along the wall": -np.inf, "height": -np.inf})
        wall = shapely.box(*domain.low, *domain.high) if domain.region is None else domain.region
        shapely.prepare(wall)
        rng = stream(draw, "field")
        corners = list(rng.permutation(_find_corners(wall)))
        grown: list[Crack] = []
        for number in range(self.cracks):
            opening = rng.uniform(0.9, 1.0) if number == 0 else rng.uniform(0.3, 0.7)
            grown += self._start_crack(wall, corners, opening, rng)
        return CrackedWall(tuple(grown), self.footprint, self.halo)

    def _start_crack(
        self, wall: Region, corners: list[Array], opening: float, rng: np.random.Generator
    ) -> list[Crack]:
        """Return a crack with its branches, from the first start where it has room."""
        length = self.length * (0.5 + opening) * rng.uniform(0.7, 1.3)
        longest: Crack | None = None
        for _ in range(_TRIES):
            # three of four start at an opening, as long as corners are left
            at_corner = len(corners) > 0 and rng.uniform() < 0.75
            start = corners.pop() if at_corner else _draw_on_edge(wall, rng)
            start[2] += np.radians(15) * rng.standard_normal()
            crack = self._grow(wall, start, opening, length, rng)
            if longest is None or len(crack.points) > len(longest.points):
                longest = crack
            if len(crack.points) * STEP >= length / 2:
                break
        assert longest is not None
        return [longest, *self._grow_branches(wall, longest, length, _GENERATIONS, rng)]

    def _grow(
        self, wall: Region, start: Array, opening: float, length: float, rng: np.random.Generator
    ) -> Crack:
        """Grow a crack from `start`, (x, y, heading), until its length or the wall ends."""
        *at, main = start
        steps = max(1, int(length / STEP))
        kicks = self.turn * np.sqrt(STEP) * rng.standard_normal(steps)
        heading, points = main, [np.array(at)]
        for kick in kicks:
            heading += PULL * (main - heading) * STEP + kick
            ahead = points[-1] + STEP * np.array([np.cos(heading), np.sin(heading)])
            if not wall.covers(shapely.LineString([points[-1], ahead])):
                break
            points.append(ahead)
        left = 1.0 - np.arange(len(points)) / (steps + 1)
        return Crack(frozen_array(points), frozen_array(opening * np.sqrt(left)))

    def _grow_branches(
        self, wall: Region, crack: Crack, length: float, more: int, rng: np.random.Generator
    ) -> list[Crack]:
        """Return the branches of a crack, and their branches."""
        branches: list[Crack] = []
        if not more:
            return branches
        for k in np.flatnonzero(rng.uniform(size=len(crack.points) - 1) < self.branching * STEP):
            heading = np.arctan2(*(crack.points[k + 1] - crack.points[k])[::-1])
            aside = rng.choice([-1.0, 1.0]) * np.radians(rng.uniform(25, 60))
            start = np.array([*crack.points[k], heading + aside])
            opening = crack.openings[k] * rng.uniform(0.5, 0.8)
            rest = (length - k * STEP) * rng.uniform(0.4, 0.8)
            branch = self._grow(wall, start, opening, rest, rng)
            branches += [branch, *self._grow_branches(wall, branch, rest, more - 1, rng)]
        return branches


def _find_corners(wall: Region) -> Array:
    """Return the corners of cutouts of the wall, (n, 3): x, y, and the heading away from the cutout."""
    corners = []
    for part in shapely.get_parts(wall):
        plain = orient(part.simplify(_ROUNDING))  # the wall is to the left of all its rings
        for ring in (plain.exterior, *plain.interiors):
            corner = shapely.get_coordinates(ring)[:-1]
            to, on = corner - np.roll(corner, 1, axis=0), np.roll(corner, -1, axis=0) - corner
            before, after = np.arctan2(to[:, 1], to[:, 0]), np.arctan2(on[:, 1], on[:, 0])
            turned = (after - before + np.pi) % (2 * np.pi) - np.pi
            away = before + turned / 2 + np.pi / 2
            corners.append(np.column_stack([corner, away])[turned < -_CORNER])
    return np.concatenate(corners)


def _draw_on_edge(wall: Region, rng: np.random.Generator) -> Array:
    """Return a point on the wall's outer edge, and the heading into the wall."""
    part = max(shapely.get_parts(wall), key=lambda p: float(p.area))
    ring = orient(part).exterior
    at = rng.uniform(0.0, ring.length)
    here, next_ = (np.array(ring.interpolate(s).coords[0]) for s in (at, (at + 1e-3) % ring.length))
    along = np.arctan2(*(next_ - here)[::-1])
    return np.array([*here, along + np.pi / 2])
