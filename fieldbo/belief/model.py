"""The agent's model of the field: kernel, transform of the values, and when hyperparameters are fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveFloat

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.hyperparameters import Hyperparameters, ModelKernel, in_other_units, kernel_on
from fieldbo.belief.marginal_likelihood import Fit, LogNormalPrior, fit_kernel, typical_noise
from fieldbo.belief.observation_model import Linearised, NoiseAt, ObservationModel
from fieldbo.belief.outliers import believable, believable_at_first, fit_believed
from fieldbo.belief.question import Question
from fieldbo.belief.readings import Data
from fieldbo.belief.shore_kernel import ShoreMatern52
from fieldbo.belief.value_scale import Transform, ValueScale
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError, at, counted
from fieldbo.validation import settings

LEAST_READINGS = 5
"""Readings before the first fit: fewer do not determine a length scale."""

PRIOR_READINGS = 5
"""Weight of the prior mean and variance, in readings, when values are standardised."""

_ROUNDS = 5
"""Most rounds in which the scale of a field with censored readings is sought."""

_SETTLED = 0.05  # change of that scale, relative to it

_LEAST_RELATIVE = 1e-6  # noise variance of a reading that is declared exact, relative to the learned one
_SHORTEST = 1e-6  # of an axis: a length scale beyond it is a mistaken unit


@settings("model")
class Model:
    """The agent's model of the field: a Gaussian process, its scale, and how it learns.

    Everything has a default: ``Model()`` starts from the domain's extent and fits its hyperparameters every
    ten readings. Fix what you know and set ``learn=False`` for a model that stays as it is.

    Examples
    --------
    >>> Model(kernel="se", learn=False, length_scales=(200.0, 3.0), variance=4.0, mean=20.0).every is None
    True
    >>> Model(learn={"every": 25, "until": 200}).every
    25
    """

    kernel: Literal["se", "matern32", "matern52", "shore-matern52"] = "matern52"
    """Squared exponential, or Matern with smoothness 3/2 or 5/2; ``"shore-matern52"`` measures distances
    along the water, around spits and islands."""
    transform: Transform = "none"
    """``"log"`` models the log of the values: for skewed, positive ones."""
    learn: bool | Mapping[Literal["every", "until"], int] = True
    """Whether to fit the hyperparameters during the mission: ``true`` fits after the initial readings and
    then every ten, once there are five. ``{ every = k, until = n }`` fits every k readings, up to n."""
    noise: Literal["declared", "learned"] = "declared"
    """Whether to trust the sensor's noise variance or to fit it. Where the declared noise differs between
    sites or settings, a single factor is fitted."""
    noise_at: NoiseAt = "prediction"
    """Where noise is converted to a log scale: at the model's ``"prediction"``, or at the ``"reading"``, as
    in runs of earlier versions. The latter overestimates the field, the more the noisier the readings."""
    average: bool = True
    """Whether results of a model that learns are averaged over all hyperparameters that explain the readings,
    or, as in runs of earlier versions, stated from the fit alone. The latter is too sure of itself."""
    outliers: Literal["kept", "tested"] | None = None
    """Whether to trust every reading (``"kept"``), or to leave out those that contradict the others
    (``"tested"``). Default: kept in simulation, tested by hand and with a robot, unless its sensor reads on
    the way."""
    length_scales: tuple[float, ...] | None = None
    """Initial or fixed length scales, one per axis in its unit; a single one for ``"shore-matern52"``.
    Default: 0.3 of each axis' extent, or of the longest."""
    variance: PositiveFloat | None = None
    """Prior variance, in the squared unit of the (transformed) values. Default: 1 until the first fit."""
    mean: float | Literal["linear"] | None = None
    """Prior mean, in the unit of the values; or ``"linear"``, for a linear trend along the axes that is
    estimated with the field. Default: the threshold, or 0 until the first fit."""
    memory_gb: Annotated[float, Field(ge=0, allow_inf_nan=True)] | None = None
    """Memory for covariances between sites. If they need more, each decision recomputes them: slower, with
    the same choices. Default: half of the free memory."""

    def __post_init__(self) -> None:
        schedule = self.learn if isinstance(self.learn, Mapping) else {"every": 10}
        if not {"every"} <= set(schedule) <= {"every", "until"} or min(schedule.values()) < 1:
            raise InputError(
                f"learn = {{ {', '.join(f'{key} = {number}' for key, number in schedule.items())} }}",
                expected="true, false, { every = 1 or more } or { every = 10, until = 200 }",
                where="model.learn",
            )
        if self.noise == "learned" and not self.learn:
            raise InputError(
                'noise = "learned" needs a model that learns, but learn = false',
                expected='noise = "declared", or a model that learns',
                where="model.noise",
                fix='set learn = true, or noise = "declared"',
            )

    @property
    def every(self) -> int | None:
        """Number of readings between fits; None if the model never learns."""
        if isinstance(self.learn, Mapping):
            return int(self.learn["every"])
        return 10 if self.learn else None

    @property
    def until(self) -> float:
        """Number of readings after which the model stops learning; infinity if it never does."""
        return self.learn.get("until", np.inf) if isinstance(self.learn, Mapping) else np.inf

    @property
    def memory_bytes(self) -> float | None:
        """Memory for covariances; None for half of what is free."""
        return None if self.memory_gb is None else 1e9 * self.memory_gb

    def initial(self, domain: Domain, question: Question, *, has_prior_mean: bool = False) -> Hyperparameters:
        """Return the hyperparameters before any fit.

        Parameters
        ----------
        domain : Domain
        question : Question
        has_prior_mean : bool
            Whether the mission has a prior mean, from which values are then expected to differ by 0.

        Raises
        ------
        InputError
            The number of length scales differs from that of the axes, one is out of range, or the mean has no
            log.
        """
        reach = self.reach(domain)
        scales = tuple(0.3 * reach) if self.length_scales is None else self.length_scales
        if self.kernel != ShoreMatern52.name:
            domain.check_length_scales(scales, "model.length_scales")
        elif len(scales) != 1:
            raise InputError(
                f"{counted(len(scales), 'length scale')} for kernel = {self.kernel!r}",
                expected=f"one, in {domain.axes[0].unit}, for all axes",
                where="model.length_scales",
                fix=f"set length_scales = [{max(scales):g}], or leave it out",
            )
        shares = np.asarray(scales) / reach
        if not np.all((shares > _SHORTEST) & (shares < 1.0 / _SHORTEST)):
            raise InputError(
                f"a length scale is out of range: {list(scales)}",
                expected="numbers above 0, in the axes' units, within a factor of a million of "
                + ", ".join(f"{a.name}'s {a.extent:g} {a.unit}" for a in domain.axes),
                where="model.length_scales",
            )
        centre = 0.0 if has_prior_mean else self._centre(question) or 0.0
        scale = ValueScale(self.transform, centre, question.sign)
        variance, trend = self.variance or 1.0, self.mean == "linear"
        return Hyperparameters(kernel_on(domain, self.kernel, scales, variance, trend=trend), scale)

    def prior(self, domain: Domain) -> LogNormalPrior:
        """Return the prior of the hyperparameters, for standardised values."""
        return LogNormalPrior.standard(self.reach(domain), with_noise=self.noise == "learned")

    def reach(self, domain: Domain) -> Array:
        """Return the lengths that length scales are compared with: one for each of them."""
        longest = domain.extent.max(keepdims=True)
        return longest if self.kernel == ShoreMatern52.name else domain.extent

    def _centre(self, question: Question) -> float | None:
        """Return the transformed prior mean; None if neither the model nor the question has one."""
        mean = question.centre if self.mean is None or self.mean == "linear" else self.mean
        if mean is None:
            return None
        with at("model.mean"):
            return float(ValueScale(self.transform).to_model([mean])[0])

    def standardised(
        self, y: Array, question: Question, *, uncertainty: Array | float = 0.0, has_prior_mean: bool
    ) -> ValueScale:
        """Return the scale that standardises the transformed values `y` (n,) and the prior together.

        With a prior mean, `y` are the residuals, and their own prior mean is 0. Values that are themselves
        uncertain, with variances `uncertainty` (n,), are spread wider than their means.

        The prior mean (and variance, if set) counts as much as five readings. Otherwise a few readings far
        from a threshold would convince the model that no site comes near it.
        """
        n, centre = len(y), 0.0 if has_prior_mean else self._centre(question)
        if centre is None:
            shift = float(y.mean())
            squares = float(np.sum((y - shift) ** 2))
        else:
            shift = (float(y.sum()) + PRIOR_READINGS * centre) / (n + PRIOR_READINGS)
            squares = float(np.sum((y - shift) ** 2)) + PRIOR_READINGS * (centre - shift) ** 2
        squares += float(np.sum(uncertainty))
        if self.variance is not None:
            n, squares = n + PRIOR_READINGS, squares + PRIOR_READINGS * self.variance
        spread = float(np.sqrt(squares / n))
        rounding = n * np.finfo(float).eps * float(np.abs(y).max(initial=abs(shift)))  # of equal values
        return ValueScale(self.transform, shift, question.sign * (spread if spread > rounding else 1.0))

    def observation_model(self, sensor: Sensor) -> ObservationModel:
        """Return how the readings of a sensor follow from the field."""
        return ObservationModel(self.noise_at, sensor.noise_share, sensor.below)

    def believed(self, h: Hyperparameters, data: Data) -> Mask:
        """Return which readings (n,) the model believes."""
        if self.outliers != "tested" or not len(data.values):
            return np.ones(len(data.values), dtype=bool)
        y, v = self.normal_readings(h, data)
        residuals = y if data.means is None else y - h.scale.unshifted(data.means)
        return believable(h.kernel, data.sites, residuals, v)

    def normal_readings(self, h: Hyperparameters, data: Data) -> tuple[Array, Array]:
        """Return the normal readings that stand for readings.

        Returns
        -------
        values, variances : (n,) arrays
            In model units, as a `Belief` takes them.
        """

        def prior(_: Array) -> tuple[Array, Array]:
            unknown = np.zeros(len(data.values))
            expected = unknown if data.means is None else h.scale.unshifted(data.means)
            return expected, h.kernel(data.sites, data.sites)

        observed = self.observation_model(data.sensor)
        return observed.in_model_units(h, data.values, data.noise_variances, prior)

    def fitted(
        self,
        present: Hyperparameters,
        domain: Domain,
        question: Question,
        data: Data,
        rng: np.random.Generator,
        *,
        noise_varies: bool = False,
    ) -> Hyperparameters:
        """Return the hyperparameters fitted to the readings that the model believes.

        Parameters
        ----------
        present : Hyperparameters
            A further start of the search; readings that are not normal are taken as they are given these.
        domain : Domain
        question : Question
        data : Data
        rng : numpy.random.Generator
            Scrambles the starts; all fits of one test for outliers use the same ones.
        noise_varies : bool
            Whether the readings' declared noise differs.
        """
        observed = self.observation_model(data.sensor)
        by_prediction = observed.noise_at == "prediction" and self.transform == "log"

        def fit_to(kept: Mask) -> Hyperparameters:
            believed = data.only(kept)  # others say nothing about the noise of their neighbours, either
            censored = observed.censored(believed.values)
            y, v, expected, uncertainty = self.transformed(present, question, believed)
            if (~censored).any():  # the noise is part of the spread of normal readings, too
                uncertainty = np.where(uncertainty > 0, uncertainty + np.median(v[~censored]), 0.0)
            return self._fit_to(
                present,
                self.standardised(
                    expected, question, uncertainty=uncertainty, has_prior_mean=data.means is not None
                ),
                self.prior(domain),
                *(believed.sites, y, v, censored),
                deepcopy(rng),
                noise_varies or by_prediction,
            )

        if self.outliers != "tested":
            return fit_to(np.ones(len(data.values), dtype=bool))
        unfitted = in_other_units(self.initial(domain, question).kernel, 1.0)
        y, v, _, _ = self.transformed(present, question, data)
        first = believable_at_first(unfitted, data.sites, y, v)
        return fit_believed(first, fit_to, lambda h: self.believed(h, data))

    def transformed(self, present: Hyperparameters, question: Question, data: Data) -> Linearised:
        """Return readings (n,) on the transform's scale, less their prior means.

        Normal ones with the declared noise stand for those that are not normal. The prior's mean is theirs.
        """
        has_prior_mean = data.means is not None

        def centre(guess: Array) -> float:
            return self.standardised(guess, question, has_prior_mean=has_prior_mean).shift

        censored = self.observation_model(data.sensor).censored(data.values).any()
        grows = data.sensor.noise_share > 0 and self.transform == "none"  # logs have no unit
        if not (censored or grows):
            return self._linearise_given(
                present, present.kernel.variance * present.scale.scale**2, data, centre
            )
        # What lies below the limit depends on level and spread of the field, and they on it; so does noise
        # that grows with the value. The present spread may still be in another unit.
        scale = self._as_read(question, data)
        for _ in range(_ROUNDS):
            before = scale
            taken = self._linearise_given(present, scale.scale**2, data, _always(before.shift))
            scale = self.standardised(
                taken.expected, question, uncertainty=taken.uncertainty, has_prior_mean=has_prior_mean
            )
            changed = abs(scale.scale - before.scale) + abs(scale.shift - before.shift)
            if changed < _SETTLED * abs(scale.scale):
                break
        return taken

    def _linearise_given(
        self, present: Hyperparameters, variance: float, data: Data, centre: Callable[[Array], float]
    ) -> Linearised:
        """Return readings linearised on the transform's scale, given the variance of the field there."""
        kernel = in_other_units(present.kernel, variance, abs(present.scale.scale))
        h = replace(present, kernel=kernel, scale=ValueScale(self.transform))
        return self.linearised(h, data, centre)

    def _as_read(self, question: Question, data: Data) -> ValueScale:
        """Return the scale if readings were the values; censored ones count as at their limit."""
        plain, values = ValueScale(self.transform), data.sensor.at_least_the_limit(data.values)
        y = plain.to_model(values)
        if data.means is not None:
            y = y - plain.unshifted(data.means)
        scale = self.standardised(y, question, has_prior_mean=data.means is not None)
        if np.ptp(np.append(y, scale.shift)) > 0:
            return scale
        natural = float(np.abs(values).max()) or 1.0 if self.transform == "none" else 1.0
        return replace(scale, scale=question.sign * natural)

    def linearised(
        self, h: Hyperparameters, data: Data, centre: Callable[[Array], float] = lambda guess: 0.0
    ) -> Linearised:
        """Return readings (n,) to fit hyperparameters to, less their prior means, with the declared noise.

        Those that stand for censored ones have variances of their own. In the model units of `h`. The field
        is expected to lie, on average, `centre` of first guesses of the values (n,) above the prior means.
        """
        factor = h.noise_factor
        learned = None if factor is None or h.noise_variance is None else factor
        declared = replace(h, noise_variance=learned, declared=None if learned is None else 1.0)
        means = 0.0 if data.means is None else h.scale.unshifted(data.means)

        def prior(guess: Array) -> tuple[Array, Array]:
            expected = means + centre(guess - means)
            return np.broadcast_to(expected, guess.shape), h.kernel(data.sites, data.sites)

        observed = self.observation_model(data.sensor)
        y, v, expected, uncertainty = observed.linearised(declared, data.values, data.noise_variances, prior)
        if learned is not None:
            v = np.where(observed.censored(data.values), v, v / learned)
        return Linearised(y - means, v, expected - means, uncertainty)

    def _fit_to(
        self,
        present: Hyperparameters,
        scale: ValueScale,
        prior: LogNormalPrior,
        sites: Array,
        values: Array,
        noise_variances: Array,
        censored: Mask,
        rng: np.random.Generator,
        noise_varies: bool,
    ) -> Hyperparameters:
        """Maximise the penalised likelihood of transformed readings, standardised by `scale`."""
        y, declared = (values - scale.shift) / scale.scale, noise_variances / scale.scale**2
        learns = self.noise == "learned"
        rescale = 2 * np.log(present.scale.scale / scale.scale)
        theta = present.kernel.theta.copy()
        theta[-1] += rescale
        if not learns:
            fitted = fit_kernel(present.kernel, sites, y, declared, prior, rng, present=theta)
            return replace(present, kernel=_kernel_of(fitted), scale=scale)
        prior = prior.with_noise(declared[~censored])
        known, typical = present.noise_variance, None
        theta = np.append(theta, np.log(prior.medians[-1]) if known is None else np.log(known) + rescale)
        if noise_varies:
            typical = typical_noise(declared[~censored])
        relative, fixed = relative_noise(declared, censored, typical)
        fitted = fit_kernel(
            present.kernel, sites, y, None, prior, rng, present=theta, relative=relative, fixed=fixed
        )
        return Hyperparameters(_kernel_of(fitted), scale, fitted.noise_variance, typical)


def _always(value: float) -> Callable[[Array], float]:
    return lambda guess: value


def relative_noise(
    declared: Array, censored: Mask, typical: float | None
) -> tuple[Array | None, Array | None]:
    """Return what a fit that learns the noise takes as `relative` and `fixed` variances.

    The normal readings that stand for censored ones have the variances that they have, whatever the noise.

    Parameters
    ----------
    declared : (n,) array
        Noise variances, or the variances of the normal readings that stand for censored ones.
    censored : (n,) bool array
    typical : float or None
        The declared noise variance to which the learned one corresponds; None if all readings have the same.
    """
    times = np.ones(len(declared)) if typical is None else np.maximum(declared / typical, _LEAST_RELATIVE)
    if not censored.any():
        return (None if typical is None else times), None
    return np.where(censored, 0.0, times), np.where(censored, declared, 0.0)


def _kernel_of(fitted: Fit) -> ModelKernel:
    assert isinstance(fitted.kernel, ModelKernel)
    return fitted.kernel
