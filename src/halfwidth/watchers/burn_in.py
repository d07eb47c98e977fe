"""Burn-in that needs no knowledge of n, for any watcher.

Generations of the same watcher start after t_0, t_0 R, t_0 R^2, ... rows with R = 1/share (rounded up), and one at the
very beginning. The reported generation is the youngest whose start s satisfies s <= share n: it has discarded at most
`share` of the rows. It is replaced exactly when the next generation becomes old enough, which is when the one after
that starts: two are alive at any time, and no more.

| symbol  | here             |
|---------|------------------|
| t_0     | `first_start`    |
| 1/R     | `share`          |
| s       | `discarded`      |

A generation counts its own rows: the batch lengths of a watcher follow what it has seen, and the step at its first row
is not that of row one. `Extrapolated` reads the steps, models what burn-in would remove, and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Self

from halfwidth.checks import check_count
from halfwidth.errors import CannotPool, InputError
from halfwidth.inference import LimitLaw, Result
from halfwidth.kernels.arrays import Vector
from halfwidth.state.containers import Variant
from halfwidth.state.fields import Field, Real, Whole
from halfwidth.state.schema import Relation, Schema, same_settings
from halfwidth.watchers.base import Critical, State, Watcher
from halfwidth.watchers.extrapolation import Extrapolated
from halfwidth.watchers.kinds import restored, watcher_schemas
from halfwidth.watchers.state_parts import nested
from halfwidth.watchers.wrapping_watcher import WrappingWatcher

_COUNTS = ("n", "discarded", "young_start", "next_start")

_FIELDS: dict[str, Field] = {
    "share": Real(1e-9, 0.5, doc="the largest share of rows that is discarded"),
    "first_start": Whole(1, doc="t_0"),
    "n": Whole(doc="iterates seen"),
    "discarded": Whole(doc="rows before the reported generation"),
    "young_start": Whole(doc="rows before the younger one"),
    "next_start": Whole(1, doc="rows at which the next one starts"),
    "fresh": Variant("kind", lambda: _burnable(), doc="the watcher before its first row, stored as `fresh.NAME`"),
    "reported": Variant("kind", lambda: _burnable(), doc="the one that is reported, stored as `reported.NAME`"),
    "young": Variant("kind", lambda: _burnable(), doc="the next one, stored as `young.NAME`"),
}


def _burnable() -> dict[str, Schema]:
    return {kind: schema for kind, schema in watcher_schemas().items() if kind not in (BurnIn.kind, Extrapolated.kind)}


def _starts_follow_rows(state: State) -> bool:
    discarded, young, following = 0, 0, int(state["first_start"])
    while following <= state["n"]:  # grows at least twofold
        discarded, young, following = young, following, math.ceil(following / state["share"])
    return (discarded, young, following) == tuple(state[name] for name in _COUNTS[1:])


def _generations_agree(state: State) -> bool:
    fresh, reported, young = (state[name] for name in ("fresh", "reported", "young"))
    schema = watcher_schemas()[fresh["kind"]]
    if not all(fresh["kind"] == other["kind"] and same_settings(fresh, other, schema) for other in (reported, young)):
        return False
    seen = [restored(generation).n_seen for generation in (fresh, reported, young)]
    return seen == [0, state["n"] - state["discarded"], state["n"] - state["young_start"]]


class BurnIn(WrappingWatcher):
    """Any watcher without the first rows, for every n, without knowing n.

    Parameters
    ----------
    make : callable
        Returns a fresh watcher; called once.
    share : float
        Largest share of the rows that is discarded; at least share^2 of them are.
    first_start : int
        Row t_0 after which the first generation starts.

    Attributes
    ----------
    share : float
        The argument of that name.
    first_start : int
        The argument of that name.

    Raises
    ------
    InputError
        `share` is not between 0 and 0.5, or `make` gives a watcher that has seen rows or reads the steps.

    Notes
    -----
    Generations of the watcher start after t_0, t_0 / share, t_0 / share^2, ... rows; two are alive at any time. The
    reported one is the youngest that has discarded at most `share` of the rows; the n of a result is the number of rows
    that it has seen.

    Examples
    --------
    >>> from halfwidth.watchers import FixedBatchMeans
    >>> watcher = BurnIn(lambda: FixedBatchMeans(1), share=0.05)
    >>> watcher.update_many(np.random.default_rng(0).standard_normal((50_000, 1))).discarded
    2500
    """

    kind = "burn-in"
    version = 1
    inner = ("fresh", "reported", "young")
    SCHEMA = Schema(
        kind,
        version,
        _FIELDS,
        relations=(
            Relation("have starts that follow from `n`, `share` and `first_start`", _starts_follow_rows),
            Relation("have generations alike that saw the rows since they started", _generations_agree),
        ),
    )

    def __init__(self, make: Callable[[], Watcher], *, share: float = 0.05, first_start: int = 125) -> None:
        if not 0.0 < share <= 0.5:
            raise InputError.of("share", "lie between 0 and 0.5", share)
        fresh = make()
        if isinstance(fresh, Extrapolated) or fresh.n_seen:
            raise InputError.of("make", "give a fresh watcher that does not read the steps", type(fresh).__name__)
        self.dim = fresh.dim
        self.share = float(share)
        self.first_start = check_count("first_start", first_start)
        self._fresh = fresh.to_state()
        self._n = 0
        self._reported, self._discarded = fresh, 0
        self._young, self._young_start = restored(self._fresh), 0
        self._next_start = self.first_start

    @property
    def n_seen(self) -> int:
        return self._n

    @property
    def discarded(self) -> int:
        """Number of rows that the reported generation has not seen.

        It is at most `share` of the rows, and zero while the first generation is reported.
        """
        return self._discarded

    @property
    def reported(self) -> Watcher:
        """The generation that results come from."""
        return self._reported

    def take(self, thetas: Vector) -> None:
        at = 0
        while at < len(thetas):
            rows = thetas[at : at + self._next_start - self._n]
            self._reported.take(rows)
            self._young.take(rows)
            self._n += len(rows)
            at += len(rows)
            if self._n == self._next_start:
                self._start_generation()

    def _start_generation(self) -> None:
        self._reported, self._discarded = self._young, self._young_start
        self._young, self._young_start = restored(self._fresh), self._n
        self._next_start = math.ceil(self._n / self.share)

    def law(self) -> LimitLaw:
        return self._reported.law()

    def result(self, critical: Critical = "calibrated") -> Result:
        result = self._reported.result(critical)
        return replace(result, method=f"{self.kind} {result.method}")

    def pool(self, other: Self) -> Self:
        raise CannotPool("cannot pool watchers with a burn-in: pool their `reported` generations instead")

    def to_state(self) -> State:
        names = ("kind", "version", "share", "first_start")
        state = {name: getattr(self, name) for name in names} | nested("fresh", self._fresh)
        state |= {name: getattr(self, f"_{name}") for name in _COUNTS}
        return state | nested("reported", self._reported.to_state()) | nested("young", self._young.to_state())

    @classmethod
    def _restored(cls, state: State) -> Self:
        watcher = cls(lambda: restored(state["fresh"]), share=state["share"], first_start=state["first_start"])
        for name in _COUNTS:
            setattr(watcher, f"_{name}", int(state[name]))
        watcher._reported = restored(state["reported"])
        watcher._young = restored(state["young"])
        return watcher
