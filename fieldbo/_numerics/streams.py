"""Named random streams: from one seed, a generator for each purpose and each ask.

A stream is keyed by its name *and* the number of the ask that it serves. More draws in one stream therefore
leave all others unchanged, and a replay needs no saved generator state.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Stream = Literal[
    "sensor",
    "policy",
    "model",
    "initial",
    "field",
    "start",
    "score",
    "observe",
    "cost",
    "chance",
    "stop",
    "truth",
    "along",
    "advice",
    "bootstrap",
    "unnoticed",
]
_KEYS: dict[Stream, int] = {
    "sensor": 0,
    "policy": 1,
    "model": 2,
    "initial": 3,
    "field": 4,
    "start": 5,
    "score": 6,
    "observe": 7,
    "cost": 8,
    "chance": 9,
    "stop": 10,
    "truth": 11,
    "along": 12,
    "advice": 13,
    "bootstrap": 14,
    "unnoticed": 15,
}


def stream(seed: int, name: Stream, ask: int = 0) -> np.random.Generator:
    """Return the generator of a stream at one ask.

    Parameters
    ----------
    seed : int
        The mission's seed; for a field, the world's draw.
    name : str
        The purpose: ``"sensor"``, ``"policy"``, ``"model"``, ``"initial"``, ``"field"``, ``"start"``,
        ``"score"``, ``"observe"`` (a policy's draws, keyed by event), ``"cost"`` (noise on the real cost of
        a simulated order), ``"chance"`` (variables that it leaves free), ``"stop"`` (how sure the answer
        is), ``"truth"`` (samples of free variables for true expected values), ``"along"`` (noise of the
        readings on the way), ``"advice"`` (fields drawn from the belief, keyed by their number),
        ``"bootstrap"`` (runs of a comparison, drawn again) or ``"unnoticed"`` (patches between readings).
    ask : int
        Number of the agent's ask that it serves.

    Examples
    --------
    >>> a, b = stream(7, "sensor", 3), stream(7, "sensor", 3)
    >>> a.standard_normal() == b.standard_normal()
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_KEYS[name], ask)))
