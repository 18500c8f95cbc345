"""TruVaR for level sets as Bogunovic et al. (2016) print it: the posterior is computed anew at every step.

Its readings are those of the run that it is compared with, so that the two can be compared choice by choice.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist
from serving import Answer, Data, Work, serve

BLOCK = 256
R = 0.1


def covariance(a: np.ndarray, b: np.ndarray, length_scales: np.ndarray) -> np.ndarray:
    """Return Matern-5/2 covariances (n, m) of variance 1."""
    s = np.sqrt(5.0) * cdist(a / length_scales, b / length_scales)
    return (1.0 + s + s**2 / 3.0) * np.exp(-s)


def run(data: Data) -> np.ndarray:
    """Return the sites (n,) that algorithm 1 chooses, step by step."""
    sites, chosen, noise = data["sites"], data["chosen"], float(data["noise"][0])
    h, n = float(data["threshold"]), len(sites)
    unclassified = np.ones(n, dtype=bool)
    beta, eta = np.log(float(n)), 1.0
    choices = [chosen[0]]  # the first reading is taken at the start
    prior = covariance(sites, sites, data["length_scales"])
    for t in range(1, len(chosen) + 1):
        read, y = chosen[:t], data["y"][:t]
        L = cholesky(prior[np.ix_(read, read)] + noise * np.eye(t), lower=True)
        V = solve_triangular(L, prior[read], lower=True)
        mean = V.T @ solve_triangular(L, y, lower=True)
        C = prior - V.T @ V
        variance = np.maximum(np.diag(C), 0.0)
        width = np.sqrt(beta * variance)
        unclassified &= (mean - width <= h) & (mean + width >= h)
        while unclassified.any() and np.sqrt(beta * variance[unclassified].max()) <= eta:
            eta *= R
            beta = np.log(n * (t + 1.0) ** 2)
        if t == len(chosen):
            break
        choices.append(int(np.argmax(reductions(C, variance, unclassified, noise, beta, eta))))
    return np.array(choices)


def reductions(
    C: np.ndarray, variance: np.ndarray, M: np.ndarray, noise: float, beta: float, eta: float
) -> np.ndarray:
    """Return what a reading of each site takes off the truncated variance of M (eq. 3), in blocks."""
    now = np.sum(np.maximum(beta * variance[M], eta**2))
    found = np.empty(len(C))
    for low in range(0, len(C), BLOCK):
        rows = slice(low, low + BLOCK)
        after = variance[M] - C[rows][:, M] ** 2 / (noise + variance[rows, None])
        found[rows] = now - np.sum(np.maximum(beta * after, eta**2), axis=1)
    return found


def prepare(data: Data, threads: int) -> tuple[Work, Answer]:
    """Return the work; BLAS takes its threads from the environment. The answer is the choices."""
    return lambda: run(data), lambda choices: choices


serve(prepare)
