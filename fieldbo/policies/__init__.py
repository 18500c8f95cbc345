"""What to sample next: one rule, or one family of rules, a file."""

from fieldbo.policies.base import Decision, Policy, State
from fieldbo.registry import Registry

POLICIES = Registry(
    "policy",
    "fieldbo.policies",
    {
        "truvar": "fieldbo.policies.truvar:TruVaR",
        "gchk": "fieldbo.policies.levelset:GCHK",
        "straddle": "fieldbo.policies.levelset:Straddle",
        "maximum-variance": "fieldbo.policies.levelset:MaximumVariance",
        "ei": "fieldbo.policies.optimum:EI",
        "gp-ucb": "fieldbo.policies.optimum:GPUCB",
        "max-value-entropy-search": "fieldbo.policies.optimum:MaxValueEntropySearch",
        "entropy-search": "fieldbo.policies.search:EntropySearch",
        "minimum-regret-search": "fieldbo.policies.search:MinimumRegretSearch",
        "dist-ucb": "fieldbo.policies.travel:DistUCB",
        "ducb": "fieldbo.policies.travel:DUCB",
        "ucb": "fieldbo.policies.travel:UCB",
        "ei-per-cost": "fieldbo.policies.travel:EIPerCost",
        "rollout": "fieldbo.policies.rollout:Rollout",
        "lambo": "fieldbo.policies.lambo:LaMBO",
        "lazy-ei-per-cost": "fieldbo.policies.modular:LazyEIPerCost",
        "ca-mobo": "fieldbo.policies.modular:CAMOBO",
        "carbo": "fieldbo.policies.modular:CArBO",
        "subsets": "fieldbo.policies.subsets:Subsets",
        "subset-front": "fieldbo.policies.subset_front:SubsetFront",
        "etc": "fieldbo.policies.subset_rivals:ETC",
        "ucb-psq": "fieldbo.policies.subset_rivals:UCBPSQ",
        "ts-psq": "fieldbo.policies.subset_rivals:TSPSQ",
        "ucb-cvs": "fieldbo.policies.subset_rivals:UCBCVS",
        "random": "fieldbo.policies.coverage:Random",
        "lawnmower": "fieldbo.policies.coverage:Lawnmower",
    },
)

__all__ = ["POLICIES", "Decision", "Policy", "State"]
