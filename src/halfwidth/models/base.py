"""What all models share: scikit-learn's conventions outside, an engine inside.

`fit` starts anew, `partial_fit` goes on; nothing resets between chunks, and rows are taken in the order given. There
is no penalty unless `ridge` says so: the objective is the mean loss plus ridge |coef|^2 / 2, the intercept free.
(scikit-learn's LogisticRegression penalises by default.)
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import BadState, InputError, MissingExtra, NotEnoughData, NotIdentified
from halfwidth.families import Loss, make_loss
from halfwidth.models.engine import Engine, engine_from_state, make_engine
from halfwidth.models.identification import check_sizes, skipped_text
from halfwidth.models.model_state import MODEL_SCHEMA
from halfwidth.models.results import JSON_SCHEMA, RegressionResult
from halfwidth.state.guard import guard_of
from halfwidth.state.schema import build, validate
from halfwidth.streams import Specification

try:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import _check_sample_weight, validate_data
except ImportError as error:
    raise MissingExtra.named("scikit-learn", "models") from error

Vector = NDArray[np.float64]

INTERCEPT = "Intercept"


class FitWarning(UserWarning):
    """A fit that is doubtful, as a whole or in some coefficients; the message begins with the name of the doubt."""


class StreamModel(BaseEstimator):  # type: ignore[misc]
    """Base of the models; the subclasses name a family."""

    family: ClassVar[str]
    _engine: Engine
    n_features_in_: int

    def __init__(
        self, *, fit_intercept: bool = True, ridge: float = 0.0, method: str = "auto", engine: str = "auto"
    ) -> None:
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.method = method
        self.engine = engine

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Forget everything and learn from these rows; warns of what speaks against the result.

        `sample_weight` are probability weights: only their ratios matter, and rows of weight zero do not count.
        `groups` takes a label for every row, in any order: rows of a group may depend on each other.
        """
        self._learn(X, y, sample_weight, offset, groups, fresh=True)
        doubts = self._warnings()
        if doubts:
            warnings.warn("\n".join(doubts), FitWarning, stacklevel=2)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Go on learning from the next rows. `classes` is for classifiers and ignored elsewhere."""
        fresh = not self.__sklearn_is_fitted__()
        return self._learn(X, y, sample_weight, offset, groups, fresh=fresh, classes=classes)

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        offset: Any,
        groups: Any,
        *,
        fresh: bool,
        classes: ArrayLike | None = None,
    ) -> Self:
        X, y = validate_data(
            self, X, y, reset=fresh, dtype=np.float64, order="C", y_numeric=self._y_numeric, ensure_min_features=1
        )
        y = self._encode(y, classes, fresh)
        check_sizes(X, y)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
            if (weight < 0.0).any():
                raise InputError.of("sample_weight", "not be negative", float(weight.min()))
        if offset is not None:
            offset = np.asarray(offset, dtype=np.float64)
            if offset.shape != (len(X),) or not np.isfinite(offset).all():
                raise InputError.of("offset", f"be {len(X)} finite numbers", np.shape(offset))
        if fresh:
            self._begin(X.shape[1])
        self._take(X, y, weight, offset, groups)
        return self

    def _take(self, X: Vector, y: Vector, weight: Vector | None, offset: Vector | None, group: Any) -> None:
        """Learn from checked rows: all of them, or the model is marked as broken."""
        self._check_target(y)
        with guard_of(self):
            self._engine.consume(X, y, weight, offset, group)

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

    _y_numeric: ClassVar[bool] = True

    def _make_loss(self) -> Loss:
        return make_loss(self.family)

    def _encode(self, y: Any, classes: ArrayLike | None, fresh: bool) -> Vector:
        target: Vector = np.asarray(y, dtype=np.float64)
        self._check_target(target)
        return target

    def _check_target(self, y: Vector) -> None:
        """Refuse what the family does not allow, where the reader of a stream has not done so already."""
        loss = make_loss(self.family)
        allowed = loss.allows(y)
        if not allowed.all():
            raise InputError.of("y", loss.target, float(y[~allowed][0]))

    @property
    def coef_(self) -> Vector:
        """The coefficients of the columns, on the user's scale."""
        return self._params()[int(self._has_intercept()) :]

    @property
    def intercept_(self) -> float | Vector:
        return float(self._params()[0]) if self._has_intercept() else 0.0

    @property
    def n_seen_(self) -> int:
        """How many rows were learned from."""
        self._check_fitted()
        return self._engine.n_seen

    @property
    def status_(self) -> str:
        """The status of the run: `ok`, or the name of what speaks against it, or against any inference."""
        flag = self._failure()
        return self._engine.outcome(self._names())[0].status if flag is None else flag[0]

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> NDArray[Any]:
        """The predicted mean (or quantile) of every row.

        Parameters
        ----------
        X
            A matrix with the columns of the design; or, for a model of `halfwidth.fit`, a table with the raw columns
            that it was fitted on (pandas, polars, Arrow, a dictionary of columns, a list of row dictionaries).
        offset
            Added to the linear predictor, in place of the column that `fit` took as offset.
        """
        eta = self._eta(X, offset)
        return self._engine.loss.mean(eta)

    def inference(self, level: float = 0.95) -> RegressionResult:
        """Standard errors, tests and intervals for rows in time order; raises if the rows do not allow any.

        Every coefficient has its own `df` and `status`; one that has no interval has NaN in its place.
        """
        self._check_fitted()
        flag = self._failure()
        if flag is not None:
            name, text = flag
            raise NotEnoughData(text) if name == "too-few-rows" else NotIdentified(text, name)
        return self._result(level)

    def _result(self, level: float) -> RegressionResult:
        names = self._names()
        core, basis = self._engine.outcome(names)
        return RegressionResult(
            core, names, hasattr(self, "feature_names_in_"), self.family, self._engine.loss, self._has_intercept(),
            replace(basis, extra=dict(self._stream_facts)), level, self.specification_, self._engine.likelihood(),
        )  # fmt: skip

    def report(self, level: float = 0.95) -> dict[str, Any]:
        """What is known, for JSON: with standard errors, or with a status that says why there are none."""
        flag = self._failure()
        if flag is None:
            return self.inference(level).to_dict()
        if self._engine.early_failure() is None:
            return self._result(level).to_dict() | {"status": flag[0]}
        unknown: dict[str, Any] = dict.fromkeys(("std_err", "t", "p", "ci_lower", "ci_upper", "df"))
        unknown |= {"status": "unidentified", "flags": ["unidentified"]}
        known = self.n_seen_ > 0
        values = self._params() if known else np.full(len(self._names()), np.nan)
        pairs = zip(self._names(), values, strict=True)
        return {
            "schema": JSON_SCHEMA,
            "n": self.n_seen_,
            "family": self.family,
            "method": self.method,
            "level": level,
            "status": flag[0],
            "coefficients": [
                {"name": name, "coef": float(value) if np.isfinite(value) else None, **unknown} for name, value in pairs
            ],
            "diagnostics": {"engine": self._engine.name, **self._stream_facts, "warnings": [flag[1]]},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, atomically and without pickle; `load` gives it back, bit for bit."""
        from halfwidth.state.checkpoint import write_checkpoint

        write_checkpoint(path, self.to_state())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The model that `save` wrote; it goes on learning where it stood."""
        from halfwidth.state.checkpoint import read_checkpoint

        return cls.from_state(read_checkpoint(path))

    def to_state(self) -> dict[str, Any]:
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
        """The model that `to_state` described; `BadState` if the state breaks a rule of its schema."""
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

    def _eta(self, X: Any, offset: ArrayLike | None) -> Vector:
        self._check_fitted()
        if self.specification_ is not None and self.specification_.reads(X):
            made = self.specification_.rows(X, with_offset=offset is None)
            rows = made.X
            if made.offset is not None:
                offset = made.offset + (0.0 if offset is None else np.asarray(offset, dtype=np.float64))
        else:
            rows = validate_data(self, X, reset=False, dtype=np.float64)
        return self._linear_predictor(rows, offset)

    def _linear_predictor(self, rows: Vector, offset: ArrayLike | None) -> Vector:
        params = self._params()
        k = int(self._has_intercept())
        eta = rows @ params[k:] + (params[0] if k else 0.0)
        return np.asarray(eta if offset is None else eta + np.asarray(offset, dtype=np.float64))

    def _params(self) -> Vector:
        self._check_fitted()
        return self._engine.params()

    def _failure(self) -> tuple[str, str] | None:
        self._check_fitted()
        skipped = skipped_text(self._stream_facts)
        if skipped and not self._engine.n_seen:
            raise NotEnoughData(f"no row could be used: {skipped}. Repair the rows, or leave such columns out")
        flag = self._engine.failure(self._names())
        if flag is not None and flag[0] == "too-few-rows" and skipped:
            return flag[0], f"{flag[1]} ({skipped})"
        return flag

    def _warnings(self) -> tuple[str, ...]:
        """What speaks against the run, or against any of its coefficients."""
        flag = self._failure()
        if flag is not None:
            return (f"{flag[0]}: {flag[1]}",)
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
