"""The value of each first step of a distUCB rollout, by BoTorch's `fantasize`.

Exact, and batched over fantasies and candidates: 32 posteriors for each first step, each at all candidates;
the best one of each is fantasised in turn.
"""

from __future__ import annotations

import torch
from botorch.models import SingleTaskGP
from botorch.sampling.normal import IIDNormalSampler
from botorch_belief import belief
from serving import Answer, Data, Work, serve
from torch import Size, Tensor

torch.set_grad_enabled(False)

JOINTLY = 25
"""Candidates of one joint posterior: fastest so; one by one they take twice the time, all at once their
covariances fill the memory."""


def prepare(data: Data, threads: int) -> tuple[Work, Answer]:
    """Return the work; its answer is the values of the first steps."""
    torch.set_num_threads(threads)
    model, sites, draws = belief(data), torch.tensor(data["sites"]), torch.tensor(data["draws"])
    kappa, scale = float(data["kappa"]), float(data["scale"])
    pieces = sites.unflatten(0, (-1, JOINTLY))

    def score(mean: Tensor, variance: Tensor, way: Tensor) -> Tensor:
        return mean + kappa * variance.sqrt() / (1 + way / scale)

    def everywhere(now: SingleTaskGP, position: Tensor) -> Tensor:
        """Return the scores (..., N) of all sites, for a batch of beliefs and their positions (..., 1, d)."""
        batch = now.batch_shape
        every = pieces.reshape(len(pieces), *(1 for _ in batch), *pieces.shape[1:])
        found = now.posterior(every.expand(-1, *batch, -1, -1))
        mean, variance = (part[..., 0].movedim(0, -2).flatten(-2) for part in (found.mean, found.variance))
        return score(mean, variance, torch.linalg.vector_norm(sites - position, dim=-1))

    def value(site: Tensor) -> Tensor:
        """Return the value of one first step (d,)."""
        at = site[None]
        first = model.posterior(at)
        start = torch.linalg.vector_norm(site - torch.tensor(data["position"]))
        total = score(first.mean.squeeze(), first.variance.squeeze(), start)
        now = model
        for drawn in draws.T:
            now = now.fantasize(at, given(drawn, now.batch_shape))
            best, row = everywhere(now, at).max(dim=-1)
            total = total + best.mean()
            at = sites[row].unsqueeze(-2)
        return total

    firsts = sites[torch.tensor(data["firsts"])]
    return lambda: torch.stack([value(site) for site in firsts]), lambda values: values.numpy()


def given(drawn: Tensor, batch: Size) -> IIDNormalSampler:
    """Return a sampler of these draws (M,): all of them for one belief, or one for each of a batch of M."""
    several = 1 if batch else len(drawn)
    sampler = IIDNormalSampler(Size([several]))
    sampler.batch_range_override = (0, 0)  # the beliefs of a batch do not share a draw
    sampler.base_samples = drawn.reshape(several, *batch, 1)
    return sampler


serve(prepare)
