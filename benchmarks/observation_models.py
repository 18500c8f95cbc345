"""Bias of a map under noise in the unit of the values, where the model is of their logarithm.

Random 2-d Matern-5/2 fields of the log (length scale 0.15 to 0.5 of the square, standard deviation 1, median
1) are read at random sites with normal noise. It is converted to the log scale at the reading, where one that
is not above 0 is left out, or at the prediction (`noise_at` in `[model]`).

Print, over a 31 x 31 grid and as means over the fields, the mean error of the log with its standard error,
the root mean square error, F1 of the upper 30% of the field, and the area above that threshold relative to
the true one: as mapped, and as expected. A map is smoother than the field and shows less of its upper part;
the expected area allows for that.

    python benchmarks/observation_models.py [--fields 40] [--readings 60 120] [--noise 0.1 0.2 0.4]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.belief.hyperparameters import Hyperparameters
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.belief.readings import Data
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.results.metrics import f1_score

DOMAIN = Domain.grid([Axis("x", "1", 0.0, 1.0), Axis("y", "1", 0.0, 1.0)], (31, 31))
QUESTION = Optimum()
QUANTILE = 0.7


@dataclass(frozen=True, eq=False)
class Trial:
    """The log of a field over the grid, and its readings."""

    lengths: tuple[float, float]
    truth: Array
    sites: Array
    values: Array
    noise_variances: Array

    @classmethod
    def draw(cls, seed: int, n: int, noise_sd: float) -> Trial:
        """Return trial number `seed`."""
        rng = np.random.default_rng([seed, n])
        length = float(rng.choice([0.15, 0.3, 0.5]))
        kernel = Matern52(np.full(2, length))
        sites = rng.uniform(size=(n, 2))
        everywhere = np.concatenate([DOMAIN.sites, sites])
        K = kernel(everywhere, everywhere)
        K[np.diag_indices_from(K)] += 1e-8
        field = np.linalg.cholesky(K) @ rng.standard_normal(len(K))
        values = np.exp(field[DOMAIN.size :]) + noise_sd * rng.standard_normal(n)
        return cls((length, length), field[: DOMAIN.size], sites, values, np.full(n, noise_sd**2))


def taken(trial: Trial, noise_at: str, *, learn: bool) -> tuple[Hyperparameters, Belief]:
    """Return the hyperparameters and the belief after all usable readings."""
    how = {"transform": "log", "noise_at": noise_at}
    known = Model(**how, learn=False, length_scales=trial.lengths, variance=1.0, mean=1.0)
    model, sensor = Model(**how) if learn else known, Sensor()
    h = model.initial(DOMAIN, QUESTION)
    good = model.observation_model(sensor).usable(h.scale, trial.values, trial.noise_variances)
    data = Data(trial.sites, trial.values, trial.noise_variances, sensor=sensor).only(good)
    if learn:
        h = model.fitted(h, DOMAIN, QUESTION, data, np.random.default_rng(0))
    return h, Belief(h.kernel).condition_on(data.sites, *model.normal_readings(h, data))


def score(trial: Trial, h: Hyperparameters, belief: Belief) -> list[float]:
    """Return mean and root mean square error of the log, F1, and mapped, expected and true area."""
    mean = belief.mean(DOMAIN.sites) * h.scale.scale + h.scale.shift
    sd = np.sqrt(belief.variance(DOMAIN.sites)) * abs(h.scale.scale)
    threshold = float(np.quantile(trial.truth, QUANTILE))
    error, above = mean - trial.truth, mean >= threshold
    truth = trial.truth >= threshold
    return [
        float(error.mean()),
        float(np.sqrt(np.mean(error**2))),
        f1_score(above, truth),
        float(above.mean()),
        float(ndtr((mean - threshold) / sd).mean()),
        float(truth.mean()),
    ]


@on_one_blas_thread
def row(noise_at: str, n: int, noise_sd: float, fields: int, *, learn: bool) -> list[float]:
    """Return the mean error and its standard error, the root mean square error, F1 and the two areas."""
    scores = []
    for seed in range(fields):
        trial = Trial.draw(seed, n, noise_sd)
        scores.append(score(trial, *taken(trial, noise_at, learn=learn)))
    errors = np.array([s[0] for s in scores])
    _, rmse, f1, mapped, expected, true = np.mean(scores, axis=0).tolist()
    error, deviation = float(errors.mean()), float(errors.std() / np.sqrt(fields))
    return [error, deviation, rmse, f1, mapped / true, expected / true]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fields", type=int, default=40, help="random fields per row")
    parser.add_argument("--readings", type=int, nargs="+", default=[60, 120])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.1, 0.2, 0.4], help="of the median")
    args = parser.parse_args()
    heads = ["hyperp.", "readings", "noise sd", "noise at", "mean error", "s.e.", "RMSE", "F1"]
    heads += ["mapped", "expected"]
    widths = [9, 9, 9, 11, 11, 6, 6, 6, 6, 8]
    print(" ".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True)))
    for learn in (False, True):
        for n in args.readings:
            for noise_sd in args.noise:
                for noise_at in ("reading", "prediction"):
                    error, *rest = row(noise_at, n, noise_sd, args.fields, learn=learn)
                    name = "learned" if learn else "known"
                    cells = f"{name:>9} {n:9d} {noise_sd:9g} {noise_at:>11} {error:+11.3f}"
                    print(cells, " ".join(f"{x:6.3f}" for x in rest), flush=True)


if __name__ == "__main__":
    main()
