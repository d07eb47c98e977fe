"""A formula's columns of X, with levels and transforms fixed on a first buffer.

Formulaic's fitted specification cannot be stored without pickle. The state therefore keeps the formula and the
few columns of the first buffer that it reads, and fits the specification again: the same input, the same design.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.streams.block import Array, Block, need
from halfwidth.streams.design.bad_rows import FORMULA, LEVEL, Faults
from halfwidth.streams.design.columns import is_numeric, known_columns, number_column, text_column
from halfwidth.streams.design.formula_text import ParsedFormula, direct_column, first_line, names_in


class FormulaDesign:
    """X by a formula; the intercept is a flag, never a column."""

    def __init__(self, parsed: ParsedFormula, kinds: dict[str, str], frame: Any, unknown_level: str) -> None:
        self.parsed, self.unknown_level = parsed, unknown_level
        self.columns = tuple(kinds)
        self._kinds, self._frame = kinds, frame
        self._levels = {name: frame[name].cat.categories for name, kind in kinds.items() if kind != "number"}
        self._right = self._fit(parsed.right)
        names = list(self._right.column_names)
        self.has_intercept = "Intercept" in names
        self._keep = [i for i, name in enumerate(names) if name != "Intercept"]
        self.feature_names = tuple(names[i] for i in self._keep)
        self._left = None if parsed.computed is None else self._fit(parsed.computed)
        self.computes_response = self._left is not None
        self._check_rowwise()
        self._check_levels()

    @classmethod
    def learn(cls, parsed: ParsedFormula, parts: Sequence[Block], unknown_level: str) -> FormulaDesign:
        """Fix kinds of columns, levels and transforms on the usable rows of the first buffer."""
        pandas = need("pandas")
        left = names_in(parsed.response[0]) if parsed.response and parsed.computed else set()
        columns = sorted((parsed.names | left) & set(known_columns(parts)))
        faults = Faults(sum(part.rows for part in parts))
        kinds, data = {}, {}
        for name in columns:
            numeric = is_numeric(parts, name, 1.0 if name in parsed.levels else 0.5)
            kinds[name] = ("level" if name in parsed.levels else "number") if numeric else "text"
            data[name] = (number_column if numeric else text_column)(parts, name, faults)
        good = slice(None) if faults.good is None else faults.good
        if not len(next(iter(data.values()), np.zeros(1))[good]):
            blamed = ", ".join(f"{name} in {count:,}" for name, count in faults.columns(faults.rows).items())
            raise InputError(
                f"formula {parsed.text!r}: none of the first {faults.rows:,} rows has all of {columns}; missing or "
                f"bad: {blamed}. Repair them, or give a longer first buffer (buffer_rows)"
            )
        frame = pandas.DataFrame({name: _settle(data[name][good], kinds[name]) for name in columns})
        if not columns:
            frame = pandas.DataFrame(index=range(faults.rows))
        return cls(parsed, kinds, frame, unknown_level)

    def _fit(self, formula: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return formula.get_model_matrix(self._frame, na_action="ignore", context={}).model_spec
        except Exception as error:
            raise InputError(
                f"formula {self.parsed.text!r} fails on the first {len(self._frame)} rows: {first_line(error)}"
            ) from error

    def _evaluate(self, spec: Any, frame: Any) -> Array:
        mismatch = need("formulaic.errors").DataMismatchWarning
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore" if self.unknown_level == "other" else "error", mismatch)
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            return np.asarray(spec.get_model_matrix(frame, context={}), dtype=np.float64)

    def _check_rowwise(self) -> None:
        """A row of X must not depend on its neighbours: chunks would change it."""
        for spec in filter(None, (self._right, self._left)):
            whole, half = self._evaluate(spec, self._frame), self._evaluate(spec, self._frame[::2])
            if not np.allclose(whole[::2], half, rtol=1e-6, equal_nan=True):
                raise InputError.of(
                    "formula",
                    "compute each row from that row alone (lags, ranks, means over rows do not)",
                    self.parsed.text,
                )

    def _check_levels(self) -> None:
        """Levels of computed columns cannot be told apart row by row, hence not be counted to the reference."""
        states = self._right.encoder_state
        computed = [e for e, (kind, _) in states.items() if kind.name == "CATEGORICAL" and not self._simple(e)]
        if computed and self.unknown_level == "other":
            raise InputError.of("formula", "use C(column) only, with unknown_level='other'", computed[0])

    def _simple(self, expression: str) -> bool:
        return (direct_column(expression) or expression) in self._levels

    def matrix(self, parts: Sequence[Block], faults: Faults) -> tuple[Array, Array | None]:
        data: dict[str, NDArray[Any]] = {}
        for name, kind in self._kinds.items():
            values: NDArray[Any] = (text_column if kind == "text" else number_column)(parts, name, faults)
            if kind != "number":
                values = self._levels[name].get_indexer(values)
                if self.unknown_level == "error":
                    faults.mark(values < 0, LEVEL, name)
                else:
                    faults.others[name] = values < 0
            data[name] = values
        X, response = np.zeros((faults.rows, len(self.feature_names))), np.zeros(faults.rows)
        good = np.arange(faults.rows) if faults.good is None else np.flatnonzero(faults.good)
        self._fill(X, response, data, good, faults)
        for column, name in enumerate(self.feature_names):
            faults.mark(~np.isfinite(X[:, column]), FORMULA, name, "the formula gives no finite number here")
        if self._left is None:
            return X, None
        label = self.parsed.response[0] if self.parsed.response else None
        faults.mark(~np.isfinite(response), FORMULA, label, "the formula gives no finite number here")
        return X, response

    def _fill(self, X: Array, y: Array, data: dict[str, Any], rows: NDArray[np.int64], faults: Faults) -> None:
        """Evaluate the formula on these rows; where it fails, halve them until the failing row is found."""
        if not len(rows):
            return
        pandas = need("pandas")
        frame = pandas.DataFrame(
            {
                name: values[rows]
                if self._kinds[name] == "number"
                else pandas.Categorical.from_codes(values[rows], categories=self._levels[name])
                for name, values in data.items()
            },
            index=range(len(rows)),
        )
        try:
            X[rows] = self._evaluate(self._right, frame)[:, self._keep]
            if self._left is not None:
                y[rows] = self._evaluate(self._left, frame)[:, 0]
        except Exception as error:
            if len(rows) == 1:
                mismatch = isinstance(error, need("formulaic.errors").DataMismatchWarning)
                bad = np.zeros(faults.rows, dtype=bool)
                bad[rows] = True
                faults.mark(bad, LEVEL if mismatch else FORMULA, None, f"formula: {first_line(error)}")
                return
            for half in np.array_split(rows, 2):
                self._fill(X, y, data, half, faults)

    def to_state(self) -> dict[str, Any]:
        buffer = {
            name: self._frame[name].to_numpy()
            if kind == "number"
            else {"levels": self._levels[name].tolist(), "codes": self._frame[name].cat.codes.to_numpy()}
            for name, kind in self._kinds.items()
        }
        return {
            "kind": "formula",
            "formula": self.parsed.text,
            "kinds": dict(self._kinds),
            "features": list(self.feature_names),
            "rows": len(self._frame),
            "buffer": buffer,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], formula: str, unknown_level: str) -> FormulaDesign:
        """The design of the user's `formula` on the first buffer of the state, whose own formula must be the same."""
        if state["formula"] != formula:
            raise InputError.of("formula", f"stay {state['formula']!r} when a run is resumed", formula)
        pandas = need("pandas")
        data = {
            name: stored
            if isinstance(stored, np.ndarray)
            else pandas.Categorical.from_codes(stored["codes"], categories=pandas.Index(stored["levels"]))
            for name, stored in state["buffer"].items()
        }
        frame = pandas.DataFrame(data, index=range(state["rows"]))
        design = cls(ParsedFormula(formula), dict(state["kinds"]), frame, unknown_level)
        if list(design.feature_names) != state["features"]:
            raise InputError(
                f"formula {formula!r} gave columns {state['features']} before and "
                f"{list(design.feature_names)} now; use the version of formulaic that the run began with"
            )
        return design


def _settle(values: NDArray[Any], kind: str) -> Any:
    """Levels sorted, and whole numbers as integers so that their names read C(b)[T.2]."""
    if kind == "number":
        return values
    levels = np.unique(values.astype(np.float64)) if kind == "level" else np.array(sorted(set(values)), dtype=object)
    if kind == "level" and (levels == np.round(levels)).all() and np.abs(levels).max(initial=0) < 2**53:
        values, levels = values.astype(np.int64), levels.astype(np.int64)
    return need("pandas").Categorical(values, categories=levels)
