"""Whether the rows of a stream are in time order, within groups where there are any.

A row is compared with the usable row before it; where rows have groups, only if that one is of the same group. Tables
in time order, and tables of one group after the other, each in time order, both pass, in flat memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from halfwidth.streams.design.plan import Rows


@dataclass
class TimeOrder:
    """Time and group of the last row that was in order."""

    last_time: float = -np.inf
    last_group: str | None = None

    def first_late(self, rows: Rows, stop: int) -> int | None:
        """The first usable row before `stop` that is earlier than the one before it; None if there is none."""
        if rows.time is None:
            return None
        used = np.flatnonzero(rows.faults.usable(False)[:stop])
        if not len(used):
            return None
        time = rows.time[used]
        late = time < np.concatenate([[self.last_time], time[:-1]])
        group = None if rows.group is None else rows.group[used]
        if group is not None:
            late &= np.concatenate([[str(group[0]) == self.last_group], group[1:] == group[:-1]])
        found = np.flatnonzero(late)
        end = int(found[0]) if len(found) else len(used)
        if end:
            self.last_time, self.last_group = float(time[end - 1]), None if group is None else str(group[end - 1])
        return int(used[end]) if len(found) else None

    def to_state(self) -> dict[str, Any]:
        """Fields of the state of a stream."""
        return {"last_time": float(self.last_time), "last_group": self.last_group}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """What `to_state` gave."""
        return cls(state["last_time"], state["last_group"])
