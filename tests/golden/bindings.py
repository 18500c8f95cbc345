"""Which public function answers each golden case: names and shapes are translated, nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fieldbo.costs import Transect
from fieldbo.gp import Belief
from fieldbo.kernels import Stationary, kernel
from fieldbo.metrics import f1_score
from fieldbo.policies import acquisition, truvar

Case = dict[str, Any]
Answer = dict[str, Any]


def _array(values: Any) -> np.ndarray:
    """Numbers of any shape; the strings "inf", "-inf" and "nan" are numbers."""
    return np.array(values, dtype=float)


def _points(rows: Any, dimension: int) -> np.ndarray:
    """(n, d) points; None and an empty list are no points."""
    return _array(rows if rows is not None else []).reshape(-1, dimension)


def _mask(flags: Any) -> np.ndarray:
    return np.array(flags, dtype=bool)


def _kernel(case: Case) -> Stationary:
    given = case["inputs"]["kernel"]
    return kernel(given["kind"], _array(given["ls"]), float(given["var"]))


def _belief(case: Case) -> Belief:
    """The posterior of the case; without values the readings are 0, which (co)variances don't depend on."""
    inputs, prior = case["inputs"], Belief(_kernel(case))
    X = _points(inputs["X"], len(prior.kernel.length_scales))
    if not len(X):
        return prior
    y = inputs.get("y")
    return prior.given(X, np.zeros(len(X)) if y is None else _array(y), _array(inputs["noise"]))


def _kernel_matrix(case: Case) -> Answer:
    k = _kernel(case)
    d = len(k.length_scales)
    return {"K": k(_points(case["inputs"]["A"], d), _points(case["inputs"]["B"], d)).tolist()}


def _gp_posterior(case: Case) -> Answer:
    belief = _belief(case)
    at = _points(case["inputs"]["Xs"], len(belief.kernel.length_scales))
    return {"mean": belief.mean(at).tolist(), "var": belief.variance(at).tolist()}


def _gp_posterior_cov(case: Case) -> Answer:
    belief = _belief(case)
    d = len(belief.kernel.length_scales)
    a, b = _points(case["inputs"]["A"], d), _points(case["inputs"]["B"], d)
    return {"cov": belief.covariance(a, b).tolist()}


def _log_marginal_likelihood(case: Case) -> Answer:
    return {"lml": _belief(case).log_marginal_likelihood()}


def _information_gain(case: Case) -> Answer:
    return {"gain": _belief(case).information_gain()}


def _expected_improvement(case: Case) -> Answer:
    i = case["inputs"]
    ei = acquisition.expected_improvement(_array(i["mu"]), _array(i["sigma"]), float(i["best"]))
    return {"ei": ei.tolist()}


def _f1_score(case: Case) -> Answer:
    i = case["inputs"]
    pairs = zip(np.atleast_2d(_mask(i["pred"])), np.atleast_2d(_mask(i["true"])), strict=True)
    return {"f1": [f1_score(predicted, true) for predicted, true in pairs]}


def _cost(case: Case) -> Answer:
    i = case["inputs"]
    return {"cost": Transect().to(_array(i["xprev"]), _array(i["x"])).tolist()}


def _straddle(case: Case) -> Answer:
    i = case["inputs"]
    return {"score": acquisition.straddle(_array(i["mu"]), _array(i["sigma"]), float(i["h"])).tolist()}


def _gchk_ambiguity(case: Case) -> Answer:
    i = case["inputs"]
    lower, upper = (None if i.get(k) is None else _array(i[k]) for k in ("lo", "hi"))
    found = acquisition.ambiguity(
        _array(i["mu"]), _array(i["sigma"]), float(i["h"]), float(i["sqrt_beta"]), lower, upper
    )
    return {"ambiguity": found.score.tolist()}


def _gp_ucb_beta(case: Case) -> Answer:
    i = case["inputs"]
    return {"beta": np.vectorize(acquisition.gp_ucb_beta)(i["nD"], i["t"], i["delta"]).tolist()}


def _truvar_lookahead_var(case: Case) -> Answer:
    i, belief = case["inputs"], _belief(case)
    d = len(belief.kernel.length_scales)
    members, x = _points(i["Xbar"], d), _points(i["x"], d)
    found = acquisition.lookahead_variance(
        belief.variance(members),
        belief.covariance(x, members)[0],
        float(belief.variance(x)[0]),
        float(i["noise_x"]),
    )
    return {"var": found.tolist()}


def _truvar_acquisition(case: Case) -> Answer:
    i, belief = case["inputs"], _belief(case)
    d = len(belief.kernel.length_scales)
    candidates, members = _points(i["cand"], d), _points(i["M"], d)
    noise, cost = (np.broadcast_to(_array(i[k]), len(candidates)) for k in ("cand_noise", "cand_cost"))
    scores = acquisition.truncated_variance_reduction(
        belief.covariance(candidates, members),
        belief.variance(candidates),
        noise,
        belief.variance(members),
        cost,
        float(i["beta"]),
        float(i["eta"]),
    )
    return {"acq": scores.tolist()}


def _truvar_beta(case: Case) -> Answer:
    i = case["inputs"]
    return {"beta": np.vectorize(truvar.beta_at)(i["a"], i["nD"], i["t"]).tolist()}


def _truvar_epoch(case: Case) -> Answer:
    i = case["inputs"]
    epoch = truvar.advanced_epoch(
        _array(i["sigma"]),
        _mask(i["M"]),
        truvar.Epoch(int(i["i"]), float(i["beta"]), float(i["eta"])),
        int(i["t"]),
        a=float(i["a"]),
        n_candidates=int(i["nD"]),
        r=float(i["r"]),
        delta=float(i["delta_bar"]),
    )
    return epoch._asdict()


def _truvar_update_lse(case: Case) -> Answer:
    i = case["inputs"]
    sets = truvar.updated_sets(
        _array(i["mu"]),
        _array(i["sigma"]),
        float(i["h"]),
        float(i["beta"]),
        truvar.Sets(_mask(i["M"]), _mask(i["H"]), _mask(i["L"])),
        monotone=bool(i["monotone"]),
    )
    return {name: mask.tolist() for name, mask in sets._asdict().items()}


BINDINGS: dict[str, Callable[[Case], Answer]] = {
    "cost": _cost,
    "expected_improvement": _expected_improvement,
    "f1_score": _f1_score,
    "gchk_ambiguity": _gchk_ambiguity,
    "gp_posterior": _gp_posterior,
    "gp_posterior_cov": _gp_posterior_cov,
    "gp_ucb_beta": _gp_ucb_beta,
    "information_gain": _information_gain,
    "kernel": _kernel_matrix,
    "log_marginal_likelihood": _log_marginal_likelihood,
    "straddle": _straddle,
    "truvar_acquisition": _truvar_acquisition,
    "truvar_beta": _truvar_beta,
    "truvar_epoch": _truvar_epoch,
    "truvar_lookahead_var": _truvar_lookahead_var,
    "truvar_update_lse": _truvar_update_lse,
}
"""From a case's ``function`` to the function that answers the whole case."""
