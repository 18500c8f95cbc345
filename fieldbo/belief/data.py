"""What a model is fitted to: readings, with all that says what they mean."""

from __future__ import annotations

from typing import NamedTuple

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.sensor import Sensor


class Data(NamedTuple):
    """Readings, in the user's units.

    Attributes
    ----------
    sites : (n, d) array
    values, noise_variances : (n,) arrays
        The variances are those that the sensor declares, without the part in proportion to the value.
    means : (n,) array or None
        The prior mean at the sites.
    sensor : Sensor
        By default one without a limit of detection, and without noise in proportion to the value.

    Examples
    --------
    >>> import numpy as np
    >>> data = Data(np.array([[0.0], [1.0]]), np.array([2.0, 3.0]), np.array([0.1, 0.1]))
    >>> data.only(np.array([False, True])).values
    array([3.])
    """

    sites: Array
    values: Array
    noise_variances: Array
    means: Array | None = None
    sensor: Sensor = Sensor()

    def only(self, which: Mask | slice) -> Data:
        """Return some of the readings."""
        means = None if self.means is None else self.means[which]
        return Data(self.sites[which], self.values[which], self.noise_variances[which], means, self.sensor)
