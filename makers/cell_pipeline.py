"""Make scores.csv of the world cell-pipeline: F1 scores at its representers, and the best of a search beyond.

    python makers/cell_pipeline.py --draws 0 1
    python makers/cell_pipeline.py --seconds

The first takes some seven minutes a draw on two idle cores. It may be interrupted: what the table holds is
not computed again, so remove it where the stages or the pictures have changed. Called once more, it searches
on from the best. The second says how long each stage takes, and what to put into world.toml.
"""

from __future__ import annotations

import argparse
import csv
import os
import tomllib
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import numpy as np
from rich.progress import track

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.world.fields.gallery.micrographs import Micrograph, f1, micrographs
from fieldbo.world.fields.gallery.pipeline import (
    STAGES,
    VALUE,
    MicrographPipeline,
    Settings,
    State,
    cleaned,
    denoised,
    segmented,
    worked,
)

WORLD = Path(__file__).parents[1] / "worlds" / "cell-pipeline"
TABLE = WORLD / "scores.csv"
KIND = MicrographPipeline()
AT_ONCE = 64  # scores are written after so many
AROUND = 8  # of the best points, so many are searched around
NEAR = 4  # tries around each, a round, of
INNER = (
    1,
    4,
    4,
)  # settings of the first stage, of the second for each of those, of the third for each of those
WIDTHS = (0.15, 0.08, 0.04, 0.02)  # of each round of that search, in shares of the axes
STAGE_OF = np.array([0, 0, 1, 1, 1, 2, 2])  # of each axis


def domain() -> Domain:
    """Return the domain as world.toml has it."""
    told = tomllib.loads((WORLD / "world.toml").read_text(encoding="utf-8"))["domain"]
    axes = [Axis(a["name"], a["unit"], a["low"], a["high"]) for a in told["axes"]]
    return Domain.box(axes, told["representers"])


@cache
def pictures(draw: int) -> tuple[Micrograph, ...]:
    """Return the micrographs of a draw."""
    return micrographs(draw, KIND.images, KIND.size)


def score(draw: int, state: State) -> float:
    """Return the F1 score of what the last stage made."""
    return f1(state.made[-1], [p.cells for p in pictures(draw)])


def whole(draw: int, site: Array) -> float:
    """Return the score at a site, all stages run."""
    return score(draw, worked(pictures(draw), Settings.at(site))[0])


def best_around(draw: int, site: Array, width: float, seed: list[int]) -> tuple[Array, float]:
    """Return the best point of a search around a site, and its score; kept stages make that cheap."""
    rng, box = np.random.default_rng(seed), domain()
    found, best, state = site, -1.0, None
    at = [site, site, site]  # the point that each stage's tries are made from
    for tries in np.ndindex(INNER):
        for k in range(len(INNER)):
            if any(tries[k + 1 :]):
                continue  # this stage keeps its settings until those after it are through
            step = width * box.extent * rng.standard_normal(box.dimension) * (k == STAGE_OF)
            before = at[k - 1] if k else site
            at[k] = np.clip(before + step, box.low, box.high)
        state, _ = worked(pictures(draw), Settings.at(at[-1]), state)
        value = score(draw, state)
        if value > best:
            found, best = at[-1], value
    return found, best


def read() -> list[tuple[int, Array, float]]:
    """Return the rows that are there: draw, point and score."""
    if not TABLE.exists():
        return []
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [(int(row[0]), np.array([float(x) for x in row[1:-1]]), float(row[-1])) for row in rows]


def write(rows: list[tuple[int, Array, float]]) -> None:
    """Write the table anew: whole, or not at all."""
    draft = TABLE.with_suffix(".part")
    with draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["draw", *(a.name for a in domain().axes), VALUE])
        # all digits of a point, which must be found again
        table.writerows([draw, *map(repr, point.tolist()), repr(v)] for draw, point, v in rows)
    draft.replace(TABLE)


def fill(draw: int, pool: ProcessPoolExecutor) -> None:
    """Compute the rows of one draw, and search on from the best of them."""
    sites, rows = domain().sites, read()
    others = [row for row in rows if row[0] != draw]
    known = {tuple(point): value for d, point, value in rows if d == draw}

    def kept() -> None:
        mine = [*map(tuple, sites), *(point for point in known if point not in at_sites)]
        table = [(draw, np.array(point), known[point]) for point in mine if point in known]
        write(sorted(others + table, key=lambda row: row[0]))

    at_sites = set(map(tuple, sites))
    todo = [site for site in sites if tuple(site) not in known]
    for begin in track(range(0, len(todo), AT_ONCE), f"Draw {draw}: representers"):
        part = todo[begin : begin + AT_ONCE]
        values = pool.map(whole, [draw] * len(part), part, chunksize=4)
        known |= {tuple(site): value for site, value in zip(part, values, strict=True)}
        kept()
    for width in WIDTHS:
        best = sorted(known, key=lambda point: -known[point])[:AROUND]
        tries = [
            (np.array(point), [draw, len(known), i, j]) for i, point in enumerate(best) for j in range(NEAR)
        ]
        starts, seeds = zip(*tries, strict=True)
        n = len(tries)
        found = pool.map(best_around, [draw] * n, starts, [width] * n, seeds)
        for point, value in track(found, f"Draw {draw}: within {width:.0%} of the best", total=n):
            known[tuple(point)] = value
        kept()
        print(
            f"draw {draw}: best {max(known.values()):.4f} at {np.round(max(known, key=known.__getitem__), 3)}"
        )


def seconds(count: int = 64) -> None:
    """Print quartiles of the seconds that each stage takes, over the first representers.

    They are those of a core that has nothing else to do, whatever else runs on the machine.
    """
    took_s = []
    for site in track(domain().sites[:count], "Timing"):
        given, row = [p.light for p in pictures(0)], []
        for work, settings in zip((denoised, segmented, cleaned), Settings.at(site), strict=True):
            begun = process_time()
            given = [work(each, settings) for each in given]
            row.append(process_time() - begun)
        took_s.append(row)
    quartiles = np.quantile(took_s[1:], [0.25, 0.5, 0.75], axis=0)  # at first the libraries are loaded
    for stage, (low, middle, high) in zip(STAGES, quartiles.T, strict=True):
        print(f"{stage}: median {middle:.3g} s, half of them between {low:.3g} and {high:.3g} s")


def main() -> None:
    """Write the rows of some draws, or print seconds."""
    told = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    told.add_argument("--draws", type=int, nargs="+", default=[0, 1])
    told.add_argument("--seconds", action="store_true", help="only say how long the stages take")
    asked = told.parse_args()
    if asked.seconds:
        seconds()
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for draw in asked.draws:
            fill(draw, pool)


if __name__ == "__main__":
    main()
