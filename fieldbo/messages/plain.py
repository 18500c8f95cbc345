"""The plain form of messages, for records and links: strings, numbers and lists, with None for NaN."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import shapely

from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.messages.events import (
    Answer,
    Command,
    Correction,
    Event,
    Fitted,
    Lost,
    Observation,
    Rejected,
    Telemetry,
)
from fieldbo.messages.orders import GoHome, Order, Query, Recharge

_KINDS: dict[str, type] = {
    "query": Query,
    "go-home": GoHome,
    "recharge": Recharge,
    "observation": Observation,
    "rejected": Rejected,
    "lost": Lost,
    "telemetry": Telemetry,
    "correction": Correction,
    "fitted": Fitted,
    "command": Command,
    "answer": Answer,
}
_NAMES = {cls: name for name, cls in _KINDS.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Obstacle):
        value = {"name": value.name, "corners": shapely.get_coordinates(value.polygon.exterior)[:-1]}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def to_plain(message: Order | Event) -> dict[str, Any]:
    """Return an order or event as a mapping of strings, numbers and lists, with its ``kind``.

    Examples
    --------
    >>> to_plain(Rejected("run/3", "shallow water"))
    {'kind': 'rejected', 'order': 'run/3', 'reason': 'shallow water'}
    """
    body = {f.name: _plain(getattr(message, f.name)) for f in fields(message)}
    return {"kind": _NAMES[type(message)], **body}


_UNCHANGED = (
    "order",
    "id",
    "reason",
    "hyperparameters",
    "weighted",
    "doubts",
    "areas",
    "hold",
    "by",
    "refused",
)


def _restore(value: Any) -> Any:
    """Return the numbers that JSON does not have and `_plain` replaced."""
    if isinstance(value, Mapping):
        return {k: _restore(v) for k, v in value.items()}
    if isinstance(value, list):
        return [math.nan if v is None else _restore(v) for v in value]
    return float(value) if value in ("inf", "-inf") else value


def from_plain(plain: Mapping[str, Any]) -> Order | Event:
    """Return the order or event of a plain form; the inverse of `to_plain`.

    Raises
    ------
    InputError
        The kind is unknown, or a field is missing or unknown.

    Examples
    --------
    >>> from_plain({"kind": "lost", "order": "run/3", "reason": "link"})
    Lost(order='run/3', reason='link', sent=True, time_s=None)
    """
    body = dict(plain)
    kind = body.pop("kind", None)
    cls = _KINDS.get(str(kind))
    if cls is None:
        raise UnknownNameError.of("message kind", kind, _KINDS)
    try:
        message: Order | Event = cls(**{k: v if k in _UNCHANGED else _restore(v) for k, v in body.items()})
    except TypeError as error:
        raise InputError(f"{kind} message: {error}", expected=f"the fields of {cls.__name__}") from error
    return message


def kind_of(message: Order | Event) -> str:
    """Return a message's kind as records name it, for example ``"observation"``."""
    return _NAMES[type(message)]
