"""The page of a target: the pictures, every comparison with its Monte Carlo error, and the numbers at the end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from halfwidth.paper.comparisons import Comparison, last
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.target import Order, Target

_LABELS = ("variant", "model", "dim", "epsilon", "a", "movers", "name")
_ENDS = {
    "error": "sigma_error",
    "error*": "sigma_error_paper",
    "coverage": "coverage",
    "+-": "coverage_se",
    "coverage*": "coverage_paper",
    "width": "width",
    "width/oracle": "width_ratio",
    "MIS/oracle": "mis_ratio",
    "bias/sd": "bias_over_sd",
    "truncations": "truncations",
}


def page(target: Target, order: Order, rows: Sequence[Row], comparisons: Sequence[Comparison]) -> str:
    """The page in Markdown."""
    parts = [f"# {target.title}", _how(target, order, rows), f"**The paper:** {target.says}"]
    parts += [] if target.words is None else [target.words(rows)]
    parts += [f"![{sheet.title}]({sheet.name}.png)" for sheet in target.sheets(rows)]
    parts += ["## What was reproduced, and what was not", _in_words(comparisons), "## Every comparison"]
    parts += [_table_of(comparisons)]
    if "sigma_error" in rows[0]:
        parts += ["## At the end of the run", _ends(rows)]
    return "\n\n".join(parts) + "\n"


def _how(target: Target, order: Order, rows: Sequence[Row]) -> str:
    text = f"`halfwidth reproduce {target.name} --scale {order.size.name} --seed {order.seed}`: {target.how(order)}"
    if rows[0].get("variant") == "stand-in":
        text += " **The borrowers are a synthetic stand-in, not GiveMeSomeCredit.**"
    return text


def _by_claim(comparisons: Sequence[Comparison]) -> list[tuple[str, list[Comparison]]]:
    ordered = sorted(comparisons, key=lambda c: list(dict.fromkeys(x.claim for x in comparisons)).index(c.claim))
    return [(claim, list(group)) for claim, group in groupby(ordered, lambda c: c.claim)]


def _in_words(comparisons: Sequence[Comparison]) -> str:
    """One sentence per claim: how often it held, and the range of what was measured."""
    lines = []
    for claim, group in _by_claim(comparisons):
        verdicts = [c.verdict.partition(":")[0] for c in group]
        counts = ", ".join(f"{verdict} in {verdicts.count(verdict)}" for verdict in dict.fromkeys(verdicts))
        low, high = min(group, key=lambda c: c.ours), max(group, key=lambda c: c.ours)
        span = f"{_number(low.ours)} ({low.where})"
        if high is not low:
            span += f" to {_number(high.ours)} ({high.where})"
        lines.append(f"- *{claim}*: {counts} of {len(group)}. Measured: {span}.")
    return "\n".join(lines)


def _table_of(comparisons: Sequence[Comparison]) -> str:
    lines = ["| claim | where | measured | standard error | the paper's | verdict |", "|---|---|---|---|---|---|"]
    for claim, group in _by_claim(comparisons):
        for c in group:
            expected = "" if c.expected is None else _number(c.expected)
            lines.append(f"| {claim} | {c.where} | {_number(c.ours)} | {_number(c.error)} | {expected} | {c.verdict} |")
    return "\n".join(lines)


def _ends(rows: Sequence[Row]) -> str:
    labels = [label for label in _LABELS if label in rows[0]]
    ends = {words: field for words, field in _ENDS.items() if field in rows[0]}
    lines = [f"| {' | '.join([*labels, *ends])} |", "|---" * (len(labels) + len(ends)) + "|"]
    for row in last(rows):
        cells = ["-" if row[label] is None else str(row[label]) for label in labels]
        lines.append(f"| {' | '.join(cells + [_number(row.get(field)) for field in ends.values()])} |")
    star = "\\* against theta* and Sigma estimated from many runs, as in the paper; all else against the exact ones. "
    note = "Error: spectral norm of the covariance's error. bias/sd: bias of the estimate over the average's exact sd."
    return "\n".join(lines) + "\n\n" + (star if "sigma_error_paper" in rows[0] else "") + note


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
