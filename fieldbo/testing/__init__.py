"""Contract suites for your own policies, worlds, vehicles and links, and a small mission to test them on.

Subclass a suite in a test file, say what to test, and let pytest collect it::

    from fieldbo.testing import PolicyContract

    class TestMyPolicy(PolicyContract):
        def policy(self):
            return MyPolicy(kappa=2.0)

The suites are plain classes that use only ``assert``. To test a single decision of a policy, make the state
that it sees with `state`.

Examples
--------
>>> from fieldbo.policies.baselines import Straddle
>>> from fieldbo.testing import PolicyContract, state
>>> class ContractOfStraddle(PolicyContract):
...     def policy(self):
...         return Straddle()
>>> ContractOfStraddle().test_the_same_seed_gives_the_same_path()
>>> Straddle().suggest(state(), None).choice.site.tolist()
[3.0, 4.0]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
