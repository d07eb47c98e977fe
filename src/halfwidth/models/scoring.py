"""`score` of models that keep their specification: the target may stand in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.docstrings import share_arguments
from halfwidth.errors import InputError
from halfwidth.models import sklearn_base

if TYPE_CHECKING:
    from halfwidth.models.base import StreamModel


SCORED = """
X : array_like of shape (n, p), a table, or a path
    The features; or the raw columns of a model of `halfwidth.fit`, or the path of a file with them.
y : array_like of shape (n,), optional
    The targets; taken from a table of raw columns when none are given.
sample_weight : array_like of shape (n,), optional
    The weights of the rows.
"""


@share_arguments(SCORED)
class _FindsTarget:
    """A score that takes the target from a table of raw columns."""

    def score(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return R squared of the predictions; for classes the share of rows whose class is predicted.

        Returns
        -------
        float
            1 for a perfect prediction.
        """
        plain: Any = super()
        return float(plain.score(X, observed(self, X, y), sample_weight))


class RegressorMixin(_FindsTarget, sklearn_base.RegressorMixin):
    """Scikit-learn's, with such a score."""


class ClassifierMixin(_FindsTarget, sklearn_base.ClassifierMixin):
    """Scikit-learn's, with such a score."""


def observed(model: StreamModel | Any, X: Any, y: ArrayLike | None) -> Any:
    """The targets given, or those in the table of raw columns X."""
    if y is not None:
        return y
    specification = getattr(model, "specification_", None)
    if specification is None or not specification.reads(X):
        raise InputError(
            "y must be given: only a model of halfwidth.fit finds the target by itself, in a table with raw columns or "
            "in a file"
        )
    classes = getattr(model, "classes_", None)
    if classes is None:
        return specification.targets(X, words=False)
    words = isinstance(classes[0], str)
    found = specification.targets(X, words=words)
    labels = classes if words else np.asarray(classes, dtype=np.float64)
    made = np.argmax(found[:, None] == labels, axis=1)
    wrong = found != labels[made]
    if wrong.any():
        raise InputError.of("y", f"hold the classes {classes.tolist()} only", found[wrong][0])
    return classes[made]
