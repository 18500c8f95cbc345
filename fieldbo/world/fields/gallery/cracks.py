"""Damage along branching cracks in a wall with openings.

How cracks are grown, so that the same draw is always the same wall:

1. A crack starts at a corner of an opening or at the wall's edge, where stresses concentrate. Corners are
   where the wall's outline turns by more than 30 degrees around something cut out of it; each starts at most
   one. A crack sets out along the corner's bisector, or square to the edge, give or take some 15 degrees.
2. It grows in steps of 0.1. Its heading ``a`` keeps to its main direction ``m`` and is turned at random,
   ``a += PULL (m - a) STEP + turn sqrt(STEP) z`` with ``z`` standard normal. This Ornstein-Uhlenbeck process
   wanders like a crack through mortar: it neither runs straight nor curls.
3. Its opening tapers with the way ``s`` along its length ``L``, as ``w(s) = w0 sqrt(1 - s/L)``. One crack is
   the worst, with ``w0`` in 0.9 to 1; the others have 0.3 to 0.7. The wider a crack, the longer it is.
4. It branches at random, by default once in four metres. A branch leaves at 25 to 60 degrees to either side,
   has 0.5 to 0.8 of the crack's opening there and 0.4 to 0.8 of the length that is left, and branches once
   more at most.
5. It ends at its length, or where its next step would leave the wall or run into an opening. Where not even
   half of its length finds room, another start is tried.

The damage at a place is that of the crack that shows most there, ``max_p w_p g(d_p)`` over all points
``p`` of cracks, at distances ``d_p``. ``g(d) = (1 - h) exp(-(d/l)^2 / 2) + h exp(-(d/4l)^2 / 2)`` has a core
as wide as a camera's footprint, and around it a halo of fine cracks and damp. 0 is sound, 1 is wide open.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import shapely
from scipy.spatial.distance import cdist
from shapely.geometry.polygon import orient

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.streams import stream
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError
from fieldbo.world.fields.base import Field, FieldKind

STEP = 0.1
PULL = 0.5
_CORNER = np.radians(30)  # an outline that turns by more has a corner
_ROUNDING = 0.15  # an outline is straightened by so much before its corners are looked for
_GENERATIONS = 2  # of branches
_TRIES = 40


@dataclass(frozen=True, eq=False)
class Crack:
    """One crack, or one branch of it.

    Attributes
    ----------
    points : (k, 2) array
        Where it runs, `STEP` apart, in the axes' unit.
    openings : (k,) array
        How far it is open there, 0 to 1.
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
        Share of the damage that shows around it.
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


@dataclass(frozen=True)
class Cracks(FieldKind):
    """A seeded wall with cracks; every draw is another one. Axes along the wall and up it.

    Parameters
    ----------
    cracks : int
        How many there are, branches not counted.
    length : float
        Of a crack of middling opening, in the axes' unit.
    turn : float
        How strongly a crack is turned, in radians per root of the axes' unit.
    branching : float
        Branches per unit of length.
    footprint : float
        How far the damage shows on either side, in the axes' unit.
    halo : float
        Share of it that shows four times as far.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> wall = Domain.grid([Axis("along", "m", 0, 10), Axis("height", "m", 0, 6)], (41, 25))
    >>> damage = Cracks(cracks=2).realise(wall, draw=0).values(wall.sites)
    >>> bool(damage.min() >= 0), bool(0.5 < damage.max() <= 1)
    (True, True)
    """

    cracks: int = 6
    length: float = 6.0
    turn: float = 0.6
    branching: float = 0.25
    footprint: float = 0.4
    halo: float = 0.3

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("cracks", 1 <= self.cracks <= 1000, "1 to 1000"),
            ("length", STEP <= self.length < np.inf, f"a finite number of at least {STEP}"),
            ("turn", 0 <= self.turn < np.inf, "a finite number of at least 0"),
            ("branching", 0 <= self.branching <= 1 / STEP, f"0 to {1 / STEP:g}"),
            ("footprint", 0 < self.footprint < np.inf, "a finite number above 0"),
            ("halo", 0 <= self.halo <= 1, "0 to 1"),
        ):
            if not good:
                raise InputError(f"{name} = {getattr(self, name)}", expected=expected, where=f"field.{name}")

    def realise(self, domain: Domain, draw: int, folder: Path | None = None) -> CrackedWall:
        """Return wall number `draw`; the domain's region is the wall, its sites do not change it."""
        if domain.dimension != 2:
            raise InputError(f"cracks over {domain.dimension} axes", expected="two: along the wall and up it")
        wall = shapely.box(*domain.low, *domain.high) if domain.region is None else domain.region
        shapely.prepare(wall)
        rng = stream(draw, "field")
        corners = list(rng.permutation(_corners(wall)))
        grown: list[Crack] = []
        for number in range(self.cracks):
            opening = rng.uniform(0.9, 1.0) if number == 0 else rng.uniform(0.3, 0.7)
            grown += self._crack(wall, corners, opening, rng)
        return CrackedWall(tuple(grown), self.footprint, self.halo)

    def _crack(
        self, wall: Region, corners: list[Array], opening: float, rng: np.random.Generator
    ) -> list[Crack]:
        """Return one crack with its branches, from the first start of some where it finds room."""
        length = self.length * (0.5 + opening) * rng.uniform(0.7, 1.3)
        found: Crack | None = None
        for _ in range(_TRIES):
            # three of four start at an opening, as long as there are such corners
            at_corner = len(corners) > 0 and rng.uniform() < 0.75
            start = corners.pop() if at_corner else _on_edge(wall, rng)
            start[2] += np.radians(15) * rng.standard_normal()
            crack = self._grown(wall, start, opening, length, rng)
            if found is None or len(crack.points) > len(found.points):
                found = crack
            if len(crack.points) * STEP >= length / 2:
                break
        assert found is not None
        return [found, *self._branches(wall, found, length, _GENERATIONS, rng)]

    def _grown(
        self, wall: Region, start: Array, opening: float, length: float, rng: np.random.Generator
    ) -> Crack:
        """Return what grows from `start`, (x, y, heading), until its length or the wall ends."""
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

    def _branches(
        self, wall: Region, crack: Crack, length: float, more: int, rng: np.random.Generator
    ) -> list[Crack]:
        """Return the branches of a crack, and theirs."""
        found: list[Crack] = []
        if not more:
            return found
        for k in np.flatnonzero(rng.uniform(size=len(crack.points) - 1) < self.branching * STEP):
            heading = np.arctan2(*(crack.points[k + 1] - crack.points[k])[::-1])
            aside = rng.choice([-1.0, 1.0]) * np.radians(rng.uniform(25, 60))
            start = np.array([*crack.points[k], heading + aside])
            opening = crack.openings[k] * rng.uniform(0.5, 0.8)
            rest = (length - k * STEP) * rng.uniform(0.4, 0.8)
            branch = self._grown(wall, start, opening, rest, rng)
            found += [branch, *self._branches(wall, branch, rest, more - 1, rng)]
        return found


def _corners(wall: Region) -> Array:
    """Return the corners of what is cut out of the wall, (n, 3): x, y and the heading away from it."""
    found = []
    for part in shapely.get_parts(wall):
        plain = orient(part.simplify(_ROUNDING))  # the wall is to the left of all its rings
        for ring in (plain.exterior, *plain.interiors):
            corner = shapely.get_coordinates(ring)[:-1]
            to, on = corner - np.roll(corner, 1, axis=0), np.roll(corner, -1, axis=0) - corner
            before, after = np.arctan2(to[:, 1], to[:, 0]), np.arctan2(on[:, 1], on[:, 0])
            turned = (after - before + np.pi) % (2 * np.pi) - np.pi
            away = before + turned / 2 + np.pi / 2
            found.append(np.column_stack([corner, away])[turned < -_CORNER])
    return np.concatenate(found)


def _on_edge(wall: Region, rng: np.random.Generator) -> Array:
    """Return a place on the wall's outer edge, and the heading into the wall."""
    part = max(shapely.get_parts(wall), key=lambda p: float(p.area))
    ring = orient(part).exterior
    at = rng.uniform(0.0, ring.length)
    here, next_ = (np.array(ring.interpolate(s).coords[0]) for s in (at, (at + 1e-3) % ring.length))
    along = np.arctan2(*(next_ - here)[::-1])
    return np.array([*here, along + np.pi / 2])
