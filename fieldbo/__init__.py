"""Plan and run sampling missions, by robot or by hand, on a limited battery.

>>> import fieldbo
>>> result = fieldbo.run("lake-level-set")
>>> result.f1 >= 0.9
True
"""

import lazy_loader

from fieldbo._version import __version__ as __version__

# Names in __init__.pyi are imported on first use, which keeps `import fieldbo` fast.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
