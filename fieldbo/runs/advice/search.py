"""The search for a battery with which a mission reaches a target with a given probability.

1. Read off: each of n fields is run once with a battery that is large enough, which gives the battery that it
   needs. With the k-th smallest of n needs, k = ceil(p (n + 1)), the next field succeeds with a probability
   of at least p (as in conformal prediction: a new field is equally likely to rank anywhere among them).
2. Check: the mission is run as it is, with that battery, in n fresh fields. A policy that plans with what is
   left in the battery may decide otherwise than with a larger one, and the needs of n fields are a sample.
3. Correct: as long as fewer than p n of the fresh fields reach the target, or so many that the battery must
   be too large, another battery is run in the same fresh fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, betaincinv

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, counted
from fieldbo.runs.advice.trial import Trial

LARGEST = 8.0
"""Largest battery that is tried, as a multiple of the mission's own."""

CHECKS = 8
"""Most batteries that are run in the fresh fields."""

_CLOSE = 1.05  # ratio of two batteries between which none is tried
_STEP = 1.25  # to the next battery, where the needs do not tell
_TAIL = 0.05  # on either side of a 90% interval

Rounded = Callable[[float], float]
"""Rounds an amount up to a battery that can be had."""

Run = Callable[[Sequence[int], float, float | None], list[Trial]]
"""``run(fields, battery, until)`` returns the trials in these fields."""


@dataclass(frozen=True, eq=False)
class Needed:
    """The battery with which a mission reaches a target.

    Attributes
    ----------
    battery : float or None
        None if it is larger than `largest`.
    largest : float
        Largest battery tried.
    needs : (n,) array
        What each field of the search needs, read off a run with a larger battery; infinite if more.
    trials : tuple of Trial
        Runs of the mission as it is: in fresh fields with the battery, or with the largest one.
    """

    battery: float | None
    largest: float
    needs: Array
    trials: tuple[Trial, ...]


def needed(
    run: Run, fields: int, target: float, probability: float, first: float, each: float | None = None
) -> Needed:
    """Return the battery with which a mission reaches a target in a share `probability` of the fields.

    Parameters
    ----------
    run : callable
    fields : int
        Number of fields to search in, and of fresh ones to check in.
    target : float
    probability : float
    first : float
        Battery to begin with.
    each : float, optional
        What one of several batteries holds: only multiples of it are tried.

    Raises
    ------
    InputError
        There are too few fields for the probability.
    """
    rank, up = rank_of(fields, probability), rounded_up if each is None else multiples_of(each)
    largest = LARGEST * first
    needs = _needs(run, fields, target, rank, first)
    ordered = np.sort(needs)
    fresh = range(fields, 2 * fields)
    wanted = int(np.ceil(probability * fields - 1e-9))
    low, high, answer = 0.0, np.inf, list[Trial]()
    battery = up(float(ordered[rank - 1]))
    for _ in range(CHECKS):
        if not battery <= largest:
            battery = largest
        trials = run(fresh, battery, None)
        reached = successes(trials, target)
        if reached < wanted:
            low = battery
            if battery >= largest and not answer:
                return Needed(None, largest, needs, tuple(trials))
        else:
            high, answer = battery, trials
            if not _too_many(reached, fields, probability):
                break
        battery = _next(ordered, rank - 1 + wanted - reached, low, high, up)
        if each is not None and battery >= high:
            battery = up(high - each)
        if high <= low * _CLOSE or not low < battery < high:
            break
    if not answer:
        return Needed(None, low, needs, tuple(trials))
    return Needed(high, largest, needs, tuple(answer))


def _needs(run: Run, fields: int, target: float, rank: int, first: float) -> Array:
    """Return what each field needs, up to the largest battery or until the wanted one is known."""
    needs, battery = np.full(fields, np.inf), first
    left = np.arange(fields)
    while True:
        trials = run(left.tolist(), battery, target)
        needs[left] = [trial.need(target) for trial in trials]
        left = np.flatnonzero(~np.isfinite(needs))
        if fields - len(left) >= rank or battery >= LARGEST * first:
            return needs
        battery *= 2.0


def _next(ordered: Array, index: int, low: float, high: float, up: Rounded) -> float:
    """Return the battery to run next, between one that is not enough and one that is, or may be too large.

    Parameters
    ----------
    ordered : (n,) array
        The needs, in order.
    index : int
        Of the need that would make up for what the fresh fields lack, or have too much.
    low, high : float
        0 and infinity where there is none yet.
    up : callable
    """
    if low > 0 and np.isfinite(high):
        return up(float(np.sqrt(low * high)))
    guess = float(ordered[min(max(index, 0), len(ordered) - 1)])
    if np.isinf(high):
        return up(max(guess, _CLOSE * low) if low < guess < np.inf else _STEP * low)
    return up(max(min(guess, high / _STEP), float(ordered[0])))


def rounded_up(battery: float) -> float:
    """Return a battery rounded up to three significant digits.

    Examples
    --------
    >>> rounded_up(3871.2), rounded_up(0.061234), rounded_up(40.0)
    (3880.0, 0.0613, 40.0)
    """
    if not np.isfinite(battery) or battery <= 0:
        return battery
    digits = 2 - int(np.floor(np.log10(battery)))
    scaled = battery * 10.0**digits
    return float(f"{np.ceil(scaled * (1 - 1e-12)) * 10.0**-digits:.3g}")


def multiples_of(each: float) -> Rounded:
    """Return a function that rounds an amount up to a whole number of batteries.

    Examples
    --------
    >>> up = multiples_of(60.0)
    >>> up(1.0), up(120.0), up(121.0)
    (60.0, 120.0, 180.0)
    """
    return lambda amount: amount if not np.isfinite(amount) else float(np.ceil(amount / each - 1e-9)) * each


def successes(trials: Sequence[Trial], target: float) -> int:
    """Return the number of trials that end at or above a target."""
    return sum(trial.final >= target for trial in trials)


def _too_many(reached: int, n: int, probability: float) -> bool:
    """Return True if so many successes hardly go with the probability."""
    return 1.0 - float(bdtr(reached - 1, n, probability)) < _TAIL if reached else False


def rank_of(fields: int, probability: float) -> int:
    """Return the rank k such that the k-th smallest need of n fields covers the next one with probability p.

    Raises
    ------
    InputError
        There are too few fields for that.

    Examples
    --------
    >>> rank_of(40, 0.8), rank_of(19, 0.95)
    (33, 19)
    """
    rank = int(np.ceil(probability * (fields + 1) - 1e-9))
    if rank > fields:
        least = least_fields(probability)
        raise InputError(
            f"{counted(fields, 'field')} {'is' if fields == 1 else 'are'} too few for a probability of "
            f"{probability:.10g}",
            expected=f"at least {least} fields",
            where="--fields",
            fix=f"set --fields {least}, or a lower probability",
        )
    return rank


def least_fields(probability: float) -> int:
    """Return how many fields a search needs at least.

    Examples
    --------
    >>> least_fields(0.8), least_fields(0.95)
    (4, 19)
    """
    return int(np.ceil(probability / (1.0 - probability) - 1e-9))


def share_interval(reached: int, n: int) -> tuple[float, float]:
    """Return the 90% interval of a probability of which `reached` of n trials are known (Clopper-Pearson).

    Examples
    --------
    >>> [round(end, 3) for end in share_interval(32, 40)]
    [0.668, 0.896]
    """
    low = float(betaincinv(reached, n - reached + 1, _TAIL)) if reached else 0.0
    high = float(betaincinv(reached + 1, n - reached, 1.0 - _TAIL)) if reached < n else 1.0
    return low, high


def quantile(needs: Array, probability: float) -> tuple[float, float, float]:
    """Return the need that a share of the fields does not exceed, and its 90% interval.

    The interval lies between order statistics (the binomial one, whatever the distribution); its upper end is
    infinite where no need is that large.

    Examples
    --------
    >>> quantile(np.arange(1.0, 41.0), 0.5)
    (21.0, 15.0, 26.0)
    """
    ordered, n = np.append(np.sort(needs), np.inf), len(needs)
    below = np.array([float(bdtr(k, n, probability)) for k in range(n + 1)])
    low = int(np.searchsorted(below, _TAIL))
    high = int(np.searchsorted(below, 1.0 - _TAIL))
    rank = min(int(np.ceil(probability * (n + 1) - 1e-9)), n + 1)
    return float(ordered[rank - 1]), float(ordered[max(low - 1, 0)]), float(ordered[min(high, n)])
