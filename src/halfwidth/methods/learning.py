"""The methods that bring a learner of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from halfwidth import learners
from halfwidth.errors import InputError
from halfwidth.learners import Learner
from halfwidth.learners.trajectory import Seed
from halfwidth.methods.base import Method, Setting
from halfwidth.problems import Problem
from halfwidth.watchers import FixedBatchMeans


class Learning:
    """A learner of its own at the setting's steps; such learners cap them wherever the problem bounds its curvature."""

    def __init__(self, kind: Callable[..., Learner], **options: Any) -> None:
        self.kind, self.options = kind, options

    def __call__(self, problem: Problem, setting: Setting, seed: Seed) -> Learner:
        burn_in = setting.burn_in_rows
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
    burn_in = setting.burn_in_rows
    return learners.RichardsonRomberg(problem, step=setting.step(), watchers=(watcher,), seed=seed, burn_in=burn_in)


def _auto(gradient_only: bool) -> Callable[[Problem, Setting, Seed], Learner]:
    """It chooses its own steps and burn-in, whatever the setting."""
    return lambda problem, setting, seed: learners.Auto(problem, gradient_only=gradient_only, seed=seed)


def _debiasing(problem: Problem, setting: Setting, seed: Seed) -> Learner:
    """It is told the number of rows beforehand, which its weights depend on."""
    if setting.watched_rows is None:
        raise InputError("online-debiasing must be told the number of rows beforehand; use auto instead")
    rows = setting.watched_rows + setting.burn_in_rows
    return learners.OnlineDebiasing(problem, planned_rows=rows, step=setting.step(), seed=seed)


_linearised = partial(Method, cost="O(d^2)", memory="O(d^2)")
_bootstrap = partial(Method, cost="O(B d)", memory="O(B d)")
_runs = partial(Method, cost="O(d)", memory="O(d)")

CHOOSING: tuple[Method, ...] = (
    _linearised(
        "auto",
        "a one-step centre corrected for feedback; steps and batches choose themselves",
        "t",
        "at most batches - 1 (fewer where feedback is estimated, by coefficient on given rows)",
        data="state-dependent",
        memory="O(128 d^2)",
        citation="halfwidth; one-step: Le Cam (1956)",
        use="any stream with a gradient and a Hessian; the default",
        learn=_auto(gradient_only=False),
    ),
    _linearised(
        "auto-gradient",
        "the same from gradients alone: differences on the same rows stand for the Hessian",
        "t",
        "at most batches - 1 (fewer where feedback is estimated, by coefficient on given rows)",
        data="state-dependent",
        cost="3 + d/4 gradients",
        memory="O(128 d^2)",
        citation="halfwidth; one-step: Le Cam (1956)",
        use="the same with gradients only",
        learn=_auto(gradient_only=True),
    ),
)
"""Those that choose their own steps, centre and batches."""

LEARNING: tuple[Method, ...] = (
    _bootstrap(
        "bootstrap",
        "100 copies perturbed by independent weights, normal critical value",
        "normal",
        data="iid",
        citation="Fang, Xu and Yang (2018)",
        learn=Learning(learners.MultiplierBootstrap, copies=100),
    ),
    _bootstrap(
        "bootstrap-block",
        "100 copies, weights that stay for 50 rows",
        "normal",
        data="markov",
        citation="Fang, Xu and Yang (2018); blocks: halfwidth",
        learn=Learning(learners.MultiplierBootstrap, copies=100, block=50),
    ),
    _bootstrap(
        "bootstrap-minibatch",
        "one step and one weight for every 25 rows, 100 copies",
        "normal",
        data="markov",
        citation="Liu, Chen and Shang (2023)",
        learn=Learning(learners.MiniBatchBootstrap, copies=100, batch=25),
    ),
    _bootstrap(
        "bootstrap-cheap",
        "5 copies perturbed by independent weights, t with 5 degrees of freedom",
        "t",
        "5",
        data="iid",
        cost="O(5 d)",
        citation="Lam and Wang (2023)",
        use="five perturbed copies, independent rows",
        learn=Learning(learners.MultiplierBootstrap, copies=5, rule="cheap"),
    ),
    _linearised(
        "plug-in",
        "mean Hessian and mean squared gradient at the iterates",
        "normal",
        data="iid",
        citation="Chen, Lee, Tong and Zhang (2020)",
        use="Hessian at hand, independent rows",
        learn=Learning(learners.PlugIn),
    ),
    _linearised(
        "plug-in-longrun",
        "mean Hessian and batch means of gradients at the running average",
        "t",
        "each coefficient's own",
        data="markov",
        citation="Chen, Lee, Tong and Zhang (2020); long-run covariance: halfwidth",
        use="Hessian at hand, no feedback",
        learn=Learning(learners.PlugIn, long_run=True),
    ),
    _linearised(
        "one-step",
        "rows expanded at the running average: a centre without the steps' bias, batches that choose their length",
        "t",
        "each coefficient's own",
        data="state-dependent",
        memory="O(256 d^2)",
        citation="Le Cam (1956); pseudo-value batches: halfwidth",
        use="Hessian at hand, steps of your own; removes the steps' bias",
        learn=Learning(learners.OneStep),
    ),
    _linearised(
        "renewable-newton",
        "Newton steps by chunks on a quadratic that stands for all rows before; long-run covariance of score batches",
        "t",
        "each coefficient's own",
        data="markov",
        memory="O(256 d^2)",
        citation="Luo and Song (2020); score batches: halfwidth",
        use="Hessian at hand, no step size, no feedback",
        learn=Learning(learners.ChunkedNewton),
    ),
    _runs(
        "higrad",
        "a tree of threads with two binary splits, after 1,000 rows and 1,000 more per thread",
        "t",
        "3",
        data="iid",
        citation="Su and Zhu (2023)",
        learn=Learning(learners.HiGrad),
    ),
    _runs(
        "parallel-runs",
        "6 runs over rows dealt in turn",
        "t",
        "5",
        data="iid",
        citation="Zhu, Lou, Wei and Wu (2024)",
        learn=Learning(learners.ParallelRuns),
    ),
    _runs(
        "hull",
        "the hull of 6 runs over rows dealt in turn",
        "hull",
        data="iid",
        citation="Kuchibhotla, Balakrishnan and Wasserman (2024)",
        learn=Learning(learners.HullOfRuns),
    ),
    _runs(
        "richardson-romberg",
        "steps eta and eta/2 on the same rows, combined against the bias; 6 batches",
        "t",
        "5",
        data="markov",
        citation="Dieuleveut, Durmus and Bach (2020); Huo, Chen and Xie (2023)",
        use="two step sizes on the same rows remove the leading bias",
        learn=_richardson,
    ),
    _linearised(
        "trajectory-regression",
        "curvature from regressing gradients on iterates",
        "normal",
        data="iid",
        citation="Ni and Huo (2026)",
        learn=Learning(learners.TrajectoryRegression),
    ),
    _linearised(
        "online-debiasing",
        "least squares corrected by predictable weights, for a planned number of rows; linear regression only",
        "normal",
        data="state-dependent",
        citation="Khamaru, Deshpande, Lattimore, Mackey and Wainwright (2021); Deshpande et al. (2018)",
        use="linear regression on rows that a bandit chose, sqrt(log(n) / 2) times as wide",
        learn=_debiasing,
        supports_burn_in=False,
    ),
    _runs(
        "plus-minus",
        "steps gamma / k and the last iterate +- z sqrt(gamma / N); conservative, for likelihoods",
        "normal",
        data="iid",
        memory="O(d^2)",
        citation="Chee, Kim and Toulis (2023)",
        learn=Learning(learners.PlusMinus),
        supports_burn_in=False,
    ),
)
