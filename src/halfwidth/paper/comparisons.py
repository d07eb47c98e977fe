"""What the paper says, measured: each comparison is a number with its Monte Carlo error, and a verdict from both.

Two numbers agree when they differ by no more than two standard errors. A difference of two arms takes the arms as
independent; methods of one arm see the same rows, which makes this cautious.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from halfwidth.paper.paper_scores import Row

RATE = -0.125


@dataclass(frozen=True)
class Comparison:
    """One claim of the paper against one number of ours."""

    claim: str
    where: str
    ours: float
    error: float
    expected: float | None
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def against(claim: str, where: str, ours: float, error: float, expected: float) -> Comparison:
    """A number that the paper states."""
    away = (ours - expected) / error if error > 0 else math.inf * (ours - expected)
    verdict = "agrees" if abs(ours - expected) <= 2.0 * error else f"differs: {away:+.1f} standard errors"
    return Comparison(claim, where, ours, error, expected, verdict)


def sign(claim: str, where: str, ours: float, error: float, *, negative: bool) -> Comparison:
    """A difference whose sign the paper states."""
    if abs(ours) <= 2.0 * error:
        verdict = "no difference visible"
    else:
        verdict = "agrees" if (ours < 0) == negative else "the reverse"
    return Comparison(claim, where, ours, error, None, verdict)


def unchanged(claim: str, where: str, ours: float, error: float) -> Comparison:
    """A difference that the paper says is not there."""
    return against(claim, where, ours, error, 0.0)


def last(rows: Sequence[Row], **labels: Any) -> list[Row]:
    """The rows at the end of the run that carry these labels."""
    chosen = [row for row in rows if all(row[key] == value for key, value in labels.items())]
    end = {id(row): row for row in chosen if row["step"] == max(r["step"] for r in chosen if same_run(r, row))}
    return list(end.values())


def same_run(one: Row, other: Row) -> bool:
    """Whether two rows are checkpoints of the same runs."""
    keys = ("variant", "model", "dim", "epsilon", "a", "movers", "name")
    return all(one.get(key) == other.get(key) for key in keys)


def place(row: Row, *keys: str) -> str:
    """Where a number was measured, in words."""
    words = {"dim": "d = {}", "epsilon": "epsilon = {}", "movers": "n1 = {}", "a": "a = {}"}
    return ", ".join(words.get(key, "{}").format(row[key]) for key in keys)


def log_ratio(top: Row, bottom: Row, field: str) -> tuple[float, float]:
    """log(top / bottom) of a positive field, and its standard error."""
    error = math.hypot(top[f"{field}_se"] / top[field], bottom[f"{field}_se"] / bottom[field])
    return math.log(top[field] / bottom[field]), error


def difference(top: Row, bottom: Row, field: str) -> tuple[float, float]:
    """top - bottom of a field, and its standard error."""
    return top[field] - bottom[field], math.hypot(top[f"{field}_se"], bottom[f"{field}_se"])


def covers(rows: Sequence[Row], *keys: str) -> list[Comparison]:
    """Coverage at the end against the level, of BM by both conventions and of auto; the error is that of the level."""
    found = []
    for name, field, which in (
        ("BM", "coverage_paper", "theta* from the runs"),
        ("BM", "coverage", "exact theta*"),
        ("auto", "coverage", "exact theta*"),
    ):
        for row in last(rows, name=name):
            error = math.sqrt(row["level"] * (1.0 - row["level"]) / row["replicates"])
            claim = f"{name} covers {row['level']} ({which})"
            found.append(against(claim, place(row, *keys), row[field], error, row["level"]))
    return found


def slopes(rows: Sequence[Row], *keys: str) -> list[Comparison]:
    """The fitted slope of log error of every arm against the rate n^-1/8, by the exact Sigma."""
    return [
        against("slope of log error against log n is -1/8", place(row, *keys), row["slope"], row["slope_se"], RATE)
        for row in last(rows)
        if row["slope"] is not None
    ]


def growth(rows: Sequence[Row], where: str) -> Comparison:
    """The fitted power of d by which the error at the end grows, against 1/2."""
    ends = last(rows)
    logs = [math.log(row["dim"]) for row in ends]
    x = [value - sum(logs) / len(logs) for value in logs]
    square = sum(value * value for value in x)
    power = sum(xi * math.log(row["sigma_error"]) for xi, row in zip(x, ends, strict=True)) / square
    parts = [xi / square * row["sigma_error_se"] / row["sigma_error"] for xi, row in zip(x, ends, strict=True)]
    return against("the error grows like d^(1/2)", where, power, math.hypot(*parts), 0.5)
