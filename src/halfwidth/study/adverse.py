"""The adverse battery: problems on which methods fail, and what each coefficient of each run ends in.

| outcome            | what it is                                                                             |
|--------------------|----------------------------------------------------------------------------------------|
| `covered`          | status ok, and the interval contains the truth                                         |
| `missed_by_chance` | status ok, the truth outside the interval, within 5 standard errors of the estimate    |
| `doubted`          | a number with a named doubt: the run or the coefficient carries a flag                 |
| `refused`          | no interval: an error with advice, or none for this coefficient                        |
| `silently_wrong`   | status ok, and the truth more than 5 standard errors away, or there is no truth at all |

A row is `hopeless` where no honest interval is possible at its length, for a reason that is stated here before any
figure is seen; there a doubt or a refusal is right, and status ok is not asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.study.battery import BatteryRow, choose_rows
from halfwidth.study.real_features import with_table_file
from halfwidth.study.replicate import Notes
from halfwidth.study.run import Collected
from halfwidth.study.scores import Row
from halfwidth.study.spec import Spec

FAR = 5.0
"""Standard errors beyond which a miss is no chance."""
OUTCOMES = ("covered", "missed_by_chance", "doubted", "refused", "silently_wrong")
_ROWS_OF_REAL = {"beijing": 41_757, "flights": 65_470}


@dataclass(frozen=True)
class AdverseRow(BatteryRow):
    """A problem of the adverse battery; `hopeless` says why no honest interval is possible, where there is none."""

    hopeless: str = ""

    def spec(self, methods: Sequence[str], replicates: int, seed: int) -> Spec:
        """The study of this row; the features of real data are fetched when they are first needed."""
        row = BatteryRow(self.problem, with_table_file(self.settings), self.steps, self.eta, self.given)
        return replace(row.spec(methods, replicates, seed), direction="all")

    def score(self, spec: Spec, method: str, collected: Collected) -> Row:
        """The shares of the outcomes."""
        truth = spec.make_problem().theta_star
        head = {"row": self.key, "method": method, "dim": truth.size, "step": self.steps, "replicates": spec.replicates}
        reason = str(collected.refusals[method]) if method in collected.refusals else ""
        notes = collected.notes.get(method, [])
        return head | outcomes(notes, truth) | {"hopeless": self.hopeless, "refusal": reason}


def _troubled(loss: str, *troubles: str, **others: Any) -> list[AdverseRow]:
    return [AdverseRow(f"troubled-{loss}", {"trouble": trouble}, given=True, **others) for trouble in troubles]


def _feedback_rows() -> list[AdverseRow]:
    slow = "the response takes 1,000 rows to settle, and 50,000 rows hold too few such times"
    rows = [AdverseRow("rotating-game", {"strength": strength}) for strength in (2.0, 5.0, 20.0)]
    rows += [AdverseRow("performative-mean", {"dim": 2, "rho": rho}) for rho in (0.1, 0.01)]
    rows += [AdverseRow("performative-mean", {"dim": 2, "rho": 0.001}, hopeless=slow)]
    for epsilon in (0.9, 0.95, -2.0, -8.0):
        rows += [
            AdverseRow("performative-mean", {"dim": 2, "epsilon": epsilon}),
            AdverseRow("performative-ar", {"dim": 2, "epsilon": epsilon, "psi": 0.98}),
        ]
    rows += [AdverseRow("performative-ar", {"dim": 2, "epsilon": epsilon, "psi": 0.98}) for epsilon in (0.0, 0.5)]
    return rows


def _dependent_rows() -> list[AdverseRow]:
    long = "rows stay correlated over 1,000 rows, and 50,000 rows are worth 25 independent ones"
    rows = []
    for given in (False, True):
        rows += [
            AdverseRow("ar-linear", {"dim": 3, "phi": 0.99, "psi": 0.99}, given=given),
            AdverseRow("ar-linear", {"dim": 3, "phi": 0.999, "psi": 0.999}, given=given, hopeless=long),
        ]
    return rows


def _table_rows() -> list[AdverseRow]:
    jumps = "a coefficient that changes has no value to cover"
    infinite = "the labels are separated, and the maximum likelihood is at infinity"
    far = [1000.0] * 5
    rows = _troubled("linear", "scales", "absent-column", "rare-column", "first-rows", "noise-doubles")
    rows += _troubled("linear", "heavy-tails", "random-walk")
    rows += _troubled("linear", "jump", hopeless=jumps)
    rows += _troubled("logistic", "absent-column", "rare-column", "first-rows", eta=2.0)
    rows += _troubled("logistic", "jump", eta=2.0, hopeless=jumps)
    rows += _troubled("logistic", "separated", eta=2.0, hopeless=infinite)
    rows += [
        AdverseRow("iid-linear", {"dim": 5, "theta_0": far}),
        AdverseRow("seed-logistic", {"dim": 5, "theta_0": far}, steps=125_000, eta=2.0),
        AdverseRow("performative-mean", {"dim": 2, "theta_0": far[:2]}),
    ]
    for tau in (0.5, 0.9):
        rows += [
            AdverseRow("quantile-linear", {"tau": tau}, given=True),
            AdverseRow("quantile-linear", {"tau": tau, "phi": 0.7, "psi": 0.7}, given=True),
        ]
    return rows


def _real_rows() -> list[AdverseRow]:
    return [
        AdverseRow(
            f"table-{loss}",
            {"table": name, "psi": psi, "epsilon": epsilon},
            steps=_ROWS_OF_REAL[name],
            eta=0.5 if loss == "linear" else 2.0,
            given=epsilon == 0.0,
        )
        for name in _ROWS_OF_REAL
        for loss in ("linear", "logistic", "poisson")
        for psi in (0.0, 0.9)
        for epsilon in (0.0, 0.5)
    ]


ADVERSE: tuple[AdverseRow, ...] = (*_feedback_rows(), *_dependent_rows(), *_table_rows(), *_real_rows())


def adverse_rows(prefixes: Iterable[str] = ()) -> tuple[AdverseRow, ...]:
    """The rows of these keys or beginnings of keys, in order; all of them when none is given."""
    return choose_rows(ADVERSE, prefixes)


def outcomes(notes: Sequence[Notes], truth: NDArray[np.float64]) -> Row:
    """Shares of the outcomes over runs and coefficients; no notes at all are a refusal.

    `coverage_ok` is the coverage among coefficients with status ok, pooled, and `coverage_ok_worst` that of the worst
    coefficient. `ok` is the share of coefficients with status ok, `ok_runs` that of runs in which every coefficient has
    it, `status_ok` that of runs whose own status is ok, whatever their coefficients have.
    """
    if not notes:
        return dict.fromkeys((*OUTCOMES, "ok", "ok_runs", "status_ok"), 0.0) | {"refused": 1.0} | _coverages(None, None)
    estimate, half, error = (np.array([getattr(note, name)[-1] for note in notes]) for name in _ARRAYS)
    doubted = np.array([note.doubted[-1] for note in notes]) > 0.0
    missing = ~(np.isfinite(estimate) & np.isfinite(half))
    ok = ~missing & ~doubted
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.abs(estimate - truth)
        covered = ok & (away <= half)
        wrong = ok & ~covered & ~(away <= FAR * error)
    kinds = (covered, ok & ~covered & ~wrong, doubted & ~missing, missing, wrong)
    shares = {name: float(kind.mean()) for name, kind in zip(OUTCOMES, kinds, strict=True)}
    shares |= {"ok": float(ok.mean()), "ok_runs": float(ok.all(axis=1).mean())}
    shares["status_ok"] = float(np.mean([note.status_ok[-1] for note in notes]))
    return shares | _coverages(covered, ok)


_ARRAYS = ("estimate", "half_width", "standard_error")


def _coverages(covered: NDArray[np.bool_] | None, ok: NDArray[np.bool_] | None) -> Row:
    if covered is None or ok is None or not ok.any():
        return {"coverage_ok": None, "coverage_ok_worst": None, "ok_coefficients": 0}
    count = ok.sum(axis=0)
    each = covered.sum(axis=0)[count > 0] / count[count > 0]
    pooled = float(covered.sum() / ok.sum())
    return {"coverage_ok": pooled, "coverage_ok_worst": float(each.min()), "ok_coefficients": int(ok.sum())}
