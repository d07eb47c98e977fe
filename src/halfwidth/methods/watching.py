"""The methods that watch the trajectory of whatever learner a study sets."""

from __future__ import annotations

from collections.abc import Callable

from halfwidth.errors import InputError
from halfwidth.methods.base import Method, Setting
from halfwidth.watchers import (
    ConfidenceSequence,
    EqualBatchMeans,
    Extrapolated,
    FixedBatchMeans,
    FlatTopBatchMeans,
    FunctionalScaling,
    IncreasingBatchMeans,
    OverlappingBatchMeans,
    RandomScaling,
    SpectralVariance,
    Watcher,
)


def _overlapping(dim: int, setting: Setting) -> Watcher:
    return OverlappingBatchMeans(dim, step_exponent=setting.exponent)


def _increasing(dim: int, setting: Setting) -> Watcher:
    if setting.watched_rows is None:
        raise InputError("batch-means-increasing must be told the number of rows beforehand; use batch-means instead")
    return IncreasingBatchMeans(dim, planned_rows=setting.watched_rows, step_exponent=setting.exponent)


def _equal(dim: int, setting: Setting) -> Watcher:
    return EqualBatchMeans(dim, step_exponent=setting.exponent)


def _lugsail(dim: int, setting: Setting) -> Watcher:
    return EqualBatchMeans(dim, step_exponent=setting.exponent, lugsail=True, batch_constant=0.5)


def _fixed(dim: int, setting: Setting) -> Watcher:
    return FixedBatchMeans(dim)


def _flat_top(dim: int, setting: Setting) -> Watcher:
    return FlatTopBatchMeans(dim, step_exponent=setting.exponent)


def _spectral(dim: int, setting: Setting) -> Watcher:
    return SpectralVariance(dim, step_exponent=setting.exponent)


def _random_scaling(dim: int, setting: Setting) -> Watcher:
    return RandomScaling(dim)


def _functional(power: int) -> Callable[[int, Setting], Watcher]:
    return lambda dim, setting: FunctionalScaling(dim, power=power)


def _sequence(dim: int, setting: Setting) -> Watcher:
    return ConfidenceSequence(SpectralVariance(dim, step_exponent=setting.exponent))


def _extrapolated(dim: int, setting: Setting) -> Watcher:
    return Extrapolated(dim, step=setting.step())


WATCHING: tuple[Method, ...] = (
    Method(
        "obm",
        "overlapping batch means, growing blocks, critical value calibrated to the few blocks there are",
        law="Brownian functional of the block plan at n",
        data="state-dependent",
        cost="O(d^2)",
        memory="O(d^2)",
        pools="independent runs",
        citation="Roy and Balasubramanian (2023); Zhu, Chen and Wu (2023); calibration: halfwidth",
        watch=_overlapping,
    ),
    Method(
        "obm-normal",
        "the paper's interval: the same covariance with the normal critical value",
        law="normal, as if the covariance were known",
        data="state-dependent",
        cost="O(d^2)",
        memory="O(d^2)",
        pools="independent runs",
        citation="Roy and Balasubramanian (2023)",
        watch=_overlapping,
        critical="normal",
    ),
    Method(
        "batch-means-increasing",
        "non-overlapping batches that grow with the correlation time, for a planned number of rows",
        law="t, batches - 1 degrees of freedom",
        data="state-dependent",
        cost="O(d)",
        memory="O(d^2)",
        pools="independent runs",
        citation="Chen, Lee, Tong and Zhang (2020); t: halfwidth",
        watch=_increasing,
    ),
    Method(
        "batch-means",
        "equal batches that merge as the stream grows, with t",
        law="t, batches - 1 degrees of freedom",
        data="state-dependent",
        cost="O(d)",
        memory="O(256 d)",
        pools="independent runs",
        citation="Singh, Shukla and Vats (2023)",
        watch=_equal,
    ),
    Method(
        "lugsail",
        "equal batches of two lengths, 2 S_b - S_b/2, so that the batches' own bias cancels",
        law="t, degrees of freedom by two moments",
        data="state-dependent",
        cost="O(d)",
        memory="O(256 d)",
        pools="independent runs",
        citation="Singh, Shukla and Vats (2023); Vats and Flegal (2022)",
        watch=_lugsail,
    ),
    Method(
        "fixed-batches",
        "ten equal batches and t with nine degrees of freedom, whatever n",
        law="t, 9 degrees of freedom",
        data="state-dependent",
        cost="O(d)",
        memory="O(256 d)",
        pools="independent runs",
        citation="Schmeiser (1982); Ibragimov and Mueller (2010)",
        watch=_fixed,
    ),
    Method(
        "flat-top",
        "overlapping windows of two lengths, whose difference has no bias of order 1/b",
        law="t, degrees of freedom by two moments",
        data="state-dependent",
        cost="O(d)",
        memory="O(256 d)",
        pools="independent runs",
        citation="Politis and Romano (1995); over batches: halfwidth",
        watch=_flat_top,
    ),
    Method(
        "spectral",
        "Bartlett spectral variance over batch sums",
        law="t, degrees of freedom by two moments",
        data="state-dependent",
        cost="O(d)",
        memory="O(256 d)",
        pools="independent runs",
        citation="Newey and West (1987); Damerdji (1994)",
        watch=_spectral,
    ),
    Method(
        "random-scaling",
        "the average over a quadratic functional of its own path: nothing to tune",
        law="Z / sqrt(integral of a squared Brownian bridge)",
        data="state-dependent",
        cost="O(d^2)",
        memory="O(d^2)",
        pools="independent runs",
        citation="Lee, Liao, Seo and Shin (2022)",
        watch=_random_scaling,
    ),
    *(
        Method(
            f"functional-{power}",
            f"the average over the L{power} norm of its own path",
            law="Z / norm of a Brownian bridge, tabulated",
            data="state-dependent",
            cost="O(d)",
            memory="O(256 d)",
            pools="no",
            citation="Li, Liang and Zhang (2023)",
            watch=_functional(power),
        )
        for power in (1, 4, 6)
    ),
    Method(
        "confidence-sequence",
        "valid at all rows at once, over the spectral variance; tightest at row 10,000",
        law="normal mixture boundary",
        data="state-dependent",
        cost="O(d)",
        memory="O(256 d)",
        pools="no",
        citation="Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021)",
        watch=_sequence,
    ),
    Method(
        "extrapolated",
        "eight batch means regressed on their mean steps; the intercept at step zero",
        law="t, 6 degrees of freedom",
        data="state-dependent",
        cost="O(d)",
        memory="O(256 d)",
        pools="no",
        citation="halfwidth; expansion: Dieuleveut, Durmus and Bach (2020)",
        watch=_extrapolated,
        burns=False,
    ),
)
