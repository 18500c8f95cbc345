"""The Gaussian process: one more reading, and a fit of hyperparameters."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from timing import Peer, Plan, Row, Timings, alternate, peer, timed

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.marginal_likelihood import LogNormalPrior, fit_kernel
from fieldbo.belief.posterior import Belief

NOISE = 0.01
LENGTH_SCALES = np.array([0.3, 0.3])
SAME = 0.01
"""Tolerance of log likelihoods; an irrelevant length scale may take any value."""


def started(
    stack: ExitStack, plan: Plan, scripts: dict[str, str], data: dict[str, object]
) -> dict[str, Peer]:
    """Return the warmed-up peers by name, or none if the plan has none."""
    wanted = scripts if plan.peers else {}
    return {name: stack.enter_context(peer(script, data, plan.threads)) for name, script in wanted.items()}


def append(n: int, name: str, plan: Plan) -> list[Row]:
    """Time adding a reading to a belief of n readings with known hyperparameters."""
    runs = plan.runs or (20 if n <= 2000 else 5)
    rng = np.random.default_rng(0)
    x = rng.random((n + 1 + runs, 2))
    y = np.sin(6 * x[:, 0]) * np.cos(4 * x[:, 1]) + np.sqrt(NOISE) * rng.standard_normal(len(x))
    reading = iter(range(n, len(x)))
    belief = Belief(Matern52(LENGTH_SCALES)).condition_on(x[:n], y[:n], np.full(n, NOISE))

    def extend() -> float:
        nonlocal belief
        k = next(reading)
        with one_blas_thread():
            seconds, (belief, _, _) = timed(lambda: belief.extended(x[k : k + 1], y[k], NOISE))
        return seconds

    extend()  # the first compiles
    data = {"x": x[: n + 1], "y": y[: n + 1], "noise": NOISE, "variance": 1.0, "length_scales": LENGTH_SCALES}
    with ExitStack() as stack:
        scripts = {"scikit-learn": "sklearn_append", "BoTorch": "botorch_append", "gpCAM": "gpcam_append"}
        peers = started(stack, plan, scripts, data)
        for other in peers.values():
            np.testing.assert_allclose(other.answer, belief.mean(x[n : n + 1])[0], rtol=1e-4, atol=1e-6)
        return alternate(runs, extend, {k: p.seconds for k, p in peers.items()}).rows(name, plan)


def fitted(n: int, name: str, plan: Plan) -> list[Row]:
    """Time a fit to n readings in 2, 6 and 12 dimensions without priors; the median over the three.

    Peers maximise the same likelihood: scikit-learn from 9 starts (for 1,000 readings from one), BoTorch
    from one.
    """
    runs = plan.runs or (3 if n <= 200 else 1)
    cases = [_fit(n, d, runs, plan) for d in (2, 6, 12)]
    names = cases[0][0].peers_s
    medians = Timings(
        [float(np.median(t.own_s)) for t, _ in cases],
        {k: [float(np.median(t.peers_s[k])) for t, _ in cases] for k in names},
    )
    notes = {
        k: "log likelihood above the peer's by " + ", ".join(f"{g[k]:.4f}" for _, g in cases) for k in names
    }
    return [replace(row, runs=runs) for row in medians.rows(name, plan, notes)]


def _fit(n: int, d: int, runs: int, plan: Plan) -> tuple[Timings, dict[str, float]]:
    """Return the timings of a fit in d dimensions, and the gain in log likelihood over each peer."""
    rng = np.random.default_rng(d)
    x = rng.random((n, d))
    scales = np.exp(rng.normal(np.log(0.3 * np.sqrt(d)), 0.5, d))
    K = Matern52(scales)(x, x) + NOISE * np.eye(n)
    y = np.linalg.cholesky(K) @ rng.standard_normal(n)
    y = (y - y.mean()) / y.std()
    prior = LogNormalPrior.standard(np.ones(d), with_noise=True)

    def own() -> tuple[float, float]:
        seconds, found = timed(
            lambda: fit_kernel(
                Matern52(np.ones(d)), x, y, None, prior, np.random.default_rng(0), penalised=False
            )
        )
        return seconds, found.log_likelihood

    _, reached = own()
    with ExitStack() as stack:
        scripts = {"scikit-learn": "sklearn_fit", "BoTorch": "botorch_fit"}
        peers = started(stack, plan, scripts, {"x": x, "y": y, "restarts": 8 if n <= 200 else 0})
        gains = {k: reached - float(p.answer) for k, p in peers.items()}
        for k, gain in gains.items():
            assert gain > -SAME, f"in {d} dimensions {k} finds a log likelihood higher by {-gain}"
        return alternate(runs, lambda: own()[0], {k: p.seconds for k, p in peers.items()}), gains
