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

Figures = Mapping[str, Mapping[str, Sequence[float]]]
"""The figures of each rule, by world."""


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
    figures : Callable
        Returns the figures of each rule, by world, from the lines of the file.
    rules : mapping
        The settings of each rule.
    mission : Callable
        Returns the name of a world's mission, and what is laid over it.
    """

    question: str
    heads: tuple[str, ...]
    file: str
    kind: type[Line]
    figures: Callable[[Sequence[Any]], Figures]
    rules: Mapping[str, Mapping[str, Any]]
    mission: Callable[[str], tuple[str, Mapping[str, Any]]]

    def default(self, world: str) -> str:
        """Return which rule is the default in a world."""
        name, overrides = self.mission(world)
        mission = load_mission(name, overrides)
        settings = default_policy(mission.question, mission.world, mission.costs).settings
        return next(rule for rule, given in self.rules.items() if {**given, **settings} == given)


def _reached(found: Sequence[level_sets.Outcome]) -> Figures:
    """Return the cost at which the mean F1 reaches each target."""
    return {
        world: {
            rule: [
                level_sets.reached(
                    np.mean([*runs.values()], axis=0), target, level_sets.GROUNDS[world].battery
                )
                for target in level_sets.TARGETS
            ]
            for rule, runs in by_rule.items()
        }
        for world, by_rule in level_sets.curves(found).items()
    }


def _means(columns: Sequence[str]) -> Callable[[Sequence[Any]], Figures]:
    """Return a function that averages columns over the repeats that all rules of a world have done."""

    def means(found: Sequence[Any]) -> Figures:
        every: dict[str, dict[str, dict[int, list[float]]]] = {}
        for line in found:
            runs = every.setdefault(line.world, {}).setdefault(line.rule, {})
            runs[line.repeat] = [getattr(line, column) for column in columns]
        return {
            world: {rule: np.mean([*runs.values()], axis=0).tolist() for rule, runs in by_rule.items()}
            for world, by_rule in every.items()
        }

    return means


def _regrets(found: Sequence[optimum_before_battery.Outcome]) -> Figures:
    """Return the mean regret at each part of the battery."""
    figures: dict[str, dict[str, Sequence[float]]] = {}
    for (world, rule), runs in optimum_before_battery.at_parts(found).items():
        figures.setdefault(world, {})[rule] = np.mean([*runs.values()], axis=0).tolist()
    return figures


STUDIES = (
    Study(
        "level set",
        ("cost to F1 0.9", "cost to F1 0.95"),
        "level_sets.csv",
        level_sets.Outcome,
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
        optimum_before_battery.RULES,
        lambda world: (optimum_before_battery.GROUNDS[world].mission, {}),
    ),
    Study(
        "optimum of a chain",
        ("loss at half the budget", "loss at the end"),
        "modular_systems.csv",
        modular_systems.Outcome,
        _means(("loss_50", "loss_100")),
        modular_systems.RULES,
        lambda world: (f"{modular_systems.CHAINS[world].world}-ei", {}),
    ),
    Study(
        "optimum, control sets of unknown cost",
        ("regret at half the budget", "regret at the end"),
        "control_sets.csv",
        control_sets.Outcome,
        _means(("regret_50", "regret_100")),
        control_sets.RULES,
        lambda world: (f"{control_sets.WORLDS[world][0]}-etc", {}),
    ),
)


@dataclass(frozen=True)
class Row:
    """A figure of the default policy in a world, and the smallest of the others'."""

    question: str
    world: str
    head: str
    default: str
    figure: float
    other: str
    best: float

    @property
    def share(self) -> float:
        """The default's figure as a share of the best other one."""
        return self.figure / self.best


def rows(study: Study, folder: Path) -> Iterator[Row]:
    """Yield how the default compares in the worlds of a study, by figure."""
    for world, by_rule in study.figures(study.kind.all_of(folder / study.file)).items():
        default = study.default(world)
        others = [rule for rule in by_rule if rule != default]
        if default not in by_rule or not others:
            continue
        for k, head in enumerate(study.heads):
            best = min(others, key=lambda rule: by_rule[rule][k])
            yield Row(study.question, world, head, default, by_rule[default][k], best, by_rule[best][k])


def markdown(folder: Path) -> str:
    """Return the table over all studies."""
    lines = ["| question | world | figure | default | | best other | | share |", "|---" * 8 + "|"]
    for study in STUDIES:
        for row in rows(study, folder):
            mine, best = (f"{v:.4g}" if np.isfinite(v) else "never" for v in (row.figure, row.best))
            share = f"{row.share:.2f}" if np.isfinite(row.share) else ""
            cells = (row.question, row.world, row.head, row.default, mine, row.other, best, share)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How default policies compare with the best other ones.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"of the files (default: {FOLDER})")
    print(markdown(parser.parse_args().folder))


if __name__ == "__main__":
    main()
