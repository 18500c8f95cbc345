"""Which public function answers each golden case: names and shapes are translated, nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import Stationary, kernel
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum, Question, ShareOfMaximum
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import Limit, Unit
from fieldbo.costs.cells import Modular, Module
from fieldbo.costs.travel import Euclidean, Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import TruncatedNormal, halton
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Level, Sensor
from fieldbo.messages import Observation, Query
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies import acquisition
from fieldbo.policies.chains import bandit as tree
from fieldbo.policies.chains import boxes as cells
from fieldbo.policies.chains import lambo
from fieldbo.policies.control_sets import rivals as subset_rivals
from fieldbo.policies.control_sets import subsets as subset_bounds
from fieldbo.policies.control_sets.expectation import Expected
from fieldbo.policies.level_set import truvar as sets
from fieldbo.policies.level_set.truvar import Reduction, TruVaR
from fieldbo.policies.travel.one_step import DistUCB, TravelScore
from fieldbo.policies.travel.rollout import Simulation, rollout_values
from fieldbo.results import metrics
from fieldbo.results.metrics import f1_score
from fieldbo.world.fields import function
from fieldbo.world.world import Quantity, World

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
    return prior.condition_on(X, np.zeros(len(X)) if y is None else _array(y), _array(inputs["noise"]))


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
    epoch = sets.advance_epoch(
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
    found = sets.update_sets(
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
    found = sets.update_sets(mu, s, h, beta, before, monotone=True)
    P = sets.potential_maximisers(mu, s, beta)
    named = {name: mask.tolist() for name, mask in found._asdict().items()}
    return {**named, "P": P.tolist(), "h_pes": h[0], "h_opt": h[1]}


def _truvar_batch(case: Case) -> Answer:
    i, belief = case["inputs"], _belief(case)
    d = len(belief.kernel.length_scales)
    candidates, members = _points(i["cand"], d), _points(i["M"], d)
    n, m = len(candidates), len(members)
    noise, cost = (np.broadcast_to(_array(i[k]), n) for k in ("cand_noise", "cand_cost"))
    cover = Reduction(
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
        vehicles=(VehicleSpec(1e9, sites[start]),),
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
        score=TravelScore(_BASES[i["acq"]], float(i["beta"]), i["convention"], float(i["d0"])),
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
        vehicles=(VehicleSpec(float(i["budget"]), X[-1]),),
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


# -- chains of modules -------------------------------------------------------------------------------------


def _mset_a(case: Case) -> Answer:
    given = case["inputs"]
    arms, depths, i = tree.arms_of(given["sizes"]), given["depths"], given["i"]
    heights = tree.heights(depths)
    family = [tree.families(arms, depths, h) for h in range(heights[0] + 1)]
    held = [np.flatnonzero(f == f[i]).tolist() for f in family]
    return {"arms": arms.tolist(), "heights": heights.tolist(), "A": held}


def _smb_conditional(case: Case) -> Answer:
    given = case["inputs"]
    family = tree.families(tree.arms_of(given["sizes"]), given["depths"], given["h"])
    return {"q": np.exp(tree.log_conditional(np.log(given["p"]), family, given["i"]))}


def _smb_update(case: Case) -> Answer:
    given = case["inputs"]
    arms, log_p, l0 = tree.arms_of(given["sizes"]), np.log(given["p"]), _array(given["l0"])
    told = tree.smoothed(log_p, l0, given["sigma"], arms, given["depths"], given["eta"])
    after = np.exp(tree.updated(log_p, told.total, given["eta"]))
    h = tree.first_down(given["sigma"])
    return {"h_t": h, "lbar": told.levels, "ltilde": told.total, "p_next": after}


def _smb_bandit_loss(case: Case) -> Answer:
    given = case["inputs"]
    return {"l0": tree.bandit_losses(np.log(given["p"]), given["i_t"], given["loss"])}


def _first_changed_module(case: Case) -> Answer:
    pairs = case["inputs"]["pairs"]
    return {"m": [int(cells.first_changed(np.array([arm]), before)[0]) for arm, before in pairs]}


def _block_update(case: Case) -> Answer:
    given = case["inputs"]
    boxes = [_array(own) for own in given["boxes"]]
    arm, position, points = np.array([given["arm"]]), _array(given["x_prev"]), _array(given["candidates"])
    low, high = np.zeros(len(position)), np.ones(len(position))
    m = cells.first_changed(arm, given["prev"])
    box = cells.boxes_of(arm, boxes, given["modules"], m, position, low, high)
    pinned, free = cells.pinned(low, high, given["modules"], int(m[0]), position)
    points = np.clip(points, pinned, free)
    x0, x1, x2 = points.T
    alpha = (x0 - 0.62) ** 2 + (x1 - 0.3) ** 2 + 0.5 * (x2 - 0.9) ** 2 - 0.1 * x0 * x1
    best = cells.best_in_box(points, alpha, box.low[0], box.high[0])
    assert best is not None
    return {"value": alpha[best], "x": points[best]}


def _movement_cost(case: Case) -> Answer:
    given = case["inputs"]
    modules = tuple(
        Module(f"m{k}", tuple(axes), c)
        for k, (axes, c) in enumerate(zip(given["modules"], given["c"], strict=True))
    )
    return {
        "cost": Modular(modules=modules, charge_last=given["include_last"]).to(given["x_prev"], given["xs"])
    }


def _movement_regret(case: Case) -> Answer:
    given = case["inputs"]
    return {"R": metrics.movement_regret(given["f"], given["fstar"], given["gamma"], given["lam"])}


def _depth_recipe(case: Case) -> Answer:
    given = case["inputs"]
    told = tree.depth_recipe(given["c"], given["lam"], given["T"], given["K"], given["variant"])
    return {"raw": told.raw, "ints": told.depths}


def _surviving_arms(case: Case) -> Answer:
    given = case["inputs"]
    below = np.zeros(len(given["p_history"][0]), dtype=int)
    for p in given["p_history"]:
        below = tree.steps_below(below, np.log(p), given["factor"])
    return {"keep": np.flatnonzero(tree.surviving(below, given["window"]))}


def _refine_arms(case: Case) -> Answer:
    given = case["inputs"]
    found = cells.refined(
        [_array(own) for own in given["boxes"]], np.array(given["arms"]), np.array(given["keep"])
    )
    return {"arms": found.arms, "boxes": [own.tolist() for own in found.regions]}


def _lcb_acquisition(case: Case) -> Answer:
    given = case["inputs"]
    beta = lambo.lcb_beta(given["D"], given["t"])
    return {"beta": beta, "alpha": lambo.lower_confidence_bound(given["mu"], given["sigma"], beta)}


# -- control sets ------------------------------------------------------------------------------------------


def _truncated_normal(case: Case) -> Answer:
    inputs = case["inputs"]
    laws = [TruncatedNormal(0.5, float(v)) for v in inputs["var"]]
    return {"scale": [law.scale for law in laws], "samples": laws[0].quantile(_array(inputs["U"])).tolist()}


def _halton(case: Case) -> Answer:
    return {"U": halton(case["inputs"]["n"], case["inputs"]["d"]).tolist()}


def _rastrigin(case: Case) -> Answer:
    return {"f": function.rastrigin(_array(case["inputs"]["x"])).tolist()}


def _griewank(case: Case) -> Answer:
    return {"f": function.griewank(_array(case["inputs"]["x"])).tolist()}


def _twelve_variables(case: Case) -> Answer:
    x = _array(case["inputs"]["x"])
    return {"hartmann12": function.hartmann12(x).tolist(), "ackley12": function.ackley12(x).tolist()}


def _expected_over_random(case: Case) -> Answer:
    i = case["inputs"]
    samples = _array(i["samples"])
    controls = np.isin(np.arange(samples.shape[1]), i["control"])
    points = np.full((len(i["xi"]), samples.shape[1]), np.nan)
    points[:, i["control"]] = _array(i["xi"])
    over = Expected(_belief(case), samples, controls)
    kappa = float(i["beta"])
    return {"Eu": over.bound(points, kappa).tolist(), "El": over.bound(points, -kappa).tolist()}


def _cvs_bounds_update(case: Case) -> Answer:
    i = case["inputs"]
    found = subset_bounds.update_bounds(i["lcb"], i["ucb"], i["lcb_now"], i["ucb_now"], i["alpha"])
    return {"lcb": found.lcb, "ucb": found.ucb.tolist(), "S1": found.plausible, "reset": found.reset}


def _cvs_cost_lcb(case: Case) -> Answer:
    i = case["inputs"]
    prices = subset_bounds.cost_bounds(i["cost_sums"], i["counts"], i["T"])
    among = subset_bounds.cheapest(prices.lower, i["S1"])
    return {
        "chat": prices.mean.tolist(),
        "beta": prices.width.tolist(),
        "clcb": prices.lower.tolist(),
        "S3": among,
        "i": subset_bounds.most_promising(i["Eu"], among),
    }


def _cvs_alpha(case: Case) -> Answer:
    i = case["inputs"]
    return {"alpha": subset_bounds.tolerance(i["k"], i["d"], i["alpha0"]).tolist()}


def _regrets(case: Case) -> Answer:
    i = case["inputs"]
    sets, first = metrics.good_enough(i["Cstar_best_by_set"], i["Cstar_costs"], i["Cstar_alpha"])
    return {
        "Rf": metrics.quality_regret(i["best"], i["values"], i["alpha"]),
        "Rc": metrics.cost_regret(i["played"], i["c_star"]),
        "simple": metrics.simple_regret(i["best"], i["values"], i["costs"], i["checkpoints"]).tolist(),
        "Cstar": [sets, first],
    }


def _etc_group(case: Case) -> Answer:
    i = case["inputs"]
    return {"g": [subset_rivals.group_at(t, i["plays"]) for t in i["t"]]}


BINDINGS: dict[str, Callable[[Case], Answer]] = {
    "ackley": _ackley,
    "block_update": _block_update,
    "branin": _branin,
    "cost": _cost,
    "cvs_alpha": _cvs_alpha,
    "cvs_bounds_update": _cvs_bounds_update,
    "cvs_cost_lcb/S3/select": _cvs_cost_lcb,
    "depth_recipe": _depth_recipe,
    "dist_ucb": _dist_ucb,
    "distucb_beta_theory": _distucb_beta_theory,
    "ducb": _ducb,
    "ei_per_unit_cost": _ei_per_unit_cost,
    "etc_group": _etc_group,
    "expected_improvement": _expected_improvement,
    "expected_over_random": _expected_over_random,
    "f1_score": _f1_score,
    "first_changed_module": _first_changed_module,
    "gchk_ambiguity": _gchk_ambiguity,
    "gp_posterior": _gp_posterior,
    "gp_posterior_cov": _gp_posterior_cov,
    "gp_ucb_beta": _gp_ucb_beta,
    "griewank": _griewank,
    "halton": _halton,
    "hartmann12/ackley12": _twelve_variables,
    "hartmann6": _hartmann6,
    "information_gain": _information_gain,
    "kernel": _kernel_matrix,
    "lcb_acquisition": _lcb_acquisition,
    "log_marginal_likelihood": _log_marginal_likelihood,
    "movement_cost": _movement_cost,
    "movement_regret": _movement_regret,
    "mset_A": _mset_a,
    "rastrigin": _rastrigin,
    "refine_arms": _refine_arms,
    "regrets": _regrets,
    "rollout_value": _rollout_value,
    "run_distucb_myopic": _run_distucb_myopic,
    "run_truvar": _run_truvar,
    "smb_bandit_loss": _smb_bandit_loss,
    "smb_conditional": _smb_conditional,
    "smb_losses/smb_update": _smb_update,
    "straddle": _straddle,
    "surviving_arms": _surviving_arms,
    "truncnorm": _truncated_normal,
    "truvar_acquisition": _truvar_acquisition,
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
