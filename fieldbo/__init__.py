"""Plan and run robotic and field sampling under a battery.

>>> import fieldbo
>>> result = fieldbo.run(fieldbo.load_mission("lake-level-set"))
>>> result.f1 >= 0.9
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fieldbo.agent import Agent
    from fieldbo.catalogue import list_missions, list_worlds, load_mission, load_world
    from fieldbo.errors import FieldboError, InputError
    from fieldbo.exchange import GoHome, Lost, Observation, Query, Rejected, Stop, Telemetry
    from fieldbo.explanation import explain
    from fieldbo.gp import Belief
    from fieldbo.mission import Mission
    from fieldbo.record import Record
    from fieldbo.replay import load_run
    from fieldbo.result import Result
    from fieldbo.runner import resume, run
    from fieldbo.surface import Surface
    from fieldbo.vehicles.settings import load_vehicle
    from fieldbo.world import World

__version__ = "0.1.0"

_PUBLIC = {
    "Agent": "agent",
    "Belief": "gp",
    "FieldboError": "errors",
    "GoHome": "exchange",
    "InputError": "errors",
    "Lost": "exchange",
    "Mission": "mission",
    "Observation": "exchange",
    "Query": "exchange",
    "Record": "record",
    "Rejected": "exchange",
    "Result": "result",
    "Stop": "exchange",
    "Surface": "surface",
    "Telemetry": "exchange",
    "World": "world",
    "explain": "explanation",
    "list_missions": "catalogue",
    "list_worlds": "catalogue",
    "load_mission": "catalogue",
    "load_run": "replay",
    "load_vehicle": "vehicles.settings",
    "load_world": "catalogue",
    "resume": "runner",
    "run": "runner",
}

__all__ = [
    "Agent",
    "Belief",
    "FieldboError",
    "GoHome",
    "InputError",
    "Lost",
    "Mission",
    "Observation",
    "Query",
    "Record",
    "Rejected",
    "Result",
    "Stop",
    "Surface",
    "Telemetry",
    "World",
    "__version__",
    "explain",
    "list_missions",
    "list_worlds",
    "load_mission",
    "load_run",
    "load_vehicle",
    "load_world",
    "resume",
    "run",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import fieldbo`` itself is quick."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fieldbo' has no attribute {name!r}")
    return getattr(import_module(f"fieldbo.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
