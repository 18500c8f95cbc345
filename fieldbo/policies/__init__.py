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
        "random": "fieldbo.policies.coverage:Random",
        "lawnmower": "fieldbo.policies.coverage:Lawnmower",
    },
)

__all__ = ["POLICIES", "Decision", "Policy", "State"]
