"""`halfwidth.performative`: where learning settles when data respond, where it should, and where a naive fit ends.

While theta is deployed rows have the law pi_theta. Three points, for a loss l:

    stable    the mean gradient at theta of the rows that theta itself brings about vanishes: what learners reach,
    optimum   minimises E_{pi_theta} l(theta, x) over theta: known where a problem declares how its data respond,
    naive     minimises E_{pi_theta_0} l(theta, x): a fit to rows that came while theta_0 was deployed.

J. Perdomo, T. Zrnic, C. Mendler-Duenner and M. Hardt, *Performative prediction* (ICML 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfwidth.checks import check_count, check_level
from halfwidth.errors import InputError
from halfwidth.inference import Result
from halfwidth.inference.summary import aligned, bounds_text, finite, warning_lines
from halfwidth.kernels.arrays import Vector
from halfwidth.learners import Auto
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import Problem

_NAIVE_DRAWS = 1
_BURN_IN = 0.1


@dataclass(frozen=True, eq=False)
class PerformativeResult:
    """The performatively stable point with intervals, the optimum where it is known, and the naive fit.

    Parameters
    ----------
    name : str
        The problem.
    stable : Result
        What was learned while the data responded: the stable point with its intervals.
    naive : Result
        The fit to rows that came while theta_0 was deployed.
    exact : ndarray of shape (d,), optional
        The stable point, where the problem states its truth.
    optimum : ndarray of shape (d,), optional
        The performative optimum, where the problem declares how its data respond.
    level : float
        The confidence level.
    """

    name: str
    stable: Result
    naive: Result
    exact: Vector | None
    optimum: Vector | None
    level: float

    @property
    def status(self) -> str:
        """The status of the run that learned the stable point."""
        return self.stable.status

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each coefficient.

        Returns
        -------
        list of dict
            The stable point, its interval and its exact value; the optimum; the naive fit with its interval, by how
            many of its standard errors it is off the stable point (the exact one where it is known), and whether its
            interval covers that.
        """
        bounds, naive_bounds = (fit.conf_int(1.0 - self.level) for fit in (self.stable, self.naive))
        target = self.stable.params if self.exact is None else self.exact
        off = (self.naive.params - target) / self.naive.bse
        return [
            {
                "name": f"theta[{j}]",
                "stable": finite(self.stable.params[j]),
                "std_err": finite(self.stable.bse[j]),
                "ci_lower": finite(bounds[j, 0]),
                "ci_upper": finite(bounds[j, 1]),
                "exact": None if self.exact is None else float(self.exact[j]),
                "optimum": None if self.optimum is None else float(self.optimum[j]),
                "naive": finite(self.naive.params[j]),
                "naive_std_err": finite(self.naive.bse[j]),
                "naive_ci_lower": finite(naive_bounds[j, 0]),
                "naive_ci_upper": finite(naive_bounds[j, 1]),
                "naive_off": finite(off[j]),
                "naive_covers": bool(naive_bounds[j, 0] <= target[j] <= naive_bounds[j, 1]),
            }
            for j in range(self.stable.params.size)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for JSON.

        Returns
        -------
        dict
            The problem, the rows and statuses of both runs, the warnings, and `coefficients` as `rows` gives them.
        """
        return {
            "problem": self.name,
            "n": self.stable.n,
            "level": self.level,
            "status": self.status,
            "naive_status": self.naive.status,
            "warnings": warning_lines(self.stable),
            "coefficients": self.rows(),
        }

    def summary(self) -> str:
        """Return the table that `halfwidth performative` prints.

        Returns
        -------
        str
            The stable point with intervals, the optimum and the naive fit beside it, and what speaks against them.
        """
        interval = f"{100 * self.level:g}% interval"
        head = ("", "stable point", interval, "exact", "optimum", "naive fit", "interval", "off")
        lines = [
            (
                row["name"],
                *(_text(row["stable"]), bounds_text(row["ci_lower"], row["ci_upper"])),
                *(_text(row["exact"]), _text(row["optimum"]), _text(row["naive"])),
                bounds_text(row["naive_ci_lower"], row["naive_ci_upper"]),
                _text(row["naive_off"], "+.1f"),
            )
            for row in self.rows()
        ]
        covered = sum(row["naive_covers"] for row in self.rows())
        return "\n".join(
            [
                f"{self.name}, {self.stable.n:,} rows, status {self.status} (naive fit: {self.naive.status})",
                *aligned(head, lines),
                "naive fit: to rows that came while theta_0 was deployed; off: from the stable point, in its own "
                "standard errors",
                f"{covered} of {len(lines)} naive intervals cover the stable point",
                *warning_lines(self.stable),
            ]
        )


def performative(problem: Problem, *, rows: int = 100_000, seed: int = 0, level: float = 0.95) -> PerformativeResult:
    """Learn the performatively stable point of a problem whose data respond to theta, and compare.

    Parameters
    ----------
    problem : Problem
        A problem with a sampler: a built-in one, such as ``halfwidth.problem("pricing")``, or one of your own.
    rows : int, default 100_000
        How many rows the stable point is learned from, and the naive fit too.
    seed : int, default 0
        Of the draws.
    level : float, default 0.95
        The confidence level.

    Returns
    -------
    PerformativeResult
        The stable point with intervals; its exact value and the performative optimum where the problem states them; the
        naive fit, and how far it is off.

    Raises
    ------
    InputError
        If an argument breaks a rule, or the problem has no sampler.

    Examples
    --------
    >>> import halfwidth as hw
    >>> found = hw.performative(hw.problem("pricing", dim=2), rows=20_000)
    >>> prices = found.rows()[0]
    >>> prices["optimum"] < prices["ci_lower"] and prices["naive_covers"]
    False
    """
    check_level(level)
    check_count("rows", rows, at_least=5_000)
    if not isinstance(problem, Problem):
        raise InputError.of("problem", "be a Problem, such as halfwidth.problem('pricing')", problem)
    if problem.sample is None:
        raise InputError("problem must have a sampler: Problem(..., sample=...)")
    truth = None if problem.solve is None else problem.truth
    stable = Auto(problem, seed=np.random.SeedSequence(seed)).run(rows).result()
    naive = _naive_fit(problem, rows, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_NAIVE_DRAWS,))))
    exact, optimum = (None, None) if truth is None else (truth.theta_star, truth.optimum)
    return PerformativeResult(problem.name, stable, naive, exact, optimum, level)


def _naive_fit(problem: Problem, rows: int, rng: np.random.Generator) -> Result:
    """The given rows are those of a chain at theta_0, the first tenth as many left out."""
    theta, state = np.array(problem.theta_0), np.array(problem.state_0)
    drawn = np.empty((rows, problem.row_size))
    collect_rows(problem, rng, theta, state, drawn[: int(_BURN_IN * rows)])
    collect_rows(problem, rng, theta, state, drawn)
    return Auto(problem).consume(drawn).result()


def _text(value: float | None, form: str = ".4f") -> str:
    return "none" if value is None else f"{value:{form}}"
