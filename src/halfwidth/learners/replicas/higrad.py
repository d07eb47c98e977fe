"""HiGrad: a tree of SGD threads that share their first segments (W. J. Su and Y. Zhu, JMLR 24, 2023).

The root segment has n_0 rows; then every thread splits in two, again after n_1 rows each, and the leaves take all later
rows in turn. Leaf t ends in mu_t = sum_k w_k (average over its segment at level k). With w_k the share of all rows that
lie at level k, the mean of the leaves is the average of all iterates, the best there is. With V the limit covariance,

    Cov(mu_t, mu_u) = V [S0]_{tu},   S0_{tu} = sum over shared segments of w_k^2 / n_k,
    SE^2 = 1'S0 1 (mu - mu_bar)' S0^-1 (mu - mu_bar) / (T^2 (T - 1)),   t with T - 1 degrees of freedom,

for T leaves: the quadratic form over T - 1 estimates V, and 1'S0 1 / T^2 turns it into the variance of the mean.

| paper                 | here                                     |
|-----------------------|------------------------------------------|
| n_0, n_1, ...         | `shared`, rows of each segment that splits |
| B_k = 2               | binary splits, `len(shared)` of them     |
| mu_t, T               | `threads()`, their number                |

The paper divides a known number of rows; a stream has none, so the shared segments are given and the leaves grow.
Independent rows only.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.inference import Diagnostics, Result
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Indices, Vector
from halfwidth.learners.base import LearnerOptions
from halfwidth.learners.learner_state import State
from halfwidth.learners.own_result import OwnResult
from halfwidth.learners.replicas.dealt_rows import Deal, DealtRuns
from halfwidth.problems import Problem
from halfwidth.state.containers import ListOf
from halfwidth.state.fields import Array, Fields, Whole

_MOST_LEVELS = 16


def _runs_shape(state: State) -> tuple[int, int]:
    return 2 ** len(state["settings"]["shared"]), state["problem"]["dim"]


def _segments_shape(state: State) -> tuple[int, int, int]:
    return len(state["settings"]["shared"]) + 1, *_runs_shape(state)


class HiGrad(DealtRuns, OwnResult):
    """A binary tree of SGD threads, with Student's t over its leaves; independent rows only.

    Parameters
    ----------
    shared : tuple of int
        Rows of each segment before it splits: (n_0, n_1) splits after n_0 rows, and again after n_1 rows per thread.

    Raises
    ------
    InputError
        `shared` is empty, or holds something other than positive integers.

    References
    ----------
    W. J. Su and Y. Zhu, *HiGrad: uncertainty quantification for online learning and stochastic approximation*, JMLR 24
    (2023).

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.HiGrad(hw.problem("iid-linear", dim=2), shared=(200, 200), seed=0).run(3_000)
    >>> learner.threads().shape, learner.result().law.degrees_of_freedom
    ((4, 2), 3.0)
    """

    name = "higrad"
    settings: ClassVar[Fields] = {
        "shared": ListOf(Whole(1), 1, _MOST_LEVELS, doc="rows of each segment before it splits")
    }
    kept: ClassVar[Fields] = {
        "runs": Array(_runs_shape, doc="where the threads are"),
        "segments": Array(_segments_shape, doc="sum of theta - theta_0 over each segment, by level and first leaf"),
    }

    def __init__(
        self, problem: Problem, *, shared: tuple[int, ...] = (1_000, 1_000), **options: Unpack[LearnerOptions]
    ) -> None:
        if not shared:
            raise InputError.of("shared", "name at least one segment that splits", shared)
        if len(shared) > _MOST_LEVELS:
            raise InputError.of("shared", f"name at most {_MOST_LEVELS} segments", len(shared))
        self.shared = tuple(check_count("shared", rows) for rows in shared)
        super().__init__(problem, runs=2 ** len(shared), **options)

    def _prepare(self) -> None:
        super()._prepare()
        levels = np.arange(len(self.shared))
        self._ends = self.burn_in + np.cumsum(2**levels * np.array(self.shared))  # in rows of the stream
        self._segments = np.zeros((len(self.shared) + 1, *self._runs.shape))  # totals by level and first leaf

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        cuts = [int(end - k[0] + 1) for end in self._ends if k[0] <= end < k[-1]]
        for piece in np.split(np.arange(len(rows)), cuts):
            self._one_level(draw, rows[piece[0] : piece[-1] + 1], thetas[piece[0] : piece[-1] + 1], k[piece])

    def _one_level(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        level = int(np.searchsorted(self._ends, k[0]))
        threads, spread = 2**level, len(self._runs) >> level
        begun = int(self._ends[level - 1]) if level else self.burn_in
        place = k - 1 - begun
        counts = self.burn_in + sum(self.shared[:level]) + place // threads + 1
        work = Deal(place % threads * spread, 1.0 / threads, 0, self._runs, self._segments[level], self._grad)
        self._run_loop(draw, rows, thetas, self.step(counts), int(k[0]) - 1, work)
        if level < len(self.shared) and k[-1] == self._ends[level]:
            self._runs[:] = np.repeat(self._runs[::spread], spread, axis=0)

    def _forget(self) -> None:
        self._segments[0] = 0.0

    def _lengths(self) -> Indices:
        """Rows of every segment, (levels, leaves); a segment is repeated for all leaves below it."""
        leaves = len(self._runs)
        last = self.n_iterates + self.burn_in - int(self._ends[-1])
        lengths = [np.full(leaves, rows) for rows in self.shared]
        return np.array([*lengths, (last + leaves - 1 - np.arange(leaves)) // leaves])

    def _weights(self) -> Vector:
        """Shares of all rows by level."""
        per_level = np.append(2 ** np.arange(len(self.shared)) * np.array(self.shared), 0)
        per_level[-1] = self.n_iterates - per_level.sum()
        return np.asarray(per_level / self.n_iterates)

    def threads(self) -> Vector:
        """Estimate mu_t of every leaf.

        Returns
        -------
        ndarray of shape (T, dim)
            One leaf in each row.
        """
        leaves = len(self._runs)
        averages = self._segments.copy()
        for level in range(len(self.shared)):
            spread = leaves >> level
            averages[level] = np.repeat(averages[level, ::spread], spread, axis=0)
        averages /= self._lengths()[:, :, None]
        return np.asarray(self._theta_0 + np.einsum("k,ktd->td", self._weights(), averages))

    def _shape(self) -> Vector:
        """S0."""
        leaves = np.arange(len(self._runs))
        shape = np.zeros((leaves.size, leaves.size))
        for level, (weight, lengths) in enumerate(zip(self._weights(), self._lengths(), strict=True)):
            spread = leaves.size >> level
            same = leaves[:, None] // spread == leaves // spread
            shape += same * weight**2 / lengths[:, None]
        return shape

    def _rows_needed(self) -> int:
        return int(self._ends[-1]) - self.burn_in + 2 * len(self._runs)

    def _own_result(self) -> Result:
        mu, shape = self.threads(), self._shape()
        T, n = len(mu), self.n_iterates
        centred = mu - mu.mean(axis=0)
        spread = centred.T @ np.linalg.solve(shape, centred) / (T - 1)
        covariance = n * shape.sum() / T**2 * 0.5 * (spread + spread.T)
        return Result(mu.mean(axis=0), covariance, n, StudentLaw(T - 1.0), self.name, Diagnostics(T - 1.0))
