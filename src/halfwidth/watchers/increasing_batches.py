"""Non-overlapping batches of increasing length, for a planned number of rows.

    e_k = floor(((k+1) r)^(1/(1-a))),  r = n^(1-a) / (M+1);  batch k = rows e_{k-1}+1 .. e_k;  batch 0 is dropped;
    Sigma_hat = sum_{k=1}^{M} n_k (Y_k - Y_bar)(Y_k - Y_bar)' / (M - 1),    Y_bar the mean of all rows in batches 1..M.

The step eta_k falls like k^-a, so that the iterates stay correlated over a time that grows like k^a: batches grow to
hold as many correlation times late as early.

| paper           | here                                                                  |
|-----------------|-----------------------------------------------------------------------|
| n               | `planned_rows`                                                        |
| M               | `batches`: n^((1-a)/2), rounded, unless given                         |
| e_k             | `batch_end(k)`                                                        |
| n_k             | the batch's rows                                                      |

The paper divides by M and takes a normal quantile. Divided by M - 1 the estimate is, for a Brownian motion, exactly
Sigma times a chi-square with M - 1 degrees of freedom over M - 1 (analysis of variance with unequal groups), hence
t_{M-1}. Before the planned rows are reached the complete batches count; after it, more batches follow the same rule.

X. Chen, J. Lee, X. Tong and Y. Zhang, *Statistical inference for model parameters in stochastic gradient descent*,
Annals of Statistics 48 (2020).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.schedules import check_step_exponent
from halfwidth.state.fields import Array, Field, Real, Whole
from halfwidth.state.schema import Relation
from halfwidth.watchers.base import State
from halfwidth.watchers.state_parts import check_array
from halfwidth.watchers.student_watcher import StudentWatcher, student_schema
from halfwidth.watchers.view import Scatter, ViewName, scatter_shape, symmetric

_SAMPLED_EVERY = 16
_ARRAYS = ("reference", "current", "overall", "mean", "squares")
_COUNTS = ("n", "age", "complete", "weight", "longest", "sampled")


_SETTINGS: dict[str, Field] = {
    "planned_rows": Whole(2, doc="the planned number of rows"),
    "batches": Whole(2, doc="the number M of batches by then"),
    "step_exponent": Real(0.5, 1.0, strict=True, doc="the exponent a of the step"),
}
_STORE: dict[str, Field] = {
    "n": Whole(doc="iterates seen"),
    "age": Whole(doc="rows in the open batch"),
    "complete": Whole(doc="batches that count"),
    "weight": Whole(doc="their rows"),
    "longest": Whole(doc="the rows of the longest"),
    "sampled": Whole(doc="rows in `squares`"),
    "reference": Array(("size",), doc="what the open batch is relative to"),
    "current": Array(("size",), doc="sum of the open batch"),
    "overall": Array(("size",), doc="mean of all rows before the open batch"),
    "mean": Array(("size",), doc="mean of the batches that count"),
    "squares": Array(("size",), low=0, doc="sum of squares of one row in sixteen"),
    "scatter": Array(scatter_shape, doc="sum of n_k (Y_k - Y)(Y_k - Y)'"),
}


def batch_end_of(planned_rows: int, batches: int, step_exponent: float, k: int) -> int:
    """The last row of batch k: e_k, written so that e_M is the planned number of rows."""
    share = (k + 1) / (batches + 1)
    return int(planned_rows * share ** (1.0 / (1.0 - step_exponent)) + 1e-9)


def _counts_follow_rows(state: State) -> bool:
    n, complete = int(state["n"]), int(state["complete"])

    def end(k: int) -> int:
        return batch_end_of(state["planned_rows"], state["batches"], state["step_exponent"], k)

    first = end(0)
    if first < 1 or (n < first and complete):
        return False
    before = 0 if n < first else end(complete)
    weight, longest = before - first if complete else 0, before - end(complete - 1) if complete else 0
    found = (state["age"], state["weight"], state["longest"], state["sampled"])
    expected = (n - before, weight, longest, -(-n // _SAMPLED_EVERY))
    return found == expected and n - before < end(complete + (n >= first)) - before


class IncreasingBatchMeans(StudentWatcher):
    """Non-overlapping batches of increasing length, for a planned number of rows.

    Parameters
    ----------
    planned_rows : int
        Number n of rows that the batches are planned for; more rows may follow.
    batches : int, optional
        Number M of batches; n^((1-a)/2), rounded, by default.
    step_exponent : float
        Exponent a of the steps that made the iterates, strictly between 1/2 and 1.
    view : {"full", "diagonal", "projection"}
        What is kept: memory is O(dim^2), O(dim) or O(p dim).

    Notes
    -----
    Batch k ends at row e_k = floor(((k+1) r)^(1/(1-a))), r = n^(1-a) / (M+1), so that late batches hold as many
    correlation times as early ones; batch 0 is dropped. Student's t with M - 1 degrees of freedom.

    References
    ----------
    X. Chen, J. Lee, X. Tong and Y. Zhang, *Statistical inference for model parameters in stochastic gradient descent*,
    Annals of Statistics 48 (2020).

    Examples
    --------
    >>> watcher = IncreasingBatchMeans(2, planned_rows=1000)
    >>> watcher.update_many(np.random.default_rng(0).standard_normal((1000, 2))).law().degrees_of_freedom
    5.0
    """

    kind = "increasing-batch-means"
    version = 1
    settings = ("planned_rows", "batches", "step_exponent")
    SCHEMA = student_schema(
        kind,
        version,
        _SETTINGS,
        _STORE,
        (Relation("have counts that follow from the number of rows", _counts_follow_rows), symmetric("scatter")),
    )

    def __init__(
        self, dim: int, *, planned_rows: int, batches: int | None = None, step_exponent: float = 0.505,
        view: ViewName = "full", projection: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dim, view, projection)
        self.step_exponent = check_step_exponent(step_exponent)
        self.planned_rows = check_count("planned_rows", planned_rows, at_least=2)
        default = max(2, round(self.planned_rows ** (0.5 * (1.0 - self.step_exponent))))
        self.batches = default if batches is None else check_count("batches", batches, at_least=2)
        if self.batch_end(0) < 1:
            raise InputError.of("planned_rows", f"leave at least one row before {self.batches} batches", planned_rows)
        self.least_rows = self.batch_end(2)
        size = self._view.size
        self._n = self._age = self._sampled = 0
        self._complete = self._weight = self._longest = 0  # batches that count, their rows, the rows of the longest
        self._reference = np.zeros(size)
        self._current = np.zeros(size)  # the sum of the batch under way, minus the reference
        self._overall = np.zeros(size)  # the mean of all rows before it
        self._mean = np.zeros(size)  # the mean of the batches that count
        self._squares = np.zeros(size)
        self._scatter = Scatter(size, self._diagonal)

    def batch_end(self, k: int) -> int:
        """Last row e_k of batch k.

        Parameters
        ----------
        k : int
            Number of the batch, from 0.

        Returns
        -------
        int
            A row; that of batch M is the planned number of rows.
        """
        return batch_end_of(self.planned_rows, self.batches, self.step_exponent, k)

    def _take(self, seen: Vector) -> None:
        at = 0
        while at < len(seen):
            if self._n == 0:
                self._reference[:] = seen[0]
            end = self.batch_end(self._begun())
            rows = seen[at : at + end - self._n] - self._reference
            self._current += np.ones(len(rows)) @ rows
            looked = rows[-self._n % _SAMPLED_EVERY :: _SAMPLED_EVERY]
            self._squares += np.einsum("ij,ij->j", looked, looked)
            self._sampled += len(looked)
            self._age += len(rows)
            self._n += len(rows)
            at += len(rows)
            if self._n == end:
                self._close_batch()

    def _begun(self) -> int:
        """The number k of the batch under way."""
        return self._complete + (1 if self._n >= self.batch_end(0) else 0)

    def _close_batch(self) -> None:
        rows, mean = self._age, self._reference + self._current / self._age
        self._overall += (mean - self._overall) * (rows / self._n)
        if self._n > self.batch_end(0):
            gap = mean - self._mean
            before, self._weight = self._weight, self._weight + rows
            self._scatter.add(math.sqrt(before * rows / self._weight) * gap[None])
            self._mean += gap * (rows / self._weight)
            self._complete += 1
            self._longest = rows
        self._reference, self._current, self._age = mean, np.zeros_like(mean), 0

    def _rows(self) -> int:
        return self._n

    def _average(self) -> Vector:
        before = self._n - self._age
        return np.asarray((before * self._overall + self._age * self._reference + self._current) / self._n)

    def _covariance(self) -> Vector:
        return self._scatter.read() / (self._complete - 1)

    def _nu(self) -> float:
        return self._complete - 1.0

    def _spread(self) -> Vector:
        return np.asarray(self._squares / self._sampled)

    def _block_rows(self) -> int:
        return self._longest

    def _store(self) -> State:
        arrays = {name: getattr(self, f"_{name}").copy() for name in _ARRAYS}
        return {name: getattr(self, f"_{name}") for name in _COUNTS} | arrays | {"scatter": self._scatter.read()}

    def _restore(self, state: State) -> None:
        for name in _COUNTS:
            setattr(self, f"_{name}", int(state[name]))
        for name in _ARRAYS:
            setattr(self, f"_{name}", check_array(state, name, self._current.shape))
        self._scatter = Scatter.holding(check_array(state, "scatter", self._scatter.shape))
