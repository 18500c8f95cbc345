"""Cross-validation of a belief: its readings, predicted with a whole group of them left out.

Neighbours in space are alike. A reading left out alone is therefore predicted from those right beside it, and
the error says little about places where nobody measured. Groups that are left out whole, such as the lines of
a survey, leave the gaps that a map has to bridge (Roberts et al. 2017, Ecography 40).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve

from fieldbo._numerics.arrays import Array
from fieldbo.belief.posterior import Belief
from fieldbo.errors import InputError


def predict_left_out(belief: Belief, groups: ArrayLike) -> tuple[Array, Array]:
    """Return mean and variance (n,) of each reading, predicted from the readings of all other groups.

    Exact, from one inverse: with ``K = k(X, X) + diag(v)`` and ``Q = K^-1``, the readings of group g have
    mean ``y_g - Q_gg^-1 (Q y)_g`` and covariance ``Q_gg^-1`` given all others (Rasmussen and Williams 2006,
    section 5.4.2, for blocks). The hyperparameters stay those of the belief. The variance includes a
    reading's noise.

    Parameters
    ----------
    belief : Belief
    groups : (n,) array
        Label of each of ``belief.sites``; readings with the same label are left out together.

    Raises
    ------
    InputError
        There is not one label per site.

    Examples
    --------
    Two readings side by side predict each other well; the third place does not predict them at all:

    >>> from fieldbo.belief.kernels import Matern52
    >>> belief = Belief(Matern52([1.0])).condition_on([[0.0], [0.1], [9.0]], [2.0, 2.0, 0.0], 0.01)
    >>> predict_left_out(belief, [0, 1, 2])[0].round(1) + 0.0
    array([2., 2., 0.])
    >>> predict_left_out(belief, [0, 0, 1])[0].round(1) + 0.0
    array([0., 0., 0.])
    """
    labels = np.asarray(groups)
    if labels.shape != (belief.size,):
        raise InputError(
            f"labels of shape {labels.shape} for {belief.size} sites",
            expected="one label per site of the belief",
        )
    inverse = cho_solve((belief.factor, True), np.eye(belief.size), check_finite=False)
    weighted = inverse @ belief.values
    mean, variance = np.empty(belief.size), np.empty(belief.size)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        covariance = np.linalg.inv(inverse[np.ix_(rows, rows)])
        mean[rows] = belief.values[rows] - covariance @ weighted[rows]
        variance[rows] = np.diag(covariance)
    return mean, np.maximum(variance, belief.noise_variances)
