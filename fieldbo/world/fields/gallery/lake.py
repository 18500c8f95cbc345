"""Chlorophyll in a vertical transect of a stratified lake, with a deep maximum.

Its shape follows the literature:

- The vertical profile is a Gaussian layer on a background, as Lewis, Cullen and Platt (1983, J. Geophys.
  Res. 88) describe chlorophyll profiles and Platt and Sathyendranath (1988, Science 241) use them. The
  background fades below the layer, where light is too weak to grow.
- The layer lies slightly below the thermocline, which is tilted by the wind's set-up and bent by the first
  two horizontal modes of an internal seiche, ``cos(pi x / L)`` and ``cos(2 pi x / L)``.
- Patches: the log of the layer's strength varies along the track with a spectrum that falls as a power of
  the wavenumber, as Denman and Platt (1976, J. Mar. Res. 34) found for phytoplankton. Single patches around
  the layer are elongated along the track by shear.

Amplitudes, depths and widths are drawn from ranges typical of a mesotrophic lake in summer. Draw number k is
always the same lake.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import NonNegativeInt

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.domain.domain import Domain
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind, check_axes

_MODES = 6  # of the patchiness: wavelengths from the transect's length to a sixth of it
_SLOPE = 1.0  # exponent of the amplitude spectrum; 2 for the power spectrum


@dataclass(frozen=True, eq=False)
class Lake(Field):
    """One lake: a function of position along the track and depth."""

    length_m: float
    thermocline_m: Array  # mean depth, tilt, first and second seiche mode
    offset_m: float
    background: float
    layer: float
    widths_m: Array  # above and below the layer's core
    modes: Array  # (_MODES, 2) cosine and sine amplitudes of the log strength
    patches: Array  # (k, 5): along, height above the core, length, thickness, strength

    def core_m(self, along: Array) -> Array:
        """Return the depth (N,) of the layer's core at positions `along` (N,)."""
        x = along / self.length_m
        depth, tilt, first, second = self.thermocline_m
        seiche = first * np.cos(np.pi * x) + second * np.cos(2 * np.pi * x)
        return np.asarray(depth + tilt * (x - 0.5) + seiche + self.offset_m)

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return chlorophyll (N,) in mg m-3 at `sites` (N, 2), metres along the track and depth."""
        along, depth = sites[:, 0], sites[:, 1]
        below = depth - self.core_m(along)
        phase = 2 * np.pi * np.outer(along / self.length_m, np.arange(1, _MODES + 1))
        strength = np.exp(np.cos(phase) @ self.modes[:, 0] + np.sin(phase) @ self.modes[:, 1])
        width = np.where(below < 0, self.widths_m[0], self.widths_m[1])
        layer = self.layer * strength * np.exp(-0.5 * (below / width) ** 2)
        fade = 1.0 / (1.0 + np.exp(below / (0.8 * self.widths_m[1])))
        total = self.background * (0.25 + 0.75 * fade) + layer
        for at, height, length, thickness, amount in self.patches:
            gap = ((along - at) / length) ** 2 + ((below + height) / thickness) ** 2
            total = total + amount * np.exp(-0.5 * gap)
        return np.asarray(total)


@settings("field")
class LakeChlorophyll(FieldKind):
    """A seeded lake; every draw is another summer day.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> transect = Domain.grid([Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18)], (50, 50))
    >>> lake = LakeChlorophyll().make(transect, draw=0)
    >>> bool((lake.values(transect.sites) > 0).all())
    True
    """

    patches: NonNegativeInt = 5
    """Number of single patches around the layer."""

    def make(self, domain: Domain, draw: int, folder: Path | None = None) -> Lake:
        """Return lake number `draw` over a domain of two axes, along the track and depth."""
        check_axes("a lake", domain, {"distance along the track": -np.inf, "depth": -np.inf})
        rng = stream(draw, "field")
        length, bottom = float(domain.extent[0]), float(domain.high[1])
        tilt = rng.choice([-1.0, 1.0]) * rng.uniform(0.10, 0.22) * bottom
        return Lake(
            length_m=length,
            thermocline_m=np.array(
                [
                    rng.uniform(0.36, 0.46) * bottom,
                    tilt,
                    rng.uniform(-0.04, 0.04) * bottom,
                    rng.uniform(-0.03, 0.03) * bottom,
                ]
            ),
            offset_m=rng.uniform(0.02, 0.06) * bottom,
            background=rng.uniform(0.45, 0.65),
            layer=rng.uniform(1.6, 2.0),
            widths_m=bottom * np.array([rng.uniform(0.10, 0.14), rng.uniform(0.07, 0.10)]),
            modes=0.16 * rng.standard_normal((_MODES, 2)) / np.arange(1, _MODES + 1)[:, None] ** _SLOPE,
            patches=np.column_stack(
                [
                    rng.uniform(0, length, self.patches),
                    rng.uniform(-0.12, 0.22, self.patches) * bottom,
                    rng.uniform(0.06, 0.12, self.patches) * length,
                    rng.uniform(0.05, 0.08, self.patches) * bottom,
                    rng.uniform(0.4, 1.0, self.patches),
                ]
            ),
        )
