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

    python benchmarks/on_the_way.py time [--scales 50 100 200] [--learn] [--readings 10000]
    python benchmarks/on_the_way.py error [--pieces 0.1 0.2 0.4] [--noise 0.1 0.3] [--draws 3]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import kernel as kernel_named
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet
from fieldbo.belief.thinning import thinned
from fieldbo.costs import Boat
from fieldbo.costs.on_the_way import on_the_way
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Along, Sensor
from fieldbo.messages import Stop
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.testing import small_mission
from fieldbo.vehicles.simulated import Simulated
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


def main() -> None:
    """Print the times, or the errors."""
    parser = argparse.ArgumentParser(description="Time and accuracy of readings on the way.")
    parser.add_argument("what", choices=["time", "error"])
    parser.add_argument("--scales", type=float, nargs="+", default=[50.0, 100.0, 200.0], help="in metres")
    parser.add_argument("--learn", action="store_true", help="fit the hyperparameters, too")
    parser.add_argument("--readings", type=int, default=10_000)
    parser.add_argument("--kernels", nargs="+", default=["se", "matern52", "matern32"])
    parser.add_argument("--pieces", type=float, nargs="+", default=[0.1, 0.2, 0.4], help="in length scales")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.1, 0.3])
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.what == "time":
        for scale_m in arguments.scales:
            print(timed(scale_m, learn=arguments.learn, readings=arguments.readings), flush=True)
        return
    with one_blas_thread():
        for kernel in arguments.kernels:
            for noise_sd in arguments.noise:
                print("\n".join(error(kernel, noise_sd, arguments.pieces, arguments.draws)), flush=True)


if __name__ == "__main__":
    main()
