"""Targets of every regression family: what the tests of a new family extend.

`drawn` draws targets at given linear predictors; `FIXED` is one target per family at which derivatives are checked, or
None where only the mean of the curvature is the weight: they are checked at y = mean(eta), where the two agree.
"""

import numpy as np


def _with_normal_noise(rng, eta):
    return eta + rng.standard_normal(len(eta))


def _labels(rng, eta):
    return (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(float)


def _counts(rng, eta):
    return rng.poisson(np.exp(eta)).astype(float)


def _amounts(rng, eta):
    return rng.gamma(2.0, np.exp(eta) / 2.0)


def _overdispersed_counts(rng, eta):
    return rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, len(eta))).astype(float)


def _classes(rng, eta):
    utility = np.column_stack([np.zeros(len(eta)), eta, -eta]) + rng.gumbel(size=(len(eta), 3))
    return utility.argmax(axis=1).astype(float)


DRAWS = {
    "linear": _with_normal_noise,
    "logistic": _labels,
    "multinomial": _classes,
    "poisson": _counts,
    "gamma": _amounts,
    "negative-binomial": _overdispersed_counts,
    "quantile": _with_normal_noise,
    "huber": _with_normal_noise,
}
FIXED = {
    "linear": 0.3,
    "logistic": 1.0,
    "multinomial": 1.0,
    "poisson": 3.0,
    "gamma": 1.7,
    "negative-binomial": 3.0,
    "quantile": 0.31,
    "huber": 0.3,
}


def drawn(family, rng, eta):
    return DRAWS[family](rng, eta)
