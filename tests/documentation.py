"""Run what the pages of the documentation show.

The fences of a page run in order, in a folder of their own:

- ``sh`` and ``console`` (lines after ``$``) run in bash. Missions are cut to a few steps, comparisons to one
  start, advice to four fields; a mission by hand ends where the input does.
- ``python`` shares its names with the page's other Python.
- A fence whose first line is a comment with a file's name, ``# my_policy.py`` or ``# missions/pond.toml``,
  is written to that file instead.

A fence that begins with ````sh {.skip reason="needs a broker"}`` does not run.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "generated" not in p.parts)

FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<language>\w+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=ticks)$", re.M | re.S
)
FILE = re.compile(r"# ([\w./-]+\.(?:py|toml|csv))\b")
SKIPPED = re.compile(r' \{\.skip reason=".+"\}')

SHORTER = """
set -euo pipefail
fieldbo() {
    case "$1 $*" in
        *--help*) "$PYTHON" -m fieldbo "$@" ;;
        *--by-hand*) "$PYTHON" -m fieldbo "$@" < /dev/null || test $? = 130 ;;
        "run "*) "$PYTHON" -m fieldbo "$@" --set agent.max_steps=12 ;;
        "compare "*) "$PYTHON" -m fieldbo "$@" --starts 1 --draws 1 --set agent.battery=100 ;;
        "advise "*) "$PYTHON" -m fieldbo "$@" --fields 4 --set agent.max_steps=12 ;;
        *) "$PYTHON" -m fieldbo "$@" ;;
    esac
}
"""


def fences(page):
    """Return (language, text) of a page's fences that are to be tested, in order."""
    found = (m.groupdict() for m in FENCE.finditer(page.read_text()))
    return [(m["language"], m["text"]) for m in found if not SKIPPED.fullmatch(m["info"])]


def is_tested(page):
    return any(language in ("sh", "console", "python") for language, _ in fences(page))


def commands(language, text):
    """Return what bash is to run of a fence."""
    if language == "console":
        return "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    return re.sub(r"^pip install .*$", "", text, flags=re.M)


def run_fences(page, folder):
    """Run the fences of a page in an empty folder, which is the working folder and on the path."""
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "PYTHON": sys.executable}
    names = {"__name__": "page"}
    for language, text in fences(page):
        if file := FILE.match(text):
            target = folder / file[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        elif language == "python":
            exec(compile(text, str(page), "exec"), names)
        elif language in ("sh", "console"):
            script = SHORTER + commands(language, text)
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        elif language == "toml":
            tomllib.loads(text)
