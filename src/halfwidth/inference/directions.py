"""Directions v of a statement about v'theta: their shape, and the variances v' Sigma v."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_real
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.kernels.arrays import Vector


def check_directions(direction: ArrayLike, dim: int) -> Vector:
    """Return one direction (dim,) or several (m, dim) as an array of finite numbers."""
    v = check_real("direction", direction)
    if v.ndim not in (1, 2) or v.shape[-1] != dim or not np.isfinite(v).all():
        raise InputError.of("direction", f"be finite, of shape ({dim},) or (m, {dim})", direction)
    return v


def check_variances(variances: Vector, scale: Vector) -> Vector:
    """Refuse the negative variances that an estimator with a bias correction may give; rounding counts as zero."""
    if (variances < -1e-12 * scale).any():
        raise NotEnoughData(
            f"the variance of a direction came out negative ({variances.min():.3g}): too few blocks for the method's "
            "bias correction. Feed more rows, or use a method without one, like FixedBatchMeans"
        )
    return np.maximum(variances, 0.0)


def direction_variances(covariance: Vector, directions: Vector) -> Vector:
    """Return v' Sigma v for each row of `directions`; `covariance` is Sigma (d, d) or its diagonal (d,)."""
    if covariance.ndim == 2:
        variances = np.asarray(np.einsum("md,de,me->m", directions, covariance, directions))
        return check_variances(variances, directions**2 @ np.abs(np.diag(covariance)))
    if (np.count_nonzero(directions, axis=1) > 1).any():
        raise InputError(
            "direction must pick a single coordinate under view='diagonal', which knows variances only; "
            "watch with view='full', or with view='projection' and this direction"
        )
    return np.asarray(directions**2 @ covariance)


def common_value(values: Vector) -> float | Vector:
    """Return one number where all are the same."""
    first = float(values.flat[0])
    return first if values.size == 0 or bool(np.all(values == first)) else values
