"""Compute errors.csv of the world svm-grid: the validation error of a support vector machine at every site.

    python makers/svm_grid.py

takes about ten minutes on two cores. Errors are reproducible; fit times depend on the machine.
"""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import numpy as np
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

WORLD = Path(__file__).parents[1] / "worlds" / "svm-grid"
BRIGHTEST = 16.0  # value of a pixel; scales features to [0, 1]
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def ticks() -> dict[str, np.ndarray]:
    """Return the grid's values along each axis, as world.toml has them."""
    world = tomllib.loads((WORLD / "world.toml").read_text(encoding="utf-8"))
    return {a["name"]: np.linspace(a["low"], a["high"], a["count"]) for a in world["domain"]["axes"]}


def validated(
    log10_C: float, log10_gamma: np.ndarray, log2_components: float, jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return validation errors, and fit times in seconds, at each of `log10_gamma` (k,); both are (k,).

    They are means over the folds. Principal components come from the training folds alone.
    """
    images, digits = load_digits(return_X_y=True)
    machine = make_pipeline(PCA(round(2**log2_components), svd_solver="full"), SVC(C=10.0**log10_C))
    settings = {"svc__gamma": 10.0**log10_gamma}
    search = GridSearchCV(machine, settings, cv=FOLDS, refit=False, n_jobs=jobs)
    results = search.fit(images / BRIGHTEST, digits).cv_results_
    return 1.0 - results["mean_test_score"], results["mean_fit_time"]


def main() -> None:
    """Write the table, one row per site, the last axis fastest."""
    axes = ticks()
    Cs, gammas, components = axes.values()
    table = np.empty((2, len(Cs), len(gammas), len(components)))
    for i, j in track(list(np.ndindex(len(Cs), len(components))), "Validating"):
        table[:, i, :, j] = validated(Cs[i], gammas, components[j], jobs=-1)
    with (WORLD / "errors.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*axes, "validation_error", "fit_time_s"])
        for i, j, k in np.ndindex(table.shape[1:]):
            error, seconds = table[:, i, j, k]
            rows.writerow([Cs[i], gammas[j], components[k], f"{error:.6f}", f"{seconds:.4f}"])


if __name__ == "__main__":
    main()
