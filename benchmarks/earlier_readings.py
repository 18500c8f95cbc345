"""How much cheaper a mission is that begins with the readings of the day before.

Each field is a draw of gp-lake. In a day it changes: today's is ``sqrt(1 - c^2)`` times yesterday's plus c
times an independent draw, with c such that the difference has the given standard deviation; the field's own
is 1. A run of the same mission with another seed reads yesterday's field. Today's mission runs without those
readings, and with them (one day old, per_day is the change). For each change and model, print the cost at
which F1 of the upper 30% first reaches 0.9, and the ratio of both: means over the fields, and their standard
errors. A run that never reaches it counts with its battery.

    python benchmarks/earlier_readings.py [--fields 10] [--changes 0.1 0.2 0.4] [--models known learned]
                                          [--factor 1]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np

import fieldbo
from fieldbo._numerics.arrays import Array
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet
from fieldbo.mission.mission import Mission
from fieldbo.mission.prior import Prior, aged
from fieldbo.results.result import Result
from fieldbo.world.fields.base import Field

TARGET, QUANTILE, OTHER = 0.9, 0.7, 1_000
"""F1 to reach; threshold; offset of the independent draws' numbers."""

MODELS = {"known": None, "learned": Model()}


@dataclass(frozen=True, eq=False)
class Changed(Field):
    """A field after a change."""

    before: Field
    other: Field
    change: float

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        kept = 1.0 - self.change**2 / 2.0  # Var(kept f + c g - f) = 2 - 2 kept, with c^2 = 1 - kept^2
        return kept * self.before.values(sites) + np.sqrt(1.0 - kept**2) * self.other.values(sites)


def mission_on(field: Field, mission: Mission, model: Model | None, seed: int) -> Mission:
    """Return a mission over another field, with the threshold at its own quantile."""
    world = replace(mission.world, field=field)
    threshold = float(np.quantile(world.truth(world.domain.sites), QUANTILE))
    changes = {} if model is None else {"model": model}
    return replace(mission, world=world, question=LevelSet(threshold), seed=seed, **changes)


def earlier(result: Result, per_day: float) -> Prior:
    """Return the readings of a run as those of the day before."""
    noise = np.sqrt(np.concatenate([o.noise_variances for o in result.observations]))
    ages = np.ones(len(result.values))
    return Prior(result.sites, result.values, aged(noise, per_day, ages), ages)


def cost_to_target(mission: Mission) -> float:
    """Return the cost at which a run first reaches the target, at most its battery."""
    curve = fieldbo.run(mission).curve
    return next((step.cost for step in curve if step.f1 >= TARGET), mission.vehicles[0].battery)


def costs(
    number: int, change: float, per_day: float, model: Model | None, battery: float
) -> tuple[float, float]:
    """Return the costs to the target on one field, without and with yesterday's readings."""
    plain, other = (
        fieldbo.load_mission("gp-lake", {"draw": draw, "agent": {"battery": battery}})
        for draw in (number, OTHER + number)
    )
    assert plain.world.field is not None
    assert other.world.field is not None
    yesterday = fieldbo.run(mission_on(plain.world.field, plain, model, seed=1))
    today = mission_on(Changed(plain.world.field, other.world.field, change), plain, model, seed=0)
    known = replace(today, prior=earlier(yesterday, per_day))
    return cost_to_target(today), cost_to_target(known)


def cell(numbers: Array, digits: int) -> str:
    """Return the mean and its standard error."""
    error = numbers.std(ddof=1) / np.sqrt(len(numbers)) if len(numbers) > 1 else np.nan
    return f"{numbers.mean():.{digits}f} ± {error:.{digits}f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fields", type=int, default=10, help="random fields per row")
    parser.add_argument("--changes", type=float, nargs="+", default=[0.1, 0.2, 0.4], help="per day")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--battery", type=float, default=8000.0, help="of every run, in s")
    parser.add_argument("--factor", type=float, default=1.0, help="per_day, as a multiple of the change")
    args = parser.parse_args()
    print(f"{'model':8} {'change':>7} {'without (s)':>16} {'with (s)':>16} {'ratio':>15} {'worst':>6}")
    for name in args.models:
        for change in args.changes:
            per_day, model = args.factor * change, MODELS[name]
            runs = [costs(k, change, per_day, model, args.battery) for k in range(args.fields)]
            without, with_them = np.array(runs).T
            ratio = with_them / without
            print(
                f"{name:8} {change:7g} {cell(without, 0):>16} {cell(with_them, 0):>16} "
                f"{cell(ratio, 2):>15} {ratio.max():6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
