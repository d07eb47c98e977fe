"""The inside of a model: an engine, the names of its columns, what speaks against it, and its state.

What users call is in `halfwidth.models.base`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.docstrings import share_parameters
from halfwidth.errors import BadState, InputError, NotEnoughData
from halfwidth.families import Loss, make_loss
from halfwidth.kernels.arrays import Vector
from halfwidth.models.engine import Engine, engine_from_state, make_engine
from halfwidth.models.identification import INTERCEPT, skipped_text, solvable
from halfwidth.models.model_state import MODEL_SCHEMA, OPTIONS_OF
from halfwidth.models.sklearn_base import BaseEstimator, NotFittedError
from halfwidth.state.guard import guard_of
from halfwidth.state.schema import build, validate
from halfwidth.streams import Specification


class EngineModel(BaseEstimator):
    """A model around an engine; the subclasses name a family.

    Parameters
    ----------
    fit_intercept : bool, default True
        Whether an intercept is fitted; it is not penalised.
    ridge : float, default 0.0
        The penalty: the objective is the mean loss plus ridge |coef|^2 / 2.
    method : str, default "auto"
        The method of the standard errors: ``"auto"``, or a method of ``halfwidth methods`` that watches iterates.
    engine : {"auto", "newton", "sgd"}, default "auto"
        What computes the estimate: renewable Newton, or averaged SGD for many columns.
    """

    family: ClassVar[str]
    _engine: Engine

    def __init__(
        self, *, fit_intercept: bool = True, ridge: float = 0.0, method: str = "auto", engine: str = "auto"
    ) -> None:
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.method = method
        self.engine = engine

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        share_parameters(cls)

    @property
    def n_seen_(self) -> int:
        """How many rows were learned from."""
        self._check_fitted()
        return self._engine.n_seen

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, atomically and without pickle.

        Parameters
        ----------
        path : str or path-like
            The file; `load` gives the model back, bit for bit.
        """
        from halfwidth.state.checkpoint import write_checkpoint

        write_checkpoint(path, self.to_state())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a model of this class; `halfwidth.load` loads one of any class.

        Parameters
        ----------
        path : str or path-like
            The file that `save` wrote.

        Returns
        -------
        Self
            The model; it goes on learning where it stood.
        """
        from halfwidth.state.checkpoint import read_checkpoint

        return cls.from_state(read_checkpoint(path))

    def to_state(self) -> dict[str, Any]:
        """Return the model as plain numbers, texts and arrays.

        Returns
        -------
        dict
            What `from_state` takes.
        """
        self._check_fitted()
        state: dict[str, Any] = {
            "kind": "model",
            "version": MODEL_SCHEMA.version,
            "class": type(self).__name__,
            "params": self.get_params() | {"fit_intercept": bool(self.fit_intercept), "ridge": float(self.ridge)},
            "n_features": int(self.n_features_in_),
            "feature_names": [str(name) for name in self.feature_names_in_] if self._named() else None,
            "passes": self._passes,
            "stream_facts": self._stream_facts,
            "engine": self._engine.to_state(),
            "specification": None if self.specification_ is None else self.specification_.to_state(),
        }
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Build the model that `to_state` described.

        Parameters
        ----------
        state : dict
            The state; one that breaks a rule of its schema raises `BadState`.

        Returns
        -------
        StreamModel
            The model.
        """
        validate(state, MODEL_SCHEMA)
        if state["class"] != cls.__name__:
            raise BadState.at("state.class", f"be {cls.__name__!r}", state["class"])
        return build(cls.__name__, lambda: cls._restored(state))

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Self:
        model = cls(**state["params"])
        model.n_features_in_ = state["n_features"]
        if state["feature_names"] is not None:
            model.feature_names_in_ = np.array(state["feature_names"], dtype=object)
        model._passes, model._stream_facts = state["passes"], state["stream_facts"]
        model._engine = engine_from_state(state["engine"])
        known = state["specification"]
        model.specification_ = None if known is None else Specification.from_state(known)
        return model

    def _take(self, X: Vector, y: Vector, weight: Vector | None, offset: Vector | None, group: Any) -> None:
        """Learn from checked rows: all of them, or the model is marked as broken."""
        self._check_target(y)
        with guard_of(self):
            self._engine.consume(X, y, weight, offset, group)

    def _check_target(self, y: Vector) -> None:
        """Refuse what the family does not allow, where the reader of a stream has not done so already."""
        loss = make_loss(self.family)
        allowed = loss.allows(y)
        if not allowed.all():
            row = int(np.argmin(allowed))
            raise InputError(f"y must {loss.target}; got {float(y[row])} in row {row}, counted from 0")

    def _begin(self, columns: int, *, intercept: bool = True) -> None:
        """A fresh engine for so many columns; a formula may have said that there is no intercept."""
        guard_of(self).renew()
        self._passes = 1
        self._stream_facts: dict[str, Any] = {}
        self.specification_: Specification | None = None
        self._engine = make_engine(
            columns,
            self._make_loss(),
            intercept=self.fit_intercept and intercept,
            ridge=self.ridge,
            engine=self.engine,
            method=self.method,
        )

    def _add_columns(self, names: Sequence[str], rows: Vector) -> None:
        """Go on with more columns; in all rows so far the new ones were zero. `rows` are the next, with them."""
        known: int = self.n_features_in_
        grow = getattr(self._engine, "add_columns", None)
        if grow is None:
            late = ", ".join(names[known:])
            raise InputError(
                f"{late}: first seen after row {self._engine.n_seen:,}, and engine {self._engine.name!r} cannot add "
                "columns on the way; use engine='newton', or refuse such levels: unknown_level='error'"
            )
        new = rows[:, known:]
        grow(np.abs(new[np.argmax(new != 0.0, axis=0), np.arange(new.shape[1])]))  # the first value, in any chunks
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)

    def _start_next_pass(self) -> None:
        """Read the same rows once more, expanded at the estimate of the last pass."""
        self._engine = self._engine.second_pass()
        self._passes += 1

    def _make_loss(self) -> Loss:
        return make_loss(self.family, **{name: getattr(self, name) for name in OPTIONS_OF.get(self.family, ())})

    def _linear_predictor(self, rows: Vector, offset: ArrayLike | None) -> Vector:
        params = self._params()
        k = int(self._has_intercept())
        eta = rows @ params[k:] + (params[0] if k else 0.0)
        return np.asarray(eta if offset is None else eta + np.asarray(offset, dtype=np.float64))

    def _params(self) -> Vector:
        self._check_fitted()
        with solvable():
            return self._engine.params()

    def _failure(self) -> tuple[str, str] | None:
        self._check_fitted()
        skipped = skipped_text(self._stream_facts)
        if skipped and not self._engine.n_seen:
            raise NotEnoughData(f"no row could be used: {skipped}. Repair the rows, or leave such columns out")
        with solvable():
            flag = self._engine.failure(self._names())
        if flag is not None and flag[0] == "too-few-rows" and skipped:
            return flag[0], f"{flag[1]} ({skipped})"
        return flag

    def _warnings(self) -> tuple[str, ...]:
        """What speaks against the run, or against any of its coefficients."""
        flag = self._failure()
        if flag is not None:
            return (f"{flag[0]}: {flag[1]}",)
        with solvable():
            diagnostics = self._engine.outcome(self._names())[0].diagnostics
        return (*(f"{name}: {text}" for name, text in diagnostics.flags), *diagnostics.coefficient_advice)

    def _has_intercept(self) -> bool:
        self._check_fitted()
        return self._engine.intercept

    def _named(self) -> bool:
        return hasattr(self, "feature_names_in_")

    def _names(self) -> tuple[str, ...]:
        columns = self.feature_names_in_ if self._named() else [f"x{j}" for j in range(self.n_features_in_)]
        return (*([INTERCEPT] if self._has_intercept() else []), *(str(name) for name in columns))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_engine")

    def _check_fitted(self) -> None:
        guard_of(self).check()
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} has seen no rows yet; call fit or partial_fit first")
