"""The engine of `auto` where data may respond to theta: it steers, and adds up the equation. It never sees rows.

Rows are gathered into chunks of m; theta is deployed for a whole chunk and moves at its end.

| rows                | what happens                                                                              |
|---------------------|-------------------------------------------------------------------------------------------|
| to 2 N0             | preconditioned steps from theta_0, small ones first; the linearisation point is theta     |
| to 4 N0             | the deployed thetas are averaged: the average is the first linearisation point            |
| from 4 N0 on        | batches of the linearised equation, regression of the feedback                            |
| every 20% more rows | a refresh: mean Hessian H, feedback J, preconditioner P = (H + J)^-1, linearisation point |

N0 is the first multiple of m from max(512, 10 d, 4 m) on; the first phase may take longer (`first_phase`). Steps are
min(k^-0.505, 0.35 / (m + d + 1)) for the chunk's gradient sum: theta must move to show what the feedback is.
Once feedback is detected, over 96 renewals of theta and 32 times its gain (`feedback`), the engine is *settled*: theta
goes past the linearisation point at every refresh, by twice what the mean of all deployed thetas lacks to it, and takes
steps of 1/k from there: an error of J does not move a root that is at that mean (`slope_error`). A response that is
curved in theta shifts the centre by a multiple of the variance of the deployed theta, which is of the order of the
step: larger steps would leave a bias, and rows from before count for less (`excitation`). At a refresh the
linearisation point moves to

    (sum A' + n_0 (H + J))^-1 (sum B' + n_0 (H + J) point_0),

with the point where estimation began as a prior worth n_0 rows, half of those before it: without it the moves are not
nearly uncorrelated with the rows, and the correction Q overshoots. Where the data respond and the root of the rows is
far from that point, theta was still on its way when estimation began: the prior is dropped (n_0 = 0), for theta would
be deployed off the root on its account, and the root rest on the error of J. The next 8 chunks weigh the move. If the
gradient was not nearly linear along it (`bent` above 0.3), estimation restarts there. Where eight chunks are too rough
to tell, nothing is taken off, unless it is above 0.3 by five standard errors: a loss without curvature is not a
quadratic one.

Where chunks are unlike each other, so that steps are clipped, all this begins again without steps (`careful`).

An excursion (`absorb`) ends an attempt: theta goes back, to where estimation began or to theta_0, steps shrink, every
sum starts afresh, and J is what the excursion itself showed. This is the truncation of the paper's Algorithm 1.

Without a Hessian, differences make one on every fourth chunk, forwards and backwards in turn, and on each of the first
ones; chunks between take over the last. The spacing is 1/20 of what one row moves a Newton step by; it widens fourfold
in coordinates where the gradient does not change, as with a loss whose gradient jumps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import solution
from halfwidth.errors import Diverged, NotIdentified
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto import status
from halfwidth.learners.auto.arguments import APPEARED, EXCURSION, NOT_FINITE
from halfwidth.learners.auto.careful import KNOWN_ROWS, REFRESHED
from halfwidth.learners.auto.engine_schemas import WEIGHED_CHUNKS
from halfwidth.learners.auto.first_phase import FirstPhase
from halfwidth.learners.auto.steps import SHRINK

FEWEST_BATCHES = 4
_GROWTH, _FEEDBACK_GROWTH = 1.2, 1.5
_RESTART_UNTIL = 64
_ROUGH, _SURELY, _LEAST_BEND = 0.1, 5.0, 1e-6
FAR_ORIGIN = 20.0
"""Standard errors of the difference between the root of the rows and the prior: so far off the prior says nothing."""


class Steered(FirstPhase):
    """Steering, and the sums of the equation, for a given dimension and number of rows per chunk."""

    # ---- what happens between chunks

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite ends in Diverged
    def advance(self, done: int, clipped: int, event: int) -> None:
        """So many chunks are in the sums, and the last one ended in the event: do what is due."""
        try:
            self._advance(done, clipped, event)
        except (np.linalg.LinAlgError, OverflowError, NotIdentified):
            raise not_finite(self.k, self.m) from None

    def _advance(self, done: int, clipped: int, event: int) -> None:
        s, gradient = self.steering, self.notes.pages.gradient[self.notes.noted + done - 1].copy()
        if self.shares is not None:
            pages = self.notes.blank()
            self.shares.add(*(page[:done] for page in (pages.gradient, pages.bend, pages.dither)))
            self.shares.show(pages.diagonal[:done] / self.m)
        hidden = gradient != 0.0  # coordinates in which the gradient is there, while its differences may not be
        self.notes.note(self.m * self._steps(done), s.point - s.origin, self.bends)
        self.excitation.add(self.m * self._noise(done))
        self.k += done * self.m
        self.chunks += done
        if self.k > KNOWN_ROWS * self.dim:
            self.clipped += clipped
        self.gain.advance(done)
        self.store.note()
        self.turn, self.whole = self.turn + done, max(self.whole - done, 0)
        if event == NOT_FINITE or not math.isfinite(self.moving.theta.sum()):
            raise not_finite(self.k, self.m)
        if event == EXCURSION and not self.careful:
            self._truncate()
            return
        if self._unlike():
            self._be_careful()
            return
        if self.weighed is not None:
            self.weighed += done
            if self.weighed == WEIGHED_CHUNKS:
                self._weigh()
        if self.phase == 0:
            self._moved(hidden, gradient)
        elif self.phase == 1 and self.k >= self.phase_ends:
            self.phase = 2
            s.point[:] = s.origin + self.store.sums.T.sum(axis=0) / self.store.rows
            self.prior_rows = 0.5 * self.k
            self._estimate_from_here()
        elif self.weighed is None and (self.k >= self.next_refresh or event == APPEARED):
            self._refresh()

    def _truncate(self) -> None:
        """An excursion: theta goes back, steps shrink, the sums start afresh."""
        self._count_truncation()
        response = self._regress(self.mean_hessian())
        s = self.steering
        if response.kept > 0.0:
            self._use_feedback(response)
        safe = s.origin if self.phase == 2 else self.moving.theta_0
        self.moving.theta[:] = safe
        self._precondition(self.mean_hessian())
        self._begin_at(safe.copy())
        self.gain.reset(max(SHRINK * self.gain.share, 1e-6))
        self._first_phase()

    def _refresh(self) -> None:
        """Renew preconditioner, feedback and linearisation point."""
        H = self.mean_hessian()
        self.excitation.mark(self.k)
        if self.phase < 2:
            self.next_refresh = self.k + max(4 * self.m, self.k // 5)
        else:
            growth, chunks = (1.0 + REFRESHED, 1) if self.careful else (_GROWTH, WEIGHED_CHUNKS)
            self.next_refresh = max(int(growth * self.k), self.k + chunks * self.m)
            if self.detect and self.k >= self.next_feedback:
                self._learn_feedback()
        self._precondition(H)
        self._know_usual(H)
        if self.phase == 2:
            self._move_point(H)

    def _learn_feedback(self) -> None:
        response = self.response()
        if response.kept > 0.0 or not self.truncations:
            self._use_feedback(response)
        if self.shares is not None:
            self._measure_share(self.shares)
            return
        self.settled = response.settled
        self.dither.shape(self._noise_root() if response.doubtful else None)
        sooner = response.suspected and not self.settled
        self.next_feedback = int((_GROWTH if sooner else _FEEDBACK_GROWTH) * self.k)

    def _move_point(self, H: Vector) -> None:
        s = self.steering
        A, B = self._corrected()
        seen = np.diag(H) != 0.0
        inside = np.ix_(seen, seen)
        J = s.J if s.share[0] == 0.0 else -s.share[0] * H
        if J.any() and not self.careful and self._far_off(A[inside], B[seen], seen):
            self.prior_rows = 0.0
        left = A[inside] + self.prior_rows * (H + J)[inside] + self.prior_matrix(H)[inside]
        target = s.origin.copy()
        target[seen] += solution(left, B[seen])
        if not math.isfinite(target.sum()):
            raise not_finite(self.k, self.k - self.began)
        s.previous[:] = s.point
        s.point[:] = self._limited(target, H) if self.careful else target
        self.bends[:] = self.m * (H @ (s.point - s.origin))
        if self.settled:
            self.moving.theta[:] = s.point if self.careful else self._balancing(target)
        self.moving.D[:] = self.moving.spread[:] = 0.0
        self.weighed = None if self.careful else 0

    def _far_off(self, A: Vector, B: Vector, seen: NDArray[np.bool_]) -> bool:
        """Whether the root of the rows is far from the prior: estimation began with theta on its way from far off."""
        if self.prior_rows == 0.0:
            return False
        try:
            root = solution(A, B)
        except NotIdentified:  # these rows alone do not determine it
            return False
        away = np.linalg.lstsq(self._noise_root()[np.ix_(seen, seen)], root)[0]
        size = float(away @ away) / (len(root) * (1.0 / self.store.rows + 1.0 / self.prior_rows))
        return size > FAR_ORIGIN**2

    def _weigh(self) -> None:
        """The last move is weighed: correct all rows from before it, or restart from here if it was too curved."""
        s, D, chunks = self.steering, self.moving.D, WEIGHED_CHUNKS
        move = s.previous - s.point
        along = float(move @ D) / chunks
        bend = self.m * abs(float(move @ self.mean_hessian() @ move))
        error = math.sqrt(max(float(self.moving.spread[0]) / chunks - along * along, 0.0) / chunks)
        self.weighed = None
        if abs(along) > status.MOST_BENT * bend + _SURELY * error:
            self.bent = abs(along) / max(bend, _LEAST_BEND * abs(along))
        elif bend == 0.0 or error > _ROUGH * bend:
            self.bent, D[:] = 0.0, 0.0  # of a gradient that jumps, so few rows show nothing
        else:
            self.bent = abs(along) / bend
        D /= chunks * self.m
        if self.bent > status.MOST_BENT and self.k < _RESTART_UNTIL * self.first:
            self.restarts += 1
            self.prior_rows += self.store.rows
            self._estimate_from_here()
            return
        s.Q[:] += D
        self.store.give_back(D)

    # ---- what is known

    @property
    def rows_needed(self) -> int:
        """How many rows there must have been for a result; after a truncation, that begins again."""
        if self.phase == 2:
            began = self.began
        else:
            began = max(self.phase_ends, self.k) + (2 * self.first if self.phase == 0 else 0)
        return began + FEWEST_BATCHES * self.batch_rows


def not_finite(row: int, rows: int) -> Diverged:
    """The error for a gradient or a theta that became non-finite."""
    return Diverged(
        f"non-finite numbers at row {row:,}: look for extreme values in the {rows:,} rows up to it; scale the columns "
        "to about one, start nearer to the solution (theta_0), or check that the gradient points uphill"
    )
