"""Places in Foxglove's schemas: poses, fixes, and the belief as a grid or a point cloud."""

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
    """Converts the sites of a domain on the ground to messages.

    Parameters
    ----------
    domain : Domain
    ground : Ground
    """

    domain: Domain
    ground: Ground

    def pose(self, site: Array, at: messages.Timestamp) -> messages.PoseInFrame:
        """Return the pose at a site (d,). The heading is unknown and given as east."""
        return messages.PoseInFrame(timestamp=at, frame_id=_MAP, pose=_pose(self.ground.local(site)[0]))

    def poses(self, sites: Array, at: messages.Timestamp) -> messages.PosesInFrame:
        """Return the poses at sites (k, d), headings as in `pose`."""
        poses = [_pose(place) for place in self.ground.local(sites)]
        return messages.PosesInFrame(timestamp=at, frame_id=_MAP, poses=poses)

    def fix(self, site: Array, at: messages.Timestamp) -> messages.LocationFix:
        """Return a site (d,) in degrees; this requires a known origin."""
        latitude, longitude, altitude = self.ground.geodetic(site)[0].tolist()
        return messages.LocationFix(
            timestamp=at, frame_id=_MAP, latitude=latitude, longitude=longitude, altitude=altitude
        )

    def belief(
        self, layers: Mapping[str, Array], at: messages.Timestamp
    ) -> messages.Grid | messages.PointCloud:
        """Return values (N,) at the sites as a grid if the domain is a 2-D grid, else as points."""
        on_grid = self.domain.shape is not None and self.domain.dimension == 2
        return self._grid(layers, at) if on_grid else self._cloud(layers, at)

    def _grid(self, layers: Mapping[str, Array], at: messages.Timestamp) -> messages.Grid:
        """Return a grid with columns along the first axis and rows along the second.

        Each grid cell is centred on its site, so the grid begins half a grid cell before the first site. The
        grid is rotated so that its x and y point along the two axes.
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
        """Return one point per site, relative to the lower corner to keep single precision accurate."""
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
    """Return the layout of one element: consecutive single-precision numbers."""
    return [
        messages.PackedElementField(
            name=name, offset=j * _REAL.itemsize, type=messages.PackedElementFieldNumericType.Float32
        )
        for j, name in enumerate(names)
    ]
