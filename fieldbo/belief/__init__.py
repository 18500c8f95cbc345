"""The Gaussian-process belief: kernels, posterior, hyperparameters, and the question it answers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
