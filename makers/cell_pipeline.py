"""Compute scores.csv of the world cell-pipeline: F1 scores at its representers, and of a search beyond.

    python makers/cell_pipeline.py --draws 0 1
    python makers/cell_pipeline.py --seconds

The first takes about seven minutes per draw on two idle cores. You can interrupt it: scores in the table
are not computed again, so delete the table after changing the stages or the pictures. Run it again to
continue the search from the best. The second prints how long each stage takes, for the costs in world.toml.
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
from fieldbo.world.fields.gallery.pipeline import (
    STAGES,
    VALUE,
    Micrograph,
    MicrographPipeline,
    Settings,
    State,
    cleaned,
    denoised,
    f1,
    micrographs,
    segmented,
    worked,
)

WORLD = Path(__file__).parents[1] / "worlds" / "cell-pipeline"
TABLE = WORLD / "scores.csv"
KIND = MicrographPipeline()
AT_ONCE = 64  # number of scores per write
AROUND = 8  # number of best points to search around
NEAR = 4  # tries around each per round
# A try has 1 setting of the first stage, 4 of the second for each of those, 4 of the third for each of those.
INNER = (1, 4, 4)
WIDTHS = (0.15, 0.08, 0.04, 0.02)  # of each round of the search, as fractions of the axes
STAGE_OF = np.array([0, 0, 1, 1, 1, 2, 2])  # of each axis


def domain() -> Domain:
    """Return the domain as world.toml has it."""
    table = tomllib.loads((WORLD / "world.toml").read_text(encoding="utf-8"))["domain"]
    axes = [Axis(a["name"], a["unit"], a["low"], a["high"]) for a in table["axes"]]
    return Domain.box(axes, table["representers"])


@cache
def pictures(draw: int) -> tuple[Micrograph, ...]:
    """Return the micrographs of a draw."""
    return micrographs(draw, KIND.images, KIND.size)


def score(draw: int, state: State) -> float:
    """Return the F1 score of the last stage's output."""
    return f1(state.made[-1], [p.cells for p in pictures(draw)])


def whole(draw: int, site: Array) -> float:
    """Return the score at a site, running all stages."""
    return score(draw, worked(pictures(draw), Settings.at(site))[0])


def best_around(draw: int, site: Array, width: float, seed: list[int]) -> tuple[Array, float]:
    """Return the best point of a search around a site, and its score; cached stages make it cheap."""
    rng, box = np.random.default_rng(seed), domain()
    best_site, best, state = site, -1.0, None
    at = [site, site, site]  # the point around which each stage tries settings
    for tries in np.ndindex(INNER):
        for k in range(len(INNER)):
            if any(tries[k + 1 :]):
                continue  # keep this stage's settings until the later stages have tried all of theirs
            step = width * box.extent * rng.standard_normal(box.dimension) * (k == STAGE_OF)
            before = at[k - 1] if k else site
            at[k] = np.clip(before + step, box.low, box.high)
        state, _ = worked(pictures(draw), Settings.at(at[-1]), state)
        value = score(draw, state)
        if value > best:
            best_site, best = at[-1], value
    return best_site, best


def read() -> list[tuple[int, Array, float]]:
    """Return the rows of the table: draw, point and score."""
    if not TABLE.exists():
        return []
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [(int(row[0]), np.array([float(x) for x in row[1:-1]]), float(row[-1])) for row in rows]


def write(rows: list[tuple[int, Array, float]]) -> None:
    """Replace the table, completely or not at all."""
    draft = TABLE.with_suffix(".part")
    with draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["draw", *(a.name for a in domain().axes), VALUE])
        # all digits of a point, which must be recognised
        table.writerows([draw, *map(repr, point.tolist()), repr(v)] for draw, point, v in rows)
    draft.replace(TABLE)


def fill(draw: int, pool: ProcessPoolExecutor) -> None:
    """Compute the rows of a draw, and search around the best of them."""
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
        results = pool.map(best_around, [draw] * n, starts, [width] * n, seeds)
        for point, value in track(results, f"Draw {draw}: within {width:.0%} of the best", total=n):
            known[tuple(point)] = value
        kept()
        print(
            f"draw {draw}: best {max(known.values()):.4f} at {np.round(max(known, key=known.__getitem__), 3)}"
        )


def seconds(count: int = 64) -> None:
    """Print quartiles of the seconds that each stage takes, over the first representers.

    Processor time is measured, so other load on the machine has little influence.
    """
    took_s = []
    for site in track(domain().sites[:count], "Timing"):
        given, row = [p.light for p in pictures(0)], []
        for work, settings in zip((denoised, segmented, cleaned), Settings.at(site), strict=True):
            begun = process_time()
            given = [work(each, settings) for each in given]
            row.append(process_time() - begun)
        took_s.append(row)
    quartiles = np.quantile(took_s[1:], [0.25, 0.5, 0.75], axis=0)  # the first loads libraries
    for stage, (low, middle, high) in zip(STAGES, quartiles.T, strict=True):
        print(f"{stage}: median {middle:.3g} s, half of them between {low:.3g} and {high:.3g} s")


def main() -> None:
    """Write the rows of some draws, or print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--seconds", action="store_true", help="only print how long the stages take")
    arguments = parser.parse_args()
    if arguments.seconds:
        seconds()
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for draw in arguments.draws:
            fill(draw, pool)


if __name__ == "__main__":
    main()
