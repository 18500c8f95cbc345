"""How far to trust the map of a survey: its error next to readings, between them, and in wide gaps.

Readings are left out one by one, and in groups: the lines of a track, or blocks. Distances between them are
in length scales of the fitted kernel, so that a metre of depth and a metre along a lake count by how much the
field changes over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform
from scipy.special import ndtri

from fieldbo._numerics.arrays import Array
from fieldbo.belief.posterior import Belief
from fieldbo.belief.value_scale import ValueScale
from fieldbo.errors import InputError, counted

Labels = NDArray[np.int64]

_FEWEST = 3
"""With fewer groups, leaving one out is no test of the gaps between them."""

_TRACK = 0.75
"""Fraction of readings that must go on from the one before, for a track: the nearest reading is the one
before or after, or the heading does not turn sharply.

For places visited at random both fractions are below .15, for the Meuse survey .63 and .43; for a boat's log,
and for casts of a profiler, one of the two is above .95.
"""

_SAME = 0.75
"""Lines lie on each other if they are closer than this fraction of the step from reading to reading."""

_SHARP = np.radians(60.0)
_AROUND = 3
"""A heading is that over so many readings: one position that is a little off is no turn."""

_GAP = 5.0
"""A step of so many median steps begins a new line."""

_SHORT = 1 / 3
"""A piece with fewer readings than this fraction of a median line is no line, but the way to the next one."""

_PER_BLOCK = 4
_MOST_FOR_BLOCKS = 3000  # distances between all pairs: 72 MB


@dataclass(frozen=True, eq=False)
class Groups:
    """Readings to leave out together.

    Attributes
    ----------
    labels : (n,) int array
        The number of each site's group.
    kind : {"line", "block"}
        What a group is.
    """

    labels: Labels
    kind: str

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(np.unique(self.labels))

    @property
    def name(self) -> str:
        """How many groups of what: "12 lines"."""
        return counted(self.count, self.kind)


def groups_of(sites: Array, length_scales: Array, places: Array) -> Groups | None:
    """Return the lines of readings along a track, or else blocks; None if they are too few for either.

    Parameters
    ----------
    sites : (n, d) array
        Sites of the readings, in the order in which they were taken, no two alike.
    length_scales : (d,) array
    places : (N, d) array
        Where the map is wanted.
    """
    scaled = sites / length_scales
    if sites.shape[1] == 2:
        lines = lines_of(scaled)
        if lines is not None:
            return Groups(lines, "line")
    blocks = blocks_of(scaled, places / length_scales)
    return None if blocks is None else Groups(blocks, "block")


def lines_of(sites: Array) -> Labels | None:
    """Return the line (n,) of each reading of a track; None if there are fewer than three.

    A line ends where the heading turns by more than 60 degrees or the track has a gap. Lines that lie on each
    other, such as the way out and back, count as one: the second pass says what the first one measured.

    Examples
    --------
    >>> along = np.linspace(0.0, 1.0, 20)
    >>> lines = [np.c_[along[::way], np.full(20, i)] for i, way in enumerate([1, -1, 1])]
    >>> np.unique(lines_of(np.concatenate(lines)), return_counts=True)[1].tolist()
    [20, 20, 20]
    """
    if len(sites) < _FEWEST * _AROUND:
        return None
    steps = np.linalg.norm(np.diff(sites, axis=0), axis=1)
    if not _is_track(sites, steps):
        return None
    ends = _find_turns(sites) | np.append(False, steps > _GAP * np.median(steps))
    labels = _join_short(np.cumsum(ends))
    labels = _join(sites, labels, _SAME * float(np.median(steps)))
    return labels if len(np.unique(labels)) >= _FEWEST else None


def _is_track(sites: Array, steps: Array) -> bool:
    nearest: Array = np.asarray(cKDTree(sites).query(sites, 2)[0])[:, 1]
    beside = np.minimum(np.append(np.inf, steps), np.append(steps, np.inf)) <= 1.5 * nearest
    straight = _measure_angles(sites, 1) <= _SHARP
    return bool(max(np.mean(beside), np.mean(straight)) >= _TRACK)


def _measure_angles(sites: Array, most: int) -> Array:
    """Return by which angle the heading turns at each reading (n,), measured over up to `most` steps."""
    n, angles = len(sites), np.zeros(len(sites))
    middle = np.arange(1, n - 1)
    reach = np.minimum(most, np.minimum(middle, n - 1 - middle))
    before, after = sites[middle] - sites[middle - reach], sites[middle + reach] - sites[middle]
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines = np.divide((before * after).sum(axis=1), lengths, out=np.ones(n - 2), where=lengths > 0)
    angles[1:-1] = np.arccos(np.clip(cosines, -1.0, 1.0))
    return angles


def _find_turns(sites: Array) -> NDArray[np.bool_]:
    """Return at which readings (n,) the heading turns sharply: the sharpest reading of each turn."""
    angles = _measure_angles(sites, _AROUND)
    turns = np.zeros(len(sites), dtype=bool)
    sharp = np.flatnonzero(angles > _SHARP)
    for run in np.split(sharp, np.flatnonzero(np.diff(sharp) > 1) + 1):
        if len(run):
            turns[run[np.argmax(angles[run])]] = True
    return turns


def _join_short(labels: Labels) -> Labels:
    """Return the labels with pieces too short for a line joined to the line before, or after, them."""
    counts = np.bincount(labels)
    # The median over readings, not over pieces: there may be more pieces of way than lines.
    short = counts < _SHORT * np.median(counts[labels])
    kept = np.where(short, -1, np.arange(len(counts)))
    kept = np.maximum.accumulate(kept)
    kept[kept < 0] = np.flatnonzero(~short)[0]
    return np.unique(kept[labels], return_inverse=True)[1].reshape(-1)


def _join(sites: Array, labels: Labels, near: float) -> Labels:
    """Return the labels with lines joined if most readings of one lie within `near` of the other."""
    numbers = np.unique(labels)
    trees = [cKDTree(sites[labels == number]) for number in numbers]
    pairs = [
        (a, b)
        for a, line in enumerate(trees)
        for b, other in enumerate(trees)
        if a != b and np.median(other.query(line.data)[0]) < near
    ]
    if not pairs:
        return labels
    from_to = np.array(pairs).T
    links = coo_array((np.ones(len(pairs)), (from_to[0], from_to[1])), shape=(len(numbers),) * 2)
    return connected_components(links, directed=False)[1].astype(np.int64)[labels]


def blocks_of(sites: Array, places: Array) -> Labels | None:
    """Return the block (n,) of each scattered reading; None if there are too few readings.

    Blocks are clusters (Ward's). They are as large as makes readings that are left out about as far from the
    others as the places of the map are from the readings (nearest-neighbour distance matching: Mila et al.
    2022, Methods Ecol. Evol. 13; Linnenbrink et al. 2024, Geosci. Model Dev. 17). Smaller blocks are too easy
    a test of a map with gaps, and larger ones too hard a test of one without. A block holds four readings or
    more on average, so that no reading is predicted from its neighbours only.

    Parameters
    ----------
    sites : (n, d) array
    places : (N, d) array
        Where the map is wanted.
    """
    n = len(sites)
    if n < 2 * _FEWEST:
        return None
    if n > _MOST_FOR_BLOCKS:
        some = sites[np.linspace(0, n - 1, _MOST_FOR_BLOCKS).astype(int)]
        labels = blocks_of(some, places)
        return None if labels is None else labels[cKDTree(some).query(sites)[1]]
    most = max(_FEWEST, n // _PER_BLOCK)
    counts = np.unique(np.geomspace(_FEWEST, most, 16).round().astype(int))
    tree = linkage(sites, "ward")
    levels = np.linspace(0.0, 1.0, 101)
    wanted = np.quantile(cKDTree(sites).query(places)[0], levels)
    distances = squareform(pdist(sites))
    best, least = None, np.inf
    for count in counts[::-1]:
        labels = fcluster(tree, int(count), "maxclust").astype(np.int64)
        if len(np.unique(labels)) < _FEWEST:
            continue
        to_others = np.where(labels[:, None] == labels, np.inf, distances).min(axis=1)
        mismatch = float(np.abs(np.quantile(to_others, levels) - wanted).mean())  # Wasserstein distance
        if mismatch < least:
            best, least = labels, mismatch
    return best


_NARROW = 0.8
"""Coverage of 90% intervals below which a map claims more than it knows."""

_WELL_CALIBRATED = 1.2
"""Inflation below which the fitted model agrees with the groups left out; coverage is then above 83%."""

_ALIKE = 1.5
"""Ratio of two errors below which they say the same."""

_WORTHLESS = 0.9
"""Fraction of the readings' variance that a useful map's squared error stays below."""


def predict_left_out(belief: Belief, groups: ArrayLike) -> tuple[Array, Array]:
    """Return mean and variance (n,) of each reading, predicted from the readings of all other groups.

    Exact, from one inverse: with ``K = k(X, X) + diag(v)`` and ``Q = K^-1``, the readings of group g have
    mean ``y_g - Q_gg^-1 (Q y)_g`` and covariance ``Q_gg^-1`` given all others (Rasmussen and Williams 2006,
    section 5.4.2, for blocks). The hyperparameters stay those of the belief. The variance includes a
    reading's noise.

    Parameters
    ----------
    belief : Belief
    groups : (n,) array
        Label of each of ``belief.sites``; readings with the same label are left out together.

    Raises
    ------
    InputError
        There is not one label per site.

    Examples
    --------
    Two readings side by side predict each other well; the third place does not predict them at all:

    >>> from fieldbo.belief.kernels import Matern52
    >>> belief = Belief(Matern52([1.0])).condition_on([[0.0], [0.1], [9.0]], [2.0, 2.0, 0.0], 0.01)
    >>> predict_left_out(belief, [0, 1, 2])[0].round(1) + 0.0
    array([2., 2., 0.])
    >>> predict_left_out(belief, [0, 0, 1])[0].round(1) + 0.0
    array([0., 0., 0.])
    """
    labels = np.asarray(groups)
    if labels.shape != (belief.size,):
        raise InputError(
            f"labels of shape {labels.shape} for {belief.size} sites",
            expected="one label per site of the belief",
        )
    inverse = belief.precision()
    weighted = inverse @ belief.values
    mean, variance = np.empty(belief.size), np.empty(belief.size)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        covariance = np.linalg.inv(inverse[np.ix_(rows, rows)])
        mean[rows] = belief.values[rows] - covariance @ weighted[rows]
        variance[rows] = np.diag(covariance)
    return mean, np.maximum(variance, belief.noise_variances)


class Score(NamedTuple):
    """How well readings are predicted that were left out."""

    rmse: float
    """Root mean square error, in the user's unit."""
    coverage: float
    """Fraction of the readings inside the 90% intervals of the predictions."""

    @classmethod
    def of(cls, belief: Belief, scale: ValueScale, mean: Array, variance: Array) -> Score:
        """Return the score of predictions (n,) of a belief's readings, in model units."""
        z = np.abs(belief.values - mean) / np.sqrt(variance)
        missed = scale.to_user(belief.values) - scale.to_user(mean)
        inside_90 = z <= ndtri(0.95)  # the central 90%
        return cls(float(np.sqrt(np.mean(missed**2))), float(np.mean(inside_90)))


@dataclass(frozen=True)
class Validation:
    """How well a field predicts readings left out one by one, and in whole lines or blocks.

    Attributes
    ----------
    single : Score
        Each site predicted from all others. Its neighbours remain, so the error is too small for places
        between lines.
    grouped : Score
        Each line or block predicted from all others. A missing line leaves a gap twice as wide as the map
        has, so the error is too large for most places.
    kind : {"line", "block"}
    groups : str
        What was left out: "12 lines".
    expected : float
        Root mean square error over the map, in the user's unit, as the field estimates it: its standard
        deviation times `inflation`.
    inflation : float
        Factor, at least 1, by which the standard deviation is too small for the groups left out.
    spread : float
        Standard deviation of the readings.
    """

    single: Score
    grouped: Score
    kind: str
    groups: str
    expected: float
    inflation: float
    spread: float

    @classmethod
    def of(
        cls, belief: Belief, scale: ValueScale, places: Array, single: Score, spread: float
    ) -> Validation | None:
        """Return how well a fitted belief predicts what is left out; None for too few readings to tell.

        Parameters
        ----------
        belief : Belief
            In the order of the survey.
        scale : ValueScale
        places : (N, d) array
            Where the map is wanted.
        single : Score
            The score of readings left out one by one.
        spread : float
            Standard deviation of the readings, in the user's unit.
        """
        groups = groups_of(belief.sites, np.exp(belief.kernel.theta[:-1]), places)
        if groups is None:
            return None
        mean, variance = predict_left_out(belief, groups.labels)
        inflation = max(1.0, float(np.sqrt(np.mean((belief.values - mean) ** 2 / variance))))
        at_places, spread_there = belief.mean_and_variance(places)
        _, sd = scale.moments(at_places, inflation**2 * spread_there)
        return cls(
            single,
            Score.of(belief, scale, mean, variance),
            groups.kind,
            groups.name,
            expected=float(np.sqrt(np.mean(sd**2))),
            inflation=inflation,
            spread=spread,
        )

    def result(self, unit: str) -> str:
        """Return the error of the groups left out, with its `unit`, in words."""
        return (
            f"{self.groups}, each left out whole: error {self.grouped.rmse:.4g}{unit}; 90% intervals hold "
            f"{self.grouped.coverage:.0%} of the readings"
        )

    def advice(self, unit: str) -> str:
        """Return in words which error to trust, with its `unit`."""
        worst, gaps = f"{_round_to_two_digits(self.grouped.rmse)}{unit}", f"between {self.kind}s"
        if self.grouped.rmse > np.sqrt(_WORTHLESS) * self.spread:
            worst += " (no better than the readings' mean)"
        if self.inflation > _WELL_CALIBRATED:
            return (
                f"the second error counts: {self.kind}s differ by more than the fitted model allows, so "
                f"{gaps} the map may be off by {worst}"
            )
        expected = f"expect an error of about {_round_to_two_digits(self.expected)}{unit} over the map"
        if self.expected > self.grouped.rmse:
            return f"{expected}, more than {gaps}, because parts of the area are far from any reading"
        if self.grouped.rmse < _ALIKE * self.single.rmse:
            return f"both errors agree; {expected}"
        return f"{expected}: smaller near readings, and up to {worst} in the widest gaps"

    @property
    def warning(self) -> str | None:
        """A warning if the intervals are too narrow."""
        if self.grouped.coverage >= _NARROW:
            return None
        return (
            f"with {self.kind}s left out, 90% intervals hold only {self.grouped.coverage:.0%} of the "
            f"readings; take the map's standard deviations times {self.inflation:.2g}"
        )


def _round_to_two_digits(number: float) -> str:
    """Return a number to two significant digits, without an exponent where it can be avoided."""
    return f"{float(f'{number:.2g}'):g}"
