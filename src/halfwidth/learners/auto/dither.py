"""The dither: known random signs that are added to the deployed theta while feedback is in doubt.

On chunk c, with eta_c = k^-0.505 (but at most as large as steps may be) and L the root of the covariance of what a row
adds to a Newton step,

    z_c = sqrt(eta_c / 2) L s_c,   s_c in {-1, 1}^d,

so that its covariance is that of theta's own noise under such steps, were rows independent. The signs are a function of
a key and of the number of the chunk: a resumed run draws the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from halfwidth.kernels.arrays import Vector

_BLOCK = 128


class Dither:
    """Nothing, until a shape L is given."""

    def __init__(self, dim: int, key: int) -> None:
        self.dim, self.key = dim, key
        self.root: Vector | None = None

    def shape(self, root: Vector | None) -> None:
        """Dither in this shape from now on, or not at all."""
        self.root = None if root is None else np.sqrt(0.5) * root

    def ahead(self, first: int, etas: Vector) -> Vector:
        """The dithers of the chunks from number `first` on, one for each eta (chunks, d)."""
        if self.root is None:
            return np.zeros((len(etas), self.dim))
        blocks = range(first // _BLOCK, (first + len(etas) - 1) // _BLOCK + 1)
        shaped = [self.signs(block) @ self.root.T for block in blocks]  # whole blocks: the same bits, however cut
        start = first - blocks.start * _BLOCK
        return np.asarray(np.sqrt(etas)[:, None] * np.concatenate(shaped)[start : start + len(etas)])

    def signs(self, block: int) -> Vector:
        """The signs of a block of 128 chunks (128, d)."""
        drawn = np.random.default_rng([self.key, block]).integers(0, 2, (_BLOCK, self.dim))
        return np.asarray(2.0 * drawn - 1.0, dtype=np.float64)

    def to_state(self) -> dict[str, Any]:
        return {"key": self.key, "root": None if self.root is None else self.root.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self.key = int(state["key"])
        self.root = None if state["root"] is None else np.array(state["root"], dtype=np.float64)
