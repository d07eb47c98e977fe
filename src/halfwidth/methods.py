"""The table of methods: a name, how it learns, watches and makes an interval, and what it assumes.

A method either watches the trajectory of whatever learner the study sets (`watch`), or brings a learner of its own
(`learn`). A new method is a new file and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from halfwidth.errors import InputError, UnknownName
from halfwidth.learners import (
    LEARNERS,
    Auto,
    HiGrad,
    HullOfRuns,
    Learner,
    MiniBatchBootstrap,
    MultiplierBootstrap,
    ParallelRuns,
    PlugIn,
    RichardsonRomberg,
    TrajectoryRegression,
)
from halfwidth.learners.base import Seed
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep
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
from halfwidth.watchers.base import Critical

Data = Literal["iid", "markov", "state-dependent"]


@dataclass(frozen=True)
class Setting:
    """What the methods of a study share; a method that chooses its own steps says so and ignores it."""

    learner: str = "capped"
    eta: float = 0.5
    exponent: float = 0.505
    burn_in: float = 0.0
    """The share of a run's rows that watchers do not see."""
    watched_rows: int | None = None
    """How many rows watchers will see, for the few methods that must be told; None where nobody knows."""

    def __post_init__(self) -> None:
        if self.learner not in LEARNERS:
            raise UnknownName.among("learner", self.learner, LEARNERS)
        if not 0.0 <= self.burn_in < 1.0:
            raise InputError.of("burn_in", "lie between 0 and 1", self.burn_in)
        self.step()

    def step(self) -> PowerStep:
        return PowerStep(self.eta, self.exponent)

    @property
    def burned_rows(self) -> int:
        """The rows of the burn-in, where the number of rows is known."""
        return round((self.watched_rows or 0) * self.burn_in / (1.0 - self.burn_in))

    def make_learner(self, problem: Problem, watchers: Iterable[Watcher], seed: Seed) -> Learner:
        return LEARNERS[self.learner](problem, step=self.step(), watchers=tuple(watchers), seed=seed)


@dataclass(frozen=True)
class Method:
    """One row of the table; exactly one of `watch` and `learn` is given."""

    name: str
    summary: str
    law: str
    data: Data
    """The most general data it is valid for."""
    cost: str
    memory: str
    pools: str
    citation: str
    watch: Callable[[int, Setting], Watcher] | None = None
    """From the dimension and the setting to a fresh watcher."""
    learn: Callable[[Problem, Setting, Seed], Learner] | None = None
    """From a problem, the setting and a seed to a learner whose `result()` is this method's."""
    critical: Critical = "calibrated"
    burns: bool = True
    """Whether the setting's burn-in applies; not to a method that reads the steps from the first row on."""

    def __post_init__(self) -> None:
        if (self.watch is None) == (self.learn is None):
            raise InputError(f"method {self.name!r} must either watch or learn")


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


class _Learning:
    """A learner of its own at the setting's steps; such learners cap them wherever the problem bounds its curvature."""

    def __init__(self, kind: Callable[..., Learner], **options: Any) -> None:
        self.kind, self.options = kind, options

    def __call__(self, problem: Problem, setting: Setting, seed: Seed) -> Learner:
        burn_in = setting.burned_rows
        return self.kind(problem, step=setting.step(), seed=seed, burn_in=burn_in, **self.options)

    def changed(self, text: str) -> _Learning:
        """The same with other values of its whole-number options, given like `copies=200`."""
        changes = dict(part.partition("=")[::2] for part in text.split(","))
        known = [key for key, value in self.options.items() if isinstance(value, int)]
        for key, value in changes.items():
            if key not in known or not value.isdecimal():
                raise InputError.of("a method's options", f"be whole numbers for {', '.join(known) or 'nothing'}", text)
        return _Learning(self.kind, **self.options | {key: int(value) for key, value in changes.items()})


def _richardson(problem: Problem, setting: Setting, seed: Seed) -> Learner:
    watcher = FixedBatchMeans(problem.dim, batches=6)
    burn_in = setting.burned_rows
    return RichardsonRomberg(problem, step=setting.step(), watchers=(watcher,), seed=seed, burn_in=burn_in)


def _auto(gradient_only: bool) -> Callable[[Problem, Setting, Seed], Learner]:
    """It chooses its own steps and burn-in, whatever the setting."""
    return lambda problem, setting, seed: Auto(problem, gradient_only=gradient_only, seed=seed)


_ROWS = (
    Method(
        "auto",
        "a one-step centre corrected for the data's answer to theta; steps and batches choose themselves",
        law="t, batches - 1 degrees of freedom",
        data="state-dependent",
        cost="O(d^2)",
        memory="O(64 d^2)",
        pools="no",
        citation="halfwidth; one-step: Le Cam (1956)",
        learn=_auto(gradient_only=False),
    ),
    Method(
        "auto-gradient",
        "the same from gradients alone: differences on the same rows stand for the Hessian",
        law="t, batches - 1 degrees of freedom",
        data="state-dependent",
        cost="O(d)",
        memory="O(64 d^2)",
        pools="no",
        citation="halfwidth; one-step: Le Cam (1956)",
        learn=_auto(gradient_only=True),
    ),
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
    Method(
        "bootstrap",
        "100 copies perturbed by independent weights, normal critical value",
        law="normal",
        data="iid",
        cost="O(B d)",
        memory="O(B d)",
        pools="no",
        citation="Fang, Xu and Yang (2018)",
        learn=_Learning(MultiplierBootstrap, copies=100),
    ),
    Method(
        "bootstrap-block",
        "100 copies, weights that stay for 50 rows",
        law="normal",
        data="markov",
        cost="O(B d)",
        memory="O(B d)",
        pools="no",
        citation="Fang, Xu and Yang (2018); blocks: halfwidth",
        learn=_Learning(MultiplierBootstrap, copies=100, block=50),
    ),
    Method(
        "bootstrap-minibatch",
        "one step and one weight for every 25 rows, 100 copies",
        law="normal",
        data="markov",
        cost="O(B d)",
        memory="O(B d)",
        pools="no",
        citation="Liu, Chen and Shang (2023)",
        learn=_Learning(MiniBatchBootstrap, copies=100, batch=25),
    ),
    Method(
        "bootstrap-cheap",
        "5 copies perturbed by independent weights, t with 5 degrees of freedom",
        law="t with as many degrees of freedom as copies",
        data="iid",
        cost="O(B d)",
        memory="O(B d)",
        pools="no",
        citation="Lam and Wang (2023)",
        learn=_Learning(MultiplierBootstrap, copies=5, rule="cheap"),
    ),
    Method(
        "plug-in",
        "mean Hessian and mean squared gradient at the iterates",
        law="normal",
        data="iid",
        cost="O(d^2)",
        memory="O(d^2)",
        pools="no",
        citation="Chen, Lee, Tong and Zhang (2020)",
        learn=_Learning(PlugIn),
    ),
    Method(
        "plug-in-longrun",
        "mean Hessian and batch means of gradients at the running average",
        law="t, one degree of freedom less than there are batches",
        data="markov",
        cost="O(d^2)",
        memory="O(d^2)",
        pools="no",
        citation="Chen, Lee, Tong and Zhang (2020); long-run covariance: halfwidth",
        learn=_Learning(PlugIn, long_run=True),
    ),
    Method(
        "higrad",
        "a tree of threads with two binary splits, after 1,000 rows and 1,000 more a thread",
        law="t with 3 degrees of freedom",
        data="iid",
        cost="O(d)",
        memory="O(d)",
        pools="no",
        citation="Su and Zhu (2023)",
        learn=_Learning(HiGrad),
    ),
    Method(
        "parallel-runs",
        "6 runs over rows dealt in turn",
        law="t with 5 degrees of freedom",
        data="iid",
        cost="O(d)",
        memory="O(d)",
        pools="no",
        citation="Zhu, Lou, Wei and Wu (2024)",
        learn=_Learning(ParallelRuns),
    ),
    Method(
        "hull",
        "the hull of 6 runs over rows dealt in turn",
        law="binomial: each run is as likely above the truth as below",
        data="iid",
        cost="O(d)",
        memory="O(d)",
        pools="no",
        citation="Kuchibhotla, Balakrishnan and Wasserman (2024)",
        learn=_Learning(HullOfRuns),
    ),
    Method(
        "richardson-romberg",
        "steps eta and eta/2 on the same rows, combined against the bias; 6 batches",
        law="t with 5 degrees of freedom",
        data="markov",
        cost="O(d)",
        memory="O(d)",
        pools="no",
        citation="Dieuleveut, Durmus and Bach (2020); Huo, Chen and Xie (2023)",
        learn=_richardson,
    ),
    Method(
        "trajectory-regression",
        "curvature from regressing gradients on iterates",
        law="normal",
        data="iid",
        cost="O(d^2)",
        memory="O(d^2)",
        pools="no",
        citation="Ni and Huo (2026)",
        learn=_Learning(TrajectoryRegression),
    ),
)

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}


def method(name: str) -> Method:
    """The row of that name; `bootstrap:copies=200` is the row `bootstrap` with an option changed."""
    base, colon, options = name.partition(":")
    if base not in METHODS:
        raise UnknownName.among("method", base, METHODS)
    row = METHODS[base]
    if not colon:
        return row
    if not isinstance(row.learn, _Learning):
        raise InputError.of("method", "have options to change; this one has none", name)
    return replace(row, name=name, learn=row.learn.changed(options))


def methods(names: Iterable[str]) -> tuple[Method, ...]:
    """Several rows, each once."""
    rows = tuple(method(name) for name in names)
    if not rows or len({row.name for row in rows}) < len(rows):
        raise InputError.of("methods", "name at least one method, each once", [row.name for row in rows])
    return rows
