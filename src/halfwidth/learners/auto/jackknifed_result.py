"""Errors of every coefficient by the batch jackknife, where the response is in proportion to the Hessian.

Up to the factor 1 - k the equation is then that of rows that do not respond (`halfwidth.equation.errors`): what one
batch knows about a coefficient is in its matrix, and a column that few batches have shown has few degrees of freedom.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import Equation, Sums
from halfwidth.equation.result import Jackknifed
from halfwidth.learners.auto.feedback import Response
from halfwidth.learners.auto.result import AutoResult, GivenResult


def jackknifed_result(
    equation: Equation, shown: NDArray[np.bool_], sums: Sums, plain: AutoResult, response: Response
) -> GivenResult:
    """The result `plain` of batch means, with errors by the jackknife for the coefficients that rows have shown."""
    found = Jackknifed.of(equation, equation.centred_residuals(equation.solve()[0]))
    dim = len(shown)
    df, covariance = np.zeros(dim), np.full((dim, dim), np.nan)
    df[shown] = np.where(found.df > 0.0, 1.0 / (1.0 / np.maximum(found.df, 1e-300) + 1.0 / response.freedom), 0.0)
    covariance[np.ix_(shown, shown)] = plain.n * found.covariance / (1.0 - response.taken(sums))
    own = iter(found.diagnostics((), ()).coefficient_flags or ((),) * dim)
    flags = tuple(next(own) if seen else ("unidentified",) for seen in shown)
    return GivenResult(
        plain.params,
        covariance,
        plain.n,
        found.law,
        plain.method,
        replace(
            plain.diagnostics,
            effective_blocks=float(np.median(df)),
            coefficient_flags=flags if any(flags) else (),
        ),
        errors=found.errors,
        basis=np.eye(dim)[:, shown],
        df=df,
        most_df=response.freedom,
        feedback=plain.feedback,
        truncations=plain.truncations,
        settled=plain._trail,
    )
