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
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

from checkout import ROOT

DOCS = ROOT / "docs"
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
        *--help*) call "$@" ;;
        *--by-hand*) call "$@" || test $? = 130 ;;
        "run "*) call "$@" --set agent.max_steps="$STEPS" ;;
        "compare "*) call "$@" --starts 1 --draws 1 --set agent.battery=100 ;;
        "advise "*) call "$@" --fields 4 --set agent.max_steps="$STEPS" ;;
        *) call "$@" ;;
    esac
}
"""
PROGRAM = 'call() { "$PYTHON" -m fieldbo "$@" < /dev/null; }\n'
"""Commands are processes of their own."""

REQUEST = """
trap 'printf end > asked' EXIT
call() {
    printf '%s\\0' "$@" > asked
    read -r code < answered
    return "$code"
}
"""
"""Commands are answered by the process that runs the test."""


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


def command_lines(page):
    """Return the words after ``fieldbo`` of each line of a page that runs it."""
    scripts = [commands(language, text) for language, text in fences(page) if language in ("sh", "console")]
    lines = [line for script in scripts for line in script.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("fieldbo ")]


def run_fences(page, folder, command=None):
    """Run the fences of a page in an empty folder, which is the working folder and on the path.

    With `command`, the fixture, the commands run in this process, and missions take three steps.
    """
    names = {"__name__": "page"}
    for language, text in fences(page):
        if file := FILE.match(text):
            target = folder / file[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        elif language == "python":
            exec(compile(text, str(page), "exec"), names)
        elif language in ("sh", "console"):
            run_script(commands(language, text), folder, command)
        elif language == "toml":
            tomllib.loads(text)


def run_script(script, folder, command=None):
    """Run a script in bash; it must end with 0."""
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "PYTHON": sys.executable}
    steps, call = ("12", PROGRAM) if command is None else ("3", REQUEST)
    said = ""
    if command is not None:
        for fifo in ("asked", "answered"):
            os.mkfifo(folder / fifo)
    with subprocess.Popen(
        ["bash", "-c", SHORTER + call + script],
        cwd=folder,
        env={**environment, "STEPS": steps},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as bash:
        if command is not None:
            said = answered(folder, command)
        out, _ = bash.communicate()
    assert bash.returncode == 0, f"{script}\n{said}{out}"


def answered(folder, command):
    """Run the commands that a script asks for until it ends; return what they said."""
    said = []
    while (asked := (folder / "asked").read_text()) != "end":
        code, *texts = command(*asked.split("\0")[:-1])
        said += texts
        (folder / "answered").write_text(f"{code}\n")
    for fifo in ("asked", "answered"):
        (folder / fifo).unlink()
    return "".join(said)
