"""Multinomial logistic regression: K classes, log odds against the first of them, K - 1 equations.

    eta_c = x'theta_c,   eta_0 = 0,   p_c = exp(eta_c) / sum_k exp(eta_k),   loss = log sum_k exp(eta_k) - eta_y,
    slope_c = p_c - 1{y = c},   d2 loss / d eta_b d eta_c = p_b 1{b = c} - p_b p_c.

The predictors of a row are a vector: eta, slopes and weights have shape (n, K - 1), and `weight` gives the p_c, of
which the curvature is made. It is the covariance of the indicators of a class drawn from p, with a root of K columns:

    diag(p) - p p' = sum_k p_k (e_k - p)(e_k - p)',   e_0 = 0.

Targets are codes 0, ..., K - 1, with K of at least 3: for two classes this is `Logistic`.

D. McFadden, *Conditional logit analysis of qualitative choice behavior* (1974).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.families.base import Loss
from halfwidth.kernels.arrays import Vector

MOST_CLASSES = 100


class Multinomial(Loss):
    """The multinomial logistic loss of classes 0, ..., K - 1.

    Parameters
    ----------
    classes : int, default 3
        The number K of classes.
    """

    name = "multinomial"
    ratios = True
    smooth = True
    likelihood = True
    target = "be codes of classes: 0, 1, 2, ..."
    labels = "classes"
    separation = "largest"

    def __init__(self, classes: float = 3) -> None:
        if isinstance(classes, bool) or classes != int(classes) or not 3 <= classes <= MOST_CLASSES:
            raise InputError.of("classes", f"be from 3 to {MOST_CLASSES}", classes)
        super().__init__()
        self.classes = int(classes)
        self.equations = self.classes - 1

    def value(self, eta: Vector, y: Vector) -> Vector:
        from scipy.special import logsumexp

        return np.asarray(logsumexp(with_baseline(eta), axis=1) - _at(with_baseline(eta), y))

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return self.mean(eta) - indicators(y, self.classes)[:, 1:]

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return self.mean(eta)

    def bend(self, weight: Vector, along: Vector) -> Vector:
        return np.asarray(weight * along - weight * np.sum(weight * along, axis=1, keepdims=True))

    def mean_weight(self, eta: Vector, y: Vector) -> Vector:
        p = self.mean(eta)
        return p * (1.0 - p)

    def mean(self, eta: Vector) -> Vector:
        """Return the probabilities of the classes but the first."""
        return probabilities(eta)[:, 1:]

    def first(self, y: Vector, weight: Vector | None) -> Vector:
        """Return intercepts to start from."""
        shares = np.maximum(self.counts(y, weight), 1e-3 * len(y) / self.classes)
        return np.asarray(np.log(shares[1:] / shares[0]))

    def counts(self, y: Vector, weight: Vector | None) -> Vector:
        """Return the weight of every class."""
        return np.bincount(y.astype(np.intp), weights=weight, minlength=self.classes).astype(np.float64)

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(y) & (y >= 0.0) & (y == np.floor(y)))

    def options(self) -> dict[str, Any]:
        return {"classes": self.classes}


def with_baseline(eta: Vector) -> Vector:
    """Return the predictors of all classes, with zeros for the first.

    Parameters
    ----------
    eta : ndarray of shape (n, K - 1)
        The predictors of the others.

    Returns
    -------
    ndarray of shape (n, K)
        The predictors of all.
    """
    return np.column_stack([np.zeros(len(eta)), eta])


def probabilities(eta: Vector) -> Vector:
    """Return the probabilities of all classes.

    Parameters
    ----------
    eta : ndarray of shape (n, K - 1)
        The predictors.

    Returns
    -------
    ndarray of shape (n, K)
        Rows that add up to one.
    """
    from scipy.special import softmax

    return np.asarray(softmax(with_baseline(eta), axis=1))


def indicators(y: Vector, classes: int) -> Vector:
    """Return the indicators of classes.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Codes of classes.
    classes : int
        How many there are.

    Returns
    -------
    ndarray of shape (n, classes)
        One 1 in every row.
    """
    return np.asarray(y[:, None] == np.arange(classes)).astype(np.float64)


def _at(values: Vector, y: Vector) -> Vector:
    return np.asarray(values[np.arange(len(y)), y.astype(np.intp)])
