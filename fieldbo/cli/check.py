"""``fieldbo check``: say what a file was understood as, or what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fieldbo._numerics.arrays import Array, Mask
    from fieldbo.costs.limits import Limit
    from fieldbo.domain.axes import Axis
    from fieldbo.domain.distributions import Distribution
    from fieldbo.messages import Query
    from fieldbo.mission.mission import Mission
    from fieldbo.world.world import World


def check(
    file: Annotated[
        str, typer.Argument(help="A mission, world or vehicle: a TOML file, a folder, or a name.")
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Replace a key of the mission, as *run* does.", metavar="TABLE.KEY=VALUE"),
    ] = None,
) -> None:
    """Say what a mission, world or vehicle file was understood as, or what is wrong and how to mend it."""
    from fieldbo.agent.agent import Agent
    from fieldbo.cli.settings import overrides
    from fieldbo.errors import InputError
    from fieldbo.mission.catalogue import list_missions, list_worlds
    from fieldbo.mission.load import load_mission, load_world
    from fieldbo.mission.toml import read_toml

    path = Path(file) / "world.toml" if Path(file).is_dir() else Path(file)
    content = {}
    if path.exists() or path.suffix == ".toml":
        is_world = "domain" in (content := read_toml(path)) and "policy" not in content
    else:
        is_world = file in list_worlds() and file not in list_missions()
    is_vehicle = "link" in content
    if set_ and (is_world or is_vehicle):
        what = "world" if is_world else "vehicle"
        raise InputError(
            f"--set {set_[0]} for a {what}",
            expected="a mission",
            where="--set",
            fix=f"edit the {what}'s file",
        )
    if is_vehicle:
        lines = _vehicle(file)
    elif is_world:
        lines = _world(load_world(path if path.exists() else file))
    else:
        mission = load_mission(path if path.exists() else file, overrides(set_ or []))
        lines = [*_mission(mission), *_world(mission.world)]
        agent = Agent(mission)
        warnings = [*_unpayable(mission, agent.initial), *_beyond_truth(mission), *agent.warnings]
        lines += [f"warning: {w}" for w in warnings]
    typer.echo("\n".join(lines))


def _vehicle(file: str) -> list[str]:
    import math

    from fieldbo.vehicles.load import LoadedVehicleFile

    told = LoadedVehicleFile.read(file)
    watch, reports, frame = told.settings.watch, told.settings.reports, told.settings.frame
    leads = {} if frame is None else frame.axes
    lies = ", ".join(f"{axis} leads {way}" for way, axis in leads.items())
    lies = lies or "no [frame] says where it lies: the robot is told the axes' values"
    known = None if frame is None else frame.origin
    if known is not None:
        lies += f"; its zero at {known.latitude:g}, {known.longitude:g}"
    no_origin = "nothing says where the domain's zero is: set origin in [frame] before it is used"
    bounds = (reports.low, reports.high)
    believed = f"readings from {bounds[0]:g} to {bounds[1]:g} are believed"
    if not any(map(math.isfinite, bounds)):
        believed = "every reading is believed: low and high in [reports] say what is possible"
    sort = "reports what came of each order" if told.link.reports else "streams where it is and what it reads"
    return [
        f"vehicle {told.settings.title or file}",
        f"  link      {told.kind}, at {told.link.address}; it {sort}",
        f"  domain    {lies}",
        f"  lost      after {watch.silence_s:g} s without a sign of life",
        f"  given up  an order after {watch.patience:g} times what it is declared to take, and at least "
        f"{watch.least_s:g} s",
        f"  reports   a position within {reports.accuracy} of the site stands for it; {believed}",
        *([f"warning: {no_origin}"] if told.link.needs_origin and known is None else []),
    ]


def _mission(mission: Mission) -> list[str]:
    from fieldbo.results.answers import ANSWERS
    from fieldbo.results.formatting import question_text

    crew, unit = mission.crew[0], mission.world.cost_unit
    home = "none: it may end anywhere" if crew.home is None else f"{crew.home.tolist()}"
    learns, unknown = mission.model.every, mission.costs == "unknown"
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
        f"  question  {question_text(mission.question, mission.world.quantity)} "
        f"(scored by {ANSWERS[type(mission.question)].score.name})",
        f"  policy    {mission.policy}",
        f"  battery   {crew.battery:g} {unit}, start {crew.start.tolist()}, home {home}",
        *([f"  limits    {', '.join(kept)}"] if kept else []),
        *(["  costs     unknown to the agent: it learns what each order has cost"] if unknown else []),
        f"  model     {mission.model.kernel}, {mission.model.transform} transform, "
        + ("hyperparameters stay" if learns is None else f"fitted after each {fits}"),
        f"  seed      {mission.seed}",
    ]


def _unpayable(mission: Mission, initial: Sequence[Query]) -> list[str]:
    """Return a warning for each limit that pays for no reading, not for all initial ones, or not for some."""
    from fieldbo.agent.vehicle_state import VehicleState

    if not mission.world.cost.known:
        return []
    limits = VehicleState(mission.crew[0], mission.world.cost).limits
    return [warning for limit in limits if (warning := _unpayable_by(limit, mission, initial)) is not None]


def _unpayable_by(limit: Limit, mission: Mission, initial: Sequence[Query]) -> str | None:
    import numpy as np

    world, crew, several = mission.world, mission.crew[0], mission.world.sensor.settings > 1
    name, unit, reserve = f"the battery of {crew.battery:g} {world.cost_unit}", world.cost_unit, crew.reserve
    if limit.name == "time":
        name, unit, reserve = f"the time of {crew.time_limit_s:g} s", "s", 0.0
    paid, spent, at = _begun(limit, crew.start, initial)

    def needed(sites: Array, level: int, sets: Sequence[Mask | None]) -> float:
        """Return what the cheapest of `sites` (N, d), and of control sets, takes, the way home included."""
        going = np.min([limit.going(at, sites, on, level) for on in sets], axis=0)
        return float((going + limit.back(sites)).min())

    parts = {"the way home": crew.home is not None, "margin": crew.margin, "reserve": reserve}
    included = " and ".join(part for part, there in parts.items() if there)

    def price(sites: Array, level: int, sets: Sequence[Mask | None]) -> str:
        told = f"{needed(sites, level, sets) * (1.0 + crew.margin) + reserve:.4g} {unit}"
        return f"{told} with {included}" if included else told

    left, count, sets = limit.left - spent, len(initial), _playable(mission)
    sites = np.vstack([world.domain.sites, at]) if world.domain.continuous else world.domain.sites
    fixed = getattr(mission.policy, "level", None)  # a policy without one chooses the setting
    levels = range(world.sensor.settings) if fixed is None else [int(fixed)]
    least = min(levels, key=lambda k: needed(sites, k, sets))
    if needed(sites, least, sets) > left:
        after = f" after {'it' if paid == 1 else 'them'}" if paid else ""
        return (
            f"{name} pays for {_no_more_than(paid, count)}: the cheapest{after}"
            f"{f', at setting {least},' if several else ''} takes {price(sites, least, sets)}"
        )
    if count and not paid:
        return (
            f"{name} does not pay for the {'initial' if count == 1 else 'first'} reading at the start, "
            f"which takes {price(crew.start[None], initial[0].level, [initial[0].controls])}"
            f"{f' at setting {initial[0].level}' if several else ''}: the policy begins without it"
        )
    if paid < count:
        return f"{name} pays for only {paid} of the {count} initial readings: then the policy takes over"
    dear = [
        f"{what}, which takes {price(where, least, [on])}"
        for what, where, on in _choices(mission, sites, at)
        if needed(where, least, [on]) > left
    ]
    if not dear:
        return None
    begun = f"after the initial reading{'s' if count > 1 else ''}, " if count else ""
    return f"{begun}{name} does not pay for {'; nor for '.join(dear)}"


def _no_more_than(paid: int, count: int) -> str:
    """Return in words that so many of `count` initial readings are paid for, and none by the policy."""
    if not paid:
        return "no reading at all"
    if paid < count:
        return f"only {paid} of the {count} initial readings, and for none by the policy"
    return "no reading but the initial one" if count == 1 else f"no reading but the {count} initial ones"


def _begun(limit: Limit, start: Array, initial: Sequence[Query]) -> tuple[int, float, Array]:
    """Return how many initial readings a limit pays for, what they take, and where (d,) they end."""
    import numpy as np

    at, spent = start, 0.0
    for number, query in enumerate(initial):
        site = query.site[None]
        going = float(limit.going(at, site, query.controls, query.level)[0])
        if spent + going + float(limit.back(site)[0]) > limit.left:
            return number, spent, at
        at, spent = np.where(np.isnan(query.site), at, query.site), spent + going
    return len(initial), spent, at


def _choices(mission: Mission, sites: Array, at: Array) -> list[tuple[str, Array, Mask | None]]:
    """Return what a policy can choose among in a cell: a change of a module's settings, or a control set.

    Each in words, with the sites (N, d) where that is done from `at` (d,), and what is set there.
    """
    import numpy as np

    from fieldbo.costs.chain import Modular

    domain, cost = mission.world.domain, mission.world.cost
    if isinstance(cost, Modular):
        elsewhere = np.where(at == domain.low, domain.high, domain.low)
        own = [np.isin(np.arange(domain.dimension), columns) for columns in cost.columns[:-1]]
        return [
            (f"a change of {module.name}", np.where(mask, elsewhere, at)[None], None)
            for module, mask in zip(cost.modules[:-1], own, strict=True)
        ]
    if not mission.policy.leaves_free:
        return []
    return [(f"a play of {one.name}", sites, one.controls) for one in domain.control_sets]


def _playable(mission: Mission) -> list[Mask | None]:
    """Return what the policy can choose to set: a control set, or all variables (None)."""
    sets = mission.world.domain.control_sets
    return [one.controls for one in sets] if sets and mission.policy.leaves_free else [None]


def _beyond_truth(mission: Mission) -> list[str]:
    """Return a warning where a simulated world has nothing on one side of the threshold."""
    from fieldbo.results.formatting import amount
    from fieldbo.results.truth import truth_of

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
    several: list[Mask | None] = [one.controls for one in domain.control_sets] or [None]
    prices = [
        world.cost.to(world.start, sites, on, k)
        for k in range(settings)
        for on in several
        if world.cost.known
    ]
    costs = np.concatenate(prices) if prices else np.empty(0)
    moves = f"{costs.min():.4g} to {costs.max():.4g} {world.cost_unit}" if len(costs) else "no way"
    whence = "from the start to a site" if not domain.control_sets else "a sample"
    if not world.cost.known:
        moves = "at a cost that is not known"
    lines = [
        f"world {world.name}: valid",
        f"  title     {world.title}",
        f"  sites     {domain.size}{', standing for a box' if domain.continuous else ''}: {axes}",
        f"  cost      {type(world.cost).__name__.lower()}; {whence} {moves}"
        + (", over all settings" if settings > 1 else "")
        + (f"; {beyond} of the sites can't be reached" if beyond else ""),
        *_parts_of_cost(world),
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


def _parts_of_cost(world: World) -> list[str]:
    """Return what each module or control set of a cell costs, and what becomes of variables left free."""
    from fieldbo.costs.chain import Modular

    domain, cost, unit = world.domain, world.cost, world.cost_unit
    if isinstance(cost, Modular):
        *early, last = [
            f"{one.name} ({', '.join(domain.axes[k].name for k in own)}) {one.cost:g} {unit}"
            for one, own in zip(cost.modules, cost.columns, strict=True)
        ]
        often = "paid for with every sample" if cost.charge_last else "which is free"
        free = [] if cost.prices.any() else ["  note      no change of settings costs anything"]
        return [f"  modules   {'; '.join([*early, last])}, {often}", *free]
    if domain.controls is None:
        return []
    told = [
        one.name + (f" {_price_of_set(world, k)}" if cost.known else "")
        for k, one in enumerate(domain.control_sets)
    ]
    laws = zip(domain.axes, domain.distributions, strict=True)
    free = [f"{a.name} {_law(a, law)}" for a, law in laws if law is not None]
    always = [a.name for a, law in zip(domain.axes, domain.distributions, strict=True) if law is None]
    return [
        f"  sets      {'; '.join(told)}",
        *([f"  if free   {'; '.join(free)}"] if free else []),
        *([f"  always    {', '.join(always)} {'is' if len(always) == 1 else 'are'} set"] if always else []),
    ]


def _price_of_set(world: World, number: int) -> str:
    """Return the mean cost of a control set, and in simulation its standard deviation."""
    from fieldbo.costs.control_sets import Subset

    assert world.start is not None
    controls, cost = world.domain.control_sets[number].controls, world.cost
    mean = float(cost.to(world.start, world.start[None], controls)[0])
    sd = cost.noise_sds[number] if isinstance(cost, Subset) and cost.noise_sds else 0.0
    return f"{mean:g}{f' (sd {sd:g})' if sd else ''} {world.cost_unit}"


def _law(axis: Axis, law: Distribution) -> str:
    """Return the distribution of a variable that is left free."""
    from fieldbo.domain.distributions import TruncatedNormal

    if isinstance(law, TruncatedNormal):
        return f"normal, mean {law.mean:.4g}, sd {law.variance**0.5:.3g} {axis.unit}".rstrip() + ", cut off"
    return "uniform"


def _sensor(world: World) -> str:
    """Return the noise, and what each setting costs."""
    from fieldbo.results.formatting import amount

    sensor, quantity = world.sensor, world.quantity
    grows = ", growing along the axes" if any(sensor.slope) else ""
    if not sensor.levels:
        return f"noise sd {amount(sensor.noise_sd, quantity)}{grows}"
    told = (
        f"{amount(level.variance**0.5, quantity)} for {level.cost:g} {world.cost_unit}"
        for level in sensor.levels
    )
    return f"noise sd by level: {', '.join(told)}{grows}"
