"""The contract of a field."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain


class Field(ABC):
    """The true quantity over a domain."""

    notes: tuple[str, ...] = ()
    """What a user should know of how this field was made."""

    measured: ClassVar[tuple[str, ...]] = ()
    """Channels that are measured on the spot, as seconds are: they differ where all else is the same."""

    @abstractmethod
    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the true values (N,) at `sites` (N, d)."""

    def channels(self, sites: Array) -> dict[str, Array]:
        """Return other quantities at `sites` (N, d), as name to (N,); by default none."""
        return {}

    def sampled(self, site: Array, position: Array, time_s: float = 0.0) -> tuple[Array, dict[str, Array]]:
        """Return what a vehicle that comes from `position` (d,) finds at `site` (d,).

        Only here is something carried out, where a field does more than know its values. What is looked up
        for a score goes through `values`, and leaves no trace.

        Returns
        -------
        (1,) array
            The true value.
        dict of str to (1,) array
            The channels.
        """
        return self.values(site[None], time_s), self.channels(site[None])

    def optimum(self, goal: Literal["maximise", "minimise"]) -> Array | None:
        """Return the point (d,) of a continuous domain where the value is best, where that is known."""
        return None


@dataclass(frozen=True)
class FieldKind(ABC):
    """The settings of a field, from which a world makes it; a new kind is a frozen dataclass."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    @abstractmethod
    def realise(self, domain: Domain, draw: int, folder: Path | None) -> Field:
        """Return the field.

        Parameters
        ----------
        domain : Domain
        draw : int
            Which one, where the kind is random.
        folder : Path or None
            The world's folder, for kinds that read a file in it.
        """
