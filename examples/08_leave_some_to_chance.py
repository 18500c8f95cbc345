"""Optimise your own factory cell: set some variables, leave the others to chance, and learn what that costs.

The agent proposes which variables to set, and their values. You report what happened: the values that the
free variables took, the outcome, and the real cost. Here a formula stands in for the cell.
"""

import numpy as np

import fieldbo
from fieldbo import belief, costs, domain, mission, policies, world

AXES = [domain.Axis("heat", "C", 150, 250), domain.Axis("minutes", "min", 10, 60)]
CONTROL_SETS = (["heat"], ["heat", "minutes"])


def bake(heat: float, minutes: float, rng: np.random.Generator) -> float:
    """Return the strength of a loaf; it is largest at 210 C and 40 minutes."""
    return 10 * np.exp(-(((heat - 210) / 25) ** 2) - ((minutes - 40) / 40) ** 2) + 0.05 * rng.normal()


def main() -> None:
    """Bake until 6 EUR are spent."""
    sets = tuple(domain.ControlSet.of(names, AXES, "CONTROL_SETS") for names in CONTROL_SETS)
    minutes_if_free = domain.TruncatedNormal(35, 60, 10, 60)
    box = domain.Domain.box(AXES, controls=domain.Controls(sets, (None, minutes_if_free)))
    oven = fieldbo.World(
        name="oven",
        title="An oven",
        domain=box,
        cost=costs.Subset(),
        cost_unit="EUR",
        sensor=domain.Sensor(noise_sd=0.05),
        quantity=world.Quantity("strength"),
    )
    loaf = fieldbo.Mission(
        name="loaf",
        world=oven,
        question=belief.Optimum("maximise"),
        policy=policies.SubsetFront(),
        model=belief.Model(),
        crew=(mission.VehicleSpec(battery=6.0, start=box.middle),),
        initial=2,
        costs="unknown",
    )
    agent, rng = fieldbo.Agent(loaf), np.random.default_rng(0)
    while isinstance(order := agent.ask(), fieldbo.Query):
        is_free = np.isnan(order.site)
        point = np.where(is_free, [0, rng.normal(35, 7)], order.site)  # measured in a real cell
        cost = 0.1 if is_free.any() else 0.5 + 0.05 * rng.normal()
        agent.tell(order.observed(bake(*point, rng), noise_variance=0.05**2, position=point, cost=cost))
    result = fieldbo.Result.of(agent)
    if result.play is not None:
        print(f"after {result.cost:.2f} EUR: {result.play.in_words(oven)}")
    for control_set in result.summary()["control_sets"]:
        print(f"  {control_set['set']}: {control_set['plays']} times for {control_set['cost']:.2f} EUR")


if __name__ == "__main__":
    main()
