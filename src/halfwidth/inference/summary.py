"""The summary table, as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from halfwidth.inference.result import Result


def summary_text(result: Result, level: float) -> str:
    """What the errors rest on, the coefficients, the notes and the warnings, in that order."""
    tail = 50.0 * (1.0 - level)
    header = ["", "coef", "std err", "t", "P>|t|", f"[{tail:.4g}%", f"{100 - tail:.4g}%]"]
    interval = result.interval(level=level)
    columns = zip(
        result.names or [f"theta[{j}]" for j in range(result.params.size)],
        result.params,
        result.bse,
        result.tvalues,
        result.pvalues,
        np.atleast_1d(interval.lower),
        np.atleast_1d(interval.upper),
        strict=True,
    )
    rows = [
        [name, f"{coef:.5g}", f"{se:.4g}", f"{t:.3f}", f"{p:.3f}", f"{low:.5g}", f"{high:.5g}"]
        for name, coef, se, t, p, low, high in columns
    ]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    rule = "=" * (sum(widths) + 2 * (len(widths) - 1))

    def line(cells: list[str]) -> str:
        first, *others = cells
        return first.ljust(widths[0]) + "".join("  " + c.rjust(w) for c, w in zip(others, widths[1:], strict=True))

    facts = [
        f"method {result.method}, n = {result.n:,}, {result.law.name} law, critical value {interval.critical:.3f}",
        *_facts(result),
    ]
    body = [*facts, rule, line(header), "-" * len(rule), *map(line, rows), rule]
    body += [f"note: {text}" for text in result.diagnostics.notes]
    return "\n".join(body + [f"warning ({name}): {text}" for name, text in result.diagnostics.flags])


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
