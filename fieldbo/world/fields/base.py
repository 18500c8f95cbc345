"""The contracts of a field and of its settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.validation import settings


class Field(ABC):
    """The true quantity over a domain.

    To add a field, write two classes: a `Field` that holds the truth and returns its `values`, and a
    `FieldKind` that holds its settings and makes it. Only worlds and metrics read a field; agents never see
    it.

    `values` must return finite numbers, the same ones for the same site whether it is asked for alone or
    among others, and must not depend on earlier calls. `fieldbo.testing.WorldContract` tests this. Override
    the other methods only if the field has more to offer:

    - `channels` returns other quantities that a reading brings along;
    - `optimum` returns the best point, if it is known exactly;
    - `knowing` takes earlier readings into account, if the field is drawn from what is known;
    - `sampled` carries out a reading that depends on where the vehicle comes from.

    See `FieldKind` for a complete example.
    """

    notes: tuple[str, ...] = ()
    """What a user should know about how this field was made, with every run."""

    details: tuple[str, ...] = ()
    """What matters to those who look at the world itself."""

    measured: ClassVar[tuple[str, ...]] = ()
    """Channels that depend on the machine, such as measured seconds: they are not reproducible."""

    @property
    def fitted_to(self) -> Array | None:
        """Earlier readings (n,) of the real place, if the field is fitted to them; None otherwise.

        Such a field serves rehearsals. It is not the truth for a real vehicle, which finds the place changed.
        """
        return None

    def knowing(self, sites: Array, values: Array, noise_sds: Array) -> Field:
        """Return the field given earlier readings of the real place; by default itself.

        Override this if the field is drawn from what is known of a place.

        Parameters
        ----------
        sites : (n, d) array
        values : (n,) array
            In the unit of the quantity.
        noise_sds : (n,) array
        """
        return self

    @abstractmethod
    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the true values at some sites.

        Parameters
        ----------
        sites : (N, d) array
            In the axes' units.
        time_s : float
            When they are read.

        Returns
        -------
        (N,) array
            In the unit of the quantity.
        """

    def channels(self, sites: Array) -> dict[str, Array]:
        """Return other quantities at `sites` (N, d), as name to (N,); by default none."""
        return {}

    def sampled(self, site: Array, position: Array, time_s: float = 0.0) -> tuple[Array, dict[str, Array]]:
        """Return what a vehicle that comes from `position` (d,) reads at `site` (d,).

        Override this if a reading changes something or runs something. Scores use `values`, which has no
        side effects.

        Returns
        -------
        value : (1,) array
        channels : dict of str to (1,) array
        """
        return self.values(site[None], time_s), self.channels(site[None])

    def optimum(self, goal: Literal["maximise", "minimise"]) -> Array | None:
        """Return the best point (d,) of a continuous domain; None if it is not known."""
        return None


@settings("field")
class FieldKind(ABC):
    """The settings of a field, from which a world makes it.

    To add a kind of field, subclass `FieldKind`, decorate the class with `fieldbo.validation.settings`, and
    write `make`. Each annotated attribute is a setting: a key of the ``[field]`` table of a world file,
    checked against its type and documented by the string below it.

    Register the class as an entry point in the group ``fieldbo.fields`` of your package's ``pyproject.toml``:

    .. code-block:: toml

        [project.entry-points."fieldbo.fields"]
        plume = "my_package.fields:Plume"

    World files can then use it: ``kind = "plume"`` and ``width = 3`` under ``[field]``.

    Examples
    --------
    A plume around a source at a random place:

    >>> import numpy as np
    >>> from pydantic import PositiveFloat
    >>> from fieldbo.domain import Axis, Domain
    >>> from fieldbo.validation import settings
    >>> class PlumeField(Field):
    ...     def __init__(self, source, width):
    ...         self.source, self.width = source, width
    ...
    ...     def values(self, sites, time_s=0.0):
    ...         gaps = (sites - self.source) / self.width
    ...         return np.exp(-0.5 * (gaps**2).sum(axis=1))
    >>> @settings("field")
    ... class Plume(FieldKind):
    ...     width: PositiveFloat = 5.0
    ...
    ...     def make(self, domain, draw, folder=None):
    ...         rng = np.random.default_rng(draw)
    ...         return PlumeField(rng.uniform(domain.low, domain.high), self.width)
    >>> pond = Domain.grid([Axis("x", "m", 0, 20), Axis("y", "m", 0, 10)], (3, 2))
    >>> Plume(width=3.0).make(pond, draw=1).values(pond.sites).round(2)
    array([0.  , 0.  , 0.01, 0.98, 0.  , 0.  ])
    """

    @abstractmethod
    def make(self, domain: Domain, draw: int, folder: Path | None) -> Field:
        """Return the field.

        Parameters
        ----------
        domain : Domain
        draw : int
            Which realisation, if the kind is random; equal draws must give equal fields.
        folder : Path or None
            The world's folder, for kinds that read a file in it.
        """


def check_axes(what: str, domain: Domain, least: Mapping[str, float]) -> None:
    """Raise an `InputError` unless a domain has as many axes as named, and none starts below its least value.

    Parameters
    ----------
    what : str
        The field, for the error.
    domain : Domain
    least : mapping of str to float
        Least value of each axis, by the name of its quantity.
    """
    if domain.dimension != len(least):
        raise InputError(
            f"{what} over {domain.dimension} axes",
            expected=f"{len(least)} axes: {', '.join(least)}",
            where="field.kind",
        )
    for axis, low in zip(domain.axes, least.values(), strict=True):
        if axis.low < low:
            raise InputError(
                f"axis {axis.name!r} starts at {axis.low:g}",
                expected=f"at least {low:g}",
                where="domain.axes",
            )


def inside(folder: Path, name: str, *, where: str, owner: str = "world") -> Path:
    """Return ``folder / name``, or raise an `InputError` if that lies outside the `owner`'s folder."""
    try:
        path = (folder / name).resolve()
    except (OSError, ValueError):
        raise InputError(
            f"{name!r} is not a valid file name", expected="the name of a file", where=where
        ) from None
    if not path.is_relative_to(folder.resolve()):
        raise InputError(
            f"{name!r} lies outside the folder {folder.name or '.'}",
            expected=f"a file in the {owner}'s own folder",
            where=where,
            fix="copy the file there",
        )
    return path
