"""How often the battery that ``fieldbo advise`` states reaches its target in fields that it has not seen.

The worlds draw their fields from the process that their missions' models state, so the advice should hold.
Each repeat advises on a battery for F1 0.9 with probability 0.8, with its own seed, and then runs the mission
as it is, with that battery, in 40 further fields of the world itself. For each world, print the batteries and
the share of all these fields that reach the target, with its 90% interval.

Runs are kept in a folder; an interrupted benchmark continues.

    python benchmarks/advise_coverage.py [--repeats 4] [--only gp-lake gp-square] [--fields 40] [--jobs 2]
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path

import numpy as np

import fieldbo
from fieldbo.mission.files import write_whole
from fieldbo.results.tables import table
from fieldbo.runs.advice.search import share_interval
from fieldbo.runs.trials import run_all

TARGET, PROBABILITY = 0.9, 0.8
MISSIONS = {"gp-lake": "gp-lake", "gp-square": "gp-square"}
UNSEEN = 100_000
"""Number of the first unseen field of a repeat; each repeat has a thousand of its own."""

COLUMNS = ("draw", "f1")


def final_f1(task: tuple[str, int, float]) -> tuple[int, float]:
    """Return the number of a field, and F1 at the end of a mission in it, with a battery."""
    mission, draw, battery = task
    settings = {"draw": draw, "seed": draw, "agent": {"battery": battery}}
    return draw, float(fieldbo.run(fieldbo.load_mission(mission, settings)).f1 or 0.0)


def unseen(mission: str, battery: float, repeat: int, fields: int, jobs: int, file: Path) -> list[float]:
    """Return F1 at the end in fields that the advice has not seen; continue the table of these in a file."""
    done: dict[int, float] = {}
    if file.exists():
        with file.open(newline="") as rows:
            done = {int(row["draw"]): float(row["f1"]) for row in csv.DictReader(rows)}
    draws = [UNSEEN + 1000 * repeat + k for k in range(fields)]

    def keep(outcome: tuple[int, float]) -> None:
        done.update([outcome])
        write_whole(file, table(COLUMNS, sorted(done.items())))

    run_all(final_f1, [(mission, draw, battery) for draw in draws if draw not in done], jobs, keep)
    return [done[draw] for draw in draws]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4, help="advice with other fields (default: 4)")
    parser.add_argument("--only", nargs="+", choices=MISSIONS, default=list(MISSIONS), help="these worlds")
    parser.add_argument("--fields", type=int, default=40, help="of each advice, and unseen (default: 40)")
    parser.add_argument("--target", type=float, default=TARGET, help=f"F1 (default: {TARGET})")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=Path("runs") / "advise-coverage", help="folder")
    args = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # inherited by the processes, which share the cores already
    print(
        "| world | repeat | battery | checked | unseen fields that reach the target |\n|---|---|---|---|---|"
    )
    for world in args.only:
        reached, batteries = [], []
        for repeat in range(args.repeats):
            folder, mission = args.out / f"{world}-{repeat}", MISSIONS[world]
            options = {"fields": args.fields, "jobs": args.jobs, "seed": repeat, "patient": True}
            advice = fieldbo.advise(mission, args.target, PROBABILITY, out=folder, **options).policies[0]
            if not advice.enough:
                print(f"| {world} | {repeat} | more than {advice.battery:,.4g} | | |", flush=True)
                continue
            file = folder / f"unseen-{advice.battery:g}.csv"
            f1 = unseen(mission, advice.battery, repeat, args.fields, args.jobs, file)
            reached.append(np.array(f1) >= args.target)
            batteries.append(advice.battery)
            checked = f"{advice.reached} of {len(advice.trials)}"
            count = f"{reached[-1].sum()} of {args.fields}"
            print(f"| {world} | {repeat} | {advice.battery:,.4g} | {checked} | {count} |", flush=True)
        if reached:
            n, hits = np.size(reached), int(np.sum(reached))
            low, high = share_interval(hits, n)
            span = f"{min(batteries):,.4g} to {max(batteries):,.4g}"
            share = f"{hits} of {n}: {hits / n:.2f} ({low:.2f} to {high:.2f})"
            print(f"| {world} | all | {span} | | {share} |", flush=True)


if __name__ == "__main__":
    main()
