"""`halfwidth.fit`: a regression over anything that yields rows, in one pass, resumable.

The stream fixes its design on the first buffer and yields chunks; the model takes them in order. A checkpoint holds
both: the model with the rows it has put aside, and the position in the source. Because the model cuts rows into
chunks of its own, a run that was interrupted anywhere ends with the same bits as one that was not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Unpack

from halfwidth.errors import InputError, UnknownName
from halfwidth.families import FAMILIES
from halfwidth.models.base import StreamModel
from halfwidth.models.model_state import MOST_PASSES, OPTIONS_OF
from halfwidth.models.progress import shown
from halfwidth.models.registry import model_class
from halfwidth.models.run import Every, Passes, Report, Run
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.models.saving import Saving
from halfwidth.state.checkpoint import read_checkpoint
from halfwidth.state.schema import validate
from halfwidth.streams import ReaderArguments, Stream, open_stream


def fit(
    source: Any,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    formula: str | None = None,
    family: str = "linear",
    quantile: float | None = None,
    alpha: float | None = None,
    fit_intercept: bool = True,
    ridge: float = 0.0,
    method: str = "auto",
    engine: str = "auto",
    time: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    offset: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    resume_at: int | None = None,
    checkpoint_errors: str = "error",
    bad_rows: str = "error",
    unknown_level: str = "add",
    passes: Passes = "auto",
    every: Every | None = None,
    report: Report | None = None,
    progress: bool | Callable[[int], None] | None = None,
    **reader: Unpack[ReaderArguments],
) -> StreamModel:
    """Fit a regression to a file, a folder, a table or an iterator of chunks, in one pass and with flat memory.

    Parameters
    ----------
    source : path, table or iterable
        A path (CSV, Parquet, Arrow IPC, NDJSON; a folder or a glob), ``"-"`` for stdin, a pandas, polars or Arrow
        table, a DuckDB relation, or an iterator of chunks. Rows are taken in order.
    target : str, optional
        The column to explain; needed without `formula`.
    features : sequence of str, optional
        The columns to explain it by; all numeric columns when none are given.
    formula : str, optional
        A formula such as ``"y ~ a + C(b) + log(c)"``, instead of `target` and `features`.
    family : str, default "linear"
        The family of the regression: ``"linear"``, ``"logistic"``, ``"multinomial"``, ``"poisson"``,
        ``"gamma"``, ``"negative-binomial"``, ``"quantile"`` or ``"huber"``.
    quantile : float, optional
        Which quantile, with ``family="quantile"``; 0.5 otherwise.
    alpha : float, optional
        The dispersion of ``family="negative-binomial"``: the variance is mean + alpha mean^2. Estimated when none is
        given.
    fit_intercept : bool, default True
        Whether an intercept is fitted.
    ridge : float, default 0.0
        The penalty: the objective is the mean loss plus ridge |coef|^2 / 2.
    method : str, default "auto"
        The method of the standard errors.
    engine : {"auto", "newton", "sgd"}, default "auto"
        What computes the estimate.
    time : str, optional
        A column that must be in order.
    group : str, optional
        A column of labels: rows of a group, in any order, may depend on each other; groups do not.
    weight : str, optional
        A column of probability weights.
    offset : str, optional
        A column that is added to the linear predictor.
    checkpoint : str or path-like, optional
        A file that is written every ten seconds, at the end, and when a bad row stops the run. SIGINT, SIGTERM and
        SIGHUP end a run that has one at the next chunk (`Interrupted`), a second signal at once. Without `resume`, the
        checkpoint of a finished run that is there is kept as ``NAME.replaced``, and that of an unfinished one refused.
    resume : bool, default False
        Whether the run goes on from the checkpoint; if there is none yet, it starts at the first row. The source must
        be the one that the run began with; rows may have been appended.
    resume_at : int, optional
        Of a source that can be read only once: the number of the first row that it gives now.
    checkpoint_errors : {"error", "warn"}, default "error"
        Whether a checkpoint that cannot be written ends the run.
    bad_rows : {"error", "skip"}, default "error"
        What becomes of a row that cannot be used.
    unknown_level : {"add", "other", "error"}, default "add"
        What becomes of a level of a category that the first 10,000 rows lack: a column of its own, one column for all
        such levels, or an error.
    passes : "auto" or int, default "auto"
        How often the source is read. One pass is enough for a linear model, and for others unless early rows were
        expanded far from the estimate; ``"auto"`` reads the source again when the status would be
        ``needs-second-pass`` and it can be read again.
    every : int or "doubling", optional
        After how many rows `report` is called; with ``"doubling"`` at 1,000, 2,000, 4,000 ... rows.
    report : callable, optional
        ``report(model)`` is called along the run.
    progress : bool or callable, optional
        True shows rows, speed and, where the size of the source is known, percent and the time left: in a notebook, in
        a terminal, or as lines of a log. A function is called as ``progress(rows)`` after every chunk.
    **reader : Unpack[ReaderArguments]
        How the source is read (`separator`, `decimal`, `query`, ...): see `halfwidth.streams.ReaderArguments`.

    Returns
    -------
    StreamModel
        The fitted model; `inference` gives the result.

    Raises
    ------
    InputError
        If an argument breaks a rule.
    BadRow
        If a row cannot be used and `bad_rows` is ``"error"``; the message names the file, the row and the column.

    Examples
    --------
    >>> import pandas as pd
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"x": rng.standard_normal(3_000)})
    >>> table["y"] = 1.0 + 2.0 * table["x"] + rng.standard_normal(3_000)
    >>> result = hw.fit(table, formula="y ~ x").inference()
    >>> result.names, result.status
    (('Intercept', 'x'), 'ok')
    >>> result.interval().covers([1.0, 2.0]).tolist()
    [True, True]
    """
    if "level" in reader:
        raise InputError("level is given to inference(level=...) of the fitted model, not to fit")
    for name in reader:
        if name not in ReaderArguments.__annotations__:
            raise UnknownName.among("argument", name, _known_arguments())
    kind, options = _family_options(family, {"quantile": quantile, "alpha": alpha})
    if group is not None and not isinstance(group, str):
        raise InputError.of("group", "be the name of one column: two-way clusters do not exist yet", group)
    saving = Saving(checkpoint, checkpoint_errors)
    saving.check(fresh=not resume)
    state = _earlier(checkpoint, resume, resume_at)
    stream = open_stream(
        source, target=target, features=features, formula=formula, weight=weight, offset=offset, group=group,
        time=time, labels=FAMILIES[kind.family].labels, bad_rows=bad_rows, unknown_level=unknown_level,
        state=None if state is None else state["stream"], resume_at=None if state is None else resume_at, **reader,
    )  # fmt: skip
    _check_passes(passes, stream)
    fresh = kind(fit_intercept=fit_intercept, ridge=ridge, method=method, engine=engine, **options)
    with shown(progress, stream) as tell:
        run = Run(stream, fresh, saving, every, report, tell)
        run.start(state)
        run.read_all(passes)
    return run.model


def _known_arguments() -> set[str]:
    """The names of all arguments of `fit`, those of the reader included."""
    return {*signature(fit).parameters, *ReaderArguments.__annotations__} - {"reader"}


def _family_options(family: str, given: dict[str, float | None]) -> tuple[type[StreamModel], dict[str, float]]:
    """The model of a family, and the options that belong to it; one of another family raises."""
    kind = model_class(family)
    options = {key: value for key, value in given.items() if value is not None}
    for key, value in options.items():
        if key not in OPTIONS_OF.get(kind.family, ()):
            owner = next(known for known, keys in OPTIONS_OF.items() if key in keys)
            raise InputError.of(key, f"be given with family={owner!r} only", value)
    return kind, options


def _earlier(checkpoint: str | os.PathLike[str] | None, resume: bool, resume_at: int | None) -> dict[str, Any] | None:
    """The state that the run goes on from; None if it starts afresh."""
    if resume and checkpoint is None:
        raise InputError("resume (--resume) needs the checkpoint (--checkpoint FILE) that the run goes on from")
    if resume_at is not None and not resume:
        raise InputError("resume_at (--resume-at) needs resume (--resume): without it a run starts at row 1")
    if not resume or checkpoint is None or not Path(checkpoint).exists():
        return None
    state = read_checkpoint(checkpoint)
    validate(state, FIT_SCHEMA, "checkpoint")
    return state


def _check_passes(passes: Passes, stream: Stream) -> None:
    if passes == "auto":
        return
    if isinstance(passes, bool) or not isinstance(passes, int) or not 1 <= passes <= MOST_PASSES:
        raise InputError.of("passes", f"be 'auto' or a whole number from 1 to {MOST_PASSES}", passes)
    if passes > 1 and not stream.rereadable:
        raise InputError.of("passes", "be 1 for a source that can be read only once", passes)
