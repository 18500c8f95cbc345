"""Missions and worlds in words, one line per topic, as ``fieldbo check`` prints them."""

from __future__ import annotations

import numpy as np
import shapely

from fieldbo.belief.covering import distance_text
from fieldbo.belief.question import Optimum
from fieldbo.clock import duration_text
from fieldbo.costs.cells import Modular, Subset
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Distribution, TruncatedNormal
from fieldbo.domain.domain import Domain
from fieldbo.domain.places import extent_text, place_text
from fieldbo.errors import counted
from fieldbo.mission.mission import FAILURE_LIMIT, Mission
from fieldbo.mission.rules import CONFIRMED_F1, CONFIRMED_REGRET
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.world.world import World

_MOST_NAMES = 8


def describe_mission(mission: Mission, question: str) -> list[str]:
    """Return lines that describe a mission; `question` is its question in words."""
    spec, unit, every = mission.vehicles[0], mission.world.cost_unit, mission.model.every
    domain = mission.world.domain
    home = "no home: it may end anywhere" if spec.home is None else f"home {place_text(domain, spec.home)}"
    noun = "reading" if mission.world.sensor.along is None else "order"
    transform = "no" if mission.model.transform == "none" else mission.model.transform
    learning = "hyperparameters fixed"
    if every is not None:
        learning = f"refitted every {noun if every == 1 else counted(every, noun)}"
    lines = [
        f"mission {mission.name}: valid",
        f"  question  {question}",
        *_describe_least_size(mission),
        f"  policy    {mission.policy}",
        f"  battery   {_describe_battery(spec, unit)}, start {place_text(domain, spec.start)}, {home}",
    ]
    if limits := _describe_limits(mission):
        lines.append(f"  limits    {', '.join(limits)}")
    if mission.costs == "unknown":
        lines.append("  costs     unknown to the agent: it learns them from each completed order")
    trend = ["linear trend"] if mission.model.mean == "linear" else []
    noise = ["noise learned"] if mission.model.noise == "learned" else []
    model = ", ".join([mission.model.kernel, f"{transform} transform", *trend, *noise, learning])
    return [
        *lines,
        f"  model     {model}",
        *_describe_goal(mission),
        *_describe_holds(mission),
        *_describe_failures(mission),
        *_describe_prior(mission),
        f"  seed      {mission.seed}",
    ]


def _describe_battery(spec: VehicleSpec, unit: str) -> str:
    """Return the battery, or how many there are and how long a change takes."""
    if spec.recharge is None:
        return f"{spec.battery:g} {unit}"
    changed = f"changed at {spec.recharge.at} in {duration_text(spec.recharge.takes_s)}"
    return f"{counted(spec.batteries, 'battery', 'batteries')} of {spec.battery:g} {unit}, {changed}"


def _describe_least_size(mission: Mission) -> list[str]:
    """Return a line on the smallest patch that matters; none if the mission names none."""
    question = mission.question
    if not isinstance(question, Optimum) or question.least_size is None:
        return []
    return [f"  patches   {distance_text(mission.world.domain, question.least_size)} wide and more"]


def _describe_goal(mission: Mission) -> list[str]:
    """Return a line on when the mission stops early; none without a goal."""
    stop, domain = mission.stop, mission.world.domain
    if not stop.is_set:
        return []
    if isinstance(mission.question, Optimum):
        share = CONFIRMED_REGRET if stop.regret is None else stop.regret
        goal = f"the regret is at most {100 * share:g}% of the range of the readings"
    else:
        goal = f"F1 is at least {CONFIRMED_F1 if stop.expected_f1 is None else stop.expected_f1:g}"
    within = stop.within(domain)
    far = (
        ""
        if within is None
        else f", and no place is farther than {distance_text(domain, within)} from a reading"
    )
    return [f"  stop      once {goal}, with a probability of {stop.probability:g}{far}"]


def _describe_holds(mission: Mission) -> list[str]:
    named = (
        (hold, hold.channel if hold.name == hold.channel else f"{hold.channel} ({hold.name})")
        for hold in mission.holds
    )
    return [f"  hold      {name} {hold.in_words}" for hold, name in named]


def _describe_prior(mission: Mission) -> list[str]:
    """Return lines on earlier readings and the prior mean; none without a prior."""
    earlier, quantity, lines = mission.earlier, mission.world.quantity, []
    if len(earlier.values):
        low, high = quantity.amount(earlier.noise_sds.min()), quantity.amount(earlier.noise_sds.max())
        noise = low if low == high else f"{low} to {high}"
        lines.append(f"  prior     {earlier.in_words()}, noise sd with age {noise}")
        lines += [f"  note      {note}" for note in earlier.notes]
    if earlier.mean is not None:
        mean = earlier.mean.values(mission.world.domain.sites)
        lines.append(f"  mean      {quantity.amount(mean.min())} to {quantity.amount(mean.max())}, by site")
    return lines


def _describe_failures(mission: Mission) -> list[str]:
    """Return a line if a mission has a limit of its own for the probability of a failed reading."""
    limit = mission.failure_limit
    if limit == FAILURE_LIMIT:
        return []
    what = "all sites are proposed, wherever readings fail"
    if limit < 1.0:
        what = f"sites are avoided where a reading fails with a probability above {limit:g}"
    return [f"  failures  {what}"]


def _describe_limits(mission: Mission) -> list[str]:
    spec = mission.vehicles[0]
    limits = [f"reserve {spec.reserve:g} {mission.world.cost_unit}"] if spec.reserve else []
    if spec.margin:
        limits.append(f"margin {100 * spec.margin:g}%")
    if spec.time_limit_s is not None:
        limits.append(f"at most {duration_text(spec.time_limit_s)}")
    if mission.max_steps is not None:
        limits.append(f"at most {mission.max_steps} steps")
    if (most := mission.most_readings_per_site) is not None:
        limits.append(f"at most {counted(most, 'reading')} at a site")
    return limits


def describe_world(world: World) -> list[str]:
    """Return lines that describe a world."""
    domain = world.domain
    box = ", representing a box" if domain.continuous else ""
    lines = [
        f"world {world.name}: valid",
        f"  title     {world.title}",
        f"  sites     {domain.size}{box}: {extent_text(domain)}",
        *_describe_crs(domain),
        f"  cost      {_describe_cost(world)}",
        *describe_parts_of_cost(world),
        f"  sensor    {_describe_sensor(world)}",
    ]
    lines += _describe_edges(domain)
    if domain.bottom is not None:
        depth = domain.bottom.depth_at(domain.flat.sites)
        lines.append(f"  bottom    {depth.min():.3g} to {depth.max():.3g} m deep; {domain.bottom.source}")
    if world.field is None:
        return [*lines, "  field     none: a live world"]
    truth = world.truth(domain.sites)
    lines.append(f"  field     {world.quantity.label}: {truth.min():.4g} to {truth.max():.4g}")
    if world.unreadable:
        lines.append(
            f"  no value  in {', '.join(area.name for area in world.unreadable)}: readings fail there"
        )
    return lines + [f"  note      {note}" for note in (*world.field.notes, *world.field.details)]


def _describe_crs(domain: Domain) -> list[str]:
    if domain.georeference is None:
        return []
    flat = (domain.axes[j] for j in domain.georeference.axes)
    ends = ", ".join(f"{axis.name} {axis.low:.10g} to {axis.high:.10g} m" for axis in flat)
    return [f"  crs       {domain.georeference.name}: {ends}"]


def _describe_edges(domain: Domain) -> list[str]:
    """Return lines on outline, obstacles and clearance; none for a domain that is a plain box."""
    lines = []
    if domain.outline is not None:
        parts = [p for p in shapely.get_parts(domain.outline) if isinstance(p, shapely.Polygon)]
        corners = sum(len(part.exterior.coords) - 1 for part in parts)
        holes = sum(len(part.interiors) for part in parts)
        lines.append(f"  outline   {counted(corners, 'corner')}, {counted(holes, 'hole')}")
    if domain.solid:
        names = ", ".join(o.name for o in domain.solid[:_MOST_NAMES])
        more = len(domain.solid) - _MOST_NAMES
        lines.append(f"  obstacles {len(domain.solid)}: {names}{f' and {more} more' if more > 0 else ''}")
    if domain.source:
        lines.append(f"  read      {domain.source}")
    if lines:
        away = f"{domain.clearance:g} {domain.axes[0].unit}".rstrip() if domain.clearance else "none"
        lines.append(f"  clearance {away}")
    return lines


def _describe_cost(world: World) -> str:
    """Return the kind of cost, and the cheapest and most expensive first move."""
    domain, cost, settings = world.domain, world.cost, world.sensor.settings
    assert world.start is not None
    sites = domain.sites[np.isfinite(cost.travel(world.start, domain.sites))]
    move = "sample:" if domain.control_sets else "start to site:"
    if not cost.known:
        amount = "unknown cost"
    elif not len(sites):
        amount = "no path"
    else:
        costs = np.concatenate(
            [
                cost.to(world.start, sites, controls, level)
                for level in range(settings)
                for controls in domain.control_masks
            ]
        )
        amount = f"{costs.min():.4g} to {costs.max():.4g} {world.cost_unit}"
    unreachable = domain.size - len(sites)
    return (
        f"{type(cost).__name__.lower()}; {move} {amount}"
        + (", over all levels" if settings > 1 else "")
        + (f"; {unreachable} of the sites can't be reached" if unreachable else "")
    )


def describe_parts_of_cost(world: World) -> list[str]:
    """Return lines on the modules or control sets of a factory cell; none for other worlds."""
    if isinstance(world.cost, Modular):
        return _describe_modules(world, world.cost)
    return _describe_control_sets(world) if world.domain.controls is not None else []


def _describe_modules(world: World, cost: Modular) -> list[str]:
    *early, last = [
        f"{module.name} ({', '.join(world.domain.axes[k].name for k in columns)}) {module.cost:g} "
        f"{world.cost_unit}"
        for module, columns in zip(cost.modules, cost.columns, strict=True)
    ]
    charged = "charged with every sample" if cost.charge_last else "which is free"
    free = [] if cost.prices.any() else ["  note      no change of settings costs anything"]
    return [f"  modules   {'; '.join([*early, last])}, {charged}", *free]


def _describe_control_sets(world: World) -> list[str]:
    domain = world.domain
    sets = [
        control_set.name + (f" {_describe_cost_of_set(world, k)}" if world.cost.known else "")
        for k, control_set in enumerate(domain.control_sets)
    ]
    axes = list(zip(domain.axes, domain.distributions, strict=True))
    free = [f"{a.name} {_describe_distribution(a, d)}" for a, d in axes if d is not None]
    always = [a.name for a, d in axes if d is None]
    return [
        f"  sets      {'; '.join(sets)}",
        *([f"  if free   {'; '.join(free)}"] if free else []),
        *([f"  always    {', '.join(always)} {'is' if len(always) == 1 else 'are'} set"] if always else []),
    ]


def _describe_cost_of_set(world: World, number: int) -> str:
    """Return the mean cost of a control set and, in simulation, its standard deviation."""
    assert world.start is not None
    controls, cost = world.domain.control_sets[number].controls, world.cost
    mean = float(cost.to(world.start, world.start[None], controls)[0])
    sd = cost.noise_sds[number] if isinstance(cost, Subset) and cost.noise_sds else 0.0
    return f"{mean:g}{f' (sd {sd:g})' if sd else ''} {world.cost_unit}"


def _describe_distribution(axis: Axis, distribution: Distribution) -> str:
    if isinstance(distribution, TruncatedNormal):
        mean, sd = distribution.mean, distribution.variance**0.5
        return f"normal, mean {mean:.4g}, sd {sd:.3g} {axis.unit}".rstrip() + ", truncated"
    return "uniform"


def _describe_sensor(world: World) -> str:
    """Return the sensor's noise, and the cost of each level."""
    sensor, quantity = world.sensor, world.quantity
    grows = ", growing along the axes" if any(sensor.slope) else ""
    grows += f", plus {100 * sensor.noise_share:.3g}% of the value" if sensor.noise_share else ""
    grows += f"; limit of detection {quantity.amount(sensor.below)}" if sensor.below is not None else ""
    grows += f"; reads {sensor.along.in_words} on the way" if sensor.along is not None else ""
    if not sensor.levels:
        known = quantity.amount(sensor.noise_sd or 0.0) if sensor.declares_noise else "not declared"
        return f"noise sd {known}{grows}"
    levels = (
        f"{quantity.amount(level.variance**0.5)} for {level.cost:g} {world.cost_unit}"
        for level in sensor.levels
    )
    return f"noise sd by level: {', '.join(levels)}{grows}"
