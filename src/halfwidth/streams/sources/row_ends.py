"""Where rows of CSV end, and which have broken quotes; where objects of JSON end, and which are nested too deep.

One pass over the bytes each, with a state of a few numbers, so that the work is linear whatever the text holds.

A quoted field begins with a quote right after a separator and ends at the next quote that is not doubled; a separator
or the end of the row must follow (RFC 4180). Where something else follows, where the field never ends, or where it
contains several whole lines with as many fields as the header, the line on which the quote stands is broken, and the
next line begins a row again. A quote inside an unquoted field is a character like any other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.compile import kernel

NEVER_CLOSED, TEXT_AFTER_QUOTE, SWALLOWS_ROWS = 1, 2, 3
WHY = {
    NEVER_CLOSED: "a quote opens here and never closes",
    TEXT_AFTER_QUOTE: "a quote opens here and closes in the middle of a field",
    SWALLOWS_ROWS: "a quote opens here and closes only after several whole rows",
}
MOST_FAULTS = 4096
DEEPEST = 64


class Marks(NamedTuple):
    """The bytes with a meaning, and the number of columns."""

    separator: int
    quote: int
    columns: int


@kernel
def scan_csv(
    data: NDArray[np.uint8], marks: Any, final: bool, longest: int, faults: NDArray[np.int64]
) -> tuple[int, int]:  # pragma: no cover (compiled)
    """The end of the last whole row, and how many (start, stop, why) of broken lines were put into `faults`."""
    n, found, row, i = len(data), 0, 0, 0
    separator, quote, columns = marks
    at_start = True
    while i < n:
        c = data[i]
        if at_start and c == quote:
            opened = i
            i += 1
            why, lines, alike, separators = 1, -1, 0, 0
            whole = True
            while i < n:
                c = data[i]
                if c == quote:
                    if i + 1 < n and data[i + 1] == quote:
                        i += 2
                        continue
                    if i + 1 == n and not final:
                        break
                    i += 1
                    follows = i == n or data[i] == separator or data[i] == 10 or data[i] == 13
                    why = 0 if follows else 2
                    if follows and columns > 1 and lines >= 3 and lines == alike:
                        why = 3
                    whole = False
                    break
                if c == separator:
                    separators += 1
                elif c == 10:
                    lines += 1
                    if lines > 0 and separators == columns - 1:
                        alike += 1
                    separators = 0
                i += 1
            if whole and not final and n - row <= longest:
                return row, found
            at_start = False
            if why:
                stop = opened
                while stop < n and data[stop] != 10 and data[stop] != 13:
                    stop += 1
                if found == len(faults) or (stop == n and not final):
                    return row, found
                faults[found, 0], faults[found, 1], faults[found, 2] = row, stop, why
                found += 1
                i = stop
            continue
        i += 1
        at_start = c == separator
        if c == 10 or c == 13:
            if c == 13:
                if i < n and data[i] == 10:
                    i += 1
                elif i == n and not final:
                    return row, found
            row, at_start = i, True
    return (n if final else row), found


@kernel
def split_array(data: NDArray[np.uint8], state: NDArray[np.int64]) -> None:  # pragma: no cover (compiled)
    """Turn a piece of a JSON array of objects into one object per line, in place.

    `state` is (depth, inside a string, after a backslash) and goes from piece to piece.
    """
    depth, inside, escaped = state[0], state[1], state[2]
    for i in range(len(data)):
        c = data[i]
        if inside:
            if escaped:
                escaped = 0
            elif c == 92:
                escaped = 1
            elif c == 34:
                inside = 0
            continue
        if c == 34:
            inside = 1
        elif c == 91 or c == 123:
            if depth == 0:
                data[i] = 32
            depth += 1
        elif c == 93 or c == 125:
            depth -= 1
            if depth == 0:
                data[i] = 10
        elif c == 44 and depth == 1:
            data[i] = 10
        elif c == 10 or c == 13:
            data[i] = 32
    state[0], state[1], state[2] = depth, inside, escaped


@kernel
def find_deep(data: NDArray[np.uint8], deepest: int, faults: NDArray[np.int64]) -> int:  # pragma: no cover (compiled)
    """How many lines are nested deeper than `deepest`; their (start, stop) go into `faults`."""
    found, depth, line, i, n = 0, 0, 0, 0, len(data)
    inside = escaped = False
    while i < n:
        c = data[i]
        if c == 10:
            depth, inside, escaped, line = 0, False, False, i + 1
        elif inside:
            if escaped:
                escaped = False
            elif c == 92:
                escaped = True
            elif c == 34:
                inside = False
        elif c == 34:
            inside = True
        elif c == 91 or c == 123:
            depth += 1
            if depth > deepest:
                while i + 1 < n and data[i + 1] != 10:
                    i += 1
                if found == len(faults):
                    return found
                faults[found, 0], faults[found, 1] = line, i + 1
                found += 1
        elif c == 93 or c == 125:
            depth -= 1
        i += 1
    return found
