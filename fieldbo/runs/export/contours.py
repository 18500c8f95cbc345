"""Contour lines and class areas in degrees, as GeoJSON (RFC 7946).

``contours.geojson`` has one feature per level of the posterior mean. ``classes.geojson`` has one feature per
class of a level set, ``optimum.geojson`` the reported optimum.
"""

from __future__ import annotations

from fieldbo.runs.export.areas import layers
from fieldbo.runs.export.geojson import collection
from fieldbo.runs.export.placement import Placement
from fieldbo.runs.export.recorded import Recorded


def files(run: Recorded) -> dict[str, bytes]:
    """Return the files by name.

    Raises
    ------
    InputError
        The domain does not have two horizontal axes, or its position on the ground is unknown.
    """
    placement = Placement.of_plane(run, "a contour map")
    parts = layers(run, placement.degrees)
    return {f"{name}.geojson": collection(features) for name, features in parts.items()}
