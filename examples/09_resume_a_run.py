"""
Resume a run
============

Stop a run half-way, look at it through its record, and resume it: the path equals that of an unbroken run.
"""

import tempfile
from pathlib import Path

import fieldbo
from fieldbo.runs.folder import begin
from fieldbo.runs.loop import Interrupted

mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 1500}})


def stop_after_twenty(step):
    if step.step == 20:
        raise KeyboardInterrupt  # or a power cut: every reading is on disk


with tempfile.TemporaryDirectory() as parent:
    folder, record = begin(mission, Path(parent) / "lake-1")
    with record:
        try:
            fieldbo.run(mission, record=record, on_step=stop_after_twenty)
        except Interrupted:
            print("stopped")

    halfway = fieldbo.load_run(folder).result()  # works while another process runs it, too
    print(f"so far: {len(halfway.observations)} readings for {halfway.cost:.0f} s, F1 {halfway.f1:.2f}")

    with fieldbo.Record(folder / "run.sqlite") as record:
        whole = fieldbo.resume(mission, record)

print(f"in the end: {len(whole.observations)} readings for {whole.cost:.0f} s, F1 {whole.f1:.2f}")
unbroken = fieldbo.run(mission)
print(f"the same path as unbroken: {whole.path.tolist() == unbroken.path.tolist()}")
