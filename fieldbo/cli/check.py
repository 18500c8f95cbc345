"""``fieldbo check``: say what a file was understood as, or what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fieldbo.domain import Array
    from fieldbo.ledger import Limit
    from fieldbo.mission import Mission
    from fieldbo.world import World


def check(
    file: Annotated[str, typer.Argument(help="A mission or world: a TOML file, a folder, or a name.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Replace a key of the mission, as *run* does.", metavar="TABLE.KEY=VALUE"),
    ] = None,
) -> None:
    """Say what a mission or world file was understood as, or what is wrong and how to mend it."""
    from fieldbo.agent import Agent
    from fieldbo.catalogue import list_missions, list_worlds, load_mission, load_world
    from fieldbo.cli.settings import overrides
    from fieldbo.errors import InputError
    from fieldbo.files import read_toml

    path = Path(file) / "world.toml" if Path(file).is_dir() else Path(file)
    if path.exists() or path.suffix == ".toml":
        is_world = "domain" in (content := read_toml(path)) and "policy" not in content
    else:
        is_world = file in list_worlds() and file not in list_missions()
    if is_world:
        if set_:
            raise InputError(
                f"--set {set_[0]} for a world",
                expected="a mission",
                where="--set",
                mend="edit the world's file",
            )
        lines = _world(load_world(path if path.exists() else file))
    else:
        mission = load_mission(path if path.exists() else file, overrides(set_ or []))
        lines = [*_mission(mission), *_world(mission.world)]
        warnings = [*_unpayable(mission), *_beyond_truth(mission), *Agent(mission).warnings]
        lines += [f"warning: {w}" for w in warnings]
    typer.echo("\n".join(lines))


def _mission(mission: Mission) -> list[str]:
    from fieldbo.result import ANSWERS, in_words

    crew, unit = mission.crew[0], mission.world.cost_unit
    home = "none: it may end anywhere" if crew.home is None else f"{crew.home.tolist()}"
    learns = mission.model.every
    kept = [f"reserve {crew.reserve:g} {unit}"] if crew.reserve else []
    if crew.margin:
        kept.append(f"margin {100 * crew.margin:g}%")
    if crew.time_limit_s is not None:
        kept.append(f"at most {crew.time_limit_s:g} s")
    if mission.max_steps is not None:
        kept.append(f"at most {mission.max_steps} steps")
    fits = "reading" if learns == 1 else f"{learns} readings"
    return [
        f"mission {mission.name}: valid",
        f"  question  {in_words(mission.question, mission.world.quantity)} "
        f"(scored by {ANSWERS[type(mission.question)].score.name})",
        f"  policy    {mission.policy}",
        f"  battery   {crew.battery:g} {unit}, start {crew.start.tolist()}, home {home}",
        *([f"  limits    {', '.join(kept)}"] if kept else []),
        f"  model     {mission.model.kernel}, {mission.model.transform} transform, "
        + ("hyperparameters stay" if learns is None else f"fitted after each {fits}"),
        f"  seed      {mission.seed}",
    ]


def _unpayable(mission: Mission) -> list[str]:
    """Return a warning for each limit that pays for no reading, or not for the first one."""
    from fieldbo.craft import Craft

    limits = Craft(mission.crew[0], mission.world.cost).limits
    return [warning for limit in limits if (warning := _unpayable_by(limit, mission)) is not None]


def _unpayable_by(limit: Limit, mission: Mission) -> str | None:
    world, crew, several = mission.world, mission.crew[0], mission.world.sensor.settings > 1
    name, unit, reserve = f"the battery of {crew.battery:g} {world.cost_unit}", world.cost_unit, crew.reserve
    if limit.name == "time":
        name, unit, reserve = f"the time of {crew.time_limit_s:g} s", "s", 0.0

    def needed(sites: Array, level: int) -> float:
        """Return what the cheapest of `sites` (N, d) takes as declared, and the way home from there."""
        return float((limit.going(crew.start, sites, None, level) + limit.back(sites)).min())

    parts = {"the way home": crew.home is not None, "margin": crew.margin, "reserve": reserve}
    included = " and ".join(part for part, there in parts.items() if there)

    def price(sites: Array, level: int) -> str:
        told = f"{needed(sites, level) * (1.0 + crew.margin) + reserve:.4g} {unit}"
        return f"{told} with {included}" if included else told

    sites, start, first = world.domain.sites, crew.start[None], mission.initial_level
    begins = mission.initial > 0 and needed(start, first) <= limit.left
    fixed = getattr(mission.policy, "level", None)  # a policy without one chooses the setting
    levels = range(world.sensor.settings) if fixed is None else [int(fixed)]
    least = min(levels, key=lambda k: needed(sites, k))
    if needed(sites, least) > limit.left:
        return (
            f"{name} pays for no reading {'but the initial one' if begins else 'at all'}: the cheapest"
            f"{f', at setting {least},' if several else ''} takes {price(sites, least)}"
        )
    if mission.initial > 0 and not begins:
        return (
            f"{name} does not pay for the initial reading at the start, which takes {price(start, first)}"
            f"{f' at setting {first}' if several else ''}: the policy begins without it"
        )
    return None


def _beyond_truth(mission: Mission) -> list[str]:
    """Return a warning where a simulated world has nothing on one side of the threshold."""
    from fieldbo.result import amount, truth_of

    truth = truth_of(mission.world, mission.question)
    if truth is None or not (truth.above.all() or truth.threshold > truth.values.max()):
        return []
    side, number = ("below", "all") if truth.above.all() else ("above", "none")
    return [
        f"the threshold {truth.threshold:.4g} lies {side} all true values, {truth.values.min():.4g} to "
        f"{amount(truth.values.max(), mission.world.quantity)}: {number} of the sites are at or above it"
    ]


def _world(world: World) -> list[str]:
    import numpy as np

    domain = world.domain
    axes = ", ".join(f"{a.name} {a.low:g} to {a.high:g} {a.unit}".rstrip() for a in domain.axes)
    assert world.start is not None
    settings = world.sensor.settings
    sites = domain.sites[np.isfinite(world.cost.travel(world.start, domain.sites))]
    beyond = domain.size - len(sites)
    costs = np.concatenate([world.cost.to(world.start, sites, level=k) for k in range(settings)])
    moves = f"{costs.min():.4g} to {costs.max():.4g} {world.cost_unit}" if len(costs) else "no way"
    lines = [
        f"world {world.name}: valid",
        f"  title     {world.title}",
        f"  sites     {domain.size}{', standing for a box' if domain.continuous else ''}: {axes}",
        f"  cost      {type(world.cost).__name__.lower()}; from the start to a site {moves}"
        + (", over all settings" if settings > 1 else "")
        + (f"; {beyond} of the sites can't be reached" if beyond else ""),
        f"  sensor    {_sensor(world)}",
    ]
    if domain.obstacles:
        named = ", ".join(o.name for o in domain.obstacles[:8])
        more = len(domain.obstacles) - 8
        lines.append(f"  obstacles {len(domain.obstacles)}: {named}{f' and {more} more' if more > 0 else ''}")
    if world.field is None:
        return [*lines, "  field     none: a live world"]
    truth = world.truth(domain.sites)
    lines.append(f"  field     {world.quantity.label}: {truth.min():.4g} to {truth.max():.4g}")
    return lines + [f"  note      {n}" for n in world.field.notes]


def _sensor(world: World) -> str:
    """Return the noise, and what each setting costs."""
    from fieldbo.result import amount

    sensor, quantity = world.sensor, world.quantity
    grows = ", growing along the axes" if any(sensor.slope) else ""
    if not sensor.levels:
        return f"noise sd {amount(sensor.noise_sd, quantity)}{grows}"
    told = (
        f"{amount(level.variance**0.5, quantity)} for {level.cost:g} {world.cost_unit}"
        for level in sensor.levels
    )
    return f"noise sd by level: {', '.join(told)}{grows}"
