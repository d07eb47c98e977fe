"""The battery: every method on the same rows, each a problem with exact truth at one stated setting.

A row's key reads like `seed-linear:dim=5:epsilon=0.9`. All methods share the row's setting, except those that choose
their own steps: capped SGD, eta = 0.5 (2 for logistic losses), a = 0.505, and watchers that do not see the first 5% of
the rows. Only the end of the run is scored, for the sum of the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from halfwidth.errors import UnknownName
from halfwidth.study.backends import LocalBackend
from halfwidth.study.run import Collected, collect
from halfwidth.study.scores import Row, blank_row, doubt_scores, mis_ratio_se, score_rows
from halfwidth.study.spec import Spec
from halfwidth.study.store import Store

_BURN_IN = 0.05
_STEPS, _LOGISTIC_STEPS = 50_000, 125_000
_ETA, _LOGISTIC_ETA = 0.5, 2.0


@dataclass(frozen=True)
class BatteryRow:
    """One problem of the battery and the setting at which methods are run on it."""

    problem: str
    settings: dict[str, Any] = field(default_factory=dict)
    steps: int = _STEPS
    eta: float = _ETA
    given: bool = False
    """Whether rows are given, as a file gives them, rather than drawn while theta is deployed."""

    @property
    def key(self) -> str:
        """The row's name: the problem and its settings."""
        settings = (f"{name}={_short(value)}" for name, value in self.settings.items())
        return ":".join([self.problem, *settings, *(["given"] if self.given else [])])

    def spec(self, methods: Sequence[str], replicates: int, seed: int) -> Spec:
        """The study of this row."""
        return Spec(
            self.problem,
            self.settings,
            tuple(methods),
            self.steps,
            replicates,
            eta=self.eta,
            seed=seed,
            checkpoints=(self.steps,),
            burn_in=_BURN_IN,
            given=self.given,
        )

    def score(self, spec: Spec, method: str, collected: Collected) -> Row:
        """The last row of the study, and around it what a battery adds; a refusal is a status, not a crash."""
        problem = spec.make_problem()
        if method in collected.refusals:
            scores, spread, refused = blank_row(spec, problem, method), None, None
            doubts = doubt_scores(spec, problem, ())
            status = str(collected.refusals[method])
        else:
            notes = collected.notes[method]
            scores = score_rows(spec, problem, method, notes, collected.times[method])[-1]
            spread, status = mis_ratio_se(spec, problem, notes), "ok"
            refused = int(sum(note.refused[-1] for note in notes))
            doubts = doubt_scores(spec, problem, notes)
        added = {"mis_ratio_se": spread, "refused": refused, **doubts, "burn_in": spec.burn_in, "status": status}
        return {"row": self.key} | scores | added


def _short(value: Any) -> str:
    """A setting as it stands in a key: a file by its name, equal coordinates by one of them."""
    if isinstance(value, list) and len(set(value)) == 1:
        return str(value[0])
    return Path(value).stem if isinstance(value, str) else str(value)


def _seed_settings() -> list[dict[str, Any]]:
    grid: list[dict[str, Any]] = [{"dim": dim, "epsilon": 0.5} for dim in (2, 5, 10, 20, 30, 50)]
    return grid + [{"dim": 5, "epsilon": epsilon} for epsilon in (0.1, 0.9)]


BATTERY: tuple[BatteryRow, ...] = (
    *(BatteryRow("iid-linear", {"dim": dim}) for dim in (5, 20, 50)),
    *(BatteryRow("ar-linear", {"dim": dim}) for dim in (5, 20)),
    *(BatteryRow("seed-linear", settings) for settings in _seed_settings()),
    *(BatteryRow("seed-logistic", settings, _LOGISTIC_STEPS, _LOGISTIC_ETA) for settings in _seed_settings()),
    *(BatteryRow("ar-logistic", {"dim": dim}, eta=_LOGISTIC_ETA) for dim in (5, 20)),
    BatteryRow("performative-mean", {"dim": 5}),
    *(BatteryRow("swap-game", {"rho": rho}) for rho in (0.5, 0.9)),
    BatteryRow("strategic-logistic", {"dim": 5}, eta=_LOGISTIC_ETA),
    BatteryRow("strategic-credit", {"reach": 0.5, "speed": 1.0}, _LOGISTIC_STEPS, _LOGISTIC_ETA),
    BatteryRow("location-scale", {"dim": 5}),
    BatteryRow("location-scale", {"dim": 3, "loss": "logistic"}, _LOGISTIC_STEPS, _LOGISTIC_ETA),
    BatteryRow("multi-player-game", {"dim": 5}),
    BatteryRow("pricing", {"dim": 4}),
    BatteryRow("missing-normal"),
    BatteryRow("mixed-logistic", {"people": 25}, _LOGISTIC_STEPS, _LOGISTIC_ETA),
    BatteryRow("adaptive-linear", {"dim": 5}),
    BatteryRow("garnet-td", {"dim": 4, "discount": 0.9}),
    BatteryRow("random-walk-td", {"dim": 7, "trace": 0.5}),
    BatteryRow("frozen-lake-td", given=True),
    BatteryRow("q-learning", {"states": 4}),
    BatteryRow("actor-critic"),
)


def _begins(key: str, prefix: str) -> bool:
    """Whether the key begins with the prefix, up to the end of a word or number: dim=5 is not the start of dim=50."""
    rest = key.removeprefix(prefix)
    return rest != key and (not rest or prefix[-1] in ":=-" or rest[0] in ":-")


AnyRow = TypeVar("AnyRow", bound=BatteryRow)


def choose_rows(rows: Sequence[AnyRow], prefixes: Iterable[str]) -> tuple[AnyRow, ...]:
    """Those of the rows that have these keys or beginnings of keys; all of them when none is given."""
    wanted = [prefix for prefix in prefixes if prefix]
    for prefix in wanted:
        if not any(_begins(row.key, prefix) for row in rows):
            raise UnknownName.among("battery row", prefix, [row.key for row in rows])
    return tuple(row for row in rows if not wanted or any(_begins(row.key, prefix) for prefix in wanted))


def battery_rows(prefixes: Iterable[str] = ()) -> tuple[BatteryRow, ...]:
    """The rows of these keys or beginnings of keys, in the battery's order; all of them when none is given."""
    return choose_rows(BATTERY, prefixes)


def run_battery(
    rows: Sequence[BatteryRow],
    methods: Sequence[str],
    *,
    replicates: int = 200,
    seed: int = 0,
    jobs: int = -1,
    store: Store | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Run every method on every row, and return the row's score of each; `progress(done, total)` counts replicates."""
    scored: list[Row] = []
    backend = LocalBackend(jobs)
    for at, row in enumerate(rows):
        spec = row.spec(methods, replicates, seed)
        tell = None if progress is None else _shifted(progress, at * replicates, len(rows) * replicates)
        collected = collect(spec, store, backend, tell)
        scored += [row.score(spec, name, collected) for name in methods]
        if progress is not None:
            progress((at + 1) * replicates, len(rows) * replicates)
    return scored


def _shifted(progress: Callable[[int, int], None], before: int, total: int) -> Callable[[int, int], None]:
    """Progress of one row as progress of all of them."""
    return lambda done, _: progress(before + done, total)
