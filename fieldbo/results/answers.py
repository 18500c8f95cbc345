"""The answer of a belief to a question: a classification of the sites, or the place of the optimum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.agent.failures import patches
from fieldbo.agent.unseen import (
    Inspection,
    Unexpected,
    Unseen,
    inspection,
    missable,
    unexpected,
    unnoticed,
    unseen,
)
from fieldbo.belief.confidence import (
    DRAWS,
    MIDDLE90,
    AnySurface,
    Confidence,
    Interval,
    OptimumConfidence,
    best_by_mean,
    chance_of_none,
    confidence,
    expected_f1,
    optimum_confidence,
    rivals_of,
    unknown,
    value_at,
)
from fieldbo.belief.covering import distance_text, to_nearest, yardsticks
from fieldbo.belief.question import LevelSet, Optimum, ShareOfMaximum, Side, threshold_if
from fieldbo.belief.readings import pool
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.georeference import TABLE_DIGITS
from fieldbo.domain.places import part_text
from fieldbo.domain.search import climbed
from fieldbo.messages import EndReason
from fieldbo.mission.mission import Mission
from fieldbo.results.metrics import F1, REGRET, Score, coverage, doubtful, match
from fieldbo.results.truth import Place, Truth, truth_of
from fieldbo.results.words import coordinates, on_one_class, on_one_side

_TARGETS = (0.9, 0.95)
_WORTH_A_NOTE = 0.01  # share of the domain that nobody has seen
_ALIKE = 6.0  # standard deviations of a reading: the range of some dozens of readings of one value
_WORTH_NAMING = 0.01  # share of the domain of a place that is not inspected
_NAN = float("nan")

PROBABILITY: dict[Side, str] = {"above": "exceedance", "below": "non_exceedance"}
"""The name, in maps and logs, of the probability that a site is in a level set on each side."""


@dataclass(frozen=True, eq=False)
class _Answer:
    """The answer of a belief, with its scores.

    Attributes
    ----------
    mission : Mission
    surface : Surface or AveragedSurface
        The belief over the sites, in model units.
    scale : ValueScale
        Transforms model units to the user's unit.
    blinded : bool
        Whether some readings dwarf all others: the belief is then sure of the other sites for no reason.
    """

    mission: Mission
    surface: AnySurface
    scale: ValueScale
    blinded: bool = False

    @property
    def truth(self) -> Truth | None:
        """The truth; None in a live world."""
        return truth_of(self.mission.world, self.mission.question)

    @property
    def coverage90(self) -> float:
        """Fraction of sites whose true value lies in the belief's central 90%; NaN in a live world."""
        if self.truth is None:
            return _NAN
        half = MIDDLE90 * self.surface.sd
        mean, user = self.surface.mean, self.scale.to_user
        return coverage(self.truth.values, user(mean - half), user(mean + half))


@dataclass(frozen=True, eq=False)
class LevelSetAnswer(_Answer):
    """The sites that are more likely than not on the asked side of the threshold."""

    kind: ClassVar[str] = "level-set"
    score: ClassVar[Score] = F1
    columns: ClassVar[tuple[str, ...]] = (
        "f1",
        "precision",
        "recall",
        "expected_f1",
        "unclassified",
        "coverage90",
    )
    """Scores of a `Step` that apply to a level set."""

    @cached_property
    def threshold(self) -> float:
        """The threshold in model units; a share of the maximum refers to the posterior mean's maximum."""
        return self.mission.question.level(float(self.surface.mean.max()), self.scale)

    @property
    def user_threshold(self) -> float:
        """The threshold in the user's unit."""
        return self.mission.question.level(float(self.scale.to_user(self.surface.mean.max())))

    @property
    def side(self) -> Side:
        """The side of the threshold on which the level set lies."""
        question = self.mission.question
        assert not isinstance(question, Optimum)
        return question.side

    @cached_property
    def inside(self) -> Mask:
        """Sites classified as in the level set, (N,) bool: those at least as likely in it as not."""
        return self.probability >= 0.5

    @property
    def above(self) -> Mask:
        """Sites classified as above the threshold, (N,) bool."""
        return self.inside if self.side == "above" else ~self.inside

    @cached_property
    def inspection(self) -> Inspection:
        """How far each site is from having been inspected."""
        return inspection(self.mission, self.surface, self.threshold)

    @cached_property
    def not_inspected(self) -> Mask:
        """Sites farther from any reading than the readings can speak for, (N,) bool."""
        return self.inspection.lacking

    @cached_property
    def probability(self) -> Array:
        """Probability (N,) that each site is in the level set."""
        return self.surface.exceedance(self.threshold)

    @property
    def wrong(self) -> Mask | None:
        """Misclassified sites, (N,) bool; None in a live world."""
        return None if self.truth is None else np.asarray(self.inside != self.truth.inside)

    def scores(self) -> dict[str, float]:
        """Return the scores of a `Step`, in O(N) unless no site is classified as inside."""
        known = {} if self.truth is None else vars(match(self.inside, self.truth.inside))
        return {
            **known,
            "expected_f1": self._expected_f1(),
            "unclassified": 1.0 if self.blinded else float(np.mean(doubtful(self.probability))),
            "coverage90": self.coverage90,
        }

    def _expected_f1(self) -> float:
        """Return the expected F1 without drawing the whole field; NaN if unknown."""
        if self.blinded:
            return _NAN
        if self.inside.any():
            return expected_f1(self.inside, self.probability)
        with one_blas_thread():
            return chance_of_none(self.surface, self.threshold, stream(self.mission.seed, "score"))

    @cached_property
    def confidence(self) -> Confidence:
        """Expected F1 and fraction of the domain in the set, with 90% intervals; unknown if `blinded`."""
        if self.blinded:
            unknown = Interval(_NAN, 0.0, 1.0)
            return Confidence(unknown, unknown)
        question, rng = self.mission.question, stream(self.mission.seed, "score")
        far = self.inspection.far
        with one_blas_thread():
            return confidence(
                self.surface,
                self.threshold,
                rng,
                threshold_if(question, self.scale),
                self.mission.world.domain.cells,
                np.array([far, missable(self.mission, self.surface, self.threshold, far)]),
                unnoticed(self.mission, self.surface, stream(self.mission.seed, "unnoticed"), DRAWS),
            )

    def summary(self, costs: Sequence[float], f1: Sequence[float]) -> dict[str, Any]:
        """Return the answer in numbers, as in ``summary.json``.

        Parameters
        ----------
        costs, f1 : sequences of float
            Cost and F1 after each step.
        """
        question, expected, area = self.mission.question, self.confidence, self.confidence.share
        domain, side = self.mission.world.domain, self.side
        whole = float(domain.cells.sum())
        scores = self.scores()
        share = {"threshold_of_maximum": question.share} if isinstance(question, ShareOfMaximum) else {}
        truth = self.truth
        return {
            "threshold": self.user_threshold,
            **share,
            **({"side": side} if side == "below" else {}),  # without it, as in all older summaries, above
            "threshold_true": None if truth is None else truth.threshold,
            **{name: scores.get(name) for name in ("f1", "precision", "recall")},
            "expected_f1": _known(expected.f1.value),
            "expected_f1_interval90": ends(expected.f1),
            "cost_to_target": {f"{t:g}": _known(F1.cost_to(costs, f1, t)) for t in _TARGETS},
            "unclassified": scores["unclassified"],
            "unknown": float(np.mean(unknown(self.surface))),
            **self._not_inspected(),
            "coverage90": _known(scores["coverage90"]),
            f"area_{side}": _known(whole * area.value),
            f"area_{side}_interval90": [whole * end for end in ends(area)],
            f"area_{side}_true": None if truth is None else float(domain.cells @ truth.inside),
            "area_unit": domain.cell_unit,
        }

    def _not_inspected(self) -> dict[str, Any]:
        """Return how much was not inspected, where, and how far the farthest place is from a reading."""
        domain, lacking, read = self.mission.world.domain, self.not_inspected, self.surface.belief.sites
        whole = float(domain.cells.sum())
        found = defaultdict[str, float](float)
        for sites, _ in patches(domain, lacking):
            if (area := float(domain.cells[sites].sum())) >= _WORTH_NAMING * whole:
                found[part_text(domain, domain.sites[sites])] += area
        largest = sorted(found.items(), key=lambda each: -each[1])
        places = [{"area": area, "place": place} for place, area in largest]
        far = float(to_nearest(domain, read).max()) if len(read) else None
        longest = float(np.linalg.norm(domain.extent / yardsticks(domain)))
        return {
            "not_inspected": float(domain.cells[lacking].sum()) / whole,
            "not_inspected_area": float(domain.cells[lacking].sum()),
            "not_inspected_places": places,
            "farthest": far,
            "largest_missed": None if far is None else min(2.0 * far, longest),
        }

    def notes(self, values: Array, reason: EndReason | None) -> list[str]:
        """Return notes on the answer, given the readings (n,) in the user's unit."""
        threshold, world = self.user_threshold, self.mission.world
        notes = []
        if reason is EndReason.QUESTION_ANSWERED and self.inside.all() == self.inside.any():
            notes.append(on_one_class(bool(self.above.all()), threshold, values, world.sensor.below))
        return [*notes, *on_one_side(threshold, values, world.sensor.below, world.quantity)]


@dataclass(frozen=True, eq=False)
class OptimumAnswer(_Answer):
    """The place of the optimum: the site of the highest posterior mean.

    In a continuous domain, the site or reading of the highest posterior mean, or the point to which
    `polished` has climbed from there.

    Attributes
    ----------
    place : Place, optional
        The reported point and its posterior mean, in model units.
    target : Place, optional
        The true optimum.
    """

    kind: ClassVar[str] = "optimum"
    score: ClassVar[Score] = REGRET
    columns: ClassVar[tuple[str, ...]] = ("regret", "reported_value", "coverage90")
    """Scores of a `Step` that apply to an optimum."""

    place: Place | None = field(default=None, repr=False)
    target: Place | None = field(default=None, repr=False)

    @cached_property
    def reported(self) -> Place:
        """The reported point, and its posterior mean in model units."""
        if self.place is not None:
            return self.place
        return Place(*best_by_mean(self.surface, self.mission.world.domain))

    @property
    def reported_value(self) -> float:
        """The posterior median at the reported point, in the user's unit."""
        return float(self.scale.to_user(self.reported.value))

    @cached_property
    def optimum(self) -> Place | None:
        """The true optimum, in the user's unit; None in a live world."""
        return self.target if self.truth is None or self.target is not None else self.truth.optimum

    @property
    def regret(self) -> float | None:
        """Difference between the true optimum and the true value at the reported point; None in a live world.

        In the user's unit.
        """
        if self.truth is None or self.optimum is None:
            return None
        place = self.reported
        value = self.truth.at(place.point) if place.site is None else float(self.truth.values[place.site])
        return abs(self.optimum.value - value)

    def polished(self, readings: Array) -> OptimumAnswer:
        """Return the answer after climbing the posterior mean in a continuous domain; elsewhere, itself.

        Parameters
        ----------
        readings : (n, d) array
            Sites of the readings. One of them may turn out to be the true optimum.
        """
        domain, belief = self.mission.world.domain, self.surface.belief
        if not domain.continuous or not belief.size:
            return self
        best = np.argsort(-self.surface.mean, kind="stable")[:8]
        starts = np.concatenate([self.reported.point[None], domain.sites[best], belief.sites[-8:]])

        def rising(point: Array) -> tuple[float, Array]:
            at = belief.with_gradients(point[None])
            return float(at.mean[0]), at.mean_gradient[0]

        top = climbed(rising, starts, domain)
        place = Place(top, float(belief.mean(top[None])[0]))
        if place.value < self.reported.value:
            place = self.reported
        seen = np.concatenate([domain.clipped(readings[domain.contains(readings)]), top[None]])
        return replace(self, place=place, target=self._optimum_with(seen))

    def _optimum_with(self, points: Array) -> Place | None:
        """Return the true optimum, with points (n, d) among the candidates."""
        if self.truth is None:
            return None
        values, sign = self.mission.world.truth(points), self.mission.question.sign
        best = int(np.argmax(sign * values))
        optimum = self.truth.optimum
        better = sign * values[best] > sign * optimum.value
        return Place(points[best], float(values[best])) if better else optimum

    def scores(self) -> dict[str, float]:
        """Return the scores of a `Step`, in O(N)."""
        regret = self.regret
        return {
            "regret": _NAN if regret is None else regret,
            "reported_value": self.reported_value,
            "coverage90": self.coverage90,
        }

    @cached_property
    def confidence(self) -> OptimumConfidence:
        """Expected regret, reported value and optimum, with 90% intervals."""
        rng = stream(self.mission.seed, "score")
        with one_blas_thread():
            rivals = rivals_of(self.surface, self.mission.world.domain, self.reported.point, rng)
            stated = optimum_confidence(rivals, self.reported.point, self.scale, rng)
        if self.unexpected is not None:
            stated = self._allowing_for(self.unexpected, stated)
        if self.unseen is None:
            return stated
        # A model that learned expects the best of many like sites to stand out; on a plateau none does.
        value, optimum, regret = stated.value, stated.optimum, stated.regret
        low = min(optimum.low, value.low) if self.mission.question.sign > 0 else optimum.low
        high = max(optimum.high, value.high) if self.mission.question.sign < 0 else optimum.high
        if self.unseen.excess:
            has = min(self.unseen.best, self.reported.value)  # the best reading may be elsewhere
            at, hidden = self.scale.to_user([has, self.unseen.best + self.unseen.excess]).tolist()
            regret = replace(regret, low=0.0, high=max(regret.high, abs(hidden - at)))
            low, high = min(low, hidden), max(high, hidden)
        return replace(stated, regret=regret, optimum=replace(optimum, low=low, high=high))

    def _allowing_for(self, read: Unexpected, stated: OptimumConfidence) -> OptimumConfidence:
        """Return stated intervals that also hold if the readings of a place are right, and not the model."""
        low, high = sorted(self.scale.to_user([read.low, read.high]).tolist())
        value, regret = stated.value, stated.regret
        if np.array_equal(read.place, self.reported.point):
            value = replace(value, low=min(value.low, low), high=max(value.high, high))
            at_best = value.high if self.mission.question.sign > 0 else value.low
        else:
            at_best = high if self.mission.question.sign > 0 else low
            regret = replace(regret, high=max(regret.high, abs(at_best - value.value)))
        optimum = stated.optimum
        optimum = replace(optimum, low=min(optimum.low, at_best), high=max(optimum.high, at_best))
        return OptimumConfidence(regret, value, optimum)

    @cached_property
    def unexpected(self) -> Unexpected | None:
        """Readings at the reported place, or else the best ones, that the model did not expect there.

        Elsewhere, only those count that were better than what is reported.
        """
        belief = self.surface.belief
        if self.blinded or not belief.size or self.mission.world.domain.control_sets:
            return None
        if (here := unexpected(self.surface, self.reported.point)) is not None:
            return here
        places, values, _, _ = pool(belief.sites, belief.values, np.ones(belief.size))
        there = unexpected(self.surface, places[int(np.argmax(values))])
        return there if there is not None and there.low > self.reported.value else None

    @cached_property
    def unseen(self) -> Unseen | None:
        """What may hide where nobody has looked, beyond what the model expects."""
        return unseen(self.mission, self.surface)

    def summary(self, costs: Sequence[float], regrets: Sequence[float]) -> dict[str, Any]:
        """Return the answer in numbers, as in ``summary.json``."""
        expected, question = self.confidence, self.mission.question
        optimum = self.optimum
        return {
            "goal": question.goal if isinstance(question, Optimum) else None,
            "reported_site": self.reported.point.tolist(),
            **self._degrees,
            "reported_value": expected.value.value,
            "reported_value_interval90": ends(expected.value),
            "regret": self.regret,
            "expected_regret": expected.regret.value,
            "expected_regret_interval90": ends(expected.regret),
            "optimum_expected": expected.optimum.value,
            "optimum_interval90": ends(expected.optimum),
            "optimum_true": None if optimum is None else optimum.value,
            "optimum_true_site": None if optimum is None else optimum.point.tolist(),
            **({} if self.unseen is None else self.unseen.to_plain()),
            "coverage90": _known(self.coverage90),
        }

    @property
    def _degrees(self) -> dict[str, Any]:
        georeference = self.mission.world.domain.georeference
        if georeference is None:
            return {}
        degrees = georeference.degrees(self.reported.point)[0].round(TABLE_DIGITS)
        return {"reported_site_degrees": degrees.tolist(), "crs": georeference.name}

    def notes(self, values: Array, reason: EndReason | None) -> list[str]:
        """Return notes on the answer: readings that the model did not expect, and what may hide unseen."""
        read = self.unexpected
        told = [self._in_words(read)] if read is not None and self._contradicted_by(read) else []
        return told if self.hidden is None else [*told, self.hidden]

    def _contradicted_by(self, read: Unexpected) -> bool:
        """Return whether what was read at a place lies outside the interval that the model states there."""
        stated = value_at(self.surface.over(read.place[None]), self.scale)
        return not stated.low <= float(self.scale.to_user(read.value)) <= stated.high

    @property
    def hidden(self) -> str | None:
        """What may hide where nobody has looked, in words; None if that is too little, or not known."""
        unseen, world = self.unseen, self.mission.world
        if unseen is None or unseen.share < _WORTH_A_NOTE:
            return None
        alike = float(np.ptp(self.surface.belief.values)) <= _ALIKE * unseen.sd
        if not (unseen.is_told or alike):
            return None
        best, hidden = self.scale.to_user([unseen.best, unseen.best + unseen.excess]).tolist()
        by = world.quantity.amount(float(f"{abs(hidden - best):.2g}"))
        more = "smaller" if self.mission.question.sign < 0 else "larger"
        width = f"than a patch of {distance_text(world.domain, unseen.width)} is wide"
        far = f"{unseen.share:.0%} of the domain is farther from all readings {width}"
        if alike:
            return (
                f"{far}: a {more} value may have been missed; the readings are too alike to say by how much"
            )
        return f"{far}: a value up to {by} {more} may be there, whatever the model says"

    def _in_words(self, read: Unexpected) -> str:
        """Return what was read at a place, what the model states there, and what to do."""
        domain, quantity = self.mission.world.domain, self.mission.world.quantity
        expected = float(self.surface.over(read.place[None]).mean[0])
        measured, stated = self.scale.to_user([read.value, expected]).tolist()
        side = "above" if measured > stated else "below"
        return (
            f"the readings at {coordinates(domain, read.place)} average {quantity.amount(measured)}, "
            f"{abs(read.deviations):.2g} standard deviations {side} what the other readings predict, but the "
            f"model states {quantity.amount(stated)}; the intervals allow for both. Read there again"
        )


Answer = LevelSetAnswer | OptimumAnswer

ANSWERS: dict[type, type[LevelSetAnswer] | type[OptimumAnswer]] = {
    LevelSet: LevelSetAnswer,
    ShareOfMaximum: LevelSetAnswer,
    Optimum: OptimumAnswer,
}
"""The type of answer to each type of question."""


def answer_of(mission: Mission, surface: AnySurface, scale: ValueScale, *, blinded: bool = False) -> Answer:
    """Return the answer of a belief to a mission's question.

    Examples
    --------
    >>> import fieldbo
    >>> agent = fieldbo.Agent(fieldbo.load_mission("lake-level-set"))
    >>> int(answer_of(agent.mission, agent.surface, agent.hyperparameters.scale).inside.sum())
    2500
    """
    return ANSWERS[type(mission.question)](mission, surface, scale, blinded)


def best_measured(mission: Mission, sites: Array, values: Array, noise_variances: Array) -> Place | None:
    """Return the place of the best reading, those of one site pooled; None unless an optimum is sought.

    None, too, without readings, and where queries leave variables free.

    Parameters
    ----------
    mission : Mission
    sites : (n, d) array
    values, noise_variances : (n,) arrays
        In the user's unit.

    Examples
    --------
    Two readings of one site, which disagree, and a third one elsewhere:

    >>> from fieldbo.policies import EI
    >>> from fieldbo.testing import small_mission
    >>> mission = small_mission(EI(), question=Optimum())
    >>> there = np.array([[0.0, 0], [0, 0], [5, 4]])
    >>> best_measured(mission, there, np.array([9.0, 3.0, 7.0]), np.full(3, 0.1))
    Place(point=array([5., 4.]), value=7.0, site=None)
    """
    if not isinstance(mission.question, Optimum) or mission.world.domain.control_sets or not len(values):
        return None
    exact = not (noise_variances > 0).all()
    places, pooled, _, _ = pool(sites, values, np.ones(len(values)) if exact else noise_variances)
    best = int(np.argmax(mission.question.sign * pooled))
    return Place(places[best], float(pooled[best]))


def ends(interval: Interval) -> list[float]:
    """Return the two ends of an interval."""
    return [interval.low, interval.high]


def _known(number: float) -> float | None:
    """Return a number, or None for NaN, which JSON does not have."""
    return None if np.isnan(number) else number
