"""Print the test folders and files that a change concerns: those of the changed packages, and a few for all.

    python tests/shared/touched.py [REVISION]

A change is what differs from a revision (default: the branch ``main``, or the last commit while on it) and
what git does not know yet.
"""

import subprocess
import sys
from pathlib import Path

from checkout import ROOT

ALWAYS = ("tests/golden", "tests/test_imports.py")


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def changed(revision):
    """Return the paths that differ from a revision, from the root."""
    base = git("merge-base", "HEAD", revision) or ["HEAD"]
    known = git("diff", "--name-only", base[0])
    return [Path(name) for name in known + git("ls-files", "--others", "--exclude-standard")]


def concerned(paths):
    """Return the test files and folders that changed paths concern."""
    found = set(ALWAYS)
    for path in paths:
        top, *rest = path.parts
        if top == "tests":
            found.update(tests_of(path))
        elif top == "fieldbo" and rest:
            name = Path(rest[0]).stem
            found |= {f"tests/{name}", f"tests/test_{name}.py"}  # a package, or a module
        elif top in ("worlds", "missions"):
            found.add("tests/catalogue")
        elif top == "docs" or path.name == "README.md":
            found.add("tests/documentation")
    return sorted(name for name in found if (ROOT / name).exists())


def tests_of(path):
    """Return what a file of the tests concerns: itself, its folder, or all of them."""
    if "peers" in path.parts:  # they need brokers and robots
        return []
    if path.name.startswith("test_"):
        return [str(path)]
    return ["tests" if path.parts[1] in ("shared", "conftest.py") else str(path.parent)]


if __name__ == "__main__":
    print(*concerned(changed(sys.argv[1] if len(sys.argv) > 1 else "main")))
