"""`auto`: an interval that chooses its own steps, centre and batches.

It looks at past rows, the field and, if there is one, its Jacobian at fixed data; at nothing else. Three engines add
up the linearised equation (`halfwidth.equation`):

| rows come by                        | engine       | theta                                             |
|-------------------------------------|--------------|---------------------------------------------------|
| `run`, `ask` and `tell(request)`    | `steered`    | is deployed, steers, and learns what responds     |
| `consume`, or feedback="none"       | `given`      | follows the root of all rows: renewable Newton    |
| `tell(theta=...)`                   | `observed`   | is somebody else's                                |

The centre is after one-step estimation (L. Le Cam 1956), the batches after Singh, Shukla and Vats (2023); feedback,
weighed moves of the linearisation point and their combination are halfwidth's. Page: docs/auto.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_bool, check_count, check_vector
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.inference import Result
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.asking import Request, check_request, checked_hessian, told_problem, told_sums
from halfwidth.learners.auto.engines import Declared, Engines
from halfwidth.learners.auto.given_reading import given_result
from halfwidth.learners.auto.observed import Observed
from halfwidth.learners.auto.observed_result import observed_result
from halfwidth.learners.auto.reading import steered_result
from halfwidth.learners.auto.result import doubted_throughout
from halfwidth.learners.auto.status import NO_STEPS, TOLD_HESSIAN
from halfwidth.learners.auto.steered_sums import STEP
from halfwidth.learners.learner_state import State, learner_schema, restored_learner
from halfwidth.learners.trajectory import Seed
from halfwidth.problems import Problem
from halfwidth.state.containers import Optional
from halfwidth.state.fields import Bool, Fields, Text, Whole
from halfwidth.state.guard import guard_of
from halfwidth.state.schema import validate
from halfwidth.watchers import Watcher
from halfwidth.watchers.base import Critical

FEWEST_ROWS = 256
_MOST_CHUNK_ROWS = 1 << 20


class Auto(Engines):
    """Learns, and says how sure it is, without a step size, a batch length or a burn-in to choose.

    Parameters
    ----------
    problem : Problem, optional
        The gradient or field, and the source of rows where there is one. Without a problem, give `dim`, and drive the
        learner by `ask` and `tell`.
    dim : int, optional
        The dimension of theta, where there is no problem.
    gradient_only : bool
        Whether to do without the problem's Hessian or Jacobian.
    feedback : {None, "none", "detect"}
        Whether data may respond to the deployed theta. None means "none" for `consume`, for a file cannot respond, and
        "detect" for `run`, `ask` and `tell`.
    chunk_rows : int, optional
        For how many rows a theta is deployed; 64, more above 24 dimensions.
    watchers : sequence of Watcher
        Estimators that observe the deployed iterates.
    seed : int, SeedSequence or Generator
        Source of the random numbers that rows and dithers are drawn with.
    theta_0 : array_like, optional
        Start of the trajectory; the problem's own, or zero, by default.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> import halfwidth as hw
    >>> result = hw.Auto(hw.problem("swap-game", rho=0.9), seed=1).run(20_000).result()
    >>> result.feedback.detected
    True
    """

    name = "auto"
    version = 2
    options = ()
    settings: ClassVar[Fields] = {
        "gradient_only": Bool(doc="whether to do without the Hessian"),
        "feedback": Optional(Text(("none", "detect")), doc="whether data may respond to theta"),
        "chunk_rows": Optional(Whole(1, _MOST_CHUNK_ROWS), doc="rows that a theta is deployed for"),
    }

    def __init__(
        self,
        problem: Problem | None = None,
        *,
        dim: int | None = None,
        gradient_only: bool = False,
        feedback: Declared | None = None,
        chunk_rows: int | None = None,
        watchers: Sequence[Watcher] = (),
        seed: Seed = 0,
        theta_0: ArrayLike | None = None,
    ) -> None:
        if (problem is None) == (dim is None):
            raise InputError("give either a problem or dim, the dimension of theta for ask() and tell()")
        if feedback not in (None, "none", "detect"):
            raise InputError.of("feedback", "be None, 'none' or 'detect'", feedback)
        self.gradient_only, self.feedback = check_bool("gradient_only", gradient_only), feedback
        self.chunk_rows = None if chunk_rows is None else check_count("chunk_rows", chunk_rows)
        if chunk_rows is not None and chunk_rows > _MOST_CHUNK_ROWS:
            raise InputError.of("chunk_rows", f"be at most {_MOST_CHUNK_ROWS}", chunk_rows)
        self.name = "auto-gradient" if gradient_only else "auto"
        if problem is None:
            problem = told_problem(check_count("dim", dim))  # type: ignore[arg-type]  # None is refused
        super().__init__(problem, step=STEP, watchers=watchers, seed=seed, theta_0=theta_0)

    def ask(self) -> Request:
        """What to do next: the theta to deploy, for how many rows, and the points at which gradients are wanted.

        Returns
        -------
        Request
            The open request; the same one until it is told.
        """
        with guard_of(self):
            self._enter("ask")
            assert self._conversation is not None
            return self._conversation.ask()

    def tell(
        self,
        request: Request | None = None,
        gradients: ArrayLike | None = None,
        hessian: ArrayLike | None = None,
        *,
        theta: ArrayLike | None = None,
    ) -> Self:
        """Take in what the rows of a request say, or what rows say that came while a theta of your own was deployed.

        Parameters
        ----------
        request : Request, optional
            What `ask` gave.
        gradients : array_like
            On the same rows at each of the request's points, of shape (p, rows, d), or summed over the rows, (p, d).
            With a theta of your own: at that theta, of shape (rows, d), with as many rows in every call.
        hessian : array_like of shape (d, d), optional
            Summed over the rows, at `request.points[1]`, or at a theta of your own, which needs one. With requests it
            is given every time or never.
        theta : array_like of shape (d,)
            What was deployed, in place of a request.

        Returns
        -------
        Self
            The learner itself.

        Raises
        ------
        InputError
            An argument breaks its rule; nothing was taken in.
        Diverged
            Theta ran away too often.
        """
        if (request is None) == (theta is None) or gradients is None:
            raise InputError("tell takes a request and its gradients, or theta=, gradients= and hessian= of your own")
        with guard_of(self):
            if request is None:
                deployed = check_vector("theta", theta, self.problem.dim)  # type: ignore[arg-type]  # None is refused
                self._observe(deployed, gradients, hessian)
            else:
                check_request(request, bool(self._mode))
                self._enter("ask")
                assert self._conversation is not None
                last = self._conversation.tell(request, gradients, hessian)
                self._add_rows(request.theta, last, request.rows)
        return self

    def _observe(self, theta: Vector, gradients: ArrayLike, hessian: ArrayLike | None) -> None:
        sums, rows = told_sums(gradients, self.problem.dim)
        if hessian is None:
            raise InputError("hessian must be given with a theta of your own: one gradient shows no curvature")
        H = checked_hessian(hessian, self.problem.dim)
        self._enter("observe")
        if self._observed is None:
            self._observed = Observed(theta, rows)
        self._observed.add(theta, rows, sums, H)
        self._theta[:] = theta
        self._total += rows * (theta - self._theta_0)
        self._add_rows(theta, theta, rows)

    def _add_rows(self, theta: Vector, last: Vector, rows: int) -> None:
        """Theta was deployed for the rows; the step to `last` counts with the last of them, as in the compiled loop."""
        self.n_seen += rows
        if self.watchers:
            thetas = np.tile(theta, (rows, 1))
            thetas[-1] = last
            for watcher in self.watchers:
                watcher.take(thetas)

    # ---- results

    def result(self, watcher: Watcher | None = None, critical: Critical = "calibrated") -> Result:
        if watcher is not None or critical != "calibrated":
            return super().result(watcher, critical).with_facts(*() if self._takes_steps() else (NO_STEPS,))
        guard_of(self).check()
        if (engine := self._steered_so_far()) is not None:
            engine.check_derivative()
        if self.n_iterates < self._rows_needed():
            raise NotEnoughData.rows(f"an interval by {self.name}", self.n_seen, self._rows_needed())
        return self._with_facts(doubted_throughout(self._own_result()))

    def _rows_needed(self) -> int:
        if self._free is not None:
            return max(FEWEST_ROWS, 4 * self.problem.dim)
        engine = self._steered_so_far() or self._observed
        return FEWEST_ROWS if engine is None else engine.rows_needed

    def _own_result(self) -> Result:
        if self._free is not None:
            return given_result(self._free, self.name, self._curvature())
        if self._observed is not None:
            return observed_result(self._observed, self.name, self.n_seen, self.feedback != "none")
        engine = self._steered_so_far()
        assert engine is not None
        return steered_result(engine, self.name, self.n_seen, self._curvature())

    def _curvature(self) -> str:
        """Where the derivative of the field comes from, in words."""
        told = self._mode == "ask"
        if not (self._steered.differences if self._steered is not None else self.differences):
            own = "Hessian" if self.problem.derivative == "hessian" else "Jacobian"
            return TOLD_HESSIAN if told else f"the problem's {own}"
        text = "differences of gradients on the same rows"
        return text if told or self.gradient_only else f"{text}, as the problem has no Hessian or Jacobian"

    @classmethod
    def from_state(cls, state: State, problem: Problem | None = None) -> Self:
        if problem is None:
            validate(state, learner_schema(cls))
            problem = told_problem(state["problem"]["dim"])
            if (name := state["problem"]["name"]) != problem.name:
                raise InputError(f"problem must be given: this is the state of a run on {name!r}")
        return restored_learner(cls, state, problem)
