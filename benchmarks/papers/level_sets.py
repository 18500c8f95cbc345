"""Mean F1 against cost: how soon each rule maps a level set.

Every rule takes the same missions: the same fields from the same starts, with the same battery. A run is one
line of a CSV file with its F1 at equal steps of cost, written as soon as it is done; an interrupted study
continues where it stopped.

The first table gives the cost at which the *mean* F1 over all runs first reaches a target, and the tour's
cost as a share of it, with a 95% interval from resampling the runs (the same ones for both rules). The second
compares the tour with the best other rule in each world.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from study import Cell, Line, carried_out, digest, options

from fieldbo import run
from fieldbo.mission.load import merged
from fieldbo.results.plot.figures import legend_below, new_figure, opened, save
from fieldbo.runs.comparison import Case, prepared

OUT = Path("runs") / "level_sets.csv"
DRAWS, STARTS = 5, 30
STEPS = 100
"""Equal steps of cost, up to the whole battery, at which a run's F1 is kept."""

TARGETS = (0.9, 0.95)
RESAMPLED = 1000


@dataclass(frozen=True)
class Ground:
    """A mission to compare rules on.

    Attributes
    ----------
    mission : str
    battery : float
    draws : int
        Number of fields.
    more : mapping
        Laid over the mission.
    levels : int
        Number of the sensor's levels, among which rules of a single level have their pick.
    rules : tuple of str, optional
        The rules that answer its question, if not all of them do.
    """

    mission: str
    battery: float
    draws: int = DRAWS
    more: Mapping[str, Any] | None = None
    levels: int = 1
    rules: tuple[str, ...] | None = None


LEARNED = {"model": {"learn": True, "length_scales": [450, 6]}}
GROUNDS = {
    "gp-lake": Ground("gp-lake", 8000),
    "gp-square": Ground("gp-square-tour", 3000),
    "gp-lake, learned": Ground("gp-lake", 8000, more=LEARNED),
    "gp-lake-murky": Ground("gp-lake-murky-truvar", 12000),
    "gp-level-noise": Ground(
        "gp-level-noise-truvar", 1000, more={"question": {"threshold": {"quantile": 0.8}}}, levels=3
    ),
    "crack-wall": Ground("wall-damage-map", 90),
    "lake-transect": Ground("lake-level-set", 6000, draws=1),
    "lake-transect-unit-cost": Ground("lake-level-set-unit-cost", 150, draws=1),
    "lake-places": Ground("lake-places-level-set", 10800, draws=1),
    "spit-lake": Ground("spit-lake-map", 5400, draws=1),
    "se-optimum": Ground("se-level-set-truvar", 200),
    "gp-lake, share of maximum": Ground(
        "gp-lake-share-truvar", 8000, rules=("TruVaR", "straddle per cost", "GCHK per cost")
    ),
}

OURS = "tour"
RULES: dict[str, dict[str, Any]] = {
    OURS: {"kind": "tour"},
    "one-step risk": {"kind": "one-step-risk"},
    "TruVaR": {"kind": "truvar"},
    "straddle per cost": {"kind": "straddle", "per_cost": True},
    "GCHK per cost": {"kind": "gchk", "per_cost": True},
    "global SUR per cost": {"kind": "global-sur", "per_cost": True},
    "global MI per cost": {"kind": "global-mi", "per_cost": True},
    "EAVC per cost": {"kind": "eavc", "per_cost": True},
    "distance-penalised": {"kind": "distance-penalised", "per_cost": True},
}
CHOOSES_LEVEL = {"tour", "one-step-risk", "truvar"}


@dataclass(frozen=True)
class Outcome(Line):
    """What came of a run: a line of the file.

    Attributes
    ----------
    f1 : str
        F1 at each step of cost, in thousandths, separated by spaces.
    """

    figures: ClassVar[tuple[str, ...]] = ()

    orders: int
    f1: str
    seconds: float
    digest: str

    @property
    def numbers(self) -> np.ndarray:
        """Its F1 at each step of cost, (STEPS + 1,)."""
        return np.array(self.f1.split(), dtype=float) / 1000.0


def settings(cell: Cell) -> tuple[str, dict[str, Any]]:
    """Return a cell's mission and what is laid over it."""
    ground, (rule, _, level) = GROUNDS[cell.world], cell.rule.partition(", level ")
    policy = {**RULES[rule], **({"level": int(level)} if level else {})}
    return ground.mission, merged(ground.more or {}, {"policy": policy, "agent": {"battery": ground.battery}})


def marked(cell: Cell) -> str:
    """Return a digest of what decides a cell's runs, apart from the repeat."""
    return digest(*settings(cell), steps=STEPS)


def measured(cell: Cell) -> Outcome:
    """Run a cell; called in a process of its own."""
    ground, (name, overrides) = GROUNDS[cell.world], settings(cell)
    start, draw = divmod(cell.repeat, ground.draws)
    mission = prepared(Case(name, draw, start), overrides)
    begun = perf_counter()
    result = run(mission)
    seconds = perf_counter() - begun
    cost, f1 = np.array([(step.cost, step.f1) for step in result.curve]).T
    at = np.searchsorted(cost, np.linspace(0.0, ground.battery, STEPS + 1), side="right") - 1
    kept = np.where(at >= 0, np.nan_to_num(f1[np.maximum(at, 0)]), 0.0)
    text = " ".join(str(round(1000 * value)) for value in kept)
    return Outcome(
        cell.world,
        cell.rule,
        cell.repeat,
        len(result.queries),
        text,
        round(seconds, 2),
        marked(cell),
    )


def rules_of(world: str, wanted: Iterable[str]) -> list[str]:
    """Return the rules that run in a world: those of a single level once for each."""
    ground = GROUNDS[world]
    levels = range(ground.levels)
    wanted = [rule for rule in wanted if ground.rules is None or rule in ground.rules]
    return [
        rule if len(levels) == 1 or RULES[rule]["kind"] in CHOOSES_LEVEL else f"{rule}, level {level}"
        for rule in wanted
        for level in (levels if RULES[rule]["kind"] not in CHOOSES_LEVEL else (0,))
    ]


# -- tables ----------------------------------------------------------------------------------------------


def reached(mean: np.ndarray, target: float, battery: float) -> float:
    """Return the cost at which a mean curve first reaches a target; infinite if it never does."""
    above = np.flatnonzero(mean >= target)
    if not len(above):
        return np.inf
    k = int(above[0])
    part = (target - mean[k - 1]) / (mean[k] - mean[k - 1]) if k else 0.0
    return (max(k - 1, 0) + part) * battery / STEPS


def shares(ours: np.ndarray, rival: np.ndarray, target: float) -> tuple[float, float, float]:
    """Return the cost to the target as a share of a rival's, and its 95% interval; NaN if it is not reached.

    Parameters
    ----------
    ours, rival : (runs, STEPS + 1) arrays
        F1 of the same runs.
    target : float
    """

    def share(runs: np.ndarray) -> float:
        mine, theirs = (reached(f1[runs].mean(axis=0), target, 1.0) for f1 in (ours, rival))
        return mine / theirs if np.isfinite(mine + theirs) else np.nan

    rng, n = np.random.default_rng(0), len(ours)
    again = [share(rng.integers(0, n, n)) for _ in range(RESAMPLED)]
    if np.isnan(again).any():  # too close to the end of the battery to say
        return share(np.arange(n)), np.nan, np.nan
    low, high = np.quantile(again, [0.025, 0.975])
    return share(np.arange(n)), float(low), float(high)


def _base(rule: str) -> str:
    """Return a rule without the level that it reads with."""
    return rule.partition(", level ")[0]


def curves(found: Iterable[Outcome]) -> dict[str, dict[str, dict[int, np.ndarray]]]:
    """Return the F1 of each run by world, rule and repeat, in the order of `GROUNDS` and `RULES`."""
    worlds, rules = [*GROUNDS], [*RULES]
    every: dict[str, dict[str, dict[int, np.ndarray]]] = {}
    for line in sorted(found, key=lambda e: (worlds.index(e.world), rules.index(_base(e.rule)), e.rule)):
        every.setdefault(line.world, {}).setdefault(line.rule, {})[line.repeat] = line.numbers
    return every


def markdown(found: Sequence[Outcome]) -> str:
    """Return the table: cost to each target, and the tour's as a share of it."""
    heads = [f"{text} {target:g}" for target in TARGETS for text in ("cost to", "tour's share,")]
    lines = [f"| world | policy | {' | '.join(heads)} | runs | s a run |", "|---" * (len(heads) + 4) + "|"]
    seconds: dict[tuple[str, str], list[float]] = {}
    for line in found:
        seconds.setdefault((line.world, line.rule), []).append(line.seconds)
    for world, by_rule in curves(found).items():
        ours = by_rule.get(OURS, {})
        for rule, runs in by_rule.items():
            cells, mean = [], np.mean([*runs.values()], axis=0)
            for target in TARGETS:
                cost = reached(mean, target, GROUNDS[world].battery)
                cells.append(f"{cost:.4g}" if np.isfinite(cost) else f"never ({mean.max():.3f})")
                if rule == OURS or not ours.keys() & runs.keys():
                    cells.append("")
                    continue
                cells.append(_share(shares(*_paired(ours, runs), target)))
            taken = np.mean(seconds[world, rule])
            lines.append(f"| {world} | {rule} | {' | '.join(cells)} | {len(runs)} | {taken:.1f} |")
    return "\n".join(lines)


def best_rivals(found: Sequence[Outcome]) -> str:
    """Return the table of the tour beside the best other rule in each world, over the runs of both."""
    lines = [
        "| world | F1 | cost of the tour | best other policy | the tour's share | of TruVaR's | runs |",
        "|---" * 7 + "|",
    ]
    for world, by_rule in curves(found).items():
        ours = by_rule.get(OURS, {})
        rivals = {rule: runs for rule, runs in by_rule.items() if rule != OURS and ours.keys() & runs.keys()}
        for target in TARGETS if rivals else ():
            against = {rule: shares(*_paired(ours, runs), target) for rule, runs in rivals.items()}
            best = max(against, key=lambda rule: np.nan_to_num(against[rule][0]))
            runs, _ = _paired(ours, rivals[best])
            cost = reached(runs.mean(axis=0), target, GROUNDS[world].battery)
            cells = (
                world,
                f"{target:g}",
                f"{cost:.4g}" if np.isfinite(cost) else "never",
                *((best, _share(against[best])) if np.isfinite(against[best][0]) else ("", "")),
                _share(against["TruVaR"]) if "TruVaR" in against else "",
                len(runs),
            )
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _paired(ours: Mapping[int, np.ndarray], rival: Mapping[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the F1 of the runs that both rules have done, (runs, STEPS + 1) each."""
    both = sorted(ours.keys() & rival.keys())
    return np.array([ours[k] for k in both]), np.array([rival[k] for k in both])


def _share(share: tuple[float, float, float]) -> str:
    """Return a share with its interval, as text; nothing if the target was not reached."""
    middle, low, high = share
    interval = f" ({low:.2f} to {high:.2f})" if np.isfinite(low) else ""
    return f"{middle:.2f}{interval}" if np.isfinite(middle) else ""


def picture(found: Sequence[Outcome], file: Path) -> None:
    """Draw the mean F1 of each rule against cost, one panel a world."""
    every = curves(found)
    figure = new_figure(3.6 * len(every), 3.6)
    for ax, (world, by_rule) in zip(
        np.atleast_1d(figure.subplots(1, len(every))), every.items(), strict=True
    ):
        cost = np.linspace(0.0, GROUNDS[world].battery, STEPS + 1)
        for rule, runs in by_rule.items():
            colour, width = f"C{[*RULES].index(_base(rule))}", 2.5 if rule == OURS else 1
            mean = np.mean([*runs.values()], axis=0)
            ax.plot(cost, mean, label=rule, color=colour, linewidth=width, zorder=2 + (rule == OURS))
        ax.set(title=world, xlabel="cost", xlim=(0, None), ylim=(0.5, 1.0))
        opened(ax)
    figure.axes[0].set_ylabel("mean F1")
    legend_below(figure)
    save(figure, file)


def main() -> None:
    """Run what is missing, and print the table."""
    arguments = options("How soon each rule maps a level set.", OUT, STARTS, GROUNDS, RULES).parse_args()
    wanted = arguments.rules or [*RULES]
    cells = [
        Cell(world, rule, start * GROUNDS[world].draws + draw)
        for start in range(arguments.repeats)
        for world in arguments.only
        for draw in range(GROUNDS[world].draws)
        for rule in rules_of(world, wanted)
    ]
    found = carried_out(arguments, cells, Outcome, measured, marked)
    print(markdown(found), best_rivals(found), sep="\n\n")
    if arguments.picture is not None:
        picture(found, arguments.picture)


if __name__ == "__main__":
    main()
