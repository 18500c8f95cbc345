"""Print the test folders and files that a change concerns: those of the changed packages, and a few for all.

    python tests/shared/touched.py [REVISION]

A change is what differs from where it left a revision (default: ``origin/main``, or ``main`` where there is
no such branch), and what git does not know yet. What belongs to no tests is named on standard error.
"""

import subprocess
import sys
from pathlib import Path

from checkout import ROOT

ALWAYS = ("tests/golden", "tests/test_imports.py")
ELSEWHERE = {
    "worlds": "tests/catalogue",
    "missions": "tests/catalogue",
    "docs": "tests/documentation",
    "examples": "tests/documentation",
    "benchmarks": "tests/documentation",
    "README.md": "tests/documentation",
    "vehicles": "tests/vehicles",
}


def git(*arguments, check=True):
    done = subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=check)
    return done.stdout.splitlines()


def branch():
    """Return the branch from which changes are counted."""
    known = git("for-each-ref", "--format=%(refname:short)", "refs/remotes/origin/main")
    return known[0] if known else "main"


def changed(revision):
    """Return the paths that differ from a revision, from the root."""
    base = git("merge-base", "HEAD", revision, check=False) or ["HEAD"]
    known = git("diff", "--name-only", base[0])
    return [Path(name) for name in known + git("ls-files", "--others", "--exclude-standard")]


def tests_of(path):
    """Return the test folders and files that a changed path concerns."""
    top, *rest = path.parts
    if top == "fieldbo" and rest:
        name = Path(rest[0]).stem
        found = {f"tests/{name}", f"tests/test_{name}.py"}  # a package, or a module
    elif top != "tests":
        found = {ELSEWHERE.get(top, "")} - {""}
    elif "peers" in path.parts:  # they need brokers and robots
        found = set()
    elif path.parent.name == "snapshots":
        found = {str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob(f"{path.stem}.py")}
    elif path.name.startswith("test_"):
        found = {str(path)}
    else:
        found = {"tests" if path.parts[1] in ("shared", "conftest.py") else str(path.parent)}
    return {name for name in found if (ROOT / name).exists()}


def main():
    found, alone = set(ALWAYS), []
    for path in changed(sys.argv[1] if len(sys.argv) > 1 else branch()):
        concerned = tests_of(path)
        found |= concerned
        alone += [] if concerned else [str(path)]
    if alone:
        print(f"these belong to no tests here, so run make test, too: {', '.join(alone)}", file=sys.stderr)
    print(*sorted(found))


if __name__ == "__main__":
    main()
