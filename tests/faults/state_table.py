"""Every kind of saved state: how one is made, loaded again, and read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pandas as pd

import halfwidth as hw
from halfwidth import learners
from halfwidth.adapters.gymnasium import PolicyEvaluation
from halfwidth.equation import BatchStore, Equation
from halfwidth.errors import NotEnoughData
from halfwidth.models.registry import model_from_state
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.problems import problem
from halfwidth.state.checkpoint import read_checkpoint
from halfwidth.state.schema import validate
from halfwidth.streams import open_stream

WORLD = problem("iid-linear", dim=3)
RNG = np.random.default_rng(11)
GIVEN = np.random.default_rng(12).standard_normal((3_000, 4))
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


def _go_on(learner: Any) -> Any:
    """What users ask of a learner, and its next rows."""
    with suppress(NotEnoughData):
        learner.result().interval(level=0.9)
    return learner.run(200).theta_bar


def _learner(kind: Any, rows: int = 1_500, **options: Any) -> Row:
    def made() -> Any:
        return kind(WORLD, step=hw.PowerStep(0.5, 0.6), watchers=[hw.FixedBatchMeans(3)], seed=1, **options)

    return Row(lambda: made().run(rows).to_state(), lambda state: kind.from_state(state, WORLD), _go_on)


LEARNERS = {
    "sgd": _learner(learners.SGD, burn_in=100),
    "warming": _learner(learners.CappedSGD, 40, warm_start=100),
    "truncated": _learner(learners.TruncatedSGD, threshold=hw.Threshold(0.5), sets=hw.TruncationSets(2.0)),
    "implicit": _learner(learners.ImplicitSGD),
    "zeroth-order": _learner(learners.ZerothOrderSGD, probes=2),
    "bootstrap": _learner(learners.MultiplierBootstrap, copies=5),
    "minibatch": _learner(learners.MiniBatchBootstrap, copies=5, batch=9),
    "one-step": _learner(learners.OneStep),
    "renewable": _learner(learners.ChunkedNewton),
    "higrad": _learner(learners.HiGrad, shared=(60, 45)),
    "local": _learner(learners.LocalSGD, workers=3, every=7),
    "parallel-runs": _learner(learners.ParallelRuns),
    "richardson-romberg": _learner(learners.RichardsonRomberg),
    "trajectory-regression": _learner(learners.TrajectoryRegression),
    "plus-minus": _learner(learners.PlusMinus),
    "online-debiasing": _learner(learners.OnlineDebiasing, planned_rows=1_500),
    "plug-in": _learner(learners.PlugIn),
    "plug-in-longrun": _learner(learners.PlugIn, long_run=True),
}


def _auto(rows: int, *, consume: bool = False, world: Any = WORLD, **options: Any) -> Row:
    def made() -> dict[str, Any]:
        learner = hw.Auto(world, watchers=[hw.FixedBatchMeans(world.dim)], seed=1, **options)
        return (learner.consume(GIVEN[:rows]) if consume else learner.run(rows)).to_state()

    def consumes(learner: Any) -> Any:
        with suppress(NotEnoughData):
            learner.result().interval(level=0.9)
        return learner.consume(GIVEN[:200]).theta_bar

    return Row(made, lambda state: hw.Auto.from_state(state, world), consumes if consume else _go_on)


def _asked(chunks: int) -> dict[str, Any]:
    learner, rng = hw.Auto(dim=2, seed=1), np.random.default_rng(3)
    for _ in range(chunks):
        _tell(learner, rng)
    return learner.to_state()


def _tell(learner: Any, rng: np.random.Generator) -> None:
    request = learner.ask()
    noise = rng.standard_normal((request.rows, 2))
    learner.tell(request, [point - noise for point in request.points])


def _observed(calls: int) -> dict[str, Any]:
    learner, rng = hw.Auto(dim=2, seed=1), np.random.default_rng(3)
    for _ in range(calls):
        theta = rng.standard_normal(2) * 0.1
        learner.tell(theta=theta, gradients=theta - rng.standard_normal((32, 2)), hessian=32 * np.eye(2))
    return learner.to_state()


def _read_asked(learner: Any) -> Any:
    said = learner.theta_bar, learner.result().interval(level=0.9)
    _tell(learner, np.random.default_rng(0))
    return said


def _read_observed(learner: Any) -> Any:
    said = learner.theta_bar, learner.result().interval(level=0.9)
    learner.tell(theta=np.zeros(2), gradients=np.ones((32, 2)), hessian=32 * np.eye(2))
    return said


AUTO = {
    "steered": _auto(4_000),
    "steered-field": _auto(4_000, world=problem("random-walk-td")),
    "free-field": _auto(4_000, world=problem("random-walk-td"), feedback="none"),
    "steered-early": _auto(700, gradient_only=True),
    "steered-differences": _auto(4_000, gradient_only=True),
    "given": _auto(3_000, consume=True),
    "given-differences": _auto(3_000, consume=True, gradient_only=True),
    "asked": Row(lambda: _asked(60), hw.Auto.from_state, _read_asked),
    "observed": Row(lambda: _observed(60), hw.Auto.from_state, _read_observed),
}


def _batches() -> BatchStore:
    store = BatchStore(3, 50, 16, deployed=True)
    for _ in range(40):
        edges = store.edges(40)
        pieces = len(edges) - 1
        store.add(edges, RNG.standard_normal((pieces, 3)), np.tile(np.eye(3), (pieces, 1, 1)))
    return store


EQUATIONS = {
    "batches": Row(lambda: _batches().to_state(), BatchStore.from_state, lambda store: Equation.of(store).solve()),
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
    "multinomial": _model("k", family="multinomial"),
    "poisson": _model("c", family="poisson"),
    "gamma": _model("p", family="gamma"),
    "negative-binomial": _model("c", family="negative-binomial"),
    "negative-binomial-alpha": _model("c", family="negative-binomial", alpha=2.5),
    "quantile": _model("y", family="quantile", quantile=0.3),
    "huber": _model("y", family="huber"),
    "sgd": _model("y", engine="sgd"),
    "formula": _model(None, features=None, formula="y ~ a + C(k) + log(b)"),
}


def _with_predictions(formula: str, **options: Any) -> Row:
    """A model of a formula, which also predicts from raw columns."""
    row = _model(None, features=None, formula=formula, **options)
    return Row(row.make, row.load, lambda model: (row.read(model), model.predict(frame()[:50])))


def _pooled_model() -> Row:
    row = _model("y")

    def made() -> dict[str, Any]:
        first, second = (hw.fit(part, target="y", features=["a", "b"]) for part in (frame()[:1_200], frame()[1_200:]))
        return first.pool(second).to_state()

    return Row(made, row.load, row.read)


def _stream(**options: Any) -> Row:
    def made() -> dict[str, Any]:
        stream = open_stream(frame(), chunk_rows=500, **options)
        next(iter(stream))
        return stream.to_state()

    again = {name: options[name] for name in ("formula",) if name in options}
    return Row(
        made, lambda state: open_stream(frame(), state=state, **again), lambda stream: [len(chunk) for chunk in stream]
    )


MODELS |= {
    "bases": _with_predictions("y ~ poly(a, 2) + bs(b, df=5) + C(k):a + scale(w)"),
    "multinomial-formula": _with_predictions("k ~ a + log(b)", family="multinomial"),
    "pooled": _pooled_model(),
}

STREAMS = {
    "columns": _stream(target="y", features=["a", "b"]),
    "labels": _stream(target="l", labels="binary", bad_rows="skip", time="g"),
    "formula": _stream(formula="y ~ a + C(k) + log(b)"),
}


def _evaluation() -> Row:
    """The values of a policy in an environment of Gymnasium."""

    def parts() -> tuple[Any, ...]:
        rng = np.random.default_rng(0)
        return gymnasium.make("FrozenLake-v1"), lambda s: int(rng.integers(4)), lambda s: np.eye(16)[s]

    def load(state: dict[str, Any]) -> PolicyEvaluation:
        return PolicyEvaluation.from_state(state, *parts(), seed=1)

    def read(evaluation: PolicyEvaluation) -> Any:
        said = evaluation.result().result.interval(level=0.9)
        return said, evaluation.run(200)

    return Row(lambda: PolicyEvaluation(*parts(), discount=0.9, trace=0.3, seed=0).run(3_000).to_state(), load, read)


def _checkpoint(folder: Any) -> Row:
    def made() -> dict[str, Any]:
        (folder / "run.ck").unlink(missing_ok=True)
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
            "finished": state["finished"],
        }

    return Row(made, load, lambda state: state["passes_done"], lambda state: state)


def table(folder: Any) -> dict[str, Row]:
    """All rows, by name."""
    parts = {
        "watcher": WATCHERS,
        "learner": LEARNERS,
        "auto": AUTO,
        "equation": EQUATIONS,
        "model": MODELS,
        "stream": STREAMS,
    }
    rows = {f"{part}-{name}": row for part, named in parts.items() for name, row in named.items()}
    return rows | {"fit": _checkpoint(folder), "gymnasium": _evaluation()}
