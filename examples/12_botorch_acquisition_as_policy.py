"""
A BoTorch acquisition as a policy
=================================

Use an acquisition function of BoTorch as a fieldbo policy.

fieldbo keeps the belief, the battery and the record; BoTorch scores the sites. Install BoTorch beside fieldbo
first: ``pip install botorch``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ZeroMean

import fieldbo
from fieldbo.belief import Belief, Matern52, Optimum
from fieldbo.errors import InputError
from fieldbo.policies import Decision, Memory, Policy, State, best_affordable
from fieldbo.validation import settings


@settings("policy")
class BoTorchLogEI(Policy):
    """Sample where BoTorch's log expected improvement is largest among the affordable sites."""

    answers: ClassVar[tuple[type, ...]] = (Optimum,)

    level: int = 0
    """Sensor level to read with."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest log expected improvement."""
        best = float(state.belief.mean_at_sites().max())  # the mean there, as readings are noisy
        acquisition = LogExpectedImprovement(botorch_model(state.belief), best_f=best)
        with torch.no_grad():
            scores = acquisition(torch.tensor(state.domain.sites)[:, None]).numpy()  # (N, q = 1, d)
        return best_affordable(state, scores, memory, self.level)


def botorch_model(belief: Belief) -> SingleTaskGP:
    """Return BoTorch's model of the same readings, with fieldbo's hyperparameters and in its units."""
    kernel = belief.kernel
    if not isinstance(kernel, Matern52) or belief.prior_mean is not None:
        raise InputError("the model is another one", expected="a Matern-5/2 kernel, and no prior mean")
    covariance = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=len(kernel.length_scales))).double()
    # GPyTorch passes Python's own numbers through single precision, and tensors as they are.
    covariance.outputscale = torch.tensor(kernel.variance, dtype=torch.double)
    covariance.base_kernel.lengthscale = torch.tensor(kernel.length_scales)
    covariance.requires_grad_(False)
    return SingleTaskGP(
        torch.tensor(belief.sites),
        torch.tensor(belief.values)[:, None],
        torch.tensor(belief.noise_variances)[:, None],
        covar_module=covariance,
        mean_module=ZeroMean(),
        outcome_transform=None,
    )


if __name__ == "__main__":
    mission = fieldbo.load_mission("gp-lake-optimum", {"agent": {"battery": 1500}})
    for policy in (mission.policy, BoTorchLogEI()):
        result = fieldbo.run(replace(mission, policy=policy))
        print(f"{policy}: regret {result.summary()['regret']:.3f} for {result.cost:.0f} s")
