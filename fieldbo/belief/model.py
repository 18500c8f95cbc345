"""What an agent assumes of the field: kernel, transform of the values, and when it learns the rest."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.fit import Fit, LogNormalPrior, fit
from fieldbo.belief.kernels import KERNELS, Stationary, kernel
from fieldbo.belief.outliers import believable, believable_at_first, fit_believed
from fieldbo.belief.question import Question
from fieldbo.belief.value_scale import Transform, ValueScale
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError

LEAST_READINGS = 5
"""A fit waits for so many readings: fewer say nothing of a length scale."""

PRIOR_READINGS = 5
"""How many readings the prior mean and variance count for when values are standardised."""

_SHORTEST = 1e-6  # share of an axis: a length scale beyond it is a slip of units


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """A kernel in model units, the way to those units, and the noise where it is learned.

    Parameters
    ----------
    kernel : Stationary
    scale : ValueScale
    noise_variance : float, optional
        In model units; None: what the sensor declares holds.
    declared : float, optional
        The declared noise variance, in model units, that turned out to be the learned one: others are in
        proportion. None: all readings have the learned one.
    """

    kernel: Stationary
    scale: ValueScale
    noise_variance: float | None = None
    declared: float | None = None

    def noise_to_model(self, noise_variances: Array, values: Array) -> Array:
        """Return the noise variances (n,) of readings in model units: as declared, or as learned."""
        told = self.scale.noise_to_model(noise_variances, values)
        if self.noise_variance is None:
            return told
        if self.declared is None:
            return np.full(len(values), self.noise_variance)
        return told * (self.noise_variance / self.declared)

    def to_plain(self) -> dict[str, Any]:
        """Return them as strings, numbers and lists."""
        return {
            "kernel": self.kernel.name,
            "length_scales": self.kernel.length_scales.tolist(),
            "variance": float(self.kernel.variance),
            "transform": self.scale.transform,
            "shift": self.scale.shift,
            "scale": self.scale.scale,
            "noise_variance": self.noise_variance,
            "declared": self.declared,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Hyperparameters:
        """Return what `to_plain` wrote."""
        return cls(
            kernel(plain["kernel"], plain["length_scales"], plain["variance"]),
            ValueScale(plain["transform"], plain["shift"], plain["scale"]),
            plain["noise_variance"],
            plain["declared"],
        )


@dataclass(frozen=True)
class Model:
    """The agent's model of the field.

    Parameters
    ----------
    kernel : {"se", "matern32", "matern52"}
    transform : {"none", "log"}
        ``"log"`` for skewed, positive values: the model is of their log.
    learn : bool or {"every": k, "until": n}
        Whether hyperparameters are fitted on the way: true is after each ten readings (and after the
        initial ones); at least five readings are needed. After n readings they stay as they are.
    noise : {"declared", "learned"}
        Whether the sensor's noise is believed, or fitted with the rest: one factor on what it declares,
        where that differs between places or settings.
    outliers : {"kept", "tested"}
        Whether every reading is believed, or only those that agree with the others: see
        :mod:`fieldbo.belief.outliers`.
    length_scales : list of float, optional
        Where to start from, or to stay: one an axis, in its unit. Default: 0.3 of each axis' extent.
    variance : float, optional
        Prior variance, in the squared unit of the (transformed) values; 1 until the first fit.
    mean : float, optional
        Prior mean, in the user's unit. Default: the threshold; without one, 0 until the first fit.

    memory_gb : float, optional
        What covariances between sites may take in memory. What needs more is computed anew at each
        decision: slower, with the same choices. By default half of what is free.

    Raises
    ------
    InputError
        A number is out of its range.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    kernel: Literal["se", "matern32", "matern52"] = "matern52"
    transform: Transform = "none"
    learn: bool | Mapping[Literal["every", "until"], int] = True
    noise: Literal["declared", "learned"] = "declared"
    outliers: Literal["kept", "tested"] = "kept"
    length_scales: tuple[float, ...] | None = None
    variance: float | None = None
    mean: float | None = None
    memory_gb: float | None = None

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise UnknownNameError.of("kernel", self.kernel, KERNELS, where="model.kernel")
        told = self.learn if isinstance(self.learn, Mapping) else {"every": 10}
        if not {"every"} <= set(told) <= {"every", "until"} or min(told.values()) < 1:
            raise InputError(
                f"learn = {dict(told)}",
                expected="true, false, { every = 1 or more } or { every = 10, until = 200 }",
                where="model.learn",
            )
        if self.variance is not None and not (np.isfinite(self.variance) and self.variance > 0):
            raise InputError(f"variance {self.variance}", expected="a number above 0", where="model.variance")
        if self.mean is not None and not np.isfinite(self.mean):
            raise InputError(f"mean {self.mean}", expected="a finite number", where="model.mean")
        if self.memory_gb is not None and not self.memory_gb >= 0:
            raise InputError(f"memory_gb = {self.memory_gb}", expected="at least 0", where="model.memory_gb")
        if self.noise == "learned" and not self.learn:
            raise InputError(
                'noise = "learned" with learn = false',
                expected="a model that learns",
                where="model.noise",
                fix='set learn = true, or noise = "declared"',
            )

    @property
    def every(self) -> int | None:
        """How many readings lie between fits; None if the model never learns."""
        if isinstance(self.learn, Mapping):
            return int(self.learn["every"])
        return 10 if self.learn else None

    @property
    def until(self) -> float:
        """After how many readings the model learns no more; infinity: never."""
        return self.learn.get("until", np.inf) if isinstance(self.learn, Mapping) else np.inf

    @property
    def memory_bytes(self) -> float | None:
        """What covariances may take; None leaves it to the machine."""
        return None if self.memory_gb is None else 1e9 * self.memory_gb

    def initial(self, domain: Domain, question: Question) -> Hyperparameters:
        """Return the hyperparameters before any fit.

        Raises
        ------
        InputError
            The number of length scales differs from the domain's axes, or a log of a mean not above 0.
        """
        scales = tuple(0.3 * domain.extent) if self.length_scales is None else self.length_scales
        if len(scales) != domain.dimension:
            raise InputError(
                f"{len(scales)} length scales",
                expected=f"{domain.dimension}, for {', '.join(a.name for a in domain.axes)}",
                where="model.length_scales",
            )
        shares = np.asarray(scales) / domain.extent
        if not np.all((shares > _SHORTEST) & (shares < 1.0 / _SHORTEST)):
            raise InputError(
                f"length scales {list(scales)}",
                expected="numbers above 0, in the axes' units, neither a millionth nor a million times of "
                + ", ".join(f"{a.name}'s {a.extent:g} {a.unit}" for a in domain.axes),
                where="model.length_scales",
            )
        scale = ValueScale(self.transform, self._centre(question) or 0.0, question.sign)
        return Hyperparameters(kernel(self.kernel, scales, self.variance or 1.0), scale)

    def _centre(self, question: Question) -> float | None:
        """Return the prior mean, transformed; None where neither model nor question has one."""
        mean = question.centre if self.mean is None else self.mean
        if mean is None:
            return None
        try:
            return float(ValueScale(self.transform).to_model([mean])[0])
        except InputError as error:
            raise error.at("model.mean") from None

    def _standardised(self, y: Array, question: Question) -> ValueScale:
        """Return the scale of transformed values `y` (n,) and the prior together.

        The prior mean (and variance, where one is set) counts as much as five readings. A few readings far
        from a threshold would otherwise make the model sure that no site comes near it.
        """
        n, centre = len(y), self._centre(question)
        if centre is None:
            shift = float(y.mean())
            squares = float(np.sum((y - shift) ** 2))
        else:
            shift = (float(y.sum()) + PRIOR_READINGS * centre) / (n + PRIOR_READINGS)
            squares = float(np.sum((y - shift) ** 2)) + PRIOR_READINGS * (centre - shift) ** 2
        if self.variance is not None:
            n, squares = n + PRIOR_READINGS, squares + PRIOR_READINGS * self.variance
        spread = float(np.sqrt(squares / n))
        return ValueScale(self.transform, shift, question.sign * (spread if spread > 0 else 1.0))

    def believed(
        self, hyperparameters: Hyperparameters, sites: Array, values: Array, noise_variances: Array
    ) -> Mask:
        """Return which readings (n,), in the user's units, the model believes."""
        if self.outliers == "kept" or not len(values):
            return np.ones(len(values), dtype=bool)
        h = hyperparameters
        return believable(
            h.kernel, sites, h.scale.to_model(values), h.noise_to_model(noise_variances, values)
        )

    def fitted(
        self,
        present: Hyperparameters,
        domain: Domain,
        question: Question,
        sites: Array,
        values: Array,
        noise_variances: Array,
        rng: np.random.Generator,
        *,
        noise_varies: bool = False,
    ) -> Hyperparameters:
        """Fit to the readings that are believed, in the user's units.

        Parameters
        ----------
        present : Hyperparameters
            One more start of the search.
        domain : Domain
        question : Question
        sites : (n, d) array
        values, noise_variances : (n,) arrays
            In the user's units.
        rng : numpy.random.Generator
            Scrambles the starts; each fit of a test takes the same ones.
        noise_varies : bool
            Whether the sensor's noise differs between places or settings.
        """

        def fit_to(kept: Mask) -> Hyperparameters:
            some = sites[kept], values[kept], noise_variances[kept]
            return self._fitted_to(present, domain, question, *some, deepcopy(rng), noise_varies)

        if self.outliers == "kept":
            return fit_to(np.ones(len(values), dtype=bool))
        plain = ValueScale(self.transform)
        first = believable_at_first(
            replace(self.initial(domain, question).kernel, variance=1.0),
            sites,
            plain.to_model(values),
            plain.noise_to_model(noise_variances, values),
        )
        return fit_believed(first, fit_to, lambda h: self.believed(h, sites, values, noise_variances))

    def _fitted_to(
        self,
        present: Hyperparameters,
        domain: Domain,
        question: Question,
        sites: Array,
        values: Array,
        noise_variances: Array,
        rng: np.random.Generator,
        noise_varies: bool,
    ) -> Hyperparameters:
        """Standardise, then maximise the penalised likelihood."""
        scale = self._standardised(ValueScale(self.transform).to_model(values), question)
        told = scale.noise_to_model(noise_variances, values)
        y, learns = scale.to_model(values), self.noise == "learned"
        prior = LogNormalPrior.standard(domain.extent, with_noise=learns)
        rescale = 2 * np.log(present.scale.scale / scale.scale)
        theta = present.kernel.theta.copy()
        theta[-1] += rescale
        if not learns:
            found = fit(present.kernel, sites, y, told, prior, rng, present=theta)
            return replace(present, kernel=_stationary(found), scale=scale)
        typical = float(np.exp(np.log(told).mean())) if noise_varies and np.all(told > 0) else None
        known = present.noise_variance
        theta = np.append(theta, np.log(0.01) if known is None else np.log(known) + rescale)
        relative = None if typical is None else told / typical
        found = fit(present.kernel, sites, y, None, prior, rng, present=theta, relative=relative)
        return Hyperparameters(_stationary(found), scale, found.noise_variance, typical)


def _stationary(found: Fit) -> Stationary:
    assert isinstance(found.kernel, Stationary)
    return found.kernel
