"""What a person can act on: how much the interval rests on, and what speaks against it."""

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


@dataclass(frozen=True)
class Diagnostics:
    """Facts about a run, and warnings in words; `status` is `ok` or the name of the first warning."""

    effective_blocks: float
    correlation_time: float | None = None
    truncations: int | None = None
    truncated_at: tuple[int, ...] = ()
    capped_share: float | None = None
    flags: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    """What a method chose by itself, and why."""
    coefficient_flags: tuple[tuple[str, ...], ...] = ()
    """The names of what speaks against each coefficient by itself; empty where nothing speaks against any."""

    @property
    def status(self) -> str:
        return self.flags[0][0] if self.flags else "ok"

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.flags)

    def with_facts(self, *flags: tuple[str, str], **facts: Unpack[Facts]) -> Self:
        """The same with more known about the run."""
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
