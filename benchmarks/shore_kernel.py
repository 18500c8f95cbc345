"""Error of a map with shore-matern52 and with matern52: in lakes with a spit, and in an open lake.

Both kernels learn their hyperparameters from the same readings, at random sites, as a mission's model does.

spit   a tracer diffuses from two sources and decays; a spit of random place and length separates two bays.
       It spreads over 200 to 500 m before most of it has decayed
plumes the same over 100 to 300 m: much of the error is at the sources, where both kernels err alike
open   a Matern-5/2 field, with a length scale of 0.15 to 0.35 of the longest axis, in a convex lake

Print the root-mean-square error of the posterior mean over all sites, in standard deviations of the field,
averaged over the draws, with standard errors; and the ratio of the two means, with its standard error.

    python benchmarks/shore_kernel.py [--draws 30] [--readings 30 60 120] [--lakes spit plumes open]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet
from fieldbo.belief.readings import Data
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.world.fields.gallery.tracer import Tracer

AXES = (Axis("east", "m", 0, 900), Axis("north", "m", 0, 600))
SHAPE = (46, 31)
SHORE = shapely.Polygon(
    [(0, 180), (220, 0), (700, 0), (900, 240), (880, 420), (560, 600), (330, 590), (30, 420)]
)
KERNELS = ("matern52", "shore-matern52")
QUESTION = LevelSet(0.0)
NOISE = 0.02  # of the field's standard deviation


class Lake(NamedTuple):
    """A lake, and a field with mean 0 and standard deviation 1 over its sites (N,)."""

    domain: Domain
    truth: Array


def with_spit(seed: int, reach: tuple[float, float]) -> Lake:
    """Return a lake with a spit, 30 m wide, from its southern or northern shore, and a tracer in it."""
    rng = np.random.default_rng([seed, 1])
    at, share = rng.uniform(300, 600), rng.uniform(0.6, 0.85)
    ends = (-50, 600 * share) if rng.random() < 0.5 else (600 * (1 - share), 650)
    water = shapely.difference(SHORE, shapely.box(at - 15, ends[0], at + 15, ends[1]))
    domain = Domain.grid(AXES, SHAPE, water)
    field = Tracer(reach=rng.uniform(*reach), sources=2).make(domain, draw=seed)
    return Lake(domain, _standardised(field.values(domain.sites)))


_OPEN = Domain.grid(AXES, SHAPE, SHORE)


def without_spit(seed: int) -> Lake:
    """Return a draw of a Matern-5/2 field over the lake without a spit."""
    rng = np.random.default_rng([seed, 2])
    scale = 900 * rng.uniform(0.15, 0.35)
    K = Matern52([scale, scale])(_OPEN.sites, _OPEN.sites)
    K[np.diag_indices_from(K)] += 1e-8
    return Lake(_OPEN, _standardised(np.linalg.cholesky(K) @ rng.standard_normal(_OPEN.size)))


LAKES: dict[str, Callable[[int], Lake]] = {
    "spit": partial(with_spit, reach=(200, 500)),
    "plumes": partial(with_spit, reach=(100, 300)),
    "open": without_spit,
}


def _standardised(values: Array) -> Array:
    return np.asarray((values - values.mean()) / values.std())


def error(lake: Lake, kernel: str, n: int, seed: int) -> float:
    """Return the error of the map after n readings."""
    rng, domain = np.random.default_rng([seed, n, 3]), lake.domain
    at = rng.choice(domain.size, n, replace=False)
    values, noise = lake.truth[at] + NOISE * rng.standard_normal(n), np.full(n, NOISE**2)
    model = Model(kernel=kernel)
    first = model.initial(domain, QUESTION)
    data = Data(domain.sites[at], values, noise)
    found = model.fitted(first, domain, QUESTION, data, np.random.default_rng(0))
    scale = found.scale
    belief = Belief(found.kernel).condition_on(
        domain.sites[at], scale.to_model(values), scale.noise_to_model(noise, values)
    )
    return float(np.sqrt(np.mean((scale.to_user(belief.mean(domain.sites)) - lake.truth) ** 2)))


@on_one_blas_thread
def errors(lake: str, readings: list[int], draws: int) -> Array:
    """Return the errors (draws, len(readings), 2) with each of the two kernels."""
    table = []
    for seed in range(draws):
        drawn = LAKES[lake](seed)
        table.append([[error(drawn, kernel, n, seed) for kernel in KERNELS] for n in readings])
    return np.array(table)


def ratio(plain: Array, shore: Array) -> tuple[float, float]:
    """Return the ratio of two means of paired errors (draws,), and its standard error (delta method)."""
    quotient = shore.mean() / plain.mean()
    return float(quotient), _standard_error(shore - quotient * plain) / float(plain.mean())


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=30, help="lakes per row, at least 2")
    parser.add_argument("--readings", type=int, nargs="+", default=[30, 60, 120])
    parser.add_argument("--lakes", nargs="+", choices=list(LAKES), default=list(LAKES))
    args = parser.parse_args()
    print(f"{'lake':6} {'readings':>8} {'matern52':>16} {'shore-matern52':>16} {'ratio':>16}")
    for lake in args.lakes:
        for n, pair in zip(
            args.readings, errors(lake, args.readings, args.draws).swapaxes(0, 1), strict=True
        ):
            cells = [(float(e.mean()), _standard_error(e)) for e in pair.T] + [ratio(*pair.T)]
            print(f"{lake:6} {n:8d}", *(f"{m:8.3f} +- {s:.3f}" for m, s in cells), flush=True)


if __name__ == "__main__":
    main()
