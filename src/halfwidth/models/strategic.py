"""`halfwidth.strategic`: strategic classification with the rows of a table as the population.

The columns of the table are standardised, an intercept is put in front, and every row is an agent that responds to the
deployed classifier as `halfwidth.problems.strategic` describes. `Auto` learns while agents move; the equilibrium itself
is solved exactly beside it. The naive fit is the same regression on as many rows of the table as it stands.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count, check_level
from halfwidth.errors import InputError, NotEnoughData, UnknownName
from halfwidth.inference import Result
from halfwidth.kernels.arrays import Vector
from halfwidth.learners import Auto
from halfwidth.models.classifier import LogisticRegression
from halfwidth.models.results import RegressionResult
from halfwidth.models.run_status import FitWarning
from halfwidth.models.strategic_result import StrategicResult
from halfwidth.problems import Problem
from halfwidth.problems.strategic import strategic_problem
from halfwidth.streams import ReaderArguments, open_stream

_SPEEDS = {"ascent": 0.5, "best": 1.0}
_NAIVE_DRAWS = 1
_CHUNKS, _SHORTEST_CHUNK = 256, 64


def strategic(
    source: Any,
    *,
    target: str,
    modifiable: Sequence[str],
    reach: float,
    features: Sequence[str] | None = None,
    cost: ArrayLike | None = None,
    movers: float = 0.1,
    response: str = "ascent",
    ridge: float = 0.01,
    rows: int = 200_000,
    seed: int = 0,
    level: float = 0.95,
    bad_rows: str = "error",
    **reader: Unpack[ReaderArguments],
) -> StrategicResult:
    """Learn a classifier while the population of a table responds to it, and compare with the fit that ignores this.

    Parameters
    ----------
    source : path, table or iterable
        What `halfwidth.fit` reads; its rows are the agents and are kept in memory.
    target : str
        The column of labels, of two classes; the second is the one that agents want.
    modifiable : sequence of str
        The columns that agents can change.
    reach : float
        How far they go: the best response moves a column by reach / cost times its coefficient, in standard
        deviations of the column. Negative if agents want the first class.
    features : sequence of str, optional
        The columns of the classifier; all numeric columns but the target when none are given.
    cost : array_like of shape (len(modifiable),), optional
        What a move of each of those columns costs; 1 for all otherwise.
    movers : float, default 0.1
        The share of the agents that move at each row.
    response : {"ascent", "best"}, default "ascent"
        Whether a mover goes half of the way to its best response, a step of gradient ascent, or all of it.
    ridge : float, default 0.01
        The penalty: the objective is the mean loss plus ridge |coef|^2 / 2, the intercept included.
    rows : int, default 200_000
        How many rows are drawn from the population.
    seed : int, default 0
        Of the draws.
    level : float, default 0.95
        The confidence level.
    bad_rows : {"error", "skip"}, default "error"
        What becomes of a row that cannot be used.
    **reader : Unpack[ReaderArguments]
        How the source is read: see `halfwidth.streams.ReaderArguments`.

    Returns
    -------
    StrategicResult
        The equilibrium with intervals, its exact value, and the naive fit beside it.

    Raises
    ------
    InputError
        If an argument breaks a rule, or the response is so strong that there is no stable equilibrium.

    Examples
    --------
    >>> import pandas as pd
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.standard_normal((500, 2)), columns=["savings", "age"])
    >>> table["repaid"] = rng.random(500) < 1 / (1 + np.exp(-1.5 - table["savings"] - 0.5 * table["age"]))
    >>> found = hw.strategic(table, target="repaid", modifiable=["savings"], reach=1.0, rows=20_000)
    >>> found.names
    ('Intercept', 'savings', 'age')
    >>> float(found.moved[1]) > 0.5
    True
    """
    check_level(level)
    check_count("rows", rows, at_least=5_000)
    check_count("seed", seed, at_least=0)
    if response not in _SPEEDS:
        raise InputError.of("response", "be 'ascent' or 'best'", response)
    if isinstance(modifiable, str) or not len(modifiable):
        raise InputError.of("modifiable", "be a list of at least one column", modifiable)
    names, X, y, classes = _population(source, target, features, bad_rows, reader)
    for name in modifiable:
        if name not in names[1:]:
            raise UnknownName.among("feature", name, names[1:])
    columns = [names.index(name) for name in modifiable]
    world, still = (
        strategic_problem(X, y, columns, reach=far, cost=cost, speed=_SPEEDS[response], share=movers, ridge=ridge)
        for far in (reach, 0.0)
    )
    exact, naive_exact = world.theta_star, still.theta_star
    learned = _learn(world, rows, np.random.SeedSequence(seed))
    naive = _naive_fit(X, y, ridge, rows, np.random.SeedSequence(seed, spawn_key=(_NAIVE_DRAWS,)))
    lengths = np.zeros(len(names))
    lengths[columns] = reach / (1.0 if cost is None else np.asarray(cost, dtype=np.float64))
    return StrategicResult(
        names, tuple(modifiable), learned, exact, naive, naive_exact, lengths, X, y, classes, level, float(ridge)
    )


def _learn(world: Problem, rows: int, seed: np.random.SeedSequence) -> Result:
    """By `Auto`, whose doubt whether rows respond at all is void here: agents do, by construction.

    A classifier is deployed for one of 256 parts of the rows (16 d above 16 columns): agents respond in a curve, so
    that the noise of the deployed theta biases the estimate, and longer chunks have less of it.
    """
    chunk_rows = max(_SHORTEST_CHUNK, rows // max(_CHUNKS, 16 * world.dim))
    result = Auto(world, seed=seed, chunk_rows=chunk_rows).run(rows).result()
    diagnostics = result.diagnostics
    flags = tuple(flag for flag in diagnostics.flags if flag[0] != "feedback-undecided")
    return replace(result, diagnostics=replace(diagnostics, flags=flags))


def _population(
    source: Any, target: str, features: Sequence[str] | None, bad_rows: str, reader: ReaderArguments
) -> tuple[tuple[str, ...], Vector, Vector, tuple[Any, Any]]:
    """Names, an intercept and the standardised columns, labels, and the two classes."""
    stream = open_stream(source, target=target, features=features, labels="binary", bad_rows=bad_rows, **reader)
    chunks = list(stream)
    if not chunks or stream.classes is None:
        raise NotEnoughData(f"target {target!r} must have rows of two classes; all rows of the table are of one")
    raw, y = np.concatenate([chunk.X for chunk in chunks]), np.concatenate([chunk.y for chunk in chunks])
    names, spread = stream.feature_names, raw.std(axis=0)
    for name, value in zip(names, spread, strict=True):
        if not value > 0.0:
            raise InputError.of("a feature", "vary over the table; leave it out with features=", name)
    X = np.column_stack([np.ones(len(raw)), (raw - raw.mean(axis=0)) / spread])
    return ("Intercept", *names), X, y, stream.classes


def _naive_fit(X: Vector, y: Vector, ridge: float, rows: int, seed: np.random.SeedSequence) -> RegressionResult:
    """The regression on rows drawn from the table as it stands."""
    drawn = np.random.default_rng(seed).integers(0, len(X), size=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # what speaks against it is in the status that is shown
        return LogisticRegression(fit_intercept=False, ridge=ridge).fit(X[drawn], y[drawn]).inference()
