"""Where a domain lies on the ground, from its coordinate reference system or from a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.axes import is_depth
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Frame, Ground, Origin
from fieldbo.domain.georeference import Georeference
from fieldbo.errors import InputError

_STEP_M = 1.0
_QUARTER_M = 1e7  # of the Earth's circumference; a position farther from the origin is a fault


@dataclass(frozen=True, eq=False)
class ProjectedGround(Ground):
    """The ground of a domain with a CRS: its sites become degrees through the CRS, and then local metres.

    Grid north of a CRS differs from true north, and its metres from those on the ground. Local metres, the
    ones of robots and fences, are true ones around the origin.

    Parameters
    ----------
    towards, zero, origin
        As for `Ground`; the directions are those at the origin.
    georeference : Georeference
    """

    georeference: Georeference = None  # type: ignore[assignment]

    @classmethod
    def at(cls, domain: Domain, origin: Origin | None = None) -> ProjectedGround:
        """Return the ground of a domain with a CRS, around an origin, by default the domain's middle."""
        georeference = domain.georeference
        assert georeference is not None
        middle = (domain.low + domain.high) / 2.0
        flat = list(georeference.axes)
        others = [j for j in range(domain.dimension) if j not in flat]
        middle[others] = 0.0
        if origin is None:
            latitude, longitude = georeference.degrees(middle)[0].tolist()
            origin = Origin(latitude, longitude)
        zero = georeference.site([origin.latitude, origin.longitude], middle)
        towards = np.zeros((3, domain.dimension))
        for j in others:
            towards[2, j] = -1.0 if is_depth(domain.axes[j].name) else 1.0
        ground = cls(frozen_array(towards), frozen_array(zero), origin, georeference)
        for j in flat:
            step = zero.copy()
            step[j] += _STEP_M
            ahead = ground.local(step)[0]
            towards[:2, j] = (ahead / np.linalg.norm(ahead))[:2]
        return replace(ground, towards=frozen_array(towards))

    def local(self, sites: ArrayLike) -> Array:
        points = np.atleast_2d(np.asarray(sites, dtype=float))
        up = (points - self.zero) @ self.towards[2]
        return self.metres(
            np.column_stack([self.georeference.degrees(points), up + self._known_origin.altitude])
        )

    def sites(self, local: ArrayLike) -> Array:
        points = np.atleast_2d(np.asarray(local, dtype=float))
        on_globe = np.abs(points).max(axis=1, keepdims=True) < _QUARTER_M  # False for NaN
        points = np.where(on_globe, points, np.nan)
        sites = self.zero + np.outer(points[:, 2], self.towards[2])
        sites[:, list(self.georeference.axes)] = self.georeference.metres_if_any(self.degrees(points)[:, :2])
        return sites

    def geodetic(self, sites: ArrayLike) -> Array:
        points = np.atleast_2d(np.asarray(sites, dtype=float))
        up = (points - self.zero) @ self.towards[2] + self._known_origin.altitude
        return np.column_stack([self.georeference.degrees(points), up])

    def from_geodetic(self, geodetic: ArrayLike) -> Array:
        points = np.atleast_2d(np.asarray(geodetic, dtype=float))
        up = points[:, 2] - self._known_origin.altitude
        sites = self.zero + np.outer(up, self.towards[2])
        sites[:, list(self.georeference.axes)] = self.georeference.metres_if_any(points[:, :2])
        return sites


def ground_of(domain: Domain, frame: Frame | None = None) -> Ground | None:
    """Return where a domain lies: from its CRS, from a frame, or from the names of its axes.

    Parameters
    ----------
    domain : Domain
    frame : Frame, optional
        For a domain with a CRS it may only hold an origin, the zero of the robot's local map.

    Returns
    -------
    Ground or None
        None if the axes are not positions on the ground.

    Raises
    ------
    InputError
        The frame does not fit the axes, or contradicts the CRS.
    """
    if domain.georeference is None:
        frame = frame or Frame.usual(domain.axes)
        return None if frame is None else frame.over(domain.axes)
    if frame is not None and (frame.axes or frame.zero or frame.bearing != Frame().bearing):
        raise InputError(
            "the frame gives directions or a zero, but the world has a CRS, which places its axes",
            expected=f"only an origin: the world is in {domain.georeference.name}",
            where="frame",
            fix="delete every key of [frame] but origin, or the whole table",
        )
    return ProjectedGround.at(domain, None if frame is None else frame.origin)
