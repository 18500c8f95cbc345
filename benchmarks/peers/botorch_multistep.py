"""One decision by BoTorch's `qMultiStepLookahead`: a tree of 8, 4 and 2 fantasies, optimised in one shot.

Every node of the tree is a site of its own in the unit square, 105 of them, and adds its distUCB;
L-BFGS-B moves all of them at once.
"""

from __future__ import annotations

import torch
from botorch import settings
from botorch.acquisition import AnalyticAcquisitionFunction
from botorch.acquisition.multi_step_lookahead import qMultiStepLookahead
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.utils import t_batch_mode_transform
from botorch_belief import belief
from gpytorch.settings import detach_test_caches
from serving import Answer, Data, Work, serve
from torch import Tensor

FANTASIES = [8, 4, 2]
RESTARTS, RAW_SAMPLES, ITERATIONS = 5, 64, 50


class DistUCB(AnalyticAcquisitionFunction):
    """`mean + kappa s / (1 + way / scale)`, the way from where the belief took its last reading."""

    def __init__(self, model: Model, posterior_transform: None, kappa: float, scale: float) -> None:
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.kappa, self.scale = kappa, scale

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """Return the values of a batch of sites (..., 1, d)."""
        found = self.model.posterior(X)
        position = self.model.train_inputs[0][..., -1, :]
        way = torch.linalg.vector_norm(X[..., 0, :] - position, dim=-1)
        return found.mean[..., 0, 0] + self.kappa * found.variance[..., 0, 0].sqrt() / (1 + way / self.scale)


def prepare(data: Data, threads: int) -> tuple[Work, Answer]:
    """Return the work; its answer is the best first step."""
    torch.set_num_threads(threads)
    model = belief(data)
    told = {"kappa": float(data["kappa"]), "scale": float(data["scale"])}
    stages = len(FANTASIES) + 1
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)

    def work() -> Tensor:
        tree = qMultiStepLookahead(
            model,
            batch_sizes=[1] * len(FANTASIES),
            num_fantasies=FANTASIES,
            valfunc_cls=[DistUCB] * stages,
            valfunc_argfacs=[lambda model, X: told] * stages,
        )
        # Without these two the gradients of the earlier steps leave terms out, and line searches fail.
        with settings.propagate_grads(True), detach_test_caches(False):
            site, _ = optimize_acqf(
                tree,
                bounds,
                q=tree.get_augmented_q_batch_size(1),
                num_restarts=RESTARTS,
                raw_samples=RAW_SAMPLES,
                options={"maxiter": ITERATIONS},
            )
        return site

    return work, lambda site: site.numpy()


serve(prepare)
