"""How often clean logs have readings that look wrong, and how many spikes of which size are found.

``python benchmarks/false_alarms.py``: smooth fields sampled along lines, winding tracks and at stations in
any order, with noise of 1 to 20 % of the range, plain, correlated or heavy-tailed; skewed, coarse, with and
without times. A row per number of readings: the fraction of logs with an alarm, and of spikes that are found.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from fieldbo.tables.cleaning import find_suspects
from fieldbo.tables.suspects import Track

Array = NDArray[np.float64]

TRACKS = ("lines", "winding", "any order")
NOISES = ("normal", "correlated", "laplace", "t, 4 degrees", "t, 3 degrees")
SIZES = (2.0, 5.0)
"""Sizes of spikes, in ranges of the field."""


def draw_track(rng: np.random.Generator, n: int, kind: str) -> Array:
    """Return positions (n, 2) in a square of about 1 x 1."""
    if kind == "any order":
        return rng.uniform(0, 1, (n, 2))
    if kind == "lines":
        lines = rng.integers(4, 20)
        along = np.linspace(0, lines, n, endpoint=False)
        line, part = np.floor(along), along % 1
        return np.column_stack([np.where(line % 2 == 0, part, 1 - part), line / lines])
    heading, step = np.cumsum(rng.normal(0, 0.3, n)), rng.uniform(3, 9) / n
    return np.cumsum(np.column_stack([np.cos(heading), np.sin(heading)]), axis=0) * step


def draw_field(rng: np.random.Generator, places: Array) -> Array:
    """Return a smooth random function (n,) between 0 and 1: squared exponential or Matern-5/2."""
    count, scale = 200, rng.uniform(0.05, 0.5)
    waves = rng.normal(size=(count, 2)) / scale
    if rng.random() < 0.5:
        waves *= np.sqrt(5 / rng.chisquare(5, (count, 1)))
    values = np.cos(places @ waves.T + rng.uniform(0, 2 * np.pi, count)).sum(axis=1)
    return np.asarray((values - values.min()) / max(float(np.ptp(values)), 1e-9))


def draw_noise(rng: np.random.Generator, n: int, kind: str) -> Array:
    """Return noise (n,) of unit variance."""
    if kind == "correlated":
        return np.asarray(lfilter([np.sqrt(0.19)], [1, -0.9], rng.normal(size=n)))
    if kind == "laplace":
        return np.asarray(rng.laplace(size=n) / np.sqrt(2))
    if kind.startswith("t"):
        freedom = int(kind.split()[1])
        return np.asarray(rng.standard_t(freedom, n) / np.sqrt(freedom / (freedom - 2)))
    return np.asarray(rng.normal(size=n))


def draw_log(rng: np.random.Generator, n: int, track: str, noise: str) -> Track:
    """Return a clean log."""
    places = draw_track(rng, n, track)
    values = draw_field(rng, places) + 10 ** rng.uniform(-2, np.log10(0.2)) * draw_noise(rng, n, noise)
    values = (values, np.exp(2 * values), values.round(2), (15 + 5 * values).round(3))[rng.integers(4)]
    extent = 10 ** rng.uniform(1.5, 4)
    metres = places * extent + rng.normal(0, min(3.0, extent / 100), places.shape) * rng.integers(2)
    steps = np.hypot(*np.diff(metres, axis=0).T)
    clock = np.append(0.0, np.cumsum(steps)) / rng.uniform(0.5, 2)
    times = (None, np.arange(float(n)), np.floor(clock), np.floor(clock / 60) * 60)[rng.integers(4)]
    return Track(metres, values, np.arange(n), times)


def main() -> None:
    """Print a row per number of readings and kind of noise."""
    parser = argparse.ArgumentParser(description="False alarms of the tests for readings that look wrong.")
    parser.add_argument("--logs", type=int, default=100, metavar="N", help="logs per track (default: 100)")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    print("readings  noise         logs  with an alarm  spikes found of 2 and 5 ranges")
    for n in (12, 30, 100, 1000, 5000):
        for noise in NOISES:
            logs = [draw_log(rng, n, track, noise) for track in TRACKS for _ in range(arguments.logs)]
            alarms = np.mean([bool(find_suspects(log, "x")) for log in logs])
            found = []
            for size in SIZES:
                hits = []
                for log in logs[: 20 * len(TRACKS)]:
                    row, values = int(rng.integers(n)), log.values.copy()
                    values[row] += size * np.ptp(values) * rng.choice([-1, 1])
                    spiked = Track(log.metres, values, log.lines, log.times)
                    hits.append(row in [each.row for each in find_suspects(spiked, "x")])
                found.append(float(np.mean(hits)))
            shares = ", ".join(f"{share:.0%}" for share in found)
            print(f"{n:>8}  {noise:<12}  {len(logs):>4}  {alarms:>13.2%}  {shares}", flush=True)


if __name__ == "__main__":
    main()
