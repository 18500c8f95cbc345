"""Where a run lies: in degrees, and in metres of a coordinate reference system (CRS)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground, example
from fieldbo.domain.georeference import crs_of
from fieldbo.errors import InputError
from fieldbo.runs.replay import Recorded

_DIGITS = (9, 9, 4)  # degrees and metres to a tenth of a millimetre


@dataclass(frozen=True, eq=False)
class Placement:
    """Converts sites to degrees and to metres of a CRS.

    The CRS is that of the domain. A domain that a frame places has local metres around the frame's origin,
    in an azimuthal equidistant projection.

    Parameters
    ----------
    domain : Domain
    ground : Ground
        With a known origin.
    """

    domain: Domain
    ground: Ground

    @classmethod
    def of(cls, run: Recorded, what: str) -> Placement:
        """Return where a run lies.

        Parameters
        ----------
        run : Recorded
        what : str
            What needs to know, for messages: ``"GeoJSON"``.

        Raises
        ------
        InputError
            The domain is not a place, or its position on the ground is unknown.
        """
        domain = run.mission.world.domain
        if any(axis.unit != "m" for axis in domain.axes):
            others = ", ".join(axis.label for axis in domain.axes if axis.unit != "m")
            raise InputError(
                f"{what} needs places, and {run.name} has the axes {others}",
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
        return cls(domain, run.ground)

    @classmethod
    def of_plane(cls, run: Recorded, what: str) -> Placement:
        """Return where a run lies whose map is one of the ground: over two horizontal axes.

        Raises
        ------
        InputError
            As for `of`, or the domain is a line, a vertical section or a volume.
        """
        placement = cls.of(run, what)
        if not placement.horizontal:
            raise InputError(
                f"{what} needs a map of the ground, and {run.name} has "
                + ", ".join(placement.domain.axes[j].name for j in range(placement.domain.dimension)),
                expected="a world over two horizontal axes",
                fix="export the run to geojson or netcdf",
            )
        return placement

    @property
    def horizontal(self) -> bool:
        """Whether the domain has two axes, both horizontal."""
        return self.domain.dimension == 2 and not self.ground.towards[2].any()

    @property
    def has_altitude(self) -> bool:
        """Whether altitudes are known: from a vertical axis, or from the origin."""
        assert self.ground.origin is not None
        return bool(self.ground.towards[2].any()) or self.ground.origin.altitude != 0.0

    @cached_property
    def crs(self) -> str:
        """The CRS of `metres`, as WKT."""
        if self.domain.crs is not None:
            return str(crs_of(self.domain.crs, "domain.crs").to_wkt())
        origin = self.ground.origin
        assert origin is not None
        local = crs_of(
            f"+proj=aeqd +lat_0={origin.latitude!r} +lon_0={origin.longitude!r} +datum=WGS84 +units=m",
            "frame",
        )
        name = f"metres around {origin.latitude:.7g}, {origin.longitude:.7g}"
        return str(local.from_json_dict(local.to_json_dict() | {"name": name}).to_wkt())

    @property
    def directions(self) -> Array:
        """(2, d) the vector (easting, northing) in which each axis points."""
        georeference = self.domain.georeference
        if georeference is None:
            return self.ground.towards[:2]
        towards = np.zeros((2, self.domain.dimension))
        towards[[0, 1], list(georeference.axes)] = 1.0
        return towards

    def metres(self, sites: ArrayLike) -> Array:
        """Return sites (k, d) as easting and northing (k, 2)."""
        points = np.atleast_2d(np.asarray(sites, dtype=float))
        if self.domain.georeference is not None:
            return points[:, list(self.domain.georeference.axes)]
        return self.ground.local(points)[:, :2]

    def degrees(self, sites: ArrayLike) -> Array:
        """Return sites (k, d) as longitude, latitude and altitude (k, 3), rounded."""
        placed = self.ground.geodetic(sites)[:, [1, 0, 2]].tolist()
        rounded = [[round(x, digits) for x, digits in zip(row, _DIGITS, strict=True)] for row in placed]
        return np.array(rounded).reshape(-1, 3)
