"""What ``fieldbo new world`` prints of a new world."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fieldbo.mission.new.writer import NewWorld


def report(made: NewWorld, rows: str, assumed: Sequence[str] = ()) -> list[str]:
    """Return what was made and `assumed`, as lines."""
    import numpy as np

    from fieldbo.belief.question import LevelSet
    from fieldbo.mission.description import describe_parts_of_cost
    from fieldbo.mission.new.mission import one_sided
    from fieldbo.results.words import question_text

    field, mission, world = made.field, made.loaded, made.loaded.world
    values, truth = field.readings.values, world.truth(world.domain.sites)
    unit = "" if world.quantity.unit in ("", "1") else f" {world.quantity.unit}"
    if isinstance(mission.question, LevelSet):
        question = mission.question
        inside = np.mean(question.sign * truth >= question.sign * question.threshold)
        scales = [f"{a.name} {v:.4g} m" for a, v in zip(world.domain.axes, field.length_scales, strict=True)]
        details = f"on {len(truth)} sites; {inside:.0%} of them at or {question.side} the threshold"
        single = " (of a single reading)" if made.pooled > 1 else ""
        of_sensor = f"noise sd {world.sensor.noise_sd:g}{unit}{single}"
        costs = [f"  sensor    {of_sensor}; set your instrument's in [sensor]"]
    else:  # length scales in ranges show which settings matter: those with a short one
        ranges = zip(world.domain.axes, field.length_scales / field.extent, strict=True)
        scales = [f"in ranges: {', '.join(f'{axis.name} {scale:.2g}' for axis, scale in ranges)}"]
        details = f"over the settings; the table says little about {made.little_known:.0%} of them"
        sample = world.cost.least_sampling_cost(world.domain.sites)
        costs = describe_parts_of_cost(world) or [f"  cost      {sample:g} {world.cost_unit} per sample"]
    noise = f"{field.noise_sd:.3g}" + (" of the log" if field.scale.transform == "log" else unit)
    noise += f" (of the mean of {made.pooled:.3g} rows)" if made.pooled > 1 else ""
    notes = [*field.notes, *field.details, *made.notes, *_unreachable(mission.unreachable), *assumed]
    notes += one_sided(mission.question, values, world.quantity)
    unknown = ", costs to be learned" if mission.costs == "unknown" else ""
    return [
        f"world in {made.world}, mission in {made.mission}",
        f"  {rows:<9} {len(values)}, {values.min():g} to {values.max():g}{unit}",
        *map(_noted, notes),
        f"  fitted    length scales {', '.join(scales)}; noise sd {noise}",
        f"  quality   leave-one-out error {field.loo_rmse:.4g}{unit}, which explains "
        f"{max(0.0, field.explained):.0%} of the variance; 90% intervals hold {field.loo_coverage:.0%} "
        f"of the {rows}",
        *_validation(made, unit),
        f"  truth     {truth.min():.4g} to {truth.max():.4g}{unit} {details}",
        *costs,
        f"  mission   {question_text(mission.question, world.quantity)} {mission.policy_kind}, battery "
        f"{mission.vehicles[0].battery:g} {world.cost_unit}{unknown}",
        f"next: fieldbo run {world.name}",
    ]


def _unreachable(number: int) -> list[str]:
    """Return a warning if there are sites that the vehicle can't reach."""
    return [f"warning: {number} sites can't be reached from the start; they are left out"] if number else []


def _noted(note: str) -> str:
    """Return a note or a warning as a line."""
    text = note.removeprefix("warning: ")
    return f"  {'note' if text == note else 'warning':<9} {text}"


def _validation(made: NewWorld, unit: str) -> list[str]:
    """Return how well lines or blocks are predicted that are left out, and which error to trust, as lines."""
    validation = made.validation
    if validation is None:
        return []
    lines = [
        f"  {validation.kind + 's':<9} {validation.result(unit)}",
        f"  trust     {validation.advice(unit)}",
    ]
    return [*lines, *([f"  warning   {validation.warning}"] if validation.warning else [])]
