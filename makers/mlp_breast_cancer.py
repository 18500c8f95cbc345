"""Compute errors.csv of the world mlp-breast-cancer: test errors at its representers, and of a search.

    python makers/mlp_breast_cancer.py

takes some minutes on two cores. The first rows are the domain's representers. The others come from a search
around the best ones, so that the least error in the table is close to the minimum.
"""

from __future__ import annotations

import csv
import tomllib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.progress import track

from fieldbo._numerics.arrays import Array
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.world.fields.gallery.mlp import VALUE, Settings, trained_error

WORLD = Path(__file__).parents[1] / "worlds" / "mlp-breast-cancer"
AROUND = 12  # number of best points to search around
WIDTHS = (0.15, 0.07, 0.03)  # of each round of the search, as fractions of the axes
NEAR = 8  # points around each, per round


def domain() -> Domain:
    """Return the domain as world.toml has it."""
    table = tomllib.loads((WORLD / "world.toml").read_text(encoding="utf-8"))["domain"]
    axes = [Axis(a["name"], a["unit"], a["low"], a["high"]) for a in table["axes"]]
    return Domain.box(axes, table["representers"])


def main() -> None:
    """Write the table, one row per point."""
    box, rng = domain(), np.random.default_rng(0)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:

        def errors(points: Array, what: str) -> Array:
            results = pool.map(trained_error, [Settings.at(p) for p in points], chunksize=4)
            return np.array(list(track(results, what, total=len(points))))

        points, values = box.sites, errors(box.sites, "Training at the representers")
        for width in WIDTHS:
            best = points[np.argsort(values, kind="stable")[:AROUND]]
            gaps = width * box.extent * rng.standard_normal((NEAR, AROUND, box.dimension))
            near = np.clip((best + gaps).reshape(-1, box.dimension), box.low, box.high)
            points = np.concatenate([points, near])
            values = np.concatenate([values, errors(near, f"Searching within {width:.0%} of the best")])
    with (WORLD / "errors.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*(a.name for a in box.axes), VALUE])
        # all digits of a point, which must be recognised; an error counts cases among 5 x 171
        rows.writerows(
            [*map(repr, point.tolist()), f"{e:.9f}"] for point, e in zip(points, values, strict=True)
        )


if __name__ == "__main__":
    main()
