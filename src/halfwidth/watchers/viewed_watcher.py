"""What all watchers with a view share: the view in their state, and the rules of pooling."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from halfwidth.docstrings import share_parameters
from halfwidth.errors import CannotPool, NotEnoughData
from halfwidth.watchers.base import State, Watcher
from halfwidth.watchers.view import View, ViewName


class ViewedWatcher(Watcher):
    """A watcher that keeps the full covariance, its diagonal, or a projection of it.

    Parameters
    ----------
    dim : int
        Dimension of the iterates.
    view : {"full", "diagonal", "projection"}
        What is kept of the covariance.
    projection : array_like of shape (p, dim), optional
        The directions that are kept, exactly when `view="projection"`.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        share_parameters(cls)

    def __init__(self, dim: int, view: ViewName, projection: ArrayLike | None) -> None:
        self._view = View.of(view, dim, projection)
        self.dim = int(dim)

    @property
    def _diagonal(self) -> bool:
        return self._view.name == "diagonal"

    def _need(self, rows: int, what: str) -> None:
        if self.n_seen < rows:
            raise NotEnoughData.rows(what, self.n_seen, rows)

    def _head(self) -> State:
        """Kind, version and view, as every state has them."""
        projection = None if self._view.projection is None else self._view.projection.copy()
        head = {"kind": self.kind, "version": self.version, "dim": self.dim}
        return head | {"view": self._view.name, "projection": projection}

    def _refuse_update(self) -> None:
        raise CannotPool("a pooled watcher can be read and pooled again, not updated")

    def _settings(self) -> dict[str, Any]:
        """The arguments of the constructor besides the dimension and the view."""
        return {}

    def _blank(self) -> Self:
        """A fresh watcher of the same settings and view."""
        return type(self)(self.dim, view=self._view.name, projection=self._view.projection, **self._settings())

    def _check_partner(self, other: Self, least_rows: int) -> None:
        """Raise unless the other watcher can be pooled with this one."""
        if type(other) is not type(self):
            raise CannotPool(f"cannot pool {self.kind} with {type(other).__name__}")
        if self._settings() != other._settings() or not self._view.same_as(other._view):
            raise CannotPool("cannot pool watchers with different settings, dimensions or views")
        for part in (self, other):
            part._need(least_rows, "pooling")
