"""Sums over chunks that the regression of the feedback needs, from notes that are folded in by one product.

For a chunk with the gradient sum g, while theta was x from the origin, of which z was dither, let x~ and z~ be their
*traces*, moving averages over past chunks that forget by the factor exp(-2 m eta) per chunk, twice as fast as theta
renews itself. With v = (g, x, x~ - x, 1) and w = (z, z~ - z): the sums of v v', of w v' and of w w'.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import kernel
from halfwidth.learners.auto.absorb import follow
from halfwidth.learners.auto.arguments import Notes
from halfwidth.learners.auto.engine_schemas import NOTES


@dataclass(frozen=True)
class Moments:
    """The sums; `renewals` is the sum of m eta over the chunks."""

    renewals: float
    products: Vector
    """(3d + 1, 3d + 1): of v v'."""
    dither_products: Vector
    """(2d, 3d + 1): of w v'."""
    dither_spread: Vector
    """(2d, 2d): of w w'."""

    @classmethod
    def none(cls, dim: int) -> Self:
        size = 3 * dim + 1
        shapes = ((size, size), (2 * dim, size), (2 * dim, 2 * dim))
        return cls(0.0, *(np.zeros(shape) for shape in shapes))

    @property
    def dim(self) -> int:
        return len(self.dither_spread) // 2

    @property
    def chunks(self) -> int:
        return int(self.products[-1, -1])

    def plus(self, gradients: Vector, offsets: Vector, dithers: Vector, renewals: Vector) -> Moments:
        """With more chunks, one in each row; offsets and dithers stand beside their traces less themselves (2d)."""
        v = np.concatenate([gradients, offsets, np.ones((len(gradients), 1))], axis=1)
        dithered, spread = self.dither_products, self.dither_spread
        if dithers.any():
            dithered, spread = dithered + dithers.T @ v, spread + dithers.T @ dithers
        return Moments(
            self.renewals + float(renewals.sum()),
            self.products + v.T @ v,
            dithered,
            spread,
        )

    def with_late(self, share: float) -> Moments:
        """The same with x + share (x~ - x) in place of x."""
        d, mixed = self.dim, np.eye(3 * self.dim + 1)
        mixed[d : 2 * d, 2 * d : 3 * d] = share * np.eye(d)
        return replace(self, products=mixed @ self.products @ mixed.T)

    def centred(self, chunk_rows: int, *, base: bool = False, slow: bool = False) -> tuple[Vector, Vector, Vector]:
        """C, V and the sum of g g', about their means, for the regression on x, and on its trace if `slow`.

        `base` takes theta without its dither.
        """
        d = self.dim
        products = self.products
        if base:
            products = products.copy()
            products[:, d:-1] -= self.dither_products.T
            products[d:-1] -= self.dither_products
            products[d:-1, d:-1] += self.dither_spread
        last = products[:, -1:]
        centred = products - last @ last.T / products[-1, -1]
        regressors = slice(d, 3 * d if slow else 2 * d)
        return centred[:d, regressors], chunk_rows * centred[regressors, regressors], centred[:d, :d]

    def dithered_gradients(self) -> Vector:
        """The sum of (g - its mean) w'."""
        d = self.dim
        mean = self.products[:d, -1] / self.chunks
        return np.asarray(self.dither_products[:, :d].T - np.outer(mean, self.dither_products[:, -1]))

    def dithered_bases(self) -> Vector:
        """The sum of (u - w - their mean) w', with u = (x, x~ - x)."""
        d = self.dim
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


@kernel
def follow_chunks(deployed: Vector, renewals: Vector, trace: Vector, lags: Vector) -> None:
    """`follow` over chunks, one in each row."""
    for i in range(deployed.shape[0]):
        follow(deployed[i], renewals[i], trace, lags[i])


class FeedbackNotes:
    """What the loop notes of every chunk, folded into the moments whenever the notes are full."""

    def __init__(self, dim: int) -> None:
        self.pages = Notes(*(np.zeros((NOTES, dim)) for _ in Notes._fields))
        self._renewals = np.zeros(NOTES)
        self._lags = np.zeros((NOTES, dim))  # of the dither: its trace less itself
        self.clear()

    def clear(self) -> None:
        dim = self.pages.gradient.shape[1]
        self.noted = 0
        self._moments = Moments.none(dim)
        self._trace: Vector | None = None  # of the dither

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
        self._follow_dither(new)
        self.noted = new.stop
        if self.noted == NOTES:
            self._moments, self.noted = self.moments(), 0

    def _follow_dither(self, new: slice) -> None:
        """The trace of the dither over the new chunks, as `absorb` follows that of theta."""
        dithers = self.pages.dither[new]
        if self._trace is None:
            self._trace = dithers[0].copy()
        follow_chunks(dithers, self._renewals[new], self._trace, self._lags[new])

    def moments(self) -> Moments:
        """The sums over every chunk so far."""
        used = slice(0, self.noted)
        page = Notes(*(page[used] for page in self.pages))
        return self._moments.plus(
            page.gradient,
            np.concatenate([page.offset, page.lag], axis=1),
            np.concatenate([page.dither, self._lags[used]], axis=1),
            self._renewals[used],
        )

    def to_state(self) -> dict[str, Any]:
        used = slice(0, self.noted)
        return {
            "pages": {name: page[used].copy() for name, page in self.pages._asdict().items()},
            "lags": self._lags[used].copy(),
            "trace": None if self._trace is None else self._trace.copy(),
            "page_renewals": self._renewals[used].copy(),
            **self._moments.to_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        self.noted = len(state["page_renewals"])
        for name, page in self.pages._asdict().items():
            page[: self.noted] = state["pages"][name]
        self._lags[: self.noted] = state["lags"]
        self._trace = None if state["trace"] is None else np.array(state["trace"], dtype=np.float64)
        self._renewals[: self.noted] = state["page_renewals"]
        names = ("products", "dither_products", "dither_spread")
        arrays = (np.array(state[name], dtype=np.float64) for name in names)
        self._moments = Moments(float(state["renewals"]), *arrays)
