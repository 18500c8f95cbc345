"""Regret against the cost of moving: the table of Liu, Wang and Wei (2023), section 5.

Each rule starts from the same design in the same world and takes the same number of steps after it. A run is
one line of a CSV file, written as soon as it is done; a study that was broken off goes on where it was.

==========================  ====================================================================
cumulative regret           sum over the steps of what the true value there lacks to the true optimum
simple regret               the same of the best site read at all, the design counted in
switching cost              travel summed over the steps, from the last site of the design on
==========================  ====================================================================

True values throughout, without the readings' noise. Of the tuning world only the least error so far is known:
a run that finds less has a regret below zero.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import numpy as np

from fieldbo import load_mission, run
from fieldbo.campaign import Case, digest, prepared
from fieldbo.errors import InputError
from fieldbo.exchange import EndReason
from fieldbo.plot.figures import BLUE, GREEN, ORANGE, PINK, RED, SKY, legend_below, new_figure, opened, save
from fieldbo.result import table, write_whole
from fieldbo.result.truth import truth_of

OUT = Path("runs") / "switching_cost.csv"
REPEATS = 10

WORLDS = ("branin", "ackley", "hartmann", "mlp")
"""The missions of a world are called after it."""


def rollout(base: str, **more: Any) -> dict[str, Any]:
    """Return the settings of a base rule rolled out as in the paper."""
    return {"kind": "rollout", "base": base, "horizon": 3, "fantasies": 32, **more}


OURS = "distUCB rollout"
RULES: dict[str, dict[str, Any]] = {
    "distUCB": {"kind": "dist-ucb"},
    OURS: rollout("dist-ucb"),
    "EI": rollout("ei", horizon=1),  # one step ahead, anywhere in the box
    "EI per cost rollout": rollout("ei-per-cost"),
    "UCB rollout": rollout("ucb"),
    "EI per cost rollout, d0 = 0.1": rollout("ei-per-cost", d0=0.1),  # all but the shortest moves count
}
STUDIED = [*RULES][:5]
"""What the paper compares, and distUCB one step ahead; the last rule runs only where it is asked for."""

_LOOKS = dict(zip(RULES, zip((SKY, BLUE, RED, PINK, GREEN, ORANGE), "vos^DP", strict=True), strict=True))

FIGURES = ("cumulative_regret", "simple_regret", "switching_cost")


@dataclass(frozen=True)
class Cell:
    """One run of the study: repeats of the same number start alike, whatever the rule."""

    world: str
    rule: str
    repeat: int


@dataclass(frozen=True)
class Outcome:
    """What came of a run: a line of the file."""

    world: str
    rule: str
    repeat: int
    steps: int
    cumulative_regret: float
    simple_regret: float
    switching_cost: float
    seconds: float
    digest: str

    @property
    def cell(self) -> Cell:
        """Which run it was."""
        return Cell(self.world, self.rule, self.repeat)

    @classmethod
    def of_row(cls, row: Mapping[str, str]) -> Self:
        """Return what a line says."""
        kinds = {"world": str, "rule": str, "repeat": int, "steps": int, "digest": str}
        return cls(**{f.name: kinds.get(f.name, float)(row[f.name]) for f in fields(cls)})


COLUMNS = tuple(f.name for f in fields(Outcome))


def settings(cell: Cell, steps: int | None) -> tuple[str, dict[str, Any]]:
    """Return a cell's mission and what is laid over it; `steps` after the design, None: as it has them."""
    mission = f"{cell.world}-ei"  # nothing but a kind in its table of the policy
    told: dict[str, Any] = {"policy": RULES[cell.rule]}
    if steps is not None:
        told["agent"] = {"max_steps": load_mission(mission).initial + steps}
    return mission, told


def marked(cell: Cell, steps: int | None) -> str:
    """Return a digest of what decides a cell's runs, apart from the repeat."""
    mission, told = settings(cell, steps)
    return digest(Case(mission, 0, 0), told)


def measured(cell: Cell, steps: int | None) -> Outcome:
    """Run a cell; called in a process of its own."""
    name, told = settings(cell, steps)
    mission = prepared(Case(name, 0, cell.repeat), told)
    begun = perf_counter()
    result = run(mission)
    seconds = perf_counter() - begun
    if result.end_reason != EndReason.STEP_LIMIT:
        raise RuntimeError(f"{cell} ended otherwise than by its number of steps: {result.end_reason}")
    truth, world = truth_of(mission.world, mission.question), mission.world
    assert truth is not None
    sites, design = result.sites, mission.initial
    regret = mission.question.sign * (truth.optimum.value - world.truth(sites))
    travel = [float(world.cost.travel(*move)[0]) for move in zip(sites[:-1], sites[1:, None], strict=True)]
    return Outcome(
        cell.world,
        cell.rule,
        cell.repeat,
        len(sites) - design,
        float(regret[design:].sum()),
        float(regret.min()),
        float(np.sum(travel[design - 1 :])),
        round(seconds, 2),
        marked(cell, steps),
    )


def outcomes(file: Path) -> list[Outcome]:
    """Return what is in the file; a last line that was cut short is left out.

    Raises
    ------
    InputError
        It is another kind of file.
    """
    if not file.exists():
        return []
    text = file.read_text(encoding="utf-8")
    reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise InputError(f"{file} is no table of this study", expected="one that it wrote", where="--out")
    return [Outcome.of_row(row) for row in reader]


def study(
    cells: Sequence[Cell],
    file: Path,
    jobs: int,
    steps: int | None = None,
    on_run: Callable[[Outcome, int], object] = lambda outcome, left: None,
) -> None:
    """Run the cells that the file does not hold yet.

    Parameters
    ----------
    cells : sequence of Cell
    file : Path
    jobs : int
        Processes at the same time, of one thread each.
    steps : int, optional
        After the design; by default as many as the missions have.
    on_run : Callable
        Called with (what came of a run, how many are still to come).

    Raises
    ------
    InputError
        The file holds runs of a cell under other settings.
    """
    done = {o.cell: o.digest for o in outcomes(file)}
    marks = {(c.world, c.rule): marked(c, steps) for c in cells if c.repeat == cells[0].repeat}
    for cell in cells:
        if done.get(cell, marks[cell.world, cell.rule]) != marks[cell.world, cell.rule]:
            raise InputError(
                f"{file} holds runs of {cell.rule} in {cell.world} with other settings",
                expected="the same missions and number of steps as before",
                where="--out",
                mend="choose another file, or delete this one",
            )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, table(COLUMNS, [astuple(o) for o in outcomes(file)]))  # without what was cut short
    todo = [c for c in cells if c not in done]
    with (
        file.open("ab", buffering=0) as out,
        ProcessPoolExecutor(min(jobs, len(todo)) or 1, get_context("spawn")) as pool,
    ):
        try:
            futures = [pool.submit(measured, c, steps) for c in todo]
            for left, future in zip(range(len(todo) - 1, -1, -1), as_completed(futures), strict=True):
                outcome = future.result()
                out.write(table(COLUMNS, [astuple(outcome)]).split(b"\n", 1)[1])
                os.fsync(out.fileno())
                on_run(outcome, left)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def figures(found: Iterable[Outcome]) -> dict[tuple[str, str], dict[int, np.ndarray]]:
    """Return the three figures (3,) of each repeat, by world and rule, both in their order."""
    every: dict[tuple[str, str], dict[int, np.ndarray]] = {(w, r): {} for w in WORLDS for r in RULES}
    for one in found:
        every[one.world, one.rule][one.repeat] = np.array([getattr(one, name) for name in FIGURES])
    return {pair: repeats for pair, repeats in every.items() if repeats}


def mean_and_error(values: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of figures, (3,), and its standard error; NaN for that of a single one."""
    stacked = np.array([*values])
    n = len(stacked)
    error = stacked.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(stacked.shape[1], np.nan)
    return stacked.mean(axis=0), error


def in_digits(mean: float, error: float, sign: str = "") -> str:
    """Return a mean and its error to the second digit of the error; `sign` "+": with its sign always.

    A mean without an error stands alone.

    Examples
    --------
    >>> in_digits(12.3456, 0.234)
    '12.35 ± 0.23'
    """
    if not np.isfinite(error):
        return f"{mean:{sign}.4g}"
    digits = max(0, 1 - int(np.floor(np.log10(error)))) if error > 0 else 3
    return f"{mean:{sign}.{digits}f} ± {error:.{digits}f}"


def markdown(found: Sequence[Outcome]) -> str:
    """Return the table: each rule's means with their standard errors, the least of a world in bold.

    Below it, by how much the distUCB rollout lies above each rival from the same designs.
    """
    every = figures(found)
    names = " | ".join(name.replace("_", " ") for name in FIGURES)
    lines = [f"| world | rule | {names} | runs |", "|---|---|---|---|---|---|"]
    steps = {o.world: o.steps for o in found}
    for world, taken in steps.items():
        means = {rule: mean_and_error(f.values()) for (w, rule), f in every.items() if w == world}
        least = np.min([mean for mean, _ in means.values()], axis=0)
        for rule, (mean, error) in means.items():
            cells = [in_digits(m, e) for m, e in zip(mean, error, strict=True)]
            told = [f"**{c}**" if m == best else c for c, m, best in zip(cells, mean, least, strict=True)]
            row = [f"{world}, {taken} steps", rule, *told, str(len(every[world, rule]))]
            lines.append(f"| {' | '.join(row)} |")
    lines += [
        "",
        f"{OURS} less its rival, over the repeats that both have done:",
        "",
        f"| world | rival | {names} |",
        "|---|---|---|---|---|",
    ]
    for (world, rule), rival in every.items():
        ours = every.get((world, OURS), {})
        both = [f - rival[repeat] for repeat, f in ours.items() if repeat in rival]
        if rule != OURS and both:
            apart = zip(*mean_and_error(both), strict=True)
            lines.append(f"| {world} | {rule} | {' | '.join(in_digits(m, e, '+') for m, e in apart)} |")
    return "\n".join(lines)


def picture(found: Sequence[Outcome], file: Path) -> None:
    """Draw cumulative regret against switching cost, one panel a world: down and to the left is better."""
    every = figures(found)
    worlds = list(dict.fromkeys(world for world, _ in every))
    figure = new_figure(3.4 * len(worlds), 3.8)
    for ax, world in zip(np.atleast_1d(figure.subplots(1, len(worlds))), worlds, strict=True):
        for rule, (colour, marker) in _LOOKS.items():
            if (world, rule) in every:
                (regret, _, cost), (d_regret, _, d_cost) = mean_and_error(every[world, rule].values())
                ax.errorbar(
                    cost, regret, d_regret, d_cost, fmt=marker, color=colour, linewidth=1.0, label=rule
                )
        ax.margins(0.1)
        ax.set(title=world, xlabel="switching cost (spans)", xlim=(0, None))
        if ax.dataLim.y0 > 0:
            ax.set_ylim(bottom=0)
        opened(ax)
    figure.axes[0].set_ylabel("cumulative regret, ± one standard error")
    legend_below(figure)
    save(figure, file)


def _count(told: str) -> int:
    """Return a number of things, at least one, that was told on the command line."""
    number = int(told)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def main() -> None:
    """Run what is still missing, and print the table."""
    parser = argparse.ArgumentParser(description="Regret against the cost of moving.")
    parser.add_argument("--repeats", type=_count, default=REPEATS, metavar="N", help=f"(default: {REPEATS})")
    parser.add_argument("--jobs", type=_count, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FILE", help=f"(default: {OUT})")
    parser.add_argument("--only", nargs="+", choices=WORLDS, default=WORLDS, help="these worlds")
    parser.add_argument("--rules", nargs="+", choices=RULES, help="these rules")
    parser.add_argument("--steps", type=_count, metavar="N", help="after the design (default: the missions')")
    parser.add_argument(
        "--table-only", action="store_true", help="print what the file holds, and run nothing"
    )
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw it there, too")
    told = parser.parse_args()
    cells = [
        Cell(w, rule, k) for k in range(told.repeats) for w in told.only for rule in told.rules or STUDIED
    ]

    def report(outcome: Outcome, left: int) -> None:
        print(f"{outcome.cell}: {outcome.seconds:.0f} s; {left} to come", file=sys.stderr, flush=True)

    os.environ["NUMBA_NUM_THREADS"] = "1"  # inherited by the processes, which share the cores already
    try:
        if not told.table_only:
            study(cells, told.out, told.jobs, told.steps, report)
        found = [o for o in outcomes(told.out) if o.world in told.only and o.rule in (told.rules or RULES)]
    except InputError as error:
        sys.exit(str(error))
    if not found:
        sys.exit(f"{told.out} holds nothing of {', '.join(told.only)} yet")
    print(markdown(found))
    if told.picture is not None:
        picture(found, told.picture)


if __name__ == "__main__":
    main()
