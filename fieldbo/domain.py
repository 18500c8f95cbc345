"""Where samples can be taken: named axes, finite candidate sites, and a region they lie in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from fieldbo.errors import InputError

MOST_PAIRS = 20_000
"""Sites up to which all pairs of them fit in memory: 3.2 GB."""

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def frozen_array(values: ArrayLike, dtype: type = float) -> NDArray[Any]:
    """Return `values` as a contiguous array that can't be written to."""
    array: NDArray[Any] = np.array(values, dtype=dtype, order="C")
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Axis:
    """One axis of a domain.

    Parameters
    ----------
    name : str
        For example ``"along"``.
    unit : str
        For example ``"m"``.
    low, high : float
        The ends of the axis, in its unit.
    positive : {"up", "down"}
        Which way the axis points when drawn; depth points down.
    """

    name: str
    unit: str
    low: float
    high: float
    positive: Literal["up", "down"] = "up"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise InputError(
                f"axis {self.name!r} goes from {self.low} to {self.high}",
                expected="two finite numbers, low below high",
            )

    @property
    def extent(self) -> float:
        """Length of the axis, in its unit."""
        return self.high - self.low

    @property
    def label(self) -> str:
        """Name and unit, as on a picture's axis."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


def is_depth(name: str) -> bool:
    """Say whether an axis of that name is a depth, which points down unless it says otherwise.

    Examples
    --------
    >>> is_depth("depth"), is_depth("Depth_m"), is_depth("north")
    (True, True, False)
    """
    return name.strip().lower().startswith("depth")


@dataclass(frozen=True, eq=False)
class Domain:
    """Finite candidate sites on named axes.

    Parameters
    ----------
    axes : sequence of Axis
        d axes; every site has its coordinates in this order.
    sites : (N, d) array
        Where samples can be taken, in the axes' units.
    shape : tuple of int, optional
        Counts along each axis where the sites come from a grid (before the region was cut out).
    grid_index : (N,) int array, optional
        Flat index of each site in that grid; all of them in order where nothing was cut out.
    region : shapely.Polygon, optional
        Outline of a 2-d domain, in the axes' units; None is the whole box.
    continuous : bool
        Whether samples can be taken anywhere between the axes' ends; the sites then only stand for them.

    Raises
    ------
    InputError
        No sites, wrong shapes, or sites outside the axes.

    Examples
    --------
    >>> lake = Domain.grid([Axis("along", "m", 0, 100), Axis("depth", "m", 0, 10, "down")], (3, 2))
    >>> lake.size, lake.dimension
    (6, 2)
    >>> lake.contains([[50, 5], [50, 11]])
    array([ True, False])
    """

    axes: tuple[Axis, ...]
    sites: Array
    shape: tuple[int, ...] | None = None
    grid_index: NDArray[np.int64] | None = None
    region: shapely.Polygon | None = field(default=None, repr=False)
    continuous: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))
        object.__setattr__(self, "sites", frozen_array(np.atleast_2d(self.sites)))
        if self.sites.size == 0:
            raise InputError(
                "the domain has no sites",
                expected="at least one candidate site",
                mend="widen the region or refine the grid",
            )
        if self.sites.shape[1] != len(self.axes):
            raise InputError(
                f"sites have {self.sites.shape[1]} coordinates", expected=f"{len(self.axes)}, one an axis"
            )
        if self.shape is not None and self.grid_index is None:
            object.__setattr__(self, "grid_index", frozen_array(np.arange(self.size), int))
        outside = ~self.contains(self.sites)
        if outside.any():
            raise InputError(
                f"{int(outside.sum())} of {self.size} sites lie outside the domain, the first at "
                f"{self.sites[np.argmax(outside)].tolist()}",
                expected="sites within the axes and the region",
            )

    @classmethod
    def grid(
        cls, axes: Sequence[Axis], shape: Sequence[int], region: shapely.Polygon | None = None
    ) -> Domain:
        """Make sites at the nodes of a regular grid; the last axis varies fastest.

        Parameters
        ----------
        axes : sequence of d Axis
        shape : sequence of d int
            Number of nodes along each axis, ends included.
        region : shapely.Polygon, optional
            Only nodes in it or on its edge become sites (2-d only).
        """
        if len(shape) != len(axes) or min(shape) < 1:
            raise InputError(f"grid counts {tuple(shape)}", expected=f"{len(axes)} counts of at least 1")
        ticks = [np.linspace(a.low, a.high, n) for a, n in zip(axes, shape, strict=True)]
        nodes = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, len(axes))
        index = np.arange(len(nodes))
        if region is not None:
            if len(axes) != 2:
                raise InputError("an outline was given", expected="a domain of two axes for an outline")
            index = index[shapely.intersects_xy(region, nodes[:, 0], nodes[:, 1])]
        return cls(tuple(axes), nodes[index], tuple(shape), frozen_array(index, int), region)

    @classmethod
    def box(cls, axes: Sequence[Axis], representers: int = 1000) -> Domain:
        """Make a continuous domain: the box between the axes' ends, and points that stand for it.

        Parameters
        ----------
        axes : sequence of d Axis
        representers : int
            How many quasi-random (Sobol) points become the sites.

        Examples
        --------
        >>> Domain.box([Axis("x", "m", 0, 2), Axis("y", "m", 0, 1)], 64).sites.mean(axis=0).round(2)
        array([1. , 0.5])
        """
        from scipy.stats import qmc

        if representers < 1:
            raise InputError(f"{representers} representers", expected="at least 1")
        low, high = np.array([a.low for a in axes]), np.array([a.high for a in axes])
        power = int(np.ceil(np.log2(representers)))  # Sobol points are even in powers of two
        points = qmc.Sobol(len(axes), rng=np.random.default_rng(0)).random_base2(power)[:representers]
        return cls(tuple(axes), low + points * (high - low), continuous=True)

    def check_pairs(self, what: str) -> None:
        """Raise an `InputError` if a covariance between all pairs of sites would not fit in memory."""
        if self.size > MOST_PAIRS:
            raise InputError(
                f"{what} on {self.size} sites takes {8e-9 * self.size**2:,.0f} GB",
                expected=f"at most {MOST_PAIRS} sites",
                where="domain.axes",
                mend="lower the counts of the axes, or take a field that needs no such pairs, as gp-mean",
            )

    @property
    def size(self) -> int:
        """Number of sites, N."""
        return len(self.sites)

    @property
    def dimension(self) -> int:
        """Number of axes, d."""
        return len(self.axes)

    @cached_property
    def low(self) -> Array:
        """(d,) lower ends of the axes."""
        return frozen_array([a.low for a in self.axes])

    @cached_property
    def high(self) -> Array:
        """(d,) upper ends of the axes."""
        return frozen_array([a.high for a in self.axes])

    @property
    def extent(self) -> Array:
        """(d,) lengths of the axes."""
        return self.high - self.low

    @property
    def cell_size(self) -> float:
        """Length, area or volume that one site stands for, in the product of the axes' units.

        Examples
        --------
        >>> Domain.grid([Axis("x", "m", 0, 4), Axis("y", "m", 0, 2)], (5, 3)).cell_size
        0.5333333333333333
        """
        total = self.region.area if self.region is not None else float(np.prod(self.extent))
        return float(total) / self.size

    @property
    def cell_unit(self) -> str:
        """Unit of `cell_size`: m, m2, or the axes' units side by side."""
        units = [a.unit for a in self.axes]
        if len(set(units)) == 1:
            return units[0] + (str(len(units)) if len(units) > 1 and units[0] else "")
        return " ".join(units)

    def contains(self, points: ArrayLike) -> Mask:
        """Say which points lie in the domain, its edge included.

        Parameters
        ----------
        points : (n, d) array

        Returns
        -------
        (n,) bool array
        """
        x = np.atleast_2d(np.asarray(points, dtype=float))
        slack = 1e-9 * self.extent  # a coordinate that went through text and back still counts
        inside: Mask = np.all((x >= self.low - slack) & (x <= self.high + slack), axis=1)
        if self.region is not None:
            near = float(1e-9 * self.extent.max())
            inside &= shapely.dwithin(shapely.points(x), self.region, near)
        return inside

    def nearest(self, point: ArrayLike) -> int:
        """Return the index of the site nearest to `point` (d,), distances in shares of the axes' lengths."""
        gap = self._shares - (np.asarray(point, dtype=float) / self.extent)[:, None]
        return int(np.argmin(np.einsum("dn,dn->n", gap, gap)))

    @cached_property
    def _shares(self) -> Array:
        """Sites (d, N) in shares of the axes' lengths."""
        return frozen_array((self.sites / self.extent).T)

    def on_grid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values (N,) of the sites laid out on the grid; NaN (-1 for whole numbers) between.

        Raises
        ------
        InputError
            The domain is no grid.

        Examples
        --------
        >>> Domain.grid([Axis("x", "m", 0, 1), Axis("y", "m", 0, 1)], (2, 2)).on_grid(np.arange(4.0))
        array([[0., 1.],
               [2., 3.]])
        """
        if self.shape is None:
            raise InputError("a domain of scattered sites", expected="a grid")
        outside = -1 if np.issubdtype(values.dtype, np.integer) else np.nan
        grid = np.full(int(np.prod(self.shape)), outside, dtype=values.dtype)
        grid[self.grid_index] = values
        return grid.reshape(self.shape)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return `n` sites drawn at random, (n, d), each at most once where there are enough."""
        return self.sites[rng.choice(self.size, size=n, replace=n > self.size)]
