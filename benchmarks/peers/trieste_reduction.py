"""Trieste's integrated variance reduction of every site, over all sites."""

from __future__ import annotations

import gpflow
import tensorflow as tf
from serving import Answer, Data, Work, serve
from trieste.acquisition.function.active_learning import integrated_variance_reduction
from trieste.data import Dataset
from trieste.models.gpflow import GaussianProcessRegression


def prepare(data: Data, threads: int) -> tuple[Work, Answer]:
    """TensorFlow takes its number of threads from the environment, when it is imported."""
    kernel = gpflow.kernels.Matern52(variance=float(data["variance"]), lengthscales=data["length_scales"])
    readings = Dataset(tf.constant(data["x"]), tf.constant(data["y"][:, None]))
    gpr = gpflow.models.GPR(readings.astuple(), kernel, noise_variance=float(data["noise"]))
    model = GaussianProcessRegression(gpr)
    model.update_posterior_cache()
    sites = tf.constant(data["sites"])
    reduction = integrated_variance_reduction(model, sites)
    _, before = model.predict(sites)
    total = tf.reduce_sum(before).numpy()
    # It returns minus the mean variance that is left: the sum of what is taken away follows.
    return lambda: reduction(sites[:, None, :]).numpy()[:, 0], lambda left: total + len(left) * left


serve(prepare)
