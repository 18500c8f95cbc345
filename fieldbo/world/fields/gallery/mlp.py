"""Tuning a neural network: the test error of a perceptron that is really trained, over its settings.

A network with one hidden layer of rectified linear units tells malignant from benign tumours by the 30
features of scikit-learn's breast-cancer data (569 cases). After Liu, Wang and Wei (2023), *Bayesian
Optimization with Switching Cost: Regret Analysis and Lookahead Variants*, section 5.2; where that says too
little to repeat, this is how it is read:

- Training is stochastic gradient descent with momentum 0.9, 30 times through the training data, whose
  features are standardised.
- The *schedule* is the exponent by which the learning rate falls with the number of cases seen so far,
  ``rate / (seen + 1)^schedule``, as scikit-learn's ``learning_rate="invscaling"`` has it once each time
  through the data.
- 70% of the cases are for training, the others for the test, in equal shares of both classes. A setting's
  error is the mean over five repeats, each with a split and first weights of its own: seeds 0 to 4. So the
  same setting always has the same error, on the same version of scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.world.fields.base import Field, FieldKind
from fieldbo.world.fields.table import inside, read_readings

REPEATS = 5
EPOCHS = 30
FEATURES = 30
VALUE = "test_error"


class Settings(NamedTuple):
    """What is chosen before a network is trained.

    Attributes
    ----------
    batch_size : int
    learning_rate : float
        At first.
    schedule : float
        The exponent by which it falls.
    hidden : int
        Units of the hidden layer.
    """

    batch_size: int
    learning_rate: float
    schedule: float
    hidden: int

    @classmethod
    def at(cls, site: Array) -> Self:
        """Return the settings at a site (4,), whose last coordinate is hidden units per feature.

        Examples
        --------
        >>> Settings.at(np.array([63.7, 0.5, 0.25, 1.5]))
        Settings(batch_size=64, learning_rate=0.5, schedule=0.25, hidden=45)
        """
        batch, rate, schedule, factor = (float(x) for x in site)
        # rounded so that a setting survives the way through a text
        return cls(round(batch), round(rate, 9), round(schedule, 9), max(1, round(factor * FEATURES)))


@lru_cache(maxsize=10_000)  # scores look the same settings up again and again
@on_one_blas_thread
def trained_error(settings: Settings) -> float:
    """Train the networks of all repeats, and return the mean share of test cases that they get wrong."""
    return float(np.mean([_missed(settings, seed) for seed in range(REPEATS)]))


def _missed(settings: Settings, seed: int) -> float:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    train, test, of_train, of_test = _split(seed)
    network = MLPClassifier(
        (settings.hidden,),
        solver="sgd",
        batch_size=settings.batch_size,
        learning_rate="invscaling",
        learning_rate_init=settings.learning_rate,
        power_t=settings.schedule,
        max_iter=EPOCHS,
        n_iter_no_change=EPOCHS,  # no early end
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 30 times through the data are all there are
        network.fit(train, of_train)
    return float(np.mean(network.predict(test) != of_test))


@cache
def _split(seed: int) -> tuple[Any, Any, Any, Any]:
    """Return features and classes for training and test, as (train, test, classes, classes)."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    features, malignant = load_breast_cancer(return_X_y=True)
    train, test, of_train, of_test = train_test_split(
        features, malignant, test_size=0.3, stratify=malignant, random_state=seed
    )
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test), of_train, of_test


@dataclass(frozen=True, eq=False)
class TrainedNetworks(Field):
    """The test error over four settings: looked up where it is known, and trained for elsewhere.

    Attributes
    ----------
    known : mapping of Settings to float
    best : (4,) array or None
        Where the least of the known errors is.
    """

    known: Mapping[Settings, float] = field(repr=False)
    best: Array | None = None
    notes: tuple[str, ...] = ()

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the test errors (N,) at `sites` (N, 4)."""
        wanted = [Settings.at(site) for site in sites]
        return np.array([self.known[s] if s in self.known else trained_error(s) for s in wanted])

    def optimum(self, goal: Literal["maximise", "minimise"]) -> Array | None:
        """Return the best setting that is known: what else there is could only be found by training."""
        return self.best if goal == "minimise" else None


@dataclass(frozen=True)
class MLPTraining(FieldKind):
    """The test error of a perceptron on the breast-cancer data; the same for every draw.

    The axes, in this order: batch size, first learning rate, schedule, hidden units per feature.

    Parameters
    ----------
    file : str, optional
        A CSV in the world's folder with errors that are known; it must hold all of the domain's sites.
        Without it each value takes a training, a fifth of a second or more.
    """

    file: str | None = None

    def make(self, domain: Domain, draw: int = 0, folder: Path | None = None) -> TrainedNetworks:
        """Return the error over the domain's four settings."""
        if domain.dimension != 4:
            raise InputError(
                f"the settings of a network over {domain.dimension} axes",
                expected="four: batch size, learning rate, schedule, hidden units per feature",
                where="field.kind",
            )
        for axis, at_least in zip(domain.axes, (1, 1e-9, 0, 1e-9), strict=True):
            if axis.low < at_least:
                raise InputError(
                    f"axis {axis.name!r} starts at {axis.low:g}", expected=f"at least {at_least:g}"
                )
        if self.file is None:
            return TrainedNetworks({})
        if folder is None:
            raise InputError("a table without a folder", expected="a world that was loaded from a file")
        path = inside(folder, self.file, where="field.file")
        table = read_readings(path, [a.name for a in domain.axes], VALUE)
        known = {Settings.at(site): float(e) for site, e in zip(table.sites, table.values, strict=True)}
        missing = sum(Settings.at(site) not in known for site in domain.sites)
        if missing:
            raise InputError(
                f"{missing} of {domain.size} sites have no row",
                expected="a row for each of the points that stand for the domain",
                where=str(path),
                fix="compute the table anew, or leave the file out and wait for the trainings",
            )
        return TrainedNetworks(known, table.sites[int(np.argmin(table.values))])
