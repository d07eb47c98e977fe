"""Plain and capped SGD.

    theta_{k+1} = theta_k - eta_{k+1} g(theta_k, x_{k+1})

Capped SGD takes min(eta_k, 1 / kappa_k) instead of eta_k, with kappa_k a bound of the row's curvature: no step passes
the row's own minimum, so that the first, large steps do not diverge.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.compile import Kernel, specialise
from halfwidth.kernels.rows import LARGEST, Path, RowData, finite_row, no_rows, with_row, without_row
from halfwidth.kernels.steps import capped_step, no_cap
from halfwidth.learners.base import Learner
from halfwidth.state.fields import Fields, Whole
from halfwidth.state.schema import Relation


def descend(sample: Function, look_at: Function, gradient: Function, curvature: Function) -> Function:
    """The loop of plain and capped SGD around a problem's functions; it counts rows, and steps that were capped.

    With `look_at=with_row` it ends before a row that is not finite. Each row is looked at while the one before is
    learned: that costs less than a pass of its own, which would read all rows from memory once more.
    """

    def sgd_steps(rng: np.random.Generator | None, data: RowData, path: Path, grad: Vector) -> tuple[int, int]:
        theta, params, rows = path.theta, data.params, data.rows
        capped = 0
        total = look_at(0.0, rows[0])
        for i in range(rows.shape[0]):
            row = rows[i]
            if not abs(total) <= LARGEST:
                if not finite_row(row):
                    return i, capped
                total = 0.0  # finite numbers, whose sum is not
            sample(rng, theta, data.state, params, row)
            gradient(theta, row, params, grad)
            kappa = curvature(theta, row, params)
            capped += path.steps[i] * kappa > 1.0
            step = capped_step(path.steps[i], kappa)
            if i + 1 < rows.shape[0]:
                total = look_at(total, rows[i + 1])  # here, while the sums of this row are waited for
            for j in range(theta.shape[0]):
                theta[j] -= step * grad[j]
            for j in range(theta.shape[0]):  # in a loop of its own, which the compiler makes a copy of
                path.thetas[i, j] = theta[j]
        return rows.shape[0], capped

    return sgd_steps


class SGD(Learner):
    """Plain averaged SGD (Polyak-Ruppert).

    See Also
    --------
    CappedSGD : the same with steps that cannot pass a row's minimum; prefer it where the curvature is known.
    Auto : chooses steps and batches by itself.

    Notes
    -----
    The estimate is the average of the iterates, theta_bar_n = n^-1 sum_k theta_k, whose error has the limit
    sqrt(n) (theta_bar_n - theta*) -> N(0, Sigma) for steps eta k^-a with 1/2 < a < 1. The iterates diverge where
    eta_1 exceeds about 2 / kappa for a typical row of curvature kappa; `Diverged` is raised then.

    References
    ----------
    B. Polyak and A. Juditsky, *Acceleration of stochastic approximation by averaging*, SIAM J. Control and
    Optimization 30 (1992).

    Examples
    --------
    >>> import halfwidth as hw
    >>> world = hw.problem("ar-linear", dim=2)
    >>> learner = hw.SGD(world, step=hw.PowerStep(0.2), watchers=[hw.FixedBatchMeans(2)], seed=0)
    >>> result = learner.run(20_000).result()
    >>> bool(result.interval([1.0, 0.0]).covers(world.theta_star[0]))
    True
    """

    name = "plain"
    kept: ClassVar[Fields] = {"capped": Whole(doc="steps that were capped")}
    relations = (Relation("have no more steps capped than rows seen", lambda s: s["kept"]["capped"] <= s["n_seen"]),)

    def _prepare(self) -> None:
        functions = (self.problem.gradient, self._cap())
        self._drawing = specialise(descend, self.problem.sample or no_rows, without_row, *functions)
        looking = specialise(descend, no_rows, with_row, *functions)
        self._looks = isinstance(looking, Kernel)  # plain Python would take long over it
        self._given = looking if self._looks else specialise(descend, no_rows, without_row, *functions)
        self._capped = 0

    def _cap(self) -> Function:
        return no_cap

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        learned, capped = self._run_loop(draw, rows, thetas, self.step(k), 0, self._grad)
        if learned < len(rows):
            raise InputError("rows must be finite")  # `consume` says which is not
        self._capped += int(capped)

    def _finds_bad_rows(self) -> bool:
        return self._looks and type(self) in (SGD, CappedSGD)  # a subclass may have a `_walk` of its own


class CappedSGD(SGD):
    """Averaged SGD whose step never exceeds the inverse of the row's curvature bound.

    Notes
    -----
    Steps are min(eta_k, 1 / kappa_k). As eta_k falls the cap stops to bind, so that the limit is that of `SGD`. The
    share of capped steps is in the diagnostics of the result, as `capped_share`.

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.CappedSGD(hw.problem("iid-linear", dim=3), step=hw.PowerStep(2.0), seed=0).run(5_000)
    >>> learner.n_seen, learner.theta_bar.shape
    (5000, (3,))
    """

    name = "capped"

    def _cap(self) -> Function:
        if self.problem.curvature is None:
            raise InputError(
                f"capped SGD needs a curvature bound, and problem {self.problem.name!r} has none; "
                "give Problem(..., curvature=...) or use plain SGD"
            )
        return self.problem.curvature

    def _facts(self) -> dict[str, Any]:
        return {"capped_share": self._capped / max(self.n_seen - self.warm_start, 1)}
