"""Sums over chunks that the regression of the feedback needs, from notes that are folded in by one product.

With v = (g, x, 1) for the gradient sum and the deployed theta of a chunk, relative to the origin, and z its dither: the
sums of v v', of z v' and of z z'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.arguments import Notes
from halfwidth.learners.auto.engine_schemas import NOTES


@dataclass(frozen=True)
class Moments:
    """The sums; `renewals` is the sum of m eta over the chunks."""

    renewals: float
    products: Vector
    """(2d + 1, 2d + 1): of v v'."""
    dither_products: Vector
    """(d, 2d + 1): of z v'."""
    dither_spread: Vector
    """(d, d): of z z'."""

    @classmethod
    def none(cls, dim: int) -> Self:
        size = 2 * dim + 1
        return cls(0.0, np.zeros((size, size)), np.zeros((dim, size)), np.zeros((dim, dim)))

    @property
    def chunks(self) -> int:
        return int(self.products[-1, -1])

    def plus(self, gradients: Vector, offsets: Vector, dithers: Vector, renewals: Vector) -> Moments:
        """With more chunks, one in each row."""
        v = np.concatenate([gradients, offsets, np.ones((len(gradients), 1))], axis=1)
        dithered, spread = self.dither_products, self.dither_spread
        if dithers.any():
            dithered, spread = dithered + dithers.T @ v, spread + dithers.T @ dithers
        return Moments(self.renewals + float(renewals.sum()), self.products + v.T @ v, dithered, spread)

    def centred(self, chunk_rows: int, *, base: bool = False) -> tuple[Vector, Vector, Vector]:
        """C, V and the sum of g g', about their means; `base` takes theta without its dither."""
        d = len(self.dither_spread)
        products = self.products
        if base:
            products = products.copy()
            products[:, d:-1] -= self.dither_products.T
            products[d:-1] -= self.dither_products
            products[d:-1, d:-1] += self.dither_spread
        last = products[:, -1:]
        centred = products - last @ last.T / products[-1, -1]
        return centred[:d, d:-1], chunk_rows * centred[d:-1, d:-1], centred[:d, :d]

    def dithered_gradients(self) -> Vector:
        """The sum of (g - its mean) z'."""
        d = len(self.dither_spread)
        mean = self.products[:d, -1] / self.chunks
        return np.asarray(self.dither_products[:, :d].T - np.outer(mean, self.dither_products[:, -1]))

    def dithered_bases(self) -> Vector:
        """The sum of (x - z - their mean) z'."""
        d = len(self.dither_spread)
        sums = self.dither_products[:, -1]
        mean = (self.products[d:-1, -1] - sums) / self.chunks
        return np.asarray(self.dither_products[:, d:-1].T - self.dither_spread - np.outer(mean, sums))

    def to_state(self) -> dict[str, Any]:
        return {
            "renewals": self.renewals,
            "products": self.products.copy(),
            "dither_products": self.dither_products.copy(),
            "dither_spread": self.dither_spread.copy(),
        }


class FeedbackNotes:
    """What the loop notes of every chunk, folded into the moments whenever the notes are full."""

    def __init__(self, dim: int) -> None:
        self.pages = Notes(*(np.zeros((NOTES, dim)) for _ in range(3)))
        self._renewals = np.zeros(NOTES)
        self.clear()

    def clear(self) -> None:
        self.noted = 0
        self._moments = Moments.none(self.pages.gradient.shape[1])

    @property
    def free_chunks(self) -> int:
        """How many chunks can be noted before the next fold."""
        return NOTES - self.noted

    def blank(self) -> Notes:
        """Where the loop writes the next chunks."""
        return Notes(*(page[self.noted :] for page in self.pages))

    def note(self, renewals: Vector, moved: Vector, bends: Vector) -> None:
        """A chunk was written for each of the `renewals`, m times its step; they are put back to the origin.

        `moved` is point - origin, and `bends` is m H moved: what that changed in the gradient of a chunk.
        """
        new = slice(self.noted, self.noted + len(renewals))
        self.pages.gradient[new] -= bends
        self.pages.offset[new] += moved
        self._renewals[new] = renewals
        self.noted = new.stop
        if self.noted == NOTES:
            self._moments, self.noted = self.moments(), 0

    def moments(self) -> Moments:
        """The sums over every chunk so far."""
        return self._moments.plus(*(page[: self.noted] for page in (*self.pages, self._renewals)))

    def to_state(self) -> dict[str, Any]:
        pages = {name: page[: self.noted].copy() for name, page in self.pages._asdict().items()}
        return {"pages": pages, "page_renewals": self._renewals[: self.noted].copy(), **self._moments.to_state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        self.noted = len(state["page_renewals"])
        for name, page in self.pages._asdict().items():
            page[: self.noted] = state["pages"][name]
        self._renewals[: self.noted] = state["page_renewals"]
        names = ("products", "dither_products", "dither_spread")
        arrays = (np.array(state[name], dtype=np.float64) for name in names)
        self._moments = Moments(float(state["renewals"]), *arrays)
