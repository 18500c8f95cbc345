"""scikit-learn's refit with one reading more; hyperparameters are known."""

from __future__ import annotations

from serving import Answer, Data, Work, serve
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from threadpoolctl import threadpool_limits


def prepare(data: Data, threads: int) -> tuple[Work, Answer]:
    """Return the work; its answer is the mean at the last site."""
    threadpool_limits(1, "blas")  # it is several times slower with two at these sizes
    x, y = data["x"], data["y"]
    kernel = ConstantKernel(float(data["variance"])) * Matern(data["length_scales"], nu=2.5)
    model = GaussianProcessRegressor(kernel, alpha=float(data["noise"]), optimizer=None)
    return lambda: model.fit(x, y), lambda fitted: fitted.predict(x[-1:])[0]


serve(prepare)
