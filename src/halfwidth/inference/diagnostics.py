"""Diagnostics of a run: what its standard errors rest on, and the warnings, each with advice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, TypedDict, Unpack

FEW_BLOCKS = 3.0
"""Below this many effective degrees of freedom the interval is wide and its asymptotics are strained."""

BLOCKS_PER_CORRELATION_TIME = 10.0
"""Iterates that never decorrelate within the longest block show a correlation time of a third of it; a tenth is
the line above which the covariance is clearly still growing with the block."""


class Facts(TypedDict, total=False):
    """What a run may add to its diagnostics: the fields of `Diagnostics` other than `flags`."""

    effective_blocks: float
    correlation_time: float | None
    truncations: int | None
    truncated_at: tuple[int, ...]
    capped_share: float | None
    notes: tuple[str, ...]
    coefficient_flags: tuple[tuple[str, ...], ...]
    coefficient_advice: tuple[str, ...]


@dataclass(frozen=True)
class Diagnostics:
    """Facts about a run, and its warnings.

    Parameters
    ----------
    effective_blocks : float
        The effective degrees of freedom of the covariance estimate.
    correlation_time : float, optional
        Over how many rows the iterates stay correlated.
    truncations : int, optional
        How often truncated SGD restarted.
    truncated_at : tuple of int, default ()
        The rows at which it did.
    capped_share : float, optional
        The share of steps that were capped at the inverse of the row's curvature.
    flags : tuple of (str, str), default ()
        Warnings: a name and a text with advice each.
    notes : tuple of str, default ()
        What a method chose by itself, and why.
    coefficient_flags : tuple of tuple of str, default ()
        For each coefficient the names of its own warnings; empty where there are none for any.
    coefficient_advice : tuple of str, default ()
        A line of advice for every warning that some coefficient has.
    """

    effective_blocks: float
    correlation_time: float | None = None
    truncations: int | None = None
    truncated_at: tuple[int, ...] = ()
    capped_share: float | None = None
    flags: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    coefficient_flags: tuple[tuple[str, ...], ...] = ()
    coefficient_advice: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """``"ok"``, or the name of the first warning."""
        return self.flags[0][0] if self.flags else "ok"

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of the warnings."""
        return tuple(text for _, text in self.flags)

    def with_facts(self, *flags: tuple[str, str], **facts: Unpack[Facts]) -> Self:
        """Return the same diagnostics with more known about the run.

        Parameters
        ----------
        *flags : tuple of (str, str)
            Warnings to add.
        **facts : Unpack[Facts]
            Fields to replace.

        Returns
        -------
        Diagnostics
            A copy, of the same class.
        """
        return replace(self, flags=self.flags + flags, **facts)


def batch_diagnostics(
    effective_blocks: float,
    correlation_time: float,
    longest_block: int,
    n: int,
    times_per_block: float = BLOCKS_PER_CORRELATION_TIME,
) -> Diagnostics:
    """Judge a batch-means run by its effective blocks and by the correlation times that its longest block holds."""
    flags = []
    if times_per_block * correlation_time > longest_block:
        flags.append(
            (
                "short-run",
                f"the iterates stay correlated over about {correlation_time:,.0f} rows and the longest block has "
                f"only {longest_block:,} of the {n:,} rows: the standard error is likely too small. "
                "Run longer, or take larger steps",
            )
        )
    if effective_blocks < FEW_BLOCKS:
        flags.append(
            (
                "few-blocks",
                f"only {effective_blocks:.1f} effective blocks after {n:,} rows: the interval is wide; run longer",
            )
        )
    return Diagnostics(effective_blocks, correlation_time, flags=tuple(flags))
