"""What a check found: one line for each property, with the number behind it and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["passed", "failed", "not stated"]


@dataclass(frozen=True)
class Finding:
    """One property that was checked.

    Parameters
    ----------
    check : str
        The property, in a word or two, such as ``"determinism"``; a report lists its findings in the order in which
        they were made.
    outcome : {'passed', 'failed', 'not stated'}
        Whether it holds; `not stated` where the author gave nothing to check.
    detail : str
        What was seen, and, where it failed, what to do.
    """

    check: str
    outcome: Outcome
    detail: str


@dataclass
class Report:
    """The findings of a check, in order.

    Parameters
    ----------
    name : str
        What was checked.
    findings : list of Finding
        One for each property.
    """

    name: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    @property
    def failures(self) -> list[Finding]:
        """The findings that failed."""
        return [finding for finding in self.findings if finding.outcome == "failed"]

    def add(self, check: str, passed: bool | None, detail: str) -> None:
        """Note a property.

        Parameters
        ----------
        check : str
            The property.
        passed : bool or None
            Whether it holds; None where there is nothing to check.
        detail : str
            What was found.
        """
        outcome: Outcome = "not stated" if passed is None else "passed" if passed else "failed"
        self.findings.append(Finding(check, outcome, detail))

    def __str__(self) -> str:
        width = max((len(finding.check) for finding in self.findings), default=0)
        lines = [
            f"{finding.check.ljust(width)}  {finding.outcome.ljust(10)}  {finding.detail}" for finding in self.findings
        ]
        verdict = "nothing failed" if self.ok else f"{len(self.failures)} failed"
        return "\n".join([f"{self.name}: {verdict}", *lines])
