"""The result where chunks are unlike each other: errors of every coefficient by the batch jackknife.

Up to the factor 1 - k the equation is that of rows that do not respond (`halfwidth.equation.errors`): what one batch
knows about a coefficient is in its matrix, and a column that few batches have shown has few degrees of freedom. The
error of k, which the dither has measured, adds var k times the square of dc / dk, where (sum A) dc / dk = sum H c - sum
(U + 2 k R): it is small where theta was deployed near the root. That is in proportion to 1 / (1 - k), so that a k which
came out too low makes it too small: its square is multiplied by that of (1 - k) / (1 - k - 2 s), s the error of k.

Where dc / dk is more than `FAR` times the error that is left when k is known, theta was deployed so far from the root
that a response of another kind, which the dither need not show, would matter: such a coefficient is `not-settled`. As
(1 - k) dc / dk is the distance of the deployed thetas from the estimate, that is two of its errors more: otherwise the
doubt would choose runs by how far their estimates are off. One
that seems to respond by more than k (`proportional`) is `feedback-undecided`: its error may be far too small. Standard
errors are in proportion to 1 / (1 - k): the relative variance v = var k / (1 - k)^2 leaves 1 / (2 v) degrees of
freedom, and makes their squares 1 + 3 v times as large on average; what is left of a coefficient's own degrees of
freedom says whether it is `rare`. Batch means stay where there is no loss, or too many columns.

Where the loss is curved, batches that were expanded far from the root count for little (`expanded`). Where it
saturates, k may have been measured low by b (`Proportion.low`): errors are those of k + b, and b^2 is added to var k.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import Equation, Sums
from halfwidth.equation.errors import Errors
from halfwidth.equation.field_errors import is_field
from halfwidth.equation.result import FEWEST, Jackknifed
from halfwidth.equation.wide_errors import WIDE
from halfwidth.errors import NotEnoughData
from halfwidth.inference.longrun import long_dependence
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto import given_status
from halfwidth.learners.auto.excitation import Profile
from halfwidth.learners.auto.feedback import Response
from halfwidth.learners.auto.result import AutoResult, GivenResult

FAR, _OWN_ERRORS = 10.0, 2.0


def shown_only(equation: Equation) -> tuple[Equation, NDArray[np.bool_]]:
    """The equation of the coordinates that some row has shown, and which they are."""
    shown = np.any(np.diagonal(equation.A, axis1=1, axis2=2) != 0.0, axis=0)
    if shown.all():
        return equation, shown
    if not shown.any():
        raise NotEnoughData("no row has shown any coefficient yet: every gradient is flat. Feed more rows")
    return Equation(equation.A[:, shown][:, :, shown], equation.B[:, shown], equation.rows), shown


def careful_result(
    equation: Equation,
    sums: Sums,
    profile: Profile | None,
    plain: AutoResult,
    response: Response,
    more: NDArray[np.bool_] | None = None,
    *,
    saturating: bool = False,
) -> AutoResult | GivenResult:
    """The result of batch means, `plain`, with the error of k, and by the jackknife where there is a loss.

    `more` says which coefficients seem to respond by more than k, `saturating` whether curvature is lost a dither away.
    """
    inside, shown = shown_only(equation)
    centre = inside.solve()[0]
    extra, slopes, freedom = np.zeros((len(shown), len(shown))), np.zeros(len(shown)), math.inf
    if response.share != 0.0 and response.proportion is not None:
        weights = np.ones(len(sums.n)) if profile is None else profile.weights
        H = np.tensordot(weights, sums.H, 1)[np.ix_(shown, shown)]
        U = (weights @ (sums.U + 2.0 * response.share * sums.R))[shown]
        slopes[shown] = np.linalg.solve(inside.A.sum(axis=0), H @ centre - U)
        low = response.proportion.low if saturating else 0.0
        error2 = response.proportion.steepening**2 * response.proportion.variance + low * low
        extra = plain.n * error2 * np.outer(slopes, slopes)
        freedom = response.freedom
    if len(centre) > WIDE or is_field(inside.A):
        result: AutoResult | GivenResult = replace(plain, covariance=_scale(freedom) * plain.covariance + extra)
    else:
        symmetric = Equation(0.5 * (inside.A + np.swapaxes(inside.A, 1, 2)), inside.B, inside.rows)
        found = Jackknifed.of(symmetric, symmetric.centred_residuals(symmetric.solve()[0]))
        result = _jackknifed(found, shown, extra, plain, freedom)
    result = with_doubt(_with_far(result, slopes, extra, response.share), "feedback-undecided", more)
    if saturating and response.proportion is not None:
        result = replace(result, covariance=response.proportion.shortfall**2 * result.covariance)
    return result


def of_kernel(found: AutoResult | GivenResult, batch_rows: int) -> tuple[str, tuple[given_status.Flag, ...]]:
    """The jackknife's kernel over batches of so many rows, in words, and the doubt about it if there is one."""
    if not isinstance(found, GivenResult) or not isinstance(found.errors, Errors):
        return "", ()
    batches, bandwidth = found.errors.batches, found.errors.bandwidth
    doubt = long_dependence(found.n, batches, bandwidth, given_status.few_degrees(batches))
    note = given_status.kernel_note(batches, batch_rows * found.errors.merged, bandwidth)
    return note, () if doubt is None else (doubt,)


def _with_far(
    result: AutoResult | GivenResult, slopes: Vector, extra: Vector, share: float
) -> AutoResult | GivenResult:
    """The result, with a doubt for the coefficients that rest on the response being in proportion."""
    most = FAR + _OWN_ERRORS / (1.0 - share)
    with np.errstate(invalid="ignore"):
        far = np.abs(slopes) > most * np.sqrt(np.diag(result.covariance - extra) / result.n)
    return with_doubt(result, "not-settled", far)


def with_doubt(
    result: AutoResult | GivenResult, name: str, doubted: NDArray[np.bool_] | None
) -> AutoResult | GivenResult:
    """The result, with this flag for these coefficients."""
    if doubted is None or not doubted.any():
        return result
    own: tuple[tuple[str, ...], ...] = result.diagnostics.coefficient_flags or ((),) * len(doubted)
    flags = tuple(
        (*flag, name) if doubt and name not in flag else flag for flag, doubt in zip(own, doubted, strict=True)
    )
    return replace(result, diagnostics=replace(result.diagnostics, coefficient_flags=flags))


def _scale(freedom: float) -> float:
    """What 1 / (1 - k)^2 is on average, over its value at the k that was measured."""
    return 1.0 + 1.5 / freedom


def _jackknifed(
    found: Jackknifed, shown: NDArray[np.bool_], extra: Vector, plain: AutoResult, freedom: float
) -> GivenResult:
    dim = len(shown)
    df, covariance = np.zeros(dim), np.full((dim, dim), np.nan)
    df[shown] = np.where(found.df < FEWEST, found.df, np.maximum(found.df / (1.0 + found.df / freedom), FEWEST))
    covariance[np.ix_(shown, shown)] = _scale(freedom) * plain.n * found.covariance
    refused = df < FEWEST
    covariance[refused] = np.nan
    covariance[:, refused] = np.nan
    usual = float(np.median(df[~refused])) if not refused.all() else FEWEST
    own = iter(found.flags_of(df[shown]))
    flags = tuple(next(own) if seen else ("unidentified",) for seen in shown)
    return GivenResult(
        plain.params,
        covariance + extra,
        plain.n,
        StudentLaw(usual),
        plain.method,
        replace(
            plain.diagnostics,
            effective_blocks=usual,
            coefficient_flags=flags if any(flags) else (),
        ),
        errors=found.errors,
        basis=np.eye(dim)[:, shown],
        df=df,
        most_df=max(freedom, FEWEST),
        feedback=plain.feedback,
        truncations=plain.truncations,
        settled=plain._trail,
    )
