"""What the standard errors of a regression rest on: batches, groups, bandwidth, and the lines that say so."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

Known = float | None
"""A number that not every method has."""


@dataclass(frozen=True)
class Basis:
    """What the standard errors rest on; None where a method has no such number.

    Parameters
    ----------
    method : str
        The method of the standard errors.
    engine : str
        What computed the estimate: ``"newton"`` or ``"sgd"``.
    batches : int, optional
        The number of batches, or of buckets of groups.
    groups : tuple of (int, bool), optional
        The number of groups, and whether it is exact.
    batch_rows : float, optional
        The rows of a batch.
    bandwidth_rows : float, optional
        Over how many rows covariances are summed.
    effective_sample_size : float, optional
        The number of independent rows that would give these standard errors.
    ratio_to_iid : float, optional
        The standard errors over those for independent rows, the median over the coefficients.
    dispersion : float, optional
        The variance of the residuals, or the dispersion of a count.
    scale : float, optional
        The robust scale of the residuals.
    family_facts : dict, optional
        What the family has beside the coefficients: the dispersion, alpha and whether it was estimated, or the
        baseline of classes and, of two, the one whose log odds are modelled.
    ridge : float, default 0.0
        The penalty; where there is one, intervals are for the coefficients that minimise the mean penalised loss.
    extra : dict, optional
        More facts, such as what the stream did to its rows.
    """

    method: str
    engine: str
    batches: int | None = None
    groups: tuple[int, bool] | None = None
    batch_rows: Known = None
    bandwidth_rows: Known = None
    effective_sample_size: Known = None
    ratio_to_iid: Known = None
    dispersion: Known = None
    scale: Known = None
    family_facts: dict[str, Any] = field(default_factory=dict)
    ridge: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; unknown ones are left out."""
        names = ("engine", "batches", "batch_rows", "bandwidth_rows", "effective_sample_size", "ratio_to_iid")
        known = {name: getattr(self, name) for name in (*names, "dispersion", "scale")}
        found = {name: value for name, value in known.items() if value is not None}
        if self.groups is not None:
            found |= {"groups": self.groups[0], "groups_exact": self.groups[1], "buckets": self.batches}
        penalty = {"ridge": self.ridge} if self.ridge else {}
        return found | penalty | self.family_facts | self.extra

    def lines(self, degrees_of_freedom: float) -> list[str]:
        """Return the lines of a summary that say what the standard errors rest on."""
        facts = []
        if self.groups is not None:
            count, exact = self.groups
            facts.append(f"{'' if exact else 'about '}{count:,} groups in {self.batches:,} buckets")
        elif self.batches is not None:
            of = "" if self.batch_rows is None else f" of {self.batch_rows:,.0f} rows"
            facts.append(f"{self.batches:,} batches{of}")
        if self.bandwidth_rows is not None:
            facts.append(f"bandwidth {self.bandwidth_rows:,.0f} rows")
        finite = math.isfinite(degrees_of_freedom)
        facts.append(f"degrees of freedom {degrees_of_freedom:,.0f} (median)" if finite else "degrees of freedom inf")
        lines = [", ".join(facts)]
        if self.effective_sample_size is not None and self.ratio_to_iid is not None:
            lines.append(
                f"effective sample size {self.effective_sample_size:,.0f}, "
                f"standard errors {self.ratio_to_iid:.2f} times the iid ones (median)"
            )
        if self.scale is not None:
            lines.append(f"residual scale {self.scale:.4g}")
        if "alpha" in self.family_facts:
            lines.append(f"alpha {self.family_facts['alpha']:.4g} ({self.family_facts['alpha_is']})")
        elif "baseline" in self.family_facts:
            modelled = self.family_facts.get("modelled_class", "every class")
            lines.append(f"log odds of {modelled} against {self.family_facts['baseline']}")
        elif self.family_facts:
            lines.append(f"dispersion {self.family_facts['dispersion']:.4g} (Pearson)")
        if self.ridge:
            lines.append(
                f"penalty: ridge = {self.ridge:g}, not on an intercept; coefficients are shrunk, and intervals are for "
                "the penalised ones"
            )
        return lines + [f"{key.replace('_', ' ')}: {_told(value)}" for key, value in self.extra.items() if value]


def _told(value: Any) -> str:
    """A fact as text: counts by reason, or levels by column."""
    if not isinstance(value, dict):
        return str(value)
    texts = (f"{name} {each:,}" if isinstance(each, int) else f"{name} = {each}" for name, each in value.items())
    return "; ".join(texts)
