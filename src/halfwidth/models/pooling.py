"""Models that were fitted apart, pooled into one."""

from __future__ import annotations

from typing import Any, Self

from halfwidth.errors import InputError
from halfwidth.models.engine_model import EngineModel
from halfwidth.models.newton_engine import NewtonEngine
from halfwidth.state.compare import first_difference

_ALIKE = ("class", "params", "n_features", "feature_names", "classes", "specification")


class PooledModel(EngineModel):
    """A model that takes in what others of its kind have learned."""

    def pool(self, *others: EngineModel) -> Self:
        """Return one model for the rows of several, fitted apart: on several machines, or file by file.

        Parameters
        ----------
        *others : StreamModel
            Models of the same class, parameters and columns. Their rows are independent of this model's, or come after
            them, in the order given; with groups, a group may have rows in several of them.

        Returns
        -------
        StreamModel
            A new model, which goes on learning as if it had seen all rows. A linear one is that of a single fit; any
            other is as close to it as a single pass is, and says so where that is not enough.

        Raises
        ------
        InputError
            If the models differ in more than their rows, have more than 2,048 groups together, or do not use the
            engine ``"newton"``.

        Examples
        --------
        >>> import halfwidth as hw
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((6_000, 2))
        >>> y = X @ [2.0, -1.0] + rng.standard_normal(6_000)
        >>> one = hw.LinearRegression().fit(X[:2_000], y[:2_000])
        >>> other = hw.LinearRegression().fit(X[2_000:], y[2_000:])
        >>> both = one.pool(other)
        >>> both.n_seen_, bool(abs(both.coef_ - hw.LinearRegression().fit(X, y).coef_).max() < 1e-8)
        (6000, True)
        """
        state = self.to_state()
        engine = _engine_of(self)
        for other in others:
            told = _state_of(other)
            for name in _ALIKE:
                _check_alike(name, _compared(state.get(name)), _compared(told.get(name)))
            engine = engine.pooled(_engine_of(other))
            state["passes"] = max(state["passes"], told["passes"])
            state["stream_facts"] = _together(state["stream_facts"], told["stream_facts"])
        return type(self).from_state(state | {"engine": engine.to_state()})


def _state_of(model: Any) -> dict[str, Any]:
    if not isinstance(model, EngineModel):
        raise InputError.of("others", "be fitted models", type(model).__name__)
    return model.to_state()


def _engine_of(model: EngineModel) -> NewtonEngine:
    if not isinstance(model._engine, NewtonEngine):
        raise InputError.of("engine", "be 'newton' in models that are pooled", model._engine.name)
    return model._engine


def _compared(part: Any) -> Any:
    """Without the number of first rows that levels and constants come from."""
    if not isinstance(part, dict) or "design" not in part or "inputs" not in part["design"]:
        return part
    inputs = {name: value for name, value in part["design"]["inputs"].items() if name != "rows"}
    return part | {"design": part["design"] | {"inputs": inputs}}


def _check_alike(name: str, mine: Any, theirs: Any) -> None:
    if first_difference(mine, theirs) is None:
        return
    if name == "specification":
        raise InputError(
            "the models make their columns from the raw ones in different ways: levels, knots or constants of their "
            "first rows. Declare levels (categoricals), name knots in the formula, or fit on columns made before"
        )
    advice = (
        "; categories need the same levels in the same order: declare them (categoricals)" if "feat" in name else ""
    )
    raise InputError.of("others", f"have the same {name} as the first, {mine!r}{advice}", theirs)


def _together(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Counts added up, and texts that differ one after the other."""
    both = dict(one)
    for name, value in other.items():
        known = both.get(name)
        if known is None:
            both[name] = value
        elif isinstance(value, dict):
            both[name] = {key: known.get(key, 0) + value.get(key, 0) for key in {**known, **value}}
        elif value != known:
            both[name] = f"{known}; {value}"
    return both
