"""Which public function answers each golden case: names and shapes are translated, nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fieldbo.agent import Agent
from fieldbo.costs import Euclidean, Transect, Unit
from fieldbo.domain import Axis, Domain
from fieldbo.exchange import Observation, Query
from fieldbo.fields import function
from fieldbo.gp import Belief
from fieldbo.kernels import Stationary, kernel
from fieldbo.ledger import Limit
from fieldbo.metrics import f1_score
from fieldbo.mission import Crew, Mission
from fieldbo.model import Model
from fieldbo.policies import acquisition, reduction, sets
from fieldbo.policies.bases import Base
from fieldbo.policies.rollout import Simulation, rollout_values
from fieldbo.policies.travel import DistUCB
from fieldbo.policies.truvar import TruVaR
from fieldbo.question import LevelSet, Optimum, Question, ShareOfMaximum
from fieldbo.sensors import Level, Sensor
from fieldbo.surface import Surface
from fieldbo.world import Quantity, World

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
    return {"beta": np.vectorize(sets.beta_at)(i["a"], i["nD"], i["t"]).tolist()}


def _truvar_epoch(case: Case) -> Answer:
    i = case["inputs"]
    epoch = sets.advanced_epoch(
        _array(i["sigma"]),
        _mask(i["M"]),
        sets.Epoch(int(i["i"]), float(i["beta"]), float(i["eta"])),
        int(i["t"]),
        a=float(i["a"]),
        n_candidates=int(i["nD"]),
        r=float(i["r"]),
        delta=float(i["delta_bar"]),
    )
    return epoch._asdict()


def _truvar_update_lse(case: Case) -> Answer:
    i = case["inputs"]
    found = sets.updated_sets(
        _array(i["mu"]),
        _array(i["sigma"]),
        float(i["h"]),
        float(i["beta"]),
        sets.Sets(_mask(i["M"]), _mask(i["H"]), _mask(i["L"])),
        monotone=bool(i["monotone"]),
    )
    return {name: mask.tolist() for name, mask in found._asdict().items()}


def _truvar_beta_theory(case: Case) -> Answer:
    i = case["inputs"]
    return {"beta": sets.beta_in_theory(int(i["nD"]), i["cum"], i["cmin"], i["delta"])}


def _truvar_update_bo(case: Case) -> Answer:
    i = case["inputs"]
    among = _mask(i["M"]) if i["monotone"] else None
    M = sets.potential_maximisers(_array(i["mu"]), _array(i["sigma"]), float(i["beta"]), among)
    return {"M": M.tolist()}


def _truvar_update_lse_implicit(case: Case) -> Answer:
    i = case["inputs"]
    mu, s, beta = _array(i["mu"]), _array(i["sigma"]), float(i["beta"])
    h = sets.threshold_bounds(mu, s, ShareOfMaximum(float(i["omega"])).level, beta)
    before = sets.Sets(_mask(i["M"]), _mask(i["H"]), _mask(i["L"]))
    found = sets.updated_sets(mu, s, h, beta, before, monotone=True)
    P = sets.potential_maximisers(mu, s, beta)
    named = {name: mask.tolist() for name, mask in found._asdict().items()}
    return {**named, "P": P.tolist(), "h_pes": h[0], "h_opt": h[1]}


def _truvar_batch(case: Case) -> Answer:
    i, belief = case["inputs"], _belief(case)
    d = len(belief.kernel.length_scales)
    candidates, members = _points(i["cand"], d), _points(i["M"], d)
    n, m = len(candidates), len(members)
    noise, cost = (np.broadcast_to(_array(i[k]), n) for k in ("cand_noise", "cand_cost"))
    cover = reduction.Reduction(
        members=np.arange(n + m) >= n,
        noise=np.append(noise, np.ones(m))[:, None],
        cost=np.append(cost, np.ones(m))[:, None],
        able=np.arange(n + m)[:, None] < n,
        beta=float(i["beta"]),
        eta=float(i["eta"]),
    )
    surface = Surface(belief, np.concatenate([candidates, members]))
    return {"chosen": [site for site, _, _ in cover.batch(surface, int(i["k"]))]}


def _mission(case: Case) -> Mission:
    """The mission of a whole run; what is read is told, so that the world needs no field."""
    i = case["inputs"]
    sites, start = _array(i["D"]), int(i["start"])
    costs = i.get("level_costs")
    levels = tuple(Level(v, 0.0 if costs is None else costs[k]) for k, v in enumerate(i["levels"]))
    question: Question = Optimum() if i["mode"] == "bo" else LevelSet(0.0)
    if i["mode"] == "lse":
        question = ShareOfMaximum(i["omega"]) if "omega" in i else LevelSet(i["h"])
    low, high = sites.min(axis=0), sites.max(axis=0)
    return Mission(
        name="golden",
        world=World(
            name="golden",
            title="",
            domain=Domain(tuple(Axis(n, "m", a, b) for n, a, b in zip("xy", low, high, strict=True)), sites),
            cost=Transect() if costs is None else Unit(sampling=0.0),
            cost_unit="s",
            sensor=Sensor(levels=levels),
            quantity=Quantity(),
        ),
        question=question,
        policy=TruVaR(a=i["a"], eta=i["eta1"], r=i["r"], monotone=i.get("monotone", True), answered_at=0),
        model=Model(
            kernel=i["kernel"]["kind"],
            learn=False,
            length_scales=tuple(i["kernel"]["ls"]),
            variance=i["kernel"]["var"],
            mean=0.0,
        ),
        crew=(Crew(1e9, sites[start]),),
        max_steps=int(i["T"]),
    )


def _run_truvar(case: Case) -> Answer:
    i, mission = case["inputs"], _mission(case)
    f, domain, question = _array(i["f"]), mission.world.domain, mission.question
    agent = Agent(mission)
    answer: dict[str, list[Any]] = {k: [] for k in ("idx", "level", "cost", "score", "epoch", "sizeM")}
    while isinstance(query := agent.ask(), Query):
        site, t = domain.nearest(query.site), agent.steps
        variance = mission.world.sensor.levels[query.level].variance
        draw = i["noise_draws"][t] if "noise_draws" in i else 0.0
        agent.tell(query.observed(f[site] + np.sqrt(variance) * draw, noise_variance=variance))
        mean = agent.surface.mean
        answer["idx"].append(site)
        answer["level"].append(query.level)
        answer["cost"].append(agent.spent)
        answer["epoch"].append(agent.memory["i"])
        answer["sizeM"].append(mission.policy.open_sites(agent.memory, domain.size))
        if isinstance(question, Optimum):
            answer["score"].append(f.max() - f[np.argmax(mean)])
        else:
            answer["score"].append(f1_score(mean >= agent.threshold, f >= question.level(f.max())))
    return answer


def _dist_ucb(case: Case) -> Answer:
    i = case["inputs"]
    acq = acquisition.dist_ucb(
        _array(i["mu"]),
        _array(i["sigma"]),
        _array(i["d"]),
        float(i["beta"]),
        float(i["d0"]),
        i["convention"],
    )
    return {"acq": acq.tolist()}


def _ducb(case: Case) -> Answer:
    i = case["inputs"]
    mu, s, d = _array(i["mu"]), _array(i["sigma"]), _array(i["d"])
    return {"acq": acquisition.ducb(mu, s, d, float(i["beta"]), float(i["rho"])).tolist()}


def _ei_per_unit_cost(case: Case) -> Answer:
    i = case["inputs"]
    mu, s, d = _array(i["mu"]), _array(i["sigma"]), _array(i["d"])
    acq = acquisition.expected_improvement_per_travel(mu, s, i["best"], d, i["d0"], i["convention"])
    return {"acq": acq.tolist()}


def _distucb_beta_theory(case: Case) -> Answer:
    i = case["inputs"]
    beta = acquisition.dist_ucb_beta(i["n"], i["d"], i["p"], i["delta"], i["a"], i["b"], i["r"], i["pi_n"])
    return {"beta": beta}


def _plane(sites: np.ndarray, *others: np.ndarray) -> Domain:
    """The sites, in a box that holds the others, too."""
    every = np.concatenate([sites, *others])
    axes = zip("xy", every.min(axis=0), every.max(axis=0), strict=True)
    return Domain(tuple(Axis(name, "m", low, high) for name, low, high in axes), sites)


_BASES = {"distucb": "dist-ucb", "ucb": "ucb", "ei": "ei", "eipu": "ei-per-cost"}


def _rollout_value(case: Case) -> Answer:
    i = case["inputs"]
    sites, position, draws = _array(i["cand"]), _array(i["loc"]), _array(i["Z"])
    cost = Euclidean().within(_plane(sites, position[None]))
    paths = Simulation(
        base=Base(_BASES[i["acq"]], float(i["beta"]), i["convention"], float(i["d0"])),
        cost=cost,
        limits=(Limit("battery", float(i["budget"]), cost.to, lambda ends: np.zeros(len(ends))),),
        steps=draws.shape[1] if i["tau"] is None else int(i["tau"]),
        draws=draws,
        may_stay=bool(i["allow_stay"]),
        fantasy_noise=bool(i["fantasy_noise"]),
    )
    surface, noise = Surface(_belief(case), sites), np.full(len(sites), float(i["noise"]))
    found = rollout_values(paths, surface, noise, position, max(i["y"]))
    return {"value": found.value.tolist(), "mean_cost": found.travel.tolist()}


def _run_distucb_myopic(case: Case) -> Answer:
    i = case["inputs"]
    sites, f, X, y = (_array(i[k]) for k in ("cand", "f", "X", "y"))
    domain, n, noise = _plane(sites, X), len(X), float(i["noise"])
    mission = Mission(
        name="golden",
        world=World(
            name="golden",
            title="",
            domain=domain,
            cost=Euclidean(),
            cost_unit="m",
            sensor=Sensor(levels=(Level(noise, 0.0),)),
            quantity=Quantity(),
        ),
        question=Optimum(),
        policy=DistUCB(kappa=i["beta"], convention=i["convention"], d0=i["d0"], stop="first_unaffordable"),
        model=Model(
            kernel=i["kernel"]["kind"],
            learn=False,
            length_scales=tuple(i["kernel"]["ls"]),
            variance=i["kernel"]["var"],
            mean=0.0,
        ),
        crew=(Crew(float(i["budget"]), X[-1]),),
        max_steps=int(i["max_steps"]) + 1,
    )
    agent, path = Agent(mission), []
    first = agent.ask()  # answered with all readings that there are
    agent.tell(Observation(first.id, X, y, np.full(n, noise), np.zeros(n), X[-1], cost=0.0))
    while isinstance(query := agent.ask(), Query):
        path.append(domain.nearest(query.site))
        agent.tell(query.observed(f[path[-1]], noise_variance=noise))
    read, values = np.concatenate([X, sites[path]]), np.append(y, f[path])
    best = int(np.argmax(values))
    return {"path": path, "spent": agent.spent, "best_x": read[best].tolist(), "best_y": values[best]}


def _branin(case: Case) -> Answer:
    return {"f": function.branin(_array(case["inputs"]["x"])).tolist()}


def _ackley(case: Case) -> Answer:
    return {"f": function.ackley(_array(case["inputs"]["x"])).tolist()}


def _hartmann6(case: Case) -> Answer:
    return {"f": function.hartmann6(_array(case["inputs"]["x"])).tolist()}


BINDINGS: dict[str, Callable[[Case], Answer]] = {
    "ackley": _ackley,
    "branin": _branin,
    "cost": _cost,
    "dist_ucb": _dist_ucb,
    "distucb_beta_theory": _distucb_beta_theory,
    "ducb": _ducb,
    "ei_per_unit_cost": _ei_per_unit_cost,
    "expected_improvement": _expected_improvement,
    "f1_score": _f1_score,
    "gchk_ambiguity": _gchk_ambiguity,
    "gp_posterior": _gp_posterior,
    "gp_posterior_cov": _gp_posterior_cov,
    "gp_ucb_beta": _gp_ucb_beta,
    "hartmann6": _hartmann6,
    "information_gain": _information_gain,
    "kernel": _kernel_matrix,
    "log_marginal_likelihood": _log_marginal_likelihood,
    "rollout_value": _rollout_value,
    "run_distucb_myopic": _run_distucb_myopic,
    "straddle": _straddle,
    "truvar_acquisition": _truvar_acquisition,
    "run_truvar": _run_truvar,
    "truvar_batch": _truvar_batch,
    "truvar_beta": _truvar_beta,
    "truvar_beta_theory": _truvar_beta_theory,
    "truvar_epoch": _truvar_epoch,
    "truvar_lookahead_var": _truvar_lookahead_var,
    "truvar_update_bo": _truvar_update_bo,
    "truvar_update_lse": _truvar_update_lse,
    "truvar_update_lse_implicit": _truvar_update_lse_implicit,
}
"""From a case's ``function`` to the function that answers the whole case."""
