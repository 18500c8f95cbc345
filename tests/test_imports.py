"""Imports between packages point one way, and heavy parts load only when they are used."""

import json
import subprocess
import sys
from pathlib import Path

import fieldbo

PACKAGE = Path(fieldbo.__file__).parent


def loaded_after(code):
    """Return the names of all modules that a fresh interpreter has loaded after `code`."""
    report = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


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
