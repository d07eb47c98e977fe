"""What a steered engine holds: theta, the sums of the equation, mean Hessian, preconditioner and feedback."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from halfwidth.equation import BatchStore
from halfwidth.errors import NotIdentified
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.arguments import Cursor, Plan, moving_from, steering_from
from halfwidth.learners.auto.dither import Dither
from halfwidth.learners.auto.engine_schemas import NOTES, WEIGHED_CHUNKS
from halfwidth.learners.auto.engine_state import engine_state, restore_engine
from halfwidth.learners.auto.excitation import Excitation
from halfwidth.learners.auto.feedback import Response, in_proportion, regress
from halfwidth.learners.auto.moments import FeedbackNotes
from halfwidth.learners.auto.proportional import ShareSums
from halfwidth.learners.auto.slopes import regression
from halfwidth.learners.auto.steps import Gain, past, preconditioner
from halfwidth.learners.auto.stores import steered_store
from halfwidth.schedules import PowerStep

STEP = PowerStep(1.0, 0.505)
BATCH_CHUNKS, FEWEST_CHUNKS = 4, 4
_DIFFERENCED, _SHORT_CHUNK = 4, 128
_LARGEST_STEP = 0.35
_SPACING, _FIRST_SPACING = 0.05, 1e-4
_ROUNDING = 1e-6


class SteeredSums:
    """The state of a steered engine, and what can be computed from it."""

    def __init__(self, theta_0: Vector, chunk_rows: int, *, differences: bool, detect: bool, key: int) -> None:
        dim = len(theta_0)
        self.dim, self.m, self.differences, self.detect = dim, chunk_rows, differences, detect
        self.first = max(-(-max(512, 10 * dim) // chunk_rows), FEWEST_CHUNKS) * chunk_rows  # N0
        short = chunk_rows <= _SHORT_CHUNK
        self.batch_rows = BATCH_CHUNKS * chunk_rows if short else -(-512 // chunk_rows) * chunk_rows
        self.k = self.chunks = self.clipped = 0
        self.phase = 0  # 0: moving, 1: averaging, 2: estimating
        self.phase_ends = 2 * self.first
        self.began, self.restarts, self.prior_rows = 0, 0, 0.0
        self.truncations: list[int] = []
        self.shares: ShareSums | None = None  # where chunks are unlike each other
        self.gain = Gain(_LARGEST_STEP * chunk_rows / (chunk_rows + dim + 1.0))
        self.dither = Dither(dim, key)
        self.moving, self.steering = moving_from(theta_0), steering_from(theta_0, self._first_spacing(theta_0))
        self.store = self.empty_store()
        self.notes, self.excitation = FeedbackNotes(dim), Excitation()
        self.hessian_sum, self.hessian_rows = np.zeros((dim, dim)), 0.0
        self.prior, self.bends = np.zeros(dim), np.zeros(dim)
        self.weighed: int | None = None  # chunks since the point moved, until the move is weighed
        self.next_refresh = self.next_feedback = 0
        self.bent, self.settled, self.usual, self.height, self.highest = 0.0, False, math.inf, 1.0, 0.0
        self.jumps = False  # whether differences of a gradient vanished where the gradient did not
        # of differences: the next chunk, and how many make them
        self.turn, self.whole = 0, 2 * self.first // chunk_rows

    @property
    def careful(self) -> bool:
        """Whether chunks are unlike each other, and theta follows the root of all rows (`careful`)."""
        return self.shares is not None

    def empty_store(self) -> BatchStore:
        """For the sums of this engine."""
        return steered_store(self.dim, self.batch_rows, self.m if self.careful else None)

    def _first_spacing(self, theta_0: Vector) -> Vector:
        return np.asarray(_FIRST_SPACING * np.maximum(1.0, np.abs(theta_0)) * float(self.differences))

    def use_hessian(self) -> None:
        """Before the first chunk: the Hessian is told after all."""
        self.differences = False
        self.steering.spacing[:] = 0.0

    def mean_hessian(self) -> Vector:
        """The mean static Hessian per row; the first phase counts with its last rows only."""
        rows = self.hessian_rows + self.store.rows
        return np.asarray((self.hessian_sum + self.store.curvature()) / max(rows, 1.0))

    def check_derivative(self) -> None:
        """Refuse a field that did not change with theta in all rows of the first phase, which would never end."""
        if self.phase == 0 and self.k >= self.phase_ends and not self.hessian_sum.any():
            raise NotIdentified(
                f"the mean Hessian is zero: in {self.k:,} rows the gradient did not change with theta at fixed data, "
                "and without that there is no step to take. Check that the gradient uses theta; where theta acts "
                "through the data alone, take steps of your own and give the iterates to a watcher, such as "
                "OverlappingBatchMeans",
                "unidentified",
            )

    def _precondition(self, H: Vector) -> None:
        size, rows = np.abs(np.diag(H)), max(self.hessian_rows + self.store.rows, 1.0)
        appeared = (self.prior == 0.0) & (size != 0.0)
        self.prior[appeared] = size[appeared] * math.sqrt(self.m)
        self.steering.P[:] = preconditioner(H, self.steering.J, self.prior / rows)

    def prior_matrix(self, H: Vector) -> Vector:
        """The prior of theta, in rows, given the mean Hessian H."""
        return np.diag(self.prior)

    def _begin_at(self, point: Vector) -> None:
        """Sums are relative to this point from now on."""
        s = self.steering
        s.origin[:] = s.previous[:] = s.point[:] = point
        self.store.clear()
        self.notes.clear()
        self.moving.trace[:] = np.nan
        self.bends[:] = s.Q[:] = self.moving.D[:] = self.moving.far_score[:] = 0.0
        self.moving.far_curvature[:], self.moving.swept[:] = 0.0, 0.0
        self.weighed = None

    def _estimate_from_here(self) -> None:
        """Forget all sums but the mean Hessian's; the point becomes their origin and the prior's centre."""
        self.hessian_sum = self.hessian_sum + self.store.curvature()
        self.hessian_rows += self.store.rows
        self._begin_at(self.steering.point.copy())
        self.began = self.k
        self.excitation.begin(self.k)
        self.next_refresh = self.next_feedback = self.k + self.k // 4
        if self.differences:
            self.turn, self.whole = 0, max(8, self.first // self.m)

    def _first_phase(self) -> None:
        """Theta has to find a start."""
        self.moving.guard[:] = 0.0
        self.phase, self.phase_ends, self.usual, self.highest = 0, self.k + 2 * self.first, math.inf, 0.0
        self.began, self.settled, self.turn, self.whole = 0, self.careful, 0, 2 * self.first // self.m

    @np.errstate(divide="ignore")
    def _respace(self) -> None:
        """The spacing of the differences: of what a row moves a Newton step by, at most a unit of the Hessian."""
        if not self.differences or self.notes.moments().chunks < 2 * self.dim + 8:
            return
        spacing, unit = _SPACING * self.noise_scale(), np.abs(np.diag(self.mean_hessian())) ** -0.5
        spacing = spacing if self.jumps else np.minimum(spacing, unit)  # from a far start, noise is no measure
        self.steering.spacing[:] = np.where(spacing > 0.0, spacing, self.steering.spacing)

    def noise_scale(self) -> Vector:
        """The standard deviation of what a row adds to each coordinate of a Newton step."""
        return np.asarray(np.sqrt(np.square(self._noise_root()).sum(axis=1)))

    def _noise_root(self) -> Vector:
        """L with L L' the covariance of what a row adds to a Newton step."""
        values, vectors = np.linalg.eigh(regression(self.notes.moments(), self.m)[1])
        return np.asarray(self.steering.P @ (vectors * np.sqrt(np.maximum(values, 0.0))))

    def _balancing(self, target: Vector) -> Vector:
        """The theta to deploy until the next refresh, so that the mean of all deployed thetas is near the target."""
        mean = self.steering.origin + self.store.sums.T.sum(axis=0) / self.store.rows
        return past(target, mean, self._noise_root(), float(self._plain_steps(1)[0]))

    def _corrected(self) -> tuple[Vector, Vector]:
        """Left and right side of the equation of all rows, by the feedback that steps allow for."""
        s, store = self.steering, self.store
        A, B, share = store.curvature(), store.score() - store.rows * s.Q, s.share[0]
        if self.careful:
            U, R = (sums.sum(axis=0) for sums in (store.sums.U, store.sums.R))
            return (1.0 - share) * A + self.moving.far_curvature, B - share * (U + share * R) + self.moving.far_score
        return np.asarray(A + store.rows * s.J), np.asarray(B + s.J @ store.sums.T.sum(axis=0))

    def _use_feedback(self, response: Response) -> None:
        """Steer by this slope; what decrements are usual grows with the preconditioner."""
        before = np.linalg.norm(self.steering.P)
        self.steering.J[:] = response.steering
        self.steering.share[0] = response.kept * response.share
        self._precondition(self.mean_hessian())
        if before > 0.0:
            self.moving.guard[:2] *= max(1.0, float(np.linalg.norm(self.steering.P) / before))

    def to_state(self) -> dict[str, Any]:
        return engine_state(self)

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        restore_engine(self, state)

    def response(self) -> Response:
        """The feedback as it is seen now."""
        if not self.detect:
            return Response(np.zeros((self.dim, self.dim)), 0.0, 0.0, unlike=self.careful)
        return self._regress(self.store.curvature() / self.store.rows)

    def _regress(self, hessian: Vector) -> Response:
        if self.shares is not None:
            return in_proportion(self.shares, hessian, self.m)
        return regress(self.notes.moments(), hessian, self.m, bool(self.truncations))

    def corrections(self) -> tuple[Vector, Vector]:
        """Q, and the share of the last move in it that rows since then get back."""
        D = self.moving.D / (self.weighed * self.m) if self.weighed else np.zeros(self.dim)
        return self.steering.Q + D, D

    def noise(self, rows: Vector, skipped: float = 0.0) -> Vector:
        """How noisy the deployed theta was in each of these batches, of so many rows, after others."""
        return self.excitation.of_batches(self.began + skipped, self.k, rows)

    def quadratic(self) -> bool:
        """Whether the expansions left nothing out but rounding: the gradient is linear in theta, as far as it went."""
        noise = np.sqrt(np.diag(regression(self.notes.moments(), self.m)[1]))
        return bool(np.all(np.abs(self.steering.Q) <= _ROUNDING * noise))

    def plan(self, most: int = NOTES) -> Plan:
        """Steps, differences and dithers of the chunks until something else has to happen."""
        chunks = min(self.store.free_rows // self.m, self.notes.free_chunks, most)
        if self.phase == 0:
            chunks = 1
        elif self.weighed is not None:
            chunks = min(chunks, WEIGHED_CHUNKS - self.weighed)
        else:
            chunks = min(chunks, max(1, -(-(self.next_refresh - self.k) // self.m)))
        if self.phase == 1:
            chunks = min(chunks, (self.phase_ends - self.k) // self.m)
        if self.whole:
            chunks = min(chunks, self.whole)
        signs = np.zeros(chunks)
        if self.differences:
            every = 1 if self.whole or self.careful else _DIFFERENCED
            turns = self.turn + np.arange(chunks)
            signs = np.where(turns % every == 0, 1.0 - 2.0 * (turns // every % 2), 0.0)
        steps = self._steps(chunks)
        return Plan(steps, signs, self.dither.ahead(self.chunks, self._plain_steps(chunks)))

    def cursor(self, filled: int) -> Cursor:
        return Cursor(filled, self.store.open, self.store.length, self.weighed is not None, self.careful)

    def _steps(self, chunks: int) -> Vector:
        """The steps of the next chunks, as planned."""
        if self.careful:
            return np.zeros(chunks)
        steps = np.minimum(self._plain_steps(chunks), self.gain.ahead(chunks) / self.m)
        ends = self.k + self.m * np.arange(1, chunks + 1)
        return np.minimum(steps, 1.0 / ends) if self.settled else steps

    def _noise(self, chunks: int) -> Vector:
        """The steps of the next chunks, each with that by which it is dithered."""
        steps = self._steps(chunks)
        return steps if self.dither.root is None else steps + self._plain_steps(chunks)

    def _plain_steps(self, chunks: int) -> Vector:
        """The same without feedback, once they are as large as they may be."""
        ends = self.k + self.m * np.arange(1, chunks + 1)
        return np.minimum(STEP(ends), self.gain.largest / self.m)
