"""From the sums of given rows to a result: root, errors by the batch jackknife, notes and flags."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import Equation
from halfwidth.equation.errors import Errors, jackknife_errors, unseen
from halfwidth.equation.field_errors import field_errors
from halfwidth.equation.information_store import is_unequal, readable
from halfwidth.equation.prefix import prefix_trail
from halfwidth.equation.result import FEWEST
from halfwidth.equation.stability import stability
from halfwidth.equation.wide_errors import WIDE, WideErrors, wide_errors
from halfwidth.errors import NotIdentified
from halfwidth.inference import Diagnostics
from halfwidth.inference.batch_result import in_pairs
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto import given_status
from halfwidth.learners.auto.given import GivenRows
from halfwidth.learners.auto.hessian_check import hessian_doubt
from halfwidth.learners.auto.result import GivenResult


class Jackknifed(NamedTuple):
    """What the batch jackknife says of every coefficient; influences and information are those of the batches."""

    errors: Errors | WideErrors
    covariance: Vector
    df: Vector
    undetermined: NDArray[np.bool_]
    influences: Vector
    information: Vector

    @classmethod
    def of(cls, equation: Equation, residuals: Vector, information: Vector | None) -> Jackknifed:
        """By the jackknife that fits the number of coefficients; without an information, for a field without a loss."""
        every = np.eye(residuals.shape[1])
        if information is not None and len(every) > WIDE:
            wide = wide_errors(equation, residuals, information, np.zeros(len(every)), every)
            found = (wide.covariance(every), wide.df, wide.undetermined(every), wide.influences, wide.information)
            return cls(wide, *found)
        if information is None:
            errors = field_errors(equation, residuals)
        else:
            errors = jackknife_errors(equation, residuals, information)
        along = errors.along(every)
        deleted, df = along.deleted, along.degrees_of_freedom()
        return cls(errors, along.covariance(), df, along.undetermined, deleted.influences, deleted.information)


def _check_written(engine: GivenRows) -> None:
    """Refuse a smooth gradient that never changes with theta, as that of a function which returns it does not."""
    if not engine.rough and not engine.store.curvature().any():
        raise NotIdentified(
            f"the gradient did not change with theta on any of {engine.store.rows:,} rows. Check that it writes into "
            "its last argument, grad[:] = ..., that it uses theta, and that the columns it looks at are not all zero",
            "unidentified",
        )


def _outweighed(engine: GivenRows, equation: Equation, found: Jackknifed) -> NDArray[np.bool_]:
    """Which columns have a few huge values, so that one batch alone knows them, or none has any curvature at the root.

    Under a curved loss such a coefficient may stand anywhere, and the others are those that belong to it.
    """
    if engine.linear or engine.without_loss or isinstance(found.errors, WideErrors):
        return np.zeros(len(found.df), dtype=np.bool_)
    curvatures = np.diagonal(equation.A, axis1=1, axis2=2)
    lone = found.undetermined & ~unseen(found.errors.whitened, np.eye(len(found.df)))
    alone = lone & (np.count_nonzero(curvatures, axis=0) > 1)
    return np.asarray(alone | (found.undetermined & (curvatures.sum(axis=0) < 0.0)))


@np.errstate(over="ignore", invalid="ignore")  # the equation refuses what is not finite
def given_result(engine: GivenRows, name: str, curvature: str) -> GivenResult:
    """What renewable Newton says now, rows of the open chunk included."""
    engine = engine.whole()
    _check_written(engine)
    root = engine.root()
    n, dim = engine.store.rows, len(root.centre)
    equation = engine.at_root(root.centre)
    if not engine.store.single:
        equation = readable(equation, engine.store.length)
    information = engine.store.curvature() if dim > WIDE else equation.A.sum(axis=0)
    residuals = equation.centred_residuals(np.zeros(dim))
    found = Jackknifed.of(equation, residuals, None if engine.without_loss else 0.5 * (information + information.T))
    errors, hidden = found.errors, found.undetermined
    df = np.where(hidden, 0.0, found.df)
    refused = hidden | (df < FEWEST)
    covariance = n * found.covariance
    covariance[refused] = np.nan
    covariance[:, refused] = np.nan
    rows = equation.rows
    for _ in range(errors.merged.bit_length() - 1):
        rows = in_pairs(rows)
    steady = stability(found.influences, found.information, rows)
    told = given_status.Known(
        curvature=curvature,
        rows=n,
        batch_rows=engine.store.length * errors.merged,
        unequal=is_unequal(equation.rows, engine.store.length),
        batches=errors.batches,
        bandwidth=errors.bandwidth,
        df=df,
        hidden=hidden,
        unstable=steady.unstable(~refused),
        sizes=given_status.sizes(engine, root.centre, np.diag(information)),
        long_variances=steady.long_variances,
        root=root._replace(converged=root.converged and not _outweighed(engine, equation, found).any()),
        errors=np.sqrt(np.diag(covariance) / n),
        collapsed=given_status.collapsed(engine, root.centre, np.diag(engine.store.curvature())),
        noisy=given_status.noisy_batches(engine, root.centre, residuals, 0.5 * (information + information.T)),
        jumping=engine.sample.counting(engine.field, root.centre) if engine.rough else np.inf,
        conditioning=given_status.conditioning(information, hidden, engine),
    )
    params = np.where(hidden, engine.theta, root.centre)
    result = GivenResult(
        params,
        covariance,
        n,
        StudentLaw(float(np.median(df[~refused])) if not refused.all() else FEWEST),
        name,
        Diagnostics(
            float(np.min(df[~refused], initial=np.inf)),
            coefficient_flags=given_status.coefficient_flags(told),
            notes=given_status.notes(told),
        ),
        errors=errors,
        basis=np.eye(dim),
        df=df,
        settled=None
        if dim > WIDE or engine.without_loss
        else partial(prefix_trail, equation, root.centre, params, np.eye(dim)),
    )
    return result.with_facts(*given_status.flags(told), *hessian_doubt(engine, root.centre))
