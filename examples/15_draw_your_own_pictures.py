"""
Draw your own pictures
======================

Put panels of two runs side by side in one figure, with the curves of both in the same axes. `result.plot`
draws one panel each into axes of yours, follows your style, and returns the artists by name.
"""

import matplotlib as mpl
from matplotlib.figure import Figure

import fieldbo

RUNS = {
    name: fieldbo.run(
        fieldbo.load_mission("lake-level-set", {"policy": {"kind": kind}, "agent": {"battery": 900}})
    )
    for name, kind in (("tour", "tour"), ("TruVaR", "truvar"))
}

with mpl.rc_context({"font.size": 9, "axes.titlesize": "medium"}):
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    panels = figure.subplot_mosaic("AC;BD", width_ratios=[3, 2])
    for place, colour, (name, result) in zip("AB", ("tab:blue", "tab:orange"), RUNS.items(), strict=True):
        artists = result.plot.path(panels[place], cmap="cividis")
        artists["estimated level"].set(linewidth=2)
        panels[place].set_title(name)
        result.plot.curve(panels["C"], "f1", label=name, color=colour)
        result.plot.ledger(panels["D"], color=colour)["spent"].set_label(name)
        print(f"{name}: F1 {result.f1:.2f} after {result.cost:.0f} {result.mission.world.cost_unit}")
    panels["C"].set_ylabel("F1")
    panels["C"].legend(loc="lower right")
    handles, labels = panels["D"].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    panels["D"].legend([named[name] for name in RUNS], RUNS, loc="lower right")
