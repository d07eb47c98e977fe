"""What the runs say about the theorem, in words whose numbers are all computed from the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile

from halfwidth.inference.brownian_law import BrownianLaw, block_law
from halfwidth.paper.comparisons import growth, last, place
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.rate_compare import KEYS, SEVERAL, of_case, power_of_two, rate_from
from halfwidth.paper.rate_scores import AUTO, BM, CALIBRATED, FACTOR, LEVEL, theory
from halfwidth.schedules import BlockPlan

_SMALL = 2**14
_REACHED = (0.85, 0.9)


def in_words(rows: Sequence[Row]) -> str:
    """The page's paragraphs."""
    parts = [_rate(rows), _late(rows), _coverage(rows), _bias(rows), _dimension(rows), _auto(rows)]
    return "\n\n".join(["## In words", *parts])


def _with_table(text: str, head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A paragraph and the table that it introduces."""
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{text}\n\n| {' | '.join(head)} |\n{'|---' * len(head)}|\n{table}"


def _rate(rows: Sequence[Row]) -> str:
    ends = last(rows, name=BM)
    top = power_of_two(ends[0]["step"])
    text = (
        f"**From which n on the rate holds.** Local slopes of the error over a factor of {FACTOR}, with standard "
        f"errors, and the first n from which on all of them are within {SEVERAL:.0f} standard errors of -(1-a)/4:"
    )
    lines = []
    for end in ends:
        run = of_case(rows, end, BM)
        start = rate_from(run)
        cells = [f"{row['local_slope']:.3f} +- {row['local_slope_se']:.3f}" for row in (_at(run, _SMALL), end)]
        since = "not yet" if start is None else power_of_two(start)
        lines.append([place(end, *KEYS), f"{theory(end['a']):.3f}", *cells, since])
    head = ["case", "theory", f"slope at {power_of_two(_SMALL)}", f"slope at {top}", "holds from"]
    return _with_table(text, head, lines)


def _late(rows: Sequence[Row]) -> str:
    """Bias and spread of Sigma_hat along the run, and the slope of each at the end."""
    steps = _some_steps(rows)
    text = (
        "**Why it shows so late.** Blocks are about as long as n^((1+a)/2), so that there are about n^((1-a)/2) of "
        "them, and the spread of Sigma_hat falls like n^-(1-a)/4: the theorem's rate. Two things hide it. As long as "
        "the blocks are not long against the correlation time of the iterates, which grows like n^a, Sigma_hat is too "
        "small; this bias falls like n^-(1-a)/2, and for small d it is the larger part at first. And a Sigma_hat that "
        "is too small has a spread that is too small: it stays flat or even grows until the bias is gone. Bias and "
        "spread of Sigma_hat, in spectral norm:"
    )
    head = ["case", *(f"bias, spread at {power_of_two(n)}" for n in steps)]
    return _with_table(text, head, _along(rows, lambda row: f"{row['sigma_bias']:.2f}, {row['sigma_spread']:.2f}"))


def _coverage(rows: Sequence[Row]) -> str:
    """Where the two intervals come to, and when."""
    text = (
        "**Where coverage comes to, and why the calibrated interval is there earlier.** Both intervals have the same "
        "centre and the same Sigma_hat. The normal one takes Sigma_hat as exact; but it has few effective degrees of "
        "freedom, "
        + ", ".join(f"{_law(rows, n).degrees_of_freedom:.1f} at {power_of_two(n)}" for n in _some_steps(rows))
        + f" (a = {rows[0]['a']}). The calibrated one takes the quantile of the law that belongs to these blocks, "
        + ", ".join(f"{_law(rows, n).quantile(LEVEL):.2f} at {power_of_two(n)}" for n in _some_steps(rows))
        + ", instead of 1.96. What is left to both is the bias: of Sigma_hat, and of the average. Coverage of the "
        "normal and of the calibrated interval, and the n from which on it stays above a level:"
    )
    lines = []
    for end in last(rows, name=BM):
        runs = [of_case(rows, end, BM), of_case(rows, end, CALIBRATED)]
        cells = [place(end, *KEYS), ", ".join(f"{_at(run, _SMALL)['coverage']:.3f}" for run in runs)]
        cells += [", ".join(f"{run[-1]['coverage']:.3f}" for run in runs)]
        cells += [", ".join(_reached(run, level) for run in runs) for level in _REACHED]
        lines.append(cells)
    head = ["case", f"at {power_of_two(_SMALL)}", "at the end", *(f"above {level}" for level in _REACHED)]
    return _with_table(text, head, lines)


def _bias(rows: Sequence[Row]) -> str:
    text = (
        "**Why the bias stays.** Where the data respond to theta or the loss is not quadratic, E theta_k - theta* is "
        "of the order of the step, k^-a; the average inherits n^-a, its standard deviation falls like n^-1/2, and "
        "their ratio like n^-(a-1/2): hardly at all for a near 1/2. Without feedback a linear stream has only the bias "
        "of its start, which falls like n^-1/2 and is the larger one everywhere while n is small. Bias in standard "
        "deviations:"
    )
    head = ["case", *map(power_of_two, _some_steps(rows))]
    return _with_table(text, head, _along(rows, lambda row: f"{row['bias_over_sd']:+.2f}"))


def _dimension(rows: Sequence[Row]) -> str:
    """The fitted power of d at several n, stream by stream."""
    steps, bm = _some_steps(rows), [row for row in rows if row["name"] == BM and row["a"] == rows[0]["a"]]
    text = (
        "**How the error grows with the dimension.** The theorem bounds it by a multiple of sqrt(d). The fitted power "
        "of d, with standard errors:"
    )
    lines = []
    for model, epsilon in dict.fromkeys((row["model"], row["epsilon"]) for row in bm):
        mine = [row for row in bm if row["model"] == model and row["epsilon"] == epsilon]
        if len({row["dim"] for row in mine}) > 1:
            powers = [growth([row for row in mine if row["step"] == n], "") for n in steps]
            cells = [f"{power.ours:.2f} +- {power.error:.2f}" for power in powers]
            lines.append([f"{model}, epsilon = {epsilon}", *cells])
    return _with_table(text, ["stream", *map(power_of_two, steps)], lines)


def _auto(rows: Sequence[Row]) -> str:
    ends = last(rows, name=AUTO)
    n = ends[0]["step"]
    text = (
        f"**`auto` on the same streams** at {power_of_two(n)} rows: it expands the equation at a point instead of "
        "averaging iterates, so that neither a correlation time that grows with n nor the bias of the steps is in its "
        "way. It keeps a bounded number of batches: the error of its covariance stops falling, which its t quantile "
        "accounts for."
    )
    lines = []
    for end in ends:
        case = {key: end[key] for key in KEYS[:-1]}
        runs = [_first_a(rows, case, name) for name in (BM, CALIBRATED)]
        both = [_at(run, n) for run in runs]
        errors = f"{both[0]['sigma_error']:.2f}, {end['sigma_error']:.2f}"
        cells = [", ".join(f"{row[field]:.3f}" for row in (*both, end)) for field in ("coverage", "width_ratio")]
        lines.append([place(end, *KEYS[:-1]), errors, *cells])
    head = ["covariance error: BM, auto", "coverage: BM, calibrated, auto", "width over the oracle's: the same"]
    return _with_table(text, ["case", *head], lines)


def _along(rows: Sequence[Row], cell: Callable[[Row], str]) -> Iterator[list[str]]:
    """A line for each case: what the run of batch means shows at some n."""
    for end in last(rows, name=BM):
        run = of_case(rows, end, BM)
        yield [place(end, *KEYS), *(cell(_at(run, n)) for n in _some_steps(rows))]


def _first_a(rows: Sequence[Row], case: Row, name: str) -> list[Row]:
    mine = [row for row in rows if row["name"] == name and all(row[key] == value for key, value in case.items())]
    return [row for row in mine if row["a"] == mine[0]["a"]]


def _at(run: Sequence[Row], n: int) -> Row:
    """The row at n, or the one nearest below."""
    return max((row for row in run if row["step"] <= n), key=lambda row: int(row["step"]))


def _some_steps(rows: Sequence[Row]) -> list[int]:
    steps = sorted({row["step"] for row in rows if row["name"] == BM})
    return [step for step in (2**12, _SMALL, 2**20, 2**24) if step in steps]


def _law(rows: Sequence[Row], n: int) -> BrownianLaw:
    """The law of the blocks of the first case."""
    return block_law(tuple(BlockPlan.for_step(rows[0]["a"]).starts_up_to(n).tolist()), n)


def _reached(run: Sequence[Row], level: float) -> str:
    """The first n from which on coverage stays at or above a level."""
    above = list(takewhile(lambda row: row["coverage"] >= level, reversed(run)))
    return power_of_two(above[-1]["step"]) if above else "not yet"
