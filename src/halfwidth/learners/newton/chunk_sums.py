"""What renewable Newton keeps of the chunks it has expanded.

Chunk j, expanded at theta_j, adds H_j to the curvature and U_j + H_j (theta_j - reference) to the score; the centre is

    c = reference + (sum H_j + penalty)^-1 (sum U_j + H_j (theta_j - reference) - penalty reference).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.families import Loss
from halfwidth.learners.newton.kept_sample import RowSample
from halfwidth.learners.newton.newton_solver import Rows, solve_spd
from halfwidth.learners.newton.score_batches import ScoreBatches
from halfwidth.learners.newton.snapshot import pieces

Vector = NDArray[np.float64]

_ARRAYS = ("reference", "score", "curvature", "moments")


class ChunkSums:
    """Sums over all expanded rows, their score batches, and a thinned sample of them where the loss is smooth."""

    def __init__(self, loss: Loss, size: int, batch_length: int) -> None:
        self.loss = loss
        self.reference = np.zeros(size)
        self.score = np.zeros(size)
        self.curvature = np.zeros((size, size))
        self.weight = 0.0
        self.moments = np.zeros(3)  # sums of squared scores, of weights, of misclassified rows
        self.batches = ScoreBatches(size, batch_length)
        self.sample = RowSample(size) if loss.smooth else None

    @property
    def n_rows(self) -> int:
        return int(self.batches.rows[: self.batches.count].sum() + self.batches.open_rows)

    def add(self, rows: Rows, point: Vector, starts: NDArray[np.bool_] | None) -> None:
        """Expand the rows at the point and add them up."""
        eta = rows.eta(point)
        raw = self.loss.score(eta, rows.y)
        score = -rows.weighted(raw)
        edges = self.batches.edges(len(rows.y), starts)
        if self.loss.quadratic:
            root = rows.Z if rows.weight is None else np.sqrt(rows.weight)[:, None] * rows.Z
            bend = rows.total_weight
        else:
            weights = rows.weighted(self.loss.weight(eta, rows.y))
            root = np.sqrt(weights)[:, None] * rows.Z
            bend = float(weights.sum())
        if self.sample is not None:
            self.sample.add(rows, eta, self.n_rows)
        U, H = pieces(rows.Z, root, score, edges)
        B = U + H @ (point - self.reference)
        self.batches.add(edges, B, H, starts is not None)
        self.score += B.sum(axis=0)
        if self.loss.rough:
            self.score += rows.weighted(raw - self.loss.root(eta, rows.y)) @ rows.Z
        self.curvature += H.sum(axis=0)
        self.weight += rows.total_weight
        squares = (
            score * score
            if rows.weight is None
            else rows.weighted((score / np.where(rows.weight > 0, rows.weight, 1.0)) ** 2)
        )
        self.moments += (squares.sum(), bend, self._mistakes(eta, rows))

    def centre(self, penalty: Vector) -> Vector:
        """The root of the expanded equation, with the penalty's weights for all rows together."""
        rhs = self.score - penalty * self.reference
        return np.asarray(self.reference + solve_spd(self.curvature + np.diag(penalty), rhs))

    def dispersion(self, centre: Vector) -> float:
        """Sum of squared scores over sum of weights, at the centre."""
        if self.sample is not None:
            return self.sample.dispersion(self.loss, centre)
        squares, bend, _ = self.moments.tolist()
        if self.loss.quadratic:  # moved from the reference to the centre
            gap = centre - self.reference
            squares += float(gap @ self.curvature @ gap - 2.0 * gap @ self.score)
        return float(max(squares, 0.0) / max(bend, 1e-300))

    def _mistakes(self, eta: Vector, rows: Rows) -> float:
        return float(np.count_nonzero((eta > 0.0) != (rows.y > 0.5))) if self.loss.name == "logistic" else 1.0

    def to_state(self) -> dict[str, Any]:
        return {name: getattr(self, name).copy() for name in _ARRAYS} | {
            "weight": self.weight,
            "batches": self.batches.to_state(),
            "sample": None if self.sample is None else self.sample.to_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        for name in _ARRAYS:
            setattr(self, name, np.array(state[name], dtype=np.float64))
        self.weight = float(state["weight"])
        self.batches = ScoreBatches.from_state(state["batches"])
        if state["sample"] is not None:
            self.sample = RowSample.from_state(state["sample"])
