"""Small runs over every kind of domain, and their pictures."""

import io
from dataclasses import dataclass, replace
from functools import cache
from unittest.mock import patch

import numpy as np
import shapely

import fieldbo
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum, ShareOfMaximum
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.sensor import Level, Sensor
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.baselines import Random
from fieldbo.policies.contract import Decision, Policy
from fieldbo.results import plot
from fieldbo.results.plot import figures
from fieldbo.world.fields.gp_draw import GPDraw
from fieldbo.world.world import Quantity, World

AXES = Axis("east", "m", 0, 100), Axis("north", "m", 0, 60)
OUTLINE = shapely.Polygon(
    [(10, 5), (50, 0), (100, 20), (90, 60), (55, 35), (20, 60)], [[(60, 18), (70, 18), (70, 28), (60, 28)]]
)
OBSTACLES = (
    Obstacle("a wall across", (62, -5), (70, 65)),
    Obstacle("pond", corners=((15, 20), (45, 15), (35, 45))),
    Obstacle("a well with a long name", (80, 30), (83, 33)),
)
TOWER = Obstacle("tower", (25, 10, 0), (65, 45, 3))
DOMAINS = {
    "line": Domain.grid([AXES[0]], (41,)),
    "scattered line": Domain((AXES[0],), np.random.default_rng(0).uniform(0, 100, (30, 1))),
    "grid": Domain.grid(AXES, (11, 7)),
    "outline": Domain.grid(AXES, (26, 16), OUTLINE),
    "one row": Domain.grid(AXES, (20, 1)),
    "scattered": Domain(AXES, np.random.default_rng(0).uniform([0, 0], [100, 60], (60, 2))),
    "box": Domain.grid([*AXES, Axis("depth", "m", 0, 5, "down")], (6, 5, 3)),
    "four axes": Domain.grid([Axis(n, "", 0, 1) for n in "abcd"], (3, 3, 2, 2)),
    **{
        f"continuous {d}": Domain.box([*AXES, *(Axis(n, "m", 0, 5) for n in "cdef")][:d], 90)
        for d in (1, 2, 3, 6)
    },
}
CROWDED = {
    "obstacles": Domain.grid(AXES, (26, 16), OUTLINE, OBSTACLES, 1.0),
    "tower": Domain.grid([*AXES, Axis("depth", "m", 0, 5, "down")], (6, 5, 3), obstacles=[TOWER]),
    "continuous, obstacles": Domain.box(AXES, 90, OBSTACLES),
    "box with a wall": Domain.grid(AXES, (26, 16), obstacles=[Obstacle("wall", (60, -5), (70, 65))]),
}
QUESTIONS = {
    "level set": LevelSet(6.0),
    "level set below": LevelSet(6.0, "below"),
    "share": ShareOfMaximum(0.8),
    "maximum": Optimum(),
    "minimum": Optimum("minimise"),
}
LEVELS = Sensor(levels=(Level(1e-6, 6.0), Level(0.01, 3.0), Level(0.1, 1.0)))


def small_mission(
    name="grid", *, battery=400.0, transform="none", axes=None, question=QUESTIONS["level set"], sensor=None
):
    domain = (DOMAINS | CROWDED)[name] if axes is None else Domain.grid(axes, (6, 5))
    scales = tuple(0.3 * domain.extent)
    world = World(
        "small",
        "A small world",
        domain,
        Euclidean(1.0, sampling=5.0),
        "Wh",
        sensor or Sensor(0.05),
        Quantity("nitrate", "umol L-1"),
        GPDraw(scales, mean=6.0).make(domain, 0, None),
    )
    model = Model(length_scales=scales, learn=False, transform=transform)
    crew = (VehicleSpec(battery, domain.sites[0]),)
    policy = Random() if sensor is None else EveryLevel()
    return Mission("small", world, question, policy, model, crew, max_steps=15)


@cache
def small_run(name="grid", **settings):
    """Return the run of a small mission, made once."""
    return fieldbo.run(small_mission(name, **settings))


@dataclass(frozen=True)
class EveryLevel(Policy):
    """Reads at random sites, cycling through the sensor levels."""

    def suggest(self, state, memory):
        told = Random().suggest(state, memory)
        if not isinstance(told.choice, fieldbo.Query):
            return told
        return Decision(replace(told.choice, level=len(state.history) % state.sensor.settings))


@cache
def live(result):
    world = replace(result.mission.world, field=None)
    nothing = dict.fromkeys(("f1", "precision", "recall", "regret", "coverage90"), float("nan"))
    curve = tuple(replace(s, **nothing) for s in result.curve)
    return replace(result, mission=replace(result.mission, world=world), curve=curve)


def labelled(figure, label):
    return [a for ax in figure.axes for a in [*ax.lines, *ax.collections] if a.get_label() == label]


def png(figure):
    """Return a figure as a small picture."""
    out = io.BytesIO()
    with patch.object(figures, "DPI", 40):
        plot.save(figure, out)
    return out.getvalue()


@cache
def sketch(picture, *of, **settings):
    """Return a picture, made once, with all it holds but a layout, which takes most of the time."""
    with patch.object(figures, "settled", lambda figure: None):
        return picture(*of, **settings)
