"""Interrupt a run, look at it from its record, and resume it; the path is that of an uninterrupted run."""

import tempfile
from pathlib import Path

import fieldbo
from fieldbo.runs import Interrupted, begin

mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 1500}})


def stop_after_twenty(step):
    if step.step == 20:
        raise KeyboardInterrupt  # or a power cut: every reading so far is on disk


with tempfile.TemporaryDirectory() as place:
    folder, record = begin(mission, Path(place) / "lake-1")
    with record:
        try:
            fieldbo.run(mission, record=record, on_step=stop_after_twenty)
        except Interrupted:
            print("interrupted")

    halfway = fieldbo.load_run(folder).result()  # works even while another process runs the mission
    print(f"so far: {len(halfway.observations)} readings for {halfway.cost:.0f} s, F1 {halfway.f1:.2f}")

    with fieldbo.Record(folder / "run.sqlite") as record:
        resumed = fieldbo.resume(mission, record)

print(f"in the end: {len(resumed.observations)} readings for {resumed.cost:.0f} s, F1 {resumed.f1:.2f}")
uninterrupted = fieldbo.run(mission)
print(f"same path as uninterrupted: {resumed.path.tolist() == uninterrupted.path.tolist()}")
