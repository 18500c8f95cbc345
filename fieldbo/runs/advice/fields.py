"""Fields drawn from what a mission believes before it begins.

In a world made from a survey, they are those that a simulation takes for the truth, one per draw: of the
process fitted to the survey, given the mission's earlier readings. In other worlds, only the earlier readings
are known. With them, fields are joint draws of the posterior; hyperparameters that the model learns are drawn
with the weights that the readings give them. Without, fields are draws of the prior, and hyperparameters that
the model would learn are drawn from the model's prior, for each field anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.agent.agent import Agent
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.hyperparameters import Hyperparameters, ModelKernel, WithTrend, WithUnknownLevel
from fieldbo.belief.kernels import Kernel
from fieldbo.belief.mean_functions import PriorMean
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import ShareOfMaximum
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.errors import InputError, counted
from fieldbo.mission.mission import Mission
from fieldbo.world.fields.base import Field
from fieldbo.world.fields.gp_draw import DrawnFromBelief, joint
from fieldbo.world.fields.table import TableField

_MIDDLE_90 = 1.645
_MOST_REDRAWN = 1000
_BEYOND = 1_000_000_000  # draws of a world, from one seed of the advice to the next


@dataclass(frozen=True, eq=False)
class Draw:
    """A drawn field, as it is passed between processes.

    Attributes
    ----------
    number : int
        From 0; with the seed, it determines the draw.
    values : (N,) array
        At the domain's sites, in the unit of the values.
    hyperparameters : dict
        As from `Hyperparameters.to_plain`; empty if the world draws the field.
    of_world : int, optional
        Which draw of the world it is.
    """

    number: int
    values: Array
    hyperparameters: Mapping[str, Any]
    of_world: int | None = None

    def field(self, mission: Mission) -> Field:
        """Return the field in the mission's domain."""
        domain, survey = mission.world.domain, mission.world.field
        if self.of_world is not None:
            assert isinstance(survey, TableField)
            return replace(survey, draw=self.of_world)
        h = Hyperparameters.from_plain(self.hyperparameters, domain)
        mean = None if mission.earlier.mean is None else PriorMean(mission.earlier.mean, h.scale)
        return DrawnFromBelief(domain, frozen_array(self.values), h.kernel, h.scale, mean)


class FieldSource:
    """Draws fields from the belief with which a mission begins.

    Parameters
    ----------
    mission : Mission
    seed : int

    Attributes
    ----------
    words : str
        Where the fields come from, for the user.
    notes : tuple of str
        What the user should know of them.

    Examples
    --------
    >>> from fieldbo import load_mission
    >>> source = FieldSource(load_mission("gp-square"), seed=0)
    >>> source.words
    'the prior as [model] states it: matern52, length scales 0.1 and 0.1, variance 1, mean 0'
    >>> alone, among = source.draw([1])[0], source.draw([0, 1])[1]
    >>> bool((alone.values == among.values).all())
    True
    """

    def __init__(self, mission: Mission, seed: int) -> None:
        self.mission, self.seed = mission, seed
        self._survey = mission.world.field if isinstance(mission.world.field, TableField) else None
        if self._survey is not None:
            self.words, self.notes = _words_on_survey(mission, self._survey), tuple(_notes(mission))
            return
        agent = Agent(mission)
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
        self._spread = None if agent.readings or mission.model.every is None else _spread(mission)
        self._surfaces, self._members, self._weights = _members(agent)
        self.words = _words(agent, self._members, self._spread)
        self.notes = (*_defaults(mission, drawn=self._spread is not None), *_notes(mission))

    @on_one_blas_thread
    def draw(self, numbers: Sequence[int]) -> list[Draw]:
        """Return the fields of these numbers; each depends on its number and the seed only."""
        if self._survey is not None:
            return [self._of_world(self._survey, number) for number in numbers]
        generators = {number: stream(self.seed, "advice", number) for number in numbers}
        members: dict[int, list[int]] = {}
        for number, rng in generators.items():
            member = int(np.searchsorted(np.cumsum(self._weights)[:-1], rng.random()))
            members.setdefault(member, []).append(number)
        drawn: dict[int, Draw] = {}
        for member, same in members.items():
            h, surface = self._members[member], self._surfaces[member]
            if self._spread is None:
                fields = joint(surface, [generators[number] for number in same])
                pairs = [(h, y) for y in fields]
            else:
                pairs = [self._from_prior(h, generators[number]) for number in same]
            plain = {
                number: Draw(number, h.scale.to_user(y), h.to_plain())
                for number, (h, y) in zip(same, pairs, strict=True)
            }
            drawn |= plain
        return [drawn[number] for number in numbers]

    def _of_world(self, survey: TableField, number: int) -> Draw:
        """Return the draw that a simulation of the mission takes for the truth."""
        draw = number + _BEYOND * self.seed
        sites = self.mission.world.domain.sites
        return Draw(number, replace(survey, draw=draw).values(sites), {}, draw)

    def _from_prior(self, h: Hyperparameters, rng: np.random.Generator) -> tuple[Hyperparameters, Array]:
        """Return hyperparameters drawn from the prior around those of `h`, and a field drawn with them."""
        assert self._spread is not None
        theta = h.kernel.theta + self._spread * rng.standard_normal(len(self._spread))
        new = replace(h, kernel=h.kernel.with_theta(theta))
        return new, joint(_prior_surface(self.mission, new), [rng])[0]


class Draws:
    """The drawn fields, each drawn when it is first needed.

    Attributes
    ----------
    redrawn : int
        Number of fields that were drawn again, because a fraction of their maximum has no meaning.
    """

    def __init__(self, source: FieldSource) -> None:
        self._source, self._drawn = source, dict[int, Draw]()
        self.redrawn = 0

    def __call__(self, numbers: Sequence[int]) -> list[Draw]:
        """Return the fields of these numbers."""
        new = [number for number in numbers if number not in self._drawn]
        self._drawn |= {draw.number: draw for draw in self._source.draw(new)} if new else {}
        if isinstance(self._source.mission.question, ShareOfMaximum):
            for number in new:
                self._above_zero(number)
        return [self._drawn[number] for number in numbers]

    def _above_zero(self, number: int) -> None:
        """Draw a field again until its maximum lies above 0."""
        again = number
        while float(self._drawn[number].values.max()) <= 0:
            again += 1_000_000  # beyond the numbers of other fields
            self.redrawn += 1
            if self.redrawn > _MOST_REDRAWN:
                raise InputError(
                    "drawn fields lie below 0, so that a fraction of their maximum has no meaning",
                    expected="a model of values above 0",
                    where="model",
                    fix="set mean and variance in [model], or a threshold in the unit of the values",
                )
            draw = self._source.draw([again])[0]
            self._drawn[number] = replace(draw, number=number)


def _members(agent: Agent) -> tuple[list[Surface], list[Hyperparameters], Array]:
    """Return beliefs over the sites, the hyperparameters of each, and their weights."""
    h, mission = agent.hyperparameters, agent.mission
    if not agent.readings:
        known = replace(h, kernel=_without_trend(h.kernel))
        return [_prior_surface(mission, known)], [known], np.ones(1)
    surface, scale = agent.stated
    if not isinstance(surface, AveragedSurface):
        return [surface], [h], np.ones(1)
    kernels = [_without_level(s.belief.kernel) for s in surface.surfaces]
    return list(surface.surfaces), [replace(h, kernel=k, scale=scale) for k in kernels], surface.weights


def _prior_surface(mission: Mission, h: Hyperparameters) -> Surface:
    """Return the belief over the sites before any reading."""
    mean = mission.earlier.mean
    belief = Belief(h.kernel, prior_mean=None if mean is None else PriorMean(mean, h.scale))
    return Surface(belief, mission.world.domain.sites, mission.model.memory_bytes)


def _without_trend(kernel: ModelKernel) -> ModelKernel:
    """Return a kernel without its linear trend, whose size only readings tell."""
    return kernel.residual if isinstance(kernel, WithTrend) else kernel


def _without_level(kernel: Kernel) -> ModelKernel:
    """Return the kernel of the model in a kernel with an unknown level."""
    base = kernel.base if isinstance(kernel, WithUnknownLevel) else kernel
    assert isinstance(base, ModelKernel)
    return base


def _spread(mission: Mission) -> Array:
    """Return the prior standard deviations of the logs of length scales and variance."""
    prior = mission.model.prior(mission.world.domain)
    return prior.sds[: len(prior.sds) - (mission.model.noise == "learned")]


# -- in words --------------------------------------------------------------------------------------------


def _words(agent: Agent, members: Sequence[Hyperparameters], spread: Array | None) -> str:
    """Return where the fields come from."""
    mission, thetas = agent.mission, np.array([h.kernel.theta for h in members])
    # A single sentence of numbers: what was drawn is a range, what is known a number.
    units = members[0].scale.scale ** 2
    thetas[:, -1] += np.log(units)
    middle, low, high = np.median(thetas, axis=0), thetas.min(axis=0), thetas.max(axis=0)
    if spread is not None:
        low, high = (middle + sign * _MIDDLE_90 * spread for sign in (-1.0, 1.0))
    texts = [_range(*np.exp(numbers)) for numbers in zip(middle, low, high, strict=True)]
    axes = mission.world.domain.axes[: len(texts) - 1]
    lengths = [f"{text} {axis.unit}".rstrip() for text, axis in zip(texts[:-1], axes, strict=True)]
    log = ", of the logarithm" if mission.model.transform == "log" else ""
    numbers = (
        f"{mission.model.kernel}, length scale{'s' if len(lengths) > 1 else ''} {' and '.join(lengths)}, "
        f"variance {texts[-1]}{log}"
    )
    if agent.readings:
        sets = "" if len(members) == 1 else f"; {len(members)} sets of hyperparameters, by their weights"
        known = counted(len(mission.earlier.values), "reading")
        return f"the posterior given {known}: {numbers}{sets}"
    numbers += f", {_mean_words(mission, members[0].scale)}"
    if spread is None:
        return f"the prior as [model] states it: {numbers}"
    return f"the prior, with hyperparameters drawn for each field (median, central 90%): {numbers}"


def _range(middle: float, low: float, high: float) -> str:
    """Return a number, with the range around it if there is any."""
    return f"{middle:.3g}" if high < low * 1.001 else f"{middle:.3g} ({low:.3g} to {high:.3g})"


def _mean_words(mission: Mission, scale: ValueScale) -> str:
    if mission.earlier.mean is not None:
        return "around the prior mean"
    level = mission.world.quantity.amount(float(scale.to_user(np.zeros(1))[0]))
    stated = isinstance(mission.model.mean, int | float)
    at_threshold = not stated and mission.question.centre is not None
    return f"mean {level}{' (the threshold)' if at_threshold else ''}"


def _words_on_survey(mission: Mission, survey: TableField) -> str:
    """Return where the fields of a surveyed world come from."""
    table = len(survey.belief.sites)
    further = 0 if survey.known is None else len(survey.known.sites) - table
    lengths = [
        f"{length:.3g} {axis.unit}".rstrip()
        for length, axis in zip(survey.length_scales, mission.world.domain.axes, strict=True)
    ]
    log = ", of the logarithm" if survey.scale.transform == "log" else ""
    return (
        f"the process fitted to the survey of the world ({counted(table, 'reading')}"
        + (f", and {counted(further, 'earlier reading')}" if further else "")
        + f"): {survey.kernel.name}, length scale{'s' if len(lengths) > 1 else ''} "
        f"{' and '.join(lengths)}, variance {survey.kernel.variance * survey.scale.scale**2:.3g}{log}"
    )


def _defaults(mission: Mission, *, drawn: bool) -> list[str]:
    """Return a note if what [model] leaves out decides what the drawn fields look like."""
    model = mission.model
    missing = [name for name in ("length_scales", "variance") if getattr(model, name) is None]
    if model.mean in (None, "linear") and mission.earlier.mean is None:
        missing.append("mean")
    if not (drawn and missing):
        return []
    return [
        f"[model] does not state {' or '.join(missing)}: its defaults decide what the fields look like. "
        "State what you know, or begin with earlier readings (--prior)"
    ]


def _notes(mission: Mission) -> list[str]:
    """Return what the user should know of the drawn fields."""
    notes, survey = list[str](), mission.world.field
    if isinstance(survey, TableField):
        notes.append("the fields agree with the survey of the world: it must not have changed since")
        if survey.draw is None:
            notes.append(
                "fieldbo run simulates the mean of the fit, in which missions score better than in these "
                'fields; set truth = "draw" in [field] of the world to have it simulate them'
            )
    if not mission.world.sensor.declares_noise:
        notes.append(
            "the sensor declares no noise: a tenth of the spread of each field is assumed; set noise_sd in "
            "[sensor] of the world if you know it"
        )
    return notes
