"""Tuning a neural network: the test error of a perceptron over its settings, really trained.

A network with one hidden layer of rectified linear units classifies tumours as malignant or benign from the
30 features of scikit-learn's breast-cancer data (569 cases), after Liu, Wang and Wei (2023), *Bayesian
Optimization with Switching Cost: Regret Analysis and Lookahead Variants*, section 5.2. Where the paper
leaves details open, this is how they are filled in:

- Training is stochastic gradient descent with momentum 0.9 for 30 epochs on standardised features.
- The *schedule* is the exponent by which the learning rate falls with the number of cases seen so far,
  ``rate / (seen + 1)^schedule``: scikit-learn's ``learning_rate="invscaling"``, updated once per epoch.
- 70% of the cases are for training, the others for testing, stratified by class. A setting's error is the
  mean over five repeats, each with its own split and initial weights: seeds 0 to 4. So the same setting
  always has the same error with the same version of scikit-learn.
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
from fieldbo.tables.readings import read_readings
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind, check_axes, inside

REPEATS = 5
EPOCHS = 30
FEATURES = 30
VALUE = "test_error"
_LEAST = {"batch size": 1.0, "learning rate": 1e-9, "schedule": 0.0, "hidden units per feature": 1e-9}


class Settings(NamedTuple):
    """Settings of a training.

    Attributes
    ----------
    batch_size : int
    learning_rate : float
        Initial learning rate.
    schedule : float
        Exponent by which the learning rate falls.
    hidden : int
        Number of hidden units.
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
        # rounded so that settings survive being written as text
        return cls(round(batch), round(rate, 9), round(schedule, 9), max(1, round(factor * FEATURES)))


@lru_cache(maxsize=10_000)  # scores look up the same settings repeatedly
@on_one_blas_thread
def trained_error(settings: Settings) -> float:
    """Train the networks of all repeats, and return their mean error rate on test cases."""
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
        n_iter_no_change=EPOCHS,  # no early stopping
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # expected after 30 epochs
        network.fit(train, of_train)
    return float(np.mean(network.predict(test) != of_test))


@cache
def _split(seed: int) -> tuple[Any, Any, Any, Any]:
    """Return the features of training and test cases, and their classes: (train, test, classes, classes)."""
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
    """The test error over four settings: looked up where known, otherwise computed by training.

    Attributes
    ----------
    known : mapping of Settings to float
    best : (4,) array or None
        Settings of the least known error.
    """

    known: Mapping[Settings, float] = field(repr=False)
    best: Array | None = None
    notes: tuple[str, ...] = ()

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the test errors (N,) at `sites` (N, 4)."""
        wanted = [Settings.at(site) for site in sites]
        return np.array([self.known[s] if s in self.known else trained_error(s) for s in wanted])

    def optimum(self, goal: Literal["maximise", "minimise"]) -> Array | None:
        """Return the best known settings; better ones could only be found by training."""
        return self.best if goal == "minimise" else None


@settings("field")
class MLPTraining(FieldKind):
    """The test error of a perceptron on the breast-cancer data, the same for every draw.

    The axes, in this order: batch size, initial learning rate, schedule, hidden units per feature.
    """

    file: str | None = None
    """CSV of known errors in the world's folder; it must hold all of the domain's sites. Without it, each
    value takes a training, of a fifth of a second or more."""

    def make(self, domain: Domain, draw: int = 0, folder: Path | None = None) -> TrainedNetworks:
        """Return the error over the domain's four settings."""
        check_axes("the settings of a network", domain, _LEAST)
        if self.file is None:
            return TrainedNetworks({})
        if folder is None:
            raise InputError("a table field needs a folder", expected="a world loaded from a file")
        path = inside(folder, self.file, where="field.file")
        table = read_readings(path, [a.name for a in domain.axes], VALUE)
        known = {Settings.at(site): float(e) for site, e in zip(table.sites, table.values, strict=True)}
        missing = sum(Settings.at(site) not in known for site in domain.sites)
        if missing:
            raise InputError(
                f"{missing} of {domain.size} sites have no row",
                expected="one row for each of the domain's sites",
                where=str(path),
                fix="recompute the table, or remove `file` from [field] and wait for the trainings",
            )
        return TrainedNetworks(known, table.sites[int(np.argmin(table.values))])
