"""Extrapolation to step zero, from one trajectory.

    E theta_k = theta* + c eta_k + ...,   so   Y_j = theta* + c x_j + noise,   j = 1..M,

with Y_j the mean of batch j of M equal batches and x_j the mean of its steps. Least squares gives the intercept theta~
as the estimate, Sigma_hat = b RSS / (M - 2) as the noise, and the variance of the intercept

    var theta~ = (Sigma_hat / b) (1/M + x_bar^2 / sum_j (x_j - x_bar)^2),    t with M - 2 degrees of freedom.

| symbol   | here                                                     |
|----------|----------------------------------------------------------|
| M        | `batches`                                                |
| b        | `block_rows()`                                           |
| eta_k    | `step`, a schedule: the learner's own                    |
| c        | `slope()`                                                |

It removes the leading bias of the average under nonlinear losses and state-dependent data, with gradients only, and
pays with width where there is none. It is not universal: the expansion must hold from the first batch on, so the steps
must follow the inverse of the smallest curvature. The batches come from `DyadicBatches`: up to M - 1 of its 128 to 255
sub-batches, the oldest, and the rows of an incomplete one, the latest, are left out.

Bias expansion: A. Dieuleveut, A. Durmus and F. Bach, *Bridging the gap between constant step size SGD and Markov
chains*, Annals of Statistics 48 (2020).
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.errors import CannotPool, InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.schedules import PowerStep, Schedule
from halfwidth.state.containers import Row
from halfwidth.state.fields import Field, Real, Whole
from halfwidth.state.schema import Relation
from halfwidth.watchers.base import State
from halfwidth.watchers.dyadic_sums import DyadicBatches, batch_fields, batch_relations
from halfwidth.watchers.dyadic_watcher import DyadicWatcher, dyadic_schema, scatter_of
from halfwidth.watchers.fixed_batches import MOST_BATCHES, check_batches
from halfwidth.watchers.view import ViewName

_SETTINGS: dict[str, Field] = {
    "step": Row(
        (Real(0.0, strict=True), Real(0.5, 1.0, strict=True), Real(0.0)), doc="eta, exponent and offset of the step"
    ),
    "batches": Whole(4, MOST_BATCHES, doc="the number M of batches"),
}


def _as_many_steps(state: State) -> bool:
    return np.array_equal(state["counts"], state["steps_counts"])


class Extrapolated(DyadicWatcher):
    """The intercept of batch means on their mean steps: an estimate without the bias of order eta_k.

    Parameters
    ----------
    step : schedule
        The steps of the learner that made the iterates.
    batches : int
        Number M of batches, 4 to 32.

    Notes
    -----
    E theta_k = theta* + c eta_k + ..., so that the means of M batches are regressed on the means of their steps.
    `estimate` and `covariance` are those of the intercept; Student's t with M - 2 degrees of freedom. The interval is
    wider than that of the average.

    References
    ----------
    A. Dieuleveut, A. Durmus and F. Bach, *Bridging the gap between constant step size stochastic gradient descent and
    Markov chains*, Annals of Statistics 48 (2020), for the expansion of the bias.

    Examples
    --------
    >>> from halfwidth import PowerStep
    >>> watcher = Extrapolated(1, step=PowerStep(0.5, 0.7))
    >>> k = np.arange(1, 5001)
    >>> watcher.update_many(3.0 + 2.0 * watcher.step(k)[:, None]).estimate().round(6).tolist()
    [3.0]
    """

    kind = "extrapolated"
    version = 1
    settings = ("step", "batches")
    SCHEMA = dyadic_schema(kind, version, _SETTINGS).extended(
        fields=batch_fields("steps_", 1),
        relations=(*batch_relations("steps_"), Relation("have as many steps as rows", _as_many_steps)),
    )

    def __init__(
        self,
        dim: int,
        *,
        step: Schedule,
        batches: int = 8,
        view: ViewName = "full",
        projection: ArrayLike | None = None,
    ) -> None:
        super().__init__(dim, view, projection)
        self.step = step
        self.batches = check_batches(batches, at_least=4)
        self.least_rows = self.batches
        self._steps = DyadicBatches(1)

    def _take(self, seen: Vector) -> None:
        k = np.arange(self._rows() + 1, self._rows() + len(seen) + 1)
        self._steps.take(np.asarray(self.step(k), dtype=np.float64)[:, None])
        super()._take(seen)

    def estimate(self) -> Vector:
        self._need(self.least_rows, "an estimate")
        return self._batches.reference + self._fit()[0]

    def slope(self) -> Vector:
        """Slope c: the bias of an iterate for each unit of step.

        Returns
        -------
        ndarray of shape (dim,) or (p,)
            One number for each coordinate.
        """
        self._need(self.least_rows, "a slope")
        return self._fit()[1]

    def _fit(self) -> tuple[Vector, Vector, Vector, float]:
        """Intercept less the reference, slope, residuals, and var(intercept) over that of a batch mean."""
        means, _ = self._batches.groups(self.batches)
        x = (self._steps.reference + self._steps.groups(self.batches)[0])[:, 0]
        gap = x - x.mean()
        spread = float(gap @ gap)
        if not spread > 0:
            raise InputError.of("step", "fall along the stream: equal steps leave nothing to extrapolate", self.step)
        slope = gap @ (means - means.mean(axis=0)) / spread
        intercept = means.mean(axis=0) - x.mean() * slope
        residuals = means - intercept - np.multiply.outer(x, slope)
        return intercept, slope, residuals, 1.0 / self.batches + float(x.mean()) ** 2 / spread

    def _noise(self) -> Vector:
        """The covariance of sqrt(n) times the average, from what the line leaves over."""
        return scatter_of(np.sqrt(self._block_rows()) * self._fit()[2], self._diagonal) / self._nu()

    def _covariance(self) -> Vector:
        return self._noise() * (self._fit()[3] * self._rows() / self._block_rows())

    def _nu(self) -> float:
        return self.batches - 2.0

    def _block_rows(self) -> int:
        return self._batches.groups(self.batches)[1]

    def _long_run_variances(self) -> Vector:
        noise = self._noise()
        return noise if self._diagonal else np.diag(noise)

    def pool(self, other: Self) -> Self:
        raise CannotPool("cannot pool extrapolated intercepts: each has its own leverage, and their mix no exact law")

    def to_state(self) -> State:
        if not isinstance(self.step, PowerStep):
            raise InputError.of("step", "be a PowerStep to be written into a state", self.step)
        return super().to_state() | {"step": [self.step.eta, self.step.exponent, self.step.offset]}

    @classmethod
    def _restored(cls, state: State) -> Self:
        return super()._restored(state | {"step": PowerStep(*state["step"])})

    def _store(self) -> State:
        return super()._store() | self._steps.to_state("steps_")

    def _restore(self, state: State) -> None:
        super()._restore(state)
        self._steps.restore(state, "steps_")
