"""Gaps between readings, in which a model that learns can't know what to expect.

A model learns from readings how fast a field varies. Readings in one corner do not tell how the field varies
elsewhere, so before an answer counts, no site may lie too far from all readings.
"""

from __future__ import annotations

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.covering import MOST_AXES, nearest
from fieldbo.belief.model import Model
from fieldbo.belief.question import Optimum, Question
from fieldbo.belief.weighted import typical_lengths
from fieldbo.domain.domain import Domain

_WITHIN, _WITHIN_OPTIMUM = 0.5, 1.0  # expected length scales from the nearest reading
_READINGS_PER_AXIS = 10


def gaps(read: Array, model: Model, domain: Domain, question: Question, beside: Array | None = None) -> Array:
    """Return how far (N,) each site lies from the nearest reading: above 1, it lies in a gap.

    Distances are in the length scales that the model expects before any reading: within half of one of them
    a reading must lie for a level set, whose patches may be small, and within one for an optimum. With more
    than three axes, where no number of readings closes all gaps, ten readings per axis at different places
    will do (Loeppky, Sacks and Welch 2009).

    Parameters
    ----------
    read : (n, d) array
        Where readings were taken.
    model : Model
    domain : Domain
    question : Question
    beside : (k, d) array, optional
        Sites that count as read, too, because no reading comes closer; with up to three axes.
    """
    if domain.dimension > MOST_AXES:
        enough = len(np.unique(read, axis=0)) >= _READINGS_PER_AXIS * domain.dimension
        return np.full(domain.size, 0.0 if enough else np.inf)
    reach = reach_of(model, domain, question)
    seen = read if beside is None else np.concatenate([read, beside])
    return nearest(seen / reach, domain.sites / reach)


def reach_of(model: Model, domain: Domain, question: Question) -> Array:
    """Return how far from a site, along each axis, a reading may lie at most if it is not to be in a gap.

    One for all axes if the model has a single length scale.
    """
    within = _WITHIN_OPTIMUM if isinstance(question, Optimum) else _WITHIN
    return np.asarray(within * typical_lengths(model, domain))
