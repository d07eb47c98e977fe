"""The coefficients of a result as rows and as a summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from halfwidth.inference.tables import CoefficientTable, Summary

if TYPE_CHECKING:
    from halfwidth.inference.result import Result


def result_summary(result: Result, level: float) -> Summary:
    """What the errors rest on, the coefficients, the notes and the warnings, in that order."""
    bounds = result.conf_int(1.0 - level)
    table = CoefficientTable(
        marked_names(result), result.params, result.bse, result.tvalues, result.pvalues, bounds, level
    )
    critical = np.median(result.critical_values(np.eye(result.params.size), level))
    facts = [
        f"method {result.method}, n = {result.n:,}, {result.law.name} law, critical value {critical:.3f}",
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
    return run + [f"! {line}" for line in result.diagnostics.coefficient_advice]


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
