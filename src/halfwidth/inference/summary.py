"""The coefficients of a result as rows and as a summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from halfwidth.inference.tables import CoefficientTable, Summary

if TYPE_CHECKING:
    from halfwidth.inference.result import Result

_MOST_NAMED = 8
_MEANINGS = {
    "unidentified": "the rows do not tell it from the other coefficients: there is no interval. Feed rows that do, or "
    "drop the column",
    "rare": "few rows, or few stretches of rows, tell about it, and its error is uncertain. Feed rows that do",
    "unstable": "it changes along the stream, and no one number describes it",
    "not-settled": "it rests on rows that were expanded far from the estimate, or where the loss is flat. Feed more "
    "rows, or start nearer to the solution (theta_0)",
    "feedback-undecided": "it may respond to theta by more than the other coefficients do. Feed more rows",
}
"""What single coefficients are doubted for."""


def result_summary(result: Result, level: float) -> Summary:
    """What the errors rest on, the coefficients, the notes and the warnings, in that order."""
    bounds = result.conf_int(1.0 - level)
    table = CoefficientTable(
        marked_names(result), result.params, result.bse, result.tvalues, result.pvalues, bounds, level
    )
    critical = result.critical_values(np.eye(result.params.size), level)
    usual = f"{np.nanmedian(critical):.3f}" if not np.isnan(critical).all() else "-"
    facts = [
        f"method {result.method}, n = {result.n:,}, {result.law.name} law, critical value {usual}",
        *_facts(result),
    ]
    return Summary(facts, table, [*(f"note: {text}" for text in result.diagnostics.notes), *warning_lines(result)])


def marked_names(result: Result) -> list[str]:
    """The names, with a mark where something speaks against a coefficient."""
    pairs = zip(result.coefficient_names, result.coefficient_status, strict=True)
    return [name if status == "ok" else f"{name} ! {status}" for name, status in pairs]


def warning_lines(result: Result) -> list[str]:
    """What speaks against the run, then against single coefficients."""
    run = [f"warning ({name}): {text}" for name, text in result.diagnostics.flags]
    return run + [f"! {line}" for line in result.diagnostics.coefficient_advice or _advice(result)]


def _advice(result: Result) -> list[str]:
    """What the flags of coefficients mean, where a method does not say so itself."""
    own = result.diagnostics.coefficient_flags
    found = []
    for flag, text in _MEANINGS.items():
        names = [name for name, flags in zip(result.coefficient_names, own, strict=bool(own)) if flag in flags]
        if names:
            more = f" and {len(names) - _MOST_NAMED} others" if len(names) > _MOST_NAMED else ""
            found.append(f"{flag}: {', '.join(names[:_MOST_NAMED])}{more}: {text}")
    return found


def coefficient_rows(result: Result, level: float) -> list[dict[str, Any]]:
    """One dictionary for each coefficient, with None where there is no number."""
    eye = np.eye(result.params.size)
    flags = result.diagnostics.coefficient_flags or ((),) * result.params.size
    columns = zip(
        result.coefficient_names, result.params, result.bse, result.tvalues, result.pvalues,
        result.conf_int(1.0 - level), result.degrees_of_freedom(eye), result.coefficient_status, flags, strict=True,
    )  # fmt: skip
    return [
        {
            "name": name,
            "coef": finite(coef),
            "std_err": finite(se),
            "t": finite(t),
            "p": finite(p),
            "ci_lower": finite(low),
            "ci_upper": finite(high),
            "df": finite(nu),
            "status": status,
            "flags": list(own),
        }
        for name, coef, se, t, p, (low, high), nu, status, own in columns
    ]


def finite(value: float) -> float | None:
    """For JSON: None where there is no number."""
    return float(value) if np.isfinite(value) else None


def aligned(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, names to the left and numbers to the right."""
    widths = [max(len(line[i]) for line in (head, *lines)) for i in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in (head, *lines)
    ]


def bounds_text(low: float | None, high: float | None) -> str:
    """An interval, or `none`."""
    return "none" if low is None or high is None else f"[{low:.4f}, {high:.4f}]"


def _facts(result: Result) -> list[str]:
    known = result.diagnostics
    facts = [f"effective degrees of freedom {known.effective_blocks:.1f}"]
    if known.correlation_time is not None:
        facts.append(f"correlation time about {known.correlation_time:,.0f} rows")
    if known.truncations is not None:
        facts.append(f"{known.truncations:,} truncations")
    if known.capped_share is not None:
        facts.append(f"{100 * known.capped_share:.1f}% of steps capped")
    return [", ".join(facts)]
