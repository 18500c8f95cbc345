"""
Leave variables to chance
=========================

A cell of your own in a loop of your own: set some variables, leave the others free, and learn what that
costs.

The agent chooses which variables to set, and to what. You report the values that the free ones took, the
outcome, and what the sample cost. Here a formula stands in for the cell.
"""

import numpy as np

import fieldbo
from fieldbo import Mission, World
from fieldbo.belief import Model, Optimum
from fieldbo.costs import Subset
from fieldbo.domain import Axis, Controls, ControlSet, Domain, Sensor, TruncatedNormal
from fieldbo.mission import VehicleSpec
from fieldbo.policies import SubsetFront
from fieldbo.world import Quantity

AXES = [Axis("heat", "C", 150, 250), Axis("minutes", "min", 10, 60)]
SETS = (["heat"], ["heat", "minutes"])


def bake(heat: float, minutes: float, rng: np.random.Generator) -> float:
    """The strength of a loaf: best at 210 C and 40 minutes."""
    return 10 * np.exp(-(((heat - 210) / 25) ** 2) - ((minutes - 40) / 40) ** 2) + 0.05 * rng.normal()


def main() -> None:
    """Bake until 6 EUR are spent."""
    free = (None, TruncatedNormal(35, 60, 10, 60))  # minutes, where nobody sets them
    sets = tuple(ControlSet.of(names, AXES, "SETS") for names in SETS)
    domain = Domain.box(AXES, controls=Controls(sets, free))
    world = World("oven", "An oven", domain, Subset(), "EUR", Sensor(noise_sd=0.05), Quantity("strength"))
    mission = Mission(
        "loaf",
        world,
        Optimum("maximise"),
        SubsetFront(),
        Model(),
        (VehicleSpec(battery=6.0, start=domain.middle),),
        initial=2,
        costs="unknown",
    )
    agent, rng = fieldbo.Agent(mission), np.random.default_rng(0)
    while isinstance(order := agent.ask(), fieldbo.Query):
        left_free = np.isnan(order.site)
        point = np.where(left_free, [0, rng.normal(35, 7)], order.site)  # what your cell did
        cost = 0.1 if left_free.any() else 0.5 + 0.05 * rng.normal()
        agent.tell(order.observed(bake(*point, rng), noise_variance=0.05**2, position=point, cost=cost))
    result = fieldbo.Result.of(agent)
    if result.play is not None:
        print(f"after {result.cost:.2f} EUR: {result.play.in_words(world)}")
    for row in result.summary()["control_sets"]:
        print(f"  {row['set']}: {row['plays']} times for {row['cost']:.2f} EUR")


if __name__ == "__main__":
    main()
