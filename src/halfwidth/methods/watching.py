"""The methods that watch the trajectory of the learner that a study sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from halfwidth import watchers
from halfwidth.errors import InputError
from halfwidth.methods.base import Method, Setting
from halfwidth.watchers import Watcher


def _overlapping(dim: int, setting: Setting) -> Watcher:
    return watchers.OverlappingBatchMeans(dim, step_exponent=setting.exponent)


def _increasing(dim: int, setting: Setting) -> Watcher:
    if setting.watched_rows is None:
        raise InputError("batch-means-increasing must be told the number of rows beforehand; use batch-means instead")
    return watchers.IncreasingBatchMeans(dim, planned_rows=setting.watched_rows, step_exponent=setting.exponent)


def _equal(dim: int, setting: Setting) -> Watcher:
    return watchers.EqualBatchMeans(dim, step_exponent=setting.exponent)


def _lugsail(dim: int, setting: Setting) -> Watcher:
    return watchers.EqualBatchMeans(dim, step_exponent=setting.exponent, lugsail=True, batch_constant=0.5)


def _fixed(dim: int, setting: Setting) -> Watcher:
    return watchers.FixedBatchMeans(dim)


def _flat_top(dim: int, setting: Setting) -> Watcher:
    return watchers.FlatTopBatchMeans(dim, step_exponent=setting.exponent)


def _spectral(dim: int, setting: Setting) -> Watcher:
    return watchers.SpectralVariance(dim, step_exponent=setting.exponent)


def _random_scaling(dim: int, setting: Setting) -> Watcher:
    return watchers.RandomScaling(dim)


def _functional(power: int) -> Callable[[int, Setting], Watcher]:
    return lambda dim, setting: watchers.FunctionalScaling(dim, power=power)


def _sequence(dim: int, setting: Setting) -> Watcher:
    return watchers.ConfidenceSequence(watchers.SpectralVariance(dim, step_exponent=setting.exponent))


def _extrapolated(dim: int, setting: Setting) -> Watcher:
    return watchers.Extrapolated(dim, step=setting.step())


# What most methods that keep batches share; each row below states where it differs.
_by_batches = partial(Method, data="state-dependent", cost="O(d)", memory="O(256 d)", pools="independent runs")

WATCHING: tuple[Method, ...] = (
    _by_batches(
        "obm",
        "overlapping batch means, growing blocks, critical value calibrated to the few blocks there are",
        "block plan",
        cost="O(d^2)",
        memory="O(d^2)",
        citation="Roy and Balasubramanian (2023); Zhu, Chen and Wu (2023); calibration: halfwidth",
        use="the seed paper's covariance, critical value calibrated to the few blocks there are",
        watch=_overlapping,
    ),
    _by_batches(
        "obm-normal",
        "the paper's interval: the same covariance with the normal critical value",
        "normal",
        cost="O(d^2)",
        memory="O(d^2)",
        citation="Roy and Balasubramanian (2023)",
        use="the seed paper's interval, for far more rows",
        watch=_overlapping,
        critical="normal",
    ),
    _by_batches(
        "batch-means-increasing",
        "non-overlapping batches that grow with the correlation time, for a planned number of rows",
        "t",
        "batches - 1",
        memory="O(d^2)",
        citation="Chen, Lee, Tong and Zhang (2020); t: halfwidth",
        watch=_increasing,
    ),
    _by_batches(
        "batch-means",
        "equal batches that merge as the stream grows, with t",
        "t",
        "batches - 1",
        citation="Singh, Shukla and Vats (2023)",
        watch=_equal,
    ),
    _by_batches(
        "lugsail",
        "equal batches of two lengths, 2 S_b - S_b/2, so that the batches' own bias cancels",
        "t",
        "two-moment",
        citation="Singh, Shukla and Vats (2023); Vats and Flegal (2022)",
        use="iterates of any optimiser, no d^2 until asked",
        watch=_lugsail,
    ),
    _by_batches(
        "fixed-batches",
        "ten equal batches and t with nine degrees of freedom, whatever n",
        "t",
        "9",
        citation="Schmeiser (1982); Ibragimov and Mueller (2010)",
        use="the same, simplest",
        watch=_fixed,
    ),
    _by_batches(
        "flat-top",
        "overlapping windows of two lengths, whose difference has no bias of order 1/b",
        "t",
        "two-moment",
        citation="Politis and Romano (1995); over batches: halfwidth",
        use="the same, overlapping windows",
        watch=_flat_top,
    ),
    _by_batches(
        "spectral",
        "Bartlett spectral variance over batch sums",
        "t",
        "two-moment",
        citation="Newey and West (1987); Damerdji (1994)",
        watch=_spectral,
    ),
    _by_batches(
        "random-scaling",
        "the average over a quadratic functional of its own path: nothing to tune",
        "random scaling",
        cost="O(d^2)",
        memory="O(d^2)",
        citation="Lee, Liao, Seo and Shin (2022)",
        use="nothing to tune, wide",
        watch=_random_scaling,
    ),
    *(
        _by_batches(
            f"functional-{power}",
            f"the average over the L{power} norm of its own path",
            "functional",
            pools="no",
            citation="Li, Liang and Zhang (2023)",
            watch=_functional(power),
        )
        for power in (1, 4, 6)
    ),
    _by_batches(
        "confidence-sequence",
        "valid at all rows at once, over the spectral variance; tightest at row 10,000",
        "time-uniform",
        pools="no",
        citation="Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021)",
        watch=_sequence,
    ),
    _by_batches(
        "extrapolated",
        "eight batch means regressed on their mean steps; the intercept at step zero",
        "t",
        "6",
        pools="no",
        citation="halfwidth; expansion: Dieuleveut, Durmus and Bach (2020)",
        watch=_extrapolated,
        supports_burn_in=False,
    ),
)
