"""A pipeline that finds cells in micrographs: denoise, segment, clean, one stage after the other.

Each stage has its own settings and works on the output of the one before:

1. *Denoise.* Brightness is transformed so that its noise has a standard deviation of about 1 everywhere
   (Anscombe's root, ``2 sqrt(counts + 3/8 + v)``, where the camera's own noise has variance ``v`` in counts).
   Then each pixel becomes a mean of the surrounding pixels in similar patches (non-local means: Buades, Coll
   and Morel 2005, *A non-local algorithm for image denoising*, section 3).
2. *Segment.* A pixel is bright if it exceeds a Gaussian mean around it by an offset. The bright part is cut
   along the watersheds between the peaks of the distance to its edge; each peak is the middle of an object.
3. *Clean.* An opening removes what is thinner than a disk; objects that are small after that are dropped.

The value is the F1 score of the remaining objects (`f1`).

The pipeline caches the output of each stage for the settings it last ran with. So a sample that changes only
the last stage's settings runs only the last stage, which runs for every sample. Each sample reports how many
seconds the stages that ran took. Looking up a value for a score has no influence on the cache or the costs.

The micrographs are synthetic, so that their cells are known. A picture is made as
follows; the same draw always gives the same pictures:

1. Cells are ellipses with half axes of 6 to 12 pixels. A third lie anywhere, the others next to an existing
   one, so that they touch. Where two overlap slightly, a pixel belongs to the cell whose middle is nearer,
   relative to the half axes. Each cell has its own brightness and fades towards its rim.
2. Distractors are nearly as bright: small round debris, and thin winding fibres.
3. The lens blurs everything. A glow lies underneath, brighter to one side and in broad patches.
4. The camera counts photons (Poisson) and adds its own noise (normal).

Brightness is relative to the brightest cell. The score, `f1`, goes by objects: it shows whether touching
cells were separated, which a score by pixels would hardly do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pydantic
from numpy.typing import NDArray
from scipy import ndimage
from scipy.ndimage import gaussian_filter

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.streams import stream
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.tables.readings import read_readings
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind, check_axes, inside

Labels = NDArray[np.int32]
"""Number of the object that each pixel belongs to, from 1; 0 is background."""

PHOTONS = 15.0
"""Mean photon count of a pixel of brightness 1."""
READ_SD = 0.08
"""Standard deviation of the camera's own noise, in brightness."""
OVERLAPS = (0.5, 0.6, 0.7)
"""Least overlaps of a matching pair; F1 is the mean over them."""

_PIXELS_A_CELL = 1300  # picture area per cell
_PIXELS_A_DEBRIS = 2500
_PIXELS_A_FIBRE = 6000
_LENS = 1.2  # standard deviation of the blur, in pixels
_SHARED = 0.1  # largest fraction of a new cell's pixels that may belong to another
_TRIES = 100  # per cell, on average
_EDGE = 6.0  # least distance of a cell's middle from the picture's edge


@dataclass(frozen=True, eq=False)
class Micrograph:
    """A picture and its true cells.

    Attributes
    ----------
    light : (h, w) array
        Observed brightness.
    cells : (h, w) int array
        The true cells.
    """

    light: Array
    cells: Labels


def micrographs(draw: int, count: int, size: int) -> tuple[Micrograph, ...]:
    """Return the pictures of a draw.

    Parameters
    ----------
    draw : int
    count : int
        Number of pictures; they differ.
    size : int
        Pixels along a side.

    Examples
    --------
    >>> first, second = micrographs(draw=0, count=2, size=128)
    >>> first.light.shape, int(first.cells.max())
    ((128, 128), 13)
    >>> bool((first.light == second.light).any())
    False
    """
    return tuple(_micrograph(stream(draw, "field", k), size) for k in range(count))


def _micrograph(rng: np.random.Generator, size: int) -> Micrograph:
    scene, cells = np.zeros((size, size)), np.zeros((size, size), np.int32)
    _add_cells(rng, scene, cells)
    _add_debris(rng, scene)
    _add_fibres(rng, scene)
    true = np.maximum(gaussian_filter(scene, _LENS) + _glow(rng, size), 0.02)
    light = rng.poisson(PHOTONS * true) / PHOTONS + READ_SD * rng.standard_normal(true.shape)
    return Micrograph(frozen_array(light), cells)


def _add_cells(rng: np.random.Generator, scene: Array, cells: Labels) -> None:
    """Draw cells into a scene (h, w), and their numbers into `cells` (h, w)."""
    size, wanted = len(scene), max(1, round(scene.size / _PIXELS_A_CELL))
    nearest = np.full(scene.shape, np.inf)  # in half axes, from the middle of a pixel's cell
    placed: list[tuple[Array, float]] = []
    for _ in range(_TRIES * wanted):
        long = rng.uniform(7.0, 12.0)
        halves = np.array([long, max(6.0, long * rng.uniform(0.65, 1.0))])
        reach, turn, bright = float(np.sqrt(np.prod(halves))), rng.uniform(0, np.pi), rng.uniform(0.5, 1.0)
        middle = rng.uniform(_EDGE, size - _EDGE, 2)
        if placed and rng.uniform() < 0.65:
            neighbour, its_reach = placed[rng.integers(len(placed))]
            angle, gap = rng.uniform(0, 2 * np.pi), (its_reach + reach) * rng.uniform(0.9, 1.02)
            middle = neighbour + gap * np.array([np.cos(angle), np.sin(angle)])
        if (np.abs(middle - size / 2) > size / 2 - _EDGE).any():
            continue
        here, away = _around(middle, long, size)
        along = away[0] * np.cos(turn) + away[1] * np.sin(turn)
        across = away[1] * np.cos(turn) - away[0] * np.sin(turn)
        far = np.hypot(along / halves[0], across / halves[1])
        inside = far < 1.0
        if (inside & (cells[here] > 0)).sum() > _SHARED * inside.sum():
            continue
        placed.append((middle, reach))
        mine = inside & (far < nearest[here])
        nearest[here][mine], cells[here][mine] = far[mine], len(placed)
        _brighten(scene, here, np.where(inside, bright * (1.0 - 0.35 * far**2), 0.0))
        if len(placed) == wanted:
            return


def _add_debris(rng: np.random.Generator, scene: Array) -> None:
    size = len(scene)
    for _ in range(round(scene.size / _PIXELS_A_DEBRIS)):
        radius, bright = rng.uniform(1.5, 4.5), rng.uniform(0.5, 1.0)
        here, away = _around(rng.uniform(_EDGE, size - _EDGE, 2), radius, size)
        _brighten(scene, here, np.where(np.hypot(*away) < radius, bright, 0.0))


def _add_fibres(rng: np.random.Generator, scene: Array) -> None:
    size = len(scene)
    for _ in range(max(1, round(scene.size / _PIXELS_A_FIBRE))):
        at, heading = rng.uniform(0, size, 2), rng.uniform(0, 2 * np.pi)
        half, bright = rng.uniform(1.2, 2.4), rng.uniform(0.4, 0.8)
        for turn in 0.06 * rng.standard_normal(int(rng.uniform(40, 110))):
            heading += turn
            at += np.array([np.cos(heading), np.sin(heading)])
            if (np.abs(at - size / 2) > size / 2).any():
                break
            here, away = _around(at, half, size)
            _brighten(scene, here, np.where(np.hypot(*away) < half, bright, 0.0))


def _around(middle: Array, reach: float, size: int) -> tuple[tuple[slice, slice], Array]:
    """Return the part of a picture around `middle` (2,), and its pixels' offsets from there, (2, a, b)."""
    low = np.maximum(np.floor(middle - reach), 0).astype(int)
    high = np.minimum(np.ceil(middle + reach) + 1, size).astype(int)
    here = slice(int(low[0]), int(high[0])), slice(int(low[1]), int(high[1]))
    return here, np.mgrid[here] - middle[:, None, None]


def _brighten(scene: Array, here: tuple[slice, slice], light: Array) -> None:
    """Brighten a part of a scene where it is darker than `light`."""
    scene[here] = np.maximum(scene[here], light)


def _glow(rng: np.random.Generator, size: int) -> Array:
    """Return the background glow, (size, size), 0.3 to 1.1."""
    angle, at = rng.uniform(0, 2 * np.pi), np.mgrid[:size, :size] / size - 0.5
    slope = at[0] * np.cos(angle) + at[1] * np.sin(angle)
    patches = gaussian_filter(rng.standard_normal((size, size)), size / 8, mode="wrap")
    return np.asarray(0.7 + 0.28 * slope + 0.2 * patches / np.abs(patches).max())


def f1(segmented: Sequence[Labels], true: Sequence[Labels]) -> float:
    """Return the F1 score of segmented objects, over all pictures together, 0 to 1.

    The overlap of an object with a cell is the intersection of their pixels over the union; if it exceeds a
    half, neither matches another. F1 is ``2 p / (f + t)`` with ``p`` matching pairs among ``f`` objects and
    ``t`` true cells. A higher least overlap requires more accurate outlines: the score is the mean over
    `OVERLAPS`.

    Parameters
    ----------
    segmented, true : sequences of (h, w) int arrays
        Objects and cells of each picture. Numbers need not be contiguous.

    Examples
    --------
    >>> two = np.array([[1, 1, 0, 2, 2]], dtype=np.int32)
    >>> one_wrong = np.array([[0, 0, 3, 4, 4]], dtype=np.int32)
    >>> f1([two], [two]), f1([one_wrong], [two])
    (1.0, 0.5)
    """
    pairs, objects = np.zeros(len(OVERLAPS)), 0
    for ours, theirs in zip(segmented, true, strict=True):
        n, m = int(ours.max()) + 1, int(theirs.max()) + 1
        common = np.bincount(ours.ravel().astype(np.int64) * m + theirs.ravel(), minlength=n * m).reshape(
            n, m
        )
        areas = common.sum(axis=1)[:, None], common.sum(axis=0)[None, :]
        overlap = (common / np.maximum(areas[0] + areas[1] - common, 1))[1:, 1:]
        pairs += [(overlap > least).sum() for least in OVERLAPS]
        objects += sum(int((area.ravel()[1:] > 0).sum()) for area in areas)
    return float(np.mean(2.0 * pairs / objects)) if objects else 0.0


VALUE = "f1"
_SEARCH = 8  # search distance of non-local means, in pixels
_CACHED = 8  # number of cached states, one per vehicle


class Denoise(NamedTuple):
    """Settings of the first stage.

    Attributes
    ----------
    strength : float
        Tolerated difference of patches, in standard deviations of the noise.
    reach : int
        A patch is a square of ``2 reach + 1`` pixels.
    """

    strength: float
    reach: int


class Segment(NamedTuple):
    """Settings of the second stage.

    Attributes
    ----------
    window : float
        Standard deviation of the Gaussian mean, in pixels.
    offset : float
        Offset above the mean, in standard deviations of the noise.
    spacing : int
        Least distance between the middles of two cells, in pixels.
    """

    window: float
    offset: float
    spacing: int


class Clean(NamedTuple):
    """Settings of the third stage.

    Attributes
    ----------
    opening : int
        Radius of the disk, in pixels.
    area : int
        Area of the smallest cell, in pixels.
    """

    opening: int
    area: int


class Settings(NamedTuple):
    """The settings of each stage."""

    denoise: Denoise
    segment: Segment
    clean: Clean

    @classmethod
    def at(cls, site: Array) -> Self:
        """Return the settings at a site (7,), with patch sizes, spacings, radii and areas in whole pixels.

        Examples
        --------
        >>> Settings.at(np.array([1.2, 7.4, 12.0, 0.1, 4.8, 2.2, 80.3])).clean
        Clean(opening=2, area=80)
        """
        strength, patch, window, offset, spacing, opening, area = (float(x) for x in site)
        # rounded so that settings survive being written as text
        return cls(
            Denoise(round(strength, 9), max(0, round((patch - 1.0) / 2.0))),
            Segment(round(window, 9), round(offset, 9), max(1, round(spacing))),
            Clean(round(opening), round(area)),
        )


STAGES = Settings._fields
LEAST = {
    "strength": 1e-3,
    "patch": 1.0,
    "window": 0.5,
    "offset": -np.inf,
    "spacing": 1.0,
    "opening": 0.0,
    "area": 0.0,
}
"""Least value of each axis."""


# -- the stages ------------------------------------------------------------------------------------------


def denoised(light: Array, settings: Denoise) -> Array:
    """Return a denoised picture (h, w), on a scale where the noise had a standard deviation of 1."""
    from skimage.restoration import denoise_nl_means

    counts = np.maximum(PHOTONS * light + 0.375 + (PHOTONS * READ_SD) ** 2, 0.0)
    clean = denoise_nl_means(
        2.0 * np.sqrt(counts),
        patch_size=2 * settings.reach + 1,
        patch_distance=_SEARCH,
        h=settings.strength,
        fast_mode=True,
    )
    return np.asarray(clean, dtype=float)


def segmented(bright: Array, settings: Segment) -> Labels:
    """Return the objects of a picture (h, w)."""
    from skimage.segmentation import watershed

    mask = bright > ndimage.gaussian_filter(bright, settings.window) + settings.offset
    depth = ndimage.distance_transform_edt(mask)
    peaks = mask & (depth == ndimage.maximum_filter(depth, 2 * settings.spacing + 1))
    middles = ndimage.label(peaks, np.ones((3, 3)))[0]
    cut = watershed(-depth, middles, mask=mask)  # type: ignore[no-untyped-call]
    return np.asarray(cut, dtype=np.int32)


def cleaned(objects: Labels, settings: Clean) -> Labels:
    """Return the objects (h, w) that may be cells."""
    left = objects
    if settings.opening:
        disk = np.hypot(
            *np.mgrid[-settings.opening : settings.opening + 1, -settings.opening : settings.opening + 1]
        )
        left = np.where(ndimage.binary_opening(objects > 0, disk <= settings.opening), objects, 0)
    areas = np.bincount(left.ravel(), minlength=int(objects.max()) + 1)
    return np.where(areas[left] >= settings.area, left, 0).astype(np.int32)


class State(NamedTuple):
    """Outputs of the stages for the last settings.

    Attributes
    ----------
    settings : Settings
        The settings.
    made : tuple of K lists
        Output of each stage for each picture.
    """

    settings: Settings
    made: tuple[list[Any], ...]


def worked(
    pictures: Sequence[Micrograph], settings: Settings, before: State | None = None
) -> tuple[State, Array]:
    """Run the stages from the first whose settings changed, and the last in any case.

    Parameters
    ----------
    pictures : sequence of Micrograph
    settings : Settings
    before : State, optional
        Outputs for earlier settings; without them all stages run.

    Returns
    -------
    State
        Outputs for the present settings.
    (3,) array
        Seconds that each stage took; NaN if it did not run.
    """
    # import before the clock starts
    from skimage.restoration import denoise_nl_means  # noqa: F401
    from skimage.segmentation import watershed  # noqa: F401

    made: list[list[Any]] = (
        [] if before is None else list(before.made[: _unchanged(before.settings, settings)])
    )
    took_s = np.full(len(STAGES), np.nan)
    for k in range(len(made), len(STAGES)):
        start_s, inputs = perf_counter(), made[-1] if made else [p.light for p in pictures]
        made.append([_WORK[k](each, settings[k]) for each in inputs])
        took_s[k] = perf_counter() - start_s
    return State(settings, tuple(made)), took_s


_WORK: tuple[Callable[[Any, Any], Any], ...] = (denoised, segmented, cleaned)


def _unchanged(before: Settings, now: Settings) -> int:
    """Return the number of stages, from the first and without the last, whose settings are unchanged."""
    changed = [a != b for a, b in zip(before, now, strict=True)]
    return changed[:-1].index(True) if any(changed[:-1]) else len(changed) - 1


# -- the field -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pipeline(Field):
    """The F1 score over the settings of the stages: looked up where known, otherwise computed.

    Attributes
    ----------
    draw, images, size : int
        Number of the draw, number of pictures, and pixels along each side.
    known : dict of Settings to float
        Known scores; computed ones are added.
    best : (7,) array or None
        The best settings in the table.
    """

    draw: int
    images: int
    size: int
    known: dict[Settings, float] = field(default_factory=dict, repr=False)
    best: Array | None = None
    _at_hand: OrderedDict[Settings, State] = field(default_factory=OrderedDict, repr=False)

    measured: ClassVar[tuple[str, ...]] = (*(f"{stage}_s" for stage in STAGES), "stages_run")

    @cached_property
    def pictures(self) -> tuple[Micrograph, ...]:
        """The micrographs with their true cells, drawn on first use."""
        return micrographs(self.draw, self.images, self.size)

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the scores (N,) at `sites` (N, 7); runs all stages where a score is not known."""
        wanted = [Settings.at(site) for site in sites]
        for each in wanted:
            if each not in self.known:
                self.known[each] = self._score(worked(self.pictures, each)[0])
        return np.array([self.known[each] for each in wanted])

    def sampled(self, site: Array, position: Array, time_s: float = 0.0) -> tuple[Array, dict[str, Array]]:
        """Run the pipeline at `site` (7,), starting from the outputs for the settings at `position` (7,).

        If there are none, as at the start, all stages run.

        Returns
        -------
        (1,) array
            The score.
        dict of str to (1,) array
            ``denoise_s``, ``segment_s`` and ``clean_s``: measured seconds of each stage, 0 if it did not run;
            ``stages_run``: number of stages that ran.
        """
        before = self._at_hand.pop(Settings.at(position), None)
        state, took_s = worked(self.pictures, Settings.at(site), before)
        self._at_hand[state.settings] = state
        if len(self._at_hand) > _CACHED:
            self._at_hand.popitem(last=False)
        value = self.known.setdefault(state.settings, self._score(state))
        numbers = [*np.nan_to_num(took_s), np.isfinite(took_s).sum()]
        channels = zip(self.measured, numbers, strict=True)
        return np.array([value]), {name: np.array([float(x)]) for name, x in channels}

    def _score(self, state: State) -> float:
        return f1(state.made[-1], [p.cells for p in self.pictures])

    def optimum(self, goal: Literal["maximise", "minimise"]) -> Array | None:
        """Return the best known settings; better ones could only be found by running the pipeline."""
        return self.best if goal == "maximise" else None


@settings("field")
class MicrographPipeline(FieldKind):
    """The F1 score of finding cells in micrographs, over the settings of three stages.

    Every draw has other pictures.

    The axes, in this order: strength and patch size of the denoising; window, offset and spacing of the
    segmentation; radius of the opening and least area of the cleaning. See `Settings`.
    """

    file: str | None = None
    """CSV of known scores, by draw, in the world's folder. For a draw that is used, it must hold all of the
    domain's sites. Without it, each value takes a run of all stages."""
    images: Annotated[int, pydantic.Field(ge=1, le=100)] = 3
    """Number of pictures."""
    size: Annotated[int, pydantic.Field(ge=64, le=2048)] = 320
    """Pixels along each side of a picture."""

    def make(self, domain: Domain, draw: int = 0, folder: Path | None = None) -> Pipeline:
        """Return the score over the domain's seven settings."""
        check_axes("the settings of the stages", domain, LEAST)
        if self.file is None:
            return Pipeline(draw, self.images, self.size)
        if folder is None:
            raise InputError("a table field needs a folder", expected="a world loaded from a file")
        sites, scores = self._table(inside(folder, self.file, where="field.file"), domain, draw)
        known = {Settings.at(site): float(s) for site, s in zip(sites, scores, strict=True)}
        return Pipeline(draw, self.images, self.size, known, sites[int(np.argmax(scores))])

    @staticmethod
    def _table(path: Path, domain: Domain, draw: int) -> tuple[Array, Array]:
        """Return settings (n, 7) and scores (n,) of a draw; raise an `InputError` if a site is missing."""
        table = read_readings(path, ["draw", *(a.name for a in domain.axes)], VALUE)
        of_draw = table.sites[:, 0] == draw
        sites, scores = table.sites[of_draw, 1:], table.values[of_draw]
        known = {Settings.at(site) for site in sites}
        missing = sum(Settings.at(site) not in known for site in domain.sites)
        if missing:
            draws = sorted({int(d) for d in table.sites[:, 0]})
            raise InputError(
                f"{missing} of {domain.size} sites have no row for draw {draw}",
                expected=f"one row for each of the domain's sites; the table has draws {draws}",
                where=str(path),
                fix="compute the missing rows, or remove `file` from [field] and wait for the stages to run",
            )
        return sites, scores
