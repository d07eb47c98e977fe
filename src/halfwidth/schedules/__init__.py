"""Step sizes, truncation thresholds and block plans: plain callables, nothing else."""

from halfwidth.schedules.block_plan import BlockPlan
from halfwidth.schedules.steps import (
    ConstantStep,
    PowerStep,
    Schedule,
    Threshold,
    TruncationSets,
    check_step_exponent,
)

__all__ = [
    "BlockPlan",
    "ConstantStep",
    "PowerStep",
    "Schedule",
    "Threshold",
    "TruncationSets",
    "check_step_exponent",
]
