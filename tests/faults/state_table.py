"""Every kind of saved state: how one is made, loaded again, and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import halfwidth as hw
from halfwidth import learners
from halfwidth.models.registry import model_from_state
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.problems import problem
from halfwidth.state.checkpoint import read_checkpoint
from halfwidth.state.schema import validate
from halfwidth.streams import open_stream

WORLD = problem("iid-linear", dim=3)
RNG = np.random.default_rng(11)
PATH = RNG.standard_normal((3_000, 3)).cumsum(axis=0) * 0.01 + RNG.standard_normal((3_000, 3))


@dataclass(frozen=True)
class Row:
    """`make` gives a state, `load` the object of a state, `state` its state again, `read` what users ask of it."""

    make: Callable[[], dict[str, Any]]
    load: Callable[[dict[str, Any]], Any]
    read: Callable[[Any], Any]
    state: Callable[[Any], dict[str, Any]] = lambda thing: thing.to_state()


def _watcher(make: Callable[[], Any], rows: int = 3_000) -> Row:
    kind = type(make())
    return Row(lambda: make().update_many(PATH[:rows]).to_state(), kind.from_state, _read_watcher)


def _read_watcher(watcher: Any) -> Any:
    result = watcher.result()
    return result.interval(level=0.9)


def _pooled(make: Callable[[], Any]) -> Row:
    kind = type(make())

    def pooled() -> dict[str, Any]:
        return make().update_many(PATH[:1_500]).pool(make().update_many(PATH[1_500:])).to_state()

    return Row(pooled, kind.from_state, _read_watcher)


_P = np.array([[1.0, 0.0, -1.0]])
WATCHERS = {
    "obm": _watcher(lambda: hw.OverlappingBatchMeans(3)),
    "obm-few": _watcher(lambda: hw.OverlappingBatchMeans(3, view="diagonal"), 40),
    "obm-projection": _watcher(lambda: hw.OverlappingBatchMeans(3, view="projection", projection=_P)),
    "obm-pooled": _pooled(lambda: hw.OverlappingBatchMeans(3)),
    "equal": _watcher(lambda: hw.EqualBatchMeans(3, lugsail=True)),
    "equal-pooled": _pooled(lambda: hw.EqualBatchMeans(3)),
    "fixed": _watcher(lambda: hw.FixedBatchMeans(3, view="diagonal")),
    "fixed-few": _watcher(lambda: hw.FixedBatchMeans(3), 7),
    "increasing": _watcher(lambda: hw.IncreasingBatchMeans(3, planned_rows=3_000)),
    "flat-top": _watcher(lambda: hw.FlatTopBatchMeans(3)),
    "spectral": _watcher(lambda: hw.SpectralVariance(3)),
    "random-scaling": _watcher(lambda: hw.RandomScaling(3)),
    "random-scaling-pooled": _pooled(lambda: hw.RandomScaling(3, view="diagonal")),
    "functional": _watcher(lambda: hw.FunctionalScaling(3, power=4)),
    "extrapolated": _watcher(lambda: hw.Extrapolated(3, step=hw.PowerStep(0.5, 0.7))),
    "sequence": _watcher(lambda: hw.ConfidenceSequence(hw.EqualBatchMeans(3))),
    "burn-in": _watcher(lambda: hw.BurnIn(lambda: hw.FixedBatchMeans(3), share=0.1)),
}


def _learner(kind: Any, **options: Any) -> Row:
    def made() -> Any:
        return kind(WORLD, step=hw.PowerStep(0.5, 0.6), watchers=[hw.FixedBatchMeans(3)], seed=1, **options)

    return Row(
        lambda: made().run(1_500).to_state(),
        lambda state: kind.from_state(state, WORLD),
        lambda learner: (learner.theta, learner.theta_bar, learner.result().interval(level=0.9)),
    )


LEARNERS = {
    "sgd": _learner(learners.SGD, burn_in=100),
    "truncated": _learner(learners.TruncatedSGD),
    "zeroth-order": _learner(learners.ZerothOrderSGD),
    "bootstrap": _learner(learners.MultiplierBootstrap, copies=5),
    "one-step": _learner(learners.OneStep),
    "renewable": _learner(learners.ChunkedNewton),
    "higrad": _learner(learners.HiGrad),
    "plug-in": _learner(learners.PlugIn, long_run=True),
}


@cache
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 2_500
    table = pd.DataFrame({"a": rng.standard_normal(n), "b": rng.uniform(1, 2, n), "k": np.resize(list("uvw"), n)})
    eta = 0.3 * table["a"] + 0.2 * table["b"]
    table["y"] = eta + rng.standard_normal(n)
    table["c"] = rng.poisson(np.exp(eta))
    table["p"] = np.exp(table["y"])
    table["l"] = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-eta)), "yes", "no")
    table["g"], table["w"] = np.arange(n) // 5, 1.0 + table["b"]
    return table


def _model(target: str | None, **options: Any) -> Row:
    arguments = {"target": target, "features": ["a", "b"]} | options
    return Row(
        lambda: hw.fit(frame(), **arguments).to_state(),
        model_from_state,
        lambda model: (model.coef_, model.inference(0.9).conf_int()),
    )


MODELS = {
    "linear": _model("y"),
    "linear-groups": _model("y", group="g", weight="w"),
    "logistic": _model("l", family="logistic"),
    "poisson": _model("c", family="poisson"),
    "gamma": _model("p", family="gamma"),
    "negative-binomial": _model("c", family="negative-binomial"),
    "negative-binomial-alpha": _model("c", family="negative-binomial", alpha=2.5),
    "quantile": _model("y", family="quantile", quantile=0.3),
    "huber": _model("y", family="huber"),
    "sgd": _model("y", engine="sgd"),
    "formula": _model(None, features=None, formula="y ~ a + C(k) + log(b)"),
}


def _stream(**options: Any) -> Row:
    def made() -> dict[str, Any]:
        stream = open_stream(frame(), chunk_rows=500, **options)
        next(iter(stream))
        return stream.to_state()

    again = {name: options[name] for name in ("formula",) if name in options}
    return Row(
        made, lambda state: open_stream(frame(), state=state, **again), lambda stream: [len(chunk) for chunk in stream]
    )


STREAMS = {
    "columns": _stream(target="y", features=["a", "b"]),
    "labels": _stream(target="l", labels="binary", bad_rows="skip", time="g"),
    "formula": _stream(formula="y ~ a + C(k) + log(b)"),
}


def _checkpoint(folder: Any) -> Row:
    def made() -> dict[str, Any]:
        hw.fit(frame(), target="y", features=["a"], checkpoint=folder / "run.ck")
        return read_checkpoint(folder / "run.ck")

    def load(state: dict[str, Any]) -> Any:
        validate(state, FIT_SCHEMA)
        return {
            "kind": "fit",
            "version": FIT_SCHEMA.version,
            "model": model_from_state(state["model"]).to_state(),
            "stream": open_stream(frame(), state=state["stream"]).to_state(),
            "passes_done": state["passes_done"],
        }

    return Row(made, load, lambda state: state["passes_done"], lambda state: state)


def table(folder: Any) -> dict[str, Row]:
    """All rows, by name."""
    parts = {"watcher": WATCHERS, "learner": LEARNERS, "model": MODELS, "stream": STREAMS}
    rows = {f"{part}-{name}": row for part, named in parts.items() for name, row in named.items()}
    return rows | {"fit": _checkpoint(folder)}
