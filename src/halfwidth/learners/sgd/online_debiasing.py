"""Online debiasing: least squares on adaptively collected rows, corrected so that it is normal again.

Where the design follows the estimate, least squares can be biased and far from normal. With x_k the features, X and y
all rows and predictable weights w_k,

    theta_d = theta_LS + W (y - X theta_LS),   w_k = (I - W_{k-1} X_{k-1}) Gamma^-1 x_k / (1 + x_k' Gamma^-1 x_k),

theta_d - theta* = (I - W X)(theta_LS - theta*) + W noise. Each row takes the factor (I - Gamma^-1 x x' / (1 + x'
Gamma^-1 x)) off I - W X, so that after information G in a direction exp(-G / Gamma) is left of the bias, and then W W'
is near Gamma^-1 / 2 whatever the design did: W noise is a martingale with covariance s^2 W W', and normal.

Y. Deshpande, L. Mackey, V. Syrgkanis and M. Taddy (ICML 2018) have this recursion with Gamma = lambda I. K. Khamaru, Y.
Deshpande, T. Lattimore, L. Mackey and M. Wainwright (2021) rescale the features, so that directions with more
information get sharper intervals; their scalings may follow the design as rows come. Here there is one, fixed after
the pilot rows: Gamma = H n / log n, with n the planned number of rows and H the mean x x' over the pilot rows. If the
design goes on as in the pilot the bias falls to about 1 / n of what it was, and the interval is sqrt(log(n) / 2) times
as wide as that of least squares. If a direction is explored less afterwards, more of its bias is left, which is
measured: max |I - W X| above 5% is the doubt `bias-left`.
"""

from __future__ import annotations

import math
from typing import ClassVar, Unpack

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.inference import Diagnostics, NormalLaw, Result
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import capped_step
from halfwidth.learners.base import LearnerOptions
from halfwidth.learners.own_result import OwnResult
from halfwidth.problems import Problem
from halfwidth.state.fields import Array, Fields, Whole

_MOST_LEFT = 0.05


def debias(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop of capped SGD that adds up what least squares and its correction need.

    `sums` holds X'X, W X, W W' and, as rows, X'y, W y and (y'y, number of rows); `inverse` is Gamma^-1, zero before.
    """

    def debiased_steps(
        rng: np.random.Generator | None, data: RowData, path: Path, grad: Vector, inverse: Vector, sums: Vector
    ) -> None:
        theta = path.theta
        dim = theta.shape[0]
        z, w = np.empty(dim), np.empty(dim)
        for i in range(data.rows.shape[0]):
            row = data.rows[i]
            sample(rng, theta, data.state, data.params, row)
            gradient(theta, row, data.params, grad)
            step = capped_step(path.steps[i], curvature(theta, row, data.params))
            y, scale = row[dim], 1.0
            for a in range(dim):
                z[a] = 0.0
                for b in range(dim):
                    z[a] += inverse[a, b] * row[b]
                scale += z[a] * row[a]
            for a in range(dim):
                w[a] = z[a] / scale
                for b in range(dim):
                    w[a] -= sums[1, a, b] * z[b] / scale
            for a in range(dim):
                for b in range(dim):
                    sums[0, a, b] += row[a] * row[b]
                    sums[1, a, b] += w[a] * row[b]
                    sums[2, a, b] += w[a] * w[b]
                sums[3, 0, a] += row[a] * y
                sums[4, 0, a] += w[a] * y
            sums[5, 0, 0] += y * y
            for j in range(dim):
                theta[j] -= step * grad[j]
                path.thetas[i, j] = theta[j]

    return debiased_steps


class OnlineDebiasing(OwnResult):
    """Least squares on adaptively collected rows with online debiasing; linear regression only.

    Parameters
    ----------
    problem : Problem
        A linear regression: rows (x, y), gradient (x'theta - y) x, and a curvature bound. The gradient is tried
        on two rows, and a problem with another one is refused.
    planned_rows : int, default 50_000
        The number of rows that will be seen; the weights depend on it. With fewer the bias is not gone, with many more
        the interval is wider than it need be.
    pilot_rows : int, default 1_000
        The first rows, which have no weights and show the scale of the features.

    Notes
    -----
    Errors must be martingale differences of constant variance; then the interval is right whatever rule chose the rows,
    as long as every direction is explored.

    References
    ----------
    K. Khamaru, Y. Deshpande, T. Lattimore, L. Mackey and M. Wainwright, *Near-optimal inference in adaptive linear
    regression* (2021); Y. Deshpande, L. Mackey, V. Syrgkanis and M. Taddy, ICML (2018).

    Examples
    --------
    >>> import halfwidth as hw
    >>> world = hw.problem("adaptive-linear", dim=2)
    >>> learner = hw.learners.OnlineDebiasing(world, planned_rows=20_000, seed=1).run(20_000)
    >>> learner.result().interval().covers(world.theta_star).tolist()
    [True, True]
    """

    name = "online-debiasing"
    settings: ClassVar[Fields] = {
        "planned_rows": Whole(2, doc="rows that will be seen"),
        "pilot_rows": Whole(1, doc="rows without weights"),
    }
    kept: ClassVar[Fields] = {
        "inverse": Array(("d", "d"), doc="Gamma^-1; 0 before it is known"),
        "sums": Array((6, "d", "d"), doc="X'X, W X, W W'; in their first rows X'y, W y, and y'y"),
    }

    def __init__(
        self,
        problem: Problem,
        *,
        planned_rows: int = 50_000,
        pilot_rows: int = 1_000,
        **options: Unpack[LearnerOptions],
    ) -> None:
        self.pilot_rows = check_count("pilot_rows", pilot_rows)
        self.planned_rows = check_count("planned_rows", planned_rows, at_least=pilot_rows + 1)
        super().__init__(problem, **options)

    def _prepare(self) -> None:
        problem, dim = self.problem, self.problem.dim
        if problem.curvature is None or not is_least_squares(problem):
            raise InputError(
                f"online debiasing is for linear regression with rows (x, y) and gradient (x'theta - y) x; problem "
                f"{problem.name!r} has another one, or no curvature bound. Use 'auto'"
            )
        self._inverse = np.zeros((dim, dim))
        self._sums = np.zeros((6, dim, dim))
        self._set_loops(debias, problem.gradient, problem.curvature)

    def _rows_needed(self) -> int:
        return self.pilot_rows + 1 - self.burn_in

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        pilot = min(max(self.pilot_rows + 1 - int(k[0]), 0), len(rows))
        if pilot:
            self._steps(draw, rows[:pilot], thetas[:pilot], k[:pilot])
            if k[pilot - 1] == self.pilot_rows:
                self._inverse[:] = _scaling(self._sums[0] / self.pilot_rows, self.planned_rows)
        if pilot < len(rows):
            self._steps(draw, rows[pilot:], thetas[pilot:], k[pilot:])

    def _steps(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        self._run_loop(draw, rows, thetas, self.step(k), 0, self._grad, self._inverse, self._sums)

    def _own_result(self) -> Result:
        n, rows, dim = self.n_iterates, self.n_seen - self.warm_start, self.problem.dim
        XX, WX, WW, Xy, Wy, yy = *self._sums[:3], self._sums[3, 0], self._sums[4, 0], self._sums[5, 0, 0]
        least = np.linalg.solve(XX, Xy)
        noise = float(yy - least @ Xy) / (rows - dim)
        left = np.abs(np.eye(dim) - WX).max()
        flags: tuple[tuple[str, str], ...] = ()
        if left > _MOST_LEFT:
            text = f"{100 * left:.0f}% of the bias of least squares is left: see more rows, or plan for fewer"
            flags = (("bias-left", text),)
        covariance = n * noise * 0.5 * (WW + WW.T)
        centre = least + Wy - WX @ least
        return Result(centre, covariance, n, NormalLaw(), self.name, Diagnostics(float(rows), flags=flags))


def is_least_squares(problem: Problem) -> bool:
    """Whether the gradient of a row (x, y) is (x'theta - y) x, near its minimum and far from it."""
    dim = problem.dim
    if problem.row_size != dim + 1:
        return False
    theta, x, grad = np.linspace(-0.5, 0.7, dim), np.linspace(1.3, -0.4, dim), np.empty(dim)
    for y in (0.3, 40.0):
        problem.gradient(theta, np.append(x, y), np.array(problem.params), grad)
        if not np.allclose(grad, (x @ theta - y) * x, rtol=1e-9):
            return False
    return True


def _scaling(mean_square: Vector, planned: int) -> Vector:
    """Gamma^-1 = (log n / n) H^-1."""
    try:
        return np.asarray(math.log(planned) / planned * np.linalg.inv(mean_square))
    except np.linalg.LinAlgError:
        raise NotEnoughData("the pilot rows do not show every direction: explore more, or drop a column") from None
