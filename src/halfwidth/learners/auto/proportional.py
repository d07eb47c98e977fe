"""A response in proportion to the Hessian: data answer the deployed theta with a share of what theta itself does.

With features that stay alike within a chunk and change from chunk to chunk no constant J fits. Where responses shift
with the model's own prediction, as forecasts do that fulfil themselves in part, a chunk with the Hessian sum H_c
responds by J_c = -k H_c: in proportion to its own rows, whatever these are, and by one number instead of d^2. The
dither z_c of the deployed theta is an instrument for it. With g_c the chunk's gradient sum at the linearisation point
and b_c = H_c (theta_c - point), theta_c with its dither,

    E z'(g + k b) = 0,   k = -sum z'g / sum z'b,   var k = sum (z'(g + k b))^2 / (sum z'b)^2,

for the signs of z know nothing of the noise, nor of where theta and the point were: noise may be correlated, chunks may
differ, theta may have wandered. Three tests on the same signs say whether this is the response. With e = g + k b and
C = sum e z', F = tr(Omega^-1 C V^-1 C') is about chi-square with d^2 degrees of freedom if the rest of the gradient
does not move with the dither, where n m Omega = sum e e' and V = m sum z z'. For this test z has length 1: where
dithers and gradients shrink together, the variance of C is not that of their products. Sum z_{c-1}'e_c over its
standard error is about normal if nothing comes a chunk late, and so is sum z_j e_j, over all sessions, if coordinate j
responds by the same share as the others. k is that of all sessions, the sums of which are added up. A coordinate whose
own k, of z_j g_j and z_j b_j, is above it is doubted sooner (`more`): its interval would be too short by
(1 - k) / (1 - k_j).

A response that saturates moves less than in proportion a dither away, and k is measured low. Dithers are limited so
that a loss is a fifth less curved there at most (`probes`), and about as much is lost of a response that follows it: a
fifth of k at most, a tenth in the middle. So where curvature is seen to be lost, standard errors are those of a k that
is larger by a tenth, or by its own standard error where that is less (the more rows, the smaller are dithers); they
allow for the root of the larger k, too (`low`, `shortfall`).
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.probes import MOST_LOST
from halfwidth.learners.auto.slopes import TINY, regular

MOST_EXCESS, MOST_LATE, MOST_APART = 4.0, 3.5, 3.5
SURE = 0.08
"""The standard error at which k is known well enough for a session to end."""
MORE_ERRORS, MORE = 2.5, 0.2
"""A coordinate whose own k is larger, by so many standard errors and by this share of 1 - k, is doubted."""
VAGUE = 0.25
"""The standard error, as a share of 1 - k, above which an interval that allows for it says too little."""


@dataclass(frozen=True)
class Proportion:
    """k, its variance, and the tests: F in standard deviations, t-values of what is late and of each coordinate."""

    share: float
    variance: float
    excess: float
    late: float
    apart: float = 0.0

    @property
    def kept(self) -> float:
        """The share of k that steps use: 1 - 1 / t^2."""
        return max(1.0 - self.variance / max(self.share**2, TINY), 0.0)

    @property
    def t(self) -> float:
        """|k| over its standard error."""
        return abs(self.share) / math.sqrt(max(self.variance, TINY))

    @property
    def steepening(self) -> float:
        """How much steeper 1 / (1 - k) is between k and two standard errors above it."""
        return self._steeper(2.0 * math.sqrt(self.variance))

    @property
    def low(self) -> float:
        """By how much k may have been measured low, of a response that saturates."""
        return min(math.sqrt(self.variance), 0.5 * MOST_LOST * max(self.share, 0.0))

    @property
    def shortfall(self) -> float:
        """How much larger 1 / (1 - k) is if k is."""
        return self._steeper(self.low)

    def _steeper(self, above: float) -> float:
        """(1 - k) / (1 - k - above), of a k that is not vague."""
        left = 1.0 - self.share
        return left / max(left - above, (1.0 - 2.0 * VAGUE) * left)

    @property
    def unsure(self) -> bool:
        """Whether k is not known well enough yet; a limit that depended on k itself would bias it."""
        return math.sqrt(self.variance) > SURE

    @property
    def vague(self) -> bool:
        """Whether 1 - k is known so badly that its error cannot be allowed for."""
        return math.sqrt(self.variance) > VAGUE * (1.0 - self.share)

    @property
    def fits(self) -> bool:
        """Whether the response is in proportion, as far as the dither shows."""
        return self.excess < MOST_EXCESS and self.late < MOST_LATE and self.apart < MOST_APART


class ShareSums:
    """Sums over the dithered chunks of a session and of all, what those before said, and what chunks have shown."""

    def __init__(self, dim: int, row: int) -> None:
        self.dim = dim
        self.before: Proportion | None = None
        self.largest = np.zeros(dim)
        self.pooled = np.zeros(5)  # of the sessions before: z'g, z'b and their products
        self.each = np.zeros((5, dim))  # of all sessions: z_j g_j, z_j b_j and their products
        self._clear(row)

    def _clear(self, row: int) -> None:
        dim = self.dim
        self.began, self.chunks = row, 0
        self.products = np.zeros((3 * dim, 3 * dim))  # of (g, b, z) with itself
        self.dithered = np.zeros((2, 5))  # with z, and with the z before: z'g, z'b, (z'g)^2, z'g z'b, (z'b)^2
        self.last = np.zeros(dim)

    def begin(self, row: int, chunk_rows: int) -> None:
        """A new session, at this row."""
        self.before = self._found(chunk_rows)
        self.pooled += self.dithered[0]
        self._clear(row)

    def wanted(self, chunk_rows: int) -> bool:
        """Whether the session has to go on."""
        seen = self._seen(chunk_rows)
        return seen is None or seen.unsure

    def show(self, diagonals: Vector) -> None:
        """Chunks have shown these diagonals of their Hessians, per row."""
        np.maximum(self.largest, diagonals.max(axis=0), out=self.largest)

    def add(self, gradients: Vector, bends: Vector, dithers: Vector) -> None:
        """More chunks in order, one in each row; those without a dither count for nothing.

        One by one: the sums must not depend on how many come at a time.
        """
        for g, b, z in zip(gradients, bends, dithers, strict=True):
            if z.any():
                v = np.concatenate([g, b, z / np.linalg.norm(z)])
                self.chunks += 1
                self.products += np.outer(v, v)
                for row, signs in enumerate((z, self.last)):
                    u, w = signs @ g, signs @ b
                    self.dithered[row] += [u, w, u * u, u * w, w * w]
                u, w = z * g, z * b
                self.each += [u, w, u * u, u * w, w * w]
            self.last = z.copy()

    def proportion(self, chunk_rows: int) -> Proportion | None:
        """What is known of k: with this session once it is sure, by those before until then."""
        return self.before if self.before is not None and self.wanted(chunk_rows) else self._found(chunk_rows)

    def _seen(self, chunk_rows: int) -> Proportion | None:
        """What this session says; None while it says too little."""
        d, n = self.dim, self.chunks
        if n < 2 * d + 8 or not (self.dithered[0, 1] > 0.0 and np.isfinite(self.products).all()):
            return None
        k, variance = _share(self.dithered[0])
        if not math.isfinite(variance):  # curvature that is next to nothing, where a logistic loss is flat
            return None
        late = self.dithered[1]
        t = abs(float(late[0] + k * late[1])) / math.sqrt(max(float(_left(k, late)), TINY))
        return Proportion(k, variance, self._excess(k, chunk_rows), t)

    def _found(self, chunk_rows: int) -> Proportion | None:
        """k by all sessions, with the tests of this one; `apart` is also its own k, from that of all."""
        seen = self._seen(chunk_rows)
        if seen is None:
            return None
        k, variance = _share(self.pooled + self.dithered[0])
        apart = np.abs(self.each[0] + k * self.each[1]) / np.sqrt(np.maximum(_left(k, self.each), TINY))
        changed = abs(seen.share - k) / math.sqrt(max(seen.variance, TINY))
        return replace(seen, share=k, variance=variance, apart=max(float(apart.max()), changed))

    def more(self, k: float) -> NDArray[np.bool_]:
        """Which coordinates seem to respond by more than k: beyond chance, and enough to matter."""
        g, b = self.each[:2]
        error = np.sqrt(np.maximum(_left(k, self.each), TINY))
        return np.asarray((-g - k * b > MORE_ERRORS * error) & (-g - k * b > MORE * (1.0 - k) * b) & (b > 0.0))

    def _excess(self, k: float, chunk_rows: int) -> float:
        d, n = self.dim, self.chunks
        g, b, z = (slice(i * d, (i + 1) * d) for i in range(3))
        P = self.products
        shown = np.flatnonzero((np.diag(P[b, b]) > 0.0) & (np.diag(P[z, z]) > 0.0))
        inside = np.ix_(shown, shown)
        C = (P[g, z] + k * P[b, z])[inside]
        omega = (P[g, g] + k * (P[g, b] + P[b, g]) + k * k * P[b, b])[inside] / (n * chunk_rows)
        V = chunk_rows * P[z, z][inside]
        try:
            F = float(np.sum(np.linalg.solve(regular(omega), C) * np.linalg.solve(regular(V), C.T).T))
        except np.linalg.LinAlgError:
            return math.inf
        size = max(len(shown), 1)
        return (F - size**2) / (math.sqrt(2.0) * size)

    def to_state(self) -> dict[str, Any]:
        before = self.before
        return {
            "began": self.began,
            "chunks": self.chunks,
            "products": self.products.copy(),
            "dithered": self.dithered.copy(),
            "last": self.last.copy(),
            "largest": self.largest.copy(),
            "pooled": self.pooled.copy(),
            "each": self.each.copy(),
            "before": None if before is None else np.array(astuple(before)),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ShareSums:
        sums = cls(len(state["last"]), int(state["began"]))
        sums.chunks = int(state["chunks"])
        for name in ("products", "dithered", "last", "largest", "pooled", "each"):
            getattr(sums, name)[...] = state[name]
        sums.before = None if state["before"] is None else Proportion(*np.asarray(state["before"]).tolist())
        return sums


def _left(k: float, sums: Vector) -> Vector:
    """The sum of squares of z'(g + k b), from the sums of z'g, z'b and their products."""
    return np.asarray(sums[2] + 2.0 * k * sums[3] + k * k * sums[4])


@np.errstate(over="ignore", invalid="ignore")
def _share(sums: Vector) -> tuple[float, float]:
    """k and its variance, which is not finite where z'b is next to nothing: its square, or k, leaves the range."""
    k = float(-sums[0] / sums[1])
    return k, max(float(_left(k, sums)), TINY) / float(sums[1]) / float(sums[1])
