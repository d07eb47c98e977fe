"""Rows of a linear and a logistic regression with three features, always the same, and their derivatives by row."""

import numpy as np

import halfwidth as hw
import twins

DIM = 3


def linear_rows(n):
    rows = np.random.default_rng(0).standard_normal((n, DIM + 1))
    rows[:, DIM] += rows[:, :DIM] @ [0.0, 0.5, 1.0]
    return rows


def logistic_rows(n):
    rows, uniform = linear_rows(n), np.random.default_rng(1).random(n)
    rows[:, DIM] = uniform < 1.0 / (1.0 + np.exp(-rows[:, :DIM] @ [0.0, 0.5, 1.0]))
    return rows


def gradient(theta, row):
    return twins.logistic_gradient(theta, row, 0.0)


def hessian(theta, row):
    p = 1.0 / (1.0 + np.exp(-row[:-1] @ theta))
    return p * (1.0 - p) * np.outer(row[:-1], row[:-1])


def one_pass_and_two(X, y, family):
    """What `fit` says about a regression on x and z after one pass and after two."""
    frame = X.assign(y=y)
    return (hw.fit(frame, formula="y ~ x + z", family=family, passes=passes).inference() for passes in (1, 2))
