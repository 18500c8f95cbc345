"""Size of a made-up plant over five properties of its medium, by known laws of plant nutrition.

The axes are those of a growth chamber for liverworts (*Marchantia*), in this order: calcium (mmol/L), boron
(umol/L), ammonium (mmol/L), potassium (mmol/L) and pH. The numbers are round and of the order found in plant
media (Hoagland and Arnon 1950; Gamborg, Miller and Ojima 1968), not fitted to data. The laws:

- A nutrient limits growth as in Mitscherlich's second approximation (1928), by ``1 - exp(-c u)`` if scarce
  and ``exp(-k l^2)`` in excess. The factors multiply (Baule 1918), so growth stays below what the scarcest
  nutrient alone allows: a smooth form of Liebig's law of the minimum.
- Ions compete for the carriers that take them up (Epstein and Hagen 1952): ammonium keeps potassium out,
  potassium keeps calcium out. The uptake is ``u = x / (1 + rival / K)``, the load ``l = x``.
- In an alkaline medium the fraction ``q = 1 / (1 + 10^(9.25 - pH))`` of ammonium turns into ammonia
  (Emerson et al. 1975), which is more toxic (Britto and Kronzucker 2002): the load is ``l = x (1 + 20 q)``.
- Acidity acts by the cardinal model of Rosso et al. (1995), which was made for microbes and serves here for
  its bell shape between two ends: ``b = a / (a - (pH - best)^2)`` with ``a = (pH - least) (pH - most)``.

=========  ====  =======  =====================
nutrient   c     k        rival, K
=========  ====  =======  =====================
calcium    1.0   0.004    potassium, 10 mmol/L
boron      0.08  0.00015
ammonium   1.2   0.05
potassium  0.5   0.005    ammonium, 3 mmol/L
=========  ====  =======  =====================

The least, best and largest pH are 3.5, 5.8 and 9. The area is 10 cm2 where nothing limits growth.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.domain import Domain
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind, check_axes

_FULL_AREA_CM2 = 10.0
_SCARCITY = frozen_array([1.0, 0.08, 1.2, 0.5])  # c: calcium, boron, ammonium, potassium
_EXCESS = frozen_array([0.004, 0.00015, 0.05, 0.005])  # k
_POTASSIUM_ON_CALCIUM, _AMMONIUM_ON_POTASSIUM = 10.0, 3.0  # K, mmol/L
_AMMONIA_WEIGHT, _AMMONIA_PKA = 20.0, 9.25
_PH = 3.5, 5.8, 9.0  # least, best, most
_LEAST = {"calcium": 0.0, "boron": 0.0, "ammonium": 0.0, "potassium": 0.0, "pH": -np.inf}


@dataclass(frozen=True, eq=False)
class Plant(Field):
    """The plant's area over the five axes of its medium."""

    def limits(self, sites: Array) -> Array:
        """Return the factor (N, 5), from 0 to 1, by which each property alone reduces growth.

        Parameters
        ----------
        sites : (N, 5) array
            Calcium, boron, ammonium, potassium, pH.
        """
        calcium, _, ammonium, potassium, ph = sites.T
        uptake, load = sites[:, :4].copy(), sites[:, :4].copy()
        uptake[:, 0] = calcium / (1 + potassium / _POTASSIUM_ON_CALCIUM)
        uptake[:, 3] = potassium / (1 + ammonium / _AMMONIUM_ON_POTASSIUM)
        load[:, 2] = ammonium * (1 + _AMMONIA_WEIGHT / (1 + 10 ** (_AMMONIA_PKA - ph)))
        nutrients = -np.expm1(-_SCARCITY * uptake) * np.exp(-_EXCESS * load**2)
        return np.column_stack([nutrients, _acidity(ph)])

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the area (N,) in cm2 at `sites` (N, 5)."""
        return np.asarray(_FULL_AREA_CM2 * np.prod(self.limits(sites), axis=1))


def _acidity(ph: Array) -> Array:
    least, best, most = _PH
    inside = (ph > least) & (ph < most)
    gap = np.where(inside, (ph - least) * (ph - most), 0.0)
    return np.asarray(np.where(inside, gap / (gap - np.where(inside, ph - best, 1.0) ** 2), 0.0))


@settings("field")
class Growth(FieldKind):
    """The area of a plant in cm2 over calcium, boron, ammonium, potassium and pH, the same for every draw.

    Amounts are in mmol/L, boron in umol/L. The area is at least 0; maximise it.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> low, high = (0.1, 1, 0.1, 0.1, 4), (10, 100, 8, 14, 8)
    >>> names = ("calcium", "boron", "ammonium", "potassium", "pH")
    >>> medium = Domain.box([Axis(n, "", a, b) for n, a, b in zip(names, low, high, strict=True)], 64)
    >>> fed, starved = [4.5, 29, 1.5, 5.4, 5.8], [4.5, 29, 1.5, 0.1, 5.8]
    >>> Growth().make(medium).values(np.array([fed, starved])).round(2)
    array([3.73, 0.18])
    """

    def make(self, domain: Domain, draw: int = 0, folder: Path | None = None) -> Plant:
        """Return the plant over a domain of five axes, amounts of at least 0."""
        check_axes("growth", domain, _LEAST)
        return Plant()
