"""Overlapping batch means with growing blocks: the estimator of Roy and Balasubramanian.

    Sigma_hat_n = sum_i (W_i - l_i theta_bar)(W_i - l_i theta_bar)' / sum_i l_i,    W_i = sum_{k=t_i}^{i} theta_k,

where t_i is the first row of the block that row i belongs to and l_i = i - t_i + 1 its age. Expanding the product
leaves sums that need neither n nor the past (`halfwidth.watchers.block_sums`, which has the table of symbols):

    Sigma_hat_n = (V - P theta_bar' - theta_bar P' + q theta_bar theta_bar') / v.

A. Roy and K. Balasubramanian, *Online covariance estimation for stochastic gradient descent under Markovian
sampling*; the estimator is that of W. Zhu, X. Chen and W. B. Wu, JASA 118 (2023).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.inference.brownian_law import BrownianLaw, block_law, pooled_law
from halfwidth.inference.diagnostics import Diagnostics, batch_diagnostics
from halfwidth.kernels.arrays import Vector
from halfwidth.schedules import BlockPlan
from halfwidth.state.schema import Schema
from halfwidth.watchers.base import State
from halfwidth.watchers.block_plan_state import OBM_FIELDS, OBM_RELATIONS
from halfwidth.watchers.block_sums import BlockSums
from halfwidth.watchers.view import VIEW_FIELDS, VIEW_RELATION, Scatter, ViewName, kept_size, symmetric
from halfwidth.watchers.viewed_watcher import ViewedWatcher


class OverlappingBatchMeans(ViewedWatcher):
    """Online covariance of averaged SGD for every n, without knowing n: overlapping batch means.

    Parameters
    ----------
    step_exponent : float
        Exponent a of the steps eta k^-a that made the iterates, strictly between 1/2 and 1.
    block_constant : float
        Constant c of the block plan: block m starts at row floor(c m^beta).
    block_exponent : float, optional
        Exponent beta, above 1/(1 - a); 2/(1 - a) by default.
    view : {"full", "diagonal", "projection"}
        What is kept: memory is O(dim^2), O(dim) or O(p dim).
    projection : array_like of shape (p, dim), optional
        The directions that are kept, exactly when `view="projection"`; estimate and covariance are then those of
        `projection @ theta`.

    See Also
    --------
    FixedBatchMeans : a fixed number of batches with Student's t, the simplest choice.
    RandomScaling : no tuning constant at all, wider intervals.

    Notes
    -----
    With l_i the age of row i in its block and W_i the sum of the block up to row i,

        Sigma_hat = sum_i (W_i - l_i theta_bar)(W_i - l_i theta_bar)' / sum_i l_i.

    Blocks grow like the correlation time of the iterates, about k^a rows at row k. There are few of them at any
    practical n, so that a normal critical value covers too little; `law` is the Brownian functional of the block plan
    at this n, calibrated by its weights. The estimate is valid for independent, Markov and state-dependent data.

    When trajectories are pooled the average is weighted by rows and the covariance by the sum of block ages; the law is
    that of the independent functionals together.

    References
    ----------
    A. Roy and K. Balasubramanian, *Online covariance estimation for stochastic gradient descent under Markovian
    sampling*. W. Zhu, X. Chen and W. B. Wu, *Online covariance matrix estimation in stochastic gradient descent*, JASA
    118 (2023).

    Examples
    --------
    A watcher sees the iterates of a learner:

    >>> import halfwidth as hw
    >>> watcher = hw.OverlappingBatchMeans(2)
    >>> learner = hw.CappedSGD(hw.problem("iid-linear", dim=2), watchers=[watcher], seed=0).run(5_000)
    >>> watcher.n_seen, watcher.covariance().shape
    (5000, (2, 2))

    or of any other program:

    >>> rng = np.random.default_rng(0)
    >>> watcher = hw.OverlappingBatchMeans(2, view="diagonal").update_many(rng.standard_normal((1000, 2)))
    >>> watcher.interval(level=0.9).lower.shape
    (2,)
    """

    kind = "overlapping-batch-means"
    version = 1
    SCHEMA = Schema(
        kind,
        version,
        VIEW_FIELDS | OBM_FIELDS,
        {"size": kept_size},
        (VIEW_RELATION, *OBM_RELATIONS, symmetric("scatter")),
        settings=(*VIEW_FIELDS, "step_exponent", "block_constant", "block_exponent"),
    )

    def __init__(
        self, dim: int, *, step_exponent: float = 0.505, block_constant: float = 2.0,
        block_exponent: float | None = None, view: ViewName = "full", projection: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dim, view, projection)
        self._plan = BlockPlan.for_step(step_exponent, block_constant, block_exponent)
        self.step_exponent = float(step_exponent)
        self._sums = BlockSums(self._plan, self._view.size, self._diagonal)
        self._pieces: tuple[tuple[int, float], ...] = ()  # rows and ages of the trajectories, where they are pooled

    def _settings(self) -> dict[str, Any]:
        plan = {"block_constant": self._plan.constant, "block_exponent": self._plan.exponent}
        return {"step_exponent": self.step_exponent} | plan

    @property
    def n_seen(self) -> int:
        return self._sums.n

    def take(self, thetas: Vector) -> None:
        if self._pieces:
            self._refuse_update()
        self._sums.take(np.ascontiguousarray(self._view.apply(thetas)))

    def estimate(self) -> Vector:
        self._need(1, "an estimate")
        return self._sums.mean()

    def covariance(self) -> Vector:
        self._need(2, "a covariance")
        return self._centred_scatter() / self._sums.ages

    def _centred_scatter(self) -> Vector:
        return self._sums.scatter.read() if self._pieces else self._sums.centred_scatter()

    def _as_pieces(self) -> tuple[tuple[int, float], ...]:
        return self._pieces or ((self._sums.n, self._sums.ages),)

    def law(self) -> BrownianLaw:
        self._need(self._plan.start(3), "an interval")
        pieces = self._as_pieces()
        laws = tuple(block_law(tuple(self._plan.starts_up_to(n).tolist()), n) for n, _ in pieces)
        if len(laws) == 1:
            return laws[0]
        return pooled_law(laws, tuple(ages / self._sums.ages for _, ages in pieces))

    def diagnostics(self) -> Diagnostics:
        longest = max(self._sums.longest_block(n) for n, _ in self._as_pieces())
        return batch_diagnostics(self.law().degrees_of_freedom, self.correlation_time(), longest, self.n_seen)

    def correlation_time(self) -> float:
        """Longest correlation time of a coordinate, in rows.

        Returns
        -------
        float
            The largest Sigma_jj / (2 var theta_j), with the variance of single iterates from one in sixteen.
        """
        spread = self._sums.centred_spread() / self._sums.sampled
        covariance = self.covariance()
        variances = covariance if covariance.ndim == 1 else np.diag(covariance)
        moving = spread > 0
        return float(np.max(0.5 * variances[moving] / spread[moving], initial=0.0))

    def pool(self, other: Self) -> Self:
        self._check_partner(other, 2)
        joined = self._blank()
        joined._pieces = self._as_pieces() + other._as_pieces()
        a, b, both = self._sums, other._sums, joined._sums
        both.n, both.ages, both.sampled = a.n + b.n, a.ages + b.ages, a.sampled + b.sampled
        both.reference = (a.n * self.estimate() + b.n * other.estimate()) / both.n
        both.spread = a.centred_spread() + b.centred_spread()
        both.scatter = Scatter.holding(self._centred_scatter() + other._centred_scatter())
        return joined

    def to_state(self) -> State:
        pieces = {"pieces": [list(piece) for piece in self._pieces]}
        return self._head() | self._settings() | pieces | self._sums.to_state()

    @classmethod
    def _restored(cls, state: State) -> Self:
        configuration = ("step_exponent", "block_constant", "block_exponent", "view", "projection")
        watcher = cls(state["dim"], **{name: state[name] for name in configuration})
        watcher._sums.restore(state)
        watcher._pieces = tuple((int(n), float(ages)) for n, ages in state["pieces"])
        return watcher
