"""Values of a policy in a Gymnasium environment, with intervals: TD(lambda) with linear features, solved exactly.

The environment runs under a fixed policy. Every step is a row of the linear equation of TD(lambda),

    sum_k z_k ((phi(s_k) - gamma c_k phi(s_(k+1)))'theta - r_k) = 0,   z_k = gamma lambda z_(k-1) + phi(s_k),

whose root is LSTD(lambda) (S. Bradtke and A. Barto 1996; J. Boyan 2002); the policy does not follow theta, so that
rows do not respond to it, and the errors are those of `halfwidth.Auto` on given rows. Ends of episodes are part of the
chain (`halfwidth.adapters.transitions`). Rows of several copies of an environment are interleaved in time order.

The interval is about theta*, where TD(lambda) ends with these features. phi(s)'theta* is the value of s where features
tell all states apart, and its best approximation in the sense of TD elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from halfwidth.adapters.evaluation_state import STATE_SCHEMA
from halfwidth.adapters.policy_values import PolicyValues, td_rows
from halfwidth.adapters.transitions import Block, Features, RowMaker
from halfwidth.adapters.worlds import world_of
from halfwidth.checks import check_count
from halfwidth.errors import EnvironmentFailed, HalfwidthError, InputError, NotEnoughData
from halfwidth.learners.auto import Auto
from halfwidth.learners.learner_state import State
from halfwidth.state.schema import validate

__all__ = ["PolicyEvaluation", "PolicyValues", "evaluate_policy"]

Policy = Callable[[Any], Any]


class PolicyEvaluation:
    """Evaluates a policy as its environment runs; it can go on at any time.

    Parameters
    ----------
    env : gymnasium.Env or gymnasium.vector.VectorEnv
        The environment. Of vectorised ones every mode of resetting is understood.
    policy : callable
        ``policy(observation)`` returns the action; of a vectorised environment, the actions of all observations.
    features : callable
        ``features(observations)`` maps a batch of observations, (n, ...), to their features, (n, d). It is called once
        for some thousand steps.
    discount : float
        The discount gamma, between 0 and 1.
    trace : float, default 0.0
        The decay lambda of TD(lambda).
    seed : int, optional
        Handed to the first `reset` of the environment.

    Raises
    ------
    MissingExtra
        Gymnasium is not installed.
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> import gymnasium, numpy as np
    >>> from halfwidth.adapters.gymnasium import PolicyEvaluation
    >>> env = gymnasium.make("CartPole-v1")
    >>> lean = lambda observation: int(observation[2] > 0.0)
    >>> powers = lambda x: np.column_stack([np.ones(len(x)), x[:, 2:], x[:, 2:] ** 2])
    >>> evaluation = PolicyEvaluation(env, lean, powers, discount=0.9, seed=1).run(5_000)
    >>> evaluation.result().values([[0.0, 0.0, 0.0, 0.0]]).estimate.round(0)
    array([11.])
    """

    def __init__(
        self, env: Any, policy: Policy, features: Features, *, discount: float, trace: float = 0.0,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        for name, value in (("discount", discount), ("trace", trace)):
            if not 0.0 <= value <= 1.0:
                raise InputError.of(name, "lie between 0 and 1", value)
        for name, function in (("policy", policy), ("features", features)):
            if not callable(function):
                raise InputError.of(name, "be a function", function)
        self._world = world_of(env, policy, seed)
        self._maker = RowMaker(features, float(discount), float(trace))
        self._block: Block | None = None
        self.learner: Auto | None = None
        self.transitions = self.episodes = 0

    def run(self, transitions: int) -> Self:
        """Let the environment run on.

        Parameters
        ----------
        transitions : int
            At least how many steps to take, over all copies together.

        Returns
        -------
        Self
            The evaluation itself.

        Raises
        ------
        EnvironmentFailed
            The environment, the policy or the features raised, or gave something that is not finite or has another
            shape. All steps before that one are learned: `result` gives what they say, and `run` goes on with a reset.
        """
        wanted = self.transitions + check_count("transitions", transitions)
        if self._block is None:
            self._maker.start()
            self._block = self._world.begin()
        block = self._block
        try:
            while self.transitions < wanted:
                left = -(-(wanted - self.transitions) // block.copies)
                self._world.advance(block, min(block.steps, left))
                self._learn(block)
        except BaseException as fault:
            self._block = None
            self._learn_before_the_fault(block)
            if not isinstance(fault, Exception):
                raise
            what = str(fault) if isinstance(fault, HalfwidthError) else f"{type(fault).__name__}: {fault}"
            raise EnvironmentFailed(
                f"the environment failed ({what}). The {self.transitions:,} transitions learned before are kept: "
                "result() gives what they say, and run() goes on with a reset"
            ) from fault
        return self

    def result(self) -> PolicyValues:
        """What the steps so far say.

        Returns
        -------
        PolicyValues
            Values with intervals.

        Raises
        ------
        NotEnoughData
            There are too few steps for an interval.
        """
        if self.learner is None:
            raise NotEnoughData.rows("an interval for values", self.transitions, 256)
        return PolicyValues(self.learner.result(), self._maker.features, self.transitions, self.episodes)

    def _learn(self, block: Block) -> None:
        """Learn the steps of the block, up to the first that is not finite, and begin the next block."""
        rows, steps = self._maker.rows(block), slice(0, block.filled)
        ended = (block.terminated[steps] | block.truncated[steps])[~block.skipped[steps]]
        block.restart()
        finite = np.isfinite(rows).all(axis=1)
        good = len(rows) if finite.all() else int(np.argmin(finite))
        if self.learner is None:
            self.learner = Auto(td_rows((rows.shape[1] - 1) // 2))
        if good:
            self.learner.consume(rows[:good])
        self.transitions += good
        self.episodes += int(ended[:good].sum())
        if good < len(rows):
            what = "reward" if np.isfinite(rows[good, :-1]).all() else "feature"
            raise EnvironmentFailed(f"a {what} is not finite: {rows[good][~np.isfinite(rows[good])][0]}")

    def _learn_before_the_fault(self, block: Block) -> None:
        """What came before a fault counts; if it is faulty itself, the first fault is the one to tell."""
        if block.filled:
            try:
                self._learn(block)
            except Exception:
                block.filled = 0

    def to_state(self) -> State:
        """All that was learned, as plain arrays and numbers.

        Returns
        -------
        dict
            For `from_state`; the environment is not in it.
        """
        learner = None if self.learner is None else self.learner.to_state()
        known = {"discount": self._maker.discount, "trace": self._maker.trace, "transitions": self.transitions}
        return {**STATE_SCHEMA.head, **known, "episodes": self.episodes, "learner": learner}

    @classmethod
    def from_state(cls, state: State, env: Any, policy: Policy, features: Features, seed: int | None = None) -> Self:
        """The evaluation that `to_state` described, or `BadState`; its environment begins with a reset.

        Parameters
        ----------
        state : dict
            What `to_state` gave.
        env, policy, features, seed
            As the class takes them.

        Returns
        -------
        Self
            An evaluation that goes on.
        """
        validate(state, STATE_SCHEMA)
        made = cls(env, policy, features, discount=state["discount"], trace=state["trace"], seed=seed)
        made.transitions, made.episodes = int(state["transitions"]), int(state["episodes"])
        if state["learner"] is not None:
            dim = state["learner"]["problem"]["dim"]
            made._maker.dim = dim
            made.learner = Auto.from_state(state["learner"], td_rows(dim))
        return made


def evaluate_policy(
    env: Any, policy: Policy, features: Features, *, discount: float, transitions: int, trace: float = 0.0,
    seed: int | None = None,
) -> PolicyValues:  # fmt: skip
    """Evaluate a policy from so many transitions of its environment.

    Parameters
    ----------
    env, policy, features, discount, trace, seed
        As `PolicyEvaluation` takes them.
    transitions : int
        How many steps to take.

    Returns
    -------
    PolicyValues
        What `PolicyEvaluation.result` gives.

    Raises
    ------
    EnvironmentFailed
        The environment failed; use `PolicyEvaluation` to keep what was learned.
    NotEnoughData
        There are too few steps for an interval.

    Examples
    --------
    >>> import gymnasium, numpy as np
    >>> from halfwidth.adapters.gymnasium import evaluate_policy
    >>> lake = gymnasium.make("FrozenLake-v1")
    >>> rng = np.random.default_rng(0)
    >>> values = evaluate_policy(
    ...     lake, lambda s: int(rng.integers(4)), lambda s: np.eye(16)[s], discount=0.95, transitions=20_000, seed=0
    ... )
    >>> values.result.params.shape
    (16,)
    """
    return PolicyEvaluation(env, policy, features, discount=discount, trace=trace, seed=seed).run(transitions).result()
