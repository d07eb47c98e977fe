"""The first phase of a steered engine: theta finds its way from theta_0.

It lasts for 2 N0 rows at least (`steered`). It goes on while decrements are still falling, and while the Hessian still
changes, by a fifth within four chunks: where a logistic loss is flat, or its events are rare, theta has far to go
and decrements say nothing about it, for they are made of noise. What estimation begins with must not be there: rows
that are expanded on the way, one move after the other in the same direction, leave more out than moves show.

**Far starts.** What is usual follows decrements slowly (`absorb`), by 5% per chunk. Where the phase is to end and the
last four decrements are all below `FAR_START` of it, theta has come a long way, and may be on it still: a logistic loss
is as flat at 4 as it was at 1,000. Noise, curvature, the spacing of differences and the prior are those of the way. The
first phase then begins again, at the theta that was reached, as if that were theta_0, until decrements no longer fall.

**Flat starts.** Where a loss is flat at theta_0, as a logistic one is at 100, Newton steps overshoot, to where it is
flatter still, and no row there says how to come back. The first chunk may show little curvature by chance: rows that
show `_STEEPER` times as much make the prior anew, which bounds the steps. Where less than `FLAT` of it is left, and
decrements are as large as before, theta goes back to theta_0, for steps a quarter as large. Under an exponential, from
far above, curvature falls, too, but decrements fall with it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import Diverged
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.careful import CarefulSteering
from halfwidth.learners.auto.steered_sums import BATCH_CHUNKS
from halfwidth.learners.auto.steps import SHRINK

_WIDER = 4.0
_FORGET, _FULL_ROWS = 0.75, 8.0
"""How much of the mean Hessian is kept from chunk to chunk: it has at least so many rows for each coefficient."""
_SETTLING_CHUNKS, _FALLING = 4, 0.5
_LEVEL, _MOST_SETTLING = 1.2, 16
FAR_START = 0.01
"""Of the usual decrement: where the last ones are all smaller, theta has come from far away."""
_FAR_UNTIL = 64
FLAT = 0.01
"""Of the curvature that rows have shown: where no more is left, and decrements are as large, theta has overshot."""
_STEEPER, _AS_BEFORE = 20.0, 0.1
_MOST_TRUNCATIONS = 12


class FirstPhase(CarefulSteering):
    """What a steered engine does until it averages, or estimates."""

    def _moved(self, hidden: NDArray[np.bool_], gradient: Vector) -> None:
        """The first phase: theta is the linearisation point; the mean Hessian forgets, unless steps are careful."""
        s, last = self.steering, self.moving.H
        kept = 1.0 if self.careful else max(_FORGET, 1.0 - self.m / (_FULL_ROWS * self.dim))
        self.hessian_sum = kept * self.hessian_sum + last
        self.hessian_rows = kept * self.hessian_rows + self.m
        self.store.clear()
        if self.differences:
            still = (np.diag(last) == 0.0) & hidden
            s.spacing[still] *= _WIDER
            self.jumps = self.jumps or bool(still.any())
        self._know_steeper()
        self._precondition(self.hessian_sum / self.hessian_rows)
        if self.careful:
            self._newton_step(gradient)
        s.point[:] = s.previous[:] = self.moving.theta
        self.bends[:] = self.hessian_sum @ (s.point - s.origin) * (self.m / self.hessian_rows)
        usual = float(self.moving.guard[0])
        self.highest = max(self.highest, float(self.moving.guard[1]))
        settling = (self.k // self.m) % _SETTLING_CHUNKS == 0
        if self.k >= self.phase_ends and np.diag(self.hessian_sum).max() <= 0.0 and self.hessian_sum.any():
            raise Diverged(
                f"no step goes downhill: in {self.k:,} rows the mean Hessian is negative in every coordinate. Check "
                "that the gradient points uphill"
            )
        if settling and self._fled():
            self._go_back()
            return
        if self.k >= self.phase_ends and settling and usual > _FALLING * self.usual and self._levels_off():
            if self._came_far():
                self._begin_here()
                return
            self._respace()
            if self.careful:
                self.phase, self.prior_rows = 2, 0.5 * self.hessian_rows
                self._estimate_from_here()
                return
            self.phase, self.phase_ends = 1, self.k + 2 * self.first
            self.next_refresh = self.k + BATCH_CHUNKS * self.m
            self._begin_at(s.point)
        if settling:
            self.usual, self.height, self.highest = usual, self._height(), 0.0

    def _levels_off(self) -> bool:
        """Whether the Hessian is about what it was; it is not asked for ever."""
        now, ends = self._height(), self.phase_ends + _MOST_SETTLING * self.first
        return self.careful or self.k >= ends or self.height / _LEVEL < now < _LEVEL * self.height

    def _came_far(self) -> bool:
        """Whether theta has come from far away, and may not have arrived; it is not asked for ever."""
        far = 0.0 < self.highest < FAR_START * float(self.moving.guard[0])
        return far and not self.careful and self.k < _FAR_UNTIL * self.first

    def _begin_here(self) -> None:
        """The first phase begins again, as if theta_0 had been where theta is."""
        s = self.steering
        if self.differences and not self.jumps:
            s.spacing[:] = self._first_spacing(s.point)
        self.prior[:] = 0.0
        self._begin_at(s.point.copy())
        self._first_phase()

    def _know_steeper(self) -> None:
        """Where rows show far more curvature than the first ones did, from which the prior is, it is made of these."""
        size = np.abs(np.diag(self.hessian_sum)) * (math.sqrt(self.m) / self.hessian_rows)
        steeper = (self.prior > 0.0) & (size > _STEEPER * self.prior)
        if steeper.any() and not self.careful:
            self.prior[steeper] = size[steeper]
            self.moving.guard[:] = 0.0  # decrements are in units of the curvature

    def _fled(self) -> bool:
        """Whether theta has overshot to where the loss is flat: curvature has vanished, and decrements have not."""
        flat = self._left() < FLAT and self.highest > _AS_BEFORE * float(self.moving.guard[0])
        return flat and not self.careful

    def _go_back(self) -> None:
        """Theta goes back to theta_0, for smaller steps; the prior keeps the curvature that was seen on the way."""
        self._count_truncation()
        self.hessian_sum[:], self.hessian_rows, self.steering.P[:] = 0.0, 0.0, 0.0
        self.moving.theta[:] = self.moving.theta_0
        self._begin_at(self.moving.theta_0.copy())
        self.gain.reset(max(SHRINK * self.gain.share, 1e-6))
        self._first_phase()

    def _count_truncation(self) -> None:
        """Theta is taken back, at this row; not for ever."""
        self.truncations.append(self.k)
        if len(self.truncations) > _MOST_TRUNCATIONS:
            raise Diverged(
                f"theta ran away {len(self.truncations)} times, last at row {self.k:,}: "
                "its steps find no stable parameter. Start nearer to the solution (theta_0), scale the columns to "
                "about one, or check that the gradient points uphill"
            )
