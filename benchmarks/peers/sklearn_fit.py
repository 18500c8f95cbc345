"""scikit-learn's marginal likelihood fit; noise is learned, and there are no priors."""

from __future__ import annotations

import warnings

import numpy as np
from serving import Answer, Data, Work, serve
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

warnings.simplefilter("ignore")  # of parameters at their bounds


def prepare(data: Data, threads: int) -> tuple[Work, Answer]:
    """Return the work; its answer is the log likelihood."""
    threadpool_limits(1, "blas")  # it is several times slower with two at these sizes
    x, y = data["x"], data["y"]
    kernel = ConstantKernel(1.0, (1e-4, 1e4)) * Matern(np.full(x.shape[1], 0.3), (1e-3, 1e3), nu=2.5)
    restarts = int(data["restarts"])
    kernel = kernel + WhiteKernel(0.01, (1e-8, 1e2))
    model = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=restarts, random_state=0)
    return lambda: model.fit(x, y), lambda fitted: fitted.log_marginal_likelihood_value_


serve(prepare)
