"""The world that a mission samples: domain, field, cost model, sensor and disturbances."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
