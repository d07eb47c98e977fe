"""The pictures of the rate: error, slopes, coverage and bias along n, step exponents, dimensions, and `auto`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from halfwidth.paper.panels import nominal
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.rate_scores import AUTO, BM, CALIBRATED, theory
from halfwidth.plots.sheet import Line, Panel, Sheet

Curve = tuple[list[float], list[float]]

_PARTS = ("error", "bias", "spread")
_NAMES = (BM, CALIBRATED, AUTO)
_WORDS = {"dim": "d = {}", "a": "a = {}"}
_SIGMA = {"error": "sigma_error", "bias": "sigma_bias", "spread": "sigma_spread"}
_DRAWN_POWERS = 5  # sqrt(d) is drawn at so many n


def sheets(rows: Sequence[Row]) -> list[Sheet]:
    """The pictures."""
    bm = [row for row in rows if row["name"] != AUTO]
    a = bm[0]["a"]
    mine = [row for row in rows if row["a"] in (a, None)]
    steps = [row for row in bm if row["model"] == "linear" and row["dim"] == 2]
    streams, by_epsilon = _groups(mine, "model", "epsilon"), _groups(steps, "epsilon")
    own = [(where, [row for row in group if row["name"] != AUTO]) for where, group in streams]
    return [
        _sheet("rate", f"The error of Sigma_hat at a = {a}", own, "dim", (_error, _parts, _slopes), "n^(-(1-a)/4)"),
        _sheet("rate-coverage", f"Intervals at a = {a}", own, "dim", (_coverage, _widths, _bias), "n^-(a-1/2)"),
        _sheet("rate-steps", "Step exponents, d = 2", by_epsilon, "a", (_error, _slopes, _coverage, _bias), "theory"),
        _dimensions([row for row in mine if row["name"] == BM]),
        _sheet("rate-auto", "auto beside BM", streams, "dim", (_errors, _coverage, _widths), ""),
    ]


def _groups(rows: Sequence[Row], *keys: str) -> list[tuple[str, list[Row]]]:
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    words = {"epsilon": "epsilon = {}"}
    named = {values: [words.get(k, "{}").format(v) for k, v in zip(keys, values, strict=True)] for values in found}
    return [(", ".join(named[values]), group) for values, group in found.items()]


def _sheet(
    name: str,
    title: str,
    groups: Iterable[tuple[str, list[Row]]],
    key: str,
    columns: Sequence[Callable[[list[Row], str, str], Panel]],
    reference: str,
) -> Sheet:
    """A line of panels for every group of rows."""
    panels = [column(group, key, where) for where, group in groups for column in columns]
    return Sheet(name, title, len(columns), panels, reference)


def _runs(rows: Sequence[Row], key: str, name: str) -> list[tuple[int, str, list[Row]]]:
    """Place, words and rows of every value of `key` that this method has."""
    values = list(dict.fromkeys(row[key] for row in rows if row[key] is not None))
    runs = [[row for row in rows if row[key] == value and row["name"] == name] for value in values]
    return [(at, _WORDS[key].format(values[at]), run) for at, run in enumerate(runs) if run]


def _line(run: Sequence[Row], field: str, value: str, at: int, kinds: Sequence[str], kind: str) -> Line:
    kept = [row for row in run if row.get(field) is not None]
    xs, ys = [row["step"] for row in kept], [row[field] for row in kept]
    return Line(xs, ys, value, at, kind, kinds.index(kind))


def _error(rows: list[Row], key: str, where: str) -> Panel:
    runs = _runs(rows, key, BM)
    kinds = _error_kinds(key)
    lines = [_line(run, "sigma_error", value, at, kinds, kinds[0]) for at, value, run in runs]
    references = [_power(run, "sigma_error", theory(run[-1]["a"])) for _, _, run in runs]
    return Panel(f"error of Sigma_hat\n{where}", "spectral norm", lines, log_y=True, references=references)


def _error_kinds(key: str) -> Sequence[str]:
    """Beside its bias and spread the error is a part; in a sheet with coverage it is a method's."""
    return _PARTS if key == "dim" else _NAMES


def _parts(rows: list[Row], key: str, where: str) -> Panel:
    lines = [
        _line(run, _SIGMA[kind], value, at, _PARTS, kind)
        for kind in ("bias", "spread")
        for at, value, run in _runs(rows, key, BM)
    ]
    return Panel(f"bias and spread of Sigma_hat\n{where}", "spectral norm", lines, log_y=True)


def _slopes(rows: list[Row], key: str, where: str) -> Panel:
    lines, references = [], []
    for at, value, run in _runs(rows, key, BM):
        kept = [row for row in run if row["local_slope"] is not None]
        xs, ys = [row["step"] for row in kept], [row["local_slope"] for row in kept]
        lines.append(Line(xs, ys, value, at, _error_kinds(key)[0], 0, [2.0 * row["local_slope_se"] for row in kept]))
        references.append(([float(x) for x in xs], [theory(run[-1]["a"])] * len(xs)))
    return Panel(f"local slope over a factor of 16\n{where}", "slope", lines, references=references)


def _coverage(rows: list[Row], key: str, where: str) -> Panel:
    return Panel(
        f"coverage of the exact theta*\n{where}", "coverage", _by_name(rows, "coverage", key), nominal=_band(rows)
    )


def _widths(rows: list[Row], key: str, where: str) -> Panel:
    return Panel(f"width over the oracle's\n{where}", "ratio", _by_name(rows, "width_ratio", key), log_y=True)


def _errors(rows: list[Row], key: str, where: str) -> Panel:
    return Panel(f"error of the covariance\n{where}", "spectral norm", _by_name(rows, "sigma_error", key), log_y=True)


def _bias(rows: list[Row], key: str, where: str) -> Panel:
    runs = _runs(rows, key, BM)
    lines = [_line(run, "bias_over_sd", value, at, _NAMES, BM) for at, value, run in runs]
    lasting = rows[0]["model"] == "logistic" or rows[0]["epsilon"] != 0.0
    references = [_power(run, "bias_over_sd", 0.5 - run[-1]["a"]) for _, _, run in runs if lasting]
    return Panel(f"bias of the average\n{where}", "standard deviations", lines, references=references)


def _by_name(rows: Sequence[Row], field: str, key: str) -> list[Line]:
    lines = []
    for name in _NAMES:
        mine = [row for row in rows if row["name"] == name and row.get(field) is not None]
        lines += [_line(run, field, value, at, _NAMES, name) for at, value, run in _runs(mine, key, name)]
    return lines


def _band(rows: Sequence[Row]) -> tuple[float, float]:
    """The band of the method with the fewest replicates."""
    return nominal([min(rows, key=lambda row: int(row["replicates"]))])


def _power(run: Sequence[Row], field: str, exponent: float) -> Curve:
    """The power of n through the end of a run."""
    end = run[-1]
    steps = [float(row["step"]) for row in run]
    return steps, [end[field] * (step / end["step"]) ** exponent for step in steps]


def _dimensions(rows: Sequence[Row]) -> Sheet:
    """The error against d at several n, with sqrt(d) through the smallest one."""
    steps = sorted({row["step"] for row in rows})
    drawn = steps[:: -max(1, len(steps) // _DRAWN_POWERS)][::-1]
    panels = []
    for where, group in _groups(rows, "model", "epsilon"):
        lines, references = [], []
        for at, step in enumerate(drawn):
            run = sorted((row for row in group if row["step"] == step), key=lambda row: int(row["dim"]))
            dims, errors = [row["dim"] for row in run], [row["sigma_error"] for row in run]
            lines.append(Line(dims, errors, f"n = 2^{step.bit_length() - 1}", at))
            references.append((dims, [errors[0] * (dim / dims[0]) ** 0.5 for dim in dims]))
        title = f"error of Sigma_hat\n{where}"
        ticks = lines[0].x
        panels.append(Panel(title, "spectral norm", lines, True, None, references, "dimension d", ticks))
    return Sheet("rate-dimension", "The error against the dimension", len(panels), panels, "sqrt(d)")
