"""What the theorem says, measured at every n: slopes, the n from which on they hold, coverage, bias, sqrt(d)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from halfwidth.paper.comparisons import Comparison, against, growth, last, place
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.rate_scores import AUTO, BM, CALIBRATED, FACTOR, theory

KEYS = ("model", "dim", "epsilon", "a")
CLOSE = 0.02
SEVERAL = 3.0  # of a dozen slopes that follow the theorem, all are that near with a chance of 0.97
BIAS_FACTOR = 256
EARLIER_RUNS = 4_096
# (d, epsilon, log2 n): error, local slope, coverage with 1.96, bias/sd; by another program, rounded as here.
EARLIER: dict[tuple[int, float, int], dict[str, float]] = {
    (dim, epsilon, power): dict(zip(("sigma_error", "local_slope", "coverage", "bias_over_sd"), values, strict=False))
    for dim, epsilon, power, *values in (
        (2, 0.0, 14, 2.47, -0.04, 0.795),
        (2, 0.0, 16, 2.29, -0.04, 0.849),
        (2, 0.0, 20, 1.77, -0.09, 0.905),
        (2, 0.0, 24, 1.28, -0.118, 0.930),
        (2, 0.5, 14, 2.24, -0.05, 0.795, -0.19),
        (2, 0.5, 16, 2.09, -0.04, 0.845, -0.17),
        (2, 0.5, 20, 1.59, -0.10, 0.907, -0.12),
        (2, 0.5, 24, 1.15, -0.117, 0.924, -0.12),
        (5, 0.5, 14, 3.66, 0.02, 0.767, -0.53),
        (5, 0.5, 16, 3.74, 0.03, 0.826, -0.44),
        (5, 0.5, 20, 3.04, -0.08, 0.876, -0.39),
        (5, 0.5, 24, 2.21, -0.114, 0.913, -0.34),
    )
}
_WORDS = {
    "sigma_error": "error of Sigma_hat",
    "local_slope": "local slope",
    "coverage": "coverage of the normal interval",
    "bias_over_sd": "bias of the average",
}


def compare(rows: Sequence[Row], a: float) -> list[Comparison]:
    """All comparisons; `a` is the exponent at which the dimensions are compared."""
    found = [c for row in last(rows, name=BM) for c in _end_of(row, rows)]
    found += [c for name in (BM, CALIBRATED, AUTO) for c in _covers(rows, name)]
    for model, epsilon in dict.fromkeys((row["model"], row["epsilon"]) for row in rows):
        mine = [row for row in rows if row["model"] == model and row["epsilon"] == epsilon]
        mine = [row for row in mine if row["name"] == BM and row["a"] == a]
        found.append(growth(mine, f"{model}, epsilon = {epsilon}, n = {power_of_two(mine[-1]['step'])}"))
    return found + _earlier(rows, a)


def of_case(rows: Sequence[Row], row: Row, name: str) -> list[Row]:
    """The rows of one method along the run of the case that this row belongs to."""
    return [other for other in rows if other["name"] == name and all(other[key] == row[key] for key in KEYS)]


def rate_from(run: Sequence[Row]) -> int | None:
    """The first n from which on every local slope is within `SEVERAL` standard errors of the theorem's, or None."""
    start = None
    for row in reversed([row for row in run if row["local_slope"] is not None]):
        if abs(row["local_slope"] - theory(row["a"])) > SEVERAL * row["local_slope_se"]:
            break
        start = row["step"]
    return start


def power_of_two(n: int) -> str:
    """The largest power of two up to n, in words."""
    return f"2^{n.bit_length() - 1}"


def _end_of(end: Row, rows: Sequence[Row]) -> list[Comparison]:
    """Slope and bias at the end of one case."""
    where, run = place(end, *KEYS), of_case(rows, end, BM)
    slope, error, expected = end["local_slope"], end["local_slope_se"], theory(end["a"])
    over = f"local slope over the last factor of {FACTOR}"
    found = [against(f"{over} is -(1-a)/4", where, slope, error, expected)]
    off = slope - expected
    near = "agrees" if abs(off) <= CLOSE else f"differs: by {off:+.3f}, {off / error:+.1f} standard errors"
    found.append(Comparison(f"{over} within {CLOSE} of -(1-a)/4", where, slope, error, expected, near))
    start = rate_from(run)
    verdict = "not yet at the end" if start is None else f"from {power_of_two(start)} on"
    claim = f"every local slope is within {SEVERAL:.0f} standard errors of -(1-a)/4 from this n on"
    found.append(Comparison(claim, where, float(start or end["step"]), 0.0, None, verdict))
    return found + _bias(end, run, where)


def _bias(end: Row, run: Sequence[Row], where: str) -> list[Comparison]:
    """Without feedback a linear stream has no bias but that of its start; otherwise it follows n^-(a-1/2)."""
    if end["model"] == "linear" and end["epsilon"] == 0.0:
        claim = "without feedback the average has no bias at the end (in sd)"
        return [against(claim, where, end["bias_over_sd"], end["bias_over_sd_se"], 0.0)]
    before = [row for row in run if row["step"] * BIAS_FACTOR == end["step"]]
    if not before:
        return []
    shrunk = BIAS_FACTOR ** (0.5 - end["a"])
    error = math.hypot(end["bias_over_sd_se"], shrunk * before[0]["bias_over_sd_se"])
    expected = shrunk * before[0]["bias_over_sd"]
    claim = f"bias in sd falls like n^-(a-1/2) over the last factor of {BIAS_FACTOR}"
    return [against(claim, where, end["bias_over_sd"], error, expected)]


def _covers(rows: Sequence[Row], name: str) -> list[Comparison]:
    """Coverage of the exact theta* at the end; the error is that of the level."""
    found = []
    for row in last(rows, name=name):
        error = math.sqrt(row["level"] * (1.0 - row["level"]) / row["replicates"])
        where = place(row, *(key for key in KEYS if row[key] is not None))
        claim = f"{name} covers {row['level']} at the end (exact theta*)"
        found.append(against(claim, where, row["coverage"], error, row["level"]))
    return found


def _earlier(rows: Sequence[Row], a: float) -> list[Comparison]:
    """The numbers of 4,096 runs of another program, within both Monte Carlo errors."""
    found = []
    for row in rows:
        known = EARLIER.get((row["dim"], row["epsilon"], row["step"].bit_length() - 1), {})
        if row["model"] == "linear" and row["name"] == BM and row["a"] == a:
            for field, expected in known.items():
                if row[field] is not None:
                    # A share that came out near 1 knows its own error badly; the expected one knows it well.
                    share = math.sqrt(abs(expected) * abs(1.0 - expected) / row["replicates"])
                    own = share if field == "coverage" else row[f"{field}_se"]
                    error = own * math.sqrt(1.0 + row["replicates"] / EARLIER_RUNS)
                    where = f"{place(row, 'dim', 'epsilon')}, n = {power_of_two(row['step'])}"
                    claim = f"{_WORDS[field]} as in {EARLIER_RUNS:,} runs of another program"
                    found.append(against(claim, where, row[field], error, expected))
    return found
