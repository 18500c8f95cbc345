"""The bottom of the water from a raster: depths or elevations, their unit, and what is doubtful."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.free_space import Bottom
from fieldbo.domain.georeference import crs_name, is_geographic
from fieldbo.errors import InputError, at, counted
from fieldbo.world.grids import Raster
from fieldbo.world.raster import read_raster

Positive = Literal["down", "up"]
"""Direction in which the values of a bathymetry grow: depths down, elevations up."""

DEEPEST_M = 500.0
"""Depth beyond which a new world asks: few lakes are deeper, and a wrong scale or unit is likelier."""

_METRES = {
    "m": 1.0, "metre": 1.0, "metres": 1.0, "meter": 1.0, "meters": 1.0, "cm": 0.01, "dm": 0.1, "km": 1000.0,
    "mm": 0.001, "ft": 0.3048, "foot": 0.3048, "feet": 0.3048, "us survey foot": 1200 / 3937,
    "ftus": 1200 / 3937, "fathom": 1.8288, "fathoms": 1.8288,
}  # fmt: skip
_DEEP_AT_ONCE = 0.5  # of the largest depth: elevations above sea level differ by less
_DOWN, _UP = ("depth",), ("elevation", "altitude", "height")  # in names of what is positive down, and up
_SAY = (
    "add --positive up if the land is positive, else --positive down (in a world: bathymetry = "
    '{ file = "...", positive = "up" })'
)
_BOTH = 0.02  # of the cells: so many of either sign may be rounding at the shore


def read_bottom(
    path: Path,
    crs: str,
    value: str | None = None,
    positive: Positive | None = None,
    of_file: str | None = None,
) -> Bottom:
    """Read the bottom from a raster of depths or elevations over a domain in a CRS.

    Whether the values are depths (positive down) or elevations (positive up) follows from `positive`, the
    attribute ``positive`` (CF conventions), the vertical CRS, the name of the variable, or their sign.

    Parameters
    ----------
    path : Path
        A NetCDF file, a GeoTIFF, or another grid.
    crs : str
        That of the domain; the raster's own may differ. A raster without one is in this one.
    value : str, optional
        Variable or band; by default the only one.
    positive : {"down", "up"}, optional
        What the file does not say.
    of_file : str, optional
        CRS of a raster that does not state its own.

    Raises
    ------
    InputError
        The file can't be read, its unit or CRS is unknown, or depths and elevations can't be told apart.
    """
    raster = read_raster(path, value)
    depth, what = _to_depths(raster, path, positive)
    its_crs = raster.crs or of_file
    with at(str(path)):
        place = "in the world's CRS" if its_crs is None else f"in {crs_name(its_crs)}"
        bottom = Bottom(raster.x, raster.y, depth, its_crs, crs, source=f"{path.name}: {what}, {place}")
        _check_coordinates(raster, its_crs)
    return bottom


def _check_coordinates(raster: Raster, crs: str | None) -> None:
    """Raise an `InputError` for coordinates that are not in the unit of their CRS."""
    x, y = (float(np.abs(ticks).max()) for ticks in (raster.x, raster.y))
    if crs is not None and is_geographic(crs):
        if x <= 540.0 and y <= 90.0:  # those of a grid from 0 to 360 go on beyond Greenwich
            return
        swapped = x <= 90.0 and y <= 540.0
        raise InputError(
            f"the raster is in degrees, but its coordinates reach {x:,.6g} and {y:,.6g}",
            expected="longitudes up to 540 and latitudes up to 90 degrees",
            fix="latitude and longitude look swapped" if swapped else "assign the right CRS in a GIS",
        )
    if x <= 360.0 and y <= 90.0:
        raise InputError(
            f"the raster's coordinates look like degrees: x up to {x:g}, y up to {y:g}",
            expected="a raster with its CRS"
            if crs is None
            else f"coordinates in the unit of {crs_name(crs)}",
            fix="assign its CRS in a GIS, or give --crs EPSG:4326",
        )


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


def check_deepest(depths: Array, deepest: float | None, source: str) -> None:
    """Raise an `InputError` if water is implausibly deep: a scale or a unit may be wrong.

    Parameters
    ----------
    depths : (n,) array
        At the sites, in metres.
    deepest : float, optional
        What people say is the deepest, in metres.
    source : str
        What the depths were read from.

    Raises
    ------
    InputError
        A depth is beyond `deepest`, or beyond `DEEPEST_M` if nobody said.
    """
    most = float(np.nanmax(depths)) if np.isfinite(depths).any() else 0.0
    if most <= (DEEPEST_M if deepest is None else deepest):
        return
    raise InputError(
        f"the water is up to {most:,.0f} m deep at the sites",
        expected=f"at most {DEEPEST_M if deepest is None else deepest:,.0f} m",
        where=f"--bathymetry {source}",
        fix="check the unit and the scale of the values (gdalinfo FILE); if the water is that deep, add "
        f'--deepest "{np.ceil(most):.0f} m"',
    )


def _to_depths(raster: Raster, path: Path, positive: Positive | None) -> tuple[Array, str]:
    """Return the values as depths (m, n) in metres, positive down, and in words what they were."""
    said = raster.attributes
    unit = said.get("units", "m").strip().lower()
    if unit not in _METRES:
        raise InputError(
            f"the values are in {unit!r}", expected=f"one of {', '.join(_METRES)}", where=f"{path}: units"
        )
    down, why = _tell_direction(raster, path, positive)
    scale = _METRES[unit]
    converted = "" if scale == 1.0 else f", converted from {unit} to m"
    depths = (scale if down else -scale) * raster.values
    return depths, f"{'depths' if down else 'elevations'} ({why}){converted}"


def _tell_direction(raster: Raster, path: Path, positive: Positive | None) -> tuple[bool, str]:
    """Return whether the values are depths, and why."""
    said = raster.attributes
    names = " ".join(said.get(key, "") for key in ("name", "standard_name", "long_name")).lower()
    known = raster.values[np.isfinite(raster.values)]
    called_down, called_up = (any(word in names for word in words) for words in (_DOWN, _UP))
    if positive is not None:
        return positive == "down", f'positive = "{positive}"'
    if (stated := said.get("positive", "").lower()) in ("down", "up"):
        return stated == "down", f'positive = "{stated}"'
    above, below = (float(np.count_nonzero(side)) / max(len(known), 1) for side in (known > 0, known < 0))
    axis = {"down": True, "up": False}.get(said.get("vertical axis", ""))
    if called_down != called_up and not (called_down and (known < 0).all()):
        name = said.get("name") or names.strip()
        unlikely = below > above if called_down else above > below
        if axis is not None and axis != called_down and unlikely:
            raise InputError(
                f"{path.name} is called {name}, but its vertical CRS is positive {'down' if axis else 'up'}, "
                f"and most values are {'negative' if called_down else 'positive'}",
                expected="depths, positive down, or elevations, positive up",
                where=str(path),
                fix=_SAY,
            )
        return called_down, f"called {name}"
    if axis is not None:
        return axis, f"its vertical CRS is positive {'down' if axis else 'up'}"
    if min(above, below) > _BOTH:
        raise InputError(
            f"{path.name} has {above:.0%} of its values above 0 and {below:.0%} below, and does not say "
            "whether they are depths or elevations",
            expected="depths, positive down, or elevations, positive up",
            where=str(path),
            fix=_SAY,
        )
    return above >= below, f"mostly {'positive' if above >= below else 'negative'}"
