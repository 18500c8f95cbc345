"""A cell that counts cells: micrographs are denoised, segmented and cleaned, one stage after the other.

Each stage has settings of its own, and works on what the one before it made:

1. *Denoise.* Brightness is stretched so that its noise has the same standard deviation everywhere, about 1
   (Anscombe's root, ``2 sqrt(counts + 3/8 + v)`` where the camera's own noise has variance ``v`` in counts).
   Then each pixel becomes a mean of those around it that lie in similar patches (non-local means: Buades,
   Coll and Morel 2005, *A non-local algorithm for image denoising*, section 3).
2. *Segment.* Bright is what exceeds a Gaussian mean around it by an offset. The bright part is cut along
   the watersheds between the peaks of the distance to its edge: each of them is the middle of an object.
3. *Clean.* What is thinner than a disk is opened away, and what is small after that is no cell.

The value is the F1 score of the objects that are left (`fieldbo.world.fields.gallery.micrographs.f1`).

A cell keeps what each stage made for the settings it last ran with. So a sample that changes only the last
settings runs only the last stage; that one runs for every sample. How many seconds the stages
took that really ran is told with each sample. A value that somebody looks up (for a score) is computed
apart from that: it leaves the cell as it was, and nobody pays for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy import ndimage

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.world.fields.base import Field, FieldKind
from fieldbo.world.fields.gallery.micrographs import PHOTONS, READ_SD, Labels, Micrograph, f1, micrographs
from fieldbo.world.fields.table import inside, read_readings

VALUE = "f1"
_SEARCH = 8  # non-local means look so many pixels to each side
_CELLS = 8  # so many cells' states are kept at once: one for each vehicle


class Denoise(NamedTuple):
    """Settings of the first stage.

    Attributes
    ----------
    strength : float
        How unlike patches may be, in standard deviations of the noise.
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
        Standard deviation of the mean that bright pixels exceed, in pixels.
    offset : float
        By how much they do, in standard deviations of the noise.
    spacing : int
        Between the middles of two cells there are more pixels than that.
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
        Of the smallest cell, in pixels.
    """

    opening: int
    area: int


class Settings(NamedTuple):
    """What is chosen before micrographs are worked on: the settings of each stage."""

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
        # rounded so that a setting survives the way through a text
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
"""What the axes may start at."""


# -- the stages ------------------------------------------------------------------------------------------


def denoised(light: Array, settings: Denoise) -> Array:
    """Return a picture (h, w) without most of its noise, stretched so that the noise had a deviation of 1."""
    from skimage.restoration import denoise_nl_means

    counts = np.maximum(PHOTONS * light + 0.375 + (PHOTONS * READ_SD) ** 2, 0.0)
    found = denoise_nl_means(
        2.0 * np.sqrt(counts),
        patch_size=2 * settings.reach + 1,
        patch_distance=_SEARCH,
        h=settings.strength,
        fast_mode=True,
    )
    return np.asarray(found, dtype=float)


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
    """What a cell has at hand.

    Attributes
    ----------
    settings : Settings
        What it last ran with.
    made : tuple of K lists
        What each stage made of each picture.
    """

    settings: Settings
    made: tuple[list[Any], ...]


def worked(
    pictures: Sequence[Micrograph], settings: Settings, before: State | None = None
) -> tuple[State, Array]:
    """Run the stages from the first whose settings changed on, and the last in any case.

    Parameters
    ----------
    pictures : sequence of Micrograph
    settings : Settings
    before : State, optional
        What is at hand; without it all stages run.

    Returns
    -------
    State
        What is at hand now.
    (3,) array
        Seconds that each stage took, by the clock; NaN where it did not run.
    """
    # loaded before the clock runs
    from skimage.restoration import denoise_nl_means  # noqa: F401
    from skimage.segmentation import watershed  # noqa: F401

    made: list[list[Any]] = [] if before is None else list(before.made[: _same(before.settings, settings)])
    took_s = np.full(len(STAGES), np.nan)
    for k in range(len(made), len(STAGES)):
        begun, given = perf_counter(), made[-1] if made else [p.light for p in pictures]
        made.append([_WORK[k](each, settings[k]) for each in given])
        took_s[k] = perf_counter() - begun
    return State(settings, tuple(made)), took_s


_WORK: tuple[Callable[[Any, Any], Any], ...] = (denoised, segmented, cleaned)


def _same(before: Settings, now: Settings) -> int:
    """Return how many stages, from the first on and without the last, have their settings still."""
    changed = [a != b for a, b in zip(before, now, strict=True)]
    return changed[:-1].index(True) if any(changed[:-1]) else len(changed) - 1


# -- the field -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pipeline(Field):
    """The F1 score over the settings of the stages: looked up where it is known, computed elsewhere.

    Attributes
    ----------
    draw, images, size : int
        Which pictures, how many, and their pixels along a side.
    known : dict of Settings to float
        It grows with what is computed.
    best : (7,) array or None
        Where the best of the table is.
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
        """The micrographs with their true cells; drawn when they are first needed."""
        return micrographs(self.draw, self.images, self.size)

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the scores (N,) at `sites` (N, 7); all stages run where one is not known."""
        wanted = [Settings.at(site) for site in sites]
        for settings in wanted:
            if settings not in self.known:
                self.known[settings] = self._score(worked(self.pictures, settings)[0])
        return np.array([self.known[settings] for settings in wanted])

    def sampled(self, site: Array, position: Array, time_s: float = 0.0) -> tuple[Array, dict[str, Array]]:
        """Run the cell that last ran with the settings at `position` (7,) with those at `site` (7,).

        A cell of which no such run is known, as at the start, has nothing at hand.

        Returns
        -------
        (1,) array
            The score.
        dict of str to (1,) array
            ``denoise_s``, ``segment_s`` and ``clean_s``: seconds that the stages took by the clock, 0 for
            those that did not run; ``stages_run``: how many did.
        """
        before = self._at_hand.pop(Settings.at(position), None)
        state, took_s = worked(self.pictures, Settings.at(site), before)
        self._at_hand[state.settings] = state
        if len(self._at_hand) > _CELLS:
            self._at_hand.popitem(last=False)
        value = self.known.setdefault(state.settings, self._score(state))
        numbers = [*np.nan_to_num(took_s), np.isfinite(took_s).sum()]
        told = dict(zip(self.measured, numbers, strict=True))
        return np.array([value]), {name: np.array([float(x)]) for name, x in told.items()}

    def _score(self, state: State) -> float:
        return f1(state.made[-1], [p.cells for p in self.pictures])

    def optimum(self, goal: Literal["maximise", "minimise"]) -> Array | None:
        """Return the best settings that are known: what else there is could only be found by trying."""
        return self.best if goal == "maximise" else None


@dataclass(frozen=True)
class MicrographPipeline(FieldKind):
    """How well cells are found in micrographs, over the settings of three stages; other pictures a draw.

    The axes, in this order: strength and patch size of the denoising; window, offset and spacing of the
    segmentation; radius of the opening and least area of the cleaning. See `Settings`.

    Parameters
    ----------
    file : str, optional
        A CSV in the world's folder with scores that are known, and of which draw; it must hold all of the
        domain's sites for the draw that is asked for. Without it each value takes a run of all stages.
    images : int
        How many pictures.
    size : int
        Pixels along a side of each.
    """

    file: str | None = None
    images: int = 3
    size: int = 320

    def __post_init__(self) -> None:
        for name, least, most in (("images", 1, 100), ("size", 64, 2048)):
            if not least <= getattr(self, name) <= most:
                raise InputError(
                    f"{name} = {getattr(self, name)}", expected=f"{least} to {most}", where=f"field.{name}"
                )

    def make(self, domain: Domain, draw: int = 0, folder: Path | None = None) -> Pipeline:
        """Return the score over the domain's seven settings."""
        if domain.dimension != len(LEAST):
            raise InputError(
                f"the settings of the stages over {domain.dimension} axes",
                expected="seven: " + ", ".join(LEAST),
                where="field.kind",
            )
        for axis, at_least in zip(domain.axes, LEAST.values(), strict=True):
            if axis.low < at_least:
                raise InputError(
                    f"axis {axis.name!r} starts at {axis.low:g}", expected=f"at least {at_least:g}"
                )
        if self.file is None:
            return Pipeline(draw, self.images, self.size)
        if folder is None:
            raise InputError("a table without a folder", expected="a world that was loaded from a file")
        sites, scores = self._table(inside(folder, self.file, where="field.file"), domain, draw)
        known = {Settings.at(site): float(s) for site, s in zip(sites, scores, strict=True)}
        return Pipeline(draw, self.images, self.size, known, sites[int(np.argmax(scores))])

    @staticmethod
    def _table(path: Path, domain: Domain, draw: int) -> tuple[Array, Array]:
        """Return settings (n, 7) and scores (n,) of one draw, once all of the domain's sites are there."""
        table = read_readings(path, ["draw", *(a.name for a in domain.axes)], VALUE)
        of_draw = table.sites[:, 0] == draw
        sites, scores = table.sites[of_draw, 1:], table.values[of_draw]
        told = {Settings.at(site) for site in sites}
        missing = sum(Settings.at(site) not in told for site in domain.sites)
        if missing:
            draws = sorted({int(d) for d in table.sites[:, 0]})
            raise InputError(
                f"{missing} of {domain.size} sites have no row for draw {draw}",
                expected=f"a row for each of the points that stand for the domain; there are draws {draws}",
                where=str(path),
                fix="compute the missing rows, or leave the file out and wait for the stages to run",
            )
        return sites, scores
