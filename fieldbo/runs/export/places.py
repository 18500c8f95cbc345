"""Places in Foxglove's own schemas: poses, fixes, and the belief as a grid or a cloud of points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from foxglove import messages
from scipy.spatial.transform import Rotation

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground

_MAP = "map"
_REAL = np.dtype("<f4")
_PLACED = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class Places:
    """A domain on the ground, in messages.

    Parameters
    ----------
    domain : Domain
    ground : Ground
    """

    domain: Domain
    ground: Ground

    def pose(self, site: Array, at: messages.Timestamp) -> messages.PoseInFrame:
        """Return a site (d,); which way a vehicle points is not known, and is told as east."""
        return messages.PoseInFrame(timestamp=at, frame_id=_MAP, pose=_pose(self.ground.local(site)[0]))

    def fix(self, site: Array, at: messages.Timestamp) -> messages.LocationFix:
        """Return a site (d,) in degrees; the origin has to be known."""
        latitude, longitude, altitude = self.ground.geodetic(site)[0].tolist()
        return messages.LocationFix(
            timestamp=at, frame_id=_MAP, latitude=latitude, longitude=longitude, altitude=altitude
        )

    def belief(
        self, layers: Mapping[str, Array], at: messages.Timestamp
    ) -> messages.Grid | messages.PointCloud:
        """Return values (N,) at the sites: as a grid where they lie on one of two axes, else as points."""
        on_grid = self.domain.shape is not None and self.domain.dimension == 2
        return self._grid(layers, at) if on_grid else self._cloud(layers, at)

    def _grid(self, layers: Mapping[str, Array], at: messages.Timestamp) -> messages.Grid:
        """Return a grid whose columns run along the first axis and its rows along the second.

        A cell lies around its site, so that the grid begins half a cell before the first one. The grid's own
        x and y are turned to where the two axes lead.
        """
        domain, ground = self.domain, self.ground
        assert domain.shape is not None
        columns, _ = domain.shape
        cell = domain.extent / np.maximum(np.array(domain.shape) - 1, 1)
        along, across = ground.towards.T
        turned = Rotation.from_matrix(np.stack([along, across, np.cross(along, across)], axis=1))
        cells = np.stack([domain.on_grid(layer).T for layer in layers.values()], axis=-1)
        stride = len(layers) * _REAL.itemsize
        return messages.Grid(
            timestamp=at,
            frame_id=_MAP,
            pose=_pose(ground.local(domain.low - cell / 2)[0], turned),
            column_count=columns,
            cell_size=messages.Vector2(x=float(cell[0]), y=float(cell[1])),
            row_stride=columns * stride,
            cell_stride=stride,
            fields=_fields(layers),
            data=cells.astype(_REAL).tobytes(),
        )

    def _cloud(self, layers: Mapping[str, Array], at: messages.Timestamp) -> messages.PointCloud:
        """Return a point for each site, told from the lower ends of the axes to keep its digits."""
        corner = self.ground.local(self.domain.low)[0]
        points = self.ground.local(self.domain.sites) - corner
        rows = np.column_stack([points, *layers.values()]).astype(_REAL)
        return messages.PointCloud(
            timestamp=at,
            frame_id=_MAP,
            pose=_pose(corner),
            point_stride=rows.shape[1] * _REAL.itemsize,
            fields=_fields([*_PLACED, *layers]),
            data=rows.tobytes(),
        )


def _pose(place: Array, turned: Rotation | None = None) -> messages.Pose:
    x, y, z = place.tolist()
    a, b, c, w = (0.0, 0.0, 0.0, 1.0) if turned is None else turned.as_quat().tolist()
    return messages.Pose(
        position=messages.Vector3(x=x, y=y, z=z), orientation=messages.Quaternion(x=a, y=b, z=c, w=w)
    )


def _fields(names: Iterable[str]) -> list[messages.PackedElementField]:
    """Return the layout of one element: single precision, one after the other."""
    return [
        messages.PackedElementField(
            name=name, offset=j * _REAL.itemsize, type=messages.PackedElementFieldNumericType.Float32
        )
        for j, name in enumerate(names)
    ]
