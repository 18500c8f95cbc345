"""BoTorch's marginal likelihood fit; noise is learned, and there are no priors."""

from __future__ import annotations

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from serving import Answer, Data, Work, serve


def prepare(data: Data, threads: int) -> tuple[Work, Answer]:
    """Return the work; its answer is the log likelihood."""
    torch.set_num_threads(threads)
    x, y = torch.tensor(data["x"]), torch.tensor(data["y"])

    def work() -> ExactMarginalLogLikelihood:
        noise = GaussianLikelihood(noise_constraint=GreaterThan(1e-8)).double()
        noise.noise = 0.01
        kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=x.shape[1])).double()
        kernel.outputscale = 1.0
        kernel.base_kernel.lengthscale = 0.3
        model = SingleTaskGP(
            x,
            y[:, None],
            likelihood=noise,
            covar_module=kernel,
            mean_module=ZeroMean(),
            outcome_transform=None,
        )
        return fit_gpytorch_mll(ExactMarginalLogLikelihood(noise, model))

    def log_likelihood(fitted: ExactMarginalLogLikelihood) -> float:
        fitted.train()
        with torch.no_grad():
            return len(y) * fitted(fitted.model(x), y).item()  # it is divided by the number of readings

    return work, log_likelihood


serve(prepare)
