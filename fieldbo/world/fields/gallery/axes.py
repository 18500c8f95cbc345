"""The check that a domain has the axes that a field of the gallery is made for."""

from __future__ import annotations

from collections.abc import Mapping

from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError


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
