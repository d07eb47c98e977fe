"""What speaks against a whole run: a name, and advice for each.

| status              | when                                                                                    |
|---------------------|-----------------------------------------------------------------------------------------|
| `needs-second-pass` | what the expansions left out could not be estimated well enough on the sample of rows    |
| `few-batches`       | the errors rest on fewer than 12 batches                                                 |
| `few-groups`        | fewer than 16 groups                                                                     |
| `long-dependence`   | rows stay correlated over a large part of the stream                                     |
| `exact-fit`         | residuals are rounding errors, and so are standard errors                                |
| `leverage`          | not linear: one row makes over 0.9 of a column's spread (`halfwidth.models.far_rows`)    |
| `tied-target`       | quantile: the target has no density there (`halfwidth.models.tied_targets`)              |
| `poisson-boundary`  | negative binomial: the estimate of alpha is 0, as counts are not overdispersed           |
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation.stability import LONG_BATCHES
from halfwidth.families.negative_binomial import NegativeBinomial
from halfwidth.families.quantile import Quantile
from halfwidth.inference.longrun import hidden_dependence, long_dependence
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.snapshot import NewtonSnapshot
from halfwidth.models.tied_targets import tied

Flag = tuple[str, str]

LARGE_SHARE = 0.5
"""One batch with this share of the information about a coefficient may have been expanded at a point of its own."""
MOST_CORRECTION = 0.25
"""Largest sampling error of the correction, in standard errors of the coefficient."""
NEEDS_SECOND_PASS = "needs-second-pass"
FEW_KERNEL_DF = 30.0
"""With fewer under dependence intervals cover 0.85 to 0.92: AR(0.7) regressors and errors, 50 to 200 rows."""
FEW_BATCHES = 12
FEW_GROUPS = 16
_ROUNDING = 1e-13
_NO_NOISE = 1e-10
"""An error this small against that of independent rows of one variance comes from rows without any noise."""


class FitWarning(UserWarning):
    """A fit that is doubtful, as a whole or in some coefficients; the message begins with the name of the doubt."""


def run_flags(fit: NewtonSnapshot, errors: Vector, *, separated: bool = False) -> tuple[Flag, ...]:
    """The flags of the run, given the standard errors on the user's scale (NaN where there is none).

    Where all rows were seen to be `separated`, a further pass would only go on along that direction.
    """
    again = _second_pass(fit, errors, fit.settled or separated)
    found = [again, _batches(fit), _dependence(fit, errors), _exact(fit, errors), _tied(fit), _boundary(fit)]
    return tuple(flag for flag in found if flag is not None)


def _second_pass(fit: NewtonSnapshot, errors: Vector, settled: bool) -> Flag | None:
    T = fit.basis
    left = np.sqrt(np.square(fit.correction @ T.T).sum(axis=0))
    known = np.isfinite(errors) & (errors > 0.0)
    worst = float((left[known] / errors[known]).max(initial=0.0))
    wild = not (fit.loss.quadratic or fit.anchored) and fit.errors.shares(T).max(initial=0.0) > LARGE_SHARE
    if settled and worst <= MOST_CORRECTION and not wild:
        return None
    size = f"{worst:.2g} standard errors" if settled and not wild else "an unknown amount"
    return (
        NEEDS_SECOND_PASS,
        f"rows were expanded too far from the estimate for one pass to put it right: coefficients may be off by {size}"
        ". Read the rows twice (passes=2, or --passes auto), or shuffle them",
    )


def _batches(fit: NewtonSnapshot) -> Flag | None:
    if fit.groups is not None:
        groups = fit.groups[0]
        if groups >= FEW_GROUPS:
            return None
        return (
            "few-groups",
            f"the standard errors rest on {groups} groups; with so few they are rough. Feed more groups",
        )
    if fit.errors.batches >= FEW_BATCHES or fit.n <= 4 * FEW_BATCHES:
        return None
    return (
        "few-batches",
        f"the standard errors rest on {fit.errors.batches} batches only, as the table is wide; feed more rows, or "
        "fewer columns",
    )


def _dependence(fit: NewtonSnapshot, errors: Vector) -> Flag | None:
    if fit.grouped:
        return None
    K, bandwidth = fit.errors.batches, fit.errors.bandwidth
    found = long_dependence(fit.n, K, bandwidth, min(FEW_KERNEL_DF, K / 2.5))
    if found is not None:
        return found
    steady = fit.held_still
    still = np.where(steady.unstable(np.isfinite(errors)), np.nan, errors)
    return hidden_dependence(steady.long_variances, still, LONG_BATCHES, K, bandwidth)


def _exact(fit: NewtonSnapshot, errors: Vector) -> Flag | None:
    if not fit.loss.free_spread:
        return None
    spread = fit.loss.scale if fit.loss.uses_scale else float(np.sqrt(max(fit.dispersion, 0.0)))
    size = float(np.abs(fit.centre).max(initial=0.0))
    known = np.isfinite(errors)
    naive = np.sqrt(fit.naive_variances[known])
    if spread > _ROUNDING * size and (errors[known] > _NO_NOISE * naive).all():
        return None
    return (
        "exact-fit",
        "the residuals, or those of the rows that tell about some coefficient, are rounding errors, and so are the "
        "standard errors: y is a function of the columns there",
    )


def _tied(fit: NewtonSnapshot) -> Flag | None:
    if not isinstance(fit.loss, Quantile) or fit.sample is None:
        return None
    if not tied(fit.sample.y, fit.sample.eta(fit.centre), fit.loss.quantile):
        return None
    return (
        "tied-target",
        "many rows have one and the same target at the fitted quantile, or none is near it: such a quantile jumps from "
        "value to value, and its errors mean nothing. Use family='logistic' for classes and 'poisson' for counts, or "
        "another quantile",
    )


def _boundary(fit: NewtonSnapshot) -> Flag | None:
    if not isinstance(fit.loss, NegativeBinomial) or not fit.loss.at_boundary:
        return None
    return (
        "poisson-boundary",
        "the counts are not overdispersed: the estimate of alpha is 0, where the negative binomial law is Poisson's. "
        "The coefficients are those of family='poisson', and their errors hold; use that family",
    )
