"""The bottom of the water from NetCDF and GeoTIFF files, as depths or as elevations."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.free_space import Bottom
from fieldbo.domain.georeference import crs_name
from fieldbo.errors import InputError, counted
from fieldbo.world.raster import Raster, read_raster

_METRES = {
    "m": 1.0, "metre": 1.0, "metres": 1.0, "meter": 1.0, "meters": 1.0, "cm": 0.01, "dm": 0.1, "km": 1000.0,
    "ft": 0.3048, "foot": 0.3048, "feet": 0.3048,
}  # fmt: skip
_DEEP_AT_ONCE = 0.5  # of the largest depth: elevations above sea level differ by less
_DOWN, _UP = ("depth",), ("elevation", "altitude", "height")  # in names of what is positive down, and up


def read_bottom(path: Path, crs: str) -> Bottom:
    """Read the bottom from a raster of depths or elevations, in metres, over a domain in a CRS.

    Whether the values are depths (positive down) or elevations (positive up) follows from the attribute
    ``positive`` (CF conventions), or from the name of the variable, or from their sign.

    Parameters
    ----------
    path : Path
        A NetCDF file with one variable over two dimensions, or a GeoTIFF with one band.
    crs : str
        That of the domain; the raster's own may differ. A raster without one is in this one.

    Raises
    ------
    InputError
        The file can't be read, or its unit or CRS is unknown.
    """
    raster = read_raster(path)
    depth, what = _depths(raster, path)
    try:
        place = "in the world's CRS" if raster.crs is None else f"in {crs_name(raster.crs)}"
        return Bottom(raster.x, raster.y, depth, raster.crs, crs, source=f"{path.name}: {what}, {place}")
    except InputError as error:
        raise error.at(str(path)) from None


def notes_on_depths(depths: Array, least_depth: float | None) -> tuple[str, ...]:
    """Return how deep the water is, and warnings if the depths look like elevations above sea level.

    Parameters
    ----------
    depths : (n,) array
        Of the water at the sites, those that are too shallow included, in metres.
    least_depth : float, optional
        Depth of water below which there are no sites, in metres.

    Examples
    --------
    >>> notes_on_depths(np.array([0.5, 3.0, 9.0]), 2.0)
    ('depths from 0.5 to 9 m; 1 site in less than 2 m of water left out',)
    """
    low, high = float(depths.min()), float(depths.max())
    if least_depth is None:
        said = [f"depths from {low:.3g} to {high:.3g} m"]
        shallow = 0
    else:
        shallow = int((depths < least_depth).sum())
        less = f"in less than {least_depth:g} m of water left out"
        said = [f"depths from {low:.3g} to {high:.3g} m; {counted(shallow, 'site')} {less}"]
        if not shallow:
            said.append(f"warning: --least-depth {least_depth:g} m leaves out no site")
    if not shallow and low > _DEEP_AT_ONCE * high:
        said.append(
            f"warning: the water is {low:.3g} m deep or more at every site; if the file holds elevations "
            "above sea level, subtract them from the level of the lake in a GIS (level - elevation)"
        )
    return tuple(said)


def _depths(raster: Raster, path: Path) -> tuple[Array, str]:
    """Return the values as depths (m, n) in metres, positive down, and in words what they were."""
    said = raster.attributes
    unit = said.get("units", "m").strip().lower()
    if unit not in _METRES:
        raise InputError(
            f"the values are in {unit!r}", expected=f"one of {', '.join(_METRES)}", where=f"{path}: units"
        )
    names = " ".join(said.get(key, "") for key in ("name", "standard_name", "long_name")).lower()
    known = raster.values[np.isfinite(raster.values)]
    called_down, called_up = (any(word in names for word in words) for words in (_DOWN, _UP))
    if (positive := said.get("positive", "").lower()) in ("down", "up"):
        down, why = positive == "down", f'positive = "{positive}"'
    elif called_down != called_up and not (called_down and (known < 0).all()):
        down, why = called_down, f"called {said.get('name') or names.strip()}"
    else:
        down = bool(np.median(known) >= 0) if len(known) else True
        why = f"mostly {'positive' if down else 'negative'}"
    return (_METRES[unit] if down else -_METRES[unit]) * raster.values, (
        f"{'depths' if down else 'elevations'} ({why})"
    )
