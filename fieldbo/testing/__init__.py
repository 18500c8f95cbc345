"""Contract suites: what every policy, world and vehicle has to keep to, as tests to inherit.

Subclass one in a test file, say what is to be tested, and let pytest collect it:

    from fieldbo.testing import PolicyContract

    class TestMyPolicy(PolicyContract):
        def policy(self):
            return MyPolicy(kappa=2.0)

The suites are plain classes and need nothing but the standard ``assert``. :func:`small_mission` is the
mission that they run, in a world small enough to think through.

Examples
--------
>>> from fieldbo.policies.baselines import Random
>>> class ContractOfRandom(PolicyContract):
...     def policy(self):
...         return Random()
>>> ContractOfRandom().test_the_same_seed_gives_the_same_path()
"""

from fieldbo.testing.policies import PolicyContract, UnknownCostContract
from fieldbo.testing.small import carried_out, drive, small_cell, small_chain, small_mission, small_world
from fieldbo.testing.vehicles import VehicleContract
from fieldbo.testing.worlds import WorldContract

__all__ = [
    "PolicyContract",
    "UnknownCostContract",
    "VehicleContract",
    "WorldContract",
    "carried_out",
    "drive",
    "small_cell",
    "small_chain",
    "small_mission",
    "small_world",
]
