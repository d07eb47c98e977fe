"""What `halfwidth.strategic` ends in: the equilibrium with intervals, and how far the naive fit is off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfwidth.inference import Result
from halfwidth.inference.summary import aligned, bounds_text, finite, warning_lines
from halfwidth.kernels.arrays import Vector
from halfwidth.models.results import RegressionResult

_FAR = 4.0


@dataclass(frozen=True, eq=False)
class StrategicResult:
    """The equilibrium of a strategic population, and the fit that takes the table as it stands.

    Coefficients are those of standardised columns, after an intercept.

    Parameters
    ----------
    names : tuple of str
        The coefficients.
    modifiable : tuple of str
        The columns that agents change.
    result : Result
        What was learned while agents moved.
    exact : ndarray of shape (d,)
        The equilibrium, solved over the population.
    naive : RegressionResult
        The fit to rows of the table as it stands.
    naive_exact : ndarray of shape (d,)
        What that fit estimates, solved over the population.
    lengths : ndarray of shape (d,)
        Reach over cost in the columns that move, 0 elsewhere.
    features : ndarray of shape (agents, d)
        The unmoved population, standardised.
    labels : ndarray of shape (agents,)
        Its labels.
    classes : tuple
        The two classes; agents want the second one.
    level : float
        The confidence level.
    ridge : float
        The penalty of both, the intercept included.
    """

    names: tuple[str, ...]
    modifiable: tuple[str, ...]
    result: Result
    exact: Vector
    naive: RegressionResult
    naive_exact: Vector
    lengths: Vector
    features: Vector
    labels: Vector
    classes: tuple[Any, Any]
    level: float
    ridge: float

    @property
    def moved(self) -> Vector:
        """How far agents are from their own features at the equilibrium, in standard deviations of each column."""
        return np.asarray(self.lengths * self.exact)

    @property
    def status(self) -> str:
        """The status of the run; `unsettled` where the estimate is too far from the exact equilibrium."""
        away = np.abs(self.result.params - self.exact) > _FAR * self.result.bse
        return "unsettled" if self.result.status == "ok" and away.any() else self.result.status

    @property
    def warnings(self) -> list[str]:
        """What speaks against the run."""
        if self.status != "unsettled":
            return warning_lines(self.result)
        text = (
            f"more than {_FAR:g} standard errors from the exact equilibrium: the population still moves; give more rows"
        )
        return [f"warning (unsettled): the estimate is {text}", *warning_lines(self.result)]

    def scores(self, theta: Vector, moved: bool = True) -> Vector:
        """Return the probability of the second class for every agent.

        Parameters
        ----------
        theta : array_like of shape (d,)
            The classifier.
        moved : bool, default True
            Whether agents have responded to it.

        Returns
        -------
        ndarray of shape (agents,)
            The probabilities.
        """
        features = self.features + (self.lengths * theta if moved else 0.0)
        return np.asarray(1.0 / (1.0 + np.exp(-features @ theta)))

    def score_table(self) -> dict[str, Vector]:
        """Return the probabilities of all agents under both classifiers, by what they have responded to.

        Returns
        -------
        dict of ndarray
            The naive fit before and after agents respond to it, and the equilibrium.
        """
        return {
            "naive fit, nobody moved": self.scores(self.naive_exact, moved=False),
            "naive fit, agents responded": self.scores(self.naive_exact),
            "equilibrium": self.scores(self.exact),
        }

    def losses(self) -> dict[str, float]:
        """Return the mean log loss of both classifiers, before and after the population has responded to each.

        Returns
        -------
        dict
            By name: `naive_before`, `naive_after`, `equilibrium_after`.
        """

        def loss(theta: Vector, moved: bool) -> float:
            score = self.scores(theta, moved)
            return float(-np.mean(np.log(np.where(self.labels == 1.0, score, 1.0 - score))))

        return {
            "naive_before": loss(self.naive_exact, False),
            "naive_after": loss(self.naive_exact, True),
            "equilibrium_after": loss(self.exact, True),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each coefficient.

        Returns
        -------
        list of dict
            Estimate, interval and exact value of the equilibrium; the same of the naive fit; whether its interval
            covers the equilibrium, and by how many of its standard errors it is off; how far agents moved.
        """
        bounds, naive_bounds = (fit.conf_int(1.0 - self.level) for fit in (self.result, self.naive))
        off = (self.naive.params - self.exact) / self.naive.bse
        return [
            {
                "name": name,
                "coef": finite(self.result.params[j]),
                "std_err": finite(self.result.bse[j]),
                "ci_lower": finite(bounds[j, 0]),
                "ci_upper": finite(bounds[j, 1]),
                "exact": float(self.exact[j]),
                "status": self.result.coefficient_status[j],
                "naive": finite(self.naive.params[j]),
                "naive_std_err": finite(self.naive.bse[j]),
                "naive_ci_lower": finite(naive_bounds[j, 0]),
                "naive_ci_upper": finite(naive_bounds[j, 1]),
                "naive_exact": float(self.naive_exact[j]),
                "naive_covers": bool(naive_bounds[j, 0] <= self.exact[j] <= naive_bounds[j, 1]),
                "naive_off": finite(off[j]),
                "modifiable": name in self.modifiable,
                "moved": float(self.moved[j]),
            }
            for j, name in enumerate(self.names)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the population, for JSON.

        Returns
        -------
        dict
            The run, the classes, the losses, and `coefficients` as `rows` gives them.
        """
        return {
            "n": self.result.n,
            "agents": len(self.features),
            "classes": [str(label) for label in self.classes],
            "level": self.level,
            "ridge": self.ridge,
            "status": self.status,
            "naive_status": self.naive.status,
            "warnings": self.warnings,
            "log_loss": self.losses(),
            "coefficients": self.rows(),
        }

    def summary(self) -> str:
        """Return the table that `halfwidth strategic` prints.

        Returns
        -------
        str
            The equilibrium with intervals, the naive fit beside it, and what speaks against either.
        """
        head = ("", "equilibrium", f"{100 * self.level:g}% interval", "exact", "naive fit", "interval", "off", "moved")
        lines = [
            (
                row["name"] if row["status"] == "ok" else f"{row['name']} ! {row['status']}",
                f"{row['coef']:.4f}",
                bounds_text(row["ci_lower"], row["ci_upper"]),
                f"{row['exact']:.4f}",
                f"{row['naive']:.4f}",
                bounds_text(row["naive_ci_lower"], row["naive_ci_upper"]),
                f"{row['naive_off']:+.1f}",
                f"{row['moved']:+.3f}" if row["modifiable"] else "",
            )
            for row in self.rows()
        ]
        loss = self.losses()
        penalty = (
            f"penalty: ridge = {self.ridge:g}, also on the intercept; equilibrium and naive fit are the penalised ones"
        )
        return "\n".join(
            [
                f"{len(self.features):,} agents, {self.result.n:,} rows, status {self.status} (naive fit: "
                f"{self.naive.status}); agents change {', '.join(self.modifiable)}",
                *aligned(head, lines),
                "off: naive fit minus equilibrium, in standard errors of the naive fit; moved: by how many standard "
                "deviations of the column agents shift",
                f"mean log loss: naive fit {loss['naive_before']:.4f} before agents respond to it, "
                f"{loss['naive_after']:.4f} after; equilibrium {loss['equilibrium_after']:.4f}",
                *([penalty] if self.ridge else []),
                *self.warnings,
            ]
        )
