"""Steering where chunks are unlike each other: theta follows the root of all rows, and nothing else.

Rows that come in the order of time, as the hours of a year do, may stay alike within a chunk and change from chunk to
chunk. A chunk's Hessian is then nearly singular, its own minimum is far from everybody else's, and a step along the
mean Hessian overshoots: steps are clipped. Where more than `UNLIKE` of the first 16 or more steps were, the engine is
*careful* from then on; half as many are enough where the curvature of the first rows has vanished, as that of a
logistic loss does where theta has overshot, and no step leads back. Everything begins again, at theta_0, or at the root
if estimation had begun and half of that curvature is left there, with no steps but

- in the first phase, renewable Newton: every chunk moves theta by P_n g / n, P_n the inverse of the mean Hessian of all
  n rows, those of the chunk too, with a prior worth eight chunks for each column, by the largest that its mean Hessian
  has been, and for directions that no row has shown yet (`unseen`);
- later, theta and the linearisation point at the root of all sums, which moves with every chunk, or with every 0.2% of
  the rows.

A move by more than three times as much as rows usually move the root is one that a curved loss, or a column that a
spell of rows shows for the first time, has blown up: with q the usual decrement g'P g / m, a first step is shortened to
q <= 9 times that, and a later move x, after r of n rows, to x'H x <= 9 q r / n^2. There are no excursions: theta cannot
run away by steps that it does not take.

A response is followed by its share k of each chunk's Hessian (`proportional`). What k is measured with is the dither,
in *sessions*: one begins with the first 2 d + 8 chunks of estimation over, and one whenever four times as many rows
have come as at the beginning of the last; it ends once k is known to 0.08. Dithers have the covariance

    (eta_c / 2) q / (d (1 - k)) S (S H S + 1/10)^-1 S,   S_jj^-2 the largest H_jj that a chunk has shown,

H filled up in directions that no row has shown (`unseen`). It is that of theta's own noise (`dither`) where chunks are
alike, and less in directions that few rows have shown or where some chunk has far more to show than others: a dither
must stay small there, too, or the response saturates. Where the loss is curved they are limited further (`probes`).
"""

from __future__ import annotations

import math

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.probes import CURVED, MOST_LOST, nonlinearity
from halfwidth.learners.auto.proportional import ShareSums
from halfwidth.learners.auto.steered_sums import SteeredSums
from halfwidth.learners.auto.steps import LEAST_EIGENVALUE, preconditioner
from halfwidth.learners.auto.unseen import filled_up, with_hidden

UNLIKE = 0.3
"""The share of clipped steps from which on the engine is careful."""
KNOWN_ROWS = 2.5
"""So many rows for each coefficient have to come before a clipped step counts: the mean Hessian of fewer is nearly
singular, and steps along it overshoot whatever the rows."""
COLLAPSED, FLATTER = 0.05, 0.5
"""Of the curvature that the first rows showed: where no more is left, half as many clipped steps are enough, and a root
is no better than theta_0."""
REFRESHED = 0.002
"""Of all rows: after so many the point moves."""
_FEWEST_STEPS = 16
_PRIOR_CHUNKS, _MOST_PRIOR = 8, 4.0
_MOST = 9.0
_SESSION_GROWTH = 4
_LOOK, _LATER = 8, 1.2
_LEAST = 0.1


class CarefulSteering(SteeredSums):
    """What a steered engine does where chunks are unlike each other."""

    def _unlike(self) -> bool:
        """Whether it is time to be careful: where a plan ends anyway, however the run is cut into calls."""
        if self.careful or self.chunks < _FEWEST_STEPS or self.clipped <= 0.5 * UNLIKE * self.chunks:
            return False
        ends = self.phase == 0 or self.k >= (self.phase_ends if self.phase == 1 else self.next_refresh)
        clipped = self.clipped > UNLIKE * self.chunks or self._left() <= COLLAPSED
        return ends and clipped and bool(self.mean_hessian().any())

    def _height(self) -> float:
        """The mean Hessian in units of the prior, which the first rows made, in the median column."""
        shown = self.prior > 0.0
        size = np.abs(np.diag(self.mean_hessian()))[shown] / self.prior[shown]
        return float(np.median(size)) if shown.any() else 1.0

    def _left(self) -> float:
        """What is left of the curvature that the first rows have shown."""
        return math.sqrt(self.m) * self._height()

    def _be_careful(self) -> None:
        """Begin again, with nothing but its place in the stream: at the root if there is a good one, or at theta_0."""
        s = self.steering
        start = s.point.copy() if self.phase == 2 and self._left() > FLATTER else self.moving.theta_0.copy()
        self.shares = ShareSums(self.dim, self.k)
        self.clipped = self.restarts = 0
        self.bent, self.jumps = 0.0, False
        s.spacing[:] = self._first_spacing(start)
        self.hessian_sum[:], self.hessian_rows, self.prior[:] = 0.0, 0.0, 0.0
        s.J[:], s.share[:], s.P[:], s.usual[:], self.moving.probed[:] = 0.0, 0.0, 0.0, 0.0, 0.0
        self.dither.shape(None)
        self.moving.theta[:] = start
        self.store = self.empty_store()
        self._begin_at(start)
        self.gain.reset(1.0)
        self._first_phase()

    def _precondition(self, H: Vector) -> None:
        if not self.careful:
            super()._precondition(H)
            return
        np.maximum(self.prior, _PRIOR_CHUNKS * self.m * np.abs(np.diag(H)), out=self.prior)
        rows, less = max(self.hessian_rows + self.store.rows, 1.0), max(1.0 - self.steering.share[0], LEAST_EIGENVALUE)
        filled = H + self.prior_matrix(H) / rows
        self.steering.P[:] = preconditioner(filled, np.zeros_like(H), np.zeros(self.dim)) / less

    def prior_matrix(self, H: Vector) -> Vector:
        """The prior of theta, in rows: of each column and, where chunks are unlike, of what H has not seen.

        It grows with the noise then: rows that are noisier say less.
        """
        if not self.careful:
            return super().prior_matrix(H)
        noise = float(self.moving.guard[0]) * (1.0 - float(self.steering.share[0])) / self.dim
        more = min(max(noise, 1.0), _MOST_PRIOR)
        return more * with_hidden(self.prior, H, _PRIOR_CHUNKS * self.m)

    def _newton_step(self, gradient: Vector) -> None:
        """Move theta by what its gradient over the last chunk says, given all rows of the first phase."""
        s, guard = self.steering, self.moving.guard
        p = s.P @ gradient
        q, most = float(gradient @ p) / self.m, _MOST * float(guard[0])
        scale = 1.0 if guard[2] < 2.0 or q <= most else math.sqrt(most / q)
        self.moving.theta[:] = s.point - scale * p / self.hessian_rows

    def _limited(self, target: Vector, H: Vector) -> Vector:
        """The target, or as far on the way to it as a move may go."""
        point = self.steering.point
        move, rows = target - point, self.hessian_rows + self.store.rows
        since = max(self.m, int(REFRESHED * self.k))
        size = float(move @ H @ move) * rows**2
        most = _MOST * float(self.moving.guard[0]) * since
        return target if size <= most else np.asarray(point + math.sqrt(most / size) * move)

    @property
    def curved(self) -> bool:
        """Whether dithers have shown that the loss is not quadratic."""
        probed = self.moving.probed
        return self.careful and nonlinearity(probed) * probed[0] > CURVED

    def _know_usual(self, H: Vector) -> None:
        """What a chunk's Hessian is compared with from now on, unless the loss is known to be quadratic."""
        known = not self.careful or (self.moving.probed[0] > 0.0 and not self.curved)
        self.steering.usual[:] = 0.0 if known or self.phase < 2 else np.maximum(np.diag(H), 0.0)

    def _measure_share(self, sums: ShareSums) -> None:
        """Begin or end a session of dithers."""
        if not sums.wanted(self.m) and self.k >= _SESSION_GROWTH * sums.began:
            sums.begin(self.k, self.m)
        wanted = sums.wanted(self.m) and self.store.rows >= (2 * self.dim + 8) * self.m
        self.dither.shape(self._share_root(sums) if wanted else None)
        look = self.k + max(_LOOK, self.dim // 4) * self.m
        self.next_feedback = look if wanted else max(look, int(_LATER * self.k))

    def _share_root(self, sums: ShareSums) -> Vector:
        """L of the dither."""
        H = filled_up(self.mean_hessian())
        seen = np.flatnonzero(np.diag(H) > 0.0)
        scale = np.sqrt(np.maximum(sums.largest, np.diag(H))[seen])
        values, vectors = np.linalg.eigh(0.5 * (H + H.T)[np.ix_(seen, seen)] / np.outer(scale, scale))
        size = float(self.moving.guard[0]) / (self.dim * max(1.0 - self.steering.share[0], _LEAST))
        root = np.zeros((self.dim, self.dim))
        root[np.ix_(seen, seen)] = vectors * np.sqrt(size / (np.maximum(values, 0.0) + _LEAST)) / scale[:, None]
        dithered = 0.5 * float(self._plain_steps(1)[0]) * self.m * float(np.sum(root * (H @ root)))
        lost = nonlinearity(self.moving.probed) * dithered
        return root if lost <= MOST_LOST else root * math.sqrt(MOST_LOST / lost)
