"""Imports between the rooms of fieldbo point one way, and heavy parts load only when they are used."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import fieldbo

PACKAGE = Path(fieldbo.__file__).parent

# A room may import from any row above its own, from itself, and from nothing else.
# A new room gets a place here.
ORDER = """
    errors  threads  loops
    obstacles  chance
    controls
    domain  registry  streams  snapshot  lock
    exchange  kernels  files  ledger  maximise  regrets  frame
    gp  costs  sensors  record  lookahead
    fit  surface  question  outliers  conditions
    model  fields  metrics  policies
    world  forms  cell_table
    mission
    craft  knowledge  cautions
    agent  vehicles
    robots
    result  catalogue
    plot  maps  folder  reasons
    replay
    runner
    campaign  survey  testing  explanation  export
    cell_world
    cli
    __main__
"""
ROW = {room: row for row, rooms in enumerate(ORDER.strip().splitlines()) for room in rooms.split()}

# Inside a function only, so that the lower room works without the upper one: a result draws itself.
LATE = {("result", "plot"), ("result", "maps")}


def room_of(file):
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms_named_by(node, package):
    """The rooms that an import statement names; the package itself (for its version) is none."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level:
        base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
        names = [f"{base}.{node.module}"] if node.module else [f"{base}.{alias.name}" for alias in node.names]
    elif node.module == "fieldbo":
        names = [f"fieldbo.{alias.name}" for alias in node.names]
    else:
        names = [node.module]
    parts = [name.split(".") for name in names]
    return {p[1] for p in parts if p[0] == "fieldbo" and len(p) > 1 and not p[1].startswith("__")}


def imports(tree, package, late=False):
    """Yield (room, whether inside a function) of all imports but those for type checking."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((room, late) for room in rooms_named_by(node, package))
        yield from imports(node, package, late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def all_imports():
    """Return (file, its room, the room it imports, whether inside a function) over the whole package."""
    return [
        (str(file.relative_to(PACKAGE)), room_of(file), room, late)
        for file in sorted(PACKAGE.rglob("*.py"))
        if room_of(file) not in ("__init__", "_catalogue")
        for room, late in imports(
            ast.parse(file.read_text(encoding="utf-8")),
            ".".join(["fieldbo", *file.relative_to(PACKAGE).parent.parts]),
        )
    ]


def test_every_room_has_a_place_in_the_order():
    rooms = {room_of(file) for file in PACKAGE.rglob("*.py")} - {"__init__", "_catalogue"}
    assert rooms == set(ROW)


def test_imports_point_one_way():
    found = all_imports()
    assert len(found) > 100, "the imports were not read"
    wrong = [
        f"{file} imports {room}"
        for file, own, room, late in found
        if room != own and not ROW[room] < ROW[own] and not (late and (own, room) in LATE)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import fieldbo.world", {("world", False)}),
        ("from fieldbo.world import World", {("world", False)}),
        ("from fieldbo import world, plot", {("world", False), ("plot", False)}),
        ("from fieldbo import __version__", set()),
        ("from .base import Policy", {("policies", False)}),
        ("from ..world import World", {("world", False)}),
        ("from .. import world", {("world", False)}),
        ("def f():\n    from fieldbo.world import World", {("world", True)}),
        ("if TYPE_CHECKING:\n    from fieldbo.world import World", set()),
        ("import numpy", set()),
    ],
)
def test_no_form_of_import_goes_unseen(source, expected):
    assert set(imports(ast.parse(source), "fieldbo.policies")) == expected


def loaded_after(code):
    """Return the names of all modules that a fresh interpreter has loaded after `code`."""
    report = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_policies_load_no_world_runner_vehicle_or_plot():
    files = [
        f"fieldbo.policies.{f.stem}" for f in (PACKAGE / "policies").glob("*.py") if f.stem != "__init__"
    ]
    loaded = loaded_after(f"import {', '.join(sorted(files))}")
    assert set(files) <= loaded
    above = {name for name in loaded if name.startswith(("fieldbo.world", "fieldbo.vehicles"))}
    assert above | (loaded & {"fieldbo.runner", "fieldbo.plot", "matplotlib"}) == set()


def test_importing_fieldbo_loads_no_heavy_part():
    loaded = loaded_after("import fieldbo")
    assert (
        loaded & {"pandas", "pydantic", "scipy.optimize", "matplotlib", "xarray", "numba", "sqlite3"} == set()
    )


def test_loading_a_mission_loads_nothing_that_draws():
    loaded = loaded_after("import fieldbo\nfieldbo.load_mission('lake-level-set')")
    assert "fieldbo.mission" in loaded
    assert {name for name in loaded if name.partition(".")[0] in ("matplotlib", "plotly", "pandas")} == set()
