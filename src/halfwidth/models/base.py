"""What all models share: scikit-learn's conventions outside, an engine inside (`halfwidth.models.engine_model`).

`fit` starts afresh, `partial_fit` goes on; nothing resets between chunks, and rows are taken in the order given. There
is no penalty unless `ridge` sets one: the objective is the mean loss plus ridge |coef|^2 / 2, the intercept free.
(scikit-learn's LogisticRegression penalises by default.)
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_real, check_unmasked
from halfwidth.errors import InputError, NotEnoughData, NotIdentified
from halfwidth.kernels.arrays import Vector
from halfwidth.models.basis import Basis
from halfwidth.models.identification import check_names, check_sizes, solvable
from halfwidth.models.pooling import PooledModel
from halfwidth.models.results import JSON_SCHEMA, RegressionResult
from halfwidth.models.run_status import FitWarning
from halfwidth.models.sklearn_base import check_sample_weight, matrix_of

PerRow = ArrayLike | None
"""One value for each row, or none."""


class StreamModel(PooledModel):
    """Base of the models: regressions in one pass, with standard errors for rows in time order."""

    _y_numeric: ClassVar[bool] = True

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: PerRow = None, offset: PerRow = None, groups: PerRow = None
    ) -> Self:
        """Forget everything and learn from these rows.

        Parameters
        ----------
        X : array_like of shape (n, p)
            The features, in time order.
        y : array_like of shape (n,)
            The targets.
        sample_weight : array_like of shape (n,), optional
            Probability weights: only their ratios matter, and rows of weight zero do not count.
        offset : array_like of shape (n,), optional
            Added to the linear predictor.
        groups : array_like of shape (n,), optional
            A label for every row, in any order: rows of a group may depend on each other, groups do not.

        Returns
        -------
        StreamModel
            The model itself.

        Warns
        -----
        FitWarning
            If something speaks against the result, as a whole or in some coefficients.
        """
        self._learn(X, y, sample_weight, offset, groups, fresh=True)
        doubts = self._warnings()
        if doubts:
            warnings.warn("\n".join(doubts), FitWarning, stacklevel=2)
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: PerRow = None,
        offset: PerRow = None, groups: PerRow = None,
    ) -> Self:  # fmt: skip
        """Go on learning from the next rows.

        Parameters
        ----------
        X, y : array_like
            The features and targets of the next rows, in time order.
        classes : array_like, optional
            The labels, for classifiers; ignored elsewhere.
        sample_weight, offset, groups : array_like of shape (n,), optional
            As `fit` takes them.

        Returns
        -------
        StreamModel
            The model itself.
        """
        fresh = not self.__sklearn_is_fitted__()
        return self._learn(X, y, sample_weight, offset, groups, fresh=fresh, classes=classes)

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, offset: Any, groups: Any, *, fresh: bool,
        classes: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        X, y = matrix_of(
            self, X, y, reset=fresh, dtype=np.float64, order="C", y_numeric=self._y_numeric, ensure_min_features=1
        )
        y = self._encode(y, classes, fresh)
        check_sizes(X, y)
        weight = None
        if sample_weight is not None:
            check_unmasked("sample_weight", sample_weight)
            weight = check_sample_weight(sample_weight, X, dtype=np.float64)
            if (weight < 0.0).any():
                raise InputError.of("sample_weight", "not be negative", float(weight.min()))
        if offset is not None:
            offset = check_real("offset", offset)
            if offset.shape != (len(X),) or not np.isfinite(offset).all():
                raise InputError.of("offset", f"be {len(X)} finite numbers", np.shape(offset))
        if fresh:
            if self._named():
                check_names(self.feature_names_in_.tolist(), self.fit_intercept)
            self._begin(X.shape[1])
        self._take(X, y, weight, offset, groups)
        return self

    def _encode(self, y: Any, classes: ArrayLike | None, fresh: bool) -> Vector:
        target: Vector = np.asarray(y, dtype=np.float64)
        self._check_target(target)
        return target

    @property
    def coef_(self) -> Vector:
        """The coefficients of the columns, on the user's scale."""
        return self._params()[int(self._has_intercept()) :]

    @property
    def intercept_(self) -> float | Vector:
        """The intercept; 0 without one."""
        return float(self._params()[0]) if self._has_intercept() else 0.0

    @property
    def status_(self) -> str:
        """The status of the run: ``"ok"``, or the name of what speaks against it, or against any inference."""
        flag = self._failure()
        with solvable():
            return self._engine.outcome(self._names())[0].status if flag is None else flag[0]

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Return the predicted mean, or quantile, of every row.

        Parameters
        ----------
        X : array_like of shape (n, p), a table, or a path
            A matrix with the columns of the design; or, for a model of `halfwidth.fit`, a table with the raw columns
            that it was fitted on (pandas, polars, Arrow, a dictionary of columns, a list of row dictionaries), or the
            path of a file, which is read as a whole (``halfwidth predict`` reads pieces).
        offset : array_like of shape (n,), optional
            Added to the linear predictor, in place of the column that `fit` took as offset.

        Returns
        -------
        ndarray of shape (n,)
            The predictions.
        """
        eta = self._eta(X, offset)
        return self._engine.loss.mean(eta)

    def inference(self, level: float = 0.95) -> RegressionResult:
        """Return standard errors, tests and intervals for rows in time order.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of tables and intervals.

        Returns
        -------
        RegressionResult
            Every coefficient has its own `df` and `status`; one that has no interval has NaN in its place.

        Raises
        ------
        NotEnoughData
            If there are too few rows.
        NotIdentified
            If the rows do not determine the coefficients; its `status` names the reason.
        """
        flag = self._failure()
        if flag is not None:
            name, text = flag
            raise NotEnoughData(text) if name == "too-few-rows" else NotIdentified(text, name)
        return self._result(level)

    def _result(self, level: float) -> RegressionResult:
        names = self._names()
        with solvable():
            core, basis = self._engine.outcome(names)
        return RegressionResult(
            core, names, hasattr(self, "feature_names_in_"), self.family, self._engine.loss, self._has_intercept(),
            replace(basis, ridge=self._engine.ridge, extra=dict(self._stream_facts)), level, self.specification_,
            self._engine.likelihood(), self._engine.kept(),
        )  # fmt: skip

    def report(self, level: float = 0.95) -> dict[str, Any]:
        """Return what is known, for JSON: with standard errors, or with a status that says why there are none.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the intervals.

        Returns
        -------
        dict
            The fields of `RegressionResult.to_dict`.
        """
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
        basis = Basis(self.method, self._engine.name, ridge=self._engine.ridge, extra=dict(self._stream_facts))
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
            "diagnostics": {**basis.to_dict(), "warnings": [flag[1]]},
        }

    def _eta(self, X: Any, offset: ArrayLike | None) -> Vector:
        self._check_fitted()
        known = self.specification_
        rows, offset = (X, offset) if known is None else known.design_rows(X, offset)
        if rows is X:
            rows = matrix_of(self, X, reset=False, dtype=np.float64)
        return self._linear_predictor(rows, offset)
