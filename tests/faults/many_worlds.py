"""Random worlds by the thousand: no vehicle overdraws or is stranded, and no leg crosses an obstacle.

    python tests/faults/many_worlds.py --worlds 10000
    python tests/faults/many_worlds.py --only 123        # that one again, with its faults

Each world is a mission of a few steps on a few sites. They cover grids and boxes, obstacles and outlines that
may cut the domain in two, all kinds of costs, real costs that differ from the declared ones by up to the
margin, missions with and without a home, reserves, time limits, batches, and every policy.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import shapely

from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.costs.base import Unit
from fieldbo.costs.travel import Euclidean, Flight, Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.sensor import Level, Sensor
from fieldbo.errors import InputError
from fieldbo.mission.files import made
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.runs.loop import BrokenOffError
from fieldbo.runs.runner import run
from fieldbo.testing.small import Hills
from fieldbo.world.world import Disturbances, Quantity, World

FAULTS = ("overdrawn", "not home", "legs through obstacles", "errors")
SLOW = {"entropy-search", "minimum-regret-search", "max-value-entropy-search", "truvar", "rollout"}
SINCE = {"scout": 100}
"""The first world that a policy may come in: earlier ones stay as they are on file."""

SETTINGS = {
    "rollout": [
        {"base": base, "horizon": horizon, "fantasies": 4}
        for base in ("dist-ucb", "ucb", "ei", "ei-per-cost")
        for horizon in (1, 2, 3, "budget")
    ],
    "dist-ucb": [{"convention": c} for c in ("one_plus", "floor", "exclude")],
    "ducb": [{"rho": 0.1}],
    "informative-path": [
        {"weight": weight, "starts": 2, "first_iterations": 8, "iterations": 3}
        for weight in ("misclassified", "may-exceed", "map")
    ],
    "entropy-search": [{"representers": 8, "draws": 20, "outcomes": 2}],
    "minimum-regret-search": [{"representers": 8, "draws": 20, "outcomes": 2}],
}
ATTEMPTS = 100
NO_DOMAIN = ("no sites", "lies entirely outside", "cover the whole domain")
NEAR = 1e-6  # fraction of the extent; tolerance for legs along an obstacle's edge
SLACK = 1e-9  # fraction of the battery
IN_CHAINS = {"lambo", "lazy-ei-per-cost", "carbo", "ca-mobo"}


# -- a random mission ------------------------------------------------------------------------------------


def mission_of(seed: int) -> Mission:
    """Return the mission of a seed; if it is impossible (no site is free), another one is drawn."""
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([seed, attempt])
        try:
            domain = domain_of(rng)
        except InputError as error:
            if not any(phrase in str(error) for phrase in NO_DOMAIN):
                raise
            continue
        if (mission := _mission(domain, rng, seed)) is not None:
            return mission
    raise AssertionError(f"no mission in {ATTEMPTS} attempts for seed {seed}")


def domain_of(rng: np.random.Generator) -> Domain:
    """Return a domain with a few sites on a grid or in a box, with or without obstacles and an outline."""
    dimension = int(rng.choice([2, 2, 3]))
    high = rng.uniform(1.0, 20.0, dimension)
    axes = [Axis(name, "m", 0.0, float(h)) for name, h in zip("xyz", high, strict=False)]
    number = int(rng.choice([0, 0, 1, 2, 3, 5]))
    obstacles = [_obstacle(k, high, rng) for k in range(number)]
    clearance = float(rng.choice([0.0, 0.0, 0.03])) * float(high.min())
    if rng.random() < 0.25:
        return Domain.box(axes, int(rng.integers(8, 33)), obstacles=obstacles, clearance=clearance)
    shape = [int(rng.integers(2, 7 if dimension == 2 else 4)) for _ in axes]
    outline = _outline(high, rng) if dimension == 2 and rng.random() < 0.25 else None
    return Domain.grid(axes, shape, outline, obstacles, clearance)


def _obstacle(number: int, high: np.ndarray, rng: np.random.Generator) -> Obstacle:
    """Return a box, a wall from edge to edge, or (in two dimensions) a polygon."""
    kind = rng.random()
    if kind < 0.3 and len(high) == 2:
        middle, reach = rng.uniform(0, 1, 2) * high, rng.uniform(0.05, 0.4, 5)[:, None] * high
        angles = np.sort(rng.uniform(0, 2 * np.pi, 5)) + 1e-3 * np.arange(5)
        corners = middle + reach * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        if shapely.Polygon(corners).is_valid:
            return Obstacle(f"rock {number}", corners=tuple(map(tuple, corners)))
    low = rng.uniform(-0.1, 0.9, len(high)) * high
    top = low + rng.uniform(0.05, 0.5, len(high)) * high
    if kind > 0.85:  # a wall that may cut the domain in two
        along = rng.integers(len(high))
        low[np.arange(len(high)) != along], top[np.arange(len(high)) != along] = -1.0, 21.0
        top[along] = low[along] + 0.1 * high[along]
    return Obstacle(f"box {number}", tuple(low), tuple(top))


def _outline(high: np.ndarray, rng: np.random.Generator) -> shapely.Polygon:
    """Return a polygon with corners at random distances around the middle, often not convex."""
    angles = np.linspace(0, 2 * np.pi, int(rng.integers(4, 9)), endpoint=False)
    reach = rng.uniform(0.3, 1.0, len(angles))[:, None]
    return shapely.Polygon(high / 2 + high / 2 * reach * np.stack([np.cos(angles), np.sin(angles)], axis=1))


def _cost(domain: Domain, rng: np.random.Generator) -> Euclidean | Flight | Transect | Unit:
    sampling = float(rng.uniform(0.1, 3.0))
    rates = tuple(rng.uniform(0.3, 3.0, domain.dimension)) if rng.random() < 0.3 else None
    seconds = float(rng.choice([1.0, 0.5, 7.0]))
    kinds = [
        Euclidean(seconds, rate=float(rng.uniform(0.1, 2.0)), sampling=sampling, axis_rates=rates),
        Flight(
            speed=float(rng.uniform(0.5, 8.0)),
            acceleration=float(rng.uniform(0.3, 3.0)),
            power=float(rng.uniform(50, 300)),
            hover_power=float(rng.uniform(50, 300)),
            hover_s=float(rng.uniform(1, 10)),
            climb=float(rng.choice([0.0, 40.0])),
            descent=float(rng.choice([0.0, 5.0])),
        ),
    ]
    if not domain.obstacles and domain.region is None:
        kinds.append(Unit(seconds, sampling=sampling))
        kinds += [Transect(seconds)] if domain.dimension == 2 else []
    return kinds[rng.integers(len(kinds))]


def _disturbances(domain: Domain, rng: np.random.Generator) -> Disturbances | None:
    if rng.random() < 0.4:
        return None
    wind = rng.standard_normal(domain.dimension)
    wind *= rng.choice([0.0, 0.2, 0.6]) / np.linalg.norm(wind)
    return Disturbances(float(rng.choice([0.0, 0.05, 0.3])), tuple(wind) if rng.random() < 0.7 else ())


def _mission(domain: Domain, rng: np.random.Generator, seed: int) -> Mission | None:
    """Return a mission in the domain; None if nothing can be reached from the start."""
    levels = rng.random() < 0.2
    disturbances = _disturbances(domain, rng)
    world = World(
        name="random",
        title="",
        domain=domain,
        cost=_cost(domain, rng),
        cost_unit="Wh",
        sensor=Sensor(levels=(Level(0.01, 0.5), Level(0.25, 0.1))) if levels else Sensor(0.1),
        quantity=Quantity(),
        field=Hills(),
        start=domain.sites[rng.integers(domain.size)],
        disturbances=disturbances,
    )
    start, cost = world.start, world.cost
    near = domain.sites[np.isfinite(cost.travel(start, domain.sites))]
    if len(near) < 2:
        return None
    home = [None, start, near[rng.integers(len(near))]][rng.integers(3)]
    worst = 0.0 if disturbances is None else disturbances.worst
    margin = worst + float(rng.choice([0.0, 0.0, 0.2]))
    question = [LevelSet(0.3), Optimum()][rng.integers(2)]
    name, policy = _policy(question, domain, seed, rng)
    max_steps = int(rng.integers(1, 5 if name in SLOW else 9))

    def enough(price, trip_home):
        """Return a battery (or time) for some steps, at least for the trip home."""
        supply = float(rng.uniform(0.1, 6.0)) * float(np.median(price))
        return max(supply, 1.000001 * (1 + margin) * trip_home, 1e-6)

    to_home = 0.0 if home is None else float(cost.travel(start, home[None])[0])
    reserve = float(rng.choice([0.0, 0.0, 0.7])) * float(np.median(cost.to(start, near)))
    limit = None
    if rng.random() < 0.4:
        home_s = 0.0 if home is None else float(cost.travel_s(start, home[None])[0])
        limit = enough(cost.duration_s(start, near), home_s)
    battery = enough(cost.to(start, near), to_home) + reserve
    initial = min(int(rng.integers(0, 3)), len(near))
    return Mission(
        name="random",
        world=world,
        question=question,
        policy=policy,
        policy_kind=name,
        model=Model(learn=False, length_scales=tuple(0.3 * domain.extent), mean=0.0),
        vehicles=(
            VehicleSpec(battery, start, home=home, reserve=reserve, margin=margin, time_limit_s=limit),
        ),
        initial=initial,
        initial_level=int(rng.integers(2)) if levels else 0,
        batch=int(rng.choice([1, 1, 2, 4])),
        max_steps=max_steps,
        seed=seed,
    )


@cache
def _answering(question: type) -> list[str]:
    """Return the policies that answer a question, cached because each lookup searches for plugins.

    Policies that need a chain of modules or control sets are excluded.
    """
    policies = {name: POLICIES.get(name) for name in POLICIES.names() if name not in IN_CHAINS}
    return [n for n, p in policies.items() if issubclass(question, p.answers) and not p.leaves_free]


def _policy(question, domain: Domain, seed: int, rng: np.random.Generator):
    names = [n for n in _answering(type(question)) if seed >= SINCE.get(n, 0)]
    names = [n for n in names if n != "lawnmower" or domain.shape is not None]
    name = names[rng.integers(len(names))]
    settings = SETTINGS.get(name, [{}])
    table = {"kind": name, **settings[rng.integers(len(settings))]}
    if hasattr(POLICIES.get(name), "per_cost") and rng.random() < 0.5:
        table["per_cost"] = True
    return name, made(POLICIES, table, "policy")


# -- what has to hold ------------------------------------------------------------------------------------


def faults(mission: Mission, result) -> list[tuple[str, str]]:
    """Return the faults of a run, as (kind, description)."""
    wrong: list[tuple[str, str]] = []
    crew, domain, account = mission.vehicles[0], mission.world.domain, result.accounts[0]
    slack = SLACK * crew.battery
    if result.cost > crew.battery - crew.reserve + slack:
        kept = f", {crew.reserve:g} to be kept" if crew.reserve else ""
        wrong.append(("overdrawn", f"{result.cost!r} of {crew.battery!r}{kept}"))
    if crew.time_limit_s is not None and account.time_s > crew.time_limit_s * (1 + SLACK):
        wrong.append(("overdrawn", f"{account.time_s!r} of {crew.time_limit_s!r} s"))
    if any(step.remaining < crew.reserve - slack for step in result.curve):
        wrong.append(("overdrawn", "the reserve was used"))
    if crew.home is not None and not np.array_equal(result.path[-1], crew.home):
        wrong.append(("not home", f"at {result.path[-1].tolist()}, home is {crew.home.tolist()}"))
    wrong += [("legs through obstacles", leg) for leg in crossings(domain, result.path)]
    if not isinstance(mission.world.cost, Transect):  # whose routes leave the domain at the surface
        wrong += [("errors", f"{p.tolist()} on the route is outside") for p in outside(domain, result.path)]
    sites = [query.site for query in result.queries]
    wrong += [("errors", f"a query at {p.tolist()}, outside") for p in outside(domain, sites)]
    if result.end_reason is None:
        wrong.append(("errors", "it did not end"))
    return wrong


def outside(domain: Domain, points):
    """Return the points that are not in the domain."""
    return [p for p in points if not domain.contains(p[None])[0]]


def crossings(domain: Domain, path: np.ndarray) -> list[str]:
    """Return the legs of a path that cross an obstacle or leave the region, by independent geometry."""
    near, crossing = NEAR * float(domain.extent.max()), []
    shrunk = [o.polygon.buffer(-near) for o in domain.obstacles] if domain.dimension == 2 else []
    for a, b in pairwise(path):
        leg = f"{a.tolist()} to {b.tolist()}"
        if domain.dimension == 2:
            line = shapely.LineString([a, b])
            crossed = [o for o, s in zip(domain.obstacles, shrunk, strict=True) if line.intersects(s)]
            if domain.region is not None and not domain.region.buffer(near).covers(line):
                crossing.append(f"{leg} leaves the region")
        else:
            crossed = [o for o in domain.obstacles if _through(a, b, o, near)]
        crossing += [f"{leg} through {o.name}" for o in crossed]
    return crossing


def _through(a: np.ndarray, b: np.ndarray, box: Obstacle, near: float) -> bool:
    """Return True if a segment passes through a box (the slab method)."""
    low, high = np.array(box.low) + near, np.array(box.high) - near
    enters, leaves = 0.0, 1.0
    for start, step, bottom, top in zip(a, b - a, low, high, strict=True):
        if step == 0.0:
            if not bottom < start < top:
                return False
            continue
        ends = sorted(((bottom - start) / step, (top - start) / step))
        enters, leaves = max(enters, ends[0]), min(leaves, ends[1])
    return enters < leaves


# -- the command -----------------------------------------------------------------------------------------


def tried(seed: int) -> tuple[int, list[tuple[str, str]], str]:
    """Return a seed, the faults of its mission, and its policy."""
    try:
        mission = mission_of(seed)
        return seed, faults(mission, run(mission)), mission.policy_kind
    except BrokenOffError as error:
        return seed, [("errors", f"{error} ({mission.policy_kind})")], mission.policy_kind
    except Exception:  # any exception is a fault to count and to report in full
        return seed, [("errors", traceback.format_exc(limit=-4))], "?"


def many(seeds: range, processes: int):
    """Yield `tried` of each seed, in order, with several processes."""
    if processes == 1:
        yield from map(tried, seeds)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(tried, seeds, chunksize=20)


def tally(counts: Counter) -> str:
    """Return the summary line."""
    return f"worlds {counts['worlds']}, " + ", ".join(f"{kind} {counts[kind]}" for kind in FAULTS)


def main() -> int:
    """Run the worlds, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first world")
    parser.add_argument("--only", type=int, help="run only the world of this seed, with details")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    if args.only is not None:
        mission = mission_of(args.only)
        print(f"{mission.policy}\n{mission.world.cost}\n{mission.vehicles[0]}\n{mission.world.disturbances}")
        print(*mission.world.domain.obstacles, sep="\n")
        args.seed, args.worlds, args.processes = args.only, 1, 1
    counts, began = Counter({"worlds": 0}), time.monotonic()
    for seed, wrong, _ in many(range(args.seed, args.seed + args.worlds), args.processes):
        counts["worlds"] += 1
        for kind in {kind for kind, _ in wrong}:
            counts[kind] += 1
        for kind, what in wrong[:3]:
            print(f"\nseed {seed}: {kind}: {what}", flush=True)
        if counts["worlds"] % 100 == 0:
            print(f"\r{tally(counts)}, {time.monotonic() - began:.0f} s", end="", file=sys.stderr, flush=True)
    print(f"\n{tally(counts)}")
    return int(any(counts[kind] for kind in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
