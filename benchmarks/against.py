"""Time this checkout against an earlier commit: ``python benchmarks/against.py COMMIT NAME...``."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from timing import alternate, peer

HERE = Path(__file__).parent.parent.resolve()


def checkout(commit: str) -> Path:
    """Return a folder with the files of a commit; it is kept, with its compiled loops, in ``build/``."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "--verify", f"{commit}^{{commit}}"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = HERE / "build" / "against" / found.stdout.strip()
    if not folder.exists():
        files = subprocess.run(["git", "archive", folder.name], cwd=HERE, capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(files.stdout)) as archive:
            archive.extractall(folder, filter="data")
    return folder


def main() -> None:
    """Print the median and quartiles of the ratios of neighbouring runs."""
    parser = argparse.ArgumentParser(description="Time this checkout and an earlier commit in turn.")
    parser.add_argument("commit", metavar="COMMIT", help="the earlier commit")
    parser.add_argument("names", nargs="+", metavar="NAME", help="benchmarks, as in run.py")
    parser.add_argument("--runs", type=int, default=15, metavar="N", help="number of runs (default: 15)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads per side (default: 2)")
    arguments = parser.parse_args()
    earlier = checkout(arguments.commit)
    for name in arguments.names:
        with ExitStack() as stack:
            now, before = (
                stack.enter_context(
                    peer("checkout", {"root": str(root), "name": name}, arguments.threads, sys.executable)
                )
                for root in (HERE, earlier)
            )
            timings = alternate(arguments.runs, now.seconds, {"before": before.seconds})
        own_s, before_s = np.array(timings.own_s), np.array(timings.peers_s["before"])
        low, middle, high = np.percentile(before_s / own_s, [25, 50, 75])
        print(
            f"{name:<21} {own_s.min():10.4g} s, {earlier.name} {before_s.min():.4g} s (least); "
            f"{middle:.2f} times as fast ({low:.2f} to {high:.2f})"
            f"  [runs {arguments.runs}, threads {arguments.threads}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
