"""Overlapping batch means with growing blocks: the estimator of Roy and Balasubramanian.

    Sigma_hat_n = sum_i (W_i - l_i theta_bar)(W_i - l_i theta_bar)' / sum_i l_i,    W_i = sum_{k=t_i}^{i} theta_k,

where t_i is the first row of the block that row i belongs to and l_i = i - t_i + 1 its age. Expanding the product
leaves sums that need neither n nor the past:

    Sigma_hat_n = (V - P theta_bar' - theta_bar P' + q theta_bar theta_bar') / v.

| paper                    | here                        |
|--------------------------|-----------------------------|
| l_i                      | `age`                       |
| W_i                      | `block_sum`                 |
| V = sum W_i W_i'         | `scatter`                   |
| P = sum l_i W_i          | `cross`                     |
| q = sum l_i^2            | `age_squares`               |
| v = sum l_i              | `ages`                      |
| a_m = floor(c m^beta)    | `schedules.BlockPlan`       |

All sums are of theta minus a reference, which moves to the running mean whenever a block starts (the estimator
does not change under shifts), so that a parameter near 1e8 loses no digits, wherever it started.

A. Roy and K. Balasubramanian, *Online covariance estimation for stochastic gradient descent under Markovian
sampling*; the estimator is that of W. Zhu, X. Chen and W. B. Wu, JASA 118 (2023).
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import CannotPool, NotEnoughData
from halfwidth.inference.brownian_law import BrownianLaw, block_law, pooled_law
from halfwidth.inference.diagnostics import Diagnostics, batch_diagnostics
from halfwidth.kernels.compile import kernel
from halfwidth.kernels.products import add_symmetric
from halfwidth.schedules import BlockPlan
from halfwidth.state.schema import Schema
from halfwidth.watchers.base import State, Watcher
from halfwidth.watchers.block_plan_state import OBM_FIELDS, OBM_RELATIONS, SAMPLED_EVERY, squares_to, sum_to
from halfwidth.watchers.view import VIEW_FIELDS, VIEW_RELATION, Scatter, View, ViewName, kept_size, symmetric

_BUFFER_NUMBERS = 32_768  # block sums are still in the processor's cache when they are multiplied
_SMALL = 128  # up to here one kernel for all of a block's extension beats calls between its parts
_SMALL_BUFFER_ROWS = 128


@kernel
def extend_sums(thetas, reference, block_sum, block_sums):  # type: ignore[no-untyped-def]
    """Extend the current block by every row of thetas; block_sums[i] is the block's sum after row i."""
    rows, size = thetas.shape
    for j in range(size):
        block_sums[0, j] = block_sum[j] + (thetas[0, j] - reference[j])
    for i in range(1, rows):
        for j in range(size):
            block_sums[i, j] = block_sums[i - 1, j] + (thetas[i, j] - reference[j])


@kernel
def add_aged(block_sums, age, cross):  # type: ignore[no-untyped-def]
    """Add every block sum to cross, times its age; the first one's is age + 1."""
    rows, size = block_sums.shape
    for i in range(rows):
        for j in range(size):
            cross[j] += (age + i + 1.0) * block_sums[i, j]


@kernel
def add_sampled(thetas, first, reference, total, squares):  # type: ignore[no-untyped-def]
    """Add every so many rows of thetas, from the given one on, and their squares; returns how many."""
    sampled = 0
    for i in range(first, thetas.shape[0], SAMPLED_EVERY):
        for j in range(thetas.shape[1]):
            away = thetas[i, j] - reference[j]
            total[j] += away
            squares[j] += away * away
        sampled += 1
    return sampled


@kernel
def extend_small(thetas, reference, age, block_sum, cross, scatter, block_sums):  # type: ignore[no-untyped-def]
    """All of a block's extension in one go: below some size, calls between its parts cost more than the parts."""
    rows, size = thetas.shape
    at = 0
    while at < rows:
        piece = block_sums[: min(block_sums.shape[0], rows - at)]
        for i in range(piece.shape[0]):
            for j in range(size):
                block_sum[j] += thetas[at, j] - reference[j]
            for j in range(size):
                piece[i, j] = block_sum[j]
            for j in range(size):
                cross[j] += (age + at + 1.0) * block_sum[j]
            at += 1
        add_symmetric(piece, piece, scatter)


class OverlappingBatchMeans(Watcher):
    """The paper's online covariance, for every n, without knowing n.

    Memory is O(dim^2) for `view="full"`, O(dim) for `"diagonal"` and O(p dim) for `"projection"`, where estimate
    and covariance are those of `projection @ theta`.

    >>> watcher = OverlappingBatchMeans(2)
    >>> rng = np.random.default_rng(0)
    >>> watcher.update_many(rng.standard_normal((1000, 2))).n_seen
    1000
    >>> watcher.covariance().shape
    (2, 2)
    """

    kind = "overlapping-batch-means"
    version = 1
    SCHEMA = Schema(
        kind,
        version,
        VIEW_FIELDS | OBM_FIELDS,
        {"size": kept_size},
        (VIEW_RELATION, symmetric("scatter"), *OBM_RELATIONS),
        settings=(*VIEW_FIELDS, "step_exponent", "block_constant", "block_exponent"),
    )

    def __init__(
        self,
        dim: int,
        *,
        step_exponent: float = 0.505,
        block_constant: float = 2.0,
        block_exponent: float | None = None,
        view: ViewName = "full",
        projection: ArrayLike | None = None,
    ) -> None:
        self._view = View.of(view, dim, projection)
        self._plan = BlockPlan.for_step(step_exponent, block_constant, block_exponent)
        self.dim = int(dim)
        self.step_exponent = float(step_exponent)
        size = self._view.size
        self._pieces: tuple[tuple[int, float], ...] = ()
        self._n = 0
        self._block = 1
        self._next_start = 2
        self._age = 0
        self._ages = 0.0
        self._age_squares = 0.0
        self._reference = np.zeros(size)
        self._block_sum = np.zeros(size)
        self._cross = np.zeros(size)
        self._total = np.zeros(size)
        # Of every so many iterates, around the reference: how many, their sum and sum of squares; diagnostics only.
        self._sampled = 0
        self._sampled_total = np.zeros(size)
        self._spread = np.zeros(size)
        self._scatter = Scatter(size, diagonal=view == "diagonal")
        self._small = size <= _SMALL and not self._scatter.diagonal
        buffer_rows = _SMALL_BUFFER_ROWS if self._small else min(4096, max(256, _BUFFER_NUMBERS // size))
        self._buffer = np.empty((buffer_rows, size))

    @property
    def n_seen(self) -> int:
        return self._n

    def take(self, thetas: NDArray[np.float64]) -> None:
        if self._pieces:
            raise CannotPool("a pooled watcher can be read and pooled again, not updated")
        seen = np.ascontiguousarray(self._view.apply(thetas))
        at = 0
        while at < len(seen):
            if self._n == 0:
                self._reference[:] = seen[0]
                self._next_start = self._plan.start(2)
            elif self._n + 1 == self._next_start:
                self._start_block()
            rows = min(len(seen) - at, self._next_start - self._n - 1)
            self._extend_block(seen[at : at + rows])
            at += rows

    def _start_block(self) -> None:
        self._block += 1
        self._next_start = self._plan.start(self._block + 1)
        self._age = 0
        self._block_sum[:] = 0.0
        self._move_reference(self.estimate())

    def _move_reference(self, reference: NDArray[np.float64]) -> None:
        step = self._reference - reference
        self._scatter.shift(step, self._cross, self._age_squares)
        self._cross += self._age_squares * step
        self._total += self._n * step
        self._spread += 2.0 * step * self._sampled_total + self._sampled * step**2
        self._sampled_total += self._sampled * step
        self._reference = reference

    def _extend_block(self, thetas: NDArray[np.float64]) -> None:
        rows = len(thetas)
        self._total -= self._block_sum
        if self._small:
            sums = (self._block_sum, self._cross, self._scatter.matrix, self._buffer)
            extend_small(thetas, self._reference, self._age, *sums)
        else:
            self._extend_by_pieces(thetas)
        self._total += self._block_sum
        first = -self._n % SAMPLED_EVERY
        self._sampled += add_sampled(thetas, first, self._reference, self._sampled_total, self._spread)
        self._ages += sum_to(self._age + rows) - sum_to(self._age)
        self._age_squares += squares_to(self._age + rows) - squares_to(self._age)
        self._age += rows
        self._n += rows

    def _extend_by_pieces(self, thetas: NDArray[np.float64]) -> None:
        for at in range(0, len(thetas), len(self._buffer)):
            piece = thetas[at : at + len(self._buffer)]
            block_sums = self._buffer[: len(piece)]
            extend_sums(piece, self._reference, self._block_sum, block_sums)
            self._scatter.add(block_sums)
            add_aged(block_sums, self._age + at, self._cross)
            self._block_sum[:] = block_sums[-1]

    def estimate(self) -> NDArray[np.float64]:
        self._need(1, "an estimate")
        return np.asarray(self._reference + self._total / self._n)

    def covariance(self) -> NDArray[np.float64]:
        self._need(2, "a covariance")
        return self._centred_scatter() / self._ages

    def _centred_scatter(self) -> NDArray[np.float64]:
        if self._pieces:
            return self._scatter.read()
        mean = self._total / self._n
        if self._scatter.diagonal:
            return self._scatter.read() - 2.0 * self._cross * mean + self._age_squares * mean**2
        mixed = np.outer(self._cross, mean)
        return self._scatter.read() - (mixed + mixed.T) + self._age_squares * np.outer(mean, mean)

    def law(self) -> BrownianLaw:
        """The Brownian functional of the block plan at this n; see `halfwidth.inference.brownian_law`."""
        self._need(self._plan.start(3), "an interval")
        pieces = self._pieces or ((self._n, self._ages),)
        laws = tuple(block_law(tuple(self._plan.starts_up_to(n).tolist()), n) for n, _ in pieces)
        return laws[0] if len(laws) == 1 else pooled_law(laws, tuple(ages / self._ages for _, ages in pieces))

    def diagnostics(self) -> Diagnostics:
        longest = max(self._longest_block(n) for n, _ in self._pieces or ((self._n, 0.0),))
        return batch_diagnostics(self.law().degrees_of_freedom, self.correlation_time(), longest, self._n)

    def correlation_time(self) -> float:
        """The longest correlation time of a coordinate, in rows: Sigma_jj / (2 var theta_j)."""
        spread = self._centred_spread() / self._sampled
        covariance = self.covariance()
        variances = covariance if covariance.ndim == 1 else np.diag(covariance)
        moving = spread > 0
        return float(np.max(0.5 * variances[moving] / spread[moving], initial=0.0))

    def _longest_block(self, n: int) -> int:
        return int(np.max(np.diff(np.append(self._plan.starts_up_to(n), n + 1))))

    def pool(self, other: Self) -> Self:
        """Join with an independent trajectory of the same plan and view.

        The average is weighted by rows and the covariance by the sum of block ages; the law is that of the two
        independent functionals together.
        """
        if not isinstance(other, OverlappingBatchMeans):
            raise CannotPool(f"cannot pool {self.kind} with {type(other).__name__}")
        if self._plan != other._plan or not self._view.same_as(other._view):
            raise CannotPool("cannot pool watchers with different block plans, dimensions or views")
        self._need(2, "pooling")
        other._need(2, "pooling")
        joined = self._blank()
        joined._pieces = self._as_pieces() + other._as_pieces()
        joined._n = self._n + other._n
        joined._ages = self._ages + other._ages
        joined._reference = (self._n * self.estimate() + other._n * other.estimate()) / joined._n
        joined._spread = self._centred_spread() + other._centred_spread()
        joined._sampled = self._sampled + other._sampled
        joined._scatter = Scatter.holding(self._centred_scatter() + other._centred_scatter())
        return joined

    def _as_pieces(self) -> tuple[tuple[int, float], ...]:
        return self._pieces or ((self._n, self._ages),)

    def _centred_spread(self) -> NDArray[np.float64]:
        return np.asarray(self._spread - self._sampled_total**2 / max(self._sampled, 1))

    def _need(self, rows: int, what: str) -> None:
        if self._n < rows:
            raise NotEnoughData.rows(what, self._n, rows)

    def _blank(self) -> Self:
        return type(self)(
            self.dim,
            step_exponent=self.step_exponent,
            block_constant=self._plan.constant,
            block_exponent=self._plan.exponent,
            view=self._view.name,
            projection=self._view.projection,
        )

    def to_state(self) -> State:
        return {
            "kind": self.kind,
            "version": self.version,
            "dim": self.dim,
            "step_exponent": self.step_exponent,
            "block_constant": self._plan.constant,
            "block_exponent": self._plan.exponent,
            "view": self._view.name,
            "projection": None if self._view.projection is None else self._view.projection.copy(),
            "pieces": [list(piece) for piece in self._pieces],
            "n_seen": self._n,
            "age": self._age,
            "ages": self._ages,
            "age_squares": self._age_squares,
            "reference": self._reference.copy(),
            "block_sum": self._block_sum.copy(),
            "cross": self._cross.copy(),
            "total": self._total.copy(),
            "sampled_total": self._sampled_total.copy(),
            "spread": self._spread.copy(),
            "sampled": self._sampled,
            "scatter": self._scatter.read(),
        }

    @classmethod
    def _restored(cls, state: State) -> Self:
        configuration = ("step_exponent", "block_constant", "block_exponent", "view", "projection")
        watcher = cls(state["dim"], **{name: state[name] for name in configuration})
        arrays = ("reference", "block_sum", "cross", "total", "sampled_total", "spread")
        for name in arrays:
            setattr(watcher, f"_{name}", np.array(state[name]))
        watcher._scatter = Scatter.holding(state["scatter"])
        watcher._pieces = tuple((int(n), float(ages)) for n, ages in state["pieces"])
        watcher._n, watcher._age, watcher._sampled = (int(state[name]) for name in ("n_seen", "age", "sampled"))
        watcher._ages, watcher._age_squares = float(state["ages"]), float(state["age_squares"])
        if watcher._n:
            watcher._block = watcher._plan.blocks_up_to(watcher._n)
            watcher._next_start = watcher._plan.start(watcher._block + 1)
        return watcher
