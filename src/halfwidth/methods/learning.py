"""The methods that bring a learner of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from halfwidth.errors import InputError
from halfwidth.learners import (
    Auto,
    ChunkedNewton,
    HiGrad,
    HullOfRuns,
    Learner,
    MiniBatchBootstrap,
    MultiplierBootstrap,
    OneStep,
    ParallelRuns,
    PlugIn,
    RichardsonRomberg,
    TrajectoryRegression,
)
from halfwidth.learners.trajectory import Seed
from halfwidth.methods.base import Method, Setting
from halfwidth.problems import Problem
from halfwidth.watchers import FixedBatchMeans


class Learning:
    """A learner of its own at the setting's steps; such learners cap them wherever the problem bounds its curvature."""

    def __init__(self, kind: Callable[..., Learner], **options: Any) -> None:
        self.kind, self.options = kind, options

    def __call__(self, problem: Problem, setting: Setting, seed: Seed) -> Learner:
        burn_in = setting.burned_rows
        return self.kind(problem, step=setting.step(), seed=seed, burn_in=burn_in, **self.options)

    def changed(self, text: str) -> Learning:
        """The same with other values of its whole-number options, given like `copies=200`."""
        changes = dict(part.partition("=")[::2] for part in text.split(","))
        known = [key for key, value in self.options.items() if isinstance(value, int)]
        for key, value in changes.items():
            if key not in known or not value.isdecimal():
                raise InputError.of("a method's options", f"be whole numbers for {', '.join(known) or 'nothing'}", text)
        return Learning(self.kind, **self.options | {key: int(value) for key, value in changes.items()})


def _richardson(problem: Problem, setting: Setting, seed: Seed) -> Learner:
    watcher = FixedBatchMeans(problem.dim, batches=6)
    burn_in = setting.burned_rows
    return RichardsonRomberg(problem, step=setting.step(), watchers=(watcher,), seed=seed, burn_in=burn_in)


def _auto(gradient_only: bool) -> Callable[[Problem, Setting, Seed], Learner]:
    """It chooses its own steps and burn-in, whatever the setting."""
    return lambda problem, setting, seed: Auto(problem, gradient_only=gradient_only, seed=seed)


CHOOSING: tuple[Method, ...] = (
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
        cost="O(d^2)",
        memory="O(64 d^2)",
        pools="no",
        citation="halfwidth; one-step: Le Cam (1956)",
        learn=_auto(gradient_only=True),
    ),
)
"""Those that choose their own steps, centre and batches."""

LEARNING: tuple[Method, ...] = (
    Method(
        "bootstrap",
        "100 copies perturbed by independent weights, normal critical value",
        law="normal",
        data="iid",
        cost="O(B d)",
        memory="O(B d)",
        pools="no",
        citation="Fang, Xu and Yang (2018)",
        learn=Learning(MultiplierBootstrap, copies=100),
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
        learn=Learning(MultiplierBootstrap, copies=100, block=50),
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
        learn=Learning(MiniBatchBootstrap, copies=100, batch=25),
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
        learn=Learning(MultiplierBootstrap, copies=5, rule="cheap"),
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
        learn=Learning(PlugIn),
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
        learn=Learning(PlugIn, long_run=True),
    ),
    Method(
        "one-step",
        "rows expanded at the running average: a centre without the steps' bias, batches that choose their length",
        law="t, batches - 1 degrees of freedom",
        data="state-dependent",
        cost="O(d^2)",
        memory="O(256 d^2)",
        pools="no",
        citation="Le Cam (1956); pseudo-value batches: halfwidth",
        learn=Learning(OneStep),
    ),
    Method(
        "renewable-newton",
        "Newton steps by chunks on a quadratic that stands for all rows before; long-run covariance of score batches",
        law="t, degrees of freedom by two moments",
        data="markov",
        cost="O(d^2)",
        memory="O(256 d^2)",
        pools="no",
        citation="Luo and Song (2020); score batches: halfwidth",
        learn=Learning(ChunkedNewton),
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
        learn=Learning(HiGrad),
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
        learn=Learning(ParallelRuns),
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
        learn=Learning(HullOfRuns),
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
        learn=Learning(TrajectoryRegression),
    ),
)
