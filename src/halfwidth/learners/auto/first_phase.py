"""The first phase of a steered engine: theta finds its way from theta_0.

It lasts for 2 N0 rows at least (`steered`). It goes on while decrements are still falling, and while the Hessian still
changes, by a fifth within four chunks: where a logistic loss is flat, or its events are rare, theta has far to go
and decrements say nothing about it, for they are made of noise. What estimation begins with must not be there: rows
that are expanded on the way, one move after the other in the same direction, leave more out than moves show.

**Far starts.** What is usual follows decrements slowly (`absorb`), by 5% per chunk. Where the phase is to end and the
last four decrements are all below `FAR_START` of it, theta has come a long way, and may be on it still: a logistic loss
is as flat at 4 as it was at 1,000. Noise, curvature, the spacing of differences and the prior are those of the way. The
first phase then begins again, at the theta that was reached, as if that were theta_0, until decrements no longer fall.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import Diverged
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.careful import CarefulSteering
from halfwidth.learners.auto.steered_sums import BATCH_CHUNKS

_WIDER = 4.0
_FORGET = 0.75
_SETTLING_CHUNKS, _FALLING = 4, 0.5
_LEVEL, _MOST_SETTLING = 1.2, 16
FAR_START = 0.01
"""Of the usual decrement: where the last ones are all smaller, theta has come from far away."""
_FAR_UNTIL = 64


class FirstPhase(CarefulSteering):
    """What a steered engine does until it averages, or estimates."""

    def _moved(self, hidden: NDArray[np.bool_], gradient: Vector) -> None:
        """The first phase: theta is the linearisation point; the mean Hessian forgets, unless steps are careful."""
        s, last = self.steering, self.moving.H
        kept = 1.0 if self.careful else _FORGET
        self.hessian_sum = kept * self.hessian_sum + last
        self.hessian_rows = kept * self.hessian_rows + self.m
        self.store.clear()
        if self.differences:
            still = (np.diag(last) == 0.0) & hidden
            s.spacing[still] *= _WIDER
            self.jumps = self.jumps or bool(still.any())
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
