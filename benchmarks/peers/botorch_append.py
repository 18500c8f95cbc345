"""BoTorch's condition_on_observations with one reading more; hyperparameters are known."""

from __future__ import annotations

import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ZeroMean
from serving import Answer, Data, Work, serve

torch.set_grad_enabled(False)


def prepare(data: Data, threads: int) -> tuple[Work, Answer]:
    """Return the work; its answer is the mean at the last site."""
    torch.set_num_threads(threads)
    x, y = torch.tensor(data["x"]), torch.tensor(data["y"][:, None])
    noise = torch.full_like(y, float(data["noise"]))
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=x.shape[1])).double()
    kernel.outputscale = float(data["variance"])
    kernel.base_kernel.lengthscale = torch.tensor(data["length_scales"])
    model = SingleTaskGP(
        x[:-1], y[:-1], noise[:-1], covar_module=kernel, mean_module=ZeroMean(), outcome_transform=None
    )
    last = x[-1:], y[-1:]
    _ = model.posterior(x[-1:]).variance  # fills its caches, as a first prediction does
    return (
        lambda: model.condition_on_observations(*last, noise=noise[-1:]),
        lambda extended: extended.posterior(x[-1:]).mean.item(),
    )


serve(prepare)
