"""What ten thousand readings on the way cost, in time and in accuracy.

``time``: a boat at 1.5 m/s that reads every second, over 50 x 50 sites of a bay of 1 km, decides by TruVaR
until it has taken 10,000 readings. Print the number of readings in the model, and the median and largest
seconds of the last twenty decisions (`ask`), of taking in one order's readings (`tell`), and of the fits
before them, if the model learns.

``error``: how far the belief of pooled readings is from that of all, for pieces of several lengths. The boat
drives eight random legs, with 3,000 readings in all, over a field drawn from the prior with a standard
deviation of 1. Print, over 50 x 50 sites and over every 25th place of a reading: the root mean square and the
95th percentile of the difference of the means, in standard deviations of the belief of all readings, and the
largest relative error of that standard deviation.

``moves``: what it saves to value a move by all that it reads. A probe that reads every metre, with a standard
deviation of 0.1, maps the upper 30% of fields of the world ``gp-lake``, by a rule that counts readings on the
way and by the same rule that counts those at its stops only; the belief takes all in both cases. Print the
cost at which the mean F1 over all fields and starts first reaches 0.9 and 0.95, and the first rule's cost as
a share of the second's, with a 95% interval from resampling the runs.

``paths``: the same for ``informative-path``, with a boat that reads every two seconds over 26 x 26 sites of
the bay, for stops of 30 and of 120 seconds. Print the mean F1 at the end, and the mean difference with its
standard error.

    python benchmarks/on_the_way.py time [--scales 50 100 200] [--learn] [--readings 10000]
    python benchmarks/on_the_way.py error [--pieces 0.1 0.2 0.4] [--noise 0.1 0.3] [--draws 3]
    python benchmarks/on_the_way.py moves [--draws 10] [--starts 3] [--battery 3000]
    python benchmarks/on_the_way.py paths [--draws 10] [--stops 30 120]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np

from fieldbo import load_mission, run
from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import kernel as kernel_named
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet
from fieldbo.belief.readings import thinned
from fieldbo.costs import Boat
from fieldbo.costs.on_the_way import on_the_way
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Along, Sensor
from fieldbo.messages import Stop
from fieldbo.policies.contract import Policy
from fieldbo.policies.level_set.tour import OneStepRisk, Tour
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.policies.paths.informative import InformativePath
from fieldbo.testing import small_mission
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.gp_draw import GPDraw
from fieldbo.world.world import Quantity, World

EXTENT_M, SITES, LAST = 1000.0, 50, 20
"""Length of the bay, sites along it, and decisions that are timed."""

BOAT, ALONG = Boat(speed=1.5, stop_s=20.0), Along(every_s=1.0)


def bay() -> Domain:
    """Return 50 x 50 sites over a square kilometre."""
    axes = [Axis("east", "m", 0.0, EXTENT_M), Axis("north", "m", 0.0, EXTENT_M)]
    return Domain.grid(axes, (SITES, SITES))


def timed(scale_m: float, *, learn: bool, readings: int) -> str:
    """Return one row of times, for a field of one length scale."""
    domain, scales = bay(), (scale_m, scale_m)
    field = GPDraw(length_scales=scales).make(domain, 0)
    world = World("bay", "", domain, BOAT, "s", Sensor(0.1, along=ALONG), Quantity(), field)
    model = Model() if learn else Model(learn=False, length_scales=scales, variance=1.0, mean=0.0)
    mission = small_mission(TruVaR(), world=world, question=LevelSet(0.5), battery=1e7, home=False)
    mission = replace(mission, model=model)
    agent, vehicle, taken = Agent(mission), Simulated(mission), 0
    times: list[tuple[float, float, float]] = []
    while taken < readings:
        began = time.perf_counter()
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
        fits_s, began = time.perf_counter() - began, time.perf_counter()
        order = agent.ask()
        ask_s = time.perf_counter() - began
        if isinstance(order, Stop):
            break
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        taken += len(event.values)
        began = time.perf_counter()
        agent.tell(event)
        times.append((ask_s, time.perf_counter() - began, fits_s))
    ask, tell, fits = np.array(times[-LAST:]).T
    return (
        f"length scale {scale_m:g} m, {'learned' if learn else 'known'}: {taken:,} readings of {len(times)} "
        f"orders, {agent.readings:,} in the model; ask {np.median(ask):.3f} s (at most {ask.max():.3f}), "
        f"tell {np.median(tell):.3f} s (at most {tell.max():.3f})"
        + (f", a fit at most {fits.max():.2f} s" if learn else "")
    )


def legs_of(rng: np.random.Generator, most: int = 3000) -> list[Array]:
    """Return where a boat reads on eight random legs: one (k, 2) array per leg."""
    corners = rng.uniform(0.0, EXTENT_M, (9, 2))
    legs = [on_the_way(BOAT, ALONG, ends).sites for ends in pairwise(corners)]
    left = np.maximum(0, most - np.cumsum([0, *(len(leg) for leg in legs)]))
    return [leg[:n] for leg, n in zip(legs, left, strict=False) if n > 0]


def error(kernel: str, noise_sd: float, pieces: list[float], draws: int) -> list[str]:
    """Return one row per length of a piece."""
    k, sites = kernel_named(kernel, [100.0, 100.0]), bay().sites
    rows = dict[float, list[Array]]()
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        legs = legs_of(rng)
        x = np.concatenate(legs)
        K = k(x, x)
        field = np.linalg.cholesky(K + 1e-8 * np.eye(len(x))) @ rng.standard_normal(len(x))
        y, v = field + noise_sd * rng.standard_normal(len(x)), np.full(len(x), noise_sd**2)
        places = np.concatenate([sites, x[::25]])
        among_sites = np.arange(len(places)) < len(sites)
        every = Belief(k).condition_on(x, y, v)
        mean, sd = every.mean(places), np.sqrt(every.variance(places))
        ends = np.cumsum([len(leg) for leg in legs])[:-1]
        parts = list(zip(*(np.split(a, ends) for a in (x, y, v)), strict=True))
        for piece in pieces:
            taken = [thinned(*part, piece * k.length_scales) for part in parts]
            pooled = Belief(k).condition_on(*(np.concatenate([t[i] for t in taken]) for i in range(3)))
            off = np.abs(pooled.mean(places) - mean) / sd
            off_sd = np.abs(np.sqrt(pooled.variance(places)) / sd - 1.0)
            numbers = [float(pooled.size), float(len(x))]
            for among in (among_sites, ~among_sites):
                numbers += [np.mean(off[among] ** 2), np.quantile(off[among], 0.95), off_sd[among].max()]
            rows.setdefault(piece, []).append(np.array(numbers))
    lines = []
    for piece, each in rows.items():
        size, n, *both = np.mean(each, axis=0)
        text = [
            f"{where}: rms {np.sqrt(both[i]):.3f}, 95% below {both[i + 1]:.3f}, sd off by {both[i + 2]:.1%}"
            for where, i in (("sites", 0), ("route", 3))
        ]
        lines.append(
            f"{kernel}, noise {noise_sd:g}, pieces of {piece:g}: {n:.0f} to {size:.0f}; {'; '.join(text)}"
        )
    return lines


# -- what it saves to count readings on the way --------------------------------------------------------------


@contextmanager
def counting(*, stops_only: bool) -> Iterator[None]:
    """Have policies count only what is read at their stops, within a ``with`` block, if so asked."""
    with ExitStack() as stack:
        if stops_only:
            alone = patch("fieldbo.policies.level_set.tour.with_way", lambda _, __, ___, value, ____: value)
            stack.enter_context(alone)
            always = patch("fieldbo.policies.level_set.tour.on_a_tour", lambda *_: np.inf)
            stack.enter_context(always)  # a tour then never gives way to a move
            at_stops = patch.object(InformativePath, "_objective", lambda _, __, loss, chain: loss)
            stack.enter_context(at_stops)
        yield


def curve(policy: Policy, draw: int, start: int, battery: float) -> Array:
    """Return the F1 (101,) of a run at equal steps of cost."""
    mission = load_mission(
        "gp-lake", {"policy": {"kind": "tour"}, "draw": draw, "agent": {"battery": battery}}
    )
    sensor = replace(mission.world.sensor, noise_sd=0.1, along=Along(every_m=1.0))
    world, sites = replace(mission.world, sensor=sensor), mission.world.domain.sites
    at = sites[np.random.default_rng([draw, start]).integers(len(sites)) if start else 0]
    vehicles = (replace(mission.vehicles[0], start=at),)
    result = run(replace(mission, world=world, policy=policy, vehicles=vehicles, seed=start))
    costs, scores = (np.array([getattr(step, name) for step in result.curve]) for name in ("cost", "f1"))
    steps = np.searchsorted(costs, np.linspace(0.0, battery, 101), side="right")
    return np.append(0.0, scores)[steps]


def moves(policy: Policy, draws: int, starts: int, battery: float) -> str:
    """Return one row: what a rule saves by counting readings on the way."""
    curves = list[Array]()
    for stops_only in (True, False):
        with counting(stops_only=stops_only):
            rows = [curve(policy, draw, start, battery) for draw in range(draws) for start in range(starts)]
        curves.append(np.stack(rows))

    def cost_to(target: float, some: Array) -> float:
        reached = np.flatnonzero(some.mean(axis=0) >= target)
        return battery * reached[0] / 100.0 if len(reached) else np.nan

    rng, text = np.random.default_rng(0), []
    resampled = rng.integers(draws * starts, size=(1000, draws * starts))
    for target in (0.9, 0.95):
        before, after = (cost_to(target, some) for some in curves)
        if np.isnan([before, after]).any():
            text.append(f"mean F1 {target:g} is not reached")
            continue
        shares = [cost_to(target, curves[1][n]) / cost_to(target, curves[0][n]) for n in resampled]
        low, high = np.nanquantile(shares, [0.025, 0.975])
        text.append(
            f"mean F1 {target:g} at {after:.0f} instead of {before:.0f}, {after / before:.2f} of it "
            f"({low:.2f} to {high:.2f})"
        )
    return f"{type(policy).__name__}, {draws * starts} runs: {'; '.join(text)}"


def paths(stop_s: float, draws: int) -> str:
    """Return one row: what an informative path gains by counting readings on the way."""
    axes = [Axis("east", "m", 0.0, EXTENT_M), Axis("north", "m", 0.0, EXTENT_M)]
    domain, scales = Domain.grid(axes, (26, 26)), (150.0, 150.0)
    model = Model(learn=False, length_scales=scales, variance=1.0, mean=0.0)
    scores = np.empty((2, draws))
    for draw in range(draws):
        field, sensor = GPDraw(length_scales=scales).make(domain, draw), Sensor(0.2, along=Along(every_s=2.0))
        world = World("bay", "", domain, Boat(speed=1.5, stop_s=stop_s), "s", sensor, Quantity(), field)
        mission = small_mission(
            InformativePath(), world=world, battery=2500.0, question=LevelSet(0.5), seed=draw
        )
        for k, stops_only in enumerate((True, False)):
            with counting(stops_only=stops_only):
                scores[k, draw] = run(replace(mission, model=model)).curve[-1].f1
    gain = scores[1] - scores[0]
    return (
        f"stops of {stop_s:g} s, {draws} fields: mean F1 {scores[1].mean():.3f} instead of "
        f"{scores[0].mean():.3f}, a gain of {gain.mean():.3f} +- {gain.std(ddof=1) / np.sqrt(draws):.3f}"
    )


def main() -> None:
    """Print the times, the errors, or what counting readings on the way gains."""
    parser = argparse.ArgumentParser(description="Time and accuracy of readings on the way.")
    parser.add_argument("what", choices=["time", "error", "moves", "paths"])
    parser.add_argument("--scales", type=float, nargs="+", default=[50.0, 100.0, 200.0], help="in metres")
    parser.add_argument("--learn", action="store_true", help="fit the hyperparameters, too")
    parser.add_argument("--readings", type=int, default=10_000)
    parser.add_argument("--kernels", nargs="+", default=["se", "matern52", "matern32"])
    parser.add_argument("--pieces", type=float, nargs="+", default=[0.1, 0.2, 0.4], help="in length scales")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.1, 0.3])
    parser.add_argument("--draws", type=int, help="fields; by default 3 for error, else 10")
    parser.add_argument("--starts", type=int, default=3, help="of each field")
    parser.add_argument("--battery", type=float, default=3000.0)
    parser.add_argument("--stops", type=float, nargs="+", default=[30.0, 120.0], help="in seconds")
    arguments = parser.parse_args()
    draws = arguments.draws or (3 if arguments.what == "error" else 10)
    if arguments.what == "time":
        for scale_m in arguments.scales:
            print(timed(scale_m, learn=arguments.learn, readings=arguments.readings), flush=True)
        return
    if arguments.what == "moves":
        for policy in (OneStepRisk(), Tour()):
            print(moves(policy, draws, arguments.starts, arguments.battery), flush=True)
        return
    if arguments.what == "paths":
        for stop_s in arguments.stops:
            print(paths(stop_s, draws), flush=True)
        return
    with one_blas_thread():
        for kernel in arguments.kernels:
            for noise_sd in arguments.noise:
                print("\n".join(error(kernel, noise_sd, arguments.pieces, draws)), flush=True)


if __name__ == "__main__":
    main()
