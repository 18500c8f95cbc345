"""Messages between an agent and its vehicles: orders one way, events the other.

Messages are frozen values. Records and links contain their plain form (:func:`to_plain`, :func:`from_plain`)
of strings, numbers and lists, with None for NaN.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
