"""The documentation does what it says: commands, Python and files of every page run, and links resolve.

The fences of a page run in order, in a folder of their own:

- ``sh`` and ``console`` (lines after ``$``) run in bash. Missions are cut to a few steps, comparisons to one
  start; a mission by hand ends where the input does.
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
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "generated" not in p.parts)

FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<language>\w+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=ticks)$", re.M | re.S)
FILE = re.compile(r"# ([\w./-]+\.(?:py|toml|csv))\b")
SKIPPED = re.compile(r' \{\.skip reason=".+"\}')
HEADING = re.compile(r"^#+ (.+)$|^\((.+)\)=$", re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")

SHORTER = """
set -euo pipefail
fieldbo() {
    case "$1 $*" in
        *--help*) "$PYTHON" -m fieldbo "$@" ;;
        *--by-hand*) "$PYTHON" -m fieldbo "$@" < /dev/null || test $? = 130 ;;
        run*) "$PYTHON" -m fieldbo "$@" --set agent.max_steps=12 ;;
        compare*) "$PYTHON" -m fieldbo "$@" --starts 1 --draws 1 --set agent.battery=400 ;;
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


def anchors(page):
    """Return the anchors of a page: those of its headings, and those it sets."""
    text = FENCE.sub("", page.read_text())
    names = [heading or label for heading, label in HEADING.findall(text)]
    return {re.sub(r"[^\w\- ]", "", name.lower()).strip().replace(" ", "-") for name in names} | set(names)


@pytest.mark.parametrize("page", [p for p in PAGES if is_tested(p)], ids=lambda p: str(p.relative_to(DOCS)))
def test_the_fences_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "PYTHON": sys.executable}
    names = {"__name__": "page"}
    for language, text in fences(page):
        if file := FILE.match(text):
            target = tmp_path / file[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        elif language == "python":
            exec(compile(text, str(page), "exec"), names)
        elif language in ("sh", "console"):
            script = SHORTER + commands(language, text)
            done = subprocess.run(
                ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        elif language == "toml":
            tomllib.loads(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_the_links_of_a_page_lead_somewhere(page):
    text = FENCE.sub("", page.read_text())
    broken = []
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:") or "generated/" in link or "gallery/" in link:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_reachable_from_the_first_one():
    seen, todo = set(), [DOCS / "index.md"]
    while todo:
        page = todo.pop()
        seen.add(page)
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.S):
            for line in tree.splitlines():
                entry = re.sub(r".*<(.*)>", r"\1", line.strip())
                target = (page.parent / f"{entry}.md").resolve()
                if entry and not entry.startswith(":") and target.exists() and target not in seen:
                    todo.append(target)
    assert set(PAGES) - seen == set()


def test_the_table_of_where_a_line_goes_names_what_exists():
    text = (DOCS / "contributing/where.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    named = {name for row in rows for name in re.findall(r"`([\w./*-]+/[\w./*-]*)`", row)}
    assert len(rows) >= 30
    assert {name for name in named if not any(ROOT.glob(name.rstrip("/")))} == set()


def test_the_architecture_page_names_every_package_and_layer():
    text = (DOCS / "architecture.md").read_text()
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    drawn = [line[:40] for line in re.search(r"```text\n(.*?)```", text, re.S)[1].splitlines()]
    rows = [[n for n in re.split(r"[ |]+", layer) if n not in ("__main__", "_version")] for layer in layers]
    lines = [[next(k for k, line in enumerate(drawn) if name in line.split()) for name in row] for row in rows]
    assert all(max(above) <= min(below) for above, below in pairwise(filter(None, lines)))
    packages = {p.name for p in (ROOT / "fieldbo").iterdir() if p.is_dir() and p.name[0] not in "_."}
    assert {name for name in packages if f"`{name}`" not in text} == set()
