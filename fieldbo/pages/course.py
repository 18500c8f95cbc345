"""The course of a run, replayed from its record: the belief after each order, and why each was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.messages import Query
from fieldbo.results import maps
from fieldbo.results.answers import OptimumAnswer, answer_of
from fieldbo.results.curve import Step
from fieldbo.results.result import Result
from fieldbo.runs.reasons import best_of, reasons_for
from fieldbo.runs.replay import Recorded
from fieldbo.runs.state import RunState

_SETTLING = ("observation", "rejected", "lost")
"""Kinds of rows that may settle an order."""

Layers = dict[str, NDArray[Any]]
"""Values (N,) at the sites, by the name of their variable in ``map.nc``."""


@dataclass(frozen=True, eq=False)
class Frame:
    """What was known after an order was settled, or before the first reading.

    Attributes
    ----------
    number : int
        Number of settled orders.
    step : Step or None
        None before the first order.
    events : int
        Number of events so far.
    order : str or None
        The order that was settled.
    positions : tuple of (d,) array
        Where the vehicles were.
    layers : dict
        The maps; empty in frames that hold none.
    """

    number: int
    step: Step | None
    events: int
    order: str | None
    positions: tuple[Array, ...]
    layers: Layers


@dataclass(frozen=True, eq=False)
class Course:
    """A replayed run.

    Attributes
    ----------
    run : Recorded
    result : Result
    agent : Agent
        As it is now.
    frames : tuple of Frame
        In order. The maps of the last one are those of the result.
    reasons : dict
        Why each query was chosen, as labels and words, by its id.
    """

    run: Recorded
    result: Result
    agent: Agent
    frames: tuple[Frame, ...]
    reasons: dict[str, dict[str, str]]


def replayed(run: Recorded, most_maps: int = 0) -> Course:
    """Replay a run.

    Parameters
    ----------
    run : Recorded
    most_maps : int
        Number of frames, at most, that hold maps: the first, the last, and others evenly between them. With
        0, none does.
    """
    state = RunState(run.mission, run.name)
    orders = {row.order for row in run.rows if row.kind in _SETTLING}
    with_maps = set(evenly(len(orders) + 1, most_maps))
    frames = [_frame(state, None, with_maps=0 in with_maps)]
    reasons: dict[str, dict[str, str]] = {}
    for row in run.rows:
        if row.kind == "query":
            query, why = row.message, row.body["why"]
            assert isinstance(query, Query)
            best = best_of(state.agent, query, why)
            reasons[str(query.id)] = reasons_for(state.agent, query, why, best)
        state.replay([row])
        if len(state.curve) == len(frames):
            frames.append(_frame(state, row.order, with_maps=len(frames) in with_maps))
    # A fit or a correction may have come after the last order.
    frames[-1] = _frame(state, frames[-1].order, with_maps=most_maps > 0)
    return Course(run, state.result(), state.agent, tuple(frames), reasons)


def evenly(count: int, most: int) -> list[int]:
    """Return at most `most` of the numbers below `count`, evenly, with the first and the last one.

    Examples
    --------
    >>> evenly(9, 3), evenly(3, 10), evenly(3, 0)
    ([0, 4, 8], [0, 1, 2], [])
    """
    return sorted({round(x) for x in np.linspace(0, count - 1, min(count, most)).tolist()})


def _frame(state: RunState, order: str | None, *, with_maps: bool) -> Frame:
    agent, curve = state.agent, state.curve
    return Frame(
        number=len(curve),
        step=curve[-1] if curve else None,
        events=len(agent.history),
        order=order,
        positions=tuple(vehicle.position for vehicle in agent.vehicles),
        layers=layers_of(agent) if with_maps else {},
    )


def layers_of(agent: Agent) -> Layers:
    """Return the present maps of an agent, as at the end of a run.

    Examples
    --------
    >>> import fieldbo
    >>> sorted(layers_of(fieldbo.Agent(fieldbo.load_mission("lake-level-set"))))
    ['class', 'exceedance', 'mean', 'sd']
    """
    surface, scale = agent.stated
    answer = answer_of(agent.mission, surface, scale, blinded=agent.blinded)
    if isinstance(answer, OptimumAnswer):
        answer = answer.polished(np.empty((0, agent.domain.dimension)))
    return {name: np.array(values) for name, (values, _) in maps.layers(answer, agent.failures).items()}
