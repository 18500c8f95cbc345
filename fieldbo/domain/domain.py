"""Where samples can be taken: named axes, candidate sites, and the region that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask, frozen_array
from fieldbo._numerics.streams import sobol
from fieldbo.domain.axes import Axis, is_depth
from fieldbo.domain.controls import Controls, ControlSet, Distribution
from fieldbo.domain.free_space import Bottom, FreeSpace, with_clearance
from fieldbo.domain.georeference import Georeference
from fieldbo.domain.obstacles import Obstacle, Region
from fieldbo.errors import InputError, counted

MOST_PAIRS = 20_000
"""Number of sites up to which a matrix over all pairs fits in memory (3.2 GB)."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Candidate sites on named axes.

    Make one with `Domain.grid`, `Domain.box` or `fieldbo.domain.lattice.lattice`.

    Parameters
    ----------
    axes : sequence of Axis
        d axes, in the order of the sites' coordinates.
    sites : (N, d) array
        Where samples can be taken, in the axes' units.
    shape : tuple of int, optional
        Node counts along each axis, if the sites come from a grid (before the region was cut out).
    grid_index : (N,) int array, optional
        Flat index of each site in that grid; by default, all nodes in order.
    region : shapely.Polygon or shapely.MultiPolygon, optional
        Where samples can be taken and vehicles move, over two axes and with obstacles cut out; None means
        the whole box. With a third axis, a depth, it is the same at every depth.
    continuous : bool
        Whether samples can be taken anywhere between the axes' ends; the sites then only represent them.
    obstacles : sequence of Obstacle
        Boxes or, over two axes, polygons, with their clearance.
    outline : shapely.Polygon or shapely.MultiPolygon, optional
        The outline and its holes, without the clearance; None means the box between the axes' ends.
    clearance : float
        Distance to the outline and to the obstacles that `region` and `obstacles` already keep.
    solid : sequence of Obstacle
        The obstacles without the clearance, in the same order.
    dropped : int
        Number of sites that `restricted` has removed.
    controls : Controls, optional
        The control sets, and the distributions of variables left free; None means that every query sets
        all variables.
    crs : str, optional
        Coordinate reference system of the horizontal axes, for example ``"EPSG:32632"``.
    pitch : float, optional
        Distance between neighbouring sites that come from a lattice without a grid.
    bottom : Bottom, optional
        The bottom of the water, in which a third axis, a depth, ends.
    source : str
        What outline and obstacles were read from, for people.

    Raises
    ------
    InputError
        There are no sites, shapes don't match, a site lies outside the domain, or the control sets don't
        fit the axes.

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
    region: Region | None = field(default=None, repr=False)
    continuous: bool = False
    obstacles: tuple[Obstacle, ...] = ()
    outline: Region | None = field(default=None, repr=False)
    clearance: float = 0.0
    solid: tuple[Obstacle, ...] = field(default=(), repr=False)
    dropped: int = 0
    controls: Controls | None = None
    crs: str | None = None
    pitch: float | None = None
    bottom: Bottom | None = field(default=None, repr=False)
    source: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))
        if self.controls is not None:
            self.controls.check(self.axes)
        if self.crs is not None:
            Georeference.over(self.axes, self.crs)
        object.__setattr__(self, "obstacles", tuple(self.obstacles))
        object.__setattr__(self, "solid", tuple(self.solid) or self.obstacles)
        if self.obstacles and self.region is None:
            object.__setattr__(self, "region", FreeSpace.on(self.axes, self.obstacles).region)
        object.__setattr__(self, "sites", frozen_array(np.atleast_2d(self.sites)))
        if self.sites.size == 0:
            raise InputError(
                "the domain has no sites",
                expected="at least one candidate site",
                fix="enlarge the region or refine the grid"
                + (", make obstacles smaller, or lower the clearance" if self.obstacles else "")
                + (", or lower the clearance" if self.clearance and not self.obstacles else ""),
            )
        if self.sites.shape[1] != len(self.axes):
            raise InputError(
                f"each site has {counted(self.sites.shape[1], 'coordinate')}",
                expected=f"{len(self.axes)}, one per axis",
            )
        if self.shape is not None and self.grid_index is None:
            object.__setattr__(self, "grid_index", frozen_array(np.arange(self.size), int))
        outside = ~self.contains(self.sites)
        if outside.any():
            raise InputError(
                f"{int(outside.sum())} of {self.size} sites lie outside the domain; the first is "
                f"{self.sites[np.argmax(outside)].tolist()}",
                expected="sites within the axes' ends and the region",
            )

    @classmethod
    def grid(
        cls,
        axes: Sequence[Axis],
        shape: Sequence[int],
        region: Region | None = None,
        obstacles: Sequence[Obstacle] = (),
        clearance: float = 0.0,
        crs: str | None = None,
    ) -> Self:
        """Return a domain with sites at the nodes of a regular grid; the last axis varies fastest.

        Parameters
        ----------
        axes : sequence of d Axis
        shape : sequence of d int
            Number of nodes along each axis, ends included.
        region : shapely.Polygon, optional
            The outline, which may have holes; only nodes inside it and as far as the clearance from its edge
            become sites (two axes only).
        obstacles : sequence of Obstacle
            Nodes strictly inside one are removed.
        clearance : float
            Distance to keep from obstacles and from the outline, but not from the ends of the axes.
        crs : str, optional
            Coordinate reference system of the horizontal axes.

        Examples
        --------
        >>> axes = [Axis("x", "m", 0, 4), Axis("y", "m", 0, 2)]
        >>> Domain.grid(axes, (5, 3), obstacles=[Obstacle("pillar", (0.5, 0.5), (2.5, 1.5))]).size
        13
        """
        if len(shape) != len(axes) or min(shape) < 1:
            raise InputError(
                f"{tuple(shape)} are not valid grid counts", expected=f"{len(axes)} counts of at least 1"
            )
        ticks = [np.linspace(a.low, a.high, n) for a, n in zip(axes, shape, strict=True)]
        nodes = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, len(axes))
        if region is not None and len(axes) != 2:
            raise InputError(f"an outline needs two axes, not {len(axes)}", expected="two axes")
        grown = with_clearance(axes, obstacles, clearance)
        space = FreeSpace.on(axes, grown, region, clearance)
        index = np.flatnonzero(space.contains(nodes))
        return cls(
            tuple(axes),
            nodes[index],
            tuple(shape),
            frozen_array(index, int),
            space.region,
            obstacles=grown,
            outline=region,
            clearance=clearance,
            solid=tuple(obstacles),
            crs=crs,
        )

    @classmethod
    def box(
        cls,
        axes: Sequence[Axis],
        representers: int = 1000,
        obstacles: Sequence[Obstacle] = (),
        clearance: float = 0.0,
        controls: Controls | None = None,
    ) -> Self:
        """Return a continuous domain: the box between the axes' ends, represented by quasi-random sites.

        Parameters
        ----------
        axes : sequence of d Axis
        representers : int
            Number of quasi-random (Sobol) points that become the sites.
        obstacles : sequence of Obstacle
            Points strictly inside one are removed.
        clearance : float
            Distance to keep from obstacles.
        controls : Controls, optional
            The sets of variables that can be controlled together.

        Examples
        --------
        >>> Domain.box([Axis("x", "m", 0, 2), Axis("y", "m", 0, 1)], 64).sites.mean(axis=0).round(2)
        array([1. , 0.5])
        """
        if representers < 1:
            raise InputError(f"representers = {representers}", expected="at least 1")
        grown = with_clearance(axes, obstacles, clearance)
        space = FreeSpace.on(axes, grown)
        power = int(np.ceil(np.log2(representers)))  # Sobol points are balanced in powers of two
        points = sobol(len(axes), np.random.default_rng(0)).random(1 << power)[:representers]
        sites = space.low + points * (space.high - space.low)
        sites = sites[space.contains(sites)]
        return cls(
            tuple(axes),
            sites,
            region=space.region,
            continuous=True,
            obstacles=grown,
            clearance=clearance,
            solid=tuple(obstacles),
            controls=controls,
        )

    def check_length_scales(self, length_scales: Sequence[float], where: str) -> None:
        """Raise an `InputError` at `where` unless there is one length scale per axis."""
        if len(length_scales) != self.dimension:
            raise InputError(
                f"{counted(len(length_scales), 'length scale')} "
                f"for {counted(self.dimension, 'axis', 'axes')}",
                expected=f"{self.dimension}, for {', '.join(axis.name for axis in self.axes)}",
                where=where,
            )

    def check_pairs(self, what: str) -> None:
        """Raise an `InputError`, which names `what`, if a matrix over all pairs of sites is too large."""
        if self.size > MOST_PAIRS:
            raise InputError(
                f"{what} on {self.size} sites needs {8e-9 * self.size**2:,.0f} GB",
                expected=f"at most {MOST_PAIRS} sites",
                where="domain.axes",
                fix="lower the counts of the axes, or use a field without a full covariance "
                "matrix, such as gp-mean",
            )

    @property
    def control_sets(self) -> tuple[ControlSet, ...]:
        """The sets of variables that can be controlled together; empty if queries always set all."""
        return () if self.controls is None else self.controls.sets

    @property
    def control_masks(self) -> tuple[Mask | None, ...]:
        """The controlled variables (d,) of each control set; just None if queries always set all."""
        return tuple(control_set.controls for control_set in self.control_sets) or (None,)

    @property
    def distributions(self) -> tuple[Distribution | None, ...]:
        """The distribution of each of the d variables when it is left free; None if it never is."""
        return (None,) * self.dimension if self.controls is None else self.controls.distributions

    def expected(self, site: Array) -> Array:
        """Return a site (d,) with each free variable (NaN) replaced by the median of its distribution."""
        free = np.isnan(site)
        if not free.any():
            return site
        medians = [
            m if distribution is None else distribution.quantile(0.5)
            for m, distribution in zip(self.middle, self.distributions, strict=True)
        ]
        return np.where(free, np.array(medians, dtype=float), site)

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
    def middle(self) -> Array:
        """(d,) middle of the axes; if that is not free, the site nearest to it."""
        middle: Array = (self.low + self.high) / 2.0
        return middle if self.contains(middle)[0] else self.sites[self.nearest(middle)]

    @property
    def extent(self) -> Array:
        """(d,) lengths of the axes."""
        return self.high - self.low

    @property
    def spacing(self) -> Array:
        """(d,) distances between neighbouring sites of a grid or lattice; infinite for a box.

        Examples
        --------
        >>> Domain.grid([Axis("x", "m", 0, 4), Axis("y", "m", 0, 2)], (5, 3)).spacing
        array([1., 1.])
        """
        if self.shape is None:
            spacing = np.full(self.dimension, np.inf if self.pitch is None else self.pitch)
            if self.has_depth and self.pitch is not None:
                spacing[-1] = np.diff(np.unique(self.sites[:, -1]), append=np.inf).min()
            return spacing
        gaps = np.array(self.shape) - 1
        return np.where(gaps > 0, self.extent / np.maximum(gaps, 1), np.inf)

    @cached_property
    def georeference(self) -> Georeference | None:
        """Where the horizontal axes lie on the Earth; None without a CRS."""
        return None if self.crs is None else Georeference.over(self.axes, self.crs)

    @cached_property
    def cell_size(self) -> float:
        """Mean length, area or volume of the domain per site, in the product of the axes' units.

        Examples
        --------
        >>> Domain.grid([Axis("x", "m", 0, 4), Axis("y", "m", 0, 2)], (5, 3)).cell_size
        0.5333333333333333
        """
        return self._space.measure / self.size

    @cached_property
    def cells(self) -> Array:
        """Length, area or volume (N,) that each site represents, in the product of the axes' units.

        The cell of a node at the edge of a grid lies half outside the domain; only the rest counts. All cells
        are scaled by the same factor, so that they sum to the free space inside outline and obstacles.

        Examples
        --------
        >>> Domain.grid([Axis("x", "m", 0, 4)], (5,)).cells.tolist()
        [0.5, 1.0, 1.0, 1.0, 0.5]
        """
        if self.shape is None or self.grid_index is None:
            return frozen_array(np.full(self.size, self.cell_size))
        cells = np.ones(self.size)
        nodes = np.unravel_index(self.grid_index, self.shape)
        for node, count, extent in zip(nodes, self.shape, self.extent, strict=True):
            at_end = (node == 0) | (node == count - 1)
            cells *= extent if count == 1 else extent / (count - 1) * np.where(at_end, 0.5, 1.0)
        return frozen_array(cells * (self._space.measure / cells.sum()))

    @property
    def cell_unit(self) -> str:
        """Unit of `cells`: m, m2, or the axes' units separated by blanks."""
        units = [a.unit for a in self.axes]
        if len(set(units)) == 1:
            return units[0] + (str(len(units)) if len(units) > 1 and units[0] else "")
        return " ".join(units)

    def contains(self, points: ArrayLike) -> Mask:
        """Return a mask (n,) of the points (n, d) that lie in the domain, its edge included."""
        return self._space.contains(points)

    def beyond(self, points: ArrayLike) -> Mask:
        """Return a mask (n, d) of the coordinates of points (n, d) that lie beyond the ends of their axes.

        Like `contains`, it tolerates rounding: a billionth of each axis' length.

        Examples
        --------
        >>> Domain.box([Axis("x", "m", 0, 2), Axis("y", "m", 0, 1)], 8).beyond([[2.0 + 1e-12, 1.1]])
        array([[False,  True]])
        """
        return self._space.beyond(points)

    def around(self, points: ArrayLike, fraction: float) -> Mask:
        """Return a mask (n,) of the points (n, d) in the domain's box, enlarged by a fraction of its extent.

        Where all axes have one unit, the extent is that of the longest axis. NaN and infinity are outside.

        Examples
        --------
        >>> river = Domain.box([Axis("x", "m", 0, 100), Axis("y", "m", 0, 2)], 8)
        >>> river.around([[104.0, -3.0], [110.0, 1.0]], 0.05)
        array([ True, False])
        """
        x = np.atleast_2d(np.asarray(points, dtype=float))
        alike = len({axis.unit for axis in self.axes}) == 1
        reach = fraction * (self.extent.max() if alike else np.where(self.extent > 0.0, self.extent, np.inf))
        return np.asarray(((x >= self.low - reach) & (x <= self.high + reach)).all(axis=1))

    def clipped(self, points: Array) -> Array:
        """Return points (n, d) or a point (d,), clipped to the ends of the axes."""
        return np.clip(points, self.low, self.high)

    @cached_property
    def _space(self) -> FreeSpace:
        in_boxes = self.obstacles if self.region is None else ()  # a region has them cut out already
        return FreeSpace.around(in_boxes, self.low, self.high, self.region, bottom=self.bottom)

    @property
    def has_depth(self) -> bool:
        """Whether the last of several axes is a depth."""
        return self.dimension > 1 and is_depth(self.axes[-1].name)

    @cached_property
    def flat(self) -> Domain:
        """The domain seen from above, without its last axis, if that is a depth; else the domain itself.

        Obstacles that are boxes over all axes are left out.
        """
        if not self.has_depth:
            return self
        k = self.dimension - 1
        _, first = np.unique(self.sites[:, :k], axis=0, return_index=True)
        sites = self.sites[np.sort(first), :k]
        shape, index = self._flat_grid(sites)
        return Domain(
            self.axes[:k],
            sites,
            shape,
            index,
            region=self.region if k == 2 else None,
            obstacles=tuple(o for o in self.obstacles if o.dimension == k),
            outline=self.outline if k == 2 else None,
            clearance=self.clearance,
            solid=tuple(o for o in self.solid if o.dimension == k),
            crs=self.crs,
            pitch=self.pitch if shape is None else None,
            bottom=self.bottom,
        )

    def _flat_grid(self, sites: Array) -> tuple[tuple[int, ...] | None, NDArray[np.int64] | None]:
        """Return the shape and the index of `sites` seen from above, if they lie on a grid."""
        k = self.dimension - 1
        if self.shape is not None and self.grid_index is not None:
            return self.shape[:k], frozen_array(np.unique(self.grid_index // self.shape[k]), int)
        if self.pitch is None:
            return None, None
        steps = (sites - self.low[:k]) / self.pitch
        if not np.allclose(steps, np.rint(steps), atol=1e-6):
            return None, None
        shape = tuple((np.rint(self.extent[:k] / self.pitch).astype(int) + 1).tolist())
        return shape, frozen_array(np.ravel_multi_index(tuple(np.rint(steps).astype(int).T), shape), int)

    @property
    def clear(self) -> bool:
        """Whether every straight leg between two points of the domain stays inside it."""
        return self._space.convex

    def obstacle_at(self, point: ArrayLike) -> Obstacle | None:
        """Return the obstacle that `point` (d,) lies strictly inside; None if there is none."""
        return next((o for o in self.obstacles if o.holds(point)[0]), None)

    def restricted(self, mask: Mask) -> Self:
        """Return the domain with the sites of a mask (N,), and the parts of its region that hold them.

        `cell_size` and the cells of the sites stay the same.

        Examples
        --------
        >>> line = Domain.grid([Axis("x", "m", 0, 4)], (5,))
        >>> line.restricted(line.sites[:, 0] > 1).sites.ravel().tolist()
        [2.0, 3.0, 4.0]
        """
        sites = self.sites[mask]
        region = self.region
        if isinstance(region, shapely.MultiPolygon):
            parts = [p for p in region.geoms if FreeSpace(self.low, self.high, p).contains(sites).any()]
            region = parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
        other = replace(
            self,
            sites=sites,
            grid_index=None if self.grid_index is None else frozen_array(self.grid_index[mask], int),
            region=region,
            dropped=self.dropped + self.size - len(sites),
        )
        other.__dict__.update(cell_size=self.cell_size, cells=frozen_array(self.cells[mask]))
        return other

    def without(self, areas: Sequence[Obstacle]) -> Self:
        """Return what is left of the domain outside of some areas and their clearance.

        Parameters
        ----------
        areas : sequence of Obstacle

        Raises
        ------
        InputError
            An area does not fit the domain, or lies outside of it, or no site is left.

        Examples
        --------
        >>> line = Domain.grid([Axis("x", "m", 0, 4), Axis("y", "m", 0, 2)], (5, 3))
        >>> line.without([Obstacle("swimmers", (-1, -1), (1.5, 3))]).sites[:, 0].min()
        np.float64(2.0)
        """
        if not areas:
            return self
        grown = with_clearance(self.axes, areas, self.clearance)
        in_boxes = () if self.region is not None else self.obstacles
        space = FreeSpace.around((*in_boxes, *grown), self.low, self.high, self.region, bottom=self.bottom)
        inside = space.contains(self.sites)
        if not inside.any():
            raise InputError("no site is left", expected="areas that leave at least one site", where="areas")
        return replace(
            self.restricted(inside),
            region=space.region,
            obstacles=(*self.obstacles, *grown),
            solid=(*self.solid, *areas),
        )

    def nearest(self, point: ArrayLike) -> int:
        """Return the index of the site nearest to `point` (d,), with axes scaled by their lengths."""
        gap = self._scaled_sites - (np.asarray(point, dtype=float) / self.extent)[:, None]
        return int(np.argmin(np.einsum("dn,dn->n", gap, gap)))

    @cached_property
    def _scaled_sites(self) -> Array:
        """Sites (d, N), each coordinate divided by the axis' length."""
        return frozen_array((self.sites / self.extent).T)

    def on_grid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values (N,) of the sites arranged on the grid; NaN (-1 for integers) elsewhere.

        Raises
        ------
        InputError
            The domain is not a grid.

        Examples
        --------
        >>> Domain.grid([Axis("x", "m", 0, 1), Axis("y", "m", 0, 1)], (2, 2)).on_grid(np.arange(4.0))
        array([[0., 1.],
               [2., 3.]])
        """
        if self.shape is None:
            raise InputError("the domain is not a grid", expected="a domain made by Domain.grid")
        outside = -1 if np.issubdtype(values.dtype, np.integer) else np.nan
        grid = np.full(int(np.prod(self.shape)), outside, dtype=values.dtype)
        grid[self.grid_index] = values
        return grid.reshape(self.shape)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return `n` sites (n, d) drawn at random, without repetition if there are enough."""
        return self.sites[rng.choice(self.size, size=n, replace=n > self.size)]
