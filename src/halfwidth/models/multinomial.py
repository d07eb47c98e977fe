"""The model for several classes: multinomial logistic regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import InputError
from halfwidth.families import Loss, make_loss
from halfwidth.families.multinomial import MOST_CLASSES, probabilities
from halfwidth.kernels.arrays import Vector
from halfwidth.models.classifier import Classifier
from halfwidth.models.sklearn_base import check_classification_targets


class MultinomialRegression(Classifier):
    """Multinomial logistic regression in one pass, with standard errors for rows in time order.

    The first of the sorted labels is the baseline: for every other class there is an equation for its log odds against
    the baseline, and the coefficients come equation by equation, called ``label:column``. `partial_fit` takes the
    labels from its first chunk; pass `classes=` if that chunk may lack some. An offset has no meaning here and is
    refused, and so is ``engine="sgd"``; there may be 512 coefficients.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted; the first is the baseline.
    coef_ : ndarray of shape (K - 1, p)
        The coefficients of the columns, one row for every class but the baseline.
    intercept_ : ndarray of shape (K - 1,)
        The intercepts.

    Notes
    -----
    The log-likelihood is the sum of log p of the class of each row, p_c = exp(x'theta_c) / sum_k exp(x'theta_k), with
    theta of the baseline zero. Where a class has no row yet the status is ``missing-class``.

    References
    ----------
    D. McFadden, *Conditional logit analysis of qualitative choice behavior* (1974).

    Examples
    --------
    >>> import numpy as np
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4_000, 1))
    >>> utility = np.column_stack([np.zeros(4_000), 0.5 + X[:, 0], -X[:, 0]]) + rng.gumbel(size=(4_000, 3))
    >>> model = hw.MultinomialRegression().fit(X, np.array(["bus", "car", "rail"])[utility.argmax(axis=1)])
    >>> model.inference().names
    ('car:Intercept', 'car:x0', 'rail:Intercept', 'rail:x0')
    >>> model.inference().interval().covers([0.5, 1.0, 0.0, -1.0]).tolist()
    [True, True, True, True]
    """

    family: ClassVar[str] = "multinomial"

    @property
    def coef_(self) -> Vector:
        """The coefficients of the columns, one row for every class but the baseline."""
        return self._by_equation()[:, int(self._has_intercept()) :]

    @property
    def intercept_(self) -> Vector:
        """The intercepts; zeros without any."""
        found = self._by_equation()
        return found[:, 0] if self._has_intercept() else np.zeros(len(found))

    def predict_proba(self, X: ArrayLike) -> Vector:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array_like of shape (n, p), or a table
            The features, as `predict` takes them.

        Returns
        -------
        ndarray of shape (n, K)
            In the order of `classes_`.
        """
        return probabilities(self._eta(X, None))

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array_like of shape (n, p), or a table
            A matrix with the columns of the design, or a table with the raw columns of `halfwidth.fit`.
        offset : None
            Refused: an offset has no meaning here.

        Returns
        -------
        ndarray of shape (n,)
            Labels of `classes_`.
        """
        _no_offset(offset)
        places = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[places])

    def _by_equation(self) -> Vector:
        return self._params().reshape(len(self.classes_) - 1, -1)

    def _make_loss(self) -> Loss:
        count = len(self.classes_)
        return make_loss("logistic") if count == 2 else make_loss(self.family, classes=count)

    def _take(self, X: Vector, y: Vector, weight: Vector | None, offset: Vector | None, group: Any) -> None:
        _no_offset(offset)
        super()._take(X, y, weight, None, group)

    def _linear_predictor(self, rows: Vector, offset: ArrayLike | None) -> Vector:
        _no_offset(offset)
        return np.asarray(rows @ self.coef_.T + self.intercept_)

    def _predicted(self, eta: Vector) -> dict[str, Vector]:
        names = (f"p[{label}]" for label in self.classes_)
        return dict(zip(names, probabilities(eta).T, strict=True))

    def _names(self) -> tuple[str, ...]:
        columns = super()._names()
        return tuple(f"{label}:{name}" for label in self.classes_[1:] for name in columns)

    def _encode(self, y: Any, classes: ArrayLike | None, fresh: bool) -> Vector:
        check_classification_targets(y)
        if fresh:
            seen = np.unique(np.asarray(y if classes is None else classes))
            if not 2 <= len(seen) <= MOST_CLASSES:
                raise InputError(
                    f"y must hold 2 to {MOST_CLASSES} classes; got {len(seen)} class{'' if len(seen) == 1 else 'es'}. "
                    "Pass classes=[...] to partial_fit if others come later"
                )
            self.classes_ = seen
        known = np.isin(y, self.classes_)
        if not known.all():
            row = int(np.argmin(known))
            found = f"{np.asarray(y)[row]} in row {row}, counted from 0"
            raise InputError.of("y", f"hold the classes {self.classes_.tolist()} only", found)
        return np.asarray(np.searchsorted(self.classes_, y), dtype=np.float64)


def _no_offset(offset: Any) -> None:
    if offset is not None:
        raise InputError("offset must not be given to a multinomial regression: its equations would share it")
