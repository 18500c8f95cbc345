"""How the default policy compares with the best other one in every world that a study has measured.

Nothing is run: the figures come from the files that the studies have written. Smaller is better throughout.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import control_sets
import level_sets
import modular_systems
import numpy as np
import optimum_before_battery
from study import Line

from fieldbo import load_mission
from fieldbo.mission.default_policy import default_policy

FOLDER = Path(__file__).parent

Runs = Mapping[str, Mapping[str, Mapping[int, Any]]]
"""What came of each run, an array, by world, rule and repeat."""


@dataclass(frozen=True)
class Study:
    """A study that compares policies for one kind of mission.

    Attributes
    ----------
    question : str
    heads : tuple of str
        What its figures are.
    file : str
    kind : type of Line
        Its own.
    runs : Callable
        Returns what came of each run from the lines of the file.
    figures : Callable
        Returns the figures of a world from the mean over runs.
    rules : mapping
        The settings of each rule.
    mission : Callable
        Returns the name of a world's mission, and what is laid over it.
    """

    question: str
    heads: tuple[str, ...]
    file: str
    kind: type[Line]
    runs: Callable[[Sequence[Any]], Runs]
    figures: Callable[[str, np.ndarray], Sequence[float]]
    rules: Mapping[str, Mapping[str, Any]]
    mission: Callable[[str], tuple[str, Mapping[str, Any]]]

    def default(self, world: str) -> str:
        """Return which rule is the default in a world."""
        name, overrides = self.mission(world)
        mission = load_mission(name, overrides)
        settings = default_policy(mission.question, mission.world, mission.costs).settings
        return next(rule for rule, given in self.rules.items() if {**given, **settings} == given)


def _reached(world: str, mean: np.ndarray) -> Sequence[float]:
    """Return the cost at which the mean F1 reaches each target."""
    battery = level_sets.GROUNDS[world].battery
    return [level_sets.reached(mean, target, battery) for target in level_sets.TARGETS]


def _themselves(_: str, mean: np.ndarray) -> Sequence[float]:
    """Return means that are figures already."""
    return mean.tolist()


def _columns(*columns: str) -> Callable[[Sequence[Any]], Runs]:
    """Return a function that takes columns of a file as what came of a run."""

    def runs(found: Sequence[Any]) -> Runs:
        every: dict[str, dict[str, dict[int, Any]]] = {}
        for line in found:
            by_repeat = every.setdefault(line.world, {}).setdefault(line.rule, {})
            by_repeat[line.repeat] = np.array([getattr(line, column) for column in columns])
        return every

    return runs


def _regrets(found: Sequence[optimum_before_battery.Outcome]) -> Runs:
    """Return the regret at each part of the battery."""
    every: dict[str, dict[str, Mapping[int, Any]]] = {}
    for (world, rule), runs in optimum_before_battery.at_parts(found).items():
        every.setdefault(world, {})[rule] = runs
    return every


STUDIES = (
    Study(
        "level set",
        ("cost to F1 0.9", "cost to F1 0.95"),
        "level_sets.csv",
        level_sets.Outcome,
        level_sets.curves,
        _reached,
        level_sets.RULES,
        lambda world: (level_sets.GROUNDS[world].mission, level_sets.GROUNDS[world].more or {}),
    ),
    Study(
        "optimum, with travel",
        tuple(f"regret at {part:g} of the battery" for part in optimum_before_battery.PARTS),
        "optimum_before_battery.csv",
        optimum_before_battery.Outcome,
        _regrets,
        _themselves,
        optimum_before_battery.RULES,
        lambda world: (optimum_before_battery.GROUNDS[world].mission, {}),
    ),
    Study(
        "optimum of a chain",
        ("loss at half the budget", "loss at the end"),
        "modular_systems.csv",
        modular_systems.Outcome,
        _columns("loss_50", "loss_100"),
        _themselves,
        modular_systems.RULES,
        lambda world: (f"{modular_systems.CHAINS[world].world}-ei", {}),
    ),
    Study(
        "optimum, control sets of unknown cost",
        ("regret at half the budget", "regret at the end"),
        "control_sets.csv",
        control_sets.Outcome,
        _columns("regret_50", "regret_100"),
        _themselves,
        control_sets.RULES,
        lambda world: (f"{control_sets.WORLDS[world][0]}-etc", {}),
    ),
)


@dataclass(frozen=True)
class Row:
    """A figure of the default policy in a world, and that of the best other one, over the runs of both."""

    question: str
    world: str
    head: str
    default: str
    figure: float
    other: str
    best: float
    runs: int

    @property
    def share(self) -> float:
        """The default's figure as a share of the best other one."""
        return self.figure / self.best if np.isfinite(self.figure) else np.inf


def rows(study: Study, folder: Path) -> Iterator[Row]:
    """Yield how the default compares in the worlds of a study, by figure."""
    for world, by_rule in study.runs(study.kind.all_of(folder / study.file)).items():
        default = study.default(world)
        for k, head in enumerate(study.heads):
            against = []
            for rule, theirs in by_rule.items():
                both = sorted(by_rule.get(default, {}).keys() & theirs.keys())
                if rule != default and both:
                    mine, best = (
                        float(study.figures(world, np.mean([runs[n] for n in both], axis=0))[k])
                        for runs in (by_rule[default], theirs)
                    )
                    against.append(Row(study.question, world, head, default, mine, rule, best, len(both)))
            if against:
                yield max(against, key=lambda row: (row.share, -row.best))


def markdown(folder: Path) -> str:
    """Return the table over all studies."""
    lines = ["| question | world | figure | default | | best other | | share | runs |", "|---" * 9 + "|"]
    for study in STUDIES:
        for row in rows(study, folder):
            mine, best = (f"{v:.4g}" if np.isfinite(v) else "never" for v in (row.figure, row.best))
            share = f"{row.share:.2f}" if np.isfinite(row.share) else ""
            cells = (row.question, row.world, row.head, row.default, mine, row.other, best, share, row.runs)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How default policies compare with the best other ones.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"of the files (default: {FOLDER})")
    print(markdown(parser.parse_args().folder))


if __name__ == "__main__":
    main()
