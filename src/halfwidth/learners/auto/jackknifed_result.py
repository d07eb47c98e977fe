"""Errors of every coefficient by the batch jackknife, where the response is in proportion to the Hessian.

Up to the factor 1 - k the equation is then that of rows that do not respond (`halfwidth.equation.errors`): what one
batch knows about a coefficient is in its matrix, and a column that few batches have shown has few degrees of freedom.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import Equation, Sums
from halfwidth.equation.result import FEWEST, Jackknifed
from halfwidth.inference.student_law import StudentLaw
from halfwidth.learners.auto.feedback import Response
from halfwidth.learners.auto.result import AutoResult, GivenResult, with_slope


def jackknifed_result(
    equation: Equation, shown: NDArray[np.bool_], sums: Sums, plain: AutoResult, response: Response
) -> GivenResult:
    """The result `plain` of batch means, with errors by the jackknife for the coefficients that rows have shown."""
    found = Jackknifed.of(equation, equation.centred_residuals(equation.solve()[0]))
    dim = len(shown)
    df, covariance = np.zeros(dim), np.full((dim, dim), np.nan)
    df[shown] = with_slope(found.df, response.freedom)
    covariance[np.ix_(shown, shown)] = plain.n * found.covariance / (1.0 - response.taken(sums))
    refused = df < FEWEST
    covariance[refused] = np.nan
    covariance[:, refused] = np.nan
    usual = float(np.median(df[~refused])) if not refused.all() else FEWEST
    own = iter(found.diagnostics((), ()).coefficient_flags or ((),) * dim)
    flags = tuple(next(own) if seen else ("unidentified",) for seen in shown)
    return GivenResult(
        plain.params,
        covariance,
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
        slope_df=response.freedom,
        feedback=plain.feedback,
        truncations=plain.truncations,
        settled=plain._trail,
    )
