"""From the name of a family, or a stored state, to its model."""

from __future__ import annotations

import os
from typing import Any

from halfwidth.errors import UnknownName
from halfwidth.families import ALIASES
from halfwidth.models.base import StreamModel
from halfwidth.models.classifier import LogisticRegression
from halfwidth.models.dispersed import GammaRegressor, NegativeBinomialRegressor
from halfwidth.models.model_state import CLASSES, MODEL_SCHEMA
from halfwidth.models.multinomial import MultinomialRegression
from halfwidth.models.regressors import HuberRegressor, LinearRegression, PoissonRegressor, QuantileRegressor
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.state.schema import validate

MODELS: dict[str, type[StreamModel]] = {
    model.family: model
    for model in (
        LinearRegression,
        LogisticRegression,
        MultinomialRegression,
        PoissonRegressor,
        GammaRegressor,
        NegativeBinomialRegressor,
        QuantileRegressor,
        HuberRegressor,
    )
}


def model_class(family: str) -> type[StreamModel]:
    """The model of a family; `gaussian` and `binomial` are understood."""
    name = ALIASES.get(family, family)
    if name not in MODELS:
        raise UnknownName.among("family", str(family), [*MODELS, *ALIASES])
    return MODELS[name]


def model_from_state(state: dict[str, Any]) -> StreamModel:
    """The model that `to_state` described, whichever it is."""
    validate(state, MODEL_SCHEMA)
    return MODELS[CLASSES[state["class"]]].from_state(state)


def load(path: str | os.PathLike[str]) -> StreamModel:
    """Load the model that `model.save` or a checkpoint of `fit` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    StreamModel
        The model, of the class that was saved; it goes on learning where it stood.

    Raises
    ------
    BrokenCheckpoint
        If the file is cut short, altered, or holds no model.

    Examples
    --------
    >>> import os, tempfile
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> model = hw.LinearRegression().fit(rng.standard_normal((200, 1)), rng.standard_normal(200))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.hw")
    ...     model.save(path)
    ...     loaded = hw.load(path)
    >>> bool(loaded.coef_[0] == model.coef_[0])
    True
    """
    from halfwidth.state.checkpoint import read_checkpoint

    state = read_checkpoint(path)
    if state.get("kind") == FIT_SCHEMA.kind:
        validate(state, FIT_SCHEMA)
        return model_from_state(state["model"])
    return model_from_state(state)
