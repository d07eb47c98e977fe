"""The batches of given rows as they are at the root, for its errors.

Rows are expanded at the root of the rows before them. The first ones are far from where the root ends: where the loss
is curved, their Hessian there is another one, and so is what is left of their gradients at the root. The sample of rows
(`row_sample`), which holds all of the first ones, moves every batch b to the root c,

    A_b += sum_i w_i (H_i(c) - H_i(l_i)),   r_b -= sum_i w_i (g_i(c) - g_i(l_i) - H_i(l_i) (c - l_i)),

over its rows i in the sample, each of which stands for w_i. A few thousand rows of a logistic regression with rare
events had a third of their standard errors without that.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation import Equation
from halfwidth.equation.wide_errors import WIDE
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.field import Field
from halfwidth.learners.auto.row_sample import RowSample


def at_root(equation: Equation, away: Vector, centre: Vector, sample: RowSample, field: Field) -> Equation:
    """The equation relative to the centre, `away` from its reference, with batches moved there.

    Matrices of wide rows stay what they are.
    """
    A, residuals = equation.A, equation.residuals(away)
    batch = sample.by_batch(equation.rows)
    np.subtract.at(residuals, batch, sample.left_out(field, centre))
    if len(centre) <= WIDE:
        A = A.copy()
        for batches, turn in sample.turned(field, centre, equation.A.sum(axis=0), batch):
            A[batches] += turn
    return Equation(A, residuals, equation.rows)
