"""Imports between packages point one way, and heavy parts load only when they are used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import swept

import fieldbo

PACKAGE = Path(fieldbo.__file__).parent


def loaded_after(code):
    """Return the names of all modules that a fresh interpreter has loaded after `code`."""
    report = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def libraries(modules, *, of):
    """Return which of the libraries `of` are among loaded modules."""
    return modules.intersection(of)


def loaded_by(*arguments, end=""):
    """Return the names of all modules that a command has loaded; `end` is code that makes it end early."""
    words = ["fieldbo", *map(str, arguments)]
    return loaded_after(f"""
import sys
from fieldbo.cli import main

sys.argv = {words!r}
{end}
try:
    main()
except SystemExit as end:
    assert not end.code""")


TABLES, PICTURES, LOOPS = ("pandas", "xarray"), ("matplotlib", "PIL"), ("numba", "llvmlite")
SLOW = ("scipy.stats", "sklearn", "skimage", "pyproj", "matplotlib.pyplot")
FITS = ("scipy.optimize", "scipy.spatial")

END_AT_FIRST_ORDER = """
from fieldbo.vehicles.base import Simulated

def end(*_):
    raise SystemExit

Simulated.send = end
"""


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    """Return the folder of a short run, and the modules that it loaded."""
    folder = tmp_path_factory.mktemp("runs") / "short"
    return folder, loaded_by("run", "lake-level-set", "--battery", "100", "--out", folder)


def test_policies_do_not_load_worlds_runs_vehicles_or_plots():
    files = [
        ".".join(f.relative_to(PACKAGE.parent).with_suffix("").parts)
        for f in (PACKAGE / "policies").rglob("*.py")
        if f.stem != "__init__"
    ]
    assert len(files) > 25
    loaded = loaded_after(f"import {', '.join(sorted(files))}")
    assert set(files) <= loaded
    above = ("fieldbo.world", "fieldbo.mission", "fieldbo.vehicles", "fieldbo.runs", "fieldbo.results")
    assert {name for name in loaded if name.startswith((*above, "matplotlib"))} == set()


def test_importing_fieldbo_loads_no_heavy_library():
    loaded = loaded_after("import fieldbo")
    heavy = {"numpy", "pandas", "pydantic", "scipy", "matplotlib", "xarray", "numba", "sqlite3"}
    assert loaded & heavy == set()


def test_loading_a_mission_loads_no_plotting_library():
    loaded = loaded_after("import fieldbo\nfieldbo.load_mission('lake-level-set')")
    assert "fieldbo.mission.mission" in loaded
    assert {name for name in loaded if name.partition(".")[0] in ("matplotlib", "plotly", "pandas")} == set()


def test_a_worker_can_limit_its_threads_before_it_loads_compiled_loops():
    assert libraries(loaded_after("import fieldbo.runs.trials"), of=LOOPS) == set()


def test_help_loads_no_library_of_numbers():
    loaded = loaded_by("--help")
    assert libraries(loaded, of=("numpy", "pydantic", "scipy", *TABLES, *PICTURES, *LOOPS)) == set()


@pytest.mark.parametrize(
    "command", swept([["missions"], ["policies", "tour"], ["schema", "mission"]], [["missions"]])
)
def test_commands_that_list_load_neither_tables_nor_pictures_nor_loops(command):
    assert libraries(loaded_by(*command), of=(*TABLES, *PICTURES, *LOOPS, *SLOW)) == set()


def test_check_loads_neither_tables_nor_pictures_nor_loops():
    loaded = loaded_by("check", "lake-level-set")
    assert libraries(loaded, of=(*TABLES, *PICTURES, *LOOPS, *SLOW, *FITS)) == set()


def test_the_first_order_needs_neither_tables_nor_pictures_nor_loops(tmp_path):
    loaded = loaded_by("run", "lake-level-set", "--out", tmp_path / "run", end=END_AT_FIRST_ORDER)
    assert (tmp_path / "run" / "run.sqlite").exists()
    assert libraries(loaded, of=(*TABLES, *PICTURES, *LOOPS, *SLOW, *FITS)) == set()


@pytest.mark.slow  # check and the first order guard what starts a run
def test_a_run_writes_its_files_without_libraries_of_tables(short_run):
    folder, loaded = short_run
    assert (folder / "map.nc").exists()
    assert libraries(loaded, of=(*TABLES, *SLOW)) == set()


@pytest.mark.slow
def test_ask_loads_neither_tables_nor_pictures_nor_loops(short_run):
    assert libraries(loaded_by("ask", short_run[0]), of=(*TABLES, *PICTURES, *LOOPS, *SLOW)) == set()


@pytest.mark.slow
def test_report_loads_no_libraries_of_tables(short_run):
    assert libraries(loaded_by("report", short_run[0]), of=(*TABLES, *SLOW)) == set()
