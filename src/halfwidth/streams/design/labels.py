"""The target column: any number, a count, a whole or a positive number, or a class.

Two-class labels may be bool, 0/1, -1/1 or two strings. Numbers have a known set, so 1 is class 1 from the first row
on, and 0 or -1 (whichever comes, not both) is class 0. Strings are learned as they come. If both appear in the
first buffer, sorted order decides: the later one is class 1. If only one appears there it is class 0, and the
other, whenever it comes, is class 1: what was learned before stays as it is. A third is an error. `classes=(zero,
one)` settles the matter in advance, also for other pairs of numbers.

More classes ("classes") are those of the first buffer, numbers or text, sorted; one that comes later is a bad row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError, UnknownName
from halfwidth.streams.block import Array, Block, need
from halfwidth.streams.design.bad_rows import FRACTION, LABEL, NEGATIVE, NOT_POSITIVE, Faults
from halfwidth.streams.design.columns import number_column, text_column
from halfwidth.streams.design.convert import as_text, count_numbers, plain

LABELS = ("number", "count", "whole", "positive", "binary", "classes")
MOST_CLASSES = 100


class Target:
    """Turns the target column into float64; for two classes into 0 and 1."""

    def __init__(self, column: str, labels: str = "number", classes: Sequence[Any] | None = None) -> None:
        if labels not in LABELS:
            raise UnknownName.among("kind of labels", labels, LABELS)
        self._most = MOST_CLASSES if labels == "classes" else 2
        if classes is not None and (labels != "binary" or len(classes) != 2 or classes[0] == classes[1]):
            raise InputError.of("classes", "be two different values, and labels be 'binary'", classes)
        self.column, self.labels = column, labels
        self._text = classes is not None and any(isinstance(label, str) for label in classes)
        self._bool = False
        self._seen: list[Any] = [] if classes is None else [str(c) if self._text else float(c) for c in classes]
        self._settled = classes is not None

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels, class 0 first; None for other targets, and where one of two has not been seen yet."""
        if self.labels not in ("binary", "classes"):
            return None
        if self._bool:
            return (False, True)
        seen = self._seen if self._text else [int(c) if float(c).is_integer() else c for c in self._seen]
        return tuple(seen) if len(seen) == 2 or self.labels == "classes" else None

    def learn(self, parts: Sequence[Block]) -> None:
        """Fix the kind of label on the first buffer, and the order of two strings if both are there."""
        if self.labels not in ("binary", "classes") or self._settled or not parts:
            return
        columns = [part.column(self.column) for part in parts]
        self._bool = all(need("pyarrow").types.is_boolean(plain(column).type) for column in columns)
        counts = [count_numbers(column) for column in columns]
        self._text = sum(right for right, _ in counts) < sum(wrong for _, wrong in counts)
        if self._text:
            for column in columns:
                self._meet(*as_text(column))
            self._seen.sort()
        elif self.labels == "classes":
            values = np.concatenate([number_column([part], self.column, Faults(part.rows)) for part in parts])
            self._seen = np.unique(values[np.isfinite(values)]).tolist()
        if self.labels == "classes":
            self._settled = True
            if not 2 <= len(self._seen) <= MOST_CLASSES:
                raise InputError.of(self.column, f"hold 2 to {MOST_CLASSES} classes in the first rows", len(self._seen))

    def _meet(self, cells: NDArray[np.object_], missing: NDArray[np.bool_]) -> None:
        if len(self._seen) < self._most and not (self.labels == "classes" and self._settled):
            new = [label for label in dict.fromkeys(cells[~missing].tolist()) if label not in self._seen]
            self._seen += new[: self._most + 1 - len(self._seen)] if self._most > 2 else new[: 2 - len(self._seen)]

    def encode(self, parts: Sequence[Block], faults: Faults, response: Array | None = None) -> Array:
        """The target of these rows; `response` is given where a formula computes it."""
        if response is None and self._text:
            return self._encode_text(text_column(parts, self.column, faults), faults)
        if response is None:
            response = number_column(parts, self.column, faults)
        if self.labels in ("count", "whole"):
            faults.mark(response < 0, NEGATIVE, self.column)
        if self.labels == "whole":
            faults.mark(np.isfinite(response) & (response != np.floor(response)), FRACTION, self.column)
        if self.labels == "positive":
            faults.mark(response <= 0, NOT_POSITIVE, self.column)
        if self.labels == "classes":
            return self._codes(response, np.isfinite(response), faults)
        return self._encode_numbers(response, faults) if self.labels == "binary" else response

    def _codes(self, values: NDArray[Any], known: NDArray[np.bool_], faults: Faults) -> Array:
        """The places of values among the labels."""
        codes = np.full(len(values), -1.0)
        for place, label in enumerate(self._seen):
            codes[np.asarray(values == label, dtype=bool)] = place
        faults.mark(known & (codes < 0.0), LABEL, self.column)
        return codes

    def _encode_numbers(self, values: Array, faults: Faults) -> Array:
        if not self._seen:
            zero = values[(values == 0) | (values == -1)]
            self._seen = [float(zero[0]), 1.0] if len(zero) else []
        zero_label, one_label = self._seen or (np.nan, 1.0)
        one = np.asarray(values == one_label)
        faults.mark(np.isfinite(values) & ~one & (values != zero_label), LABEL, self.column)
        return one.astype(np.float64)

    def _encode_text(self, cells: NDArray[np.object_], faults: Faults) -> Array:
        missing = np.zeros(len(cells), dtype=bool) if faults.good is None else ~faults.good
        if self.labels == "classes":
            return self._codes(cells, ~missing, faults)
        self._meet(cells, missing)
        zero, one = [*self._seen, None, None][:2]
        is_zero, is_one = (np.asarray(cells == label, dtype=bool) for label in (zero, one))
        faults.mark(~is_zero & ~is_one, LABEL, self.column)
        return is_one.astype(np.float64)

    def expected(self) -> str:
        """What a label may be, for messages."""
        if self.labels == "classes":
            return f"{', '.join(map(repr, self.classes or ()))}, the classes of the first rows"
        if len(self._seen) == 2:
            return f"{self.classes[0]!r} and {self.classes[1]!r}" if self.classes else str(self._seen)
        return "0 and 1, -1 and 1, or classes=(zero, one)"

    def to_state(self) -> dict[str, Any]:
        return {"seen": list(self._seen), "text": self._text, "bool": self._bool, "settled": self._settled}

    def restore(self, state: dict[str, Any]) -> None:
        self._seen, self._settled = list(state["seen"]), state["settled"]
        self._text, self._bool = state["text"], state["bool"]
