"""
Read a run folder
=================

Write a run folder, then read its record, maps and summary back as any program would.
"""

import json
import tempfile
from pathlib import Path

import xarray

import fieldbo
from fieldbo.runs.folder import begin

with tempfile.TemporaryDirectory() as parent:
    mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 800}})
    folder, record = begin(mission, Path(parent) / "try")
    with record:
        fieldbo.run(mission, record=record).save(folder)

    with fieldbo.Record(folder / "run.sqlite") as record:
        for row in record.rows()[:4]:
            print(row.seq, row.kind, row.order)
    summary = json.loads((folder / "summary.json").read_text())
    print({k: summary[k] for k in ("f1", "cost", "steps", "end_reason")})
    with xarray.open_dataset(folder / "map.nc") as maps:
        print(maps["exceedance"].attrs["long_name"], maps["exceedance"].shape)
