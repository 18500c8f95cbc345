"""Effect of absurd readings on a map, with and without the outlier test.

Random 2-d Matern-5/2 fields (length scale 0.15 to 0.5 of the square, variance 1) are read at random sites;
5% of the readings are off by ten standard deviations of the values, either way. For each model, print the
root-mean-square error of the posterior mean over a 31 x 31 grid, in standard deviations of the field, and
F1 of the upper 30% of the field, both averaged over the fields.

    python benchmarks/outliers.py [--fields 20] [--readings 50 120] [--noise 0.001 0.1] [--off noise]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.belief.hyperparameters import Hyperparameters
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.model import Model
from fieldbo.belief.outliers import believable, believable_at_first, fit_believed
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet
from fieldbo.belief.readings import Data
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.results.metrics import f1_score

DOMAIN = Domain.grid([Axis("x", "1", 0.0, 1.0), Axis("y", "1", 0.0, 1.0)], (31, 31))
QUESTION = LevelSet(0.0)
SHARE, SIZE, QUANTILE = 0.05, 10.0, 0.7


@dataclass(frozen=True, eq=False)
class Trial:
    """A field over the grid, its readings, and the errors added to the bad ones."""

    kernel: Matern52
    truth: Array
    sites: Array
    clean: Array
    error: Array
    noise_variances: Array

    @classmethod
    def draw(cls, seed: int, n: int, noise_sd: float, off: str) -> Trial:
        """Return trial number `seed`."""
        rng = np.random.default_rng([seed, n])
        kernel = Matern52(np.full(2, rng.choice([0.15, 0.3, 0.5])))
        sites = rng.uniform(size=(n, 2))
        everywhere = np.concatenate([DOMAIN.sites, sites])
        K = kernel(everywhere, everywhere)
        K[np.diag_indices_from(K)] += 1e-8
        field = np.linalg.cholesky(K) @ rng.standard_normal(len(K))
        error = np.zeros(n)
        bad = rng.permutation(n)[: max(1, round(SHARE * n))]
        error[bad] = SIZE * (1.0 if off == "values" else noise_sd) * rng.choice([-1.0, 1.0], len(bad))
        truth = field[: DOMAIN.size]
        clean = field[DOMAIN.size :] + noise_sd * rng.standard_normal(n)
        return cls(kernel, truth, sites, clean, error, np.full(n, noise_sd**2))

    def score(self, found: Hyperparameters, values: Array, kept: Mask) -> tuple[float, float]:
        """Return error and F1 of the posterior given the kept readings."""
        scale = found.scale
        noise = scale.noise_to_model(self.noise_variances, values)
        belief = Belief(found.kernel).condition_on(
            self.sites[kept], scale.to_model(values)[kept], noise[kept]
        )
        mean = scale.to_user(belief.mean(DOMAIN.sites))
        threshold = np.quantile(self.truth, QUANTILE)
        error = float(np.sqrt(np.mean((mean - self.truth) ** 2)))
        return error, f1_score(mean >= threshold, self.truth >= threshold)


class Known:
    """The true hyperparameters of the field."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        plain = Model(learn=False, length_scales=tuple(trial.kernel.length_scales), variance=1.0)
        self.found = plain.initial(DOMAIN, QUESTION)

    def plain(self, values: Array) -> tuple[Hyperparameters, Mask]:
        """Return the hyperparameters, and all readings kept."""
        return self.found, np.ones(len(values), dtype=bool)

    def tested(self, values: Array) -> tuple[Hyperparameters, Mask]:
        """Return the hyperparameters, and the readings that pass the test."""
        t = self.trial
        return self.found, believable(t.kernel, t.sites, values, t.noise_variances)


class Learned(Known):
    """Hyperparameters fitted to the readings."""

    def _fit_to(self, values: Array, kept: Mask) -> Hyperparameters:
        t, model = self.trial, Model()
        first, rng = model.initial(DOMAIN, QUESTION), np.random.default_rng(0)
        data = Data(t.sites, values, t.noise_variances).only(kept)
        return model.fitted(first, DOMAIN, QUESTION, data, rng)

    def plain(self, values: Array) -> tuple[Hyperparameters, Mask]:
        """Return a fit to all readings."""
        kept = np.ones(len(values), dtype=bool)
        return self._fit_to(values, kept), kept

    def tested(self, values: Array) -> tuple[Hyperparameters, Mask]:
        """Return a fit to the believed readings, and which these are."""
        t = self.trial

        def believed(found: Hyperparameters) -> Mask:
            noise = found.scale.noise_to_model(t.noise_variances, values)
            return believable(found.kernel, t.sites, found.scale.to_model(values), noise)

        unfitted = Model().initial(DOMAIN, QUESTION).kernel
        first = believable_at_first(unfitted, t.sites, values, t.noise_variances)
        found = fit_believed(first, lambda kept: self._fit_to(values, kept), believed)
        return found, believed(found)


@on_one_blas_thread
def row(kind: type[Known], n: int, noise_sd: float, off: str, fields: int) -> list[float]:
    """Return errors and F1 of four models, and fractions of bad readings found and good ones dropped."""
    scores, found, dropped = [], [], []
    for seed in range(fields):
        trial = Trial.draw(seed, n, noise_sd, off)
        model, dirty, bad = kind(trial), trial.clean + trial.error, trial.error != 0
        cases = [(trial.clean, model.plain), (dirty, model.plain), (dirty, model.tested)]
        cases.append((trial.clean, model.tested))
        line = []
        for values, fitted in cases:
            hyperparameters, kept = fitted(values)
            line.append(trial.score(hyperparameters, values, kept))
            if fitted == model.tested:
                dropped.append(float(np.mean(~kept[~bad] if values is dirty else ~kept)))
                if values is dirty:
                    found.append(float(np.mean(~kept[bad])))
        scores.append(line)
    mean = np.mean(scores, axis=0)
    alarms = np.reshape(dropped, (-1, 2)).mean(axis=0)
    return [*mean.T.ravel().tolist(), float(np.mean(found)), *alarms.tolist()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fields", type=int, default=20, help="random fields per row")
    parser.add_argument("--readings", type=int, nargs="+", default=[50, 120])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.001, 0.1], help="standard deviations")
    parser.add_argument(
        "--off", choices=["values", "noise"], default="values", help="unit of the ten standard deviations"
    )
    args = parser.parse_args()
    models = ["clean", "dirty", "tested", "cl.+test"]
    print(f"{'':29}  {'RMSE':^35}  {'F1':^35}  {'bad':>6} {'good dropped':>15}")
    heads = ["hyperp.", "readings", "noise sd", *models, *models, "found", "dirty", "clean"]
    widths = [9, 9, 9, *[8] * 8, 8, 7, 7]
    print(" ".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True)))
    for kind in (Known, Learned):
        for n in args.readings:
            for noise_sd in args.noise:
                *scores, found, alarms, clean = row(kind, n, noise_sd, args.off, args.fields)
                cells = [f"{kind.__name__.lower():>9} {n:9d} {noise_sd:9g}", *(f"{s:8.3f}" for s in scores)]
                print(" ".join(cells), f"{found:8.0%} {alarms:7.2%} {clean:7.2%}", flush=True)


if __name__ == "__main__":
    main()
