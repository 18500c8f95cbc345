"""The variance that a path leaves where it matters: the benchmark of CAtNIPP (Cao et al., CoRL 2022).

A vehicle drives from one corner of the unit square to the opposite one, on a budget of path length, and reads
the field after each full 0.2 of the way. The model is fixed: zero mean, Matern-3/2, unit variance, length
scale 0.45. A run is one line of a CSV file, written as soon as it is done; an interrupted study continues
where it stopped.

==========  ===================================================================================
score       posterior variance summed over the sites of a 30 x 30 grid where, in the end,
            mean + sd is at least 0.4
seconds     processor time of a run, apart from the first plan
first_s     processor time of the first plan, which a process makes once per budget
==========  ===================================================================================

Instances 0 to 29 are the published ones, the others fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import process_time
from typing import ClassVar

import numpy as np
from study import Cell, Line, by_rule, carried_out, digest_of, in_digits, mean_and_error, options

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.belief.kernels import Matern32
from fieldbo.belief.posterior import Belief
from fieldbo.policies.paths.chain import Chain, first_plan, improved, tours
from fieldbo.policies.paths.loss import MayExceed, RemainingLoss, amplitude
from fieldbo.results.plot.figures import legend_below, new_figure, opened, save
from fieldbo.results.plot.style import BLUE, GREEN, ORANGE

OUT = Path("runs") / "informative_paths.csv"
PUBLISHED = 30
REPEATS = PUBLISHED + 150

WORLDS = {f"budget {budget}": budget for budget in (6, 8, 10, 12)}
OURS, ONCE, LAWN = "planned again", "planned once", "best lawnmower"
RULES = (OURS, ONCE, LAWN)
_LOOKS = {OURS: (BLUE, "o"), ONCE: (GREEN, "s"), LAWN: (ORANGE, "^")}

SPACING, THRESHOLD, NOISE = 0.2, 0.4, 1e-10
LOW, HIGH = np.zeros(2), np.ones(2)
STARTS, FIRST_ITERATIONS, ITERATIONS = 16, 80, 16
GUESS, TRUST, SOFTNESS = 0.5, 10.0, 0.02
"""Of the amplitude; see `fieldbo.policies.paths.loss`."""


def square(nodes: Array) -> Array:
    """Return the points (n^2, 2) of a square grid with the given nodes (n,) along each axis."""
    return np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)


_NODES = np.linspace(0, 1, 30)
GRID = square(_NODES)
BLOCKS = square(_NODES.reshape(15, 2).mean(axis=1))
"""Planning looks at the middle of each 2 x 2 sites."""
PRIOR = Belief(Matern32(np.array([0.45, 0.45])))


def field(instance: int) -> Callable[[Array], Array]:
    """Return an instance's field: 8 to 12 bumps, scaled to a maximum of 1 on the grid.

    Their centres are uniform on the square, their variances along each axis the roots of uniform numbers
    between 0.00005 and 0.0002, and their heights are inverse to the product of both.
    """
    random = np.random.RandomState(1 + 100 * (instance + 1))
    bumps = [
        (random.rand(2), np.sqrt(random.uniform(0.00005, 0.0002, 2))) for _ in range(random.randint(8, 13))
    ]

    def height(points: Array) -> Array:
        return np.sum(
            [
                np.exp(-0.5 * ((points - centre) ** 2 / variances).sum(axis=1)) / variances.prod()
                for centre, variances in bumps
            ],
            axis=0,
        )

    highest = height(GRID).max()
    return lambda points: height(points) / highest


def score(belief: Belief) -> float:
    """Return the variance left over the believed area."""
    mean, variance = belief.mean(GRID), belief.variance(GRID)
    return float(variance[mean + np.sqrt(variance) >= THRESHOLD].sum())


def objective(belief: Belief) -> RemainingLoss:
    """Return the loss over the blocks, as a function of the readings still to come."""
    importance = MayExceed(THRESHOLD, amplitude(belief, GUESS, TRUST), SOFTNESS)
    return RemainingLoss(belief, BLOCKS, importance, NOISE, np.full(len(BLOCKS), len(GRID) / len(BLOCKS)))


def chain(start: Array, count: int) -> Chain:
    """Return the limits of what is left to drive."""
    return Chain(start, count, SPACING, LOW, HIGH, destination=HIGH)


@cache
@on_one_blas_thread
def first(budget: int) -> tuple[Array, float]:
    """Return the best plan (m, 2) before any reading, and the processor seconds of its search."""
    begun = process_time()
    limits = chain(LOW, round(budget / SPACING) - 1)
    starts = tours(limits, np.random.default_rng(0), STARTS)
    plan, _ = first_plan(objective(PRIOR), limits, starts, FIRST_ITERATIONS)
    return plan, process_time() - begun


@on_one_blas_thread
def planned_again(budget: int, read: Callable[[Array], Array]) -> Belief:
    """Return the belief in the end if the rest is planned again after each reading."""
    plan, _ = first(budget)
    belief = PRIOR
    while True:
        at, plan = plan[0], plan[1:]
        belief, _, _ = belief.extended(at, float(read(at[None])[0]), NOISE)
        if not len(plan):
            return belief
        plan, _ = improved(objective(belief), chain(at, len(plan)), plan, ITERATIONS)


def read_all(plan: Array, read: Callable[[Array], Array]) -> Belief:
    """Return the belief after the readings of a plan (m, 2)."""
    return PRIOR.condition_on(plan, read(plan), NOISE)


def lawnmower(lines: int, across: float, along: float) -> Array:
    """Return the corners (k, 2) of parallel lines between two opposite corners of the square.

    Parameters
    ----------
    lines : int
    across, along : float
        Distance of the outer lines, and of all lines' ends, from the edges.
    """
    corners = [LOW]
    for number, x in enumerate(np.linspace(across, 1 - across, lines)):
        ends = [[x, along], [x, 1 - along]]
        corners += ends if number % 2 == 0 else ends[::-1]
    return np.vstack([*corners, HIGH])


def readings_along(corners: Array) -> tuple[Array, float]:
    """Return the readings (m, 2) along a line of corners (k, 2), and its length."""
    lengths = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1)))
    at = np.arange(SPACING, lengths[-1] * (1 - 1e-12), SPACING)
    return np.stack([np.interp(at, lengths, x) for x in corners.T], axis=1), float(lengths[-1])


@cache
def best_lawnmower(budget: int) -> Array:
    """Return the readings (m, 2) of the lawnmower that leaves the least loss before any reading."""
    loss = objective(PRIOR)
    margins = np.arange(0.0, 0.26, 0.02)
    swept = [
        readings_along(lawnmower(lines, across, along))
        for lines in range(2, 14)
        for across in margins
        for along in margins
    ]
    return min((at for at, length in swept if length <= budget), key=lambda at: loss(at)[0])


@dataclass(frozen=True)
class Outcome(Line):
    """What came of a run: a line of the file."""

    figures: ClassVar[tuple[str, ...]] = ("score", "seconds")

    score: float
    seconds: float
    first_s: float
    digest: str


def marked(cell: Cell) -> str:
    """Return a digest of what decides a cell's runs, apart from the instance."""
    model = [SPACING, THRESHOLD, NOISE, GUESS, TRUST, SOFTNESS]
    search = {OURS: [STARTS, FIRST_ITERATIONS, ITERATIONS], ONCE: [STARTS, FIRST_ITERATIONS], LAWN: []}
    return digest_of(WORLDS[cell.world], cell.rule, model, search[cell.rule])


def measured(cell: Cell) -> Outcome:
    """Run a cell; called in a process of its own."""
    budget, read = WORLDS[cell.world], field(cell.repeat)
    plan, first_s = (best_lawnmower(budget), 0.0) if cell.rule == LAWN else first(budget)
    begun = process_time()
    belief = planned_again(budget, read) if cell.rule == OURS else read_all(plan, read)
    seconds = process_time() - begun
    return Outcome(
        cell.world, cell.rule, cell.repeat, score(belief), round(seconds, 2), round(first_s, 2), marked(cell)
    )


def markdown(found: Sequence[Outcome]) -> str:
    """Return the table: means with their standard errors over the published and the fresh instances."""
    lines = [
        "| world | policy | score, published | score, fresh | instances | seconds a run | first plan, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for (world, rule), every in by_rule(found, WORLDS, RULES).items():
        parts = [
            {k: f for k, f in every.items() if (k < PUBLISHED) == published} for published in (True, False)
        ]
        scores = [_mean([f[:1] for f in part.values()]) for part in parts]
        first_s = max(o.first_s for o in found if (o.world, o.rule) == (world, rule))
        seconds = np.mean([f[1] for f in every.values()])
        counts = " + ".join(str(len(part)) for part in parts)
        lines.append(
            f"| {world} | {rule} | {' | '.join(scores)} | {counts} | {seconds:.2f} | {first_s:.1f} |"
        )
    return "\n".join(lines)


def _mean(scores: Iterable[Array]) -> str:
    taken = [*scores]
    if not taken:
        return ""
    (mean,), (error,) = mean_and_error(taken)
    return in_digits(mean, error)


def picture(found: Sequence[Outcome], file: Path) -> None:
    """Draw the mean scores against the budget."""
    figure = new_figure(5.0, 3.8)
    ax = figure.subplots()
    every = by_rule(found, WORLDS, RULES)
    for rule, (colour, marker) in _LOOKS.items():
        at = [world for world in WORLDS if (world, rule) in every]
        if at:
            means = [mean_and_error(every[world, rule].values()) for world in at]
            ax.errorbar(
                [WORLDS[world] for world in at],
                [mean[0] for mean, _ in means],
                [error[0] for _, error in means],
                fmt=f"{marker}-",
                color=colour,
                label=rule,
            )
    ax.set(xlabel="budget (path length)", ylabel="variance left, ± one standard error", yscale="log")
    opened(ax)
    legend_below(figure)
    save(figure, file)


def main() -> None:
    """Run what is missing, and print the table."""
    arguments = options("The variance that a path leaves.", OUT, REPEATS, WORLDS, RULES).parse_args()
    rules = arguments.rules or RULES
    cells = [Cell(w, rule, k) for k in range(arguments.repeats) for w in arguments.only for rule in rules]
    found = carried_out(arguments, cells, Outcome, measured, marked)
    print(markdown(found))
    if arguments.picture is not None:
        picture(found, arguments.picture)


if __name__ == "__main__":
    main()
