"""What classifiers share, and the model for two classes: logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.docstrings import share_arguments
from halfwidth.errors import InputError
from halfwidth.families.logistic import Logistic
from halfwidth.kernels.arrays import Vector
from halfwidth.models.base import StreamModel
from halfwidth.models.results import RegressionResult
from halfwidth.models.scoring import ClassifierMixin
from halfwidth.models.sklearn_base import check_classification_targets


class Classifier(ClassifierMixin, StreamModel):
    """A model whose targets are labels."""

    _y_numeric: ClassVar[bool] = False

    def to_state(self) -> dict[str, Any]:
        return super().to_state() | {"classes": np.array(self.classes_.tolist())}

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Self:
        model = super()._restored(state)
        model.classes_ = state["classes"]
        return model

    def _result(self, level: float) -> RegressionResult:
        found = super()._result(level)
        basis = replace(found.basis, family_facts=self._class_facts())
        return replace(found, basis=basis, classes=tuple(self.classes_.tolist()))

    def _class_facts(self) -> dict[str, str]:
        """What the coefficients compare: the baseline and, of two classes, the one whose log odds are linear."""
        first, *others = (str(label) for label in self.classes_)
        return {"baseline": first} | ({"modelled_class": others[0]} if len(others) == 1 else {})

    def _take_labels(self, labels: Sequence[Any] | None) -> None:
        """Take the labels of a stream, as far as they are known."""
        if labels is not None:
            self.classes_ = np.array(labels)


@share_arguments("""
    X : array_like of shape (n, p)
        The features.
    offset : array_like of shape (n,), optional
        Added to the log odds.
""")
class LogisticRegression(Classifier):
    """Logistic regression in one pass, with standard errors for rows in time order.

    The second of the two sorted labels is the class whose log odds are linear. `partial_fit` takes the labels from its
    first chunk; pass `classes=` if that chunk may hold only one of them. There is no penalty unless `ridge` sets one;
    scikit-learn's LogisticRegression penalises by default.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two labels, sorted.
    coef_ : ndarray of shape (1, p)
        The coefficients of the columns.

    Examples
    --------
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4_000, 1))
    >>> y = rng.random(4_000) < 1.0 / (1.0 + np.exp(-0.5 - X[:, 0]))
    >>> model = hw.LogisticRegression().fit(X, y)
    >>> model.inference().interval().covers([0.5, 1.0]).tolist()
    [True, True]
    """

    family: ClassVar[str] = "logistic"

    @property
    def coef_(self) -> Vector:
        """The coefficients as one row, as scikit-learn has them."""
        return super().coef_[None]

    @property
    def intercept_(self) -> Vector:
        """The intercept, as scikit-learn has it."""
        return np.atleast_1d(super().intercept_)

    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> Vector:
        """Return the log odds of the second class.

        Returns
        -------
        ndarray of shape (n,)
            One for each row.
        """
        return self._eta(X, offset)

    def predict_proba(self, X: ArrayLike, offset: ArrayLike | None = None) -> Vector:
        """Return the probabilities of the two classes.

        Returns
        -------
        ndarray of shape (n, 2)
            In the order of `classes_`.
        """
        p = Logistic().mean(self._eta(X, offset))
        return np.column_stack([1.0 - p, p])

    def predict_log_proba(self, X: ArrayLike, offset: ArrayLike | None = None) -> Vector:
        """Return the logarithms of the probabilities of the two classes.

        Returns
        -------
        ndarray of shape (n, 2)
            In the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset))

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Return the more probable class of each row.

        Returns
        -------
        ndarray of shape (n,)
            Labels of `classes_`.
        """
        second = self._eta(X, offset) > 0.0
        return np.asarray(self.classes_[second.astype(np.intp)])

    def _take_labels(self, labels: Sequence[Any] | None) -> None:
        super()._take_labels(labels or (0, 1))

    def _encode(self, y: Any, classes: ArrayLike | None, fresh: bool) -> Vector:
        check_classification_targets(y)
        if fresh:
            self.classes_ = _two_classes(np.unique(y if classes is None else classes))
        known = np.isin(y, self.classes_)
        if not known.all():
            found = np.asarray(y)[~known][0]
            raise InputError.of("y", f"hold the classes {self.classes_.tolist()} only", found)
        return np.asarray(y == self.classes_[1], dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _two_classes(seen: Any) -> Any:
    if len(seen) == 2:
        return seen
    if len(seen) > 2:
        raise InputError(
            f"Only binary classification is supported. The type of the target is multiclass: y must hold 2 classes; "
            f"got {len(seen)}"
        )
    raise InputError(
        f"y must hold two classes; got only one class, {seen.tolist()}. Pass classes=[...] to partial_fit if the other "
        "comes later"
    )
