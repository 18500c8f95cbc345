"""The documentation does what it says: its pages run, its links resolve, and its tables name what exists."""

import re
import sys
import tomllib
from itertools import pairwise

import pytest
from checkout import ROOT
from command_lines import parsed
from documentation import DOCS, FENCE, PAGES, command_lines, is_tested, run_fences

HEADING = re.compile(r"^#+ (.+)$|^\((.+)\)=$", re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")


RUN = [p for p in PAGES if is_tested(p)]
QUICK = (
    "concepts/exchange.md",
    "concepts/policies/index.md",
    "concepts/record.md",
    "how-to/extend.md",
    "how-to/holds.md",
)
"""The pages that run in ``make test``, with commands in this process."""


def name(page):
    return str(page.relative_to(DOCS))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, from which Python imports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for added in set(sys.modules) - before:
        if (getattr(sys.modules[added], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[added]


@pytest.mark.parametrize("page", [p for p in RUN if name(p) in QUICK], ids=name)
def test_a_page_runs_from_top_to_bottom(page, folder, command):
    run_fences(page, folder, command)


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name)
def test_a_page_runs_from_top_to_bottom_in_a_shell(page, folder):
    run_fences(page, folder)


@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_commands_of_a_page_have_the_options_that_it_uses(page):
    for words in command_lines(page):
        parsed(words)


def anchors(page):
    """Return the anchors of a page: those of its headings, and those it sets."""
    text = FENCE.sub("", page.read_text())
    names = [heading or label for heading, label in HEADING.findall(text)]
    return {re.sub(r"[^\w\- ]", "", name.lower()).strip().replace(" ", "-") for name in names} | set(names)


@pytest.mark.parametrize("page", PAGES, ids=name)
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
            entries = [line.strip() for line in tree.splitlines() if line and not line.startswith(":")]
            found = {path.resolve() for entry in entries for path in page.parent.glob(f"{entry}.md")}
            todo += found - seen
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
    lines = [
        [next(k for k, line in enumerate(drawn) if name in line.split()) for name in row] for row in rows
    ]
    assert all(max(above) <= min(below) for above, below in pairwise(filter(None, lines)))
    packages = {p.name for p in (ROOT / "fieldbo").iterdir() if p.is_dir() and p.name[0] not in "_."}
    assert {name for name in packages if f"`{name}`" not in text} == set()
