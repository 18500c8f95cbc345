"""Noise of an airfoil's trailing edge in a wind tunnel, after Brooks, Pope and Marcolini.

The turbulent boundary layers of both sides, and the air that separates at an angle of attack, make noise as
they pass the trailing edge (Brooks, Pope and Marcolini 1989, *Airfoil self-noise and prediction*, NASA
RP-1218). In a third-octave band, the level of each of these three sources in dB is

    ``10 log10(delta M^5 L / r^2) + S(St / St_peak) + K``,  ``St = f delta / U``.

The exponents, peaks and levels are theirs. Where their branches meet in corners, smooth curves are used here:

====================  ================================================================================
``delta``             displacement thickness: an axis for the suction side; for the pressure side, theirs
                      of a tripped layer, ``log10(delta_0 / c) = 3.411 - 1.5397 R + 0.1059 R^2`` and
                      ``log10(delta / delta_0) = -0.0432 a + 0.00113 a^2``
``R``                 log10 of the Reynolds number ``U c / nu``, ``nu`` = 1.45e-5 m2/s
``M``                 Mach number ``U / c0``, ``c0`` = 340 m/s
``L``, ``r``          span 0.457 m, distance of the microphone overhead 1.22 m
``S``                 ``10 log10((p + q) x^p / (q + p x^(p + q)))``, at most 0, at x = 1; p = 3, q = 3.5
``St_peak``           ``0.02 M^-0.6``; for the separated air, times a factor that rises from 1 to 4.72
                      around 9.5 degrees; for the suction side, the mean of both
``K``                 ``165.5 - 6 R``, within 2 dB of theirs; minus 3 for a side; for the separated air
                      plus a hill above -12, at ``a`` = 4.65 + 23.4 M degrees, ``38.5 M - 3.1`` high
====================  ================================================================================

Two effects are added. Sound of wavelengths above the chord ``c`` is radiated by the whole airfoil as by a
compact dipole: ``(k c)^2 / (1 + (k c)^2)`` of the power, with ``k = 2 pi f / c0`` (Curle 1955). And the level
is the perceived one: with the A-weighting of IEC 61672, above a background of 40 dB,
``10 log10(1 + 10^(level / 10 - 4))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind, check_axes

_SOUND_M_PER_S, _VISCOSITY_M2_PER_S = 340.0, 1.45e-5
_SPAN_M, _DISTANCE_M = 0.457, 1.22
_RISE, _FALL = 3.0, 3.5  # p, q
_BACKGROUND_DB = 40.0
_LEAST = {
    "frequency": -np.inf,
    "angle of attack": -np.inf,
    "chord": 1e-9,
    "velocity": 1e-9,
    "displacement thickness": -np.inf,
}


@dataclass(frozen=True, eq=False)
class Airfoil(Field):
    """The noise level over frequency, angle of attack, chord, velocity and displacement thickness."""

    def sources(self, sites: Array) -> Array:
        """Return the unweighted levels (N, 3) in dB: pressure side, suction side, separation.

        Parameters
        ----------
        sites : (N, 5) array
            Frequency (log10 Hz), angle of attack (degrees), chord (m), free-stream velocity (m/s),
            displacement thickness of the suction side (log10 mm).
        """
        log_f, angle, chord, velocity, log_mm = sites.T
        mach = velocity / _SOUND_M_PER_S
        reynolds = np.log10(velocity * chord / _VISCOSITY_M2_PER_S)
        suction = 10 ** (log_mm - 3)
        pressure = chord * 10 ** (
            3.411 - 1.5397 * reynolds + 0.1059 * reynolds**2 - 0.0432 * angle + 0.00113 * angle**2
        )
        peak = 0.02 * mach**-0.6
        separated = peak * (1 + 3.72 / (1 + np.exp((9.5 - angle) / 1.5)))
        hill = (38.5 * mach + 8.9) * np.exp(-(((angle - 4.65 - 23.4 * mach) / (18.1 * mach + 2.2)) ** 2))
        offsets = (-3.0, -3.0, hill - 12)
        layers = ((pressure, peak), (suction, (peak + separated) / 2), (suction, separated))
        levels = [
            10 * np.log10(thick * mach**5 * _SPAN_M / _DISTANCE_M**2)
            + _shape(10**log_f * thick / velocity / st_peak)
            + (165.5 - 6 * reynolds + offset)
            for (thick, st_peak), offset in zip(layers, offsets, strict=True)
        ]
        return np.column_stack(levels)

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the level (N,) in dB(A) above the background at `sites` (N, 5)."""
        f, chord = 10 ** sites[:, 0], sites[:, 2]
        wave = (2 * np.pi * f * chord / _SOUND_M_PER_S) ** 2
        power = np.sum(10 ** (self.sources(sites) / 10), axis=1) * wave / (1 + wave) * _a_weighting(f)
        return np.asarray(10 * np.log10(1 + power / 10 ** (_BACKGROUND_DB / 10)))


def _shape(x: Array) -> Array:
    """Return the level (N,) relative to the peak, at `x` times the peak's Strouhal number."""
    return np.asarray(10 * np.log10((_RISE + _FALL) * x**_RISE / (_FALL + _RISE * x ** (_RISE + _FALL))))


def _a_weighting(f: Array) -> Array:
    """Return the A-weighting of the power (N,) at frequencies in Hz; 1 at 1 kHz (IEC 61672-1, annex E)."""
    s = f**2
    gain = 12194.0**2 * s**2 / ((s + 20.6**2) * np.sqrt((s + 107.7**2) * (s + 737.9**2)) * (s + 12194.0**2))
    return np.asarray(gain**2 * 10**0.2)  # 2 dB


@settings("field")
class AirfoilNoise(FieldKind):
    """The self-noise of an airfoil in dB(A) above a background, the same for every draw.

    Its axes are frequency (log10 Hz), angle of attack (degrees), chord (m), free-stream velocity (m/s) and
    displacement thickness (log10 mm). The level is at least 0; maximise it to find the loudest setting.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> low, high = (2.3, 0, 0.0254, 31.7, -0.4), (4.3, 22.2, 0.3048, 71.3, 1.77)
    >>> names = ("frequency", "angle", "chord", "velocity", "thickness")
    >>> tunnel = Domain.box([Axis(n, "", a, b) for n, a, b in zip(names, low, high, strict=True)], 64)
    >>> slow, fast = [3.3, 8, 0.05, 40, 0.8], [3.3, 8, 0.05, 70, 0.8]
    >>> AirfoilNoise().make(tunnel).values(np.array([slow, fast])).round(1)
    array([14.6, 30.8])
    """

    def make(self, domain: Domain, draw: int = 0, folder: Path | None = None) -> Airfoil:
        """Return the airfoil over a domain of five axes, chords and velocities above 0."""
        check_axes("airfoil", domain, _LEAST)
        return Airfoil()
