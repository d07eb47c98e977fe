"""What the models take from scikit-learn, with types: scikit-learn has none, and an untyped base class hides errors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_unmasked
from halfwidth.errors import InputError, MissingExtra
from halfwidth.models.prediction import check_matrix

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "NotFittedError",
    "RegressorMixin",
    "check_classification_targets",
    "check_sample_weight",
    "matrix_of",
]

if TYPE_CHECKING:

    class BaseEstimator:
        """Parameters by name, cloning, and metadata routing."""

        n_features_in_: int
        feature_names_in_: NDArray[Any]

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin(BaseEstimator):
        """A score for regressions."""

        def score(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float: ...

    class ClassifierMixin(BaseEstimator):
        """A score for classifiers."""

        classes_: NDArray[Any]

        def score(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float: ...

    class NotFittedError(ValueError, AttributeError):
        """An estimator that has seen no rows."""

    def check_classification_targets(y: Any) -> None: ...
    def check_sample_weight(sample_weight: Any, X: Any, *, dtype: Any) -> NDArray[Any]: ...
    def validate_data(estimator: Any, X: Any, y: Any = ..., **options: Any) -> Any: ...

else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import _check_sample_weight as check_sample_weight
        from sklearn.utils.validation import validate_data
    except ImportError as error:
        raise MissingExtra.named("scikit-learn", "models") from error


def matrix_of(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """X, and y where it is given, as scikit-learn checks them; paths and dictionaries are refused by name."""
    check_matrix(X)
    check_unmasked("y", y)
    if isinstance(X, (str, os.PathLike)):
        raise InputError.of(
            "X",
            "be a matrix or a frame; halfwidth.fit reads files, and so does the model that it returns",
            os.fspath(X),
        )
    return validate_data(estimator, X, y, **options)
