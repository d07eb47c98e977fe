"""A call taken back: a learner and its watchers, in place, as they were before.

No row of a call is learned if one of them is not finite. Either all rows are looked at before the first is learned, and
a call that does not fit into the processor's cache is read from memory twice; or the learner's loop looks at each row
just before it is learned, and what the call has changed by then is put back. The second needs a copy of all states
before every call, up to d^2 numbers: it is done for long calls only. It is not done with watchers of other authors,
whose `take` may do more than change the watcher, nor with those around another watcher, which somebody may hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfwidth import watchers

if TYPE_CHECKING:
    from halfwidth.learners.base import Learner

_NOT_PUT_BACK = {watchers.BurnIn, watchers.ConfidenceSequence, watchers.Extrapolated}
"""Around other watchers; and one that has no state for some schedules."""
_PUT_BACK = {getattr(watchers, name) for name in watchers.__all__} - _NOT_PUT_BACK
_ROWS_PER_DIM = 64


def worth_undoing(learner: Learner, rows: int) -> bool:
    """Whether a call of so many rows can be taken back, and for less than it costs to look at all of them first."""
    long = rows > len(learner._rows) and rows >= _ROWS_PER_DIM * learner.problem.dim
    known = all(type(watcher) in _PUT_BACK for watcher in learner.watchers)
    return long and known and learner.n_seen >= learner.warm_start


class Before:
    """What a call may change: iterate, counts, what the learner keeps, and the watchers.

    Parameters
    ----------
    learner : Learner
        After its warm start, and without `parts`; its watchers are of classes that `worth_undoing` knows.
    """

    def __init__(self, learner: Learner) -> None:
        names = ("n_seen", "_theta", "_total", *(f"_{name}" for name in learner.kept))
        self._own = {name: _copied(getattr(learner, name)) for name in names}
        self._watchers = [(watcher, watcher.to_state()) for watcher in learner.watchers]

    def put_back(self, learner: Learner) -> None:
        """Make the learner, and the very objects that watch it, what they were."""
        vars(learner).update(self._own)
        for watcher, state in self._watchers:
            vars(watcher).update(vars(type(watcher)._restored(state)))  # also where sums overflowed before


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value
